//! XPath: parse, compile, run on a tree or on the event stream with early decision.
//!
//! * [`Expression::compile`] turns source text into a plan: names, functions and variables resolved, static types known,
//!   paths rewritten and analysed. It is done once, when a configuration or a stylesheet is loaded.
//! * [`Expression::evaluate`] and its typed sisters run it on a [`xml::Document`].
//! * [`Expression::streaming`] classifies it: a [`StreamPlan`] that decides while the document is still being read, or the
//!   reason why it needs the tree.
//! * [`ast`] is the syntax tree, for XSLT patterns.
//!
//! The language is XPath 1.0, complete. Values are sequences as in the XPath data model, so that 2.0 can grow here.

pub mod ast;
mod axes;
mod compile;
mod context;
mod error;
mod eval;
mod expression;
mod functions;
mod lexer;
pub mod number;
mod options;
mod parser;
mod paths;
mod plan;
pub mod stream;
mod value;

pub use context::{BoundNames, Context, ExtensionName, Host};
pub use error::{NotStreamable, Span, XPathError};
pub use expression::{Expression, Needs};
pub use options::{
    CompileOptions, Function, FunctionInfo, FunctionLibrary, NamePool, NamespaceResolver, VariableInfo,
    Version,
};
pub use parser::{MAX_DEPTH, MAX_SOURCE, parse};
pub use paths::node_path;
pub use stream::{Decision, Run, StreamAs, StreamContext, StreamPlan};
pub use value::{DocId, Node, NodeSet, Type, Value};
