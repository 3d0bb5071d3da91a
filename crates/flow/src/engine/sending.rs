//! Sending a message for good, calling a backend and going on with its answer, and when a client gets its 202 early.

use super::exchange::{KeptHeaders, Sent, send};
use super::faults::raise;
use super::frames::begin_response;
use super::split::split;
use super::{Ending, drive_to_end};
use crate::runtime::context::Context;
use crate::runtime::endpoint::{Destination, Saved};
use crate::runtime::fault::Fault;
use crate::runtime::mediator::{Branch, BranchTarget, Split};
use crate::runtime::progress::Waits;
use message::Value;

/// Sends the message for good. `None`: its answer is here, and the flow of the response begins; `Some`: the flow is over.
///
/// # Errors
/// The message could not be sent or was not answered, or it was sent more often than the setting `sends` allows.
pub(super) async fn dispatch_send(
    context: &mut Context,
    destination: Destination,
) -> Result<Option<Ending>, Fault> {
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

/// Sends the message, and goes on with the answer in its place. With `OUT_ONLY` a copy is sent beside the flow, which goes on at once.
/// `false`: this flow is over, because copies of it go on with the answers of a recipient list, one with each.
///
/// # Errors
/// As of [`send`]; a blocking call has one answer, so recipient lists are refused there.
pub(super) async fn call(context: &mut Context, mut destination: Destination) -> Result<bool, Fault> {
    if context.properties.get("OUT_ONLY").is_some_and(Value::is_true) {
        let limits = context.services.limits.clone();
        context.payload.buffer(&limits).await?;
        let child = context.silent_child("a one-way call");
        let mut copy = context.branch();
        copy.progress.client = Waits::Nobody;
        copy.leaves_its_splits();
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
        return Ok(true);
    }
    let mut saved = destination.saved.take();
    let response = context.response;
    let blocking = destination.blocking;
    // The blocking sender leaves the request's headers in place unless told otherwise.
    let keeps = destination.blocking && saved.is_none();
    let kept = if keeps { KeptHeaders::of(context) } else { None };
    let request_headers = context.request_headers;
    match send(context, destination).await? {
        Sent::Answered => {}
        Sent::Split(_) if blocking => {
            return Err(Fault::new("a blocking `call` has one answer, and a recipient list has several"));
        }
        Sent::Split(parts) => {
            let copies = parts.parts.map(move |part| called(part, saved.as_mut().map(|saved| saved.copy())));
            return split(context, Split { parts: Box::new(copies), ..parts }).await;
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
    Ok(true)
}

/// A copy for one recipient, which goes on behind the `call` with its answer.
fn called(part: Branch, saved: Option<Box<Saved>>) -> Branch {
    let target = match part.target {
        BranchTarget::Endpoint(destination) => BranchTarget::Call(Destination { saved, ..destination }),
        target => target,
    };
    Branch { target, ..part }
}

/// Whether the flow goes on behind what an endpoint answered; WSO2 does not take 202 for an answer.
pub(super) fn goes_on(context: &Context) -> bool {
    context.progress.asked.is_answered() && context.status != Some(202)
}

/// Whether the flow says itself that its message is an answer (the property `RESPONSE`).
fn is_response(context: &Context) -> bool {
    context.properties.get("RESPONSE").is_some_and(Value::is_true)
}

/// Whether the client gets its 202 before the message is sent.
pub(super) fn detaches(context: &Context, send: bool) -> bool {
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
