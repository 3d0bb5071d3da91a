//! Positions of nodes among their siblings, as `path()` counts them: from the last one that was counted.

use crate::value::DocId;
use std::collections::HashMap;
use std::sync::Mutex;
use xml::{NameId, NodeId, NodeKind};

/// Siblings of one kind and name: document, parent, kind, name.
pub(crate) type Siblings = (DocId, Option<NodeId>, NodeKind, Option<NameId>);

/// Most that are kept.
const MOST: usize = 4096;

/// By siblings: the last one that `path()` counted, and its position. A [host](crate::Host) may keep them from one evaluation to the
/// next, so that a path for each node of a long list does not count all nodes before it.
#[derive(Debug, Default)]
pub struct Positions(Mutex<HashMap<Siblings, (NodeId, usize)>>);

impl Positions {
    /// The last of these siblings that was counted, and its position.
    pub(crate) fn last(&self, siblings: &Siblings) -> Option<(NodeId, usize)> {
        self.0.lock().ok()?.get(siblings).copied()
    }

    /// Keeps the position of a sibling. When there are too many, all others are forgotten.
    pub(crate) fn keep(&self, siblings: Siblings, last: (NodeId, usize)) {
        let Ok(mut kept) = self.0.lock() else { return };
        if kept.len() >= MOST {
            kept.clear();
        }
        kept.insert(siblings, last);
    }
}
