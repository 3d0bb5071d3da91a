//! `<proxy>`: a service under `/services/NAME`.

use super::{Reading, SequenceRef};
use crate::element::{Element, SYNAPSE};
use crate::endpoint::Endpoint;
use crate::parameter::{self, Parameter};
use crate::read::{self, Shape};
use crate::value::Key;
use diagnostics::{Diagnostic, Diagnostics, Span};

/// A proxy service.
#[derive(Clone, Debug)]
pub struct Proxy {
    /// Its name, also that of the service.
    pub name: Key,
    /// The transports that it is offered on.
    pub transports: Transports,
    /// Servers that deploy it; empty: every one.
    pub pinned_servers: Vec<String>,
    /// Its group.
    pub service_group: Option<String>,
    /// Whether it accepts messages from the start. Default true.
    pub start_on_load: bool,
    /// Collect statistics.
    pub statistics: bool,
    /// Trace messages.
    pub trace: bool,
    /// The documentation.
    pub description: Option<String>,
    /// The target.
    pub target: Target,
    /// The WSDL.
    pub publish_wsdl: Option<PublishWsdl>,
    /// WS-Addressing is engaged.
    pub enable_addressing: bool,
    /// WS-Security is engaged.
    pub enable_sec: bool,
    /// Policies of the service, its operations and messages.
    pub policies: Vec<Policy>,
    /// Parameters of the service, for transports.
    pub parameters: Vec<Parameter>,
    /// The whole element.
    pub span: Span,
}

/// The transports of a service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Transports {
    /// Every one that is enabled.
    All,
    /// Those with these names.
    Named(Vec<String>),
}

impl Transports {
    /// Whether the transport `name` is among them.
    pub fn contains(&self, name: &str) -> bool {
        match self {
            Transports::All => true,
            Transports::Named(names) => names.iter().any(|n| n == name),
        }
    }
}

/// `<target>`: it has an in sequence or an endpoint.
#[derive(Clone, Debug)]
pub struct Target {
    /// For requests.
    pub in_sequence: Option<SequenceRef>,
    /// For responses; `None`: sent back unmodified.
    pub out_sequence: Option<SequenceRef>,
    /// For errors; `None`: the global `fault` sequence.
    pub fault_sequence: Option<SequenceRef>,
    /// Where messages go when the in sequence has run to its end.
    pub endpoint: Option<TargetEndpoint>,
    /// The element.
    pub span: Span,
}

/// The endpoint of a [`Target`].
#[derive(Clone, Debug)]
pub enum TargetEndpoint {
    /// A key, resolved when a message needs it.
    Named(Key),
    /// Written in place.
    Inline(Box<Endpoint>),
}

/// `<publishWSDL>`.
#[derive(Clone, Debug)]
pub struct PublishWsdl {
    /// Where the WSDL comes from.
    pub source: WsdlSource,
    /// Keep policies in it. Default true.
    pub preserve_policy: bool,
    /// The `resource`s of its imports: `(location, key)`.
    pub resources: Vec<(Key, Key)>,
    /// The element.
    pub span: Span,
}

/// The source of a published WSDL.
#[derive(Clone, Debug)]
pub enum WsdlSource {
    /// The WSDL of an endpoint.
    Endpoint(Key),
    /// A registry resource or local entry.
    Key(Key),
    /// An address.
    Uri(Key),
    /// Written in place.
    Inline(Element),
}

/// `<policy>`.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The registry resource or local entry.
    pub key: Key,
    /// Applies to this direction only.
    pub direction: Option<PolicyDirection>,
    /// Applies to this operation only: `(namespace, name)`.
    pub operation: Option<(String, String)>,
    /// The element.
    pub span: Span,
}

/// The messages that a [`Policy`] is for.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum PolicyDirection {
    /// Requests.
    In,
    /// Responses.
    Out,
}

pub(crate) const SHAPE: Shape = Shape {
    attributes: &[
        "name",
        "transports",
        "pinnedServers",
        "serviceGroup",
        "startOnLoad",
        "statistics",
        "trace",
        "description",
    ],
    elements: &[
        "description",
        "target",
        "publishWSDL",
        "enableAddressing",
        "enableSec",
        "enableRM",
        "policy",
        "parameter",
    ],
};

impl Proxy {
    pub(crate) fn parse(element: &Element, reading: &mut Reading<'_>) -> Option<Proxy> {
        SHAPE.check(element, reading.diagnostics);
        let name = read::required(element, "name", reading.diagnostics);
        let target = target(element, reading);
        let publish_wsdl = match element.child("publishWSDL") {
            Some(child) => publish_wsdl(child, reading).map(Some),
            None => Some(None),
        };
        let pinned = read::optional(element, "pinnedServers")
            .map(|key| reading.injector.resolve(key, reading.diagnostics));
        let diagnostics = &mut *reading.diagnostics;
        read::reliable_messaging(element, diagnostics);
        Some(Proxy {
            transports: transports(element, diagnostics),
            pinned_servers: pinned.map_or_else(Vec::new, |key| read::names(&key)),
            service_group: read::optional_text(element, "serviceGroup"),
            start_on_load: read::boolean(element, "startOnLoad", true, diagnostics),
            statistics: read::enabled(element, "statistics", diagnostics),
            trace: read::enabled(element, "trace", diagnostics),
            description: super::description(element),
            enable_addressing: element.child("enableAddressing").is_some(),
            enable_sec: element.child("enableSec").is_some(),
            policies: element
                .children_named("policy")
                .filter_map(|policy| Policy::parse(policy, diagnostics))
                .collect(),
            parameters: Parameter::children(element, reading.injector, diagnostics),
            span: element.span(),
            name: name?,
            target: target?,
            publish_wsdl: publish_wsdl?,
        })
    }

    /// The text of a service parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        parameter::text_of(&self.parameters, name)
    }
}

fn transports(element: &Element, diagnostics: &mut Diagnostics) -> Transports {
    let Some(key) = read::optional(element, "transports") else { return Transports::All };
    if key.value == "all" {
        return Transports::All;
    }
    let names = read::names(&key);
    const KNOWN: [&str; 16] = [
        "http", "https", "jms", "vfs", "mailto", "local", "tcp", "udp", "rabbitmq", "mqtt", "fix", "hl7",
        "ws", "wss", "kafka", "sap",
    ];
    let mut misspelt = false;
    for name in &names {
        if let Some(meant) = diagnostics::nearest(name, KNOWN).filter(|_| !KNOWN.contains(&&**name)) {
            misspelt = true;
            diagnostics.push(
                Diagnostic::warning("unknown-transport", format!("there is no transport `{name}`"))
                    .at(key.span, "the proxy is not offered on it")
                    .help(format!("did you mean `{meant}`?")),
            );
        }
    }
    // The transports of the bus; without one of them nothing reaches the proxy. WebSockets come through the same ports.
    let served =
        |name: &&String| matches!(name.as_str(), "http" | "https" | "local" | "vfs" | "ws" | "wss" | "all");
    let missing: Vec<&str> = names.iter().filter(|name| !served(name)).map(String::as_str).collect();
    if let Some(first) = missing.first().filter(|_| !misspelt) {
        let listed = missing.join(", ");
        let only = !names.iter().any(|name| matches!(name.as_str(), "http" | "https" | "local" | "vfs"));
        let serves = match *first {
            "jms" | "rabbitmq" | "mqtt" | "kafka" => {
                "messages of a queue need a consumer that posts them here"
            }
            "file" => "the transport of files is called `vfs`",
            "mailto" => "mails need a program that posts them here",
            _ => "put a program that speaks it in front, which posts the messages here",
        };
        let message = match only {
            true => format!("no request reaches this proxy: it is offered on {} only", names.join(", ")),
            false => format!("nothing reaches this proxy through {listed}"),
        };
        let help = match only {
            true => {
                format!("{serves}; with transports=\"http https\" the proxy serves them at /services/NAME")
            }
            false => serves.to_owned(),
        };
        // What half of it is reached through runs as it is.
        let found = match only {
            true => Diagnostic::warning("unsupported-transport", message),
            false => Diagnostic::warning("unserved-transport", message),
        };
        let label = "the bus listens on http and https, and takes files (vfs)";
        diagnostics.push(found.at(key.span, label).help(help));
    }
    Transports::Named(names)
}

pub(crate) const TARGET: Shape = Shape {
    attributes: &["inSequence", "outSequence", "faultSequence", "endpoint"],
    elements: &["inSequence", "outSequence", "faultSequence", "endpoint"],
};

fn target(proxy: &Element, reading: &mut Reading<'_>) -> Option<Target> {
    let diagnostics = &mut *reading.diagnostics;
    let mut targets = proxy.children_named("target");
    let Some(element) = targets.next() else {
        diagnostics.push(
            Diagnostic::error("missing-target", "the proxy has no target")
                .at(proxy.start_tag(), "expected a `target` inside"),
        );
        return None;
    };
    if let Some(second) = targets.next() {
        diagnostics.push(
            Diagnostic::error("duplicate-element", "the proxy has two targets")
                .at(second.start_tag(), "the second one")
                .at(element.start_tag(), "the first one"),
        );
    }
    TARGET.check(element, diagnostics);
    let in_sequence = SequenceRef::parse(element, "inSequence", diagnostics);
    let out_sequence = SequenceRef::parse(element, "outSequence", diagnostics);
    let fault_sequence = SequenceRef::parse(element, "faultSequence", diagnostics);
    let endpoint = match (read::optional(element, "endpoint"), element.child("endpoint")) {
        (Some(key), _) => Some(TargetEndpoint::Named(key)),
        (None, Some(child)) => Some(TargetEndpoint::Inline(Box::new(Endpoint::parse_with(
            child,
            reading.injector,
            diagnostics,
        )?))),
        (None, None) => None,
    };
    if in_sequence.is_none() && endpoint.is_none() {
        diagnostics.push(
            Diagnostic::error("missing-target", "the target has neither an in sequence nor an endpoint")
                .at(element.start_tag(), "messages would go nowhere")
                .help("add `inSequence` or `endpoint`, as an attribute or as an element"),
        );
    }
    Some(Target { in_sequence, out_sequence, fault_sequence, endpoint, span: element.span() })
}

pub(crate) const WSDL_RESOURCE: Shape = Shape { attributes: &["location", "key"], elements: &[] };

pub(crate) const PUBLISH_WSDL: Shape =
    Shape { attributes: &["key", "uri", "endpoint", "preservePolicy"], elements: &[] };

fn publish_wsdl(element: &Element, reading: &mut Reading<'_>) -> Option<PublishWsdl> {
    let diagnostics = &mut *reading.diagnostics;
    PUBLISH_WSDL.check_attributes(element, diagnostics);
    read::stray_text(element, diagnostics);
    let attribute = |name: &str, diagnostics: &mut Diagnostics| {
        read::optional(element, name).map(|key| reading.injector.resolve(key, diagnostics))
    };
    let inline = element.elements().find(|child| child.namespace() != SYNAPSE);
    let source = if let Some(key) = attribute("endpoint", diagnostics) {
        WsdlSource::Endpoint(key)
    } else if let Some(key) = attribute("key", diagnostics) {
        WsdlSource::Key(key)
    } else if let Some(key) = attribute("uri", diagnostics) {
        WsdlSource::Uri(key)
    } else if let Some(inline) = inline {
        const WSDL: [&str; 2] = ["http://schemas.xmlsoap.org/wsdl/", "http://www.w3.org/ns/wsdl"];
        if !WSDL.contains(&inline.namespace()) {
            diagnostics.push(
                Diagnostic::error("bad-value", format!("`{}` is not a WSDL", inline.name()))
                    .at(inline.name_span(), format!("expected in the namespace {}", WSDL.join(" or "))),
            );
        }
        WsdlSource::Inline(inline.clone())
    } else {
        diagnostics.push(
            Diagnostic::error("missing-attribute", "`publishWSDL` names no WSDL")
                .at(element.start_tag(), "expected key, uri, endpoint, or the WSDL inside"),
        );
        return None;
    };
    let mut resources = Vec::new();
    for child in element.elements().filter(|child| child.namespace() == SYNAPSE) {
        if !child.is("resource") {
            diagnostics.push(read::ignored_element(element, child, &["resource"]));
            continue;
        }
        WSDL_RESOURCE.check(child, diagnostics);
        let location = read::required(child, "location", diagnostics);
        let key = read::required(child, "key", diagnostics);
        resources.extend(location.zip(key));
    }
    Some(PublishWsdl {
        source,
        preserve_policy: read::boolean(element, "preservePolicy", true, diagnostics),
        resources,
        span: element.span(),
    })
}

pub(crate) const POLICY: Shape =
    Shape { attributes: &["key", "type", "operationName", "operationNamespace"], elements: &[] };

impl Policy {
    pub(super) fn parse(element: &Element, diagnostics: &mut Diagnostics) -> Option<Policy> {
        POLICY.check(element, diagnostics);
        let key = read::required(element, "key", diagnostics)?;
        let directions = [("in", PolicyDirection::In), ("out", PolicyDirection::Out)];
        Some(Policy {
            key,
            direction: read::choice(element, "type", &directions, diagnostics),
            operation: read::optional_text(element, "operationName")
                .map(|name| (read::optional_text(element, "operationNamespace").unwrap_or_default(), name)),
            span: element.span(),
        })
    }
}
