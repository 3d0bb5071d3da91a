//! The counts behind scopes. Workers share them; `tests/models` goes through all that may happen between them.

use super::sync::{AtomicBool, AtomicU16, AtomicUsize, Ordering::*};

/// How the work of a message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All of it came to its end without a fault.
    Completed,
    /// Some of it failed, also if a fault sequence has dealt with that; the status that the fault suggests.
    Failed(u16),
    /// Some of it was abandoned before its end: its client went away, or the process stops.
    Dropped,
}

/// What runs of one message: its first flow and its children.
pub struct Tally {
    running: AtomicUsize,
    /// The status of what failed; 0: nothing did.
    failed: AtomicU16,
    dropped: AtomicBool,
}

impl Tally {
    /// The first flow runs.
    pub fn new() -> Tally {
        Tally { running: AtomicUsize::new(1), failed: AtomicU16::new(0), dropped: AtomicBool::new(false) }
    }

    /// One more runs; by one that runs.
    pub fn begin(&self) {
        self.running.fetch_add(1, AcqRel);
    }

    /// One more runs, unless all have ended (`false`).
    pub fn begin_beside(&self) -> bool {
        if self.running.fetch_add(1, AcqRel) > 0 {
            return true;
        }
        self.running.fetch_sub(1, AcqRel);
        false
    }

    /// How many run.
    pub fn running(&self) -> usize {
        self.running.load(Acquire)
    }

    /// One that runs has failed.
    pub fn fail(&self, status: u16) {
        self.failed.store(status, Release);
    }

    /// One has ended; `whole`: at its end. `Some`: it was the last one.
    pub fn end(&self, whole: bool) -> Option<Outcome> {
        if !whole {
            self.dropped.store(true, Release);
        }
        if self.running.fetch_sub(1, AcqRel) != 1 {
            return None;
        }
        Some(match self.failed.load(Acquire) {
            0 if self.dropped.load(Acquire) => Outcome::Dropped,
            0 => Outcome::Completed,
            status => Outcome::Failed(status),
        })
    }
}

/// How many messages are on their way, and whether a drain waits for the last of them. Both are in one word: a message that leaves
/// sees that a drain waits, or the drain sees that it has left.
#[derive(Default)]
pub struct Gate(AtomicUsize);

/// The highest bit: a drain waits.
const WAITED_FOR: usize = 1 << (usize::BITS - 1);

impl Gate {
    /// One more; `false`: there are `most` already.
    #[inline]
    pub fn enter(&self, most: usize) -> bool {
        if self.0.fetch_add(1, Relaxed) & !WAITED_FOR < most {
            return true;
        }
        self.0.fetch_sub(1, Relaxed);
        false
    }

    /// One less; `true`: the drain that waits must be woken.
    #[inline]
    pub fn leave(&self) -> bool {
        self.0.fetch_sub(1, AcqRel) & WAITED_FOR != 0
    }

    /// From now on a drain waits.
    pub fn wait(&self) {
        self.0.fetch_or(WAITED_FOR, AcqRel);
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.load(Acquire) & !WAITED_FOR
    }
}
