//! Where an endpoint sends to: URI templates of http endpoints, and the joining of an address with the rest of the request's path.
//!
//! [`UriTemplate`] is RFC 6570, levels 1 to 4, with what http endpoints add: names with dots
//! (`{uri.var.city}`, `{query.param.q}`), a leading `{var}` taken as `{+var}` so that a variable may hold the
//! whole URL, the prefix `legacy-encoding:`, and falling back to the raw text where an expansion is not a URI.

use flow::resource::is_reserved;
use flow::url::{MAX_LENGTH, is_unreserved, push_encoded};
use percent_encoding::percent_decode_str;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

/// A template that cannot be compiled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TemplateError {
    /// What is wrong, without a final stop.
    pub message: String,
    /// Where in the text of the template, in bytes.
    pub span: Range<usize>,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at character {} of the URI template)", self.message, self.span.start + 1)
    }
}

impl std::error::Error for TemplateError {}

/// A compiled URI template.
#[derive(Clone, Debug)]
pub struct UriTemplate {
    raw: String,
    legacy: bool,
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
enum Part {
    /// Already encoded.
    Literal(String),
    Expression {
        operator: Operator,
        variables: Vec<Variable>,
    },
}

#[derive(Clone, Debug)]
struct Variable {
    name: String,
    /// `:n`: the first n characters only.
    prefix: Option<usize>,
}

/// How an expression is written (RFC 6570, appendix A): what comes first, what stands between the values,
/// whether they carry their names, what follows the name of an empty one, and whether reserved characters stay.
#[derive(Clone, Copy, Debug)]
struct Operator {
    first: &'static str,
    separator: &'static str,
    named: bool,
    if_empty: &'static str,
    reserved: bool,
}

impl Operator {
    const fn new(
        first: &'static str,
        separator: &'static str,
        named: bool,
        if_empty: &'static str,
        reserved: bool,
    ) -> Operator {
        Operator { first, separator, named, if_empty, reserved }
    }

    /// The operator that `c` names, or the one of an expression without.
    fn of(c: u8) -> (Operator, bool) {
        let operator = match c {
            b'+' => Operator::new("", ",", false, "", true),
            b'#' => Operator::new("#", ",", false, "", true),
            b'.' => Operator::new(".", ".", false, "", false),
            b'/' => Operator::new("/", "/", false, "", false),
            b';' => Operator::new(";", ";", true, "", false),
            b'?' => Operator::new("?", "&", true, "=", false),
            b'&' => Operator::new("&", "&", true, "=", false),
            _ => return (Operator::new("", ",", false, "", false), false),
        };
        (operator, true)
    }
}

impl UriTemplate {
    /// Compiles the text of a `uri-template`.
    pub fn compile(text: &str) -> Result<UriTemplate, TemplateError> {
        let error = |message: &str, span: Range<usize>| TemplateError { message: message.to_owned(), span };
        if text.len() > MAX_LENGTH {
            return Err(error("the template is too long", 0..text.len()));
        }
        let (legacy, raw) = match text.strip_prefix("legacy-encoding:") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let offset = text.len() - raw.len();
        let mut parts = Vec::new();
        let mut rest = raw;
        while !rest.is_empty() {
            let at = offset + raw.len() - rest.len();
            let Some(after) = rest.strip_prefix('{') else {
                let end = rest.find('{').unwrap_or(rest.len());
                let (literal, next) = rest.split_at(end);
                if let Some(brace) = literal.find('}') {
                    return Err(error("a } without {", at + brace..at + brace + 1));
                }
                parts.push(Part::Literal(encode(literal, true).into_owned()));
                rest = next;
                continue;
            };
            let Some(end) = after.find('}') else {
                return Err(error("the { is not closed", at..at + 1));
            };
            let (inner, next) = after.split_at(end);
            let (mut operator, written) = Operator::of(inner.bytes().next().unwrap_or(0));
            if !written && parts.is_empty() {
                operator = Operator::of(b'+').0;
            }
            let list = if written { inner.get(1..).unwrap_or("") } else { inner };
            let mut variables = Vec::new();
            for variable in list.split(',') {
                match variable_of(variable) {
                    Ok(variable) => variables.push(variable),
                    Err(message) => return Err(error(message, at..at + end + 2)),
                }
            }
            parts.push(Part::Expression { operator, variables });
            rest = next.strip_prefix('}').unwrap_or(next);
        }
        Ok(UriTemplate { raw: raw.to_owned(), legacy, parts })
    }

    /// The template as it is written, without the prefix `legacy-encoding:`.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// Whether there is no variable in it: every expansion is [`raw`](Self::raw).
    pub fn is_static(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Literal(_)))
    }

    /// The names of the variables, in the order of the text.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().flat_map(|part| {
            match part {
                Part::Literal(_) => [].iter(),
                Part::Expression { variables, .. } => variables.iter(),
            }
            .map(|variable| variable.name.as_str())
        })
    }

    /// The URI for the values that `lookup` gives. Only names that begin with `uri.var.` or `query.param.` are
    /// looked up; every other variable is undefined and expands to nothing. The raw template where the
    /// expansion is not a URI. (Where the message has no variable at all the caller takes
    /// [`raw`](Self::raw), as the engine does.)
    pub fn expand(&self, lookup: &mut dyn FnMut(&str) -> Option<String>) -> String {
        let mut out = String::with_capacity(self.raw.len() + 32);
        for part in &self.parts {
            match part {
                Part::Literal(text) => out.push_str(text),
                Part::Expression { operator, variables } => {
                    self.expression(*operator, variables, lookup, &mut out)
                }
            }
        }
        if self.legacy {
            // The whole is decoded and encoded again, so that what was encoded already is not encoded twice.
            let decoded = percent_decode_str(&out).decode_utf8_lossy();
            out = encode_whole(&decoded);
        }
        if is_uri(&out) { out } else { self.raw.clone() }
    }

    fn expression(
        &self,
        operator: Operator,
        variables: &[Variable],
        lookup: &mut dyn FnMut(&str) -> Option<String>,
        out: &mut String,
    ) {
        let mut first = true;
        for variable in variables {
            let is_looked_up =
                variable.name.starts_with("uri.var.") || variable.name.starts_with("query.param.");
            let Some(mut value) = is_looked_up.then(|| lookup(&variable.name)).flatten() else { continue };
            if self.legacy {
                value = percent_decode_str(&value.replace('+', " ")).decode_utf8_lossy().into_owned();
            }
            if let Some((end, _)) = variable.prefix.and_then(|n| value.char_indices().nth(n)) {
                value.truncate(end);
            }
            out.push_str(if first { operator.first } else { operator.separator });
            first = false;
            if operator.named {
                out.push_str(&encode(&variable.name, true));
                if value.is_empty() {
                    out.push_str(operator.if_empty);
                    continue;
                }
                out.push('=');
            }
            out.push_str(&encode(&value, operator.reserved));
        }
    }
}

/// One `name`, `name*` or `name:n`.
fn variable_of(text: &str) -> Result<Variable, &'static str> {
    // Exploding changes only lists; a property is one value. Its name is written either way.
    let (name, prefix) = match text.strip_suffix('*') {
        Some(name) => (name, None),
        None => match text.split_once(':') {
            Some((name, digits)) => match digits.parse::<usize>() {
                Ok(n) if (1..10_000).contains(&n) && !digits.starts_with(['+', '0']) => (name, Some(n)),
                _ => return Err("a prefix is a number from 1 to 9999"),
            },
            None => (text, None),
        },
    };
    let plain = |b: u8| {
        b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'%' | b'$' | b':') || b >= 0x80
    };
    if name.is_empty() || name.starts_with('.') || !name.bytes().all(plain) {
        return Err("not the name of a variable");
    }
    Ok(Variable { name: name.to_owned(), prefix })
}

/// Percent-encodes what is not unreserved; with `reserved` those characters and what is already encoded stay.
fn encode(text: &str, reserved: bool) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let is_triplet = |at: usize| {
        bytes.get(at + 1).is_some_and(u8::is_ascii_hexdigit)
            && bytes.get(at + 2).is_some_and(u8::is_ascii_hexdigit)
    };
    let stays = |at: usize, b: u8| {
        is_unreserved(b) || (reserved && (is_reserved(b) || (b == b'%' && is_triplet(at))))
    };
    if bytes.iter().enumerate().all(|(at, b)| stays(at, *b)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for (at, b) in bytes.iter().enumerate() {
        if stays(at, *b) { out.push(char::from(*b)) } else { push_encoded(&mut out, *b) }
    }
    Cow::Owned(out)
}

/// Encodes a decoded URI: only what no URI may contain, and every percent sign.
fn encode_whole(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for b in text.bytes() {
        if is_unreserved(b) || is_reserved(b) { out.push(char::from(b)) } else { push_encoded(&mut out, b) }
    }
    out
}

/// Whether `text` is a URI reference by its characters: encoded well, no brackets but around an IPv6 address.
fn is_uri(text: &str) -> bool {
    let bytes = text.as_bytes();
    let well_encoded = bytes.iter().enumerate().all(|(at, b)| match b {
        b'%' => {
            bytes.get(at + 1).is_some_and(u8::is_ascii_hexdigit)
                && bytes.get(at + 2).is_some_and(u8::is_ascii_hexdigit)
        }
        b => is_unreserved(*b) || is_reserved(*b),
    });
    // A scheme is letters, digits and + - . ; and an authority, where there is one, has a port that is a number.
    let scheme_fits = match text.find([':', '/', '?', '#']) {
        Some(end) if text.as_bytes().get(end) == Some(&b':') => {
            let scheme = text.get(..end).unwrap_or("");
            scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
        }
        _ => true,
    };
    let single_fragment = text.bytes().filter(|b| *b == b'#').count() <= 1;
    !text.is_empty() && well_encoded && scheme_fits && single_fragment
}

/// The address of an endpoint with the rest of the request's path and query (`REST_URL_POSTFIX`) joined to it:
/// one slash between them, none before a query. An address with a query of its own keeps it: the postfix' path
/// goes before it, the postfix' query behind it with `&`.
pub fn join_postfix(address: &str, postfix: &str) -> String {
    let (base, own_query) = split_query(address);
    let (path, query) = split_query(postfix);
    let mut out = String::with_capacity(address.len() + postfix.len() + 1);
    out.push_str(base);
    if path.is_empty() {
        // A query directly behind a path that ends with a slash: the slash goes, as the engine does it.
        if query.is_some() && own_query.is_none() && out.ends_with('/') {
            out.pop();
        }
    } else {
        match (base.ends_with('/'), path.starts_with('/')) {
            (true, true) => drop(out.pop()),
            (false, false) => out.push('/'),
            _ => {}
        }
        out.push_str(path);
    }
    for (i, query) in [own_query, query].into_iter().flatten().filter(|q| !q.is_empty()).enumerate() {
        out.push(if i == 0 { '?' } else { '&' });
        out.push_str(query);
    }
    out
}

fn split_query(text: &str) -> (&str, Option<&str>) {
    match text.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str) -> Option<String> {
        Some(
            match name {
                "uri.var.city" => "New York",
                "uri.var.path" => "/foo/bar",
                "uri.var.url" => "http://h:81/a?b=c%20d",
                "uri.var.empty" => "",
                "uri.var.enc" => "a%20b",
                "uri.var.uml" => "Köln",
                "query.param.q" => "a&b",
                "uri.var.bad" => "a b://{",
                "plain" => "never",
                _ => return None,
            }
            .to_owned(),
        )
    }

    #[test]
    fn expansion() {
        for (template, expected) in [
            ("http://h/{uri.var.city}", "http://h/New%20York"),
            ("http://h/{uri.var.city:3}/x", "http://h/New/x"),
            ("http://h{+uri.var.path}/x", "http://h/foo/bar/x"),
            ("http://h/{uri.var.path}", "http://h/%2Ffoo%2Fbar"),
            ("http://h/{#uri.var.path}", "http://h/#/foo/bar"),
            ("http://h/x{.uri.var.city,uri.var.uml}", "http://h/x.New%20York.K%C3%B6ln"),
            ("http://h{/uri.var.city,uri.var.none,uri.var.empty}", "http://h/New%20York/"),
            ("http://h/a{;uri.var.city,uri.var.empty}", "http://h/a;uri.var.city=New%20York;uri.var.empty"),
            ("http://h/a{?query.param.q,uri.var.empty}", "http://h/a?query.param.q=a%26b&uri.var.empty="),
            ("http://h/a?x=1{&query.param.q*}", "http://h/a?x=1&query.param.q=a%26b"),
            ("http://h/a?q={query.param.q}&n={query.param.n}", "http://h/a?q=a%26b&n="),
            ("http://h/{+uri.var.enc}/{uri.var.enc}", "http://h/a%20b/a%2520b"),
            ("legacy-encoding:http://h/{uri.var.enc}?q={uri.var.enc}", "http://h/a%20b?q=a%20b"),
            ("{uri.var.url}", "http://h:81/a?b=c%20d"),
            ("{uri.var.url}/more", "http://h:81/a?b=c%20d/more"),
            ("http://h/{plain}x", "http://h/x"),
            ("http://h/a b", "http://h/a%20b"),
            ("{uri.var.bad}", "{uri.var.bad}"),
        ] {
            let compiled = UriTemplate::compile(template).unwrap_or_else(|e| panic!("{template}: {e}"));
            assert_eq!(compiled.expand(&mut value), expected, "{template}");
        }
    }

    #[test]
    fn what_a_template_says_of_itself() {
        let template =
            UriTemplate::compile("http://h/{uri.var.a}{?query.param.b,uri.var.c:2}").expect("valid");
        assert!(!template.is_static());
        assert_eq!(template.variables().collect::<Vec<_>>(), ["uri.var.a", "query.param.b", "uri.var.c"]);
        assert!(UriTemplate::compile("http://h/x").expect("valid").is_static());
        for (text, span) in [("a{b", 1..2), ("ab}", 2..3), ("a{}", 1..3), ("a{b:0}", 1..6), ("a{b c}", 1..6)]
        {
            assert_eq!(UriTemplate::compile(text).expect_err(text).span, span, "{text}");
        }
    }

    #[test]
    fn joining() {
        for (address, postfix, expected) in [
            ("http://h/base/", "/a?x=1", "http://h/base/a?x=1"),
            ("http://h/base", "/a", "http://h/base/a"),
            ("http://h/base", "a", "http://h/base/a"),
            ("http://h/base/", "a", "http://h/base/a"),
            ("http://h/base/", "?x=1", "http://h/base?x=1"),
            ("http://h/base", "?x=1", "http://h/base?x=1"),
            ("http://h/base", "", "http://h/base"),
            ("http://h/d?z=1", "/x?p=1", "http://h/d/x?z=1&p=1"),
            ("http://h/d?z=1", "?p=1", "http://h/d?z=1&p=1"),
            ("http://h/d?z=1", "/x", "http://h/d/x?z=1"),
            ("http://h/d?z=1", "", "http://h/d?z=1"),
        ] {
            assert_eq!(join_postfix(address, postfix), expected, "{address} {postfix}");
        }
    }

    /// Every template and URL one edit away from a good one expands or is refused.
    #[test]
    fn edited_texts() {
        let pieces = ["", "{", "}", "/", "*", "?", "%", "%4", "é", ",", "+", "#", ":", "[", "]", "@", "\0"];
        for seed in
            ["http://h:1/{uri.var.uml:2}{?query.param.q,uri.var.enc*}", "legacy-encoding:{uri.var.url}%41é"]
        {
            for (at, c) in seed.char_indices() {
                for piece in pieces {
                    let text = format!("{}{piece}{}", &seed[..at], &seed[at + c.len_utf8()..]);
                    if let Ok(template) = UriTemplate::compile(&text) {
                        let uri = template.expand(&mut value);
                        assert!(is_uri(&uri) || uri == template.raw(), "{text}");
                    }
                    drop(flow::url::parse_url(&text));
                    drop(join_postfix(&text, seed));
                }
            }
        }
    }
}
