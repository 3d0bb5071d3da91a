//! What a message is while it is on its way, and what it meets: its context and scope, the plan that it began with, the
//! interfaces of mediators and endpoints, what all flows share.
//!
//! These know each other, since a plan is made of mediators, mediators run on contexts, and a context holds its plan.
//! Nothing here knows how a plan is compiled or run.

pub mod aggregation;
pub mod artifacts;
pub mod authority;
pub mod check;
pub mod clock;
pub mod context;
pub mod correlation;
pub mod data;
pub mod endpoint;
pub mod events;
pub mod exchange;
pub mod executor;
pub mod fault;
pub mod guard;
pub mod identifier;
pub mod inbound;
pub(crate) mod load;
pub mod mediator;
pub mod observers;
pub mod panics;
pub mod plan;
pub(crate) mod priority;
pub mod processor;
pub(crate) mod progress;
pub(crate) mod receipt;
pub mod reference;
pub(crate) mod report;
pub mod request;
pub mod roles;
pub mod routes;
pub mod scope;
pub mod services;
pub mod source;
pub mod stage;
mod stored;
mod tally;
pub mod task;

/// What shared counts are made of: `tests/models` puts others in their place.
mod sync {
    pub use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};
}
