//! Endpoints made of endpoints: load balance, failover, recipient list.

use super::Endpoint;
use super::definition::Definition;
use crate::element::Element;
use crate::inject::Injector;
use crate::read::{self, Shape};
use crate::value::{Key, Value};
use diagnostics::{Diagnostic, Diagnostics, Span};
use std::time::Duration;

/// `<loadbalance>`.
#[derive(Clone, Debug)]
pub struct LoadBalance {
    /// How the next endpoint is chosen.
    pub algorithm: Algorithm,
    /// Resend to another endpoint after a failure. Default true.
    pub failover: bool,
    /// Build the message before it is sent first; `None`: the global setting.
    pub build_message: Option<bool>,
    /// The endpoints, unless there are members.
    pub endpoints: Vec<Endpoint>,
    /// Hosts that get the message's own path.
    pub members: Vec<Member>,
    /// Keeps a client on one endpoint.
    pub session: Option<Session>,
    /// Suspension, timeout, … of the group as a whole.
    pub definition: Definition,
}

/// How a load balancer chooses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Algorithm {
    /// In turn.
    RoundRobin,
    /// In turn, as many messages each as the endpoint property `loadbalance.weight` says.
    WeightedRoundRobin,
    /// In turn by weight, the least busy first.
    WeightedLeastConnections,
    /// Any that is ready.
    Random,
    /// A class of the user.
    Class(String),
}

/// `<member>`.
#[derive(Clone, Debug)]
pub struct Member {
    /// The host.
    pub host: Key,
    /// Its port for http.
    pub http_port: Option<u16>,
    /// Its port for https.
    pub https_port: Option<u16>,
    /// The element.
    pub span: Span,
}

/// `<session>`.
#[derive(Clone, Debug)]
pub struct Session {
    /// What identifies a session.
    pub kind: SessionKind,
    /// When an unused session ends; `None`: the global default.
    pub timeout: Option<Duration>,
}

/// What identifies a session.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum SessionKind {
    /// A cookie.
    Http,
    /// The `ServiceGroupId` in the SOAP header.
    Soap,
    /// The `ClientID` in the SOAP header.
    SimpleClient,
}

/// `<failover>`.
#[derive(Clone, Debug)]
pub struct Failover {
    /// Choose the first ready endpoint for every message, rather than staying with the current one. Default true.
    pub dynamic: bool,
    /// Build the message before it is sent first; `None`: the global setting.
    pub build_message: Option<bool>,
    /// The endpoints, the preferred one first.
    pub endpoints: Vec<Endpoint>,
    /// Suspension, timeout, … of the group as a whole.
    pub definition: Definition,
}

/// `<recipientlist>`.
#[derive(Clone, Debug)]
pub struct RecipientList {
    /// Who gets the message.
    pub recipients: Recipients,
    /// Suspension, timeout, … of the group as a whole.
    pub definition: Definition,
}

/// The recipients of a [`RecipientList`].
#[derive(Clone, Debug)]
pub enum Recipients {
    /// Fixed endpoints.
    Endpoints(Vec<Endpoint>),
    /// Hosts that get the message's own path.
    Members(Vec<Member>),
    /// A comma-separated list of addresses, computed for every message.
    Dynamic {
        /// The list.
        value: Value,
        /// How many endpoints are kept. Default 20.
        max_cache: usize,
    },
}

/// `<dynamicLoadbalance>`.
#[derive(Clone, Debug)]
pub struct DynamicLoadBalance {
    /// How the next member is chosen.
    pub algorithm: Algorithm,
    /// Resend to another member after a failure.
    pub failover: bool,
    /// The class that knows the members, and its properties.
    pub membership: (Key, Vec<(String, String)>),
    /// Keeps a client on one member.
    pub session: Option<Session>,
}

/// `<serviceDynamicLoadbalance>`.
#[derive(Clone, Debug)]
pub struct ServiceDynamicLoadBalance {
    /// Where its configuration is.
    pub configuration: Option<Key>,
    /// The definition, with the inline configuration.
    pub element: Element,
}

pub(crate) const LOAD_BALANCE: &[&str] = &["algorithm", "policy", "failover", "buildMessage"];
pub(crate) const FAILOVER: &[&str] = &["dynamic", "buildMessage"];
const GROUP: &[&str] = &["endpoint", "member"];

impl LoadBalance {
    pub(super) fn parse(
        element: &Element,
        session: Option<&Element>,
        injector: &Injector,
        diagnostics: &mut Diagnostics,
    ) -> Option<LoadBalance> {
        let definition =
            Definition::parse(element, LOAD_BALANCE, &["endpoint", "member", "session"], diagnostics);
        let endpoints = endpoints(element, injector, diagnostics);
        let members = members(element, injector, diagnostics);
        if !some(element, endpoints.is_empty() && members.is_empty(), GROUP, diagnostics) {
            return None;
        }
        Some(LoadBalance {
            algorithm: algorithm(element, diagnostics),
            failover: failover(element, diagnostics),
            build_message: build_message(element, diagnostics),
            endpoints,
            members,
            session: session
                .or_else(|| element.child("session"))
                .and_then(|session| Session::parse(session, diagnostics)),
            definition,
        })
    }
}

impl Failover {
    pub(super) fn parse(
        element: &Element,
        injector: &Injector,
        diagnostics: &mut Diagnostics,
    ) -> Option<Failover> {
        let definition = Definition::parse(element, FAILOVER, &["endpoint"], diagnostics);
        let endpoints = endpoints(element, injector, diagnostics);
        if !some(element, endpoints.is_empty(), &["endpoint"], diagnostics) {
            return None;
        }
        Some(Failover {
            dynamic: read::unless_false(element, "dynamic", diagnostics),
            build_message: build_message(element, diagnostics),
            endpoints,
            definition,
        })
    }
}

pub(crate) const ENDPOINTS: Shape = Shape { attributes: &["value", "max-cache"], elements: &[] };

impl RecipientList {
    pub(super) fn parse(
        element: &Element,
        injector: &Injector,
        diagnostics: &mut Diagnostics,
    ) -> Option<RecipientList> {
        let definition = Definition::parse(element, &[], &["endpoint", "member", "endpoints"], diagnostics);
        let fixed = endpoints(element, injector, diagnostics);
        let members = members(element, injector, diagnostics);
        let recipients = if !fixed.is_empty() {
            Recipients::Endpoints(fixed)
        } else if !members.is_empty() {
            Recipients::Members(members)
        } else if let Some(dynamic) = element.child("endpoints") {
            ENDPOINTS.check(dynamic, diagnostics);
            let Some(attribute) = dynamic.attribute("value") else {
                diagnostics.push(read::missing_attribute(dynamic, "value"));
                return None;
            };
            let max_cache = read::optional(dynamic, "max-cache")
                .and_then(|key| read::number(&key, "max-cache", "a whole number", diagnostics));
            let max_cache = max_cache.and_then(|most: i64| usize::try_from(most).ok()).unwrap_or(20);
            Recipients::Dynamic { value: Value::of(attribute, dynamic), max_cache }
        } else {
            some(element, true, &["endpoint", "member", "endpoints"], diagnostics);
            return None;
        };
        Some(RecipientList { recipients, definition })
    }
}

pub(crate) const DYNAMIC_LOAD_BALANCE: Shape = Shape {
    attributes: &["algorithm", "policy", "failover", "statistics", "trace"],
    elements: &["membershipHandler", "session", "property"],
};

impl DynamicLoadBalance {
    pub(super) fn parse(
        element: &Element,
        session: Option<&Element>,
        diagnostics: &mut Diagnostics,
    ) -> Option<DynamicLoadBalance> {
        DYNAMIC_LOAD_BALANCE.check(element, diagnostics);
        let Some(handler) = element.child("membershipHandler") else {
            some(element, true, &["membershipHandler"], diagnostics);
            return None;
        };
        let class = read::required(handler, "class", diagnostics)?;
        let properties = handler
            .children_named("property")
            .filter_map(|p| Some((p.attr("name")?.to_owned(), p.attr("value")?.to_owned())))
            .collect();
        Some(DynamicLoadBalance {
            algorithm: algorithm(element, diagnostics),
            failover: failover(element, diagnostics),
            membership: (class, properties),
            session: session
                .or_else(|| element.child("session"))
                .and_then(|session| Session::parse(session, diagnostics)),
        })
    }
}

pub(crate) const SESSION: Shape = Shape { attributes: &["type"], elements: &["sessionTimeout"] };

impl Session {
    fn parse(element: &Element, diagnostics: &mut Diagnostics) -> Option<Session> {
        SESSION.check(element, diagnostics);
        read::required(element, "type", diagnostics)?;
        let kinds = [
            ("http", SessionKind::Http),
            ("soap", SessionKind::Soap),
            ("simpleClientSession", SessionKind::SimpleClient),
        ];
        let kind = read::choice(element, "type", &kinds, diagnostics)?;
        let timeout = read::child_text(element, "sessionTimeout")
            .and_then(|key| read::number(&key, "sessionTimeout", "a number of milliseconds", diagnostics));
        // A negative number counts as the default.
        let timeout = timeout.and_then(|time: i64| u64::try_from(time).ok()).map(Duration::from_millis);
        Some(Session { kind, timeout })
    }
}

/// The child endpoints; siblings may not refer to the same one.
fn endpoints(element: &Element, injector: &Injector, diagnostics: &mut Diagnostics) -> Vec<Endpoint> {
    let endpoints: Vec<Endpoint> = element
        .children_named("endpoint")
        .filter_map(|child| Endpoint::parse_with(child, injector, diagnostics))
        .collect();
    let keys: Vec<&Key> = endpoints
        .iter()
        .filter_map(|endpoint| match &endpoint.kind {
            super::EndpointKind::Reference(key) => Some(key),
            _ => None,
        })
        .collect();
    for (index, key) in keys.iter().enumerate() {
        if let Some(first) = keys[..index].iter().find(|other| other.value == key.value) {
            diagnostics.push(
                Diagnostic::error("duplicate-reference", format!("`{key}` is named twice in one group"))
                    .at(key.span, "again here")
                    .at(first.span, "first here"),
            );
        }
    }
    endpoints
}

pub(crate) const MEMBER: Shape = Shape { attributes: &["hostName", "httpPort", "httpsPort"], elements: &[] };

fn members(element: &Element, injector: &Injector, diagnostics: &mut Diagnostics) -> Vec<Member> {
    let mut members = Vec::new();
    for child in element.children_named("member") {
        MEMBER.check(child, diagnostics);
        let Some(host) = read::required(child, "hostName", diagnostics) else { continue };
        let mut port = |name| {
            let key = injector.resolve(read::optional(child, name)?, diagnostics);
            read::number(&key, name, "a port from 0 to 65535", diagnostics)
        };
        let (http_port, https_port) = (port("httpPort"), port("httpsPort"));
        let host = injector.resolve(host, diagnostics);
        members.push(Member { host, http_port, https_port, span: child.span() });
    }
    members
}

/// Whether a group has something in it; an error if not.
fn some(element: &Element, empty: bool, expected: &[&str], diagnostics: &mut Diagnostics) -> bool {
    // A faulty child is already reported.
    if empty && !element.elements().any(|child| expected.contains(&child.local())) {
        diagnostics.push(
            Diagnostic::error("missing-element", format!("`{}` is empty", element.local()))
                .at(element.start_tag(), format!("expected at least one: {}", expected.join(", "))),
        );
    }
    !empty
}

fn algorithm(element: &Element, diagnostics: &mut Diagnostics) -> Algorithm {
    let policy = read::optional(element, "policy");
    let class = read::optional(element, "algorithm");
    if let (Some(policy), Some(class)) = (&policy, &class) {
        diagnostics.push(
            Diagnostic::error("conflict", "`policy` and `algorithm` exclude each other")
                .at(class.span, "the algorithm")
                .at(policy.span, "and the policy"),
        );
    }
    if let Some(policy) = policy.filter(|policy| !policy.eq_ignore_ascii_case("roundRobin")) {
        diagnostics.push(
            read::bad_value("policy", &policy, policy.span, "roundRobin")
                .did_you_mean(&policy, ["roundRobin"]),
        );
    }
    match class {
        None => Algorithm::RoundRobin,
        Some(class) => match class.rsplit('.').next().unwrap_or_default() {
            "RoundRobin" => Algorithm::RoundRobin,
            "WeightedRoundRobin" => Algorithm::WeightedRoundRobin,
            "WeightedRRLCAlgorithm" => Algorithm::WeightedLeastConnections,
            "RandomAlgorithm" => Algorithm::Random,
            _ => Algorithm::Class(class.value),
        },
    }
}

fn failover(element: &Element, diagnostics: &mut Diagnostics) -> bool {
    read::unless_false(element, "failover", diagnostics)
}

fn build_message(element: &Element, diagnostics: &mut Diagnostics) -> Option<bool> {
    read::optional(element, "buildMessage").map(|key| read::to_boolean(&key, "buildMessage", diagnostics))
}
