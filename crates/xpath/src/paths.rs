//! Node paths: a canonical address of a node, for messages and for comparing results.

use crate::eval::namespace_at;
use crate::value::Node;
use std::fmt::Write;
use xml::{Document, NodeId, NodeKind};

/// The positional path of a node: `/doc[1]/{uri}name[2]/@attr`, `text()[1]`, `comment()[1]`,
/// `processing-instruction()[1]`, `namespace::prefix`; the root is `/`. Names in a namespace are written `{uri}local`.
pub fn node_path(doc: &Document, node: Node) -> String {
    let mut chain = Vec::new();
    let mut at = Some(node.id);
    while let Some(n) = at {
        chain.push(n);
        at = doc.parent(n);
    }
    let mut out = String::new();
    for n in chain.into_iter().rev() {
        if doc.kind(n) == NodeKind::Document {
            continue;
        }
        out.push('/');
        step(doc, n, &mut out);
    }
    if let Some((prefix, _)) = namespace_at(doc, node) {
        out.push_str("/namespace::");
        out.push_str(prefix);
    }
    if out.is_empty() {
        out.push('/');
    }
    out
}

fn step(doc: &Document, n: NodeId, out: &mut String) {
    let kind = doc.kind(n);
    match kind {
        NodeKind::Element | NodeKind::Attribute => {
            if kind == NodeKind::Attribute {
                out.push('@');
            }
            let uri = doc.namespace(n);
            if !uri.is_empty() {
                out.push('{');
                out.push_str(uri);
                out.push('}');
            }
            out.push_str(doc.local(n));
            if kind == NodeKind::Attribute {
                return;
            }
        }
        NodeKind::Text => out.push_str("text()"),
        NodeKind::Comment => out.push_str("comment()"),
        NodeKind::ProcessingInstruction => out.push_str("processing-instruction()"),
        NodeKind::Document => return,
    }
    let same = |other: NodeId| {
        doc.kind(other) == kind && (kind != NodeKind::Element || doc.name_id(other) == doc.name_id(n))
    };
    let mut position = 1;
    let mut before = doc.prev_sibling(n);
    while let Some(b) = before {
        position += usize::from(same(b));
        before = doc.prev_sibling(b);
    }
    // Writing to a string cannot fail.
    let _ = write!(out, "[{position}]");
}
