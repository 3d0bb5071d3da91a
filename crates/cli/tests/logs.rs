//! Logs of `busbar run` from outside: nobody waits for them, every line has its form, levels change while it runs.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Process, ask, busbar, configuration, configure, exchange};

/// One proxy that fails each time, with a line of some 4 KB, and a healthy one.
fn failing() -> String {
    let long = "x".repeat(4000);
    format!(
        "<proxy name='Bad'><target><inSequence><log level='custom' category='WARN'><property name='l' value='{long}'/></log>\
         <throwError type='{long}' errorMessage='{long}'/><call><endpoint><address uri='http://127.0.0.1:1/'/></endpoint></call></inSequence></target></proxy>\
         <proxy name='Good'><target><inSequence><respond/></inSequence></target></proxy>"
    )
}

/// A bus whose output nobody reads but for the ready line.
struct Unread {
    child: Child,
    http: String,
    admin: String,
    stdout: BufReader<std::process::ChildStdout>,
}

impl Unread {
    fn start(path: &Path, more: &[&str]) -> Unread {
        Unread::run(path, more, |ready, name| {
            let mut fields = ready.split_whitespace().filter_map(|field| field.split_once('='));
            fields.find(|(field, _)| *field == name).unwrap().1.to_owned()
        })
    }

    /// As [`Unread::start`], where the ready line is an object.
    fn start_json(path: &Path, more: &[&str]) -> Unread {
        Unread::run(path, more, |ready, name| {
            let (target, ready) = objects(ready).remove(0);
            assert_eq!((target.as_str(), &ready["message"]), ("busbar::start", &"busbar ready".into()));
            ready[name].as_str().unwrap().to_owned()
        })
    }

    /// Starts it; `field` finds a field of the ready line.
    fn run(path: &Path, more: &[&str], field: impl Fn(&str, &str) -> String) -> Unread {
        let mut child = Command::new(env!("CARGO_BIN_EXE_busbar"))
            .args(["run", path.to_str().unwrap(), "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .args(["--workers", "2"])
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut ready = String::new();
        stdout.read_line(&mut ready).unwrap();
        Unread { http: field(&ready, "http"), admin: field(&ready, "admin"), stdout, child }
    }

    /// Fifty clients ask so many times each, one half of them for what fails; the longest a good answer took.
    fn storm(&self, times: usize) -> Duration {
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..50)
                .map(|client| {
                    scope.spawn(move || {
                        let mut longest = Duration::ZERO;
                        let mut stream = std::net::TcpStream::connect(&self.http).unwrap();
                        for _ in 0..times {
                            let began = Instant::now();
                            let service = if client % 2 == 0 { "/services/Bad" } else { "/services/Good" };
                            let (status, ..) = exchange(&mut stream, "POST", service, b"<a/>", "").unwrap();
                            assert_eq!(status == 200, client % 2 == 1, "{status}");
                            if client % 2 == 1 {
                                longest = longest.max(began.elapsed());
                            }
                        }
                        longest
                    })
                })
                .collect();
            clients.into_iter().map(|client| client.join().unwrap()).max().unwrap()
        })
    }

    /// SIGTERM; how long it took to end, and with what.
    fn end(&mut self) -> (Duration, Option<i32>) {
        let began = Instant::now();
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        while began.elapsed() < Duration::from_secs(30) {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (began.elapsed(), status.code());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("still running after 30 s");
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn metric(admin: &str, name: &str) -> u64 {
    let (_, _, text) = ask(admin, "GET", "/metrics", b"").unwrap();
    let text = String::from_utf8(text).unwrap();
    let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).expect(name);
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// The bus stood still when 64 KB of warnings were in the pipe, and did not end.
#[test]
fn an_unread_stderr_stops_nothing() {
    let path = configuration("logs-unread", &failing());
    let mut bus = Unread::start(&path, &["--set", "limits.drain=3s", "--set", "log.access=common"]);
    let longest = bus.storm(60);
    assert!(longest < Duration::from_secs(5), "{longest:?}");
    assert!(metric(&bus.admin, "busbar_log_dropped_total") > 0);
    // A faulty configuration has something to say, too.
    configure(&path, "<proxy name='Good'><target><inSequence><sned/></inSequence></target></proxy>");
    let (status, ..) = ask(&bus.admin, "POST", "/reload", b"").unwrap();
    assert!(status == 500 || status == 200, "{status}");
    let (took, code) = bus.end();
    assert!(took < Duration::from_secs(8) && code == Some(0), "{took:?} {code:?}");
}

#[test]
fn a_reader_that_comes_late_learns_how_many_lines_are_missing() {
    let path = configuration("logs-late", &failing());
    let mut bus = Unread::start(&path, &[]);
    bus.storm(60);
    let dropped = metric(&bus.admin, "busbar_log_dropped_total");
    let mut stderr = bus.child.stderr.take().unwrap();
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        stderr.read_to_string(&mut text).unwrap();
        text
    });
    let (_, code) = bus.end();
    let text = reading.join().unwrap();
    assert_eq!(code, Some(0));
    let missing: u64 = text
        .lines()
        .filter(|line| line.contains(" missing here"))
        .map(|line| {
            line.split(" WARN busbar ").nth(1).unwrap().split(' ').next().unwrap().parse::<u64>().unwrap()
        })
        .sum();
    assert!(dropped > 0 && missing >= dropped, "{missing} of {dropped}");
    assert!(text.lines().all(|line| line.starts_with("20")), "whole lines only");
    assert!(text.trim_end().lines().last().unwrap().contains("draining"), "the last line is the last event");
}

#[test]
fn an_unread_stdout_costs_lines_of_the_access_log_and_nothing_else() {
    let path = configuration("logs-stdout", &failing());
    let mut bus = Unread::start(&path, &["--set", "log.level=off", "--set", "log.access=%r %{User-Agent}i"]);
    let agent = format!("User-Agent: {}\r\n", "x".repeat(7000));
    let mut stream = std::net::TcpStream::connect(&bus.http).unwrap();
    let began = Instant::now();
    for _ in 0..400 {
        exchange(&mut stream, "POST", "/services/Good", b"<a/>", &agent).unwrap();
    }
    assert!(began.elapsed() < Duration::from_secs(20));
    // 64 KB are in the pipe, 1 MB in the queue, and as much on its way from one to the other.
    assert!(metric(&bus.admin, "busbar_access_log_dropped_total") > 0);
    let (took, code) = bus.end();
    assert!(took < Duration::from_secs(8) && code == Some(0), "{took:?} {code:?}");
    let mut rest = Vec::new();
    bus.stdout.read_to_end(&mut rest).unwrap();
    assert!(rest.starts_with(b"POST /services/Good HTTP/1.1 xxxx"));
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_full_disk_and_a_directory_that_vanished_cost_lines_and_nothing_else() {
    let path = configuration("logs-full", &failing());
    let folder = folder("logs-full");
    let file = folder.join("access.log");
    std::os::unix::fs::symlink("/dev/full", &file).unwrap();
    let to = format!("log.access_to={}", file.display());
    let mut bus = Process::run(&path, &["--set", "log.access=common", "--set", &to]);
    let good = || assert_eq!(ask(bus.http(), "POST", "/services/Good", b"<a/>").unwrap().0, 200);
    (0..20).for_each(|_| good());
    bus.says("lines of the access log are lost cause=\"No space left on device", 1);
    // The directory is gone: the old file stays, and that is said.
    std::fs::remove_dir_all(&folder).unwrap();
    bus.signal("HUP");
    bus.says("the log stays with its old file", 1);
    good();
    // It is back: from the next signal on there are lines.
    std::fs::create_dir_all(&folder).unwrap();
    bus.signal("HUP");
    bus.says("reloaded: ", 2);
    let deadline = Instant::now() + Duration::from_secs(20);
    while std::fs::read_to_string(&file).unwrap_or_default().is_empty() {
        good();
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(50));
    }
    bus.signal("TERM");
    assert_eq!(bus.wait(), Some(0));
}

/// Each line as JSON, with its target.
fn objects(text: &str) -> Vec<(String, serde_json::Value)> {
    let object = |line: &str| {
        let value: serde_json::Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        for name in ["time", "level", "target", "message"] {
            assert!(value[name].is_string(), "{line}");
        }
        (value["target"].as_str().unwrap().to_owned(), value)
    };
    text.lines().map(object).collect()
}

#[test]
fn every_line_is_an_object_with_the_format_json() {
    let artifacts = "<proxy name='P'><target><inSequence><log/><throwError type='T' errorMessage='two\nlines'/></inSequence></target></proxy>\
                     <proxy name='Q'><target inSequence='nowhere'/></proxy>\
                     <proxy name='R'><target><inSequence><sned/></inSequence></target></proxy>";
    let path = configuration("logs-json", artifacts);
    let more =
        ["--set", "log.format=json", "--set", "log.level=debug", "--set", "wso2.synapse.threads.core=20"];
    let mut bus = Unread::start_json(&path, &more);
    let mut stderr = bus.child.stderr.take().unwrap();
    assert!(ask(&bus.http, "POST", "/services/P", b"<a/>").unwrap().0 >= 500);
    let id = bus.child.id().to_string();
    assert!(Command::new("kill").args(["-HUP", &id]).status().unwrap().success());
    assert!(ask(&bus.admin, "POST", "/reload", b"").is_ok());
    bus.end();
    let mut text = String::new();
    stderr.read_to_string(&mut text).unwrap();
    let lines = objects(&text);
    for target in [
        "busbar::settings",
        "busbar::config",
        "busbar::fault",
        "busbar::log",
        "busbar::reload",
        "busbar::start",
    ] {
        assert!(lines.iter().any(|(category, _)| category == target), "no line of {target}:\n{text}");
    }
    let found = lines
        .iter()
        .find(|(category, value)| category == "busbar::config" && value["level"] == "ERROR")
        .unwrap();
    assert!(found.1["place"].as_str().unwrap().contains("logs-json.xml:"), "{}", found.1);
    assert_eq!(found.1["rule"], "unknown-mediator");

    // What keeps it from starting.
    for more in [
        &["--set", "log.format=json", "--set", "limits.idel=1s"][..],
        &["--set", "log.format=json", "--set", "log.level=loud"],
        &["--set", "log.format=json", "--set", "log.level=off", "--strict"],
        &["--set", "log.format=json", "--http", "192.0.2.1:80"],
        &["--set", "log.format=json", "--set", "log.access=%Z"],
    ] {
        let output = busbar(&[&["run", path.to_str().unwrap(), "--admin", "127.0.0.1:0"], more].concat());
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(
            objects(&stderr)
                .iter()
                .any(|(category, value)| category == "busbar::start" && value["level"] == "ERROR"),
            "{stderr}"
        );
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn levels_and_categories_that_do_not_exist_stop_the_start() {
    let path = configuration(
        "logs-levels",
        "<proxy name='P'><target><inSequence><respond/></inSequence></target></proxy>",
    );
    for (level, says) in [
        ("loud", "there is no level `loud`"),
        ("inof", "did you mean `info`?"),
        ("info,busbar::falt=debug", "there is no category `busbar::falt`; did you mean `busbar::fault`?"),
    ] {
        let set = format!("log.level={level}");
        let output = busbar(&["run", path.to_str().unwrap(), "--http", "127.0.0.1:0", "--set", &set]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && stderr.contains(says), "{stderr}");
    }
}

#[test]
fn levels_change_under_load_and_hold_until_the_end() {
    let proxy = "<proxy name='P'><target><inSequence>\
                 <log level='custom' category='DEBUG'><property name='seen' value='yes'/></log><respond/></inSequence></target></proxy>";
    let bus = Process::run(&configuration("logs-change", proxy), &[]);
    let admin = bus.field("admin").to_owned();
    let put = |method: &str, path: &str, body: &[u8]| {
        let (status, _, body) = ask(&admin, method, path, body).unwrap();
        (status, serde_json::from_slice::<serde_json::Value>(&body).unwrap())
    };
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| {
                let mut stream = std::net::TcpStream::connect(bus.http()).unwrap();
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    assert_eq!(exchange(&mut stream, "POST", "/services/P", b"<a/>", "").unwrap().0, 200);
                }
            });
        }
        for round in 0..20 {
            let level = ["debug", "info", "trace", "off"][round % 4];
            let (status, now) = put("PUT", "/loggers/busbar::log", level.as_bytes());
            assert_eq!((status, &now["level"]), (200, &level.into()));
        }
        assert_eq!(put("PUT", "/loggers/busbar::log", br#"{"level":"debug"}"#).0, 200);
        let seen = bus.stderr().matches("seen = yes").count();
        bus.says("seen = yes", seen + 10);
        assert_eq!(put("DELETE", "/loggers/busbar::log", b"").1["level"], "info");
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let (status, wrong) = put("PUT", "/loggers/busbar::lag", b"debug");
    assert!(
        status == 404 && wrong["error"].as_str().unwrap().contains("did you mean `busbar::log`?"),
        "{wrong}"
    );
    let (status, wrong) = put("PUT", "/loggers/busbar::log", b"loud");
    assert!(
        status == 400 && wrong["error"].as_str().unwrap().contains("there is no level `loud`"),
        "{wrong}"
    );
    let (status, all) = put("GET", "/loggers", b"");
    assert!(status == 200 && all["root"] == "info" && all["loggers"].as_array().unwrap().len() > 10, "{all}");
}

/// The lines of an access log once there are so many.
fn lines_of(file: &Path, count: usize) -> Vec<String> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        if lines.len() >= count || Instant::now() > deadline {
            assert_eq!(lines.len(), count, "{lines:#?}");
            return lines;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Cancelled and refused requests left no line, and an API was called `main`.
#[test]
fn each_request_has_one_line_in_the_access_log_at_its_end() {
    use std::io::Write;
    use std::net::TcpStream;
    let slow = Process::backend(&["--delay", "1500"]);
    let half = half_an_answer();
    let artifacts = format!(
        "<proxy name='Good'><target><inSequence><log level='custom'><property name='id' expression='get-property(\"MessageID\")'/></log><respond/></inSequence></target></proxy>\
         <proxy name='Slow'><target><inSequence><call><endpoint><address uri='http://{}/echo'/></endpoint></call><respond/></inSequence></target></proxy>\
         <proxy name='Half'><target><endpoint><address uri='http://{half}/'/></endpoint></target></proxy>\
         <api name='Orders' context='/orders'><resource methods='GET' uri-template='/{{id}}'><inSequence><payloadFactory media-type='json'><format>{{\"a\":1}}</format></payloadFactory><respond/></inSequence></resource></api>",
        slow.http()
    );
    let file = folder("logs-access").join("access.log");
    let to = format!("log.access_to={}", file.display());
    let pattern = "log.access=%>s %B %{end}x %{service}x %{message_id}x \"%r\" %D";
    let bus = Process::run(
        &configuration("logs-access", &artifacts),
        &["--set", pattern, "--set", &to, "--set", "limits.head=1s"],
    );
    let mut count = 0;
    let mut next = |what: &str| {
        count += 1;
        let line = lines_of(&file, count).pop().unwrap();
        assert!(line.starts_with(what), "{line}, not {what}");
        let (line, took) = line.rsplit_once(' ').unwrap();
        (line.to_owned(), took.parse::<u64>().unwrap())
    };

    assert_eq!(ask(bus.http(), "POST", "/services/Good", b"<a/>").unwrap().0, 200);
    let (line, _) = next("200 4 whole Good urn:uuid:");
    assert!(line.ends_with("\"POST /services/Good HTTP/1.1\""), "{line}");
    // The same id as in the log.
    let id = line.split(' ').nth(4).unwrap();
    bus.says(&format!("id = {id}"), 1);

    assert_eq!(ask(bus.http(), "GET", "/orders/1", b"").unwrap().0, 200);
    next("200 7 whole Orders urn:uuid:");

    // Parser: 400, 414, 431; a head that does not come: 408.
    for (text, status) in [
        ("GARBAGE\r\n\r\n".to_owned(), "400"),
        (format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(9000)), "414"),
        (format!("GET / HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n", "x".repeat(40_000)), "431"),
        ("GET / HT".to_owned(), "408"),
    ] {
        let mut stream = TcpStream::connect(bus.http()).unwrap();
        // It may be refused before all of it is sent.
        let _ = stream.write_all(text.as_bytes());
        let _ = stream.read_to_end(&mut Vec::new());
        let (line, took) = next(status);
        assert!(line.contains(" refused - - \""), "{line}");
        assert!(status != "408" || took >= 900_000, "{took}");
    }

    // The client goes away while the flow waits for a backend.
    let mut stream = TcpStream::connect(bus.http()).unwrap();
    stream.write_all(b"POST /services/Slow HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nContent-Type: text/xml\r\n\r\n<a/>").unwrap();
    std::thread::sleep(Duration::from_millis(300));
    drop(stream);
    let (_, took) = next("499 0 abandoned Slow urn:uuid:");
    assert!((200_000..1_400_000).contains(&took), "{took}");

    // The backend breaks off.
    assert!(ask(bus.http(), "POST", "/services/Half", b"<a/>").is_err());
    next("200 5 cut Half urn:uuid:");

    // Not the admin address.
    ask(bus.field("admin"), "GET", "/healthz", b"").unwrap();
    assert_eq!(ask(bus.http(), "POST", "/services/Good", b"<b/>").unwrap().0, 200);
    next("200 4 whole Good");
}

/// What the end of a drain cuts was told as a client that went away.
#[test]
fn what_a_stop_cuts_is_recorded_as_that() {
    use std::io::Write;
    use std::net::TcpStream;
    let slow = Process::backend(&["--delay", "20000"]);
    let artifacts = format!(
        "<proxy name='Echo'><target><inSequence><property name='n' expression='count(//a)'/><respond/></inSequence></target></proxy>\
         <proxy name='Slow'><target><inSequence><call><endpoint><address uri='http://{}/echo'/></endpoint></call><respond/></inSequence></target></proxy>",
        slow.http()
    );
    let file = folder("logs-stopped").join("access.log");
    let to = format!("log.access_to={}", file.display());
    let mut bus = Process::run(
        &configuration("logs-stopped", &artifacts),
        &["--set", "log.access=%>s %{end}x %{service}x", "--set", &to, "--set", "limits.drain=300ms"],
    );
    let begin = |service: &str, body: &str| {
        let mut stream = TcpStream::connect(bus.http()).unwrap();
        let head = format!(
            "POST /services/{service} HTTP/1.1\r\nHost: h\r\nContent-Type: text/xml\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + body).as_bytes()).unwrap();
        stream
    };
    let waits = begin("Slow", "<a/>");
    // Read whole, and then more than its client takes.
    let takes = begin("Echo", &format!("<a>{}</a>", "x".repeat(30_000_000)));
    std::thread::sleep(Duration::from_secs(2));
    bus.signal("TERM");
    assert_eq!(bus.wait(), Some(0));
    let mut lines = lines_of(&file, 2);
    lines.sort();
    assert_eq!(lines, ["200 stopped Echo", "503 stopped Slow"]);
    drop((waits, takes));
}

#[test]
fn what_is_answered_during_the_drain_is_recorded() {
    let slow = Process::backend(&["--delay", "600"]);
    let artifacts = format!(
        "<proxy name='Slow'><target><inSequence><call><endpoint><address uri='http://{}/echo'/></endpoint></call><respond/></inSequence></target></proxy>",
        slow.http()
    );
    let file = folder("logs-drained").join("access.log");
    let to = format!("log.access_to={}", file.display());
    let mut bus = Process::run(
        &configuration("logs-drained", &artifacts),
        &["--set", "log.access=%>s %{end}x", "--set", &to],
    );
    let address = bus.http().to_owned();
    let clients: Vec<_> = (0..5)
        .map(|_| {
            let address = address.clone();
            std::thread::spawn(move || ask(&address, "POST", "/services/Slow", b"<a/>").unwrap().0)
        })
        .collect();
    std::thread::sleep(Duration::from_millis(200));
    bus.signal("TERM");
    assert_eq!(bus.wait(), Some(0));
    let statuses: Vec<_> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    assert_eq!(statuses, [200; 5]);
    // The process has ended: whatever it was to write is there.
    let written = std::fs::read_to_string(&file).unwrap();
    assert_eq!(written.lines().collect::<Vec<_>>(), ["200 whole"; 5]);
}

/// A backend that promises more than it sends.
fn half_an_answer() -> String {
    use std::io::Write;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut buffer = [0; 4096];
            let _ = stream.read(&mut buffer);
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: 100\r\n\r\n<half");
            // What was written is on its way before the connection ends.
            std::thread::sleep(Duration::from_millis(200));
        }
    });
    address
}

#[test]
fn fifty_clients_and_each_request_is_recorded_once() {
    let file = folder("logs-once").join("access.log");
    let to = format!("log.access_to={}", file.display());
    let proxy = "<proxy name='P'><target><inSequence><respond/></inSequence></target></proxy>";
    let bus = Process::run(&configuration("logs-once", proxy), &["--set", "log.access=%r %s", "--set", &to]);
    std::thread::scope(|scope| {
        for client in 0..50 {
            let bus = &bus;
            scope.spawn(move || {
                let mut stream = std::net::TcpStream::connect(bus.http()).unwrap();
                for number in 0..40 {
                    let path = format!("/services/P/{client}/{number}");
                    assert_eq!(exchange(&mut stream, "POST", &path, b"<a/>", "").unwrap().0, 200);
                }
            });
        }
        // Rotated in the middle.
        std::thread::sleep(Duration::from_millis(50));
        std::fs::rename(&file, file.with_extension("1")).unwrap();
        bus.signal("HUP");
    });
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut lines: Vec<String> = Vec::new();
    while lines.len() < 2000 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
        lines = [file.with_extension("1"), file.clone()]
            .iter()
            .flat_map(|file| {
                std::fs::read_to_string(file)
                    .unwrap_or_default()
                    .lines()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            })
            .collect();
    }
    lines.sort();
    lines.dedup();
    assert_eq!(lines.len(), 2000);
}

#[test]
fn what_a_step_says_without_failing_has_its_place() {
    let text = "<sequence name='quiet'>\n<enrich><source type='property' property='none'/><target type='property' property='p'/></enrich>\n\
                <xslt key='x'/>\n<property name='n' value='a b'/>\n<header name='X' scope='transport' expression='//none'/>\n\
                <call><endpoint><failover><endpoint name='down'><address uri='http://127.0.0.1:1/'/></endpoint>\
                <endpoint name='up'><address uri='local://services/Up'/></endpoint></failover></endpoint></call>\n\
                <property name='HTTP_SC' value='many' scope='axis2'/>\n<respond/></sequence>\
                <proxy name='Up'><target><inSequence><respond/></inSequence></target></proxy>\
                <localEntry key='x'><xsl:stylesheet xmlns:xsl='http://www.w3.org/1999/XSL/Transform' version='1.0'/></localEntry>\
                <proxy name='P'><target inSequence='quiet'/></proxy>";
    let bus = Process::run(&configuration("said-with-places", text), &[]);
    assert_eq!(ask(bus.http(), "GET", "/services/P", b"").unwrap().0, 200);
    bus.says("is not an HTTP status and is ignored", 1);
    let lines = bus.stderr();
    for said in ["the source is empty", "the body is empty", "endpoint=down", "is not an HTTP status"] {
        let line =
            lines.lines().find(|line| line.contains(said)).unwrap_or_else(|| panic!("{said}: {lines}"));
        assert!(line.contains(" place=") && line.contains(".xml:"), "{line}");
    }
}
