//! The queue of the compute threads. `tests/models` goes through all that may happen between those who share it.

use super::sync::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::PoisonError;

/// Jobs that wait, and the threads that take them.
pub(super) struct Queue<J> {
    inner: Mutex<Inner<J>>,
    changed: Condvar,
}

struct Inner<J> {
    jobs: VecDeque<J>,
    threads: usize,
    /// Threads that have nothing to do, those included that have just begun.
    idle: usize,
    /// The threads end.
    closed: bool,
}

impl<J> Queue<J> {
    pub fn new() -> Queue<J> {
        let inner = Inner { jobs: VecDeque::new(), threads: 0, idle: 0, closed: false };
        Queue { inner: Mutex::new(inner), changed: Condvar::new() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner<J>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a job; it comes back if so many wait already, or no thread could take it. `begin`: begins another thread, where that
    /// is possible.
    pub fn submit(
        &self,
        job: J,
        most_threads: usize,
        most_waiting: usize,
        begin: impl FnOnce() -> bool,
    ) -> Result<(), J> {
        let mut inner = self.inner();
        if inner.idle <= inner.jobs.len() && inner.threads < most_threads && begin() {
            inner.threads += 1;
            // It counts as idle until it has taken its first job.
            inner.idle += 1;
        }
        if inner.threads == 0 || inner.jobs.len() >= most_waiting.saturating_add(inner.idle) {
            return Err(job);
        }
        inner.jobs.push_back(job);
        drop(inner);
        self.changed.notify_one();
        Ok(())
    }

    /// Takes a job back that has not begun.
    pub fn withdraw(&self, is_it: impl Fn(&J) -> bool) -> Option<J> {
        let mut inner = self.inner();
        let at = inner.jobs.iter().position(is_it)?;
        inner.jobs.remove(at)
    }

    /// The next job for a thread, which waits for it; `None`: the thread ends. The thread is busy until it says
    /// [`done`](Queue::done).
    pub fn next(&self) -> Option<J> {
        let mut inner = self.inner();
        loop {
            if inner.closed {
                return None;
            }
            if let Some(job) = inner.jobs.pop_front() {
                inner.idle -= 1;
                return Some(job);
            }
            inner = self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// As [`next`](Queue::next), for a thread that ends where nothing waits.
    #[cfg(feature = "simulation")]
    pub fn next_now(&self) -> Option<J> {
        let mut inner = self.inner();
        inner.idle -= 1;
        let job = inner.jobs.pop_front();
        if job.is_none() {
            inner.threads -= 1;
        }
        job
    }

    /// A thread is done with its job.
    pub fn done(&self) {
        self.inner().idle += 1;
    }

    /// Ends the threads.
    pub fn close(&self) {
        self.inner().closed = true;
        self.changed.notify_all();
    }

    /// How many jobs run, and how many wait.
    pub fn load(&self) -> (usize, usize) {
        let inner = self.inner();
        (inner.threads - inner.idle, inner.jobs.len())
    }
}
