//! `busbar bench load`: sends requests to a URL, verifies every answer, and says how long they took.

use crate::words::counted;
use loadgen::{
    Check, Extent, Latency, Outcome, PERCENTILES, Pace, Plan, Process, Progress, Request, Tls, Url,
};
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Sends requests to a URL over many connections, verifies every answer, and says how long they took.
///
/// Without --rate each connection sends its next request when its last one was answered (closed loop). With --rate requests are due at that
/// rate, and latencies count from when a request was due (open loop): what a stall delays is seen. Exits with 1 when an answer
/// was not the right one, or none came.
#[derive(clap::Args)]
pub struct Args {
    /// Where to: http://HOST:PORT/PATH, or https.
    url: Url,
    /// Connections at once.
    #[arg(long, short, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    connections: u32,
    /// Seconds that count; 10 where --requests is not given either.
    #[arg(long, short, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<Duration>,
    /// Requests that count.
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// Requests a second, whether or not earlier ones were answered.
    #[arg(long, value_name = "N")]
    rate: Option<f64>,
    /// With --rate: the times between requests are those of many independent clients, not equal.
    #[arg(long, requires = "rate")]
    poisson: bool,
    /// Seconds of load before anything counts.
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds)]
    warm_up: Duration,
    /// A connection for each request.
    #[arg(long)]
    no_keep_alive: bool,
    /// A file with the body of a request; several, or a folder of files, take turns.
    #[arg(long = "file", short, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The method; POST with a body, GET without.
    #[arg(long, short = 'X')]
    method: Option<String>,
    /// A header; can be repeated. With a body and no Content-Type it is text/xml.
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE", value_parser = header)]
    headers: Vec<(String, String)>,
    /// `{{id}}`, `{{uuid}}` and `{{timestamp}}` in headers and bodies are other values in each request.
    #[arg(long)]
    unique: bool,
    /// The right answer: a status (200), `echo` (the bytes of the request), `file:PATH` (these bytes), `contains:TEXT`. All but the first mean status 200.
    #[arg(long, default_value = "200", value_parser = expect)]
    expect: Check,
    /// A process to watch: CPU time for each request, memory. Can be repeated.
    #[arg(long = "process", value_name = "NAME=PID", value_parser = process)]
    processes: Vec<Process>,
    /// Seconds that one request may take.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    timeout: Duration,
    /// With https: trust the certificates of this PEM file only. Without it any certificate is taken.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

/// Seconds, with a fraction or not.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.strip_suffix('s').unwrap_or(text).parse::<f64>();
    let number = number.map_err(|_| format!("'{text}' is not a number of seconds"))?;
    if (0.0..=1e6).contains(&number) {
        Ok(Duration::from_secs_f64(number))
    } else {
        Err(format!("'{text}' is not between 0 and 1,000,000 seconds"))
    }
}

/// Seconds of a measurement: what is shorter has nothing to say.
pub(super) fn some_seconds(text: &str) -> Result<Duration, String> {
    let found = seconds(text)?;
    if found < Duration::from_millis(10) {
        Err(format!("'{text}': at least 0.01 seconds"))
    } else {
        Ok(found)
    }
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once(':').ok_or_else(|| format!("'{text}' is not a header: NAME: VALUE"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn expect(text: &str) -> Result<Check, String> {
    if text == "echo" {
        return Ok(Check::Echo);
    }
    if let Some(path) = text.strip_prefix("file:") {
        let bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
        return Ok(Check::Bytes(bytes.into()));
    }
    if let Some(part) = text.strip_prefix("contains:") {
        return Ok(Check::contains(vec![part.to_owned()]));
    }
    match text.parse() {
        Ok(status @ 200..=599) => Ok(Check::Status(status)),
        _ => Err(format!("'{text}' is not a status, and not echo, file:PATH or contains:TEXT")),
    }
}

fn process(text: &str) -> Result<Process, String> {
    let (name, id) = text.split_once('=').ok_or_else(|| format!("'{text}' is not NAME=PID"))?;
    let id = id.parse().map_err(|_| format!("'{id}' is not a process id"))?;
    Ok(Process { name: name.to_owned(), id })
}

/// Whether all answers were right.
pub fn run(args: &Args) -> Result<bool, String> {
    let plan = plan(args)?;
    let mut bar = Bar::new();
    let outcome = loadgen::run(&plan, &mut |progress| {
        bar.show(progress);
        true
    })?;
    bar.clear();
    let text = match args.json {
        true => format!("{:#}\n", outcome.json()),
        false => summary(&plan, &outcome),
    };
    // Nobody may be reading.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(outcome.right > 0 && outcome.failed() == 0)
}

fn plan(args: &Args) -> Result<Plan, String> {
    for (at, process) in args.processes.iter().enumerate() {
        if args.processes[..at].iter().any(|watched| watched.name == process.name) {
            return Err(format!("two processes are called '{}'", process.name));
        }
    }
    let bodies = bodies(&args.files)?;
    let has_body = !bodies.is_empty();
    let method = args.method.clone().unwrap_or(if has_body { "POST" } else { "GET" }.to_owned());
    let mut headers = args.headers.clone();
    if has_body && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        headers.push(("Content-Type".to_owned(), "text/xml; charset=UTF-8".to_owned()));
    }
    let request = |body: Vec<u8>| Request {
        method: method.clone(),
        target: None,
        headers: headers.clone(),
        body,
        unique: args.unique,
        check: args.expect.clone(),
    };
    let requests: Vec<Request> =
        if has_body { bodies.into_iter().map(request).collect() } else { vec![request(Vec::new())] };
    let duration = match (args.duration, args.requests) {
        (None, None) => Some(Duration::from_secs(10)),
        (given, _) => given,
    };
    Ok(Plan {
        url: args.url.clone(),
        address: None,
        tls: args.url.https.then(|| Tls::new(args.ca.as_deref())).transpose()?,
        requests,
        pace: args.rate.map_or(Pace::Closed, |rate| Pace::Open { rate, poisson: args.poisson }),
        connections: args.connections as usize,
        keep_alive: !args.no_keep_alive,
        warm_up: args.warm_up,
        extent: Extent { duration, requests: args.requests },
        timeout: args.timeout,
        interval: Duration::from_millis(500),
        processes: args.processes.clone(),
    })
}

/// What is in the files; those of a folder in the order of their names.
fn bodies(files: &[PathBuf]) -> Result<Vec<Vec<u8>>, String> {
    let fail = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let mut paths = Vec::new();
    for path in files {
        if path.is_dir() {
            let entries = std::fs::read_dir(path).map_err(|error| fail(path, error))?;
            let mut inside: Vec<PathBuf> =
                entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
            inside.sort();
            if inside.is_empty() {
                return Err(format!("{}: no file in it", path.display()));
            }
            paths.extend(inside);
        } else {
            paths.push(path.clone());
        }
    }
    paths.iter().map(|path| std::fs::read(path).map_err(|error| fail(path, error))).collect()
}

/// A line on a terminal that says how far it is.
pub(super) struct Bar {
    shows: bool,
    /// In front of it.
    pub(super) label: String,
}

impl Bar {
    pub(super) fn new() -> Bar {
        Bar { shows: std::io::stderr().is_terminal(), label: String::new() }
    }

    pub(super) fn show(&mut self, progress: &Progress) {
        if !self.shows {
            return;
        }
        const WIDTH: usize = 24;
        let full = (progress.done * WIDTH as f64) as usize;
        let bar: String = (0..WIDTH).map(|n| if n < full { '█' } else { '·' }).collect();
        let Progress { warming, rate, p50, p99, failed, .. } = progress;
        let phase = if *warming { "warm-up" } else { "       " };
        eprint!(
            "\r\x1b[K{}{bar} {phase} {rate:>9.0}/s  p50 {p50:.2} ms  p99 {p99:.2} ms  {failed} errors",
            self.label
        );
        let _ = std::io::stderr().flush();
    }

    pub(super) fn clear(&self) {
        if self.shows {
            eprint!("\r\x1b[K");
        }
    }
}

/// The result in a few lines.
fn summary(plan: &Plan, outcome: &Outcome) -> String {
    let mut text = String::new();
    let pace = match plan.pace {
        Pace::Closed => "closed loop".to_owned(),
        Pace::Open { rate, poisson } => {
            format!("open loop of {rate} requests a second{}", if poisson { " (Poisson)" } else { "" })
        }
    };
    let connections = counted(plan.connections, "connection");
    let keep_alive = if plan.keep_alive { "" } else { ", each for one request" };
    let mega = |bytes: u64| bytes as f64 / 1e6 / outcome.elapsed.as_secs_f64().max(1e-9);
    let _ = writeln!(text, "{}: {pace}, {connections}{keep_alive}", plan.url);
    let _ = writeln!(
        text,
        "{} right answers in {:.2} s: {:.0} a second, {:.1} MB/s sent, {:.1} MB/s received",
        outcome.right,
        outcome.elapsed.as_secs_f64(),
        outcome.rate(),
        mega(outcome.sent),
        mega(outcome.received)
    );
    let _ = write!(text, "{:<22}{:>9}", "ms", "mean");
    for percent in PERCENTILES {
        let name = if percent == 100.0 { "max".to_owned() } else { format!("p{percent}") };
        let _ = write!(text, " {name:>9}");
    }
    text.push('\n');
    let mut row = |name: &str, latency: &Latency| {
        let _ = write!(text, "{name:<22}{:>9.3}", latency.mean());
        for percent in PERCENTILES {
            let _ = write!(text, " {:>9.3}", latency.percentile(percent));
        }
        text.push('\n');
    };
    match plan.pace {
        Pace::Closed => row("latency", &outcome.latency),
        Pace::Open { .. } => {
            row("from when it was due", &outcome.latency);
            row("from when it was sent", &outcome.service);
        }
    }
    for process in &plan.processes {
        let name = &process.name;
        match (outcome.cpu_per_request(name), outcome.resident(name)) {
            (Some(cpu), Some(resident)) => {
                let resident = resident as f64 / 1024.0 / 1024.0;
                let _ = writeln!(
                    text,
                    "{name}: {cpu:.1} µs of CPU for each right answer, {resident:.1} MiB at most"
                );
            }
            _ => {
                let _ = writeln!(text, "{name}: there is no process {}, or nothing was measured", process.id);
            }
        }
    }
    for errors in &outcome.errors {
        let _ = writeln!(text, "{} x {}: {}", errors.count, errors.kind.name(), errors.first);
    }
    if outcome.unfinished > 0 {
        let _ = writeln!(
            text,
            "{} under way at the end, not counted",
            counted(outcome.unfinished as usize, "request")
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_options() {
        assert_eq!(seconds("1.5s"), Ok(Duration::from_millis(1500)));
        assert!(seconds("-1").is_err() && seconds("x").is_err() && seconds("nan").is_err());
        assert_eq!(header("A: b:c"), Ok(("A".into(), "b:c".into())));
        assert!(header("A").is_err());
        assert_eq!(process("bus=17").map(|process| process.id), Ok(17));
        assert!(process("bus").is_err() && process("bus=x").is_err());
        for (text, want) in [("204", "status 204"), ("echo", "echo"), ("contains:a", "predicate")] {
            assert_eq!(format!("{:?}", expect(text).unwrap()), want);
        }
        for text in ["99", "ok", "file:/no/such/file"] {
            assert!(expect(text).is_err(), "{text}");
        }
    }
}
