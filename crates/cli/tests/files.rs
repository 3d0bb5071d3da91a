//! Files as a transport, from outside: what is taken, what becomes of it, what is written, and that nothing is lost.
//!
//! `BUSBAR_FILES`: how many files are dropped while the bus is killed ten times (default 1000; 100000 before a release).
#![allow(clippy::unwrap_used)] // helpers of tests

#[path = "files/disks.rs"]
mod disks;
#[path = "files/parameters.rs"]
mod parameters;
mod support;

use std::collections::HashMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};
use support::{Process, ask, busbar, configuration, configure, until};

/// Directories of a test: `in`, `out`, `done`, `failed`.
struct Places(PathBuf);

impl Places {
    fn new(name: &str) -> Places {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("files-{name}"));
        let _ = fs::remove_dir_all(&root);
        for directory in ["in", "out", "done", "failed"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        Places(root)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn uri(&self, name: &str) -> String {
        format!("file://{}", self.path(name).display())
    }

    /// Puts a file there in one step.
    fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let beside = self.0.join("beside");
        fs::write(&beside, content).unwrap();
        fs::rename(&beside, self.path(name)).unwrap();
    }

    fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.path(name)).unwrap_or_default()).into_owned()
    }

    /// The names in a directory, in order.
    fn names(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(directory)).unwrap().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// A proxy service that takes what is in `in`, with these parameters beside the usual ones.
    fn proxy(&self, parameters: &[(&str, &str)], sequence: &str) -> String {
        let mut all = vec![
            ("transport.vfs.FileURI".to_owned(), self.uri("in")),
            ("transport.vfs.ContentType".to_owned(), "text/plain".to_owned()),
            ("transport.PollInterval".to_owned(), "50ms".to_owned()),
        ];
        for (name, value) in parameters {
            all.retain(|(path, _)| path != name);
            let value = value.replace("@in@", &self.uri("in")).replace("@out@", &self.uri("out"));
            let value = value.replace("@done@", &self.uri("done")).replace("@failed@", &self.uri("failed"));
            all.push(((*name).to_owned(), value));
        }
        let all: String = all
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| format!("<parameter name='{name}'>{value}</parameter>"))
            .collect();
        let sequence = sequence.replace("@out@", &self.uri("out"));
        format!("<proxy name='P' transports='vfs'><target>{sequence}</target>{all}</proxy>")
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

fn facts(bus: &Process, path: &str) -> serde_json::Value {
    let (status, _, body) = ask(bus.field("admin"), "GET", &format!("/artifacts/{path}"), b"").unwrap();
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    serde_json::from_slice::<serde_json::Value>(&body).unwrap()["files"].clone()
}

const COPY: &str = "<inSequence><property name='OUT_ONLY' value='true'/><send><endpoint><address uri='vfs:@out@'/></endpoint></send></inSequence>";
const MOVE: [(&str, &str); 2] =
    [("transport.vfs.ActionAfterProcess", "MOVE"), ("transport.vfs.MoveAfterProcess", "@done@")];
const MOVE_FAILED: [(&str, &str); 2] =
    [("transport.vfs.ActionAfterFailure", "MOVE"), ("transport.vfs.MoveAfterFailure", "@failed@")];
const FAILS: &str =
    "<inSequence><call><endpoint><address uri='http://127.0.0.1:1/nobody'/></endpoint></call></inSequence>";

#[test]
fn a_file_is_taken_written_and_deleted() {
    let places = Places::new("simple");
    places.put("in/a.txt", "hello");
    places.put("in/b.xml", "<a/>");
    let pattern = [("transport.vfs.FileNamePattern", r".*\.txt")];
    let bus = Process::run(&configuration("files-simple", &places.proxy(&pattern, COPY)), &[]);
    until("a.txt is copied", || places.read("out/a.txt") == "hello" && !places.path("in/a.txt").exists());
    places.put("in/c.txt", "again");
    until("c.txt is copied", || places.read("out/c.txt") == "again" && !places.path("in/c.txt").exists());
    assert_eq!(places.names("in"), ["b.xml"]);
    assert_eq!(places.names("out"), ["a.txt", "c.txt"]);
    let facts = facts(&bus, "proxy/P");
    assert_eq!(
        (&facts["processed"], &facts["failed"], &facts["trouble"]),
        (&2.into(), &0.into(), &serde_json::Value::Null)
    );
    let (_, _, metrics) = ask(bus.field("admin"), "GET", "/metrics", b"").unwrap();
    let metrics = String::from_utf8(metrics).unwrap();
    assert!(
        metrics.contains("busbar_files_total{kind=\"proxy\",service=\"P\",outcome=\"processed\"} 2"),
        "{metrics}"
    );
}

#[test]
fn what_the_flow_sees_and_what_moving_does() {
    let places = Places::new("headers");
    let sequence = "<inSequence><payloadFactory media-type='json'><format>{\"n\":\"$1\",\"p\":\"$2\",\"u\":\"$3\",\"l\":\"$4\",\"m\":\"$5\",\"v\":\"$6\",\"i\":\"$7\"}</format><args>\
        <arg expression='$trp:FILE_NAME'/><arg expression='$trp:FILE_PATH'/><arg expression='$trp:FILE_URI'/><arg expression='$trp:FILE_LENGTH'/><arg expression='$trp:LAST_MODIFIED'/><arg expression='//v'/><arg expression='$ctx:inbound.endpoint.name'/></args></payloadFactory>\
        <property name='FILE_NAME' scope='transport' value='seen.json'/><property name='OUT_ONLY' value='true'/><send><endpoint><address uri='vfs:@out@'/></endpoint></send></inSequence>";
    let moving = [
        ("transport.vfs.ContentType", "application/xml; charset=ISO-8859-1"),
        ("transport.vfs.MoveTimestampFormat", "'moved-'"),
        ("transport.vfs.SubFolderTimestampFormat", "yyyy"),
        ("transport.vfs.UpdateLastModified", "false"),
    ];
    let parameters: Vec<_> = MOVE.into_iter().chain(moving).collect();
    places.put("in/ä b.xml", b"<a><v>\xfc</v></a>");
    let modified = SystemTime::UNIX_EPOCH + Duration::from_millis(1_500_000_000_123);
    fs::File::open(places.path("in/ä b.xml")).unwrap().set_modified(modified).unwrap();
    let _bus = Process::run(&configuration("files-headers", &places.proxy(&parameters, sequence)), &[]);
    until("it is moved", || places.names("in").is_empty());
    let seen: serde_json::Value = serde_json::from_str(&places.read("out/seen.json")).unwrap();
    assert_eq!(seen["n"], "ä b.xml");
    assert_eq!(seen["p"], places.path("in/ä b.xml").to_str().unwrap());
    assert_eq!(seen["u"], format!("{}/%C3%A4%20b.xml", places.uri("in")));
    assert_eq!((&seen["l"], &seen["m"], &seen["v"]), (&"15".into(), &"1500000000123".into(), &"ü".into()));
    let years = places.names("done");
    let moved = places.path(&format!("done/{}/moved-ä b.xml", years[0]));
    assert!(years[0].len() == 4 && moved.exists(), "{years:?}");
    assert_eq!(moved.metadata().unwrap().mtime(), 1_500_000_000);
}

#[test]
fn what_fails_goes_where_failures_go() {
    for (name, sequence, goes) in [
        ("nobody", FAILS.to_owned(), "failed"),
        ("handled", format!("{FAILS}<faultSequence><drop/></faultSequence>"), "done"),
        (
            "refused",
            format!("{FAILS}<faultSequence><property name='SET_ROLLBACK_ONLY' value='true'/></faultSequence>"),
            "failed",
        ),
        (
            "axis2",
            "<inSequence><property name='SET_ROLLBACK_ONLY' value='true' scope='axis2'/></inSequence>".to_owned(),
            "failed",
        ),
        (
            "branch",
            "<inSequence><clone><target><sequence><throwError type='X' errorMessage='no'/></sequence></target></clone></inSequence>".to_owned(),
            "failed",
        ),
        (
            "item",
            "<inSequence><payloadFactory media-type='json'><format>[1,2]</format></payloadFactory><foreach collection='${payload}' continue-without-aggregation='true'>\
             <sequence><throwError type='X' errorMessage='no'/></sequence></foreach></inSequence>"
                .to_owned(),
            "failed",
        ),
    ] {
        let places = Places::new(&format!("fails-{name}"));
        places.put("in/a.txt", "hello");
        let parameters: Vec<_> = MOVE.into_iter().chain(MOVE_FAILED).collect();
        let bus =
            Process::run(&configuration(&format!("files-fails-{name}"), &places.proxy(&parameters, &sequence)), &[]);
        until(name, || places.names("in").is_empty());
        assert_eq!(places.names(goes), ["a.txt"], "{name}:\n{}", bus.stderr());
        // What was there is gone, and the log says so.
        assert!(!bus.stderr().contains("is replaced"), "{}", bus.stderr());
        places.put("in/a.txt", "another");
        bus.says("is replaced", 1);
    }
}

#[test]
fn what_is_no_file_is_never_opened() {
    let places = Places::new("special");
    let fifo = places.path("in/a-pipe");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    std::os::unix::fs::symlink("/dev/zero", places.path("in/b-link")).unwrap();
    std::os::unix::fs::symlink(places.path("in"), places.path("in/c-circle")).unwrap();
    places.put("in/d-empty", "");
    places.put("in/e-locked", "x");
    places.put("in/e-locked.lock", "");
    let odd = places.path("in").join(std::ffi::OsStr::from_bytes(b"f-\xff\n.txt"));
    fs::write(&odd, "odd").unwrap();
    let bus = Process::run(
        &configuration("files-special", &places.proxy(&MOVE, "<inSequence><drop/></inSequence>")),
        &[],
    );
    until("the odd one is moved", || !odd.exists());
    let moved = fs::read_dir(places.path("done")).unwrap().next().unwrap().unwrap().file_name();
    assert_eq!(moved.as_bytes(), b"f-\xff\n.txt");
    until("a look without it", || facts(&bus, "proxy/P")["passed_over"]["locked"] == 1);
    let passed = &facts(&bus, "proxy/P")["passed_over"];
    assert_eq!((&passed["empty"], &passed["no_file"]), (&1.into(), &3.into()), "{passed}");
    // The other program is through.
    fs::remove_file(places.path("in/e-locked.lock")).unwrap();
    until("the lock is gone", || places.path("done/e-locked").exists());
}

#[test]
fn a_directory_goes_and_comes_back() {
    let places = Places::new("gone");
    let reconnect = [("transport.vfs.ReconnectTimeout", "1")];
    let bus = Process::run(&configuration("files-gone", &places.proxy(&reconnect, COPY)), &[]);
    places.put("in/a.txt", "one");
    until("one", || places.path("out/a.txt").exists());
    fs::remove_dir_all(places.path("in")).unwrap();
    bus.says("no files are taken", 1);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(bus.stderr().matches("no files are taken").count(), 1, "{}", bus.stderr());
    assert!(facts(&bus, "proxy/P")["trouble"].as_str().unwrap().contains("No such file"));
    fs::create_dir(places.path("in")).unwrap();
    places.put("in/b.txt", "two");
    until("two", || places.path("out/b.txt").exists());
    bus.says("files are taken again", 1);
}

#[test]
fn a_move_that_fails_processes_nothing_twice() {
    let places = Places::new("stuck");
    let records = [
        ("transport.vfs.FailedRecordsFileDestination", "@failed@"),
        ("transport.vfs.FailedRecordNextRetryDuration", "100"),
    ];
    let parameters: Vec<_> = MOVE.into_iter().chain(records).collect();
    let append = COPY.replace("vfs:@out@", "vfs:@out@/log.txt?transport.vfs.Append=true");
    let path = configuration("files-stuck", &places.proxy(&parameters, &append));
    fs::remove_dir(places.path("done")).unwrap();
    places.put("in/a.txt", "once;");
    let bus = Process::run(&path, &[]);
    bus.says("could not be moved", 1);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(places.read("out/log.txt"), "once;");
    assert_eq!(facts(&bus, "proxy/P")["remembered"], 1);
    assert_eq!(bus.stderr().matches("could not be moved").count(), 1, "{}", bus.stderr());
    // Nor after a restart: it is written down.
    drop(bus);
    let _bus = Process::run(&path, &[]);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(places.read("out/log.txt"), "once;");
    fs::create_dir(places.path("done")).unwrap();
    until("it is moved at last", || places.names("done") == ["a.txt"]);
    assert_eq!(places.read("out/log.txt"), "once;");
    // What is written down goes after the file: between the two a kill leaves a line too many.
    until("nothing is written down", || places.read("failed/vfs-move-failed-records.properties").is_empty());
}

#[test]
fn answers_are_written() {
    let places = Places::new("reply");
    let parameters = [("transport.vfs.ReplyFileURI", "@out@"), ("transport.vfs.ReplyFileName", "answer.xml")];
    let sequence = "<inSequence><payloadFactory media-type='xml'><format><done xmlns=''/></format><args/></payloadFactory><respond/></inSequence>";
    places.put("in/a.txt", "hello");
    let _bus = Process::run(&configuration("files-reply", &places.proxy(&parameters, sequence)), &[]);
    until("the answer", || places.names("in").is_empty());
    assert_eq!(places.read("out/answer.xml"), "<done/>");
}

#[test]
fn writing_over_http() {
    let places = Places::new("sender");
    let send = |address: &str| {
        format!(
            "<inSequence><call><endpoint><address uri='vfs:{address}'/></endpoint></call><payloadFactory media-type='json'><format>{{\"ok\":true}}</format><args/></payloadFactory><respond/></inSequence>"
        )
    };
    let proxy = |name: &str, address: String| {
        format!(
            "<proxy name='{name}' transports='http'><target>{}<faultSequence><payloadFactory media-type='json'><format>{{\"code\":\"$1\"}}</format><args><arg expression='$ctx:ERROR_CODE'/></args></payloadFactory><respond/></faultSequence></target></proxy>",
            send(&address)
        )
    };
    let out = places.uri("out");
    let text = [
        proxy("Name", format!("{out}?transport.vfs.ReplyFileName=n.xml")),
        proxy("File", format!("{out}/deep/f.xml")),
        proxy("Append", format!("{out}/log?transport.vfs.Append=true")),
        proxy("Make", format!("{}/new?transport.vfs.CreateFolder=true", places.uri("out"))),
        proxy("Full", "file:///dev/full".to_owned()),
        proxy("Denied", "file:///proc/nothing/x".to_owned()),
    ]
    .concat();
    let bus = Process::run(&configuration("files-sender", &text), &[]);
    let post = |service: &str, body: &str| {
        let (status, _, body) =
            ask(bus.http(), "POST", &format!("/services/{service}"), body.as_bytes()).unwrap();
        (status, String::from_utf8(body).unwrap())
    };
    let ok = || (200, "{\"ok\":true}".to_owned());
    for (service, file) in
        [("Name", "out/n.xml"), ("File", "out/deep/f.xml"), ("Make", "out/new/response.xml")]
    {
        assert_eq!(post(service, "<a/>"), ok(), "{service}:\n{}", bus.stderr());
        assert_eq!(places.read(file), "<a/>", "{service}");
    }
    for _ in 0..3 {
        assert_eq!(post("Append", "<a/>"), ok());
    }
    assert_eq!(places.read("out/log"), "<a/><a/><a/>");
    for service in ["Full", "Denied"] {
        let (_, body) = post(service, "<a/>");
        assert!(body.contains("\"code\":\"101500\""), "{service}: {body}\n{}", bus.stderr());
    }
    assert_eq!(places.names("out"), ["deep", "log", "n.xml", "new"], "nothing half is left");
}

#[test]
fn two_buses_share_a_directory() {
    let places = Places::new("two");
    let append = COPY.replace("vfs:@out@", "vfs:@out@?transport.vfs.Append=true");
    for number in 0..400 {
        places.put(&format!("in/{number:03}.txt"), format!("{number};"));
    }
    let path = configuration("files-two", &places.proxy(&[], &append));
    let buses = [Process::run(&path, &[]), Process::run(&path, &[])];
    until("all are taken", || places.names("in").is_empty());
    let processed = |bus: &Process| facts(bus, "proxy/P")["processed"].as_u64().unwrap();
    until("both have counted", || processed(&buses[0]) + processed(&buses[1]) == 400);
    for number in 0..400 {
        assert_eq!(places.read(&format!("out/{number:03}.txt")), format!("{number};"));
    }
}

#[test]
fn an_inbound_endpoint_takes_files_and_is_switched() {
    let places = Places::new("inbound");
    let inbound = |more: &str| {
        format!(
            "<inboundEndpoint name='I' {more} sequence='S' onError='E' suspend='false'><parameters><parameter name='interval'>50</parameter>\
             <parameter name='sequential'>false</parameter><parameter name='coordination'>true</parameter>\
             <parameter name='transport.vfs.FileURI'>{}</parameter><parameter name='transport.vfs.ContentType'>text/plain</parameter>\
             <parameter name='transport.vfs.ActionAfterFailure'>MOVE</parameter><parameter name='transport.vfs.MoveAfterFailure'>{}</parameter>\
             </parameters></inboundEndpoint><sequence name='S'><log level='custom'><property name='I' expression='$ctx:inbound.endpoint.name'/></log>{}</sequence><sequence name='E'><log level='custom'><property name='E' expression='$ctx:ERROR_MESSAGE'/></log></sequence>",
            places.uri("in"),
            places.uri("failed"),
            COPY.replace("@out@", &places.uri("out"))
                .replace("<inSequence>", "")
                .replace("</inSequence>", "")
        )
    };
    for kind in
        ["protocol='file'", "class='org.wso2.carbon.inbound.endpoint.protocol.file.FilePollingConsumer'"]
    {
        let bus = Process::run(&configuration("files-inbound", &inbound(kind)), &[]);
        for number in 0..50 {
            places.put(&format!("in/{number}.txt"), "x");
        }
        until("all are copied", || places.names("out").len() == 50 && places.names("in").is_empty());
        bus.says("I = I", 1);
        let act = |action: &str| {
            ask(bus.field("admin"), "POST", &format!("/artifacts/inboundEndpoint/I/{action}"), b"").unwrap().0
        };
        assert_eq!(act("stop"), 200);
        places.put("in/late.txt", "x");
        std::thread::sleep(Duration::from_millis(400));
        assert!(places.path("in/late.txt").exists());
        assert_eq!(act("start"), 200);
        until("it is taken now", || places.path("out/late.txt").exists() && places.names("in").is_empty());
        fs::remove_dir_all(places.path("out")).unwrap();
        fs::create_dir(places.path("out")).unwrap();
    }
}

#[test]
fn reloads_in_the_middle() {
    let places = Places::new("reload");
    let path = configuration("files-reload", &places.proxy(&[], COPY));
    let bus = Process::run(&path, &[]);
    for number in 0..300 {
        places.put(&format!("in/{number}.txt"), "x");
        if number % 50 == 0 {
            let pattern = [("transport.vfs.FileNamePattern", if number % 100 == 0 { ".*" } else { ".+" })];
            configure(&path, &places.proxy(&pattern, COPY));
            bus.signal("HUP");
        }
    }
    until("all are copied", || places.names("out").len() == 300 && places.names("in").is_empty());
    // The service is gone, and files stay.
    configure(&path, "<sequence name='S'/>");
    bus.signal("HUP");
    until("it is gone", || ask(bus.field("admin"), "GET", "/artifacts/proxy/P", b"").unwrap().0 == 404);
    places.put("in/late.txt", "x");
    std::thread::sleep(Duration::from_millis(300));
    assert!(places.path("in/late.txt").exists());
}

#[test]
fn large_files_are_streams() {
    let places = Places::new("large");
    let _bus = Process::run(
        &configuration(
            "files-large",
            &places.proxy(&[("transport.vfs.ContentType", "application/octet-stream")], COPY),
        ),
        &["--set", "limits.body=1m", "--set", "limits.memory=32m"],
    );
    let block: Vec<u8> = (0..1_u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    places.put("in/large.bin", block.repeat(64));
    until("it is copied", || places.names("in").is_empty());
    let copied = fs::read(places.path("out/large.bin")).unwrap();
    assert!(copied.len() == 64 << 20 && copied.chunks(1 << 20).all(|chunk| chunk == block));
}

#[test]
fn a_stop_waits_for_the_file_that_is_in_work() {
    let places = Places::new("stop");
    let backend = Process::backend(&["--delay", "1000"]);
    let sequence = format!(
        "<inSequence><call><endpoint><address uri='http://{}/echo'/></endpoint></call>{}</inSequence>",
        backend.http(),
        COPY.replace("<inSequence>", "").replace("</inSequence>", "")
    );
    for name in ["a", "b", "c"] {
        places.put(&format!("in/{name}.txt"), "x");
    }
    let mut bus = Process::run(&configuration("files-stop", &places.proxy(&[], &sequence)), &[]);
    until("the first is taken", || places.path("in/a.txt.lock").exists());
    bus.signal("TERM");
    assert_eq!(bus.wait(), Some(0));
    assert_eq!(places.names("in"), ["b.txt", "c.txt"], "{}", bus.stderr());
    assert_eq!(places.names("out").len(), 1);
    // A bus that does not wait for the flow releases the file.
    let mut bus = Process::run(
        &configuration("files-stop", &places.proxy(&[], &sequence)),
        &["--set", "limits.drain=100ms"],
    );
    until("the next is taken", || places.path("in/b.txt.lock").exists());
    bus.signal("TERM");
    assert_eq!(bus.wait(), Some(0));
    let left = places.names("in");
    assert!(left.contains(&"b.txt".to_owned()) && left.contains(&"c.txt".to_owned()), "{left:?}");
}

#[test]
fn sizes_ages_counts_and_orders() {
    let places = Places::new("choice");
    let parameters = [
        ("transport.vfs.FileSizeLimit", "100"),
        ("transport.vfs.MaximumAge", "3600"),
        ("transport.vfs.CheckSizeInterval", "100"),
        ("transport.vfs.FileSortAttribute", "Size"),
        ("transport.vfs.FileSortAscending", "false"),
        ("transport.vfs.FileProcessCount", "2"),
        ("transport.PollInterval", "1"),
    ];
    places.put("in/large.txt", [b'x'; 101]);
    places.put("in/old.txt", "x");
    fs::File::open(places.path("in/old.txt"))
        .unwrap()
        .set_modified(SystemTime::now() - Duration::from_secs(7200))
        .unwrap();
    for (name, size) in [("a", 10), ("b", 30), ("c", 20), ("d", 40)] {
        places.put(&format!("in/{name}.txt"), vec![b'x'; size]);
    }
    let sequence = "<inSequence><log level='custom'><property name='took' expression='$trp:FILE_NAME'/></log></inSequence>";
    let bus = Process::run(&configuration("files-choice", &places.proxy(&parameters, sequence)), &[]);
    bus.says("took = c.txt", 1);
    until("those that may be taken are", || places.names("in") == ["large.txt", "old.txt"]);
    let log = bus.stderr();
    let at = |name: &str| log.find(&format!("took = {name}.txt")).unwrap();
    assert!(at("d") < at("b") && at("b") < at("c") && at("c") < at("a"), "{log}");
    until("a look without them", || facts(&bus, "proxy/P")["passed_over"]["age"] == 1);
    assert_eq!(facts(&bus, "proxy/P")["passed_over"]["too_large"], 1);
}

#[test]
fn a_file_that_may_not_be_read() {
    // root may read any file.
    if rustix::process::geteuid().is_root() {
        return;
    }
    let places = Places::new("denied");
    places.put("in/a.txt", "x");
    fs::set_permissions(places.path("in/a.txt"), fs::Permissions::from_mode(0o0)).unwrap();
    places.put("in/b.txt", "x");
    let bus = Process::run(&configuration("files-denied", &places.proxy(&[], COPY)), &[]);
    until("the other is taken", || places.path("out/b.txt").exists());
    bus.says("files are passed over", 1);
}

#[test]
fn what_loading_says() {
    let check = |proxy: &str| {
        let path = configuration("files-check", proxy);
        String::from_utf8_lossy(&busbar(&["check", path.to_str().unwrap()]).stdout).into_owned()
    };
    let places = Places::new("check");
    for (name, value, says) in [
        ("transport.vfs.FileURI", "", "the parameter `transport.vfs.FileURI` is needed"),
        ("transport.vfs.FileURI", "sftp://host/in", "files over `sftp` need a transport"),
        ("transport.vfs.FileURI", "file://in", "three slashes"),
        ("transport.vfs.FileNamePattern", "(", "not a valid regular expression"),
        ("transport.vfs.FileNamePatern", "x", "did you mean `transport.vfs.FileNamePattern`?"),
        ("transport.PolInterval", "x", "did you mean `transport.PollInterval`?"),
        ("transport.PollInterval", "often", "expected whole seconds"),
        ("transport.PollInterval", "5s", "did you mean `5`?"),
        ("transport.PollInterval", "18446744073709551615", "did you mean `315360000`?"),
        ("transport.vfs.FileURI", "sftp://u:secret@host/in", "sshfs"),
        ("transport.vfs.MinimumAge", "-1", "did you mean `0`?"),
        ("transport.vfs.ActionAfterProcess", "MOVE", "`transport.vfs.MoveAfterProcess` is needed"),
        ("transport.vfs.ActionAfterFailure", "REMOVE", "expected one of: DELETE, MOVE, NONE"),
        ("transport.vfs.MoveAfterProcess", "@done@", "`transport.vfs.ActionAfterProcess` is not MOVE"),
        ("transport.vfs.Locking", "true", "expected one of: enable, disable"),
        ("transport.vfs.AutoLockRelease", "yes", "expected true or false"),
        ("transport.vfs.FileSizeLimit", "1MB", "did you mean `1048576`?"),
        ("transport.vfs.MoveTimestampFormat", "bbb", "SimpleDateFormat"),
        ("transport.vfs.Streaming", "true", "not needed here, because large files are streams"),
        ("transport.vfs.DistributedLock", "true", "not needed here"),
        ("transport.vfs.ReplyFileURI", "sftp://h/x", "answers cannot be written"),
    ] {
        let text = check(&places.proxy(&[(name, value)], COPY));
        assert!(text.contains(says), "{name}={value}: {text}");
        assert!(text.contains("files-check.xml:1:") && !text.contains("secret"), "{text}");
    }
    let text = check(&places.proxy(&MOVE, COPY));
    assert!(text.contains("0 errors, 0 warnings") || !text.contains("warning"), "{text}");
}

/// A drop of files while the bus is killed ten times: none is processed zero times.
#[test]
fn nothing_is_lost_when_the_bus_is_killed() {
    let count: usize = std::env::var("BUSBAR_FILES").ok().and_then(|text| text.parse().ok()).unwrap_or(1000);
    let places = Places::new("kill");
    // What was processed is a line in a file of its own.
    let append = COPY.replace("vfs:@out@", "vfs:@out@?transport.vfs.Append=true");
    let parameters: Vec<_> = MOVE.into_iter().collect();
    let path = configuration("files-kill", &places.proxy(&parameters, &append));
    let dropping = {
        let root = places.0.clone();
        std::thread::spawn(move || {
            for number in 0..count {
                let beside = root.join("dropping");
                fs::write(&beside, format!("{number};")).unwrap();
                fs::rename(&beside, root.join(format!("in/{number:06}.txt"))).unwrap();
                if count <= 5000 && number % 10 == 0 {
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        })
    };
    let done = |places: &Places| fs::read_dir(places.path("done")).unwrap().count();
    for kill in 1..=10 {
        let bus = Process::run(&path, &[]);
        // Some time in the middle of its work: after a part of the files, however fast the machine is.
        let deadline = Instant::now() + Duration::from_secs(60 + count as u64 / 500);
        while done(&places) < count * kill / 12 {
            assert!(Instant::now() < deadline, "{} are processed:\n{}", done(&places), bus.stderr());
            std::thread::sleep(Duration::from_millis(10));
        }
        bus.signal("KILL");
    }
    dropping.join().unwrap();
    let bus = Process::run(&path, &[]);
    let deadline = Instant::now() + Duration::from_secs(60 + count as u64 / 50);
    while !places.names("in").is_empty() {
        assert!(Instant::now() < deadline, "{} left:\n{}", places.names("in").len(), bus.stderr());
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut times: HashMap<usize, usize> = HashMap::new();
    for number in 0..count {
        let line = format!("{number};");
        let text = places.read(&format!("out/{number:06}.txt"));
        assert!(
            text.len().is_multiple_of(line.len()) && text == line.repeat(text.len() / line.len()),
            "{number}: {text}"
        );
        *times.entry(text.len() / line.len()).or_default() += 1;
    }
    let again: usize = times.iter().map(|(times, files)| times.saturating_sub(1) * files).sum();
    println!(
        "{count} files, killed ten times: {} processed once, {again} runs again, {} never",
        times.get(&1).unwrap_or(&0),
        times.get(&0).unwrap_or(&0)
    );
    assert_eq!(times.get(&0), None);
    assert_eq!(done(&places), count);
    assert!(again <= 10, "one file is in work when the bus is killed: {times:?}");
    let partial = |name: &String| name.starts_with(".busbar-");
    assert!(
        places.names("in").is_empty()
            && places.names("out").iter().filter(|name| partial(name)).count() <= 10
    );
}

#[test]
fn a_message_does_not_choose_another_directory() {
    let places = Places::new("names");
    let text = format!(
        "<proxy name='N' transports='http'><target><inSequence><call><endpoint><address uri='vfs:{}'/></endpoint></call>\
         <payloadFactory media-type='json'><format>{{\"ok\":true}}</format><args/></payloadFactory><respond/></inSequence></target></proxy>",
        places.uri("out")
    );
    let bus = Process::run(&configuration("files-names", &text), &[]);
    let named = |name: &str| {
        let mut stream = std::net::TcpStream::connect(bus.http()).unwrap();
        let more = format!("FILE_NAME: {name}\r\nConnection: close\r\n");
        support::exchange(&mut stream, "POST", "/services/N", b"<a/>", &more).unwrap().0
    };
    for name in ["../x", "/../../x", "..", "/", "a/../../x"] {
        named(name);
    }
    assert_eq!(places.names("."), ["done", "failed", "in", "out"], "{}", bus.stderr());
    fs::create_dir(places.path("out/below")).unwrap();
    fs::write(places.path("out/a"), "").unwrap();
    // None makes a directory, and none is written.
    let (long, with_lock) = ("z".repeat(300), "z".repeat(252));
    for name in [long.as_str(), with_lock.as_str(), "a/b", "new/b", "response.xml/b", "below"] {
        assert_ne!(named(name), 200, "{name}: {}", bus.stderr());
    }
    // Neither what looks like a lock, nor what looks like a file that is not whole.
    for name in ["good.xml.lock", ".busbar-1.tmp"] {
        assert_ne!(named(name), 200, "{name}: {}", bus.stderr());
    }
    assert_eq!(places.names("out"), ["a", "below"], "{}", bus.stderr());
    // The endpoint is not suspended for that.
    for name in ["/below/x.xml", "good.xml"] {
        assert_eq!(named(name), 200, "{name}: {}", bus.stderr());
        until("it is written", || places.read(&format!("out/{name}")) == "<a/>");
    }
}

#[test]
fn a_file_that_has_an_address_of_its_own_comes_and_goes() {
    let places = Places::new("single");
    let uri = format!("{}/one.txt", places.uri("in"));
    let proxy = places.proxy(&[("transport.vfs.FileURI", &uri)], COPY);
    let bus = Process::run(&configuration("files-single", &proxy), &[]);
    for content in ["a", "bb"] {
        places.put("in/one.txt", content);
        until("it is taken", || places.read("out/one.txt") == content && places.names("in").is_empty());
    }
    assert!(!bus.stderr().contains("no files are taken"), "{}", bus.stderr());
}

#[test]
fn services_of_one_bus_share_a_directory() {
    let places = Places::new("share");
    let append = COPY.replace("vfs:@out@", "vfs:@out@?transport.vfs.Append=true");
    let one = places.proxy(&[("transport.vfs.Locking", "disable")], &append);
    let roundabout = format!("{}/../in", places.uri("in"));
    let other =
        places.proxy(&[("transport.vfs.FileURI", &roundabout)], &append).replace("name='P'", "name='Q'");
    for number in 0..300 {
        places.put(&format!("in/{number}.txt"), format!("{number};"));
    }
    let bus = Process::run(&configuration("files-share", &[one, other].concat()), &[]);
    until("all are taken", || places.names("in").is_empty());
    until("all are written", || {
        facts(&bus, "proxy/P")["running"] == 0 && facts(&bus, "proxy/Q")["running"] == 0
    });
    for number in 0..300 {
        assert_eq!(places.read(&format!("out/{number}.txt")), format!("{number};"));
    }
    assert!(!bus.stderr().contains("could not be"), "{}", bus.stderr());
}
