//! The engine: takes a message step by step through its flow.
//!
//! There is no recursion: where a message stands is a stack of frames (a list and the next step in it), which is
//! also what a `call` resumes from and what a branch of a `clone` continues with. Handlers for faults are a second
//! stack. A mediator answers with a [`Flow`]; everything that waits for a backend happens here.

pub mod addressing;
pub mod authority;
pub(crate) mod callback;
pub mod compute;
pub mod exchange;
pub mod file;
pub mod local;
mod queue;

/// What the queue is made of: `tests/models` puts others in their place.
mod sync {
    pub use std::sync::{Condvar, Mutex, MutexGuard};
}

use self::exchange::{KeptHeaders, Sent, send};
use crate::runtime::context::{Context, Frame, Functions, Owner};
use crate::runtime::endpoint::Destination;
use crate::runtime::fault::{Code, Fault, code};
use crate::runtime::mediator::{
    Branch, BranchTarget, Enqueued, Entry, Flow, ListId, Need, Parts, Split, Step,
};
use crate::runtime::panics::{Panicked, caught};
use crate::runtime::progress::{Failure, Part, Run, Waits};
use crate::runtime::scope::{Child, Exchange, Scope};
use crate::state::lock;
use message::{Value, memory};
use smallvec::SmallVec;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Most copies that one split runs at the same time; the others are made when their turn comes. Each may need a connection.
const MAX_PARALLEL: usize = 100;

/// So long parts that run one after the other keep their worker.
const TURN: Duration = Duration::from_millis(1);

/// Where so much goes on for a message already, its splits run one part after the other, each with all that it splits into:
/// splits inside of splits would multiply.
const MOST_BRANCHES: usize = 1000;

/// How deep splits of one message may stand inside of each other.
const DEEPEST_SPLIT: u8 = 32;

/// About how many bytes a copy takes while it runs, beside itself and its body: its task, a connection, what steps keep.
const RUNNING: usize = 12 << 10;

/// Most faults that one message may run into: handlers that fail may enter sequences with handlers.
const MAX_FAULTS: u16 = 1000;

/// How a flow ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The message is the answer.
    Respond,
    /// No answer; what the client gets depends on how far the flow came.
    Nothing,
    /// The client gets 202 now, and the flow goes on with this without it.
    Detach(Flow),
}

/// Runs a message until its flow ends. `first` is done before the first step. A panic ends the flow as a fault without handlers
/// does.
pub(crate) async fn drive(context: &mut Context, first: Option<Flow>) -> Ending {
    let ended = caught(pin!(advance(context, first))).await;
    ended.unwrap_or_else(|why| {
        report_panic(context, &why);
        Ending::Nothing
    })
}

/// Logs that a step panicked; the flow has failed, and no handler of it runs.
#[cold]
pub(crate) fn report_panic(context: &mut Context, why: &Panicked) {
    let place = context.plan.place(context.location());
    crate::runtime::report::panicked(&context.message_id(), context.service_name(), &place, "a step", why);
    context.progress.failure = Some(Failure::unhandled(500));
    context.frames.clear();
    context.handlers.clear();
    context.functions.clear();
}

/// As [`drive`], for a caller that catches panics itself.
pub(crate) async fn advance(context: &mut Context, first: Option<Flow>) -> Ending {
    let mut pending = first;
    loop {
        let result = match pending.take() {
            Some(flow) => Ok(flow),
            None => {
                // Many messages run through no list at all.
                let stepped = match context.frames.is_empty() {
                    true => Ok(None),
                    false => step(context, 0).await,
                };
                match stepped {
                    Ok(Some(flow)) => Ok(flow),
                    Ok(None) => {
                        context.place = None;
                        context.progress.run = Run::Complete;
                        Ok(at_end(context))
                    }
                    Err(fault) => Err(fault),
                }
            }
        };
        let flow = match result {
            Ok(flow) => flow,
            Err(fault) => match raise(context, fault) {
                Some(ending) => return ending,
                None => continue,
            },
        };
        let result = match flow {
            Flow::Next | Flow::Mediate => Ok(()),
            Flow::Stop if absorbed(context) => Ok(()),
            Flow::Stop => return Ending::Nothing,
            Flow::Enter(list) => enter(context, list, Entry::default()),
            Flow::EnterWith(list, entry) => enter(context, list, entry),
            Flow::Respond => return Ending::Respond,
            Flow::Loopback => {
                if context.response {
                    return Ending::Nothing;
                }
                context.addressing.to = None;
                match begin_response(context, None) {
                    true => Ok(()),
                    false => return Ending::Respond,
                }
            }
            Flow::Send(destination) => {
                let is_answer = destination.is_to_client() && context.response && context.is_answered();
                if !is_answer && detaches(context, true) {
                    return Ending::Detach(Flow::Send(destination));
                }
                match dispatch_send(context, destination).await {
                    Ok(Some(ending)) => return ending,
                    Ok(None) => Ok(()),
                    Err(fault) => Err(fault),
                }
            }
            Flow::Call(destination) => {
                // A blocking call goes on in the client's own time.
                if !destination.blocking && detaches(context, false) {
                    return Ending::Detach(Flow::Call(destination));
                }
                call(context, destination).await
            }
            Flow::Split(parts) => {
                if detaches(context, false) {
                    return Ending::Detach(Flow::Split(parts));
                }
                match split(context, parts).await {
                    Ok(true) => Ok(()),
                    Ok(false) if absorbed(context) => Ok(()),
                    Ok(false) => return Ending::Nothing,
                    Err(fault) => Err(fault),
                }
            }
            Flow::Enqueue(enqueued) => {
                if detaches(context, false) {
                    return Ending::Detach(Flow::Enqueue(enqueued));
                }
                match enqueue(context, enqueued) {
                    Ok(true) => Ok(()),
                    Ok(false) => return Ending::Nothing,
                    Err(fault) => Err(fault),
                }
            }
            Flow::Detach => return Ending::Detach(Flow::Next),
        };
        if let Err(fault) = result
            && let Some(ending) = raise(context, fault)
        {
            return ending;
        }
    }
}

/// Runs steps up to the next one that asks for something. `None`: only `base` frames are left.
async fn step(context: &mut Context, base: usize) -> Result<Option<Flow>, Fault> {
    if context.frames.len() <= base {
        return Ok(None);
    }
    let mut plan = Arc::clone(&context.plan);
    let time = context.services.settings.script_time;
    loop {
        // A message that a mediator put in the place of this one may have begun with another plan.
        if !Arc::ptr_eq(&plan, &context.plan) {
            plan = Arc::clone(&context.plan);
        }
        if context.frames.len() <= base {
            return Ok(None);
        }
        let Some(frame) = context.frames.last() else { return Ok(None) };
        let (id, at) = (frame.list, frame.next as usize);
        let list = plan.list(id);
        let Some(planned) = list.steps.get(at) else {
            let left = context.frames.pop().unwrap_or_else(|| unreachable!("there is a last frame"));
            if let Some(flow) = leave(context, left) {
                return Ok(Some(flow));
            }
            continue;
        };
        if planned.alone && context.progress.spent.nested == 0 && detaches(context, false) {
            return Ok(Some(Flow::Detach));
        }
        let Some(frame) = context.frames.last_mut() else { return Ok(None) };
        frame.next += 1;
        let taken = context.count_step();
        if taken > context.services.settings.steps {
            return too_many_steps(context).map(Some).map_err(|fault| fault.at(planned.span));
        }
        if planned.need.is_whole() && context.payload.is_unread() {
            let limits = context.services.limits.clone();
            match context.payload.buffer(&limits).await {
                Ok(()) => {}
                // A fault is being handled already: this one would only hide it.
                Err(_) if context.progress.failure.is_some() => context.payload.give_up(),
                Err(error) => {
                    let result: Result<Flow, Fault> = Err(Fault::from(error).at(planned.span));
                    // Its trace has the step all the same: it is the one that reads the body.
                    if context.progress.observed
                        && let Some(seen) = crate::observe::before(context, planned).await
                    {
                        crate::observe::after(&seen, planned, context, &result);
                    }
                    return result.map(Some);
                }
            }
        }
        context.place = Some(planned.span);
        let seen = match context.progress.observed {
            true => crate::observe::before(context, planned).await,
            false => None,
        };
        let mut used = compute::Taken::default();
        let mut done = match compute::here(planned, context, &mut used) {
            Some(Step::Done(result)) => Some(result),
            Some(Step::Wait(future)) => Some(match &seen {
                None => compute::waiting(planned, time, future).await,
                Some(seen) => {
                    crate::observe::timed(seen, Box::pin(compute::waiting(planned, time, future))).await
                }
            }),
            None => None,
        };
        if let Some(Ok(Flow::Mediate)) = done {
            done = compute::rest_here(planned, context);
        }
        let result = match done {
            Some(result) => result,
            None => match &seen {
                None => compute::elsewhere(context, &plan, id, at).await,
                Some(seen) => {
                    crate::observe::timed(seen, Box::pin(compute::elsewhere(context, &plan, id, at))).await
                }
            },
        };
        if let Some(seen) = seen {
            crate::observe::after(&seen, planned, context, &result);
        }
        if planned.need >= Need::Prefix {
            transport::clock::passed();
        }
        if used.ends_turn(context) {
            tokio::task::yield_now().await;
        }
        match result {
            Ok(Flow::Next) => {}
            Ok(flow) => return Ok(Some(flow)),
            Err(fault) => return Err(fault.at(planned.span)),
        }
    }
}

/// The message has used up its steps, in all its flows together. The first flow that notices logs it; the others only end.
#[cold]
fn too_many_steps(context: &mut Context) -> Result<Flow, Fault> {
    let first = context.scope.as_ref().is_none_or(|scope| scope.give_up());
    if first {
        let most = context.services.settings.steps;
        return Err(Fault::new(format!(
            "the message took more than {most} steps, in all its branches together"
        )));
    }
    context.progress.failure.get_or_insert(Failure::unhandled(500));
    context.frames.clear();
    context.handlers.clear();
    context.functions.clear();
    Ok(Flow::Stop)
}

/// How deep mediators that run lists themselves may nest.
const NESTED: u8 = 16;

/// Runs a list on the message for a mediator that goes on when it has ended (`foreach`). `false`: it ended early
/// (`drop`).
///
/// # Errors
/// A step failed; the fault handlers of the list's sequences are then still in force, for the engine. Steps that
/// would hand the message over for good are refused.
pub async fn run_list(context: &mut Context, list: ListId) -> Result<bool, Fault> {
    if context.progress.spent.nested >= NESTED {
        return Err(Fault::new(format!("loops are nested more than {NESTED} deep: does one call itself?")));
    }
    context.progress.spent.nested += 1;
    let (base, functions) = (context.frames.len(), context.functions.len());
    let result = run_above(context, list, base).await;
    context.progress.spent.nested = context.progress.spent.nested.saturating_sub(1);
    if let Ok(false) = result {
        while context.frames.len() > base {
            if context.frames.pop().is_some_and(|frame| frame.handler) {
                context.handlers.pop();
            }
        }
        context.functions.truncate(functions);
    }
    result
}

async fn run_above(context: &mut Context, list: ListId, base: usize) -> Result<bool, Fault> {
    compute::take_turns(context).await;
    enter(context, list, Entry::default())?;
    loop {
        match step(context, base).await? {
            None => return Ok(true),
            // A list inside of a mediator is never detached.
            Some(Flow::Next | Flow::Mediate | Flow::Detach) => {}
            Some(Flow::Stop) if context.frames.iter().skip(base).any(|frame| frame.absorbs) => {
                absorbed(context);
            }
            Some(Flow::Stop) => return Ok(false),
            Some(Flow::Enter(list)) => enter(context, list, Entry::default())?,
            Some(Flow::EnterWith(list, entry)) => enter(context, list, entry)?,
            Some(Flow::Call(destination)) => call(context, destination).await?,
            Some(Flow::Split(parts)) => {
                if !split(context, parts).await? {
                    return Ok(false);
                }
            }
            Some(Flow::Enqueue(enqueued)) => {
                if !enqueue(context, enqueued)? {
                    return Ok(false);
                }
            }
            Some(Flow::Send(_) | Flow::Respond | Flow::Loopback) => {
                return Err(Fault::new(
                    "inside of a loop, and in the sequence of a store, a message cannot be sent away or answered with",
                ));
            }
        }
    }
}

/// How a copy ended that its mediator waits for.
#[derive(Debug)]
pub enum Branched {
    /// It ran to the end of its list.
    Whole(Box<Context>),
    /// It ended early (`drop`): it brings nothing.
    Nothing,
    /// It failed, its fault handlers have run, and none of them answered.
    Failed(Box<Context>),
    /// It answered the client.
    Answer(Box<Context>),
}

/// Runs a list on a copy of a message, for a mediator that goes on with what the copies bring (`foreach` with a
/// collection, `scatter-gather`). Where the copy fails, its fault handlers run on it.
///
/// Boxed, so that such mediators can stand inside of each other.
pub fn run_branch(
    mut copy: Box<Context>,
    list: ListId,
) -> std::pin::Pin<Box<dyn Future<Output = Branched> + Send>> {
    Box::pin(async move {
        // What splits the copy has an exchange of its own: its branches end before this one does.
        copy.exchange = None;
        copy.frames.clear();
        copy.progress.spent.nested += 1;
        // Its list has no target endpoint behind it, and only a fault of the copy counts.
        if !copy.progress.part.is_branch() {
            copy.progress.part = Part::BRANCH;
        }
        copy.progress.failure = None;
        copy.progress.run = Run::Begun;
        let first = if copy.progress.spent.nested > NESTED {
            let fault =
                Fault::new(format!("loops are nested more than {NESTED} deep: does one call itself?"));
            raise(&mut copy, fault).map(|_| Flow::Stop)
        } else {
            Some(Flow::Enter(list))
        };
        let ending = drive(&mut copy, first).await;
        if copy.progress.observed {
            crate::observe::left(&copy);
        }
        let (exchange, awaited) = (copy.exchange.take(), copy.awaited.take());
        if let Ending::Respond = ending {
            if let Some(exchange) = exchange {
                exchange.close();
            }
            return Branched::Answer(copy);
        }
        if copy.progress.failure.is_some() {
            return Branched::Failed(copy);
        }
        if copy.progress.run == Run::Complete {
            return Branched::Whole(copy);
        }
        if let Some(awaited) = awaited {
            drop(awaited.voice);
            if let Ok(response) = awaited.answer.await {
                return Branched::Answer(response);
            }
        }
        Branched::Nothing
    })
}

/// Where a list that failed inside of [`run_list`] began: what a mediator that goes on after the failure restores.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    frames: usize,
    handlers: usize,
    functions: usize,
    nested: u8,
}

impl Mark {
    /// The state now.
    pub fn of(context: &Context) -> Mark {
        Mark {
            frames: context.frames.len(),
            handlers: context.handlers.len(),
            functions: context.functions.len(),
            nested: context.progress.spent.nested,
        }
    }

    /// Goes back to it.
    pub fn restore(self, context: &mut Context) {
        context.frames.truncate(self.frames);
        context.handlers.truncate(self.handlers);
        context.functions.truncate(self.functions);
        context.progress.spent.nested = self.nested;
    }
}

/// Takes up the flow of a message that waited somewhere (in an aggregate), without a client of its own: the answer
/// goes to the exchange of the message. To be run as a [`Child`](crate::Child) of the message's scope.
pub async fn resume(mut context: Box<Context>, first: Result<Flow, Fault>) {
    if context.exchange.is_none() {
        // Its client has got an answer while it waited.
        context.progress.client = Waits::Nobody;
    }
    let first = match first {
        Ok(flow) => Some(flow),
        Err(fault) => raise(&mut context, fault).map(|_| Flow::Stop),
    };
    drive_to_end(context, first).await;
}

/// All lists have run to their ends: a proxy's target endpoint is next, if there is one.
fn at_end(context: &Context) -> Flow {
    if !context.response
        && context.progress.failure.is_none()
        && !context.progress.part.is_branch()
        && let Owner::Proxy(index) = context.owner
        && let Some(endpoint) = &context.plan.proxies[index].endpoint
    {
        return Flow::Send(Destination {
            endpoint: None,
            receive: None,
            blocking: false,
            saved: None,
            reference: Some(Arc::clone(endpoint)),
        });
    }
    Flow::Stop
}

/// Ends the innermost list that absorbs what ends it early; `false`: there is none.
fn absorbed(context: &mut Context) -> bool {
    let Some(at) = context.frames.iter().rposition(|frame| frame.absorbs) else { return false };
    while context.frames.len() > at {
        let Some(frame) = context.frames.pop() else { break };
        if frame.handler {
            context.handlers.pop();
        }
        if frame.parameters {
            context.functions.pop();
        }
    }
    true
}

/// A list ended normally. `Some`: the flow does something else than going on behind it.
fn leave(context: &mut Context, frame: Frame) -> Option<Flow> {
    if frame.handler {
        context.handlers.pop();
    }
    if frame.parameters {
        context.functions.pop();
    }
    // A branch goes on behind its split only if a `call` of it was answered, or if a mediator there collects branches.
    if frame.branch && context.progress.part == Part::BRANCH && !aggregates_ahead(context) {
        return Some(Flow::Stop);
    }
    if frame.branch {
        context.progress.spent.splits = context.progress.spent.splits.saturating_sub(1);
    }
    None
}

fn aggregates_ahead(context: &Context) -> bool {
    context.frames.iter().any(|frame| {
        let list = context.plan.list(frame.list);
        list.steps.iter().skip(frame.next as usize).any(|planned| planned.name == "aggregate")
    })
}

fn enter(context: &mut Context, list: ListId, entry: Entry) -> Result<(), Fault> {
    if context.frames.len() >= context.services.settings.nesting {
        return Err(Fault::new(format!(
            "sequences are nested more than {} deep: does one call itself?",
            context.services.settings.nesting
        )));
    }
    if context.plan.list(list).trace && !context.progress.observed {
        crate::observe::entered(context);
    }
    // The handler of the list itself is the inner one.
    let on_error = context.plan.list(list).on_error.or(entry.on_error);
    if let Some(handler) = on_error {
        context.handlers.push(handler);
    }
    let parameters = entry.parameters.is_some();
    if let Some(values) = entry.parameters {
        context.functions.push(Arc::new(values));
    }
    let (handler, absorbs) = (on_error.is_some(), entry.absorbs);
    let calls = context.progress.calls;
    context.frames.push(Frame { list, next: 0, handler, parameters, branch: false, absorbs, calls });
    Ok(())
}

/// Starts the flow of a request: `pre-mediate`, then `list`.
pub(crate) fn begin_request(context: &mut Context, list: Option<ListId>) {
    if context.services.observers.is_on() || context.plan.traces {
        crate::observe::begin(context);
    }
    push_fault_handlers(context);
    for list in [list, context.plan.pre_mediate].into_iter().flatten() {
        // The first frames cannot exceed the nesting limit.
        let _ = enter(context, list, Entry::default());
    }
}

/// Starts the flow of a response. `false`: there is nothing to run, the response is the answer as it is.
fn begin_response(context: &mut Context, receive: Option<ListId>) -> bool {
    context.response = true;
    context.progress.resumed = goes_on(context);
    context.frames.clear();
    context.handlers.clear();
    context.functions.clear();
    push_fault_handlers(context);
    let plan = &context.plan;
    let list = receive.or(match context.owner {
        Owner::Main => Some(plan.main),
        Owner::Proxy(index) => plan.proxies[index].out_sequence,
        Owner::Resource(api, resource) => plan.apis[api].resources[resource].out_sequence,
        // WSO2: the main sequence has the answers; one that is built in has nothing for them.
        Owner::Inbound(_) => Some(plan.main).filter(|main| !plan.list(*main).is_built_in()),
    });
    for list in [list, plan.pre_mediate].into_iter().flatten() {
        let _ = enter(context, list, Entry::default());
    }
    list.is_some()
}

/// Whether the flow goes on behind what an endpoint answered; WSO2 does not take 202 for an answer.
fn goes_on(context: &Context) -> bool {
    context.progress.asked.is_answered() && context.status != Some(202)
}

pub(crate) fn push_fault_handlers(context: &mut Context) {
    let plan = &context.plan;
    let sequence = match context.owner {
        Owner::Main => None,
        Owner::Proxy(index) => plan.proxies[index].fault_sequence,
        Owner::Resource(api, resource) => plan.apis[api].resources[resource].fault_sequence,
        Owner::Inbound(index) => plan.inbound_endpoints[index].on_error,
    };
    // WSO2: a fault sequence of a proxy has none behind it.
    if sequence.is_none() || !matches!(context.owner, Owner::Proxy(_)) {
        context.handlers.push(plan.fault);
    }
    if let Some(sequence) = sequence {
        context.handlers.push(sequence);
    }
}

/// Whether the client gets its 202 before the message is sent.
fn detaches(context: &Context, send: bool) -> bool {
    let early = context.axis2_is_true("FORCE_SC_ACCEPTED")
        || (send && context.properties.get("OUT_ONLY").is_some_and(Value::is_true));
    early && !context.progress.part.is_branch() && context.progress.client == Waits::Client
}

/// Whether the client gets its 202 instead of the answer that its flow has made. A fault is told, and so is the answer of an
/// endpoint that the flow has had in the client's own time: by a blocking `call`, or as the message of an out sequence.
pub(crate) fn is_accepted(context: &Context) -> bool {
    let told = context.has_failed() || context.is_answered() && context.progress.calls == 0;
    !told && detaches(context, false)
}

async fn dispatch_send(context: &mut Context, destination: Destination) -> Result<Option<Ending>, Fault> {
    let receive = destination.receive;
    let out_only = context.properties.get("OUT_ONLY").is_some_and(Value::is_true);
    // Without an endpoint, a response goes to the client.
    if destination.is_to_client() && (context.response || is_response(context)) {
        return Ok(Some(Ending::Respond));
    }
    context.progress.spent.sends += 1;
    if context.progress.spent.sends > context.services.settings.sends {
        return Err(Fault::new(format!(
            "the message was sent {} times: does a sequence send its own answers on?",
            context.services.settings.sends
        )));
    }
    match send(context, destination).await.map_err(Fault::of_send)? {
        Sent::Answered => {}
        Sent::Split(parts) => {
            split(context, parts).await?;
            return Ok(Some(Ending::Nothing));
        }
    }
    if out_only {
        crate::runtime::report::one_way_refused(context, &context.message_id());
        return Ok(Some(Ending::Nothing));
    }
    if context.progress.written {
        return Ok(Some(Ending::Nothing));
    }
    Ok(if begin_response(context, receive) { None } else { Some(Ending::Respond) })
}

fn is_response(context: &Context) -> bool {
    context.properties.get("RESPONSE").is_some_and(Value::is_true)
}

async fn call(context: &mut Context, mut destination: Destination) -> Result<(), Fault> {
    if context.properties.get("OUT_ONLY").is_some_and(Value::is_true) {
        let limits = context.services.limits.clone();
        context.payload.buffer(&limits).await?;
        let child = context.silent_child("a one-way call");
        let mut copy = context.branch();
        copy.progress.client = Waits::Nobody;
        copy.exchange = None;
        // The log names the id of the message, not that of a copy.
        let message_id = context.message_id();
        child.spawn(async move {
            match send(&mut copy, destination).await {
                Ok(Sent::Answered) => crate::runtime::report::one_way_refused(&copy, &message_id),
                Ok(Sent::Split(parts)) => {
                    if let Err(fault) = split(&mut copy, parts).await {
                        raise(&mut copy, fault);
                        drive_to_end(copy, None).await;
                    }
                }
                Err(fault) => {
                    raise(&mut copy, fault);
                    drive_to_end(copy, None).await;
                }
            }
        });
        return Ok(());
    }
    let saved = destination.saved.take();
    let response = context.response;
    let blocking = destination.blocking;
    // The blocking sender leaves the request's headers in place unless told otherwise.
    let keeps = destination.blocking && saved.is_none();
    let kept = if keeps { KeptHeaders::of(context) } else { None };
    let request_headers = context.request_headers;
    match send(context, destination).await? {
        Sent::Answered => {}
        Sent::Split(_) => {
            return Err(Fault::new("`call` cannot use a recipient list: its answers have no order"));
        }
    }
    context.response = response;
    context.progress.part.call();
    if !blocking {
        context.progress.calls = context.progress.calls.wrapping_add(1);
        context.progress.resumed = goes_on(context);
    }
    if let Some(kept) = kept {
        kept.restore(context);
        context.request_headers = request_headers;
    }
    if let Some(saved) = saved {
        saved.restore(context).await?;
    }
    Ok(())
}

/// Why a message may not be split once more; `Ok(false)`: another branch of it has logged that, and no part of it is wanted.
fn may_split(context: &mut Context) -> Result<bool, Fault> {
    let depth = context.progress.spent.splits;
    let why = if depth >= DEEPEST_SPLIT {
        Fault::new(format!(
            "the message is split more than {DEEPEST_SPLIT} deep: does a sequence split into itself?"
        ))
    } else if depth > 0 && memory::is_short() {
        Fault {
            status: 503,
            ..Fault::new("a part of the message cannot be split: messages hold as much memory as they may")
        }
    } else {
        return Ok(!context.scope().is_given_up());
    };
    if context.scope().give_up() { Err(why) } else { Ok(false) }
}

/// Starts the branches of a split. Answers whether the original goes on.
async fn split(context: &mut Context, parts: Split) -> Result<bool, Fault> {
    if !may_split(context)? {
        return Ok(false);
    }
    let origin = Origin::of(context, &parts);
    // What a part takes out of the message may be long work.
    let time = context.services.settings.script_time;
    let crowded = context.scope().running() >= MOST_BRANCHES;
    if parts.sequential || crowded {
        let mut ahead = parts.parts;
        let mut turn = Instant::now();
        while !origin.is_given_up()
            && let Some(part) = meter::within(time, None, || ahead.next()).0
        {
            let child = origin.child(context);
            let failed = child.run(origin.run(part)).await.unwrap_or(true);
            if failed && parts.stops {
                context.properties.set("ERROR_ON_TARGET_EXECUTION", Value::Boolean(true));
                break;
            }
            // Parts that wait for nothing run in a row: between them, other tasks of the worker get their turn.
            if crowded || turn.elapsed() >= TURN {
                tokio::task::yield_now().await;
                turn = Instant::now();
            }
        }
        return Ok(parts.continue_parent);
    }
    let runners = parts.count.min(MAX_PARALLEL);
    let continues = parts.continue_parent;
    let waiting = Arc::new(Waiting {
        parts: Mutex::new(parts.parts),
        time,
        runners: AtomicUsize::new(runners),
        origin,
    });
    for _ in 0..runners {
        waiting.origin.child(context).spawn(Arc::clone(&waiting).run());
    }
    Ok(continues)
}

/// Has a copy wait for its turn in a priority executor, beside the flow; `false`: nothing of the message is wanted any more.
fn enqueue(context: &mut Context, enqueued: Enqueued) -> Result<bool, Fault> {
    if !may_split(context)? {
        return Ok(false);
    }
    let mut origin = Origin::new(context, false, false);
    // What comes behind the mediator is not the copy's.
    origin.frames.clear();
    let branch = Branch { context: enqueued.copy, target: BranchTarget::List(enqueued.list) };
    let child = context.child("a message in a priority executor");
    child.spawn(async move {
        let turn = enqueued.ticket.turn().await;
        if !origin.is_given_up() {
            let began = tokio::time::Instant::now();
            let failed = origin.run(branch).await;
            enqueued.executor.counters.record(began.elapsed(), failed);
        }
        drop(turn);
    });
    Ok(true)
}

/// The parts of a split that have not had their turn. So many runners take one after the other, each its next one when the
/// one before has ended: what a split holds depends on the runners, not on the parts.
struct Waiting {
    parts: Mutex<Parts>,
    /// So long one may take to be made.
    time: Duration,
    /// Runners that are at work.
    runners: AtomicUsize,
    origin: Origin,
}

impl Waiting {
    async fn run(self: Arc<Waiting>) {
        loop {
            // Where memory is short, one runner goes on alone, and each message holds one part at a time.
            if memory::is_short() {
                if self.runners.fetch_sub(1, Ordering::AcqRel) > 1 {
                    return;
                }
                self.runners.fetch_add(1, Ordering::AcqRel);
            }
            if self.origin.is_given_up() {
                return;
            }
            let Some(part) = meter::within(self.time, None, || lock(&self.parts).next()).0 else { return };
            let held = memory::hold(RUNNING);
            self.origin.run(part).await;
            drop(held);
            // Parts that wait for nothing take turns with each other, and with all else on this worker.
            tokio::task::yield_now().await;
        }
    }
}

/// Where a message was split: its branches begin there, and go on behind it.
struct Origin {
    scope: Arc<Scope>,
    exchange: Arc<Exchange>,
    frames: SmallVec<[Frame; 4]>,
    functions: Functions,
    handlers: SmallVec<[ListId; 4]>,
    stops: bool,
    client: Waits,
    /// How many splits its branches are inside of.
    depth: u8,
    /// See [`Split::aside`].
    aside: bool,
}

impl Origin {
    fn of(context: &mut Context, parts: &Split) -> Origin {
        Origin::new(context, parts.stops, parts.aside)
    }

    fn new(context: &mut Context, stops: bool, aside: bool) -> Origin {
        let exchange = match &context.exchange {
            // Their answers go to no client.
            _ if aside => Exchange::new().0,
            Some(exchange) => Arc::clone(exchange),
            None => {
                let (exchange, awaited) = Exchange::new();
                // This flow itself may go on and give the answer: its voice ends where it is driven.
                context.awaited = Some(awaited);
                context.exchange = Some(Arc::clone(&exchange));
                exchange
            }
        };
        Origin {
            scope: Arc::clone(context.scope()),
            exchange,
            frames: context.frames.clone(),
            functions: context.functions.clone(),
            handlers: context.handlers.clone(),
            stops,
            client: if aside { Waits::Nobody } else { context.progress.client },
            depth: context.progress.spent.splits + 1,
            aside,
        }
    }

    /// One of its branches, or what runs several of them.
    fn child(&self, context: &mut Context) -> Child {
        match self.aside {
            true => context.silent_child("a branch"),
            false => context.child("a branch"),
        }
    }

    /// No part of the message is wanted any more.
    fn is_given_up(&self) -> bool {
        self.exchange.is_shed() || self.scope.is_given_up()
    }

    /// Runs a branch; `true`: it failed.
    async fn run(&self, branch: Branch) -> bool {
        let mut copy = branch.context;
        if self.client == Waits::Nobody {
            copy.progress.client = Waits::Nobody;
        }
        copy.progress.spent.splits = self.depth;
        copy.exchange = Some(Arc::clone(&self.exchange));
        copy.frames = self.frames.clone();
        // A branch that ends is over, wherever it began.
        copy.frames.iter_mut().for_each(|frame| frame.absorbs = false);
        copy.functions = self.functions.clone();
        copy.handlers = self.handlers.clone();
        if self.stops {
            // Only a failure of its own counts.
            copy.progress.failure = None;
        }
        let first = match branch.target {
            BranchTarget::List(list) => match enter(&mut copy, list, Entry::default()) {
                Ok(()) => {
                    if let Some(frame) = copy.frames.last_mut() {
                        frame.branch = true;
                    }
                    None
                }
                Err(fault) => raise(&mut copy, fault).map(|_| Flow::Stop),
            },
            BranchTarget::Endpoint(destination) => Some(Flow::Send(destination)),
            BranchTarget::Nothing => Some(Flow::Stop),
            BranchTarget::Failed(fault) => raise(&mut copy, *fault).map(|_| Flow::Stop),
        };
        drive_to_end(copy, first).await
    }
}

/// Runs a branch, or a flow whose client has its answer already. `true`: it failed.
pub(crate) fn drive_to_end(
    mut context: Box<Context>,
    first: Option<Flow>,
) -> std::pin::Pin<Box<dyn Future<Output = bool> + Send>> {
    Box::pin(async move {
        let mut ending = drive(&mut context, first).await;
        if let Ending::Detach(flow) = ending {
            // Nothing waits here for an early answer.
            context.progress.client = Waits::Nobody;
            ending = drive(&mut context, Some(flow)).await;
        }
        // Where this flow has split itself, nothing waits here for its branches. The receiver of their answer must not be in the
        // context: that may be the answer, and would hold itself.
        let awaited = context.awaited.take();
        if context.progress.observed {
            crate::observe::left(&context);
        }
        let failed = context.progress.failure.map(|failure| failure.status);
        if let (Some(scope), Some(status)) = (&context.scope, failed) {
            scope.failed(status);
        }
        crate::runtime::receipt::note(&context);
        match (ending, context.exchange.clone()) {
            (Ending::Respond, Some(exchange)) => exchange.answer(context),
            (Ending::Respond, None) => {
                tracing::debug!(message_id = %context.message_id(), "the client has its answer already");
                compute::let_go(&mut context);
            }
            (Ending::Nothing, Some(exchange)) => {
                if let Some(status) = failed {
                    exchange.failed(status);
                }
                compute::let_go(&mut context);
            }
            (Ending::Nothing, None) | (Ending::Detach(_), _) => compute::let_go(&mut context),
        }
        drop(awaited);
        failed.is_some()
    })
}

/// Hands a fault to the innermost handler. `Some`: there is none left.
pub(crate) fn raise(context: &mut Context, mut fault: Fault) -> Option<Ending> {
    fault.place = fault.place.or(context.place);
    let mut answer_is_lost = false;
    if context.payload.is_unread() && matches!(fault.status, 400 | 413) {
        // The body cannot be had. A handler that reads it must not fail by that again.
        context.payload.give_up();
        if context.progress.asked.is_answered() {
            // It was the backend's.
            answer_is_lost = true;
            fault.status = 502;
            if matches!(fault.code, Code::Number(code::GENERAL | code::PAYLOAD)) {
                fault.code = Code::Number(code::SND_IO_ERROR_RECEIVING);
            }
        }
    }
    context.payload.read_as_empty();
    context.payload.forgive();
    crate::runtime::report::fault(context, &fault);
    let status = status_of(&fault);
    let ready_in = fault.ready_in;
    context.progress.failure = Some(Failure { status, handled: false, ready_in });
    context.frames.clear();
    context.functions.clear();
    context.progress.spent.faults = context.progress.spent.faults.saturating_add(1);
    if context.progress.spent.faults > MAX_FAULTS {
        tracing::error!(message_id = %context.message_id(), "the message ran into {MAX_FAULTS} faults: do handlers fail in a circle?");
        context.handlers.clear();
    }
    let first = context.progress.on_endpoint_error.take();
    let Some(handler) = context.handlers.pop().or(first) else {
        return Some(Ending::Nothing);
    };
    let first = first.filter(|&first| first != handler);
    let handled = handler != context.plan.fault || !context.plan.fault_is_built_in;
    context.progress.failure = Some(Failure { status, handled, ready_in });
    // WSO2: what fails behind the answer of an endpoint, other than sending, is no success, whatever it answered.
    if context.progress.resumed && answer_is_lost {
        context.set_axis2("HTTP_SC", Value::Integer(502));
    } else if context.progress.resumed && !fault.is_of_endpoint() {
        context.set_axis2("HTTP_SC", Value::Integer(500));
    }
    if context.properties.get("ERROR_CODE").is_none() {
        let properties = &mut context.properties;
        if let Code::Number(number @ 101_500..=101_599) = fault.code {
            properties.set("BASE_ERROR_CODE", Value::Integer(number.into()));
        }
        properties.set(
            "ERROR_CODE",
            match fault.code {
                Code::Number(number) => Value::Integer(number.into()),
                Code::Word(word) => Value::from(word),
            },
        );
        let first_line = fault.message.lines().next().unwrap_or("").to_owned();
        let detail = if fault.detail.is_empty() { fault.message } else { fault.detail };
        properties.set("ERROR_MESSAGE", Value::from(first_line.clone()));
        properties.set("ERROR_DETAIL", Value::from(detail));
        properties.set("ERROR_EXCEPTION", Value::from(first_line));
    }
    if let Some(state) = fault.protocol_state {
        context.properties.set("PROTOCOL_STATE_ON_FAILURE", Value::Integer(state.into()));
    }
    if fault.sending {
        context.properties.set("SENDING_FAULT", Value::Boolean(true));
    }
    let mut entered = enter(context, handler, Entry::default());
    // What the endpoint has of its own comes first; where it fails, the handler behind it has not run yet.
    if let (Ok(()), Some(first)) = (&entered, first) {
        let entry = Entry { on_error: Some(handler), ..Entry::default() };
        entered = enter(context, first, entry);
    }
    entered.err().and_then(|fault| raise(context, fault))
}

/// The status for a client whose flow failed without giving an answer.
fn status_of(fault: &Fault) -> u16 {
    match fault.code {
        _ if fault.status != 500 => fault.status,
        Code::Number(code::CONNECTION_TIMEOUT) => 504,
        Code::Number(
            code::ENDPOINT_NOT_READY
            | code::WSDL_NOT_READY
            | code::LB_NONE_READY
            | code::INDIRECT_NOT_READY
            | code::SESSION_NOT_READY,
        ) => 503,
        Code::Number(code::SESSION_FAILED) => 502,
        Code::Number(101_500..=101_599) => 502,
        _ => 500,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Compiler;
    use crate::compile::definition::{Attribute, Children, Compiled, Definition, Values};
    use crate::compile::page::{Family, Page};
    use crate::runtime::mediator::Mediator;
    use crate::testing::{self, Tested, block_on};
    use config::Element;

    const PAGE: Page =
        Page { family: Family::Splitting, semantics: "", inside: &[], needs: &[], refused: &[], faults: &[] };

    const NAMES: &[Attribute] =
        &[Attribute::optional("value", Values::Text, ""), Attribute::optional("key", Values::Key, "")];

    const fn definition(
        name: &'static str,
        children: Children,
        compile: fn(&Element, &mut Compiler<'_>) -> Compiled,
    ) -> Definition {
        Definition { name, summary: "", attributes: NAMES, children, page: PAGE, compile }
    }

    /// A mediator that does this.
    struct Does<F>(F);

    impl<F: Fn(&mut Context) -> Result<Flow, Fault> + Send + Sync> Mediator for Does<F> {
        fn need(&self) -> Need {
            Need::Nothing
        }

        fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
            (self.0)(context)
        }
    }

    fn does(what: impl Fn(&mut Context) -> Result<Flow, Fault> + Send + Sync + 'static) -> Compiled {
        Some(Box::new(Does(what)))
    }

    fn value(element: &Element) -> String {
        element.attr("value").unwrap_or_default().to_owned()
    }

    /// Notes that it ran: in the message, and for all copies of it.
    static LOG: Definition = definition("log", Children::None, |element, _| {
        let name = value(element);
        does(move |context| {
            let seen = context.properties.get("seen").map(ToString::to_string).unwrap_or_default();
            context.properties.set("seen", Value::from(format!("{seen}{name}")));
            let all = context.operation("all").map(|all| all.to_string()).unwrap_or_default();
            context.set_operation("all", Some(Value::from(format!("{all}{name}"))));
            Ok(Flow::Next)
        })
    });
    static SEQUENCE: Definition = definition("filter", Children::Mediators, |element, compiler| {
        let list = compiler.list(element, "inside");
        does(move |_| Ok(Flow::Enter(list)))
    });
    static NAMED: Definition = definition("sequence", Children::None, |element, compiler| {
        let sequence = compiler.sequence(element, "key")?;
        does(move |context| Ok(Flow::Enter(sequence.resolve(context)?)))
    });
    static FAILS: Definition = definition("throwError", Children::None, |element, _| {
        let name = value(element);
        does(move |_| Err(Fault::new(name.clone())))
    });
    static DROP: Definition = definition("drop", Children::None, |_, _| does(|_| Ok(Flow::Stop)));
    static RESPOND: Definition = definition("respond", Children::None, |_, _| does(|_| Ok(Flow::Respond)));
    /// Makes as many copies as `value` says; each notes how many parts were made before it ran.
    static SPLIT: Definition = definition("clone", Children::Mediators, |element, compiler| {
        let list = compiler.list(element, "parts");
        let (count, how) = {
            let text = value(element);
            let (count, how) = text.split_once(' ').unwrap_or((&text, ""));
            (count.parse::<usize>().expect("a number"), how.to_owned())
        };
        does(move |context| {
            let mut original = context.branch();
            let made = Arc::new(AtomicUsize::new(0));
            let parts = (0..count).map(move |index| {
                let mut copy = original.branch();
                copy.properties.set("index", Value::Integer(index as i64));
                made.fetch_add(1, Ordering::Relaxed);
                copy.attach(Arc::clone(&made));
                Branch { context: copy, target: BranchTarget::List(list) }
            });
            Ok(Flow::Split(Split {
                parts: Box::new(parts),
                count,
                continue_parent: how.contains("on"),
                sequential: how.contains("one"),
                stops: how.contains("stops"),
                aside: false,
            }))
        })
    });
    /// Fails in the part of this number.
    static FAILS_AT: Definition = definition("switch", Children::None, |element, _| {
        let at: i64 = value(element).parse().expect("a number");
        does(move |context| match context.properties.get("index").and_then(Value::as_integer) {
            Some(index) if index == at => Err(Fault::new("this part")),
            _ => Ok(Flow::Next),
        })
    });

    fn tested(mediators: &str) -> Tested {
        let definitions = vec![&LOG, &SEQUENCE, &FAILS, &DROP, &RESPOND, &SPLIT, &FAILS_AT, &NAMED];
        let registry = testing::registry(definitions);
        testing::main(&registry, mediators)
    }

    #[test]
    fn steps_run_in_order_through_lists_and_back() {
        for (mediators, seen, how) in [
            ("<log value='a'/><log value='b'/>", "ab", "nothing"),
            ("<log value='a'/><filter><log value='b'/><filter/></filter><log value='c'/>", "abc", "nothing"),
            ("<filter><log value='a'/><drop/><log value='x'/></filter><log value='x'/>", "a", "nothing"),
            ("<filter><log value='a'/><respond/></filter><log value='x'/>", "a", "respond"),
        ] {
            let end = tested(mediators).run(&[], "");
            assert_eq!((end.property("seen").as_deref(), end.how), (Some(seen), how), "{mediators}");
        }
    }

    #[test]
    fn faults_go_from_the_inner_handler_to_the_outer_ones() {
        for (inner, seen, message) in [
            ("", "ai", "first"),
            ("<throwError value='again'/>", "aio", "first"),
            ("<filter><drop/></filter><log value='x'/>", "ai", "first"),
        ] {
            let text = format!(
                "<log value='a'/><sequence key='s'/><log value='x'/><!--top-->\
                 <sequence name='s' onError='inner'><throwError value='first'/></sequence>\
                 <sequence name='inner'><log value='i'/>{inner}</sequence><sequence name='fault'><log value='o'/></sequence>"
            );
            let end = tested(&text).run(&[], "");
            assert_eq!(end.property("seen").as_deref(), Some(seen), "{inner}");
            assert_eq!(end.property("ERROR_MESSAGE").as_deref(), Some(message), "the first one stays");
            assert_eq!(end.context.progress.failure.map(|failure| failure.status), Some(500));
        }
    }

    #[test]
    fn endless_flows_end() {
        let definitions = vec![&LOG, &SEQUENCE, &DROP];
        let registry = testing::registry(definitions);
        let deep = format!("{}{}", "<filter>".repeat(20), "</filter>".repeat(20));
        let few = |services: &mut crate::Services| {
            services.settings.nesting = 10;
            services.settings.steps = 5;
        };
        let end = testing::main_with(&registry, &deep, few).run(&[], "");
        assert!(end.fault().is_some_and(|fault| fault.contains("more than 5 steps")), "{:?}", end.fault());
        let nesting = |services: &mut crate::Services| services.settings.nesting = 10;
        let end = testing::main_with(&registry, &deep, nesting).run(&[], "");
        assert!(end.fault().is_some_and(|fault| fault.contains("more than 10 deep")), "{:?}", end.fault());
    }

    #[test]
    fn parts_are_made_when_their_turn_comes_and_all_of_them_run() {
        let text = "<clone value='1000 on'><log value='.'/></clone><log value='behind'/>";
        let tested = tested(text);
        let end = tested.run(&[], "");
        // The message goes on at once; its parts run as tasks, and ended with their runtime here.
        assert_eq!(end.property("seen").as_deref(), Some("behind"));
        let all = |response: Option<Value>| response.map(|all| all.to_string()).unwrap_or_default();
        for (text, ran) in [
            ("<clone value='250 one'><log value='.'/></clone>", 250),
            ("<clone value='5 one stops'><switch value='2'/><log value='.'/></clone>", 2),
            ("<clone value='5 one'><switch value='2'/><log value='.'/></clone>", 4),
            ("<clone value='0 one'><log value='.'/></clone>", 0),
        ] {
            let end = self::tested(text).run(&[], "");
            assert_eq!(all(end.context.operation("all")).len(), ran, "{text}");
        }
    }

    /// A sequence that splits into itself would take all memory of the process, however little each copy takes.
    #[test]
    fn splits_inside_of_splits_end() {
        // What a split does, how many of the message's flows run at most, and what is logged.
        for (split, most) in [("2", 1100), ("200", 1300), ("2 one", 40), ("2 on", 1100)] {
            let text = format!(
                "<sequence key='s'/><!--top--><sequence name='s'><clone value='{split}'><sequence key='s'/></clone></sequence>"
            );
            let tested = tested(&text);
            let (lines, ()) = testing::logged("busbar", || {
                block_on(async {
                    let mut context = Box::new(tested.context(&[], ""));
                    let main = context.plan.main;
                    begin_request(&mut context, Some(main));
                    let scope = Arc::clone(context.scope());
                    drive_to_end(context, None).await;
                    while scope.running() > 1 {
                        assert!(scope.running() <= most, "{split}: {} run", scope.running());
                        tokio::task::yield_now().await;
                    }
                });
            });
            let reported = lines.iter().filter(|line| line.contains("split more than 32 deep")).count();
            assert_eq!((reported, lines.len()), (1, 1), "{split}: {lines:?}");
        }
        // The failure handler of a part splits again: a fault begins no new depth.
        let text = "<sequence key='s'/><!--top--><sequence name='s' onError='s'><clone value='2'><throwError value='no'/></clone></sequence>";
        assert_eq!(tested(text).ask("POST", "/", &[], "").status, 500);
    }

    #[test]
    fn parts_one_behind_the_other_are_not_deep() {
        let stage = "<clone value='2 on'><log value='.'/></clone>";
        let response = tested(&format!("{}<respond/>", stage.repeat(100))).ask("POST", "/", &[], "");
        assert_eq!(response.status, 200, "{response:?}");
    }

    #[test]
    fn branches_share_the_steps_of_their_message() {
        let few = |services: &mut crate::Services| services.settings.steps = 5000;
        let definitions = vec![&LOG, &SPLIT];
        let registry = testing::registry(definitions);
        for (split, how) in [("1000", ""), ("1000", " one")] {
            let text = format!("<clone value='{split}{how}'>{}</clone>", "<log value=''/>".repeat(10));
            let tested = testing::main_with(&registry, &text, few);
            let (lines, response) = testing::logged("busbar", || tested.ask("POST", "/", &[], ""));
            assert_eq!(response.status, 500, "{response:?}");
            assert!(lines.len() == 1 && lines[0].contains("more than 5000 steps"), "{lines:?}");
        }
    }

    /// As many runners as may be, each with one part at a time.
    #[test]
    fn so_many_parts_exist_at_a_time() {
        let tested = tested("<clone value='1000'><respond/></clone>");
        block_on(async {
            let mut context = tested.context(&[], "");
            let main = context.plan.main;
            begin_request(&mut context, Some(main));
            assert!(matches!(advance(&mut context, None).await, Ending::Nothing));
            let awaited = context.awaited.take().expect("its parts may answer");
            drop(awaited.voice);
            let response = awaited.answer.await.expect("one does");
            let made = response.attached::<AtomicUsize>().expect("it was left there").load(Ordering::Relaxed);
            assert!(made <= MAX_PARALLEL, "{made} were made before the first answered");
        });
    }

    /// A flow whose client has its 202 splits itself, and is the one that answers.
    #[test]
    fn an_answer_that_nobody_waits_for_does_not_hold_itself() {
        let tested = tested("<clone value='1 on'><drop/></clone><respond/>");
        block_on(async {
            let mut context = Box::new(tested.context(&[], ""));
            let main = context.plan.main;
            begin_request(&mut context, Some(main));
            context.progress.client = Waits::Nobody;
            let held = Arc::new(());
            context.hold(Arc::<()>::clone(&held));
            drive_to_end(context, None).await;
            // The branch has its turn.
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            assert_eq!(Arc::strong_count(&held), 1);
        });
    }

    #[test]
    fn a_client_is_told_when_nobody_can_answer_any_more() {
        for (text, status) in [
            ("<clone value='3'><drop/></clone>", 202),
            ("<clone value='3'><throwError value='no'/></clone>", 500),
            ("<clone value='300'><switch value='299'/><drop/></clone>", 500),
            ("<clone value='3'><respond/></clone>", 200),
        ] {
            let tested = tested(text);
            assert_eq!(tested.ask("POST", "/", &[], "").status, status, "{text}");
            assert_eq!(tested.bus.services().scopes.open(), 0, "{text}");
        }
    }
}
