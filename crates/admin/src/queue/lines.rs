//! The lines that wait for the thread of a queue, on one lock. `tests/models` goes through all that may happen between those who share it.

use super::sync::{AtomicU64, Condvar, Mutex, MutexGuard, Relaxed};
use std::sync::PoisonError;
use std::time::Duration;

/// What a queue may hold, and how long.
pub(crate) struct Limits {
    /// Bytes that may wait; a longer line is taken only while nothing else waits.
    pub(crate) bytes: usize,
    /// Lines that may wait.
    pub(crate) lines: u64,
    /// Lines are collected for so long, so that a write carries many of them.
    pub(crate) collect: Duration,
    /// Shortest time between two reports of losses.
    pub(crate) report: Duration,
    /// Longest wait for a flush, that at the end of the process for one.
    pub(crate) flush: Duration,
}

/// The thread is woken at once when so many bytes wait.
pub(super) const PLENTY: usize = 64 * 1024;

/// See the module.
pub(super) struct Lines {
    pub(super) limits: Limits,
    waiting: Mutex<Waiting>,
    /// There is something to do for the thread.
    wake: Condvar,
    /// A flush was done.
    flushed: Condvar,
    dropped: AtomicU64,
}

#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    lines: u64,
    /// A line must not wait for others.
    urgent: bool,
    reopen: bool,
    closed: bool,
    /// Flushes asked for and done, counted.
    asked: u64,
    done: u64,
}

impl Waiting {
    fn is_idle(&self) -> bool {
        self.bytes.is_empty() && self.may_collect()
    }

    /// Nothing that would be worth a write yet.
    fn may_collect(&self) -> bool {
        let hurries = self.urgent || self.closed || self.reopen || self.asked != self.done;
        !hurries && self.bytes.len() < PLENTY
    }
}

/// What the thread is to do beside writing.
#[derive(Clone, Copy)]
pub(super) struct Requests {
    pub(super) reopen: bool,
    /// It is to end.
    pub(super) closed: bool,
    /// Flushes that are done with this.
    asked: u64,
}

impl Lines {
    pub(super) fn new(limits: Limits) -> Lines {
        Lines {
            limits,
            waiting: Mutex::new(Waiting::default()),
            wake: Condvar::new(),
            flushed: Condvar::new(),
            dropped: AtomicU64::new(0),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a line with its line feed, or drops it where there is no room; `urgent`: it is written without waiting for others.
    pub(super) fn push(&self, line: &[u8], urgent: bool) {
        let limits = &self.limits;
        let mut waiting = self.waiting();
        let before = waiting.bytes.len();
        let after = before + line.len();
        if waiting.closed || (before > 0 && (after > limits.bytes || waiting.lines >= limits.lines)) {
            drop(waiting);
            return self.lose(1);
        }
        waiting.bytes.extend_from_slice(line);
        waiting.lines += 1;
        let hurries = urgent && !waiting.urgent;
        waiting.urgent |= urgent;
        drop(waiting);
        // The thread sleeps until there is something, and again until there is plenty or something urgent.
        if before == 0 || hurries || (before < PLENTY && after >= PLENTY) {
            self.wake.notify_one();
        }
    }

    /// The thread is to open its file again.
    pub(super) fn reopen(&self) {
        self.waiting().reopen = true;
        self.wake.notify_one();
    }

    /// Waits until everything queued so far is written, not longer than the limit; whether it is.
    pub(super) fn flush(&self) -> bool {
        self.written(self.waiting())
    }

    fn written(&self, mut waiting: MutexGuard<'_, Waiting>) -> bool {
        waiting.asked += 1;
        let mine = waiting.asked;
        self.wake.notify_one();
        let longest = self.limits.flush;
        let waited = self.flushed.wait_timeout_while(waiting, longest, |waiting| waiting.done < mine);
        waited.unwrap_or_else(PoisonError::into_inner).0.done >= mine
    }

    /// Waits until what waits is written, within the limit of a flush; nothing is taken any more, and the thread ends.
    pub(super) fn close(&self) {
        // The thread ends when it sees this, so what it is asked for has to be there by then.
        let mut waiting = self.waiting();
        if !std::mem::replace(&mut waiting.closed, true) {
            self.written(waiting);
        }
    }

    /// For the thread: waits until lines have been collected, or something else is asked for, and takes the lines; `pause`: how long that
    /// may take, where something else is to be done then.
    pub(super) fn take(&self, into: &mut Vec<u8>, pause: impl Fn() -> Option<Duration>) -> Requests {
        let mut waiting = self.waiting();
        let mut late = false;
        while waiting.is_idle() && !late {
            waiting = match pause() {
                None => self.wake.wait(waiting).unwrap_or_else(PoisonError::into_inner),
                Some(pause) => {
                    late = true;
                    let waited = self.wake.wait_timeout_while(waiting, pause, |waiting| waiting.is_idle());
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        if !waiting.is_idle() {
            let collect = self.limits.collect;
            let waited = self.wake.wait_timeout_while(waiting, collect, |waiting| waiting.may_collect());
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        std::mem::swap(&mut waiting.bytes, into);
        waiting.lines = 0;
        waiting.urgent = false;
        let reopen = std::mem::take(&mut waiting.reopen);
        Requests { reopen, closed: waiting.closed, asked: waiting.asked }
    }

    /// For the thread: what it was asked for is done.
    pub(super) fn done(&self, wanted: Requests) {
        self.waiting().done = wanted.asked;
        self.flushed.notify_all();
    }

    /// So many lines are lost.
    pub(super) fn lose(&self, lines: u64) {
        self.dropped.fetch_add(lines, Relaxed);
    }

    /// Lines that were lost since the start.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// Bytes that wait.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.waiting().bytes.len()
    }
}
