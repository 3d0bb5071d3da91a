//! Services that other flows of this bus call without the network (`local://services/NAME`): each such request is a message
//! of its own, in the same plan.

use super::dispatch::{find_proxy, full, panicked, serve, shed};
use crate::engine::exchange::elapsed;
use crate::runtime::context::{Client, Context, Inbound, Owner};
use crate::runtime::panics::caught;
use crate::runtime::plan::Plan;
use crate::runtime::scope::Opened;
use crate::runtime::services::LocalAnswer;
use message::{Body, Headers, Payload};
use std::pin::pin;
use std::sync::Arc;

/// See [`LocalServices`](crate::runtime::services::LocalServices).
pub(super) fn answer<'a>(
    caller: &'a Context,
    inbound: Inbound,
    headers: Headers,
    body: &mut Body,
) -> Option<LocalAnswer<'a>> {
    let (index, service_length) = service(&caller.plan, &inbound.target)?;
    let body = std::mem::take(body);
    Some(Box::pin(async move {
        let (plan, services) = (Arc::clone(&caller.plan), Arc::clone(&caller.services));
        if let Some(why) = full(&services) {
            return shed(&services, &inbound, why);
        }
        let received = inbound.received;
        let payload = Payload::arrived(body, &headers, inbound.client == Client::Rest);
        let inbound = Arc::new(Inbound { service_length, ..inbound });
        let mut context = Context::new(Arc::clone(&plan), services, inbound, headers, payload);
        context.owner = Owner::Proxy(index);
        context.progress.spent.local = caller.progress.spent.local + 1;
        let mut opened = Opened::new(context);
        let context = &mut opened.context;
        let served = caught(pin!(serve(context, &plan))).await;
        let response = served.unwrap_or_else(|why| panicked(context, &why));
        opened.end();
        plan.proxies[index].counters.record(elapsed(received), response.head.status >= 500);
        response
    }))
}

/// The service that a path names and the length of its part of the path; `None`: it does not run.
fn service(plan: &Plan, path: &str) -> Option<(usize, usize)> {
    let (index, length) = find_proxy(plan, path.strip_prefix("/services/")?)?;
    let started = plan.proxies.get(index)?.activation.is_on();
    started.then_some((index, "/services/".len() + length))
}
