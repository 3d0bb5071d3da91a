//! JSON and its XML view, both ways, by the mapping of WSO2's JSON builder and formatter.
//!
//! To XML: the root is `jsonObject`, `jsonArray` or `jsonValue`; members become elements, arrays repeated
//! elements (`jsonElement` where they have no name), `"@a"` attributes, `"$"` text. To JSON: namespaces are
//! dropped, adjacent repeated siblings become arrays, texts that look like JSON literals become literals.

use serde_json::Value;
use std::fmt::Write;
use xml::{Document, NodeId, NodeKind};

/// Deepest nesting of a JSON text that gets an XML view.
const MAX_DEPTH: usize = 128;
/// Prefix of element names whose member name starts with a digit.
const DIGIT_PREFIX: &str = "_JsonReader_PD_";
/// Prefix of element names whose member name starts with `$`.
const DOLLAR_PREFIX: &str = "_JsonReader_PS_";

/// Appends the XML view of `value` under `parent` and returns its root element.
pub fn to_xml(value: &Value, document: &mut Document, parent: NodeId) -> NodeId {
    match value {
        Value::Object(_) => {
            let root = document.append_element(parent, "", "", "jsonObject");
            content(value, document, root, 0);
            root
        }
        Value::Array(_) => {
            let root = document.append_element(parent, "", "", "jsonArray");
            content(value, document, root, 0);
            root
        }
        scalar => {
            let root = document.append_element(parent, "", "", "jsonValue");
            document.append_text(root, &scalar.to_string());
            root
        }
    }
}

/// The content of one value inside its element.
fn content(value: &Value, document: &mut Document, element: NodeId, depth: usize) {
    if depth > MAX_DEPTH {
        return; // serde_json refuses deeper texts already
    }
    match value {
        Value::Null => {}
        Value::String(text) => {
            if !text.is_empty() {
                document.append_text(element, text);
            }
        }
        Value::Bool(_) | Value::Number(_) => {
            document.append_text(element, &value.to_string());
        }
        Value::Array(items) => {
            for item in items {
                let child = document.append_element(element, "", "", "jsonElement");
                nested(item, document, child, depth + 1);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                if let Some(attribute) = name.strip_prefix('@').filter(|rest| !rest.is_empty())
                    && !member.is_object()
                    && !member.is_array()
                {
                    document.set_attribute(element, "", "", attribute, &scalar_text(member));
                } else if name == "$" && !member.is_object() && !member.is_array() {
                    document.append_text(element, &scalar_text(member));
                } else if let Value::Array(items) = member {
                    let name = element_name(name);
                    for item in items {
                        let child = document.append_element(element, "", "", &name);
                        nested(item, document, child, depth + 1);
                    }
                } else {
                    let child = document.append_element(element, "", "", &element_name(name));
                    content(member, document, child, depth + 1);
                }
            }
        }
    }
}

/// An item of an array: an array inside an array keeps a level of its own.
fn nested(item: &Value, document: &mut Document, element: NodeId, depth: usize) {
    let element =
        if item.is_array() { document.append_element(element, "", "", "jsonArray") } else { element };
    content(item, document, element, depth);
}

fn scalar_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn element_name(name: &str) -> String {
    match name.chars().next() {
        Some(first) if first.is_ascii_digit() => format!("{DIGIT_PREFIX}{name}"),
        Some('$') if name.len() > 1 => format!("{DOLLAR_PREFIX}{}", &name[1..]),
        _ => name.to_owned(),
    }
}

fn member_name(name: &str) -> String {
    if let Some(rest) = name.strip_prefix(DIGIT_PREFIX) {
        rest.to_owned()
    } else if let Some(rest) = name.strip_prefix(DOLLAR_PREFIX) {
        format!("${rest}")
    } else {
        name.to_owned()
    }
}

/// The JSON text of an element: `{"name": …}`, or the value itself for the roots that [`to_xml`] makes.
pub fn from_xml(document: &Document, element: NodeId) -> String {
    let mut out = String::new();
    match document.local(element) {
        "jsonObject" => write_object(document, element, &mut out, 0),
        "jsonArray" => write_array(document, element, &mut out, 0),
        "jsonElement" => write_element(document, element, &mut out, 0),
        "jsonValue" => out.push_str(&document.string_value(element)),
        name => {
            out.push('{');
            write_string(&member_name(name), &mut out);
            out.push(':');
            write_element(document, element, &mut out, 0);
            out.push('}');
        }
    }
    out
}

/// The value of one element.
fn write_element(document: &Document, element: NodeId, out: &mut String, depth: usize) {
    let only_array = {
        let mut elements = document.children(element).filter(|&n| document.kind(n) == NodeKind::Element);
        elements.next().filter(|&first| document.local(first) == "jsonArray" && elements.next().is_none())
    };
    let has_attributes = document.attributes(element).next().is_some();
    if let Some(array) = only_array
        && !has_attributes
    {
        write_array(document, array, out, depth + 1);
        return;
    }
    let has_elements = document.children(element).any(|n| document.kind(n) == NodeKind::Element);
    if has_elements && !has_attributes {
        // Items without an array around them: several are an array, one stands for itself.
        let mut elements = document.children(element).filter(|&n| document.kind(n) == NodeKind::Element);
        if elements.all(|item| document.local(item) == "jsonElement") {
            let mut items = document.children(element).filter(|&n| document.kind(n) == NodeKind::Element);
            return match (items.next(), items.next()) {
                (Some(only), None) if depth < MAX_DEPTH * 4 => write_element(document, only, out, depth + 1),
                _ => write_array(document, element, out, depth + 1),
            };
        }
    }
    if has_attributes || has_elements {
        write_object(document, element, out, depth);
        return;
    }
    let text = document.string_value(element);
    if text.trim().is_empty() { out.push_str("null") } else { write_literal(&text, out) }
}

fn write_array(document: &Document, array: NodeId, out: &mut String, depth: usize) {
    out.push('[');
    let mut first = true;
    for item in document.children(array).filter(|&n| document.kind(n) == NodeKind::Element) {
        if !std::mem::take(&mut first) {
            out.push(',');
        }
        write_element(document, item, out, depth + 1);
    }
    out.push(']');
}

fn write_object(document: &Document, element: NodeId, out: &mut String, depth: usize) {
    if depth > MAX_DEPTH * 4 {
        out.push_str("null"); // the XML parser's own depth limit is lower
        return;
    }
    out.push('{');
    let mut first = true;
    let mut comma = |out: &mut String| {
        if !std::mem::take(&mut first) {
            out.push(',');
        }
    };
    for attribute in document.attributes(element) {
        comma(out);
        write_string(&format!("@{}", document.local(attribute)), out);
        out.push(':');
        write_string(document.text(attribute), out);
    }
    let mut text = String::new();
    let mut forced_array: Option<String> = None;
    let mut next = document.first_child(element);
    while let Some(node) = next {
        next = document.next_sibling(node);
        match document.kind(node) {
            NodeKind::Text => text.push_str(document.text(node)),
            NodeKind::ProcessingInstruction if document.local(node) == "xml-multiple" => {
                forced_array = Some(document.text(node).trim().to_owned());
            }
            NodeKind::Element => {
                let name = document.local(node);
                comma(out);
                write_string(&member_name(name), out);
                out.push(':');
                let mut run = vec![node];
                while let Some(sibling) = next_element_of_run(document, next, name) {
                    run.push(sibling);
                    next = document.next_sibling(sibling);
                }
                let forced = forced_array.take().is_some_and(|forced| forced == name || forced.is_empty());
                if run.len() > 1 || forced {
                    out.push('[');
                    for (index, &item) in run.iter().enumerate() {
                        if index > 0 {
                            out.push(',');
                        }
                        write_element(document, item, out, depth + 1);
                    }
                    out.push(']');
                } else {
                    write_element(document, node, out, depth + 1);
                }
            }
            _ => {}
        }
    }
    if !text.trim().is_empty() {
        comma(out);
        out.push_str("\"$\":");
        write_literal(&text, out);
    }
    out.push('}');
}

/// The next element, if it continues a run of siblings called `name`; white space and comments between do not end it.
fn next_element_of_run(document: &Document, mut from: Option<NodeId>, name: &str) -> Option<NodeId> {
    while let Some(node) = from {
        match document.kind(node) {
            NodeKind::Element => return (document.local(node) == name).then_some(node),
            NodeKind::Text if !document.text(node).trim().is_empty() => return None,
            _ => from = document.next_sibling(node),
        }
    }
    None
}

/// A text that is exactly a JSON literal is written as that literal, digits unchanged; any other as a string.
fn write_literal(text: &str, out: &mut String) {
    if matches!(text, "true" | "false" | "null") || is_json_number(text) {
        out.push_str(text);
    } else {
        write_string(text, out);
    }
}

/// Writes a JSON string with its quotes.
pub fn write_string(text: &str, out: &mut String) {
    out.push('"');
    escape(text, out);
    out.push('"');
}

/// Escapes a text for the inside of a JSON string.
pub fn escape(text: &str, out: &mut String) {
    let mut run = 0;
    for (at, byte) in text.bytes().enumerate() {
        let short = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0c => "\\f",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(&text[run..at]);
        if short.is_empty() {
            let _ = write!(out, "\\u{byte:04x}"); // writing to a String cannot fail
        } else {
            out.push_str(short);
        }
        run = at + 1;
    }
    out.push_str(&text[run..]);
}

/// `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`
pub fn is_json_number(text: &str) -> bool {
    let digits = |bytes: &[u8]| bytes.iter().take_while(|b| b.is_ascii_digit()).count();
    let mut rest = text.as_bytes();
    rest = rest.strip_prefix(b"-").unwrap_or(rest);
    let whole = digits(rest);
    if whole == 0 || (whole > 1 && rest[0] == b'0') {
        return false;
    }
    rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix(b".") {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = &fraction[count..];
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent = exponent.strip_prefix(b"+").or(exponent.strip_prefix(b"-")).unwrap_or(exponent);
        return !exponent.is_empty() && digits(exponent) == exponent.len();
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(json: &str) -> String {
        let mut document = Document::new();
        let root = to_xml(&serde_json::from_str(json).unwrap(), &mut document, Document::ROOT);
        let mut out = Vec::new();
        xml::write(&document, root, &xml::WriteOptions::default(), &mut out);
        String::from_utf8(out).unwrap()
    }

    fn back(xml: &str) -> String {
        let document = Document::parse(xml.as_bytes().to_vec(), &xml::ParseOptions::default()).unwrap();
        from_xml(&document, document.document_element().unwrap())
    }

    #[test]
    fn json_gets_the_xml_view_of_the_reference() {
        for (json, xml) in [
            (r#"{"a":1,"b":"x"}"#, "<jsonObject><a>1</a><b>x</b></jsonObject>"),
            ("[1,2]", "<jsonArray><jsonElement>1</jsonElement><jsonElement>2</jsonElement></jsonArray>"),
            ("\"x\"", "<jsonValue>\"x\"</jsonValue>"),
            (r#"{"k":null,"e":"","o":{}}"#, "<jsonObject><k/><e/><o/></jsonObject>"),
            (r#"{"k":[1,{"z":2}],"n":[]}"#, "<jsonObject><k>1</k><k><z>2</z></k></jsonObject>"),
            (
                "[[1]]",
                "<jsonArray><jsonElement><jsonArray><jsonElement>1</jsonElement></jsonArray></jsonElement></jsonArray>",
            ),
            (
                r#"{"@c":"x","a":[1],"b":[],"1d":"y"}"#,
                r#"<jsonObject c="x"><a>1</a><_JsonReader_PD_1d>y</_JsonReader_PD_1d></jsonObject>"#,
            ),
            (r#"{"p":{"z":{"q":1},"@a":"v"}}"#, r#"<jsonObject><p a="v"><z><q>1</q></z></p></jsonObject>"#),
            (
                r#"{"t":{"@u":1,"$":"text"},"$x":1.50}"#,
                r#"<jsonObject><t u="1">text</t><_JsonReader_PS_x>1.50</_JsonReader_PS_x></jsonObject>"#,
            ),
        ] {
            assert_eq!(view(json), xml, "{json}");
        }
    }

    #[test]
    fn xml_becomes_the_json_of_the_reference() {
        for (xml, json) in [
            (
                r#"<p n="M"><price>500.0</price><t>1</t><t>2</t><d/></p>"#,
                r#"{"p":{"@n":"M","price":500.0,"t":[1,2],"d":null}}"#,
            ),
            (
                r#"<pizza-topping category="NONVEG">Steak</pizza-topping>"#,
                r#"{"pizza-topping":{"@category":"NONVEG","$":"Steak"}}"#,
            ),
            (
                "<jsonObject><a>007</a><b>true</b><c>-0.5e3</c></jsonObject>",
                r#"{"a":"007","b":true,"c":-0.5e3}"#,
            ),
            ("<jsonArray><jsonElement>1</jsonElement></jsonArray>", "[1]"),
            (
                "<jsonObject><k><jsonArray><jsonElement>1</jsonElement></jsonArray></k></jsonObject>",
                r#"{"k":[1]}"#,
            ),
            (
                "<e><jsonElement>1</jsonElement><jsonElement><z>2</z></jsonElement></e>",
                r#"{"e":[1,{"z":2}]}"#,
            ),
            ("<e><jsonElement>1</jsonElement></e>", r#"{"e":1}"#),
            ("<jsonValue>\"x\"</jsonValue>", "\"x\""),
            ("<n:a xmlns:n='urn:n'><n:b>x</n:b></n:a>", r#"{"a":{"b":"x"}}"#),
            ("<a>\n <?xml-multiple b?><b>1</b>\n</a>", r#"{"a":{"b":[1]}}"#),
            ("<a>hello <b>1</b></a>", r#"{"a":{"b":1,"$":"hello "}}"#),
            ("<a>q\"\\&#9;</a>", r#"{"a":"q\"\\\t"}"#),
        ] {
            assert_eq!(back(xml), json, "{xml}");
        }
    }

    #[test]
    fn numbers_are_those_of_json() {
        for (text, is) in [
            ("0", true),
            ("-1", true),
            ("1.0", true),
            ("1e5", true),
            ("1E+5", true),
            ("4.00", true),
            ("", false),
            ("-", false),
            ("01", false),
            ("+1", false),
            (" 1", false),
            ("1.", false),
            (".5", false),
            ("1e", false),
            ("NaN", false),
        ] {
            assert_eq!(is_json_number(text), is, "{text}");
        }
    }
}
