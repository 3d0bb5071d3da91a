//! What may be negotiated in a handshake: versions, cipher suites, and certificates that are not revoked.

use super::{Ocsp, TlsError, read};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateRevocationListDer, ServerName};
use rustls::server::VerifierBuilderError;
use rustls::sign::CertifiedKey;
use rustls::{CertRevocationListError, CipherSuite, SupportedProtocolVersion, version};
use std::path::PathBuf;
use std::sync::Arc;

/// What one side demands beyond the safe defaults. Default: nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsRules {
    /// `TLSv1.2` and `TLSv1.3`; empty: both.
    pub versions: Vec<String>,
    /// Names of cipher suites (IANA), the preferred one first; empty: all that are safe.
    pub ciphers: Vec<String>,
    /// Revocation lists, in PEM (as many as the file has) or DER. Where there is one, each certificate of a chain has to be in the scope of
    /// one that has not expired.
    pub revoked: Vec<PathBuf>,
    /// Servers are asked whether certificates are revoked. Default: they are not.
    pub ocsp: Option<Ocsp>,
}

/// The name of a suite as IANA writes it.
fn name(suite: CipherSuite) -> String {
    suite.as_str().unwrap_or_default().replacen("TLS13_", "TLS_", 1)
}

impl TlsRules {
    /// The versions of old configurations, of which those that are not safe are left out, and the same of cipher suites. What is left out is
    /// returned too.
    pub fn lenient(versions: &[String], ciphers: &[String]) -> (TlsRules, Vec<String>) {
        let available: Vec<String> =
            aws_lc_rs::default_provider().cipher_suites.iter().map(|suite| name(suite.suite())).collect();
        let mut rules = TlsRules::default();
        let mut left_out = Vec::new();
        for version in versions {
            match version_of(version) {
                Some(_) => rules.versions.push(version.clone()),
                // `TLS` means every version.
                None if version.eq_ignore_ascii_case("TLS") => {}
                None => left_out.push(version.clone()),
            }
        }
        for cipher in ciphers {
            match available.iter().any(|available_name| available_name.eq_ignore_ascii_case(cipher)) {
                true => rules.ciphers.push(cipher.clone()),
                false => left_out.push(cipher.clone()),
            }
        }
        (rules, left_out)
    }

    /// Checks that something can be negotiated.
    ///
    /// # Errors
    /// A version or a cipher suite is unknown, or they exclude each other.
    pub fn check(&self) -> Result<(), TlsError> {
        self.provider().and(self.versions()).map(drop)
    }

    /// The algorithms.
    pub(super) fn provider(&self) -> Result<Arc<CryptoProvider>, TlsError> {
        let mut provider = aws_lc_rs::default_provider();
        if !self.ciphers.is_empty() {
            let suites = std::mem::take(&mut provider.cipher_suites);
            for wanted in &self.ciphers {
                let found = suites.iter().find(|suite| name(suite.suite()).eq_ignore_ascii_case(wanted));
                match found {
                    Some(suite) => provider.cipher_suites.push(*suite),
                    None => {
                        let names: Vec<String> = suites.iter().map(|suite| name(suite.suite())).collect();
                        return Err(TlsError(format!(
                            "there is no safe cipher suite `{wanted}`; there are {}",
                            names.join(", ")
                        )));
                    }
                }
            }
            for version in self.versions()? {
                if !provider.cipher_suites.iter().any(|suite| suite.version() == version) {
                    return Err(TlsError(format!(
                        "none of the cipher suites is of {}: name one, or leave that version out",
                        shown(version)
                    )));
                }
            }
        }
        Ok(Arc::new(provider))
    }

    /// The versions; one that has none of the cipher suites is an error only where it is named.
    pub(super) fn versions(&self) -> Result<Vec<&'static SupportedProtocolVersion>, TlsError> {
        if self.versions.is_empty() {
            let versions = [&version::TLS13, &version::TLS12];
            if self.ciphers.is_empty() {
                return Ok(versions.into());
            }
            // TLS 1.3 has suites of its own, whose names do not tell the kind of key.
            let has = |supported: &SupportedProtocolVersion| {
                self.ciphers.iter().any(|name| {
                    let is_new = !name.to_ascii_uppercase().contains("_WITH_");
                    is_new == (supported.version == version::TLS13.version)
                })
            };
            return Ok(versions.into_iter().filter(|version| has(version)).collect());
        }
        let mut found = Vec::new();
        for name in &self.versions {
            let version = version_of(name).ok_or_else(|| {
                TlsError(format!(
                    "`{name}` is not a version of TLS that is safe; expected TLSv1.2 or TLSv1.3"
                ))
            })?;
            found.push(version);
        }
        Ok(found)
    }

    /// The revocation lists, newer ones first.
    pub(super) fn lists(&self) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
        let mut lists = Vec::new();
        for file in &self.revoked {
            let bytes = read(file)?;
            let before = lists.len();
            if bytes.first() == Some(&0x30) {
                lists.push(CertificateRevocationListDer::from(bytes));
                continue;
            }
            for list in CertificateRevocationListDer::pem_slice_iter(&bytes) {
                lists.push(list.map_err(|error| TlsError(super::damaged(file, &error)))?);
            }
            if lists.len() == before {
                let file = file.display();
                return Err(TlsError(format!(
                    "there is no revocation list in {file} (-----BEGIN X509 CRL-----)"
                )));
            }
        }
        der::revocation_list::newest_first(&mut lists);
        Ok(lists)
    }

    /// Why no verifier could be made: of `roots`, or of these lists.
    pub(super) fn unusable(&self, roots: &str, error: &VerifierBuilderError) -> TlsError {
        let VerifierBuilderError::InvalidCrl(error) = error else {
            return TlsError(format!("{roots}: {error}"));
        };
        let files: Vec<String> = self.revoked.iter().map(|file| file.display().to_string()).collect();
        let which = match files.as_slice() {
            [file] => format!("the revocation list {file}"),
            files => format!("one of the revocation lists {}", files.join(", ")),
        };
        let why = match error {
            CertRevocationListError::UnsupportedDeltaCrl => {
                "it has the changes since another list only: name the whole list".to_owned()
            }
            CertRevocationListError::UnsupportedIndirectCrl => "it has entries of other issuers".to_owned(),
            other => format!("{other:?}"),
        };
        TlsError(format!("{which} cannot be used: {why}"))
    }
}

fn shown(version: &SupportedProtocolVersion) -> &'static str {
    if version.version == version::TLS13.version { "TLSv1.3" } else { "TLSv1.2" }
}

fn version_of(name: &str) -> Option<&'static SupportedProtocolVersion> {
    match name.trim().to_ascii_lowercase().as_str() {
        "tlsv1.3" | "1.3" => Some(&version::TLS13),
        "tlsv1.2" | "1.2" => Some(&version::TLS12),
        _ => None,
    }
}

/// Certificates by the name that a client asks for: of those that are for it the one that fits best, else the first of all.
#[derive(Debug)]
pub(super) struct ByName(pub(super) Vec<Arc<CertifiedKey>>);

/// How well a certificate fits a client; the least is the best. One that the client cannot verify (of another kind of key) ends the handshake, one with a `*` is meant for
/// names that have none of their own.
type Misfit = (bool, bool);

impl rustls::server::ResolvesServerCert for ByName {
    fn resolve(&self, hello: rustls::server::ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name();
        let misfit = |key: &CertifiedKey, name: &str| -> Option<Misfit> {
            let certificate = rustls::server::ParsedCertificate::try_from(key.cert.first()?).ok()?;
            let is_for = |name: &str| {
                let name = ServerName::try_from(name);
                name.is_ok_and(|name| rustls::client::verify_server_name(&certificate, &name).is_ok())
            };
            // Only a `*` is for a name that nobody has written.
            let by_star =
                || name.split_once('.').is_some_and(|(label, rest)| is_for(&format!("{label}-0.{rest}")));
            let is_signed = key.key.choose_scheme(hello.signature_schemes()).is_some();
            is_for(name).then(|| (!is_signed, by_star()))
        };
        let fitting = name.and_then(|name| {
            let fitting = self.0.iter().filter_map(|key| Some((misfit(key, name)?, key)));
            fitting.min_by_key(|(misfit, _)| *misfit).map(|(_, key)| key)
        });
        fitting.or_else(|| self.0.first()).cloned()
    }
}
