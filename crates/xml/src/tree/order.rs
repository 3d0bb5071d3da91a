//! Document order, also after changes.

use super::{Document, NodeId};
use std::cmp::Ordering;

impl Document {
    /// Whether ids ascend in document order: always after parsing or building in order.
    #[inline]
    pub fn is_ordered(&self) -> bool {
        !self.unordered
    }

    /// Whether also no detached node lies between the others: then a range of ids is a piece of the document.
    #[inline]
    pub fn is_dense(&self) -> bool {
        !self.unordered && !self.holes
    }

    /// Document order of two nodes (attributes come behind their element, before its children). Nodes of different
    /// trees of one document have a fixed, arbitrary order.
    #[inline]
    pub fn compare_order(&self, a: NodeId, b: NodeId) -> Ordering {
        if !self.unordered {
            return a.cmp(&b);
        }
        let ranks = self.ranks();
        ranks[a.index()].cmp(&ranks[b.index()])
    }

    /// A number per node that ascends in document order.
    #[inline]
    pub fn order_key(&self, n: NodeId) -> u32 {
        if self.unordered { self.ranks()[n.index()] } else { n.0 }
    }

    fn ranks(&self) -> &[u32] {
        self.order.get_or_init(|| {
            let mut ranks = vec![0; self.nodes.len()];
            let mut rank = 0;
            for root in (0..self.nodes.len() as u32).map(NodeId) {
                if self.parent(root).is_some() {
                    continue;
                }
                let mut at = Some(root);
                while let Some(n) = at {
                    ranks[n.index()] = rank;
                    rank += 1;
                    for a in self.attributes(n) {
                        ranks[a.index()] = rank;
                        rank += 1;
                    }
                    at = self.following_in(n, root);
                }
            }
            ranks
        })
    }

    /// Forgets the order index before a change.
    #[inline]
    pub(crate) fn touch(&mut self) {
        self.extents.clear();
        self.as_read = false;
        if self.unordered && self.order.get().is_some() {
            self.order = std::sync::OnceLock::new();
        }
    }

    /// Notes that a node is about to be added at the end of the arena as last child (or attribute) of `parent`.
    pub(crate) fn note_append(&mut self, parent: NodeId) {
        self.touch();
        if self.unordered {
            return;
        }
        // In order only if `parent` is the last node or an ancestor of it. Ancestors have smaller ids.
        let mut last = self.nodes.len() as u32 - 1;
        while last > parent.0 && last != super::DETACHED {
            last = self.nodes[last as usize].parent;
        }
        self.unordered = last != parent.0;
    }
}
