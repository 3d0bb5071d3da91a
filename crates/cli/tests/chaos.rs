//! Chaos over real sockets: the flows of the simulation, changed five times a second, now and then into a faulty version; members
//! that die and come back; a client in ten that goes away. Nobody may be left without an answer or get that of another, nothing
//! accepted may be lost, and all that was held is given back.
//!
//! `BUSBAR_CHAOS_SECONDS`: how long the load lasts (default 5; 60 before a release).
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

#[path = "../../../tests/simulation/flows.rs"]
#[allow(dead_code)]
mod flows;
#[path = "../../../tests/simulation/random.rs"]
#[allow(dead_code)]
mod random;

use flows::{ALL, Service, element};
use random::Random;
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::{Process, ask, configuration, configure, exchange};

const CLIENTS: u64 = 12;

/// Longest wait for what was going on to end: the longest time of an aggregate, and suspensions.
const CALM: Duration = Duration::from_secs(40);

/// A backend that may die and come back at the same address.
struct Member {
    address: SocketAddr,
    listener: Mutex<Option<TcpListener>>,
    open: Mutex<Vec<TcpStream>>,
    seen: Arc<Seen>,
}

/// What all members have seen.
#[derive(Default)]
struct Seen {
    /// The ids of messages, and `id/part`.
    delivered: Mutex<HashSet<String>>,
    mixed: Mutex<Vec<String>>,
}

impl Member {
    fn start(seen: &Arc<Seen>) -> Arc<Member> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let member = Arc::new(Member {
            address,
            listener: Mutex::new(None),
            open: Mutex::default(),
            seen: Arc::clone(seen),
        });
        member.accept(listener);
        member
    }

    fn accept(self: &Arc<Member>, listener: TcpListener) {
        *self.listener.lock().unwrap() = Some(listener.try_clone().unwrap());
        listener.set_nonblocking(true).unwrap();
        let member = Arc::clone(self);
        std::thread::spawn(move || {
            while member.is_alive() {
                match listener.accept() {
                    Ok((stream, _)) => {
                        stream.set_nonblocking(false).unwrap();
                        member.open.lock().unwrap().push(stream.try_clone().unwrap());
                        let seen = Arc::clone(&member.seen);
                        std::thread::spawn(move || serve(stream, &seen));
                    }
                    Err(_) => std::thread::sleep(Duration::from_millis(2)),
                }
            }
        });
    }

    fn is_alive(&self) -> bool {
        self.listener.lock().unwrap().is_some()
    }

    fn dies(&self) {
        *self.listener.lock().unwrap() = None;
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }

    /// `false`: somebody has the address still.
    fn comes_back(self: &Arc<Member>) -> bool {
        let bound = TcpListener::bind(self.address);
        bound.is_ok_and(|listener| {
            self.accept(listener);
            true
        })
    }
}

/// Answers requests on a connection with their ids.
fn serve(mut stream: TcpStream, seen: &Seen) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let (mut id, mut length, mut chunked, mut line) = (String::new(), 0, false, String::new());
        while line != "\r\n" {
            line.clear();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let (name, value) = line.split_once(':').unwrap_or_default();
            match name.to_ascii_lowercase().as_str() {
                "x-id" => id = value.trim().to_owned(),
                "content-length" => length = value.trim().parse().ok()?,
                "transfer-encoding" => chunked = true,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        while chunked {
            line.clear();
            reader.read_line(&mut line).ok()?;
            let size = usize::from_str_radix(line.trim(), 16).ok()?;
            let begin = body.len();
            body.resize(begin + size + 2, 0);
            reader.read_exact(&mut body[begin..]).ok()?;
            body.truncate(begin + size);
            chunked = size > 0;
        }
        let text = String::from_utf8_lossy(&body);
        for other in text.split("<id>").skip(1).filter_map(|rest| rest.split('<').next()) {
            if other != id {
                seen.mixed.lock().unwrap().push(format!("the body of {other} under the head of {id}"));
            }
        }
        let part = element(&text, "part");
        let shown = part.as_ref().map(|part| format!("<part>{part}</part>")).unwrap_or_default();
        let response = format!("<reply><by>m</by><id>{id}</id>{shown}</reply>");
        // Before it is sent: it was dealt with, whatever becomes of the answer.
        seen.delivered.lock().unwrap().insert(match part {
            Some(part) => format!("{id}/{part}"),
            None => id.clone(),
        });
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nX-Id: {id}\r\nSet-Cookie: JSESSIONID=m-{id}\r\nContent-Length: {}\r\n\r\n",
            response.len()
        );
        stream.write_all((head + &response).as_bytes()).ok()?;
    }
}

/// What the clients have seen.
#[derive(Default)]
struct Counts {
    answers: AtomicUsize,
    good: AtomicUsize,
    aborted: AtomicUsize,
    accepted: Mutex<Vec<(String, Service)>>,
    wrong: Mutex<Vec<String>>,
}

/// Asks until it is over; one request in ten is abandoned.
fn client(address: &str, number: u64, mut random: Random, over: &AtomicBool, counts: &Counts) {
    let mut connection: Option<TcpStream> = None;
    let mut serial = 0;
    while !over.load(Relaxed) {
        let service = *random.pick(&ALL);
        // A processor takes one message at a time, some every second: not so many that they wait for minutes.
        let stored = service == Service::Stored;
        if stored && !random.one_in(50) {
            continue;
        }
        serial += 1;
        let id = format!("{number}.{serial}");
        let parts = random.between(1, 8) as usize;
        let filler =
            if !stored && random.one_in(20) { random.below(200_000) } else { random.below(600) } as usize;
        let body = service.body(&id, parts, filler);
        let mut fields = format!("X-Id: {id}\r\n{}", service.fields());
        if service.relays() {
            fields += &format!("X-Size: {}\r\n", body.len());
        }
        let mut stream = match connection.take() {
            Some(stream) => stream,
            None => TcpStream::connect(address).unwrap(),
        };
        if random.one_in(10) {
            counts.aborted.fetch_add(1, Relaxed);
            let head = format!(
                "POST {} HTTP/1.1\r\nHost: bus\r\nContent-Length: {}\r\n{fields}\r\n",
                service.path(),
                body.len()
            );
            let whole = head + &body;
            let sent = if random.one_in(2) { whole.len() } else { random.below(whole.len() as u64) as usize };
            let _ = stream.write_all(&whole.as_bytes()[..sent]);
            std::thread::sleep(Duration::from_millis(random.below(20)));
            continue;
        }
        let wrong = |what: String| counts.wrong.lock().unwrap().push(format!("{id} ({service:?}): {what}"));
        match exchange(&mut stream, "POST", service.path(), body.as_bytes(), &fields) {
            Ok((status, head, response)) => {
                counts.answers.fetch_add(1, Relaxed);
                let text = String::from_utf8_lossy(&response);
                match service.judge(&id, parts, status, &text) {
                    Err(why) => wrong(why),
                    Ok(()) if service.good_status().contains(&status) => {
                        counts.good.fetch_add(1, Relaxed);
                        if service.acknowledges() {
                            counts.accepted.lock().unwrap().push((id, service));
                        }
                    }
                    Ok(()) => {}
                }
                if !head.contains("Connection: close") {
                    connection = Some(stream);
                }
            }
            Err(error) => wrong(format!("no answer: {error}")),
        }
    }
}

/// What `/metrics` says.
fn metric(bus: &Process, name: &str) -> u64 {
    let (_, _, body) = ask(bus.field("admin"), "GET", "/metrics", b"").unwrap();
    let text = String::from_utf8(body).unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    value.unwrap_or_else(|| panic!("no {name}:\n{text}")).parse::<f64>().unwrap() as u64
}

/// Waits until it is so.
fn becomes(what: &str, mut is_so: impl FnMut() -> Result<(), String>) {
    let end = Instant::now() + CALM;
    while let Err(why) = is_so() {
        assert!(Instant::now() < end, "{what}: {why}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Artifacts as the simulation has them, without its mediator that panics.
fn artifacts(random: &mut Random, urls: &[String], faulty: bool) -> String {
    let text = flows::configuration(random, urls, faulty);
    ["", " how=\"elsewhere\"", " how=\"later\""]
        .iter()
        .fold(text, |text, how| text.replace(&format!("<panic{how}/>"), ""))
}

/// Replaces the configuration five times a second, until it is over; how often.
fn reloads(bus: &Process, path: &Path, urls: &[String], mut random: Random, over: &AtomicBool) -> usize {
    let mut count = 0;
    while !over.load(Relaxed) {
        std::thread::sleep(Duration::from_millis(200));
        let faulty = random.one_in(3);
        configure(path, &artifacts(&mut random, urls, faulty));
        bus.signal("HUP");
        count += 1;
    }
    configure(path, &artifacts(&mut random, urls, false));
    bus.signal("HUP");
    count
}

/// Has one member after the other die for a while, until it is over; how often.
fn deaths(members: &[Arc<Member>], mut random: Random, over: &AtomicBool) -> usize {
    let mut count = 0;
    while !over.load(Relaxed) {
        std::thread::sleep(Duration::from_millis(random.between(50, 400)));
        let member = random.pick(members);
        member.dies();
        count += 1;
        std::thread::sleep(Duration::from_millis(random.between(10, 500)));
        while !member.comes_back() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    count
}

#[test]
fn nobody_is_left_without_an_answer_in_chaos() {
    let seconds = std::env::var("BUSBAR_CHAOS_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let seed = std::env::var("BUSBAR_CHAOS_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut random = Random::new(seed);
    let seen = Arc::new(Seen::default());
    let members: Vec<_> = (0..3).map(|_| Member::start(&seen)).collect();
    let urls: Vec<String> =
        members.iter().map(|member| format!("http://{}/orders", member.address)).collect();
    let path = configuration("chaos", &artifacts(&mut random, &urls, false));
    let mut bus = Process::run(&path, &["--set", "limits.drain=5s"]);
    let descriptors = || metric(&bus, "process_open_fds");
    let (fds_before, address) = (descriptors(), bus.http().to_owned());
    let (over, counts) = (AtomicBool::new(false), Counts::default());
    let (mut hups, mut died) = (0, 0);
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (random, address, over, counts) = (random.split(), &address, &over, &counts);
            scope.spawn(move || client(address, number, random, over, counts));
        }
        let (one, other) = (random.split(), random.split());
        let reloading = scope.spawn(|| reloads(&bus, &path, &urls, one, &over));
        let dying = scope.spawn(|| deaths(&members, other, &over));
        std::thread::sleep(Duration::from_secs(seconds));
        over.store(true, Relaxed);
        (hups, died) = (reloading.join().unwrap(), dying.join().unwrap());
    });
    let peak = metric(&bus, "busbar_resident_memory_peak_bytes");

    // All is well again: the next good request is served, and what was held is given back.
    becomes("the next good request", || {
        for service in ALL {
            let body = service.body("good", 2, 10);
            let fields = format!("Connection: close\r\nX-Id: good\r\n{}", service.fields());
            let mut stream = TcpStream::connect(&address).unwrap();
            let (status, _, response) =
                exchange(&mut stream, "POST", service.path(), body.as_bytes(), &fields).unwrap();
            if !service.good_status().contains(&status) {
                return Err(format!("{service:?} answers {status} {}", String::from_utf8_lossy(&response)));
            }
        }
        Ok(())
    });
    for name in ["busbar_flows", "busbar_aggregates_open", "busbar_memory_held_bytes"] {
        becomes(name, || match metric(&bus, name) {
            0 => Ok(()),
            left => Err(left.to_string()),
        });
    }
    members.iter().for_each(|member| member.dies());
    becomes("descriptors", || match descriptors() {
        left if left <= fds_before + 2 => Ok(()),
        left => Err(format!("{left}, before there were {fds_before}")),
    });
    bus.signal("TERM");
    assert_eq!(bus.wait(), Some(0), "{}", bus.stderr());

    let log = bus.stderr();
    let delivered = seen.delivered.lock().unwrap();
    let arrived: HashSet<&str> = delivered.iter().filter_map(|key| key.split('/').next()).collect();
    let named = named(&log);
    let mut lost = Vec::new();
    let accepted = counts.accepted.lock().unwrap();
    for (id, service) in accepted.iter() {
        let is_here = match service {
            Service::Stored => delivered.contains(&format!("{id}/done")),
            _ => arrived.contains(id.as_str()),
        };
        if !is_here && !named.contains(id.as_str()) {
            lost.push(format!("{id} ({service:?})"));
        }
    }
    let figures = format!(
        "{seconds} s: {} answers ({} good), {} aborted, {} accepted, {hups} reloads, {died} deaths, peak {} MiB",
        counts.answers.load(Relaxed),
        counts.good.load(Relaxed),
        counts.aborted.load(Relaxed),
        accepted.len(),
        peak >> 20
    );
    println!("{figures}");
    assert_eq!(counts.wrong.lock().unwrap().as_slice(), &[] as &[String], "{figures}");
    assert_eq!(seen.mixed.lock().unwrap().as_slice(), &[] as &[String], "{figures}");
    assert!(lost.is_empty(), "accepted, and neither delivered nor named: {lost:?}; {figures}");
    assert!(counts.good.load(Relaxed) > 100, "the test tests nothing: {figures}");
    assert!(!log.contains("panicked"), "{log}");
}

/// The messages of which a line of the log tells what became of them: by the id in a fault sequence's line, or by the message id that
/// the line `taken` gives.
fn named(log: &str) -> HashSet<&str> {
    let id = |line: &'_ str, name: &str| {
        let begin = line.find(name)? + name.len();
        let end = line[begin..].find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(line.len() - begin);
        Some((begin, begin + end))
    };
    let message = |line: &'_ str| line.find("urn:uuid:").map(|at| (at, at + 45));
    let mut told = HashSet::new();
    for line in log.lines().filter(|line| line.contains(" WARN ") || line.contains(" ERROR ")) {
        told.extend(id(line, "failed = ").into_iter().chain(message(line)).map(|(from, to)| &line[from..to]));
    }
    let taken = log.lines().filter_map(|line| Some((id(line, "taken = ")?, message(line)?, line)));
    let related = taken.filter(|(_, message, line)| told.contains(&line[message.0..message.1]));
    let ids: Vec<&str> = related.map(|(id, _, line)| &line[id.0..id.1]).collect();
    told.extend(ids);
    told
}
