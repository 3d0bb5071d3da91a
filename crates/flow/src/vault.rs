//! Secrets of `wso2:vault-lookup(…)` and `${wso2-vault(…)}`: files, environment variables, and WSO2's
//! `cipher-text.properties`, plain or encrypted by WSO2's tool.

mod cipher;
mod lookups;

pub use cipher::Key;
pub(crate) use lookups::lookups;

use crate::lock;
use std::collections::HashMap;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Where Docker and its kind put secrets.
pub const DOCKER_SECRETS: &str = "/run/secrets";
/// How long a secret is used without looking again (WSO2's default).
const KEPT: Duration = Duration::from_secs(10);
/// Largest secret in bytes, and how many are kept.
const MAX_SECRET: u64 = 64 * 1024;
const MAX_KEPT: usize = 1024;

/// Where secrets are looked for.
pub struct Vault {
    /// `[vault] directory`: one file a secret, named by its alias.
    directory: Option<PathBuf>,
    /// As `directory`, for secrets of the kind `DOCKER`.
    docker: PathBuf,
    /// Entries of `cipher-text.properties` below the configuration: `[plain text]`, or a cipher text.
    entries: HashMap<String, String>,
    /// `[vault] key`: what secrets were encrypted for.
    key: Option<Arc<Key>>,
    known: Mutex<HashMap<Question, (Instant, String)>>,
}

/// Kind, whether it is encrypted, alias.
type Question = (Kind, bool, String);

/// What a lookup asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Any,
    File,
    Docker,
    Environment,
}

impl fmt::Debug for Vault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Vault({:?}, {} entries)", self.directory, self.entries.len())
    }
}

impl Vault {
    /// The vault of a configuration in `root`.
    pub fn new(directory: Option<PathBuf>, docker: PathBuf, key: Option<Arc<Key>>, root: &Path) -> Vault {
        let entries = ["conf/security", "repository/conf/security"].iter().find_map(|place| {
            let text = std::fs::read(root.join(place).join("cipher-text.properties")).ok()?;
            Some(config::properties(&String::from_utf8_lossy(&text)))
        });
        Vault { directory, docker, entries: entries.unwrap_or_default(), key, known: Mutex::default() }
    }

    /// As [`Vault::secret`], by the arguments of a lookup.
    ///
    /// # Errors
    /// As [`Vault::secret`].
    pub fn look_up(
        &self,
        alias: &str,
        kind: Option<&str>,
        encrypted: Option<&str>,
    ) -> Result<String, String> {
        let encrypted = encrypted.is_some_and(|own| own.trim().eq_ignore_ascii_case("true"));
        self.secret(alias, kind, encrypted)
    }

    /// The secret of an alias. `kind` is `FILE`, `DOCKER` (files), `ENV` (environment variables), `REG` or absent (the
    /// directory, else `cipher-text.properties`); `encrypted` whether what is found there is a cipher text.
    ///
    /// # Errors
    /// There is none, or it is encrypted and cannot be decrypted. The error names the alias, never the secret.
    pub fn secret(&self, alias: &str, kind: Option<&str>, encrypted: bool) -> Result<String, String> {
        let alias = alias.trim();
        let kind = match kind.map(|kind| kind.trim().to_ascii_uppercase()).as_deref() {
            None | Some("" | "REG") => Kind::Any,
            Some("FILE") => Kind::File,
            Some("DOCKER") => Kind::Docker,
            Some("ENV") => Kind::Environment,
            Some(other) => return Err(format!("{other} is no kind of secret (ENV, DOCKER, FILE or REG)")),
        };
        let key = (kind, encrypted, alias.to_owned());
        let known = || lock(&self.known);
        if let Some((since, secret)) = known().get(&key)
            && since.elapsed() < KEPT
        {
            return Ok(secret.clone());
        }
        let secret = self.read(alias, kind, encrypted)?;
        let mut known = known();
        if known.len() >= MAX_KEPT {
            known.clear();
        }
        known.insert(key, (Instant::now(), secret.clone()));
        Ok(secret)
    }

    fn read(&self, alias: &str, kind: Kind, encrypted: bool) -> Result<String, String> {
        let (text, encrypted) = self.find(alias, kind, encrypted)?;
        if !encrypted {
            return Ok(text);
        }
        match &self.key {
            None => Err(format!(
                "the secret {alias} is encrypted for WSO2's keystore, and the setting `vault.key` names no key: export the \
                 keystore's key as PEM, or keep the secret in plain text in a file of `vault.directory`"
            )),
            Some(key) => {
                key.decrypt(&text).map_err(|why| format!("the secret {alias} cannot be decrypted: {why}"))
            }
        }
    }

    /// What is kept under an alias, and whether it is a cipher text.
    fn find(&self, alias: &str, kind: Kind, encrypted: bool) -> Result<(String, bool), String> {
        let none = || {
            let way = match kind {
                Kind::Environment => "set that environment variable".to_owned(),
                Kind::Docker => format!("put it into a file of {}", self.docker.display()),
                _ if self.directory.is_none() => {
                    "put it into a file of the directory that the setting `vault.directory` names".to_owned()
                }
                Kind::File => "put it into a file of `vault.directory`".to_owned(),
                Kind::Any => {
                    "put it into a file of `vault.directory`, or into conf/security/cipher-text.properties"
                        .to_owned()
                }
            };
            format!("there is no secret {alias}: {way}")
        };
        match kind {
            Kind::Environment => std::env::var(alias).map(|text| (text, encrypted)).map_err(|_| none()),
            Kind::Docker => Ok((file(&self.docker, alias)?.ok_or_else(none)?, encrypted)),
            Kind::File => match &self.directory {
                Some(directory) => Ok((file(directory, alias)?.ok_or_else(none)?, encrypted)),
                None => Err(none()),
            },
            Kind::Any => {
                if let Some(directory) = &self.directory
                    && let Some(secret) = file(directory, alias)?
                {
                    return Ok((secret, encrypted));
                }
                let entry = self.entries.get(alias).ok_or_else(none)?;
                Ok(match entry.strip_prefix('[').and_then(|plain| plain.strip_suffix(']')) {
                    Some(plain) => (plain.to_owned(), false),
                    None => (entry.clone(), true),
                })
            }
        }
    }
}

/// The text of a file that lies directly in a directory, without the line end behind it.
fn file(directory: &Path, alias: &str) -> Result<Option<String>, String> {
    if alias.is_empty() || alias.starts_with('.') || alias.contains(['/', '\\', '\0']) {
        return Err(format!("{alias} is no name of a secret"));
    }
    let Ok(file) = std::fs::File::open(directory.join(alias)) else { return Ok(None) };
    let mut text = String::new();
    match file.take(MAX_SECRET + 1).read_to_string(&mut text) {
        Ok(read) if read as u64 > MAX_SECRET => Err(format!("the secret {alias} is too large")),
        Ok(_) => {
            let text = text.strip_suffix('\n').unwrap_or(&text);
            Ok(Some(text.strip_suffix('\r').unwrap_or(text).to_owned()))
        }
        Err(error) => Err(format!("the secret {alias} cannot be read: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_by_kind() {
        let root = std::env::temp_dir().join(format!("busbar-vault-{}", std::process::id()));
        for (name, text) in [
            ("secrets/db", "s3cret\n"),
            ("secrets/two", "a\nb\r\n"),
            ("docker/db", "whale"),
            ("outside", "no"),
            ("conf/security/cipher-text.properties", "plain=[p w]\ndb=[shadowed]\ncipher=AbCd\n"),
        ] {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        std::fs::write(root.join("secrets/huge"), "x".repeat(70_000)).unwrap();
        let (key, encrypt) = cipher::tests::key();
        let cipher = format!("plain=[p w]\ndb=[shadowed]\ncipher=AbCd\nours={}\n", encrypt(b"open sesame"));
        std::fs::write(root.join("conf/security/cipher-text.properties"), cipher).unwrap();
        std::fs::write(root.join("docker/shut"), encrypt(b"in a box")).unwrap();
        let vault = |key| Vault::new(Some(root.join("secrets")), root.join("docker"), key, &root);
        let (without, vault) = (vault(None), vault(Some(Arc::new(key))));
        for (alias, kind, encrypted, wanted) in [
            ("db", None, false, Ok("s3cret")),
            ("db", Some("FILE"), false, Ok("s3cret")),
            ("db", Some("docker"), false, Ok("whale")),
            ("two", None, false, Ok("a\nb")),
            ("plain", None, false, Ok("p w")),
            ("plain", Some("REG"), false, Ok("p w")),
            ("plain", Some("FILE"), false, Err("there is no secret plain")),
            ("cipher", None, false, Err("the secret cipher cannot be decrypted: ")),
            ("ours", None, false, Ok("open sesame")),
            ("ours", Some("REG"), true, Ok("open sesame")),
            ("shut", Some("DOCKER"), true, Ok("in a box")),
            ("db", None, true, Err("the secret db cannot be decrypted: ")),
            ("none", None, false, Err("there is no secret none")),
            ("NO_SUCH_VARIABLE", Some("ENV"), false, Err("there is no secret")),
            ("PATH", Some("ENV"), false, Ok(&*std::env::var("PATH").unwrap_or_default())),
            ("../outside", None, false, Err("is no name")),
            ("", None, false, Err("is no name")),
            ("huge", None, false, Err("too large")),
            ("db", Some("VAULT"), false, Err("no kind of secret")),
        ] {
            // The second answer is the kept one.
            for _ in 0..2 {
                match (vault.secret(alias, kind, encrypted), wanted) {
                    (Ok(own), Ok(wanted)) => assert_eq!(own, wanted, "{alias} {kind:?}"),
                    (Err(own), Err(wanted)) => assert!(own.contains(wanted), "{alias} {kind:?}: {own}"),
                    (own, _) => panic!("{alias} {kind:?}: {own:?}"),
                }
            }
        }
        for (alias, kind, encrypted) in [("ours", None, false), ("shut", Some("DOCKER"), true)] {
            let own = without.secret(alias, kind, encrypted);
            assert!(own.is_err_and(|why| why.contains("`vault.key` names no key")), "{alias}");
        }
        assert!(Vault::new(None, root.join("none"), None, &root).secret("db", Some("FILE"), false).is_err());
        assert!(!format!("{vault:?}").contains("p w"));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
