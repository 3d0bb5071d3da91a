//! Values that must not come again before their time is over.

use std::collections::{BTreeSet, HashMap};

/// SHA-256 of such values, each until a second since 1970.
#[derive(Debug, Default)]
pub struct Seen {
    until: HashMap<[u8; 32], i64>,
    by_time: BTreeSet<(i64, [u8; 32])>,
}

impl Seen {
    /// Forgets those whose time is over.
    pub fn forget(&mut self, now: i64) {
        while let Some(&(until, digest)) = self.by_time.first()
            && until < now
        {
            self.by_time.pop_first();
            self.until.remove(&digest);
        }
    }

    /// Whether it was seen.
    pub fn contains(&self, digest: &[u8; 32]) -> bool {
        self.until.contains_key(digest)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.until.len()
    }

    /// Remembers one that was not seen.
    pub fn add(&mut self, digest: [u8; 32], until: i64) {
        self.until.insert(digest, until);
        self.by_time.insert((until, digest));
    }
}
