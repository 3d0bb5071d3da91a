//! Iterators over the tree.

use super::{Document, NIL, NodeId, NodeKind, NsDecl};
use crate::NameId;

/// The children of a node, see [`Document::children`].
#[derive(Clone, Debug)]
pub struct Children<'a> {
    doc: &'a Document,
    next: Option<NodeId>,
}

impl Iterator for Children<'_> {
    type Item = NodeId;
    #[inline]
    fn next(&mut self) -> Option<NodeId> {
        let n = self.next?;
        self.next = self.doc.next_sibling(n);
        Some(n)
    }
}

/// The descendants of a node, see [`Document::descendants`].
#[derive(Clone, Debug)]
pub struct Descendants<'a> {
    doc: &'a Document,
    top: NodeId,
    next: Option<NodeId>,
}

impl Iterator for Descendants<'_> {
    type Item = NodeId;
    #[inline]
    fn next(&mut self) -> Option<NodeId> {
        let n = self.next?;
        self.next = self.doc.following_in(n, self.top);
        Some(n)
    }
}

/// The attributes of an element, see [`Document::attributes`].
#[derive(Clone, Debug)]
pub struct Attributes<'a> {
    doc: &'a Document,
    next: u32,
}

impl Iterator for Attributes<'_> {
    type Item = NodeId;
    #[inline]
    fn next(&mut self) -> Option<NodeId> {
        if self.next == NIL {
            return None;
        }
        let n = self.next;
        self.next = self.doc.nodes[n as usize].next;
        Some(NodeId(n))
    }
}

/// The namespace declarations of an element, see [`Document::namespace_declarations`].
#[derive(Clone, Debug)]
pub struct NamespaceDeclarations<'a> {
    doc: &'a Document,
    next: u32,
}

impl<'a> Iterator for NamespaceDeclarations<'a> {
    type Item = (&'a str, &'a str);
    fn next(&mut self) -> Option<(&'a str, &'a str)> {
        let decl = self.doc.ns.get((self.next as usize).checked_sub(1)?)?;
        self.next = decl.next;
        Some((self.doc.names.prefix_str(decl.prefix), self.doc.names.uri_str(decl.uri)))
    }
}

impl Document {
    /// The children of `n`, in order. Attributes are none.
    #[inline]
    pub fn children(&self, n: NodeId) -> Children<'_> {
        Children { doc: self, next: self.first_child(n) }
    }

    /// What is below `n`, in document order, without `n` and without attributes.
    #[inline]
    pub fn descendants(&self, n: NodeId) -> Descendants<'_> {
        Descendants { doc: self, top: n, next: self.first_child(n) }
    }

    /// The attributes of `n`, in order. Namespace declarations are none.
    #[inline]
    pub fn attributes(&self, n: NodeId) -> Attributes<'_> {
        let node = self.node(n);
        Attributes { doc: self, next: if node.kind == NodeKind::Element { node.b } else { NIL } }
    }

    /// The namespace declarations written at `n`, as (prefix, URI); `("", "")` undeclares the default namespace.
    pub fn namespace_declarations(&self, n: NodeId) -> NamespaceDeclarations<'_> {
        NamespaceDeclarations { doc: self, next: self.node(n).ns }
    }

    pub(crate) fn declarations(&self, n: NodeId) -> impl Iterator<Item = &NsDecl> {
        let mut next = self.node(n).ns;
        std::iter::from_fn(move || {
            let decl = self.ns.get((next as usize).checked_sub(1)?)?;
            next = decl.next;
            Some(decl)
        })
    }

    /// The node after `n` in document order, below `top`: first child, else next sibling of it or its ancestors.
    #[inline]
    pub(crate) fn following_in(&self, n: NodeId, top: NodeId) -> Option<NodeId> {
        if let Some(child) = self.first_child(n) {
            return Some(child);
        }
        self.after_subtree(n, top)
    }

    /// The node after the subtree of `n`, below `top`.
    #[inline]
    pub(crate) fn after_subtree(&self, n: NodeId, top: NodeId) -> Option<NodeId> {
        let mut at = n;
        loop {
            if at == top {
                return None;
            }
            if let Some(next) = self.next_sibling(at) {
                return Some(next);
            }
            at = self.parent(at)?;
        }
    }

    /// The first child element of `n` with this name.
    #[inline]
    pub fn child_named(&self, n: NodeId, name: NameId) -> Option<NodeId> {
        let node = self.node(n);
        match node.kind {
            NodeKind::Document | NodeKind::Element => self.named_from(node.a, name),
            _ => None,
        }
    }

    /// The next sibling element of `n` (no attribute) with this name.
    #[inline]
    pub fn sibling_named(&self, n: NodeId, name: NameId) -> Option<NodeId> {
        self.named_from(self.node(n).next, name)
    }

    #[inline(always)]
    fn named_from(&self, mut at: u32, name: NameId) -> Option<NodeId> {
        while at != NIL {
            let node = &self.nodes[at as usize];
            if node.name == name.0 && node.kind == NodeKind::Element {
                return Some(NodeId(at));
            }
            at = node.next;
        }
        None
    }

    /// The first node in `from..to` (numbers of nodes) of this kind and name: among the descendants of a node of an
    /// [`Document::is_dense`] document.
    #[inline]
    pub fn named_in(&self, from: usize, to: usize, kind: NodeKind, name: NameId) -> Option<NodeId> {
        let nodes = self.nodes.get(from..to)?;
        let at = nodes.iter().position(|node| node.name == name.0 && node.kind == kind)?;
        NodeId::from_index(from + at)
    }

    /// The string value of `n`, where it is in one piece.
    #[inline]
    pub fn whole_text(&self, n: NodeId) -> Option<&str> {
        let node = self.node(n);
        match node.kind {
            NodeKind::Document | NodeKind::Element if node.a == NIL => Some(""),
            NodeKind::Document | NodeKind::Element => {
                let child = &self.nodes[node.a as usize];
                (child.kind == NodeKind::Text && child.next == NIL).then(|| self.value(child))
            }
            _ => Some(self.value(node)),
        }
    }

    /// Where the subtree of `n` ends in an [`Document::is_dense`] document: everything with an id above that of `n`
    /// and below the result is in it, attributes included.
    pub fn subtree_end(&self, n: NodeId) -> NodeId {
        if self.kind(n) == NodeKind::Attribute {
            return NodeId(n.0 + 1);
        }
        let mut at = n;
        loop {
            if let Some(next) = self.next_sibling(at) {
                return next;
            }
            match self.parent(at) {
                Some(parent) => at = parent,
                None => return NodeId(self.nodes.len() as u32),
            }
        }
    }
}
