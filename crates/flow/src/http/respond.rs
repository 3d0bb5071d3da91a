//! The answer to the client: status, headers and the payload in the form that the client can read.

use crate::engine::compute;
use crate::runtime::context::{Context, Owner};
use crate::runtime::fault::Fault;
use crate::runtime::plan::Plan;
use crate::runtime::progress::Takes;
use crate::runtime::request::{Client, Inbound};
use crate::runtime::stage::{self, Way};
use crate::writing::{
    current_form, explicit_form, is_coded_here, is_rewritten, untouched, write, write_sealed,
};
use message::{Envelope, Format, Kind, MediaType, Method, Payload, PayloadLimits, SoapVersion, Version};
use std::sync::Arc;
use transport::{Body, Framing, Response, ResponseHead};
use xml::Document;

/// Headers of a request that make no sense in an answer.
const REQUEST_ONLY: &[&str] = &[
    "Host",
    "Accept",
    "Accept-Encoding",
    "Accept-Language",
    "Accept-Charset",
    "Cookie",
    "SOAPAction",
    "User-Agent",
    "Authorization",
    "Proxy-Authorization",
    "Expect",
    "Referer",
    "Origin",
    "Range",
    "If-Match",
    "If-None-Match",
    "If-Modified-Since",
    "If-Unmodified-Since",
    "If-Range",
    "Max-Forwards",
    "Content-Length",
    "TE",
    "Upgrade-Insecure-Requests",
];

/// Makes the response of a message that answers.
///
/// # Errors
/// The payload has to be read to be given to this client, and cannot be.
pub(crate) async fn response(context: &mut Context) -> Result<Response, Fault> {
    let mut body = match relayed(context) {
        Some(body) => body,
        None => body(context).await?,
    };
    if !context.axis2.is_empty() {
        body = as_asked(context, body).await?;
    }
    let status = answer_status(context);
    let reason = match context.axis2.get("HTTP_SC_DESC") {
        Some(reason) => header_safe(&reason.to_string()).into(),
        None if context.axis2.get("HTTP_SC").is_none() && context.status == Some(status) => {
            context.reason.clone().unwrap_or_default()
        }
        None => message::reason_phrase(status).into(),
    };
    if context.request_headers {
        for name in REQUEST_ONLY {
            context.headers.remove(name);
        }
    }
    if context.request_headers || matches!(context.owner, Owner::Resource(..)) {
        context.correlate();
    }
    let mut headers = std::mem::take(&mut context.headers);
    if !context.services.settings.preserve_server {
        headers.remove("Server");
    }
    if let Owner::Resource(api, resource) = context.owner {
        crate::http::cors::announce(context, &context.plan.apis[api].resources[resource].allow, &mut headers);
    }
    if status == 405
        && !headers.contains("Allow")
        && let Some(allow) = context.attached::<crate::http::routing::Allow>()
    {
        headers.set("Allow", &allow.0);
    }
    if matches!(body, Body::Empty) && context.inbound.method != Method::Head && context.request_headers {
        headers.remove("Content-Type");
        headers.remove("Content-Encoding");
    }
    let close = context.axis2_is_true("NO_KEEPALIVE") || context.axis2_is_true("FORCE_CONNECTION_CLOSE");
    let head = ResponseHead { status, reason, version: Version::Http11, headers };
    let about = context.number;
    Ok(Response { head, body, close, framing: Framing::Auto, about, on_end: None, dialogue: None })
}

/// What properties ask of the body as it goes out: its length, a tag of it.
async fn as_asked(context: &mut Context, body: Body) -> Result<Body, Fault> {
    let tagged = context.axis2_is_true("HTTP_ETAG");
    let held = tagged || context.axis2_is_true("DISABLE_CHUNKING");
    let body = match body {
        Body::Stream(stream) if held && (tagged || stream.exact_len().is_none()) => {
            let mut payload = Payload::received(Body::Stream(stream), message::Reading::XML);
            payload.buffer(&context.services.limits).await?;
            payload.take_body()
        }
        body => body,
    };
    if let (true, Body::Bytes(bytes)) = (tagged, &body) {
        let bytes = bytes.clone();
        let tag = move |_: &mut Context| {
            let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &bytes);
            Ok(crate::text::hex(&digest.as_ref()[..16]))
        };
        let tag = compute::by_size(context, body.exact_len().unwrap_or(0) as usize, tag).await?;
        context.headers.set("ETag", format!("\"{tag}\""));
    }
    Ok(body)
}

/// A text that can stand in a status line.
fn header_safe(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).collect()
}

/// The status that the message is answered with as it is now.
pub fn answer_status(context: &mut Context) -> u16 {
    if context.axis2_is_true("SC_ACCEPTED") {
        return 202;
    }
    if let Some(value) = context.axis2.get("HTTP_SC") {
        match value
            .as_integer()
            .and_then(|status| u16::try_from(status).ok())
            .filter(|s| (200..=999).contains(s))
        {
            Some(status) => return status,
            None => {
                tracing::warn!(message_id = %context.message_id(), place = context.place(), "HTTP_SC `{value}` is not an HTTP status and is ignored")
            }
        }
    }
    let fault =
        context.payload.is_changed() && context.payload.is_known_fault() || context.progress.pox_fault;
    if let Some(status) = context.status {
        // The backend's status stays, but a fault that was made here is no success.
        return if fault && status < 400 { fault_status(context) } else { status };
    }
    if fault {
        return fault_status(context);
    }
    200
}

fn fault_status(context: &Context) -> u16 {
    if context.axis2_is_true("FAULTS_AS_HTTP_200") { 200 } else { 500 }
}

/// The body of a response that no step has touched and that the client can read as it is: most responses, and none of them waits.
fn relayed(context: &mut Context) -> Option<Body> {
    let relayed = !context.payload.is_changed()
        && context.axis2.is_empty()
        && explicit_form(context).is_none()
        && context.passes(Way::Out)
        && wanted_soap_version(context).is_none()
        && !is_coded_here(context);
    relayed.then(|| untouched(context))
}

async fn body(context: &mut Context) -> Result<Body, Fault> {
    if context.axis2_is_true("NO_ENTITY_BODY") || context.axis2_is_true("SC_ACCEPTED") {
        return Ok(Body::Empty);
    }
    if stage::is_sealed(context.plan.stages(context.owner), context) {
        context.receive_body().await?;
        // However small it is, it takes long.
        return compute::once_on(context, compute::ALWAYS, sealed).await;
    }
    let form = explicit_form(context);
    if !context.passes(Way::Out) {
        let plan = Arc::clone(&context.plan);
        if stage::need_to_leave(plan.stages(context.owner), context).is_whole() {
            context.receive_body().await?;
        }
        compute::by_size(context, 0, move |context| {
            stage::goes_out(plan.stages(context.owner), context, None)
        })
        .await?;
    }
    if !context.payload.is_changed() && form.is_none() && (context.axis2.is_empty() || !is_rewritten(context))
    {
        let Some(version) = wanted_soap_version(context) else {
            return match is_coded_here(context) {
                true => compute::by_size(context, 0, |context| Ok(untouched(context))).await,
                false => Ok(untouched(context)),
            };
        };
        context.receive_body().await?;
        if context.payload.is_empty() {
            return Ok(Body::Empty);
        }
        let written = compute::by_size(context, 0, move |context| {
            open_envelope(context)?;
            match write(context, Format::Soap(version), None, None, None) {
                // Labelled as SOAP, and none: passed on as it is, as to clients of the version in the label.
                Err(_) if context.progress.takes != Takes::Pox => Ok(untouched(context)),
                written => written.map(Body::Bytes),
            }
        });
        return written.await;
    }
    context.receive_body().await?;
    compute::by_size(context, 0, move |context| written(context, form)).await
}

/// The body of an answer that stages seal: SOAP of the client's version, whatever a backend answered.
fn sealed(context: &mut Context) -> Result<Body, Fault> {
    let plan = Arc::clone(&context.plan);
    let stages = plan.stages(context.owner);
    stage::goes_out(stages, context, None)?;
    if context.payload.is_empty() {
        return Ok(Body::Empty);
    }
    open_envelope(context)?;
    let version = match context.inbound.client {
        Client::Soap(version) => version,
        _ => SoapVersion::V11,
    };
    write_sealed(context, Format::Soap(version), None, stages).map(Body::Bytes)
}

/// The body of an answer that is there, written in the form that the client can read.
fn written(context: &mut Context, form: Option<(Format, Option<String>)>) -> Result<Body, Fault> {
    // A SOAP fault made here becomes an <Exception> for a client that does not speak SOAP.
    if context.is_rest() && context.payload.is_changed() {
        fault_to_exception(context);
    }
    let (mut format, content_type) = form.unwrap_or_else(|| current_form(context));
    match (context.inbound.client, format) {
        (Client::Soap(version), Format::Soap(_)) => format = Format::Soap(version),
        // A REST client that asked with text/xml, or without any type, gets the bare payload.
        (Client::Rest, Format::Soap(_)) if context.payload.is_changed() && !is_envelope_wanted(context) => {
            format = Format::Xml;
        }
        _ => {}
    }
    if context.payload.is_empty() {
        return Ok(Body::Empty);
    }
    if matches!(format, Format::Soap(_)) {
        open_envelope(context)?;
    }
    let label = content_type
        .as_deref()
        .filter(|media_type| !(format == Format::Xml && Kind::of(media_type) == Kind::Soap12));
    let bytes = write(context, format, label, None, None)?;
    Ok(if bytes.is_empty() { Body::Empty } else { Body::Bytes(bytes) })
}

/// An endpoint that takes messages without their envelope may answer with one: it is not put into another.
fn open_envelope(context: &mut Context) -> Result<(), Fault> {
    if context.progress.takes == Takes::Pox && matches!(context.inbound.client, Client::Soap(_)) {
        let limits = context.services.limits.clone();
        context.payload.open_envelope(&limits)?;
    }
    Ok(())
}

/// Whether a REST client gets an envelope after all: `messageType` says SOAP 1.2 explicitly.
fn is_envelope_wanted(context: &Context) -> bool {
    context
        .axis2
        .get("messageType")
        .is_some_and(|value| Kind::of(message::MediaType::parse(&value.to_string()).essence) == Kind::Soap12)
}

/// The client's SOAP version, if the payload is SOAP of the other one, or the answer of an endpoint that took the
/// message out of its envelope.
fn wanted_soap_version(context: &Context) -> Option<SoapVersion> {
    let Client::Soap(version) = context.inbound.client else { return None };
    let reading = context.payload.reading();
    let version_of_payload = match reading.kind {
        Kind::Soap11 if !reading.rest => SoapVersion::V11,
        Kind::Soap12 => SoapVersion::V12,
        Kind::Xml | Kind::Soap11 if context.progress.takes == Takes::Pox => return Some(version),
        _ => return None,
    };
    (version_of_payload != version && !context.payload.is_empty()).then_some(version)
}

fn fault_to_exception(context: &mut Context) {
    // Pieces say without their tree whether they are a fault.
    if context.payload.is_assembled() && !context.payload.is_known_fault() {
        return;
    }
    let limits = context.services.limits.clone();
    let Ok(envelope) = context.payload.envelope(&limits) else { return };
    let Some(fault) = envelope.fault() else { return };
    let (reason, detail) = envelope.fault_texts(fault);
    let text = if detail.is_empty() { reason } else { detail };
    context.progress.pox_fault = true;
    let Ok(envelope) = context.payload.envelope_mut(&limits) else { return };
    envelope.clear_body();
    let body = envelope.body;
    let exception = envelope.document.append_element(body, "", "", "Exception");
    envelope.document.append_text(exception, &text);
}

/// The answer for a client whose flow ended without one.
///
/// A flow that failed before anything was sent and whose own fault sequence ran to its end answers 202, as WSO2
/// does; every other failure is a 5xx with the message id, never silence.
pub(crate) fn unanswered(context: &mut Context, failure: Option<u16>) -> Response {
    let handled = context.progress.failure.is_some_and(|fault| fault.handled);
    let failed = failure.or(context.progress.failure.map(|fault| fault.status));
    let status = match failed {
        Some(status) if context.progress.asked.was_sent() || !handled || status != 500 => status,
        _ => 202,
    };
    if status < 400 {
        return Response::empty(status);
    }
    let text = format!(
        "The message could not be processed ({}); the log tells more under message id {}.",
        message::reason_phrase(status),
        context.message_id()
    );
    let response = told(context, status, &text);
    match status {
        503 => {
            let ready_in = context.progress.failure.map_or(0, |fault| fault.ready_in);
            response.with("Retry-After", ready_in.max(1).to_string())
        }
        _ => response,
    }
}

/// The answer for a client whose message was not let in by a stage that seals: no step sees it, and it is told no more than that.
pub(crate) fn not_let_in(context: &mut Context, fault: &Fault) -> Response {
    tracing::warn!(
        message_id = %context.message_id(),
        service = context.owner_name(),
        peer = %context.inbound.peer,
        "refused: {}",
        fault.message
    );
    let Some(refusal) = context.detach::<stage::Refusal>() else {
        return unanswered(context, Some(fault.status));
    };
    let version = match context.inbound.client {
        Client::Soap(version) => version,
        Client::Rest => SoapVersion::V11,
    };
    let mut envelope = Envelope::empty(version);
    let (code, soap) = match version {
        SoapVersion::V11 => ("Client", ""),
        SoapVersion::V12 => ("Sender", version.namespace()),
    };
    let fault = message::envelope::Fault { code, reason: refusal.reason, role: None, node: None };
    let node = envelope.append_fault(&fault, None);
    let qualified = format!("{}:{}", refusal.prefix, refusal.code);
    let document = &mut envelope.document;
    let child = |document: &Document, node, local: &str| {
        document.children(node).find(|&child| document.local(child) == local)
    };
    match version {
        SoapVersion::V11 => {
            if let Some(code) = child(document, node, "faultcode") {
                document.remove_children(code);
                document.declare_namespace(code, refusal.prefix, refusal.namespace);
                document.append_text(code, &qualified);
            }
        }
        SoapVersion::V12 => {
            if let Some(code) = child(document, node, "Code") {
                let prefix = document.prefix(code).to_owned();
                let subcode = document.append_element(code, &prefix, soap, "Subcode");
                let value = document.append_element(subcode, &prefix, soap, "Value");
                document.declare_namespace(value, refusal.prefix, refusal.namespace);
                document.append_text(value, &qualified);
            }
        }
    }
    let bytes = Payload::of_envelope(envelope)
        .write(Format::Soap(version), &context.services.limits)
        .unwrap_or_default();
    Response::new(500, Body::Bytes(bytes))
        .with("Content-Type", format!("{}; charset=UTF-8", version.media_type()))
}

/// A text for a client, in the form that it can read.
fn told(context: &Context, status: u16, text: &str) -> Response {
    match context.inbound.client {
        Client::Soap(version) => {
            let mut envelope = Envelope::empty(version);
            let code = if version == SoapVersion::V11 { "Server" } else { "Receiver" };
            envelope
                .append_fault(&message::envelope::Fault { code, reason: text, role: None, node: None }, None);
            let mut payload = Payload::of_envelope(envelope);
            let bytes = payload.write(Format::Soap(version), &context.services.limits).unwrap_or_default();
            Response::new(status, Body::Bytes(bytes))
                .with("Content-Type", format!("{}; charset=UTF-8", version.media_type()))
        }
        Client::Rest => {
            let sent = context.inbound.content_type.as_deref().map(|sent| MediaType::parse(sent).kind());
            let (media_type, body) = match sent {
                Some(Kind::Json) => {
                    let mut json = String::from("{\"error\":");
                    message::json::write_string(text, &mut json);
                    json.push('}');
                    ("application/json", json)
                }
                // As WSO2 writes faults for clients of XML that speak no SOAP.
                Some(kind @ (Kind::Xml | Kind::Soap11)) => {
                    let media_type = if kind == Kind::Xml { "application/xml" } else { "text/xml" };
                    (media_type, element_of("Exception", text))
                }
                _ => ("text/plain", format!("{text}\n")),
            };
            Response::new(status, Body::Bytes(body.into()))
                .with("Content-Type", format!("{media_type}; charset=UTF-8"))
        }
    }
}

/// An element in no namespace with a text.
fn element_of(name: &str, text: &str) -> String {
    let mut document = Document::new();
    let element = document.append_element(Document::ROOT, "", "", name);
    document.append_text(element, text);
    xml::to_string(&document, element)
}

/// A value as a header or body text, for the dispatcher's own answers.
pub(crate) fn text(status: u16, text: impl Into<String>) -> Response {
    Response::new(status, Body::Bytes(text.into().into())).with("Content-Type", "text/plain; charset=UTF-8")
}

/// 503 for a faulty artifact, without a time: it takes a reload to mend it. The client learns no more than that: what is wrong with it is in the log.
pub(crate) fn left_out(plan: &Plan, inbound: &Inbound, faulty: Option<&usize>) -> Response {
    let Some(faulty) = faulty.and_then(|&at| plan.faulty.get(at)) else { return Response::empty(503) };
    let name = faulty.name.as_deref().unwrap_or_default();
    tracing::debug!(
        place = plan.place(faulty.span),
        "503 for {} {}: the {} `{name}` is left out: {}",
        inbound.method.as_str(),
        inbound.path(),
        faulty.kind,
        faulty.message
    );
    refused_with(503, inbound, "The service is not available: its configuration is faulty")
}

/// 503 for an API that was stopped.
pub(crate) fn stopped(inbound: &Inbound, api: &str) -> Response {
    refused_with(503, inbound, &format!("The API is not available: {api} is stopped"))
}

/// A refusal before any flow runs, with status 500 and in the form that the client speaks, as WSO2 has it.
pub(crate) fn refused(inbound: &Inbound, reason: &str) -> Response {
    refused_with(500, inbound, reason)
}

fn refused_with(status: u16, inbound: &Inbound, reason: &str) -> Response {
    if let Client::Soap(version) = inbound.client {
        return soap_fault_with(status, version, reason);
    }
    let kind =
        inbound.content_type.as_deref().map(|media_type| Kind::of(MediaType::parse(media_type).essence));
    let (content_type, body) = match kind {
        Some(Kind::Json) => {
            let fault = serde_json::json!({
                "Fault": { "faultcode": "soapenv:Server", "faultstring": reason, "detail": null }
            });
            ("application/json", fault.to_string())
        }
        other => {
            let media_type = if other == Some(Kind::Soap11) { "text/xml" } else { "application/xml" };
            (media_type, element_of("faultstring", reason))
        }
    };
    Response::new(status, Body::Bytes(body.into()))
        .with("Content-Type", format!("{content_type}; charset=UTF-8"))
}

/// A refusal because of a limit of this process: 503, to be asked again soon.
pub(crate) fn busy(inbound: &Inbound, why: &str) -> Response {
    refused_with(503, inbound, why).with("Retry-After", "1")
}

/// A SOAP fault with status 500 that the bus itself answers with.
pub(crate) fn soap_fault(version: SoapVersion, reason: &str) -> Response {
    soap_fault_with(500, version, reason)
}

fn soap_fault_with(status: u16, version: SoapVersion, reason: &str) -> Response {
    let mut envelope = Envelope::empty(version);
    let code = if version == SoapVersion::V11 { "Server" } else { "Receiver" };
    envelope.append_fault(&message::envelope::Fault { code, reason, role: None, node: None }, None);
    let bytes = Payload::of_envelope(envelope)
        .write(message::Format::Soap(version), &PayloadLimits::default())
        .unwrap_or_default();
    Response::new(status, Body::Bytes(bytes))
        .with("Content-Type", format!("{}; charset=UTF-8", version.media_type()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_the_reason_of_its_status() {
        for client in [Client::Rest, Client::Soap(SoapVersion::V11)] {
            let inbound =
                Inbound::of_nobody(message::Method::Post, "/".to_owned(), client, &message::Headers::new());
            for (response, status, reason) in [
                (busy(&inbound, "why"), 503, "Service Unavailable"),
                (refused_with(503, &inbound, "why"), 503, "Service Unavailable"),
                (refused(&inbound, "why"), 500, "Internal Server Error"),
            ] {
                assert_eq!((response.head.status, &*response.head.reason), (status, reason));
            }
        }
    }
}
