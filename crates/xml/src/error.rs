//! Errors and their positions.

use std::borrow::Cow;
use std::fmt;

/// A place in a document.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Position {
    /// Line, counted from 1; `0` when unknown.
    pub line: u32,
    /// Column in characters, counted from 1; `0` when unknown.
    pub column: u32,
    /// Offset in bytes of the (UTF-8) text.
    pub offset: usize,
}

impl Position {
    /// The position of byte `offset` of `text`.
    pub fn of(text: &[u8], offset: usize) -> Position {
        let before = &text[..offset.min(text.len())];
        let line_start = memchr::memrchr(b'\n', before).map_or(0, |i| i + 1);
        let line = 1 + memchr::memchr_iter(b'\n', before).count();
        let column = 1 + before[line_start..].iter().filter(|&&b| b & 0xC0 != 0x80).count();
        Position { line: line as u32, column: column as u32, offset }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// The class of an [`XmlError`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The document is not well-formed (XML 1.0, 5th edition).
    Syntax,
    /// The document is not namespace-well-formed (Namespaces in XML 1.0).
    Namespace,
    /// The bytes are not text in the encoding they claim, or the encoding is not known.
    Encoding,
    /// A character XML does not allow.
    Character,
    /// The document ends too early.
    UnexpectedEnd,
    /// A document type declaration where none is allowed.
    Doctype,
    /// An entity that is not declared, recursive, or used where it must not be.
    Entity,
    /// One of [`crate::Limits`] was exceeded; the message names it.
    Limit,
    /// An external entity or DTD could not be read.
    External,
}

/// Why a document was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XmlError {
    /// The class of error.
    pub kind: ErrorKind,
    /// What is wrong, without the position.
    pub message: String,
    /// Where it is wrong.
    pub position: Position,
}

impl fmt::Display for XmlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.position.line == 0 {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.position, self.message)
    }
}

impl std::error::Error for XmlError {}

/// An error whose position is still a byte offset of the present text. Boxed, so that a result is one word.
#[derive(Debug)]
pub(crate) struct Fault {
    pub kind: ErrorKind,
    pub message: Cow<'static, str>,
    pub at: usize,
}

pub(crate) type Res<T> = Result<T, Box<Fault>>;

#[cold]
#[inline(never)]
pub(crate) fn fault<T>(kind: ErrorKind, message: impl Into<Cow<'static, str>>, at: usize) -> Res<T> {
    Err(Box::new(Fault { kind, message: message.into(), at }))
}

#[cold]
pub(crate) fn syntax<T>(message: impl Into<Cow<'static, str>>, at: usize) -> Res<T> {
    fault(ErrorKind::Syntax, message, at)
}

#[cold]
pub(crate) fn limit<T>(name: &str, value: usize, at: usize) -> Res<T> {
    fault(ErrorKind::Limit, format!("the limit `{name}` ({value}) is exceeded"), at)
}

#[cold]
pub(crate) fn end<T>(construct: &'static str, at: usize) -> Res<T> {
    fault(ErrorKind::UnexpectedEnd, format!("the document ends inside {construct}"), at)
}

impl Fault {
    /// The error for the user; `text` is the text that `at` refers to.
    pub fn locate(self, text: &[u8]) -> XmlError {
        XmlError {
            kind: self.kind,
            position: Position::of(text, self.at),
            message: self.message.into_owned(),
        }
    }
}
