//! Listener and client together: what comes in goes out, byte for byte, or visibly not at all.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use busbar_transport::{
    Client, ClientLimits, ConnectionInfo, Handler, Method, OutRequest, Request, Response, SendErrorKind,
    SendOptions, ServerLimits, Target,
};
use proptest::prelude::*;
use support::*;

fn request(body: &str) -> String {
    format!("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn heads_pass_with_order_and_case_and_without_hop_by_hop_fields() {
    let (sent, seen) = mpsc::channel();
    let backend = backend(move |_, mut s| {
        while let Some(head) = read_head(&mut s) {
            sent.send(head).unwrap();
            s.write_all(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 201 Made It\r\nzeta: 1\r\nAlpha: 2\r\nConnection: X-Gone\r\nx-gone: 1\r\nDate: then\r\nset-Cookie: a\r\nSet-cookie: b\r\nContent-Length: 0\r\n\r\n").unwrap();
        }
    });
    let relay = start(Relay::to(backend));
    let mut stream = connect(relay.addr);
    stream.write_all(b"GET /p?q=%20 HTTP/1.1\r\nx-One: 1\r\nHost: bus\r\nConnection: keep-alive, Y\r\nY: gone\r\nTE: gzip\r\nX-TWO: 2\r\nx-one: 3\r\nExpect: 100-continue\r\n\r\n").unwrap();
    let (head, _) = read_response(&mut stream);
    assert_eq!(
        head,
        "HTTP/1.1 201 Made It\r\nzeta: 1\r\nAlpha: 2\r\nDate: then\r\nset-Cookie: a\r\nSet-cookie: b\r\nContent-Length: 0\r\n\r\n"
    );
    let expected =
        format!("GET /p?q=%20 HTTP/1.1\r\nHost: {backend}\r\nx-One: 1\r\nX-TWO: 2\r\nx-one: 3\r\n\r\n");
    assert_eq!(seen.recv().unwrap(), expected);
}

#[test]
fn responses_without_a_body_leave_the_connection_usable() {
    let backend = backend(|_, mut s| {
        for response in [
            "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n",
            "HTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 304 Not Modified\r\nETag: x\r\nContent-Length: 10\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        ] {
            read_head(&mut s).unwrap();
            s.write_all(response.as_bytes()).unwrap();
        }
    });
    let relay = start(Relay::to(backend));
    let response = until_close(relay.addr, b"HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(response.contains("Content-Length: 10\r\n") && response.ends_with("\r\n\r\n"), "{response}");
    let response = until_close(relay.addr, b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(response.starts_with("HTTP/1.1 204"), "{response}");
    let response = until_close(relay.addr, b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(
        response.contains("ETag: x\r\nContent-Length: 10\r\n") && response.ends_with("\r\n\r\n"),
        "{response}"
    );
    // Chunked to an HTTP/1.0 client ends with the connection.
    let response = until_close(relay.addr, b"GET / HTTP/1.0\r\n\r\n");
    assert!(response.ends_with("\r\n\r\nabc") && !response.contains("chunked"), "{response}");
}

#[test]
fn a_response_until_close_is_relayed_chunked() {
    let backend = backend(|_, mut s| {
        read_head(&mut s).unwrap();
        s.write_all(b"HTTP/1.1 200 OK\r\n\r\nuntil the end").unwrap();
    });
    let relay = start(Relay::to(backend));
    let mut stream = connect(relay.addr);
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert_eq!(read_response(&mut stream).1, b"until the end");
}

#[test]
fn an_early_answer_stops_the_request() {
    let backend = backend(|_, mut s| {
        read_head(&mut s).unwrap();
        s.write_all(b"HTTP/1.1 413 Too Much\r\nContent-Length: 3\r\n\r\nno!").unwrap();
        let (mut got, mut buffer) = (0, [0; 4096]);
        while let Ok(n @ 1..) = s.read(&mut buffer) {
            got += n;
        }
        assert!(got < 10_000_000);
    });
    let relay = start(Relay::to(backend));
    let mut stream = connect(relay.addr);
    stream.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\nbegin").unwrap();
    let (head, body) = read_response(&mut stream);
    assert!(head.starts_with("HTTP/1.1 413") && head.contains("Connection: close"), "{head}");
    assert_eq!(body, b"no!");
}

#[test]
fn a_streaming_echo_runs_in_both_directions_at_once() {
    let echo = start(Echo);
    let relay = start(Relay::to(echo.addr));
    let mut stream = connect(relay.addr);
    stream.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
    let mut writer = stream.try_clone().unwrap();
    let piece = vec![b'x'; 70_000];
    let sending = thread::spawn(move || {
        for _ in 0..300 {
            writer.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).unwrap();
            writer.write_all(&piece).unwrap();
            writer.write_all(b"\r\n").unwrap();
        }
        writer.write_all(b"0\r\n\r\n").unwrap();
    });
    let (_, body) = read_response(&mut stream);
    sending.join().unwrap();
    assert_eq!(body.len(), 21_000_000);
    stream.write_all(request("again").as_bytes()).unwrap();
    assert_eq!(read_response(&mut stream).1, b"again");
}

fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

#[test]
fn a_slow_reader_holds_the_backend_back() {
    const SIZE: usize = 100_000_000;
    let written = Arc::new(AtomicUsize::new(0));
    let progress = written.clone();
    let backend = backend(move |_, mut s| {
        read_head(&mut s).unwrap();
        s.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
        s.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n").as_bytes()).unwrap();
        let piece = vec![7; 100_000];
        for _ in 0..SIZE / piece.len() {
            s.write_all(&piece).unwrap();
            progress.fetch_add(piece.len(), Relaxed);
        }
    });
    let relay = start(Relay::to(backend));
    let mut stream = connect(relay.addr);
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let before = resident();
    thread::sleep(Duration::from_millis(500));
    assert!(written.load(Relaxed) < SIZE / 2, "the kernel's buffers and one of ours");
    assert!(resident() < before + 30_000_000);
    let mut got = 0;
    let mut buffer = vec![0; 1 << 16];
    while got < SIZE {
        let n = stream.read(&mut buffer).unwrap();
        assert!(n > 0);
        got += n;
    }
}

#[test]
fn half_an_answer_never_looks_whole() {
    for response in [
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nZ\r\n",
    ] {
        let backend = backend(move |_, mut s| {
            read_head(&mut s).unwrap();
            s.write_all(response.as_bytes()).unwrap();
        });
        let relay = start(Relay::to(backend));
        let got = until_close(relay.addr, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(!got.ends_with("0\r\n\r\n"), "{got}");
        // To HTTP/1.0 a chunked answer ends with the connection: only a reset says that it is not whole.
        let mut stream = connect(relay.addr);
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut got = Vec::new();
        let end = stream.read_to_end(&mut got);
        assert!(end.is_err() || String::from_utf8_lossy(&got).contains("Content-Length: 10"), "{got:?}");
    }
}

#[test]
fn half_a_request_is_never_completed() {
    let (sent, seen) = mpsc::channel();
    let backend = backend(move |_, mut s| {
        let mut all = Vec::new();
        let _ = s.read_to_end(&mut all);
        sent.send(String::from_utf8_lossy(&all).into_owned()).unwrap();
    });
    let relay = start(Relay::to(backend));
    let mut stream = connect(relay.addr);
    stream
        .write_all(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n")
        .unwrap();
    thread::sleep(Duration::from_millis(100));
    drop(stream);
    let got = seen.recv().unwrap();
    assert!(got.ends_with("4\r\nhalf\r\n"), "{got}");
}

#[test]
fn a_client_that_vanishes_takes_the_backend_connection_along() {
    for body in ["", "small", &"x".repeat(12_000)] {
        let (sent, seen) = mpsc::channel();
        let length = body.len();
        let backend = backend(move |_, mut s| {
            read_head(&mut s).unwrap();
            s.read_exact(&mut vec![0; length]).unwrap();
            sent.send(true).unwrap();
            assert_eq!(s.read(&mut [0; 1]).unwrap_or(0), 0);
            sent.send(false).unwrap();
        });
        let relay = start(Relay::to(backend));
        let mut stream = connect(relay.addr);
        stream.write_all(request(body).as_bytes()).unwrap();
        assert!(seen.recv_timeout(Duration::from_secs(5)).unwrap());
        drop(stream);
        assert!(!seen.recv_timeout(Duration::from_secs(5)).unwrap(), "backend connection closed");
        while relay.server.stats().aborted == 0 {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn stale_pooled_connections_are_retried_only_when_that_is_safe() {
    // Each connection answers once, then reads the next request and closes without an answer.
    let backend = backend(|_, mut s| {
        read_head(&mut s).unwrap();
        s.write_all(OK).unwrap();
        read_head(&mut s);
    });
    let relay = start(Relay::to(backend));
    let mut stream = connect(relay.addr);
    for _ in 0..3 {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        assert_eq!(read_response(&mut stream).1, b"ok");
    }
    // A POST may have been processed before the close: it fails, visibly.
    stream.write_all(request("").as_bytes()).unwrap();
    let (head, body) = read_response(&mut stream);
    assert!(head.starts_with("HTTP/1.1 502"), "{head}");
    assert!(body.starts_with(b"101505"), "{}", String::from_utf8_lossy(&body));
}

#[test]
fn a_connection_closed_while_idle_is_never_used() {
    let backend = backend(|_, mut s| {
        read_head(&mut s).unwrap();
        s.write_all(OK).unwrap();
    });
    let relay = start(Relay::to(backend));
    let mut stream = connect(relay.addr);
    for _ in 0..5 {
        stream.write_all(request("").as_bytes()).unwrap();
        assert_eq!(read_response(&mut stream).1, b"ok");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn failures_have_their_codes() {
    let silent = backend(|_, s| {
        thread::sleep(Duration::from_secs(3));
        drop(s);
    });
    let talker = backend(|_, mut s| {
        let _ = s.write_all(b"SSH-2.0-OpenSSH\r\n");
        thread::sleep(Duration::from_millis(500));
    });
    let closer = backend(|_, mut s| {
        read_head(&mut s);
    });
    let nobody = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let options = SendOptions { response: Duration::from_millis(150), ..SendOptions::default() };
    let client = Client::new(ClientLimits::default());
    for (addr, code) in [(silent, 101504), (talker, 101506), (closer, 101505), (nobody, 101503)] {
        let target = Target::http("127.0.0.1", addr.port());
        let headers = busbar_transport::Headers::new();
        let out = OutRequest {
            method: &Method::Post,
            target: "/",
            headers: &headers,
            host: None,
            body: &mut "x".into(),
        };
        let begun = Instant::now();
        let error = block_on(client.send(&target, out, &options)).expect_err("no response");
        assert_eq!(error.kind.code(), code, "{error}");
        assert_eq!(error.nothing_processed, code == 101503, "{error}");
        assert!(begun.elapsed() < Duration::from_secs(2));
    }
    let error = block_on(post(&client, &Target::http("no-such-host.invalid", 80), "x")).expect_err("no host");
    assert!(matches!(error.kind, SendErrorKind::Dns(_)), "{error}");
}

#[test]
fn pools_count() {
    let echo = start(Echo);
    let client = Client::new(ClientLimits::default());
    let target = Target::http("localhost", echo.addr.port());
    block_on(async {
        for _ in 0..3 {
            let response = post(&client, &target, "hello").await.expect("response");
            assert_eq!(response.body.collect(100).await.expect("body"), "hello");
        }
        let stats = client.stats();
        assert_eq!((stats.created, stats.reused, stats.idle, stats.active), (1, 2, 1, 0));
        client.close_idle();
        assert_eq!(client.stats().idle, 0);
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn random_bodies_in_random_pieces_pass_unchanged(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..9000), 0..12),
        chunked: bool,
        piece in 1usize..20_000,
    ) {
        thread_local! {
            static RUNNING: (Running, Running) = {
                let echo = start(Echo);
                let relay = start(Relay::to(echo.addr));
                (echo, relay)
            };
        }
        let addr = RUNNING.with(|(_, relay)| relay.addr);
        let body = chunks.concat();
        let mut wire = b"POST / HTTP/1.1\r\nHost: a\r\n".to_vec();
        if chunked {
            wire.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
            for chunk in &chunks {
                wire.extend_from_slice(format!("{:X}\r\n", chunk.len()).as_bytes());
                wire.extend_from_slice(chunk);
                wire.extend_from_slice(b"\r\n");
            }
            wire.extend_from_slice(b"0\r\n\r\n");
        } else {
            wire.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
            wire.extend_from_slice(&body);
        }
        let mut stream = connect(addr);
        let mut writer = stream.try_clone().unwrap();
        let sending = thread::spawn(move || {
            for part in wire.chunks(piece) {
                writer.write_all(part).unwrap();
            }
        });
        let (head, got) = read_response(&mut stream);
        sending.join().unwrap();
        prop_assert!(head.starts_with("HTTP/1.1 200"));
        prop_assert!(got == body);
        prop_assert_eq!(head.contains("chunked"), chunked);
    }
}

/// An address where a connection is waited for without end: nobody accepts, and the queue of the kernel is full.
fn accepts_nobody() -> (SocketAddr, Vec<TcpStream>, socket2::Socket) {
    let listener = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    listener.listen(0).unwrap();
    let addr = listener.local_addr().unwrap().as_socket().unwrap();
    let fill = || TcpStream::connect_timeout(&addr, Duration::from_millis(200)).ok();
    (addr, std::iter::from_fn(fill).take(10).collect(), listener)
}

/// Reports when the flow of a request ends, in whichever way.
struct Ends {
    relay: Relay,
    ended: mpsc::Sender<()>,
}

struct Ended(mpsc::Sender<()>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.send(()).unwrap();
    }
}

impl Handler for Ends {
    async fn handle(&self, request: Request, info: &ConnectionInfo) -> Response {
        let _ended = Ended(self.ended.clone());
        self.relay.handle(request, info).await
    }
}

#[test]
fn a_client_that_leaves_while_the_bus_connects_is_noticed() {
    let (addr, _queue, _listener) = accepts_nobody();
    let relay = || {
        let mut relay = Relay::to(addr);
        relay.options.connect = Duration::from_secs(20);
        relay
    };
    for (wire, half_close, leaves) in [
        (request("hello"), false, true),
        (request(""), false, true),
        // The body is on its way; it is larger than the buffer.
        ("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe".to_owned(), false, true),
        (
            format!("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 90000\r\n\r\n{}", "x".repeat(9_000)),
            true,
            true,
        ),
        ("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe".to_owned(), false, true),
        (
            "POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n".to_owned(),
            false,
            true,
        ),
        // Who may close its sending side still waits.
        (request("hello"), true, false),
    ] {
        let (ended, ends) = mpsc::channel();
        let limits = ServerLimits { half_close, ..ServerLimits::default() };
        let bus = start_with(Ends { relay: relay(), ended }, limits);
        let mut client = connect(bus.addr);
        client.write_all(wire.as_bytes()).unwrap();
        let patience = Duration::from_millis(400);
        assert!(ends.recv_timeout(patience).is_err(), "it connects: {wire:.80}");
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let wait = if leaves { Duration::from_secs(5) } else { patience };
        assert_eq!(ends.recv_timeout(wait).is_ok(), leaves, "{wire:.80}");
    }
}

#[test]
fn a_backend_that_refuses_what_it_has_not_received_gets_no_more_on_that_connection() {
    let listener = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    // Connections have it, too: little of a request is received that is not read.
    listener.set_recv_buffer_size(4096).unwrap();
    listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    listener.listen(8).unwrap();
    let listener = TcpListener::from(listener);
    let addr = listener.local_addr().unwrap();
    thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            while let Some(head) = read_head(&mut stream) {
                if head.contains("/refused") {
                    stream.write_all(b"HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\nno").unwrap();
                    break;
                }
                stream.write_all(OK).unwrap();
            }
            kept.push(stream);
        }
    });
    let relay = start(Relay::to(addr));
    let mut client = connect(relay.addr);
    for size in [20_000, 40_000, 60_000] {
        let body = "x".repeat(size);
        let head = format!("POST /refused HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n");
        client.write_all(format!("{head}{body}").as_bytes()).unwrap();
        assert!(read_response(&mut client).0.starts_with("HTTP/1.1 413"), "{size}");
        // It would wait behind the request that nobody reads.
        client.write_all(b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        assert!(read_response(&mut client).0.starts_with("HTTP/1.1 200"), "{size}");
    }
}
