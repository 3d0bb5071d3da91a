//! From a certificate to what a question about it says: who issued it, by name and key, and which server knows.

use der::{Reader, SEQUENCE, tlv};
use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime};
use webpki::{EndEntityCert, Error, ExtendedKeyUsageValidator, KeyPurposeIdIter};
use x509_parser::extensions::{GeneralName, ParsedExtension};

/// A certificate, as a question names it (RFC 6960, section 4.1.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The serial number, as DER has it.
    pub serial: Vec<u8>,
    /// The name of the issuer, in DER.
    pub issuer_name: Vec<u8>,
    /// The key of the issuer: what is in its `SubjectPublicKeyInfo`.
    pub issuer_key: Vec<u8>,
    /// The http URL of a server that knows, which the certificate names (RFC 5280, section 4.2.2.1).
    pub responder: Option<String>,
}

/// Any extended usage: what a certificate is used for was checked before.
struct AnyPurpose;

impl ExtendedKeyUsageValidator for AnyPurpose {
    fn validate(&self, _: KeyPurposeIdIter<'_, '_>) -> Result<(), Error> {
        Ok(())
    }
}

/// The certificates of a path that may have been revoked: that of the peer first, and with `chain` those between it and the root. Empty: the
/// certificate is trusted by itself, and nobody else could revoke it.
///
/// # Errors
/// No path leads to a root.
pub fn subjects(
    certificate: &[u8],
    between: &[CertificateDer<'_>],
    roots: &[TrustAnchor<'_>],
    now: UnixTime,
    chain: bool,
) -> Result<Vec<Subject>, String> {
    let der = CertificateDer::from(certificate);
    let unreadable = |why: Error| format!("the certificate cannot be read: {why}");
    let end = EndEntityCert::try_from(&der).map_err(unreadable)?;
    let key = end.subject_public_key_info();
    let key = Reader(key.as_ref()).enter(SEQUENCE).map_or(&[][..], |info| info.0);
    let by_itself =
        roots.iter().any(|root| *root.subject == *end.subject() && *root.subject_public_key_info == *key);
    let path =
        end.verify_for_usage(webpki::ALL_VERIFICATION_ALGS, roots, between, now, AnyPurpose, None, None);
    let path = match path {
        Ok(path) => path,
        Err(_) if by_itself => return Ok(Vec::new()),
        Err(why) => return Err(format!("no path leads to a trusted authority: {why}")),
    };
    if by_itself && end.issuer() == end.subject() {
        return Ok(Vec::new());
    }
    let mut out = Vec::new();
    let mut current: (&[u8], &[u8], CertificateDer<'_>) = (end.serial(), end.issuer(), end.der());
    for issuer in path.intermediate_certificates() {
        let info = issuer.subject_public_key_info();
        let key = Reader(info.as_ref()).enter(SEQUENCE).map_or(&[][..], |info| info.0);
        out.push(subject(current.0, current.1, key, &current.2));
        if !chain {
            return Ok(out);
        }
        current = (issuer.serial(), issuer.issuer(), issuer.der());
    }
    out.push(subject(current.0, current.1, &path.anchor().subject_public_key_info, &current.2));
    Ok(out)
}

fn subject(serial: &[u8], issuer: &[u8], issuer_key: &[u8], der: &[u8]) -> Subject {
    Subject {
        serial: serial.to_vec(),
        issuer_name: tlv(SEQUENCE, &[issuer]),
        issuer_key: issuer_key.to_vec(),
        responder: responder(der),
    }
}

/// id-ad-ocsp.
const OCSP: &str = "1.3.6.1.5.5.7.48.1";

fn responder(der: &[u8]) -> Option<String> {
    let (_, certificate) = x509_parser::parse_x509_certificate(der).ok()?;
    certificate.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::AuthorityInfoAccess(access) => access.iter().find_map(|entry| {
            let is_ocsp = entry.access_method.to_id_string() == OCSP;
            match &entry.access_location {
                GeneralName::URI(uri) if is_ocsp && uri.starts_with("http://") => Some((*uri).to_owned()),
                _ => None,
            }
        }),
        _ => None,
    })
}
