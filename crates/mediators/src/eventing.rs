//! Event sources: a service that takes subscriptions (WS-Eventing) and events, and hands each event to those who want it.
//!
//! Nothing waits for what becomes of an event: its sender has 202, and each subscriber gets a one-way message. Subscriptions that
//! came by messages belong to the identity of the source: a reload keeps them, the end of the process does not.

mod protocol;

use self::protocol::{Request, Trouble};
use flow::endpoint::Destination;
use flow::events::Subscription;
use flow::reference::EndpointRef;
use flow::{
    Branch, BranchTarget, Compiler, Context, Expression, Fault, Flow, Mediator, Moves, Need, Split, lock,
};
use jiff::{Timestamp, Zoned, tz::TimeZone};
use message::{Envelope, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use xml::NodeKind;

/// Most subscriptions of one source that came by messages.
const MOST: usize = 10_000;
/// Most bytes of one of them (its address, its filter and its header blocks), and of all of a source.
const LARGEST: usize = 64 << 10;
const LARGEST_TOGETHER: usize = 16 << 20;
/// Units of work that the filter of one of them has for an event: so many, and more for each node of the event. All of these filters have
/// eight times that.
const FILTER: u64 = 100_000;
const FILTER_NODE: u64 = 64;
/// Most units for all filters of an event: some seconds.
const FILTERS: u64 = 16_000_000;

/// The class that keeps subscriptions in memory, with whatever package in front.
const IN_MEMORY: &str = "DefaultInMemorySubscriptionManager";

/// The dialect of a filter that is an XPath; also where a message names none (WS-Eventing, section 2.1).
const XPATH: &str = "http://www.w3.org/TR/1999/REC-xpath-19991116";

struct Source(Arc<Inner>);

struct Inner {
    name: String,
    /// Namespace and name of the header block that has the topic.
    topic: Option<(String, String)>,
    written: Vec<Written>,
    /// Those that came by messages.
    subscribers: Arc<Subscribers>,
    zone: TimeZone,
}

/// A subscription of the configuration.
struct Written {
    id: String,
    address: String,
    endpoint: Arc<EndpointRef>,
    filter: Filter,
    expires: Option<Timestamp>,
}

#[derive(Default)]
struct Subscribers(Mutex<BTreeMap<String, Subscriber>>);

/// A subscription that came by a message.
#[derive(Clone)]
struct Subscriber {
    address: String,
    /// Header blocks for each event (`ReferenceParameters`).
    blocks: Option<Arc<Envelope>>,
    filter: Filter,
    expires: Option<Timestamp>,
    /// How many bytes are kept of it.
    size: usize,
}

#[derive(Clone)]
enum Filter {
    /// Every event.
    All,
    /// Events with this topic, or one below it.
    Topic(Arc<str>),
    /// Events of which this is true.
    XPath(Arc<Expression>),
}

impl Filter {
    fn text(&self) -> String {
        match self {
            Filter::All => String::new(),
            Filter::Topic(topic) => format!("topic {topic}"),
            Filter::XPath(expression) => format!("XPath {}", expression.source()),
        }
    }

    /// `given`: the topic of the event, for those who ask for topics only.
    fn matches(&self, context: &mut Context, topic: Option<&str>, given: bool) -> Result<bool, Fault> {
        match self {
            Filter::All => Ok(!given),
            Filter::Topic(wanted) => Ok(topic.is_some_and(|topic| is_below(topic.trim(), wanted.trim()))),
            Filter::XPath(_) if given => Ok(false),
            Filter::XPath(expression) => expression.boolean(context),
        }
    }
}

/// Whether a topic is one, or below it.
fn is_below(topic: &str, of: &str) -> bool {
    topic.strip_prefix(of).is_some_and(|rest| rest.is_empty() || of.ends_with('/') || rest.starts_with('/'))
}

/// Makes the event source of its configuration; `None` after a recorded error.
pub(crate) fn compile(
    source: &config::EventSource,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<dyn flow::events::EventSource>> {
    if source.manager.rsplit('.').next() != Some(IN_MEMORY) {
        let message = format!("the class `{}` of the event source is not executable here", source.manager);
        let label = format!("`org.apache.synapse.eventing.managers.{IN_MEMORY}` is built in");
        compiler.error("unsupported-artifact", message, source.manager.span, label);
        return None;
    }
    let property = |name: &str| {
        let mut properties = source.properties.iter();
        properties
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.trim().to_owned())
            .filter(|value| !value.is_empty())
    };
    for (name, _) in &source.properties {
        if !["topicHeaderName", "topicHeaderNS"].contains(&name.as_str()) {
            let message = format!("the property `{name}` of the subscription manager has no effect");
            compiler.warning(
                "ignored-parameter",
                message,
                source.manager.span,
                "expected topicHeaderName, topicHeaderNS",
            );
        }
    }
    let topic = property("topicHeaderName").map(|name| (property("topicHeaderNS").unwrap_or_default(), name));
    let zone = compiler.services.settings.time_zone.clone();
    let now = compiler.services.clock.now().wall;
    let mut written: Vec<Written> = Vec::new();
    for subscription in &source.subscriptions {
        if written.iter().any(|earlier| earlier.id == subscription.id.value) {
            let message = format!("two subscriptions have the id `{}`", subscription.id);
            compiler.error("duplicate-key", message, subscription.id.span, "again here");
        }
        let filter = match &subscription.filter {
            None => Filter::All,
            Some(key) if subscription.dialect.as_ref().is_some_and(|dialect| dialect.trim() == XPATH) => {
                Filter::XPath(Arc::new(compiler.expression_text(
                    &key.value,
                    key.span,
                    &subscription.scope,
                )?))
            }
            Some(key) => {
                if topic.is_none() {
                    let message = format!("the topic `{key}` matches no event");
                    let label = "the subscription manager has no property `topicHeaderName`: only `event` names topics";
                    compiler.warning("no-topic", message, key.span, label);
                }
                Filter::Topic(Arc::from(key.value.trim()))
            }
        };
        let expires = match &subscription.expires {
            None => None,
            Some(key) => match protocol::expires(&key.value, now, &zone) {
                Ok(at) => {
                    if at <= now {
                        let message = format!("the subscription `{}` has expired", subscription.id);
                        compiler.warning("never-due", message, key.span, "it gets no events");
                    }
                    Some(at)
                }
                Err(why) => {
                    let message = format!("`expires` cannot be `{}`", key.value.trim());
                    compiler.error("bad-value", message, key.span, why.reason);
                    None
                }
            },
        };
        let endpoint = compiler.endpoint_of(&subscription.endpoint)?;
        let address = match &*endpoint {
            EndpointRef::Known(reference) => reference.name().to_owned(),
            EndpointRef::Missing(key) => key.to_string(),
            EndpointRef::Dynamic(expression) => expression.source().to_owned(),
        };
        written.push(Written { id: subscription.id.value.clone(), address, endpoint, filter, expires });
    }
    let subscribers = compiler.services.states.get(compiler.artifact_identity());
    let inner = Inner { name: source.name.value.clone(), topic, written, subscribers, zone };
    Some(Arc::new(Source(Arc::new(inner))))
}

impl flow::events::EventSource for Source {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn event(&self, context: &mut Context, topic: Option<&str>) -> Result<Option<Split>, Fault> {
        self.0.event(context, topic)
    }

    fn subscriptions(&self) -> Vec<Subscription> {
        let written = self.0.written.iter().map(|subscription| Subscription {
            id: subscription.id.clone(),
            address: subscription.address.clone(),
            filter: subscription.filter.text(),
            expires: subscription.expires,
            written: true,
        });
        let mut subscriptions: Vec<_> = written.collect();
        let subscribers = lock(&self.0.subscribers.0);
        subscriptions.extend(subscribers.iter().map(|(id, subscriber)| Subscription {
            id: id.clone(),
            address: subscriber.address.clone(),
            filter: subscriber.filter.text(),
            expires: subscriber.expires,
            written: false,
        }));
        subscriptions
    }

    fn service(self: Arc<Self>) -> Box<dyn Mediator> {
        Box::new(Service(Arc::clone(&self.0)))
    }
}

/// The work that filters of subscribers may do for one event, so that nobody's filter takes the event from the others.
struct Work {
    each: u64,
    left: u64,
}

impl Work {
    fn of(context: &Context) -> Work {
        let nodes = context.payload.built_envelope().map_or(0, |envelope| envelope.document.node_count());
        let each = FILTER.saturating_add(FILTER_NODE.saturating_mul(nodes as u64));
        Work { each: each.min(FILTERS / 4), left: each.saturating_mul(8).min(FILTERS) }
    }

    /// What a filter says. It counts as work of the step too.
    ///
    /// # Errors
    /// The step has to end, or go on elsewhere.
    fn done(&mut self, filter: impl FnOnce() -> Result<bool, Fault>) -> Result<Result<bool, Fault>, Fault> {
        let units = u32::try_from(self.each.min(self.left)).unwrap_or(u32::MAX);
        let (result, used) = meter::inline(units, filter);
        self.left = self.left.saturating_sub(used.units);
        meter::spend(used.units)?;
        Ok(match used.stopped {
            Some(_) => Err(Fault::new("it is too much work for this event")),
            None => result,
        })
    }
}

/// Where one copy of an event goes.
enum Receiver {
    Written(Arc<EndpointRef>),
    Own(String, Option<Arc<Envelope>>),
}

impl Inner {
    /// The topic that a message names: in a header block, or in a transport header of the same name.
    fn topic_of(&self, context: &mut Context) -> Option<String> {
        let (namespace, name) = self.topic.as_ref()?;
        if let Ok(envelope) = context.envelope()
            && let Some(header) = envelope.header
            && let Some(block) = envelope
                .elements_of(header)
                .find(|&block| envelope.document.is_element(block, namespace, name))
        {
            return Some(envelope.document.string_value(block).trim().to_owned());
        }
        context.headers.get(name).map(|value| value.trim().to_owned())
    }

    fn event(&self, context: &mut Context, given: Option<&str>) -> Result<Option<Split>, Fault> {
        let now = context.services().clock.now().wall;
        let is_over = |expires: &Option<Timestamp>| expires.is_some_and(|at| at <= now);
        let topic = match given {
            Some(topic) => Some(topic.to_owned()),
            None => self.topic_of(context),
        };
        let mut receivers = Vec::new();
        for written in self.written.iter().filter(|written| !is_over(&written.expires)) {
            if written.filter.matches(context, topic.as_deref(), given.is_some())? {
                receivers.push(Receiver::Written(Arc::clone(&written.endpoint)));
            }
        }
        let subscribers: Vec<_> = {
            let mut table = lock(&self.subscribers.0);
            table.retain(|_, subscriber| !is_over(&subscriber.expires));
            table.iter().map(|(id, subscriber)| (id.clone(), subscriber.clone())).collect()
        };
        if given.is_none() && subscribers.iter().any(|(_, one)| matches!(one.filter, Filter::XPath(_))) {
            // Reading the body is no work of the filters. Those that cannot read it say so.
            let _ = context.envelope();
        }
        let (mut work, mut passed_over) = (Work::of(context), 0);
        for (id, subscriber) in subscribers {
            if work.left == 0 && matches!(subscriber.filter, Filter::XPath(_)) {
                passed_over += 1;
                continue;
            }
            let filter = || subscriber.filter.matches(context, topic.as_deref(), given.is_some());
            match work.done(filter)? {
                Ok(true) => receivers.push(Receiver::Own(subscriber.address, subscriber.blocks)),
                Ok(false) => {}
                // What one subscriber asked for does not keep events from the others.
                Err(fault) => {
                    tracing::warn!(source = self.name, subscription = id, "the filter fails: {fault}");
                }
            }
        }
        if passed_over > 0 {
            tracing::warn!(
                source = self.name,
                "{passed_over} subscribers get no event: the filters of those before were too much work"
            );
        }
        if receivers.is_empty() {
            return Ok(None);
        }
        let mut original = context.branch();
        let parts = receivers.into_iter().map(move |receiver| copy(&mut original, receiver));
        Ok(Some(Split { aside: true, ..Split::at_once(parts, true) }))
    }

    /// A subscription of its request.
    fn subscribe(&self, context: &mut Context) -> Result<Envelope, Trouble> {
        let now = context.services().clock.now().wall;
        let services = Arc::clone(context.services());
        let id = context.branch_without_payload().message_id();
        let request = protocol::subscription(context)?;
        let size = request.size();
        if size > LARGEST {
            return Err(Trouble::unable(format!(
                "the subscription has {size} bytes; its address, filter and reference parameters may have {LARGEST} together"
            )));
        }
        protocol::permitted(&request.address, &services.routes)?;
        let filter = match request.filter {
            None => Filter::All,
            Some(asked_filter) if asked_filter.dialect.as_deref().is_none_or(|dialect| dialect == XPATH) => {
                let compiled =
                    Expression::of_message(&asked_filter.text, &asked_filter.scope, &services.settings);
                Filter::XPath(Arc::new(compiled.map_err(|why| Trouble::filter(&why))?))
            }
            Some(asked_filter) => Filter::Topic(Arc::from(asked_filter.text.as_str())),
        };
        let expires = request.expires.map(|text| protocol::future(&text, now, &self.zone)).transpose()?;
        let blocks = request.blocks.map(Arc::new);
        let subscriber = Subscriber { address: request.address, blocks, filter, expires, size };
        let mut table = lock(&self.subscribers.0);
        table.retain(|_, subscriber| subscriber.expires.is_none_or(|at| at > now));
        if table.len() >= MOST {
            return Err(Trouble::unable(format!("there are {MOST} subscriptions already")));
        }
        if table.values().map(|subscriber| subscriber.size).sum::<usize>() + size > LARGEST_TOGETHER {
            let why = format!("the subscriptions have {LARGEST_TOGETHER} bytes together already");
            return Err(Trouble::unable(why));
        }
        table.insert(id.clone(), subscriber);
        drop(table);
        Ok(protocol::subscribed(context, &self.name, &id, expires))
    }

    /// One that is there, changed by `change`; `None` takes it out.
    fn change<T>(
        &self,
        context: &mut Context,
        change: impl FnOnce(Subscriber) -> (T, Option<Subscriber>),
    ) -> Result<T, Trouble> {
        let now = context.services().clock.now().wall;
        let id = protocol::identifier(context)?;
        let mut table = lock(&self.subscribers.0);
        let found = table.remove(&id).filter(|subscriber| subscriber.expires.is_none_or(|at| at > now));
        let found = found.ok_or_else(|| Trouble::unknown(&id))?;
        let (result, kept) = change(found);
        if let Some(kept) = kept {
            table.insert(id, kept);
        }
        Ok(result)
    }

    fn answer(&self, request: Request, context: &mut Context) -> Result<Envelope, Trouble> {
        let now = context.services().clock.now().wall;
        match request {
            Request::Subscribe => self.subscribe(context),
            Request::Unsubscribe => {
                self.change(context, |_| ((), None))?;
                Ok(protocol::answer(context, "Unsubscribe", None))
            }
            Request::Renew => {
                let text = protocol::asked_expiry(context)?;
                let expires = text.map(|text| protocol::future(&text, now, &self.zone)).transpose()?;
                self.change(context, |subscriber| ((), Some(Subscriber { expires, ..subscriber })))?;
                Ok(protocol::answer(context, "Renew", expires))
            }
            Request::GetStatus => {
                let expires = self.change(context, |subscriber| (subscriber.expires, Some(subscriber)))?;
                Ok(protocol::answer(context, "GetStatus", expires))
            }
        }
    }
}

/// A copy of the event on its way to one receiver.
fn copy(original: &mut Context, receiver: Receiver) -> Branch {
    let mut copy = original.branch();
    // It is a request of its own, whatever the flow has come to, and nothing waits for a response.
    copy.response = false;
    copy.properties.remove("RESPONSE");
    copy.properties.set("OUT_ONLY", Value::Boolean(true));
    copy.remove_axis2("REST_URL_POSTFIX");
    let destination = match receiver {
        Receiver::Written(endpoint) => Destination { reference: Some(endpoint), ..Destination::implicit() },
        Receiver::Own(address, blocks) => {
            copy.addressing.to = Some(address);
            if let Some(blocks) = blocks
                && let Some(from) = blocks.header
                && !copy.is_rest()
                && let Ok(envelope) = copy.envelope_mut()
            {
                let header = envelope.header_or_new();
                for block in blocks.elements_of(from) {
                    envelope.document.copy_from(header, &blocks.document, block);
                }
            }
            Destination::implicit()
        }
    };
    Branch { context: copy, target: BranchTarget::Endpoint(destination) }
}

/// The one step of the service.
struct Service(Arc<Inner>);

impl Mediator for Service {
    fn need(&self) -> Need {
        Need::Whole
    }

    fn reason(&self) -> String {
        "an event goes to several; a request of WS-Eventing is read".to_owned()
    }

    fn moves(&self) -> Moves {
        // A subscription is made once.
        Moves::Never
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        if let Some(request) = protocol::request(context)? {
            let (envelope, failed) = match self.0.answer(request, context) {
                Ok(envelope) => (envelope, false),
                Err(trouble) => (protocol::fault(context, &trouble), true),
            };
            context.payload.set_envelope(envelope);
            if failed {
                context.mark_fault();
            }
            context.addressing.to = None;
            context.response = true;
            return Ok(Flow::Respond);
        }
        if context.payload.is_empty() {
            let message =
                format!("the event source {} has nothing to publish: the message is empty", self.0.name);
            return Err(Fault { status: 400, ..Fault::new(message) });
        }
        Ok(match self.0.event(context, None)? {
            Some(parts) => Flow::Split(Split { continue_parent: false, ..parts }),
            None => Flow::Stop,
        })
    }
}

/// The time of the calendar, in a zone.
fn in_zone(at: Timestamp, zone: &TimeZone) -> Zoned {
    at.to_zoned(zone.clone())
}

/// The element of a message that is published alone, as a message of its own.
pub(crate) fn alone(context: &mut Context, node: xml::NodeId) -> Result<Box<Context>, Fault> {
    let envelope = context.envelope()?;
    let mut envelope_of_node = Envelope::empty(envelope.version);
    if envelope.document.kind(node) == NodeKind::Element {
        envelope_of_node.document.copy_from(envelope_of_node.body, &envelope.document, node);
    }
    let mut copy = context.branch_without_payload();
    copy.payload.set_envelope(envelope_of_node);
    Ok(copy)
}

#[cfg(test)]
mod tests;
