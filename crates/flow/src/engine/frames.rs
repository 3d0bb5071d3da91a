//! The stack of frames: how a message enters and leaves lists, and with which lists a request or a response begins.

use super::sending::goes_on;
use crate::runtime::context::{Context, Frame, Owner};
use crate::runtime::fault::Fault;
use crate::runtime::mediator::{Entry, Flow, ListId};
use crate::runtime::progress::Part;
use std::sync::Arc;

/// Enters a list, with its fault handler and the parameters of its template.
///
/// # Errors
/// Lists are nested deeper than the setting `nesting` allows.
pub(super) fn enter(context: &mut Context, list: ListId, entry: Entry) -> Result<(), Fault> {
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

/// A list ended normally. `Some`: the flow does something else than going on behind it.
pub(super) fn leave(context: &mut Context, frame: Frame) -> Option<Flow> {
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

/// Ends the innermost list that absorbs what ends it early; `false`: there is none.
pub(super) fn absorbed(context: &mut Context) -> bool {
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

/// Whether an `aggregate` stands behind this one, in any of the lists that the message is in: it collects branches.
fn aggregates_ahead(context: &Context) -> bool {
    context.frames.iter().any(|frame| {
        let list = context.plan.list(frame.list);
        list.steps.iter().skip(frame.next as usize).any(|planned| planned.name == "aggregate")
    })
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
pub(super) fn begin_response(context: &mut Context, receive: Option<ListId>) -> bool {
    context.response = true;
    context.progress.answering = true;
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

/// Puts the fault sequence of the service that has the message on the stack of handlers, with the one of the whole configuration below it.
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
