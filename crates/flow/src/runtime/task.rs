//! Tasks as they are once compiled, and how far they have come: `crate::task` runs them.

use super::mediator::ListId;
use super::plan::Plan;
use super::reference::SequenceRef;
use super::request::Client;
use super::scope::Outcome;
use super::services::Services;
use crate::state::activation::Activation;
use crate::state::lock;
use crate::state::metrics::Counters;
use bytes::Bytes;
use diagnostics::Span;
use jiff::Timestamp;
use message::{SoapVersion, Value, form};
use schedule::{Schedule, Trigger};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

/// A task of the plan.
pub struct Task {
    /// Its name.
    pub name: String,
    /// Its group, as written.
    pub group: Option<String>,
    /// Where it is written.
    pub span: Span,
    /// Its trigger, for people: `every 5s`, `cron 0 0 6 * * ? (Europe/Berlin)`.
    pub trigger_text: String,
    /// Whether it runs when it is due.
    pub activation: Arc<Activation>,
    /// A number for the whole definition.
    pub(crate) definition: u64,
    pub(crate) trigger: Trigger,
    /// A run may begin while the one before goes on.
    pub(crate) overlap: bool,
    pub(crate) injection: Injection,
    pub(crate) state: Arc<State>,
    pub(crate) agenda: Arc<Agenda>,
    pub(crate) counters: Arc<Counters>,
}

/// How far a task has come; it belongs to its identity.
#[derive(Default)]
pub(crate) struct State(pub(crate) Mutex<Progress>);

#[derive(Default)]
pub(crate) struct Progress {
    /// The definition that `schedule` follows.
    pub(crate) definition: u64,
    pub(crate) schedule: Option<Schedule>,
    /// It is not active.
    pub(crate) off: bool,
    /// How many runs were asked for, at once, that have not begun.
    pub(crate) asked: u32,
    pub(crate) running: usize,
    /// The run before had not ended when the last one was due.
    pub(crate) behind: bool,
    pub(crate) missed: u64,
    pub(crate) passed_over: u64,
    pub(crate) last: Option<Run>,
}

/// A run of a task.
#[derive(Clone, Debug)]
pub struct Run {
    /// When it began.
    pub began: Timestamp,
    /// The id of its message.
    pub message_id: String,
    /// How it ended, and after what time; `None`: it goes on, or could not begin.
    pub ended: Option<(Outcome, Duration)>,
    /// Why it could not begin.
    pub refused: Option<String>,
}

/// What is to be seen of a task.
#[derive(Clone, Debug)]
pub struct Status {
    /// Whether it may run.
    pub active: bool,
    /// When it is due next; `None`: never again.
    pub next: Option<Timestamp>,
    /// How often it ran by its trigger, since it began or its definition changed.
    pub runs: u64,
    /// Runs that go on.
    pub running: usize,
    /// Runs that did not happen because the process or the machine was not there in time.
    pub missed: u64,
    /// Runs that did not happen because the one before went on, or the bus was full.
    pub passed_over: u64,
    /// The last one.
    pub last: Option<Run>,
}

/// Wakes the loop of `crate::task`: a task was switched on or off.
#[derive(Default)]
pub(crate) struct Agenda(pub(crate) Notify);

impl Task {
    /// Switches it on or off. What is due while it is off is not made up for.
    pub fn switch(&self, on: bool) {
        self.activation.decide(on);
        self.agenda.0.notify_one();
    }

    /// Has it run once now, whatever its trigger says, also while it is off. `false`: its run before goes on or is about to begin,
    /// and its runs do not overlap.
    pub fn run_now(&self) -> bool {
        let mut progress = lock(&self.state.0);
        if !self.overlap && (progress.running > 0 || progress.asked > 0) {
            return false;
        }
        // Each of them has its run: whoever asks is told so.
        progress.asked = progress.asked.saturating_add(1);
        drop(progress);
        self.agenda.0.notify_one();
        true
    }

    /// The sequence that its messages go through; `None`: they go to a proxy service or to `main`.
    pub fn sequence(&self, plan: &Plan) -> Option<ListId> {
        self.injection.sequence(plan)
    }

    /// How it stands.
    pub fn status(&self, services: &Services) -> Status {
        let progress = lock(&self.state.0);
        let schedule = progress.schedule.as_ref().filter(|_| progress.definition == self.definition);
        Status {
            active: self.activation.is_on(),
            next: schedule.and_then(|schedule| schedule.next(services.clock.now())),
            runs: schedule.map_or(0, Schedule::runs),
            running: progress.running,
            missed: progress.missed,
            passed_over: progress.passed_over,
            last: progress.last.clone(),
        }
    }

    /// The plan with it comes into force.
    pub(crate) fn begins(&self) {
        self.activation.defined(true, self.definition);
    }
}

/// A message that is injected again and again.
pub(crate) struct Injection {
    pub(crate) target: Target,
    pub(crate) source: Source,
    pub(crate) format: Format,
    pub(crate) to: Option<String>,
    pub(crate) soap_action: Option<String>,
    /// What else is written: properties of the message.
    pub(crate) properties: Vec<(Arc<str>, Value)>,
}

pub(crate) enum Target {
    Main,
    Sequence(SequenceRef),
    Proxy(String),
}

pub(crate) enum Source {
    /// Written with the task.
    Message(TaskMessage),
    /// What this key of the registry, or local entry, has when the task runs.
    Key(String),
}

/// A message in its form.
#[derive(Clone)]
pub(crate) struct TaskMessage {
    pub(crate) content_type: String,
    pub(crate) client: Client,
    pub(crate) body: Bytes,
    /// With the format `get`: the children of the payload as a query.
    pub(crate) query: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Soap(SoapVersion),
    Pox,
    Get,
}

impl Injection {
    /// See [`Task::sequence`].
    pub(crate) fn sequence(&self, plan: &Plan) -> Option<ListId> {
        match &self.target {
            Target::Sequence(SequenceRef::Known(list)) => Some(*list),
            Target::Sequence(SequenceRef::Missing(key)) => plan.sequence(key),
            Target::Sequence(SequenceRef::Dynamic(_)) | Target::Main | Target::Proxy(_) => None,
        }
    }
}

impl TaskMessage {
    /// XML in the form that is wanted; JSON and text as they are.
    pub(crate) fn of(bytes: &[u8], format: Format, soap_action: Option<&str>) -> Result<TaskMessage, String> {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_start_matches('\u{feff}').trim();
        let plain = |content_type: &str| TaskMessage {
            content_type: content_type.to_owned(),
            client: Client::Rest,
            body: Bytes::copy_from_slice(text.as_bytes()),
            query: String::new(),
        };
        if !text.starts_with('<') {
            let is_json =
                text.starts_with(['{', '[']) && serde_json::from_str::<serde_json::Value>(text).is_ok();
            return Ok(plain(if is_json { "application/json" } else { "text/plain; charset=UTF-8" }));
        }
        // It is decoded, whatever its declaration says.
        let options = xml::ParseOptions { charset: Some("UTF-8".to_owned()), ..xml::ParseOptions::trusted() };
        let document = xml::Document::parse_str(text, &options);
        let document = document.map_err(|why| format!("the message is not XML: {why}"))?;
        let root = document.document_element().ok_or("the message is not XML: it has no element")?;
        let version = match format {
            Format::Soap(version) => version,
            Format::Pox => return Ok(plain("application/xml; charset=UTF-8")),
            Format::Get => {
                let query = form::from_xml(&document, root);
                return Ok(TaskMessage { query, ..plain("application/xml; charset=UTF-8") });
            }
        };
        let namespace = version.namespace();
        // What stands before it (a declaration) cannot stand inside of an element.
        let start = document.span(root).map_or(0, |span| span.start as usize);
        let element = text.get(start..).unwrap_or(text);
        let body = format!(
            "<soapenv:Envelope xmlns:soapenv=\"{namespace}\"><soapenv:Body>{element}</soapenv:Body></soapenv:Envelope>"
        );
        let action = match (version, soap_action) {
            (SoapVersion::V12, Some(action)) => format!("; action=\"{action}\""),
            _ => String::new(),
        };
        Ok(TaskMessage {
            content_type: format!("{}; charset=UTF-8{action}", version.media_type()),
            client: Client::Soap(version),
            body: Bytes::from(body),
            query: String::new(),
        })
    }
}
