//! Counters per service and endpoint, cheap enough for the hot path: each worker has its own, and the admin address adds
//! them up.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, RwLock};
use std::time::Duration;

/// Upper bounds of the latency histogram, in microseconds; the last bucket has none.
pub const BUCKETS: [u64; 16] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 10_000_000, 60_000_000,
];

/// So many threads count for themselves; those beyond share one more place.
const OWNERS: usize = 64;

/// The counters of one service or endpoint.
#[derive(Debug)]
pub struct Counters {
    /// Made when a thread first counts.
    places: [OnceLock<Box<Place>>; OWNERS + 1],
}

/// What one thread counted. Aligned, so that no two threads write to the same cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Place {
    errors: AtomicU64,
    microseconds: AtomicU64,
    buckets: [AtomicU64; BUCKETS.len() + 1],
}

/// What all threads counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Messages.
    pub requests: u64,
    /// Messages that ended in a fault, or with a status of 500 and above.
    pub errors: u64,
    /// Sum of latencies in microseconds.
    pub microseconds: u64,
    /// Latency histogram, one more than [`BUCKETS`].
    pub buckets: [u64; BUCKETS.len() + 1],
}

impl Default for Counters {
    fn default() -> Counters {
        Counters { places: [const { OnceLock::new() }; OWNERS + 1] }
    }
}

impl Counters {
    /// Counts one message.
    pub fn record(&self, latency: Duration, error: bool) {
        let micros = latency.as_secs() * 1_000_000 + u64::from(latency.subsec_micros());
        let index = place_of_thread();
        let place = self.places[index].get_or_init(Box::default);
        let add = |counter: &AtomicU64, n: u64| match index < OWNERS {
            // No other thread writes here: no locked operation.
            true => counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed),
            false => _ = counter.fetch_add(n, Relaxed),
        };
        add(&place.microseconds, micros);
        if error {
            add(&place.errors, 1);
        }
        // Most answers take less than the first bounds.
        let bucket = BUCKETS.iter().position(|&bound| micros <= bound).unwrap_or(BUCKETS.len());
        add(&place.buckets[bucket], 1);
    }

    /// The sums over all threads, of which some may be counting.
    pub fn totals(&self) -> Totals {
        let mut sum = Totals::default();
        for place in self.places.iter().filter_map(OnceLock::get) {
            sum.errors += place.errors.load(Relaxed);
            sum.microseconds += place.microseconds.load(Relaxed);
            for (sum, bucket) in sum.buckets.iter_mut().zip(&place.buckets) {
                *sum += bucket.load(Relaxed);
            }
        }
        sum.requests = sum.buckets.iter().sum();
        sum
    }
}

/// Where this thread counts: its own place below [`OWNERS`], or that one.
fn place_of_thread() -> usize {
    const NONE: usize = usize::MAX;
    static LAST: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: Cell<usize> = const { Cell::new(NONE) };
    }
    OWN.with(|index| {
        if index.get() == NONE {
            index.set(LAST.fetch_add(1, Relaxed).min(OWNERS));
        }
        index.get()
    })
}

/// All counters of a process; they survive reloads.
#[derive(Debug, Default)]
pub struct Metrics {
    /// By kind (`proxy`, `api`, `main`, `endpoint`) and name.
    counters: RwLock<HashMap<(&'static str, String), Arc<Counters>>>,
    /// Flows that ended without an answer and got one from the engine.
    pub unanswered: AtomicU64,
}

impl Metrics {
    /// The counters of one service or endpoint; plans look them up once.
    pub fn counters(&self, kind: &'static str, name: &str) -> Arc<Counters> {
        let mut counters = self.counters.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        Arc::clone(counters.entry((kind, name.to_owned())).or_default())
    }

    /// All counters, sorted by kind and name.
    pub fn all(&self) -> Vec<(&'static str, String, Arc<Counters>)> {
        let all = self.counters.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut list: Vec<_> =
            all.iter().map(|((kind, name), counters)| (*kind, name.clone(), Arc::clone(counters))).collect();
        list.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_fall_into_their_buckets() {
        let metrics = Metrics::default();
        let counters = metrics.counters("proxy", "P");
        counters.record(Duration::from_micros(100), false);
        counters.record(Duration::from_micros(101), true);
        counters.record(Duration::from_secs(100), true);
        let totals = counters.totals();
        assert_eq!((totals.buckets[0], totals.buckets[1], totals.buckets[BUCKETS.len()]), (1, 1, 1));
        assert_eq!((totals.requests, totals.errors, totals.microseconds), (3, 2, 100_000_201));
        assert_eq!(metrics.all().len(), 1);
    }

    #[test]
    fn what_many_threads_count_adds_up() {
        let counters = Counters::default();
        std::thread::scope(|scope| {
            for _ in 0..OWNERS + 10 {
                scope.spawn(|| (0..100).for_each(|_| counters.record(Duration::from_micros(1), true)));
            }
        });
        let all = 100 * (OWNERS as u64 + 10);
        let totals = counters.totals();
        assert_eq!((totals.requests, totals.errors, totals.microseconds), (all, all, all));
    }
}
