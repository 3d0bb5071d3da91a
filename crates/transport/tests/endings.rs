//! Each request has one end, and the handler hears of it: refused, panicked, answered whole or not.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use busbar_transport::{
    ConnectionInfo, End, Handler, OnEnd, Outcome, Refused, Request, Response, ServerLimits,
};
use support::*;

/// Tells all that it hears of.
struct Witness(Sender<String>);

struct Reporter(Sender<String>);

impl OnEnd for Reporter {
    fn ended(self: Box<Self>, end: &End<'_>) {
        let outcome = match &end.outcome {
            Outcome::Whole => "whole".to_owned(),
            Outcome::Abandoned => "abandoned".to_owned(),
            Outcome::Stopped => "stopped".to_owned(),
            Outcome::Cut(error) => format!("cut: {error}"),
        };
        self.0.send(format!("{} {} {outcome}", end.status, end.bytes)).unwrap();
    }
}

/// Tells if it is dropped.
struct Guard(Sender<String>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.send("dropped".to_owned()).unwrap();
    }
}

impl Handler for Witness {
    async fn handle(&self, request: Request, _: &ConnectionInfo) -> Response {
        let response = match request.head.path() {
            "/panic" => {
                let _body = request.body;
                panic!("on purpose {}", 7);
            }
            "/panic-later" => {
                tokio::time::sleep(Duration::from_millis(20)).await;
                panic!("later");
            }
            "/wait" => {
                let _guard = Guard(self.0.clone());
                tokio::time::sleep(Duration::from_secs(60)).await;
                Response::empty(204)
            }
            "/large" => Response::new(200, vec![b'x'; 50_000_000]),
            "/control" => {
                let mut response = Response::new(200, "text");
                response.head.reason = "line\r\nbreak".into();
                response
            }
            "/hello" => Response::new(200, "hello"),
            _ => Response::new(200, request.body),
        };
        Response { on_end: Some(Box::new(Reporter(self.0.clone()))), ..response }
    }

    fn refused(&self, refused: &Refused<'_>) {
        assert!(refused.client.peer.ip().is_loopback());
        let took = if refused.took >= Duration::from_millis(100) { " late" } else { "" };
        self.0.send(format!("{} {} [{}]{took}", refused.status, refused.why, refused.line())).unwrap();
    }

    fn panicked(&self, _: &ConnectionInfo, message: &str) {
        self.0.send(format!("panic: {message}")).unwrap();
    }
}

fn witness(limits: ServerLimits) -> (Running, Receiver<String>) {
    let (told, heard) = channel();
    (start_with(Witness(told), limits), heard)
}

fn next(heard: &Receiver<String>) -> String {
    heard.recv_timeout(Duration::from_secs(10)).expect("an end")
}

#[test]
fn refused_requests_are_told_with_what_is_known_of_them() {
    let limits = ServerLimits { head: Duration::from_millis(100), ..ServerLimits::default() };
    let (bus, heard) = witness(limits);
    let long = "a".repeat(40_000);
    for (wire, expected) in [
        ("GET /a\x01b HTTP/1.1\r\nHost: a\r\n\r\n", "400 invalid request line [GET /a?b HTTP/1.1]"),
        ("GET /x HTTP/1.1\r\n\r\n", "400 missing Host [GET /x HTTP/1.1]"),
        (&format!("GET /x HTTP/1.1\r\nX: {long}"), "431 the request head is too large [GET /x HTTP/1.1]"),
        ("GET /slow HT", "408 the request head took too long [GET /slow HT] late"),
        ("GET /x HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n", "417 unknown expectation [GET /x HTTP/1.1]"),
    ] {
        let response = until_close(bus.addr, wire.as_bytes());
        assert!(response.starts_with(&format!("HTTP/1.1 {}", &expected[..3])), "{response}");
        assert_eq!(next(&heard), expected);
    }
    // A client that connects and goes has asked for nothing.
    drop(connect(bus.addr));
    until_close(bus.addr, b"GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(next(&heard), "200 5 whole");
}

#[test]
fn a_panic_ends_as_500_and_harms_nobody_else() {
    let (bus, heard) = witness(ServerLimits::default());
    let mut other = connect(bus.addr);
    other.write_all(b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    read_response(&mut other);
    assert_eq!(next(&heard), "200 5 whole");
    for (path, expected) in [("/panic", "panic: on purpose 7"), ("/panic-later", "panic: later")] {
        let wire = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
        let response = until_close(bus.addr, wire.as_bytes());
        assert!(
            response.starts_with("HTTP/1.1 500 ") && response.contains("Connection: close"),
            "{response}"
        );
        assert_eq!(next(&heard), expected);
        other.write_all(b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        assert_eq!(read_response(&mut other).1, b"hello");
        assert_eq!(next(&heard), "200 5 whole");
    }
    drop(other);
    let begun = std::time::Instant::now();
    while bus.server.stats().open > 0 {
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", bus.server.stats());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn answers_end_whole_or_abandoned_or_cut() {
    let (bus, heard) = witness(ServerLimits::default());
    let mut stream = connect(bus.addr);
    stream
        .write_all(b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\nHEAD /hello HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    assert_eq!(next(&heard), "200 5 whole");
    assert_eq!(next(&heard), "200 0 whole");
    // What cannot be written is an error of the bus.
    stream.write_all(b"GET /control HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert_eq!(next(&heard), "500 0 whole");
    // A client that waits, and goes: its future is dropped.
    let mut stream = connect(bus.addr);
    stream.write_all(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    std::thread::sleep(Duration::from_millis(50));
    stream.shutdown(Shutdown::Both).unwrap();
    assert_eq!(next(&heard), "dropped");
    // One that takes half of its answer.
    let mut stream = connect(bus.addr);
    stream.write_all(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    stream.read_exact(&mut [0; 1000]).unwrap();
    drop(stream);
    let end = next(&heard);
    assert!(end.starts_with("200 ") && end.ends_with(" abandoned") && !end.contains(" 50000000 "), "{end}");
    // An echo whose request breaks off.
    let response = until_close(
        bus.addr,
        b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nX\r\n",
    );
    assert!(response.contains("hello") && !response.contains("\r\n0\r\n"), "{response}");
    assert_eq!(next(&heard), "200 5 cut: malformed body: invalid chunk size");
}

#[test]
fn an_answer_cut_by_the_end_of_a_drain_is_told_too() {
    let (bus, heard) = witness(ServerLimits::default());
    let mut stream = connect(bus.addr);
    stream.write_all(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    stream.read_exact(&mut [0; 1000]).unwrap();
    let drained = block_on(bus.server.drain(Duration::from_millis(100)));
    assert_eq!(drained.cut, 1);
    assert!(next(&heard).ends_with(" stopped"));
}

/// How long a refused request took begins with its first byte, not with the wait for it.
#[test]
fn the_wait_for_a_request_is_no_part_of_it() {
    struct Took(Sender<String>);
    impl Handler for Took {
        async fn handle(&self, _: Request, _: &ConnectionInfo) -> Response {
            Response::empty(204)
        }
        fn refused(&self, refused: &Refused<'_>) {
            self.0.send(format!("{:?}", refused.took < Duration::from_millis(100))).unwrap();
        }
    }
    let limits = ServerLimits {
        idle: Duration::from_secs(2),
        head: Duration::from_secs(2),
        ..ServerLimits::default()
    };
    let (sender, heard) = channel();
    let bus = start_with(Took(sender), limits);
    let mut stream = connect(bus.addr);
    std::thread::sleep(Duration::from_millis(400));
    stream.write_all(b"GET /x HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!(next(&heard), "true");
}
