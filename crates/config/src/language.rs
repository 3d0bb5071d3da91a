//! The shapes of artifacts and endpoints as the readers check them, put together: from these comes the XML Schema of the language
//! (`busbar schema`). What mediators take is in their definitions.

use crate::artifacts::{
    api, data_shape, data_source, event_source, executor, inbound, local_entry, message_processor,
    message_store, proxy, registry,
};
use crate::artifacts::{sequence, task, template};
use crate::endpoint::{self, definition, group, http};
use crate::parameter;
use crate::read::Shape;

/// An element of an artifact.
#[derive(Clone, Debug)]
pub struct Part {
    /// The way to it from the artifact's element: `proxy/target`. Without a `/` in it: an artifact, or an element that is the same
    /// wherever it stands.
    pub way: &'static str,
    /// Its attributes.
    pub attributes: Vec<&'static str>,
    /// The elements in it.
    pub elements: Vec<&'static str>,
    /// The content besides the elements.
    pub content: Content,
}

/// What stands in an element besides the elements of its shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// Nothing.
    Elements,
    /// Mediators.
    Mediators,
    /// Text.
    Text,
    /// Anything.
    Any,
}

/// The words of attributes that mean the same in all artifacts: `true` or `false`, `enable` or `disable`.
pub const BOOLEANS: &[&str] =
    &["startOnLoad", "suspend", "validateSchema", "isMandatory", "separateListener", "preservePolicy"];
/// See [`BOOLEANS`].
pub const SWITCHES: &[&str] = &["statistics", "trace"];

fn part(way: &'static str, shape: &Shape, content: Content) -> Part {
    Part { way, attributes: shape.attributes.to_vec(), elements: shape.elements.to_vec(), content }
}

fn part_with(
    way: &'static str,
    attributes: &[&'static str],
    elements: &[&'static str],
    content: Content,
) -> Part {
    Part { way, attributes: attributes.to_vec(), elements: elements.to_vec(), content }
}

/// A leaf endpoint: the common attributes and elements, and its own ones.
fn leaf(way: &'static str, attributes: &[&'static str], elements: &[&'static str], content: Content) -> Part {
    let all = |names: &[&'static str], common: &[&'static str]| names.iter().chain(common).copied().collect();
    Part {
        way,
        attributes: all(attributes, definition::ATTRIBUTES),
        elements: all(elements, definition::ELEMENTS),
        content,
    }
}

/// All parts. An element that is not listed has the shape of the shared one of its name; where there is none, it holds text.
pub fn parts() -> Vec<Part> {
    use Content::{Any, Elements, Mediators, Text};
    let sequence = sequence::ATTRIBUTES;
    let grant = [
        "clientId",
        "clientSecret",
        "refreshToken",
        "tokenUrl",
        "username",
        "password",
        "authMode",
        "requestParameters",
        "customHeaders",
    ];
    vec![
        // Artifacts.
        part("proxy", &proxy::SHAPE, Elements),
        part("proxy/target", &proxy::TARGET, Elements),
        part_with("proxy/publishWSDL", proxy::PUBLISH_WSDL.attributes, &["resource"], Any),
        part("proxy/publishWSDL/resource", &proxy::WSDL_RESOURCE, Elements),
        part("proxy/policy", &proxy::POLICY, Elements),
        part("api", &api::SHAPE, Elements),
        part("api/resource", &api::RESOURCE, Elements),
        part("api/handlers", &api::HANDLERS, Elements),
        part("api/handlers/handler", &api::HANDLER, Elements),
        part_with("api/handlers/handler/property", &["name", "value"], &[], Any),
        part_with("sequence", sequence, &[], Mediators),
        part("template", &template::SHAPE, Elements),
        part("template/parameter", &template::PARAMETER, Elements),
        part_with("template/sequence", sequence, &[], Mediators),
        part("datasource", &data_source::SHAPE, Elements),
        part_with("datasource/jndiConfig", &["useDataSourceFactory", "useJndiReference"], &["name"], Any),
        part_with("datasource/definition", &["type", "useJndiReference"], &["configuration"], Elements),
        part_with("datasource/definition/configuration", &[], &[], Any),
        part_with("data", data_shape::SHAPE.attributes, data_shape::SHAPE.elements, Any),
        part("localEntry", &local_entry::SHAPE, Any),
        part("task", &task::SHAPE, Elements),
        part("task/trigger", &task::TRIGGER, Elements),
        part("task/property", &task::PROPERTY, Any),
        part("messageStore", &message_store::SHAPE, Elements),
        part("messageProcessor", &message_processor::SHAPE, Elements),
        part("inboundEndpoint", &inbound::SHAPE, Elements),
        part("inboundEndpoint/parameters", &inbound::PARAMETERS, Elements),
        part("inboundEndpoint/handlers", &inbound::HANDLERS, Elements),
        part_with("inboundEndpoint/handlers/handler", &["class", "name"], &[], Elements),
        part("priority-executor", &executor::SHAPE, Elements),
        part("priority-executor/queues", &executor::QUEUES, Elements),
        part("priority-executor/queues/queue", &executor::QUEUE, Elements),
        part("priority-executor/threads", &executor::THREADS, Elements),
        part("eventSource", &event_source::SHAPE, Elements),
        part_with("eventSource/subscriptionManager", &["class"], &["property"], Elements),
        part_with("eventSource/subscriptionManager/property", &["name", "value"], &[], Any),
        part("eventSource/subscription", &event_source::SUBSCRIPTION, Elements),
        part_with("eventSource/subscription/filter", &["source", "dialect"], &[], Elements),
        part("registry", &registry::SHAPE, Elements),
        part("taskManager", &registry::TASK_MANAGER, Elements),
        part("import", &registry::IMPORT, Elements),
        // The same wherever they stand.
        part_with("inSequence", sequence, &[], Mediators),
        part_with("outSequence", sequence, &[], Mediators),
        part_with("faultSequence", sequence, &[], Mediators),
        part("parameter", &parameter::SHAPE, Any),
        // Endpoints.
        part("endpoint", &endpoint::SHAPE, Elements),
        part("endpoint/property", &endpoint::PROPERTY, Any),
        part_with("endpoint/parameter", endpoint::PARAMETER.attributes, &[], Any),
        leaf("endpoint/address", &["uri"], &[], Elements),
        leaf("endpoint/default", &[], &[], Elements),
        leaf("endpoint/wsdl", endpoint::WSDL, &[], Any),
        leaf("endpoint/http", http::ATTRIBUTES, http::ELEMENTS, Elements),
        leaf("endpoint/loadbalance", group::LOAD_BALANCE, &["endpoint", "member", "session"], Elements),
        leaf("endpoint/loadBalance", group::LOAD_BALANCE, &["endpoint", "member", "session"], Elements),
        leaf("endpoint/failover", group::FAILOVER, &["endpoint"], Elements),
        leaf("endpoint/recipientlist", &[], &["endpoint", "member", "endpoints"], Elements),
        leaf("endpoint/recipientList", &[], &["endpoint", "member", "endpoints"], Elements),
        part("endpoint/dynamicLoadbalance", &group::DYNAMIC_LOAD_BALANCE, Elements),
        part("endpoint/dynamicLoadBalance", &group::DYNAMIC_LOAD_BALANCE, Elements),
        part_with("endpoint/serviceDynamicLoadbalance", &["configuration"], &[], Any),
        part_with("endpoint/serviceDynamicLoadBalance", &["configuration"], &[], Any),
        part_with("endpoint/class", &["name"], &["parameter"], Elements),
        part_with("membershipHandler", &["class"], &["property"], Elements),
        part_with("membershipHandler/property", &["name", "value"], &[], Elements),
        part("session", &group::SESSION, Elements),
        part("member", &group::MEMBER, Elements),
        part("endpoints", &group::ENDPOINTS, Elements),
        part("enableSec", &definition::SECURITY, Elements),
        part("enableAddressing", &definition::ADDRESSING, Elements),
        part_with("enableRM", &["policy"], &[], Elements),
        part("timeout", &definition::TIMEOUT, Elements),
        part("markForSuspension", &definition::MARK, Elements),
        part("suspendOnFailure", &definition::SUSPEND, Elements),
        part("retryConfig", &definition::RETRY, Elements),
        part("authentication", &http::AUTHENTICATION, Elements),
        part_with("basicAuth", &[], &["username", "password"], Elements),
        part_with("apiKey", &[], &["name", "value"], Elements),
        part("oauth", &http::OAUTH, Elements),
        part_with("authorizationCode", &[], &grant, Elements),
        part_with("clientCredentials", &[], &grant, Elements),
        part_with("passwordCredentials", &[], &grant, Elements),
        part_with("requestParameters", &[], &["parameter"], Elements),
        part_with("customHeaders", &[], &["header"], Elements),
        part_with("customHeaders/header", &["name"], &[], Text),
        part_with("description", &[], &[], Any),
    ]
}
