//! Compares what came with what is expected, as the unit-test framework does: form does not count.

/// Whether two texts are the same: as XML without unneeded namespaces, as JSON, and then without any white space.
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

fn as_xml(text: &str) -> Option<String> {
    if !text.starts_with('<') {
        return None;
    }
    let document = xml::Document::parse(text.as_bytes().to_vec(), &xml::ParseOptions::default()).ok()?;
    let mut out = Vec::new();
    let options = xml::WriteOptions { declaration: false, ..Default::default() };
    xml::write(&document, document.document_element()?, &options, &mut out);
    Some(String::from_utf8(out).ok()?.replace(" xmlns=\"\"", ""))
}

fn as_json(text: &str) -> Option<String> {
    serde_json::from_str::<serde_json::Value>(text).ok().map(|value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_does_not_count() {
        for (actual, expected, same) in [
            ("<a  x='1'><b xmlns=''/></a>", "<a x=\"1\">\n  <b></b>\n</a>", true),
            ("{\"a\": [1, 2.0], \"b\":\"x y\"}", " {\"a\":[1,2.0],\"b\":\"xy\"}", true),
            ("{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", false),
            ("<![CDATA[<a/>]]>", "<a></a>", true),
            ("a b", "ab", true),
            ("<a/>", "<b/>", false),
            ("<a", "<a", true),
            ("", " ", true),
        ] {
            assert_eq!(is_same(actual, expected), same, "{actual} {expected}");
        }
    }
}
