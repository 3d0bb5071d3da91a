//! Cached results of functions (`xsl:function` with `cache="yes"` or `new-each-time="no"`, XSLT 3.0 section 10.3.7): by their arguments, during
//! a transformation, if both are atomic values and nodes.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Mutex;
use xpath::atomic::Atomic;
use xpath::{Item, Value};

/// Most cached results of all functions together, …
const ENTRIES: usize = 100_000;
/// … and the longest arguments and results, in bytes.
const LONGEST: usize = 4096;

/// See the module.
#[derive(Default)]
pub(super) struct Memo {
    results: Mutex<HashMap<String, Value>>,
}

impl Memo {
    /// The key of a call; `None`: some argument is a function, or they are long.
    pub fn key(slot: u32, args: &[Value]) -> Option<String> {
        let mut key = slot.to_string();
        for arg in args {
            key.push('\u{1}');
            for item in arg.items() {
                if key.len() > LONGEST {
                    return None;
                }
                let atom = match item {
                    Item::Atomic(atom) => atom,
                    Item::Node(node) => {
                        let _ = write!(key, "{} {} {};", node.doc.0, node.id.index(), node.namespace);
                        continue;
                    }
                };
                if atom.is_function() {
                    return None;
                }
                let text = atom.to_text();
                // A float and a double, or a date and a text, with the same text differ.
                let _ = write!(key, "{:?} {} {text};", atom.kind(), text.len());
                if let Atomic::Name(name) = &atom {
                    let _ = write!(key, "{} {};", name.namespace.len(), name.namespace);
                }
            }
        }
        Some(key)
    }

    /// The cached result of a call.
    pub fn get(&self, key: &str) -> Option<Value> {
        self.results.lock().ok()?.get(key).cloned()
    }

    /// Caches a result, if no function is in it and it is not large. When there are too many, the cache is emptied.
    pub fn put(&self, key: String, value: &Value) {
        let mut size = 0;
        for item in value.items() {
            match item {
                Item::Node(_) => size += 16,
                Item::Atomic(atom) if !atom.is_function() => size += 16 + atom.to_text().len(),
                Item::Atomic(_) => return,
            }
            if size > LONGEST {
                return;
            }
        }
        if let Ok(mut results) = self.results.lock() {
            if results.len() >= ENTRIES {
                results.clear();
            }
            results.insert(key, value.clone());
        }
    }
}
