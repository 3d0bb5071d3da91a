//! Found nodes and their effect on leaves and candidates; the ends of elements.

use super::super::known::Known;
use super::super::{Decision, Item, LeafKind};
use super::decide::item_name;
use super::state::{Candidate, Collector, Gather};
use super::{MAX_ACTIVE, NONE, Run};
use crate::ast::BinaryOp;
use crate::error::XPathError;
use crate::number;

impl Run<'_> {
    /// A node is in the result of the whole path of a leaf.
    pub(super) fn deliver(&mut self, leaf: u32, candidate: u32, item: &Item<'_>) {
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
            LeafKind::Only => {
                if state.last == self.item {
                    return;
                }
                state.last = self.item;
                if std::mem::replace(&mut state.taken, true) {
                    return self.fail("several nodes are found".to_string());
                }
                match *item {
                    Item::Attribute { value, .. } => state.text.push_str(value),
                    Item::Element { .. } => self.collect(leaf, candidate, false, Gather::Direct),
                    _ => self.fail("a node without an element is found".to_string()),
                }
                return;
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
                self.collect(leaf, candidate, matches!(item, Item::Text), kind);
            }
        }
    }

    /// Gathers the text of the node that has just begun.
    fn collect(&mut self, leaf: u32, candidate: u32, text_node: bool, kind: Gather) {
        self.s.leaves[leaf as usize].refs += 1;
        self.s.collectors.push(Collector {
            leaf,
            candidate,
            depth: self.s.frames.len(),
            text_node,
            dead: false,
            summand: self.last_summand(leaf),
            kind,
        });
    }

    pub(super) fn last_summand(&self, leaf: u32) -> u64 {
        let leaf = &self.s.leaves[leaf as usize];
        (leaf.summed + leaf.summands.len() as u64).wrapping_sub(1)
    }

    /// The string-value of a found node is complete.
    pub(super) fn found(&mut self, leaf: u32, candidate: u32, summand: u64, value: &str) {
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

    pub(super) fn set(&mut self, leaf: u32, value: Known) {
        self.s.leaves[leaf as usize].value = Some(value);
        self.dirty = true;
    }

    /// A node passes as a result: at once, or once the predicates above it are true.
    pub(super) fn hit(&mut self, leaf: u32, candidate: u32) {
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

    /// The value of a leaf when a node was found for it.
    pub(super) fn existence(&self, leaf: u32, found: bool) -> Known {
        match &self.leaf_plan(leaf).kind {
            LeafKind::Compare(op, other) => match self.constant(other) {
                Known::Boolean(b) => Known::Boolean(Known::Boolean(found).compare(*op, &Known::Boolean(*b))),
                _ => Known::Boolean(found),
            },
            _ => Known::Boolean(found),
        }
    }

    /// The value of a leaf that cannot change any more.
    pub(super) fn final_value(&self, leaf: u32) -> Known {
        match self.leaf_plan(leaf).kind {
            LeafKind::Exists | LeafKind::Compare(..) => self.existence(leaf, false),
            LeafKind::Count | LeafKind::Sum => Known::Number(self.s.leaves[leaf as usize].sum),
            LeafKind::First | LeafKind::FirstName(_) => Known::String("".into()),
            LeafKind::Only => Known::String(self.s.leaves[leaf as usize].text.as_str().into()),
        }
    }

    /// A predicate of a candidate is decided.
    pub(super) fn resolve(&mut self, candidate: u32, holds: bool) {
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

    /// Removes a candidate and everything that belongs to it.
    pub(super) fn drop_candidate(&mut self, candidate: u32) {
        let first = candidate as usize;
        self.s.candidates[first].dead = true;
        if self.s.candidates[first].undecided > 0 {
            self.release(self.s.candidates[first].leaf);
        }
        // Candidates come after those they depend on.
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

    pub(super) fn release(&mut self, leaf: u32) {
        let leaf = &mut self.s.leaves[leaf as usize];
        leaf.refs = leaf.refs.saturating_sub(1);
        self.dirty |= leaf.refs == 0;
    }

    pub(super) fn kill_cursor(&mut self, below: bool, i: usize) {
        let c = self.cursor(below, i);
        if !c.dead {
            c.dead = true;
            let leaf = c.leaf;
            self.release(leaf);
        }
    }

    pub(super) fn kill_cursors_before(&mut self, leaf: u32, step: u32) {
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

    pub(super) fn end_text_node(&mut self) {
        if !self.in_text {
            return;
        }
        self.in_text = false;
        while self.s.collectors.last().is_some_and(|c| c.text_node) {
            self.close_collector();
        }
    }

    /// Takes the innermost collector and evaluates its text.
    pub(super) fn close_collector(&mut self) {
        let Some(c) = self.s.collectors.pop() else { return };
        match c.kind {
            Gather::Direct => {
                let text = &mut self.s.leaves[c.leaf as usize].text;
                if text.trim().len() < text.len() {
                    *text = text.trim().to_owned();
                }
                if text.is_empty() && !c.dead {
                    self.fail("an element without text of its own is found".to_string());
                }
            }
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
    pub(super) fn end_frame(&mut self) {
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

    pub(super) fn check_limits(&mut self) {
        let active =
            self.s.children.len() + self.s.below.len() + self.s.collectors.len() + self.s.scopes.len();
        let summands = self.s.leaves.iter().map(|l| l.summands.len()).sum::<usize>();
        if active + summands > MAX_ACTIVE {
            self.fail("the document is nested too deeply for this expression".to_string());
        }
    }

    pub(super) fn fail(&mut self, message: String) {
        self.decision = Decision::Failed(XPathError::new(message, 0..0));
    }
}
