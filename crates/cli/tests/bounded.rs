//! A process that the system bounds: it refuses what does not fit, and goes on.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use support::{Process, ask, configuration};

fn place(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bounded-{name}"));
    let _ = std::fs::remove_dir_all(&root);
    for directory in ["in", "done", "out"] {
        std::fs::create_dir_all(root.join(directory)).unwrap();
    }
    root
}

/// `ulimit -v`: messages that find no room are refused, and the process goes on.
#[test]
fn an_address_space_that_is_bounded() {
    let path = configuration(
        "bounded-addresses",
        "<messageStore name='M'/><api name='A' context='/a'><resource methods='POST' uri-template='/store'><inSequence><store messageStore='M'/></inSequence></resource>\
         <resource methods='POST' uri-template='/length'><inSequence><payloadFactory media-type='json'><format>{\"n\":$1}</format>\
         <args><arg expression='string-length(//*)'/></args></payloadFactory><respond/></inSequence></resource></api>",
    );
    let mut bus = Process::limited("-v 800000", &path);
    let body = format!("<a>{}</a>", "x".repeat(20 << 20));
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..48)
            .map(|number| {
                let (bus, body) = (&bus, &body);
                let path = if number % 3 == 0 { "/a/store" } else { "/a/length" };
                scope.spawn(move || {
                    ask(bus.http(), "POST", path, body.as_bytes()).map_or(0, |answer| answer.0)
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    assert!(!bus.stderr().contains("ulimit -v"), "{}", bus.stderr());
    let (status, _, _) = ask(bus.http(), "POST", "/a/length", b"<a>x</a>")
        .unwrap_or_else(|error| panic!("{error}: {statuses:?}\n{}", bus.stderr()));
    assert!(status == 200 || status == 503, "{status}");
    // Where it would end instead, it says so before.
    let narrow = Process::limited("-v 255000", &path);
    narrow.says("the address space is limited to 249 MiB (`ulimit -v`): the process ends", 1);
    assert!(statuses.contains(&503) && statuses.iter().any(|status| *status < 300), "{statuses:?}");
    bus.signal("TERM");
    assert_eq!(bus.wait(), Some(0));
}

/// `ulimit -f`: a file that becomes too large is an error of what writes it, in every way that files are written.
#[test]
fn files_that_may_not_be_large() {
    let root = place("files");
    let at = |name: &str| root.join(name).display().to_string();
    let (directory, input, done, out) = (root.display(), at("in"), at("done"), at("out"));
    let path = configuration(
        "bounded-files",
        &format!(
            "<localEntry key='D'><file.init><workingDir>{directory}</workingDir></file.init></localEntry>\
             <proxy name='V' transports='vfs'><parameter name='transport.vfs.FileURI'>{input}</parameter><parameter name='transport.PollInterval'>1</parameter>\
             <parameter name='transport.vfs.ContentType'>text/plain</parameter><parameter name='transport.vfs.ActionAfterProcess'>MOVE</parameter>\
             <parameter name='transport.vfs.MoveAfterProcess'>{done}</parameter><target><inSequence><property name='OUT_ONLY' value='true'/>\
             <send><endpoint><address uri='vfs:{out}'/></endpoint></send></inSequence></target></proxy>\
             <api name='A' context='/a'><resource methods='POST'><inSequence><file.write configKey='D'><filePath>written</filePath>\
             <contentOrExpression>${{payload}}</contentOrExpression><writeMode>Overwrite</writeMode></file.write><respond/></inSequence></resource></api>\
             <task name='T' class='org.apache.synapse.startup.tasks.MessageInjector'><trigger interval='1'/><property name='injectTo' value='sequence'/>\
             <property name='sequenceName' value='S'/><property name='message'><m xmlns=''/></property></task>\
             <sequence name='S'><file.copy configKey='D'><sourcePath>large</sourcePath><targetPath>out</targetPath></file.copy></sequence>"
        ),
    );
    let large = "x".repeat(200_000);
    std::fs::write(root.join("large"), &large).unwrap();
    // In blocks of 512 bytes.
    let mut bus = Process::limited("-f 200", &path);
    let put = |body: &str| ask(bus.http(), "POST", "/a", format!("<a>{body}</a>").as_bytes()).unwrap().0;
    assert_eq!(put(&large), 500, "{}", bus.stderr());
    assert!(!root.join("written").exists());
    assert_eq!(put("small"), 200, "{}", bus.stderr());
    std::fs::write(root.join("in/small"), "small").unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while !root.join("done/small").exists() {
        assert!(Instant::now() < deadline, "{}", bus.stderr());
        std::thread::sleep(Duration::from_millis(20));
    }
    // The endpoint is suspended after this one.
    std::fs::write(root.join("in/large"), &large).unwrap();
    for who in ["file.write: ", "file.copy: ", "sending the request failed: "] {
        bus.says(who, 1);
    }
    bus.signal("TERM");
    assert_eq!(bus.wait(), Some(0));
    let refused = bus.stderr().matches("File too large").count();
    assert!(refused >= 3, "{}", bus.stderr());
    let names: Vec<_> =
        std::fs::read_dir(root.join("out")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["small"], "nothing is half there");
}

/// Without threads, what needs one is refused, with the message as it was.
#[test]
fn threads_that_there_are_none_of() {
    let root = place("no-threads");
    let out = root.join("out").display().to_string();
    std::fs::write(root.join("items.csv"), "id,name\n1,nut\n").unwrap();
    let faults = "<faultSequence><payloadFactory media-type='text'><format>[$1] $2 $3</format><args><arg expression='//a'/>\
         <arg expression=\"get-property('ERROR_MESSAGE')\"/><arg expression=\"get-property('ERROR_DETAIL')\"/></args></payloadFactory><property name='HTTP_SC' value='555' scope='axis2'/><respond/></faultSequence>";
    crate::support::configure(
        &root.join("synapse.xml"),
        &format!(
            "<proxy name='Script'><target><inSequence><script language='js'><![CDATA[java.lang.Thread.sleep(1);]]></script><respond/></inSequence>{faults}</target></proxy>\
             <proxy name='File'><target><inSequence><call><endpoint><address uri='vfs:{out}'><suspendOnFailure><initialDuration>1</initialDuration></suspendOnFailure></address></endpoint></call><respond/></inSequence>{faults}</target></proxy>\
             <proxy name='Database'><target><inSequence><dblookup><connection><pool><driver>org.postgresql.Driver</driver><url>jdbc:postgresql://localhost:1/x</url>\
             <user>u</user><password>p</password></pool></connection><statement><sql>select 1</sql></statement></dblookup></inSequence></target></proxy>"
        ),
    );
    let items = "<data name='Items'><config id='c'><property name='csv_datasource'>items.csv</property><property name='csv_hasheader'>true</property></config>\
         <query id='q' useConfig='c'><result element='items' rowName='item'><element name='name' column='name'/></result></query>\
         <resource path='items' method='GET'><call-query href='q'/></resource></data>";
    std::fs::write(root.join("Items.dbs"), items).unwrap();
    let open = |path: &Path, mode| {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap()
    };
    open(&root.join("out"), 0o777);
    let Some(mut bus) = Process::as_nobody(&root) else {
        return println!("skipped: this user cannot start a process as another one");
    };
    let answers = |method: &str, path: &str| {
        let (status, _, body) = ask(bus.http(), method, path, b"<a>x</a>").unwrap();
        (status, String::from_utf8(body).unwrap())
    };
    let paths = [("POST", "/services/Script"), ("POST", "/services/File"), ("GET", "/services/Items/items")];
    // A thread that idles would end after ten seconds; there is none yet.
    bus.threads("1");
    for (method, path) in paths {
        let (status, body) = answers(method, path);
        assert!(status == 555 || status == 503, "{path}: {status} {body}\n{}", bus.stderr());
        assert!(body.contains("no more threads"), "{path}: {body}");
        assert!(status == 503 || body.contains("[x]"), "{path}: the message is lost: {body}");
    }
    // The driver looks up the name on a thread.
    assert_eq!(answers("POST", "/services/Database").0, 503, "{}", bus.stderr());
    bus.says("no more threads", 1);
    bus.threads("1000");
    std::thread::sleep(Duration::from_millis(300));
    for (method, path) in paths {
        let (status, body) = answers(method, path);
        assert_eq!(status, 200, "{path}: {body}\n{}", bus.stderr());
    }
    bus.signal("TERM");
    assert_eq!(bus.wait(), Some(0));
    assert!(!bus.stderr().contains("lost the message"), "{}", bus.stderr());
}

/// `ulimit -u`, `pids.max` of a container: nothing that needs a thread ends the process or stays behind.
#[test]
fn threads_that_are_bounded() {
    let root = place("threads");
    let path = configuration(
        "bounded-threads",
        &format!(
            "<localEntry key='D'><file.init><workingDir>{}</workingDir></file.init></localEntry>\
             <api name='A' context='/a'><resource methods='POST'><inSequence><file.checkExist configKey='D'><path>in</path></file.checkExist>\
             <respond/></inSequence></resource></api>",
            root.display()
        ),
    );
    let Some(mut bus) = Process::as_nobody(&path) else {
        return println!("skipped: this user cannot start a process as another one");
    };
    bus.threads("1");
    bus.signal("HUP");
    bus.says("not reloaded: no thread can be started", 1);
    assert_eq!(ask(bus.field("admin"), "POST", "/reload", b"").unwrap().0, 503);
    assert_eq!(ask(bus.http(), "POST", "/a", b"<a/>").unwrap().0, 503, "{}", bus.stderr());
    bus.threads("1000");
    // For a moment no further thread is asked for.
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(ask(bus.http(), "POST", "/a", b"<a/>").unwrap().0, 200, "{}", bus.stderr());
    bus.signal("HUP");
    bus.says("reloaded: ", 1);
    bus.threads("1");
    assert_eq!(ask(bus.field("admin"), "POST", "/reload", b"").unwrap().0, 503);
    let begun = Instant::now();
    bus.signal("TERM");
    assert_eq!(bus.wait(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(10), "a stop waits for what was not begun");
}
