//! The comma operator. A long operand is shared, not copied: what adds an item to a sequence at each step is not quadratic.

use super::bounded;
use super::plan::Seq;
use crate::error::Span;
use crate::eval::{Eval, Fault, Frame, spend};
use crate::plan::Op;
use crate::shared::Shared;
use crate::value::{Item, Value};

/// What has been collected of a sequence.
#[derive(Default)]
struct Collected {
    /// With a long operand at its end.
    long: Option<Shared<Item>>,
    /// What is behind.
    items: Vec<Item>,
}

impl Collected {
    fn len(&self) -> usize {
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
}

impl<'a> Eval<'a> {
    /// The values of the operands, one behind the other.
    pub(super) fn joined(&self, ops: &'a [Op], at: Frame, span: Span) -> Result<Value, Fault> {
        let mut collected = Collected::default();
        for op in ops {
            self.join(op, at, &mut collected, span)?;
        }
        match &collected.long {
            None => Ok(Value::from_items(collected.items)),
            Some(long) => {
                let long = long.clone();
                let whole = collected.whole().unwrap_or(long.clone());
                spend(whole.added_to(&long) >> 3)?;
                Ok(Value::Sequence(whole))
            }
        }
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
            _ => match self.value(op, at)? {
                Value::Sequence(items) if items.is_long() => {
                    collected.long = Some(match collected.whole() {
                        None => items,
                        Some(before) => before.with(&items),
                    });
                }
                value => {
                    spend(value.len() >> 3)?;
                    collected.items.extend(value.items());
                }
            },
        }
        spend(1)?;
        bounded(collected.len(), span)
    }
}
