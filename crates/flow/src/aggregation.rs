//! Open aggregates: parts of a split message that wait for each other.

use crate::context::{Context, Contexts};
use crate::lock;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;

/// What identifies an open aggregate: the mediator's number, and the message that was split (or the mediator alone
/// with `correlateOn`).
pub type Key = (u64, Arc<str>);

/// One open aggregate.
pub struct Aggregate {
    /// The parts in order of arrival.
    pub parts: Contexts,
    /// Distinguishes it from a later one with the same key, for its timer.
    pub serial: u64,
    /// How many parts the split had, if it said so.
    pub expected: Option<usize>,
    /// Dropped with the aggregate, which tells its timer.
    open: Option<oneshot::Sender<()>>,
}

/// All open aggregates of a process.
#[derive(Default)]
pub struct Aggregates {
    open: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    aggregates: HashMap<Key, Aggregate>,
    /// Keys that completed and may still see late parts; bounded.
    completed: HashSet<Key>,
    /// The same, in the order in which they completed.
    oldest: VecDeque<Key>,
    serial: u64,
}

/// Completed aggregates that are remembered, so that a late part is dropped instead of opening a new one.
const REMEMBERED: usize = 4096;

/// Parts for which room is made at once.
const MANY: usize = 64;

/// What [`Aggregates::add`] did.
pub enum Added {
    /// Complete: all parts in order of arrival.
    Complete(Contexts),
    /// Waiting for more; the first part opened it and may start a timer for this serial.
    Waiting {
        /// Whether this part opened the aggregate.
        opened: bool,
        /// Its serial.
        serial: u64,
    },
    /// The aggregate is complete already.
    Late(Box<Context>),
}

impl Aggregates {
    /// Adds a part. `complete` is asked with the number of parts there are now and the number the split announced.
    pub fn add(
        &self,
        key: Key,
        part: Box<Context>,
        expected: Option<usize>,
        complete: impl FnOnce(usize, Option<usize>) -> bool,
    ) -> Added {
        let mut table = lock(&self.open);
        let parts = if let Some(aggregate) = table.aggregates.get_mut(&key) {
            aggregate.parts.push(part);
            if !complete(aggregate.parts.len(), aggregate.expected) {
                return Added::Waiting { opened: false, serial: aggregate.serial };
            }
            table.aggregates.remove(&key).map(|aggregate| aggregate.parts).unwrap_or_default()
        } else if expected.is_some() && table.completed.contains(&key) {
            return Added::Late(part);
        } else if complete(1, expected) {
            vec![part]
        } else {
            table.serial += 1;
            let serial = table.serial;
            let mut parts = Vec::with_capacity(expected.unwrap_or(1).min(MANY));
            parts.push(part);
            table.aggregates.insert(key, Aggregate { parts, serial, expected, open: None });
            return Added::Waiting { opened: true, serial };
        };
        table.remember(key);
        Added::Complete(parts)
    }

    /// For a timer: resolves when the aggregate is complete. `None`: it is complete already.
    pub fn watch(&self, key: &Key, serial: u64) -> Option<oneshot::Receiver<()>> {
        let mut table = lock(&self.open);
        let aggregate = table.aggregates.get_mut(key).filter(|aggregate| aggregate.serial == serial)?;
        let (open, gone) = oneshot::channel();
        aggregate.open = Some(open);
        Some(gone)
    }

    /// The timer of an aggregate fired: its parts, if it is still open.
    pub fn expire(&self, key: &Key, serial: u64) -> Option<Contexts> {
        let mut table = lock(&self.open);
        if table.aggregates.get(key)?.serial != serial {
            return None;
        }
        let parts = table.aggregates.remove(key)?.parts;
        table.remember(key.clone());
        Some(parts)
    }

    /// How many are open.
    pub fn len(&self) -> usize {
        lock(&self.open).aggregates.len()
    }

    /// Whether none is open.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Table {
    fn remember(&mut self, key: Key) {
        if self.oldest.len() >= REMEMBERED
            && let Some(forgotten) = self.oldest.pop_front()
        {
            self.completed.remove(&forgotten);
        }
        if self.completed.insert(key.clone()) {
            self.oldest.push_back(key);
        }
    }
}
