//! Heads of requests and responses.

use std::borrow::Cow;
use std::fmt;

use crate::Headers;

/// A request method. Unknown ones that are valid tokens are kept as they came.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Method {
    /// GET
    #[default]
    Get,
    /// HEAD
    Head,
    /// POST
    Post,
    /// PUT
    Put,
    /// DELETE
    Delete,
    /// OPTIONS
    Options,
    /// PATCH
    Patch,
    /// TRACE
    Trace,
    /// CONNECT
    Connect,
    /// Any other token, in its own case.
    Other(Box<str>),
}

impl Method {
    /// The method of that name; names are case-sensitive (RFC 9110, 9.1).
    pub fn new(name: &str) -> Method {
        match name {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            "POST" => Method::Post,
            "PUT" => Method::Put,
            "DELETE" => Method::Delete,
            "OPTIONS" => Method::Options,
            "PATCH" => Method::Patch,
            "TRACE" => Method::Trace,
            "CONNECT" => Method::Connect,
            other => Method::Other(other.into()),
        }
    }

    /// The name as it goes over the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
            Method::Options => "OPTIONS",
            Method::Patch => "PATCH",
            Method::Trace => "TRACE",
            Method::Connect => "CONNECT",
            Method::Other(name) => name,
        }
    }

    /// Whether sending the request twice has the effect of sending it once (RFC 9110, 9.2.2).
    pub fn is_idempotent(&self) -> bool {
        matches!(
            self,
            Method::Get | Method::Head | Method::Put | Method::Delete | Method::Options | Method::Trace
        )
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The HTTP version of a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    #[default]
    Http11,
    /// HTTP/2
    Http2,
}

impl Version {
    /// As written in a status line.
    pub fn as_str(self) -> &'static str {
        match self {
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
            Version::Http2 => "HTTP/2",
        }
    }
}

/// The head of a request.
#[derive(Clone, Debug, Default)]
pub struct RequestHead {
    /// What is asked for.
    pub method: Method,
    /// The request target in origin form (`/path?query`) as received, `*` for OPTIONS, `host:port` for
    /// CONNECT. An absolute form is reduced to its origin form and its authority becomes the Host header.
    pub target: String,
    /// The scheme of a target that was in absolute form: its client takes this server for its forward proxy.
    pub absolute: Option<&'static str>,
    /// The version the client speaks.
    pub version: Version,
    /// The fields, as received, hop-by-hop ones included.
    pub headers: Headers,
}

impl RequestHead {
    /// The target up to the query.
    pub fn path(&self) -> &str {
        self.target.split_once('?').map_or(self.target.as_str(), |(path, _)| path)
    }

    /// What follows the first `?`.
    pub fn query(&self) -> Option<&str> {
        self.target.split_once('?').map(|(_, query)| query)
    }
}

/// The head of a response.
#[derive(Clone, Debug)]
pub struct ResponseHead {
    /// Status code, 100 to 999.
    pub status: u16,
    /// Reason phrase; may be empty.
    pub reason: Cow<'static, str>,
    /// The version the sender spoke.
    pub version: Version,
    /// The fields, as received, hop-by-hop ones included.
    pub headers: Headers,
}

impl ResponseHead {
    /// A head without fields and with the usual reason phrase.
    pub fn new(status: u16) -> ResponseHead {
        ResponseHead {
            status,
            reason: Cow::Borrowed(reason_phrase(status)),
            version: Version::Http11,
            headers: Headers::new(),
        }
    }
}

/// The usual reason phrase of a status (RFC 9110, 15), empty for an unknown one.
pub fn reason_phrase(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        423 => "Locked",
        424 => "Failed Dependency",
        425 => "Too Early",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        507 => "Insufficient Storage",
        511 => "Network Authentication Required",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_round_trip() {
        for name in [
            "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "get", "PROPFIND",
        ] {
            assert_eq!(Method::new(name).as_str(), name);
        }
        assert!(Method::Put.is_idempotent() && !Method::Post.is_idempotent());
        assert!(!Method::new("PROPFIND").is_idempotent());
    }

    #[test]
    fn target_parts() {
        let head = |t: &str| RequestHead { target: t.into(), ..RequestHead::default() };
        for (target, path, query) in [
            ("/a/b", "/a/b", None),
            ("/a?x=1?2", "/a", Some("x=1?2")),
            ("*", "*", None),
            ("/?", "/", Some("")),
        ] {
            assert_eq!((head(target).path(), head(target).query()), (path, query));
        }
    }
}
