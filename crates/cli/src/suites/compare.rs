//! Compares what came with what is expected, as the unit-test framework does: form does not count.

use serde_json::{Map, Value};
use xml::c14n::{Options, canonicalize};
use xml::{Document, ParseOptions};

/// Whether two texts are the same: as XML or as JSON, and then without any white space.
pub fn is_same(actual: &str, expected: &str) -> bool {
    bare(actual) == bare(expected)
}

/// A text in the form that is compared.
pub fn bare(text: &str) -> String {
    let text = text.trim();
    let text =
        text.strip_prefix("<![CDATA[").and_then(|text| text.strip_suffix("]]>")).unwrap_or(text).trim();
    let written = as_xml(text).or_else(|| as_json(text)).unwrap_or_else(|| text.to_owned());
    written.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The canonical form of the root; what stands beside that does not count.
fn as_xml(text: &str) -> Option<String> {
    if !text.starts_with('<') {
        return None;
    }
    let document = Document::parse(text.as_bytes().to_vec(), &ParseOptions::default()).ok()?;
    let mut out = Vec::new();
    let options = Options { comments: true, ..Options::default() };
    canonicalize(&document, document.document_element()?, &options, &mut out);
    Some(String::from_utf8_lossy(&out).replace(" xmlns=\"\"", ""))
}

fn as_json(text: &str) -> Option<String> {
    serde_json::from_str(text).ok().map(|value: Value| sorted(value).to_string())
}

/// A value with its members by their names, and numbers by their value.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.into_iter().collect();
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(
                members.into_iter().map(|(name, value)| (name, sorted(value))).collect::<Map<_, _>>(),
            )
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        Value::Number(number) => {
            // Beyond that, a double is not the number.
            let exact = number.as_f64().filter(|value| value.abs() < 9e15);
            Value::Number(exact.and_then(serde_json::Number::from_f64).unwrap_or(number))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_does_not_count() {
        for (actual, expected, same) in [
            ("<a  x='1'><b xmlns=''/></a>", "<a x=\"1\">\n  <b></b>\n</a>", true),
            ("<?xml version='1.0'?><!-- c --><a x='1' y='2'/>", "<a y='2' x='1'></a>", true),
            ("{\"a\": [1, 2.0], \"b\":\"x y\"}", " {\"a\":[1,2.0],\"b\":\"xy\"}", true),
            ("{\"a\":1,\"b\":{\"c\":2,\"d\":3}}", "{\"b\":{\"d\":3,\"c\":2},\"a\":1}", true),
            ("[1, {\"a\":2}]", "[{\"a\":2}, 1]", false),
            ("{\"a\":10}", "{\"a\":10.0}", true),
            ("{\"a\":12345678901234567890}", "{\"a\":12345678901234567891}", false),
            ("{\"a\":\"1\"}", "{\"a\":1}", false),
            ("<![CDATA[<a/>]]>", "<a></a>", true),
            ("<a xmlns='urn:x'/>", "<a/>", false),
            ("a b", "ab", true),
            ("<a/>", "<b/>", false),
            ("<a", "<a", true),
            ("", " ", true),
        ] {
            assert_eq!(is_same(actual, expected), same, "{actual} {expected}");
        }
    }
}
