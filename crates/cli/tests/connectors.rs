//! Connectors in the binary: a project as it lies, stops and kills in the middle of a write, more than memory holds.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use support::{Process, busbar};

/// A zip file with nothing in it.
const NO_FILES: &str = "PK\u{5}\u{6}\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

const NS: &str = "xmlns='http://ws.apache.org/ns/synapse'";

fn place(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("connectors").join(name);
    let _ = std::fs::remove_dir_all(&root);
    std::fs::create_dir_all(&root).unwrap();
    root
}

fn put(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A project of Micro Integrator 4.4 with the archives of its connectors, which nobody unpacks.
#[test]
fn a_project_with_connectors_runs_as_it_lies() {
    let root = place("project");
    let backend = support::free_port();
    let main = "src/main/wso2mi";
    put(&root, "pom.xml", "<project/>");
    for archive in ["mi-connector-http-0.1.8.zip", "mi-connector-file-5.0.0.zip", "CSV-connector-3.0.0.zip"] {
        put(&root, &format!("{main}/resources/connectors/{archive}"), NO_FILES);
    }
    put(
        &root,
        &format!("{main}/artifacts/local-entries/Prices.xml"),
        &format!(
            "<localEntry {NS} key='Prices'><http.init><connectionType>HTTP</connectionType><baseUrl>http://127.0.0.1:{backend}</baseUrl>\
             <authType>None</authType><timeoutAction>Never</timeoutAction><retryCount>0</retryCount><retryDelay>0</retryDelay>\
             <suspendInitialDuration>-1</suspendInitialDuration><suspendProgressionFactor>1</suspendProgressionFactor><name>Prices</name></http.init></localEntry>"
        ),
    );
    let disk = place("project-disk");
    let data = disk.display().to_string();
    put(
        &root,
        &format!("{main}/artifacts/local-entries/Disk.xml"),
        &format!(
            "<localEntry {NS} key='Disk'><file.init><connectionType>LOCAL</connectionType><workingDir>{data}</workingDir>\
             <fileLockScheme>Local</fileLockScheme><name>Disk</name></file.init></localEntry>"
        ),
    );
    put(
        &root,
        &format!("{main}/artifacts/apis/Orders.xml"),
        &format!(
            "<api {NS} name='Orders' context='/orders'><resource methods='POST'><inSequence>\
             <http.post configKey='Prices'><relativePath>/echo/price</relativePath><headers>[]</headers><requestBodyType>JSON</requestBodyType>\
             <requestBodyJson>{{\"id\":\"${{payload.id}}\"}}</requestBodyJson><responseVariable>http_post_1</responseVariable><overwriteBody>false</overwriteBody></http.post>\
             <file.write configKey='Disk'><filePath>{{${{'order-' + payload.id + '.json'}}}}</filePath><contentOrExpression>{{${{vars.http_post_1.payload}}}}</contentOrExpression>\
             <mimeType>Automatic</mimeType><writeMode>Overwrite</writeMode><enableStreaming>false</enableStreaming><appendNewLine>false</appendNewLine><enableLock>false</enableLock>\
             <responseVariable>file_write_1</responseVariable><overwriteBody>true</overwriteBody></file.write><respond/></inSequence></resource></api>"
        ),
    );
    let process = Process::run(&root, &[]);
    let echo = format!("127.0.0.1:{backend}");
    let _backend = Process::start(&["backend", "--listen", &echo, "--mode", "echo", "--workers", "1"]);
    let (status, head, body) = {
        let mut stream = std::net::TcpStream::connect(process.http()).unwrap();
        let fields = "Content-Type: application/json\r\nConnection: close\r\n";
        support::exchange(&mut stream, "POST", "/orders", br#"{"id":"7"}"#, fields).unwrap()
    };
    let body = String::from_utf8_lossy(&body).into_owned();
    assert_eq!((status, body.as_str()), (200, r#"{"success":true,"writtenBytes":10}"#), "{head}");
    assert_eq!(std::fs::read_to_string(disk.join("order-7.json")).unwrap(), r#"{"id":"7"}"#);
    let out = busbar(&["check", root.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    assert!(text.contains("0 errors, 0 warnings"), "{text}");
    assert!(text.contains("connectors"), "what is not read is named: {text}");
}

fn copying(name: &str) -> (PathBuf, PathBuf) {
    let root = place(name);
    let source = std::fs::File::create(root.join("source")).unwrap();
    // Without blocks, so that it takes no disk; the copy reads zeros.
    source.set_len(6 << 30).unwrap();
    let configuration = support::configuration(
        &format!("connectors-{name}"),
        &format!(
            "<localEntry key='D'><file.init><workingDir>{}</workingDir></file.init></localEntry>\
             <api name='C' context='/c'><resource methods='GET'><inSequence><file.copy configKey='D'><sourcePath>source</sourcePath>\
             <targetPath>out</targetPath></file.copy><respond/></inSequence></resource></api>",
            root.display()
        ),
    );
    (root, configuration)
}

/// Waits until a copy is under way.
fn under_way(root: &Path) {
    let deadline = Instant::now() + Duration::from_secs(20);
    let begun = || std::fs::read_dir(root.join("out")).is_ok_and(|mut entries| entries.next().is_some());
    while !begun() {
        assert!(Instant::now() < deadline, "nothing is copied");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_stop_or_a_kill_in_the_middle_leaves_no_half_file() {
    for signal in ["TERM", "KILL"] {
        let (root, configuration) = copying(signal);
        let mut process = Process::run(&configuration, &["--set", "limits.drain=200ms"]);
        let address = process.http().to_owned();
        let client = std::thread::spawn(move || support::ask(&address, "GET", "/c", b""));
        under_way(&root);
        process.signal(signal);
        process.wait();
        let _ = client.join();
        assert!(!root.join("out/source").exists(), "{signal}");
        if signal == "TERM" {
            let left: Vec<_> = std::fs::read_dir(root.join("out")).unwrap().flatten().collect();
            assert!(left.is_empty(), "a stop leaves nothing: {left:?}");
        }
        let _ = std::fs::remove_dir_all(&root);
    }
}

#[test]
fn a_client_that_goes_away_ends_its_operation() {
    let (root, configuration) = copying("gone");
    let process = Process::run(&configuration, &[]);
    {
        use std::io::Write;
        let mut stream = std::net::TcpStream::connect(process.http()).unwrap();
        stream.write_all(b"GET /c HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
        under_way(&root);
    }
    let deadline = Instant::now() + Duration::from_secs(20);
    while std::fs::read_dir(root.join("out")).unwrap().next().is_some() {
        assert!(Instant::now() < deadline, "it goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = std::fs::remove_dir_all(&root);
}

#[test]
fn files_that_are_read_count_as_held() {
    let root = place("held");
    std::fs::write(root.join("big"), vec![b'x'; 24 << 20]).unwrap();
    let configuration = support::configuration(
        "connectors-held",
        &format!(
            "<localEntry key='D'><file.init><workingDir>{}</workingDir></file.init></localEntry>\
             <api name='R' context='/r'><resource methods='GET'><inSequence><file.read configKey='D'><path>big</path><contentType>text/plain</contentType></file.read>\
             <respond/></inSequence></resource></api>",
            root.display()
        ),
    );
    let process = Process::run(&configuration, &["--set", "limits.memory=64m"]);
    let (one, _, body) = support::ask(process.http(), "GET", "/r", b"").unwrap();
    assert_eq!((one, body.len()), (200, 24 << 20));
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..20)
            .map(|_| {
                scope
                    .spawn(|| support::ask(process.http(), "GET", "/r", b"").map_or(0, |response| response.0))
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    assert!(statuses.iter().all(|status| matches!(status, 200 | 503)), "{statuses:?}");
    assert!(statuses.contains(&503), "more than 64 MiB were held: {statuses:?}");
    let (one, _, _) = support::ask(process.http(), "GET", "/r", b"").unwrap();
    assert_eq!(one, 200, "what was held is free again");
}
