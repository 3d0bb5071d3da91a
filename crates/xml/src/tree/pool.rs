//! Memory of dropped documents, kept per thread for the next ones: messages of one kind have the same names and
//! about the same number of nodes, so a new document starts with the capacity of the last one.

use super::{DETACHED, Document, Extent, Node, NodeKind, NsDecl};
use crate::names::Names;
use std::cell::RefCell;

/// The kept parts of a document.
#[derive(Default)]
pub(super) struct Arena {
    pub nodes: Vec<Node>,
    pub names: Names,
    pub side: String,
    pub ns: Vec<NsDecl>,
    pub extents: Vec<Extent>,
}

/// Documents kept (as many as the branches of some messages have), and the bytes of all their nodes, texts and names.
/// Bounds what an idle thread holds.
const DOCUMENTS: usize = 256;
const BYTES: usize = 4 << 20;

#[derive(Default)]
struct Pool {
    arenas: Vec<Arena>,
    bytes: usize,
}

thread_local! {
    static POOL: RefCell<Pool> = RefCell::default();
}

impl Arena {
    fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + self.side.capacity()
            + self.ns.capacity() * size_of::<NsDecl>()
            + self.extents.capacity() * size_of::<Extent>()
            + self.names.bytes()
    }

    /// The arena of a new document: only its document node.
    pub fn take() -> Arena {
        let kept = POOL.try_with(|pool| {
            let pool = &mut *pool.borrow_mut();
            let arena = pool.arenas.pop()?;
            pool.bytes -= arena.bytes();
            Some(arena)
        });
        let mut arena = kept.ok().flatten().unwrap_or_default();
        arena.nodes.push(Node::new(NodeKind::Document, DETACHED));
        arena
    }

    fn keep(mut self) {
        self.nodes.clear();
        self.side.clear();
        self.ns.clear();
        self.extents.clear();
        self.names.trim();
        let bytes = self.bytes();
        let _ = POOL.try_with(|pool| {
            let mut pool = pool.borrow_mut();
            if pool.arenas.len() < DOCUMENTS && pool.bytes + bytes <= BYTES {
                pool.bytes += bytes;
                pool.arenas.push(self);
            }
        });
    }
}

impl Drop for Document {
    fn drop(&mut self) {
        let arena = Arena {
            nodes: std::mem::take(&mut self.nodes),
            names: std::mem::take(&mut self.names),
            side: std::mem::take(&mut self.side),
            ns: std::mem::take(&mut self.ns),
            extents: std::mem::take(&mut self.extents),
        };
        if arena.nodes.capacity() > 0 {
            arena.keep();
        }
    }
}
