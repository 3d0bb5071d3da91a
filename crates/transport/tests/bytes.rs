//! A connection that ends at each byte of a message, and a backend that answers at each byte of a request: nobody takes a
//! part for the whole, and what comes next is served.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use socket2::SockRef;
use support::*;

/// Ends it with a reset, or in order.
fn end(stream: &TcpStream, reset: bool) {
    match reset {
        true => SockRef::from(stream).set_linger(Some(Duration::ZERO)).unwrap(),
        false => stream.shutdown(Shutdown::Write).unwrap(),
    }
}

#[test]
fn an_answer_that_ends_at_each_byte() {
    let answers: [&[u8]; 2] = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789",
        b"HTTP/1.1 103 E\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n0\r\n\r\n",
    ];
    for response in answers {
        for reset in [false, true] {
            let turn = Arc::new(Mutex::new(0));
            let next = turn.clone();
            let backend = backend(move |_, mut s| {
                if read_head(&mut s).is_none() {
                    return;
                }
                let size = *next.lock().unwrap();
                s.write_all(&response[..size]).unwrap();
                // What was sent has arrived before the reset, which would take it along.
                thread::sleep(Duration::from_millis(2));
                end(&s, reset);
            });
            let bus = start(Relay::to(backend));
            for size in 0..=response.len() {
                *turn.lock().unwrap() = size;
                let got = until_close(
                    bus.addr,
                    b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
                );
                let head = response.windows(4).rposition(|w| w == b"\r\n\r\n").unwrap();
                let head = if response.ends_with(b"0\r\n\r\n") { head - 20 } else { head };
                let whole = size == response.len();
                if size < head + 4 {
                    assert!(got.starts_with("HTTP/1.1 502"), "{size} {reset}: {got}");
                } else if whole {
                    assert!(
                        got.starts_with("HTTP/1.1 200") && got.contains("0123456789"),
                        "{size} {reset}: {got}"
                    );
                } else {
                    assert!(got.starts_with("HTTP/1.1 200") || got.is_empty(), "{size} {reset}: {got}");
                    let complete = match got.contains("Content-Length") {
                        true => got.ends_with("0123456789"),
                        false => got.ends_with("0\r\n\r\n"),
                    };
                    assert!(!complete, "{size} {reset}: {got}");
                }
            }
        }
    }
}

#[test]
fn a_request_that_ends_at_each_byte() {
    let requests: [&[u8]; 2] = [
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n01234567890",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n0\r\n\r\n",
    ];
    for request in requests {
        for reset in [false, true] {
            let whole = Arc::new(Mutex::new(0));
            let seen = whole.clone();
            let backend = backend(move |_, mut s| {
                let mut all = Vec::new();
                let mut piece = [0; 1000];
                while let Ok(n @ 1..) = s.read(&mut piece) {
                    all.extend_from_slice(&piece[..n]);
                    if all.ends_with(b"0\r\n\r\n") || all.ends_with(b"\r\n\r\n01234567890") {
                        *seen.lock().unwrap() += 1;
                        s.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
                    }
                }
            });
            let bus = start(Relay::to(backend));
            for size in 0..request.len() {
                let mut stream = connect(bus.addr);
                stream.write_all(&request[..size]).unwrap();
                end(&stream, reset);
            }
            let mut stream = connect(bus.addr);
            stream.write_all(request).unwrap();
            assert!(read_response(&mut stream).0.starts_with("HTTP/1.1 200"));
            thread::sleep(Duration::from_millis(50));
            assert_eq!(*whole.lock().unwrap(), 1, "{reset}");
            drop(stream);
        }
    }
}

#[test]
fn an_answer_at_each_byte_of_the_request() {
    let length = format!("POST / HTTP/1.1\r\nHost: {}\r\nContent-Length: 40\r\n\r\n", "a");
    for (response, closes) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false),
        ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", true),
        ("HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno", false),
        ("HTTP/1.1 204 No\r\n\r\n", false),
    ] {
        let turn = Arc::new(Mutex::new(0));
        let next = turn.clone();
        let backend = backend(move |_, mut s| {
            loop {
                let mut read = 0;
                let size = *next.lock().unwrap();
                // The head is some bytes longer here than at the client, which does no harm.
                let mut byte = [0];
                let mut all = Vec::new();
                let mut answered = false;
                loop {
                    if !answered && read >= size {
                        if s.write_all(response.as_bytes()).is_err() {
                            return;
                        }
                        answered = true;
                        if closes {
                            let _ = s.shutdown(Shutdown::Write);
                        }
                    }
                    if all.len() > 44 && all[..all.len() - 40].ends_with(b"\r\n\r\n") {
                        break;
                    }
                    match s.read(&mut byte) {
                        Ok(1) => all.push(byte[0]),
                        _ => return,
                    }
                    read += 1;
                }
                if !answered && s.write_all(response.as_bytes()).is_err() {
                    return;
                }
            }
        });
        let bus = start(Relay::to(backend));
        let mut stream = connect(bus.addr);
        for size in 1..length.len() + 40 {
            *turn.lock().unwrap() = size;
            stream.write_all(length.as_bytes()).unwrap();
            let early = size > length.len();
            if early {
                stream.write_all(&[b'x'; 40][..size - length.len()]).unwrap();
            }
            if size % 3 == 0 {
                thread::sleep(Duration::from_millis(1));
            }
            stream.write_all(&[b'x'; 40][size.saturating_sub(length.len())..]).unwrap();
            let (head, _) = read_response(&mut stream);
            assert!(head.starts_with(&response[..12]), "{size}: {head}");
            assert!(!head.contains("Connection: close"), "{size}: {head}");
        }
    }
}
