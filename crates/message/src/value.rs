//! Values of message properties and variables.

use std::fmt;
use std::sync::Arc;
use xml::{Document, NodeId, NodeKind};

/// Nodes of a document that a property owns: what Synapse calls an OM element, or a list of them.
#[derive(Clone, Debug)]
pub struct XmlValue {
    /// The document that holds the nodes and nothing else that matters.
    pub document: Arc<Document>,
    /// The nodes, in the order in which they were selected.
    pub nodes: Vec<NodeId>,
}

impl XmlValue {
    /// Copies `nodes` out of `document`, so that later changes of the message do not reach the property. The namespace
    /// of an envelope around them stays behind where nothing in them needs it.
    pub fn copy_of(document: &Document, nodes: &[NodeId]) -> XmlValue {
        let mut target = Document::new();
        let copy = |&node: &NodeId| XmlValue::copy_to(&mut target, Document::ROOT, document, node);
        let nodes = nodes.iter().map(copy).collect();
        XmlValue { document: Arc::new(target), nodes }
    }

    /// A copy of one node, so, as the last child of a node of another tree.
    pub fn copy_to(target: &mut Document, parent: NodeId, document: &Document, node: NodeId) -> NodeId {
        crate::envelope::copy_out(target, parent, document, node)
    }

    /// Whether an element is among them.
    pub fn has_elements(&self) -> bool {
        self.nodes.iter().any(|node| self.document.kind(*node) == NodeKind::Element)
    }

    /// The nodes serialised one after the other.
    pub fn to_xml(&self) -> String {
        let mut out = Vec::new();
        for &node in &self.nodes {
            xml::write(&self.document, node, &xml::WriteOptions::default(), &mut out);
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    /// The text of the nodes, as mediators that want a string see it.
    pub fn string_value(&self) -> String {
        self.nodes.iter().map(|&node| self.document.string_value(node)).collect()
    }
}

/// The value of a property, a variable or a template parameter.
///
/// The types are those of `<property type="…">`; INTEGER, SHORT and LONG are one type here, as are DOUBLE and FLOAT.
#[derive(Clone, Debug)]
pub enum Value {
    /// STRING, and whatever has no other type.
    String(Arc<str>),
    /// INTEGER, SHORT, LONG.
    Integer(i64),
    /// A number of an expression or a script; its text is that of XPath: `3`.
    Double(f64),
    /// DOUBLE, FLOAT; its text is that of Java: `3.0`.
    JavaDouble(f64),
    /// BOOLEAN.
    Boolean(bool),
    /// OM: elements, or a list of nodes.
    Xml(Arc<XmlValue>),
    /// JSON.
    Json(Arc<serde_json::Value>),
}

impl Value {
    /// About how many bytes the value keeps outside of itself.
    pub fn size(&self) -> usize {
        match self {
            Value::String(text) => text.len(),
            Value::Xml(xml) => xml.document.tree_size(),
            Value::Json(json) => crate::json::size_of(json),
            _ => 0,
        }
    }

    /// A string value.
    pub fn string(text: impl AsRef<str>) -> Value {
        Value::String(Arc::from(text.as_ref()))
    }

    /// The string, when the value is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// Whether engine code that asks for `"true"` or Boolean TRUE accepts the value.
    ///
    /// WSO2 wants a string for some properties and a Boolean for others; Busbar accepts both everywhere.
    pub fn is_true(&self) -> bool {
        match self {
            Value::Boolean(value) => *value,
            Value::String(text) => text.trim().eq_ignore_ascii_case("true"),
            _ => false,
        }
    }

    /// The value as a whole number, also from a numeric string (`HTTP_SC` may be either).
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Value::Integer(value) => Some(*value),
            Value::Double(value) | Value::JavaDouble(value) if value.fract() == 0.0 => Some(*value as i64),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        }
    }
}

/// The string that mediators see: XML as the text of its nodes, or as XML where it has no text of its own.
impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::String(text) => out.write_str(text),
            Value::Integer(value) => write!(out, "{value}"),
            Value::Double(value) => out.write_str(&number_text(*value)),
            Value::JavaDouble(value) => out.write_str(&java_number_text(*value)),
            Value::Boolean(value) => write!(out, "{value}"),
            Value::Xml(xml) => {
                for &node in &xml.nodes {
                    out.write_str(&crate::envelope::synapse_string(
                        &xml.document,
                        node,
                        xml.nodes.len() == 1,
                    ))?;
                }
                Ok(())
            }
            Value::Json(value) => match &**value {
                serde_json::Value::String(text) => out.write_str(text),
                other => write!(out, "{other}"),
            },
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::String(Arc::from(text))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::String(Arc::from(text))
    }
}

/// A number as XPath prints it: `3`, `0.5`, `NaN`. WSO2 prints Java doubles (`3.0`, `1.0E7`), which no
/// configuration wants; docs/compatibility.md says so.
pub fn number_text(value: f64) -> String {
    if value.is_nan() {
        "NaN".into()
    } else if value.is_infinite() {
        if value > 0.0 { "Infinity".into() } else { "-Infinity".into() }
    } else if value == 0.0 {
        "0".into()
    } else {
        format!("{value}")
    }
}

/// A number as Java writes a double: `3.0`, `1.0E7`, `Infinity`.
pub fn java_number_text(number: f64) -> String {
    if !number.is_finite() {
        return match number {
            number if number.is_nan() => "NaN".to_owned(),
            number if number > 0.0 => "Infinity".to_owned(),
            _ => "-Infinity".to_owned(),
        };
    }
    let size = number.abs();
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        let text = number.to_string();
        return if text.contains('.') { text } else { format!("{text}.0") };
    }
    let text = format!("{number:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if digits.contains('.') => format!("{digits}E{exponent}"),
        Some((digits, exponent)) => format!("{digits}.0E{exponent}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_written_as_java_does() {
        for (number, text) in [
            (3.0, "3.0"),
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.5, "1.5"),
            (-2.25, "-2.25"),
            (0.001, "0.001"),
            (0.0001, "1.0E-4"),
            (1e7, "1.0E7"),
            (12_345_678.9, "1.23456789E7"),
            (9_999_999.0, "9999999.0"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(java_number_text(number), text);
        }
    }

    #[test]
    fn numbers_print_as_in_xpath() {
        for (value, text) in [
            (3.0, "3"),
            (0.5, "0.5"),
            (-0.0, "0"),
            (1e7, "10000000"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(Value::Double(value).to_string(), text);
        }
    }

    #[test]
    fn the_namespace_of_the_envelope_stays_behind_unless_it_is_needed() {
        use xml::NodeKind;
        for (inside, wanted) in [
            ("<a><b>1</b></a>", "<a><b>1</b></a>"),
            ("<a xmlns='urn:x'/>", r#"<a xmlns="urn:x"/>"#),
            ("<a>s:Server</a>", r#"<a xmlns:s="http://schemas.xmlsoap.org/soap/envelope/">s:Server</a>"#),
            (
                "<a><b s:c='1'/></a>",
                r#"<a xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><b s:c="1"/></a>"#,
            ),
        ] {
            let text = format!(
                "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Body>{inside}</s:Body></s:Envelope>"
            );
            let document = Document::parse(text, &xml::ParseOptions::default()).unwrap();
            let node = document
                .descendants(Document::ROOT)
                .find(|&node| document.kind(node) == NodeKind::Element && document.local(node) == "a");
            assert_eq!(XmlValue::copy_of(&document, &[node.unwrap()]).to_xml(), wanted);
        }
    }

    #[test]
    fn truth_and_integers_are_read_from_strings_too() {
        assert!(Value::from("TRUE").is_true() && Value::Boolean(true).is_true());
        assert!(!Value::from("yes").is_true());
        assert_eq!(Value::from(" 404 ").as_integer(), Some(404));
        assert_eq!(Value::from("abc").as_integer(), None);
    }
}
