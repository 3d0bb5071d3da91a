//! `<inboundEndpoint>`: a listener or poller of its own.

use super::Reading;
use crate::element::Element;
use crate::parameter::{self, Parameter};
use crate::read::{self, Shape};
use crate::value::Key;
use diagnostics::{Diagnostic, Span};

/// An inbound endpoint.
#[derive(Clone, Debug)]
pub struct InboundEndpoint {
    /// Its name.
    pub name: Key,
    /// The protocol, unless there is a class.
    pub protocol: Option<Key>,
    /// The user's class.
    pub class: Option<Key>,
    /// The sequence that gets the messages.
    pub sequence: Option<Key>,
    /// The sequence for errors.
    pub on_error: Option<Key>,
    /// Starts paused. Default false.
    pub suspend: bool,
    /// Collect statistics.
    pub statistics: bool,
    /// Trace messages.
    pub trace: bool,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// Classes of handlers.
    pub handlers: Vec<Key>,
    /// The documentation.
    pub description: Option<String>,
    /// The whole element.
    pub span: Span,
}

const PROTOCOLS: [&str; 13] = [
    "http", "https", "httpws", "httpswss", "ws", "wss", "jms", "file", "kafka", "mqtt", "rabbitmq", "hl7",
    "grpc",
];

pub(crate) const SHAPE: Shape = Shape {
    attributes: &[
        "name",
        "protocol",
        "class",
        "sequence",
        "onError",
        "suspend",
        "statistics",
        "trace",
        "description",
    ],
    elements: &["parameters", "handlers", "description"],
};

pub(crate) const PARAMETERS: Shape = Shape { attributes: &[], elements: &["parameter"] };

pub(crate) const HANDLERS: Shape = Shape { attributes: &[], elements: &["handler"] };

impl InboundEndpoint {
    /// The text of a parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        parameter::text_of(&self.parameters, name)
    }

    pub(crate) fn parse(element: &Element, reading: &mut Reading<'_>) -> Option<InboundEndpoint> {
        let diagnostics = &mut *reading.diagnostics;
        SHAPE.check(element, diagnostics);
        let name = read::required(element, "name", diagnostics);
        let protocol = read::optional(element, "protocol");
        let class = read::optional(element, "class");
        match (&protocol, &class) {
            (None, None) => diagnostics.push(
                Diagnostic::error("missing-attribute", "`inboundEndpoint` needs `protocol` or `class`")
                    .at(element.start_tag(), "neither is there"),
            ),
            (Some(protocol), None) if !PROTOCOLS.contains(&protocol.as_str()) => diagnostics.push(
                read::bad_value(
                    "protocol",
                    protocol,
                    protocol.span,
                    format!("one of: {}", PROTOCOLS.join(", ")),
                )
                .did_you_mean(protocol, PROTOCOLS),
            ),
            _ => {}
        }
        let parameters = match element.child("parameters") {
            Some(list) => {
                PARAMETERS.check(list, diagnostics);
                Parameter::children(list, reading.injector, diagnostics)
            }
            None => Vec::new(),
        };
        let mut handlers = Vec::new();
        if let Some(list) = element.child("handlers") {
            HANDLERS.check(list, diagnostics);
            handlers.extend(
                list.children_named("handler")
                    .filter_map(|child| read::required(child, "class", diagnostics)),
            );
        }
        Some(InboundEndpoint {
            protocol,
            class,
            sequence: read::optional(element, "sequence"),
            on_error: read::optional(element, "onError"),
            suspend: read::boolean(element, "suspend", false, diagnostics),
            statistics: read::enabled(element, "statistics", diagnostics),
            trace: read::enabled(element, "trace", diagnostics),
            parameters,
            handlers,
            description: super::description(element),
            span: element.span(),
            name: name?,
        })
    }
}
