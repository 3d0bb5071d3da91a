//! The queue between the workers and the thread that writes.

use crate::Output;
use crate::output::Sink;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that may wait; lines beyond are dropped.
const LIMIT: usize = 1024 * 1024;
/// The writer is woken at once when so much waits.
const PLENTY: usize = 64 * 1024;
/// Otherwise lines are collected for so long, so that a write carries many of them.
const COLLECT: Duration = Duration::from_millis(100);
/// Shortest time between two reports of losses.
const REPORT: Duration = Duration::from_secs(10);
/// Longest wait for a flush.
const FLUSH: Duration = Duration::from_secs(1);

/// See the module. Dropping it writes what is queued (waiting at most a second) and ends the thread.
pub(super) struct Writer {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// There is something to do for the thread.
    wake: Condvar,
    /// A flush was done.
    flushed: Condvar,
    dropped: AtomicU64,
}

#[derive(Default)]
struct Queue {
    bytes: Vec<u8>,
    lines: u64,
    reopen: bool,
    closed: bool,
    /// Flushes asked for and done, counted.
    asked: u64,
    done: u64,
}

impl Queue {
    /// Nothing that would be worth a write yet.
    fn may_collect(&self) -> bool {
        !self.closed && !self.reopen && self.asked == self.done && self.bytes.len() < PLENTY
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    pub(super) fn start(to: &Output) -> io::Result<Writer> {
        let sink = Sink::open(to)?;
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        std::thread::Builder::new().name("access-log".to_owned()).spawn(move || run(&own, sink))?;
        Ok(Writer { shared })
    }

    /// Queues a line, or drops it where there is no room.
    pub(super) fn push(&self, line: &[u8]) {
        let mut queue = self.shared.queue();
        let before = queue.bytes.len();
        let after = before + line.len();
        if after > LIMIT {
            drop(queue);
            self.shared.dropped.fetch_add(1, Relaxed);
            return;
        }
        queue.bytes.extend_from_slice(line);
        queue.lines += 1;
        drop(queue);
        // The thread sleeps until there is something, and again until there is plenty.
        if before == 0 || (before < PLENTY && after >= PLENTY) {
            self.shared.wake.notify_one();
        }
    }

    pub(super) fn reopen(&self) {
        self.shared.queue().reopen = true;
        self.shared.wake.notify_one();
    }

    pub(super) fn flush(&self) -> bool {
        let mut queue = self.shared.queue();
        queue.asked += 1;
        let mine = queue.asked;
        self.shared.wake.notify_one();
        let (queue, _) = self
            .shared
            .flushed
            .wait_timeout_while(queue, FLUSH, |queue| queue.done < mine)
            .unwrap_or_else(PoisonError::into_inner);
        queue.done >= mine
    }

    pub(super) fn dropped(&self) -> u64 {
        self.shared.dropped.load(Relaxed)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.queue().closed = true;
        // A thread that hangs in a write is left behind.
        self.flush();
    }
}

/// The thread.
fn run(shared: &Shared, mut sink: Sink) {
    let mut taken = Vec::new();
    let mut losses = Losses { reported: 0, next: Instant::now(), why: None };
    loop {
        let mut queue = shared.queue();
        while queue.bytes.is_empty() && queue.may_collect() {
            queue = shared.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        let (mut queue, _) = shared
            .wake
            .wait_timeout_while(queue, COLLECT, |queue| queue.may_collect())
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut queue.bytes, &mut taken);
        let lines = std::mem::take(&mut queue.lines);
        let (reopen, closed, asked) = (std::mem::take(&mut queue.reopen), queue.closed, queue.asked);
        drop(queue);

        if !taken.is_empty()
            && let Err(error) = sink.write(&taken)
        {
            shared.dropped.fetch_add(lines, Relaxed);
            losses.why = Some(error);
        }
        taken.clear();
        // A burst is no reason to keep its memory for ever.
        taken.shrink_to(PLENTY);
        if reopen && let Err(error) = sink.reopen() {
            tracing::error!(target: "busbar::access", %error, "the access log stays with its old file");
        }
        losses.report(shared.dropped.load(Relaxed), closed);
        shared.queue().done = asked;
        shared.flushed.notify_all();
        if closed {
            return;
        }
    }
}

/// What was lost and not yet reported.
struct Losses {
    reported: u64,
    next: Instant,
    why: Option<io::Error>,
}

impl Losses {
    fn report(&mut self, dropped: u64, now: bool) {
        if dropped == self.reported || (!now && Instant::now() < self.next) {
            return;
        }
        let lines = dropped - self.reported;
        let why = match self.why.take() {
            Some(error) => error.to_string(),
            None => "it cannot keep up".to_owned(),
        };
        tracing::warn!(target: "busbar::access", cause = why, "{lines} lines of the access log are lost");
        self.reported = dropped;
        self.next = Instant::now() + REPORT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn place(name: &str) -> std::path::PathBuf {
        let directory = std::env::temp_dir().join(format!("busbar-access-{}-{name}", std::process::id()));
        fs::create_dir_all(&directory).expect("a temporary directory can be made");
        directory
    }

    #[test]
    fn lines_arrive_in_order_and_move_to_the_new_file() {
        let directory = place("rotate");
        let (file, old) = (directory.join("access.log"), directory.join("access.log.1"));
        let writer = Writer::start(&Output::File(file.clone())).expect("the file can be opened");
        writer.push(b"1\n");
        writer.push(b"2\n");
        assert!(writer.flush());
        fs::rename(&file, &old).expect("the file can be moved");
        writer.push(b"3\n");
        writer.reopen();
        assert!(writer.flush());
        writer.push(b"4\n");
        drop(writer);
        assert_eq!(fs::read_to_string(&old).expect("the old file is there"), "1\n2\n3\n");
        assert_eq!(fs::read_to_string(&file).expect("the new file is there"), "4\n");
        fs::remove_dir_all(directory).expect("the directory can be removed");
    }

    #[test]
    fn many_threads_lose_nothing_uncounted() {
        const THREADS: usize = 4;
        const LINES: usize = 20_000;
        let directory = place("threads");
        let file = directory.join("access.log");
        let writer = Writer::start(&Output::File(file.clone())).expect("the file can be opened");
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let writer = &writer;
                scope.spawn(move || {
                    for number in 0..LINES {
                        writer.push(format!("{thread} {number:070} end\n").as_bytes());
                    }
                });
            }
        });
        assert!(writer.flush());
        let text = fs::read_to_string(&file).expect("the file is there");
        assert!(text.lines().all(|line| line.len() == 76 && line.ends_with(" end")));
        assert_eq!(text.lines().count() as u64 + writer.dropped(), (THREADS * LINES) as u64);
        for thread in 0..THREADS {
            let own: Vec<_> = text.lines().filter(|line| line.starts_with(&thread.to_string())).collect();
            assert!(own.is_sorted(), "the lines of a thread are in order");
        }
        fs::remove_dir_all(directory).expect("the directory can be removed");
    }

    #[test]
    fn what_finds_no_room_is_dropped_and_counted() {
        let shared = Arc::new(Shared::default());
        // No thread: nothing is ever written.
        let writer = Writer { shared: Arc::clone(&shared) };
        let line = [b'x'; 1024];
        for _ in 0..LIMIT / line.len() + 3 {
            writer.push(&line);
        }
        assert_eq!(writer.dropped(), 3);
        assert_eq!(shared.queue().bytes.len(), LIMIT);
    }

    #[test]
    fn a_full_disk_costs_lines_and_nothing_else() {
        let writer = Writer::start(&Output::from("/dev/full")).expect("the device can be opened");
        writer.push(b"1\n");
        writer.push(b"2\n");
        assert!(writer.flush());
        assert_eq!(writer.dropped(), 2);
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_an_error() {
        let error =
            Writer::start(&Output::from("/no/such/directory/log")).err().expect("it cannot be opened");
        assert!(
            error.to_string().starts_with("cannot open the log file /no/such/directory/log: "),
            "{error}"
        );
    }
}
