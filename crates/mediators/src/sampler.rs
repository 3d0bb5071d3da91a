//! `sampler`: hands on at most a number of requests in a span of time; the others wait for their turn.

use crate::target::{TARGET, TARGET_ENDPOINT, TARGET_SEQUENCE, Target};
use config::Element;
use flow::{
    Attribute, Branch, BranchTarget, Children, Compiled, Compiler, Context, Definition, Family, Fault, Flow,
    Inside, ListId, Mediator, Moves, Need, Page, Split, Step, Values, lock,
};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// `<sampler [id] [rate] [unitTime]><messageQueue/>?<target/></sampler>`
pub const DEFINITION: Definition = Definition {
    name: "sampler",
    summary: "Passes at most `rate` requests in `unitTime` to its target; the others wait for their turn. The flow ends here.",
    attributes: &[
        Attribute::optional("id", Values::Text, "its name"),
        Attribute::optional("rate", Values::Integer, "requests handed on in a span of time").or("1"),
        Attribute::optional("unitTime", Values::Integer, "the span, in milliseconds").or("1000"),
    ],
    children: Children::Elements(&["messageQueue", "target"]),
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Quality,
    semantics: "At most `rate` messages go to the target in a span of `unitTime`; a span begins with its first message. Further messages, and their clients, wait for the next
spans in the order in which they came. If a client goes away, its message takes no turn. No message is dropped: to reject messages, use [`throttle`](throttle.md).

No step after the sampler runs. The target answers, with `respond` or with the answer of its endpoint. The target is the first of these that
exists: the sequence inside, the sequence that is named, the endpoint inside, the endpoint that is named.

Messages wait in memory, with their whole body, and are lost if the process is killed. A reload keeps
waiting messages; the new rate and span apply from the next message on, also to those that wait. A `messageQueue` class is ignored with a
warning. Responses are not sampled: a response is dropped, with a warning in the log.",
    inside: &[
        Inside::new(
            "messageQueue?",
            "of no effect here: messages wait in memory",
            &[Attribute::optional("class", Values::Text, "a Java class")],
        ),
        Inside { path: "target", meaning: "where the messages go", ..TARGET },
        TARGET_SEQUENCE,
        TARGET_ENDPOINT,
    ],
    needs: &[(Need::Whole, "always: the message waits, and its connection must not")],
    refused: &[
        ("<sampler/>", "`sampler` needs a `target`"),
        ("<sampler rate=\"0\"><target sequence=\"main\"/></sampler>", "`rate` of sampler must be a number above 0"),
        ("<sampler unitTime=\"1s\"><target sequence=\"main\"/></sampler>", "`unitTime` cannot be `1s`"),
    ],
    faults: &[
        ("0", "10,000 messages wait already (status 503), or the target names a sequence that does not exist"),
        (
            "601000",
            "what runs on the sampled message reads the body, and it is not what its content type says, or larger than a flow may hold",
        ),
    ],
};

/// Messages that may wait at once.
const MAX_WAITING: u64 = 10_000;

struct Sampler {
    pace: Pace,
    target: Arc<Target>,
    turns: Arc<Turns>,
}

/// So many messages in each span of so many milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pace {
    rate: u64,
    unit: u64,
}

/// The turns that are taken, and who waits for one; belongs to the identity of the sampler: a reload finds them as they were.
///
/// A turn is taken when it is there, by the one at the head of the line. Who goes away while it waits takes none.
struct Turns {
    started: Instant,
    bucket: Mutex<Bucket>,
    /// Messages that wait.
    waiting: AtomicU64,
    /// In the order in which they came; the message that holds it is at the head.
    line: tokio::sync::Mutex<()>,
    /// The pace is another one.
    changed: Notify,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns {
            started: Instant::now(),
            bucket: Mutex::default(),
            waiting: AtomicU64::new(0),
            line: tokio::sync::Mutex::default(),
            changed: Notify::new(),
        }
    }
}

/// Which turns are taken. Times in milliseconds.
#[derive(Debug, Default)]
struct Bucket {
    pace: Pace,
    /// When the span of the last turn began, and how many turns of it are taken.
    span: u64,
    taken: u64,
}

impl Bucket {
    /// Takes a turn. A span that a message `waited` for begins where the one before ends, unless that was long ago.
    ///
    /// # Errors
    /// There is none now: how long until there is.
    fn take(&mut self, now: u64, waited: bool) -> Result<(), u64> {
        let Pace { rate, unit } = self.pace;
        let end = self.span.saturating_add(unit);
        if now >= end {
            let begun = if waited && now - end < unit { end } else { now };
            (self.span, self.taken) = (begun, 0);
        }
        if self.taken >= rate {
            return Err(end - now);
        }
        self.taken += 1;
        Ok(())
    }
}

impl Turns {
    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// What comes says how fast it goes from now on, for those who wait too.
    fn set(&self, pace: Pace) {
        let mut bucket = lock(&self.bucket);
        if bucket.pace != pace {
            bucket.pace = pace;
            self.changed.notify_waiters();
        }
    }

    /// Takes a turn if there is one and no message waits for it.
    fn at_once(&self) -> bool {
        self.line.try_lock().is_ok_and(|_head| lock(&self.bucket).take(self.now(), false).is_ok())
    }

    /// A place in the line; `None`: too many wait.
    fn queue(self: &Arc<Turns>) -> Option<Place> {
        let place = Place(Arc::clone(self));
        (self.waiting.fetch_add(1, Relaxed) < MAX_WAITING).then_some(place)
    }
}

/// One that waits, until this is dropped.
struct Place(Arc<Turns>);

impl Place {
    /// Waits for a turn and takes it.
    async fn turn(self) {
        let turns = &self.0;
        let _head = turns.line.lock().await;
        loop {
            let mut changed = pin!(turns.changed.notified());
            changed.as_mut().enable();
            let taken = lock(&turns.bucket).take(turns.now(), true);
            let Err(wait) = taken else { return };
            // Either way it looks again.
            let _ = tokio::time::timeout(Duration::from_millis(wait), changed).await;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Relaxed);
    }
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let mut number = |name: &str, default: u64| {
        let Some(attribute) = element.attribute(name) else { return Some(default) };
        let parsed = attribute.value.trim().parse().ok().filter(|&n: &u64| n > 0);
        if parsed.is_none() {
            let message = format!("`{name}` of sampler must be a number above 0");
            compiler.error("bad-value", message, attribute.value_span, "expected a whole number");
        }
        parsed
    };
    let (rate, unit) = (number("rate", 1), number("unitTime", 1000));
    if let Some(queue) = element.child("messageQueue") {
        let message = "message queues of Java classes cannot run here; messages wait in memory";
        compiler.warning("no-effect", message, queue.start_tag(), "this is ignored");
    }
    let Some(target) = element.child("target") else {
        compiler.error(
            "missing-element",
            "`sampler` needs a `target`",
            element.start_tag(),
            "where messages are handed on to",
        );
        return None;
    };
    let target = Target::compile(target, "target of sampler".to_owned(), compiler)?;
    let identity = compiler.identity("sampler");
    let turns = compiler.services.states.get(&identity);
    Some(Box::new(Sampler { pace: Pace { rate: rate?, unit: unit? }, target: Arc::new(target), turns }))
}

impl Mediator for Sampler {
    fn moves(&self) -> Moves {
        Moves::Never
    }

    fn need(&self) -> Need {
        // The message waits; its connection must not.
        Need::Whole
    }

    fn reason(&self) -> String {
        "the message waits for its turn".into()
    }

    fn passes_on(&self) -> bool {
        self.target.passes_on()
    }

    fn lists(&self) -> Vec<(String, ListId)> {
        self.target.list().map(|list| ("target".to_owned(), list)).into_iter().collect()
    }

    fn goes_on_alone(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        if context.response {
            tracing::warn!(message_id = %context.message_id(), place = context.place(), "sampler: responses cannot be sampled; this one is dropped");
            return Step::Done(Ok(Flow::Stop));
        }
        self.turns.set(self.pace);
        if self.turns.at_once() {
            return match self.target.need().is_whole() {
                false => Step::Done(hand_on(self.target.branch(context.branch()))),
                true => Step::Wait(Box::pin(self.work_out(context))),
            };
        }
        let Some(place) = self.turns.queue() else {
            let why = format!("{MAX_WAITING} messages wait for their turn already");
            return Step::Done(Err(Fault { status: 503, ..Fault::new("the sampler is full") }.because(why)));
        };
        Step::Wait(Box::pin(async move {
            place.turn().await;
            self.work_out(context).await
        }))
    }
}

impl Sampler {
    /// Hands the message on to its target, whose name may be long work.
    async fn work_out(&self, context: &mut Context) -> Result<Flow, Fault> {
        let target = Arc::clone(&self.target);
        hand_on(flow::work_out(context, move |context| Ok(target.branch(context.branch()))).await?)
    }
}

fn hand_on(branch: Branch) -> Result<Flow, Fault> {
    if let BranchTarget::Failed(fault) = branch.target {
        return Err(*fault);
    }
    Ok(Flow::Split(Split::at_once(std::iter::once(branch), false)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;
    use flow::testing;

    #[test]
    fn turns() {
        let mut bucket = Bucket { pace: Pace { rate: 2, unit: 100 }, ..Bucket::default() };
        let all = [
            (0, Ok(())),
            (0, Ok(())),
            (10, Err(90)),
            (100, Ok(())),
            (500, Ok(())),
            (501, Ok(())),
            (502, Err(98)),
        ];
        for (now, taken) in all {
            assert_eq!(bucket.take(now, false), taken, "{now}");
        }
        // The span that was waited for begins on time, one that nobody waited for with its first message.
        for (waited, now, next) in [(true, 603, Err(97)), (false, 603, Err(100)), (true, 1000, Err(100))] {
            let mut bucket = Bucket { pace: Pace { rate: 1, unit: 100 }, span: 500, taken: 1 };
            assert_eq!(bucket.take(now, waited), Ok(()));
            assert_eq!(bucket.take(now, waited), next, "{waited} {now}");
        }
    }

    /// Turns of one in each so many milliseconds, the first of which is taken.
    fn taken(unit: u64) -> Arc<Turns> {
        let turns = Arc::new(Turns::default());
        turns.set(Pace { rate: 1, unit });
        assert!(turns.at_once() && !turns.at_once());
        turns
    }

    #[test]
    fn who_goes_away_takes_no_turn() {
        testing::block_on(async {
            let turns = taken(50);
            let gone: Vec<_> = (0..100).map(|_| tokio::spawn(turns.queue().expect("room").turn())).collect();
            tokio::task::yield_now().await;
            assert_eq!(turns.waiting.load(Relaxed), 100);
            gone.iter().for_each(|gone| gone.abort());
            // With a turn for each of them it would wait for five seconds.
            let next = turns.queue().expect("room").turn();
            tokio::time::timeout(Duration::from_secs(2), next).await.expect("its turn");
            assert_eq!(turns.waiting.load(Relaxed), 0);
        });
    }

    #[test]
    fn a_reload_to_another_pace_counts_for_those_who_wait() {
        testing::block_on(async {
            let turns = taken(3_600_000);
            let waits: Vec<_> = (0..3).map(|_| tokio::spawn(turns.queue().expect("room").turn())).collect();
            tokio::task::yield_now().await;
            turns.set(Pace { rate: 1, unit: 10 });
            for one in waits {
                tokio::time::timeout(Duration::from_secs(5), one).await.expect("its turn").expect("no panic");
            }
        });
    }

    const SAMPLER: &str =
        "<sampler unitTime='100000'><target><sequence><respond/></sequence></target></sampler>";

    /// The turns of the one sampler in main.
    fn turns_of(tested: &testing::Tested) -> Arc<Turns> {
        let main = flow::Identity::of(config::ArtifactKind::Sequence, "main");
        tested.bus.services().states.get(&main.part("sampler"))
    }

    #[test]
    fn where_too_many_wait_the_client_is_told() {
        let tested = testing::main(&registry(testing::endpoints), SAMPLER);
        let ask = || tested.ask("POST", "/", &[("Content-Type", "application/json")], "{}");
        assert_eq!(ask().status, 200);
        let turns = turns_of(&tested);
        let _waiting: Vec<_> = std::iter::from_fn(|| turns.queue()).collect();
        let response = ask();
        assert_eq!(response.status, 503, "{response:?}");
    }

    #[test]
    fn a_reload_finds_the_turns_that_are_taken() {
        let tested = testing::main(&registry(testing::endpoints), SAMPLER);
        assert_eq!(lock(&turns_of(&tested).bucket).taken, 0);
        assert_eq!(tested.ask("POST", "/", &[("Content-Type", "application/json")], "{}").status, 200);
        let before = turns_of(&tested);
        // The definition changes: the next version, made beside this one, begins where this one is.
        let changed = SAMPLER.replace("'100000'", "'100001'");
        let changed = format!("<sequence name='main'>{changed}</sequence>");
        let text = format!("<definitions xmlns='{}'>{changed}</definitions>", config::SYNAPSE);
        tested.reload(&registry(testing::endpoints), &text);
        assert!(Arc::ptr_eq(&before, &turns_of(&tested)) && lock(&before.bucket).taken == 1);
    }

    #[test]
    fn the_target_answers_and_the_flow_ends() {
        let flow = testing::main(
            &registry(testing::endpoints),
            r#"<sampler><target><sequence><payloadFactory media-type="json"><format>{"a":1}</format><args/></payloadFactory><respond/></sequence></target></sampler><property name="after" value="1"/>"#,
        );
        let response = flow.ask("POST", "/", &[("Content-Type", "application/json")], "{}");
        assert_eq!((response.status, response.body.as_str()), (200, r#"{"a":1}"#), "{flow:?}");
        for (mediator, report) in [
            ("<sampler/>", "needs a `target`"),
            (r#"<sampler rate="0"><target sequence="main"/></sampler>"#, "`rate` of sampler must be"),
            (r#"<sampler unitTime="x"><target sequence="main"/></sampler>"#, "`unitTime` cannot be `x`"),
        ] {
            let flow = testing::main(&registry(testing::endpoints), mediator);
            assert!(flow.reports(report), "{flow:?}");
        }
    }
}
