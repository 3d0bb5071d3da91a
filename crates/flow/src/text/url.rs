//! Strict URLs.

use std::fmt;
use std::net::Ipv6Addr;
use std::ops::Range;

/// Longest accepted URL or template of one, in bytes.
pub const MAX_LENGTH: usize = 64 * 1024;

/// The parts of an absolute URL with an authority.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Url {
    /// In lower case.
    pub scheme: String,
    /// In lower case; an IPv6 address without its brackets.
    pub host: String,
    /// As written, or the default of the scheme (http, ws 80; https, wss 443).
    pub port: u16,
    /// In origin form: begins with `/`, keeps the query, has no fragment.
    pub path_and_query: String,
}

impl Url {
    /// `host`, `host:port` where the port is not the scheme's own; an IPv6 address in brackets: the value of
    /// the header Host.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if default_port(&self.scheme) == Some(self.port) { host } else { format!("{host}:{}", self.port) }
    }
}

/// Why a text is not a URL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UrlError {
    /// What is wrong, without a final stop.
    pub message: &'static str,
    /// Where, in bytes.
    pub span: Range<usize>,
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at character {} of the URL)", self.message, self.span.start + 1)
    }
}

impl std::error::Error for UrlError {}

fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" | "ws" => Some(80),
        "https" | "wss" => Some(443),
        _ => None,
    }
}

/// Reads `scheme://host[:port][/path][?query][#fragment]` strictly: one reading or an error. User information is
/// refused (an address with a password belongs into the endpoint's authentication), as are control characters,
/// hosts with other characters than those of names, and ports out of range. What no URL may contain behind the
/// authority (blanks, letters that are not ASCII) is percent-encoded.
pub fn parse_url(text: &str) -> Result<Url, UrlError> {
    let error = |message, span| Err(UrlError { message, span });
    if text.len() > MAX_LENGTH {
        return error("the URL is too long", 0..text.len());
    }
    if let Some(at) = text.bytes().position(|b| b.is_ascii_control()) {
        return error("a character that no URL may contain", at..at + 1);
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        return error("a URL begins with a scheme and ://", 0..text.len());
    };
    let scheme_fits = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    if !scheme_fits {
        return error("not a scheme", 0..scheme.len());
    }
    let scheme = scheme.to_ascii_lowercase();
    let start = scheme.len() + 3;
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let whole = start..start + authority.len();
    if authority.contains('@') {
        return error(
            "no user name and password may stand here: use `authentication` of an `http` endpoint",
            whole,
        );
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(v6) => {
            let Some((address, after)) = v6.split_once(']') else {
                return error("the [ is not closed", whole);
            };
            if address.parse::<Ipv6Addr>().is_err() {
                return error("not an IPv6 address", whole);
            }
            match after.strip_prefix(':') {
                Some(port) => (address, Some(port)),
                None if after.is_empty() => (address, None),
                None => return error("only a port may follow the ]", whole),
            }
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let name_fits = !host.is_empty()
        && (authority.starts_with('[')
            || host.bytes().all(|b| is_unreserved(b) || matches!(b, b'!' | b'$' | b'&' | b'\'' | b'+')));
    if !name_fits {
        return error("not a host", whole);
    }
    let port = match port {
        Some(digits) if !digits.is_empty() => match digits.parse::<u16>() {
            Ok(port) if port > 0 && digits.bytes().all(|b| b.is_ascii_digit()) => port,
            _ => return error("a port is a number from 1 to 65535", whole),
        },
        _ => match default_port(&scheme) {
            Some(port) => port,
            None => return error("the scheme has no port of its own, so the URL must name one", whole),
        },
    };
    let tail = tail.split('#').next().unwrap_or("");
    let mut path_and_query = String::with_capacity(tail.len() + 1);
    if !tail.starts_with('/') {
        path_and_query.push('/');
    }
    for b in tail.bytes() {
        if b.is_ascii_graphic() && !matches!(b, b'\\' | b'"' | b'<' | b'>') {
            path_and_query.push(char::from(b));
        } else {
            push_encoded(&mut path_and_query, b);
        }
    }
    Ok(Url { scheme, host: host.to_ascii_lowercase(), port, path_and_query })
}

/// Whether a byte stands for itself everywhere in a URL (RFC 3986, 2.3).
pub fn is_unreserved(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~')
}

/// Appends a byte in its percent-encoded form.
pub fn push_encoded(out: &mut String, b: u8) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    out.push('%');
    for nibble in [b >> 4, b & 15] {
        out.push(char::from(HEX.get(usize::from(nibble)).copied().unwrap_or(b'0')));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        for (text, scheme, host, port, target, authority) in [
            ("http://h", "http", "h", 80, "/", "h"),
            ("HTTPS://Ex.COM/a?b#c", "https", "ex.com", 443, "/a?b", "ex.com"),
            ("http://h:81?x", "http", "h", 81, "/?x", "h:81"),
            ("http://[::1]:8080/a", "http", "::1", 8080, "/a", "[::1]:8080"),
            ("http://[::1]", "http", "::1", 80, "/", "[::1]"),
            ("tcp://h:9/", "tcp", "h", 9, "/", "h:9"),
            ("http://my_host:/x", "http", "my_host", 80, "/x", "my_host"),
            ("http://h?a b/\u{e4}%20\\", "http", "h", 80, "/?a%20b/%C3%A4%20%5C", "h"),
        ] {
            let url = parse_url(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            let found = (url.scheme.as_str(), url.host.as_str(), url.port, url.path_and_query.as_str());
            assert_eq!(found, (scheme, host, port, target), "{text}");
            assert_eq!(url.authority(), authority, "{text}");
        }
        for text in [
            "",
            "h",
            "/a",
            "http:/h",
            "http://",
            "http://:80",
            "http://u:p@h/",
            "http://h:0",
            "http://h:70000",
            "http://h:+1",
            "http://h b/",
            "http://\u{e4}/",
            "http://[::1",
            "http://[x]",
            "http://[::1]x",
            "1a://h",
            "jms://q",
            "http://h%zz/",
            "http://h\\@x/",
            "http://h/\r\n",
        ] {
            assert!(parse_url(text).is_err(), "{text}");
        }
    }
}
