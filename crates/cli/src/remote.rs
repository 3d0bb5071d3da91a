//! Resources of a registry on another server: kept in memory, and asked for again when their time is over.
//!
//! A message never waits for that server. What is named when the configuration loads is read then; one thread asks again, with what
//! tells the server whether the resource is another one by now, and a resource that cannot be read stays as it was. What a message
//! names first is read by that thread as well, and is not there until it has been read.

use crate::fetch::{DEADLINE, Fetched, Validators, within};
use config::Fetch;
use flow::lock;
use flow::services::TlsProfiles;
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most bytes of all resources, and most resources: a message may choose the keys.
const MAX_BYTES: usize = 64 << 20;
const MAX_COUNT: usize = 1_000;

/// A resource is looked at again after that time at the earliest, whatever the registry says.
const SHORTEST: Duration = Duration::from_secs(1);

/// Longest wait for one round of questions.
const ROUND: Duration = Duration::from_secs(20);

/// Asks a server.
pub type Ask = dyn Fn(&str, &Validators) -> Result<Fetched, String> + Send + Sync;

/// All that was read, for the process.
static READ: Resources = Resources { cache: Mutex::new(None), wake: Condvar::new() };

/// See the module.
struct Resources {
    cache: Mutex<Option<Cache>>,
    wake: Condvar,
}

/// The resources, by URL.
#[derive(Default)]
struct Cache {
    resources: HashMap<String, Resource>,
    bytes: usize,
    /// The TLS profiles that servers are verified with.
    tls: Option<Arc<TlsProfiles>>,
}

struct Resource {
    state: State,
    validators: Validators,
    cachable: Option<Duration>,
    /// When it is asked for again; `None`: never.
    next: Option<Instant>,
    /// It was named when a configuration was loaded: what is made of it has to be made anew.
    compiled: bool,
    /// It could not be read, and that was logged.
    failing: bool,
}

enum State {
    /// Not read yet, or never with success: why.
    Unread(String),
    /// Read; `None`: there was nothing.
    Read(Option<Arc<[u8]>>),
}

/// What one load of a configuration reads.
pub struct OfLoad {
    ask: Arc<Ask>,
}

/// What [`config::LoadOptions`] fetches with, for one load; resources of a registry are kept beyond it. https servers are verified as
/// those that endpoints send to. All resources of a load have one deadline, which begins with the first of them; a server that did not
/// answer in time is not asked again.
pub fn fetch(tls: &Arc<TlsProfiles>) -> Fetch {
    let ask = Arc::new(within(DEADLINE, tls));
    let kept = OfLoad::new(Arc::clone(&ask) as Arc<Ask>, tls);
    let once = move |url: &str| match ask(url, &Validators::default())? {
        Fetched::Content { bytes, .. } => Ok(bytes),
        Fetched::Unchanged { .. } => Err("the answer was 304".to_owned()),
        Fetched::Gone(status) => Err(format!("the answer was {status}")),
    };
    Fetch { once: Arc::new(once), kept: Some(Arc::new(kept)) }
}

impl OfLoad {
    /// Reads with `ask` what is not in the cache; it is read again with these profiles.
    pub fn new(ask: Arc<Ask>, tls: &Arc<TlsProfiles>) -> OfLoad {
        lock(&READ.cache).get_or_insert_default().tls = Some(Arc::clone(tls));
        OfLoad { ask }
    }
}

impl config::ResourceCache for OfLoad {
    fn read(&self, url: &str, cachable: Option<Duration>, waits: bool) -> Result<Option<Arc<[u8]>>, String> {
        let unread = {
            let mut guard = lock(&READ.cache);
            let cache = guard.get_or_insert_default();
            match cache.resources.get_mut(url) {
                Some(resource) => {
                    resource.cachable = cachable;
                    resource.compiled |= waits;
                    match &resource.state {
                        State::Read(bytes) => return Ok(bytes.clone()),
                        State::Unread(why) => why.clone(),
                    }
                }
                None => {
                    cache.make_room();
                    let resource = Resource::new("it is being read", cachable, waits);
                    cache.resources.insert(url.to_owned(), resource);
                    READ.wake.notify_all();
                    "it is being read".to_owned()
                }
            }
        };
        if !waits {
            return Err(unread);
        }
        let answer = (self.ask)(url, &Validators::default());
        let mut guard = lock(&READ.cache);
        let cache = guard.get_or_insert_default();
        cache.take(url, answer);
        match cache.resources.get(url).map(|resource| &resource.state) {
            Some(State::Read(bytes)) => Ok(bytes.clone()),
            Some(State::Unread(why)) => Err(why.clone()),
            None => Err("there are more resources than fit into memory".to_owned()),
        }
    }
}

impl Resource {
    fn new(why: &str, cachable: Option<Duration>, compiled: bool) -> Resource {
        Resource {
            state: State::Unread(why.to_owned()),
            validators: Validators::default(),
            cachable,
            next: (!compiled).then(Instant::now),
            compiled,
            failing: false,
        }
    }

    fn size(&self) -> usize {
        match &self.state {
            State::Read(Some(bytes)) => bytes.len(),
            _ => 0,
        }
    }
}

impl Cache {
    /// Makes room: first without what only messages have named, then without everything.
    fn make_room(&mut self) {
        if self.resources.len() < MAX_COUNT && self.bytes < MAX_BYTES {
            return;
        }
        self.resources.retain(|_, resource| resource.compiled);
        if self.resources.len() >= MAX_COUNT {
            self.resources.clear();
        }
        self.bytes = self.resources.values().map(Resource::size).sum();
    }

    /// Stores an answer; whether a resource that the configuration was compiled with has changed.
    fn take(&mut self, url: &str, answer: Result<Fetched, String>) -> bool {
        let Some(resource) = self.resources.get_mut(url) else { return false };
        let before = resource.size();
        let mut lease = resource.cachable;
        let state = match answer {
            Ok(Fetched::Content { bytes, validators, fresh }) => {
                resource.validators = validators;
                lease = fresh.or(lease);
                Ok(Some(Some(Arc::from(bytes))))
            }
            Ok(Fetched::Unchanged { fresh }) => {
                lease = fresh.or(lease);
                Ok(None)
            }
            Ok(Fetched::Gone(_)) => {
                resource.validators = Validators::default();
                Ok(Some(None))
            }
            Err(why) => Err(why),
        };
        let failed = state.is_err();
        // What could not be read is asked for again even where it would be kept for ever.
        let again = if failed {
            Some(lease.unwrap_or(ROUND).max(SHORTEST))
        } else {
            lease.map(|lease| lease.max(SHORTEST))
        };
        resource.next = again.and_then(|again| Instant::now().checked_add(again));
        let mut differs = false;
        match state {
            Ok(new) => {
                if std::mem::take(&mut resource.failing) {
                    tracing::info!(target: "busbar::registry", "`{}` can be read again", shown(url));
                }
                if let Some(new) = new {
                    differs = match &resource.state {
                        State::Read(old) => *old != new,
                        State::Unread(_) => true,
                    };
                    if differs {
                        resource.state = State::Read(new);
                    }
                }
            }
            Err(why) => {
                if !std::mem::replace(&mut resource.failing, true) {
                    let then = match resource.state {
                        State::Read(_) => "it is used as it was",
                        State::Unread(_) => "it is not there",
                    };
                    tracing::warn!(target: "busbar::registry", "`{}` cannot be read: {why}; {then}", shown(url));
                }
                if let State::Unread(old) = &mut resource.state {
                    *old = why;
                }
            }
        }
        self.bytes = self.bytes + resource.size() - before;
        differs && resource.compiled
    }
}

/// An address without its password.
fn shown(url: &str) -> String {
    diagnostics::without_credentials(url).into_owned()
}

/// Asks again for what was read, on a thread of its own, until `changed` says that it is over. It is called where something is another
/// thing than what the configuration in force was made of.
///
/// # Errors
/// There is no thread.
pub fn follow(changed: impl Fn() -> bool + Send + 'static) -> std::io::Result<()> {
    let run = move || {
        loop {
            let due = READ.wait();
            if ask_again(due) && !changed() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("registry".to_owned()).spawn(run).map(drop)
}

/// Asks for these. Whether something is another thing.
fn ask_again(due: Vec<(String, Validators)>) -> bool {
    let Some(tls) = lock(&READ.cache).get_or_insert_default().tls.clone() else { return false };
    let ask = within(ROUND, &tls);
    let mut differs = false;
    for (url, validators) in due {
        let answer = ask(&url, &validators);
        differs |= lock(&READ.cache).get_or_insert_default().take(&url, answer);
    }
    differs
}

impl Resources {
    /// Waits until some are due, and says which.
    fn wait(&self) -> Vec<(String, Validators)> {
        let mut guard = lock(&self.cache);
        loop {
            let now = Instant::now();
            let cache = guard.get_or_insert_default();
            let is_due = |resource: &Resource| resource.next.is_some_and(|next| next <= now);
            let due: Vec<_> = cache
                .resources
                .iter()
                .filter(|(_, resource)| is_due(resource))
                .map(|(url, resource)| (url.clone(), resource.validators.clone()))
                .collect();
            if !due.is_empty() {
                return due;
            }
            let next = cache.resources.values().filter_map(|resource| resource.next).min();
            guard = match next {
                Some(next) => {
                    let wait = next.saturating_duration_since(now);
                    self.wake.wait_timeout(guard, wait).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.wake.wait(guard).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(text: &str) -> Result<Fetched, String> {
        let validators = Validators { tag: Some(text.to_owned()), modified: None };
        Ok(Fetched::Content { bytes: text.as_bytes().to_vec(), validators, fresh: None })
    }

    /// What fails leaves what was, what is gone does not; what was named by messages only changes no configuration.
    #[test]
    fn what_cannot_be_read_stays_as_it_was() {
        let mut cache = Cache::default();
        let text = |cache: &Cache| match &cache.resources["u"].state {
            State::Read(bytes) => bytes.as_deref().map(|bytes| String::from_utf8_lossy(bytes).into_owned()),
            State::Unread(why) => Some(format!("({why})")),
        };
        cache.resources.insert("u".to_owned(), Resource::new("unread", Some(Duration::ZERO), true));
        for (answer, is_other, then) in [
            (Err("refused".to_owned()), false, Some("(refused)")),
            (content("one"), true, Some("one")),
            (Ok(Fetched::Unchanged { fresh: None }), false, Some("one")),
            (content("one"), false, Some("one")),
            (Err("refused".to_owned()), false, Some("one")),
            (Err("refused".to_owned()), false, Some("one")),
            (content("three"), true, Some("three")),
            (Ok(Fetched::Gone(404)), true, None),
            (Err("refused".to_owned()), false, None),
            (content("four"), true, Some("four")),
        ] {
            assert_eq!(cache.take("u", answer), is_other);
            assert_eq!(text(&cache).as_deref(), then);
            assert_eq!(cache.bytes, then.filter(|text| !text.starts_with('(')).map_or(0, str::len));
            assert!(cache.resources["u"].next.is_some_and(|next| next > Instant::now()), "never at once");
        }
        cache.resources.insert("m".to_owned(), Resource::new("unread", None, false));
        assert!(cache.resources["m"].next.is_some(), "what a message names is read soon");
        assert!(!cache.take("m", content("by a message")));
        assert!(cache.resources["m"].next.is_none(), "kept for ever");
    }

    #[test]
    fn what_messages_name_is_bounded() {
        let mut cache = Cache::default();
        cache.resources.insert("u".to_owned(), Resource::new("unread", None, true));
        for n in 0..3 * MAX_COUNT {
            cache.make_room();
            cache.resources.insert(n.to_string(), Resource::new("unread", None, false));
        }
        assert!(cache.resources.len() <= MAX_COUNT && cache.resources.contains_key("u"));
    }
}
