//! Follows a trigger while time passes.
//!
//! Intervals go by a clock that nobody sets, times of the calendar by the one on the wall. That one may jump: the machine slept,
//! or somebody set it. What was missed by that is made up for once, however much it was. A clock that is put back by less than
//! three hours repeats nothing; by more, it is taken as the new truth.

use crate::Cron;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use std::time::{Duration, Instant};

/// Whoever waits for a time of the calendar looks again after this time at the latest, since the clock may have been set.
pub const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// A clock that is put back by more than this is taken as the new truth.
const REPEATS: SignedDuration = SignedDuration::from_hours(3);

/// So many missed times are counted; beyond, there are just as many.
const MOST_COUNTED: u64 = 10_000;

/// When something runs.
#[derive(Clone, Debug)]
pub enum Trigger {
    /// At once, and then after each period.
    Every {
        /// The time between two runs.
        period: Duration,
        /// How often; `None`: for ever.
        count: Option<u64>,
    },
    /// At times of the calendar.
    Cron {
        /// The times.
        cron: Cron,
        /// Whose clock shows them.
        zone: TimeZone,
    },
}

/// A time by both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The one on the wall, which may be set.
    pub wall: Timestamp,
    /// The one that nobody sets.
    pub steady: Instant,
}

/// What is to be done at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Nothing, at most for so long; `None`: never again.
    Wait(Option<Duration>),
    /// Run. `missed`: so many runs that were due before did not happen.
    Run {
        /// See above.
        missed: u64,
    },
    /// It is due, and the run before has not ended: this one is passed over.
    PassOver {
        /// As for [`Turn::Run`].
        missed: u64,
    },
    /// The clock on the wall was put back by so much, and its new time counts. Ask again.
    PutBack(Duration),
}

/// How far a trigger has come.
#[derive(Clone, Debug)]
pub struct Schedule {
    trigger: Trigger,
    next: Next,
    runs: u64,
    seen: Moment,
}

#[derive(Clone, Copy, Debug)]
enum Next {
    Steady(Instant),
    Wall(Timestamp),
    Never,
}

impl Schedule {
    /// A trigger that begins now.
    pub fn new(trigger: Trigger, now: Moment) -> Schedule {
        let next = match &trigger {
            Trigger::Every { count: Some(0), .. } => Next::Never,
            Trigger::Every { .. } => Next::Steady(now.steady),
            Trigger::Cron { cron, zone } => cron.next(now.wall, zone).map_or(Next::Never, Next::Wall),
        };
        Schedule { trigger, next, runs: 0, seen: now }
    }

    /// What to do now. `busy`: the run before has not ended, and runs may not overlap.
    pub fn turn(&mut self, now: Moment, busy: bool) -> Turn {
        let before = std::mem::replace(&mut self.seen, now);
        let missed = match self.next {
            Next::Never => return Turn::Wait(None),
            Next::Steady(due) => match due.checked_duration_since(now.steady) {
                Some(wait) if !wait.is_zero() => return Turn::Wait(Some(wait)),
                _ => self.pass_steady(due, now.steady),
            },
            Next::Wall(due) => {
                if let Some(back) = put_back(before, now) {
                    self.next = self.after(now.wall);
                    return Turn::PutBack(back);
                }
                let wait = due.duration_since(now.wall);
                if wait.is_positive() {
                    return Turn::Wait(Some(wait.unsigned_abs().min(LONGEST_WAIT)));
                }
                self.pass_wall(due, now.wall)
            }
        };
        if busy {
            return Turn::PassOver { missed };
        }
        self.runs = self.runs.saturating_add(1);
        if let Trigger::Every { count: Some(count), .. } = self.trigger
            && self.runs >= count
        {
            self.next = Next::Never;
        }
        Turn::Run { missed }
    }

    /// It did not run for a while because somebody wanted it so: what was due meanwhile was not missed. What has never run yet
    /// is still due.
    pub fn resume(&mut self, now: Moment) {
        self.seen = now;
        match self.next {
            Next::Steady(due) if due < now.steady => match self.runs {
                0 => self.next = Next::Steady(now.steady),
                _ => _ = self.pass_steady(due, now.steady),
            },
            Next::Wall(due) if due <= now.wall => self.next = self.after(now.wall),
            _ => {}
        }
    }

    /// When it is due next, by the clock on the wall; `None`: never again.
    pub fn next(&self, now: Moment) -> Option<Timestamp> {
        match self.next {
            Next::Never => None,
            Next::Wall(due) => Some(due),
            Next::Steady(due) => {
                let wait = due.saturating_duration_since(now.steady);
                now.wall.checked_add(SignedDuration::try_from(wait).ok()?).ok()
            }
        }
    }

    /// How often it has run.
    pub fn runs(&self) -> u64 {
        self.runs
    }

    /// Its trigger.
    pub fn trigger(&self) -> &Trigger {
        &self.trigger
    }

    /// Goes on to the first time of the grid that is still to come; how many were there between.
    fn pass_steady(&mut self, due: Instant, now: Instant) -> u64 {
        let Trigger::Every { period, .. } = self.trigger else { return 0 };
        let nanos = period.as_nanos();
        if nanos == 0 {
            self.next = Next::Never;
            return 0;
        }
        let late = now.saturating_duration_since(due).as_nanos();
        let missed = late / nanos;
        // Below `late` and one period: what is too large for the clock never comes.
        let further = period.saturating_add(Duration::from_nanos_u128(missed.saturating_mul(nanos)));
        self.next = due.checked_add(further).map_or(Next::Never, Next::Steady);
        u64::try_from(missed).unwrap_or(u64::MAX)
    }

    fn pass_wall(&mut self, due: Timestamp, now: Timestamp) -> u64 {
        let Trigger::Cron { cron, zone } = &self.trigger else { return 0 };
        let (mut missed, mut at) = (0, due);
        let next = loop {
            match cron.next(at, zone) {
                None => break Next::Never,
                Some(next) if next > now => break Next::Wall(next),
                Some(_) if missed == MOST_COUNTED => break self.after(now),
                Some(next) => at = next,
            }
            missed += 1;
        };
        self.next = next;
        missed
    }

    fn after(&self, wall: Timestamp) -> Next {
        match &self.trigger {
            Trigger::Cron { cron, zone } => cron.next(wall, zone).map_or(Next::Never, Next::Wall),
            Trigger::Every { .. } => self.next,
        }
    }
}

/// The time from `began` until the first time of an expression after it, as the clocks show it `now`; `None`: never.
pub fn until(cron: &Cron, zone: &TimeZone, began: Moment, now: Moment) -> Option<Duration> {
    let passed = now.steady.saturating_duration_since(began.steady);
    let left = cron.next(began.wall, zone)?.duration_since(now.wall);
    Some(passed.saturating_add(if left.is_positive() { left.unsigned_abs() } else { Duration::ZERO }))
}

/// By how much the clock on the wall was put back between two moments, if that is more than what repeats nothing.
pub fn put_back(before: Moment, now: Moment) -> Option<Duration> {
    let passed = now.steady.saturating_duration_since(before.steady);
    let passed = SignedDuration::try_from(passed).ok()?;
    let back = passed.checked_sub(now.wall.duration_since(before.wall))?;
    (back > REPEATS).then(|| back.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Time that passes as told: both clocks, or the wall alone.
    struct Clocks(Moment);

    impl Clocks {
        fn at(wall: &str) -> Clocks {
            Clocks(Moment { wall: wall.parse().expect("an instant"), steady: Instant::now() })
        }

        fn pass(&mut self, seconds: i64) -> Moment {
            self.0.steady += Duration::from_secs(seconds.unsigned_abs());
            self.set(seconds)
        }

        /// The wall alone.
        fn set(&mut self, seconds: i64) -> Moment {
            self.0.wall = self.0.wall.checked_add(SignedDuration::from_secs(seconds)).expect("in range");
            self.0
        }
    }

    fn every(seconds: u64, count: Option<u64>) -> Trigger {
        Trigger::Every { period: Duration::from_secs(seconds), count }
    }

    fn cron(text: &str) -> Trigger {
        Trigger::Cron { cron: Cron::parse(text).expect(text), zone: TimeZone::UTC }
    }

    fn wait(seconds: u64) -> Turn {
        Turn::Wait(Some(Duration::from_secs(seconds)))
    }

    const RUN: Turn = Turn::Run { missed: 0 };
    const NEVER: Turn = Turn::Wait(None);

    #[test]
    fn intervals_begin_at_once_and_stay_on_their_grid() {
        let mut clocks = Clocks::at("2026-01-01T00:00:00Z");
        let mut schedule = Schedule::new(every(5, None), clocks.0);
        for (pass, busy, wanted) in [
            (0, false, RUN),
            (0, false, wait(5)),
            (3, false, wait(2)),
            (2, false, RUN),
            // Late: the grid stays.
            (6, false, RUN),
            (0, false, wait(4)),
            // Asleep for four periods: once, and the others were missed.
            (20, false, Turn::Run { missed: 3 }),
            (0, false, wait(4)),
            // Still running.
            (4, true, Turn::PassOver { missed: 0 }),
            (5, true, Turn::PassOver { missed: 0 }),
            (5, false, RUN),
        ] {
            let now = clocks.pass(pass);
            assert_eq!(schedule.turn(now, busy), wanted, "after {pass} s");
        }
        // Setting the wall clock does not affect it.
        let now = clocks.set(-86_400);
        assert_eq!(schedule.turn(now, false), wait(5));
    }

    #[test]
    fn counts_count_what_ran() {
        let mut clocks = Clocks::at("2026-01-01T00:00:00Z");
        let mut schedule = Schedule::new(every(1, Some(2)), clocks.0);
        assert_eq!(schedule.turn(clocks.0, false), RUN);
        assert_eq!(schedule.turn(clocks.pass(1), true), Turn::PassOver { missed: 0 });
        assert_eq!(schedule.turn(clocks.pass(5), false), Turn::Run { missed: 4 });
        assert_eq!(schedule.turn(clocks.pass(5), false), NEVER);
        assert_eq!((schedule.runs(), schedule.next(clocks.0)), (2, None));
        // Once, without a period.
        let mut schedule = Schedule::new(every(0, Some(1)), clocks.0);
        assert_eq!(schedule.turn(clocks.0, false), RUN);
        assert_eq!(schedule.turn(clocks.pass(1), false), NEVER);
        let mut schedule = Schedule::new(every(1, Some(0)), clocks.0);
        assert_eq!(schedule.turn(clocks.pass(1), false), NEVER);
    }

    #[test]
    fn no_period_is_too_long() {
        for seconds in [u64::MAX, u64::MAX / 1_000, 1 << 40] {
            let mut clocks = Clocks::at("2026-01-01T00:00:00Z");
            let mut schedule = Schedule::new(every(seconds, None), clocks.0);
            assert_eq!(schedule.turn(clocks.0, false), RUN);
            assert!(matches!(schedule.turn(clocks.pass(1), false), Turn::Wait(_)));
            let _ = schedule.next(clocks.0);
            schedule.resume(clocks.pass(1));
        }
    }

    #[test]
    fn times_of_the_calendar_go_by_the_wall() {
        let mut clocks = Clocks::at("2026-01-01T05:59:30Z");
        let mut schedule = Schedule::new(cron("0 0/5 6 * * ?"), clocks.0);
        assert_eq!(schedule.turn(clocks.0, false), wait(10), "it looks again: the clock may be set");
        assert_eq!(schedule.turn(clocks.pass(25), false), wait(5));
        assert_eq!(schedule.turn(clocks.pass(5), false), RUN);
        assert_eq!(schedule.turn(clocks.0, false), wait(10));
        // The machine slept, or the clock was put forward: once.
        assert_eq!(schedule.turn(clocks.set(12 * 60), false), Turn::Run { missed: 1 });
        assert_eq!(schedule.next(clocks.0).map(|at| at.to_string()), Some("2026-01-01T06:15:00Z".to_owned()));
        // Put back by less than three hours: nothing twice.
        assert_eq!(schedule.turn(clocks.set(-12 * 60), false), wait(10));
        assert_eq!(schedule.turn(clocks.pass(15 * 60 - 1), false), wait(1));
        assert_eq!(schedule.turn(clocks.pass(1), true), Turn::PassOver { missed: 0 });
        // By more: the new time counts.
        let back = Duration::from_secs(86_400);
        assert_eq!(schedule.turn(clocks.set(-86_400), false), Turn::PutBack(back));
        assert_eq!(schedule.next(clocks.0).map(|at| at.to_string()), Some("2025-12-31T06:20:00Z".to_owned()));
        assert_eq!(schedule.turn(clocks.0, false), wait(10));
        // A year at once.
        assert_eq!(schedule.turn(clocks.set(365 * 86_400), false), Turn::Run { missed: 4_379 });
        assert_eq!(schedule.turn(clocks.set(10 * 365 * 86_400), false), Turn::Run { missed: MOST_COUNTED });
    }

    #[test]
    fn an_expression_ends() {
        let mut clocks = Clocks::at("2026-01-01T05:59:30Z");
        let mut schedule = Schedule::new(cron("0 0 6 1 1 ? 2026"), clocks.0);
        assert_eq!(schedule.turn(clocks.pass(30), false), RUN);
        assert_eq!(schedule.turn(clocks.pass(30), false), NEVER);
        assert_eq!(Schedule::new(cron("0 0 6 30 2 ?"), clocks.0).turn(clocks.0, false), NEVER);
    }

    #[test]
    fn what_was_due_while_it_was_off_is_not_made_up_for() {
        let mut clocks = Clocks::at("2026-01-01T05:59:30Z");
        for (trigger, ran) in [(every(60, None), RUN), (cron("30 * * * * ?"), wait(10))] {
            let mut schedule = Schedule::new(trigger, clocks.0);
            assert_eq!(schedule.turn(clocks.0, false), ran);
            schedule.resume(clocks.pass(600 + 20));
            assert!(matches!(schedule.turn(clocks.0, false), Turn::Wait(Some(_))));
            assert_eq!(schedule.turn(clocks.pass(40), false), RUN);
        }
        let mut schedule = Schedule::new(every(60, Some(1)), clocks.0);
        schedule.resume(clocks.pass(600));
        assert_eq!(schedule.turn(clocks.0, false), RUN, "it has never run");
    }
}
