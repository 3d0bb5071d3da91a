//! Arguments and expressions of a template: what they are for one message, and how that is written.

use crate::free_marker::Model;
use crate::target::is_true;
use config::Element;
use diagnostics::Span;
use flow::{Compiler, Context, Expression, Fault, Need};
use message::{Value, XmlValue};
use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;
use xml::{Document, NodeId, NodeKind, ParseOptions};

/// One argument.
pub(super) struct Argument {
    value: ArgumentSource,
    /// Where it stands.
    pub(super) span: Span,
    /// `literal="true"`: JSON media take it as text, whatever it looks like.
    pub(super) literal: bool,
}

enum ArgumentSource {
    /// `value`, and whether it is XML.
    Fixed(Arc<str>, bool),
    XPath(Expression),
    Json(Expression),
}

impl Argument {
    pub(super) fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Option<Argument> {
        let literal = is_true(element, "literal");
        if let Some(value) = element.attribute("value") {
            let text = &*value.value;
            let span = value.value_span;
            return Some(Argument {
                value: ArgumentSource::Fixed(Arc::from(text), markup(text)),
                span,
                literal,
            });
        }
        let Some(attribute) = element.attribute("expression") else {
            let place = element.start_tag();
            compiler.error(
                "missing-attribute",
                "`arg` needs a value",
                place,
                "expected `value` or `expression`",
            );
            return None;
        };
        let json = element.attr("evaluator").is_some_and(|name| name.trim() == "json");
        let text = attribute.value.trim();
        let expression = if json && !text.starts_with("json-eval(") && !text.starts_with("${") {
            compiler.expression_text(&format!("json-eval({text})"), attribute.value_span, element.scope())?
        } else {
            compiler.expression(element, "expression")?
        };
        let value = if expression.is_json() {
            ArgumentSource::Json(expression)
        } else {
            ArgumentSource::XPath(expression)
        };
        Some(Argument { value, span: attribute.value_span, literal })
    }

    /// The text that it is for every message, if it is one and no markup.
    pub(super) fn fixed_text(&self) -> Option<&str> {
        match &self.value {
            ArgumentSource::Fixed(text, false) => Some(text),
            _ => None,
        }
    }

    pub(super) fn need(&self) -> Need {
        match &self.value {
            ArgumentSource::Fixed(..) => Need::Nothing,
            ArgumentSource::XPath(expression) | ArgumentSource::Json(expression) => expression.need(),
        }
    }

    /// What it is for this message. `as_string`: of what an XPath selects the string counts, as in Apache Synapse.
    pub(super) fn evaluate(&self, as_string: bool, context: &mut Context) -> Result<Filling<'_>, Fault> {
        match &self.value {
            ArgumentSource::Fixed(text, true) => Ok(Filling::Markup(Cow::Borrowed(text))),
            ArgumentSource::Fixed(text, false) => Ok(Filling::Text(Cow::Borrowed(text))),
            ArgumentSource::Json(expression) => Ok(match expression.json_values(context)? {
                None => Filling::Text(Cow::Borrowed("")),
                Some(value @ (serde_json::Value::Object(_) | serde_json::Value::Array(_))) => {
                    Filling::Json(value)
                }
                Some(scalar) => text_or_markup(message::jsonpath::text_of(&scalar)),
            }),
            ArgumentSource::XPath(expression) if as_string => {
                Ok(Filling::Text(Cow::Owned(expression.string(context)?.unwrap_or_default())))
            }
            ArgumentSource::XPath(expression) => Ok(match expression.value(context)? {
                None => Filling::Text(Cow::Borrowed("")),
                Some(Value::Json(value)) if value.is_object() || value.is_array() => {
                    Filling::Json((*value).clone())
                }
                Some(Value::Xml(xml)) => of_nodes(&xml),
                Some(other) => text_or_markup(other.to_string()),
            }),
        }
    }
}

/// What an argument is for one message.
pub(super) enum Filling<'a> {
    Text(Cow<'a, str>),
    /// Well-formed elements, and whether they came from nodes of the message.
    Markup(Cow<'a, str>),
    Json(serde_json::Value),
    /// JSON null, or an expression that failed.
    Nothing,
}

/// What an expression in a template is for one message. Text that JSON brought is text even if it looks like XML.
pub(super) fn filling(expression: &Expression, context: &mut Context) -> Result<Filling<'static>, Fault> {
    use serde_json::Value as Json;
    Ok(match expression.found(context)? {
        None => Filling::Nothing,
        Some(Value::Json(json)) => match &*json {
            Json::Null => Filling::Nothing,
            Json::Object(_) | Json::Array(_) => Filling::Json(Arc::unwrap_or_clone(json)),
            _ => Filling::Text(Cow::Owned(Value::Json(json).to_string())),
        },
        // An element that an XPath finds stands for its text, one that a variable holds for itself.
        Some(Value::Xml(xml)) if expression.source().contains("xpath(") => of_nodes(&xml),
        Some(Value::Xml(xml))
            if xml.nodes.iter().all(|&node| xml.document.kind(node) == NodeKind::Element) =>
        {
            Filling::Markup(Cow::Owned(xml.to_xml()))
        }
        Some(text) if expression.leads_into_json() => Filling::Text(Cow::Owned(text.to_string())),
        Some(other) => text_or_markup(other.to_string()),
    })
}

impl Filling<'_> {
    /// Whether it adds nothing to a template.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Filling::Nothing => true,
            Filling::Text(text) | Filling::Markup(text) => text.trim().is_empty(),
            Filling::Json(_) => false,
        }
    }

    /// As a FreeMarker template sees it.
    pub(super) fn model(self) -> Model {
        match self {
            Filling::Text(text) => Model::Text(text.into_owned()),
            Filling::Markup(text) => Model::of_markup(&text),
            Filling::Json(json) => Model::of(&Value::Json(Arc::new(json))),
            Filling::Nothing => Model::Text(String::new()),
        }
    }
}

fn text_or_markup(text: String) -> Filling<'static> {
    if markup(&text) { Filling::Markup(Cow::Owned(text)) } else { Filling::Text(Cow::Owned(text)) }
}

/// One element with text of its own stands for that text; other nodes for their XML.
fn of_nodes(xml: &Arc<XmlValue>) -> Filling<'static> {
    let text = Value::Xml(Arc::clone(xml)).to_string();
    let elements = xml.nodes.iter().all(|&node| xml.document.kind(node) == NodeKind::Element);
    if elements && text.trim_start().starts_with('<') {
        let is_text_element = xml.nodes.len() == 1 && !own_text(&xml.document, xml.nodes[0]).is_empty();
        if !is_text_element {
            return Filling::Markup(Cow::Owned(text));
        }
    }
    text_or_markup(text)
}

fn own_text(document: &Document, element: NodeId) -> String {
    let texts = document.children(element).filter(|&child| document.kind(child) == NodeKind::Text);
    texts.map(|child| document.text(child).trim()).collect()
}

/// Whether a text is an XML document.
fn markup(text: &str) -> bool {
    let trimmed = text.trim();
    trimmed.len() >= 4
        && trimmed.starts_with('<')
        && trimmed.ends_with('>')
        && Document::parse(trimmed.as_bytes().to_vec(), &ParseOptions::default()).is_ok()
}

/// What an expression found, as a JSON value, or inside of a JSON string: JSON stays JSON wherever it stands.
pub(super) fn push_found(filling: &Filling<'_>, quoted: bool, out: &mut String) {
    match filling {
        Filling::Nothing if quoted => {}
        Filling::Nothing => out.push_str("null"),
        Filling::Json(value) if quoted => message::json::escape(&value.to_string(), out),
        Filling::Json(value) => push_json(value, out),
        Filling::Text(text) | Filling::Markup(text) if quoted => message::json::escape(text, out),
        Filling::Markup(text) => out.push_str(&json_of_markup(text)),
        // A number, or JSON, in a text is taken for what it is.
        Filling::Text(text) if serde_json::from_str::<serde_json::Value>(text).is_ok() => out.push_str(text),
        Filling::Text(text) if is_list_of_json(text) => out.push_str(text),
        Filling::Text(text) => message::json::write_string(text, out),
    }
}

pub(super) fn push_json(value: &serde_json::Value, out: &mut String) {
    let _ = write!(out, "{value}"); // writing to a String cannot fail
}

/// Whether a text is several JSON objects or arrays with commas between them, as flows collect them for a JSON array.
pub(super) fn is_list_of_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
        && serde_json::from_str::<Vec<serde_json::Value>>(&format!("[{text}]")).is_ok()
}

/// A text that is a JSON object or array, as it is inserted. With `escape`, control characters in its strings are escaped first: JSON has
/// none there, but texts of other systems do.
pub(super) fn json_text(text: &str, escape: bool) -> Option<Cow<'_, str>> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let is_json = |text: &str| serde_json::from_str::<serde_json::Value>(text).is_ok();
    if is_json(text) {
        return Some(Cow::Borrowed(text));
    }
    escape.then(|| with_controls_escaped(text)).filter(|escaped| is_json(escaped)).map(Cow::Owned)
}

/// JSON text whose strings have no control characters but escaped ones.
fn with_controls_escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let (mut in_string, mut after_backslash) = (false, false);
    for c in text.chars() {
        if in_string && c < ' ' {
            message::json::escape(c.encode_utf8(&mut [0; 4]), &mut out);
            after_backslash = false;
            continue;
        }
        in_string ^= c == '"' && !after_backslash;
        after_backslash = in_string && c == '\\' && !after_backslash;
        out.push(c);
    }
    out
}

/// Whether a text that fills a place without quotes is a value there.
pub(super) fn is_bare(text: &str) -> bool {
    matches!(text, "true" | "false" | "null") || message::json::is_json_number(text)
}

/// A text as (part of) a JSON string.
pub(super) fn push_text(text: &str, quote: bool, out: &mut String) {
    let quote = quote && !is_bare(text);
    if quote {
        out.push('"');
    }
    message::json::escape(text, out);
    if quote {
        out.push('"');
    }
}

/// Elements as JSON: one as an object with its name as member.
pub(super) fn json_of_markup(text: &str) -> String {
    let text = match text.trim().strip_prefix("<?xml ").and_then(|rest| rest.split_once("?>")) {
        Some((_, rest)) => rest,
        None => text,
    };
    let wrapped = format!("<jsonObject>{text}</jsonObject>");
    match Document::parse(wrapped.into_bytes(), &ParseOptions::default()) {
        Ok(document) => match document.document_element() {
            Some(root) => message::json::from_xml(&document, root),
            None => "null".to_owned(),
        },
        Err(_) => "null".to_owned(),
    }
}

/// A JSON object or array as the elements of its XML view, without the element around them.
pub(super) fn push_json_as_xml(value: &serde_json::Value, out: &mut String) {
    let mut document = Document::new();
    let root = message::json::to_xml(value, &mut document, Document::ROOT);
    for child in document.children(root) {
        out.push_str(&xml::to_string(&document, child));
    }
}

/// A text, escaped for content (`in_text`) or an attribute value. `false`: it has characters that XML cannot have.
pub(super) fn push_xml(text: &str, in_text: bool, out: &mut String) -> bool {
    let mut run = 0;
    let mut sound = true;
    for (at, byte) in text.bytes().enumerate() {
        let entity = match byte {
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'&' => "&amp;",
            b'"' if !in_text => "&quot;",
            b'\'' if !in_text => "&apos;",
            b'\n' if !in_text => "&#10;",
            b'\t' if !in_text => "&#9;",
            b'\r' => "&#13;",
            0..=8 | 11 | 12 | 14..=31 | 0xef => {
                // U+FFFE and U+FFFF begin with this byte too.
                sound &= byte == 0xef && !text[at..].starts_with(['\u{fffe}', '\u{ffff}']);
                continue;
            }
            _ => continue,
        };
        out.push_str(&text[run..at]);
        out.push_str(entity);
        run = at + 1;
    }
    out.push_str(&text[run..]);
    sound
}
