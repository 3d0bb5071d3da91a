//! Building a tree in document order: the fast way to make result tree fragments and envelopes.

use crate::fixup::StartTag;
use crate::names::{NO_PREFIX, NO_URI, NameId, XML_PREFIX};
use crate::tree::{DETACHED, NIL, Node, NodeKind, SIDE, Tag};
use crate::{Document, NodeId};
use std::collections::HashSet;

/// Appends to a document in document order, with no look-ups but those that the call names.
///
/// Elements not ended are ended by [`Builder::finish`] (or when the builder is dropped).
pub struct Builder<'a> {
    doc: &'a mut Document,
    /// Open elements with their last child.
    stack: Vec<(NodeId, u32)>,
    /// The next text is appended to the last node.
    in_text: bool,
    /// The innermost element has no children yet: it may get attributes.
    in_tag: bool,
}

impl<'a> Builder<'a> {
    /// Builds below `parent`, after its present children.
    pub fn new(doc: &'a mut Document, parent: NodeId) -> Builder<'a> {
        doc.note_append(parent);
        let last = doc.last_child(parent).map_or(NIL, |n| n.0);
        Builder { doc, stack: vec![(parent, last)], in_text: false, in_tag: false }
    }

    /// The document as it is now. (The element under construction does not have its last child yet.)
    pub fn document(&self) -> &Document {
        self.doc
    }

    /// The innermost open element, or the parent built below.
    pub fn current(&self) -> NodeId {
        self.stack.last().map_or(Document::ROOT, |open| open.0)
    }

    /// The number of open elements.
    pub fn depth(&self) -> usize {
        self.stack.len() - 1
    }

    #[inline]
    fn push(&mut self, mut node: Node) -> NodeId {
        let id = self.doc.nodes.len() as u32;
        if let Some((parent, last)) = self.stack.last_mut() {
            node.parent = parent.0;
            if *last == NIL {
                self.doc.nodes[parent.index()].a = id;
                node.prev = id;
            } else {
                self.doc.nodes[*last as usize].next = id;
                node.prev = *last;
            }
            *last = id;
        }
        self.doc.as_read = false;
        self.doc.nodes.push(node);
        self.in_text = false;
        self.in_tag = false;
        NodeId(id)
    }

    /// Starts an element. A prefix not bound to the namespace here is declared.
    pub fn start_element(&mut self, prefix: &str, namespace: &str, local: &str) -> NodeId {
        let name = self.doc.intern_name(namespace, local);
        self.start(prefix, name)
    }

    /// Starts an element with a name of this document ([`Document::intern_name`]).
    pub fn start(&mut self, prefix: &str, name: NameId) -> NodeId {
        let prefix = self.doc.names.prefix(prefix);
        let uri = self.doc.names.uri_id_of(name.0);
        let parent = self.current();
        let n = self.push(Node { prefix, name: name.0, ..Node::new(NodeKind::Element, DETACHED) });
        if prefix != XML_PREFIX && self.doc.binding(parent, prefix).unwrap_or(NO_URI) != uri {
            self.doc.declare(n, prefix, uri);
        }
        self.stack.push((n, NIL));
        self.in_tag = true;
        n
    }

    /// Declares a namespace at the element just started, unless it is in scope there.
    pub fn namespace(&mut self, prefix: &str, uri: &str) {
        if self.in_tag {
            let n = self.current();
            let (prefix_id, uri_id) = (self.doc.names.prefix(prefix), self.doc.names.uri(uri));
            // A namespace in scope is not declared again: a result tree would repeat it on every element.
            if uri.is_empty() && !prefix.is_empty() {
                // What the original did not inherit.
                if self.doc.binding(n, prefix_id).is_some_and(|bound| bound != NO_URI)
                    && !self.doc.declarations(n).any(|d| d.prefix == prefix_id)
                    && self.doc.node(n).prefix != prefix_id
                {
                    self.doc.declare(n, prefix_id, NO_URI);
                }
            } else if self.doc.binding(n, prefix_id) != Some(uri_id) {
                Tag { doc: self.doc, element: n, number: 0 }.add_namespace(prefix, uri);
            }
        }
    }

    /// Hides from the element just started the namespaces that it inherits and does not have itself, by `own` prefixes; the default
    /// namespace, too. Call it after the element got its attributes.
    pub fn hide_inherited(&mut self, own: &dyn Fn(&str) -> bool) {
        let n = self.current();
        let Some(parent) = self.doc.parent(n).filter(|_| self.in_tag) else { return };
        let node = *self.doc.node(n);
        let attributes = self.doc.attributes(n).map(|a| self.doc.node(a).prefix);
        let mut kept: HashSet<_> = attributes.filter(|prefix| *prefix != NO_PREFIX).collect();
        kept.extend(self.doc.declarations(n).map(|d| d.prefix));
        kept.insert(node.prefix);
        for (prefix, uri) in self.doc.scope(parent) {
            if uri != NO_URI && !kept.contains(&prefix) && !own(self.doc.names.prefix_str(prefix)) {
                self.doc.declare(n, prefix, NO_URI);
            }
        }
    }

    /// Adds an attribute to the element just started (or replaces its value). `false` when the element already has
    /// children: it is too late then.
    pub fn attribute(&mut self, prefix: &str, namespace: &str, local: &str, value: &str) -> bool {
        if !self.in_tag {
            return false;
        }
        let n = self.current();
        let name = self.doc.intern_name(namespace, local);
        if let Some(old) = self.doc.attribute_by_name(n, name) {
            self.doc.set_text(old, value);
            return true;
        }
        let uri = self.doc.names.uri_id_of(name.0);
        let prefix = self.doc.attribute_prefix(n, prefix, uri);
        let (a, b) = self.doc.store(value);
        let node = Node { flags: SIDE, prefix, name: name.0, a, b, ..Node::new(NodeKind::Attribute, n.0) };
        let attribute = self.doc.add(node);
        self.doc.link_attribute(n, attribute);
        true
    }

    /// Appends text; successive texts are one node.
    pub fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.in_text
            && let Some(node) = self.doc.nodes.last_mut()
        {
            node.b += text.len() as u32;
            self.doc.side.push_str(text);
            return;
        }
        if let Some(&(parent, last)) = self.stack.last()
            && last != NIL
            && self.doc.nodes[last as usize].kind == NodeKind::Text
        {
            // Text that was there before this builder.
            self.close(parent, last);
            self.doc.append_text(parent, text);
            return;
        }
        let (a, b) = self.doc.store(text);
        self.push(Node { flags: SIDE, a, b, ..Node::new(NodeKind::Text, DETACHED) });
        self.in_text = true;
    }

    /// Appends a comment.
    pub fn comment(&mut self, text: &str) {
        let (a, b) = self.doc.store(text);
        self.push(Node { flags: SIDE, a, b, ..Node::new(NodeKind::Comment, DETACHED) });
    }

    /// Appends a processing instruction.
    pub fn pi(&mut self, target: &str, data: &str) {
        let name = self.doc.names.name(NO_URI, target);
        let (a, b) = self.doc.store(data);
        self.push(Node { flags: SIDE, name, a, b, ..Node::new(NodeKind::ProcessingInstruction, DETACHED) });
    }

    /// Appends a deep copy of a node of another document.
    pub fn copy(&mut self, other: &Document, node: NodeId) {
        match other.kind(node) {
            NodeKind::Text => return self.text(other.text(node)),
            NodeKind::Attribute => {
                self.attribute(
                    other.prefix(node),
                    other.namespace(node),
                    other.local(node),
                    other.text(node),
                );
                return;
            }
            _ => {}
        }
        let Some(&(parent, last)) = self.stack.last() else { return };
        self.close(parent, last);
        self.doc.copy_from(parent, other, node);
        let last = self.doc.last_child(parent).map_or(NIL, |n| n.0);
        if let Some(open) = self.stack.last_mut() {
            open.1 = last;
        }
        self.in_tag = false;
        self.in_text = false;
    }

    /// Whether no element is open.
    pub fn is_at_top(&self) -> bool {
        self.stack.len() < 2
    }

    /// Ends the innermost element.
    pub fn end_element(&mut self) {
        if self.stack.len() > 1
            && let Some((n, last)) = self.stack.pop()
        {
            self.close(n, last);
            self.in_text = false;
            self.in_tag = false;
        }
    }

    fn close(&mut self, n: NodeId, last: u32) {
        if last != NIL {
            let first = self.doc.nodes[n.index()].a;
            self.doc.nodes[first as usize].prev = last;
        }
    }

    /// Ends everything that is open.
    pub fn finish(self) {}
}

impl Drop for Builder<'_> {
    fn drop(&mut self) {
        while let Some((n, last)) = self.stack.pop() {
            self.close(n, last);
        }
    }
}
