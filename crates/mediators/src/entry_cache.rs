//! What is compiled of entries that only a message names, and kept as long as their texts stay the same.

use diagnostics::{Diagnostic, Span};
use flow::{Compiler, lock};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};

/// Most values that one mediator keeps: a client may choose the keys.
const MOST: usize = 64;

/// Values of type `V` made of texts `T` (`Arc<[u8]>` or some of them), by the keys `K` of these texts.
pub(crate) struct EntryCache<K, T, V>(Mutex<HashMap<K, (T, Arc<V>)>>);

impl<K, T, V> Default for EntryCache<K, T, V> {
    fn default() -> EntryCache<K, T, V> {
        EntryCache(Mutex::default())
    }
}

impl<K: Clone + Eq + Hash, T: PartialEq, V> EntryCache<K, T, V> {
    /// The value of a key, made anew if its texts have changed. Those of an entry in memory are the same `Arc`s for each
    /// message, so that comparing them costs nothing.
    ///
    /// # Errors
    /// That of `make`; nothing is kept then.
    pub(crate) fn get_or_make<E>(
        &self,
        key: &K,
        texts: T,
        make: impl FnOnce(&T) -> Result<V, E>,
    ) -> Result<Arc<V>, E> {
        if let Some((old, value)) = lock(&self.0).get(key)
            && *old == texts
        {
            return Ok(Arc::clone(value));
        }
        // Not under the lock: other workers' messages go on meanwhile.
        let value = Arc::new(make(&texts)?);
        let mut kept = lock(&self.0);
        if kept.len() >= MOST {
            kept.clear();
        }
        kept.insert(key.clone(), (texts, Arc::clone(&value)));
        Ok(value)
    }
}

/// Warns that there is no `what` (a stylesheet, a schema, …) of a key when the configuration loads. Of one that is not fetched
/// now it has been said.
pub(crate) fn warn_missing(what: &str, key: &str, place: Span, compiler: &mut Compiler<'_>) {
    if compiler.is_not_fetched(key) {
        return;
    }
    let found = Diagnostic::warning("unknown-entry", format!("there is no {what} `{key}`"))
        .at(place, "messages that come here fault as long as it is missing");
    let near = compiler.configuration.near_key(key);
    compiler.diagnostics.push(match near {
        Some(near) => found.help(format!("did you mean `{near}`?")),
        None => found,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_again_when_its_text_changes_and_only_then() {
        let kept: EntryCache<&str, Arc<[u8]>, usize> = EntryCache::default();
        let mut made = 0;
        let mut get = |key, text: &Arc<[u8]>| {
            let make = |text: &Arc<[u8]>| {
                made += 1;
                if text.is_empty() { Err("empty") } else { Ok(made) }
            };
            kept.get_or_make(&key, Arc::clone(text), make).map(|value| *value)
        };
        let (one, same, other) = (Arc::from(*b"one"), Arc::from(*b"one"), Arc::from(*b"two"));
        assert_eq!(get("k", &one), Ok(1));
        assert_eq!(get("k", &one), Ok(1), "the same text");
        assert_eq!(get("k", &same), Ok(1), "an equal text");
        assert_eq!(get("k", &other), Ok(2));
        assert_eq!(get("l", &other), Ok(3), "another key");
        assert_eq!(get("k", &Arc::from(*b"")), Err("empty"));
        assert_eq!(get("k", &other), Ok(2), "what cannot be made leaves what was");
    }

    #[test]
    fn no_more_are_kept_than_the_bound() {
        let kept: EntryCache<usize, (), ()> = EntryCache::default();
        for key in 0..10 * MOST {
            let _ = kept.get_or_make(&key, (), |()| Ok::<_, ()>(()));
            assert!(lock(&kept.0).len() <= MOST);
        }
    }
}
