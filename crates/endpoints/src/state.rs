//! The state machine of a leaf endpoint: active, timeout, suspended, off.
//!
//! Exactly that of Synapse: an error that marks goes to TIMEOUT until its retries are used up, an error that suspends
//! to SUSPENDED for a duration that grows with every suspension until one success; an expired suspension lets all
//! traffic through. One thing is added, because many attempts are under way at a time: an attempt that began before the
//! last suspension says nothing new when it fails, so one breakdown of a backend is one suspension.
//!
//! Active checks ([`Checks`]) are the other addition: while they fail, the endpoint is suspended without an end, and when they succeed,
//! neither a suspension nor a timeout lasts.
//!
//! The state ([`Cell`]) belongs to the endpoint's identity and survives reloads; the [`Policy`] is the plan's.

use crate::cell::{Cell, Now, Phase};
use crate::health::{Checks, Settings, Verdict};
use config::endpoint::Definition;
use flow::endpoint::{Cause, Standing};
use flow::health::{Change, Health};
use flow::{Cap, Identity, States, Suspension};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

/// Suspension when none is configured, in milliseconds.
const DEFAULT_SUSPENSION: i64 = 30_000;
/// The longest one, ten years: no clock overflows.
const LONGEST: u64 = 10 * 365 * 86_400_000;
/// Codes that mark for suspension when none are configured: timed out, closed.
const MARKING: [i64; 2] = [101_504, 101_505];

/// When an endpoint is suspended, and for how long. Times are milliseconds, as the engines calculate with them.
#[derive(Clone, Debug)]
pub struct Policy {
    /// `markForSuspension/errorCodes`; empty: the default ones.
    pub marking: Vec<i64>,
    /// `retriesBeforeSuspension`.
    pub retries: u32,
    /// `retryDelay`.
    pub retry_delay: Duration,
    /// `suspendOnFailure/errorCodes`; empty: all.
    pub suspending: Vec<i64>,
    /// `initialDuration`; negative: 30 s.
    pub initial: i64,
    /// `progressionFactor`; a product below zero: 30 s.
    pub factor: f32,
    /// `maximumDuration`; negative: 30 s, as anything above it.
    pub maximum: i64,
    /// How many failures suspend it whatever they are.
    pub cap: Cap,
    /// The same where it is written in a group.
    pub cap_of_members: Cap,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            marking: Vec::new(),
            retries: 0,
            retry_delay: Duration::ZERO,
            suspending: Vec::new(),
            initial: -1,
            factor: 1.0,
            maximum: i64::MAX,
            cap: Cap::default(),
            cap_of_members: Cap::default(),
        }
    }
}

impl Policy {
    /// The policy of a definition, with what the settings say for all endpoints.
    pub fn of(definition: &Definition, for_all: &Suspension) -> Policy {
        let mark = &definition.mark_for_suspension;
        let suspend = &definition.suspend_on_failure;
        Policy {
            marking: mark.error_codes.clone(),
            retries: mark.retries_before_suspension,
            retry_delay: mark.retry_delay,
            suspending: suspend.error_codes.clone(),
            initial: match for_all.initial {
                Some(initial) if for_all.overrides || suspend.initial_duration < 0 => initial,
                _ => suspend.initial_duration,
            },
            factor: match (suspend.progression_factor, for_all.factor) {
                (Some(factor), _) if !for_all.overrides => factor,
                (factor, for_all) => for_all.or(factor).unwrap_or(1.0),
            },
            maximum: suspend.maximum_duration,
            cap: for_all.cap,
            cap_of_members: for_all.cap_of_members,
        }
    }

    /// The suspension after one of `last` milliseconds; zero counts as none. As in the engines, the maximum is looked at
    /// before the sign, and a product that no number holds is the largest one, or zero if it is none.
    fn suspension(&self, last: i64) -> i64 {
        let next = if last == 0 { self.initial } else { (last as f32 * self.factor) as i64 };
        let next = next.min(self.maximum);
        if next < 0 { DEFAULT_SUSPENSION } else { next }
    }
}

/// Switched off by hand; what stays when the endpoint gets another address.
#[derive(Debug, Default)]
struct Switch(AtomicBool);

/// What changed the state last.
#[derive(Debug, Default)]
struct Last(Mutex<Option<Cause>>);

/// The state of one endpoint.
#[derive(Debug)]
pub struct State {
    policy: Policy,
    cell: Arc<Cell>,
    off: Arc<Switch>,
    last: Arc<Last>,
    checks: Option<Checks>,
    /// It is written in a group.
    member: AtomicBool,
}

impl State {
    /// The state of `identity` at an address. It is that of the plan before, if there was one; at another address
    /// nothing is known yet, but that the endpoint was switched off.
    pub fn of(identity: &Identity, address: &str, policy: Policy, states: &States) -> State {
        let off: Arc<Switch> = states.get(identity);
        let at = identity.part(address);
        let state = State {
            policy,
            cell: states.get(&at),
            off,
            last: states.get(&at),
            checks: None,
            member: AtomicBool::new(false),
        };
        if state.off.0.load(Acquire) && state.name() != "off" {
            state.switch(false);
        }
        state
    }

    /// The same with active checks.
    #[must_use]
    pub fn with_checks(
        self,
        checks: Option<Settings>,
        identity: &Identity,
        address: &str,
        states: &States,
    ) -> State {
        let checks = checks.map(|checks| checks.with(&identity.part(address), states));
        State { checks, ..self }
    }

    /// The active checks.
    pub fn checks(&self) -> Option<&Checks> {
        self.checks.as_ref()
    }

    fn is_down(&self) -> bool {
        self.checks.as_ref().is_some_and(Checks::is_down)
    }

    /// Whether a message may be sent at `at`, as far as messages have shown.
    fn is_ready(&self, at: Instant) -> bool {
        let now = self.cell.now();
        match now.phase {
            Phase::Active => true,
            Phase::Off => false,
            Phase::Timeout | Phase::Suspended => now.retry_at.is_none_or(|retry_at| at >= retry_at),
        }
    }

    /// Whether a message may be sent now. An active endpoint is asked without looking at the clock.
    pub fn is_ready_now(&self) -> bool {
        !self.is_down() && (self.cell.is_active() || self.is_ready(transport::clock::now()))
    }

    /// How long it is until a message may be sent; `None`: nothing is in its way, or that is not known.
    pub fn ready_in(&self) -> Option<Duration> {
        if self.is_down() {
            return None;
        }
        let now = self.cell.now();
        match now.phase {
            Phase::Active | Phase::Off => None,
            Phase::Timeout | Phase::Suspended => {
                Some(now.retry_at?.saturating_duration_since(transport::clock::now()))
            }
        }
    }

    /// The number of suspensions so far; an attempt takes it down when it begins.
    pub fn episode(&self) -> u64 {
        self.cell.episode()
    }

    /// The number of suspensions and of failures that marked it so far; a check takes it down when it begins.
    pub fn setbacks(&self) -> u64 {
        self.cell.setbacks()
    }

    /// For people and the admin address.
    pub fn name(&self) -> &'static str {
        match self.cell.now().phase {
            Phase::Off => "off",
            _ if self.is_down() => "suspended",
            Phase::Active => "active",
            Phase::Timeout => "timeout",
            Phase::Suspended => "suspended",
        }
    }

    /// An answer came.
    pub fn succeeded(&self) {
        self.cell.succeeded();
    }

    /// A check has ended that began when there were so many `setbacks`.
    pub fn checked(&self, outcome: Result<(), String>, setbacks: u64) -> Option<Change> {
        let checks = self.checks.as_ref()?;
        if self.cell.now().phase == Phase::Off {
            return None;
        }
        match checks.count(outcome, setbacks, self.cell.setbacks()) {
            Verdict::Open | Verdict::Down(None) => None,
            Verdict::Down(Some(why)) => {
                self.is_because(0, &why);
                Some(Change::Out(why))
            }
            Verdict::Up(was_down) => {
                let was_out = matches!(self.cell.now().phase, Phase::Suspended | Phase::Timeout);
                if was_out {
                    self.cell.succeeded();
                }
                (was_down || was_out).then_some(Change::Back)
            }
        }
    }

    /// How the checks went.
    pub fn health(&self) -> Option<Health> {
        self.checks.as_ref().map(Checks::health)
    }

    /// Until when it lets nothing through, and what changed its state last.
    pub fn standing(&self) -> Standing {
        let until = self
            .ready_in()
            .filter(|left| !left.is_zero())
            .and_then(|left| SystemTime::now().checked_add(left));
        Standing { until, cause: flow::lock(&self.last.0).clone() }
    }

    /// Suspends it by hand for as long as a failure would; what is off stays off.
    pub fn suspend(&self, at: Instant) {
        self.cell.failed(self.cell.episode(), |now| {
            self.suspends(now, at);
            self.is_because(0, &"suspended by hand");
        });
    }

    /// A group has it written in it.
    pub fn joins_group(&self) {
        self.member.store(true, Relaxed);
    }

    fn suspends(&self, now: &mut Now, at: Instant) {
        self.suspends_for(self.policy.suspension(now.last), now, at);
    }

    fn suspends_for(&self, duration: i64, now: &mut Now, at: Instant) {
        now.last = duration;
        now.phase = Phase::Suspended;
        let pause = Duration::from_millis(now.last.unsigned_abs().min(LONGEST));
        now.retry_at = at.checked_add(pause);
    }

    fn is_because(&self, code: i32, why: &dyn fmt::Display) {
        let cause = Cause { code, why: why.to_string(), when: SystemTime::now() };
        *flow::lock(&self.last.0) = Some(cause);
    }

    /// An error came at `at`, of an attempt that began in `episode`.
    pub fn failed(&self, code: i32, why: &dyn fmt::Display, episode: u64, at: Instant) {
        let number = code;
        let code = i64::from(code);
        let policy = &self.policy;
        let is_member = self.member.load(Relaxed);
        let cap = if is_member { policy.cap_of_members } else { policy.cap };
        if let Some(most) = cap.most
            && self.cell.counts(episode, most, is_member)
        {
            self.cell.failed(episode, |now| {
                self.suspends_for(cap.suspension.max(0), now, at);
                self.is_because(number, why);
            });
            return;
        }
        let marks =
            if policy.marking.is_empty() { MARKING.contains(&code) } else { policy.marking.contains(&code) };
        let suspends = policy.suspending.is_empty() || policy.suspending.contains(&code);
        if !marks && !suspends {
            return;
        }
        self.cell.failed(episode, |now| {
            if marks && now.retries < policy.retries {
                now.retries += 1;
                now.phase = Phase::Timeout;
                now.retry_at = at.checked_add(policy.retry_delay.min(Duration::from_millis(LONGEST)));
            } else {
                self.suspends(now, at);
            }
            self.is_because(number, why);
        });
    }

    /// Switches the endpoint off or on by hand. What was under way then says nothing when it fails.
    pub fn switch(&self, on: bool) {
        self.cell.switch(on, || self.off.0.store(!on, Relaxed));
        self.checks.iter().for_each(Checks::reset);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::ArtifactKind;

    fn milliseconds(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn identity() -> Identity {
        Identity::of(ArtifactKind::Endpoint, "E")
    }

    fn state(policy: Policy) -> State {
        State::of(&identity(), "http://h", policy, &States::default())
    }

    /// A failure of an attempt that begins now.
    fn fails(state: &State, code: i32, at: Instant) {
        state.failed(code, &"as planned", state.episode(), at);
    }

    #[test]
    fn a_refused_connection_suspends_and_the_suspension_grows_to_its_maximum() {
        let policy = Policy { initial: 1000, factor: 2.0, maximum: 3000, ..Policy::default() };
        let state = state(policy);
        let mut at = Instant::now();
        for expected in [1000, 2000, 3000, 3000] {
            fails(&state, 101_503, at);
            assert_eq!(state.name(), "suspended");
            assert!(!state.is_ready(at + milliseconds(expected - 1)), "{expected}");
            at += milliseconds(expected);
            assert!(state.is_ready(at));
        }
        state.succeeded();
        fails(&state, 101_503, at);
        assert!(state.is_ready(at + milliseconds(1000)), "one success starts over");
    }

    /// As many failures as are allowed are treated by their codes; the next one suspends, also by a code that does nothing else.
    #[test]
    fn failures_beyond_the_cap_suspend_whatever_they_are() {
        let cap = Cap { most: Some(2), suspension: 700 };
        let policy = Policy { marking: vec![1], suspending: vec![2], cap, ..Policy::default() };
        let capped = state(policy.clone());
        let at = Instant::now();
        for expected in ["active", "active", "suspended"] {
            fails(&capped, 500_000, at);
            assert_eq!(capped.name(), expected);
        }
        assert!(!capped.is_ready(at + milliseconds(699)) && capped.is_ready(at + milliseconds(700)));
        // Every failure until the next success suspends for as long.
        fails(&capped, 500_000, at);
        assert_eq!(capped.name(), "suspended");
        capped.succeeded();
        fails(&capped, 500_000, at);
        assert_eq!(capped.name(), "active", "the count begins anew");
        // A member of a group has a cap of its own, and begins to count anew with the suspension.
        let cap_of_members = Cap { most: Some(1), suspension: 50 };
        let member = state(Policy { cap_of_members, ..policy });
        member.joins_group();
        fails(&member, 500_000, at);
        assert_eq!(member.name(), "active");
        fails(&member, 500_000, at);
        assert!(!member.is_ready(at + milliseconds(49)) && member.is_ready(at + milliseconds(50)));
        let before = member.episode();
        fails(&member, 500_000, at);
        assert_eq!(member.episode(), before, "counted, not suspended");
    }

    /// Each row: what the endpoint says, what is said for all, and the initial suspension and factor that count.
    #[test]
    fn what_is_said_for_all_endpoints_counts_where_one_says_nothing_or_always() {
        let all =
            |initial, factor, overrides| Suspension { initial, factor, overrides, ..Suspension::default() };
        for (written, all, expected) in [
            ((-1, None), all(None, None, true), (-1, 1.0)),
            ((-1, None), all(Some(500), Some(2.0), false), (500, 2.0)),
            ((1000, Some(1.0)), all(Some(500), Some(2.0), false), (1000, 1.0)),
            ((1000, Some(3.0)), all(Some(500), Some(2.0), true), (500, 2.0)),
            ((1000, Some(3.0)), all(None, None, true), (1000, 3.0)),
        ] {
            let mut definition = Definition::default();
            let suspend = &mut definition.suspend_on_failure;
            (suspend.initial_duration, suspend.progression_factor) = written;
            let policy = Policy::of(&definition, &all);
            assert_eq!((policy.initial, policy.factor), expected, "{written:?} {all:?}");
        }
    }

    /// Each row: initial, factor, maximum, and the suspensions that follow each other (milliseconds).
    #[test]
    fn suspensions_are_calculated_as_the_engines_do() {
        const NONE: i64 = i64::MAX;
        for (initial, factor, maximum, expected) in [
            (-1, 1.0, NONE, [30_000, 30_000, 30_000]),
            (1000, -1.0, NONE, [1000, 30_000, 30_000]),
            (1000, 0.0, NONE, [1000, 0, 1000]),
            (0, 2.0, NONE, [0, 0, 0]),
            (1000, f32::NAN, NONE, [1000, 0, 1000]),
            (1000, f32::INFINITY, NONE, [1000, i64::MAX, i64::MAX]),
            (1000, f32::NEG_INFINITY, NONE, [1000, 30_000, 30_000]),
            (1000, 1e30, 60_000, [1000, 60_000, 60_000]),
            (i64::MAX, f32::MAX, NONE, [i64::MAX, i64::MAX, i64::MAX]),
            (1000, 2.0, 0, [0, 0, 0]),
            (1000, 2.0, -1, [30_000, 30_000, 30_000]),
            (-5, 2.0, 10_000, [30_000, 10_000, 10_000]),
        ] {
            let policy = Policy { initial, factor, maximum, ..Policy::default() };
            let mut last = 0;
            for expected in expected {
                last = policy.suspension(last);
                assert_eq!(last, expected, "{policy:?}");
            }
            // Nor does the clock overflow.
            let state = state(policy);
            (0..100).for_each(|_| fails(&state, 101_503, Instant::now()));
            state.is_ready_now();
        }
    }

    /// 90 failures of messages that were under way together were 90 suspensions, each longer than the last.
    #[test]
    fn what_fails_together_suspends_once() {
        let policy = Policy { initial: 1000, factor: 2.0, ..Policy::default() };
        let state = state(policy);
        let at = Instant::now();
        let begun = state.episode();
        std::thread::scope(|scope| {
            for _ in 0..90 {
                scope.spawn(|| state.failed(101_503, &"as planned", begun, at));
            }
        });
        assert!(!state.is_ready(at + milliseconds(999)) && state.is_ready(at + milliseconds(1000)));
        // The next message finds the backend alive; one of the 90 is late.
        state.succeeded();
        state.failed(101_503, &"as planned", begun, at);
        assert_eq!(state.name(), "active");
        fails(&state, 101_503, at);
        assert!(state.is_ready(at + milliseconds(1000)), "a new episode begins with the first duration");
    }

    #[test]
    fn timeouts_are_retried_before_they_suspend() {
        let policy = Policy {
            retries: 2,
            retry_delay: milliseconds(10),
            initial: 500,
            factor: 1.0,
            ..Policy::default()
        };
        let state = state(policy);
        let at = Instant::now();
        for _ in 0..2 {
            fails(&state, 101_504, at);
            assert_eq!(state.name(), "timeout");
            assert!(!state.is_ready(at + milliseconds(9)) && state.is_ready(at + milliseconds(10)));
        }
        fails(&state, 101_504, at);
        assert_eq!(state.name(), "suspended");
        state.succeeded();
        fails(&state, 101_504, at);
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
            let policy =
                Policy { marking: marking.clone(), suspending: suspending.clone(), ..Policy::default() };
            let state = state(policy);
            fails(&state, code, at);
            assert_eq!(state.name(), expected, "{marking:?} {suspending:?} {code}");
        }
        let state = state(Policy::default());
        fails(&state, 101_503, at);
        assert!(!state.is_ready(at + milliseconds(29_999)) && state.is_ready(at + milliseconds(30_000)));
        state.switch(false);
        state.succeeded();
        assert_eq!((state.name(), state.is_ready(at)), ("off", false));
        let begun = state.episode();
        state.switch(true);
        state.failed(101_503, &"as planned", begun, at);
        assert_eq!(state.name(), "active", "what was under way says nothing");
    }

    #[test]
    fn a_reload_finds_the_state_but_not_for_another_address() {
        let (states, at) = (States::default(), Instant::now());
        let of = |address: &str| State::of(&identity(), address, Policy::default(), &states);
        let before = of("http://a");
        fails(&before, 101_503, at);
        let after = of("http://a");
        drop(before);
        assert_eq!((after.name(), of("http://b").name()), ("suspended", "active"));
        after.switch(false);
        assert_eq!((of("http://a").name(), of("http://b").name()), ("off", "off"));
        let moved = of("http://b");
        drop(after);
        moved.switch(true);
        assert_eq!((of("http://a").name(), of("http://b").name()), ("active", "active"));
    }

    /// What messages have found out ends when a check succeeds that began later, be it a suspension or a timeout before one.
    #[test]
    fn a_good_check_ends_what_messages_have_found() {
        let policy = Policy { retries: 1, retry_delay: milliseconds(600_000), ..Policy::default() };
        let (states, identity) = (States::default(), identity());
        let state = State::of(&identity, "http://h", policy, &states);
        let state =
            state.with_checks(Some(crate::health::tests::settings(2, 1)), &identity, "http://h", &states);
        for expected in ["timeout", "suspended"] {
            let before = state.setbacks();
            assert_eq!(state.checked(Ok(()), before), None);
            if expected == "suspended" {
                fails(&state, 101_504, Instant::now());
            }
            fails(&state, 101_504, Instant::now());
            assert_eq!(state.name(), expected);
            assert!(!state.is_ready_now() && state.standing().until.is_some(), "{expected}");
            assert_eq!(state.checked(Ok(()), before), None, "it began before the failure");
            assert_eq!(state.name(), expected);
            assert_eq!(state.checked(Ok(()), state.setbacks()), Some(Change::Back));
            assert_eq!((state.name(), state.is_ready_now()), ("active", true), "{expected}");
        }
    }

    #[test]
    fn it_is_known_until_when_and_why_nothing_passes() {
        let state = state(Policy { initial: 60_000, ..Policy::default() });
        assert!(state.standing().until.is_none() && state.standing().cause.is_none());
        state.failed(101_503, &"connection refused", state.episode(), Instant::now());
        let left = state.standing().until.unwrap().duration_since(SystemTime::now()).unwrap();
        assert!(left > milliseconds(50_000) && left <= milliseconds(60_000), "{left:?}");
        let cause = state.standing().cause.unwrap();
        assert_eq!((cause.code, cause.why.as_str()), (101_503, "connection refused"));
        state.succeeded();
        assert!(
            state.standing().until.is_none() && state.standing().cause.is_some(),
            "it is told afterwards, too"
        );
        state.suspend(Instant::now());
        assert_eq!((state.name(), state.standing().cause.unwrap().code), ("suspended", 0));
        state.switch(true);
        assert_eq!(state.name(), "active");
        state.switch(false);
        state.suspend(Instant::now());
        assert_eq!((state.name(), state.standing().until), ("off", None));
    }
}
