//! Copies of nodes as trees of their own: `copy-of()`, `snapshot()` (XSLT 3.0 section 18.4).

use super::ExprHost;
use crate::model::Place;
use crate::run::nodes::namespace_node;
use xml::{Document, NodeKind};
use xpath::{Node, Value};

impl ExprHost<'_, '_> {
    /// A copy of a node as a tree of its own.
    pub(super) fn copy_of(&self, node: Node) -> Result<Node, String> {
        if node.is_namespace() {
            return Ok(node);
        }
        let from = self.engine.doc(node.doc);
        self.engine
            .spend(from.subtree_end(node.id).index().saturating_sub(node.id.index()) as u64)
            .map_err(|e| e.message)?;
        let mut doc = Document::new();
        let id = match from.kind(node.id) {
            NodeKind::Document => {
                let copy = self.engine.copied_document(node, Place::default());
                return copy.map_err(|error| error.message);
            }
            NodeKind::Attribute => {
                let holder = doc.create_element("", "", "attributes");
                let (prefix, namespace, local) =
                    (from.prefix(node.id), from.namespace(node.id), from.local(node.id));
                doc.set_attribute(holder, prefix, namespace, local, from.text(node.id));
                let attribute = doc.attributes(holder).next().unwrap_or(holder);
                doc.detach(attribute);
                attribute
            }
            _ => {
                let id = doc.copy_from(Document::ROOT, from, node.id);
                doc.detach(id);
                id
            }
        };
        let Value::NodeSet(root) = self.engine.fragment(doc)? else { return Ok(node) };
        Ok(root.first().map_or(node, |root| Node::in_document(root.doc, id)))
    }

    /// A copy of a node with its ancestors and their attributes, without their other content (XSLT 3.0 section 18.4).
    pub(super) fn snapshot(&self, node: Node) -> Result<Node, String> {
        let from = self.engine.doc(node.doc);
        let mut above = Vec::new();
        // (A namespace node has the number of its element.)
        let mut at = if node.is_namespace() { Some(node.id) } else { from.parent(node.id) };
        while let Some(id) = at {
            above.push(id);
            at = from.parent(id);
        }
        let is_document = above.last().is_some_and(|top| from.kind(*top) == NodeKind::Document);
        if above.is_empty() {
            return self.copy_of(node);
        }
        let size = from.subtree_end(node.id).index().saturating_sub(node.id.index()) + above.len();
        self.engine.spend(size as u64).map_err(|e| e.message)?;
        let mut doc = Document::new();
        let mut parent = Document::ROOT;
        for id in above.iter().rev().skip(usize::from(is_document)) {
            let element = doc.append_element(parent, from.prefix(*id), from.namespace(*id), from.local(*id));
            // (Inherited namespaces are declared at the copied ancestors.)
            for (prefix, uri) in from.namespace_declarations(*id) {
                doc.declare_namespace(element, prefix, uri);
            }
            for attribute in from.attributes(*id) {
                let (prefix, namespace) = (from.prefix(attribute), from.namespace(attribute));
                doc.set_attribute(element, prefix, namespace, from.local(attribute), from.text(attribute));
            }
            parent = element;
        }
        let copy = match from.kind(node.id) {
            _ if node.is_namespace() => parent,
            NodeKind::Attribute => {
                let (namespace, local) = (from.namespace(node.id), from.local(node.id));
                let mut attributes = doc.attributes(parent);
                attributes
                    .find(|id| doc.local(*id) == local && doc.namespace(*id) == namespace)
                    .unwrap_or(parent)
            }
            _ => doc.copy_from(parent, from, node.id),
        };
        // The copy may have its namespaces in another order. (The first one is that of `xml`.)
        let mut namespace = node.namespace;
        if namespace > 1 {
            let (prefix, _) = namespace_node(from, node);
            let at = doc.in_scope_namespaces(copy).iter().position(|(other, _)| **other == *prefix);
            namespace = at.map_or(namespace, |at| at as u32 + 2);
        }
        let Value::NodeSet(root) = self.engine.fragment(doc)? else { return Ok(node) };
        let copied = |root: Node| Node { namespace, ..Node::in_document(root.doc, copy) };
        Ok(root.first().map_or(node, copied))
    }
}
