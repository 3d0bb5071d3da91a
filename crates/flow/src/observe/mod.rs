//! Sees messages in flight: traces of what each step did, and a wire log of heads and bodies.
//!
//! Who is observed is said by name: on the command line, by `trace="enable"` in the configuration, at the admin address. A
//! message that nobody observes pays one load when its flow begins, and a look at a flag of its own for each step. One
//! that is observed carries a [`Watch`]; what it costs then is of no account.

mod recording;
mod snapshot;
mod text;
mod wire;

pub use recording::{Recording, Summary};

use crate::context::{Context, Owner};
use crate::endpoint::{Leaf, Outgoing};
use crate::fault::Fault;
use crate::lock;
use crate::mediator::Flow;
use crate::plan::Planned;
use message::{Headers, Method};
use recording::{Attempt, Stage};
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use transport::{Body, Response};

/// So many traced messages are kept.
pub const KEPT: usize = 100;

/// Stands for all services.
pub const ALL: &str = "*";

/// Bytes of a payload that are shown, if nothing else is said.
const BODY: usize = 8 * 1024;

/// Who is observed, and what was seen.
pub struct Observers {
    /// Anything at all is observed by name.
    on: AtomicBool,
    names: Mutex<Names>,
    kept: Mutex<VecDeque<Arc<Recording>>>,
    next: AtomicU64,
    body: AtomicUsize,
}

#[derive(Default)]
struct Names {
    traced: BTreeSet<String>,
    /// Those of the traced ones whose messages go to the log as well.
    logged: BTreeSet<String>,
    wired: BTreeSet<String>,
}

impl Names {
    fn has(names: &BTreeSet<String>, name: &str) -> bool {
        names.contains(name) || names.contains(ALL)
    }
}

impl Default for Observers {
    fn default() -> Observers {
        Observers {
            on: AtomicBool::new(false),
            names: Mutex::default(),
            kept: Mutex::default(),
            next: AtomicU64::new(1),
            body: AtomicUsize::new(BODY),
        }
    }
}

impl Observers {
    /// Whether anything is observed by name.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Relaxed)
    }

    /// Traces the messages of a service (a proxy service, an API, `main`, or [`ALL`]) from now on, or no longer.
    pub fn trace(&self, service: &str, on: bool) {
        self.change(service, on, |names| &mut names.traced);
        if !on {
            self.change(service, on, |names| &mut names.logged);
        }
    }

    /// Traces the messages of a service and writes each to the log when it has ended.
    pub fn trace_to_log(&self, service: &str) {
        self.trace(service, true);
        self.change(service, true, |names| &mut names.logged);
    }

    /// Logs heads and bodies of a service's messages, and of the requests it sends, from now on, or no longer. An endpoint
    /// that is called so counts, too.
    pub fn wire(&self, name: &str, on: bool) {
        self.change(name, on, |names| &mut names.wired);
    }

    fn change(&self, name: &str, on: bool, which: impl Fn(&mut Names) -> &mut BTreeSet<String>) {
        let mut names = lock(&self.names);
        match on {
            true => which(&mut names).insert(name.to_owned()),
            false => which(&mut names).remove(name),
        };
        self.on.store(!names.traced.is_empty() || !names.wired.is_empty(), Relaxed);
    }

    /// Whose messages are traced by name.
    pub fn traced(&self) -> Vec<String> {
        lock(&self.names).traced.iter().cloned().collect()
    }

    /// For whom the wire log is on.
    pub fn wired(&self) -> Vec<String> {
        lock(&self.names).wired.iter().cloned().collect()
    }

    /// Shows so many bytes of a payload. Default 8 KiB.
    pub fn show(&self, bytes: usize) {
        self.body.store(bytes, Relaxed);
    }

    /// What was traced last, the newest first; those on their way among them.
    pub fn recordings(&self) -> Vec<Arc<Recording>> {
        lock(&self.kept).iter().rev().cloned().collect()
    }

    /// One of them by its number.
    pub fn recording(&self, number: u64) -> Option<Arc<Recording>> {
        lock(&self.kept).iter().find(|recording| recording.number == number).cloned()
    }

    /// Forgets what was traced.
    pub fn forget(&self) {
        lock(&self.kept).clear();
    }

    fn keep(&self, recording: &Arc<Recording>) {
        let mut kept = lock(&self.kept);
        while kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back(Arc::clone(recording));
    }
}

/// What an observed message and its copies carry.
struct Watch {
    recording: Option<Arc<Recording>>,
    wire: bool,
    /// The log gets the recording at its end.
    logged: bool,
}

impl Drop for Watch {
    /// The last copy of the message has gone.
    fn drop(&mut self) {
        let Some(recording) = &self.recording else { return };
        recording.end();
        if self.logged {
            tracing::info!(
                target: "busbar::trace",
                message_id = recording.message_id,
                service = recording.service,
                structured = %recording.json(),
                rendered = recording.text(),
                "traced",
            );
        }
    }
}

/// The flow of a message begins: whether it is observed.
#[cold]
pub(crate) fn begin(context: &mut Context) {
    let services = Arc::clone(&context.services);
    let observers = &services.observers;
    let name = match context.owner {
        Owner::Main => "main".to_owned(),
        _ => context.owner_name().to_owned(),
    };
    let marked = match context.owner {
        Owner::Main => false,
        Owner::Proxy(index) => context.plan.proxies[index].trace,
        Owner::Resource(api, _) => context.plan.apis[api].trace,
    };
    let (traced, logged, wire) = {
        let names = lock(&observers.names);
        let logged = Names::has(&names.logged, &name);
        (marked || Names::has(&names.traced, &name), logged, Names::has(&names.wired, &name))
    };
    if context.progress.observed || !(traced || wire) {
        return;
    }
    watch(context, name, traced, wire, logged);
    if wire {
        wire::request(context, observers.body.load(Relaxed));
    }
}

/// A list with `trace="enable"` is entered by a message that nobody observes yet.
#[cold]
pub(crate) fn entered(context: &mut Context) {
    let name = context.owner_name().to_owned();
    watch(context, name, true, false, false);
}

fn watch(context: &mut Context, service: String, traced: bool, wire: bool, logged: bool) {
    let recording = traced.then(|| {
        let services = Arc::clone(&context.services);
        let observers = &services.observers;
        let number = observers.next.fetch_add(1, Relaxed);
        let recording = Arc::new(Recording::new(number, service, context, observers.body.load(Relaxed)));
        recording.came(context);
        observers.keep(&recording);
        recording
    });
    context.attach(Arc::new(Watch { recording, wire, logged }));
    context.progress.observed = true;
}

fn recording(context: &Context) -> Option<Arc<Recording>> {
    context.attached::<Watch>()?.recording.clone()
}

/// A step of an observed message is about to run.
#[cold]
pub(crate) fn before<'a>(
    context: &'a mut Context,
    planned: &'a Planned,
) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
    Box::pin(async move {
        let Some(recording) = recording(context) else { return };
        snapshot::arrive(context, recording.shown).await;
        let list = context.frames.last().map(|frame| context.plan.list(frame.list).label.clone());
        let place = context.plan.place(planned.span);
        recording.before(context, Stage { list: list.unwrap_or_default(), place, name: planned.name });
    })
}

/// It has run.
#[cold]
pub(crate) fn after(context: &mut Context, result: &Result<Flow, Fault>) {
    let Some(recording) = recording(context) else { return };
    let label = |list| context.plan.list(list).label.clone();
    let outcome = match result {
        Ok(Flow::Next | Flow::Mediate) => String::new(),
        Ok(Flow::Enter(list) | Flow::EnterWith(list, _)) => format!("enters {}", label(*list)),
        Ok(Flow::Stop) => "ends the flow".to_owned(),
        Ok(Flow::Respond) => "responds".to_owned(),
        Ok(Flow::Loopback) => "turns back".to_owned(),
        Ok(Flow::Send(_)) => "sends".to_owned(),
        Ok(Flow::Call(_)) => "calls".to_owned(),
        Ok(Flow::Split(_)) => "splits".to_owned(),
        Ok(Flow::Detach) => "goes on without the client".to_owned(),
        Err(fault) => format!("fault {}: {}", fault.code, fault.message),
    };
    recording.after(context, outcome);
}

/// An attempt to send a message to an endpoint, while somebody observes it.
pub(crate) struct Trial {
    recording: Option<Arc<Recording>>,
    wire: Option<wire::Tell>,
    began: Instant,
    endpoint: String,
    request: String,
    /// Of the message.
    number: u64,
}

/// A request goes out to an endpoint: what is to be told of it, if anything.
#[cold]
pub(crate) fn sending(
    context: &Context,
    leaf: &dyn Leaf,
    outgoing: &Outgoing,
    method: &Method,
    headers: &Headers,
    body: &mut Body,
) -> Option<Box<Trial>> {
    let watch = context.attached::<Watch>();
    let observers = &context.services.observers;
    let wire = watch.as_ref().is_some_and(|watch| watch.wire)
        || observers.is_on() && Names::has(&lock(&observers.names).wired, leaf.name());
    let recording = watch.and_then(|watch| watch.recording.clone());
    if recording.is_none() && !wire {
        return None;
    }
    let absolute = outgoing.request_target.contains("://");
    let host = if absolute { String::new() } else { outgoing.target.to_string() };
    let request = format!("{} {host}{}", method.as_str(), outgoing.request_target);
    let request = message::redact::text(&request).into_owned();
    let wire = wire.then(|| {
        let tell = wire::Tell {
            service: context.owner_name().to_owned(),
            endpoint: leaf.name().to_owned(),
            message_id: context.message_id(),
            shown: observers.body.load(Relaxed),
        };
        tell.head("to backend", &format!("{request} HTTP/1.1"), headers);
        tell.body("to backend", body);
        tell
    });
    let endpoint = leaf.name().to_owned();
    let number = context.number;
    Some(Box::new(Trial { recording, wire, began: Instant::now(), endpoint, request, number }))
}

impl Trial {
    /// The head of the answer is there.
    pub(crate) fn answered(&self, response: &mut Response) {
        if let Some(tell) = &self.wire {
            let line = format!("HTTP/1.1 {} {}", response.head.status, response.head.reason);
            tell.head("from backend", &line, &response.head.headers);
            tell.body("from backend", &mut response.body);
        }
        if let Some(recording) = &self.recording {
            recording.attempted(self.number, self.attempt(response.head.status.to_string(), true));
        }
    }

    /// There is no answer.
    pub(crate) fn failed(&self, fault: &Fault) {
        let why = format!("{} {}: {}", fault.code, fault.message, fault.detail.replace('\n', ", "));
        if let Some(tell) = &self.wire {
            tell.line("from backend", &format!("no answer: {why}"));
        }
        if let Some(recording) = &self.recording {
            recording.attempted(self.number, self.attempt(why, false));
        }
    }

    fn attempt(&self, result: String, answered: bool) -> Attempt {
        let (endpoint, request) = (self.endpoint.clone(), self.request.clone());
        Attempt { endpoint, request, result, answered, took: self.began.elapsed() }
    }
}

/// The client of an observed message gets this answer.
#[cold]
pub(crate) fn answered(context: &mut Context, response: &mut Response) {
    let Some(watch) = context.attached::<Watch>() else { return };
    if let Some(recording) = &watch.recording {
        recording.answered(response);
    }
    if watch.wire {
        let tell = wire::Tell {
            service: context.owner_name().to_owned(),
            endpoint: String::new(),
            message_id: context.message_id(),
            shown: context.services.observers.body.load(Relaxed),
        };
        let line = format!("HTTP/1.1 {} {}", response.head.status, response.head.reason);
        tell.head("to client", &line, &response.head.headers);
        tell.body("to client", &mut response.body);
    }
}
