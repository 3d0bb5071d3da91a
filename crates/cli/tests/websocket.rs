//! WebSockets that end at the bus, from outside: frames are made and read here, byte by byte.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};
use support::{Process, configuration, free_port};

const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

struct Client(TcpStream);

impl Client {
    /// Asks for a WebSocket; the head of the answer.
    fn ask(port: u16, path: &str, more: &str) -> (Client, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let version =
            if more.contains("Sec-WebSocket-Version") { "" } else { "Sec-WebSocket-Version: 13\r\n" };
        let key = if more.contains("Sec-WebSocket-Key") {
            String::new()
        } else {
            format!("Sec-WebSocket-Key: {KEY}\r\n")
        };
        let asks = format!(
            "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n{key}{version}{more}\r\n"
        );
        stream.write_all(asks.as_bytes()).unwrap();
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) > 0 {
            head.push(byte[0]);
        }
        (Client(stream), String::from_utf8(head).unwrap())
    }

    fn open(port: u16, path: &str) -> Client {
        let (client, head) = Client::ask(port, path, "");
        assert!(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{head}");
        for line in [
            "Connection: Upgrade\r\n",
            "Upgrade: websocket\r\n",
            "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n",
        ] {
            assert_eq!(head.matches(line).count(), 1, "{head}");
        }
        client
    }

    /// Sends a frame as clients do: masked.
    fn send(&mut self, first: u8, payload: &[u8]) {
        let mask = [1, 2, 3, 4];
        let mut frame = vec![first];
        match payload.len() {
            n @ ..126 => frame.push(0x80 | n as u8),
            n @ ..65536 => {
                frame.push(0x80 | 126);
                frame.extend((n as u16).to_be_bytes());
            }
            n => {
                frame.push(0x80 | 127);
                frame.extend((n as u64).to_be_bytes());
            }
        }
        frame.extend(mask);
        frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        // One that has been refused may be closed already.
        let _ = self.0.write_all(&frame);
    }

    fn text(&mut self, text: &str) {
        self.send(0x81, text.as_bytes());
    }

    /// The next frame: its first byte and what it carries; `None`: the end.
    fn receive(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 2];
        self.0.read_exact(&mut head).ok()?;
        let length = match head[1] {
            126 => {
                let mut wide = [0; 2];
                self.0.read_exact(&mut wide).ok()?;
                u16::from_be_bytes(wide).into()
            }
            127 => {
                let mut wide = [0; 8];
                self.0.read_exact(&mut wide).ok()?;
                u64::from_be_bytes(wide) as usize
            }
            // What a server sends is not masked.
            short @ ..126 => short.into(),
            _ => panic!("masked"),
        };
        let mut payload = vec![0; length];
        self.0.read_exact(&mut payload).ok()?;
        Some((head[0], payload))
    }

    fn receive_text(&mut self) -> String {
        let (first, payload) = self.receive().unwrap();
        assert_eq!(first, 0x81);
        String::from_utf8(payload).unwrap()
    }

    /// The code of the Close frame that comes, behind which nothing does.
    fn closed(&mut self) -> u16 {
        let (first, payload) = self.receive().unwrap();
        assert_eq!(first, 0x88, "{payload:?}");
        self.send(0x88, &payload);
        assert_eq!(self.0.read(&mut [0]).unwrap_or(0), 0);
        u16::from_be_bytes(payload[..2].try_into().unwrap())
    }
}

fn inbound(name: &str, port: u16, parameters: &str, sequence: &str) -> String {
    format!(
        "<inboundEndpoint name='{name}' protocol='ws' sequence='{name}Seq'><parameters><parameter name='inbound.ws.port'>{port}</parameter>{parameters}</parameters></inboundEndpoint>\
         <sequence name='{name}Seq'>{sequence}</sequence>"
    )
}

/// Each message is one of the flow, whatever frames it comes in, and what the flow answers is said.
#[test]
fn messages_run_through_the_sequence() {
    let (echo, json) = (free_port(), free_port());
    let artifacts = inbound("Echo", echo, "", "<respond/>")
        + &inbound(
            "Json",
            json,
            "<parameter name='ws.default.content.type'>application/json</parameter>",
            "<filter source=\"get-property('websocket.source.handshake.present')\" regex='true'><then>\
               <payloadFactory media-type='json'><format>{\"path\": \"$1\"}</format><args><arg expression=\"get-property('websocket.subscriber.path')\"/></args></payloadFactory><respond/>\
             </then><else><filter source=\"get-property('connection.terminate')\" regex='true'><then>\
               <log level='custom'><property name='BYE' expression=\"concat(get-property('websocket.close.frame.status.code'), ' ', get-property('websocket.close.frame.reason.text'))\"/></log></then>\
             <else><payloadFactory media-type='json'><format>{\"got\": $1, \"by\": \"$2\"}</format><args><arg evaluator='json' expression='$.n'/><arg expression='$trp:X-Who'/></args></payloadFactory><respond/></else></filter></else></filter>",
        );
    let mut bus = Process::run(&configuration("websocket-frames", &artifacts), &[]);
    let mut client = Client::open(echo, "/any");
    client.text("hello");
    assert_eq!(client.receive_text(), "hello");
    // Binary stays binary, and large ones are whole.
    let large: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
    for payload in [&b"\x00\xFF"[..], &large] {
        client.send(0x82, payload);
        let (first, back) = client.receive().unwrap();
        assert!(first == 0x82 && back == payload, "{first} {}", back.len());
    }
    // Three fragments, and a ping between them that is answered at once.
    client.send(0x01, b"one ");
    client.send(0x00, "t\u{fc}".as_bytes());
    client.send(0x89, b"there?");
    assert_eq!(client.receive().unwrap(), (0x8A, b"there?".to_vec()));
    client.send(0x80, b" three");
    assert_eq!(client.receive_text(), "one t\u{fc} three");
    // What is sent without waiting is answered in order.
    (0..200).for_each(|n| client.text(&format!("n{n}")));
    (0..200).for_each(|n| assert_eq!(client.receive_text(), format!("n{n}")));
    // An empty one says nothing, and has no answer.
    client.text("");
    client.send(0x88, &[0x03, 0xE8, b'b', b'y', b'e']);
    assert_eq!(client.closed(), 1000);

    let (mut client, head) = Client::ask(
        json,
        "/rooms/1?x=y",
        "X-Who: me\r\nSec-WebSocket-Protocol: other, synapse(contentType='application/json')\r\n",
    );
    assert!(head.contains("Sec-WebSocket-Protocol: synapse(contentType='application/json')\r\n"), "{head}");
    assert_eq!(client.receive_text(), r#"{"path": "/rooms/1"}"#);
    client.text(r#"{"n": 7}"#);
    assert_eq!(client.receive_text(), r#"{"got": 7, "by": "me"}"#);
    client.send(0x88, &[0x0F, 0xA0, b'd', b'o', b'n', b'e']);
    assert_eq!(client.closed(), 4000);
    let begun = Instant::now();
    while !bus.stderr().contains("BYE = 4000 done") {
        assert!(begun.elapsed() < Duration::from_secs(10), "{}", bus.stderr());
        std::thread::sleep(Duration::from_millis(20));
    }
    bus.signal("TERM");
    assert_eq!(bus.wait(), Some(0));
}

/// A handshake that the flow does not want, or that is none, gets an answer of HTTP.
#[test]
fn what_is_refused_is_a_response() {
    let (open, shut, fails) = (free_port(), free_port(), free_port());
    let refuses = "<property name='HTTP_SC' value='401' scope='axis2'/><respond/>";
    let artifacts = inbound("Open", open, "", "<respond/>")
        + &inbound("Shut", shut, "", refuses)
        + &inbound("Fails", fails, "", "<throwError type='NOT_NOW' errorMessage='no'/>");
    let bus = Process::run(&configuration("websocket-refused", &artifacts), &[]);
    for (port, more, wanted) in [
        (open, "Sec-WebSocket-Version: 8\r\n", "HTTP/1.1 426 "),
        (open, "Sec-WebSocket-Key: short\r\n", "HTTP/1.1 400 "),
        (
            open,
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZR==\r\n",
            "HTTP/1.1 400 ",
        ),
        (open, "Content-Length: 5\r\n", "HTTP/1.1 400 "),
        (open, "Transfer-Encoding: chunked\r\n", "HTTP/1.1 400 "),
        (shut, "", "HTTP/1.1 401 "),
        (fails, "", "HTTP/1.1 500 "),
    ] {
        let (_, head) = Client::ask(port, "/", more);
        assert!(head.starts_with(wanted), "{more}: {head}\n{}", bus.stderr());
    }
    assert_eq!(support::ask(&format!("127.0.0.1:{open}"), "GET", "/", b"").unwrap().0, 426);
    // The flow kept what was offered, and so names it.
    let (mut client, head) = Client::ask(open, "/", "Sec-WebSocket-Protocol: chat, other\r\n");
    assert!(head.contains("Sec-WebSocket-Protocol: chat\r\n"), "{head}");
    client.text("x");
    assert_eq!(client.receive_text(), "x");
}

/// Whoever breaks the protocol, or says too much, is told why at the end; others go on.
#[test]
fn what_breaks_the_protocol_ends_with_a_code() {
    let port = free_port();
    let bus = Process::run(
        &configuration("websocket-broken", &inbound("Echo", port, "", "<respond/>")),
        &["--set", "limits.body=100k"],
    );
    let mut other = Client::open(port, "/");
    let too_large = vec![b'x'; 110 * 1024];
    for (first, payload, code) in [
        (0x81, &too_large[..], 1009),
        (0x81, b"\xFF\xFE", 1007),
        (0x83, b"unknown", 1002),
        (0xC1, b"reserved", 1002),
        (0x80, b"goes on from nothing", 1002),
        (0x89, &[b'p'; 126], 1002),
    ] {
        let mut client = Client::open(port, "/");
        client.send(first, payload);
        assert_eq!(client.closed(), code, "{first:#x}\n{}", bus.stderr());
    }
    // One that is not masked, and one that goes away in the middle.
    let mut client = Client::open(port, "/");
    client.0.write_all(&[0x81, 1, b'x']).unwrap();
    assert_eq!(client.closed(), 1002);
    let mut client = Client::open(port, "/");
    client.0.write_all(&[0x81, 0xFE, 0xFF]).unwrap();
    drop(client);
    other.text("still here");
    assert_eq!(other.receive_text(), "still here");
}

/// What was said before a goodbye is done; a stop says goodbye behind the answer that is on its way.
#[test]
fn nothing_that_was_said_is_lost() {
    let port = free_port();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let back = listener.local_addr().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let (go, gate) = std::sync::mpsc::channel();
    let gate = std::sync::Arc::new(std::sync::Mutex::new(gate));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, tell, gate) = (stream.unwrap(), tell.clone(), gate.clone());
            std::thread::spawn(move || {
                let mut piece = [0; 4096];
                while let Ok(n @ 1..) = stream.read(&mut piece) {
                    // The head and what follows come together from here.
                    let text = String::from_utf8_lossy(&piece[..n]).into_owned();
                    let _ = gate.lock().unwrap().recv();
                    let _ = tell.send(text);
                    let _ = stream.write_all(
                        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\ndone",
                    );
                }
            });
        }
    });
    let sequence = format!(
        "<filter xpath=\"get-property('websocket.text.frame.present')\"><then><call><endpoint><address uri='http://{back}/' format='get'/></endpoint></call><respond/></then></filter>"
    );
    let mut bus = Process::run(&configuration("websocket-last", &inbound("Slow", port, "", &sequence)), &[]);
    // A message and a goodbye at once: that is answered while the backend has not answered yet, and the flow goes on.
    let mut client = Client::open(port, "/");
    client.text("a");
    client.send(0x88, &[0x03, 0xE8]);
    assert_eq!(client.receive().unwrap(), (0x88, vec![0x03, 0xE8]));
    assert_eq!(client.0.read(&mut [0]).unwrap(), 0);
    drop(client);
    go.send(()).unwrap();
    told.recv_timeout(Duration::from_secs(10)).unwrap();
    let mut client = Client::open(port, "/");
    client.text("b");
    std::thread::sleep(Duration::from_millis(150));
    bus.signal("TERM");
    go.send(()).unwrap();
    assert_eq!(client.receive_text(), "done");
    assert_eq!(client.closed(), 1001);
    assert_eq!(bus.wait(), Some(0), "{}", bus.stderr());
}

fn resident(process: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Bytes that messages hold, and WebSockets that were ended, as the metrics say.
fn metric(process: &Process, name: &str) -> u64 {
    let (_, _, text) = support::ask(process.field("admin"), "GET", "/metrics", b"").unwrap();
    let text = String::from_utf8(text).unwrap();
    let values =
        text.lines().filter(|line| line.starts_with(name)).filter_map(|line| line.rsplit(' ').next());
    values.map(|value| value.parse::<f64>().unwrap() as u64).sum()
}

/// Ten thousand clients, or as many as descriptors allow: each is answered, and takes little.
#[test]
fn ten_thousand_are_answered() {
    let most = support::descriptors();
    let count = most.saturating_sub(1500).min(10_000);
    if count < 10_000 {
        println!("notice: {count} WebSockets in the place of 10000: the system allows {most} files");
    }
    let port = free_port();
    let mut bus =
        Process::run(&configuration("websocket-many", &inbound("Echo", port, "", "<respond/>")), &[]);
    drop(Client::open(port, "/"));
    let before = resident(&bus);
    let begun = Instant::now();
    let mut clients: Vec<Client> = (0..count).map(|_| Client::open(port, "/")).collect();
    println!("notice: {count} WebSockets were opened in {:?}", begun.elapsed());
    for round in 0..3 {
        let begun = Instant::now();
        clients.iter_mut().for_each(|client| client.text(&format!("round {round}")));
        for client in &mut clients {
            assert_eq!(client.receive_text(), format!("round {round}"));
        }
        println!("notice: {count} were answered in {:?}", begun.elapsed());
    }
    let each = resident(&bus).saturating_sub(before) * 1024 / count as u64;
    println!("notice: {count} WebSockets that end at the bus take {each} bytes each");
    assert!(each < 20_000, "{each} bytes for each");
    bus.signal("TERM");
    let begun = Instant::now();
    clients.iter_mut().for_each(|client| assert_eq!(client.receive().unwrap().0, 0x88));
    drop(clients);
    assert_eq!(bus.wait(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

/// What a client has begun counts until it is whole, whatever comes between; what it floods with takes nothing.
#[test]
fn floods_take_no_memory() {
    let port = free_port();
    let bus = Process::run(
        &configuration("websocket-floods", &inbound("Echo", port, "", "<respond/>")),
        &["--set", "limits.body=4m", "--set", "limits.memory=64m", "--set", "limits.body_pause=2s"],
    );
    let held = || metric(&bus, "busbar_memory_held_bytes");
    assert_eq!(held(), 0);
    // Half a message, and pings behind it.
    let mut client = Client::open(port, "/");
    client.send(0x01, &vec![b'x'; 1 << 20]);
    client.send(0x89, b"a");
    assert_eq!(client.receive().unwrap(), (0x8A, b"a".to_vec()));
    assert!(held() >= 1 << 20, "{}", held());
    client.send(0x00, &[]);
    client.send(0x80, b"y");
    assert_eq!(client.receive().unwrap().1.len(), (1 << 20) + 1);
    // One that says that it is large holds nothing of what has not come; the rest has to come in time.
    let mut lying = Client::open(port, "/");
    lying.0.write_all(&[0x82, 0xFF, 0, 0, 0, 0, 0, 0x3F, 0, 0, 1, 2, 3, 4, 5]).unwrap();
    assert_eq!(lying.closed(), 1008);
    let begun = Instant::now();
    while held() > 0 {
        assert!(begun.elapsed() < Duration::from_secs(10), "{}", held());
        std::thread::sleep(Duration::from_millis(20));
    }
    // Pings and empty fragments of somebody who reads nothing of the answers.
    let before = resident(&bus);
    let mut deaf = Client::open(port, "/");
    deaf.0.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let pings = [0x89, 0xFD, 0, 0, 0, 0].iter().copied().chain([b'p'; 125]).collect::<Vec<u8>>().repeat(500);
    let mut sent = 0;
    while sent < 64 << 20 && deaf.0.write_all(&pings).is_ok() {
        sent += pings.len();
    }
    let mut endless = Client::open(port, "/");
    endless.send(0x01, b"begun");
    let fragments = [0x00, 0x80, 0, 0, 0, 0].repeat(1000);
    for _ in 0..2000 {
        endless.0.write_all(&fragments).unwrap();
    }
    let grown = resident(&bus).saturating_sub(before);
    assert!(grown < 16 * 1024, "{grown} kB after {sent} bytes of pings");
    assert_eq!(held(), 0);
    drop((deaf, endless));
    bus.says("a WebSocket was ended: the rest of a message did not come", 1);
    // The memory that messages may hold is a bound for all clients together.
    let mut halves: Vec<Client> = (0..24).map(|_| Client::open(port, "/")).collect();
    // All at the same time: one after the other the first would have waited too long before the last is there, on a busy machine.
    std::thread::scope(|scope| {
        halves.iter_mut().for_each(|client| drop(scope.spawn(|| client.send(0x02, &vec![0; 4 << 20]))));
    });
    drop(client);
    let codes: Vec<u16> = halves.iter_mut().map(Client::closed).collect();
    assert!(codes.contains(&1013) && codes.iter().all(|code| [1008, 1013].contains(code)), "{codes:?}");
    bus.says("messages hold as much memory as they may", 1);
    let mut client = Client::open(port, "/");
    client.text("still here");
    assert_eq!(client.receive_text(), "still here");
}

/// A client that sends small messages faster than they are answered, and reads the answers, holds nobody up.
#[test]
fn a_flood_of_messages_leaves_turns_for_others() {
    let port = free_port();
    let path = configuration("websocket-turns", &inbound("Echo", port, "", "<respond/>"));
    let ports = ["run", path.to_str().unwrap(), "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let bus = Process::start(&[&ports[..], &["--workers", "1", "--set", "deploy.watch=false"][..]].concat());
    let flood = Client::open(port, "/");
    let ends = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (mut writes, mut reads) = (flood.0.try_clone().unwrap(), flood.0.try_clone().unwrap());
    let ended = std::sync::Arc::clone(&ends);
    let writer = std::thread::spawn(move || {
        let texts = [0x81, 0x80, 0, 0, 0, 0].repeat(4000);
        while !ended.load(std::sync::atomic::Ordering::Relaxed) && writes.write_all(&texts).is_ok() {}
    });
    let reader = std::thread::spawn(move || {
        let mut answers = [0; 65536];
        while reads.read(&mut answers).is_ok_and(|n| n > 0) {}
    });
    std::thread::sleep(Duration::from_millis(500));
    let mut waits = Vec::new();
    for _ in 0..5 {
        let begun = Instant::now();
        let mut other = Client::open(port, "/");
        other.text("me too");
        assert_eq!(other.receive_text(), "me too");
        waits.push(begun.elapsed());
    }
    ends.store(true, std::sync::atomic::Ordering::Relaxed);
    flood.0.shutdown(std::net::Shutdown::Both).unwrap();
    writer.join().unwrap();
    reader.join().unwrap();
    waits.sort_unstable();
    // The middle one, since other tests run beside this one. Without turns it was 7 s and more.
    assert!(waits[2] < Duration::from_secs(5), "{waits:?}");
    drop(bus);
}

/// What answers one client is said to those of its path that the level says; one that does not listen is closed, and nobody waits for it.
#[test]
fn answers_are_said_to_all_of_a_path() {
    let (all, others) = (free_port(), free_port());
    let level = |n: u8| format!("<parameter name='ws.client.side.broadcast.level'>{n}</parameter>");
    let artifacts = inbound(
        "All",
        all,
        &level(1),
        "<filter xpath=\"get-property('websocket.source.handshake.present')\"><then/><else><respond/></else></filter>",
    ) + &inbound(
        "Others",
        others,
        &level(2),
        "<filter xpath=\"get-property('connection.terminate')\"><then><payloadFactory media-type='json'><format>{\"left\": \"$1\"}</format><args><arg expression=\"get-property('websocket.subscriber.path')\"/></args></payloadFactory><respond/></then><else><respond/></else></filter>",
    );
    let mut bus = Process::run(&configuration("websocket-rooms", &artifacts), &[]);
    let mut room: Vec<Client> = (0..3).map(|_| Client::open(all, "/rooms/1?who=x")).collect();
    let mut elsewhere = Client::open(all, "/rooms/2");
    room[1].text("hello");
    room.iter_mut().for_each(|client| assert_eq!(client.receive_text(), "hello"));
    elsewhere.text("alone");
    assert_eq!(elsewhere.receive_text(), "alone");
    let mut room: Vec<Client> = (0..3).map(|_| Client::open(others, "/r")).collect();
    room[0].text("from 0");
    assert_eq!((room[1].receive_text(), room[2].receive_text()), ("from 0".to_owned(), "from 0".to_owned()));
    // The first one hears nothing of its own, and what others say it hears.
    room[1].send(0x82, b"\x01");
    assert_eq!((room[0].receive().unwrap(), room[2].receive().unwrap()), ((0x82, vec![1]), (0x82, vec![1])));
    let mut last = room.pop().unwrap();
    last.send(0x88, &[0x03, 0xE8]);
    assert_eq!(last.closed(), 1000);
    room.iter_mut().for_each(|client| assert_eq!(client.receive_text(), r#"{"left": "/r"}"#));
    // One that reads nothing: the others go on, and it learns why it is closed.
    let mut deaf = Client::open(others, "/r");
    let large = vec![b'x'; 200_000];
    for _ in 0..100 {
        room[0].send(0x82, &large);
        assert_eq!(room[1].receive().unwrap().1.len(), large.len());
    }
    bus.says("a WebSocket was ended: it takes too little of what is said to it", 1);
    let mut codes = Vec::new();
    while let Some((first, payload)) = deaf.receive() {
        if first == 0x88 {
            codes.push(u16::from_be_bytes([payload[0], payload[1]]));
        }
    }
    // Where it takes nothing at all, there is no time for the last word.
    assert!(codes.is_empty() || codes == [1008], "{codes:?}");
    room.iter_mut().for_each(|client| assert_eq!(client.receive_text(), r#"{"left": "/r"}"#));
    bus.signal("TERM");
    room.iter_mut().for_each(|client| assert_eq!(client.receive().unwrap().0, 0x88));
    drop((room, elsewhere));
    assert_eq!(bus.wait(), Some(0));
}

/// A reload holds for the next message of a WebSocket that is open; one whose port goes away is told.
#[test]
fn a_reload_goes_on_with_what_is_open() {
    let port = free_port();
    let says = |text: &str| {
        let sequence = format!(
            "<payloadFactory media-type='text'><format>{text}</format></payloadFactory><filter xpath=\"get-property('websocket.text.frame.present')\"><then><respond/></then></filter>"
        );
        inbound("Chat", port, "", &sequence)
    };
    let path = configuration("websocket-reload", &says("one"));
    let bus = Process::run(&path, &[]);
    let mut client = Client::open(port, "/");
    client.text("x");
    assert_eq!(client.receive_text(), "one");
    support::configure(&path, &says("two"));
    bus.signal("HUP");
    bus.says("reloaded", 1);
    client.text("x");
    assert_eq!(client.receive_text(), "two");
    support::configure(&path, "<sequence name='Other'/>");
    bus.signal("HUP");
    bus.says("reloaded", 2);
    assert_eq!(client.closed(), 1001);
}
