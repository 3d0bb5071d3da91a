//! Sees messages in flight: traces of what each step did, a wire log of heads and bodies, and what processor time steps take.
//!
//! Who is observed is said by name: on the command line, by `trace="enable"` in the configuration, at the admin address. A
//! message that is not observed pays one load when its flow begins, and a look at a flag of its own for each step. One
//! that is observed carries a [`Watch`]; what it costs then is of no account.

mod profile;
mod recording;
mod snapshot;
mod text;
mod wire;

pub use profile::{Profile, Spent};
pub use recording::{Recording, Summary};

use crate::runtime::context::{Context, Owner};
use crate::runtime::endpoint::{Leaf, Outgoing};
use crate::runtime::fault::Fault;
use crate::runtime::mediator::Flow;
use crate::runtime::plan::Planned;
use crate::runtime::services::Services;
use crate::state::lock;
use message::{Headers, Method};
use profile::Timing;
use recording::{Attempt, Stage};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use transport::{Body, Response};

/// So many traced messages are kept.
pub const KEPT: usize = 100;

/// What was traced last in the process.
#[derive(Default)]
pub struct Recordings {
    kept: Mutex<VecDeque<Arc<Recording>>>,
    /// How many there were so far.
    count: AtomicU64,
}

impl Recordings {
    /// Those of the process.
    pub fn of(services: &Services) -> Arc<Recordings> {
        services.kept.get()
    }

    /// The newest first; those on their way among them.
    pub fn all(&self) -> Vec<Arc<Recording>> {
        lock(&self.kept).iter().rev().cloned().collect()
    }

    /// One of them by its number.
    pub fn get(&self, number: u64) -> Option<Arc<Recording>> {
        lock(&self.kept).iter().find(|recording| recording.number == number).cloned()
    }

    /// Forgets them.
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
    profile: Option<Arc<Profile>>,
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
    let name = context.owner_name().to_owned();
    // An API goes by its name with the version too, as it is listed.
    let full_name = match context.owner {
        Owner::Resource(api, _) => context.plan.apis[api].qualified_name().into_owned(),
        _ => name.clone(),
    };
    let names = [name.as_str(), full_name.as_str()];
    let marked = match context.owner {
        Owner::Main => false,
        Owner::Proxy(index) => context.plan.proxies[index].trace,
        Owner::Resource(api, _) => context.plan.apis[api].trace,
        Owner::Inbound(index) => context.plan.inbound_endpoints[index].trace,
    };
    let traced = marked || observers.is_traced(names);
    let (logged, wire) = (observers.is_logged(names), observers.is_wired(names));
    let profiled = observers.is_profiled(names);
    if context.progress.observed || !(traced || wire || profiled) {
        return;
    }
    watch(context, name, Wanted { traced, wire, logged, profiled });
    if wire {
        wire::request(context, observers.shown());
    }
}

/// A list with `trace="enable"` is entered by a message that is not observed yet.
#[cold]
pub(crate) fn entered(context: &mut Context) {
    let name = context.owner_name().to_owned();
    watch(context, name, Wanted { traced: true, ..Wanted::default() });
}

/// What is to be seen of a message.
#[derive(Clone, Copy, Default)]
#[allow(clippy::struct_excessive_bools)] // each can be wanted without the others
struct Wanted {
    traced: bool,
    wire: bool,
    logged: bool,
    profiled: bool,
}

fn watch(context: &mut Context, service: String, wanted: Wanted) {
    let profile = wanted.profiled.then(|| Profile::of(&context.services));
    if let Some(profile) = &profile {
        profile.begins();
    }
    let recording = wanted.traced.then(|| {
        let services = Arc::clone(&context.services);
        let recordings = Recordings::of(&services);
        let number = recordings.count.fetch_add(1, Relaxed) + 1;
        let recording = Arc::new(Recording::new(number, service, context, services.observers.shown()));
        recording.came(context);
        recordings.keep(&recording);
        recording
    });
    context.attach(Arc::new(Watch { recording, profile, wire: wanted.wire, logged: wanted.logged }));
    context.progress.observed = true;
}

fn recording(context: &Context) -> Option<Arc<Recording>> {
    context.attached::<Watch>()?.recording.clone()
}

/// A step that runs on an observed message. It may take the message away, or put another one in its place.
pub(crate) struct Seen {
    recording: Option<Arc<Recording>>,
    timing: Option<Timing>,
    /// Of the message that it began with.
    number: u64,
}

/// A step of an observed message is about to run.
#[cold]
pub(crate) fn before<'a>(
    context: &'a mut Context,
    planned: &'a Planned,
) -> std::pin::Pin<Box<dyn Future<Output = Option<Box<Seen>>> + Send + 'a>> {
    Box::pin(async move {
        let watch = context.attached::<Watch>()?;
        let (recording, profile) = (watch.recording.clone(), watch.profile.clone());
        if recording.is_none() && profile.is_none() {
            return None;
        }
        if let Some(recording) = &recording {
            snapshot::arrive(context, recording.shown).await;
            let list = context.frames.last().map(|frame| context.plan.list(frame.list).label.clone());
            let place = context.plan.place(planned.span);
            recording.before(context, Stage { list: list.unwrap_or_default(), place, name: planned.name });
        }
        let timing = profile.and_then(|profile| Timing::begin(profile, context));
        if let Some(timing) = &timing {
            timing.goes_on();
        }
        Some(Box::new(Seen { recording, timing, number: context.number }))
    })
}

/// A part of an observed step that waits: only what it does counts.
pub(crate) async fn timed<T>(
    seen: &Seen,
    future: std::pin::Pin<Box<dyn Future<Output = T> + Send + '_>>,
) -> T {
    match &seen.timing {
        Some(timing) => {
            timing.waits();
            profile::timed(timing, future).await
        }
        None => future.await,
    }
}

/// The flow of a message has ended, and with it what its trace compares with.
#[cold]
pub(crate) fn left(context: &Context) {
    if let Some(recording) = recording(context) {
        recording.left(context.number);
    }
}

/// It has run.
#[cold]
pub(crate) fn after(seen: &Seen, planned: &Planned, context: &mut Context, result: &Result<Flow, Fault>) {
    if let Some(timing) = &seen.timing {
        timing.ends(context, planned);
    }
    let Some(seen_by) = &seen.recording else { return };
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
        Ok(Flow::Enqueue(_)) => "queues a copy".to_owned(),
        Ok(Flow::Detach) => "goes on without the client".to_owned(),
        Err(fault) => format!("fault {}: {}", fault.code, fault.message),
    };
    // One that waits in an aggregate is not here any more.
    let settled = matches!(result, Ok(Flow::Next | Flow::Enter(_) | Flow::EnterWith(..)));
    let here = recording(context).map(|_| (context, settled));
    seen_by.after(seen.number, here, outcome);
}

/// An attempt to send a message to an endpoint, while it is observed.
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
        || observers.is_on() && observers.is_wired([leaf.name()]);
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
            shown: observers.shown(),
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
            shown: context.services.observers.shown(),
        };
        let line = format!("HTTP/1.1 {} {}", response.head.status, response.head.reason);
        tell.head("to client", &line, &response.head.headers);
        tell.body("to client", &mut response.body);
    }
}
