//! Digests, signatures, ciphers and key transport by their URIs. The work is done by AWS-LC.

use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, DecryptingKey, DecryptionContext, EncryptingKey, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::rsa::{
    OAEP_SHA1_MGF1SHA1, OaepPublicEncryptingKey, Pkcs1PublicEncryptingKey, PublicEncryptingKey,
};
use aws_lc_rs::signature::{self, ParsedPublicKey, VerificationAlgorithm};
use aws_lc_rs::{aead, digest, hmac, rand};
use des::TdesEde3;
use des::cipher::{Block, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use std::ops::Range;
use std::sync::OnceLock;
use zeroize::Zeroizing;

/// A secret that is overwritten when it is dropped.
pub type Secret = Zeroizing<Vec<u8>>;

/// A digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digest {
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl Digest {
    const URIS: [(Digest, &'static str); 4] = [
        (Digest::Sha1, "http://www.w3.org/2000/09/xmldsig#sha1"),
        (Digest::Sha256, "http://www.w3.org/2001/04/xmlenc#sha256"),
        (Digest::Sha384, "http://www.w3.org/2001/04/xmldsig-more#sha384"),
        (Digest::Sha512, "http://www.w3.org/2001/04/xmlenc#sha512"),
    ];

    /// Its URI.
    pub fn uri(self) -> &'static str {
        uri_of(&Self::URIS, self)
    }

    /// By its URI.
    pub fn of(uri: &str) -> Option<Digest> {
        by_uri(&Self::URIS, uri)
    }

    fn algorithm(self) -> &'static digest::Algorithm {
        match self {
            Digest::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            Digest::Sha256 => &digest::SHA256,
            Digest::Sha384 => &digest::SHA384,
            Digest::Sha512 => &digest::SHA512,
        }
    }

    /// The digest of some bytes.
    pub fn hash(self, bytes: &[u8]) -> digest::Digest {
        digest::digest(self.algorithm(), bytes)
    }

    /// A digest of bytes that come in pieces.
    pub(crate) fn begin(self) -> digest::Context {
        digest::Context::new(self.algorithm())
    }
}

fn uri_of<T: Copy + PartialEq>(table: &[(T, &'static str)], algorithm: T) -> &'static str {
    table.iter().find(|(entry, _)| *entry == algorithm).map_or("", |(_, uri)| uri)
}

fn by_uri<T: Copy>(table: &[(T, &'static str)], uri: &str) -> Option<T> {
    table.iter().find(|(_, entry)| *entry == uri).map(|(algorithm, _)| *algorithm)
}

/// SHA-1 of some bytes, for thumbprints.
pub fn sha1(bytes: &[u8]) -> [u8; 20] {
    let mut out = [0; 20];
    out.copy_from_slice(Digest::Sha1.hash(bytes).as_ref());
    out
}

/// How something is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signing {
    /// RSA, PKCS #1 1.5.
    Rsa(Digest),
    /// HMAC.
    Hmac(Digest),
}

impl Signing {
    const URIS: [(Signing, &'static str); 8] = [
        (Signing::Rsa(Digest::Sha1), "http://www.w3.org/2000/09/xmldsig#rsa-sha1"),
        (Signing::Rsa(Digest::Sha256), "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"),
        (Signing::Rsa(Digest::Sha384), "http://www.w3.org/2001/04/xmldsig-more#rsa-sha384"),
        (Signing::Rsa(Digest::Sha512), "http://www.w3.org/2001/04/xmldsig-more#rsa-sha512"),
        (Signing::Hmac(Digest::Sha1), "http://www.w3.org/2000/09/xmldsig#hmac-sha1"),
        (Signing::Hmac(Digest::Sha256), "http://www.w3.org/2001/04/xmldsig-more#hmac-sha256"),
        (Signing::Hmac(Digest::Sha384), "http://www.w3.org/2001/04/xmldsig-more#hmac-sha384"),
        (Signing::Hmac(Digest::Sha512), "http://www.w3.org/2001/04/xmldsig-more#hmac-sha512"),
    ];

    /// Its URI.
    pub fn uri(self) -> &'static str {
        uri_of(&Self::URIS, self)
    }

    /// By its URI.
    pub fn of(uri: &str) -> Option<Signing> {
        by_uri(&Self::URIS, uri)
    }
}

/// An RSA public key, parsed once.
pub struct PublicKey {
    /// SubjectPublicKeyInfo.
    der: Vec<u8>,
    verify: [OnceLock<Option<ParsedPublicKey>>; 4],
    oaep: OnceLock<Option<OaepPublicEncryptingKey>>,
    pkcs1: OnceLock<Option<Pkcs1PublicEncryptingKey>>,
}

impl PublicKey {
    /// Of SubjectPublicKeyInfo.
    pub fn new(der: &[u8]) -> PublicKey {
        PublicKey {
            der: der.to_vec(),
            verify: Default::default(),
            oaep: OnceLock::new(),
            pkcs1: OnceLock::new(),
        }
    }

    /// Whether these bytes were signed with the private key.
    pub fn is_signed(&self, how: Digest, bytes: &[u8], value: &[u8]) -> bool {
        // Keys of 1024 bits are read only where a certificate with one is trusted by itself, which `keys` decides.
        let algorithm: &'static dyn VerificationAlgorithm = match how {
            Digest::Sha1 => &signature::RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY,
            Digest::Sha256 => &signature::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
            Digest::Sha384 => &signature::RSA_PKCS1_2048_8192_SHA384,
            Digest::Sha512 => &signature::RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY,
        };
        let key = self.verify[how as usize].get_or_init(|| ParsedPublicKey::new(algorithm, &self.der).ok());
        key.as_ref().is_some_and(|key| key.verify_sig(bytes, value).is_ok())
    }

    /// Encrypts a key.
    pub fn encrypt(&self, how: Transport, secret: &[u8]) -> Option<Vec<u8>> {
        let key = || PublicEncryptingKey::from_der(&self.der).ok();
        match how {
            Transport::Rsa15 => {
                let key = self.pkcs1.get_or_init(|| Pkcs1PublicEncryptingKey::new(key()?).ok()).as_ref()?;
                let mut room = vec![0; key.ciphertext_size()];
                key.encrypt(secret, &mut room).ok().map(|cipher| cipher.to_vec())
            }
            Transport::Oaep => {
                let key = self.oaep.get_or_init(|| OaepPublicEncryptingKey::new(key()?).ok()).as_ref()?;
                let mut room = vec![0; key.ciphertext_size()];
                key.encrypt(&OAEP_SHA1_MGF1SHA1, secret, &mut room, None).ok().map(|cipher| cipher.to_vec())
            }
        }
    }
}

fn hmac_key(how: Digest, secret: &[u8]) -> hmac::Key {
    let algorithm = match how {
        Digest::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
        Digest::Sha256 => hmac::HMAC_SHA256,
        Digest::Sha384 => hmac::HMAC_SHA384,
        Digest::Sha512 => hmac::HMAC_SHA512,
    };
    hmac::Key::new(algorithm, secret)
}

/// The HMAC of some bytes.
pub fn mac(how: Digest, secret: &[u8], bytes: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac_key(how, secret), bytes).as_ref().to_vec()
}

/// Whether a value is the HMAC of these bytes. A shortened one is not.
pub fn is_mac(how: Digest, secret: &[u8], bytes: &[u8], value: &[u8]) -> bool {
    hmac::verify(&hmac_key(how, secret), bytes, value).is_ok()
}

/// `P_SHA-1` of TLS, as WS-SecureConversation derives keys.
pub fn p_sha1(secret: &[u8], seed: &[u8], offset: usize, length: usize) -> Secret {
    let key = hmac_key(Digest::Sha1, secret);
    let mut out = Secret::default();
    let mut a = hmac::sign(&key, seed);
    while out.len() < offset + length {
        let mut next = hmac::Context::with_key(&key);
        next.update(a.as_ref());
        next.update(seed);
        out.extend_from_slice(next.sign().as_ref());
        a = hmac::sign(&key, a.as_ref());
    }
    out.truncate(offset + length);
    Secret::new(out[offset..].to_vec())
}

/// How data is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cipher {
    /// AES-128, CBC.
    Aes128,
    /// AES-192, CBC.
    Aes192,
    /// AES-256, CBC.
    Aes256,
    /// Triple DES, CBC.
    TripleDes,
    /// AES-128, GCM.
    Aes128Gcm,
    /// AES-192, GCM.
    Aes192Gcm,
    /// AES-256, GCM.
    Aes256Gcm,
}

/// Length of an initialization vector of GCM.
const NONCE: usize = 12;

impl Cipher {
    const URIS: [(Cipher, &'static str); 7] = [
        (Cipher::Aes128, "http://www.w3.org/2001/04/xmlenc#aes128-cbc"),
        (Cipher::Aes192, "http://www.w3.org/2001/04/xmlenc#aes192-cbc"),
        (Cipher::Aes256, "http://www.w3.org/2001/04/xmlenc#aes256-cbc"),
        (Cipher::TripleDes, "http://www.w3.org/2001/04/xmlenc#tripledes-cbc"),
        (Cipher::Aes128Gcm, "http://www.w3.org/2009/xmlenc11#aes128-gcm"),
        (Cipher::Aes192Gcm, "http://www.w3.org/2009/xmlenc11#aes192-gcm"),
        (Cipher::Aes256Gcm, "http://www.w3.org/2009/xmlenc11#aes256-gcm"),
    ];

    /// Its URI.
    pub fn uri(self) -> &'static str {
        uri_of(&Self::URIS, self)
    }

    /// By its URI.
    pub fn of(uri: &str) -> Option<Cipher> {
        by_uri(&Self::URIS, uri)
    }

    /// Length of its keys in bytes.
    pub fn key_length(self) -> usize {
        match self {
            Cipher::Aes128 | Cipher::Aes128Gcm => 16,
            Cipher::Aes192 | Cipher::Aes192Gcm | Cipher::TripleDes => 24,
            Cipher::Aes256 | Cipher::Aes256Gcm => 32,
        }
    }

    fn block_key(self, key: &[u8]) -> Option<UnboundCipherKey> {
        let algorithm = match self {
            Cipher::Aes128 => &AES_128,
            Cipher::Aes192 => &AES_192,
            _ => &AES_256,
        };
        UnboundCipherKey::new(algorithm, key).ok()
    }

    fn aead_key(self, key: &[u8]) -> Option<aead::LessSafeKey> {
        let algorithm = match self {
            Cipher::Aes128Gcm => &aead::AES_128_GCM,
            Cipher::Aes192Gcm => &aead::AES_192_GCM,
            _ => &aead::AES_256_GCM,
        };
        aead::UnboundKey::new(algorithm, key).ok().map(aead::LessSafeKey::new)
    }

    fn is_gcm(self) -> bool {
        matches!(self, Cipher::Aes128Gcm | Cipher::Aes192Gcm | Cipher::Aes256Gcm)
    }

    /// Length of what comes before the cipher text: the initialization vector.
    pub(crate) fn vector_length(self) -> usize {
        match self {
            Cipher::TripleDes => 8,
            Cipher::Aes128 | Cipher::Aes192 | Cipher::Aes256 => 16,
            Cipher::Aes128Gcm | Cipher::Aes192Gcm | Cipher::Aes256Gcm => NONCE,
        }
    }

    /// The vector and the cipher text (XML Encryption, 5.2).
    pub fn encrypt(self, key: &[u8], plain: &[u8]) -> Option<Vec<u8>> {
        let mut data = vec![0; self.vector_length()];
        data.extend_from_slice(plain);
        self.encrypt_in_place(key, &mut data)?;
        Some(data)
    }

    /// As [`Cipher::encrypt`], where the plain text is: behind room for the vector.
    pub(crate) fn encrypt_in_place(self, key: &[u8], data: &mut Vec<u8>) -> Option<()> {
        let length = self.vector_length();
        if data.len() < length {
            return None;
        }
        if self.is_gcm() {
            let mut nonce = [0; NONCE];
            rand::fill(&mut nonce).ok()?;
            data[..NONCE].copy_from_slice(&nonce);
            let nonce = aead::Nonce::assume_unique_for_key(nonce);
            let tag =
                self.aead_key(key)?.seal_in_place_separate_tag(nonce, aead::Aad::empty(), &mut data[NONCE..]);
            data.extend_from_slice(tag.ok()?.as_ref());
            return Some(());
        }
        let block = length;
        let padding = block - (data.len() - length) % block;
        data.resize(data.len() + padding, 0);
        if let Some(last) = data.last_mut() {
            *last = padding as u8;
        }
        let (vector, text) = data.split_at_mut(length);
        if self == Cipher::TripleDes {
            let cipher = TdesEde3::new_from_slice(key).ok()?;
            rand::fill(vector).ok()?;
            let mut before = <[u8; 8]>::try_from(&*vector).ok()?;
            for chunk in text.chunks_exact_mut(8) {
                chunk.iter_mut().zip(before).for_each(|(byte, with)| *byte ^= with);
                let mut block = Block::<TdesEde3>::from(<[u8; 8]>::try_from(&*chunk).ok()?);
                cipher.encrypt_block(&mut block);
                before.copy_from_slice(&block);
                chunk.copy_from_slice(&block);
            }
            return Some(());
        }
        let key = EncryptingKey::cbc(self.block_key(key)?).ok()?;
        let DecryptionContext::Iv128(iv) = key.encrypt(text).ok()? else { return None };
        vector.copy_from_slice(iv.as_ref());
        Some(())
    }

    /// The plain text. `None` does not say why there is none.
    pub fn decrypt(self, key: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let mut data = sealed.to_vec();
        let plain = self.decrypt_in_place(key, &mut data)?;
        data.truncate(plain.end);
        data.drain(..plain.start);
        Some(data)
    }

    /// As [`Cipher::decrypt`], where the cipher text is; where the plain text is then.
    pub(crate) fn decrypt_in_place(self, key: &[u8], data: &mut [u8]) -> Option<Range<usize>> {
        let start = self.vector_length();
        let (vector, sealed) = data.split_at_mut_checked(start)?;
        if self.is_gcm() {
            let nonce = aead::Nonce::try_assume_unique_for_key(vector).ok()?;
            let length = self.aead_key(key)?.open_in_place(nonce, aead::Aad::empty(), sealed).ok()?.len();
            return Some(start..start + length);
        }
        let block = start;
        if sealed.is_empty() || sealed.len() % block != 0 {
            return None;
        }
        if self == Cipher::TripleDes {
            let cipher = TdesEde3::new_from_slice(key).ok()?;
            let mut before = <[u8; 8]>::try_from(&*vector).ok()?;
            for chunk in sealed.chunks_exact_mut(8) {
                let block = <[u8; 8]>::try_from(&*chunk).ok()?;
                let mut plain = Block::<TdesEde3>::from(block);
                cipher.decrypt_block(&mut plain);
                chunk.iter_mut().zip(plain.iter().zip(before)).for_each(|(to, (a, b))| *to = a ^ b);
                before = block;
            }
        } else {
            let vector = FixedLength::from(<[u8; 16]>::try_from(&*vector).ok()?);
            let key = DecryptingKey::cbc(self.block_key(key)?).ok()?;
            key.decrypt(sealed, DecryptionContext::Iv128(vector)).ok()?;
        }
        // Only the last byte of the padding has a meaning (ISO 10126).
        let padding = usize::from(*sealed.last()?);
        if padding == 0 || padding > block {
            return None;
        }
        Some(start..start + sealed.len() - padding)
    }
}

/// How a key is encrypted for a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// RSA, PKCS #1 1.5.
    Rsa15,
    /// RSA-OAEP with SHA-1 and MGF1 with SHA-1.
    Oaep,
}

impl Transport {
    /// Its URI.
    pub fn uri(self) -> &'static str {
        match self {
            Transport::Rsa15 => "http://www.w3.org/2001/04/xmlenc#rsa-1_5",
            Transport::Oaep => "http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p",
        }
    }

    /// By its URI.
    pub fn of(uri: &str) -> Option<Transport> {
        [Transport::Rsa15, Transport::Oaep].into_iter().find(|transport| transport.uri() == uri)
    }
}

/// Random bytes.
///
/// # Panics
/// The system has no source of random numbers, without which nothing can be secured.
pub fn random(length: usize) -> Secret {
    let mut out = Secret::new(vec![0; length]);
    rand::fill(&mut out).expect("the system gives random numbers");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encrypted_is_decrypted_with_the_same_key_only() {
        for (cipher, _) in Cipher::URIS {
            assert_eq!(Cipher::of(cipher.uri()), Some(cipher));
            let key = random(cipher.key_length());
            for length in [0, 1, 7, 8, 15, 16, 17, 1000] {
                let plain: Vec<u8> = (0..length).map(|at| at as u8).collect();
                let sealed = cipher.encrypt(&key, &plain).unwrap();
                assert_ne!(sealed, cipher.encrypt(&key, &plain).unwrap());
                assert_eq!(cipher.decrypt(&key, &sealed), Some(plain.clone()), "{cipher:?} {length}");
                let other = random(cipher.key_length());
                // Padding gives its length in its last byte only: with another key, one text in 256 is empty, one in 65,536 a certain byte.
                if length > 1 {
                    assert_ne!(cipher.decrypt(&other, &sealed), Some(plain), "{cipher:?} {length}");
                }
            }
            for length in [0, 1, 8, 12, 16, 20, 33] {
                _ = cipher.decrypt(&key, &vec![7; length]);
            }
            assert_eq!(cipher.decrypt(&key[1..], &[0; 64]), None);
            assert_eq!(cipher.encrypt(&key[1..], b"x"), None);
        }
    }

    #[test]
    fn derived_keys_are_a_stretch_of_one_stream() {
        let stream = p_sha1(b"secret", b"seed", 0, 100);
        for (offset, length) in [(0, 16), (16, 24), (40, 60), (20, 20)] {
            assert_eq!(*p_sha1(b"secret", b"seed", offset, length), stream[offset..offset + length]);
        }
        assert_ne!(p_sha1(b"other", b"seed", 0, 100), stream);
    }

    #[test]
    fn every_algorithm_is_found_by_its_uri() {
        for (digest, uri) in Digest::URIS {
            assert_eq!((Digest::of(uri), digest.uri()), (Some(digest), uri));
        }
        for (signing, uri) in Signing::URIS {
            assert_eq!((Signing::of(uri), signing.uri()), (Some(signing), uri));
        }
        assert_eq!(Signing::of("http://www.w3.org/2000/09/xmldsig#dsa-sha1"), None);
    }
}
