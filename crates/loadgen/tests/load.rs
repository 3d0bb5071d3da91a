//! Runs against small servers that answer as a test wants.
#![allow(clippy::unwrap_used)] // helpers of tests

use busbar_loadgen::{Check, ErrorKind, Extent, Outcome, Pace, Plan, Process, Request, Tls, run};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How a server answers the request of that number, counted from 1 over all connections.
type Answers = dyn Fn(usize, &[u8]) -> Reaction + Send + Sync;

enum Reaction {
    Echo,
    Body(&'static str),
    Status(u16),
    After(Duration),
    Chunked,
    Half,
    Silence,
}

struct Server {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
    /// Answers that were about to be sent.
    answers: Arc<AtomicUsize>,
}

/// A thread for each connection; they end with the process.
fn serve(
    answers: impl Fn(usize, &[u8]) -> Reaction + Send + Sync + 'static,
    tls: Option<Arc<rustls::ServerConfig>>,
) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (connections, requests) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let sent = Arc::<AtomicUsize>::default();
    let (answers, server): (Arc<Answers>, _) =
        (Arc::new(answers), Server { address, connections, requests, answers: Arc::clone(&sent) });
    let (connections, requests) = (Arc::clone(&server.connections), Arc::clone(&server.requests));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            connections.fetch_add(1, Relaxed);
            let _ = stream.set_nodelay(true);
            let (answers, requests, tls) = (Arc::clone(&answers), Arc::clone(&requests), tls.clone());
            let sent = Arc::clone(&sent);
            std::thread::spawn(move || match tls {
                None => converse(stream, &answers, &requests, &sent),
                Some(config) => {
                    let connection = rustls::ServerConnection::new(config).unwrap();
                    converse(rustls::StreamOwned::new(connection, stream), &answers, &requests, &sent);
                }
            });
        }
    });
    server
}

fn converse(stream: impl Read + Write, answers: &Arc<Answers>, requests: &AtomicUsize, sent: &AtomicUsize) {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut length, mut closes, mut is_first) = (0, false, true);
        loop {
            let mut line = String::new();
            if !matches!(stream.read_line(&mut line), Ok(count) if count > 0) {
                return;
            }
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() && !is_first {
                break;
            }
            is_first = false;
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().unwrap();
            }
            closes |= line == "connection: close";
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        let number = requests.fetch_add(1, Relaxed) + 1;
        let whole = |status: u16, body: &[u8]| {
            let close = if closes { "Connection: close\r\n" } else { "" };
            let head = format!("HTTP/1.1 {status} X\r\n{close}Content-Length: {}\r\n\r\n", body.len());
            [head.as_bytes(), body].concat()
        };
        let bytes = match answers(number, &body) {
            Reaction::Echo => whole(200, &body),
            Reaction::Body(text) => whole(200, text.as_bytes()),
            Reaction::Status(status) => whole(status, &body),
            Reaction::After(time) => {
                std::thread::sleep(time);
                whole(200, &body)
            }
            Reaction::Chunked => {
                let head =
                    format!("HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n", body.len());
                [head.as_bytes(), &body, b"\r\n0\r\n\r\n"].concat()
            }
            Reaction::Half => {
                let all = whole(200, &body);
                let _ = stream.get_mut().write_all(&all[..all.len() - 1]);
                return;
            }
            Reaction::Silence => continue,
        };
        sent.fetch_add(1, Relaxed);
        if stream.get_mut().write_all(&bytes).and_then(|()| stream.get_mut().flush()).is_err() || closes {
            return;
        }
    }
}

fn request(body: impl Into<Vec<u8>>) -> Request {
    let headers = vec![("Content-Type".to_owned(), "text/plain".to_owned())];
    Request {
        method: "POST".into(),
        target: None,
        headers,
        body: body.into(),
        unique: false,
        check: Check::Echo,
    }
}

/// So many requests over so many connections.
fn plan(server: &Server, requests: u64, connections: usize) -> Plan {
    Plan {
        connections,
        extent: Extent { duration: None, requests: Some(requests) },
        interval: Duration::from_millis(20),
        ..Plan::new(format!("http://{}/path", server.address).parse().unwrap(), request("order"))
    }
}

fn outcome(plan: &Plan) -> Outcome {
    run(plan, &mut |_| true).unwrap()
}

fn count(outcome: &Outcome, kind: ErrorKind) -> u64 {
    outcome.errors.iter().filter(|errors| errors.kind == kind).map(|errors| errors.count).sum()
}

#[test]
fn every_request_is_sent_once_and_every_answer_counted() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let bodies = Arc::clone(&seen);
    let server = serve(
        move |number, body| {
            bodies.lock().unwrap().push(String::from_utf8(body.to_vec()).unwrap());
            if number.is_multiple_of(2) { Reaction::Echo } else { Reaction::Chunked }
        },
        None,
    );
    let mut plan = plan(&server, 400, 8);
    plan.requests = vec![Request { unique: true, ..request("a {{id}} {{uuid}}") }, request("b")];
    plan.processes = vec![Process { name: "self".into(), id: std::process::id() }];
    let outcome = outcome(&plan);
    assert_eq!((outcome.right, outcome.failed(), outcome.unfinished), (400, 0, 0), "{:?}", outcome.errors);
    assert_eq!((outcome.latency.count(), outcome.service.count()), (400, 400));
    assert_eq!((server.connections.load(Relaxed), server.requests.load(Relaxed)), (8, 400));
    let mut seen = seen.lock().unwrap().clone();
    assert_eq!(seen.iter().filter(|body| *body == "b").count(), 200);
    seen.retain(|body| body != "b");
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 200, "no two are the same");
    assert!(outcome.cpu_per_request("self").unwrap() > 0.0 && outcome.resident("self").unwrap() > 0);
    let json = outcome.json();
    assert_eq!(json["right"].as_u64(), Some(400));
    assert!(json["latency_ms"]["p99"].as_f64().unwrap() > 0.0, "{json}");
}

#[test]
fn without_keep_alive_each_request_has_a_connection() {
    let server = serve(|_, _| Reaction::Echo, None);
    let outcome = outcome(&Plan { keep_alive: false, ..plan(&server, 60, 5) });
    assert_eq!((outcome.right, outcome.failed()), (60, 0), "{:?}", outcome.errors);
    assert_eq!(server.connections.load(Relaxed), 60);
}

#[test]
fn what_is_not_the_right_answer_does_not_count() {
    let server = serve(
        |number, _| match number {
            3 => Reaction::Body("ordex"),
            5 => Reaction::Status(500),
            7 => Reaction::Half,
            _ => Reaction::Echo,
        },
        None,
    );
    let found = outcome(&plan(&server, 20, 1));
    assert_eq!((found.right, count(&found, ErrorKind::Wrong), count(&found, ErrorKind::Closed)), (17, 2, 1));
    assert!(found.errors.iter().any(|errors| errors.first.contains("from byte 4 on")), "{:?}", found.errors);
    assert_eq!(server.connections.load(Relaxed), 2, "a connection is used again after a wrong answer");

    let mut plan = plan(&serve(|_, _| Reaction::Body("a <b/> c"), None), 10, 2);
    plan.requests[0].check = Check::contains(vec!["<b/>".into()]);
    assert_eq!(outcome(&plan).right, 10);
    plan.requests[0].check = Check::contains(vec!["<c/>".into()]);
    let found = outcome(&plan);
    assert_eq!((found.right, count(&found, ErrorKind::Wrong)), (0, 10));
}

#[test]
fn a_server_that_is_silent_or_gone_ends_nothing_but_its_requests() {
    let server = serve(|number, _| if number == 2 { Reaction::Silence } else { Reaction::Echo }, None);
    let found = outcome(&Plan { timeout: Duration::from_millis(150), ..plan(&server, 6, 1) });
    assert_eq!(found.right + count(&found, ErrorKind::Timeout), 6, "{:?}", found.errors);
    assert!(count(&found, ErrorKind::Timeout) >= 1);

    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = Server {
        address: port,
        connections: Arc::default(),
        requests: Arc::default(),
        answers: Arc::default(),
    };
    let found = outcome(&plan(&nobody, 4, 2));
    assert_eq!((found.right, count(&found, ErrorKind::Connect)), (0, 4), "{:?}", found.errors);
}

/// A server that stalls once for 400 ms, while a request is due every 4 ms. Whoever waits for the stalled answer before sending the
/// next request sees one slow answer; those who would have sent meanwhile, a hundred.
#[test]
fn a_stall_counts_for_all_that_were_due_in_it() {
    let stall = Duration::from_millis(400);
    let server =
        serve(move |number, _| if number == 20 { Reaction::After(stall) } else { Reaction::Echo }, None);
    let pace = Pace::Open { rate: 250.0, poisson: false };
    let open = outcome(&Plan { pace, ..plan(&server, 250, 1) });
    assert_eq!((open.right, open.failed()), (250, 0), "{:?}", open.errors);
    let slow = Duration::from_millis(50);
    let (due, sent) = (open.latency.above(slow), open.service.above(slow));
    assert!(due >= 60, "{due} of 250 were late by more than 50 ms");
    assert!(sent >= 1 && sent * 10 <= due, "{sent} took more than 50 ms, {due} were late by that");
    assert!(open.latency.percentile(80.0) > 5.0 * open.service.percentile(80.0));

    // The closed loop on the same server sees the one.
    let server =
        serve(move |number, _| if number == 20 { Reaction::After(stall) } else { Reaction::Echo }, None);
    let closed = outcome(&plan(&server, 250, 1));
    assert!(closed.latency.above(slow) * 5 < due, "{} in the closed loop", closed.latency.above(slow));
}

#[test]
fn an_open_loop_sends_at_its_rate_and_waits_for_the_last() {
    let server = serve(|_, _| Reaction::After(Duration::from_millis(30)), None);
    let mut plan = plan(&server, 1, 20);
    plan.pace = Pace::Open { rate: 100.0, poisson: false };
    plan.extent = Extent { duration: Some(Duration::from_millis(500)), requests: None };
    plan.warm_up = Duration::from_millis(100);
    let mut warming = 0;
    let outcome = run(&plan, &mut |progress| {
        warming += usize::from(progress.warming);
        true
    })
    .unwrap();
    assert!((49..=51).contains(&outcome.right), "{} requests were due in half a second", outcome.right);
    assert_eq!((outcome.failed(), outcome.unfinished), (0, 0));
    assert!(warming > 0 && outcome.latency.percentile(0.0) >= 29.0);
}

/// Whoever measures next should not find a server that is busy with what nobody waits for.
#[test]
fn what_is_under_way_at_the_end_is_waited_for_and_does_not_count() {
    let server = serve(|_, _| Reaction::After(Duration::from_millis(300)), None);
    let mut plan = plan(&server, 1, 8);
    plan.extent = Extent { duration: Some(Duration::from_millis(100)), requests: None };
    let found = outcome(&plan);
    let (requests, answers) = (server.requests.load(Relaxed), server.answers.load(Relaxed));
    assert_eq!((found.right, found.failed(), found.unfinished), (0, 0, 8));
    assert_eq!((requests, answers), (8, 8));
}

#[test]
fn https_with_bodies_larger_than_any_buffer() {
    let made =
        rcgen::generate_simple_self_signed(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let server = serve(|_, _| Reaction::Echo, Some(Arc::new(config)));
    let mut plan = plan(&server, 12, 3);
    plan.url.https = true;
    plan.requests = vec![request("small"), request(vec![b'x'; 300_000])];
    plan.tls = Some(Tls::new(None).unwrap());
    let found = outcome(&plan);
    assert_eq!((found.right, found.failed()), (12, 0), "{:?}", found.errors);
    let found = outcome(&Plan { keep_alive: false, ..plan });
    assert_eq!((found.right, found.failed()), (12, 0), "{:?}", found.errors);
}

#[test]
fn what_cannot_be_run_is_said() {
    let server = serve(|_, _| Reaction::Echo, None);
    let plan = plan(&server, 1, 1);
    let fails = |plan: Plan| run(&plan, &mut |_| true).unwrap_err();
    assert!(fails(Plan { requests: Vec::new(), ..plan.clone() }).contains("nothing to send"));
    assert!(
        fails(Plan { pace: Pace::Open { rate: 0.0, poisson: false }, ..plan.clone() }).contains("no rate")
    );
    assert!(
        fails(Plan { extent: Extent { duration: None, requests: None }, ..plan.clone() }).contains("neither")
    );
    let none = Some(Duration::ZERO);
    assert!(
        fails(Plan { extent: Extent { duration: none, requests: None }, ..plan.clone() }).contains("no time")
    );
    assert!(fails(Plan { timeout: Duration::ZERO, ..plan.clone() }).contains("no time"));
    let url = "https://localhost/".parse().unwrap();
    assert!(fails(Plan { url, ..plan }).contains("needs TLS"));
}
