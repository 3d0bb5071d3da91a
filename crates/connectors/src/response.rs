//! Where the result of an operation goes.
//!
//! With `responseVariable` it is a variable with `payload`, `headers` and `attributes`, and the message is not changed; with
//! `overwriteBody` beside it the payload becomes the body, and the variable has the rest. Without `responseVariable` the result becomes
//! the body, as in connectors before there were variables.

use crate::parameter::Parameters;
use flow::{Context, Fault};
use std::sync::Arc;

/// The parameters for the result.
pub(crate) const VARIABLE: &str = "responseVariable";
/// See [`VARIABLE`].
pub(crate) const OVERWRITE: &str = "overwriteBody";

/// The destination of a result, for one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The body; attributes are dropped.
    Body,
    /// A variable; the message is not changed.
    Variable(Arc<str>),
    /// The payload into the body, the rest into a variable.
    BodyAndVariable(Arc<str>),
}

impl Place {
    /// The destination by the parameters.
    ///
    /// # Errors
    /// A parameter cannot be evaluated.
    pub(crate) fn of(parameters: &Parameters, context: &mut Context) -> Result<Place, Fault> {
        let Some(variable) = parameters.text(VARIABLE, context)? else { return Ok(Place::Body) };
        let variable = Arc::from(variable);
        Ok(match parameters.is_true(OVERWRITE, false, context)? {
            true => Place::BodyAndVariable(variable),
            false => Place::Variable(variable),
        })
    }
}
