//! What becomes of the results of XPath: values of messages. And the document that XPath 2.0 runs on.

use crate::expression::library::SynapseHost;
use crate::runtime::context::Context;
use message::envelope::synapse_string;
use message::{Value, XmlValue};
use std::sync::Arc;
use xml::NodeKind;

/// An XPath result as a property value. One element stays XML; several nodes are a list; other results are atomic.
pub(crate) fn to_message_value(
    value: xpath::Value,
    cx: &xpath::Context<'_>,
    node_test: bool,
) -> Option<Value> {
    match value {
        xpath::Value::Empty => None,
        xpath::Value::Boolean(truth) => Some(Value::Boolean(truth)),
        xpath::Value::Number(number) => Some(Value::Double(number)),
        xpath::Value::String(text) => Some(Value::String(text)),
        xpath::Value::NodeSet(nodes) => {
            let Some(first) = nodes.first() else { return Some(Value::from("")) };
            let document = |node: xpath::Node| {
                if node.doc == xpath::DocId::default() { Some(cx.doc) } else { cx.host.document(node.doc) }
            };
            let first_document = document(first)?;
            if first.is_namespace() {
                let value = xpath::Value::NodeSet(nodes);
                return Some(Value::from(value.to_string_in(cx).ok()?.into_owned()));
            }
            if nodes.len() == 1 {
                return Some(match first_document.kind(first.id) {
                    NodeKind::Element | NodeKind::Document => {
                        Value::Xml(Arc::new(XmlValue::copy_of(first_document, &[first.id])))
                    }
                    NodeKind::Text if node_test => {
                        let parent = first_document.parent(first.id).unwrap_or(first.id);
                        let mut out = Vec::new();
                        xml::write(first_document, parent, &xml::WriteOptions::default(), &mut out);
                        Value::from(String::from_utf8_lossy(&out).into_owned())
                    }
                    _ => Value::from(first_document.text(first.id)),
                });
            }
            let ids: Vec<_> = nodes
                .iter()
                .filter(|node| node.doc == first.doc && !node.is_namespace())
                .map(|node| node.id)
                .collect();
            if ids.iter().all(|&id| matches!(first_document.kind(id), NodeKind::Text | NodeKind::Attribute)) {
                let text: String = ids.iter().map(|&id| synapse_string(first_document, id, false)).collect();
                return Some(Value::from(text));
            }
            Some(Value::Xml(Arc::new(XmlValue::copy_of(first_document, &ids))))
        }
        // Sequences of atomic values come with XPath 2.0.
        other => Some(Value::from(other.to_string_in(cx).ok()?.into_owned())),
    }
}

/// What WSO2 takes of a value of XPath 2.0: truth as it is, else the text of the first item.
pub(crate) fn first(value: xpath::Value, cx: &xpath::Context<'_>) -> Result<Value, xpath::XPathError> {
    let item = match value {
        xpath::Value::Boolean(truth) => return Ok(Value::Boolean(truth)),
        xpath::Value::Sequence(items) => match items.first() {
            Some(xpath::Item::Node(node)) => xpath::Value::from(*node),
            Some(xpath::Item::Atomic(atomic)) => xpath::Value::Atomic(atomic.clone()),
            None => xpath::Value::Empty,
        },
        xpath::Value::NodeSet(nodes) => nodes.first().map_or(xpath::Value::Empty, xpath::Value::from),
        other => other,
    };
    Ok(Value::from(item.to_string_in(cx)?.into_owned()))
}

/// Evaluates an XPath 2.0 on a document whose element is the first child of the body.
pub(crate) fn on_payload<T>(
    expression: &xpath::Expression,
    context: &Context,
    host: SynapseHost<'_>,
    evaluate: impl FnOnce(&xpath::Context<'_>) -> Result<T, xpath::XPathError>,
) -> Result<T, xpath::XPathError> {
    let envelope = context.payload.built_envelope().filter(|_| expression.needs().document);
    match envelope {
        Some(envelope) => {
            let nodes: Vec<_> = envelope.payload().into_iter().collect();
            let payload = XmlValue::copy_of(&envelope.document, &nodes);
            let root = xpath::Node::new(xml::Document::ROOT);
            evaluate(&xpath::Context::at(&payload.document, root).with_host(&host))
        }
        None => evaluate(&xpath::Context::without_document(&host)),
    }
}
