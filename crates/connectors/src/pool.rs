//! Idle connections to servers.
//!
//! The description of a server is the key of its pool: a configuration that is loaded anew with the same description goes on with its
//! connections. A connection stays with the worker that made it.

use flow::lock;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Most pools; beyond, pools without a connection in use are dropped.
const MOST_POOLS: usize = 256;

/// The limits of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Limits {
    /// Most connections in use.
    pub most: usize,
    /// Most idle connections.
    pub idle: usize,
    /// How long a message waits for a permit.
    pub wait: Duration,
    /// How long an idle connection is kept.
    pub keep: Duration,
}

/// The connections to one server.
pub(crate) struct Pool<T> {
    limits: Limits,
    places: Arc<Semaphore>,
    idle: Mutex<Vec<Idle<T>>>,
}

struct Idle<T> {
    item: T,
    since: Instant,
    thread: ThreadId,
}

impl<T> Pool<T> {
    fn new(limits: Limits) -> Pool<T> {
        let places = Arc::new(Semaphore::new(limits.most.clamp(1, Semaphore::MAX_PERMITS)));
        Pool { limits, places, idle: Mutex::default() }
    }

    /// Waits for a permit; `None`: there was none in time.
    pub(crate) async fn place(&self) -> Option<OwnedSemaphorePermit> {
        let place = Arc::clone(&self.places).acquire_owned();
        tokio::time::timeout(self.limits.wait, place).await.ok()?.ok()
    }

    /// An idle connection, the one that was used last.
    pub(crate) fn take(&self) -> Option<T> {
        let mut idle = lock(&self.idle);
        let keep = self.limits.keep;
        idle.retain(|i| i.since.elapsed() < keep);
        let at = idle.iter().rposition(|i| i.thread == thread::current().id())?;
        Some(idle.remove(at).item)
    }

    /// Keeps a connection for the next message.
    pub(crate) fn keep(&self, item: T) {
        let mut idle = lock(&self.idle);
        if self.limits.idle > 0 {
            if idle.len() >= self.limits.idle {
                idle.remove(0);
            }
            idle.push(Idle { item, since: Instant::now(), thread: thread::current().id() });
        }
    }

    fn is_unused(&self) -> bool {
        let mut idle = lock(&self.idle);
        idle.retain(|i| i.since.elapsed() < self.limits.keep);
        idle.is_empty()
    }
}

/// The pools of a kind, by the server.
pub(crate) struct Pools<K, T>(Mutex<HashMap<K, Arc<Pool<T>>>>);

impl<K, T> Default for Pools<K, T> {
    fn default() -> Self {
        Pools(Mutex::default())
    }
}

impl<K: Hash + Eq + Clone, T> Pools<K, T> {
    pub(crate) fn of(&self, server: &K, limits: Limits) -> Arc<Pool<T>> {
        let mut pools = lock(&self.0);
        if let Some(pool) = pools.get(server) {
            return Arc::clone(pool);
        }
        if pools.len() >= MOST_POOLS {
            pools.retain(|_, pool| Arc::strong_count(pool) > 1 || !pool.is_unused());
        }
        Arc::clone(pools.entry(server.clone()).or_insert_with(|| Arc::new(Pool::new(limits))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits =
        Limits { most: 1, idle: 1, wait: Duration::from_millis(5), keep: Duration::from_millis(50) };

    #[test]
    fn connections_are_kept_for_a_while() {
        let pools = Pools::<&str, u8>::default();
        let pool = pools.of(&"a", LIMITS);
        assert!(Arc::ptr_eq(&pool, &pools.of(&"a", LIMITS)) && !Arc::ptr_eq(&pool, &pools.of(&"b", LIMITS)));
        pool.keep(1);
        pool.keep(2);
        assert_eq!((pool.take(), pool.take()), (Some(2), None));
        pool.keep(3);
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(pool.take(), None));
        });
        std::thread::sleep(Duration::from_millis(60));
        assert_eq!(pool.take(), None);
    }

    #[test]
    fn places_are_waited_for_no_longer_than_that() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let pool = Pool::<u8>::new(LIMITS);
            let place = pool.place().await;
            assert!(place.is_some() && pool.place().await.is_none());
            drop(place);
            assert!(pool.place().await.is_some());
        });
    }
}
