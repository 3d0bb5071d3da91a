//! Reloading from outside: artifact by artifact.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use support::{Process, ask, configuration, configure, exchange};

/// A proxy that answers itself, with a header of its version.
fn proxy(name: &str, version: usize) -> String {
    format!(
        "<proxy name='{name}'><target><inSequence><property name='X-Version' value='{version}' scope='transport'/>\
         <respond/></inSequence></target></proxy>"
    )
}

/// A proxy that does not compile.
fn faulty(name: &str) -> String {
    format!("<proxy name='{name}'><target><inSequence><sned/></inSequence></target></proxy>")
}

/// The version that answers for a proxy, or the status that does.
fn version(bus: &Process, name: &str) -> String {
    let (status, head, _) = ask(bus.http(), "POST", &format!("/services/{name}"), b"<a/>").unwrap();
    match head.split_once("X-Version: ") {
        Some((_, version)) => version.split("\r\n").next().unwrap().to_owned(),
        None => status.to_string(),
    }
}

fn reload(bus: &Process, times: usize) {
    bus.signal("HUP");
    bus.says("reloaded: ", times);
}

#[test]
fn a_faulty_artifact_stays_as_it_was_while_others_change() {
    let path = configuration("reload-mixture", &[proxy("A", 1), proxy("B", 1), faulty("C")].concat());
    let bus = Process::run(&path, &[]);
    for (number, artifacts, versions) in [
        // A breaks.
        (1, [faulty("A"), proxy("B", 2), faulty("C")].concat(), ["1", "2", "503"]),
        // It is mended, B breaks, and there is the first good C.
        (2, [proxy("A", 3), faulty("B"), proxy("C", 3)].concat(), ["3", "2", "3"]),
        // B is gone.
        (3, [proxy("A", 4), faulty("C")].concat(), ["4", "404", "3"]),
        (4, "<proxy name='A'>".to_owned(), ["4", "404", "3"]),
        (5, [proxy("A", 5), proxy("B", 5), proxy("C", 5)].concat(), ["5", "5", "5"]),
    ] {
        configure(&path, &artifacts);
        reload(&bus, number);
        let found = ["A", "B", "C"].map(|name| version(&bus, name));
        assert_eq!(found, versions, "{number}: {}", bus.stderr());
    }
    bus.says("the proxy service `A` stays in force as it was: there is no mediator", 1);
    bus.says("the proxy service `C` is left out: there is no mediator", 1);
    // A configuration that is absent is not an empty one.
    std::fs::remove_file(&path).unwrap();
    bus.signal("HUP");
    bus.says("not reloaded: ", 1);
    assert_eq!(version(&bus, "A"), "5");
}

#[test]
fn strict_takes_all_or_nothing() {
    let path = configuration("reload-strict", &[proxy("A", 1), proxy("B", 1)].concat());
    let bus = Process::run(&path, &["--strict"]);
    configure(&path, &[faulty("A"), proxy("B", 2)].concat());
    bus.signal("HUP");
    bus.says("not reloaded: ", 1);
    assert_eq!(["A", "B"].map(|name| version(&bus, name)), ["1", "1"]);
    configure(&path, &[proxy("A", 3), proxy("B", 3)].concat());
    bus.signal("HUP");
    bus.says("2 changed, 0 new, 0 removed", 1);
    assert_eq!(["A", "B"].map(|name| version(&bus, name)), ["3", "3"]);
}

/// A request to the admin address.
fn admin(bus: &Process, method: &str, path: &str) -> (u16, String) {
    let (status, _, body) = ask(bus.field("admin"), method, path, b"").unwrap();
    (status, String::from_utf8(body).unwrap())
}

#[test]
fn what_is_for_nobody_is_not_found_and_what_is_faulty_is_not_available() {
    let api = |name: &str, context: &str, steps: &str| {
        format!(
            "<api name='{name}' context='{context}'><resource methods='POST'><inSequence>{steps}</inSequence></resource></api>"
        )
    };
    let artifacts = [
        proxy("P", 1),
        faulty("P/sub"),
        "<proxy name='Unread' nonsense='1'><target/></proxy>".to_owned(),
        "<data xmlns='' name='Data'><config id='db'><property name='carbon_datasource_name'>None</property></config>\
         <query id='q' useConfig='db'><sql>select 1</sql></query><operation name='o'><call-query href='q'/></operation></data>"
            .to_owned(),
        api("Good", "/a", "<respond/>"),
        api("Bad", "/a/b", "<sned/>"),
        "<api name='Unread' context='/u' version='1' version-type='url'><resorce/></api>".to_owned(),
    ];
    let path = configuration("reload-faulty", &artifacts.concat());
    let bus = Process::run(&path, &[]);
    for (target, wanted) in [
        ("/services/P", 200),
        ("/services/P/x", 200),
        ("/services/P/sub", 503),
        ("/services/P/sub/x", 503),
        ("/services/Unread", 503),
        ("/services/Data", 503),
        ("/services/Data/o?a=b", 503),
        ("/services/Nobody", 404),
        ("/nobody?a=b", 404),
        ("/", 404),
        ("/a", 200),
        ("/a/bc", 200),
        ("/a/b", 503),
        ("/a/b/c?d=e", 503),
        ("/u/1/x", 503),
        ("/u/2/x", 404),
    ] {
        let (status, head, body) = ask(bus.http(), "POST", target, b"<a/>").unwrap();
        assert_eq!(status, wanted, "{target}: {head}{}", String::from_utf8_lossy(&body));
        assert!(status != 404 || body.is_empty(), "{target}");
    }
    // A main sequence that is faulty is not as if there were none.
    configure(
        &path,
        "<sequence name='main'><sned/></sequence><proxy name='P'><target inSequence='main'/></proxy>",
    );
    let bus = Process::run(&path, &[]);
    assert_eq!(ask(bus.http(), "POST", "/x", b"<a/>").unwrap().0, 503);
    assert_eq!(ask(bus.http(), "POST", "/services/P", b"<a/>").unwrap().0, 500);
    // A sequence of the user's stays as it is written.
    configure(&path, "<sequence name='main'><drop/></sequence>");
    reload(&bus, 1);
    assert_eq!(ask(bus.http(), "POST", "/x", b"<a/>").unwrap().0, 202);
}

#[test]
fn files_that_a_descriptor_names_stay_in_force_while_they_are_not_there() {
    let root = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("reload-descriptor");
    let _ = std::fs::remove_dir_all(&root);
    let proxies = root.join("src/main/synapse-config/proxy-services");
    std::fs::create_dir_all(&proxies).unwrap();
    let write = |name: &str, text: &str| {
        let text = text.replacen("<proxy", "<proxy xmlns='http://ws.apache.org/ns/synapse'", 1);
        std::fs::write(proxies.join(name), text).unwrap();
    };
    let describe = |names: &[&str]| {
        let artifacts: String = names
            .iter()
            .map(|name| {
                format!(
                    "<artifact name='{name}' groupId='g' version='1.0.0' type='synapse/proxy-service' serverRole='EnterpriseServiceBus'>\
                     <file>src/main/synapse-config/proxy-services/{name}.xml</file></artifact>"
                )
            })
            .collect();
        std::fs::write(root.join("artifact.xml"), format!("<artifacts>{artifacts}</artifacts>")).unwrap();
    };
    describe(&["A", "B"]);
    write("A.xml", &proxy("A", 1));
    write("B.xml", &proxy("B", 1));
    let bus = Process::run(&root, &[]);
    let versions = || ["A", "B"].map(|name| version(&bus, name));
    assert_eq!(versions(), ["1", "1"]);

    // The project is copied anew: A is gone for a moment, and once more.
    std::fs::remove_file(proxies.join("A.xml")).unwrap();
    write("B.xml", &proxy("B", 2));
    reload(&bus, 1);
    assert_eq!(versions(), ["1", "2"], "{}", bus.stderr());
    bus.says("the proxy service `A` stays in force as it was: the file cannot be read: it does not exist, and a descriptor names it", 1);
    reload(&bus, 2);
    assert_eq!(versions(), ["1", "2"], "{}", bus.stderr());
    write("A.xml", &proxy("A", 3));
    reload(&bus, 3);
    assert_eq!(versions(), ["3", "2"]);

    // Another file has it: nothing of it is missing.
    std::fs::rename(proxies.join("A.xml"), proxies.join("Renamed.xml")).unwrap();
    reload(&bus, 4);
    assert_eq!(versions(), ["3", "2"], "{}", bus.stderr());
    // Removed in both places, it is gone.
    std::fs::remove_file(proxies.join("Renamed.xml")).unwrap();
    describe(&["B"]);
    reload(&bus, 5);
    assert_eq!(versions(), ["404", "2"], "{}", bus.stderr());
}

/// An archive with these proxies and a text in the registry that `A` answers with.
fn archive(proxies: &[(&str, String)], text: &str) -> Vec<u8> {
    use std::io::Write;
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let mut add = |name: &str, text: &str| {
        zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    };
    let names = proxies.iter().map(|(name, _)| *name).chain(["r"]);
    let listed: String =
        names.map(|name| format!("<dependency artifact='{name}' version='1' include='true'/>")).collect();
    add(
        "artifacts.xml",
        &format!(
            "<artifacts><artifact name='App' version='1' type='carbon/application'>{listed}</artifact></artifacts>"
        ),
    );
    for (name, text) in proxies {
        add(
            &format!("{name}_1/artifact.xml"),
            &format!(
                "<artifact name='{name}' version='1' type='synapse/proxy-service'><file>p.xml</file></artifact>"
            ),
        );
        let text = text.replacen("<proxy", "<proxy xmlns='http://ws.apache.org/ns/synapse'", 1);
        add(&format!("{name}_1/p.xml"), &text);
    }
    add(
        "r_1/artifact.xml",
        "<artifact name='r' version='1' type='registry/resource'><file>registry-info.xml</file></artifact>",
    );
    add(
        "r_1/registry-info.xml",
        "<resources><item><file>t.txt</file><path>/_system/governance/x</path></item></resources>",
    );
    add("r_1/resources/t.txt", text);
    zip.finish().unwrap().into_inner()
}

#[test]
fn an_archive_is_in_force_as_a_whole_or_as_it_was() {
    let root = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("reload-archive");
    let _ = std::fs::remove_dir_all(&root);
    std::fs::create_dir_all(&root).unwrap();
    let car = root.join("app.car");
    let says = |text: &str| {
        format!(
            "<proxy name='A'><target><inSequence><payloadFactory media-type='text'><format key='gov:x/t.txt'/><args/></payloadFactory>\
             <property name='X-Version' value='{text}' scope='transport'/><respond/></inSequence></target></proxy>"
        )
    };
    let good = archive(&[("A", says("1")), ("B", proxy("B", 1))], "one");
    std::fs::write(&car, &good).unwrap();
    let bus = Process::run(&root, &[]);
    let in_force = || {
        let (_, _, text) = ask(bus.http(), "POST", "/services/A", b"<a/>").unwrap();
        [version(&bus, "A"), version(&bus, "B"), String::from_utf8_lossy(&text).into_owned()].join(" ")
    };
    assert_eq!(in_force(), "1 1 one");
    let refused = [
        // A copy in progress.
        good[..900].to_vec(),
        // One artifact cannot be read, one does not compile; the other one and the resource are new.
        archive(
            &[("A", says("2")), ("B", "<proxy name='B' nonsense='1'><target/></proxy>".to_owned())],
            "two",
        ),
        archive(&[("A", faulty("A")), ("B", proxy("B", 2))], "two"),
        archive(&[("A", says("2")), ("B", proxy("B", 2)), ("C", faulty("C"))], "two"),
    ];
    for (number, bytes) in refused.iter().enumerate() {
        std::fs::write(&car, bytes).unwrap();
        reload(&bus, number + 1);
        assert_eq!(in_force(), "1 1 one", "{number}: {}", bus.stderr());
        bus.says("0 changed, 0 new, 0 removed", number + 1);
    }
    bus.says("app.car` stays in force as it was: ", 1);
    assert_eq!(version(&bus, "C"), "503");
    std::fs::write(&car, archive(&[("A", says("2")), ("B", proxy("B", 2))], "two")).unwrap();
    reload(&bus, refused.len() + 1);
    assert_eq!(in_force(), "2 2 two");
    // Back to what it was, and to what it is.
    for (number, wanted) in [(1, "1 1 one"), (refused.len() + 2, "2 2 two")] {
        let (status, response) = admin(&bus, "POST", &format!("/generations/{number}/rollback"));
        assert_eq!((status, in_force().as_str()), (200, wanted), "{response}");
    }
    // At a start there is nothing to fall back on: what is known of the archive is not available.
    drop(bus);
    for bytes in &refused[1..] {
        std::fs::write(&car, bytes).unwrap();
        std::fs::create_dir_all(root.join("proxy-services")).unwrap();
        let definition =
            proxy("Own", 1).replacen("<proxy", "<proxy xmlns='http://ws.apache.org/ns/synapse'", 1);
        std::fs::write(root.join("proxy-services/own.xml"), definition).unwrap();
        let bus = Process::run(&root, &[]);
        assert_eq!(["A", "B"].map(|name| version(&bus, name)), ["503", "503"], "{}", bus.stderr());
        let (_, listed) = admin(&bus, "GET", "/artifacts");
        assert!(listed.contains("\"archive\"") && listed.contains("\"A\""), "{listed}");
    }
}

/// A copy of an archive under another name does not take the place of the one that runs, whatever comes first in the directory.
#[test]
fn an_archive_that_runs_stays_beside_another_one_of_its_name() {
    let root = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("reload-archives");
    let _ = std::fs::remove_dir_all(&root);
    std::fs::create_dir_all(&root).unwrap();
    std::fs::write(root.join("m.car"), archive(&[("A", proxy("A", 1))], "one")).unwrap();
    let bus = Process::run(&root, &[]);
    assert_eq!(version(&bus, "A"), "1");
    for (number, name) in ["a.car", "z.car"].into_iter().enumerate() {
        std::fs::write(root.join(name), archive(&[("A", proxy("A", 2)), ("New", proxy("New", 2))], "two"))
            .unwrap();
        reload(&bus, number + 1);
        assert_eq!(
            (version(&bus, "A").as_str(), version(&bus, "New").as_str()),
            ("1", "404"),
            "{name}: {}",
            bus.stderr()
        );
        bus.says("there are two archives `App_1`", 1);
    }
    // It goes: the first of the others comes into force.
    std::fs::remove_file(root.join("m.car")).unwrap();
    reload(&bus, 3);
    assert_eq!(version(&bus, "A"), "2", "{}", bus.stderr());
}

#[test]
fn what_was_stopped_stays_stopped() {
    let artifacts = |version: usize| {
        let store = "<messageStore name='s'/><sequence name='q'><drop/></sequence>";
        let processor = "<messageProcessor name='m' class='x.SamplingProcessor' messageStore='s'><parameter name='sequence'>q</parameter>";
        format!(
            "{}{store}{processor}<parameter name='interval'>{version}</parameter></messageProcessor>",
            proxy("P", version)
        )
    };
    let path = configuration("reload-activation", &artifacts(1));
    let bus = Process::run(&path, &[]);
    let processor = |bus: &Process| {
        let (_, text) = admin(bus, "GET", "/artifacts/messageProcessor/m");
        text.contains("\"state\": \"active\"")
    };
    assert!(processor(&bus));
    assert_eq!(admin(&bus, "POST", "/artifacts/proxy/P/stop").0, 200);
    assert_eq!(admin(&bus, "POST", "/artifacts/messageProcessor/m/deactivate").0, 200);
    assert_eq!((version(&bus, "P").as_str(), processor(&bus)), ("500", false));
    reload(&bus, 1);
    assert_eq!((version(&bus, "P").as_str(), processor(&bus)), ("500", false));
    // A processor with another definition begins anew; a service that is stopped says no more than that.
    configure(&path, &artifacts(2));
    reload(&bus, 2);
    assert_eq!((version(&bus, "P").as_str(), processor(&bus)), ("500", true));
    assert_eq!(admin(&bus, "POST", "/artifacts/proxy/P/start").0, 200);
    assert_eq!(version(&bus, "P"), "2");
    assert_eq!(admin(&bus, "POST", "/artifacts/proxy/Q/start").0, 404);
    assert_eq!(admin(&bus, "POST", "/artifacts/proxy/P/restart").0, 404);
}

#[test]
fn settings_are_read_again() {
    let path = configuration("reload-settings", &proxy("P", 1));
    let file = path.with_extension("toml");
    let write = |text: &str| {
        let beside = path.with_extension("toml.new");
        std::fs::write(&beside, text).unwrap();
        std::fs::rename(&beside, &file).unwrap();
    };
    write("[http]\nlist_services = true\n");
    let bus = Process::run(&path, &["--config", file.to_str().unwrap()]);
    assert_eq!(ask(bus.http(), "GET", "/services/", b"").unwrap().0, 200);
    write("workers = 7\n[http]\nlist_services = false\n[limits]\nhead_size = '1k'\n");
    reload(&bus, 1);
    bus.says("changed, and read at the start only: workers\n", 1);
    assert_eq!(ask(bus.http(), "GET", "/services/", b"").unwrap().0, 403);
    let long = format!("/services/P?{}", "a".repeat(2000));
    assert_eq!(ask(bus.http(), "POST", &long, b"<a/>").unwrap().0, 431);
    let wrong = ["[http]\nlist = 1\n", "[[profile]]\nserver = 'a'\nroots = '/nonexistent.pem'\n", "nonsense"];
    for (number, wrong) in wrong.into_iter().enumerate() {
        write(wrong);
        reload(&bus, number + 2);
        bus.says("the settings stay as they are: ", number + 1);
        assert_eq!(ask(bus.http(), "GET", "/services/", b"").unwrap().0, 403, "{wrong}");
    }
    assert_eq!(bus.stderr().matches("read at the start only").count(), 1);
}

/// Without its settings a bus would know nobody and forbid nothing: those of a file that is gone, or that is a pipe by now, stay.
#[test]
fn settings_whose_file_is_gone_stay() {
    let guarded = "<proxy name='G'><target><inSequence><respond/></inSequence></target>\
                   <parameter name='accessProfile'>shop</parameter></proxy>";
    let root = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("reload-settings-gone");
    let _ = std::fs::remove_dir_all(&root);
    std::fs::create_dir_all(&root).unwrap();
    let (path, file, beside) = (root.join("synapse.xml"), root.join("other.toml"), root.join("busbar.toml"));
    configure(&path, &(proxy("P", 1) + guarded));
    let text = "[access.shop]\nkeys = { a = 'opensesame' }\n[admin]\ntokens = { ops = 'of-operators' }\n";
    for (settings, arguments) in [(&file, vec!["--config", file.to_str().unwrap()]), (&beside, vec![])] {
        std::fs::write(settings, text).unwrap();
        let bus = Process::run(&path, &arguments);
        let status = |key: &str| {
            let mut stream = TcpStream::connect(bus.http()).unwrap();
            let more = format!("X-API-Key: {key}\r\nConnection: close\r\n");
            exchange(&mut stream, "POST", "/services/G", b"<a/>", &more).unwrap().0
        };
        let reloaded = || {
            let mut stream = TcpStream::connect(bus.field("admin")).unwrap();
            let more = "Authorization: Bearer of-operators\r\nConnection: close\r\n";
            let (status, _, body) = exchange(&mut stream, "POST", "/reload", b"", more).unwrap();
            (status, String::from_utf8_lossy(&body).into_owned())
        };
        assert_eq!((status("opensesame"), status("guessed")), (200, 401));
        let _ = std::fs::remove_file(settings);
        // Nothing, a directory, a pipe that nobody writes into, and what is not complete yet.
        for number in 0..4 {
            match number {
                0 => {}
                1 => std::fs::create_dir(settings).unwrap(),
                2 => {
                    std::fs::remove_dir(settings).unwrap();
                    assert!(std::process::Command::new("mkfifo").arg(settings).status().unwrap().success());
                }
                _ => {
                    std::fs::remove_file(settings).unwrap();
                    std::fs::write(settings, &text[..text.len() - 5]).unwrap();
                }
            }
            let (code, answer) = reloaded();
            assert_eq!(code, 200, "{number}: {answer}");
            assert!(answer.contains("the settings stay as they are: "), "{number}: {answer}");
            assert_eq!((status("opensesame"), status("guessed")), (200, 401), "{number}: {answer}");
        }
        std::fs::write(settings, text.replace("opensesame", "another")).unwrap();
        let (_, answer) = reloaded();
        assert!(answer.contains("reloaded") && !answer.contains("stay as they are"), "{answer}");
        assert_eq!((status("opensesame"), status("another")), (401, 200));
        // Neither the service nor the version before has a profile now: it is left out, and said to be that only.
        std::fs::write(settings, text.replace("shop", "bank")).unwrap();
        let (_, answer) = reloaded();
        assert!(answer.contains("1 faulty and left out") && !answer.contains("still in force"), "{answer}");
        assert!(!bus.stderr().contains("stays in force as it was"), "{}", bus.stderr());
        assert_eq!(status("another"), 503);
        std::fs::remove_file(settings).unwrap();
    }
}

#[test]
fn settings_wait_for_the_configuration() {
    let path = configuration("reload-together", &proxy("P", 1));
    let file = path.with_extension("toml");
    std::fs::write(&file, "").unwrap();
    let bus = Process::run(&path, &["--config", file.to_str().unwrap()]);
    let pem = certificate("reload-together");
    let tls = format!("[tls]\ncertificate = '{}'\nkey = '{}'\n", pem.0.display(), pem.1.display());
    std::fs::write(&file, format!("[limits]\nhead_size = '1k'\n[http]\nlist_services = false\n{tls}"))
        .unwrap();
    std::fs::remove_file(&path).unwrap();
    bus.signal("HUP");
    bus.says("not reloaded: ", 1);
    let long = format!("/services/P?{}", "a".repeat(2000));
    assert_eq!(ask(bus.http(), "POST", &long, b"<a/>").unwrap().0, 200);
    assert_eq!(ask(bus.http(), "GET", "/services/", b"").unwrap().0, 200);
    configure(&path, &proxy("P", 2));
    // The one that did not happen says so as well.
    reload(&bus, 2);
    assert_eq!(ask(bus.http(), "POST", &long, b"<a/>").unwrap().0, 431);
    assert_eq!(ask(bus.http(), "GET", "/services/", b"").unwrap().0, 403);
    bus.says("read at the start only: tls (https is off)", 1);
}

#[test]
fn a_directory_that_cannot_be_listed_is_not_empty() {
    let root = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("reload-unlisted");
    let _ = std::fs::remove_dir_all(&root);
    let proxies = root.join("proxy-services");
    std::fs::create_dir_all(&proxies).unwrap();
    std::fs::create_dir_all(root.join("sequences")).unwrap();
    let text = proxy("P", 1).replacen("<proxy", "<proxy xmlns='http://ws.apache.org/ns/synapse'", 1);
    std::fs::write(proxies.join("P.xml"), text).unwrap();
    let sequence = "<sequence xmlns='http://ws.apache.org/ns/synapse' name='own'><drop/></sequence>";
    std::fs::write(root.join("sequences/own.xml"), sequence).unwrap();
    let bus = Process::run(&root, &[]);
    // root may list any directory; this stands for a directory on a disk that is away.
    std::fs::rename(&proxies, root.join("away")).unwrap();
    std::os::unix::fs::symlink("/nonexistent", &proxies).unwrap();
    bus.signal("HUP");
    bus.says("not reloaded: ", 1);
    assert_eq!(version(&bus, "P"), "1");
    std::fs::remove_file(&proxies).unwrap();
    // The one that did not happen says so as well.
    reload(&bus, 2);
    assert_eq!(version(&bus, "P"), "404", "it is gone");
}

/// An endpoint that stands for another one is not taken for it when it loses its name.
#[test]
fn artifacts_that_lose_their_names_stay_in_force() {
    let backend = Process::backend(&[]);
    let root = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("reload-nameless");
    let _ = std::fs::remove_dir_all(&root);
    let namespace = "xmlns='http://ws.apache.org/ns/synapse'";
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let real = format!(
        "<endpoint {namespace} name='Real'><address uri='http://{}/echo'/></endpoint>",
        backend.http()
    );
    let alias = format!("<endpoint {namespace} name='Alias' key='Real'/>");
    let entry = format!("<localEntry {namespace} key='Said'>said</localEntry>");
    let proxy = "<property name='X-Said' expression=\"get-property('Said')\" scope='transport'/><call><endpoint key='Alias'/></call>";
    write("endpoints/Real.xml", &real);
    write("endpoints/Alias.xml", &alias);
    write("local-entries/Said.xml", &entry);
    let text = format!(
        "<proxy {namespace} name='P'><target><inSequence>{proxy}<respond/></inSequence></target></proxy>"
    );
    write("proxy-services/P.xml", &text);
    let bus = Process::run(&root, &[]);
    let asks = || ask(bus.http(), "POST", "/services/P", b"<a/>").unwrap().0;
    assert_eq!(asks(), 200);
    for (number, (path, text, name)) in [
        ("endpoints/Real.xml", &real, "endpoint `Real`"),
        ("endpoints/Alias.xml", &alias, "endpoint `Alias`"),
        ("local-entries/Said.xml", &entry, "local entry `Said`"),
    ]
    .into_iter()
    .enumerate()
    {
        write(path, &text.replacen(" name=", " nme=", 1).replacen(" key='S", " kee='S", 1));
        bus.signal("HUP");
        bus.says("reloaded: 4 artifacts", number + 1);
        bus.says(&format!("the {name} stays in force as it was"), 1);
        assert_eq!(asks(), 200, "{}", bus.stderr());
        write(path, text);
    }
}

/// What is written to a file that is to go.
const GONE: &str = "(gone)";

#[test]
fn a_broken_document_stays_as_it_was() {
    let root = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("reload-documents");
    let _ = std::fs::remove_dir_all(&root);
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let namespace = "xmlns='http://ws.apache.org/ns/synapse'";
    let sheet = |template: &str| {
        format!(
            "<x:stylesheet version='1.0' xmlns:x='http://www.w3.org/1999/XSL/Transform'><x:import href='gov:module.xsl'/>\
             <x:template match='/'><said><x:call-template name='{template}'/></said></x:template></x:stylesheet>"
        )
    };
    let module = |text: &str| {
        format!(
            "<x:stylesheet version='1.0' xmlns:x='http://www.w3.org/1999/XSL/Transform'>\
             <x:template name='say'>{text}</x:template></x:stylesheet>"
        )
    };
    write("registry/governance/sheet.xsl", &sheet("say"));
    write("registry/governance/module.xsl", &module("one"));
    write("registry/governance/steps.xml", &format!("<sequence {namespace}><respond/></sequence>"));
    write("script.js", "function mediate(mc) { mc.setProperty('a', 'one'); }");
    write(
        "local-entries/script.xml",
        &format!("<localEntry {namespace} key='script' src='file:script.js'/>"),
    );
    let proxy = |name: &str, steps: &str| {
        let text = format!(
            "<proxy {namespace} name='{name}'><target><inSequence>{steps}<respond/></inSequence></target></proxy>"
        );
        write(&format!("proxy-services/{name}.xml"), &text);
    };
    proxy("Sheet", "<xslt key='gov:sheet.xsl'/>");
    proxy("Steps", "<sequence key='gov:steps.xml'/>");
    let says = "<property name='X-Version' expression='$ctx:a' scope='transport'/>";
    proxy("Script", &format!("<script language='js' key='script' function='mediate'/>{says}"));
    write(
        "registry/governance/schema.xsd",
        "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'><xs:element name='a'/></xs:schema>",
    );
    proxy("Schema", "<validate><schema key='gov:schema.xsd'/><on-fail><drop/></on-fail></validate>");
    let policy = "<wsp:Policy xmlns:wsp='http://schemas.xmlsoap.org/ws/2004/09/policy' xmlns:t='http://www.wso2.org/products/wso2commons/throttle'>\
                  <t:ThrottleAssertion><t:MaximumConcurrentAccess>5</t:MaximumConcurrentAccess></t:ThrottleAssertion></wsp:Policy>";
    write("registry/governance/policy.xml", policy);
    proxy("Policy", "<throttle id='t'><policy key='gov:policy.xml'/></throttle>");
    write("registry/governance/template.json", "{\"v\": 1}");
    proxy(
        "Template",
        "<payloadFactory media-type='json'><format key='gov:template.json'/><args/></payloadFactory>",
    );
    write(
        "registry/governance/service.wsdl",
        "<definitions xmlns='http://schemas.xmlsoap.org/wsdl/' targetNamespace='u'/>",
    );
    write(
        "proxy-services/Published.xml",
        &format!(
            "<proxy {namespace} name='Published'><target><inSequence><respond/></inSequence></target><publishWSDL key='gov:service.wsdl'/></proxy>"
        ),
    );
    let bus = Process::run(&root, &[]);
    let in_force = || {
        let names = ["Sheet", "Steps", "Schema", "Policy", "Template", "Published"];
        let mut answers = names.map(|name| {
            let (status, _, body) = ask(bus.http(), "POST", &format!("/services/{name}"), b"<a/>").unwrap();
            format!("{status} {}", String::from_utf8_lossy(&body))
        });
        answers[5] += &version(&bus, "Script");
        answers
    };
    let good = in_force();
    assert!(good[0].contains("one"), "{good:?}: {}", bus.stderr());
    assert!(
        good.iter().all(|response| response.starts_with("200") && !response.contains("Fault")),
        "{good:?}"
    );
    for (number, (path, text, why)) in [
        ("registry/governance/sheet.xsl", sheet("nothing"), "`gov:sheet.xsl`"),
        ("registry/governance/module.xsl", "<x".to_owned(), "`gov:module.xsl`"),
        ("registry/governance/steps.xml", "<sequence".to_owned(), "`gov:steps.xml`"),
        ("script.js", "function mediate(mc) {".to_owned(), "`script`"),
        ("registry/governance/schema.xsd", "<xs:schema".to_owned(), "`gov:schema.xsd`"),
        ("registry/governance/policy.xml", String::new(), "`gov:policy.xml`"),
        ("registry/governance/template.json", "{\"v\":".to_owned(), "`gov:template.json`"),
        ("registry/governance/service.wsdl", "<definitions".to_owned(), "`gov:service.wsdl`"),
        // They are gone.
        ("registry/governance/sheet.xsl", GONE.to_owned(), "`gov:sheet.xsl`"),
        ("registry/governance/steps.xml", GONE.to_owned(), "`gov:steps.xml`"),
        ("registry/governance/schema.xsd", GONE.to_owned(), "`gov:schema.xsd`"),
        ("registry/governance/policy.xml", GONE.to_owned(), "`gov:policy.xml`"),
        ("registry/governance/template.json", GONE.to_owned(), "`gov:template.json`"),
        ("registry/governance/service.wsdl", GONE.to_owned(), "`gov:service.wsdl`"),
    ]
    .into_iter()
    .enumerate()
    {
        match text.as_str() {
            GONE => std::fs::remove_file(root.join(path)).unwrap(),
            text => write(path, text),
        }
        reload(&bus, number + 1);
        assert_eq!(in_force(), good, "{path}: {}", bus.stderr());
        assert!(
            bus.stderr().contains(&format!("{why} stays in force as it was")),
            "{path}: {}",
            bus.stderr()
        );
    }
    write("registry/governance/sheet.xsl", &sheet("say"));
    write("registry/governance/module.xsl", &module("two"));
    reload(&bus, 15);
    assert!(in_force()[0].contains("two"), "{}", bus.stderr());
}

/// A certificate for localhost and its key, as files; the certificate as bytes.
fn certificate(name: &str) -> (PathBuf, PathBuf, Vec<u8>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let path =
        |ending: &str| std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.{ending}"));
    std::fs::write(path("pem"), made.cert.pem()).unwrap();
    std::fs::write(path("key"), made.signing_key.serialize_pem()).unwrap();
    (path("pem"), path("key"), made.cert.der().to_vec())
}

type Secured = tokio_rustls::rustls::StreamOwned<tokio_rustls::rustls::ClientConnection, TcpStream>;

/// A connection to a listener that has to show this certificate.
fn connect(address: &str, certificate: &[u8]) -> Secured {
    use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto};
    let mut roots = RootCertStore::empty();
    roots.add(certificate.to_vec().into()).unwrap();
    let config =
        ClientConfig::builder_with_provider(std::sync::Arc::new(crypto::aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
    let name = "localhost".try_into().unwrap();
    let connection = ClientConnection::new(std::sync::Arc::new(config), name).unwrap();
    StreamOwned::new(connection, TcpStream::connect(address).unwrap())
}

/// What a request for the proxy `P` gets.
fn asked(stream: &mut Secured) -> std::io::Result<String> {
    use std::io::{Read, Write};
    stream.write_all(
        b"POST /services/P HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/xml\r\nContent-Length: 4\r\n\r\n<a/>",
    )?;
    let mut response = Vec::new();
    while !response.ends_with(b"<a/>") {
        let mut piece = [0; 1024];
        let count = stream.read(&mut piece)?;
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        response.extend(&piece[..count]);
    }
    Ok(String::from_utf8_lossy(&response).into_owned())
}

/// Connections go on with the certificate that they began with, new ones get the new one.
#[test]
fn certificates_are_read_again() {
    let path = configuration("reload-tls", &proxy("P", 1));
    let file = path.with_extension("toml");
    let (pem, key, first) = certificate("reload-tls");
    std::fs::write(&file, format!("[tls]\ncertificate = '{}'\nkey = '{}'\n", pem.display(), key.display()))
        .unwrap();
    let bus = Process::run(&path, &["--config", file.to_str().unwrap(), "--https", "127.0.0.1:0"]);
    let connect = |certificate: &[u8]| connect(bus.field("https"), certificate);
    let mut old = connect(&first);
    assert!(asked(&mut old).unwrap().contains("X-Version: 1"));
    let (_, _, second) = certificate("reload-tls");
    configure(&path, &proxy("P", 2));
    reload(&bus, 1);
    assert!(asked(&mut old).unwrap().contains("X-Version: 2"), "the connection goes on");
    assert!(asked(&mut connect(&second)).unwrap().contains("X-Version: 2"));
    assert!(asked(&mut connect(&first)).is_err(), "another certificate");
    // A file that is being copied leaves the one in force.
    let text = std::fs::read(&pem).unwrap();
    std::fs::write(&pem, &text[..text.len() / 2]).unwrap();
    reload(&bus, 2);
    bus.says("the settings stay as they are: ", 1);
    assert!(asked(&mut connect(&second)).is_ok());
    // A pipe that nobody writes into is not waited for.
    std::fs::remove_file(&pem).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&pem).status().unwrap().success());
    reload(&bus, 3);
    bus.says("it is not a file", 1);
    assert!(asked(&mut connect(&second)).is_ok());
    // The next run writes there.
    std::fs::remove_file(&pem).unwrap();
}

/// Clients refuse a certificate that has expired: `check` says it of inbound endpoints, the log at the start of all listeners.
#[test]
fn certificates_that_expire_are_reported() {
    let now = jiff::Timestamp::now();
    let year = i32::from(now.to_zoned(jiff::tz::TimeZone::UTC).year());
    let soon = now + jiff::SignedDuration::from_hours(10 * 24 + 1);
    let soon = soon.to_zoned(jiff::tz::TimeZone::UTC).date();
    let day = |day: jiff::civil::Date| {
        rcgen::date_time_ymd(i32::from(day.year()), day.month().unsigned_abs(), day.day().unsigned_abs())
    };
    let january = |year| rcgen::date_time_ymd(year, 1, 1);
    for (name, from, to, reason) in [
        (
            "ended",
            january(2001),
            january(2020),
            Some("has expired on 2020-01-01T00:00:00Z: clients refuse it"),
        ),
        ("soon", january(2001), day(soon), Some("its certificate expires on")),
        ("early", january(year + 2), january(year + 3), Some("is not valid before")),
        ("good", january(2001), january(year + 2), None),
    ] {
        let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        (params.not_before, params.not_after) = (from, to);
        let pair = rcgen::KeyPair::generate().unwrap();
        let made = params.self_signed(&pair).unwrap();
        let file = |ending: &str| {
            std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("expires-{name}.{ending}"))
        };
        std::fs::write(file("pem"), made.pem()).unwrap();
        std::fs::write(file("key"), pair.serialize_pem()).unwrap();
        let (pem, key) = (file("pem").display().to_string(), file("key").display().to_string());
        let port = support::free_port();
        let path = configuration(
            &format!("expires-{name}"),
            &format!(
                "<inboundEndpoint name='In' protocol='https' sequence='S'><parameters><parameter name='inbound.http.port'>{port}</parameter>\
                 <parameter name='keystore'><KeyStore><Location>{pem}</Location><KeyLocation>{key}</KeyLocation></KeyStore></parameter></parameters>\
                 </inboundEndpoint><sequence name='S'><respond/></sequence>"
            ),
        );
        let found = std::process::Command::new(env!("CARGO_BIN_EXE_busbar"))
            .arg("check")
            .arg(&path)
            .output()
            .unwrap();
        let found = String::from_utf8_lossy(&found.stdout).into_owned();
        let bus = Process::run(
            &path,
            &[
                "--https",
                "127.0.0.1:0",
                "--set",
                &format!("tls.certificate={pem}"),
                "--set",
                &format!("tls.key={key}"),
            ],
        );
        match reason {
            Some(reason) => {
                assert!(found.contains("warning[certificate-expires]") && found.contains(reason), "{found}");
                // The listener, and the inbound endpoint.
                bus.says(reason, 2);
            }
            None => {
                assert!(!found.contains("certificate"), "{found}");
                assert!(!bus.stderr().contains("busbar::certificate"), "{}", bus.stderr());
            }
        }
    }
}

/// The certificate of an inbound endpoint that becomes unusable stays in use; `check` and the start name what is wrong with it.
#[test]
fn certificates_of_inbound_endpoints_that_break() {
    let (pem, key, first) = certificate("reload-inbound-tls");
    let port = support::free_port();
    let endpoint = |key: &std::path::Path, version: usize| {
        format!(
            "<inboundEndpoint name='In' protocol='https' sequence='S'><parameters><parameter name='inbound.http.port'>{port}</parameter>\
             <parameter name='keystore'><KeyStore><Location>{}</Location><KeyLocation>{}</KeyLocation></KeyStore></parameter></parameters>\
             </inboundEndpoint><sequence name='S'><property name='X-Version' value='{version}' scope='transport'/><respond/></sequence>",
            pem.display(),
            key.display()
        )
    };
    let path = configuration("reload-inbound-tls", &endpoint(&key, 1));
    let bus = Process::run(&path, &[]);
    let connect = |certificate: &[u8]| connect(&format!("127.0.0.1:{port}"), certificate);
    assert!(asked(&mut connect(&first)).unwrap().contains("X-Version: 1"), "{}", bus.stderr());
    // Half renewed: the chain is new, the key is not. What else has changed comes into force.
    let whole = std::fs::read(&key).unwrap();
    let (_, _, second) = certificate("reload-inbound-tls");
    let renewed = std::fs::read(&key).unwrap();
    for (number, (text, message)) in [
        (whole, "is not that of the certificate in"),
        (b"nothing".to_vec(), "there is no private key in"),
        (
            b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n".to_vec(),
            "is encrypted; without a pass phrase: openssl pkey -in",
        ),
        (b"-----BEGIN PRIVATE KEY-----\nAA".to_vec(), "is cut off"),
    ]
    .into_iter()
    .enumerate()
    {
        std::fs::write(&key, text).unwrap();
        configure(&path, &endpoint(&key, number + 2));
        reload(&bus, number + 1);
        let stays = format!(
            "the inbound endpoint `In` stays in force as it was: the private key in {}",
            key.display()
        );
        let stays =
            if number == 1 { "stays in force as it was: there is no private key".to_owned() } else { stays };
        bus.says(&stays, 1);
        let got = asked(&mut connect(&first)).unwrap();
        assert!(got.contains(&format!("X-Version: {}", number + 2)), "{got}");
        let found = std::process::Command::new(env!("CARGO_BIN_EXE_busbar"))
            .arg("check")
            .arg(&path)
            .output()
            .unwrap();
        let found = String::from_utf8_lossy(&found.stdout).into_owned();
        assert!(found.contains("error[unusable-certificate]") && found.contains(message), "{found}");
    }
    bus.says("1 faulty and still in force as before", 4);
    // Another store that is broken leaves the whole version before in force.
    configure(
        &path,
        &endpoint(&key.with_extension("none"), 9)
            .replace("name='S'", "name='S9'")
            .replace("sequence='S'", "sequence='S9'"),
    );
    reload(&bus, 5);
    assert!(asked(&mut connect(&first)).unwrap().contains("X-Version: 5"), "{}", bus.stderr());
    std::fs::write(&key, renewed).unwrap();
    configure(&path, &endpoint(&key, 6));
    reload(&bus, 6);
    assert!(asked(&mut connect(&second)).unwrap().contains("X-Version: 6"), "{}", bus.stderr());
}

/// SIGHUP five times a second under load, while artifacts change, break, go and come back: each request has an answer
/// of a version that was in force, and in the end nothing is left of the versions before.
#[test]
fn reloads_under_load_lose_nothing() {
    let artifacts = |round: usize| {
        let mut all = vec![proxy("Changing", round), proxy("Constant", 0)];
        // Of three rounds it is good in one, faulty in one and not there in one; faulty after good is good.
        all.extend(match round % 3 {
            0 => Some(proxy("Coming", round)),
            1 => Some(faulty("Coming")),
            _ => None,
        });
        all.extend((0..50).map(|number| proxy(&format!("Other{number}"), round)));
        all.concat()
    };
    let path = configuration("reload-load", &artifacts(0));
    let bus = Process::run(&path, &[]);
    let memory = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", bus.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap()
    };
    let descriptors = || std::fs::read_dir(format!("/proc/{}/fd", bus.id())).unwrap().count();
    let done = AtomicBool::new(false);
    let rounds = 24;
    let mut settled = (0, 0);
    let counts = std::thread::scope(|scope| {
        let clients: Vec<_> = ["Changing", "Constant", "Coming", "Other7"]
            .into_iter()
            .map(|name| {
                let (bus, done) = (&bus, &done);
                scope.spawn(move || {
                    let mut open = TcpStream::connect(bus.http()).unwrap();
                    let (mut count, mut last) = (0, 0);
                    while !done.load(Ordering::Relaxed) {
                        let body = format!("<n>{name}{count}</n>");
                        let path = format!("/services/{name}");
                        let (status, head, response) =
                            exchange(&mut open, "POST", &path, body.as_bytes(), "").expect("an answer");
                        if status == 404 {
                            assert_eq!(name, "Coming");
                        } else {
                            assert_eq!(
                                (status, response.as_slice()),
                                (200, body.as_bytes()),
                                "{name}: {head}"
                            );
                            let version =
                                head.split("X-Version: ").nth(1).unwrap().split("\r\n").next().unwrap();
                            let version: usize = version.parse().unwrap();
                            assert!(version >= last, "{name}: {version} after {last}");
                            assert!(name != "Coming" || version.is_multiple_of(3), "{version}");
                            last = version;
                        }
                        count += 1;
                        std::thread::sleep(Duration::from_millis(3));
                    }
                    count
                })
            })
            .collect();
        let reloading = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for round in 1..=rounds {
                configure(&path, &artifacts(round));
                bus.signal("HUP");
                std::thread::sleep(Duration::from_millis(200));
                if round == rounds / 2 {
                    settled = (memory(), descriptors());
                }
            }
        }));
        done.store(true, Ordering::Relaxed);
        reloading.unwrap();
        clients.into_iter().map(|client| client.join().unwrap()).collect::<Vec<usize>>()
    });
    assert!(counts.iter().sum::<usize>() > 500, "{counts:?}");
    bus.says(&format!("generation {}: ", rounds + 1), 1);
    let (size, open) = (memory(), descriptors());
    // As much as one more plan may be on its way, not one for each reload.
    assert!(size < settled.0 + 16 * 1024, "{size} kB after {} kB", settled.0);
    assert!(open <= settled.1 + 4, "{open} descriptors after {}", settled.1);
}

/// A server that accepts and stays silent holds up the reload that fetches from it, and nothing else.
#[test]
fn a_stop_does_not_wait_for_a_reload() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let path = configuration("reload-silent", &proxy("A", 1));
    let mut bus = Process::run(&path, &[]);
    let entries: String = (0..3)
        .map(|number| format!("<localEntry key='e{number}' src='http://{address}/{number}'/>"))
        .collect();
    configure(&path, &(entries + &proxy("A", 2)));
    bus.signal("HUP");
    let asked = silent.accept().unwrap();
    assert_eq!(version(&bus, "A"), "1");
    let began = std::time::Instant::now();
    bus.signal("TERM");
    bus.wait();
    // The deadline of one resource is 20 s.
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    drop(asked);
}

/// The most memory that a process had, in bytes.
fn peak(bus: &Process) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", bus.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<usize>().unwrap() * 1024
}

/// A client that receives an answer slowly.
struct Slow {
    stream: TcpStream,
    bytes: Vec<u8>,
}

impl Slow {
    /// Asks, and takes the first bytes of the answer.
    fn ask(bus: &Process, path: &str) -> Slow {
        use std::io::Write;
        let mut stream = TcpStream::connect(bus.http()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", bus.http());
        stream.write_all(request.as_bytes()).unwrap();
        let mut slow = Slow { stream, bytes: Vec::new() };
        slow.take(1);
        slow
    }

    /// Takes some more.
    fn take(&mut self, count: usize) {
        use std::io::Read;
        let mut buffer = vec![0; 16 << 10];
        for _ in 0..count {
            let length = self.stream.read(&mut buffer).unwrap();
            self.bytes.extend_from_slice(&buffer[..length]);
        }
    }

    /// Takes the rest; the entity without the frames of its chunks.
    fn rest(mut self) -> String {
        use std::io::Read;
        self.stream.read_to_end(&mut self.bytes).unwrap();
        let head = self.bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        let (mut rest, mut text) = (&self.bytes[head..], String::new());
        loop {
            let line = rest.windows(2).position(|window| window == b"\r\n").unwrap();
            let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
            if size == 0 {
                return text;
            }
            text.push_str(std::str::from_utf8(&rest[line + 2..line + 2 + size]).unwrap());
            rest = &rest[line + 4 + size..];
        }
    }
}

#[test]
fn an_answer_of_a_database_outlives_its_data_source_and_its_bus() {
    const ROWS: usize = 40_000;
    let source = "<datasource><name>Shop</name><definition type='RDBMS'><configuration><driverClassName>d</driverClassName>\
         <url>jdbc:sqlite:reload-rows.db</url></configuration></definition></datasource>";
    let service = "<data xmlns='' name='Rows'><config id='db'><property name='carbon_datasource_name'>Shop</property></config>\
         <query id='rows' useConfig='db'><sql>with recursive n(a) as (select 1 union all select a + 1 from n where a &lt; :most) \
         select a, printf('%01000d', a) b from n</sql><param name='most' sqlType='INTEGER'/>\
         <result element='M' rowName='R'><element name='a' column='a'/><element name='b' column='b'/></result></query>\
         <operation name='rows'><call-query href='rows'><with-param name='most' query-param='most'/></call-query></operation></data>";
    let other = proxy("A", 1);
    let whole = format!("{source}{service}{other}");
    let path = configuration("reload-rows", &whole);
    let mut bus = Process::run(&path, &[]);
    let few = |bus: &Process| ask(bus.http(), "GET", "/services/Rows/rows?most=3", b"").unwrap().0;
    assert!(admin(&bus, "GET", "/artifacts/datasource/Shop").1.contains("\"state\": \"unused\""));
    assert_eq!(few(&bus), 200);
    let before = peak(&bus);
    let many = format!("/services/Rows/rows?most={ROWS}");
    let mut first = Slow::ask(&bus, &many);
    let (status, about) = admin(&bus, "GET", "/artifacts/datasource/Shop");
    for says in ["\"state\": \"up\"", "\"in_use\": 1", "SQLite", "\"last_error\": null"] {
        assert!(status == 200 && about.contains(says), "{says}: {about}");
    }
    let metrics = admin(&bus, "GET", "/metrics").1;
    for says in [
        "busbar_sql_state{data_source=\"Shop\",state=\"up\"} 1",
        "busbar_sql_connections_in_use{data_source=\"Shop\"} 1",
        "busbar_sql_connections_limit{data_source=\"Shop\"} 50",
        "busbar_sql_statements_total{data_source=\"Shop\"} 2",
    ] {
        assert!(metrics.contains(says), "{says}");
    }
    // The data source is lost: what asks it stays in force with the connections that it has.
    configure(&path, &format!("{service}{other}"));
    reload(&bus, 1);
    bus.says("`Rows` stays in force as it was", 1);
    assert!(!bus.stderr().contains("left out"), "{}", bus.stderr());
    assert_eq!(few(&bus), 200);
    first.take(20);
    // The service goes too, but for the answer that is on its way.
    configure(&path, &other);
    reload(&bus, 2);
    assert_eq!(few(&bus), 404);
    let text = first.rest();
    assert!(text.ends_with("</M>") && text.matches("</R>").count() == ROWS, "{}", text.len());
    // Forty megabytes have gone through, and were never held.
    assert!(peak(&bus) - before < 20 << 20, "{} KiB more", (peak(&bus) - before) >> 10);
    configure(&path, &whole);
    reload(&bus, 3);
    let mut last = Slow::ask(&bus, &many);
    bus.signal("TERM");
    last.take(20);
    let text = last.rest();
    assert!(text.ends_with("</M>") && text.matches("</R>").count() == ROWS, "{}", text.len());
    assert_eq!(bus.wait(), Some(0), "{}", bus.stderr());
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(path.with_file_name(format!("reload-rows.db{end}")));
    }
}
