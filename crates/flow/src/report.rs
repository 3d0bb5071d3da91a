//! The one log line of a failed message.

use crate::context::Context;
use crate::fault::{Fault, code};
use transport::{BodyError, Cut};

/// Logs a fault: what, where, why, and which message.
pub(crate) fn fault(context: &Context, fault: &Fault) {
    let place = context.plan.place(fault.place.unwrap_or_else(|| context.location()));
    tracing::error!(
        target: "busbar::fault",
        message_id = %context.message_id(),
        service = context.owner_name(),
        place,
        peer = fault.peer.as_deref().unwrap_or(""),
        client = %context.inbound.peer,
        code = %fault.code,
        cause = %fault.detail.replace('\n', " | "),
        "{}",
        fault.message
    );
}

/// Logs an answer whose end the client did not get, because it did not arrive here.
pub(crate) fn cut(cut: &Cut<'_>) {
    let code = match cut.error {
        BodyError::Timeout => code::CONNECTION_TIMEOUT,
        BodyError::Malformed(_) => code::PROTOCOL_VIOLATION,
        _ => code::SND_IO_ERROR_RECEIVING,
    };
    let backend = cut.backend.as_ref().map(ToString::to_string).unwrap_or_default();
    tracing::error!(
        target: "busbar::fault",
        message_id = crate::context::unique(cut.about),
        peer = backend,
        client = %cut.client.peer,
        code,
        cause = %cut.error,
        "The answer did not arrive whole; the client's connection is cut",
    );
}
