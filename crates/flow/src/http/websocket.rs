//! WebSockets that end at the bus.
//!
//! The handshake that comes through an inbound endpoint `ws` or `wss` runs through its sequence like any message. Where a backend takes it,
//! client and backend are connected, and nothing of this is asked. Where the flow comes to a good end without one, the bus is the other
//! side: each message of the client runs through the sequence, and its response is sent to the client.

use crate::engine::exchange::is_handshake;
use crate::http::dispatch::Bus;
use crate::http::respond::text;
use crate::http::rooms::Place;
use crate::runtime::inbound::Audience;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use message::{Body, Headers, MediaType, Method, RequestHead, StandardHeader, Value, Version};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use transport::{
    Answering, ConnectionInfo, Cut, Dialogue, End, Failed, Handler, Mailbox, Outcome, Request, Response,
    WebSocketMessage,
};

/// What a flow is told of the message, as properties.
pub(super) type FrameProperties = [(&'static str, Value)];

/// The GUID that `Sec-WebSocket-Accept` is computed with (RFC 6455, 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Fields of a handshake that say nothing of the messages behind it.
const OF_THE_HANDSHAKE: &[&str] = &[
    "Connection",
    "Upgrade",
    "Sec-WebSocket-Key",
    "Sec-WebSocket-Version",
    "Sec-WebSocket-Extensions",
    "Sec-WebSocket-Protocol",
    "Content-Type",
    "Content-Length",
    "Transfer-Encoding",
    "Expect",
];

/// Answers a request that asks for an upgrade, through the inbound endpoint of this port.
pub(super) async fn open(bus: &Arc<Bus>, port: u16, request: Request, peer: &ConnectionInfo) -> Response {
    let Some(handshake) = Handshake::of(bus, port, &request, peer) else {
        return bus.answer(request, peer, Some(port), None).await;
    };
    if !request.body.is_empty() || request.head.version != Version::Http11 {
        return text(400, "a handshake is a request of HTTP/1.1 without a body\n".to_owned());
    }
    let mut told = handshake.conversation.told();
    told.push(("websocket.source.handshake.present", Value::Boolean(true)));
    let response = bus.answer(request, peer, Some(port), Some(&told)).await;
    handshake.answered(response)
}

/// What a client asks for.
struct Handshake {
    key: String,
    version: String,
    /// Sub-protocols that it would speak.
    protocols: Vec<String>,
    conversation: Conversation,
}

impl Handshake {
    fn of(bus: &Arc<Bus>, port: u16, request: &Request, peer: &ConnectionInfo) -> Option<Handshake> {
        let RequestHead { method, target, headers, .. } = &request.head;
        let (plan, services) = bus.in_force();
        let endpoint = plan.inbound_endpoints.iter().find(|inbound| inbound.port == Some(port))?;
        if !endpoint.websocket || !is_handshake(method, headers) {
            return None;
        }
        // Neither may come twice (RFC 6455, 11.3.1 and 11.3.5): then it counts as absent.
        let field = |name| {
            let mut lines = headers.get_all(name);
            let line = lines.next().filter(|_| lines.next().is_none());
            line.and_then(|line| std::str::from_utf8(line).ok()).unwrap_or_default().trim().to_owned()
        };
        let protocols = headers
            .get_all("Sec-WebSocket-Protocol")
            .filter_map(|line| std::str::from_utf8(line).ok())
            .flat_map(|line| line.split(','))
            .map(|protocol| protocol.trim().to_owned())
            .collect();
        let mut kept = headers.clone();
        OF_THE_HANDSHAKE.iter().for_each(|name| _ = kept.remove(name));
        let conversation = Conversation {
            bus: Arc::clone(bus),
            port,
            peer: peer.clone(),
            target: target.clone(),
            headers: kept,
            text_type: endpoint.text_type.clone(),
            largest: services.limits.held,
            audience: endpoint.audience,
            place: None,
            first: Mutex::default(),
        };
        let (key, version) = (field("Sec-WebSocket-Key"), field("Sec-WebSocket-Version"));
        Some(Handshake { key, version, protocols, conversation })
    }

    /// What becomes of the answer of the flow.
    fn answered(mut self, mut response: Response) -> Response {
        if !(200..300).contains(&response.head.status) {
            // A backend has taken it, or the flow says no.
            return response;
        }
        if self.version != "13" {
            let refused = text(426, "only version 13 of WebSocket is spoken here\n".to_owned());
            return refused.with("Sec-WebSocket-Version", "13");
        }
        if STANDARD.decode(&self.key).is_ok_and(|key| key.len() == 16) {
            let protocol = self.protocol(&response.head.headers);
            let mut opened = Response::empty(101).with("Sec-WebSocket-Accept", accepted(&self.key));
            if let Some((protocol, text_type)) = protocol {
                opened = opened.with("Sec-WebSocket-Protocol", protocol);
                self.conversation.text_type = text_type.unwrap_or(self.conversation.text_type);
            }
            opened.on_end = response.on_end.take();
            self.conversation.join();
            self.conversation.first = Mutex::new(Some(response));
            opened.dialogue = Some(Box::new(self.conversation));
            return opened;
        }
        text(400, "invalid Sec-WebSocket-Key\n".to_owned())
    }

    /// The sub-protocol that is spoken, and the media type of its texts: one of WSO2's (`synapse(contentType='…')`), or the first one
    /// that the answer of the flow names.
    fn protocol(&self, response: &Headers) -> Option<(String, Option<String>)> {
        if let Some(named) =
            self.protocols.iter().find_map(|named| Some((named.clone(), Some(type_of(named)?))))
        {
            return Some(named);
        }
        let chosen = response.get("Sec-WebSocket-Protocol")?.split(',').next()?.trim();
        self.protocols.iter().find(|offered| *offered == chosen).map(|offered| (offered.clone(), None))
    }
}

/// The media type of texts that a sub-protocol of WSO2 names.
fn type_of(protocol: &str) -> Option<String> {
    let media_type = protocol.strip_prefix("synapse(contentType=")?.strip_suffix(')')?;
    let media_type = media_type.trim().trim_matches(['\'', '"']);
    (!media_type.is_empty()).then(|| media_type.to_owned())
}

/// `Sec-WebSocket-Accept` for a key.
fn accepted(key: &str) -> String {
    let whole = [key.as_bytes(), GUID].concat();
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY, &whole);
    STANDARD.encode(digest)
}

/// The messages of one client.
struct Conversation {
    bus: Arc<Bus>,
    port: u16,
    peer: ConnectionInfo,
    target: String,
    /// Of the handshake, as far as they are about the client.
    headers: Headers,
    text_type: String,
    largest: usize,
    audience: Audience,
    /// Among those that hear what others of the path are answered, where any do.
    place: Option<Place>,
    /// What the handshake was answered with. (In a lock, so that a future that borrows this may move to another thread: it is never contended.)
    first: Mutex<Option<Response>>,
}

impl Conversation {
    fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    fn join(&mut self) {
        if self.audience != Audience::Client {
            self.place = Some(self.bus.rooms.join(self.port, self.path(), self.peer.id));
        }
    }

    /// Sends a message to the other clients that are to get it. A message for the client itself is returned.
    fn spread(&self, message: Option<WebSocketMessage>) -> Option<WebSocketMessage> {
        let message = message?;
        if let Some(Err(shortage)) = self.place.as_ref().map(|place| place.tell(&message)) {
            tracing::warn!(
                path = self.path(),
                "a message for all clients of a WebSocket path is lost: {shortage}"
            );
        }
        (self.audience != Audience::Others).then_some(message)
    }

    /// What is the same for all messages of the client.
    fn told(&self) -> Vec<(&'static str, Value)> {
        let path = self.path();
        vec![
            ("websocket.source.channel.identifier", Value::from(self.peer.id.to_string())),
            ("websocket.subscriber.path", Value::from(path)),
        ]
    }

    /// Runs a message through the sequence that is in force now.
    async fn run(&self, content_type: &str, body: Body, told: &FrameProperties) -> Response {
        let mut headers = self.headers.clone();
        headers.set("Content-Type", content_type);
        let head = RequestHead {
            method: Method::Post,
            target: self.target.clone(),
            absolute: None,
            version: Version::Http11,
            headers,
        };
        self.bus.answer(Request { head, body }, &self.peer, Some(self.port), Some(told)).await
    }

    /// The message that a response makes.
    async fn message_of(&self, response: Response) -> Result<Option<WebSocketMessage>, Failed> {
        let Response { head, body, about, on_end, .. } = response;
        let is_text = head.headers.get_known(StandardHeader::ContentType).is_none_or(is_text);
        let collected = body.collect(self.largest as u64).await;
        let end = |bytes, outcome| {
            if let Some(on_end) = on_end {
                on_end.ended(&End { client: &self.peer, status: head.status, bytes, outcome });
            }
        };
        match collected {
            Ok(payload) => {
                end(payload.len() as u64, Outcome::Whole);
                let is_text = is_text && std::str::from_utf8(&payload).is_ok();
                Ok((!payload.is_empty()).then_some(WebSocketMessage { is_text, payload }))
            }
            Err(error) => {
                self.bus.cut(&Cut { client: &self.peer, about, backend: None, error: error.clone() });
                end(0, Outcome::Cut(error));
                Err(Failed)
            }
        }
    }
}

/// Whether what is of this type is said as text.
fn is_text(content_type: &str) -> bool {
    let essence = MediaType::parse(content_type).essence.to_ascii_lowercase();
    essence.starts_with("text/")
        || ["json", "xml", "x-www-form-urlencoded", "javascript"].iter().any(|end| essence.ends_with(end))
}

impl Dialogue for Conversation {
    fn largest(&self) -> usize {
        self.largest
    }

    fn mailbox(&self) -> Option<Arc<Mailbox>> {
        self.place.as_ref().map(Place::mailbox)
    }

    fn first(&mut self) -> Answering<'_> {
        let first = self.first.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        Box::pin(async {
            match first {
                Some(response) => Ok(self.spread(self.message_of(response).await?)),
                None => Ok(None),
            }
        })
    }

    fn answer(&mut self, message: WebSocketMessage) -> Answering<'_> {
        Box::pin(async move {
            let WebSocketMessage { is_text, payload } = message;
            let mut told = self.told();
            let kind =
                if is_text { "websocket.text.frame.present" } else { "websocket.binary.frame.present" };
            told.push((kind, Value::Boolean(true)));
            let content_type = if is_text { self.text_type.as_str() } else { "application/octet-stream" };
            let body = if payload.is_empty() { Body::Empty } else { Body::Bytes(payload) };
            let response = self.run(content_type, body, &told).await;
            Ok(self.spread(self.message_of(response).await?))
        })
    }

    fn ended(self: Box<Self>, close: Option<(u16, String)>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let mut told = self.told();
            told.push(("connection.terminate", Value::Boolean(true)));
            if let Some((code, reason)) = close {
                told.push(("websocket.close.frame.status.code", Value::Integer(code.into())));
                told.push(("websocket.close.frame.reason.text", Value::from(reason)));
            }
            let response = self.run(&self.text_type, Body::Empty, &told).await;
            // Whatever it says is for others, if there are any.
            if let Ok(message) = self.message_of(response).await {
                self.spread(message);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_answered_as_the_specification_does() {
        assert_eq!(accepted("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn types_that_are_said_as_text() {
        for (content_type, wanted) in [
            ("text/plain; charset=UTF-8", true),
            ("application/json", true),
            ("application/soap+xml; charset=UTF-8", true),
            ("application/octet-stream", false),
            ("image/png", false),
        ] {
            assert_eq!(is_text(content_type), wanted, "{content_type}");
        }
        assert_eq!(type_of("synapse(contentType='application/json')").as_deref(), Some("application/json"));
        assert_eq!(type_of("chat"), None);
    }
}
