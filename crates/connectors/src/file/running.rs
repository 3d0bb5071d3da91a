//! Runs jobs on threads for blocking work.

use super::{Connection, Failure, Files, Job, JobResult, Reason};
use files::places::{self, MOST};
use flow::{Context, Fault, NotDone, no_thread, on_thread};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// How long a message waits for its turn; then it is shed with 503.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Ends a job when its caller has gone.
struct Ends(meter::Cancel);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Runs a job and waits for it.
pub(super) async fn run(
    connection: &Arc<Connection>,
    job: &Job,
    lock: bool,
    context: &mut Context,
) -> Result<JobResult, Failure> {
    let busy = || {
        let why = format!(
            "too busy: {MOST} file operations run already, and none ended within {} s",
            LONGEST_WAIT.as_secs()
        );
        Failure::from(Fault { status: 503, ..Fault::new(why) })
    };
    let Some(place) = places::within(LONGEST_WAIT).await else { return Err(busy()) };
    let cancel = meter::Cancel::default();
    let _ends = Ends(cancel.clone());
    let services = context.services();
    let (held, time) = (services.limits.held, services.settings.script_time);
    let files = Files { connection: Arc::clone(connection), cancel, held, time, lock };
    let job = Arc::clone(job);
    // The message counts as in progress until the thread has cleaned up: a stop waits for that.
    let child = context.silent_child("a file operation");
    let ran = on_thread(move || {
        let _place = place;
        let ran = catch_unwind(AssertUnwindSafe(|| job(&files)));
        child.end();
        ran
    });
    match ran.await {
        Ok(Ok(done)) => done,
        Ok(Err(_)) | Err(NotDone::Panicked) => Err(Failure::new(Reason::Operation, "the operation panicked")),
        Err(NotDone::NoThread) => Err(Failure::from(no_thread())),
    }
}
