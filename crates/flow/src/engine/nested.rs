//! Lists that a mediator runs itself and goes on after: on the message (`run_list`), or on a copy of it (`run_branch`).

use super::faults::raise;
use super::frames::{absorbed, enter};
use super::sending::call;
use super::split::{enqueue, exchange_of, split};
use super::{Ending, compute, drive, step};
use crate::runtime::context::Context;
use crate::runtime::fault::Fault;
use crate::runtime::mediator::{Entry, Flow, ListId};
use crate::runtime::progress::{Failure, Part, Run};

/// How deep mediators that run lists themselves may nest.
const NESTED: u8 = 16;

/// Runs a list on the message for a mediator that goes on when it has ended (`foreach`). `false`: it ended early
/// (`drop`).
///
/// # Errors
/// A step failed; the fault handlers of the list's sequences are then still in force, for the engine. Steps that
/// would hand the message over for good are refused, but for the answer to the client.
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

/// Runs a list until only the `base` frames below it are left. `false`: it ended early.
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
            Some(Flow::Call(destination)) => {
                if !call(context, destination).await? {
                    return Ok(false);
                }
            }
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
            Some(Flow::Respond) => {
                answer(context).await?;
                return Ok(false);
            }
            Some(Flow::Send(_) | Flow::Loopback) => {
                return Err(Fault::new(
                    "inside of a loop, and in the sequence of a store, a message cannot be sent away",
                ));
            }
        }
    }
}

/// Answers the client with the message as it is now. The flow goes on; another answer of it is dropped.
async fn answer(context: &mut Context) -> Result<(), Fault> {
    context.receive_body().await?;
    let exchange = exchange_of(context);
    let mut copy = context.branch();
    copy.exchange = None;
    exchange.answer(copy);
    Ok(())
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
            // A part of it has failed, and its fault handlers have run there.
            if let Some(status) = exchange.and_then(|exchange| exchange.failure()) {
                copy.progress.failure = Some(Failure::unhandled(status));
                return Branched::Failed(copy);
            }
        }
        Branched::Nothing
    })
}
