//! XML in text and configuration as property values.

use config::Element;
use message::{Value, XmlValue};
use std::sync::Arc;
use xml::{Document, ParseOptions};

/// The element of a text.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    let document = Document::parse(text.trim().to_owned(), &ParseOptions::default())
        .map_err(|error| format!("it is not well-formed XML: {error}"))?;
    let root = document.document_element().ok_or("it has no element")?;
    Ok(Value::Xml(Arc::new(XmlValue { nodes: vec![root], document: Arc::new(document) })))
}

/// An element of the configuration.
pub(crate) fn of_element(element: &Element) -> Result<Value, String> {
    parse(&element.to_xml())
}

/// The element inside an element, `description` aside.
pub(crate) fn inside(element: &Element) -> Option<&Element> {
    element.elements().find(|child| !child.is("description"))
}
