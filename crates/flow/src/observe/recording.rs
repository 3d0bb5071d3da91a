//! The trace of one message while it is made, and as JSON.

use super::snapshot::{Change, Shown, Snapshot};
use crate::runtime::context::Context;
use crate::state::lock;
use message::Body;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};
use transport::Response;

/// Bytes of one trace; what steps do beyond that is not kept.
const BYTES: usize = 256 * 1024;
/// Steps of one trace.
const EVENTS: usize = 2000;

/// The trace of one message.
#[derive(Debug)]
pub struct Recording {
    /// Its number among the traced messages of the process, from 1.
    pub number: u64,
    /// The proxy service, the API, or `main`.
    pub service: String,
    /// The id of the message.
    pub message_id: String,
    /// Method, target and client.
    pub request: String,
    /// When the flow began.
    pub began: SystemTime,
    pub(super) shown: usize,
    started: Instant,
    trace: Mutex<Trace>,
}

/// What is said of a trace in a list.
#[derive(Clone, Debug)]
pub struct Summary {
    /// How many steps have run.
    pub steps: usize,
    /// The status that the client got; `None`: none yet.
    pub status: Option<u16>,
    /// How long it took, or has taken.
    pub took: Duration,
    /// The message is on its way, or a copy of it.
    pub running: bool,
    /// A step failed.
    pub failed: bool,
}

#[derive(Debug, Default)]
pub(super) struct Trace {
    /// The message when the flow began.
    pub(super) first: Option<(Vec<Change>, Shown)>,
    pub(super) events: Vec<Event>,
    pub(super) bytes: usize,
    pub(super) omitted: usize,
    /// Steps that have begun, by the number of the copy: a step that runs others stands before them.
    pub(super) running: Vec<(u64, Stage, Instant)>,
    pub(super) answer: Option<RecordedResponse>,
    pub(super) ended: Option<Duration>,
    /// The copies by their numbers, in the order in which they were seen, the message itself first.
    copies: HashMap<u64, usize>,
    /// What each copy whose flow goes on was after its last step, or before the one that runs; none once the trace is full.
    last: HashMap<u64, Last>,
}

/// What a copy was when it was last looked at.
#[derive(Debug)]
struct Last {
    seen: Snapshot,
    /// Nothing happens to it before its next step.
    settled: bool,
}

/// Where a step stands.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    /// The list that it is in.
    pub(super) list: String,
    /// `file:line:column`.
    pub(super) place: String,
    pub(super) name: &'static str,
}

/// An attempt at an endpoint.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) endpoint: String,
    pub(super) request: String,
    /// The status, or why there is none.
    pub(super) result: String,
    pub(super) answered: bool,
    pub(super) took: Duration,
}

/// What happened, and what the message was afterwards.
#[derive(Debug)]
pub(super) struct Event {
    /// 0 is the message itself, others are copies of it.
    pub(super) copy: usize,
    /// How many steps that run others it is inside of.
    pub(super) depth: usize,
    /// Since the flow began.
    pub(super) at: Duration,
    pub(super) took: Duration,
    pub(super) what: Entry,
    pub(super) changes: Vec<Change>,
    /// Before and after, where it changed.
    pub(super) payload: Option<(Shown, Shown)>,
}

#[derive(Debug)]
pub(super) enum Entry {
    Step { stage: Stage, outcome: String },
    Attempt(Attempt),
}

/// What the client got.
#[derive(Debug)]
pub(super) struct RecordedResponse {
    pub(super) at: Duration,
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) payload: Shown,
}

impl Recording {
    pub(super) fn new(number: u64, service: String, context: &mut Context, shown: usize) -> Recording {
        let inbound = &context.inbound;
        let request = format!("{} {}", inbound.method.as_str(), inbound.target);
        Recording {
            number,
            service,
            message_id: context.message_id(),
            request: format!("{} from {}", message::redact::text(&request), inbound.peer),
            began: SystemTime::now(),
            shown,
            started: Instant::now(),
            trace: Mutex::default(),
        }
    }

    /// The message as it is now is what came, as far as it is here.
    pub(super) fn came(&self, context: &mut Context) {
        let now = Snapshot::of(context, self.shown);
        lock(&self.trace).begin(&now);
    }

    pub(super) fn before(&self, context: &mut Context, stage: Stage) {
        {
            let mut trace = lock(&self.trace);
            let settled = trace.last.get(&context.number).is_some_and(|last| last.settled);
            if settled || trace.omitted > 0 {
                trace.running.push((context.number, stage, Instant::now()));
                return;
            }
        }
        let now = Snapshot::of(context, self.shown);
        let mut trace = lock(&self.trace);
        if trace.copies.is_empty() {
            // The body was waited for meanwhile.
            trace.begin(&now);
        }
        // What changed between two steps is the answer of an endpoint.
        if let Some(last) = trace.last.get(&context.number) {
            let (changes, payload) = difference(&last.seen, &now);
            if (!changes.is_empty() || payload.is_some())
                && let Some(event) = trace.attempt_of(context.number)
            {
                let size = bytes(&changes, payload.as_ref());
                event.changes.extend(changes);
                event.payload = payload.or(event.payload.take());
                trace.bytes += size;
            }
        }
        trace.copy(context.number);
        if trace.omitted == 0 {
            trace.last.insert(context.number, Last { seen: now, settled: false });
        }
        trace.running.push((context.number, stage, Instant::now()));
    }

    /// What the message is now, unless the trace is full and would not show it.
    fn snapshot(&self, context: &mut Context) -> Option<Snapshot> {
        let full = lock(&self.trace).omitted > 0;
        (!full).then(|| Snapshot::of(context, self.shown))
    }

    /// The step that runs on the message of this number has ended; `context`: the message that goes on, if any, and whether its next
    /// step is what happens to it next.
    pub(super) fn after(&self, number: u64, context: Option<(&mut Context, bool)>, outcome: String) {
        let now = context.and_then(|(context, settled)| {
            let seen = self.snapshot(context)?;
            Some((context.number, Last { seen, settled: settled && !context.payload.is_unread() }))
        });
        let mut trace = lock(&self.trace);
        let Some(at) = trace.running.iter().rposition(|(running, ..)| *running == number) else {
            return;
        };
        let (number, stage, began) = trace.running.remove(at);
        let depth = trace.running.iter().filter(|(running, ..)| *running == number).count();
        let last = trace.last.remove(&number);
        let (changes, payload) = match (&last, &now) {
            (Some(last), Some((_, now))) => difference(&last.seen, &now.seen),
            _ => (Vec::new(), None),
        };
        if let Some((number, now)) = now {
            trace.last.insert(number, now);
        }
        if trace.omitted > 0 {
            trace.omitted += 1;
            return;
        }
        let event = Event {
            copy: trace.copy(number),
            depth,
            at: began.saturating_duration_since(self.started),
            took: began.elapsed(),
            what: Entry::Step { stage, outcome },
            changes,
            payload,
        };
        trace.add(event);
    }

    /// The flow of the message of this number has ended.
    pub(super) fn left(&self, number: u64) {
        lock(&self.trace).last.remove(&number);
    }

    pub(super) fn attempted(&self, number: u64, attempt: Attempt) {
        let mut trace = lock(&self.trace);
        if trace.omitted > 0 {
            trace.omitted += 1;
            return;
        }
        let event = Event {
            copy: trace.copy(number),
            depth: trace.running.iter().filter(|(running, ..)| *running == number).count(),
            at: self.started.elapsed().saturating_sub(attempt.took),
            took: attempt.took,
            what: Entry::Attempt(attempt),
            changes: Vec::new(),
            payload: None,
        };
        trace.add(event);
    }

    pub(super) fn answered(&self, response: &Response) {
        let payload = match &response.body {
            Body::Empty => Shown::default(),
            Body::Bytes(bytes) => Shown::of(bytes, Some(bytes.len() as u64), self.shown),
            Body::Stream(stream) => {
                let here = stream.buffered();
                let total = stream.exact_len().or_else(|| stream.is_complete().then_some(here.len() as u64));
                Shown::of(here, total, self.shown)
            }
        };
        let headers = response.head.headers.iter().map(|(name, value)| {
            (name.to_owned(), message::redact::value(name, &String::from_utf8_lossy(value)).into_owned())
        });
        let answer = RecordedResponse {
            at: self.started.elapsed(),
            status: response.head.status,
            headers: headers.collect(),
            payload,
        };
        lock(&self.trace).answer = Some(answer);
    }

    /// Nothing of the message is on its way any more.
    pub(super) fn end(&self) {
        let mut trace = lock(&self.trace);
        trace.ended = Some(self.started.elapsed());
        trace.last = HashMap::new();
    }

    /// What is said of it in a list.
    pub fn summary(&self) -> Summary {
        let trace = lock(&self.trace);
        let is_failure = |event: &Event| match &event.what {
            Entry::Step { outcome, .. } => outcome.starts_with("fault "),
            Entry::Attempt(attempt) => !attempt.answered,
        };
        Summary {
            steps: trace.events.iter().filter(|event| matches!(event.what, Entry::Step { .. })).count(),
            status: trace.answer.as_ref().map(|response| response.status),
            took: trace.ended.unwrap_or_else(|| self.started.elapsed()),
            running: trace.ended.is_none(),
            failed: trace.events.iter().any(is_failure),
        }
    }

    /// The trace as text, for people.
    pub fn text(&self) -> String {
        super::text::render(self, &lock(&self.trace), self.started.elapsed())
    }

    /// The trace as JSON.
    pub fn json(&self) -> Value {
        let trace = lock(&self.trace);
        let milliseconds = |time: Duration| time.as_micros() as f64 / 1000.0;
        let event = |event: &Event| {
            let mut value = match &event.what {
                Entry::Step { stage, outcome } => json!({
                    "step": stage.name, "list": stage.list, "place": stage.place, "outcome": outcome,
                }),
                Entry::Attempt(attempt) => json!({
                    "endpoint": attempt.endpoint, "request": attempt.request, "result": attempt.result,
                }),
            };
            value["copy"] = event.copy.into();
            value["depth"] = event.depth.into();
            value["at_ms"] = milliseconds(event.at).into();
            value["took_ms"] = milliseconds(event.took).into();
            value["changes"] = event.changes.iter().map(Change::json).collect();
            if let Some((before, after)) = &event.payload {
                value["payload_before"] = before.json();
                value["payload_after"] = after.json();
            }
            value
        };
        let running = trace.running.iter().map(|(_, stage, began)| {
            json!({ "step": stage.name, "place": stage.place, "since_ms": milliseconds(began.elapsed()) })
        });
        let began = self.began.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        json!({
            "number": self.number,
            "service": self.service,
            "message_id": self.message_id,
            "request": self.request,
            "began_unix_ms": began.as_millis() as u64,
            "took_ms": milliseconds(trace.ended.unwrap_or_else(|| self.started.elapsed())),
            "state": if trace.ended.is_none() { "running" } else { "ended" },
            "first": trace.first.as_ref().map(|(values, payload)| json!({
                "values": values.iter().map(|one| json!({ "scope": one.scope, "name": one.name, "value": one.after })).collect::<Vec<_>>(),
                "payload": payload.json(),
            })),
            "events": trace.events.iter().map(event).collect::<Vec<_>>(),
            "omitted": trace.omitted,
            "running": running.collect::<Vec<_>>(),
            "answer": trace.answer.as_ref().map(|response| json!({
                "at_ms": milliseconds(response.at),
                "status": response.status,
                "headers": response.headers.iter().map(|(name, value)| json!([name, value])).collect::<Vec<_>>(),
                "payload": response.payload.json(),
            })),
        })
    }
}

impl Trace {
    fn begin(&mut self, now: &Snapshot) {
        let (values, payload) = (now.all(), now.payload.clone());
        self.bytes = payload.text.len() + values.iter().map(Change::bytes).sum::<usize>();
        self.first = Some((values, payload));
    }

    /// The number of a copy in the trace.
    fn copy(&mut self, number: u64) -> usize {
        let next = self.copies.len();
        *self.copies.entry(number).or_insert(next)
    }

    /// The last event of a copy, if it is an attempt.
    fn attempt_of(&mut self, number: u64) -> Option<&mut Event> {
        let copy = *self.copies.get(&number)?;
        let last = self.events.iter_mut().rev().find(|event| event.copy == copy)?;
        matches!(last.what, Entry::Attempt(_)).then_some(last)
    }

    fn add(&mut self, event: Event) {
        let size = 256 + bytes(&event.changes, event.payload.as_ref());
        if self.events.len() >= EVENTS || self.bytes + size > BYTES {
            self.omitted += 1;
            self.last = HashMap::new();
            return;
        }
        self.bytes += size;
        self.events.push(event);
    }
}

fn bytes(changes: &[Change], payload: Option<&(Shown, Shown)>) -> usize {
    // What was before is shared with the event before.
    changes.iter().map(Change::bytes).sum::<usize>() + payload.map_or(0, |(_, after)| after.text.len())
}

fn difference(last: &Snapshot, now: &Snapshot) -> (Vec<Change>, Option<(Shown, Shown)>) {
    let payload = (last.payload != now.payload).then(|| (last.payload.clone(), now.payload.clone()));
    (last.changes(now), payload)
}
