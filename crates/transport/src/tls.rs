//! TLS: server configurations and client profiles, over rustls with aws-lc-rs.

mod revocation;
mod rules;

pub(crate) use revocation::Peers;
pub use revocation::{Ocsp, Revocation};
pub use rules::TlsRules;

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, HandshakeKind, RootCertStore, ServerConfig,
    SignatureScheme,
};

use crate::http2::ALPN;
use revocation::Stapling;

/// Why a TLS configuration cannot be used: one sentence that names the file or setting.
#[derive(Clone, Debug)]
pub struct TlsError(String);

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TlsError {}

/// Whether clients must show a certificate (`SSLVerifyClient`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ClientVerify {
    /// Not asked for.
    #[default]
    None,
    /// Asked for; one that is shown must be valid.
    Optional,
    /// Demanded.
    Require,
}

/// What a TLS listener is made from. Files are PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerTlsOptions {
    /// Certificate chain, the server's own first.
    pub certificates: PathBuf,
    /// Private key: PKCS#8, PKCS#1 or SEC1.
    pub key: PathBuf,
    /// Authorities that client certificates must come from.
    pub client_roots: Option<PathBuf>,
    /// Whether clients must show a certificate. Default none.
    pub client_verify: ClientVerify,
    /// HTTP/2 is not offered. Default false.
    pub http1_only: bool,
    /// Certificate chains and keys for clients that ask for a host that the first one is not for (SNI).
    pub more: Vec<(PathBuf, PathBuf)>,
    /// Versions, cipher suites, and which client certificates are revoked.
    pub rules: TlsRules,
    /// A response of OCSP about the first certificate, in DER, which clients get with it (stapling). It is sent as it is, even if it has expired.
    pub ocsp_response: Option<PathBuf>,
}

/// What a TLS listener is made from, where somebody else has read it. All of it is DER.
#[derive(Clone, Default)]
pub struct ServerTlsParts {
    /// What messages call it.
    pub name: String,
    /// Certificate chain, the server's own first.
    pub certificates: Vec<Vec<u8>>,
    /// Private key: PKCS#8, PKCS#1 or SEC1.
    pub key: Vec<u8>,
    /// Authorities that client certificates must come from.
    pub client_roots: Vec<Vec<u8>>,
    /// Whether clients must show a certificate.
    pub client_verify: ClientVerify,
    /// HTTP/2 is not offered.
    pub http1_only: bool,
    /// Versions, cipher suites, and lists of client certificates that are revoked.
    pub rules: TlsRules,
}

/// The TLS configuration of a listener.
#[derive(Clone)]
pub struct ServerTls {
    pub(crate) config: Arc<ServerConfig>,
    /// Client certificates are asked about.
    pub(crate) peers: Option<Peers>,
    /// Verifies client certificates.
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    certificate: Option<Arc<[u8]>>,
}

impl ServerTls {
    /// Reads and checks the files.
    pub fn new(options: &ServerTlsOptions) -> Result<ServerTls, TlsError> {
        let roots = match (options.client_verify, &options.client_roots) {
            (ClientVerify::None, _) => None,
            (_, None) => return Err(TlsError("verifying clients needs client_roots".into())),
            (_, Some(file)) => Some((roots(file)?, file.display().to_string())),
        };
        let provider = options.rules.provider()?;
        let mut keys = Vec::new();
        let first = (options.certificates.clone(), options.key.clone());
        for (chain, key_file) in std::iter::once(&first).chain(&options.more) {
            let certified = CertifiedKey::from_der(certificates(chain)?, key(key_file)?, &provider);
            let mut certified = certified.map_err(|e| TlsError(unusable(&e, chain, key_file)))?;
            if let (true, Some(file)) = (keys.is_empty(), &options.ocsp_response) {
                certified.ocsp = Some(ocsp_response(file)?);
            }
            keys.push(Arc::new(certified));
        }
        ServerTls::made(keys, roots, options.client_verify, &options.rules, options.http1_only)
    }

    /// Checks what was read elsewhere.
    pub fn of_parts(parts: ServerTlsParts) -> Result<ServerTls, TlsError> {
        let name = parts.name;
        let key = PrivateKeyDer::try_from(parts.key)
            .map_err(|why| TlsError(format!("the private key in {name} cannot be used: {why}")))?;
        let roots = match parts.client_verify {
            ClientVerify::None => None,
            ClientVerify::Optional | ClientVerify::Require => {
                let mut store = RootCertStore::empty();
                // One that webpki cannot read is no authority; the others count.
                store.add_parsable_certificates(parts.client_roots.into_iter().map(CertificateDer::from));
                Some((store, "the trust store".to_owned()))
            }
        };
        let chain = parts.certificates.into_iter().map(CertificateDer::from).collect();
        let certified = CertifiedKey::from_der(chain, key, &*parts.rules.provider()?)
            .map_err(|e| TlsError(unusable(&e, Path::new(&name), Path::new(&name))))?;
        ServerTls::made(vec![Arc::new(certified)], roots, parts.client_verify, &parts.rules, parts.http1_only)
    }

    fn made(
        certified: Vec<Arc<CertifiedKey>>,
        roots: Option<(RootCertStore, String)>,
        client_verify: ClientVerify,
        rules: &TlsRules,
        http1_only: bool,
    ) -> Result<ServerTls, TlsError> {
        let (provider, lists) = (rules.provider()?, rules.lists()?);
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&rules.versions()?)
            .map_err(|e| TlsError(e.to_string()))?;
        let (mut peers, mut client_verifier) = (None, None);
        let builder = match roots {
            None if rules.ocsp.is_some() => {
                return Err(TlsError("ocsp is about certificates of clients, and none is asked for".into()));
            }
            None if !lists.is_empty() => {
                return Err(TlsError(
                    "revocation lists are of certificates of clients, and none is asked for".into(),
                ));
            }
            None => builder.with_no_client_auth(),
            Some((roots, name)) => {
                let roots = Arc::new(roots);
                peers = rules.ocsp.clone().map(|ocsp| Peers { ocsp, roots: Arc::clone(&roots) });
                let mut verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                if !lists.is_empty() {
                    verifier = verifier.with_crls(lists).enforce_revocation_expiration();
                }
                if client_verify == ClientVerify::Optional {
                    verifier = verifier.allow_unauthenticated();
                }
                let verifier = verifier.build().map_err(|e| rules.unusable(&name, &e))?;
                client_verifier = Some(Arc::clone(&verifier));
                builder.with_client_cert_verifier(verifier)
            }
        };
        let first = certified.first().and_then(|certified| certified.cert.first());
        let certificate = first.map(|der| Arc::from(der.as_ref()));
        let mut config = builder.with_cert_resolver(Arc::new(rules::ByName(certified)));
        config.alpn_protocols = vec![ALPN.to_vec(), b"http/1.1".to_vec()];
        if http1_only {
            config.alpn_protocols.remove(0);
        }
        Ok(ServerTls { config: Arc::new(config), peers, verifier: client_verifier, certificate })
    }

    /// Whether the client of a connection may go on, once its certificate is verified.
    pub(crate) async fn check(&self, connection: &rustls::ServerConnection) -> Result<(), String> {
        // A session that is resumed brings a certificate that was verified when the session began.
        if connection.handshake_kind() == Some(HandshakeKind::Resumed)
            && let (Some(verifier), Some([first, between @ ..])) =
                (&self.verifier, connection.peer_certificates())
        {
            let verified = verifier.verify_client_cert(first, between, UnixTime::now());
            verified.map_err(|error| format!("in a resumed session: {error}"))?;
        }
        match &self.peers {
            None => Ok(()),
            Some(peers) => peers.check(connection).await,
        }
    }

    /// The server's own certificate, in DER; `None` where the configuration was made elsewhere.
    pub fn certificate(&self) -> Option<&[u8]> {
        self.certificate.as_deref()
    }

    /// Uses a configuration made elsewhere. Its ALPN list should be `http/1.1`, or `h2` before it.
    pub fn from_config(config: Arc<ServerConfig>) -> ServerTls {
        ServerTls { config, peers: None, verifier: None, certificate: None }
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerTls")
    }
}

/// Which authorities a client profile trusts.
#[derive(Clone, Debug, Default)]
pub enum Roots {
    /// The bundle of the operating system, `/etc/ssl/certs/ca-certificates.crt` or its kin.
    #[default]
    System,
    /// A PEM bundle.
    File(PathBuf),
    /// Whatever certificate is shown (`novalidatecert`). The connection is encrypted and not authenticated.
    Insecure,
}

/// What a client profile is made from. Files are PEM.
#[derive(Clone, Debug, Default)]
pub struct ClientTlsOptions {
    /// Trusted authorities. Default those of the system.
    pub roots: Roots,
    /// Certificate chain and private key to show when asked.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Name to ask for and to verify instead of the target's host.
    pub server_name: Option<String>,
    /// Which hosts a certificate has to be for.
    pub host_names: HostNames,
    /// Versions, cipher suites, and lists of server certificates that are revoked.
    pub rules: TlsRules,
}

/// Which hosts the certificate of a server has to be for (`HostnameVerifier`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HostNames {
    /// The one that is asked for. A `*` in the certificate is one label (RFC 6125), as `Strict` has it.
    #[default]
    Asked,
    /// Or any, where this machine is asked by `localhost` or a loopback address (`DefaultAndLocalhost`).
    AskedOrLocalhost,
    /// Any (`AllowAll`).
    Any,
}

/// The TLS profile of an endpoint. Cheap to clone; pools are kept apart by it.
#[derive(Clone)]
pub struct ClientTls(Arc<Profile>);

struct Profile {
    id: u64,
    config: Arc<ClientConfig>,
    /// The same, which offers HTTP/2 as well.
    with_http2: OnceLock<Arc<ClientConfig>>,
    server_name: Option<String>,
    /// Server certificates are asked about.
    peers: Option<Peers>,
    /// Verifies server certificates.
    verifier: Option<Arc<dyn ServerCertVerifier>>,
}

impl ClientTls {
    /// Reads and checks the files.
    pub fn new(options: &ClientTlsOptions) -> Result<ClientTls, TlsError> {
        let (provider, lists) = (options.rules.provider()?, options.rules.lists()?);
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&options.rules.versions()?)
            .map_err(|e| TlsError(e.to_string()))?;
        let trusted = match &options.roots {
            Roots::Insecure => None,
            Roots::File(file) => Some(roots(file)?),
            Roots::System => Some(system_roots()?),
        }
        .map(Arc::new);
        let peers = match (&options.rules.ocsp, &trusted) {
            (None, _) => None,
            (Some(_), None) => {
                return Err(TlsError("ocsp needs certificates that are verified: none is (insecure)".into()));
            }
            (Some(ocsp), Some(roots)) => Some(Peers { ocsp: ocsp.clone(), roots: Arc::clone(roots) }),
        };
        let verifier = trusted
            .map(|store| {
                let verifier = WebPkiServerVerifier::builder_with_provider(store, Arc::clone(&provider));
                match lists.is_empty() {
                    true => verifier.build(),
                    false => verifier.with_crls(lists).enforce_revocation_expiration().build(),
                }
            })
            .transpose()
            .map_err(|e| options.rules.unusable("trusted roots", &e))?;
        let verifier: Arc<dyn ServerCertVerifier> = match verifier {
            Some(strict) if options.host_names == HostNames::Asked => strict,
            chain => Arc::new(Lenient { chain, names: options.host_names, provider }),
        };
        let verifier = match &peers {
            None => verifier,
            Some(peers) => Arc::new(Stapling { verifier, peers: peers.clone() }),
        };
        let builder = builder.dangerous().with_custom_certificate_verifier(Arc::clone(&verifier));
        let mut config = match &options.identity {
            None => builder.with_no_client_auth(),
            Some((chain, key_file)) => builder
                .with_client_auth_cert(certificates(chain)?, key(key_file)?)
                .map_err(|e| TlsError(unusable(&e, chain, key_file)))?,
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(ClientTls::build(Arc::new(config), options.server_name.clone(), peers, Some(verifier)))
    }

    /// Uses a configuration made elsewhere. Its ALPN list should be `http/1.1`.
    pub fn from_config(config: Arc<ClientConfig>, server_name: Option<String>) -> ClientTls {
        ClientTls::build(config, server_name, None, None)
    }

    fn build(
        config: Arc<ClientConfig>,
        server_name: Option<String>,
        peers: Option<Peers>,
        verifier: Option<Arc<dyn ServerCertVerifier>>,
    ) -> ClientTls {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        ClientTls(Arc::new(Profile {
            id: NEXT.fetch_add(1, Relaxed),
            config,
            with_http2: OnceLock::new(),
            server_name,
            peers,
            verifier,
        }))
    }

    /// Two profiles are the same only if one is a clone of the other.
    pub(crate) fn id(&self) -> u64 {
        self.0.id
    }

    /// Whether the server of a connection may be talked to, once its certificate is verified.
    pub(crate) async fn check(
        &self,
        connection: &rustls::ClientConnection,
        name: &ServerName<'_>,
    ) -> std::io::Result<()> {
        // A session that is resumed brings a certificate that was verified when the session began.
        if connection.handshake_kind() == Some(HandshakeKind::Resumed)
            && let (Some(verifier), Some([first, between @ ..])) =
                (&self.0.verifier, connection.peer_certificates())
        {
            let verified = verifier.verify_server_cert(first, between, name, &[], UnixTime::now());
            verified.map_err(std::io::Error::other)?;
        }
        match &self.0.peers {
            None => Ok(()),
            Some(peers) => peers.check(connection).await.map_err(std::io::Error::other),
        }
    }

    pub(crate) fn config(&self) -> &Arc<ClientConfig> {
        &self.0.config
    }

    pub(crate) fn with_http2(&self) -> &Arc<ClientConfig> {
        self.0.with_http2.get_or_init(|| {
            let mut config = ClientConfig::clone(&self.0.config);
            config.alpn_protocols = vec![ALPN.to_vec(), b"http/1.1".to_vec()];
            Arc::new(config)
        })
    }

    pub(crate) fn server_name(&self, host: &str) -> Result<ServerName<'static>, TlsError> {
        let name = self.0.server_name.as_deref().unwrap_or(host);
        ServerName::try_from(name.to_owned()).map_err(|_| TlsError(format!("not a host name: {name}")))
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientTls({})", self.0.id)
    }
}

/// What the handshake of a TLS connection agreed on.
#[derive(Clone, Debug)]
pub struct TlsInfo {
    /// `TLSv1_2`, `TLSv1_3`.
    pub version: String,
    /// Cipher suite.
    pub cipher: String,
    /// Host name the client asked for (SNI).
    pub server_name: Option<String>,
    /// The chain the client showed and that was verified, its own certificate first; DER.
    pub client_certificates: Vec<CertificateDer<'static>>,
}

/// Signatures are verified, the name is not, and the chain only where there are roots.
#[derive(Debug)]
struct Lenient {
    chain: Option<Arc<WebPkiServerVerifier>>,
    names: HostNames,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        use rustls::Error;
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        // The chain is checked before the name, so a wrong name means that the chain is right.
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.names == HostNames::Any || is_this_machine(server_name) => {
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Whether a name is that of this machine for itself.
fn is_this_machine(name: &ServerName<'_>) -> bool {
    match name {
        ServerName::DnsName(name) => name.as_ref().eq_ignore_ascii_case("localhost"),
        ServerName::IpAddress(address) => std::net::IpAddr::from(*address).is_loopback(),
        _ => false,
    }
}

/// Most bytes of a PEM file that are read.
const LARGEST: u64 = 16 << 20;

fn read(file: &Path) -> Result<Vec<u8>, TlsError> {
    let mut text = Vec::new();
    let failed = |why: &dyn std::fmt::Display| TlsError(format!("{} cannot be read: {why}", file.display()));
    // Opening a pipe would wait for a writer.
    if !std::fs::metadata(file).map_err(|error| failed(&error))?.is_file() {
        return Err(failed(&"it is not a file"));
    }
    let read = File::open(file).and_then(|opened| opened.take(LARGEST).read_to_end(&mut text));
    read.map_err(|error| failed(&error))?;
    // Editors of Windows put a byte order mark before the first line.
    if text.starts_with(b"\xEF\xBB\xBF") {
        text.drain(..3);
    }
    Ok(text)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read(file)?;
    let fail = |error| TlsError(damaged(file, &error));
    let found: Vec<_> = CertificateDer::pem_slice_iter(&text).collect::<Result<_, _>>().map_err(fail)?;
    if found.is_empty() {
        let file = file.display();
        return Err(TlsError(format!("there is no certificate in {file} (-----BEGIN CERTIFICATE-----)")));
    }
    Ok(found)
}

fn key(file: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let text = read(file)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| {
        let name = file.display();
        let has = |word: &[u8]| memchr::memmem::find(&text, word).is_some();
        TlsError(match error {
            // Of PKCS#8, or as OpenSSL wrote them before.
            pem::Error::NoItemsFound if has(b"BEGIN ENCRYPTED PRIVATE KEY") => {
                format!("the private key in {name} is encrypted; without a pass phrase: openssl pkey -in {name} -out KEY.pem")
            }
            pem::Error::NoItemsFound => {
                format!("there is no private key in {name} (-----BEGIN PRIVATE KEY-----)")
            }
            error => damaged(file, &error),
        })
    })
}

/// What is wrong with a file that should be PEM.
fn damaged(file: &Path, error: &pem::Error) -> String {
    let file = file.display();
    match error {
        pem::Error::MissingSectionEnd { end_marker } => {
            let end = String::from_utf8_lossy(end_marker);
            format!("{file} is cut off: it has -----BEGIN {end}----- and no end of it")
        }
        pem::Error::IllegalSectionStart { line } => {
            format!("{file} is not PEM: `{}` does not begin a section", String::from_utf8_lossy(line))
        }
        pem::Error::Base64Decode(why) => format!("{file} is damaged: it is not Base64 ({why})"),
        error => format!("{file} is not PEM: {error}"),
    }
}

/// Why a certificate and a key cannot be used together.
fn unusable(error: &rustls::Error, certificates: &Path, key: &Path) -> String {
    let (chain, key) = (certificates.display(), key.display());
    match error {
        rustls::Error::InconsistentKeys(_) => {
            format!("the private key in {key} is not that of the certificate in {chain}")
        }
        rustls::Error::InvalidCertificate(CertificateError::BadEncoding) => {
            format!("the certificate in {chain} is not an X.509 certificate")
        }
        rustls::Error::InvalidCertificate(why) if format!("{why:?}").contains("UnsupportedCertVersion") => {
            format!("the certificate in {chain} is of an old version of X.509; version 3 is needed")
        }
        error => format!("{chain} with the key in {key}: {error}"),
    }
}

/// A response of OCSP that is stapled. What it says is for clients to judge.
fn ocsp_response(file: &Path) -> Result<Vec<u8>, TlsError> {
    let bytes = read(file)?;
    match bytes.first() {
        Some(0x30) => Ok(bytes),
        _ => Err(TlsError(format!("{} is not a response of OCSP in DER", file.display()))),
    }
}

fn roots(file: &Path) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(file)? {
        store.add(certificate).map_err(|e| TlsError(format!("{}: {e}", file.display())))?;
    }
    Ok(store)
}

fn system_roots() -> Result<RootCertStore, TlsError> {
    const BUNDLES: [&str; 3] =
        ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];
    let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let mut files = named.into_iter().chain(BUNDLES.map(PathBuf::from));
    let Some(file) = files.find(|f| f.is_file()) else {
        return Err(TlsError("the system has no bundle of trusted roots; name one".into()));
    };
    let mut store = RootCertStore::empty();
    // A system bundle may hold an old certificate that webpki cannot read: the others still count.
    store.add_parsable_certificates(certificates(&file)?);
    Ok(store)
}

impl TlsInfo {
    pub(crate) fn of(connection: &rustls::ServerConnection) -> TlsInfo {
        TlsInfo {
            version: connection.protocol_version().map(|v| format!("{v:?}")).unwrap_or_default(),
            cipher: connection
                .negotiated_cipher_suite()
                .map(|s| format!("{:?}", s.suite()))
                .unwrap_or_default(),
            server_name: connection.server_name().map(str::to_owned),
            client_certificates: connection
                .peer_certificates()
                .map(|chain| chain.iter().map(|c| c.clone().into_owned()).collect())
                .unwrap_or_default(),
        }
    }
}
