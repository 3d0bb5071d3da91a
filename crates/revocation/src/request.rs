//! Questions (RFC 6960, section 4.1).

use crate::path::Subject;
use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use der::{INTEGER, OCTETS, OID, Reader, SEQUENCE, tagged, tlv};

/// id-sha1. It names the issuer here and protects nothing; every server knows it (RFC 5019, section 2.1.1).
pub(crate) const SHA1: &[u8] = &[0x2b, 0x0e, 0x03, 0x02, 0x1a];
/// id-pkix-ocsp-nonce.
pub(crate) const NONCE: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 2];

/// Longest path with a question in it (RFC 5019, section 5).
const LONGEST_PATH: usize = 255;

/// A question about one certificate, in DER.
pub fn write(subject: &Subject, nonce: Option<&[u8]>) -> Vec<u8> {
    let algorithm = tlv(SEQUENCE, &[&tlv(OID, &[SHA1]), &[0x05, 0x00]]);
    let (name, key) = names(subject, |bytes| digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes));
    let id = tlv(
        SEQUENCE,
        &[
            &algorithm,
            &tlv(OCTETS, &[name.as_ref()]),
            &tlv(OCTETS, &[key.as_ref()]),
            &tlv(INTEGER, &[&subject.serial]),
        ],
    );
    let list = tlv(SEQUENCE, &[&tlv(SEQUENCE, &[&id])]);
    let extensions = nonce.map(|nonce| {
        let extension = tlv(SEQUENCE, &[&tlv(OID, &[NONCE]), &tlv(OCTETS, &[&tlv(OCTETS, &[nonce])])]);
        tagged(2, &[&tlv(SEQUENCE, &[&extension])])
    });
    tlv(SEQUENCE, &[&tlv(SEQUENCE, &[&list, extensions.as_deref().unwrap_or_default()])])
}

/// Name and key of the issuer, digested.
pub(crate) fn names<D>(subject: &Subject, digest: impl Fn(&[u8]) -> D) -> (D, D) {
    let mut info = Reader(&subject.issuer_key);
    let key = info.enter(SEQUENCE).and_then(|_| info.bits()).unwrap_or_default();
    (digest(&subject.issuer_name), digest(key))
}

/// The path of a question by GET, below that of the server; `None`: it would be too long, and POST is used (RFC 5019, section 5).
pub fn path(server: &str, question: &[u8]) -> Option<String> {
    let mut path = server.trim_end_matches('/').to_owned();
    path.push('/');
    for letter in STANDARD.encode(question).chars() {
        match letter {
            '+' => path.push_str("%2B"),
            '/' => path.push_str("%2F"),
            '=' => path.push_str("%3D"),
            letter => path.push(letter),
        }
    }
    (path.len() <= LONGEST_PATH).then_some(path)
}
