//! Steps that compute for long, seen from outside: they hold up nobody else, and end at their deadline or with their
//! client.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use std::io::Write;
use std::net::TcpStream;
use support::{Process, ask, configuration, until};

/// The steps, each as long as it may be, and a short one.
const ARTIFACTS: &str = r#"
<proxy name="Direct"><target><inSequence><respond/></inSequence></target></proxy>
<proxy name="Short"><target><inSequence><script language="js">for (var i = 0; i &lt; 10; i++) {}</script><respond/></inSequence></target></proxy>
<proxy name="Script"><target><inSequence><script language="js">while (true) {}</script><respond/></inSequence></target></proxy>
<proxy name="XPath"><target><inSequence>
  <filter xpath="count(//a[count(../a[count(../a[count(../a[. = 'x']) > 1]) > 1]) > 1]) > 1"><then/></filter><respond/>
</inSequence></target></proxy>
<proxy name="Property"><target><inSequence>
  <property name="p" expression="count(//a[count(../a[count(../a[count(../a[. = 'x']) > 1]) > 1]) > 1])"/><respond/>
</inSequence></target></proxy>
<proxy name="Xslt"><target><inSequence><xslt key="loops"/><respond/></inSequence></target></proxy>
<proxy name="Callout"><target><inSequence>
  <callout serviceURL="http://127.0.0.1:1/"><source xpath="//a[count(../a[count(../a[count(../a[. = 'x']) > 1]) > 1]) > 1]"/></callout><respond/>
</inSequence></target></proxy>
<proxy name="Store"><target><inSequence>
  <store messageStore="{count(//a[count(../a[count(../a[count(../a[. = 'x']) > 1]) > 1]) > 1])}"/><respond/>
</inSequence></target></proxy>
<proxy name="Validate"><target><inSequence><validate><schema key="pairs"/><on-fail><drop/></on-fail></validate><respond/></inSequence></target></proxy>
<localEntry key="pairs"><xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
  <xs:element name="r"><xs:complexType><xs:sequence><xs:element name="a" type="xs:string" maxOccurs="unbounded">PAIRS</xs:element></xs:sequence></xs:complexType></xs:element>
</xs:schema></localEntry>
<localEntry key="loops"><x:stylesheet version="1.0" xmlns:x="http://www.w3.org/1999/XSL/Transform" xmlns="">
  <x:template match="/"><r><x:for-each select="//a"><x:for-each select="//a"><x:for-each select="//a"><x:for-each select="//a"><x:if test=". = 'x'"><b/></x:if>
  </x:for-each></x:for-each></x:for-each></x:for-each></r></x:template>
</x:stylesheet></localEntry>"#;

const LONG: &[&str] = &["Script", "XPath", "Property", "Xslt", "Callout", "Store", "Validate"];

/// Keys of which each element of a document has some of its own, with references: all pairs are looked at.
fn artifacts() -> String {
    let pair = |n: usize| {
        format!(
            r#"<xs:key name="k{n}"><xs:selector xpath="."/><xs:field xpath="."/></xs:key><xs:keyref name="f{n}" refer="k{n}"><xs:selector xpath="."/><xs:field xpath="."/></xs:keyref>"#
        )
    };
    ARTIFACTS.replace("PAIRS", &(0..50).map(pair).collect::<String>())
}

fn body() -> String {
    format!("<r>{}</r>", "<a>y</a>".repeat(2000))
}

/// A request whose answer nobody reads.
fn begin(address: &str, service: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = format!(
        "POST /services/{service} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/xml\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all((head + body).as_bytes()).unwrap();
    stream
}

#[test]
fn long_steps_stand_in_nobodys_way_and_end_with_their_clients() {
    let more =
        ["script_time=600s", "compute_wait=600s", "compute_threads=2"].map(|limit| format!("limits.{limit}"));
    let set: Vec<&str> = more.iter().flat_map(|setting| ["--set", setting.as_str()]).collect();
    let bus = Process::run(&configuration("compute-long", &artifacts()), &set);
    let body = body();
    for service in LONG {
        // So many that each worker and each compute thread has some.
        let begun: Vec<TcpStream> = (0..16).map(|_| begin(bus.http(), service, &body)).collect();
        for _ in 0..32 {
            let (status, _, response) = ask(bus.http(), "POST", "/services/Direct", b"<a/>").unwrap();
            assert_eq!((status, response.as_slice()), (200, &b"<a/>"[..]), "{service}");
        }
        // Their clients go away: the threads are free for others.
        drop(begun);
        let (status, ..) = ask(bus.http(), "POST", "/services/Short", b"<a/>").unwrap();
        assert_eq!(status, 200, "{service}");
    }
}

/// The value of a filter or a switch is decided while the body arrives: the match is no work for a worker there either.
#[test]
fn a_long_match_on_a_body_that_arrives_stands_in_nobodys_way() {
    // Each place goes back over the whole text.
    const PATTERN: &str = r"(?:(?:a++)*+c|a)*b";
    let artifacts = format!(
        r#"
<proxy name="Direct"><target><inSequence><respond/></inSequence></target></proxy>
<proxy name="Filter"><target><inSequence><filter source="//t" regex="{PATTERN}"><then/></filter><respond/></inSequence></target></proxy>
<proxy name="Switch"><target><inSequence><switch source="//t"><case regex="{PATTERN}"/></switch><respond/></inSequence></target></proxy>"#
    );
    let more =
        ["script_time=600s", "compute_wait=600s", "compute_threads=2"].map(|limit| format!("limits.{limit}"));
    let set: Vec<&str> = more.iter().flat_map(|setting| ["--set", setting.as_str()]).collect();
    let bus = Process::run(&configuration("compute-match", &artifacts), &set);
    // Behind the value there is more, so that it is decided before all has arrived.
    let body = format!("<r><t>{}</t>{}</r>", "a".repeat(200_000), "<x/>".repeat(100_000));
    for service in ["Filter", "Switch"] {
        let begun: Vec<TcpStream> = (0..8).map(|_| begin(bus.http(), service, &body)).collect();
        for _ in 0..32 {
            let (status, ..) = ask(bus.http(), "POST", "/services/Direct", b"<a/>").unwrap();
            assert_eq!(status, 200, "{service}");
        }
        drop(begun);
    }
}

#[test]
fn long_steps_fault_at_their_deadline() {
    let bus = Process::run(
        &configuration("compute-deadline", &artifacts()),
        &["--set", "limits.script_time=100ms"],
    );
    for (at, service) in LONG.iter().enumerate() {
        let path = format!("/services/{service}");
        let (status, ..) = ask(bus.http(), "POST", &path, body().as_bytes()).unwrap();
        assert_eq!(status, 500, "{service}");
        bus.says("limits.script_time", at + 1);
    }
}

#[test]
fn what_finds_no_thread_is_shed() {
    let more = ["script_time=600s", "compute_wait=100ms", "compute_threads=1"]
        .map(|limit| format!("limits.{limit}"));
    let set: Vec<&str> = more.iter().flat_map(|setting| ["--set", setting.as_str()]).collect();
    let bus = Process::run(&configuration("compute-shed", &artifacts()), &set);
    let begun = begin(bus.http(), "Script", "<a/>");
    // Once that one has the thread, others get none in time.
    until("a message is shed", || ask(bus.http(), "POST", "/services/Short", b"<a/>").unwrap().0 == 503);
    drop(begun);
    bus.says("limits.compute_wait", 1);
}
