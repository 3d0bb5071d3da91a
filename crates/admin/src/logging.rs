//! The log: one line per event, for people or as JSON.
//!
//! A failed message is one event of target `busbar::fault`; what the log mediator says has target `busbar::log`.

use crate::levels::{Levels, Loggers};
use crate::queue::{Limits, Queue};
use crate::time;
use crate::{Output, escape};
use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, reload};

/// The form of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// `2026-11-22T01:02:03.456Z ERROR busbar::fault message code=101503 service=Stock …`
    #[default]
    Text,
    /// `{"time":"2026-11-22T01:02:03.456Z","level":"ERROR","target":"busbar::fault","message":"…",…}`
    Json,
}

impl std::str::FromStr for Format {
    type Err = String;

    /// `text` or `json`.
    fn from_str(text: &str) -> Result<Format, String> {
        match text {
            "text" => Ok(Format::Text),
            "json" => Ok(Format::Json),
            other => Err(format!("log format `{other}`: expected text or json")),
        }
    }
}

/// The log while it is written. Nobody waits for it: lines are queued, and a thread writes them; see the queue. INFO and below
/// wait at most 10 ms for others. When this is dropped, what is queued is written, for which the process waits at most 2 s.
pub struct Logging {
    handle: Handle,
    lines: Lines,
}

/// The log as others see it.
#[derive(Clone)]
pub struct Handle {
    queue: Arc<Queue>,
    loggers: Loggers,
}

/// What may wait: some 15,000 lines of failed messages.
const LIMITS: Limits = Limits {
    bytes: 4 * 1024 * 1024,
    lines: 32 * 1024,
    collect: Duration::from_millis(10),
    report: Duration::from_secs(1),
    flush: Duration::from_secs(2),
};

/// Starts the log of this process.
///
/// `level` is a level (`info`) or a list of them by category (`info,busbar_transport=debug`); the environment variables
/// `BUSBAR_LOG` and, without that, `RUST_LOG` come before it. Where logging was started already, that stays as it is.
///
/// # Errors
/// The level is none, a category unknown, or the file cannot be opened: a sentence.
pub fn init(level: &str, format: Format, to: &Output) -> Result<Logging, String> {
    let (from, level) = from_environment().unwrap_or(("log.level", level.to_owned()));
    let levels: Levels = level.parse().map_err(|error| format!("{from} `{level}`: {error}"))?;
    start(levels, format, to)
}

/// The levels that the environment asks for, with the variable.
pub fn from_environment() -> Option<(&'static str, String)> {
    let set = |name: &'static str| Some((name, std::env::var(name).ok().filter(|value| !value.is_empty())?));
    ["BUSBAR_LOG", "RUST_LOG"].into_iter().find_map(set)
}

/// The log of this process where it is kept in memory, for those who show it themselves.
#[derive(Clone, Default)]
pub struct Kept(Arc<Mutex<Vec<u8>>>);

/// How many bytes are kept until somebody takes them; what comes behind is left out.
const KEPT: usize = 64 << 10;

impl Kept {
    /// Starts to keep warnings and errors. Where logging was started already, nothing is kept.
    pub fn start() -> Kept {
        let kept = Kept::default();
        let levels: Levels = "warn".parse().unwrap_or_default();
        let lines = Lines { format: Format::Text, colour: false, clock: SystemTime::now };
        let _ = subscriber(lines, kept.clone(), levels.targets()).try_init();
        kept
    }

    /// The lines since the last time, without their times.
    pub fn take(&self) -> Vec<String> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let text = String::from_utf8_lossy(&bytes);
        text.lines()
            .map(|line| line.split_once(' ').map_or(line, |(_, rest)| rest.trim()).to_owned())
            .collect()
    }
}

impl io::Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT {
            kept.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Kept {
    type Writer = Kept;

    fn make_writer(&'a self) -> Kept {
        self.clone()
    }
}

/// Starts the log of this process with these levels, see [`init`].
///
/// # Errors
/// The file cannot be opened: a sentence.
pub fn start(levels: Levels, format: Format, to: &Output) -> Result<Logging, String> {
    let colour = match to {
        Output::Stderr => io::stderr().is_terminal(),
        Output::Stdout => io::stdout().is_terminal(),
        Output::File(_) => false,
    } && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let lines = Lines { format, colour, clock: SystemTime::now };
    let lost = Box::new(move |count: u64, why: Option<&io::Error>| Some(lines.lost(count, why)));
    let queue = Arc::new(Queue::start("log", to, LIMITS, lost).map_err(|error| error.to_string())?);
    let (filter, changing) = reload::Layer::new(levels.targets());
    let loggers = Loggers::new(
        levels,
        Box::new(move |targets| {
            // An error means that the subscriber is gone, and with it the log.
            let _ = changing.reload(targets);
        }),
    );
    // An error means that logging was started already.
    let _ = subscriber(lines, Shared(Arc::clone(&queue)), filter).try_init();
    Ok(Logging { handle: Handle { queue, loggers }, lines })
}

fn subscriber<W, F>(lines: Lines, writer: W, filter: F) -> impl Subscriber + Send + Sync + 'static
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
    F: Layer<Registry> + Send + Sync + 'static,
{
    let layer = tracing_subscriber::fmt::layer()
        .event_format(lines)
        .with_writer(writer)
        // It would report them to stderr, and end the thread where that is gone.
        .log_internal_errors(false);
    tracing_subscriber::registry().with(filter).with(layer)
}

/// The time now as log lines have it.
pub fn now() -> String {
    let mut now = String::new();
    time::rfc3339(SystemTime::now(), &mut now);
    now
}

impl Logging {
    /// Opens the file again by its name, for SIGHUP after log rotation. On an error the old one stays in use.
    pub fn reopen(&self) {
        self.handle.queue.reopen();
    }

    /// Logs why the process ends, a line for each reason, whatever the levels are.
    pub fn fatal(&self, why: &str) {
        for reason in why.lines() {
            self.handle
                .queue
                .push(self.lines.plain(Level::ERROR, "busbar::start", reason, "").as_bytes(), true);
        }
    }

    /// The log as others see it.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }
}

impl Handle {
    /// Lines that were lost since the start.
    pub fn dropped(&self) -> u64 {
        self.queue.dropped()
    }

    /// The levels.
    pub fn loggers(&self) -> &Loggers {
        &self.loggers
    }
}

impl Drop for Logging {
    fn drop(&mut self) {
        self.handle.queue.close();
    }
}

/// The queue as the layer wants it.
struct Shared(Arc<Queue>);

/// For one event.
struct Lent<'a> {
    queue: &'a Queue,
    urgent: bool,
}

impl io::Write for Lent<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.queue.push(bytes, self.urgent);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Shared {
    type Writer = Lent<'a>;

    fn make_writer(&'a self) -> Lent<'a> {
        Lent { queue: &self.0, urgent: true }
    }

    fn make_writer_for(&'a self, event: &Metadata<'_>) -> Lent<'a> {
        Lent { queue: &self.0, urgent: *event.level() <= Level::WARN }
    }
}

/// Formats events.
#[derive(Clone, Copy)]
struct Lines {
    format: Format,
    colour: bool,
    clock: fn() -> SystemTime,
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut line = String::with_capacity(512);
        match self.format {
            Format::Text => self.text(event, &mut line),
            Format::Json => self.json(event, &mut line)?,
        }
        if !line.ends_with('\n') {
            line.push('\n');
        }
        out.write_str(&line)
    }
}

impl Lines {
    /// What each line begins with.
    fn head(&self, event: &Event<'_>, line: &mut String) {
        time::rfc3339((self.clock)(), line);
        let level = *event.metadata().level();
        if self.colour {
            let _ = write!(line, " \x1b[{}m{level:>5}\x1b[0m ", colour(level)); // a String takes everything
        } else {
            line.push_str(padded(level));
        }
        line.push_str(event.metadata().target());
    }

    fn text(&self, event: &Event<'_>, line: &mut String) {
        let rendered = event.metadata().fields().field(RENDERED).and_then(|_| text_of(event, RENDERED));
        if let Some(rendered) = rendered {
            line.push_str(&rendered);
            return;
        }
        self.head(event, line);
        let text = line.len();
        let mut fields = facts(event, |message| {
            if !message.is_empty() {
                line.push(' ');
                escape::controls(message, line);
            }
        });
        // Lines of the log mediator mostly have it.
        fields.retain(|(name, value)| {
            *name != "message_id" || value.as_str().is_none_or(|id| !contains(&line.as_bytes()[text..], id))
        });
        fields.sort_by_key(|(name, _)| rank(name));
        for (name, value) in &fields {
            let text = match value {
                serde_json::Value::String(text) => text,
                other => &other.to_string(),
            };
            if !text.is_empty() {
                line.push(' ');
                line.push_str(name);
                line.push('=');
                escape::value(text, line);
            }
        }
    }

    /// The line that says that others are lost.
    fn lost(&self, count: u64, why: Option<&io::Error>) -> String {
        let s = if count == 1 { " is" } else { "s are" };
        let cause = why.map_or_else(|| "nobody took them".to_owned(), ToString::to_string);
        self.plain(Level::WARN, "busbar", &format!("{count} line{s} missing here"), &cause)
    }

    /// A line that is no event: no level hides it.
    fn plain(&self, level: Level, target: &str, message: &str, cause: &str) -> String {
        let (mut line, mut now) = (String::new(), String::new());
        time::rfc3339((self.clock)(), &mut now);
        match self.format {
            Format::Text => {
                line = now + padded(level) + target + " ";
                escape::controls(message, &mut line);
                if !cause.is_empty() {
                    line.push_str(" cause=");
                    escape::value(cause, &mut line);
                }
            }
            Format::Json => {
                let mut event = serde_json::json!({
                    "time": now, "level": level.as_str(), "target": target, "message": message,
                });
                if !cause.is_empty() {
                    event["cause"] = cause.into();
                }
                line.push_str(&event.to_string());
            }
        }
        line.push('\n');
        line
    }

    fn json(&self, event: &Event<'_>, line: &mut String) -> fmt::Result {
        let (mut now, mut text) = (String::new(), String::new());
        time::rfc3339((self.clock)(), &mut now);
        let mut fields = facts(event, |message| text.push_str(message));
        fields.retain(|(name, _)| *name != RENDERED);
        let mut object = serde_json::Map::new();
        object.insert("time".to_owned(), now.into());
        object.insert("level".to_owned(), event.metadata().level().as_str().into());
        object.insert("target".to_owned(), event.metadata().target().into());
        object.insert("message".to_owned(), text.into());
        for (name, value) in fields {
            if value != "" {
                let value = match (name, &value) {
                    (STRUCTURED, serde_json::Value::String(text)) => {
                        serde_json::from_str(text).unwrap_or(value)
                    }
                    _ => value,
                };
                // The four above are never replaced.
                let name = if object.contains_key(name) { format!("{name}_") } else { name.to_owned() };
                object.insert(name, value);
            }
        }
        write!(line, "{}", serde_json::Value::Object(object))
    }
}

/// A field with what people read instead of the line where the format is text: more than one line, made for them. The event says the
/// same in its other fields.
const RENDERED: &str = "rendered";
/// A field whose text is JSON, and is no text where the format is JSON.
const STRUCTURED: &str = "structured";

/// Whether a text has an id in it. A searcher that is built for one line costs more than looking at each place of the first byte.
fn contains(text: &[u8], id: &str) -> bool {
    let id = id.as_bytes();
    id.first().is_none_or(|&first| memchr::memchr_iter(first, text).any(|at| text[at..].starts_with(id)))
}

/// The order of fields in a line: first what happened and where, last which message and why.
fn rank(name: &str) -> usize {
    const FIRST: [&str; 5] = ["code", "service", "place", "peer", "client"];
    const LAST: [&str; 2] = ["message_id", "cause"];
    let at = |list: &[&str]| list.iter().position(|field| *field == name);
    at(&FIRST).or_else(|| at(&LAST).map(|at| at + FIRST.len() + 1)).unwrap_or(FIRST.len())
}

/// ` {level:>5} `
fn padded(level: Level) -> &'static str {
    match level {
        Level::ERROR => " ERROR ",
        Level::WARN => "  WARN ",
        Level::INFO => "  INFO ",
        Level::DEBUG => " DEBUG ",
        Level::TRACE => " TRACE ",
    }
}

fn colour(level: Level) -> u8 {
    match level {
        Level::ERROR => 31,
        Level::WARN => 33,
        Level::INFO => 32,
        Level::DEBUG => 34,
        Level::TRACE => 35,
    }
}

/// The text of one field.
fn text_of(event: &Event<'_>, wanted: &str) -> Option<String> {
    let found = facts(event, |_| {}).into_iter().find(|(name, _)| *name == wanted);
    found.and_then(|(_, value)| value.as_str().map(str::to_owned)).filter(|text| !text.is_empty())
}

/// The fields of an event; its message, which comes before them, is given to `message`.
fn facts(event: &Event<'_>, message: impl FnMut(&str)) -> Vec<(&'static str, serde_json::Value)> {
    let mut facts = Facts { message, fields: Vec::new() };
    event.record(&mut facts);
    facts.fields
}

struct Facts<M> {
    message: M,
    fields: Vec<(&'static str, serde_json::Value)>,
}

impl<M: FnMut(&str)> Facts<M> {
    fn add(&mut self, field: &Field, value: impl Into<serde_json::Value>) {
        self.fields.push((field.name(), value.into()));
    }
}

impl<M: FnMut(&str)> Visit for Facts<M> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            (self.message)(value);
        } else {
            self.add(field, value);
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value);
    }

    /// With its whole chain of causes.
    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        let mut text = value.to_string();
        let mut cause = value.source();
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        self.add(field, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    /// What is logged while `run` runs.
    fn logged(format: Format, colour: bool, run: impl FnOnce()) -> String {
        let memory = Kept::default();
        let clock = || UNIX_EPOCH + Duration::from_millis(1_795_309_323_456);
        let lines = Lines { format, colour, clock };
        let levels: Levels = "info".parse().expect("a level");
        let subscriber = subscriber(lines, memory.clone(), levels.targets());
        tracing::subscriber::with_default(subscriber, run);
        let bytes = memory.0.lock().expect("nobody panicked").clone();
        String::from_utf8(bytes).expect("lines are text")
    }

    fn events() {
        // As flow/src/runtime/report.rs has it.
        tracing::error!(
            target: "busbar::fault",
            message_id = "urn:uuid:5f0c2c1e-0000-4000-8000-000000000001",
            service = "DirectProxy",
            place = "examples/round/proxy-services/DirectProxy.xml:12:7",
            peer = "http://localhost:9000",
            client = %"127.0.0.1:40000",
            code = %101_503,
            cause = "connection refused | os error 111",
            "Error connecting to the back end"
        );
        tracing::info!(target: "busbar::log", "To: /services/Stock, MESSAGE = two\nlines");
        tracing::info!(target: "busbar::log", message_id = "urn:uuid:7", service = "Stock", "MessageID: urn:uuid:7");
        tracing::warn!(target: "busbar::settings", peer = "", cut = 3, ratio = 0.5, ok = true, text = "say \"hi\"", "odd");
        let error = io::Error::other(fmt::Error);
        tracing::error!(target: "busbar::x", error = &error as &dyn std::error::Error, message_id = 1, code = 2);
        tracing::debug!("not shown");
    }

    #[test]
    fn text_is_readable_at_night() {
        insta::assert_snapshot!(logged(Format::Text, false, events), @r#"
        2026-11-22T01:02:03.456Z ERROR busbar::fault Error connecting to the back end code=101503 service=DirectProxy place=examples/round/proxy-services/DirectProxy.xml:12:7 peer=http://localhost:9000 client=127.0.0.1:40000 message_id=urn:uuid:5f0c2c1e-0000-4000-8000-000000000001 cause="connection refused | os error 111"
        2026-11-22T01:02:03.456Z  INFO busbar::log To: /services/Stock, MESSAGE = two\nlines
        2026-11-22T01:02:03.456Z  INFO busbar::log MessageID: urn:uuid:7 service=Stock
        2026-11-22T01:02:03.456Z  WARN busbar::settings odd cut=3 ratio=0.5 ok=true text="say \"hi\""
        2026-11-22T01:02:03.456Z ERROR busbar::x code=2 error="an error occurred when formatting an argument" message_id=1
        "#);
    }

    #[test]
    fn json_has_an_object_a_line() {
        insta::assert_snapshot!(logged(Format::Json, false, events), @r#"
        {"time":"2026-11-22T01:02:03.456Z","level":"ERROR","target":"busbar::fault","message":"Error connecting to the back end","message_id":"urn:uuid:5f0c2c1e-0000-4000-8000-000000000001","service":"DirectProxy","place":"examples/round/proxy-services/DirectProxy.xml:12:7","peer":"http://localhost:9000","client":"127.0.0.1:40000","code":"101503","cause":"connection refused | os error 111"}
        {"time":"2026-11-22T01:02:03.456Z","level":"INFO","target":"busbar::log","message":"To: /services/Stock, MESSAGE = two\nlines"}
        {"time":"2026-11-22T01:02:03.456Z","level":"INFO","target":"busbar::log","message":"MessageID: urn:uuid:7","message_id":"urn:uuid:7","service":"Stock"}
        {"time":"2026-11-22T01:02:03.456Z","level":"WARN","target":"busbar::settings","message":"odd","cut":3,"ratio":0.5,"ok":true,"text":"say \"hi\""}
        {"time":"2026-11-22T01:02:03.456Z","level":"ERROR","target":"busbar::x","message":"","error":"an error occurred when formatting an argument","message_id":1,"code":2}
        "#);
    }

    #[test]
    fn the_guide_shows_lines_as_they_are() {
        let guide = include_str!("../../../docs/operations.md");
        for format in [Format::Text, Format::Json] {
            let lines = logged(format, false, events);
            let fault = lines.lines().next().expect("there is a line");
            assert!(guide.contains(fault), "docs/operations.md shows another line than\n{fault}");
        }
    }

    #[test]
    fn colours_only_where_asked_for() {
        let line = logged(Format::Text, true, || tracing::warn!(target: "t", "m \u{1b}[31m"));
        assert_eq!(line, "2026-11-22T01:02:03.456Z \u{1b}[33m WARN\u{1b}[0m t m \\u{1b}[31m\n");
    }

    #[test]
    fn a_fault_in_a_flow_is_one_line() {
        let registry = flow::testing::registry(Vec::new());
        let synapse = config::SYNAPSE;
        let tested = flow::testing::configuration(
            &registry,
            &format!(
                r#"<definitions xmlns="{synapse}"><proxy name="Direct" transports="http"><target>
<endpoint><address uri="http://127.0.0.1:1/"/></endpoint></target></proxy></definitions>"#
            ),
        );
        let text = logged(Format::Text, false, || {
            tested.ask("POST", "/services/Direct", &[("Content-Type", "text/xml")], "<a/>");
        });
        let faults: Vec<_> = text.lines().filter(|line| line.contains(" ERROR busbar::fault ")).collect();
        assert_eq!(faults.len(), 1, "{text}");
        for part in
            [" code=101503 ", " service=Direct ", " peer=http://127.0.0.1:1 ", " message_id=urn:uuid:"]
        {
            assert!(faults[0].contains(part), "{part} in {text}");
        }
    }
}
