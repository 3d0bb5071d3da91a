//! Where the result of an operation goes.
//!
//! With `responseVariable` it is a variable with `payload`, `headers` and `attributes`, and the message stays as it was; with
//! `overwriteBody` beside it the body is the payload, and the variable has the rest. Without `responseVariable` the result takes the place
//! of the body, as connectors did before there were variables.

use crate::parameter::Parameters;
use flow::{Context, Fault};
use std::sync::Arc;

/// The parameters that say it.
pub(crate) const VARIABLE: &str = "responseVariable";
/// See [`VARIABLE`].
pub(crate) const OVERWRITE: &str = "overwriteBody";

/// Where a result goes, for one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The body, and nothing else is kept of it.
    Body,
    /// A variable; the message stays as it was.
    Variable(Arc<str>),
    /// The payload into the body, the rest into a variable.
    BodyAndVariable(Arc<str>),
}

impl Place {
    /// Where the parameters say.
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
