//! A bus that runs out of file descriptors: in a process of its own, which may open few.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::*;

const BACKEND: &str = "BUSBAR_TEST_BACKEND";

/// The bus, if this process was started to be it.
#[test]
fn bus() {
    let Ok(backend) = std::env::var(BACKEND) else { return };
    // The soft limit is raised to the hard one.
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), maximum: Some(160) }).unwrap();
    assert_eq!(busbar_transport::raise_descriptor_limit().unwrap(), Some(160));
    assert_eq!(getrlimit(Resource::Nofile).current, Some(160));
    let relay = start(Relay::to(backend.parse::<SocketAddr>().unwrap()));
    println!("\nlistens at {}", relay.addr);
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    // A file can be opened still.
    assert!(std::fs::File::open("/dev/null").is_ok());
    println!("\nopened");
    std::io::stdin().read_line(&mut line).unwrap();
}

#[test]
fn a_shortage_is_told_to_clients_and_blamed_on_nobody() {
    let backend = backend(|_, mut s| {
        while read_head(&mut s).is_some() {
            std::thread::sleep(Duration::from_millis(1500));
            let _ = s.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    let mut bus = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "bus", "--nocapture"])
        .env(BACKEND, backend.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(bus.stdout.take().unwrap()).lines();
    let addr: SocketAddr = lines
        .find_map(|line| line.unwrap().strip_prefix("listens at ").map(|addr| addr.parse().unwrap()))
        .unwrap();
    let ask = |stream: &mut std::net::TcpStream| {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    };
    // Each takes two descriptors of the bus.
    let mut clients: Vec<_> = (0..100).map(|_| connect(addr)).collect();
    clients.iter_mut().for_each(ask);
    std::thread::sleep(Duration::from_millis(300));
    bus.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    assert!(lines.any(|line| line.unwrap() == "opened"), "a file is opened in the middle of it");
    let (mut served, mut short) = (0, 0);
    for stream in &mut clients {
        match read_response(stream) {
            (head, _) if head.starts_with("HTTP/1.1 200") => served += 1,
            (_, body) => {
                let body = String::from_utf8(body).unwrap();
                assert!(body.contains("no resources for a connection"), "{body}");
                short += 1;
            }
        }
    }
    assert!(served >= 20 && short >= 10, "{served} were served, {short} heard of the shortage");
    // It is over as soon as they are gone.
    drop(clients);
    std::thread::sleep(Duration::from_millis(200));
    let mut stream = connect(addr);
    ask(&mut stream);
    assert_eq!(read_response(&mut stream).1, b"ok");
    drop(bus.stdin.take());
    assert!(bus.wait().unwrap().success());
}
