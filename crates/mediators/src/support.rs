//! What several mediators need of an envelope and of headers.

use config::Element;
use diagnostics::Span;
use flow::reference::EndpointRef;
use flow::{Compiler, Context, Fault, KeyValue};
use message::{Envelope, SoapVersion};
use std::sync::Arc;
use xml::{Document, NodeId};

/// The endpoint with an address, as it would be written: with more `attributes` of the address, and elements `inside` of it. `None` after a
/// recorded error.
pub(crate) fn address_endpoint(
    url: &str,
    attributes: &str,
    inside: &str,
    span: Span,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<EndpointRef>> {
    let uri = attribute_value(url);
    let text = format!(
        r#"<endpoint xmlns="{}"><address uri="{uri}" {attributes}>{inside}</address></endpoint>"#,
        config::SYNAPSE
    );
    let parsed = config::parse(span.file, &text).ok()?;
    compiler.endpoint(&parsed.standing_at(span))
}

/// A text as it is written between the quotes of an attribute.
pub(crate) fn attribute_value(text: &str) -> String {
    let mut value = String::new();
    for character in text.chars() {
        match character {
            '&' => value.push_str("&amp;"),
            '<' => value.push_str("&lt;"),
            '"' => value.push_str("&quot;"),
            other => value.push(other),
        }
    }
    value
}

/// Whether a header may have this name.
pub(crate) fn is_header_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(message::is_token_byte)
}

/// Whether a name would be that of a header but for the blanks in it. WSO2 sends those.
fn has_blanks(name: &str) -> bool {
    let name = name.trim();
    name.contains(' ') && name.split(' ').all(|part| part.is_empty() || is_header_name(part))
}

/// Whether a literal name is that of a header that can be sent. An empty one, or one with blanks in it, is a warning, and the step does
/// nothing; `None` after an error, where nothing can be meant.
pub(crate) fn can_be_sent(name: &str, place: Span, compiler: &mut Compiler<'_>) -> Option<bool> {
    if is_header_name(name.trim()) {
        return Some(true);
    }
    let message = format!("`{name}` is not a header name");
    let why = match name.trim().is_empty() {
        true => Some("the header is not sent: it has no name"),
        false => has_blanks(name).then_some("the header is not sent: names have no blanks"),
    };
    if let Some(why) = why {
        compiler.warning("bad-value", message, place, why);
        return Some(false);
    }
    compiler.error("bad-value", message, place, "expected a token");
    None
}

/// Sets a transport header. Line breaks, which pretty-printed XML brings, become blanks: nothing else can be written. With a name that no
/// header can have nothing is set, as with a literal one ([`can_be_sent`]): the flow goes on in WSO2 too.
pub(crate) fn set_header(name: &str, value: &str, context: &mut Context) {
    let name = name.trim();
    if !is_header_name(name) {
        tracing::warn!(message_id = %context.message_id(), place = context.place(), "a header is not set: `{name}` is not a header name");
        return;
    }
    let breaks = |c: char| matches!(c, '\0' | '\n' | '\x0b' | '\x0c' | '\r');
    if value.contains(breaks) {
        context.set_header(name, value.replace(breaks, " ").trim());
    } else {
        context.set_header(name, value);
    }
}

/// An envelope with an empty body, of the version and with the header blocks of another one.
pub(crate) fn envelope_with_headers(other: &Envelope) -> Envelope {
    let mut envelope = Envelope::empty(other.version);
    if let Some(header) = other.header {
        let header_of_new = envelope.header_or_new();
        for block in other.elements_of(header) {
            envelope.document.copy_from(header_of_new, &other.document, block);
        }
    }
    envelope
}

/// Whether one of the nodes, which are in document order, is within another one.
pub(crate) fn are_nested(document: &Document, nodes: &[NodeId]) -> bool {
    let is_within = |node: NodeId, outer: NodeId| {
        let start = document.order_key(outer);
        std::iter::successors(document.parent(node), |&above| document.parent(above))
            .take_while(|&above| document.order_key(above) >= start)
            .any(|above| above == outer)
    };
    // Whatever lies between a node and one within it is within it as well: neighbours decide.
    nodes.windows(2).any(|pair| is_within(pair[1], pair[0]))
}

/// Copies of elements of which some are within others, side by side in an envelope of their own: each is an item by itself, and is not in another one.
pub(crate) fn apart(document: &Document, version: SoapVersion, nodes: &[NodeId]) -> (Envelope, Vec<NodeId>) {
    let mut rest = document.clone();
    let mut apart = Envelope::empty(version);
    // The last one first: when an element is copied, what is within it has been taken out.
    let copies = nodes.iter().rev().map(|&node| {
        let copy = apart.document.copy_from(apart.body, &rest, node);
        rest.detach(node);
        copy
    });
    let mut copies: Vec<_> = copies.collect();
    copies.reverse();
    (apart, copies)
}

/// Warns of a literal minimum above the maximum: see [`enough`].
pub(crate) fn check_enough(element: &Element, [min, max]: [&str; 2], compiler: &mut Compiler<'_>) {
    let number = |name: &str| element.attr(name)?.trim().parse::<i64>().ok().filter(|&number| number > 0);
    if let (Some(least), Some(most)) = (number(min), number(max))
        && least > most
        && let Some(attribute) = element.attribute(min)
    {
        let message = format!("`{min}` is more than `{max}`");
        compiler.warning("ignored-attribute", message, attribute.value_span, format!("{most} are enough"));
    }
}

/// How many messages are enough, of `min` and `max`: the smaller one that is above 0. `what`: what is done with them.
pub(crate) fn enough(
    [min, max]: [&Option<KeyValue>; 2],
    what: &str,
    context: &mut Context,
) -> Result<Option<usize>, Fault> {
    let mut least = None;
    for count in [min, max].into_iter().flatten() {
        let text = count.resolve(context)?.unwrap_or_default();
        let number: i64 = text
            .trim()
            .parse()
            .map_err(|_| Fault::new(format!("`{}` is not a number of messages to {what}", text.trim())))?;
        let number = usize::try_from(number).ok().filter(|&number| number > 0);
        least = least.into_iter().chain(number).min();
    }
    Ok(least)
}
