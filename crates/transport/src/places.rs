//! Places for connections to one backend: so many in the process, and a bounded queue for those who find none.
//!
//! A connection has a place from before it is made until it is closed, in use or idle. While somebody waits, a connection
//! that is done with is not kept idle: it goes to who waits on its worker, or is closed so that its place goes to who waits
//! on another.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::Target;
use crate::connection::lock;

/// Backends that are always remembered.
const KNOWN: usize = 1024;

/// The places at all backends of a client.
pub(crate) struct Places {
    /// Connections that one backend may have.
    most: usize,
    /// Requests that may wait for one.
    queue: usize,
    backends: Mutex<Backends>,
}

struct Backends {
    by_target: HashMap<Target, Arc<Backend>>,
    /// As many as that, before those without a connection are forgotten.
    most: usize,
}

/// The places at one backend.
pub(crate) struct Backend {
    free: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// The right to have a connection.
pub(crate) struct Place {
    backend: Arc<Backend>,
    /// `None`: an extra one, which is not counted.
    permit: Option<OwnedSemaphorePermit>,
}

/// A request that waits for a place.
pub(crate) struct Waiting {
    backend: Arc<Backend>,
}

impl Places {
    pub(crate) fn new(most: usize, queue: usize) -> Places {
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        let backends = Backends { by_target: HashMap::new(), most: KNOWN };
        Places { most, queue, backends: Mutex::new(backends) }
    }

    /// The places at one backend. Called once for each connection, not for each request.
    pub(crate) fn at(&self, target: &Target) -> Arc<Backend> {
        let mut backends = lock(&self.backends);
        if let Some(backend) = backends.by_target.get(target) {
            return backend.clone();
        }
        if backends.by_target.len() >= backends.most {
            // Whoever has a place or waits for one holds a reference.
            backends.by_target.retain(|_, backend| Arc::strong_count(backend) > 1);
            // Those in use are not looked through again for each one that is added.
            backends.most = KNOWN.max(2 * backends.by_target.len());
        }
        let free = Arc::new(Semaphore::new(self.most));
        let backend = Arc::new(Backend { free, waiting: AtomicUsize::new(0) });
        backends.by_target.insert(target.clone(), backend.clone());
        backend
    }

    /// Queues up; `None`: too many wait already.
    pub(crate) fn wait(&self, backend: &Arc<Backend>) -> Option<Waiting> {
        let more = |n| if n < self.queue { Some(n + 1) } else { None };
        backend.waiting.fetch_update(Relaxed, Relaxed, more).ok()?;
        Some(Waiting { backend: backend.clone() })
    }
}

impl Backend {
    /// A place, if there is one and nobody waits for it.
    pub(crate) fn take(self: &Arc<Backend>) -> Option<Place> {
        let permit = self.free.clone().try_acquire_owned().ok()?;
        Some(Place { backend: self.clone(), permit: Some(permit) })
    }

    /// A place beyond those that there are. Its connection may not be kept.
    pub(crate) fn extra(self: &Arc<Backend>) -> Place {
        Place { backend: self.clone(), permit: None }
    }
}

impl Place {
    /// Whether its connection may be used for another message.
    pub(crate) fn may_be_kept(&self) -> bool {
        self.permit.is_some()
    }

    /// Whether somebody waits for it.
    pub(crate) fn is_wanted(&self) -> bool {
        self.backend.waiting.load(Relaxed) > 0
    }
}

impl Waiting {
    /// Waits for the next free place; first come, first served.
    pub(crate) async fn place(&self) -> Place {
        match self.backend.free.clone().acquire_owned().await {
            Ok(permit) => Place { backend: self.backend.clone(), permit: Some(permit) },
            // Only a closed semaphore fails, and this one is never closed.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.backend.waiting.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_the_queue_are_counted_by_who_has_them() {
        let places = Places::new(2, 1);
        let backend = places.at(&Target::http("a", 1));
        let (first, two) = (backend.take().unwrap(), backend.take().unwrap());
        assert!(backend.take().is_none() && !first.is_wanted());
        assert!(places.at(&Target::http("b", 1)).take().is_some(), "another backend has its own");
        let extra = backend.extra();
        assert!(first.may_be_kept() && !extra.may_be_kept());
        drop(extra);
        assert!(backend.take().is_none(), "an extra one leaves no place behind");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let waiting = places.wait(&backend).unwrap();
            assert!(places.wait(&backend).is_none() && first.is_wanted());
            drop(two);
            let two = waiting.place().await;
            drop(waiting);
            assert!(!first.is_wanted() && backend.take().is_none());
            // Who gives up waiting leaves nothing behind.
            let waiting = places.wait(&backend).unwrap();
            let gave_up = tokio::time::timeout(std::time::Duration::from_millis(5), waiting.place()).await;
            assert!(gave_up.is_err());
            drop((waiting, first, two));
        });
        assert_eq!(backend.free.available_permits(), 2);
        assert_eq!(backend.waiting.load(Relaxed), 0);
        drop(backend);
        for n in 0..2 * KNOWN {
            places.at(&Target::http("c", n as u16));
        }
        assert!(lock(&places.backends).by_target.len() <= KNOWN + 1);
    }
}
