//! Work that waits for files and compiles, on a thread of its own.

use std::{io, thread};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Begins the work; what comes back is its result, and an error if it panicked. Unlike a thread of the runtime, one that the system refuses is an
/// error and no panic.
///
/// # Errors
/// The system gives the process no more threads.
pub fn aside<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<oneshot::Receiver<T>> {
    let (done, result) = oneshot::channel();
    // What is dropped meanwhile may end connections on it.
    let runtime = Handle::try_current().ok();
    let run = move || {
        let _within = runtime.as_ref().map(Handle::enter);
        // Whoever waited may have gone.
        let _ = done.send(work());
    };
    thread::Builder::new().name(name.to_owned()).spawn(run)?;
    Ok(result)
}
