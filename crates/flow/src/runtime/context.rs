//! The context of one message: everything mediators read and change, and where the engine stands with it.

use crate::runtime::correlation::Correlation;
use crate::runtime::exchange::{Awaited, Exchange};
use crate::runtime::fault::Fault;
use crate::runtime::identifier::{next_number, push_unique, unique};
use crate::runtime::mediator::{ListId, Parameters};
use crate::runtime::plan::Plan;
use crate::runtime::progress::{Part, Progress};
use crate::runtime::request::{Client, Inbound};
use crate::runtime::scope::Scope;
use crate::runtime::services::Services;
use diagnostics::Span;
use message::memory::{self, Held};
use message::{Envelope, Headers, Payload, Properties, SoapVersion, Value};
use smallvec::SmallVec;
use std::any::Any;
use std::borrow::Cow;
use std::sync::{Arc, Mutex};

/// What a message without a proxy service, API, inbound endpoint or `main` began with: `task nightly`. Kept with the message.
pub(crate) struct Origin(pub String);

/// WS-Addressing facts of the message (`To` is also the implicit destination).
#[derive(Clone, Debug, Default)]
pub struct Addressing {
    /// Where the message goes; `None` inside is "no To" after `respond`.
    pub to: Option<String>,
    /// `From`.
    pub from: Option<String>,
    /// `ReplyTo`.
    pub reply_to: Option<String>,
    /// `FaultTo`.
    pub fault_to: Option<String>,
    /// `Action`.
    pub action: Option<String>,
    /// `RelatesTo`.
    pub relates_to: Option<String>,
    /// `MessageID` as received or set.
    pub message_id: Option<String>,
}

/// One place in the flow: a list and the next step in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub list: ListId,
    pub next: u32,
    /// Entering pushed a fault handler.
    pub handler: bool,
    /// Entering pushed template parameters.
    pub parameters: bool,
    /// The list is the target of a split: behind it the branch may be over.
    pub branch: bool,
    /// What ends the list early (`drop`) ends it alone.
    pub absorbs: bool,
    /// [`Progress::calls`] when it was entered.
    pub calls: u16,
}

/// What a flow belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The main sequence.
    Main,
    /// A proxy service, by its number in the plan.
    Proxy(usize),
    /// A resource of an API, both by number.
    Resource(usize, usize),
    /// An inbound endpoint, by its number in the plan.
    Inbound(usize),
}

/// A template call: its parameters, by name.
pub(crate) type Functions = Vec<Arc<Parameters>>;

/// See the module.
pub struct Context {
    /// Transport headers (`$trp:`).
    pub headers: Headers,
    /// The body.
    pub payload: Payload,
    /// Default scope (`$ctx:`).
    pub properties: Properties,
    /// Variables (`$var:`).
    pub variables: Properties,
    /// axis2-client scope.
    pub client: Properties,
    /// WS-Addressing facts.
    pub addressing: Addressing,
    /// The SOAP action, without quotes.
    pub soap_action: Option<String>,
    /// The message is a response.
    pub response: bool,
    /// The payload was made here, or read and answered; the headers are still those of the client's request.
    pub request_headers: bool,
    /// Status of the answer that an endpoint gave; axis2 `HTTP_SC` unless that was set.
    pub status: Option<u16>,
    /// Reason phrase of that answer.
    pub reason: Option<Cow<'static, str>>,
    /// What the client sent.
    pub inbound: Arc<Inbound>,
    /// What steps made of the transport header `Content-Type` (`None` inside: removed): see [`Context::set_header`].
    pub(crate) said_type: Option<Option<Box<str>>>,
    pub(crate) axis2: Properties,
    pub(crate) axis2_removed: Vec<Arc<str>>,
    pub(crate) operation: Option<Arc<Mutex<Properties>>>,
    pub(crate) plan: Arc<Plan>,
    pub(crate) services: Arc<Services>,
    pub(crate) owner: Owner,
    pub(crate) frames: SmallVec<[Frame; 4]>,
    pub(crate) handlers: SmallVec<[ListId; 4]>,
    pub(crate) functions: Functions,
    /// Who owns the work of the message, once there is more of it than this flow.
    pub(crate) scope: Option<Arc<Scope>>,
    pub(crate) exchange: Option<Arc<Exchange>>,
    pub(crate) number: u64,
    pub(crate) correlation: Correlation,
    /// The step that ran last: where a failure of what it asked the engine for is reported.
    pub(crate) place: Option<Span>,
    pub(crate) progress: Progress,
    /// Where the answer of a branch comes out. It stays with the driver of the flow, whatever message the flow goes on with.
    pub(crate) awaited: Option<Awaited>,
    /// What mediators left with the message ([`Context::attach`]), and what it keeps while it is on its way ([`Context::hold`]).
    pub(crate) attached: Vec<Arc<dyn Any + Send + Sync>>,
    /// Counts a copy as held: a message has one of these for each part that runs or waits.
    _held: Held,
}

/// About how many bytes a copy of a message takes, without its payload.
const COPY: usize = 4096;

/// Several messages. Boxed: they are handed on, and a context is large.
#[allow(clippy::vec_box)]
pub type Contexts = Vec<Box<Context>>;

impl Context {
    /// A context for a request. The dispatcher sets where it goes.
    pub fn new(
        plan: Arc<Plan>,
        services: Arc<Services>,
        inbound: Arc<Inbound>,
        headers: Headers,
        payload: Payload,
    ) -> Context {
        let number = next_number();
        Context {
            headers,
            payload,
            properties: Properties::new(),
            variables: Properties::new(),
            client: Properties::new(),
            addressing: Addressing::default(),
            soap_action: None,
            response: false,
            request_headers: true,
            status: None,
            reason: None,
            inbound,
            said_type: None,
            axis2: Properties::new(),
            axis2_removed: Vec::new(),
            operation: None,
            plan,
            services,
            owner: Owner::Main,
            frames: SmallVec::new(),
            handlers: SmallVec::new(),
            functions: Vec::new(),
            scope: None,
            exchange: None,
            number,
            correlation: Correlation::Of(number),
            place: None,
            progress: Progress::default(),
            awaited: None,
            attached: Vec::new(),
            _held: Held::NONE,
        }
    }

    /// The plan the message began with.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// What all flows share: client, limits, settings.
    pub fn services(&self) -> &Arc<Services> {
        &self.services
    }

    /// Appends the message id to a text.
    pub fn push_message_id(&self, out: &mut String) {
        match &self.addressing.message_id {
            Some(id) => out.push_str(id),
            None => push_unique(self.number, out),
        }
    }

    /// The message id: as received or set, else one made from the process's own numbering.
    pub fn message_id(&self) -> String {
        match &self.addressing.message_id {
            Some(id) => id.clone(),
            None => unique(self.number),
        }
    }

    /// The XML view of the payload. A step that calls this says [`Need::Whole`](crate::Need::Whole).
    ///
    /// # Errors
    /// The payload is not what its type says.
    pub fn envelope(&mut self) -> Result<&Envelope, Fault> {
        Ok(self.payload.envelope(&self.services.limits)?)
    }

    /// The XML view, shared: what others change of the message does not reach it. Pieces of it can be written as they came
    /// (`Payload::envelope_for_pieces`).
    ///
    /// # Errors
    /// As [`Context::envelope`].
    pub fn shared_envelope(&mut self) -> Result<Arc<Envelope>, Fault> {
        Ok(Arc::clone(self.payload.envelope_for_pieces(&self.services.limits)?))
    }

    /// The XML view, to be changed.
    ///
    /// # Errors
    /// As [`Context::envelope`].
    pub fn envelope_mut(&mut self) -> Result<&mut Envelope, Fault> {
        Ok(self.payload.envelope_mut(&self.services.limits)?)
    }

    /// Receives the whole body, for steps that find out while they run that they need it.
    ///
    /// # Errors
    /// The body is too large, or does not arrive.
    pub async fn receive_body(&mut self) -> Result<(), Fault> {
        let received = self.payload.buffer(&self.services.limits).await.map_err(Fault::from);
        if self.is_answered() { received.map_err(Fault::of_answer) } else { received }
    }

    /// A property of axis2 scope: what was set, else what is known of the request or response.
    pub fn axis2(&self, name: &str) -> Option<Value> {
        if let Some(value) = self.axis2.get(name) {
            return Some(value.clone());
        }
        if self.axis2_removed.iter().any(|removed| &**removed == name) {
            return None;
        }
        let text = |text: &str| Some(Value::from(text));
        match name {
            "HTTP_SC" => self.status.map(|status| Value::Integer(status.into())),
            "HTTP_SC_DESC" | "HTTP_REASON_PHRASE" => self.reason.as_deref().and_then(text),
            "ORIGINAL_STATUS_CODE" => self.status.map(|status| Value::Integer(status.into())),
            "transport.http.statusCode" => self.status.map(|status| Value::Integer(status.into())),
            "HTTP_METHOD" | "HTTP_METHOD_OBJECT" | "HTTP_REQUEST_METHOD" | "HTTP_REQ_METHOD" => {
                text(self.inbound.method.as_str())
            }
            "REST_URL_POSTFIX" => {
                self.request_headers.then(|| self.inbound.postfix()).filter(|p| !p.is_empty()).and_then(text)
            }
            "TransportInURL" => text(&self.inbound.target),
            "REMOTE_ADDR" | "REMOTE_HOST" => text(&self.inbound.peer.ip().to_string()),
            "CLIENT_REMOTE_PORT" => Some(Value::Integer(self.inbound.peer.port().into())),
            "IN_TRANSPORT" | "TRANSPORT_IN_NAME" => match self.origin() {
                Some(origin) if origin.starts_with("file ") => text("vfs"),
                _ => text(self.inbound.scheme()),
            },
            "SERVICE_PREFIX" => {
                let path = match self.owner {
                    Owner::Proxy(_) => self.inbound.target.get(..self.inbound.service_length).unwrap_or("/"),
                    _ => "/",
                };
                text(&format!("{}://{}{path}", self.inbound.scheme(), self.inbound.host))
            }
            "ssl.client.auth.cert" => self.inbound.certificates(false).map(Value::from),
            "ssl.client.auth.cert.X509" => self.inbound.certificates(true).map(Value::from),
            "ssl.client.auth.cert.subject" => {
                self.inbound.identity().map(|identity| Value::from(identity.subject))
            }
            "ssl.client.auth.cert.issuer" => {
                self.inbound.identity().map(|identity| Value::from(identity.issuer))
            }
            "ssl.client.auth.cert.serial" => {
                self.inbound.identity().map(|identity| Value::from(identity.serial))
            }
            "ssl.client.auth.cert.names" => {
                self.inbound.identity().map(|identity| Value::from(identity.names.join(" ")))
            }
            "ssl.client.auth.cert.fingerprint" => {
                self.inbound.identity().map(|identity| Value::from(identity.fingerprint))
            }
            "NO_ENTITY_BODY" => self.payload.is_empty().then_some(Value::Boolean(true)),
            "messageType" => match self.headers.get("Content-Type") {
                Some(value) => text(message::MediaType::parse(value).essence),
                None if self.progress.asked.is_answered() => None,
                // As WSO2 reads a request that does not say what it is.
                None if self.payload.is_empty() => text("application/xml"),
                None => text("application/octet-stream"),
            },
            "ContentType" => self.headers.get("Content-Type").and_then(text),
            "CHARACTER_SET_ENCODING" => self
                .headers
                .get("Content-Type")
                .and_then(|value| text(message::MediaType::parse(value).charset().unwrap_or("UTF-8"))),
            // As WSO2 spells it.
            "ORGINAL_CONTEN_LENGTH" => self.headers.get("Content-Length").and_then(text),
            crate::runtime::correlation::PROPERTY => Some(Value::from(self.correlation_id())),
            "message.builder.invoked" => Some(Value::Boolean(self.payload.is_built())),
            // As in WSO2, client options and operation properties are seen through the message's own scope.
            _ => self.client.get(name).cloned().or_else(|| self.operation(name)),
        }
    }

    /// Whether a property of axis2 scope is true, as string or as Boolean.
    #[inline]
    pub fn axis2_is_true(&self, name: &str) -> bool {
        // Nothing computed is ever asked this way but NO_ENTITY_BODY, which callers read themselves.
        self.axis2.get(name).is_some_and(Value::is_true)
    }

    /// Sets a transport header for a step of the flow.
    ///
    /// As in WSO2, `Content-Type` is only what steps read then: what leaves is labelled by `messageType` and
    /// `ContentType`, but for requests without a body.
    pub fn set_header(&mut self, name: &str, value: &str) {
        if name.eq_ignore_ascii_case("Content-Type") {
            self.said_type = Some(Some(value.into()));
        } else {
            self.headers.set(name, value);
        }
    }

    /// Removes a transport header for a step of the flow; of `Content-Type` as [`Context::set_header`].
    pub fn remove_header(&mut self, name: &str) {
        if name.eq_ignore_ascii_case("Content-Type") {
            self.said_type = Some(None);
        } else {
            self.headers.remove(name);
        }
    }

    /// `ContentType` of axis2 scope, where it was set and is not only that of `messageType`.
    pub(crate) fn label(&self) -> Option<String> {
        let label = self.axis2.get("ContentType")?.to_string();
        let of_type =
            self.axis2.get("messageType").is_some_and(|message_type| message_type.to_string() == label);
        (!of_type && !label.chars().any(char::is_control)).then_some(label)
    }

    /// Sets a property of axis2 scope. `messageType` also sets the Content-Type header.
    pub fn set_axis2(&mut self, name: impl Into<Arc<str>>, value: Value) {
        let name = name.into();
        if &*name == "messageType" {
            let essence = value.to_string();
            // The type that the message has already keeps its parameters: a boundary, a charset.
            let before = self.headers.get("Content-Type").map(|line| message::MediaType::parse(line).essence);
            if before.is_none_or(|before| !before.eq_ignore_ascii_case(&essence)) {
                self.headers.set("Content-Type", essence.as_bytes());
            }
            self.axis2.set("ContentType", value.clone());
        }
        self.axis2_removed.retain(|removed| *removed != name);
        self.axis2.set(name, value);
    }

    /// Removes a property of axis2 scope, also one that is only computed.
    pub fn remove_axis2(&mut self, name: impl Into<Arc<str>>) {
        let name = name.into();
        if &*name == "TRANSPORT_HEADERS" {
            self.headers.clear();
            self.said_type = None;
        }
        if &*name == "EXCESS_TRANSPORT_HEADERS" {
            self.drop_repeated_headers();
        }
        if &*name == "HTTP_SC" {
            self.status = None;
        }
        self.axis2.remove(&name);
        if !self.axis2_removed.contains(&name) {
            self.axis2_removed.push(name);
        }
    }

    /// Keeps the first header of each name.
    fn drop_repeated_headers(&mut self) {
        let mut seen: Vec<String> = Vec::new();
        self.headers.retain(|name, _| {
            let first = !seen.iter().any(|earlier| earlier.eq_ignore_ascii_case(name));
            if first {
                seen.push(name.to_owned());
            }
            first
        });
    }

    /// A property of operation scope, shared by request, response and all copies.
    pub fn operation(&self, name: &str) -> Option<Value> {
        let scope = self.operation.as_ref()?.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        scope.get(name).cloned()
    }

    /// Sets or removes (`None`) a property of operation scope.
    pub fn set_operation(&mut self, name: impl Into<Arc<str>>, value: Option<Value>) {
        let scope = self.operation.get_or_insert_with(Arc::default);
        let mut scope = scope.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match value {
            Some(value) => scope.set(name, value),
            None => {
                scope.remove(&name.into());
            }
        }
    }

    /// A parameter of the innermost template call; `Err` outside of a template.
    pub fn parameter(&self, name: &str) -> Result<Option<&crate::runtime::mediator::Parameter>, Fault> {
        let frame = self.functions.last().ok_or_else(|| {
            Fault::new(format!("there is no template here whose parameter `{name}` could be read"))
        })?;
        Ok(frame.iter().find(|(key, _)| &**key == name).map(|(_, value)| value))
    }

    /// Whether a parameter of the innermost template call is evaluated when it is read, and reads the body.
    pub(crate) fn has_deferred_reader(&self) -> bool {
        self.functions.last().is_some_and(|frame| {
            frame.iter().any(|(_, parameter)| match parameter {
                crate::runtime::mediator::Parameter::Deferred(expression) => expression.need().is_whole(),
                crate::runtime::mediator::Parameter::Value(_) => false,
            })
        }) && !self.payload.is_unread()
    }

    /// A copy that goes its own way (`clone`, `iterate`, …). The body must have been received. Boxed: it is handed on from
    /// the mediator through the engine to a task, and a context is large.
    pub fn branch(&mut self) -> Box<Context> {
        let mut copy = self.branch_without_payload();
        copy.payload = self.payload.copy();
        copy
    }

    /// As [`Context::branch`], for a copy that gets a payload of its own: nothing of this one is copied but how it
    /// is read.
    pub fn branch_without_payload(&mut self) -> Box<Context> {
        self.operation.get_or_insert_with(Arc::default);
        // Copies find the scope of the message here; they never begin one.
        let scope = Arc::clone(self.scope());
        Box::new(Context {
            headers: self.headers.clone(),
            payload: self.payload.emptied(),
            properties: self.properties.clone(),
            variables: self.variables.clone(),
            client: self.client.clone(),
            addressing: Addressing { message_id: None, ..self.addressing.clone() },
            soap_action: self.soap_action.clone(),
            response: self.response,
            request_headers: self.request_headers,
            status: self.status,
            reason: self.reason.clone(),
            inbound: Arc::clone(&self.inbound),
            said_type: self.said_type.clone(),
            axis2: self.axis2.clone(),
            axis2_removed: self.axis2_removed.clone(),
            operation: self.operation.clone(),
            plan: Arc::clone(&self.plan),
            services: Arc::clone(&self.services),
            owner: self.owner,
            frames: SmallVec::new(),
            handlers: self.handlers.clone(),
            functions: self.functions.clone(),
            scope: Some(scope),
            exchange: self.exchange.clone(),
            number: next_number(),
            correlation: self.correlation.clone(),
            place: self.place,
            progress: Progress { part: Part::BRANCH, resumed: false, ..self.progress },
            awaited: None,
            attached: self.attached.clone(),
            _held: memory::hold(COPY),
        })
    }

    /// An empty message that a mediator sends on behalf of this one: work for the same client, but neither its headers and
    /// properties nor its fault handlers.
    pub fn inquiry(&mut self) -> Box<Context> {
        let mut inquiry = self.branch_without_payload();
        inquiry.headers = Headers::new();
        inquiry.payload = Payload::default();
        for properties in
            [&mut inquiry.properties, &mut inquiry.variables, &mut inquiry.client, &mut inquiry.axis2]
        {
            *properties = Properties::new();
        }
        inquiry.axis2_removed.clear();
        inquiry.handlers.clear();
        inquiry.attached.clear();
        inquiry.addressing = Addressing::default();
        inquiry.soap_action = None;
        inquiry.said_type = None;
        inquiry.response = false;
        inquiry.request_headers = false;
        inquiry.status = None;
        inquiry.reason = None;
        inquiry
    }

    /// Whether a `call` that is not blocking was answered since the list that runs was entered.
    pub fn called_since_entry(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.calls != self.progress.calls)
    }

    /// Keeps something for as long as the message or a copy of it is on its way: a slot, a permit.
    pub fn hold(&mut self, thing: Arc<dyn Any + Send + Sync>) {
        self.attached.push(thing);
    }

    /// Leaves something with the message for a mediator that comes later, in place of what was left of that type.
    pub fn attach<T: Any + Send + Sync>(&mut self, value: Arc<T>) {
        self.detach::<T>();
        self.attached.push(value);
    }

    /// What was left with the message of that type.
    pub fn attached<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let value = self.attached.iter().find(|value| value.is::<T>())?;
        Arc::clone(value).downcast().ok()
    }

    /// What was left with the message of that type; it is taken off.
    pub fn detach<T: Any + Send + Sync>(&mut self) -> Option<Arc<T>> {
        let at = self.attached.iter().position(|value| value.is::<T>())?;
        self.attached.swap_remove(at).downcast().ok()
    }

    /// The headers and the payload are those of an answer now: what was set for the request no longer holds.
    pub(crate) fn become_answer(&mut self, status: u16, reason: Option<Cow<'static, str>>) {
        self.status = Some(status);
        self.reason = reason;
        self.said_type = None;
        self.axis2.clear();
        self.axis2_removed.clear();
        self.client.clear();
        self.soap_action = None;
        // The answer relates to the request; everything else about addressing is over.
        self.addressing =
            Addressing { relates_to: self.addressing.message_id.take(), ..Addressing::default() };
        self.request_headers = false;
        self.progress.asked.answer();
    }

    /// Whether steps follow behind the one that runs, in its list or one around it.
    pub fn has_steps_ahead(&self) -> bool {
        self.frames.iter().any(|frame| self.plan.list(frame.list).steps.len() > frame.next as usize)
    }

    /// Whether a fault was raised.
    pub fn has_failed(&self) -> bool {
        self.progress.failure.is_some()
    }

    /// Whether an endpoint has answered: by `call`, or because this is its response.
    pub fn is_answered(&self) -> bool {
        self.progress.asked.is_answered()
    }

    /// The exchange with the client, if branches of its message run.
    pub fn exchange(&self) -> Option<&Arc<Exchange>> {
        self.exchange.as_ref()
    }

    /// Properties that say where the message came in; computed, since few ask.
    pub(crate) fn provenance(&self, name: &str) -> Option<Value> {
        match (name, self.owner) {
            ("proxy.name", Owner::Proxy(_)) => Some(Value::from(self.owner_name())),
            ("ARTIFACT_NAME", Owner::Proxy(_)) => Some(Value::from(format!("proxy{}", self.owner_name()))),
            ("ARTIFACT_NAME", Owner::Resource(api, _)) => {
                Some(Value::from(format!("api{}", self.plan.apis.get(api)?.qualified_name())))
            }
            ("ARTIFACT_NAME", Owner::Inbound(_)) => {
                Some(Value::from(format!("inboundendpoint{}", self.owner_name())))
            }
            ("isInbound", _) => self.inbound.through.map(|_| Value::Boolean(true)),
            ("inbound.endpoint.name", _) => {
                let endpoint = self.plan.inbound_endpoints.get(self.inbound.through?)?;
                Some(Value::from(endpoint.name.as_str()))
            }
            ("rest.url.pattern", Owner::Resource(..)) => self.properties.get("SYNAPSE_RESOURCE").cloned(),
            ("SERVER_IP", _) => Some(Value::from(self.inbound.local.ip().to_string())),
            (crate::runtime::correlation::PROPERTY, _) => Some(Value::from(self.correlation_id())),
            ("SERVER_HOST", _) => Some(Value::from(host_name())),
            ("IsClientDoingREST", _) => Some(Value::Boolean(self.is_rest())),
            ("IsClientDoingSOAP11", _) => {
                // A client that sends no SOAP counts as one of SOAP 1.1, as in WSO2.
                Some(Value::Boolean(self.inbound.client != Client::Soap(SoapVersion::V12)))
            }
            _ => None,
        }
    }

    /// The name of what the flow belongs to, for logs and metrics.
    pub fn owner_name(&self) -> &str {
        self.plan.owner_name(self.owner)
    }

    /// As log lines name what the flow belongs to: its service, or what it began with.
    pub fn service_name(&self) -> &str {
        match (self.owner, self.origin()) {
            (Owner::Main, Some(origin)) => origin,
            (owner, _) => self.plan.owner_name(owner),
        }
    }

    /// What the message began with, where that was no request to a service: `task nightly`.
    fn origin(&self) -> Option<&str> {
        self.attached.iter().find_map(|value| value.downcast_ref::<Origin>()).map(|origin| origin.0.as_str())
    }

    /// Who sent the message, for logs: the address of the client, or what it began with.
    pub(crate) fn sender(&self) -> Cow<'_, str> {
        match self.origin() {
            Some(origin) if self.inbound.is_of_nobody() => Cow::Borrowed(origin),
            _ => Cow::Owned(self.inbound.peer.to_string()),
        }
    }

    /// Where the message is: the step that ran last, or else its proxy service, API or the main sequence.
    pub fn location(&self) -> Span {
        let owner = || match self.owner {
            Owner::Main => self.plan.list(self.plan.main).span,
            Owner::Proxy(index) => self.plan.proxies[index].span,
            Owner::Resource(api, _) => self.plan.apis[api].span,
            Owner::Inbound(index) => self.plan.inbound_endpoints[index].span,
        };
        self.place.unwrap_or_else(owner)
    }

    /// [`Context::location`] as text (`FILE:LINE:COLUMN`), for the log.
    pub fn place(&self) -> String {
        self.plan.place(self.location())
    }

    /// Where the message goes: as set, else the client's own URL for a request that nothing answered yet.
    pub fn to(&self) -> Option<String> {
        match &self.addressing.to {
            Some(to) => Some(to.clone()),
            None => (self.request_headers && !self.response).then(|| self.inbound.to()),
        }
    }

    /// The SOAP action: as set, else as the transport headers have it.
    pub fn soap_action(&self) -> Option<String> {
        if let Some(action) = &self.soap_action {
            return Some(action.clone());
        }
        let header = self.headers.get_known(message::StandardHeader::SoapAction);
        let header = header.map(|value| value.trim_ascii().trim_matches('"'));
        header.filter(|action| !action.is_empty()).map(str::to_owned).or_else(|| {
            let content_type = self.headers.get("Content-Type")?;
            message::MediaType::parse(content_type).parameter("action").map(str::to_owned)
        })
    }

    /// Moves the message out and leaves an empty shell that only the engine touches.
    pub fn take(&mut self) -> Box<Context> {
        let mut shell = Context::new(
            Arc::clone(&self.plan),
            Arc::clone(&self.services),
            Arc::clone(&self.inbound),
            Headers::new(),
            Payload::empty(),
        );
        shell.owner = self.owner;
        shell.number = self.number;
        shell.correlation = self.correlation.clone();
        shell.place = self.place;
        // By these the access log names it.
        shell.addressing.message_id = self.addressing.message_id.clone();
        shell.addressing.relates_to = self.addressing.relates_to.clone();
        // What goes on for the message elsewhere (a timer) is work of the same scope.
        shell.scope = Some(Arc::clone(self.scope()));
        shell.exchange = self.exchange.clone();
        shell.progress = self.progress;
        // The driver of this flow still waits here for the client's response from other branches.
        shell.awaited = self.awaited.take();
        Box::new(std::mem::replace(self, shell))
    }

    /// Puts a message back where [`Context::take`] took one out.
    pub fn put(&mut self, mut message: Box<Context>) {
        message.awaited = self.awaited.take();
        // The message may have waited in an aggregate for one of another scope; this flow stays the work of its own.
        message.scope = self.scope.take();
        *self = *message;
    }

    /// Takes over a message that answers the client, from a branch that this flow waited for.
    pub fn answer_with(&mut self, mut response: Box<Context>) {
        response.frames.clear();
        response.exchange = self.exchange.clone();
        response.progress.part = self.progress.part;
        response.progress.client = self.progress.client;
        self.put(response);
    }

    /// Takes over the answer for the client, at the end of the flow. This flow stays the work of its own scope.
    pub(crate) fn end_with(&mut self, answer: Box<Context>) {
        let scope = self.scope.take();
        *self = *answer;
        self.scope = scope;
        self.exchange = None;
    }

    /// At the end of a flow that answers: the first answer counts, which a branch of it or a loop may have given.
    pub(crate) fn keep_first_answer(&mut self) {
        if let Some(awaited) = &mut self.awaited
            && let Ok(first) = awaited.answer.try_recv()
        {
            tracing::warn!(message_id = %self.message_id(), place = self.place(), "the client has its answer already; this one is dropped");
            self.end_with(first);
        }
    }

    /// Whether fault handlers of the flow that this is a branch of have run for it, and not only those inside of the branch.
    pub fn ran_handlers_of(&self, flow: &Context) -> bool {
        self.handlers.len() < flow.handlers.len()
    }

    /// The flow failed as a branch of it did, whose fault handlers have run.
    pub fn fail_as(&mut self, branch: &Context) {
        let (progress, of_branch) = (&mut self.progress, &branch.progress);
        progress.failure = of_branch.failure;
        if of_branch.asked.was_sent() {
            progress.asked.send();
        }
    }

    /// The payload was made a fault in POX form: status 500 unless one is set.
    pub fn mark_fault(&mut self) {
        self.progress.pox_fault = true;
    }

    /// Puts another message in the place of this one in the flow: it goes on where this one stands, in the same plan. The other
    /// one may have come to another service, or before a reload.
    pub fn continue_as(&mut self, mut other: Box<Context>) {
        other.plan = Arc::clone(&self.plan);
        other.services = Arc::clone(&self.services);
        other.owner = self.owner;
        other.place = self.place;
        std::mem::swap(&mut self.frames, &mut other.frames);
        std::mem::swap(&mut self.handlers, &mut other.handlers);
        std::mem::swap(&mut self.functions, &mut other.functions);
        other.exchange = self.exchange.clone();
        other.progress = self.progress;
        other.attached.append(&mut self.attached);
        self.put(other);
    }

    /// Whether the client speaks REST.
    pub fn is_rest(&self) -> bool {
        self.inbound.client == Client::Rest
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Context({} {}, {:?})", self.inbound.method.as_str(), self.inbound.target, self.payload)
    }
}

/// The name of this machine.
fn host_name() -> &'static str {
    use std::sync::LazyLock;
    static NAME: LazyLock<String> = LazyLock::new(|| {
        let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
        let name = hostname.map(|name| name.trim().to_owned()).or_else(|| std::env::var("HOSTNAME").ok());
        name.filter(|name| !name.is_empty()).unwrap_or_else(|| "localhost".to_owned())
    });
    &NAME
}
