//! Values that several share by a key, for as long as somebody has them: the places at a server, what a server said.

use crate::connection::lock;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, Weak};

/// Values by key. It keeps none of them: a value that nobody has any more is forgotten.
#[derive(Debug)]
pub struct WeakMap<K, V>(Mutex<HashMap<K, Weak<V>>>);

impl<K, V> Default for WeakMap<K, V> {
    fn default() -> WeakMap<K, V> {
        WeakMap(Mutex::default())
    }
}

impl<K: Eq + Hash, V> WeakMap<K, V> {
    /// The value of a key that somebody has, or a new one.
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> Arc<V> {
        let mut values = lock(&self.0);
        if let Some(value) = values.get(&key).and_then(Weak::upgrade) {
            return value;
        }
        values.retain(|_, value| value.strong_count() > 0);
        let value = Arc::new(make());
        values.insert(key, Arc::downgrade(&value));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_lives_as_long_as_somebody_has_it() {
        let map = WeakMap::default();
        let first = map.get_or_insert_with("a", || 1);
        assert_eq!(*map.get_or_insert_with("a", || 2), 1);
        assert_eq!(*map.get_or_insert_with("b", || 3), 3);
        drop(first);
        assert_eq!(*map.get_or_insert_with("a", || 4), 4);
        // Nobody has the values any more, and what is added next makes room.
        let _last = map.get_or_insert_with("c", || 5);
        assert_eq!(map.0.lock().map(|values| values.len()).ok(), Some(1));
    }
}
