//! The stack for nesting that depends on a stylesheet. Recursion is bounded by the limit on depth, not by the stack of the
//! calling thread: where that has been used enough, execution continues in a thread with its own stack.
//!
//! The depth is counted; the stack that it took is measured from time to time, by the addresses of local
//! variables.

use crate::error::XsltError;
use std::cell::Cell;
use std::thread::{Builder, ScopedJoinHandle, scope};

/// Bytes that a transformation may use of the stack of the calling thread (of at least 2 MiB), in addition to the
/// levels of one stride of the engine.
const CALLER: usize = 1 << 20;
/// The size of a stack for the rest, and the part of it that may be used.
const OWN: usize = 96 << 20;
const OWN_USED: usize = 80 << 20;

thread_local! {
    /// The lowest address of this thread's stack that may be used. Unknown: none of it.
    static FLOOR: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The current stack address.
#[inline(never)]
fn stack_address() -> usize {
    let local = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&local)).addr()
}

/// Runs `f` on this thread, with the share of its stack that a transformation may use.
pub(crate) fn on_this<R>(f: impl FnOnce() -> R) -> R {
    /// Restores the old floor, also where `f` panics.
    struct Before(usize);
    impl Drop for Before {
        fn drop(&mut self) {
            FLOOR.set(self.0);
        }
    }
    let before = FLOOR.get();
    // Within another transformation its floor counts.
    let floor = stack_address().saturating_sub(CALLER);
    let _before = Before(before);
    FLOOR.set(if before == usize::MAX { floor } else { before.max(floor) });
    f()
}

/// Whether stack is left.
pub(crate) fn is_left() -> bool {
    stack_address() > FLOOR.get()
}

/// Continues in a thread with its own stack.
pub(crate) fn on_new<R: Send>(f: impl FnOnce() -> Res<R> + Send) -> Res<R> {
    meter::carry(|carried| on_thread(|| carried.enter(f)))
}

type Res<T> = Result<T, Box<XsltError>>;

fn on_thread<R: Send>(f: impl FnOnce() -> Res<R> + Send) -> Res<R> {
    let run = || {
        FLOOR.set(stack_address().saturating_sub(OWN_USED));
        f()
    };
    scope(|scope| match Builder::new().stack_size(OWN).spawn_scoped(scope, run).map(ScopedJoinHandle::join) {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err(Box::new(XsltError::new("the transformation failed inside a deep recursion"))),
        Err(error) => Err(Box::new(XsltError::new(format!("no stack for a deep recursion: {error}")))),
    })
}
