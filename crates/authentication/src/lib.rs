//! Authentication of callers: JSON Web Tokens and the keys that they are signed with, responses of introspection, API keys, certificates of
//! clients, and signatures of webhooks.
//!
//! Everything here is a function of bytes: nothing is fetched, nothing waits, and the time is an argument. The cryptography is that of
//! AWS-LC. No text of an error repeats a token, a key or a signature.

pub mod api_key;
pub mod certificate;
pub mod introspection;
pub mod ldap;
pub mod seen;
pub mod signature;
pub mod token;

mod claims;

use std::sync::Arc;

/// A caller that was let in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Caller {
    /// The way: `jwt`, `introspection`, `api-key`, `basic`, `ldap`, `certificate` or `signature`.
    pub way: &'static str,
    /// The subject of a token or certificate, the user, or the name of a key.
    pub subject: String,
    /// The client that asks for them, where a token names one.
    pub client: String,
    /// The issuer of a token.
    pub issuer: String,
    /// The scopes.
    pub scopes: Vec<String>,
    /// All claims of a token.
    pub claims: Option<Arc<serde_json::Value>>,
}

impl Caller {
    /// The first of these scopes that it lacks.
    pub fn lacks<'a>(&self, required: &'a [String]) -> Option<&'a str> {
        required.iter().find(|scope| !self.scopes.contains(scope)).map(String::as_str)
    }
}

/// SHA-256 of some bytes.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
    let mut out = [0; 32];
    out.copy_from_slice(digest.as_ref());
    out
}

/// Bytes of hexadecimal digits; colons between them are skipped.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|byte| *byte != b':')
        .map(|byte| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect::<Option<_>>()?;
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// Hexadecimal digits of bytes.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_digits() {
        assert_eq!(from_hex("00:fF10").unwrap(), [0, 255, 16]);
        assert_eq!(from_hex("0"), None);
        assert_eq!(from_hex("0g"), None);
        assert_eq!(to_hex(&[0, 255, 16]), "00ff10");
    }

    #[test]
    fn all_scopes_are_needed() {
        let caller = Caller { scopes: vec!["read".into(), "write".into()], ..Caller::default() };
        let required = |names: &[&str]| names.iter().map(|scope| (*scope).to_owned()).collect::<Vec<_>>();
        assert_eq!(caller.lacks(&required(&[])), None);
        assert_eq!(caller.lacks(&required(&["read", "write"])), None);
        assert_eq!(caller.lacks(&required(&["read", "Write"])), Some("Write"));
    }
}
