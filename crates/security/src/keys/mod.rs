//! Private keys and certificates: the key stores they come from (PEM, PKCS#12, JKS), and who is trusted.

mod jks;
mod pem;
mod pkcs12;
mod sealed;
mod trust;

pub use trust::Trust;

use crate::algorithm::{Digest, Secret, Transport};
use crate::certificate::Certificate;
use crate::legacy::Sha1Signer;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{
    OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, Pkcs1PrivateDecryptingKey, PrivateDecryptingKey,
};
use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RsaEncoding, RsaKeyPair};
use der::{OCTETS, OID, Reader, SEQUENCE, tlv};
use std::fmt;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Largest key store in bytes, and most entries of one.
const LARGEST: usize = 4 << 20;
const ENTRIES: usize = 4096;

const RSA_ENCRYPTION: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];

/// A private key of RSA.
pub struct PrivateKey {
    pair: RsaKeyPair,
    sha1: Sha1Signer,
    oaep: OaepPrivateDecryptingKey,
    pkcs1: Pkcs1PrivateDecryptingKey,
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("PrivateKey")
    }
}

impl PrivateKey {
    /// Of PKCS #8 or PKCS #1.
    pub fn read(der: &[u8]) -> Option<PrivateKey> {
        let pkcs1 = match inner(der) {
            Some(inner) => inner,
            None => der,
        };
        let algorithm = tlv(SEQUENCE, &[&tlv(OID, &[RSA_ENCRYPTION]), &[5, 0]]);
        let pkcs8 = Zeroizing::new(tlv(SEQUENCE, &[&[2, 1, 0], &algorithm, &tlv(OCTETS, &[pkcs1])]));
        let key = || PrivateDecryptingKey::from_pkcs8(&pkcs8).ok();
        Some(PrivateKey {
            pair: RsaKeyPair::from_pkcs8(&pkcs8).ok()?,
            sha1: Sha1Signer::new(pkcs1)?,
            oaep: OaepPrivateDecryptingKey::new(key()?).ok()?,
            pkcs1: Pkcs1PrivateDecryptingKey::new(key()?).ok()?,
        })
    }

    /// Signs (PKCS #1 1.5).
    pub fn sign(&self, how: Digest, bytes: &[u8]) -> Option<Vec<u8>> {
        let how: &'static dyn RsaEncoding = match how {
            Digest::Sha1 => return self.sha1.sign(&crate::algorithm::sha1(bytes)),
            Digest::Sha256 => &RSA_PKCS1_SHA256,
            Digest::Sha384 => &RSA_PKCS1_SHA384,
            Digest::Sha512 => &RSA_PKCS1_SHA512,
        };
        let mut signature = vec![0; self.pair.public_modulus_len()];
        self.pair.sign(how, &SystemRandom::new(), bytes, &mut signature).ok()?;
        Some(signature)
    }

    /// The key that was encrypted for this one.
    pub fn decrypt(&self, how: Transport, sealed: &[u8]) -> Option<Secret> {
        let mut room = Secret::new(vec![0; self.oaep.key_size_bytes()]);
        let plain = match how {
            Transport::Oaep => self.oaep.decrypt(&OAEP_SHA1_MGF1SHA1, sealed, &mut room, None),
            Transport::Rsa15 => self.pkcs1.decrypt(sealed, &mut room),
        };
        plain.ok().map(|plain| Secret::new(plain.to_vec()))
    }
}

/// RSAPrivateKey in PrivateKeyInfo.
fn inner(pkcs8: &[u8]) -> Option<&[u8]> {
    let mut info = Reader(pkcs8).enter(SEQUENCE)?;
    info.number()?;
    let algorithm = info.enter(SEQUENCE)?.value(OID)?.content;
    (algorithm == RSA_ENCRYPTION).then_some(())?;
    Some(info.value(OCTETS)?.content)
}

/// A private key with its certificate.
#[derive(Debug)]
pub struct Identity {
    /// Its name in the key store.
    pub alias: String,
    /// The key.
    pub key: PrivateKey,
    /// Its certificate.
    pub certificate: Arc<Certificate>,
}

/// What was read of key stores.
#[derive(Clone, Debug, Default)]
pub struct KeyStore {
    /// Private keys.
    pub identities: Vec<Arc<Identity>>,
    /// Certificates that are trusted, with their names.
    pub certificates: Vec<(String, Arc<Certificate>)>,
}

/// An entry as it is in a store.
pub struct Entry {
    /// Its name.
    pub alias: String,
    /// The private key of the first certificate, in DER (PKCS #8; of PEM also PKCS #1).
    pub key: Option<Secret>,
    /// Certificates in DER: its own first, then those that issued it.
    pub chain: Vec<Vec<u8>>,
}

/// The entries of a key store (JKS, PKCS#12 or PEM, by what it begins with), with keys of any kind. `key_password` is that of the private keys,
/// where it is another one.
///
/// # Errors
/// As [`KeyStore::read`].
pub fn entries(bytes: &[u8], password: &str, key_password: Option<&str>) -> Result<Vec<Entry>, String> {
    if bytes.len() > LARGEST {
        return Err("it is too large for a key store".to_owned());
    }
    let key_password = key_password.unwrap_or(password);
    let entries = match bytes {
        [0xfe, 0xed, 0xfe, 0xed, ..] => jks::read(bytes, password, key_password),
        [0xce, 0xce, 0xce, 0xce, ..] => {
            Err("a JCEKS key store is not read here: `keytool -importkeystore -deststoretype PKCS12`"
                .to_owned())
        }
        [0x30, ..] => pkcs12::read(bytes, password),
        _ => pem::read(bytes, key_password),
    }?;
    match entries.len() > ENTRIES {
        true => Err("it has too many entries".to_owned()),
        false => Ok(entries),
    }
}

impl KeyStore {
    /// Reads a key store: JKS, PKCS#12 or PEM, by what it begins with. `key_password` is that of the private keys, where it is another one.
    ///
    /// # Errors
    /// It is none, the password is wrong, or what it has is encrypted in a way that is not known here.
    pub fn read(bytes: &[u8], password: &str, key_password: Option<&str>) -> Result<KeyStore, String> {
        let mut store = KeyStore::default();
        let mut skipped = None;
        for entry in entries(bytes, password, key_password)? {
            let Some(first) = entry.chain.first() else { continue };
            // Keys of other kinds than RSA have no use here.
            let certificate = match Certificate::read(first) {
                Ok(certificate) => certificate,
                Err(why) => {
                    skipped.get_or_insert(why);
                    continue;
                }
            };
            let certificate = Arc::new(certificate);
            match entry.key {
                None => store.certificates.push((entry.alias, certificate)),
                Some(key) => {
                    let Some(key) = PrivateKey::read(&key) else {
                        return Err(format!("the private key {} is none of RSA, or damaged", entry.alias));
                    };
                    store.identities.push(Arc::new(Identity { alias: entry.alias, key, certificate }));
                }
            }
        }
        if store.identities.is_empty() && store.certificates.is_empty() {
            return Err(match skipped {
                Some(why) => format!("none of its certificates can be used: {why}"),
                None => "it has no entries".to_owned(),
            });
        }
        Ok(store)
    }

    /// Adds what another store has.
    pub fn add(&mut self, other: KeyStore) {
        self.identities.extend(other.identities);
        self.certificates.extend(other.certificates);
    }

    /// The private key of a name; of an empty one the only one there is.
    pub fn identity(&self, alias: &str) -> Option<&Arc<Identity>> {
        match (alias, self.identities.as_slice()) {
            ("", [only]) => Some(only),
            _ => self.identities.iter().find(|identity| identity.alias.eq_ignore_ascii_case(alias)),
        }
    }

    /// The certificate of a name, that of a private key too.
    pub fn certificate(&self, alias: &str) -> Option<&Arc<Certificate>> {
        let entry = self.certificates.iter().find(|(name, _)| name.eq_ignore_ascii_case(alias));
        entry.map(|(_, certificate)| certificate).or_else(|| {
            self.identity(alias).filter(|_| !alias.is_empty()).map(|identity| &identity.certificate)
        })
    }

    /// All certificates, those of private keys too.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Certificate>> {
        let identities = self.identities.iter().map(|identity| &identity.certificate);
        self.certificates.iter().map(|(_, certificate)| certificate).chain(identities)
    }
}
