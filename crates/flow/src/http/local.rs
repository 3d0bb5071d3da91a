//! Services that other flows of this bus call without the network (`local://services/NAME`): each such request is a message
//! of its own, in the same plan. It is work of a message that was let in, so that only a shortage of memory refuses it, as a fault of its caller and not
//! as an answer.

use super::dispatch::{find_proxy, serve_counted};
use crate::runtime::context::{Context, Owner};
use crate::runtime::plan::Plan;
use crate::runtime::request::{Client, Inbound};
use crate::runtime::scope::{Admitted, Opened};
use crate::runtime::services::LocalAnswer;
use message::{Body, Headers, Payload};
use std::sync::Arc;

/// See [`LocalServices`](crate::runtime::services::LocalServices).
pub(super) fn answer<'a>(
    caller: &'a Context,
    inbound: Inbound,
    headers: Headers,
    body: &mut Body,
) -> Option<Result<LocalAnswer<'a>, &'static str>> {
    let (index, service_length) = service(&caller.plan, &inbound.target)?;
    let admitted = match Admitted::within(Arc::clone(&caller.services)) {
        Ok(admitted) => admitted,
        Err((services, why)) => {
            services.scopes.refuse(why);
            return Some(Err(why));
        }
    };
    let body = std::mem::take(body);
    Some(Ok(Box::pin(async move {
        let plan = Arc::clone(&caller.plan);
        let payload = Payload::arrived(body, &headers, inbound.client == Client::Rest);
        let inbound = Arc::new(Inbound { service_length, ..inbound });
        let services = admitted.begins();
        let mut context = Context::new(Arc::clone(&plan), services, inbound, headers, payload);
        let mut opened = Opened::new(&mut context);
        opened.context.owner = Owner::Proxy(index);
        opened.context.progress.spent.local = caller.progress.spent.local + 1;
        let response = serve_counted(opened.context, &plan).await;
        opened.end();
        response
    })))
}

/// The service that a path names and the length of its part of the path; `None`: it does not run.
fn service(plan: &Plan, path: &str) -> Option<(usize, usize)> {
    let (index, length) = find_proxy(plan, path.strip_prefix("/services/")?)?;
    let started = plan.proxies.get(index)?.activation.is_on();
    started.then_some((index, "/services/".len() + length))
}
