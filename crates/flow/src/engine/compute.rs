//! Steps that compute for long leave their worker: a worker carries hundreds of connections, which must not wait for one
//! script or stylesheet.
//!
//! Short work stays where it is, since handing it over costs more than doing it. So a step first runs on the worker with a
//! small number of units ([`meter::inline`]). Where it uses them up it is broken off and begun anew on a *compute thread*,
//! with a time instead of units and a flag that ends it when its flow is gone. Each step remembers the size of
//! message from which that happened ([`Load`]) and sends such messages there at once, until one of them was short. Steps that
//! cannot be begun anew say where they run ([`Moves`]).
//!
//! What moves is the whole [`Context`]: nothing of it is shared meanwhile, what it holds is held by the thread that runs it, and if
//! the client goes away it ends with the run, on the compute thread.
//!
//! The threads are few and of low priority, what waits for them has a bound in number and in time; what is beyond is shed
//! with 503. Parts of a message in progress are not shed, nor messages that an endpoint was asked for, nor those whose clients have their 202
//! or that have none: they wait as many as they are (splits and `limits.flows` bound that) and until it is their turn, or the client goes away.
//! Each kind of them waits in a line of its own, and the lines take turns ([`Line`]).

use super::queue::{Line, Queue};
use crate::runtime::context::Context;
use crate::runtime::fault::Fault;
use crate::runtime::load::{INLINE, LARGE, size_of, turn_is_over};
use crate::runtime::mediator::{Flow, ListId, Moves, Need, Step, Waiting};
use crate::runtime::plan::{Plan, Planned};
use crate::runtime::progress::Waits;
use crate::runtime::services::{Services, Settings};
use meter::{Cancel, Run, Stop, Used};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Up to this size no expression takes long, whatever it does with all pairs of what there is, in bytes.
const SMALL: u32 = 8 << 10;

/// Stack of a compute thread, in bytes: as much as that of a worker.
const STACK: usize = 2 << 20;

/// So many bytes that work always moves: what takes long however small the message is.
pub const ALWAYS: usize = 1 << 40;

/// How far a compute thread stands behind the workers, which answer in microseconds.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// What a step has taken of its worker.
#[derive(Clone, Copy, Default)]
pub(crate) struct Taken {
    /// Bytes of the message that it may have read.
    size: u32,
    /// Units that it used.
    units: u64,
}

impl Taken {
    /// Takes note of it; whether others on the worker should have their turn now.
    #[inline]
    pub(crate) fn ends_turn(self, context: &mut Context) -> bool {
        turn_is_over(context, self.size, self.units)
    }
}

/// Runs a step on this worker. `None`: it takes too long for that, and has changed nothing.
pub(crate) fn here<'a>(
    planned: &'a Planned,
    context: &'a mut Context,
    taken: &mut Taken,
) -> Option<Step<'a>> {
    let load = &planned.load;
    if load.moves == Moves::Never {
        let time = context.services.settings.script_time;
        let (step, used) = meter::within(time, None, || planned.mediator.run(context));
        taken.units = used.units;
        return Some(match (step, used.stopped) {
            (Step::Done(Ok(_)), Some(stop)) => Step::Done(Err(broken_off(planned, stop))),
            (step, _) => step,
        });
    }
    let size = size_of(planned.need, context);
    if load.is_long(size) {
        return None;
    }
    let run = Run::inline(INLINE);
    let step = planned.mediator.run(context);
    *taken = Taken { size, units: run.units() };
    if let Some(stop) = run.stopped() {
        load.was_stopped(stop, size);
        return None;
    }
    Some(step)
}

/// As [`here`], for the part of a step behind what it waited for.
pub(crate) fn rest_here(planned: &Planned, context: &mut Context) -> Option<Result<Flow, Fault>> {
    let size = size_of(planned.need, context);
    if planned.load.is_long(size) {
        return None;
    }
    let run = Run::inline(INLINE);
    let result = planned.mediator.mediate(context);
    if let Some(stop) = run.stopped() {
        planned.load.was_stopped(stop, size);
        return None;
    }
    Some(result)
}

/// Lets others on the worker have their turn where this flow has had its own: for what goes through many things of a message.
pub(crate) async fn take_turns(context: &mut Context) {
    if Taken::default().ends_turn(context) {
        tokio::task::yield_now().await;
    }
}

/// A step that waits; what it computes between its waits may take so long in all.
pub(crate) async fn waiting(planned: &Planned, time: Duration, mut step: Waiting<'_>) -> Result<Flow, Fault> {
    let mut used = Duration::ZERO;
    std::future::poll_fn(move |cx| {
        let (polled, used_up) = meter::within_rest(time, &mut used, None, || step.as_mut().poll(cx));
        match (polled, used_up.stopped) {
            (Poll::Ready(Ok(_)), Some(stop)) => Poll::Ready(Err(broken_off(planned, stop))),
            (polled, _) => polled,
        }
    })
    .await
}

/// Whether reading the body of a message is too much for a worker.
#[must_use]
pub fn is_large(context: &Context) -> bool {
    size_of(Need::Whole, context) >= LARGE
}

/// Does a part of a step that may be long work and changes nothing, for steps that wait: on this worker where it is short, else on
/// a compute thread. What reads the body of a large message ([`is_large`]) is not short.
///
/// # Errors
/// Those of `work`; it took too long; no compute thread was free.
pub async fn work_out<T: Send + 'static>(
    context: &mut Context,
    work: impl Fn(&mut Context) -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    if !is_large(context) {
        return work_out_beside(context, work).await;
    }
    let (result, used) = Box::pin(moved(context, work)).await?;
    in_bounds(result, used)
}

/// As [`work_out`], for work that reads nothing of the message: its size says nothing about how long that takes.
///
/// # Errors
/// Those of `work`; it took too long; no compute thread was free.
pub async fn work_out_beside<T: Send + 'static>(
    context: &mut Context,
    work: impl Fn(&mut Context) -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let (result, used) = meter::inline(INLINE, || work(context));
    if used.stopped.is_none() {
        return result;
    }
    let (result, used) = Box::pin(moved(context, work)).await?;
    in_bounds(result, used)
}

/// What an endpoint works out of a message before it is sent, on this worker, for as long as a step may take.
///
/// # Errors
/// Those of `work`, or it took too long.
pub(crate) fn in_time<T>(
    context: &mut Context,
    work: impl FnOnce(&mut Context) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let run = Run::within(context.services.settings.script_time);
    let result = work(context);
    match run.stopped() {
        Some(stop) if result.is_ok() => Err(stop.into()),
        _ => result,
    }
}

/// As [`in_time`], for work that reads the body: on a compute thread, unless the body is small. Unlike a step it is never begun
/// anew, since it changes the message as it goes.
///
/// # Errors
/// Those of `work`; it took too long; no compute thread was free.
pub(crate) async fn once<T: Send + 'static>(
    context: &mut Context,
    work: impl FnOnce(&mut Context) -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    once_on(context, 0, work).await
}

/// As [`once`], for work that has so many bytes beside those of the message to go through.
///
/// # Errors
/// Those of `work`; it took too long; no compute thread was free.
pub async fn once_on<T: Send + 'static>(
    context: &mut Context,
    more: usize,
    work: impl FnOnce(&mut Context) -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let size = size_of(Need::Whole, context) as usize;
    if size.saturating_add(more) >= SMALL as usize {
        let (result, used) = Box::pin(moved(context, work)).await?;
        return in_bounds(result, used);
    }
    in_time(context, work)
}

/// As [`once_on`], for work that takes no longer than there are bytes to go through: writing a message, putting its parts
/// together. It stays on the worker where that takes less than about a millisecond.
///
/// # Errors
/// Those of `work`; it took too long; no compute thread was free.
pub async fn by_size<T: Send + 'static>(
    context: &mut Context,
    more: usize,
    work: impl FnOnce(&mut Context) -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    if is_large_with(context, more) {
        let (result, used) = Box::pin(moved(context, work)).await?;
        return in_bounds(result, used);
    }
    in_time(context, work)
}

/// Whether a message, with so many bytes beside it, is too much for a worker to go through.
pub(crate) fn is_large_with(context: &Context, more: usize) -> bool {
    (size_of(Need::Whole, context) as usize).saturating_add(more) >= LARGE as usize
}

/// Lets go of what a message holds that has come to its end. Where that is much, it takes longer than a worker has.
pub(crate) fn let_go(context: &mut Context) {
    if !context.progress.heavy {
        return;
    }
    let payload = std::mem::take(&mut context.payload);
    let services = Arc::clone(&context.services);
    let mut held = Box::new(Context::new(
        Arc::clone(&context.plan),
        Arc::clone(&services),
        Arc::clone(&context.inbound),
        message::Headers::new(),
        payload,
    ));
    held.properties = std::mem::take(&mut context.properties);
    held.variables = std::mem::take(&mut context.variables);
    let pool = &Compute::of(&services).0;
    let job = Job {
        number: pool.next.fetch_add(1, Relaxed),
        message: held,
        cancel: Cancel::default(),
        run: Box::new(drop),
        runtime: Handle::try_current().ok(),
    };
    // Where there is no thread, it ends here.
    drop(pool.submit(job, &services.settings, Line::Over));
}

/// The result of a run, unless it was broken off and did not notice.
fn in_bounds<T>(result: Result<T, Fault>, used: Used) -> Result<T, Fault> {
    match used.stopped {
        Some(stop) if result.is_ok() => Err(stop.into()),
        _ => result,
    }
}

/// Runs a step on a compute thread and waits for it.
///
/// # Errors
/// The step's own; it took too long; no compute thread was free.
pub(crate) async fn elsewhere(
    context: &mut Context,
    plan: &Arc<Plan>,
    list: ListId,
    at: usize,
) -> Result<Flow, Fault> {
    let Some(planned) = plan.list(list).steps.get(at) else { return Err(Fault::new("the step is gone")) };
    // A body that is not received would go along, and with it the one who notices that the client goes away.
    let arrived = context.payload.stream_mut().is_some_and(|body| body.is_complete());
    if context.payload.is_unread() && (planned.need >= Need::Prefix || arrived) {
        context.receive_body().await?;
    }
    let size = size_of(planned.need, context);
    let run = Arc::clone(plan);
    let work = move |context: &mut Context| match run.list(list).steps.get(at) {
        Some(planned) => planned.mediator.mediate(context),
        None => Err(Fault::new("the step is gone")),
    };
    let (result, used) = moved(context, work).await?;
    planned.load.took(size, used.units);
    match (result, used.stopped) {
        (Ok(_), Some(stop)) => Err(broken_off(planned, stop)),
        (result, _) => result,
    }
}

/// Does work on a compute thread and waits for it. A panic goes on here.
async fn moved<T: Send + 'static>(
    context: &mut Context,
    work: impl FnOnce(&mut Context) -> Result<T, Fault> + Send + 'static,
) -> Result<(Result<T, Fault>, Used), Fault> {
    let services = Arc::clone(&context.services);
    let compute = Compute::of(&services);
    let (pool, settings) = (&compute.0, &services.settings);
    let cancel = Cancel::default();
    // What an endpoint was asked for is done: to refuse the message then would have its client ask for it again.
    let progress = &context.progress;
    let line = if progress.part.is_branch() || progress.client == Waits::Nobody {
        Line::Apart
    } else if progress.asked.was_sent() {
        Line::Begun
    } else {
        Line::New
    };
    let stays = line != Line::New;
    let (reply, mut done) = oneshot::channel();
    let number = pool.next.fetch_add(1, Relaxed);
    let (time, cancelled) = (settings.script_time, cancel.clone());
    let run = move |mut message: Box<Context>| {
        let (result, used) =
            meter::within(time, Some(&cancelled), || catch_unwind(AssertUnwindSafe(|| work(&mut message))));
        // Where the receiver is gone, the message ends here, within the runtime of its worker.
        let _ = reply.send((message, result, used));
    };
    let job = Job {
        number,
        message: context.take(),
        cancel: cancel.clone(),
        run: Box::new(run),
        runtime: Handle::try_current().ok(),
    };
    // Where this future was dropped, the run ends, or does not begin.
    let mut guard = Ends { pool, number, cancel, stays, over: false };
    if let Err(job) = pool.submit(job, settings, line) {
        context.put(job.message);
        return Err(pool.refuse(format!(
            "{} steps wait for a compute thread already (limits.compute_queue)",
            settings.compute_queue
        )));
    }
    let in_time = if stays {
        Ok((&mut done).await)
    } else {
        tokio::time::timeout(settings.compute_wait, &mut done).await
    };
    let done = match in_time {
        Ok(done) => done,
        // It has not begun: the message comes back as it was.
        Err(_) if let Some(job) = pool.withdraw(number) => {
            context.put(job.message);
            return Err(pool.refuse(format!(
                "no compute thread was free within {} s (limits.compute_wait)",
                settings.compute_wait.as_secs_f64()
            )));
        }
        Err(_) => done.await,
    };
    guard.over = true;
    let Ok((message, result, used)) = done else {
        return Err(Fault::new("the compute thread ended without a result"));
    };
    context.put(message);
    context.progress.heavy = true;
    match result {
        Ok(result) => Ok((result, used)),
        Err(panic) => resume_unwind(panic),
    }
}

fn broken_off(planned: &Planned, stop: Stop) -> Fault {
    Fault::new(format!("{} was broken off: {stop}", planned.name))
}

/// Ends a run when the one who waits for it is gone.
struct Ends<'p> {
    pool: &'p Pool,
    number: u64,
    cancel: Cancel,
    /// It is not shed. Of such runs many may wait and end together, as parts of a message do: it is not looked for among them, but let go
    /// of when its turn comes.
    stays: bool,
    /// There is a result.
    over: bool,
}

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.cancel.cancel();
            if !self.stays {
                drop(self.pool.withdraw(self.number));
            }
        }
    }
}

/// The compute threads of a process, made when they are first needed.
pub struct Compute(Arc<Pool>);

impl Default for Compute {
    fn default() -> Compute {
        Compute(Arc::new(Pool {
            queue: Queue::new(),
            next: AtomicU64::new(0),
            runs: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }))
    }
}

/// How much the compute threads have to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Steps that run.
    pub running: usize,
    /// Steps that wait for a thread.
    pub waiting: usize,
    /// Steps that run or have run.
    pub runs: u64,
    /// Steps that were shed.
    pub refused: u64,
}

impl Compute {
    /// Those of the process.
    pub fn of(services: &Services) -> Arc<Compute> {
        services.kept.get()
    }

    /// The figures of now.
    pub fn figures(&self) -> Figures {
        let (running, waiting) = self.0.queue.load();
        Figures { running, waiting, runs: self.0.runs.load(Relaxed), refused: self.0.refused.load(Relaxed) }
    }
}

impl Drop for Compute {
    fn drop(&mut self) {
        self.0.queue.close();
    }
}

struct Pool {
    queue: Queue<Job>,
    /// The number of the next job.
    next: AtomicU64,
    runs: AtomicU64,
    refused: AtomicU64,
}

struct Job {
    number: u64,
    message: Box<Context>,
    cancel: Cancel,
    /// Does the work and sends the message back with what came of it.
    run: Box<dyn FnOnce(Box<Context>) + Send>,
    /// That of the worker: what the message holds may belong to it.
    runtime: Option<Handle>,
}

impl Pool {
    /// Queues a job; it comes back if it is new and too many wait, or if there is no thread.
    fn submit(self: &Arc<Pool>, job: Job, settings: &Settings, line: Line) -> Result<(), Box<Job>> {
        let threads = settings.compute_threads.max(1);
        self.queue
            .submit(job, line, threads, settings.compute_queue, || self.begin_thread())
            .map_err(Box::new)
    }

    /// Begins a thread; `false`: there is none to be had.
    fn begin_thread(self: &Arc<Pool>) -> bool {
        let pool = Arc::clone(self);
        #[cfg(feature = "simulation")]
        if transport::simulation::is_installed() {
            transport::simulation::spawn(pool.work_as_task());
            return true;
        }
        let thread = std::thread::Builder::new().name("compute".into()).stack_size(STACK);
        thread.spawn(move || pool.work()).is_ok()
    }

    /// A thread of a simulated world: its jobs take some time of the paused clock. It ends when there is nothing to do.
    #[cfg(feature = "simulation")]
    async fn work_as_task(self: Arc<Pool>) {
        while let Some(job) = self.queue.next_now() {
            tokio::time::sleep(Duration::from_millis(job.number * 97 % 40)).await;
            self.runs.fetch_add(1, Relaxed);
            job.run();
            self.queue.done();
        }
    }

    /// Takes a job back that has not begun.
    fn withdraw(&self, number: u64) -> Option<Job> {
        self.queue.withdraw(|job| job.number == number)
    }

    fn refuse(&self, why: String) -> Fault {
        self.refused.fetch_add(1, Relaxed);
        Fault { status: 503, ..Fault::new(format!("too busy: {why}")) }
    }

    /// What a thread does.
    fn work(&self) {
        #[cfg(target_os = "linux")]
        // Where that is not allowed, it has the priority of all others.
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
        while let Some(job) = self.queue.next() {
            self.runs.fetch_add(1, Relaxed);
            job.run();
            self.queue.done();
        }
    }
}

impl Job {
    fn run(self) {
        let _runtime = self.runtime.as_ref().map(Handle::enter);
        match self.cancel.is_cancelled() {
            false => (self.run)(self.message),
            // Within the runtime of its worker.
            true => drop(self.message),
        }
    }
}
