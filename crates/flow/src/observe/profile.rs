//! Where the processor time of flows goes: each step of a profiled service is timed by the clock of its thread, without what it waits.
//!
//! A step that waits is timed each time it goes on. What runs inside of a step (the lists of `foreach`) is taken off it, since those steps are timed themselves. What a
//! step does on a compute thread is not seen here. The clock costs some hundred nanoseconds; what a pair of readings takes with nothing between them is taken off.

use crate::runtime::context::Context;
use crate::runtime::plan::Planned;
use crate::runtime::services::Services;
use crate::state::lock;
use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex};

/// The most steps that are told apart; what comes behind is not counted.
const STEPS: usize = 10_000;

/// What was measured since the process began, or since it was forgotten.
#[derive(Default)]
pub struct Profile {
    requests: AtomicU64,
    steps: Mutex<HashMap<Key, Spent>>,
}

/// A step: its service, and list and position in its plan. One plan is known by its address: a later one may have it again, with other steps.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    service: String,
    plan: usize,
    list: u32,
    at: u32,
}

/// What a step has taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// The service whose messages ran it.
    pub service: String,
    /// The list that it stands in.
    pub list: String,
    /// Its element name.
    pub name: &'static str,
    /// `file:line:column`.
    pub place: String,
    /// How often it ran.
    pub runs: u64,
    /// Nanoseconds of processor time in all.
    pub nanoseconds: u64,
    /// Counts the steps in the order in which they ran first.
    pub order: usize,
}

impl Profile {
    /// That of the process.
    pub fn of(services: &Services) -> Arc<Profile> {
        services.kept.get()
    }

    /// Messages whose flow began.
    pub fn requests(&self) -> u64 {
        self.requests.load(Relaxed)
    }

    /// The steps, in the order in which they ran first.
    pub fn steps(&self) -> Vec<Spent> {
        let mut steps: Vec<Spent> = lock(&self.steps).values().cloned().collect();
        steps.sort_by_key(|spent| spent.order);
        steps
    }

    /// Begins anew.
    pub fn forget(&self) {
        lock(&self.steps).clear();
        self.requests.store(0, Relaxed);
    }

    pub(super) fn begins(&self) {
        self.requests.fetch_add(1, Relaxed);
    }
}

/// The time of a step that runs.
pub(super) struct Timing {
    profile: Arc<Profile>,
    key: Key,
    /// Nanoseconds until now, those that are going on not included.
    spent: AtomicU64,
    /// When it went on, and what steps inside of others had taken on this thread until then; the first is 0 where it waits.
    since: AtomicU64,
    inside: AtomicU64,
}

thread_local! {
    /// What timed steps have taken on this thread, each with what ran inside of it.
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

/// Nanoseconds of processor time of this thread.
fn now() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// What two readings take with nothing between them.
static EMPTY: LazyLock<u64> = LazyLock::new(|| {
    let pair = |_| {
        let began = now();
        now().saturating_sub(began)
    };
    (0..1000).map(pair).min().unwrap_or_default()
});

impl Timing {
    /// A step of the message begins.
    pub(super) fn begin(profile: Arc<Profile>, context: &Context) -> Option<Timing> {
        let frame = context.frames.last()?;
        let key = Key {
            service: context.owner_name().to_owned(),
            plan: Arc::as_ptr(&context.plan) as usize,
            list: frame.list.0,
            at: frame.next,
        };
        let (spent, since, inside) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        Some(Timing { profile, key, spent, since, inside })
    }

    pub(super) fn goes_on(&self) {
        self.inside.store(TAKEN.get(), Relaxed);
        self.since.store(now().max(1), Relaxed);
    }

    pub(super) fn waits(&self) {
        let since = self.since.swap(0, Relaxed);
        if since == 0 {
            return;
        }
        let whole = now().saturating_sub(since).saturating_sub(*EMPTY);
        let before = self.inside.load(Relaxed);
        let inside = TAKEN.get().saturating_sub(before);
        self.spent.fetch_add(whole.saturating_sub(inside), Relaxed);
        TAKEN.set(before.saturating_add(whole.max(inside)));
    }

    /// It has run.
    pub(super) fn ends(&self, context: &Context, planned: &Planned) {
        self.waits();
        let mut steps = lock(&self.profile.steps);
        let order = steps.len();
        if !steps.contains_key(&self.key) {
            if order >= STEPS {
                return;
            }
            let list = context.plan.list(crate::runtime::mediator::ListId(self.key.list)).label.clone();
            let place = context.plan.place(planned.span);
            let service = self.key.service.clone();
            steps.insert(
                self.key.clone(),
                Spent { service, list, name: planned.name, place, order, ..Spent::default() },
            );
        }
        if let Some(spent) = steps.get_mut(&self.key) {
            spent.runs += 1;
            spent.nanoseconds += self.spent.load(Relaxed);
        }
    }
}

/// A future of a step, timed while it runs.
pub(super) async fn timed<T>(timing: &Timing, mut future: Pin<Box<dyn Future<Output = T> + Send + '_>>) -> T {
    std::future::poll_fn(move |cx| {
        timing.goes_on();
        let polled = future.as_mut().poll(cx);
        timing.waits();
        polled
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing() -> Timing {
        let key = Key { service: "s".to_owned(), plan: 0, list: 0, at: 0 };
        let (spent, since, inside) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        Timing { profile: Arc::default(), key, spent, since, inside }
    }

    /// Takes so much processor time, whatever else the machine does.
    fn work(nanoseconds: u64) {
        let until = now() + nanoseconds;
        while now() < until {}
    }

    #[test]
    fn what_runs_inside_is_taken_off_and_what_waits_is_not_counted() {
        let (outer, inner) = (timing(), timing());
        outer.goes_on();
        work(2_000_000);
        inner.goes_on();
        work(6_000_000);
        inner.waits();
        outer.waits();
        std::thread::sleep(std::time::Duration::from_millis(20));
        outer.goes_on();
        work(1_000_000);
        outer.waits();
        // Waiting twice is waiting once.
        outer.waits();
        let spent = |timing: &Timing| timing.spent.load(Relaxed);
        assert!((2_900_000..6_000_000).contains(&spent(&outer)), "{}", spent(&outer));
        assert!((5_900_000..9_000_000).contains(&spent(&inner)), "{}", spent(&inner));
    }
}
