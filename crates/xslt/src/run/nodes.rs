//! Copying nodes into the result: `xsl:copy`, `xsl:copy-of`.

use super::out::Out;
use super::{Engine, Focus, Frame, Res};
use crate::model::{Instruction, Place};
use xml::{Document, NodeId, NodeKind};
use xpath::{Item, Node, Value};

/// Prefix and URI of a namespace node.
pub(super) fn namespace_node(doc: &Document, node: Node) -> (String, String) {
    match node.namespace {
        0 => (String::new(), String::new()),
        1 => ("xml".into(), xml::XML_NS.into()),
        further => doc
            .in_scope_namespaces(node.id)
            .get(further as usize - 2)
            .map_or_else(Default::default, |(prefix, uri)| ((*prefix).to_owned(), (*uri).to_owned())),
    }
}

impl Engine<'_> {
    /// `xsl:copy` (section 7.5): with its namespaces, which its children inherit.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn copy(
        &self,
        sets: &[usize],
        body: &[Instruction],
        (namespaces, inherits): (bool, bool),
        focus: Focus,
        frame: &mut Frame,
        place: Place,
        out: &mut Out<'_>,
    ) -> Res<()> {
        let node = focus.node;
        let doc = self.doc(node.doc);
        if node.is_namespace() || !matches!(doc.kind(node.id), NodeKind::Element | NodeKind::Document) {
            return self.copy_node(node, place, out);
        }
        if doc.kind(node.id) == NodeKind::Document {
            return self.copy_document(place, out, |out| self.exec(body, focus, frame, out));
        }
        out.start_element(doc.prefix(node.id), doc.namespace(node.id), doc.local(node.id));
        if namespaces && !self.docs.bound(node.doc).is_some_and(|bound| bound.is_plain(doc)) {
            doc.each_in_scope_namespace(node.id, &mut |prefix, uri| out.namespace(prefix, uri));
        }
        if !inherits {
            out.isolate();
        }
        self.attribute_sets(sets, focus, out)?;
        self.exec(body, focus, frame, out)?;
        out.end_element();
        Ok(())
    }

    /// Copies a node that is no element: with an error where its place does not allow an attribute or a namespace node, from 2.0 on.
    pub(super) fn copy_node(&self, node: Node, place: Place, out: &mut Out<'_>) -> Res<()> {
        self.write_items(&Value::from(Item::Node(node)), true, out, place)
    }

    /// Copies a document node, whose content `write` writes: among items it stays a document.
    pub(super) fn copy_document(
        &self,
        place: Place,
        out: &mut Out<'_>,
        write: impl FnOnce(&mut Out<'_>) -> Res<()>,
    ) -> Res<()> {
        if !out.takes_items() {
            return write(out);
        }
        let value = self.tree_of(place, write)?;
        self.write_items(&value, false, out, place)
    }

    /// Copies a node with its content, without the namespaces that no name in it needs (`copy-namespaces="no"`).
    pub(super) fn copy_plain(&self, node: Node, out: &mut Out<'_>) {
        let doc = self.doc(node.doc);
        if node.is_namespace() || doc.kind(node.id) == NodeKind::Attribute {
            return self.copy_deep(node, out);
        }
        if doc.kind(node.id) == NodeKind::Document {
            for child in doc.children(node.id) {
                copy_tree(doc, child, false, out);
            }
            return;
        }
        copy_tree(doc, node.id, false, out);
    }

    /// Copies a namespace node.
    pub(super) fn copy_namespace(&self, node: Node, place: Place, out: &mut Out<'_>) -> Res<()> {
        let (prefix, uri) = namespace_node(self.doc(node.doc), node);
        self.put_namespace(&prefix, &uri, place, out)
    }

    /// Copies a node with its content.
    pub(super) fn copy_deep(&self, node: Node, out: &mut Out<'_>) {
        if node.id == Document::ROOT
            && !node.is_namespace()
            && let Some(text) = self.docs.text(node.doc)
        {
            if !text.is_empty() {
                out.text(text, false);
            }
            return;
        }
        let doc = self.doc(node.doc);
        if node.is_namespace() {
            let (prefix, uri) = namespace_node(doc, node);
            out.namespace(&prefix, &uri);
            return;
        }
        match doc.kind(node.id) {
            NodeKind::Document => {
                for child in doc.children(node.id) {
                    copy_tree(doc, child, true, out);
                }
            }
            NodeKind::Attribute => {
                out.attribute(
                    doc.prefix(node.id),
                    doc.namespace(node.id),
                    doc.local(node.id),
                    doc.text(node.id),
                );
            }
            _ => copy_tree(doc, node.id, true, out),
        }
    }
}

/// Copies an element, text, comment or processing instruction, without recursion.
fn copy_tree(doc: &Document, top: NodeId, namespaces: bool, out: &mut Out<'_>) {
    let mut at = top;
    loop {
        match doc.kind(at) {
            NodeKind::Element
                if at != top
                    && doc.plain_leaf(at).is_some_and(|(local, text)| out.plain_leaf(local, text)) => {}
            NodeKind::Element => {
                out.start_element(doc.prefix(at), doc.namespace(at), doc.local(at));
                if !namespaces {
                    // The namespaces of the names are declared anyway.
                } else if at == top {
                    doc.each_in_scope_namespace(at, &mut |prefix, uri| out.namespace(prefix, uri));
                } else {
                    for (prefix, uri) in doc.namespace_declarations(at) {
                        out.namespace(prefix, uri);
                    }
                }
                for attribute in doc.attributes(at) {
                    out.copied_attribute(
                        doc.prefix(attribute),
                        doc.namespace(attribute),
                        doc.local(attribute),
                        doc.text(attribute),
                    );
                }
                if let Some(child) = doc.first_child(at) {
                    at = child;
                    continue;
                }
                out.end_element();
            }
            NodeKind::Text => out.text(doc.text(at), false),
            NodeKind::Comment => out.comment(doc.text(at)),
            NodeKind::ProcessingInstruction => out.pi(doc.local(at), doc.text(at)),
            NodeKind::Document | NodeKind::Attribute => {}
        }
        loop {
            if at == top {
                return;
            }
            if let Some(next) = doc.next_sibling(at) {
                at = next;
                break;
            }
            match doc.parent(at) {
                Some(parent) => at = parent,
                None => return,
            }
            out.end_element();
        }
    }
}
