//! What the engine knows of endpoints: they choose a leaf for each attempt, and a leaf makes the request.
//!
//! The kinds themselves live in the endpoints room.

use crate::runtime::check::{Change, Check, Health};
use crate::runtime::context::Context;
use crate::runtime::fault::Fault;
use crate::runtime::mediator::ListId;
use crate::runtime::reference::EndpointRef;
use crate::runtime::stage::Stage;
use crate::state::identity::Identity;
use diagnostics::Span;
use message::{Headers, Method, Payload, SoapVersion};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

/// An endpoint of any kind.
pub trait Endpoint: Send + Sync {
    /// Its name, or a description of an anonymous one.
    fn name(&self) -> &str;

    /// Chooses where the next attempt goes. It is asked again, with the same `step`, after that attempt has failed.
    ///
    /// # Errors
    /// Nothing is ready, or nothing else may be tried: the fault to raise.
    fn choose(&self, context: &mut Context, attempts: &Attempts, step: &mut Step) -> Result<Choice, Fault>;

    /// Whether it may be chosen now. `choose` says the last word.
    fn is_ready(&self) -> bool {
        true
    }

    /// Whether a group that this is a member of may try another member after it failed with `fault` (`retryConfig`).
    fn lets_retry(&self, _fault: &Fault) -> bool {
        true
    }

    /// The endpoint that this one stands for, for this message; `None`: it is one itself.
    ///
    /// # Errors
    /// 305100: there is none.
    fn stands_for(&self, _context: &mut Context) -> Result<Option<Arc<dyn Endpoint>>, Fault> {
        Ok(None)
    }

    /// `onError`: what runs when a message cannot be sent to it, ahead of the fault handlers.
    fn on_error(&self) -> Option<ListId> {
        None
    }

    /// Whether the body must be kept to be sent again (failover).
    fn resends(&self) -> bool {
        false
    }

    /// Whether choosing reads the body, so that it has to be received first.
    fn reads_body(&self) -> bool {
        false
    }

    /// Whether [`Endpoint::answered`] reads the body of the answer, so that it has to be received first.
    fn reads_answer(&self) -> bool {
        false
    }

    /// The attempt that `step` leads to has got an answer, which the context holds.
    fn answered(&self, _context: &mut Context, _step: &Step) {}

    /// The leaves below, for the admin address and `explain`.
    fn leaves(&self) -> Vec<Arc<dyn Leaf>>;
}

/// Most endpoints that stand for another one, one behind the other, until the last of them is one itself.
pub const MOST_ALIASES: usize = 16;

/// The fault of keys that lead on and on.
pub fn circle(name: &str) -> Fault {
    let message = format!("the keys of the endpoint {name} lead round in a circle");
    Fault::with_code(crate::runtime::fault::code::INDIRECT_NOT_READY, message)
}

/// What [`Endpoint::choose`] chose.
pub enum Choice {
    /// One leaf.
    Leaf(Arc<dyn Leaf>),
    /// A copy to each of these.
    Everyone(Vec<Arc<dyn Endpoint>>),
}

/// The attempts that failed for one message, in order.
#[derive(Default)]
pub struct Attempts {
    failed: Vec<Arc<Identity>>,
    last: Option<Box<Fault>>,
}

impl Attempts {
    /// The fault of the last one.
    pub fn last(&self) -> Option<&Fault> {
        self.last.as_deref()
    }

    /// Whether one of them went to this leaf. A leaf that several members of a group lead to gets a message once.
    pub fn went_to(&self, leaf: &Identity) -> bool {
        self.failed.iter().any(|failed| **failed == *leaf)
    }

    /// How many there were.
    pub fn count(&self) -> usize {
        self.failed.len()
    }

    /// Adds one.
    pub fn add(&mut self, leaf: &Arc<Identity>, fault: Fault) {
        self.failed.push(Arc::clone(leaf));
        self.last = Some(Box::new(fault));
    }
}

/// What an endpoint remembers of one message between its attempts; each member of a group has a step of its own.
#[derive(Default)]
pub struct Step {
    /// It was asked before: the attempt that it chose has failed.
    pub asked: bool,
    /// The position that a group starts from, drawn once for a message.
    pub start: usize,
    /// Members that this message was sent to in vain, or that were not ready.
    pub tried: Vec<usize>,
    /// The member that was chosen, and its step.
    pub member: Option<(usize, Box<Step>)>,
    /// What a member failed with.
    pub fault: Option<Box<Fault>>,
    /// What this stands for, for this message.
    pub target: Option<Arc<dyn Endpoint>>,
    /// Members that were passed over since `start`.
    pub passed: usize,
    /// The session that the message belongs to.
    pub session: Option<Arc<str>>,
    /// The session is bound to a member: no other may get the message.
    pub bound: bool,
    /// The chosen member counts as busy until this is dropped.
    pub busy: Option<Busy>,
}

/// Counts one more message at a member, until this is dropped.
#[derive(Debug)]
pub struct Busy(Arc<AtomicUsize>);

impl Busy {
    /// Counts one more.
    pub fn with(count: &Arc<AtomicUsize>) -> Busy {
        count.fetch_add(1, Ordering::Relaxed);
        Busy(Arc::clone(count))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An endpoint that sends to one address.
pub trait Leaf: Send + Sync {
    /// Its name, or a description of an anonymous one.
    fn name(&self) -> &str;

    /// Where it sends, as far as the configuration says it: for people.
    fn address(&self) -> String {
        String::new()
    }

    /// The form in which it sends.
    fn format(&self) -> EndpointFormat {
        EndpointFormat::AsIs
    }

    /// Whether the state machine lets a message through now.
    fn is_ready(&self) -> bool;

    /// How long it is until it lets one through; `None`: nothing is in its way, or that is not known.
    fn ready_in(&self) -> Option<Duration> {
        None
    }

    /// `active`, `timeout`, `suspended`, `off`: for people.
    fn state(&self) -> &'static str;

    /// What tells it from all others.
    fn identity(&self) -> &Arc<Identity>;

    /// The number of its suspensions. A sender notes it before it sends, for [`Leaf::failed`].
    fn episode(&self) -> u64 {
        0
    }

    /// An answer came.
    fn succeeded(&self);

    /// Sending or receiving failed with this `ERROR_CODE` and for this reason, in an attempt that began in this episode. Failures of
    /// attempts that began before the last suspension say nothing new.
    fn failed(&self, code: i32, why: &dyn fmt::Display, episode: u64);

    /// Until when it lets nothing through, and why: for people.
    fn standing(&self) -> Standing {
        Standing::default()
    }

    /// How its backend is asked at intervals whether it is well; `None`: it is not.
    fn check(&self) -> Option<&Check> {
        None
    }

    /// The number of failures of messages so far that kept others away; a check takes it down when it begins.
    fn setbacks(&self) -> u64 {
        0
    }

    /// A check has ended that began when there were so many setbacks. What changes by that.
    fn checked(&self, _outcome: Result<(), String>, _setbacks: u64) -> Option<Change> {
        None
    }

    /// How the checks went, where there are any: for people.
    fn health(&self) -> Option<Health> {
        None
    }

    /// It is written in a group, which tries others when it fails.
    fn joins_group(&self) {}

    /// Suspends it by hand, as a failure would: it comes back by itself.
    fn suspend(&self) {}

    /// Switches the endpoint off (no message passes) or on by hand.
    fn switch(&self, on: bool);

    /// Whether making the request reads the body, so that it has to be received first.
    fn reads_body(&self) -> bool {
        false
    }

    /// Makes the request for a message: evaluates the address and the endpoint's properties.
    ///
    /// # Errors
    /// There is no usable address.
    fn outgoing(&self, context: &mut Context) -> Result<Outgoing, Fault>;

    /// What happens to requests before they leave, and to answers when they have come.
    fn stages(&self) -> &[Arc<dyn Stage>] {
        &[]
    }

    /// Its counters.
    fn counters(&self) -> &crate::state::metrics::Counters;

    /// `onError` of the endpoint.
    fn on_error(&self) -> Option<ListId> {
        None
    }
}

/// How it came that an endpoint is in its state.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// When it lets messages through again, where it does not now and that comes by itself.
    pub until: Option<SystemTime>,
    /// What changed its state last, other than a response or an administrator; kept while it is active again.
    pub cause: Option<Cause>,
}

/// A failure that changed the state of an endpoint.
#[derive(Clone, Debug)]
pub struct Cause {
    /// Its `ERROR_CODE`; 0: it was suspended by hand, or its checks failed.
    pub code: i32,
    /// Why.
    pub why: String,
    /// When.
    pub when: SystemTime,
}

/// An endpoint that is written where it is used, and that no key leads to.
#[derive(Clone)]
pub struct InlineEndpoint {
    /// The artifact that it is in.
    pub artifact: Identity,
    /// Where it is written.
    pub span: Span,
    /// Itself.
    pub endpoint: Arc<dyn Endpoint>,
}

/// A request as an endpoint wants it.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Connection: scheme, host, port and TLS profile.
    pub target: transport::Target,
    /// Path and query, or the absolute form where asked for.
    pub request_target: String,
    /// The method; `None`: as the message says.
    pub method: Option<Method>,
    /// The form of the message.
    pub format: EndpointFormat,
    /// `encoding` attribute.
    pub charset: Option<Arc<str>>,
    /// Time to wait for the answer; `None`: the global timeout.
    pub timeout: Option<Duration>,
    /// What a timeout does.
    pub on_timeout: TimeoutAction,
    /// WS-Addressing headers to write.
    pub addressing: Option<AddressingVersion>,
    /// With `addressing`: the answer comes on a connection of its own.
    pub separate_listener: bool,
    /// `optimize`: MTOM or SwA.
    pub packing: Option<message::Packing>,
    /// Knows the `Authorization`; the request may be sent again after a 401.
    pub authority: Option<Arc<dyn crate::runtime::authority::Authority>>,
}

/// `format` of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EndpointFormat {
    /// As received.
    #[default]
    AsIs,
    /// `soap11`, `soap12`.
    Soap(SoapVersion),
    /// Plain XML.
    Pox,
    /// GET with the payload as a query.
    Get,
    /// The client's type and method.
    Rest,
}

/// `responseAction` of a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TimeoutAction {
    /// WSO2 drops the message silently after the global timeout; here the fault sequence runs.
    #[default]
    None,
    /// Drop the message; the client gets 504.
    Discard,
    /// Run the fault sequence.
    Fault,
}

/// `enableAddressing`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressingVersion {
    /// That of the message, 1.0 if it has none.
    Received,
    /// 1.0.
    Final,
    /// August 2004.
    Submission,
}

/// Where `send` and `call` send.
pub struct Destination {
    /// The endpoint; `None`: the message's `To`.
    pub endpoint: Option<Arc<dyn Endpoint>>,
    /// `receive`: the sequence for the answer.
    pub receive: Option<ListId>,
    /// `blocking="true"`: some statuses are failures.
    pub blocking: bool,
    /// What to do with the answer of a `call` that has a source or a target.
    pub saved: Option<Box<Saved>>,
    /// An endpoint that is looked up when the message is sent; used if `endpoint` is `None`.
    pub reference: Option<Arc<EndpointRef>>,
}

impl Destination {
    /// Sends to an endpoint and nothing more.
    pub fn to(endpoint: Arc<dyn Endpoint>) -> Destination {
        Destination { endpoint: Some(endpoint), receive: None, blocking: false, saved: None, reference: None }
    }

    /// Whether it names no endpoint: as an answer, the message goes to the client.
    pub(crate) fn is_to_client(&self) -> bool {
        self.endpoint.is_none() && self.reference.is_none()
    }

    /// Sends to the message's `To`.
    pub fn implicit() -> Destination {
        Destination { endpoint: None, receive: None, blocking: false, saved: None, reference: None }
    }
}

impl fmt::Debug for Destination {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Destination({})", self.endpoint.as_deref().map_or("To", |endpoint| endpoint.name()))
    }
}

/// The message as it was before a `call` with a target, to be restored after it.
pub struct Saved {
    /// The body.
    pub payload: Payload,
    /// The transport headers.
    pub headers: Headers,
    /// They are those of the client's request.
    pub request_headers: bool,
    /// Where the answer goes.
    pub target: CallTarget,
}

impl Saved {
    /// For one more answer.
    pub(crate) fn copy(&mut self) -> Box<Saved> {
        Box::new(Saved {
            payload: self.payload.copy(),
            headers: self.headers.clone(),
            request_headers: self.request_headers,
            target: self.target.clone(),
        })
    }

    /// Puts the answer where the target says and the message back as it was.
    ///
    /// # Errors
    /// The answer cannot be read. The message is as it was all the same.
    pub(crate) async fn restore(self: Box<Self>, context: &mut Context) -> Result<(), Fault> {
        if let CallTarget::BodyAndVariable(name) = self.target {
            let value = variable_value(context, None);
            context.variables.set(name, value);
            return Ok(());
        }
        let response = match context.receive_body().await {
            Ok(()) => payload_value(context),
            Err(why) => Err(why),
        };
        match (self.target, &response) {
            (CallTarget::Body | CallTarget::BodyAndVariable(_), _) => return response.map(|_| ()),
            (CallTarget::Property(name), Ok(response)) => context.properties.set(name, response.clone()),
            (CallTarget::Variable(name), Ok(response)) => {
                let value = variable_value(context, Some(response));
                context.variables.set(name, value);
            }
            (_, Err(_)) => {}
        }
        context.payload = self.payload;
        context.headers = self.headers;
        context.request_headers = self.request_headers;
        response.map(|_| ())
    }
}

/// What a variable target holds: `{payload, headers, attributes: {statusCode}}`, without `payload` if that is the body.
fn variable_value(context: &Context, response: Option<&message::Value>) -> message::Value {
    let payload: Option<serde_json::Value> = response.map(|response| match response {
        message::Value::Json(json) => (**json).clone(),
        message::Value::Xml(xml) => xml.to_xml().into(),
        other => other.to_string().into(),
    });
    let headers: serde_json::Map<_, _> = context
        .headers
        .iter()
        .map(|(name, value)| (name.to_owned(), crate::text::header_text(value).into()))
        .collect();
    let attributes = serde_json::json!({ "statusCode": context.status });
    let mut map = serde_json::Map::new();
    map.extend(payload.map(|payload| ("payload".to_owned(), payload)));
    map.insert("headers".to_owned(), headers.into());
    map.insert("attributes".to_owned(), attributes);
    message::Value::Json(Arc::new(map.into()))
}

/// The payload as a property value: JSON, the text of a text payload, else its element.
fn payload_value(context: &mut Context) -> Result<message::Value, Fault> {
    if let Some(json) = context.payload.json()? {
        return Ok(message::Value::Json(Arc::new(json.clone())));
    }
    let envelope = context.envelope()?;
    let Some(payload) = envelope.payload() else { return Ok(message::Value::from("")) };
    if envelope.document.namespace(payload) == message::envelope::PAYLOAD {
        return Ok(message::Value::from(envelope.document.string_value(payload).into_owned()));
    }
    let copy = message::XmlValue::copy_of(&envelope.document, &[payload]);
    Ok(message::Value::Xml(Arc::new(copy)))
}

/// `<target>` of a `call`.
#[derive(Clone)]
pub enum CallTarget {
    /// The body: the answer stays the message.
    Body,
    /// A property of default scope.
    Property(Arc<str>),
    /// A variable.
    Variable(Arc<str>),
    /// The body, and status and headers into a variable.
    BodyAndVariable(Arc<str>),
}
