//! Heads from the wire, parsed in place and checked so that there is one way to read them.
//!
//! httparse finds the parts; this file refuses what it lets pass (bare line feeds) and whatever makes the
//! end of the message or its addressee ambiguous (RFC 9112, 3.2, 5, 6.3 and 11.2).

use std::borrow::Cow;
use std::mem::MaybeUninit;

use httparse::{Error, Header, ParserConfig, Status};
use message::{Headers, Method, RequestHead, ResponseHead, Version, reason_phrase};

use super::Length;

/// The number of fields that fit; the settings can only be lower.
pub(crate) const MOST_FIELDS: usize = 256;

/// A request the transport answers itself, and then closes the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) why: &'static str,
}

const fn refuse(status: u16, why: &'static str) -> Refusal {
    Refusal { status, why }
}

/// What a request head says about the message and the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RequestFacts {
    pub(crate) length: Length,
    pub(crate) keep_alive: bool,
    pub(crate) expects_continue: bool,
}

/// What a response head says about the message and the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ResponseFacts {
    pub(crate) length: Length,
    pub(crate) keep_alive: bool,
}

/// Limits of a head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadLimits {
    pub(crate) size: usize,
    pub(crate) fields: usize,
    pub(crate) target: usize,
}

/// Parses the request head at the start of `wire`. `None`: not complete yet. Otherwise also its size.
pub(crate) fn request(
    wire: &[u8],
    limits: HeadLimits,
) -> Result<Option<(usize, RequestHead, RequestFacts)>, Refusal> {
    let mut storage = [const { MaybeUninit::<Header<'_>>::uninit() }; MOST_FIELDS];
    let fields = limits.fields.min(MOST_FIELDS);
    let mut parsed = httparse::Request::new(&mut []);
    let size = match ParserConfig::default().parse_request_with_uninit_headers(
        &mut parsed,
        wire,
        &mut storage[..fields],
    ) {
        Ok(Status::Complete(size)) => size,
        Ok(Status::Partial) => return partial_request(wire, limits).map(|()| None),
        Err(Error::TooManyHeaders) => return Err(refuse(431, "too many header fields")),
        Err(Error::Version) => return Err(bad_version(wire)),
        Err(error) => return Err(refuse(400, describe(error))),
    };
    if size > limits.size {
        return Err(refuse(431, "the request head is too large"));
    }
    let (Some(method), Some(target), Some(version)) = (parsed.method, parsed.path, parsed.version) else {
        return Err(refuse(400, "incomplete request line"));
    };
    if target.len() > limits.target {
        return Err(refuse(414, "the request target is too long"));
    }
    line_ends(&wire[..size], parsed.headers).map_err(|why| refuse(400, why))?;

    let seen = Fields::read(parsed.headers).map_err(|why| refuse(400, why))?;
    let version = if version == 0 { Version::Http10 } else { Version::Http11 };
    let length = match (seen.coding, seen.length) {
        (Coding::None, None) => Length::None,
        (Coding::None, Some(n)) => Length::Exact(n),
        (_, Some(_)) => return Err(refuse(400, "both Content-Length and Transfer-Encoding")),
        (_, None) if version == Version::Http10 => return Err(refuse(400, "Transfer-Encoding in HTTP/1.0")),
        (Coding::Chunked, None) => Length::Chunked,
        (Coding::Other, None) => return Err(refuse(400, "unknown transfer coding")),
    };
    let host = match seen.host {
        Some(host) if !is_authority(host, true) => return Err(refuse(400, "invalid Host")),
        None if version == Version::Http11 => return Err(refuse(400, "missing Host")),
        host => host,
    };
    if seen.expects == Expects::Other {
        return Err(refuse(417, "unknown expectation"));
    }
    let method = Method::new(method);
    let (target, authority) = origin_form(&method, target).map_err(|why| refuse(400, why))?;

    let mut headers = Headers::new();
    headers.load(&wire[..size], parsed.headers.iter().map(|h| (h.name, h.value)));
    if let Some(authority) = authority
        && host != Some(authority.as_bytes())
    {
        headers.set("Host", authority); // RFC 9112, 3.2.2: the target wins
    }
    let facts = RequestFacts {
        length,
        keep_alive: seen.keep_alive(version),
        expects_continue: seen.expects == Expects::Continue && version == Version::Http11,
    };
    Ok(Some((size, RequestHead { method, target, version, headers }, facts)))
}

/// Parses the response head at the start of `wire`; `to_head` if it answers a HEAD request.
pub(crate) fn response(
    wire: &[u8],
    limits: HeadLimits,
    to_head: bool,
) -> Result<Option<(usize, ResponseHead, ResponseFacts)>, &'static str> {
    let mut storage = [const { MaybeUninit::<Header<'_>>::uninit() }; MOST_FIELDS];
    let fields = limits.fields.min(MOST_FIELDS);
    let mut parsed = httparse::Response::new(&mut []);
    let size = match ParserConfig::default().parse_response_with_uninit_headers(
        &mut parsed,
        wire,
        &mut storage[..fields],
    ) {
        Ok(Status::Complete(size)) => size,
        Ok(Status::Partial) if wire.len() > limits.size => return Err("the response head is too large"),
        Ok(Status::Partial) => return Ok(None),
        Err(Error::Version) => return Err("not HTTP/1.x"),
        Err(Error::TooManyHeaders) => return Err("too many header fields"),
        Err(error) => return Err(describe(error)),
    };
    if size > limits.size {
        return Err("the response head is too large");
    }
    let (Some(status), Some(version)) = (parsed.code, parsed.version) else {
        return Err("incomplete status line");
    };
    if status < 100 {
        return Err("invalid status code");
    }
    line_ends(&wire[..size], parsed.headers)?;
    let seen = Fields::read(parsed.headers)?;
    let version = if version == 0 { Version::Http10 } else { Version::Http11 };
    let length = match (seen.coding, seen.length) {
        (Coding::Other, _) => return Err("unknown transfer coding"),
        (Coding::Chunked, Some(_)) => return Err("both Content-Length and Transfer-Encoding"),
        (Coding::Chunked, None) if version == Version::Http10 => return Err("Transfer-Encoding in HTTP/1.0"),
        _ if to_head || status < 200 || status == 204 || status == 304 => Length::None,
        (Coding::Chunked, None) => Length::Chunked,
        (Coding::None, Some(n)) => Length::Exact(n),
        (Coding::None, None) => Length::UntilClose,
    };
    let reason = match parsed.reason.unwrap_or_default() {
        usual if usual == reason_phrase(status) => Cow::Borrowed(reason_phrase(status)),
        own => Cow::Owned(own.to_owned()),
    };
    let mut headers = Headers::new();
    headers.load(&wire[..size], parsed.headers.iter().map(|h| (h.name, h.value)));
    let keep_alive = seen.keep_alive(version) && length != Length::UntilClose;
    Ok(Some((size, ResponseHead { status, reason, version, headers }, ResponseFacts { length, keep_alive })))
}

/// Whether a head that was incomplete with `before` bytes could be complete now: so that a head which comes
/// byte by byte is not parsed at every byte.
pub(crate) fn may_be_complete(wire: &[u8], before: usize) -> bool {
    let recent = &wire[before.saturating_sub(3).min(wire.len())..];
    memchr::memchr_iter(b'\n', recent).any(|i| matches!(recent[i + 1..], [b'\n', ..] | [b'\r', b'\n', ..]))
}

fn partial_request(wire: &[u8], limits: HeadLimits) -> Result<(), Refusal> {
    let line = wire.iter().position(|b| !matches!(b, b'\r' | b'\n')).map_or(&[][..], |at| &wire[at..]);
    if line.len() > limits.target + 64 && memchr::memchr(b'\n', &line[..limits.target + 64]).is_none() {
        return Err(refuse(414, "the request target is too long"));
    }
    match wire.len() > limits.size {
        true => Err(refuse(431, "the request head is too large")),
        false => Ok(()),
    }
}

fn bad_version(wire: &[u8]) -> Refusal {
    let line = wire.split(|b| *b == b'\n').find(|l| l.len() > 1).unwrap_or_default();
    match line.rsplit(|b| *b == b' ').next() {
        Some([b'H', b'T', b'T', b'P', b'/', digit, ..]) if digit.is_ascii_digit() => {
            refuse(505, "only HTTP/1.0 and HTTP/1.1 are spoken here")
        }
        _ => refuse(400, "malformed request line"),
    }
}

fn describe(error: Error) -> &'static str {
    match error {
        Error::HeaderName => "invalid header name",
        Error::HeaderValue => "invalid header value",
        Error::NewLine => "invalid line end",
        Error::Status => "invalid status line",
        Error::Token => "invalid request line",
        _ => "malformed head",
    }
}

/// Every line ends in CR LF and a field begins right behind the one before: no bare line feed, no folding.
fn line_ends(head: &[u8], fields: &[Header<'_>]) -> Result<(), &'static str> {
    const BARE: &str = "line not ended by CR LF";
    let base = head.as_ptr() as usize;
    // Where the next line must begin; before the first field only the line end itself can be checked.
    let mut next = None;
    for field in fields {
        let name_at = (field.name.as_ptr() as usize).wrapping_sub(base);
        if name_at < 2 || name_at > head.len() || next.is_some_and(|n| n != name_at) {
            return Err(BARE);
        }
        if next.is_none() && head[name_at - 2..name_at] != *b"\r\n" {
            return Err(BARE);
        }
        let mut at = name_at + field.name.len() + 1;
        if !field.value.is_empty() {
            at = (field.value.as_ptr() as usize).wrapping_sub(base).saturating_add(field.value.len());
        }
        while matches!(head.get(at), Some(b' ' | b'\t')) {
            at += 1;
        }
        if head.get(at..at + 2) != Some(b"\r\n") {
            return Err(BARE);
        }
        next = Some(at + 2);
    }
    let ends = match next {
        Some(at) => head.get(at..) == Some(b"\r\n"),
        None => head.ends_with(b"\r\n\r\n"),
    };
    if ends { Ok(()) } else { Err(BARE) }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Coding {
    None,
    Chunked,
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Expects {
    Nothing,
    Continue,
    Other,
}

/// The fields that decide how the message is read.
struct Fields<'a> {
    host: Option<&'a [u8]>,
    length: Option<u64>,
    coding: Coding,
    expects: Expects,
    close: bool,
    keep: bool,
}

impl<'a> Fields<'a> {
    fn read(fields: &[Header<'a>]) -> Result<Fields<'a>, &'static str> {
        let mut seen = Fields {
            host: None,
            length: None,
            coding: Coding::None,
            expects: Expects::Nothing,
            close: false,
            keep: false,
        };
        for field in fields {
            let is = |name: &str| field.name.eq_ignore_ascii_case(name);
            match field.name.len() {
                4 if is("host") => once(&mut seen.host, field.value, "more than one Host")?,
                6 if is("expect") => {
                    seen.expects = match field.value.eq_ignore_ascii_case(b"100-continue") {
                        true => Expects::Continue,
                        false => Expects::Other,
                    }
                }
                10 if is("connection") => {
                    if field.value.eq_ignore_ascii_case(b"keep-alive") {
                        seen.keep = true;
                        continue;
                    }
                    for token in field.value.split(|b| *b == b',').map(<[u8]>::trim_ascii) {
                        seen.close |= token.eq_ignore_ascii_case(b"close");
                        seen.keep |= token.eq_ignore_ascii_case(b"keep-alive");
                    }
                }
                14 if is("content-length") => {
                    let length = decimal(field.value).ok_or("invalid Content-Length")?;
                    once(&mut seen.length, length, "more than one Content-Length")?;
                }
                17 if is("transfer-encoding") => {
                    seen.coding = match seen.coding {
                        Coding::None if field.value.eq_ignore_ascii_case(b"chunked") => Coding::Chunked,
                        _ => Coding::Other,
                    }
                }
                _ => {}
            }
        }
        Ok(seen)
    }

    fn keep_alive(&self, version: Version) -> bool {
        !self.close && (version == Version::Http11 || self.keep)
    }
}

fn once<T>(slot: &mut Option<T>, value: T, twice: &'static str) -> Result<(), &'static str> {
    slot.replace(value).map_or(Ok(()), |_| Err(twice))
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0, |n, d| n * 10 + u64::from(d - b'0')))
}

/// The origin form of a request target and the authority an absolute form names.
fn origin_form<'a>(method: &Method, target: &'a str) -> Result<(String, Option<&'a str>), &'static str> {
    if *method == Method::Connect {
        return match is_authority(target.as_bytes(), false) {
            true => Ok((target.to_owned(), None)),
            false => Err("CONNECT needs host:port"),
        };
    }
    if target.starts_with('/') || (target == "*" && *method == Method::Options) {
        return Ok((target.to_owned(), None));
    }
    let rest = match target.split_once("://") {
        Some((scheme, rest))
            if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https") =>
        {
            rest
        }
        _ => return Err("invalid request target"),
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if !is_authority(authority.as_bytes(), false) {
        return Err("invalid request target");
    }
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Ok((path, Some(authority)))
}

/// `host[:port]` without user information (RFC 3986, 3.2).
fn is_authority(text: &[u8], may_be_empty: bool) -> bool {
    if text.is_empty() {
        return may_be_empty;
    }
    let (host, port) = match text.iter().rposition(|b| *b == b']') {
        Some(end) if text[0] == b'[' => {
            let literal = &text[1..end];
            if literal.is_empty()
                || !literal
                    .iter()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b':' | b'.' | b'%' | b'-' | b'_'))
            {
                return false;
            }
            (&b"literal"[..], &text[end + 1..])
        }
        _ => text.split_at(text.iter().position(|b| *b == b':').unwrap_or(text.len())),
    };
    let port_ok = match port {
        [] => true,
        [b':', digits @ ..] => digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    port_ok && !host.is_empty() && host.iter().all(|b| HOST[*b as usize])
}

/// What a registered name consists of.
const HOST: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0;
    while b < 128 {
        table[b] = (b as u8).is_ascii_alphanumeric();
        b += 1;
    }
    let marks = b"-._~!$&'()*+,;=%";
    let mut i = 0;
    while i < marks.len() {
        table[marks[i] as usize] = true;
        i += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: HeadLimits = HeadLimits { size: 1000, fields: 10, target: 100 };

    fn status(wire: &str) -> u16 {
        match request(wire.as_bytes(), LIMITS) {
            Ok(Some(_)) => 200,
            Ok(None) => 100,
            Err(refusal) => refusal.status,
        }
    }

    #[test]
    fn requests_are_read_one_way_or_refused() {
        let long = "a".repeat(2000);
        let many: String = (0..11).map(|i| format!("X{i}: 1\r\n")).collect();
        let cases: &[(&str, u16)] = &[
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 200),
            ("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 200),
            ("GET / HTTP/1.0\r\n\r\n", 200),
            ("GET / HTTP/1.1\r\nHost:\r\n\r\n", 200),
            ("GET / HTTP/1.1\r\nHost: a \t\r\nX:\r\nY: \r\n\r\n", 200),
            ("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", 200),
            ("BREW /pot HTTP/1.1\r\nHost: a\r\n\r\n", 200),
            ("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 200),
            ("GET http://b/x HTTP/1.1\r\nHost: a\r\n\r\n", 200),
            ("CONNECT b:443 HTTP/1.1\r\nHost: b\r\n\r\n", 200),
            ("GET / HTTP/1.1\r\nHost: a\r\n", 100),
            ("GET / HT", 100),
            ("", 100),
            // request line
            ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            ("GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400),
            ("GET /\r\nHost: a\r\n\r\n", 400),
            ("GET x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            ("GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            ("GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            ("GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            ("G@T / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            ("GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505),
            ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
            ("GET / HTTQ/1.1\r\nHost: a\r\n\r\n", 400),
            ("GET / http/1.1\r\nHost: a\r\n\r\n", 400),
            // line ends, folding, control bytes
            ("GET / HTTP/1.1\nHost: a\n\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\n\n", 400),
            ("GET / HTTP/1.1\nHost: a\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nX: b\0c\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nX: b\x07c\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n", 400),
            // Host
            ("GET / HTTP/1.1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a:x\r\n\r\n", 400),
            // lengths
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n", 200),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n", 200),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n", 400),
            (
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
                400,
            ),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0bchunked\r\n\r\n", 400),
            ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nExpect: magic\r\n\r\n", 417),
            // limits
            (&format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n"), 431),
            (&format!("GET /{long}"), 414),
            (&format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", &long[..200]), 414),
            (&format!("GET / HTTP/1.1\r\nHost: a\r\nX: {long}"), 431),
            (&format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n"), 431),
        ];
        for (wire, expected) in cases {
            assert_eq!(status(wire), *expected, "{wire:?}");
        }
    }

    #[test]
    fn request_facts() {
        let facts = |wire: &str| request(wire.as_bytes(), LIMITS).unwrap().unwrap();
        let (size, head, f) =
            facts("POST /a?b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nexpect: 100-Continue\r\n\r\nhello");
        assert_eq!((size, f.length, f.keep_alive, f.expects_continue), (72, Length::Exact(5), true, true));
        assert_eq!((head.method, &*head.target, head.headers.get("HOST")), (Method::Post, "/a?b", Some("a")));
        for (wire, keep) in [
            ("GET / HTTP/1.0\r\n\r\n", false),
            ("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true),
            ("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, close\r\n\r\n", false),
            ("GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n", true),
        ] {
            assert_eq!(facts(wire).2.keep_alive, keep, "{wire}");
        }
        let (_, head, _) = facts("GET HTTP://b:81?x HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!((&*head.target, head.headers.get("host")), ("/?x", Some("b:81")));
    }

    #[test]
    fn responses() {
        let read = |wire: &str, to_head| {
            response(wire.as_bytes(), LIMITS, to_head).map(|r| r.map(|(_, _, f)| (f.length, f.keep_alive)))
        };
        for (wire, to_head, expected) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", false, (Length::Exact(3), true)),
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", true, (Length::None, true)),
            ("HTTP/1.1 204\r\n\r\n", false, (Length::None, true)),
            ("HTTP/1.1 304 \r\nContent-Length: 3\r\n\r\n", false, (Length::None, true)),
            (
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nConnection: close\r\n\r\n",
                false,
                (Length::Chunked, false),
            ),
            ("HTTP/1.1 200 OK\r\n\r\n", false, (Length::UntilClose, false)),
            ("HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\n", false, (Length::Exact(3), false)),
            (
                "HTTP/1.0 200 OK\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\n",
                false,
                (Length::Exact(3), true),
            ),
        ] {
            assert_eq!(read(wire, to_head), Ok(Some(expected)), "{wire:?}");
        }
        for wire in [
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\nContent-Length: 3\n\n",
            "HTTP/2 200 OK\r\n\r\n",
            "HTTP/1.1 2x0 OK\r\n\r\n",
            "SSH-2.0-x\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX : 3\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX: 3\r\n folded\r\n\r\n",
        ] {
            assert!(read(wire, false).is_err(), "{wire:?}");
        }
        assert_eq!(read("HTTP/1.1 200 OK\r\nX", false), Ok(None));
    }

    #[test]
    fn a_head_in_any_pieces_is_noticed() {
        let wire = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        for cut in 0..wire.len() {
            assert!(may_be_complete(wire, cut), "{cut}");
        }
        assert!(!may_be_complete(&wire[..25], 20));
    }
}
