//! Settings of a WSO2 server that say what bodies have to be before they are passed on, and where it listens.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::{Process, busbar, exchange, free_port};

/// A backend that counts its requests. It answers `/large` with 300 bytes, `/chunked` with as many in pieces, and everything else with two.
fn backend() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let count = Arc::clone(&count);
            std::thread::spawn(move || answer(stream, &count));
        }
    });
    (address, asked)
}

fn answer(stream: TcpStream, asked: &AtomicUsize) -> Option<()> {
    let mut writing = stream.try_clone().ok()?;
    let mut reader = BufReader::new(stream);
    let (mut head, mut length, mut chunked) = (String::new(), 0, false);
    while !head.ends_with("\r\n\r\n") {
        let start = head.len();
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
        let line = head[start..].to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        chunked |= line.starts_with("transfer-encoding:");
    }
    asked.fetch_add(1, Ordering::Relaxed);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    while chunked {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let size = usize::from_str_radix(line.trim(), 16).ok()?;
        reader.read_exact(&mut vec![0; size + 2]).ok()?;
        chunked = size > 0;
    }
    let rest = "x".repeat(300);
    let answer = match head.split(' ').nth(1)? {
        "/large" => format!("Content-Length: 300\r\n\r\n{rest}"),
        "/chunked" => format!("Transfer-Encoding: chunked\r\n\r\n12c\r\n{rest}\r\n0\r\n\r\n"),
        _ => "Content-Length: 2\r\n\r\nok".to_owned(),
    };
    let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/plain\r\n";
    writing.write_all(format!("{head}{answer}").as_bytes()).ok()
}

/// A configuration with settings of a WSO2 server.
fn home(name: &str, backend: &str, file: &str, settings: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(path.join("conf")).unwrap();
    std::fs::write(path.join("conf").join(file), settings).unwrap();
    let artifacts = ["small", "large", "chunked"].map(|to| {
        format!(
            "<proxy name=\"{to}\"><target faultSequence=\"told\">\
             <inSequence><send><endpoint><address uri=\"http://{backend}/{to}\"/></endpoint></send></inSequence>\
             <outSequence><send/></outSequence></target></proxy>"
        )
    });
    let told = "<sequence name=\"told\"><property name=\"HTTP_SC\" value=\"599\" scope=\"axis2\"/>\
        <header name=\"code\" scope=\"transport\" expression=\"get-property('ERROR_CODE')\"/><respond/></sequence>";
    let text = format!(
        "<definitions xmlns=\"http://ws.apache.org/ns/synapse\">{told}{}</definitions>",
        artifacts.concat()
    );
    std::fs::write(path.join("synapse.xml"), text).unwrap();
    path
}

fn post(bus: &Process, path: &str, body: &str, more: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(bus.http()).unwrap();
    let (status, head, _) = exchange(&mut stream, "POST", path, body.as_bytes(), more).unwrap();
    (status, head)
}

/// Sends a body in one chunk.
fn post_chunked(bus: &Process, path: &str, body: &str) -> u16 {
    let mut stream = TcpStream::connect(bus.http()).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    write!(stream, "{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn what_is_larger_than_the_server_allows_is_answered_413() {
    let (address, asked) = backend();
    let settings = "[transport.http]\nenable_message_size_validation = true\nmax_message_size_bytes = 200\n";
    let bus = Process::run(&home("screening-size", &address, "deployment.toml", settings), &[]);
    let (fits, larger) = ("x".repeat(200), "x".repeat(201));
    assert_eq!(post(&bus, "/services/small", &fits, "").0, 200);
    assert_eq!(post_chunked(&bus, "/services/small", &fits), 200);
    assert_eq!(asked.load(Ordering::Relaxed), 2);
    let (status, head) = post(&bus, "/services/small", &larger, "");
    assert_eq!(status, 413, "{head}");
    assert!(head.to_ascii_lowercase().contains("connection: close"), "{head}");
    assert_eq!(post_chunked(&bus, "/services/small", &larger), 413);
    assert_eq!(asked.load(Ordering::Relaxed), 2, "nothing is passed on");
    bus.says("larger than the 200 bytes", 2);
    // An answer that is too large is a failure of the backend.
    for to in ["large", "chunked"] {
        let (status, head) = post(&bus, &format!("/services/{to}"), "x", "");
        assert!(status == 599 && head.contains("code: 101501"), "{to}: {head}");
    }
}

#[test]
fn bodies_are_read_to_their_end_where_the_server_says_so() {
    let (address, asked) = backend();
    let settings = "force.xml.message.validation=true\nforce.json.message.validation = true\n";
    let bus = Process::run(&home("screening-form", &address, "passthru-http.properties", settings), &[]);
    let off = Process::run(&home("screening-off", &address, "passthru-http.properties", "\n"), &[]);
    let xml = "Content-Type: application/xml\r\n";
    let json = "Content-Type: application/json\r\n";
    for (body, kind, status) in [
        ("<a><b/></a>", xml, 200),
        ("<a/><b/>", xml, 599),
        ("<a>", xml, 599),
        ("{\"a\": 1}", json, 200),
        ("{\"a\": 1} }", json, 599),
        ("{\"a\": ", json, 599),
        // Of other types nothing is said.
        ("<a>", "Content-Type: text/plain\r\n", 200),
    ] {
        let before = asked.load(Ordering::Relaxed);
        assert_eq!(post(&bus, "/services/small", body, kind).0, status, "{body}");
        assert_eq!(asked.load(Ordering::Relaxed) - before, usize::from(status == 200), "{body}");
        assert_eq!(post(&off, "/services/small", body, kind).0, 200, "{body}");
    }
    // A client without a body has nothing to be read.
    assert_eq!(post(&bus, "/services/small", "", xml).0, 200);
}

#[test]
fn the_offset_of_the_server_moves_the_ports() {
    let port = free_port();
    let offset = i32::from(port) - 8280;
    let settings = format!("[server]\noffset = {offset}\n");
    let path = home("screening-offset", "127.0.0.1:1", "deployment.toml", &settings);
    let place = path.to_str().unwrap();
    let bus = Process::start(&["run", place, "--workers", "1", "--set", "deploy.watch=false"]);
    assert_eq!(bus.http(), format!("127.0.0.1:{port}"));
    assert_eq!(bus.field("admin"), format!("127.0.0.1:{}", i32::from(port) + 9154 - 8280));
    let checked = busbar(&["check", place]);
    let said =
        String::from_utf8_lossy(&checked.stdout).into_owned() + &String::from_utf8_lossy(&checked.stderr);
    assert!(said.contains("`server.offset` is honoured"), "{said}");
    std::fs::write(path.join("conf/deployment.toml"), "[server]\noffset = 60000\n").unwrap();
    let refused = busbar(&["run", place]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("68280 is no port for http"), "{said}");
}
