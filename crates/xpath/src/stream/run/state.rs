//! The stacks of a run. They outlive it: the next run on the thread reuses their memory, and the classes of names for its plan.

use crate::stream::class::UNKNOWN;
use crate::stream::known::Known;
use std::cell::RefCell;
use std::collections::VecDeque;

/// Most states in the cache of a thread, and the most text capacity of one.
const KEPT: usize = 16;
const LARGEST_TEXT: usize = 64 << 10;

thread_local! {
    static AT_REST: RefCell<Vec<State>> = const { RefCell::new(Vec::new()) };
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub frames: Vec<Frame>,
    /// Cursors among the children of open elements; those of the innermost one are at the end.
    pub children: Vec<Cursor>,
    /// Cursors anywhere below open elements.
    pub below: Vec<Cursor>,
    pub counters: Vec<usize>,
    pub scopes: Vec<ScopeState>,
    pub leaves: Vec<LeafState>,
    pub candidates: Vec<Candidate>,
    pub collectors: Vec<Collector>,
    /// Parents among whose children positions are counted, each inside those before it (or those have ended), and the counts.
    pub families: Vec<Family>,
    pub counts: Vec<usize>,
    /// Of events that are given one by one: the numbers of the open elements.
    pub open: Vec<u64>,
    /// Text of all buffering collectors, each from its own start.
    pub text: String,
    /// The class of each name of the tokenizer's table `names` for the plan.
    pub classes: Vec<u32>,
    plan: u64,
    names: u64,
}

impl State {
    /// A state for a run of this plan: the last one of the same plan if it is in the cache.
    pub fn take(plan: u64) -> State {
        let kept = AT_REST.try_with(|kept| {
            let kept = &mut *kept.borrow_mut();
            let at = kept.iter().rposition(|state| state.plan == plan).or(kept.len().checked_sub(1))?;
            Some(kept.swap_remove(at))
        });
        let mut state = kept.ok().flatten().unwrap_or_default();
        if state.plan != plan {
            state.plan = plan;
            state.classes.clear();
        }
        state
    }

    /// Puts a state back into the cache.
    pub fn keep(mut self) {
        self.frames.clear();
        self.children.clear();
        self.below.clear();
        self.counters.clear();
        self.scopes.clear();
        self.leaves.clear();
        self.candidates.clear();
        self.collectors.clear();
        self.families.clear();
        self.counts.clear();
        self.open.clear();
        self.text.clear();
        if self.text.capacity() > LARGEST_TEXT {
            self.text = String::new();
        }
        let _ = AT_REST.try_with(|kept| {
            let kept = &mut *kept.borrow_mut();
            if kept.len() < KEPT {
                kept.push(self);
            }
        });
    }

    /// Names belong to this table from now on.
    pub fn know(&mut self, names: u64) {
        if self.names != names {
            self.names = names;
            self.classes.clear();
        }
    }

    /// Keeps the class of a name.
    pub fn learn(&mut self, name: usize, class: u32) -> u32 {
        if name >= self.classes.len() {
            self.classes.resize(name + 16, UNKNOWN);
        }
        self.classes[name] = class;
        class
    }
}

/// The heights of the stacks when an element (first: the document) began.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Frame {
    /// Open elements, its own included.
    pub depth: usize,
    pub children: usize,
    pub below: usize,
    pub counters: usize,
    pub scopes: usize,
    pub leaves: usize,
    pub candidates: usize,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor {
    pub leaf: u32,
    pub candidate: u32,
    pub step: u32,
    /// The counts for the positions of its predicates.
    pub counters: u32,
    /// The classes of nodes that its step may find.
    pub mask: u32,
    /// It is the last step, and its result is only compared.
    pub compares: bool,
    pub dead: bool,
}

/// The children of one parent, for a cursor that counts among them.
#[derive(Debug)]
pub(super) struct Family {
    /// Of the parent.
    pub depth: usize,
    pub parent: u64,
    /// The cursor's owner.
    pub task: (u32, u32, u32),
    /// The first of its counts.
    pub counts: usize,
}

#[derive(Debug)]
pub(super) struct ScopeState {
    pub plan: usize,
    pub first_leaf: usize,
    pub position: usize,
    /// The candidate that it belongs to.
    pub candidate: u32,
    pub decided: bool,
}

#[derive(Debug)]
pub(super) struct LeafState {
    pub scope: u32,
    /// Its plan: the number of the scope's plan, and the number in it.
    pub plan: (u32, u32),
    /// Cursors, collectors and pending candidates.
    pub refs: usize,
    pub value: Option<Known>,
    /// Of `count()` and `sum()`, so far.
    pub sum: f64,
    /// The first node has been found.
    pub taken: bool,
    /// Of the only node: its text so far.
    pub text: String,
    /// The last node counted: a node found twice counts once.
    pub last: u64,
    /// Of `(path)[n]` steps: step, last node, count.
    pub nth: Vec<(u32, u64, usize)>,
    /// Of `sum()`: numbers in the order of their nodes' start, waiting for earlier ones; and how many are added.
    pub summands: VecDeque<Option<f64>>,
    pub summed: u64,
}

#[derive(Debug)]
pub(super) struct Candidate {
    pub leaf: u32,
    pub parent: u32,
    /// Predicates not decided yet.
    pub undecided: usize,
    pub hit: bool,
    /// A predicate is false, or all are decided.
    pub dead: bool,
}

#[derive(Debug)]
pub(super) struct Collector {
    pub leaf: u32,
    pub candidate: u32,
    /// Number of open frames; of a text node those around it.
    pub depth: usize,
    pub text_node: bool,
    pub dead: bool,
    /// Of `sum()`: the number of the node.
    pub summand: u64,
    pub kind: Gather,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Gather {
    /// Equality with a string needs no buffer: the length matched so far.
    Match(usize),
    /// The start in the text.
    Buffer(usize),
    /// The element's own text goes to the leaf.
    Direct,
}
