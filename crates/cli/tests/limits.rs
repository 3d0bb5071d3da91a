//! Limits that hold together, and what a stop owes to messages whose clients have their answers. On the real binary: what messages hold
//! is counted for a whole process.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::{Process, ask, configuration, exchange, until};

/// A backend that takes down the bodies it was sent, before it answers 202 after a while that depends on the body.
struct Recorder {
    address: String,
    bodies: Arc<Mutex<HashSet<String>>>,
}

impl Recorder {
    fn start(delay: fn(&str) -> Duration) -> Recorder {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let bodies: Arc<Mutex<HashSet<String>>> = Arc::default();
        let taken = Arc::clone(&bodies);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let taken = Arc::clone(&taken);
                std::thread::spawn(move || record(stream, &taken, delay));
            }
        });
        Recorder { address, bodies }
    }
}

fn record(stream: TcpStream, taken: &Mutex<HashSet<String>>, delay: fn(&str) -> Duration) -> Option<()> {
    let mut writing = stream.try_clone().ok()?;
    let mut reader = BufReader::new(stream);
    loop {
        let (mut line, mut length) = (String::new(), 0);
        while line != "\r\n" {
            line.clear();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let body = String::from_utf8(body).ok()?;
        std::thread::sleep(delay(&body));
        // Delivered is what the backend has dealt with, not what it has begun.
        taken.lock().unwrap().insert(body);
        writing.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n").ok()?;
    }
}

/// Most messages take a few milliseconds, some longer than a drain lasts.
fn mostly_fast(body: &str) -> Duration {
    let number: u64 = body.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0);
    Duration::from_millis(if number % 17 == 3 { 1500 } else { number * 7 % 11 })
}

/// SIGTERM at any instant under one-way load: every message that was answered 202 was delivered, or is named in the log.
/// `BUSBAR_ROUNDS` says how often (200 before a release).
#[test]
fn what_was_accepted_is_delivered_or_named() {
    let rounds = std::env::var("BUSBAR_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(4);
    let (mut accepted, mut named) = (0, 0);
    for round in 0..rounds {
        let (one, other) = one_stop(round);
        accepted += one;
        named += other;
    }
    println!("{accepted} accepted, {named} of them named in the log");
    assert!(accepted > rounds && named > 0, "{accepted} accepted, {named} named: the test tests nothing");
}

fn one_stop(round: usize) -> (usize, usize) {
    let backend = Recorder::start(mostly_fast);
    let log = "<log level='custom'><property name='n' expression='//n'/><property name='id' expression=\"get-property('MessageID')\"/></log>";
    let to = format!("<endpoint><address uri='http://{}/'/></endpoint>", backend.address);
    let path = configuration(
        &format!("limits-stop-{round}"),
        &format!(
            "<proxy name='Send'><target><inSequence>{log}<property name='OUT_ONLY' value='true'/><send>{to}</send></inSequence></target></proxy>\
             <proxy name='Call'><target><inSequence>{log}<property name='OUT_ONLY' value='true'/><call>{to}</call></inSequence></target></proxy>\
             <proxy name='Force'><target><inSequence>{log}<property name='FORCE_SC_ACCEPTED' value='true' scope='axis2'/>\
             <call>{to}</call></inSequence></target></proxy>\
             <proxy name='Store'><target><inSequence>{log}<store messageStore='s'/></inSequence></target></proxy>\
             <messageStore name='s'/><endpoint name='e'><address uri='http://{0}/'/></endpoint>\
             <messageProcessor name='p' class='org.apache.synapse.message.processor.impl.forwarder.ScheduledMessageForwardingProcessor' \
             messageStore='s' targetEndpoint='e'><parameter name='interval'>1</parameter></messageProcessor>",
            backend.address
        ),
    );
    let mut bus = Process::run(&path, &["--set", "limits.drain=400ms"]);
    let address = bus.http().to_owned();
    let number = AtomicUsize::new(0);
    let accepted = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for client in 0..4 {
            let (address, number, accepted) = (&address, &number, &accepted);
            scope.spawn(move || {
                let Ok(mut stream) = TcpStream::connect(address) else { return };
                let service = ["Send", "Call", "Force", "Store"][client];
                loop {
                    let n = number.fetch_add(1, Ordering::Relaxed);
                    let path = format!("/services/{service}");
                    let body = format!("<n>{n}</n>");
                    match exchange(&mut stream, "POST", &path, body.as_bytes(), "") {
                        Ok((202, head, _)) => {
                            accepted.lock().unwrap().push(n);
                            if head.contains("Connection: close") {
                                return;
                            }
                        }
                        Ok((status, head, _)) => panic!("{service} {n}: {status} {head}"),
                        Err(_) => return,
                    }
                }
            });
        }
        // Some instant: not the same in each round.
        std::thread::sleep(Duration::from_millis(50 + (round as u64 * 7919) % 300));
        bus.signal("TERM");
    });
    assert_eq!(bus.wait(), Some(0), "{}", bus.stderr());
    let (log, delivered) = (bus.stderr(), backend.bodies.lock().unwrap().clone());
    let accepted = accepted.into_inner().unwrap();
    let mut named = 0;
    for n in &accepted {
        if delivered.contains(&format!("<n>{n}</n>")) {
            continue;
        }
        // Its number is in the line of `log`, with its id; and the id is in a line of the drain.
        let line = log.lines().find(|line| line.contains(&format!("n = {n},")) && line.contains("urn:uuid:"));
        let line = line.unwrap_or_else(|| panic!("no line for {n}:\n{log}"));
        let id = &line[line.find("urn:uuid:").unwrap()..][..45];
        let given_up = log.lines().any(|line| line.contains("given up") && line.contains(id));
        assert!(given_up, "round {round}: {n} ({id}) is lost:\n{log}");
        named += 1;
    }
    (accepted.len(), named)
}

/// A value of `/metrics`.
fn metric(bus: &Process, name: &str) -> u64 {
    let (_, _, body) = ask(bus.field("admin"), "GET", "/metrics", b"").unwrap();
    let text = String::from_utf8(body).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("no {name}:\n{text}")).parse::<f64>().unwrap() as u64
}

#[test]
fn more_flows_than_allowed_are_refused_and_the_next_good_one_is_served() {
    let backend = Process::backend(&["--delay", "700"]);
    let artifacts = format!(
        "<proxy name='P'><target><endpoint><address uri='http://{}/echo'/></endpoint><outSequence><send/></outSequence></target></proxy>",
        backend.http()
    );
    let bus = Process::run(&configuration("limits-flows", &artifacts), &["--set", "limits.flows=2"]);
    std::thread::scope(|scope| {
        let busy: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| ask(bus.http(), "POST", "/services/P", b"<a/>").unwrap().0))
            .collect();
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(metric(&bus, "busbar_flows"), 2);
        for _ in 0..5 {
            let (status, head, _) = ask(bus.http(), "POST", "/services/P", b"<a/>").unwrap();
            assert_eq!(status, 503, "{head}");
            assert!(head.contains("Retry-After: 1\r\n"), "{head}");
        }
        assert_eq!(busy.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>(), [200, 200]);
    });
    assert_eq!(ask(bus.http(), "POST", "/services/P", b"<a/>").unwrap().0, 200);
    assert_eq!((metric(&bus, "busbar_refused_total"), metric(&bus, "busbar_flows")), (5, 0));
    bus.says("5 were refused within a second", 1);
    assert_eq!(bus.stderr().matches("were refused").count(), 1, "{}", bus.stderr());
}

/// What has waited for `limits.aggregate_time` is dropped: its client learns that, and no part that comes later passes for all.
#[test]
fn an_aggregate_that_waits_too_long_is_504_for_its_client() {
    let slow = Process::backend(&["--delay", "2500"]);
    let artifacts = format!(
        "<proxy name='P'><target><inSequence><iterate expression='//i'><target><sequence><filter xpath=\"//i='slow'\"><then><call><endpoint>\
         <address uri='http://{}/echo'/></endpoint></call></then></filter><aggregate><onComplete expression='//i'><respond/></onComplete></aggregate>\
         </sequence></target></iterate></inSequence></target></proxy>",
        slow.http()
    );
    let path = configuration("limits-aggregate-time", &artifacts);
    let bus = Process::run(&path, &["--set", "limits.aggregate_time=1s"]);
    let ask = |body: &[u8]| ask(bus.http(), "POST", "/services/P", body).unwrap();
    let (status, _, body) = ask(b"<a><i>1</i><i>slow</i><i>2</i></a>");
    assert_eq!(status, 504, "{}", String::from_utf8_lossy(&body));
    bus.says("an aggregate was not complete within 1 s: 2 of its parts are dropped", 1);
    assert_eq!(ask(b"<a><i>1</i><i>2</i></a>").0, 200);
    // A flow ends after its answer has been written.
    until("nothing is left open", || {
        (metric(&bus, "busbar_aggregates_open"), metric(&bus, "busbar_flows")) == (0, 0)
    });
}

#[test]
fn more_memory_than_allowed_is_refused_and_the_next_good_one_is_served() {
    // Parts that wait for others of other messages, which never come, and a service that reads its body.
    let artifacts = "<proxy name='Wait'><target><inSequence><aggregate><correlateOn expression='//a'/>\
        <completeCondition><messageCount min='1000' max='1000'/></completeCondition><onComplete expression='//a'><drop/></onComplete></aggregate>\
        </inSequence></target></proxy>\
        <proxy name='Read'><target><inSequence><property name='n' expression='count(//b)'/><respond/></inSequence></target></proxy>";
    let path = configuration("limits-memory", artifacts);
    let bus = Process::run(&path, &["--set", "limits.memory=4m", "--set", "limits.aggregate_time=2s"]);
    let large = format!("<a>{}</a>", "<b>text</b>".repeat(2000));
    let read = || ask(bus.http(), "POST", "/services/Read", large.as_bytes()).unwrap().0;
    assert_eq!(read(), 200);
    let mut waiting = 0;
    let refused = loop {
        match ask(bus.http(), "POST", "/services/Wait", large.as_bytes()).unwrap() {
            (202, ..) => waiting += 1,
            other => break other,
        }
        assert!(waiting < 100, "nothing is refused");
    };
    assert_eq!(refused.0, 503, "{refused:?}");
    assert!(waiting > 2 && metric(&bus, "busbar_memory_held_bytes") <= 4 << 20);
    // What waits longer than its clients leaves the others room.
    assert_eq!(read(), 200);
    // One body that is larger than all that may be held: refused before it is there.
    let huge = format!("<a>{}</a>", "<b>text</b>".repeat(500_000));
    let (status, head, _) = ask(bus.http(), "POST", "/services/Read", huge.as_bytes()).unwrap();
    assert_eq!(status, 503, "{head}");
    assert!(head.contains("Retry-After: 1\r\n"), "{head}");
    assert_eq!(read(), 200);
    // The aggregate never completes: its time is over when the next one begins.
    std::thread::sleep(Duration::from_millis(2100));
    assert_eq!(ask(bus.http(), "POST", "/services/Wait", large.as_bytes()).unwrap().0, 202);
    bus.says("was not complete within 2 s", 1);
    assert_eq!(read(), 200);
}

/// A store whose backend is down: what waits in it leaves messages that have nothing to do with it their room, and all that was accepted
/// is delivered when the backend is back.
#[test]
fn a_full_store_leaves_room_for_others() {
    let port = support::free_port();
    let artifacts = format!(
        "<proxy name='Keep'><target><inSequence><property name='OUT_ONLY' value='true'/><store messageStore='kept'/></inSequence></target></proxy><messageStore name='kept'/>\
         <proxy name='Read'><target><inSequence><property name='n' expression='count(//b)'/><respond/></inSequence></target></proxy>\
         <endpoint name='shop'><address uri='http://127.0.0.1:{port}/'><suspendOnFailure><initialDuration>10</initialDuration><maximumDuration>10</maximumDuration></suspendOnFailure></address></endpoint>\
         <messageProcessor name='deliver' class='org.apache.synapse.message.processor.impl.forwarder.ScheduledMessageForwardingProcessor' messageStore='kept' \
         targetEndpoint='shop'><parameter name='interval'>1</parameter><parameter name='client.retry.interval'>20</parameter>\
         <parameter name='max.delivery.attempts'>100000</parameter></messageProcessor>"
    );
    let bus = Process::run(&configuration("limits-store", &artifacts), &["--set", "limits.memory=4m"]);
    let large = format!("<a>{}</a>", "<b>text</b>".repeat(20_000));
    let mut accepted = 0;
    let refused = loop {
        match ask(bus.http(), "POST", "/services/Keep", large.as_bytes()).unwrap() {
            (202, ..) => accepted += 1,
            other => break other,
        }
        assert!(accepted < 100, "nothing is refused");
    };
    assert_eq!(refused.0, 503, "{refused:?}");
    assert!(accepted > 4, "{accepted}");
    let read = ask(bus.http(), "POST", "/services/Read", large.as_bytes()).unwrap();
    assert_eq!(read.0, 200, "{}", String::from_utf8_lossy(&read.2));
    bus.says("the store is full: it holds together with the other in-memory stores at most 2097152 bytes", 1);

    let delivered = Arc::new(AtomicUsize::new(0));
    let (count, shop) = (Arc::clone(&delivered), TcpListener::bind(("127.0.0.1", port)).unwrap());
    std::thread::spawn(move || {
        for mut stream in shop.incoming().flatten() {
            let (mut taken, mut piece) = (Vec::new(), [0; 65_536]);
            while let Ok(n @ 1..) = stream.read(&mut piece) {
                taken.extend_from_slice(&piece[..n]);
                if taken.ends_with(b"</a>") {
                    taken.clear();
                    count.fetch_add(1, Ordering::Relaxed);
                    let _ = stream.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
                }
            }
        }
    });
    support::until("what was accepted is delivered", || delivered.load(Ordering::Relaxed) >= accepted);
    assert_eq!(ask(bus.http(), "POST", "/services/Keep", large.as_bytes()).unwrap().0, 202);
}

/// More split messages than there is memory for: those that are shed make room for the others. `BUSBAR_SPLITTERS` says how many
/// clients split at once (1,000 before a release, each into 10,000 parts, with 256 MiB).
#[test]
fn what_is_shed_makes_room_for_the_others() {
    let many = std::env::var("BUSBAR_SPLITTERS").ok().and_then(|n| n.parse().ok());
    let (clients, parts, memory) = many.map_or((30, 4000, 6), |clients| (clients, 10_000, 256));
    let artifacts = "<proxy name='Split'><target><inSequence><iterate expression='//i'><target><sequence>\
        <aggregate><onComplete expression='//i'><payloadFactory media-type='text'>\
        <format>$1</format><args><arg expression='count($body/*)'/></args></payloadFactory><respond/></onComplete></aggregate></sequence></target></iterate></inSequence></target></proxy>";
    let bus = Process::run(
        &configuration("limits-shed", artifacts),
        &["--set", &format!("limits.memory={memory}m")],
    );
    let body = format!("<a>{}</a>", (0..parts).map(|n| format!("<i>{n}</i>")).collect::<String>());
    let (served, shed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| match ask(bus.http(), "POST", "/services/Split", body.as_bytes()).unwrap() {
                (200, _, response) => {
                    assert_eq!(String::from_utf8_lossy(&response), parts.to_string());
                    served.fetch_add(1, Ordering::Relaxed);
                }
                (503, head, _) => {
                    shed.fetch_add(1, Ordering::Relaxed);
                    assert!(head.contains("Retry-After"), "{head}");
                }
                other => panic!("{other:?}"),
            });
        }
    });
    let (served, shed) = (served.into_inner(), shed.into_inner());
    let peak = metric(&bus, "busbar_resident_memory_peak_bytes") >> 20;
    println!(
        "{clients} clients with {parts} parts each in {memory} MiB: {served} served, {shed} shed, peak {peak} MiB"
    );
    assert!(served > 0 && served + shed == clients, "{served} served, {shed} shed");
    // Beside what is held: the program, buffers of connections, what runs, and pages that the allocator keeps: docs/settings.md says
    // to allow for twice the bound.
    assert!(peak < 2 * memory + 128, "peak {peak} MiB");
    // A client has its answer before the parts that were shed are all taken apart.
    let end = Instant::now() + Duration::from_secs(20);
    while metric(&bus, "busbar_memory_held_bytes") > 0 {
        assert!(Instant::now() < end, "{} bytes are still held", metric(&bus, "busbar_memory_held_bytes"));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(ask(bus.http(), "POST", "/services/Split", body.as_bytes()).unwrap().0, 200);
}

/// One thread computes, and one step may wait for it, for as long as is said.
fn one_compute_thread(wait: &str) -> [&str; 6] {
    ["--set", "limits.compute_threads=1", "--set", "limits.compute_queue=1", "--set", wait]
}

/// A thousand clients that send 100 KB each, again and again, wait for compute threads, and every one has its answers. (How long they
/// wait depends on what else runs on this machine.)
#[test]
fn a_thousand_clients_wait_for_compute_threads() {
    let artifacts = "<proxy name='Counts'><target><inSequence><script language='js'>for (var i = 0, n = 0; i &lt; 30000; i++) { n += i % 7; }</script><respond/></inSequence></target></proxy>";
    let bus =
        Process::run(&configuration("limits-thousand", artifacts), &["--set", "limits.compute_wait=300s"]);
    let body = format!("<a>{}</a>", "<b>0123456789</b>".repeat(6000));
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let ask = || {
            let mut stream = TcpStream::connect(bus.http()).unwrap();
            let mut one = || {
                let answer = exchange(&mut stream, "POST", "/services/Counts", body.as_bytes(), "").unwrap();
                assert!(answer.0 != 200 || answer.2 == body.as_bytes());
                answer.0
            };
            [one(), one()]
        };
        let clients: Vec<_> = (0..1000).map(|_| scope.spawn(ask)).collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    let right = statuses.iter().filter(|status| **status == 200).count();
    let peak = metric(&bus, "busbar_resident_memory_peak_bytes") >> 20;
    println!("{right} of {} right, peak {peak} MiB", statuses.len());
    assert_eq!(right, statuses.len());
    assert!(metric(&bus, "busbar_compute_runs_total") >= 2000, "nothing was computed elsewhere");
    // Each client's message, as it came and as it leaves, beside the program and the buffers of connections.
    assert!(peak < 512, "peak {peak} MiB");
}

/// Parts wait for a compute thread however many do: their aggregate has all of them, or there is no answer of success.
#[test]
fn no_part_is_missing_where_compute_threads_are_few() {
    let artifacts = "<proxy name='Split'><target><inSequence><iterate expression='//i'><target><sequence>\
        <property name='n' expression='count(//b[. = //b])'/><aggregate><onComplete expression='//i'><payloadFactory media-type='text'>\
        <format>$1</format><args><arg expression='count($body/*)'/></args></payloadFactory><respond/></onComplete></aggregate></sequence></target></iterate></inSequence></target></proxy>";
    let bus = Process::run(
        &configuration("limits-parts", artifacts),
        &one_compute_thread("limits.compute_wait=50ms"),
    );
    let part = format!("<i>{}</i>", (0..300).map(|n| format!("<b>{n}</b>")).collect::<String>());
    let body = format!("<a>{}</a>", part.repeat(100));
    let answered = std::thread::scope(|scope| {
        let ask = || ask(bus.http(), "POST", "/services/Split", body.as_bytes()).unwrap();
        let clients: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
        let answers = clients.into_iter().map(|client| client.join().unwrap());
        answers.filter(|(status, ..)| *status == 200).map(|(_, _, body)| body).collect::<Vec<_>>()
    });
    assert!(!answered.is_empty());
    assert!(answered.iter().all(|count| count == b"100"), "{answered:?}");
    assert!(metric(&bus, "busbar_compute_runs_total") > 0, "nothing was computed elsewhere");
}

/// Nobody can be told to come again whose message was accepted: it waits for a compute thread however many do.
#[test]
fn what_was_accepted_is_not_shed_where_compute_threads_are_few() {
    let artifacts = "<messageStore name='accepted'/><proxy name='Store'><target><inSequence><store messageStore='accepted'/></inSequence></target></proxy>\
        <sequence name='counts'><property name='n' expression='count(//b[count(../b[. = //b]) = 400])'/><log level='custom'><property name='counted' expression='$ctx:n'/></log></sequence>\
        <messageProcessor name='p' class='org.apache.synapse.message.processor.impl.sampler.SamplingProcessor' messageStore='accepted'>\
        <parameter name='interval'>1000</parameter><parameter name='concurrency'>40</parameter><parameter name='sequence'>counts</parameter></messageProcessor>";
    let bus = Process::run(
        &configuration("limits-accepted", artifacts),
        &one_compute_thread("limits.compute_wait=1ms"),
    );
    let body = format!("<a>{}</a>", (0..400).map(|n| format!("<b>{n}</b>")).collect::<String>());
    for _ in 0..40 {
        assert_eq!(ask(bus.http(), "POST", "/services/Store", body.as_bytes()).unwrap().0, 202);
    }
    bus.says("counted = 400", 40);
    assert!(metric(&bus, "busbar_compute_runs_total") > 0, "nothing was computed elsewhere");
}

/// What a backend has done is not undone by a 503: the answer waits for a compute thread however many do.
#[test]
fn what_a_backend_has_answered_is_not_shed_where_compute_threads_are_few() {
    let backend = Recorder::start(|_| Duration::ZERO);
    let artifacts = format!(
        "<proxy name='Orders'><target><inSequence><call><endpoint><address uri='http://{}/'/></endpoint></call>\
         <script language='js'>for (var i = 0, n = 0; i &lt; 60000; i++) {{ n += i % 7; }}</script><property name='HTTP_SC' value='200' scope='axis2'/><respond/></inSequence></target></proxy>",
        backend.address
    );
    let bus = Process::run(
        &configuration("limits-answered", &artifacts),
        &one_compute_thread("limits.compute_wait=1ms"),
    );
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let ask = || ask(bus.http(), "POST", "/services/Orders", b"<a/>").unwrap().0;
        let clients: Vec<_> = (0..16).map(|_| scope.spawn(ask)).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    assert_eq!(statuses, [200; 16], "{}", bus.stderr());
    assert!(metric(&bus, "busbar_compute_runs_total") >= 16, "nothing was computed elsewhere");
}

/// That a bus has no room says nothing about a message: it is not dropped after so many attempts that were none.
#[test]
fn attempts_for_which_there_is_no_room_do_not_count() {
    let backend = Recorder::start(|body| Duration::from_secs(if body.contains("slow") { 2 } else { 0 }));
    let artifacts = format!(
        "<messageStore name='s'/><endpoint name='e'><address uri='http://{}/'/></endpoint>\
         <proxy name='Store'><target><inSequence><property name='OUT_ONLY' value='true'/><property name='DISABLE_CHUNKING' value='true' scope='axis2'/><store messageStore='s'/></inSequence></target></proxy>\
         <proxy name='Slow'><target endpoint='e'><outSequence><send/></outSequence></target></proxy>\
         <messageProcessor name='p' class='org.apache.synapse.message.processor.impl.forwarder.ScheduledMessageForwardingProcessor' messageStore='s' targetEndpoint='e'>\
         <parameter name='interval'>100</parameter><parameter name='client.retry.interval'>100</parameter>\
         <parameter name='max.delivery.attempts'>2</parameter><parameter name='max.delivery.drop'>Enabled</parameter></messageProcessor>",
        backend.address
    );
    let settings = [
        "--set",
        "limits.backend_connections=1",
        "--set",
        "limits.backend_waiting=0",
        "--set",
        "limits.idle_backend=100ms",
    ];
    let bus = Process::run(&configuration("limits-no-room", &artifacts), &settings);
    std::thread::scope(|scope| {
        scope.spawn(|| ask(bus.http(), "POST", "/services/Slow", b"<slow/>").unwrap());
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(ask(bus.http(), "POST", "/services/Store", b"<kept/>").unwrap().0, 202);
    });
    bus.says("which does not count", 2);
    let deadline = Instant::now() + Duration::from_secs(20);
    while !backend.bodies.lock().unwrap().contains("<kept/>") {
        assert!(Instant::now() < deadline, "{}", bus.stderr());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What a message that was let in asks of another service of its bus is work of that message: no answer of the bus takes the place of that service's.
#[test]
fn services_that_call_each_other_are_within_one_message() {
    let backend = Process::backend(&["--mode", "echo", "--delay", "20"]);
    let artifacts = format!(
        "<proxy name='Inner' transports='local'><target><inSequence><call><endpoint><address uri='http://{}/echo'/></endpoint></call><respond/></inSequence></target></proxy>\
         <proxy name='Split'><target><inSequence><iterate expression='//i'><target><sequence><call><endpoint><address uri='local://services/Inner'/></endpoint></call>\
         <aggregate><onComplete expression='$body/*'><payloadFactory media-type='text'><format>$1</format><args><arg expression='count(//i)'/></args></payloadFactory>\
         <respond/></onComplete></aggregate></sequence></target></iterate></inSequence></target></proxy>",
        backend.http()
    );
    let bus = Process::run(&configuration("limits-local", &artifacts), &["--set", "limits.flows=2"]);
    let body = format!("<a>{}</a>", "<i>1</i>".repeat(50));
    let (status, _, count) = ask(bus.http(), "POST", "/services/Split", body.as_bytes()).unwrap();
    assert_eq!((status, String::from_utf8_lossy(&count).as_ref()), (200, "50"), "{}", bus.stderr());
}

/// Parts are made when their turn comes: ten clients that split into 5,000 parts each take a few megabytes, not 280.
#[test]
fn what_a_split_holds_does_not_depend_on_its_parts() {
    let artifacts = "<proxy name='Split'><target><inSequence><iterate expression='//i'><target><sequence>\
        <property name='n' expression='//i'/><aggregate><onComplete expression='//i'><payloadFactory media-type='text'>\
        <format>$1</format><args><arg expression='count($body/*)'/></args></payloadFactory><respond/></onComplete></aggregate></sequence></target></iterate></inSequence></target></proxy>";
    let bus = Process::run(&configuration("limits-split", artifacts), &["--set", "limits.memory=64m"]);
    let body = format!("<a>{}</a>", (0..5000).map(|n| format!("<i>{n}</i>")).collect::<String>());
    std::thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| {
                let (status, head, response) =
                    ask(bus.http(), "POST", "/services/Split", body.as_bytes()).unwrap();
                assert_eq!(status, 200, "{head}");
                assert_eq!(response, b"5000");
            });
        }
    });
    // A client has its answer before the parts of its message are all taken apart.
    support::until("all is given back", || metric(&bus, "busbar_memory_held_bytes") == 0);
    assert_eq!(metric(&bus, "busbar_refused_total"), 0);
    let peak = metric(&bus, "busbar_resident_memory_peak_bytes");
    assert!(peak < 200 << 20, "{} MiB", peak >> 20);
}
