//! Threads that may wait for a disk: so many at a time in the process. Each has what it works on in memory.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Jobs that run at a time in the process.
pub const MOST: usize = 64;

static PLACES: Semaphore = Semaphore::const_new(MOST);

/// The place of one job, until it is dropped.
pub struct Place(#[allow(dead_code)] SemaphorePermit<'static>);

/// Waits for a place; `None`: there was none for so long.
pub async fn within(longest: Duration) -> Option<Place> {
    tokio::time::timeout(longest, PLACES.acquire()).await.ok()?.ok().map(Place)
}

/// Does a job on a thread that may wait, once there is a place for it; `None`: it panicked. What waits for the job may go away: it is done all
/// the same.
pub async fn run<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    // It is never closed.
    let place = PLACES.acquire().await.ok().map(Place);
    let ran = tokio::task::spawn_blocking(move || {
        let _place = place;
        catch_unwind(AssertUnwindSafe(job)).ok()
    });
    ran.await.ok().flatten()
}
