//! Who is let in, and what is kept secret: WS-Security, access profiles, the vault.
#![allow(clippy::unwrap_used)] // helpers of tests

#[path = "../support/mod.rs"]
mod support;

mod access;
mod secrets;
mod wss;
