//! Where a step has run, and what that says of its next run: what [`crate::engine::compute`] remembers of each step.

use super::mediator::{Mediator, Moves};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Units of a step on a worker: about a millisecond.
pub(crate) const INLINE: u32 = 40_000;

/// From this size on parsing a message alone takes about a millisecond, in bytes.
pub(crate) const LARGE: u32 = 256 << 10;

/// Where a step has run, and what that says of its next run.
#[derive(Debug)]
pub(crate) struct Load {
    pub moves: Moves,
    /// Messages of at least so many bytes are long work.
    from: AtomicU32,
}

impl Load {
    pub fn of(mediator: &dyn Mediator) -> Load {
        let moves = mediator.moves();
        Load { moves, from: AtomicU32::new(first(moves)) }
    }

    pub fn is_long(&self, size: u32) -> bool {
        size >= self.from.load(Relaxed)
    }

    /// A message was too long for a worker.
    pub fn was_long(&self, size: u32) {
        self.from.fetch_min(size, Relaxed);
    }

    /// What a compute thread was asked for took so many units.
    pub fn took(&self, size: u32, units: u64) {
        if units < u64::from(INLINE) / 2 {
            self.from.fetch_max(size.saturating_add(1).min(first(self.moves)), Relaxed);
        }
    }
}

/// The size from which a step moves before it has ever run.
fn first(moves: Moves) -> u32 {
    match moves {
        Moves::Always => 0,
        Moves::Large => LARGE,
        Moves::Long | Moves::Never => u32::MAX,
    }
}
