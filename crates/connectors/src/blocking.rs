//! Work of an operation on a thread that may wait for a disk, or compute for a while.

use flow::{Context, Fault};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Most of these operations at a time in the process.
const MOST: usize = 32;
/// How long a message waits for its turn; then it is shed with 503.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

static PLACES: Semaphore = Semaphore::const_new(MOST);

/// Runs the work and waits for it.
///
/// # Errors
/// No thread became free in time, or the work panicked.
pub(crate) async fn off_worker<T: Send + 'static>(
    operation: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
    context: &mut Context,
) -> Result<T, Fault> {
    let place = tokio::time::timeout(LONGEST_WAIT, PLACES.acquire()).await;
    let Ok(Ok(place)) = place else {
        let why = format!("too busy: {MOST} such operations run already, and none ended in time");
        return Err(Fault { status: 503, ..Fault::new(why) });
    };
    // A stop waits for work that has begun.
    let child = context.silent_child(operation);
    let ran = on_thread(move || {
        let _place = place;
        let ran = catch_unwind(AssertUnwindSafe(work));
        child.end();
        ran
    });
    match ran.await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(_)) | Err(NotDone::Panicked) => Err(Fault::new("the operation panicked")),
        Err(NotDone::NoThread) => Err(no_thread()),
    }
}

/// The fault where the system has no thread for an operation.
pub(crate) fn no_thread() -> Fault {
    let why = "too busy: the system gives the process no more threads";
    Fault { status: 503, ..Fault::new(why.to_owned()) }
}

/// Why a job was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotDone {
    /// It panicked.
    Panicked,
    /// The system gives this process no more threads, and it has not begun.
    NoThread,
}

/// How long no thread is asked for after the system has refused one: each refusal costs a line in the log, and a place in a queue until there
/// is a thread again.
const REFUSED: Duration = Duration::from_millis(100);

thread_local! {
    /// When the system last refused a thread to this worker.
    static REFUSAL: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Does a job on a thread that may wait.
///
/// # Errors
/// It panicked or was not begun.
pub(crate) async fn on_thread<T: Send + 'static>(
    job: impl FnOnce() -> T + Send + 'static,
) -> Result<T, NotDone> {
    if REFUSAL.get().is_some_and(|at| at.elapsed() < REFUSED) {
        return Err(NotDone::NoThread);
    }
    let waiting = Arc::new(Mutex::new(Some(job)));
    let (done, ran) = tokio::sync::oneshot::channel();
    let begins = Arc::clone(&waiting);
    let begin = move || {
        let job = flow::lock(&begins).take();
        if let Some(job) = job {
            // Whoever waited may have gone.
            let _ = done.send(catch_unwind(AssertUnwindSafe(job)));
        }
    };
    // Where there is no thread at all, the runtime panics, and keeps what it was given for a thread that may come later.
    let begun = catch_unwind(AssertUnwindSafe(|| tokio::task::spawn_blocking(begin)));
    if begun.is_err() && flow::lock(&waiting).take().is_some() {
        REFUSAL.set(Some(Instant::now()));
        return Err(NotDone::NoThread);
    }
    match ran.await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(_)) | Err(_) => Err(NotDone::Panicked),
    }
}
