//! A template, cut into literal runs and places.

use super::filling::{Argument, is_bare, json_text, push_text};
use super::json;
use flow::Expression;
use std::borrow::Cow;
use xml::{Document, NodeId, NodeKind, ParseOptions};

/// What a template makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Media {
    Xml,
    Json,
    Text,
}

/// A template, cut.
#[derive(Debug)]
pub(super) struct Template {
    pub(super) parts: Vec<Part>,
    /// The expressions in it.
    pub(super) expressions: Vec<Expression>,
    /// XML: the template is an element that may stand alone in a body, and is well-formed whatever text fills it.
    pub(super) sound: bool,
    /// JSON: why it can be no JSON, whatever fills it, with the place in the text.
    pub(super) fault: Option<json::Fault>,
}

#[derive(Debug)]
pub(super) enum Part {
    Literal(String),
    /// An argument by its place in the list; `in_text`: not in an attribute value or the like.
    Slot {
        argument: usize,
        in_text: bool,
        /// Inside of a JSON string.
        quoted: bool,
    },
    /// An expression by its place in the list; `quoted`: inside of a JSON string.
    Expression {
        number: usize,
        in_text: bool,
        quoted: bool,
    },
}

impl Template {
    /// Cuts a template at its placeholders and expressions. A placeholder without argument ends that for
    /// placeholders: they are literal from there on, and the number is answered too. `compile` gets each expression with
    /// `${` and `}`, and where it begins.
    pub(super) fn cut<X>(
        text: &str,
        media: Media,
        arguments: usize,
        mut compile: impl FnMut(&str, usize) -> Result<Expression, X>,
    ) -> Result<(Template, Option<usize>), X> {
        let mut parts = Vec::new();
        let mut expressions = Vec::new();
        let mut holes = Vec::new();
        let (mut start, mut from, mut missing) = (0, 0, None);
        // Whether the text up to `seen` ends inside of a JSON string.
        let (mut quoted, mut seen) = (false, 0);
        while let Some(at) = text[from..].find('$').map(|at| at + from) {
            let digits = text[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
            let length = if text[at + 1..].starts_with('{') {
                flow::synapse::expression_length(&text[at..]).unwrap_or(0)
            } else if digits > 0 && missing.is_none() {
                1 + digits
            } else {
                0
            };
            from = at + length.max(1);
            if length == 0 {
                continue;
            }
            let in_text = in_text(&text[..at]);
            if media == Media::Json {
                quoted = ends_in_string(&text[seen..at], quoted);
                seen = from;
            }
            let part = if digits > 0 {
                let number: usize = text[at + 1..from].parse().unwrap_or(usize::MAX);
                let Some(argument) = number.checked_sub(1).filter(|&index| index < arguments) else {
                    missing = Some(number);
                    continue;
                };
                Part::Slot { argument, in_text, quoted }
            } else {
                let source = &text[at..from];
                let written = if media == Media::Xml { unescaped(source) } else { Cow::Borrowed(source) };
                expressions.push(compile(&written[..], at)?);
                Part::Expression { number: expressions.len() - 1, in_text, quoted }
            };
            if at > start {
                parts.push(Part::Literal(text[start..at].to_owned()));
            }
            parts.push(part);
            holes.push(at..from);
            start = from;
        }
        if start < text.len() {
            parts.push(Part::Literal(text[start..].to_owned()));
        }
        let sound = media == Media::Xml && is_sound(text);
        let fault = if media == Media::Json { json::fault(text, &holes) } else { None };
        Ok((Template { parts, expressions, sound, fault }, missing))
    }

    /// JSON: the argument that is the same text for every message, and why that makes no JSON in its place.
    pub(super) fn fault_of_text<'a>(&self, arguments: &'a [Argument]) -> Option<(&'a Argument, String)> {
        let unfit = |part: &Part| match part {
            Part::Slot { argument, quoted: false, .. } => {
                arguments[*argument].fixed_text().is_some_and(|text| {
                    !text.trim().is_empty() && !is_bare(text) && json_text(text, true).is_none()
                })
            }
            _ => false,
        };
        self.parts.iter().filter(|part| unfit(part)).find_map(|unfit| {
            let (mut text, mut holes, mut place) = (String::new(), Vec::new(), 0);
            for part in &self.parts {
                let start = text.len();
                match part {
                    Part::Literal(literal) => text.push_str(literal),
                    Part::Slot { argument, .. } if std::ptr::eq(part, unfit) => {
                        place = *argument;
                        push_text(arguments[*argument].fixed_text()?, false, &mut text);
                    }
                    _ => {
                        text.push('$');
                        holes.push(start..text.len());
                    }
                }
            }
            json::fault(&text, &holes).map(|fault| (&arguments[place], fault.why))
        })
    }
}

/// Whether what follows this much of XML is content, not an attribute value or the like.
fn in_text(before: &str) -> bool {
    before.rfind('>') > before.rfind('<') || !before.contains('<')
}

/// Whether JSON is inside of a string at its end, if it was or was not at its beginning.
fn ends_in_string(text: &str, mut inside: bool) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => inside = !inside,
            b'\\' if inside => {
                bytes.next();
            }
            _ => {}
        }
    }
    inside
}

/// An expression as it stands in XML that was written out.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let document = Document::parse(format!("<e>{text}</e>").into_bytes(), &ParseOptions::default());
    match document.ok().and_then(|parsed| Some(parsed.string_value(parsed.document_element()?).into_owned()))
    {
        Some(parsed) => Cow::Owned(parsed),
        None => Cow::Borrowed(text),
    }
}

/// Whether the template is a well-formed element whose placeholders stand where text can stand, and that is neither
/// an envelope nor a fault (which the engine wants to see).
fn is_sound(text: &str) -> bool {
    let Ok(document) = Document::parse(text.as_bytes().to_vec(), &ParseOptions::trusted()) else {
        return false;
    };
    let Some(root) = document.document_element() else { return false };
    let plain = document.descendants(Document::ROOT).all(|node| {
        match document.kind(node) {
            // An argument in a name would not be escaped as one.
            NodeKind::Element => {
                !document.qname(node).contains('$')
                    && document.attributes(node).all(|attribute| !document.qname(attribute).contains('$'))
                    && document
                        .namespace_declarations(node)
                        .all(|(prefix, uri)| !prefix.contains('$') && !uri.contains('$'))
            }
            NodeKind::Comment | NodeKind::ProcessingInstruction => false,
            _ => true,
        }
    });
    plain && !matches!(document.local(root), "Envelope" | "Fault") && !text.contains("<![CDATA[")
}

/// A template that is XML, without the texts that are only white space; others as they are.
pub(super) fn without_blanks(text: String) -> String {
    let Ok(mut document) = Document::parse(text.clone().into_bytes(), &ParseOptions::trusted()) else {
        return text;
    };
    let Some(root) = document.document_element() else { return text };
    let blanks: Vec<NodeId> = document
        .descendants(root)
        .filter(|&node| document.kind(node) == NodeKind::Text && document.text(node).trim().is_empty())
        .collect();
    for blank in blanks {
        document.detach(blank);
    }
    xml::to_string(&document, root)
}

/// The template in an entry.
pub(super) fn entry_text(bytes: &[u8], media: Media) -> String {
    let text = String::from_utf8_lossy(bytes).into_owned();
    if media == Media::Xml { without_blanks(text) } else { text }
}

#[cfg(test)]
mod tests {
    use flow::testing;

    #[test]
    fn instructions_of_the_configuration_make_arrays() {
        let body = "<n xmlns=''><?xml-multiple i?><i>1</i></n>";
        let back = "<enrich><source type='property' property='p'/><target type='body'/></enrich>";
        for flow in [
            format!("<payloadFactory><format>{body}</format><args/></payloadFactory>"),
            format!(
                "<payloadFactory><format key='k'/><args/></payloadFactory><!--top--><localEntry key='k'>{body}</localEntry>"
            ),
            format!("<enrich><source type='inline'>{body}</source><target type='body'/></enrich>"),
            format!("<property name='p'>{body}</property>{back}"),
        ] {
            let tested = testing::main(&crate::registry(testing::endpoints), &flow);
            let mut end = tested.run(&[("Content-Type", "application/xml")], "<a/>");
            assert_eq!(end.fault(), None, "{flow}");
            assert_eq!(end.write(message::Format::Json), r#"{"n":{"i":[1]}}"#, "{flow}");
        }
    }
}
