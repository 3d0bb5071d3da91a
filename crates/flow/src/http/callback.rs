//! Answers of backends that come on a connection of their own ([`crate::engine::callback`]).

use crate::engine::addressing;
use crate::engine::callback::{Callbacks, PATH, Received};
use crate::http::respond::{refused, text};
use crate::runtime::context::Context;
use crate::runtime::plan::Plan;
use crate::runtime::request::{Client, Inbound};
use crate::runtime::services::Services;
use message::{Body, Headers, Kind, Payload, Reading, SoapVersion};
use std::sync::Arc;
use transport::Response;

/// Headers of the request that carries an answer; they do not belong to the answer.
const OF_REQUESTS: &[&str] = &[
    "Host",
    "User-Agent",
    "Accept",
    "Accept-Encoding",
    "Connection",
    "Expect",
    "SOAPAction",
    "Authorization",
    "Transfer-Encoding",
    "Content-Length",
];

/// Whether a path behind `/services/` is the address of answers.
pub(super) fn is_address(services: &Services, rest: &str) -> bool {
    rest.starts_with(PATH) && Callbacks::of(services).is_address(rest)
}

/// What a request to the address is said to be: SOAP, and in logs without the secret.
pub(super) fn inbound(mut inbound: Inbound) -> Inbound {
    let version = match Reading::of(inbound.content_type.as_deref(), None, false).kind {
        Kind::Soap12 => SoapVersion::V12,
        _ => SoapVersion::V11,
    };
    inbound.client = Client::Soap(version);
    if let Some(at) = inbound.target.find(PATH) {
        inbound.target.truncate(at + PATH.len());
    }
    inbound
}

/// Takes a response that came to the address: 202 where a message waits for it.
pub(super) async fn take(
    plan: Arc<Plan>,
    services: Arc<Services>,
    inbound: Arc<Inbound>,
    headers: Headers,
    body: Body,
) -> Response {
    let payload = Payload::arrived(body, &headers, false);
    let mut context = Context::new(plan, services, inbound, headers, payload);
    if let Err(fault) = context.receive_body().await {
        return text(fault.status, format!("{}\n", fault.message));
    }
    let body = match context.payload.whole() {
        Ok(body) => body,
        Err(error) => return text(413, format!("{error}\n")),
    };
    if let Err(fault) = addressing::read(&mut context).await {
        return refused(&context.inbound, &fault.message);
    }
    let related = context.addressing.relates_to.take();
    let mut headers = std::mem::take(&mut context.headers);
    for name in OF_REQUESTS {
        headers.remove(name);
    }
    let id = related.unwrap_or_default();
    if Callbacks::of(&context.services).answer(&id, Received { headers, body }) {
        return Response::empty(202);
    }
    tracing::warn!(relates_to = id, "a response came that no message waits for");
    refused(&context.inbound, &format!("No message waits for a response to {id}"))
}
