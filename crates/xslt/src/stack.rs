//! The stack that what nests by a stylesheet's doing needs: elements when it is compiled, templates when it runs. Recursion is bounded by the limit on depth, not by the stack of the
//! thread that calls: where that has been used enough, execution goes on in a thread with a stack of its own.
//!
//! How deep it is, is counted; how much stack that took is looked at from time to time, by the addresses of local
//! variables.

use crate::error::XsltError;
use std::cell::Cell;
use std::thread::{Builder, ScopedJoinHandle, scope};

/// Bytes that a transformation surely may use of the stack of the thread that calls (of at least 2 MiB), but for what the
/// levels of one stride of the engine take.
const CALLER: usize = 1 << 20;
/// The size of a stack made for the rest, and what of it may be used.
const OWN: usize = 96 << 20;
const OWN_USED: usize = 80 << 20;

thread_local! {
    /// The address down to which this thread's stack may be used. Not known: nothing of it.
    static FLOOR: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Where the stack is.
#[inline(never)]
fn here() -> usize {
    let local = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&local)).addr()
}

/// Runs `f` on this thread, which may use its stack as far as a transformation may.
pub(crate) fn on_this<R>(f: impl FnOnce() -> R) -> R {
    /// Puts the old floor back, also where `f` does not return.
    struct Before(usize);
    impl Drop for Before {
        fn drop(&mut self) {
            FLOOR.set(self.0);
        }
    }
    let before = FLOOR.get();
    // Within another transformation its floor counts.
    let floor = here().saturating_sub(CALLER);
    let _before = Before(before);
    FLOOR.set(if before == usize::MAX { floor } else { before.max(floor) });
    f()
}

/// Whether some of this stack is left.
pub(crate) fn is_left() -> bool {
    here() > FLOOR.get()
}

/// Goes on in a thread with a stack of its own.
pub(crate) fn on_new<R: Send>(f: impl FnOnce() -> Res<R> + Send) -> Res<R> {
    meter::carry(|carried| on_thread(|| carried.enter(f)))
}

type Res<T> = Result<T, Box<XsltError>>;

fn on_thread<R: Send>(f: impl FnOnce() -> Res<R> + Send) -> Res<R> {
    let run = || {
        FLOOR.set(here().saturating_sub(OWN_USED));
        f()
    };
    scope(|scope| match Builder::new().stack_size(OWN).spawn_scoped(scope, run).map(ScopedJoinHandle::join) {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err(Box::new(XsltError::new("the transformation failed inside a deep recursion"))),
        Err(error) => Err(Box::new(XsltError::new(format!("no stack for a deep recursion: {error}")))),
    })
}
