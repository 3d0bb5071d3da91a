//! Things of which there are so many in the process.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// One of them, counted as long as this lives.
pub(crate) struct Counted(&'static AtomicUsize);

impl Counted {
    /// One more, while there are fewer than `most`.
    pub(crate) fn below(count: &'static AtomicUsize, most: usize) -> Option<Counted> {
        let more = |n| if n < most { Some(n + 1) } else { None };
        count.fetch_update(Relaxed, Relaxed, more).ok().map(|_| Counted(count))
    }

    /// One more, however many there are.
    pub(crate) fn another(count: &'static AtomicUsize) -> Counted {
        count.fetch_add(1, Relaxed);
        Counted(count)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
