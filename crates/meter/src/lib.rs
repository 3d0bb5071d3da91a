//! What a run that computes may take: work counted in units, a deadline, a way to be told to stop.
//!
//! An engine (XPath, XSLT, JSONPath, templates, schemas) calls [`spend`] wherever it could go on for long, with a number
//! that grows with the work: one unit is some tens of nanoseconds. Who runs the engine says what it may take:
//!
//! * [`inline`]: a fixed number of units. It costs no look at the clock, so it is what a worker gives each step; a run that
//!   has used it up is broken off and begun anew where it disturbs nobody.
//! * [`within`]: a time, and a flag by which others can end the run.
//! * nothing: the run has no bounds.
//!
//! What is left is kept per thread, so that no engine has to hand it along. A run that goes on in another thread takes its
//! bounds with it ([`carry`]).

pub mod memory;
pub mod regex;
pub mod stack;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Why a run has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It has used the units that it was given inline.
    Long,
    /// It is long work this time, for a reason that the size of its message does not tell.
    Elsewhere,
    /// It has run longer than this.
    Late(Duration),
    /// Nobody waits for it any more.
    Cancelled,
    /// The process has nearly all the memory that it may have.
    Full,
}

impl fmt::Display for Stop {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Long | Stop::Elsewhere => out.write_str("the step takes too long for a worker"),
            Stop::Late(time) if time.as_millis() < 1000 => {
                write!(out, "it ran longer than {} ms (limits.script_time)", time.as_millis())
            }
            Stop::Late(time) => {
                write!(out, "it ran longer than {} s (limits.script_time)", time.as_secs_f64())
            }
            Stop::Full => out.write_str("there is no memory left for it"),
            Stop::Cancelled => out.write_str("nobody waits for the result any more"),
        }
    }
}

impl std::error::Error for Stop {}

/// A flag that ends a run; copies are the same flag.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Ends the run at its next look.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the run has to end.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Units between two looks at the clock and the flag: less than a millisecond of work.
const STRIDE: i64 = 8192;

/// So much is never used up.
const ENDLESS: i64 = i64::MAX;

#[derive(Clone, Copy)]
enum Bounds {
    None,
    Units,
    Time {
        time: Duration,
        /// So much of it was used before.
        before: Duration,
        /// The clock begins with the first look, so that short runs never read it.
        began: Option<Instant>,
        /// When it looked at the memory of the process, after the beginning.
        looked: Duration,
        /// There is a flag that ends it: [`CANCEL`].
        cancellable: bool,
    },
}

impl Bounds {
    /// A time of which so much was used before.
    fn time(time: Duration, before: Duration, cancellable: bool) -> Bounds {
        Bounds::Time { time, before, began: None, looked: Duration::ZERO, cancellable }
    }
}

/// The longest string that a computation may build, in bytes.
pub const MAX_STRING: usize = 256 << 20;

/// Checks how long a string becomes.
///
/// # Errors
/// It becomes longer than [`MAX_STRING`].
pub fn string_of(bytes: usize) -> Result<(), String> {
    match bytes > MAX_STRING {
        true => Err(format!("a string of more than {MAX_STRING} bytes would be made")),
        false => Ok(()),
    }
}

/// What a thread knows of its run. Each step of a message is one: beginning and ending it has to cost next to nothing, so all of this is
/// copied and nothing has to be dropped.
struct Current {
    bounds: Cell<Bounds>,
    /// Units handed out so far, those that are left of them included. Means nothing without bounds.
    given: Cell<u64>,
    /// Without bounds nothing is stopped.
    stopped: Cell<Option<Stop>>,
}

thread_local! {
    /// Units until the next look.
    static LEFT: Cell<i64> = const { Cell::new(ENDLESS) };
    static CURRENT: Current = const {
        Current { bounds: Cell::new(Bounds::None), given: Cell::new(0), stopped: Cell::new(None) }
    };
    /// The flag of the innermost run that has one.
    static CANCEL: RefCell<Option<Cancel>> = const { RefCell::new(None) };
}

/// Counts work. A run that was stopped is told so each time.
///
/// # Errors
/// The run has to end.
#[inline]
pub fn spend(units: u64) -> Result<(), Stop> {
    let left = LEFT.get() - units as i64;
    LEFT.set(left);
    if left < 0 { look() } else { Ok(()) }
}

/// Counts work on that many bytes: what copies or compares them is some ten times as fast as what takes a unit.
///
/// # Errors
/// As [`spend`].
#[inline]
pub fn spend_bytes(bytes: usize) -> Result<(), Stop> {
    spend((bytes as u64 >> 7) + 1)
}

#[cold]
#[inline(never)]
fn look() -> Result<(), Stop> {
    CURRENT.with(|current| {
        let mut bounds = current.bounds.get();
        let stop = match (current.stopped.get(), &mut bounds) {
            (Some(stop), _) => Some(stop),
            (None, Bounds::None) => None,
            (None, Bounds::Units) => Some(Stop::Long),
            (None, Bounds::Time { cancellable: true, .. }) if is_flagged() => Some(Stop::Cancelled),
            (None, Bounds::Time { time, before, began, looked, .. }) => {
                let now = Instant::now();
                let taken = now.duration_since(*began.get_or_insert(now));
                if taken + *before > *time {
                    Some(Stop::Late(*time))
                } else if taken.saturating_sub(*looked) > memory::PAUSE {
                    *looked = taken;
                    memory::is_full().then_some(Stop::Full)
                } else {
                    None
                }
            }
        };
        let left = match (stop, bounds) {
            (Some(_), _) => -1,
            (None, Bounds::None) => ENDLESS,
            (None, _) => {
                // What one call spent beyond is spent; what is left is handed out anew.
                let given = current.given.get().saturating_add(STRIDE as u64);
                current.given.set(given.saturating_add_signed(LEFT.get().saturating_neg()));
                STRIDE
            }
        };
        current.bounds.set(bounds);
        current.stopped.set(stop);
        LEFT.set(left);
        stop.map_or(Ok(()), Err)
    })
}

fn is_flagged() -> bool {
    CANCEL.with_borrow(|cancel| cancel.as_ref().is_some_and(Cancel::is_cancelled))
}

/// What a run used and how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// Units.
    pub units: u64,
    /// It had to end.
    pub stopped: Option<Stop>,
}

/// A run that goes on until this is dropped, for whoever would move what it works out once more by handing it through [`inline`] or
/// [`within`]. Runs that begin meanwhile have to end before it.
pub struct Run {
    before: Before,
    /// It is that of this thread.
    _here: PhantomData<*const ()>,
}

/// What was in force before a run.
enum Before {
    Nothing,
    Bounds { bounds: Bounds, left: i64, given: u64, stopped: Option<Stop> },
}

impl Run {
    /// A run with that many units.
    #[inline]
    pub fn inline(units: u32) -> Run {
        Run::begin(Bounds::Units, i64::from(units))
    }

    /// A run of that time at most.
    #[inline]
    pub fn within(time: Duration) -> Run {
        Run::begin(Bounds::time(time, Duration::ZERO, false), STRIDE)
    }

    #[inline]
    fn begin(bounds: Bounds, left: i64) -> Run {
        let before = CURRENT.with(|current| {
            let before = match current.bounds.get() {
                Bounds::None => Before::Nothing,
                bounds => Before::Bounds {
                    bounds,
                    left: LEFT.get(),
                    given: current.given.get(),
                    stopped: current.stopped.get(),
                },
            };
            current.bounds.set(bounds);
            current.given.set(left as u64);
            current.stopped.set(None);
            before
        });
        LEFT.set(left);
        Run { before, _here: PhantomData }
    }

    /// Why it had to end, where it had to.
    #[inline]
    pub fn stopped(&self) -> Option<Stop> {
        stopped()
    }

    /// Units that it has used.
    pub fn units(&self) -> u64 {
        let left = LEFT.get().max(0) as u64;
        CURRENT.with(|current| current.given.get().saturating_sub(left))
    }

    fn used(&self) -> Used {
        Used { units: self.units(), stopped: CURRENT.with(|current| current.stopped.get()) }
    }
}

/// What was in force before is again, also where the work panics.
impl Drop for Run {
    #[inline]
    fn drop(&mut self) {
        match self.before {
            Before::Nothing => {
                LEFT.set(ENDLESS);
                CURRENT.with(|current| {
                    current.bounds.set(Bounds::None);
                    current.stopped.set(None);
                });
            }
            Before::Bounds { bounds, left, given, stopped } => {
                LEFT.set(left);
                CURRENT.with(|current| {
                    current.bounds.set(bounds);
                    current.given.set(given);
                    current.stopped.set(stopped);
                });
            }
        }
    }
}

/// Runs `work` with that many units.
pub fn inline<T>(units: u32, work: impl FnOnce() -> T) -> (T, Used) {
    bounded(Bounds::Units, i64::from(units), work)
}

/// Runs `work` for that time at most, and until it is cancelled.
pub fn within<T>(time: Duration, cancel: Option<&Cancel>, work: impl FnOnce() -> T) -> (T, Used) {
    let mut used = Duration::ZERO;
    within_rest(time, &mut used, cancel, work)
}

/// As [`within`], for work that is done in several goes: `used` is the time that those before took, and this one is added. Goes
/// that are shorter than a look at the clock are not counted.
pub fn within_rest<T>(
    time: Duration,
    used: &mut Duration,
    cancel: Option<&Cancel>,
    work: impl FnOnce() -> T,
) -> (T, Used) {
    let bounds = Bounds::time(time, *used, cancel.is_some());
    let work = || {
        let result = work();
        if let Bounds::Time { began: Some(began), .. } = CURRENT.with(|current| current.bounds.get()) {
            *used += began.elapsed();
        }
        result
    };
    match cancel {
        None => bounded(bounds, STRIDE, work),
        Some(cancel) => flagged(cancel.clone(), || bounded(bounds, STRIDE, work)),
    }
}

/// Runs `work` with this flag in force.
fn flagged<T>(cancel: Cancel, work: impl FnOnce() -> T) -> T {
    /// Puts the flag of whoever runs this back, also where `work` panics.
    struct Before(Option<Cancel>);
    impl Drop for Before {
        fn drop(&mut self) {
            CANCEL.set(self.0.take());
        }
    }
    let _before = Before(CANCEL.replace(Some(cancel)));
    work()
}

/// Runs `work` without bounds, whatever bounds this thread has: what is prepared once, and is no part of what a message asks for.
pub fn unbounded<T>(work: impl FnOnce() -> T) -> T {
    bounded(Bounds::None, ENDLESS, work).0
}

fn bounded<T>(bounds: Bounds, left: i64, work: impl FnOnce() -> T) -> (T, Used) {
    let run = Run::begin(bounds, left);
    let result = work();
    let used = run.used();
    (result, used)
}

/// Whether the run has units only: what may take long, and cannot be broken off, is better left to a run that has time.
pub fn is_inline() -> bool {
    CURRENT.with(|current| matches!(current.bounds.get(), Bounds::Units))
}

/// Breaks a run off that has units only: all that it would do now is to be done elsewhere.
///
/// # Errors
/// It has units only.
pub fn not_inline() -> Result<(), Stop> {
    match is_inline() {
        true => {
            LEFT.set(-1);
            spend(1)
        }
        false => Ok(()),
    }
}

/// As [`not_inline`], where not the size of the message makes the work long, so that the next message of this size may be short work.
///
/// # Errors
/// It has units only.
pub fn elsewhere() -> Result<(), Stop> {
    if !is_inline() {
        return Ok(());
    }
    LEFT.set(-1);
    CURRENT.with(|current| current.stopped.set(Some(Stop::Elsewhere)));
    Err(Stop::Elsewhere)
}

/// Why the run had to end, where it had to.
#[inline]
pub fn stopped() -> Option<Stop> {
    // A run that was stopped has nothing left.
    if LEFT.get() >= 0 { None } else { CURRENT.with(|current| current.stopped.get()) }
}

/// A result, unless the run that made it was stopped meanwhile: for whoever takes what an engine could not finish for
/// something else (no match, nothing selected).
///
/// # Errors
/// The run has to end; the result means nothing.
#[inline]
pub fn finished<T>(result: T) -> Result<T, Stop> {
    stopped().map_or(Ok(result), Err)
}

/// Whether nobody waits for the result any more: for what sleeps, which is no work.
pub fn is_cancelled() -> bool {
    CURRENT.with(|current| matches!(current.bounds.get(), Bounds::Time { cancellable: true, .. }))
        && is_flagged()
}

/// Whether the run has to end, looked up now: for engines that count for themselves and ask from time to time.
///
/// # Errors
/// The run has to end.
pub fn check() -> Result<(), Stop> {
    if LEFT.get() < ENDLESS / 2 && !is_inline() {
        return look();
    }
    spend(1)
}

/// The bounds of the run of this thread, for a thread that goes on with it while this one waits.
pub struct Carried {
    bounds: Bounds,
    cancel: Option<Cancel>,
    left: i64,
    used: Arc<AtomicU64>,
    stopped: Arc<std::sync::Mutex<Option<Stop>>>,
}

/// Runs `work`, which goes on in another thread ([`Carried::enter`]) while this one waits for it.
pub fn carry<T>(work: impl FnOnce(Carried) -> T) -> T {
    let left = LEFT.get();
    let (bounds, cancel) = (CURRENT.with(|current| current.bounds.get()), CANCEL.with_borrow(Clone::clone));
    let (used, stopped) = (Arc::new(AtomicU64::new(0)), Arc::new(std::sync::Mutex::new(None)));
    let carried = Carried { bounds, cancel, left, used: Arc::clone(&used), stopped: Arc::clone(&stopped) };
    let result = work(carried);
    let used = used.load(Ordering::Relaxed);
    if left < ENDLESS / 2 {
        let stop = *stopped.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        CURRENT.with(|current| {
            current.stopped.set(current.stopped.get().or(stop));
            current.given.set(current.given.get() + used);
        });
        LEFT.set(if stop.is_some() { -1 } else { (left - used as i64).max(0) });
    }
    result
}

impl Carried {
    /// Runs `work` with the bounds that were carried here.
    pub fn enter<T>(self, work: impl FnOnce() -> T) -> T {
        let Carried { bounds, cancel, left, used: total, stopped } = self;
        let (result, used) = match cancel {
            None => bounded(bounds, left, work),
            Some(cancel) => flagged(cancel, || bounded(bounds, left, work)),
        };
        total.store(used.units, Ordering::Relaxed);
        *stopped.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = used.stopped;
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work without an end of its own.
    fn endless() -> Stop {
        loop {
            if let Err(stop) = spend(3) {
                return stop;
            }
        }
    }

    #[test]
    fn units_end_a_run_and_are_counted() {
        let (stop, used) = inline(1000, endless);
        assert_eq!((stop, used.stopped), (Stop::Long, Some(Stop::Long)));
        assert!((1000..1010).contains(&used.units), "{used:?}");
        let (result, used) = inline(1000, || spend(400));
        assert_eq!((result, used), (Ok(()), Used { units: 400, stopped: None }));
        // Behind a bounded run there are no bounds, and neither in a run that has none, which leaves those around it alone.
        assert_eq!(spend(1 << 40), Ok(()));
        let (results, used) = inline(10, || (endless(), unbounded(|| spend(1 << 40)), spend(0)));
        assert_eq!((results, used.stopped), ((Stop::Long, Ok(()), Err(Stop::Long)), Some(Stop::Long)));
    }

    #[test]
    fn time_and_a_flag_end_a_run() {
        let time = Duration::from_millis(2);
        assert_eq!(within(time, None, endless).0, Stop::Late(time));
        let cancel = Cancel::default();
        cancel.cancel();
        let long = Duration::from_secs(1000);
        assert_eq!(within(long, Some(&cancel), endless).0, Stop::Cancelled);
        assert_eq!(within(long, Some(&cancel), check).0, Err(Stop::Cancelled));
        // What was stopped stays so.
        within(time, None, || {
            assert_eq!(finished(1), Ok(1));
            let first = endless();
            assert_eq!((spend(0), check()), (Err(first), Err(first)));
            assert_eq!((stopped(), finished(1)), (Some(first), Err(first)));
        });
    }

    #[test]
    fn a_look_at_the_clock_is_no_work() {
        let (_, used) = within(Duration::from_secs(1000), None, || {
            for _ in 0..1000 {
                spend(3)?;
                check()?;
            }
            spend(2 * STRIDE as u64)
        });
        assert_eq!((used.units, used.stopped), (3000 + 2 * STRIDE as u64, None));
    }

    #[test]
    fn the_goes_of_one_run_share_its_time() {
        let (time, mut used) = (Duration::from_millis(20), Duration::ZERO);
        let go = |used: &mut Duration| {
            within_rest(time, used, None, || {
                let _ = spend(STRIDE as u64 + 1);
                std::thread::sleep(Duration::from_millis(8));
                spend(STRIDE as u64 + 1)
            })
            .0
        };
        let goes: Vec<_> = (0..4).map(|_| go(&mut used)).collect();
        assert!(goes[0].is_ok() && goes[3] == Err(Stop::Late(time)), "{goes:?}");
    }

    #[test]
    fn bounds_nest_and_survive_panics() {
        let (inner, outer) = inline(100, || {
            let caught =
                std::panic::catch_unwind(|| within(Duration::from_secs(1), None, || panic!("inside")));
            assert!(caught.is_err() && is_inline());
            inline(10, endless).0
        });
        assert_eq!((inner, outer.stopped), (Stop::Long, None));
    }

    #[test]
    fn a_run_ends_where_it_is_dropped() {
        let outer = Run::inline(100);
        {
            let inner = Run::within(Duration::ZERO);
            assert_eq!((is_inline(), inner.stopped()), (false, None));
            assert_eq!(
                (endless(), inner.stopped()),
                (Stop::Late(Duration::ZERO), Some(Stop::Late(Duration::ZERO)))
            );
        }
        assert!(is_inline() && outer.stopped().is_none());
        assert_eq!((spend(40), outer.units()), (Ok(()), 40));
        assert_eq!((endless(), outer.stopped()), (Stop::Long, Some(Stop::Long)));
        drop(outer);
        assert_eq!((stopped(), spend(1 << 40)), (None, Ok(())));
        // A flag counts for its own run only.
        let cancel = Cancel::default();
        cancel.cancel();
        let inner = within(Duration::MAX, Some(&cancel), || {
            let inner = Run::within(Duration::from_secs(1000));
            (check(), drop(inner), check())
        });
        assert_eq!(inner.0, (Ok(()), (), Err(Stop::Cancelled)));
    }

    #[test]
    fn a_run_goes_on_in_another_thread() {
        let (stop, used) = inline(1000, || {
            carry(|carried| std::thread::scope(|scope| scope.spawn(|| carried.enter(endless)).join().ok()))
        });
        assert_eq!((stop, used.stopped), (Some(Stop::Long), Some(Stop::Long)));
        let (left, used) = inline(1000, || {
            carry(|carried| {
                std::thread::scope(|scope| scope.spawn(|| carried.enter(|| spend(600))).join().ok())
            });
            (spend(300), spend(300))
        });
        assert_eq!((left, used.stopped), ((Ok(()), Err(Stop::Long)), Some(Stop::Long)));
    }

    #[test]
    fn what_cannot_be_broken_off_is_not_begun_inline() {
        assert_eq!(not_inline(), Ok(()));
        let (result, used) = inline(1000, not_inline);
        assert_eq!((result, used.stopped), (Err(Stop::Long), Some(Stop::Long)));
        assert_eq!(within(Duration::from_secs(1), None, not_inline).0, Ok(()));
        assert_eq!(elsewhere(), Ok(()));
        let (result, used) = inline(1000, || (elsewhere(), spend(1)));
        let stopped = Err(Stop::Elsewhere);
        assert_eq!((result, used.stopped), ((stopped, stopped), Some(Stop::Elsewhere)));
        assert_eq!(within(Duration::from_secs(1), None, elsewhere).0, Ok(()));
    }
}
