//! An encrypted file of secrets (`busbar vault`): AES-256-GCM over all of them together, with a key that PBKDF2 makes of a password.
//!
//! All is sealed in one piece, names included: without the password the aliases cannot be read, and no entry can be swapped, removed or
//! added. That a file is an older one of the same password shows only in what it holds.

use crate::vault::MAX_SECRET;
use aws_lc_rs::aead::{AES_256_GCM, Aad, Nonce, RandomizedNonceKey};
use aws_lc_rs::{pbkdf2, rand};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use zeroize::Zeroizing;

/// Rounds of PBKDF2-HMAC-SHA256 (OWASP's recommendation of 2023).
const ROUNDS: u32 = 600_000;
/// Most rounds that a file may ask for: each costs time before it is known whether the password is right.
const MOST_ROUNDS: u32 = 10_000_000;
/// Shortest password, in characters.
const SHORTEST: usize = 8;
/// Largest file, in bytes.
pub const LARGEST: u64 = 16 << 20;
/// What the file is, and the version of its format.
const KIND: &str = "busbar-vault-1";

/// Secrets by their aliases.
#[derive(Default)]
pub struct Sealed(BTreeMap<String, Zeroizing<String>>);

impl fmt::Debug for Sealed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} secrets", self.0.len())
    }
}

impl Sealed {
    /// Opens a file.
    ///
    /// # Errors
    /// It is not a vault, the password is wrong, or the file was changed.
    pub fn open(bytes: &[u8], password: &str) -> Result<Sealed, String> {
        let no_vault = || "this is not a vault of busbar".to_owned();
        if bytes.len() as u64 > LARGEST {
            return Err("the vault is too large".to_owned());
        }
        let file: serde_json::Value = serde_json::from_slice(bytes).map_err(|_| no_vault())?;
        let text = |name: &str| file.get(name).and_then(serde_json::Value::as_str).ok_or_else(no_vault);
        let decoded = |name: &str| STANDARD.decode(text(name)?).map_err(|_| no_vault());
        if text("kind")? != KIND {
            return Err(no_vault());
        }
        let rounds = file.get("rounds").and_then(serde_json::Value::as_u64).unwrap_or(0);
        let rounds = u32::try_from(rounds).ok().filter(|count| *count <= MOST_ROUNDS);
        let rounds = rounds.and_then(NonZeroU32::new).ok_or_else(no_vault)?;
        let salt = decoded("salt")?;
        let nonce = Nonce::try_assume_unique_for_key(&decoded("nonce")?).map_err(|_| no_vault())?;
        let mut data = Zeroizing::new(decoded("data")?);
        let key = key(password, &salt, rounds)?;
        let plain = key
            .open_in_place(nonce, Aad::from(about(rounds, &salt)), &mut data)
            .map_err(|_| "the password of the vault is wrong, or the file was changed".to_owned())?;
        let secrets: BTreeMap<String, String> = serde_json::from_slice(plain).map_err(|_| no_vault())?;
        Ok(Sealed(secrets.into_iter().map(|(alias, secret)| (alias, Zeroizing::new(secret))).collect()))
    }

    /// The bytes of a file with these secrets: each time with another salt and another nonce.
    ///
    /// # Errors
    /// The password is too short, or the system has no random numbers.
    pub fn seal(&self, password: &str) -> Result<Vec<u8>, String> {
        if password.chars().count() < SHORTEST {
            return Err(format!("the password of a vault has {SHORTEST} characters at least"));
        }
        let failed = |_| "the vault cannot be encrypted".to_owned();
        let mut salt = [0; 16];
        rand::fill(&mut salt).map_err(failed)?;
        let rounds = NonZeroU32::new(ROUNDS).unwrap_or(NonZeroU32::MIN);
        let plain: BTreeMap<&str, &str> =
            self.0.iter().map(|(alias, secret)| (alias.as_str(), secret.as_str())).collect();
        let mut data = serde_json::to_vec(&plain).map_err(|error| error.to_string())?;
        // What is encrypted in place is no plain text any more.
        let sealed = key(password, &salt, rounds)?
            .seal_in_place_append_tag(Aad::from(about(rounds, &salt)), &mut data);
        let nonce = match sealed {
            Ok(nonce) => nonce,
            Err(error) => {
                drop(Zeroizing::new(data));
                return Err(failed(error));
            }
        };
        let file = serde_json::json!({
            "kind": KIND,
            "rounds": rounds.get(),
            "salt": STANDARD.encode(salt),
            "nonce": STANDARD.encode(nonce.as_ref()),
            "data": STANDARD.encode(data),
        });
        let mut text = serde_json::to_vec_pretty(&file).map_err(|error| error.to_string())?;
        text.push(b'\n');
        Ok(text)
    }

    /// The secret of an alias.
    pub fn get(&self, alias: &str) -> Option<&str> {
        self.0.get(alias).map(|secret| secret.as_str())
    }

    /// The aliases, in order.
    pub fn aliases(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Keeps a secret; `true`: in the place of another one.
    ///
    /// # Errors
    /// The alias is none, or the secret is too large.
    pub fn set(&mut self, alias: &str, secret: Zeroizing<String>) -> Result<bool, String> {
        let is_name = !alias.is_empty()
            && alias.len() <= 256
            && alias.bytes().all(|byte| byte.is_ascii_graphic() && !b"'\"{}()<>/\\".contains(&byte));
        if !is_name {
            return Err(format!("`{}` is not a name of a secret", alias.escape_debug()));
        }
        if secret.len() as u64 > MAX_SECRET {
            return Err(format!("the secret {alias} is too large"));
        }
        Ok(self.0.insert(alias.to_owned(), secret).is_some())
    }

    /// Forgets a secret; `false`: there is none.
    pub fn remove(&mut self, alias: &str) -> bool {
        self.0.remove(alias).is_some()
    }
}

/// What is not secret and must not be changed.
fn about(rounds: NonZeroU32, salt: &[u8]) -> String {
    format!("{KIND} {rounds} {}", STANDARD.encode(salt))
}

fn key(password: &str, salt: &[u8], rounds: NonZeroU32) -> Result<RandomizedNonceKey, String> {
    let mut key = Zeroizing::new([0; 32]);
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, salt, password.as_bytes(), &mut *key);
    RandomizedNonceKey::new(&AES_256_GCM, &*key).map_err(|_| "the key of the vault cannot be made".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_is_opened_with_the_password_only() {
        let mut vault = Sealed::default();
        assert_eq!(vault.set("db.password", Zeroizing::new("opensesame".into())), Ok(false));
        assert_eq!(vault.set("db.password", Zeroizing::new("Ünicode\nx".into())), Ok(true));
        assert_eq!(vault.set("gone", Zeroizing::new(String::new())), Ok(false));
        assert!(vault.remove("gone") && !vault.remove("gone"));
        for alias in ["", "a b", "a'", "../x", "ä"] {
            assert!(vault.set(alias, Zeroizing::default()).is_err(), "{alias}");
        }
        let sealed = vault.seal("correct horse").unwrap();
        assert_ne!(sealed, vault.seal("correct horse").unwrap());
        let text = String::from_utf8(sealed.clone()).unwrap();
        assert!(!text.contains("db.password") && !text.contains("nicode"), "{text}");
        let opened = Sealed::open(&sealed, "correct horse").unwrap();
        assert_eq!(opened.get("db.password"), Some("Ünicode\nx"));
        assert_eq!(opened.aliases().collect::<Vec<_>>(), ["db.password"]);
        assert!(Sealed::open(&sealed, "correct Horse").unwrap_err().contains("is wrong"));
        assert!(vault.seal("short").is_err());
        assert_eq!(format!("{opened:?}"), "1 secrets");
        let file: serde_json::Value = serde_json::from_slice(&sealed).unwrap();
        for (name, value) in [
            ("rounds", serde_json::json!(1)),
            ("salt", serde_json::json!("AAAAAAAAAAAAAAAAAAAAAA==")),
            ("nonce", serde_json::json!("AAAAAAAAAAAAAAAA")),
            ("nonce", serde_json::json!("AAAA")),
            ("data", serde_json::json!("AAAA")),
            ("kind", serde_json::json!("busbar-vault-2")),
            ("rounds", serde_json::json!(0)),
            ("rounds", serde_json::json!(4_000_000_000_u64)),
        ] {
            let mut changed = file.clone();
            changed[name] = value;
            assert!(Sealed::open(changed.to_string().as_bytes(), "correct horse").is_err(), "{name}");
        }
        assert!(Sealed::open(b"", "correct horse").is_err() && Sealed::open(b"[]", "correct horse").is_err());
    }
}
