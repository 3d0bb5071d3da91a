//! The listener, seen from raw sockets.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use busbar_transport::{ConnectionInfo, Handler, Request, Response, Server, ServerLimits};
use support::*;

fn status(wire: &str) -> String {
    wire.lines().next().unwrap_or_default().split(' ').nth(1).unwrap_or_default().to_owned()
}

#[test]
fn malformed_requests_are_refused_and_the_connection_closed() {
    let echo = start(Echo);
    let long = "a".repeat(40_000);
    for (wire, expected) in [
        ("GET / HTTP/1.1\r\n\r\n", "400"),
        ("GET / HTTP/1.1\nHost: a\n\n", "400"),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", "505"),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "400",
        ),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", "400"),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n folded\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", "400"),
        ("\x16\x03\x01\x02\x00\x01\x00\x01", "400"),
        (&format!("GET / HTTP/1.1\r\nHost: a\r\nX: {long}\r\n\r\n"), "431"),
        (&format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", &long[..9000]), "414"),
        (&format!("GET /{long}"), "414"),
    ] {
        let response = until_close(echo.addr, wire.as_bytes());
        assert_eq!(status(&response), expected, "{wire:.60?} -> {response}");
        assert!(response.contains("Connection: close"));
    }
    // A broken chunk shows when the body is read: the echo had begun, so its answer must not look whole.
    let wire = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n0\r\n\r\n";
    assert!(!until_close(echo.addr, wire.as_bytes()).ends_with("0\r\n\r\n"));
    let wire = wire.replace("POST /", "POST /length");
    assert_eq!(status(&until_close(echo.addr, wire.as_bytes())), "400");
    assert_eq!(echo.server.stats().refused, 11);
}

#[test]
fn keep_alive_pipelining_and_heads_byte_by_byte() {
    let echo = start(Echo);
    let mut stream = connect(echo.addr);
    let one = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    let two = "POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\nT: 1\r\n\r\n";
    let three = "GET /ignore HTTP/1.1\r\nHost: a\r\n\r\n";
    stream.write_all(format!("{one}{two}{three}{one}").as_bytes()).unwrap();
    for expected in ["hello", "abcde", "ignored", "hello"] {
        let (head, body) = read_response(&mut stream);
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert_eq!(body, expected.as_bytes());
    }
    for byte in two.bytes() {
        stream.write_all(&[byte]).unwrap();
    }
    assert_eq!(read_response(&mut stream).1, b"abcde");
    // An ignored body is thrown away and the connection goes on.
    stream
        .write_all(
            format!(
                "POST /ignore HTTP/1.1\r\nHost: a\r\nContent-Length: 50000\r\n\r\n{}{one}",
                "x".repeat(50000)
            )
            .as_bytes(),
        )
        .unwrap();
    assert_eq!(read_response(&mut stream).1, b"ignored");
    assert_eq!(read_response(&mut stream).1, b"hello");
    assert_eq!(echo.server.stats().accepted, 1);
}

#[test]
fn http_1_0_closes_unless_asked_to_keep_alive() {
    let echo = start(Echo);
    let response = until_close(echo.addr, b"POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi");
    assert!(response.contains("Connection: close") && response.ends_with("\r\n\r\nhi"), "{response}");
    let mut stream = connect(echo.addr);
    for _ in 0..3 {
        stream
            .write_all(b"POST / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi")
            .unwrap();
        let (head, body) = read_response(&mut stream);
        assert!(head.contains("Connection: keep-alive\r\n"), "{head}");
        assert_eq!(body, b"hi");
    }
    stream.write_all(b"GET /close HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert!(read_response(&mut stream).0.contains("Connection: close"));
    assert_eq!(stream.read(&mut [0; 10]).unwrap(), 0);
}

#[test]
fn head_204_and_the_fields_as_they_came() {
    let echo = start(Echo);
    let response = until_close(echo.addr, b"HEAD /head HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(response.ends_with("\r\n\r\n"), "{response}");
    let response = until_close(echo.addr, b"GET /204 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(
        response.starts_with("HTTP/1.1 204 No Content\r\n") && !response.contains("Content-Length"),
        "{response}"
    );
    let wire = "BREW /head HTTP/1.1\r\nhOsT: a\r\nX-b: 2\r\nx-A:  1 \r\nX-B: 3\r\nConnection: close\r\n\r\n";
    let response = until_close(echo.addr, wire.as_bytes());
    assert!(
        response.ends_with("BREW /head\nhOsT: a\nX-b: 2\nx-A: 1\nX-B: 3\nConnection: close\n"),
        "{response}"
    );
}

#[test]
fn expect_100_continue_when_the_body_is_wanted() {
    let echo = start(Echo);
    let mut stream = connect(echo.addr);
    let head = "Host: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
    stream.write_all(format!("POST /length HTTP/1.1\r\n{head}").as_bytes()).unwrap();
    assert_eq!(read_response(&mut stream).0, "HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"hello").unwrap();
    assert_eq!(read_response(&mut stream).1, b"5");
    // Not wanted: the final answer at once, and the connection closed, for nobody knows whether the body comes.
    stream.write_all(format!("POST /ignore HTTP/1.1\r\n{head}").as_bytes()).unwrap();
    let (head, body) = read_response(&mut stream);
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("Connection: close"), "{head}");
    assert_eq!(body, b"ignored");
}

#[test]
fn every_wait_has_a_deadline() {
    let short = Duration::from_millis(150);
    let limits =
        ServerLimits { idle: short, head: short, body: short, linger: short, ..ServerLimits::default() };
    let echo = start_with(Echo, limits);
    let begun = Instant::now();
    assert_eq!(until_close(echo.addr, b""), "");
    assert_eq!(status(&until_close(echo.addr, b"GET / HT")), "408");
    let response = until_close(echo.addr, b"POST /length HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe");
    assert!(response.starts_with("HTTP/1.1 400") && response.contains("timed out"), "{response}");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_truncated_body_is_never_complete() {
    let echo = start_with(Echo, ServerLimits { half_close: true, ..ServerLimits::default() });
    for wire in [
        "POST /length HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhell",
        "POST /length HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "POST /length HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
    ] {
        let mut stream = connect(echo.addr);
        stream.write_all(wire.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let (head, body) = read_response(&mut stream);
        assert!(head.starts_with("HTTP/1.1 400"), "{head}");
        assert!(String::from_utf8_lossy(&body).contains("before the body was complete"));
    }
}

#[test]
fn drain_finishes_what_is_in_flight() {
    let echo = start(Echo);
    let mut idle = connect(echo.addr);
    let mut busy = connect(echo.addr);
    idle.write_all(b"GET /ignore HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    read_response(&mut idle);
    busy.write_all(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let server = echo.server.clone();
    let draining = std::thread::spawn(move || block_on(server.drain(Duration::from_secs(5))));
    assert_eq!(idle.read(&mut [0; 1]).unwrap(), 0);
    let (head, body) = read_response(&mut busy);
    assert!(head.contains("Connection: close"), "{head}");
    assert_eq!(body, b"slow");
    assert_eq!(draining.join().unwrap().cut, 0);
    assert!(std::net::TcpStream::connect(echo.addr).is_err());
    assert_eq!(echo.server.stats().open, 0);
}

/// Holds its worker for a while, so that connections wait in the queue of the kernel.
struct Holds;

impl Handler for Holds {
    async fn handle(&self, request: Request, _: &ConnectionInfo) -> Response {
        if request.head.path() == "/hold" {
            std::thread::sleep(Duration::from_millis(400));
        }
        Response::new(200, "here")
    }
}

#[test]
fn drain_answers_the_connections_that_wait() {
    for limits in [ServerLimits::default(), ServerLimits { connections: 2, ..ServerLimits::default() }] {
        let bus = start_with(Holds, limits);
        let mut holds = connect(bus.addr);
        holds.write_all(b"GET /hold HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        std::thread::sleep(Duration::from_millis(100));
        let mut waiting: Vec<_> = (0..20).map(|_| connect(bus.addr)).collect();
        let server = bus.server.clone();
        let draining = std::thread::spawn(move || block_on(server.drain(Duration::from_secs(10))));
        // Some requests are there by then, and some come later.
        for (number, stream) in waiting.iter_mut().enumerate() {
            if number == 10 {
                std::thread::sleep(Duration::from_millis(450));
            }
            stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        }
        for stream in waiting.iter_mut().chain([&mut holds]) {
            let (head, body) = read_response(stream);
            assert!(head.contains("Connection: close"), "{head}");
            assert_eq!(body, b"here");
        }
        assert_eq!(draining.join().unwrap().cut, 0);
        assert!(std::net::TcpStream::connect(bus.addr).is_err());
    }
}

#[test]
fn drain_cuts_at_its_deadline() {
    let echo = start(Echo);
    let mut stuck = connect(echo.addr);
    stuck.write_all(b"POST /length HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n").unwrap();
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(block_on(echo.server.drain(Duration::from_millis(200))).cut, 1);
    assert_eq!(stuck.read(&mut [0; 1]).unwrap_or(0), 0);
}

#[test]
fn a_port_in_use_is_an_error() {
    let echo = start(Echo);
    let error = Server::bind(echo.addr, None, ServerLimits::default()).err().expect("taken");
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    // Nor do many at the same moment share one.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let starts: Vec<_> = (0..16)
        .map(|_| std::thread::spawn(move || Server::bind(free, None, ServerLimits::default())))
        .collect();
    let servers: Vec<_> = starts.into_iter().map(|start| start.join().unwrap()).collect();
    assert_eq!(servers.iter().filter(|server| server.is_ok()).count(), 1);
}

#[test]
fn beyond_the_connection_limit_clients_wait() {
    let echo = start_with(Echo, ServerLimits { connections: 1, ..ServerLimits::default() });
    let mut first = connect(echo.addr);
    first.write_all(b"GET /ignore HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    read_response(&mut first);
    let mut second = connect(echo.addr);
    second.write_all(b"GET /ignore HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    second.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert!(second.read(&mut [0; 1]).is_err());
    drop(first);
    second.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    assert_eq!(read_response(&mut second).1, b"ignored");
}

#[test]
fn limits_are_replaced_for_connections_to_come() {
    let echo = start_with(Echo, ServerLimits { connections: 1, ..ServerLimits::default() });
    let mut first = connect(echo.addr);
    first.write_all(b"GET /ignore HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    read_response(&mut first);
    let mut second = connect(echo.addr);
    second.write_all(b"GET /0123456789 HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    std::thread::sleep(Duration::from_millis(100));
    echo.server.set_limits(ServerLimits { connections: 2, target_size: 8, ..ServerLimits::default() });
    assert!(read_response(&mut second).0.starts_with("HTTP/1.1 414"));
    first.write_all(b"GET /0123456789 HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert!(read_response(&mut first).0.starts_with("HTTP/1.1 200"));
}
