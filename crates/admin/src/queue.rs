//! The queue between those who log and the thread that writes: nobody ever waits for a log.
//!
//! Lines wait in memory, bounded in number and bytes. A thread of the queue writes them, many with one call. Where it
//! cannot keep up (a full disk, a pipe that nobody reads), lines are dropped and counted, and once it writes again it
//! says how many were lost. A thread that hangs in a write is left behind at the end of the process.

mod lines;

/// What the lines wait on: `tests/models` puts others in their place.
mod sync {
    pub(super) use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
}

use crate::Output;
use crate::output::Sink;
pub(crate) use lines::Limits;
use lines::{Lines, PLENTY};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Says that so many lines were lost: a line for the log itself, or nothing where it was said elsewhere.
pub(crate) type Report = Box<dyn Fn(u64, Option<&io::Error>) -> Option<String> + Send>;

/// See the module. Dropping it writes what waits (within the limit of a flush) and ends the thread.
pub(crate) struct Queue {
    shared: Arc<Lines>,
}

impl Queue {
    /// Opens the output and starts the thread, which is called `name`.
    ///
    /// # Errors
    /// The file cannot be opened, or there is no thread.
    pub(crate) fn start(name: &str, to: &Output, limits: Limits, report: Report) -> io::Result<Queue> {
        let sink = Sink::open(to)?;
        let queue = Queue::new(limits);
        let shared = Arc::clone(&queue.shared);
        let losses = Losses { reported: 0, next: Instant::now(), why: None, report };
        std::thread::Builder::new().name(name.to_owned()).spawn(move || run(&shared, sink, losses))?;
        Ok(queue)
    }

    fn new(limits: Limits) -> Queue {
        Queue { shared: Arc::new(Lines::new(limits)) }
    }

    /// Queues a line with its line feed, or drops it where there is no room; `urgent`: it is written without waiting for others.
    pub(crate) fn push(&self, line: &[u8], urgent: bool) {
        self.shared.push(line, urgent);
    }

    /// Opens the file again by its name, for SIGHUP after log rotation; what waits goes to the old one. On an error the
    /// old one stays in use.
    pub(crate) fn reopen(&self) {
        self.shared.reopen();
    }

    /// Waits until everything queued so far is written, not longer than the limit; whether it is.
    pub(crate) fn flush(&self) -> bool {
        self.shared.flush()
    }

    /// Writes what waits, within the limit of a flush, and takes nothing any more.
    pub(crate) fn close(&self) {
        self.shared.close();
    }

    /// Lines that were lost since the start.
    pub(crate) fn dropped(&self) -> u64 {
        self.shared.dropped()
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.close();
    }
}

/// The thread.
fn run(shared: &Lines, mut sink: Sink, mut losses: Losses) {
    let mut taken = Vec::new();
    loop {
        let wanted = shared.take(&mut taken, || losses.pause(shared));
        let written = sink.write(&taken);
        if let Err(unwritten) = written {
            let lines = taken[unwritten.from..].split_inclusive(|&byte| byte == b'\n').count();
            shared.lose(lines as u64);
            losses.why = Some(unwritten.error);
        }
        taken.clear();
        // A burst is no reason to keep its memory for ever.
        taken.shrink_to(PLENTY);
        if wanted.reopen
            && let Err(error) = sink.reopen()
        {
            tracing::error!(target: "busbar::access", %error, "the log stays with its old file");
        }
        losses.tell(shared, &mut sink, wanted.closed);
        shared.done(wanted);
        if wanted.closed {
            return;
        }
    }
}

/// What was lost and not yet said.
struct Losses {
    reported: u64,
    next: Instant,
    why: Option<io::Error>,
    report: Report,
}

impl Losses {
    /// How long until a loss may be said; `None`: there is none.
    fn pause(&self, shared: &Lines) -> Option<Duration> {
        let lost = shared.dropped() != self.reported;
        // Not at once in any case: a disk stays full for a while.
        lost.then(|| self.next.saturating_duration_since(Instant::now()).max(Duration::from_millis(100)))
    }

    fn tell(&mut self, shared: &Lines, sink: &mut Sink, now: bool) {
        let dropped = shared.dropped();
        if dropped == self.reported || (!now && Instant::now() < self.next) {
            return;
        }
        self.next = Instant::now() + shared.limits.report;
        let report = (self.report)(dropped - self.reported, self.why.as_ref());
        if report.is_none_or(|line| sink.write(line.as_bytes()).is_ok()) {
            self.reported = dropped;
            self.why = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const LIMITS: Limits = Limits {
        bytes: 1024 * 1024,
        lines: 16 * 1024,
        collect: Duration::from_millis(100),
        report: Duration::ZERO,
        flush: Duration::from_secs(1),
    };

    fn silent() -> Report {
        Box::new(|_, _| None)
    }

    fn place(name: &str) -> std::path::PathBuf {
        let directory = std::env::temp_dir().join(format!("busbar-queue-{}-{name}", std::process::id()));
        fs::create_dir_all(&directory).expect("a temporary directory can be made");
        directory
    }

    #[test]
    fn lines_arrive_in_order_and_move_to_the_new_file() {
        let directory = place("rotate");
        let (file, old) = (directory.join("access.log"), directory.join("access.log.1"));
        let queue =
            Queue::start("t", &Output::File(file.clone()), LIMITS, silent()).expect("the file can be opened");
        queue.push(b"1\n", false);
        queue.push(b"2\n", true);
        assert!(queue.flush());
        fs::rename(&file, &old).expect("the file can be moved");
        queue.push(b"3\n", false);
        queue.reopen();
        assert!(queue.flush());
        queue.push(b"4\n", false);
        drop(queue);
        assert_eq!(fs::read_to_string(&old).expect("the old file is there"), "1\n2\n3\n");
        assert_eq!(fs::read_to_string(&file).expect("the new file is there"), "4\n");
        fs::remove_dir_all(directory).expect("the directory can be removed");
    }

    /// The thread may end as soon as it sees that the queue is closed; who closes does not wait for it in vain.
    #[test]
    fn closing_waits_for_nothing_that_is_done() {
        let directory = place("close");
        let begin = Instant::now();
        for _ in 0..500 {
            let limits = Limits { flush: Duration::from_secs(10), collect: Duration::ZERO, ..LIMITS };
            let queue = Queue::start("t", &Output::File(directory.join("log")), limits, silent())
                .expect("the file can be opened");
            queue.push(b"1\n", true);
            queue.close();
        }
        assert!(begin.elapsed() < Duration::from_secs(9), "one waited for the limit of a flush");
        fs::remove_dir_all(directory).expect("the directory can be removed");
    }

    #[test]
    fn urgent_lines_do_not_wait_for_others() {
        let directory = place("urgent");
        let file = directory.join("log");
        let limits = Limits { collect: Duration::from_secs(3600), ..LIMITS };
        let queue =
            Queue::start("t", &Output::File(file.clone()), limits, silent()).expect("the file can be opened");
        queue.push(b"1\n", false);
        queue.push(b"2\n", true);
        let begin = Instant::now();
        let read = || fs::read_to_string(&file).expect("the log is there");
        while read().len() < 4 && begin.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(read(), "1\n2\n");
        drop(queue);
        fs::remove_dir_all(directory).expect("the directory can be removed");
    }

    #[test]
    fn many_threads_lose_nothing_uncounted() {
        const THREADS: usize = 4;
        const LINES: usize = 20_000;
        let directory = place("threads");
        let file = directory.join("access.log");
        let queue =
            Queue::start("t", &Output::File(file.clone()), LIMITS, silent()).expect("the file can be opened");
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let queue = &queue;
                scope.spawn(move || {
                    for number in 0..LINES {
                        queue.push(format!("{thread} {number:070} end\n").as_bytes(), number % 7 == 0);
                    }
                });
            }
        });
        assert!(queue.flush());
        let text = fs::read_to_string(&file).expect("the file is there");
        assert!(text.lines().all(|line| line.len() == 76 && line.ends_with(" end")));
        assert_eq!(text.lines().count() as u64 + queue.dropped(), (THREADS * LINES) as u64);
        for thread in 0..THREADS {
            let lines: Vec<_> = text.lines().filter(|line| line.starts_with(&thread.to_string())).collect();
            assert!(lines.is_sorted(), "the lines of a thread are in order");
        }
        fs::remove_dir_all(directory).expect("the directory can be removed");
    }

    #[test]
    fn what_finds_no_room_is_dropped_and_counted() {
        // No thread: nothing is ever written.
        let queue = Queue::new(Limits { flush: Duration::ZERO, ..LIMITS });
        let line = [b'x'; 1024];
        for _ in 0..LIMITS.bytes / line.len() + 3 {
            queue.push(&line, false);
        }
        assert_eq!(queue.dropped(), 3);
        assert_eq!(queue.shared.bytes(), LIMITS.bytes);
        let queue = Queue::new(Limits { flush: Duration::ZERO, ..LIMITS });
        for _ in 0..LIMITS.lines + 5 {
            queue.push(b"\n", false);
        }
        assert_eq!(queue.dropped(), 5);
        // A line alone may be as long as it is.
        let queue = Queue::new(Limits { flush: Duration::ZERO, ..LIMITS });
        queue.push(&vec![b'x'; 2 * LIMITS.bytes], false);
        queue.push(b"\n", false);
        assert_eq!(queue.dropped(), 1);
    }

    #[test]
    fn a_full_disk_costs_lines_and_nothing_else() {
        let queue =
            Queue::start("t", &Output::from("/dev/full"), LIMITS, silent()).expect("it can be opened");
        queue.push(b"1\n", false);
        queue.push(b"2\n", false);
        assert!(queue.flush());
        assert_eq!(queue.dropped(), 2);
    }

    #[test]
    fn losses_are_said_in_the_log_itself_once_it_can_be_written() {
        let directory = place("losses");
        let file = directory.join("log");
        std::os::unix::fs::symlink("/dev/full", &file).expect("a link can be made");
        let report: Report = Box::new(|lines, why| {
            let why = why.map(io::Error::kind).map(|kind| format!("{kind:?}"));
            Some(format!("{lines} lost: {}\n", why.unwrap_or_default()))
        });
        let queue = Queue::start("t", &Output::File(file.clone()), LIMITS, report).expect("it can be opened");
        queue.push(b"1\n", false);
        assert!(queue.flush());
        queue.push(b"2\n", false);
        assert!(queue.flush());
        fs::remove_file(&file).expect("the link can be removed");
        queue.reopen();
        assert!(queue.flush());
        queue.push(b"3\n", false);
        assert!(queue.flush());
        assert_eq!(fs::read_to_string(&file).expect("the file is there"), "2 lost: StorageFull\n3\n");
        drop(queue);
        fs::remove_dir_all(directory).expect("the directory can be removed");
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_an_error() {
        let error = Queue::start("t", &Output::from("/no/such/directory/log"), LIMITS, silent())
            .err()
            .expect("it cannot be opened");
        assert!(
            error.to_string().starts_with("cannot open the log file /no/such/directory/log: "),
            "{error}"
        );
    }
}
