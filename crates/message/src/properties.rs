//! Properties of one scope.

use crate::memory::{Held, SMALL};
use crate::value::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// Above this many entries a scope is hashed; below it, walking a few names is cheaper.
const FEW: usize = 16;

/// Entries for which a copy of a scope has room.
const MARKS: usize = 4;

/// The properties of one scope of one message: names are case-sensitive, the last value wins.
///
/// An empty scope owns no memory, so a message that sets nothing costs nothing.
#[derive(Debug, Default)]
pub struct Properties {
    few: Vec<(Arc<str>, Value)>,
    /// Boxed, so that the scopes of a message that sets little stay small.
    #[allow(clippy::box_collection)]
    many: Option<Box<HashMap<Arc<str>, Value>>>,
    /// Large values. Copies of a message share them, so the one that they were set in counts them.
    held: Held,
}

impl Clone for Properties {
    fn clone(&self) -> Properties {
        let mut few = Vec::new();
        if !self.few.is_empty() {
            // Who copies a message marks the copy.
            few.reserve_exact(self.few.len() + MARKS);
            few.extend_from_slice(&self.few);
        }
        Properties { few, many: self.many.clone(), held: Held::NONE }
    }
}

impl Properties {
    /// An empty scope.
    pub const fn new() -> Properties {
        Properties { few: Vec::new(), many: None, held: Held::NONE }
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.few.is_empty() && self.many.as_ref().is_none_or(|map| map.is_empty())
    }

    /// The value of `name`.
    #[inline]
    pub fn get(&self, name: &str) -> Option<&Value> {
        // Most scopes of most messages.
        if self.few.is_empty() && self.many.is_none() { None } else { self.look_up(name) }
    }

    fn look_up(&self, name: &str) -> Option<&Value> {
        match &self.many {
            Some(map) => map.get(name),
            None => self.few.iter().find(|(key, _)| &**key == name).map(|(_, value)| value),
        }
    }

    /// Sets `name`, replacing what was there.
    pub fn set(&mut self, name: impl Into<Arc<str>>, value: Value) {
        let more = large(&value);
        let before = self.put(name.into(), value);
        self.count(more, before.as_ref());
    }

    fn put(&mut self, name: Arc<str>, value: Value) -> Option<Value> {
        if let Some(map) = &mut self.many {
            return map.insert(name, value);
        }
        if let Some(entry) = self.few.iter_mut().find(|(key, _)| *key == name) {
            return Some(std::mem::replace(&mut entry.1, value));
        }
        if self.few.len() < FEW {
            self.few.push((name, value));
        } else {
            let mut map: HashMap<_, _> = self.few.drain(..).collect();
            map.insert(name, value);
            self.many = Some(Box::new(map));
        }
        None
    }

    fn count(&mut self, more: usize, gone: Option<&Value>) {
        // What is not counted is not measured.
        let fewer = if self.held.bytes() > 0 { gone.map_or(0, large) } else { 0 };
        if more > 0 || fewer > 0 {
            self.held.exchange(more, fewer);
        }
    }

    /// Removes `name` and returns what it held.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let gone = match &mut self.many {
            Some(map) => map.remove(name),
            None => {
                let at = self.few.iter().position(|(key, _)| &**key == name)?;
                Some(self.few.remove(at).1)
            }
        };
        self.count(0, gone.as_ref());
        gone
    }

    /// Removes everything and keeps the memory for the next message.
    pub fn clear(&mut self) {
        self.few.clear();
        self.many = None;
        self.held = Held::NONE;
    }

    /// All properties, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        let many = self.many.iter().flat_map(|map| map.iter().map(|(name, value)| (&**name, value)));
        self.few.iter().map(|(name, value)| (&**name, value)).chain(many)
    }
}

/// How many bytes of a value count as held.
fn large(value: &Value) -> usize {
    Some(value.size()).filter(|&size| size >= SMALL).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_values_count_as_held_where_they_were_set() {
        let text = |size: usize| Value::string("x".repeat(size));
        let mut scope = Properties::new();
        scope.set("small", text(100));
        assert_eq!(scope.held.bytes(), 0);
        scope.set("a", text(10_000));
        scope.set("b", text(20_000));
        assert_eq!(scope.held.bytes(), 30_000);
        scope.set("a", text(5_000));
        assert_eq!((scope.held.bytes(), scope.clone().held.bytes()), (25_000, 0));
        (0..40).for_each(|i| scope.set(format!("p{i}"), Value::Integer(i)));
        scope.set("b", Value::Json(Arc::new(serde_json::json!(["y".repeat(6_000)]))));
        assert!((11_000..11_200).contains(&scope.held.bytes()), "{:?}", scope.held);
        scope.remove("b");
        scope.remove("small");
        assert_eq!(scope.held.bytes(), 5_000);
        scope.clear();
        assert_eq!(scope.held.bytes(), 0);
    }

    #[test]
    fn set_get_remove_below_and_above_the_hashing_limit() {
        let mut scope = Properties::new();
        for round in 0..2 {
            for i in 0..40 {
                scope.set(format!("p{i}"), Value::Integer(i + round));
            }
        }
        assert_eq!(scope.iter().count(), 40);
        assert_eq!(scope.get("p7").and_then(Value::as_integer), Some(8));
        assert!(scope.remove("p7").is_some() && scope.get("p7").is_none() && scope.remove("p7").is_none());
        scope.clear();
        assert!(scope.is_empty());
    }
}
