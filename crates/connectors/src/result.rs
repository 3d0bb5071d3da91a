//! Results of operations as XML, as in connectors before there were variables.

use flow::{Context, Fault};
use message::{Envelope, SoapVersion, Value, XmlValue};
use serde_json::{Map, Value as Json};
use std::fmt::Write;
use std::sync::Arc;
use xml::{Document, ParseOptions};

/// An element with the members of a result as elements. A member whose name cannot be that of an element becomes `item` with the attribute `name`.
pub(crate) fn xml(name: &str, members: &Map<String, Json>) -> String {
    let mut out = String::new();
    element_of(name, &Json::Object(members.clone()), &mut out);
    out
}

fn element_of(name: &str, value: &Json, out: &mut String) {
    if let Json::Array(items) = value {
        items.iter().for_each(|item| element_of(name, item, out));
        return;
    }
    let end = if xml::is_ncname(name) {
        let _ = write!(out, "<{name}>");
        name
    } else {
        let _ = write!(out, "<item name=\"{}\">", escaped(name));
        "item"
    };
    match value {
        Json::Object(members) => members.iter().for_each(|(name, value)| element_of(name, value, out)),
        Json::String(text) => out.push_str(&escaped(text)),
        Json::Null => {}
        other => {
            let _ = write!(out, "{other}");
        }
    }
    let _ = write!(out, "</{end}>");
}

/// Text of an element or attribute; characters that XML cannot have become `?`.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{FFFE}' | '\u{FFFF}' => out.push('?'),
            c if c < ' ' && !matches!(c, '\t' | '\n' | '\r') => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

fn document(text: &str) -> Result<Document, String> {
    Document::parse(text.to_owned(), &ParseOptions::default()).map_err(|why| why.to_string())
}

/// Whether a text is well-formed element content, so that it cannot end an element around it.
pub(crate) fn is_xml(text: &str) -> bool {
    text.trim_start().starts_with('<') && document(&format!("<x>{}</x>", text.trim())).is_ok()
}

/// Parses the element of a text.
pub(crate) fn element(text: &str) -> Result<Value, String> {
    let document = document(text)?;
    let root = document.document_element().ok_or("it has no element")?;
    Ok(Value::Xml(Arc::new(XmlValue { nodes: vec![root], document: Arc::new(document) })))
}

/// The SOAP envelope around an element, or the element if it is one.
pub(crate) fn envelope(text: &str) -> Result<Envelope, String> {
    let document = document(text.trim())?;
    let root = document.document_element().ok_or("it has no element")?;
    if SoapVersion::of_envelope(&document, root).is_some() {
        return Envelope::of_document(document).map_err(|why| why.to_string());
    }
    Ok(envelope_of(&document, root))
}

fn envelope_of(document: &Document, root: xml::NodeId) -> Envelope {
    let mut envelope = Envelope::empty(SoapVersion::V11);
    envelope.document.copy_from(envelope.body, document, root);
    envelope
}

/// As [`envelope`], of the first element of a text that may have more around it, as in WSO2.
pub(crate) fn first_envelope(text: &str) -> Result<Envelope, String> {
    let why = match envelope(text) {
        Ok(envelope) => return Ok(envelope),
        Err(why) => why,
    };
    let Ok(around) = document(&format!("<x>{}</x>", text.trim())) else { return Err(why) };
    let inside = around
        .document_element()
        .and_then(|root| around.children(root).find(|node| around.kind(*node) == xml::NodeKind::Element));
    Ok(envelope_of(&around, inside.ok_or("it has no element")?))
}

/// Makes an element the body.
pub(crate) fn set_xml(text: &str, context: &mut Context) -> Result<(), Fault> {
    let envelope = envelope(text).map_err(Fault::new)?;
    context.payload.set_envelope(envelope);
    context.set_axis2("messageType", Value::from("application/xml"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_become_elements() {
        for (members, wanted) in [
            (
                r#"{"success":true,"writtenBytes":5}"#,
                "<r><success>true</success><writtenBytes>5</writtenBytes></r>",
            ),
            (r#"{"l":{"file":["a&b","c"]}}"#, "<r><l><file>a&amp;b</file><file>c</file></l></r>"),
            (
                r#"{"m².txt":1,"ª":2,"a:b":3,"é·.x":4}"#,
                "<r><item name=\"m².txt\">1</item><item name=\"ª\">2</item><item name=\"a:b\">3</item><é·.x>4</é·.x></r>",
            ),
            (r#"{"1 x":"\u0001"}"#, "<r><item name=\"1 x\">?</item></r>"),
        ] {
            let members: Map<String, Json> = serde_json::from_str(members).unwrap();
            let made = xml("r", &members);
            assert_eq!(made, wanted);
            assert!(element(&made).is_ok());
        }
    }
}
