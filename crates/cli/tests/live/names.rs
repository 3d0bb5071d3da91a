//! Files and names that change places, and files that become worse.

use super::*;

fn rename(root: &Path, from: &str, to: &str) {
    let path = |name: &str| root.join(format!("proxy-services/{name}.xml"));
    fs::rename(path(from), path(to)).unwrap();
}

/// What is in force of an artifact outlives whatever becomes of its file, under whatever name, while requests come all the time.
#[test]
fn files_that_change_their_names_and_become_worse() {
    let root = directory("names");
    let bus = {
        put(&root, "a", &proxy("A", 1));
        put(&root, "b", &proxy("B", 1));
        Process::run(&root, &[])
    };
    let over = AtomicBool::new(false);
    let reload = |what: &str, wanted: [&str; 2]| {
        let (status, response) = admin(&bus, "POST", "/reload");
        assert_eq!(status, 200, "{what}: {response}");
        assert_eq!([version(&bus, "A"), version(&bus, "B")], wanted, "{what}: {response}");
    };
    std::thread::scope(|scope| {
        let (bus, over) = (&bus, &over);
        let asking: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(move || {
                    let mut asked = 0;
                    while !over.load(Ordering::Relaxed) {
                        for name in ["A", "B"] {
                            assert_ne!(version(bus, name), "404", "{name}");
                            asked += 1;
                        }
                    }
                    asked
                })
            })
            .collect();
        struct Over<'a>(&'a AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let ends = Over(over);
        put(&root, "a", &proxy("B", 2));
        put(&root, "b", &proxy("A", 2));
        reload("their names change places", ["2", "2"]);
        rename(&root, "a", "z");
        reload("a file has another name", ["2", "2"]);
        rename(&root, "z", "y");
        put(&root, "y", &faulty("B"));
        reload("it has another name and is faulty", ["2", "2"]);
        put(&root, "y", &proxy("B", 3).replace("</target>", ""));
        reload("it cannot be read", ["2", "2"]);
        put(&root, "y", "");
        reload("nothing is in it", ["2", "2"]);
        rename(&root, "y", "x");
        put(&root, "x", &faulty("B"));
        reload("another name once more", ["2", "2"]);
        put(&root, "x", &proxy("", 3));
        reload("it has no name", ["2", "2"]);
        put(&root, "x", &proxy("B", 3));
        reload("it is mended", ["2", "3"]);
        put(&root, "0", &proxy("A", 9));
        reload("another file has its name, and sorts first", ["2", "3"]);
        put(&root, "b", &proxy("A", 4));
        reload("the one in force changes", ["4", "3"]);
        put(&root, "b", &faulty("A"));
        reload("the one in force is faulty", ["4", "3"]);
        fs::remove_file(root.join("proxy-services/b.xml")).unwrap();
        reload("it is gone: the other one is in force", ["9", "3"]);
        drop(ends);
        for one in asking {
            assert!(one.join().unwrap() > 0);
        }
    });
}

/// Reloads, rollbacks, signals, changes of files and switches at once: nothing hangs, no request is lost, and what is there last is in force.
#[test]
fn everything_at_once() {
    let root = directory("at-once");
    for name in ["A", "B", "C"] {
        put(&root, name, &proxy(name, 1));
    }
    let bus = Process::run(&root, &[]);
    let end = Instant::now() + Duration::from_secs(3);
    std::thread::scope(|scope| {
        let bus = &bus;
        let root = &root;
        for name in ["A", "B"] {
            scope.spawn(move || {
                while Instant::now() < end {
                    let version = version(bus, name);
                    assert!(
                        !["404", "500", "503"].contains(&version.as_str()),
                        "{name}: {version}\n{}",
                        bus.stderr()
                    );
                }
            });
        }
        for worker in 0..4_usize {
            scope.spawn(move || {
                let mut turn = worker;
                while Instant::now() < end {
                    turn += 1;
                    let allowed: &[u16] = match turn % 5 {
                        0 => {
                            let (status, _) = admin(bus, "POST", "/reload");
                            assert!([200, 409].contains(&status), "reload: {status}");
                            continue;
                        }
                        1 => {
                            let number = in_force(bus).saturating_sub(turn as u64 % 3);
                            let (status, response) =
                                admin(bus, "POST", &format!("/generations/{number}/rollback"));
                            assert!([200, 404, 409].contains(&status), "rollback: {status} {response}");
                            continue;
                        }
                        2 => {
                            bus.signal("HUP");
                            continue;
                        }
                        3 => {
                            let text = if turn.is_multiple_of(2) { proxy("B", turn) } else { faulty("B") };
                            put(root, "B", &text);
                            continue;
                        }
                        _ => &[200],
                    };
                    let action = if turn.is_multiple_of(2) { "stop" } else { "start" };
                    let (status, response) = admin(bus, "POST", &format!("/artifacts/proxy/C/{action}"));
                    assert!(allowed.contains(&status), "{action}: {status} {response}");
                }
            });
        }
    });
    put(&root, "B", &proxy("B", 77));
    until("the last one is in force", || {
        admin(&bus, "POST", "/reload");
        version(&bus, "B") == "77"
    });
    let all = json(&bus, "GET", "/generations");
    let numbers: Vec<u64> =
        all["generations"].as_array().unwrap().iter().map(|one| one["number"].as_u64().unwrap()).collect();
    assert!(numbers.len() <= 10 && numbers.is_sorted_by(|a, b| a > b), "{numbers:?}");
    assert_eq!(all["in_force"].as_u64(), numbers.first().copied());
    assert!(!bus.stderr().contains("panicked"), "{}", bus.stderr());
}
