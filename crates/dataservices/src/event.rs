//! Events that queries cause (`event-trigger`): an expression is true of the parameters of a query, or of its result.
//!
//! What triggers look at is collected while a request runs, and looked at when all of it is committed: a request that fails causes no
//! event. An event is a message of its own, as SOAP 1.1, to the subscriptions of its trigger and to those who have subscribed to its topic.
//! Nothing waits for what becomes of it.

use crate::fault::{Trouble, code};
use crate::output::escape;
use crate::plan::{Query, Service};
use crate::value::{Givens, RequestValue};
use config::{DataTrigger, Scope};
use flow::endpoint::Destination;
use flow::reference::EndpointRef;
use flow::{Branch, BranchTarget, Compiler, Context, Fault, Flow, Mediator, Need, Split};
use message::{Envelope, SoapVersion, Value};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use xml::{Document, NodeKind, ParseOptions};
use xpath::{CompileOptions, Expression, NamespaceResolver, Node};

/// Most events of one trigger that are on their way. Each holds a message for as long as a subscriber does not answer, and those of clients
/// need room too.
const MOST: usize = 256;

/// An event trigger.
pub(crate) struct Trigger {
    id: String,
    expression: Expression,
    /// Empty: none.
    topic: String,
    subscribers: Vec<Arc<EndpointRef>>,
    room: Arc<Semaphore>,
    /// Events that were dropped since there was room for the last one.
    dropped: AtomicU64,
}

impl Trigger {
    /// A place for an event; `None`: there is none, as a line in the log says.
    fn place(&self, context: &Context) -> Option<OwnedSemaphorePermit> {
        let message_id = context.message_id();
        match Arc::clone(&self.room).try_acquire_owned() {
            Ok(place) => {
                let dropped = self.dropped.swap(0, Relaxed);
                if dropped > 0 {
                    tracing::warn!(target: "busbar::dataservice", trigger = self.id, "{dropped} events were dropped");
                }
                Some(place)
            }
            Err(_) => {
                if self.dropped.fetch_add(1, Relaxed) == 0 {
                    let why = format!(
                        "{MOST} events are on their way to subscribers that do not answer: further ones are dropped"
                    );
                    tracing::warn!(target: "busbar::dataservice", %message_id, trigger = self.id, "{why}");
                }
                None
            }
        }
    }

    /// Compiles a trigger; `None` after a recorded error.
    pub fn compile(trigger: &DataTrigger, compiler: &mut Compiler<'_>) -> Option<Trigger> {
        struct Declared<'a>(&'a Scope);
        impl NamespaceResolver for Declared<'_> {
            fn namespace(&self, prefix: &str) -> Option<&str> {
                self.0.lookup(prefix)
            }
        }
        let options = CompileOptions { namespaces: &Declared(&trigger.scope), ..CompileOptions::default() };
        let expression = match Expression::compile(&trigger.expression.value, &options) {
            Ok(expression) => expression,
            Err(why) => {
                let message = format!("the expression of the event trigger `{}` is not valid", trigger.id);
                compiler.error("bad-expression", message, trigger.expression.span, why.to_string());
                return None;
            }
        };
        if trigger.topic.is_empty() && trigger.subscriptions.is_empty() {
            let message = format!("nobody gets the events of the trigger `{}`", trigger.id);
            let label = "expected a `target-topic` or `subscriptions`";
            compiler.warning("missing-element", message, trigger.id.span, label);
        }
        let mut subscribers = Vec::new();
        for subscription in &trigger.subscriptions {
            subscribers.push(compiler.endpoint_of(subscription)?);
        }
        Some(Trigger {
            id: trigger.id.value.clone(),
            expression,
            topic: trigger.topic.clone(),
            subscribers,
            room: Arc::new(Semaphore::new(MOST)),
            dropped: AtomicU64::new(0),
        })
    }
}

/// What a trigger is to look at.
struct Cause {
    trigger: usize,
    /// The id of the query.
    query: String,
    /// An element.
    xml: Arc<str>,
}

/// What the triggers of a request are to look at.
#[derive(Default)]
pub(crate) struct Causes(Mutex<(Vec<Cause>, usize)>);

impl Causes {
    /// Adds an element for a trigger to look at.
    ///
    /// # Errors
    /// There are more than `most` bytes of them.
    pub fn add(&self, trigger: usize, query: &str, xml: String, most: usize) -> Result<(), Trouble> {
        let mut causes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (causes, size) = &mut *causes;
        *size = size.saturating_add(xml.len());
        if *size > most {
            let message = format!("what the event triggers of a request look at has more than {most} bytes");
            return Err(Trouble::new(code::UNKNOWN, message));
        }
        causes.push(Cause { trigger, query: query.to_owned(), xml: xml.into() });
        Ok(())
    }
}

/// The parameters of a query as an element of its id, each an element of its name: what an input trigger looks at.
pub(crate) fn of_parameters(query: &Query, givens: &Givens) -> String {
    let element = message::json::valid_name(&query.id);
    let mut out = format!("<{element}>");
    for parameter in &query.parameters {
        let values = match givens.get(&parameter.name) {
            Some(RequestValue::One(value)) => std::slice::from_ref(value),
            Some(RequestValue::Many(values)) => values,
            None => &[],
        };
        for value in values {
            let name = message::json::valid_name(&parameter.written);
            out.push_str(&format!("<{name}>"));
            escape(value.as_deref().unwrap_or_default(), &mut out);
            out.push_str(&format!("</{name}>"));
        }
    }
    out.push_str(&format!("</{element}>"));
    out
}

/// The events of a request, on their way to those who get them; `None`: there are none.
///
/// # Errors
/// No compute thread was free, or it took too long to find out.
pub(crate) async fn publish(
    service: &Arc<Service>,
    causes: &Causes,
    context: &mut Context,
) -> Result<Option<Split>, Fault> {
    let (causes, _) = std::mem::take(&mut *causes.0.lock().unwrap_or_else(PoisonError::into_inner));
    if causes.is_empty() {
        return Ok(None);
    }
    let causes = Arc::new(causes);
    let (all, of) = (Arc::clone(&causes), Arc::clone(service));
    let true_of = flow::work_out_beside(context, move |context| {
        Ok(all.iter().map(|cause| is_true(&of.triggers[cause.trigger], cause, context)).collect::<Vec<_>>())
    });
    let true_of = true_of.await?;
    let mut branches: Vec<Branch> = Vec::new();
    for (cause, _) in causes.iter().zip(true_of).filter(|(_, is_true)| *is_true) {
        let trigger = &service.triggers[cause.trigger];
        let Some(place) = trigger.place(context) else { continue };
        let text = event(service, cause, context);
        let envelope =
            Envelope::wrap(text.clone().into_bytes().into(), SoapVersion::V11, &ParseOptions::trusted());
        let envelope = envelope.map_err(|why| Fault::new(format!("an event is not XML: {why}")))?;
        let mut message = context.inquiry();
        // The copies have it too.
        message.hold(Arc::new(place));
        message.payload.set_envelope(envelope);
        message.set_axis2("HTTP_METHOD", Value::from("POST"));
        message.properties.set("OUT_ONLY", Value::Boolean(true));
        if !trigger.topic.is_empty() {
            let splits = mediators::publish(context, &trigger.topic, &text, |_| Ok(message.branch()))?;
            branches.extend(splits.into_iter().flat_map(|split| split.parts));
        }
        for subscriber in &trigger.subscribers {
            let destination =
                Destination { reference: Some(Arc::clone(subscriber)), ..Destination::implicit() };
            branches.push(Branch { context: message.branch(), target: BranchTarget::Endpoint(destination) });
        }
    }
    if branches.is_empty() {
        return Ok(None);
    }
    Ok(Some(Split { aside: true, ..Split::at_once(branches.into_iter(), true) }))
}

/// Whether the expression of a trigger is true. One that cannot be evaluated is not, as a line in the log says.
fn is_true(trigger: &Trigger, cause: &Cause, context: &Context) -> bool {
    let limits = context.services().limits.xml.clone();
    let document =
        Document::parse(cause.xml.as_bytes().to_vec(), &ParseOptions { limits, ..ParseOptions::default() });
    let evaluated = document.map_err(|why| why.to_string()).and_then(|document| {
        let root = document.document_element().filter(|&node| document.kind(node) == NodeKind::Element);
        let at = root.map_or_else(
            || xpath::Context::root(&document),
            |node| xpath::Context::at(&document, Node::new(node)),
        );
        trigger.expression.evaluate_boolean(&at).map_err(|why| why.to_string())
    });
    evaluated.unwrap_or_else(|why| {
        let message_id = context.message_id();
        tracing::warn!(target: "busbar::dataservice", %message_id, trigger = trigger.id, query = cause.query, "the event trigger fails: {why}");
        false
    })
}

/// The message of an event, as WSO2 writes it.
fn event(service: &Service, cause: &Cause, context: &Context) -> String {
    let zone = context.services().settings.time_zone.clone();
    let time = context.services().clock.now().wall.to_zoned(zone);
    let mut out = String::from("<data-services-event><service-name>");
    escape(&service.name, &mut out);
    out.push_str("</service-name><query-id>");
    escape(&cause.query, &mut out);
    out.push_str("</query-id><time>");
    escape(&time.strftime("%a %b %d %H:%M:%S %Z %Y").to_string(), &mut out);
    out.push_str("</time><content>");
    out.push_str(&cause.xml);
    out.push_str("</content></data-services-event>");
    out
}

/// The step behind that of the service, where this has events: it responds.
pub(crate) struct Respond;

impl Mediator for Respond {
    fn need(&self) -> Need {
        Need::Nothing
    }

    fn reason(&self) -> String {
        "responds, while events are on their way".to_owned()
    }

    fn mediate(&self, _: &mut Context) -> Result<Flow, Fault> {
        Ok(Flow::Respond)
    }
}
