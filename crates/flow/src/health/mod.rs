//! Active checks of endpoints: each endpoint that asks for them has a task of its own, which asks its backend at intervals.
//!
//! A task belongs to the identity of an endpoint, not to a plan. A reload gives it the definition in force, and it ends when
//! no plan in force has the endpoint any more. What a check means for the endpoint is the endpoint's to say
//! ([`Leaf::checked`]). Messages neither wait for checks nor make any.

use crate::http::dispatch::Bus;
use crate::runtime::endpoint::Leaf;
use crate::runtime::plan::Plan;
use crate::runtime::services::Services;
use crate::state::identity::Identity;
use message::{Body, Headers, Payload, PayloadLimits, Reading};
use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use transport::{OutRequest, SendError, SendOptions};

pub use crate::runtime::check::{Change, Check, Health};

/// The tasks of a new plan begin this long after each other, so that they do not all ask at once.
const APART: Duration = Duration::from_millis(10);

/// What is taken of the body of an answer, for the connection to be used again.
const BODY: usize = 64 << 10;

/// Checks the endpoints of each plan that comes into force, until `over`; checks that go on then are given up.
pub async fn run(bus: Arc<Bus>, over: impl Future<Output = ()>) {
    let mut over = pin!(over);
    let mut generations = bus.generations();
    let mut running = JoinSet::new();
    let mut tasks: HashMap<Identity, watch::Sender<Arc<dyn Leaf>>> = HashMap::new();
    loop {
        generations.mark_unchanged();
        let mut wanted = checked(&bus.plan());
        // A task whose end was not asked for has panicked: another one takes its place.
        tasks.retain(|identity, task| {
            !task.is_closed() && wanted.remove(identity).map(|leaf| task.send_replace(leaf)).is_some()
        });
        for (number, (identity, leaf)) in (0..).zip(wanted) {
            let (task, leaf) = watch::channel(leaf);
            running.spawn(check(Arc::clone(&bus), leaf, APART * number));
            tasks.insert(identity, task);
        }
        tokio::select! {
            () = &mut over => break,
            _ = generations.changed() => {}
            Some(_) = running.join_next() => {}
        }
    }
}

/// The endpoints of a plan that ask for checks. One that several lead to is one.
fn checked(plan: &Plan) -> HashMap<Identity, Arc<dyn Leaf>> {
    let named = plan.endpoints().map(|(_, endpoint)| endpoint);
    let inline = plan.inline_endpoints().iter().map(|endpoint| &endpoint.endpoint);
    let leaves = named.chain(inline).flat_map(|endpoint| endpoint.leaves());
    leaves
        .filter(|leaf| leaf.check().is_some())
        .map(|leaf| (Identity::clone(leaf.identity()), leaf))
        .collect()
}

/// Checks one endpoint until no plan has it any more.
async fn check(bus: Arc<Bus>, mut leaf: watch::Receiver<Arc<dyn Leaf>>, wait: Duration) {
    let mut due = Instant::now() + wait;
    let mut is_reported = false;
    loop {
        tokio::select! {
            biased;
            changed = leaf.changed() => {
                let current = leaf.borrow_and_update();
                let (Ok(()), Some(check)) = (changed, current.check()) else { return };
                // Its interval may be a shorter one.
                due = due.min(Instant::now() + check.interval);
                continue;
            }
            () = sleep_until(due) => {}
        }
        let current = Arc::clone(&leaf.borrow_and_update());
        let Some(check) = current.check() else { return };
        let began = Instant::now();
        due = began + check.interval;
        if current.state() == "off" {
            continue;
        }
        let (setbacks, services) = (current.setbacks(), bus.services());
        let gone = async { while leaf.changed().await.is_ok() {} };
        let outcome = tokio::select! {
            biased;
            () = gone => return,
            outcome = ask(check, &services) => outcome,
        };
        // A definition that came meanwhile may ask for another interval.
        due = leaf.borrow().check().map_or(due, |check| began + check.interval);
        let endpoint = current.name();
        let outcome = match outcome {
            Ok(outcome) => outcome,
            // Said once, until it can be asked again.
            Err(why) => {
                if !std::mem::replace(&mut is_reported, true) {
                    tracing::warn!(endpoint, "the endpoint is not checked: {why}");
                }
                continue;
            }
        };
        is_reported = false;
        let change = current.checked(outcome, setbacks);
        match change {
            Some(Change::Out(why)) => {
                tracing::warn!(endpoint, "the endpoint gets no messages any more: {why}")
            }
            Some(Change::Back) => {
                tracing::info!(endpoint, "the endpoint gets messages again: its backend is well")
            }
            None => {}
        }
    }
}

/// Asks once: what it says about the backend.
///
/// # Errors
/// The question could not be put, for want of resources of this process: that says nothing about the backend.
async fn ask(check: &Check, services: &Services) -> Result<Result<(), String>, SendError> {
    const AGENT: &str = concat!("Busbar/", env!("CARGO_PKG_VERSION"));
    let mut headers = Headers::new();
    headers.set("User-Agent", AGENT);
    let request = OutRequest {
        method: &check.method,
        target: &check.path,
        headers: &headers,
        host: None,
        body: &mut Body::Empty,
    };
    let options = SendOptions {
        connect: services.settings.connect_timeout.min(check.timeout),
        response: check.timeout,
        idle: check.timeout,
        // Messages that hang are what it is to find out.
        extra_connection: true,
        ..SendOptions::default()
    };
    let until = Instant::now() + check.timeout;
    let response = match services.client.send(&check.target, request, &options).await {
        Ok(response) => response,
        Err(error) if error.kind.is_about_backend() => return Ok(Err(error.to_string())),
        Err(error) => return Err(error),
    };
    let status = response.head.status;
    let mut body = Payload::received(response.body, Reading::XML);
    let limits = PayloadLimits { held: BODY, ..PayloadLimits::default() };
    // Whether it can be read says nothing; a connection with a rest on it is closed.
    let _ = tokio::time::timeout_at(until, body.buffer(&limits)).await;
    let well = check.expected.iter().any(|range| range.contains(&status));
    Ok(if well { Ok(()) } else { Err(format!("status {status}")) })
}
