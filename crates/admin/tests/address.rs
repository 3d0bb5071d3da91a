//! The admin address from outside: real sockets, a bus with traffic.

use busbar_admin::access::AccessLog;
use busbar_admin::{Admin, AdminState, Deployment, Generations, NotRolledBack, Output, Phase, Readiness};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use transport::{Server, ServerLimits, Workers};

/// A bus behind an admin address.
struct World {
    admin: Admin,
    bus: SocketAddr,
    readiness: Arc<Readiness>,
    access: AccessLog,
    access_file: PathBuf,
    _workers: Workers,
}

const CONFIGURATION: &str = r#"<definitions xmlns="http://ws.apache.org/ns/synapse">
  <endpoint name="Backend"><address uri="BACKEND/"/></endpoint>
  <endpoint name="Broken"><loadbalance/></endpoint>
  <proxy name="Stock" transports="http"><target endpoint="Backend"/></proxy>
  <proxy name="a/b" transports="http" startOnLoad="false"><target endpoint="Backend"/></proxy>
  <api name="Orders" context="/orders"><resource methods="GET"><inSequence/></resource></api>
  <sequence name="Empty"/>
  <sequence name="Wrong"><sned/></sequence>
  <localEntry key="note">text with password=secret</localEntry>
  <sequence name="main"/>
  <sequence name="fault"/>
</definitions>"#;

/// What a test does in the place of a reload.
type Reload = Box<dyn Fn() -> Result<String, String> + Send + Sync>;

struct Deployed(Reload);

impl Deployment for Deployed {
    fn reload(&self) -> Result<String, String> {
        self.0()
    }

    fn roll_back(&self, number: u64) -> Result<String, NotRolledBack> {
        Err(NotRolledBack::Unknown(format!("there is no generation {number}")))
    }

    fn generations(&self) -> Generations {
        Generations { kept: Vec::new(), rolled_back: None, refused: None }
    }

    fn keep(&self) -> Result<bool, String> {
        Err("No space left on device".to_owned())
    }
}

fn world(name: &str, reload: Option<Reload>) -> World {
    let backend = flow::testing::backend("");
    let registry = flow::testing::registry(Vec::new());
    let text = CONFIGURATION.replace("BACKEND", &backend);
    let mut loaded =
        config::load_text("world.xml", &text, std::path::Path::new("."), &config::LoadOptions::default());
    let client = transport::Client::new(transport::ClientLimits::default());
    let services = Arc::new(flow::Services::new(client.clone()));
    let plan = flow::compile(
        &loaded.configuration,
        loaded.sources,
        loaded.faulty,
        &registry,
        &services,
        &mut loaded.diagnostics,
    );
    let access_file = std::env::temp_dir().join(format!("busbar-admin-{}-{name}.log", std::process::id()));
    let access =
        AccessLog::start(r#"%h "%r" %>s %{service}x "%{User-Agent}i""#, &Output::File(access_file.clone()))
            .expect("the access log starts");
    let bus = Arc::new(flow::Bus::new(plan, services, Some(Arc::new(access.clone()))));
    let workers = Workers::start(1).expect("workers start");
    let any: SocketAddr = ([127, 0, 0, 1], 0).into();
    let server = Arc::new(Server::bind(any, None, ServerLimits::default()).expect("a port is free"));
    server.serve(&workers, Arc::clone(&bus)).expect("the listener accepts");
    let readiness = Readiness::new();
    let state = AdminState {
        bus,
        servers: vec![("http", Arc::clone(&server))],
        client,
        readiness: Arc::clone(&readiness),
        access: Some(access.clone()),
        log: None,
        started: Instant::now(),
        credentials: busbar_admin::Credentials::default(),
        deployment: reload.map(|reload| -> Arc<dyn Deployment> { Arc::new(Deployed(reload)) }),
    };
    let admin = Admin::start(any, state).expect("the admin address starts");
    World { admin, bus: server.local_addr(), readiness, access, access_file, _workers: workers }
}

impl World {
    fn get(&self, path: &str) -> (u16, String) {
        ask(self.admin.local_addr(), &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n"), "")
    }

    fn json(&self, path: &str) -> (u16, Value) {
        let (status, body) = self.get(path);
        (status, serde_json::from_str(&body).expect("the answer is JSON"))
    }

    fn post(&self, path: &str) -> (u16, String) {
        ask(self.admin.local_addr(), &format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n"), "")
    }

    fn traffic(&self, path: &str) -> u16 {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/xml\r\nUser-Agent: a\"b\r\n"
        );
        ask(self.bus, &head, "<a/>").0
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.access_file);
    }
}

fn ask(to: SocketAddr, head: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(to).expect("somebody listens");
    write!(stream, "{head}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
        .expect("the request can be sent");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("an answer comes");
    let (head, body) = response.split_once("\r\n\r\n").expect("the answer has a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.expect("the answer has a status"), body.to_owned())
}

#[test]
fn health_and_readiness() {
    let world = world("health", None);
    assert_eq!(world.get("/healthz"), (200, "ok\n".to_owned()));
    assert_eq!(world.get("/readyz").0, 503);
    world.readiness.set(Phase::Serving);
    assert_eq!(world.get("/readyz"), (200, "ready\n".to_owned()));
    world.readiness.set(Phase::Draining);
    let (status, why) = world.get("/readyz");
    assert!(status == 503 && why.contains("draining"), "{status} {why}");
    assert_eq!(world.get("/healthz").0, 200);
}

#[test]
fn half_a_request_keeps_nobody_out() {
    let world = world("half", None);
    world.readiness.set(Phase::Serving);
    let begin = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(world.admin.local_addr()).expect("it connects");
        stream.write_all(bytes).expect("it is taken");
        stream
    };
    // Half a head, half a body, nothing at all: more of each than there are places.
    let body = b"PUT /loggers/root HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\ninf";
    let parts = [b"GET /readyz HTTP/1.1\r\nHost: loc".as_slice(), body, b""];
    let held: Vec<TcpStream> = (0..300).map(|at| begin(parts[at % parts.len()])).collect();
    for _ in 0..20 {
        assert_eq!(world.get("/readyz").0, 200);
    }
    // The first of them has made room.
    let mut first = &held[0];
    first.set_read_timeout(Some(std::time::Duration::from_secs(30))).expect("a timeout can be set");
    assert!(matches!(first.read(&mut [0; 1024]), Ok(0) | Err(_)));
}

#[test]
fn errors_are_json() {
    let world = world("errors", None);
    let large = "x".repeat(100_000);
    for (head, body, status) in [
        ("GET /nothing HTTP/1.1", "", 404),
        ("DELETE /metrics HTTP/1.1", "", 405),
        ("PUT /loggers/root HTTP/1.1", large.as_str(), 413),
        ("PUT /loggers/root HTTP/1.1", "\u{1}", 501),
        ("GET /artifacts/%ff HTTP/1.1", "", 400),
        ("GET /artifacts/proxy/%ff HTTP/1.1", "", 400),
    ] {
        let (answered, text) = ask(world.admin.local_addr(), &format!("{head}\r\nHost: localhost\r\n"), body);
        assert_eq!(answered, status, "{head}: {text}");
        let json: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{head}: {text}"));
        assert!(json["error"].is_string(), "{head}: {text}");
    }
}

#[test]
fn a_port_that_is_taken_is_a_clear_error_and_a_dropped_one_is_free() {
    let world = world("port", None);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = taken.local_addr().expect("it is bound");
    let state = |world: &World| AdminState {
        bus: Arc::new(
            flow::testing::configuration(
                &flow::testing::registry(Vec::new()),
                "<definitions xmlns=\"http://ws.apache.org/ns/synapse\"/>",
            )
            .bus,
        ),
        servers: Vec::new(),
        client: transport::Client::new(transport::ClientLimits::default()),
        readiness: Arc::clone(&world.readiness),
        access: None,
        log: None,
        started: Instant::now(),
        credentials: busbar_admin::Credentials::default(),
        deployment: None,
    };
    let error = Admin::start(address, state(&world)).expect_err("the port is taken");
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    assert_eq!(
        error.to_string(),
        format!("cannot listen on the admin address {address}: address in use; choose another with --admin")
    );
    drop(taken);
    let first = Admin::start(address, state(&world)).expect("the port is free");
    // An open connection does not keep it alive.
    let _idle = TcpStream::connect(address).expect("it listens");
    drop(first);
    let second = Admin::start(address, state(&world)).expect("the port is free again");
    assert_eq!(second.local_addr(), address);
}

#[test]
fn artifacts_have_places_and_states() {
    let world = world("artifacts", None);
    let (status, all) = world.json("/artifacts");
    assert_eq!(status, 200);
    assert!(all["generation"].as_u64() >= Some(1), "{all:#}");
    let list = |kind: &str| {
        let items = all["artifacts"][kind].as_array().cloned().unwrap_or_default();
        let fact = |item: &Value, name: &str| item[name].as_str().unwrap_or("?").to_owned();
        let line =
            |item: &Value| format!("{} {} {}", fact(item, "name"), fact(item, "state"), fact(item, "place"));
        items.iter().map(line).collect::<Vec<_>>()
    };
    assert_eq!(list("proxy"), ["Stock started world.xml:4:3", "a/b stopped world.xml:5:3"]);
    assert_eq!(list("endpoint"), ["Backend active world.xml:2:3"]);
    assert_eq!(list("api"), ["Orders started world.xml:6:3"]);
    assert_eq!(list("localEntry"), ["note active world.xml:9:3"]);
    assert!(list("sequence").contains(&"Empty active world.xml:7:3".to_owned()), "{:?}", list("sequence"));
    assert!(list("sequence").iter().all(|line| !line.starts_with("Wrong")), "{:?}", list("sequence"));
    let faulty: Vec<_> = all["faulty"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| one["name"].as_str().unwrap_or("?"))
        .collect();
    assert_eq!(faulty, ["Broken", "Wrong"]);
    assert!(!all.to_string().contains("secret"), "{all:#}");

    let (status, wrong) = world.json("/artifacts/sequence/Wrong");
    assert_eq!(
        (status, wrong["state"].as_str(), wrong["place"].as_str(), wrong["message"].as_str()),
        (200, Some("faulty"), Some("world.xml:8:27"), Some("there is no mediator `sned`"))
    );
    let (status, proxy) = world.json("/artifacts/proxy-services/a%2Fb");
    assert_eq!((status, proxy["name"].as_str(), proxy["kind"].as_str()), (200, Some("a/b"), Some("proxy")));
    assert_eq!(world.json("/artifacts/proxy/a/b").1["transports"], serde_json::json!(["http"]));
    let (_, kind) = world.json("/artifacts/endpoint");
    assert_eq!(
        (kind["artifacts"].as_array().map(Vec::len), kind["faulty"].as_array().map(Vec::len)),
        (Some(1), Some(1))
    );
    for path in ["/artifacts/proxy/Nothing", "/artifacts/nothing", "/artifacts/nothing/x", "/nothing"] {
        let (status, response) = world.json(path);
        assert!(status == 404 && response["error"].is_string(), "{path}: {status} {response}");
    }
    assert_eq!(world.get("/reload").0, 405);
}

#[test]
fn traffic_is_counted_and_logged() {
    let world = world("metrics", None);
    world.readiness.set(Phase::Serving);
    assert_eq!(world.traffic("/services/Stock"), 200);
    assert_eq!(world.traffic("/services/Stock"), 200);
    let (status, text) = world.get("/metrics");
    assert_eq!(status, 200);
    let metrics = parse(&text);
    let value =
        |sample: &str| *metrics.get(sample).unwrap_or_else(|| panic!("{sample} is missing in {text}"));
    assert_eq!(value(r#"busbar_requests_total{kind="proxy",service="Stock"}"#), 2.0);
    assert_eq!(value(r#"busbar_request_errors_total{kind="proxy",service="Stock"}"#), 0.0);
    assert_eq!(value(r#"busbar_request_duration_seconds_count{kind="proxy",service="Stock"}"#), 2.0);
    assert_eq!(
        value(r#"busbar_request_duration_seconds_bucket{kind="proxy",service="Stock",le="+Inf"}"#),
        2.0
    );
    assert_eq!(value(r#"busbar_endpoint_state{endpoint="Backend",address="test",state="active"}"#), 1.0);
    assert_eq!(value(r#"busbar_listener_requests_total{listener="http"}"#), 2.0);
    assert_eq!(value("busbar_pool_requests_total"), 2.0);
    assert_eq!(value("busbar_artifacts_faulty"), 2.0);
    assert_eq!(value("busbar_ready"), 1.0);
    assert_eq!(value("busbar_aggregates_open"), 0.0);
    assert_eq!(value("busbar_access_log_dropped_total"), 0.0);
    assert!(value("process_resident_memory_bytes") > 1e6 && value("process_open_fds") > 3.0);
    assert!(value("busbar_plan_generation") >= 1.0 && value("busbar_uptime_seconds") > 0.0);

    let guide = include_str!("../../../docs/operations.md");
    let (_, guide) = guide.split_once("## Metrics").expect("there is a section");
    let (guide, _) = guide.split_once("\n## ").expect("there is another section");
    let rows = guide.lines().filter(|line| line.starts_with("| `")).filter_map(|row| row.split(" | ").next());
    let names = rows.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let documented: BTreeSet<&str> = names.collect();
    let families = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let families: BTreeSet<&str> = families.filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(documented, families, "docs/operations.md and /metrics differ");

    assert!(world.access.flush());
    let log = std::fs::read_to_string(&world.access_file).expect("the log is there");
    let line = r#"127.0.0.1 "POST /services/Stock HTTP/1.1" 200 Stock "a\"b""#;
    assert_eq!(log.lines().collect::<Vec<_>>(), [line, line]);
}

/// Parses the text format strictly: HELP and TYPE first, the samples of a family together, no sample twice, buckets
/// that only grow.
fn parse(text: &str) -> BTreeMap<String, f64> {
    let mut samples = BTreeMap::new();
    let mut families = HashSet::new();
    let mut buckets: HashMap<String, f64> = HashMap::new();
    let (mut family, mut kind) = (String::new(), String::new());
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').expect("HELP has a text");
            assert!(families.insert(name.to_owned()) && !help.is_empty(), "{line}");
            (family, kind) = (name.to_owned(), String::new());
        } else if let Some(declared) = line.strip_prefix("# TYPE ") {
            let (name, declared) = declared.split_once(' ').expect("TYPE has a type");
            assert!(name == family && ["counter", "gauge", "histogram"].contains(&declared), "{line}");
            kind = declared.to_owned();
            assert!(kind != "counter" || name.ends_with("_total"), "{line}");
        } else {
            let (sample, value) = line.rsplit_once(' ').expect("a sample has a value");
            let value: f64 = value.parse().expect("a value is a number");
            let name = sample.split('{').next().unwrap_or("");
            let suffix = name.strip_prefix(family.as_str()).expect("a sample belongs to its family");
            let suffixes: &[&str] = if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(suffixes.contains(&suffix), "{line}");
            if suffix == "_bucket" {
                let series = sample.split(",le=").next().unwrap_or("").to_owned();
                let before = buckets.insert(series, value).unwrap_or(0.0);
                assert!(before <= value, "{line}");
            }
            assert!(samples.insert(sample.to_owned(), value).is_none(), "twice: {line}");
        }
    }
    samples
}

#[test]
fn reloading_runs_the_callback() {
    let fails = std::sync::atomic::AtomicBool::new(false);
    let reload: Reload =
        Box::new(move || match fails.fetch_xor(true, std::sync::atomic::Ordering::Relaxed) {
            false => Ok("reloaded: 7 artifacts".to_owned()),
            true => Err("http://joe:pass@host cannot be read".to_owned()),
        });
    let world = world("reload", Some(reload));
    let (status, done) = world.post("/reload");
    assert!(status == 200 && done.contains("reloaded: 7 artifacts"), "{status} {done}");
    let (status, failed) = world.post("/reload");
    assert!(status == 500 && failed.contains("http://***@host cannot be read"), "{status} {failed}");
    let foreign = "POST /reload HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n";
    assert_eq!(ask(world.admin.local_addr(), foreign, "").0, 403);
}

#[test]
fn a_bus_without_a_callback_and_one_that_panics_say_so() {
    assert_eq!(world("none", None).post("/reload").0, 501);
    let world = world("panic", Some(Box::new(|| panic!("as planned"))));
    let (status, body) = world.post("/reload");
    assert!(status == 500 && body.contains("the log has the reason"), "{status} {body}");
    assert_eq!(world.get("/healthz").0, 200);
}
