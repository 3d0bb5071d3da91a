//! What was found out about the children of a node for a step of a pattern. Nodes are mostly matched one after the other, by a few
//! patterns: the last values are at hand, found without hashing; the others wait in a map.

use std::collections::HashMap;
use xml::NodeId;
use xpath::{DocId, Node};

/// A step (its address), a document, and a node of it.
pub(super) type StepOfNode = (usize, DocId, NodeId);

/// Most that is kept: about as many nodes.
const MOST: usize = 1 << 18;

/// How many are at hand.
const NEAR: usize = 8;

/// Values by step and node.
pub(super) struct StepValues<V> {
    near: Vec<(StepOfNode, V)>,
    /// Which of them makes room for the next one.
    oldest: usize,
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
        StepValues { near: Vec::new(), oldest: 0, others: HashMap::new(), size: 0 }
    }
}

impl<V: Keep> StepValues<V> {
    /// The value of a step at a node.
    #[inline]
    pub fn get(&mut self, key: StepOfNode) -> Option<&V> {
        let at = match self.near.iter().position(|(near, _)| *near == key) {
            Some(at) => at,
            None if self.others.is_empty() => return None,
            None => {
                let value = self.others.remove(&key)?;
                self.size -= value.size();
                self.put_near(key, value)
            }
        };
        self.near.get(at).map(|(_, value)| value)
    }

    /// Keeps a value. When there is too much, all but the last ones are forgotten.
    #[inline]
    pub fn put(&mut self, key: StepOfNode, value: V) {
        match self.near.iter_mut().find(|(near, _)| *near == key) {
            Some((_, old)) => *old = value,
            None => {
                self.put_near(key, value);
            }
        }
    }

    /// Puts a value that is not at hand there; where.
    fn put_near(&mut self, key: StepOfNode, value: V) -> usize {
        if self.near.len() < NEAR {
            self.near.reserve_exact(NEAR - self.near.len());
            self.near.push((key, value));
            return self.near.len() - 1;
        }
        let at = self.oldest;
        self.oldest = (at + 1) % NEAR;
        let (before, old) = std::mem::replace(&mut self.near[at], (key, value));
        self.put_aside(before, old);
        at
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
        assert_eq!((kept.get(key(1000)).copied(), kept.size), (None, 1000 - NEAR));
        let nodes = |count: usize| vec![Node::ABSENT; count];
        let mut kept = StepValues::default();
        for step in 0..NEAR + 3 {
            kept.put(key(step), nodes(MOST / 2));
        }
        assert!(kept.size <= MOST && kept.others.len() == 1 && kept.get(key(NEAR + 2)).is_some());
        assert_eq!((kept.near.len(), kept.get(key(0)).is_some()), (NEAR, false));
    }
}
