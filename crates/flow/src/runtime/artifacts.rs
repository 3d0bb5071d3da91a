//! The services of a plan as they are once compiled. How they are served is the business of `http`.

use crate::resource::{ApiRule, ResourceRule};
use crate::runtime::context::Context;
use crate::runtime::fault::Fault;
use crate::runtime::guard::Guard;
use crate::runtime::mediator::ListId;
use crate::runtime::reference::{EndpointRef, SequenceRef};
use crate::runtime::source::Source;
use crate::runtime::stage::Stages;
use crate::state::activation::Activation;
use crate::state::metrics::Counters;
use crate::wsdl::Wsdl;
use diagnostics::Span;
use message::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// A proxy service of the plan.
pub struct Proxy {
    /// Its name.
    pub name: String,
    /// `transports`: whether http and https may reach it.
    pub http: bool,
    /// See `http`.
    pub https: bool,
    /// Where its files come from (`vfs`).
    pub source: Option<Arc<Source>>,
    /// Stopped services answer with a fault.
    pub activation: Arc<Activation>,
    /// `startOnLoad`.
    pub(crate) start_on_load: bool,
    /// Who may send requests to it.
    pub(crate) guard: Option<Arc<Guard>>,
    /// What happens to messages before the flow and behind it.
    pub stages: Stages,
    /// `target/endpoint`.
    pub endpoint: Option<Arc<EndpointRef>>,
    /// The in sequence.
    pub in_sequence: Option<SequenceRef>,
    /// The out sequence.
    pub out_sequence: Option<ListId>,
    /// The fault sequence.
    pub fault_sequence: Option<ListId>,
    /// What `?wsdl` answers.
    pub wsdl: Wsdl,
    /// Only inbound endpoints may reach it.
    pub inbound_only: bool,
    /// Not listed at `/services/`.
    pub hidden: bool,
    /// The service parameters as properties of each message (`SET_JMS_SVC_PARAMS_AS_MSG_CTX`).
    pub(crate) properties: Vec<(Arc<str>, Value)>,
    /// Where it is written.
    pub span: Span,
    /// `trace="enable"`.
    pub(crate) trace: bool,
    pub(crate) counters: Arc<Counters>,
}

impl Proxy {
    /// Makes a message one of this service; the list that its flow begins with.
    ///
    /// # Errors
    /// There is no such sequence.
    pub(crate) fn enter(&self, context: &mut Context) -> Result<Option<ListId>, Fault> {
        for (name, value) in &self.properties {
            context.properties.set(Arc::clone(name), value.clone());
        }
        self.in_sequence.as_ref().map(|list| list.resolve(context)).transpose()
    }
}

/// An API of the plan.
pub struct Api {
    /// Its registered name.
    pub name: String,
    /// Its context.
    pub context: String,
    /// Its version, if it has one.
    pub version: String,
    /// How the version is found: `context`, `url` or nothing.
    pub version_strategy: &'static str,
    /// Stopped APIs are not available (503).
    pub activation: Arc<Activation>,
    /// What happens to messages before the flow and behind it.
    pub stages: Stages,
    /// Its resources.
    pub resources: Vec<Resource>,
    /// Where it is written.
    pub span: Span,
    pub(crate) rule: ApiRule,
    pub(crate) rules: Vec<ResourceRule>,
    /// `trace="enable"`.
    pub(crate) trace: bool,
    /// The listeners that serve it; empty: those of the bus.
    pub(crate) binds_to: Vec<String>,
    pub(crate) handlers: Vec<Handler>,
    /// The definition that was given for it (`publishSwagger`, or packed in its archive).
    pub(crate) definition: Option<Arc<[u8]>>,
    pub(crate) counters: Arc<Counters>,
}

impl Api {
    /// The name with the version, as WSO2 registers it: `Orders:v1.2`.
    pub fn qualified_name(&self) -> Cow<'_, str> {
        match self.version.as_str() {
            "" => Cow::Borrowed(&self.name),
            version => Cow::Owned(format!("{}:v{version}", self.name)),
        }
    }

    /// Its path on this server, with the version where that is a segment.
    pub fn path(&self) -> String {
        match self.version_strategy {
            "url" => format!("{}/{}", self.rule.context, self.version),
            _ => self.rule.context.clone(),
        }
    }
}

/// A resource of an API.
pub struct Resource {
    /// For people: its template or mapping.
    pub label: String,
    /// For people: the methods it answers, `GET POST`; empty: all.
    pub methods: String,
    /// The same as answers list them: `GET, POST`.
    pub(crate) allow: String,
    /// The in sequence.
    pub in_sequence: Option<SequenceRef>,
    /// The out sequence.
    pub out_sequence: Option<ListId>,
    /// The fault sequence.
    pub fault_sequence: Option<ListId>,
}

/// The methods of a resource as answers list them; none: those that WSO2 lists then.
pub(crate) fn allowed_methods(methods: &[&str]) -> String {
    let named: Vec<&str> = methods.iter().copied().filter(|method| *method != "OPTIONS").collect();
    if named.is_empty() { "GET, POST, PUT, DELETE".to_owned() } else { named.join(", ") }
}

/// A handler that runs before the resource is chosen.
pub(crate) enum Handler {
    /// `RESTBasicAuthHandler`: only users of the settings.
    BasicAuthentication,
    /// `CORSRequestHandler`.
    Cors(Arc<Cors>),
    /// `AccessHandler`, and `RESTBasicAuthHandler` with a user store: whom a profile of the settings lets in.
    Guard(Arc<Guard>),
}

/// Which other origins may send requests, and with which headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cors {
    /// Responses have no CORS headers.
    pub disabled: bool,
    /// `*`, or origins as browsers send them.
    pub origins: Vec<String>,
    /// The headers that requests may have, as they stand in the answer; empty: the answer does not say.
    pub headers: String,
    /// The methods, as they stand in the answer; empty: those of the resource.
    pub methods: String,
    /// Whether requests may have credentials.
    pub credentials: bool,
}

impl Cors {
    /// The origin of pages that have none: of files, of sandboxed frames, which any site can make.
    pub const OPAQUE: &'static str = "null";

    /// Reads origins between commas, as browsers send them (RFC 6454, 6.2): in small letters, without the port that the scheme has anyway.
    pub fn read_origins(text: &str) -> Vec<String> {
        let origin = |text: &str| {
            let text = text.to_ascii_lowercase();
            let text = text.strip_suffix('/').unwrap_or(&text);
            let usual_port = match text.split_once("://") {
                Some(("http", _)) => ":80",
                Some(("https", _)) => ":443",
                _ => "",
            };
            text.strip_suffix(usual_port).unwrap_or(text).to_owned()
        };
        text.split(',').map(str::trim).filter(|text| !text.is_empty()).map(origin).collect()
    }

    /// Whether a browser can send an origin: `https://shop.example:8443`. A `*` within it stands for nothing.
    pub fn is_origin(text: &str) -> bool {
        let host = text.split_once("://").map_or("", |(_, host)| host);
        text == "*"
            || text == Cors::OPAQUE
            || !host.is_empty()
                && !host.contains(|c: char| matches!(c, '/' | '*' | '?' | '#' | '@') || c.is_whitespace())
    }
}

#[cfg(test)]
mod tests {
    use super::Cors;

    #[test]
    fn origins_are_those_that_browsers_send() {
        let text =
            "https://Shop.Example, http://a:80/,,https://a:443 , https://a:80,http://[::1]:8080, *, null";
        let origins = [
            "https://shop.example",
            "http://a",
            "https://a",
            "https://a:80",
            "http://[::1]:8080",
            "*",
            "null",
        ];
        assert_eq!(Cors::read_origins(text), origins);
        assert!(origins.iter().all(|origin| Cors::is_origin(origin)));
        for wrong in
            ["https://*.example", "shop.example", "https://a/b", "https://", "https://a b", "https://u@a"]
        {
            assert!(!Cors::is_origin(wrong), "{wrong}");
        }
    }

    #[test]
    fn methods() {
        assert_eq!(super::allowed_methods(&["GET", "OPTIONS", "POST"]), "GET, POST");
        assert_eq!(super::allowed_methods(&[]), "GET, POST, PUT, DELETE");
    }
}
