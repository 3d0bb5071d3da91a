//! Where a step has run, and what that says of its next run: what [`crate::engine::compute`] remembers of each step.

use super::context::Context;
use super::mediator::{Mediator, Moves, Need};
use meter::Stop;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Units of a step on a worker: about a millisecond.
pub(crate) const INLINE: u32 = 40_000;

/// Units that a step counts as beside those that it uses.
const STEP: u32 = 256;

/// Bytes of a message that a step reads in the time of one unit, where it counts none.
const BYTES: u32 = 8;

/// After so many times [`STEP`] units a flow lets others on its worker have their turn.
const TURN: u8 = (INLINE / STEP) as u8;

/// From this size on parsing a message alone takes about a millisecond, in bytes.
pub(crate) const LARGE: u32 = 256 << 10;

/// How large the input of a step is, as far as that is known.
pub(crate) fn size_of(need: Need, context: &Context) -> u32 {
    if need < Need::Prefix {
        return 0;
    }
    u32::try_from(context.payload.extent()).unwrap_or(u32::MAX - 1)
}

/// Takes note of a step that ran on its worker with a message of so many bytes and used so many units. `true`: others on the worker
/// should have their turn now, since about a millisecond of such work was done.
#[inline]
pub(crate) fn turn_is_over(context: &mut Context, size: u32, units: u64) -> bool {
    let more = 1 + (units + u64::from(size / BYTES)) / u64::from(STEP);
    let turn = &mut context.progress.spent.turn;
    *turn = turn.saturating_add(more.min(u8::MAX.into()) as u8);
    let over = *turn >= TURN;
    if over {
        *turn = 0;
    }
    over
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

    /// A message of so many bytes was too long for a worker.
    pub fn was_stopped(&self, stop: Stop, size: u32) {
        if stop != Stop::Elsewhere {
            self.from.fetch_min(size, Relaxed);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_from_which_a_step_is_long_is_learned() {
        let load = Load { moves: Moves::Long, from: AtomicU32::new(first(Moves::Long)) };
        load.was_stopped(Stop::Elsewhere, 900);
        assert!(!load.is_long(900), "the size was not the reason");
        load.was_stopped(Stop::Long, 900);
        assert_eq!((load.is_long(899), load.is_long(900)), (false, true));
        load.took(900, 1);
        assert_eq!((load.is_long(900), load.is_long(901)), (false, true), "it was short");
    }
}
