//! `/metrics`: everything that is counted, in the Prometheus text format.

use crate::exposition::{Exposition, MetricType};
use crate::process::Process;
use crate::{AdminState, Phase};
use flow::metrics::{BUCKETS, Counters};
use message::redact;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{SystemTime, UNIX_EPOCH};

/// The states of an endpoint, as [`flow::endpoint::Leaf::state`] names them.
const STATES: [&str; 4] = ["active", "timeout", "suspended", "off"];

/// The answer to a scrape.
pub(crate) fn render(state: &AdminState) -> String {
    let mut out = Exposition::default();
    services(&mut out, state);
    endpoints(&mut out, state);
    listeners(&mut out, state);
    pools(&mut out, state);
    data_sources(&mut out, state);
    engine(&mut out, state);
    process(&mut out, state);
    out.finish()
}

fn services(out: &mut Exposition, state: &AdminState) {
    let counters = state.bus.services().metrics.all();
    let (endpoints, services): (Vec<_>, Vec<_>) =
        counters.into_iter().partition(|(kind, ..)| *kind == "endpoint");
    let services: Vec<Counted<'_>> = services
        .iter()
        .map(|(kind, name, counters)| Counted { labels: vec![("kind", kind), ("service", name)], counters })
        .collect();
    counted(
        out,
        &services,
        ["busbar_requests_total", "busbar_request_errors_total", "busbar_request_duration_seconds"],
        [
            "Requests that a proxy service or API answered.",
            "Requests that ended in a fault, or with a status of 500 and above.",
            "Time from the request head to the response head.",
        ],
    );
    // Names of anonymous endpoints may have their address in them.
    let mut by_name: HashMap<String, Vec<Arc<Counters>>> = HashMap::new();
    for (_, name, counters) in endpoints {
        by_name.entry(redact::addresses(&name).into_owned()).or_default().push(counters);
    }
    let mut by_name: Vec<(String, Vec<Arc<Counters>>)> = by_name.into_iter().collect();
    by_name.sort_by(|a, b| a.0.cmp(&b.0));
    // Two that differ only in their secrets cannot be told apart by labels: the first one stands for them.
    let endpoints: Vec<Counted<'_>> = by_name
        .iter()
        .filter_map(|(name, counters)| {
            Some(Counted { labels: vec![("endpoint", name)], counters: counters.first()? })
        })
        .collect();
    counted(
        out,
        &endpoints,
        [
            "busbar_endpoint_requests_total",
            "busbar_endpoint_errors_total",
            "busbar_endpoint_duration_seconds",
        ],
        [
            "Requests sent to an endpoint.",
            "Requests to an endpoint that failed, or were answered with a status of 500 and above.",
            "Time from sending a request to the response head.",
        ],
    );
}

struct Counted<'a> {
    labels: Vec<(&'a str, &'a str)>,
    counters: &'a Counters,
}

/// The pools of databases, by the names of their data sources.
fn data_sources(out: &mut Exposition, state: &AdminState) {
    use sql::{State, Status};
    type Measure = (&'static str, MetricType, &'static str, fn(&Status) -> f64);
    const MEASURES: [Measure; 10] = [
        ("busbar_sql_connections_limit", MetricType::Gauge, "Most connections of a data source.", |source| {
            source.most as f64
        }),
        (
            "busbar_sql_connections_in_use",
            MetricType::Gauge,
            "Connections of a data source in use.",
            |source| source.in_use as f64,
        ),
        (
            "busbar_sql_connections_idle",
            MetricType::Gauge,
            "Connections of a data source without use.",
            |source| source.idle as f64,
        ),
        ("busbar_sql_waiting", MetricType::Gauge, "Messages that wait for a connection.", |source| {
            source.waiting as f64
        }),
        (
            "busbar_sql_waits_total",
            MetricType::Counter,
            "How often a message waited for a connection.",
            |source| source.waits.0 as f64,
        ),
        (
            "busbar_sql_wait_seconds_total",
            MetricType::Counter,
            "How long messages waited for connections.",
            |source| source.waits.1.as_secs_f64(),
        ),
        (
            "busbar_sql_connections_opened_total",
            MetricType::Counter,
            "Connections that were opened.",
            |source| source.opened.0 as f64,
        ),
        (
            "busbar_sql_connect_errors_total",
            MetricType::Counter,
            "Connections that could not be opened.",
            |source| source.opened.2 as f64,
        ),
        ("busbar_sql_statements_total", MetricType::Counter, "Statements that were run.", |source| {
            source.statements.0 as f64
        }),
        ("busbar_sql_statement_errors_total", MetricType::Counter, "Statements that failed.", |source| {
            source.statements.1 as f64
        }),
    ];
    // Two pools of one name (an artifact with two mediators) are told apart by a number.
    let mut seen: HashMap<String, usize> = HashMap::new();
    let pools: Vec<(String, Status)> = state
        .bus
        .services()
        .kept
        .get::<sql::Pools>()
        .all()
        .iter()
        .map(|pool| {
            let times = seen.entry(pool.name().to_owned()).or_insert(0);
            *times += 1;
            let name = if *times > 1 { format!("{} #{times}", pool.name()) } else { pool.name().to_owned() };
            (name, pool.status())
        })
        .collect();
    if pools.is_empty() {
        return;
    }
    out.family(
        "busbar_sql_state",
        MetricType::Gauge,
        "1 for the state that the database of a data source is in, else 0.",
    );
    for (name, status) in &pools {
        for state in [State::Unused, State::Up, State::Down] {
            let labels = [("data_source", name.as_str()), ("state", state.word())];
            out.sample(&labels, u8::from(status.state == state));
        }
    }
    for (metric, kind, help, measure) in MEASURES {
        out.family(metric, kind, help);
        for (name, status) in &pools {
            out.sample(&[("data_source", name.as_str())], measure(status));
        }
    }
}

/// Requests, errors and latencies of services or endpoints.
fn counted(out: &mut Exposition, rows: &[Counted<'_>], names: [&'static str; 3], help: [&str; 3]) {
    let bounds = BUCKETS.map(|micros| micros as f64 / 1e6);
    out.family(names[0], MetricType::Counter, help[0]);
    for row in rows {
        out.sample(&row.labels, row.counters.totals().requests);
    }
    out.family(names[1], MetricType::Counter, help[1]);
    for row in rows {
        out.sample(&row.labels, row.counters.totals().errors);
    }
    out.family(names[2], MetricType::Histogram, help[2]);
    for row in rows {
        let totals = row.counters.totals();
        let sum = totals.microseconds as f64 / 1e6;
        out.histogram(&row.labels, &bounds, &totals.buckets, sum);
    }
}

fn endpoints(out: &mut Exposition, state: &AdminState) {
    out.family(
        "busbar_endpoint_state",
        MetricType::Gauge,
        "1 for the state that a named endpoint's address is in, else 0.",
    );
    let plan = state.bus.plan();
    let mut checked = Vec::new();
    let mut endpoints: Vec<_> = plan.endpoints().collect();
    endpoints.sort_by_key(|(name, _)| *name);
    for (name, endpoint) in endpoints {
        let mut seen: HashMap<String, usize> = HashMap::new();
        for leaf in endpoint.leaves() {
            let mut label = redact::addresses(leaf.name()).into_owned();
            let times = seen.entry(label.clone()).or_insert(0);
            *times += 1;
            if *times > 1 {
                label = format!("{label} #{times}");
            }
            let now = leaf.state();
            for state in STATES {
                let labels = [("endpoint", name), ("address", &label), ("state", state)];
                out.sample(&labels, u8::from(now == state));
            }
            checked.extend(leaf.health().map(|health| (name, label, health)));
        }
    }
    type Get = fn(&flow::health::Health) -> u64;
    let families: [(&'static str, MetricType, &str, Get); 3] = [
        (
            "busbar_health_check_healthy",
            MetricType::Gauge,
            "1 while the health checks of a named endpoint's address let messages pass, else 0.",
            |health| health.healthy.into(),
        ),
        ("busbar_health_checks_total", MetricType::Counter, "Health checks that ended.", |health| {
            health.checks
        }),
        ("busbar_health_checks_failed_total", MetricType::Counter, "Health checks that failed.", |health| {
            health.failed
        }),
    ];
    for (metric, kind, help, get) in families {
        out.family(metric, kind, help);
        for (name, address, health) in &checked {
            out.sample(&[("endpoint", name), ("address", address)], get(health));
        }
    }
}

fn listeners(out: &mut Exposition, state: &AdminState) {
    let servers: Vec<_> = state.servers.iter().map(|(name, server)| (*name, server.stats())).collect();
    type Get = fn(&transport::ServerStats) -> u64;
    let families: [(&'static str, MetricType, &str, Get); 8] = [
        ("busbar_listener_connections", MetricType::Gauge, "Open connections of clients.", |stats| {
            stats.open
        }),
        ("busbar_listener_accepted_total", MetricType::Counter, "Connections accepted.", |stats| {
            stats.accepted
        }),
        ("busbar_listener_requests_total", MetricType::Counter, "Requests with a valid head.", |stats| {
            stats.requests
        }),
        (
            "busbar_listener_refused_total",
            MetricType::Counter,
            "Requests refused for their framing or a limit, before any flow saw them.",
            |stats| stats.refused,
        ),
        (
            "busbar_listener_aborted_total",
            MetricType::Counter,
            "Clients that went away before they had their whole response.",
            |stats| stats.aborted,
        ),
        (
            "busbar_listener_failed_total",
            MetricType::Counter,
            "Accepts and TLS handshakes that failed.",
            |stats| stats.failed,
        ),
        (
            "busbar_listener_http2_connections",
            MetricType::Gauge,
            "Open connections that speak HTTP/2.",
            |stats| stats.http2,
        ),
        (
            "busbar_listener_http2_streams",
            MetricType::Gauge,
            "Requests on them that are not answered yet.",
            |stats| stats.streams,
        ),
    ];
    for (name, kind, help, get) in families {
        out.family(name, kind, help);
        for (listener, stats) in &servers {
            out.sample(&[("listener", listener)], get(stats));
        }
    }
}

fn pools(out: &mut Exposition, state: &AdminState) {
    let stats = state.client.stats();
    out.family("busbar_pool_connections", MetricType::Gauge, "Open connections to backends.");
    out.sample(&[("state", "active")], stats.active);
    out.sample(&[("state", "idle")], stats.idle);
    for (name, help, value) in [
        ("busbar_pool_created_total", "Connections made to backends.", stats.created),
        ("busbar_pool_reused_total", "Requests sent on a pooled connection.", stats.reused),
        (
            "busbar_pool_retried_total",
            "Requests sent again because the pooled connection was dead.",
            stats.retried,
        ),
        ("busbar_pool_requests_total", "Requests sent to backends.", stats.requests),
        ("busbar_pool_failed_total", "Requests to backends without a response.", stats.failed),
        ("busbar_pool_shed_total", "Requests not sent for want of a connection.", stats.shed),
    ] {
        out.single(name, MetricType::Counter, help, value);
    }
}

fn tasks(out: &mut Exposition, plan: &flow::Plan, services: &flow::Services) {
    let tasks: Vec<_> = plan.tasks().iter().map(|task| (task.name.as_str(), task.status(services))).collect();
    type Get = fn(&flow::task::Status) -> u64;
    let families: [(&'static str, MetricType, &str, Get); 3] = [
        ("busbar_task_running", MetricType::Gauge, "Runs of a task that go on.", |task| task.running as u64),
        (
            "busbar_task_missed_total",
            MetricType::Counter,
            "Runs of a task that did not happen because nobody was there in time.",
            |task| task.missed,
        ),
        (
            "busbar_task_passed_over_total",
            MetricType::Counter,
            "Runs of a task that did not happen because the run before went on, or the bus was full.",
            |task| task.passed_over,
        ),
    ];
    for (name, kind, help, get) in families {
        out.family(name, kind, help);
        for (task, status) in &tasks {
            out.sample(&[("task", task)], get(status));
        }
    }
}

fn executors(out: &mut Exposition, plan: &flow::Plan, services: &flow::Services) {
    let mut executors: Vec<_> =
        plan.executors().into_iter().map(|executor| (executor.name.as_str(), executor.status())).collect();
    // The queues of the listeners are one more.
    let listeners = services.settings.priorities.as_ref();
    executors.extend(listeners.map(|executor| ("http.priorities", executor.status(services))));
    out.family("busbar_executor_running", MetricType::Gauge, "Messages that run in a priority executor.");
    for (name, status) in &executors {
        out.sample(&[("executor", name)], status.running);
    }
    out.family(
        "busbar_executor_waiting",
        MetricType::Gauge,
        "Messages that wait in a queue of a priority executor.",
    );
    for (name, status) in &executors {
        for (priority, waiting, _) in &status.queues {
            out.sample(&[("executor", name), ("priority", &priority.to_string())], *waiting);
        }
    }
    let help = "Messages that a priority executor turned away since their queue was full.";
    out.family("busbar_executor_rejected_total", MetricType::Counter, help);
    for (name, status) in &executors {
        out.sample(&[("executor", name)], status.rejected);
    }
}

fn events(out: &mut Exposition, plan: &flow::Plan) {
    out.family("busbar_event_subscriptions", MetricType::Gauge, "Subscriptions of an event source.");
    for source in plan.event_sources() {
        out.sample(&[("source", source.name())], source.subscriptions().len());
    }
}

/// Files of directories.
fn files(out: &mut Exposition, plan: &flow::Plan) {
    let sources: Vec<_> =
        plan.sources().map(|source| (source.kind.element(), source.name.as_str(), source.status())).collect();
    if sources.is_empty() {
        return;
    }
    out.family("busbar_files_total", MetricType::Counter, "Files whose flows have ended, by how.");
    for (kind, name, status) in &sources {
        let outcomes =
            [("processed", status.processed), ("failed", status.failed), ("released", status.released)];
        for (outcome, count) in outcomes {
            out.sample(&[("kind", kind), ("service", name), ("outcome", outcome)], count);
        }
    }
    type Get = fn(&flow::vfs::Status) -> u64;
    let families: [(&'static str, &str, Get); 4] = [
        ("busbar_files_running", "Files whose flows go on.", |files| files.running),
        (
            "busbar_files_remembered",
            "Files that were processed and can neither be moved nor deleted.",
            |files| files.remembered,
        ),
        ("busbar_files_unreadable", "Files that the last look could not open or lock.", |files| {
            files.skipped.unreadable
        }),
        ("busbar_files_trouble", "Whether the directory cannot be looked at.", |files| {
            files.trouble.is_some().into()
        }),
    ];
    for (name, help, get) in families {
        out.family(name, MetricType::Gauge, help);
        for (kind, service, status) in &sources {
            out.sample(&[("kind", kind), ("service", service)], get(status));
        }
    }
}

fn engine(out: &mut Exposition, state: &AdminState) {
    let services = state.bus.services();
    let plan = state.bus.plan();
    out.single(
        "busbar_aggregates_open",
        MetricType::Gauge,
        "Aggregates that wait for more parts.",
        services.aggregates.len(),
    );
    tasks(out, &plan, &services);
    executors(out, &plan, &services);
    events(out, &plan);
    files(out, &plan);
    let memory = message::memory::held();
    out.single("busbar_flows", MetricType::Gauge, "Messages whose work goes on.", services.scopes.open());
    out.single(
        "busbar_refused_total",
        MetricType::Counter,
        "Messages that were refused with 503: too many were on their way, or held too much.",
        services.scopes.refused(),
    );
    out.single("busbar_memory_held_bytes", MetricType::Gauge, "Bytes that messages hold together.", memory);
    out.single(
        "busbar_memory_limit_bytes",
        MetricType::Gauge,
        "Bytes that messages may hold together.",
        message::memory::most(),
    );
    out.single(
        "busbar_memory_refused_total",
        MetricType::Counter,
        "Bodies, trees and parts that were not held, for want of memory.",
        message::memory::refused(),
    );
    let compute = flow::compute::Compute::of(&services).figures();
    out.single(
        "busbar_compute_running",
        MetricType::Gauge,
        "Steps that run on compute threads.",
        compute.running,
    );
    out.single("busbar_compute_waiting", MetricType::Gauge, "Steps that wait for one.", compute.waiting);
    out.single("busbar_compute_runs_total", MetricType::Counter, "Steps that ran on one.", compute.runs);
    out.single(
        "busbar_compute_refused_total",
        MetricType::Counter,
        "Steps for which there was none: 503.",
        compute.refused,
    );
    out.family("busbar_store_messages", MetricType::Gauge, "Messages that wait in a message store.");
    for (name, waiting) in services.stores.waiting() {
        out.sample(&[("store", &name)], waiting);
    }
    out.single(
        "busbar_unanswered_total",
        MetricType::Counter,
        "Flows that ended without an answer; the client got one from the engine.",
        services.metrics.unanswered.load(Relaxed),
    );
    out.single(
        "busbar_plan_generation",
        MetricType::Gauge,
        "Number of the plan in force; a reload makes a higher one.",
        plan.generation,
    );
    out.single("busbar_artifacts", MetricType::Gauge, "Artifacts that serve.", plan.artifacts());
    out.single(
        "busbar_artifacts_faulty",
        MetricType::Gauge,
        "Artifacts that were left out because of an error.",
        plan.faulty.len(),
    );
    out.single(
        "busbar_ready",
        MetricType::Gauge,
        "1 while every listener accepts.",
        u8::from(state.readiness.phase() == Phase::Serving),
    );
    if let Some(access) = &state.access {
        out.single(
            "busbar_access_log_dropped_total",
            MetricType::Counter,
            "Access log lines that were dropped because the log could not keep up or be written.",
            access.dropped(),
        );
    }
    out.single(
        "busbar_log_dropped_total",
        MetricType::Counter,
        "Log lines that were dropped because the log could not keep up or be written.",
        state.log.as_ref().map_or(0, crate::logging::Handle::dropped),
    );
    out.family("busbar_build_info", MetricType::Gauge, "Always 1; the version is in the label.");
    out.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
}

fn process(out: &mut Exposition, state: &AdminState) {
    let uptime = state.started.elapsed();
    out.single(
        "busbar_uptime_seconds",
        MetricType::Gauge,
        "Time since the process started.",
        uptime.as_secs_f64(),
    );
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    out.single(
        "process_start_time_seconds",
        MetricType::Gauge,
        "When the process started, in seconds since the epoch.",
        now.saturating_sub(uptime).as_secs(),
    );
    let process = Process::read();
    if let Some(seconds) = process.cpu {
        out.single("process_cpu_seconds_total", MetricType::Counter, "User and system CPU time.", seconds);
    }
    for (name, help, value) in [
        ("process_resident_memory_bytes", "Resident memory.", process.resident),
        ("busbar_resident_memory_peak_bytes", "Largest resident memory so far.", process.peak),
        ("process_virtual_memory_bytes", "Virtual memory.", process.size),
        ("process_open_fds", "Open file descriptors.", process.files),
        ("process_max_fds", "Most file descriptors that may be open.", process.file_limit),
        ("process_threads", "Threads.", process.threads),
    ] {
        if let Some(value) = value {
            out.single(name, MetricType::Gauge, help, value);
        }
    }
}
