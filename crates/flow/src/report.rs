//! The one log line of a failed message.

use crate::context::Context;
use crate::fault::Fault;

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
