//! Properties of one scope.

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
}

impl Clone for Properties {
    fn clone(&self) -> Properties {
        let mut few = Vec::new();
        if !self.few.is_empty() {
            // Who copies a message marks the copy.
            few.reserve_exact(self.few.len() + MARKS);
            few.extend_from_slice(&self.few);
        }
        Properties { few, many: self.many.clone() }
    }
}

impl Properties {
    /// An empty scope.
    pub const fn new() -> Properties {
        Properties { few: Vec::new(), many: None }
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
        let name = name.into();
        if let Some(map) = &mut self.many {
            map.insert(name, value);
            return;
        }
        if let Some(entry) = self.few.iter_mut().find(|(key, _)| *key == name) {
            entry.1 = value;
        } else if self.few.len() < FEW {
            self.few.push((name, value));
        } else {
            let mut map: HashMap<_, _> = self.few.drain(..).collect();
            map.insert(name, value);
            self.many = Some(Box::new(map));
        }
    }

    /// Removes `name` and returns what it held.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        match &mut self.many {
            Some(map) => map.remove(name),
            None => {
                let at = self.few.iter().position(|(key, _)| &**key == name)?;
                Some(self.few.remove(at).1)
            }
        }
    }

    /// Removes everything and keeps the memory for the next message.
    pub fn clear(&mut self) {
        self.few.clear();
        self.many = None;
    }

    /// All properties, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        let many = self.many.iter().flat_map(|map| map.iter().map(|(name, value)| (&**name, value)));
        self.few.iter().map(|(name, value)| (&**name, value)).chain(many)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
