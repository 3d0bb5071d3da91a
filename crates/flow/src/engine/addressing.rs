//! WS-Addressing headers: those of an arriving SOAP message become facts of the message, and an endpoint with
//! `enableAddressing` writes its own.
//!
//! They are only looked for where the beginning of the message names a WS-Addressing namespace, so that other
//! messages stay unread.

use crate::runtime::context::Context;
use crate::runtime::endpoint::{AddressingVersion, Outgoing};
use crate::runtime::fault::Fault;
use crate::runtime::mediator::Need;
use crate::runtime::request::Client;
use crate::runtime::stage::{Stage, Staged, Way};
use memchr::memmem;
use message::envelope::{WSA_FINAL, WSA_SUBMISSION};
use message::{Envelope, Kind, Value};
use std::cell::RefCell;
use std::sync::LazyLock;
use xml::NodeId;

/// What both WS-Addressing namespaces contain.
static MARK: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new("08/addressing"));

/// How far into the message the namespace is looked for.
const WINDOW: usize = 4096;

/// Whether the body is the first child of the envelope, with no comment before it: most messages are told by a look at their
/// first two tags.
fn goes_without_header(window: &[u8]) -> bool {
    /// The beginning that was looked at last, where it had no header: what begins so has none either.
    const LONGEST: usize = 512;
    thread_local! {
        static LAST: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    LAST.with_borrow_mut(|last| {
        if !last.is_empty() && window.starts_with(last) {
            return true;
        }
        let Some(end) = end_without_header(window) else { return false };
        if end <= LONGEST {
            last.clear();
            last.extend_from_slice(&window[..end]);
        }
        true
    })
}

/// Where the tag of the body ends, if it is the first child of the envelope.
fn end_without_header(window: &[u8]) -> Option<usize> {
    let mut rest = window;
    loop {
        let [b'<', tag @ ..] = rest.trim_ascii_start() else { return None };
        // An apostrophe may hide the end of the tag in a value.
        let end = memchr::memchr2(b'>', b'\'', tag).filter(|&end| tag[end] == b'>')?;
        rest = &tag[end + 1..];
        let tag = &tag[..end];
        if let [b'?', .., b'?'] = tag {
            continue;
        }
        let space = memchr::memchr3(b' ', b'\n', b'\t', tag);
        let name = &tag[..space.unwrap_or(end)];
        if !name.ends_with(b":Envelope") || !is_whole(tag) {
            return name.ends_with(b":Body").then(|| window.len() - rest.len());
        }
    }
}

/// Whether a tag without apostrophes that was cut off at a `>` ends there, and not within the value of an attribute.
fn is_whole(tag: &[u8]) -> bool {
    match tag {
        // Only a quote that opens stands behind these.
        [.., b'=' | b' ' | b'\t' | b'\r' | b'\n', b'"'] => false,
        [.., b'"'] => true,
        _ => memchr::memchr(b'"', tag).is_none(),
    }
}

/// Whether a message that begins so has WS-Addressing headers to look for; `None`: more of it is needed to tell.
fn names_a_namespace(bytes: &[u8], complete: bool) -> Option<bool> {
    let window = &bytes[..bytes.len().min(WINDOW)];
    if goes_without_header(window) {
        return Some(false);
    }
    if MARK.find(window).is_some() {
        return Some(true);
    }
    (complete || bytes.len() >= WINDOW).then_some(false)
}

/// As [`names_a_namespace`], for what is here of a message.
fn found_so_far(context: &Context) -> Option<bool> {
    match (context.payload.stream(), context.payload.bytes()) {
        (Some(stream), _) => names_a_namespace(stream.buffered(), stream.is_complete()),
        (None, Some(bytes)) => names_a_namespace(bytes, true),
        (None, None) => Some(false),
    }
}

/// As much of the message is waited for as tells: a body may come long after its head.
async fn found(context: &mut Context) -> bool {
    loop {
        if let Some(found) = found_so_far(context) {
            return found;
        }
        let Some(stream) = context.payload.stream_mut() else { return false };
        let more = std::future::poll_fn(|cx| stream.poll_more(cx)).await;
        match more {
            Ok(true) => {}
            Ok(false) => {
                let bytes = context.payload.stream().map_or(&[][..], |stream| stream.buffered());
                return names_a_namespace(bytes, true) == Some(true);
            }
            // The step that reads the body reports the failure.
            Err(_) => return false,
        }
    }
}

/// Whether a message that comes in may have such headers.
fn is_soap(context: &Context) -> bool {
    match context.progress.asked.is_answered() {
        true => matches!(context.payload.reading().kind, Kind::Soap11 | Kind::Soap12 | Kind::Related),
        false => matches!(context.inbound.client, Client::Soap(_)),
    }
}

/// WS-Addressing of a service: the headers of SOAP requests become facts of the message, and headers of the sender of
/// a response are not passed on.
pub(crate) struct OfService;

/// WS-Addressing of an endpoint (`enableAddressing`): requests get headers, those of answers are read.
#[derive(Debug)]
pub struct OfEndpoint;

impl Stage for OfService {
    fn name(&self) -> &'static str {
        "WS-Addressing"
    }

    fn need(&self, way: Way) -> Need {
        match way {
            Way::In => Need::Prefix,
            Way::Out => Need::Nothing,
        }
    }

    fn reason(&self, way: Way) -> &'static str {
        match way {
            Way::In => {
                "the first 4 KB of a SOAP request tell whether it has such headers; with them it is read"
            }
            Way::Out => "",
        }
    }

    fn passes(&self, way: Way, context: &Context) -> bool {
        match way {
            Way::In => !is_soap(context) || found_so_far(context) == Some(false),
            Way::Out => !context.payload.is_built(),
        }
    }

    fn comes_in<'a>(&'a self, context: &'a mut Context) -> Staged<'a> {
        Box::pin(read(context))
    }

    fn goes_out(&self, context: &mut Context, _: Option<&Outgoing>) -> Result<(), Fault> {
        strip(context).map(|_| ())
    }
}

impl Stage for OfEndpoint {
    fn name(&self) -> &'static str {
        "WS-Addressing"
    }

    fn need(&self, way: Way) -> Need {
        match way {
            Way::In => Need::Prefix,
            Way::Out => Need::Whole,
        }
    }

    fn reason(&self, way: Way) -> &'static str {
        match way {
            Way::In => {
                "the first 4 KB of a SOAP answer tell whether it has such headers; with them it is read"
            }
            Way::Out => "WS-Addressing headers are written",
        }
    }

    fn passes(&self, way: Way, context: &Context) -> bool {
        way == Way::In && (!is_soap(context) || found_so_far(context) == Some(false))
    }

    fn comes_in<'a>(&'a self, context: &'a mut Context) -> Staged<'a> {
        Box::pin(read(context))
    }

    fn goes_out(&self, context: &mut Context, to: Option<&Outgoing>) -> Result<(), Fault> {
        to.map_or(Ok(()), |outgoing| write(context, outgoing))
    }
}

/// Fills [`Context::addressing`] from the message's headers.
///
/// # Errors
/// The message has to be read for it, and cannot be.
pub(crate) async fn read(context: &mut Context) -> Result<(), Fault> {
    if !is_soap(context) || !found(context).await {
        return Ok(());
    }
    context.receive_body().await?;
    super::compute::by_size(context, 0, |context| {
        take(context);
        Ok(())
    })
    .await
}

/// As [`read`], of a message that is there.
fn take(context: &mut Context) {
    let limits = context.services.limits.clone();
    let mut addressing = std::mem::take(&mut context.addressing);
    // A body that is not an envelope is reported by the step that reads it.
    if let Ok(envelope) = context.payload.peek(&limits)
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
}

/// The action of a message that has none.
const NO_ACTION: &str = "urn:anonOutInOpResponse";

/// The address of replies on the connection that the request came on, as the submission of 2004 names it.
const SUBMISSION_ANONYMOUS: &str = "http://schemas.xmlsoap.org/ws/2004/08/addressing/role/anonymous";

fn is_addressing(envelope: &Envelope, block: NodeId) -> bool {
    matches!(envelope.document.namespace(block), WSA_FINAL | WSA_SUBMISSION)
}

/// The WS-Addressing header blocks of an envelope.
fn blocks(envelope: &Envelope) -> Vec<NodeId> {
    let Some(header) = envelope.header else { return Vec::new() };
    envelope.elements_of(header).filter(|&block| is_addressing(envelope, block)).collect()
}

/// `PRESERVE_WS_ADDRESSING`.
pub(crate) fn preserved(context: &Context) -> bool {
    context.properties.get("PRESERVE_WS_ADDRESSING").is_some_and(Value::is_true)
}

/// Removes the WS-Addressing headers of the sender, where the message was read anyway; returns whether there were
/// any.
///
/// # Errors
/// The payload cannot be changed.
pub(crate) fn strip(context: &mut Context) -> Result<bool, Fault> {
    if !context.payload.is_built() {
        return Ok(false);
    }
    let Some(envelope) = context.payload.frame() else { return Ok(false) };
    let Some(header) = envelope.header else { return Ok(false) };
    let any = envelope.elements_of(header).any(|block| is_addressing(envelope, block));
    if !any || context.payload.is_json() || preserved(context) {
        return Ok(false);
    }
    let envelope = context.envelope_mut()?;
    for block in blocks(envelope) {
        envelope.document.detach(block);
    }
    Ok(true)
}

/// Removes the sender's WS-Addressing headers and writes those of the endpoint. Preserved headers stay as they are, and
/// only what is missing is written.
///
/// # Errors
/// The payload cannot be read.
pub(crate) fn write(context: &mut Context, outgoing: &Outgoing) -> Result<(), Fault> {
    let preserve = preserved(context);
    if preserve && outgoing.addressing.is_none() {
        return Ok(());
    }
    let there = match context.payload.frame() {
        Some(frame) => blocks(frame),
        None => blocks(context.envelope()?),
    };
    if there.is_empty() && outgoing.addressing.is_none() {
        return Ok(());
    }
    let facts = context.addressing.clone();
    let callback =
        outgoing.separate_listener.then(|| crate::engine::callback::address(context)).transpose()?;
    // An action must not be empty; this is what WSO2 says for a message without one.
    let action = facts.action.clone().or_else(|| context.soap_action()).filter(|action| !action.is_empty());
    let action = action.unwrap_or_else(|| NO_ACTION.to_owned());
    let id = crate::runtime::identifier::unique(context.number);
    let envelope = context.envelope_mut()?;
    // A fact that the sender's headers have is not written as a fact of the bus.
    let mut sender_headers = Vec::new();
    let mut names = Vec::new();
    let submission = there.iter().any(|&block| envelope.document.namespace(block) == WSA_SUBMISSION);
    for block in there {
        // The response is expected here, whatever address the sender gave for it.
        if callback.is_some() && envelope.document.local(block) == "ReplyTo" {
            envelope.document.detach(block);
            continue;
        }
        let name = envelope.document.local(block).to_owned();
        sender_headers.push((name.clone(), envelope.document.string_value(block).trim().to_owned()));
        names.push(name);
        if !preserve {
            envelope.document.detach(block);
        }
    }
    let Some(version) = outgoing.addressing else { return Ok(()) };
    let new = |name: &str, fact: &Option<String>| {
        let written = fact.clone()?;
        let is_of_sender =
            sender_headers.iter().any(|(sender_name, value)| sender_name == name && *value == written);
        (!is_of_sender).then_some(written)
    };
    let address = match outgoing.request_target.starts_with('/') {
        true => format!("{}{}", outgoing.target, outgoing.request_target),
        false => outgoing.request_target.clone(),
    };
    let version = match version {
        AddressingVersion::Received if submission => AddressingVersion::Submission,
        version => version,
    };
    let (namespace, reply_to) = match version {
        AddressingVersion::Final | AddressingVersion::Received => {
            (WSA_FINAL, new("ReplyTo", &facts.reply_to))
        }
        AddressingVersion::Submission => (
            WSA_SUBMISSION,
            Some(new("ReplyTo", &facts.reply_to).unwrap_or_else(|| SUBMISSION_ANONYMOUS.to_owned())),
        ),
    };
    let reply_to = callback.or(reply_to);
    let header = envelope.header_or_new();
    let document = &mut envelope.document;
    document.declare_namespace(header, "wsa", namespace);
    for (name, value, is_reference) in [
        ("To", Some(address), false),
        ("ReplyTo", reply_to, true),
        ("From", new("From", &facts.from), true),
        ("FaultTo", new("FaultTo", &facts.fault_to), true),
        ("MessageID", Some(id), false),
        ("Action", Some(action), false),
        ("RelatesTo", new("RelatesTo", &facts.relates_to), false),
    ] {
        let Some(value) = value.filter(|_| !preserve || !names.iter().any(|there| there == name)) else {
            continue;
        };
        let mut element = document.append_element(header, "wsa", namespace, name);
        if is_reference {
            element = document.append_element(element, "wsa", namespace, "Address");
        }
        document.append_text(element, &value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{goes_without_header, read};
    use crate::testing;
    use message::{Body, BodyError, BodyStream, Payload};
    use std::any::Any;
    use std::task::{Context as Task, Poll};

    /// A body of which a byte arrives at a time, after its head.
    struct Bytewise(Vec<u8>, usize);

    impl BodyStream for Bytewise {
        fn buffered(&self) -> &[u8] {
            &self.0[..self.1]
        }

        fn poll_more(&mut self, _: &mut Task<'_>) -> Poll<Result<bool, BodyError>> {
            let more = self.1 < self.0.len();
            self.1 += usize::from(more);
            Poll::Ready(Ok(more))
        }

        fn consume(&mut self, n: usize) {
            self.0.drain(..n);
            self.1 -= n;
        }

        fn is_complete(&self) -> bool {
            self.1 == self.0.len()
        }

        fn exact_len(&self) -> Option<u64> {
            None
        }

        fn into_any(self: Box<Self>) -> Box<dyn Any + Send> {
            self
        }
    }

    /// What the last message began with says nothing of one that begins otherwise.
    #[test]
    fn the_beginning_that_was_seen_last_tells_only_of_its_like() {
        let (plain, header) = ("<s:Envelope xmlns:s=\"x\"><s:Body>", "<s:Envelope xmlns:s=\"x\"><s:Header>");
        for (window, without) in [
            (plain, true),
            ("<s:Envelope xmlns:s=\"x\"><s:Body>more", true),
            (header, false),
            ("<s:Envelope xmlns:s=\"x\"><s:Body", false),
            (plain, true),
            ("", false),
            ("<o:Envelope xmlns:o=\"x\"><o:Body>", true),
            (plain, true),
        ] {
            assert_eq!(goes_without_header(window.as_bytes()), without, "{window}");
        }
    }

    #[test]
    fn headers_are_read_also_where_the_body_comes_after_its_head() {
        let nothing = "x".repeat(8000);
        let soap = |header: &str| {
            format!(
                "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'>{header}<s:Body><a>{nothing}</a></s:Body></s:Envelope>"
            )
        };
        let wsa = "<s:Header xmlns:w='http://www.w3.org/2005/08/addressing'><w:MessageID>urn:1</w:MessageID></s:Header>";
        let registry = testing::registry(Vec::new());
        for (message, id, arrived) in [
            (soap(wsa), Some("urn:1"), None),
            // As much as tells, and no more.
            (soap("").replace('\'', "\""), None, Some(soap("").find("<a>").unwrap_or_default())),
            (soap("<s:Header><own/></s:Header>"), None, Some(super::WINDOW)),
            (String::new(), None, Some(0)),
            ("<a>".to_owned(), None, Some(3)),
        ] {
            let tested = testing::main(&registry, "");
            let mut context = tested.context(&[("Content-Type", "text/xml"), ("SOAPAction", "")], "");
            let body = Body::Stream(Box::new(Bytewise(message.into_bytes(), 0)));
            context.payload = Payload::arrived(body, &context.headers, false);
            testing::block_on(read(&mut context)).expect("nothing is wrong with it");
            assert_eq!(context.addressing.message_id.as_deref(), id);
            let waiting = context.payload.stream_mut().map(|stream| stream.buffered().len());
            assert_eq!(waiting, arrived);
        }
    }

    #[test]
    fn the_first_tags_tell_that_there_is_no_header() {
        for (message, without) in [
            ("<s:Envelope xmlns:s=\"u\"><s:Body>", true),
            ("<?xml version=\"1.0\"?>\n<s:Envelope xmlns:s=\"u\">\n  <s:Body wsu:Id=\"b\">", true),
            ("<s:Envelope xmlns:s=\"u\"><s:Header/><s:Body>", false),
            ("<s:Envelope xmlns:s=\"u\"><!-- <s:Header> --><s:Body>", false),
            ("<s:Envelope a=\"><s:Body>\"><s:Header>", false),
            ("<s:Envelope a='><s:Body>'><s:Header>", false),
            ("<!DOCTYPE x><s:Envelope><s:Body>", false),
            ("<s:Envelope xmlns:s=\"u\"><s:Body", false),
            ("<s:Envelope", false),
            ("{\"a\": 1}", false),
            ("", false),
        ] {
            assert_eq!(goes_without_header(message.as_bytes()), without, "{message}");
        }
    }
}
