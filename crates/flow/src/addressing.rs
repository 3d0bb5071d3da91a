//! WS-Addressing headers of an incoming SOAP message.
//!
//! They are only looked for where the beginning of the message names a WS-Addressing namespace, so that other
//! messages stay unread.

use crate::context::{Client, Context};
use crate::fault::Fault;
use memchr::memmem;
use message::envelope::{WSA_FINAL, WSA_SUBMISSION};
use std::sync::LazyLock;

/// What both WS-Addressing namespaces contain.
static MARK: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new("08/addressing"));

/// How far into the message the namespace is looked for.
const WINDOW: usize = 4096;

/// Fills [`Context::addressing`] from the message's headers.
///
/// # Errors
/// The message has to be read for it, and cannot be.
pub(crate) async fn read(context: &mut Context) -> Result<(), Fault> {
    if !matches!(context.inbound.client, Client::Soap(_)) {
        return Ok(());
    }
    let found = {
        let bytes = match context.payload.stream_mut() {
            Some(stream) => stream.buffered(),
            None => match context.payload.bytes() {
                Some(bytes) => &bytes[..],
                None => return Ok(()),
            },
        };
        let window = &bytes[..bytes.len().min(WINDOW)];
        MARK.find(window).is_some()
    };
    if !found {
        return Ok(());
    }
    let limits = context.services.limits.clone();
    context.payload.buffer(&limits).await?;
    let mut addressing = std::mem::take(&mut context.addressing);
    // A body that is no envelope is somebody else's to complain about.
    if let Ok(envelope) = context.payload.envelope(&limits)
        && let Some(header) = envelope.header
    {
        let document = &envelope.document;
        for block in envelope.elements_of(header) {
            if !matches!(document.namespace(block), WSA_FINAL | WSA_SUBMISSION) {
                continue;
            }
            let text =
                || Some(document.string_value(block).trim().to_owned()).filter(|text| !text.is_empty());
            let address = || {
                let address =
                    envelope.elements_of(block).find(|&child| document.local(child) == "Address")?;
                Some(document.string_value(address).trim().to_owned()).filter(|text| !text.is_empty())
            };
            match document.local(block) {
                "To" => addressing.to = text(),
                "Action" => addressing.action = text(),
                "MessageID" => addressing.message_id = text(),
                "RelatesTo" => addressing.relates_to = text(),
                "From" => addressing.from = address(),
                "ReplyTo" => addressing.reply_to = address(),
                "FaultTo" => addressing.fault_to = address(),
                _ => {}
            }
        }
    }
    context.addressing = addressing;
    Ok(())
}
