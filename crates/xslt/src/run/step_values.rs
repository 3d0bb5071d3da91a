//! What was found out about the children of a node for a step of a pattern. Nodes are mostly matched one after the other, so the
//! last one is at hand; the others wait in a map, because several patterns and several parents alternate.

use std::collections::HashMap;
use xml::NodeId;
use xpath::{DocId, Node};

/// A step (its address), a document, and a node of it.
pub(super) type StepOfNode = (usize, DocId, NodeId);

/// Most that is kept: about as many nodes.
const MOST: usize = 1 << 18;

/// Values by step and node.
pub(super) struct StepValues<V> {
    last: Option<(StepOfNode, V)>,
    others: HashMap<StepOfNode, V>,
    /// What `others` hold.
    size: usize,
}

/// A value that is kept.
pub(super) trait Keep {
    /// How much it holds, in nodes.
    fn size(&self) -> usize {
        1
    }
}

impl Keep for bool {}
impl Keep for usize {}
impl Keep for (NodeId, usize) {}
impl Keep for Vec<Node> {
    fn size(&self) -> usize {
        1 + self.len()
    }
}

impl<V> Default for StepValues<V> {
    fn default() -> StepValues<V> {
        StepValues { last: None, others: HashMap::new(), size: 0 }
    }
}

impl<V: Keep> StepValues<V> {
    /// The value of a step at a node.
    #[inline]
    pub fn get(&mut self, key: StepOfNode) -> Option<&V> {
        if self.last.as_ref().is_none_or(|(last, _)| *last != key) {
            let value = self.others.remove(&key)?;
            self.size -= value.size();
            self.put(key, value);
        }
        self.last.as_ref().map(|(_, value)| value)
    }

    /// Keeps a value. When there is too much, all but the last are forgotten.
    #[inline]
    pub fn put(&mut self, key: StepOfNode, value: V) {
        match self.last.replace((key, value)) {
            Some((before, value)) if before != key => self.put_aside(before, value),
            _ => {}
        }
    }

    fn put_aside(&mut self, key: StepOfNode, value: V) {
        if self.size + value.size() > MOST {
            self.others.clear();
            self.size = 0;
        }
        self.size += value.size();
        if let Some(old) = self.others.insert(key, value) {
            self.size -= old.size();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_are_kept_within_bounds() {
        let key = |step: usize| (step, DocId(0), xml::Document::ROOT);
        let mut kept = StepValues::default();
        for step in 0..1000 {
            kept.put(key(step), step);
        }
        assert!((0..1000).chain([3, 999, 3]).all(|step| kept.get(key(step)) == Some(&step)));
        assert_eq!((kept.get(key(1000)).copied(), kept.size), (None, 999));
        let nodes = |count: usize| vec![Node::ABSENT; count];
        let mut kept = StepValues::default();
        for step in 0..4 {
            kept.put(key(step), nodes(MOST / 2));
        }
        assert!(kept.size <= MOST && kept.others.len() == 1 && kept.get(key(3)).is_some());
    }
}
