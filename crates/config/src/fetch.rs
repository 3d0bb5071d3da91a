//! Resources of the configuration on other servers, which are read over the network.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Reads the resource at a URL; the error says why that failed.
#[derive(Clone)]
pub struct Fetch {
    /// How resources are read while the configuration loads.
    pub once: Arc<FetchFunction>,
    /// How the registry reads and caches resources. `None`: they are not read.
    pub kept: Option<Arc<dyn ResourceCache>>,
}

/// Resources on other servers that are cached: read on first use, and again when `cachable` is over.
pub trait ResourceCache: Send + Sync {
    /// The content at a URL, as read last; `None`: there is none. `cachable`: how long it is used without a new request, `None`: for ever.
    /// `waits`: content that is not cached is read now. Otherwise reading begins, and this is an error until it has ended.
    ///
    /// # Errors
    /// Why it was never read.
    fn read(&self, url: &str, cachable: Option<Duration>, waits: bool) -> Result<Option<Arc<[u8]>>, String>;
}

/// The function of a [`Fetch`].
pub type FetchFunction = dyn Fn(&str) -> Result<Vec<u8>, String> + Send + Sync;

impl fmt::Debug for Fetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fetch")
    }
}

/// Resources that are read at the same time.
const AT_ONCE: usize = 16;

/// Collects the addresses that are read, and reads nothing.
#[derive(Clone, Default)]
pub(crate) struct Noted(Arc<Mutex<Vec<String>>>);

impl Noted {
    /// Notes each address and reads none.
    pub(crate) fn fetch(&self) -> Fetch {
        let noted = self.clone();
        let once = Arc::new(move |url: &str| {
            noted.0.lock().unwrap_or_else(PoisonError::into_inner).push(url.to_owned());
            Err("it is not read yet".to_owned())
        });
        Fetch { once, kept: None }
    }

    /// The addresses.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Fetch {
    /// Reads these addresses, some at a time, and serves them; other addresses are read on request.
    pub(crate) fn ahead(&self, addresses: Vec<String>) -> Fetch {
        let threads = addresses.len().min(AT_ONCE);
        let (waiting, read) = (Mutex::new(addresses), Mutex::new(HashMap::new()));
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).pop();
                        let Some(url) = next else { break };
                        let result = (self.once)(&url);
                        read.lock().unwrap_or_else(PoisonError::into_inner).insert(url, result);
                    }
                });
            }
        });
        let read: HashMap<String, Result<Vec<u8>, String>> =
            read.into_inner().unwrap_or_else(PoisonError::into_inner);
        let other = Arc::clone(&self.once);
        let once = Arc::new(move |url: &str| read.get(url).cloned().unwrap_or_else(|| other(url)));
        Fetch { once, kept: self.kept.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{LoadOptions, load};
    use std::sync::Barrier;

    #[test]
    fn entries_on_other_servers_are_read_at_the_same_time() {
        let path = std::env::temp_dir().join(format!("busbar-fetch-{}.xml", std::process::id()));
        let entries: String =
            (0..5).map(|n| format!("<localEntry key='e{n}' src='http://h/{n}'/>")).collect();
        let again = "<localEntry key='again' src='http://h/0'/>";
        let text = format!("<definitions xmlns='{}'>{entries}{again}</definitions>", crate::SYNAPSE);
        std::fs::write(&path, text).unwrap();
        // No response comes before all requests are there.
        let (all, requested) = (Barrier::new(5), Arc::new(Mutex::new(Vec::new())));
        let noted = Arc::clone(&requested);
        let once = Arc::new(move |url: &str| {
            noted.lock().unwrap().push(url.to_owned());
            all.wait();
            Ok(url.as_bytes().to_vec())
        });
        let fetch = Fetch { once, kept: None };
        let loaded = load(&path, &LoadOptions { fetch: Some(fetch), ..LoadOptions::default() });
        std::fs::remove_file(&path).unwrap();
        assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
        let mut requested = requested.lock().unwrap().clone();
        requested.sort();
        assert_eq!(requested, ["http://h/0", "http://h/1", "http://h/2", "http://h/3", "http://h/4"]);
        let entry = |key| loaded.configuration.local_entries.get(key).unwrap().bytes();
        assert_eq!((&*entry("e3"), &*entry("again")), (b"http://h/3".as_slice(), b"http://h/0".as_slice()));
    }
}
