//! `<messageProcessor>`: takes messages out of a store.

use super::Reading;
use crate::element::Element;
use crate::parameter::{self, Parameter};
use crate::read::{self, Shape};
use crate::value::Key;
use diagnostics::{Diagnostic, Span};

/// A message processor.
#[derive(Clone, Debug)]
pub struct MessageProcessor {
    /// Its name.
    pub name: Key,
    /// The Java class as written.
    pub class: Key,
    /// The kind of the class.
    pub kind: ProcessorKind,
    /// The store whose messages it takes.
    pub message_store: Key,
    /// The endpoint that it forwards to.
    pub target_endpoint: Option<Key>,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// The documentation.
    pub description: Option<String>,
    /// The whole element.
    pub span: Span,
}

/// The kinds of message processors.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum ProcessorKind {
    /// Sends every message to an endpoint until that succeeds.
    Forwarding,
    /// Runs a sequence with every message.
    Sampling,
    /// Moves messages to another store.
    Failover,
    /// The user's class.
    Custom,
}

pub(crate) const SHAPE: Shape = Shape {
    attributes: &["name", "class", "messageStore", "targetEndpoint", "description"],
    elements: &["description", "parameter"],
};

impl MessageProcessor {
    /// The classes that are built in, by the names that WSO2 writes.
    pub const CLASSES: [&str; 3] = [
        "org.apache.synapse.message.processor.impl.forwarder.ScheduledMessageForwardingProcessor",
        "org.apache.synapse.message.processor.impl.sampler.SamplingProcessor",
        "org.apache.synapse.message.processor.impl.failover.FailoverScheduledMessageForwardingProcessor",
    ];

    /// The text of a parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        parameter::text_of(&self.parameters, name)
    }

    pub(crate) fn parse(element: &Element, reading: &mut Reading<'_>) -> Option<MessageProcessor> {
        let diagnostics = &mut *reading.diagnostics;
        SHAPE.check(element, diagnostics);
        let name = read::required(element, "name", diagnostics);
        let class = read::required(element, "class", diagnostics);
        let message_store = read::required(element, "messageStore", diagnostics);
        let parameters = Parameter::children(element, reading.injector, diagnostics);
        let class = class?;
        let kind = match class.rsplit('.').next() {
            Some("ScheduledMessageForwardingProcessor" | "MessageForwardingProcessor") => {
                ProcessorKind::Forwarding
            }
            Some("SamplingProcessor") => ProcessorKind::Sampling,
            Some("FailoverScheduledMessageForwardingProcessor" | "FailoverMessageForwardingProcessor") => {
                ProcessorKind::Failover
            }
            _ => ProcessorKind::Custom,
        };
        let needed = match kind {
            ProcessorKind::Sampling => Some("sequence"),
            ProcessorKind::Failover => Some("message.target.store.name"),
            _ => None,
        };
        if let Some(needed) = needed.filter(|needed| parameter::text_of(&parameters, needed).is_none()) {
            diagnostics.push(
                Diagnostic::error(
                    "missing-parameter",
                    format!("the processor needs the parameter `{needed}`"),
                )
                .at(element.start_tag(), format!("`{needed}` is missing"))
                .did_you_mean(needed, parameters.iter().map(|p| p.name.as_str())),
            );
        }
        Some(MessageProcessor {
            kind,
            class,
            target_endpoint: read::optional(element, "targetEndpoint"),
            parameters,
            description: super::description(element),
            span: element.span(),
            name: name?,
            message_store: message_store?,
        })
    }
}
