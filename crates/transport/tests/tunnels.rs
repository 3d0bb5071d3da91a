//! WebSockets that pass through, and proxies on the way to backends.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use busbar_transport::{Body, Client, ClientLimits, Proxy, SendOptions, ServerLimits, Target};
use support::*;

const ASKS: &str = "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n";

/// Sends back what it gets, behind its 101.
fn echo_backend() -> SocketAddr {
    backend(|_, mut s| {
        let head = read_head(&mut s).unwrap().to_ascii_lowercase();
        let upgrade = head.contains("connection: upgrade\r\n") && head.contains("upgrade: websocket\r\n");
        if !upgrade || head.contains("/refuse") {
            let _ = s.write_all(b"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n\r\n");
            return;
        }
        s.write_all(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: y\r\n\r\nfirst").unwrap();
        let mut piece = [0; 4096];
        while let Ok(n @ 1..) = s.read(&mut piece) {
            if s.write_all(&piece[..n]).is_err() {
                return;
            }
        }
    })
}

fn upgrading(to: SocketAddr) -> Relay {
    let mut relay = Relay::to(to);
    relay.options.upgrade = true;
    relay
}

fn open(addr: SocketAddr) -> TcpStream {
    let mut stream = connect(addr);
    stream.write_all(ASKS.as_bytes()).unwrap();
    let head = read_head(&mut stream).unwrap();
    assert!(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{head}");
    for line in ["Connection: Upgrade\r\n", "Upgrade: websocket\r\n", "Sec-WebSocket-Accept: y\r\n"] {
        assert_eq!(head.matches(line).count(), 1, "{head}");
    }
    let mut first = [0; 5];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"first");
    stream
}

fn frame(payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0x82, 0x80 | payload.len() as u8, 0, 0, 0, 0];
    out.extend_from_slice(payload);
    out
}

#[test]
fn both_directions_are_piped_and_either_side_ends_it() {
    let relay = start(upgrading(echo_backend()));
    let mut stream = open(relay.addr);
    let mut reader = stream.try_clone().unwrap();
    // More than any buffer holds, while the other direction goes on.
    let sent: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    let wanted = sent.clone();
    let reading = std::thread::spawn(move || {
        let mut got = vec![0; wanted.len()];
        reader.read_exact(&mut got).unwrap();
        assert!(got == wanted);
    });
    stream.write_all(&sent).unwrap();
    reading.join().unwrap();
    drop(stream);
    let begun = Instant::now();
    while relay.server.stats().open > 0 {
        assert!(begun.elapsed() < Duration::from_secs(5), "it stays open");
        std::thread::sleep(Duration::from_millis(10));
    }
    // What is no handshake, or refused, is a response like any other.
    let refused = start(upgrading(echo_backend()));
    let mut stream = connect(refused.addr);
    stream.write_all(ASKS.replace("/chat", "/refuse").as_bytes()).unwrap();
    assert!(read_head(&mut stream).unwrap().starts_with("HTTP/1.1 426"));
}

#[test]
fn nobody_is_upgraded_who_did_not_ask() {
    let relay = start(upgrading(echo_backend()));
    let response = until_close(relay.addr, b"GET /chat HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(response.starts_with("HTTP/1.1 500"), "{response}");
    // What has a body, or is of HTTP/1.0, cannot go on as another protocol.
    for asks in
        [ASKS.replace("\r\n\r\n", "\r\nContent-Length: 5\r\n\r\nhello"), ASKS.replace("HTTP/1.1", "HTTP/1.0")]
    {
        let mut stream = connect(relay.addr);
        stream.write_all(asks.as_bytes()).unwrap();
        assert!(read_head(&mut stream).unwrap().starts_with("HTTP/1.1 500"));
    }
    // A request that does not ask takes no 101 from its backend.
    let relay = start(Relay::to(backend(|_, mut s| {
        read_head(&mut s).unwrap();
        let _ = s.write_all(b"HTTP/1.1 101 Switching Protocols\r\n\r\n");
    })));
    let mut stream = connect(relay.addr);
    stream.write_all(ASKS.as_bytes()).unwrap();
    assert!(read_head(&mut stream).unwrap().starts_with("HTTP/1.1 502"));
}

/// A backend that switches says to what (RFC 9110, 7.8); nobody is told that it is a WebSocket where it is none.
#[test]
fn a_switch_to_something_else_is_none() {
    for fields in [
        "",
        "Connection: Upgrade\r\n",
        "Upgrade: websocket\r\n",
        "Connection: close\r\nUpgrade: websocket\r\n",
        "Connection: Upgrade\r\nUpgrade: h2c\r\n",
        "Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n",
        "Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n",
        "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 5\r\n",
        "Connection: Upgrade\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked\r\n",
    ] {
        let relay = start(upgrading(backend(move |_, mut s| {
            read_head(&mut s).unwrap();
            let response = format!("HTTP/1.1 101 Switching Protocols\r\n{fields}\r\nother");
            let _ = s.write_all(response.as_bytes());
            let _ = s.read(&mut [0]);
        })));
        let mut stream = connect(relay.addr);
        stream.write_all(ASKS.as_bytes()).unwrap();
        let (head, body) = read_response(&mut stream);
        assert!(head.starts_with("HTTP/1.1 502"), "{fields}: {head}");
        assert!(body.starts_with(b"101506"), "{fields}: {}", String::from_utf8_lossy(&body));
    }
}

/// A stop, and a silence, end a WebSocket with a Close frame behind the frame that was begun.
#[test]
fn it_ends_with_a_close_frame() {
    for stop in [true, false] {
        let silent = ServerLimits { websocket_idle: Duration::from_millis(400), ..ServerLimits::default() };
        let limits = if stop { ServerLimits::default() } else { silent };
        let (tell, told) = std::sync::mpsc::channel();
        let tell = std::sync::Mutex::new(tell);
        let back = backend(move |_, mut s| {
            read_head(&mut s).unwrap();
            s.write_all(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: WebSocket\r\nconnection: keep-alive, upgrade\r\n\r\n").unwrap();
            // A frame of five bytes, of which three come.
            s.write_all(&[0x82, 5, 1, 2, 3]).unwrap();
            let mut got = vec![0; 10];
            s.read_exact(&mut got).unwrap();
            std::thread::sleep(Duration::from_millis(700));
            s.write_all(&[4, 5]).unwrap();
            let mut rest = vec![0; 8];
            s.read_exact(&mut rest).unwrap();
            tell.lock().unwrap().send((got, rest)).unwrap();
        });
        let relay = start_with(upgrading(back), limits);
        let mut stream = connect(relay.addr);
        stream.write_all(ASKS.as_bytes()).unwrap();
        read_head(&mut stream).unwrap();
        stream.write_all(&frame(b"last")).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        if stop {
            let server = relay.server.clone();
            std::thread::spawn(move || block_on(server.drain(Duration::from_secs(5))));
        }
        let mut got = Vec::new();
        let _ = stream.read_to_end(&mut got);
        assert_eq!(got, [0x82, 5, 1, 2, 3, 4, 5, 0x88, 2, 0x03, 0xE9], "{stop}");
        let (sent, close) = told.recv_timeout(Duration::from_secs(5)).unwrap();
        assert_eq!(sent, frame(b"last"));
        assert_eq!(close, [0x88, 0x82, 0, 0, 0, 0, 0x03, 0xE9]);
    }
}

/// A proxy: its first line and fields come back, then a tunnel to `to`, or an answer.
fn proxy(to: Option<SocketAddr>, seen: Arc<std::sync::Mutex<Vec<String>>>) -> SocketAddr {
    backend(move |_, mut s| {
        while let Some(head) = read_head(&mut s) {
            let connect = head.starts_with("CONNECT ");
            let allowed = head.contains("Proxy-Authorization: Basic abc\r\n");
            if head.contains("Content-Length: 1\r\n") {
                s.read_exact(&mut [0]).unwrap();
            }
            seen.lock().unwrap().push(head);
            match (connect, allowed, to) {
                (_, false, _) => {
                    let _ = s.write_all(
                        b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n",
                    );
                }
                (true, true, Some(to)) => {
                    s.write_all(b"HTTP/1.1 200 Connection established\r\nVia: p\r\n\r\n").unwrap();
                    let mut other = TcpStream::connect(to).unwrap();
                    let (mut from, mut back) = (s.try_clone().unwrap(), other.try_clone().unwrap());
                    std::thread::spawn(move || _ = std::io::copy(&mut back, &mut from));
                    let _ = std::io::copy(&mut s, &mut other);
                    return;
                }
                _ => {
                    let _ = s.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nproxy");
                }
            }
        }
    })
}

#[test]
fn a_proxy_gets_the_absolute_form_or_opens_a_tunnel() {
    let echo = start(Echo);
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let through = proxy(Some(echo.addr), seen.clone());
    let proxy = |value: Option<&str>| Proxy::new("127.0.0.1", through.port(), value.map(str::to_owned));
    let allowed = proxy(Some("Basic abc"));
    block_on(async {
        let client = Client::new(ClientLimits::default());
        let target = Target::http("backend.example", 8080).through(&allowed);
        for _ in 0..2 {
            let response = post(&client, &target, "x").await.unwrap();
            assert_eq!(response.body.collect(100).await.unwrap(), "proxy");
        }
        assert_eq!(client.stats().created, 1, "connections to a proxy are kept");
        {
            let seen = seen.lock().unwrap();
            assert!(
                seen[1].starts_with(
                    "POST http://backend.example:8080/ HTTP/1.1\r\nHost: backend.example:8080\r\n"
                ),
                "{seen:?}"
            );
        }
        // HTTP/2, which a proxy of HTTP/1.1 could not pass on, goes through a tunnel.
        let response = post(&client, &target.http2(), "through").await.unwrap();
        assert_eq!(response.body.collect(100).await.unwrap(), "through");
        assert!(seen.lock().unwrap()[2].starts_with("CONNECT backend.example:8080 HTTP/1.1\r\n"));
        // Without credentials: it is the bus that has to know others, and not its client.
        let target = Target::http("backend.example", 8080).through(&proxy(None));
        for target in [&target, &target.http2()] {
            let error = post(&client, target, "x").await.unwrap_err();
            assert!(
                error.nothing_processed && error.to_string().contains("wants other credentials (407)"),
                "{error}"
            );
            assert_eq!(error.kind.code(), 101503);
        }
    });
}

/// What is upgraded goes through a tunnel, also where a message would go to the proxy in the absolute form (RFC 6455, 4.1).
#[test]
fn a_websocket_goes_through_a_tunnel_of_the_proxy() {
    let to = echo_backend();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let through = proxy(Some(to), seen.clone());
    let mut relay = upgrading(to);
    let proxy = Proxy::new("127.0.0.1", through.port(), Some("Basic abc".to_owned()));
    relay.target = relay.target.through(&proxy);
    let relay = start(relay);
    for _ in 0..2 {
        let mut stream = open(relay.addr);
        stream.write_all(&frame(b"there")).unwrap();
        let mut back = frame(b"");
        stream.read_exact(&mut back).unwrap();
        assert_eq!(back, frame(b"there")[..back.len()]);
        let head = seen.lock().unwrap().pop().unwrap();
        assert!(head.starts_with(&format!("CONNECT {to} HTTP/1.1\r\n")), "{head}");
    }
    assert!(seen.lock().unwrap().is_empty());
}

/// What a client says to a proxy ends here: a proxy gets its own credentials, once, and a backend none.
#[test]
fn credentials_for_a_proxy_go_no_further() {
    let echo = start(Echo);
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let through = proxy(Some(echo.addr), seen.clone());
    let ask = |target: Target, path| {
        let mut relay = Relay::to(echo.addr);
        relay.target = target;
        let relay = start(relay);
        let mut stream = connect(relay.addr);
        let asks = format!("GET {path} HTTP/1.1\r\nHost: a\r\nPROXY-authorization: Basic client\r\n\r\n");
        stream.write_all(asks.as_bytes()).unwrap();
        String::from_utf8(read_response(&mut stream).1).unwrap().to_ascii_lowercase()
    };
    let direct = || Target::http("127.0.0.1", echo.addr.port());
    let proxy = Proxy::new("127.0.0.1", through.port(), Some("Basic abc".to_owned()));
    assert_eq!(ask(direct().through(&proxy), "/"), "proxy");
    let head = seen.lock().unwrap().pop().unwrap().to_ascii_lowercase();
    assert_eq!(head.matches("proxy-authorization: ").count(), 1, "{head}");
    // Without a proxy, in both versions, and through a tunnel.
    for target in [direct(), direct().http2(), direct().through(&proxy).http2()] {
        let text = ask(target, "/head");
        assert!(text.starts_with("get /head\n") && !text.contains("proxy-authorization"), "{text}");
    }
}

#[test]
fn a_proxy_that_does_not_answer_holds_nobody_up() {
    let tries = Arc::new(AtomicUsize::new(0));
    let count = tries.clone();
    let mute = backend(move |number, mut s| {
        count.fetch_add(1, SeqCst);
        read_head(&mut s);
        match number {
            0 => std::thread::sleep(Duration::from_secs(3)),
            1 => _ = s.write_all(&[b'x'; 40_000]),
            _ => {}
        }
    });
    block_on(async {
        let client = Client::new(ClientLimits::default());
        let target = Target::http("b", 1).http2().through(&Proxy::new("127.0.0.1", mute.port(), None));
        let options = SendOptions { connect: Duration::from_millis(300), ..SendOptions::default() };
        for wanted in ["connect", "answers without end", "closed the connection"] {
            let mut body = Body::Empty;
            let out = busbar_transport::OutRequest {
                method: &busbar_transport::Method::Get,
                target: "/",
                headers: &busbar_transport::Headers::new(),
                host: None,
                body: &mut body,
            };
            let error = client.send(&target, out, &options).await.unwrap_err().to_string();
            assert!(error.to_lowercase().contains(wanted), "{wanted}: {error}");
        }
        assert_eq!(tries.load(SeqCst), 3);
    });
}
