//! HTTP/2, WebSockets and proxies from outside: the binary with clients and suites that others wrote.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use support::{Process, configuration, free_port};

/// An HTTP/1.1 backend that takes its time and says what it got.
fn backend(delay: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                while let Some(head) = head(&mut stream) {
                    let lower = head.to_ascii_lowercase();
                    let length = lower
                        .split_once("content-length: ")
                        .map_or("0", |(_, rest)| rest.lines().next().unwrap());
                    let mut body = vec![0; length.trim().parse().unwrap()];
                    stream.read_exact(&mut body).unwrap();
                    if lower.contains("transfer-encoding: chunked") {
                        let mut byte = [0];
                        while !body.ends_with(b"0\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) > 0 {
                            body.push(byte[0]);
                        }
                    }
                    std::thread::sleep(delay);
                    let first = head.lines().next().unwrap();
                    let to_head = if first.starts_with("HEAD ") { "" } else { first };
                    let response = format!(
                        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{to_head}",
                        first.len()
                    );
                    if stream.write_all(response.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

fn head(stream: &mut TcpStream) -> Option<String> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    String::from_utf8(head).ok()
}

fn proxy(name: &str, endpoint: &str) -> String {
    format!(
        "<proxy name='{name}' transports='http https'><target><endpoint>{endpoint}</endpoint><outSequence><send/></outSequence></target></proxy>"
    )
}

const ECHO: &str =
    "<proxy name='Echo' transports='http https'><target><inSequence><respond/></inSequence></target></proxy>";

/// Says what is left out; where everything has to be there, that is a failure.
fn skipped(why: &str) {
    println!("skipped: {why}");
    let needed = std::env::var_os("CI").is_some() && std::env::var_os("BUSBAR_SERVICES_ABSENT").is_none();
    assert!(!needed, "{why}");
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|out| out.status.success())
}

/// h2spec, in the path or as `tests/services/h2spec` has built it.
fn h2spec() -> Option<PathBuf> {
    if is_there("h2spec") {
        return Some("h2spec".into());
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let built = Command::new(root.join("tests/services/h2spec")).output().ok()?;
    let path = String::from_utf8(built.stdout).ok()?;
    built.status.success().then(|| path.trim().into())
}

/// The suite passes, but for what the ledger says; a case that changes either way fails this.
#[test]
fn h2spec_passes_but_for_explained_cases() {
    let Some(program) = h2spec() else {
        return skipped("h2spec is absent, and cannot be built (tests/services/h2spec)");
    };
    // Slow enough for many streams to be open at a time.
    let slow = backend(Duration::from_millis(60));
    let address = format!("<address uri='http://{slow}/'/>");
    let bus = Process::run(&configuration("h2spec", &proxy("Slow", &address)), &[]);
    let port = bus.http().rsplit_once(':').unwrap().1;
    let arguments = ["-h", "127.0.0.1", "-p", port, "-P", "/services/Slow", "--timeout", "5"];
    let out = Command::new(program).args(arguments).output().unwrap();
    let output = String::from_utf8_lossy(&out.stdout).into_owned();
    let summary = output.lines().rev().find(|line| line.contains(" tests, ")).unwrap_or_default().to_owned();
    let passed = summary.split(", ").find_map(|part| part.strip_suffix(" passed")).unwrap_or("0").to_owned();
    let failures = output.split_once("Failures:").map_or("", |(_, rest)| rest);
    let mut now: Vec<&str> =
        failures.lines().map(str::trim).filter_map(|line| line.strip_prefix("× ")).collect();
    now.sort_unstable();
    let ledger = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ledger/h2spec.txt");
    let ledger = std::fs::read_to_string(ledger).unwrap();
    let mut expected: Vec<&str> = ledger
        .lines()
        .filter(|line| !line.starts_with('#') && line.contains(" | "))
        .filter_map(|line| line.split(" | ").next())
        .collect();
    expected.sort_unstable();
    let wanted = ledger.lines().find_map(|line| line.strip_suffix(" passed")).unwrap();
    assert_eq!((now, passed.as_str()), (expected, wanted), "{failures}\n{summary}\n{}", bus.stderr());
}

/// Where only WebSockets are opened, HTTP/2 is not offered: who could do both opens one.
#[test]
fn ports_of_websockets_speak_http1() {
    if !is_there("curl") {
        return skipped("curl is not installed");
    }
    let ports = [("ws", free_port()), ("wss", free_port()), ("https", free_port()), ("http", free_port())];
    let endpoints: String = ports
        .iter()
        .map(|(protocol, port)| {
            let name = if protocol.starts_with("ws") { "inbound.ws.port" } else { "inbound.http.port" };
            format!(
                "<inboundEndpoint name='{protocol}' protocol='{protocol}' sequence='S'><parameters><parameter name='{name}'>{port}</parameter></parameters></inboundEndpoint>"
            )
        })
        .collect();
    let path = configuration("h2-ws", &format!("<sequence name='S'><respond/></sequence>{endpoints}"));
    let bus = Process::run(&path, &[]);
    let asked = |protocol: &str, version: &str| {
        let (_, port) = ports.iter().find(|entry| entry.0 == protocol).unwrap();
        let scheme = if matches!(protocol, "wss" | "https") { "https" } else { "http" };
        let url = format!("{scheme}://127.0.0.1:{port}/x");
        let out = Command::new("curl")
            .args(["-s", "-k", "-o", "/dev/null", "-w", "%{http_version} %{http_code}", version, &url])
            .output()
            .unwrap();
        String::from_utf8(out.stdout).unwrap()
    };
    // What is no handshake is told so (426).
    assert_eq!(asked("wss", "--http2"), "1.1 426", "{}", bus.stderr());
    assert_eq!(asked("https", "--http2"), "2 200");
    assert_eq!(asked("http", "--http2-prior-knowledge"), "2 200");
    assert!(
        !asked("ws", "--http2-prior-knowledge").starts_with("2 2"),
        "{}",
        asked("ws", "--http2-prior-knowledge")
    );
    assert_eq!(asked("ws", "--http1.1"), "1.1 426");
    // One that becomes another is opened anew.
    let other = endpoints
        .replace("protocol='wss'", "protocol='https'")
        .replace("inbound.ws.port", "inbound.http.port");
    let other = other.replace("name='ws' protocol='ws'", "name='ws' protocol='http'");
    support::configure(&path, &format!("<sequence name='S'><respond/></sequence>{other}"));
    bus.signal("HUP");
    let deadline = Instant::now() + Duration::from_secs(30);
    while asked("wss", "--http2") != "2 200" {
        assert!(Instant::now() < deadline, "{}", bus.stderr());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn h2load_and_curl_run_without_error() {
    let bus = Process::run(&configuration("h2load", ECHO), &["--https", "127.0.0.1:0"]);
    let url = format!("http://{}/services/Echo", bus.http());
    let body = Path::new(env!("CARGO_TARGET_TMPDIR")).join("h2load.body");
    std::fs::write(&body, vec![b'x'; 20_000]).unwrap();
    if is_there("h2load") {
        // A thousand streams at a time.
        let arguments = [
            "-n",
            "20000",
            "-c",
            "10",
            "-m",
            "100",
            "-d",
            body.to_str().unwrap(),
            "-H",
            "content-type: text/plain",
            &url,
        ];
        let out = Command::new("h2load").args(arguments).output().unwrap();
        let output = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(output.contains("20000 succeeded, 0 failed, 0 errored, 0 timeout"), "{output}");
        assert!(output.contains("20000 2xx"), "{output}");
    } else {
        skipped("h2load is absent (nghttp2-client)");
    }
    let has_http2 = Command::new("curl")
        .arg("--version")
        .output()
        .is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains("HTTP2"));
    if !has_http2 {
        return skipped("curl with HTTP/2 is absent");
    }
    let secure = format!("https://{}/services/Echo", bus.field("https"));
    for (how, url, version) in
        [("--http2-prior-knowledge", &url, "2"), ("--http2", &secure, "2"), ("--http1.1", &secure, "1.1")]
    {
        let data = format!("@{}", body.display());
        let arguments = [
            "-s",
            "-k",
            how,
            "-o",
            "-",
            "-w",
            "%{http_version} %{http_code}",
            "-H",
            "Content-Type: text/plain",
            "--data-binary",
            &data,
            url,
        ];
        let out = Command::new("curl").args(arguments).output().unwrap();
        let output = String::from_utf8_lossy(&out.stdout).into_owned();
        assert_eq!(output.trim_start_matches('x'), format!("{version} 200"), "{how} {url}");
        assert_eq!(output.len() - output.trim_start_matches('x').len(), 20_000);
    }
}

/// An answer that comes before the body was read reaches a client that still sends it, in both versions.
#[test]
fn an_answer_before_the_body_reaches_curl() {
    let reads = "<proxy name='Reads' transports='http'><target><inSequence><log level='full'/><respond/></inSequence></target></proxy>\
        <proxy name='Fault' transports='http'><target><inSequence><log level='full'/><respond/></inSequence><faultSequence><payloadFactory media-type='text'><format>too large</format></payloadFactory><respond/></faultSequence></target></proxy>";
    let bus = Process::run(&configuration("http2-early", reads), &["--set", "limits.body=100k"]);
    let body = Path::new(env!("CARGO_TARGET_TMPDIR")).join("early.body");
    std::fs::write(&body, vec![b'x'; 400_000]).unwrap();
    let version = Command::new("curl").arg("--version").output();
    if !version.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains("HTTP2")) {
        return skipped("curl with HTTP/2 is absent");
    }
    for how in ["--http2-prior-knowledge", "--http1.1"] {
        for (path, wanted) in [("services/Reads", "413"), ("nobody", "404")] {
            for _ in 0..10 {
                let (data, url) = (format!("@{}", body.display()), format!("http://{}/{path}", bus.http()));
                let mut curl = Command::new("curl");
                curl.args(["-s", how, "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "20"]);
                let out = curl
                    .args(["-H", "Content-Type: text/xml", "--data-binary", &data, &url])
                    .output()
                    .unwrap();
                let output = String::from_utf8_lossy(&out.stdout).into_owned();
                assert_eq!((out.status.code(), output.as_str()), (Some(0), wanted), "{how} {path}");
            }
        }
    }
}

/// A backend is spoken to as its endpoint says: `version="2.0"` over http at once, over https if it takes it.
#[test]
fn backends_are_spoken_to_as_their_endpoints_say() {
    let echo = Process::run(
        &configuration("http2-backend", ECHO),
        &["--https", "127.0.0.1:0", "--set", "log.access=common"],
    );
    let old = Process::run(
        &configuration("http1-backend", ECHO),
        &["--https", "127.0.0.1:0", "--set", "log.access=common", "--set", "http.http2=false"],
    );
    let (http, https, other) = (echo.http(), echo.field("https"), old.field("https"));
    let artifacts = [
        proxy("Prior", &format!("<http uri-template='http://{http}/services/Echo' version='2.0'/>")),
        proxy("Offered", &format!("<http uri-template='https://{https}/services/Echo' version='2.0'/>")),
        proxy("Declined", &format!("<http uri-template='https://{other}/services/Echo' version='2.0'/>")),
        proxy("Plain", &format!("<address uri='https://{https}/services/Echo'/>")),
    ];
    let path = configuration("http2-sender", &artifacts.concat());
    let settings = path.with_file_name("http2-sender.toml");
    std::fs::write(&settings, "[[profile]]\nserver = \"*\"\ninsecure = true\n").unwrap();
    let bus = Process::run(&path, &["--config", settings.to_str().unwrap()]);
    let body = vec![b'<'; 100_000];
    for name in ["Prior", "Offered", "Declined", "Declined", "Plain"] {
        let (status, _, response) =
            support::ask(bus.http(), "POST", &format!("/services/{name}"), &body).unwrap();
        assert_eq!((status, response.len()), (200, body.len()), "{name}: {}", bus.stderr());
    }
    let metrics = |process: &Process| {
        let (_, _, text) = support::ask(process.field("admin"), "GET", "/metrics", b"").unwrap();
        let text = String::from_utf8(text).unwrap();
        let of = |listener: &str| {
            let name = format!("busbar_listener_http2_connections{{listener=\"{listener}\"}} ");
            text.lines().find_map(|line| line.strip_prefix(&name)).unwrap().parse::<usize>().unwrap()
        };
        (of("http"), of("https"))
    };
    assert!(matches!(metrics(&echo), (1.., 1..)), "{:?}", metrics(&echo));
    assert_eq!(metrics(&old), (0, 0));
}

/// An echo of bytes behind a handshake, for any number of connections.
fn websocket_backend() -> SocketAddr {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
            let listener = socket.listen(4096).unwrap();
            tell.send(listener.local_addr().unwrap()).unwrap();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    let mut piece = vec![0; 1024];
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        match stream.read(&mut piece).await {
                            Ok(n @ 1..) => head.extend_from_slice(&piece[..n]),
                            _ => return,
                        }
                    }
                    let asks = head.windows(18).any(|part| part == b"Upgrade: websocket");
                    let response: &[u8] = match asks {
                        true => b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n",
                        false => b"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n\r\n",
                    };
                    if stream.write_all(response).await.is_err() {
                        return;
                    }
                    while let Ok(n @ 1..) = stream.read(&mut piece).await {
                        if stream.write_all(&piece[..n]).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
    });
    told.recv().unwrap()
}

fn open(address: &str, path: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let asks = format!(
        "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    );
    stream.write_all(asks.as_bytes()).unwrap();
    let head = head(&mut stream).unwrap_or_default();
    (stream, head)
}

fn resident(process: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Ten thousand WebSockets, or as many as descriptors allow: each echoes, and takes little.
#[test]
fn websockets_pass_through() {
    let most = support::descriptors();
    // Client and backend are in this process.
    let count = (most.saturating_sub(1500) / 2).min(10_000);
    if count < 10_000 {
        println!("notice: {count} WebSockets in the place of 10000: the system allows {most} files");
    }
    let back = websocket_backend();
    let port = free_port();
    let artifacts = format!(
        "<api name='Chat' context='/chat'><resource methods='GET' uri-template='/*'><inSequence><send><endpoint><address uri='ws://{back}/'/></endpoint></send></inSequence><outSequence><send/></outSequence></resource></api>\
         <inboundEndpoint name='Chats' protocol='ws' sequence='ToChat'><parameters><parameter name='inbound.ws.port'>{port}</parameter></parameters></inboundEndpoint>\
         <sequence name='ToChat'><send><endpoint><address uri='ws://{back}/'/></endpoint></send></sequence>"
    );
    let mut bus = Process::run(&configuration("websockets", &artifacts), &["--set", "log.access=common"]);
    // Through an inbound endpoint; what is no handshake is said so.
    let inbound = format!("127.0.0.1:{port}");
    assert!(open(&inbound, "/any").1.starts_with("HTTP/1.1 101 "));
    assert_eq!(support::ask(&inbound, "GET", "/any", b"").unwrap().0, 426);
    let before = resident(&bus);
    let mut streams: Vec<TcpStream> = (0..count)
        .map(|n| {
            let (stream, head) = open(bus.http(), "/chat/room");
            assert!(head.starts_with("HTTP/1.1 101 "), "{n}: {head}\n{}", bus.stderr());
            stream
        })
        .collect();
    for round in 0..2_u8 {
        let frame = [0x82, 0x85, 0, 0, 0, 0, b'h', b'e', b'l', b'l', b'0' + round];
        streams.iter_mut().for_each(|stream| stream.write_all(&frame).unwrap());
        for stream in &mut streams {
            let mut got = [0; 11];
            stream.read_exact(&mut got).unwrap();
            assert_eq!(got, frame);
        }
    }
    let each = resident(&bus).saturating_sub(before) * 1024 / count as u64;
    println!("notice: {count} WebSockets take {each} bytes each");
    assert!(each < 16_000, "{each} bytes for each");
    // A stop says so to each, and does not wait.
    bus.signal("TERM");
    let begun = Instant::now();
    for stream in &mut streams {
        let mut got = [0; 4];
        stream.read_exact(&mut got).unwrap();
        assert_eq!(got, [0x88, 2, 0x03, 0xE9]);
    }
    drop(streams);
    assert_eq!(bus.wait(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(20));
}

/// Backends behind a proxy, and those that bypass it.
#[test]
fn proxies_are_used_as_the_settings_say() {
    let (behind, direct) = (backend(Duration::ZERO), backend(Duration::ZERO));
    let artifacts = [
        proxy("Behind", "<address uri='http://backend.example:81/a'/>"),
        proxy("Direct", &format!("<address uri='http://{direct}/b'/>")),
    ];
    let path = configuration("proxies", &artifacts.concat());
    let settings = path.with_file_name("proxies.toml");
    let text = format!(
        "[[proxy]]\nhosts = [\"127.*\"]\n[[proxy]]\naddress = \"{behind}\"\nuser = \"u\"\npassword = \"p\"\n"
    );
    std::fs::write(&settings, text).unwrap();
    let bus = Process::run(&path, &["--config", settings.to_str().unwrap()]);
    for (name, wanted) in
        [("Behind", "POST http://backend.example:81/a HTTP/1.1"), ("Direct", "POST /b HTTP/1.1")]
    {
        let (status, _, response) =
            support::ask(bus.http(), "POST", &format!("/services/{name}"), b"<a/>").unwrap();
        assert_eq!(
            (status, String::from_utf8(response).unwrap().as_str()),
            (200, wanted),
            "{}",
            bus.stderr()
        );
    }
}
