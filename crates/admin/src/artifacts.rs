//! `/artifacts`: what the plan in force consists of, in which state it is, and what was left out.

use config::{ArtifactKind as Kind, Written};
use flow::activation::Activation;
use flow::endpoint::{Endpoint, Leaf, Standing};
use flow::metrics::Counters;
use flow::task::{Status, Task};
use flow::vfs::Source;
use flow::{Bus, Outcome, Plan};
use jiff::{Timestamp, Unit};
use message::redact;
use serde_json::{Map, Value, json};
use std::time::SystemTime;

/// All artifacts by kind.
pub(crate) fn all(bus: &Bus) -> Value {
    let plan = &bus.plan();
    let mut kinds = Map::new();
    for kind in Kind::all() {
        let list = listed(bus, plan, kind);
        if !list.is_empty() {
            kinds.insert(kind.element().to_owned(), Value::Array(list));
        }
    }
    json!({ "generation": plan.generation, "artifacts": kinds, "faulty": faulty(plan, |_, _| true) })
}

/// The artifacts of one kind; `None` if there is no such kind.
pub(crate) fn of_kind(bus: &Bus, kind: &str) -> Option<Value> {
    let plan = &bus.plan();
    let kind = kind_of(kind)?;
    let mut found = json!({
        "generation": plan.generation,
        "kind": kind.element(),
        "artifacts": listed(bus, plan, kind),
        "faulty": faulty(plan, |artifact_kind, _| artifact_kind == kind),
    });
    if kind == Kind::Endpoint {
        found["inline"] = inline(plan).into();
    }
    let services = bus.services();
    if let Some(executor) = services.settings.priorities.as_ref().filter(|_| kind == Kind::PriorityExecutor) {
        found["http.priorities"] = Value::Object(executor_facts(&executor.status(&services)));
    }
    Some(found)
}

/// One artifact, or what is wrong with it; `None` if there is none of that kind and name.
pub(crate) fn one(bus: &Bus, kind: &str, name: &str) -> Option<Value> {
    let plan = &bus.plan();
    let kind = kind_of(kind)?;
    if let Some(written) = serving(plan, kind).find(|written| written.name == name) {
        let mut facts = describe(bus, plan, written);
        facts.insert("kind".to_owned(), kind.element().into());
        facts.insert("generation".to_owned(), plan.generation.into());
        details(plan, written, &mut facts);
        return Some(facts.into());
    }
    let mut faulty =
        faulty(plan, |artifact_kind, called| artifact_kind == kind && called == Some(name)).into_iter();
    faulty.next()
}

/// What can be done to an artifact.
const ACTIONS: &str = "start, stop, activate, deactivate, suspend or resume, or trigger for a task";

/// Why an artifact was not switched.
pub(crate) enum NotSwitched {
    /// There is no such artifact, or no such action.
    Unknown(String),
    /// Not now.
    Busy(String),
}

impl From<String> for NotSwitched {
    fn from(why: String) -> NotSwitched {
        NotSwitched::Unknown(why)
    }
}

/// Starts or stops a proxy service, an API, an event source, a task, a message processor or an inbound endpoint; switches an endpoint on or off, or suspends it
/// as a failure would; has a task run now. An error says why not.
pub(crate) fn switch(bus: &Bus, kind: &str, name: &str, action: &str) -> Result<Value, NotSwitched> {
    let plan = &bus.plan();
    let artifact_kind =
        kind_of(kind).ok_or_else(|| format!("there is no kind of artifact called `{kind}`"))?;
    let nothing = || match plan
        .faulty
        .iter()
        .any(|faulty| faulty.kind == artifact_kind && faulty.name.as_deref() == Some(name))
    {
        true => format!("the {artifact_kind} `{name}` is faulty and left out"),
        false => format!("there is no {artifact_kind} `{name}` that can be switched"),
    };
    let task = || plan.tasks().iter().find(|task| task.name == name);
    let on = match action {
        "trigger" if artifact_kind == Kind::Task => {
            if !task().ok_or_else(nothing)?.run_now() {
                return Err(NotSwitched::Busy(format!(
                    "the run before of the task `{name}` goes on: overlap=\"true\" on its trigger runs both"
                )));
            }
            return Ok(one(bus, kind, name).ok_or_else(nothing)?);
        }
        "start" | "activate" | "resume" => true,
        "stop" | "deactivate" | "suspend" => false,
        _ => return Err(format!("there is no action `{action}`: expected {ACTIONS}").into()),
    };
    match artifact_kind {
        Kind::Task => task().ok_or_else(nothing)?.switch(on),
        Kind::Endpoint => {
            let leaves = plan.endpoint(name).ok_or_else(nothing)?.leaves();
            if leaves.is_empty() {
                let why = format!("the endpoint `{name}` has no address of its own that can be switched");
                return Err(why.into());
            }
            for leaf in leaves {
                if action == "suspend" { leaf.suspend() } else { leaf.switch(on) }
            }
        }
        artifact_kind => activation(plan, artifact_kind, name).ok_or_else(nothing)?.decide(on),
    }
    Ok(one(bus, kind, name).ok_or_else(nothing)?)
}

/// Whether an artifact runs, where somebody can decide that.
fn activation<'a>(plan: &'a Plan, kind: Kind, name: &str) -> Option<&'a Activation> {
    let activation = match kind {
        Kind::Proxy if plan.event_source(name).is_some() || plan.data_service(name).is_some() => return None,
        Kind::EventSource if plan.event_source(name).is_none() => return None,
        Kind::DataService if plan.data_service(name).is_none() => return None,
        // Event sources and data services are services too.
        Kind::Proxy | Kind::EventSource | Kind::DataService => {
            &plan.proxies().iter().find(|one| one.name == name)?.activation
        }
        Kind::Api => &plan.apis().iter().find(|one| one.qualified_name() == name)?.activation,
        Kind::MessageProcessor => &plan.processors().iter().find(|one| one.name == name)?.activation,
        Kind::InboundEndpoint => &plan.inbound_endpoints().iter().find(|one| one.name == name)?.activation,
        _ => return None,
    };
    Some(activation)
}

/// The kind of an element name or of a directory of a configuration.
fn kind_of(text: &str) -> Option<Kind> {
    Kind::of_element(text)
        .or_else(|| Kind::all().find(|kind| !kind.directory().is_empty() && kind.directory() == text))
}

fn serving(plan: &Plan, kind: Kind) -> impl Iterator<Item = &Written> {
    plan.written.iter().filter(move |written| written.kind == kind && serves(plan, written))
}

/// Whether an artifact is in force. (Its name alone does not tell: of two with the same name one is faulty.)
fn serves(plan: &Plan, written: &Written) -> bool {
    let name = written.name.as_str();
    let is_faulty = || {
        let inside = |span: diagnostics::Span| {
            let extent = written.span;
            span.file == extent.file && (extent.start..=extent.end).contains(&span.start)
        };
        let mut faulty = plan.faulty.iter().filter(|faulty_artifact| faulty_artifact.kind == written.kind);
        faulty.any(|faulty_artifact| {
            faulty_artifact.name.as_deref() == Some(name) && inside(faulty_artifact.span)
        })
    };
    match written.kind {
        Kind::Proxy => plan.proxies().iter().any(|proxy| proxy.span == written.span),
        Kind::Api => plan.apis().iter().any(|api| api.span == written.span),
        Kind::Sequence => plan.sequence(name).is_some(),
        Kind::Endpoint => plan.endpoint(name).is_some(),
        _ => !is_faulty(),
    }
}

fn listed(bus: &Bus, plan: &Plan, kind: Kind) -> Vec<Value> {
    serving(plan, kind).map(|written| Value::Object(describe(bus, plan, written))).collect()
}

fn faulty(plan: &Plan, wanted: impl Fn(Kind, Option<&str>) -> bool) -> Vec<Value> {
    let faulty_artifacts =
        plan.faulty.iter().filter(|artifact| wanted(artifact.kind, artifact.name.as_deref()));
    let facts = faulty_artifacts.map(|artifact| {
        json!({
            "kind": artifact.kind.element(),
            "name": artifact.name,
            // Whether requests still have the version before.
            "state": if artifact.held { "in force as before" } else { "faulty" },
            "place": plan.place(artifact.span),
            "message": redact::addresses(&artifact.message),
        })
    });
    facts.collect()
}

/// How a priority executor stands, or the queues of the listeners.
fn executor_facts(status: &flow::executor::Status) -> Map<String, Value> {
    let queues = status.queues.iter();
    let queues = queues
        .map(|(priority, waiting, size)| json!({ "priority": priority, "waiting": waiting, "size": size }));
    let facts: [(&str, Value); 5] = [
        ("threads", json!({ "core": status.core, "max": status.max })),
        ("running", status.running.into()),
        ("queues", queues.collect()),
        ("begun", status.begun.into()),
        ("rejected", status.rejected.into()),
    ];
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Name, place and state.
fn describe(bus: &Bus, plan: &Plan, written: &Written) -> Map<String, Value> {
    let mut facts = Map::new();
    facts.insert("name".to_owned(), written.name.as_str().into());
    facts.insert("place".to_owned(), plan.place(written.span).into());
    facts.insert("state".to_owned(), state(plan, written).into());
    let task = || plan.tasks().iter().find(|task| task.name == written.name);
    if let Some(task) = (written.kind == Kind::Task).then(task).flatten() {
        task_facts(task, &task.status(&bus.services()), &mut facts);
    }
    if written.kind == Kind::DataSource {
        data_source_facts(bus, &written.name, &mut facts);
    }
    facts
}

fn state(plan: &Plan, written: &Written) -> &'static str {
    match written.kind {
        Kind::Proxy | Kind::Api | Kind::InboundEndpoint | Kind::EventSource | Kind::DataService => {
            match activation(plan, written.kind, &written.name) {
                Some(activation) if activation.is_on() => "started",
                Some(_) => "stopped",
                None => "configured",
            }
        }
        Kind::Endpoint => match plan.endpoint(&written.name) {
            Some(endpoint) => endpoint_state(&*endpoint),
            None => "configured",
        },
        Kind::MessageProcessor => match activation(plan, written.kind, &written.name) {
            Some(activation) if activation.is_on() => "active",
            Some(_) => "inactive",
            None => "configured",
        },
        Kind::PriorityExecutor if plan.executor(&written.name).is_some() => "active",
        Kind::MessageStore if plan.store(&written.name).is_some() => "active",
        // More is said of it by its facts.
        Kind::Task if plan.tasks().iter().any(|task| task.name == written.name) => "active",
        Kind::Sequence | Kind::Template | Kind::LocalEntry => "active",
        // Read and checked; whether something runs is not known here.
        _ => "configured",
    }
}

/// Whether a database answers, and who uses its connections; nothing where no mediator names the data source.
fn data_source_facts(bus: &Bus, name: &str, facts: &mut Map<String, Value>) {
    let pools = bus.services().kept.get::<sql::Pools>();
    let Some(pool) = pools.all().into_iter().find(|pool| pool.name() == name) else { return };
    let status = pool.status();
    for (name, value) in [
        ("state", status.state.word().into()),
        ("database", pool.target().to_string().into()),
        ("limit", status.most.into()),
        ("in_use", status.in_use.into()),
        ("idle", status.idle.into()),
        ("waiting", status.waiting.into()),
        ("last_error", if status.last_error.is_empty() { Value::Null } else { status.last_error.into() }),
    ] {
        facts.insert(name.to_owned(), value);
    }
}

/// When a task runs, and how it ran.
fn task_facts(task: &Task, status: &Status, facts: &mut Map<String, Value>) {
    let state = match status {
        Status { active: false, .. } => "inactive",
        Status { next: None, running: 0, .. } => "completed",
        _ => "active",
    };
    let text = |at: Timestamp| Value::from(at.round(Unit::Millisecond).unwrap_or(at).to_string());
    let last = status.last.as_ref().map(|run| {
        let (outcome, took) = match (&run.refused, run.ended) {
            (Some(why), _) => (format!("could not run: {why}"), None),
            (None, None) => ("running".to_owned(), None),
            (None, Some((Outcome::Completed, took))) => ("completed".to_owned(), Some(took)),
            (None, Some((Outcome::Failed(_), took))) => ("failed".to_owned(), Some(took)),
            (None, Some((Outcome::Dropped, took))) => ("dropped".to_owned(), Some(took)),
        };
        json!({
            "began": text(run.began), "outcome": redact::addresses(&outcome), "message_id": run.message_id,
            "milliseconds": took.map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
        })
    });
    for (name, value) in [
        ("state", state.into()),
        ("trigger", task.trigger_text.as_str().into()),
        ("next", status.next.map_or(Value::Null, text)),
        ("last", last.unwrap_or_default()),
        ("runs", status.runs.into()),
        ("running", status.running.into()),
        ("missed", status.missed.into()),
        ("passed_over", status.passed_over.into()),
    ] {
        facts.insert(name.to_owned(), value);
    }
}

/// What a directory has given.
fn source_facts(source: &Source) -> Value {
    let status = source.status();
    let text = |at: Timestamp| Value::from(at.round(Unit::Millisecond).unwrap_or(at).to_string());
    let skipped = &status.skipped;
    json!({
        "directory": source.address.path.to_string_lossy(),
        "interval_ms": u64::try_from(source.interval.as_millis()).unwrap_or(u64::MAX),
        "polled": status.polled.map(text),
        "trouble": status.trouble,
        "running": status.running,
        "processed": status.processed,
        "failed": status.failed,
        "released": status.released,
        "remembered": status.remembered,
        "passed_over": {
            "locked": skipped.locked,
            "empty": skipped.empty,
            "too_large": skipped.too_large,
            "age": skipped.age,
            "growing": skipped.growing,
            "no_file": skipped.special,
            "unreadable": skipped.unreadable,
            "first": skipped.first,
        },
    })
}

/// The state that all leaves share; of several states `degraded` while one of them takes messages, else `suspended`.
fn endpoint_state(endpoint: &dyn Endpoint) -> &'static str {
    let leaves = endpoint.leaves();
    let mut states = leaves.iter().map(|leaf| leaf.state());
    match states.next() {
        None => "active",
        Some(first) if states.all(|state| state == first) => first,
        Some(_) if leaves.iter().any(|leaf| leaf.is_ready()) => "degraded",
        Some(_) => "suspended",
    }
}

/// What only the page of one artifact shows.
fn details(plan: &Plan, written: &Written, facts: &mut Map<String, Value>) {
    match written.kind {
        Kind::Proxy => {
            if let Some(proxy) = plan.proxies().iter().find(|proxy| proxy.name == written.name) {
                let transports =
                    [("http", proxy.http), ("https", proxy.https), ("vfs", proxy.source.is_some())];
                let transports: Vec<_> =
                    transports.into_iter().filter(|(_, on)| *on).map(|(name, _)| name).collect();
                facts.insert("transports".to_owned(), json!(transports));
                facts.insert("path".to_owned(), format!("/services/{}", proxy.name).into());
                facts.extend(proxy.source.as_ref().map(|source| ("files".to_owned(), source_facts(source))));
            }
        }
        Kind::Api => {
            if let Some(api) = plan.apis().iter().find(|api| api.span == written.span) {
                facts.insert("context".to_owned(), api.context.as_str().into());
                facts.insert("version".to_owned(), api.version.as_str().into());
                let resources: Vec<_> =
                    api.resources.iter().map(|resource| resource.label.as_str()).collect();
                facts.insert("resources".to_owned(), json!(resources));
            }
        }
        Kind::PriorityExecutor => {
            if let Some(executor) = plan.executor(&written.name) {
                facts.extend(executor_facts(&executor.status()));
            }
        }
        Kind::EventSource => {
            if let Some(source) = plan.event_source(&written.name) {
                let subscriptions = source.subscriptions().into_iter().map(|subscription| {
                    json!({
                        "id": subscription.id,
                        "address": redact::addresses(&subscription.address),
                        "filter": (!subscription.filter.is_empty()).then_some(subscription.filter),
                        "expires": subscription.expires.map(|at| at.to_string()),
                        "in_configuration": subscription.written,
                    })
                });
                facts.insert("path".to_owned(), format!("/services/{}", written.name).into());
                facts.insert("subscriptions".to_owned(), subscriptions.collect());
            }
        }
        Kind::MessageStore => {
            let waiting = plan.store(&written.name).and_then(|store| store.waiting());
            facts.insert("messages".to_owned(), waiting.map_or(Value::Null, Value::from));
        }
        Kind::InboundEndpoint => {
            let mut endpoints = plan.inbound_endpoints().iter();
            if let Some(endpoint) = endpoints.find(|endpoint| endpoint.name == written.name) {
                match &endpoint.source {
                    Some(source) => facts.insert("files".to_owned(), source_facts(source)),
                    None => {
                        facts.insert("port".to_owned(), endpoint.port.into());
                        facts.insert("tls".to_owned(), endpoint.tls.is_some().into())
                    }
                };
            }
        }
        Kind::Sequence => {
            if let Some(list) = plan.sequence(&written.name) {
                let steps: Vec<_> = plan.list(list).steps.iter().map(|step| step.name).collect();
                facts.insert("mediators".to_owned(), json!(steps));
            }
        }
        Kind::Endpoint => {
            if let Some(endpoint) = plan.endpoint(&written.name) {
                let leaves = endpoint.leaves().into_iter().map(|leaf| {
                    let (requests, errors) = counts(leaf.counters());
                    let mut facts = Map::new();
                    facts.insert("name".to_owned(), redact::addresses(leaf.name()).into());
                    standing(&*leaf, &mut facts);
                    facts.insert("requests".to_owned(), requests.into());
                    facts.insert("errors".to_owned(), errors.into());
                    Value::Object(facts)
                });
                facts.insert("addresses".to_owned(), leaves.collect());
            }
        }
        _ => {}
    }
}

/// The state of an address; until when it lets nothing through, what changed its state last, and how its health checks went.
fn standing(leaf: &dyn Leaf, facts: &mut Map<String, Value>) {
    let Standing { until, cause } = leaf.standing();
    facts.insert("state".to_owned(), leaf.state().into());
    if let Some(until) = until {
        facts.insert("until".to_owned(), moment(until));
    }
    if let Some(cause) = cause {
        let code = (cause.code != 0).then_some(cause.code);
        let why = redact::addresses(&cause.why);
        facts.insert("cause".to_owned(), json!({ "code": code, "message": why, "when": moment(cause.when) }));
    }
    if let Some(health) = leaf.health() {
        let last = health.last.map(|last| redact::addresses(&last).into_owned());
        let health = json!({ "healthy": health.healthy, "checks": health.checks, "failed": health.failed, "last_failure": last });
        facts.insert("health".to_owned(), health);
    }
}

fn moment(at: SystemTime) -> Value {
    Timestamp::try_from(at).ok().map(|at| at.round(Unit::Millisecond).unwrap_or(at).to_string()).into()
}

/// The endpoints that are written where they are used, each address of them with its state.
fn inline(plan: &Plan) -> Vec<Value> {
    let facts_of_endpoints = plan.inline_endpoints().iter().flat_map(|endpoint| {
        endpoint.endpoint.leaves().into_iter().map(|leaf| {
            let mut facts = Map::new();
            facts.insert("name".to_owned(), redact::addresses(leaf.name()).into());
            facts.insert("place".to_owned(), plan.place(endpoint.span).into());
            let artifact = format!("{}/{}", endpoint.artifact.kind.element(), endpoint.artifact.artifact);
            facts.insert("artifact".to_owned(), artifact.into());
            standing(&*leaf, &mut facts);
            Value::Object(facts)
        })
    });
    facts_of_endpoints.collect()
}

fn counts(counters: &Counters) -> (u64, u64) {
    let totals = counters.totals();
    (totals.requests, totals.errors)
}
