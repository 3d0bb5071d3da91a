//! Long bodies of a declared length, which the kernel moves from socket to socket: they arrive whole, or visibly not, as those do that are copied.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::{Read, Write};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use busbar_transport::{SendOptions, ServerLimits};
use support::*;

const MEGABYTE: usize = 1 << 20;

/// Bytes that are different at each place and for each seed.
fn pattern(seed: usize, length: usize) -> Vec<u8> {
    let mut state = seed as u64 + 1;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_le_bytes()
    };
    let mut bytes: Vec<u8> = std::iter::repeat_with(next).take(length / 8 + 1).flatten().collect();
    bytes.truncate(length);
    bytes
}

fn head(length: usize) -> String {
    format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n")
}

#[test]
fn they_arrive_whole_beside_slow_readers_and_what_is_behind_them_stays_there() {
    let echo = start(Echo);
    let relay = start(Relay::to(echo.addr));
    // More than there are pipes.
    let clients: Vec<_> = (0..48)
        .map(|number| {
            let addr = relay.addr;
            thread::spawn(move || {
                let mut stream = connect(addr);
                stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                // Among them such as end at the bounds of what is worth it and of what a pipe takes.
                let length =
                    [32 << 10, 64 << 10, 100_000, 512 << 10, MEGABYTE + number, 3 * MEGABYTE + 1][number % 6];
                let body = pattern(number, length);
                let mut wire = [head(length).as_bytes(), &body].concat();
                wire.extend_from_slice(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nagain");
                let mut writer = stream.try_clone().unwrap();
                let sending = thread::spawn(move || {
                    for piece in wire.chunks(77_777) {
                        writer.write_all(piece).unwrap();
                    }
                });
                if number % 2 == 0 {
                    thread::sleep(Duration::from_millis(300));
                }
                assert!(read_response(&mut stream).1 == body, "{number}: {length} bytes");
                assert_eq!(read_response(&mut stream).1, b"again", "{number}");
                sending.join().unwrap();
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
}

#[test]
fn half_an_answer_never_looks_whole() {
    for at in [10, 40_000, 300_000, MEGABYTE - 1] {
        let backend = backend(move |_, mut s| {
            read_head(&mut s).unwrap();
            s.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {MEGABYTE}\r\n\r\n").as_bytes()).unwrap();
            s.write_all(&vec![b'x'; at]).unwrap();
        });
        let relay = start(Relay::to(backend));
        let mut stream = connect(relay.addr);
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut got = Vec::new();
        // The end or a reset: with fewer bytes than were declared.
        let _ = stream.read_to_end(&mut got);
        let got = got.iter().filter(|byte| **byte == b'x').count();
        assert!(got <= at, "{got} of {at}");
    }
}

#[test]
fn half_a_request_is_never_completed() {
    for at in [10, 40_000, 300_000, MEGABYTE - 1] {
        let (sent, seen) = mpsc::channel();
        let backend = backend(move |_, mut s| {
            read_head(&mut s).unwrap();
            let mut all = Vec::new();
            let _ = s.read_to_end(&mut all);
            sent.send(all.len()).unwrap();
        });
        let relay = start(Relay::to(backend));
        let mut stream = connect(relay.addr);
        stream.write_all(head(MEGABYTE).as_bytes()).unwrap();
        stream.write_all(&vec![b'x'; at]).unwrap();
        thread::sleep(Duration::from_millis(100));
        drop(stream);
        let got = seen.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(got <= at, "{got} of {at}");
    }
}

#[test]
fn a_sender_that_pauses_too_long_and_a_receiver_that_takes_nothing_are_left() {
    // The backend pauses in its answer.
    let quiet = backend(move |_, mut s| {
        read_head(&mut s).unwrap();
        s.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {MEGABYTE}\r\n\r\n").as_bytes()).unwrap();
        s.write_all(&vec![b'x'; 300_000]).unwrap();
        thread::sleep(Duration::from_secs(20));
    });
    let options = SendOptions { idle: Duration::from_millis(300), ..SendOptions::default() };
    let relay = start(Relay { options, ..Relay::to(quiet) });
    let (begun, mut got) = (Instant::now(), Vec::new());
    let mut stream = connect(relay.addr);
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let _ = stream.read_to_end(&mut got);
    assert!(
        got.len() > 300_000 && got.len() < MEGABYTE && begun.elapsed() < Duration::from_secs(9),
        "{}",
        got.len()
    );

    // The client takes nothing of an answer that is larger than what the kernel holds.
    let (sent, seen) = mpsc::channel();
    let large = backend(move |_, mut s| {
        read_head(&mut s).unwrap();
        s.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 200 * MEGABYTE).as_bytes())
            .unwrap();
        let piece = vec![b'x'; MEGABYTE];
        let whole = (0..200).all(|_| s.write_all(&piece).is_ok());
        sent.send(whole).unwrap();
    });
    let limits = ServerLimits { write: Duration::from_millis(300), ..ServerLimits::default() };
    let relay = start_with(Relay::to(large), limits);
    let mut stream = connect(relay.addr);
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert!(!seen.recv_timeout(Duration::from_secs(9)).unwrap());
}

/// The time in which a backend takes nothing is not that in which it may answer.
#[test]
fn a_backend_that_takes_nothing_of_a_request_is_left() {
    let stuck = backend(|_, mut s| {
        read_head(&mut s).unwrap();
        thread::sleep(Duration::from_secs(20));
    });
    for chunked in [false, true] {
        let options = SendOptions { idle: Duration::from_millis(300), ..SendOptions::default() };
        let relay = start(Relay { options, ..Relay::to(stuck) });
        let mut stream = connect(relay.addr);
        let mut writer = stream.try_clone().unwrap();
        // More than the kernel holds.
        thread::spawn(move || {
            let (head, piece) = match chunked {
                false => (head(200 * MEGABYTE), vec![b'x'; MEGABYTE]),
                true => (
                    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
                    [b"100000\r\n", &vec![b'x'; MEGABYTE][..], b"\r\n"].concat(),
                ),
            };
            writer.write_all(head.as_bytes())?;
            (0..200).try_for_each(|_| writer.write_all(&piece))
        });
        // Its reads end after ten seconds.
        let (head, body) = read_response(&mut stream);
        let body = String::from_utf8_lossy(&body);
        assert!(
            head.starts_with("HTTP/1.1 502") && body.contains("stopped taking"),
            "{chunked}: {head}{body}"
        );
    }
}
