//! The certificate of an https listener without one: made at the start, for localhost, trusted by nobody.

use std::sync::Arc;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use transport::ServerTls;

/// Makes a self-signed certificate for `localhost` and the loopback addresses.
///
/// # Errors
/// The cryptographic library refuses, which it has no reason to.
pub fn self_signed(http2: bool) -> Result<ServerTls, String> {
    let failed = |error: &dyn std::fmt::Display| format!("cannot make a certificate for https: {error}");
    let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let made = rcgen::generate_simple_self_signed(names).map_err(|error| failed(&error))?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .map_err(|error| failed(&error))?;
    let protocols: [&[u8]; 2] = [b"h2", b"http/1.1"];
    config.alpn_protocols = protocols[usize::from(!http2)..].iter().map(|name| name.to_vec()).collect();
    tracing::warn!("https uses a certificate made at the start; configure tls.certificate and tls.key");
    Ok(ServerTls::from_config(Arc::new(config)))
}
