//! The mediators, a file each.
//!
//! A file holds the definition (from which come parser, lint and reference page), the parsing, what the mediator
//! needs of the body, its execution and its tests. A new mediator is a new file and one line in [`registry`].

mod aggregate;
mod clone;
mod filter;
mod iterate;
mod payload_factory;
mod send;
#[cfg(test)]
mod standins;
mod support;
mod target;

use flow::endpoint::EndpointFactory;
use flow::{Definition, Registry};

/// All mediators that can be executed.
#[rustfmt::skip] // one line each
const DEFINITIONS: &[&Definition] = &[
    &aggregate::DEFINITION,
    &clone::DEFINITION,
    &filter::DEFINITION,
    &iterate::DEFINITION,
    &payload_factory::DEFINITION,
    &send::DEFINITION,
];

/// Mediators of the language that cannot be executed here (yet), with what to do about it.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("class", "Java classes cannot run here: write the logic as script or as a service of its own"),
    ("pojoCommand", "Java classes cannot run here: write the logic as script or as a service of its own"),
    (
        "annotatedCommand",
        "Java classes cannot run here: write the logic as script or as a service of its own",
    ),
    ("spring", "Spring beans cannot run here: write the logic as a service of its own"),
    ("bean", "Java beans cannot run here: write the logic as a service of its own"),
    ("ejb", "Enterprise beans cannot be called from here: put a service in front of them"),
];

/// The registry that configurations are compiled with.
pub fn registry(endpoints: EndpointFactory) -> Registry {
    Registry { definitions: DEFINITIONS.to_vec(), unsupported: UNSUPPORTED.to_vec(), endpoints }
}
