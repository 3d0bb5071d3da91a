//! The order of writers to a file of SQLite in this process: first come, first served.
//!
//! SQLite itself lets waiting writers poll, and with many of them some starve.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How often a waiting writer checks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(200);

/// The writers by their numbers: the first one writes, the others wait.
#[derive(Default)]
struct Queue {
    last: u64,
    waiting: VecDeque<u64>,
}

/// The turns of a file.
#[derive(Default)]
pub(super) struct Turns {
    queue: Mutex<Queue>,
    changed: Condvar,
}

/// The permission to write, until it is dropped.
pub(super) struct Turn {
    turns: Arc<Turns>,
    number: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Turns {
    /// The turns of a file, shared by all connections to it.
    pub fn of(file: &Path) -> Arc<Turns> {
        static ALL: LazyLock<Mutex<HashMap<PathBuf, Weak<Turns>>>> = LazyLock::new(Mutex::default);
        let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        let mut all = lock(&ALL);
        all.retain(|_, turns| turns.strong_count() > 0);
        if let Some(turns) = all.get(&file).and_then(Weak::upgrade) {
            return turns;
        }
        let turns = Arc::default();
        all.insert(file, Arc::downgrade(&turns));
        turns
    }

    /// Waits for its turn; `None`: that takes too long, or the job was given up.
    pub fn take(self: &Arc<Turns>, longest: Duration, is_wanted: impl Fn() -> bool) -> Option<Turn> {
        let end = Instant::now() + longest;
        let mut queue = lock(&self.queue);
        queue.last += 1;
        let number = queue.last;
        queue.waiting.push_back(number);
        // Dropping it leaves the queue, here and at the end of the turn.
        let turn = Turn { turns: Arc::clone(self), number };
        loop {
            if queue.waiting.front() == Some(&number) {
                return Some(turn);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || !is_wanted() {
                drop(queue);
                return None;
            }
            let waited = self.changed.wait_timeout(queue, left.min(LOOK));
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        lock(&self.turns.queue).waiting.retain(|&number| number != self.number);
        self.turns.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_in_order_and_end() {
        let turns = Turns::of(Path::new("/nowhere/turns.db"));
        assert!(Arc::ptr_eq(&turns, &Turns::of(Path::new("/nowhere/turns.db"))));
        assert!(!Arc::ptr_eq(&turns, &Turns::of(Path::new("/nowhere/others.db"))));
        let first = turns.take(Duration::ZERO, || true).unwrap();
        // One that times out and one that is given up both leave the queue.
        assert!(turns.take(Duration::from_millis(1), || true).is_none());
        assert!(turns.take(Duration::from_secs(60), || false).is_none());
        let order = Arc::new(Mutex::new(Vec::new()));
        let threads: Vec<_> = (0..5)
            .map(|number| {
                let (turns_of_thread, order) = (Arc::clone(&turns), Arc::clone(&order));
                let thread = std::thread::spawn(move || {
                    let _turn = turns_of_thread.take(Duration::from_secs(60), || true).unwrap();
                    lock(&order).push(number);
                });
                while lock(&turns.queue).waiting.len() < number + 2 {
                    std::thread::yield_now();
                }
                thread
            })
            .collect();
        drop(first);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(*lock(&order), [0, 1, 2, 3, 4]);
        assert!(lock(&turns.queue).waiting.is_empty());
    }
}
