//! HTTP/1.1 on a socket, both sides, strict: whatever is not exactly framed is an error.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The most that is accepted of one head, and of one body.
const MAX_HEAD: usize = 256 * 1024;
const MAX_BODY: usize = 256 * 1024 * 1024;

/// Why there is no message.
#[derive(Debug)]
pub enum WireError {
    /// The other side does not follow the protocol.
    Malformed(String),
    /// The connection ended inside the message.
    Truncated,
    /// The deadline passed.
    Timeout,
    /// Anything else of the socket.
    Io(std::io::Error),
}

impl std::fmt::Display for WireError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            WireError::Malformed(why) => write!(f, "malformed message: {why}"),
            WireError::Truncated => f.write_str("the connection ended inside the message"),
            WireError::Timeout => f.write_str("no answer in time"),
            WireError::Io(e) => write!(f, "connection failed: {e}"),
        }
    }
}

impl From<std::io::Error> for WireError {
    fn from(e: std::io::Error) -> Self {
        match e.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => WireError::Timeout,
            _ => WireError::Io(e),
        }
    }
}

fn malformed<T>(why: impl Into<String>) -> Result<T, WireError> {
    Err(WireError::Malformed(why.into()))
}

/// Header fields in their order; names are compared without case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers(pub Vec<(String, String)>);

impl Headers {
    /// All values of that name.
    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let name = name.to_owned();
        self.0.iter().filter(move |(n, _)| n.eq_ignore_ascii_case(&name)).map(|(_, v)| v.as_str())
    }

    /// The values of that name joined with `, `; `None`: there is none.
    pub fn get(&self, name: &str) -> Option<String> {
        let values: Vec<&str> = self.all(name).collect();
        if values.is_empty() { None } else { Some(values.join(", ")) }
    }

    /// Whether there is a field of that name.
    pub fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }
}

/// A request or an answer as it came in.
#[derive(Debug, Clone)]
pub struct Message {
    /// The request line or the status line.
    pub start: String,
    /// The header fields.
    pub headers: Headers,
    /// The entity body as transferred, without the chunks.
    pub raw: Vec<u8>,
    /// The entity body without its content encoding.
    pub body: Vec<u8>,
    /// From the first byte sent to the last byte received; zero for requests.
    pub elapsed: Duration,
}

impl Message {
    fn new(start: String, headers: Headers, raw: Vec<u8>) -> Message {
        let body = decode(&headers, &raw).unwrap_or_else(|| raw.clone());
        Message { start, headers, raw, body, elapsed: Duration::ZERO }
    }

    fn word(&self, n: usize) -> &str {
        self.start.split(' ').nth(n).unwrap_or("")
    }

    /// The status, if this is an answer.
    pub fn status(&self) -> Option<u16> {
        if self.start.starts_with("HTTP/") { self.word(1).parse().ok() } else { None }
    }

    /// The method of a request.
    pub fn method(&self) -> &str {
        self.word(0)
    }

    /// The target of a request as it was sent.
    pub fn target(&self) -> &str {
        self.word(1)
    }

    /// The media type in lower case, without parameters; empty if there is none.
    pub fn media_type(&self) -> String {
        let value = self.headers.get("Content-Type").unwrap_or_default();
        value.split(';').next().unwrap_or("").trim().to_ascii_lowercase()
    }

    /// The body as text, by the charset of the content type; UTF-8 without one.
    pub fn text(&self) -> String {
        let value = self.headers.get("Content-Type").unwrap_or_default();
        let charset = value.split(';').skip(1).find_map(|p| {
            let (name, value) = p.split_once('=')?;
            name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"').to_owned())
        });
        let encoding = charset.and_then(|c| encoding_rs::Encoding::for_label(c.as_bytes()));
        let (text, _, wrong) = encoding.unwrap_or(encoding_rs::UTF_8).decode(&self.body);
        if wrong { String::from_utf8_lossy(&self.body).into_owned() } else { text.into_owned() }
    }
}

/// The body without gzip or deflate; `None`: it has none or is broken.
fn decode(headers: &Headers, raw: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    match headers.get("Content-Encoding")?.to_ascii_lowercase().as_str() {
        "gzip" => flate2::read::MultiGzDecoder::new(raw).read_to_end(&mut out).ok()?,
        "deflate" => flate2::read::ZlibDecoder::new(raw).read_to_end(&mut out).ok()?,
        _ => return None,
    };
    Some(out)
}

/// One side of a connection, with what was received and not yet read.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    at: usize,
    deadline: Option<Instant>,
}

impl Connection {
    /// Around an open socket. Reads and writes fail with [`WireError::Timeout`] after `deadline`.
    pub fn new(stream: TcpStream, deadline: Option<Instant>) -> Connection {
        // Without it small answers may wait for an acknowledgement.
        let _ = stream.set_nodelay(true);
        Connection { stream, buffer: Vec::new(), at: 0, deadline }
    }

    /// Sends all of it.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        self.stream.set_write_timeout(self.left()?)?;
        Ok(self.stream.write_all(bytes)?)
    }

    /// Whether bytes are here that no message has claimed.
    pub fn has_surplus(&self) -> bool {
        self.at < self.buffer.len()
    }

    /// The next request; `None`: the connection ended between messages.
    pub fn read_request(&mut self) -> Result<Option<Message>, WireError> {
        let Some((start, headers)) = self.read_head()? else { return Ok(None) };
        let words: Vec<&str> = start.split(' ').collect();
        if words.len() != 3 || words.iter().any(|w| w.is_empty()) || !words[2].starts_with("HTTP/1.") {
            return malformed(format!("request line {start:?}"));
        }
        if words[2] == "HTTP/1.1" && headers.all("Host").count() != 1 {
            return malformed(format!("{} Host headers", headers.all("Host").count()));
        }
        if headers.get("Expect").is_some_and(|v| v.eq_ignore_ascii_case("100-continue")) {
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let raw = match length(&headers)? {
            Length::Chunked => self.read_chunks()?,
            Length::Bytes(n) => self.read_exactly(n)?,
            Length::Unknown => Vec::new(),
        };
        Ok(Some(Message::new(start, headers, raw)))
    }

    /// The final answer to a request with that method; interim answers are passed over.
    pub fn read_response(&mut self, method: &str) -> Result<Option<Message>, WireError> {
        loop {
            let Some((start, headers)) = self.read_head()? else { return Ok(None) };
            let mut words = start.splitn(3, ' ');
            let version = words.next().unwrap_or("");
            let code = words.next().unwrap_or("");
            let status = code.parse::<u16>().ok().filter(|s| (100..=599).contains(s) && code.len() == 3);
            let (true, Some(status)) = (matches!(version, "HTTP/1.0" | "HTTP/1.1"), status) else {
                return malformed(format!("status line {start:?}"));
            };
            if (100..200).contains(&status) && status != 101 {
                continue;
            }
            let framing = length(&headers)?;
            let raw = if method == "HEAD" || matches!(status, 101 | 204 | 304) {
                Vec::new()
            } else {
                match framing {
                    Length::Chunked => self.read_chunks()?,
                    Length::Bytes(n) => self.read_exactly(n)?,
                    Length::Unknown => self.read_to_end()?,
                }
            };
            return Ok(Some(Message::new(start, headers, raw)));
        }
    }

    fn left(&self) -> Result<Option<Duration>, WireError> {
        match self.deadline {
            None => Ok(None),
            Some(deadline) => match deadline.checked_duration_since(Instant::now()) {
                Some(left) if !left.is_zero() => Ok(Some(left)),
                _ => Err(WireError::Timeout),
            },
        }
    }

    /// Receives more; `false`: the other side has ended.
    fn fill(&mut self) -> Result<bool, WireError> {
        if self.at > 0 {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
        self.stream.set_read_timeout(self.left()?)?;
        let mut chunk = [0; 64 * 1024];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(n) => {
                    self.buffer.extend_from_slice(&chunk[..n]);
                    return Ok(n > 0);
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// A line without its CR LF; `None`: the connection ended before its first byte.
    fn read_line(&mut self) -> Result<Option<String>, WireError> {
        loop {
            let rest = &self.buffer[self.at..];
            if let Some(end) = rest.iter().position(|&b| b == b'\n') {
                let Some(line) = rest[..end].strip_suffix(b"\r") else {
                    return malformed("a line without CR");
                };
                if line.iter().any(|&b| b == 0 || b == b'\r') {
                    return malformed("control bytes in a line");
                }
                let line = line.iter().map(|&b| char::from(b)).collect();
                self.at += end + 1;
                return Ok(Some(line));
            }
            let (had, limit) = (rest.len(), MAX_HEAD);
            if had > limit {
                return malformed("a line without end");
            }
            if !self.fill()? {
                return if had == 0 { Ok(None) } else { Err(WireError::Truncated) };
            }
        }
    }

    fn read_head(&mut self) -> Result<Option<(String, Headers)>, WireError> {
        let Some(start) = self.read_line()? else { return Ok(None) };
        let mut headers = Headers::default();
        let mut size = start.len();
        loop {
            let line = self.read_line()?.ok_or(WireError::Truncated)?;
            if line.is_empty() {
                return Ok(Some((start, headers)));
            }
            size += line.len();
            if size > MAX_HEAD {
                return malformed("a head without end");
            }
            let Some((name, value)) = line.split_once(':') else {
                return malformed(format!("header line {line:?}"));
            };
            let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
            if name.is_empty() || !name.bytes().all(token) {
                return malformed(format!("header name {name:?}"));
            }
            headers.0.push((name.to_owned(), value.trim_matches([' ', '\t']).to_owned()));
        }
    }

    fn read_exactly(&mut self, n: usize) -> Result<Vec<u8>, WireError> {
        let mut out = Vec::with_capacity(n.min(1 << 20));
        while out.len() < n {
            if self.at == self.buffer.len() && !self.fill()? {
                return Err(WireError::Truncated);
            }
            let take = (n - out.len()).min(self.buffer.len() - self.at);
            out.extend_from_slice(&self.buffer[self.at..self.at + take]);
            self.at += take;
        }
        Ok(out)
    }

    fn read_to_end(&mut self) -> Result<Vec<u8>, WireError> {
        let mut out = self.buffer.split_off(self.at);
        while out.len() <= MAX_BODY && self.fill()? {
            out.append(&mut self.buffer);
        }
        Ok(out)
    }

    fn read_chunks(&mut self) -> Result<Vec<u8>, WireError> {
        let mut out = Vec::new();
        loop {
            let line = self.read_line()?.ok_or(WireError::Truncated)?;
            let digits = line.split(';').next().unwrap_or("");
            let size = match usize::from_str_radix(digits, 16) {
                Ok(n) if digits.bytes().all(|b| b.is_ascii_hexdigit()) && n + out.len() <= MAX_BODY => n,
                _ => return malformed(format!("chunk size {line:?}")),
            };
            if size == 0 {
                while !self.read_line()?.ok_or(WireError::Truncated)?.is_empty() {}
                return Ok(out);
            }
            out.extend(self.read_exactly(size)?);
            if self.read_exactly(2)? != b"\r\n" {
                return malformed("a chunk longer than its size");
            }
        }
    }
}

enum Length {
    Chunked,
    Bytes(usize),
    Unknown,
}

/// The one way in which the body is framed (RFC 9112, section 6.3); two ways are an error.
fn length(headers: &Headers) -> Result<Length, WireError> {
    let mut lengths = headers.all("Content-Length");
    let mut codings = headers.all("Transfer-Encoding");
    match (codings.next(), lengths.next()) {
        (Some(_), Some(_)) => malformed("both Transfer-Encoding and Content-Length"),
        (Some(coding), None) if coding.eq_ignore_ascii_case("chunked") && codings.next().is_none() => {
            Ok(Length::Chunked)
        }
        (Some(coding), None) => malformed(format!("Transfer-Encoding {coding:?}")),
        (None, Some(n)) => match n.parse::<usize>() {
            Ok(bytes)
                if bytes <= MAX_BODY && n.bytes().all(|b| b.is_ascii_digit()) && lengths.next().is_none() =>
            {
                Ok(Length::Bytes(bytes))
            }
            _ => malformed(format!("Content-Length {n:?}")),
        },
        (None, None) => Ok(Length::Unknown),
    }
}

/// The bytes of a head. Characters beyond Latin-1 have no place in it and become `?`.
pub fn head(start: &str, headers: &[(String, String)]) -> Vec<u8> {
    let mut text = format!("{start}\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text.chars().map(|c| u8::try_from(c).unwrap_or(b'?')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// What a reader makes of these bytes when the connection ends behind them.
    fn read(bytes: &[u8], request: bool) -> Result<Option<Message>, WireError> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(bytes).unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let (server, _) = listener.accept().unwrap();
        let mut connection = Connection::new(server, Some(Instant::now() + Duration::from_secs(5)));
        if request { connection.read_request() } else { connection.read_response("POST") }
    }

    #[test]
    fn reads_what_is_framed() {
        #[rustfmt::skip]
        let cases: &[(&str, bool, &str)] = &[
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", true, ""),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", true, "abc"),
            ("POST / HTTP/1.1\r\nHost: a\r\ntransfer-encoding: Chunked\r\n\r\n3;x=y\r\nabc\r\n1\r\nd\r\n0\r\nT: 1\r\n\r\n", true, "abcd"),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false, "ok"),
            ("HTTP/1.1 200 \r\n\r\nuntil the end", false, "until the end"),
            ("HTTP/1.1 204 No Content\r\n\r\n", false, ""),
        ];
        for (bytes, request, body) in cases {
            let message =
                read(bytes.as_bytes(), *request).unwrap_or_else(|e| panic!("{bytes:?}: {e}")).unwrap();
            assert_eq!(message.text(), *body, "{bytes:?}");
        }
        assert!(read(b"", true).unwrap().is_none());
    }

    #[test]
    fn refuses_what_is_not() {
        #[rustfmt::skip]
        let cases: &[(&str, bool, &str)] = &[
            ("GET / HTTP/1.1\r\n\r\n", true, "0 Host"),
            ("GET / HTTP/1.1\nHost: a\n\n", true, "without CR"),
            ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", true, "request line"),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nabc", true, "ended inside"),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +4\r\n\r\nabcd", true, "Content-Length"),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na", true, "Content-Length"),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\na", true, "both"),
            ("POST / HTTP/1.1\r\nHost: a\r\nX : 1\r\n\r\n", true, "header name"),
            ("POST / HTTP/1.1\r\nHost: a\r\n X: 1\r\n\r\n", true, "header name"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n", false, "longer"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x2\r\nab\r\n0\r\n\r\n", false, "chunk size"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", false, "ended inside"),
            ("HTTP/2 200\r\n\r\n", false, "status line"),
        ];
        for (bytes, request, why) in cases {
            let error = read(bytes.as_bytes(), *request).expect_err(bytes).to_string();
            assert!(error.contains(why), "{bytes:?}: {error}");
        }
    }

    #[test]
    fn text_follows_encodings() {
        let headers = |list: &[(&str, &str)]| {
            Headers(list.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect())
        };
        let latin = Message::new(
            "HTTP/1.1 200 OK".into(),
            headers(&[("content-type", "text/plain; Charset=\"ISO-8859-1\"")]),
            vec![0xe9],
        );
        assert_eq!((latin.text().as_str(), latin.media_type().as_str()), ("é", "text/plain"));
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(b"packed").unwrap();
        let packed = Message::new(
            "HTTP/1.1 200 OK".into(),
            headers(&[("Content-Encoding", "gzip")]),
            gz.finish().unwrap(),
        );
        assert_eq!(packed.text(), "packed");
        assert_ne!(packed.raw, packed.body);
    }
}
