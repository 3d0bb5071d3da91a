//! Event sources: who gets an event. The services that they are, and how messages of WS-Eventing are read, are not known here.

use crate::runtime::context::Context;
use crate::runtime::fault::Fault;
use crate::runtime::mediator::{Mediator, Split};
use jiff::Timestamp;
use std::sync::Arc;

/// An event source of the plan.
pub trait EventSource: Send + Sync {
    /// Its name, which is that of its service.
    fn name(&self) -> &str;

    /// Copies of the message for those who want the event, to be run aside; `None`: no subscriber does. With a topic, those subscribers get it whose
    /// filter is a topic, whatever the message says.
    ///
    /// # Errors
    /// The message cannot be read.
    fn event(&self, context: &mut Context, topic: Option<&str>) -> Result<Option<Split>, Fault>;

    /// Who gets events now.
    fn subscriptions(&self) -> Vec<Subscription>;

    /// The one step of its service.
    fn service(self: Arc<Self>) -> Box<dyn Mediator>;
}

/// What is to be seen of a subscription.
#[derive(Clone, Debug)]
pub struct Subscription {
    /// Its id.
    pub id: String,
    /// Where events go.
    pub address: String,
    /// What is filtered by, in words; empty: nothing.
    pub filter: String,
    /// When it ends; `None`: it does not.
    pub expires: Option<Timestamp>,
    /// It stands in the configuration.
    pub written: bool,
}
