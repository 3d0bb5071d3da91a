//! Faults of a flow: a fault goes to the innermost handler; a panic, and a message that has used up its steps, end the flow.

use super::Ending;
use super::frames::enter;
use crate::runtime::context::Context;
use crate::runtime::fault::{Code, Fault, code};
use crate::runtime::mediator::{Entry, Flow};
use crate::runtime::panics::Panicked;
use crate::runtime::progress::Failure;
use message::Value;

/// Most faults that one message may run into: handlers that fail may enter sequences with handlers.
const MAX_FAULTS: u16 = 1000;

/// Hands a fault to the innermost handler. `Some`: there is none left.
pub(crate) fn raise(context: &mut Context, mut fault: Fault) -> Option<Ending> {
    fault.place = fault.place.or(context.place);
    if context.payload.is_unread() && (matches!(fault.status, 400 | 413) || fault.is_of_answer()) {
        // The body cannot be had. A handler that reads it must not fail by that again.
        context.payload.give_up();
        if context.is_answered() {
            fault = fault.of_answer();
        }
    }
    let answer_is_lost = fault.is_of_answer();
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
        tracing::error!(message_id = %context.message_id(), place = context.place(), "the message ran into {MAX_FAULTS} faults: do handlers fail in a circle?");
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

/// Logs that a step panicked; the flow has failed, and no handler of it runs.
#[cold]
pub(crate) fn report_panic(context: &mut Context, why: &Panicked) {
    let place = context.place();
    crate::runtime::report::panicked(&context.message_id(), context.service_name(), &place, "a step", why);
    context.progress.failure = Some(Failure::unhandled(500));
    context.frames.clear();
    context.handlers.clear();
    context.functions.clear();
}

/// The message has used up its steps, in all its flows together. The first flow that notices logs it; the others only end.
#[cold]
pub(super) fn too_many_steps(context: &mut Context) -> Result<Flow, Fault> {
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
