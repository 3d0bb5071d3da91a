//! One evaluation on an event stream.
//!
//! A *cursor* waits for nodes that the next step of a path may find: among the children of one element, or anywhere below
//! it. A node that passes a step with predicates not yet decided becomes a *candidate*; what is found below it counts once
//! the predicates turn out true. A *collector* gathers the string-value of a found node. All of them lie on stacks and
//! go when the element ends at which they were made.
//!
//! What is waited for is known at any time as a set of classes of nodes (see [`super::class`]): those of the cursors among
//! the children of the innermost frame, and those of the cursors below and of text for collectors. No other event can change
//! anything, so [`Run::read`] has the tokenizer pass over them. An element at which nothing was made has no frame.
//!
//! A leaf counts the cursors, collectors and pending candidates that can still change it. When there are none, it is final:
//! this is how "no" is known early.

mod decide;
mod state;

use super::class::UNKNOWN;
use super::known::Known;
use super::{Attributes, Decision, Item, LeafKind, StepKind, StreamPlan, StreamPredicate, StreamStep};
use crate::ast::BinaryOp;
use crate::error::XPathError;
use crate::number;
use crate::value::Value;
use decide::item_name;
use state::State;
use std::collections::VecDeque;
use xml::{Interest, Tokenizer, XmlError};

/// Most text held at once for values being compared.
const MAX_TEXT: usize = 16 << 20;
/// Most cursors, collectors and candidates at once.
const MAX_ACTIVE: usize = 1 << 16;

/// Bytes given to the tokenizer at once: first so many, then twice as many each time, up to so many. What lies behind
/// the place of the decision is neither copied nor checked, and the largest piece stays in the processor's cache.
const FIRST_PIECE: usize = 256;
const LARGEST_PIECE: usize = 16 << 10;

/// Added to the numbers that a tokenizer gives elements.
const READ: u64 = 1 << 32;

/// No candidate: found nodes count at once.
const NONE: u32 = u32::MAX;

/// One evaluation of a [`StreamPlan`]. Feed it the events of a document in order, ask for the [`Run::decision`] after any.
#[derive(Debug)]
pub struct Run<'p> {
    plan: &'p StreamPlan,
    /// Constants as the host gave them, and as streaming compares them.
    values: Vec<Value>,
    known: Vec<Known>,
    decision: Decision,
    s: State,
    buffering: usize,

    /// Open elements.
    depth: usize,
    /// Classes waited for among the children of the innermost frame's element, and anywhere.
    wanted_children: u32,
    wanted_anywhere: u32,
    /// Those that only elements with certain text pass, see [`Run::finds`].
    wanted_leaves: u32,
    /// Open elements when [`Run::read`] began, and the size of its next piece.
    outside: usize,
    piece: usize,
    in_text: bool,
    /// Depth and number of the element around the current node.
    around: (usize, u64),
    /// Elements numbered so far, of those given one by one.
    numbered: u64,
    /// The current node: its number in the stream, attributes counted below it.
    item: u64,
    /// Something has changed that may decide a scope.
    dirty: bool,
}

/// Where the stacks stood when an element (first: the document) began.
#[derive(Debug, Clone, Copy, Default)]
struct Frame {
    /// Open elements, its own included.
    depth: usize,
    children: usize,
    below: usize,
    counters: usize,
    scopes: usize,
    leaves: usize,
    candidates: usize,
}

#[derive(Debug, Clone, Copy)]
struct Cursor {
    leaf: u32,
    candidate: u32,
    step: u32,
    /// Where the positions of its predicates are counted.
    counters: u32,
    /// The classes of nodes that its step may find.
    mask: u32,
    /// It is the last step, and does nothing but compare what it finds.
    compares: bool,
    dead: bool,
}

/// The children of one parent, for a cursor that counts among them.
#[derive(Debug)]
struct Family {
    /// Of the parent.
    depth: usize,
    parent: u64,
    /// The cursor, by what it works for.
    task: (u32, u32, u32),
    /// The first of its counts.
    counts: usize,
}

#[derive(Debug)]
struct ScopeState {
    plan: usize,
    first_leaf: usize,
    position: usize,
    /// The candidate that waits for it.
    candidate: u32,
    decided: bool,
}

#[derive(Debug)]
struct LeafState {
    scope: u32,
    /// Where its plan is: the number of the scope's plan, and that in it.
    plan: (u32, u32),
    /// Cursors, collectors and pending candidates.
    refs: usize,
    value: Option<Known>,
    /// Of `count()` and `sum()`, so far.
    sum: f64,
    /// The first node has been found.
    taken: bool,
    /// The last node counted: a node found twice counts once.
    last: u64,
    /// Of `(path)[n]` steps: step, last node, count.
    nth: Vec<(u32, u64, usize)>,
    /// Of `sum()`: numbers in the order of their nodes' start, waiting for earlier ones; and how many are added.
    summands: VecDeque<Option<f64>>,
    summed: u64,
}

#[derive(Debug)]
struct Candidate {
    leaf: u32,
    parent: u32,
    /// Predicates not decided yet.
    undecided: usize,
    hit: bool,
    /// A predicate is false, or everything is known.
    dead: bool,
}

#[derive(Debug)]
struct Collector {
    leaf: u32,
    candidate: u32,
    /// Number of open frames; of a text node those around it.
    depth: usize,
    text_node: bool,
    dead: bool,
    /// Of `sum()`: the number of the node.
    summand: u64,
    kind: Gather,
}

#[derive(Debug)]
enum Gather {
    /// Equality with a string needs no buffer: how much of it has been met.
    Match(usize),
    /// From here in the text.
    Buffer(usize),
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        std::mem::take(&mut self.s).keep();
    }
}

impl<'p> Run<'p> {
    pub(super) fn new(plan: &'p StreamPlan, values: Vec<Value>, known: Vec<Known>) -> Run<'p> {
        let mut run = Run {
            plan,
            values,
            known,
            decision: Decision::Undecided,
            s: State::take(plan.id),
            buffering: 0,
            depth: 0,
            wanted_children: 0,
            wanted_anywhere: 0,
            wanted_leaves: 0,
            outside: 0,
            piece: 0,
            in_text: false,
            around: (0, 0),
            numbered: 0,
            item: 0,
            dirty: false,
        };
        run.s.frames.push(Frame::default());
        run.open_scope(0, 1, NONE, &Item::Document);
        run.settle();
        run.look_out();
        run
    }

    /// Reads the next bytes of a document until they decide, and returns how many were needed. The rest of them may be
    /// given later, or never. When all are, say [`Tokenizer::finish`], [`Run::drain`] and [`Run::finish`].
    ///
    /// # Errors
    /// What is not well-formed, or exceeds a limit, up to the decision.
    pub fn read(&mut self, tokenizer: &mut Tokenizer, bytes: &[u8]) -> Result<usize, XmlError> {
        let mut given = 0;
        loop {
            self.drain(tokenizer)?;
            if self.is_decided() || given == bytes.len() {
                return Ok(given);
            }
            self.piece = (self.piece * 2).clamp(FIRST_PIECE, LARGEST_PIECE);
            let piece = &bytes[given..bytes.len().min(given + self.piece)];
            tokenizer.feed(piece);
            given += piece.len();
        }
    }

    /// Takes the events that the tokenizer has, until they decide.
    ///
    /// # Errors
    /// As [`Run::read`].
    pub fn drain(&mut self, tokenizer: &mut Tokenizer) -> Result<(), XmlError> {
        if self.piece == 0 {
            self.outside = self.depth - tokenizer.depth().min(self.depth);
            self.piece = 1;
        }
        self.s.know(tokenizer.names());
        while !self.is_decided() {
            let there = if self.s.collectors.last().is_some_and(|c| c.text_node) {
                // The end of the text node is whatever comes next.
                tokenizer.next()?.is_some()
            } else {
                let frame = self.s.frames.last().map_or(0, |frame| frame.depth);
                tokenizer.skim(&Interest {
                    classes: &self.s.classes,
                    anywhere: self.wanted_anywhere,
                    children: self.wanted_children,
                    level: frame.checked_sub(self.outside).unwrap_or(usize::MAX),
                    leaves: self.wanted_leaves,
                    leaf: Some(&|class, text| self.finds(class, text)),
                })?
            };
            let open = self.outside + tokenizer.depth();
            let around = READ + u64::from(tokenizer.surrounding());
            if !there {
                self.depth = open;
                return Ok(());
            }
            match tokenizer.event() {
                xml::Event::StartElement { name, attributes, empty } => {
                    self.depth = open - usize::from(!empty);
                    self.around = (self.depth, around);
                    let (ns, local) = (name.namespace(), name.local());
                    let class = match self.s.classes.get(name.id().index()) {
                        Some(class) if *class != UNKNOWN => *class,
                        _ => self.s.learn(name.id().index(), self.plan.class(ns, local)),
                    };
                    self.start(Item::Element { ns, local, attributes: &attributes, class }, class);
                }
                xml::Event::EndElement { .. } => {
                    self.depth = open + 1;
                    self.end();
                }
                xml::Event::Text(text) => {
                    self.depth = open;
                    self.around = (open, around);
                    self.in_text &= tokenizer.continues_text();
                    self.piece_of_text(text);
                }
                xml::Event::Comment(value) => {
                    self.depth = open;
                    self.around = (open, around);
                    self.leaf_item(&Item::Comment(value), Interest::COMMENT);
                }
                xml::Event::ProcessingInstruction { target, data } => {
                    self.depth = open;
                    self.around = (open, around);
                    self.leaf_item(&Item::Instruction(target, data), Interest::INSTRUCTION);
                }
            }
        }
        Ok(())
    }

    /// How far the answer is known.
    pub fn decision(&self) -> Decision {
        self.decision.clone()
    }

    /// Whether the answer is fixed (or the run failed): further events change nothing.
    #[inline]
    pub fn is_decided(&self) -> bool {
        !matches!(self.decision, Decision::Undecided)
    }

    /// An event of the tokenizer.
    pub fn event(&mut self, event: &xml::Event<'_>) {
        match event {
            xml::Event::StartElement { name, attributes, .. } => {
                self.start_element(name.namespace(), name.local(), attributes);
            }
            xml::Event::EndElement { .. } => self.end_element(),
            xml::Event::Text(text) => self.text(text),
            xml::Event::Comment(value) => self.comment(value),
            xml::Event::ProcessingInstruction { target, data } => self.processing_instruction(target, data),
        }
    }

    /// A start tag. `attributes` without namespace declarations.
    pub fn start_element(&mut self, ns: &str, local: &str, attributes: &dyn Attributes) {
        if self.is_decided() {
            return;
        }
        let class = self.plan.class(ns, local);
        self.come_around();
        self.numbered += 1;
        self.s.open.push(self.numbered);
        self.start(Item::Element { ns, local, attributes, class }, class);
    }

    /// An event that is given by itself: what is around it.
    fn come_around(&mut self) {
        self.around = (self.depth, self.s.open.last().copied().unwrap_or(0));
    }

    /// Whether nodes of a class are waited for here.
    #[inline]
    fn wants(&self, class: u32) -> bool {
        class & self.wanted_anywhere != 0
            || class & self.wanted_children != 0
                && self.s.frames.last().is_some_and(|frame| frame.depth == self.depth)
    }

    fn start(&mut self, item: Item<'_>, class: u32) {
        self.end_text_node();
        let wanted = self.wants(class);
        self.depth += 1;
        if !wanted {
            // A text node may have ended.
            if self.dirty {
                self.settle();
            }
            return self.look_out();
        }
        self.next_item();
        let Some(outer) = self.s.frames.last().copied() else { return };
        let is_child = outer.depth + 1 == self.depth;
        let mine = Frame {
            depth: self.depth,
            children: self.s.children.len(),
            below: self.s.below.len(),
            counters: self.s.counters.len(),
            scopes: self.s.scopes.len(),
            leaves: self.s.leaves.len(),
            candidates: self.s.candidates.len(),
        };
        let at_root = self.s.frames.len() == 1;
        self.s.frames.push(mine);
        for i in if is_child { outer.children..mine.children } else { 0..0 } {
            self.try_cursor(false, i, &item);
            if at_root && self.only_finds_elements(self.s.children[i]) {
                // There is one document element.
                self.kill_cursor(false, i);
            }
        }
        for i in 0..mine.below {
            self.try_cursor(true, i, &item);
        }
        self.check_limits();
        self.settle();
        self.fold();
        self.look_out();
    }

    /// Gives up the innermost frame if nothing was made at its element, or nothing is left of it. The document's and the
    /// document element's stay: what may come behind them is another matter.
    fn fold(&mut self) {
        let at = self.s.frames.len();
        let Some(frame) = self.s.frames.last() else { return };
        if at > 2
            && self.s.children[frame.children..].iter().all(|c| c.dead)
            && self.s.below[frame.below..].iter().all(|c| c.dead)
            && self.s.scopes.len() == frame.scopes
            && self.s.candidates.len() == frame.candidates
            && self.s.leaves.len() == frame.leaves
            && self.s.collectors.last().is_none_or(|c| c.depth < at)
        {
            let frame = *frame;
            self.s.children.truncate(frame.children);
            self.s.below.truncate(frame.below);
            self.s.counters.truncate(frame.counters);
            self.s.frames.pop();
        }
    }

    /// Finds out what is waited for now.
    fn look_out(&mut self) {
        let mut others = 0;
        let mut masks = |cursors: &[Cursor]| {
            let mut all = 0;
            for c in cursors.iter().filter(|c| !c.dead) {
                all |= c.mask;
                others |= if c.compares { 0 } else { c.mask };
            }
            all
        };
        self.wanted_anywhere = masks(&self.s.below);
        self.wanted_children = match &self.s.frames[..] {
            // The document element ends the waiting for others.
            [_] => UNKNOWN,
            [.., frame] => masks(&self.s.children[frame.children..]),
            [] => 0,
        };
        self.wanted_leaves = if self.s.frames.len() > 1 { !others } else { 0 };
        if self.s.collectors.iter().any(|c| !c.dead) {
            self.wanted_anywhere |= Interest::TEXT;
        }
    }

    /// Whether an element of a class in `wanted_leaves` with just this text is found. (If not, nothing comes of it: all who
    /// wait for it compare it, and what does not compare is as if it were not there.)
    fn finds(&self, class: u32, text: &str) -> bool {
        let children = self.s.frames.last().map_or(0, |frame| frame.children);
        self.s.below.iter().chain(&self.s.children[children..]).any(|c| {
            !c.dead
                && c.mask & class != 0
                && match &self.leaf_plan(c.leaf).kind {
                    LeafKind::Compare(op, other) => match (op, self.constant(other)) {
                        (BinaryOp::Equal, Known::String(wanted)) => **wanted == *text,
                        (op, other) => other.compare_node(*op, text),
                    },
                    _ => true,
                }
        })
    }

    /// A piece of text; consecutive pieces are one text node.
    pub fn text(&mut self, text: &str) {
        self.come_around();
        self.piece_of_text(text);
    }

    fn piece_of_text(&mut self, text: &str) {
        if self.is_decided() || text.is_empty() {
            return;
        }
        // White space around the document element is no text node.
        if self.depth == 0 {
            return;
        }
        if !self.in_text {
            self.end_text_node();
            self.in_text = true;
            if !self.wants(Interest::TEXT) {
                return;
            }
            self.next_item();
            self.offer(&Item::Text);
        }
        for i in 0..self.s.collectors.len() {
            let Collector { dead, leaf, candidate, kind: Gather::Match(met), .. } = self.s.collectors[i]
            else {
                continue;
            };
            if dead {
                continue;
            }
            let (op, wanted) = self.compared_string(leaf);
            if wanted.as_bytes()[met..].starts_with(text.as_bytes()) {
                self.s.collectors[i].kind = Gather::Match(met + text.len());
            } else {
                self.s.collectors[i].dead = true;
                self.release(leaf);
                if op == BinaryOp::NotEqual {
                    self.hit(leaf, candidate);
                }
            }
        }
        // Those at the end that nobody needs are gone.
        while self.s.collectors.last().is_some_and(|c| c.dead && matches!(c.kind, Gather::Match(_))) {
            self.s.collectors.pop();
        }
        if self.buffering > 0 {
            if self.s.text.len() + text.len() > MAX_TEXT {
                self.fail(format!("more than {MAX_TEXT} bytes of text are being compared"));
                return;
            }
            self.s.text.push_str(text);
        }
        self.settle();
        self.fold();
        self.look_out();
    }

    /// A comment.
    pub fn comment(&mut self, value: &str) {
        self.come_around();
        self.leaf_item(&Item::Comment(value), Interest::COMMENT);
    }

    /// A processing instruction.
    pub fn processing_instruction(&mut self, target: &str, value: &str) {
        self.come_around();
        self.leaf_item(&Item::Instruction(target, value), Interest::INSTRUCTION);
    }

    fn leaf_item(&mut self, item: &Item<'_>, class: u32) {
        if self.is_decided() {
            return;
        }
        self.end_text_node();
        if self.wants(class) {
            self.next_item();
            self.offer(item);
            self.settle();
        }
        self.look_out();
    }

    /// The end tag of the innermost open element.
    pub fn end_element(&mut self) {
        self.s.open.pop();
        self.end();
    }

    fn end(&mut self) {
        if self.is_decided() {
            return;
        }
        self.end_text_node();
        let ends = self.s.frames.last().is_some_and(|frame| frame.depth == self.depth);
        self.depth = self.depth.saturating_sub(1);
        if self.s.frames.len() > 1 && ends {
            self.end_frame();
        }
        if self.s.frames.len() == 1 && !self.is_decided() {
            // Behind the document element only comments and processing instructions can come.
            for i in 0..self.s.below.len() {
                if self.only_finds_elements(self.s.below[i]) {
                    self.kill_cursor(true, i);
                }
            }
        }
        self.settle();
        self.look_out();
    }

    /// The end of the document: now everything is known.
    pub fn finish(&mut self) -> Result<Value, XPathError> {
        while !self.is_decided() && !self.s.frames.is_empty() {
            self.end_frame();
        }
        match &self.decision {
            Decision::True => Ok(Value::Boolean(true)),
            Decision::False => Ok(Value::Boolean(false)),
            Decision::Value(v) => Ok(v.clone()),
            Decision::Failed(e) => Err(e.clone()),
            Decision::Undecided => Err(XPathError::new("the document ended and nothing is decided", 0..0)),
        }
    }

    // ---- events against cursors ----

    fn next_item(&mut self) {
        // Attributes are counted in the low bits.
        self.item = ((self.item >> 20) + 1) << 20;
    }

    /// A node without children of its own against all cursors that may find it.
    fn offer(&mut self, item: &Item<'_>) {
        let Some(frame) = self.s.frames.last().copied() else { return };
        let end = if frame.depth == self.depth { self.s.children.len() } else { 0 };
        for i in frame.children..end {
            self.try_cursor(false, i, item);
        }
        for i in 0..self.s.below.len() {
            self.try_cursor(true, i, item);
        }
    }

    fn cursor(&mut self, below: bool, i: usize) -> &mut Cursor {
        if below { &mut self.s.below[i] } else { &mut self.s.children[i] }
    }

    fn try_cursor(&mut self, below: bool, i: usize, item: &Item<'_>) {
        let c = *self.cursor(below, i);
        if c.dead || self.is_settled(c.leaf, c.candidate) {
            return;
        }
        let step = &self.leaf_plan(c.leaf).path[c.step as usize];
        if !step.meets(item) {
            return;
        }
        let (content, exhausted) = match step.kind {
            StepKind::ChildBelow if !step.predicates.is_empty() => (self.passes_among(step, &c, item), false),
            _ => self.passes(step, c.counters as usize, item),
        };
        if exhausted {
            self.kill_cursor(below, i);
        }
        if let Some((content, position)) = content {
            self.proceed(c.leaf, c.candidate, c.step + 1, content, position, item);
        }
    }

    /// Predicates of a step: if none is false, those still to be decided and the position for them; and whether the
    /// step can find no further node in this context.
    fn passes(
        &mut self,
        step: &'p StreamStep,
        counters: usize,
        item: &Item<'_>,
    ) -> (Option<(&'p [StreamPredicate], usize)>, bool) {
        let mut exhausted = false;
        let mut position = 1;
        for (k, predicate) in step.predicates.iter().enumerate() {
            self.s.counters[counters + k] += 1;
            position = self.s.counters[counters + k];
            let holds = match predicate {
                StreamPredicate::Position(n) => {
                    exhausted |= position >= *n;
                    position == *n
                }
                StreamPredicate::Never => {
                    exhausted = true;
                    false
                }
                StreamPredicate::Immediate(scope) => self.immediate(*scope, position, item),
                // All behind are content, too, or immediate without a position.
                StreamPredicate::Content(_) => {
                    let rest = &step.predicates[k..];
                    for later in rest {
                        if let StreamPredicate::Immediate(scope) = later
                            && !self.immediate(*scope, position, item)
                        {
                            return (None, exhausted);
                        }
                    }
                    return (Some((rest, position)), exhausted);
                }
            };
            if !holds {
                return (None, exhausted);
            }
        }
        (Some((&[], position)), exhausted)
    }

    /// The same for a step that counts among the children of each parent.
    fn passes_among(
        &mut self,
        step: &'p StreamStep,
        c: &Cursor,
        item: &Item<'_>,
    ) -> Option<(&'p [StreamPredicate], usize)> {
        let (depth, parent) = self.around;
        let task = (c.leaf, c.candidate, c.step);
        // Those that have ended. (A family further out may have ended, too: it goes when its place is taken.)
        while let Some(last) = self.s.families.last()
            && (last.depth > depth || last.depth == depth && last.parent != parent)
        {
            self.s.counts.truncate(last.counts);
            self.s.families.pop();
        }
        let here = self.s.families.iter().rev().take_while(|f| f.depth == depth).find(|f| f.task == task);
        let counts = match here {
            Some(family) => family.counts,
            None => {
                let counts = self.s.counts.len();
                self.s.families.push(Family { depth, parent, task, counts });
                self.s.counts.resize(counts + step.predicates.len(), 0);
                counts
            }
        };
        let range = counts..counts + step.predicates.len();
        let at = self.s.counters.len();
        self.s.counters.extend_from_slice(&self.s.counts[range.clone()]);
        let (passed, _) = self.passes(step, at, item);
        self.s.counts[range.clone()].copy_from_slice(&self.s.counters[at..at + range.len()]);
        self.s.counters.truncate(at);
        passed
    }

    /// A node has passed a step, up to the predicates in `pending`.
    fn proceed(
        &mut self,
        leaf: u32,
        candidate: u32,
        step: u32,
        pending: &'p [StreamPredicate],
        position: usize,
        item: &Item<'_>,
    ) {
        let scopes = pending.iter().filter_map(|p| match p {
            StreamPredicate::Content(scope) => Some(*scope),
            _ => None,
        });
        let count = scopes.clone().count();
        let mut candidate = candidate;
        if count > 0 {
            self.s.candidates.push(Candidate {
                leaf,
                parent: candidate,
                undecided: count,
                hit: false,
                dead: false,
            });
            candidate = self.s.candidates.len() as u32 - 1;
            self.s.leaves[leaf as usize].refs += 1;
            for scope in scopes {
                self.open_scope(scope, position, candidate, item);
            }
        }
        self.arrive(leaf, candidate, step, item);
    }

    /// A node is in the result of the path up to `step`: set up that step.
    fn arrive(&mut self, leaf: u32, candidate: u32, step: u32, item: &Item<'_>) {
        if self.is_settled(leaf, candidate) {
            return;
        }
        let Some(plan) = self.leaf_plan(leaf).path.get(step as usize) else {
            return self.deliver(leaf, candidate, item);
        };
        let is_parent = matches!(item, Item::Document | Item::Element { .. });
        match plan.kind {
            StepKind::Child => {
                if is_parent {
                    self.add_cursor(false, leaf, candidate, step, plan);
                }
            }
            StepKind::Descendant | StepKind::ChildBelow => {
                if is_parent {
                    self.add_cursor(true, leaf, candidate, step, plan);
                }
            }
            StepKind::DescendantOrSelf => {
                if is_parent {
                    if let Some(i) = self.add_cursor(true, leaf, candidate, step, plan) {
                        self.try_cursor(true, i, item);
                    }
                } else {
                    self.try_self(leaf, candidate, step, plan, item);
                }
            }
            StepKind::SelfItem => self.try_self(leaf, candidate, step, plan, item),
            StepKind::Attribute => {
                let Item::Element { attributes, .. } = item else { return };
                let element = self.item;
                let counters = self.s.counters.len();
                self.s.counters.resize(counters + plan.predicates.len(), 0);
                attributes.each(&mut |ns, local, value| {
                    self.item += 1;
                    let item = Item::Attribute { ns, local, value };
                    if plan.test.matches(&item)
                        && let (Some((pending, position)), _) = self.passes(plan, counters, &item)
                    {
                        self.proceed(leaf, candidate, step + 1, pending, position, &item);
                    }
                    true
                });
                self.item = element;
                self.s.counters.truncate(counters);
            }
            StepKind::Nth(wanted) => {
                let item_id = self.item;
                let nth = &mut self.s.leaves[leaf as usize].nth;
                let i = match nth.iter().position(|n| n.0 == step) {
                    Some(i) => i,
                    None => {
                        nth.push((step, u64::MAX, 0));
                        nth.len() - 1
                    }
                };
                let (_, last, count) = &mut nth[i];
                if *last == item_id || *count >= wanted {
                    return;
                }
                *last = item_id;
                *count += 1;
                if *count == wanted {
                    self.kill_cursors_before(leaf, step);
                    self.arrive(leaf, candidate, step + 1, item);
                }
            }
        }
    }

    fn try_self(&mut self, leaf: u32, candidate: u32, step: u32, plan: &'p StreamStep, item: &Item<'_>) {
        if !plan.meets(item) {
            return;
        }
        let counters = self.s.counters.len();
        self.s.counters.resize(counters + plan.predicates.len(), 0);
        let (passed, _) = self.passes(plan, counters, item);
        self.s.counters.truncate(counters);
        if let Some((pending, position)) = passed {
            self.proceed(leaf, candidate, step + 1, pending, position, item);
        }
    }

    /// Adds a cursor unless one with the same task is there.
    fn add_cursor(
        &mut self,
        below: bool,
        leaf: u32,
        candidate: u32,
        step: u32,
        plan: &StreamStep,
    ) -> Option<usize> {
        let frame = self.s.frames.last().copied().unwrap_or_default();
        let (list, frame_start) =
            if below { (&mut self.s.below, frame.below) } else { (&mut self.s.children, frame.children) };
        // Anywhere below an outer element includes below this one, unless positions are counted from each.
        let wide = below && (plan.predicates.is_empty() || plan.kind == StepKind::ChildBelow);
        let from = if wide { 0 } else { frame_start };
        let same = |c: &Cursor| c.leaf == leaf && c.candidate == candidate && c.step == step && !c.dead;
        if list[from..].iter().any(same) {
            // It meets this element, too, or has met it.
            return None;
        }
        let counters = self.s.counters.len() as u32;
        list.push(Cursor { leaf, candidate, step, counters, mask: plan.mask, compares: false, dead: false });
        let added = list.len() - 1;
        let compares = plan.predicates.is_empty() && plan.exact && self.only_compares(leaf, step);
        self.cursor(below, added).compares = compares;
        self.s.counters.resize(counters as usize + plan.predicates.len(), 0);
        self.s.leaves[leaf as usize].refs += 1;
        Some(added)
    }

    /// Whether a step is the last of its path and what it finds is compared with a value.
    fn only_compares(&self, leaf: u32, step: u32) -> bool {
        let plan = self.leaf_plan(leaf);
        step as usize + 1 == plan.path.len()
            && match &plan.kind {
                LeafKind::Compare(_, other) => !matches!(self.constant(other), Known::Boolean(_)),
                _ => false,
            }
    }

    // ---- what has been found ----

    /// A node is in the result of the whole path of a leaf.
    fn deliver(&mut self, leaf: u32, candidate: u32, item: &Item<'_>) {
        let plan = self.leaf_plan(leaf);
        let state = &mut self.s.leaves[leaf as usize];
        match &plan.kind {
            LeafKind::Exists => return self.hit(leaf, candidate),
            LeafKind::Compare(_, other) => {
                // `nodes = true()` asks for existence.
                if let Known::Boolean(_) = self.constant(other) {
                    return self.hit(leaf, candidate);
                }
            }
            LeafKind::Count => {
                if state.last != self.item {
                    state.last = self.item;
                    state.sum += 1.0;
                    self.dirty = true;
                }
                return;
            }
            LeafKind::Sum => {
                if state.last == self.item {
                    return;
                }
                state.last = self.item;
                state.summands.push_back(None);
            }
            LeafKind::First | LeafKind::FirstName(_) => {
                if state.taken {
                    return;
                }
                state.taken = true;
                self.kill_cursors_before(leaf, u32::MAX);
                if let LeafKind::FirstName(core) = plan.kind {
                    return self.set(leaf, Known::String(item_name(core, item)));
                }
            }
        }
        match *item {
            Item::Attribute { value, .. } | Item::Comment(value) | Item::Instruction(_, value) => {
                self.found(leaf, candidate, self.last_summand(leaf), value);
            }
            Item::Text | Item::Document | Item::Element { .. } => {
                let by_match = matches!(&plan.kind, LeafKind::Compare(BinaryOp::Equal | BinaryOp::NotEqual, other)
                    if matches!(self.constant(other), Known::String(_)));
                let kind = if by_match {
                    Gather::Match(0)
                } else {
                    self.buffering += 1;
                    Gather::Buffer(self.s.text.len())
                };
                self.s.leaves[leaf as usize].refs += 1;
                self.s.collectors.push(Collector {
                    leaf,
                    candidate,
                    depth: self.s.frames.len(),
                    text_node: matches!(item, Item::Text),
                    dead: false,
                    summand: self.last_summand(leaf),
                    kind,
                });
            }
        }
    }

    fn last_summand(&self, leaf: u32) -> u64 {
        let leaf = &self.s.leaves[leaf as usize];
        (leaf.summed + leaf.summands.len() as u64).wrapping_sub(1)
    }

    /// The string-value of a found node is complete.
    fn found(&mut self, leaf: u32, candidate: u32, summand: u64, value: &str) {
        match &self.leaf_plan(leaf).kind {
            LeafKind::Compare(op, other) => {
                if self.constant(other).compare_node(*op, value) {
                    self.hit(leaf, candidate);
                }
            }
            LeafKind::Sum => {
                // Added in the order in which the nodes began, as the tree adds them.
                let state = &mut self.s.leaves[leaf as usize];
                let index = summand.wrapping_sub(state.summed) as usize;
                if let Some(slot) = state.summands.get_mut(index) {
                    *slot = Some(number::parse(value));
                }
                while let Some(Some(n)) = state.summands.front() {
                    state.sum += n;
                    state.summed += 1;
                    state.summands.pop_front();
                }
            }
            _ => self.set(leaf, Known::String(value.into())),
        }
    }

    fn set(&mut self, leaf: u32, value: Known) {
        self.s.leaves[leaf as usize].value = Some(value);
        self.dirty = true;
    }

    /// A node as wanted: it counts at once, or once the predicates above it are true.
    fn hit(&mut self, leaf: u32, candidate: u32) {
        let mut candidate = candidate;
        while candidate != NONE {
            let c = &mut self.s.candidates[candidate as usize];
            if c.dead {
                return;
            }
            c.hit = true;
            if c.undecided > 0 {
                return;
            }
            let parent = c.parent;
            self.drop_candidate(candidate);
            candidate = parent;
        }
        if self.s.leaves[leaf as usize].value.is_none() {
            self.set(leaf, self.existence(leaf, true));
        }
    }

    /// The value of a leaf that asks for any node.
    fn existence(&self, leaf: u32, found: bool) -> Known {
        match &self.leaf_plan(leaf).kind {
            LeafKind::Compare(op, other) => match self.constant(other) {
                Known::Boolean(b) => Known::Boolean(Known::Boolean(found).compare(*op, &Known::Boolean(*b))),
                _ => Known::Boolean(found),
            },
            _ => Known::Boolean(found),
        }
    }

    /// The value of a leaf that nothing can change any more.
    fn final_value(&self, leaf: u32) -> Known {
        match self.leaf_plan(leaf).kind {
            LeafKind::Exists | LeafKind::Compare(..) => self.existence(leaf, false),
            LeafKind::Count | LeafKind::Sum => Known::Number(self.s.leaves[leaf as usize].sum),
            LeafKind::First | LeafKind::FirstName(_) => Known::String("".into()),
        }
    }

    /// A predicate of a candidate is decided.
    fn resolve(&mut self, candidate: u32, holds: bool) {
        let c = &mut self.s.candidates[candidate as usize];
        if c.dead {
            return;
        }
        if !holds {
            return self.drop_candidate(candidate);
        }
        c.undecided -= 1;
        if c.undecided > 0 {
            return;
        }
        let (leaf, hit) = (c.leaf, c.hit);
        if hit {
            self.hit(leaf, candidate);
        }
        self.release(leaf);
    }

    /// Forgets a candidate and everything that works for it.
    fn drop_candidate(&mut self, candidate: u32) {
        let first = candidate as usize;
        self.s.candidates[first].dead = true;
        if self.s.candidates[first].undecided > 0 {
            self.release(self.s.candidates[first].leaf);
        }
        // Candidates lie behind those they depend on.
        for i in first + 1..self.s.candidates.len() {
            let c = &self.s.candidates[i];
            if !c.dead && c.parent != NONE && self.s.candidates[c.parent as usize].dead {
                let (leaf, pending) = (c.leaf, c.undecided > 0);
                self.s.candidates[i].dead = true;
                if pending {
                    self.release(leaf);
                }
            }
        }
        let gone = |candidates: &[Candidate], c: u32| c != NONE && candidates[c as usize].dead;
        for below in [false, true] {
            let count = if below { self.s.below.len() } else { self.s.children.len() };
            for i in 0..count {
                let c = *self.cursor(below, i);
                if !c.dead && gone(&self.s.candidates, c.candidate) {
                    self.kill_cursor(below, i);
                }
            }
        }
        for i in 0..self.s.collectors.len() {
            let c = &self.s.collectors[i];
            if !c.dead && gone(&self.s.candidates, c.candidate) {
                let leaf = c.leaf;
                self.s.collectors[i].dead = true;
                self.release(leaf);
            }
        }
    }

    fn release(&mut self, leaf: u32) {
        let leaf = &mut self.s.leaves[leaf as usize];
        leaf.refs = leaf.refs.saturating_sub(1);
        self.dirty |= leaf.refs == 0;
    }

    fn kill_cursor(&mut self, below: bool, i: usize) {
        let c = self.cursor(below, i);
        if !c.dead {
            c.dead = true;
            let leaf = c.leaf;
            self.release(leaf);
        }
    }

    fn kill_cursors_before(&mut self, leaf: u32, step: u32) {
        for below in [false, true] {
            let count = if below { self.s.below.len() } else { self.s.children.len() };
            for i in 0..count {
                let c = self.cursor(below, i);
                if c.leaf == leaf && c.step < step {
                    self.kill_cursor(below, i);
                }
            }
        }
    }

    // ---- ends ----

    fn end_text_node(&mut self) {
        if !self.in_text {
            return;
        }
        self.in_text = false;
        while self.s.collectors.last().is_some_and(|c| c.text_node) {
            self.close_collector();
        }
    }

    /// Takes the innermost collector and judges what it has.
    fn close_collector(&mut self) {
        let Some(c) = self.s.collectors.pop() else { return };
        match c.kind {
            Gather::Match(met) => {
                if !c.dead {
                    let (op, wanted) = self.compared_string(c.leaf);
                    if (met == wanted.len()) == (op == BinaryOp::Equal) {
                        self.hit(c.leaf, c.candidate);
                    }
                }
            }
            Gather::Buffer(start) => {
                self.buffering -= 1;
                let text = std::mem::take(&mut self.s.text);
                if !c.dead {
                    self.found(c.leaf, c.candidate, c.summand, &text[start..]);
                }
                self.s.text = text;
                if self.buffering == 0 {
                    self.s.text.clear();
                }
            }
        }
        if !c.dead {
            self.release(c.leaf);
        }
    }

    /// The end of the innermost element, or of the document.
    fn end_frame(&mut self) {
        self.end_text_node();
        let Some(frame) = self.s.frames.last().copied() else { return };
        let depth = self.s.frames.len();
        while self.s.collectors.last().is_some_and(|c| c.depth == depth) {
            self.close_collector();
        }
        for i in frame.children..self.s.children.len() {
            self.kill_cursor(false, i);
        }
        for i in frame.below..self.s.below.len() {
            self.kill_cursor(true, i);
        }
        self.s.children.truncate(frame.children);
        self.s.below.truncate(frame.below);
        self.dirty |= self.s.scopes.len() > frame.scopes;
        self.settle();
        if self.is_decided() {
            return;
        }
        self.s.scopes.truncate(frame.scopes);
        self.s.leaves.truncate(frame.leaves);
        self.s.candidates.truncate(frame.candidates);
        self.s.counters.truncate(frame.counters);
        self.s.frames.pop();
    }

    fn check_limits(&mut self) {
        let active =
            self.s.children.len() + self.s.below.len() + self.s.collectors.len() + self.s.scopes.len();
        let summands = self.s.leaves.iter().map(|l| l.summands.len()).sum::<usize>();
        if active + summands > MAX_ACTIVE {
            self.fail("the document is nested too deeply for this expression".to_string());
        }
    }

    fn fail(&mut self, message: String) {
        self.decision = Decision::Failed(XPathError::new(message, 0..0));
    }
}
