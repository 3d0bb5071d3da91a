//! Multipart bodies (RFC 2046): parts between boundaries, read in place and written.
//!
//! A part is a slice of the body, nothing is copied. There is one way to read a body: the delimiters are lines, the
//! last one must be there, and what lies before the first and behind the last is ignored.

use crate::headers::Headers;
use crate::media::{MediaType, parameter};
use crate::payload::PayloadError;
use base64::Engine;
use bytes::Bytes;
use memchr::memmem;
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Most parts of one body.
pub const MAX_PARTS: usize = 1_000;
/// Most bytes of the head of one part.
pub const MAX_HEAD: usize = 16 << 10;
/// Most fields in the head of one part.
pub const MAX_FIELDS: usize = 64;
/// Longest boundary (RFC 2046, 5.1.1).
pub const MAX_BOUNDARY: usize = 70;

/// One part.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its header fields.
    pub headers: Headers,
    /// Its content as it came, in its transfer encoding.
    pub content: Bytes,
}

impl Part {
    /// A part with a content type.
    pub fn new(content_type: &str, content: impl Into<Bytes>) -> Part {
        let mut headers = Headers::new();
        headers.append("Content-Type", content_type);
        Part { headers, content: content.into() }
    }

    /// `Content-Type`; `text/plain` where there is none.
    pub fn content_type(&self) -> &str {
        self.headers.get("Content-Type").unwrap_or("text/plain")
    }

    /// `Content-ID` without its brackets.
    pub fn id(&self) -> Option<&str> {
        let id = self.headers.get("Content-ID")?.trim();
        Some(id.strip_prefix('<').and_then(|id| id.strip_suffix('>')).unwrap_or(id))
    }

    /// `name` of a form field.
    pub fn name(&self) -> Option<Cow<'_, str>> {
        self.disposition("name")
    }

    /// `filename` of a form field: what makes it a file.
    pub fn file_name(&self) -> Option<Cow<'_, str>> {
        self.disposition("filename")
    }

    fn disposition(&self, name: &str) -> Option<Cow<'_, str>> {
        let value = self.headers.get("Content-Disposition")?;
        let (_, parameters) = value.split_once(';')?;
        let found = parameter(parameters, name)?;
        // Only the quote is ever escaped: old browsers send paths with backslashes.
        Some(if found.contains("\\\"") { Cow::from(found.replace("\\\"", "\"")) } else { Cow::from(found) })
    }

    /// The content without its transfer encoding.
    ///
    /// # Errors
    /// It is not what `Content-Transfer-Encoding` says.
    pub fn decoded(&self) -> Result<Bytes, PayloadError> {
        let coding = self.headers.get("Content-Transfer-Encoding").unwrap_or("binary").trim();
        if coding.eq_ignore_ascii_case("base64") {
            let compact: Vec<u8> =
                self.content.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
            let decoded = base64::engine::general_purpose::STANDARD.decode(compact);
            decoded.map(Bytes::from).map_err(|error| malformed(format!("a part is not base64: {error}")))
        } else if coding.eq_ignore_ascii_case("quoted-printable") {
            Ok(Bytes::from(quoted_printable(&self.content)))
        } else {
            Ok(self.content.clone())
        }
    }
}

fn malformed(message: impl Into<String>) -> PayloadError {
    PayloadError::Malformed { message: message.into() }
}

/// The boundary that a content type names.
///
/// # Errors
/// There is none, or it is none that can be looked for.
pub fn boundary(content_type: &str) -> Result<&str, PayloadError> {
    let boundary = MediaType::parse(content_type).parameter("boundary").unwrap_or("");
    if boundary.is_empty() || boundary.len() > MAX_BOUNDARY || boundary.bytes().any(|b| b.is_ascii_control())
    {
        return Err(malformed(
            "the content type of the multipart body names no boundary of 1 to 70 characters",
        ));
    }
    Ok(boundary)
}

/// The parts of a body.
///
/// # Errors
/// A delimiter or the end is missing, a head is malformed, or there is more than the limits above allow.
pub fn parse(body: &Bytes, boundary: &str) -> Result<Vec<Part>, PayloadError> {
    let delimiter = format!("\n--{boundary}");
    let finder = memmem::Finder::new(&delimiter);
    let mut parts = Vec::new();
    let mut at = if is_delimiter(body, 0, &delimiter[1..]) {
        0
    } else {
        next(body, 0, &finder, &delimiter).ok_or_else(|| malformed("the multipart body has no part"))?.1
    };
    loop {
        // `at` is the first dash of a delimiter.
        let after = at + delimiter.len() - 1;
        if body[after..].starts_with(b"--") {
            return Ok(parts);
        }
        let line = memchr::memchr(b'\n', &body[after..])
            .ok_or_else(|| malformed("the multipart body ends within a delimiter"))?;
        let start = after + line + 1;
        // The line break before a delimiter belongs to the delimiter; the one that ends this delimiter may be it.
        let (end, following) = next(body, start - 1, &finder, &delimiter)
            .ok_or_else(|| malformed("the multipart body ends before its last delimiter"))?;
        if parts.len() == MAX_PARTS {
            let message = format!("the multipart body has more than {MAX_PARTS} parts");
            return Err(PayloadError::TooLarge { message });
        }
        parts.push(part(body, start, end.max(start))?);
        at = following;
    }
}

/// The next delimiter from `from`: where what it ends stops, and its first dash.
fn next(body: &[u8], from: usize, finder: &memmem::Finder<'_>, delimiter: &str) -> Option<(usize, usize)> {
    let mut from = from;
    loop {
        let found = from + finder.find(&body[from..])?;
        if is_delimiter(body, found + 1, &delimiter[1..]) {
            let end = if found > 0 && body[found - 1] == b'\r' { found - 1 } else { found };
            return Some((end, found + 1));
        }
        from = found + 1;
    }
}

/// Whether a delimiter line stands at `at`: a longer boundary may begin like this one.
fn is_delimiter(body: &[u8], at: usize, dashes: &str) -> bool {
    let Some(rest) = body[at..].strip_prefix(dashes.as_bytes()) else { return false };
    let rest = rest.strip_prefix(b"--").unwrap_or(rest);
    let padding = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    matches!(&rest[padding..], [] | [b'\n', ..] | [b'\r', b'\n', ..])
}

fn part(body: &Bytes, start: usize, end: usize) -> Result<Part, PayloadError> {
    let mut headers = Headers::new();
    let mut at = start;
    let mut last: Option<(String, Vec<u8>)> = None;
    loop {
        let rest = &body[at..end];
        let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let line = rest[..length].strip_suffix(b"\r").unwrap_or(&rest[..length]);
        at = (at + length + 1).min(end);
        if at - start > MAX_HEAD || headers.len() > MAX_FIELDS {
            let message = format!("the head of a part has more than {MAX_HEAD} bytes or {MAX_FIELDS} fields");
            return Err(PayloadError::TooLarge { message });
        }
        if let Some((name, mut value)) = last.take() {
            if line.first().is_some_and(|first| matches!(first, b' ' | b'\t')) {
                value.push(b' ');
                value.extend_from_slice(line.trim_ascii());
                last = Some((name, value));
                continue;
            }
            headers.append(&name, value);
        }
        if line.is_empty() {
            return Ok(Part { headers, content: body.slice(at..end) });
        }
        let colon = memchr::memchr(b':', line).filter(|&colon| colon > 0);
        let name = colon.and_then(|colon| std::str::from_utf8(&line[..colon]).ok());
        let (Some(colon), Some(name)) =
            (colon, name.filter(|name| name.bytes().all(|b| b.is_ascii_graphic())))
        else {
            return Err(malformed("the head of a part has a line that is not a header field"));
        };
        last = Some((name.to_owned(), line[colon + 1..].trim_ascii().to_vec()));
    }
}

/// Writes parts between boundaries.
pub fn write(parts: &[Part], boundary: &str) -> Vec<u8> {
    let size = parts.iter().map(|part| part.content.len() + part.headers.size_hint() + 100).sum();
    let mut out = Vec::with_capacity(size);
    for part in parts {
        out.extend_from_slice(b"--");
        out.extend_from_slice(boundary.as_bytes());
        out.extend_from_slice(b"\r\n");
        for (name, value) in part.headers.iter() {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b": ");
            out.extend(value.iter().map(|&byte| if matches!(byte, b'\r' | b'\n' | 0) { b' ' } else { byte }));
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&part.content);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"--");
    out.extend_from_slice(boundary.as_bytes());
    out.extend_from_slice(b"--\r\n");
    out
}

/// A boundary that none of the parts contains.
pub fn new_boundary(parts: &[Part]) -> String {
    loop {
        let boundary = format!("MIMEBoundary_{}", unique());
        let finder = memmem::Finder::new(&boundary);
        if parts.iter().all(|part| finder.find(&part.content).is_none()) {
            return boundary;
        }
    }
}

/// A word that no other message has.
pub fn unique() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    format!("{now:016x}{:08x}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// A text for the inside of a quoted parameter, as browsers write it.
pub fn quoted(text: &str) -> String {
    text.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

fn quoted_printable(content: &[u8]) -> Vec<u8> {
    let hex = |byte: Option<&u8>| byte.and_then(|&byte| (byte as char).to_digit(16));
    let mut out = Vec::with_capacity(content.len());
    let mut rest = content;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'=' {
            out.push(byte);
        } else if let Some(tail) = tail.strip_prefix(b"\r\n").or_else(|| tail.strip_prefix(b"\n")) {
            rest = tail;
        } else if let (Some(high), Some(low)) = (hex(tail.first()), hex(tail.get(1))) {
            out.push((high << 4 | low) as u8);
            rest = &tail[2..];
        } else {
            out.push(byte);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(body: &str, boundary: &str) -> Result<Vec<String>, PayloadError> {
        let parts = parse(&Bytes::copy_from_slice(body.as_bytes()), boundary)?;
        Ok(parts.iter().map(|part| String::from_utf8_lossy(&part.content).into_owned()).collect())
    }

    #[test]
    fn parts_lie_between_delimiter_lines() {
        for (body, parts) in [
            ("--b\r\n\r\none\r\n--b\r\n\r\ntwo\r\n--b--\r\n", &["one", "two"][..]),
            ("--b\n\none\n--b--", &["one"]),
            ("preamble --b\r\n--b  \r\nA: 1\r\n\r\nx\r\n--b--\r\nepilogue\r\n--b\r\n\r\nno\r\n", &["x"]),
            ("--b\r\n\r\n--bc\r\n--b-\r\n\r\n--b--", &["--bc\r\n--b-\r\n"]),
            ("--b\r\n\r\n\r\n--b--", &[""]),
            ("--b\r\n\r\n--b--", &[""]),
            ("--b\r\nA: 1\r\n--b--", &[""]),
            ("--b--", &[]),
        ] {
            assert_eq!(contents(body, "b").unwrap(), parts, "{body:?}");
        }
    }

    #[test]
    fn a_body_that_is_not_whole_is_an_error() {
        for body in
            ["", "x", "--b", "--bc\r\n\r\nx\r\n--bc--", "--b\r\n\r\nx", "--b\r\nno field\r\n\r\nx\r\n--b--"]
        {
            assert!(matches!(contents(body, "b"), Err(PayloadError::Malformed { .. })), "{body:?}");
        }
        let many = format!("{}--b--", "--b\r\n\r\n\r\n".repeat(MAX_PARTS + 1));
        let head = format!("--b\r\nA: {}\r\n\r\n\r\n--b--", "x".repeat(MAX_HEAD));
        let fields = format!("--b\r\n{}\r\n\r\n--b--", "A: 1\r\n".repeat(MAX_FIELDS + 2));
        for body in [many, head, fields] {
            assert!(matches!(contents(&body, "b"), Err(PayloadError::TooLarge { .. })));
        }
        for (content_type, ok) in [
            ("multipart/form-data; boundary=b", true),
            ("multipart/form-data; x=\"a;boundary=no\"; boundary=\"b c\"", true),
            ("multipart/form-data", false),
            ("multipart/form-data; boundary=\"\"", false),
        ] {
            assert_eq!(boundary(content_type).is_ok(), ok, "{content_type}");
        }
        assert!(boundary(&format!("multipart/mixed; boundary={}", "x".repeat(71))).is_err());
    }

    #[test]
    fn heads_and_transfer_encodings_are_read() {
        let body = "--b\r\nContent-Disposition: form-data; name=\"a\\\"b;c\";\r\n filename=\"x=1.txt\"\r\n\
            Content-Type: text/plain\r\ncontent-id: <i@x>\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
            a=3D=C3=BC=\r\n!=\r\n--b\r\nContent-Transfer-Encoding: base64\r\n\r\naGVs\r\nbG8=\r\n--b--";
        let parts = parse(&Bytes::from_static(body.as_bytes()), "b").unwrap();
        assert_eq!(parts[0].name().as_deref(), Some("a\"b;c"));
        assert_eq!(parts[0].file_name().as_deref(), Some("x=1.txt"));
        assert_eq!((parts[0].id(), parts[0].content_type()), (Some("i@x"), "text/plain"));
        assert_eq!(parts[0].decoded().unwrap(), "a=ü!=".as_bytes());
        assert_eq!(&parts[1].decoded().unwrap()[..], b"hello");
        assert_eq!((parts[1].id(), parts[1].name()), (None, None));
        let mut bad = parts[1].clone();
        bad.content = Bytes::from_static(b"***");
        assert!(bad.decoded().is_err());
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut file = Part::new("application/octet-stream", &b"\x00\r\n--MIMEBoundary_\r\n"[..]);
        file.headers.append("X", "a\r\nb");
        let parts = [Part::new("text/plain", &b""[..]), file];
        let boundary = new_boundary(&parts);
        let read = parse(&Bytes::from(write(&parts, &boundary)), &boundary).unwrap();
        assert_eq!(read.len(), 2);
        for (a, b) in parts.iter().zip(&read) {
            assert_eq!(a.content, b.content);
        }
        assert_eq!(read[1].headers.get("X"), Some("a  b"));
        assert_eq!(quoted("a\"\r\nb"), "a%22%0D%0Ab");
    }
}
