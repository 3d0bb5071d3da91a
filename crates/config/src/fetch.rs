//! What of a configuration lies on other servers, and is read over the network while it loads.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Reads the resource at a URL; the error says why that failed.
#[derive(Clone)]
pub struct Fetch {
    /// What is read once, while the configuration loads.
    pub once: Arc<FetchFunction>,
    /// Resources of a registry, which are kept and read again. `None`: they are not read.
    pub kept: Option<Arc<dyn Kept>>,
}

/// Resources on other servers that are read when they are named first, and again when their time is over.
pub trait Kept: Send + Sync {
    /// What is at a URL, as it was read last; `None`: nothing. `cachable`: for how long it is not looked at again, `None`: for ever.
    /// `waits`: what was not read yet is read now. Otherwise that begins now, and is an error until it has ended.
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

/// The addresses that somebody asked for, instead of what is there.
#[derive(Clone, Default)]
pub(crate) struct Noted(Arc<Mutex<Vec<String>>>);

impl Noted {
    /// Takes note of each address, and reads none.
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
    /// Reads what is at these addresses, some at a time, and answers from that; other addresses are read when they are asked for.
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
        // None is answered before all have been asked for.
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
