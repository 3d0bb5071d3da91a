//! `busbar demo`: starts the embedded backend and the example round, and shows every scenario.

use crate::bus::{Addresses, Running, Start, init_logging};
use crate::excerpt::excerpt;
use crate::round::Unpacked;
use crate::secured::{Client as SecuredClient, Keys};
use crate::settings::Settings;
use crate::words::counted;
use bench::backend::Backend;
use bench::check::{Entity, ReceivedResponse};
use bench::messages::{self, parse_size, size_name};
use bench::scenarios::{Case, SECURE, Scenario, all, find};
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};
use transport::{
    Body, Client, ClientLimits, ClientTls, ClientTlsOptions, Headers, Method, OutRequest, Roots, SendOptions,
    Server, ServerLimits, Target, Workers,
};

/// Ports of the bus and its admin address, where they are free.
const HTTP: u16 = 8280;
const HTTPS: u16 = 8243;
const ADMIN: u16 = 9164;

/// A local address with a port that is free.
const ANY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// The width of a line.
const WIDTH: usize = 100;

/// Starts the embedded backend and the example round, and shows every scenario.
///
/// Sends a message through every proxy service, API and data service of the examples (the round, and the shop with its database), shows what went in and what came out, and
/// goes on serving until Ctrl-C. Needs nothing else: backend and configuration are part of the binary. Exits with 1
/// when an answer is not what it must be. The keys of the secure proxy and its client are made at the start, in the temporary directory
/// of the demo, and go with it.
#[derive(clap::Args)]
pub struct Args {
    /// End after the scenarios.
    #[arg(long)]
    once: bool,
    /// Only this scenario; can be repeated.
    #[arg(long = "scenario", value_name = "NAME", value_parser = scenario)]
    scenarios: Vec<&'static Scenario>,
    /// Size of the messages: 512, 1k, 100k, 1m.
    #[arg(long, default_value = "1k", value_parser = parse_size)]
    size: usize,
    /// Only make the keys of the secure proxy and its client, in this folder, and say how the round is run with them.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["once", "scenarios", "size"])]
    keys: Option<PathBuf>,
}

fn scenario(name: &str) -> Result<&'static Scenario, String> {
    find(name).ok_or_else(|| {
        let names = all().map(|scenario| scenario.name);
        diagnostics::did_you_mean(name, names).unwrap_or_else(|| "there is no such scenario".to_owned())
    })
}

/// Runs the verb.
pub fn run(args: Args) -> ExitCode {
    let done = match &args.keys {
        Some(folder) => make_keys(folder).map(|()| true),
        None => demo(&args),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("busbar demo: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Keys for a round that is run without the demo.
fn make_keys(folder: &std::path::Path) -> Result<(), String> {
    let keys = Keys::make(folder)?;
    let shown = |path: &std::path::Path| {
        path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string()
    };
    let mut line = String::from("busbar run examples/round");
    for (name, path) in keys.settings() {
        let _ = write!(line, " --set {name}={}", shown(path));
    }
    // Nobody may be reading.
    let _ = writeln!(std::io::stdout(), "{line}");
    Ok(())
}

/// Whether every answer was what it must be.
fn demo(args: &Args) -> Result<bool, String> {
    let began = Instant::now();
    let failed = |error: std::io::Error| format!("cannot start: {error}");
    let backend_workers = Workers::start(1).map_err(failed)?;
    let backend = Server::bind(ANY, None, ServerLimits::default())
        .map_err(|error| format!("the backend cannot listen: {error}"))?;
    backend.serve(&backend_workers, Arc::new(Backend::default())).map_err(failed)?;
    let unpacked = Unpacked::new(backend.local_addr())?;

    let path = unpacked.round();
    let keys = Keys::make(&unpacked.folder("keys"))?;
    let mut settings = Settings::load(&path, None, &[])?;
    settings.security.keystore = Some(keys.bus.clone());
    settings.security.truststore = Some(keys.client_certificate.clone());
    settings.tls.certificate = Some(keys.tls_certificate.clone());
    settings.tls.key = Some(keys.tls_key.clone());
    // The scenarios are shown here; BUSBAR_LOG=info shows what the bus logs about them.
    settings.log.level.get_or_insert_with(|| "off".to_owned());
    let logging = init_logging(&settings)?;
    let (http, https, admin) = (free(HTTP), free(HTTPS), free(ADMIN));
    let start = |http, https| {
        let (path, settings) = (unpacked.round(), settings.clone());
        let addresses = Addresses { http: Some(http), https: Some(https), admin: None };
        let (source, trace) = (None, Vec::new());
        Running::start(&Start { path, addresses, workers: None, settings, source, strict: false, trace })
    };
    // Somebody may have taken a port since it was free.
    let running = start(http, https).or_else(|error| match http.port() == 0 && https.port() == 0 {
        true => Err(error),
        false => start(ANY, ANY),
    })?;
    let https = running.https.ok_or("the bus has no https")?;
    let tls = ClientTlsOptions { roots: Roots::File(keys.tls_certificate.clone()), ..Default::default() };
    let bus = Bus {
        http: running.http,
        https,
        tls: ClientTls::new(&tls).map_err(|error| error.to_string())?,
        client: SecuredClient::new(&keys, &path)?,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let admin = running.admin(admin, &logging).or_else(|_| running.admin(ANY, &logging))?;

    runtime.block_on(async {
        let mut end = Ends::new().map_err(failed)?;
        let mut page = Page { colour: std::io::stdout().is_terminal(), text: String::new() };
        page.places(&running, admin.local_addr(), backend.local_addr(), began.elapsed());
        let scenarios: Vec<&Scenario> = match args.scenarios.is_empty() {
            true => all().collect(),
            false => args.scenarios.clone(),
        };
        let mut all_right = false;
        let round = async {
            let client = Client::new(ClientLimits::default());
            let mut outcomes = Vec::new();
            for scenario in scenarios {
                let case = scenario.case(args.size);
                let response = bus.ask(&client, scenario, &case).await;
                outcomes.push(page.scenario(scenario, &case, &response, &bus.address(scenario)));
                page.flush();
            }
            page.table(&outcomes);
            all_right = outcomes.iter().all(|outcome| outcome.passed);
            if !args.once {
                page.examples(&unpacked, running.http, args.size)?;
            }
            page.flush();
            Ok::<_, String>(())
        };
        tokio::select! {
            done = round => done?,
            () = end.signal() => return Ok(false),
        }
        if !args.once {
            end.signal().await;
        }
        tokio::select! {
            () = running.drain() => {}
            () = end.signal() => {}
        }
        Ok(all_right)
    })
}

/// SIGTERM or Ctrl-C.
struct Ends(Signal, Signal);

impl Ends {
    fn new() -> std::io::Result<Ends> {
        Ok(Ends(signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?))
    }

    async fn signal(&mut self) {
        tokio::select! {
            _ = self.0.recv() => {}
            _ = self.1.recv() => {}
        }
    }
}

/// A local address with this port, or with any that is free.
fn free(port: u16) -> SocketAddr {
    let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    match TcpListener::bind(wanted) {
        Ok(_) => wanted,
        Err(_) => ANY,
    }
}

/// The answer, or why there is none.
type Came = Result<Response, String>;

struct Response {
    /// Bytes of request and answer on the wire, where they were secured.
    secured: Option<(usize, usize)>,
    status: u16,
    reason: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    time: Duration,
}

/// The bus as its clients see it.
struct Bus {
    http: SocketAddr,
    https: SocketAddr,
    tls: ClientTls,
    client: SecuredClient,
}

impl Bus {
    fn is_secure(scenario: &Scenario) -> bool {
        scenario.name == SECURE.name
    }

    /// Scheme and authority of what a scenario asks.
    fn address(&self, scenario: &Scenario) -> String {
        match Bus::is_secure(scenario) {
            true => format!("https://{}", self.https),
            false => format!("http://{}", self.http),
        }
    }

    /// Sends the request of a scenario; that of the secure one is secured before, and its answer opened.
    async fn ask(&self, client: &Client, scenario: &Scenario, case: &Case) -> Came {
        let request = &case.request;
        if !Bus::is_secure(scenario) {
            let target = Target::http(&self.http.ip().to_string(), self.http.port());
            return ask(client, &target, case, request.body.clone()).await;
        }
        let target = Target::https("localhost", self.https.port(), self.tls.clone());
        let mut message = self.client.secure(&request.body)?;
        let sent = message.bytes.clone();
        let bytes_in = sent.len();
        let mut response = ask(client, &target, case, sent).await?;
        response.secured = Some((bytes_in, response.body.len()));
        response.body = self.client.open(&mut message, &response.body)?;
        Ok(response)
    }
}

async fn ask(client: &Client, target: &Target, case: &Case, body: Vec<u8>) -> Came {
    let request = &case.request;
    let mut headers = Headers::new();
    for (name, value) in &request.headers {
        headers.append(name, value);
    }
    let mut body = match body.is_empty() {
        true => Body::Empty,
        false => Body::Bytes(body.into()),
    };
    let method = Method::new(request.method);
    let out =
        OutRequest { method: &method, target: request.path, headers: &headers, host: None, body: &mut body };
    let began = Instant::now();
    let mut response =
        client.send(target, out, &SendOptions::default()).await.map_err(|error| error.to_string())?;
    let body =
        std::mem::take(&mut response.body).collect(u64::MAX).await.map_err(|error| error.to_string())?;
    let time = began.elapsed();
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let headers = response.head.headers.iter().map(|(name, value)| (name.to_owned(), text(value))).collect();
    let reason = response.head.reason.to_string();
    Ok(Response { secured: None, status: response.head.status, reason, headers, body: body.to_vec(), time })
}

/// A scenario with its result.
struct Outcome {
    name: &'static str,
    about: &'static str,
    passed: bool,
    status: String,
    sent: usize,
    received: String,
    time: String,
}

/// What is printed.
struct Page {
    colour: bool,
    text: String,
}

const BOLD: &str = "1";
const DIM: &str = "2";
const GREEN: &str = "32";
const RED: &str = "31";
const CYAN: &str = "36";

impl Page {
    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn line(&mut self, line: impl AsRef<str>) {
        self.text.push_str(line.as_ref().trim_end());
        self.text.push('\n');
    }

    fn flush(&mut self) {
        let mut stdout = std::io::stdout().lock();
        // Nobody may be reading.
        let _ = stdout.write_all(self.text.as_bytes()).and_then(|()| stdout.flush());
        self.text.clear();
    }

    fn places(&mut self, running: &Running, admin: SocketAddr, backend: SocketAddr, took: Duration) {
        let plan = running.bus.plan();
        let title = self.paint(BOLD, "The example round");
        self.line(format!(
            "{title}: {}, started in {} ms",
            counted(plan.artifacts(), "artifact"),
            took.as_millis()
        ));
        let taken = |address: SocketAddr, port: u16| match address.port() == port {
            true => String::new(),
            false => format!("  (port {port} is in use)"),
        };
        self.line(format!("  bus      http://{}{}", running.http, taken(running.http, HTTP)));
        if let Some(https) = running.https {
            self.line(format!("           https://{https}{}", taken(https, HTTPS)));
        }
        self.line(format!("  admin    http://{admin}{}", taken(admin, ADMIN)));
        self.line(format!("  backend  http://{backend}"));
        self.line("");
    }

    fn scenario(&mut self, scenario: &Scenario, case: &Case, came: &Came, bus: &str) -> Outcome {
        let request = &case.request;
        let title = self.paint(BOLD, scenario.name);
        self.line(format!("{title}  {}", scenario.about));
        let url = self.paint(CYAN, &format!("{bus}{}", request.path));
        self.line(format!("  {} {url}", request.method));
        if !request.body.is_empty() || !request.headers.is_empty() {
            let headers: Vec<String> =
                request.headers.iter().map(|(name, value)| header(name, value)).collect();
            let sent = format!("{}, {}", headers.join(", "), bytes(request.body.len()));
            self.block("in", &sent, &excerpt(&request.body, WIDTH - 7, 2));
        }
        let mut outcome = Outcome {
            name: scenario.name,
            about: scenario.about,
            passed: false,
            status: "-".to_owned(),
            sent: request.body.len(),
            received: "-".to_owned(),
            time: "-".to_owned(),
        };
        let verdict = match came {
            Err(error) => Err(format!("no answer: {error}")),
            Ok(response) => {
                outcome.status = response.status.to_string();
                outcome.received = grouped(response.body.len());
                if let Some((sent, received)) = response.secured {
                    (outcome.sent, outcome.received) = (sent, grouped(received));
                    let line = format!("signed and encrypted: {} and {}", bytes(sent), bytes(received));
                    self.block("wire", &line, &[]);
                }
                outcome.time = milliseconds(response.time);
                self.response(case, response);
                let headers: Vec<(&str, &str)> =
                    response.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                let answer =
                    ReceivedResponse { status: response.status, headers: &headers, body: &response.body };
                case.check(&answer).map_err(|mismatch| mismatch.to_string())
            }
        };
        outcome.passed = verdict.is_ok();
        let line = match verdict {
            Ok(()) => format!("{}    {}, {}", self.paint(GREEN, "✓"), asked_for(case), outcome.time),
            Err(reason) => format!("{}    {reason}", self.paint(RED, "✗")),
        };
        self.line(format!("  {line}"));
        self.line("");
        outcome
    }

    fn response(&mut self, case: &Case, response: &Response) {
        let mut line = format!("{} {}", response.status, response.reason);
        for (name, value) in &response.headers {
            let is_expected = case.expect.headers.iter().any(|(want, _)| want.eq_ignore_ascii_case(name));
            if is_expected || name.eq_ignore_ascii_case("Content-Type") {
                let _ = write!(line, ", {}", header(name, value));
            }
        }
        if !response.body.is_empty() && response.body == case.request.body {
            let _ = write!(line, ", the same {}", bytes(response.body.len()));
            return self.block("out", &line, &[]);
        }
        let _ = write!(line, ", {}", bytes(response.body.len()));
        self.block("out", &line, &excerpt(&response.body, WIDTH - 7, 2));
    }

    fn block(&mut self, label: &str, line: &str, body: &[String]) {
        self.line(format!("  {} {line}", self.paint(DIM, &format!("{label:4}"))));
        for line in body {
            self.line(format!("       {line}"));
        }
    }

    fn table(&mut self, outcomes: &[Outcome]) {
        let width = |text_of: fn(&Outcome) -> &str| {
            outcomes.iter().map(|outcome| text_of(outcome).chars().count()).max().unwrap_or(0)
        };
        let (name, about) = (width(|outcome| outcome.name), width(|outcome| outcome.about));
        let head =
            format!("  {:name$}  {:about$}  status  bytes in  bytes out      time", "scenario", "shows");
        let head = self.paint(DIM, &head);
        self.line(head);
        for outcome in outcomes {
            let mark = if outcome.passed { self.paint(GREEN, "✓") } else { self.paint(RED, "✗") };
            self.line(format!(
                "{mark} {:name$}  {:about$}  {:>6}  {:>8}  {:>9}  {:>8}",
                outcome.name,
                outcome.about,
                outcome.status,
                grouped(outcome.sent),
                outcome.received,
                outcome.time
            ));
        }
        let passed = outcomes.iter().filter(|outcome| outcome.passed).count();
        let code = if passed == outcomes.len() { GREEN } else { RED };
        let sum = self.paint(code, &format!("{passed} of {} answers are what they must be", outcomes.len()));
        self.line("");
        self.line(sum);
    }

    /// Requests to try.
    fn examples(&mut self, unpacked: &Unpacked, bus: SocketAddr, size: usize) -> Result<(), String> {
        let mut order = String::new();
        let wanted = format!("order-{}.xml", size_name(size));
        for file in messages::files(&[size]) {
            let path = unpacked.add(&format!("messages/{}", file.name), &file.bytes)?;
            if file.name == wanted {
                order = path.display().to_string();
            }
        }
        self.line("");
        self.line(format!("Still serving {}; Ctrl-C ends it. To try:", unpacked.round().display()));
        self.line(format!("  curl http://{bus}/orders/quote/IBM"));
        self.line(format!("  curl 'http://{bus}/services/XSLTProxy?wsdl'"));
        self.line(format!("  curl http://{bus}/services/Items/items"));
        for proxy in ["CBRProxy", "CloneAggregate2Proxy", "PayloadFactory20Proxy"] {
            self.line(format!(
                "  curl -H 'Content-Type: text/xml' -H 'SOAPAction: \"urn:buyStocks\"' --data-binary @{order} \
                 http://{bus}/services/{proxy}"
            ));
        }
        self.line(format!("  services: http://{bus}/services/"));
        Ok(())
    }
}

/// The promises about the answer that it keeps.
fn asked_for(case: &Case) -> String {
    match &case.expect.body {
        Entity::Empty => "no body".to_owned(),
        Entity::Bytes(bytes) if *bytes == case.request.body => "the very bytes that went in".to_owned(),
        Entity::Bytes(_) => "the very bytes that it must be".to_owned(),
        Entity::Payload(_) => "the payload says what it must".to_owned(),
        Entity::AnyOrder(_) => "every part of the payload is there".to_owned(),
        Entity::Fault("") => "a fault".to_owned(),
        Entity::Fault(reason) => format!("a fault: {reason}"),
        Entity::Json(_) => "the JSON says what it must".to_owned(),
        Entity::Contains(_) => "the XML has in it what it must".to_owned(),
    }
}

/// A header on a line with others: the content type says itself what it is.
fn header(name: &str, value: &str) -> String {
    if name.eq_ignore_ascii_case("Content-Type") { value.to_owned() } else { format!("{name}: {value}") }
}

fn bytes(count: usize) -> String {
    match count {
        0 => "no body".to_owned(),
        1 => "1 byte".to_owned(),
        n => format!("{} bytes", grouped(n)),
    }
}

/// `1,024`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        for (number, want) in [(0, "0"), (999, "999"), (1024, "1,024"), (1_048_576, "1,048,576")] {
            assert_eq!(grouped(number), want);
        }
        assert_eq!(
            (bytes(0), bytes(1), bytes(2048)),
            ("no body".into(), "1 byte".into(), "2,048 bytes".into())
        );
        assert_eq!(milliseconds(Duration::from_micros(1250)), "1.2 ms");
    }

    #[test]
    fn scenarios_are_found_by_name() {
        assert_eq!(scenario("cbrproxy").map(|found| found.name), Ok("CBRProxy"));
        assert_eq!(scenario("CBRProxi").map(|found| found.name), Err("did you mean `CBRProxy`?".to_owned()));
        assert!(scenario("x").is_err());
    }
}
