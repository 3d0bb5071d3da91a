//! The messages of WS-Eventing (submission of August 2004).

use config::Scope;
use flow::services::Routes;
use flow::url::parse_url;
use flow::{Context, Fault};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Unit};
use message::envelope::{Fault as SoapFault, WSA_FINAL, WSA_SUBMISSION};
use message::{Envelope, SoapVersion, XmlValue};
use std::sync::Arc;
use xml::{Document, NodeId, ParseOptions};

/// The namespace.
pub(super) const WSE: &str = "http://schemas.xmlsoap.org/ws/2004/08/eventing";

/// The one way in which events are delivered.
const PUSH: &str = "http://schemas.xmlsoap.org/ws/2004/08/eventing/DeliveryModes/Push";

/// What a request asks of an event source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Subscribe,
    Unsubscribe,
    Renew,
    GetStatus,
}

/// A fault of WS-Eventing.
#[derive(Debug)]
pub(super) struct Trouble {
    code: &'static str,
    /// The client can do something about it.
    theirs: bool,
    pub reason: String,
}

impl Trouble {
    fn of(code: &'static str, reason: impl Into<String>) -> Trouble {
        Trouble { code, theirs: true, reason: reason.into() }
    }

    fn invalid(reason: impl Into<String>) -> Trouble {
        Trouble::of("InvalidMessage", reason)
    }

    pub(super) fn filter(why: &str) -> Trouble {
        Trouble::of("FilteringRequestedUnavailable", format!("the filter cannot be used: {why}"))
    }

    pub(super) fn unable(reason: impl Into<String>) -> Trouble {
        Trouble { theirs: false, ..Trouble::of("EventSourceUnableToProcess", reason) }
    }

    pub(super) fn unknown(id: &str) -> Trouble {
        Trouble::invalid(format!("there is no subscription {id}, or it has expired"))
    }
}

/// What is asked; `None`: the message is an event.
pub(super) fn request(context: &mut Context) -> Result<Option<Request>, Fault> {
    let envelope = context.envelope()?;
    let document = &envelope.document;
    let Some(element) = envelope.payload().filter(|&node| document.namespace(node) == WSE) else {
        return Ok(None);
    };
    Ok(match document.local(element) {
        "Subscribe" => Some(Request::Subscribe),
        "Unsubscribe" => Some(Request::Unsubscribe),
        "Renew" => Some(Request::Renew),
        "GetStatus" => Some(Request::GetStatus),
        _ => None,
    })
}

/// What a `Subscribe` asks for.
pub(super) struct SubscribeRequest {
    pub address: String,
    /// An envelope with the header blocks that each event gets.
    pub blocks: Option<Envelope>,
    /// The bytes of these as text.
    size_of_blocks: usize,
    pub filter: Option<AskedFilter>,
    pub expires: Option<String>,
}

impl SubscribeRequest {
    /// How many bytes are kept of it.
    pub(super) fn size(&self) -> usize {
        let filter = self.filter.as_ref().map_or(0, |filter| filter.text.len());
        self.address.len() + filter + self.size_of_blocks
    }
}

pub(super) struct AskedFilter {
    pub dialect: Option<String>,
    pub text: String,
    pub scope: Scope,
}

/// What a request holds; a message that cannot be read is none.
fn read(context: &mut Context) -> Result<(&Envelope, NodeId), Trouble> {
    let envelope = context.envelope().map_err(|fault| Trouble::invalid(fault.message))?;
    let element = envelope.payload().ok_or_else(|| Trouble::invalid("the body is empty"))?;
    Ok((envelope, element))
}

fn child(document: &Document, of: NodeId, name: &str) -> Option<NodeId> {
    document.children(of).find(|&node| document.is_element(node, WSE, name))
}

/// A child in one of the namespaces of WS-Addressing.
fn addressing(document: &Document, of: NodeId, name: &str) -> Option<NodeId> {
    let is_it = |node: &NodeId| {
        document.is_element(*node, WSA_FINAL, name) || document.is_element(*node, WSA_SUBMISSION, name)
    };
    document.children(of).find(is_it)
}

fn text(document: &Document, of: NodeId) -> String {
    document.string_value(of).trim().to_owned()
}

pub(super) fn subscription(context: &mut Context) -> Result<SubscribeRequest, Trouble> {
    let (envelope, element) = read(context)?;
    let document = &envelope.document;
    let delivery =
        child(document, element, "Delivery").ok_or_else(|| Trouble::invalid("there is no wse:Delivery"))?;
    let mode = document.attribute(delivery, "", "Mode").unwrap_or(PUSH).trim();
    if mode != PUSH {
        return Err(Trouble::of(
            "DeliveryModeRequestedUnavailable",
            format!("events are pushed ({PUSH}), and not delivered by {mode}"),
        ));
    }
    let to = child(document, delivery, "NotifyTo")
        .ok_or_else(|| Trouble::invalid("there is no wse:NotifyTo in wse:Delivery"))?;
    let address = addressing(document, to, "Address").map(|node| text(document, node)).unwrap_or_default();
    let blocks =
        ["ReferenceParameters", "ReferenceProperties"].iter().find_map(|name| addressing(document, to, name));
    let blocks = blocks.map(|parameters| {
        let mut holder = Envelope::empty(envelope.version);
        let header = holder.header_or_new();
        for block in envelope.elements_of(parameters) {
            holder.document.copy_from(header, document, block);
        }
        // A copy has room for as much as the whole message: what is kept is read anew.
        XmlValue { nodes: vec![holder.root], document: Arc::new(holder.document) }.to_xml()
    });
    let size_of_blocks = blocks.as_ref().map_or(0, String::len);
    let blocks = blocks.map(|text| {
        let read = Document::parse(text, &ParseOptions::default()).map_err(|why| why.to_string());
        let read = read.and_then(|document| Envelope::of_document(document).map_err(|why| why.to_string()));
        read.map_err(|why| Trouble::invalid(format!("the reference parameters cannot be kept: {why}")))
    });
    let blocks = blocks.transpose()?;
    let filter = child(document, element, "Filter").map(|node| {
        let declared = document.in_scope_namespaces(node).into_iter();
        let declared = declared.filter(|(prefix, _)| !matches!(*prefix, "" | "xml"));
        AskedFilter {
            dialect: document.attribute(node, "", "Dialect").map(|dialect| dialect.trim().to_owned()),
            text: text(document, node),
            scope: Scope::new()
                .with(declared.map(|(prefix, uri)| (Arc::from(prefix), Arc::from(uri))).collect()),
        }
    });
    let expires = child(document, element, "Expires").map(|node| text(document, node));
    Ok(SubscribeRequest { address, blocks, size_of_blocks, filter, expires })
}

/// The id of the subscription that a request is about.
pub(super) fn identifier(context: &mut Context) -> Result<String, Trouble> {
    let (envelope, _) = read(context)?;
    let header = envelope.header.ok_or_else(|| Trouble::invalid("there is no header wse:Identifier"))?;
    let found = child(&envelope.document, header, "Identifier");
    found
        .map(|node| text(&envelope.document, node))
        .ok_or_else(|| Trouble::invalid("there is no header wse:Identifier"))
}

/// Whether events may be sent to an address, as far as it says itself: an event is sent as to any address that a message names.
pub(super) fn permitted(address: &str, routes: &Routes) -> Result<(), Trouble> {
    let shown = diagnostics::without_credentials(address);
    let needs = |why: &str| {
        Trouble::invalid(format!("wse:NotifyTo needs an address of http or https, not `{shown}`{why}"))
    };
    let url = parse_url(address).map_err(|error| needs(&format!(": {error}")))?;
    if !matches!(url.scheme.as_str(), "http" | "https") {
        return Err(needs(""));
    }
    match routes.permits(&url.scheme, &url.host, url.port) {
        true => Ok(()),
        false => Err(Trouble::invalid(format!("no events are sent to `{shown}`"))),
    }
}

/// `wse:Expires` of a `Renew`.
pub(super) fn asked_expiry(context: &mut Context) -> Result<Option<String>, Trouble> {
    let (envelope, element) = read(context)?;
    Ok(child(&envelope.document, element, "Expires").map(|node| text(&envelope.document, node)))
}

/// A date with a time, or a duration from now.
pub(super) fn expires(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Timestamp, Trouble> {
    let text = text.trim();
    let wrong = || {
        Trouble::of(
            "UnsupportedExpirationType",
            format!("`{text}` is neither a date with a time nor a duration like P1D or PT2H"),
        )
    };
    if text.starts_with(['P', '-']) && text.contains('P') {
        let span: Span = text.parse().map_err(|_| wrong())?;
        let end = super::in_zone(now, zone).checked_add(span);
        return end.map(|end| end.timestamp()).map_err(|_| wrong());
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    let civil: DateTime = text.parse().map_err(|_| wrong())?;
    civil.to_zoned(zone.clone()).map(|at| at.timestamp()).map_err(|_| wrong())
}

/// As [`expires`], of a request: what is over already is refused.
pub(super) fn future(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Timestamp, Trouble> {
    let at = expires(text, now, zone)?;
    match at > now {
        true => Ok(at),
        false => Err(Trouble::of("InvalidExpirationTime", format!("`{text}` is over already"))),
    }
}

/// An answer with its WS-Addressing headers.
fn begin(context: &mut Context, name: &str) -> (Envelope, &'static str) {
    let request = context.envelope().ok();
    let version = request.map_or(SoapVersion::V11, |envelope| envelope.version);
    let mut wsa = WSA_SUBMISSION;
    let mut message_id = None;
    if let Some(request) = request
        && let Some(header) = request.header
    {
        let document = &request.document;
        let is_final = |block: NodeId| document.namespace(block) == WSA_FINAL;
        wsa = if request.elements_of(header).any(is_final) { WSA_FINAL } else { WSA_SUBMISSION };
        message_id = addressing(document, header, "MessageID").map(|block| text(document, block));
    }
    let mut envelope = Envelope::empty(version);
    let header = envelope.header_or_new();
    let document = &mut envelope.document;
    let root = envelope.root;
    document.declare_namespace(root, "wsa", wsa);
    document.declare_namespace(root, "wse", WSE);
    let action = document.append_element(header, "wsa", wsa, "Action");
    let suffix = if name == "fault" { "/fault".to_owned() } else { format!("/{name}Response") };
    document.append_text(action, &format!("{WSE}{suffix}"));
    if let Some(id) = message_id {
        let relates = document.append_element(header, "wsa", wsa, "RelatesTo");
        document.append_text(relates, &id);
    }
    (envelope, wsa)
}

fn append_expiry(document: &mut Document, parent: NodeId, expires: Option<Timestamp>) {
    if let Some(at) = expires {
        let element = document.append_element(parent, "wse", WSE, "Expires");
        document.append_text(element, &at.round(Unit::Second).unwrap_or(at).to_string());
    }
}

/// The answer to a request that has nothing more to say than when the subscription ends.
pub(super) fn answer(context: &mut Context, name: &str, expires: Option<Timestamp>) -> Envelope {
    let (mut envelope, _) = begin(context, name);
    let body = envelope.body;
    // Of `Unsubscribe` the body is empty.
    if name != "Unsubscribe" {
        let element = envelope.document.append_element(body, "wse", WSE, &format!("{name}Response"));
        append_expiry(&mut envelope.document, element, expires);
    }
    envelope
}

/// The answer to a `Subscribe`.
pub(super) fn subscribed(
    context: &mut Context,
    name: &str,
    id: &str,
    expires: Option<Timestamp>,
) -> Envelope {
    let inbound = Arc::clone(&context.inbound);
    let address = format!("{}://{}/services/{name}", inbound.scheme(), inbound.host);
    let (mut envelope, wsa) = begin(context, "Subscribe");
    let body = envelope.body;
    let document = &mut envelope.document;
    let element = document.append_element(body, "wse", WSE, "SubscribeResponse");
    let manager = document.append_element(element, "wse", WSE, "SubscriptionManager");
    let place = document.append_element(manager, "wsa", wsa, "Address");
    document.append_text(place, &address);
    let parameters = document.append_element(manager, "wsa", wsa, "ReferenceParameters");
    let identifier = document.append_element(parameters, "wse", WSE, "Identifier");
    document.append_text(identifier, id);
    append_expiry(document, element, expires);
    envelope
}

/// The answer to a request that cannot be met.
pub(super) fn fault(context: &mut Context, trouble: &Trouble) -> Envelope {
    let (mut envelope, _) = begin(context, "fault");
    let code = match (envelope.version, trouble.theirs) {
        (SoapVersion::V11, true) => "Client",
        (SoapVersion::V11, false) => "Server",
        (SoapVersion::V12, true) => "Sender",
        (SoapVersion::V12, false) => "Receiver",
    };
    let fault = SoapFault { code, reason: &trouble.reason, role: None, node: None };
    let element = envelope.append_fault(&fault, None);
    let subcode = format!("wse:{}", trouble.code);
    let document = &mut envelope.document;
    let first = document.first_child(element);
    match (envelope.version, first) {
        // SOAP 1.1 has no subcodes: the fault code is that of WS-Eventing.
        (SoapVersion::V11, Some(first)) => {
            document.remove_children(first);
            document.append_text(first, &subcode);
        }
        (SoapVersion::V12, Some(first)) => {
            let soap = envelope.version.namespace();
            let holder = document.append_element(first, "soapenv", soap, "Subcode");
            let value = document.append_element(holder, "soapenv", soap, "Value");
            document.append_text(value, &subcode);
        }
        (_, None) => {}
    }
    envelope
}
