//! XPath: parse, compile, run on a tree or on the event stream with early decision.
//!
//! * [`Expression::compile`] turns source text into a plan: names, functions and variables resolved, static types known,
//!   paths rewritten and analysed. It is done once, when a configuration or a stylesheet is loaded.
//! * [`Expression::evaluate`] and its typed variants run it on a [`xml::Document`].
//! * [`Expression::streaming`] classifies it: a [`StreamPlan`] that decides while the document is still being read, or the
//!   reason why it needs the tree.
//! * [`ast`] is the syntax tree, for XSLT patterns.
//!
//! The language is XPath 1.0 or 2.0 ([`Version`]), each complete without schemas and language-specific collations. Both share the plans of paths, the
//! axes and the values, which are sequences as in the XPath data model; the additions of 2.0 are in [`sequence`].

pub mod ast;
pub mod atomic;
mod axes;
mod collation;
mod compile;
mod context;
mod error;
mod eval;
mod expression;
pub mod format;
mod functions;
mod invariant;
mod items;
mod joins;
mod lexer;
pub mod number;
mod options;
mod parser;
mod parser2;
mod parser3;
mod paths;
mod plan;
mod prepared;
pub mod regex;
mod sequence;
mod shared;
pub mod stream;
mod value;

/// String functions of the core library, without an expression around them.
pub mod strings {
    pub use crate::functions::{normalize_space, substring};
}

pub use collation::Collation;
pub use context::{BoundNames, Context, ExtensionName, Host};
pub use error::{NotStreamable, Raised, Span, XPathError};
pub use expression::{Expression, Needs};
pub use items::{Array, FunctionItem, MAX_ITEM_NESTING, Map, TooDeep};
pub use options::{
    CompileOptions, Function, FunctionInfo, FunctionLibrary, FunctionTypes, NamePool, NamespaceResolver,
    Results, VariableInfo, Version,
};
pub use parser::{MAX_DEPTH, MAX_SOURCE, parse};
pub use parser2::parse_sequence_type;
pub use paths::node_path;
pub use prepared::Comparands;
pub use sequence::functions::{is_function, is_function_of, takes};
pub use sequence::positions::Positions;
pub use sequence::types::SeqType;
pub use sequence::{MAX_ITEMS, MAX_TURNS};
pub use shared::Shared;
pub use stream::{Decision, Run, StreamAs, StreamContext, StreamPlan};
pub use value::{DocId, Item, Node, NodeSet, Type, Value};
