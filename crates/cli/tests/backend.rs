//! `busbar backend` from outside: the ready line, the services over HTTP, the end on SIGTERM.
#![allow(clippy::unwrap_used)] // helpers of tests

use bench::messages::{Variant, order_message};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

struct Running {
    process: Child,
    address: String,
}

impl Running {
    fn start(arguments: &[&str]) -> Running {
        let mut process = Command::new(env!("CARGO_BIN_EXE_busbar"))
            .args(["backend", "--listen", "127.0.0.1:0", "--workers", "2"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split_once("http=").expect(&line).1.split(' ').next().unwrap().to_owned();
        assert!(line.starts_with("busbar backend ready http=127.0.0.1:"), "{line}");
        assert!(!address.ends_with(":0"), "{line}");
        Running { process, address }
    }

    /// Status, head and body of the answer to a request on a connection of its own.
    fn ask(&self, method: &str, path: &str, content_type: &str, body: &[u8]) -> (u16, String, Vec<u8>) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let length =
            if method == "GET" { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let content_type =
            if content_type.is_empty() { String::new() } else { format!("Content-Type: {content_type}\r\n") };
        let address = &self.address;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\n{content_type}{length}Connection: close\r\n\r\n"
        );
        let mut writing = stream.try_clone().unwrap();
        let request = [head.as_bytes(), body].concat();
        let writer = std::thread::spawn(move || drop(writing.write_all(&request)));
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        writer.join().unwrap();
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8(answer[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut body = answer[end + 4..].to_vec();
        if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
            body = unchunk(&body);
        }
        (status, head, body)
    }

    fn end(mut self) -> Option<i32> {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let deadline = Instant::now() + Duration::from_secs(15);
        while Instant::now() < deadline {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("still running 15 s after SIGTERM");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn unchunk(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let line = rest.windows(2).position(|window| window == b"\r\n").unwrap();
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        if size == 0 {
            return body;
        }
        body.extend(&rest[line + 2..line + 2 + size]);
        rest = &rest[line + 2 + size + 2..];
    }
}

#[test]
fn the_services_answer_over_http_and_sigterm_ends_it() {
    let backend = Running::start(&[]);
    for size in [0, 1, 512, 100 << 10, 1 << 20] {
        let body = vec![0xFF; size];
        let (status, head, echoed) = backend.ask("POST", "/echo/anything", "image/png", &body);
        assert_eq!(status, 200, "{head}");
        assert!(echoed == body, "{size} bytes came back as {}", echoed.len());
        assert!(head.to_ascii_lowercase().contains("content-type: image/png"), "{head}");
    }
    let order = order_message(100 << 10, &Variant::default());
    let service = "/services/OrderService";
    for _ in 0..2 {
        let (status, head, echoed) = backend.ask("POST", service, "text/xml; charset=UTF-8", &order);
        assert!(status == 200 && echoed == order, "{head}");
        assert!(head.to_ascii_lowercase().contains("orders-accepted: "), "{head}");
        // bad input in between changes nothing
        let (status, _, fault) = backend.ask("POST", service, "text/xml", &order[..order.len() / 2]);
        assert_eq!(status, 500, "{}", String::from_utf8_lossy(&fault));
    }
    let quote = "/services/SimpleStockQuoteService";
    let (status, _, body) = backend.ask("GET", &format!("{quote}/getQuote?symbol=IBM"), "", b"");
    assert!(status == 200 && String::from_utf8_lossy(&body).contains("IBM Company"));
    let (status, _, body) = backend.ask("GET", &format!("{quote}?wsdl"), "", b"");
    let address = format!("http://{}{quote}", backend.address);
    assert!(status == 200 && String::from_utf8_lossy(&body).contains(&address));
    let (status, _, body) = backend.ask("POST", quote, "application/xml", b"<placeOrder/>");
    assert!((status, body) == (202, Vec::new()));
    assert_eq!(backend.ask("GET", "/nothing", "", b"").0, 404);
    assert_eq!(backend.end(), Some(0));
}

#[test]
fn modes_and_delay() {
    let backend = Running::start(&["--mode", "stockquote", "--delay", "50"]);
    let start = Instant::now();
    assert_eq!(backend.ask("POST", "/echo", "text/plain", b"x").0, 404);
    assert!(start.elapsed() >= Duration::from_millis(50));
    assert_eq!(backend.end(), Some(0));
}

#[test]
fn an_address_in_use_is_said() {
    let backend = Running::start(&[]);
    let output = Command::new(env!("CARGO_BIN_EXE_busbar"))
        .args(["backend", "--listen", &backend.address])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains(&backend.address));
}
