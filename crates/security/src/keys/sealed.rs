//! Encryption by passwords: PBES2 (PKCS #5), and that of PKCS#12 with triple DES.

use crate::algorithm::{Cipher, Digest, Secret};
use aws_lc_rs::pbkdf2;
use der::{OCTETS, OID, Reader, SEQUENCE, Value};
use std::num::NonZeroU32;

/// Most rounds of key derivation that a file may ask for.
const ROUNDS: u32 = 5_000_000;

const PBES2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05, 0x0d];
const PBKDF2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05, 0x0c];
const PKCS12: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x0c, 0x01];
const HMAC: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02];
const AES: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01];
const DES3: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x03, 0x07];

const WRONG: &str = "the password is wrong";
const UNKNOWN: &str = "it is encrypted in a way that is not read here (PBES2 with AES or triple DES, and PKCS#12's triple DES \
                       are): `openssl pkcs12 -in OLD -legacy -nodes | openssl pkcs12 -export -out NEW`";

/// EncryptedPrivateKeyInfo.
pub(super) fn open(der: &[u8], password: &str) -> Result<Secret, String> {
    let parts = || {
        let mut info = Reader(der).enter(SEQUENCE)?;
        Some((info.value(SEQUENCE)?, info.value(OCTETS)?.content))
    };
    let (algorithm, data) = parts().ok_or("this encrypted private key is damaged")?;
    decrypt(algorithm, data, password)
}

/// What was encrypted as an algorithm identifier says.
pub(super) fn decrypt(algorithm: Value<'_>, data: &[u8], password: &str) -> Result<Secret, String> {
    let mut inside = algorithm.inside();
    let oid = inside.value(OID).ok_or(UNKNOWN)?.content;
    let (cipher, key, vector) = if oid == PBES2 {
        pbes2(inside, password).ok_or(UNKNOWN)?
    } else if oid.strip_prefix(PKCS12) == Some(&[3]) {
        let mut parameters = || {
            let mut parameters = inside.enter(SEQUENCE)?;
            Some((parameters.value(OCTETS)?.content, parameters.number().filter(|rounds| *rounds <= ROUNDS)?))
        };
        let (salt, rounds) = parameters().ok_or(UNKNOWN)?;
        let key = pkcs12(Digest::Sha1, 1, password, salt, rounds, 24);
        let vector = pkcs12(Digest::Sha1, 2, password, salt, rounds, 8);
        (Cipher::TripleDes, key, vector.to_vec())
    } else {
        return Err(UNKNOWN.to_owned());
    };
    let mut sealed = vector;
    sealed.extend_from_slice(data);
    cipher.decrypt(&key, &sealed).map(Secret::new).ok_or_else(|| WRONG.to_owned())
}

fn pbes2(mut fields: Reader<'_>, password: &str) -> Option<(Cipher, Secret, Vec<u8>)> {
    let mut parameters = fields.enter(SEQUENCE)?;
    let (mut derivation, mut encryption) = (parameters.enter(SEQUENCE)?, parameters.enter(SEQUENCE)?);
    if derivation.value(OID)?.content != PBKDF2 {
        return None;
    }
    let mut derivation = derivation.enter(SEQUENCE)?;
    let salt = derivation.value(OCTETS)?.content;
    let rounds = derivation.number().filter(|rounds| *rounds <= ROUNDS)?;
    _ = derivation.number();
    let how = match derivation.enter(SEQUENCE) {
        None => pbkdf2::PBKDF2_HMAC_SHA1,
        Some(mut prf) => match prf.value(OID)?.content.strip_prefix(HMAC)? {
            [7] => pbkdf2::PBKDF2_HMAC_SHA1,
            [9] => pbkdf2::PBKDF2_HMAC_SHA256,
            [10] => pbkdf2::PBKDF2_HMAC_SHA384,
            [11] => pbkdf2::PBKDF2_HMAC_SHA512,
            _ => return None,
        },
    };
    let cipher = encryption.value(OID)?.content;
    let cipher = match (cipher.strip_prefix(AES), cipher == DES3) {
        (Some([2]), _) => Cipher::Aes128,
        (Some([22]), _) => Cipher::Aes192,
        (Some([42]), _) => Cipher::Aes256,
        (_, true) => Cipher::TripleDes,
        _ => return None,
    };
    let vector = encryption.value(OCTETS)?.content.to_vec();
    let mut key = Secret::new(vec![0; cipher.key_length()]);
    pbkdf2::derive(how, NonZeroU32::new(rounds)?, salt, password.as_bytes(), &mut key);
    Some((cipher, key, vector))
}

/// Key derivation of PKCS#12 (RFC 7292, appendix B.2): `id` 1 for keys, 2 for vectors, 3 for authentication.
pub(super) fn pkcs12(how: Digest, id: u8, password: &str, salt: &[u8], rounds: u32, length: usize) -> Secret {
    let block = if matches!(how, Digest::Sha384 | Digest::Sha512) { 128 } else { 64 };
    let mut text: Secret = Secret::new(password.encode_utf16().flat_map(u16::to_be_bytes).collect());
    text.extend_from_slice(&[0, 0]);
    let filled = |value: &[u8]| -> Vec<u8> {
        value.iter().copied().cycle().take(value.len().div_ceil(block) * block).collect()
    };
    let mut input = Secret::new(filled(salt));
    input.extend(filled(&text));
    let mut out = Secret::default();
    loop {
        let mut first = Secret::new(vec![id; block]);
        first.extend_from_slice(&input);
        let mut hash = how.hash(&first);
        for _ in 1..rounds {
            hash = how.hash(hash.as_ref());
        }
        out.extend_from_slice(hash.as_ref());
        if out.len() >= length {
            out.truncate(length);
            return out;
        }
        let add = filled(hash.as_ref());
        for part in input.chunks_exact_mut(block) {
            let mut carry = 1u16;
            for (byte, more) in part.iter_mut().zip(&add[..block]).rev() {
                carry += u16::from(*byte) + u16::from(*more);
                *byte = carry as u8;
                carry >>= 8;
            }
        }
    }
}
