//! Nodes against the cursors that wait for them.

use super::super::known::Known;
use super::super::{Item, LeafKind, StepKind, StreamPredicate, StreamStep};
use super::Run;
use super::state::{Candidate, Cursor, Family};

impl<'p> Run<'p> {
    pub(super) fn next_item(&mut self) {
        // Attributes are counted in the low bits.
        self.item = ((self.item >> 20) + 1) << 20;
    }

    /// A node without children of its own against all cursors that may find it.
    pub(super) fn offer(&mut self, item: &Item<'_>) {
        let Some(frame) = self.s.frames.last().copied() else { return };
        let end = if frame.depth == self.depth { self.s.children.len() } else { 0 };
        for i in frame.children..end {
            self.try_cursor(false, i, item);
        }
        for i in 0..self.s.below.len() {
            self.try_cursor(true, i, item);
        }
    }

    pub(super) fn cursor(&mut self, below: bool, i: usize) -> &mut Cursor {
        if below { &mut self.s.below[i] } else { &mut self.s.children[i] }
    }

    pub(super) fn try_cursor(&mut self, below: bool, i: usize, item: &Item<'_>) {
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

    /// The predicates of a step: if none is false, the undecided ones and the position for them; and whether the
    /// step can find no further node in this context.
    pub(super) fn passes(
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
                // All later ones are on content too, or immediate without a position.
                StreamPredicate::Content(_) => {
                    let rest = &step.predicates[k..];
                    for further in rest {
                        if let StreamPredicate::Immediate(scope) = further
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
    pub(super) fn passes_among(
        &mut self,
        step: &'p StreamStep,
        c: &Cursor,
        item: &Item<'_>,
    ) -> Option<(&'p [StreamPredicate], usize)> {
        let (depth, parent) = self.around;
        let task = (c.leaf, c.candidate, c.step);
        // The ended ones. (A family further out may have ended too: it is removed when its place is taken.)
        while let Some(last) = self.s.families.last()
            && (last.depth > depth || last.depth == depth && last.parent != parent)
        {
            self.s.counts.truncate(last.counts);
            self.s.families.pop();
        }
        let family = self.s.families.iter().rev().take_while(|f| f.depth == depth).find(|f| f.task == task);
        let counts = match family {
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
    pub(super) fn proceed(
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
    pub(super) fn arrive(&mut self, leaf: u32, candidate: u32, step: u32, item: &Item<'_>) {
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

    pub(super) fn try_self(
        &mut self,
        leaf: u32,
        candidate: u32,
        step: u32,
        plan: &'p StreamStep,
        item: &Item<'_>,
    ) {
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

    /// Adds a cursor unless there is one with the same task.
    pub(super) fn add_cursor(
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
            // It matches this element too, or has matched it.
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
    pub(super) fn only_compares(&self, leaf: u32, step: u32) -> bool {
        let plan = self.leaf_plan(leaf);
        step as usize + 1 == plan.path.len()
            && match &plan.kind {
                LeafKind::Compare(_, other) => !matches!(self.constant(other), Known::Boolean(_)),
                _ => false,
            }
    }
}
