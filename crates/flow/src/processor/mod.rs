//! Message processors: take messages out of a store, one after the other, each with a task of its own.
//!
//! A task belongs to a name, not to a plan. For each message and each attempt it takes the definition that is in force
//! then, so a reload neither stops it nor waits for it. The processor that works on a message of a store holds the claim on
//! that store: no message is in two hands, whichever processors come and go.

mod failover;
mod forwarding;
mod sampling;

use crate::engine::{Branched, run_branch};
use crate::http::dispatch::Bus;
use crate::runtime::context::{Context, Origin};
use crate::runtime::mediator::ListId;
use crate::runtime::panics::caught;
use crate::runtime::plan::Plan;
use crate::runtime::processor::{Done, Pace, Processor, ProcessorWork};
use crate::runtime::reference::SequenceRef;
use crate::runtime::scope::{Begun, Outcome};
use crate::runtime::services::Services;
use crate::state::lock;
use schedule::LONGEST_WAIT;
use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use stores::{Message, Store, StoreError};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// The least time between two lines in the log about attempts with one message.
const BETWEEN_LINES: Duration = Duration::from_secs(1);

/// What a processor works with for one message or attempt.
struct Work {
    processor: Arc<Processor>,
    plan: Arc<Plan>,
    services: Arc<Services>,
    /// Held by each flow that runs.
    busy: mpsc::Sender<()>,
    dealings: Arc<Mutex<Dealings>>,
}

/// What a processor remembers of its store from one message to the next.
#[derive(Default)]
struct Dealings {
    /// Attempts to use the store that failed, one after the other, and why the last one did.
    failed: Option<(u32, String)>,
}

/// How long a processor waits for its next turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pause {
    /// Until its next turn: the interval, or the next time of its expression.
    Turn,
    /// The time between two messages.
    Next,
    /// The time between two attempts with a message.
    Retry,
    /// The time between two attempts to use the store.
    Store,
    /// Until it is activated.
    Inactive,
}

/// The attempts with the message that a processor tries to deliver.
#[derive(Default)]
struct Tries {
    message: String,
    count: u32,
    /// When the log had a line about one that failed.
    said: Option<Instant>,
}

impl Tries {
    /// Counts one that failed.
    fn failed(&mut self, message: &str) -> u32 {
        if self.message != message {
            *self = Tries { message: message.to_owned(), ..Tries::default() };
        }
        self.count = self.count.saturating_add(1);
        self.count
    }

    /// Whether the log is to have a line about the last one: about the first one, and then one in a second.
    fn say(&mut self, now: Instant) -> bool {
        let says = self.said.is_none_or(|said| now.saturating_duration_since(said) >= BETWEEN_LINES);
        if says {
            self.said = Some(now);
        }
        says
    }
}

/// Runs the processors of each plan that comes into force, until `over`. It ends when what they have begun has ended
/// too.
pub async fn run(bus: Arc<Bus>, over: impl Future<Output = ()>) {
    let mut over = std::pin::pin!(over);
    let (busy, mut idle) = mpsc::channel(1);
    let (stop, stopped) = watch::channel(false);
    let mut generations = bus.generations();
    let mut running = JoinSet::new();
    let mut names: HashMap<tokio::task::Id, String> = HashMap::new();
    loop {
        generations.mark_unchanged();
        for processor in &bus.plan().processors {
            if !names.values().any(|name| *name == processor.name) {
                let runner = Runner {
                    name: processor.name.clone(),
                    bus: Arc::clone(&bus),
                    generations: bus.generations(),
                    stop: stopped.clone(),
                    busy: busy.clone(),
                    dealings: Arc::default(),
                };
                names.insert(running.spawn(runner.run()).id(), processor.name.clone());
            }
        }
        tokio::select! {
            () = &mut over => break,
            _ = generations.changed() => {}
            // Its plan has no such processor any more; another one may have it again by now.
            Some(ended) = running.join_next_with_id() => {
                names.remove(&ended.map_or_else(|error| error.id(), |(id, ())| id));
            }
        }
    }
    // The receiver may be gone.
    let _ = stop.send(true);
    while running.join_next().await.is_some() {}
    drop(busy);
    // Nothing is ever sent: this is the end of the last one that could.
    let _ = idle.recv().await;
}

/// The task of the processors of one name.
struct Runner {
    name: String,
    bus: Arc<Bus>,
    generations: watch::Receiver<u64>,
    stop: watch::Receiver<bool>,
    busy: mpsc::Sender<()>,
    dealings: Arc<Mutex<Dealings>>,
}

impl Runner {
    /// Works until a plan without the processor is in force, or everything stops.
    async fn run(mut self) {
        let mut tries = Tries::default();
        // One that goes by the calendar takes nothing until its time has come.
        let mut is_time = false;
        while let Some(work) = self.work() {
            if !is_time && matches!(work.processor.pace, Pace::Cron { .. }) {
                drop(work);
                is_time = true;
                if self.pause(Pause::Turn).await {
                    return;
                }
                continue;
            }
            let pause = match self.claimed(&work).await {
                Claimed::Held(_claim) => work.next(&mut tries).await,
                Claimed::Inactive => Pause::Inactive,
                Claimed::Changed => continue,
                Claimed::Over => return,
            };
            drop(work);
            is_time = pause != Pause::Inactive;
            if self.pause(pause).await {
                return;
            }
        }
    }

    /// The definition in force.
    fn work(&self) -> Option<Work> {
        let (plan, services) = self.bus.in_force();
        let processor = plan.processors.iter().find(|processor| processor.name == self.name);
        let processor = Arc::clone(processor?);
        Some(Work {
            processor,
            plan,
            services,
            busy: self.busy.clone(),
            dealings: Arc::clone(&self.dealings),
        })
    }

    /// Waits until no other processor works on a message of the store.
    async fn claimed<'a>(&mut self, work: &'a Work) -> Claimed<'a> {
        if !work.processor.activation.is_on() {
            return Claimed::Inactive;
        }
        tokio::select! {
            biased;
            _ = self.stop.wait_for(|stop| *stop) => Claimed::Over,
            claim = work.processor.claim.turn.lock() => Claimed::Held(claim),
            _ = self.generations.changed() => Claimed::Changed,
        }
    }

    /// Waits as long as the definition in force says; `true`: everything stops.
    async fn pause(&mut self, pause: Pause) -> bool {
        let mut began = self.bus.services().clock.now();
        while let Some(Work { processor, services, .. }) = self.work() {
            let switched = processor.activation.changed();
            if pause == Pause::Inactive && processor.activation.is_on() {
                return false;
            }
            let now = services.clock.now();
            let wait = match (pause, &processor.kind, &processor.pace) {
                (Pause::Inactive, ..) => None,
                (Pause::Store, ..) => Some(processor.connection.retry),
                (Pause::Retry, ProcessorWork::Forwarding(forwarding), _) => Some(forwarding.retry),
                (Pause::Retry, ProcessorWork::Failover(failover), _) => Some(failover.retry),
                (_, _, Pace::Interval(interval)) => Some(*interval),
                (Pause::Turn, _, Pace::Cron { cron, zone, .. }) => {
                    if schedule::put_back(began, now).is_some() {
                        began = now;
                    }
                    schedule::until(cron, zone, began, now)
                }
                (_, _, Pace::Cron { between, .. }) => Some(*between),
            };
            let passed = now.steady.saturating_duration_since(began.steady);
            let left = wait.map(|wait| wait.saturating_sub(passed));
            // The clock that shows times of the calendar may be set.
            let again =
                left.filter(|left| *left > LONGEST_WAIT && matches!(processor.pace, Pace::Cron { .. }));
            let elapsed = async {
                match left.map(|left| again.map_or(left, |_| LONGEST_WAIT)) {
                    Some(left) => tokio::time::sleep(left).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                _ = self.stop.wait_for(|stop| *stop) => return true,
                () = elapsed => if again.is_none() { return false },
                _ = self.generations.changed() => {}
                () = switched => {}
            }
        }
        false
    }
}

/// Whether a processor may take a message.
enum Claimed<'a> {
    /// For as long as this is held.
    Held(tokio::sync::MutexGuard<'a, ()>),
    /// It is not active.
    Inactive,
    /// Another plan is in force.
    Changed,
    /// Everything stops.
    Over,
}

impl Work {
    async fn next(&self, tries: &mut Tries) -> Pause {
        let next = async {
            match &self.processor.kind {
                ProcessorWork::Forwarding(forwarding) => forwarding.next(self, tries).await,
                ProcessorWork::Failover(failover) => failover.next(self, tries).await,
                ProcessorWork::Sampling(sampling) => sampling.next(self).await,
            }
        };
        caught(pin!(next)).await.unwrap_or_else(|why| {
            let name = &self.processor.name;
            crate::runtime::report::panicked("", name, &self.place(), "the message processor", &why);
            Pause::Turn
        })
    }

    /// The message that has waited longest; `Err`: there is none to work on, and how long to wait.
    async fn peek(&self) -> Result<Arc<Message>, Pause> {
        loop {
            let message = match self.processor.store.peek().await {
                Ok(message) => message,
                Err(error) => return Err(self.store_failed(&error)),
            };
            if let Some((attempts, _)) = lock(&self.dealings).failed.take() {
                let store = self.processor.store.name();
                tracing::info!(
                    processor = self.processor.name,
                    "the store {store} can be used again, after {attempts} attempts"
                );
            }
            let Some(message) = message else { return Err(Pause::Turn) };
            if lock(&self.processor.claim.done).as_ref().is_none_or(|done| done.message != message.id) {
                return Ok(message);
            }
            if !self.ack(&message).await {
                return Err(Pause::Store);
            }
        }
    }

    /// Takes a message out of the store before anything is done with it; `Ok(false)`: another process has it.
    async fn take(&self, message: &Message) -> Result<bool, Pause> {
        self.processor.store.ack(&message.id).await.map_err(|error| self.store_failed(&error))
    }

    /// Takes a message that is done out of the store; whether the store could do that. If not, the message is remembered, and not worked on
    /// again.
    async fn ack(&self, message: &Message) -> bool {
        let claim = &self.processor.claim;
        let done = &claim.done;
        let before = lock(done).take().filter(|done| done.message == message.id);
        let set = |why: String| {
            *lock(done) = Some(Done { message: message.id.clone(), why, _within: Arc::clone(claim) });
        };
        // Before the wait, which a stop may end.
        set(before.as_ref().map(|done| done.why.clone()).unwrap_or_default());
        match self.processor.store.ack(&message.id).await {
            Ok(_) => {
                *lock(done) = None;
                if before.is_some() {
                    tracing::info!(
                        processor = self.processor.name,
                        message_id = message.id,
                        "the message that was done is out of the store"
                    );
                }
                true
            }
            Err(error) => {
                let why = error.to_string();
                // Each attempt that fails alike would say the same.
                if before.is_none_or(|done| done.why != why) {
                    tracing::error!(
                        processor = self.processor.name,
                        message_id = message.id,
                        place = self.place(),
                        "the message is done and still in the store, which is tried again: {why}"
                    );
                }
                set(why);
                false
            }
        }
    }

    /// Counts an attempt to use the store, and says once why it failed; how long to wait for the next one.
    fn store_failed(&self, error: &StoreError) -> Pause {
        let why = error.to_string();
        let mut dealings = lock(&self.dealings);
        let (attempts, last) = dealings.failed.take().unwrap_or_default();
        let attempts = attempts.saturating_add(1);
        if last != why {
            tracing::error!(processor = self.processor.name, place = self.place(), "{why}");
        }
        if self.processor.connection.attempts.is_some_and(|most| attempts >= most) {
            drop(dealings);
            self.deactivate(&format!("{attempts} attempts to use its store failed"));
            return Pause::Inactive;
        }
        dealings.failed = Some((attempts, why));
        Pause::Store
    }

    fn place(&self) -> String {
        self.plan.place(self.processor.span)
    }

    /// The message as a flow works on it.
    fn context(&self, message: &Message) -> Box<Context> {
        let mut context = Context::of_stored(Arc::clone(&self.plan), Arc::clone(&self.services), message);
        context.handlers.push(self.plan.fault);
        context.attach(Arc::new(Origin(format!("message processor {}", self.processor.name))));
        context.properties.set("message.processor.name", message::Value::from(self.processor.name.as_str()));
        context
    }

    /// Runs a sequence on a message, and waits for all that it begins (branches, one-way calls); `true`: nothing of it failed.
    async fn through(&self, mut context: Box<Context>, list: ListId) -> bool {
        let begun = Begun::new(&mut context);
        let failed = matches!(run_branch(context, list).await, Branched::Failed(_));
        begun.outcome().await == Outcome::Completed && !failed
    }

    /// Puts the message into another store; `Err`: why not.
    async fn moved(&self, message: &Message, to: &dyn Store) -> Result<(), String> {
        let copy = self.context(message).to_stored().map_err(|fault| fault.to_string())?;
        to.store(copy).await.map_err(|error| error.to_string())?;
        self.ack(message).await;
        Ok(())
    }

    /// Counts an attempt that failed, with a line in the log unless there was one just now.
    fn attempt_failed(&self, message: &Message, tries: &mut Tries, why: &str) -> u32 {
        let attempts = tries.failed(&message.id);
        if tries.say(transport::clock::now()) {
            tracing::warn!(
                processor = self.processor.name,
                message_id = message.id,
                place = self.place(),
                "attempt {attempts} failed: {why}"
            );
        }
        attempts
    }

    /// An attempt was not made for want of room, and does not count.
    fn no_room(&self, message: &Message, why: &str) {
        tracing::warn!(
            processor = self.processor.name,
            message_id = message.id,
            place = self.place(),
            "there is no room for an attempt, which does not count: {why}"
        );
    }

    /// Drops a message after its last attempt.
    async fn drop_last(&self, message: &Message) {
        tracing::error!(
            processor = self.processor.name,
            message_id = message.id,
            "the message is dropped after its last attempt"
        );
        self.ack(message).await;
    }

    /// Runs one of the processor's own sequences, if there is one.
    async fn told(&self, mut context: Box<Context>, sequence: Option<&SequenceRef>) {
        let list = sequence.and_then(|reference| {
            reference.resolve(&mut context).inspect_err(|fault| tracing::error!("{fault}")).ok()
        });
        if let Some(list) = list {
            self.through(context, list).await;
        }
    }

    /// Takes the processor out of service, until it is activated or its definition changes.
    fn deactivate(&self, why: &str) {
        tracing::error!(
            processor = self.processor.name,
            place = self.place(),
            "the message processor is deactivated: {why}"
        );
        self.processor.activation.switch(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_without_a_pause_do_not_fill_the_log() {
        let begin = Instant::now();
        let mut tries = Tries::default();
        let mut lines = |id: &str, at: Instant| {
            let failed = (0..1000).filter(|_| {
                tries.failed(id);
                tries.say(at)
            });
            failed.count()
        };
        assert_eq!(lines("a", begin), 1);
        assert_eq!(lines("a", begin + BETWEEN_LINES / 2), 0);
        assert_eq!(lines("a", begin + BETWEEN_LINES), 1);
        // Another message is another matter.
        assert_eq!(lines("b", begin + BETWEEN_LINES), 1);
    }
}
