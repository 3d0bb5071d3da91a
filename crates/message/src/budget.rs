//! A count of bytes with a bound. Workers share it; `tests/models` goes through all that may happen between them.

use super::sync::{AtomicU64, AtomicUsize, Relaxed};

/// See the module.
pub struct Budget {
    /// Counted now.
    pub held: AtomicUsize,
    /// The bound.
    pub most: AtomicUsize,
    /// How often something did not fit.
    pub refused: AtomicU64,
}

impl Budget {
    /// Counts bytes, whether they fit or not.
    #[inline]
    pub fn take(&self, bytes: usize) {
        self.held.fetch_add(bytes, Relaxed);
    }

    /// Counts bytes if they fit.
    #[inline]
    pub fn try_take(&self, bytes: usize) -> bool {
        let before = self.held.fetch_add(bytes, Relaxed);
        if before.saturating_add(bytes) <= self.most.load(Relaxed) {
            return true;
        }
        self.held.fetch_sub(bytes, Relaxed);
        self.refused.fetch_add(1, Relaxed);
        false
    }

    /// Bytes are no longer held.
    #[inline]
    pub fn give_back(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Relaxed);
    }
}
