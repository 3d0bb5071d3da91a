//! Whom to trust: the certificates of the store themselves, and those that they issued.

use super::KeyStore;
use crate::certificate::Certificate;
use jiff::Timestamp;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, TrustAnchor, UnixTime};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use webpki::{
    EndEntityCert, Error, ExpirationPolicy, ExtendedKeyUsageValidator, KeyPurposeIdIter,
    RevocationOptionsBuilder,
};

/// How long, in seconds, a path that was found is not looked for again, and how many are kept.
const KEPT: i64 = 60;
const MAX_KEPT: usize = 1024;

/// Fewest bits of a key that a path may lead to. A certificate that is trusted by itself may have half as many.
const FEWEST: usize = 2048;

/// The certificates that messages may be signed with.
pub struct Trust {
    anchors: Vec<TrustAnchor<'static>>,
    certificates: Vec<Arc<Certificate>>,
    revoked: Vec<webpki::CertRevocationList<'static>>,
    verified: Mutex<HashMap<Vec<u8>, Verified>>,
}

impl fmt::Debug for Trust {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Trust({:?})", self.certificates)
    }
}

/// A certificate that was verified, and when.
type Verified = (Arc<Certificate>, Timestamp);

/// Any extended usage: those that are there are of TLS, mail and code.
struct AnyPurpose;

impl ExtendedKeyUsageValidator for AnyPurpose {
    fn validate(&self, _: KeyPurposeIdIter<'_, '_>) -> Result<(), Error> {
        Ok(())
    }
}

impl Trust {
    /// Trusts the certificates of a store. `revoked`: revocation lists in DER or PEM.
    ///
    /// # Errors
    /// A revocation list cannot be read.
    pub fn new(store: &KeyStore, revoked: &[Vec<u8>]) -> Result<Trust, String> {
        let certificates: Vec<Arc<Certificate>> =
            store.certificates.iter().map(|(_, certificate)| Arc::clone(certificate)).collect();
        let anchor = |certificate: &Arc<Certificate>| {
            let der = CertificateDer::from(certificate.der.as_slice());
            webpki::anchor_from_trusted_cert(&der).ok().map(|anchor| anchor.to_owned())
        };
        let anchors = certificates.iter().filter_map(anchor).collect();
        let mut lists: Vec<Vec<u8>> = revoked
            .iter()
            .flat_map(|file| super::pem::all(file, "X509 CRL").unwrap_or_else(|| vec![file.clone()]))
            .collect();
        der::revocation_list::newest_first(&mut lists);
        let list = |der: &Vec<u8>| {
            let list = webpki::OwnedCertRevocationList::from_der(&CertificateRevocationListDer::from(
                der.as_slice(),
            ));
            list.map(webpki::CertRevocationList::from)
                .map_err(|why| format!("this is not a revocation list: {why}"))
        };
        let revoked = lists.iter().map(list).collect::<Result<_, _>>()?;
        Ok(Trust { anchors, certificates, revoked, verified: Mutex::default() })
    }

    /// The certificate, if it is trusted at this time.
    ///
    /// # Errors
    /// Why it is not.
    pub fn check(&self, der: &[u8], between: &[Vec<u8>], now: Timestamp) -> Result<Arc<Certificate>, String> {
        let lock = || self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((certificate, at)) = lock().get(der)
            && now.as_second().abs_diff(at.as_second()) < KEPT as u64
            && certificate.is_valid_at(now)
        {
            return Ok(Arc::clone(certificate));
        }
        let certificate = self.check_anew(der, between, now)?;
        let mut verified = lock();
        if verified.len() >= MAX_KEPT {
            verified.clear();
        }
        verified.insert(der.to_vec(), (Arc::clone(&certificate), now));
        Ok(certificate)
    }

    fn check_anew(
        &self,
        der: &[u8],
        between: &[Vec<u8>],
        now: Timestamp,
    ) -> Result<Arc<Certificate>, String> {
        let certificate = Arc::new(Certificate::read(der)?);
        if !certificate.is_valid_at(now) {
            return Err(format!("the certificate of {} is not valid at this time", certificate.subject));
        }
        let by_itself = self.certificates.iter().any(|certificate| certificate.der == der);
        let fewest = if by_itself { FEWEST / 2 } else { FEWEST };
        if certificate.bits < fewest {
            return Err(format!("the key of {} has only {} bits", certificate.subject, certificate.bits));
        }
        if by_itself && self.revoked.is_empty() {
            return Ok(certificate);
        }
        let der = CertificateDer::from(der);
        let between: Vec<CertificateDer<'_>> =
            between.iter().map(|certificate| CertificateDer::from(certificate.as_slice())).collect();
        let time = UnixTime::since_unix_epoch(Duration::from_secs(now.as_second().max(0) as u64));
        let lists: Vec<&webpki::CertRevocationList<'_>> = self.revoked.iter().collect();
        // A list that has expired does not tell what was revoked since.
        let revocation = RevocationOptionsBuilder::new(&lists)
            .ok()
            .map(|builder| builder.with_expiration_policy(ExpirationPolicy::Enforce).build());
        let path = EndEntityCert::try_from(&der).and_then(|certificate| {
            certificate
                .verify_for_usage(
                    webpki::ALL_VERIFICATION_ALGS,
                    &self.anchors,
                    &between,
                    time,
                    AnyPurpose,
                    revocation,
                    None,
                )
                .map(|_| ())
        });
        match path {
            Ok(()) => Ok(certificate),
            // Self-signed, as most certificates are that are trusted by themselves.
            Err(Error::CaUsedAsEndEntity | Error::UnknownIssuer) if by_itself => Ok(certificate),
            Err(why) => Err(format!("the certificate of {} is not trusted: {why}", certificate.subject)),
        }
    }

    /// The names and keys of the certificates, for paths that lead to them.
    pub fn anchors(&self) -> &[TrustAnchor<'static>] {
        &self.anchors
    }

    /// The certificate that fulfils a condition, among those that are trusted by themselves.
    pub fn find(&self, is_it: impl Fn(&Certificate) -> bool) -> Option<&Arc<Certificate>> {
        self.certificates.iter().find(|certificate| is_it(certificate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_was_trusted_is_not_after_its_end() {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).unwrap();
        let mut asked = rcgen::CertificateParams::new(Vec::new()).unwrap();
        asked.not_before = rcgen::date_time_ymd(2020, 1, 1);
        asked.not_after = rcgen::date_time_ymd(2021, 1, 1);
        asked.key_usages = vec![rcgen::KeyUsagePurpose::DigitalSignature];
        let made = asked.self_signed(&key).unwrap();
        let store = KeyStore::read(made.pem().as_bytes(), "", None).unwrap();
        let trust = Trust::new(&store, &[]).unwrap();
        let check = |at: &str| trust.check(made.der(), &[], at.parse().unwrap()).map(drop);
        assert_eq!(check("2020-12-31T23:59:50Z"), Ok(()));
        assert!(check("2021-01-01T00:00:10Z").unwrap_err().contains("not valid at this time"));
        assert_eq!(check("2020-12-31T23:59:55Z"), Ok(()));
    }

    /// An old list before a new one, in one file or two, does not let in who was revoked since.
    #[test]
    fn the_newest_list_counts() {
        use rcgen::{
            CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose, PKCS_RSA_SHA256, SerialNumber,
            date_time_ymd,
        };
        let key = || KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap();
        let (ca_key, leaf_key) = (key(), key());
        let mut ca = CertificateParams::new(Vec::new()).unwrap();
        ca.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let store = KeyStore::read(ca.self_signed(&ca_key).unwrap().pem().as_bytes(), "", None).unwrap();
        let issuer = Issuer::new(ca, ca_key);
        let mut asked = CertificateParams::new(vec!["leaf".to_owned()]).unwrap();
        asked.serial_number = Some(SerialNumber::from(2));
        asked.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let leaf = asked.signed_by(&leaf_key, &issuer).unwrap();
        let list = |since: i32, number: u64| {
            let revoked = rcgen::RevokedCertParams {
                serial_number: SerialNumber::from(number),
                revocation_time: date_time_ymd(2020, 1, 1),
                reason_code: None,
                invalidity_date: None,
            };
            let list = rcgen::CertificateRevocationListParams {
                this_update: date_time_ymd(since, 1, 1),
                next_update: date_time_ymd(2040, 1, 1),
                crl_number: SerialNumber::from(1),
                issuing_distribution_point: None,
                revoked_certs: vec![revoked],
                key_identifier_method: rcgen::KeyIdMethod::Sha256,
            };
            list.signed_by(&issuer).unwrap().pem().unwrap().into_bytes()
        };
        let (old, new, undone) = (list(2020, 9), list(2021, 2), list(2022, 9));
        let check = |lists: &[Vec<u8>]| {
            let trust = Trust::new(&store, lists).unwrap();
            trust.check(leaf.der(), &[], "2026-01-01T00:00:00Z".parse().unwrap()).is_ok()
        };
        assert!(check(std::slice::from_ref(&old)));
        assert!(!check(std::slice::from_ref(&new)));
        assert!(!check(&[old.clone(), new.clone()]) && !check(&[[old.clone(), new.clone()].concat()]));
        assert!(check(&[new, undone, old]));
    }
}
