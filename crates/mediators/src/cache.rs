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

With `enableCacheControl` an answer with `no-store` is not kept. An answer with `no-cache`, or older than its `max-age`, is requested again, with
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
        for value in context.headers.get_all("Cache-Control") {
            for directive in String::from_utf8_lossy(value).split(',') {
                let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
                match name.trim().to_ascii_lowercase().as_str() {
                    "no-store" => control.no_store = true,
                    "no-cache" => control.no_cache = true,
                    "max-age" => control.max_age = value.trim().trim_matches('"').parse().ok(),
                    _ => {}
                }
            }
        }
        control
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;
    use flow::testing::{self, Tested};

    const XML: (&str, &str) = ("Content-Type", "application/xml");
    const JSON: (&str, &str) = ("Content-Type", "application/json");

    /// A proxy whose answers count: what comes from the cache repeats a number.
    fn counting(cache: &str, response: &str) -> Tested {
        let text = format!(
            r#"<definitions xmlns="{}"><proxy name="P"><target><inSequence>{cache}
                 <property name="HTTP_SC" scope="axis2" action="remove"/><loopback/></inSequence>
               <outSequence><header name="X-Id" scope="transport" expression="get-property('MessageID')"/>{response}
                 <cache collector="true"/><respond/></outSequence></target></proxy></definitions>"#,
            config::SYNAPSE
        );
        let tested = testing::configuration(&registry(testing::endpoints), &text);
        assert!(tested.found.is_empty(), "{:?}", tested.found);
        tested
    }

    /// Whether the second question gets the answer of the first one.
    fn hits(
        tested: &Tested,
        first: (&str, &str, &[(&str, &str)], &str),
        second: (&str, &str, &[(&str, &str)], &str),
    ) -> bool {
        let ask = |(method, target, headers, body): (&str, &str, &[(&str, &str)], &str)| {
            tested.ask(method, &format!("/services/P{target}"), headers, body)
        };
        let (first, second) = (ask(first), ask(second));
        let id = |response: &testing::Response| response.headers.get("X-Id").map(str::to_owned);
        assert!(id(&first).is_some(), "{first:?}");
        if id(&first) == id(&second) {
            assert_eq!((first.status, &first.body), (second.status, &second.body));
            return true;
        }
        false
    }

    #[test]
    fn the_same_question_is_answered_from_the_cache() {
        let xml: &[_] = &[XML];
        let json: &[_] = &[JSON];
        let soap = |id: &str, body: &str| {
            format!(
                "<e:Envelope xmlns:e='http://schemas.xmlsoap.org/soap/envelope/'><e:Header><id>{id}</id></e:Header><e:Body>{body}</e:Body></e:Envelope>"
            )
        };
        let soap_headers: &[_] = &[("Content-Type", "text/xml"), ("SOAPAction", "urn:a")];
        let (one, two) = (soap("1", "<q/>"), soap("2", "<q/>"));
        // Read on a compute thread.
        let large = |b: &str| format!("<a>{b}{}</a>", "<c/>".repeat(100_000));
        let (large, written_otherwise, other) = (large("<b/>"), large("<b ></b>"), large("<d/>"));
        let plain = "<cache collector='false'/>";
        let protocol = |inside: &str| {
            format!("<cache collector='false'><protocol type='HTTP'>{inside}</protocol></cache>")
        };
        for (cache, first, second, hit) in [
            (plain.to_owned(), ("POST", "/a", json, "{}"), ("POST", "/a", json, "{}"), true),
            (plain.to_owned(), ("POST", "/a", json, "{}"), ("POST", "/a", json, "{ }"), false),
            (plain.to_owned(), ("POST", "/a", json, "{}"), ("POST", "/b", json, "{}"), false),
            (plain.to_owned(), ("POST", "/a", json, ""), ("PUT", "/a", json, ""), false),
            // XML is compared by what it says.
            (
                plain.to_owned(),
                ("POST", "", xml, "<a x='1' y='2'><b/></a>"),
                ("POST", "", xml, "<a y=\"2\" x=\"1\"><b></b></a>"),
                true,
            ),
            (
                plain.to_owned(),
                ("POST", "", xml, "<a><b/><c/></a>"),
                ("POST", "", xml, "<a><b><c/></b></a>"),
                false,
            ),
            (plain.to_owned(), ("POST", "", xml, "<a>1</a>"), ("POST", "", xml, "<a>2</a>"), false),
            (plain.to_owned(), ("POST", "", xml, "<a"), ("POST", "", xml, "<a"), true),
            (plain.to_owned(), ("POST", "", xml, &large), ("POST", "", xml, &written_otherwise), true),
            (plain.to_owned(), ("POST", "", xml, &large), ("POST", "", xml, &other), false),
            (
                plain.to_owned(),
                ("POST", "", soap_headers, one.as_str()),
                ("POST", "", soap_headers, two.as_str()),
                true,
            ),
            (
                plain.to_owned(),
                ("GET", "?q=1", &[], ""),
                ("GET", "?q=1", &[("User-Agent", "x"), ("date", "y")], ""),
                true,
            ),
            (plain.to_owned(), ("GET", "?q=1", &[], ""), ("GET", "?q=2", &[], ""), false),
            (plain.to_owned(), ("GET", "", &[], ""), ("GET", "", &[("X-A", "1")], ""), false),
            (
                protocol("<headersToExcludeInHash>x-b, X-A</headersToExcludeInHash>"),
                ("GET", "", &[], ""),
                ("GET", "", &[("X-A", "1")], ""),
                true,
            ),
            (
                protocol("<headersToExcludeInHash>*</headersToExcludeInHash>"),
                ("GET", "", &[], ""),
                ("GET", "", &[("X-A", "1")], ""),
                true,
            ),
            (
                protocol("<headersToIncludeInHash>X-A</headersToIncludeInHash>"),
                ("GET", "", &[], ""),
                ("GET", "", &[("X-B", "1")], ""),
                true,
            ),
            (
                protocol("<headersToIncludeInHash>X-A</headersToIncludeInHash>"),
                ("GET", "", &[], ""),
                ("GET", "", &[("X-A", "1")], ""),
                false,
            ),
            (
                protocol("<methods>GET, post</methods>"),
                ("POST", "", json, "1"),
                ("POST", "", json, "1"),
                true,
            ),
            (protocol("<methods>GET</methods>"), ("POST", "", json, "1"), ("POST", "", json, "1"), false),
            (protocol("<methods>*</methods>"), ("PUT", "", json, "1"), ("PUT", "", json, "1"), true),
            (
                protocol("<responseCodes>2..</responseCodes>"),
                ("GET", "", &[], ""),
                ("GET", "", &[], ""),
                true,
            ),
            (
                protocol("<responseCodes>[345]..</responseCodes>"),
                ("GET", "", &[], ""),
                ("GET", "", &[], ""),
                false,
            ),
            (
                protocol(
                    "<hashGenerator>org.wso2.carbon.mediator.cache.digest.DOMHASHGenerator</hashGenerator>",
                ),
                ("POST", "/a", json, "1"),
                ("POST", "/b", json, "1"),
                true,
            ),
            (
                "<cache collector='false' maxMessageSize='1'/>".to_owned(),
                ("POST", "", json, "11"),
                ("POST", "", json, "11"),
                false,
            ),
            (
                "<cache collector='false' maxMessageSize='2'/>".to_owned(),
                ("POST", "", json, "11"),
                ("POST", "", json, "11"),
                true,
            ),
            (
                "<cache collector='false' timeout='0'/>".to_owned(),
                ("GET", "", &[], ""),
                ("GET", "", &[], ""),
                false,
            ),
        ] {
            assert_eq!(hits(&counting(&cache, ""), first, second), hit, "{cache} {first:?} {second:?}");
        }
    }

    #[test]
    fn answers_say_how_they_are_kept() {
        let cache = |inside: &str| {
            counting(
                &format!("<cache collector='false'><protocol type='HTTP'>{inside}</protocol></cache>"),
                "<property name='HTTP_SC' scope='axis2' expression='$trp:X-Status'/><header name='Cache-Control' scope='transport' expression='$trp:X-Control'/>",
            )
        };
        let on =
            "<enableCacheControl>true</enableCacheControl><headersToExcludeInHash>*</headersToExcludeInHash>";
        for (inside, status, control, hit) in [
            (on, "200", "max-age=60", true),
            (on, "200", "no-store, max-age=60", false),
            (on, "200", "No-Cache", false),
            (on, "200", "max-age=0", false),
            (on, "200", "max-age=x", true),
            ("", "200", "no-store", true),
            ("", "404", "", true),
            ("", "304", "", false),
            ("", "206", "", false),
        ] {
            let headers: &[_] = &[("X-Status", status), ("X-Control", control)];
            let question = ("GET", "", headers, "");
            assert_eq!(hits(&cache(inside), question, question), hit, "{inside} {status} {control}");
        }
    }

    #[test]
    fn a_stale_answer_is_confirmed_by_the_backend() {
        // The backend answers once, then says that it has not changed.
        let cache = "<cache collector='false'><protocol type='HTTP'><enableCacheControl>true</enableCacheControl>\
            <includeAgeHeader>true</includeAgeHeader><headersToExcludeInHash>*</headersToExcludeInHash></protocol></cache>";
        let response = "<filter xpath=\"$trp:If-None-Match = 'v1'\"><then><payloadFactory media-type='json'><format>{}</format></payloadFactory>\
            <property name='HTTP_SC' value='304' scope='axis2'/></then></filter>\
            <header name='ETag' value='v1' scope='transport'/><header name='Cache-Control' value='no-cache' scope='transport'/>";
        let tested = counting(cache, response);
        let ask = || tested.ask("POST", "/services/P", &[JSON], r#"{"a":1}"#);
        let (first, second) = (ask(), ask());
        assert_eq!((first.status, first.body.as_str()), (200, r#"{"a":1}"#));
        assert_eq!((second.status, second.body.as_str()), (200, r#"{"a":1}"#));
        assert_eq!(first.headers.get("X-Id"), second.headers.get("X-Id"));
        assert_eq!(second.headers.get("ETag"), Some("v1"));
        // It is as old as the confirmation.
        assert_eq!((first.headers.get("Age"), second.headers.get("Age")), (None, Some("0")));
    }

    #[test]
    fn equal_questions_at_once_are_asked_once() {
        // The first one holds its answer back until the others have come, each with a name of its own.
        let registry = registry(testing::endpoints);
        let collects = "<property name='RESPONSE' value='true'/><cache collector='true'/>";
        for (keeps, wanted) in [(collects, 1), ("", 3)] {
            let text = format!(
                "<cache><protocol type='HTTP'><headersToIncludeInHash>X-Q</headersToIncludeInHash></protocol></cache>\
                 <property name='X-Id' scope='transport' expression=\"get-property('MessageID')\"/>\
                 <foreach collection='${{payload}}' update-original='false' result-content-type='JSON' target-variable='v'><sequence/></foreach>\
                 {keeps}<respond/>"
            );
            let tested = testing::main(&registry, &text);
            assert!(tested.found.is_empty(), "{:?}", tested.found);
            let body = format!("[{}0]", "0,".repeat(200));
            let ids: std::collections::HashSet<_> = std::thread::scope(|scope| {
                let asks: Vec<_> = (0..3)
                    .map(|_| {
                        scope.spawn(|| {
                            tested.ask("POST", "/", &[JSON], &body).headers.get("X-Id").map(str::to_owned)
                        })
                    })
                    .collect();
                asks.into_iter().map(|ask| ask.join().expect("it does not panic")).collect()
            });
            assert_eq!(ids.len(), wanted, "{keeps}");
        }
    }

    #[test]
    fn who_asks_the_same_waits_for_the_first_and_no_longer() {
        let core = {
            let tested = testing::main(&registry(testing::endpoints), "<cache/>");
            assert!(tested.found.is_empty(), "{:?}", tested.found);
            Arc::new(Core {
                protocol: Protocol::default(),
                largest: None,
                answers: answers(Duration::from_secs(60), None),
                asking: Mutex::default(),
            })
        };
        let first = core.first((1, 1)).expect("nobody asks yet");
        assert!(core.first((2, 2)).is_ok());
        let waits = core.first((1, 1)).err().expect("it is being asked");
        assert!(waits.has_changed().is_ok());
        drop(first);
        assert!(waits.has_changed().is_err() && core.first((1, 1)).is_ok());
    }

    /// A message that may ask or wait, as a finder that found nothing.
    fn asks(finder: &Finder, tested: &Tested) -> (Context, Result<Flow, Asking>) {
        let mut context = tested.context(&[XML], "<a/>");
        let question = finder.core.protocol.questions.ask("POST", &mut context).expect("it has a body");
        let looked = finder.look(question, &mut context);
        (context, looked)
    }

    /// Whoever has no body to compare would get the answer to that of another.
    #[test]
    fn a_body_that_cannot_be_read_is_no_question() {
        let tested = testing::main(&registry(testing::endpoints), "<cache/>");
        let questions = Protocol::default().questions;
        let reading = message::Reading { kind: message::Kind::Xml, ..message::Reading::XML };
        for (body, asks) in [("<a/>", true), ("<a", false)] {
            let mut context = tested.context(&[XML], "<b/>");
            context.payload.set_made(body, reading);
            assert_eq!(questions.ask("POST", &mut context).is_some(), asks, "{body}");
        }
    }

    #[test]
    fn where_the_one_who_asks_goes_away_the_next_one_asks() {
        let tested = testing::main(&registry(testing::endpoints), "<cache/>");
        let core = Core {
            protocol: Protocol::default(),
            largest: None,
            answers: answers(Duration::from_secs(60), None),
            asking: Mutex::default(),
        };
        let finder = Finder { core: Arc::new(core), on_hit: None };
        testing::block_on(async {
            let (first, looked) = asks(&finder, &tested);
            assert!(matches!(looked, Ok(Flow::Next)));
            let mut others: Vec<_> = (0..3).map(|_| asks(&finder, &tested)).collect();
            let question =
                finder.core.protocol.questions.ask("POST", &mut others[0].0).expect("it has a body");
            let mut waiting: Vec<_> = others
                .iter_mut()
                .map(|(context, looked)| {
                    let other = std::mem::replace(looked, Ok(Flow::Next)).expect_err("it waits");
                    Box::pin(finder.wait(question, other, context))
                })
                .collect();
            let mut polled = move || -> usize {
                let waker = &mut std::task::Context::from_waker(std::task::Waker::noop());
                waiting.retain_mut(|one| one.as_mut().poll(waker).is_pending());
                waiting.len()
            };
            assert_eq!(polled(), 3, "one of them is asking");
            drop(first);
            assert_eq!(polled(), 2, "the next one asks, the others wait for it");
            assert_eq!(polled(), 2);
        });
        let asking = |others: &[(Context, Result<Flow, Asking>)]| {
            others.iter().filter(|(context, _)| context.attached::<Collection>().is_some()).count()
        };
        let (first, _) = asks(&finder, &tested);
        let mut others: Vec<_> = (0..3).map(|_| asks(&finder, &tested)).collect();
        assert_eq!(asking(&others), 0);
        // What will not be kept is asked for by each.
        first.attached::<Collection>().expect("it asks").is_not_kept();
        testing::block_on(async {
            let question =
                finder.core.protocol.questions.ask("POST", &mut others[0].0).expect("it has a body");
            for (context, looked) in &mut others {
                let other = std::mem::replace(looked, Ok(Flow::Next)).expect_err("it waits");
                assert!(matches!(finder.wait(question, other, context).await, Flow::Next));
            }
        });
        assert_eq!(asking(&others), 3);
    }

    #[test]
    fn the_answer_of_a_call_can_be_collected_where_it_stands() {
        let backend = testing::backend("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"n\":1}");
        let text = format!(
            "<cache/><call><endpoint><address uri='{backend}'/></endpoint></call>\
             <property name='X-Id' scope='transport' expression=\"get-property('MessageID')\"/>\
             <cache collector='true'/><respond/>"
        );
        let tested = testing::main(&registry(testing::endpoints), &text);
        let ask = || tested.ask("POST", "/", &[JSON], "{}");
        let (first, second) = (ask(), ask());
        assert_eq!(
            (first.status, first.body.as_str(), second.body.as_str()),
            (200, "{\"n\":1}", "{\"n\":1}")
        );
        assert!(first.headers.get("X-Id").is_some());
        assert_eq!(first.headers.get("X-Id"), second.headers.get("X-Id"));
    }

    #[test]
    fn a_hit_runs_its_sequence_and_may_say_its_age() {
        for (hit, wanted) in [
            (
                "<onCacheHit><property name='X-Hit' value='1' scope='transport'/><respond/></onCacheHit>",
                Some("1"),
            ),
            ("<onCacheHit sequence='hit'/>", Some("2")),
            ("<onCacheHit/>", None),
        ] {
            let text = format!(
                r#"<definitions xmlns="{}"><sequence name="hit"><property name="X-Hit" value="2" scope="transport"/><respond/></sequence>
                   <proxy name="P"><target><inSequence><cache collector="false">{hit}<protocol type="HTTP"><includeAgeHeader>true</includeAgeHeader></protocol></cache><loopback/></inSequence>
                   <outSequence><property name="Set-Cookie" value="s=1" scope="transport"/><cache collector="true"/><respond/></outSequence></target></proxy></definitions>"#,
                config::SYNAPSE
            );
            let tested = testing::configuration(&registry(testing::endpoints), &text);
            assert!(tested.found.is_empty(), "{:?}", tested.found);
            let ask = || tested.ask("POST", "/services/P", &[JSON], " {\"a\" : 1}");
            let (first, second) = (ask(), ask());
            assert_eq!((first.headers.get("X-Hit"), second.headers.get("X-Hit")), (None, wanted));
            assert!(first.headers.get("Age").is_none() && second.headers.get("Age").is_some());
            // Byte by byte, with its type; a cookie is one client's own.
            assert_eq!(second.body, " {\"a\" : 1}");
            assert_eq!(second.headers.get("Content-Type"), Some("application/json"));
            assert_eq!(
                (first.headers.get("Set-Cookie"), second.headers.get("Set-Cookie")),
                (Some("s=1"), None)
            );
        }
    }

    #[test]
    fn a_cache_has_bounds_and_is_its_own() {
        let cache = answers(Duration::from_secs(60), Some(3));
        let tested = testing::main(&registry(testing::endpoints), "<respond/>");
        let keep = |key: u64, size: usize| {
            let answer = KeptResponse::of(&mut tested.context(&[JSON], &"x".repeat(size))).unwrap();
            cache.insert(
                (key, 0),
                Arc::new(CachedResponse {
                    answer,
                    since: Instant::now(),
                    age: 0,
                    control: Control::default(),
                }),
            );
            cache.run_pending_tasks();
            cache.entry_count()
        };
        assert_eq!((1..=5).map(|key| keep(key, 10)).max(), Some(3));
        keep(9, (HELD / 2) as usize);
        assert!(keep(10, (HELD / 2) as usize) <= 1);
        let text = "<filter xpath=\"$trp:X-F = '1'\"><then><cache/></then><else><cache/></else></filter>\
            <property name='X-Id' scope='transport' expression=\"get-property('MessageID')\"/>\
            <property name='RESPONSE' value='true'/><cache collector='true'/><respond/>";
        let tested = testing::main(&registry(testing::endpoints), text);
        let ask = |which: &str| {
            tested.ask("GET", "/", &[("X-F", which)], "").headers.get("X-Id").map(str::to_owned)
        };
        let (one, other) = (ask("1"), ask("2"));
        assert!(one.is_some() && one != other && ask("1") == one && ask("2") == other);
    }

    #[test]
    fn the_wrong_path_is_a_fault_and_mistakes_are_found_when_the_configuration_loads() {
        for (text, says) in [
            ("<property name='RESPONSE' value='true'/><cache collector='false'/>", "request path"),
            ("<cache collector='true'/>", "response path"),
            ("<cache><onCacheHit sequence='{$ctx:none}'/></cache>", ""),
        ] {
            let tested = testing::main(&registry(testing::endpoints), text);
            let fault = tested.run(&[JSON], "{}").fault().unwrap_or_default();
            assert!(fault.contains(says), "{text}: {fault}");
        }
        for (text, says) in [
            ("<cache collector='maybe'/>", "`collector` cannot be `maybe`"),
            ("<cache timeout='-1'/>", "cannot be negative"),
            ("<cache timeout='x'/>", "`timeout` cannot be `x`"),
            ("<cache><implementation maxSize='0'/></cache>", "keeps nothing"),
            ("<cache><protocol type='JMS'/></cache>", "no cache for `JMS`"),
            (
                "<cache><protocol type='HTTP'><methods>GET,FETCH</methods></protocol></cache>",
                "no method `FETCH`",
            ),
            (
                "<cache><protocol type='HTTP'><responseCodes>(</responseCodes></protocol></cache>",
                "not a valid regular",
            ),
            (
                "<cache><protocol type='HTTP'><hashGenerator>a.B</hashGenerator></protocol></cache>",
                "`a.B` is a Java class",
            ),
            ("<cache><protocol type='HTTP'><method>GET</method></protocol></cache>", "`method` cannot stand"),
            ("<cache><onCacheHit sequence='none'/></cache>", "no sequence `none`"),
            ("<cache><onCache/></cache>", "`onCache` has no effect"),
        ] {
            let tested = testing::main(&registry(testing::endpoints), text);
            assert!(tested.reports(says), "{text}: {:?}", tested.found);
        }
    }
}
