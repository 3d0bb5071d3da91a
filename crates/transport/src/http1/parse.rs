//! Heads from the wire, parsed in place and in one pass, checked so that there is one way to read them.
//!
//! Refused is what is not HTTP, whatever could be read in two ways (bare line feeds, folded fields, white space before a
//! colon), and whatever makes the end of the message or its addressee ambiguous (RFC 9112, 2.2, 3.2, 5, 6.3 and 11.2).
//! What is accepted, and as what, is compared with httparse in the tests.

use std::borrow::Cow;

use message::{
    Headers, Method, RequestHead, ResponseHead, StandardHeader, Version, WireField, is_token_byte,
    reason_phrase,
};

use super::Length;
use super::lanes::Lanes;

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
    let mut headers = Headers::new();
    let (size, method, target, version, seen) = match read_request(wire, limits, &mut headers) {
        Ok(read) => read,
        Err(Stop::Partial) => return partial_request(wire, limits).map(|()| None),
        Err(Stop::Refused(refusal)) => return Err(refusal),
    };

    let length = match (seen.coding, seen.length) {
        (Coding::None, None) => Length::None,
        (Coding::None, Some(n)) => Length::Exact(n),
        (_, Some(_)) => return Err(refuse(400, "both Content-Length and Transfer-Encoding")),
        (_, None) if version == Version::Http10 => return Err(refuse(400, "Transfer-Encoding in HTTP/1.0")),
        (Coding::Chunked, None) => Length::Chunked,
        (Coding::Identity | Coding::Other, None) => return Err(refuse(400, "unknown transfer coding")),
    };
    let host = match seen.host {
        Some(host) if !is_authority(host, true) => return Err(refuse(400, "invalid Host")),
        None if version == Version::Http11 => return Err(refuse(400, "missing Host")),
        host => host,
    };
    if seen.expects == Expects::Other {
        return Err(refuse(417, "unknown expectation"));
    }
    if method == Method::Connect {
        return Err(refuse(501, "CONNECT is not spoken here"));
    }
    let (target, named) = origin_form(&method, target).map_err(|why| refuse(400, why))?;
    if let Some((_, authority)) = named
        && host != Some(authority.as_bytes())
    {
        headers.set("Host", authority); // RFC 9112, 3.2.2: the target wins
    }
    let absolute = named.map(|(scheme, _)| scheme);
    let facts = RequestFacts {
        length,
        keep_alive: seen.keep_alive(version),
        expects_continue: seen.expects == Expects::Continue && version == Version::Http11,
    };
    Ok(Some((size, RequestHead { method, target, absolute, version, headers }, facts)))
}

type Read<'a> = (usize, Method, &'a str, Version, Facts<'a>);

fn read_request<'a>(wire: &'a [u8], limits: HeadLimits, headers: &mut Headers) -> Result<Read<'a>, Stop> {
    let line = empty_lines(wire)?;
    let method_end = match &wire[line..] {
        [b'P', b'O', b'S', b'T', b' ', ..] => line + 4,
        other => line + token(other),
    };
    match wire.get(method_end) {
        Some(b' ') if method_end > line => {}
        None => return Err(Stop::Partial),
        _ => return Err(bad("invalid request line")),
    }
    let target_at = method_end + 1;
    let target_end = target_at + visible(&wire[target_at..]);
    match wire.get(target_end) {
        Some(b' ') if target_end > target_at => {}
        None => return Err(Stop::Partial),
        _ => return Err(bad("invalid request line")),
    }
    let version =
        version(&wire[target_end + 1..])?.ok_or_else(|| Stop::Refused(bad_version(&wire[line..])))?;
    let size = match &wire[target_end + 9..] {
        [b'\r', b'\n', ..] => target_end + 11,
        [] | [b'\r'] => return Err(Stop::Partial),
        [b'\n', ..] => return Err(bad(BARE)),
        _ => return Err(Stop::Refused(bad_version(&wire[line..]))),
    };
    let mut seen = Facts::default();
    let size = read_fields(wire, size, limits.fields, headers, &mut seen)?;
    if size > limits.size {
        return Err(Stop::Refused(refuse(431, "the request head is too large")));
    }
    if target_end - target_at > limits.target {
        return Err(Stop::Refused(refuse(414, "the request target is too long")));
    }
    let text = |part: &'a [u8]| utf8(part).ok_or(bad("invalid request line"));
    let method = match &wire[line..method_end] {
        b"POST" => Method::Post,
        b"GET" => Method::Get,
        other => Method::new(text(other)?),
    };
    let target = text(&wire[target_at..target_end])?;
    headers.take_wire(&wire[..size]);
    Ok((size, method, target, version, seen))
}

/// Parses the response head at the start of `wire`; `to_head` if it answers a HEAD request.
pub(crate) fn response(
    wire: &[u8],
    limits: HeadLimits,
    to_head: bool,
) -> Result<Option<(usize, ResponseHead, ResponseFacts)>, &'static str> {
    match read_response(wire, limits, to_head) {
        Ok(read) => Ok(Some(read)),
        Err(Stop::Partial) if wire.len() > limits.size => Err("the response head is too large"),
        Err(Stop::Partial) => Ok(None),
        Err(Stop::Refused(refusal)) => Err(refusal.why),
    }
}

fn read_response(
    wire: &[u8],
    limits: HeadLimits,
    to_head: bool,
) -> Result<(usize, ResponseHead, ResponseFacts), Stop> {
    let line = empty_lines(wire)?;
    let version = version(&wire[line..])?.ok_or(bad("not HTTP/1.x"))?;
    let status = match &wire[line + 8..] {
        [b' ', a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', ..] => {
            let digit = |d: &u8| u16::from(d - b'0');
            100 * digit(a) + 10 * digit(b) + digit(c)
        }
        short
            if short.len() < 4
                && short.iter().skip(1).all(u8::is_ascii_digit)
                && short.first().is_none_or(|b| *b == b' ') =>
        {
            return Err(Stop::Partial);
        }
        [b' ', b'0', ..] => return Err(bad("invalid status code")),
        _ => return Err(bad("invalid status line")),
    };
    let reason_at = line + 12;
    let reason_end = reason_at + text(&wire[reason_at..]);
    let size = match &wire[reason_end..] {
        [b'\r', b'\n', ..] => reason_end + 2,
        [] | [b'\r'] => return Err(Stop::Partial),
        [b'\n', ..] => return Err(bad(BARE)),
        _ => return Err(bad("invalid status line")),
    };
    let reason = match &wire[reason_at..reason_end] {
        [] => "",
        // Bytes that are not ASCII have no meaning (RFC 9112, 4: clients ignore the phrase).
        b" OK" => "OK",
        [b' ', reason @ ..] if reason.is_ascii() => utf8(reason).unwrap_or_default(),
        [b' ', ..] => "",
        _ => return Err(bad("invalid status line")),
    };
    let mut seen = Facts::default();
    let mut headers = Headers::new();
    let size = read_fields(wire, size, limits.fields, &mut headers, &mut seen)?;
    if size > limits.size {
        return Err(bad("the response head is too large"));
    }
    let length = match (seen.coding, seen.length) {
        (Coding::Other, _) => return Err(bad("unknown transfer coding")),
        (Coding::Chunked, Some(_)) => return Err(bad("both Content-Length and Transfer-Encoding")),
        (Coding::Chunked, None) if version == Version::Http10 => {
            return Err(bad("Transfer-Encoding in HTTP/1.0"));
        }
        _ if to_head || status < 200 || status == 204 || status == 304 => Length::None,
        (Coding::Chunked, None) => Length::Chunked,
        (Coding::None | Coding::Identity, Some(n)) => Length::Exact(n),
        (Coding::None | Coding::Identity, None) => Length::UntilClose,
    };
    let reason = match reason {
        usual if usual == reason_phrase(status) => Cow::Borrowed(reason_phrase(status)),
        phrase => Cow::Owned(phrase.to_owned()),
    };
    headers.take_wire(&wire[..size]);
    let keep_alive = seen.keep_alive(version) && length != Length::UntilClose;
    Ok((size, ResponseHead { status, reason, version, headers }, ResponseFacts { length, keep_alive }))
}

/// Why a head was not read.
enum Stop {
    /// It is incomplete.
    Partial,
    Refused(Refusal),
}

fn bad(why: &'static str) -> Stop {
    Stop::Refused(refuse(400, why))
}

const BARE: &str = "line not ended by CR LF";

/// Where the first line begins: empty ones before it are left over from an earlier message (RFC 9112, 2.2).
fn empty_lines(wire: &[u8]) -> Result<usize, Stop> {
    let mut at = 0;
    loop {
        match &wire[at..] {
            [b'\r', b'\n', ..] => at += 2,
            [] | [b'\r'] => return Err(Stop::Partial),
            [b'\r' | b'\n', ..] => return Err(bad(BARE)),
            _ => return Ok(at),
        }
    }
}

/// Number of bytes up to one that cannot stand in a token.
#[inline]
fn token(text: &[u8]) -> usize {
    text.iter().position(|&b| !is_token_byte(b)).unwrap_or(text.len())
}

/// Number of bytes up to white space or a control byte.
pub(crate) fn visible(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(lanes) = Lanes::at(text, at) {
        let found = lanes.below(b' ' + 1) | lanes.equal(0x7F);
        if found != 0 {
            return at + found.trailing_zeros() as usize;
        }
        at += Lanes::COUNT;
    }
    while text.get(at).is_some_and(|&b| b > b' ' && b != 0x7F) {
        at += 1;
    }
    at
}

/// Number of bytes up to a control byte other than a tab.
#[inline]
fn text(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(lanes) = Lanes::at(text, at) {
        let found = lanes.below(b' ') | lanes.equal(0x7F);
        if found == 0 {
            at += Lanes::COUNT;
            continue;
        }
        at += found.trailing_zeros() as usize;
        if text.get(at) != Some(&b'\t') {
            return at;
        }
        at += 1;
    }
    while text.get(at).is_some_and(|&b| (b >= b' ' && b != 0x7F) || b == b'\t') {
        at += 1;
    }
    at
}

/// As text, if it is UTF-8. Most is ASCII, which is seen sixteen bytes at a time, where the general check of short texts goes
/// byte by byte.
#[inline]
fn utf8(bytes: &[u8]) -> Option<&str> {
    if bytes.is_ascii() {
        // SAFETY: ASCII is UTF-8.
        #[allow(unsafe_code)]
        return Some(unsafe { std::str::from_utf8_unchecked(bytes) });
    }
    std::str::from_utf8(bytes).ok()
}

/// Number of bytes of a field name and what it is, if a colon follows it; `None`: it is none, or goes on.
#[inline]
fn field_name(text: &[u8]) -> Option<(usize, StandardHeader)> {
    let mut at = 0;
    while let Some(lanes) = Lanes::at(text, at) {
        let found = lanes.equal(b':');
        if found == 0 {
            at += Lanes::COUNT;
            continue;
        }
        at += found.trailing_zeros() as usize;
        let name = &text[..at];
        let header = StandardHeader::of(name);
        // A known name consists of what names consist of.
        let valid = header != StandardHeader::Other || (at > 0 && name.iter().all(|&b| is_token_byte(b)));
        return valid.then_some((at, header));
    }
    None
}

/// The version at the start of `wire`; `None`: none that is spoken here.
fn version(wire: &[u8]) -> Result<Option<Version>, Stop> {
    match wire.first_chunk::<8>() {
        Some(b"HTTP/1.1") => Ok(Some(Version::Http11)),
        Some(b"HTTP/1.0") => Ok(Some(Version::Http10)),
        None if b"HTTP/1.".starts_with(&wire[..wire.len().min(7)]) => Err(Stop::Partial),
        _ => Ok(None),
    }
}

/// Reads the fields from `at` on and the empty line behind them; the size of the head.
fn read_fields<'a>(
    wire: &'a [u8],
    mut at: usize,
    most: usize,
    headers: &mut Headers,
    seen: &mut Facts<'a>,
) -> Result<usize, Stop> {
    let mut left = most.min(MOST_FIELDS);
    loop {
        let line = wire.get(at..).unwrap_or_default();
        match line {
            [b'\r', b'\n', ..] => return Ok(at + 2),
            [] | [b'\r'] => return Err(Stop::Partial),
            [b'\r' | b'\n', ..] => return Err(bad(BARE)),
            _ => {}
        }
        left = left.checked_sub(1).ok_or_else(|| Stop::Refused(refuse(431, "too many header fields")))?;
        let (name_len, header) = match field_name(line) {
            Some(found) => found,
            // Something is wrong, or hardly anything is there: byte by byte.
            None => {
                let name_len = token(line);
                match line.get(name_len) {
                    Some(b':') if name_len > 0 => (name_len, StandardHeader::of(&line[..name_len])),
                    None => return Err(Stop::Partial),
                    _ => return Err(bad("invalid header name")),
                }
            }
        };
        let behind = line.get(name_len + 1..).unwrap_or_default();
        // Nearly always one space, then the value.
        let mut rest = behind;
        while let [b' ' | b'\t', more @ ..] = rest {
            rest = more;
        }
        let (mut value, end) = rest.split_at(text(rest));
        match end {
            [b'\r', b'\n', ..] => {}
            [] | [b'\r'] => return Err(Stop::Partial),
            [b'\n', ..] => return Err(bad(BARE)),
            _ => return Err(bad("invalid header value")),
        }
        let padded = value.len();
        while let [less @ .., b' ' | b'\t'] = value {
            value = less;
        }
        seen.see(header, value)?;
        let blanks = behind.len() - rest.len();
        headers.push_wire(WireField {
            at: at as u32,
            name_len: name_len as u32,
            value_at: (at + name_len + 1 + blanks) as u32,
            value_len: value.len() as u32,
            known: header,
            plain: blanks == 1 && behind.first() == Some(&b' ') && value.len() == padded,
        });
        at += name_len + 1 + blanks + padded + 2;
    }
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

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Coding {
    #[default]
    None,
    /// `identity`, which RFC 2616 had: in a response it is no coding.
    Identity,
    Chunked,
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Expects {
    #[default]
    Nothing,
    Continue,
    Other,
}

/// What the fields say that decide how the message is read.
#[derive(Default)]
struct Facts<'a> {
    host: Option<&'a [u8]>,
    length: Option<u64>,
    coding: Coding,
    expects: Expects,
    close: bool,
    keep: bool,
}

impl<'a> Facts<'a> {
    #[inline]
    fn see(&mut self, name: StandardHeader, value: &'a [u8]) -> Result<(), Stop> {
        match name {
            StandardHeader::Host => once(&mut self.host, value, "more than one Host"),
            StandardHeader::ContentLength => {
                let length = decimal(value).ok_or_else(|| bad("invalid Content-Length"))?;
                once(&mut self.length, length, "more than one Content-Length")
            }
            StandardHeader::Connection => {
                self.connection(value);
                Ok(())
            }
            StandardHeader::TransferEncoding => {
                self.coding = match self.coding {
                    Coding::None if value.eq_ignore_ascii_case(b"chunked") => Coding::Chunked,
                    Coding::None if value.eq_ignore_ascii_case(b"identity") => Coding::Identity,
                    _ => Coding::Other,
                };
                Ok(())
            }
            StandardHeader::Expect => {
                self.expects = match value.eq_ignore_ascii_case(b"100-continue") {
                    true => Expects::Continue,
                    false => Expects::Other,
                };
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn connection(&mut self, value: &[u8]) {
        if value.eq_ignore_ascii_case(b"keep-alive") {
            self.keep = true;
            return;
        }
        for token in value.split(|b| *b == b',').map(<[u8]>::trim_ascii) {
            self.close |= token.eq_ignore_ascii_case(b"close");
            self.keep |= token.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    fn keep_alive(&self, version: Version) -> bool {
        !self.close && (version == Version::Http11 || self.keep)
    }
}

fn once<T>(slot: &mut Option<T>, value: T, twice: &'static str) -> Result<(), Stop> {
    slot.replace(value).map_or(Ok(()), |_| Err(bad(twice)))
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let digit = |d: u8| d.is_ascii_digit().then(|| u64::from(d - b'0'));
    digits.iter().try_fold(0, |n, &d| Some(n * 10 + digit(d)?))
}

/// The origin form of a request target, and the scheme and authority an absolute form names.
fn origin_form<'a>(method: &Method, target: &'a str) -> Result<(String, Option<Named<'a>>), &'static str> {
    let target = without_fragment(target);
    if target.starts_with('/') || (target == "*" && *method == Method::Options) {
        return Ok((target.to_owned(), None));
    }
    let (scheme, rest) = match target.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => ("http", rest),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => ("https", rest),
        _ => return Err("invalid request target"),
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if !is_authority(authority.as_bytes(), false) {
        return Err("invalid request target");
    }
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Ok((path, Some((scheme, authority))))
}

/// Scheme and authority.
type Named<'a> = (&'static str, &'a str);

/// A target without a fragment: none has one (RFC 9112, 3.2), and the library of HTTP/2 leaves it out.
#[inline]
pub(crate) fn without_fragment(target: &str) -> &str {
    memchr::memchr(b'#', target.as_bytes()).map_or(target, |at| &target[..at])
}

/// `host[:port]` without user information (RFC 3986, 3.2).
pub(crate) fn is_authority(text: &[u8], may_be_empty: bool) -> bool {
    if text.is_empty() {
        return may_be_empty;
    }
    let (host_ok, port) = if text[0] == b'[' {
        let end = text.iter().rposition(|b| *b == b']').unwrap_or_default();
        let literal = text.get(1..end).unwrap_or_default();
        let address = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b':' | b'.' | b'%' | b'-' | b'_');
        (!literal.is_empty() && literal.iter().all(address), &text[end + 1..])
    } else {
        let end = text.iter().position(|b| !HOST[*b as usize]).unwrap_or(text.len());
        (end > 0, &text[end..])
    };
    let port_ok = match port {
        [] => true,
        [b':', digits @ ..] => digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    host_ok && port_ok
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
mod tests;
