//! Answers (RFC 6960, section 4.2): what they say of a certificate, from when until when, and whether somebody said it who may: the issuer
//! of the certificate, or whom it has appointed by a certificate with the usage OCSPSigning.

use crate::path::Subject;
use crate::request::{NONCE, SHA1, names};
use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use der::{BOOLEAN, ENUMERATED, GENERALIZED_TIME, INTEGER, OCTETS, OID, Reader, SEQUENCE, tlv};
use rustls_pki_types::{CertificateDer, Der, TrustAnchor, UnixTime};
use std::time::Duration;
use webpki::{EndEntityCert, KeyUsage};
use x509_parser::asn1_rs::FromDer;
use x509_parser::time::ASN1Time;

/// Largest answer, in bytes.
pub const LARGEST: usize = 64 * 1024;
/// How far the clocks of the server and of this machine may differ, in seconds.
const SKEW: i64 = 300;
/// How old an answer may be that does not say when the next one comes, in seconds.
const OLDEST: i64 = 3600;
/// Most certificates of signers that are looked at.
const MOST_SIGNERS: usize = 4;

/// id-pkix-ocsp-basic.
const BASIC: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 1];
/// id-sha256.
const ID_SHA256: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1];
/// id-kp-OCSPSigning.
const OCSP_SIGNING: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 9];

/// What an answer says of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertStatus {
    /// It is revoked, and why.
    pub revoked: Option<&'static str>,
    /// Until when that holds, in seconds since 1970; `None`: the answer does not say.
    pub until: Option<i64>,
}

/// Reads an answer. `now` is in seconds since 1970; `nonce` what the question had, which the answer has to repeat.
///
/// # Errors
/// It says nothing about the certificate, or nothing that counts.
pub fn read(der: &[u8], subject: &Subject, now: i64, nonce: Option<&[u8]>) -> Result<CertStatus, String> {
    let broken = || "the answer is not one of OCSP".to_owned();
    let basic = basic(der).ok_or_else(broken)??;
    let mut basic = Reader(basic).enter(SEQUENCE).ok_or_else(broken)?;
    let said = basic.value(SEQUENCE).ok_or_else(broken)?;
    let algorithm = basic.enter(SEQUENCE).ok_or_else(broken)?;
    let signature = basic.bits().ok_or_else(broken)?;
    let signers = basic.tagged(0).and_then(|mut tagged| tagged.enter(SEQUENCE));
    if !is_signed(said.whole, algorithm.0, signature, signers, subject, now) {
        return Err("the answer is not signed by the issuer, nor by whom it has appointed".to_owned());
    }
    let mut said = Reader(said.content);
    _ = said.tagged(0);
    let _who = said.any().ok_or_else(broken)?;
    let _produced = said.value(GENERALIZED_TIME).ok_or_else(broken)?;
    let mut entries = said.enter(SEQUENCE).ok_or_else(broken)?;
    let found = extensions(said.tagged(1)).ok_or_else(broken)??;
    if let Some(nonce) = nonce {
        let repeated = found.is_some_and(|found| found == nonce || found == tlv(OCTETS, &[nonce]));
        if !repeated {
            return Err("the answer does not repeat the nonce of the question".to_owned());
        }
    }
    let mut answer: Option<Result<CertStatus, String>> = None;
    while !entries.is_empty() {
        let mut entry = entries.enter(SEQUENCE).ok_or_else(broken)?;
        let id = entry.enter(SEQUENCE).ok_or_else(broken)?;
        if !is_about(id, subject).ok_or_else(broken)? {
            continue;
        }
        let found = status(entry, now).ok_or_else(broken)?;
        // Of several that one counts which is worse.
        if answer.is_none() || matches!(&found, Ok(CertStatus { revoked: Some(_), .. })) {
            answer = Some(found);
        }
    }
    answer.unwrap_or_else(|| Err("the answer is about another certificate".to_owned()))
}

/// The answer proper; an error is what the server says instead. `None`: it is not DER.
fn basic(der: &[u8]) -> Option<Result<&[u8], String>> {
    let mut input = Reader(der);
    let mut outer = input.enter(SEQUENCE)?;
    if !input.is_empty() {
        return None;
    }
    let status = outer.value(ENUMERATED)?.content;
    let why = match status {
        [0] => None,
        [1] => Some("it did not understand the question"),
        [2] => Some("it has an internal error"),
        [3] => Some("it asks to try later"),
        [5] => Some("it answers signed questions only"),
        [6] => Some("it does not answer for this certificate"),
        _ => Some("it answered with an unknown status"),
    };
    if let Some(why) = why {
        return Some(Err(why.to_owned()));
    }
    let mut bytes = outer.tagged(0)?.enter(SEQUENCE)?;
    if bytes.value(OID)?.content != BASIC {
        return Some(Err("the answer is of an unknown kind".to_owned()));
    }
    Some(Ok(bytes.value(OCTETS)?.content))
}

/// The nonce among extensions. A critical one that is not known is an error; `None`: they are not whole.
fn extensions(tagged: Option<Reader<'_>>) -> Option<Result<Option<&[u8]>, String>> {
    let Some(mut tagged) = tagged else { return Some(Ok(None)) };
    let mut list = tagged.enter(SEQUENCE)?;
    let mut nonce = None;
    while !list.is_empty() {
        let mut extension = list.enter(SEQUENCE)?;
        let name = extension.value(OID)?.content;
        let critical = extension.value(BOOLEAN).is_some_and(|value| value.content != [0]);
        let value = extension.value(OCTETS)?.content;
        if name == NONCE {
            nonce = Some(value);
        } else if critical {
            return Some(Err("the answer demands what is not known here".to_owned()));
        }
    }
    Some(Ok(nonce))
}

/// Whether an entry is about this certificate.
fn is_about(mut id: Reader<'_>, subject: &Subject) -> Option<bool> {
    let algorithm = id.enter(SEQUENCE)?.value(OID)?.content;
    let name = id.value(OCTETS)?.content;
    let key = id.value(OCTETS)?.content;
    let serial = id.value(INTEGER)?.content;
    let algorithm = match algorithm {
        SHA1 => &SHA1_FOR_LEGACY_USE_ONLY,
        ID_SHA256 => &SHA256,
        _ => return Some(false),
    };
    let (wanted_name, wanted_key) = names(subject, |bytes| digest(algorithm, bytes));
    Some(serial == subject.serial && wanted_name.as_ref() == name && wanted_key.as_ref() == key)
}

/// What an entry says, behind the name of the certificate.
fn status(mut entry: Reader<'_>, now: i64) -> Option<Result<CertStatus, String>> {
    let status = entry.any()?;
    let revoked = match status.number_in_context()? {
        0 => None,
        1 => {
            let mut revoked = status.inside();
            _ = time(&mut revoked)?;
            let reason = revoked.tagged(0).and_then(|mut tagged| tagged.value(ENUMERATED));
            Some(reason.map_or("without a reason", |reason| named(reason.content)))
        }
        _ => return Some(Err("the server does not know the certificate".to_owned())),
    };
    let from = time(&mut entry)?;
    let until = match entry.tagged(0) {
        Some(mut tagged) => Some(time(&mut tagged)?),
        None => None,
    };
    if let Err(why) = extensions(entry.tagged(1))? {
        return Some(Err(why));
    }
    if from > now.saturating_add(SKEW) {
        return Some(Err("the answer is of the future".to_owned()));
    }
    let until_at_most = until.unwrap_or_else(|| from.saturating_add(OLDEST));
    if until_at_most.saturating_add(SKEW) < now {
        return Some(Err("the answer is too old".to_owned()));
    }
    Some(Ok(CertStatus { revoked, until }))
}

fn time(input: &mut Reader<'_>) -> Option<i64> {
    let (rest, time) = ASN1Time::from_der(input.0).ok()?;
    input.0 = rest;
    Some(time.timestamp())
}

/// Reasons (RFC 5280, section 5.3.1).
fn named(reason: &[u8]) -> &'static str {
    match reason {
        [1] => "its key was compromised",
        [2] => "its authority was compromised",
        [3] => "the affiliation of its owner has changed",
        [4] => "another one replaces it",
        [5] => "it is not needed any more",
        [6] => "it is on hold",
        [9] => "a privilege was withdrawn",
        _ => "for a reason without a name",
    }
}

/// Whether the issuer signed what is said, or a certificate that the issuer signed for that. Whether the latter certificate is revoked is not asked.
fn is_signed(
    said: &[u8],
    algorithm: &[u8],
    signature: &[u8],
    signers: Option<Reader<'_>>,
    subject: &Subject,
    now: i64,
) -> bool {
    if verify(&subject.issuer_key, algorithm, said, signature) {
        return true;
    }
    let Some(mut signers) = signers else { return false };
    let Some(name) = Reader(&subject.issuer_name).enter(SEQUENCE) else { return false };
    let issuer = [TrustAnchor {
        subject: Der::from_slice(name.0),
        subject_public_key_info: Der::from_slice(&subject.issuer_key),
        name_constraints: None,
    }];
    let time = UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(now).unwrap_or_default()));
    for _ in 0..MOST_SIGNERS {
        let Some(signer) = signers.value(SEQUENCE) else { return false };
        let der = CertificateDer::from(signer.whole);
        let Ok(signer) = EndEntityCert::try_from(&der) else { continue };
        let info = signer.subject_public_key_info();
        let Some(key) = Reader(info.as_ref()).enter(SEQUENCE) else { continue };
        let usage = KeyUsage::required(OCSP_SIGNING);
        let appointed = signer
            .verify_for_usage(webpki::ALL_VERIFICATION_ALGS, &issuer, &[], time, usage, None, None)
            .is_ok();
        if appointed && verify(key.0, algorithm, said, signature) {
            return true;
        }
    }
    false
}

/// Whether a signature is right. `key` is what is in a `SubjectPublicKeyInfo`.
fn verify(key: &[u8], algorithm: &[u8], said: &[u8], signature: &[u8]) -> bool {
    let mut info = Reader(key);
    let Some(kind) = info.enter(SEQUENCE) else { return false };
    let Some(bits) = info.bits() else { return false };
    webpki::ALL_VERIFICATION_ALGS.iter().any(|known| {
        known.public_key_alg_id().as_ref() == kind.0
            && known.signature_alg_id().as_ref() == algorithm
            && known.verify_signature(bits, said, signature).is_ok()
    })
}
