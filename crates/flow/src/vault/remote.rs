//! Secrets of another server. Flows never wait for it: what literals name is asked for when the configuration loads, and again beside
//! the flows when it has been used for long enough.

use super::{MAX_KEPT, NoSecret, Secret};
use crate::state::{SharedState, lock};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use transport::WeakMap;

/// Why secrets of another server cannot be had where none is set, and what to do instead.
pub(super) const NONE: &str = "no HashiCorp vault is set: set [vault.hashicorp], or let its agent write the secret into a file of \
     the setting `vault.directory`, and look it up as ('NAME', 'FILE', 'false') with wso2-vault or wso2:vault-lookup";

/// How long a secret is used whose server does not answer any more.
const STALE: Duration = Duration::from_secs(24 * 3600);

/// A server that has secrets.
pub trait Remote: Send + Sync + std::fmt::Debug {
    /// The field of what is at a path. May take as long as a server takes; it has a deadline.
    ///
    /// # Errors
    /// There is none, or the server does not say. The text repeats no secret.
    fn read(&self, namespace: Option<&str>, path: &str, field: &str) -> Result<String, String>;

    /// How long what it said is used before it is asked again.
    fn kept(&self) -> Duration;

    /// A digest of its address and of who asks: what one said, another with the same one may say.
    fn identity(&self) -> u64;
}

/// Namespace, path, field.
type Question = (Option<String>, String, String);

type Secrets = Mutex<HashMap<Question, CachedSecret>>;

/// What servers said, by their identity, for as long as a plan has one of them: a reload while a server does not answer loses no secret.
#[derive(Default)]
struct OfServers(WeakMap<u64, Secrets>);

/// What a server said, as a plan sees it.
pub(super) struct Cache {
    remote: Arc<dyn Remote>,
    secrets: Arc<Secrets>,
    /// What was asked for when the configuration was loaded: each once, whatever was said before.
    asked: Mutex<HashSet<Question>>,
}

#[derive(Default)]
struct CachedSecret {
    secret: Option<(Secret, Instant)>,
    /// Why it could not be had, and when.
    failed: Option<(String, Instant)>,
    is_asked: bool,
}

impl Cache {
    pub fn new(remote: Arc<dyn Remote>, shared: &SharedState) -> Cache {
        let secrets = shared.get::<OfServers>().0.get_or_insert_with(remote.identity(), Secrets::default);
        Cache { remote, secrets, asked: Mutex::default() }
    }

    pub fn secret<T: AsRef<str>>(&self, arguments: &[T], waits: bool) -> Result<String, NoSecret> {
        let question = question(arguments)?;
        let unless = |why: &str| NoSecret {
            why: format!("the secret {} of {} is not available: {why}", question.2, question.1),
            absent: true,
        };
        let kept = self.remote.kept();
        let mut secrets = lock(&self.secrets);
        if secrets.len() >= MAX_KEPT && !secrets.contains_key(&question) {
            // Names that a message brought, and that lead to nothing, are in nobody's way.
            secrets.retain(|_, entry| entry.secret.is_some() || entry.is_asked);
        }
        if secrets.len() >= MAX_KEPT && !secrets.contains_key(&question) {
            return Err(unless("too many secrets are asked for"));
        }
        let entry = secrets.entry(question.clone()).or_default();
        let is_due = waits && lock(&self.asked).insert(question.clone());
        let before = entry.secret.as_ref().filter(|(_, since)| since.elapsed() < STALE);
        if let Some((secret, since)) = before
            && !is_due
        {
            let secret = String::clone(secret);
            let failed = entry.failed.as_ref().is_some_and(|(_, since)| since.elapsed() < kept);
            if since.elapsed() >= kept && !entry.is_asked && !failed {
                entry.is_asked = true;
                drop(secrets);
                self.ask_beside(question);
            }
            return Ok(secret);
        }
        if let Some((why, since)) = &entry.failed
            && since.elapsed() < kept
            && !waits
        {
            return Err(unless(why));
        }
        if waits {
            let before = before.map(|(secret, _)| String::clone(secret));
            drop(secrets);
            let read = self.remote.read(question.0.as_deref(), &question.1, &question.2);
            note(&self.secrets, &question, &read);
            return read.or_else(|why| {
                let before = before.ok_or_else(|| unless(&why))?;
                tracing::warn!(path = question.1, field = question.2, "a secret cannot be read again: {why}");
                Ok(before)
            });
        }
        let is_asked = std::mem::replace(&mut entry.is_asked, true);
        drop(secrets);
        if !is_asked {
            self.ask_beside(question.clone());
        }
        Err(unless("it is being asked for; name it in literals, and it is there from the start"))
    }

    /// Asks on a thread of its own.
    fn ask_beside(&self, question: Question) {
        let (remote, secrets) = (Arc::clone(&self.remote), Arc::clone(&self.secrets));
        let key = question.clone();
        let begun = std::thread::Builder::new().name("vault".to_owned()).spawn(move || {
            let read = remote.read(question.0.as_deref(), &question.1, &question.2);
            if let Err(why) = &read {
                tracing::warn!(path = question.1, field = question.2, "a secret cannot be read again: {why}");
            }
            note(&secrets, &question, &read);
        });
        if begun.is_err() {
            lock(&self.secrets).entry(key).or_default().is_asked = false;
        }
    }
}

fn note(
    secrets: &Mutex<HashMap<Question, CachedSecret>>,
    question: &Question,
    read: &Result<String, String>,
) {
    let mut secrets = lock(secrets);
    let entry = secrets.entry(question.clone()).or_default();
    entry.is_asked = false;
    match read {
        Ok(secret) => {
            entry.secret = Some((Secret::new(secret.clone()), Instant::now()));
            entry.failed = None;
        }
        // The old one is used on.
        Err(why) => entry.failed = Some((why.clone(), Instant::now())),
    }
}

/// What arguments ask for.
fn question<T: AsRef<str>>(arguments: &[T]) -> Result<Question, NoSecret> {
    let parts: Vec<&str> = arguments.iter().map(|argument| argument.as_ref().trim()).collect();
    let (namespace, path, field) = match parts.as_slice() {
        [path, field] => (None, *path, *field),
        [namespace, path, field] => {
            (Some((*namespace).to_owned()).filter(|text| !text.is_empty()), *path, *field)
        }
        _ => return Err("a secret of another server has a path and a field".to_owned().into()),
    };
    let is_path = |text: &str| {
        let sound = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./ ".contains(&byte);
        text.bytes().all(sound)
            && !text.split('/').any(|part| part == ".." || part == ".")
            && text.len() <= 1024
    };
    if path.is_empty() || field.is_empty() || !is_path(path) || !namespace.as_deref().is_none_or(is_path) {
        return Err(format!("`{}` is not a path of a secret", path.escape_debug()).into());
    }
    Ok((namespace, path.trim_matches('/').to_owned(), field.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    #[derive(Debug, Default)]
    struct Server {
        requests: AtomicUsize,
        kept: Duration,
        is_down: AtomicBool,
    }

    impl Remote for Server {
        fn read(&self, namespace: Option<&str>, path: &str, field: &str) -> Result<String, String> {
            let number = self.requests.fetch_add(1, Ordering::SeqCst);
            match path {
                _ if self.is_down.load(Ordering::SeqCst) => Err("it is sealed".to_owned()),
                "none" => Err("there is none".to_owned()),
                _ => Ok(format!("{} {path} {field} {number}", namespace.unwrap_or("-"))),
            }
        }

        fn kept(&self) -> Duration {
            self.kept
        }

        fn identity(&self) -> u64 {
            self.kept.as_secs()
        }
    }

    /// Each plan has a cache of its own.
    #[test]
    fn a_reload_keeps_what_a_server_said_that_does_not_answer_any_more() {
        let server = Arc::new(Server { kept: Duration::from_secs(3600), ..Server::default() });
        let shared = SharedState::default();
        let load = || Cache::new(server.clone(), &shared);
        let first = load();
        for _ in 0..2 {
            assert_eq!(first.secret(&["a", "b"], true).unwrap(), "- a b 0");
        }
        // A secret may have another value since.
        let second = load();
        assert_eq!(second.secret(&["a", "b"], true).unwrap(), "- a b 1");
        drop(first);
        server.is_down.store(true, Ordering::SeqCst);
        let third = load();
        assert_eq!(third.secret(&["a", "b"], true).unwrap(), "- a b 1");
        assert_eq!(third.secret(&["a", "b"], false).unwrap(), "- a b 1");
        assert!(third.secret(&["c", "d"], true).is_err());
        // Of another server, or of another user, is nothing known.
        let other = Arc::new(Server { is_down: AtomicBool::new(true), ..Server::default() });
        assert!(Cache::new(other, &shared).secret(&["a", "b"], true).is_err());
    }

    #[test]
    fn names_without_a_secret_leave_room_for_others() {
        let server = Arc::new(Server { kept: Duration::from_secs(3600), ..Server::default() });
        let cache = Cache::new(server, &SharedState::default());
        assert!(cache.secret(&["secret/a", "b"], true).is_ok());
        for number in 0..2 * MAX_KEPT {
            assert!(cache.secret(&["none", &number.to_string()], true).is_err());
        }
        assert!(cache.secret(&["secret/c", "d"], true).is_ok());
        assert!(lock(&cache.secrets).len() <= MAX_KEPT);
        assert_eq!(cache.secret(&["secret/a", "b"], false).unwrap(), "- secret/a b 0");
    }

    #[test]
    fn flows_do_not_wait() {
        let server = Arc::new(Server { kept: Duration::from_secs(3600), ..Server::default() });
        let cache = Cache::new(server.clone(), &SharedState::default());
        assert_eq!(cache.secret(&["secret/a", "b"], true).unwrap(), "- secret/a b 0");
        assert_eq!(cache.secret(&["/secret/a/", "b"], false).unwrap(), "- secret/a b 0");
        assert_eq!(cache.secret(&["n", "secret/a", "b"], true).unwrap(), "n secret/a b 1");
        assert!(
            cache
                .secret(&["none", "b"], true)
                .is_err_and(|refused| refused.absent && refused.why.contains("there is none"))
        );
        assert!(
            cache.secret(&["none", "b"], false).is_err_and(|refused| refused.why.contains("there is none"))
        );
        assert_eq!(server.requests.load(Ordering::SeqCst), 3);
        // A secret that no literal named is asked for on another thread.
        assert!(
            cache
                .secret(&["secret/c", "d"], false)
                .is_err_and(|refused| refused.why.contains("being asked for"))
        );
        let until = Instant::now() + Duration::from_secs(20);
        while cache.secret(&["secret/c", "d"], false).is_err() {
            assert!(Instant::now() < until);
            std::thread::sleep(Duration::from_millis(5));
        }
        for arguments in [
            &["a"][..],
            &["", "b"],
            &["a", ""],
            &["../a", "b"],
            &["a/../b", "c"],
            &["a?b", "c"],
            &["a%2f", "c"],
        ] {
            assert!(cache.secret(arguments, true).is_err_and(|refused| !refused.absent), "{arguments:?}");
        }
    }

    #[test]
    fn what_was_used_for_long_is_asked_for_beside() {
        let server = Arc::new(Server::default());
        let cache = Cache::new(server.clone(), &SharedState::default());
        assert_eq!(cache.secret(&["a", "b"], true).unwrap(), "- a b 0");
        let until = Instant::now() + Duration::from_secs(20);
        while cache.secret(&["a", "b"], false).unwrap() == "- a b 0" {
            assert!(Instant::now() < until);
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
