//! Stages: what happens to a message between the wire and the flow. A service has some before its flow begins and before its
//! answer leaves, an endpoint before a request leaves and when its answer has come.
//!
//! They are compiled with the configuration, and each says what it reads, as steps do. A message that a stage has nothing to do
//! with passes it without being read and without an allocation.

use super::context::{Context, Owner};
use super::endpoint::Outgoing;
use super::fault::Fault;
use super::mediator::Need;
use super::plan::Plan;
use bytes::Bytes;
use message::Payload;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// Which way a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the wire to the flow.
    In,
    /// From the flow to the wire.
    Out,
}

/// One stage, of a service or of an endpoint.
pub trait Stage: Send + Sync {
    /// Its name, for people.
    fn name(&self) -> &'static str;

    /// What it reads of a message that goes this way and does not pass.
    fn need(&self, way: Way) -> Need;

    /// Why, in words, for `busbar explain`; empty: it does nothing this way.
    fn reason(&self, way: Way) -> &'static str;

    /// Whether it has nothing to do with this message, as far as can be told without waiting.
    fn passes(&self, way: Way, context: &Context) -> bool;

    /// Works on a message that comes in.
    ///
    /// # Errors
    /// It cannot be let in as it is.
    fn comes_in<'a>(&'a self, context: &'a mut Context) -> Staged<'a>;

    /// Works on a message that goes out: to an endpoint, or (`None`) to the client.
    ///
    /// # Errors
    /// It cannot leave as it is.
    fn goes_out(&self, context: &mut Context, to: Option<&Outgoing>) -> Result<(), Fault>;

    /// Whether messages that leave are sealed by it: it works on what was written, which nothing changes any more, and what it
    /// did not let in is gone, whatever the fault leads to.
    fn seals(&self) -> bool {
        false
    }

    /// Whether attachments may go beside what it seals: it neither signs nor encrypts, and leaves that to the transport.
    fn lets_attachments_pass(&self) -> bool {
        false
    }

    /// Seals what was written of a message that leaves.
    ///
    /// # Errors
    /// It cannot leave as it is.
    fn seal(&self, context: &mut Context, written: Bytes) -> Result<Bytes, Fault> {
        let _ = context;
        Ok(written)
    }
}

/// What the client of a message is told that a stage does not let in, in place of what the fault would say of it. Left with the message.
#[derive(Debug)]
pub struct Refusal {
    /// The namespace of the code.
    pub namespace: &'static str,
    /// Its prefix.
    pub prefix: &'static str,
    /// The code.
    pub code: &'static str,
    /// The reason.
    pub reason: &'static str,
}

/// Whether messages are sealed.
pub(crate) fn are_sealed(stages: &[Arc<dyn Stage>]) -> bool {
    stages.iter().any(|stage| stage.seals())
}

/// Whether this message is sealed before it leaves.
pub(crate) fn is_sealed(stages: &[Arc<dyn Stage>], context: &Context) -> bool {
    stages.iter().any(|stage| stage.seals() && !stage.passes(Way::Out, context))
}

/// Whether attachments may go beside what these stages seal.
pub(crate) fn lets_attachments_pass(stages: &[Arc<dyn Stage>]) -> bool {
    stages.iter().filter(|stage| stage.seals()).all(|stage| stage.lets_attachments_pass())
}

/// Seals what was written.
///
/// # Errors
/// A stage's own.
pub(crate) fn seal(
    stages: &[Arc<dyn Stage>],
    context: &mut Context,
    mut written: Bytes,
) -> Result<Bytes, Fault> {
    for stage in stages.iter().rev().filter(|stage| stage.seals()) {
        written = stage.seal(context, written)?;
    }
    Ok(written)
}

/// The stages of a service or an endpoint, from the wire to the flow.
pub type Stages = Vec<Arc<dyn Stage>>;

/// A stage at work.
pub type Staged<'a> = Pin<Box<dyn Future<Output = Result<(), Fault>> + Send + 'a>>;

/// Takes a message through stages to the flow.
///
/// # Errors
/// A stage's own.
pub(crate) async fn comes_in(stages: &[Arc<dyn Stage>], context: &mut Context) -> Result<(), Fault> {
    let result = let_in(stages, context).await;
    if result.is_err() && are_sealed(stages) {
        // Whatever the fault leads to: nothing of the message is there any more.
        context.payload = Payload::empty();
    }
    result
}

async fn let_in(stages: &[Arc<dyn Stage>], context: &mut Context) -> Result<(), Fault> {
    for stage in stages {
        if !stage.passes(Way::In, context) {
            if stage.need(Way::In).is_whole() {
                context.receive_body().await?;
            }
            stage.comes_in(context).await?;
        }
    }
    Ok(())
}

/// Takes a message through stages to the wire. The body must have been received, where a stage needs it whole ([`need_to_leave`]).
///
/// # Errors
/// A stage's own.
pub(crate) fn goes_out(
    stages: &[Arc<dyn Stage>],
    context: &mut Context,
    to: Option<&Outgoing>,
) -> Result<(), Fault> {
    for stage in stages.iter().rev() {
        if !stage.passes(Way::Out, context) {
            stage.goes_out(context, to)?;
        }
    }
    Ok(())
}

/// What stages read of a message that leaves.
pub(crate) fn need_to_leave(stages: &[Arc<dyn Stage>], context: &Context) -> Need {
    let at_work = stages.iter().filter(|stage| !stage.passes(Way::Out, context));
    at_work.map(|stage| stage.need(Way::Out)).max().unwrap_or(Need::Nothing)
}

impl Plan {
    /// The stages of flows that belong to no proxy service and no API.
    pub fn main_stages(&self) -> &[Arc<dyn Stage>] {
        &self.stages
    }

    /// The stages of what a flow belongs to.
    pub fn stages(&self, owner: Owner) -> &[Arc<dyn Stage>] {
        match owner {
            Owner::Main | Owner::Inbound(_) => &self.stages,
            Owner::Proxy(index) => &self.proxies[index].stages,
            Owner::Resource(api, _) => &self.apis[api].stages,
        }
    }
}

impl Context {
    /// Whether it passes all stages of its service without being looked at.
    pub(crate) fn passes(&self, way: Way) -> bool {
        self.plan.stages(self.owner).iter().all(|stage| stage.passes(way, self))
    }
}
