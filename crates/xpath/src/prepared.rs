//! Comparisons of many values with many (general comparisons, and those of node-sets in XPath 1.0): the values of one side are prepared, so
//! that each of the others is looked up, not compared with all of them. What is compared with again and again is prepared once: an operation with the same value
//! throughout an evaluation, as in `//b[@n < /r/i/@n]` ([`crate::invariant`]), and a long sequence that a variable has ([`Comparands`]).

use crate::ast::BinaryOp;
use crate::atomic::{Atomic, parse_double};
use crate::error::Span;
use crate::eval::{Eval, Fault, Frame, compare_texts, spend};
use crate::joins::Joins;
use crate::number::{self, relation};
use crate::plan::Op;
use crate::sequence::operators;
use crate::value::{Type, Value};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// How values compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rules {
    /// The string values of nodes, as in XPath 1.0 (section 3.4).
    Nodes,
    /// As XPath 2.0 compares in its compatibility mode (section 3.5.2).
    Compatible,
    /// As XPath 2.0 compares.
    Typed,
}

/// The values of one side.
pub(crate) struct Prepared {
    atoms: Vec<Atomic>,
    rules: Rules,
    /// How many values were compared with them.
    asked: AtomicUsize,
    texts: OnceLock<Option<Texts>>,
    numbers: OnceLock<Option<Numbers>>,
}

/// So many values are compared with so many before tables pay.
const FEW: usize = 8;

/// Where all are untyped or texts.
struct Texts {
    all: HashSet<Arc<str>>,
    least: Arc<str>,
    greatest: Arc<str>,
}

/// Where all are numbers that a double holds, or untyped texts of numbers; in the compatibility mode, where none is a date or duration; in XPath 1.0 always.
struct Numbers {
    all: HashSet<u64>,
    /// Of those that are not NaN.
    least: f64,
    greatest: f64,
    nan: bool,
    /// One of them is untyped: it takes the type of the other side, which must not be untyped too.
    untyped: bool,
    /// None is a text.
    numeric: bool,
}

/// Equal numbers have the same bits.
fn bits(number: f64) -> u64 {
    (number + 0.0).to_bits()
}

/// A number that a comparison with a double compares as this double.
pub(crate) fn exact_double(atom: &Atomic) -> Option<f64> {
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
            BinaryOp::Less | BinaryOp::LessOrEqual => number::holds(op, text.cmp(&self.greatest)),
            _ => number::holds(op, text.cmp(&self.least)),
        }
    }
}

impl Numbers {
    fn of(atoms: &[Atomic], rules: Rules) -> Option<Numbers> {
        let (least, greatest) = (f64::NAN, f64::NAN);
        let mut numbers =
            Numbers { all: HashSet::new(), least, greatest, nan: false, untyped: false, numeric: true };
        for atom in atoms {
            numbers.numeric &= atom.is_numeric();
            let number = match (rules, atom) {
                (Rules::Nodes, atom) => atom.as_text().map_or(f64::NAN, |text| number::parse(text)),
                (Rules::Compatible, atom) if is_temporal(atom) => return None,
                (Rules::Compatible, atom) => atom.to_double(),
                (Rules::Typed, Atomic::Untyped(text)) => {
                    numbers.untyped = true;
                    parse_double(text)?
                }
                (Rules::Typed, atom) => exact_double(atom)?,
            };
            numbers.nan |= number.is_nan();
            if !number.is_nan() {
                numbers.all.insert(bits(number));
                // `min` and `max` ignore NaN.
                numbers.least = numbers.least.min(number);
                numbers.greatest = numbers.greatest.max(number);
            }
        }
        (!atoms.is_empty()).then_some(numbers)
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

/// The string value of a node, or a text.
fn text_of(atom: &Atomic) -> &str {
    atom.as_text().map_or("", |text| text)
}

fn is_ordered(op: BinaryOp) -> bool {
    !matches!(op, BinaryOp::Equal | BinaryOp::NotEqual)
}

impl Prepared {
    pub(crate) fn new(atoms: Vec<Atomic>, rules: Rules) -> Prepared {
        let (texts, numbers) = (OnceLock::new(), OnceLock::new());
        Prepared { atoms, rules, asked: AtomicUsize::new(0), texts, numbers }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.atoms.is_empty()
    }

    /// Whether `atom` compares so with any of them.
    pub(crate) fn any(&self, op: BinaryOp, atom: &Atomic, span: Span) -> Result<bool, Fault> {
        if let Some(found) = self.begin()?.then(|| self.look_up(op, atom)).transpose()?.flatten() {
            return Ok(found);
        }
        spend(self.atoms.len() >> 1)?;
        for other in &self.atoms {
            if self.holds(op, atom, other, span)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a node with this string value compares so with any of them; `untyped`: that is not of type `xs:string`.
    fn any_node(&self, op: BinaryOp, text: &str, untyped: bool, span: Span) -> Result<bool, Fault> {
        let atom = || if untyped { Atomic::Untyped(text.into()) } else { Atomic::String(text.into()) };
        if self.begin()? {
            let found = match self.rules {
                Rules::Compatible => self.look_up(op, &atom())?,
                _ => self.look_up_text(op, text, untyped)?,
            };
            if let Some(found) = found {
                return Ok(found);
            }
        }
        spend(self.atoms.len() >> 1)?;
        // Two texts are compared as they are: only what is of another type needs a value to be compared with.
        let mut value = None;
        for other in &self.atoms {
            let holds = match (self.rules, other) {
                (Rules::Nodes, other) => compare_texts(op, text, text_of(other)),
                (Rules::Typed, Atomic::Untyped(other) | Atomic::String(other)) => {
                    number::holds(op, text.cmp(other))
                }
                (Rules::Compatible, Atomic::Untyped(other) | Atomic::String(other)) if !is_ordered(op) => {
                    number::holds(op, text.cmp(other))
                }
                _ => self.holds(op, value.get_or_insert_with(atom), other, span)?,
            };
            if holds {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Counts one more value; whether it is to be looked up.
    fn begin(&self) -> Result<bool, Fault> {
        spend(1)?;
        Ok(self.atoms.len() > FEW && self.asked.fetch_add(1, Ordering::Relaxed) >= FEW)
    }

    /// Whether two values compare so (XPath 2.0 section 3.5.2).
    fn holds(&self, op: BinaryOp, a: &Atomic, b: &Atomic, span: Span) -> Result<bool, Fault> {
        match self.rules {
            Rules::Nodes => Ok(compare_texts(op, text_of(a), text_of(b))),
            Rules::Compatible
                if (is_ordered(op) || a.is_numeric() || b.is_numeric())
                    && !(is_temporal(a) && is_temporal(b)) =>
            {
                Ok(relation(op, a.to_double(), b.to_double()))
            }
            _ => operators::general_comparison(op, a, b, span),
        }
    }

    fn texts(&self) -> Result<Option<&Texts>, Fault> {
        if self.texts.get().is_none() {
            spend(self.atoms.len())?;
        }
        Ok(self.texts.get_or_init(|| Texts::of(&self.atoms)).as_ref())
    }

    fn numbers(&self) -> Result<Option<&Numbers>, Fault> {
        if self.numbers.get().is_none() {
            spend(self.atoms.len())?;
        }
        Ok(self.numbers.get_or_init(|| Numbers::of(&self.atoms, self.rules)).as_ref())
    }

    /// `None`: the tables do not tell.
    fn look_up(&self, op: BinaryOp, atom: &Atomic) -> Result<Option<bool>, Fault> {
        if self.rules == Rules::Compatible {
            let numbers = self.numbers()?;
            if is_ordered(op) || atom.is_numeric() || numbers.is_some_and(|numbers| numbers.numeric) {
                return Ok(numbers.map(|numbers| numbers.any(op, atom.to_double())));
            }
        }
        if let Some(text) = atom.as_text() {
            return self.look_up_text(op, text, matches!(atom, Atomic::Untyped(_)));
        }
        let Some(number) = exact_double(atom).filter(|_| self.rules == Rules::Typed) else { return Ok(None) };
        Ok(self.numbers()?.map(|numbers| numbers.any(op, number)))
    }

    /// The same for a text.
    fn look_up_text(&self, op: BinaryOp, text: &str, untyped: bool) -> Result<Option<bool>, Fault> {
        if self.rules == Rules::Nodes && is_ordered(op) {
            return Ok(self.numbers()?.map(|numbers| numbers.any(op, number::parse(text))));
        }
        if let Some(texts) = self.texts()? {
            return Ok(Some(texts.any(op, text)));
        }
        if self.rules != Rules::Typed || !untyped {
            return Ok(None);
        }
        let numbers = self.numbers()?.filter(|numbers| !numbers.untyped);
        Ok(numbers.and_then(|numbers| parse_double(text).map(|number| numbers.any(op, number))))
    }
}

/// Long sequences that variables had on one side of a comparison, and indexes of nodes that are chosen by one ([`crate::joins`]). A [host](crate::Host) may keep them from one evaluation to the next, as long
/// as its documents do not change, so that `xsl:if test="@id = $list"` does not go through the whole list for each element.
#[derive(Default)]
pub struct Comparands {
    sequences: Mutex<Vec<Comparand>>,
    /// Nodes by the values that they were compared by.
    pub(crate) joins: Joins,
}

struct Comparand {
    /// It stays as long as it is looked for here, so nothing else can be taken for it.
    value: Value,
    rules: Rules,
    /// Made when it comes a second time.
    prepared: Option<Arc<Prepared>>,
}

/// Most that are kept.
const MOST: usize = 8;

impl Comparands {
    /// `value` prepared by `atoms`; `None`: it has not come before.
    fn find(
        &self,
        value: &Value,
        rules: Rules,
        atoms: impl FnOnce() -> Result<Vec<Atomic>, Fault>,
    ) -> Result<Option<Arc<Prepared>>, Fault> {
        let is_same = |c: &Comparand| c.rules == rules && c.value.is_same(value);
        {
            let Ok(mut all) = self.sequences.lock() else { return Ok(None) };
            let Some(place) = all.iter().position(is_same) else {
                all.truncate(MOST - 1);
                all.insert(0, Comparand { value: value.clone(), rules, prepared: None });
                return Ok(None);
            };
            // What came last is in front.
            all[..=place].rotate_right(1);
            if let Some(prepared) = &all[0].prepared {
                return Ok(Some(Arc::clone(prepared)));
            }
        }
        let prepared = Arc::new(Prepared::new(atoms()?, rules));
        let Ok(mut all) = self.sequences.lock() else { return Ok(Some(prepared)) };
        if let Some(comparand) = all.iter_mut().find(|c| is_same(c)) {
            comparand.prepared = Some(Arc::clone(&prepared));
        }
        Ok(Some(prepared))
    }
}

impl<'a> Eval<'a> {
    /// A comparison with a side that is [evaluated once](crate::sequence::plan::Seq::Once). `None`: neither is.
    #[inline]
    pub(crate) fn compare_once(
        &self,
        op: BinaryOp,
        (a, b): (&'a Op, &'a Op),
        at: Frame,
        span: Span,
        rules: Rules,
    ) -> Result<Option<bool>, Fault> {
        match (a.once(), b.once()) {
            (None, None) => Ok(None),
            (_, Some(_)) => self.compare_kept(op, a, b, at, span, rules),
            (Some(_), None) => self.compare_kept(op.mirrored(), b, a, at, span, rules),
        }
    }

    fn compare_kept(
        &self,
        op: BinaryOp,
        other: &'a Op,
        kept: &'a Op,
        at: Frame,
        span: Span,
        rules: Rules,
    ) -> Result<Option<bool>, Fault> {
        // (With a boolean, only the truth of the other side counts there.)
        let by_truth = |op: &Op| matches!(op.ty(), Type::Boolean | Type::Any);
        if rules == Rules::Compatible && (by_truth(other) || by_truth(kept)) {
            return Ok(None);
        }
        let Some(prepared) = self.prepared_once(kept, at, rules)? else { return Ok(None) };
        self.compare_each(op, other, &prepared, at, span).map(Some)
    }

    /// A comparison with a variable that has a long sequence, which has come before. `None`: it is another comparison.
    pub(crate) fn compare_long(
        &self,
        op: BinaryOp,
        (a, b): (&'a Op, &'a Op),
        at: Frame,
        span: Span,
        rules: Rules,
    ) -> Result<Option<bool>, Fault> {
        for (other, side, op) in [(a, b, op), (b, a, op.mirrored())] {
            let Some(value) = self.long_value(side)? else { continue };
            if rules == Rules::Nodes && !self.is_nodes(other, &value)? {
                continue;
            }
            let found = self.comparands().find(&value, rules, || self.comparable(&value, rules))?;
            let Some(prepared) = found else { continue };
            return self.compare_each(op, other, &prepared, at, span).map(Some);
        }
        Ok(None)
    }

    pub(crate) fn comparands(&self) -> &Comparands {
        self.cx.host.comparands().unwrap_or(&self.state().comparands)
    }

    /// The value of a variable that has many items.
    fn long_value(&self, op: &'a Op) -> Result<Option<Value>, Fault> {
        let value = match op {
            Op::Variable(index, _, span) => match self.local(*index) {
                Some(value) if value.len() <= FEW => return Ok(None),
                Some(value) => Some(value.clone()),
                None => Some(self.variable(*index, *span)?),
            },
            Op::Sequence(s) => self.local_of_expression(&s.kind),
            _ => None,
        };
        Ok(value.filter(|value| value.len() > FEW))
    }

    /// Whether both an operand and the long value of the other are nodes only.
    fn is_nodes(&self, op: &'a Op, value: &Value) -> Result<bool, Fault> {
        if !matches!(value, Value::NodeSet(_)) {
            return Ok(false);
        }
        Ok(match op {
            Op::Variable(index, _, span) => matches!(self.variable(*index, *span)?, Value::NodeSet(_)),
            op => op.ty() == Type::NodeSet,
        })
    }

    /// The values of a side.
    pub(crate) fn comparable(&self, value: &Value, rules: Rules) -> Result<Vec<Atomic>, Fault> {
        spend(value.len())?;
        match (rules, value) {
            (Rules::Nodes, Value::NodeSet(nodes)) => {
                nodes.iter().map(|node| Ok(Atomic::Untyped(self.node_string(node)?.into()))).collect()
            }
            _ => self.atoms_of(value),
        }
    }

    /// Whether a value of `other` compares so with a prepared one: one by one, until one decides.
    pub(crate) fn compare_each(
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
        if prepared.rules == Rules::Nodes || matches!(other, Op::Path(_) | Op::Union(_)) {
            self.each(other, at, &mut |node| {
                let untyped = prepared.rules == Rules::Nodes || self.is_untyped(node)?;
                found = prepared.any_node(op, &self.node_string(node)?, untyped, span)?;
                Ok(!found)
            })?;
            return Ok(found);
        }
        let value = self.value(other, at)?;
        if let Some(atom) = value.single_atomic().filter(|atom| !atom.is_function()) {
            return prepared.any(op, &atom, span);
        }
        for atom in self.atoms_of(&value)? {
            if prepared.any(op, &atom, span)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
