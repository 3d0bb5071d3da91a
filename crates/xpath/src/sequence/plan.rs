//! The compiled form of operations of XPath 2.0.

use super::functions::Entry;
use super::types::SeqType;
use crate::ast::{BinaryOp, Operator};
use crate::atomic::AtomicType;
use crate::error::Span;
use crate::invariant::Once;
use crate::items::Code;
use crate::joins::Join;
use crate::plan::{Op, Predicate};
use crate::regex::Regex;
use crate::value::{Type, Value};
use std::sync::Arc;

/// An operation on sequences.
#[derive(Debug, Clone)]
pub(crate) struct SeqOp {
    pub kind: Seq,
    /// The static properties of its value.
    pub ty: Type,
    pub span: Span,
    /// It may be evaluated by [`super::single`].
    pub single: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Seq {
    Literal(Value),
    Comma(Box<[Op]>),
    /// An operation with the same value throughout an evaluation ([`crate::invariant`]).
    Once(Once, Op),
    Range(Op, Op),
    /// A variable of `for`, `some` or `every`: its slot.
    Local(u32),
    ContextItem,
    For {
        slot: u32,
        input: Op,
        body: Op,
    },
    Let {
        slot: u32,
        input: Op,
        body: Op,
    },
    /// `a ! b`.
    Map(Op, Op),
    Quantified {
        every: bool,
        slot: u32,
        input: Op,
        satisfies: Op,
    },
    If(Op, Op, Op),
    /// A value comparison.
    Value(BinaryOp, Op, Op),
    /// A general comparison.
    General(BinaryOp, Op, Op),
    /// `is`, `<<`, `>>`.
    Nodes(Operator, Op, Op),
    Arithmetic(Arithmetic, Op, Op),
    /// Unary minus (`true`) or plus.
    Sign(bool, Op),
    /// `intersect`, or `except` (`true`).
    Without(bool, Op, Op),
    InstanceOf(Op, SeqType),
    Treat(Op, SeqType),
    /// `true`: the empty sequence is allowed.
    Cast(Op, &'static AtomicType, bool),
    Castable(Op, &'static AtomicType, bool),
    /// A cast to a list of values of that type (XPath 3.0), …
    CastList(Op, &'static AtomicType, bool),
    /// … and whether it succeeds.
    CastableList(Op, &'static AtomicType, bool),
    /// `cast as xs:QName` (3.0), with the namespaces where it stands; `true`: the empty sequence is allowed.
    CastName(Op, Box<[(String, String)]>, bool),
    /// Whether that succeeds.
    CastableName(Op, Box<[(String, String)]>, bool),
    /// `a/b` with any `b`.
    Slash(Op, Op),
    Filter(Op, Box<[Predicate]>, Option<Arc<Join>>),
    /// How many items.
    Count(Op),
    /// Whether there is an item; `false`: whether there is none.
    Exists(bool, Op),
    Call(&'static Entry, Box<[Op]>),
    /// A function constructor, and the captured values.
    Function(Arc<Code>, Box<[Op]>),
    /// A dynamic function call.
    Apply(Op, Box<[Op]>),
    /// A partial application.
    Partial(Op, Box<[Option<Op>]>),
    NewMap(Box<[(Op, Op)]>),
    NewArray(Box<[Op]>),
    /// `[a, b]`: each item is a member.
    ArrayOf(Op),
    /// `a?key`; no key: all.
    Lookup(Op, Option<Op>),
    /// `matches`, `replace`, `tokenize` with a constant pattern, in place of two arguments.
    Regex(&'static Entry, Arc<Regex>, Box<[Op]>),
}

/// The arithmetic operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    IntegerDivide,
    Modulo,
}

impl Arithmetic {
    pub fn symbol(self) -> &'static str {
        match self {
            Arithmetic::Add => "+",
            Arithmetic::Subtract => "-",
            Arithmetic::Multiply => "*",
            Arithmetic::Divide => "div",
            Arithmetic::IntegerDivide => "idiv",
            Arithmetic::Modulo => "mod",
        }
    }
}

impl SeqOp {
    pub fn new(kind: Seq, ty: Type, span: Span) -> SeqOp {
        SeqOp { single: super::single::is_single(&kind), kind, ty, span }
    }

    /// The operands that have its own context.
    pub fn operands(&self) -> Vec<&Op> {
        match &self.kind {
            Seq::Literal(_) | Seq::Local(_) | Seq::ContextItem => Vec::new(),
            Seq::Comma(ops)
            | Seq::Call(_, ops)
            | Seq::Regex(_, _, ops)
            | Seq::Function(_, ops)
            | Seq::NewArray(ops) => ops.iter().collect(),
            Seq::Apply(f, ops) => std::iter::once(f).chain(ops).collect(),
            Seq::Partial(f, ops) => std::iter::once(f).chain(ops.iter().flatten()).collect(),
            Seq::NewMap(pairs) => pairs.iter().flat_map(|(key, value)| [key, value]).collect(),
            Seq::Lookup(a, key) => std::iter::once(a).chain(key).collect(),
            Seq::Range(a, b)
            | Seq::Value(_, a, b)
            | Seq::General(_, a, b)
            | Seq::Nodes(_, a, b)
            | Seq::Arithmetic(_, a, b)
            | Seq::Without(_, a, b)
            | Seq::For { input: a, body: b, .. }
            | Seq::Let { input: a, body: b, .. }
            | Seq::Quantified { input: a, satisfies: b, .. } => vec![a, b],
            Seq::If(a, b, c) => vec![a, b, c],
            Seq::Sign(_, a)
            | Seq::InstanceOf(a, _)
            | Seq::Treat(a, _)
            | Seq::Cast(a, ..)
            | Seq::CastName(a, ..)
            | Seq::Castable(a, ..)
            | Seq::CastList(a, ..)
            | Seq::CastableList(a, ..)
            | Seq::CastableName(a, ..)
            | Seq::Slash(a, _)
            | Seq::Map(a, _)
            | Seq::Filter(a, ..)
            | Seq::Count(a)
            | Seq::ArrayOf(a)
            | Seq::Once(_, a)
            | Seq::Exists(_, a) => vec![a],
        }
    }
}
