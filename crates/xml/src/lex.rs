//! The lexical grammar, shared by the tree parser and the push tokenizer: works on a slice of checked UTF-8 and
//! returns offsets. Running out of input is the fault [`ErrorKind::UnexpectedEnd`]: the tokenizer waits for more.

use crate::Limits;
use crate::chars::{NAME_BYTE, is_char, is_space};
use crate::error::{ErrorKind, Fault, Res, end, fault, limit, syntax};
use crate::names::Names;
use crate::scan::value_end;

/// An attribute as written: offsets into the input.
#[derive(Copy, Clone, Debug)]
pub(crate) struct RawAttribute {
    pub name: u32,
    pub name_end: u32,
    pub value: u32,
    pub value_end: u32,
    /// The value is literal: it has no reference, tab or line end.
    pub plain: bool,
    /// The name, interned.
    pub qname: u32,
}

/// The end of a start tag.
#[derive(Copy, Clone, Debug)]
pub(crate) struct StartTag {
    pub end: usize,
    pub empty: bool,
}

/// The text of checked bytes.
#[inline(always)]
pub(crate) fn text(bytes: &[u8]) -> &str {
    debug_assert!(std::str::from_utf8(bytes).is_ok());
    // SAFETY: callers pass slices of input that `scan::first_bad` accepted, cut next to ASCII delimiters.
    #[allow(unsafe_code)]
    unsafe {
        std::str::from_utf8_unchecked(bytes)
    }
}

/// The end of the name at `at`.
#[inline(always)]
pub(crate) fn name(input: &[u8], at: usize, limits: &Limits, construct: &'static str) -> Res<usize> {
    let mut p = at;
    while p < input.len() && NAME_BYTE[input[p] as usize] {
        p += 1;
    }
    if p == input.len() {
        if p - at > limits.name_length {
            return limit("name_length", limits.name_length, at);
        }
        return end(construct, p);
    }
    if p == at {
        return syntax("expected a name", at);
    }
    if p - at > limits.name_length {
        return limit("name_length", limits.name_length, at);
    }
    Ok(p)
}

#[inline(always)]
pub(crate) fn spaces(input: &[u8], mut at: usize) -> usize {
    while at < input.len() && is_space(input[at]) {
        at += 1;
    }
    at
}

#[inline(always)]
pub(crate) fn byte(input: &[u8], at: usize, construct: &'static str) -> Res<u8> {
    match input.get(at) {
        Some(&b) => Ok(b),
        None => end(construct, at),
    }
}

/// The name of an unfinished start tag in messages.
pub(crate) const START_TAG: &str = "a start tag";

/// The rest of a start tag after the name of the `element`. Fills `attributes`.
#[inline(always)]
pub(crate) fn rest_of_start_tag(
    input: &[u8],
    (element, name_end): (u32, usize),
    names: &mut Names,
    limits: &Limits,
    attributes: &mut Vec<RawAttribute>,
) -> Res<StartTag> {
    const WHAT: &str = START_TAG;
    attributes.clear();
    let mut p = name_end;
    loop {
        let b = byte(input, p, WHAT)?;
        if b == b'>' {
            return Ok(StartTag { end: p + 1, empty: false });
        }
        let space = p;
        p = spaces(input, p);
        match byte(input, p, WHAT)? {
            b'>' => return Ok(StartTag { end: p + 1, empty: false }),
            b'/' => {
                if byte(input, p + 1, WHAT)? != b'>' {
                    return syntax("expected `>` after `/`", p + 1);
                }
                return Ok(StartTag { end: p + 2, empty: true });
            }
            _ if space == p => return syntax("expected white space, `>` or `/>` in a start tag", p),
            _ => {}
        }
        if attributes.len() >= limits.attributes {
            return limit("attributes", limits.attributes, p);
        }
        let attr = p;
        let before = attributes.last().map(|a| a.qname);
        let (qname, attr_end) = names.attribute_behind(element, before, input, p, limits)?;
        p = spaces(input, attr_end);
        if byte(input, p, WHAT)? != b'=' {
            return syntax("expected `=` after the name of an attribute", p);
        }
        p = spaces(input, p + 1);
        let quote = byte(input, p, WHAT)?;
        if quote != b'"' && quote != b'\'' {
            return syntax("expected a quoted attribute value", p);
        }
        p += 1;
        let value = p;
        let mut plain = true;
        loop {
            p = value_end(input, p, quote);
            let b = byte(input, p, "an attribute value")?;
            if b == quote {
                break;
            }
            if b == b'<' {
                return syntax("`<` in an attribute value", p);
            }
            plain = false;
            p += 1;
        }
        if p - value > limits.text_length {
            return limit("text_length", limits.text_length, value);
        }
        attributes.push(RawAttribute {
            name: attr as u32,
            name_end: attr_end as u32,
            value: value as u32,
            value_end: p as u32,
            plain,
            qname,
        });
        p += 1;
    }
}

/// The meaning of a reference.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Reference {
    /// A character reference or a predefined entity.
    Char(char),
    /// A general entity; its name is `input[at + 1 .. end - 1]`.
    Entity,
}

/// A reference; `at` is its `&`. Returns it with the offset after its `;`.
pub(crate) fn reference(input: &[u8], at: usize, limits: &Limits) -> Res<(Reference, usize)> {
    const WHAT: &str = "a reference";
    if byte(input, at + 1, WHAT)? == b'#' {
        return char_reference(input, at);
    }
    let e = name(input, at + 1, limits, WHAT)?;
    if input[e] != b';' {
        return syntax("expected `;` at the end of a reference (a bare `&` is written `&amp;`)", e);
    }
    let c = match &input[at + 1..e] {
        b"lt" => '<',
        b"gt" => '>',
        b"amp" => '&',
        b"quot" => '"',
        b"apos" => '\'',
        _ => return Ok((Reference::Entity, e + 1)),
    };
    Ok((Reference::Char(c), e + 1))
}

pub(crate) fn char_reference(input: &[u8], at: usize) -> Res<(Reference, usize)> {
    const WHAT: &str = "a character reference";
    let mut p = at + 2;
    let radix = if byte(input, p, WHAT)? == b'x' { 16 } else { 10 };
    if radix == 16 {
        p += 1;
    }
    let digits = p;
    let mut value = 0u32;
    while let Some(d) = (byte(input, p, WHAT)? as char).to_digit(radix) {
        value = value.saturating_mul(radix).saturating_add(d);
        p += 1;
        // Leading zeros are allowed, but not without end.
        if p - digits > 64 {
            return syntax("a character reference that is too long", at);
        }
    }
    if p == digits {
        return syntax("expected digits in a character reference", p);
    }
    if input[p] != b';' {
        return syntax("expected `;` at the end of a character reference", p);
    }
    match char::from_u32(value).filter(|&c| is_char(c)) {
        Some(c) => Ok((Reference::Char(c), p + 1)),
        None => fault(ErrorKind::Character, format!("the character U+{value:04X} is not allowed"), at),
    }
}

/// A comment; `at` is after its `<!--`. Returns the offset of its `-->`; `from` is where to search on.
pub(crate) fn comment(input: &[u8], at: usize, from: usize) -> Res<usize> {
    match memchr::memmem::find(&input[from.max(at)..], b"--") {
        None => end("a comment", input.len()),
        Some(i) => {
            let dashes = from.max(at) + i;
            if byte(input, dashes + 2, "a comment")? != b'>' {
                return syntax("`--` in a comment", dashes);
            }
            Ok(dashes)
        }
    }
}

/// A processing instruction's parts.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Pi {
    pub target_end: usize,
    pub data: usize,
    pub data_end: usize,
    pub end: usize,
}

/// A processing instruction; `at` is after its `<?`, `from` is where to search its end.
pub(crate) fn pi(input: &[u8], at: usize, from: usize, limits: &Limits) -> Res<Pi> {
    const WHAT: &str = "a processing instruction";
    let target_end = name(input, at, limits, WHAT)?;
    let target = &input[at..target_end];
    if target.eq_ignore_ascii_case(b"xml") {
        return syntax("an XML declaration is allowed only at the very start", at);
    }
    if !crate::is_name(text(target)) {
        return syntax("expected the target of a processing instruction", at);
    }
    if target.contains(&b':') {
        return fault(ErrorKind::Namespace, "a colon in the target of a processing instruction", at);
    }
    let data = spaces(input, target_end);
    let from = from.max(data);
    let Some(data_end) = memchr::memmem::find(&input[from..], b"?>").map(|i| from + i) else {
        if data == target_end && data < input.len() && input[data] != b'?' {
            return syntax("expected white space behind the target of a processing instruction", data);
        }
        return end(WHAT, input.len());
    };
    if data == target_end && data_end != data {
        return syntax("expected white space behind the target of a processing instruction", data);
    }
    Ok(Pi { target_end, data, data_end, end: data_end + 2 })
}

/// The XML declaration.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct XmlDecl {
    /// Value span of `encoding`.
    pub encoding: Option<(usize, usize)>,
    pub standalone: Option<bool>,
    pub end: usize,
}

/// The XML declaration ([23]), or the text declaration ([77]) of an external entity; `input` starts with `<?xml`.
pub(crate) fn xml_decl(input: &[u8], external: bool) -> Res<XmlDecl> {
    const WHAT: &str = "the XML declaration";
    let mut decl = XmlDecl::default();
    let mut p = 5;
    let mut stage = 0;
    loop {
        let space = p;
        p = spaces(input, p);
        if byte(input, p, WHAT)? == b'?' {
            if byte(input, p + 1, WHAT)? != b'>' {
                return syntax("expected `?>`", p);
            }
            if (!external && stage == 0) || (external && decl.encoding.is_none()) {
                let pseudo_attribute = if external { "`encoding`" } else { "`version`" };
                return syntax(format!("the XML declaration needs {pseudo_attribute}"), p);
            }
            decl.end = p + 2;
            return Ok(decl);
        }
        if space == p {
            return syntax("expected white space in the XML declaration", p);
        }
        let start = p;
        while byte(input, p, WHAT)?.is_ascii_lowercase() {
            p += 1;
        }
        let key = &input[start..p];
        p = spaces(input, p);
        if byte(input, p, WHAT)? != b'=' {
            return syntax("expected `=` in the XML declaration", p);
        }
        p = spaces(input, p + 1);
        let quote = byte(input, p, WHAT)?;
        if quote != b'"' && quote != b'\'' {
            return syntax("expected a quoted value in the XML declaration", p);
        }
        let value = p + 1;
        p = value;
        while byte(input, p, WHAT)? != quote {
            p += 1;
        }
        let text = &input[value..p];
        p += 1;
        let ok = match key {
            b"version" if stage == 0 => {
                stage = 1;
                // XML 1.1 may include 1.0, not the other way round (XML 1.1, 4.3.4).
                text.len() > 2
                    && text.starts_with(b"1.")
                    && !(external && text == b"1.1")
                    && text[2..].iter().all(u8::is_ascii_digit)
            }
            b"encoding" if stage == 1 || (external && stage == 0) => {
                stage = 2;
                decl.encoding = Some((value, p - 1));
                text.first().is_some_and(u8::is_ascii_alphabetic)
                    && text.iter().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(b))
            }
            b"standalone" if !external && (stage == 1 || stage == 2) => {
                stage = 3;
                decl.standalone = Some(text == b"yes");
                text == b"yes" || text == b"no"
            }
            _ => return syntax("unexpected in the XML declaration", start),
        };
        if !ok {
            return syntax("not an allowed value in the XML declaration", value);
        }
    }
}

/// Appends the normalised value (XML 1.0, 3.3.3) of the attribute value `input[at..to]`: references replaced, tabs and
/// line ends as spaces. `entity` appends the replacement text of a general entity.
pub(crate) fn attribute_value(
    input: &[u8],
    at: usize,
    to: usize,
    limits: &Limits,
    out: &mut String,
    entity: &mut dyn FnMut(&str, usize, &mut String) -> Res<()>,
) -> Res<()> {
    let mut p = at;
    while p < to {
        // No byte in the value is this quote; the search stops only at special characters.
        let e = value_end(&input[..to], p, b'&');
        out.push_str(text(&input[p..e]));
        p = e;
        match input[..to].get(p) {
            None => break,
            // The value is complete: a reference that is cut off will not be completed.
            Some(b'&') => match reference(&input[..to], p, limits).map_err(cut_reference)? {
                (Reference::Char(c), e) => {
                    out.push(c);
                    p = e;
                }
                (Reference::Entity, e) => {
                    entity(text(&input[p + 1..e - 1]), p, out)?;
                    p = e;
                }
            },
            Some(b'<') => return syntax("`<` in an attribute value", p),
            Some(b'\r') if input[..to].get(p + 1) == Some(&b'\n') => p += 1,
            Some(_) => {
                out.push(' ');
                p += 1;
            }
        }
    }
    Ok(())
}

#[cold]
fn cut_reference(mut fault: Box<Fault>) -> Box<Fault> {
    if fault.kind == ErrorKind::UnexpectedEnd {
        fault.kind = ErrorKind::Syntax;
        fault.message = "expected `;` at the end of a reference (a bare `&` is written `&amp;`)".into();
    }
    fault
}

/// Appends `raw` with every line end (`\r\n`, `\r`) as `\n` (XML 1.0, 2.11).
pub(crate) fn push_lines(out: &mut String, raw: &str) {
    let mut rest = raw;
    while let Some(i) = memchr::memchr(b'\r', rest.as_bytes()) {
        out.push_str(&rest[..i]);
        out.push('\n');
        rest = &rest[i + 1..];
        rest = rest.strip_prefix('\n').unwrap_or(rest);
    }
    out.push_str(rest);
}

/// Removes leading and trailing spaces and makes runs of them one, in `out[from..]` (attributes that are not CDATA).
pub(crate) fn collapse(out: &mut String, from: usize) {
    let tokens: Vec<&str> = out[from..].split(' ').filter(|t| !t.is_empty()).collect();
    let joined = tokens.join(" ");
    out.truncate(from);
    out.push_str(&joined);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references() {
        for (input, want) in [
            ("&amp;", Some(Reference::Char('&'))),
            ("&#65;", Some(Reference::Char('A'))),
            ("&#x1F600;", Some(Reference::Char('\u{1F600}'))),
            ("&foo;", Some(Reference::Entity)),
            ("&#0;", None),
            ("&#xFFFE;", None),
            ("&#xD800;", None),
            ("&#99999999999;", None),
            ("&#;", None),
            ("&#X41;", None),
            ("& ;", None),
            ("&amp ;", None),
            ("&amp", None),
        ] {
            assert_eq!(reference(input.as_bytes(), 0, &Limits::default()).ok().map(|r| r.0), want, "{input}");
        }
    }

    #[test]
    fn declarations() {
        for (input, ok) in [
            ("<?xml version='1.0'?>", true),
            ("<?xml version=\"1.7\" encoding = 'UTF-8' standalone='no' ?>", true),
            ("<?xml encoding='UTF-8'?>", false),
            ("<?xml version='1.0' standalone='maybe'?>", false),
            ("<?xml version='1.0' standalone='yes' encoding='a'?>", false),
            ("<?xml version='2.0'?>", false),
            ("<?xml version='1.0'encoding='a'?>", false),
            ("<?xml version='1.0' encoding='-a'?>", false),
            ("<?xml version='1.0'", false),
        ] {
            assert_eq!(xml_decl(input.as_bytes(), false).is_ok(), ok, "{input}");
        }
        assert!(xml_decl(b"<?xml encoding='a'?>", true).is_ok());
    }
}
