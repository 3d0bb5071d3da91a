//! HTTP listener and client: pass-through, TLS, pools, limits, timers.
//!
//! One worker is one thread with its own event loop, its own listening sockets and its own pool of
//! connections to backends; a message lives on one worker from its first byte to its last. Bodies are
//! relayed from socket to socket through one buffer with back-pressure and never held whole.
//!
//! * [`Workers`] start the threads, [`Server`] listens on all of them and calls a [`Handler`].
//! * [`Client`] sends a request to a [`Target`] and returns a [`Response`] as soon as its head is there.
//! * [`ServerLimits`], [`ClientLimits`] and [`SendOptions`] hold every limit and deadline.

mod addresses;
mod buffer;
mod client;
pub mod clock;
mod connect;
mod connection;
mod counted;
mod descriptors;
mod dial;
mod dialogue;
mod error;
mod frames;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod http1;
mod http2;
mod io;
mod places;
mod pool;
mod program;
mod proxy;
mod relay;
mod resolve;
mod rounds;
mod serve;
mod server;
mod settings;
#[cfg(feature = "simulation")]
pub mod simulation;
mod splice;
mod stats;
mod target;
mod timer;
mod tls;
mod tunnel;
mod weak_map;

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

pub use client::{Client, OutRequest};
pub use descriptors::raise_descriptor_limit;
pub use dial::Socket;
pub use dialogue::{Answering, Dialogue, Failed, Mailbox, Overflown};
pub use error::{SendError, SendErrorKind};
pub use frames::WebSocketMessage;
pub use message::{Body, BodyError, BodyStream, Headers, Method, RequestHead, ResponseHead, Version};
pub use program::unmap_start;
pub use proxy::Proxy;
pub use server::{Drained, Server, Workers};
pub use settings::{ClientLimits, Framing, SendOptions, ServerLimits};
pub use stats::{ClientStats, ServerStats};
pub use target::{Scheme, Target};
pub use tls::{
    ClientTls, ClientTlsOptions, ClientVerify, HostNames, Ocsp, Revocation, Roots, ServerTls,
    ServerTlsOptions, ServerTlsParts, TlsError, TlsInfo, TlsRules,
};
pub use weak_map::WeakMap;

/// What a server does with a request.
///
/// Each request ends in exactly one of four ways: it is [refused](Handler::refused) and never handled; its future is
/// dropped because the client went away (a guard inside of the future sees that); its future panicked
/// ([`Handler::panicked`]); or its response [ended](OnEnd), whole or not.
pub trait Handler: Send + Sync + 'static {
    /// Answers one request.
    ///
    /// The future runs inside the task of the connection, on the worker that accepted it. It is dropped when
    /// the client goes away before it has its answer. The request body may be moved into the response (echo),
    /// into [`Client::send`], or dropped unread.
    fn handle(&self, request: Request, peer: &ConnectionInfo) -> impl Future<Output = Response> + Send;

    /// Something came that is not handled, because it is not HTTP, beyond a limit or too slow; the transport has
    /// answered it itself and closes the connection.
    fn refused(&self, refused: &Refused<'_>) {
        tracing::debug!(client = %refused.client.peer, status = refused.status, "refused: {}", refused.why);
    }

    /// The future of a request panicked; its client gets 500.
    fn panicked(&self, client: &ConnectionInfo, message: &str) {
        tracing::error!(client = %client.peer, "a panic while a request was handled: {message}");
    }

    /// A response whose head was sent could not be finished, because its body did not arrive whole; the client's
    /// connection is cut, so that it does not take the half for the whole.
    fn cut(&self, cut: &Cut<'_>) {
        tracing::warn!(client = %cut.client.peer, "an answer was cut: {}", cut.error);
    }
}

/// A request that the transport answered itself.
#[derive(Debug)]
pub struct Refused<'a> {
    /// The client.
    pub client: &'a ConnectionInfo,
    /// The status that it got: 400, 408, 414, 417, 431, 501, 505.
    pub status: u16,
    /// The reason, which was the body of the answer, without its line end.
    pub why: &'static str,
    /// What was received of the head, valid or not; at most as much as a head may have, and some more that came
    /// with it.
    pub received: &'a [u8],
    /// The first byte of it was received so long ago.
    pub took: std::time::Duration,
}

impl Refused<'_> {
    /// The request line as far as it was received, with what is not printable ASCII replaced by `?`.
    pub fn line(&self) -> String {
        let line = self.received.split(|b| *b == b'\n').map(<[u8]>::trim_ascii).find(|line| !line.is_empty());
        let printable = |&b: &u8| if b == b' ' || b.is_ascii_graphic() { char::from(b) } else { '?' };
        line.unwrap_or_default().iter().map(printable).collect()
    }
}

/// Is told once how a response ended.
pub trait OnEnd: Send {
    /// The last byte is with the kernel, or there will be no further one.
    fn ended(self: Box<Self>, end: &End<'_>);
}

/// How a response ended.
#[derive(Debug)]
pub struct End<'a> {
    /// The client.
    pub client: &'a ConnectionInfo,
    /// The status that was sent: that of the response, 500 where it could not be written as HTTP, or 502 where its body
    /// contradicts its length.
    pub status: u16,
    /// Bytes of its body that were sent, without transfer coding.
    pub bytes: u64,
    /// Whether the client was sent all of it.
    pub outcome: Outcome,
}

/// Whether a response was sent whole.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It was.
    Whole,
    /// The client went away, or took nothing for too long.
    Abandoned,
    /// It was cut off at the end of a drain.
    Stopped,
    /// Its body did not arrive whole.
    Cut(BodyError),
}

/// A response that could not be finished.
#[derive(Debug)]
pub struct Cut<'a> {
    /// The client.
    pub client: &'a ConnectionInfo,
    /// [`Response::about`].
    pub about: u64,
    /// The backend whose response it was, where it was relayed.
    pub backend: Option<Target>,
    /// What happened to its body.
    pub error: BodyError,
}

/// A request as it arrived; its body may still be on its way.
#[derive(Debug)]
pub struct Request {
    /// Method, target, version and fields.
    pub head: RequestHead,
    /// The entity.
    pub body: Body,
}

/// A response; its body may still be on its way.
pub struct Response {
    /// Status and fields. Hop-by-hop fields, Content-Length and Transfer-Encoding in it are not sent on: the
    /// transport writes its own. (Content-Length is kept where there is no body: to HEAD, with 304.)
    pub head: ResponseHead,
    /// The entity.
    pub body: Body,
    /// Close the connection to the client after this response. Default false.
    pub close: bool,
    /// How the body is delimited. Default [`Framing::Auto`].
    pub framing: Framing,
    /// A number of the handler's own, which it gets back in [`Handler::cut`]. Default 0.
    pub about: u64,
    /// Whom to tell how the response ended, for an access log. Default nobody.
    pub on_end: Option<Box<dyn OnEnd>>,
    /// With 101: who talks over the WebSocket that the client asked for. Default nobody: it is that of a backend.
    pub dialogue: Option<Box<dyn Dialogue>>,
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Response { head, body, close, framing, about, on_end: _, dialogue: _ } = self;
        f.debug_struct("Response")
            .field("head", head)
            .field("body", body)
            .field("close", close)
            .field("framing", framing)
            .field("about", about)
            .finish_non_exhaustive()
    }
}

impl Response {
    /// A response with the usual reason phrase and no fields.
    pub fn new(status: u16, body: impl Into<Body>) -> Response {
        let head = ResponseHead::new(status);
        let body = body.into();
        Response { head, body, close: false, framing: Framing::Auto, about: 0, on_end: None, dialogue: None }
    }

    /// A response without an entity.
    pub fn empty(status: u16) -> Response {
        Response::new(status, Body::Empty)
    }

    /// Adds a header field.
    pub fn with(mut self, name: &str, value: impl AsRef<[u8]>) -> Response {
        self.head.headers.append(name, value);
        self
    }
}

/// Facts about the connection a request came on.
#[derive(Clone, Debug)]
pub struct ConnectionInfo {
    /// Number of the connection, unique in the process.
    pub id: u64,
    /// Address of the client.
    pub peer: SocketAddr,
    /// Address the client connected to.
    pub local: SocketAddr,
    /// The worker that serves it, from 0.
    pub worker: usize,
    /// Set on TLS connections.
    pub tls: Option<Arc<TlsInfo>>,
}
