//! What both dialects are compiled to.

use super::compare::Pattern;
use serde_json::Value;

/// A path, absolute (`$…`) or relative to the value a filter tests (`@…`).
#[derive(Clone, Debug)]
pub(super) struct Query {
    pub absolute: bool,
    pub segments: Vec<Segment>,
    /// Selects one value at most.
    pub definite: bool,
    /// Names and indexes only: can be followed without any list.
    pub singular: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Segment {
    /// `.a`, `[…]`
    Child(Vec<Selector>),
    /// `..a`, `..[…]`
    Descendant(Vec<Selector>),
    /// `.length()`: Jayway only.
    Function(Call),
}

#[derive(Clone, Debug)]
pub(super) enum Selector {
    Name(String),
    /// Jayway's `['a','b']` at the end of a path: one object with those members.
    Members(Vec<String>),
    /// Negative: from the end.
    Index(i64),
    Slice {
        start: Option<i64>,
        end: Option<i64>,
        /// RFC 9535 only; Jayway takes it and ignores it.
        step: i64,
    },
    Wildcard,
    Filter(Expr),
    /// An index or a name that is given when the path is run.
    Parameter(usize),
    /// A slice with such bounds.
    SliceOf {
        start: Option<Bound>,
        end: Option<Bound>,
    },
}

/// A bound of a slice: written in the path, or given when it is run.
#[derive(Copy, Clone, Debug)]
pub(super) enum Bound {
    Fixed(i64),
    Parameter(usize),
}

#[derive(Clone, Debug)]
pub(super) struct Call {
    pub function: Function,
    pub args: Vec<Operand>,
    /// The path before it begins with `..`: the function is applied to the list of all matches.
    pub gathers: bool,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Function {
    Length,
    Min,
    Max,
    Avg,
    Sum,
    Stddev,
    Keys,
    First,
    Last,
    Index,
    Concat,
    Append,
    /// One that does not exist.
    Unknown,
}

/// A condition.
#[derive(Clone, Debug)]
pub(super) enum Expr {
    Or(Vec<Expr>),
    And(Vec<Expr>),
    Not(Box<Expr>),
    Exists(Query),
    Compare(Operand, Operator, Operand),
    /// `match()` (the whole text) and `search()` of RFC 9535.
    Matches {
        text: Operand,
        pattern: Operand,
        whole: bool,
    },
}

#[derive(Clone, Debug)]
pub(super) enum Operand {
    Literal(Value),
    /// A value that is given when the path is run.
    Parameter(usize),
    Pattern(Pattern),
    Query(Query),
    /// `length()`, `count()` and `value()` of RFC 9535.
    Length(Box<Operand>),
    Count(Query),
    ValueOf(Query),
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// `===`: equal and of the same type.
    Identical,
    NotIdentical,
    Matches,
    In,
    NotIn,
    SubsetOf,
    AnyOf,
    NoneOf,
    Contains,
    All,
    Size,
    Empty,
}

impl Query {
    pub fn new(absolute: bool, segments: Vec<Segment>) -> Query {
        let gathers = matches!(segments.last(), Some(Segment::Function(call)) if call.gathers);
        let definite = gathers || segments.iter().all(Segment::is_definite);
        let singular = segments.iter().all(|segment| match segment {
            Segment::Child(selectors) => {
                matches!(selectors.as_slice(), [Selector::Name(_) | Selector::Index(_)])
            }
            _ => false,
        });
        Query { absolute, segments, definite, singular }
    }

    /// Follows a path of names and indexes. `None` also where it is another kind of path.
    pub fn singular<'v>(&self, root: &'v Value, current: &'v Value) -> Option<&'v Value> {
        if !self.singular {
            return None;
        }
        let start = if self.absolute { root } else { current };
        self.segments.iter().try_fold(start, |value, segment| match segment {
            Segment::Child(selectors) => match (selectors.first()?, value) {
                (Selector::Name(name), Value::Object(members)) => members.get(name),
                (Selector::Index(index), Value::Array(elements)) => {
                    elements.get(position(*index, elements.len())?)
                }
                _ => None,
            },
            _ => None,
        })
    }
}

impl Segment {
    pub fn is_definite(&self) -> bool {
        match self {
            Segment::Child(selectors) => {
                matches!(
                    selectors.as_slice(),
                    [Selector::Name(_) | Selector::Members(_) | Selector::Index(_) | Selector::Parameter(_)]
                )
            }
            Segment::Descendant(_) => false,
            Segment::Function(_) => true,
        }
    }
}

impl Function {
    pub fn by_name(name: &str) -> Option<Function> {
        Some(match name {
            "length" | "size" => Function::Length,
            "min" => Function::Min,
            "max" => Function::Max,
            "avg" => Function::Avg,
            "sum" => Function::Sum,
            "stddev" => Function::Stddev,
            "keys" => Function::Keys,
            "first" => Function::First,
            "last" => Function::Last,
            "index" => Function::Index,
            "concat" => Function::Concat,
            "append" => Function::Append,
            _ => return None,
        })
    }
}

/// Where `index` (negative: from the end) is in an array of `len` elements.
pub(super) fn position(index: i64, len: usize) -> Option<usize> {
    let len_signed = i64::try_from(len).ok()?;
    let index = if index < 0 { index.checked_add(len_signed)? } else { index };
    usize::try_from(index).ok().filter(|index| *index < len)
}
