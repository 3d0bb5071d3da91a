//! XML: bytes to events to a compact tree to bytes; names, namespaces, canonical form, limits.
//!
//! * [`Document`] is the tree: a flat arena whose node order is document order, with interned names and text as
//!   slices of the input.
//! * [`Tokenizer`] is the push side: feed it bytes split anywhere, take events with their namespaces resolved.
//! * [`write`] and [`Serializer`] turn trees and event streams into XML, HTML or text; [`c14n`] into canonical form.
//!
//! Everything is bounded by [`Limits`]; nothing recurses over the depth of a document.

#![deny(unsafe_op_in_unsafe_fn)]

mod builder;
pub mod c14n;
mod chars;
mod dtd;
mod encoding;
mod error;
mod fixup;
mod lent;
mod lex;
mod limits;
mod names;
mod options;
mod parse;
mod scan;
pub mod serialize;
mod tokenizer;
mod tree;
mod write;

pub use builder::Builder;
pub use chars::{is_char, is_name, is_name_char, is_name_start, is_ncname, is_same, is_space};
pub use encoding::{Decoded, decode};
pub use error::{ErrorKind, Position, XmlError};
pub use fixup::StartTag;
pub use lent::Lent;
pub use limits::Limits;
pub use names::{NameId, XML_NS, XMLNS_NS};
pub use options::{Dtd, FileResolver, ParseOptions, Resolver, StripRule, StripSpace};
pub use serialize::{Method, Normalization, Serializer, WriteError, WriteOptions, Writer};
pub use tokenizer::{AskLeaf, Attribute, Attributes, Event, Interest, Name, Tokenizer};
pub use tree::{Document, NodeId, NodeKind, NodeSpan};
pub use write::{
    Hole, Replace, Scope, to_string, write, write_around, write_encoded, write_part, write_text,
};

/// Escaping for XML in UTF-8.
pub mod escape {
    pub use crate::serialize::{push_attribute, push_attribute_controlled, push_text, push_text_controlled};
}

/// Iterators over the tree.
pub mod iter {
    pub use crate::tree::{Attributes, Children, Descendants, NamespaceDeclarations};
}
