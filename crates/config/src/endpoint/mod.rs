//! Endpoints: named ones, and those written inside proxies, mediators and other endpoints.
//!
//! [`Endpoint::parse`] reads `<endpoint>` wherever it stands. The wrapper is here; [`Definition`] (what an
//! address, default, WSDL or http endpoint has in common) and the groups have their modules.

pub(crate) mod definition;
pub(crate) mod group;
pub(crate) mod http;

pub use definition::{
    Addressing, AddressingVersion, Definition, Delay, Format, MarkForSuspension, Optimize, Retry, Security,
    SuspendOnFailure, Timeout, TimeoutAction,
};
pub use group::{
    Algorithm, DynamicLoadBalance, Failover, LoadBalance, Member, RecipientList, Recipients,
    ServiceDynamicLoadBalance, Session, SessionKind,
};
pub use http::{AuthMode, Authentication, HttpEndpoint, HttpMethod, HttpVersion, OAuth, OAuthGrant};

use crate::element::Element;
use crate::inject::Injector;
use crate::parameter::Parameter;
use crate::read::{self, Shape};
use crate::value::{Expression, Key};
use diagnostics::{Diagnostic, Diagnostics, Span};

/// An endpoint.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Its name; inline endpoints have none.
    pub name: Option<Key>,
    /// What it is.
    pub kind: EndpointKind,
    /// The sequence that runs when the endpoint's own handling of a failure falls through.
    pub on_error: Option<Key>,
    /// Set on the message just before it is sent.
    pub properties: Vec<EndpointProperty>,
    /// The documentation.
    pub description: Option<String>,
    /// It is not in the configuration: `send` and `call` without an endpoint use it.
    pub implicit: bool,
    /// Its kind.
    pub element: Element,
    /// The whole element.
    pub span: Span,
}

/// The kinds of endpoints.
#[derive(Clone, Debug)]
pub enum EndpointKind {
    /// `key="…"`: another one, looked up for every message.
    Reference(Key),
    /// `key-expression="…"`: another one, whose key is computed for every message.
    Resolving(Expression),
    /// `template="…"`: an instance of an endpoint template.
    Template(TemplateInstance),
    /// A fixed address.
    Address(AddressEndpoint),
    /// The address in the message (`To`).
    Default(Box<Definition>),
    /// A port of a WSDL.
    Wsdl(WsdlEndpoint),
    /// A URI template.
    Http(Box<HttpEndpoint>),
    /// One of several in turn.
    LoadBalance(Box<LoadBalance>),
    /// Members of a cluster in turn.
    DynamicLoadBalance(Box<DynamicLoadBalance>),
    /// Members of several clusters in turn.
    ServiceDynamicLoadBalance(Box<ServiceDynamicLoadBalance>),
    /// The first that is ready.
    Failover(Box<Failover>),
    /// All of several.
    RecipientList(Box<RecipientList>),
    /// A class of the user.
    Class {
        /// The Java class.
        class: Key,
        /// Its parameters.
        parameters: Vec<Parameter>,
    },
}

/// `<address uri=…>`.
#[derive(Clone, Debug)]
pub struct AddressEndpoint {
    /// The address, with any transport scheme.
    pub uri: Key,
    /// The common part.
    pub definition: Box<Definition>,
}

/// `<wsdl …>`.
#[derive(Clone, Debug)]
pub struct WsdlEndpoint {
    /// Where the WSDL is, unless it is inline.
    pub uri: Option<Key>,
    /// Local name of the service.
    pub service: Key,
    /// Name of the port.
    pub port: Key,
    /// The WSDL itself.
    pub inline: Option<Element>,
    /// The common part.
    pub definition: Box<Definition>,
}

/// `<endpoint template="T" uri=…><parameter name=… value=…/></endpoint>`.
#[derive(Clone, Debug)]
pub struct TemplateInstance {
    /// The endpoint template.
    pub template: Key,
    /// The implicit parameter `uri`.
    pub uri: Option<Key>,
    /// The other parameters.
    pub parameters: Vec<(String, Key)>,
}

/// `<property>` of an endpoint: set on the message before it is sent.
#[derive(Clone, Debug)]
pub struct EndpointProperty {
    /// Its name.
    pub name: Key,
    /// The value.
    pub value: PropertyValue,
    /// `default`, `transport`, `axis2` or `axis2-client`.
    pub scope: PropertyScope,
    /// The `type` as written, e.g. `INTEGER`.
    pub data_type: Option<Key>,
    /// The whole element.
    pub span: Span,
}

/// The value of an [`EndpointProperty`].
#[derive(Clone, Debug)]
pub enum PropertyValue {
    /// A literal.
    Literal(Key),
    /// Evaluated for every message.
    Expression(Expression),
    /// A child element.
    Xml(Element),
}

/// Where an [`EndpointProperty`] is set.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub enum PropertyScope {
    /// The message.
    #[default]
    Default,
    /// Transport headers.
    Transport,
    /// The transport layer's message.
    Axis2,
    /// The options of the client.
    Axis2Client,
}

/// The definitions, in the order in which [`kind`] looks for them, and what else an endpoint may have.
const CHILDREN: &[&str] = &[
    "address",
    "wsdl",
    "default",
    "loadbalance",
    "loadBalance",
    "dynamicLoadbalance",
    "dynamicLoadBalance",
    "serviceDynamicLoadbalance",
    "serviceDynamicLoadBalance",
    "failover",
    "recipientlist",
    "recipientList",
    "http",
    "class",
    "session",
    "property",
    "parameter",
    "description",
];

/// Of several of these the first counts.
const DEFINITIONS: &[&str] = CHILDREN.split_at(13).0;

pub(crate) const WSDL: &[&str] = &["uri", "service", "port"];

pub(crate) const SHAPE: Shape = Shape {
    attributes: &[
        "name",
        "key",
        "key-expression",
        "template",
        "uri",
        "onError",
        "description",
        "statistics",
        "trace",
    ],
    elements: CHILDREN,
};

impl Endpoint {
    /// Reads an endpoint; `None` after at least one error. Values from outside come from the environment only.
    pub fn parse(element: &Element, diagnostics: &mut Diagnostics) -> Option<Endpoint> {
        Endpoint::parse_with(element, &Injector::new(), diagnostics)
    }

    /// Reads an endpoint with values from outside.
    pub fn parse_with(
        element: &Element,
        injector: &Injector,
        diagnostics: &mut Diagnostics,
    ) -> Option<Endpoint> {
        SHAPE.check_attributes(element, diagnostics);
        read::stray_text(element, diagnostics);
        for child in element.elements() {
            let name = child.local();
            if SHAPE.elements.contains(&name) || !definition::ELEMENTS.contains(&name) {
                SHAPE.check_child(element, child, diagnostics);
                continue;
            }
            let found = read::ignored_element(element, child, SHAPE.elements);
            diagnostics.push(found.help("it belongs into `address`, `http`, `default` or `wsdl`"));
        }
        one_definition(element, diagnostics);
        let kind = kind(element, injector, diagnostics)?;
        Some(Endpoint {
            name: read::optional(element, "name"),
            kind,
            on_error: read::optional(element, "onError"),
            properties: element
                .children_named("property")
                .filter_map(|property| EndpointProperty::parse(property, diagnostics))
                .collect(),
            implicit: false,
            description: read::child_text(element, "description")
                .map(|key| key.value)
                .or_else(|| read::optional_text(element, "description")),
            element: element.clone(),
            span: element.span(),
        })
    }

    /// The common part, if this kind has one.
    pub fn definition(&self) -> Option<&Definition> {
        match &self.kind {
            EndpointKind::Address(AddressEndpoint { definition, .. })
            | EndpointKind::Default(definition)
            | EndpointKind::Wsdl(WsdlEndpoint { definition, .. }) => Some(definition),
            EndpointKind::Http(http) => Some(&http.definition),
            EndpointKind::LoadBalance(group) => Some(&group.definition),
            EndpointKind::Failover(group) => Some(&group.definition),
            EndpointKind::RecipientList(group) => Some(&group.definition),
            _ => None,
        }
    }

    /// The endpoints inside this one.
    pub fn children(&self) -> &[Endpoint] {
        match &self.kind {
            EndpointKind::LoadBalance(group) => &group.endpoints,
            EndpointKind::Failover(group) => &group.endpoints,
            EndpointKind::RecipientList(group) => match &group.recipients {
                Recipients::Endpoints(endpoints) => endpoints,
                _ => &[],
            },
            _ => &[],
        }
    }
}

/// Reports definitions beside the one that counts.
fn one_definition(element: &Element, diagnostics: &mut Diagnostics) {
    let place = |child: &Element| DEFINITIONS.iter().position(|name| child.is(name));
    let mut all: Vec<&Element> = element.elements().filter(|child| place(child).is_some()).collect();
    all.sort_by_key(|child| place(child));
    let attribute = ["key", "key-expression", "template"].iter().find_map(|name| element.attribute(name));
    let (counts, ignored) = match (attribute, all.split_first()) {
        (Some(attribute), Some(_)) => (attribute.name_span, &all[..]),
        (None, Some((first, rest))) => (first.name_span(), rest),
        _ => return,
    };
    for definition in ignored {
        let message = format!("`{}` in `endpoint` is ignored", definition.local());
        diagnostics.push(
            Diagnostic::warning("conflict", message)
                .at(definition.name_span(), "an endpoint has one definition")
                .at(counts, "this one counts"),
        );
    }
}

/// What the endpoint is; the order decides when more than one is written.
fn kind(element: &Element, injector: &Injector, diagnostics: &mut Diagnostics) -> Option<EndpointKind> {
    if let Some(key) = read::optional(element, "key") {
        return Some(EndpointKind::Reference(key));
    }
    if let Some(attribute) = element.attribute("key-expression") {
        return Some(EndpointKind::Resolving(Expression::of(attribute, element)));
    }
    if let Some(template) = read::optional(element, "template") {
        return Some(EndpointKind::Template(instance(element, template, injector, diagnostics)));
    }
    let child = |names: &[&str]| names.iter().find_map(|name| element.child(name));
    if let Some(address) = child(&["address"]) {
        let definition = Definition::parse(address, &["uri"], &[], diagnostics);
        let uri = read::required(address, "uri", diagnostics)?;
        return Some(EndpointKind::Address(AddressEndpoint {
            uri: injector.resolve(uri, diagnostics),
            definition: Box::new(definition),
        }));
    }
    if let Some(wsdl) = child(&["wsdl"]) {
        return self::wsdl(wsdl, injector, diagnostics).map(EndpointKind::Wsdl);
    }
    if let Some(default) = child(&["default"]) {
        return Some(EndpointKind::Default(Box::new(Definition::parse(default, &[], &[], diagnostics))));
    }
    if let Some(group) = child(&["loadbalance", "loadBalance"]) {
        let session = element.child("session");
        return LoadBalance::parse(group, session, injector, diagnostics)
            .map(|group| EndpointKind::LoadBalance(Box::new(group)));
    }
    if let Some(group) = child(&["dynamicLoadbalance", "dynamicLoadBalance"]) {
        let session = element.child("session");
        return DynamicLoadBalance::parse(group, session, diagnostics)
            .map(|group| EndpointKind::DynamicLoadBalance(Box::new(group)));
    }
    if let Some(group) = child(&["serviceDynamicLoadbalance", "serviceDynamicLoadBalance"]) {
        return Some(EndpointKind::ServiceDynamicLoadBalance(Box::new(ServiceDynamicLoadBalance {
            configuration: read::optional(group, "configuration")
                .map(|key| injector.resolve(key, diagnostics)),
            element: group.clone(),
        })));
    }
    if let Some(group) = child(&["failover"]) {
        return Failover::parse(group, injector, diagnostics)
            .map(|group| EndpointKind::Failover(Box::new(group)));
    }
    if let Some(group) = child(&["recipientlist", "recipientList"]) {
        return RecipientList::parse(group, injector, diagnostics)
            .map(|group| EndpointKind::RecipientList(Box::new(group)));
    }
    if let Some(http) = child(&["http"]) {
        return HttpEndpoint::parse(http, injector, diagnostics)
            .map(|http| EndpointKind::Http(Box::new(http)));
    }
    if let Some(class) = child(&["class"]) {
        return Some(EndpointKind::Class {
            class: read::required(class, "name", diagnostics)?,
            parameters: Parameter::children(class, injector, diagnostics),
        });
    }
    diagnostics.push(
        Diagnostic::error("empty-endpoint", "the endpoint says nothing about where to send")
            .at(element.start_tag(), "expected key, key-expression, template, or a definition inside")
            .help(
                "definitions are: address, default, wsdl, http, loadbalance, failover, recipientlist, class",
            ),
    );
    None
}

pub(crate) const PARAMETER: Shape = Shape { attributes: &["name", "value"], elements: &[] };

fn instance(
    element: &Element,
    template: Key,
    injector: &Injector,
    diagnostics: &mut Diagnostics,
) -> TemplateInstance {
    let mut parameters = Vec::new();
    for child in element.children_named("parameter") {
        PARAMETER.check(child, diagnostics);
        let name = read::required(child, "name", diagnostics);
        let Some(attribute) = child.attribute("value") else {
            diagnostics.push(read::missing_attribute(child, "value"));
            continue;
        };
        if let Some(name) = name {
            parameters.push((name.value, injector.resolve(Key::of(attribute), diagnostics)));
        }
    }
    TemplateInstance {
        template: injector.resolve(template, diagnostics),
        uri: read::optional(element, "uri").map(|key| injector.resolve(key, diagnostics)),
        parameters,
    }
}

fn wsdl(element: &Element, injector: &Injector, diagnostics: &mut Diagnostics) -> Option<WsdlEndpoint> {
    let inline = element.elements().find(|child| !child.namespace().eq(crate::element::SYNAPSE)).cloned();
    let definition = Definition::parse(element, WSDL, &[], diagnostics);
    let uri = match &inline {
        Some(_) => read::optional(element, "uri"),
        None => Some(read::required(element, "uri", diagnostics)?),
    };
    let service = read::required(element, "service", diagnostics);
    let port = read::required(element, "port", diagnostics);
    Some(WsdlEndpoint {
        uri: uri.map(|key| injector.resolve(key, diagnostics)),
        service: injector.resolve(service?, diagnostics),
        port: injector.resolve(port?, diagnostics),
        inline,
        definition: Box::new(definition),
    })
}

pub(crate) const PROPERTY: Shape =
    Shape { attributes: &["name", "value", "expression", "scope", "type"], elements: &[] };

impl EndpointProperty {
    fn parse(element: &Element, diagnostics: &mut Diagnostics) -> Option<EndpointProperty> {
        PROPERTY.check_attributes(element, diagnostics);
        let name = read::required(element, "name", diagnostics)?;
        let value = if let Some(attribute) = element.attribute("value") {
            PropertyValue::Literal(Key::of(attribute))
        } else if let Some(attribute) = element.attribute("expression") {
            PropertyValue::Expression(Expression::of(attribute, element))
        } else if let Some(xml) = element.elements().next() {
            PropertyValue::Xml(xml.clone())
        } else {
            diagnostics.push(
                Diagnostic::error("missing-attribute", "`property` needs `value` or `expression`")
                    .at(element.start_tag(), "no value"),
            );
            return None;
        };
        let scopes = [
            ("default", PropertyScope::Default),
            ("synapse", PropertyScope::Default),
            ("transport", PropertyScope::Transport),
            ("axis2", PropertyScope::Axis2),
            ("axis2-client", PropertyScope::Axis2Client),
        ];
        Some(EndpointProperty {
            name,
            value,
            scope: read::choice(element, "scope", &scopes, diagnostics).unwrap_or_default(),
            data_type: read::optional(element, "type"),
            span: element.span(),
        })
    }
}
