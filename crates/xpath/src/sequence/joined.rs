//! Sequences of several parts, as the comma operator makes them. A long part is shared, not copied: what adds an item to a sequence at
//! each step is not quadratic.

use super::bounded;
use super::plan::Seq;
use crate::error::Span;
use crate::eval::{Eval, Fault, Frame, spend};
use crate::plan::Op;
use crate::shared::Shared;
use crate::value::{Item, Value};

/// What has been collected of a sequence.
#[derive(Default)]
pub(super) struct Collected {
    /// With a long part at its end.
    long: Option<Shared<Item>>,
    /// What is behind.
    items: Vec<Item>,
}

impl Collected {
    pub(super) fn len(&self) -> usize {
        self.long.as_ref().map_or(0, Shared::len) + self.items.len()
    }

    fn whole(&mut self) -> Option<Shared<Item>> {
        let items = std::mem::take(&mut self.items);
        match self.long.take() {
            None if items.is_empty() => None,
            None => Some(items.into()),
            Some(long) => Some(long.with(&items.into())),
        }
    }

    /// Adds the items of a value.
    pub(super) fn add(&mut self, value: Value) -> Result<(), Fault> {
        match value {
            Value::Sequence(items) if items.is_long() => {
                self.long = Some(match self.whole() {
                    None => items,
                    Some(before) => before.with(&items),
                });
            }
            value => {
                spend(value.len() >> 3)?;
                self.items.extend(value.items());
            }
        }
        Ok(())
    }

    /// The sequence.
    pub(super) fn value(mut self) -> Result<Value, Fault> {
        let Some(long) = self.long.clone() else { return Ok(Value::from_items(self.items)) };
        let whole = self.whole().unwrap_or(long.clone());
        spend(whole.added_to(&long) >> 3)?;
        Ok(Value::Sequence(whole))
    }
}

impl<'a> Eval<'a> {
    /// The values of the operands, one behind the other.
    pub(super) fn joined(&self, ops: &'a [Op], at: Frame, span: Span) -> Result<Value, Fault> {
        let mut collected = Collected::default();
        for op in ops {
            self.join(op, at, &mut collected, span)?;
        }
        collected.value()
    }

    fn join(&self, op: &'a Op, at: Frame, collected: &mut Collected, span: Span) -> Result<(), Fault> {
        match op {
            Op::Sequence(s) if matches!(s.kind, Seq::Comma(_)) => {
                let Seq::Comma(ops) = &s.kind else { return Ok(()) };
                ops.iter().try_for_each(|op| self.join(op, at, collected, s.span))?;
            }
            Op::Path(_) | Op::Union(_) => self.push_items(op, at, &mut collected.items, span)?,
            Op::Sequence(s) if matches!(s.kind, Seq::For { .. }) => {
                self.push_items(op, at, &mut collected.items, span)?;
            }
            _ => collected.add(self.value(op, at)?)?,
        }
        spend(1)?;
        bounded(collected.len(), span)
    }
}
