//! Heads onto the wire. One function decides which fields do not pass from one connection to the next.

use std::cell::RefCell;
use std::time::{SystemTime, UNIX_EPOCH};

use message::{Headers, Line, StandardHeader, is_token_byte};

/// How the body of a message being sent is delimited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Delimiter {
    /// No body, and nothing said about one.
    None,
    Length(u64),
    Chunked,
    Close,
}

/// What the message is, where that matters to its fields.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `Host` and `Expect` are written, or not, by the transport.
    Request,
    /// A response without a body may keep its Content-Length: to HEAD, and with 304.
    Response { keep_length: bool },
}

/// Writes all end-to-end fields.
///
/// Not sent on are the hop-by-hop fields (RFC 9110, 7.6.1): `Connection` and what it names, `Keep-Alive`,
/// `Proxy-Connection`, `TE` (but `TE: trailers`), `Trailer`, `Transfer-Encoding`, `Upgrade`; and
/// `Content-Length`, which is written anew. Of a request also `Proxy-Authorization`, which is for the bus at most (RFC 9110,
/// 11.7.2): a proxy gets the one that it was given in the configuration. Of a response also `Proxy-Authenticate`, which is for
/// the bus as well (11.7.1). Order, case and repetition stay.
pub(crate) fn fields(out: &mut Vec<u8>, headers: &Headers, kind: Kind) -> Result<(), &'static str> {
    let without = without(kind);
    let nominated = has_nominated(headers);
    if !nominated && !headers.has_any(StandardHeader::Te.bit()) {
        return headers.write(out, without, None);
    }
    let stays = |line: Line<'_>| stays(headers, nominated, line);
    headers.write(out, without, Some(&stays))
}

/// Whether a field is one that [`fields`] writes.
pub(crate) fn passes(headers: &Headers, kind: Kind) -> impl Fn(Line<'_>) -> bool {
    let (without, nominated) = (without(kind), has_nominated(headers));
    move |line| line.known.bit() & without == 0 && stays(headers, nominated, line)
}

/// What does not pass whatever a message says, as bits of [`StandardHeader`].
#[inline]
fn without(kind: Kind) -> u32 {
    const HOP: u32 = StandardHeader::Connection.bit()
        | StandardHeader::KeepAlive.bit()
        | StandardHeader::ProxyConnection.bit()
        | StandardHeader::Trailer.bit()
        | StandardHeader::TransferEncoding.bit()
        | StandardHeader::Upgrade.bit();
    HOP | match kind {
        Kind::Request => {
            StandardHeader::Host.bit()
                | StandardHeader::Expect.bit()
                | StandardHeader::ContentLength.bit()
                | StandardHeader::ProxyAuthorization.bit()
        }
        Kind::Response { keep_length: false } => {
            StandardHeader::ProxyAuthenticate.bit() | StandardHeader::ContentLength.bit()
        }
        Kind::Response { keep_length: true } => StandardHeader::ProxyAuthenticate.bit(),
    }
}

#[inline]
fn has_nominated(headers: &Headers) -> bool {
    headers.has_any(StandardHeader::Connection.bit()) && headers.get_all("connection").any(nominates)
}

#[inline]
fn stays(headers: &Headers, nominated: bool, line: Line<'_>) -> bool {
    (line.known != StandardHeader::Te || line.value.eq_ignore_ascii_case(b"trailers"))
        && !(nominated && is_nominated(headers, line.name))
}

/// Writes one field, refusing whatever could end its line.
pub(crate) fn field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
    if name.is_empty() || !name.iter().copied().all(is_token_byte) {
        return Err("invalid header name");
    }
    if memchr::memchr3(b'\r', b'\n', 0, value).is_some() {
        return Err("line break or NUL in a header value");
    }
    out.reserve(name.len() + value.len() + 4);
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// Writes the field that says how the body ends.
pub(crate) fn delimiter(out: &mut Vec<u8>, delimiter: Delimiter) {
    match delimiter {
        Delimiter::None | Delimiter::Close => {}
        Delimiter::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        Delimiter::Length(n) => {
            // From its end, so that the line is one copy.
            const NAME: &[u8; 16] = b"Content-Length: ";
            let mut line = [0; NAME.len() + 22];
            line[NAME.len() + 20..].copy_from_slice(b"\r\n");
            let at = digits(&mut line[..NAME.len() + 20], n) - NAME.len();
            line[at..at + NAME.len()].copy_from_slice(NAME);
            out.extend_from_slice(&line[at..]);
        }
    }
}

/// Whether a Connection field names anything besides the usual.
fn nominates(value: &[u8]) -> bool {
    let usual =
        |t: &[u8]| t.is_empty() || t.eq_ignore_ascii_case(b"close") || t.eq_ignore_ascii_case(b"keep-alive");
    !usual(value) && !value.split(|b| *b == b',').map(<[u8]>::trim_ascii).all(usual)
}

fn is_nominated(headers: &Headers, name: &[u8]) -> bool {
    headers
        .get_all("connection")
        .flat_map(|v| v.split(|b| *b == b','))
        .any(|token| token.trim_ascii().eq_ignore_ascii_case(name))
}

pub(crate) fn decimal(out: &mut Vec<u8>, n: u64) {
    let mut text = [0; 20];
    let at = digits(&mut text, n);
    out.extend_from_slice(&text[at..]);
}

/// Writes a number up to the end of `text`, which has room for it; where it begins.
fn digits(text: &mut [u8], mut n: u64) -> usize {
    let mut at = text.len();
    loop {
        at -= 1;
        text[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            return at;
        }
    }
}

pub(crate) fn hexadecimal(out: &mut Vec<u8>, n: usize) {
    let digits = (usize::BITS - n.leading_zeros()).div_ceil(4).max(1);
    out.extend((0..digits).rev().map(|i| b"0123456789abcdef"[(n >> (4 * i)) & 15]));
}

/// Writes `Date: …`; the text is made once per second and thread.
pub(crate) fn date(out: &mut Vec<u8>) {
    thread_local! {
        static LAST: RefCell<(u64, Vec<u8>)> = const { RefCell::new((u64::MAX, Vec::new())) };
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let _ = LAST.try_with(|last| {
        let mut last = last.borrow_mut();
        if last.0 != now {
            *last = (now, format!("Date: {}\r\n", http_date(now)).into_bytes());
        }
        out.extend_from_slice(&last.1);
    });
}

/// IMF-fixdate (RFC 9110, 5.6.7) of seconds since 1970.
fn http_date(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][(days % 7) as usize];
    // Civil date from days, counting years from 1 March 0000 so that leap days end a year.
    let z = days + 719_468;
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = ["Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Jan", "Feb"]
        [shifted.min(11) as usize];
    let year = year_of_era + era * 400 + u64::from(shifted >= 10);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{weekday}, {day:02} {month} {year} {hour:02}:{minute:02}:{second:02} GMT")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(headers: &[(&str, &str)], kind: Kind) -> String {
        let mut out = Vec::new();
        fields(&mut out, &headers.iter().copied().collect(), kind).unwrap();
        String::from_utf8(out).unwrap().replace("\r\n", ";")
    }

    #[test]
    fn hop_by_hop_fields_stay_behind() {
        let fields = [
            ("HOST", "h"),
            ("A", "1"),
            ("Connection", "close, X-Hop"),
            ("x-hop", "gone"),
            ("Keep-Alive", "5"),
            ("proxy-connection", "x"),
            ("TE", "gzip"),
            ("te", "trailers"),
            ("Trailer", "x"),
            ("Transfer-Encoding", "chunked"),
            ("Upgrade", "h2c"),
            ("Content-Length", "3"),
            ("Expect", "100-continue"),
            ("Proxy-Authenticate", "Basic"),
            ("proxy-authorization", "Basic x"),
            ("a", "2"),
        ];
        assert_eq!(sent(&fields, Kind::Request), "A: 1;te: trailers;Proxy-Authenticate: Basic;a: 2;");
        let response = Kind::Response { keep_length: false };
        assert_eq!(
            sent(&fields, response),
            "HOST: h;A: 1;te: trailers;Expect: 100-continue;proxy-authorization: Basic x;a: 2;"
        );
        assert_eq!(
            sent(&[("Content-Length", "3")], Kind::Response { keep_length: true }),
            "Content-Length: 3;"
        );
    }

    #[test]
    fn nothing_can_break_out_of_a_field() {
        for (name, value) in
            [("A B", "x"), ("", "x"), ("A:", "x"), ("A", "x\r\nB: y"), ("A", "x\ny"), ("A", "\0")]
        {
            assert!(field(&mut Vec::new(), name.as_bytes(), value.as_bytes()).is_err(), "{name:?} {value:?}");
        }
    }

    #[test]
    fn numbers_and_dates() {
        for n in [0, 7, 10, 1024, u64::MAX] {
            let mut out = Vec::new();
            decimal(&mut out, n);
            assert_eq!(out, n.to_string().into_bytes());
        }
        for n in [0, 1, 15, 16, 255, 16384, 0xABCDEF] {
            let mut out = Vec::new();
            hexadecimal(&mut out, n);
            assert_eq!(out, format!("{n:x}").into_bytes());
        }
        for (seconds, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_795_305_600, "Sun, 22 Nov 2026 00:00:00 GMT"),
        ] {
            assert_eq!(http_date(seconds), text);
        }
    }
}
