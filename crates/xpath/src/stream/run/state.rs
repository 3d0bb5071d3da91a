//! The stacks of a run. They outlive it: the next one on the thread finds room in them, and what names mean to its plan.

use super::{Candidate, Collector, Cursor, Family, Frame, LeafState, ScopeState};
use crate::stream::class::UNKNOWN;
use std::cell::RefCell;

/// States kept by a thread, and the most text that one keeps room for.
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
    /// A state for a run of this plan, the last one of the same plan if it is still there.
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

    /// Puts a state back.
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

    /// The names are those of this table from now on.
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
