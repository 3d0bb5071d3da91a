//! Runs a sequence with a message and without HTTP, for unit tests of configurations (`busbar test`).

use crate::engine::exchange::client_of;
use crate::engine::{Ending, begin_request, drive};
use crate::http::dispatch::Bus;
use crate::runtime::context::Context;
use crate::runtime::progress::Waits;
use crate::runtime::request::{Client, Inbound};
use message::envelope::PAYLOAD;
use message::{Format, Headers, Method, Payload};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use transport::Body;

/// Where messages seem to come from: this machine.
pub(crate) const CLIENT: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9));

/// A message as a client sends it.
#[derive(Debug)]
pub struct Message {
    /// The method.
    pub method: Method,
    /// Path and query.
    pub target: String,
    /// Header fields.
    pub headers: Headers,
    /// The body.
    pub body: Body,
}

/// The context of a message that no step has seen.
pub fn context(bus: &Bus, message: Message) -> Context {
    let Message { method, target, headers, body } = message;
    let client = client_of(&method, headers.get("Content-Type"), &headers);
    let inbound = Inbound::of_nobody(method, target, client, &headers);
    let inbound = Inbound { service_length: 0, peer: CLIENT, local: CLIENT, ..inbound };
    let payload = Payload::arrived(body, &headers, client == Client::Rest);
    Context::new(bus.plan(), bus.services(), Arc::new(inbound), headers, payload)
}

/// A message as a sequence leaves it.
pub struct Left {
    /// The message.
    pub context: Context,
    /// What went wrong and was handled nowhere.
    pub fault: Option<String>,
}

/// Runs the sequence of a name. `None`: there is no such sequence.
///
/// `prepare` is done before the first step.
pub async fn mediate(
    bus: &Bus,
    sequence: &str,
    message: Message,
    prepare: impl FnOnce(&mut Context),
) -> Option<Left> {
    let mut context = context(bus, message);
    prepare(&mut context);
    let list = context.plan.sequences.get(sequence).copied()?;
    begin_request(&mut context, Some(list));
    if let Ending::Detach(flow) = drive(&mut context, None).await {
        // No client waits for an early answer.
        context.progress.client = Waits::Nobody;
        drive(&mut context, Some(flow)).await;
    }
    let fault = context.progress.failure.filter(|failure| !failure.handled).map(|_| {
        let message = context.properties.get("ERROR_MESSAGE").map(ToString::to_string);
        message.unwrap_or_else(|| "it ended with a fault".to_owned())
    });
    // An answer does not outlive the connection that it comes from. What is wrong with it shows where it is read.
    let limits = context.services.limits.clone();
    let _ = context.payload.buffer(&limits).await;
    Some(Left { context, fault })
}

/// The body of a message: JSON or text as it is, else the first element of the body.
pub fn body(context: &mut Context) -> String {
    let limits = context.services.limits.clone();
    if context.payload.is_empty() {
        return String::new();
    }
    // As it came, where it has no XML.
    let as_is = context.payload.bytes().cloned();
    let payload = context.envelope().ok().and_then(|envelope| {
        let element = envelope.payload()?;
        Some(envelope.document.is_element(element, PAYLOAD, "text"))
    });
    let written = match (context.payload.is_json(), payload, as_is) {
        (false, None, Some(bytes)) => Ok(bytes),
        (true, ..) => context.payload.write(Format::Json, &limits),
        (_, Some(true), _) => context.payload.write(Format::Text, &limits),
        _ => context.payload.write(Format::Xml, &limits),
    };
    written.map_or_else(|why| why.to_string(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}
