//! A path of child and attribute names at a node, walked by the numbers that the document has for names.

use super::docs;
use crate::names::NameStep;
use xml::{Document, NodeId};

/// A path of names at a node.
pub(super) struct NamePath<'x> {
    pub(super) doc: &'x Document,
    pub(super) bound: &'x docs::Bound,
    pub(super) node: NodeId,
    pub(super) steps: &'x [NameStep],
}

impl<'x> NamePath<'x> {
    /// The first node in document order.
    #[inline]
    pub(super) fn first(&self) -> Option<NodeId> {
        match self.steps {
            [] => Some(self.node),
            [step] => {
                let name = self.bound.id(step.name)?;
                if step.attribute {
                    return self.doc.attribute_by_name(self.node, name);
                }
                self.doc.child_named(self.node, name)
            }
            _ => {
                let mut first = None;
                self.each(self.node, self.steps, &mut |node| {
                    first = Some(node);
                    true
                });
                first
            }
        }
    }

    /// The string value of the first node, where it is in one piece.
    #[inline]
    pub(super) fn text(&self) -> Option<&'x str> {
        self.first().map_or(Some(""), |node| self.doc.whole_text(node))
    }

    /// The string value of the only node (empty: there is none), where it is in one piece.
    #[inline]
    pub(super) fn only_text(&self) -> Option<&'x str> {
        let node = match self.steps {
            [step] if !step.attribute => {
                let Some(name) = self.bound.id(step.name) else { return Some("") };
                let Some(first) = self.doc.child_named(self.node, name) else { return Some("") };
                if self.doc.sibling_named(first, name).is_some() {
                    return None;
                }
                first
            }
            [] | [_] => match self.first() {
                Some(node) => node,
                None => return Some(""),
            },
            _ => {
                let (mut found, mut count) = (self.node, 0);
                self.each(self.node, self.steps, &mut |node| {
                    found = node;
                    count += 1;
                    count > 1
                });
                match count {
                    0 => return Some(""),
                    1 => found,
                    _ => return None,
                }
            }
        };
        self.doc.whole_text(node)
    }

    /// Calls `f` with each node in document order until it says `true`.
    pub(super) fn each(&self, node: NodeId, steps: &[NameStep], f: &mut impl FnMut(NodeId) -> bool) -> bool {
        let Some((step, rest)) = steps.split_first() else { return f(node) };
        let Some(name) = self.bound.id(step.name) else { return false };
        if step.attribute {
            return self.doc.attribute_by_name(node, name).is_some_and(f);
        }
        let mut at = self.doc.child_named(node, name);
        while let Some(child) = at {
            if if rest.is_empty() { f(child) } else { self.each(child, rest, f) } {
                return true;
            }
            at = self.doc.sibling_named(child, name);
        }
        false
    }
}
