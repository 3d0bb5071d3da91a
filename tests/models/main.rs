//! What workers share, checked exhaustively: each model runs in every order that its threads may take turns in, and with every
//! value that the memory model lets a load see. Where three threads meet, orders with more than three forced changes of the
//! thread are left out: there are millions.
//!
//! The files are those of the bus. They take their atomics and locks from `super::sync`, which is `std` there and `loom` here.
//! Modelled is what is written for it: the counts behind scopes (`Tally`, `Gate`), the budget of bytes, the queue of the compute
//! threads, that of the log, what is remembered of an endpoint. What stands on one lock alone, on channels or on libraries is not.
#![allow(dead_code, missing_docs, unexpected_cfgs)]

#[path = "../../crates/message/src/budget.rs"]
mod budget;
#[path = "../../crates/endpoints/src/cell.rs"]
mod cell;
#[path = "../../crates/admin/src/queue/lines.rs"]
mod lines;
#[path = "../../crates/flow/src/engine/queue.rs"]
mod queue;
#[path = "../../crates/flow/src/runtime/tally.rs"]
mod tally;

mod sync {
    pub use loom::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering};
    pub use loom::sync::{Mutex, MutexGuard};
    use std::sync::LockResult;
    pub use std::sync::atomic::Ordering::Relaxed;
    use std::time::Duration;

    /// As that of `std`, where no time passes: a wait for no time ends at once, any other one only when it is ended.
    pub struct Condvar(loom::sync::Condvar);

    impl Condvar {
        pub fn new() -> Condvar {
            Condvar(loom::sync::Condvar::new())
        }

        pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
            self.0.wait(guard)
        }

        pub fn wait_timeout_while<'a, T>(
            &self,
            mut guard: MutexGuard<'a, T>,
            time: Duration,
            waits: impl Fn(&mut T) -> bool,
        ) -> LockResult<(MutexGuard<'a, T>, ())> {
            while !time.is_zero() && waits(&mut guard) {
                guard = self.0.wait(guard).expect("no thread of a model panics");
            }
            Ok((guard, ()))
        }

        pub fn notify_one(&self) {
            self.0.notify_one();
        }

        pub fn notify_all(&self) {
            self.0.notify_all();
        }
    }
}

use budget::Budget;
use cell::{Cell, Phase};
use lines::{Limits, Lines};
use loom::sync::{Arc, Notify};
use loom::thread;
use queue::{Line, Queue};
use std::sync::Mutex;
use std::time::Duration;
use sync::{AtomicU64, AtomicUsize, Relaxed};
use tally::{Gate, Outcome, Tally};

/// A model of three threads.
fn three(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// The last one that ends gives the outcome, alone, and with what all others did.
#[test]
fn the_last_one_decides_the_outcome() {
    for (wholes, fails, wanted) in [
        ([true, true], [None, None], Outcome::Completed),
        ([false, true], [None, None], Outcome::Dropped),
        ([true, true], [None, Some(502)], Outcome::Failed(502)),
        ([false, true], [None, Some(502)], Outcome::Failed(502)),
    ] {
        three(move || {
            let tally = Arc::new(Tally::new());
            let children: Vec<_> = wholes
                .into_iter()
                .zip(fails)
                .map(|(whole, fails)| {
                    tally.begin();
                    let tally = Arc::clone(&tally);
                    thread::spawn(move || {
                        if let Some(status) = fails {
                            tally.fail(status);
                        }
                        tally.end(whole)
                    })
                })
                .collect();
            let first = tally.end(true);
            let ends: Vec<_> =
                children.into_iter().map(|child| child.join().unwrap()).chain([first]).collect();
            let outcomes: Vec<_> = ends.into_iter().flatten().collect();
            assert_eq!(outcomes, [wanted]);
        });
    }
}

/// A drain sees the last message leave, or is told of it.
#[test]
fn a_drain_never_sleeps_through_the_last_end() {
    loom::model(|| {
        let (gate, told) = (Arc::new(Gate::default()), Arc::new(Notify::new()));
        assert!(gate.enter(1) && !gate.enter(1));
        let message = {
            let (gate, told) = (Arc::clone(&gate), Arc::clone(&told));
            thread::spawn(move || {
                if gate.leave() {
                    told.notify();
                }
            })
        };
        gate.wait();
        while gate.count() > 0 {
            told.wait();
        }
        message.join().unwrap();
    });
}

/// No more are let in than may be, whoever comes and goes meanwhile.
#[test]
fn no_more_are_let_in_than_may_be() {
    three(|| {
        let (gate, inside) = (Arc::new(Gate::default()), Arc::new(AtomicUsize::new(0)));
        let messages: Vec<_> = (0..2)
            .map(|_| {
                let (gate, inside) = (Arc::clone(&gate), Arc::clone(&inside));
                thread::spawn(move || {
                    if gate.enter(1) {
                        assert_eq!(inside.fetch_add(1, sync::Ordering::AcqRel), 0);
                        inside.fetch_sub(1, sync::Ordering::AcqRel);
                        gate.leave();
                    }
                })
            })
            .collect();
        messages.into_iter().for_each(|message| message.join().unwrap());
        assert!(gate.count() == 0 && gate.enter(1));
    });
}

/// What was granted never exceeds the bound, and all of it comes back.
#[test]
fn bytes_are_bounded_and_come_back() {
    three(|| {
        let budget = Arc::new(Budget {
            held: AtomicUsize::new(0),
            most: AtomicUsize::new(100),
            refused: AtomicU64::new(0),
        });
        let granted = Arc::new(AtomicUsize::new(0));
        let takers: Vec<_> = [60, 50]
            .into_iter()
            .map(|bytes| {
                let (budget, granted) = (Arc::clone(&budget), Arc::clone(&granted));
                thread::spawn(move || {
                    if budget.try_take(bytes) {
                        let before = granted.fetch_add(bytes, sync::Ordering::AcqRel);
                        assert!(before + bytes <= 100);
                        granted.fetch_sub(bytes, sync::Ordering::AcqRel);
                        budget.give_back(bytes);
                    }
                })
            })
            .collect();
        takers.into_iter().for_each(|taker| taker.join().unwrap());
        assert_eq!(budget.held.load(Relaxed), 0);
        assert!(budget.try_take(100), "all of it is there again");
    });
}

/// Each job that was taken on is run once or given back, and closing ends the threads.
#[test]
fn a_job_is_run_once_or_given_back() {
    loom::model(|| {
        let queue: Arc<Queue<u32>> = Arc::new(Queue::new());
        let ran = Arc::new(Mutex::new(Vec::new()));
        let work = {
            let (queue, ran) = (Arc::clone(&queue), Arc::clone(&ran));
            move || {
                while let Some(job) = queue.next() {
                    ran.lock().unwrap().push(job);
                    queue.done();
                }
            }
        };
        let mut worker = None;
        let begin = || {
            worker = Some(thread::spawn(work));
            true
        };
        assert_eq!(queue.submit(1, Line::New, 1, 1, begin), Ok(()));
        let other = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || match queue.submit(2, Line::New, 1, 1, || false) {
                Ok(()) => queue.withdraw(|job| *job == 2),
                Err(job) => Some(job),
            })
        };
        let mut back: Vec<_> = other.join().unwrap().into_iter().collect();
        back.extend(queue.withdraw(|job| *job == 1));
        // What nobody took back is run before the threads end.
        while queue.load().1 > 0 {
            thread::yield_now();
        }
        queue.close();
        worker.take().unwrap().join().unwrap();
        let mut all = ran.lock().unwrap().clone();
        all.extend(back);
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
    });
}

/// Attempts that began in one episode and fail together are one suspension, whatever one that succeeds says meanwhile.
#[test]
fn what_fails_together_is_one_suspension() {
    three(|| {
        let cell = Arc::new(Cell::default());
        let begun = cell.episode();
        let suspensions = Arc::new(AtomicUsize::new(0));
        let attempts: Vec<_> = (0..2)
            .map(|_| {
                let (cell, suspensions) = (Arc::clone(&cell), Arc::clone(&suspensions));
                thread::spawn(move || {
                    cell.failed(begun, |now| {
                        now.phase = Phase::Suspended;
                        suspensions.fetch_add(1, Relaxed);
                    });
                })
            })
            .collect();
        cell.succeeded();
        attempts.into_iter().for_each(|attempt| attempt.join().unwrap());
        assert_eq!((suspensions.load(Relaxed), cell.episode()), (1, begun + 1));
        // Messages are sent, or not, by the one flag.
        assert_eq!(cell.is_active(), cell.now().phase == Phase::Active);
    });
}

/// What an operator switched off stays off, whatever attempts under way come to.
#[test]
fn what_is_switched_off_stays_off() {
    three(|| {
        let cell = Arc::new(Cell::default());
        let begun = cell.episode();
        let fails = {
            let cell = Arc::clone(&cell);
            thread::spawn(move || cell.failed(begun, |now| now.phase = Phase::Suspended))
        };
        let succeeds = {
            let cell = Arc::clone(&cell);
            thread::spawn(move || cell.succeeded())
        };
        cell.switch(false, || {});
        fails.join().unwrap();
        succeeds.join().unwrap();
        assert!(!cell.is_active() && cell.now().phase == Phase::Off);
    });
}

/// A flush waits for the lines that were queued before it and for nothing in vain; each line is written or counted, also where the queue
/// is closed meanwhile, and the thread that writes ends.
#[test]
fn each_line_is_written_or_counted() {
    // Room for all, and for one at a time.
    for lines in [10, 1] {
        three(move || {
            let limits = Limits {
                bytes: 100,
                lines,
                collect: Duration::ZERO,
                report: Duration::ZERO,
                flush: Duration::from_secs(1),
            };
            let queue = Arc::new(Lines::new(limits));
            let written = Arc::new(Mutex::new(Vec::new()));
            let writes = {
                let (queue, written) = (Arc::clone(&queue), Arc::clone(&written));
                thread::spawn(move || {
                    loop {
                        let mut taken = Vec::new();
                        let wanted = queue.take(&mut taken, || None);
                        written.lock().unwrap().extend(taken);
                        queue.done(wanted);
                        if wanted.closed {
                            return;
                        }
                    }
                })
            };
            let other = {
                let queue = Arc::clone(&queue);
                thread::spawn(move || queue.push(b"b", true))
            };
            queue.push(b"a", false);
            let dropped = queue.dropped();
            assert!(queue.flush());
            assert!(dropped > 0 || written.lock().unwrap().contains(&b'a'));
            queue.close();
            writes.join().unwrap();
            other.join().unwrap();
            assert_eq!(written.lock().unwrap().len() as u64 + queue.dropped(), 2);
        });
    }
}
