//! What is said about a connection holds: it is not closed unless that was announced, and nothing goes out on it that
//! belongs to no message.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use busbar_transport::{Body, ConnectionInfo, Handler, OutRequest, Request, Response, ServerLimits};
use socket2::SockRef;
use support::*;

const NEXT: &[u8] = b"GET /ignore HTTP/1.1\r\nHost: a\r\n\r\n";

/// Announced to be closed, and is; or the next request is served.
fn is_kept(stream: &mut TcpStream, head: &str) -> bool {
    if head.contains("Connection: close\r\n") {
        assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0, "more than was announced");
        return false;
    }
    stream.write_all(NEXT).unwrap();
    let (head, body) = read_response(stream);
    assert!(head.starts_with("HTTP/1.1 200") && body == b"ignored", "{head}");
    true
}

fn chunk(size: usize) -> Vec<u8> {
    let mut chunk = format!("{size:x}\r\n").into_bytes();
    chunk.resize(chunk.len() + size, b'x');
    chunk.extend_from_slice(b"\r\n");
    chunk
}

/// What the flow does with a body is `path`; it comes in pieces, each after a moment.
#[test]
fn a_close_is_announced_or_does_not_happen() {
    let echo = start(Echo);
    let length = |n: usize| format!("Content-Length: {n}\r\n\r\n").into_bytes();
    let chunked = b"Transfer-Encoding: chunked\r\n\r\n".to_vec();
    let end = b"0\r\n\r\n".to_vec();
    let with = |head: Vec<u8>, rest: &[Vec<u8>]| [&[head], rest].concat();
    let at_once = |head: &[u8], rest: &[Vec<u8>]| vec![[head, &rest.concat()].concat()];
    /// Path, pieces, and whether the connection is kept where that is not left to chance.
    type Case = (&'static str, Vec<Vec<u8>>, Option<bool>);
    let cases: Vec<Case> = vec![
        ("/ignore", with(length(60_000), &[vec![b'x'; 60_000]]), Some(true)),
        ("/ignore", at_once(&length(65_536), &[vec![b'x'; 65_536]]), Some(true)),
        ("/ignore", with(length(65_537), &[vec![b'x'; 65_537]]), Some(false)),
        ("/ignore", at_once(&length(200_000), &[vec![b'x'; 200_000]]), None),
        ("/ignore", with(length(5_000_000), &[vec![b'x'; 5_000_000]]), Some(false)),
        ("/ignore", at_once(&chunked, &[chunk(10), end.clone()]), Some(true)),
        ("/ignore", with(chunked.clone(), &[chunk(10), end.clone()]), Some(true)),
        ("/ignore", with(chunked.clone(), &[chunk(60_000), end.clone()]), Some(true)),
        ("/ignore", at_once(&chunked, &[chunk(200_000), end.clone()]), None),
        ("/ignore", with(chunked.clone(), &[chunk(200_000), chunk(5_000_000), end.clone()]), Some(true)),
        ("/length", with(length(500_000), &[vec![b'x'; 500_000]]), Some(true)),
        ("/length", with(chunked.clone(), &[chunk(200_000), chunk(500_000), end.clone()]), Some(true)),
        ("/204", with(length(60_000), &[vec![b'x'; 60_000]]), Some(true)),
        ("/echo", with(length(500_000), &[vec![b'x'; 500_000]]), Some(true)),
        ("/echo", with(chunked.clone(), &[chunk(200_000), chunk(500_000), end.clone()]), Some(true)),
        // What has passed the limit before the answer will not end soon.
        ("/first", with(chunked.clone(), &[chunk(100_000), chunk(10), end.clone()]), Some(false)),
        ("/first", with(chunked.clone(), &[chunk(1_000), chunk(10), end.clone()]), Some(true)),
        ("/first", with(chunked, &[b"5\r\nhelloX".to_vec()]), Some(false)),
    ];
    for (number, (path, pieces, expected)) in cases.into_iter().enumerate() {
        let mut stream = connect(echo.addr);
        stream.write_all(format!("POST {path} HTTP/1.1\r\nHost: a\r\n").as_bytes()).unwrap();
        let mut writer = stream.try_clone().unwrap();
        let writing = thread::spawn(move || {
            for piece in pieces {
                // The close that was announced may come before the end.
                let _ = writer.write_all(&piece);
                thread::sleep(Duration::from_millis(30));
            }
        });
        let (head, _) = read_response(&mut stream);
        if !head.contains("Connection: close") {
            writing.join().unwrap();
        }
        let kept = is_kept(&mut stream, &head);
        assert!(expected.is_none_or(|expected| kept == expected), "case {number}: kept: {kept}: {head}");
    }
}

/// A body that is held before it goes on is still there when the answer has come.
#[test]
fn a_held_body_leaves_the_connection_usable() {
    struct Holding(Relay);
    impl Handler for Holding {
        async fn handle(&self, mut request: Request, peer: &ConnectionInfo) -> Response {
            while !request.body.is_complete() {
                request.body.more().await.unwrap();
            }
            self.0.handle(request, peer).await
        }
    }
    let echo = start(Echo);
    let bus = start(Holding(Relay::to(echo.addr)));
    let mut stream = connect(bus.addr);
    for size in [70_000, 300_000, 65_536, 1, 70_000] {
        stream
            .write_all(
                format!("POST /length HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n").as_bytes(),
            )
            .unwrap();
        stream.write_all(&vec![b'x'; size]).unwrap();
        let (head, body) = read_response(&mut stream);
        assert!(!head.contains("Connection: close"), "{head}");
        assert_eq!(body, size.to_string().as_bytes());
    }
}

#[test]
fn no_interim_response_follows_a_final_one() {
    let echo = start(Echo);
    let expect = "Host: a\r\nExpect: 100-continue\r\n";
    for (path, framing, body) in [
        ("/echo", "Content-Length: 5\r\n", "hello"),
        ("/echo", "Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"),
        ("/length", "Content-Length: 5\r\n", "hello"),
        ("/length", "Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"),
    ] {
        let mut stream = connect(echo.addr);
        stream.write_all(format!("POST {path} HTTP/1.1\r\n{expect}{framing}\r\n").as_bytes()).unwrap();
        assert_eq!(read_response(&mut stream).0, "HTTP/1.1 100 Continue\r\n\r\n", "{path} {framing}");
        thread::sleep(Duration::from_millis(20));
        stream.write_all(body.as_bytes()).unwrap();
        let (head, got) = read_response(&mut stream);
        assert!(head.starts_with("HTTP/1.1 200") && !head.contains("close"), "{head}");
        assert!(got == b"hello" || got == b"5");
        assert!(is_kept(&mut stream, &head));
    }
    // Who sends the body without waiting is not asked for it behind the next request.
    let mut stream = connect(echo.addr);
    stream.write_all(format!("POST /slow HTTP/1.1\r\n{expect}Content-Length: 5\r\n\r\n").as_bytes()).unwrap();
    thread::sleep(Duration::from_millis(30));
    stream.write_all(b"hello").unwrap();
    let mut head = read_response(&mut stream).0;
    if head.starts_with("HTTP/1.1 100") {
        head = read_response(&mut stream).0;
    }
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    if !head.contains("Connection: close") {
        stream.write_all(b"POST /length HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n").unwrap();
        thread::sleep(Duration::from_millis(30));
        stream.write_all(b"hello").unwrap();
        assert!(read_response(&mut stream).0.starts_with("HTTP/1.1 200"));
    }
    // A body that nobody wants is not asked for; nor one that is there already.
    for (path, rest, interim) in [
        ("/ignore", "Content-Length: 5\r\n\r\n", false),
        ("/ignore", "Transfer-Encoding: chunked\r\n\r\n", false),
        ("/204", "Content-Length: 5\r\n\r\n", false),
        ("/echo", "Content-Length: 0\r\n\r\n", false),
        ("/echo", "\r\n", false),
        ("/echo", "Content-Length: 5\r\n\r\nhello", false),
        ("/echo", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false),
        ("/length", "Content-Length: 5\r\n\r\nhel", true),
    ] {
        let mut stream = connect(echo.addr);
        stream.write_all(format!("POST {path} HTTP/1.1\r\n{expect}{rest}").as_bytes()).unwrap();
        thread::sleep(Duration::from_millis(50));
        if interim {
            stream.write_all(b"lo").unwrap();
        }
        stream.shutdown(Shutdown::Write).unwrap();
        let mut all = String::new();
        let _ = stream.read_to_string(&mut all);
        assert_eq!(all.matches("100 Continue").count(), usize::from(interim), "{path} {rest:?}: {all}");
        if !interim {
            assert!(all.starts_with("HTTP/1.1 20"), "{path} {rest:?}: {all}");
        }
    }
    // HTTP/1.0 has no interim responses.
    let response = until_close(
        echo.addr,
        b"POST /echo HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
    );
    assert!(response.starts_with("HTTP/1.1 200") && response.ends_with("\r\n\r\nhello"), "{response}");
}

/// A backend may answer before it has read the request, and go on reading.
#[test]
fn an_upload_goes_on_behind_its_answer() {
    for response in [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ] {
        let (told, heard) = mpsc::channel();
        let backend = backend(move |number, mut s| {
            while let Some(head) = read_head(&mut s) {
                if !head.starts_with("POST") {
                    s.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext").unwrap();
                    continue;
                }
                s.write_all(response.as_bytes()).unwrap();
                thread::sleep(Duration::from_millis(100));
                let mut left = 3_000_000;
                let mut piece = [0; 65_536];
                while left > 0 {
                    match s.read(&mut piece).unwrap() {
                        0 => break,
                        n => left -= n,
                    }
                }
                told.send((number, left)).unwrap();
            }
        });
        let bus = start(Relay::to(backend));
        let mut stream = connect(bus.addr);
        stream.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n").unwrap();
        let mut writer = stream.try_clone().unwrap();
        let writing = thread::spawn(move || {
            for _ in 0..30 {
                writer.write_all(&[b'x'; 100_000]).unwrap();
                thread::sleep(Duration::from_millis(5));
            }
        });
        let (head, _) = read_response(&mut stream);
        assert!(head.starts_with("HTTP/1.1 20") && !head.contains("Connection: close"), "{head}");
        writing.join().unwrap();
        assert_eq!(heard.recv_timeout(Duration::from_secs(10)).unwrap(), (0, 0), "{response}");
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        assert_eq!(read_response(&mut stream).1, b"next", "{response}");
    }
}

/// A backend that stops reading after its response does no harm to the client.
#[test]
fn an_upload_that_the_backend_gives_up_is_read_and_thrown_away() {
    for response in [
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno",
        "HTTP/1.1 302 Away\r\nContent-Length: 0\r\n\r\n",
    ] {
        let backend = backend(move |_, mut s| {
            let head = read_head(&mut s).unwrap();
            let next: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nignored";
            s.write_all(if head.starts_with("POST") { response.as_bytes() } else { next }).unwrap();
            thread::sleep(Duration::from_millis(100));
        });
        for chunked in [false, true] {
            let bus = start(Relay::to(backend));
            let mut stream = connect(bus.addr);
            let framing = if chunked { "Transfer-Encoding: chunked" } else { "Content-Length: 3000000" };
            stream.write_all(format!("POST / HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n").as_bytes()).unwrap();
            let mut writer = stream.try_clone().unwrap();
            let writing = thread::spawn(move || {
                for _ in 0..30 {
                    let piece = if chunked { chunk(100_000) } else { vec![b'x'; 100_000] };
                    if writer.write_all(&piece).is_err() {
                        return;
                    }
                    thread::sleep(Duration::from_millis(5));
                }
                let _ = writer.write_all(if chunked { b"0\r\n\r\n" } else { b"" });
            });
            let (head, _) = read_response(&mut stream);
            assert!(head.starts_with(&response[..12]), "{head}");
            if !head.contains("Connection: close") {
                writing.join().unwrap();
            }
            is_kept(&mut stream, &head);
        }
    }
}

/// An answer whose body breaks off must not take along what the client has not read yet of those before it.
#[test]
fn a_cut_answer_leaves_earlier_ones_whole() {
    struct Pair;
    impl Handler for Pair {
        async fn handle(&self, request: Request, _: &ConnectionInfo) -> Response {
            match request.head.path() {
                "/whole" => Response::new(200, vec![b'w'; 60_000]),
                _ => Response::new(200, request.body),
            }
        }
    }
    let bus = start_with(Pair, ServerLimits { body: Duration::from_millis(100), ..ServerLimits::default() });
    for end in ["HTTP/1.1\r\nHost: a", "HTTP/1.0\r\nConnection: keep-alive"] {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.set_recv_buffer_size(2048).unwrap();
        socket.connect(&bus.addr.into()).unwrap();
        let mut stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        // The second is an echo of a body that never comes whole.
        stream
            .write_all(
                format!("GET /whole {end}\r\n\r\nPOST /echo {end}\r\nContent-Length: 1000\r\n\r\nhalf")
                    .as_bytes(),
            )
            .unwrap();
        thread::sleep(Duration::from_millis(400));
        let (head, body) = read_response(&mut stream);
        assert!(head.starts_with("HTTP/1.1 200") && body.len() == 60_000);
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.ends_with(b"\r\n\r\nhalf"), "{}", String::from_utf8_lossy(&rest));
    }
}

/// The end of a connection may be in the packet with the last bytes of an answer.
#[test]
fn a_connection_that_ended_with_its_answer_is_not_used_again() {
    let backend = backend(|_, mut s| {
        if read_head(&mut s).is_some() {
            SockRef::from(&s).set_tcp_cork(true).unwrap();
            s.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
            s.shutdown(Shutdown::Write).unwrap();
            thread::sleep(Duration::from_millis(200));
        }
    });
    let bus = start(Relay::to(backend));
    let mut stream = connect(bus.addr);
    for number in 0..200 {
        stream.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi").unwrap();
        let (head, body) = read_response(&mut stream);
        assert!(head.starts_with("HTTP/1.1 200"), "{number}: {head}{}", String::from_utf8_lossy(&body));
    }
}

#[test]
fn connect_and_upgrades_are_not_spoken() {
    let echo = start(Echo);
    let response = until_close(echo.addr, b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n");
    assert!(response.starts_with("HTTP/1.1 501") && response.contains("Connection: close"), "{response}");
    let mut stream = connect(echo.addr);
    stream
        .write_all(b"GET /head HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        .unwrap();
    assert!(read_response(&mut stream).0.starts_with("HTTP/1.1 200"));
    // A status that ends nothing is no answer.
    struct Interim;
    impl Handler for Interim {
        async fn handle(&self, _: Request, _: &ConnectionInfo) -> Response {
            Response::empty(101)
        }
    }
    let bus = start(Interim);
    assert!(until_close(bus.addr, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").starts_with("HTTP/1.1 500"));
    // Nor is it asked of a backend.
    let client = busbar_transport::Client::new(busbar_transport::ClientLimits::default());
    let target = busbar_transport::Target::http("127.0.0.1", echo.addr.port());
    let out = OutRequest {
        method: &busbar_transport::Method::Connect,
        target: "a:443",
        headers: &busbar_transport::Headers::new(),
        host: None,
        body: &mut Body::Empty,
    };
    let error = block_on(client.send(&target, out, &busbar_transport::SendOptions::default())).unwrap_err();
    assert!(error.nothing_processed && error.to_string().contains("CONNECT"), "{error}");
}

/// What is left of a request that was answered is read for as long as its connection might have been idle, and no longer.
#[test]
fn an_endless_request_behind_its_answer_ends() {
    let endless = |addr| {
        let mut stream = connect(addr);
        stream.write_all(b"POST /ignore HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
        let (head, _) = read_response(&mut stream);
        assert!(!head.contains("Connection: close"), "{head}");
        stream
    };
    let trickle = |stream: &mut TcpStream| {
        for _ in 0..100 {
            if stream.write_all(&chunk(1)).is_err() {
                return true;
            }
            thread::sleep(Duration::from_millis(20));
        }
        false
    };
    let limits = ServerLimits {
        body: Duration::from_millis(200),
        linger: Duration::from_millis(100),
        ..ServerLimits::default()
    };
    let bus = start_with(Echo, limits);
    assert!(trickle(&mut endless(bus.addr)), "its connection is occupied for ever");
    // A drain does not wait even for that.
    let limits = ServerLimits { linger: Duration::from_millis(100), ..ServerLimits::default() };
    let bus = start_with(Echo, limits);
    let mut stream = endless(bus.addr);
    let server = bus.server.clone();
    let draining = thread::spawn(move || block_on(server.drain(Duration::from_secs(30))));
    assert!(trickle(&mut stream), "the drain waits for it");
    assert_eq!(draining.join().unwrap().cut, 0);
}

/// A body that another holds while the answer is made, and an answer whose body fails.
struct Failing {
    /// What the body declares.
    length: Option<u64>,
    text: &'static [u8],
}

impl message::BodyStream for Failing {
    fn buffered(&self) -> &[u8] {
        self.text
    }
    fn poll_more(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<bool, message::BodyError>> {
        std::task::Poll::Ready(Err(message::BodyError::Truncated))
    }
    fn consume(&mut self, n: usize) {
        self.text = &self.text[n..];
    }
    fn is_complete(&self) -> bool {
        false
    }
    fn exact_len(&self) -> Option<u64> {
        self.length
    }
    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any + Send> {
        self
    }
}

struct Fails;

impl Handler for Fails {
    async fn handle(&self, request: Request, _: &ConnectionInfo) -> Response {
        let length = if request.head.path() == "/too-long" { Some(2) } else { None };
        let body = request.body;
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(300)).await;
            drop(body);
        });
        Response::new(200, Body::Stream(Box::new(Failing { length, text: b"half" })))
    }
}

/// Nothing was sent yet, so the client can be told.
#[test]
fn an_answer_that_contradicts_its_length_is_a_502() {
    let bus = start(Fails);
    let got = until_close(bus.addr, b"GET /too-long HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(got.starts_with("HTTP/1.1 502 ") && got.contains("Connection: close"), "{got}");
}

/// Its end must not be taken for the end of the answer, also while the request is still being read elsewhere.
#[test]
fn half_an_answer_without_length_ends_with_a_reset_wherever_the_request_is() {
    let bus = start(Fails);
    let mut stream = connect(bus.addr);
    stream.write_all(b"POST /half HTTP/1.0\r\nContent-Length: 9\r\n\r\nwell").unwrap();
    let mut got = Vec::new();
    let end = stream.read_to_end(&mut got);
    assert!(got.ends_with(b"\r\n\r\nhalf"), "{}", String::from_utf8_lossy(&got));
    assert!(end.is_err(), "an orderly end");
}
