//! Inbound endpoints from outside: their listeners come and go with reloads, and no request is lost.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use support::{Process, ask, busbar, configuration, configure, exchange, free_port, until};

/// An endpoint whose sequence answers with its version.
fn endpoint(name: &str, port: u16, version: usize) -> String {
    format!(
        "<inboundEndpoint name='{name}' protocol='http' sequence='{name}{version}'><parameters><parameter name='inbound.http.port'>{port}</parameter>\
         </parameters></inboundEndpoint><sequence name='{name}{version}'><property name='X-Version' value='{version}' scope='transport'/><respond/></sequence>"
    )
}

/// The version that answers on a port; `None`: nobody listens.
fn version(port: u16) -> Option<String> {
    let (status, head, _) = ask(&format!("127.0.0.1:{port}"), "POST", "/anything?a=b", b"<a/>").ok()?;
    let version =
        head.split_once("X-Version: ").map(|(_, rest)| rest.split("\r\n").next().unwrap().to_owned());
    Some(version.unwrap_or(status.to_string()))
}

fn reload(bus: &Process, path: &std::path::Path, artifacts: &[String], times: usize) {
    configure(path, &artifacts.concat());
    bus.signal("HUP");
    bus.says("reloaded: ", times);
}

/// A listener that was given up closes soon.
fn closes(port: u16) -> bool {
    (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        version(port).is_none()
    })
}

#[test]
fn listeners_come_and_go_with_reloads() {
    let (one, two, taken) = (free_port(), free_port(), TcpListener::bind("127.0.0.1:0").unwrap());
    let busy = taken.local_addr().unwrap().port();
    let path = configuration("inbound-reload", &[endpoint("A", one, 1), endpoint("Busy", busy, 1)].concat());
    let bus = Process::run(&path, &[]);
    assert_eq!(version(one).as_deref(), Some("1"));
    bus.says("the inbound endpoint `Busy` is left out: cannot listen on", 1);
    let (status, _, body) = ask(bus.field("admin"), "GET", "/artifacts/inboundEndpoint/Busy", b"").unwrap();
    assert!(status == 200 && String::from_utf8(body).unwrap().contains("address in use"));
    // Another sequence behind the same port; one more endpoint; the port that was taken is free now.
    // (A program that a test beside this one starts holds it until it has begun.)
    drop(taken);
    until("nobody listens at the port", || TcpStream::connect(("127.0.0.1", busy)).is_err());
    reload(&bus, &path, &[endpoint("A", one, 2), endpoint("B", two, 1), endpoint("Busy", busy, 1)], 1);
    let versions = [one, two, busy].map(version);
    assert_eq!(
        versions,
        ["2", "1", "1"].map(|version_text| Some(version_text.to_owned())),
        "{}",
        bus.stderr()
    );
    // The ports change hands; one is given up.
    reload(&bus, &path, &[endpoint("A", two, 3), endpoint("B", one, 2)], 2);
    assert_eq!([one, two].map(version), ["2", "3"].map(|version_text| Some(version_text.to_owned())));
    assert!(closes(busy));
    // Two of one port: the second is faulty.
    reload(&bus, &path, &[endpoint("A", one, 4), endpoint("B", one, 4)], 3);
    assert_eq!(version(one).as_deref(), Some("4"));
    bus.says(&format!("the port {one} is that of the inbound endpoint `A`"), 1);
    // Switched off and on.
    let act = |action: &str| {
        ask(bus.field("admin"), "POST", &format!("/artifacts/inboundEndpoint/A/{action}"), b"").unwrap().0
    };
    assert_eq!(act("stop"), 200);
    assert_eq!(version(one).as_deref(), Some("503"));
    assert_eq!(act("start"), 200);
    assert_eq!(version(one).as_deref(), Some("4"));
}

#[test]
fn reloads_lose_no_request() {
    let port = free_port();
    let path = configuration("inbound-lossless", &endpoint("A", port, 0));
    let bus = Process::run(&path, &[]);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
                    let mut answers = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let (status, ..) = exchange(&mut stream, "POST", "/", b"<a/>", "").unwrap();
                        assert_eq!(status, 200);
                        answers += 1;
                    }
                    answers
                })
            })
            .collect();
        for number in 1..=15 {
            reload(&bus, &path, &[endpoint(if number % 2 == 0 { "A" } else { "B" }, port, number)], number);
        }
        stop.store(true, Ordering::Relaxed);
        let answers: usize = clients.into_iter().map(|client| client.join().unwrap()).sum();
        assert!(answers > 100, "{answers}");
    });
}

#[test]
fn a_port_that_somebody_else_has_leaves_the_version_before_in_force() {
    let [port, other] = [free_port(), free_port()];
    let path = configuration("inbound-taken", &endpoint("A", port, 1));
    let bus = Process::run(&path, &[]);
    assert_eq!(version(port).as_deref(), Some("1"));
    let taken = std::net::TcpListener::bind(("127.0.0.1", other)).unwrap();
    reload(&bus, &path, &[endpoint("A", other, 2)], 1);
    bus.says("`A` stays in force as it was", 1);
    assert_eq!(version(port).as_deref(), Some("1"));
    // One that was never there is left out, and the others change.
    let more = [endpoint("A", port, 3), endpoint("B", other, 3)];
    reload(&bus, &path, &more, 2);
    assert_eq!(version(port).as_deref(), Some("3"));
    drop(taken);
    // A program that another test begins in this moment has the socket until it runs.
    let mut reloads = 2;
    until("the port is free", || {
        reloads += 1;
        reload(&bus, &path, &more, reloads);
        version(other).as_deref() == Some("3")
    });
}

/// `http.priorities`: requests wait before any flow, those of a higher priority go first, and who finds the queue full is told at once.
#[test]
fn the_admin_address_is_no_port_for_an_endpoint() {
    let port = free_port();
    let path = configuration("inbound-admin", &endpoint("A", port, 1));
    let (path, admin) = (path.to_str().unwrap(), format!("127.0.0.1:{port}"));
    let bus = Process::start(&["run", path, "--http", "127.0.0.1:0", "--admin", &admin, "--workers", "1"]);
    assert_eq!(bus.field("admin"), admin);
    bus.says("it is the admin address", 1);
}

#[test]
fn requests_with_a_priority_go_first() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("request-priorities.xml");
    let text = "<Priority-Configuration xmlns='http://ws.apache.org/ns/synapse'><priority-executor><queues>\
        <queue size='1' priority='10'/><queue size='1' priority='1'/></queues><threads core='1' max='1'/></priority-executor>\n\
        <conditions><condition priority='10'><equal type='header' source='Customer' value='gold'/></condition></conditions></Priority-Configuration>";
    std::fs::write(&file, text).unwrap();
    let backend = Process::backend(&["--delay", "1500"]);
    let proxy = format!(
        "<proxy name='P' transports='http'><target><inSequence><call><endpoint><address uri='http://{}/echo'/></endpoint></call><respond/></inSequence></target></proxy>",
        backend.http()
    );
    let setting = format!("http.priorities={:?}", file.to_str().unwrap());
    let bus = Process::run(&support::configuration("priorities", &proxy), &["--set", &setting]);
    let answered = std::sync::Mutex::new(Vec::new());
    let post = |name: &'static str, more: &str| {
        let mut stream = std::net::TcpStream::connect(bus.http()).unwrap();
        let more = format!("{more}Connection: close\r\n");
        let (status, ..) = support::exchange(&mut stream, "POST", "/services/P", b"<a/>", &more).unwrap();
        answered.lock().unwrap().push((name, status));
    };
    std::thread::scope(|scope| {
        scope.spawn(|| post("first", ""));
        std::thread::sleep(Duration::from_millis(300));
        scope.spawn(|| post("low", ""));
        std::thread::sleep(Duration::from_millis(300));
        // One runs, and one waits.
        let (_, _, page) =
            support::ask(bus.field("admin"), "GET", "/artifacts/priority-executor", b"").unwrap();
        let page: serde_json::Value = serde_json::from_slice(&page).unwrap();
        let priorities = &page["http.priorities"];
        assert_eq!(
            (&priorities["running"], &priorities["queues"][1]["waiting"]),
            (&1.into(), &1.into()),
            "{page}"
        );
        let (_, _, metrics) = support::ask(bus.field("admin"), "GET", "/metrics", b"").unwrap();
        let metrics = String::from_utf8(metrics).unwrap();
        for wanted in [
            "busbar_executor_running{executor=\"http.priorities\"} 1",
            "busbar_executor_waiting{executor=\"http.priorities\",priority=\"1\"} 1",
        ] {
            assert!(metrics.contains(wanted), "{wanted}");
        }
        post("too many", "");
        scope.spawn(|| post("high", "Customer: GOLD\r\n"));
    });
    let answered = answered.into_inner().unwrap();
    assert_eq!(
        answered,
        [("too many", 503), ("first", 200), ("high", 200), ("low", 200)],
        "{}",
        bus.stderr()
    );
    // One that is wrong changes nothing, and is said with its line.
    std::fs::write(&file, text.replace("equal", "equals")).unwrap();
    bus.signal("HUP");
    bus.says("request-priorities.xml:2: there is no condition `equals`", 1);
    assert_eq!(support::ask(bus.http(), "POST", "/services/P", b"<a/>").unwrap().0, 200);
}

/// Key stores of Java as they lie in projects: the certificate is the store's, clients are checked against the other one, and a wrong password leaves the
/// endpoint out.
#[test]
fn key_stores_of_java_are_used() {
    use std::process::Command;
    let root = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("inbound-stores");
    let _ = std::fs::remove_dir_all(&root);
    std::fs::create_dir_all(&root).unwrap();
    let run = |program: &str, arguments: &[&str]| {
        Command::new(program)
            .args(arguments)
            .current_dir(&root)
            .output()
            .is_ok_and(|out| out.status.success())
    };
    let made = |name: &str| {
        let subject = format!("/CN={name}");
        let (key, certificate, store) = (format!("{name}.key"), format!("{name}.pem"), format!("{name}.p12"));
        run(
            "openssl",
            &[
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-keyout",
                &key,
                "-out",
                &certificate,
                "-days",
                "90",
                "-subj",
                &subject,
                "-addext",
                "subjectAltName=DNS:localhost,IP:127.0.0.1",
                // An authority is no client.
                "-addext",
                "basicConstraints=critical,CA:FALSE",
            ],
        ) && run(
            "openssl",
            &[
                "pkcs12",
                "-export",
                "-in",
                &certificate,
                "-inkey",
                &key,
                "-out",
                &store,
                "-passout",
                "pass:secret",
                "-name",
                name,
            ],
        )
    };
    let curl = |port: u16, more: &[&str]| {
        let url = format!("https://localhost:{port}/");
        let mut all = vec!["-s", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "20"];
        all.extend(more);
        all.push(&url);
        let out = Command::new("curl").args(all).current_dir(&root).output().unwrap();
        String::from_utf8(out.stdout).unwrap()
    };
    if !run("curl", &["--version"]) || !made("server") || !made("client") {
        let needed = std::env::var("CI").as_deref() == Ok("true");
        assert!(!needed, "openssl and curl are needed");
        return println!("skipped: openssl or curl is not installed");
    }
    let mut stores = vec![("PKCS12", "server.p12")];
    let of_java = [
        "-importkeystore",
        "-srckeystore",
        "server.p12",
        "-srcstoretype",
        "PKCS12",
        "-srcstorepass",
        "secret",
        "-destkeystore",
        "server.jks",
        "-deststoretype",
        "JKS",
        "-deststorepass",
        "secret",
        "-noprompt",
    ];
    if run("keytool", &of_java) {
        stores.push(("JKS", "server.jks"));
    } else {
        println!("skipped: keytool is not installed");
    }
    for (kind, file) in stores {
        let (plain, checked, wrong) = (free_port(), free_port(), free_port());
        let keys = |password: &str| {
            format!(
                "<parameter name='keystore'><KeyStore><Location>{file}</Location><Type>{kind}</Type><Password>{password}</Password>\
                 <KeyPassword>{password}</KeyPassword></KeyStore></parameter>"
            )
        };
        let one = |name: &str, port: u16, parameters: &str| {
            format!(
                "<inboundEndpoint xmlns='http://ws.apache.org/ns/synapse' name='{name}' protocol='https' sequence='S'><parameters>\
                 <parameter name='inbound.http.port'>{port}</parameter>{parameters}</parameters></inboundEndpoint>"
            )
        };
        let trust = "<parameter name='truststore'><TrustStore><Location>client.p12</Location><Type>PKCS12</Type><Password>secret</Password></TrustStore></parameter>\
                     <parameter name='SSLVerifyClient'>require</parameter>";
        let text = [
            one("Plain", plain, &keys("secret")),
            one("Checked", checked, &[keys("secret"), trust.to_owned()].concat()),
            one("Wrong", wrong, &keys("wrong")),
            "<sequence name='S'><respond/></sequence>".to_owned(),
        ]
        .concat();
        let path = root.join("synapse.xml");
        configure(&path, &text);
        let bus = Process::run(&path, &[]);
        assert_eq!(curl(plain, &["--cacert", "server.pem"]), "200", "{kind}: {}", bus.stderr());
        assert_eq!(curl(plain, &["--cacert", "client.pem"]), "000", "{kind}: it is another certificate");
        assert_eq!(curl(checked, &["--cacert", "server.pem"]), "000", "{kind}: nobody without a certificate");
        let shown = ["--cacert", "server.pem", "--cert", "client.pem", "--key", "client.key"];
        assert_eq!(curl(checked, &shown), "200", "{kind}: {}", bus.stderr());
        assert_eq!(curl(wrong, &["-k"]), "000", "{kind}");
        let log = bus.stderr();
        assert!(
            log.contains("`Wrong`") && log.contains("password") && !log.contains("secret<"),
            "{kind}: {log}"
        );
        let checked = String::from_utf8(busbar(&["check", path.to_str().unwrap()]).stdout).unwrap();
        assert!(checked.contains("unusable-certificate"), "{checked}");
    }
}
