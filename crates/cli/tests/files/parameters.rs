//! Effects of parameters that no other test checks.

use super::*;

/// A sequence that fails where the name says so, and copies otherwise.
fn copy_or_fail() -> String {
    let copy = COPY.replace("<inSequence>", "").replace("</inSequence>", "");
    format!(
        "<inSequence><filter source='$trp:FILE_NAME' regex='bad.*'><then><throwError type='X' errorMessage='no'/></then><else>{copy}</else></filter></inSequence>"
    )
}

#[test]
fn young_files_locked_files_and_pauses() {
    let places = Places::new("more");
    places.put("in/locked.txt", "x");
    places.put("in/locked.txt.lock", "somebody");
    places.put("in/young.txt", "x");
    let old = SystemTime::now() - Duration::from_secs(60);
    fs::File::open(places.path("in/locked.txt")).unwrap().set_modified(old).unwrap();
    let parameters = [
        ("transport.vfs.MinimumAge", "2"),
        ("transport.vfs.AutoLockRelease", "true"),
        ("transport.vfs.AutoLockReleaseInterval", "1000"),
        ("transport.vfs.waitTimeBeforeRead", "20"),
        ("transport.vfs.FileProcessInterval", "20"),
        ("transport.vfs.Build", "true"),
        ("transport.vfs.MaxRetryCount", "1"),
    ];
    let began = Instant::now();
    let bus = Process::run(&configuration("files-more", &places.proxy(&parameters, COPY)), &[]);
    until("it is seen", || facts(&bus, "proxy/P")["passed_over"]["age"] == 1);
    until("the lock was left behind", || places.path("out/locked.txt").exists());
    assert!(began.elapsed() >= Duration::from_millis(800), "the lock was not respected");
    until("it is old enough", || places.path("out/young.txt").exists());
    assert!(began.elapsed() >= Duration::from_millis(1800), "too young");
}

#[test]
fn a_lock_of_another_machine_stands() {
    let places = Places::new("far");
    places.put("in/a.txt", "x");
    places.put("in/a.txt.lock", "another-machine 1");
    let parameters = [
        ("transport.vfs.AutoLockRelease", "true"),
        ("transport.vfs.AutoLockReleaseInterval", "0"),
        ("transport.vfs.LockReleaseSameNode", "true"),
    ];
    let bus = Process::run(&configuration("files-far", &places.proxy(&parameters, COPY)), &[]);
    until("it is locked", || facts(&bus, "proxy/P")["passed_over"]["locked"] == 1);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(places.names("in"), ["a.txt", "a.txt.lock"]);
}

#[test]
fn directories_inside_and_a_file_that_grows() {
    let places = Places::new("inside");
    fs::create_dir_all(places.path("in/deep/er")).unwrap();
    places.put("in/deep/er/a.txt", "deep");
    fs::write(places.path("in/growing.txt"), "0").unwrap();
    let growing = places.path("in/growing.txt");
    let all = format!("{}/*", places.uri("in"));
    let parameters = [("transport.vfs.FileURI", all.as_str()), ("transport.vfs.CheckSizeInterval", "300")];
    let writes = std::thread::spawn(move || {
        use std::io::Write;
        for number in 1..20 {
            std::thread::sleep(Duration::from_millis(100));
            // Were it taken, it would be gone, and come again without its beginning.
            let file = fs::OpenOptions::new().append(true).open(&growing);
            file.unwrap_or_else(|error| panic!("taken after {number}: {error}")).write_all(b"x").unwrap();
        }
    });
    let bus = Process::run(&configuration("files-inside", &places.proxy(&parameters, COPY)), &[]);
    until("it grows", || facts(&bus, "proxy/P")["passed_over"]["growing"] == 1);
    writes.join().unwrap();
    until("both are copied", || places.names("out") == ["a.txt", "growing.txt"]);
    assert_eq!(places.read("out/growing.txt").len(), 20);
    until("nothing is left", || places.names("in/deep/er").is_empty());
    assert!(places.path("in/deep/er").is_dir());
}

/// A file that grows while its message is on its way is not confirmed: it comes again as it is then.
#[test]
fn a_file_that_grows_while_it_is_in_work() {
    let places = Places::new("grown");
    let backend = Process::backend(&["--delay", "1000"]);
    let copy = COPY.replace("<inSequence>", "").replace("</inSequence>", "");
    let sequence = format!(
        "<inSequence><log level='custom'><property name='took' expression='$trp:FILE_LENGTH'/></log><property name='FILE_LENGTH' scope='transport' action='remove'/>\
         <call blocking='true'><endpoint><address uri='http://{}/echo'/></endpoint></call>{copy}</inSequence>",
        backend.http()
    );
    places.put("in/a.txt", "one;");
    let bus = Process::run(&configuration("files-grown", &places.proxy(&MOVE, &sequence)), &[]);
    bus.says("took = 4", 1);
    fs::OpenOptions::new()
        .append(true)
        .open(places.path("in/a.txt"))
        .map(|mut file| std::io::Write::write_all(&mut file, b"two;"))
        .unwrap()
        .unwrap();
    bus.says("was changed while it was processed", 1);
    bus.says("took = 8", 1);
    until("it is moved", || places.names("done") == ["a.txt"]);
    assert_eq!(places.read("done/a.txt"), "one;two;");
}

#[test]
fn what_cannot_be_moved_goes_to_the_third_place() {
    let places = Places::new("third");
    fs::remove_dir(places.path("failed")).unwrap();
    fs::write(places.path("failed"), "no directory").unwrap();
    let stuck = places.uri("done/stuck");
    let parameters: Vec<_> = MOVE_FAILED
        .into_iter()
        .chain([
            ("transport.vfs.MoveAfterFailedMove", stuck.as_str()),
            ("transport.vfs.CreateFolder", "true"),
        ])
        .collect();
    places.put("in/bad.txt", "x");
    places.put("in/good.txt", "x");
    let bus = Process::run(&configuration("files-third", &places.proxy(&parameters, &copy_or_fail())), &[]);
    until("both are away", || places.names("in").is_empty());
    assert_eq!(
        (places.names("done/stuck"), places.names("out")),
        (vec!["bad.txt".to_owned()], vec!["good.txt".to_owned()])
    );
    bus.says("it was moved to", 1);
}

/// Two services share a directory and what is written down of files that cannot be moved: neither forgets for the other.
#[test]
fn services_that_share_what_is_written_down() {
    let places = Places::new("written");
    let proxy = |name: &str| {
        let pattern = format!("{name}.*");
        let records = [
            ("transport.vfs.FileNamePattern", pattern.as_str()),
            ("transport.vfs.FailedRecordsFileDestination", "@failed@"),
            ("transport.vfs.FailedRecordNextRetryDuration", "100"),
        ];
        let parameters: Vec<_> = MOVE.into_iter().chain(records).collect();
        let append = COPY.replace("vfs:@out@", "vfs:@out@/log.txt?transport.vfs.Append=true");
        places.proxy(&parameters, &append).replace("name='P'", &format!("name='{name}'"))
    };
    let path = configuration("files-written", &[proxy("A"), proxy("B")].concat());
    fs::remove_dir(places.path("done")).unwrap();
    let bus = Process::run(&path, &[]);
    for name in ["A1", "B1", "A2", "B2"] {
        places.put(&format!("in/{name}"), format!("{name};"));
        until("it is remembered", || {
            bus.stderr().matches("it is not processed again").count() == places.names("in").len()
        });
    }
    drop(bus);
    let log = places.read("out/log.txt");
    assert_eq!(log, "A1;B1;A2;B2;");
    let bus = Process::run(&path, &[]);
    until("both looked", || {
        ["A", "B"].iter().all(|name| !facts(&bus, &format!("proxy/{name}"))["polled"].is_null())
    });
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(places.read("out/log.txt"), log, "{}", bus.stderr());
    fs::create_dir(places.path("done")).unwrap();
    until("all are moved", || places.names("done") == ["A1", "A2", "B1", "B2"]);
    assert_eq!(places.read("out/log.txt"), log);
    until("nothing is remembered", || places.read("failed/vfs-move-failed-records.properties").is_empty());
}

/// A file that somebody takes away while its message is on its way: it counts as processed, the log says where it is not, and what comes next is taken.
#[test]
fn a_file_that_vanishes_while_it_is_in_work() {
    for action in ["MOVE", "DELETE"] {
        let places = Places::new("vanished");
        let backend = Process::backend(&["--delay", "1000"]);
        let sequence = format!(
            "<inSequence><log level='custom'><property name='took' expression='$trp:FILE_NAME'/></log><property name='FILE_LENGTH' scope='transport' action='remove'/>\
             <call blocking='true'><endpoint><address uri='http://{}/echo'/></endpoint></call></inSequence>",
            backend.http()
        );
        let parameters =
            [("transport.vfs.ActionAfterProcess", action), ("transport.vfs.MoveAfterProcess", "@done@")];
        let parameters = if action == "MOVE" { &parameters[..] } else { &parameters[..1] };
        places.put("in/a.txt", "gone");
        let bus = Process::run(&configuration("files-vanished", &places.proxy(parameters, &sequence)), &[]);
        bus.says("took = a.txt", 1);
        fs::remove_file(places.path("in/a.txt")).unwrap();
        until("it has ended", || facts(&bus, "proxy/P")["processed"] == 1);
        let line = "a.txt was taken away by somebody";
        match action {
            // The log comes behind the figures.
            "MOVE" => bus.says(line, 1),
            _ => assert!(!bus.stderr().contains(line), "{}", bus.stderr()),
        }
        assert_eq!(facts(&bus, "proxy/P")["remembered"], 0);
        places.put("in/b.txt", "next");
        until("the next one is taken", || facts(&bus, "proxy/P")["processed"] == 2);
        until("nothing is left", || places.names("in").is_empty());
    }
}
