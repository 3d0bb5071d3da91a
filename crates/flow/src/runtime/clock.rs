//! The time by both clocks, for what is due at times of the calendar.

use jiff::{SignedDuration, Timestamp};
use schedule::Moment;
use std::sync::Mutex;
use std::time::Instant;

/// Where the time comes from: the system, or a test that lets it pass. The monotonic clock is always the one of the
/// runtime, so that a paused one rules everything.
#[derive(Debug, Default)]
pub struct Clock(Option<WallReading>);

/// The time on the wall at a moment of the other clock.
#[derive(Debug)]
struct WallReading(Mutex<(Timestamp, Instant)>);

impl Clock {
    /// It is `wall` now, and goes on by the clock of the runtime.
    pub fn told(wall: Timestamp) -> Clock {
        Clock(Some(WallReading(Mutex::new((wall, transport::clock::now())))))
    }

    /// Sets a clock that was [`told`](Clock::told) the time: forward, or back.
    pub fn set(&self, by: SignedDuration) {
        if let Some(WallReading(base)) = &self.0 {
            let mut base = crate::state::lock(base);
            base.0 = base.0.saturating_add(by).unwrap_or(base.0);
        }
    }

    /// The time.
    pub fn now(&self) -> Moment {
        let steady = transport::clock::now();
        let wall = match &self.0 {
            None => Timestamp::now(),
            Some(WallReading(base)) => {
                let (wall, begun) = *crate::state::lock(base);
                let passed = SignedDuration::try_from(steady.saturating_duration_since(begun));
                wall.saturating_add(passed.unwrap_or(SignedDuration::MAX)).unwrap_or(wall)
            }
        };
        Moment { wall, steady }
    }
}
