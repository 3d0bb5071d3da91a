//! Time slices: who goes through many rows on a worker lets other tasks run in between.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// How long a task may go through rows before others run.
const LONGEST: Duration = Duration::from_millis(1);

/// The time slice of a task, which begins with its first row.
#[derive(Default)]
pub struct TimeSlice {
    began: Option<Instant>,
    /// Others run.
    others: Option<Pin<Box<dyn Future<Output = ()> + Send + Sync>>>,
}

impl TimeSlice {
    /// Pending once the slice is over, until the other tasks of the worker have run.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.others.is_none() {
            if self.began.get_or_insert_with(Instant::now).elapsed() < LONGEST {
                return Poll::Ready(());
            }
            self.others = Some(Box::pin(tokio::task::yield_now()));
        }
        let polled = self.others.as_mut().map_or(Poll::Ready(()), |others| others.as_mut().poll(cx));
        if polled.is_ready() {
            *self = TimeSlice { began: Some(Instant::now()), others: None };
        }
        polled
    }

    /// Lets the other tasks run where the slice is over.
    pub async fn pass(&mut self) {
        poll_fn(|cx| self.poll(cx)).await;
    }
}
