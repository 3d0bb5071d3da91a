//! The functions of XPath 2.0 (F&O). Each is a row of a table: name, number of arguments, what it returns and looks at,
//! and the code. Arguments are evaluated first; [`Call`] converts them as the function conversion rules say.

mod dates;
mod nodes;
mod numbers;
mod sequences;
mod strings;
mod third;
mod uris;

use super::operators::{Number, failed};
use crate::atomic::{Atomic, AtomicType, Kind, Moment, NameValue};
use crate::collation::Collation;
use crate::error::Span;
use crate::eval::{Eval, Fault, Frame};
use crate::value::{Item, Node, Type, Value};
use std::sync::Arc;

pub(crate) use nodes::deep_equal;
pub(crate) use uris::resolve as resolve_uri;

/// What a function looks at beyond its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looks {
    Nowhere,
    /// The context item, where it has fewer arguments than this.
    Context(usize),
    /// The context item always: which document it is about.
    Document,
    Position,
    Size,
}

/// A function.
pub(crate) struct Entry {
    pub name: &'static str,
    pub least: usize,
    pub most: usize,
    pub returns: Type,
    pub looks: Looks,
    pub run: fn(&Call<'_, '_>) -> Result<Value, Fault>,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

const fn row(
    name: &'static str,
    least: usize,
    most: usize,
    returns: Type,
    looks: Looks,
    run: fn(&Call<'_, '_>) -> Result<Value, Fault>,
) -> Entry {
    Entry { name, least, most, returns, looks, run }
}

static TABLES: [&[Entry]; 6] =
    [strings::TABLE, sequences::TABLE, numbers::TABLE, nodes::TABLE, dates::TABLE, uris::TABLE];

/// The function of that name.
pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    TABLES.iter().flat_map(|table| table.iter()).find(|entry| entry.name == name)
}

/// The namespace of the functions of numbers.
pub(crate) const MATH: &str = "http://www.w3.org/2005/xpath-functions/math";

/// The function of that name that XPath 3.1 adds or changes.
pub(crate) fn find_third(name: &str) -> Option<&'static Entry> {
    third::TABLE.iter().find(|entry| entry.name == name)
}

/// The same in the namespace [`MATH`].
pub(crate) fn find_math(name: &str) -> Option<&'static Entry> {
    third::MATH.iter().find(|entry| entry.name == name)
}

/// Whether XPath 2.0 has a function of that name.
pub fn is_function(name: &str) -> bool {
    find(name).is_some()
}

/// The names of all.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLES.iter().flat_map(|table| table.iter()).map(|entry| entry.name)
}

/// A call: the arguments and where it stands.
pub(crate) struct Call<'c, 'a> {
    pub eval: &'c Eval<'a>,
    pub args: &'c [Value],
    pub at: Frame,
    pub span: Span,
    pub name: &'static str,
}

type Answer = Result<Value, Fault>;

impl Call<'_, '_> {
    pub fn fail(&self, code: &'static str, message: impl Into<String>) -> Fault {
        failed(code, message, self.span)
    }

    /// A value of the wrong type.
    fn wrong(&self, at: usize, wanted: &str, found: &Atomic) -> Fault {
        let found = AtomicType::of(found.kind()).name;
        self.fail(
            "XPTY0004",
            format!("argument {} of {}() must be {wanted}, this is an xs:{found}", at + 1, self.name),
        )
    }

    fn missing(&self, at: usize, wanted: &str) -> Fault {
        self.fail(
            "XPTY0004",
            format!("argument {} of {}() must be {wanted}, this is the empty sequence", at + 1, self.name),
        )
    }

    /// The argument, or nothing where it was not given.
    pub fn arg(&self, at: usize) -> &Value {
        static EMPTY: Value = Value::Empty;
        self.args.get(at).unwrap_or(&EMPTY)
    }

    /// The argument as atomic values.
    pub fn atoms(&self, at: usize) -> Result<Vec<Atomic>, Fault> {
        self.eval.atoms_of(self.arg(at))
    }

    /// The argument as at most one atomic value.
    pub fn atom(&self, at: usize) -> Result<Option<Atomic>, Fault> {
        if let Value::NodeSet(nodes) = self.arg(at)
            && let [node] = nodes.as_slice()
        {
            return Ok(Some(self.eval.atom_of_node(*node)?));
        }
        if let Some(atom) = self.arg(at).single_atomic() {
            return Ok(Some(atom));
        }
        match self.arg(at).len() {
            0 => Ok(None),
            n => Err(self.fail(
                "XPTY0004",
                format!(
                    "argument {} of {}() must be a single item, this is a sequence of {n}",
                    at + 1,
                    self.name
                ),
            )),
        }
    }

    /// `xs:string?`.
    pub fn text_option(&self, at: usize) -> Result<Option<Arc<str>>, Fault> {
        match self.atom(at)? {
            None => Ok(None),
            Some(Atomic::String(s) | Atomic::Untyped(s) | Atomic::Uri(s)) => Ok(Some(s)),
            Some(other) => Err(self.wrong(at, "a string", &other)),
        }
    }

    /// `xs:string?`, the empty sequence as the empty string.
    pub fn text(&self, at: usize) -> Result<Arc<str>, Fault> {
        Ok(self.text_option(at)?.unwrap_or_else(|| Arc::from("")))
    }

    /// `xs:string`.
    pub fn required_text(&self, at: usize) -> Result<Arc<str>, Fault> {
        self.text_option(at)?.ok_or_else(|| self.missing(at, "a string"))
    }

    /// A number of any type; untyped values as doubles.
    pub fn number(&self, at: usize) -> Result<Option<Number>, Fault> {
        let Some(atom) = self.atom(at)? else { return Ok(None) };
        let atom = self.untyped_as(atom, Kind::Double)?;
        Number::of(&atom).map(Some).ok_or_else(|| self.wrong(at, "a number", &atom))
    }

    /// `xs:double`.
    pub fn double(&self, at: usize) -> Result<f64, Fault> {
        Ok(self.number(at)?.ok_or_else(|| self.missing(at, "a number"))?.double())
    }

    /// `xs:integer?`.
    pub fn integer_option(&self, at: usize) -> Result<Option<i64>, Fault> {
        let Some(atom) = self.atom(at)? else { return Ok(None) };
        match self.untyped_as(atom, Kind::Integer)? {
            Atomic::Integer(n) => Ok(Some(n)),
            other => Err(self.wrong(at, "an integer", &other)),
        }
    }

    /// `xs:integer`.
    pub fn integer(&self, at: usize) -> Result<i64, Fault> {
        self.integer_option(at)?.ok_or_else(|| self.missing(at, "an integer"))
    }

    /// A value of one kind, untyped values cast to it.
    pub fn of_kind(&self, at: usize, kind: Kind) -> Result<Option<Atomic>, Fault> {
        let Some(atom) = self.atom(at)? else { return Ok(None) };
        let atom = self.untyped_as(atom, kind)?;
        let ty = AtomicType::of(kind);
        if ty.matches(&atom) {
            Ok(Some(atom))
        } else {
            Err(self.wrong(at, &format!("an xs:{}", ty.name), &atom))
        }
    }

    fn untyped_as(&self, atom: Atomic, kind: Kind) -> Result<Atomic, Fault> {
        match &atom {
            Atomic::Untyped(_) => atom.cast(AtomicType::of(kind)).map_err(|e| self.fail(e.code, e.message)),
            _ => Ok(atom),
        }
    }

    /// The context item.
    pub fn context(&self) -> Result<Item, Fault> {
        self.eval.context_item(self.at, self.span)
    }

    /// The argument as at most one node; where it was not given the context node.
    pub fn node_or_context(&self, at: usize) -> Result<Option<Node>, Fault> {
        if at < self.args.len() {
            return self.node(at);
        }
        match self.context()? {
            Item::Node(node) => Ok(Some(node)),
            Item::Atomic(_) => {
                Err(self.fail("XPTY0004", format!("{}() needs a node, the context item is none", self.name)))
            }
        }
    }

    /// `node()?`.
    pub fn node(&self, at: usize) -> Result<Option<Node>, Fault> {
        let wrong = |what: &str| {
            self.fail(
                "XPTY0004",
                format!("argument {} of {}() must be a single node, this is {what}", at + 1, self.name),
            )
        };
        match self.arg(at) {
            Value::Empty => Ok(None),
            Value::NodeSet(nodes) => match nodes.as_slice() {
                [] => Ok(None),
                [node] => Ok(Some(*node)),
                _ => Err(wrong("several")),
            },
            Value::Sequence(_) => Err(wrong("a sequence")),
            _ => Err(wrong("an atomic value")),
        }
    }

    /// The collation that argument `at` names; by default that of code points.
    pub fn collation(&self, at: usize) -> Result<Collation, Fault> {
        if at >= self.args.len() {
            return Ok(Collation::default());
        }
        Collation::find(&self.required_text(at)?).map_err(|message| self.fail("FOCH0002", message))
    }

    /// The time of the evaluation: always the same.
    pub fn now(&self) -> Moment {
        self.eval.now()
    }

    pub fn qname(&self, at: usize) -> Result<Option<Arc<NameValue>>, Fault> {
        match self.of_kind(at, Kind::Name)? {
            Some(Atomic::Name(name)) => Ok(Some(name)),
            _ => Ok(None),
        }
    }
}

fn text_value(text: impl Into<Arc<str>>) -> Value {
    Value::String(text.into())
}

/// A value for a result that may be absent.
fn optional(atom: Option<Atomic>) -> Value {
    atom.map_or(Value::Empty, Value::from)
}

/// `matches`, `replace` and `tokenize` with their pattern compiled before; the arguments are the others.
pub(crate) fn with_regex(call: &Call<'_, '_>, regex: &crate::regex::Regex) -> Answer {
    match call.name {
        "matches" => strings::matches_with(call, regex),
        "replace" => strings::replace_with(call, regex, 1),
        _ => strings::tokenize_with(call, regex),
    }
}
