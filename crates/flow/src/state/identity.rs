//! State that belongs to an identity and not to a plan: suspensions, switches, positions, tokens, counters.
//!
//! A compiled artifact borrows its cell from the one table of the process ([`States::get`]) and holds it as long as its
//! plan lives. The plan of a reload is made beside the one in force, so it finds the same cells. What no plan holds any
//! more is dropped by itself. Settings do not belong into a cell: they are the plan's, and a reload may change
//! them.

use crate::state::lock;
use config::ArtifactKind;
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, Weak};

/// What a state is the state of: an artifact, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The kind of the artifact.
    pub kind: ArtifactKind,
    /// Its name.
    pub artifact: Arc<str>,
    /// The part within it; empty: the artifact itself.
    pub part: Arc<str>,
}

impl Identity {
    /// An artifact itself.
    pub fn of(kind: ArtifactKind, artifact: &str) -> Identity {
        Identity { kind, artifact: Arc::from(artifact), part: Arc::from("") }
    }

    /// A part of this, by a name that is unique in it.
    pub fn part(&self, name: &str) -> Identity {
        let part = if self.part.is_empty() { name.to_owned() } else { format!("{}/{name}", self.part) };
        Identity { kind: self.kind, artifact: Arc::clone(&self.artifact), part: Arc::from(part) }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.kind, self.artifact)?;
        if !self.part.is_empty() {
            write!(out, ": {}", self.part)?;
        }
        Ok(())
    }
}

/// The table of all states, by identity and type of the state.
#[derive(Default)]
pub struct States(Mutex<Table>);

#[derive(Default)]
struct Table {
    cells: HashMap<(Identity, TypeId), Weak<dyn Any + Send + Sync>>,
    /// So many cells are looked through for unused ones.
    sweep: usize,
}

impl States {
    /// The state of this type that belongs to an identity; made when no plan holds it.
    pub fn get<T: Default + Send + Sync + 'static>(&self, identity: &Identity) -> Arc<T> {
        self.get_or_make(identity, T::default)
    }

    /// As [`States::get`], for a state that has to be made.
    pub fn get_or_make<T: Send + Sync + 'static>(
        &self,
        identity: &Identity,
        make: impl FnOnce() -> T,
    ) -> Arc<T> {
        let key = (identity.clone(), TypeId::of::<T>());
        let mut table = lock(&self.0);
        let held = table.cells.get(&key).and_then(Weak::upgrade);
        if let Some(held) = held.and_then(|held| held.downcast().ok()) {
            return held;
        }
        if table.cells.len() >= table.sweep {
            table.cells.retain(|_, cell| cell.strong_count() > 0);
            table.sweep = 2 * table.cells.len() + 16;
        }
        let made = Arc::new(make());
        let cell: Weak<T> = Arc::downgrade(&made);
        table.cells.insert(key, cell);
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_state_lives_as_long_as_somebody_holds_it() {
        let states = States::default();
        let identity = Identity::of(ArtifactKind::Endpoint, "E");
        let first: Arc<AtomicUsize> = states.get(&identity);
        first.store(7, Ordering::Relaxed);
        let second: Arc<AtomicUsize> = states.get(&identity);
        drop(first);
        assert_eq!(second.load(Ordering::Relaxed), 7);
        let part: Arc<AtomicUsize> = states.get(&identity.part("member"));
        let other: Arc<Mutex<usize>> = states.get(&identity);
        assert_eq!((part.load(Ordering::Relaxed), *lock(&other)), (0, 0), "another part, another type");
        drop(second);
        let third: Arc<AtomicUsize> = states.get(&identity);
        assert_eq!(third.load(Ordering::Relaxed), 0, "forgotten with its last holder");
    }

    #[test]
    fn what_nobody_holds_does_not_fill_the_table() {
        let states = States::default();
        let kept: Vec<Arc<usize>> =
            (0..50).map(|n| states.get(&Identity::of(ArtifactKind::Proxy, &format!("kept{n}")))).collect();
        for n in 0..10_000 {
            let _: Arc<usize> = states.get(&Identity::of(ArtifactKind::Proxy, &format!("{n}")));
        }
        assert!(lock(&states.0).cells.len() < 200, "{}", lock(&states.0).cells.len());
        drop(kept);
    }
}
