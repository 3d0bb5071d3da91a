//! JSONPath over JSON values, in two dialects.
//!
//! [`Dialect::Jayway`] is what `json-eval(…)` and the JSON mediators are written against: paths with or
//! without `$`, filters with its own operators, functions at the end of a path. [`Dialect::Rfc9535`] is the
//! standard. Both are parsed ([`jayway`], [`rfc9535`]) into one tree ([`ast`]), once, when the configuration
//! loads; [`eval`] runs it.
//!
//! Nothing here recurses deeper than the expression is nested, and one selection visits at most
//! [`MAX_VISITS`] values.

mod ast;
mod compare;
mod eval;
mod functions;
mod jayway;
mod literal;
mod number;
mod rfc9535;

use meter::Stop;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

/// Longest accepted path, in bytes.
pub const MAX_LENGTH: usize = 64 * 1024;
/// Deepest nesting of filters, parentheses, function arguments and literals within a path.
pub const MAX_NESTING: usize = 64;
/// How many values one selection may visit, filters included, before it fails with [`Failure::Limit`].
pub const MAX_VISITS: u64 = 20_000_000;
/// How many matches one selection may have, at any of its segments.
pub const MAX_MATCHES: usize = 2_000_000;

/// Which language a path is written in.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Dialect {
    /// The Jayway library's, with the answers it gives.
    Jayway,
    /// RFC 9535.
    Rfc9535,
}

/// A path that cannot be compiled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JsonPathError {
    /// What is wrong, without a final stop.
    pub message: String,
    /// Where in the text of the path, in bytes.
    pub span: Range<usize>,
}

impl fmt::Display for JsonPathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at character {} of the JSONPath)", self.message, self.span.start + 1)
    }
}

impl std::error::Error for JsonPathError {}

/// Why a selection has no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// Jayway only: a definite path, or the definite beginning of an indefinite one, leads nowhere.
    NotFound(String),
    /// The selection would visit more than [`MAX_VISITS`] values or have more than [`MAX_MATCHES`] matches.
    Limit(String),
    /// The run that it is part of has to end ([`meter`]).
    Stopped(Stop),
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Failure {
        Failure::Stopped(stop)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NotFound(message) | Failure::Limit(message) => f.write_str(message),
            Failure::Stopped(stop) => stop.fmt(f),
        }
    }
}

impl std::error::Error for Failure {}

/// One step of a [`NormalizedPath`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Step {
    /// A member of an object.
    Name(String),
    /// An element of an array, from 0.
    Index(usize),
}

/// The place of one value in its document. Prints as RFC 9535, 2.7 writes it: `$['a'][0]`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct NormalizedPath(pub Vec<Step>);

impl NormalizedPath {
    /// The same place as a JSON pointer (RFC 6901): `/a/0`, empty for the root.
    pub fn to_pointer(&self) -> String {
        let mut out = String::new();
        for step in &self.0 {
            out.push('/');
            match step {
                Step::Name(name) => out.push_str(&name.replace('~', "~0").replace('/', "~1")),
                Step::Index(index) => out.push_str(&index.to_string()),
            }
        }
        out
    }

    /// The value at this place.
    pub fn get<'v>(&self, root: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(root, |value, step| match step {
            Step::Name(name) => value.as_object()?.get(name),
            Step::Index(index) => value.as_array()?.get(*index),
        })
    }

    /// The value at this place, to be changed.
    pub fn get_mut<'v>(&self, root: &'v mut Value) -> Option<&'v mut Value> {
        get_mut(&self.0, root)
    }
}

fn get_mut<'v>(steps: &[Step], root: &'v mut Value) -> Option<&'v mut Value> {
    steps.iter().try_fold(root, |value, step| match step {
        Step::Name(name) => value.as_object_mut()?.get_mut(name),
        Step::Index(index) => value.as_array_mut()?.get_mut(*index),
    })
}

impl fmt::Display for NormalizedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("$")?;
        for step in &self.0 {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Name(name) => {
                    f.write_str("['")?;
                    for c in name.chars() {
                        match c {
                            '\'' => f.write_str("\\'")?,
                            '\\' => f.write_str("\\\\")?,
                            '\u{8}' => f.write_str("\\b")?,
                            '\t' => f.write_str("\\t")?,
                            '\n' => f.write_str("\\n")?,
                            '\u{c}' => f.write_str("\\f")?,
                            '\r' => f.write_str("\\r")?,
                            c if c < ' ' => write!(f, "\\u{:04x}", u32::from(c))?,
                            c => fmt::Write::write_char(f, c)?,
                        }
                    }
                    f.write_str("']")?;
                }
            }
        }
        Ok(())
    }
}

/// What a path found.
#[derive(Clone, Debug)]
pub struct Selection<'v> {
    /// The values in the order of RFC 9535; owned only where a function or a merged member list made them.
    pub nodes: Vec<Cow<'v, Value>>,
    /// Their places, one per value, when asked for ([`JsonPath::select_with_paths`]); otherwise empty.
    pub paths: Vec<NormalizedPath>,
    /// Why there is no answer; `nodes` is empty then.
    pub failure: Option<Failure>,
    definite: bool,
}

impl Selection<'_> {
    /// Whether the path can select one value at most: its answer is that value, not a list.
    pub fn is_definite(&self) -> bool {
        self.definite
    }
}

/// A compiled path.
#[derive(Clone, Debug)]
pub struct JsonPath {
    written: Box<Written>,
    dialect: Dialect,
    query: ast::Query,
}

/// What only those ask for who show a path.
#[derive(Clone, Debug)]
struct Written {
    source: String,
    remarks: Vec<JsonPathError>,
}

impl JsonPath {
    /// Compiles `text`. In the Jayway dialect a missing `$.` is added and one trailing `.` is ignored, as
    /// `json-eval` does.
    pub fn compile(text: &str, dialect: Dialect) -> Result<JsonPath, JsonPathError> {
        if text.len() > MAX_LENGTH {
            let message = format!("the path is longer than {MAX_LENGTH} bytes");
            return Err(JsonPathError { message, span: 0..text.len() });
        }
        let (query, remarks) = match dialect {
            Dialect::Jayway => jayway::parse(text, false)?,
            Dialect::Rfc9535 => (rfc9535::parse(text)?, Vec::new()),
        };
        Ok(JsonPath { written: Box::new(Written { source: text.to_owned(), remarks }), dialect, query })
    }

    /// Compiles `text` in the Jayway dialect with places that are filled when the path is run
    /// ([`JsonPath::select_given`]): `{0}`, `{1}`, … as an index, a name or a bound of a slice in brackets, or as a
    /// value in a filter.
    pub fn compile_open(text: &str) -> Result<JsonPath, JsonPathError> {
        if text.len() > MAX_LENGTH {
            let message = format!("the path is longer than {MAX_LENGTH} bytes");
            return Err(JsonPathError { message, span: 0..text.len() });
        }
        let (query, remarks) = jayway::parse(text, true)?;
        let written = Box::new(Written { source: text.to_owned(), remarks });
        Ok(JsonPath { written, dialect: Dialect::Jayway, query })
    }

    /// The text it was compiled from.
    pub fn source(&self) -> &str {
        &self.written.source
    }

    /// What it is read in spite of, though it hardly does what was meant.
    pub fn remarks(&self) -> &[JsonPathError] {
        &self.written.remarks
    }

    /// The language it was compiled as.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Whether it can select one value at most.
    pub fn is_definite(&self) -> bool {
        self.query.definite
    }

    /// Whether it is the whole document (`$`).
    pub fn is_root(&self) -> bool {
        self.query.segments.is_empty()
    }

    /// The selected values.
    pub fn select<'v>(&self, root: &'v Value) -> Selection<'v> {
        if let Some(found) = self.query.singular(root, root) {
            return Selection {
                nodes: vec![Cow::Borrowed(found)],
                paths: Vec::new(),
                failure: None,
                definite: true,
            };
        }
        self.run(root, false, &[])
    }

    /// The selected values of a path with places to be filled, given what is to stand there.
    pub fn select_given<'v>(&self, root: &'v Value, parameters: &[Value]) -> Selection<'v> {
        self.run(root, false, parameters)
    }

    /// The selected values with their places. A list of members (`['a','b']`) counts as its single members
    /// here, and what a function made has the place of what it was made from.
    pub fn select_with_paths<'v>(&self, root: &'v Value) -> Selection<'v> {
        self.run(root, true, &[])
    }

    fn run<'v>(&self, root: &'v Value, paths: bool, parameters: &[Value]) -> Selection<'v> {
        let mut selection =
            Selection { nodes: Vec::new(), paths: Vec::new(), failure: None, definite: self.query.definite };
        match eval::Run::new(self.dialect, paths, parameters).select(&self.query, root) {
            Ok(found) => {
                selection.nodes.reserve(found.len());
                for node in found {
                    if paths {
                        selection.paths.push(node.path());
                    }
                    selection.nodes.push(node.value);
                }
            }
            Err(failure) => selection.failure = Some(failure),
        }
        selection
    }

    /// The one selected value of a definite path that is part of the document; `None` for anything else.
    /// The cheap way for the common case: no list is made.
    pub fn get<'v>(&self, root: &'v Value) -> Option<&'v Value> {
        self.query.singular(root, root)
    }

    /// The answer as the text `json-eval` gives: of a definite path the string itself, a number in plain
    /// decimal notation, `true`, `false`, `null` or the JSON text of an object or array; of an indefinite path
    /// the JSON text of the array of all matches, even of one or none. `None` where nothing is found.
    ///
    /// # Errors
    /// The selection is too large, or was stopped.
    pub fn json_eval_text(&self, root: &Value) -> Result<Option<String>, Failure> {
        if let Some(found) = self.get(root) {
            return Ok(Some(text_of(found)));
        }
        let selection = self.select(root);
        match selection.failure {
            Some(Failure::NotFound(_)) => return Ok(None),
            Some(failure) => return Err(failure),
            None => {}
        }
        if selection.definite {
            return Ok(selection.nodes.first().map(|value| text_of(value)));
        }
        let mut out = String::from("[");
        for (i, value) in selection.nodes.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            out.push_str(&value.to_string());
        }
        out.push(']');
        Ok(Some(out))
    }

    /// The places of all matches, in the order of selection; empty where nothing is found.
    ///
    /// # Errors
    /// The selection is too large, or was stopped.
    pub fn pointers(&self, root: &Value) -> Result<Vec<NormalizedPath>, Failure> {
        let selection = self.select_with_paths(root);
        match selection.failure {
            None | Some(Failure::NotFound(_)) => Ok(selection.paths),
            Some(failure) => Err(failure),
        }
    }

    /// Puts a copy of `new` at every match and says how many there were. Nothing is created: a missing member
    /// is no match.
    ///
    /// # Errors
    /// As [`JsonPath::pointers`]; nothing is changed then.
    pub fn set(&self, root: &mut Value, new: &Value) -> Result<usize, Failure> {
        self.update(root, |value| value.clone_from(new))
    }

    /// Calls `change` with every match and says how many there were. A match below another match that has been
    /// changed is skipped when it is no longer there.
    ///
    /// # Errors
    /// As [`JsonPath::pointers`]; nothing is changed then.
    pub fn update(&self, root: &mut Value, mut change: impl FnMut(&mut Value)) -> Result<usize, Failure> {
        let mut paths = self.pointers(root)?;
        // Inner values first, so that changing an outer one does not hide them.
        paths.sort();
        paths.dedup();
        let mut changed = 0;
        for path in paths.iter().rev() {
            if let Some(value) = path.get_mut(root) {
                change(value);
                changed += 1;
            }
        }
        Ok(changed)
    }

    /// Removes every match and says how many there were. The root itself cannot be removed.
    ///
    /// # Errors
    /// As [`JsonPath::pointers`]; nothing is removed then.
    pub fn delete(&self, root: &mut Value) -> Result<usize, Failure> {
        let mut paths = self.pointers(root)?;
        // From the end, so that the indexes of the remaining ones stay right.
        paths.sort();
        paths.dedup();
        let mut removed = 0;
        for path in paths.iter().rev() {
            let Some((last, parents)) = path.0.split_last() else { continue };
            let Some(parent) = get_mut(parents, root) else { continue };
            match (parent, last) {
                (Value::Object(members), Step::Name(name)) => {
                    removed += usize::from(members.shift_remove(name).is_some());
                }
                (Value::Array(elements), Step::Index(index)) if *index < elements.len() => {
                    elements.remove(*index);
                    removed += 1;
                }
                _ => {}
            }
        }
        Ok(removed)
    }
}

/// One value as text: strings without quotes, numbers in plain decimal notation (`1.50` is `1.5`, `1e3` is
/// `1000`, digits are never lost), containers as JSON.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number::plain(number.as_str()).into_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
