//! API keys: texts that clients send. Only their digests are kept.

use crate::{from_hex, sha256};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use std::fmt;

/// The accepted keys, each with the name of its owner.
#[derive(Default)]
pub struct Keys(Vec<(String, [u8; 32])>);

impl fmt::Debug for Keys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} keys", self.0.len())
    }
}

impl Keys {
    /// Adds a key: its text, or `sha256:` and the hexadecimal digits of its digest.
    ///
    /// # Errors
    /// The key is empty, or the digest is not 64 hexadecimal digits.
    pub fn add(&mut self, name: &str, key: &str) -> Result<(), String> {
        let digest = match key.strip_prefix("sha256:") {
            Some(digits) => {
                let digest = from_hex(digits).and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
                digest.ok_or_else(|| {
                    format!("the key of {name} is not a SHA-256 digest of 64 hexadecimal digits")
                })?
            }
            None if key.is_empty() => return Err(format!("the key of {name} is empty")),
            None => sha256(key.as_bytes()),
        };
        self.0.push((name.to_owned(), digest));
        Ok(())
    }

    /// The owner of a key. The comparison takes constant time, so that it tells nothing about the keys.
    pub fn find(&self, shown: &str) -> Option<&str> {
        let digest = sha256(shown.as_bytes());
        let mut found = None;
        for (name, expected) in &self.0 {
            if verify_slices_are_equal(expected, &digest).is_ok() {
                found = Some(name.as_str());
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_by_their_digest() {
        let mut keys = Keys::default();
        keys.add("one", "opensesame").unwrap();
        keys.add("two", &format!("sha256:{}", crate::to_hex(&sha256(b"friend")))).unwrap();
        for (shown, wanted) in
            [("opensesame", Some("one")), ("friend", Some("two")), ("Friend", None), ("", None)]
        {
            assert_eq!(keys.find(shown), wanted, "{shown}");
        }
        assert!(keys.add("three", "").is_err() && keys.add("four", "sha256:00").is_err());
        assert_eq!(format!("{keys:?}"), "2 keys");
    }
}
