//! The one answer that a client, or a mediator that runs a copy, waits for while branches of the message run.

use crate::runtime::aggregation::{Key, Rest};
use crate::runtime::context::Context;
use crate::runtime::fault::Fault;
use crate::runtime::services::Services;
use crate::state::lock;
use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex, Weak};
use tokio::sync::oneshot;

/// The one answer that a client, or a mediator that runs a copy, waits for while branches of the message run.
///
/// When the last one that may answer has ended without doing so, and no aggregate can still complete, the driver or mediator that waits is told
/// instead of being left to wait.
pub struct Exchange {
    sender: Mutex<Option<oneshot::Sender<Box<Context>>>>,
    /// Flows that may answer, and timers that may still start one.
    voices: AtomicUsize,
    failed: AtomicU16,
    /// A part was refused for want of room.
    shed: AtomicBool,
    parked: Mutex<Vec<Parked>>,
}

impl Exchange {
    /// An exchange, and what the flow keeps that began it.
    pub(crate) fn new() -> (Arc<Exchange>, Awaited) {
        let (sender, answer) = oneshot::channel();
        let exchange = Arc::new(Exchange {
            sender: Mutex::new(Some(sender)),
            voices: AtomicUsize::new(0),
            failed: AtomicU16::new(0),
            shed: AtomicBool::new(false),
            parked: Mutex::default(),
        });
        let voice = Voice::new(&exchange);
        (exchange, Awaited { answer, voice })
    }

    /// A part of this exchange waits in an aggregate as its first one; `complete` goes on with it when no other part can come.
    pub fn parked(&self, key: Key, serial: u64, services: &Arc<Services>, complete: Complete) {
        let services = Arc::downgrade(services);
        lock(&self.parked).push(Parked { key, serial, services, complete });
        // What was given up meanwhile has no use for it.
        if self.is_shed() {
            self.give_up_parked();
        }
    }

    /// Whether there was no answer yet.
    fn is_open(&self) -> bool {
        lock(&self.sender).is_some()
    }

    /// A part found no room where the others wait: the whole cannot be had any more. No further parts are made, and those that
    /// wait are given up, so that what they hold is there for other messages.
    pub fn shed(&self) {
        self.shed.store(true, Release);
        self.give_up_parked();
    }

    /// Whether a part was refused for want of room.
    pub(crate) fn is_shed(&self) -> bool {
        self.shed.load(Acquire)
    }

    /// The open aggregates that no other one is inside of: what they come to may be a part of those around them. `None`: there are none
    /// at all.
    fn take_innermost(&self) -> Option<Vec<Parked>> {
        let open: Vec<_> = lock(&self.parked).iter().map(Parked::place).collect();
        let around = |(services, key, serial): &(Weak<Services>, Key, u64)| {
            services.upgrade().map(|services| services.aggregates.around(key, *serial)).unwrap_or_default()
        };
        let around: HashSet<u64> = open.iter().flat_map(around).collect();
        let is_around =
            |parked: &Parked| parked.key.split.as_ref().is_some_and(|split| around.contains(&split.number()));
        let mut parked = lock(&self.parked);
        let (outer, innermost): (Vec<_>, Vec<_>) =
            std::mem::take(&mut *parked).into_iter().partition(is_around);
        *parked = outer;
        (!innermost.is_empty()).then_some(innermost)
    }

    /// Closes the open aggregates of this exchange without going on with them.
    fn give_up_parked(&self) {
        let parked = std::mem::take(&mut *lock(&self.parked));
        for Parked { key, serial, services, .. } in parked {
            if let Some(services) = services.upgrade() {
                services.aggregates.expire(&key, serial);
            }
        }
    }

    /// Gives the answer; a second one is refused with a warning.
    pub(crate) fn answer(&self, context: Box<Context>) {
        let sender = lock(&self.sender).take();
        match sender {
            Some(sender) => {
                // The client may be gone; the answer is not needed then.
                let _ = sender.send(context);
            }
            None => {
                tracing::warn!(message_id = %context.message_id(), place = context.place(), "the client has its answer already; this one is dropped")
            }
        }
    }

    /// Notes the status of a branch that failed; the last one counts.
    pub(crate) fn failed(&self, status: u16) {
        self.failed.store(status, Release);
    }

    /// The status of a branch that failed, if one did.
    pub(crate) fn failure(&self) -> Option<u16> {
        Some(self.failed.load(Acquire)).filter(|&status| status != 0)
    }

    /// No answer is wanted any more.
    pub(crate) fn close(&self) {
        lock(&self.sender).take();
    }
}

/// One that may answer; when it is dropped, it no longer may.
pub(crate) struct Voice(pub(super) Arc<Exchange>);

impl Voice {
    pub(super) fn new(exchange: &Arc<Exchange>) -> Voice {
        exchange.voices.fetch_add(1, AcqRel);
        Voice(Arc::clone(exchange))
    }
}

impl Drop for Voice {
    fn drop(&mut self) {
        let exchange = &self.0;
        if exchange.voices.fetch_sub(1, AcqRel) != 1 {
            return;
        }
        // No branch is left that could answer: the parts that wait in an aggregate are all that will come.
        let Some(innermost) = exchange.take_innermost() else { return exchange.close() };
        // Until all of them go on, the end of one is not that of the last.
        let _all_go_on = Voice::new(exchange);
        innermost.into_iter().for_each(|parked| parked.complete(exchange));
    }
}

/// The end where the answer comes out, with the voice of the flow that will wait for it.
pub(crate) struct Awaited {
    pub answer: oneshot::Receiver<Box<Context>>,
    pub voice: Voice,
}

/// An open aggregate with a part of an exchange as its first one.
struct Parked {
    key: Key,
    serial: u64,
    services: Weak<Services>,
    complete: Complete,
}

impl Parked {
    /// Where the aggregate is.
    fn place(&self) -> (Weak<Services>, Key, u64) {
        (Weak::clone(&self.services), self.key.clone(), self.serial)
    }

    /// Goes on with the aggregate, if it is still open and its message has no answer.
    fn complete(self, exchange: &Exchange) {
        let Some(services) = self.services.upgrade() else { return };
        let Some((mut first, rest)) = services.aggregates.expire(&self.key, self.serial) else { return };
        let count = rest.others.len() + 1;
        let failure = self.key.split.as_ref().and_then(|split| split.failure());
        let parts = match failure {
            None => Ok(rest),
            Some(status) => Err(lacks_parts(count, status)),
        };
        // Where the process ends, tasks end with it.
        let wanted = exchange.is_open() && !exchange.is_shed();
        let goes_on = wanted && tokio::runtime::Handle::try_current().is_ok();
        let child = if goes_on { first.last_child("an aggregate that nothing completes") } else { None };
        match child {
            Some(child) => child.spawn((self.complete)(first, parts)),
            None => {
                let id = first.message_id();
                let place = first.place();
                tracing::warn!(
                    message_id = id,
                    place,
                    "an aggregate cannot be complete any more: its {count} parts are dropped"
                );
            }
        }
    }
}

/// Put together without those that failed, they would pass for all.
fn lacks_parts(count: usize, status: u16) -> Fault {
    let message =
        format!("The aggregate cannot be completed: {count} parts have arrived, and another one has failed");
    Fault { status, ..Fault::new(message) }
}

/// Goes on with an aggregate that nothing else can complete: its first part, and what was taken of the others, or why they are
/// not all that there is.
pub type Complete =
    Box<dyn FnOnce(Box<Context>, Result<Rest, Fault>) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;
