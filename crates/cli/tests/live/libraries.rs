//! Libraries of operations whose archives change while messages come.

use super::*;
use std::io::Cursor;

/// The archive of the library `lib`: its operations, each with its steps.
fn archive(operations: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let mut add = |name: &str, text: &str| {
        zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    };
    add(
        "connector.xml",
        "<connector><component name='lib' package='org.x'><dependency component='ops'/></component></connector>",
    );
    let listed =
        |(name, _): &(&str, &str)| format!("<component name='{name}'><file>{name}.xml</file></component>");
    let listed: String = operations.iter().map(listed).collect();
    add(
        "ops/component.xml",
        &format!(
            "<component name='ops' type='synapse/template'><subComponents>{listed}</subComponents></component>"
        ),
    );
    for (name, steps) in operations {
        let template = format!(
            "<template xmlns='http://ws.apache.org/ns/synapse' name='{name}'><sequence>{steps}</sequence></template>"
        );
        add(&format!("ops/{name}.xml"), &template);
    }
    zip.finish().unwrap().into_inner()
}

/// An operation that sets the version.
fn says(version: &str) -> String {
    format!("<property name='X-Version' value='{version}' scope='transport'/>")
}

/// An archive that is cut off, has a faulty operation or cannot be read takes nothing out of force; what became of it is said.
#[test]
fn libraries_stay_in_force_while_their_archives_are_faulty() {
    let root = directory("libraries");
    let path = root.join("synapse-libs/lib-1.zip");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let good = |version: &str| archive(&[("ver", &says(version))]);
    fs::write(&path, good("1")).unwrap();
    let call = "<proxy xmlns='http://ws.apache.org/ns/synapse' name='P'><target><inSequence><lib.ver/><respond/></inSequence></target></proxy>";
    put(&root, "P", call);
    let bus = Process::run(&root, &["--set", "deploy.watch=false"]);
    assert_eq!(version(&bus, "P"), "1");
    let reload = |what: &str, wanted: &str, change: &str| {
        let (status, response) = admin(&bus, "POST", "/reload");
        assert_eq!(status, 200, "{what}: {response}");
        assert_eq!(version(&bus, "P"), wanted, "{what}: {response}");
        assert!(response.contains(change), "{what}: {response}");
    };
    reload("nothing changed", "1", "0 changed, 0 new, 0 removed\"");
    fs::write(&path, good("2")).unwrap();
    reload("another version", "2", "1 changed, 0 new, 0 removed\"");
    let held = "0 changed, 0 new, 0 removed, 1 faulty and still in force as before\"";
    let whole = good("3");
    let java = archive(&[("ver", "<class name='a.B'/>")]);
    let worse = archive(&[("ver", "<property/>")]);
    let broken = archive(&[("ver", "<property>")]);
    for (what, bytes, why) in [
        ("truncated", &whole[..whole.len() / 2], "it is not a readable zip file"),
        ("faulty", &worse, "`property`"),
        ("faulty again", &worse, "`property`"),
        ("empty", &[][..], "it is not a readable zip file"),
        ("no XML", &broken, "`lib.ver` cannot be read"),
        ("Java", &java, "the template of `lib.ver` runs the Java class `a.B`"),
        ("no archive", b"hello", "it is not a readable zip file"),
    ] {
        fs::write(&path, bytes).unwrap();
        let before = bus.stderr().len();
        reload(what, "2", held);
        let mut line = String::new();
        until(&format!("{what}: it is in the log"), || {
            let log = bus.stderr()[before..].to_owned();
            let found =
                log.lines().find(|line| line.contains("the library `lib` stays in force as it was: "));
            line = found.unwrap_or_default().to_owned();
            !line.is_empty()
        });
        assert!(line.contains(why) && line.contains("lib-1.zip"), "{what}: {line}");
        let faulty = json(&bus, "GET", "/artifacts")["faulty"].clone();
        assert_eq!(
            (&faulty[0]["kind"], &faulty[0]["state"]),
            (&"library".into(), &"in force as before".into()),
            "{faulty}"
        );
    }
    fs::write(&path, &whole).unwrap();
    reload("mended", "3", "1 changed, 0 new, 0 removed\"");
    let diff = admin(&bus, "GET", &format!("/generations/{}/diff", in_force(&bus))).1;
    assert!(diff.contains("--- library/lib.ver") && diff.contains("value='3'"), "{diff}");
    // Another archive of that name is left out as a whole, whatever its file is called.
    fs::write(root.join("synapse-libs/a-0.zip"), good("0")).unwrap();
    let before = bus.stderr().len();
    reload("a second one", "3", "0 changed, 0 new, 0 removed\"");
    until("another archive is in the log", || {
        let log = bus.stderr()[before..].to_owned();
        log.contains("two libraries are named `lib`") && log.contains("a-0.zip")
    });
    fs::remove_file(root.join("synapse-libs/a-0.zip")).unwrap();
    let before = bus.stderr().len();
    fs::remove_file(&path).unwrap();
    reload("removed", "500", "0 changed, 0 new, 1 removed\"");
    until("its removal is in the log", || bus.stderr()[before..].contains("no archive of a library `lib`"));
    // The version before comes back from the list of generations.
    let list = json(&bus, "GET", "/generations");
    let newest = &list["generations"][0];
    assert_eq!(newest["removed"], serde_json::json!(["library/lib"]), "{list}");
    let number = list["generations"][1]["number"].as_u64().unwrap();
    let (status, response) = admin(&bus, "POST", &format!("/generations/{number}/rollback"));
    assert_eq!((status, version(&bus, "P").as_str()), (200, "3"), "{response}");
    fs::write(&path, good("4")).unwrap();
    reload("a new one", "4", "1 changed, 0 new, 0 removed\"");
}

/// With `--strict` all changes or nothing: an archive that took operations away changes nothing at all.
#[test]
fn libraries_and_strict() {
    let root = directory("libraries-strict");
    let path = root.join("synapse-libs/lib.zip");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let whole = archive(&[("ver", &says("1"))]);
    fs::write(&path, &whole).unwrap();
    let call = "<proxy xmlns='http://ws.apache.org/ns/synapse' name='P'><target><inSequence><lib.ver/><respond/></inSequence></target></proxy>";
    put(&root, "P", call);
    put(&root, "Q", &proxy("Q", 1));
    let bus = Process::run(&root, &["--set", "deploy.watch=false", "--strict"]);
    put(&root, "Q", &proxy("Q", 2));
    fs::write(&path, &whole[..40]).unwrap();
    let (status, response) = admin(&bus, "POST", "/reload");
    assert_eq!(status, 500, "{response}");
    assert_eq!((version(&bus, "P").as_str(), version(&bus, "Q").as_str()), ("1", "1"), "{response}");
    fs::write(&path, archive(&[("ver", &says("2"))])).unwrap();
    let (status, response) = admin(&bus, "POST", "/reload");
    assert_eq!(
        (status, version(&bus, "P").as_str(), version(&bus, "Q").as_str()),
        (200, "2", "2"),
        "{response}"
    );
}

/// The libraries of an archive of artifacts change with it, as a whole or not at all.
#[test]
fn libraries_of_archives_of_artifacts() {
    let root = directory("libraries-car");
    let car = |version: &str, sequence: &str| {
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let mut add = |name: &str, bytes: &[u8]| {
            zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
            zip.write_all(bytes).unwrap();
        };
        add(
            "artifacts.xml",
            b"<artifacts><artifact name='App' version='1.0.0' type='carbon/application'>\
              <dependency artifact='lib' version='1.0.0' include='true'/><dependency artifact='S' version='1.0.0' include='true'/></artifact></artifacts>",
        );
        for (name, kind, file) in [("lib", "synapse/lib", "lib.zip"), ("S", "synapse/sequence", "S.xml")] {
            let described = format!(
                "<artifact name='{name}' version='1.0.0' type='{kind}'><file>{file}</file></artifact>"
            );
            add(&format!("{name}_1.0.0/artifact.xml"), described.as_bytes());
        }
        add("lib_1.0.0/lib.zip", &archive(&[("ver", &says(version))]));
        let sequence =
            format!("<sequence xmlns='http://ws.apache.org/ns/synapse' name='S'>{sequence}</sequence>");
        add("S_1.0.0/S.xml", sequence.as_bytes());
        zip.finish().unwrap().into_inner()
    };
    let path = root.join("App_1.0.0.car");
    fs::write(&path, car("1", "<drop/>")).unwrap();
    let call = "<proxy xmlns='http://ws.apache.org/ns/synapse' name='P'><target><inSequence><lib.ver/><respond/></inSequence></target></proxy>";
    put(&root, "P", call);
    let bus = Process::run(&root, &["--set", "deploy.watch=false"]);
    assert_eq!(version(&bus, "P"), "1", "{}", bus.stderr());
    let whole = car("2", "<drop/>");
    for (what, bytes) in [
        ("truncated", &whole[..whole.len() / 2]),
        ("faulty", &car("2", "<sned/>")),
        ("no XML", &car("2", "<drop>")),
    ] {
        fs::write(&path, bytes).unwrap();
        let (_, response) = admin(&bus, "POST", "/reload");
        assert!(response.contains("still in force as before"), "{what}: {response}");
        assert_eq!(version(&bus, "P"), "1", "{what}: {response}");
    }
    fs::write(&path, whole).unwrap();
    let (_, response) = admin(&bus, "POST", "/reload");
    assert_eq!(version(&bus, "P"), "2", "{response}");
}
