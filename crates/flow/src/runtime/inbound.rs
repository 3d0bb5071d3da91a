//! Inbound endpoints that listen on ports of their own, as they are once compiled. `crate::http` serves what comes through them.

use super::mediator::ListId;
use super::reference::SequenceRef;
use super::source::Source;
use crate::state::activation::Activation;
use crate::state::metrics::Counters;
use diagnostics::Span;
use message::regex::Pattern;
use std::path::PathBuf;
use std::sync::Arc;
use transport::{ClientVerify, ServerTlsOptions, TlsRules};

/// An inbound endpoint of the plan.
pub struct InboundEndpoint {
    /// Its name.
    pub name: String,
    /// Where it is written.
    pub span: Span,
    /// The port of its listener; `None`: it takes files.
    pub port: Option<u16>,
    /// The directory of its files.
    pub source: Option<Arc<Source>>,
    /// How that speaks TLS; `None`: it does not.
    pub tls: Option<Tls>,
    /// Only handshakes of WebSockets are served.
    pub websocket: bool,
    /// Type of the texts that come over them.
    pub(crate) text_type: String,
    /// Which clients get the responses to messages of WebSockets.
    pub(crate) audience: Audience,
    /// Whether it takes requests.
    pub activation: Arc<Activation>,
    /// Not `suspend`, and a number for the whole definition.
    pub(crate) written: (bool, u64),
    pub(crate) sequence: Option<SequenceRef>,
    pub(crate) on_error: Option<ListId>,
    /// `trace="enable"`.
    pub(crate) trace: bool,
    pub(crate) counters: Arc<Counters>,
    pub(crate) filter: Filter,
}

/// Which clients get the response to a message of a WebSocket (`ws.client.side.broadcast.level`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    /// The client whose message it answers: 0.
    Client,
    /// All clients of the path: 1.
    All,
    /// All but that client: 2.
    Others,
}

/// The certificate of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tls {
    /// That of the https listener of the bus.
    OfBus,
    /// Its own, of PEM files.
    Own(ServerTlsOptions),
    /// Its own, of stores of Java.
    Stores(Stores),
}

/// The key store of a listener, and the trust store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stores {
    /// With the private key and its certificates.
    pub keys: Store,
    /// With the authorities of clients.
    pub trusted: Option<Store>,
    /// Whether clients must show a certificate.
    pub client_verify: ClientVerify,
    /// Versions of TLS and cipher suites.
    pub rules: TlsRules,
}

/// A key store: JKS, PKCS#12 or PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Store {
    /// The file; of PEM, another one may have the key.
    pub files: Vec<PathBuf>,
    /// Its password.
    pub password: String,
    /// That of the private key, if it is another one.
    pub key_password: Option<String>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Store({:?})", self.files)
    }
}

/// What becomes of requests that no API bound to the endpoint takes.
pub(crate) enum Filter {
    /// They go through its sequence.
    None,
    /// Those that match go the way of all others, the rest to `main` (`dispatch.filter.pattern`).
    Pattern(Pattern),
    /// APIs, then its sequence (`api.dispatching.enabled`).
    Apis,
}

impl InboundEndpoint {
    /// Whether proxy services may serve a request that came through it.
    pub(crate) fn reaches_services(&self, target: &str) -> bool {
        matches!(&self.filter, Filter::Pattern(pattern) if pattern.matches(target) == Ok(true))
    }
}
