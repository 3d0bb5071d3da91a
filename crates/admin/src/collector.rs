//! Lines on their way to the log: what can wait a moment shares one write with others.

use crate::output::Sink;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Longest time that a line waits.
const COLLECT: Duration = Duration::from_millis(10);
/// What waits is written at once when it is so much.
const PLENTY: usize = 64 * 1024;

/// The open log. Losing a line is no reason to fail; none is lost but by a process that is killed within [`COLLECT`].
pub(crate) struct Collector {
    state: Mutex<State>,
    /// The first line waits.
    wake: Condvar,
}

struct State {
    sink: Sink,
    waiting: Vec<u8>,
    /// Nobody collects (any more): every line is written at once.
    closed: bool,
}

impl State {
    fn flush(&mut self) {
        if !self.waiting.is_empty() {
            let _ = self.sink.write(&self.waiting);
            self.waiting.clear();
        }
    }
}

impl Collector {
    /// Starts the thread that writes what has waited.
    pub(crate) fn start(sink: Sink) -> Arc<Collector> {
        let state = State { sink, waiting: Vec::new(), closed: false };
        let collector = Arc::new(Collector { state: Mutex::new(state), wake: Condvar::new() });
        let own = Arc::clone(&collector);
        if std::thread::Builder::new().name("log".to_owned()).spawn(move || own.run()).is_err() {
            collector.close();
        }
        collector
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes lines; `urgent` ones are in the file, with all before them, when this returns.
    pub(crate) fn write(&self, lines: &[u8], urgent: bool) {
        let mut state = self.state();
        let first = state.waiting.is_empty();
        if first && (urgent || state.closed) {
            let _ = state.sink.write(lines);
            return;
        }
        state.waiting.extend_from_slice(lines);
        if urgent || state.closed || state.waiting.len() >= PLENTY {
            state.flush();
        } else if first {
            drop(state);
            self.wake.notify_one();
        }
    }

    /// Opens the file again by its name. On an error the old one stays.
    pub(crate) fn reopen(&self) -> io::Result<()> {
        let mut state = self.state();
        state.flush();
        state.sink.reopen()
    }

    /// Writes what waits; from now on nothing does.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.flush();
        state.closed = true;
        drop(state);
        self.wake.notify_one();
    }

    fn run(&self) {
        loop {
            let state = self.state();
            let waits = |state: &mut State| state.waiting.is_empty() && !state.closed;
            let state = self.wake.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner);
            if state.closed {
                return;
            }
            drop(state);
            std::thread::sleep(COLLECT);
            self.state().flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Output;
    use std::fs;
    use std::time::Instant;

    #[test]
    fn every_line_arrives_in_order_and_urgent_ones_at_once() {
        let file = std::env::temp_dir().join(format!("busbar-collector-{}", std::process::id()));
        let _ = fs::remove_file(&file);
        let read = || fs::read_to_string(&file).expect("the log is there");
        let collector = Collector::start(Sink::open(&Output::File(file.clone())).expect("it can be opened"));
        collector.write(b"1\n", false);
        collector.write(b"2\n", true);
        assert_eq!(read(), "1\n2\n");
        collector.write(b"3\n", false);
        let begin = Instant::now();
        while read().len() < 6 && begin.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(read(), "1\n2\n3\n");
        collector.write(b"4\n", false);
        let much = vec![b'x'; PLENTY];
        collector.write(&much, false);
        assert_eq!(read().len(), 8 + PLENTY);
        collector.write(b"5\n", false);
        collector.close();
        assert_eq!(read().len(), 10 + PLENTY);
        collector.write(b"6\n", false);
        assert_eq!(read().len(), 12 + PLENTY);
        let _ = fs::remove_file(&file);
    }
}
