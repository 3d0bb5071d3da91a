//! Message stores in a table, in the binary: what was accepted is delivered, whatever happens to the process.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use support::{Process, ask, configuration, until};

/// What came to a backend, by its text.
type Delivered = Arc<Mutex<HashMap<String, usize>>>;

const ACCEPTED: &[u8] = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";

/// Counts the bodies that come to it, and accepts them.
fn backend() -> (String, Delivered) {
    backend_with(ACCEPTED)
}

/// Counts the bodies that come to it; closes after an answer that is not [`ACCEPTED`].
fn backend_with(answer: &'static [u8]) -> (String, Delivered) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, delivered) = (listener.local_addr().unwrap(), Delivered::default());
    let counts = Arc::clone(&delivered);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let counts = Arc::clone(&counts);
            std::thread::spawn(move || serve(stream, &counts, answer));
        }
    });
    (format!("http://{address}/"), delivered)
}

fn serve(mut stream: TcpStream, counts: &Mutex<HashMap<String, usize>>, answer: &[u8]) {
    let (mut taken, mut piece) = (String::new(), [0; 4096]);
    while let Ok(n @ 1..) = stream.read(&mut piece) {
        taken += &String::from_utf8_lossy(&piece[..n]);
        while let Some(end) = taken.find("</order>") {
            let body = taken[..end].rsplit("<order>").next().unwrap().to_owned();
            taken.drain(..end + "</order>".len());
            *counts.lock().unwrap().entry(body).or_default() += 1;
            if stream.write_all(answer).is_err() || answer != ACCEPTED {
                return;
            }
        }
    }
}

/// A proxy service `name` that runs statements.
fn statements(name: &str, url: &str, statements: &[&str]) -> String {
    let statements: String =
        statements.iter().map(|sql| format!("<statement><sql><![CDATA[{sql}]]></sql></statement>")).collect();
    format!(
        "<proxy name='{name}'><target><inSequence><dbreport><connection><pool><driver>x</driver><url>{url}</url><user/><password/></pool></connection>\
         {statements}</dbreport><respond/></inSequence></target></proxy>"
    )
}

const CREATE: &str = "CREATE TABLE IF NOT EXISTS waiting (indexId INTEGER PRIMARY KEY AUTOINCREMENT, msg_id VARCHAR(200), message BLOB)";

/// The store `waiting` in a new database, its URL, the proxy service `Orders` that fills it, and a processor that sends to `uri`.
fn store(name: &str, uri: &str) -> (String, String) {
    let database = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.db"));
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", database.display()));
    }
    let url = format!("jdbc:sqlite:{}", database.display());
    let artifacts = format!(
        "<proxy name='Orders'><target><inSequence><property name='FORCE_SC_ACCEPTED' value='true' scope='axis2'/><property name='OUT_ONLY' value='true'/>\
             <store messageStore='waiting'/></inSequence></target></proxy>\
             <messageStore name='waiting' class='org.apache.synapse.message.store.impl.jdbc.JDBCMessageStore'>\
             <parameter name='store.jdbc.connection.url'>{url}</parameter><parameter name='store.jdbc.table'>waiting</parameter></messageStore>\
             <endpoint name='shop'><address uri='{uri}'/></endpoint>\
             <messageProcessor name='deliver' class='org.apache.synapse.message.processor.impl.forwarder.ScheduledMessageForwardingProcessor' \
             messageStore='waiting' targetEndpoint='shop'><parameter name='interval'>1</parameter><parameter name='store.connection.retry.interval'>100</parameter></messageProcessor>"
    );
    (url, artifacts)
}

/// As [`store`], without its URL; its database lets nothing be taken out until `Allow` is called.
fn refusing_store(name: &str, uri: &str) -> String {
    let (url, artifacts) = store(name, uri);
    let refuse = "CREATE TRIGGER refuse BEFORE DELETE ON waiting BEGIN SELECT RAISE(ABORT, 'not now'); END";
    statements("Create", &url, &[CREATE, refuse])
        + &statements("Allow", &url, &["DROP TRIGGER refuse"])
        + &artifacts
}

/// Makes the table of the store, and puts two orders into it.
fn fill(bus: &Process) {
    assert_eq!(ask(bus.http(), "POST", "/services/Create", b"<a/>").unwrap().0, 200, "{}", bus.stderr());
    for order in ["one", "two"] {
        let body = format!("<order>{order}</order>");
        assert_eq!(ask(bus.http(), "POST", "/services/Orders", body.as_bytes()).unwrap().0, 202);
    }
}

#[test]
fn what_was_accepted_is_delivered_although_the_bus_is_killed() {
    let (uri, delivered) = backend();
    let (url, artifacts) = store("stores-kill", &uri);
    let path = configuration("stores-kill", &(statements("Create", &url, &[CREATE]) + &artifacts));
    let mut accepted = Vec::new();
    for kill in 0..5 {
        let bus = Process::run(&path, &[]);
        assert_eq!(ask(bus.http(), "POST", "/services/Create", b"<a/>").unwrap().0, 200, "{}", bus.stderr());
        for number in 0..20 {
            let id = format!("{kill}-{number}");
            let body = format!("<order>{id}</order>");
            if ask(bus.http(), "POST", "/services/Orders", body.as_bytes()).unwrap().0 == 202 {
                accepted.push(id);
            }
        }
        bus.signal("KILL");
    }
    assert_eq!(accepted.len(), 100);
    let bus = Process::run(&path, &[]);
    until("all are delivered", || accepted.iter().all(|id| delivered.lock().unwrap().contains_key(id)));
    let again = delivered.lock().unwrap().values().filter(|&&times| times > 1).count();
    assert!(again <= 5, "one message is on its way when the bus is killed: {again} came again");
    drop(bus);
}

#[test]
fn what_cannot_be_taken_out_is_delivered_once_and_said_once() {
    let (uri, delivered) = backend();
    let artifacts = refusing_store("stores-refuse", &uri);
    let bus = Process::run(&configuration("stores-refuse", &artifacts), &[]);
    fill(&bus);
    let said = |what: &str| bus.stderr().matches(what).count();
    until("it is said", || said("the message is done and still in the store") > 0);
    // Some attempts.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert_eq!(said("the message is done and still in the store"), 1, "{}", bus.stderr());
    assert_eq!(ask(bus.http(), "POST", "/services/Allow", b"<a/>").unwrap().0, 200, "{}", bus.stderr());
    until("the next one is delivered", || delivered.lock().unwrap().contains_key("two"));
    assert!(delivered.lock().unwrap().values().all(|&times| times == 1), "{delivered:?}");
    bus.says("the message that was done is out of the store", 1);
}

/// Nor by a processor of another name that a reload brings, nor by one that comes back, nor by a second one of the store, nor by one of another store in
/// the same table.
#[test]
fn what_cannot_be_taken_out_is_delivered_once_by_all_processors() {
    let (uri, delivered) = backend();
    let artifacts = refusing_store("stores-renamed", &uri);
    let at = artifacts.find("<messageProcessor ").unwrap();
    let (rest, processor) = artifacts.split_at(at);
    let another = processor.replace("name='deliver'", "name='another'");
    let path = configuration("stores-renamed", &artifacts);
    let bus = Process::run(&path, &[]);
    fill(&bus);
    bus.says("the message is done and still in the store", 1);
    let whole = |processors: &str| rest.to_owned() + processors;
    let renamed = artifacts
        .replace("name='waiting'", "name='pending'")
        .replace("messageStore='waiting'", "messageStore='pending'");
    for (number, artifacts) in
        [whole(&another), whole(""), whole(&(processor.to_owned() + &another)), renamed].iter().enumerate()
    {
        support::configure(&path, artifacts);
        bus.signal("HUP");
        bus.says("reloaded: ", number + 1);
        // Some attempts.
        std::thread::sleep(std::time::Duration::from_millis(500));
        assert_eq!(*delivered.lock().unwrap(), HashMap::from([("one".to_owned(), 1)]), "{}", bus.stderr());
    }
    assert_eq!(ask(bus.http(), "POST", "/services/Allow", b"<a/>").unwrap().0, 200, "{}", bus.stderr());
    until("the next one is delivered", || delivered.lock().unwrap().contains_key("two"));
    assert!(delivered.lock().unwrap().values().all(|&times| times == 1), "{delivered:?}");
}

#[test]
fn a_one_way_message_is_delivered_once_although_the_body_of_its_answer_breaks_off() {
    let (uri, delivered) =
        backend_with(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nhalf");
    let (url, artifacts) = store("stores-half", &uri);
    let path = configuration("stores-half", &(statements("Create", &url, &[CREATE]) + &artifacts));
    let bus = Process::run(&path, &[]);
    assert_eq!(ask(bus.http(), "POST", "/services/Create", b"<a/>").unwrap().0, 200, "{}", bus.stderr());
    for order in ["one", "two", "three"] {
        let body = format!("<order>{order}</order>");
        assert_eq!(ask(bus.http(), "POST", "/services/Orders", body.as_bytes()).unwrap().0, 202);
    }
    until("the last one is delivered", || delivered.lock().unwrap().contains_key("three"));
    assert!(delivered.lock().unwrap().values().all(|&times| times == 1), "{delivered:?}");
}

/// In memory, and gone from the configuration: the messages wait until it is there again, and the log says so.
#[test]
fn messages_of_a_store_that_goes_wait_for_it() {
    let (backend, delivered) = backend_with(b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n");
    let proxy = "<proxy name='P'><target><inSequence><property name='FORCE_SC_ACCEPTED' value='true' scope='axis2'/>\
        <property name='OUT_ONLY' value='true'/><store messageStore='S'/></inSequence></target></proxy>";
    let processor = |backend: &str| {
        format!(
            "<messageProcessor name='M' class='org.apache.synapse.message.processor.impl.forwarder.ScheduledMessageForwardingProcessor' \
             messageStore='S' targetEndpoint='E'><parameter name='interval'>10</parameter><parameter name='max.delivery.attempts'>-1</parameter>\
             <parameter name='client.retry.interval'>10</parameter></messageProcessor><endpoint name='E'><address uri='{backend}'/></endpoint>"
        )
    };
    let with_store = |backend: &str| ["<messageStore name='S'/>", proxy, &processor(backend)].concat();
    let path = configuration("store-that-goes", &with_store(&backend));
    let bus = Process::run(&path, &[]);
    for order in ["1", "2"] {
        let body = format!("<order>{order}</order>");
        assert_eq!(ask(bus.http(), "POST", "/services/P", body.as_bytes()).unwrap().0, 202);
    }
    until("an attempt", || !delivered.lock().unwrap().is_empty());
    support::configure(&path, proxy);
    bus.signal("HUP");
    bus.says("2 messages wait in an in-memory store that the configuration no longer has", 1);
    let (backend, delivered) = backend_with(ACCEPTED);
    support::configure(&path, &with_store(&backend));
    bus.signal("HUP");
    until("both are delivered", || {
        let delivered = delivered.lock().unwrap();
        delivered.len() == 2 && delivered.values().all(|times| *times == 1)
    });
}
