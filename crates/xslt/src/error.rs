//! Errors with their places.

use std::fmt;
use std::sync::Arc;

/// The prefix of an error of the document.
const DOCUMENT: &str = "the document: ";

/// An error of a stylesheet or of a transformation.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct XsltError {
    /// The message.
    pub message: String,
    /// The module (stylesheet file) of the error; empty where there is none.
    pub uri: String,
    /// Line, from 1; 0 = unknown.
    pub line: u32,
    /// Column, from 1; 0 = unknown.
    pub column: u32,
    /// Of an error that the stylesheet raises itself: the rest of its code, and the error object.
    pub raised: Option<Arc<xpath::Raised>>,
}

impl XsltError {
    /// An error without a place.
    pub fn new(message: impl Into<String>) -> XsltError {
        XsltError { message: message.into(), ..XsltError::default() }
    }

    /// Whether it is an error of the language, with a code (`XPTY0004: …`), and not a limit.
    pub(crate) fn has_code(&self) -> bool {
        self.message.split_once(": ").is_some_and(|(code, _)| {
            code.len() == 8 && code.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
        })
    }

    /// The document that is streamed is not well-formed.
    pub(crate) fn of_document(error: &xml::XmlError) -> XsltError {
        XsltError::new(format!("{DOCUMENT}{error}"))
    }

    /// Whether the error is in the document and not in the stylesheet: it is not well-formed.
    pub fn is_of_document(&self) -> bool {
        self.message.starts_with(DOCUMENT)
    }
}

impl fmt::Display for XsltError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.uri.is_empty() {
            write!(f, "{}:", self.uri)?;
        }
        if self.line > 0 {
            write!(f, "{}:{}:", self.line, self.column)?;
        }
        if !self.uri.is_empty() || self.line > 0 {
            f.write_str(" ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for XsltError {}
