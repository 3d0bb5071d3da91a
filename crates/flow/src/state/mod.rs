//! What the process keeps whatever plan is in force: it belongs to the identity of an artifact, or to a type.

pub mod activation;
pub mod identity;
pub mod metrics;

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// State that outlives plans, one value of each type: a reload finds it as it was.
#[derive(Default)]
pub struct SharedState(Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl SharedState {
    /// The one value of the type; made when it is first asked for.
    pub fn get<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut values = lock(&self.0);
        let value = Arc::clone(values.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default())));
        drop(values);
        // The key is the type of the value.
        value.downcast().unwrap_or_default()
    }
}

/// Locks a mutex, also one that a panic has left behind: what mutexes guard in flows is whole between any two statements.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
