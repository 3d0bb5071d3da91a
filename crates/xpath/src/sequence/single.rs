//! Operations of XPath 2.0 on single values: functions of texts and numbers, arithmetic and comparisons. They are evaluated without
//! lists and without a value on the heap for each operand.
//!
//! Precondition ([`is_single_operand`], decided when the expression is compiled): the operands are literals, variables, the context
//! item, plain paths ([`Path::plain`]), and such operations on these. At run time an operand may turn out to be something else:
//! several nodes, a date, an integer that is too large, a text that is no number. Then there is no [`Single`], and the general
//! evaluation gives the value or finds the error, also that of nested operations ([`Eval::in_general`]): these are not tried again
//! at each level.

use super::operators::{doubles, integers};
use super::plan::{Arithmetic, Seq, SeqOp};
use crate::ast::BinaryOp;
use crate::atomic::{Atomic, Decimal, parse_double};
use crate::error::Span;
use crate::eval::direct::Reached;
use crate::eval::{Eval, Fault, Frame, grown, push_part, spend};
use crate::functions as text;
use crate::number::{self, holds};
use crate::plan::{Core, Op, Path};
use crate::value::{Node, Value};
use std::borrow::Cow;
use xml::NodeKind;

/// Longer texts of variables that are not at hand are not copied.
const SHORT: usize = 64;

/// The atomized value of an operand.
pub(crate) enum Single<'a> {
    Empty,
    Boolean(bool),
    Integer(i64),
    /// Of a literal or a variable.
    Decimal(&'a Decimal),
    Double(f64),
    /// `xs:string`.
    Text(Cow<'a, str>),
    /// `xs:untypedAtomic`.
    Untyped(Cow<'a, str>),
}

/// Two texts.
type Texts<'a> = (Cow<'a, str>, Cow<'a, str>);

/// A function that can be evaluated on single values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SingleFunction {
    Position,
    Last,
    String,
    Concat,
    Substring,
    StringLength,
    NormalizeSpace,
    UpperCase,
    LowerCase,
    Translate,
    Contains,
    StartsWith,
    EndsWith,
    SubstringBefore,
    SubstringAfter,
    Number,
    Abs,
    Ceiling,
    Floor,
    Round,
}

impl SingleFunction {
    /// Whether a call with so many arguments is one: a collation is evaluated in the general way.
    fn takes(self, arguments: usize) -> bool {
        use SingleFunction as F;
        match self {
            F::Contains | F::StartsWith | F::EndsWith | F::SubstringBefore | F::SubstringAfter => {
                arguments == 2
            }
            _ => true,
        }
    }
}

/// Whether an operation can be evaluated by [`Eval::single`].
pub(crate) fn is_single(kind: &Seq) -> bool {
    match kind {
        Seq::Literal(value) => !matches!(value, Value::NodeSet(_) | Value::Sequence(_)),
        Seq::Call(entry, args) => {
            entry.single.is_some_and(|function| function.takes(args.len()))
                && args.iter().all(is_single_operand)
        }
        Seq::Arithmetic(_, a, b) => is_single_operand(a) && is_single_operand(b),
        Seq::Sign(_, a) => is_single_operand(a),
        Seq::Count(Op::Path(path)) => path.plain,
        _ => false,
    }
}

/// Whether an operand can be evaluated by [`Eval::single_of`].
pub(crate) fn is_single_operand(op: &Op) -> bool {
    match op {
        Op::Number(_) | Op::Text(_) | Op::Variable(..) => true,
        Op::Path(path) => path.plain || path.dot,
        Op::Call(Core::True | Core::False, ..) => true,
        Op::Call(Core::LocalName | Core::Name, args, _) => args.is_empty(),
        Op::Sequence(s) => s.single || matches!(s.kind, Seq::ContextItem | Seq::Local(_)),
        _ => false,
    }
}

impl<'a> Eval<'a> {
    /// The value of an operation. `None`: it is to be evaluated in the general way.
    pub(crate) fn single(&self, s: &'a SeqOp, at: Frame) -> Result<Option<Single<'a>>, Fault> {
        if !s.single || self.program.compatible || self.generally.get() {
            return Ok(None);
        }
        #[cfg(test)]
        if tests::OFF.get() {
            return Ok(None);
        }
        if let Some(n) = whole(&s.kind, at) {
            return Ok(Some(Single::Integer(n)));
        }
        match &s.kind {
            Seq::Literal(value) => self.single_value(value),
            Seq::Call(entry, args) => match entry.single {
                Some(function) => self.single_call(function, args, at, s.span),
                None => Ok(None),
            },
            Seq::Arithmetic(op, a, b) => {
                if let (Some(a), Some(b)) = (self.whole_of(a, at), self.whole_of(b, at)) {
                    return Ok(integers(*op, a, b).map(Single::Integer));
                }
                let (Some(a), Some(b)) = (self.single_of(a, at)?, self.single_of(b, at)?) else {
                    return Ok(None);
                };
                Ok(calculated(*op, &a, &b))
            }
            Seq::Sign(minus, a) => Ok(match (self.single_of(a, at)?, *minus) {
                (Some(Single::Integer(n)), true) => n.checked_neg().map(Single::Integer),
                (Some(a @ (Single::Double(_) | Single::Untyped(_))), true) => {
                    a.double().map(|n| Single::Double(-n))
                }
                (Some(a @ (Single::Empty | Single::Integer(_) | Single::Double(_))), _) => Some(a),
                _ => None,
            }),
            Seq::Count(path) => Ok(Some(Single::Integer(self.count(path, at, s.span)? as i64))),
            _ => Ok(None),
        }
    }

    /// The value of an operation whose operands are not single.
    pub(crate) fn in_general(&self, s: &'a SeqOp, at: Frame) -> Result<Value, Fault> {
        if !s.single {
            return self.general_sequence(s, at);
        }
        let outer = self.generally.replace(true);
        let value = self.general_sequence(s, at);
        self.generally.set(outer);
        value
    }

    /// The value of an operand that is an integer without any evaluation, as most in the arithmetic of stylesheets are.
    #[inline]
    fn whole_of(&self, op: &Op, at: Frame) -> Option<i64> {
        match op {
            Op::Sequence(s) => match &s.kind {
                // (`position() mod 2`; operands of operands are evaluated in the usual way.)
                Seq::Arithmetic(op, a, b) => {
                    integers(*op, self.simply_whole(a, at)?, self.simply_whole(b, at)?)
                }
                kind => whole(kind, at),
            },
            op => self.simply_whole(op, at),
        }
    }

    /// The same of an operand that is no calculation.
    #[inline]
    fn simply_whole(&self, op: &Op, at: Frame) -> Option<i64> {
        match op {
            Op::Variable(index, ..) => match self.local(*index) {
                Some(Value::Atomic(Atomic::Integer(n))) => Some(*n),
                _ => None,
            },
            Op::Sequence(s) => whole(&s.kind, at),
            _ => None,
        }
    }

    /// The atomized value of an operand. `None`: as for [`Eval::single`].
    pub(crate) fn single_of(&self, op: &'a Op, at: Frame) -> Result<Option<Single<'a>>, Fault> {
        Ok(match op {
            Op::Text(text) => Some(Single::Text(Cow::Borrowed(text))),
            Op::Number(n) => Some(Single::Double(*n)),
            Op::Path(path) if path.dot => self.single_node(at.node)?,
            Op::Path(path) if path.plain => self.single_of_path(path, at)?,
            Op::Variable(index, _, span) => match self.local(*index) {
                Some(value) => self.single_value(value)?,
                None => self.single_short(&self.variable(*index, *span)?)?,
            },
            Op::Call(Core::True, ..) => Some(Single::Boolean(true)),
            Op::Call(Core::False, ..) => Some(Single::Boolean(false)),
            Op::Call(Core::LocalName | Core::Name, ..) => Some(Single::Text(self.string(op, at)?)),
            Op::Sequence(s) => match &s.kind {
                Seq::ContextItem => self.single_node(at.node)?,
                Seq::Local(slot) => match self.bound(*slot) {
                    Some(value) => self.single_short(&value)?,
                    None => None,
                },
                _ => self.single(s, at)?,
            },
            _ => None,
        })
    }

    /// The only node of a path.
    fn single_of_path(&self, path: &'a Path, at: Frame) -> Result<Option<Single<'a>>, Fault> {
        let Some((doc, node)) = self.direct(path, at)? else { return Ok(None) };
        let near = match &*path.steps {
            [step] => self.near(doc, step, node, true)?,
            _ => None,
        };
        let only = match near {
            Some(near) => near,
            None => {
                let mut found = Reached::Nothing;
                self.walk(doc, node.doc, &path.steps, node.id, &mut |n| {
                    found = match found {
                        Reached::Nothing => Reached::Node(n),
                        _ => Reached::Several,
                    };
                    Ok(!matches!(found, Reached::Several))
                })?;
                found
            }
        };
        match only {
            Reached::Nothing => Ok(Some(Single::Empty)),
            Reached::Several => Ok(None),
            Reached::Node(n) => {
                let text = self.text_of(doc, node.doc, n)?;
                Ok(Some(match doc.kind(n) {
                    NodeKind::Comment | NodeKind::ProcessingInstruction => Single::Text(text),
                    _ => Single::Untyped(text),
                }))
            }
        }
    }

    /// The typed value of a node, or the context item that it stands for.
    fn single_node(&self, node: Node) -> Result<Option<Single<'a>>, Fault> {
        if node.as_atomic().is_some() {
            return match self.context_atom(node) {
                Some(atom) => self.single_short(&Value::from(atom)),
                None => Ok(None),
            };
        }
        let text = self.node_string(node)?;
        Ok(Some(if self.is_untyped(node)? { Single::Untyped(text) } else { Single::Text(text) }))
    }

    fn single_value(&self, value: &'a Value) -> Result<Option<Single<'a>>, Fault> {
        Ok(match value {
            Value::String(text) => Some(Single::Text(Cow::Borrowed(text))),
            Value::Atomic(Atomic::String(text)) => Some(Single::Text(Cow::Borrowed(text))),
            Value::Atomic(Atomic::Untyped(text)) => Some(Single::Untyped(Cow::Borrowed(text))),
            Value::Atomic(Atomic::Integer(n)) => Some(Single::Integer(*n)),
            Value::Atomic(Atomic::Decimal(d)) => Some(Single::Decimal(d)),
            other => self.single_short(other)?,
        })
    }

    /// Of a value that does not stay: a text is copied.
    fn single_short(&self, value: &Value) -> Result<Option<Single<'a>>, Fault> {
        let copied = |text: &str| (text.len() <= SHORT).then(|| Cow::Owned(text.to_owned()));
        Ok(match value {
            Value::Empty => Some(Single::Empty),
            Value::Boolean(boolean) => Some(Single::Boolean(*boolean)),
            Value::Number(n) => Some(Single::Double(*n)),
            Value::String(text) => copied(text).map(Single::Text),
            Value::NodeSet(nodes) => match nodes.as_slice() {
                [] => Some(Single::Empty),
                [node] => self.single_node(*node)?,
                _ => None,
            },
            Value::Atomic(atom) => match atom {
                Atomic::Boolean(boolean) => Some(Single::Boolean(*boolean)),
                Atomic::Integer(n) => Some(Single::Integer(*n)),
                Atomic::Double(n) => Some(Single::Double(*n)),
                Atomic::String(text) => copied(text).map(Single::Text),
                Atomic::Untyped(text) => copied(text).map(Single::Untyped),
                _ => None,
            },
            Value::Sequence(_) => None,
        })
    }

    /// The comparison of two single values. `None`: it is to be evaluated in the general way; otherwise see [`compared`].
    pub(crate) fn compare_singles(
        &self,
        op: BinaryOp,
        (a, b): (&'a Op, &'a Op),
        at: Frame,
        general: bool,
    ) -> Result<Option<Option<bool>>, Fault> {
        if !is_single_operand(a) || !is_single_operand(b) || self.program.compatible {
            return Ok(None);
        }
        #[cfg(test)]
        if tests::OFF.get() {
            return Ok(None);
        }
        let wholes = (self.whole_of(a, at), self.whole_of(b, at));
        if let (Some(a), Some(b)) = wholes {
            return Ok(Some(Some(holds(op, a.cmp(&b)))));
        }
        match (a, b) {
            (Op::Path(path), other) if path.plain && general => {
                return Ok(self.compare_path(op, path, other, at)?.map(Some));
            }
            (other, Op::Path(path)) if path.plain && general => {
                return Ok(self.compare_path(op.mirrored(), path, other, at)?.map(Some));
            }
            _ => {}
        }
        let value = |op: &'a Op, whole: Option<i64>| match whole {
            Some(n) => Ok(Some(Single::Integer(n))),
            None => self.single_of(op, at),
        };
        let (Some(a), Some(b)) = (value(a, wholes.0)?, value(b, wholes.1)?) else { return Ok(None) };
        if let (Single::Text(a) | Single::Untyped(a), Single::Text(_) | Single::Untyped(_)) = (&a, &b) {
            spend(1 + (a.len() >> 7))?;
        }
        Ok(compared(op, &a, &b, general))
    }

    /// Whether any node of a path compares so with a single value.
    fn compare_path(
        &self,
        op: BinaryOp,
        path: &'a Path,
        other: &'a Op,
        at: Frame,
    ) -> Result<Option<bool>, Fault> {
        let other = match self.whole_of(other, at) {
            Some(n) => Single::Integer(n),
            None => match self.single_of(other, at)? {
                Some(other) => other,
                None => return Ok(None),
            },
        };
        let wanted = match &other {
            Single::Empty => return Ok(Some(false)),
            Single::Text(text) | Single::Untyped(text) => Err(&**text),
            // (A double does not hold all of them.)
            Single::Integer(n) if n.unsigned_abs() > 1 << 53 => return Ok(None),
            other => match other.double() {
                Some(number) => Ok(number),
                None => return Ok(None),
            },
        };
        let Some((doc, node)) = self.direct(path, at)? else { return Ok(None) };
        let (mut found, mut general) = (false, false);
        self.walk(doc, node.doc, &path.steps, node.id, &mut |n| {
            let text = self.text_of(doc, node.doc, n)?;
            match wanted {
                Err(wanted) => found = texts_compare(op, &text, wanted),
                Ok(_) if matches!(doc.kind(n), NodeKind::Comment | NodeKind::ProcessingInstruction) => {
                    general = true
                }
                Ok(wanted) => match parse_double(&text) {
                    Some(number) => found = number::relation(op, number, wanted),
                    None => general = true,
                },
            }
            Ok(!found && !general)
        })?;
        Ok((!general).then_some(found))
    }

    fn single_call(
        &self,
        function: SingleFunction,
        args: &'a [Op],
        at: Frame,
        span: Span,
    ) -> Result<Option<Single<'a>>, Fault> {
        use SingleFunction as F;
        spend(1)?;
        // The texts of the first two arguments; of the context item, if there are none.
        let first = || self.single_text(args.first(), at, true);
        let second = |optional| self.single_text(args.get(1), at, optional);
        let both = || -> Result<Option<Texts<'a>>, Fault> {
            let Some(a) = first()? else { return Ok(None) };
            Ok(second(true)?.map(|b| (a, b)))
        };
        let done = match function {
            // (See `whole`: there is no context item.)
            F::Position | F::Last => None,
            F::Contains => both()?.map(|(a, b)| Single::Boolean(text::contains(&a, &b))),
            F::StartsWith => both()?.map(|(a, b)| Single::Boolean(a.starts_with(&*b))),
            F::EndsWith => both()?.map(|(a, b)| Single::Boolean(a.ends_with(&*b))),
            F::SubstringBefore => both()?.map(|(a, b)| Single::Text(text::substring_before(a, &b))),
            F::SubstringAfter => both()?.map(|(a, b)| Single::Text(text::substring_after(a, &b))),
            F::StringLength => first()?.map(|text| Single::Integer(text::length(&text) as i64)),
            F::NormalizeSpace => first()?.map(|text| Single::Text(text::normalize_space(text))),
            F::UpperCase => first()?.map(|text| Single::Text(Cow::Owned(text.to_uppercase()))),
            F::LowerCase => first()?.map(|text| Single::Text(Cow::Owned(text.to_lowercase()))),
            F::Translate => {
                let (Some(text), Some(from), Some(to)) =
                    (first()?, second(false)?, self.single_text(args.get(2), at, false)?)
                else {
                    return Ok(None);
                };
                spend(text.len() >> 3)?;
                Some(Single::Text(text::translate(text, &from, &to)))
            }
            F::Substring => {
                let (Some(text), Some(from)) = (first()?, self.single_number(args.get(1), at)?) else {
                    return Ok(None);
                };
                let length = match args.get(2) {
                    None => None,
                    some => match self.single_number(some, at)? {
                        None => return Ok(None),
                        length => length,
                    },
                };
                Some(Single::Text(text::substring(text, from, length)))
            }
            F::String => match args.first() {
                None => first()?.map(Single::Text),
                Some(arg) => self.single_of(arg, at)?.map(|value| Single::Text(value.into_text())),
            },
            F::Concat => {
                let mut out = String::with_capacity(SHORT);
                for arg in args {
                    let Some(part) = self.single_of(arg, at)? else { return Ok(None) };
                    push_part(&mut out, &part.into_text(), span)?;
                }
                return Ok(Some(Single::Text(Cow::Owned(out))));
            }
            F::Number => {
                let value = match args.first() {
                    None => self.single_node(at.node)?,
                    Some(arg) => self.single_of(arg, at)?,
                };
                value.map(|value| Single::Double(value.to_number()))
            }
            F::Abs | F::Ceiling | F::Floor | F::Round => {
                let Some(arg) = args.first() else { return Ok(None) };
                self.single_of(arg, at)?.and_then(|value| rounded(function, value))
            }
        };
        match done {
            Some(Single::Text(Cow::Owned(text))) => {
                grown(text.len(), span)?;
                Ok(Some(Single::Text(Cow::Owned(text))))
            }
            done => Ok(done),
        }
    }

    /// An argument of the type `xs:string?` (`optional`) or `xs:string`; the context item, if there is none.
    fn single_text(
        &self,
        op: Option<&'a Op>,
        at: Frame,
        optional: bool,
    ) -> Result<Option<Cow<'a, str>>, Fault> {
        let value = match op {
            None if at.node.as_atomic().is_some() => None,
            None => self.single_node(at.node)?,
            Some(Op::Text(literal)) => {
                spend(literal.len() >> 5)?;
                return Ok(Some(Cow::Borrowed(literal)));
            }
            Some(op) => self.single_of(op, at)?,
        };
        Ok(match value {
            Some(Single::Text(text) | Single::Untyped(text)) => {
                spend(text.len() >> 5)?;
                Some(text)
            }
            Some(Single::Empty) if optional => Some(Cow::Borrowed("")),
            _ => None,
        })
    }

    /// An argument of the type `xs:double`.
    fn single_number(&self, op: Option<&'a Op>, at: Frame) -> Result<Option<f64>, Fault> {
        let Some(op) = op else { return Ok(None) };
        Ok(self.single_of(op, at)?.and_then(|value| value.double()))
    }
}

impl<'a> Single<'a> {
    /// The number, of an untyped value as well. `None`: it is none.
    fn double(&self) -> Option<f64> {
        match self {
            Single::Integer(n) => Some(*n as f64),
            Single::Decimal(d) => Some(d.to_double()),
            Single::Double(n) => Some(*n),
            Single::Untyped(text) => parse_double(text),
            Single::Empty | Single::Boolean(_) | Single::Text(_) => None,
        }
    }

    /// As `number()` converts it.
    fn to_number(&self) -> f64 {
        match self {
            Single::Boolean(boolean) => f64::from(u8::from(*boolean)),
            Single::Text(text) => parse_double(text).unwrap_or(f64::NAN),
            other => other.double().unwrap_or(f64::NAN),
        }
    }

    /// As `string()` converts it.
    pub(crate) fn into_text(self) -> Cow<'a, str> {
        match self {
            Single::Empty => Cow::Borrowed(""),
            Single::Boolean(boolean) => crate::eval::boolean_text(boolean),
            Single::Integer(n) => number::integer(n),
            Single::Decimal(d) => Cow::Owned(d.to_string()),
            Single::Double(n) => Cow::Owned(Atomic::Double(n).to_text().into_owned()),
            Single::Text(text) | Single::Untyped(text) => text,
        }
    }

    /// The effective boolean value.
    pub(crate) fn truth(&self) -> bool {
        match self {
            Single::Empty => false,
            Single::Boolean(boolean) => *boolean,
            Single::Integer(n) => *n != 0,
            Single::Decimal(d) => !d.is_zero(),
            Single::Double(n) => crate::eval::truth(*n),
            Single::Text(text) | Single::Untyped(text) => !text.is_empty(),
        }
    }
}

impl From<Single<'_>> for Value {
    fn from(single: Single<'_>) -> Value {
        match single {
            Single::Empty => Value::Empty,
            Single::Boolean(boolean) => Value::Boolean(boolean),
            Single::Integer(n) => Value::from(n),
            Single::Decimal(d) => Value::Atomic(Atomic::decimal(*d)),
            Single::Double(n) => Value::Number(n),
            Single::Text(text) => Value::String(text.into()),
            Single::Untyped(text) => Value::Atomic(Atomic::Untyped(text.into())),
        }
    }
}

/// See [`Eval::whole_of`].
#[inline]
fn whole(kind: &Seq, at: Frame) -> Option<i64> {
    match kind {
        Seq::Literal(Value::Atomic(Atomic::Integer(n))) => Some(*n),
        Seq::Call(entry, _) => match entry.single {
            Some(SingleFunction::Position) if at.position > 0 => Some(at.position as i64),
            Some(SingleFunction::Last) if at.position > 0 => Some(at.size as i64),
            _ => None,
        },
        _ => None,
    }
}

/// See [`super::operators::arithmetic`].
fn calculated<'a>(op: Arithmetic, a: &Single<'_>, b: &Single<'_>) -> Option<Single<'a>> {
    use Single as S;
    match (a, b) {
        (S::Empty, _) | (_, S::Empty) => Some(S::Empty),
        (S::Integer(x), S::Integer(y)) => integers(op, *x, *y).map(S::Integer),
        (S::Double(_) | S::Untyped(_), _) | (_, S::Double(_) | S::Untyped(_))
            if op != Arithmetic::IntegerDivide =>
        {
            Some(S::Double(doubles(op, a.double()?, b.double()?)))
        }
        _ => None,
    }
}

/// `abs()`, `ceiling()`, `floor()` and `round()`.
fn rounded<'a>(function: SingleFunction, value: Single<'a>) -> Option<Single<'a>> {
    use SingleFunction as F;
    match value {
        Single::Empty => Some(Single::Empty),
        Single::Integer(n) if function == F::Abs => n.checked_abs().map(Single::Integer),
        Single::Integer(n) => Some(Single::Integer(n)),
        Single::Double(_) | Single::Untyped(_) => {
            let n = value.double()?;
            Some(Single::Double(match function {
                F::Abs => n.abs(),
                F::Ceiling => n.ceil(),
                F::Floor => n.floor(),
                _ => number::round(n),
            }))
        }
        _ => None,
    }
}

/// How two values compare in a general comparison (`general`), where untyped values take the type of the other one, or in a value
/// comparison. Outer `None`: the general evaluation is needed; inner `None`: the result is empty.
pub(crate) fn compared(op: BinaryOp, a: &Single<'_>, b: &Single<'_>, general: bool) -> Option<Option<bool>> {
    use Single as S;
    Some(Some(match (a, b) {
        (S::Empty, _) | (_, S::Empty) => return Some(general.then_some(false)),
        (S::Text(a) | S::Untyped(a), S::Text(b) | S::Untyped(b)) => texts_compare(op, a, b),
        (S::Boolean(a), S::Boolean(b)) => holds(op, a.cmp(b)),
        (S::Integer(a), S::Integer(b)) => holds(op, a.cmp(b)),
        (S::Double(_), S::Untyped(_)) | (S::Untyped(_), _) | (_, S::Untyped(_)) if !general => return None,
        (S::Double(_) | S::Untyped(_), _) | (_, S::Double(_) | S::Untyped(_)) => {
            number::relation(op, a.double()?, b.double()?)
        }
        _ => return None,
    }))
}

/// Texts compare by their code points, which is the order of the octets of UTF-8.
pub(crate) fn texts_compare(op: BinaryOp, a: &str, b: &str) -> bool {
    match op {
        BinaryOp::Equal => a == b,
        BinaryOp::NotEqual => a != b,
        _ => holds(op, a.as_bytes().cmp(b.as_bytes())),
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        CompileOptions, Context, Expression, ExtensionName, FunctionLibrary, Host, Value, VariableInfo,
        Version,
    };
    use std::cell::Cell;

    thread_local! {
        /// All operations are evaluated in the general way.
        pub static OFF: Cell<bool> = const { Cell::new(false) };
    }

    /// Variables in the context's list, and `$far`, which the host has.
    struct Variables;

    const LOCALS: [&str; 9] = ["i", "d", "s", "t", "e", "n", "m", "big", "date"];

    impl FunctionLibrary for Variables {
        fn variable(&self, _: &str, _: Option<&str>, local: &str) -> Option<VariableInfo> {
            let at = LOCALS.iter().position(|name| *name == local);
            let slot = if local == "far" { 100 } else { at? as u32 };
            Some(VariableInfo { slot, ..VariableInfo::default() })
        }
    }

    impl Host for Variables {
        fn variable_by_name(&self, _: &ExtensionName) -> Result<Option<Value>, String> {
            Ok(Some(Value::from("far  away ".repeat(20))))
        }
    }

    /// Every function and operator on every pair of operands, at every kind of node: the same value or error as in the general way.
    #[test]
    #[rustfmt::skip]
    fn as_the_general_way() {
        const TEXT: &str = "<r k='12' x=' a  b '><a>7</a><b>-1.5</b><b>x</b><!--7--><?p 7?><e/><long>abcdefgh</long><w> 12 </w></r>";
        let doc = xml::Document::parse_str(TEXT, &xml::ParseOptions::default()).expect("well-formed");
        let root = doc.document_element().expect("an element");
        let mut nodes: Vec<_> = doc.descendants(root).take(7).chain(doc.attributes(root).take(1)).collect();
        nodes.push(xml::Document::ROOT);
        let value = |source: &str| {
            let options = CompileOptions { version: Version::V31, ..CompileOptions::default() };
            let expression = Expression::compile(source, &options).expect("an expression");
            expression
                .evaluate(&Context::at(&doc, crate::Node::in_document(crate::DocId(0), root)))
                .expect("a value")
        };
        let locals: Vec<Value> = ["3", "2.5e0", "'text'", "xs:untypedAtomic('4')", "()", "a", "b", "9223372036854775807", "xs:date('2020-01-02')"]
        .map(value)
        .into();
        let operands = [
            "$i", "$d", "$s", "$t", "$e", "$n", "$m", "$big", "$date", "$far", "1", "0", "1.5", "2e0", "'7'", "''", "' a  b '", "()", "@k",
            "@x", "a", "b", "b[2]", "b[last()]", "b[. = 'x']", "nothing", "w", ".", "text()", "comment()", "../@k", "position()", "last()",
            "count(b)", "true()", "name()", "string-length()", "string-length(a)", "-a", "-$i", "+$d", "$i + 1", "a * 2", "concat(a, $i)",
            "number(w)", "xs:date('2020-01-02')", "1 to 2", "-1.5e0",
        ];
        let unary = [
            "string", "string-length", "normalize-space", "upper-case", "lower-case", "number", "abs", "ceiling", "floor", "round", "not",
            "boolean", "-", "+",
        ];
        let binary = [
            "concat", "substring", "contains", "starts-with", "ends-with", "substring-before", "substring-after", "+", "-", "*", "div",
            "mod", "idiv", "=", "!=", "<", "<=", ">", ">=", "eq", "ne", "lt", "le", "gt", "ge",
        ];
        let is_name = |operator: &str| {
            operator.len() > 2 && operator != "div" && operator != "mod" && operator != "idiv"
        };
        let mut sources: Vec<String> = operands.map(str::to_owned).into();
        for a in operands {
            sources.extend(unary.map(|f| format!("{f}({a})")));
            sources.push(format!("translate({a}, 'a7', 'b')"));
            for b in operands {
                sources.extend(binary.map(|f| match is_name(f) {
                    true => format!("{f}({a}, {b})"),
                    false => format!("({a}) {f} ({b})"),
                }));
                sources.push(format!("substring('abcdef', {a}, {b})"));
                sources.push(format!("translate('a7', {a}, {b})"));
                sources.push(format!("boolean(a[{a} = {b}])"));
            }
        }
        let (mut same, mut failed, mut fast) = (0, 0, 0);
        for source in &sources {
            let options =
                CompileOptions { version: Version::V31, library: &Variables, ..CompileOptions::default() };
            let Ok(expression) = Expression::compile(source, &options) else { continue };
            for (at, node) in nodes.iter().enumerate() {
                let mut cx =
                    Context::at(&doc, crate::Node::in_document(crate::DocId(0), *node)).with_host(&Variables);
                (cx.locals, cx.position, cx.size) = (&locals, at % 3, 5);
                let all = || {
                    let shown = |value: Result<Value, crate::XPathError>| match value {
                        Ok(value) => format!("{value:?}"),
                        Err(error) => error.code.to_string(),
                    };
                    let truth = expression.evaluate_boolean(&cx).map_err(|e| e.code);
                    let text =
                        expression.evaluate_string(&cx).map(|text| text.into_owned()).map_err(|e| e.code);
                    (
                        shown(expression.evaluate(&cx)),
                        truth,
                        text,
                        expression.evaluate_number(&cx).map(f64::to_bits).map_err(|e| e.code),
                    )
                };
                let quick = all();
                fast += usize::from(matches!(expression.evaluate_single_text(&cx), Ok(Some(_))));
                OFF.set(true);
                let general = all();
                OFF.set(false);
                assert_eq!(quick, general, "{source} at {node:?}");
                failed += usize::from(general.1.is_err());
                same += 1;
            }
        }
        assert!(same > 400_000 && fast > same / 6 && failed > same / 20, "{same}, {fast}, {failed}");
    }
}
