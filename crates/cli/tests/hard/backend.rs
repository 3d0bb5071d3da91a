//! Backends that fail in every way, under every kind of flow.

use crate::input::{faults, is_complete};
use crate::support::{Process, configuration, until};
use crate::wire::{DEADLINE, WireResponse, chunks, connect, fields, line, receive};
use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What a backend does with a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Does {
    /// 200 with the request's body.
    Echo,
    /// As `Echo`, then closes without having said so.
    EchoAndClose,
    /// 100 and 103 before the answer.
    Interim,
    /// Answers 200 when it has the head, before it reads the body.
    EarlyAnswer,
    /// Answers 413 when it has the head, and closes.
    EarlyRefusal,
    /// HTTP/1.0, the end of the body is the end of the connection.
    UntilClose,
    /// Byte by byte, whole.
    Drip,
    /// Accepts and closes.
    CloseAtOnce,
    /// Takes the request and closes.
    CloseUnanswered,
    /// Resets instead of answering.
    Reset,
    /// Half a status line, and closes.
    HalfHead,
    /// Half a head, then silence.
    StuckHead,
    /// Says nothing.
    Silent,
    /// No HTTP.
    Garbage,
    /// A head of 1 MB.
    HugeHead,
    /// Two different lengths.
    TwoLengths,
    /// Switches protocols without being asked.
    Switch,
    /// Half of the announced body, and closes.
    HalfLength,
    /// Half of the announced body, and resets.
    ResetBody,
    /// Half a chunk, and closes.
    HalfChunk,
    /// Chunks without the last one, and closes.
    NoLastChunk,
    /// A chunk size that is none.
    BadChunk,
    /// Half of the announced body, then silence.
    StuckBody,
}

use Does::*;

/// What a client gets through a flow that relays the answer, and through one that reads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Gets {
    Good,
    /// This status with a body.
    Fault(u16),
    /// A connection that breaks before the answer is whole.
    Cut,
}

/// What each is for the client: relayed, and read by the flow.
const TABLE: &[(Does, Gets, Gets)] = &[
    (Echo, Gets::Good, Gets::Good),
    (EchoAndClose, Gets::Good, Gets::Good),
    (Interim, Gets::Good, Gets::Good),
    (EarlyAnswer, Gets::Good, Gets::Good),
    (EarlyRefusal, Gets::Fault(413), Gets::Fault(413)),
    (UntilClose, Gets::Good, Gets::Good),
    (Drip, Gets::Good, Gets::Good),
    (CloseAtOnce, Gets::Fault(502), Gets::Fault(502)),
    (CloseUnanswered, Gets::Fault(502), Gets::Fault(502)),
    (Reset, Gets::Fault(502), Gets::Fault(502)),
    (HalfHead, Gets::Fault(502), Gets::Fault(502)),
    (StuckHead, Gets::Fault(504), Gets::Fault(504)),
    (Silent, Gets::Fault(504), Gets::Fault(504)),
    (Garbage, Gets::Fault(502), Gets::Fault(502)),
    (HugeHead, Gets::Fault(502), Gets::Fault(502)),
    (TwoLengths, Gets::Fault(502), Gets::Fault(502)),
    (Switch, Gets::Fault(502), Gets::Fault(502)),
    (HalfLength, Gets::Cut, Gets::Fault(502)),
    (ResetBody, Gets::Cut, Gets::Fault(502)),
    (HalfChunk, Gets::Cut, Gets::Fault(502)),
    (NoLastChunk, Gets::Cut, Gets::Fault(502)),
    (BadChunk, Gets::Cut, Gets::Fault(502)),
    (StuckBody, Gets::Cut, Gets::Fault(502)),
];

/// A backend that does what it is told to.
struct Backend {
    address: SocketAddr,
    does: Arc<Mutex<Does>>,
}

impl Backend {
    fn start(listener: TcpListener) -> Backend {
        let address = listener.local_addr().unwrap();
        let does = Arc::new(Mutex::new(Echo));
        let told = Arc::clone(&does);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let told = Arc::clone(&told);
                std::thread::spawn(move || {
                    // A bus that closes early is no failure of the backend.
                    let _ = serve(stream, &told);
                });
            }
        });
        Backend { address, does }
    }

    fn new() -> Backend {
        Backend::start(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    fn tell(&self, does: Does) {
        *self.does.lock().unwrap() = does;
    }
}

/// Requests with this in them get what the backend was told to do; all others an echo.
const MARK: &str = "mark";

fn serve(stream: TcpStream, told: &Mutex<Does>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut out = stream;
    if *told.lock().unwrap() == CloseAtOnce {
        return Ok(());
    }
    loop {
        line(&mut reader)?;
        let does = *told.lock().unwrap();
        let fields = fields(&mut reader)?;
        match does {
            EarlyAnswer => out.write_all(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nTransfer-Encoding: chunked\r\n\r\n",
            )?,
            EarlyRefusal => {
                out.write_all(
                    b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno\n",
                )?;
                // Reads on for a moment, so that the answer is not lost in a reset.
                std::thread::sleep(Duration::from_millis(50));
                return Ok(());
            }
            _ => {}
        }
        let field = |name: &str| fields.iter().find(|(field_name, _)| field_name.eq_ignore_ascii_case(name));
        let body = match field("Content-Length") {
            Some((_, length)) => {
                let mut body = vec![0; length.parse().unwrap()];
                reader.read_exact(&mut body)?;
                body
            }
            None if field("Transfer-Encoding").is_some() => chunks(&mut reader)?,
            None => Vec::new(),
        };
        let marked = String::from_utf8_lossy(&body).contains(MARK);
        // An early answer has begun already.
        let does = if marked || does == EarlyAnswer { does } else { Echo };
        let length = body.len();
        let half = &body[..length / 2];
        let head = |length: usize| {
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: {length}\r\n\r\n")
                .into_bytes()
        };
        let chunked = b"HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nTransfer-Encoding: chunked\r\n\r\n";
        let chunk = |body: &[u8]| [format!("{:x}\r\n", body.len()).as_bytes(), body, b"\r\n"].concat();
        let whole = [head(length), body.clone()].concat();
        match does {
            Echo => out.write_all(&whole)?,
            EchoAndClose => return out.write_all(&whole),
            Interim => {
                let interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
                out.write_all(&[&interim[..], &whole].concat())?;
            }
            EarlyAnswer => out.write_all(&[&chunk(&body)[..], b"0\r\n\r\n"].concat())?,
            UntilClose => {
                let head = b"HTTP/1.0 200 OK\r\nContent-Type: text/xml\r\n\r\n";
                return out.write_all(&[&head[..], &body].concat());
            }
            Drip => {
                for byte in &whole {
                    out.write_all(&[*byte])?;
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
            CloseUnanswered | EarlyRefusal => return Ok(()),
            CloseAtOnce => return Ok(()),
            Reset => return reset(out),
            HalfHead => return out.write_all(b"HTTP/1.1 20"),
            StuckHead => {
                out.write_all(b"HTTP/1.1 200 OK\r\nContent-")?;
                return silence(out);
            }
            Silent => return silence(out),
            Garbage => return out.write_all(b"SSH-2.0-OpenSSH_9.6\r\n\x00\x01\x02\r\n\r\n"),
            HugeHead => {
                return out.write_all(&[b"HTTP/1.1 200 OK\r\nX: ", &vec![b'a'; 1 << 20][..]].concat());
            }
            TwoLengths => {
                out.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd")?;
            }
            Switch => out.write_all(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n")?,
            HalfLength => return out.write_all(&[head(length), half.to_vec()].concat()),
            ResetBody => {
                out.write_all(&[head(length), half.to_vec()].concat())?;
                std::thread::sleep(Duration::from_millis(50));
                return reset(out);
            }
            HalfChunk => {
                let size = format!("{length:x}\r\n").into_bytes();
                return out.write_all(&[&chunked[..], &size, half].concat());
            }
            NoLastChunk => return out.write_all(&[&chunked[..], &chunk(&body)].concat()),
            BadChunk => return out.write_all(&[&chunked[..], &chunk(half), b"-1\r\nabc"].concat()),
            StuckBody => {
                out.write_all(&[head(length), half.to_vec()].concat())?;
                return silence(out);
            }
        }
    }
}

/// Waits until the bus has given up.
fn silence(mut stream: TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(DEADLINE))?;
    stream.read(&mut [0; 16]).map(drop)
}

/// Closes with a reset: what came was not read.
fn reset(stream: TcpStream) -> io::Result<()> {
    socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))
}

/// A flow, and the names of the flows that read the answer.
const READS: &[&str] = &["Xslt", "Enrich", "Split", "Clone", "Handled2"];

const TIMEOUT: &str = "<timeout><duration>400</duration><responseAction>fault</responseAction></timeout>";

/// No failure suspends it: each row of the table begins with an active endpoint.
const NEVER: &str = "<suspendOnFailure><errorCodes>-1</errorCodes></suspendOnFailure>\
     <markForSuspension><errorCodes>-1</errorCodes></markForSuspension>";

fn artifacts(backend: SocketAddr) -> String {
    let endpoint = "<endpoint key='B'/>";
    let send = format!("<send>{endpoint}</send>");
    let proxy =
        |name: &str, inside: String| format!("<proxy name='{name}'><target>{inside}</target></proxy>");
    let through = |name: &str, before: &str, after: &str| {
        proxy(
            name,
            format!("<inSequence>{before}{send}</inSequence><outSequence>{after}<send/></outSequence>"),
        )
    };
    let parts = "<property name='all'><all/></property>";
    let aggregate = "<outSequence><aggregate><completeCondition timeout='1'><messageCount min='-1' max='-1'/>\
         </completeCondition><onComplete expression='//part' enclosingElementProperty='all'><send/></onComplete>\
         </aggregate></outSequence>";
    let handler = "<faultSequence><log level='full'/><makefault version='soap11'>\
         <code xmlns:s='http://schemas.xmlsoap.org/soap/envelope/' value='s:Server'/>\
         <reason expression=\"fn:concat('handled ', get-property('ERROR_CODE'))\" xmlns:fn='http://www.w3.org/2005/xpath-functions'/></makefault>\
         <property name='HTTP_SC' value='500' scope='axis2'/><respond/></faultSequence>"
        .replace("fn:concat", "concat");
    [
        format!("<endpoint name='B'><address uri='http://{backend}/service'>{TIMEOUT}{NEVER}</address></endpoint>"),
        "<localEntry key='Copy'><xsl:stylesheet version='1.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'>\
         <xsl:template match='@*|node()'><xsl:copy><xsl:apply-templates select='@*|node()'/></xsl:copy></xsl:template>\
         </xsl:stylesheet></localEntry>"
            .to_owned(),
        through("Direct", "", ""),
        proxy("Target", format!("{endpoint}<outSequence><send/></outSequence>")),
        proxy("Call", format!("<inSequence><call>{endpoint}</call><respond/></inSequence>")),
        through("Route", "<filter xpath=\"//part[1]/@id = '1'\"><then/><else><drop/></else></filter>", ""),
        through("Xslt", "<xslt key='Copy'/>", "<xslt key='Copy'/>"),
        through(
            "Enrich",
            "",
            "<enrich><source type='body' clone='true'/><target type='property' property='x'/></enrich>",
        ),
        proxy(
            "Split",
            format!("<inSequence>{parts}<iterate expression='//part'><target><sequence>{send}</sequence></target></iterate></inSequence>{aggregate}"),
        ),
        proxy(
            "Clone",
            format!("<inSequence>{parts}<clone><target>{endpoint}</target><target>{endpoint}</target></clone></inSequence>{aggregate}"),
        ),
        proxy(
            "Handled",
            format!("<inSequence>{send}</inSequence><outSequence><send/></outSequence>{handler}"),
        ),
        proxy(
            "Handled2",
            format!("<inSequence>{send}</inSequence><outSequence><xslt key='Copy'/><send/></outSequence>{handler}"),
        ),
    ]
    .concat()
}

const FLOWS: &[&str] =
    &["Direct", "Target", "Call", "Route", "Xslt", "Enrich", "Split", "Clone", "Handled", "Handled2"];

/// A message of three parts; only the second one is marked.
fn message() -> String {
    let part = |id: u32, text: &str| format!("<part id='{id}'>{text}</part>");
    let long = "x".repeat(500);
    let parts = [part(1, &long), part(2, MARK), part(3, &long)].concat();
    format!(
        "<e:Envelope xmlns:e='http://schemas.xmlsoap.org/soap/envelope/'><e:Body><order>{parts}</order></e:Body></e:Envelope>"
    )
}

fn ask(bus: &mut TcpStream, flow: &str) -> io::Result<WireResponse> {
    let body = message();
    let head = format!(
        "POST /services/{flow} HTTP/1.1\r\nHost: test\r\nContent-Type: text/xml\r\nSOAPAction: \"urn:order\"\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    bus.write_all([head, body].concat().as_bytes())?;
    receive(bus)
}

/// Whether an answer has all parts.
fn is_good(response: &WireResponse) -> bool {
    let text = response.text();
    response.status == 200
        && (1..=3).all(|n| text.contains(&format!("id='{n}'")) || text.contains(&format!("id=\"{n}\"")))
}

fn judge(flow: &str, gets: Gets, came: &io::Result<WireResponse>, took: Duration, log: &[String]) -> String {
    let lacks = |line: &&String| match gets {
        // What was relayed is no flow's any more.
        Gets::Cut => !(line.contains("message_id=urn:uuid:") && line.contains("peer=http://127.0.0.1:")),
        _ => !is_complete(line),
    };
    if let Some(line) = log.iter().find(lacks) {
        return format!("the log line lacks something: {line}");
    }
    if took > Duration::from_secs(4) {
        return format!("after {took:?}");
    }
    let splits = matches!(flow, "Split" | "Clone");
    match (gets, came) {
        (Gets::Good, Ok(response)) if is_good(response) && log.is_empty() => String::new(),
        (Gets::Good, other) => format!("{other:?}, log {log:?}"),
        (Gets::Cut, Err(error)) if error.kind() == io::ErrorKind::WouldBlock => "silence".to_owned(),
        (Gets::Cut, Err(_)) if log.len() == 1 => String::new(),
        (Gets::Cut, Err(_)) => format!("{} lines in the log", log.len()),
        (Gets::Cut, Ok(response)) => format!("{} that looks whole: {}", response.status, response.text()),
        // Another backend's own answer is no fault of the flow.
        (Gets::Fault(413), Ok(response)) if response.status == 413 || splits => String::new(),
        (Gets::Fault(_), Err(error)) => error.to_string(),
        // The parts that came.
        (Gets::Fault(_), Ok(response))
            if splits && response.status == 200 && !is_good(response) && !log.is_empty() =>
        {
            if response.text().contains(MARK) { "a part that failed".to_owned() } else { String::new() }
        }
        (Gets::Fault(want), Ok(response)) => {
            let handled = flow.starts_with("Handled");
            let want = if handled { 500 } else { want };
            match () {
                () if response.status != want => {
                    format!("{} instead of {want}: {}", response.status, response.text())
                }
                () if handled && !response.text().contains("handled 101") => response.text(),
                () if response.body.is_empty() => "not a word".to_owned(),
                () if !splits && log.len() != 1 => format!("{} lines in the log: {log:?}", log.len()),
                () => String::new(),
            }
        }
    }
}

fn bus(name: &str, artifacts: &str) -> Process {
    // The pause within a body is short enough to wait for it.
    Process::run(&configuration(name, artifacts), &["--set", "limits.socket=400ms"])
}

#[test]
fn every_failing_backend_under_every_flow() {
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for flow in FLOWS {
            let wrong = &wrong;
            scope.spawn(move || {
                let backend = Backend::new();
                let bus = bus(&format!("hard-backend-{flow}"), &artifacts(backend.address));
                for &(does, relayed, read) in TABLE {
                    let gets = if READS.contains(flow) { read } else { relayed };
                    // Twice: on a fresh connection of the bus to the backend, and on a pooled one.
                    for again in [false, true] {
                        if again && matches!(*flow, "Split" | "Clone") {
                            continue; // each waits for the timeout of the aggregate, and uses both kinds anyway
                        }
                        let mut stream = connect(bus.http());
                        if again {
                            let _ = ask(&mut stream, flow);
                        }
                        let from = bus.stderr().len();
                        backend.tell(does);
                        let began = Instant::now();
                        let came = ask(&mut stream, flow);
                        let took = began.elapsed();
                        if came.is_err() {
                            // The log is written when the bus lets go of the connection.
                            std::thread::sleep(Duration::from_millis(30));
                        }
                        let mut what = judge(flow, gets, &came, took, &faults(&bus, from));
                        for _ in 0..20 {
                            if what.is_empty() {
                                break;
                            }
                            // The line may still be on its way.
                            std::thread::sleep(Duration::from_millis(25));
                            what = judge(flow, gets, &came, took, &faults(&bus, from));
                        }
                        let say = |what: String| {
                            wrong.lock().unwrap().push(format!("{flow}, {does:?}, pooled {again}: {what}"));
                        };
                        if !what.is_empty() {
                            say(what);
                        }
                        backend.tell(Echo);
                        if does == EchoAndClose {
                            // A POST that crosses the backend's close on the way is not sent twice, since the backend
                            // may have begun with it: what has to succeed is the next one after the close was seen.
                            std::thread::sleep(Duration::from_millis(50));
                        }
                        // The same connection where it lives on, a new one otherwise.
                        if came.is_err() {
                            stream = connect(bus.http());
                        }
                        match ask(&mut stream, flow).or_else(|_| ask(&mut connect(bus.http()), flow)) {
                            Ok(response) if is_good(&response) => {}
                            other => say(format!("afterwards {other:?}")),
                        }
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_backend_that_is_not_there_yet() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    // Failures suspend it, for a moment.
    let suspension = "<suspendOnFailure><initialDuration>300</initialDuration><progressionFactor>1</progressionFactor>\
         </suspendOnFailure>";
    let bus = bus("hard-refused", &artifacts(address).replace(NEVER, suspension));
    for flow in FLOWS {
        let from = bus.stderr().len();
        let response = ask(&mut connect(bus.http()), flow).unwrap();
        assert!(response.status >= 500 && !response.body.is_empty(), "{flow}: {response:?}");
        let log = faults(&bus, from);
        assert!(!log.is_empty() && log.iter().all(|line| is_complete(line)), "{flow}: {log:?}");
        std::thread::sleep(Duration::from_millis(if *flow == "Direct" { 350 } else { 0 }));
    }
    let _backend = Backend::start(TcpListener::bind(address).unwrap());
    std::thread::sleep(Duration::from_millis(350));
    for flow in FLOWS {
        let response = ask(&mut connect(bus.http()), flow).unwrap();
        assert!(is_good(&response), "{flow}: {response:?}");
    }
}

#[test]
fn clients_that_do_not_wait() {
    let backend = Backend::new();
    let bus = bus("hard-impatient", &artifacts(backend.address));
    for does in [Silent, StuckBody, Drip, Echo] {
        for flow in FLOWS {
            backend.tell(does);
            let mut stream = connect(bus.http());
            let body = message();
            let head = format!(
                "POST /services/{flow} HTTP/1.1\r\nHost: test\r\nContent-Type: text/xml\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            stream.write_all([head, body].concat().as_bytes()).unwrap();
            std::thread::sleep(Duration::from_millis(10));
            drop(stream);
            backend.tell(Echo);
            let response = ask(&mut connect(bus.http()), flow).unwrap();
            assert!(is_good(&response), "{flow}, {does:?}: {response:?}");
        }
    }
    // Branches that nobody waits for end by themselves.
    std::thread::sleep(Duration::from_millis(600));
    assert!(!bus.stderr().contains("panicked"), "{}", bus.stderr());
}

#[test]
fn a_client_that_was_answered_before_the_backend_failed() {
    let backend = Backend::new();
    let more = ["FORCE_SC_ACCEPTED' value='true' scope='axis2", "OUT_ONLY' value='true"].map(|property| {
        let name = property.split('\'').next().unwrap();
        format!(
            "<proxy name='{name}'><target><inSequence><property name='{property}'/><send><endpoint key='B'/></send>\
             </inSequence><outSequence><send/></outSequence></target></proxy>"
        )
    });
    let bus = bus("hard-accepted", &[artifacts(backend.address), more.concat()].concat());
    for flow in ["FORCE_SC_ACCEPTED", "OUT_ONLY"] {
        for (does, fails) in [(Echo, 0), (CloseUnanswered, 1), (Silent, 1), (Garbage, 1)] {
            backend.tell(does);
            let from = bus.stderr().len();
            let response = ask(&mut connect(bus.http()), flow).unwrap();
            assert_eq!(response.status, 202, "{flow}, {does:?}: {response:?}");
            until("the failure is in the log", || faults(&bus, from).len() >= fails);
            let log = faults(&bus, from);
            assert_eq!(log.len(), fails, "{flow}, {does:?}: {log:?}");
            assert!(log.iter().all(|line| is_complete(line)), "{log:?}");
        }
    }
}

#[test]
fn no_credentials_of_a_url_are_shown() {
    let broken = "<endpoint name='E'><address uri='http://user:secret@localhost:1/'/></endpoint>\
         <proxy name='P'><target><inSequence><header name='To' value='http://user:secret@localhost:1/'/><send/>\
         </inSequence><outSequence><send/></outSequence></target></proxy>\
         <proxy name='Q'><target><endpoint key='E'/></target></proxy>";
    let bus = Process::run(&configuration("hard-userinfo", broken), &[]);
    for flow in ["P", "Q"] {
        let response = ask(&mut connect(bus.http()), flow).unwrap();
        assert!(!response.text().contains("secret"), "{flow}: {response:?}");
    }
    bus.says("no user name and password may stand here", 1);
    assert!(!bus.stderr().contains("secret"), "{}", bus.stderr());
}
