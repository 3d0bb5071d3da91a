//! Whether the certificates of peers are revoked: asked after the handshake and before anything is sent or answered, so that nothing blocks the
//! event loop. How is the business of who implements [`Revocation`].

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, TrustAnchor, UnixTime};
use rustls::{CommonState, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// Knows whether certificates are revoked, or whom to ask. Two of them are the same if their `Debug` is.
pub trait Revocation: Send + Sync + fmt::Debug {
    /// Whether the certificate of a peer may be used; the error says why not. `between` came with it, `roots` are trusted. `hard`: where
    /// nobody says that it is good, it may not. All of it has a deadline.
    fn check<'a>(
        &'a self,
        certificate: &'a [u8],
        between: &'a [CertificateDer<'a>],
        roots: &'a [TrustAnchor<'static>],
        hard: bool,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

    /// A server has sent this response of OCSP with its certificate (RFC 6066, section 8).
    fn stapled(
        &self,
        certificate: &[u8],
        between: &[CertificateDer<'_>],
        roots: &[TrustAnchor<'static>],
        response: &[u8],
    );
}

/// That certificates are asked about.
#[derive(Clone, Debug)]
pub struct Ocsp {
    /// By whom.
    pub servers: Arc<dyn Revocation>,
    /// Where nobody answers, the certificate is refused.
    pub hard: bool,
}

impl PartialEq for Ocsp {
    fn eq(&self, other: &Ocsp) -> bool {
        self.hard == other.hard && format!("{:?}", self.servers) == format!("{:?}", other.servers)
    }
}

impl Eq for Ocsp {}

/// That the certificates of peers are asked about, and whose they must be.
#[derive(Clone, Debug)]
pub(crate) struct Peers {
    pub(super) ocsp: Ocsp,
    pub(super) roots: Arc<RootCertStore>,
}

impl Peers {
    /// Asks about the peer of a connection, which may have shown no certificate.
    pub(crate) fn check(
        &self,
        connection: &CommonState,
    ) -> impl Future<Output = Result<(), String>> + Send + use<> {
        let chain: Vec<CertificateDer<'static>> = connection
            .peer_certificates()
            .map(|chain| chain.iter().map(|certificate| certificate.clone().into_owned()).collect())
            .unwrap_or_default();
        let Peers { ocsp, roots } = self.clone();
        async move {
            let Some((first, between)) = chain.split_first() else { return Ok(()) };
            ocsp.servers.check(first, between, &roots.roots, ocsp.hard).await
        }
    }
}

/// Verifies as before, and hands on what is stapled.
#[derive(Debug)]
pub(super) struct Stapling {
    pub(super) verifier: Arc<dyn ServerCertVerifier>,
    pub(super) peers: Peers,
}

impl ServerCertVerifier for Stapling {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified =
            self.verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)?;
        if !ocsp_response.is_empty() {
            let Peers { ocsp, roots } = &self.peers;
            ocsp.servers.stapled(end_entity, intermediates, &roots.roots, ocsp_response);
        }
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}
