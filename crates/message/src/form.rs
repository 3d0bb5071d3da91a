//! `application/x-www-form-urlencoded`: pairs, and their XML view.

use crate::json::{Mapping, member_name};
use std::collections::HashMap;
use xml::{Document, NodeId, NodeKind};

/// Decodes `+` and `%xx`; a malformed escape stays as it is. Bytes that are not UTF-8 become U+FFFD.
pub fn decode(text: &str) -> String {
    decode_with(text, true)
}

/// As [`decode`], for URLs, where `+` is itself.
pub fn decode_percent(text: &str) -> String {
    decode_with(text, false)
}

fn decode_with(text: &str, plus: bool) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        match byte {
            b'+' if plus => bytes.push(b' '),
            b'%' => match (tail.first().and_then(hex), tail.get(1).and_then(hex)) {
                (Some(high), Some(low)) => {
                    bytes.push(high << 4 | low);
                    rest = &tail[2..];
                }
                _ => bytes.push(b'%'),
            },
            other => bytes.push(other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(byte: &u8) -> Option<u8> {
    (*byte as char).to_digit(16).map(|digit| digit as u8)
}

/// Percent-encodes everything but unreserved characters (a space is `%20`).
pub fn encode(text: &str, out: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(byte as char);
        } else {
            const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
            out.push('%');
            out.push(DIGITS[usize::from(byte >> 4)] as char);
            out.push(DIGITS[usize::from(byte & 15)] as char);
        }
    }
}

/// The `name=value` pairs of a query or a form; names as written, values decoded. A part without `=` belongs to
/// the value before it, as in WSO2.
pub fn pairs(text: &str) -> Vec<(&str, String)> {
    let mut pairs: Vec<(&str, String)> = Vec::new();
    for part in text.split('&').filter(|part| !part.is_empty()) {
        match part.split_once('=') {
            Some((name, value)) => pairs.push((name, decode(value))),
            None => match pairs.last_mut() {
                Some((_, value)) => {
                    value.push('&');
                    value.push_str(&decode(part));
                }
                None => pairs.push((part, String::new())),
            },
        }
    }
    pairs
}

/// Appends `<xformValues>` with an element per pair, of `query` (that of the request) and then of `form`; those of one name
/// stand together, where the first of them is. What no element name can have is escaped as in the JSON mapping.
pub fn to_xml(form: &str, query: &str, document: &mut Document, parent: NodeId) -> NodeId {
    let root = document.append_element(parent, "", "", "xformValues");
    let mut all: Vec<_> =
        pairs(query).into_iter().chain(pairs(form)).map(|(name, value)| (decode(name), value)).collect();
    let mut places = HashMap::new();
    for (place, (name, _)) in all.iter().enumerate() {
        places.entry(name.clone()).or_insert(place);
    }
    all.sort_by_key(|(name, _)| places[name]);
    let mapping = Mapping::default();
    for (name, value) in all {
        let element = document.append_element(root, "", "", &mapping.element_name(&name));
        if !value.is_empty() {
            document.append_text(element, &value);
        }
    }
    root
}

/// The form of an element: its children as `name=value`.
pub fn from_xml(document: &Document, element: NodeId) -> String {
    let mut out = String::new();
    for child in document.children(element).filter(|&child| document.kind(child) == NodeKind::Element) {
        if !out.is_empty() {
            out.push('&');
        }
        encode(&member_name(document.local(child)), &mut out);
        out.push('=');
        encode(&document.string_value(child), &mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_split_and_decoded() {
        assert_eq!(
            pairs("a=1+2&b=%C3%A9&c=&d&=x&e=%zz"),
            [
                ("a", "1 2".into()),
                ("b", "é".into()),
                ("c", "&d".into()),
                ("", "x".into()),
                ("e", "%zz".to_owned())
            ]
        );
        let mut out = String::new();
        encode("a b/é~", &mut out);
        assert_eq!(out, "a%20b%2F%C3%A9~");
    }

    #[test]
    fn a_form_has_an_xml_view_both_ways() {
        let mut document = Document::new();
        let root = to_xml("a=x+y&1b=2", "q=0", &mut document, Document::ROOT);
        assert_eq!(from_xml(&document, root), "q=0&a=x%20y&1b=2");
        let root = to_xml("a=1&b=2&a=3", "b=0", &mut document, Document::ROOT);
        assert_eq!(from_xml(&document, root), "b=0&b=2&a=1&a=3");
    }

    #[test]
    fn any_name_can_be_an_element() {
        for (form, again) in [
            ("a%20b=1&a+b=2", "a%20b=1&a%20b=2"),
            ("a<b=1", "a%3Cb=1"),
            ("%61=1", "a=1"),
            ("x:y=1&$=2&$z=3&@q=4&#=5", "x%3Ay=1&%24=2&%24z=3&%40q=4&%23=5"),
            ("a[]=1&a%5B%5D=2", "a%5B%5D=1&a%5B%5D=2"),
            ("-x=1&.x=2&1x=3", "-x=1&.x=2&1x=3"),
            ("=v&%00=1&%F0%9F%98%80=2", "_=v&%00=1&%F0%9F%98%80=2"),
            ("_JsonReader_PD_1=a", "1=a"),
            ("", ""),
        ] {
            let mut document = Document::new();
            let root = to_xml(form, "", &mut document, Document::ROOT);
            let mut text = Vec::new();
            xml::write(&document, root, &xml::WriteOptions::default(), &mut text);
            let read = Document::parse(text.clone(), &xml::ParseOptions::default());
            assert!(read.is_ok(), "{form}: {} {read:?}", String::from_utf8_lossy(&text));
            assert_eq!(from_xml(&document, root), again);
        }
    }
}
