//! Message processors as they are once compiled: `crate::processor` runs them.

use super::reference::{EndpointRef, SequenceRef};
use crate::state::activation::Activation;
use diagnostics::Span;
use jiff::tz::TimeZone;
use schedule::Cron;
use std::sync::Arc;
use std::time::Duration;
use stores::Store;

/// A message processor of the plan.
pub struct Processor {
    /// Its name.
    pub name: String,
    /// Where it is written.
    pub span: Span,
    /// Whether it is active.
    pub activation: Arc<Activation>,
    /// What `is.active` says, and a number for the whole definition.
    pub(crate) written: (bool, u64),
    pub(crate) store: Arc<dyn Store>,
    pub(crate) connection: StoreConnection,
    pub(crate) claim: Arc<Claim>,
    pub(crate) pace: Pace,
    pub(crate) kind: ProcessorWork,
}

/// What a processor does while its store cannot be used.
pub(crate) struct StoreConnection {
    /// The time between two attempts (`store.connection.retry.interval`).
    pub(crate) retry: Duration,
    /// After so many the processor is deactivated (`max.store.connection.attempts`); `None`: without end.
    pub(crate) attempts: Option<u32>,
}

/// When a processor takes messages.
pub(crate) enum Pace {
    /// One, and the next after this time.
    Interval(Duration),
    /// At times of the calendar, all that are there.
    Cron {
        cron: Cron,
        zone: TimeZone,
        /// The time between two messages (`throttle.interval`).
        between: Duration,
    },
}

/// What all processors of a store share, those of other names and of other plans too, and those of other stores in the same table.
#[derive(Default)]
pub(crate) struct Claim {
    /// Held by the one that works on the first message.
    pub(crate) turn: tokio::sync::Mutex<()>,
    /// The message that is done, which the store could not take out yet: none of them is to work on it again.
    pub(crate) done: std::sync::Mutex<Option<Done>>,
}

/// See [`Claim::done`].
pub(crate) struct Done {
    pub(crate) message: String,
    /// Why the store could not take it out the last time.
    pub(crate) why: String,
    /// The claim that it is in: it is to last although no plan has a processor of the store for a while.
    pub(crate) _within: Arc<Claim>,
}

pub(crate) enum ProcessorWork {
    Forwarding(Box<Forwarding>),
    Sampling(Sampling),
    Failover(Failover),
}

/// Each recipient has an answer of its own, or none: there is nothing to go by whether the message was delivered.
pub(crate) const RECIPIENTS: &str =
    "a forwarding processor sends to one endpoint, and its target is a recipient list";

/// Sends each message to an endpoint until that succeeds.
pub(crate) struct Forwarding {
    /// `None`: the property `target.endpoint` of each message names it.
    pub(crate) endpoint: Option<Arc<EndpointRef>>,
    /// The time between two attempts.
    pub(crate) retry: Duration,
    /// `None`: without end.
    pub(crate) attempts: Option<u32>,
    /// After the last attempt: drop the message and go on.
    pub(crate) drop: bool,
    /// After the last attempt: put the message there and go on.
    pub(crate) failed: Option<Arc<dyn Store>>,
    pub(crate) reply: Option<SequenceRef>,
    pub(crate) fault: Option<SequenceRef>,
    pub(crate) deactivate: Option<SequenceRef>,
    /// Statuses that are no failures.
    pub(crate) accepted: Vec<u16>,
}

/// Moves each message to another store, which takes it as soon as it can.
pub(crate) struct Failover {
    pub(crate) target: Arc<dyn Store>,
    /// The time between two attempts.
    pub(crate) retry: Duration,
    /// `None`: without end.
    pub(crate) attempts: Option<u32>,
    /// After the last attempt: drop the message and go on.
    pub(crate) drop: bool,
    pub(crate) fault: Option<SequenceRef>,
    pub(crate) deactivate: Option<SequenceRef>,
}

/// Runs a sequence with some messages at each interval.
pub(crate) struct Sampling {
    pub(crate) sequence: SequenceRef,
    /// How many messages at once; with none, as in WSO2, all stay in the store.
    pub(crate) concurrency: u64,
}
