//! Comparisons of XPath 2.0 (section 3.5): value comparisons, and general ones, which hold if they hold for any pair of items.

use super::plan::Seq;
use super::{operators, single};
use crate::ast::BinaryOp;
use crate::atomic::Atomic;
use crate::error::Span;
use crate::eval::{Eval, Fault, Frame, spend};
use crate::plan::Op;
use crate::prepared::{Prepared, Rules, exact_double};
use crate::value::Value;

impl<'a> Eval<'a> {
    pub(super) fn value_comparison(
        &self,
        op: BinaryOp,
        a: &'a Op,
        b: &'a Op,
        at: Frame,
        span: Span,
    ) -> Result<Option<bool>, Fault> {
        if let Some(compared) = self.compare_singles(op, (a, b), at, false)? {
            return Ok(compared);
        }
        let a = self.one(a, at, "a value comparison", span)?;
        let b = self.one(b, at, "a value comparison", span)?;
        match (a, b) {
            (Some(a), Some(b)) => operators::value_comparison(op, &a, &b, span).map(Some),
            _ => Ok(None),
        }
    }

    pub(super) fn general_comparison(
        &self,
        op: BinaryOp,
        a: &'a Op,
        b: &'a Op,
        at: Frame,
        span: Span,
    ) -> Result<bool, Fault> {
        let rules = if self.program.compatible { Rules::Compatible } else { Rules::Typed };
        if let Some(compared) = self.compare_once(op, (a, b), at, span, rules)? {
            return Ok(compared);
        }
        if self.program.compatible {
            let (left, right) = (self.value(a, at)?, self.value(b, at)?);
            return self.compatible_comparison(op, left, right, span);
        }
        if let Some(compared) = self.compare_singles(op, (a, b), at, true)? {
            return Ok(compared == Some(true));
        }
        if let Some(compared) = self.compare_range(op, a, b, at, span)? {
            return Ok(compared);
        }
        if let Some(compared) = self.compare_long(op, (a, b), at, span, Rules::Typed)? {
            return Ok(compared);
        }
        if let Some(compared) = self.compare_joined(op, (a, b), at)? {
            return Ok(compared);
        }
        self.compare_sequences(op, a, b, at, span)
    }

    /// A number in a range: the range is not expanded. `None`: it is another comparison.
    fn compare_range(
        &self,
        op: BinaryOp,
        a: &'a Op,
        b: &'a Op,
        at: Frame,
        span: Span,
    ) -> Result<Option<bool>, Fault> {
        if op == BinaryOp::Equal {
            let range = |o: &'a Op| match o {
                Op::Sequence(s) => match &s.kind {
                    Seq::Range(from, to) => Some((from, to)),
                    _ => None,
                },
                _ => None,
            };
            let found = range(b).map(|range| (a, range)).or_else(|| range(a).map(|range| (b, range)));
            if let Some((other, (from, to))) = found {
                let value = self.value(other, at)?;
                if let Some(atom) = value.single_atomic()
                    && atom.is_numeric()
                {
                    let (from, to) = (self.integer(from, at, span)?, self.integer(to, at, span)?);
                    let (Some(from), Some(to)) = (from, to) else { return Ok(Some(false)) };
                    let number = atom.to_double();
                    return Ok(Some(number.fract() == 0.0 && from as f64 <= number && number <= to as f64));
                }
            }
        }
        Ok(None)
    }

    /// Each value of one side against each of the other.
    fn compare_sequences(
        &self,
        op: BinaryOp,
        a: &'a Op,
        b: &'a Op,
        at: Frame,
        span: Span,
    ) -> Result<bool, Fault> {
        // Nodes on one side are compared one by one, until one decides.
        let nodes = |o: &Op| matches!(o, Op::Path(_) | Op::Union(_));
        if nodes(a) || nodes(b) {
            let (walked, other, op) = if nodes(a) { (a, b, op) } else { (b, a, op.mirrored()) };
            let other = self.value(other, at)?;
            if let Some(atom) = other.single_atomic()
                && let Some(wanted) = exact_double(&atom)
            {
                let mut found = false;
                self.each(walked, at, &mut |node| {
                    spend(1)?;
                    found = match self.untyped_double(node)? {
                        Some(number) => crate::number::relation(op, number, wanted),
                        None => operators::general_comparison(op, &self.atom_of_node(node)?, &atom, span)?,
                    };
                    Ok(!found)
                })?;
                return Ok(found);
            }
            if let Some(text) = other.single_atomic().as_ref().and_then(Atomic::as_text) {
                let mut found = false;
                self.each(walked, at, &mut |node| {
                    spend(1)?;
                    found = single::texts_compare(op, &self.node_string(node)?, text);
                    Ok(!found)
                })?;
                return Ok(found);
            }
            let others = Prepared::new(self.atoms_of(&other)?, Rules::Typed);
            return self.compare_each(op, walked, &others, at, span);
        }
        let (left, right) = (self.value(a, at)?, self.value(b, at)?);
        if let (Some(a), Some(b)) = (left.single_atomic(), right.single_atomic())
            && !a.is_function()
            && !b.is_function()
        {
            spend(1)?;
            return operators::general_comparison(op, &a, &b, span);
        }
        let (left, right) = (self.atoms_of(&left)?, self.atoms_of(&right)?);
        any_pair(op, &left, Prepared::new(right, Rules::Typed), span)
    }

    /// A general comparison in 1.0 compatibility mode (XPath 2.0 section 3.5.2).
    fn compatible_comparison(
        &self,
        op: BinaryOp,
        left: Value,
        right: Value,
        span: Span,
    ) -> Result<bool, Fault> {
        let boolean = |value: &Value| match value {
            Value::Boolean(truth) => Some(*truth),
            Value::Atomic(Atomic::Boolean(truth)) => Some(*truth),
            _ => None,
        };
        let (a, b) = match (boolean(&left), boolean(&right)) {
            (None, None) => (self.atoms_of(&left)?, self.atoms_of(&right)?),
            (a, b) => {
                let truth = |boolean: Option<bool>, value: &Value| match boolean {
                    Some(truth) => Ok(truth),
                    None => self.truth_of(value, span),
                };
                (vec![Atomic::Boolean(truth(a, &left)?)], vec![Atomic::Boolean(truth(b, &right)?)])
            }
        };
        any_pair(op, &a, Prepared::new(b, Rules::Compatible), span)
    }
}

/// Whether any value compares so with any other.
fn any_pair(op: BinaryOp, left: &[Atomic], right: Prepared, span: Span) -> Result<bool, Fault> {
    for atom in left {
        if right.any(op, atom, span)? {
            return Ok(true);
        }
    }
    Ok(false)
}
