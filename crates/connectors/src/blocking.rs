//! Work of an operation on a thread that may wait for a disk, or compute for a while.

use flow::{Context, Fault, NotDone, no_thread, on_thread};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
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
