//! The access log: a line per exchange, in the patterns that log analysers know.
//!
//! A worker formats its line and appends it to a bounded queue in memory; a thread of its own writes. Where that
//! thread cannot keep up (a full disk, a pipe that nobody reads), lines are dropped, counted and reported: traffic
//! never waits for its log.

mod pattern;

pub use pattern::{COMBINED, COMMON, Pattern};

use crate::Output;
use crate::queue::{Limits, Queue, Report};
use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Writes the access log. Clones write to the same log; when the last one goes, what is queued is written.
#[derive(Clone)]
pub struct AccessLog {
    shared: Arc<Shared>,
}

const LIMITS: Limits = Limits {
    bytes: 1024 * 1024,
    lines: 16 * 1024,
    collect: Duration::from_millis(100),
    report: Duration::from_secs(10),
    flush: Duration::from_secs(1),
};

struct Shared {
    pattern: Pattern,
    queue: Queue,
}

impl AccessLog {
    /// Starts a log. `pattern` is `common`, `combined` or a pattern string, see [`Pattern`].
    ///
    /// # Errors
    /// The pattern is wrong (kind `InvalidInput`), or the file cannot be opened.
    pub fn start(pattern: &str, to: &Output) -> io::Result<AccessLog> {
        let parsed =
            Pattern::parse(pattern).map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
        for field in parsed.unavailable() {
            tracing::warn!(target: "busbar::access", "the access log does not know {field} and prints - instead");
        }
        let report: Report = Box::new(|lines, why| {
            let why = why.map_or_else(|| "it cannot keep up".to_owned(), ToString::to_string);
            tracing::warn!(target: "busbar::access", cause = why, "{lines} lines of the access log are lost");
            None
        });
        let queue = Queue::start("access-log", to, LIMITS, report)?;
        Ok(AccessLog { shared: Arc::new(Shared { pattern: parsed, queue }) })
    }

    /// Opens the file again by its name, for SIGHUP after log rotation. What was recorded before goes to the old file.
    pub fn reopen(&self) {
        self.shared.queue.reopen();
    }

    /// Waits until everything recorded so far is written, at most a second; whether it is.
    pub fn flush(&self) -> bool {
        self.shared.queue.flush()
    }

    /// Lines that were dropped since the start.
    pub fn dropped(&self) -> u64 {
        self.shared.queue.dropped()
    }
}

impl flow::AccessLog for AccessLog {
    fn record(&self, access: &flow::Access<'_>) {
        thread_local! {
            static LINE: RefCell<String> = const { RefCell::new(String::new()) };
        }
        LINE.with_borrow_mut(|line| {
            line.clear();
            self.shared.pattern.format(access, SystemTime::now(), line);
            line.push('\n');
            self.shared.queue.push(line.as_bytes(), false);
        });
    }

    fn asks_for_agent(&self) -> bool {
        self.shared.pattern.has_agent()
    }
}

impl std::fmt::Debug for AccessLog {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "AccessLog({} dropped)", self.dropped())
    }
}
