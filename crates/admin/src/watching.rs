//! Looking at messages in flight: who is traced, what was traced, the wire log, and what steps take.

use crate::routes::{Context, Shared, answer, error};
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use flow::Plan;
use flow::observe::{Profile, Recording, Recordings};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/trace", get(traced))
        .route("/trace/{*service}", put(trace_on).delete(trace_off))
        .route("/traces", get(recordings).delete(forget))
        .route("/traces/{number}", get(recording))
        .route("/profile", get(profile).delete(profile_forget))
        .route("/profile/{*service}", put(profile_on).delete(profile_off))
        .route("/wire", get(wired))
        .route("/wire/{*name}", put(wire_on).delete(wire_off))
}

fn traces(shared: &Shared) -> Arc<Recordings> {
    Recordings::of(&services(shared))
}

fn services(shared: &Shared) -> Arc<flow::Services> {
    shared.admin.bus.services()
}

async fn traced(State(shared): Context) -> Response {
    answer(StatusCode::OK, &json!({ "traced": services(&shared).observers.traced() }))
}

async fn wired(State(shared): Context) -> Response {
    answer(StatusCode::OK, &json!({ "wire": services(&shared).observers.wired() }))
}

async fn trace_on(State(shared): Context, Path(service): Path<String>) -> Response {
    let plan = shared.admin.bus.plan();
    if !plan.has_service(&service) {
        return unknown("proxy service or API", &service, plan.services());
    }
    services(&shared).observers.trace(&service, true);
    tracing::info!(target: "busbar::settings", service, "messages are traced from now on");
    traced(State(shared)).await
}

async fn trace_off(State(shared): Context, Path(service): Path<String>) -> Response {
    services(&shared).observers.trace(&service, false);
    tracing::info!(target: "busbar::settings", service, "messages are no longer traced");
    traced(State(shared)).await
}

/// What the steps of profiled services have taken.
async fn profile(State(shared): Context) -> Response {
    let services = services(&shared);
    let profile = Profile::of(&services);
    let steps: Vec<Value> = profile
        .steps()
        .into_iter()
        .map(|step| {
            json!({
                "service": step.service, "list": step.list, "step": step.name, "place": step.place, "runs": step.runs,
                "cpu_us": step.nanoseconds as f64 / 1000.0,
            })
        })
        .collect();
    let profiles =
        json!({ "profiled": services.observers.profiled(), "requests": profile.requests(), "steps": steps });
    answer(StatusCode::OK, &profiles)
}

async fn profile_on(State(shared): Context, Path(service): Path<String>) -> Response {
    let plan = shared.admin.bus.plan();
    if !plan.has_service(&service) {
        return unknown("proxy service or API", &service, plan.services());
    }
    services(&shared).observers.profile(&service, true);
    tracing::info!(target: "busbar::settings", service, "steps are timed from now on");
    profile(State(shared)).await
}

async fn profile_off(State(shared): Context, Path(service): Path<String>) -> Response {
    services(&shared).observers.profile(&service, false);
    tracing::info!(target: "busbar::settings", service, "steps are no longer timed");
    profile(State(shared)).await
}

async fn profile_forget(State(shared): Context) -> Response {
    Profile::of(&services(&shared)).forget();
    profile(State(shared)).await
}

async fn wire_on(State(shared): Context, Path(name): Path<String>) -> Response {
    let plan = shared.admin.bus.plan();
    if !plan.has_service(&name) && !has_endpoint(&plan, &name) {
        let endpoints = plan.endpoints().map(|(name, _)| name.to_owned());
        return unknown(
            "proxy service, API or endpoint",
            &name,
            plan.services().into_iter().chain(endpoints).collect(),
        );
    }
    services(&shared).observers.wire(&name, true);
    tracing::info!(target: "busbar::settings", name, "the wire log is on from now on");
    wired(State(shared)).await
}

async fn wire_off(State(shared): Context, Path(name): Path<String>) -> Response {
    services(&shared).observers.wire(&name, false);
    tracing::info!(target: "busbar::settings", name, "the wire log is off");
    wired(State(shared)).await
}

/// A named endpoint, or a member of one.
fn has_endpoint(plan: &Plan, name: &str) -> bool {
    plan.endpoints().any(|(artifact, endpoint)| {
        artifact == name || endpoint.leaves().iter().any(|leaf| leaf.name() == name)
    })
}

fn unknown(kind: &str, name: &str, names: Vec<String>) -> Response {
    let hint = diagnostics::did_you_mean(name, names.iter().map(String::as_str));
    let hint = hint.unwrap_or_else(|| "/artifacts lists what there is".to_owned());
    error(StatusCode::NOT_FOUND, &format!("there is no {kind} `{name}`; {hint}"))
}

async fn recordings(State(shared): Context) -> Response {
    let messages: Vec<Value> = traces(&shared).all().iter().map(|trace| listed(trace)).collect();
    answer(StatusCode::OK, &json!({ "traced": services(&shared).observers.traced(), "messages": messages }))
}

fn listed(recording: &Recording) -> Value {
    let summary = recording.summary();
    let began = recording.began.duration_since(UNIX_EPOCH).unwrap_or_default();
    json!({
        "number": recording.number,
        "service": recording.service,
        "message_id": recording.message_id,
        "request": recording.request,
        "began_unix_ms": u64::try_from(began.as_millis()).unwrap_or(u64::MAX),
        "took_ms": summary.took.as_micros() as f64 / 1000.0,
        "state": if summary.running { "running" } else { "ended" },
        "status": summary.status,
        "steps": summary.steps,
        "failed": summary.failed,
    })
}

async fn forget(State(shared): Context) -> Response {
    traces(&shared).forget();
    recordings(State(shared)).await
}

/// One message as JSON; with `.txt` behind the number as text; `last` is the newest.
async fn recording(State(shared): Context, Path(number): Path<String>) -> Response {
    let (number, as_text) = match number.strip_suffix(".txt") {
        Some(number) => (number, true),
        None => (number.as_str(), false),
    };
    let traces = traces(&shared);
    let found = match number {
        "last" => traces.all().into_iter().next(),
        number => number.parse().ok().and_then(|number| traces.get(number)),
    };
    match found {
        Some(found) if as_text => {
            ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], found.text()).into_response()
        }
        Some(found) => answer(StatusCode::OK, &found.json()),
        None => error(
            StatusCode::NOT_FOUND,
            &format!("no traced message `{number}` is kept; /traces lists those that are"),
        ),
    }
}
