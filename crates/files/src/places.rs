//! Threads that may wait for a disk: so many at a time in the process. Each has what it works on in memory.

use std::cell::Cell;
use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::oneshot::{self, Receiver};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Jobs that run at a time in the process.
pub const MOST: usize = 64;

static PLACES: Semaphore = Semaphore::const_new(MOST);

/// How long no thread is asked for after the system has refused one: each refusal costs a line in the log, and a place in a queue until there
/// is a thread again.
const REFUSED: Duration = Duration::from_millis(100);

thread_local! {
    /// When the system last refused a thread to this worker.
    static REFUSAL: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// The place of one job, until it is dropped.
pub struct Place(#[allow(dead_code)] SemaphorePermit<'static>);

/// Why a job was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotDone {
    /// It panicked.
    Panicked,
    /// The system gives this process no more threads, and it has not begun.
    NoThread,
}

impl fmt::Display for NotDone {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            NotDone::Panicked => "the operation panicked",
            NotDone::NoThread => "too busy: the system gives the process no more threads",
        })
    }
}

impl Error for NotDone {}

impl From<NotDone> for std::io::Error {
    fn from(why: NotDone) -> std::io::Error {
        std::io::Error::other(why)
    }
}

/// Whether no job runs.
pub fn are_free() -> bool {
    PLACES.available_permits() == MOST
}

/// Waits for a place; `None`: there was none for so long.
pub async fn within(longest: Duration) -> Option<Place> {
    tokio::time::timeout(longest, PLACES.acquire()).await.ok()?.ok().map(Place)
}

/// Does a job on a thread that may wait, once there is a place for it. What waits for the job may go away: it is done all the same.
///
/// # Errors
/// It panicked or was not begun.
pub async fn run<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> Result<T, NotDone> {
    on_thread(placed(job).await).await
}

/// As [`run`], for a job that must be done: where the system has no thread for it, the thread of the caller does it.
///
/// # Errors
/// It panicked.
pub async fn run_surely<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> Result<T, NotDone> {
    on_thread_surely(placed(job).await).await
}

/// A job with its place, once there is one for it.
async fn placed<T>(job: impl FnOnce() -> T) -> impl FnOnce() -> T {
    // It is never closed.
    let place = PLACES.acquire().await.ok().map(Place);
    move || {
        let _place = place;
        job()
    }
}

/// As [`on_thread`], for a job that must be done: where the system has no thread for it, the thread of the caller does it.
///
/// # Errors
/// It panicked.
pub async fn on_thread_surely<T: Send + 'static>(
    job: impl FnOnce() -> T + Send + 'static,
) -> Result<T, NotDone> {
    match begin(job) {
        Ok(begun) => ended(begun).await,
        Err(job) => catch_unwind(AssertUnwindSafe(job)).map_err(|_| NotDone::Panicked),
    }
}

/// Does a job on a thread that may wait.
///
/// # Errors
/// It panicked or was not begun.
pub async fn on_thread<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> Result<T, NotDone> {
    let begun = begin(job).map_err(|_| NotDone::NoThread)?;
    ended(begun).await
}

/// Hands a job to a thread that may wait, and gives what it will have done.
///
/// # Errors
/// The system gives this process no more threads: the job.
pub fn begin<T: Send + 'static, J: FnOnce() -> T + Send + 'static>(
    job: J,
) -> Result<Receiver<thread::Result<T>>, J> {
    if REFUSAL.get().is_some_and(|at| at.elapsed() < REFUSED) {
        return Err(job);
    }
    let take = |waiting: &Mutex<Option<J>>| waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
    let waiting = Arc::new(Mutex::new(Some(job)));
    let (done, ran) = oneshot::channel();
    let begins = Arc::clone(&waiting);
    let begin = move || {
        if let Some(job) = take(&begins) {
            // Whoever waited may have gone.
            let _ = done.send(catch_unwind(AssertUnwindSafe(job)));
        }
    };
    // Where there is no thread at all, the runtime panics, and keeps what it was given for a thread that may come later.
    let begun = catch_unwind(AssertUnwindSafe(|| tokio::task::spawn_blocking(begin)));
    match begun {
        Ok(_) => Ok(ran),
        Err(_) => match take(&waiting) {
            None => Ok(ran),
            Some(job) => {
                REFUSAL.set(Some(Instant::now()));
                Err(job)
            }
        },
    }
}

async fn ended<T>(begun: Receiver<thread::Result<T>>) -> Result<T, NotDone> {
    match begun.await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(_)) | Err(_) => Err(NotDone::Panicked),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_without_a_thread_is_refused_or_done_here() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let thread = || thread::current().id();
            let here = thread();
            assert!(on_thread(thread).await.is_ok_and(|id| id != here));
            assert!(run_surely(thread).await.is_ok_and(|id| id != here));
            assert_eq!(run(|| panic!("as the test wants it")).await, Err::<(), _>(NotDone::Panicked));
            // As after a refusal of the system.
            REFUSAL.set(Some(Instant::now() + Duration::from_secs(3600)));
            assert_eq!(on_thread(thread).await, Err(NotDone::NoThread));
            assert_eq!(run(thread).await, Err(NotDone::NoThread));
            assert_eq!(run_surely(thread).await, Ok(here));
            assert_eq!(run_surely(|| panic!("as the test wants it")).await, Err::<(), _>(NotDone::Panicked));
            REFUSAL.set(None);
            assert!(run(thread).await.is_ok_and(|id| id != here));
        });
    }
}
