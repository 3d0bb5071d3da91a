//! Resolves names of hosts: off the workers, with a cache.
//!
//! The resolver of the system may block for as long as it likes, so it runs on threads of its own, a few at a time. A name is
//! asked for once however many want it, and the others wait for that answer. Who waits does so under a deadline of its
//! own, which ends the wait and not the question.
//!
//! Addresses that are to be asked for again are used until there is an answer, at most as long as they were good: names that
//! nobody answers for may keep all threads, and are not to keep away those that are in use.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::connection::lock;

/// Questions asked at a time, each on its thread.
const AT_A_TIME: usize = 16;
/// Questions that wait for a thread; beyond, a name is not asked for.
const WAITING: usize = 1024;
/// Answers that are remembered.
const REMEMBERED: usize = 4096;

/// The result for a name: at least one address, in the order of preference, or why there is none.
pub(crate) type Resolved = Result<Arc<[IpAddr]>, Arc<io::Error>>;

/// The resolver. One for all workers.
pub(crate) struct Resolver {
    state: Mutex<State>,
    /// How long an answer is good for.
    keep: Duration,
    /// How long a name without an answer is not asked for again.
    keep_failure: Duration,
    lookup: fn(&str) -> io::Result<Vec<IpAddr>>,
}

#[derive(Default)]
struct State {
    names: HashMap<String, Name>,
    waiting: VecDeque<Question>,
    threads: usize,
}

enum Name {
    Known {
        found: Resolved,
        until: Instant,
        /// Addresses are used so long while they are asked for again.
        last: Instant,
    },
    Asked {
        answer: watch::Receiver<Option<Resolved>>,
        old: Option<Old>,
    },
}

/// Addresses that were found before, and how long they are used still.
#[derive(Clone)]
struct Old {
    addresses: Arc<[IpAddr]>,
    last: Instant,
}

struct Question {
    name: String,
    answer: watch::Sender<Option<Resolved>>,
}

impl Resolver {
    pub(crate) fn new(keep: Duration, keep_failure: Duration) -> Arc<Resolver> {
        Resolver::with(keep, keep_failure, ask_system)
    }

    fn with(
        keep: Duration,
        keep_failure: Duration,
        lookup: fn(&str) -> io::Result<Vec<IpAddr>>,
    ) -> Arc<Resolver> {
        Arc::new(Resolver { state: Mutex::default(), keep, keep_failure, lookup })
    }

    /// The addresses of a name. An error of kind `QuotaExceeded`: too many questions wait already.
    pub(crate) async fn resolve(self: &Arc<Resolver>, name: &str) -> Resolved {
        let now = Instant::now();
        let mut outcome = {
            let mut state = lock(&self.state);
            match state.names.get(name) {
                Some(Name::Known { found, until, .. }) if now < *until => return found.clone(),
                Some(Name::Known { found: Ok(addresses), last, .. }) if now < *last => {
                    let old = Old { addresses: addresses.clone(), last: *last };
                    // Where nobody can be asked now, the next one tries it.
                    let _ = self.ask(&mut state, name, Some(old.clone()));
                    return Ok(old.addresses);
                }
                Some(Name::Asked { old: Some(old), .. }) if now < old.last => {
                    return Ok(old.addresses.clone());
                }
                // Closed without a result only where a thread ended early.
                Some(Name::Asked { answer, .. }) if answer.has_changed().is_ok() => answer.clone(),
                _ => self.ask(&mut state, name, None)?,
            }
        };
        told(&mut outcome).await
    }

    fn ask(
        self: &Arc<Resolver>,
        state: &mut State,
        name: &str,
        old: Option<Old>,
    ) -> Result<watch::Receiver<Option<Resolved>>, Arc<io::Error>> {
        let (sender, receiver) = watch::channel(None);
        let question = Question { name: name.to_owned(), answer: sender };
        if state.threads < AT_A_TIME {
            let resolver = self.clone();
            let thread = std::thread::Builder::new().name("resolver".to_owned());
            thread.spawn(move || resolver.answer(question)).map_err(Arc::new)?;
            state.threads += 1;
        } else if old.is_some() {
            // It is in use: before those that may have no answer at all. It was let in once, and there are at most so many names.
            state.waiting.push_front(question);
        } else if state.waiting.len() < WAITING {
            state.waiting.push_back(question);
        } else {
            let error = io::Error::new(io::ErrorKind::QuotaExceeded, "too many names are asked for");
            return Err(Arc::new(error));
        }
        state.names.insert(name.to_owned(), Name::Asked { answer: receiver.clone(), old });
        Ok(receiver)
    }

    /// The loop of a thread: resolves names until there are none.
    fn answer(&self, mut question: Question) {
        loop {
            let found = match (self.lookup)(&question.name) {
                Ok(addresses) if addresses.is_empty() => Err(io::Error::other("the name has no address")),
                found => found,
            };
            let mut found: Resolved = found.map(Arc::from).map_err(Arc::new);
            let now = Instant::now();
            let next = {
                let mut state = lock(&self.state);
                let (mut until, mut last) = (crate::timer::after(now, self.keep_failure), now);
                match state.names.get(&question.name) {
                    _ if found.is_ok() => {
                        until = crate::timer::after(now, self.keep);
                        last = crate::timer::after(until, self.keep);
                    }
                    // Perhaps nobody could be asked.
                    Some(Name::Asked { old: Some(old), .. }) if now < old.last => {
                        (found, until, last) = (Ok(old.addresses.clone()), until.min(old.last), old.last);
                    }
                    _ => {}
                }
                state.forget(now);
                state.names.insert(question.name, Name::Known { found: found.clone(), until, last });
                let next = state.waiting.pop_front();
                if next.is_none() {
                    state.threads -= 1;
                }
                next
            };
            question.answer.send_replace(Some(found));
            match next {
                Some(next) => question = next,
                None => return,
            }
        }
    }
}

/// The answer to a question, once there is one.
async fn told(answer: &mut watch::Receiver<Option<Resolved>>) -> Resolved {
    let interrupted = || Arc::new(io::Error::other("the question was given up"));
    let told = answer.wait_for(Option::is_some).await;
    told.ok().and_then(|found| (*found).clone()).unwrap_or_else(|| Err(interrupted()))
}

impl State {
    /// Makes room for another result.
    fn forget(&mut self, now: Instant) {
        if self.names.len() < REMEMBERED {
            return;
        }
        self.names.retain(|_, name| match name {
            Name::Known { until, .. } => now < *until,
            Name::Asked { .. } => true,
        });
        if self.names.len() >= REMEMBERED {
            // Messages may make up names without end. The others are resolved again.
            self.names.retain(|_, name| matches!(name, Name::Asked { .. }));
        }
    }
}

fn ask_system(name: &str) -> io::Result<Vec<IpAddr>> {
    let mut addresses = Vec::new();
    for address in (name, 0).to_socket_addrs()? {
        if !addresses.contains(&address.ip()) {
            addresses.push(address.ip());
        }
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    fn block_on<F: Future>(future: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
    }

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn many_ask_once_and_the_answer_is_kept_as_long_as_it_is_good() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        fn lookup(name: &str) -> io::Result<Vec<IpAddr>> {
            ASKED.fetch_add(1, SeqCst);
            std::thread::sleep(Duration::from_millis(30));
            match name {
                "none" => Ok(Vec::new()),
                "bad" => Err(io::Error::other("no such name")),
                _ => Ok(vec![[127, 0, 0, 1].into()]),
            }
        }
        block_on(async {
            let resolver = Resolver::with(LONG, Duration::ZERO, lookup);
            let tasks: Vec<_> = (0..100)
                .map(|_| {
                    let resolver = resolver.clone();
                    tokio::spawn(async move { resolver.resolve("good").await.unwrap().len() })
                })
                .collect();
            for task in tasks {
                assert_eq!(task.await.unwrap(), 1);
            }
            assert_eq!(ASKED.swap(0, SeqCst), 1);
            // A failure is told to all who wait, and not kept here.
            let (a, b) = tokio::join!(resolver.resolve("bad"), resolver.resolve("bad"));
            assert!(a.is_err() && b.is_err());
            assert_eq!(ASKED.load(SeqCst), 1);
            assert!(resolver.resolve("bad").await.is_err());
            assert_eq!(ASKED.swap(0, SeqCst), 2);
            assert!(resolver.resolve("none").await.is_err());
            // With other times, the other way round.
            let resolver = Resolver::with(Duration::ZERO, LONG, lookup);
            ASKED.store(0, SeqCst);
            for name in ["good", "good", "bad", "bad"] {
                let _ = resolver.resolve(name).await;
            }
            assert_eq!(ASKED.load(SeqCst), 3);
        });
    }

    #[test]
    fn a_slow_name_delays_nobody_who_asks_for_another_and_ends_with_its_deadline() {
        fn lookup(name: &str) -> io::Result<Vec<IpAddr>> {
            if name == "slow" {
                std::thread::sleep(Duration::from_millis(300));
            }
            Ok(vec![[127, 0, 0, 1].into()])
        }
        block_on(async {
            let resolver = Resolver::with(LONG, LONG, lookup);
            let slow = resolver.resolve("slow");
            assert!(tokio::time::timeout(Duration::from_millis(20), slow).await.is_err());
            let begun = Instant::now();
            assert!(resolver.resolve("fast").await.is_ok());
            assert!(begun.elapsed() < Duration::from_millis(200));
            // The result for a name that nobody waits for any more is cached all the same.
            assert!(resolver.resolve("slow").await.is_ok());
        });
    }

    #[test]
    fn names_without_end_are_bounded() {
        fn lookup(_: &str) -> io::Result<Vec<IpAddr>> {
            std::thread::sleep(Duration::from_millis(1));
            Ok(vec![[127, 0, 0, 1].into()])
        }
        block_on(async {
            let resolver = Resolver::with(LONG, LONG, lookup);
            let tasks: Vec<_> = (0..3000)
                .map(|n| {
                    let resolver = resolver.clone();
                    tokio::spawn(async move { resolver.resolve(&format!("n{n}")).await })
                })
                .collect();
            let mut refused = 0;
            for task in tasks {
                match task.await.unwrap() {
                    Ok(_) => {}
                    Err(error) => {
                        assert_eq!(error.kind(), io::ErrorKind::QuotaExceeded);
                        refused += 1;
                    }
                }
            }
            assert!(refused < 3000 - WAITING, "{refused}");
            for n in 0..REMEMBERED + 10 {
                let mut state = lock(&resolver.state);
                state.forget(Instant::now());
                let found: Resolved = Ok(Arc::from([IpAddr::from([127, 0, 0, 1])]));
                let until = Instant::now() + LONG;
                state.names.insert(format!("x{n}"), Name::Known { found, until, last: until });
                assert!(state.names.len() <= REMEMBERED);
            }
        });
    }

    /// Names that nobody answers for keep all threads; a name that is in use is used while it is asked for again.
    #[test]
    fn names_in_use_are_not_kept_away_by_dead_ones() {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        fn lookup(name: &str) -> io::Result<Vec<IpAddr>> {
            if name.starts_with("dead") {
                std::thread::sleep(Duration::from_millis(1500));
                return Err(io::Error::other("nobody answers"));
            }
            let number = NUMBER.fetch_add(1, SeqCst);
            Ok(vec![[127, 0, 0, 1 + number as u8].into()])
        }
        block_on(async {
            let resolver = Resolver::with(Duration::from_millis(1000), Duration::ZERO, lookup);
            let first = resolver.resolve("good").await.unwrap();
            tokio::time::sleep(Duration::from_millis(300)).await;
            let dead: Vec<_> = (0..3 * AT_A_TIME)
                .map(|number| {
                    let resolver = resolver.clone();
                    tokio::spawn(async move { resolver.resolve(&format!("dead{number}")).await })
                })
                .collect();
            tokio::time::sleep(Duration::from_millis(800)).await;
            // It is to be asked for again, and all threads wait for dead names until 1,800 ms.
            let answer = tokio::time::timeout(Duration::from_millis(100), resolver.resolve("good")).await;
            assert_eq!(answer.unwrap().unwrap(), first);
            // And it is the next one, before the dead ones that waited when it came.
            let asked_again = async {
                while resolver.resolve("good").await.unwrap() == first {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            assert!(tokio::time::timeout(Duration::from_millis(1400), asked_again).await.is_ok());
            for dead in dead {
                assert!(dead.await.unwrap().is_err());
            }
        });
    }

    /// What was found is used a while although it is not found again.
    #[test]
    fn a_failure_does_not_take_away_what_was_found() {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        fn lookup(_: &str) -> io::Result<Vec<IpAddr>> {
            match NUMBER.fetch_add(1, SeqCst) {
                0 => Ok(vec![[127, 0, 0, 1].into()]),
                _ => Err(io::Error::other("nobody answers")),
            }
        }
        block_on(async {
            let resolver = Resolver::with(Duration::from_millis(200), Duration::from_millis(1), lookup);
            let begun = Instant::now();
            assert!(resolver.resolve("good").await.is_ok());
            while resolver.resolve("good").await.is_ok() {
                assert!(begun.elapsed() < Duration::from_secs(5), "it is used for ever");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert!(begun.elapsed() >= Duration::from_millis(390), "{:?}", begun.elapsed());
            assert!(NUMBER.load(SeqCst) > 2, "it is asked for again");
        });
    }
}
