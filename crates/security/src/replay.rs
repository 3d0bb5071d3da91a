//! Values that were seen and must not come again: signature values and nonces, by their SHA-256.

use crate::algorithm::Digest;
use authentication::seen::Seen;
use jiff::Timestamp;
use std::sync::{Mutex, PoisonError};

/// Most values that are kept of senders that have authenticated, and as many of others. Where more come within their time, messages are refused:
/// one that is forgotten could be replayed. Who has not authenticated takes no room from those who have.
const MOST: usize = if cfg!(test) { 1 << 8 } else { 1 << 20 };

/// Values that must not come again before their time is over. One for the process, whatever is reloaded.
#[derive(Debug, Default)]
pub struct Replays(Mutex<[Seen; 2]>);

/// The values to remember of a message, once all else is in order.
#[derive(Debug, Default)]
pub struct Marks {
    digests: Vec<([u8; 32], i64)>,
    /// The sender has authenticated.
    is_authenticated: bool,
}

impl Marks {
    /// The sender has authenticated, by a certificate or a password.
    pub fn of_somebody(&mut self) {
        self.is_authenticated = true;
    }

    /// A value of a kind, and until when it must not come again.
    pub fn add(&mut self, kind: &str, value: &[u8], until: Timestamp) {
        let mut kind_and_value = kind.as_bytes().to_vec();
        kind_and_value.push(0);
        kind_and_value.extend_from_slice(value);
        let mut digest = [0; 32];
        digest.copy_from_slice(Digest::Sha256.hash(&kind_and_value).as_ref());
        self.digests.push((digest, until.as_second()));
    }
}

impl Replays {
    /// Remembers the values of a message; all of them, or none where one was seen before.
    ///
    /// # Errors
    /// One was seen before, or there is no room for more.
    pub fn take(&self, marks: &Marks, now: Timestamp) -> Result<(), &'static str> {
        let mut both = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = now.as_second();
        both.iter_mut().for_each(|seen| seen.forget(now));
        // Looked for in both: another service may take the message for that of a sender of the other kind.
        let is_seen = |digest: &[u8; 32]| both.iter().any(|seen| seen.contains(digest));
        if marks.digests.iter().any(|(digest, _)| is_seen(digest)) {
            return Err("the message was here before");
        }
        let seen = &mut both[usize::from(marks.is_authenticated)];
        if seen.count() + marks.digests.len() > MOST {
            return Err("there are too many messages to remember");
        }
        for (digest, until) in &marks.digests {
            seen.add(*digest, *until);
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
        // No value of a message that is refused is remembered.
        assert!(replays.take(&marks(&["b", "a"], 100), at(2)).is_err());
        assert!(replays.take(&marks(&["b"], 50), at(3)).is_ok());
        assert!(replays.take(&marks(&["a"], 200), at(100)).is_err());
        assert!(replays.take(&marks(&["a", "b"], 200), at(101)).is_ok());
        assert_eq!(replays.0.lock().unwrap()[0].count(), 2);
    }

    #[test]
    fn who_shows_nothing_takes_no_room_from_others() {
        let replays = Replays::default();
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let mark = |value: u32, is_authenticated: bool| {
            let mut marks = Marks::default();
            marks.add("key", &value.to_be_bytes(), at(100));
            if is_authenticated {
                marks.of_somebody();
            }
            marks
        };
        let most = u32::try_from(MOST).unwrap();
        for value in 0..most {
            assert!(replays.take(&mark(value, false), at(0)).is_ok());
        }
        assert_eq!(replays.take(&mark(most, false), at(0)), Err("there are too many messages to remember"));
        assert!(replays.take(&mark(most, true), at(0)).is_ok());
        // Whoever sends it again, and wherever.
        assert_eq!(replays.take(&mark(0, true), at(0)), Err("the message was here before"));
        assert_eq!(replays.take(&mark(most, false), at(0)), Err("the message was here before"));
        assert!(replays.take(&mark(most + 1, false), at(101)).is_ok());
    }
}
