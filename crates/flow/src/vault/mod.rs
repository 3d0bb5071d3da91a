//! Secrets of `wso2:vault-lookup(…)` and `${wso2-vault(…)}`: files, environment variables, and WSO2's
//! `cipher-text.properties` and `deployment.toml`, plain or encrypted by WSO2's tool.

mod cipher;
mod gcm;
mod lookups;
mod remote;
mod sealed;

pub use cipher::Key;
pub(crate) use lookups::{Lookup, lookups};
pub use remote::Remote;
pub use sealed::{LARGEST, Sealed};

use crate::state::{SharedState, lock};
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
    /// What WSO2's files below the configuration say: `[plain text]`, a cipher text, or `$env{NAME}`.
    entries: HashMap<String, Secret>,
    /// `[vault] key`: what secrets were encrypted for.
    key: Option<Arc<Key>>,
    /// `[vault] file`: what `busbar vault` keeps.
    sealed: Option<Arc<Sealed>>,
    /// `[vault.hashicorp]`.
    remote: Option<remote::Cache>,
    cache: Mutex<HashMap<Question, (Instant, Secret)>>,
}

/// Why a secret cannot be had.
#[derive(Clone, Debug)]
pub struct NoSecret {
    /// In a sentence that names the alias, never the secret.
    pub why: String,
    /// It, or the key that it was encrypted for, is not on this machine: on another one it may be.
    pub absent: bool,
}

impl From<String> for NoSecret {
    fn from(why: String) -> NoSecret {
        NoSecret { why, absent: false }
    }
}

/// A text that is wiped when it is let go of.
pub type Secret = zeroize::Zeroizing<String>;

/// Kind, whether it is encrypted, alias.
type Question = (SecretSource, bool, String);

/// What a lookup asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum SecretSource {
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
        let entries = entries(root).into_iter().map(|(alias, text)| (alias, Secret::new(text))).collect();
        Vault { directory, docker, entries, key, sealed: None, remote: None, cache: Mutex::default() }
    }

    /// With an encrypted file of secrets.
    #[must_use]
    pub fn with_sealed(self, sealed: Option<Arc<Sealed>>) -> Vault {
        Vault { sealed, ..self }
    }

    /// With another server that has secrets. `shared` has what it said to plans before this one.
    #[must_use]
    pub fn with_remote(self, remote: Option<Arc<dyn Remote>>, shared: &SharedState) -> Vault {
        Vault { remote: remote.map(|remote| remote::Cache::new(remote, shared)), ..self }
    }

    /// A secret of the other server, by the arguments of a lookup: path and field, or namespace, path and field. `waits`: it may be asked
    /// now; otherwise what is not there yet is asked for beside.
    ///
    /// # Errors
    /// There is none, it cannot be had, or it is not there yet.
    pub fn remote<T: AsRef<str>>(&self, arguments: &[T], waits: bool) -> Result<String, NoSecret> {
        match &self.remote {
            Some(cache) => cache.secret(arguments, waits).inspect(|secret| message::redact::remember(secret)),
            None => Err(NoSecret { why: remote::NONE.to_owned(), absent: true }),
        }
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
    ) -> Result<String, NoSecret> {
        let encrypted = encrypted.is_some_and(|word| word.trim().eq_ignore_ascii_case("true"));
        self.secret(alias, kind, encrypted)
    }

    /// The secret of an alias. `kind` is `FILE`, `DOCKER` (files), `ENV` (environment variables), `REG` or absent (the
    /// directory, else WSO2's files); `encrypted` whether what is found there is a cipher text.
    ///
    /// # Errors
    /// There is none, or it is encrypted and cannot be decrypted.
    pub fn secret(&self, alias: &str, kind: Option<&str>, encrypted: bool) -> Result<String, NoSecret> {
        let alias = alias.trim();
        let kind = match kind.map(|kind| kind.trim().to_ascii_uppercase()).as_deref() {
            None | Some("" | "REG") => SecretSource::Any,
            Some("FILE") => SecretSource::File,
            Some("DOCKER") => SecretSource::Docker,
            Some("ENV") => SecretSource::Environment,
            Some(other) => {
                return Err(format!("{other} is not a kind of secret (ENV, DOCKER, FILE or REG)").into());
            }
        };
        let key = (kind, encrypted, alias.to_owned());
        let cache = || lock(&self.cache);
        if let Some((since, secret)) = cache().get(&key)
            && since.elapsed() < KEPT
        {
            return Ok(String::clone(secret));
        }
        let secret = self.read(alias, kind, encrypted)?;
        message::redact::remember(&secret);
        let mut cache = cache();
        if cache.len() >= MAX_KEPT {
            cache.clear();
        }
        cache.insert(key, (Instant::now(), Secret::new(secret.clone())));
        Ok(secret)
    }

    fn read(&self, alias: &str, kind: SecretSource, encrypted: bool) -> Result<String, NoSecret> {
        let (text, encrypted) = self.find(alias, kind, encrypted)?;
        if !encrypted {
            return Ok(text);
        }
        match &self.key {
            None => Err(NoSecret {
                why: format!(
                    "the secret {alias} is encrypted by WSO2's tool, and the setting `vault.key` names no key: export \
                     the keystore's key as PEM, or keep the secret in plain text in a file of `vault.directory`"
                ),
                absent: true,
            }),
            Some(key) => Ok(key
                .decrypt(&text)
                .map_err(|why| format!("the secret {alias} cannot be decrypted: {why}"))?),
        }
    }

    /// What is kept under an alias, and whether it is a cipher text.
    fn find(&self, alias: &str, kind: SecretSource, encrypted: bool) -> Result<(String, bool), NoSecret> {
        let none = || {
            let way = match kind {
                SecretSource::Environment => "set that environment variable".to_owned(),
                SecretSource::Docker => format!("put it into a file of {}", self.docker.display()),
                SecretSource::File if self.directory.is_none() => {
                    "put it into a file of the directory that the setting `vault.directory` names".to_owned()
                }
                SecretSource::File => "put it into a file of `vault.directory`".to_owned(),
                SecretSource::Any => {
                    "put it into the vault (`busbar vault set`), a file of `vault.directory`, `[secrets]` of deployment.toml, or conf/security/cipher-text.properties"
                        .to_owned()
                }
            };
            NoSecret { why: format!("there is no secret {alias}: {way}"), absent: true }
        };
        match kind {
            SecretSource::Environment => {
                std::env::var(alias).map(|text| (text, encrypted)).map_err(|_| none())
            }
            SecretSource::Docker => Ok((file(&self.docker, alias)?.ok_or_else(none)?, encrypted)),
            SecretSource::File => match &self.directory {
                Some(directory) => Ok((file(directory, alias)?.ok_or_else(none)?, encrypted)),
                None => Err(none()),
            },
            SecretSource::Any => {
                if let Some(directory) = &self.directory
                    && let Some(secret) = file(directory, alias)?
                {
                    return Ok((secret, encrypted));
                }
                if let Some(secret) = self.sealed.as_ref().and_then(|sealed| sealed.get(alias)) {
                    return Ok((secret.to_owned(), encrypted));
                }
                entry(alias, self.entries.get(alias).ok_or_else(none)?)
            }
        }
    }
}

/// The password of an encrypted file: that of an environment variable, else the first line of a file; `None`: there is neither.
///
/// # Errors
/// The file cannot be read.
pub fn password(variable: &str, path: Option<&Path>) -> Result<Option<Secret>, String> {
    if let Ok(value) = std::env::var(variable)
        && !value.is_empty()
    {
        return Ok(Some(Secret::new(value)));
    }
    let Some(path) = path else { return Ok(None) };
    let failed = |why: &dyn fmt::Display| format!("the password in {} cannot be read: {why}", path.display());
    let bytes = config::read_file(path).map_err(|why| failed(&why))?;
    let text = zeroize::Zeroizing::new(String::from_utf8(bytes).map_err(|_| failed(&"it is not text"))?);
    Ok(text.lines().next().filter(|line| !line.is_empty()).map(|line| Secret::new(line.to_owned())))
}

/// What WSO2's files below a configuration say of secrets: `cipher-text.properties`, and `[secrets]` of
/// `deployment.toml`, which WSO2 writes the other one from. A server has them in `conf`, a project for one in `deployment`.
fn entries(root: &Path) -> HashMap<String, String> {
    let read = |name: &str| {
        let places = ["conf", "repository/conf", "deployment"].into_iter();
        let mut texts = places.filter_map(|place| config::read_file(&root.join(place).join(name)).ok());
        texts.next().map(|text| String::from_utf8_lossy(&text).into_owned())
    };
    let mut found =
        read("security/cipher-text.properties").map(|text| config::properties(&text)).unwrap_or_default();
    match read("deployment.toml").map(|text| config::deployment_tables(&text)) {
        Some(Ok((settings, _))) => {
            let secrets = settings.get("secrets").and_then(toml::Value::as_table).into_iter().flatten();
            found.extend(
                secrets
                    .filter_map(|(alias, secret)| Some((alias.clone(), secret.as_str()?.trim().to_owned()))),
            );
        }
        Some(Err(error)) => {
            tracing::warn!(
                error = error.message(),
                "deployment.toml cannot be read; its secrets are not known"
            );
        }
        None => {}
    }
    found
}

/// The text of an entry, and whether it is a cipher text.
fn entry(alias: &str, entry: &str) -> Result<(String, bool), NoSecret> {
    let named = |kind: &str| entry.strip_prefix(kind).and_then(|rest| rest.strip_suffix('}'));
    let text = match (named("$env{"), named("$sys{")) {
        (Some(name), _) => std::env::var(name).map_err(|_| NoSecret {
            why: format!("the secret {alias} is the environment variable {name}, which is not set"),
            absent: true,
        })?,
        (_, Some(name)) => {
            return Err(NoSecret {
                why: format!("the secret {alias} is the system property {name} of Java: use $env{{{name}}}"),
                absent: true,
            });
        }
        _ => entry.to_owned(),
    };
    Ok(match text.strip_prefix('[').and_then(|plain| plain.strip_suffix(']')) {
        Some(plain) => (plain.to_owned(), false),
        None => (text, true),
    })
}

/// The text of a file that lies directly in a directory, without the line end behind it.
fn file(directory: &Path, alias: &str) -> Result<Option<String>, String> {
    if alias.is_empty() || alias.starts_with('.') || alias.contains(['/', '\\', '\0']) {
        return Err(format!("{alias} is not a name of a secret"));
    }
    let path = directory.join(alias);
    // Opening a pipe would wait for a writer.
    let Some(file) = path.is_file().then(|| std::fs::File::open(path).ok()).flatten() else {
        return Ok(None);
    };
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
    fn what_is_no_file_is_not_waited_for() {
        let root = std::env::temp_dir().join(format!("busbar-vault-pipes-{}", std::process::id()));
        for name in ["conf/deployment.toml", "conf/security/cipher-text.properties", "secrets/db"] {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
        }
        let (send, receive) = std::sync::mpsc::channel();
        let root_of_thread = root.clone();
        std::thread::spawn(move || {
            assert!(entries(&root_of_thread).is_empty());
            send.send(file(&root_of_thread.join("secrets"), "db")).unwrap();
        });
        let found = receive.recv_timeout(std::time::Duration::from_secs(10));
        std::fs::remove_dir_all(root).unwrap();
        assert_eq!(found.expect("it waits"), Ok(None));
    }

    #[test]
    fn a_project_has_its_secrets_beside_its_settings() {
        let root = std::env::temp_dir().join(format!("busbar-vault-project-{}", std::process::id()));
        for place in ["conf", "repository/conf", "deployment"] {
            let directory = root.join(place);
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join("deployment.toml"), "[secrets]\ndb = \"[s3cret]\"\n").unwrap();
            let vault = Vault::new(None, root.join("none"), None, &root);
            assert_eq!(vault.secret("db", None, false).unwrap(), "s3cret", "{place}");
            std::fs::remove_dir_all(&directory).unwrap();
        }
        std::fs::remove_dir_all(&root).unwrap();
    }

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
        let cipher = format!(
            "plain=[p w]\nonly=[p w]\ndb=[shadowed]\ncipher=AbCd\nours={}\n",
            encrypt(b"open sesame")
        );
        std::fs::write(root.join("conf/security/cipher-text.properties"), cipher).unwrap();
        std::fs::write(root.join("docker/shut"), encrypt(b"in a box")).unwrap();
        let toml = format!(
            "[server]\nhostname = 'localhost'\n[secrets]\nplain = \"[of toml]\"\ntoml = \"{}\"\npath = \"$env{{PATH}}\"\n\
             unset = \"$env{{NO_SUCH_VARIABLE}}\"\njava = \"$sys{{x}}\"\nnumber = 1\n",
            cipher::tests::SYMMETRIC
        );
        std::fs::write(root.join("conf/deployment.toml"), toml).unwrap();
        let vault = |key| Vault::new(Some(root.join("secrets")), root.join("docker"), key, &root);
        let (without, symmetric) = (vault(None), vault(Some(Arc::new(cipher::tests::symmetric()))));
        let vault = vault(Some(Arc::new(key)));
        for (alias, kind, encrypted, wanted) in [
            ("db", None, false, Ok("s3cret")),
            ("db", Some("FILE"), false, Ok("s3cret")),
            ("db", Some("docker"), false, Ok("whale")),
            ("two", None, false, Ok("a\nb")),
            ("plain", None, false, Ok("of toml")),
            ("plain", Some("REG"), false, Ok("of toml")),
            ("only", None, false, Ok("p w")),
            ("toml", None, false, Err("it was encrypted with AES")),
            ("path", None, false, Err("the secret path cannot be decrypted: it is not a cipher text")),
            ("unset", None, false, Err("NO_SUCH_VARIABLE, which is not set")),
            ("number", None, false, Err("there is no secret number")),
            ("plain", Some("FILE"), false, Err("there is no secret plain")),
            ("cipher", None, false, Err("the secret cipher cannot be decrypted: ")),
            ("ours", None, false, Ok("open sesame")),
            ("ours", Some("REG"), true, Ok("open sesame")),
            ("shut", Some("DOCKER"), true, Ok("in a box")),
            ("db", None, true, Err("the secret db cannot be decrypted: ")),
            ("none", None, false, Err("there is no secret none")),
            ("NO_SUCH_VARIABLE", Some("ENV"), false, Err("there is no secret")),
            ("PATH", Some("ENV"), false, Ok(&*std::env::var("PATH").unwrap_or_default())),
            ("../outside", None, false, Err("is not a name")),
            ("", None, false, Err("is not a name")),
            ("huge", None, false, Err("too large")),
            ("db", Some("VAULT"), false, Err("not a kind of secret")),
        ] {
            // The second answer is the kept one.
            for _ in 0..2 {
                match (vault.secret(alias, kind, encrypted), wanted) {
                    (Ok(secret), Ok(wanted)) => assert_eq!(secret, wanted, "{alias} {kind:?}"),
                    (Err(result), Err(wanted)) => {
                        assert!(result.why.contains(wanted), "{alias} {kind:?}: {result:?}");
                        assert_eq!(
                            result.absent,
                            wanted.starts_with("there is no") || wanted.contains("which is not")
                        );
                    }
                    (result, _) => panic!("{alias} {kind:?}: {result:?}"),
                }
            }
        }
        for (alias, kind, encrypted) in [("ours", None, false), ("shut", Some("DOCKER"), true)] {
            let result = without.secret(alias, kind, encrypted);
            assert!(
                result.is_err_and(|refused| refused.absent && refused.why.contains("names no key")),
                "{alias}"
            );
        }
        assert_eq!(symmetric.secret("toml", None, false).unwrap(), "open sesame");
        assert!(
            symmetric.secret("ours", None, false).is_err_and(|refused| refused.why.contains("a key of AES"))
        );
        assert!(Vault::new(None, root.join("none"), None, &root).secret("db", Some("FILE"), false).is_err());
        assert!(!format!("{vault:?}").contains("p w"));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
