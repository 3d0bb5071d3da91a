//! Attribute values with their place.

use crate::element::{Attribute, Element, Scope};
use diagnostics::Span;
use std::fmt;
use std::ops::Deref;

/// A value with the span it was read from.
#[derive(Clone, Debug)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where it is written.
    pub span: Span,
}

impl<T> Deref for Spanned<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: fmt::Display> fmt::Display for Spanned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

/// The name of another artifact or registry resource, or any other literal with its place.
pub type Key = Spanned<String>;

impl Key {
    /// The value of an attribute, as written.
    pub fn of(attribute: &Attribute) -> Key {
        Key { value: attribute.value.to_string(), span: attribute.value_span }
    }
}

/// An expression as written (XPath, `json-eval(…)`, `${…}`), to be compiled where it is used.
#[derive(Clone, Debug)]
pub struct Expression {
    /// The expression, without the braces of an attribute value.
    pub source: String,
    /// Where it is written; byte `i` of `source` is byte `i` of the span when no reference is in it.
    pub span: Span,
    /// The namespaces that it may use.
    pub scope: Scope,
}

impl Expression {
    /// The whole value of an attribute is an expression.
    pub fn of(attribute: &Attribute, element: &Element) -> Expression {
        Expression {
            source: attribute.value.to_string(),
            span: attribute.value_span,
            scope: element.scope().clone(),
        }
    }
}

/// An attribute that is a literal, or an expression when all of it stands in braces: `{expression}`.
#[derive(Clone, Debug)]
pub enum Value {
    /// Taken as it is.
    Literal(Key),
    /// Evaluated for every message.
    Expression(Expression),
    /// `{{expression}}`: passed on without evaluation, for the consumer (a template) to evaluate. The text keeps one
    /// pair of braces.
    Deferred(Key),
}

impl Value {
    /// Reads the value of an attribute.
    pub fn of(attribute: &Attribute, element: &Element) -> Value {
        Value::parse(&attribute.value, attribute.value_span, element.scope())
    }

    /// Reads a text.
    pub fn parse(text: &str, span: Span, scope: &Scope) -> Value {
        match text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(inner) if inner.len() > 1 && inner.starts_with('{') && inner.ends_with('}') => {
                Value::Deferred(Key { value: inner.to_owned(), span })
            }
            Some(inner) => Value::Expression(Expression {
                source: inner.to_owned(),
                span: span.part(1, inner.len()),
                scope: scope.clone(),
            }),
            None => Value::Literal(Key { value: text.to_owned(), span }),
        }
    }

    /// The literal, if it is one.
    pub fn literal(&self) -> Option<&str> {
        match self {
            Value::Literal(key) => Some(key),
            _ => None,
        }
    }

    /// Where it is written.
    pub fn span(&self) -> Span {
        match self {
            Value::Literal(key) | Value::Deferred(key) => key.span,
            Value::Expression(expression) => expression.span,
        }
    }
}
