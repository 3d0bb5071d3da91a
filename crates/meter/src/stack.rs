//! The stack for nesting that depends on a program (a stylesheet, an expression). Recursion is bounded by a limit on its depth,
//! not by the stack of the calling thread: where that has been used enough, execution continues in a thread with its own stack.
//!
//! What was used is measured by the addresses of local variables.

use std::cell::Cell;
use std::marker::PhantomData;
use std::thread::{Builder, ScopedJoinHandle, scope};

/// The size of a stack for the rest, and the part of it that may be used.
const OWN: usize = 96 << 20;
const OWN_USED: usize = 80 << 20;

thread_local! {
    /// The lowest address of this thread's stack that may be used. Unknown: none of it.
    static FLOOR: Cell<usize> = const { Cell::new(usize::MAX) };
    /// Calls of functions that have not ended.
    static CALLS: Cell<u32> = const { Cell::new(0) };
    /// Threads with their own stacks that wait for one another, this one included.
    static STACKS: Cell<u32> = const { Cell::new(0) };
}

/// The current stack address.
#[inline(never)]
fn address() -> usize {
    let local = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&local)).addr()
}

/// A share of this thread's stack that may be used until this is dropped.
pub struct Share {
    /// The floor that was in force before.
    before: usize,
    /// It is that of this thread.
    _here: PhantomData<*const ()>,
}

impl Share {
    /// That many bytes from here; within another share its floor counts.
    pub fn of(bytes: usize) -> Share {
        let before = FLOOR.get();
        let floor = address().saturating_sub(bytes);
        FLOOR.set(if before == usize::MAX { floor } else { before.max(floor) });
        Share { before, _here: PhantomData }
    }

    /// The same, where there is none yet.
    pub fn unless_known(bytes: usize) -> Option<Share> {
        (FLOOR.get() == usize::MAX).then(|| Share::of(bytes))
    }
}

/// Restores the old floor, also where the work panics.
impl Drop for Share {
    fn drop(&mut self) {
        FLOOR.set(self.before);
    }
}

/// Whether stack is left.
pub fn is_left() -> bool {
    address() > FLOOR.get()
}

/// Whether stack is left, with that many bytes below the share.
pub fn is_left_with(more: usize) -> bool {
    address().saturating_add(more) > FLOOR.get()
}

/// How many stacks of their own the recursion has taken.
pub fn taken() -> u32 {
    STACKS.get()
}

/// A call of a function, which ends when this is dropped.
pub struct NestedCall {
    /// It is counted in this thread.
    _here: PhantomData<*const ()>,
}

impl NestedCall {
    /// Begins one, unless that many have not ended.
    pub fn begin(most: u32) -> Option<NestedCall> {
        let before = CALLS.get();
        (before < most).then(|| {
            CALLS.set(before + 1);
            NestedCall { _here: PhantomData }
        })
    }
}

impl Drop for NestedCall {
    fn drop(&mut self) {
        CALLS.set(CALLS.get().saturating_sub(1));
    }
}

/// Continues in a thread with its own stack, with the bounds of this one's run.
///
/// # Errors
/// There is no such thread, or it panicked: a message.
pub fn on_new<R: Send>(f: impl FnOnce() -> R + Send) -> Result<R, String> {
    crate::carry(|carried| on_thread(|| carried.enter(f)))
}

fn on_thread<R: Send>(f: impl FnOnce() -> R + Send) -> Result<R, String> {
    let (calls, stacks) = (CALLS.get(), STACKS.get());
    let run = || {
        FLOOR.set(address().saturating_sub(OWN_USED));
        CALLS.set(calls);
        STACKS.set(stacks + 1);
        f()
    };
    scope(|scope| match Builder::new().stack_size(OWN).spawn_scoped(scope, run).map(ScopedJoinHandle::join) {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(_)) => Err("the work failed inside a deep recursion".to_owned()),
        Err(error) => Err(format!("no stack for a deep recursion: {error}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deep_recursion_goes_on_elsewhere() {
        fn down(depth: u32) -> (u32, u32) {
            let frame = std::hint::black_box([0_u8; 4096]);
            if depth == 0 {
                return (u32::from(frame[7]), 0);
            }
            let (depth, threads) = if is_left() {
                down(depth - 1)
            } else {
                let (depth, threads) = on_new(|| down(depth - 1)).unwrap_or_default();
                (depth, threads.max(taken() + 1))
            };
            (depth + 1, threads)
        }
        let _share = Share::of(64 << 10);
        assert_eq!(down(3000), (3000, 1));
        assert!(is_left() && is_left_with(1 << 20) && taken() == 0);
    }

    #[test]
    fn calls_are_counted_across_threads() {
        let calls: Vec<_> = (0..3).map_while(|_| NestedCall::begin(10)).collect();
        let more = || (0..100).map_while(|_| NestedCall::begin(10)).count();
        let there = || {
            let calls: Vec<_> = (0..100).map_while(|_| NestedCall::begin(10)).collect();
            calls.len()
        };
        assert_eq!((calls.len(), on_new(there), there()), (3, Ok(7), 7));
        // Those that end at once are not nested.
        assert_eq!(more(), 100);
        drop(calls);
    }
}
