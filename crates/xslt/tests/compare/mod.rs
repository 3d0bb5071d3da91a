//! How an outcome is compared with the expected file: the modes of the suites' manifests, written anew over our own
//! parser.

use std::fmt::Write;
use xml::{Document, Dtd, NodeId, NodeKind, ParseOptions, c14n};

/// Whether `actual` is as good as `expected`; otherwise what differs.
pub fn compare(
    mode: &str,
    expected: &[u8],
    actual: &[u8],
    encoding: Option<&str>,
    mask: bool,
) -> Result<(), String> {
    let normal = |bytes: &[u8]| -> Result<String, String> {
        Ok(match mode {
            "text" => text(bytes, encoding).replace("\r\n", "\n").trim_end().to_owned(),
            "html" => html(&text(bytes, encoding)),
            "xml-canonical" => {
                let mut out = Vec::new();
                let options = c14n::Options { comments: true, ..c14n::Options::default() };
                c14n::canonicalize(&parse(bytes, encoding)?, Document::ROOT, &options, &mut out);
                String::from_utf8_lossy(&out).into_owned()
            }
            "xml-infoset" => infoset(&parse(bytes, encoding)?, false),
            "xml-indent" => infoset(&parse(bytes, encoding)?, true),
            other => return Err(format!("the comparison {other} is not known")),
        })
    };
    let mut expected = normal(expected).map_err(|e| format!("the expected file: {e}"))?;
    let mut actual = normal(actual)?;
    if mask {
        (expected, actual) = (mask_ids(&expected), mask_ids(&actual));
    }
    if expected == actual {
        return Ok(());
    }
    let (mut e, mut a) = (expected.lines(), actual.lines());
    loop {
        match (e.next(), a.next()) {
            (None, None) => return Err("line ends differ".into()),
            (e, a) if e != a => {
                let short = |line: Option<&str>| line.unwrap_or("(end)").chars().take(90).collect::<String>();
                return Err(format!("expected \"{}\", got \"{}\"", short(e), short(a)));
            }
            _ => {}
        }
    }
}

fn text(bytes: &[u8], encoding: Option<&str>) -> String {
    let hint = if std::str::from_utf8(bytes).is_ok() { None } else { encoding.or(Some("iso-8859-1")) };
    match xml::decode(bytes.to_vec(), hint) {
        Ok(decoded) => String::from_utf8_lossy(&decoded.text).into_owned(),
        Err(_) => bytes.iter().map(|b| *b as char).collect(),
    }
}

/// Parses a document; what is none is an external parsed entity and gets an element around it.
fn parse(bytes: &[u8], encoding: Option<&str>) -> Result<Document, String> {
    let options = ParseOptions { dtd: Dtd::Internal, ..ParseOptions::trusted() };
    if let Ok(doc) = Document::parse(bytes.to_vec(), &options) {
        return Ok(doc);
    }
    let mut text = text(bytes, encoding);
    if let Some(rest) = text.trim_start().strip_prefix("<?xml ")
        && let Some(end) = rest.find("?>")
    {
        text = rest[end + 2..].to_owned();
    }
    if let Some(start) = text.find("<!DOCTYPE")
        && let Some(end) = text[start..].find('>')
    {
        text.replace_range(start..=start + end, "");
    }
    Document::parse(format!("<_result_>{}</_result_>", text.trim()), &options).map_err(|e| e.to_string())
}

/// One line per node, names expanded.
fn infoset(doc: &Document, drop_space: bool) -> String {
    let mut out = String::new();
    for node in doc.children(Document::ROOT) {
        write_node(doc, node, 0, drop_space, &mut out);
    }
    out
}

fn write_node(doc: &Document, node: NodeId, depth: usize, drop_space: bool, out: &mut String) {
    let pad = "  ".repeat(depth);
    let one_line = |s: &str| s.replace('\n', "\\n");
    match doc.kind(node) {
        NodeKind::Element => {
            let _ = writeln!(out, "{pad}E {{{}}}{}", doc.namespace(node), doc.local(node));
            let mut attributes: Vec<String> = doc
                .attributes(node)
                .map(|a| {
                    let name = match doc.namespace(a) {
                        "" => doc.local(a).to_owned(),
                        uri => format!("{{{uri}}}{}", doc.local(a)),
                    };
                    format!("{pad}  A {name}={}", one_line(doc.text(a)))
                })
                .collect();
            attributes.sort();
            attributes.iter().for_each(|a| {
                let _ = writeln!(out, "{a}");
            });
            for child in doc.children(node) {
                write_node(doc, child, depth + 1, drop_space, out);
            }
        }
        NodeKind::Text => {
            let text = doc.text(node);
            let text = if drop_space { text.trim_matches([' ', '\t', '\r', '\n']) } else { text };
            if !text.is_empty() && depth > 0 {
                let _ = writeln!(out, "{pad}T {}", one_line(text));
            }
        }
        NodeKind::Comment => {
            let _ = writeln!(out, "{pad}C {}", one_line(doc.text(node)));
        }
        NodeKind::ProcessingInstruction => {
            let _ = writeln!(out, "{pad}P {} {}", doc.local(node), one_line(doc.text(node)));
        }
        NodeKind::Document | NodeKind::Attribute => {}
    }
}

/// HTML as a list of tags and texts: both sides are the work of serialisers, so a scanner will do.
fn html(source: &str) -> String {
    const VOID: [&str; 14] = [
        "area", "base", "basefont", "br", "col", "frame", "hr", "img", "input", "isindex", "link", "meta",
        "param", "p",
    ];
    let mut out = String::new();
    let mut rest = source;
    let mut text_run = String::new();
    let mut keep = 0usize;
    let flush = |run: &mut String, out: &mut String, keep: bool| {
        let text = unescape(run);
        let text = if keep {
            text.trim_matches('\n').to_owned()
        } else {
            text.split([' ', '\t', '\r', '\n']).filter(|w| !w.is_empty()).collect::<Vec<_>>().join(" ")
        };
        if !text.is_empty() {
            let _ = writeln!(out, "T {}", text.replace('\n', "\\n"));
        }
        run.clear();
    };
    while !rest.is_empty() {
        let Some(open) = rest.find('<') else {
            text_run.push_str(rest);
            break;
        };
        text_run.push_str(&rest[..open]);
        rest = &rest[open..];
        let tag = |s: &str| {
            s.chars().nth(1).is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?'))
        };
        if !tag(rest) {
            text_run.push('<');
            rest = &rest[1..];
            continue;
        }
        flush(&mut text_run, &mut out, keep > 0);
        if let Some(comment) = rest.strip_prefix("<!--") {
            let end = comment.find("-->").unwrap_or(comment.len());
            let _ = writeln!(out, "C {}", comment[..end].trim());
            rest = comment.get(end + 3..).unwrap_or("");
            continue;
        }
        let mut quote = None;
        let end = rest.char_indices().find(|(_, c)| match (quote, c) {
            (None, '>') => true,
            (None, '"' | '\'') => {
                quote = Some(*c);
                false
            }
            (Some(q), c) if q == *c => {
                quote = None;
                false
            }
            _ => false,
        });
        let end = end.map_or(rest.len() - 1, |(at, _)| at);
        let rest_before = &rest[..end];
        let inside = rest[1..end].trim_end_matches('/').trim();
        rest = &rest[end + 1..];
        if inside.starts_with('!') || inside.starts_with("?xml ") {
            continue;
        }
        if let Some(pi) = inside.strip_prefix('?') {
            let _ = writeln!(out, "P {}", pi.trim_end_matches('?').trim());
            continue;
        }
        if let Some(name) = inside.strip_prefix('/') {
            let name = name.trim().to_ascii_lowercase();
            if matches!(name.as_str(), "pre" | "textarea" | "script" | "style") {
                keep = keep.saturating_sub(1);
            }
            if !VOID.contains(&name.as_str()) {
                let _ = writeln!(out, "/ {name}");
            }
            continue;
        }
        let closed = rest_before.ends_with("/");
        let name_end = inside.find(|c: char| c.is_ascii_whitespace()).unwrap_or(inside.len());
        let name = inside[..name_end].to_ascii_lowercase();
        let attributes = html_attributes(&inside[name_end..]);
        let get = |n: &str| attributes.iter().find(|(k, _)| k == n).map(|(_, v)| v.to_ascii_lowercase());
        if name == "meta"
            && (get("http-equiv").as_deref() == Some("content-type") || get("charset").is_some())
        {
            continue;
        }
        let _ = writeln!(out, "E {name}");
        for (key, value) in &attributes {
            let _ = writeln!(out, "  A {key}={value}");
        }
        if closed && !VOID.contains(&name.as_str()) {
            let _ = writeln!(out, "/ {name}");
            continue;
        }
        if matches!(name.as_str(), "pre" | "textarea" | "script" | "style") {
            keep += 1;
            if matches!(name.as_str(), "script" | "style") {
                let end = rest.to_ascii_lowercase().find(&format!("</{name}")).unwrap_or(rest.len());
                let text = rest[..end].replace("\r\n", "\n");
                let text = text.trim_matches('\n');
                if !text.is_empty() {
                    let _ = writeln!(out, "T {}", text.replace('\n', "\\n"));
                }
                rest = &rest[end..];
            }
        }
    }
    flush(&mut text_run, &mut out, keep > 0);
    out
}

fn html_attributes(source: &str) -> Vec<(String, String)> {
    const URI: [&str; 12] = [
        "href",
        "src",
        "action",
        "cite",
        "background",
        "longdesc",
        "usemap",
        "data",
        "codebase",
        "classid",
        "profile",
        "archive",
    ];
    let mut attributes = Vec::new();
    let mut rest = source.trim_start();
    while !rest.is_empty() {
        let end = rest.find(|c: char| c == '=' || c.is_ascii_whitespace()).unwrap_or(rest.len());
        let key = rest[..end].to_ascii_lowercase();
        rest = rest[end..].trim_start();
        let mut value = String::new();
        if let Some(tail) = rest.strip_prefix('=') {
            let tail = tail.trim_start();
            match tail.chars().next() {
                Some(quote @ ('"' | '\'')) => {
                    let end = tail[1..].find(quote).map_or(tail.len(), |e| e + 1);
                    value = tail[1..end].to_owned();
                    rest = tail.get(end + 1..).unwrap_or("");
                }
                _ => {
                    let end = tail.find(|c: char| c.is_ascii_whitespace()).unwrap_or(tail.len());
                    value = tail[..end].to_owned();
                    rest = &tail[end..];
                }
            }
        }
        let mut value = unescape(&value);
        if value.eq_ignore_ascii_case(&key) {
            value.clear();
        }
        if URI.contains(&key.as_str()) {
            value = percent_decode(&value).trim().to_owned();
        }
        let value: Vec<&str> =
            value.split(|c: char| c.is_whitespace() && c != '\u{a0}').filter(|w| !w.is_empty()).collect();
        attributes.push((key, value.join(" ")));
        rest = rest.trim_start();
    }
    attributes.sort();
    attributes
}

fn percent_decode(value: &str) -> String {
    let bytes = value.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|h| std::str::from_utf8(h).ok());
        match hex.and_then(|h| u8::from_str_radix(h, 16).ok()) {
            Some(byte) if bytes[at] == b'%' => {
                out.push(byte);
                at += 3;
            }
            _ => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The entities of HTML 4 from U+00A0 on, in order.
const LATIN1: &str = "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 \
    acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring \
    AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times \
    Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute \
    ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc \
    uuml yacute thorn yuml";

fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let found = rest.find(';').filter(|end| *end < 12).and_then(|end| {
            let name = &rest[1..end];
            let c = match name {
                "amp" => '&',
                "lt" => '<',
                "gt" => '>',
                "quot" => '"',
                "apos" => '\'',
                "ndash" => '\u{2013}',
                "mdash" => '\u{2014}',
                "lsquo" => '\u{2018}',
                "rsquo" => '\u{2019}',
                "ldquo" => '\u{201c}',
                "rdquo" => '\u{201d}',
                "bull" => '\u{2022}',
                "hellip" => '\u{2026}',
                "trade" => '\u{2122}',
                "euro" => '\u{20ac}',
                _ => match name.strip_prefix('#') {
                    Some(number) => {
                        let code = match number.strip_prefix(['x', 'X']) {
                            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                            None => number.parse().ok()?,
                        };
                        char::from_u32(code)?
                    }
                    None => {
                        let at = LATIN1.split_ascii_whitespace().position(|n| n == name)?;
                        char::from_u32(0xa0 + at as u32)?
                    }
                },
            };
            Some((c, end + 1))
        });
        match found {
            Some((c, length)) => {
                out.push(c);
                rest = &rest[length..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// Generated identifiers by the order in which they appear.
fn mask_ids(lines: &str) -> String {
    let mut seen: Vec<String> = Vec::new();
    let mut out = String::new();
    for line in lines.lines() {
        let trimmed = line.trim_start();
        let cut = ["A id=", "A name=", "A internal-destination=", "A ref-id="]
            .iter()
            .find(|key| trimmed.starts_with(**key))
            .map(|key| line.len() - trimmed.len() + key.len())
            .or_else(|| trimmed.starts_with("A href=").then(|| line.find('#').map(|at| at + 1)).flatten());
        match cut {
            Some(cut) => {
                let value = &line[cut..];
                let number = seen.iter().position(|id| id == value).unwrap_or_else(|| {
                    seen.push(value.to_owned());
                    seen.len() - 1
                });
                let _ = writeln!(out, "{}i{number}", &line[..cut]);
            }
            None => {
                let _ = writeln!(out, "{line}");
            }
        }
    }
    out
}
