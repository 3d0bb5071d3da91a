//! From a request that is for no proxy service to the API and the resource that serve it.

use super::cors;
use super::handlers::Next;
use crate::resource::{ApiCandidate, ApiFacts, Choice, RequestFacts, choose};
use crate::runtime::artifacts::{Cors, allowed_methods};
use crate::runtime::context::{Context, Origin, Owner};
use crate::runtime::guard::Guard;
use crate::runtime::inbound::Filter;
use crate::runtime::mediator::ListId;
use crate::runtime::plan::Plan;
use crate::runtime::request::Inbound;
use crate::runtime::services::Services;
use message::Value;
use std::iter::once;
use std::sync::Arc;
use transport::{Body, Response};

/// What serves a request.
pub(crate) enum Dispatched {
    /// No API takes it.
    Main,
    /// A resource of an API, both by number.
    Resource { api: usize, resource: usize },
    /// A sequence for requests that no resource takes.
    Handler(ListId),
    /// Answered already.
    Answer(Response),
    /// A guard is to be asked; then it is dispatched again.
    Ask(Arc<Guard>),
    /// The sequence of an inbound endpoint, by its number.
    Inbound(usize),
}

/// The name of the listeners of the bus in `binds-to`.
pub(crate) const DEFAULT_LISTENER: &str = "default";

/// Whether what is bound to these listeners serves that one; empty: those of the bus.
fn is_bound(binds_to: &[String], listener: &str) -> bool {
    match binds_to {
        [] => listener == DEFAULT_LISTENER,
        names => names.iter().any(|bound| bound == listener),
    }
}

/// The API among those that are bound to a listener, and whether one was passed over because of its transport.
fn choose_api<'a>(plan: &'a Plan, inbound: &'a Inbound, listener: &str) -> (Option<ApiCandidate<'a>>, bool) {
    let facts = ApiFacts { path: &inbound.target, host: Some(&*inbound.host), secure: inbound.secure };
    let mut denied = false;
    // Those that are left out are looked for everywhere.
    let serves = |index: usize| plan.apis.get(index).is_none_or(|api| is_bound(&api.binds_to, listener));
    let candidates = plan.api_order.candidates(&plan.api_rules, facts);
    let chosen = candidates.filter(|candidate| serves(candidate.index)).find(|candidate| {
        denied |= candidate.transport_denied;
        !candidate.transport_denied
    });
    (chosen, denied)
}

/// What says who may read the answer to a request that is refused before it is dispatched; the last counts.
pub(crate) fn cors_of<'a>(
    plan: &'a Plan,
    services: &'a Services,
    inbound: &'a Inbound,
) -> impl Iterator<Item = &'a Arc<Cors>> {
    let endpoint = inbound.through.and_then(|index| plan.inbound_endpoints.get(index));
    let own = endpoint.map(|endpoint| endpoint.name.as_str());
    let others = endpoint.is_none_or(|endpoint| !matches!(endpoint.filter, Filter::None));
    let mut listeners = own.into_iter().chain(others.then_some(DEFAULT_LISTENER));
    let chosen = listeners.find_map(|listener| choose_api(plan, inbound, listener).0);
    chosen.into_iter().flat_map(|api| once(&services.settings.cors).chain(plan.cors_of(api.index)))
}

/// Chooses API and resource among those that are bound to a listener, and sets the properties that tell the flow about it.
pub(crate) fn dispatch(plan: &Plan, context: &mut Context, listener: &str) -> Dispatched {
    let inbound = context.inbound.clone();
    let (chosen, denied) = choose_api(plan, &inbound, listener);
    if denied {
        context.properties.set("TRANSPORT_DENIED", Value::Boolean(true));
        context.properties.set("IN_TRANSPORT", Value::from(inbound.scheme()));
    }
    let Some(candidate) = chosen else {
        let named =
            plan.apis.iter().filter(|api| is_bound(&api.binds_to, listener) && api.activation.is_on());
        return match crate::http::openapi::answer_by_name(named, &inbound) {
            Some(response) => Dispatched::Answer(response),
            None => Dispatched::Main,
        };
    };
    let sub_path = candidate.sub_path.into_owned();
    let api = plan.apis.get(candidate.index);
    let is_on = api.is_some_and(|api| api.activation.is_on());
    if let Some(api) = api.filter(|_| is_on)
        && let Some(response) = crate::http::openapi::answer(api, &sub_path, &inbound)
    {
        return Dispatched::Answer(response);
    }
    let settings = std::sync::Arc::clone(&context.services.settings.cors);
    if !cors::note(&settings, context) {
        return Dispatched::Answer(Response::empty(403));
    }
    let Some(api) = api else {
        let faulty = plan.left_out.apis.get(candidate.index - plan.apis.len()).map(|(at, _)| at);
        for cors in plan.cors_of(candidate.index) {
            cors::note(cors, context);
        }
        return Dispatched::Answer(crate::http::respond::left_out(plan, &inbound, faulty));
    };
    let has_body = !context.payload.is_empty() && context.headers.get("Content-Length") != Some("0");
    let forwards =
        (inbound.method.as_str() == "OPTIONS").then(|| context.headers.get("Max-Forwards")?.parse().ok());
    let forwards: Option<u32> = forwards.flatten();
    let request = RequestFacts {
        method: inbound.method.as_str(),
        sub_path: &sub_path,
        content_type: inbound.content_type.as_deref(),
        has_body,
        user_agent: context.headers.get("User-Agent"),
        secure: inbound.secure,
        listener,
        is_last: forwards == Some(0),
    };
    let choice = choose(&api.rules, &request);
    // A CORS preflight request has no credentials.
    let asks_only = matches!(choice, Choice::Options { .. })
        && context.headers.get("Access-Control-Request-Method").is_some();
    // Of one that is stopped only who may read that it is.
    let asks_all = is_on && !asks_only;
    let handlers = api.handlers.iter().filter(|handler| asks_all || handler.is_cors());
    let resource = if let Choice::Resource { index, .. } = &choice { Some(*index) } else { None };
    for handler in handlers {
        match handler.request(resource, context) {
            None => {}
            Some(Next::Answer(response)) => return Dispatched::Answer(response),
            Some(Next::Ask(guard)) => return Dispatched::Ask(guard),
        }
    }
    if !is_on && !asks_only {
        return Dispatched::Answer(crate::http::respond::stopped(&inbound, &api.name));
    }
    // Handlers read these properties too.
    let handled = match &choice {
        Choice::Resource { .. } => true,
        Choice::NotFound => plan.sequence("_resource_mismatch_handler_").is_some(),
        Choice::MethodNotAllowed { .. } => plan.sequence("_method_not_allowed_handler_").is_some(),
        Choice::Options { .. } | Choice::BadRequest => false,
    };
    if handled && let Err(why) = set_properties(context, plan, candidate.index, &sub_path) {
        return Dispatched::Answer(crate::http::respond::text(400, why));
    }
    if handled && !matches!(choice, Choice::Resource { .. }) {
        context.attach(Arc::new(Origin(api.name.clone())));
    }
    match choice {
        Choice::Resource { index, variables } => {
            if let Some(left) = forwards.and_then(|forwards| forwards.checked_sub(1)) {
                context.headers.set("Max-Forwards", left.to_string());
            }
            context.owner = Owner::Resource(candidate.index, index);
            context.properties.set("SYNAPSE_RESOURCE", Value::from(api.resources[index].label.as_str()));
            for (name, value) in variables {
                context.properties.set(format!("uri.var.{name}"), Value::from(value));
            }
            Dispatched::Resource { api: candidate.index, resource: index }
        }
        Choice::Options { allow, .. } => {
            let mut response = Response::empty(200).with("Allow", allow.join(", "));
            let named: Vec<&str> = allow.iter().map(AsRef::as_ref).collect();
            cors::announce(context, &allowed_methods(&named), &mut response.head.headers);
            Dispatched::Answer(response)
        }
        Choice::NotFound => match plan.sequence("_resource_mismatch_handler_") {
            Some(list) => Dispatched::Handler(list),
            None => Dispatched::Answer(Response::empty(404)),
        },
        Choice::MethodNotAllowed { allow } => match plan.sequence("_method_not_allowed_handler_") {
            Some(list) => {
                context.attach(Arc::new(Allow(allow.join(", "))));
                Dispatched::Handler(list)
            }
            None => Dispatched::Answer(Response::empty(405).with("Allow", allow.join(", "))),
        },
        Choice::BadRequest => Dispatched::Answer(Response::new(400, Body::Empty)),
    }
}

/// The methods that the resources of a path take, for the answer 405 of a handler: RFC 9110 wants them named.
pub(crate) struct Allow(pub String);

/// `REST_*`, `query.param.*`.
#[allow(clippy::result_large_err)] // An answer, made once; boxing it would only move it.
fn set_properties(
    context: &mut Context,
    plan: &Plan,
    api: usize,
    sub_path: &str,
) -> Result<(), &'static str> {
    let inbound = context.inbound.clone();
    let api = &plan.apis[api];
    let text = |text: &str| Value::from(text);
    let full = match inbound.target.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => inbound.target.as_str(),
    };
    let context_path = api.rule.context.as_str();
    let properties = &mut context.properties;
    properties.set("REST_FULL_REQUEST_PATH", text(full));
    properties.set("REST_SUB_REQUEST_PATH", text(sub_path));
    properties.set("REST_METHOD", text(inbound.method.as_str()));
    properties.set("REST_API_CONTEXT", text(if context_path.is_empty() { "/" } else { context_path }));
    properties.set("REST_URL_PREFIX", Value::from(format!("{}://{}", inbound.scheme(), inbound.host)));
    properties.set("RESOURCE_PATH", text(sub_path));
    properties.set("SYNAPSE_REST_API", Value::from(api.qualified_name().as_ref()));
    properties.set("SYNAPSE_REST_API_VERSION", text(&api.version));
    properties.set("SYNAPSE_REST_API_VERSION_STRATEGY", text(api.version_strategy));
    if let Some(query) = inbound.query() {
        if !is_well_encoded(query) {
            return Err("the query is not percent-encoded well\n");
        }
        for (name, value) in message::form::pairs(query) {
            properties.set(format!("query.param.{name}"), Value::from(value));
        }
    }
    // The rest of the URL as the client wrote it: `/ctx` has none, though its sub path is `/`.
    let rest =
        if full.ends_with(sub_path) { sub_path } else { sub_path.strip_prefix('/').unwrap_or(sub_path) };
    context.axis2.set("REST_URL_POSTFIX", Value::from(rest));
    Ok(())
}

fn is_well_encoded(query: &str) -> bool {
    query
        .split('%')
        .skip(1)
        .all(|rest| rest.len() >= 2 && rest.bytes().take(2).all(|byte| byte.is_ascii_hexdigit()))
}
