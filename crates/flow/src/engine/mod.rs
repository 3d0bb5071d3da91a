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
mod faults;
pub mod file;
mod frames;
pub mod local;
mod nested;
mod queue;
pub(crate) mod screening;
mod sending;
mod split;

/// What the queue is made of: `tests/models` puts others in their place.
mod sync {
    pub use std::sync::{Condvar, Mutex, MutexGuard};
}

pub(crate) use self::faults::{raise, report_panic};
pub(crate) use self::frames::{begin_request, push_fault_handlers};
pub use self::nested::{Branched, Mark, run_branch, run_list};
pub(crate) use self::sending::is_accepted;

use self::faults::too_many_steps;
use self::frames::{absorbed, begin_response, enter, leave};
use self::sending::{call, detaches, dispatch_send};
use self::split::{enqueue, split};
use crate::runtime::context::{Context, Owner};
use crate::runtime::endpoint::Destination;
use crate::runtime::fault::Fault;
use crate::runtime::mediator::{Entry, Flow, Need, Step};
use crate::runtime::panics::caught;
use crate::runtime::progress::{Run, Waits};
use std::pin::pin;
use std::sync::Arc;

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
                match call(context, destination).await {
                    Ok(true) => Ok(()),
                    Ok(false) if absorbed(context) => Ok(()),
                    Ok(false) => return Ending::Nothing,
                    Err(fault) => Err(fault),
                }
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
            // As whoever runs the steps would: most lists are entered by a step, and most of these go on here.
            Ok(Flow::Enter(list)) => enter(context, list, Entry::default())?,
            Ok(flow) => return Ok(Some(flow)),
            Err(fault) => return Err(fault.at(planned.span)),
        }
    }
}

/// All lists have run to their ends: a proxy's target endpoint is next, if there is one. A step of the in sequence that says that
/// the message is a response (`makefault`, `RESPONSE`) changes nothing about that.
fn at_end(context: &Context) -> Flow {
    if !context.progress.answering
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

/// Takes up the flow of a message that waited somewhere (in an aggregate), without a client of its own: the answer
/// goes to the exchange of the message. To be run as a [`Child`](crate::Child) of the message's scope.
pub async fn resume(mut context: Box<Context>, first: Result<Flow, Fault>) {
    if context.exchange.is_none() {
        // Its client has got an answer while it waited.
        context.leaves_its_client();
    }
    let first = match first {
        Ok(flow) => Some(flow),
        Err(fault) => raise(&mut context, fault).map(|_| Flow::Stop),
    };
    drive_to_end(context, first).await;
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
        let failed = context.flow_ended();
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

#[cfg(test)]
mod tests;
