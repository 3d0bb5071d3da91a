//! The compiled form of an expression: names resolved to numbers, types known, paths analysed.

use crate::ast::{Axis, BinaryOp};
use crate::error::Span;
use crate::invariant::Once;
use crate::joins::Join;
use crate::options::Results;
use crate::sequence::plan::{Seq, SeqOp};
use crate::value::Type;
use std::sync::Arc;
use xml::NodeKind;

/// An operation. All kinds of the language, with their static types in [`Op::ty`].
#[derive(Debug, Clone)]
pub(crate) enum Op {
    Number(f64),
    Text(Arc<str>),
    Or(Box<[Op]>),
    And(Box<[Op]>),
    /// Comparison; `op` is one of the six comparison operators.
    Compare(BinaryOp, Box<(Op, Op)>),
    Arithmetic(BinaryOp, Box<(Op, Op)>),
    Negate(Box<Op>),
    Union(Box<[Op]>),
    Path(Box<Path>),
    Call(Core, Box<[Op]>, Span),
    /// Index into [`Program::variables`].
    Variable(u32, Type, Span),
    /// Index into [`Program::functions`].
    Extension(u32, Box<[Op]>, Type, Span, Results),
    Current(Span),
    /// An operation of XPath 2.0.
    Sequence(Box<SeqOp>),
}

impl Op {
    /// Where it is evaluated once.
    #[inline]
    pub fn once(&self) -> Option<(Once, &Op)> {
        match self {
            Op::Sequence(s) => match &s.kind {
                Seq::Once(once, op) => Some((*once, op)),
                _ => None,
            },
            _ => None,
        }
    }

    pub fn ty(&self) -> Type {
        match self {
            Op::Number(_) | Op::Arithmetic(..) | Op::Negate(_) => Type::Number,
            Op::Text(_) => Type::String,
            Op::Or(_) | Op::And(_) | Op::Compare(..) => Type::Boolean,
            Op::Union(_) | Op::Path(_) | Op::Current(_) => Type::NodeSet,
            Op::Call(core, ..) => core.returns(),
            Op::Variable(_, ty, _) | Op::Extension(_, _, ty, ..) => *ty,
            Op::Sequence(s) => s.ty,
        }
    }
}

/// A location path, or a filtered expression, possibly with steps.
#[derive(Debug, Clone)]
pub(crate) struct Path {
    pub start: From,
    /// Predicates on the start as a whole, in document order: `(…)[1]`.
    pub filter: Box<[Predicate]>,
    /// The first of them is a join.
    pub filter_join: Option<Arc<Join>>,
    pub steps: Box<[Step]>,
    /// What is known when the path starts from one node.
    pub from_one: Shape,
    /// What is known when it starts from several.
    pub from_many: Shape,
    /// From the root of a document it leads to the same nodes throughout an evaluation.
    pub invariant: bool,
    /// It runs by [`crate::eval::direct`].
    pub direct: bool,
    /// So it does, and it has no condition.
    pub plain: bool,
    /// It is `.`.
    pub dot: bool,
    /// In a comparison the values of its nodes can be looked up.
    pub join: Option<Arc<Join>>,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub(crate) enum From {
    Root,
    Context,
    Op(Op),
}

/// The order of the nodes when each step runs depth-first from each node of the step before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// At most one node.
    pub single: bool,
    /// In document order.
    pub ordered: bool,
    /// No node twice.
    pub distinct: bool,
    /// No node is an ancestor of another.
    pub peers: bool,
}

impl Shape {
    pub const ONE: Shape = Shape { single: true, ordered: true, distinct: true, peers: true };
    pub const SET: Shape = Shape { single: false, ordered: true, distinct: true, peers: false };

    /// The shape after a step along `axis`.
    pub fn step(self, axis: Axis) -> Shape {
        let many = Shape { single: false, ..self };
        match axis {
            Axis::SelfAxis => self,
            Axis::Attribute | Axis::Namespace => Shape { peers: true, ..many },
            Axis::Child => Shape { ordered: self.ordered && self.peers, ..many },
            Axis::Descendant | Axis::DescendantOrSelf if self.peers => Shape { peers: false, ..many },
            Axis::Parent if self.single => Shape::ONE,
            Axis::FollowingSibling if self.single => Shape { single: false, ..Shape::ONE },
            Axis::Following if self.single => Shape { single: false, peers: false, ..Shape::ONE },
            Axis::PrecedingSibling if self.single => {
                Shape { single: false, ordered: false, distinct: true, peers: true }
            }
            Axis::Ancestor | Axis::AncestorOrSelf | Axis::Preceding if self.single => {
                Shape { single: false, ordered: false, distinct: true, peers: false }
            }
            _ => Shape { single: false, ordered: false, distinct: false, peers: false },
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub axis: Axis,
    pub test: Test,
    pub predicates: Box<[Predicate]>,
    /// The first of them is a join.
    pub join: Option<Arc<Join>>,
    /// A predicate uses the number of nodes.
    pub needs_size: bool,
    /// Starting from one / from several nodes: duplicates must be removed after this step before the next one.
    pub break_one: bool,
    pub break_many: bool,
    /// From one / from several nodes: the same nodes are reached from more than one start node, so that
    /// [`crate::eval`] can skip some of these.
    pub overlaps_one: bool,
    pub overlaps_many: bool,
    pub span: Span,
}

/// The largest position that `Eval::nth_below` counts to.
const NEAR: usize = 8;

/// The name and the position, if two steps are `descendant-or-self::node()/child::name[n]`.
pub(crate) fn below_by_position(below: &Step, child: &Step) -> Option<(u32, usize)> {
    match (&below.test, &child.test, &*child.predicates) {
        (Test::Node | Test::Parent, Test::Name(name), [Predicate::Position(nth)])
            if below.axis == Axis::DescendantOrSelf
                && below.predicates.is_empty()
                && child.axis == Axis::Child
                && (1..=NEAR).contains(nth) =>
        {
            Some((*name, *nth))
        }
        _ => None,
    }
}

/// A node test with its names resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Test {
    Node,
    /// `node()` before a step downwards: only the document and elements have children.
    Parent,
    Text,
    Comment,
    ProcessingInstruction(Option<Box<str>>),
    /// `*`: any node of the axis's principal kind.
    Any,
    /// Any name in this namespace.
    Namespace(Box<str>),
    /// This local name in any namespace.
    Local(Box<str>),
    /// Nodes of this kind, whatever the principal kind of the axis; with a name: index into [`Program::names`].
    Kind(NodeKind, Option<u32>),
    /// Namespace nodes.
    NamespaceNode,
    /// Documents with exactly one element, of that name.
    DocumentOf(Option<u32>),
    /// Index into [`Program::names`].
    Name(u32),
}

#[derive(Debug, Clone)]
pub(crate) enum Predicate {
    /// `[n]`.
    Position(usize),
    /// `[last()]`.
    Last,
    /// A number that no position can have.
    Never,
    /// A number to compare with the position.
    Number(Op),
    Boolean(Op),
    /// A number means the position, anything else is a condition.
    Any(Op),
}

/// The functions of the core library (XPath 1.0, section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Core {
    Last,
    Position,
    Count,
    Id,
    LocalName,
    NamespaceUri,
    Name,
    String,
    Concat,
    StartsWith,
    Contains,
    SubstringBefore,
    SubstringAfter,
    Substring,
    StringLength,
    NormalizeSpace,
    Translate,
    Boolean,
    Not,
    True,
    False,
    Lang,
    Number,
    Sum,
    Floor,
    Ceiling,
    Round,
}

impl Core {
    /// Name, fewest and most arguments.
    #[rustfmt::skip]
    const TABLE: [(Core, &'static str, usize, usize); 27] = [
        (Core::Last, "last", 0, 0), (Core::Position, "position", 0, 0), (Core::Count, "count", 1, 1), (Core::Id, "id", 1, 1),
        (Core::LocalName, "local-name", 0, 1), (Core::NamespaceUri, "namespace-uri", 0, 1), (Core::Name, "name", 0, 1),
        (Core::String, "string", 0, 1), (Core::Concat, "concat", 2, usize::MAX), (Core::StartsWith, "starts-with", 2, 2),
        (Core::Contains, "contains", 2, 2), (Core::SubstringBefore, "substring-before", 2, 2),
        (Core::SubstringAfter, "substring-after", 2, 2), (Core::Substring, "substring", 2, 3),
        (Core::StringLength, "string-length", 0, 1), (Core::NormalizeSpace, "normalize-space", 0, 1),
        (Core::Translate, "translate", 3, 3), (Core::Boolean, "boolean", 1, 1), (Core::Not, "not", 1, 1),
        (Core::True, "true", 0, 0), (Core::False, "false", 0, 0), (Core::Lang, "lang", 1, 1), (Core::Number, "number", 0, 1),
        (Core::Sum, "sum", 1, 1), (Core::Floor, "floor", 1, 1), (Core::Ceiling, "ceiling", 1, 1), (Core::Round, "round", 1, 1),
    ];

    pub fn find(name: &str) -> Option<(Core, usize, usize)> {
        Core::TABLE.iter().find(|t| t.1 == name).map(|t| (t.0, t.2, t.3))
    }

    pub fn names() -> impl Iterator<Item = &'static str> {
        Core::TABLE.iter().map(|t| t.1)
    }

    pub fn name(self) -> &'static str {
        Core::TABLE.iter().find(|t| t.0 == self).map_or("", |t| t.1)
    }

    pub fn returns(self) -> Type {
        use Core::*;
        match self {
            Last | Position | Count | StringLength | Number | Sum | Floor | Ceiling | Round => Type::Number,
            Id => Type::NodeSet,
            LocalName | NamespaceUri | Name | String | Concat | SubstringBefore | SubstringAfter
            | Substring | NormalizeSpace | Translate => Type::String,
            StartsWith | Contains | Boolean | Not | True | False | Lang => Type::Boolean,
        }
    }

    /// With so many arguments its value depends on the context.
    pub fn looks_at_context(self, arguments: usize) -> bool {
        matches!(self, Core::Position | Core::Last | Core::Lang | Core::Id)
            || arguments == 0 && self.defaults_to_context()
    }

    /// Without arguments it looks at the context node.
    pub fn defaults_to_context(self) -> bool {
        use Core::*;
        matches!(self, LocalName | NamespaceUri | Name | String | StringLength | NormalizeSpace | Number)
    }

    /// Its (first) argument must be a node-set.
    pub fn wants_nodes(self) -> bool {
        matches!(self, Core::Count | Core::Sum | Core::LocalName | Core::NamespaceUri | Core::Name)
    }
}
