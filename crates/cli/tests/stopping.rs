//! How a bus stops, and how a listener goes: whoever has a connection has an answer.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use std::io::{ErrorKind, Result};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Scope;
use std::time::Duration;
use support::{Process, configuration, configure, exchange, free_port};

const CLIENTS: usize = 50;

/// What clients saw.
#[derive(Default)]
struct Seen {
    answers: AtomicUsize,
    /// Connections that were established and ended without the answer.
    broken: AtomicUsize,
    gone: AtomicBool,
}

impl Seen {
    fn answered(&self, answer: Result<(u16, String, Vec<u8>)>) -> Option<String> {
        match answer {
            Ok((status, head, body)) => {
                // Between the configuration without a listener and its end, the answer is that.
                let is_told = status == 503 && body == b"nobody listens here any more\n";
                assert!(is_told || status == 200 && body == b"<a/>", "{head}");
                self.answers.fetch_add(1, Ordering::Relaxed);
                Some(head)
            }
            Err(_) => {
                self.broken.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }

    /// A client that opens a connection for each request, until nobody listens.
    fn asks_anew(&self, address: &str) {
        while !self.gone.load(Ordering::Relaxed) {
            match TcpStream::connect(address) {
                Ok(mut stream) => {
                    _ = self.answered(exchange(&mut stream, "POST", "/services/P", b"<a/>", ""))
                }
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => return,
                Err(_) => _ = self.broken.fetch_add(1, Ordering::Relaxed),
            }
        }
    }

    /// A client that keeps its connection, until it is told that it ends.
    fn asks_again(&self, address: &str) {
        let Ok(mut stream) = TcpStream::connect(address) else { return };
        loop {
            match self.answered(exchange(&mut stream, "POST", "/services/P", b"<a/>", "")) {
                Some(head) if !head.contains("Connection: close\r\n") => {}
                _ => return,
            }
        }
    }

    /// Starts the clients, and lets them ask for a while.
    fn begin<'s>(&'s self, scope: &'s Scope<'s, '_>, address: &'s str) {
        for client in 0..CLIENTS {
            scope.spawn(move || match client % 5 {
                0 => self.asks_again(address),
                _ => self.asks_anew(address),
            });
        }
        std::thread::sleep(Duration::from_millis(200));
    }

    fn check(&self, what: &str) {
        let (answers, broken) = (self.answers.load(Ordering::Relaxed), self.broken.load(Ordering::Relaxed));
        assert!(answers > 0, "{what}");
        assert_eq!(broken, 0, "{what}: of {answers} answers and these");
    }
}

const PROXY: &str = "<proxy name='P'><target><inSequence><respond/></inSequence></target></proxy>";

#[test]
fn a_stop_answers_every_established_connection() {
    let path = configuration("stopping", PROXY);
    for round in 0..10 {
        let mut bus = Process::run(&path, &[]);
        let (seen, address) = (Seen::default(), bus.http().to_owned());
        std::thread::scope(|scope| {
            seen.begin(scope, &address);
            bus.signal("TERM");
            let code = bus.wait();
            seen.gone.store(true, Ordering::Relaxed);
            assert_eq!(code, Some(0));
        });
        seen.check(&format!("stop {round}"));
        assert!(!bus.stderr().contains("are reset"), "{}", bus.stderr());
    }
}

/// A message of a connection that waited is one like others: its work after the 202 is waited for.
#[test]
fn a_request_on_its_way_is_taken_with_its_work() {
    let backend = Process::backend(&["--delay", "300"]);
    let address = backend.http();
    let path = configuration(
        "stopping-late",
        &format!(
            "<proxy name='P'><target><inSequence><property name='OUT_ONLY' value='true'/>\
             <send><endpoint><address uri='http://{address}/echo'/></endpoint></send></inSequence></target></proxy>"
        ),
    );
    let mut bus = Process::run(&path, &["--set", "log.access=common"]);
    let mut stream = TcpStream::connect(bus.http()).unwrap();
    bus.signal("TERM");
    bus.says("draining", 1);
    let (status, head, _) = exchange(&mut stream, "POST", "/services/P", b"<a/>", "").unwrap();
    assert_eq!(status, 202);
    assert!(head.contains("Connection: close\r\n"), "{head}");
    assert_eq!(bus.wait(), Some(0));
    assert!(!bus.stderr().contains("given up"), "{}", bus.stderr());
}

/// What is given up at the end of the drain is named, and is not waited for once more.
#[test]
fn a_stop_does_not_wait_for_what_it_has_given_up() {
    let backend = Process::backend(&["--delay", "20000"]);
    let address = backend.http();
    let path = configuration(
        "stopping-given-up",
        &format!(
            "<proxy name='P'><target><inSequence><iterate expression='//i'><target><sequence><filter xpath='//i = 1'><then/><else>\
             <call><endpoint><address uri='http://{address}/echo'/></endpoint></call></else></filter>\
             <aggregate><onComplete expression='//i'><respond/></onComplete></aggregate></sequence></target></iterate></inSequence></target></proxy>"
        ),
    );
    let mut bus = Process::run(&path, &["--set", "limits.drain=500ms"]);
    let address = bus.http().to_owned();
    let client = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        exchange(&mut stream, "POST", "/services/P", b"<a><i>1</i><i>2</i></a>", "")
    });
    std::thread::sleep(Duration::from_millis(300));
    let began = std::time::Instant::now();
    bus.signal("TERM");
    assert_eq!(bus.wait(), Some(0));
    let took = began.elapsed();
    assert!(client.join().unwrap().is_err(), "it has no answer");
    let log = bus.stderr();
    assert!(
        log.contains("1 connections were cut") && log.contains("given up at the end of the drain"),
        "{log}"
    );
    // CLEARING is three seconds, and the backend takes longer.
    assert!(took < Duration::from_secs(3), "{took:?}: {log}");
}

#[test]
fn a_listener_that_goes_with_a_reload_answers_every_established_connection() {
    let port = free_port();
    let endpoint = format!(
        "<inboundEndpoint name='A' protocol='http' sequence='S'><parameters><parameter name='inbound.http.port'>{port}</parameter>\
         </parameters></inboundEndpoint>"
    );
    let with = format!("{endpoint}{PROXY}<sequence name='S'><respond/></sequence>");
    let path = configuration("stopping-listener", &with);
    let bus = Process::run(&path, &[]);
    for round in 1..=3 {
        let (seen, address) = (Seen::default(), format!("127.0.0.1:{port}"));
        std::thread::scope(|scope| {
            seen.begin(scope, &address);
            configure(&path, PROXY);
            bus.signal("HUP");
            bus.says("reloaded: ", 2 * round - 1);
        });
        seen.check(&format!("reload {round}"));
        configure(&path, &with);
        bus.signal("HUP");
        bus.says("reloaded: ", 2 * round);
    }
}

#[test]
fn the_certificate_that_the_bus_makes_is_said_once() {
    let [one, two] = [free_port(), free_port()];
    let endpoint = |name: &str, port: u16| {
        format!(
            "<inboundEndpoint name='{name}' protocol='https' sequence='S'><parameters><parameter name='inbound.http.port'>{port}</parameter>\
             </parameters></inboundEndpoint>"
        )
    };
    let artifacts = |number: usize| {
        format!(
            "{}{}<sequence name='S'><log description='{number}'/><respond/></sequence>",
            endpoint("A", one),
            endpoint("B", two)
        )
    };
    let path = configuration("stopping-certificate", &artifacts(0));
    let bus = Process::run(&path, &["--https", "127.0.0.1:0"]);
    for number in 1..=2 {
        configure(&path, &artifacts(number));
        bus.signal("HUP");
        bus.says("reloaded: ", number);
    }
    assert_eq!(bus.stderr().matches("a certificate made at the start").count(), 1, "{}", bus.stderr());
}
