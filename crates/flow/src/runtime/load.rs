//! Where a step has run, and what that says of its next run: what [`crate::engine::compute`] remembers of each step.

use super::context::Context;
use super::mediator::{Mediator, Moves, Need};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Units of a step on a worker: about a millisecond.
pub(crate) const INLINE: u32 = 40_000;

/// From this size on parsing a message alone takes about a millisecond, in bytes.
pub(crate) const LARGE: u32 = 256 << 10;

/// Bytes that a node of a tree stands for, where the bytes that it came from are not there.
const NODE: usize = 16;

/// How large the input of a step is, as far as that is known.
pub(crate) fn size_of(need: Need, context: &Context) -> u32 {
    let payload = &context.payload;
    if need < Need::Prefix || payload.is_unread() {
        return 0;
    }
    let size = match (payload.bytes(), payload.built_envelope()) {
        (Some(bytes), _) => bytes.len(),
        (None, Some(envelope)) => envelope.document.node_count() * NODE,
        (None, None) => 0,
    };
    u32::try_from(size).unwrap_or(u32::MAX - 1)
}

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
