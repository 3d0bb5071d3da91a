//! Who owns the work of a message.
//!
//! A *scope* begins when the bus takes a message: a request, an attempt of a processor. It ends when all that goes on for
//! the message has ended: its first flow, and its *children* (branches, timers, one-way sends, the rest of a flow whose client
//! has its answer). A [`Child`] is a guard: when it is dropped, it has ended, by a panic and with a client that went away too.
//!
//! A flow without children costs two steps of one counter ([`Scopes`]). The shared half, [`Scope`], is made with the first child.
//! The [`Outcome`] is decided when the last child has ended.
//!
//! [`Exchange`](super::exchange::Exchange) is something else: the one answer that a client, or a mediator that runs copies, waits for. A child whose end
//! the client does not wait for (a one-way send) belongs to the scope and not to the exchange.

use crate::runtime::context::Context;
use crate::runtime::exchange::Voice;
use crate::runtime::fault::Fault;
use crate::runtime::panics::{Panicked, caught};
use crate::runtime::plan::Plan;
use crate::runtime::progress::Waits;
use crate::runtime::services::Services;
pub use crate::runtime::tally::Outcome;
use crate::runtime::tally::{Gate, Tally};
use crate::state::lock;
use diagnostics::Span;
use message::memory;
use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinSet};

/// How often it is looked whether all is cleared away before the process ends.
const CLEARED: Duration = Duration::from_millis(10);

/// The scopes of a process.
#[derive(Default)]
pub struct Scopes {
    /// Messages whose work goes on; a drain waits for the last one.
    open: Gate,
    /// Those with children, by number.
    shared: Mutex<HashMap<u64, Weak<Scope>>>,
    /// Messages that were refused because too many were open, or too much was held.
    refused: AtomicU64,
    /// The line of the log that tells how many were refused is on its way.
    logging: AtomicBool,
    /// The drain is over: what is abandoned now is named in the log.
    giving_up: AtomicBool,
    ended: Notify,
}

impl Scopes {
    /// One more message; `false`: there are `most` already, and it is refused.
    #[inline]
    pub(crate) fn begin(&self, most: usize) -> bool {
        self.open.enter(most)
    }

    /// The work of one message has ended.
    #[inline]
    fn end(&self) {
        if self.open.leave() {
            self.ended.notify_waiters();
        }
    }

    /// Messages whose work goes on.
    pub fn open(&self) -> usize {
        self.open.count()
    }

    /// Messages that were refused with 503 so far.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Counts a message that is refused with 503, with a line in the log each second.
    #[cold]
    pub(crate) fn refuse(self: &Arc<Scopes>, why: &'static str) {
        self.refused.fetch_add(1, Relaxed);
        if !self.logging.swap(true, AcqRel) {
            let (scopes, before) = (Arc::clone(self), self.refused() - 1);
            // Not the work of a message: the line is written when the second is over.
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                scopes.logging.store(false, Release);
                let refused = scopes.refused() - before;
                tracing::warn!(target: "busbar::limits", refused, open = scopes.open(), "{why}: {refused} were refused within a second");
            });
        }
    }

    /// Waits until no work is left, at most for `time`; `false`: there is still some.
    pub async fn drained(&self, time: Duration) -> bool {
        let end = tokio::time::Instant::now() + time;
        self.open.wait();
        loop {
            let mut ended = pin!(self.ended.notified());
            ended.as_mut().enable();
            if self.open.count() == 0 {
                return true;
            }
            if tokio::time::timeout_at(end, ended).await.is_err() {
                return self.open.count() == 0;
            }
        }
    }

    /// Waits until the flows have ended whose connections were cut, and file operations have cleared away what they had begun, at most for
    /// `time`. What goes on beside such a flow is given up already, and may take as long as its backend.
    pub async fn cleared(&self, time: Duration) {
        let end = tokio::time::Instant::now() + time;
        while (self.is_any_on_a_connection() || !files::places::are_free())
            && tokio::time::Instant::now() < end
        {
            tokio::time::sleep(CLEARED).await;
        }
    }

    /// Whether the first flow of a message runs on the connection of its client.
    fn is_any_on_a_connection(&self) -> bool {
        let scopes: Vec<Arc<Scope>> = lock(&self.shared).values().filter_map(Weak::upgrade).collect();
        // One without children has its flow only.
        self.open() > scopes.len() || scopes.iter().any(|scope| scope.on_connection.load(Acquire))
    }

    /// From now on whatever is abandoned is named in the log.
    pub fn give_up(&self) {
        self.giving_up.store(true, Release);
    }

    /// Whether the drain is over.
    pub(crate) fn is_giving_up(&self) -> bool {
        self.giving_up.load(Acquire)
    }
}

impl Services {
    /// Names each message in the log that is lost when the process ends now: those whose work goes on while nobody waits for
    /// it any more, parts in aggregates, and what waits in stores that do not outlive the process.
    pub fn log_given_up(&self) {
        let scopes: Vec<Arc<Scope>> = lock(&self.scopes.shared).values().filter_map(Weak::upgrade).collect();
        scopes.iter().for_each(|scope| scope.log_given_up());
        let others = self.scopes.open().saturating_sub(scopes.len());
        if others > 0 {
            tracing::error!(target: "busbar::drain", "given up at the end of the drain: {others} messages in steps that do not end");
        }
        self.aggregates.each(|first, others| {
            let place = first.place();
            let first_id = first.message_id();
            for id in std::iter::once(&first_id).chain(others) {
                log_given_up(id, first.service_name(), &place, "a part that waits in an aggregate");
            }
        });
        for (store, message) in self.stores.lost_with_process() {
            let reason = "it waits in a store that is lost with the process";
            log_given_up(&message.message_id, &store, "", reason);
        }
    }
}

/// Logs a message whose work was given up at the end of a drain.
pub(crate) fn log_given_up(message_id: &str, service: &str, place: &str, reason: &str) {
    tracing::error!(target: "busbar::drain", message_id, service, place, "given up at the end of the drain: {reason}");
}

/// What all work of a message shares, once there is more of it than one flow.
pub struct Scope {
    services: Arc<Services>,
    plan: Arc<Plan>,
    number: u64,
    message_id: String,
    service: String,
    /// What began last, for log lines.
    last: Mutex<(&'static str, Span)>,
    /// The first flow and the children.
    tally: Tally,
    /// The first flow runs on the connection of its client: it ends with that.
    on_connection: AtomicBool,
    /// Steps that all flows of the message took together.
    steps: AtomicU64,
    /// The message went beyond a bound: nothing new is begun for it.
    given_up: AtomicBool,
    /// It is in the log that the end of the drain came before its end.
    named: AtomicBool,
    outcome: OnceLock<Outcome>,
    /// Tells the outcome to a task that waits for it; mostly none does.
    done: Notify,
}

impl Scope {
    /// The scope of a message whose first flow is counted in [`Scopes`] already.
    fn new(context: &Context) -> Arc<Scope> {
        let scope = Arc::new(Scope {
            services: Arc::clone(&context.services),
            plan: Arc::clone(&context.plan),
            number: crate::runtime::identifier::next_number(),
            message_id: context.message_id(),
            service: context.service_name().to_owned(),
            last: Mutex::new(("the flow", context.location())),
            tally: Tally::new(),
            on_connection: AtomicBool::new(true),
            steps: AtomicU64::new(context.progress.spent.steps.into()),
            given_up: AtomicBool::new(false),
            named: AtomicBool::new(false),
            outcome: OnceLock::new(),
            done: Notify::new(),
        });
        lock(&context.services.scopes.shared).insert(scope.number, Arc::downgrade(&scope));
        scope
    }

    /// The flow that runs, or a child of it, failed with this status.
    pub(crate) fn failed(&self, status: u16) {
        self.tally.fail(status);
    }

    /// How much goes on for the message: its first flow and its children.
    pub(crate) fn running(&self) -> usize {
        self.tally.running()
    }

    /// The message went beyond a bound: its splits make no further parts. `true`: it is said for the first time.
    pub(crate) fn give_up(&self) -> bool {
        !self.given_up.swap(true, AcqRel)
    }

    /// See [`Scope::give_up`].
    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.load(Acquire)
    }

    /// What began last, in a few words.
    fn began(&self, work: &'static str, place: Span) {
        *lock(&self.last) = (work, place);
    }

    /// The first flow or a child has ended; `whole`: it came to its end.
    fn ended(&self, whole: bool) {
        let Some(outcome) = self.tally.end(whole) else { return };
        lock(&self.services.scopes.shared).remove(&self.number);
        let _ = self.outcome.set(outcome); // the tally ends once
        self.done.notify_waiters();
        self.services.scopes.end();
    }

    /// Waits until all work of the message has ended.
    pub async fn outcome(&self) -> Outcome {
        loop {
            let mut done = pin!(self.done.notified());
            // Counted among those who wait before the look, so that no end is missed.
            done.as_mut().enable();
            match self.outcome.get() {
                Some(&outcome) => return outcome,
                None => done.await,
            }
        }
    }

    /// Logs a panic in the work of this message, which has failed by that.
    fn panicked(&self, why: &Panicked) {
        self.failed(500);
        let (work, place) = *lock(&self.last);
        crate::runtime::report::panicked(&self.message_id, &self.service, &self.plan.place(place), work, why);
    }

    /// Names it in the log, once.
    fn log_given_up(&self) {
        if self.named.swap(true, AcqRel) {
            return;
        }
        let (work, place) = *lock(&self.last);
        log_given_up(&self.message_id, &self.service, &self.plan.place(place), work);
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        // A message that was never let in as one (a copy that somebody only looks at) does not end.
        if self.tally.running() > 0 {
            lock(&self.services.scopes.shared).remove(&self.number);
        }
    }
}

/// A message that was let in: one unit of the count, which is given back unless a flow begins with it.
pub(crate) struct Admitted(Option<Arc<Services>>);

impl Admitted {
    /// Lets a message in.
    ///
    /// # Errors
    /// Why there is no room for one now.
    #[inline]
    pub(crate) fn new(services: Arc<Services>) -> Result<Admitted, (Arc<Services>, &'static str)> {
        if memory::is_scarce() {
            return Err((services, "messages hold as much memory as they may"));
        }
        match services.scopes.begin(services.settings.flows) {
            true => Ok(Admitted(Some(services))),
            false => Err((services, "too many messages are on their way")),
        }
    }

    /// Lets in what a message that was let in before asks of another service: it counts, and has no limit of its own but the memory.
    ///
    /// # Errors
    /// Why there is no room for it now.
    pub(crate) fn within(services: Arc<Services>) -> Result<Admitted, (Arc<Services>, &'static str)> {
        match memory::is_scarce() {
            true => Err((services, "messages hold as much memory as they may")),
            false => Ok(Admitted::more(services)),
        }
    }

    /// The work of a message that was let in before: it counts, and has no limit of its own.
    fn more(services: Arc<Services>) -> Admitted {
        services.scopes.begin(usize::MAX);
        Admitted(Some(services))
    }
}

impl Admitted {
    /// The message begins now: whatever [`Opened`] it with gives its unit back.
    #[inline]
    pub(crate) fn begins(mut self) -> Arc<Services> {
        self.0.take().unwrap_or_else(|| unreachable!("it is taken here only"))
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if let Some(services) = &self.0 {
            services.scopes.end();
        }
    }
}

/// The first flow of a message, for as long as it runs: when this is dropped, the scope has ended unless it has children.
pub(crate) struct Opened<'m> {
    // Borrowed: a context is large, and would be moved here.
    pub context: &'m mut Context,
    whole: bool,
}

impl Opened<'_> {
    /// For a message that was let in ([`Admitted::begins`]).
    #[inline]
    pub(crate) fn new(context: &mut Context) -> Opened<'_> {
        Opened { context, whole: false }
    }

    /// The flow came to its end.
    #[inline]
    pub(crate) fn end(&mut self) {
        self.whole = true;
    }
}

impl Drop for Opened<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.whole {
            abandoned(self.context);
        }
        // Its voice may be the last one, and what goes on then is work of this scope.
        drop(self.context.awaited.take());
        match self.context.scope.take() {
            Some(scope) => {
                if let Some(failure) = self.context.progress.failure {
                    scope.failed(failure.status);
                }
                scope.on_connection.store(false, Release);
                scope.ended(self.whole);
            }
            None => self.context.services.scopes.end(),
        }
    }
}

#[cold]
fn abandoned(context: &Context) {
    if !context.services.scopes.is_giving_up() {
        return;
    }
    match &context.scope {
        // Named as a whole, and now: what goes on may still come to its end, and its client has no answer all the same.
        Some(scope) if scope.tally.running() > 1 => scope.log_given_up(),
        _ => {
            let place = context.place();
            log_given_up(&context.message_id(), context.service_name(), &place, "its client still waited");
        }
    }
}

/// A message that no connection waits for, from its first flow on: of a processor.
pub(crate) struct Begun {
    scope: Arc<Scope>,
    whole: bool,
}

impl Begun {
    /// Begins the scope of a message, whatever room there is.
    pub(crate) fn new(context: &mut Context) -> Begun {
        Begun::with(Admitted::more(Arc::clone(&context.services)), context)
    }

    /// Begins the scope of a message that was let in.
    pub(crate) fn with(mut admitted: Admitted, context: &mut Context) -> Begun {
        admitted.0 = None;
        let scope = Scope::new(context);
        scope.on_connection.store(false, Release);
        context.scope = Some(Arc::clone(&scope));
        Begun { scope, whole: false }
    }

    /// Its first flow has come to its end; waits for the rest.
    pub(crate) async fn outcome(mut self) -> Outcome {
        let scope = Arc::clone(&self.scope);
        self.whole = true;
        drop(self);
        scope.outcome().await
    }

    /// Runs the first flow as a task.
    pub(crate) fn spawn(self, work: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(self.run(work));
    }

    /// As [`Begun::spawn`]; `ended` is told the outcome when all work of the message has ended.
    pub(crate) fn watched(
        self,
        work: impl Future<Output = ()> + Send + 'static,
        ended: impl FnOnce(Outcome) + Send + 'static,
    ) {
        let scope = Arc::clone(&self.scope);
        tokio::spawn(async move {
            self.run(work).await;
            ended(scope.outcome().await);
        });
    }

    async fn run(mut self, work: impl Future<Output = ()>) {
        match caught(pin!(work)).await {
            Ok(()) => self.whole = true,
            Err(why) => self.scope.panicked(&why),
        }
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.scope.ended(self.whole);
    }
}

/// Work that goes on for a message beside its first flow. It ends when this is dropped.
pub struct Child {
    scope: Arc<Scope>,
    voice: Option<Voice>,
    whole: bool,
}

impl Context {
    /// The scope of the message, for what goes on beside this flow.
    pub fn scope(&mut self) -> &Arc<Scope> {
        if self.scope.is_none() {
            self.scope = Some(Scope::new(self));
        }
        self.scope.as_ref().unwrap_or_else(|| unreachable!("made just above"))
    }

    /// It goes on without its client, which has an answer if it wanted one.
    pub fn leaves_its_client(&mut self) {
        self.progress.client = Waits::Nobody;
    }

    /// A flow beside the first one has ended: what depends on how that went takes note. The status of its failure, if it failed.
    pub fn flow_ended(&self) -> Option<u16> {
        crate::runtime::receipt::note(self);
        let status = self.progress.failure?.status;
        if let Some(scope) = &self.scope {
            scope.failed(status);
        }
        self.part_of().failed(status);
        Some(status)
    }

    /// Counts a step; how many the message has taken. Without branches that costs nothing shared.
    #[inline]
    pub(crate) fn count_step(&mut self) -> u64 {
        if let Some(scope) = &self.scope {
            return scope.steps.fetch_add(1, Relaxed) + 1;
        }
        let steps = &mut self.progress.spent.steps;
        *steps = steps.saturating_add(1);
        (*steps).into()
    }

    /// Something begins that goes on beside this flow, and that may still answer the client. `what`: for the log, in a few words.
    pub fn child(&mut self, what: &'static str) -> Child {
        let voice = self.exchange.as_ref().map(Voice::new);
        self.work(what, voice)
    }

    /// As [`Context::child`], for what cannot answer: the client does not wait for its end.
    pub fn silent_child(&mut self, what: &'static str) -> Child {
        self.work(what, None)
    }

    /// As [`Context::child`], where the work of the message may have ended; `None`: it has.
    pub(super) fn last_child(&mut self, what: &'static str) -> Option<Child> {
        let place = self.location();
        let scope = Arc::clone(self.scope());
        if !scope.tally.begin_beside() {
            return None;
        }
        scope.began(what, place);
        Some(Child { scope, voice: self.exchange.as_ref().map(Voice::new), whole: false })
    }

    fn work(&mut self, what: &'static str, voice: Option<Voice>) -> Child {
        let place = self.location();
        let scope = Arc::clone(self.scope());
        scope.began(what, place);
        scope.tally.begin();
        Child { scope, voice, whole: false }
    }
}

impl Child {
    /// Does the work as a task, and ends with it.
    pub fn spawn(self, work: impl Future<Output = ()> + Send + 'static) {
        // That it panicked is logged, and part of the outcome.
        tokio::spawn(self.run(work));
    }

    /// The work came to its end, where it was no future.
    pub fn end(mut self) {
        self.whole = true;
    }

    /// Does the work here, and ends with it; `None`: it panicked, which is logged.
    pub async fn run<T>(mut self, work: impl Future<Output = T>) -> Option<T> {
        match caught(pin!(work)).await {
            Ok(result) => {
                self.whole = true;
                Some(result)
            }
            Err(why) => {
                self.scope.panicked(&why);
                if let Some(voice) = &self.voice {
                    voice.0.failed(500);
                }
                None
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Ahead of the scope: what was parked for the answer goes with its last voice.
        self.voice = None;
        self.scope.ended(self.whole);
    }
}

/// Children that bring something, for a mediator that waits for them. Those that run when this is dropped are aborted.
pub struct Children<T> {
    running: JoinSet<Option<T>>,
}

impl<T: Send + 'static> Default for Children<T> {
    fn default() -> Children<T> {
        Children { running: JoinSet::new() }
    }
}

impl<T: Send + 'static> Children<T> {
    /// Begins one.
    pub fn spawn(&mut self, child: Child, work: impl Future<Output = T> + Send + 'static) {
        self.running.spawn(child.run(work));
    }

    /// How many run.
    pub fn len(&self) -> usize {
        self.running.len()
    }

    /// Whether none runs.
    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// What the next one brings that ends; `None`: none runs.
    ///
    /// # Errors
    /// It panicked.
    pub async fn next(&mut self) -> Option<Result<T, Fault>> {
        let lost = |why: String| Fault::new("a copy of the message was lost").because(why);
        Some(match self.running.join_next().await? {
            Ok(Some(brought)) => Ok(brought),
            Ok(None) => Err(lost("its flow panicked".to_owned())),
            Err(error) => Err(lost(JoinError::to_string(&error))),
        })
    }

    /// Nothing waits for them any more; they end by themselves.
    pub fn leave(mut self) {
        self.running.detach_all();
    }
}

#[cfg(test)]
mod tests;
