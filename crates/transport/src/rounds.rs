//! The rounds of a worker's event loop: between two of them the kernel reports what has happened to its sockets.
//!
//! What a socket is known to have is what was reported up to the beginning of the round. So whoever has read from a socket in this round has to
//! ask the kernel itself what came behind; whoever did so in an earlier round has been told.

use std::cell::Cell;

thread_local! {
    static ROUND: Cell<u64> = const { Cell::new(0) };
}

/// Another round begins. For the runtime of a worker, when it comes back from waiting.
pub(crate) fn begin() {
    // Fails only while the thread ends.
    let _ = ROUND.try_with(|round| round.set(round.get() + 1));
}

/// The number of this thread's round; 0: nobody counts them here.
#[inline]
pub(crate) fn current() -> u64 {
    ROUND.try_with(Cell::get).unwrap_or(0)
}
