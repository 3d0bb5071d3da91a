//! A store that cannot be used on this machine: its data source is not known here, or no driver supports its database.

use crate::{Message, Store, StoreError, StoreFuture};
use std::sync::Arc;

/// See the module. Everything asked of it fails with the reason.
pub struct Absent {
    name: String,
    reason: String,
}

impl Absent {
    /// The store of that name; why it cannot be used.
    pub fn new(name: &str, reason: String) -> Absent {
        Absent { name: name.to_owned(), reason }
    }

    fn fails<T: Send + 'static>(&self) -> StoreFuture<'_, T> {
        Box::pin(std::future::ready(Err(StoreError::Unreachable { reason: self.reason.clone() })))
    }
}

impl Store for Absent {
    fn name(&self) -> &str {
        &self.name
    }

    fn capacity(&self) -> Option<usize> {
        None
    }

    fn size(&self) -> StoreFuture<'_, usize> {
        self.fails()
    }

    fn store(&self, _: Message) -> StoreFuture<'_, ()> {
        self.fails()
    }

    fn peek(&self) -> StoreFuture<'_, Option<Arc<Message>>> {
        self.fails()
    }

    fn ack<'a>(&'a self, _: &'a str) -> StoreFuture<'a, bool> {
        self.fails()
    }

    fn clear(&self) -> StoreFuture<'_, usize> {
        self.fails()
    }
}
