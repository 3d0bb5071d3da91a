//! The expression language of Micro Integrator 4.4, `${…}`: parsed and compiled at load, evaluated over a host.
//!
//! * [`Expression::compile`] reads the text between the braces ([`lexer`], [`parse`]) into a tree ([`ast`]) in which all
//!   functions are resolved and all paths and XPaths compiled. It knows what of a message it reads ([`Reads`]).
//! * [`Expression::evaluate`] runs it over a [`Host`], which stands for the message. Values are borrowed from the host
//!   where they can be ([`Value`]); a failure says why there is no value.
//! * [`Template`] is a text with expressions in it, cut once.
//!
//! Paths into JSON are those of `message::jsonpath`, with places for what has to be computed first.

mod ast;
mod date;
mod evaluate;
mod functions;
mod lexer;
mod number;
mod parse;
mod template;
mod value;

pub use date::{DatePattern, Moment, zone_name};
pub use evaluate::{Failure, Host, Scope};
pub use functions::names as function_names;
pub use number::Number;
pub use template::{Piece, Template, expression_length, unclosed};
pub use value::Value;

use std::ops::Range;
use std::sync::Arc;

/// Longest accepted expression, in bytes.
pub const MAX_LENGTH: usize = 64 * 1024;
/// Deepest nesting of parentheses, arguments, brackets and conditions.
pub const MAX_DEPTH: usize = 100;

/// An expression that cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What is wrong and what was expected, without a final stop.
    pub message: String,
    /// Where in the text that was given, in bytes.
    pub span: Range<usize>,
    /// What WSO2 makes of it.
    pub found: Found,
}

/// When WSO2 finds what is wrong with an expression, and what becomes of it then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// When it loads, as something that does not parse.
    Loading,
    /// When it evaluates, which gives nothing: a function that does not exist, too few or too many arguments, an XPath that
    /// does not compile.
    Evaluating,
    /// When it evaluates, which is a fault: a path that its JSONPath library does not read.
    Faulting,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>, span: Range<usize>) -> Error {
        Error { message: message.into(), span, found: Found::Loading }
    }
}

/// Something that works but hardly does what was meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// What happens.
    pub message: String,
    /// What to write instead.
    pub advice: String,
    /// Where, in bytes.
    pub span: Range<usize>,
}

/// A value of the configuration that an expression reads: `${configs.name}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configured {
    /// Its name.
    pub name: String,
    /// Where, in bytes.
    pub span: Range<usize>,
}

/// What of a message an expression reads. Ordered from cheap to dear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reads {
    /// Nothing.
    Nothing,
    /// Headers, properties, variables.
    Headers,
    /// The body as JSON.
    Json,
    /// The body as XML, perhaps also as JSON.
    Xml,
}

/// Compiles the XPaths of an expression, with the namespaces of the place where it stands.
pub trait XPathCompiler: Send + Sync {
    /// An XPath.
    ///
    /// # Errors
    /// What is wrong with it, without a final stop.
    fn compile(&self, source: &str) -> Result<xpath::Expression, String>;
}

/// A compiled expression: immutable, shared by all messages.
#[derive(Debug)]
pub struct Expression {
    root: ast::Expr,
    reads: Reads,
    warnings: Vec<Warning>,
    configured: Vec<Configured>,
}

impl Expression {
    /// Compiles the text between `${` and `}`.
    ///
    /// # Errors
    /// It does not parse, or names a function or a root that does not exist.
    pub fn compile(source: &str, xpaths: &Arc<dyn XPathCompiler>) -> Result<Expression, Error> {
        let parsed = parse::parse(source, xpaths)?;
        Ok(Expression {
            root: parsed.root,
            reads: parsed.reads,
            warnings: parsed.warnings,
            configured: parsed.configured,
        })
    }

    /// What it reads.
    pub fn reads(&self) -> Reads {
        self.reads
    }

    /// What is suspicious about it.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The values of the configuration that it reads.
    pub fn configured(&self) -> &[Configured] {
        &self.configured
    }

    /// Whether it is the payload itself, `payload` or `$`.
    pub fn is_payload(&self) -> bool {
        matches!(&self.root, ast::Expr::Access(access) if access.is_payload())
    }

    /// Whether it is the payload or a path into JSON, so that text which it gives was text in JSON.
    pub fn leads_into_json(&self) -> bool {
        match &self.root {
            ast::Expr::Access(access) => access.is_payload() || access.path.is_some(),
            _ => false,
        }
    }

    /// The JSONPath into the payload that the expression is, if it is nothing else and is fixed.
    pub fn payload_path(&self) -> Option<&message::jsonpath::JsonPath> {
        match &self.root {
            ast::Expr::Access(access) => access.payload_path(),
            _ => None,
        }
    }

    /// Evaluates it.
    ///
    /// # Errors
    /// Something that it names does not exist, or has a type that does not fit.
    pub fn evaluate<'h>(&'h self, host: &'h dyn Host) -> Result<Value<'h>, Failure> {
        evaluate::evaluate(&self.root, host)
    }
}

#[cfg(test)]
mod tests;
