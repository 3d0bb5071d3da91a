//! HTTP/2 on both sides: the same messages as over HTTP/1.1, windows as back-pressure, ends and floods.

#![allow(clippy::unwrap_used)]

mod support;

use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use busbar_transport::{
    Body, Client, ClientLimits, ConnectionInfo, Handler, Headers, Method, OutRequest, Request, Response,
    SendError, SendErrorKind, SendOptions, ServerLimits, Target, Version,
};
use bytes::Bytes;
use h2::client::SendRequest;
use h2::{Reason, RecvStream};
use support::*;
use tokio::net::{TcpListener, TcpStream};

/// A client of HTTP/2 that knows nothing of ours.
async fn dial(addr: SocketAddr) -> SendRequest<Bytes> {
    let stream = TcpStream::connect(addr).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (send, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(async move { _ = connection.await });
    send.ready().await.unwrap()
}

fn head(method: &str, path: &str, fields: &[(&str, &str)]) -> http::Request<()> {
    let mut request = http::Request::builder().method(method).uri(format!("http://host{path}"));
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap()
}

async fn whole(mut body: RecvStream) -> Result<Vec<u8>, h2::Error> {
    let mut all = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece?;
        body.flow_control().release_capacity(piece.len()).unwrap();
        all.extend_from_slice(&piece);
    }
    Ok(all)
}

/// Sends a body with respect to the window.
async fn push(mut stream: h2::SendStream<Bytes>, body: &[u8]) -> Result<(), h2::Error> {
    let mut left = Bytes::copy_from_slice(body);
    while !left.is_empty() {
        stream.reserve_capacity(left.len());
        let Some(room) = poll_fn(|cx| stream.poll_capacity(cx)).await else {
            // It was reset.
            return Err(poll_fn(|cx| stream.poll_reset(cx)).await?.into());
        };
        let room = room?;
        let piece = left.split_to(room.min(left.len()));
        stream.send_data(piece, false)?;
    }
    stream.send_data(Bytes::new(), true)
}

async fn ask(
    send: &mut SendRequest<Bytes>,
    request: http::Request<()>,
    body: &[u8],
) -> Result<(http::response::Parts, Vec<u8>), h2::Error> {
    let mut ready = send.clone().ready().await?;
    let (response, stream) = ready.send_request(request, body.is_empty())?;
    let sent = async { if body.is_empty() { Ok(()) } else { push(stream, body).await } };
    let received = async {
        let (parts, stream) = response.await?.into_parts();
        Ok::<_, h2::Error>((parts, whole(stream).await?))
    };
    let (sent, received) = tokio::join!(sent, received);
    let received = received?;
    sent.map(|()| received)
}

fn bytes(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i * 31 % 251) as u8).collect()
}

/// Every pair of versions carries every size byte for byte, and says its length where it is known.
#[test]
fn messages_are_the_same_over_both_versions_in_every_pair() {
    let echo = start(Echo);
    let over1 = start(Relay::to(echo.addr));
    let mut relay = Relay::to(echo.addr);
    relay.target = relay.target.http2();
    let over2 = start(relay);
    block_on(async {
        for addr in [echo.addr, over1.addr, over2.addr] {
            let mut send = dial(addr).await;
            for size in [0, 1, 16_384, 65_535, 65_536, 1_000_000] {
                let body = bytes(size);
                let length = size.to_string();
                let request = head("POST", "/a?b", &[("content-length", &length)]);
                let (parts, received) = ask(&mut send, request, &body).await.unwrap();
                assert_eq!((parts.status.as_u16(), received.len()), (200, size));
                assert!(received == body, "{size}");
                assert_eq!(parts.headers["content-length"], length.as_str());
                // Without a declared length, it is not known until the end.
                if size > 0 {
                    let (parts, received) = ask(&mut send, head("POST", "/", &[]), &body).await.unwrap();
                    assert!(received == body && !parts.headers.contains_key("content-length"));
                }
            }
            let (parts, received) = ask(&mut send, head("GET", "/204", &[]), b"").await.unwrap();
            assert_eq!((parts.status.as_u16(), received.len()), (204, 0));
            let (parts, received) = ask(&mut send, head("HEAD", "/ignore", &[]), b"").await.unwrap();
            assert_eq!((parts.status.as_u16(), received.len()), (200, 0));
        }
    });
    // A client of HTTP/1.1, a backend of HTTP/2; chunked and not.
    let mut stream = connect(over2.addr);
    for size in [0, 5, 100_000] {
        let body = bytes(size);
        write!(stream, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n").unwrap();
        stream.write_all(&body).unwrap();
        assert!(read_response(&mut stream).1 == body);
        write!(stream, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{size:x}\r\n")
            .unwrap();
        stream.write_all(&body).unwrap();
        stream.write_all(if size > 0 { b"\r\n0\r\n\r\n" } else { b"\r\n" }).unwrap();
        let (response, received) = read_response(&mut stream);
        assert!(received == body, "{response}");
    }
    // All of it went over one connection.
    assert_eq!(echo.server.stats().http2, 1);
}

#[test]
fn heads_become_those_of_the_other_version() {
    let echo = start(Echo);
    let over1 = start(Relay::to(echo.addr));
    let mut relay = Relay::to(echo.addr);
    relay.target = relay.target.http2();
    let over2 = start(relay);
    let fields = [("x-a", "1"), ("cookie", "a=1"), ("cookie", "b=2"), ("te", "trailers"), ("x-a", "2")];
    block_on(async {
        for addr in [over1.addr, over2.addr] {
            let (_, text) =
                ask(&mut dial(addr).await, head("GET", "/head?x=%20", &fields), b"").await.unwrap();
            let text = String::from_utf8(text).unwrap().to_ascii_lowercase();
            assert!(text.starts_with("get /head?x=%20\n"), "{text}");
            for line in ["x-a: 1\n", "x-a: 2\n", "cookie: a=1; b=2\n", "te: trailers\n"] {
                assert_eq!(text.matches(line).count(), 1, "{line} in {text}");
            }
            let host = format!("host: {}\n", echo.addr);
            assert_eq!(text.matches("host:").count(), 1);
            assert!(text.contains(&host), "{text}");
        }
        // What the library lets through and HTTP/1.1 does not take.
        let mut send = dial(echo.addr).await;
        for (request, status) in [
            (head("GET", "/", &[("host", "other")]), 400),
            (head("GET", "/", &[("expect", "more")]), 417),
            (head("GET", &format!("/{}", "x".repeat(9000)), &[]), 414),
        ] {
            let (parts, _) = ask(&mut send, request, b"").await.unwrap();
            assert_eq!(parts.status.as_u16(), status);
        }
        assert_eq!(echo.server.stats().refused, 3);
        let (parts, _) = ask(&mut send, head("GET", "/ignore", &[]), b"").await.unwrap();
        assert_eq!(parts.status.as_u16(), 200, "the connection goes on");
    });
    let mut stream = connect(over2.addr);
    let wire = "GET /head HTTP/1.1\r\nHost: a\r\nConnection: x-hop\r\nX-Hop: 1\r\nX-B: 1\r\nExpect: 100-continue\r\n\r\n";
    stream.write_all(wire.as_bytes()).unwrap();
    let text = String::from_utf8(read_response(&mut stream).1).unwrap().to_ascii_lowercase();
    assert!(text.contains("x-b: 1") && !text.contains("x-hop") && !text.contains("expect"), "{text}");
}

/// A client that waits gets its 100 when somebody reads, and not where nobody does.
#[test]
fn a_client_that_waits_is_told_to_go_on() {
    let echo = start(Echo);
    block_on(async {
        for (path, told) in [("/", true), ("/ignore", false)] {
            let mut send = dial(echo.addr).await;
            let (mut response, stream) =
                send.send_request(head("POST", path, &[("expect", "100-continue")]), false).unwrap();
            let interim = poll_fn(|cx| response.poll_informational(cx));
            let interim = tokio::time::timeout(Duration::from_secs(5), interim).await.unwrap();
            let interim = interim.and_then(Result::ok).map(|response| response.status().as_u16());
            assert_eq!(interim, told.then_some(100), "{path}");
            if told {
                push(stream, b"body").await.unwrap();
            }
            let (parts, body) = response.await.unwrap().into_parts();
            assert_eq!(parts.status.as_u16(), 200);
            assert_eq!(whole(body).await.unwrap(), if told { &b"body"[..] } else { b"ignored" });
        }
    });
}

/// Takes the body and reads it only when it is let to.
struct Reluctant(Arc<tokio::sync::Notify>);

impl Handler for Reluctant {
    async fn handle(&self, request: Request, _: &ConnectionInfo) -> Response {
        self.0.notified().await;
        let n = request.body.collect(1 << 30).await.unwrap().len();
        Response::new(200, n.to_string().into_bytes())
    }
}

/// Nobody reads: no more is taken than the window. Somebody reads: all of it.
#[test]
fn a_window_is_given_back_as_the_body_is_read() {
    let let_go = Arc::new(tokio::sync::Notify::new());
    let slow = start(Reluctant(let_go.clone()));
    block_on(async {
        let mut send = dial(slow.addr).await;
        let (response, mut stream) = send.send_request(head("POST", "/", &[]), false).unwrap();
        let mut sent = 0;
        loop {
            stream.reserve_capacity(16_384);
            let room = poll_fn(|cx| stream.poll_capacity(cx));
            match tokio::time::timeout(Duration::from_millis(300), room).await {
                Ok(room) => {
                    let n = room.unwrap().unwrap();
                    stream.send_data(Bytes::from(vec![0; n]), false).unwrap();
                    sent += n;
                }
                Err(_) => break,
            }
        }
        assert_eq!(sent, 64 * 1024);
        let_go.notify_one();
        push(stream, &vec![0; 3_000_000]).await.unwrap();
        let (_, body) = response.await.unwrap().into_parts();
        assert_eq!(whole(body).await.unwrap(), (3_000_000 + 64 * 1024).to_string().into_bytes());
    });
}

/// Answers without end, and counts what it was let send.
struct Endless(Arc<AtomicUsize>);

struct Zeros(Arc<AtomicUsize>);

impl busbar_transport::BodyStream for Zeros {
    fn buffered(&self) -> &[u8] {
        &[0; 8192]
    }
    fn poll_more(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<bool, busbar_transport::BodyError>> {
        std::task::Poll::Ready(Ok(true))
    }
    fn consume(&mut self, n: usize) {
        self.0.fetch_add(n, SeqCst);
    }
    fn is_complete(&self) -> bool {
        false
    }
    fn exact_len(&self) -> Option<u64> {
        None
    }
    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any + Send> {
        self
    }
}

impl Handler for Endless {
    async fn handle(&self, _: Request, _: &ConnectionInfo) -> Response {
        Response::new(200, Body::Stream(Box::new(Zeros(self.0.clone()))))
    }
}

/// A client that takes nothing is given no more than its window and a buffer, and up after a while.
#[test]
fn a_client_that_takes_nothing_holds_nothing_up() {
    let sent = Arc::new(AtomicUsize::new(0));
    let limits = ServerLimits { write: Duration::from_millis(400), ..ServerLimits::default() };
    let endless = start_with(Endless(sent.clone()), limits);
    block_on(async {
        let mut send = dial(endless.addr).await;
        let (response, _stream) = send.send_request(head("GET", "/", &[]), true).unwrap();
        let (_, mut body) = response.await.unwrap().into_parts();
        let begun = Instant::now();
        let mut got = 0;
        let error = loop {
            match body.data().await {
                Some(Ok(piece)) => got += piece.len(),
                Some(Err(error)) => break error,
                None => panic!("half an answer looks whole"),
            }
        };
        assert_eq!(error.reason(), Some(Reason::CANCEL));
        assert!(got <= 65_535 && sent.load(SeqCst) <= 65_535 + 64 * 1024, "{got} {}", sent.load(SeqCst));
        assert!(begun.elapsed() < Duration::from_secs(5));
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!((endless.server.stats().aborted, endless.server.stats().streams), (1, 0));
    });
}

/// As many streams as the limit says are served at a time; a drain lets them end and takes no new ones.
#[test]
fn a_drain_says_goaway_and_lets_streams_end() {
    let limits = ServerLimits { streams: 5, ..ServerLimits::default() };
    let echo = start_with(Echo, limits);
    block_on(async {
        let mut send = dial(echo.addr).await;
        let (parts, _) = ask(&mut send, head("GET", "/ignore", &[]), b"").await.unwrap();
        assert_eq!(parts.status.as_u16(), 200);
        assert_eq!(send.current_max_send_streams(), 5);
        let (response, _stream) = send.send_request(head("GET", "/slow", &[]), true).unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        let server = echo.server.clone();
        let begun = Instant::now();
        let drained = tokio::spawn(async move { server.drain(Duration::from_secs(10)).await });
        let (parts, body) = response.await.unwrap().into_parts();
        assert_eq!((parts.status.as_u16(), whole(body).await.unwrap()), (200, b"slow".to_vec()));
        assert_eq!(drained.await.unwrap().cut, 0);
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        let refused =
            async { send.clone().ready().await?.send_request(head("GET", "/", &[]), true)?.0.await };
        assert!(refused.await.is_err());
    });
}

#[test]
fn an_idle_connection_is_closed_and_a_client_that_goes_is_noticed() {
    let limits = ServerLimits { idle: Duration::from_millis(200), ..ServerLimits::default() };
    let echo = start_with(Echo, limits);
    block_on(async {
        let stream = TcpStream::connect(echo.addr).await.unwrap();
        let (send, connection) = h2::client::handshake(stream).await.unwrap();
        let begun = Instant::now();
        let _send = send;
        tokio::time::timeout(Duration::from_secs(5), connection).await.unwrap().unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(150));
        let mut send = dial(echo.addr).await;
        let (response, stream) = send.send_request(head("GET", "/slow", &[]), true).unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(echo.server.stats().streams, 1);
        drop((response, stream));
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!((echo.server.stats().streams, echo.server.stats().aborted), (0, 1));
    });
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut out = length[1..].to_vec();
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend_from_slice(payload);
    out
}

/// `GET /slow` without compression.
fn get_slow() -> Vec<u8> {
    // :method GET, :scheme http by their numbers; :path and :authority as text.
    let mut block = vec![0x82, 0x86, 0x04, 5];
    block.extend(b"/slow");
    block.extend([0x01, 1]);
    block.extend(b"a");
    block
}

/// The preface may arrive in pieces, and one that stops has the time of a head or a handshake.
#[test]
fn a_preface_in_pieces_is_one() {
    let second = Duration::from_secs(1);
    let echo = start_with(Echo, ServerLimits { head: second, handshake: second, ..ServerLimits::default() });
    let wire = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(4, 0, 0, b"")].concat();
    for cut in 1..wire.len() {
        let mut stream = connect(echo.addr);
        stream.set_nodelay(true).unwrap();
        stream.write_all(&wire[..cut]).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        stream.write_all(&wire[cut..]).unwrap();
        let mut head = [0; 9];
        stream.read_exact(&mut head).unwrap();
        assert_eq!(head[3..5], [4, 0], "{cut}: {}", String::from_utf8_lossy(&head));
    }
    for cut in [11, 12, 15, 16, 23] {
        let mut stream = connect(echo.addr);
        stream.write_all(&wire[..cut]).unwrap();
        let begun = Instant::now();
        _ = stream.read_to_end(&mut Vec::new());
        assert!(begun.elapsed() < Duration::from_secs(8), "{cut}");
    }
    // What begins alike is no preface.
    let mut stream = connect(echo.addr);
    stream.write_all(b"PRI * HTTP/2.1\r\n\r\n").unwrap();
    let mut got = Vec::new();
    _ = stream.read_to_end(&mut got);
    assert!(got.starts_with(b"HTTP/1.1 505"), "{}", String::from_utf8_lossy(&got));
}

/// Frames that carry nothing, heads without end, and streams that are begun and ended at once: the connection ends, with a reason.
#[test]
fn floods_end_their_connection() {
    let echo = start(Echo);
    let head = |stream, flags| frame(1, flags, stream, &get_slow());
    let streams =
        |make: &dyn Fn(u32) -> Vec<u8>| (0..20_000).flat_map(|n| make(2 * n + 1)).collect::<Vec<u8>>();
    let repeated = |first: Vec<u8>, more: Vec<u8>| [first, more.repeat(60_000)].concat();
    for (what, wire) in [
        ("ping", repeated(vec![], frame(6, 0, 0, b"12345678"))),
        ("settings", repeated(vec![], frame(4, 0, 0, b""))),
        ("window update", repeated(vec![], frame(8, 0, 0, &1_u32.to_be_bytes()))),
        ("unknown frames", repeated(vec![], frame(0xBB, 0, 0, b"x"))),
        ("empty data", repeated(head(1, 4), frame(0, 0, 1, b""))),
        ("small data", repeated(head(1, 4), frame(0, 0, 1, b"x"))),
        ("continuation", repeated(head(1, 0), frame(9, 0, 1, &[0x00, 1, b'x', 1, b'y']))),
        ("rapid reset", streams(&|n| [head(n, 5), frame(3, 0, n, &8_u32.to_be_bytes())].concat())),
        ("too many streams", streams(&|n| head(n, 5))),
    ] {
        let mut stream = connect(echo.addr);
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        stream.write_all(&frame(4, 0, 0, b"")).unwrap();
        let mut reader = stream.try_clone().unwrap();
        let reading = std::thread::spawn(move || {
            let mut got = Vec::new();
            let _ = reader.read_to_end(&mut got);
            got
        });
        // Fails where the connection has ended.
        let _ = stream.write_all(&wire);
        let got = reading.join().unwrap();
        let mut at = 0;
        let mut reason = None;
        while got.len() >= at + 9 {
            let length = usize::from(got[at + 1]) << 8 | usize::from(got[at + 2]);
            if got[at + 3] == 7 && got.len() >= at + 17 {
                reason = Some(u32::from_be_bytes(got[at + 13..at + 17].try_into().unwrap()));
            }
            at += 9 + length;
        }
        assert_eq!(reason, Some(11), "{what}: ENHANCE_YOUR_CALM");
    }
    // The client hears of the end before it is counted.
    for _ in 0..100 {
        if echo.server.stats().refused < 9 {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    assert_eq!(echo.server.stats().refused, 9);
    // Streams that are reset after they were accepted, one by one.
    block_on(async {
        let mut send = dial(echo.addr).await;
        let mut reset = 0;
        let ended = loop {
            let mut ready = match send.clone().ready().await {
                Ok(ready) => ready,
                Err(error) => break error,
            };
            let Ok((response, mut stream)) = ready.send_request(head_of_slow(), true) else { continue };
            tokio::time::sleep(Duration::from_millis(1)).await;
            stream.send_reset(Reason::CANCEL);
            drop(response);
            reset += 1;
            assert!(reset < 5_000, "nobody minds");
            send = ready;
        };
        assert_eq!(ended.reason(), Some(Reason::ENHANCE_YOUR_CALM), "after {reset}");
        assert!(reset >= 200, "{reset}");
    });
}

/// RFC 8441 is not spoken: it is not offered, a stream that asks for it is reset, and its connection goes on.
#[test]
fn a_websocket_is_not_opened_on_a_stream() {
    let echo = start(Echo);
    let mut stream = connect(echo.addr);
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    stream.write_all(&frame(4, 0, 0, b"")).unwrap();
    let literal = |name: &str, value: &str| {
        [&[0, name.len() as u8], name.as_bytes(), &[value.len() as u8], value.as_bytes()].concat()
    };
    let fields = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "http"),
        (":path", "/chat"),
        (":authority", "a"),
        ("sec-websocket-version", "13"),
    ];
    let asks: Vec<u8> = fields.iter().flat_map(|(name, value)| literal(name, value)).collect();
    stream.write_all(&frame(1, 4, 1, &asks)).unwrap();
    let ordinary = [
        literal(":method", "GET"),
        literal(":scheme", "http"),
        literal(":path", "/"),
        literal(":authority", "a"),
    ];
    stream.write_all(&frame(1, 5, 3, &ordinary.concat())).unwrap();
    let (mut offered, mut reset, mut answered) = (Vec::new(), None, false);
    while reset.is_none() || !answered {
        let mut head = [0; 9];
        stream.read_exact(&mut head).unwrap();
        let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        stream.read_exact(&mut payload).unwrap();
        match (head[3], head[8]) {
            (4, _) => offered.extend(payload.chunks(6).map(|setting| setting[1])),
            (3, 1) => reset = payload.last().copied(),
            (1, 3) => answered = true,
            (7, _) => panic!("the connection was ended"),
            _ => {}
        }
    }
    // PROTOCOL_ERROR; the setting has the number 8.
    assert_eq!(reset, Some(1));
    assert!(!offered.is_empty() && !offered.contains(&8), "{offered:?}");
}

fn head_of_slow() -> http::Request<()> {
    head("GET", "/slow", &[])
}

/// A backend of HTTP/2: what it does with each stream of each connection, by their numbers.
fn backend2(
    script: impl Fn(usize, usize, http::Request<RecvStream>, h2::server::SendResponse<Bytes>) -> bool
    + Send
    + Sync
    + 'static,
) -> SocketAddr {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(listener.local_addr().unwrap()).unwrap();
            let script = Arc::new(script);
            for number in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let script = script.clone();
                tokio::spawn(async move {
                    let mut builder = h2::server::Builder::new();
                    let handshake = builder.max_concurrent_streams(100).handshake(stream);
                    let Ok(mut connection) = handshake.await else { return };
                    let mut nth = 0;
                    while let Some(Ok((request, respond))) = connection.accept().await {
                        if !script(number, nth, request, respond) {
                            return;
                        }
                        nth += 1;
                    }
                });
            }
        });
    });
    told.recv().unwrap()
}

fn answer(mut respond: h2::server::SendResponse<Bytes>, text: &'static str) {
    let mut stream = respond.send_response(http::Response::new(()), false).unwrap();
    stream.send_data(Bytes::from_static(text.as_bytes()), true).unwrap();
}

async fn send(
    client: &Client,
    target: &Target,
    method: Method,
    body: impl Into<Body>,
    options: &SendOptions,
) -> Result<Response, SendError> {
    let mut body = body.into();
    let out =
        OutRequest { method: &method, target: "/", headers: &Headers::new(), host: None, body: &mut body };
    client.send(target, out, options).await
}

fn at(addr: SocketAddr) -> Target {
    Target::http(&addr.ip().to_string(), addr.port()).http2()
}

async fn text(response: Result<Response, SendError>) -> String {
    let bytes = response.unwrap().body.collect(1 << 20).await.unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What was certainly not processed is sent again, whatever its method; what may have been, only where that does no harm.
#[test]
fn only_what_was_not_processed_is_sent_again() {
    let options = SendOptions::default();
    block_on(async {
        // Refused twice, then taken.
        let tries = Arc::new(AtomicUsize::new(0));
        let seen = tries.clone();
        let refusing = backend2(move |_, _, _, mut respond| {
            if seen.fetch_add(1, SeqCst) < 2 {
                respond.send_reset(Reason::REFUSED_STREAM);
            } else {
                answer(respond, "taken");
            }
            true
        });
        let client = Client::new(ClientLimits::default());
        assert_eq!(text(send(&client, &at(refusing), Method::Post, "x", &options).await).await, "taken");
        assert_eq!((tries.load(SeqCst), client.stats().retried), (3, 2));
        // Always refused: nothing was processed, and whoever asked may send it elsewhere.
        let never = backend2(|_, _, _, mut respond| {
            respond.send_reset(Reason::REFUSED_STREAM);
            true
        });
        let error = send(&client, &at(never), Method::Post, "x", &options).await.unwrap_err();
        assert!(matches!(error.kind, SendErrorKind::Reset(7)) && error.nothing_processed, "{error:?}");
        // Another reset says nothing of that.
        let broken = backend2(|_, _, _, mut respond| {
            respond.send_reset(Reason::INTERNAL_ERROR);
            true
        });
        let error = send(&client, &at(broken), Method::Get, Body::Empty, &options).await.unwrap_err();
        assert!(matches!(error.kind, SendErrorKind::Reset(2)) && !error.nothing_processed, "{error:?}");
        assert!(
            error.to_string().contains("reset the stream without a response (INTERNAL_ERROR)"),
            "{error}"
        );
        // A connection that was in use dies: GET is sent again on another one, POST is not.
        for (method, again) in [(Method::Get, true), (Method::Post, false)] {
            let dying = backend2(|number, nth, _, respond| {
                let lives = number > 0 || nth == 0;
                if lives {
                    answer(respond, "lives");
                }
                lives
            });
            let client = Client::new(ClientLimits::default());
            assert_eq!(
                text(send(&client, &at(dying), Method::Get, Body::Empty, &options).await).await,
                "lives"
            );
            let second = send(&client, &at(dying), method, Body::Empty, &options).await;
            match again {
                true => assert_eq!(text(second).await, "lives"),
                false => assert!(matches!(second.unwrap_err().kind, SendErrorKind::Closed)),
            }
        }
    });
}

#[test]
fn failures_have_the_kinds_of_http1_and_deadlines_hold() {
    block_on(async {
        let client = Client::new(ClientLimits::default());
        let soon = SendOptions { response: Duration::from_millis(300), ..SendOptions::default() };
        let kept = std::sync::Mutex::new(Vec::new());
        let silent = backend2(move |_, _, request, respond| {
            kept.lock().unwrap().push((request, respond));
            true
        });
        let error = send(&client, &at(silent), Method::Get, Body::Empty, &soon).await.unwrap_err();
        assert!(matches!(error.kind, SendErrorKind::ResponseTimeout), "{error:?}");
        // Nothing came but what a connection begins with. Where nothing at all comes, it may be dead: the next one goes over another.
        for _ in 0..2 {
            let _ = send(&client, &at(silent), Method::Get, Body::Empty, &soon).await;
        }
        assert_eq!(client.stats().created, 2);
        let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = send(&client, &at(nobody), Method::Get, Body::Empty, &soon).await.unwrap_err();
        assert!(matches!(error.kind, SendErrorKind::Connect(_)) && error.nothing_processed, "{error:?}");
        // It speaks HTTP/1.1.
        let old = backend(|_, mut s| {
            let _ = s.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
            std::thread::sleep(Duration::from_millis(500));
        });
        let error = send(&client, &at(old), Method::Get, Body::Empty, &soon).await.unwrap_err();
        assert!(matches!(error.kind, SendErrorKind::Protocol(_)), "{error:?}");
        // Half an answer is none.
        let half = backend2(|_, _, _, mut respond| {
            let head = http::Response::builder().header("content-length", "10").body(()).unwrap();
            let mut stream = respond.send_response(head, false).unwrap();
            stream.send_data(Bytes::from_static(b"half"), false).unwrap();
            stream.send_reset(Reason::INTERNAL_ERROR);
            true
        });
        let response = send(&client, &at(half), Method::Get, Body::Empty, &soon).await;
        // The reset may be there before the head was looked at.
        if let Ok(response) = response {
            assert!(response.body.collect(100).await.is_err());
        }
    });
}

/// Many requests share a connection as far as the backend lets them; where it is full, there is another one.
#[test]
fn requests_share_connections() {
    let limits = ServerLimits { streams: 10, ..ServerLimits::default() };
    let echo = start_with(Echo, limits);
    block_on(async {
        let client = Client::new(ClientLimits { connections: 3, ..ClientLimits::default() });
        let (target, options) = (at(echo.addr), SendOptions::default());
        // So that the limit is known.
        text(send(&client, &target, Method::Post, "first", &options).await).await;
        let all = (0..60).map(|n| {
            let (client, target, options) = (client.clone(), target.clone(), options.clone());
            tokio::spawn(async move {
                let mut body = Body::from(format!("{n}").into_bytes());
                let out = OutRequest {
                    method: &Method::Post,
                    target: "/slow",
                    headers: &Headers::new(),
                    host: None,
                    body: &mut body,
                };
                let response = client.send(&target, out, &options).await.unwrap();
                assert_eq!(response.head.version, Version::Http2);
                response.body.collect(100).await.unwrap()
            })
        });
        for one in all.collect::<Vec<_>>() {
            assert_eq!(one.await.unwrap(), "slow");
        }
        assert_eq!(echo.server.stats().accepted, 3);
        assert_eq!(client.stats().failed, 0);
        client.close_idle();
        for _ in 0..100 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if client.stats().active + client.stats().idle == 0 {
                break;
            }
        }
        assert_eq!((client.stats().active, client.stats().idle), (0, 0));
    });
}

/// A question that must be put waits neither for a stream of a connection that is full nor for those who wait for a connection.
#[test]
fn an_extra_connection_is_made_where_all_are_full() {
    block_on(async {
        let client = Client::new(ClientLimits { connections: 1, ..ClientLimits::default() });
        let kept = std::sync::Mutex::new(Vec::new());
        // The first connection hangs behind its first answer; others answer.
        let backend = backend2(move |number, nth, request, respond| {
            match (number, nth) {
                (0, 1..) => kept.lock().unwrap().push((request, respond)),
                _ => answer(respond, "well"),
            }
            true
        });
        let target = at(backend);
        // So that the limit is known.
        text(send(&client, &target, Method::Get, Body::Empty, &SendOptions::default()).await).await;
        let hanging: Vec<_> = (0..300)
            .map(|_| {
                let (client, target) = (client.clone(), target.clone());
                tokio::spawn(async move {
                    let options = SendOptions { response: Duration::from_secs(60), ..SendOptions::default() };
                    let _ = send(&client, &target, Method::Get, Body::Empty, &options).await;
                })
            })
            .collect();
        // A hundred have a stream, the others wait for one.
        let full = async {
            while client.stats().requests < 301 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), full).await.unwrap();
        let extra = SendOptions { extra_connection: true, ..SendOptions::default() };
        assert_eq!(text(send(&client, &target, Method::Get, Body::Empty, &extra).await).await, "well");
        hanging.iter().for_each(tokio::task::JoinHandle::abort);
    });
}

/// Of interim answers there may be as many as in HTTP/1.1, in number and in bytes.
#[test]
fn interim_answers_have_an_end() {
    block_on(async {
        let options = SendOptions { response: Duration::from_secs(5), ..SendOptions::default() };
        for (count, link, taken) in [(64, 10, true), (65, 10, false), (60, 2_000, false)] {
            let backend = backend2(move |_, _, _, mut respond| {
                for _ in 0..count {
                    let hints = http::Response::builder().status(103).header("link", "x".repeat(link));
                    respond.send_informational(hints.body(()).unwrap()).unwrap();
                }
                answer(respond, "taken");
                true
            });
            let client = Client::new(ClientLimits::default());
            let sent = send(&client, &at(backend), Method::Get, Body::Empty, &options).await;
            match taken {
                true => assert_eq!(text(sent).await, "taken"),
                false => {
                    let error = sent.map(|response| response.head.status).unwrap_err();
                    assert!(matches!(error.kind, SendErrorKind::Protocol(_)), "{count} {link}: {error:?}");
                }
            }
        }
    });
}

/// HTTP/2 has no 101 (RFC 9113, 8.6): who sends it speaks something else.
#[test]
fn a_backend_cannot_switch_protocols() {
    block_on(async {
        let backend = backend2(|_, _, _, mut respond| {
            let interim = http::Response::builder().status(101).body(()).unwrap();
            respond.send_informational(interim).unwrap();
            answer(respond, "taken");
            true
        });
        let client = Client::new(ClientLimits::default());
        let sent = send(&client, &at(backend), Method::Get, Body::Empty, &SendOptions::default()).await;
        let error = sent.map(|response| response.head.status).unwrap_err();
        assert!(matches!(error.kind, SendErrorKind::Protocol(_)), "{error:?}");
    });
}

/// Who is answered before its body was read may send the rest of it: nothing is reset under its hands. Only what has no end is.
#[test]
fn an_answer_reaches_a_client_that_still_sends() {
    let echo = start(Echo);
    block_on(async {
        let mut send = dial(echo.addr).await;
        for (path, status) in [("/ignore", 200), ("/first", 200), ("bad", 400)] {
            let mut request = head("POST", "/ignore", &[]);
            match path {
                "bad" => _ = request.headers_mut().append("host", "other".parse().unwrap()),
                path => request = head("POST", path, &[]),
            }
            let asked = ask(&mut send, request, &bytes(3_000_000)).await;
            let status_of = asked.map(|(parts, _)| parts.status.as_u16()).map_err(|error| error.to_string());
            assert_eq!(status_of, Ok(status), "{path}");
        }
        // One without an end is read for a while only. The connection goes on.
        let mut ready = send.clone().ready().await.unwrap();
        let (response, mut stream) = ready.send_request(head("POST", "/ignore", &[]), false).unwrap();
        let (parts, body) = response.await.unwrap().into_parts();
        assert_eq!(parts.status.as_u16(), 200);
        assert_eq!(whole(body).await.unwrap(), b"ignored");
        let mut sent = 0;
        let reset = loop {
            stream.reserve_capacity(16_384);
            match std::future::poll_fn(|cx| stream.poll_capacity(cx)).await {
                Some(Ok(n)) => match stream.send_data(Bytes::from(vec![0; n]), false) {
                    Ok(()) => sent += n,
                    Err(_) => break std::future::poll_fn(|cx| stream.poll_reset(cx)).await.unwrap(),
                },
                Some(Err(_)) | None => break std::future::poll_fn(|cx| stream.poll_reset(cx)).await.unwrap(),
            }
            assert!(sent < 64 << 20, "it is read without an end");
        };
        assert_eq!(reset, Reason::NO_ERROR);
        assert!(sent > 3_000_000, "{sent}");
        let (parts, _) = ask(&mut send, head("GET", "/204", &[]), b"").await.unwrap();
        assert_eq!(parts.status.as_u16(), 204);
    });
}

/// What HTTP/1.1 lets through and the library does not is the same resource with its bytes encoded.
#[test]
fn a_target_with_bytes_that_no_uri_has_reaches_the_backend() {
    let echo = start(Echo);
    let mut relay = Relay::to(echo.addr);
    relay.target = relay.target.http2();
    let over2 = start(relay);
    let mut stream = connect(over2.addr);
    for (target, seen) in [
        ("/head?a=<b>&c=\"d\"&e=%3C", "/head?a=%3Cb%3E&c=%22d%22&e=%3C"),
        ("/head?{a}|^`\\[]'", "/head?{a}|^`\\[]'"),
        ("/head?", "/head?"),
    ] {
        stream.write_all(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).unwrap();
        let text = String::from_utf8(read_response(&mut stream).1).unwrap();
        assert!(text.starts_with(&format!("GET {seen}\n")), "{target}: {text}");
    }
    stream.write_all(b"GET /<{a}|^`\"\\> HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let (head, body) = read_response(&mut stream);
    assert!(head.starts_with("HTTP/1.1 200"), "{head} {}", String::from_utf8_lossy(&body));
}

/// A fragment is no part of a target: it ends here, whatever the versions are.
#[test]
fn a_fragment_goes_no_further() {
    let echo = start(Echo);
    let mut over2 = Relay::to(echo.addr);
    over2.target = over2.target.http2();
    for relay in [start(Relay::to(echo.addr)), start(over2), echo] {
        let mut stream = connect(relay.addr);
        for (target, seen) in [("/head?a#b?c", "/head?a"), ("/head#", "/head"), ("http://a/head#/b", "/head")]
        {
            stream.write_all(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).unwrap();
            let text = String::from_utf8(read_response(&mut stream).1).unwrap();
            assert!(text.starts_with(&format!("GET {seen}\n")), "{target}: {text}");
        }
        stream.write_all(b"GET #/head HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        assert!(read_response(&mut stream).0.starts_with("HTTP/1.1 400"));
    }
}

/// A connection on which a backend allows no streams is not waited on: there is another one.
#[test]
fn a_connection_without_streams_is_not_waited_on() {
    let addr = backend(|number, mut s| {
        let most = [0, 3, 0, 0, 0, if number == 0 { 0 } else { 100 }];
        s.write_all(&frame(4, 0, 0, &most)).unwrap();
        s.read_exact(&mut [0; 24]).unwrap();
        let mut head = [0; 9];
        while s.read_exact(&mut head).is_ok() {
            let length = usize::from(head[1]) << 8 | usize::from(head[2]);
            s.read_exact(&mut vec![0; length]).unwrap();
            if head[3] == 1 {
                let stream = u32::from_be_bytes(head[5..].try_into().unwrap());
                s.write_all(&frame(1, 5, stream, &[0x88])).unwrap();
            }
        }
    });
    block_on(async {
        let client = Client::new(ClientLimits::default());
        let options = SendOptions { response: Duration::from_secs(2), ..SendOptions::default() };
        for nth in 0..5 {
            let response = send(&client, &at(addr), Method::Post, Body::Empty, &options).await;
            assert_eq!(response.map(|response| response.head.status).ok(), Some(200), "{nth}");
            // What the backend says of itself is heard.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(client.stats().created, 2);
    });
}
