//! Live deployment from outside: the configuration is watched, generations are compared and rolled back to, what is switched stays so.
#![allow(clippy::unwrap_used)] // helpers of tests

#[path = "live/libraries.rs"]
mod libraries;
#[path = "live/names.rs"]
mod names;
mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use support::{Process, ask, exchange, free_port, until};

const QUICK: [&str; 4] = ["--set", "deploy.quiet=50ms", "--set", "deploy.interval=200ms"];

/// A directory of its own for a test, with nothing in it.
fn directory(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("live-{name}"));
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(root.join("proxy-services")).unwrap();
    root
}

/// A proxy that answers with its version.
fn proxy(name: &str, version: usize) -> String {
    format!(
        "<proxy xmlns='http://ws.apache.org/ns/synapse' name='{name}'><target><inSequence>\n\
         <property name='X-Version' value='{version}' scope='transport'/>\n<respond/></inSequence></target></proxy>\n"
    )
}

fn faulty(name: &str) -> String {
    proxy(name, 0).replace("<respond/>", "<sned/>")
}

/// In one step: a file that is still empty would be one generation more.
fn put(root: &Path, name: &str, text: &str) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let written = root.with_extension(format!("{}.new", COUNT.fetch_add(1, Ordering::Relaxed)));
    fs::write(&written, text).unwrap();
    fs::rename(written, root.join(format!("proxy-services/{name}.xml"))).unwrap();
}

/// The version that answers for a proxy, or the status that does.
fn version(bus: &Process, name: &str) -> String {
    let (status, head, _) = ask(bus.http(), "POST", &format!("/services/{name}"), b"<a/>").unwrap();
    match head.split_once("X-Version: ") {
        Some((_, version)) => version.split("\r\n").next().unwrap().to_owned(),
        None => status.to_string(),
    }
}

fn admin(bus: &Process, method: &str, path: &str) -> (u16, String) {
    let (status, _, body) = ask(bus.field("admin"), method, path, b"").unwrap();
    (status, String::from_utf8(body).unwrap())
}

fn json(bus: &Process, method: &str, path: &str) -> Value {
    let (status, body) = admin(bus, method, path);
    assert_eq!(status, 200, "{method} {path}: {body}");
    serde_json::from_str(&body).unwrap()
}

fn in_force(bus: &Process) -> u64 {
    json(bus, "GET", "/generations")["in_force"].as_u64().unwrap()
}

/// So long nothing may happen that must not: several times of what is set.
fn a_while() {
    std::thread::sleep(Duration::from_millis(700));
}

#[test]
fn what_changes_in_a_directory_comes_into_force() {
    let root = directory("changes");
    put(&root, "A", &proxy("A", 1));
    let bus = Process::watching(&root, &QUICK);
    let becomes = |name: &str, wanted: &str| until(name, || version(&bus, name) == wanted);
    put(&root, "A", &proxy("A", 2));
    becomes("A", "2");
    put(&root, "B", &proxy("B", 1));
    becomes("B", "1");
    // Faulty: the old one goes on, and the log has the place.
    put(&root, "A", &faulty("A"));
    bus.says("the proxy service `A` stays in force as it was: there is no mediator `sned`", 1);
    bus.says("proxy-services/A.xml:3:2", 1);
    assert_eq!(version(&bus, "A"), "2");
    // Half of it, and nothing of it.
    put(&root, "A", &proxy("A", 3)[..60]);
    bus.says("the proxy service `A` stays in force as it was: ", 2);
    put(&root, "A", "");
    bus.says("the proxy service `A` stays in force as it was: ", 3);
    assert_eq!(version(&bus, "A"), "2");
    put(&root, "A", &proxy("A", 3));
    becomes("A", "3");
    // A link that leads nowhere is a file that cannot be read, and so is a directory of that name none.
    // In one step: a moment without the file would end the service.
    symlink("nowhere", root.join("link")).unwrap();
    fs::rename(root.join("link"), root.join("proxy-services/A.xml")).unwrap();
    bus.says("the proxy service `A` stays in force as it was: the file cannot be read", 1);
    assert_eq!(version(&bus, "A"), "3");
    fs::remove_file(root.join("proxy-services/A.xml")).unwrap();
    becomes("A", "404");
    let before = in_force(&bus);
    for name in [".A.xml.swp", "A.xml~", "#A.xml#", "A.xml.tmp", "A.xml.back"] {
        fs::write(root.join("proxy-services").join(name), proxy("A", 9)).unwrap();
    }
    a_while();
    assert_eq!((in_force(&bus), version(&bus, "A").as_str()), (before, "404"), "copies of editors");
    // A kind of artifact that was not there, in a directory that was not.
    fs::create_dir_all(root.join("api")).unwrap();
    let api = "<api xmlns='http://ws.apache.org/ns/synapse' name='R' context='/r'><resource methods='GET'><inSequence><respond/></inSequence></resource></api>";
    fs::write(root.join("api/R.xml"), api).unwrap();
    until("the API", || ask(bus.http(), "GET", "/r", b"").unwrap().0 == 200);
    // A file that is written in pieces is not taken in between.
    let mut file = fs::File::create(root.join("proxy-services/C.xml")).unwrap();
    for piece in proxy("C", 1).as_bytes().chunks(40) {
        file.write_all(piece).unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(file);
    becomes("C", "1");
    assert!(!bus.stderr().contains("proxy service `C`"), "{}", bus.stderr());
    // Nothing is left of it.
    fs::remove_dir_all(&root).unwrap();
    bus.says("not reloaded: ", 1);
    assert_eq!(version(&bus, "B"), "1");
    fs::create_dir_all(root.join("proxy-services")).unwrap();
    put(&root, "B", &proxy("B", 2));
    becomes("B", "2");
}

#[test]
fn a_directory_that_is_swapped_as_a_whole_is_taken_as_a_whole() {
    let root = directory("swapped");
    let write = |directory: &str, number: usize| {
        let path = root.join(directory);
        fs::create_dir_all(&path).unwrap();
        for name in ["P", "Q"] {
            fs::write(path.join(format!("{name}.xml")), proxy(name, number)).unwrap();
        }
    };
    let both = |bus: &Process| [version(bus, "P"), version(bus, "Q")].join(" ");
    // A ConfigMap: links into `..data`, which is a link itself.
    let map = root.join("map");
    fs::create_dir_all(&map).unwrap();
    write("map/..1", 1);
    symlink("..1", map.join("..data")).unwrap();
    for name in ["P.xml", "Q.xml"] {
        symlink(format!("..data/{name}"), map.join(name)).unwrap();
    }
    let bus = Process::watching(&map, &QUICK);
    assert_eq!(both(&bus), "1 1");
    write("map/..2", 2);
    symlink("..2", map.join("..tmp")).unwrap();
    fs::rename(map.join("..tmp"), map.join("..data")).unwrap();
    fs::remove_dir_all(map.join("..1")).unwrap();
    until("the map", || both(&bus) == "2 2");
    assert_eq!(in_force(&bus), 2);
    // The path itself is a link; a part of the way to it is.
    write("releases/1/conf", 1);
    symlink("1", root.join("releases/now")).unwrap();
    symlink("releases/1/conf", root.join("conf")).unwrap();
    let (direct, indirect) = (
        Process::watching(&root.join("conf"), &QUICK),
        Process::watching(&root.join("releases/now/conf"), &QUICK),
    );
    write("releases/2/conf", 2);
    for (target, link) in [("releases/2/conf", "conf"), ("2", "releases/now")] {
        symlink(target, root.join("new")).unwrap();
        fs::rename(root.join("new"), root.join(link)).unwrap();
    }
    until("a link", || both(&direct) == "2 2");
    until("a link on the way", || both(&indirect) == "2 2");
    // The directory is moved away, and another one is moved to its place.
    write("plain", 3);
    write("plain.new", 4);
    let bus = Process::watching(&root.join("plain"), &QUICK);
    fs::rename(root.join("plain"), root.join("plain.old")).unwrap();
    fs::rename(root.join("plain.new"), root.join("plain")).unwrap();
    until("another directory", || both(&bus) == "4 4");
}

#[test]
fn a_storm_of_changes_is_few_generations() {
    let root = directory("storm");
    let name = |number: usize| format!("P{number}");
    let write = |version: usize| {
        (0..1000).for_each(|number| put(&root, &name(number), &proxy(&name(number), version)));
    };
    write(1);
    let bus = Process::watching(&root, &["--set", "deploy.quiet=300ms"]);
    for round in 2..5 {
        write(round);
    }
    until("the storm", || [0, 500, 999].iter().all(|one| version(&bus, &name(*one)) == "4"));
    let after = in_force(&bus);
    assert!(after <= 5, "{after} generations");
    for number in 0..999 {
        fs::remove_file(root.join(format!("proxy-services/P{number}.xml"))).unwrap();
    }
    until("what is removed", || version(&bus, "P0") == "404" && version(&bus, "P998") == "404");
    assert_eq!(version(&bus, "P999"), "4");
}

#[test]
fn what_the_server_says_of_hot_deployment_is_honoured() {
    for (setting, file, text, watched) in [
        ("", "conf/deployment.toml", "[server]\nhot_deployment = false\n", false),
        ("deploy.watch=true", "conf/deployment.toml", "[server]\nhot_deployment = false\n", true),
        (
            "",
            "conf/axis2/axis2.xml",
            "<axisconfig name='a'><parameter name='hotdeployment'>false</parameter></axisconfig>",
            false,
        ),
        ("deploy.watch=false", "conf/file.properties", "a=b\n", false),
        ("", "conf/deployment.toml", "[server]\nhot_deployment = true\n", true),
    ] {
        let root = directory("server");
        put(&root, "A", &proxy("A", 1));
        let file = root.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        let set = if setting.is_empty() { vec![] } else { vec!["--set", setting] };
        let bus = Process::watching(&root, &[&QUICK[..], &set[..]].concat());
        put(&root, "A", &proxy("A", 2));
        match watched {
            true => until(text, || version(&bus, "A") == "2"),
            false => {
                a_while();
                assert_eq!(version(&bus, "A"), "1", "{text} {setting}");
            }
        }
    }
}

#[test]
fn generations_are_listed_compared_and_rolled_back_to() {
    let root = directory("generations");
    put(&root, "A", &proxy("A", 1).replace("<respond/>", "<property name='db.password' value='hunter2'/><property value='hunter2' name='token'>hunter2</property><respond/>"));
    put(&root, "B", &proxy("B", 1));
    let bus = Process::run(&root, &["--set", "deploy.generations=4"]);
    let reload = || json(&bus, "POST", "/reload");
    put(&root, "A", &proxy("A", 2));
    put(&root, "C", &proxy("C", 2));
    reload();
    put(&root, "A", &faulty("A"));
    fs::remove_file(root.join("proxy-services/B.xml")).unwrap();
    reload();
    let all = json(&bus, "GET", "/generations");
    assert_eq!((all["in_force"].as_u64(), &all["rolled_back_to"]), (Some(3), &Value::Null), "{all}");
    let of = |number: u64| json(&bus, "GET", &format!("/generations/{number}"));
    assert_eq!((of(1)["cause"].as_str(), of(2)["cause"].as_str()), (Some("start"), Some("POST /reload")));
    assert_eq!(
        (of(2)["added"][0].as_str(), of(2)["changed"][0].as_str()),
        (Some("proxy/C"), Some("proxy/A"))
    );
    assert_eq!((of(3)["removed"][0].as_str(), of(3)["in_force"].as_bool()), (Some("proxy/B"), Some(true)));
    let broken = &of(3)["faulty"][0];
    assert_eq!(
        (broken["artifact"].as_str(), broken["state"].as_str()),
        (Some("proxy/A"), Some("in force as before"))
    );
    assert!(broken["place"].as_str().unwrap().ends_with("proxy-services/A.xml:3:2"), "{broken}");
    let (status, text) = admin(&bus, "GET", "/generations/1/diff/3");
    assert_eq!(status, 200);
    for part in [
        "--- proxy/A\tgeneration 1 ",
        "-<property name='X-Version' value='1' scope='transport'/>\n",
        "+<property name='X-Version' value='2' scope='transport'/>\n",
        "--- proxy/B\tgeneration 1 ",
        "+++ /dev/null\n",
        "+++ proxy/C\tgeneration 3 ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("hunter2"), "{text}");
    assert_eq!(admin(&bus, "GET", "/generations/3/diff"), admin(&bus, "GET", "/generations/2/diff/3"));
    assert_eq!(admin(&bus, "GET", "/generations/2/diff/2"), (200, String::new()));

    // Back to the first: what is faulty by now is not.
    let done = json(&bus, "POST", "/generations/1/rollback");
    assert!(
        done["message"]
            .as_str()
            .unwrap()
            .starts_with("rolled back to generation 1: 2 artifacts, generation 4"),
        "{done}"
    );
    let versions = || ["A", "B", "C"].map(|name| version(&bus, name)).join(" ");
    assert_eq!(versions(), "1 1 404");
    assert_eq!(json(&bus, "GET", "/generations")["rolled_back_to"], 1);
    assert_eq!(of(4)["cause"], "rollback to 1");
    // Log rotation (SIGHUP) does not end a rollback.
    bus.signal("HUP");
    bus.says("the rollback to generation 1 holds", 1);
    assert_eq!(versions(), "1 1 404");
    reload();
    assert_eq!(
        (versions().as_str(), json(&bus, "GET", "/generations")["rolled_back_to"].as_u64()),
        ("1 404 2", None)
    );
    // A change ends it, too.
    json(&bus, "POST", "/generations/2/rollback");
    assert_eq!(versions(), "2 1 2");
    put(&root, "C", &proxy("C", 3));
    bus.signal("HUP");
    bus.says("reloaded: ", 4);
    assert_eq!(versions(), "2 404 3");

    for (method, path, status) in [
        ("GET", "/generations/1", 404),
        ("GET", "/generations/x", 404),
        ("GET", "/generations/7/diff/1", 404),
        ("GET", "/generations/4/diff", 404),
        ("POST", "/generations/1/rollback", 404),
        ("POST", "/generations/x/rollback", 404),
        ("POST", "/generations/-1/rollback", 404),
        ("POST", "/generations/7/rollback", 409),
        ("GET", "/generations/7/rollback", 405),
        ("PUT", "/generations/7/rollback", 405),
        ("DELETE", "/generations/7", 405),
        ("POST", "/generations", 405),
    ] {
        let (found, body) = admin(&bus, method, path);
        assert_eq!(found, status, "{method} {path}: {body}");
        assert!(body.contains("\"error\": "), "{method} {path}: {body}");
    }
    assert_eq!(json(&bus, "GET", "/generations")["generations"].as_array().unwrap().len(), 4);
}

/// Daily log rotation does not push changes out of the list of generations.
#[test]
fn the_same_configuration_read_again_is_listed_once() {
    let root = directory("again");
    put(&root, "A", &proxy("A", 1));
    let bus = Process::run(&root, &[]);
    put(&root, "A", &proxy("A", 2));
    let changed = json(&bus, "POST", "/reload");
    assert_eq!(changed["generation"], 2);
    let before = json(&bus, "GET", "/generations/2");
    for time in 0..12 {
        bus.signal("HUP");
        bus.says("reloaded: 1 artifact, generation ", time + 2);
    }
    let all = json(&bus, "GET", "/generations");
    let numbers: Vec<_> =
        all["generations"].as_array().unwrap().iter().map(|one| one["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [14, 1]);
    let now = &all["generations"][0];
    assert_eq!(
        (&now["since"], &now["cause"], &now["changed"]),
        (&before["since"], &before["cause"], &before["changed"])
    );
    assert_eq!(json(&bus, "POST", "/generations/1/rollback")["generation"], 15);
    assert_eq!(version(&bus, "A"), "1");
}

/// A checkout, or a copy that keeps no times, touches files that are what they were.
#[test]
fn files_that_are_touched_make_no_generation() {
    let root = directory("touched");
    put(&root, "A", &proxy("A", 1));
    put(&root, "B", &faulty("B"));
    let bus = Process::watching(&root, &QUICK);
    put(&root, "A", &proxy("A", 2));
    until("the change", || version(&bus, "A") == "2");
    for _ in 0..4 {
        let before = in_force(&bus);
        put(&root, "A", &proxy("A", 2));
        until("the touch", || in_force(&bus) > before);
    }
    let all = json(&bus, "GET", "/generations");
    let listed = all["generations"].as_array().unwrap();
    assert_eq!((listed.len(), listed[0]["changed"][0].as_str()), (2, Some("proxy/A")), "{all}");
    json(&bus, "POST", "/generations/1/rollback");
    assert_eq!(version(&bus, "A"), "1");
    // What ends a rollback is what has changed, and a file that was touched has been put there again.
    put(&root, "B", &proxy("B", 1));
    until("the end of the rollback", || version(&bus, "B") == "1");
    assert_eq!(version(&bus, "A"), "2");
}

/// A rollback does not wait for a reload that waits for a server.
#[test]
fn a_rollback_beside_a_reload_that_hangs_is_refused() {
    let root = directory("hanging");
    put(&root, "A", &proxy("A", 1));
    let bus = Process::watching(&root, &QUICK);
    put(&root, "A", &proxy("A", 2));
    until("the change", || version(&bus, "A") == "2");
    // It accepts, and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    fs::create_dir_all(root.join("local-entries")).unwrap();
    let entry = format!(
        "<localEntry xmlns='http://ws.apache.org/ns/synapse' key='k' src='http://{}/'/>",
        silent.local_addr().unwrap()
    );
    fs::write(root.join("local-entries/k.xml"), entry).unwrap();
    let (_held, _) = silent.accept().unwrap();
    let began = Instant::now();
    let (status, response) = admin(&bus, "POST", "/generations/1/rollback");
    assert!(status == 409 && response.contains("a reload is in progress"), "{status} {response}");
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    assert_eq!(version(&bus, "A"), "2");
}

#[test]
fn a_state_file_that_is_a_link_is_followed() {
    let root = directory("linked");
    put(&root, "A", &proxy("A", 1));
    let volume = root.join("volume");
    fs::create_dir_all(&volume).unwrap();
    for (name, exists) in [("there", true), ("not-yet", false)] {
        let (target, link) = (volume.join(name), root.join(format!("{name}.link")));
        if exists {
            fs::write(&target, "{\"version\":1,\"artifacts\":[],\"endpoints\":[]}").unwrap();
        }
        symlink(&target, &link).unwrap();
        let bus = Process::run(&root, &["--set", &format!("deploy.state={}", link.display())]);
        let done = json(&bus, "POST", "/artifacts/proxy/A/stop");
        assert_eq!(done["survives_restart"], true, "{done}");
        assert!(link.is_symlink() && fs::read_to_string(&target).unwrap().contains("\"A\""), "{name}");
    }
}

/// A resource of the registry that has changed, or is gone, is what it was; what a flow wrote stays.
#[test]
fn a_rollback_has_the_documents_that_it_had() {
    let root = directory("documents");
    let resource = root.join("registry/governance/t.txt");
    fs::create_dir_all(resource.parent().unwrap()).unwrap();
    let says = "<proxy xmlns='http://ws.apache.org/ns/synapse' name='A'><target><inSequence>\
        <payloadFactory media-type='text'><format key='gov:t.txt'/><args/></payloadFactory><respond/></inSequence></target></proxy>";
    put(&root, "A", says);
    fs::write(&resource, "one").unwrap();
    let bus = Process::watching(&root, &QUICK);
    let response = || String::from_utf8(ask(bus.http(), "POST", "/services/A", b"<a/>").unwrap().2).unwrap();
    assert_eq!(response(), "one");
    fs::write(&resource, "two").unwrap();
    until("the document", || in_force(&bus) == 2);
    assert_eq!(response(), "two");
    assert_eq!(json(&bus, "GET", "/generations/2")["documents"][0], "gov:t.txt");
    assert!(admin(&bus, "GET", "/generations/2/diff").1.contains("-one\n+two\n"));
    json(&bus, "POST", "/generations/1/rollback");
    assert_eq!(response(), "one");
    a_while();
    assert_eq!(response(), "one", "it holds: {}", bus.stderr());
    fs::remove_file(&resource).unwrap();
    until("the end of the rollback", || in_force(&bus) == 4);
    json(&bus, "POST", "/generations/1/rollback");
    assert_eq!(response(), "one", "{}", bus.stderr());
}

const SWITCHED: &str = "<definitions xmlns='http://ws.apache.org/ns/synapse'>
<proxy name='P'><target><inSequence><respond/></inSequence></target></proxy>
<api name='R' context='/r'><resource methods='GET'><inSequence><respond/></inSequence></resource></api>
<endpoint name='E'><address uri='http://127.0.0.1:1/'><suspendOnFailure><initialDuration>60000</initialDuration></suspendOnFailure></address></endpoint>
<proxy name='Calls'><target><inSequence><call><endpoint key='E'/></call><respond/></inSequence><faultSequence><respond/></faultSequence></target></proxy>
<proxy name='Inline'><target><inSequence><call>
<endpoint><address uri='http://127.0.0.1:1/?password=s3'/></endpoint></call><respond/></inSequence><faultSequence><respond/></faultSequence></target></proxy>
<messageStore name='s'/><sequence name='q'><drop/></sequence>
<messageProcessor name='M' class='x.SamplingProcessor' messageStore='s'><parameter name='sequence'>q</parameter></messageProcessor>
<task name='T' class='org.apache.synapse.startup.tasks.MessageInjector'><trigger interval='3600'/>
<property xmlns:task='http://www.wso2.org/products/wso2commons/tasks' name='message'><a/></property>
<property xmlns:task='http://www.wso2.org/products/wso2commons/tasks' name='injectTo' value='sequence'/>
<property xmlns:task='http://www.wso2.org/products/wso2commons/tasks' name='sequenceName' value='q'/></task>
<api name='R' context='/v' version='1.2' version-type='url'><resource methods='GET'><inSequence><respond/></inSequence></resource></api>
</definitions>";

#[test]
fn what_is_switched_stays_so_over_reload_and_restart() {
    let root = directory("switched");
    let (file, state) = (root.join("c.xml"), root.join("kept.json"));
    fs::write(&file, SWITCHED).unwrap();
    let set = format!("deploy.state={}", state.display());
    let start = || Process::run(&file, &["--set", &set]);
    let mut bus = start();
    let all = [
        ("proxy", "P"),
        ("api", "R"),
        ("endpoint", "E"),
        ("messageProcessor", "M"),
        ("task", "T"),
        ("api", "R:v1.2"),
    ];
    let states = |bus: &Process| -> Vec<String> {
        let of = |(kind, name): &(&str, &str)| {
            json(bus, "GET", &format!("/artifacts/{kind}/{name}"))["state"].as_str().unwrap().to_owned()
        };
        all.iter().map(of).collect()
    };
    let (on, off) = (
        ["started", "started", "active", "active", "active", "started"],
        ["stopped", "stopped", "off", "inactive", "inactive", "stopped"],
    );
    let act = |bus: &Process, action: &str| {
        for (kind, name) in all {
            let done = json(bus, "POST", &format!("/artifacts/{kind}/{name}/{action}"));
            assert_eq!(done["survives_restart"], true, "{done}");
        }
    };
    assert_eq!(states(&bus), on);
    for (stop, start_again) in [("stop", "start"), ("deactivate", "activate")] {
        act(&bus, stop);
        assert_eq!(states(&bus), off, "{stop}");
        act(&bus, start_again);
        assert_eq!(states(&bus), on, "{start_again}");
    }
    // A suspended endpoint comes back by itself, so nothing is kept of that.
    act_suspend(&bus);
    act(&bus, "resume");
    assert_eq!(states(&bus), on);
    act(&bus, "stop");
    let answers = |bus: &Process| {
        let get = |method: &str, path: &str| ask(bus.http(), method, path, b"").unwrap().0;
        (get("POST", "/services/P"), get("GET", "/r"), get("GET", "/r/none"), get("GET", "/v/1.2"))
    };
    assert_eq!(answers(&bus), (500, 503, 503, 503));
    bus.signal("HUP");
    bus.says("reloaded: ", 1);
    assert_eq!((states(&bus), answers(&bus)), (off.map(str::to_owned).to_vec(), (500, 503, 503, 503)));
    bus.signal("TERM");
    assert_eq!(bus.wait(), Some(0));
    // Killed as well: each decision is on the disk when it is answered.
    let bus = start();
    assert_eq!((states(&bus), answers(&bus)), (off.map(str::to_owned).to_vec(), (500, 503, 503, 503)));
    drop(bus);
    // An artifact that is not there meanwhile finds its state when it is back, whatever else was switched.
    fs::write(&file, SWITCHED.replace("name='P'", "name='Other'").replace("name='E'>", "name='F'>")).unwrap();
    let bus = start();
    json(&bus, "POST", "/artifacts/api/R/start");
    drop(bus);
    fs::write(&file, SWITCHED.replace("<proxy name='P'>", "<proxy name='P' startOnLoad='true' >")).unwrap();
    let bus = start();
    assert_eq!(states(&bus), ["stopped", "started", "off", "inactive", "inactive", "stopped"]);
    // Another definition decides anew.
    drop(bus);
    fs::write(&file, SWITCHED.replace("interval='3600'", "interval='1800'")).unwrap();
    let bus = start();
    assert_eq!(states(&bus)[4], "active");
    drop(bus);
    // A file that nobody can read counts for nothing, and says so.
    fs::write(&state, "{").unwrap();
    let bus = start();
    assert_eq!(states(&bus), on);
    bus.says("who was started and stopped before is not known", 1);
    assert_eq!(json(&bus, "POST", "/artifacts/proxy/P/stop")["survives_restart"], true);
    drop(bus);
    // Where there is no room, the answer says so, and the file is what it was.
    fs::remove_file(&state).unwrap();
    fs::create_dir_all(state.join("in the way")).unwrap();
    let bus = start();
    let done = json(&bus, "POST", "/artifacts/proxy/P/stop");
    assert_eq!((done["survives_restart"].as_bool(), done["state"].as_str()), (Some(false), Some("stopped")));
    assert!(done["not_kept"].as_str().unwrap().contains("kept.json"), "{done}");
    assert!(!root.join(".kept.json.new").exists());
    drop(bus);
    let bus = Process::run(&file, &[]);
    assert_eq!(json(&bus, "POST", "/artifacts/proxy/P/stop")["survives_restart"], false);
}

#[test]
fn a_decision_holds_while_its_artifact_is_gone() {
    let root = directory("gone");
    for name in ["P", "Q", "R"] {
        put(&root, name, &proxy(name, 1));
    }
    let endpoint = "<endpoint xmlns='http://ws.apache.org/ns/synapse' name='E'><address uri='http://127.0.0.1:1/'/></endpoint>";
    fs::create_dir(root.join("endpoints")).unwrap();
    fs::write(root.join("endpoints/E.xml"), endpoint).unwrap();
    // Written otherwise than the watched path.
    let set = format!("deploy.state={}/./proxy-services/../kept.json", root.display());
    let start = || Process::watching(&root, &[&QUICK[..], &["--set", &set]].concat());
    let bus = start();
    json(&bus, "POST", "/artifacts/proxy/Q/stop");
    json(&bus, "POST", "/artifacts/endpoint/E/stop");
    let (q, e) = (root.join("proxy-services/Q.xml"), root.join("endpoints/E.xml"));
    fs::remove_file(&q).unwrap();
    fs::remove_file(&e).unwrap();
    until("Q goes", || version(&bus, "Q") == "404");
    // What is written of another one does not write these out.
    json(&bus, "POST", "/artifacts/proxy/R/stop");
    put(&root, "Q", &proxy("Q", 1));
    fs::write(&e, endpoint).unwrap();
    until("Q comes back", || version(&bus, "Q") != "404");
    let states = |bus: &Process| {
        ["proxy/Q", "proxy/R", "endpoint/E"]
            .map(|name| json(bus, "GET", &format!("/artifacts/{name}"))["state"].as_str().unwrap().to_owned())
    };
    assert_eq!(states(&bus), ["stopped", "stopped", "off"]);
    // The file is no part of the configuration: what is kept in it ends no rollback.
    put(&root, "P", &proxy("P", 2));
    until("P changes", || version(&bus, "P") == "2");
    let before = in_force(&bus) - 1;
    json(&bus, "POST", &format!("/generations/{before}/rollback"));
    json(&bus, "POST", "/artifacts/proxy/R/start");
    a_while();
    assert_eq!(version(&bus, "P"), "1");
    drop(bus);
    assert_eq!(states(&start()), ["stopped", "started", "off"]);
    // What is no file is not replaced by one.
    let bus = Process::run(&root, &["--set", "deploy.state=/dev/full"]);
    bus.says("`/dev/full` is not a regular file", 1);
}

fn act_suspend(bus: &Process) {
    let done = json(bus, "POST", "/artifacts/endpoint/E/suspend");
    let address = &done["addresses"][0];
    assert_eq!(
        (done["state"].as_str(), address["state"].as_str()),
        (Some("suspended"), Some("suspended")),
        "{done}"
    );
    assert!(address["until"].as_str().unwrap().starts_with("20"), "{done}");
    assert_eq!(address["cause"]["message"], "suspended by hand");
    assert!(done.get("survives_restart").is_none(), "{done}");
    assert_eq!(ask(bus.http(), "POST", "/services/Calls", b"<a/>").unwrap().0, 200);
    json(bus, "POST", "/artifacts/endpoint/E/resume");
    assert_eq!(json(bus, "GET", "/artifacts/endpoint/E")["state"], "active");
    for kind in ["proxy/P", "api/R", "messageProcessor/M", "task/T"] {
        let state =
            json(bus, "POST", &format!("/artifacts/{kind}/suspend"))["state"].as_str().unwrap().to_owned();
        assert!(matches!(&*state, "stopped" | "inactive"), "{kind} {state}");
    }
}

#[test]
fn endpoints_without_names_are_listed_with_what_happened_to_them() {
    let root = directory("inline");
    fs::write(root.join("c.xml"), SWITCHED).unwrap();
    let bus = Process::run(&root.join("c.xml"), &[]);
    let listed = || json(&bus, "GET", "/artifacts/endpoint")["inline"].as_array().unwrap().clone();
    let before = listed();
    assert_eq!(before.len(), 1, "{before:?}");
    assert_eq!(
        (before[0]["state"].as_str(), before[0]["artifact"].as_str()),
        (Some("active"), Some("proxy/Inline"))
    );
    assert!(before[0]["place"].as_str().unwrap().ends_with("c.xml:7:1"), "{before:?}");
    assert_eq!(ask(bus.http(), "POST", "/services/Inline", b"<a/>").unwrap().0, 200);
    let after = &listed()[0];
    assert_eq!(
        (after["state"].as_str(), after["cause"]["code"].as_i64()),
        (Some("suspended"), Some(101_503)),
        "{after}"
    );
    assert!(after["until"].as_str().is_some() && after["cause"]["message"].as_str().is_some(), "{after}");
    assert!(!after.to_string().contains("s3"), "{after}");
    for (method, path, status) in [
        ("POST", "/artifacts/proxy/Nobody/stop", 404),
        ("POST", "/artifacts/nothing/P/stop", 404),
        ("POST", "/artifacts/proxy/P/restart", 404),
        ("POST", "/artifacts/proxy/P/trigger", 404),
        ("POST", "/artifacts/sequence/q/stop", 404),
        ("POST", "/artifacts/proxy", 405),
        ("PUT", "/artifacts/proxy/P/stop", 405),
        ("GET", "/artifacts/proxy/P/stop", 404),
    ] {
        let (found, body) = admin(&bus, method, path);
        assert_eq!(found, status, "{method} {path}: {body}");
        assert!(body.contains("\"error\": "), "{method} {path}: {body}");
    }
}

/// A task that runs each second, a processor with its store, and an inbound endpoint on a port of its own. What is stored is sent to an API of the inbound endpoint.
/// A service asks another one and writes what it got by operations of connectors, and a service takes the files of a directory.
fn beside(port: u16, files: &Path) -> String {
    let files = files.display();
    format!(
        "<definitions xmlns='http://ws.apache.org/ns/synapse'>
        <sequence name='Answers'><respond/></sequence><sequence name='Runs'><drop/></sequence>
        <inboundEndpoint name='I' protocol='http' sequence='Answers'><parameters><parameter name='inbound.http.port'>{port}</parameter></parameters></inboundEndpoint>
        <task name='T' class='org.apache.synapse.startup.tasks.MessageInjector'><trigger interval='1'/>
        <property name='message'><a xmlns=''/></property><property name='injectTo' value='sequence'/><property name='sequenceName' value='Runs'/></task>
        <messageStore name='Waiting'/>
        <proxy name='Stores'><target><inSequence><property name='OUT_ONLY' value='true'/><store messageStore='Waiting'/><property name='OUT_ONLY' action='remove'/><respond/></inSequence></target></proxy>
        <api name='Processed' context='/processed' binds-to='I'><resource methods='POST'><inSequence><respond/></inSequence></resource></api>
        <endpoint name='Processing'><address uri='http://127.0.0.1:{port}/processed'/></endpoint>
        <messageProcessor name='M' class='org.apache.synapse.message.processor.impl.forwarder.ScheduledMessageForwardingProcessor'
         messageStore='Waiting' targetEndpoint='Processing'><parameter name='interval'>1</parameter></messageProcessor>
        <api name='Mirror' context='/mirror' binds-to='I'><resource methods='POST'><inSequence><respond/></inSequence></resource></api>
        <localEntry key='Files'><file.init><workingDir>{files}</workingDir></file.init></localEntry>
        <proxy name='Connected'><target><inSequence><http.post configKey='Http'><relativePath>/mirror</relativePath></http.post>
         <file.write configKey='Files'><filePath>{{concat('written/', //n)}}</filePath><writeMode>Create New</writeMode><responseVariable>w</responseVariable></file.write>
         <respond/></inSequence></target></proxy>
        <proxy name='Taken' transports='vfs'><target><inSequence><property name='OUT_ONLY' value='true'/>
         <send><endpoint><address uri='vfs:file://{files}/taken?transport.vfs.Append=true'/></endpoint></send></inSequence></target>
         <parameter name='transport.vfs.FileURI'>file://{files}/in</parameter><parameter name='transport.vfs.ContentType'>text/plain</parameter>
         <parameter name='transport.PollInterval'>50ms</parameter></proxy>
        </definitions>"
    )
}

/// A thousand requests a second while the directory changes thirty times: artifacts come, change, break and go, and twice somebody goes back.
#[test]
fn thirty_swaps_under_load_lose_nothing() {
    const CLIENTS: usize = 10;
    const SWAPS: usize = 30;
    let root = directory("load");
    put(&root, "Constant", &proxy("Constant", 0));
    put(&root, "Changing", &proxy("Changing", 0));
    (0..30).for_each(|number| put(&root, &format!("Other{number}"), &proxy(&format!("Other{number}"), 0)));
    // What runs by itself and what listens elsewhere goes on as well.
    let port = free_port();
    let files = directory("load-files");
    ["in", "taken", "written"].iter().for_each(|name| fs::create_dir_all(files.join(name)).unwrap());
    fs::write(root.join("synapse.xml"), beside(port, &files)).unwrap();
    let connection = |round: usize| {
        let text = format!(
            "<localEntry xmlns='http://ws.apache.org/ns/synapse' key='Http'><http.init><baseUrl>http://127.0.0.1:{port}</baseUrl>\
             <timeoutDuration>{}</timeoutDuration></http.init></localEntry>",
            60_000 + round
        );
        fs::write(root.join("local-entries/Http.xml"), text).unwrap();
    };
    fs::create_dir_all(root.join("local-entries")).unwrap();
    connection(0);
    let bus = Process::watching(&root, &QUICK);
    let own_port = format!("127.0.0.1:{port}");
    let begun = Instant::now();
    let done = AtomicBool::new(false);
    let names = ["Constant", "Changing", "Other7", "Coming", "Stores", "Inbound", "Connected"];
    let answers = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (bus, done, own_port) = (&bus, &done, &own_port);
                scope.spawn(move || {
                    let name = names[client % names.len()];
                    let to = if name == "Inbound" { own_port } else { bus.http() };
                    let mut open = TcpStream::connect(to).unwrap();
                    let mut statuses: BTreeMap<(&str, u16), usize> = BTreeMap::new();
                    let (began, mut count) = (Instant::now(), 0);
                    while !done.load(Ordering::Relaxed) {
                        let body = format!("<n>{client} {count}</n>");
                        let (status, head, response) =
                            exchange(&mut open, "POST", &format!("/services/{name}"), body.as_bytes(), "")
                                .expect("an answer");
                        if status == 200 {
                            assert_eq!(response, body.as_bytes(), "{name}: {head}");
                        }
                        *statuses.entry((name, status)).or_default() += 1;
                        count += 1;
                        // A hundred in a second, each.
                        let due = began + Duration::from_millis(10) * count;
                        std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    }
                    statuses
                })
            })
            .collect();
        let swapping = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for round in 1..=SWAPS {
                let before = in_force(&bus);
                for number in 0..10 {
                    let beside = files.join("beside");
                    fs::write(&beside, "once;").unwrap();
                    fs::rename(&beside, files.join(format!("in/{round}-{number}.txt"))).unwrap();
                }
                // What the operations under way are connected with changes, too.
                if round % 6 == 3 {
                    connection(round);
                }
                match round % 6 {
                    0 => put(&root, "Coming", &proxy("Coming", round)),
                    1 => put(&root, "Changing", &faulty("Changing")),
                    2 => _ = json(&bus, "POST", &format!("/generations/{}/rollback", before - 1)),
                    3 => put(&root, "Changing", &proxy("Changing", round)),
                    4 => {
                        let _ = fs::remove_file(root.join("proxy-services/Coming.xml"));
                        put(&root, "Other7", &proxy("Other7", round));
                    }
                    _ => (0..30).for_each(|one| {
                        put(&root, &format!("Other{one}"), &proxy(&format!("Other{one}"), round))
                    }),
                }
                until(&format!("round {round}"), || in_force(&bus) > before);
            }
        }));
        done.store(true, Ordering::Relaxed);
        swapping.unwrap();
        clients.into_iter().map(|client| client.join().unwrap()).collect::<Vec<_>>()
    });
    let mut all: BTreeMap<(&str, u16), usize> = BTreeMap::new();
    for ((name, status), count) in answers.into_iter().flatten() {
        *all.entry((name, status)).or_default() += count;
    }
    eprintln!("{all:?}, generation {}", in_force(&bus));
    assert!(in_force(&bus) > SWAPS as u64);
    for ((name, status), count) in &all {
        let allowed = *status == 200 || *name == "Coming" && *status == 404;
        assert!(allowed && *count > 0, "{name}: {status} {count} times: {all:?}\n{}", bus.stderr());
    }
    // The task kept its time: it began when the bus did, and was neither begun anew nor held up.
    let task = json(&bus, "GET", "/artifacts/task/T");
    let (runs, due) = (task["runs"].as_u64().unwrap(), begun.elapsed().as_secs());
    assert!(runs.abs_diff(due) <= 2 && task["missed"] == 0, "{task}, {due} s");
    // What was stored was processed, each once.
    let stored = all[&("Stores", 200)];
    let processed = format!("busbar_requests_total{{kind=\"api\",service=\"Processed\"}} {stored}\n");
    until("the store is empty", || admin(&bus, "GET", "/metrics").1.contains(&processed));
    assert_eq!(json(&bus, "GET", "/artifacts/messageStore/Waiting")["messages"], 0);
    // What was written was written once, and each file was taken once.
    let written = fs::read_dir(files.join("written")).unwrap().count();
    assert_eq!(written, all[&("Connected", 200)]);
    until("all files are taken", || fs::read_dir(files.join("in")).unwrap().next().is_none());
    for (round, number) in (1..=SWAPS).flat_map(|round| (0..10).map(move |number| (round, number))) {
        let taken = fs::read_to_string(files.join(format!("taken/{round}-{number}.txt"))).unwrap_or_default();
        assert_eq!(taken, "once;", "{round}-{number}: {}", bus.stderr());
    }
    // What the bus has counted is what was asked.
    let (_, metrics) = admin(&bus, "GET", "/metrics");
    for name in ["Constant", "Changing", "Other7", "Stores", "Connected"] {
        let label =
            format!("busbar_requests_total{{kind=\"proxy\",service=\"{name}\"}} {}\n", all[&(name, 200)]);
        assert!(metrics.contains(&label), "{label}");
    }
}

/// Signals in the middle of swaps: the process ends with 0, and nothing comes into force once it stops.
#[test]
fn signals_in_the_middle_of_a_swap_end_well() {
    for round in 0..4 {
        let root = directory("signals");
        let write = |version: usize| {
            (0..100).for_each(|one| put(&root, &format!("P{one}"), &proxy(&format!("P{one}"), version)));
        };
        write(1);
        let mut bus =
            Process::watching(&root, &["--set", "deploy.quiet=10ms", "--set", "deploy.interval=50ms"]);
        write(2);
        (0..5).for_each(|_| bus.signal("HUP"));
        let asking = bus.field("admin").to_owned();
        let others: Vec<_> = (0..3)
            .map(|_| {
                let address = asking.clone();
                std::thread::spawn(move || ask(&address, "POST", "/reload", b"").map(|(status, ..)| status))
            })
            .collect();
        std::thread::sleep(Duration::from_millis(25 * round));
        write(3);
        bus.signal("TERM");
        assert_eq!(bus.wait(), Some(0), "{}", bus.stderr());
        for other in others {
            // Answered, or the process has ended.
            let status = other.join().unwrap().unwrap_or(0);
            assert!(matches!(status, 0 | 200 | 409 | 500), "{status}");
        }
        assert!(!bus.stderr().contains("panicked"), "{}", bus.stderr());
    }
}
