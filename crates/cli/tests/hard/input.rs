//! Every bad request to every scenario of the round.

use crate::support::{Process, ask, busbar};
use crate::wire::{WireResponse, receive_from, send};
use bench::scenarios::{ROUND, Request, Scenario};
use std::fs;
use std::path::{Path, PathBuf};

/// What a flow does with the body of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Flow {
    /// Nothing: bytes go through as they are.
    Relays,
    /// Reads it all.
    Reads,
    /// Reads as much as decides where it goes.
    ReadsBeginning,
    /// Has no body to read.
    Bodyless,
}

fn flow(scenario: &Scenario) -> Flow {
    match scenario.name.split('/').next().unwrap_or_default() {
        _ if scenario.case(0).request.body.is_empty() => Flow::Bodyless,
        "DirectProxy"
        | "MessageRelayProxy"
        | "CBRTransportHeaderProxy"
        | "DirectMain"
        | "AppendProxy"
        | "OrderAPI" => Flow::Relays,
        "CBRProxy" | "CBRSOAPHeaderProxy" => Flow::ReadsBeginning,
        _ => Flow::Reads,
    }
}

/// What becomes of a bad request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Becomes {
    /// This status, whatever the scenario; the flow is not reached.
    Refused(u16),
    /// The flow fails if it reads the body: an error with a body and one line in the log; relayed otherwise.
    Fault,
    /// The request never was whole: an error, or no answer at all; the backend must not have accepted it.
    Cut,
    /// An answer. Which one depends on what the flow makes of such a body.
    Answer,
}

/// Makes a body.
type Make = fn() -> Vec<u8>;

struct Bad {
    name: &'static str,
    /// Content type and body of the request; none: as the scenario has them.
    message: Option<(&'static str, Make)>,
    framing: Framing,
    becomes: Becomes,
}

#[derive(Clone, Copy)]
enum Framing {
    Whole,
    /// Another method.
    Method(&'static str),
    /// This field instead of the right Content-Length.
    Length(&'static str),
    /// Half of the body, then the end.
    HalfLength,
    /// A chunk that is announced but does not come whole, then the end.
    HalfChunk,
    /// No last chunk, then the end.
    NoLastChunk,
    /// A chunk size that is none.
    BadChunk,
    /// The head stops, then the end.
    HalfHead,
    /// A head without end.
    HugeHead,
}

const XML: &str = "text/xml; charset=UTF-8";

fn malformed() -> Vec<u8> {
    b"<soapenv:Envelope xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\"><soapenv:Body><a></b></soapenv:Body></soapenv:Envelope>".to_vec()
}

fn no_xml() -> Vec<u8> {
    b"this is no XML at all".to_vec()
}

fn unfinished() -> Vec<u8> {
    b"<soapenv:Envelope xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\"><soapenv:Header/><soapenv:Body><a>".to_vec()
}

fn enveloped(payload: &str) -> Vec<u8> {
    format!("<e:Envelope xmlns:e=\"http://schemas.xmlsoap.org/soap/envelope/\"><e:Body>{payload}</e:Body></e:Envelope>").into_bytes()
}

fn deep() -> Vec<u8> {
    enveloped(&["<a>".repeat(10_000), "</a>".repeat(10_000)].concat())
}

fn doctype() -> Vec<u8> {
    let entities = "<!DOCTYPE e [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\"><!ENTITY x SYSTEM \"file:///etc/passwd\">]>";
    [entities.as_bytes(), &enveloped("<a>&b;&x;</a>")].concat()
}

fn invalid_utf8() -> Vec<u8> {
    let mut body = enveloped("<a>??</a>");
    let at = body.iter().position(|&byte| byte == b'?').unwrap();
    body[at] = 0xC3;
    body[at + 1] = 0x28;
    body
}

fn unbound_prefix() -> Vec<u8> {
    enveloped("<nobody:a/>")
}

fn empty() -> Vec<u8> {
    Vec::new()
}

fn not_soap() -> Vec<u8> {
    b"<orders/>".to_vec()
}

fn random_bytes() -> Vec<u8> {
    (0..2048u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

const BAD: &[Bad] = &[
    Bad {
        name: "malformed XML",
        message: Some((XML, malformed)),
        framing: Framing::Whole,
        becomes: Becomes::Fault,
    },
    Bad { name: "no XML", message: Some((XML, no_xml)), framing: Framing::Whole, becomes: Becomes::Fault },
    Bad {
        name: "unfinished XML",
        message: Some((XML, unfinished)),
        framing: Framing::Whole,
        becomes: Becomes::Fault,
    },
    Bad { name: "10,000 deep", message: Some((XML, deep)), framing: Framing::Whole, becomes: Becomes::Fault },
    Bad { name: "DOCTYPE", message: Some((XML, doctype)), framing: Framing::Whole, becomes: Becomes::Fault },
    Bad {
        name: "invalid UTF-8",
        message: Some((XML, invalid_utf8)),
        framing: Framing::Whole,
        becomes: Becomes::Fault,
    },
    Bad {
        name: "unbound prefix",
        message: Some((XML, unbound_prefix)),
        framing: Framing::Whole,
        becomes: Becomes::Fault,
    },
    Bad {
        name: "empty body",
        message: Some((XML, empty)),
        framing: Framing::Whole,
        becomes: Becomes::Answer,
    },
    Bad {
        name: "not SOAP",
        message: Some((XML, not_soap)),
        framing: Framing::Whole,
        becomes: Becomes::Answer,
    },
    Bad {
        name: "XML as JSON",
        message: Some(("application/json", not_soap)),
        framing: Framing::Whole,
        becomes: Becomes::Answer,
    },
    Bad {
        name: "XML as text",
        message: Some(("text/plain", not_soap)),
        framing: Framing::Whole,
        becomes: Becomes::Answer,
    },
    Bad {
        name: "bytes as XML",
        message: Some((XML, random_bytes)),
        framing: Framing::Whole,
        becomes: Becomes::Fault,
    },
    Bad {
        name: "unknown type",
        message: Some(("application/x-nobody", random_bytes)),
        framing: Framing::Whole,
        becomes: Becomes::Answer,
    },
    Bad {
        name: "broken type",
        message: Some((";;=/", not_soap)),
        framing: Framing::Whole,
        becomes: Becomes::Answer,
    },
    Bad {
        name: "multipart without parts",
        message: Some(("multipart/related; boundary=x", no_xml)),
        framing: Framing::Whole,
        becomes: Becomes::Answer,
    },
    Bad {
        name: "unknown charset",
        message: Some(("text/xml; charset=nobody", not_soap)),
        framing: Framing::Whole,
        becomes: Becomes::Answer,
    },
    Bad {
        name: "method FROB",
        message: None,
        framing: Framing::Method("FROB"),
        becomes: Becomes::Refused(501),
    },
    Bad {
        name: "no length",
        message: None,
        framing: Framing::Length("Content-Length: many"),
        becomes: Becomes::Refused(400),
    },
    Bad {
        name: "negative length",
        message: None,
        framing: Framing::Length("Content-Length: -1"),
        becomes: Becomes::Refused(400),
    },
    Bad {
        name: "huge length",
        message: None,
        framing: Framing::Length("Content-Length: 99999999999999999999"),
        becomes: Becomes::Refused(400),
    },
    Bad {
        name: "two lengths",
        message: None,
        framing: Framing::Length("Content-Length: 3\r\nContent-Length: 4"),
        becomes: Becomes::Refused(400),
    },
    Bad {
        name: "length and chunks",
        message: None,
        framing: Framing::Length("Content-Length: 3\r\nTransfer-Encoding: chunked"),
        becomes: Becomes::Refused(400),
    },
    Bad {
        name: "field without a colon",
        message: None,
        framing: Framing::Length("Content-Length 3"),
        becomes: Becomes::Refused(400),
    },
    Bad { name: "half the length", message: None, framing: Framing::HalfLength, becomes: Becomes::Cut },
    Bad { name: "half a chunk", message: None, framing: Framing::HalfChunk, becomes: Becomes::Cut },
    Bad { name: "no last chunk", message: None, framing: Framing::NoLastChunk, becomes: Becomes::Cut },
    Bad { name: "bad chunk size", message: None, framing: Framing::BadChunk, becomes: Becomes::Cut },
    Bad { name: "half a head", message: None, framing: Framing::HalfHead, becomes: Becomes::Cut },
    Bad { name: "huge head", message: None, framing: Framing::HugeHead, becomes: Becomes::Refused(431) },
];

/// The bytes of a request on the wire.
fn bytes(request: &Request, framing: Framing) -> Vec<u8> {
    let method = if let Framing::Method(method) = framing { method } else { request.method };
    let mut head = format!("{method} {} HTTP/1.1\r\nHost: test\r\n", request.path);
    for (name, value) in &request.headers {
        head += &format!("{name}: {value}\r\n");
    }
    let body = &request.body;
    let half = &body[..body.len() / 2];
    let chunk = |size: usize, body: &[u8]| [format!("{size:x}\r\n").as_bytes(), body].concat();
    let body = match framing {
        Framing::Whole | Framing::Method(_) => {
            head += &format!("Content-Length: {}\r\n", body.len());
            body.clone()
        }
        Framing::Length(field) => {
            head += &format!("{field}\r\n");
            b"abc".to_vec()
        }
        Framing::HalfLength => {
            head += &format!("Content-Length: {}\r\n", body.len().max(10));
            half.to_vec()
        }
        Framing::HalfChunk | Framing::NoLastChunk | Framing::BadChunk => {
            head += "Transfer-Encoding: chunked\r\n";
            match framing {
                Framing::HalfChunk => chunk(body.len().max(10), half),
                Framing::NoLastChunk if body.is_empty() => b"1\r\na\r\n".to_vec(),
                Framing::NoLastChunk => [&chunk(body.len(), body)[..], b"\r\n"].concat(),
                _ => [&b"3\r\nabc\r\n-1\r\n"[..], body].concat(),
            }
        }
        Framing::HalfHead => return head.into_bytes(),
        Framing::HugeHead => {
            for n in 0..4000 {
                head += &format!("X-Field-{n}: {n}\r\n");
            }
            Vec::new()
        }
    };
    [head.as_bytes(), b"\r\n", &body].concat()
}

/// `examples/round` with its endpoints at a backend.
pub fn round(name: &str, backend: &str) -> PathBuf {
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&to);
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/round"), &to, backend);
    to
}

fn copy(from: &Path, to: &Path, backend: &str) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (entry, to) = (entry.unwrap().path(), to);
        let target = to.join(entry.file_name().unwrap());
        match entry.is_dir() {
            true => copy(&entry, &target, backend),
            false => {
                let text = fs::read_to_string(&entry).unwrap().replace("localhost:9000", backend);
                fs::write(target, text).unwrap();
            }
        }
    }
}

/// What the scenario's own request must get.
pub fn good(bus: &Process, scenario: &Scenario) -> Result<(), String> {
    let case = scenario.case(1024);
    let response =
        send(bus.http(), &bytes(&case.request, Framing::Whole), false).map_err(|e| e.to_string())?;
    let headers: Vec<_> = response.headers.iter().map(|(name, value)| (&**name, &**value)).collect();
    let response =
        bench::check::ReceivedResponse { status: response.status, headers: &headers, body: &response.body };
    case.check(&response).map_err(|mismatch| mismatch.to_string())
}

/// The fault lines of the log from byte `from` on.
pub fn faults(bus: &Process, from: usize) -> Vec<String> {
    // A thread of the bus writes the log, line by line: what was said before a line of ours is written when that line is.
    const MARK: &str = "a log level was changed category=busbar::settings";
    let marks = bus.stderr().matches(MARK).count();
    let (status, ..) = ask(bus.field("admin"), "PUT", "/loggers/busbar::settings", b"info").unwrap();
    assert_eq!(status, 200);
    bus.says(MARK, marks + 1);
    let log = bus.stderr();
    log[from.min(log.len())..]
        .lines()
        .filter(|line| line.contains("busbar::fault"))
        .map(str::to_owned)
        .collect()
}

/// A line of the log says which message failed and where.
pub fn is_complete(line: &str) -> bool {
    line.contains("message_id=urn:uuid:") && line.contains("place=") && line.contains("code=")
}

/// What is wrong with what became of a bad request; empty: nothing.
fn judge(
    bad: &Bad,
    flow: Flow,
    request: &Request,
    came: &std::io::Result<WireResponse>,
    faults: &[String],
) -> String {
    let lines = match faults.iter().find(|line| !is_complete(line)) {
        Some(line) => return format!("the log line lacks something: {line}"),
        None => faults.len(),
    };
    let response = match (came, bad.becomes) {
        (Ok(response), _) => response,
        (Err(error), _) if matches!(error.kind(), std::io::ErrorKind::WouldBlock) => {
            return "silence".to_owned();
        }
        (Err(_), Becomes::Cut) if lines <= 1 => return String::new(),
        (Err(error), _) => return error.to_string(),
    };
    let status = response.status;
    if lines > 1 {
        return format!("{lines} lines in the log for {status}");
    }
    match bad.becomes {
        Becomes::Refused(want) if status != want => format!("{status} instead of {want}"),
        Becomes::Refused(_) if lines > 0 => "a fault for what no flow saw".to_owned(),
        Becomes::Refused(_) => String::new(),
        Becomes::Cut if status < 400 && flow != Flow::Bodyless => format!("{status} for half a request"),
        Becomes::Fault if flow == Flow::Reads && (status < 400 || lines != 1 || response.body.is_empty()) => {
            format!("{status}, {lines} lines in the log, and {}", response.text())
        }
        Becomes::Fault
            if flow == Flow::Relays && request.path.contains("Direct") && response.body != request.body =>
        {
            "not relayed as it was".to_owned()
        }
        _ if status == 202 && lines > 0 => "a failure that looks accepted".to_owned(),
        _ if status >= 500 && response.body.is_empty() => format!("{status} without a word"),
        _ => String::new(),
    }
}

#[test]
fn every_bad_request_to_every_scenario() {
    let backend = Process::backend(&[]);
    let bus = Process::run(&round("hard-round", backend.http()), &[]);
    let (mut wrong, mut table) = (Vec::new(), String::new());
    for scenario in ROUND {
        let case = scenario.case(1024);
        let flow = flow(scenario);
        for bad in BAD {
            let mut request = case.request.clone();
            if let Some((content_type, body)) = bad.message {
                if flow == Flow::Bodyless {
                    continue;
                }
                request.headers.retain(|(name, _)| *name != "Content-Type");
                request.headers.push(("Content-Type", content_type.to_owned()));
                request.body = body();
            }
            let from = bus.stderr().len();
            let close = matches!(bad.becomes, Becomes::Cut);
            let came = send(bus.http(), &bytes(&request, bad.framing), close);
            let after = good(&bus, scenario);
            let faults = faults(&bus, from);
            // What the good request of a scenario says itself.
            let expected = usize::from(scenario.name.ends_with("/broken") && flow != Flow::Relays);
            let faults = &faults[..faults.len().saturating_sub(expected)];
            let what = judge(bad, flow, &request, &came, faults);
            let outcome = came.as_ref().map_or_else(|e| e.kind().to_string(), |a| a.status.to_string());
            table += &format!("{:28} {:24} {outcome:8} {} {what}\n", scenario.name, bad.name, faults.len());
            if !what.is_empty() {
                wrong.push(format!("{}, {}: {what}", scenario.name, bad.name));
            }
            if let Err(error) = after {
                wrong.push(format!("{}, after {}: {error}", scenario.name, bad.name));
            }
        }
    }
    if std::env::var_os("HARD_TABLE").is_some() {
        print!("{table}");
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn nobody_is_asked_for() {
    let backend = Process::backend(&[]);
    let bus = Process::run(&round("hard-nobody", backend.http()), &[]);
    let cases = [
        ("POST /services/Nobody HTTP/1.1\r\nHost: test\r\nContent-Length: 4\r\n\r\n<a/>", 404),
        ("GET /services/Nobody?wsdl HTTP/1.1\r\nHost: test\r\n\r\n", 404),
        ("GET / HTTP/1.1\r\nHost: test\r\n\r\n", 404),
        ("GET /%zz/%00 HTTP/1.1\r\nHost: test\r\n\r\n", 404),
        ("GET /orders/%zz HTTP/1.1\r\nHost: test\r\n\r\n", 400),
        ("GET /../../etc/passwd HTTP/1.1\r\nHost: test\r\n\r\n", 404),
        ("PATCH /orders HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n", 405),
        ("OPTIONS * HTTP/1.1\r\nHost: test\r\n\r\n", 200),
        ("CONNECT test:80 HTTP/1.1\r\nHost: test\r\n\r\n", 501),
        ("TRACE / HTTP/1.1\r\nHost: test\r\n\r\n", 404),
        ("POST / HTTP/3.0\r\nHost: test\r\n\r\n", 505),
        ("POST / HTTP/1.1\r\n\r\n", 400),
        ("\r\n\r\n\u{16}\u{3}\u{1}", 400),
        ("hello\r\n\r\n", 400),
    ];
    let mut wrong = Vec::new();
    for (request, want) in cases {
        match send(bus.http(), request.as_bytes(), false) {
            Ok(response) if response.status == want => {}
            other => wrong.push(format!("{request:?}: {other:?} instead of {want}")),
        }
        if let Err(error) = good(&bus, &ROUND[0]) {
            wrong.push(format!("after {request:?}: {error}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_connection_lives_on_after_a_fault() {
    use std::io::Write;
    let backend = Process::backend(&[]);
    let bus = Process::run(&round("hard-alive", backend.http()), &[]);
    for scenario in ROUND.iter().filter(|scenario| flow(scenario) != Flow::Bodyless) {
        let good = scenario.case(512).request;
        let bad = Request { body: malformed(), ..good.clone() };
        let mut stream = crate::wire::connect(bus.http());
        // Two of each, all sent before the first answer is read.
        for request in [&bad, &good, &bad, &good] {
            stream.write_all(&bytes(request, Framing::Whole)).unwrap();
        }
        let mut statuses = Vec::new();
        let mut reader = std::io::BufReader::new(&mut stream);
        for _ in 0..4 {
            statuses.push(receive_from(&mut reader).expect(scenario.name).status);
        }
        assert_eq!(statuses[..2], statuses[2..], "{}", scenario.name);
    }
}

#[test]
fn files_that_cannot_be_read_say_so() {
    use std::os::unix::fs::PermissionsExt;
    let path = round("hard-unreadable", "localhost:9000");
    let file = path.join("proxy-services/DirectProxy.xml");
    let text = fs::read(&file).unwrap();
    let closed = |file: &Path| fs::set_permissions(file, fs::Permissions::from_mode(0o000)).unwrap();
    let dangling = |file: &Path| std::os::unix::fs::symlink("nowhere.xml", file).unwrap();
    let latin = |file: &Path| fs::write(file, b"<proxy name='\xE4'").unwrap();
    let cut = |file: &Path| fs::write(file, &text[..text.len() / 2]).unwrap();
    let nothing = |file: &Path| fs::write(file, b"").unwrap();
    type Spoil<'a> = (&'a str, &'a dyn Fn(&Path));
    let cases: [Spoil<'_>; 5] =
        [("closed", &closed), ("dangling", &dangling), ("latin", &latin), ("cut", &cut), ("empty", &nothing)];
    for (name, spoil) in cases {
        let _ = fs::remove_file(&file);
        if name != "dangling" {
            fs::write(&file, &text).unwrap();
        }
        spoil(&file);
        if name == "closed" && fs::read(&file).is_ok() {
            continue; // the superuser reads everything
        }
        let output = busbar(&["check", path.to_str().unwrap()]);
        let report =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name}: {report}");
        assert!(report.contains("DirectProxy.xml"), "{name}: {report}");
        // The others serve, and say what is missing.
        let bus = Process::run(&path, &[]);
        bus.says("DirectProxy.xml", 1);
        let response = send(bus.http(), b"GET /orders/17 HTTP/1.1\r\nHost: test\r\n\r\n", false).unwrap();
        assert_eq!(response.status, 200, "{name}");
    }
}
