//! Counters per service and endpoint, cheap enough for the hot path: plain atomics, read by the admin address.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

/// Upper bounds of the latency histogram, in microseconds; the last bucket has none.
pub const BUCKETS: [u64; 16] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 10_000_000, 60_000_000,
];

/// The counters of one service or endpoint.
#[derive(Debug, Default)]
pub struct Counters {
    /// Messages.
    pub requests: AtomicU64,
    /// Messages that ended in a fault, or with a status of 500 and above.
    pub errors: AtomicU64,
    /// Sum of latencies in microseconds.
    pub microseconds: AtomicU64,
    /// Latency histogram, one more than [`BUCKETS`].
    pub buckets: [AtomicU64; BUCKETS.len() + 1],
}

impl Counters {
    /// Counts one message.
    pub fn record(&self, latency: Duration, error: bool) {
        let micros = latency.as_micros() as u64;
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.microseconds.fetch_add(micros, Ordering::Relaxed);
        if error {
            self.errors.fetch_add(1, Ordering::Relaxed);
        }
        let bucket = BUCKETS.partition_point(|&bound| bound < micros);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
    }
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
        let mut all = self.counters.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        Arc::clone(all.entry((kind, name.to_owned())).or_default())
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
        let value = |index: usize| counters.buckets[index].load(Ordering::Relaxed);
        assert_eq!((value(0), value(1), value(BUCKETS.len())), (1, 1, 1));
        assert_eq!(counters.errors.load(Ordering::Relaxed), 2);
        assert_eq!(metrics.all().len(), 1);
    }
}
