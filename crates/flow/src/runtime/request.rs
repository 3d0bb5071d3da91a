//! What the client's request said: its target, its connection, and what the client speaks.

use authentication::certificate::Identity;
use message::{Method, SoapVersion};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

/// Facts of the request that the client sent; shared by all copies of the message.
#[derive(Clone, Debug)]
pub struct Inbound {
    /// The method.
    pub method: Method,
    /// The request target as received: path and query.
    pub target: String,
    /// The scheme of a target that was in absolute form, whose authority is the `Host` header.
    pub absolute: Option<&'static str>,
    /// Length of the part of `target` that names the service; what follows is `REST_URL_POSTFIX`.
    pub service_length: usize,
    /// Whether it came over https.
    pub secure: bool,
    /// What the handshake of its connection agreed on.
    pub tls: Option<Arc<transport::TlsInfo>>,
    /// The client.
    pub peer: SocketAddr,
    /// The address it connected to.
    pub local: SocketAddr,
    /// The `Host` header.
    pub host: Arc<str>,
    /// `Content-Type` as received.
    pub content_type: Option<Arc<str>>,
    /// What the client speaks.
    pub client: Client,
    /// When the head had arrived.
    pub received: Instant,
    /// The inbound endpoint that it came through, by its number in the plan.
    pub through: Option<usize>,
}

impl Inbound {
    /// Whether no client sent it ([`Inbound::of_nobody`]).
    pub(crate) fn is_of_nobody(&self) -> bool {
        self.peer.ip().is_unspecified()
    }

    /// What the client asked for: path and query, or the URL of another server where it takes this one for its proxy.
    pub(super) fn to(&self) -> String {
        match self.absolute {
            Some(scheme) => format!("{scheme}://{}{}", self.host, self.target),
            None => self.target.clone(),
        }
    }

    /// Path and query after the service's own path; empty if there is nothing.
    pub fn postfix(&self) -> &str {
        self.target.get(self.service_length..).unwrap_or("")
    }

    /// The certificate that the client showed and that was verified, as PEM; `chain`: with those above it.
    pub(super) fn certificates(&self, chain: bool) -> Option<String> {
        use base64::Engine;
        let certificates = &self.tls.as_ref()?.client_certificates;
        let shown = if chain { certificates.as_slice() } else { certificates.get(..1)? };
        let mut pem = String::new();
        for certificate in shown {
            let text = base64::engine::general_purpose::STANDARD.encode(certificate);
            pem.push_str("-----BEGIN CERTIFICATE-----\n");
            for line in text.as_bytes().chunks(64) {
                pem.push_str(&String::from_utf8_lossy(line));
                pem.push('\n');
            }
            pem.push_str("-----END CERTIFICATE-----\n");
        }
        (!pem.is_empty()).then_some(pem)
    }

    /// Who the client's certificate says that it is.
    pub(super) fn identity(&self) -> Option<Identity> {
        Identity::read(self.tls.as_ref()?.client_certificates.first()?)
    }

    /// The path without the query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or("")
    }

    /// The query without its `?`.
    pub fn query(&self) -> Option<&str> {
        self.target.split_once('?').map(|(_, query)| query)
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }
}

/// What a client speaks, which decides the form of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// Plain bodies: GET, XML, JSON, forms, and `text/xml` without a SOAPAction header.
    Rest,
    /// SOAP envelopes.
    Soap(SoapVersion),
}
