//! What is remembered of an endpoint. Workers share it; `tests/models` goes through all that may happen between them.

use super::sync::{AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering::*};
use std::sync::PoisonError;
use std::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Phase {
    Active,
    Timeout,
    Suspended,
    /// Switched off by hand.
    Off,
}

#[derive(Debug)]
pub struct Now {
    pub phase: Phase,
    /// Retries that were used up since the endpoint was active.
    pub retries: u32,
    /// Failures that were counted since the endpoint was active ([`Cell::counts`]).
    pub faults: u32,
    /// The last suspension since the endpoint was active, in milliseconds; zero counts as none.
    pub last: i64,
    pub retry_at: Option<Instant>,
}

impl Now {
    const ACTIVE: Now = Now { phase: Phase::Active, retries: 0, faults: 0, last: 0, retry_at: None };
}

/// See the module.
#[derive(Debug)]
pub struct Cell {
    /// The phase is [`Phase::Active`], for those who need to know no more: every message, twice.
    active: AtomicBool,
    /// How often it was suspended or switched.
    episode: AtomicU64,
    /// How often it was marked for suspension.
    marks: AtomicU64,
    now: Mutex<Now>,
}

impl Default for Cell {
    fn default() -> Cell {
        Cell {
            active: AtomicBool::new(true),
            episode: AtomicU64::new(0),
            marks: AtomicU64::new(0),
            now: Mutex::new(Now::ACTIVE),
        }
    }
}

impl Cell {
    pub fn is_active(&self) -> bool {
        self.active.load(Acquire)
    }

    /// The number of suspensions so far; an attempt takes it down when it begins.
    pub fn episode(&self) -> u64 {
        self.episode.load(Acquire)
    }

    /// The number of suspensions and marks so far; a check takes it down when it begins.
    pub fn setbacks(&self) -> u64 {
        self.episode().wrapping_add(self.marks.load(Acquire))
    }

    pub fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An attempt was answered.
    pub fn succeeded(&self) {
        if self.is_active() {
            return;
        }
        let mut now = self.now();
        if now.phase != Phase::Off {
            *now = Now::ACTIVE;
        }
        self.active.store(now.phase == Phase::Active, Release);
    }

    /// An attempt that began in `episode` failed. `then` says what comes of it, unless that says nothing new: one breakdown is
    /// one suspension.
    pub fn failed(&self, episode: u64, then: impl FnOnce(&mut Now)) {
        let mut now = self.now();
        if now.phase == Phase::Off || episode != self.episode() {
            return;
        }
        then(&mut now);
        match now.phase {
            Phase::Suspended => _ = self.episode.fetch_add(1, Release),
            Phase::Timeout => _ = self.marks.fetch_add(1, Release),
            Phase::Active | Phase::Off => {}
        }
        self.active.store(now.phase == Phase::Active, Release);
    }

    /// Counts an attempt that began in `episode` and failed. Whether there have been as many before as there may be; `starts_over`: the
    /// count begins anew then.
    pub fn counts(&self, episode: u64, most: u32, starts_over: bool) -> bool {
        let mut now = self.now();
        if now.phase == Phase::Off || episode != self.episode() {
            return false;
        }
        let is_over = now.faults >= most;
        if !is_over {
            now.faults += 1;
        } else if starts_over {
            now.faults = 0;
        }
        is_over
    }

    /// Switches it off or on by hand; `also` is done with it. What was under way then says nothing when it fails.
    pub fn switch(&self, on: bool, also: impl FnOnce()) {
        let mut now = self.now();
        *now = if on { Now::ACTIVE } else { Now { phase: Phase::Off, ..Now::ACTIVE } };
        also();
        self.episode.fetch_add(1, Release);
        self.active.store(on, Release);
    }
}
