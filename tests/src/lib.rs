//! Black-box cases: what a bus does, seen from outside.
//!
//! A case is a folder with a configuration and a `case.json`: backends, requests, the expected answers and what the backends
//! must have seen. [`suite::run`] reads the cases of some folders, runs each against a process of its own and reports;
//! [`ledger`] compares the outcome with the committed one.
//!
//! * [`spec`] is the format; [`expect`] decides whether a message is as expected.
//! * [`wire`] is an HTTP/1.1 client and server side of its own. It shares no code with the transport that it tests, and it
//!   accepts only exact framing.
//! * [`hostile`] sends what no client should send through a case and compares the outcomes with a table.
//! * [`ports`] finds free ones, also for the other tests of the workspace.
//! * [`backend`] has the stubs, [`bus`] starts and ends the process, [`case`] walks through the steps.

pub mod backend;
pub mod bus;
pub mod case;
pub mod compare;
pub mod expect;
pub mod hostile;
pub mod ledger;
pub mod ports;
pub mod quotes;
pub mod spec;
pub mod suite;
pub mod wire;

/// One expectation that does not hold, or a reason why the case could not go on. For people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(pub String);

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

/// A [`Failure`] from a format string.
macro_rules! failure {
    ($($arg:tt)*) => { $crate::Failure(format!($($arg)*)) };
}
pub(crate) use failure;

/// The first `limit` characters, for messages.
pub(crate) fn short(text: &str, limit: usize) -> &str {
    text.char_indices().nth(limit).map_or(text, |(at, _)| &text[..at])
}
