//! Why a request got no response.

use std::fmt;
use std::io;
use std::sync::Arc;

use message::BodyError;

use crate::Target;

/// A request that got no response: what happened, with whom, and whether it may be sent again.
#[derive(Clone, Debug)]
pub struct SendError {
    /// What happened.
    pub kind: SendErrorKind,
    /// The backend.
    pub target: Target,
    /// Certain that the backend did not begin to process the request, because not one byte of it was sent; sending it
    /// elsewhere, or once more, is safe whatever its method.
    pub nothing_processed: bool,
    /// Nothing of the request body was consumed; it can be sent again as it is.
    pub body_intact: bool,
}

/// The kinds of failure. In brackets the code that a flow sees as ERROR_CODE.
#[derive(Clone, Debug)]
pub enum SendErrorKind {
    /// The name could not be resolved (101503).
    Dns(Arc<io::Error>),
    /// No address accepted the connection (101503).
    Connect(Arc<io::Error>),
    /// This process lacks what a connection takes: descriptors, memory of the kernel, ports, or a place among the
    /// connections that one backend may have. It says nothing about the backend (101500). The request may be sent again
    /// later.
    LocalShortage(Arc<io::Error>),
    /// Connecting took too long (101508).
    ConnectTimeout,
    /// The TLS handshake failed: certificate, version, cipher (101503).
    Tls(Arc<io::Error>),
    /// Sending the request failed and no response came (101500).
    Write(Arc<io::Error>),
    /// The backend took nothing of the request for too long (101504).
    WriteTimeout,
    /// Receiving the response head failed (101501).
    Read(Arc<io::Error>),
    /// The backend closed the connection before a response began or within its head (101505).
    Closed,
    /// The backend reset the stream of the request, over HTTP/2, with this error code (RFC 9113, section 7) (101505).
    Reset(u32),
    /// No response in time (101504).
    ResponseTimeout,
    /// The response is not valid HTTP (101506).
    Protocol(&'static str),
    /// The request body did not arrive whole; the backend never got a complete request (101500).
    RequestBody(BodyError),
    /// The request cannot be written as HTTP: a control byte in its target or a field, or a length unknown to an
    /// HTTP/1.0 backend (101500).
    BadRequest(&'static str),
}

impl SendErrorKind {
    /// Whether it says something about the backend. A request that did not arrive whole or cannot be sent, and a
    /// shortage of this process, do not.
    pub fn is_about_backend(&self) -> bool {
        !matches!(
            self,
            SendErrorKind::RequestBody(_) | SendErrorKind::BadRequest(_) | SendErrorKind::LocalShortage(_)
        )
    }

    /// The error code of a Synapse endpoint for this failure.
    pub fn code(&self) -> u32 {
        match self {
            SendErrorKind::Write(_)
            | SendErrorKind::LocalShortage(_)
            | SendErrorKind::RequestBody(_)
            | SendErrorKind::BadRequest(_) => 101500,
            SendErrorKind::Read(_) => 101501,
            SendErrorKind::Dns(_) | SendErrorKind::Connect(_) | SendErrorKind::Tls(_) => 101503,
            SendErrorKind::ResponseTimeout | SendErrorKind::WriteTimeout => 101504,
            SendErrorKind::Closed | SendErrorKind::Reset(_) => 101505,
            SendErrorKind::Protocol(_) => 101506,
            SendErrorKind::ConnectTimeout => 101508,
        }
    }
}

/// The name of an error code of HTTP/2 (RFC 9113, section 7).
fn reset_name(code: u32) -> impl fmt::Display {
    struct Name(u32);
    impl fmt::Display for Name {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match NAMES.get(self.0 as usize) {
                Some(name) => f.write_str(name),
                None => write!(f, "error {:#x}", self.0),
            }
        }
    }
    const NAMES: [&str; 14] = [
        "NO_ERROR",
        "PROTOCOL_ERROR",
        "INTERNAL_ERROR",
        "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM",
        "CANCEL",
        "COMPRESSION_ERROR",
        "CONNECT_ERROR",
        "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    ];
    Name(code)
}

impl fmt::Display for SendErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendErrorKind::Dns(e) => write!(f, "cannot resolve the host name: {e}"),
            SendErrorKind::Connect(e) => write!(f, "cannot connect: {e}"),
            SendErrorKind::LocalShortage(e) => write!(f, "no resources for a connection: {e}"),
            SendErrorKind::ConnectTimeout => f.write_str("connecting took too long"),
            SendErrorKind::Tls(e) => write!(f, "TLS handshake failed: {e}"),
            SendErrorKind::Write(e) => write!(f, "sending the request failed: {e}"),
            SendErrorKind::WriteTimeout => f.write_str("the backend stopped taking the request"),
            SendErrorKind::Read(e) => write!(f, "receiving the response failed: {e}"),
            SendErrorKind::Closed => f.write_str("the backend closed the connection without a response"),
            SendErrorKind::Reset(code) => {
                write!(f, "the backend reset the stream without a response ({})", reset_name(*code))
            }
            SendErrorKind::ResponseTimeout => f.write_str("no response in time"),
            SendErrorKind::Protocol(fault) => write!(f, "the response is not valid HTTP: {fault}"),
            SendErrorKind::RequestBody(e) => write!(f, "the request did not arrive whole: {e}"),
            SendErrorKind::BadRequest(fault) => write!(f, "the request cannot be sent: {fault}"),
        }
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.target, self.kind)
    }
}

impl std::error::Error for SendError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            SendErrorKind::Dns(e)
            | SendErrorKind::Connect(e)
            | SendErrorKind::LocalShortage(e)
            | SendErrorKind::Tls(e)
            | SendErrorKind::Write(e)
            | SendErrorKind::Read(e) => Some(e.as_ref()),
            SendErrorKind::RequestBody(e) => Some(e),
            _ => None,
        }
    }
}
