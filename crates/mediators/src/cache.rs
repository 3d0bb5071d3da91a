//! `cache`: answers that a backend gave are given again to the same question.
//!
//! One `cache` in the request path (the finder) looks for an answer; if there is none it leaves a note with the
//! message, by which the `cache collector="true"` in the response path keeps the backend's answer. Each finder has
//! answers of its own, and a bound on them; a reload keeps them.

mod protocol;
mod question;

use crate::steps::{Ends, Enters};
use config::{Element, Key};
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Family, Fault, Flow, Inside, KeptResponse,
    ListId, Mediator, Moves, Need, Page, SequenceRef, Step, Values, lock,
};
use message::Value;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use protocol::Protocol;
use question::{Digest, Question};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Most bytes that one finder keeps, whatever `maxSize` says.
const HELD: u64 = 64 << 20;

/// Longest `timeout`: a hundred years, in seconds.
const FOREVER: u64 = 100 * 365 * 86_400;

/// How long a message waits for the answer to the same question that another one is asking.
const PATIENCE: Duration = Duration::from_secs(10);

/// Statuses of answers that are no answer to the next one who asks: parts of one, and "you have it already".
const NEVER: [u16; 2] = [206, 304];

/// `<cache collector="false"><onCacheHit/>?<protocol/>?<implementation/>?</cache>`, `<cache collector="true"/>`
pub const DEFINITION: Definition = Definition {
    name: "cache",
    summary: "Answers from the cache; with `collector`, keeps the backend's answer there.",
    attributes: &[
        Attribute::optional(
            "collector",
            Values::OneOf(&["true", "false"]),
            "keeps the answer, in the response path",
        )
        .or("false"),
        Attribute::optional("timeout", Values::Integer, "how long an answer is kept, in seconds").or("5000"),
        Attribute::optional(
            "maxMessageSize",
            Values::Integer,
            "largest body that is kept, in bytes; -1: any",
        )
        .or("-1"),
        Attribute::optional("id", Values::Text, "of no effect: each cache has its own answers"),
        Attribute::optional("scope", Values::Text, "of no effect: each cache has its own answers"),
        Attribute::optional("hashGenerator", Values::Text, "as the element in `protocol`"),
    ],
    children: Children::Elements(&["onCacheHit", "protocol", "implementation"]),
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Quality,
    semantics: "One `cache` in the request path looks for an answer, and a `cache collector=\"true\"` in the response path keeps the answer of the
backend. They are connected through the message; all settings are those of the first.

Requests are the same for the cache if method, address, headers and body are: JSON and text byte by byte, XML by its content, however it is
written. `Date`, `User-Agent` and the headers of the connection do not count. `headersToIncludeInHash` names the only headers
that count, `headersToExcludeInHash` further ones that do not (`*`: none counts). With `DOMHASHGenerator` only the body counts.

On a hit, the message becomes the cached answer, with its status and headers, `onCacheHit` runs and the flow ends; without `onCacheHit` the client gets
the answer at once. Otherwise the message goes on, and equal requests wait for its answer, for 10 seconds at most.
The collector, which may also come after a `call`, keeps an answer for `timeout` seconds if its status matches
`responseCodes` (default: any but 206 and 304), the method is one of `methods` and its body is not larger than `maxMessageSize`. Each cache
has at most 64 MiB; the answer that was not used for the longest time is removed first. A reload keeps the answers, unless it changes the definition of the cache.

With `enableCacheControl` an answer with `no-store` or `private` is not kept. An answer with `no-cache`, or older than its `s-maxage` or `max-age`, is requested again, with
`If-None-Match` if it has an ETag; after a 304 the client gets the cached answer. `includeAgeHeader` adds `Age`.",
    inside: &[
        Inside::new(
            "onCacheHit?",
            "runs on a hit",
            &[Attribute::optional("sequence", Values::Key, "a sequence instead of the mediators inside")],
        )
        .with("mediator*"),
        Inside::new(
            "protocol?",
            "which requests are the same",
            &[Attribute::optional("type", Values::OneOf(&["HTTP", "http"]), "the only one").or("HTTP")],
        ),
        Inside::new("protocol/methods?", "methods that are cached, separated by commas; `*`: all", &[]).with("GET,POST"),
        Inside::new("protocol/headersToIncludeInHash?", "the headers that count", &[]).with("names"),
        Inside::new("protocol/headersToExcludeInHash?", "headers that do not count; `*`: none does", &[]).with("names"),
        Inside::new("protocol/responseCodes?", "a regular expression for the statuses that are kept", &[]).with("regex"),
        Inside::new("protocol/enableCacheControl?", "obey the `Cache-Control` of the answers", &[]).with("true|false"),
        Inside::new("protocol/includeAgeHeader?", "add `Age` to answers from the cache", &[]).with("true|false"),
        Inside::new("protocol/hashGenerator?", "HttpRequestHashGenerator, REQUESTHASHGenerator or DOMHASHGenerator", &[])
            .with("name"),
        Inside::new(
            "implementation?",
            "how much is kept",
            &[
                Attribute::optional("maxSize", Values::Integer, "most answers; -1: any number"),
                Attribute::optional("type", Values::Text, "of no effect: memory"),
            ],
        ),
    ],
    needs: &[
        (Need::Headers, "only methods without a body are looked for, and for the collector"),
        (Need::Whole, "otherwise"),
    ],
    refused: &[
        ("<cache collector=\"perhaps\"/>", "`collector` cannot be `perhaps`"),
        ("<cache timeout=\"-1\"/>", "the `timeout` of a cache cannot be negative"),
        ("<cache><protocol type=\"JMS\"/></cache>", "there is no cache for `JMS`"),
        ("<cache><protocol><methods>FETCH</methods></protocol></cache>", "the cache knows no method `FETCH`"),
        (
            "<cache><protocol><hashGenerator>com.example.Own</hashGenerator></protocol></cache>",
            "is a Java class and cannot run here",
        ),
        ("<cache><implementation maxSize=\"0\"/></cache>", "a cache of size 0 keeps nothing"),
    ],
    faults: &[
        (
            "0",
            "it looks for answers in the response path, it collects in the request path, or `onCacheHit` names a sequence that does not \
             exist",
        ),
        ("601000", "the body is larger than a flow may hold"),
    ],
};

struct Finder {
    core: Arc<Core>,
    on_hit: Option<ListId>,
}

struct Collector;

/// What finder and collector work with.
struct Core {
    protocol: Protocol,
    /// Most bytes of an answer.
    largest: Option<usize>,
    answers: Cache<Digest, Arc<CachedResponse>>,
    /// Questions that a message is asking the backend now.
    asking: Mutex<HashMap<Digest, Asking>>,
}

/// Of a message that asks the backend: it is told that the answer will not be kept, and closed when the answer is kept or the message has
/// ended without one.
type Asking = watch::Receiver<()>;

struct CachedResponse {
    answer: KeptResponse,
    since: Instant,
    /// How old it was when it came, in seconds.
    age: u64,
    control: Control,
}

/// What an answer says of its own keeping.
#[derive(Debug, Default, PartialEq, Eq)]
struct Control {
    no_store: bool,
    no_cache: bool,
    max_age: Option<u64>,
    etag: Option<String>,
}

/// The note that a finder leaves for the collector.
struct Collection {
    core: Arc<Core>,
    question: Question,
    /// What the backend was asked to confirm.
    stale: Option<Arc<CachedResponse>>,
    /// Others wait for this answer.
    first: Mutex<Option<First>>,
}

/// The first one that asks a question: who asks the same waits until this is gone.
struct First {
    core: Arc<Core>,
    key: Digest,
    open: watch::Sender<()>,
}

impl Drop for First {
    fn drop(&mut self) {
        lock(&self.core.asking).remove(&self.key);
    }
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    if crate::target::is_true(element, "collector") {
        return Some(Box::new(Collector));
    }
    let protocol = Protocol::compile(element, compiler)?;
    let number = |attribute: Option<&str>| attribute.map(|text| text.trim().parse::<i64>().unwrap_or(-1));
    let timeout = match number(element.attr("timeout")).map(u64::try_from) {
        None => 5000,
        Some(Ok(seconds)) => seconds.min(FOREVER),
        Some(Err(_)) => {
            let message = "the `timeout` of a cache cannot be negative";
            compiler.error("bad-value", message, element.start_tag(), "expected seconds");
            return None;
        }
    };
    let implementation = element.child("implementation");
    let most = number(implementation.and_then(|child| child.attr("maxSize")));
    if let (Some(implementation), Some(0)) = (implementation, most) {
        let message = "a cache of size 0 keeps nothing";
        compiler.error(
            "bad-value",
            message,
            implementation.start_tag(),
            "expected a number of answers, or -1",
        );
        return None;
    }
    let most = most.and_then(|most| u64::try_from(most).ok());
    // Written as before it has the answers that it had.
    let identity = compiler.identity(&element.to_xml_in_scope());
    let core = compiler.services.states.get_or_make(&identity, || Core {
        protocol,
        largest: number(element.attr("maxMessageSize")).and_then(|most| usize::try_from(most).ok()),
        answers: answers(Duration::from_secs(timeout), most),
        asking: Mutex::default(),
    });
    let on_hit = match element.child("onCacheHit") {
        Some(on_hit) => {
            let then = match on_hit.attribute("sequence").map(Key::of) {
                Some(key) => compiler.sequence_key(&key),
                None if on_hit.elements().next().is_some() => {
                    SequenceRef::Known(compiler.list(on_hit, "onCacheHit"))
                }
                None => return Some(Box::new(Finder { core, on_hit: None })),
            };
            let steps: Vec<Box<dyn Mediator>> = vec![Box::new(Enters(then)), Box::new(Ends)];
            Some(compiler.list_of(element, DEFINITION.name, "cache hit", steps))
        }
        None => None,
    };
    Some(Box::new(Finder { core, on_hit }))
}

/// Answers for so long, so many of them and not more than [`HELD`] bytes; the least recently used one goes.
fn answers(timeout: Duration, most: Option<u64>) -> Cache<Digest, Arc<CachedResponse>> {
    // One answer takes at least its share, so that both bounds are one.
    let share = HELD / most.unwrap_or(HELD).clamp(1, HELD);
    Cache::builder()
        .max_capacity(HELD)
        .weigher(move |_, kept: &Arc<CachedResponse>| {
            u32::try_from((kept.answer.size() as u64).saturating_add(256).max(share)).unwrap_or(u32::MAX)
        })
        .time_to_live(timeout)
        .eviction_policy(EvictionPolicy::lru())
        .build()
}

impl Mediator for Finder {
    fn moves(&self) -> Moves {
        Moves::Never
    }

    fn need(&self) -> Need {
        if self.core.protocol.reads_bodies() { Need::Whole } else { Need::Headers }
    }

    fn reason(&self) -> String {
        "looks for the answer to this message".to_owned()
    }

    fn lists(&self) -> Vec<(String, ListId)> {
        self.on_hit.map(|list| ("onCacheHit".to_owned(), list)).into_iter().collect()
    }

    fn run<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        if is_response(context) {
            return Step::Done(Err(Fault::new("a cache that looks for answers stands in the request path")));
        }
        let core = &self.core;
        context.detach::<Collection>();
        let method = context.axis2("HTTP_METHOD").map(|value| value.to_string()).unwrap_or_default();
        if !core.protocol.looks_for(&method) {
            return Step::Done(Ok(Flow::Next));
        }
        if core.protocol.questions.reads_body(&method) && context.payload.whole().is_err() {
            // What is in a file is not compared with anything: it is asked by itself.
            return Step::Done(Ok(Flow::Next));
        }
        if core.protocol.questions.reads_body(&method) && flow::is_large(context) {
            let core = Arc::clone(core);
            return Step::Wait(Box::pin(async move {
                let question =
                    flow::work_out(context, move |context| Ok(core.protocol.questions.ask(&method, context)));
                let Some(question) = question.await? else { return Ok(Flow::Next) };
                Ok(match self.look(question, context) {
                    Ok(flow) => flow,
                    Err(other) => self.wait(question, other, context).await,
                })
            }));
        }
        let Some(question) = core.protocol.questions.ask(&method, context) else {
            return Step::Done(Ok(Flow::Next));
        };
        match self.look(question, context) {
            Ok(flow) => Step::Done(Ok(flow)),
            Err(other) => Step::Wait(Box::pin(async move { Ok(self.wait(question, other, context).await) })),
        }
    }
}

impl Finder {
    /// Looks for the answer to a question, or is the first message that asks it; `Err`: another message is asking.
    fn look(&self, question: Question, context: &mut Context) -> Result<Flow, Asking> {
        if let Some(flow) = self.answer(question, context) {
            return Ok(flow);
        }
        let first = self.core.first(question.key)?;
        // The message that asked before may have got the answer since this one looked for it.
        Ok(self.answer(question, context).unwrap_or_else(|| {
            self.want(question, Some(first), context);
            Flow::Next
        }))
    }

    /// Waits for the answer to the question that another message is asking.
    async fn wait(&self, question: Question, mut other: Asking, context: &mut Context) -> Flow {
        let until = tokio::time::Instant::now() + PATIENCE;
        loop {
            match tokio::time::timeout_at(until, other.changed()).await {
                // It has ended without an answer, or there is one: one of those who wait is the next to ask.
                Ok(Err(_)) => match self.look(question, context) {
                    Ok(flow) => return flow,
                    Err(next) => other = next,
                },
                // It takes too long, or what comes is not kept: all who wait ask for themselves.
                Ok(Ok(())) | Err(_) => {
                    return self.answer(question, context).unwrap_or_else(|| {
                        self.want(question, None, context);
                        Flow::Next
                    });
                }
            }
        }
    }

    /// Makes the message the answer, where there is one that may be given.
    fn answer(&self, question: Question, context: &mut Context) -> Option<Flow> {
        let core = &self.core;
        let kept = core.answers.get(&question.key).filter(|kept| core.is_fresh(kept))?;
        kept.answer.give(context);
        if core.protocol.age {
            let age = kept.age.saturating_add(kept.since.elapsed().as_secs());
            context.headers.set("Age", age.to_string());
        }
        Some(match self.on_hit {
            Some(list) => Flow::Enter(list),
            None => Flow::Respond,
        })
    }

    /// Leaves the note for the collector.
    fn want(&self, question: Question, first: Option<First>, context: &mut Context) {
        let core = &self.core;
        let stale = core.answers.get(&question.key).filter(|kept| kept.control.etag.is_some());
        if let Some(etag) = stale.as_ref().and_then(|kept| kept.control.etag.as_ref()) {
            context.headers.set("If-None-Match", etag.as_bytes());
        }
        let first = Mutex::new(first);
        context.attach(Arc::new(Collection { core: Arc::clone(core), question, stale, first }));
    }
}

impl Core {
    /// `Err`: another message is asking that.
    fn first(self: &Arc<Core>, key: Digest) -> Result<First, Asking> {
        let mut asking = lock(&self.asking);
        match asking.get(&key) {
            Some(other) => Err(other.clone()),
            None => {
                let (open, closed) = watch::channel(());
                asking.insert(key, closed);
                Ok(First { core: Arc::clone(self), key, open })
            }
        }
    }

    /// Whether an answer may be given without asking the backend.
    fn is_fresh(&self, kept: &CachedResponse) -> bool {
        let age = kept.age.saturating_add(kept.since.elapsed().as_secs());
        !self.protocol.control
            || (!kept.control.no_cache && kept.control.max_age.is_none_or(|most| age < most))
    }

    fn keeps(&self, status: u16, control: &Control) -> bool {
        !NEVER.contains(&status)
            && self.protocol.codes.as_ref().is_none_or(|codes| codes.matches(&status.to_string()) == Ok(true))
            && !(self.protocol.control && control.no_store)
    }
}

fn is_response(context: &Context) -> bool {
    context.response || context.properties.get("RESPONSE").is_some_and(Value::is_true)
}

impl Mediator for Collector {
    fn moves(&self) -> Moves {
        Moves::Never
    }

    fn need(&self) -> Need {
        Need::Headers
    }

    fn reason(&self) -> String {
        "receives the answer where it is to be kept".to_owned()
    }

    fn run<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        // What an endpoint answered to a `call` is an answer too.
        if !is_response(context) && !context.is_answered() {
            return Step::Done(Err(Fault::new("a cache that collects answers stands in the response path")));
        }
        let Some(wanted) = context.detach::<Collection>() else {
            tracing::debug!(message_id = %context.message_id(), "no cache was asked for this answer");
            return Step::Done(Ok(Flow::Next));
        };
        let status =
            context.axis2("HTTP_SC").and_then(|value| u16::try_from(value.as_integer()?).ok()).unwrap_or(200);
        if let Some(kept) = wanted.stale.as_ref().filter(|_| status == 304) {
            wanted.confirmed(kept, context);
            return Step::Done(Ok(Flow::Next));
        }
        let control = Control::of(context);
        if !wanted.core.keeps(status, &control) {
            wanted.is_not_kept();
            return Step::Done(Ok(Flow::Next));
        }
        Step::Wait(Box::pin(async move {
            let kept = match wanted.receives(context).await? {
                true => wanted.keep(control, context).await?,
                false => false,
            };
            if !kept {
                wanted.is_not_kept();
            }
            Ok(Flow::Next)
        }))
    }
}

impl Collection {
    /// Receives the answer's body; `false`: it is too large to be kept, and goes on as it came.
    async fn receives(&self, context: &mut Context) -> Result<bool, Fault> {
        let mut limits = context.services().limits.clone();
        limits.held = limits.held.min(HELD as usize).min(self.core.largest.unwrap_or(usize::MAX));
        limits.spill = None;
        match context.payload.buffer(&limits).await {
            Ok(()) => {}
            Err(message::PayloadError::TooLarge { .. } | message::PayloadError::Shortage(_)) => {
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(context.payload.bytes().is_none_or(|bytes| bytes.len() <= limits.held))
    }

    /// Keeps the answer; `false`: there is no room for it.
    async fn keep(&self, control: Control, context: &mut Context) -> Result<bool, Fault> {
        let age = context.headers.get("Age").and_then(|age| age.trim().parse().ok()).unwrap_or(0);
        let answer = flow::compute::by_size(context, 0, KeptResponse::of).await?;
        // What is kept for later leaves the rest of the memory to messages on their way.
        if self.core.largest.is_some_and(|most| answer.body.len() > most) || message::memory::is_half() {
            return Ok(false);
        }
        self.insert(CachedResponse { answer, since: Instant::now(), age, control });
        self.core.answers.run_pending_tasks();
        self.core.protocol.questions.remember(self.question);
        Ok(true)
    }

    fn insert(&self, kept: CachedResponse) {
        let fresh = self.core.is_fresh(&kept);
        self.core.answers.insert(self.question.key, Arc::new(kept));
        match fresh {
            // The message and its copies may be on their way for long.
            true => drop(lock(&self.first).take()),
            // What is to be asked for again each time.
            false => self.is_not_kept(),
        }
    }

    /// Tells those who wait that each of them has to ask.
    fn is_not_kept(&self) {
        if let Some(first) = lock(&self.first).take() {
            first.open.send_replace(());
        }
    }

    /// The backend says that what is kept still holds.
    fn confirmed(&self, kept: &Arc<CachedResponse>, context: &mut Context) {
        // What is kept has the age that the answer which confirms it has.
        let age = context.headers.get("Age").and_then(|age| age.trim().parse::<u64>().ok());
        kept.answer.give(context);
        context.headers.remove("Age");
        if let Some(age) = age.or(self.core.protocol.age.then_some(0)) {
            context.headers.set("Age", age.to_string());
        }
        let answer = KeptResponse::of(context);
        if let Ok(answer) = answer {
            let control = Control::of(context);
            self.insert(CachedResponse { answer, since: Instant::now(), age: age.unwrap_or(0), control });
        }
    }
}

impl Control {
    fn of(context: &Context) -> Control {
        let etag =
            context.headers.get("ETag").map(|etag| etag.trim().to_owned()).filter(|etag| !etag.is_empty());
        let mut control = Control { etag, ..Control::default() };
        let age = |value: &str| value.trim().trim_matches('"').parse().ok();
        let mut shared = false;
        for value in context.headers.get_all("Cache-Control") {
            for directive in String::from_utf8_lossy(value).split(',') {
                let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
                match name.trim().to_ascii_lowercase().as_str() {
                    // What is private is for one client, and this cache is for all (RFC 9111, section 5.2.2.7).
                    "no-store" | "private" => control.no_store = true,
                    "no-cache" => control.no_cache = true,
                    "max-age" if !shared => control.max_age = age(value),
                    // Said to shared caches: it counts before `max-age`, wherever it stands.
                    "s-maxage" if age(value).is_some() => {
                        control.max_age = age(value);
                        shared = true;
                    }
                    _ => {}
                }
            }
        }
        control
    }
}

#[cfg(test)]
mod tests;
