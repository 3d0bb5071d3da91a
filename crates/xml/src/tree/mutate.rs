//! Changing the tree. No change moves a node or voids an id.

use super::{DETACHED, Document, NIL, Node, NodeId, NodeKind, NsDecl, SIDE};
use crate::fixup::StartTag;
use crate::names::{NO_PREFIX, NO_URI, NameId, PrefixId, UriId};

impl Document {
    pub(crate) fn add(&mut self, node: Node) -> NodeId {
        // 4 Gi nodes take 128 GiB: the parser's limit and the memory end before.
        self.as_read = false;
        self.nodes.push(node);
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// Puts a value into the side buffer.
    pub(crate) fn store(&mut self, value: &str) -> (u32, u32) {
        let start = self.side.len() as u32;
        self.side.push_str(value);
        (start, value.len() as u32)
    }

    fn new_value(&mut self, kind: NodeKind, value: &str) -> NodeId {
        let (a, b) = self.store(value);
        self.add(Node { flags: SIDE, a, b, ..Node::new(kind, DETACHED) })
    }

    /// Links `n`, which has no parent, as last child of `parent`.
    pub(crate) fn link_last(&mut self, parent: NodeId, n: NodeId) {
        self.nodes[parent.index()].a = self.linked(self.nodes[parent.index()].a, parent, n);
    }

    /// Links `n`, which has no parent, as last attribute of `element`.
    pub(crate) fn link_attribute(&mut self, element: NodeId, n: NodeId) {
        self.nodes[element.index()].b = self.linked(self.nodes[element.index()].b, element, n);
    }

    /// Appends `n` to the list of `parent` that begins with `first`; returns the new beginning.
    fn linked(&mut self, first: u32, parent: NodeId, n: NodeId) -> u32 {
        let empty = first == NIL;
        let first = if empty { n.0 } else { first };
        let last = if empty { n.0 } else { self.nodes[first as usize].prev };
        if !empty {
            self.nodes[last as usize].next = n.0;
        }
        self.nodes[first as usize].prev = n.0;
        let node = &mut self.nodes[n.index()];
        (node.parent, node.prev, node.next) = (parent.0, last, NIL);
        first
    }

    fn is_container(&self, n: NodeId) -> bool {
        matches!(self.kind(n), NodeKind::Document | NodeKind::Element)
    }

    /// Appends an element with the expanded name (`namespace`, `local`). The prefix is declared where it is not yet
    /// bound to the namespace. Under a node that has no children (text, …) the element stays detached.
    pub fn append_element(&mut self, parent: NodeId, prefix: &str, namespace: &str, local: &str) -> NodeId {
        let uri = self.names.uri(namespace);
        let prefix = self.names.prefix(prefix);
        let name = self.names.name(uri, local);
        if self.is_container(parent) {
            self.note_append(parent);
        }
        let n = self.add(Node { prefix, name, ..Node::new(NodeKind::Element, DETACHED) });
        if self.is_container(parent) {
            self.link_last(parent, n);
        }
        let inherited = self.parent(n).and_then(|p| self.binding(p, prefix)).unwrap_or(NO_URI);
        if inherited != uri && prefix != crate::names::XML_PREFIX {
            self.declare(n, prefix, uri);
        }
        n
    }

    /// A new element that has no parent yet.
    pub fn create_element(&mut self, prefix: &str, namespace: &str, local: &str) -> NodeId {
        let uri = self.names.uri(namespace);
        let prefix = self.names.prefix(prefix);
        let name = self.names.name(uri, local);
        self.touch();
        self.unordered = true;
        let n = self.add(Node { prefix, name, ..Node::new(NodeKind::Element, DETACHED) });
        if uri != NO_URI {
            self.declare(n, prefix, uri);
        }
        n
    }

    /// A new document node beside the tree: a fragment that can hold anything.
    pub fn create_fragment(&mut self) -> NodeId {
        self.touch();
        self.unordered = true;
        self.add(Node::new(NodeKind::Document, DETACHED))
    }

    fn append_value(&mut self, parent: NodeId, kind: NodeKind, value: &str) -> NodeId {
        let fits = self.is_container(parent);
        if fits {
            self.note_append(parent);
        }
        let n = self.new_value(kind, value);
        if fits {
            self.link_last(parent, n);
        }
        n
    }

    /// Appends text; if the last child is text, it is extended (and returned).
    pub fn append_text(&mut self, parent: NodeId, value: &str) -> NodeId {
        if let Some(last) = self.last_child(parent).filter(|&n| self.kind(n) == NodeKind::Text) {
            self.touch();
            let node = self.nodes[last.index()];
            let (mut a, mut b) = (node.a, node.b);
            if node.flags & SIDE == 0 || (a + b) as usize != self.side.len() {
                let old = self.value(&node).to_owned();
                (a, b) = self.store(&old);
            }
            self.side.push_str(value);
            b += value.len() as u32;
            self.nodes[last.index()] = Node { flags: node.flags | SIDE, a, b, ..node };
            return last;
        }
        self.append_value(parent, NodeKind::Text, value)
    }

    /// Appends the text that `write` appends to the buffer. Unlike with [`Document::append_text`], a last
    /// child that is text is not extended.
    pub fn append_text_with(&mut self, parent: NodeId, write: impl FnOnce(&mut String)) -> NodeId {
        let fits = self.is_container(parent);
        if fits {
            self.note_append(parent);
        }
        let start = self.side.len();
        write(&mut self.side);
        let length = self.side.len().saturating_sub(start);
        let value =
            Node { flags: SIDE, a: start as u32, b: length as u32, ..Node::new(NodeKind::Text, DETACHED) };
        let n = self.add(value);
        if fits {
            self.link_last(parent, n);
        }
        n
    }

    /// Appends a comment. (`--` in it is separated by the serializer.)
    pub fn append_comment(&mut self, parent: NodeId, value: &str) -> NodeId {
        self.append_value(parent, NodeKind::Comment, value)
    }

    /// Appends a processing instruction.
    pub fn append_pi(&mut self, parent: NodeId, target: &str, value: &str) -> NodeId {
        let name = self.names.name(NO_URI, target);
        let n = self.append_value(parent, NodeKind::ProcessingInstruction, value);
        self.nodes[n.index()].name = name;
        n
    }

    /// Sets an attribute, new or not; returns its node. A prefix that means something else at the element is
    /// replaced by one that does not; a namespace without prefix gets one.
    pub fn set_attribute(
        &mut self,
        element: NodeId,
        prefix: &str,
        namespace: &str,
        local: &str,
        value: &str,
    ) -> NodeId {
        let uri = self.names.uri(namespace);
        let name = NameId(self.names.name(uri, local));
        if let Some(old) = self.attribute_by_name(element, name) {
            self.set_text(old, value);
            return old;
        }
        let prefix = self.attribute_prefix(element, prefix, uri);
        let fits = self.kind(element) == NodeKind::Element;
        if fits {
            self.note_append(element);
            if self.node(element).a != NIL {
                // It stands after the children in the arena but before them in the document.
                self.unordered = true;
            }
        }
        let n = self.new_value(NodeKind::Attribute, value);
        self.nodes[n.index()].prefix = prefix;
        self.nodes[n.index()].name = name.0;
        if fits {
            self.link_attribute(element, n);
        }
        n
    }

    /// A prefix for an attribute in the namespace `uri` at `element`, declared there when needed.
    pub(crate) fn attribute_prefix(&mut self, element: NodeId, wanted: &str, uri: UriId) -> PrefixId {
        if uri == NO_URI {
            return NO_PREFIX;
        }
        if uri == crate::names::XML_URI {
            return crate::names::XML_PREFIX;
        }
        if !wanted.is_empty() {
            let prefix = self.names.prefix(wanted);
            if self.binding(element, prefix) == Some(uri) {
                return prefix;
            }
        }
        let namespace = self.names.uri_str(uri).to_owned();
        let chosen = Tag { doc: self, element, number: 0 }.prefix_for_attribute(wanted, &namespace);
        self.names.prefix(&chosen)
    }

    /// Removes an attribute; `false` when there was none.
    pub fn remove_attribute(&mut self, element: NodeId, namespace: &str, local: &str) -> bool {
        match self.attribute_node(element, namespace, local) {
            Some(n) => {
                self.detach(n);
                true
            }
            None => false,
        }
    }

    /// Declares a namespace at an element, or changes its declaration. An empty URI with an empty prefix undeclares
    /// the default namespace. Names already there keep their namespace: the writer repairs contradictions.
    pub fn declare_namespace(&mut self, element: NodeId, prefix: &str, uri: &str) {
        let prefix = self.names.prefix(prefix);
        let uri = self.names.uri(uri);
        self.declare(element, prefix, uri);
    }

    pub(crate) fn declare(&mut self, element: NodeId, prefix: PrefixId, uri: UriId) {
        if self.kind(element) != NodeKind::Element {
            return;
        }
        self.touch();
        let mut at = self.node(element).ns;
        let mut last = 0;
        while let Some(decl) = (at as usize).checked_sub(1).and_then(|i| self.ns.get_mut(i)) {
            if decl.prefix == prefix {
                decl.uri = uri;
                return;
            }
            last = at;
            at = decl.next;
        }
        self.ns.push(NsDecl { prefix, uri, next: 0 });
        let new = self.ns.len() as u32;
        match (last as usize).checked_sub(1) {
            Some(i) => self.ns[i].next = new,
            None => self.nodes[element.index()].ns = new,
        }
    }

    /// Declares a namespace of a prefix that the element does not declare yet, behind its `last` declaration (0: it has none). Returns the
    /// new last one.
    pub(crate) fn declare_behind(
        &mut self,
        last: u32,
        element: NodeId,
        (prefix, uri): (PrefixId, UriId),
    ) -> u32 {
        self.touch();
        self.ns.push(NsDecl { prefix, uri, next: 0 });
        let new = self.ns.len() as u32;
        match (last as usize).checked_sub(1) {
            Some(i) => self.ns[i].next = new,
            None => self.nodes[element.index()].ns = new,
        }
        new
    }

    /// Takes the node with its content out of the tree. Its id stays valid.
    pub fn detach(&mut self, n: NodeId) {
        let node = *self.node(n);
        if node.parent == DETACHED {
            return;
        }
        self.touch();
        self.holes = true;
        let parent = &mut self.nodes[node.parent as usize];
        let first = if node.kind == NodeKind::Attribute { &mut parent.b } else { &mut parent.a };
        let first_id = *first;
        if first_id == n.0 {
            *first = node.next;
        }
        // The first sibling's `prev` is the last one.
        if node.next != NIL {
            self.nodes[node.next as usize].prev = node.prev;
        } else if first_id != n.0 {
            self.nodes[first_id as usize].prev = node.prev;
        }
        if first_id != n.0 {
            self.nodes[node.prev as usize].next = node.next;
        }
        let node = &mut self.nodes[n.index()];
        node.parent = DETACHED;
        node.next = NIL;
        node.prev = NIL;
    }

    /// Whether `n` may become a child of `parent`: not an attribute, not a document, not an ancestor of it.
    fn may_hold(&self, parent: NodeId, n: NodeId) -> bool {
        if !self.is_container(parent) || matches!(self.kind(n), NodeKind::Attribute | NodeKind::Document) {
            return false;
        }
        let mut at = Some(parent);
        while let Some(p) = at {
            if p == n {
                return false;
            }
            at = self.parent(p);
        }
        true
    }

    /// Moves `n` to the end of the children of `parent`. What cannot be there (an attribute, a document node, an
    /// ancestor of `parent`) stays where it is: `false`.
    pub fn append(&mut self, parent: NodeId, n: NodeId) -> bool {
        if !self.may_hold(parent, n) {
            return false;
        }
        self.keep_namespaces(n, parent);
        self.detach(n);
        self.touch();
        self.unordered = true;
        self.link_last(parent, n);
        true
    }

    /// Moves `n` before `reference`; `false` where it cannot be.
    pub fn insert_before(&mut self, reference: NodeId, n: NodeId) -> bool {
        let Some(parent) = self.parent(reference).filter(|_| self.kind(reference) != NodeKind::Attribute)
        else {
            return false;
        };
        if reference == n || !self.may_hold(parent, n) {
            return false;
        }
        self.keep_namespaces(n, parent);
        self.detach(n);
        self.touch();
        self.unordered = true;
        let prev = self.node(reference).prev;
        let is_first = self.node(parent).a == reference.0;
        self.nodes[n.index()].parent = parent.0;
        self.nodes[n.index()].next = reference.0;
        self.nodes[n.index()].prev = prev;
        self.nodes[reference.index()].prev = n.0;
        if is_first {
            self.nodes[parent.index()].a = n.0;
        } else {
            self.nodes[prev as usize].next = n.0;
        }
        true
    }

    /// Moves `n` after `reference`; `false` where it cannot be.
    pub fn insert_after(&mut self, reference: NodeId, n: NodeId) -> bool {
        if reference == n || self.kind(reference) == NodeKind::Attribute {
            return false;
        }
        match (self.next_sibling(reference), self.parent(reference)) {
            (Some(next), _) if next == n => true,
            (Some(next), _) => self.insert_before(next, n),
            (None, Some(parent)) => self.append(parent, n),
            (None, None) => false,
        }
    }

    /// Puts `new` in the place of `old`, which becomes detached; `false` where it cannot be.
    pub fn replace(&mut self, old: NodeId, new: NodeId) -> bool {
        if old == new || !self.insert_before(old, new) {
            return false;
        }
        self.detach(old);
        true
    }

    /// Sets the value of text, an attribute, a comment or a processing instruction. Of an element or document:
    /// replaces all children by one text (none when empty).
    pub fn set_text(&mut self, n: NodeId, value: &str) {
        if self.is_container(n) {
            self.remove_children(n);
            if !value.is_empty() {
                self.append_text(n, value);
            }
            return;
        }
        self.touch();
        let node = self.nodes[n.index()];
        if node.flags & SIDE != 0 && value.len() <= node.b as usize {
            // Fits in its old place.
            let range = node.a as usize..node.a as usize + value.len();
            if self.side.is_char_boundary(range.end) {
                self.side.replace_range(range, value);
                self.nodes[n.index()].b = value.len() as u32;
                return;
            }
        }
        let (a, b) = self.store(value);
        self.nodes[n.index()] = Node { flags: node.flags | SIDE, a, b, ..node };
    }

    /// Detaches all children.
    pub fn remove_children(&mut self, n: NodeId) {
        while let Some(child) = self.last_child(n) {
            self.detach(child);
        }
    }

    /// Gives an element, an attribute or (target) a processing instruction another name.
    pub fn rename(&mut self, n: NodeId, prefix: &str, namespace: &str, local: &str) {
        self.touch();
        let uri = self.names.uri(namespace);
        let name = self.names.name(uri, local);
        let prefix = match self.kind(n) {
            NodeKind::Element => {
                let prefix = self.names.prefix(prefix);
                // A declaration that other names rely on is not changed: the writer repairs.
                if self.parent(n).and_then(|p| self.binding(p, prefix)).unwrap_or(NO_URI) != uri
                    && !self.declarations(n).any(|d| d.prefix == prefix)
                {
                    self.declare(n, prefix, uri);
                }
                prefix
            }
            NodeKind::Attribute => match self.parent(n) {
                Some(element) => self.attribute_prefix(element, prefix, uri),
                None => self.names.prefix(prefix),
            },
            NodeKind::ProcessingInstruction => NO_PREFIX,
            _ => return,
        };
        let node = &mut self.nodes[n.index()];
        node.prefix = prefix;
        node.name = name;
    }
}

/// An element as a start tag under construction.
pub(crate) struct Tag<'d> {
    pub doc: &'d mut Document,
    pub element: NodeId,
    pub number: u32,
}

impl StartTag for Tag<'_> {
    fn bound(&self, prefix: &str) -> Option<&str> {
        let doc = &*self.doc;
        let mut at = Some(self.element);
        while let Some(n) = at {
            if doc.kind(n) == NodeKind::Element {
                if let Some((_, uri)) = doc.namespace_declarations(n).find(|(p, _)| *p == prefix) {
                    return Some(uri);
                }
                if doc.prefix(n) == prefix {
                    return Some(doc.namespace(n));
                }
            }
            at = doc.parent(n);
        }
        None
    }

    fn declares(&self, prefix: &str) -> bool {
        self.doc.namespace_declarations(self.element).any(|(p, _)| p == prefix)
    }

    fn uses(&self, prefix: &str) -> bool {
        let doc = &*self.doc;
        doc.prefix(self.element) == prefix
            || !prefix.is_empty() && doc.attributes(self.element).any(|a| doc.prefix(a) == prefix)
    }

    fn prefix_of(&self, namespace: &str) -> Option<String> {
        let scope = self.doc.in_scope_namespaces(self.element);
        scope.iter().find(|(p, uri)| !p.is_empty() && *uri == namespace).map(|(p, _)| (*p).to_owned())
    }

    fn declare(&mut self, prefix: &str, namespace: &str) {
        let (prefix, uri) = (self.doc.names.prefix(prefix), self.doc.names.uri(namespace));
        self.doc.declare(self.element, prefix, uri);
    }

    fn next_number(&mut self) -> u32 {
        self.number += 1;
        self.number - 1
    }
}
