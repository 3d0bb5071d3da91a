//! What is sent: requests, whole or with values that no two of them share.

use crate::{Check, Url};
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

/// A request, and its right answer.
#[derive(Clone, Debug)]
pub struct Request {
    /// HTTP method.
    pub method: String,
    /// Path and query; `None`: those of the URL.
    pub target: Option<String>,
    /// Headers, without those about the host, the length and the connection.
    pub headers: Vec<(String, String)>,
    /// The entity; empty: none.
    pub body: Vec<u8>,
    /// Whether `{{id}}`, `{{uuid}}` and `{{timestamp}}` in header values and body stand for values of each single request.
    pub unique: bool,
    /// The right answer.
    pub check: Check,
}

/// What can stand for a value of the single request.
const UNIQUE: [(&str, Value); 3] =
    [("{{id}}", Value::Id), ("{{uuid}}", Value::Uuid), ("{{timestamp}}", Value::Timestamp)];

/// Fields that say how a message and its connection end: one that is wrong would measure something else.
const OURS: [&str; 3] = ["content-length", "transfer-encoding", "connection"];

/// Whether there is something in it that can stand for a value of the single request.
pub fn has_unique_values(bytes: &[u8]) -> bool {
    UNIQUE.iter().any(|(name, _)| bytes.windows(name.len()).any(|window| window == name.as_bytes()))
}

#[derive(Copy, Clone, Debug)]
enum Value {
    /// Counts from 1, over all connections.
    Id,
    /// A random UUID (version 4).
    Uuid,
    /// Now, as `2026-11-24T08:30:00.123Z`.
    Timestamp,
}

#[derive(Debug)]
enum Piece {
    Text(Range<usize>),
    Value(Value),
}

/// A text with values to fill in.
#[derive(Debug)]
struct Template {
    text: Vec<u8>,
    pieces: Vec<Piece>,
}

impl Template {
    fn new(text: Vec<u8>) -> Template {
        let (mut pieces, mut from, mut at) = (Vec::new(), 0, 0);
        while at < text.len() {
            match UNIQUE.iter().find(|(name, _)| text[at..].starts_with(name.as_bytes())) {
                Some((name, value)) => {
                    pieces.extend([Piece::Text(from..at), Piece::Value(*value)]);
                    at += name.len();
                    from = at;
                }
                None => at += 1,
            }
        }
        pieces.push(Piece::Text(from..at));
        Template { text, pieces }
    }

    fn fill(&self, out: &mut Vec<u8>, values: &Values) {
        for piece in &self.pieces {
            match piece {
                Piece::Text(range) => out.extend_from_slice(&self.text[range.clone()]),
                Piece::Value(value) => values.write(*value, out),
            }
        }
    }
}

/// The values of one request: the same wherever they stand in it.
struct Values {
    number: u64,
    uuid: [u64; 2],
    now: jiff::Timestamp,
}

impl Values {
    fn write(&self, value: Value, out: &mut Vec<u8>) {
        // Writing to memory does not fail.
        let _ = match value {
            Value::Id => write!(out, "{}", self.number),
            Value::Timestamp => write!(out, "{:.3}", self.now),
            Value::Uuid => {
                let [high, low] = self.uuid;
                let (high, low) = (high & !0xF000 | 0x4000, low & (u64::MAX >> 2) | 1 << 63);
                let (a, b, c) = (high >> 32, high >> 16 & 0xFFFF, high & 0xFFFF);
                write!(out, "{a:08x}-{b:04x}-{c:04x}-{:04x}-{:012x}", low >> 48, low & 0xFFFF_FFFF_FFFF)
            }
        };
    }
}

/// Pseudo-random numbers (splitmix64): cheap, and different in each run.
#[derive(Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn seeded() -> Random {
        let now = jiff::Timestamp::now().as_nanosecond();
        Random((now as u64) ^ (u64::from(std::process::id()) << 32))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

/// The bytes of a request, and where in them its body begins.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) body: usize,
}

/// A request that is ready to be sent.
#[derive(Debug)]
pub(crate) struct Prepared {
    form: Form,
    pub(crate) check: Check,
    pub(crate) is_head: bool,
    /// Its last body that a predicate found right.
    pub(crate) right: Option<Arc<[u8]>>,
}

#[derive(Debug)]
enum Form {
    Whole(Outgoing),
    /// Head without length, and body.
    Unique(Template, Template),
}

impl Prepared {
    pub(crate) fn new(request: &Request, url: &Url, keep_alive: bool) -> Result<Prepared, String> {
        let target = request.target.as_deref().unwrap_or(&url.target);
        let is_line = |text: &str| text.bytes().all(|b| b.is_ascii_graphic());
        if !is_line(&request.method) || !is_line(target) || request.method.is_empty() {
            return Err(format!("'{} {target}' is not a request line", request.method));
        }
        let mut head = format!("{} {target} HTTP/1.1\r\n", request.method);
        if !request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head.push_str(&format!("Host: {}\r\n", url.authority()));
        }
        for (name, value) in &request.headers {
            if name.is_empty() || !is_line(name) || name.contains(':') || value.contains(['\r', '\n', '\0']) {
                return Err(format!("'{name}: {value}' is not a header field"));
            }
            if OURS.iter().any(|field| name.eq_ignore_ascii_case(field)) {
                return Err(format!("'{name}' is written by the generator itself"));
            }
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !keep_alive {
            head.push_str("Connection: close\r\n");
        }
        let form = if request.unique {
            Form::Unique(Template::new(head.into()), Template::new(request.body.clone()))
        } else {
            Form::Whole(whole(head.into(), &request.body, &request.method))
        };
        let is_head = request.method == "HEAD";
        Ok(Prepared { form, check: request.check.clone(), is_head, right: None })
    }

    /// The bytes of the request of that number.
    pub(crate) fn outgoing(&self, number: u64, random: &mut Random) -> Outgoing {
        match &self.form {
            Form::Whole(outgoing) => outgoing.clone(),
            Form::Unique(head, body) => {
                let uuid = [random.next(), random.next()];
                let values = Values { number, uuid, now: jiff::Timestamp::now() };
                let (mut head_bytes, mut body_bytes) = (Vec::new(), Vec::new());
                head.fill(&mut head_bytes, &values);
                body.fill(&mut body_bytes, &values);
                whole(head_bytes, &body_bytes, "")
            }
        }
    }
}

/// Adds length and body to a head.
fn whole(mut head: Vec<u8>, body: &[u8], method: &str) -> Outgoing {
    if !body.is_empty() || method == "POST" || method == "PUT" {
        head.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    let at = head.len();
    head.extend_from_slice(body);
    Outgoing { bytes: head.into(), body: at }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(body: &str, unique: bool) -> Request {
        let headers = vec![("X-Id".to_owned(), "{{id}}".to_owned())];
        let (method, body) = ("POST".to_owned(), body.into());
        Request { method, target: None, headers, body, unique, check: Check::Echo }
    }

    fn text(request: &Request, keep_alive: bool, number: u64) -> String {
        let url = "http://h:9000/p".parse().unwrap();
        let outgoing = Prepared::new(request, &url, keep_alive).unwrap().outgoing(number, &mut Random(1));
        assert_eq!(&outgoing.bytes[outgoing.body - 4..outgoing.body], b"\r\n\r\n");
        String::from_utf8(outgoing.bytes.to_vec()).unwrap()
    }

    #[test]
    fn requests_as_they_are_sent() {
        let want = "POST /p HTTP/1.1\r\nHost: h:9000\r\nX-Id: {{id}}\r\nContent-Length: 8\r\n\r\na{{id}}b";
        assert_eq!(text(&request("a{{id}}b", false), true, 7), want);
        let want = "POST /p HTTP/1.1\r\nHost: h:9000\r\nX-Id: 17\r\nConnection: close\r\nContent-Length: 6\r\n\r\na17 17";
        assert_eq!(text(&request("a{{id}} {{id}}", true), false, 17), want);
        let get = Request { method: "GET".into(), headers: Vec::new(), ..request("", false) };
        assert_eq!(text(&get, true, 1), "GET /p HTTP/1.1\r\nHost: h:9000\r\n\r\n");
    }

    #[test]
    fn values_look_like_what_they_are() {
        let sent = text(&request("{{uuid}} {{timestamp}} {{other}}", true), true, 1);
        let body = sent.split("\r\n\r\n").nth(1).unwrap();
        let [uuid, timestamp, other] = body.split(' ').collect::<Vec<_>>()[..] else { panic!("{body}") };
        let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{uuid}");
        assert!(uuid[14..].starts_with('4') && "89ab".contains(&uuid[19..20]), "{uuid}");
        assert!(timestamp.parse::<jiff::Timestamp>().is_ok() && timestamp.len() == 24, "{timestamp}");
        assert_eq!(other, "{{other}}");
        assert!(has_unique_values(b"x{{id}}") && !has_unique_values(b"{{other}} {{i"));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let url = "http://h/".parse().unwrap();
        let refused = |request: Request| Prepared::new(&request, &url, true).is_err();
        let good = request("", false);
        assert!(refused(Request { method: "A B".into(), ..good.clone() }));
        assert!(refused(Request { target: Some("/a b".into()), ..good.clone() }));
        assert!(refused(Request { headers: vec![("a".into(), "b\r\nc: d".into())], ..good.clone() }));
        assert!(refused(Request { headers: vec![("a:".into(), "b".into())], ..good.clone() }));
        for name in ["Content-Length", "transfer-encoding", "Connection"] {
            assert!(refused(Request { headers: vec![(name.into(), "3".into())], ..good.clone() }), "{name}");
        }
        let virtual_host = Request { headers: vec![("host".into(), "other".into())], ..good };
        assert_eq!(
            text(&virtual_host, true, 1),
            "POST /p HTTP/1.1\r\nhost: other\r\nContent-Length: 0\r\n\r\n"
        );
    }
}
