//! What an expression is compiled to.

use crate::XPathCompiler;
use crate::evaluate::Scope;
use crate::functions::Function;
use crate::number::Number;
use message::jsonpath::JsonPath;
use std::fmt;
use std::sync::Arc;

/// An expression. Chains of operators are lists, so that long ones do not nest.
#[derive(Debug)]
pub(crate) enum Expr {
    Null,
    Boolean(bool),
    Number(Number),
    Text(Box<str>),
    Array(Vec<Expr>),
    Access(Box<Access>),
    Call(Box<Call>),
    /// From left to right: `a + b - c`, `a * b / c`.
    Arithmetic(Box<Expr>, Vec<(Arithmetic, Expr)>),
    /// From left to right.
    Comparison(Box<Expr>, Vec<(Comparison, Expr)>),
    /// From right to left, `and` and `or` with the same precedence.
    Logic(Vec<Expr>, Vec<Logic>),
    Conditional(Box<[Expr; 3]>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logic {
    And,
    Or,
}

/// A value that is looked up, and the way into it.
#[derive(Debug)]
pub(crate) struct Access {
    pub root: Root,
    pub path: Option<Path>,
}

#[derive(Debug)]
pub(crate) enum Root {
    Payload,
    Variable(Box<str>),
    Scope(Scope, Box<str>),
    /// The result of a function.
    Value(Expr),
}

/// Steps into JSON.
#[derive(Debug)]
pub(crate) struct Path {
    pub steps: JsonPath,
    /// What stands in its places.
    pub parameters: Vec<Expr>,
}

impl Access {
    pub fn is_payload(&self) -> bool {
        matches!(self.root, Root::Payload) && self.path.is_none()
    }

    pub fn payload_path(&self) -> Option<&JsonPath> {
        match (&self.root, &self.path) {
            (Root::Payload, Some(path)) if path.parameters.is_empty() => Some(&path.steps),
            _ => None,
        }
    }
}

/// A function with its arguments.
#[derive(Debug)]
pub(crate) enum Call {
    /// One that needs its arguments only.
    Plain(&'static Function, Vec<Expr>),
    Exists(Expr),
    /// With the variable, and the field in it, that it is asked of; else of the message.
    XPath(XPathText, Option<Expr>),
    /// With the name of a property of the resource.
    Registry(Expr, Option<Expr>),
    /// `wso2-vault`.
    Secret(Vec<Expr>),
    /// `hashicorp-vault`.
    RemoteSecret(Vec<Expr>),
}

/// An XPath that is known, or is made while the expression is evaluated.
pub(crate) enum XPathText {
    Known(Box<xpath::Expression>),
    Computed(Expr, Arc<dyn XPathCompiler>),
}

impl fmt::Debug for XPathText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            XPathText::Known(xpath) => write!(out, "{}", xpath.source()),
            XPathText::Computed(expr, _) => write!(out, "computed({expr:?})"),
        }
    }
}
