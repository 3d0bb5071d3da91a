//! Documents from text and text from documents: `parse-xml()`, `serialize()`, `analyze-string()`, `unparsed-text()`.

use super::json::{FN, adopted};
use super::output::{self, Params};
use super::{Call, Entry, Looks, Outcome, row, text_value};
use crate::atomic::Atomic;
use crate::eval::{Fault, grown, spend_bytes};
use crate::value::{Item, Node, Type, Value};
use xml::{Document, NodeId};

#[rustfmt::skip]
pub(super) const TABLE: &[Entry] = &[
    row("parse-xml", 1, 1, Type::Any, Looks::Nowhere, |c| match c.text_option(0)? {
        None => Ok(Value::Empty),
        Some(text) => {
            spend_bytes(text.len() * 16)?;
            let options = xml::ParseOptions { base_uri: c.eval.static_base_uri(), ..xml::ParseOptions::default() };
            match Document::parse_str(&text, &options) {
                Ok(doc) => adopted(c, doc),
                Err(error) => Err(c.fail("FODC0006", format!("parse-xml(): {error}"))),
            }
        }
    }),
    row("parse-xml-fragment", 1, 1, Type::Any, Looks::Nowhere, |c| match c.text_option(0)? {
        None => Ok(Value::Empty),
        Some(text) => fragment(c, &text),
    }),
    row("serialize", 1, 2, Type::String, Looks::Nowhere, serialize),
    row("analyze-string", 2, 3, Type::Any, Looks::Nowhere, analyze),
    row("unparsed-text", 1, 2, Type::Any, Looks::Nowhere, |c| match c.text_option(0)? {
        None => Ok(Value::Empty),
        Some(uri) => read(c, &uri).map(text_value),
    }).of_embedder(),
    row("unparsed-text-lines", 1, 2, Type::Any, Looks::Nowhere, |c| match c.text_option(0)? {
        None => Ok(Value::Empty),
        Some(uri) => {
            let text = read(c, &uri)?.replace("\r\n", "\n").replace('\r', "\n");
            let text = text.strip_suffix('\n').unwrap_or(&text);
            let lines = text.split('\n').map(|line| Item::Atomic(Atomic::string(line)));
            Ok(Value::from_items(if text.is_empty() { Vec::new() } else { lines.collect() }))
        }
    }).of_embedder(),
    row("unparsed-text-available", 1, 2, Type::Boolean, Looks::Nowhere, |c| match c.text_option(0)? {
        None => Ok(Value::Boolean(false)),
        Some(uri) => Ok(Value::Boolean(read(c, &uri).is_ok())),
    }).of_embedder(),
];

fn read(c: &Call<'_, '_>, uri: &str) -> Result<String, Fault> {
    let encoding = if c.args.len() > 1 { Some(c.required_text(1)?) } else { None };
    c.eval.cx.host.read_text(uri, encoding.as_deref()).map_err(|e| match e.split_once(": ") {
        Some(("FOUT1190", why)) => c.fail("FOUT1190", why),
        Some(("FOUT1170", why)) => c.fail("FOUT1170", why),
        _ => c.fail("FOUT1170", e),
    })
}

/// A document fragment: it may have several top-level elements, or none.
fn fragment(c: &Call<'_, '_>, text: &str) -> Outcome {
    spend_bytes(text.len() * 16)?;
    let wrong = |why: String| c.fail("FODC0006", format!("parse-xml-fragment(): {why}"));
    let mut body = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    // A text declaration, which must name an encoding.
    if body.starts_with("<?xml") && body[5..].starts_with([' ', '\t', '\r', '\n']) {
        let Some(end) = body.find("?>") else { return Err(wrong("the declaration has no end".into())) };
        let declaration = &body[..end];
        if !declaration.contains("encoding") || declaration.contains("standalone") {
            return Err(wrong("a text declaration has an encoding and no standalone".into()));
        }
        body = &body[end + 2..];
    }
    // An element may have the same content as a fragment; but a document type declaration is not allowed.
    if body.trim_start().starts_with("<!DOCTYPE") {
        return Err(wrong("a fragment has no document type declaration".into()));
    }
    let whole = format!("<f>{body}</f>");
    let options = xml::ParseOptions { base_uri: c.eval.static_base_uri(), ..xml::ParseOptions::default() };
    let parsed = Document::parse_str(&whole, &options).map_err(|error| wrong(error.to_string()))?;
    let Some(top) = parsed.document_element() else { return Err(wrong("it is not a fragment".into())) };
    if parsed.children(Document::ROOT).count() != 1 {
        return Err(wrong("an end tag has no start tag".into()));
    }
    let mut doc = Document::new();
    for child in parsed.children(top) {
        doc.copy_from(Document::ROOT, &parsed, child);
    }
    adopted(c, doc)
}

fn analyze(c: &Call<'_, '_>) -> Outcome {
    let text = c.text(0)?;
    let flags = if c.args.len() > 2 { c.required_text(2)? } else { "".into() };
    let failed = |e: crate::regex::RegexError| c.fail(e.code, e.message);
    let regex = crate::regex::Regex::cached(&c.required_text(1)?, &flags).map_err(failed)?;
    let parts = regex.analyze_nested(&text).map_err(failed)?;
    spend_bytes(text.len() * 16)?;
    let mut doc = Document::new();
    let top = doc.append_element(Document::ROOT, "fn", FN, "analyze-string-result");
    doc.declare_namespace(top, "fn", FN);
    for part in parts {
        let name = if part.groups.is_some() { "match" } else { "non-match" };
        let element = doc.append_element(top, "fn", FN, name);
        groups(&text, part.from, part.to, &part.groups.unwrap_or_default(), &mut doc, element);
    }
    let root = c.eval.cx.host.adopt(doc).map_err(|e| c.fail("FOER0000", e))?;
    Ok(Value::from(Node::in_document(root.doc, top)))
}

/// The text from `from` to `to` with an element for each of its groups, which are in the order of their beginnings.
fn groups(
    text: &str,
    from: usize,
    to: usize,
    groups: &[(usize, usize, usize)],
    doc: &mut Document,
    top: NodeId,
) {
    // Open elements, and their ends.
    let mut open: Vec<(NodeId, usize)> = vec![(top, to)];
    let mut at = from;
    let push = |doc: &mut Document, element: NodeId, at: &mut usize, end: usize| {
        if end > *at {
            doc.append_text(element, &text[*at..end]);
            *at = end;
        }
    };
    for (number, start, end) in groups {
        while let Some((element, until)) = open.last().copied()
            && open.len() > 1
            && (until < *end || until <= *start)
        {
            push(doc, element, &mut at, until);
            open.pop();
        }
        let Some((element, _)) = open.last().copied() else { return };
        push(doc, element, &mut at, *start);
        let group = doc.append_element(element, "fn", FN, "group");
        doc.set_attribute(group, "", "", "nr", &number.to_string());
        open.push((group, *end));
    }
    while let Some((element, until)) = open.pop() {
        push(doc, element, &mut at, until);
    }
}

fn serialize(c: &Call<'_, '_>) -> Outcome {
    let params = match c.arg(1) {
        Value::Empty => Params::default(),
        Value::Atomic(Atomic::Map(map)) => Params::of_map(c, map)?,
        Value::NodeSet(nodes) if nodes.len() == 1 => match nodes.first() {
            Some(node) => Params::of_element(c, node)?,
            None => Params::default(),
        },
        Value::NodeSet(nodes) if nodes.is_empty() => Params::default(),
        _ => return Err(c.fail("XPTY0004", "the parameters of serialize() are a map or an element")),
    };
    let text = output::written(c, c.arg(0), &params)?;
    grown(text.len(), c.span)?;
    Ok(text_value(text))
}
