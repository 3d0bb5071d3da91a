//! Scopes are opened, evaluated in three-valued logic, and decided.

use super::super::known::Known;
use super::super::{Decision, Item, ItemTest, Leaf, LeafKind, ScopePlan, StepKind, StreamOp, StreamStep};
use super::state::{Cursor, LeafState, ScopeState};
use super::{NONE, Run};
use crate::ast::BinaryOp;
use crate::number::{self, relation};
use crate::plan::Core;
use crate::value::Value;
use std::collections::VecDeque;
use std::sync::Arc;

impl<'p> Run<'p> {
    pub(super) fn open_scope(&mut self, plan: usize, position: usize, candidate: u32, item: &Item<'_>) {
        let scope = self.s.scopes.len() as u32;
        let first_leaf = self.s.leaves.len();
        self.s.scopes.push(ScopeState { plan, first_leaf, position, candidate, decided: false });
        let count = self.plan.scopes[plan].leaves.len();
        for index in 0..count {
            self.s.leaves.push(LeafState {
                scope,
                plan: (plan as u32, index as u32),
                refs: 0,
                value: None,
                sum: 0.0,
                taken: false,
                text: String::new(),
                last: u64::MAX,
                nth: Vec::new(),
                summands: VecDeque::new(),
                summed: 0,
            });
        }
        self.dirty = true;
        for leaf in first_leaf..first_leaf + count {
            self.arrive(leaf as u32, NONE, 0, item);
        }
    }

    /// Decides scopes from the innermost outwards, until nothing changes.
    pub(super) fn settle(&mut self) {
        while self.dirty && !self.is_decided() {
            self.dirty = false;
            for s in (0..self.s.scopes.len()).rev() {
                let ScopeState { plan, first_leaf, position, candidate, decided } = self.s.scopes[s];
                if decided {
                    continue;
                }
                let plan = &self.plan.scopes[plan];
                for leaf in first_leaf..first_leaf + plan.leaves.len() {
                    if self.s.leaves[leaf].refs == 0 && self.s.leaves[leaf].value.is_none() {
                        self.s.leaves[leaf].value = Some(self.final_value(leaf as u32));
                    }
                }
                let Some(value) = self.eval(&plan.op, position, plan, &Source::Leaves(first_leaf)) else {
                    continue;
                };
                if candidate != NONE {
                    self.s.scopes[s].decided = true;
                    self.resolve(candidate, value.boolean());
                    continue;
                }
                let value = match plan.op {
                    StreamOp::Constant(i) => self.values[i].clone(),
                    _ => value.to_value(),
                };
                self.decision = match value {
                    Value::Boolean(true) => Decision::True,
                    Value::Boolean(false) => Decision::False,
                    other => Decision::Value(other),
                };
                return;
            }
        }
    }

    fn eval(
        &mut self,
        op: &'p StreamOp,
        position: usize,
        scope: &'p ScopePlan,
        from: &Source<'_>,
    ) -> Option<Known> {
        Some(match op {
            StreamOp::Literal(k) => k.clone(),
            StreamOp::Constant(i) => self.comparable[*i].clone(),
            StreamOp::Position => Known::Number(position as f64),
            StreamOp::PositionOrTruth(i) => match &self.comparable[*i] {
                Known::Number(n) => Known::Boolean(*n == position as f64),
                other => Known::Boolean(other.boolean()),
            },
            StreamOp::Leaf(i) => match from {
                Source::Leaves(first) => self.s.leaves[first + i].value.clone()?,
                Source::Item(item) => self.immediate_leaf(&scope.leaves[*i], item),
            },
            StreamOp::Or(items) | StreamOp::And(items) => {
                let decisive = matches!(op, StreamOp::Or(_));
                let mut all_known = true;
                for item in items {
                    match self.eval(item, position, scope, from) {
                        Some(k) if k.boolean() == decisive => return Some(Known::Boolean(decisive)),
                        Some(_) => {}
                        None => all_known = false,
                    }
                }
                if !all_known {
                    return None;
                }
                Known::Boolean(!decisive)
            }
            StreamOp::Compare(op, both) => {
                let (a, b) =
                    (self.eval(&both.0, position, scope, from), self.eval(&both.1, position, scope, from));
                match (&a, &b) {
                    (Some(a), Some(b)) => Known::Boolean(a.compare(*op, b)),
                    (None, Some(b)) => Known::Boolean(self.count_decides(&both.0, *op, b, scope, from)?),
                    (Some(a), None) => {
                        Known::Boolean(self.count_decides(&both.1, op.mirrored(), a, scope, from)?)
                    }
                    (None, None) => return None,
                }
            }
            StreamOp::Arithmetic(op, both) => {
                let a = self.eval(&both.0, position, scope, from)?;
                a.arithmetic(*op, &self.eval(&both.1, position, scope, from)?)
            }
            StreamOp::Negate(a) => Known::Number(-self.eval(a, position, scope, from)?.number()),
            StreamOp::Call(core, args) => {
                let mut values = Vec::with_capacity(args.len());
                for a in args {
                    values.push(self.eval(a, position, scope, from)?);
                }
                Known::call(*core, &values)
            }
        })
    }

    /// A count only grows: `count(x) > 2` is true at the third.
    fn count_decides(
        &self,
        op: &StreamOp,
        relation_op: BinaryOp,
        other: &Known,
        scope: &ScopePlan,
        from: &Source<'_>,
    ) -> Option<bool> {
        let (StreamOp::Leaf(i), Source::Leaves(first)) = (op, from) else { return None };
        if !matches!(scope.leaves[*i].kind, LeafKind::Count)
            || matches!(other, Known::Boolean(_) | Known::Strings(_))
        {
            return None;
        }
        let (so_far, limit) = (self.s.leaves[first + i].sum, other.number());
        match relation_op {
            BinaryOp::Greater | BinaryOp::GreaterOrEqual => {
                relation(relation_op, so_far, limit).then_some(true)
            }
            BinaryOp::Less | BinaryOp::LessOrEqual => {
                (!relation(relation_op, so_far, limit)).then_some(false)
            }
            BinaryOp::Equal => (so_far > limit).then_some(false),
            _ => (so_far > limit).then_some(true),
        }
    }

    /// A scope that the item alone decides.
    pub(super) fn immediate(&mut self, scope: usize, position: usize, item: &Item<'_>) -> bool {
        let plan: &'p ScopePlan = &self.plan.scopes[scope];
        debug_assert!(plan.immediate);
        self.eval(&plan.op, position, plan, &Source::Item(item)).is_some_and(|k| k.boolean())
    }

    fn immediate_leaf(&mut self, leaf: &'p Leaf, item: &Item<'_>) -> Known {
        let base = self.s.counters.len();
        let mut steps = leaf.path.iter().peekable();
        let mut matches_self = true;
        while let Some(step) = steps.next_if(|s| s.kind == StepKind::SelfItem) {
            self.s.counters.resize(base + step.predicates.len(), 0);
            matches_self = matches_self && step.meets(item) && self.passes(step, base, item).0.is_some();
            self.s.counters.truncate(base);
        }
        let mut sum = 0.0;
        let mut first: Option<Known> = None;
        let mut any = false;
        let mut see = |run: &Self, item: &Item<'_>| {
            let value = match item {
                Item::Attribute { value, .. } | Item::Comment(value) | Item::Instruction(_, value) => value,
                _ => "",
            };
            match &leaf.kind {
                LeafKind::Exists => any = true,
                LeafKind::Compare(op, other) => match run.constant(other) {
                    Known::Boolean(_) => any = true,
                    other => any |= other.compare_node(*op, value),
                },
                LeafKind::Count => sum += 1.0,
                LeafKind::Sum => sum += number::parse(value),
                LeafKind::First if first.is_none() => first = Some(Known::String(value.into())),
                LeafKind::FirstName(core) if first.is_none() => {
                    first = Some(Known::String(item_name(*core, item)));
                }
                _ => {}
            }
        };
        match (matches_self, steps.next(), item) {
            (true, None, _) => see(self, item),
            (true, Some(step), Item::Element { attributes, .. }) => {
                self.s.counters.resize(base + step.predicates.len(), 0);
                attributes.each(&mut |ns, local, value| {
                    let item = Item::Attribute { ns, local, value };
                    if step.test.matches(&item) && self.passes(step, base, &item).0.is_some() {
                        see(self, &item);
                    }
                    true
                });
                self.s.counters.truncate(base);
            }
            _ => {}
        }
        match &leaf.kind {
            LeafKind::Exists => Known::Boolean(any),
            LeafKind::Compare(op, other) => match self.constant(other) {
                b @ Known::Boolean(_) => Known::Boolean(Known::Boolean(any).compare(*op, b)),
                _ => Known::Boolean(any),
            },
            LeafKind::Count | LeafKind::Sum => Known::Number(sum),
            LeafKind::First | LeafKind::Only | LeafKind::FirstName(_) => {
                first.unwrap_or_else(|| Known::String("".into()))
            }
        }
    }

    // ---- the plan behind the state ----

    #[inline]
    pub(super) fn leaf_plan(&self, leaf: u32) -> &'p Leaf {
        let (scope, index) = self.s.leaves[leaf as usize].plan;
        &self.plan.scopes[scope as usize].leaves[index as usize]
    }

    /// The value that a leaf compares with: it is a constant by construction.
    pub(super) fn constant<'r>(&'r self, op: &'r StreamOp) -> &'r Known {
        match op {
            StreamOp::Literal(k) => k,
            StreamOp::Constant(i) => &self.comparable[*i],
            _ => &Known::Boolean(false),
        }
    }

    /// Operator and string of a leaf whose collectors match without a buffer.
    pub(super) fn compared_string(&self, leaf: u32) -> (BinaryOp, &str) {
        if let LeafKind::Compare(op, other) = &self.leaf_plan(leaf).kind
            && let Known::String(s) = self.constant(other)
        {
            return (*op, s);
        }
        (BinaryOp::Equal, "")
    }

    /// Results for this leaf or candidate have no effect any more.
    pub(super) fn is_settled(&self, leaf: u32, candidate: u32) -> bool {
        let state = &self.s.leaves[leaf as usize];
        state.value.is_some()
            || self.s.scopes[state.scope as usize].decided
            || candidate != NONE && self.s.candidates[candidate as usize].dead
    }

    /// Only an element can advance this cursor.
    pub(super) fn only_finds_elements(&self, c: Cursor) -> bool {
        let path = &self.leaf_plan(c.leaf).path;
        let needs_parent = |s: &StreamStep| {
            matches!(
                s.kind,
                StepKind::Child | StepKind::ChildBelow | StepKind::Descendant | StepKind::Attribute
            )
        };
        matches!(path[c.step as usize].test, ItemTest::Any | ItemTest::Namespace(_) | ItemTest::Name(..))
            || path.get(c.step as usize + 1).is_some_and(needs_parent)
    }
}

/// The source of the values of leaves.
enum Source<'i> {
    /// The states from this index.
    Leaves(usize),
    /// The item itself, now.
    Item(&'i Item<'i>),
}

pub(super) fn item_name(core: Core, item: &Item<'_>) -> Arc<str> {
    match (core, item) {
        (Core::LocalName, Item::Element { local, .. } | Item::Attribute { local, .. }) => (*local).into(),
        (_, Item::Element { ns, .. } | Item::Attribute { ns, .. }) => (*ns).into(),
        (Core::LocalName, Item::Instruction(target, _)) => (*target).into(),
        _ => "".into(),
    }
}
