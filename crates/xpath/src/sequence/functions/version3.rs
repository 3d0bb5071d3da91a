//! Functions that XPath 3.1 adds, or gives other arities.

use super::strings::joined;
use super::{Call, Entry, Looks, Outcome, optional, part, row, text_value};
use crate::atomic::Atomic;
use crate::eval::{Fault, spend};
use crate::value::{DocId, Item, Node, NodeSet, Type, Value};
use std::collections::HashSet;
use xml::{Document, NodeId, NodeKind};

#[rustfmt::skip]
pub(super) const TABLE: &[Entry] = &[
    row("head", 1, 1, Type::Any, Looks::Nowhere, |c| Ok(c.arg(0).item(0).map_or(Value::Empty, Value::from))).in_constant_time(),
    row("tail", 1, 1, Type::Any, Looks::Nowhere, |c| part(c.arg(0), 1..c.arg(0).len())).in_constant_time(),
    row("string-join", 1, 2, Type::String, Looks::Nowhere, |c| {
        let separator = if c.args.len() > 1 { c.required_text(1)? } else { "".into() };
        joined(c, &separator, c.atoms(0)?.iter().map(|atom| Ok(atom.to_text())))
    }),
    row("has-children", 0, 1, Type::Boolean, Looks::Context(1), |c| match c.node_or_context(0)? {
        Some(node) if !node.is_namespace() => Ok(Value::Boolean(c.eval.doc(node.doc)?.first_child(node.id).is_some())),
        _ => Ok(Value::Boolean(false)),
    }),
    row("outermost", 1, 1, Type::NodeSet, Looks::Nowhere, |c| most(c, true)),
    row("innermost", 1, 1, Type::NodeSet, Looks::Nowhere, |c| most(c, false)),
    row("contains-token", 2, 3, Type::Boolean, Looks::Nowhere, |c| {
        let collation = c.collation(2)?;
        let token = c.required_text(1)?;
        let token = token.trim_matches([' ', '\t', '\r', '\n']);
        let wanted = collation.key(token);
        let mut found = false;
        for atom in c.atoms(0)? {
            let Some(text) = atom.as_text() else { return Err(c.wrong(0, "strings", &atom)) };
            found |= !token.is_empty() && text.split([' ', '\t', '\r', '\n']).any(|word| collation.key(word) == wanted);
        }
        Ok(Value::Boolean(found))
    }),
    row("default-language", 0, 0, Type::String, Looks::Nowhere, |_| Ok(text_value("en"))),
    // The environment variables that the embedder exposes.
    row("environment-variable", 1, 1, Type::Any, Looks::Nowhere, |c| {
        Ok(c.eval.cx.host.environment(&c.required_text(0)?).map_or(Value::Empty, Value::from))
    }),
    row("available-environment-variables", 0, 0, Type::Any, Looks::Nowhere, |_| Ok(Value::Empty)),
    row("data", 0, 1, Type::Any, Looks::Context(1), |c| {
        let atoms = if c.args.is_empty() { c.eval.atoms_of(&Value::from(c.context()?))? } else { c.atoms(0)? };
        Ok(Value::from_items(atoms.into_iter().map(Item::Atomic).collect()))
    }),
    row("path", 0, 1, Type::Any, Looks::Context(1), path),
];

#[rustfmt::skip]
pub(super) const MATH: &[Entry] = &[
    row("pi", 0, 0, Type::Any, Looks::Nowhere, |_| Ok(Value::Number(std::f64::consts::PI))),
    row("exp", 1, 1, Type::Any, Looks::Nowhere, |c| real(c, f64::exp)),
    row("exp10", 1, 1, Type::Any, Looks::Nowhere, |c| real(c, |n| 10f64.powf(n))),
    row("log", 1, 1, Type::Any, Looks::Nowhere, |c| real(c, f64::ln)),
    row("log10", 1, 1, Type::Any, Looks::Nowhere, |c| real(c, f64::log10)),
    row("sqrt", 1, 1, Type::Any, Looks::Nowhere, |c| real(c, f64::sqrt)),
    row("sin", 1, 1, Type::Any, Looks::Nowhere, |c| real(c, f64::sin)),
    row("cos", 1, 1, Type::Any, Looks::Nowhere, |c| real(c, f64::cos)),
    row("tan", 1, 1, Type::Any, Looks::Nowhere, |c| real(c, f64::tan)),
    row("asin", 1, 1, Type::Any, Looks::Nowhere, |c| real(c, f64::asin)),
    row("acos", 1, 1, Type::Any, Looks::Nowhere, |c| real(c, f64::acos)),
    row("atan", 1, 1, Type::Any, Looks::Nowhere, |c| real(c, f64::atan)),
    row("atan2", 2, 2, Type::Any, Looks::Nowhere, |c| Ok(Value::Number(c.double(0)?.atan2(c.double(1)?)))),
    row("pow", 2, 2, Type::Any, Looks::Nowhere, |c| match c.number(0)? {
        None => Ok(Value::Empty),
        Some(base) => {
            let (base, exponent) = (base.double(), c.double(1)?);
            // -1 to an infinite power is 1 here as well.
            Ok(Value::Number(base.powf(exponent)))
        }
    }),
];

fn real(c: &Call<'_, '_>, function: fn(f64) -> f64) -> Outcome {
    Ok(c.number(0)?.map_or(Value::Empty, |n| Value::Number(function(n.double()))))
}

/// `outermost()` and `innermost()`.
fn most(c: &Call<'_, '_>, outer: bool) -> Outcome {
    let mut nodes: Vec<Node> = Vec::new();
    for item in c.arg(0).items() {
        match item {
            Item::Node(node) => nodes.push(node),
            Item::Atomic(atom) => return Err(c.wrong(0, "nodes", &atom)),
        }
    }
    c.eval.sort(&mut nodes)?;
    let given: HashSet<Node> = nodes.iter().copied().collect();
    let mut inside: HashSet<Node> = HashSet::new();
    for node in &nodes {
        let doc = c.eval.doc(node.doc)?;
        // A namespace node is in its element.
        let mut at = if node.is_namespace() { Some(node.id) } else { doc.parent(node.id) };
        while let Some(id) = at {
            let above = node.at(id);
            if given.contains(&above) {
                inside.insert(if outer { *node } else { above });
                break;
            }
            at = doc.parent(id);
        }
    }
    if !outer {
        // All ancestors among them, not only the nearest.
        for node in &nodes {
            let doc = c.eval.doc(node.doc)?;
            let mut at = doc.parent(node.id);
            while let Some(id) = at {
                if !given.contains(&node.at(id)) || inside.insert(node.at(id)) {
                    at = doc.parent(id);
                } else {
                    break;
                }
            }
        }
    }
    nodes.retain(|node| !inside.contains(node));
    Ok(Value::NodeSet(NodeSet::from_ordered(&nodes)))
}

/// The position of a node among its siblings of the same kind and name, counted from the last one of them that is known: mostly
/// that is the one before.
fn place_among_siblings(c: &Call<'_, '_>, doc: &Document, number: DocId, at: NodeId) -> Result<usize, Fault> {
    let kind = doc.kind(at);
    let named = matches!(kind, NodeKind::Element | NodeKind::ProcessingInstruction);
    let name = if named { doc.name_id(at) } else { None };
    let key = (number, doc.parent(at), kind, name);
    let state = c.eval.state();
    let counted = c.eval.cx.host.positions().unwrap_or(&state.counted);
    let last = counted.last(&key);
    let (mut place, mut before) = (0, Some(at));
    while let Some(sibling) = before {
        spend(1)?;
        if let Some((_, known)) = last.filter(|(node, _)| *node == sibling) {
            place += known;
            break;
        }
        let alike = doc.kind(sibling) == kind && (!named || doc.name_id(sibling) == name);
        place += usize::from(alike);
        before = doc.prev_sibling(sibling);
    }
    counted.keep(key, (at, place));
    Ok(place)
}

/// `path()`.
fn path(c: &Call<'_, '_>) -> Outcome {
    let Some(node) = c.node_or_context(0)? else { return Ok(Value::Empty) };
    let doc = c.eval.doc(node.doc)?;
    let mut parts = Vec::new();
    if let Some((prefix, _)) = crate::eval::namespace_at(doc, node) {
        parts.push(match prefix {
            "" => "namespace::*[Q{http://www.w3.org/2005/xpath-functions}local-name()=\"\"]".to_owned(),
            prefix => format!("namespace::{prefix}"),
        });
    }
    let mut at = node.id;
    loop {
        let kind = doc.kind(at);
        let parent = doc.parent(at);
        let place = || place_among_siblings(c, doc, node.doc, at);
        match kind {
            NodeKind::Document => break,
            _ if parent.is_none() => {
                parts.push("Q{http://www.w3.org/2005/xpath-functions}root()".to_owned());
                parts.reverse();
                return Ok(text_value(parts.join("/")));
            }
            NodeKind::Element => {
                parts.push(format!("Q{{{}}}{}[{}]", doc.namespace(at), doc.local(at), place()?))
            }
            NodeKind::Attribute if doc.namespace(at).is_empty() => parts.push(format!("@{}", doc.local(at))),
            NodeKind::Attribute => parts.push(format!("@Q{{{}}}{}", doc.namespace(at), doc.local(at))),
            NodeKind::Text => parts.push(format!("text()[{}]", place()?)),
            NodeKind::Comment => parts.push(format!("comment()[{}]", place()?)),
            NodeKind::ProcessingInstruction => {
                parts.push(format!("processing-instruction({})[{}]", doc.local(at), place()?));
            }
        }
        match parent {
            Some(parent) => at = parent,
            None => break,
        }
    }
    parts.reverse();
    Ok(optional(Some(Atomic::string(format!("/{}", parts.join("/"))))))
}
