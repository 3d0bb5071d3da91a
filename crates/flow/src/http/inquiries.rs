//! Questions to other servers about clients: each is asked by one request, whoever else has it, and a server gets so many at a time.

use crate::state::lock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{OnceCell, Semaphore};

/// Most questions that one server is asked at a time: each takes a connection. A flood of tokens that nobody knows would otherwise open
/// as many as there are requests.
pub(super) const AT_ONCE: usize = 32;

/// The questions that are being asked, and their answers `V`.
pub(super) struct Inquiries<V> {
    /// By all that the answer depends on.
    asked: Mutex<HashMap<[u8; 32], Verdict<V>>>,
    servers: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// The answer to a question; `None`: its turn did not come.
type Verdict<V> = Arc<OnceCell<Option<V>>>;

impl<V> Default for Inquiries<V> {
    fn default() -> Inquiries<V> {
        Inquiries { asked: Mutex::default(), servers: Mutex::default() }
    }
}

/// A request that waits for an answer; the last one takes the question away, also when its client has gone.
struct Waiting<'a, V> {
    inquiries: &'a Inquiries<V>,
    question: [u8; 32],
    verdict: Verdict<V>,
}

impl<V: Clone> Inquiries<V> {
    /// What `server` says to `question`; `ask` asks it, once its turn has come. `None`: that was not within `patience`.
    pub async fn ask(
        &self,
        server: &str,
        question: [u8; 32],
        patience: Duration,
        ask: impl Future<Output = V>,
    ) -> Option<V> {
        let verdict = Arc::clone(lock(&self.asked).entry(question).or_default());
        let waiting = Waiting { inquiries: self, question, verdict };
        let turns = Arc::clone(
            lock(&self.servers).entry(server.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE))),
        );
        let asks = || async {
            let turn = tokio::time::timeout(patience, turns.acquire()).await;
            let Ok(Ok(_turn)) = turn else { return None };
            Some(ask.await)
        };
        waiting.verdict.get_or_init(asks).await.clone()
    }
}

impl<V> Drop for Waiting<'_, V> {
    fn drop(&mut self) {
        let mut asked = lock(&self.inquiries.asked);
        let is_this = asked.get(&self.question).is_some_and(|other| Arc::ptr_eq(other, &self.verdict));
        // The table has one, this request another.
        let is_last = Arc::strong_count(&self.verdict) <= 2;
        if is_this && (is_last || self.verdict.initialized()) {
            asked.remove(&self.question);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::pin::Pin;
    use std::rc::Rc;
    use std::task::{Context, Poll, Waker};
    use tokio::sync::Notify;

    const PATIENCE: Duration = Duration::from_secs(5);

    type Asking<'a> = Pin<Box<dyn Future<Output = Option<u8>> + 'a>>;

    fn poll(asking: &mut Asking<'_>) -> Poll<Option<u8>> {
        asking.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    /// A question that is answered when `answered` says so.
    fn asking<'a>(
        inquiries: &'a Inquiries<u8>,
        question: u8,
        asked: &Rc<Cell<usize>>,
        answered: &Rc<Notify>,
    ) -> Asking<'a> {
        let (asked, answered) = (Rc::clone(asked), Rc::clone(answered));
        Box::pin(inquiries.ask("a", [question; 32], PATIENCE, async move {
            asked.set(asked.get() + 1);
            answered.notified().await;
            question
        }))
    }

    fn with_clock(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(tokio::task::unconstrained(test));
    }

    #[test]
    fn one_request_asks_and_all_with_its_question_get_the_answer() {
        with_clock(async {
            let (inquiries, asked, answered) = (Inquiries::default(), Rc::default(), Rc::default());
            let mut all: Vec<_> = (0..20).map(|_| asking(&inquiries, 7, &asked, &answered)).collect();
            assert!(all.iter_mut().all(|one| poll(one).is_pending()));
            assert_eq!(asked.get(), 1);
            // The client that asked goes away: another one asks.
            drop(all.remove(0));
            assert!(all.iter_mut().all(|one| poll(one).is_pending()));
            assert_eq!(asked.get(), 2);
            answered.notify_waiters();
            for one in &mut all {
                assert_eq!(poll(one), Poll::Ready(Some(7)));
            }
            assert_eq!(asked.get(), 2);
            drop(all);
            assert!(lock(&inquiries.asked).is_empty(), "nothing of it is kept");
        });
    }

    #[test]
    fn a_server_is_asked_so_many_at_a_time_and_the_others_do_not_wait_for_ever() {
        with_clock(async {
            let (inquiries, asked, answered) = (Inquiries::default(), Rc::default(), Rc::default());
            let mut all: Vec<_> = (0..100).map(|n| asking(&inquiries, n, &asked, &answered)).collect();
            assert!(all.iter_mut().all(|one| poll(one).is_pending()));
            assert_eq!(asked.get(), AT_ONCE);
            answered.notify_waiters();
            let done = all.iter_mut().map(poll).filter(Poll::is_ready).count();
            assert_eq!(
                (done, asked.get()),
                (AT_ONCE, 2 * AT_ONCE),
                "their places are taken by the next ones"
            );
            tokio::time::advance(PATIENCE).await;
            let late = all[2 * AT_ONCE..].iter_mut().map(poll).filter(|state| *state == Poll::Ready(None));
            assert_eq!(late.count(), 100 - 2 * AT_ONCE);
            all.clear();
            assert!(lock(&inquiries.asked).is_empty());
        });
    }
}
