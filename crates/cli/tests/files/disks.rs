//! Disks that are full, that nobody may write to, and writing that is cut short.

use super::*;

/// A file system of its own, in memory.
struct Mounted(PathBuf);

impl Mounted {
    /// `None`: it cannot be mounted here, so the test is skipped.
    fn of(path: PathBuf, size: &str) -> Option<Mounted> {
        let options = format!("size={size}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "none"]).arg(&path).output();
        if !mounted.is_ok_and(|mounted| mounted.status.success()) {
            println!("skipped: no file system can be mounted");
            return None;
        }
        Some(Mounted(path))
    }

    fn again(&self, options: &str) {
        let options = format!("remount,{options}");
        assert!(Command::new("mount").args(["-o", &options]).arg(&self.0).status().unwrap().success());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Neither the lock of a file nor what is written has room: what is there stays, and all of it comes when there is room.
#[test]
fn a_full_disk_where_files_come_from_and_go_to() {
    let places = Places::new("full-in");
    let (Some(source), Some(target)) =
        (Mounted::of(places.path("in"), "64k"), Mounted::of(places.path("out"), "64k"))
    else {
        return;
    };
    let log = COPY.replace("vfs:@out@", "vfs:@out@/log?transport.vfs.Append=true");
    // What fills the target is longer than what is left there.
    fs::write(places.path("out/log"), vec![b'l'; 30 << 10]).unwrap();
    fs::write(places.path("in/a.txt"), vec![b'a'; 40 << 10]).unwrap();
    let fill = vec![b'f'; 20 << 10];
    let _ = fs::write(places.path("in/no.fill"), &fill);
    let _ =
        fs::OpenOptions::new().append(true).create(true).open(places.path("in/no.fill")).map(|mut file| {
            while std::io::Write::write(&mut file, &[b'f'; 512]).is_ok_and(|count| count > 0) {}
        });
    let parameters =
        [("transport.vfs.FileNamePattern", r".*\.txt"), ("transport.vfs.ActionAfterFailure", "NONE")];
    let bus = Process::run(&configuration("files-full-in", &places.proxy(&parameters, &log)), &[]);
    until("it is seen", || {
        let facts = facts(&bus, "proxy/P");
        facts["passed_over"]["unreadable"] == 1 || facts["failed"].as_u64().unwrap() > 0
    });
    fs::remove_file(places.path("in/no.fill")).unwrap();
    until("it fails", || facts(&bus, "proxy/P")["failed"].as_u64().unwrap() > 0);
    assert_eq!(places.read("out/log"), "l".repeat(30 << 10), "nothing half is added");
    assert_eq!(places.read("in/a.txt").len(), 40 << 10);
    bus.says("No space left", 1);
    target.again("size=1m");
    until("there is room", || places.names("in").is_empty());
    assert_eq!(places.read("out/log").len(), 70 << 10);
    drop(source);
}

/// root may write anywhere except on a read-only file system.
#[test]
fn a_directory_that_nobody_may_write_to() {
    let places = Places::new("read-only");
    let Some(mounted) = Mounted::of(places.path("in"), "1m") else { return };
    fs::write(places.path("in/a.txt"), "a").unwrap();
    mounted.again("ro");
    let append = COPY.replace("vfs:@out@", "vfs:@out@?transport.vfs.Append=true");
    let path = configuration("files-read-only", &places.proxy(&[], &append));
    let bus = Process::run(&path, &[]);
    // It could be taken by two, and never be confirmed.
    bus.says("files are passed over", 1);
    std::thread::sleep(Duration::from_millis(300));
    assert!(places.names("out").is_empty());
    assert_eq!(bus.stderr().matches("files are passed over").count(), 1, "{}", bus.stderr());
    mounted.again("rw");
    until("it is taken", || places.names("in").is_empty());
    assert_eq!(places.read("out/a.txt"), "a");
    // Without locks it is processed once, and what cannot be deleted is remembered.
    drop(bus);
    fs::write(places.path("in/b.txt"), "b").unwrap();
    mounted.again("ro");
    let path =
        configuration("files-read-only", &places.proxy(&[("transport.vfs.Locking", "disable")], &append));
    let bus = Process::run(&path, &[]);
    until("it is remembered", || facts(&bus, "proxy/P")["remembered"] == 1);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(places.read("out/b.txt"), "b", "{}", bus.stderr());
}

/// Many clients add to one file: each line is whole.
#[test]
fn many_clients_add_to_one_file() {
    let places = Places::new("added");
    let text = format!(
        "<proxy name='A' transports='http'><target><inSequence><call><endpoint><address uri='vfs:{}/log?transport.vfs.Append=true'/></endpoint></call>\
         <payloadFactory media-type='json'><format>{{}}</format><args/></payloadFactory><respond/></inSequence></target></proxy>",
        places.uri("out")
    );
    let bus = Process::run(&configuration("files-added", &text), &[]);
    let address = bus.http().to_owned();
    let clients: Vec<_> = (0..16)
        .map(|client| {
            let address = address.clone();
            std::thread::spawn(move || {
                for number in 0..25 {
                    let body = format!("<l c=\"{client}\" n=\"{number}\">{}</l>", "x".repeat(client * 3000));
                    let (status, _, response) =
                        ask(&address, "POST", "/services/A", body.as_bytes()).unwrap();
                    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&response));
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    let log = places.read("out/log");
    assert_eq!(log.matches("<l ").count(), 400, "{}", bus.stderr());
    for client in 0..16 {
        for number in 0..25 {
            let line = format!("<l c=\"{client}\" n=\"{number}\">{}</l>", "x".repeat(client * 3000));
            assert_eq!(log.matches(&line).count(), 1, "{client} {number}");
        }
    }
    assert_eq!(places.names("out"), ["log"]);
}

/// A service that adds to `out/log`, and one that writes `out/other`.
fn adding(places: &Places) -> String {
    let service = |name: &str, file: &str| {
        format!(
            "<proxy name='{name}' transports='http'><target><inSequence><call><endpoint><address uri='vfs:{}/{file}'/></endpoint></call>\
             <payloadFactory media-type='json'><format>{{}}</format><args/></payloadFactory><respond/></inSequence></target></proxy>",
            places.uri("out")
        )
    };
    service("A", "log?transport.vfs.Append=true") + &service("O", "other")
}

/// Begins to send a large message that is to be added.
fn half_sent(bus: &Process) -> std::net::TcpStream {
    let mut client = std::net::TcpStream::connect(bus.http()).unwrap();
    let head = "POST /services/A HTTP/1.1\r\nHost: bus\r\nConnection: close\r\nContent-Type: application/xml\r\nContent-Length: 8388608\r\n\r\n";
    std::io::Write::write_all(&mut client, head.as_bytes()).unwrap();
    std::io::Write::write_all(&mut client, &vec![b'h'; 4 << 20]).unwrap();
    client
}

/// Killed in the middle of adding: half a message is not followed by the next one.
#[test]
fn what_is_half_added_when_the_bus_is_killed_goes() {
    use std::os::unix::fs::MetadataExt;
    let places = Places::new("half-added");
    let path = configuration("files-half-added", &adding(&places));
    fs::write(places.path("out/log"), "").unwrap();
    let mut bus = Process::run(&path, &[]);
    assert_eq!(ask(bus.http(), "POST", "/services/A", b"<one/>").unwrap().0, 200, "{}", bus.stderr());
    // In the middle of receiving.
    let _client = half_sent(&bus);
    until("it arrives", || places.names("out").iter().any(|name| name.starts_with(".busbar-")));
    bus.signal("KILL");
    let _ = bus.wait();
    let mut bus = Process::run(&path, &[]);
    assert_eq!(ask(bus.http(), "POST", "/services/A", b"<two/>").unwrap().0, 200, "{}", bus.stderr());
    assert_eq!(places.read("out/log").replace('\n', ""), "<one/><two/>", "{}", bus.stderr());
    // In the middle of writing, as a process leaves the file and its lock then.
    bus.signal("KILL");
    let _ = bus.wait();
    let log = places.path("out/log");
    let before = log.metadata().unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let note = format!("adding {} {}:{} {}\n", before.len(), before.dev(), before.ino(), boot.trim());
    fs::write(places.path("out/log.lock"), format!("busbar here 1\n{note}")).unwrap();
    fs::write(&log, places.read("out/log") + "<half>").unwrap();
    let bus = Process::run(&path, &[]);
    assert_eq!(ask(bus.http(), "POST", "/services/A", b"<three/>").unwrap().0, 200, "{}", bus.stderr());
    assert_eq!(places.read("out/log").replace('\n', ""), "<one/><two/><three/>", "{}", bus.stderr());
    bus.says("a process was killed while it was adding them", 1);
    assert!(!places.path("out/log.lock").exists());
}

/// A client that sends slowly keeps nobody else from adding to the same file.
#[test]
fn a_slow_client_keeps_no_lock() {
    let places = Places::new("slow");
    fs::write(places.path("out/log"), "").unwrap();
    let bus = Process::run(&configuration("files-slow", &adding(&places)), &[]);
    let mut client = half_sent(&bus);
    until("it arrives", || places.names("out").iter().any(|name| name.starts_with(".busbar-")));
    for _ in 0..3 {
        assert_eq!(ask(bus.http(), "POST", "/services/A", b"<o/>").unwrap().0, 200, "{}", bus.stderr());
    }
    std::io::Write::write_all(&mut client, &vec![b'h'; 4 << 20]).unwrap();
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut client, &mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let log = places.read("out/log").replace('\n', "");
    assert!(log.starts_with("<o/><o/><o/>h") && log.len() == 12 + (8 << 20), "{}", log.len());
    assert_eq!(places.names("out"), ["log"]);
}

/// More clients that add large messages to a file than there are threads for disks: whoever waits for the lock takes no thread, neither
/// from the one who has it nor from those who write elsewhere.
#[test]
fn who_waits_for_a_file_takes_no_thread() {
    const CLIENTS: usize = 100;
    let places = Places::new("threads");
    fs::write(places.path("out/log"), "").unwrap();
    let bus = Process::run(&configuration("files-threads", &adding(&places)), &[]);
    let body = format!("<l>{}</l>", "x".repeat(600_000));
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let answer = ask(bus.http(), "POST", "/services/A", body.as_bytes()).unwrap();
                assert_eq!(answer.0, 200, "{}", String::from_utf8_lossy(&answer.2));
            });
        }
        scope.spawn(|| assert_eq!(ask(bus.http(), "POST", "/services/O", b"<o/>").unwrap().0, 200));
    });
    let log = places.read("out/log");
    assert_eq!((log.matches(&body).count(), log.matches("<l>").count()), (CLIENTS, CLIENTS));
}

/// A stop in the middle of a large file: what is there then has its name and is whole, or the file comes again.
#[test]
fn a_stop_in_the_middle_of_a_large_file() {
    let places = Places::new("half");
    let binary = [("transport.vfs.ContentType", "application/octet-stream")];
    let file = fs::File::create(places.path("in/large.bin")).unwrap();
    let block = vec![7_u8; 1 << 20];
    (0..256).for_each(|_| std::io::Write::write_all(&mut &file, &block).unwrap());
    let path = configuration("files-half", &places.proxy(&binary, COPY));
    for (signal, drain) in [("TERM", "1ms"), ("KILL", "1s"), ("TERM", "30s")] {
        // A killed process leaves a partial file and a lock: what it left does not say that the next process has begun.
        let left_behind = places.names("out");
        let is_begun = |name: &String| name.starts_with(".busbar-") && !left_behind.contains(name);
        let mut bus = Process::run(&path, &["--set", &format!("limits.drain={drain}")]);
        until("it is being written", || {
            places.names("out").iter().any(is_begun) || places.names("in").is_empty()
        });
        bus.signal(signal);
        let _ = bus.wait();
        let (left, written) = (places.path("in/large.bin").exists(), places.path("out/large.bin"));
        let length = written.metadata().map_or(0, |metadata| metadata.len());
        assert!(length == 256 << 20 || left && length == 0, "{signal}: {length}\n{}", bus.stderr());
        if signal == "TERM" {
            assert!(
                !places.path("in/large.bin.lock").exists(),
                "{signal}: the lock is left\n{}",
                bus.stderr()
            );
        }
        if !left {
            return;
        }
    }
    let _bus = Process::run(&path, &[]);
    until("it is copied", || places.names("in").is_empty());
    assert_eq!(places.path("out/large.bin").metadata().unwrap().len(), 256 << 20);
}

/// A program that reads the directory takes a fault of the disk for what it is, wherever it comes.
#[test]
fn a_full_disk() {
    let places = Places::new("full");
    let Some(mounted) = Mounted::of(places.path("done"), "64k") else { return };
    let parameters: Vec<_> =
        MOVE.into_iter().chain([("transport.vfs.FailedRecordNextRetryDuration", "200")]).collect();
    let append = COPY.replace("vfs:@out@", "vfs:@out@/log?transport.vfs.Append=true");
    places.put("in/a.txt", "small;");
    places.put("in/b.txt", [b'b'; 200 << 10]);
    places.put("in/c.txt", "small;");
    let bus = Process::run(&configuration("files-full", &places.proxy(&parameters, &append)), &[]);
    bus.says("could not be moved", 1);
    // Files are moved to another file system, and what does not fit stays, and is processed once.
    until("the others are moved", || places.names("done") == ["a.txt", "c.txt"]);
    bus.says("No space left", 1);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(places.names("in"), ["b.txt"]);
    assert_eq!(places.read("out/log").len(), (200 << 10) + 12);
    mounted.again("size=1m");
    until("there is room", || places.names("in").is_empty());
    assert_eq!(places.read("out/log").len(), (200 << 10) + 12);
}
