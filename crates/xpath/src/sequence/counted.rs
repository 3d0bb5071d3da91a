//! Positions of nodes among their siblings, as `path()` counts them: from the last one that was counted.

use crate::value::DocId;
use std::cell::RefCell;
use std::collections::HashMap;
use xml::{NameId, NodeId, NodeKind};

/// Siblings of one kind and name: document, parent, kind, name.
pub(crate) type Siblings = (DocId, Option<NodeId>, NodeKind, Option<NameId>);

/// Most that are kept.
const MOST: usize = 4096;

/// By siblings: the last one that was counted, and its position.
#[derive(Default)]
pub(crate) struct Counted(RefCell<HashMap<Siblings, (NodeId, usize)>>);

impl Counted {
    /// The last of these siblings that was counted, and its position.
    pub fn last(&self, siblings: &Siblings) -> Option<(NodeId, usize)> {
        self.0.borrow().get(siblings).copied()
    }

    /// Keeps the position of a sibling. When there are too many, all others are forgotten.
    pub fn keep(&self, siblings: Siblings, last: (NodeId, usize)) {
        let mut kept = self.0.borrow_mut();
        if kept.len() >= MOST {
            kept.clear();
        }
        kept.insert(siblings, last);
    }
}
