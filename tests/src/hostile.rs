//! What no client should send, through the configuration of a case: nothing, the wrong type, broken, huge, deep.
//!
//! Beside `case.json` stands `hostile.txt`: a line for each of [`BODIES`] with the outcome that is right for this
//! configuration, `NAME STATUS ANSWER`. The answer is
//!
//! * `same`: the body that was sent, byte by byte;
//! * `empty`: no body;
//! * an ERROR_CODE: JSON of the fault sequence with this `code`;
//! * `= text`: the beginning of any other body, with white space as single blanks.
//!
//! A line `unreached NAME…` names the bodies that are answered ahead of the mediator (those that cannot be read, where a step before it
//! reads them): all others must reach it, which a trace of the message shows. With `step NAME` the trace has that name for it.
//!
//! A line that begins with `#` is a remark. The requests are those of the first step, but for body, content type and method. A line
//! `target PATH` names another target, a line `header NAME VALUE` another header field. After each of them the first step runs again, and its expectation must hold; with a line
//! `good last` only once at the end (where a message counts, as for a throttle).

use crate::case::Run;
use crate::spec::Step;
use crate::wire::Message;
use crate::{Failure, failure, short};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// The largest body that a flow may hold in these tests, as `busbar run --set limits.body` takes it.
pub const LIMIT: &str = "3m";
/// How long one answer may take. Generous: this is about no answer at all.
const DEADLINE: Duration = Duration::from_secs(60);

/// How long a trace may take to be in the log, where one is expected, and where it is not.
const REACHED: Duration = Duration::from_secs(10);
const WRITTEN: Duration = Duration::from_millis(150);

/// The header with the name of the body.
const MARK: &str = "X-Hostile";

/// A body that no client should send.
pub struct Body {
    /// Its name in the table.
    pub name: &'static str,
    /// What it is, for people.
    pub meaning: &'static str,
    method: &'static str,
    content_type: &'static str,
    header: Option<(&'static str, &'static str)>,
    bytes: fn() -> Vec<u8>,
}

/// All of them, in the order of the table.
pub const BODIES: &[Body] = &[
    Body::new("absent", "GET without a body", "GET", "", Vec::new),
    Body::new("empty", "POST without a body and without a type", "POST", "", Vec::new),
    Body::new("empty-xml", "POST of no bytes as XML", "POST", XML, Vec::new),
    Body::new("empty-json", "POST of no bytes as JSON", "POST", JSON, Vec::new),
    Body::new("other-xml", "XML about something else", "POST", XML, || b"<unrelated/>".to_vec()),
    Body::new("other-json", "JSON about something else", "POST", JSON, || br#"{"unrelated":true}"#.to_vec()),
    Body::new("scalar-json", "JSON that is no object", "POST", JSON, || b"17".to_vec()),
    Body::new("array-json", "an empty array", "POST", JSON, || b"[]".to_vec()),
    Body::new("json-as-xml", "JSON under the type of XML", "POST", XML, || br#"{"id":1}"#.to_vec()),
    Body::new("xml-as-json", "XML under the type of JSON", "POST", JSON, || {
        b"<order><id>1</id></order>".to_vec()
    }),
    Body::new("text", "plain text", "POST", "text/plain", || b"one bolt".to_vec()),
    Body::new("bytes", "bytes", "POST", "application/octet-stream", || (0..=255).collect()),
    Body::new("null-json", "the JSON value null", "POST", JSON, || b"null".to_vec()),
    Body::new("strange-json", "JSON with names and values that XML does not have", "POST", JSON, || {
        br#"{"":1,"a b":{"$":[null,1e400,-0,"\u0000\ud800"]},"@x":"<&>","a b":2}"#.to_vec()
    }),
    Body::new("form", "a form with a broken escape", "POST", "application/x-www-form-urlencoded", || {
        b"id=1&=&a%20b=%zz&id=2".to_vec()
    }),
    Body::new("broken-parts", "form data that ends in a part", "POST", "multipart/form-data; boundary=b", || {
        b"--b\r\nContent-Disposition: form-data; name=\"id\"\r\n\r\n1".to_vec()
    }),
    Body::new("soap-empty", "an envelope with an empty body", "POST", SOAP, || envelope("<s:Body/>")).with("SOAPAction", ""),
    Body::new("soap-bodyless", "an envelope without a body", "POST", SOAP, || envelope("")).with("SOAPAction", ""),
    Body::new("soap-fault", "a fault as a request", "POST", SOAP, || {
        envelope("<s:Body><s:Fault><faultcode>s:Client</faultcode><faultstring>no</faultstring></s:Fault></s:Body>")
    })
    .with("SOAPAction", ""),
    Body::new("soap-is-none", "no envelope under the type of SOAP 1.2", "POST", "application/soap+xml", || {
        b"<order><id>1</id></order>".to_vec()
    }),
    Body::new("not-gzip", "XML that says it is compressed, and is not", "POST", XML, || {
        b"<order><id>1</id></order>".to_vec()
    })
    .with("Content-Encoding", "gzip"),
    Body::new("utf16", "XML in UTF-16 with a byte order mark", "POST", XML, || {
        "\u{feff}<order><id>1</id></order>".encode_utf16().flat_map(u16::to_be_bytes).collect()
    }),
    Body::new("broken-xml", "XML that ends too early", "POST", XML, || b"<order><id>1</id><item>".to_vec()),
    Body::new("broken-json", "JSON that ends too early", "POST", JSON, || br#"{"id":1,"items":["#.to_vec()),
    Body::new("not-utf8", "XML with bytes that are no UTF-8", "POST", XML, || {
        b"<order><id>\xff\xfe</id></order>".to_vec()
    }),
    Body::new("entity-bomb", "XML with entities that grow", "POST", XML, bomb),
    Body::new("deep-xml", "elements in one another, 100,000 times", "POST", XML, || {
        ["<a>".repeat(100_000), "</a>".repeat(100_000)].concat().into_bytes()
    }),
    Body::new("deep-json", "arrays in one another, 100,000 times", "POST", JSON, || {
        ["[".repeat(100_000), "]".repeat(100_000)].concat().into_bytes()
    }),
    Body::new("huge-xml", "2 MB of elements", "POST", XML, || elements(2_000_000)),
    Body::new("huge-json", "2 MB of objects", "POST", JSON, || objects(2_000_000)),
    Body::new("long-text", "XML with a text of 2 MB", "POST", XML, || {
        ["<order><id>", &"x".repeat(2_000_000), "</id></order>"].concat().into_bytes()
    }),
    Body::new("too-large-xml", "more XML than a flow may hold", "POST", XML, || elements(4_000_000)),
    Body::new("too-large-json", "more JSON than a flow may hold", "POST", JSON, || objects(4_000_000)),
];

const XML: &str = "application/xml";
const JSON: &str = "application/json";
const SOAP: &str = "text/xml";

impl Body {
    const fn new(
        name: &'static str,
        meaning: &'static str,
        method: &'static str,
        content_type: &'static str,
        bytes: fn() -> Vec<u8>,
    ) -> Body {
        Body { name, meaning, method, content_type, header: None, bytes }
    }

    const fn with(self, name: &'static str, value: &'static str) -> Body {
        Body { header: Some((name, value)), ..self }
    }
}

fn elements(size: usize) -> Vec<u8> {
    let unit = "<item code=\"7\"><price>19.90</price><note>some words of it</note></item>";
    format!("<order>{}</order>", unit.repeat(size / unit.len())).into_bytes()
}

fn objects(size: usize) -> Vec<u8> {
    let unit = r#"{"code":7,"price":19.90,"note":"some words of it"},"#;
    format!("{{\"items\":[{}{{}}]}}", unit.repeat(size / unit.len())).into_bytes()
}

fn envelope(inside: &str) -> Vec<u8> {
    let soap = "http://schemas.xmlsoap.org/soap/envelope/";
    format!("<s:Envelope xmlns:s=\"{soap}\">{inside}</s:Envelope>").into_bytes()
}

fn bomb() -> Vec<u8> {
    let mut text = String::from("<!DOCTYPE order [<!ENTITY e0 \"bolt\">");
    for n in 1..12 {
        let _ = write!(text, "<!ENTITY e{n} \"{}\">", format!("&e{};", n - 1).repeat(10));
    }
    (text + "]><order><id>&e11;</id></order>").into_bytes()
}

/// What `hostile.txt` says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// By body: the status and the answer.
    pub outcomes: BTreeMap<String, (u16, String)>,
    /// Another target than that of the first step.
    pub target: Option<String>,
    /// The first step runs once at the end instead of after each body.
    pub good_last: bool,
    /// Bodies that do not come to the mediator.
    pub unreached: Vec<String>,
    /// Header fields that requests have instead of those of the first step.
    pub headers: Vec<(String, String)>,
    /// What traces call the mediator, where that is not the name of the case.
    pub step: Option<String>,
    /// Lines for people.
    pub remarks: Vec<String>,
}

impl Table {
    /// Reads it.
    ///
    /// # Errors
    /// A line that makes no sense.
    pub fn parse(text: &str) -> Result<Table, Failure> {
        let mut table = Table::default();
        for (n, line) in text.lines().enumerate() {
            let is_body = |name: &str| BODIES.iter().any(|body| body.name == name);
            match line.split_whitespace().collect::<Vec<_>>()[..] {
                [] => {}
                [first, ..] if first.starts_with('#') => table.remarks.push(line.to_owned()),
                ["target", target] => table.target = Some(target.to_owned()),
                ["unreached", ref names @ ..] if names.iter().all(|name| is_body(name)) => {
                    table.unreached.extend(names.iter().map(|name| (*name).to_owned()));
                }
                ["header", name, value] => table.headers.push((name.to_owned(), value.to_owned())),
                ["step", step] => table.step = Some(step.to_owned()),
                ["good", "last"] => table.good_last = true,
                [name, status, ref words @ ..]
                    if is_body(name) && (words.len() == 1 || words.first() == Some(&"=")) =>
                {
                    let status = status.parse().map_err(|_| failure!("line {}: {line:?}", n + 1))?;
                    table.outcomes.insert(name.to_owned(), (status, words.join(" ")));
                }
                _ => return Err(failure!("line {}: {line:?}", n + 1)),
            }
        }
        Ok(table)
    }

    /// The codes that fault sequences have answered with.
    pub fn codes(&self) -> impl Iterator<Item = &str> {
        let answers = self.outcomes.values().map(|(_, response)| response.as_str());
        answers.filter(|response| !matches!(*response, "same" | "empty") && !response.starts_with("= "))
    }
}

/// Sends all bodies to a running case. The bus answers each once; the first step holds after it.
///
/// # Errors
/// No answer, or the first step does not hold any more.
pub fn outcomes(
    run: &mut Run<'_>,
    first: &Step,
    table: &Table,
    mediator: &str,
    writes: bool,
) -> Result<Table, Failure> {
    let request = first.request.as_ref().ok_or_else(|| failure!("the first step has no request"))?;
    let target = table.target.as_deref().or(request.path.as_deref()).unwrap_or("/");
    let mut outcomes = BTreeMap::new();
    let step = format!(" ms {} ", table.step.as_deref().unwrap_or(mediator));
    let mut unreached = Vec::new();
    for body in BODIES {
        let before = run.log().len();
        let mut headers: Vec<(String, String)> = request
            .headers
            .iter()
            .filter(|(name, _)| {
                let mut others = table.headers.iter().map(|(name, _)| name.as_str()).chain(["Content-Type"]);
                !others.any(|other| other.eq_ignore_ascii_case(name))
            })
            .map(|(name, value)| (name.clone(), crate::compare::plain(value)))
            .collect();
        headers.extend(table.headers.iter().cloned());
        if !body.content_type.is_empty() {
            headers.push(("Content-Type".to_owned(), body.content_type.to_owned()));
        }
        headers.extend(body.header.map(|(name, value)| (name.to_owned(), value.to_owned())));
        // Its trace is known by it.
        headers.push((MARK.to_owned(), body.name.to_owned()));
        let bytes = (body.bytes)();
        let response = run
            .exchange(body.method, target, headers, bytes.clone(), None, DEADLINE)
            .map_err(|e| failure!("{}: {e}", body.name))?;
        outcomes.insert(body.name.to_owned(), (response.status().unwrap_or(0), described(&response, &bytes)));
        let expected = !writes && !table.unreached.iter().any(|name| name == body.name);
        let reached = reaches(run, before, body.name, &step, if expected { REACHED } else { WRITTEN });
        if !reached {
            unreached.push(body.name.to_owned());
        }
        if !table.good_last {
            run.step(first, 1).map_err(|e| failure!("after {}: {e}", body.name))?;
        }
    }
    run.step(first, 1).map_err(|e| failure!("at the end: {e}"))?;
    Ok(Table { outcomes, unreached, ..table.clone() })
}

/// Whether the trace of this body has the step outside of fault sequences, which have mediators of their own.
fn has(log: &str, body: &str, step: &str) -> bool {
    let mark = format!("transport:{MARK} = {body}");
    // A trace that begins in the middle of a flow does not say what the message came with.
    let says = log.lines().any(|line| line.trim() == mark);
    let (mut is_it, mut fails) = (!says, false);
    log.lines().any(|line| {
        if line.starts_with("message ") {
            (is_it, fails) = (!says, false);
        } else if line.trim() == mark {
            is_it = true;
        } else if let Some(list) = line.strip_prefix("  in ") {
            fails = list.ends_with("fault sequence") || list == "sequence fault";
        }
        is_it && !fails && line.contains(step)
    })
}

/// Whether the log from `before` on has the trace of this body with the step.
fn reaches(run: &Run<'_>, before: usize, body: &str, step: &str, longest: Duration) -> bool {
    let begin = Instant::now();
    loop {
        if run.log().get(before..).is_some_and(|log| has(&String::from_utf8_lossy(log), body, step)) {
            return true;
        }
        if begin.elapsed() > longest {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The answer as the table has it.
fn described(response: &Message, sent: &[u8]) -> String {
    let code = || {
        let value: serde_json::Value = serde_json::from_slice(&response.body).ok()?;
        let code = value.get("code")?;
        value.get("message")?;
        Some(code.as_str().map_or_else(|| code.to_string(), str::to_owned))
    };
    match code() {
        Some(code) => short(&code, 40).to_owned(),
        None if response.body.is_empty() => "empty".to_owned(),
        None if response.body == sent => "same".to_owned(),
        None => {
            let text = response.text().split_whitespace().collect::<Vec<_>>().join(" ");
            format!("= {}", short(&text, 60).trim())
        }
    }
}

/// The lines of a table, to be read by somebody before they are committed.
pub fn write(table: &Table) -> String {
    let mut out: String = table.remarks.iter().flat_map(|line| [line, "\n"]).collect();
    if let Some(target) = &table.target {
        let _ = writeln!(out, "target {target}");
    }
    if table.good_last {
        out.push_str("good last\n");
    }
    for (name, value) in &table.headers {
        let _ = writeln!(out, "header {name} {value}");
    }
    if let Some(step) = &table.step {
        let _ = writeln!(out, "step {step}");
    }
    if !table.unreached.is_empty() {
        let _ = writeln!(out, "unreached {}", table.unreached.join(" "));
    }
    for body in BODIES {
        if let Some((status, response)) = table.outcomes.get(body.name) {
            let _ = writeln!(out, "{:<15} {status} {response}", body.name);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_and_written() {
        let text = "# why\ntarget /a\ngood last\nheader A b\nstep x\nunreached text bytes\nabsent          200 same\nempty-xml       500 601000\ntext            200 = <a b=\"#\"/> x\n";
        let table = Table::parse(text).unwrap();
        assert_eq!(table.outcomes["empty-xml"], (500, "601000".to_owned()));
        assert_eq!(table.codes().collect::<Vec<_>>(), ["601000"]);
        assert_eq!(write(&table), text);
        for wrong in ["absent", "absent x same", "nothing 200 same", "absent 200 same more", "absent 200"] {
            assert!(Table::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn bodies_are_what_they_say() {
        for body in BODIES {
            let bytes = (body.bytes)();
            assert!(bytes.len() < 5_000_000 && !body.meaning.is_empty(), "{}", body.name);
        }
        assert!(serde_json::from_slice::<serde_json::Value>(&objects(1000)).is_ok());
    }
}
