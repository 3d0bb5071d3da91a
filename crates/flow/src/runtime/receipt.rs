//! What became of a message that its source has to confirm: a file that is deleted then, later the message of a broker.
//!
//! The outcome of a scope says that something failed, also where a fault sequence has dealt with that. Who confirms has to know the
//! difference, and whether the flow refused to (`SET_ROLLBACK_ONLY`). Copies of a message have its receipt too.

use super::context::Context;
use super::scope::Outcome;
use message::Value;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// See the module. Left with the message ([`Context::attach`]).
#[derive(Debug, Default)]
pub(crate) struct Receipt {
    refused: AtomicBool,
    failed: AtomicBool,
    dealt_with: AtomicBool,
}

/// What the flow property says that nothing is to be confirmed.
const ROLLBACK: &str = "SET_ROLLBACK_ONLY";

/// A flow of the message has ended: its receipt, if it has one, takes note.
pub(crate) fn note(context: &Context) {
    if let Some(receipt) = context.attached::<Receipt>() {
        receipt.note(context);
    }
}

impl Receipt {
    /// See [`note`].
    pub(crate) fn note(&self, context: &Context) {
        let is_set = context.properties.get(ROLLBACK).is_some_and(Value::is_true)
            || context.axis2(ROLLBACK).is_some_and(|value| value.is_true())
            || context.headers.get(ROLLBACK).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        if is_set {
            self.refused.store(true, Relaxed);
        }
        match context.progress.failure {
            None => {}
            Some(failure) if failure.handled => self.dealt_with.store(true, Relaxed),
            Some(_) => self.failed.store(true, Relaxed),
        }
    }

    /// Why the message is not confirmed; `None`: it is.
    pub(crate) fn refusal(&self, outcome: Outcome) -> Option<&'static str> {
        if self.refused.load(Relaxed) {
            return Some("the flow has set SET_ROLLBACK_ONLY");
        }
        match outcome {
            _ if self.failed.load(Relaxed) => Some("the flow failed, and no fault sequence dealt with that"),
            // A panic leaves no note.
            Outcome::Failed(_) if !self.dealt_with.load(Relaxed) => Some("the flow failed"),
            Outcome::Dropped => Some("the flow was broken off"),
            Outcome::Failed(_) | Outcome::Completed => None,
        }
    }
}
