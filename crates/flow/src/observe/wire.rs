//! The wire log: heads and bodies as the bus reads and writes them, without the framing of the transport.

use crate::runtime::context::Context;
use message::{Body, BodyError, BodyStream, Headers, redact};
use std::any::Any;
use std::task::{Context as Waking, Poll};

/// Says what goes over the wire of one message.
#[derive(Clone, Debug)]
pub(crate) struct Tell {
    pub(crate) service: String,
    /// Empty: the client.
    pub(crate) endpoint: String,
    pub(crate) message_id: String,
    /// Bytes of a body that are shown.
    pub(crate) shown: usize,
}

impl Tell {
    pub(crate) fn line(&self, direction: &'static str, text: &str) {
        tracing::info!(
            target: "busbar::wire",
            service = self.service,
            endpoint = self.endpoint,
            message_id = self.message_id,
            "{direction} | {text}",
        );
    }

    /// The head, all in one line of the log, with the line ends visible.
    pub(crate) fn head(&self, direction: &'static str, first: &str, headers: &Headers) {
        let mut text = redact::text(first).into_owned();
        for (name, value) in headers.iter() {
            text.push_str("\r\n");
            text.push_str(name);
            text.push_str(": ");
            text.push_str(&redact::value(name, &String::from_utf8_lossy(value)));
        }
        self.line(direction, &text);
    }

    /// The body: at once if it is here, else when all of it has gone through.
    pub(crate) fn body(&self, direction: &'static str, body: &mut Body) {
        match std::mem::take(body) {
            Body::Empty => {}
            Body::Bytes(bytes) => {
                self.bytes(direction, &bytes[..bytes.len().min(self.shown)], bytes.len() as u64, true);
                *body = Body::Bytes(bytes);
            }
            Body::Stream(stream) => {
                *body = Body::Stream(Box::new(Tap::of(stream, self.clone(), direction)));
            }
        }
    }

    fn bytes(&self, direction: &'static str, seen: &[u8], total: u64, whole: bool) {
        let text = String::from_utf8_lossy(seen);
        let more = match (total - seen.len() as u64, whole) {
            (0, true) => String::new(),
            (0, false) => format!(" … (given up after {total} bytes)"),
            (more, true) => format!(" … ({more} more bytes)"),
            (more, false) => format!(" … ({more} more bytes, then given up)"),
        };
        self.line(direction, &format!("{}{more}", redact::text(&text)));
    }
}

/// What the client of a message sent.
pub(super) fn request(context: &mut Context, shown: usize) {
    let tell = Tell {
        service: context.owner_name().to_owned(),
        endpoint: String::new(),
        message_id: context.message_id(),
        shown,
    };
    let inbound = &context.inbound;
    let line = format!("{} {} HTTP/1.1", inbound.method.as_str(), inbound.target);
    tell.head("from client", &line, &context.headers);
    if context.payload.is_empty() {
        return;
    }
    if context.payload.is_unread() {
        context.payload.wrap_stream(|stream| Box::new(Tap::of(stream, tell, "from client")));
    } else if let Some(bytes) = context.payload.bytes() {
        tell.bytes("from client", &bytes[..bytes.len().min(shown)], bytes.len() as u64, true);
    }
}

/// A stream that keeps the first bytes of what is taken from it.
struct Tap {
    stream: Option<Box<dyn BodyStream>>,
    seen: Vec<u8>,
    total: u64,
    tell: Tell,
    direction: &'static str,
}

impl Tap {
    fn of(stream: Box<dyn BodyStream>, tell: Tell, direction: &'static str) -> Tap {
        Tap { stream: Some(stream), seen: Vec::new(), total: 0, tell, direction }
    }

    fn end(&mut self) -> Option<Box<dyn BodyStream>> {
        let stream = self.stream.take()?;
        // Bytes that are buffered and never consumed went nowhere; a body that is cut off ends the same way.
        let whole = stream.is_complete() && stream.buffered().is_empty();
        self.tell.bytes(self.direction, &self.seen, self.total, whole);
        Some(stream)
    }
}

impl BodyStream for Tap {
    fn buffered(&self) -> &[u8] {
        self.stream.as_ref().map_or(&[], |stream| stream.buffered())
    }

    fn poll_more(&mut self, waking: &mut Waking<'_>) -> Poll<Result<bool, BodyError>> {
        self.stream.as_mut().map_or(Poll::Ready(Ok(false)), |stream| stream.poll_more(waking))
    }

    fn consume(&mut self, n: usize) {
        let Some(stream) = &mut self.stream else { return };
        let taken = n.min(stream.buffered().len());
        let room = self.tell.shown.saturating_sub(self.seen.len());
        self.seen.extend_from_slice(&stream.buffered()[..taken.min(room)]);
        self.total += taken as u64;
        stream.consume(n);
    }

    fn is_complete(&self) -> bool {
        self.stream.as_ref().is_none_or(|stream| stream.is_complete())
    }

    fn exact_len(&self) -> Option<u64> {
        self.stream.as_ref().and_then(|stream| stream.exact_len())
    }

    fn drive(&mut self, waking: &mut Waking<'_>) {
        if let Some(stream) = &mut self.stream {
            stream.drive(waking);
        }
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }

    fn recycle(mut self: Box<Self>) {
        if let Some(stream) = self.end() {
            stream.recycle();
        }
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        drop(self.end());
    }
}
