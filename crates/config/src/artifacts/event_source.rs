//! `<eventSource>`: WS-Eventing subscriptions.

use super::Reading;
use crate::element::{Element, Scope};
use crate::endpoint::Endpoint;
use crate::read::{self, Shape};
use crate::value::Key;
use diagnostics::{Diagnostic, Span};

/// An event source.
#[derive(Clone, Debug)]
pub struct EventSource {
    /// Its name.
    pub name: Key,
    /// The class that keeps the subscriptions.
    pub manager: Key,
    /// Properties of the manager.
    pub properties: Vec<(String, String)>,
    /// Subscriptions that exist from the start.
    pub subscriptions: Vec<Subscription>,
    /// The whole element.
    pub span: Span,
}

/// A subscription.
#[derive(Clone, Debug)]
pub struct Subscription {
    /// Its id.
    pub id: Key,
    /// The topic.
    pub filter: Option<Key>,
    /// The dialect of the filter.
    pub dialect: Option<Key>,
    /// The namespaces of a filter that is an XPath.
    pub scope: Scope,
    /// The address that gets the events.
    pub endpoint: Endpoint,
    /// Date or duration after which it ends.
    pub expires: Option<Key>,
    /// The element.
    pub span: Span,
}

pub(crate) const SHAPE: Shape = Shape {
    attributes: &["name", "description"],
    elements: &["subscriptionManager", "subscription", "description"],
};

impl EventSource {
    pub(crate) fn parse(element: &Element, reading: &mut Reading<'_>) -> Option<EventSource> {
        SHAPE.check(element, reading.diagnostics);
        let name = read::required(element, "name", reading.diagnostics);
        let Some(manager) = element.child("subscriptionManager") else {
            reading.diagnostics.push(
                Diagnostic::error("missing-element", "the event source has no `subscriptionManager`")
                    .at(element.start_tag(), "expected `subscriptionManager` inside"),
            );
            return None;
        };
        let class = read::required(manager, "class", reading.diagnostics);
        let properties = manager
            .children_named("property")
            .filter_map(|p| Some((p.attr("name")?.to_owned(), p.attr("value")?.to_owned())))
            .collect();
        let subscriptions = element
            .children_named("subscription")
            .filter_map(|child| Subscription::parse(child, reading))
            .collect();
        Some(EventSource { name: name?, manager: class?, properties, subscriptions, span: element.span() })
    }
}

pub(crate) const SUBSCRIPTION: Shape =
    Shape { attributes: &["id"], elements: &["filter", "endpoint", "expires"] };

impl Subscription {
    fn parse(element: &Element, reading: &mut Reading<'_>) -> Option<Subscription> {
        SUBSCRIPTION.check(element, reading.diagnostics);
        let id = read::required(element, "id", reading.diagnostics);
        let filter = element.child("filter");
        let Some(endpoint) = element.child("endpoint") else {
            reading.diagnostics.push(
                Diagnostic::error("missing-element", "the subscription has no endpoint")
                    .at(element.start_tag(), "expected `endpoint` inside"),
            );
            return None;
        };
        let endpoint = Endpoint::parse_with(endpoint, reading.injector, reading.diagnostics);
        Some(Subscription {
            filter: filter.and_then(|filter| read::optional(filter, "source")),
            dialect: filter.and_then(|filter| read::optional(filter, "dialect")),
            scope: filter.unwrap_or(element).scope().clone(),
            expires: read::child_text(element, "expires"),
            span: element.span(),
            id: id?,
            endpoint: endpoint?,
        })
    }
}
