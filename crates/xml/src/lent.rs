//! Tokenizers that are reused for one document after another.

use crate::{Limits, Tokenizer};
use std::cell::Cell;
use std::ops::{Deref, DerefMut};

thread_local! {
    static AT_REST: Cell<Option<Box<Tokenizer>>> = const { Cell::new(None) };
}

/// A tokenizer on loan from its thread ([`Tokenizer::lent`]), returned on drop.
pub struct Lent(Option<Box<Tokenizer>>);

impl Tokenizer {
    /// Lends a tokenizer in its initial state. Making one costs more than running it over a small message, and a used
    /// one has the names of messages interned: each thread keeps one.
    pub fn lent(limits: &Limits) -> Lent {
        let mut tokenizer = AT_REST.try_with(Cell::take).ok().flatten().unwrap_or_default();
        tokenizer.set_limits(limits);
        Lent(Some(tokenizer))
    }
}

impl Deref for Lent {
    type Target = Tokenizer;

    fn deref(&self) -> &Tokenizer {
        self.0.as_ref().expect("it is taken only when this is dropped")
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Tokenizer {
        self.0.as_mut().expect("it is taken only when this is dropped")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(mut tokenizer) = self.0.take() {
            tokenizer.recycle();
            // A thread that is ending keeps nothing.
            let _ = AT_REST.try_with(|at_rest| at_rest.set(Some(tokenizer)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_borrower_begins_anew_with_its_own_limits() {
        let shallow = Limits { depth: 1, ..Limits::default() };
        for (limits, works) in [(Limits::default(), true), (shallow, false), (Limits::default(), true)] {
            let mut tokenizer = Tokenizer::lent(&limits);
            let mut other = Tokenizer::lent(&limits);
            for tokenizer in [&mut tokenizer, &mut other] {
                tokenizer.feed(b"<a><b/>");
                let mut read = || tokenizer.next().map(|event| event.is_some());
                assert_eq!(read(), Ok(true));
                assert_eq!(read().is_ok(), works);
            }
        }
    }
}
