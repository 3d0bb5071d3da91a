//! What must not hurt: bad requests to every scenario of the example round, and backends that fail in every way.
//!
//! After each, the same connection (or the next one) gets a good request through: nothing of a failure stays behind.
#![allow(clippy::unwrap_used)] // helpers of tests

#[path = "../support/mod.rs"]
mod support;

mod backend;
mod input;
mod wire;
