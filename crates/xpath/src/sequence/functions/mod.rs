//! The functions of XPath 2.0 (F&O). Each is a row of a table: name, number of arguments, result type, needs,
//! and the code. Arguments are evaluated first; [`Call`] converts them by the function conversion rules.

mod arrays;
mod dates;
mod documents;
mod formats;
mod higher;
mod json;
mod maps;
mod nodes;
mod numbers;
mod output;
mod random;
mod sequences;
mod signatures;
mod strings;
mod uris;
mod version3;

use super::operators::{Number, failed};
use super::single::SingleFunction;
use crate::atomic::{Atomic, AtomicType, Kind, Moment, NameValue};
use crate::collation::Collation;
use crate::error::Span;
use crate::eval::{Eval, Fault, Frame};
use crate::items::{Array, Map};
use crate::value::{Item, Node, Type, Value};
use std::sync::Arc;

pub(crate) use nodes::deep_equal;
pub(crate) use sequences::part;
pub(crate) use signatures::signature;
pub(crate) use uris::resolve as resolve_uri;

/// What a function reads beyond its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looks {
    Nowhere,
    /// The context item, if it has fewer arguments than this.
    Context(usize),
    /// The context item always: it determines the document.
    Document,
    Position,
    Size,
    /// All of the context: it makes a function of any name.
    Everything,
}

impl Looks {
    /// A function with so many arguments reads nothing but these.
    pub(crate) fn at_arguments_only(self, arguments: usize) -> bool {
        match self {
            Looks::Nowhere => true,
            Looks::Context(most) => arguments >= most,
            _ => false,
        }
    }

    pub(crate) fn at_position(self) -> bool {
        matches!(self, Looks::Position | Looks::Everything)
    }

    pub(crate) fn at_size(self) -> bool {
        matches!(self, Looks::Size | Looks::Everything)
    }
}

/// A function.
pub(crate) struct Entry {
    pub name: &'static str,
    pub least: usize,
    pub most: usize,
    pub returns: Type,
    pub looks: Looks,
    /// The embedder's function of that name takes precedence.
    pub embedder: bool,
    /// It takes constant time, however long its arguments are, or counts its work itself.
    pub constant: bool,
    /// How it is evaluated on single values ([`super::single`]).
    pub single: Option<SingleFunction>,
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
    Entry { name, least, most, returns, looks, embedder: false, constant: false, single: None, run }
}

impl Entry {
    /// The embedder's takes precedence.
    const fn of_embedder(self) -> Entry {
        Entry { embedder: true, ..self }
    }

    /// On single values it is evaluated so.
    const fn on_single(self, function: SingleFunction) -> Entry {
        Entry { single: Some(function), ..self }
    }

    /// It takes constant time.
    const fn in_constant_time(self) -> Entry {
        Entry { constant: true, ..self }
    }
}

static TABLES: [&[Entry]; 6] =
    [strings::TABLE, sequences::TABLE, numbers::TABLE, nodes::TABLE, dates::TABLE, uris::TABLE];

static VERSION3: [&[Entry]; 5] =
    [version3::TABLE, higher::TABLE, json::TABLE, documents::TABLE, formats::TABLE];

/// The function of that name.
pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    TABLES.iter().flat_map(|table| table.iter()).find(|entry| entry.name == name)
}

/// The namespace of the functions of numbers.
pub(crate) const MATH: &str = "http://www.w3.org/2005/xpath-functions/math";

/// The function of that name that XPath 3.1 adds or changes.
pub(crate) fn find_version3(name: &str) -> Option<&'static Entry> {
    VERSION3.iter().flat_map(|table| table.iter()).find(|entry| entry.name == name)
}

/// The namespaces of XPath 3.1's functions, with their predeclared prefixes.
const NAMESPACES: [(&str, &str); 6] = [
    ("fn", super::compile::FUNCTIONS),
    ("xs", super::types::XSD),
    ("math", MATH),
    ("map", "http://www.w3.org/2005/xpath-functions/map"),
    ("array", "http://www.w3.org/2005/xpath-functions/array"),
    ("err", "http://www.w3.org/2005/xqt-errors"),
];

/// The namespace of a prefix that is predeclared in XPath 3.1.
pub(crate) fn usual_namespace(prefix: &str) -> Option<&'static str> {
    NAMESPACES.iter().find(|(p, _)| *p == prefix).map(|(_, uri)| *uri)
}

/// The prefix that a namespace of functions usually has; empty where it has none.
pub(crate) fn usual_prefix(namespace: &str) -> &'static str {
    NAMESPACES.iter().find(|(_, uri)| *uri == namespace).map_or("", |(prefix, _)| prefix)
}

/// The function of XPath 3.1 of that name.
pub(crate) fn find_in(namespace: &str, name: &str) -> Option<&'static Entry> {
    let table = match usual_prefix(namespace) {
        "fn" => return find_version3(name).or_else(|| find(name)),
        "math" => version3::MATH,
        "map" => maps::TABLE,
        "array" => arrays::TABLE,
        _ => return None,
    };
    table.iter().find(|entry| entry.name == name)
}

/// Whether XPath 2.0 has a function of that name.
pub fn is_function(name: &str) -> bool {
    find(name).is_some()
}

/// Whether XPath 3.1 has a function of that name, …
pub fn is_function_of(namespace: &str, name: &str) -> bool {
    find_in(namespace, name).is_some()
}

/// … and with that number of arguments; also the functions of types.
pub fn takes(namespace: &str, name: &str, arity: usize) -> bool {
    if namespace == super::types::XSD {
        // These cannot be the target of a cast.
        let castable = !matches!(name, "NOTATION" | "anyAtomicType");
        let is_type = AtomicType::find(name).is_some() || AtomicType::of_list(name).is_some();
        return arity == 1 && castable && is_type;
    }
    find_in(namespace, name).is_some_and(|entry| (entry.least..=entry.most).contains(&arity))
}

/// The names of all.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLES.iter().flat_map(|table| table.iter()).map(|entry| entry.name)
}

/// A call: the arguments and the place.
pub(crate) struct Call<'c, 'a> {
    pub eval: &'c Eval<'a>,
    pub args: &'c [Value],
    pub at: Frame,
    pub span: Span,
    pub name: &'static str,
}

type Outcome = Result<Value, Fault>;

impl Call<'_, '_> {
    pub fn fail(&self, code: &'static str, message: impl Into<String>) -> Fault {
        failed(code, message, self.span)
    }

    /// A value of the wrong type.
    fn wrong(&self, at: usize, wanted: &str, found: &Atomic) -> Fault {
        let found = found.describe();
        self.fail(
            "XPTY0004",
            format!("argument {} of {}() must be {wanted}, this is {found}", at + 1, self.name),
        )
    }

    fn missing(&self, at: usize, wanted: &str) -> Fault {
        self.fail(
            "XPTY0004",
            format!("argument {} of {}() must be {wanted}, this is the empty sequence", at + 1, self.name),
        )
    }

    /// The argument, or the empty sequence where it is absent.
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
            if atom.is_function() {
                let mut atoms = self.atoms(at)?;
                return match atoms.len() {
                    0 | 1 => Ok(atoms.pop()),
                    n => Err(self.several(at, n)),
                };
            }
            return Ok(Some(atom));
        }
        match self.arg(at).len() {
            0 => Ok(None),
            // As in 1.0.
            _ if self.eval.program.compatible => match self.arg(at).item(0) {
                Some(Item::Node(node)) => self.eval.atom_of_node(node).map(Some),
                Some(Item::Atomic(atom)) => Ok(Some(atom)),
                None => Ok(None),
            },
            n => Err(self.several(at, n)),
        }
    }

    fn several(&self, at: usize, count: usize) -> Fault {
        let message = format!(
            "argument {} of {}() must be a single item, this is a sequence of {count}",
            at + 1,
            self.name
        );
        self.fail("XPTY0004", message)
    }

    /// `map(*)`.
    pub fn map(&self, at: usize) -> Result<Arc<Map>, Fault> {
        match self.arg(at) {
            Value::Atomic(Atomic::Map(map)) => Ok(map.clone()),
            _ => Err(self.wrong_item(at, "a map")),
        }
    }

    /// `array(*)`.
    pub fn array(&self, at: usize) -> Result<Arc<Array>, Fault> {
        match self.arg(at) {
            Value::Atomic(Atomic::Array(array)) => Ok(array.clone()),
            _ => Err(self.wrong_item(at, "an array")),
        }
    }

    /// A function of this arity.
    pub fn function(&self, at: usize, arity: usize) -> Result<Atomic, Fault> {
        match self.arg(at) {
            Value::Atomic(atom) if atom.is_function() => match super::apply::arity_of(atom) {
                found if found == arity => Ok(atom.clone()),
                found => Err(self.fail(
                    "XPTY0004",
                    format!(
                        "argument {} of {}() must be a function of {arity} parameter(s), this has {found}",
                        at + 1,
                        self.name
                    ),
                )),
            },
            _ => Err(self.wrong_item(at, "a function")),
        }
    }

    fn wrong_item(&self, at: usize, wanted: &str) -> Fault {
        let found = match (self.arg(at).len(), self.arg(at).item(0)) {
            (0, _) => "the empty sequence".to_owned(),
            (1, Some(item)) => self.eval.describe(&item),
            (n, _) => format!("a sequence of {n}"),
        };
        self.fail(
            "XPTY0004",
            format!("argument {} of {}() must be {wanted}, this is {found}", at + 1, self.name),
        )
    }

    /// Position or size of the context; absent without a context item.
    pub fn in_focus(&self, number: usize) -> Outcome {
        if self.at.position == 0 {
            return Err(self.fail("XPDY0002", format!("{}(): there is no context item here", self.name)));
        }
        Ok(Value::from(number as i64))
    }

    /// Calls a function.
    pub fn apply(&self, function: &Atomic, args: Vec<Value>) -> Outcome {
        self.eval.apply(function, args, self.span)
    }

    /// `xs:string?`.
    pub fn text_option(&self, at: usize) -> Result<Option<Arc<str>>, Fault> {
        match self.atom(at)? {
            None => Ok(None),
            Some(Atomic::String(s) | Atomic::Untyped(s) | Atomic::Uri(s)) => Ok(Some(s)),
            Some(other) if self.eval.program.compatible && !other.is_function() => {
                Ok(Some(other.to_text().into()))
            }
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
        if self.eval.program.compatible && !atom.is_numeric() {
            return Ok(Some(Number::Double(atom.to_double())));
        }
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
            Atomic::Large(_) => {
                let message = format!("argument {} of {}() is too large an integer", at + 1, self.name);
                Err(self.fail("FOAR0002", message))
            }
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

    /// The argument as at most one node; by default the context node.
    pub fn node_or_context(&self, at: usize) -> Result<Option<Node>, Fault> {
        if at < self.args.len() {
            return self.node(at);
        }
        match self.context()? {
            Item::Node(node) => Ok(Some(node)),
            Item::Atomic(_) => Err(self
                .fail("XPTY0004", format!("{}() needs a node, the context item is not a node", self.name))),
        }
    }

    /// `node()?`; as in 1.0 the first one of several.
    pub fn node(&self, at: usize) -> Result<Option<Node>, Fault> {
        let wrong = |given: &str| {
            self.fail(
                "XPTY0004",
                format!("argument {} of {}() must be a single node, this is {given}", at + 1, self.name),
            )
        };
        match self.arg(at) {
            Value::Empty => Ok(None),
            Value::NodeSet(nodes) => match nodes.as_slice() {
                [] => Ok(None),
                [first, rest @ ..] if rest.is_empty() || self.eval.program.compatible => Ok(Some(*first)),
                _ => Err(wrong("several")),
            },
            Value::Sequence(items) => match items.first() {
                Some(Item::Node(first)) if self.eval.program.compatible => Ok(Some(*first)),
                _ => Err(wrong("a sequence")),
            },
            _ => Err(wrong("an atomic value")),
        }
    }

    /// The collation in argument `at`; by default that of code points.
    pub fn collation(&self, at: usize) -> Result<Collation, Fault> {
        if at >= self.args.len() {
            return Ok(Collation::default());
        }
        Collation::find(&self.required_text(at)?).map_err(|message| self.fail("FOCH0002", message))
    }

    /// The time of the evaluation, always the same.
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

/// An optional value as a result.
fn optional(atom: Option<Atomic>) -> Value {
    atom.map_or(Value::Empty, Value::from)
}

/// `matches`, `replace` and `tokenize` with a pattern that was compiled before; the arguments are the others.
pub(crate) fn with_regex(call: &Call<'_, '_>, regex: &crate::regex::Regex) -> Outcome {
    match call.name {
        "matches" => strings::matches_with(call, regex),
        "replace" => strings::replace_with(call, regex, 1),
        _ => strings::tokenize_with(call, regex),
    }
}
