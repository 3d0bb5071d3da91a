//! Backends from outside: health checks of endpoints, and the TLS profiles that they are reached with.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use support::{Process, ask, configuration, configure, until};

/// A backend that answers messages with its name, and says how it is at `/health`.
struct Backend {
    address: SocketAddr,
    well: Arc<AtomicBool>,
    /// How often it was asked for its health.
    checks: Arc<AtomicUsize>,
}

impl Backend {
    fn new(name: &'static str) -> Backend {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (well, checks) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
        let shared = (Arc::clone(&well), Arc::clone(&checks));
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (well, checks) = (Arc::clone(&shared.0), Arc::clone(&shared.1));
                std::thread::spawn(move || {
                    let mut head = String::new();
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    while !head.ends_with("\r\n\r\n")
                        && reader.read_line(&mut head).is_ok_and(|read| read > 0)
                    {}
                    // What is not read when the connection closes would reset it.
                    let lower = head.to_ascii_lowercase();
                    let length =
                        lower.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
                    let _ = reader.read_exact(&mut vec![0; length.unwrap_or(0)]);
                    if head.starts_with("POST /closes ") {
                        return;
                    }
                    let status = if head.starts_with("GET /health?deep=1 HTTP/1.1\r\n") {
                        checks.fetch_add(1, Relaxed);
                        if well.load(Relaxed) { "200 OK" } else { "503 Down" }
                    } else {
                        "200 OK"
                    };
                    let head = format!(
                        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{name}",
                        name.len()
                    );
                    let _ = stream.write_all(head.as_bytes());
                });
            }
        });
        Backend { address, well, checks }
    }

    /// As an endpoint with checks each second, which may take as long as a machine does that has much else to do.
    fn endpoint(&self, name: &str, more: &str) -> String {
        format!(
            "<endpoint name='{name}'><address uri='http://{}/service'/>\
             <property name='health.check.path' value='/health?deep=1'/>\
             <property name='health.check.interval' value='1000'/>\
             <property name='health.check.timeout' value='60000'/>{more}</endpoint>",
            self.address
        )
    }

    /// Waits until it was asked for its health so often.
    fn is_checked(&self, more: usize) {
        let wanted = self.checks.load(Relaxed) + more;
        until("checks", || self.checks.load(Relaxed) >= wanted);
    }
}

fn proxy(name: &str, endpoint: &str) -> String {
    format!(
        "<proxy name='{name}' transports='http'><target><inSequence><call>{endpoint}</call><respond/></inSequence>\
         <faultSequence><property name='HTTP_SC' value='599' scope='axis2'/>\
         <property name='X-Code' expression=\"get-property('ERROR_CODE')\" scope='transport'/><respond/></faultSequence></target></proxy>"
    )
}

/// The body that answers; of a fault its code.
fn answer(bus: &Process, service: &str) -> String {
    let (status, head, body) = ask(bus.http(), "POST", &format!("/services/{service}"), b"<a/>").unwrap();
    match head.split_once("X-Code: ") {
        Some((_, code)) if status == 599 => code.split("\r\n").next().unwrap().to_owned(),
        _ => String::from_utf8(body).unwrap(),
    }
}

fn admin(bus: &Process, method: &str, path: &str) -> String {
    let (status, _, body) = ask(bus.field("admin"), method, path, b"").unwrap();
    assert_eq!(status, 200, "{path}");
    String::from_utf8(body).unwrap()
}

fn endpoint(bus: &Process, name: &str) -> Value {
    serde_json::from_str(&admin(bus, "GET", &format!("/artifacts/endpoint/{name}"))).unwrap()
}

#[test]
fn a_backend_that_is_not_well_gets_no_messages_until_it_is() {
    let (a, b) = (Backend::new("a"), Backend::new("b"));
    let artifacts = |more: &str| {
        [
            a.endpoint("A", more),
            b.endpoint("B", ""),
            proxy(
                "Group",
                "<endpoint><loadbalance><endpoint key='A'/><endpoint key='B'/></loadbalance></endpoint>",
            ),
            proxy("Alone", "<endpoint key='A'/>"),
        ]
        .concat()
    };
    let path = configuration("health-checks", &artifacts(""));
    let bus = Process::run(&path, &[]);
    let state = || endpoint(&bus, "A")["state"].as_str().unwrap().to_owned();
    let of_group = || {
        let mut all: Vec<_> = (0..6).map(|_| answer(&bus, "Group")).collect();
        all.sort();
        all.concat()
    };
    a.is_checked(1);
    assert_eq!((of_group(), answer(&bus, "Alone")), ("aaabbb".to_owned(), "a".to_owned()));
    // It is down: the group goes on with the other one, and messages for it alone fault at once.
    a.well.store(false, Relaxed);
    until("A is taken out", || state() == "suspended");
    assert_eq!((of_group(), answer(&bus, "Alone")), ("bbbbbb".to_owned(), "303001".to_owned()));
    a.is_checked(2);
    let address = endpoint(&bus, "A")["addresses"][0].clone();
    let why = "2 health checks in a row have failed: GET /health: status 503";
    assert_eq!(address["cause"]["message"], why, "{address}");
    assert!(address.get("until").is_none(), "{address}");
    assert_eq!(address["health"]["healthy"], false, "{address}");
    assert_eq!(address["health"]["last_failure"], "status 503", "{address}");
    let metrics = admin(&bus, "GET", "/metrics");
    for line in [
        "busbar_health_check_healthy{endpoint=\"A\",address=\"A\"} 0",
        "busbar_health_check_healthy{endpoint=\"B\",address=\"B\"} 1",
        "busbar_endpoint_state{endpoint=\"A\",address=\"A\",state=\"suspended\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    // A reload keeps the states of backends.
    configure(&path, &artifacts("<property name='health.check.failures' value='3'/>"));
    bus.signal("HUP");
    bus.says("reloaded: ", 1);
    assert_eq!((state(), answer(&bus, "Alone")), ("suspended".to_owned(), "303001".to_owned()));
    // It is up again.
    a.well.store(true, Relaxed);
    until("A is back", || state() == "active");
    assert_eq!((of_group(), answer(&bus, "Alone")), ("aaabbb".to_owned(), "a".to_owned()));
    // The log is written by a thread of its own, some time after what it tells.
    let again = "the endpoint gets messages again";
    bus.says(again, 1);
    let lines = |what: &str| bus.stderr().matches(what).count();
    let out = lines("the endpoint gets no messages any more");
    assert_eq!((out, lines(again)), (1, 1), "{}", bus.stderr());
    // A good check ends a suspension that a failure or an operator began.
    admin(&bus, "POST", "/artifacts/endpoint/A/suspend");
    until("A is active before its 30 s are over", || state() == "active");
    // An endpoint that is off is not checked, and stays off.
    admin(&bus, "POST", "/artifacts/endpoint/A/stop");
    let checks = a.checks.load(Relaxed);
    b.is_checked(3);
    assert!(a.checks.load(Relaxed) <= checks + 1);
    assert_eq!(state(), "off");
    admin(&bus, "POST", "/artifacts/endpoint/A/start");
    a.is_checked(1);
    // Checks end with the endpoint that asks for them, and their results go with them.
    a.well.store(false, Relaxed);
    until("A is taken out again", || state() == "suspended");
    let plain = format!("<endpoint name='A'><address uri='http://{}/service'/></endpoint>", a.address);
    configure(&path, &artifacts("").replace(&a.endpoint("A", ""), &plain));
    bus.signal("HUP");
    bus.says("reloaded: ", 2);
    assert_eq!((state(), answer(&bus, "Alone")), ("active".to_owned(), "a".to_owned()));
    let checks = a.checks.load(Relaxed);
    b.is_checked(2);
    assert!(a.checks.load(Relaxed) <= checks + 1);
}

/// A backend whose messages hang and whose connections are all taken is asked all the same.
#[test]
fn checks_do_not_wait_for_messages_that_hang() {
    let well = Arc::new(AtomicBool::new(true));
    let healthy = Arc::clone(&well);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut hanging = Vec::new();
        for mut stream in listener.incoming().flatten() {
            let mut line = String::new();
            let _ = BufReader::new(stream.try_clone().unwrap()).read_line(&mut line);
            if line.starts_with("GET /health") {
                let status = if healthy.load(Relaxed) { "200 OK" } else { "503 Down" };
                let head = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                let _ = stream.write_all(head.as_bytes());
            } else {
                hanging.push(stream);
            }
        }
    });
    let endpoint_a = format!(
        "<endpoint name='A'><address uri='http://{address}/service'/>\
         <property name='health.check.path' value='/health'/>\
         <property name='health.check.interval' value='1000'/></endpoint>"
    );
    let path =
        configuration("health-checks-full", &[endpoint_a, proxy("Alone", "<endpoint key='A'/>")].concat());
    let bus = Process::run(&path, &["--set", "limits.backend_connections=2"]);
    let health = || endpoint(&bus, "A")["addresses"][0]["health"].clone();
    until("it is checked", || health()["checks"].as_u64() > Some(0));
    let mut clients: Vec<_> = (0..2).map(|_| std::net::TcpStream::connect(bus.http()).unwrap()).collect();
    for client in &mut clients {
        client.write_all(b"GET /services/Alone HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    }
    until("both connections are taken", || {
        admin(&bus, "GET", "/metrics").contains("busbar_pool_connections{state=\"active\"} 2\n")
    });
    well.store(false, Relaxed);
    until("it is taken out", || endpoint(&bus, "A")["state"] == "suspended");
    assert_eq!(health()["last_failure"], "status 503", "{}", health());
    assert_eq!(answer(&bus, "Alone"), "303001");
    well.store(true, Relaxed);
    until("it is back", || endpoint(&bus, "A")["state"] == "active");
}

/// A good check ends what messages have found, even where that only marked the endpoint for a suspension.
#[test]
fn a_timeout_of_an_endpoint_ends_with_a_good_check() {
    let backend = Backend::new("a");
    let mark = "<markForSuspension><errorCodes>101505</errorCodes><retriesBeforeSuspension>5</retriesBeforeSuspension>\
        <retryDelay>600000</retryDelay></markForSuspension>";
    // Its messages go to a path whose connection is closed without an answer.
    let artifacts = [
        backend.endpoint("A", "").replace("/service'/>", &format!("/closes'>{mark}</address>")),
        proxy("Alone", "<endpoint key='A'/>"),
    ];
    let bus = Process::run(&configuration("health-checks-timeout", &artifacts.concat()), &[]);
    assert_eq!(answer(&bus, "Alone"), "101505");
    assert_eq!(endpoint(&bus, "A")["addresses"][0]["cause"]["code"], 101_505);
    until("A is active before its 10 minutes are over", || endpoint(&bus, "A")["state"] == "active");
}

#[test]
fn wrong_properties_of_health_checks_are_found() {
    let address = |name: &str, properties: &str| {
        format!("<endpoint name='{name}'><address uri='http://127.0.0.1:1/'/>{properties}</endpoint>")
    };
    let property =
        |name: &str, value: &str| format!("<property name='health.check.{name}' value='{value}'/>");
    let path = property("path", "/health");
    let all = [
        ("Interval", property("interval", "500"), "`health.check.interval` is wrong"),
        ("Expect", property("expect", "ok"), "`health.check.expect` is wrong"),
        ("Interim", property("expect", "1xx"), "`health.check.expect` is wrong"),
        ("Method", property("method", "POST"), "`health.check.method` is wrong"),
        ("Path", property("path", "health"), "`health.check.path` is wrong"),
        (
            "Name",
            property("intervall", "5000"),
            "there is no property `health.check.intervall` of health checks",
        ),
    ];
    let mut artifacts: String =
        all.iter().map(|(name, properties, _)| address(name, &format!("{path}{properties}"))).collect();
    artifacts += &address("Nothing", &property("interval", "5000"));
    artifacts += &address("Slow", &[path.clone(), property("timeout", "10001")].concat());
    artifacts +=
        &format!("<endpoint name='Group'><loadbalance>{}</loadbalance>{path}</endpoint>", address("M", ""));
    artifacts +=
        &format!("<endpoint name='Dynamic'><http uri-template='http://{{uri.var.h}}/'/>{path}</endpoint>");
    let file = configuration("health-checks-wrong", &artifacts);
    let out = support::busbar(&["check", file.to_str().unwrap()]);
    let output = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    let more = [
        "`health.check.path` says what is asked for",
        "a health check may take 10001 ms, longer than the 10000 ms from one to the next",
        "it has no address of its own",
        "only fixed http and https addresses are",
    ];
    for wanted in all.iter().map(|(_, _, wanted)| *wanted).chain(more) {
        assert!(output.contains(wanted), "{wanted}\n{output}");
    }
}

/// A certificate for localhost and its key, as files.
fn certificate(name: &str) -> (PathBuf, PathBuf) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let path = |ending: &str| Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.{ending}"));
    std::fs::write(path("pem"), made.cert.pem()).unwrap();
    std::fs::write(path("key"), made.signing_key.serialize_pem()).unwrap();
    (path("pem"), path("key"))
}

/// Each backend is trusted, and shown a certificate, as its own profile says: `host:port` wins over `host`.
#[test]
fn each_backend_is_reached_with_its_own_tls_profile() {
    let echo = "<proxy name='Echo' transports='http https'><target><inSequence><respond/></inSequence></target></proxy>";
    let (client, stranger) = (certificate("profile-client"), certificate("profile-stranger"));
    let backend = |name: &str, more: &str| {
        let (pem, key) = certificate(name);
        let settings = pem.with_extension("toml");
        let text = format!("[tls]\ncertificate = '{}'\nkey = '{}'\n{more}", pem.display(), key.display());
        std::fs::write(&settings, text).unwrap();
        let arguments = ["--https", "127.0.0.1:0", "--config", settings.to_str().unwrap()];
        let bus = Process::run(&configuration(name, echo), &arguments);
        let port = bus.field("https").rsplit_once(':').unwrap().1.to_owned();
        (bus, port, pem)
    };
    let plain = backend("profile-plain", "");
    let roots = format!("client_verify = 'require'\nclient_roots = '{}'\n", client.0.display());
    let strict = backend("profile-strict", &roots);
    let refusing = backend("profile-refusing", &roots);
    let (_, plain_port, plain_pem) = &plain;
    let (_, strict_port, strict_pem) = &strict;
    let (_, refusing_port, refusing_pem) = &refusing;
    let profile = |server: &str, roots: &Path, more: &str| {
        format!("[[profile]]\nserver = '{server}'\nroots = '{}'\n{more}", roots.display())
    };
    let shows = |(pem, key): &(PathBuf, PathBuf)| {
        format!("certificate = '{}'\nkey = '{}'\n", pem.display(), key.display())
    };
    let settings = [
        // For all other ports of the host; the last one needs its name said.
        profile("localhost", plain_pem, ""),
        profile(&format!("localhost:{strict_port}"), strict_pem, &shows(&client)),
        profile(&format!("localhost:{refusing_port}"), refusing_pem, &shows(&stranger)),
        profile("127.0.0.1", plain_pem, "server_name = 'localhost'\n"),
    ];
    let file = plain_pem.with_file_name("profile-sender.toml");
    std::fs::write(&file, settings.concat()).unwrap();
    let to = |name: &str, host: &str, port: &str| {
        proxy(name, &format!("<endpoint><address uri='https://{host}:{port}/services/Echo'/></endpoint>"))
    };
    let artifacts = [
        to("Plain", "localhost", plain_port),
        to("Strict", "localhost", strict_port),
        // The wrong certificate is shown.
        to("Refusing", "localhost", refusing_port),
        to("Named", "127.0.0.1", plain_port),
        // Its certificate is not among those that the profile trusts.
        to("Unknown", "127.0.0.1", strict_port),
    ];
    let path = configuration("profile-sender", &artifacts.concat());
    let bus = Process::run(&path, &["--config", file.to_str().unwrap()]);
    for name in ["Plain", "Strict", "Named"] {
        assert_eq!(answer(&bus, name), "<a/>", "{name}: {}", bus.stderr());
    }
    for name in ["Refusing", "Unknown"] {
        let code = answer(&bus, name);
        assert!(code.starts_with("1015"), "{name}: {code}: {}", bus.stderr());
    }
}

/// A body that is relayed is given away with the request. A fault handler that passes the message on has it all the same.
#[test]
fn a_message_that_is_sent_in_vain_is_there_for_handlers_that_pass_it_on() {
    let (closes, echo) = (Backend::new("closes"), Process::backend(&["--mode", "echo"]));
    // It is tried each time.
    let policy = "<suspendOnFailure><errorCodes>999</errorCodes></suspendOnFailure><markForSuspension><errorCodes>998</errorCodes></markForSuspension>";
    let endpoint =
        |path: &str| format!("<endpoint><address uri='http://{path}'>{policy}</address></endpoint>");
    let service = |name: &str, how: &str, fault: &str| {
        let send = format!("<{how}>{}</{how}>", endpoint(&format!("{}/closes", closes.address)));
        format!(
            "<proxy name='{name}'><target><inSequence>{send}</inSequence><outSequence><send/></outSequence><faultSequence>{fault}</faultSequence></target></proxy>"
        )
    };
    let onward = format!("<send>{}</send>", endpoint(&format!("{}/echo", echo.http())));
    let stored = "<store messageStore='letters'/>";
    let letters = format!(
        "<messageStore name='letters'/><sequence name='letter'><log level='custom'><property name='letter' expression='string-length(//b)'/></log></sequence>\
         <messageProcessor name='p' class='org.apache.synapse.message.processor.impl.sampler.SamplingProcessor' messageStore='letters'>\
         <parameter name='interval'>10</parameter><parameter name='sequence'>letter</parameter></messageProcessor>\
         <sequence name='onward'>{onward}</sequence><sequence name='keep'>{stored}</sequence>\
         <template name='template'><sequence>{onward}</sequence></template>"
    );
    // `onError` of a group that tries no other member.
    let group = format!(
        "<endpoint onError='onward'><loadbalance failover='false'>{}</loadbalance></endpoint>",
        endpoint(&format!("{}/closes", closes.address))
    );
    let group = format!(
        "<proxy name='Group'><target><inSequence><send>{group}</send></inSequence><outSequence><send/></outSequence></target></proxy>"
    );
    let services = [
        group,
        service("Sent", "send", &onward),
        service("Called", "call", &onward),
        service("Inside", "send", "<filter xpath='true()'><then><sequence key='onward'/></then></filter>"),
        service("Stored", "send", "<sequence key='keep'/>"),
        service("Template", "send", "<call-template target='template'/>"),
        service("Dynamic", "send", "<sequence key=\"{concat('on', 'ward')}\"/>"),
        service(
            "Addressed",
            "send",
            &format!("<header name='To' value='http://{}/echo'/><send/>", echo.http()),
        ),
        // What was taken of the message goes on with another one.
        service(
            "Taken",
            "send",
            &format!(
                "<property name='b' expression='string(//b)'/><payloadFactory><format><a xmlns=''><b>$1</b></a></format>\
                 <args><arg expression='$ctx:b'/></args></payloadFactory>{onward}"
            ),
        ),
        // What is in the place of the message needs none of it.
        service(
            "Other",
            "send",
            &format!("<payloadFactory><format><other xmlns=''/></format><args/></payloadFactory>{onward}"),
        ),
    ];
    let process = Process::run(&configuration("backends-in-vain", &(letters + &services.concat())), &[]);
    let small = format!("<a><b>{}</b></a>", "x".repeat(100));
    let large = format!("<a><b>{}</b></a>", "x".repeat(300_000));
    for body in [&small, &large] {
        for name in ["Sent", "Called", "Inside", "Group", "Template", "Dynamic", "Addressed", "Taken"] {
            let (status, _, echoed) =
                ask(process.http(), "POST", &format!("/services/{name}"), body.as_bytes()).unwrap();
            let echoed = String::from_utf8_lossy(&echoed);
            assert!(
                status == 200 && echoed.contains(&body[3..body.len() - 4]),
                "{name}: {status} {}",
                echoed.len()
            );
        }
        let (status, _, echoed) = ask(process.http(), "POST", "/services/Other", body.as_bytes()).unwrap();
        assert!(status == 200 && String::from_utf8_lossy(&echoed).contains("<other"), "{status}");
        ask(process.http(), "POST", "/services/Stored", body.as_bytes()).unwrap();
    }
    until("both letters are whole", || {
        let log = process.stderr();
        log.contains("letter = 300000") && log.contains("letter = 100")
    });
}

/// What is larger than a flow may hold is relayed all the same, and no message without its body takes its place.
#[test]
fn nothing_empty_is_stored_in_the_place_of_a_body_that_was_given_away() {
    let closes = Backend::new("closes");
    let service = format!(
        "<proxy name='P'><target><inSequence><send><endpoint><address uri='http://{}/closes'/></endpoint></send></inSequence>\
         <faultSequence><store messageStore='letters'/><log level='custom'><property name='kept' value='1'/></log></faultSequence></target></proxy><messageStore name='letters'/>",
        closes.address
    );
    let process =
        Process::run(&configuration("backends-given-away", &service), &["--set", "limits.body=100k"]);
    let body = format!("<a><b>{}</b></a>", "x".repeat(300_000));
    let (status, ..) = ask(process.http(), "POST", "/services/P", body.as_bytes()).unwrap();
    assert!(status >= 500, "{status}");
    until("the log tells why nothing is kept", || {
        process.stderr().contains("streamed to an endpoint before and is gone")
    });
    assert!(!process.stderr().contains("kept = 1"), "{}", process.stderr());
}
