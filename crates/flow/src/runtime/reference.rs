//! What configuration names by a key: known when it is loaded, missing, or found for each message.

use super::context::Context;
use super::endpoint::Endpoint;
use super::fault::{Fault, code};
use super::mediator::{ListId, Need};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Something that each message works out for itself: a dynamic key, a deferred parameter. The expressions that the runtime
/// carries without knowing more of them are such.
pub trait Computed: Any + fmt::Debug + Send + Sync {
    /// As written.
    fn source(&self) -> &str;

    /// What of the message it reads.
    fn need(&self) -> Need;

    /// Why it reads that, in words.
    fn reason(&self) -> String;

    /// The string for this message; `None` where there is none.
    ///
    /// # Errors
    /// It cannot be worked out.
    fn string(&self, context: &mut Context) -> Result<Option<String>, Fault>;
}

/// A sequence as configuration names it.
#[derive(Debug)]
pub enum SequenceRef {
    /// Known when the configuration was loaded.
    Known(ListId),
    /// A key that names no sequence.
    Missing(Arc<str>),
    /// A key that an expression gives for each message.
    Dynamic(Box<dyn Computed>),
}

impl SequenceRef {
    /// The list for this message.
    ///
    /// # Errors
    /// There is no such sequence.
    pub fn resolve(&self, context: &mut Context) -> Result<ListId, Fault> {
        let missing = |key: &str| Fault::new(format!("Sequence named {key} cannot be found"));
        match self {
            SequenceRef::Known(list) => Ok(*list),
            SequenceRef::Missing(key) => context.plan().sequence(key).ok_or_else(|| missing(key)),
            SequenceRef::Dynamic(expression) => {
                let key = expression.string(context)?.unwrap_or_default();
                context.plan().sequence(key.trim()).ok_or_else(|| missing(key.trim()))
            }
        }
    }

    /// What of the message [`SequenceRef::resolve`] reads.
    pub fn need(&self) -> Need {
        match self {
            SequenceRef::Dynamic(expression) => expression.need(),
            SequenceRef::Known(_) | SequenceRef::Missing(_) => Need::Nothing,
        }
    }

    /// The list, where it is known already.
    pub fn known(&self) -> Option<ListId> {
        match self {
            SequenceRef::Known(list) => Some(*list),
            _ => None,
        }
    }
}

/// A reference to an endpoint in configuration.
pub enum EndpointRef {
    /// Known when the configuration was loaded.
    Known(Arc<dyn Endpoint>),
    /// A key that names nothing (yet); 305100 when it is used.
    Missing(Arc<str>),
    /// `{…}` or `key-expression`: found by name for each message.
    Dynamic(Box<dyn Computed>),
}

impl EndpointRef {
    /// What of the message [`EndpointRef::resolve`] reads.
    pub fn need(&self) -> Need {
        match self {
            EndpointRef::Dynamic(expression) => expression.need(),
            EndpointRef::Known(_) | EndpointRef::Missing(_) => Need::Nothing,
        }
    }

    /// The endpoint for this message.
    ///
    /// # Errors
    /// 305100: there is none.
    pub fn resolve(&self, context: &mut Context) -> Result<Arc<dyn Endpoint>, Fault> {
        let missing = |key: &str| {
            Fault::with_code(
                code::INDIRECT_NOT_READY,
                format!("Couldn't find the endpoint with the key : {key}"),
            )
        };
        match self {
            EndpointRef::Known(endpoint) => Ok(Arc::clone(endpoint)),
            EndpointRef::Missing(key) => match context.plan.endpoint(key) {
                Some(endpoint) => Ok(endpoint),
                None => Err(missing(key)),
            },
            EndpointRef::Dynamic(expression) => {
                let key = expression.string(context)?.unwrap_or_default();
                context.plan.endpoint(key.trim()).ok_or_else(|| missing(key.trim()))
            }
        }
    }
}
