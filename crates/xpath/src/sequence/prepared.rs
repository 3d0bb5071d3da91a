//! General comparisons of many values with many: those of one side are prepared, so that each of the others is looked up, not compared
//! with all of them. A sequence that is the same throughout an evaluation, as `@n < /r/i/@n` in a predicate, is prepared once.

use super::operators;
use super::plan::Seq;
use crate::ast::BinaryOp;
use crate::atomic::{Atomic, parse_double};
use crate::error::Span;
use crate::eval::{Eval, Fault, Frame, spend};
use crate::number::relation;
use crate::plan::Op;
use std::cell::{Cell, OnceCell};
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

/// The values of one side.
pub(super) struct Prepared {
    atoms: Vec<Atomic>,
    /// As XPath 1.0 compares.
    compatible: bool,
    /// How many values were compared with them.
    asked: Cell<usize>,
    tables: OnceCell<Tables>,
}

struct Tables {
    /// Where all are untyped or texts.
    texts: Option<Texts>,
    /// Where all are numbers that a double holds, or untyped texts of numbers; as XPath 1.0 compares, where none is a date or duration.
    numbers: Option<Numbers>,
    /// None is a text.
    numeric: bool,
}

/// So many values are compared with so many before tables pay.
const FEW: usize = 8;

struct Texts {
    all: HashSet<Arc<str>>,
    least: Arc<str>,
    greatest: Arc<str>,
}

struct Numbers {
    all: HashSet<u64>,
    /// Of those that are not NaN.
    least: f64,
    greatest: f64,
    nan: bool,
    /// One of them is untyped: it takes the type of the other side, which must not be untyped too.
    untyped: bool,
}

/// Equal numbers have the same bits.
fn bits(number: f64) -> u64 {
    (number + 0.0).to_bits()
}

/// A number that a comparison with a double compares as this double.
pub(super) fn exact_double(atom: &Atomic) -> Option<f64> {
    match atom {
        Atomic::Double(number) => Some(*number),
        Atomic::Integer(number) if number.unsigned_abs() <= 1 << 53 => Some(*number as f64),
        _ => None,
    }
}

impl Texts {
    fn of(atoms: &[Atomic]) -> Option<Texts> {
        let all: Option<HashSet<Arc<str>>> = atoms.iter().map(|atom| atom.as_text().cloned()).collect();
        let all = all?;
        let (least, greatest) = (all.iter().min()?.clone(), all.iter().max()?.clone());
        Some(Texts { all, least, greatest })
    }

    fn any(&self, op: BinaryOp, text: &str) -> bool {
        match op {
            BinaryOp::Equal => self.all.contains(text),
            BinaryOp::NotEqual => *self.least != *text || *self.greatest != *text,
            BinaryOp::Less | BinaryOp::LessOrEqual => operators::holds(op, text.cmp(&self.greatest)),
            _ => operators::holds(op, text.cmp(&self.least)),
        }
    }
}

impl Numbers {
    fn of(atoms: &[Atomic], compatible: bool) -> Option<Numbers> {
        let (least, greatest) = (f64::NAN, f64::NAN);
        let mut numbers = Numbers { all: HashSet::new(), least, greatest, nan: false, untyped: false };
        for atom in atoms {
            let number = match atom {
                atom if compatible && is_temporal(atom) => return None,
                atom if compatible => atom.to_double(),
                Atomic::Untyped(text) => {
                    numbers.untyped = true;
                    parse_double(text)?
                }
                atom => exact_double(atom)?,
            };
            numbers.nan |= number.is_nan();
            if !number.is_nan() {
                numbers.all.insert(bits(number));
                // `min` and `max` ignore NaN.
                numbers.least = numbers.least.min(number);
                numbers.greatest = numbers.greatest.max(number);
            }
        }
        Some(numbers)
    }

    fn any(&self, op: BinaryOp, number: f64) -> bool {
        match op {
            BinaryOp::Equal => self.all.contains(&bits(number)),
            BinaryOp::NotEqual => self.nan || self.least != number || self.greatest != number,
            BinaryOp::Less | BinaryOp::LessOrEqual => relation(op, number, self.greatest),
            _ => relation(op, number, self.least),
        }
    }
}

/// XPath 1.0 has no such values: they are compared as in 2.0.
fn is_temporal(atom: &Atomic) -> bool {
    matches!(atom, Atomic::Moment(_) | Atomic::Duration(_))
}

impl Prepared {
    pub(super) fn new(atoms: Vec<Atomic>, compatible: bool) -> Prepared {
        Prepared { atoms, compatible, asked: Cell::new(0), tables: OnceCell::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.atoms.is_empty()
    }

    /// Whether `atom` compares so with any of them.
    pub(super) fn any(&self, op: BinaryOp, atom: &Atomic, span: Span) -> Result<bool, Fault> {
        spend(1)?;
        self.asked.set(self.asked.get() + 1);
        if self.atoms.len() > FEW && self.asked.get() > FEW {
            if self.tables.get().is_none() {
                spend(self.atoms.len())?;
            }
            let found = self.tables.get_or_init(|| self.tables()).any(op, atom, self.compatible);
            if let Some(found) = found {
                return Ok(found);
            }
        }
        spend(self.atoms.len() >> 1)?;
        for other in &self.atoms {
            if self.holds(op, atom, other, span)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn tables(&self) -> Tables {
        Tables {
            texts: Texts::of(&self.atoms),
            numbers: Numbers::of(&self.atoms, self.compatible).filter(|_| !self.atoms.is_empty()),
            numeric: self.atoms.iter().all(Atomic::is_numeric),
        }
    }

    /// Whether two values compare so (XPath 2.0 section 3.5.2).
    fn holds(&self, op: BinaryOp, a: &Atomic, b: &Atomic, span: Span) -> Result<bool, Fault> {
        let numbers = self.compatible && (is_ordered(op) || a.is_numeric() || b.is_numeric());
        if numbers && !(is_temporal(a) && is_temporal(b)) {
            return Ok(relation(op, a.to_double(), b.to_double()));
        }
        operators::general_comparison(op, a, b, span)
    }
}

fn is_ordered(op: BinaryOp) -> bool {
    !matches!(op, BinaryOp::Equal | BinaryOp::NotEqual)
}

impl Tables {
    /// `None`: the tables do not tell.
    fn any(&self, op: BinaryOp, atom: &Atomic, compatible: bool) -> Option<bool> {
        if compatible && (is_ordered(op) || self.numeric || atom.is_numeric()) {
            return self.numbers.as_ref().map(|numbers| numbers.any(op, atom.to_double()));
        }
        if let (Some(texts), Some(text)) = (&self.texts, atom.as_text()) {
            return Some(texts.any(op, text));
        }
        let numbers = self.numbers.as_ref().filter(|_| !compatible)?;
        let number = match atom {
            Atomic::Untyped(text) if !numbers.untyped => parse_double(text),
            atom => exact_double(atom),
        };
        number.map(|number| numbers.any(op, number))
    }
}

impl<'a> Eval<'a> {
    /// A general comparison with a side that is [evaluated once](Seq::Once). `None`: neither is.
    pub(super) fn compare_prepared(
        &self,
        op: BinaryOp,
        (a, b): (&'a Op, &'a Op),
        at: Frame,
        span: Span,
    ) -> Result<Option<bool>, Fault> {
        let number = |side: &Op| match side {
            Op::Sequence(s) => match s.kind {
                Seq::Once(number, _) => Some(number as usize),
                _ => None,
            },
            _ => None,
        };
        let (other, kept, number, op) = match (number(a), number(b)) {
            (_, Some(number)) => (a, b, number, op),
            (Some(number), None) => (b, a, number, op.mirrored()),
            (None, None) => return Ok(None),
        };
        let Some(prepared) = self.prepared(kept, number, at)? else { return Ok(None) };
        self.compare_each(op, other, &prepared, at, span).map(Some)
    }

    /// Whether a value of `other` compares so with a prepared one: one by one, until one decides.
    pub(super) fn compare_each(
        &self,
        op: BinaryOp,
        other: &'a Op,
        prepared: &Prepared,
        at: Frame,
        span: Span,
    ) -> Result<bool, Fault> {
        if prepared.is_empty() {
            return Ok(false);
        }
        let mut found = false;
        if matches!(other, Op::Path(_) | Op::Union(_)) {
            self.each(other, at, &mut |node| {
                found = prepared.any(op, &self.atom_of_node(node)?, span)?;
                Ok(!found)
            })?;
            return Ok(found);
        }
        for atom in self.atoms_of(&self.value(other, at)?)? {
            if prepared.any(op, &atom, span)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn prepared(&self, op: &'a Op, number: usize, at: Frame) -> Result<Option<Rc<Prepared>>, Fault> {
        let Some(tree) = self.tree(at)? else { return Ok(None) };
        if let Some(Some((of, prepared))) = self.state().prepared.borrow().get(number)
            && *of == tree
        {
            return Ok(Some(prepared.clone()));
        }
        let atoms = self.atoms_of(&self.value(op, at)?)?;
        let prepared = Rc::new(Prepared::new(atoms, false));
        let mut kept = self.state().prepared.borrow_mut();
        if kept.len() <= number {
            kept.resize_with(number + 1, || None);
        }
        kept[number] = Some((tree, prepared.clone()));
        Ok(Some(prepared))
    }
}
