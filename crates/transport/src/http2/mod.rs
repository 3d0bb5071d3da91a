//! HTTP/2 (RFC 9113), over the `h2` library, which knows frames, compression and windows.
//!
//! What is ours is all else: a stream becomes the same [`Request`](crate::Request) and [`Response`](crate::Response) as a
//! message of HTTP/1.1, with the same limits and deadlines, and credit of a window is given back only as a body is consumed.
//!
//! * [`heads`] turns heads into ours and back.
//! * [`body`] is a body that arrives on a stream, and one that leaves on one.
//! * [`duplex`] is the connection as the library wants it, and what is counted on it.
//! * [`serve`] is a connection of a listener, [`session`] one to a backend.

pub(crate) mod body;
pub(crate) mod duplex;
mod heads;
pub(crate) mod serve;
pub(crate) mod session;

/// What a client begins with (RFC 9113, 3.4).
pub(crate) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Whether bytes that are no request of HTTP/1.1 are the preface, or what has arrived of it: all up to the first digit of the version, which
/// nothing else has.
pub(crate) fn is_preface(received: &[u8]) -> bool {
    received.len() >= b"PRI * HTTP/2".len() && received.iter().zip(PREFACE).all(|(a, b)| a == b)
}

/// The name of the protocol in TLS (RFC 9113, 3.2).
pub(crate) const ALPN: &[u8] = b"h2";

/// Credit of a stream: bytes of a body that may be on their way before anybody has read of them.
pub(crate) const STREAM_WINDOW: u32 = 64 * 1024;
/// The same of a connection.
pub(crate) const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Bytes of a body that the library may hold because the peer does not take them.
pub(crate) const SEND_BUFFER: usize = 16 * 1024;
