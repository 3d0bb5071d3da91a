//! What was seen already and must not come again: signature values and nonces, by their SHA-256.

use crate::algorithm::Digest;
use jiff::Timestamp;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

/// Most values that are kept. Where there are more within their time, messages are refused: one that is forgotten could be replayed.
const MOST: usize = 1 << 20;

/// Values that must not come again before their time is over. One for the process, whatever is reloaded.
#[derive(Debug, Default)]
pub struct Replays(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    until: HashMap<[u8; 32], i64>,
    by_time: BTreeSet<(i64, [u8; 32])>,
}

/// What is to be remembered of a message, once all else is in order.
#[derive(Debug, Default)]
pub struct Marks(Vec<([u8; 32], i64)>);

impl Marks {
    /// A value of a kind, and until when it must not come again.
    pub fn add(&mut self, kind: &str, value: &[u8], until: Timestamp) {
        let mut all = kind.as_bytes().to_vec();
        all.push(0);
        all.extend_from_slice(value);
        let mut digest = [0; 32];
        digest.copy_from_slice(Digest::Sha256.hash(&all).as_ref());
        self.0.push((digest, until.as_second()));
    }
}

impl Replays {
    /// Remembers what is to be remembered of a message; all of it, or nothing where one was there already.
    ///
    /// # Errors
    /// One was seen before, or there is no room for more.
    pub fn take(&self, marks: &Marks, now: Timestamp) -> Result<(), &'static str> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = now.as_second();
        while let Some(&(until, digest)) = seen.by_time.first()
            && until < now
        {
            seen.by_time.pop_first();
            seen.until.remove(&digest);
        }
        if marks.0.iter().any(|(digest, _)| seen.until.contains_key(digest)) {
            return Err("the message was here before");
        }
        if seen.until.len() + marks.0.len() > MOST {
            return Err("there are too many messages to remember");
        }
        for (digest, until) in &marks.0 {
            seen.until.insert(*digest, *until);
            seen.by_time.insert((*until, *digest));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_refused_until_its_time_is_over() {
        let replays = Replays::default();
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let marks = |values: &[&str], until: i64| {
            let mut marks = Marks::default();
            values.iter().for_each(|value| marks.add("signature", value.as_bytes(), at(until)));
            marks
        };
        assert!(replays.take(&marks(&["a"], 100), at(0)).is_ok());
        assert!(replays.take(&marks(&["a"], 100), at(1)).is_err());
        // Nothing of a message is remembered that is refused.
        assert!(replays.take(&marks(&["b", "a"], 100), at(2)).is_err());
        assert!(replays.take(&marks(&["b"], 50), at(3)).is_ok());
        assert!(replays.take(&marks(&["a"], 200), at(100)).is_err());
        assert!(replays.take(&marks(&["a", "b"], 200), at(101)).is_ok());
        assert_eq!(replays.0.lock().unwrap().until.len(), 2);
    }
}
