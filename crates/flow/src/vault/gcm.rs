//! Decrypts AES/GCM with an initialization vector of any length (NIST SP 800-38D).
//!
//! WSO2's tool makes vectors of 128 bytes; crypto libraries take 12. The cipher is the library's, the mode is here. What
//! is decrypted are a few secrets, so GHASH is the plain one of the standard.

use aws_lc_rs::cipher::{AES_128, AES_192, AES_256, EncryptingKey, UnboundCipherKey};
use aws_lc_rs::constant_time::verify_slices_are_equal;

/// Length of a block, and of the tag behind a cipher text, in bytes.
const BLOCK: usize = 16;

/// A key of AES.
pub struct Key(EncryptingKey);

impl Key {
    /// A key of 16, 24 or 32 bytes; `None` if it has another length.
    pub fn new(bytes: &[u8]) -> Option<Key> {
        let cipher = match bytes.len() {
            16 => &AES_128,
            24 => &AES_192,
            32 => &AES_256,
            _ => return None,
        };
        EncryptingKey::ecb(UnboundCipherKey::new(cipher, bytes).ok()?).ok().map(Key)
    }

    /// The plain text of a cipher text and its tag; `None` if they were not made with this key and vector.
    pub fn open(&self, vector: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (cipher, tag) = sealed.split_at(sealed.len().checked_sub(BLOCK)?);
        if vector.is_empty() {
            return None;
        }
        let hash = Hash(u128::from_be_bytes(self.blocks([0])?.try_into().ok()?));
        let first = match <[u8; 12]>::try_from(vector) {
            Ok(vector) => {
                let mut block = [0; BLOCK];
                block[..12].copy_from_slice(&vector);
                u128::from_be_bytes(block) | 1
            }
            Err(_) => hash.of(vector),
        };
        let wanted = hash.of(cipher) ^ u128::from_be_bytes(self.blocks([first])?.try_into().ok()?);
        verify_slices_are_equal(&wanted.to_be_bytes(), tag).ok()?;
        // Only the last 32 bits count.
        let count = |at: usize| (first & !0xffff_ffff) | u128::from((first as u32).wrapping_add(at as u32));
        let stream = self.blocks((1..=cipher.len().div_ceil(BLOCK)).map(count))?;
        Some(cipher.iter().zip(stream).map(|(cipher, stream)| cipher ^ stream).collect())
    }

    /// Blocks encrypted, each on its own.
    fn blocks(&self, plain: impl IntoIterator<Item = u128>) -> Option<Vec<u8>> {
        let mut blocks: Vec<u8> = plain.into_iter().flat_map(u128::to_be_bytes).collect();
        if !blocks.is_empty() {
            self.0.encrypt(&mut blocks).ok()?;
        }
        Some(blocks)
    }
}

/// GHASH with its key.
struct Hash(u128);

impl Hash {
    /// The hash of some bytes, filled up to whole blocks, and of their length in bits. (Nothing is authenticated beside
    /// them, so what the standard has before them is empty.)
    fn of(&self, bytes: &[u8]) -> u128 {
        let mut hash = 0;
        for part in bytes.chunks(BLOCK) {
            let mut block = [0; BLOCK];
            block[..part.len()].copy_from_slice(part);
            hash = self.times(hash ^ u128::from_be_bytes(block));
        }
        self.times(hash ^ (bytes.len() as u128 * 8))
    }

    /// A product in the field of GCM: the first bit is the lowest power.
    fn times(&self, other: u128) -> u128 {
        let (mut product, mut power) = (0, self.0);
        for bit in (0..128).rev() {
            if other >> bit & 1 == 1 {
                product ^= power;
            }
            let carry = power & 1;
            power >>= 1;
            if carry == 1 {
                power ^= 0xe1 << 120;
            }
        }
        product
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

    fn bytes(count: usize, step: usize) -> Vec<u8> {
        (0..count).map(|at| (at * step + 1) as u8).collect()
    }

    fn letters(count: usize) -> Vec<u8> {
        (0..count).map(|at| b'a' + (at % 26) as u8).collect()
    }

    /// Made by Java's `AES/GCM/NoPadding`.
    #[test]
    fn what_java_encrypted_is_read() {
        for (key, vector, plain, sealed) in [
            (32, 128, 11, "971dbce26746493151ddbc196066f7b5073fc8583a60ddffd9ec43"),
            (32, 128, 16, "971dbce26746493151ddbcc915a935738627ff77c49476332b0a737406cec80e"),
            (32, 12, 11, "412f7827e464b02b5b2ae66e882fdc96bf0f5bc938a9714e5a1f7d"),
            (24, 1, 0, "cb72092d88b9c33cb5ae6bc685c63c95"),
            (
                16,
                16,
                40,
                "91e2e172892a30dde51a3c0f44ef35dafb54051f7c8a24b3626ad1eae653b678b916a7daffb56fefcb0446605466866e94e6f44e9eaf52b4",
            ),
        ] {
            let key = Key::new(&bytes(key, 3)).unwrap();
            let sealed = super::super::cipher::unhex(sealed).unwrap();
            let vector = bytes(vector, 5);
            assert_eq!(key.open(&vector, &sealed), Some(letters(plain)));
            for wrong in 0..sealed.len() {
                let mut sealed = sealed.clone();
                sealed[wrong] ^= 1;
                assert_eq!(key.open(&vector, &sealed), None, "byte {wrong}");
            }
            assert_eq!(key.open(&bytes(15, 7), &sealed), None);
            assert_eq!(key.open(&[], &sealed), None);
            assert_eq!(key.open(&vector, &sealed[..15]), None);
        }
        assert!([0, 1, 15, 17, 31, 33, 64].into_iter().all(|count| Key::new(&bytes(count, 1)).is_none()));
    }

    #[test]
    fn the_usual_vector_is_as_the_library_has_it() {
        let (key, vector) = (Key::new(&bytes(32, 9)).unwrap(), bytes(12, 77));
        let library = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &bytes(32, 9)).unwrap());
        for count in [0, 1, 15, 16, 17, 256, 5000] {
            let mut sealed = letters(count);
            let nonce = Nonce::try_assume_unique_for_key(&vector).unwrap();
            library.seal_in_place_append_tag(nonce, Aad::empty(), &mut sealed).unwrap();
            assert_eq!(key.open(&vector, &sealed), Some(letters(count)), "{count}");
        }
    }
}
