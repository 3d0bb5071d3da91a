//! An attribute that is a literal, or an expression in braces.

use crate::expression::Expression;
use crate::runtime::context::Context;
use crate::runtime::fault::Fault;
use crate::runtime::mediator::Need;
use std::sync::Arc;

/// An attribute that is a literal, or an expression in braces.
#[derive(Debug)]
pub enum KeyValue {
    /// As written.
    Literal(Arc<str>),
    /// Evaluated for each message.
    Dynamic(Expression),
}

impl KeyValue {
    /// The value for this message; `None` where the expression gives null.
    ///
    /// # Errors
    /// The expression fails.
    pub fn resolve(&self, context: &mut Context) -> Result<Option<Arc<str>>, Fault> {
        match self {
            KeyValue::Literal(text) => Ok(Some(Arc::clone(text))),
            KeyValue::Dynamic(expression) => Ok(expression.string(context)?.map(Arc::from)),
        }
    }

    /// What it reads.
    pub fn need(&self) -> Need {
        match self {
            KeyValue::Literal(_) => Need::Nothing,
            KeyValue::Dynamic(expression) => expression.need(),
        }
    }

    /// The literal, if it is one.
    pub fn literal(&self) -> Option<&str> {
        match self {
            KeyValue::Literal(text) => Some(text),
            KeyValue::Dynamic(_) => None,
        }
    }
}
