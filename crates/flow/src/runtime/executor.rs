//! Priority executors: messages wait in a queue of their priority until they may run.
//!
//! Messages hold no thread here, so what an executor gives out are *turns*: as many at a time as it has threads where it comes from.
//! Who wants one takes a [`Ticket`], which is refused where the queue is full, waits for its [`Turn`], and keeps that while it works.
//! Who waits and who runs belongs to the identity of the executor: a reload finds both as they were, also with other queues.

use crate::state::lock;
use crate::state::metrics::Counters;
use diagnostics::Span;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;

/// A priority executor of the plan.
#[derive(Debug)]
pub struct Executor {
    /// Its name.
    pub name: String,
    /// Where it is written.
    pub span: Span,
    pub(crate) shape: Shape,
    pub(crate) pool: Arc<Pool>,
    /// What ran through it.
    pub(crate) counters: Arc<Counters>,
}

/// What is written of an executor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Priorities with the number of messages that may wait, the highest first.
    pub queues: Vec<(i32, usize)>,
    /// How many messages run while none is turned away.
    pub core: usize,
    /// How many run where a queue is full.
    pub max: usize,
}

/// How an executor stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Messages that run.
    pub running: usize,
    /// Each queue, the highest priority first: its priority, how many wait, and how many may.
    pub queues: Vec<(i32, usize, usize)>,
    /// See [`Shape::core`].
    pub core: usize,
    /// See [`Shape::max`].
    pub max: usize,
    /// Messages that had their turn.
    pub begun: u64,
    /// Messages that were turned away since the queue was full.
    pub rejected: u64,
}

impl Executor {
    /// How it stands.
    pub fn status(&self) -> Status {
        self.pool.status()
    }

    /// A place in the queue of a priority.
    ///
    /// # Errors
    /// The queue is full, and as many run as may.
    pub fn ticket(&self, priority: i32) -> Result<Ticket, Full> {
        self.pool.ticket(priority)
    }

    /// The plan with it comes into force.
    pub(crate) fn begins(&self) {
        self.pool.define(&self.shape);
    }
}

/// The queue is full, and as many run as may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Who waits, and how many run.
#[derive(Default)]
pub(crate) struct Pool(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    /// The highest priority first.
    queues: Vec<Queue>,
    core: usize,
    max: usize,
    running: usize,
    /// The queue whose turns are given out, and how many it had in this round.
    at: usize,
    had: i32,
    begun: u64,
    rejected: u64,
}

struct Queue {
    priority: i32,
    size: usize,
    waiting: VecDeque<oneshot::Sender<Turn>>,
}

impl Pool {
    /// Its queues are these from now on; who waits in one that is gone goes to the next one below.
    pub(crate) fn define(self: &Arc<Pool>, shape: &Shape) {
        let mut inner = lock(&self.0);
        let same =
            inner.queues.iter().map(|queue| (queue.priority, queue.size)).eq(shape.queues.iter().copied());
        (inner.core, inner.max) = (shape.core.max(1), shape.max.max(shape.core).max(1));
        if !same {
            let queues = shape.queues.iter().map(|&(priority, size)| Queue {
                priority,
                size,
                waiting: VecDeque::new(),
            });
            let before = std::mem::replace(&mut inner.queues, queues.collect());
            (inner.at, inner.had) = (0, 0);
            for queue in before {
                if let Some(at) = inner.queue_of(queue.priority) {
                    inner.queues[at].waiting.extend(queue.waiting);
                }
            }
        }
        while inner.running < inner.core && self.hand_out(&mut inner) {}
    }

    pub(crate) fn status(&self) -> Status {
        let inner = lock(&self.0);
        let waiting = |queue: &Queue| queue.waiting.iter().filter(|ticket| !ticket.is_closed()).count();
        Status {
            running: inner.running,
            queues: inner.queues.iter().map(|queue| (queue.priority, waiting(queue), queue.size)).collect(),
            core: inner.core,
            max: inner.max,
            begun: inner.begun,
            rejected: inner.rejected,
        }
    }

    pub(crate) fn ticket(self: &Arc<Pool>, priority: i32) -> Result<Ticket, Full> {
        let mut inner = lock(&self.0);
        let now = |inner: &mut Inner| {
            inner.running += 1;
            inner.begun += 1;
            Ok(Ticket(State::Now(Turn(Some(Arc::clone(self))))))
        };
        if inner.running < inner.core {
            return now(&mut inner);
        }
        let Some(at) = inner.queue_of(priority) else { return Err(Full) };
        let max = inner.max;
        let queue = &mut inner.queues[at];
        if queue.waiting.len() >= queue.size {
            // Those whose message is gone take no place.
            queue.waiting.retain(|one| !one.is_closed());
        }
        if queue.waiting.len() < queue.size {
            let (sender, receiver) = oneshot::channel();
            queue.waiting.push_back(sender);
            return Ok(Ticket(State::Waits(receiver)));
        }
        if inner.running < max {
            return now(&mut inner);
        }
        inner.rejected += 1;
        Err(Full)
    }

    /// Gives a turn to the next one that waits; `false`: none does.
    fn hand_out(self: &Arc<Pool>, inner: &mut Inner) -> bool {
        while let Some(waiting) = inner.next() {
            match waiting.send(Turn(Some(Arc::clone(self)))) {
                Ok(()) => {
                    inner.running += 1;
                    inner.begun += 1;
                    return true;
                }
                // Its message is gone. The turn that comes back must not give itself back.
                Err(mut turn) => turn.0 = None,
            }
        }
        false
    }

    fn over(self: &Arc<Pool>) {
        let mut inner = lock(&self.0);
        let most = inner.running.min(inner.max).max(inner.core);
        inner.running = inner.running.saturating_sub(1);
        while inner.running < most && self.hand_out(&mut inner) {}
    }
}

impl Inner {
    /// The queue of a priority: its own, else that of the next lower one, else the lowest.
    fn queue_of(&self, priority: i32) -> Option<usize> {
        let at = self.queues.iter().position(|queue| queue.priority <= priority);
        at.or_else(|| self.queues.len().checked_sub(1))
    }

    /// In rounds, from the highest priority down: each queue has as many turns as its priority says, at least one.
    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        for _ in 0..=self.queues.len() {
            let queue = self.queues.get_mut(self.at)?;
            if self.had < queue.priority.max(1)
                && let Some(waiting) = queue.waiting.pop_front()
            {
                self.had += 1;
                return Some(waiting);
            }
            self.at = (self.at + 1) % self.queues.len();
            self.had = 0;
        }
        // No message waits: the next round begins with the highest priority.
        self.at = 0;
        None
    }
}

/// A place in a queue, or a turn already.
pub struct Ticket(State);

enum State {
    Now(Turn),
    Waits(oneshot::Receiver<Turn>),
}

impl Ticket {
    /// Waits for its turn.
    pub async fn turn(self) -> Turn {
        match self.0 {
            State::Now(turn) => turn,
            // The pool lives as long as a message runs, and gives all that wait their turns.
            State::Waits(receiver) => receiver.await.unwrap_or(Turn(None)),
        }
    }

    /// It need not wait.
    pub fn is_ready(&self) -> bool {
        matches!(self.0, State::Now(_))
    }
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(if self.is_ready() { "Ticket(ready)" } else { "Ticket(waits)" })
    }
}

/// The right to work, as long as it is held.
#[derive(Debug)]
pub struct Turn(Option<Arc<Pool>>);

impl std::fmt::Debug for Pool {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Pool")
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(pool) = self.0.take() {
            pool.over();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Full, Pool, Shape, Ticket, Turn};
    use std::sync::Arc;

    fn pool(queues: &[(i32, usize)], core: usize, max: usize) -> Arc<Pool> {
        let pool = Arc::new(Pool::default());
        pool.define(&Shape { queues: queues.to_vec(), core, max });
        pool
    }

    fn turn(ticket: Ticket) -> Turn {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(ticket.turn())
    }

    #[test]
    fn so_many_run_so_many_wait_and_the_rest_is_turned_away() {
        let pool = pool(&[(10, 2), (1, 1)], 1, 2);
        let first = turn(pool.ticket(1).unwrap());
        // Below the number of threads all run at once; then they wait; with a full queue one more runs; then it is over.
        let waits = [pool.ticket(10).unwrap(), pool.ticket(10).unwrap(), pool.ticket(1).unwrap()];
        assert!(waits.iter().all(|ticket| !ticket.is_ready()));
        let beyond = pool.ticket(10).unwrap();
        assert!(beyond.is_ready());
        assert_eq!(pool.ticket(10).err(), Some(Full));
        assert_eq!(pool.ticket(1).err(), Some(Full));
        drop(first);
        // One that waits and whose message goes away leaves its place.
        let [high, gone, low] = waits;
        let high = turn(high);
        drop(gone);
        assert!(!pool.ticket(10).unwrap().is_ready());
        drop((high, turn(beyond)));
        drop(turn(low));
        let now = pool.0.lock().unwrap();
        assert_eq!((now.running, now.rejected, now.begun), (0, 2, 4));
    }

    #[test]
    fn each_queue_has_as_many_turns_in_a_round_as_its_priority() {
        let pool = pool(&[(3, 9), (1, 9), (-1, 9)], 1, 1);
        let mut running = turn(pool.ticket(3).unwrap());
        let mut tickets = Vec::new();
        for priority in [-1, 1, 3] {
            tickets.extend((0..5).map(|_| (priority, pool.ticket(priority).unwrap())));
        }
        let mut order = Vec::new();
        while !tickets.is_empty() {
            drop(running);
            let at = tickets.iter_mut().position(|(_, ticket)| match &mut ticket.0 {
                super::State::Waits(receiver) => match receiver.try_recv() {
                    Ok(turn) => {
                        ticket.0 = super::State::Now(turn);
                        true
                    }
                    Err(_) => false,
                },
                super::State::Now(_) => false,
            });
            let (priority, ticket) = tickets.remove(at.unwrap());
            order.push(priority);
            running = turn(ticket);
        }
        assert_eq!(order, [3, 3, 3, 1, -1, 3, 3, 1, -1, 1, -1, 1, -1, 1, -1]);
    }

    #[test]
    fn other_queues_keep_who_waits_and_a_priority_without_a_queue_has_the_next_lower_one() {
        let pool = pool(&[(10, 5), (5, 5)], 1, 1);
        let first = turn(pool.ticket(7).unwrap());
        let (low, high) = (pool.ticket(1).unwrap(), pool.ticket(99).unwrap());
        let waiting = |pool: &Pool| -> Vec<_> {
            pool.0.lock().unwrap().queues.iter().map(|queue| (queue.priority, queue.waiting.len())).collect()
        };
        assert_eq!(waiting(&pool), [(10, 1), (5, 1)]);
        pool.define(&Shape { queues: vec![(7, 1), (2, 1)], core: 1, max: 1 });
        assert_eq!(waiting(&pool), [(7, 1), (2, 1)]);
        // More at a time: who waits begins.
        pool.define(&Shape { queues: vec![(7, 1), (2, 1)], core: 3, max: 3 });
        drop((first, turn(low), turn(high)));
        assert_eq!(pool.0.lock().unwrap().running, 0);
    }
}
