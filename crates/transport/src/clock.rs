//! The clock as the tasks of connections see it, and whose turn it is on this thread.
//!
//! A turn is one poll of the task of a connection. Reading the clock costs as much as writing a head, and hardly any
//! time passes within a turn, so it is read once in it, and anew behind work that took its time.

use std::cell::Cell;
use std::task::Context;
use std::time::Instant;

use crate::timer::Alarm;

struct Turn {
    /// Address of the connection whose task is being polled; 0 outside of a turn.
    of: Cell<usize>,
    now: Cell<Option<Instant>>,
}

thread_local! {
    static TURN: Turn = const { Turn { of: Cell::new(0), now: Cell::new(None) } };
    /// The alarm of the task whose turn it is. Separate, because it is gone when the thread ends, and bodies may still be dropped then.
    static ALARM: Cell<Option<Box<Alarm>>> = const { Cell::new(None) };
}

/// The time: in the turn of a connection as it was when it was first asked for.
#[inline]
pub fn now() -> Instant {
    TURN.with(|turn| match turn.now.get() {
        Some(now) => now,
        None => {
            // The clock of the runtime, so that a paused one rules everything; otherwise that of the system.
            let now = tokio::time::Instant::now().into_std();
            if turn.of.get() != 0 {
                turn.now.set(Some(now));
            }
            now
        }
    })
}

/// For after long work: the next caller reads the clock again.
#[inline]
pub fn passed() {
    TURN.with(|turn| turn.now.set(None));
}

/// Polls the task of a connection, which has this alarm.
#[inline]
pub(crate) fn turn<C, T>(connection: &C, alarm: &mut Option<Box<Alarm>>, poll: impl FnOnce() -> T) -> T {
    /// Ends the turn, also if it panics.
    struct End<'a> {
        alarm: &'a mut Option<Box<Alarm>>,
        before: (usize, Option<Box<Alarm>>),
    }
    impl Drop for End<'_> {
        fn drop(&mut self) {
            TURN.with(|turn| {
                turn.of.set(self.before.0);
                turn.now.set(None);
            });
            *self.alarm = exchange(self.before.1.take());
        }
    }
    let before = TURN.with(|turn| {
        turn.now.set(None);
        turn.of.replace(std::ptr::from_ref(connection).addr())
    });
    let _end = End { before: (before, exchange(alarm.take())), alarm };
    poll()
}

/// Puts an alarm in force and returns the previous one.
#[inline]
fn exchange(alarm: Option<Box<Alarm>>) -> Option<Box<Alarm>> {
    ALARM.try_with(|slot| slot.replace(alarm)).ok().flatten()
}

/// Does something with the alarm of the task whose turn it is, if that is who is being polled.
#[inline]
pub(crate) fn alarm<T>(cx: &Context<'_>, work: impl FnOnce(&mut Alarm) -> T) -> Option<T> {
    let mut alarm = exchange(None)?;
    let done = alarm.wakes(cx).then(|| work(&mut alarm));
    exchange(Some(alarm));
    done
}

/// Whether this is called from within the turn of that connection.
#[inline]
pub(crate) fn is_turn_of<C>(connection: &C) -> bool {
    TURN.with(|turn| turn.of.get() == std::ptr::from_ref(connection).addr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stands_still_within_a_turn_until_it_has_passed() {
        let (a, b) = (0, 0);
        turn(&a, &mut None, || {
            let first = now();
            assert_eq!(now(), first);
            assert!(is_turn_of(&a) && !is_turn_of(&b));
            std::thread::sleep(std::time::Duration::from_millis(1));
            assert_eq!(now(), first);
            passed();
            assert_ne!(now(), first);
        });
        assert!(!is_turn_of(&a));
        let outside = now();
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert_ne!(now(), outside);
    }
}
