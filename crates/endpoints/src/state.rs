//! The state machine of a leaf endpoint: active, timeout, suspended, off.
//!
//! Exactly that of Synapse: an error that marks goes to TIMEOUT until its retries are used up, an error that suspends
//! to SUSPENDED for a duration that grows with every suspension until one success; an expired suspension lets all
//! traffic through.

use config::endpoint::Definition;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};
use std::time::{Duration, Instant};

/// Suspension when none is configured.
const DEFAULT_SUSPENSION: Duration = Duration::from_millis(30_000);
/// Codes that mark for suspension when none are configured: timed out, closed.
const MARKING: [i64; 2] = [101_504, 101_505];

/// When an endpoint is suspended, and for how long.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// `markForSuspension/errorCodes`; empty: the default ones.
    pub marking: Vec<i64>,
    /// `retriesBeforeSuspension`.
    pub retries: u32,
    /// `retryDelay`.
    pub retry_delay: Duration,
    /// `suspendOnFailure/errorCodes`; empty: all.
    pub suspending: Vec<i64>,
    /// `initialDuration`; `None`: 30 s.
    pub initial: Option<Duration>,
    /// `progressionFactor`.
    pub factor: f32,
    /// `maximumDuration`.
    pub maximum: Option<Duration>,
}

impl Policy {
    /// The policy of a definition.
    pub fn of(definition: &Definition) -> Policy {
        let mark = &definition.mark_for_suspension;
        let suspend = &definition.suspend_on_failure;
        Policy {
            marking: mark.error_codes.clone(),
            retries: mark.retries_before_suspension,
            retry_delay: mark.retry_delay,
            suspending: suspend.error_codes.clone(),
            initial: suspend.initial_duration,
            factor: suspend.progression_factor,
            maximum: suspend.maximum_duration,
        }
    }
}

/// The state of one endpoint.
#[derive(Debug)]
pub struct State {
    policy: Policy,
    /// The phase is [`Phase::Active`], for those who need to know no more: every message, twice.
    active: AtomicBool,
    now: Mutex<Now>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Active,
    Timeout,
    Suspended,
    Off,
}

#[derive(Debug)]
struct Now {
    phase: Phase,
    remaining: u32,
    /// The last suspension since the endpoint was active; zero counts as none.
    last: Duration,
    retry_at: Option<Instant>,
}

impl State {
    /// An active endpoint.
    pub fn new(policy: Policy) -> State {
        let remaining = policy.retries;
        let now = Now { phase: Phase::Active, remaining, last: Duration::ZERO, retry_at: None };
        State { policy, active: AtomicBool::new(true), now: Mutex::new(now) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Now> {
        flow::lock(&self.now)
    }

    /// Whether a message may be sent at `at`.
    pub fn is_ready(&self, at: Instant) -> bool {
        let now = self.lock();
        match now.phase {
            Phase::Active => true,
            Phase::Off => false,
            Phase::Timeout | Phase::Suspended => now.retry_at.is_none_or(|retry_at| at >= retry_at),
        }
    }

    /// Whether a message may be sent now. An active endpoint is asked without looking at the clock.
    pub fn is_ready_now(&self) -> bool {
        self.active.load(Acquire) || self.is_ready(Instant::now())
    }

    /// For people and the admin address.
    pub fn name(&self) -> &'static str {
        match self.lock().phase {
            Phase::Active => "active",
            Phase::Timeout => "timeout",
            Phase::Suspended => "suspended",
            Phase::Off => "off",
        }
    }

    /// An answer came.
    pub fn succeeded(&self) {
        if self.active.load(Acquire) {
            return;
        }
        let mut now = self.lock();
        if !matches!(now.phase, Phase::Active | Phase::Off) {
            *now = Now {
                phase: Phase::Active,
                remaining: self.policy.retries,
                last: Duration::ZERO,
                retry_at: None,
            };
        }
        self.active.store(now.phase == Phase::Active, Release);
    }

    /// An error came at `at`.
    pub fn failed(&self, code: i32, at: Instant) {
        let code = i64::from(code);
        let policy = &self.policy;
        let marks =
            if policy.marking.is_empty() { MARKING.contains(&code) } else { policy.marking.contains(&code) };
        let suspends = policy.suspending.is_empty() || policy.suspending.contains(&code);
        let mut now = self.lock();
        if now.phase == Phase::Off {
            return;
        }
        if marks && now.remaining > 0 {
            now.remaining -= 1;
            now.phase = Phase::Timeout;
            now.retry_at = Some(at + policy.retry_delay);
        } else if marks || suspends {
            let next = if now.last.is_zero() {
                policy.initial
            } else {
                Some(now.last.mul_f32(policy.factor.max(0.0)))
            };
            let duration = match (next, policy.maximum) {
                (Some(next), Some(maximum)) if next > maximum => maximum,
                (Some(next), _) => next,
                (None, _) => DEFAULT_SUSPENSION,
            };
            now.last = duration;
            now.phase = Phase::Suspended;
            now.retry_at = Some(at + duration);
        }
        self.active.store(now.phase == Phase::Active, Release);
    }

    /// Switches the endpoint off or on by hand.
    pub fn switch(&self, on: bool) {
        let mut now = self.lock();
        now.phase = if on { Phase::Active } else { Phase::Off };
        now.retry_at = None;
        self.active.store(on, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn milliseconds(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn a_refused_connection_suspends_and_the_suspension_grows_to_its_maximum() {
        let policy = Policy {
            initial: Some(milliseconds(1000)),
            factor: 2.0,
            maximum: Some(milliseconds(3000)),
            ..Policy::default()
        };
        let state = State::new(policy);
        let mut at = Instant::now();
        for expected in [1000, 2000, 3000, 3000] {
            state.failed(101_503, at);
            assert_eq!(state.name(), "suspended");
            assert!(!state.is_ready(at + milliseconds(expected - 1)), "{expected}");
            at += milliseconds(expected);
            assert!(state.is_ready(at));
        }
        state.succeeded();
        state.failed(101_503, at);
        assert!(state.is_ready(at + milliseconds(1000)), "one success starts over");
    }

    #[test]
    fn timeouts_are_retried_before_they_suspend() {
        let policy = Policy {
            retries: 2,
            retry_delay: milliseconds(10),
            initial: Some(milliseconds(500)),
            factor: 1.0,
            ..Policy::default()
        };
        let state = State::new(policy);
        let at = Instant::now();
        for _ in 0..2 {
            state.failed(101_504, at);
            assert_eq!(state.name(), "timeout");
            assert!(!state.is_ready(at + milliseconds(9)) && state.is_ready(at + milliseconds(10)));
        }
        state.failed(101_504, at);
        assert_eq!(state.name(), "suspended");
        state.succeeded();
        state.failed(101_504, at);
        assert_eq!(state.name(), "timeout", "a success restores the retries");
    }

    #[test]
    fn codes_decide_what_marks_and_what_suspends() {
        let at = Instant::now();
        for (marking, suspending, code, expected) in [
            (vec![], vec![], 101_503, "suspended"),
            (vec![], vec![], 101_505, "suspended"), // no retries configured
            (vec![], vec![-1], 101_503, "active"),
            (vec![], vec![101_500], 101_503, "active"),
            (vec![101_503], vec![-1], 101_503, "suspended"),
            (vec![101_503], vec![-1], 101_504, "active"),
        ] {
            let state = State::new(Policy {
                marking: marking.clone(),
                suspending: suspending.clone(),
                ..Policy::default()
            });
            state.failed(code, at);
            assert_eq!(state.name(), expected, "{marking:?} {suspending:?} {code}");
        }
        let state = State::new(Policy::default());
        state.failed(101_503, at);
        assert!(!state.is_ready(at + milliseconds(29_999)) && state.is_ready(at + milliseconds(30_000)));
        state.switch(false);
        state.succeeded();
        assert_eq!((state.name(), state.is_ready(at)), ("off", false));
    }
}
