//! Heads of HTTP/2, to and from ours (RFC 9113, 8.2 and 8.3).

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use message::{Headers, Line, Method, RequestHead, ResponseHead, StandardHeader, Version, reason_phrase};

use crate::http1::parse::{HeadLimits, Refusal, is_authority};
use crate::http1::write::{self, Kind};

/// A request head, and the declared length of its body, and whether its client waits for `100 Continue`.
pub(super) struct Received {
    pub(super) head: RequestHead,
    pub(super) length: Option<u64>,
    pub(super) expects_continue: bool,
}

/// Takes over a request head. What the library lets through and HTTP/1.1 does not is refused here, since it may leave as such.
pub(super) fn request(parts: &http::request::Parts, limits: HeadLimits) -> Result<Received, Refusal> {
    let refuse = |status, why| Refusal { status, why };
    let method = Method::new(parts.method.as_str());
    if method == Method::Connect {
        return Err(refuse(501, "CONNECT is not spoken here"));
    }
    if parts.headers.len() > limits.fields {
        return Err(refuse(431, "too many header fields"));
    }
    let target = parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);
    if target.len() > limits.target {
        return Err(refuse(414, "the request target is too long"));
    }
    let is_form = target.starts_with('/') || (target == "*" && method == Method::Options);
    if !is_form || crate::http1::parse::visible(target.as_bytes()) < target.len() {
        return Err(refuse(400, "invalid request target"));
    }
    let mut hosts = parts.headers.get_all(http::header::HOST).iter();
    let (host, more) = (hosts.next(), hosts.next());
    let authority = match (parts.uri.authority(), host) {
        _ if more.is_some() => return Err(refuse(400, "more than one Host")),
        (Some(authority), Some(host)) if authority.as_str().as_bytes() != host.as_bytes() => {
            return Err(refuse(400, "Host is another than :authority"));
        }
        (Some(authority), _) => authority.as_str().as_bytes(),
        (None, Some(host)) => host.as_bytes(),
        (None, None) => return Err(refuse(400, "missing Host")),
    };
    if !is_authority(authority, true) {
        return Err(refuse(400, "invalid Host"));
    }
    let mut headers = Headers::new();
    headers.append("Host", authority);
    let (mut length, mut expects_continue) = (None, false);
    for (name, value) in &parts.headers {
        match *name {
            http::header::HOST => continue,
            // One line, as HTTP/1.1 has it (RFC 9113, 8.2.3).
            http::header::COOKIE => {
                if !headers.contains("cookie") {
                    headers.append("cookie", joined(&parts.headers));
                }
                continue;
            }
            http::header::CONTENT_LENGTH => {
                let Some(n) = number(value.as_bytes()) else {
                    return Err(refuse(400, "invalid Content-Length"));
                };
                if length.replace(n).is_some() {
                    return Err(refuse(400, "more than one Content-Length"));
                }
            }
            http::header::EXPECT => {
                if !value.as_bytes().eq_ignore_ascii_case(b"100-continue") {
                    return Err(refuse(417, "unknown expectation"));
                }
                expects_continue = true;
            }
            _ => {}
        }
        headers.append(name.as_str(), sound(value.as_bytes()).ok_or(refuse(400, "invalid header value"))?);
    }
    let head =
        RequestHead { method, target: target.to_owned(), version: Version::Http2, headers, absolute: None };
    Ok(Received { head, length, expects_continue })
}

/// Takes over a response head; also the declared length of its body.
pub(super) fn response(
    parts: &http::response::Parts,
    most: usize,
) -> Result<(ResponseHead, Option<u64>), &'static str> {
    if parts.headers.len() > most {
        return Err("too many header fields");
    }
    let mut headers = Headers::new();
    let mut length = None;
    for (name, value) in &parts.headers {
        if *name == http::header::CONTENT_LENGTH {
            let n = number(value.as_bytes()).ok_or("invalid Content-Length")?;
            if length.replace(n).is_some_and(|before| before != n) {
                return Err("more than one Content-Length");
            }
        }
        headers.append(name.as_str(), sound(value.as_bytes()).ok_or("invalid header value")?);
    }
    let status = parts.status.as_u16();
    let reason = reason_phrase(status).into();
    Ok((ResponseHead { status, reason, version: Version::Http2, headers }, length))
}

/// The request as the library wants it, without a body.
pub(super) fn to_request(
    method: &Method,
    scheme: &str,
    authority: &str,
    target: &str,
    headers: &Headers,
    length: Option<u64>,
) -> Result<http::Request<()>, &'static str> {
    if *method == Method::Connect {
        return Err("CONNECT asks for a tunnel, which is not spoken here");
    }
    let path = match target {
        "*" if *method == Method::Options => "*",
        path if path.starts_with('/') => path,
        _ => return Err("the request target is not a path"),
    };
    let uri = http::Uri::builder().scheme(scheme).authority(authority).path_and_query(sayable(path)?).build();
    let uri = uri.map_err(|_| "no authority")?;
    let method = http::Method::from_bytes(method.as_str().as_bytes()).map_err(|_| "invalid method")?;
    let mut request = http::Request::new(());
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.version_mut() = http::Version::HTTP_2;
    fields(request.headers_mut(), headers, Kind::Request)?;
    if let Some(length) = length {
        request.headers_mut().insert(http::header::CONTENT_LENGTH, length.into());
    }
    Ok(request)
}

/// The target as the library takes it. Some bytes that no URI has and HTTP/1.1 lets through it refuses; encoded they mean the
/// same.
fn sayable(target: &str) -> Result<PathAndQuery, &'static str> {
    if let Ok(path) = PathAndQuery::try_from(target) {
        return Ok(path);
    }
    let mut encoded = String::with_capacity(target.len() + 16);
    let mut in_query = false;
    for c in target.chars() {
        in_query |= c == '?';
        match c {
            '<' => encoded.push_str("%3C"),
            '>' => encoded.push_str("%3E"),
            '"' if in_query => encoded.push_str("%22"),
            '`' if !in_query => encoded.push_str("%60"),
            other => encoded.push(other),
        }
    }
    PathAndQuery::try_from(encoded).map_err(|_| "space or control byte in the request target")
}

/// The response as the library wants it, without a body.
pub(super) fn to_response(
    head: &ResponseHead,
    length: Option<u64>,
    keep_length: bool,
) -> Result<http::Response<()>, &'static str> {
    let mut response = http::Response::new(());
    let status = http::StatusCode::from_u16(head.status).ok().filter(|status| status.as_u16() >= 200);
    *response.status_mut() = status.ok_or("not a final status code")?;
    *response.version_mut() = http::Version::HTTP_2;
    let to = response.headers_mut();
    fields(to, &head.headers, Kind::Response { keep_length })?;
    if !head.headers.contains_known(StandardHeader::Date) {
        let mut line = Vec::with_capacity(40);
        write::date(&mut line);
        let value = line.get(b"Date: ".len()..line.len() - 2).unwrap_or_default();
        to.insert(http::header::DATE, HeaderValue::from_bytes(value).map_err(|_| "invalid date")?);
    }
    if let Some(length) = length {
        to.insert(http::header::CONTENT_LENGTH, length.into());
    }
    Ok(response)
}

/// All end-to-end fields: those that HTTP/1.1 would write.
fn fields(to: &mut HeaderMap, headers: &Headers, kind: Kind) -> Result<(), &'static str> {
    let passes = write::passes(headers, kind);
    for (name, value) in headers.iter() {
        let line = Line { name: name.as_bytes(), value, known: StandardHeader::of(name.as_bytes()) };
        if !passes(line) {
            continue;
        }
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| "invalid header name")?;
        let value =
            HeaderValue::from_bytes(value.trim_ascii()).map_err(|_| "control byte in a header value")?;
        to.try_append(name, value).map_err(|_| "too many header fields")?;
    }
    Ok(())
}

fn joined(headers: &HeaderMap) -> Vec<u8> {
    let cookies: Vec<&[u8]> =
        headers.get_all(http::header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    cookies.join(&b"; "[..])
}

/// A value without the white space around it that HTTP/1.1 does not count as its own.
fn sound(value: &[u8]) -> Option<&[u8]> {
    let value = value.trim_ascii();
    (!value.iter().any(|&b| (b < b' ' && b != b'\t') || b == 0x7F)).then_some(value)
}

fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: HeadLimits = HeadLimits { size: 1024, fields: 8, target: 64 };

    fn parts(uri: &str, fields: &[(&str, &str)]) -> http::request::Parts {
        let mut request = http::Request::builder().uri(uri).method("POST");
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn requests_become_ours() {
        let head = parts(
            "https://h:1/a?b=c",
            &[("cookie", "a=1"), ("x", "1"), ("cookie", "b=2"), ("x", "2"), ("content-length", "5")],
        );
        let received = request(&head, LIMITS).unwrap();
        let lines: Vec<_> = received
            .head
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value)))
            .collect();
        assert_eq!(lines, ["Host: h:1", "cookie: a=1; b=2", "x: 1", "x: 2", "content-length: 5"]);
        assert_eq!((received.head.target.as_str(), received.length), ("/a?b=c", Some(5)));
        assert_eq!(received.head.version, Version::Http2);
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        let long = format!("https://h/{}", "x".repeat(80));
        let many: Vec<_> = (0..9).map(|_| ("x", "1")).collect();
        for (uri, fields, status) in [
            ("https://h/", &[("host", "other")][..], 400),
            ("/", &[], 400),
            ("https://u@h/", &[], 400),
            ("https://h/", &[("host", "h"), ("host", "h")], 400),
            ("https://h/", &[("content-length", "1"), ("content-length", "1")], 400),
            ("https://h/", &[("content-length", "+1")], 400),
            ("https://h/", &[("expect", "x")], 417),
            (&long, &[], 414),
            ("https://h/", &many, 431),
        ] {
            let refused = request(&parts(uri, fields), LIMITS).err().map(|refusal| refusal.status);
            assert_eq!(refused, Some(status), "{uri} {fields:?}");
        }
    }

    #[test]
    fn what_belongs_to_one_connection_stays_behind() {
        let headers: Headers = [
            ("Host", "h"),
            ("Connection", "close, x-hop"),
            ("X-Hop", "1"),
            ("Keep-Alive", "5"),
            ("TE", "trailers"),
            ("TE", "gzip"),
            ("Transfer-Encoding", "chunked"),
            ("Upgrade", "h2c"),
            ("Expect", "100-continue"),
            ("X-Stays", "1"),
        ]
        .into_iter()
        .collect();
        let made = to_request(&Method::Post, "http", "h:1", "/a?b", &headers, Some(3)).unwrap();
        let names: Vec<_> = made.headers().keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["te", "x-stays", "content-length"]);
        assert_eq!(made.uri().to_string(), "http://h:1/a?b");
        for (method, target) in [(Method::Connect, "/"), (Method::Get, "http://h/"), (Method::Get, "/a b")] {
            assert!(to_request(&method, "http", "h", target, &headers, None).is_err(), "{target}");
        }
        let mut head = ResponseHead::new(101);
        assert!(to_response(&head, None, false).is_err());
        head.status = 204;
        assert!(to_response(&head, None, false).unwrap().headers().contains_key("date"));
    }
}
