//! The load generator itself: beside `wrk` and `ab` against the same backend, and against a server that stalls.

use crate::messages;
use crate::results::{Cell, Run, System};
use crate::steps::{self, News, Tell, leave};
use crate::systems::{self, Backend, Place};
use loadgen::{Check, Extent, Outcome, Pace, Plan, Request};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// What can be chosen.
#[derive(Clone, Debug)]
pub struct Options {
    /// One number of connections.
    pub quick: bool,
    /// Of each measurement.
    pub seconds: Duration,
    /// How often the generators take turns.
    pub turns: usize,
}

/// What measures: its name, its program, and the most connections that it is asked for.
const GENERATORS: [(&str, Tool, usize); 3] =
    [("busbar bench load", Tool::Ours, usize::MAX), ("wrk", Tool::Wrk, usize::MAX), ("ab", Tool::Ab, 1000)];

/// Connections, and those of a quick run.
const CONNECTIONS: (&[usize], &[usize]) = (&[20, 100, 1000, 10_000], &[100]);
/// Bytes of a message.
const SIZE: usize = 1 << 10;
/// What is sent where, as cells call it.
pub const ECHO: &str = "echo";
/// The server that stalls, as cells call it.
pub const STALL: &str = "a server that stalls";
/// How often its requests are due, how long it is up, and how long it stalls in the middle.
const RATE: f64 = 500.0;
const STALLED: Duration = Duration::from_millis(500);

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Tool {
    Ours,
    Wrk,
    Ab,
}

/// How many measurements there are, and how long they will take.
pub fn estimate(options: &Options) -> (usize, Duration) {
    let turns = turns(options, &GENERATORS.map(|one| one.2));
    let whole: Duration = turns.iter().sum();
    (turns.len() + 2, whole + Duration::from_millis(300) * turns.len() as u32 + stall_length(options) * 2)
}

/// Numbers of connections.
fn connections(options: &Options) -> &'static [usize] {
    if options.quick { CONNECTIONS.1 } else { CONNECTIONS.0 }
}

/// How long each turn is, of generators that are asked for so many connections at most.
fn turns(options: &Options, most: &[usize]) -> Vec<Duration> {
    let asked = |clients: usize| most.iter().filter(move |&&most| clients <= most).map(move |_| clients);
    let round = connections(options).iter().flat_map(|&clients| asked(clients));
    let lengths: Vec<Duration> = round.map(|clients| length(options, clients)).collect();
    lengths.repeat(options.turns)
}

/// How long a turn is. Many connections take a second to be opened, before which wrk sends nothing: a turn has a second for each
/// 2,000.
fn length(options: &Options, clients: usize) -> Duration {
    options.seconds.max(Duration::from_secs(clients as u64 / 2000))
}

fn stall_length(options: &Options) -> Duration {
    if options.quick { Duration::from_secs(2) } else { Duration::from_secs(4) }
}

/// Measures the generators in turn.
///
/// # Errors
/// A message cannot be written.
pub fn run(place: &Place, backend: &Backend, options: &Options, tell: &mut Tell<'_>) -> Result<Run, String> {
    let mut run = steps::begin("generator", options.quick, &[]);
    let began = Instant::now();
    let body = place.work.join("order.xml");
    let message = messages::order_message(SIZE, &messages::Variant::default());
    std::fs::write(&body, &message).map_err(|error| format!("{}: {error}", body.display()))?;
    let url = format!("http://{}/services/EchoService", backend.address);
    let mut generators = Vec::new();
    for (name, tool, most) in GENERATORS {
        match program(place, tool) {
            Some(program) => {
                let system =
                    System { name: name.to_owned(), version: version(tool, &program), ..System::default() };
                run.systems.push(system);
                generators.push((name, tool, program, most));
            }
            None => {
                leave(&mut run, tell, format!("{name} is not installed (apt-get install wrk apache2-utils)"))
            }
        }
    }
    let count = turns(options, &generators.iter().map(|one| one.3).collect::<Vec<_>>()).len();
    let mut number = 0;
    'all: for &clients in connections(options) {
        let seconds = length(options, clients);
        for repetition in 0..options.turns {
            for (name, tool, program, _) in generators.iter().filter(|one| clients <= one.3) {
                number += 1;
                if !tell(News::Begins(number, count, format!("{name} {clients} connections"))) {
                    run.is_cut = true;
                    break 'all;
                }
                let words = words(*tool, place, &url, &body, clients, seconds);
                if let Some(system) = run.systems.iter_mut().find(|system| system.name == *name) {
                    system.command = format!("{} {}", program.display(), words.join(" "));
                }
                match measured(*tool, place, program, &words) {
                    Ok(figures) => {
                        let cell = Cell {
                            system: (*name).to_owned(),
                            scenario: ECHO.to_owned(),
                            size: SIZE,
                            clients,
                            repetition,
                            seconds: seconds.as_secs_f64(),
                            at: began.elapsed().as_secs_f64(),
                            ..figures
                        };
                        tell(News::Measured(&cell));
                        run.cells.push(cell);
                    }
                    Err(why) => leave(&mut run, tell, format!("{name} with {clients} connections: {why}")),
                }
            }
        }
    }
    if !run.is_cut {
        run.cells.extend(stalls(options, tell)?);
    }
    run.took = began.elapsed().as_secs_f64();
    Ok(run)
}

fn program(place: &Place, tool: Tool) -> Option<PathBuf> {
    match tool {
        Tool::Ours => Some(place.busbar.clone()),
        Tool::Wrk => systems::find("wrk"),
        Tool::Ab => systems::find("ab"),
    }
}

fn version(tool: Tool, program: &Path) -> String {
    let option = match tool {
        Tool::Ours => "--version",
        Tool::Wrk => "-v",
        Tool::Ab => "-V",
    };
    systems::version(program, option)
}

/// The arguments for so many connections and seconds. wrk and ab count an answer of any bytes.
fn words(
    tool: Tool,
    place: &Place,
    url: &str,
    body: &Path,
    clients: usize,
    seconds: Duration,
) -> Vec<String> {
    let (whole, body) = (seconds.as_secs().max(1).to_string(), body.display().to_string());
    let clients = clients.to_string();
    let words: Vec<&str> = match tool {
        Tool::Ours => vec![
            "bench",
            "load",
            url,
            "--file",
            &body,
            "--expect",
            "echo",
            "-c",
            &clients,
            "--duration",
            &whole,
            "--json",
        ],
        Tool::Wrk => {
            let script = place.work.join("post.lua");
            let text = format!(
                "local f = io.open('{body}', 'rb'); wrk.body = f:read('*a'); f:close()\nwrk.method = 'POST'; wrk.headers['Content-Type'] = 'text/xml; charset=UTF-8'\n"
            );
            // Where it is not written, wrk says that it is not there.
            let _ = std::fs::write(&script, text);
            let script = script.display().to_string();
            return [
                "-t1",
                &format!("-c{clients}"),
                &format!("-d{whole}s"),
                "--timeout",
                "30s",
                "--latency",
                "-s",
                &script,
                url,
            ]
            .map(str::to_owned)
            .to_vec();
        }
        Tool::Ab => vec![
            "-q",
            "-k",
            "-t",
            &whole,
            "-n",
            "100000000",
            "-c",
            &clients,
            "-p",
            &body,
            "-T",
            "text/xml; charset=UTF-8",
            url,
        ],
    };
    words.into_iter().map(str::to_owned).collect()
}

/// Runs a generator on the core of the systems, where nothing else works now; with its own CPU time for each request.
fn measured(tool: Tool, place: &Place, program: &Path, words: &[String]) -> Result<Cell, String> {
    let mut command = match place.system_core.filter(|_| systems::find("taskset").is_some()) {
        Some(core) => {
            let mut command = Command::new("taskset");
            command.args(["-c", &core.to_string()]).arg(program);
            command
        }
        None => Command::new(program),
    };
    let before = children_ticks()?;
    let output = command.args(words).output().map_err(|error| format!("{}: {error}", program.display()))?;
    let ticks = children_ticks()?.saturating_sub(before);
    let text = String::from_utf8_lossy(&output.stdout);
    let mut cell = read(tool, &text).ok_or_else(|| {
        let stderr = String::from_utf8_lossy(&output.stderr);
        format!("no figures: {}", stderr.lines().next().unwrap_or("it says nothing"))
    })?;
    // USER_HZ is 100 on all machines that this is built for.
    cell.cpu = (cell.right > 0).then(|| ticks as f64 * 1e4 / cell.right as f64);
    Ok(cell)
}

/// User and system time of all children of this process that have ended.
fn children_ticks() -> Result<u64, String> {
    let stat =
        std::fs::read_to_string("/proc/self/stat").map_err(|error| format!("/proc/self/stat: {error}"))?;
    let fields: Vec<&str> =
        stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace().collect();
    let field = |at: usize| fields.get(at).and_then(|text| text.parse::<u64>().ok()).unwrap_or_default();
    Ok(field(13) + field(14))
}

/// The figures of what a generator printed.
fn read(tool: Tool, text: &str) -> Option<Cell> {
    match tool {
        Tool::Ours => {
            let all: serde_json::Value = serde_json::from_str(text).ok()?;
            let latency = |name: &str| all["latency_ms"][name].as_f64();
            Some(Cell {
                right: all["right"].as_u64()?,
                failed: all["failed"].as_u64()?,
                rate: all["rate"].as_f64()?,
                mean: latency("mean")?,
                p50: latency("p50.0").or_else(|| latency("p50"))?,
                p90: latency("p90.0").or_else(|| latency("p90"))?,
                p99: latency("p99.0").or_else(|| latency("p99"))?,
                ..Cell::default()
            })
        }
        Tool::Wrk => {
            let line = |name: &str| text.lines().map(str::trim).find_map(|line| line.strip_prefix(name));
            let count =
                text.lines().find_map(|line| line.trim().split_once(" requests in "))?.0.parse().ok()?;
            let errors =
                |line: &str| line.split([',', ' ']).filter_map(|word| word.parse::<u64>().ok()).sum();
            let failed: u64 = line("Socket errors:").map_or(0, errors)
                + line("Non-2xx or 3xx responses:").map_or(0, errors);
            let mean = line("Latency")?.split_ascii_whitespace().find_map(time);
            Some(Cell {
                right: count,
                failed,
                rate: line("Requests/sec:")?.trim().parse().ok()?,
                mean: mean?,
                p50: time(line("50%")?.trim())?,
                p90: time(line("90%")?.trim())?,
                p99: time(line("99%")?.trim())?,
                ..Cell::default()
            })
        }
        Tool::Ab => {
            let line = |name: &str| text.lines().map(str::trim).find_map(|line| line.strip_prefix(name));
            let number = |name: &str| line(name)?.split_ascii_whitespace().next()?.parse::<f64>().ok();
            Some(Cell {
                right: number("Complete requests:")? as u64,
                failed: number("Failed requests:")? as u64,
                rate: number("Requests per second:")?,
                mean: number("Time per request:")?,
                p50: number("50%")?,
                p90: number("90%")?,
                p99: number("99%")?,
                ..Cell::default()
            })
        }
    }
}

/// A time as wrk writes it, in milliseconds.
fn time(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "us" => 1e-3,
        "ms" => 1.0,
        "s" => 1e3,
        "m" => 60e3,
        _ => return None,
    };
    Some(digits.parse::<f64>().ok()? * factor)
}

// --- a server that stalls --------------------------------------------------------------------------------------------

/// The same server, which answers nothing for half a second in the middle: as a closed loop sees it, and as those who would have come see it.
fn stalls(options: &Options, tell: &mut Tell<'_>) -> Result<Vec<Cell>, String> {
    let length = stall_length(options);
    let mut cells = Vec::new();
    for pace in [Pace::Closed, Pace::Open { rate: RATE, poisson: false }] {
        let server = Stalling::start(length / 2)?;
        tell(News::Begins(0, 0, STALL.to_owned()));
        let request = Request {
            method: "POST".to_owned(),
            target: None,
            headers: Vec::new(),
            body: b"order".to_vec(),
            unique: false,
            check: Check::Echo,
        };
        let url = format!("http://{}/", server.address).parse()?;
        let plan = Plan {
            pace,
            connections: 10,
            extent: Extent { duration: Some(length), requests: None },
            ..Plan::new(url, request)
        };
        let outcome = loadgen::run(&plan, &mut |progress| tell(News::Progress(progress)))?;
        cells.extend(match pace {
            Pace::Closed => vec![stall_cell("closed loop", &outcome.latency, &outcome)],
            Pace::Open { .. } => vec![
                stall_cell("open loop, from when a request was due", &outcome.latency, &outcome),
                stall_cell("open loop, from when it was sent", &outcome.service, &outcome),
            ],
        });
    }
    Ok(cells)
}

fn stall_cell(name: &str, latency: &loadgen::Latency, outcome: &Outcome) -> Cell {
    Cell {
        system: name.to_owned(),
        scenario: STALL.to_owned(),
        size: 5,
        clients: 10,
        seconds: outcome.elapsed.as_secs_f64(),
        right: outcome.right,
        failed: outcome.failed(),
        rate: outcome.rate(),
        mean: latency.mean(),
        p50: latency.percentile(50.0),
        p90: latency.percentile(90.0),
        p99: latency.percentile(99.0),
        p999: latency.percentile(99.9),
        max: latency.percentile(100.0),
        ..Cell::default()
    }
}

/// Echoes, 2 ms after a request came in; for a while not at all.
struct Stalling {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
}

impl Stalling {
    fn start(after: Duration) -> Result<Stalling, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let ends = Arc::<AtomicBool>::default();
        let (from, flag) = (Instant::now() + after, Arc::clone(&ends));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if flag.load(Relaxed) {
                    return;
                }
                // Small answers go at once.
                let _ = stream.set_nodelay(true);
                std::thread::spawn(move || {
                    let mut stream = BufReader::new(stream);
                    while let Some(body) = request(&mut stream) {
                        std::thread::sleep(Duration::from_millis(2));
                        let now = Instant::now();
                        if now >= from && now < from + STALLED {
                            std::thread::sleep(from + STALLED - now);
                        }
                        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
                        if stream.get_mut().write_all(&[head.as_bytes(), &body].concat()).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Ok(Stalling { address, ends })
    }
}

impl Drop for Stalling {
    fn drop(&mut self) {
        self.ends.store(true, Relaxed);
        // The one that lets it see that.
        let _ = std::net::TcpStream::connect(self.address);
    }
}

/// The body of the next request; `None`: there is none.
fn request(stream: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_ascii_lowercase();
        match line.strip_prefix("content-length:") {
            Some(value) => length = value.trim().parse::<usize>().ok()?.min(1 << 20),
            None if line.is_empty() => break,
            None => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_long_enough_for_their_connections() {
        let options = Options { quick: false, seconds: Duration::from_secs(1), turns: 3 };
        assert_eq!([20, 1000, 10_000].map(|clients| length(&options, clients).as_secs()), [1, 1, 5]);
        // Three generators up to 1,000 connections, two with 10,000, and twice the server that stalls.
        let whole = Duration::from_millis(3 * (3 * 3 * 1300 + 2 * 5300) + 2 * 4000);
        assert_eq!(estimate(&options), (3 * (3 * 3 + 2) + 2, whole));
        assert_eq!(estimate(&Options { quick: true, ..options }).0, 3 * 3 + 2);
    }

    #[test]
    fn figures_of_the_other_generators_are_read() {
        let wrk = "Running 1s test @ http://h/\n  1 threads and 20 connections\n  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency   512.50us  182.41us   6.45ms   92.57%\n    Req/Sec    39.57k     2.62k   41.80k    90.91%\n  Latency Distribution\n     50%  489.00us\n     75%  531.00us\n     90%    1.25ms\n     99%    1.10s\n  43277 requests in 1.10s, 49.90MB read\n  Socket errors: connect 1, read 2, write 0, timeout 0\n  Non-2xx or 3xx responses: 4\nRequests/sec:  39343.21\nTransfer/sec:     45.36MB\n";
        let cell = read(Tool::Wrk, wrk).unwrap();
        assert_eq!((cell.right, cell.failed, cell.rate), (43_277, 7, 39_343.21));
        assert_eq!((cell.mean, cell.p50, cell.p90, cell.p99), (0.5125, 0.489, 1.25, 1100.0));
        let ab = "Complete requests:      24519\nFailed requests:        2\nRequests per second:    24518.90 [#/sec] (mean)\nTime per request:       0.816 [ms] (mean)\nTime per request:       0.041 [ms] (mean, across all concurrent requests)\n\nPercentage of the requests served within a certain time (ms)\n  50%      1\n  66%      1\n  90%      2\n  99%      3\n 100%     12 (longest request)\n";
        let cell = read(Tool::Ab, ab).unwrap();
        assert_eq!((cell.right, cell.failed, cell.rate, cell.mean), (24_519, 2, 24_518.9, 0.816));
        assert_eq!((cell.p50, cell.p90, cell.p99), (1.0, 2.0, 3.0));
        for (tool, text) in [(Tool::Wrk, "unable to connect"), (Tool::Ab, ""), (Tool::Ours, "{}")] {
            assert!(read(tool, text).is_none(), "{tool:?}");
        }
    }

    #[test]
    fn who_would_have_come_in_a_stall_is_seen_by_the_open_loop_only() {
        let options = Options { quick: true, seconds: Duration::from_secs(1), turns: 1 };
        let cells = stalls(&options, &mut |_| true).unwrap();
        let [closed, due, sent] = &cells[..] else { panic!("{cells:?}") };
        assert_eq!((closed.failed, due.failed), (0, 0), "{cells:?}");
        // Half a second of two: a quarter of what is due waits, ten of some thousands of the others do.
        assert!(due.p90 > 100.0, "{due:?}");
        assert!(closed.p90 < due.p90 / 2.0 && sent.p90 < due.p90 / 2.0, "{cells:?}");
    }
}
