//! What the tests of operations share.
#![allow(dead_code, clippy::unwrap_used)] // each test uses some of it

pub mod mail;
pub mod place;

use flow::Registry;
use flow::testing::{self, Tested};

pub const XML: (&str, &str) = ("Content-Type", "application/xml");
pub const JSON: (&str, &str) = ("Content-Type", "application/json");

/// Mediators, operations and endpoints.
pub fn registry() -> Registry {
    let mut registry = mediators::registry(endpoints::endpoint);
    busbar_connectors::extend(&mut registry);
    registry
}

/// Mediators as the main sequence, with what stands beside it behind `<!--top-->`.
pub fn main(mediators: &str) -> Tested {
    testing::main(&registry(), mediators)
}
