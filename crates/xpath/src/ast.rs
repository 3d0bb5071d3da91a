//! The syntax tree of an expression, as written: prefixes unresolved, every node with its place.
//!
//! Public because XSLT patterns are read from it.

use crate::atomic::Decimal;
use crate::error::Span;

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where it stands in the source.
    pub span: Span,
    /// Nesting below this node, steps included: bounds the recursion of everything that walks the tree.
    pub(crate) depth: u32,
}

impl Expr {
    /// Calls `f` with this expression and all its subexpressions, predicates included, outermost first.
    pub fn walk<'e>(&'e self, f: &mut dyn FnMut(&'e Expr)) {
        f(self);
        let steps = |steps: &'e [Step], f: &mut dyn FnMut(&'e Expr)| {
            steps.iter().flat_map(|step| &step.predicates).for_each(|p| p.walk(f));
        };
        match &self.kind {
            ExprKind::Number(_)
            | ExprKind::Literal(_)
            | ExprKind::Variable(_)
            | ExprKind::Integer(_)
            | ExprKind::Large(_)
            | ExprKind::Decimal(_)
            | ExprKind::NamedFunction(..)
            | ExprKind::Placeholder
            | ExprKind::ContextItem => {}
            ExprKind::Or(list)
            | ExprKind::And(list)
            | ExprKind::Union(list)
            | ExprKind::Call(_, list)
            | ExprKind::Array(list)
            | ExprKind::Sequence(list) => list.iter().for_each(|e| e.walk(f)),
            ExprKind::Binary(_, a, b)
            | ExprKind::ValueComparison(_, a, b)
            | ExprKind::Operation(_, a, b)
            | ExprKind::SimpleMap(a, b)
            | ExprKind::Slash(a, b) => {
                a.walk(f);
                b.walk(f);
            }
            ExprKind::Negate(a)
            | ExprKind::Plus(a)
            | ExprKind::InstanceOf(a, _)
            | ExprKind::Treat(a, _)
            | ExprKind::Cast(a, ..)
            | ExprKind::Castable(a, ..)
            | ExprKind::CurlyArray(a)
            | ExprKind::Lookup(a, None)
            | ExprKind::Inline(_, _, a) => a.walk(f),
            ExprKind::Lookup(a, Some(b)) => {
                a.walk(f);
                b.walk(f);
            }
            ExprKind::Map(pairs) => pairs.iter().for_each(|(key, value)| {
                key.walk(f);
                value.walk(f);
            }),
            ExprKind::Filter(a, list) | ExprKind::Apply(a, list) => {
                a.walk(f);
                list.iter().for_each(|e| e.walk(f));
            }
            ExprKind::Path(start, list) => {
                if let Start::Expr(e) = start {
                    e.walk(f);
                }
                steps(list, f);
            }
            ExprKind::For(bindings, body)
            | ExprKind::Let(bindings, body)
            | ExprKind::Quantified(_, bindings, body) => {
                bindings.iter().for_each(|(_, e)| e.walk(f));
                body.walk(f);
            }
            ExprKind::If(parts) => parts.iter().for_each(|e| e.walk(f)),
        }
    }
}

/// The kinds of expression.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// A number literal.
    Number(f64),
    /// A string literal.
    Literal(String),
    /// `$prefix:local`.
    Variable(QName),
    /// `a or b or …`, flat.
    Or(Vec<Expr>),
    /// `a and b and …`, flat.
    And(Vec<Expr>),
    /// A comparison or an arithmetic operation.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `-a`.
    Negate(Box<Expr>),
    /// `a | b | …`, flat.
    Union(Vec<Expr>),
    /// `name(args)`.
    Call(QName, Vec<Expr>),
    /// `primary[p]…`; also a parenthesised expression without predicates is its inner expression itself.
    Filter(Box<Expr>, Vec<Expr>),
    /// A location path.
    Path(Start, Vec<Step>),
    /// An integer literal (XPath 2.0 and later, as everything below).
    Integer(i64),
    /// An integer literal that does not fit into 64 bits.
    Large(std::sync::Arc<num_bigint::BigInt>),
    /// A decimal literal.
    Decimal(Decimal),
    /// `.` by itself: the context item may be an atomic value.
    ContextItem,
    /// `(a, b, …)`, flat; `()` has none.
    Sequence(Vec<Expr>),
    /// `for $x in a, … return b`.
    For(Vec<(QName, Expr)>, Box<Expr>),
    /// `let $x := a, … return b` (XPath 3.0).
    Let(Vec<(QName, Expr)>, Box<Expr>),
    /// `a ! b` (XPath 3.0).
    SimpleMap(Box<Expr>, Box<Expr>),
    /// `some` (or, if true, `every`) `$x in a, … satisfies b`.
    Quantified(bool, Vec<(QName, Expr)>, Box<Expr>),
    /// `if (a) then b else c`.
    If(Box<[Expr; 3]>),
    /// A value comparison: the operator as one of the six comparisons.
    ValueComparison(BinaryOp, Box<Expr>, Box<Expr>),
    /// An operation that XPath 1.0 does not have.
    Operation(Operator, Box<Expr>, Box<Expr>),
    /// `+a`.
    Plus(Box<Expr>),
    /// `a/b` where `b` is more than an axis step.
    Slash(Box<Expr>, Box<Expr>),
    /// `a instance of t`.
    InstanceOf(Box<Expr>, SequenceType),
    /// `a treat as t`.
    Treat(Box<Expr>, SequenceType),
    /// `a cast as t`; `true`: `t?`.
    Cast(Box<Expr>, QName, bool),
    /// `a castable as t`; `true`: `t?`.
    Castable(Box<Expr>, QName, bool),
    /// `name#arity` (XPath 3.0; so are those below without 3.1).
    NamedFunction(QName, usize),
    /// `function($a as t, …) as t { body }`.
    Inline(Vec<(QName, Option<SequenceType>)>, Option<SequenceType>, Box<Expr>),
    /// `f(a, …)` where `f` is an expression.
    Apply(Box<Expr>, Vec<Expr>),
    /// `?` as an argument: a partial application.
    Placeholder,
    /// `map { key : value, … }` (3.1).
    Map(Vec<(Expr, Expr)>),
    /// `[a, b, …]` (3.1).
    Array(Vec<Expr>),
    /// `array { a }` (3.1).
    CurlyArray(Box<Expr>),
    /// `a?key`; no key: `a?*` (3.1). In the unary `?key` the first is the context item.
    Lookup(Box<Expr>, Option<Box<Expr>>),
}

/// The binary operators of XPath 2.0 that are not value comparisons.
#[allow(missing_docs)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    Is,
    Before,
    After,
    Range,
    IntegerDivide,
    Intersect,
    Except,
}

/// A sequence type (XPath 2.0 section 2.5.3).
#[derive(Debug, Clone, PartialEq)]
pub struct SequenceType {
    /// The type of each item.
    pub item: ItemType,
    /// Whether no item is allowed.
    pub optional: bool,
    /// Whether several items are allowed.
    pub many: bool,
    /// Where it stands in the source.
    pub span: Span,
}

/// An item type, names as written.
#[derive(Debug, Clone, PartialEq)]
pub enum ItemType {
    /// `empty-sequence()`.
    Nothing,
    /// `item()`.
    Item,
    /// The name of an atomic type.
    Atomic(QName),
    /// `function(*)`, or with the types of the parameters and of the result.
    Function(Option<(Vec<SequenceType>, Box<SequenceType>)>),
    /// `map(*)`, or with the types of keys and values.
    Map(Option<Box<(SequenceType, SequenceType)>>),
    /// `array(*)`, or with the type of the members.
    Array(Option<Box<SequenceType>>),
    /// A kind test.
    Node(NodeTest),
}

/// The start of a location path.
#[derive(Debug, Clone, PartialEq)]
pub enum Start {
    /// `/…`: the root of the document of the context node.
    Root,
    /// A relative path: the context node.
    Context,
    /// `expr/…`.
    Expr(Box<Expr>),
}

/// One step of a location path. `//` has become the step `descendant-or-self::node()`, `.` and `..` are the
/// steps `self::node()` and `parent::node()`.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The axis.
    pub axis: Axis,
    /// The node test.
    pub test: NodeTest,
    /// The predicates in order.
    pub predicates: Vec<Expr>,
    /// The test names a type: `element(*, xs:untyped)`.
    pub typed: bool,
    /// Where it stands (of a `//`: the two slashes).
    pub span: Span,
}

/// A node test, prefixes as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeTest {
    /// `node()`.
    Node,
    /// `text()`.
    Text,
    /// `comment()`.
    Comment,
    /// `processing-instruction()` or `processing-instruction('target')`.
    ProcessingInstruction(Option<String>),
    /// `*`.
    AnyName,
    /// `prefix:*`.
    AnyLocal(String),
    /// `name` or `prefix:name`.
    Name(QName),
    /// `*:name`.
    AnyNamespace(String),
    /// `element()`, `element(*)` or `element(name)`.
    Element(Option<QName>),
    /// `attribute()`, `attribute(*)` or `attribute(name)`.
    Attribute(Option<QName>),
    /// `namespace-node()` (3.0).
    NamespaceNode,
    /// `document-node()`, or `document-node(element(name))`: the inner test.
    Document(Option<Box<NodeTest>>),
}

/// A qualified name as written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct QName {
    /// The prefix, empty if there is none; of `Q{namespace}local` a brace and the namespace: `{namespace`.
    pub prefix: String,
    /// The local part.
    pub local: String,
}

impl QName {
    /// The name of a token. White space in the namespace of `Q{namespace}local` is normalized (XPath 3.1, section 2.4.5).
    pub(crate) fn written(prefix: &str, local: &str) -> QName {
        let prefix = match prefix.strip_prefix('{') {
            Some(uri) => format!("{{{}", crate::functions::normalize_space(uri.into())),
            None => prefix.to_owned(),
        };
        QName { prefix, local: local.to_owned() }
    }

    /// The name that nothing has.
    pub(crate) fn of_nothing() -> QName {
        QName { prefix: "{".to_owned(), local: String::new() }
    }
}

impl std::fmt::Display for QName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.prefix.starts_with('{') {
            write!(f, "Q{}}}{}", self.prefix, self.local)
        } else if self.prefix.is_empty() {
            f.write_str(&self.local)
        } else {
            write!(f, "{}:{}", self.prefix, self.local)
        }
    }
}

/// The thirteen axes.
#[allow(missing_docs)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Axis {
    Ancestor,
    AncestorOrSelf,
    Attribute,
    Child,
    Descendant,
    DescendantOrSelf,
    Following,
    FollowingSibling,
    Namespace,
    Parent,
    Preceding,
    PrecedingSibling,
    SelfAxis,
}

impl Axis {
    const NAMES: [(Axis, &'static str); 13] = [
        (Axis::Ancestor, "ancestor"),
        (Axis::AncestorOrSelf, "ancestor-or-self"),
        (Axis::Attribute, "attribute"),
        (Axis::Child, "child"),
        (Axis::Descendant, "descendant"),
        (Axis::DescendantOrSelf, "descendant-or-self"),
        (Axis::Following, "following"),
        (Axis::FollowingSibling, "following-sibling"),
        (Axis::Namespace, "namespace"),
        (Axis::Parent, "parent"),
        (Axis::Preceding, "preceding"),
        (Axis::PrecedingSibling, "preceding-sibling"),
        (Axis::SelfAxis, "self"),
    ];

    /// The axis of that name.
    pub fn from_name(name: &str) -> Option<Axis> {
        Axis::NAMES.iter().find(|(_, n)| *n == name).map(|(a, _)| *a)
    }

    /// Its name in the language.
    pub fn name(self) -> &'static str {
        Axis::NAMES.iter().find(|(a, _)| *a == self).map_or("", |(_, n)| n)
    }

    /// Reverse axes count positions backwards in document order.
    pub fn is_reverse(self) -> bool {
        matches!(
            self,
            Axis::Ancestor | Axis::AncestorOrSelf | Axis::Parent | Axis::Preceding | Axis::PrecedingSibling
        )
    }
}

/// Operators with two operands.
#[allow(missing_docs)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

impl BinaryOp {
    /// Whether it is one of the six general comparisons.
    pub(crate) fn is_comparison(self) -> bool {
        use BinaryOp as B;
        matches!(self, B::Equal | B::NotEqual | B::Less | B::LessOrEqual | B::Greater | B::GreaterOrEqual)
    }

    /// The operator with the same result for exchanged operands (comparisons only).
    pub fn mirrored(self) -> BinaryOp {
        match self {
            BinaryOp::Less => BinaryOp::Greater,
            BinaryOp::LessOrEqual => BinaryOp::GreaterOrEqual,
            BinaryOp::Greater => BinaryOp::Less,
            BinaryOp::GreaterOrEqual => BinaryOp::LessOrEqual,
            other => other,
        }
    }
}
