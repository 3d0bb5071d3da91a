//! Comparisons (section 3.4).

use super::{Eval, Fault, Frame, truth};
use crate::ast::BinaryOp;
use crate::error::Span;
use crate::number::{self, relation};
use crate::plan::Op;
use crate::prepared::Rules;
use crate::value::{Item, Type, Value};
use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::collections::HashSet;

impl<'a> Eval<'a> {
    pub(super) fn compare(&self, op: BinaryOp, a: &'a Op, b: &'a Op, at: Frame) -> Result<bool, Fault> {
        // Numbers and equal texts are the most frequent: they do not need the room on the stack that the others do.
        match (a.ty(), b.ty()) {
            (Type::Number, Type::Number) => {
                let left = self.number_at_hand(a, at)?;
                Ok(relation(op, left, self.number_at_hand(b, at)?))
            }
            (Type::String, Type::String) if matches!(op, BinaryOp::Equal | BinaryOp::NotEqual) => {
                let left = self.string(a, at)?;
                let equal = match b {
                    Op::Text(right) => *left == **right,
                    _ => left == self.string(b, at)?,
                };
                Ok(equal == (op == BinaryOp::Equal))
            }
            types => self.compare_typed(op, (a, b), types, at),
        }
    }

    fn compare_typed(
        &self,
        op: BinaryOp,
        (a, b): (&'a Op, &'a Op),
        (ta, tb): (Type, Type),
        at: Frame,
    ) -> Result<bool, Fault> {
        match (ta, tb) {
            (Type::Any, Type::NodeSet) | (Type::NodeSet, Type::Any) | (Type::Any, _) | (_, Type::Any) => {}
            (Type::NodeSet, Type::NodeSet) => {
                if let Some(holds) = self.compare_once(op, (a, b), at, Span::default(), Rules::Nodes)? {
                    return Ok(holds);
                }
                if let Some(holds) = self.compare_joined(op, (a, b), at)? {
                    return Ok(holds);
                }
                let right = Strings::new(self.string_values(b, at)?);
                return self.compare_nodes(op, a, &right, at);
            }
            (Type::NodeSet, _) => {
                let scalar = self.scalar(b, at)?;
                return self.compare_nodes_scalar(op, a, &scalar, at);
            }
            (_, Type::NodeSet) => {
                let scalar = self.scalar(a, at)?;
                return self.compare_nodes_scalar(op.mirrored(), b, &scalar, at);
            }
            _ => {
                let left = self.scalar(a, at)?;
                return Ok(compare_scalars(op, &left, &self.scalar(b, at)?));
            }
        }
        // A type is known only at run time. Most often both operands are numbers.
        if matches!(ta, Type::Any | Type::Number) && matches!(tb, Type::Any | Type::Number) {
            if let (Some(left), Some(right)) = (self.known_number(a), self.known_number(b)) {
                return Ok(relation(op, left, right));
            }
            let (left, right) = (self.value(a, at)?, self.value(b, at)?);
            if let (Value::Number(left), Value::Number(right)) = (&left, &right) {
                return Ok(relation(op, *left, *right));
            }
            return self.compare_operands(op, self.operand_of(left)?, self.operand_of(right)?);
        }
        if let Some(holds) = self.compare_sides(op, a, b, at)? {
            return Ok(holds);
        }
        if let Some(holds) = self.compare_long(op, (a, b), at, Span::default(), Rules::Nodes)? {
            return Ok(holds);
        }
        self.compare_operands(op, self.operand(a, at)?, self.operand(b, at)?)
    }

    /// The comparison of local variables with a single text, number, boolean or node. `None`: they have other values.
    fn compare_sides(&self, op: BinaryOp, a: &'a Op, b: &'a Op, at: Frame) -> Result<Option<bool>, Fault> {
        if b.ty() == Type::NodeSet {
            let Some(right) = self.side(a, at)? else { return Ok(None) };
            return self.compare_nodes_side(op.mirrored(), b, &right, at).map(Some);
        }
        let Some(right) = self.side(b, at)? else { return Ok(None) };
        if a.ty() == Type::NodeSet {
            return self.compare_nodes_side(op, a, &right, at).map(Some);
        }
        let Some(left) = self.side(a, at)? else { return Ok(None) };
        Ok(Some(match (&left, &right) {
            (Side::Scalar(left), Side::Scalar(right)) => compare_scalars(op, left, right),
            (Side::Node(text), Side::Scalar(scalar)) => compare_node_scalar(op, text, scalar),
            (Side::Scalar(scalar), Side::Node(text)) => compare_node_scalar(op.mirrored(), text, scalar),
            (Side::Node(left), Side::Node(right)) => compare_texts(op, left, right),
        }))
    }

    /// The value of an operand whose type is not a node-set, where it is available without a list.
    #[inline]
    fn side(&self, op: &'a Op, at: Frame) -> Result<Option<Side<'a>>, Fault> {
        Ok(Some(match (op, op.ty()) {
            (_, Type::Boolean | Type::Number | Type::String) => Side::Scalar(self.scalar(op, at)?),
            (Op::Variable(index, ..), Type::Any) => match self.local(*index) {
                Some(Value::String(text)) => Side::Scalar(Scalar::String(Cow::Borrowed(text))),
                Some(Value::Number(number)) => Side::Scalar(Scalar::Number(*number)),
                Some(Value::Boolean(boolean)) => Side::Scalar(Scalar::Boolean(*boolean)),
                Some(Value::NodeSet(set)) if let [node] = set.as_slice() => {
                    Side::Node(self.node_string(*node)?)
                }
                _ => return Ok(None),
            },
            _ => return Ok(None),
        }))
    }

    fn compare_nodes_side(
        &self,
        op: BinaryOp,
        nodes: &'a Op,
        side: &Side<'a>,
        at: Frame,
    ) -> Result<bool, Fault> {
        let text = match side {
            Side::Scalar(scalar) => return self.compare_nodes_scalar(op, nodes, scalar, at),
            Side::Node(text) => text,
        };
        let mut found = false;
        self.each(nodes, at, &mut |n| {
            found = compare_texts(op, &self.node_string(n)?, text);
            Ok(!found)
        })?;
        Ok(found)
    }

    /// The number of an operand, if it is available without an evaluation.
    #[inline]
    fn known_number(&self, op: &'a Op) -> Option<f64> {
        match op {
            Op::Number(number) => Some(*number),
            Op::Variable(index, ..) => match self.local(*index) {
                Some(Value::Number(number)) => Some(*number),
                _ => None,
            },
            _ => None,
        }
    }

    fn compare_operands(&self, op: BinaryOp, left: Operand<'a>, right: Operand<'a>) -> Result<bool, Fault> {
        match (left, right) {
            (Operand::Scalar(l), Operand::Scalar(r)) => Ok(compare_scalars(op, &l, &r)),
            (Operand::Nodes(l), Operand::Scalar(r)) => self.list_scalar(op, &l, &r),
            (Operand::Scalar(l), Operand::Nodes(r)) => self.list_scalar(op.mirrored(), &r, &l),
            (Operand::Nodes(l), Operand::Nodes(r)) => {
                let strings = Strings::new(r);
                for s in &l {
                    if strings.any(op, s) {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            (Operand::Items(l), r) => self.compare_items(op, &l, r),
            (l, Operand::Items(r)) => self.compare_items(op.mirrored(), &r, l),
        }
    }

    /// Each item of a sequence against each of the other operand.
    fn compare_items(&self, op: BinaryOp, items: &[Scalar<'a>], other: Operand<'a>) -> Result<bool, Fault> {
        let others = match other {
            Operand::Scalar(Scalar::Boolean(boolean)) => {
                let exists = Scalar::Boolean(!items.is_empty());
                return Ok(compare_scalars(op, &exists, &Scalar::Boolean(boolean)));
            }
            Operand::Scalar(scalar) => vec![scalar],
            Operand::Nodes(texts) => texts.into_iter().map(Scalar::String).collect(),
            Operand::Items(others) => others,
        };
        super::spend(items.len().saturating_mul(others.len()))?;
        Ok(items.iter().any(|item| others.iter().any(|other| compare_scalars(op, item, other))))
    }

    fn list_scalar(&self, op: BinaryOp, list: &[Cow<'a, str>], scalar: &Scalar<'a>) -> Result<bool, Fault> {
        if let Scalar::Boolean(_) = scalar {
            return Ok(compare_scalars(op, &Scalar::Boolean(!list.is_empty()), scalar));
        }
        Ok(list.iter().any(|s| compare_string_scalar(op, s, scalar)))
    }

    fn operand(&self, op: &'a Op, at: Frame) -> Result<Operand<'a>, Fault> {
        if op.ty() == Type::NodeSet {
            return Ok(Operand::Nodes(self.string_values(op, at)?));
        }
        if op.ty() != Type::Any {
            return Ok(Operand::Scalar(self.scalar(op, at)?));
        }
        if let Op::Variable(index, ..) = op
            && let Some(Value::String(text)) = self.local(*index)
        {
            return Ok(Operand::Scalar(Scalar::String(Cow::Borrowed(text))));
        }
        self.operand_of(self.value(op, at)?)
    }

    fn operand_of(&self, value: Value) -> Result<Operand<'a>, Fault> {
        Ok(match value {
            Value::Boolean(b) => Operand::Scalar(Scalar::Boolean(b)),
            Value::Number(n) => Operand::Scalar(Scalar::Number(n)),
            Value::String(s) => Operand::Scalar(Scalar::String(Cow::Owned(s.to_string()))),
            Value::Empty => Operand::Nodes(Vec::new()),
            Value::Atomic(a) if a.is_numeric() => Operand::Scalar(Scalar::Number(a.to_double())),
            Value::Atomic(a) => Operand::Scalar(Scalar::String(Cow::Owned(a.to_text().into_owned()))),
            // Numbers stay numbers (XPath 2.0 in 1.0 compatibility mode, section 3.5.2).
            Value::Sequence(items)
                if items.iter().any(|item| matches!(item, Item::Atomic(a) if a.is_numeric())) =>
            {
                let scalar = |item: &Item| match item {
                    Item::Node(n) => Ok(Scalar::String(self.node_string(*n)?)),
                    Item::Atomic(a) if a.is_numeric() => Ok(Scalar::Number(a.to_double())),
                    Item::Atomic(a) => Ok(Scalar::String(Cow::Owned(a.to_text().into_owned()))),
                };
                Operand::Items(items.iter().map(scalar).collect::<Result<Vec<_>, Fault>>()?)
            }
            Value::Sequence(items) => Operand::Nodes(
                items
                    .iter()
                    .map(|item| match item {
                        Item::Node(n) => self.node_string(*n),
                        Item::Atomic(a) => Ok(Cow::Owned(a.to_text().into_owned())),
                    })
                    .collect::<Result<Vec<_>, _>>()?,
            ),
            Value::NodeSet(set) => {
                Operand::Nodes(set.iter().map(|n| self.node_string(n)).collect::<Result<Vec<_>, _>>()?)
            }
        })
    }

    fn scalar(&self, op: &'a Op, at: Frame) -> Result<Scalar<'a>, Fault> {
        Ok(match op.ty() {
            Type::Boolean => Scalar::Boolean(self.boolean(op, at)?),
            Type::Number => Scalar::Number(self.number(op, at)?),
            _ => Scalar::String(self.string(op, at)?),
        })
    }

    pub(crate) fn string_values(&self, operand: &'a Op, at: Frame) -> Result<Vec<Cow<'a, str>>, Fault> {
        let mut list = Vec::new();
        self.each(operand, at, &mut |n| {
            list.push(self.node_string(n)?);
            Ok(true)
        })?;
        Ok(list)
    }

    fn compare_nodes(&self, op: BinaryOp, a: &'a Op, right: &Strings<'a>, at: Frame) -> Result<bool, Fault> {
        if right.list.is_empty() {
            return Ok(false);
        }
        let mut found = false;
        self.each(a, at, &mut |n| {
            found = right.any(op, &self.node_string(n)?);
            Ok(!found)
        })?;
        Ok(found)
    }

    fn compare_nodes_scalar(
        &self,
        op: BinaryOp,
        a: &'a Op,
        scalar: &Scalar<'a>,
        at: Frame,
    ) -> Result<bool, Fault> {
        if let Scalar::Boolean(_) = scalar {
            return Ok(compare_scalars(op, &Scalar::Boolean(self.boolean(a, at)?), scalar));
        }
        let mut found = false;
        if let Op::Path(p) = a
            && let Some((doc, node)) = self.direct(p, at)?
        {
            self.walk(doc, node.doc, &p.steps, node.id, &mut |n| {
                found = compare_string_scalar(op, &self.text_of(doc, node.doc, n)?, scalar);
                Ok(!found)
            })?;
            return Ok(found);
        }
        self.each(a, at, &mut |n| {
            found = compare_string_scalar(op, &self.node_string(n)?, scalar);
            Ok(!found)
        })?;
        Ok(found)
    }
}

/// An operand that is one value.
enum Side<'a> {
    Scalar(Scalar<'a>),
    /// The string value of the only node.
    Node(Cow<'a, str>),
}

/// One node against a scalar.
fn compare_node_scalar(op: BinaryOp, text: &str, scalar: &Scalar<'_>) -> bool {
    match scalar {
        Scalar::Boolean(_) => compare_scalars(op, &Scalar::Boolean(true), scalar),
        _ => compare_string_scalar(op, text, scalar),
    }
}

/// One node against one node.
pub(crate) fn compare_texts(op: BinaryOp, a: &str, b: &str) -> bool {
    match op {
        BinaryOp::Equal => a == b,
        BinaryOp::NotEqual => a != b,
        _ => relation(op, number::parse(a), number::parse(b)),
    }
}

enum Operand<'a> {
    Scalar(Scalar<'a>),
    Nodes(Vec<Cow<'a, str>>),
    /// A sequence with numbers in it.
    Items(Vec<Scalar<'a>>),
}

/// A value that is not a node-set.
pub(crate) enum Scalar<'a> {
    Boolean(bool),
    Number(f64),
    String(Cow<'a, str>),
}

/// The string values of a node-set, compared with those of another. Unlike [`Prepared`](crate::prepared::Prepared) they are not kept, and not copied unless they are
/// looked up many times.
struct Strings<'a> {
    list: Vec<Cow<'a, str>>,
    asked: Cell<usize>,
    index: OnceCell<HashSet<String>>,
    /// The least and the greatest number.
    bounds: OnceCell<(f64, f64)>,
}

impl<'a> Strings<'a> {
    fn new(list: Vec<Cow<'a, str>>) -> Strings<'a> {
        Strings { list, asked: Cell::new(0), index: OnceCell::new(), bounds: OnceCell::new() }
    }

    /// Is there a string `t` here with `s op t`?
    fn any(&self, op: BinaryOp, s: &str) -> bool {
        match op {
            BinaryOp::Equal => {
                let asked = self.asked.replace(self.asked.get() + 1);
                if asked < 8 || self.list.len() <= 8 {
                    return self.list.iter().any(|t| t == s);
                }
                self.index.get_or_init(|| self.list.iter().map(|s| s.to_string()).collect()).contains(s)
            }
            BinaryOp::NotEqual => self.list.iter().any(|t| t != s),
            BinaryOp::Less | BinaryOp::LessOrEqual => relation(op, number::parse(s), self.bounds().1),
            _ => relation(op, number::parse(s), self.bounds().0),
        }
    }

    fn bounds(&self) -> (f64, f64) {
        *self.bounds.get_or_init(|| {
            // `min` and `max` ignore NaN.
            self.list.iter().fold((f64::NAN, f64::NAN), |(least, greatest), s| {
                let n = number::parse(s);
                (least.min(n), greatest.max(n))
            })
        })
    }
}

/// Comparison of two values that are not node-sets.
pub(crate) fn compare_scalars(op: BinaryOp, a: &Scalar<'_>, b: &Scalar<'_>) -> bool {
    if matches!(op, BinaryOp::Equal | BinaryOp::NotEqual) {
        let equal = match (a, b) {
            (Scalar::Boolean(_), _) | (_, Scalar::Boolean(_)) => a.boolean() == b.boolean(),
            (Scalar::String(a), Scalar::String(b)) => a == b,
            _ => a.number() == b.number(),
        };
        return equal == (op == BinaryOp::Equal);
    }
    relation(op, a.number(), b.number())
}

/// A node's string-value against a number or a string.
pub(crate) fn compare_string_scalar(op: BinaryOp, s: &str, scalar: &Scalar<'_>) -> bool {
    match (op, scalar) {
        (BinaryOp::Equal, Scalar::String(t)) => s == t,
        (BinaryOp::NotEqual, Scalar::String(t)) => s != t,
        _ => relation(op, number::parse(s), scalar.number()),
    }
}

impl Scalar<'_> {
    pub fn boolean(&self) -> bool {
        match self {
            Scalar::Boolean(b) => *b,
            Scalar::Number(n) => truth(*n),
            Scalar::String(s) => !s.is_empty(),
        }
    }

    pub fn number(&self) -> f64 {
        match self {
            Scalar::Boolean(b) => f64::from(u8::from(*b)),
            Scalar::Number(n) => *n,
            Scalar::String(s) => number::parse(s),
        }
    }
}
