//! Errors and their places in the expression.

use crate::value::Value;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// An error in an expression or in its evaluation. `span` is the byte range in the expression's source
/// (empty at the end of the source when something is missing there).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XPathError {
    /// The message, one sentence, without the place.
    pub message: String,
    /// Byte range in the source text of the expression.
    pub span: Range<usize>,
    /// The error code of the specifications (`XPTY0004`); empty where there is none. Of `error()` the
    /// local name of its first argument.
    pub code: Cow<'static, str>,
    /// Whether it is a syntax error; else a name that does not exist, or a type error.
    pub syntax: bool,
    /// Of `error()` with a code: the rest of the code, and the error object.
    pub raised: Option<Arc<Raised>>,
    /// Whether it is a limit of the engine, which nothing in a program should catch.
    pub limit: bool,
}

/// What an error that the program raises itself has beyond local name and description.
#[derive(Debug, Clone)]
pub struct Raised {
    /// The prefix of the code.
    pub prefix: Box<str>,
    /// The namespace of the code.
    pub namespace: Box<str>,
    /// The error object.
    pub value: Value,
}

/// Errors are the same if their codes are.
impl PartialEq for Raised {
    fn eq(&self, other: &Raised) -> bool {
        self.namespace == other.namespace
    }
}

impl Eq for Raised {}

impl XPathError {
    /// An error at `span`.
    pub fn new(message: impl Into<String>, span: impl Into<Span>) -> XPathError {
        XPathError {
            message: message.into(),
            span: span.into().range(),
            code: Cow::Borrowed(""),
            syntax: false,
            raised: None,
            limit: false,
        }
    }

    /// The same with a code.
    pub fn with_code(self, code: impl Into<Cow<'static, str>>) -> XPathError {
        XPathError { code: code.into(), ..self }
    }

    /// The message, with the code if there is one: `XPTY0004: …`.
    pub fn sentence(&self) -> String {
        if self.code.is_empty() { self.message.clone() } else { format!("{}: {}", self.code, self.message) }
    }

    /// The error with the expression and a line that marks the place:
    ///
    /// ```text
    /// error: expected an expression
    ///   a + + b
    ///       ^
    /// ```
    pub fn render(&self, source: &str) -> String {
        let start = floor_boundary(source, self.span.start);
        let end = floor_boundary(source, self.span.end.max(start));
        let line_start = source[..start].rfind('\n').map_or(0, |i| i + 1);
        let line_end = source[start..].find('\n').map_or(source.len(), |i| start + i);
        let line = &source[line_start..line_end];
        // Tabs are kept so that the marks stay under the text.
        let pad: String =
            source[line_start..start].chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        let width = source[start..end.min(line_end).max(start)].chars().count().max(1);
        format!("error: {}\n  {}\n  {}{}", self.sentence(), line, pad, "^".repeat(width))
    }
}

fn floor_boundary(s: &str, at: usize) -> usize {
    let mut at = at.min(s.len());
    while !s.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl fmt::Display for XPathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at offset {})", self.sentence(), self.span.start)
    }
}

impl std::error::Error for XPathError {}

/// Why an expression cannot be evaluated while the document is being read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotStreamable {
    /// The reason, one sentence, e.g. "the axis `parent` looks back".
    pub reason: String,
    /// The part of the expression that needs the tree.
    pub span: Range<usize>,
}

impl fmt::Display for NotStreamable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for NotStreamable {}

/// A byte range in the source, small enough to sit in every node of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// The byte after the last one.
    pub end: u32,
}

impl Span {
    /// A span from offsets; sources are limited to far less than 4 GB.
    pub fn new(start: usize, end: usize) -> Span {
        Span { start: start as u32, end: end as u32 }
    }

    /// As a range.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// From the start of `self` to the end of `other`.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start, end: other.end.max(self.start) }
    }
}

impl From<Range<usize>> for Span {
    fn from(r: Range<usize>) -> Span {
        Span::new(r.start, r.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_the_place() {
        let e = XPathError::new("expected an expression", 4..5);
        assert_eq!(e.render("a + + b"), "error: expected an expression\n  a + + b\n      ^");
        let e = XPathError::new("x", 9..12);
        assert_eq!(e.render("ä\nbc"), "error: x\n  bc\n    ^");
    }
}
