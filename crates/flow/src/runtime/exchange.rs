//! The one answer that a client, or a mediator that runs a copy, waits for while branches of the message run.

use crate::runtime::aggregation::{Key, Rest};
use crate::runtime::context::Context;
use crate::runtime::services::Services;
use crate::state::lock;
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
                tracing::warn!(message_id = %context.message_id(), "the client has its answer already; this one is dropped")
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
        let parked = std::mem::take(&mut *lock(&exchange.parked));
        let mut goes_on = false;
        for parked in parked {
            goes_on |= parked.complete(exchange);
        }
        if !goes_on {
            exchange.close();
        }
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
    /// Goes on with the aggregate, if it is still open and its message has no answer. `true`: that may answer.
    fn complete(self, exchange: &Exchange) -> bool {
        let Some(services) = self.services.upgrade() else { return false };
        let Some((mut first, rest)) = services.aggregates.expire(&self.key, self.serial) else {
            return false;
        };
        // Where the process ends, tasks end with it.
        let wanted = exchange.is_open() && !exchange.is_shed();
        let goes_on = wanted && tokio::runtime::Handle::try_current().is_ok();
        let child = if goes_on { first.last_child("an aggregate that nothing completes") } else { None };
        match child {
            Some(child) => {
                child.spawn((self.complete)(first, rest));
                true
            }
            None => {
                let (id, count) = (first.message_id(), rest.others.len() + 1);
                let place = first.plan.place(first.location());
                tracing::warn!(
                    message_id = id,
                    place,
                    "an aggregate cannot be complete any more: its {count} parts are dropped"
                );
                false
            }
        }
    }
}

/// Goes on with an aggregate that nothing else can complete: its first part, and what was taken of the others.
pub type Complete = Box<dyn FnOnce(Box<Context>, Rest) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;
