//! Nodes, their names and documents; qualified names (F&O sections 2, 11, 14 and 15.5).

use super::{Call, Entry, Looks, Outcome, optional, row, text_value};
use crate::atomic::{Atomic, NameValue};
use crate::collation::Collation;
use crate::eval::{Eval, Fault, namespace_at};
use crate::functions::node_name as name_of;
use crate::plan::Core;
use crate::sequence::operators;
use crate::value::{Item, Node, NodeSet, Type, Value};
use std::sync::Arc;
use xml::{Document, NodeId, NodeKind};

#[rustfmt::skip]
pub(super) const TABLE: &[Entry] = &[
    row("node-name", 1, 1, Type::Any, Looks::Nowhere, node_name),
    row("nilled", 1, 1, Type::Any, Looks::Nowhere, |c| match c.node(0)? {
        Some(n) if !n.is_namespace() && c.eval.doc(n.doc)?.kind(n.id) == NodeKind::Element => Ok(Value::Boolean(false)),
        _ => Ok(Value::Empty),
    }),
    row("name", 0, 1, Type::String, Looks::Context(1), |c| Ok(text_value(named(c, Core::Name)?))),
    row("local-name", 0, 1, Type::String, Looks::Context(1), |c| Ok(text_value(named(c, Core::LocalName)?))),
    row("namespace-uri", 0, 1, Type::Any, Looks::Context(1), |c| {
        Ok(Value::Atomic(Atomic::Uri(named(c, Core::NamespaceUri)?.into())))
    }),
    row("root", 0, 1, Type::NodeSet, Looks::Context(1), |c| match c.node_or_context(0)? {
        Some(n) => Ok(Value::from(n.at(c.eval.doc(n.doc)?.root_of(n.id)))),
        None => Ok(Value::Empty),
    }),
    row("base-uri", 0, 1, Type::Any, Looks::Context(1), base_uri),
    row("document-uri", 1, 1, Type::Any, Looks::Nowhere, document_uri),
    row("id", 1, 2, Type::Any, Looks::Document, id),
    // (Without a schema no content of an element is an ID.)
    row("element-with-id", 1, 2, Type::Any, Looks::Document, id),
    row("idref", 1, 2, Type::Any, Looks::Document, idref),
    row("doc", 1, 1, Type::Any, Looks::Nowhere, |c| match c.text_option(0)? {
        None => Ok(Value::Empty),
        Some(uri) => c.eval.load(&uri, c.span).map(Value::from),
    }),
    row("doc-available", 1, 1, Type::Boolean, Looks::Nowhere, |c| match c.text_option(0)? {
        None => Ok(Value::Boolean(false)),
        Some(uri) => Ok(Value::Boolean(c.eval.load(&uri, c.span).is_ok())),
    }),
    row("collection", 0, 1, Type::Any, Looks::Nowhere, |c| {
        Err(c.fail("FODC0002", "there are no collections: see doc()"))
    }),
    row("static-base-uri", 0, 0, Type::Any, Looks::Nowhere, |c| {
        Ok(optional(c.eval.static_base_uri().map(|uri| Atomic::Uri(uri.into()))))
    }),
    row("default-collation", 0, 0, Type::Any, Looks::Nowhere, |_| Ok(text_value(crate::collation::CODEPOINT))),
    row("QName", 2, 2, Type::Any, Looks::Nowhere, qname),
    row("resolve-QName", 2, 2, Type::Any, Looks::Nowhere, resolve_qname),
    row("prefix-from-QName", 1, 1, Type::Any, Looks::Nowhere, |c| {
        Ok(optional(c.qname(0)?.filter(|n| !n.prefix.is_empty()).map(|n| Atomic::string(&*n.prefix))))
    }),
    row("local-name-from-QName", 1, 1, Type::Any, Looks::Nowhere, |c| {
        Ok(optional(c.qname(0)?.map(|n| Atomic::string(&*n.local))))
    }),
    row("namespace-uri-from-QName", 1, 1, Type::Any, Looks::Nowhere, |c| {
        Ok(optional(c.qname(0)?.map(|n| Atomic::Uri((&*n.namespace).into()))))
    }),
    row("namespace-uri-for-prefix", 2, 2, Type::Any, Looks::Nowhere, |c| {
        let prefix = c.text(0)?;
        let node = element(c, 1)?;
        let doc = c.eval.doc(node.doc)?;
        Ok(optional(binding(doc, node.id, &prefix).map(|uri| Atomic::Uri(uri.into()))))
    }),
    row("in-scope-prefixes", 1, 1, Type::Any, Looks::Nowhere, |c| {
        let node = element(c, 0)?;
        let doc = c.eval.doc(node.doc)?;
        let scope = doc.in_scope_namespaces(node.id);
        let prefixes = std::iter::once("xml").chain(scope.iter().map(|(p, _)| *p));
        Ok(Value::from_items(prefixes.map(|p| Item::Atomic(Atomic::string(p))).collect()))
    }),
];

/// `element()`.
fn element(c: &Call<'_, '_>, at: usize) -> Result<Node, Fault> {
    let node = c.node(at)?.ok_or_else(|| c.missing(at, "an element"))?;
    if node.is_namespace() || c.eval.doc(node.doc)?.kind(node.id) != NodeKind::Element {
        return Err(c.wrong_item(at, "an element"));
    }
    Ok(node)
}

/// The namespace of a prefix at an element; the empty prefix: the default namespace.
fn binding<'d>(doc: &'d Document, element: NodeId, prefix: &str) -> Option<&'d str> {
    if prefix == "xml" {
        return Some(xml::XML_NS);
    }
    doc.in_scope_namespaces(element)
        .into_iter()
        .find(|(p, uri)| *p == prefix && !uri.is_empty())
        .map(|(_, uri)| uri)
}

fn named(c: &Call<'_, '_>, core: Core) -> Result<String, Fault> {
    match c.node_or_context(0)? {
        Some(node) => Ok(name_of(core, c.eval.doc(node.doc)?, node).into_owned()),
        None => Ok(String::new()),
    }
}

pub(super) fn document_uri(c: &Call<'_, '_>) -> Outcome {
    match c.node(0)? {
        Some(n) if !n.is_namespace() && c.eval.doc(n.doc)?.kind(n.id) == NodeKind::Document => {
            let uri =
                c.eval.document_uri(n.doc).filter(|uri| !uri.is_empty() && c.eval.cx.host.is_read(n.doc));
            Ok(optional(uri.map(|uri| Atomic::Uri(uri.into()))))
        }
        _ => Ok(Value::Empty),
    }
}

pub(super) fn node_name(c: &Call<'_, '_>) -> Outcome {
    let Some(node) = c.node(0)? else { return Ok(Value::Empty) };
    let doc = c.eval.doc(node.doc)?;
    let name = |core| Box::<str>::from(&*name_of(core, doc, node));
    let local = name(Core::LocalName);
    if local.is_empty() {
        return Ok(Value::Empty);
    }
    let prefix = match name(Core::Name).split_once(':') {
        Some((prefix, _)) => prefix.into(),
        None => Box::from(""),
    };
    Ok(Value::Atomic(Atomic::Name(Arc::new(NameValue {
        prefix,
        namespace: name(Core::NamespaceUri),
        local,
    }))))
}

fn base_uri(c: &Call<'_, '_>) -> Outcome {
    let Some(node) = c.node_or_context(0)? else { return Ok(Value::Empty) };
    let doc = c.eval.doc(node.doc)?;
    // Namespace nodes have none, nor have nodes without a parent other than elements and documents (XDM section 6).
    if node.is_namespace()
        || doc.parent(node.id).is_none_or(|parent| is_holder(doc, parent))
            && !matches!(doc.kind(node.id), NodeKind::Document | NodeKind::Element)
    {
        return Ok(Value::Empty);
    }
    let mut uri = c.eval.document_uri(node.doc).unwrap_or_default();
    let mut chain = Vec::new();
    let mut at = Some(node.id);
    while let Some(id) = at {
        if let Some(base) = doc.attribute(id, xml::XML_NS, "base") {
            chain.push(base);
        }
        at = doc.parent(id);
    }
    for base in chain.into_iter().rev() {
        uri = super::resolve_uri(base, &uri).unwrap_or_else(|| base.to_owned());
    }
    Ok(if uri.is_empty() { Value::Empty } else { Value::Atomic(Atomic::Uri(uri.into())) })
}

/// Whether an element is only the holder of a parentless attribute.
fn is_holder(doc: &Document, element: NodeId) -> bool {
    doc.parent(element).is_none() && doc.local(element) == "attributes" && doc.namespace(element).is_empty()
}

fn idref(c: &Call<'_, '_>) -> Outcome {
    let Some(node) = c.node_or_context(1)? else { return Err(c.missing(1, "a node")) };
    let doc = c.eval.doc(node.doc)?;
    if doc.kind(doc.root_of(node.id)) != NodeKind::Document {
        return Err(c.fail("FODC0001", "idref() is about a node in a document"));
    }
    let mut found = Vec::new();
    for atom in c.atoms(0)? {
        let Some(text) = atom.as_text() else { return Err(c.wrong(0, "strings", &atom)) };
        if xml::is_ncname(text) {
            found.extend(doc.references_to(text).map(|id| node.at(id)));
        }
    }
    c.eval.sort(&mut found)?;
    Ok(Value::NodeSet(NodeSet::from_ordered(&found)))
}

fn id(c: &Call<'_, '_>) -> Outcome {
    let Some(node) = c.node_or_context(1)? else { return Err(c.missing(1, "a node")) };
    let doc = c.eval.doc(node.doc)?;
    let mut found = Vec::new();
    for atom in c.atoms(0)? {
        let Some(text) = atom.as_text() else { return Err(c.wrong(0, "strings", &atom)) };
        for token in text.split_ascii_whitespace() {
            found.extend(doc.element_by_id(token).map(|id| node.at(id)));
        }
    }
    c.eval.sort(&mut found)?;
    Ok(Value::NodeSet(NodeSet::from_ordered(&found)))
}

fn qname(c: &Call<'_, '_>) -> Outcome {
    let (namespace, lexical) = (c.text(0)?, c.required_text(1)?);
    let (prefix, local) = lexical.split_once(':').unwrap_or(("", &lexical));
    if !xml::is_ncname(local) || !(prefix.is_empty() && !lexical.contains(':') || xml::is_ncname(prefix)) {
        return Err(c.fail("FOCA0002", format!("\"{lexical}\" is not a qualified name")));
    }
    if namespace.is_empty() && !prefix.is_empty() {
        return Err(c.fail("FOCA0002", "a name without a namespace cannot have a prefix"));
    }
    let name = NameValue { prefix: prefix.into(), namespace: (&*namespace).into(), local: local.into() };
    Ok(Value::Atomic(Atomic::Name(Arc::new(name))))
}

fn resolve_qname(c: &Call<'_, '_>) -> Outcome {
    let Some(lexical) = c.text_option(0)? else { return Ok(Value::Empty) };
    let lexical = lexical.trim();
    let node = element(c, 1)?;
    let (prefix, local) = lexical.split_once(':').unwrap_or(("", lexical));
    if !xml::is_ncname(local) || !(prefix.is_empty() && !lexical.contains(':') || xml::is_ncname(prefix)) {
        return Err(c.fail("FOCA0002", format!("\"{lexical}\" is not a qualified name")));
    }
    let namespace = match binding(c.eval.doc(node.doc)?, node.id, prefix) {
        Some(uri) => uri,
        None if prefix.is_empty() => "",
        None => {
            return Err(c.fail("FONS0004", format!("the prefix `{prefix}` is not declared at the element")));
        }
    };
    let name = NameValue { prefix: prefix.into(), namespace: namespace.into(), local: local.into() };
    Ok(Value::Atomic(Atomic::Name(Arc::new(name))))
}

/// `deep-equal()` of maps and arrays; functions have no equality.
fn equal_containers(
    eval: &Eval<'_>,
    a: &Atomic,
    b: &Atomic,
    collation: Collation,
    known: &mut EqualPairs,
) -> Result<bool, Fault> {
    let pair = match (a, b) {
        (Atomic::Map(a), Atomic::Map(b)) => (Arc::as_ptr(a).addr(), Arc::as_ptr(b).addr()),
        (Atomic::Array(a), Atomic::Array(b)) => (Arc::as_ptr(a).addr(), Arc::as_ptr(b).addr()),
        _ => (0, 0),
    };
    if known.contains(&pair) {
        return Ok(true);
    }
    let equal = equal_members(eval, a, b, collation, known)?;
    if equal {
        known.insert(pair);
    }
    Ok(equal)
}

/// The containers, by their addresses, that were found to be equal: members can be shared, so that a small value has very many.
type EqualPairs = std::collections::HashSet<(usize, usize)>;

fn equal_members(
    eval: &Eval<'_>,
    a: &Atomic,
    b: &Atomic,
    collation: Collation,
    known: &mut EqualPairs,
) -> Result<bool, Fault> {
    match (a, b) {
        (Atomic::Map(a), Atomic::Map(b)) => {
            crate::eval::spend(1 + a.len())?;
            if a.len() != b.len() {
                return Ok(false);
            }
            for (key, value) in a.entries() {
                match b.get(key) {
                    Some(other) if equal_values(eval, value, other, collation, known)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        (Atomic::Array(a), Atomic::Array(b)) => {
            crate::eval::spend(1 + a.len())?;
            if a.len() != b.len() {
                return Ok(false);
            }
            for (a, b) in a.members().zip(b.members()) {
                if !equal_values(eval, a, b, collation, known)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Atomic::Function(_), _) | (_, Atomic::Function(_)) => Err(operators::failed(
            "FOTY0015",
            "deep-equal() compares no functions",
            crate::error::Span::default(),
        )),
        _ => Ok(false),
    }
}

/// `deep-equal()` (F&O section 15.3.1).
pub(crate) fn deep_equal(eval: &Eval<'_>, a: &Value, b: &Value, collation: Collation) -> Result<bool, Fault> {
    equal_values(eval, a, b, collation, &mut EqualPairs::default())
}

fn equal_values(
    eval: &Eval<'_>,
    a: &Value,
    b: &Value,
    collation: Collation,
    known: &mut EqualPairs,
) -> Result<bool, Fault> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for (a, b) in a.items().zip(b.items()) {
        let same = match (&a, &b) {
            (Item::Atomic(a), Item::Atomic(b)) if a.is_function() || b.is_function() => {
                equal_containers(eval, a, b, collation, known)?
            }
            (Item::Atomic(a), Item::Atomic(b)) => {
                let nan = |x: &Atomic| x.is_numeric() && x.to_double().is_nan();
                operators::equal(&collation.atom(a), &collation.atom(b)) || (nan(a) && nan(b))
            }
            (Item::Node(a), Item::Node(b)) => equal_nodes(eval, *a, *b, collation)?,
            _ => false,
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_nodes(eval: &Eval<'_>, a: Node, b: Node, collation: Collation) -> Result<bool, Fault> {
    let (left, right) = (eval.doc(a.doc)?, eval.doc(b.doc)?);
    if a.is_namespace() || b.is_namespace() {
        return Ok(a.is_namespace() && b.is_namespace() && namespace_at(left, a) == namespace_at(right, b));
    }
    let same_name =
        |x: NodeId, y: NodeId| left.local(x) == right.local(y) && left.namespace(x) == right.namespace(y);
    // Comments and processing instructions inside elements do not count.
    let counts = |doc: &Document, n: NodeId| matches!(doc.kind(n), NodeKind::Element | NodeKind::Text);
    let same_text = |a: &str, b: &str| collation.key(a) == collation.key(b);
    let mut open = vec![(a.id, b.id)];
    while let Some((x, y)) = open.pop() {
        if left.kind(x) != right.kind(y) {
            return Ok(false);
        }
        match left.kind(x) {
            NodeKind::Text | NodeKind::Comment => {
                if !same_text(left.text(x), right.text(y)) {
                    return Ok(false);
                }
            }
            NodeKind::Attribute | NodeKind::ProcessingInstruction => {
                if !same_name(x, y) || !same_text(left.text(x), right.text(y)) {
                    return Ok(false);
                }
            }
            NodeKind::Element | NodeKind::Document => {
                if left.kind(x) == NodeKind::Element {
                    if !same_name(x, y) || left.attributes(x).count() != right.attributes(y).count() {
                        return Ok(false);
                    }
                    for attribute in left.attributes(x) {
                        let other = right.attribute(y, left.namespace(attribute), left.local(attribute));
                        if other != Some(left.text(attribute)) {
                            return Ok(false);
                        }
                    }
                }
                let mut children = left.children(x).filter(|n| counts(left, *n));
                let mut others = right.children(y).filter(|n| counts(right, *n));
                loop {
                    match (children.next(), others.next()) {
                        (Some(x), Some(y)) => open.push((x, y)),
                        (None, None) => break,
                        _ => return Ok(false),
                    }
                }
            }
        }
    }
    Ok(true)
}
