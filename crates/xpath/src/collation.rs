//! Collations (F&O section 7.3.1): how strings are compared.

use crate::atomic::Atomic;
use std::borrow::Cow;

/// The collation by code points: the default.
pub(crate) const CODEPOINT: &str = "http://www.w3.org/2005/xpath-functions/collation/codepoint";
const ASCII: &str = "http://www.w3.org/2005/xpath-functions/collation/html-ascii-case-insensitive";

/// A collation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Collation {
    /// By code points.
    #[default]
    Codepoint,
    /// The same, but that the letters A to Z are a to z.
    AsciiCaseInsensitive,
}

impl Collation {
    /// The collation with this URI. Errors: a sentence that says which there are.
    pub fn find(uri: &str) -> Result<Collation, String> {
        match uri {
            CODEPOINT => Ok(Collation::Codepoint),
            ASCII => Ok(Collation::AsciiCaseInsensitive),
            _ => Err(format!("there is no collation \"{uri}\": only {CODEPOINT} and {ASCII}")),
        }
    }

    /// What strings are that count as equal to `text`: in the order of code points they are in the order of the collation,
    /// and each character is where it was.
    pub fn key(self, text: &str) -> Cow<'_, str> {
        match self {
            Collation::AsciiCaseInsensitive if text.bytes().any(|b| b.is_ascii_uppercase()) => {
                Cow::Owned(text.to_ascii_lowercase())
            }
            _ => Cow::Borrowed(text),
        }
    }

    /// The same for values that are strings; others are as they are.
    pub fn atom(self, atom: &Atomic) -> Cow<'_, Atomic> {
        match atom {
            Atomic::String(text) | Atomic::Untyped(text) | Atomic::Uri(text) => match self.key(text) {
                Cow::Borrowed(_) => Cow::Borrowed(atom),
                Cow::Owned(key) => Cow::Owned(Atomic::String(key.into())),
            },
            _ => Cow::Borrowed(atom),
        }
    }
}
