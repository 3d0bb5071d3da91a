//! The client alone: deadlines by the clock, bounded connections, who is to blame and what may be sent again.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use busbar_transport::{
    Body, Client, ClientLimits, Headers, Method, OutRequest, Response, SendError, SendErrorKind, SendOptions,
    Target,
};
use support::*;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

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

fn within(response: Duration) -> SendOptions {
    SendOptions { response, ..SendOptions::default() }
}

fn at(addr: SocketAddr) -> Target {
    Target::http(&addr.ip().to_string(), addr.port())
}

/// A listener whose backlog is full: connecting to it takes as long as one likes to wait.
fn deaf() -> (SocketAddr, impl Drop) {
    struct Held(#[allow(dead_code)] Vec<socket2::Socket>);
    impl Drop for Held {
        fn drop(&mut self) {}
    }
    let tcp = || socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let listener = tcp();
    listener.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
    listener.listen(0).unwrap();
    let addr = listener.local_addr().unwrap().as_socket().unwrap();
    let mut held = vec![listener];
    for _ in 0..4 {
        let one = tcp();
        one.set_nonblocking(true).unwrap();
        let _ = one.connect(&addr.into());
        held.push(one);
    }
    (addr, Held(held))
}

#[test]
fn the_deadline_is_by_the_clock_whatever_moves_meanwhile() {
    let client = Client::new(ClientLimits::default());
    let half = within(Duration::from_millis(500));
    let code = |result: Result<Response, SendError>| result.unwrap_err().kind.code();
    let interim = backend(|_, mut s| {
        read_head(&mut s).unwrap();
        while s.write_all(b"HTTP/1.1 102 Processing\r\n\r\n").is_ok() {
            thread::sleep(Duration::from_millis(100));
        }
    });
    let slow_head = backend(|_, mut s| {
        read_head(&mut s).unwrap();
        for byte in b"HTTP/1.1 200 OK\r\nX: aaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n\r\n" {
            if s.write_all(&[*byte]).is_err() {
                return;
            }
            thread::sleep(Duration::from_millis(100));
        }
    });
    let (deaf, _held) = deaf();
    for (what, addr, expected) in
        [("interim", interim, 101504), ("a slow head", slow_head, 101504), ("connecting", deaf, 101504)]
    {
        let begun = Instant::now();
        assert_eq!(
            code(block_on(send(&client, &at(addr), Method::Get, Body::Empty, &half))),
            expected,
            "{what}"
        );
        let took = begun.elapsed();
        assert!((400..1500).contains(&took.as_millis()), "{what} took {took:?}");
    }
    // Connecting has a deadline of its own within it.
    let options = SendOptions { connect: Duration::from_millis(100), ..SendOptions::default() };
    let error = block_on(send(&client, &at(deaf), Method::Post, "x", &options)).unwrap_err();
    assert_eq!((error.kind.code(), error.nothing_processed, error.body_intact), (101508, true, true));
    // As has the wait behind a request that is sent.
    let silent = backend(|_, mut s| {
        read_head(&mut s).unwrap();
        thread::sleep(Duration::from_secs(3));
    });
    let options = SendOptions { silence: Some(Duration::from_millis(100)), ..SendOptions::default() };
    let error = block_on(send(&client, &at(silent), Method::Post, "x", &options)).unwrap_err();
    assert_eq!((error.kind.code(), error.nothing_processed), (101504, false));
    // Times without end are no error.
    let quick = backend(|_, mut s| {
        read_head(&mut s).unwrap();
        s.write_all(OK).unwrap();
    });
    let options = SendOptions {
        connect: Duration::MAX,
        response: Duration::MAX,
        idle: Duration::MAX,
        silence: Some(Duration::MAX),
        ..SendOptions::default()
    };
    assert!(block_on(send(&client, &at(quick), Method::Get, Body::Empty, &options)).is_ok());
}

#[test]
fn interim_responses_are_bounded_over_the_whole_exchange() {
    for (interim, pause, count) in [
        ("HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n".to_owned(), 2, 100),
        (format!("HTTP/1.1 103 Early Hints\r\nLink: {}\r\n\r\n", "a".repeat(20_000)), 10, 8),
    ] {
        let backend = backend(move |_, mut s| {
            read_head(&mut s).unwrap();
            for _ in 0..count {
                if s.write_all(interim.as_bytes()).is_err() {
                    return;
                }
                thread::sleep(Duration::from_millis(pause));
            }
            let _ = s.write_all(OK);
        });
        let client = Client::new(ClientLimits::default());
        let error = block_on(post(&client, &at(backend), "x")).unwrap_err();
        assert!(matches!(error.kind, SendErrorKind::Protocol(_)), "{error}");
    }
}

/// A backend that answers each request after `pause`, and the most requests that it had at a time.
/// Not the most connections: the backend notices that one was closed some time after the client has made the next.
fn counting(pause: Duration) -> (SocketAddr, Arc<AtomicUsize>) {
    let (requests, most) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let seen = most.clone();
    let addr = backend(move |_, mut s| {
        while read_head(&mut s).is_some() {
            seen.fetch_max(requests.fetch_add(1, SeqCst) + 1, SeqCst);
            let read = s.read_exact(&mut [0; 1]);
            thread::sleep(pause);
            requests.fetch_sub(1, SeqCst);
            if read.is_err() || s.write_all(OK).is_err() {
                break;
            }
        }
    });
    (addr, most)
}

#[test]
fn connections_of_a_backend_are_bounded_and_so_are_those_who_wait() {
    let (addr, most) = counting(Duration::from_millis(50));
    let client = Client::new(ClientLimits { connections: 2, waiting: 6, ..ClientLimits::default() });
    let target = at(addr);
    // On two workers, which share the limit.
    let workers: Vec<_> = (0..2)
        .map(|_| {
            let (client, target) = (client.clone(), target.clone());
            thread::spawn(move || {
                block_on(async {
                    let all: Vec<_> = (0..4)
                        .map(|_| {
                            let (client, target) = (client.clone(), target.clone());
                            tokio::spawn(async move {
                                let response = post(&client, &target, "x").await?;
                                assert_eq!(&response.body.collect(9).await.unwrap()[..], b"ok");
                                Ok::<(), SendError>(())
                            })
                        })
                        .collect();
                    let mut errors = 0;
                    for one in all {
                        errors += usize::from(one.await.unwrap().is_err());
                    }
                    errors
                })
            })
        })
        .collect();
    let errors: usize = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
    assert_eq!(errors, 0, "two are served and six wait");
    assert!(most.load(SeqCst) <= 2, "{most:?}");
    // Beyond the queue, and for longer than one may wait.
    block_on(async {
        let slow = counting(Duration::from_millis(600)).0;
        let target = at(slow);
        let client = Client::new(ClientLimits { connections: 1, waiting: 1, ..ClientLimits::default() });
        let options = SendOptions { connect: Duration::from_millis(200), ..SendOptions::default() };
        let (first, second, third) = tokio::join!(
            send(&client, &target, Method::Post, "x", &options),
            send(&client, &target, Method::Post, "x", &options),
            send(&client, &target, Method::Post, "x", &options),
        );
        first.unwrap().body.collect(9).await.unwrap();
        for shed in [second, third] {
            let error = shed.unwrap_err();
            assert!(matches!(error.kind, SendErrorKind::LocalShortage(_)), "{error}");
            assert!(error.nothing_processed && error.body_intact && !error.kind.is_about_backend());
        }
        assert_eq!((client.stats().shed, client.stats().failed), (2, 2));
        // The next good one is served, on the connection that was made.
        send(&client, &target, Method::Post, "x", &options).await.unwrap();
        assert_eq!((client.stats().created, client.stats().reused), (1, 1));
    });
}

/// A question that must be put has a connection of its own where messages have all; it is not kept, and takes no place.
#[test]
fn an_extra_connection_is_made_where_all_are_in_use_and_closed_after_it() {
    let (addr, most) = counting(Duration::from_millis(300));
    let client = Client::new(ClientLimits { connections: 1, waiting: 1, ..ClientLimits::default() });
    let target = at(addr);
    let extra = SendOptions { extra_connection: true, ..SendOptions::default() };
    block_on(async {
        // Where there is room it is one like any other.
        send(&client, &target, Method::Post, "x", &extra).await.unwrap().body.collect(9).await.unwrap();
        assert_eq!((client.stats().created, client.stats().idle), (1, 1));
        let usual = SendOptions::default();
        let (message, question) = tokio::join!(
            send(&client, &target, Method::Post, "x", &usual),
            send(&client, &target, Method::Post, "x", &extra),
        );
        for response in [message, question] {
            response.unwrap().body.collect(9).await.unwrap();
        }
        assert_eq!((client.stats().created, client.stats().reused, client.stats().shed), (2, 1, 0));
        assert_eq!((client.stats().active, client.stats().idle), (0, 1), "the extra one is closed");
        assert_eq!(most.load(SeqCst), 2);
    });
}

/// Who gives up, while it waits or while it is served, leaves its place to others.
#[test]
fn places_come_back_from_those_who_give_up() {
    let (addr, _) = counting(Duration::from_millis(30));
    let target = at(addr);
    let client = Client::new(ClientLimits { connections: 2, waiting: 100, ..ClientLimits::default() });
    block_on(async {
        for round in 0..20 {
            let all: Vec<_> = (0..10)
                .map(|n| {
                    let (client, target) = (client.clone(), target.clone());
                    tokio::spawn(async move {
                        let patience = Duration::from_millis((round * 7 + n * 13) % 60);
                        let _ = tokio::time::timeout(patience, post(&client, &target, "x")).await;
                    })
                })
                .collect();
            for one in all {
                one.await.unwrap();
            }
        }
        let good = tokio::time::timeout(Duration::from_secs(5), post(&client, &target, "x")).await;
        assert!(good.unwrap().is_ok());
        assert_eq!(client.stats().active, 0);
    });
}

#[test]
fn all_addresses_of_a_name_are_tried() {
    // `localhost` may be ::1 first; the backend is at 127.0.0.1 only.
    let (addr, _) = counting(Duration::ZERO);
    let client = Client::new(ClientLimits::default());
    let target = Target::http("localhost", addr.port());
    block_on(async {
        for _ in 0..3 {
            let body = post(&client, &target, "x").await.unwrap().body.collect(9).await.unwrap();
            assert_eq!(&body[..], b"ok");
            client.close_idle();
        }
        let unknown = Target::http("no-such-host.invalid", 80);
        let error = post(&client, &unknown, "x").await.unwrap_err();
        assert!(matches!(error.kind, SendErrorKind::Dns(_)) && error.nothing_processed, "{error}");
    });
}

/// Whether a request may be sent again is known to the byte.
#[test]
fn what_may_have_been_processed() {
    let client = Client::new(ClientLimits::default());
    let refused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = block_on(post(&client, &at(refused), "x")).unwrap_err();
    assert!(error.nothing_processed && error.body_intact && error.kind.is_about_backend(), "{error}");
    let closes = backend(|_, mut s| {
        read_head(&mut s).unwrap();
    });
    let error = block_on(post(&client, &at(closes), "x")).unwrap_err();
    assert!(!error.nothing_processed && matches!(error.kind, SendErrorKind::Closed), "{error}");
    // Its first attempt went out on a connection that was used before; what became of it nobody knows.
    let once = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        thread::spawn(move || {
            let mut s: TcpStream = listener.accept().unwrap().0;
            read_head(&mut s).unwrap();
            s.write_all(OK).unwrap();
            drop(listener);
            read_head(&mut s).unwrap();
        });
        addr
    };
    block_on(async {
        let options = SendOptions::default();
        let body = send(&client, &at(once), Method::Get, Body::Empty, &options).await.unwrap().body;
        body.collect(9).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        let error = send(&client, &at(once), Method::Get, Body::Empty, &options).await.unwrap_err();
        assert!(!error.nothing_processed && matches!(error.kind, SendErrorKind::Connect(_)), "{error}");
    });
}

/// The deadline is for the backend: the time in which the client takes to upload its request is not in it.
#[test]
fn a_slow_client_is_not_the_backends_fault() {
    let answers = backend(|_, mut s| {
        read_head(&mut s).unwrap();
        let mut body = [0; 10];
        if s.read_exact(&mut body).is_ok() {
            s.write_all(OK).unwrap();
        }
    });
    let silent = backend(|_, mut s| {
        read_head(&mut s).unwrap();
        s.read_exact(&mut [0; 10]).unwrap();
        thread::sleep(Duration::from_secs(5));
    });
    let bus = |addr| {
        let relay = Relay { options: within(Duration::from_millis(300)), ..Relay::to(addr) };
        let limits = busbar_transport::ServerLimits {
            body: Duration::from_millis(600),
            ..busbar_transport::ServerLimits::default()
        };
        start_with(relay, limits)
    };
    // How many of the ten bytes the client sends, one in 100 ms.
    for (backend, sends, expected) in [
        (answers, 10, "HTTP/1.1 200 OK"),
        (answers, 4, "101500 "),
        // When it has the request the backend has its time, and no more.
        (silent, 10, "101504 "),
    ] {
        let bus = bus(backend);
        let mut stream = connect(bus.addr);
        stream.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n").unwrap();
        for _ in 0..sends {
            thread::sleep(Duration::from_millis(100));
            let _ = stream.write_all(b"x");
        }
        let begun = Instant::now();
        let (head, body) = read_response(&mut stream);
        let got = format!("{head}{}", String::from_utf8_lossy(&body));
        assert!(got.contains(expected), "{expected}: {got}");
        assert!(begun.elapsed() < Duration::from_secs(3));
    }
}

/// One becomes idle just when another worker begins to wait: it is not left idle while that one waits.
#[test]
fn a_connection_is_never_idle_while_somebody_waits_for_it() {
    let addr = backend(|_, mut s| while read_head(&mut s).is_some() && s.write_all(OK).is_ok() {});
    let client = Client::new(ClientLimits { connections: 1, ..ClientLimits::default() });
    let workers: Vec<_> = (0..2)
        .map(|_| {
            let (client, target) = (client.clone(), at(addr));
            thread::spawn(move || {
                block_on(async {
                    let options = SendOptions { connect: Duration::from_secs(2), ..SendOptions::default() };
                    for round in 0..2000 {
                        let response = send(&client, &target, Method::Get, Body::Empty, &options).await;
                        let response = response.unwrap_or_else(|error| panic!("{round}: {error}"));
                        response.body.collect(9).await.unwrap();
                    }
                });
            })
        })
        .collect();
    for worker in workers {
        worker.join().unwrap();
    }
}
