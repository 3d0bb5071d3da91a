//! Running `xsl:function`, with calls at the end of a function made after it has ended.

use super::out::Out;
use super::{Engine, Focus, Frame, Res};
use crate::model::{Function, Instruction, Op, Place};
use crate::version2::Version2;
use std::borrow::Cow;
use xpath::atomic::Atomic;
use xpath::{Item, Value};

/// The outcome of a function: a value, or a tail call of a function (its slot).
enum End {
    Value(Value),
    Call(u32, Vec<Value>, Place),
}

impl Engine<'_> {
    /// Calls a function, and its tail calls, at the depth of the function.
    pub(super) fn run_function(&self, function: &Function, args: &[Value], focus: Focus) -> Res<Value> {
        let mut function = function;
        let mut passed: Cow<'_, [Value]> = Cow::Borrowed(args);
        for _ in 0..super::templates::MAX_TAILS {
            self.tick_alone()?;
            let mut frame = Frame::default();
            frame.locals.resize(function.slots, Value::Empty);
            for ((_, slot), value) in function.parameters.iter().zip(passed.iter()) {
                frame.locals[*slot] = value.clone();
                frame.passed |= 1 << slot;
            }
            match self.function_end(&function.body, focus, &mut frame, function.place)? {
                End::Value(value) => {
                    return match &function.returns {
                        Some(declared) => self.converted(value, declared, declared.code, function.place),
                        None => Ok(value),
                    };
                }
                End::Call(slot, args, place) => {
                    let Some(next) = self.plan.functions.get(&slot) else {
                        return Err(self.fail(place, "the function has no definition".into()));
                    };
                    // The conversion to the type was made at the tail call already.
                    let alike = match (&function.returns, &next.returns) {
                        (None, _) => true,
                        (Some(outer), Some(inner)) => outer.ty == inner.ty,
                        (Some(_), None) => false,
                    };
                    if std::ptr::eq(function, next) && args.is_empty() {
                        let message = "the function is its own value: an endless recursion";
                        return Err(self.fail(function.place, message.into()));
                    }
                    if alike && next.version2 {
                        function = next;
                        passed = Cow::Owned(args);
                        continue;
                    }
                    let value = self
                        .enter_from_expression(focus, place, |focus| self.run_function(next, &args, focus))?;
                    return match &function.returns {
                        Some(declared) => self.converted(value, declared, declared.code, function.place),
                        None => Ok(value),
                    };
                }
            }
        }
        let most = super::templates::MAX_TAILS;
        let message = format!("the function goes on with itself (limit {most} times): an endless recursion?");
        Err(self.limit(function.place, message))
    }

    /// The tail of a function's body: `xsl:sequence`, or a choice of it, needs no collection.
    fn function_end(&self, body: &[Instruction], focus: Focus, frame: &mut Frame, place: Place) -> Res<End> {
        let Some((last, before)) = body.split_last() else { return Ok(End::Value(Value::Empty)) };
        let quiet = |op: &Op| match op {
            Op::Variable { .. } | Op::Param { .. } => true,
            Op::Version2(version2) => matches!(**version2, Version2::Convert { .. }),
            _ => false,
        };
        let ends = match &last.op {
            Op::If { .. } | Op::Choose { .. } => true,
            Op::Version2(version2) => matches!(**version2, Version2::Sequence { .. }),
            _ => false,
        };
        if !ends || !before.iter().all(|instruction| quiet(&instruction.op)) {
            return self.sequence_of(body, focus, frame, place).map(End::Value);
        }
        // These write nothing.
        let mut out = Out::text_only(true);
        for instruction in before {
            self.step(instruction, focus, frame, &mut out)?;
        }
        match &last.op {
            Op::If { test, body } => match self.boolean(test, focus, frame, last.place)? {
                true => self.function_end(body, focus, frame, last.place),
                false => Ok(End::Value(Value::Empty)),
            },
            Op::Choose { when, otherwise } => {
                for (test, body) in when {
                    if self.boolean(test, focus, frame, last.place)? {
                        return self.function_end(body, focus, frame, last.place);
                    }
                }
                self.function_end(otherwise, focus, frame, last.place)
            }
            Op::Version2(version2) => {
                let Version2::Sequence { select } = &**version2 else { return Ok(End::Value(Value::Empty)) };
                let ended = self.with(select, focus, frame, last.place, |expression, cx| {
                    expression.evaluate_to_call(cx, crate::expr::USER_FUNCTION..crate::expr::UNKNOWN_FUNCTION)
                })?;
                Ok(match ended {
                    Ok(value) => End::Value(value),
                    Err((slot, args)) => End::Call(slot - crate::expr::USER_FUNCTION, args, last.place),
                })
            }
            _ => Ok(End::Value(Value::Empty)),
        }
    }

    /// Maps and functions cannot be in a tree; of an array the members are written.
    pub(super) fn write_function(
        &self,
        atom: &Atomic,
        copy: bool,
        out: &mut Out<'_>,
        place: Place,
    ) -> Res<()> {
        if out.item(&Item::Atomic(atom.clone())) {
            return Ok(());
        }
        match atom {
            Atomic::Array(array) => {
                for member in array.members() {
                    self.tick(out)?;
                    self.write_items(member, copy, out, place)?;
                }
                Ok(())
            }
            other => {
                let message = format!("XTDE0450: {} cannot be written to a tree", other.describe());
                Err(self.fail(place, message))
            }
        }
    }
}
