//! Patterns of access log lines, in the notation of Apache httpd's `LogFormat`.

use crate::escape;
use crate::time;
use flow::access::{Access, RequestLine};
use message::redact;
use std::borrow::Cow;
use std::fmt::{self, Write};
use std::time::SystemTime;

/// `common`: the Common Log Format.
pub const COMMON: &str = r#"%h %l %u %t "%r" %>s %b"#;
/// `combined`: the Combined Log Format.
pub const COMBINED: &str = r#"%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i""#;

/// A compiled pattern.
///
/// | directive | meaning |
/// |---|---|
/// | `%h`, `%a` | address of the client |
/// | `%l`, `%u` | always `-` |
/// | `%t` | when the request came, `[22/Nov/2026:01:02:03 +0000]`, in UTC |
/// | `%r` | request line |
/// | `%m`, `%U`, `%q`, `%H` | its method, path, query with `?`, protocol |
/// | `%s`, `%>s` | status of the answer |
/// | `%b`, `%B` | bytes of the answer's body that were sent; nothing is `-`, `0` |
/// | `%D`, `%T` | time until the answer had left, in microseconds, in seconds; also `%{us}T`, `%{ms}T`, `%{s}T` |
/// | `%{name}i` | request header `Referer`, `User-Agent`, `Host` or `Content-Type`; all others are `-` |
/// | `%{name}o` | response headers: always `-` |
/// | `%v`, `%p`, `%A` | the `Host` header, port and address that the client connected to |
/// | `%{service}x` | the proxy service or API, or `main`; `-` if the bus answered itself |
/// | `%{scheme}x` | `http` or `https` |
/// | `%{message_id}x` | the id of the message; `-` if there was none |
/// | `%{end}x` | `whole`, `abandoned`, `stopped`, `cut`, `refused` |
/// | `%%` | a per cent sign |
#[derive(Clone, Debug)]
pub struct Pattern {
    pieces: Vec<Piece>,
    unavailable: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    Nothing,
    Client,
    Time,
    RequestLine,
    Method,
    Path,
    Query,
    Protocol,
    Status,
    Length { nothing: &'static str },
    Elapsed(Unit),
    Referer,
    Agent,
    Host,
    ContentType,
    Local,
    Port,
    Service,
    Scheme,
    MessageId,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Unit {
    Microseconds,
    Milliseconds,
    Seconds,
}

impl Pattern {
    /// Compiles `common`, `combined` or a pattern.
    ///
    /// # Errors
    /// A directive that does not exist, or has no end: a sentence that names it.
    pub fn parse(text: &str) -> Result<Pattern, String> {
        let mut rest = match text {
            "common" => COMMON,
            "combined" => COMBINED,
            other => other,
        };
        let mut pattern = Pattern { pieces: Vec::new(), unavailable: Vec::new() };
        while let Some(at) = rest.find('%') {
            pattern.text(&rest[..at]);
            let start = &rest[at..];
            rest = &rest[at + 1..];
            // `%>s` is the last status, `%<s` the first one: there is only one.
            rest = rest.strip_prefix(['>', '<']).unwrap_or(rest);
            let mut argument = "";
            if let Some(inside) = rest.strip_prefix('{') {
                let end =
                    inside.find('}').ok_or_else(|| format!("access log pattern: `{start}` has no `}}`"))?;
                argument = &inside[..end];
                rest = &inside[end + 1..];
            }
            let mut letters = rest.chars();
            let letter =
                letters.next().ok_or_else(|| format!("access log pattern: `{start}` has no letter"))?;
            rest = letters.as_str();
            let written = &start[..start.len() - rest.len()];
            pattern.directive(letter, argument, written)?;
        }
        pattern.text(rest);
        Ok(pattern)
    }

    /// The directives of the pattern that always print `-`.
    pub fn unavailable(&self) -> &[String] {
        &self.unavailable
    }

    /// Whether the pattern has the client's `Referer` or `User-Agent`.
    pub(crate) fn has_agent(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Referer | Piece::Agent))
    }

    /// Appends the line of a request that ends `now`.
    pub(crate) fn format(&self, access: &Access<'_>, now: SystemTime, out: &mut String) {
        for piece in &self.pieces {
            // A String takes everything.
            let _ = piece.write(access, now, out);
        }
    }

    fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if let Some(Piece::Text(before)) = self.pieces.last_mut() {
            before.push_str(text);
        } else {
            self.pieces.push(Piece::Text(text.to_owned()));
        }
    }

    fn directive(&mut self, letter: char, argument: &str, written: &str) -> Result<(), String> {
        self.pieces.push(match (letter, argument) {
            ('%', "") => {
                self.text("%");
                return Ok(());
            }
            ('h' | 'a', "") => Piece::Client,
            ('l' | 'u', "") => Piece::Nothing,
            ('t', "") => Piece::Time,
            ('r', "") => Piece::RequestLine,
            ('m', "") => Piece::Method,
            ('U', "") => Piece::Path,
            ('q', "") => Piece::Query,
            ('H', "") => Piece::Protocol,
            ('s', "") => Piece::Status,
            ('b', "") => Piece::Length { nothing: "-" },
            ('B', "") => Piece::Length { nothing: "0" },
            ('D', "") | ('T', "us") => Piece::Elapsed(Unit::Microseconds),
            ('T', "ms") => Piece::Elapsed(Unit::Milliseconds),
            ('T', "" | "s") => Piece::Elapsed(Unit::Seconds),
            ('v' | 'V', "") => Piece::Host,
            ('A', "") => Piece::Local,
            ('p', "") => Piece::Port,
            ('x', "service") => Piece::Service,
            ('x', "scheme") => Piece::Scheme,
            ('x', "message_id") => Piece::MessageId,
            ('x', "end") => Piece::End,
            ('i', name) if name.eq_ignore_ascii_case("Referer") => Piece::Referer,
            ('i', name) if name.eq_ignore_ascii_case("User-Agent") => Piece::Agent,
            ('i', name) if name.eq_ignore_ascii_case("Host") => Piece::Host,
            ('i', name) if name.eq_ignore_ascii_case("Content-Type") => Piece::ContentType,
            ('i' | 'o', name) if !name.is_empty() => {
                self.unavailable.push(written.to_owned());
                Piece::Nothing
            }
            _ => return Err(format!("access log pattern: there is no directive `{written}`")),
        });
        Ok(())
    }
}

impl Piece {
    fn write(&self, access: &Access<'_>, now: SystemTime, out: &mut String) -> fmt::Result {
        let words = |at: usize| match access.line {
            RequestLine::Whole(method, target, version) => Some([method, target, version.as_str()][at]),
            RequestLine::Received(line) => line.split(' ').nth(at),
        };
        let (path, query) = match words(1).map(|target| target.split_once('?').ok_or(target)) {
            Some(Ok((path, query))) => (Some(path), Some(query)),
            Some(Err(path)) => (Some(path), None),
            None => (None, None),
        };
        match self {
            Piece::Text(text) => out.push_str(text),
            Piece::Nothing => out.push('-'),
            Piece::Client => write!(out, "{}", access.client.ip().to_canonical())?,
            Piece::Time => time::common(now.checked_sub(access.took).unwrap_or(now), out)?,
            Piece::RequestLine => match access.line {
                RequestLine::Whole(method, target, version) => {
                    escape::ascii(method, out);
                    out.push(' ');
                    escape::ascii(&shown(target), out);
                    out.push(' ');
                    out.push_str(version.as_str());
                }
                RequestLine::Received(line) => or_nothing(Some(&shown(line)), out),
            },
            Piece::Method => or_nothing(words(0), out),
            Piece::Path => or_nothing(path, out),
            Piece::Query => {
                if let Some(query) = query {
                    out.push('?');
                    escape::ascii(&shown(query), out);
                }
            }
            Piece::Protocol => or_nothing(words(2), out),
            Piece::Status => write!(out, "{}", access.status)?,
            Piece::Length { nothing } => match access.bytes {
                0 => out.push_str(nothing),
                bytes => write!(out, "{bytes}")?,
            },
            Piece::Elapsed(unit) => {
                let elapsed = access.took;
                match unit {
                    Unit::Microseconds => write!(out, "{}", elapsed.as_micros())?,
                    Unit::Milliseconds => write!(out, "{}", elapsed.as_millis())?,
                    Unit::Seconds => write!(out, "{}", elapsed.as_secs())?,
                }
            }
            Piece::Referer => or_nothing(access.referer.map(shown).as_deref(), out),
            Piece::Agent => or_nothing(access.agent, out),
            Piece::Host => or_nothing(Some(access.host), out),
            Piece::ContentType => or_nothing(access.content_type, out),
            Piece::Local => write!(out, "{}", access.local.ip().to_canonical())?,
            Piece::Port => write!(out, "{}", access.local.port())?,
            Piece::Service => or_nothing(Some(access.service), out),
            Piece::Scheme => out.push_str(if access.secure { "https" } else { "http" }),
            Piece::MessageId => or_nothing(Some(access.message_id), out),
            Piece::End => out.push_str(access.end.as_str()),
        }
        Ok(())
    }
}

/// An address as it may be shown: what clients put into queries lets in whoever reads the log (`?access_token=…`).
fn shown(address: &str) -> Cow<'_, str> {
    if address.contains('=') { redact::addresses(address) } else { Cow::Borrowed(address) }
}

fn or_nothing(text: Option<&str>, out: &mut String) {
    match text {
        None | Some("") => out.push('-'),
        Some(text) => escape::ascii(text, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::access::Ended;
    use message::Version;
    use std::time::{Duration, UNIX_EPOCH};

    fn line(pattern: &str, change: impl FnOnce(&mut Access<'_>)) -> String {
        let mut access = Access {
            client: ([192, 0, 2, 1], 4711).into(),
            local: ([127, 0, 0, 1], 8243).into(),
            secure: true,
            line: RequestLine::Whole("POST", "/services/Stock/a?b=c", Version::Http11),
            host: "bus.example:8243",
            content_type: Some("text/xml"),
            agent: Some("curl/8 \"x\"\r\nInjected: 1"),
            referer: None,
            took: Duration::from_micros(900_000),
            status: 200,
            bytes: 1234,
            end: Ended::Whole,
            service: "Stock",
            message_id: "urn:uuid:1",
        };
        change(&mut access);
        let mut out = String::new();
        let now = UNIX_EPOCH + Duration::from_millis(1_795_309_323_900);
        Pattern::parse(pattern).expect("the pattern is right").format(&access, now, &mut out);
        out
    }

    #[test]
    fn lines_follow_the_pattern() {
        for (pattern, expected) in [
            (
                "common",
                r#"192.0.2.1 - - [22/Nov/2026:01:02:03 +0000] "POST /services/Stock/a?b=c HTTP/1.1" 200 1234"#,
            ),
            (
                "combined",
                r#"192.0.2.1 - - [22/Nov/2026:01:02:03 +0000] "POST /services/Stock/a?b=c HTTP/1.1" 200 1234 "-" "curl/8 \"x\"\r\nInjected: 1""#,
            ),
            ("%m %U %q %H %s %B", "POST /services/Stock/a ?b=c HTTP/1.1 200 1234"),
            ("%v %p %A %{service}x %{scheme}x", "bus.example:8243 8243 127.0.0.1 Stock https"),
            ("%T %{s}T %{ms}T %D", "0 0 900 900000"),
            ("%{message_id}x %{end}x", "urn:uuid:1 whole"),
            ("%{Content-Type}i %{host}i %{X-Forwarded-For}i %{Server}o", "text/xml bus.example:8243 - -"),
            ("100%% %l", "100% -"),
            ("", ""),
        ] {
            assert_eq!(line(pattern, |_| {}), expected, "{pattern}");
        }
    }

    #[test]
    fn requests_cannot_inject_anything() {
        let hostile = |access: &mut Access<'_>| {
            access.line = RequestLine::Whole("POST", "/a\"\u{1b}[2J\n\u{e9}\\", Version::Http11);
            access.host = "h\r\nx";
            access.bytes = 0;
        };
        assert_eq!(line("\"%r\" %v %b", hostile), r#""POST /a\"\x1b[2J\n\xc3\xa9\\ HTTP/1.1" h\r\nx -"#);
        assert_eq!(line("%b %B", |access| access.bytes = 0), "- 0");
    }

    #[test]
    fn secrets_in_addresses_are_hidden() {
        let secret = |access: &mut Access<'_>| {
            access.line = RequestLine::Whole("GET", "/a?x=1&access_token=abc&sig=d%2Be", Version::Http2);
            access.referer = Some("https://u:p@h/?api_key=f&y=2");
        };
        let shown = "GET /a?x=1&access_token=***&sig=*** HTTP/2 ?x=1&access_token=***&sig=*** https://***@h/?api_key=***&y=2";
        assert_eq!(line("%r %q %{Referer}i", secret), shown);
        let refused = |access: &mut Access<'_>| access.line = RequestLine::Received("GET /a?token=abc&b");
        assert_eq!(line("%r %q", refused), "GET /a?token=***&b ?token=***&b");
    }

    #[test]
    fn what_was_refused_has_the_line_as_far_as_it_came() {
        for (received, expected) in [
            ("GET /a?b HTTP/1.1", "\"GET /a?b HTTP/1.1\" GET /a ?b HTTP/1.1"),
            ("GET /a", "\"GET /a\" GET /a  -"),
            ("\"x", "\"\\\"x\" \\\"x -  -"),
            ("", "\"-\" - -  -"),
        ] {
            let refused = |access: &mut Access<'_>| access.line = RequestLine::Received(received);
            assert_eq!(line("\"%r\" %m %U %q %H", refused), expected, "{received}");
        }
    }

    #[test]
    fn the_guide_knows_the_directives() {
        let guide = include_str!("../../../../docs/operations.md");
        let (_, section) = guide.split_once("## The access log").expect("there is a section");
        let quoted = section.split('`').skip(1).step_by(2).filter(|text| text.starts_with('%'));
        let mut count = 0;
        for directive in quoted {
            Pattern::parse(directive).expect("what the guide shows is right");
            count += 1;
        }
        assert!(count >= 25, "{count}");
        for pattern in [COMMON, COMBINED.strip_prefix(COMMON).expect("one adds to the other").trim_start()] {
            assert!(section.contains(pattern), "{pattern}");
        }
    }

    #[test]
    fn wrong_patterns_are_named() {
        for (pattern, error) in [
            ("%h %Z", "there is no directive `%Z`"),
            ("%{Referer", "`%{Referer` has no `}`"),
            ("%h %", "`%` has no letter"),
            ("%{x}h", "there is no directive `%{x}h`"),
            ("%{}i", "there is no directive `%{}i`"),
            ("%é", "there is no directive `%é`"),
        ] {
            let found = Pattern::parse(pattern).err();
            assert_eq!(found, Some(format!("access log pattern: {error}")), "{pattern}");
        }
        let pattern = Pattern::parse("%{X-Forwarded-For}i %h").expect("the pattern is right");
        assert_eq!(pattern.unavailable(), ["%{X-Forwarded-For}i"]);
    }
}
