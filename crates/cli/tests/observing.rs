//! Messages in flight from outside: traces, and the wire log.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use serde_json::Value;
use std::time::{Duration, Instant};
use support::{Process, ask, configuration, exchange};

fn json(bus: &Process, method: &str, path: &str) -> (u16, Value) {
    let (status, _, body) = ask(bus.field("admin"), method, path, b"").unwrap();
    (status, serde_json::from_slice(&body).unwrap())
}

fn text(bus: &Process, path: &str) -> String {
    String::from_utf8(ask(bus.field("admin"), "GET", path, b"").unwrap().2).unwrap()
}

/// The newest trace, once it has ended.
fn last(bus: &Process) -> Value {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let (status, trace) = json(bus, "GET", "/traces/last");
        if status == 200 && trace["state"] == "ended" {
            return trace;
        }
        assert!(Instant::now() < deadline, "{trace:#}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn flow(backend: &Process) -> String {
    format!(
        r#"<proxy name="Quote"><target><inSequence>
  <property name="symbol" expression="//symbol"/>
  <filter xpath="$ctx:symbol = 'IBM'">
    <then>
      <payloadFactory media-type="xml"><format><ask password="s3cret">$1</ask></format><args><arg expression="$ctx:symbol"/></args></payloadFactory>
      <call><endpoint name="Stock"><address uri="http://{}/echo?token=t0ken"/></endpoint></call>
    </then>
    <else>
      <call><endpoint name="Dead"><address uri="http://127.0.0.1:1/"/></endpoint></call>
    </else>
  </filter>
  <property name="X-Symbol" expression="$ctx:symbol" scope="transport"/>
  <respond/>
</inSequence></target></proxy>
<proxy name="Other"><target><inSequence><respond/></inSequence></target></proxy>
<api name="Api" context="/api"><resource methods="POST"><inSequence><respond/></inSequence></resource></api>
<api name="Versioned" context="/versioned" version="1.0" version-type="url"><resource methods="POST"><inSequence><respond/></inSequence></resource></api>"#,
        backend.http()
    )
}

const IBM: &[u8] = b"<quote><symbol>IBM</symbol><password>hidden</password></quote>";

#[test]
fn a_trace_shows_each_step_and_what_it_did() {
    let backend = Process::backend(&[]);
    let bus = Process::run(&configuration("trace-steps", &flow(&backend)), &[]);
    // Nobody is observed yet.
    assert_eq!(ask(bus.http(), "POST", "/services/Quote", IBM).unwrap().0, 200);
    assert_eq!(json(&bus, "GET", "/traces").1["messages"].as_array().unwrap().len(), 0);

    let (status, wrong) = json(&bus, "PUT", "/trace/Qoute");
    assert!(status == 404 && wrong["error"].as_str().unwrap().contains("did you mean `Quote`?"), "{wrong}");
    // By the name with which it is listed, and by that without the version.
    for name in ["Versioned:v1.0", "Versioned"] {
        for what in ["trace", "wire", "profile"] {
            assert_eq!(json(&bus, "PUT", &format!("/{what}/{name}")).0, 200, "{what} {name}");
        }
        assert_eq!(ask(bus.http(), "POST", "/versioned/1.0", IBM).unwrap().0, 200);
        let (_, traces) = json(&bus, "GET", "/traces");
        assert_eq!(traces["messages"][0]["service"], "Versioned", "{name}: {traces}");
        assert_eq!(json(&bus, "GET", "/profile").1["requests"], 1, "{name}");
        for what in ["trace", "wire", "profile"] {
            assert_eq!(json(&bus, "DELETE", &format!("/{what}/{name}")).0, 200, "{what} {name}");
        }
        json(&bus, "DELETE", "/traces");
        json(&bus, "DELETE", "/profile");
    }
    assert_eq!(json(&bus, "PUT", "/trace/Versioned:v1.1").0, 404);
    assert_eq!(json(&bus, "PUT", "/trace/Quote"), (200, serde_json::json!({ "traced": ["Quote"] })));
    let mut stream = std::net::TcpStream::connect(bus.http()).unwrap();
    let response =
        exchange(&mut stream, "POST", "/services/Quote", IBM, "Authorization: Bearer s3cret\r\n").unwrap();
    assert_eq!(response.0, 200);
    assert_eq!(ask(bus.http(), "POST", "/services/Other", b"<a/>").unwrap().0, 200);

    let trace = last(&bus);
    let all = trace.to_string();
    assert!(!all.contains("s3cret") && !all.contains("t0ken") && !all.contains("hidden"), "{all}");
    assert_eq!(trace["service"], "Quote", "{trace:#}");
    assert_eq!(trace["answer"]["status"], 200);
    assert_eq!(
        trace["first"]["payload"]["text"],
        "<quote><symbol>IBM</symbol><password>***</password></quote>"
    );
    let events = trace["events"].as_array().unwrap();
    let names: Vec<&str> = events.iter().map(|event| event["step"].as_str().unwrap_or("attempt")).collect();
    assert_eq!(names, ["property", "filter", "payloadFactory", "call", "attempt", "property", "respond"]);
    let change = |event: &Value, name: &str| {
        let changes = event["changes"].as_array().unwrap();
        changes.iter().find(|change| change["name"] == name).cloned().unwrap_or(Value::Null)
    };
    assert_eq!(change(&events[0], "symbol")["after"], "IBM");
    assert!(events[0]["place"].as_str().unwrap().ends_with("trace-steps.xml:2:3"), "{}", events[0]);
    assert!(events[1]["outcome"].as_str().unwrap().starts_with("enters "), "{}", events[1]);
    let (before, after) = (&events[2]["payload_before"]["text"], &events[2]["payload_after"]["text"]);
    assert!(before.as_str().unwrap().contains("<quote>"), "{before}");
    assert!(after.as_str().unwrap().ends_with("password=\"***\">IBM</ask>"), "{after}");
    assert_eq!(events[4]["result"], "200");
    assert_eq!(events[4]["endpoint"], "Stock");
    assert_eq!(events[4]["request"], format!("POST http://{}/echo?token=***", backend.http()));
    assert_eq!(change(&events[5], "X-Symbol")["after"], "IBM");

    let shown = text(&bus, "/traces/last.txt");
    for part in [
        "came with",
        "payloadFactory  ",
        "trace-steps.xml:5:7",
        "endpoint Stock: POST http://",
        "answered 200 after",
    ] {
        assert!(shown.contains(part), "{part}:\n{shown}");
    }
    assert_eq!(json(&bus, "DELETE", "/trace/Quote").1, serde_json::json!({ "traced": [] }));
    let number = trace["number"].as_u64().unwrap();
    assert_eq!(ask(bus.http(), "POST", "/services/Quote", IBM).unwrap().0, 200);
    assert_eq!(last(&bus)["number"], number);
    assert_eq!(json(&bus, "GET", "/traces/9999").0, 404);
    assert_eq!(json(&bus, "DELETE", "/traces").1["messages"].as_array().unwrap().len(), 0);
}

#[test]
fn a_trace_shows_what_failed_and_who_handled_it() {
    let backend = Process::backend(&[]);
    let bus = Process::run(&configuration("trace-fault", &flow(&backend)), &["--trace", "Quote"]);
    let (status, ..) = ask(bus.http(), "POST", "/services/Quote", b"<q><symbol>X</symbol></q>").unwrap();
    assert_eq!(status, 502);
    let trace = last(&bus);
    let events = trace["events"].as_array().unwrap();
    let attempt = events.iter().find(|event| event["endpoint"] == "Dead").unwrap();
    assert!(attempt["result"].as_str().unwrap().starts_with("101503 "), "{attempt}");
    assert_eq!(trace["answer"]["status"], 502);
    // On the command line: the log has it as text.
    bus.says("message 1 of Quote: POST /services/Quote from 127.0.0.1:", 1);
    bus.says("answered 502 after", 1);
}

#[test]
fn artifacts_can_ask_to_be_traced() {
    let artifacts = "<proxy name='P' trace='enable'><target><inSequence><respond/></inSequence></target></proxy>\
        <proxy name='Q'><target><inSequence><property name='a' value='1'/><sequence key='s'/><respond/></inSequence></target></proxy>\
        <sequence name='s' trace='enable'><property name='b' value='2'/></sequence>\
        <api name='A' context='/a' trace='enable'><resource methods='POST'><inSequence><respond/></inSequence></resource></api>\
        <proxy name='R'><target><inSequence><respond/></inSequence></target></proxy>";
    let bus = Process::run(&configuration("trace-artifacts", artifacts), &[]);
    for path in ["/services/P", "/services/Q", "/a", "/services/R"] {
        assert_eq!(ask(bus.http(), "POST", path, b"<a/>").unwrap().0, 200);
    }
    let (_, all) = json(&bus, "GET", "/traces");
    let services: Vec<&str> =
        all["messages"].as_array().unwrap().iter().map(|one| one["service"].as_str().unwrap()).collect();
    assert_eq!(services, ["A", "Q", "P"]);
}

/// What a copy does is told apart from what the others do.
#[test]
fn copies_of_a_message_are_told_apart() {
    let artifacts = "<proxy name='P'><target><inSequence>\
        <clone><target><sequence><property name='n' value='1'/></sequence></target>\
        <target><sequence><property name='n' value='2'/></sequence></target></clone></inSequence></target></proxy>";
    let bus = Process::run(&configuration("trace-copies", artifacts), &["--set", "log.trace=[\"*\"]"]);
    ask(bus.http(), "POST", "/services/P", b"<a/>").unwrap();
    let trace = last(&bus);
    let events = trace["events"].as_array().unwrap();
    let mut copies: Vec<(u64, &str)> = events
        .iter()
        .filter(|event| event["step"] == "property")
        .map(|event| (event["copy"].as_u64().unwrap(), event["changes"][0]["after"].as_str().unwrap()))
        .collect();
    copies.sort();
    assert_eq!(copies.len(), 2, "{trace:#}");
    assert!(copies[0].0 != copies[1].0 && copies.iter().all(|(copy, _)| *copy > 0), "{copies:?}");
}

#[test]
fn a_message_that_waits_can_be_looked_at() {
    let backend = Process::backend(&["--delay", "3000"]);
    let bus =
        Process::run(&configuration("trace-waits", &flow(&backend)), &["--set", "log.trace=[\"Quote\"]"]);
    let address = bus.http().to_owned();
    let asking = std::thread::spawn(move || ask(&address, "POST", "/services/Quote", IBM).unwrap().0);
    let deadline = Instant::now() + Duration::from_secs(2);
    let mut shown = String::new();
    while !shown.contains("call") && Instant::now() < deadline {
        shown = text(&bus, "/traces/last.txt");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(shown.contains("no answer yet after"), "{shown}");
    assert!(shown.contains("calls"), "{shown}");
    let (_, all) = json(&bus, "GET", "/traces");
    assert_eq!(all["messages"][0]["state"], "running");
    assert_eq!(asking.join().unwrap(), 200);
    assert_eq!(last(&bus)["answer"]["status"], 200);
}

#[test]
fn traces_under_load_are_bounded_and_harm_nobody() {
    let backend = Process::backend(&[]);
    let bus = Process::run(&configuration("trace-load", &flow(&backend)), &[]);
    let large = format!("<quote><symbol>IBM</symbol><x>{}</x></quote>", "y".repeat(50_000));
    std::thread::scope(|scope| {
        for client in 0..50 {
            let (bus, large) = (&bus, &large);
            scope.spawn(move || {
                let mut stream = std::net::TcpStream::connect(bus.http()).unwrap();
                for _ in 0..20 {
                    let body = if client % 2 == 0 { large.as_bytes() } else { IBM };
                    assert_eq!(exchange(&mut stream, "POST", "/services/Quote", body, "").unwrap().0, 200);
                }
            });
        }
        for round in 0..20 {
            json(&bus, if round % 2 == 0 { "PUT" } else { "DELETE" }, "/trace/*");
            json(&bus, if round % 3 == 0 { "PUT" } else { "DELETE" }, "/wire/Quote");
            let _ = text(&bus, "/traces/last.txt");
        }
        json(&bus, "PUT", "/trace/Quote");
    });
    assert_eq!(ask(bus.http(), "POST", "/services/Quote", IBM).unwrap().0, 200);
    let (_, all) = json(&bus, "GET", "/traces");
    let kept = all["messages"].as_array().unwrap().len();
    assert!((1..=100).contains(&kept), "{kept}");
    let size: usize =
        (0..kept).map(|at| text(&bus, &format!("/traces/{}", all["messages"][at]["number"])).len()).sum();
    assert!(size < 60 << 20, "{size}");
}

#[test]
fn the_wire_log_shows_heads_and_bodies_without_secrets() {
    let backend = Process::backend(&[]);
    let bus = Process::run(&configuration("wire", &flow(&backend)), &["--set", "log.payload=200"]);
    let mut stream = std::net::TcpStream::connect(bus.http()).unwrap();
    let secret = "Authorization: Bearer s3cret\r\nCookie: a=s3cret\r\n";
    assert_eq!(exchange(&mut stream, "POST", "/services/Quote", IBM, secret).unwrap().0, 200);
    assert!(!bus.stderr().contains("busbar::wire"), "{}", bus.stderr());

    assert_eq!(json(&bus, "PUT", "/wire/Quote"), (200, serde_json::json!({ "wire": ["Quote"] })));
    assert_eq!(json(&bus, "PUT", "/wire/Nobody").0, 404);
    assert_eq!(exchange(&mut stream, "POST", "/services/Quote", IBM, secret).unwrap().0, 200);
    bus.says("to client | HTTP/1.1 200 OK\\r\\n", 1);
    let log = bus.stderr();
    for part in [
        "from client | POST /services/Quote HTTP/1.1\\r\\n",
        "Authorization: ***",
        "Cookie: ***",
        "to backend | POST http://",
        "from backend | HTTP/1.1 200 OK\\r\\n",
        "<password>***</password>",
        "service=Quote",
        "message_id=urn:uuid:",
    ] {
        assert!(log.contains(part), "{part}:\n{log}");
    }
    assert!(!log.contains("s3cret") && !log.contains("t0ken"), "{log}");
    json(&bus, "DELETE", "/wire/Quote");
    let before = bus.stderr().matches("busbar::wire").count();

    // A large body is shown in part, and arrives whole.
    assert_eq!(json(&bus, "PUT", "/wire/Other").0, 200);
    let large = vec![b'x'; 300_000];
    let response =
        exchange(&mut stream, "POST", "/services/Other", &large, "Content-Type: text/plain\r\n").unwrap();
    assert_eq!((response.0, response.2.len()), (200, large.len()));
    bus.says("more bytes", 1);
    bus.says("busbar::wire", before + 1);
    assert!(bus.stderr().lines().all(|line| line.len() < 4000));
}

#[test]
fn a_service_that_does_not_exist_cannot_be_traced() {
    let proxy = "<proxy name='Quote'><target><inSequence><respond/></inSequence></target></proxy>";
    let path = configuration("trace-nobody", proxy);
    let output = support::busbar(&[
        "run",
        path.to_str().unwrap(),
        "--http",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--trace",
        "Qoute",
    ]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && stderr.contains("did you mean `Quote`?"), "{stderr}");
}
