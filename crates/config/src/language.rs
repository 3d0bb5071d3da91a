//! The shapes of artifacts and endpoints as the readers check them, put together: from these comes the XML Schema of the language
//! (`busbar schema`). What mediators take is in their definitions.

use crate::artifacts::{
    api, data_service, data_source, event_source, executor, inbound, local_entry, message_processor,
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
    /// What else stands in it.
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

fn own(way: &'static str, attributes: &[&'static str], elements: &[&'static str], content: Content) -> Part {
    Part { way, attributes: attributes.to_vec(), elements: elements.to_vec(), content }
}

/// An endpoint's definition: the common part, and what is its own.
fn leaf(way: &'static str, attributes: &[&'static str], elements: &[&'static str], content: Content) -> Part {
    let all = |own: &[&'static str], common: &[&'static str]| own.iter().chain(common).copied().collect();
    Part {
        way,
        attributes: all(attributes, definition::ATTRIBUTES),
        elements: all(elements, definition::ELEMENTS),
        content,
    }
}

/// All parts. An element without one of its own is the shared one of its name; where there is none, it holds text.
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
        own("proxy/publishWSDL", proxy::PUBLISH_WSDL.attributes, &["resource"], Any),
        part("proxy/publishWSDL/resource", &proxy::WSDL_RESOURCE, Elements),
        part("proxy/policy", &proxy::POLICY, Elements),
        part("api", &api::SHAPE, Elements),
        part("api/resource", &api::RESOURCE, Elements),
        part("api/handlers", &api::HANDLERS, Elements),
        part("api/handlers/handler", &api::HANDLER, Elements),
        own("api/handlers/handler/property", &["name", "value"], &[], Any),
        own("sequence", sequence, &[], Mediators),
        part("template", &template::SHAPE, Elements),
        part("template/parameter", &template::PARAMETER, Elements),
        own("template/sequence", sequence, &[], Mediators),
        part("datasource", &data_source::SHAPE, Elements),
        own("datasource/jndiConfig", &["useDataSourceFactory", "useJndiReference"], &["name"], Any),
        own("datasource/definition", &["type", "useJndiReference"], &["configuration"], Elements),
        own("datasource/definition/configuration", &[], &[], Any),
        own("data", data_service::SHAPE.attributes, data_service::SHAPE.elements, Any),
        part("localEntry", &local_entry::SHAPE, Any),
        part("task", &task::SHAPE, Elements),
        part("task/trigger", &task::TRIGGER, Elements),
        part("task/property", &task::PROPERTY, Any),
        part("messageStore", &message_store::SHAPE, Elements),
        part("messageProcessor", &message_processor::SHAPE, Elements),
        part("inboundEndpoint", &inbound::SHAPE, Elements),
        part("inboundEndpoint/parameters", &inbound::PARAMETERS, Elements),
        part("inboundEndpoint/handlers", &inbound::HANDLERS, Elements),
        own("inboundEndpoint/handlers/handler", &["class", "name"], &[], Elements),
        part("priority-executor", &executor::SHAPE, Elements),
        part("priority-executor/queues", &executor::QUEUES, Elements),
        part("priority-executor/queues/queue", &executor::QUEUE, Elements),
        part("priority-executor/threads", &executor::THREADS, Elements),
        part("eventSource", &event_source::SHAPE, Elements),
        own("eventSource/subscriptionManager", &["class"], &["property"], Elements),
        own("eventSource/subscriptionManager/property", &["name", "value"], &[], Any),
        part("eventSource/subscription", &event_source::SUBSCRIPTION, Elements),
        own("eventSource/subscription/filter", &["source", "dialect"], &[], Elements),
        part("registry", &registry::SHAPE, Elements),
        part("taskManager", &registry::TASK_MANAGER, Elements),
        part("import", &registry::IMPORT, Elements),
        // The same wherever they stand.
        own("inSequence", sequence, &[], Mediators),
        own("outSequence", sequence, &[], Mediators),
        own("faultSequence", sequence, &[], Mediators),
        part("parameter", &parameter::SHAPE, Any),
        // Endpoints.
        part("endpoint", &endpoint::SHAPE, Elements),
        part("endpoint/property", &endpoint::PROPERTY, Any),
        own("endpoint/parameter", endpoint::PARAMETER.attributes, &[], Any),
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
        own("endpoint/serviceDynamicLoadbalance", &["configuration"], &[], Any),
        own("endpoint/serviceDynamicLoadBalance", &["configuration"], &[], Any),
        own("endpoint/class", &["name"], &["parameter"], Elements),
        own("membershipHandler", &["class"], &["property"], Elements),
        own("membershipHandler/property", &["name", "value"], &[], Elements),
        part("session", &group::SESSION, Elements),
        part("member", &group::MEMBER, Elements),
        part("endpoints", &group::ENDPOINTS, Elements),
        part("enableSec", &definition::SECURITY, Elements),
        part("enableAddressing", &definition::ADDRESSING, Elements),
        own("enableRM", &["policy"], &[], Elements),
        part("timeout", &definition::TIMEOUT, Elements),
        part("markForSuspension", &definition::MARK, Elements),
        part("suspendOnFailure", &definition::SUSPEND, Elements),
        part("retryConfig", &definition::RETRY, Elements),
        part("authentication", &http::AUTHENTICATION, Elements),
        own("basicAuth", &[], &["username", "password"], Elements),
        own("apiKey", &[], &["name", "value"], Elements),
        part("oauth", &http::OAUTH, Elements),
        own("authorizationCode", &[], &grant, Elements),
        own("clientCredentials", &[], &grant, Elements),
        own("passwordCredentials", &[], &grant, Elements),
        own("requestParameters", &[], &["parameter"], Elements),
        own("customHeaders", &[], &["header"], Elements),
        own("customHeaders/header", &["name"], &[], Text),
        own("description", &[], &[], Any),
    ]
}
