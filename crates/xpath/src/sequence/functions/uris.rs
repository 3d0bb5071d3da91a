//! URIs (F&O sections 7.4 and 8; RFC 3986 section 5.2).

use super::{Call, Entry, Looks, row, text_value};
use crate::atomic::Atomic;
use crate::value::{Type, Value};
use std::fmt::Write as _;

#[rustfmt::skip]
pub(super) const TABLE: &[Entry] = &[
    row("resolve-uri", 1, 2, Type::Any, Looks::Nowhere, resolve_uri),
    row("encode-for-uri", 1, 1, Type::String, Looks::Nowhere, |c| {
        Ok(text_value(encode(&c.text(0)?, |b| b.is_ascii_alphanumeric() || b"-_.~".contains(&b))))
    }),
    row("iri-to-uri", 1, 1, Type::String, Looks::Nowhere, |c| {
        Ok(text_value(encode(&c.text(0)?, |b| b.is_ascii_graphic() && !b"<>\"{}|\\^`".contains(&b))))
    }),
    row("escape-html-uri", 1, 1, Type::String, Looks::Nowhere, |c| {
        Ok(text_value(encode(&c.text(0)?, |b| (b' '..=b'~').contains(&b))))
    }),
];

fn encode(text: &str, keep: fn(u8) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for b in text.bytes() {
        if keep(b) {
            out.push(b as char);
        } else {
            let _ = write!(out, "%{b:02X}");
        }
    }
    out
}

fn resolve_uri(c: &Call<'_, '_>) -> Result<Value, crate::eval::Fault> {
    let Some(relative) = c.text_option(0)? else { return Ok(Value::Empty) };
    if relative.matches('#').count() > 1 {
        return Err(c.fail("FORG0002", format!("\"{relative}\" is not a URI: a # within a fragment")));
    }
    if split(&relative).0.is_some() {
        return Ok(Value::Atomic(Atomic::Uri(relative)));
    }
    let base = if c.args.len() > 1 {
        c.required_text(1)?.to_string()
    } else {
        match c.eval.static_base_uri() {
            Some(base) => base,
            None => return Err(c.fail("FONS0005", "resolve-uri(): there is no base URI here")),
        }
    };
    if split(&base).0.is_none() && c.args.len() > 1 {
        return Err(c.fail("FORG0002", format!("\"{base}\" is not an absolute URI")));
    }
    let (scheme, authority, path, _, fragment) = split(&base);
    if fragment.is_some() || scheme.is_some() && authority.is_none() && !path.starts_with('/') {
        let why = if fragment.is_some() { "has a fragment" } else { "has no hierarchy" };
        return Err(c.fail("FORG0002", format!("the base URI \"{base}\" {why}")));
    }
    match resolve(&relative, &base) {
        Some(uri) => Ok(Value::Atomic(Atomic::Uri(uri.into()))),
        None => Err(c.fail("FORG0002", format!("\"{relative}\" is not a URI"))),
    }
}

/// Scheme, authority, path, query, fragment.
type Parts<'u> = (Option<&'u str>, Option<&'u str>, &'u str, Option<&'u str>, Option<&'u str>);

fn split(uri: &str) -> Parts<'_> {
    let (rest, fragment) = uri.split_once('#').map_or((uri, None), |(rest, f)| (rest, Some(f)));
    let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, q)| (rest, Some(q)));
    let is_scheme = |s: &str| {
        s.starts_with(|c: char| c.is_ascii_alphabetic())
            && s.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
    };
    let (scheme, rest) = match rest.split_once(':') {
        Some((scheme, after)) if is_scheme(scheme) => (Some(scheme), after),
        _ => (None, rest),
    };
    match rest.strip_prefix("//") {
        Some(rest) => {
            let end = rest.find('/').unwrap_or(rest.len());
            (scheme, Some(&rest[..end]), &rest[end..], query, fragment)
        }
        None => (scheme, None, rest, query, fragment),
    }
}

/// Resolves a reference against a base; `None`: it is not a URI reference.
pub(crate) fn resolve(reference: &str, base: &str) -> Option<String> {
    if reference.contains([' ', '<', '>', '"', '{', '}', '\\', '^', '`']) || reference.contains("%%") {
        return None;
    }
    let (scheme, authority, path, query, fragment) = split(reference);
    if scheme.is_some() {
        return Some(reference.to_owned());
    }
    let (base_scheme, base_authority, base_path, base_query, _) = split(base);
    let (authority, path, query) = if authority.is_some() {
        (authority, without_dots(path), query)
    } else if path.is_empty() {
        (base_authority, base_path.to_owned(), query.or(base_query))
    } else if path.starts_with('/') {
        (base_authority, without_dots(path), query)
    } else {
        let merged = match base_path.rfind('/') {
            Some(at) => format!("{}{path}", &base_path[..=at]),
            None if base_authority.is_some() => format!("/{path}"),
            None => path.to_owned(),
        };
        (base_authority, without_dots(&merged), query)
    };
    let mut out = String::new();
    if let Some(scheme) = base_scheme {
        out.push_str(scheme);
        out.push(':');
    }
    if let Some(authority) = authority {
        out.push_str("//");
        out.push_str(authority);
    }
    out.push_str(&path);
    for (mark, part) in [('?', query), ('#', fragment)] {
        if let Some(part) = part {
            out.push(mark);
            out.push_str(part);
        }
    }
    Some(out)
}

/// Removes `.` and `..` segments.
fn without_dots(path: &str) -> String {
    let mut out: Vec<&str> = Vec::new();
    let mut segments = path.split('/').peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." if last => out.push(""),
            "." => {}
            ".." => {
                if out.len() > 1 || out.first().is_some_and(|first| !first.is_empty()) {
                    out.pop();
                }
                if last {
                    out.push("");
                }
            }
            other => out.push(other),
        }
    }
    out.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 3986 section 5.4.
    #[test]
    fn resolves() {
        for (reference, expected) in [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y#s", "http://a/b/c/g?y#s"),
            ("#s", "http://a/b/c/d;p?q#s"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../../g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("./g/.", "http://a/b/c/g/"),
            ("g/../h", "http://a/b/c/h"),
        ] {
            assert_eq!(resolve(reference, "http://a/b/c/d;p?q").as_deref(), Some(expected), "{reference}");
        }
        assert_eq!(resolve("b.xml", "dir/a.xml").as_deref(), Some("dir/b.xml"));
        assert_eq!(resolve("a b", "http://a/"), None);
    }
}
