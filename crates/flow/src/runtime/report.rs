//! The one log line of a failed message.

use crate::runtime::context::Context;
use crate::runtime::fault::{Fault, code};
use crate::runtime::panics::Panicked;
use std::borrow::Cow;
use transport::{BodyError, Cut, Refused};

/// Characters of a message or a cause in a log line.
const LONGEST: usize = 4096;

/// Logs a fault: what, where, why, and which message.
pub(crate) fn fault(context: &Context, fault: &Fault) {
    let place = context.plan.place(fault.place.unwrap_or_else(|| context.location()));
    tracing::error!(
        target: "busbar::fault",
        message_id = %context.message_id(),
        service = context.service_name(),
        place,
        peer = fault.peer.as_deref().unwrap_or(""),
        client = %context.sender(),
        code = %fault.code,
        cause = %short(&fault.detail).replace('\n', " | "),
        "{}",
        short(&fault.message)
    );
}

/// Logs that a backend refused a one-way message: its response goes nowhere else, and the client may have its 202.
pub(crate) fn one_way_refused(context: &Context, message_id: &str) {
    let Some(status @ 400..) = context.status else { return };
    tracing::warn!(
        target: "busbar::fault",
        message_id,
        service = context.service_name(),
        place = context.place(),
        client = %context.sender(),
        "the backend answered a one-way message with {status}; the message may be lost",
    );
}

/// Logs that the work of a message panicked: a fault that no handler sees.
pub(crate) fn panicked(message_id: &str, service: &str, place: &str, what: &str, why: &Panicked) {
    tracing::error!(
        target: "busbar::fault",
        message_id,
        service,
        place,
        cause = %short(&why.message).replace('\n', " | "),
        location = why.location,
        "{what} panicked, which is a mistake in Busbar; please report this line",
    );
}

/// As much of a text as a log line takes: a fault may quote a message of any size.
fn short(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => Cow::Owned(format!("{}… ({} bytes)", &text[..at], text.len())),
        None => Cow::Borrowed(text),
    }
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
        message_id = crate::runtime::identifier::unique(cut.about),
        peer = backend,
        client = %cut.client.peer,
        code,
        cause = %cut.error,
        "The answer did not arrive whole; the client's connection is cut",
    );
}

/// Logs a request that the transport refused, which is noise of the network more often than news.
pub(crate) fn refused(refused: &Refused<'_>) {
    tracing::debug!(
        target: "busbar_transport",
        client = %refused.client.peer,
        status = refused.status,
        line = refused.line(),
        "refused: {}", refused.why
    );
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, short};
    use crate::runtime::context::Origin;
    use crate::runtime::request::{Client, Inbound};
    use crate::testing;
    use std::sync::Arc;

    #[test]
    fn what_a_message_began_with_is_named_where_no_client_sent_it() {
        let registry = testing::registry(Vec::new());
        let tested = testing::main(&registry, "");
        let mut context = tested.context(&[], "");
        let named = |context: &crate::Context| format!("{} {}", context.service_name(), context.sender());
        assert_eq!(named(&context), "main 127.0.0.1:9");
        context.attach(Arc::new(Origin("task nightly".to_owned())));
        assert_eq!(named(&context), "task nightly 127.0.0.1:9");
        let inbound =
            Inbound::of_nobody(message::Method::Post, "/".to_owned(), Client::Rest, &context.headers);
        context.inbound = Arc::new(inbound);
        assert_eq!(named(&context), "task nightly task nightly");
    }

    #[test]
    fn a_log_line_takes_so_much_of_a_text() {
        assert_eq!(short("short"), "short");
        assert_eq!(short(&"é".repeat(LONGEST)), "é".repeat(LONGEST));
        assert_eq!(
            short(&"é".repeat(LONGEST + 1)),
            format!("{}… ({} bytes)", "é".repeat(LONGEST), 2 * LONGEST + 2)
        );
    }
}
