//! Message stores: where messages wait; the in-memory store.
