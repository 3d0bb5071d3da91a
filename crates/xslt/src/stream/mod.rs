//! Streaming: which stylesheets can run on a document while it is read, and why others cannot.
//!
//! The document is read in *windows*: trees of a part of it, cut off where a window is full. Complete nodes are processed
//! as on the tree of the document ([`crate::run`]). An element that is cut off (the document element, a list of
//! a million orders) is processed with its name and attributes only; when its template selects its children, these
//! are read, processed and dropped, window after window. So memory depends on the depth of the document and on the size of
//! what is used as a whole, and the result is that of the tree.
//!
//! Two things prevent it, and both are found when the stylesheet is classified:
//! * Something looks beyond the node it works on (`//order`, `preceding-sibling::`, `key()`, `last()` of a template,
//!   `xsl:number`): then nothing can run before the document is complete.
//! * A template reads the content of its node more than once, or otherwise than by applying templates or by a loop:
//!   then its node is read whole before it runs ("buffered").

mod classify;
mod reach;

pub(crate) use classify::{Classified, Selection, classify, key};

/// Which parts of a stylesheet stream ([`crate::Stylesheet::streaming`]).
#[derive(Debug, Clone)]
pub struct Streaming {
    /// Why the stylesheet needs the whole document; `None`: it streams.
    pub whole: Option<NotStreamable>,
    /// Every template, in the order of the stylesheet.
    pub templates: Vec<TemplateStreaming>,
}

/// One template.
#[derive(Debug, Clone)]
pub struct TemplateStreaming {
    /// Its `match` or `name`, as `match="…"`.
    pub title: String,
    /// Its place: file:line:column.
    pub place: String,
    /// Why its node is read whole before it runs; `None`: it streams.
    pub buffers: Option<NotStreamable>,
}

/// A reason against streaming, with its place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NotStreamable {
    /// The message.
    pub reason: String,
    /// URI of the stylesheet.
    pub uri: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

impl std::fmt::Display for NotStreamable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}: {}", self.uri, self.line, self.column, self.reason)
    }
}
