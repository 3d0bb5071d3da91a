//! `busbar run` from outside: the ready line, signals, what stops it from starting.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use support::{Process, ask, busbar, configuration, configure, exchange};

/// A proxy that answers itself, with a header of its version.
fn version(version: usize) -> String {
    format!(
        "<proxy name='P'><target><inSequence><property name='X-Version' value='{version}' scope='transport'/>\
         <respond/></inSequence></target></proxy>"
    )
}

/// A proxy that relays to a backend.
fn relay(backend: &Process) -> String {
    let address = backend.http();
    format!(
        "<proxy name='P'><target><endpoint><address uri='http://{address}/echo'/></endpoint>\
         <outSequence><send/></outSequence></target></proxy>"
    )
}

#[test]
fn the_version_names_commit_and_profile() {
    let out = support::busbar(&["--version"]);
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.starts_with(concat!("busbar ", env!("CARGO_PKG_VERSION"), " (")), "{text}");
    assert!(text.trim_end().ends_with(')') && text.contains("profile "), "{text}");
}

#[test]
fn the_ready_line_says_where_it_serves() {
    let mut bus = Process::run(&configuration("run-ready", &version(1)), &[]);
    assert!(bus.ready.starts_with("busbar ready http=127.0.0.1:"), "{}", bus.ready);
    assert!(bus.ready.contains(" https=off admin=127.0.0.1:"), "{}", bus.ready);
    assert!(bus.ready.contains(" artifacts=1 in ") && bus.ready.ends_with(" ms\n"), "{}", bus.ready);
    assert!(!bus.http().ends_with(":0"));
    let (status, head, body) = ask(bus.http(), "POST", "/services/P", b"<a/>").unwrap();
    assert_eq!((status, body.as_slice()), (200, &b"<a/>"[..]), "{head}");
    assert!(head.contains("X-Version: 1\r\n"), "{head}");
    bus.signal("TERM");
    assert_eq!(bus.wait(), Some(0));
}

/// Not one, also not among the first pages that the allocator touched. (Where the system gives them unasked, those may be.)
#[test]
#[cfg(target_os = "linux")]
fn a_bus_has_no_huge_pages() {
    if std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")
        .is_ok_and(|enabled| enabled.contains("[always]"))
    {
        eprintln!("notice: this system gives huge pages unasked: not tested that a bus asks for none");
        return;
    }
    let bus = Process::run(&configuration("run-pages", &version(1)), &[]);
    let maps = std::fs::read_to_string(format!("/proc/{}/smaps", bus.id())).unwrap();
    let huge: Vec<_> = maps.lines().filter(|line| line.starts_with("AnonHugePages:")).collect();
    assert!(!huge.is_empty() && huge.iter().all(|line| line.ends_with(" 0 kB")), "{huge:?}");
}

#[test]
fn https_has_a_certificate_of_its_own() {
    let bus = Process::run(&configuration("run-https", &version(1)), &["--https", "127.0.0.1:0"]);
    assert!(bus.field("https").starts_with("127.0.0.1:") && !bus.field("https").ends_with(":0"));
}

#[test]
fn sigterm_lets_messages_in_flight_finish() {
    let backend = Process::backend(&["--delay", "800"]);
    let mut bus = Process::run(&configuration("run-drain", &relay(&backend)), &[]);
    let address = bus.http().to_owned();
    let asking = std::thread::spawn(move || ask(&address, "POST", "/services/P", b"<slow/>"));
    std::thread::sleep(Duration::from_millis(300));
    bus.signal("TERM");
    std::thread::sleep(Duration::from_millis(200));
    assert!(ask(bus.http(), "POST", "/services/P", b"<late/>").is_err(), "still accepting");
    let (status, head, body) = asking.join().unwrap().unwrap();
    assert_eq!((status, body.as_slice()), (200, &b"<slow/>"[..]), "{head}");
    assert_eq!(bus.wait(), Some(0));
}

#[test]
fn a_second_sigterm_ends_it_at_once() {
    let backend = Process::backend(&["--delay", "15000"]);
    let mut bus = Process::run(&configuration("run-second", &relay(&backend)), &[]);
    let address = bus.http().to_owned();
    let asking = std::thread::spawn(move || ask(&address, "POST", "/services/P", b"<slow/>"));
    std::thread::sleep(Duration::from_millis(300));
    let began = Instant::now();
    bus.signal("TERM");
    bus.says("draining", 1);
    bus.signal("TERM");
    bus.wait();
    assert!(began.elapsed() < Duration::from_secs(8));
    assert!(asking.join().unwrap().is_err());
}

#[test]
fn sighup_swaps_the_configuration_without_a_failed_request() {
    let path = configuration("run-swap", &version(0));
    let bus = Process::run(&path, &[]);
    let (done, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (bus, done, answered) = (&bus, &done, &answered);
            scope.spawn(move || {
                let mut open = TcpStream::connect(bus.http()).unwrap();
                let mut last = 0;
                while !done.load(Ordering::Relaxed) {
                    let body = b"<load/>";
                    let response = match thread % 2 {
                        0 => exchange(&mut open, "POST", "/services/P", body, ""),
                        _ => ask(bus.http(), "POST", "/services/P", body),
                    };
                    let (status, head, came) = response.expect("an answer");
                    assert_eq!((status, came.as_slice()), (200, &body[..]), "{head}");
                    let version = head.split("X-Version: ").nth(1).unwrap().split("\r\n").next().unwrap();
                    let version: usize = version.parse().unwrap();
                    assert!(version >= last, "{version} after {last}");
                    last = version;
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let swapping = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for number in 1..=20 {
                configure(&path, &version(number));
                bus.signal("HUP");
                bus.says("reloaded: 1 artifact,", number);
            }
        }));
        done.store(true, Ordering::Relaxed);
        swapping.unwrap();
    });
    let (_, head, _) = ask(bus.http(), "POST", "/services/P", b"<a/>").unwrap();
    assert!(head.contains("X-Version: 20\r\n"), "{head}");
    assert!(answered.load(Ordering::Relaxed) > 100);
}

#[test]
fn a_broken_configuration_leaves_the_old_one_serving() {
    let path = configuration("run-broken-reload", &version(1));
    let mut bus = Process::run(&path, &[]);
    let broken = "<proxy name='P'><target><inSequence><sned/></inSequence></target></proxy>";
    for (number, artifacts) in [broken, "<proxy name='P'>"].into_iter().enumerate() {
        configure(&path, artifacts);
        bus.signal("HUP");
        bus.says("1 faulty and still in force as before", number + 1);
        let (status, head, _) = ask(bus.http(), "POST", "/services/P", b"<a/>").unwrap();
        assert!(status == 200 && head.contains("X-Version: 1\r\n"), "{head}");
    }
    bus.says("did you mean `send`?", 1);
    bus.says("run-broken-reload.xml:1:", 1);
    configure(&path, &version(2));
    bus.signal("HUP");
    bus.says("1 changed, 0 new, 0 removed\n", 1);
    let (_, head, _) = ask(bus.http(), "POST", "/services/P", b"<a/>").unwrap();
    assert!(head.contains("X-Version: 2\r\n"), "{head}");
    bus.signal("TERM");
    assert_eq!(bus.wait(), Some(0));
}

#[test]
fn what_stops_it_from_starting() {
    let good = configuration("run-good", &version(1));
    let faulty =
        format!("{}<proxy name='Q'><target><inSequence><sned/></inSequence></target></proxy>", version(1));
    let faulty = configuration("run-faulty", &faulty);
    let nothing = configuration(
        "run-nothing",
        "<proxy name='Q'><target><inSequence><sned/></inSequence></target></proxy>",
    );
    let broken = configuration("run-broken", "\n<proxy name='P'>");
    let binary = Path::new(env!("CARGO_TARGET_TMPDIR")).join("run-binary.xml");
    std::fs::write(&binary, [0xFF, 0x00, 0x01]).unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let free = "127.0.0.1:0";
    let cases: [(&PathBuf, &[&str], &[&str]); 11] = [
        (
            &good,
            &["--http", &taken],
            &["cannot listen on", &taken, "address in use; choose another with --http"],
        ),
        (&good, &["--admin", &taken], &["cannot listen on", &taken]),
        (&good, &["--http", "192.0.2.1:80"], &["this machine has no such address"]),
        (&good, &["--set", "limits.idel=1s"], &["idel"]),
        (&good, &["--config", "/nonexistent.toml"], &["/nonexistent.toml"]),
        (&PathBuf::from("/nonexistent"), &[], &["/nonexistent", "nothing in"]),
        (&PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("no-such.xml"), &[], &["no-such.xml"]),
        (&binary, &[], &["run-binary.xml", "nothing in"]),
        (&broken, &[], &["run-broken.xml:2:", "nothing in"]),
        (&nothing, &[], &["run-nothing.xml:1:", "did you mean `send`?", "nothing in"]),
        (&faulty, &["--strict"], &["run-faulty.xml:1:", "1 error and --strict is given"]),
    ];
    for (path, more, says) in cases {
        let mut arguments = vec!["run", path.to_str().unwrap()];
        for (flag, value) in [("--http", free), ("--admin", free)] {
            if !more.contains(&flag) {
                arguments.extend([flag, value]);
            }
        }
        arguments.extend(more);
        let output = busbar(&arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {stderr}");
        assert!(output.stdout.is_empty());
        for part in says {
            assert!(stderr.contains(part), "{arguments:?} does not say `{part}`: {stderr}");
        }
    }
    // Without --strict the others serve.
    let bus = Process::run(&faulty, &[]);
    assert_eq!(ask(bus.http(), "POST", "/services/P", b"<a/>").unwrap().0, 200);
    bus.says("did you mean `send`?", 1);
}

#[test]
fn large_bodies_go_on_from_a_file() {
    let backend = Process::backend(&[]);
    let to = format!("<endpoint><address uri='http://{}/echo'/></endpoint>", backend.http());
    let branch = "<clone continueParent='true'><target><sequence><drop/></sequence></target></clone>";
    let proxy = |name: &str, steps: &str| {
        format!("<proxy name='{name}'><target><inSequence>{steps}</inSequence></target></proxy>")
    };
    let artifacts = [
        proxy("Copied", &format!("{branch}<call>{to}</call><respond/>")),
        proxy("Returned", &format!("{branch}<respond/>")),
        proxy("Read", &format!("{branch}<log level='full'/><respond/>")),
        proxy("Stored", "<store messageStore='M'/><respond/>"),
        "<messageStore name='M'/>".to_owned(),
    ];
    let path = configuration("run-spill", &artifacts.concat());
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("run-spill");
    std::fs::create_dir_all(&directory).unwrap();
    let set = format!("limits.spill_directory={}", directory.display());
    let spilling = [
        "--set",
        "limits.body=10k",
        "--set",
        "limits.spill=1m",
        "--set",
        "limits.spill_total=2m",
        "--set",
        &set,
    ];
    let large = format!("<a>{}</a>", "0123456789".repeat(50_000)).into_bytes();
    let huge = vec![b'x'; 1_200_000];
    let bus = Process::run(&path, &spilling);
    for (proxy, body, wanted) in [
        ("Copied", &large, 200),
        ("Returned", &large, 200),
        ("Read", &large, 413),
        // What is in the file would not be in the store.
        ("Stored", &large, 413),
        ("Copied", &huge, 413),
        ("Copied", &large, 200),
    ] {
        let (status, head, response) = ask(bus.http(), "POST", &format!("/services/{proxy}"), body).unwrap();
        assert_eq!(status, wanted, "{proxy}: {head}");
        assert!(status != 200 || response == *body, "{proxy}: {} bytes of {}", response.len(), body.len());
    }
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0, "files have no names");
    // The client has done nothing wrong where the directory is gone, or others have the room.
    std::fs::remove_dir(&directory).unwrap();
    assert_eq!(ask(bus.http(), "POST", "/services/Copied", &large).unwrap().0, 503);
    bus.says("the body is too large to be held, and a file in ", 1);
    std::fs::create_dir(&directory).unwrap();
    let mut narrow = spilling;
    narrow[5] = "limits.spill_total=100k";
    let bus = Process::run(&path, &narrow);
    assert_eq!(ask(bus.http(), "POST", "/services/Copied", &large).unwrap().0, 503);
    let bus = Process::run(&path, &spilling[..2]);
    assert_eq!(ask(bus.http(), "POST", "/services/Copied", &large).unwrap().0, 413);
}

/// Of a body in a file the cache knows nothing: no message gets the answer of another one.
#[test]
fn large_bodies_have_answers_of_their_own() {
    let backend = Process::backend(&[]);
    let cached = format!(
        "<proxy name='Cached'><target><inSequence><property name='who' expression=\"get-property('transport','X-Who')\"/>\
         <cache collector='false' timeout='60'><protocol type='HTTP'><methods>POST</methods><headersToExcludeInHash>X-Who</headersToExcludeInHash></protocol></cache>\
         <call><endpoint><address uri='http://{}/echo'/></endpoint></call>\
         <payloadFactory media-type='text'><format>$1</format><args><arg expression=\"get-property('who')\"/></args></payloadFactory>\
         <cache collector='true'/><respond/></inSequence></target></proxy>",
        backend.http()
    );
    let spilling = ["--set", "limits.body=10k", "--set", "limits.spill=1m"];
    let bus = Process::run(&configuration("run-cached", &cached), &spilling);
    let body = |length: usize, inside: &str| format!("<a>{}</a>", inside.repeat(length)).into_bytes();
    // A small body that is the same as before has the answer of before.
    for (who, body, answer) in [
        ("one", body(100, "x"), "one"),
        ("two", body(100, "x"), "one"),
        ("three", body(20_000, "x"), "three"),
        ("four", body(20_000, "y"), "four"),
    ] {
        let mut stream = TcpStream::connect(bus.http()).unwrap();
        let more = format!("Connection: close\r\nX-Who: {who}\r\n");
        let (status, _, said) = exchange(&mut stream, "POST", "/services/Cached", &body, &more).unwrap();
        assert_eq!((status, String::from_utf8(said).unwrap().as_str()), (200, answer), "{}", bus.stderr());
    }
}

#[test]
fn a_flow_may_close_the_connection_of_its_client() {
    let proxy = |name: &str, property: &str| {
        let property = match property {
            "" => String::new(),
            name => format!("<property name='{name}' value='true' scope='axis2'/>"),
        };
        format!("<proxy name='{name}'><target><inSequence>{property}<respond/></inSequence></target></proxy>")
    };
    let artifacts = [proxy("A", ""), proxy("B", "FORCE_CONNECTION_CLOSE"), proxy("C", "NO_KEEPALIVE")];
    let bus = Process::run(&configuration("run-close", &artifacts.concat()), &[]);
    for (name, closes) in [("A", false), ("B", true), ("C", true)] {
        let mut stream = TcpStream::connect(bus.http()).unwrap();
        let (_, head, _) = exchange(&mut stream, "POST", &format!("/services/{name}"), b"<a/>", "").unwrap();
        assert_eq!(head.to_ascii_lowercase().contains("connection: close"), closes, "{name}: {head}");
    }
}

/// A backend that takes one message with 202 and sends the answer to its `ReplyTo`.
fn answers_later() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut bytes, mut room) = (Vec::new(), [0; 4096]);
        while !bytes.windows(9).any(|part| part == b"Envelope>") {
            let count = stream.read(&mut room).unwrap();
            bytes.extend_from_slice(&room[..count]);
        }
        stream.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n").unwrap();
        let message = String::from_utf8(bytes).unwrap();
        let behind =
            |text: &str, tag: &str| text.split_once(tag).unwrap().1.split('<').next().unwrap().to_owned();
        let to = behind(message.split_once("ReplyTo").unwrap().1, "Address>");
        let response = format!(
            "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Header><a:RelatesTo \
             xmlns:a='http://www.w3.org/2005/08/addressing'>{}</a:RelatesTo></s:Header><s:Body><late/></s:Body></s:Envelope>",
            behind(&message, "MessageID>")
        );
        let (host, path) = to.strip_prefix("http://").unwrap().split_once('/').unwrap();
        assert_eq!(ask(host, "POST", &format!("/{path}"), response.as_bytes()).unwrap().0, 202);
    });
    address
}

#[test]
fn answers_on_connections_of_their_own_are_in_the_access_log() {
    let backend = answers_later();
    let artifacts = format!(
        "<proxy name='Front'><target><inSequence><call><endpoint><address uri='http://{backend}/' format='soap11'>\
         <enableAddressing separateListener='true'/></address></endpoint></call><respond/></inSequence></target></proxy>"
    );
    let path = configuration("run-callback", &artifacts);
    let bus = Process::run(&path, &["--set", "log.access=common", "--set", "log.access_to=stderr"]);
    let (status, _, body) = ask(bus.http(), "POST", "/services/Front", b"<a/>").unwrap();
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    assert!(String::from_utf8_lossy(&body).contains("late"));
    // Without the secret behind it.
    bus.says("\"POST /services/busbar-callback/ HTTP/1.1\" 202 ", 1);
    bus.says("\"POST /services/Front HTTP/1.1\" 200 ", 1);
}

/// What completes by its timer is sent, although its client had asked for an early answer: it has one by then.
#[test]
fn what_completes_by_a_timer_is_sent_without_a_client() {
    let backend = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = backend.local_addr().unwrap();
    let (sent, came) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for connection in backend.incoming() {
            let mut line = String::new();
            std::io::BufRead::read_line(&mut std::io::BufReader::new(connection.unwrap()), &mut line)
                .unwrap();
            sent.send(line).unwrap();
        }
    });
    let proxy = |name: &str, property: &str| {
        format!(
            "<proxy name='{name}'><target><inSequence><aggregate><correlateOn expression='true()'/><completeCondition timeout='1'/>\
             <onComplete expression='//i'>{property}<send><endpoint><address uri='http://{address}/{name}'/></endpoint></send></onComplete>\
             </aggregate></inSequence></target></proxy>"
        )
    };
    let one = proxy("One", "<property name='OUT_ONLY' value='true'/>");
    let two = proxy("Two", "<property name='FORCE_SC_ACCEPTED' value='true' scope='axis2'/>");
    let bus = Process::run(&configuration("run-timers", &[one, two].concat()), &[]);
    for name in ["One", "Two"] {
        assert_eq!(ask(bus.http(), "POST", &format!("/services/{name}"), b"<i>1</i>").unwrap().0, 202);
        let line = came.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
        assert!(line.starts_with(&format!("POST /{name} ")), "{line}");
    }
}

/// A handler of its own for 405 says the methods as the built-in answer does.
#[test]
fn a_handler_of_refused_methods_says_which_are_allowed() {
    let api = "<api name='A' context='/a'><resource methods='GET POST'><inSequence><respond/></inSequence></resource></api>\
         <sequence name='_method_not_allowed_handler_'><property name='HTTP_SC' value='405' scope='axis2'/><respond/></sequence>";
    let bus = Process::run(&configuration("run-405", api), &[]);
    let (status, head, _) = ask(bus.http(), "DELETE", "/a", b"").unwrap();
    assert_eq!(status, 405, "{head}");
    assert!(head.contains("\r\nAllow: GET, POST"), "{head}");
}

/// How many messages wait in a store.
#[test]
fn a_store_says_how_many_messages_wait() {
    let store = "<messageStore name='Later'/><proxy name='P'><target><inSequence><store messageStore='Later'/></inSequence></target></proxy>";
    let bus = Process::run(&configuration("run-store", store), &[]);
    for _ in 0..3 {
        assert_eq!(ask(bus.http(), "POST", "/services/P", b"<a/>").unwrap().0, 202);
    }
    let body = |path: &str| String::from_utf8(ask(bus.field("admin"), "GET", path, b"").unwrap().2).unwrap();
    let one = body("/artifacts/messageStore/Later");
    assert!(one.contains("\"messages\": 3") && one.contains("\"state\": \"active\""), "{one}");
    assert!(body("/metrics").contains("busbar_store_messages{store=\"Later\"} 3"));
}

/// Whoever rotates logs while a configuration is read does not end the process.
#[test]
fn a_signal_during_the_start_is_a_reload_after_it() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let entry = format!("<localEntry key='e' src='http://{}/'/>", server.local_addr().unwrap());
    let path = configuration("run-hangup", &entry);
    let name = path.to_str().unwrap().to_owned();
    std::thread::spawn(move || {
        for (number, stream) in server.incoming().flatten().enumerate() {
            if number == 0 {
                // The configuration is being read now.
                let processes = std::fs::read_dir("/proc").unwrap().flatten().filter(|process| {
                    let line = std::fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
                    line.contains("busbar") && line.contains(&name)
                });
                for process in processes {
                    let _ = std::process::Command::new("kill").arg("-HUP").arg(process.file_name()).status();
                }
                std::thread::sleep(Duration::from_millis(200));
            }
            let answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx";
            let _ = (&stream).write_all(answer);
            // Until the client has it.
            let _ = (&stream).read_to_end(&mut Vec::new());
        }
    });
    let bus = Process::run(&path, &[]);
    bus.says("reloaded: ", 1);
}

/// Who closes its sending side behind the request is gone, or waits for the answer, as the settings say.
#[test]
fn a_client_may_close_its_sending_side_where_it_is_allowed() {
    let backend = Process::backend(&["--delay", "400"]);
    let proxy = format!(
        "<proxy name='Slow'><target><endpoint><address uri='http://{}/echo'/></endpoint></target></proxy>",
        backend.http()
    );
    let path = configuration("run-half-close", &proxy);
    for (options, answers) in [(&[][..], false), (&["--set", "http.half_close=true"], true)] {
        let bus = Process::run(&path, options);
        let mut stream = TcpStream::connect(bus.http()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let head = "POST /services/Slow HTTP/1.1\r\nHost: a\r\nContent-Type: text/xml\r\nContent-Length: 4\r\n\r\n<a/>";
        stream.write_all(head.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer.starts_with("HTTP/1.1 200"), answers, "{options:?}: {answer}");
        assert_eq!(answer.ends_with("<a/>"), answers, "{options:?}: {answer}");
    }
}
