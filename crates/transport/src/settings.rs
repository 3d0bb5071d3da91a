//! Every limit and deadline of the transport, with its default.

use std::time::Duration;

use message::Version;

/// Limits and deadlines of a listener.
#[derive(Clone, Debug)]
pub struct ServerLimits {
    /// Largest request head in bytes; beyond: 431. Default 32 KiB.
    pub head_size: usize,
    /// Largest number of header fields, at most 256; beyond: 431. Default 100.
    pub header_count: usize,
    /// Longest request target in bytes; beyond: 414. Default 8 KiB.
    pub target_size: usize,
    /// Size in bytes of the buffer through which a body is relayed, `io_buffer_size`. Default 16 KiB.
    pub io_buffer_size: usize,
    /// A request body left unread by the flow is read and thrown away up to this many bytes to keep the
    /// connection; beyond, the response says that the connection is closed. Of a chunked body it is what has arrived
    /// before the response that counts. Default 64 KiB.
    pub discard: u64,
    /// Open connections of the listener per worker; beyond, new ones wait in the backlog. Default 20,000.
    pub connections: usize,
    /// Open connections of one address, on all workers of the listener; beyond, they are closed at once. Of IPv6 a network of 64 bits is
    /// one address. Default 0: no bound.
    pub connections_per_address: usize,
    /// Requests on one connection before it is closed, 0 for no limit. Default 0.
    pub requests: u64,
    /// Longest wait for the next request on an open connection. Default 60 s.
    pub idle: Duration,
    /// Longest time from the first byte of a head to its last; beyond: 408. Default 20 s.
    pub head: Duration,
    /// Longest pause between two pieces of a request body, and longest time in which the rest of one that was answered is
    /// read and thrown away. Default 60 s.
    pub body: Duration,
    /// Longest time in which a client takes nothing of its response. Default 60 s.
    pub write: Duration,
    /// Longest TLS handshake. Default 10 s.
    pub handshake: Duration,
    /// How long a refused or closed connection is still read from, so that the client gets to see the last
    /// response. Default 2 s.
    pub linger: Duration,
    /// Keep connections open between requests. Default true.
    pub keep_alive: bool,
    /// Whether a client may close its sending side and still wait for its response. Otherwise (default, as in
    /// nginx) that counts as gone and the request is cancelled.
    pub half_close: bool,
    /// Queue of connections the kernel has accepted. Default 1,024.
    pub backlog: u32,
    /// Longest time in which nothing comes over a WebSocket from either side. Default 15 min.
    pub websocket_idle: Duration,
    /// HTTP/2 is spoken to clients that begin with its preface. Default true.
    pub http2: bool,
    /// Streams of an HTTP/2 connection that may be open at a time. Default 128.
    pub streams: u32,
}

impl Default for ServerLimits {
    fn default() -> ServerLimits {
        ServerLimits {
            head_size: 32 * 1024,
            header_count: 100,
            target_size: 8 * 1024,
            io_buffer_size: 16 * 1024,
            discard: 64 * 1024,
            connections: 20_000,
            connections_per_address: 0,
            requests: 0,
            idle: Duration::from_secs(60),
            head: Duration::from_secs(20),
            body: Duration::from_secs(60),
            write: Duration::from_secs(60),
            handshake: Duration::from_secs(10),
            linger: Duration::from_secs(2),
            keep_alive: true,
            half_close: false,
            backlog: 1024,
            websocket_idle: Duration::from_secs(900),
            http2: true,
            streams: 128,
        }
    }
}

/// Limits of a client and its pools.
#[derive(Clone, Debug)]
pub struct ClientLimits {
    /// Largest response head in bytes. Default 64 KiB.
    pub head_size: usize,
    /// Largest number of header fields, at most 256. Default 256.
    pub header_count: usize,
    /// Size in bytes of the buffer through which a body is relayed, `io_buffer_size`. Default 16 KiB.
    pub io_buffer_size: usize,
    /// Idle connections kept per target and worker. Default 1,024.
    pub idle_connections: usize,
    /// How long an idle connection is kept. Default 30 s.
    pub idle: Duration,
    /// How long a connection is used at all. Default 10 min.
    pub lifetime: Duration,
    /// Connections that one target may have from this process, in use or idle. Default 10,000.
    pub connections: usize,
    /// Requests that wait for one of them, per target; beyond, or when none is free within [`SendOptions::connect`]:
    /// [`LocalShortage`](crate::SendErrorKind::LocalShortage). Default 1,000.
    pub waiting: usize,
    /// How long the addresses of a host name are used before it is asked for again. Default 30 s.
    pub names: Duration,
    /// How long a host name that was not found is not asked for again. Default 1 s.
    pub unknown_names: Duration,
}

impl Default for ClientLimits {
    fn default() -> ClientLimits {
        ClientLimits {
            head_size: 64 * 1024,
            header_count: 256,
            io_buffer_size: 16 * 1024,
            idle_connections: 1024,
            idle: Duration::from_secs(30),
            lifetime: Duration::from_secs(600),
            connections: 10_000,
            waiting: 1_000,
            names: Duration::from_secs(30),
            unknown_names: Duration::from_secs(1),
        }
    }
}

/// How one request is sent, and how long each wait may last.
#[derive(Clone, Debug)]
pub struct SendOptions {
    /// Waiting for a place among the connections of the target, name resolution, TCP connect and TLS handshake
    /// together. Default 10 s.
    pub connect: Duration,
    /// From the call to the end of the response head: connecting and sending are within, and interim responses do not put
    /// it off. The time in which the sender of the body is waited for is not within: it says nothing about the backend,
    /// and whoever receives the body bounds it. Default 60 s.
    pub response: Duration,
    /// From the request being sent to the end of the response head, within `response`. Default none.
    pub silence: Option<Duration>,
    /// Longest pause between two pieces of the response, or in which the backend takes nothing of the request.
    /// Default 60 s.
    pub idle: Duration,
    /// Use a pooled connection and return it. Default true; false is `NO_KEEPALIVE`.
    pub keep_alive: bool,
    /// Version of the request line, `FORCE_HTTP_1.0`. Default 1.1. A 1.0 request needs a body of known length.
    pub version: Version,
    /// How the request body is delimited. Default [`Framing::Auto`].
    pub framing: Framing,
    /// The request asks for a WebSocket: the backend may answer with 101, and the body of that response is the connection.
    /// Default false.
    pub upgrade: bool,
    /// Where the target has as many connections as it may, one more is made, and closed after the response: for questions that must
    /// be put whatever the messages do. Default false: it waits for one.
    pub extra_connection: bool,
}

impl Default for SendOptions {
    fn default() -> SendOptions {
        SendOptions {
            connect: Duration::from_secs(10),
            response: Duration::from_secs(60),
            silence: None,
            idle: Duration::from_secs(60),
            keep_alive: true,
            version: Version::Http11,
            framing: Framing::Auto,
            upgrade: false,
            extra_connection: false,
        }
    }
}

/// How a body is delimited on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Framing {
    /// Content-Length where the length is known, chunked otherwise: as it came.
    #[default]
    Auto,
    /// Chunked where the receiver speaks HTTP/1.1.
    Chunked,
}
