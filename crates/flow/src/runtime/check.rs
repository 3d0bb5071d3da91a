//! What is known of the active checks of an endpoint: `crate::health` runs them, the endpoint draws the conclusions.

use message::Method;
use std::ops::RangeInclusive;
use std::time::Duration;

/// How a backend is asked whether it is well.
#[derive(Clone, Debug)]
pub struct Check {
    /// Where it leads: as the messages of the endpoint, with its TLS profile and proxy.
    pub target: transport::Target,
    /// What is asked.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// From the beginning of one check to that of the next.
    pub interval: Duration,
    /// Longest wait for the head of the answer, connecting included.
    pub timeout: Duration,
    /// The statuses of a backend that is well.
    pub expected: Vec<RangeInclusive<u16>>,
}

/// What a check changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The endpoint gets no messages any more, and why.
    Out(String),
    /// It gets messages again.
    Back,
}

/// How the checks of an endpoint went so far: for people.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// The checks let messages pass.
    pub healthy: bool,
    /// Checks that ended.
    pub checks: u64,
    /// Of these, failed.
    pub failed: u64,
    /// What the last one found, if it failed.
    pub last: Option<String>,
}
