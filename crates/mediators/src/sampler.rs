//! `sampler`: hands on at most so many requests in a span of time; the others wait for their turn.

use crate::target::{TARGET, TARGET_ENDPOINT, TARGET_SEQUENCE, Target};
use config::Element;
use flow::{
    Attribute, BranchTarget, Children, Compiled, Compiler, Context, Definition, Family, Fault, Flow, Inside,
    ListId, Mediator, Moves, Need, Page, Split, Step, Values, lock,
};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// `<sampler [id] [rate] [unitTime]><messageQueue/>?<target/></sampler>`
pub const DEFINITION: Definition = Definition {
    name: "sampler",
    summary: "Hands on at most `rate` requests in `unitTime`; the others wait for their turn. The flow ends here.",
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
    semantics: "At most `rate` messages go to the target in a span of `unitTime`; a span begins with its first message. Those beyond wait for the next
spans in the order in which they came, and their clients with them. Nothing is dropped: to turn messages away, use [`throttle`](throttle.md).

Behind the sampler nothing runs. The target answers, with `respond` or with the answer of the endpoint it sends to. It is, of these, the first that is
there: the sequence inside, the sequence that is named, the endpoint inside, the endpoint that is named.

Messages wait in memory, with their whole body; what waits is lost when the process is killed. A reload of the configuration finds
the turns that are taken. A `messageQueue` class is ignored with a
warning. Responses are not sampled: one that comes here is dropped, with a warning in the log.",
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
    faults: &[(
        "0",
        "10,000 messages wait already (status 503), the target names a sequence that does not exist, or the body is larger than a flow \
         may hold",
    ), ("601000", "what runs on the sampled message reads the body, and it is not what its content type says")],
};

/// Messages that may wait at once.
const MAX_WAITING: u64 = 10_000;

struct Sampler {
    /// So many messages in each span of so many milliseconds.
    rate: u64,
    unit: u64,
    target: Target,
    turns: Arc<Turns>,
}

/// The turns that are taken, and their clock; belongs to the identity of the sampler: a reload finds them as they were.
struct Turns {
    started: Instant,
    bucket: Mutex<Bucket>,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns { started: Instant::now(), bucket: Mutex::default() }
    }
}

/// Which turns are taken. Times in milliseconds.
#[derive(Debug, Default)]
struct Bucket {
    /// When the span of the last turn began, and how many turns of it are taken.
    span: u64,
    taken: u64,
}

impl Bucket {
    /// How long a message that comes now has to wait, with `rate` turns in each span of `unit`; `None`: too many wait already.
    fn turn(&mut self, now: u64, rate: u64, unit: u64) -> Option<u64> {
        if now >= self.span.saturating_add(unit) {
            (self.span, self.taken) = (now, 0);
        } else if self.taken >= rate {
            (self.span, self.taken) = (self.span.saturating_add(unit), 0);
        }
        let wait = self.span.saturating_sub(now);
        // Those of this span, and of whole ones that have not begun either.
        let before = (wait.saturating_sub(1) / unit).saturating_mul(rate).saturating_add(self.taken);
        if wait > 0 && before >= MAX_WAITING {
            return None;
        }
        self.taken += 1;
        Some(wait)
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
    Some(Box::new(Sampler { rate: rate?, unit: unit?, target, turns }))
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

    fn lists(&self) -> Vec<(String, ListId)> {
        self.target.list().map(|list| ("target".to_owned(), list)).into_iter().collect()
    }

    fn goes_on_alone(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        if context.response {
            tracing::warn!(message_id = %context.message_id(), "sampler: responses cannot be sampled; this one is dropped");
            return Step::Done(Ok(Flow::Stop));
        }
        let now = u64::try_from(self.turns.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let turn = lock(&self.turns.bucket).turn(now, self.rate, self.unit);
        let Some(wait) = turn else {
            let why = format!("{MAX_WAITING} messages wait for their turn already");
            return Step::Done(Err(Fault { status: 503, ..Fault::new("the sampler is full") }.because(why)));
        };
        let hand_on = |context: &mut Context| {
            let branch = self.target.branch(context.branch());
            if let BranchTarget::Failed(fault) = branch.target {
                return Err(*fault);
            }
            Ok(Flow::Split(Split::at_once(std::iter::once(branch), false)))
        };
        if wait == 0 {
            return Step::Done(hand_on(context));
        }
        Step::Wait(Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(wait)).await;
            hand_on(context)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;
    use flow::testing;

    #[test]
    fn turns() {
        let mut bucket = Bucket::default();
        let waits: Vec<_> =
            [0, 0, 10, 10, 10, 500, 501].iter().map(|&now| bucket.turn(now, 2, 100)).collect();
        assert_eq!(waits, [Some(0), Some(0), Some(90), Some(90), Some(190), Some(0), Some(0)]);
        let admitted = |bucket: &mut Bucket, now, rate, unit| {
            (0..5 * MAX_WAITING).map_while(|_| bucket.turn(now, rate, unit)).filter(|&wait| wait > 0).count()
                as u64
        };
        assert_eq!(admitted(&mut Bucket::default(), 0, 1, 1), MAX_WAITING);
        // Also where a span has more than may wait, and where it has begun already.
        for (rate, unit) in [(2 * MAX_WAITING, 1000), (3000, 1000), (7, 13)] {
            let mut bucket = Bucket { span: 1, taken: 0 };
            assert_eq!(admitted(&mut bucket, 1, rate, unit), MAX_WAITING, "{rate}");
            assert_eq!(bucket.turn(12, rate, unit), None, "{rate}");
            assert_eq!(admitted(&mut bucket, unit + 1, rate, unit), rate.min(MAX_WAITING), "{rate}");
        }
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
        let now = turns.started.elapsed().as_millis() as u64;
        while lock(&turns.bucket).turn(now, 1, 100_000).is_some() {}
        let answer = ask();
        assert_eq!(answer.status, 503, "{answer:?}");
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
        let answer = flow.ask("POST", "/", &[("Content-Type", "application/json")], "{}");
        assert_eq!((answer.status, answer.body.as_str()), (200, r#"{"a":1}"#), "{flow:?}");
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
