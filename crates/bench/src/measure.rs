//! Measures one scenario on one system: a [`Cell`].

use crate::check::{Expect, ReceivedResponse};
use crate::results::Cell;
use crate::scenarios::{Case, Scenario};
use crate::systems::{Backend, System};
use loadgen::{Check, Extent, Outcome, Pace, Plan, Process, Progress, Request, Url};
use std::sync::Arc;
use std::time::Duration;

/// How much load, for how long.
#[derive(Copy, Clone, Debug)]
pub struct Load {
    /// Clients at once, each with a connection of its own.
    pub clients: usize,
    /// Whether a client keeps its connection.
    pub keep_alive: bool,
    /// Load before anything counts.
    pub warm_up: Duration,
    /// The longest that counts.
    pub longest: Duration,
    /// Requests of all clients together that count; `None`: as many as there is time for.
    pub requests: Option<u64>,
}

impl Load {
    /// As many requests as there is time for, over kept connections, after a fifth of that time as warm-up.
    pub fn lasting(clients: usize, longest: Duration) -> Load {
        Load { clients, keep_alive: true, warm_up: longest / 5, longest, requests: None }
    }
}

/// Hears how far the measurement is; whether to go on.
pub type Watch<'a> = dyn FnMut(&Progress) -> bool + 'a;

/// The request of a case with its check, for the load generator. A body that passed is compared by its bytes from then on.
pub fn request(case: &Case) -> Request {
    let Case { request, expect } = case;
    let (head, body) = (Arc::new(expect.clone()), expect.body.clone());
    let check = Check::Predicate(
        Arc::new(move |status, fields| check_head(&head, status, fields)),
        Arc::new(move |bytes| body.check(bytes).map_err(|mismatch| mismatch.to_string())),
    );
    Request {
        method: request.method.to_owned(),
        target: Some(request.path.to_owned()),
        headers: request.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        body: request.body.clone(),
        unique: false,
        check,
    }
}

fn check_head(expect: &Expect, status: u16, fields: &loadgen::Fields<'_>) -> Result<(), String> {
    let text: Vec<(&str, String)> =
        fields.iter().map(|(name, value)| (*name, String::from_utf8_lossy(value).into_owned())).collect();
    let headers: Vec<(&str, &str)> = text.iter().map(|(name, value)| (*name, value.as_str())).collect();
    expect
        .check_head(&ReceivedResponse { status, headers: &headers, body: b"" })
        .map_err(|mismatch| mismatch.to_string())
}

/// Runs a load of one case against a URL.
///
/// # Errors
/// It cannot be run.
pub fn run(
    url: &Url,
    case: &Case,
    load: &Load,
    processes: Vec<Process>,
    watch: &mut Watch<'_>,
) -> Result<Outcome, String> {
    run_all(url, std::slice::from_ref(case), load, Duration::from_millis(250), processes, watch)
}

/// Runs a load of several cases, which take turns. Processes are sampled at this interval.
///
/// # Errors
/// It cannot be run.
pub fn run_all(
    url: &Url,
    cases: &[Case],
    load: &Load,
    interval: Duration,
    processes: Vec<Process>,
    watch: &mut Watch<'_>,
) -> Result<Outcome, String> {
    let requests: Vec<Request> = cases.iter().map(request).collect();
    let first = requests.first().cloned().ok_or("there is nothing to send")?;
    let plan = Plan {
        requests,
        pace: Pace::Closed,
        connections: load.clients,
        keep_alive: load.keep_alive,
        warm_up: load.warm_up,
        extent: Extent { duration: Some(load.longest), requests: load.requests },
        interval,
        timeout: Duration::from_secs(60),
        processes,
        ..Plan::new(url.clone(), first)
    };
    loadgen::run(&plan, watch)
}

/// Sends messages of a scenario that are good once, over so many connections: each is sent once, and an answer counts if its status and headers are right and its body is a message that is
/// encrypted.
///
/// # Errors
/// It cannot be run.
pub fn once(
    url: &Url,
    scenario: &Scenario,
    messages: &[Vec<u8>],
    clients: usize,
    process: Process,
    watch: &mut Watch<'_>,
) -> Result<Outcome, String> {
    let case = scenario.case(1024);
    let request = |message: &Vec<u8>| {
        let body = |body: &[u8]| match body.windows(13).any(|window| window == b"EncryptedData") {
            true => Ok(()),
            false => Err("the answer is not encrypted".to_owned()),
        };
        let status = |status: u16, _: &loadgen::Fields<'_>| match status {
            200 => Ok(()),
            other => Err(format!("status {other} instead of 200")),
        };
        let check = Check::Predicate(Arc::new(status), Arc::new(body));
        Request { body: message.clone(), check, ..request(&case) }
    };
    let requests: Vec<Request> = messages.iter().map(request).collect();
    let (first, count) =
        (requests.first().cloned().ok_or("there is nothing to send")?, requests.len() as u64);
    let plan = Plan {
        requests,
        tls: url.https.then(|| loadgen::Tls::new(None)).transpose()?,
        connections: clients,
        extent: Extent { duration: None, requests: Some(count) },
        interval: Duration::from_millis(250),
        processes: vec![Process { name: "system".to_owned(), ..process }],
        ..Plan::new(url.clone(), first)
    };
    loadgen::run(&plan, watch)
}

/// Sends one request; what is wrong with the answer.
///
/// # Errors
/// The answer is not the right one, or there is none.
pub fn correct(url: &Url, case: &Case) -> Result<(), String> {
    let longest = Duration::from_secs(30);
    let load = Load { clients: 1, keep_alive: true, warm_up: Duration::ZERO, longest, requests: Some(1) };
    let outcome = run(url, case, &load, Vec::new(), &mut |_| true)?;
    match outcome.errors.first() {
        Some(error) => Err(format!("{}: {}", error.kind.name(), error.first)),
        None if outcome.right == 1 => Ok(()),
        None => Err("no answer".to_owned()),
    }
}

/// Measures a scenario with messages of a size on a system.
///
/// # Errors
/// It cannot be run.
pub fn measure(
    system: &System,
    backend: Option<&Backend>,
    scenario: &Scenario,
    size: usize,
    load: &Load,
    watch: &mut Watch<'_>,
) -> Result<Cell, String> {
    let processes = system.process.iter().chain(backend.map(|backend| &backend.process)).cloned().collect();
    let outcome = run(&system.url, &scenario.case(size), load, processes, watch)?;
    Ok(cell(&system.about.name, scenario.name, size, load.clients, &outcome))
}

/// What the cell of an outcome says.
pub fn cell(system: &str, scenario: &str, size: usize, clients: usize, outcome: &Outcome) -> Cell {
    let mebi = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    Cell {
        system: system.to_owned(),
        scenario: scenario.to_owned(),
        size,
        clients,
        seconds: outcome.elapsed.as_secs_f64(),
        right: outcome.right,
        failed: outcome.failed(),
        error: outcome.errors.first().map(|error| format!("{}: {}", error.kind.name(), error.first)),
        rate: outcome.rate(),
        mean: outcome.latency.mean(),
        p50: outcome.latency.percentile(50.0),
        p90: outcome.latency.percentile(90.0),
        p99: outcome.latency.percentile(99.0),
        p999: outcome.latency.percentile(99.9),
        max: outcome.latency.percentile(100.0),
        cpu: outcome.cpu_per_request("system"),
        backend_cpu: outcome.cpu_per_request("backend"),
        resident: outcome.resident("system").map(mebi),
        ..Cell::default()
    }
}
