//! The queue of the compute threads. `tests/models` goes through all that may happen between those who share it.
//!
//! Jobs wait in one line for each [`Line`], and the lines take turns, so that however many wait in one line, the first job of each other line begins
//! after at most three others. What gives memory back goes ahead of them all.

use super::sync::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::PoisonError;

/// The lines that jobs wait in, by what they are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// It only gives back what a message held that is over: short, and room for the others.
    Over,
    /// A message that an endpoint was asked for: once it has its answer, its memory is free.
    Begun,
    /// A message of which nothing is done yet: it may be refused.
    New,
    /// A part of a message, or a message that nobody waits for.
    Apart,
}

/// The lines that take turns.
const TURNS: [Line; 3] = [Line::Begun, Line::New, Line::Apart];

/// Jobs that wait, and the threads that take them.
pub(super) struct Queue<J> {
    inner: Mutex<Inner<J>>,
    changed: Condvar,
}

struct Inner<J> {
    /// The jobs of each [`Line`].
    lines: [VecDeque<J>; 4],
    /// Whose turn it is, of [`TURNS`].
    turn: usize,
    threads: usize,
    /// Threads that have nothing to do, those included that have just begun.
    idle: usize,
    /// The threads end.
    closed: bool,
}

impl<J> Queue<J> {
    pub fn new() -> Queue<J> {
        let lines = std::array::from_fn(|_| VecDeque::new());
        let inner = Inner { lines, turn: 0, threads: 0, idle: 0, closed: false };
        Queue { inner: Mutex::new(inner), changed: Condvar::new() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner<J>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a job; a new one comes back if so many of them wait already, and any if no thread could take it. `begin`: begins another thread,
    /// where that is possible.
    pub fn submit(
        &self,
        job: J,
        line: Line,
        most_threads: usize,
        most_waiting: usize,
        begin: impl FnOnce() -> bool,
    ) -> Result<(), J> {
        let mut inner = self.inner();
        if inner.idle <= inner.waiting() && inner.threads < most_threads && begin() {
            inner.threads += 1;
            // It counts as idle until it has taken its first job.
            inner.idle += 1;
        }
        let is_full =
            line == Line::New && inner.lines[line as usize].len() >= most_waiting.saturating_add(inner.idle);
        if inner.threads == 0 || is_full {
            return Err(job);
        }
        inner.lines[line as usize].push_back(job);
        drop(inner);
        self.changed.notify_one();
        Ok(())
    }

    /// Takes a new job back that has not begun.
    pub fn withdraw(&self, is_it: impl Fn(&J) -> bool) -> Option<J> {
        let line = &mut self.inner().lines[Line::New as usize];
        let at = line.iter().position(is_it)?;
        line.remove(at)
    }

    /// The next job for a thread, which waits for it; `None`: the thread ends. The thread is busy until it says
    /// [`done`](Queue::done).
    pub fn next(&self) -> Option<J> {
        let mut inner = self.inner();
        loop {
            if inner.closed {
                return None;
            }
            if let Some(job) = inner.take() {
                inner.idle -= 1;
                return Some(job);
            }
            inner = self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// As [`next`](Queue::next), for a thread that ends where nothing waits.
    #[cfg(any(test, feature = "simulation"))]
    pub fn next_now(&self) -> Option<J> {
        let mut inner = self.inner();
        inner.idle -= 1;
        let job = inner.take();
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
        (inner.threads - inner.idle, inner.waiting())
    }
}

impl<J> Inner<J> {
    fn waiting(&self) -> usize {
        self.lines.iter().map(VecDeque::len).sum()
    }

    /// The next job, of the line whose turn it is.
    fn take(&mut self) -> Option<J> {
        if let Some(job) = self.lines[Line::Over as usize].pop_front() {
            return Some(job);
        }
        for _ in TURNS {
            let line = TURNS[self.turn];
            self.turn = (self.turn + 1) % TURNS.len();
            if let Some(job) = self.lines[line as usize].pop_front() {
                return Some(job);
            }
        }
        None
    }
}
