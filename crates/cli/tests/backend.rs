//! `busbar backend` from outside: the ready line, the services over HTTP, the end on SIGTERM.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use bench::messages::{Variant, order_message};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use support::Process;

fn start(more: &[&str]) -> Process {
    let backend = Process::backend(more);
    assert!(backend.ready.starts_with("busbar backend ready http=127.0.0.1:"), "{}", backend.ready);
    assert!(!backend.http().ends_with(":0"), "{}", backend.ready);
    backend
}

/// Status, head and body of the answer to a request on a connection of its own.
fn ask(
    backend: &Process,
    method: &str,
    path: &str,
    content_type: &str,
    body: &[u8],
) -> (u16, String, Vec<u8>) {
    let mut stream = TcpStream::connect(backend.http()).unwrap();
    let more = format!("Content-Type: {content_type}\r\nConnection: close\r\n");
    support::exchange(&mut stream, method, path, body, &more).unwrap()
}

/// Ends it as an operator would; its exit code.
fn end(mut backend: Process) -> Option<i32> {
    backend.signal("TERM");
    backend.wait()
}

#[test]
fn the_services_answer_over_http_and_sigterm_ends_it() {
    let backend = start(&[]);
    for size in [0, 1, 512, 100 << 10, 1 << 20] {
        let body = vec![0xFF; size];
        let (status, head, echoed) = ask(&backend, "POST", "/echo/anything", "image/png", &body);
        assert_eq!(status, 200, "{head}");
        assert!(echoed == body, "{size} bytes came back as {}", echoed.len());
        assert!(head.to_ascii_lowercase().contains("content-type: image/png"), "{head}");
    }
    let order = order_message(100 << 10, &Variant::default());
    let service = "/services/OrderService";
    for _ in 0..2 {
        let (status, head, echoed) = ask(&backend, "POST", service, "text/xml; charset=UTF-8", &order);
        assert!(status == 200 && echoed == order, "{head}");
        assert!(head.to_ascii_lowercase().contains("orders-accepted: "), "{head}");
        // bad input in between changes nothing
        let (status, _, fault) = ask(&backend, "POST", service, "text/xml", &order[..order.len() / 2]);
        assert_eq!(status, 500, "{}", String::from_utf8_lossy(&fault));
    }
    let quote = "/services/SimpleStockQuoteService";
    let (status, _, body) = ask(&backend, "GET", &format!("{quote}/getQuote?symbol=IBM"), "", b"");
    assert!(status == 200 && String::from_utf8_lossy(&body).contains("IBM Company"));
    let (status, _, body) = ask(&backend, "GET", &format!("{quote}?wsdl"), "", b"");
    let address = format!("http://{}{quote}", backend.http());
    assert!(status == 200 && String::from_utf8_lossy(&body).contains(&address));
    let (status, _, body) = ask(&backend, "POST", quote, "application/xml", b"<placeOrder/>");
    assert!((status, body) == (202, Vec::new()));
    assert_eq!(ask(&backend, "GET", "/nothing", "", b"").0, 404);
    assert_eq!(end(backend), Some(0));
}

#[test]
fn modes_and_delay() {
    let backend = start(&["--mode", "stockquote", "--delay", "50"]);
    let start = Instant::now();
    assert_eq!(ask(&backend, "POST", "/echo", "text/plain", b"x").0, 404);
    assert!(start.elapsed() >= Duration::from_millis(50));
    assert_eq!(end(backend), Some(0));
}

#[test]
fn an_address_in_use_is_said() {
    let backend = start(&[]);
    let output = support::busbar(&["backend", "--listen", backend.http()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains(backend.http()));
}

fn bench(arguments: &[&str]) -> (Option<i32>, String) {
    let busbar =
        std::process::Command::new(env!("CARGO_BIN_EXE_busbar")).arg("bench").args(arguments).output();
    let output = busbar.unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[test]
fn load_over_a_thousand_connections_with_every_answer_verified() {
    let backend = start(&[]);
    let folder = std::env::temp_dir().join(format!("busbar-bench-load-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("a.xml"), order_message(1 << 10, &Variant::default())).unwrap();
    std::fs::write(folder.join("b.xml"), "<n>{{id}} {{uuid}}</n>").unwrap();
    let (folder_name, url) = (folder.display().to_string(), format!("http://{}/echo", backend.http()));
    let common = ["load", &url, "--file", &folder_name, "--unique"];
    let (code, text) = bench(
        &[&common[..], &["--expect", "echo", "--connections", "1000", "--requests", "3000", "--json"]]
            .concat(),
    );
    assert_eq!(code, Some(0), "{text}");
    let found: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((found["right"].as_u64(), found["failed"].as_u64()), (Some(3000), Some(0)), "{text}");

    let more = ["--expect", "contains:IBM", "--rate", "1000", "--requests", "100", "--connections", "10"];
    let (code, text) = bench(&[&common[..], &more].concat());
    assert_eq!(code, Some(1), "every second answer has no order in it: {text}");
    assert!(text.contains("50 x wrong answer: 'IBM' is not in the body: <n>"), "{text}");
    assert!(text.contains("open loop of 1000 requests a second, 10 connections"), "{text}");
    std::fs::remove_dir_all(&folder).unwrap();
    end(backend);
}
