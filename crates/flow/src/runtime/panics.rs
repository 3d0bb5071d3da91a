//! A panic ends one flow, not its worker.
//!
//! The drivers of flows poll them through [`caught`]. What unwinds is turned into a value that says where in the program it
//! began; the flow then ends as one that failed. While that is so the process's own hook prints nothing: the one log line is
//! written by the driver that caught it, with the message id and the place in the configuration.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::pin::Pin;
use std::sync::Once;
use std::task::Poll;

/// What is known of a panic.
#[derive(Clone, Debug)]
pub(crate) struct Panicked {
    /// Its message.
    pub message: String,
    /// `file:line` in the program; empty where the hook is not installed.
    pub location: String,
}

impl std::fmt::Display for Panicked {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} ({})", self.message, self.location)
    }
}

thread_local! {
    /// How many [`caught`] this thread is inside of.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// Where the last panic inside of one began.
    static LOCATION: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Makes panics that are caught here quiet, and logs all others. For the start of a process.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| std::panic::set_hook(Box::new(hook)));
}

fn hook(info: &PanicHookInfo<'_>) {
    let location = info.location().map(ToString::to_string).unwrap_or_default();
    if DEPTH.try_with(Cell::get).unwrap_or(0) > 0 {
        // Fails only while the thread ends.
        let _ = LOCATION.try_with(|kept| *kept.borrow_mut() = location);
        return;
    }
    let thread = std::thread::current();
    let (name, message) = (thread.name().unwrap_or(""), message_of(info.payload()));
    tracing::error!(target: "busbar::panic", thread = name, location, "a panic: {message}");
}

/// Polls to the end, or to a panic. What has panicked must not be polled again.
pub(crate) async fn caught<F: Future>(mut future: Pin<&mut F>) -> Result<F::Output, Panicked> {
    poll_fn(|cx| {
        let depth = DEPTH.replace(DEPTH.get() + 1);
        // Not as the outcome of what is caught, which would move it once more.
        let mut polled = Poll::Pending;
        let caught = catch_unwind(AssertUnwindSafe(|| polled = future.as_mut().poll(cx)));
        DEPTH.set(depth);
        match caught {
            Ok(()) => polled.map(Ok),
            Err(payload) => Poll::Ready(Err(panicked(payload))),
        }
    })
    .await
}

#[cold]
fn panicked(payload: Box<dyn Any + Send>) -> Panicked {
    let location = LOCATION.try_with(|kept| std::mem::take(&mut *kept.borrow_mut())).unwrap_or_default();
    let message = message_of(&*payload);
    // What was thrown may itself panic when it is dropped.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
    Panicked { message, location }
}

fn message_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("of another type than text").to_owned()
}

#[cfg(test)]
mod tests {
    use super::caught;
    use std::pin::pin;

    #[test]
    fn a_panic_becomes_a_value_and_the_next_poll_is_as_ever() {
        crate::testing::block_on(async {
            let first = caught(pin!(async { panic!("the {} one", 1) })).await.map(|()| 0);
            assert!(first.is_err_and(|why| why.message == "the 1 one"));
            let typed = caught(pin!(async { std::panic::panic_any(7) })).await.map(|()| 0);
            assert!(typed.is_err_and(|why| why.message.contains("another type")));
            assert!(caught(pin!(async { 2 })).await.is_ok_and(|two| two == 2));
        });
    }
}
