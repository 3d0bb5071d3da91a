//! The bytes that messages of this process hold together, and their bound.
//!
//! There is one count. What keeps bytes beyond one step (a body that was received, a tree made of it, a copy of a message, a
//! cached answer) keeps a [`Held`] beside them, which gives them back when it is dropped. Small things are counted as
//! nothing: the bound on messages in flight bounds them too.
//!
//! A caller that can refuse asks [`try_hold`] before the bytes are there; one that cannot fail counts with [`hold`]. A caller that begins new work
//! looks at [`is_short`] before.

use crate::budget::Budget;
use crate::sync::{AtomicU64, AtomicUsize, Relaxed};
use bytes::Bytes;
use std::fmt;

static BUDGET: Budget =
    Budget { held: AtomicUsize::new(0), most: AtomicUsize::new(usize::MAX), refused: AtomicU64::new(0) };

/// What is smaller is not counted.
pub(crate) const SMALL: usize = 4096;

/// So many bytes are counted as held while this lives.
#[derive(Default)]
pub struct Held(usize);

/// What is to be held is more than what messages of this process may hold together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage;

impl fmt::Display for Shortage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "messages hold as much memory as they may ({} bytes)", BUDGET.most.load(Relaxed))
    }
}

/// Sets the bound in bytes. At first there is none.
pub fn set_most(bytes: usize) {
    BUDGET.most.store(bytes, Relaxed);
}

/// The bound in bytes.
pub fn most() -> usize {
    BUDGET.most.load(Relaxed)
}

/// How many bytes are held now.
pub fn held() -> usize {
    BUDGET.held.load(Relaxed)
}

/// How often something could not be held so far.
pub fn refused() -> u64 {
    BUDGET.refused.load(Relaxed)
}

/// Whether no more can be held.
#[inline]
pub fn is_short() -> bool {
    BUDGET.held.load(Relaxed) >= BUDGET.most.load(Relaxed)
}

/// Whether so much is held that nothing is to wait any longer than its client does: the rest is for messages on their way.
#[inline]
pub fn is_half() -> bool {
    BUDGET.held.load(Relaxed) >= BUDGET.most.load(Relaxed) / 2
}

/// Whether so much is held that no new work should begin: what is under way needs the rest to end.
#[inline]
pub fn is_scarce() -> bool {
    let most = BUDGET.most.load(Relaxed);
    BUDGET.held.load(Relaxed) >= most - most / 4
}

/// Counts bytes that are held, whether they may be or not.
#[inline]
pub fn hold(bytes: usize) -> Held {
    if bytes < SMALL {
        return Held(0);
    }
    BUDGET.take(bytes);
    Held(bytes)
}

/// Counts bytes that are to be held.
///
/// # Errors
/// There are too many already.
#[inline]
pub fn try_hold(bytes: usize) -> Result<Held, Shortage> {
    let mut held = Held(0);
    held.try_grow(bytes)?;
    Ok(held)
}

impl Held {
    /// Nothing.
    pub const NONE: Held = Held(0);

    /// Counts so many bytes instead of those so far, if they are more.
    ///
    /// # Errors
    /// There are too many already; what was counted stays counted.
    pub fn try_grow(&mut self, bytes: usize) -> Result<(), Shortage> {
        if bytes < SMALL || bytes <= self.0 {
            return Ok(());
        }
        let more = bytes - self.0;
        if !BUDGET.try_take(more) {
            return Err(Shortage);
        }
        self.0 = bytes;
        Ok(())
    }

    /// Counts more bytes and fewer others, whether they may be held or not. Where less is counted than goes, nothing is left.
    pub(crate) fn exchange(&mut self, more: usize, fewer: usize) {
        let bytes = (self.0 + more).saturating_sub(fewer);
        match bytes.checked_sub(self.0) {
            Some(grown) => BUDGET.take(grown),
            None => BUDGET.give_back(self.0 - bytes),
        }
        self.0 = bytes;
    }

    /// How many bytes it counts.
    pub fn bytes(&self) -> usize {
        self.0
    }
}

/// Bytes that count themselves as held, for as long as there is a slice of them.
pub fn counted(bytes: impl AsRef<[u8]> + Into<Bytes> + Send + 'static, held: Held) -> Bytes {
    struct Counted<B>(B, #[expect(dead_code, reason = "dropped with the bytes")] Held);
    impl<B: AsRef<[u8]>> AsRef<[u8]> for Counted<B> {
        fn as_ref(&self) -> &[u8] {
            self.0.as_ref()
        }
    }
    match held.bytes() {
        0 => bytes.into(),
        _ => Bytes::from_owner(Counted(bytes, held)),
    }
}

/// What is copied is held twice.
impl Clone for Held {
    fn clone(&self) -> Held {
        hold(self.0)
    }
}

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        if self.0 > 0 {
            BUDGET.give_back(self.0);
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Held({})", self.0)
    }
}
