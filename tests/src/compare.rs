//! When two documents, JSON values or strings count as the same.

use crate::{Failure, failure, short};
use fancy_regex::Regex;
use serde_json::{Map, Value};
use std::fmt::Write as _;
use xml::{Document, Dtd, NodeId, NodeKind, ParseOptions};

/// Parses a document of a case. A document type declaration is allowed; nothing external is read.
pub fn parse(bytes: &[u8], what: &str) -> Result<Document, Failure> {
    let options = ParseOptions { dtd: Dtd::Internal, ..ParseOptions::trusted() };
    Document::parse(bytes.to_vec(), &options)
        .map_err(|e| failure!("{what} is no XML ({e}): {}", short(&String::from_utf8_lossy(bytes), 300)))
}

/// The element children of a node.
pub fn elements(doc: &Document, node: NodeId) -> Vec<NodeId> {
    doc.children(node).filter(|&n| doc.kind(n) == NodeKind::Element).collect()
}

/// An element in a comparable form: names by namespace, attributes sorted, text trimmed and dropped where it is only
/// white space, no comments.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Infoset {
    name: (String, String),
    attributes: Vec<((String, String), String)>,
    children: Vec<Item>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Element(Infoset),
    Text(String),
}

impl Infoset {
    /// Of an element.
    pub fn of(doc: &Document, element: NodeId) -> Infoset {
        let name = |n| (doc.namespace(n).to_owned(), doc.local(n).to_owned());
        let mut attributes: Vec<_> =
            doc.attributes(element).map(|a| (name(a), doc.text(a).to_owned())).collect();
        attributes.sort();
        let mut children = Vec::new();
        let mut run = String::new();
        for child in doc.children(element) {
            match doc.kind(child) {
                NodeKind::Text => {
                    run.push_str(doc.text(child));
                    continue;
                }
                // A comment separates the texts around it: each is trimmed for itself.
                _ => push_text(&mut children, &mut run),
            }
            if doc.kind(child) == NodeKind::Element {
                children.push(Item::Element(Infoset::of(doc, child)));
            }
        }
        push_text(&mut children, &mut run);
        Infoset { name: name(element), attributes, children }
    }

    /// Of a whole document.
    pub fn parse(bytes: &[u8], what: &str) -> Result<Infoset, Failure> {
        let doc = parse(bytes, what)?;
        let root = doc.document_element().ok_or_else(|| failure!("{what} has no element"))?;
        Ok(Infoset::of(&doc, root))
    }

    /// A line for each element and text.
    pub fn show(&self) -> String {
        let mut out = String::new();
        self.lines(0, &mut out);
        out
    }

    fn lines(&self, depth: usize, out: &mut String) {
        let name = |(uri, local): &(String, String)| {
            if uri.is_empty() { local.clone() } else { format!("{{{uri}}}{local}") }
        };
        let _ = write!(out, "{}{}", "  ".repeat(depth), name(&self.name));
        for (attribute, value) in &self.attributes {
            let _ = write!(out, " {}={value:?}", name(attribute));
        }
        out.push('\n');
        for child in &self.children {
            match child {
                Item::Element(e) => e.lines(depth + 1, out),
                Item::Text(t) => {
                    let _ = writeln!(out, "{}{t:?}", "  ".repeat(depth + 1));
                }
            }
        }
    }
}

fn push_text(children: &mut Vec<Item>, run: &mut String) {
    let text = std::mem::take(run);
    let text = text.trim();
    match children.last_mut() {
        _ if text.is_empty() => {}
        Some(Item::Text(before)) => before.push_str(text),
        _ => children.push(Item::Text(text.to_owned())),
    }
}

/// What two lists of elements look like, one above the other.
pub fn difference(expected: &[Infoset], actual: &[Infoset]) -> String {
    let show = |list: &[Infoset]| match list {
        [] => "(none)\n".to_owned(),
        _ => list.iter().map(Infoset::show).collect(),
    };
    format!("\n--- expected\n{}--- actual\n{}", show(expected), show(actual))
}

/// JSON values are equal: numbers by value, objects in any order.
pub fn same_json(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|w| same_json(v, w)))
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(v, w)| same_json(v, w))
        }
        _ => a == b,
    }
}

/// The same value with the members of every array and object in one order.
pub fn any_order(value: &Value) -> Value {
    match value {
        Value::Array(list) => {
            let mut list: Vec<Value> = list.iter().map(any_order).collect();
            list.sort_by_cached_key(Value::to_string);
            Value::Array(list)
        }
        Value::Object(map) => {
            let mut members: Vec<_> = map.iter().map(|(k, v)| (k.clone(), any_order(v))).collect();
            members.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(members.into_iter().collect::<Map<_, _>>())
        }
        _ => value.clone(),
    }
}

/// The value at `$.a.b[0]['c d']`; `None`: there is no such place.
pub fn json_at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let mut value = value;
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    while !rest.is_empty() {
        let name;
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            (name, rest) = after.split_at(end);
        } else {
            let (inside, after) = rest.strip_prefix('[')?.split_once(']')?;
            rest = after;
            match inside.parse::<i64>() {
                Ok(index) => {
                    let list = value.as_array()?;
                    let from_end = usize::try_from(-index).ok().and_then(|n| list.len().checked_sub(n));
                    value = list.get(usize::try_from(index).ok().or(from_end)?)?;
                    continue;
                }
                Err(_) => name = inside.trim_matches(['\'', '"']),
            }
        }
        value = value.as_object()?.get(name)?;
    }
    Some(value)
}

/// A JSON value as text for a message to send: members separated by `, `, names and values by `: `, only ASCII.
pub fn json_text(value: &Value) -> String {
    match value {
        Value::String(s) => json_string(s),
        Value::Array(list) => {
            format!("[{}]", list.iter().map(json_text).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => {
            let member = |(k, v): (&String, &Value)| format!("{}: {}", json_string(k), json_text(v));
            format!("{{{}}}", map.iter().map(member).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

fn json_string(text: &str) -> String {
    let mut out = String::new();
    for c in Value::from(text).to_string().chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out
}

/// A scalar as it is compared with text: strings as they are, the rest as JSON.
pub fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Whether a regular expression is found in the text.
pub fn found(pattern: &str, text: &str) -> Result<bool, Failure> {
    let regex = Regex::new(pattern).map_err(|e| failure!("regular expression {pattern:?}: {e}"))?;
    regex.is_match(text).map_err(|e| failure!("regular expression {pattern:?}: {e}"))
}

/// Whether a regular expression matches the whole text.
pub fn matches(pattern: &str, text: &str) -> Result<bool, Failure> {
    found(&format!(r"\A(?:{pattern})\z"), text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn infosets() {
        #[rustfmt::skip]
        let cases = [
            ("<a x='1' y='2'> b <c/>\n</a>", "<a y='2' x='1'>b<c></c></a>", true),
            ("<p:a xmlns:p='u'/>", "<a xmlns='u'/>", true),
            ("<a xmlns:unused='u'/>", "<a/>", true),
            ("<a>1<!-- c -->2</a>", "<a>12</a>", true),
            ("<a>1 <!-- c --> 2</a>", "<a>12</a>", true),
            ("<a>1 2</a>", "<a>12</a>", false),
            ("<a><![CDATA[<]]>b</a>", "<a>&lt;b</a>", true),
            ("<a/>", "<a xmlns='u'/>", false),
            ("<a x='1'/>", "<a x='2'/>", false),
            ("<a><b/><c/></a>", "<a><c/><b/></a>", false),
            ("<a>x</a>", "<a>y</a>", false),
            ("<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>", "<a>x</a>", true),
        ];
        for (a, b, same) in cases {
            let of = |s: &str| Infoset::parse(s.as_bytes(), "it").unwrap_or_else(|e| panic!("{s}: {e}"));
            assert_eq!(of(a) == of(b), same, "{a} and {b}\n{}", difference(&[of(a)], &[of(b)]));
        }
        assert!(Infoset::parse(b"<a>", "it").is_err());
    }

    #[test]
    fn json_values() {
        #[rustfmt::skip]
        let cases = [
            (json!({"a":1,"b":[true,null]}), json!({"b":[true,null],"a":1.0}), true),
            (json!(1), json!("1"), false), (json!(true), json!(1), false), (json!([1,2]), json!([2,1]), false),
            (json!({"a":1}), json!({"a":1,"b":2}), false), (json!(1e2), json!(100), true),
        ];
        for (a, b, same) in cases {
            assert_eq!(same_json(&a, &b), same, "{a} and {b}");
        }
        let (a, b) = (json!([{"x":1,"y":2},[3,4]]), json!([[4,3],{"y":2,"x":1}]));
        assert!(same_json(&any_order(&a), &any_order(&b)));
        let value = json!({"a":{"b":[10,20]},"c d":{"":1}});
        for (path, wanted) in
            [("$.a.b[1]", "20"), ("$.a.b[-2]", "10"), ("$['c d']", "{\"\":1}"), ("$['c d']['']", "1")]
        {
            assert_eq!(json_at(&value, path).map(Value::to_string).as_deref(), Some(wanted), "{path}");
        }
        for path in ["$.x", "$.a[0]", "$.a.b[2]", "$.a.b.c", "$.a.b[-3]"] {
            assert_eq!(json_at(&value, path), None, "{path}");
        }
        assert_eq!(json_text(&json!({"a":[1,"é\"😀"]})), r#"{"a": [1, "\u00e9\"\ud83d\ude00"]}"#);
    }
}
