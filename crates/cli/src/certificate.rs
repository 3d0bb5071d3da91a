//! Certificates of listeners: the self-signed one of an https listener that has none (made at the start, for localhost), and warnings about
//! those that clients refuse, or will refuse soon.

use flow::inbound::{Store, Stores};
use jiff::{SignedDuration, Timestamp};
use security::keys::Entry;
use std::sync::{Arc, OnceLock};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use transport::{ClientVerify, ServerTls, ServerTlsParts};

/// A self-signed certificate for `localhost` and the loopback addresses. All listeners of the process have the same one, so that clients
/// that have accepted it find it again after a reload.
///
/// # Errors
/// The cryptographic library refuses, which it has no reason to.
pub fn self_signed(http2: bool) -> Result<ServerTls, String> {
    static MADE: OnceLock<Result<SelfSigned, String>> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        tracing::warn!("https uses a certificate made at the start; configure tls.certificate and tls.key");
        SelfSigned::new().map_err(|error| failed(&error))
    });
    let SelfSigned { certificate, key } = made.as_ref().map_err(String::clone)?;
    let provider = Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], PrivateKeyDer::from(key.clone_key()))
        .map_err(|error| failed(&error))?;
    let protocols: [&[u8]; 2] = [b"h2", b"http/1.1"];
    config.alpn_protocols = protocols[usize::from(!http2)..].iter().map(|name| name.to_vec()).collect();
    Ok(ServerTls::from_config(Arc::new(config)))
}

/// A certificate, and its key.
struct SelfSigned {
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
}

impl SelfSigned {
    fn new() -> Result<SelfSigned, rcgen::Error> {
        let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let made = rcgen::generate_simple_self_signed(names)?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        Ok(SelfSigned { certificate: made.cert.der().clone(), key })
    }
}

fn failed(error: &dyn std::fmt::Display) -> String {
    format!("cannot make a certificate for https: {error}")
}

/// The certificate of a listener from key stores of Java: the first private key of one, and the certificates of the other as authorities.
///
/// # Errors
/// A key store cannot be read, or has no such key or certificate.
pub fn of_stores(stores: &Stores, http2: bool) -> Result<ServerTls, String> {
    let name = stores.keys.files.first().map(|file| file.display().to_string()).unwrap_or_default();
    let mut entries = entries(&stores.keys)?;
    let Some(at) = entries.iter().position(|entry| entry.key.is_some()) else {
        return Err(format!("{name}: it has no private key"));
    };
    let Entry { key, chain: mut certificates, .. } = entries.swap_remove(at);
    if certificates.len() < 2 {
        // In PEM, the certificates of the issuers follow.
        certificates
            .extend(entries.into_iter().filter(|entry| entry.key.is_none()).flat_map(|entry| entry.chain));
    }
    let client_roots = match &stores.trusted {
        Some(store) => self::entries(store)?.into_iter().flat_map(|entry| entry.chain).collect(),
        None => Vec::new(),
    };
    let client_verify = stores.client_verify;
    if client_verify != ClientVerify::None && client_roots.is_empty() {
        return Err("the trust store has no certificates".to_owned());
    }
    let key = key.map(|der| der.to_vec()).unwrap_or_default();
    let (rules, http1_only) = (stores.rules.clone(), !http2);
    let parts = ServerTlsParts { name, certificates, key, client_roots, client_verify, http1_only, rules };
    ServerTls::of_parts(parts).map_err(|error| error.to_string())
}

/// What is in a key store.
fn entries(store: &Store) -> Result<Vec<Entry>, String> {
    let mut bytes = Vec::new();
    for file in &store.files {
        let read = config::read_file(file);
        bytes.extend(read.map_err(|why| format!("{} cannot be read: {why}", file.display()))?);
        // In PEM, each part begins a line.
        if store.files.len() > 1 {
            bytes.push(b'\n');
        }
    }
    security::keys::entries(&bytes, &store.password, store.key_password.as_deref()).map_err(|why| {
        format!("{}: {why}", store.files.first().map(|file| file.display().to_string()).unwrap_or_default())
    })
}

/// A certificate that ends within this time is reported.
const SOON: SignedDuration = SignedDuration::from_hours(30 * 24);

/// A warning about the validity of a listener's certificate: clients refuse one that has expired, and nothing else tells of that. `None`: it
/// is valid for long enough.
pub fn remark(tls: &ServerTls, now: Timestamp) -> Option<String> {
    let (begins, ends) = authentication::certificate::validity(tls.certificate()?)?;
    let (begins, ends) = (Timestamp::from_second(begins).ok()?, Timestamp::from_second(ends).ok()?);
    if now < begins {
        return Some(format!("its certificate is not valid before {begins}: clients refuse it until then"));
    }
    let left = ends.duration_since(now);
    if left.is_negative() {
        return Some(format!("its certificate has expired on {ends}: clients refuse it"));
    }
    let days = left.as_hours() / 24;
    (left <= SOON).then(|| format!("its certificate expires on {ends}, in {}", counted_days(days)))
}

fn counted_days(days: i64) -> String {
    match days {
        0 => "less than a day".to_owned(),
        days => crate::words::counted(usize::try_from(days).unwrap_or_default(), "day"),
    }
}
