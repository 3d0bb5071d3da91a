//! A registry on another server: read when the configuration loads, again when it has changed, and as it was while it cannot be read.

mod support;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::{Process, ask, busbar, configuration, until};

/// What the server has by path: entity tag and content; `None` answers with 500.
type Documents = Arc<Mutex<HashMap<String, Option<(String, String)>>>>;

/// A server of documents that answers conditional requests; returns its address and the lines that were asked.
fn server(documents: &Documents) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let (asked, documents) = (Arc::new(Mutex::new(Vec::new())), Arc::clone(documents));
    let noted = Arc::clone(&asked);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let lines = BufReader::new(stream.try_clone().expect("a socket")).lines();
            let head: Vec<String> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
            let path = head.first().and_then(|line| line.split(' ').nth(1)).unwrap_or("").to_owned();
            let tag = head.iter().find_map(|line| line.strip_prefix("If-None-Match: ")).map(str::to_owned);
            noted.lock().expect("no panic").push(format!("{path} {}", tag.as_deref().unwrap_or("-")));
            let document = documents.lock().expect("no panic").get(&path).cloned();
            let response = match document {
                None => "404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
                Some(None) => "500 Broken\r\nContent-Length: 0\r\n\r\n".to_owned(),
                Some(Some((etag, _))) if tag.as_ref() == Some(&etag) => {
                    format!("304 Not Modified\r\nETag: {etag}\r\n\r\n")
                }
                Some(Some((etag, text))) => {
                    format!("200 OK\r\nETag: {etag}\r\nContent-Length: {}\r\n\r\n{text}", text.len())
                }
            };
            let _ = stream.write_all(format!("HTTP/1.1 {response}").as_bytes());
        }
    });
    (address, asked)
}

fn sheet(element: &str) -> Option<(String, String)> {
    let text = format!(
        "<xsl:stylesheet version='1.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'>\
         <xsl:template match='/'><{element}/></xsl:template></xsl:stylesheet>"
    );
    Some((format!("\"{element}\""), text))
}

/// Asks until the answer is the right one.
fn answers(process: &Process, target: &str, wanted: &str) {
    until(&format!("{wanted} of {target}"), || {
        let (_, _, body) = ask(process.http(), "POST", target, b"<a/>").expect("an answer");
        String::from_utf8_lossy(&body).contains(wanted)
    });
}

#[test]
fn a_registry_on_another_server_is_followed() {
    let documents = Documents::default();
    let put = |path: &str, document| documents.lock().expect("no panic").insert(path.to_owned(), document);
    put("/root/a.xsl", sheet("one"));
    put("/root/b.xsl", sheet("dynamic"));
    let (address, asked) = server(&documents);
    let path = configuration(
        "remote-registry",
        &format!(
            "<registry provider='org.apache.synapse.registry.url.SimpleURLRegistry'>\
             <parameter name='root'>http://{address}/root</parameter><parameter name='cachableDuration'>100</parameter></registry>\
             <proxy name='Fixed'><target><inSequence><xslt key='a.xsl'/><respond/></inSequence></target></proxy>\
             <proxy name='Named'><target><inSequence><xslt key=\"{{concat('b', '.xsl')}}\"/><respond/></inSequence></target></proxy>"
        ),
    );
    // Looking at it asks nobody.
    let looked = busbar(&["check", path.to_str().expect("UTF-8")]);
    assert!(
        String::from_utf8_lossy(&looked.stderr).contains("not-fetched")
            || String::from_utf8_lossy(&looked.stdout).contains("not-fetched"),
        "{looked:?}"
    );
    assert!(asked.lock().expect("no panic").is_empty());

    let process = Process::watching(&path, &[]);
    answers(&process, "/services/Fixed", "<one/>");
    answers(&process, "/services/Named", "<dynamic/>");
    put("/root/a.xsl", sheet("two"));
    put("/root/b.xsl", sheet("changed"));
    answers(&process, "/services/Fixed", "<two/>");
    answers(&process, "/services/Named", "<changed/>");
    assert!(
        asked
            .lock()
            .expect("no panic")
            .iter()
            .any(|line| line == "/root/a.xsl \"two\"" || line == "/root/a.xsl \"one\"")
    );
    // What cannot be read is used as it was, also by a configuration that is loaded anew.
    put("/root/a.xsl", None);
    put("/root/b.xsl", None);
    let begin = Instant::now();
    while !process.stderr().contains("it is used as it was") {
        assert!(begin.elapsed() < Duration::from_secs(60), "{}", process.stderr());
        std::thread::sleep(Duration::from_millis(50));
    }
    let (status, ..) = ask(process.field("admin"), "POST", "/reload", b"").expect("an answer");
    assert_eq!(status, 200);
    answers(&process, "/services/Fixed", "<two/>");
    answers(&process, "/services/Named", "<changed/>");
    put("/root/a.xsl", sheet("three"));
    answers(&process, "/services/Fixed", "<three/>");
}

#[test]
fn nothing_is_fetched_where_that_is_switched_off() {
    let documents = Documents::default();
    let (address, asked) = server(&documents);
    let path = configuration(
        "remote-registry-off",
        &format!(
            "<registry provider='org.apache.synapse.registry.url.SimpleURLRegistry'><parameter name='root'>http://{address}/</parameter></registry>\
             <localEntry key='e' src='http://{address}/e'/>\
             <proxy name='P'><target><inSequence><xslt key='a.xsl'/><respond/></inSequence></target></proxy>"
        ),
    );
    let process = Process::run(&path, &["--set", "deploy.fetch=false"]);
    let (status, ..) = ask(process.http(), "POST", "/services/P", b"<a/>").expect("an answer");
    assert_eq!(status, 500);
    assert!(asked.lock().expect("no panic").is_empty());
}
