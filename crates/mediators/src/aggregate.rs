//! `aggregate`: collects the parts of a split message (or messages that an expression relates) and goes on with one
//! message made of them. How it is made is in `aggregate/merge.rs`.

mod merge;

use crate::support::{check_enough, enough};
use crate::target::{Correlation, ID};
use config::Element;
use flow::aggregation::{Added, Arriving, Extracted, Key, Rest, Waits};
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Expression, Family, Fault, Flow, Inside,
    KeyValue, ListId, Mediator, Moves, Need, Page, SequenceRef, Values,
};
use merge::nothing;
use message::Value;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// `<aggregate [id]><correlateOn expression/>?<completeCondition [timeout]><messageCount [min] [max]/></completeCondition>?
/// <onComplete [expression] [sequence] [enclosingElementProperty] [aggregateElementType]>…</onComplete></aggregate>`
pub const DEFINITION: Definition = Definition {
    name: "aggregate",
    summary: "Waits for the parts of a split message and goes on with one message made of them.",
    attributes: &[Attribute {
        meaning: "collects the copies of the `clone` or `iterate` with the same id",
        ..ID
    }],
    children: Children::Elements(&["correlateOn", "completeCondition", "onComplete"]),
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Splitting,
    semantics: "Put it where the parts of a split message arrive: at the end of the target of an `iterate` or `clone`, or in the out sequence that gets their
answers. The parts of one run of a split belong together, whatever ids their messages have; if the splitting mediator and `aggregate` have an `id`, it must
be the same. A message that comes from no split passes `aggregate` unchanged. With `correlateOn` all messages for which the expression
selects something are parts of one aggregate, and those for which it is false pass.

An aggregate is complete when as many parts have arrived as the split made, or `max` or `min` of them, or when the `timeout` is over and at
least one part has arrived. A part that does not complete it ends here; no later step runs for it. If no more parts can come
because the others were dropped, the aggregate goes on with those that have arrived, with a line in the log if it has no `timeout`. If one of them failed, what has arrived would pass for the whole: without a `timeout` the
aggregate faults then, with the handlers of its first part.

The message that goes on is the first part, with its headers and properties. Its body gets what `expression` selects in each part, in the
order of their arrival; without `expression` the first element of each body. `enclosingElementProperty` names a property with an element:
a copy of that element is put around them. With `json-eval` the values become an array, or with `aggregateElementType=\"child\"` one object. Then
`onComplete` runs, and the flow ends after it.",
    inside: &[
        Inside::new(
            "correlateOn?",
            "relates messages that come from no split",
            &[Attribute::required("expression", Values::Expression, "selects something of each message that belongs together")],
        ),
        Inside::new(
            "completeCondition?",
            "when it is complete; absent: with all parts",
            &[Attribute::optional("timeout", Values::Integer, "seconds from the first part; 0: none").or("0")],
        ),
        Inside::new(
            "completeCondition/messageCount?",
            "how many parts complete it",
            &[
                Attribute::optional("min", Values::Key, "this many parts are enough; 0 or less: all").or("-1"),
                Attribute::optional("max", Values::Key, "this many parts are enough; 0 or less: all").or("-1"),
            ],
        ),
        Inside::new(
            "onComplete",
            "what happens with the one message",
            &[
                Attribute::optional("expression", Values::Expression, "what is taken of each part"),
                Attribute::optional("sequence", Values::Key, "a sequence instead of the mediators inside"),
                Attribute::optional("enclosingElementProperty", Values::Text, "the property with the element around the parts"),
                Attribute::optional(
                    "aggregateElementType",
                    Values::OneOf(&["root", "child"]),
                    "JSON: an array of the values, or one object of their members",
                )
                .or("root"),
            ],
        )
        .with("mediator*"),
    ],
    needs: &[(Need::Whole, "always")],
    refused: &[
        ("<aggregate><correlateOn/><onComplete><respond/></onComplete></aggregate>", "`correlateOn` needs an expression"),
        (
            "<aggregate><completeCondition timeout=\"soon\"/><onComplete><respond/></onComplete></aggregate>",
            "`soon` is not a number of seconds",
        ),
        ("<aggregate><onComplete/></aggregate>", "nothing uses the result of `aggregate`"),
    ],
    faults: &[
        (
            "0",
            "a part has nothing that `expression` selects, `min` or `max` is not a number, the enclosing property holds no element, \
             `onComplete` names a sequence that does not exist, or a part failed on its way",
        ),
        ("601000", "a part is not what its content type says"),
    ],
};

/// Attributes of the elements inside.
const CHILDREN: &[(&str, &[&str])] = &[
    ("correlateOn", &["expression"]),
    ("completeCondition", &["timeout"]),
    (
        "onComplete",
        &["expression", "sequence", "enclosingElementProperty", "aggregateElementType", "onError"],
    ),
];

/// The mediator; its core outlives a plan swap for as long as a timer needs it.
struct Aggregate(Arc<Core>);

/// Tells the open aggregates of this place from others, after a reload too.
struct Number(u64);

struct Core {
    /// Tells aggregates of different mediators apart.
    number: Arc<Number>,
    correlation: Correlation,
    correlate_on: Option<Expression>,
    /// How many parts complete it; unset or not above 0: as many as the split had.
    min: Option<KeyValue>,
    max: Option<KeyValue>,
    timeout: Option<Duration>,
    /// What is taken of each part; none: the first element of its body.
    expression: Option<Expression>,
    enclosing: Option<Arc<str>>,
    /// JSON: merge the objects instead of listing them.
    child: bool,
    then: Then,
}

enum Then {
    Inline(ListId),
    Named(SequenceRef),
    Nothing,
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    for (name, allowed) in CHILDREN {
        for child in element.children_named(name) {
            for attribute in child.attributes() {
                if !allowed.contains(&&*attribute.name.local) {
                    let message = format!("`{name}` has no attribute `{}`", attribute.name.local);
                    compiler.warning("unknown-attribute", message, attribute.name_span, "this has no effect");
                }
            }
        }
    }
    let correlate_on = match element.child("correlateOn") {
        Some(correlate) => match compiler.expression(correlate, "expression") {
            Some(expression) => Some(expression),
            None => {
                let place = correlate.start_tag();
                compiler.error("missing-attribute", "`correlateOn` needs an expression", place, "expression");
                return None;
            }
        },
        None => None,
    };
    let (mut min, mut max, mut timeout) = (None, None, None);
    if let Some(condition) = element.child("completeCondition") {
        if let Some(attribute) = condition.attribute("timeout") {
            // As with the counts, -1 says that there is none.
            match attribute.value.trim().parse::<i64>() {
                Ok(seconds) => {
                    let seconds = u64::try_from(seconds).ok().filter(|&seconds| seconds > 0);
                    timeout = seconds.map(Duration::from_secs);
                }
                Err(_) => {
                    let message = format!("`{}` is not a number of seconds", attribute.value);
                    compiler.error("bad-value", message, attribute.value_span, "expected whole seconds");
                    return None;
                }
            }
        }
        if let Some(count) = condition.child("messageCount") {
            for name in ["min", "max"] {
                check_count(count, name, compiler);
            }
            check_enough(count, ["min", "max"], compiler);
            min = compiler.key_value(count, "min");
            max = compiler.key_value(count, "max");
        }
    }
    let complete = element.child("onComplete");
    let mut expression = None;
    if let Some(complete) = complete
        && complete.attribute("expression").is_some()
    {
        expression = Some(compiler.expression(complete, "expression")?);
    }
    let then = match complete {
        Some(complete) if complete.attribute("sequence").is_some() => {
            Then::Named(compiler.sequence(complete, "sequence")?)
        }
        Some(complete) if complete.elements().next().is_some() => {
            Then::Inline(compiler.list(complete, "onComplete of aggregate"))
        }
        _ => {
            compiler.warning(
                "no-effect",
                "nothing uses the result of `aggregate`",
                complete.unwrap_or(element).start_tag(),
                "put mediators into `onComplete`, or name a sequence",
            );
            Then::Nothing
        }
    };
    // Of several in one artifact, what they collect tells them apart, in whatever order they stand.
    let correlate = element.child("correlateOn").and_then(|child| child.attr("expression"));
    let part =
        format!("aggregate {} {}", element.attr("id").unwrap_or_default(), correlate.unwrap_or_default());
    let identity = compiler.identity(part.trim_end());
    Some(Box::new(Aggregate(Arc::new(Core {
        number: compiler.services.states.get_or_make(&identity, || Number(compiler.unique())),
        correlation: Correlation::of(element),
        correlate_on,
        min,
        max,
        timeout,
        expression,
        enclosing: complete.and_then(|complete| complete.attr("enclosingElementProperty")).map(Arc::from),
        child: complete.and_then(|complete| complete.attr("aggregateElementType")) == Some("child"),
        then,
    }))))
}

impl Mediator for Aggregate {
    fn moves(&self) -> Moves {
        Moves::Long
    }

    fn need(&self) -> Need {
        Need::Whole
    }

    fn reason(&self) -> String {
        "collects messages".into()
    }

    fn lists(&self) -> Vec<(String, ListId)> {
        let list = match &self.0.then {
            Then::Inline(list) => Some(*list),
            Then::Named(sequence) => sequence.known(),
            Then::Nothing => None,
        };
        list.map(|list| ("onComplete".to_owned(), list)).into_iter().collect()
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let core = &self.0;
        let Some((key, expected)) = core.key(context)? else { return Ok(Flow::Next) };
        let enough = enough([&core.min, &core.max], "aggregate", context)?;
        let across = core.correlate_on.is_some();
        let split = expected.filter(|_| !across);
        let services = Arc::clone(context.services());
        let exchange = context.exchange().cloned();
        let is_enough = |count: usize, first: Option<usize>| {
            [first.or(expected), enough].into_iter().flatten().any(|enough| count >= enough)
        };
        let mut waits = services.aggregates.waits(&key);
        let added = loop {
            // Once the aggregate is gone from the table, the step cannot be begun anew: what takes long begins elsewhere.
            if waits.is_some_and(|waits| is_much(waits) && is_enough(waits.parts + 1, split)) {
                meter::elsewhere()?;
            }
            // All that is kept of a part behind the first one.
            let taken = match waits.is_some() || across {
                true => Some(core.taken(context)?),
                false => None,
            };
            if let (true, Some(Extracted::Failed(_))) = (across, &taken) {
                // Parts of other clients must not fail with it.
                let Some(Extracted::Failed(fault)) = taken else { return Ok(Flow::Stop) };
                return Err(*fault);
            }
            let taken = taken.filter(|_| waits.is_some());
            let arriving = Arriving { part: context.take(), taken, split, across };
            match services.aggregates.add(key.clone(), arriving, is_enough) {
                Added::Again(part) => {
                    context.put(part);
                    waits = services.aggregates.waits(&key).or(Some(Waits { parts: 1, bytes: 0 }));
                }
                added => break added,
            }
        };
        match added {
            Added::Late(_) | Added::Again(_) => Ok(Flow::Stop),
            Added::Full(part, fault) => {
                context.put(part);
                if let (Some(exchange), None) = (&exchange, &core.correlate_on) {
                    exchange.shed();
                }
                Err(*fault)
            }
            Added::Complete(last, parts) => {
                context.put(last);
                let time = services.settings.script_time;
                let (result, used) = meter::within(time, None, || core.complete(parts, context));
                used.stopped.map_or(result, |stop| Err(stop.into()))
            }
            Added::Waiting { opened, serial } => {
                if opened
                    && core.correlate_on.is_none()
                    && let Some(exchange) = &exchange
                {
                    let core = Arc::clone(core);
                    let complete = move |first: Box<Context>,
                                         parts: Result<Rest, _>|
                          -> Pin<Box<dyn Future<Output = ()> + Send>> {
                        Box::pin(async move {
                            match parts {
                                Ok(rest) => {
                                    core.warn_of_missing(&first, rest.others.len() + 1, expected);
                                    core.with_what_came(first, rest).await;
                                }
                                Err(fault) => flow::resume(first, Err(fault)).await,
                            }
                        })
                    };
                    exchange.parked(key.clone(), serial, &services, Box::new(complete));
                }
                if opened
                    && let Some(timeout) = core.timeout
                    && let Some(complete) = services.aggregates.watch(&key, serial)
                {
                    // As long as the timer runs, the client may still get an answer.
                    let (core, timer) = (Arc::clone(core), context.child("the timer of an aggregate"));
                    timer.spawn(async move {
                        if tokio::time::timeout(timeout, complete).await.is_err()
                            && let Some((first, rest)) = services.aggregates.expire(&key, serial)
                        {
                            core.with_what_came(first, rest).await;
                        }
                    });
                }
                Ok(Flow::Stop)
            }
        }
    }
}

impl Core {
    /// What the message belongs to, and how many there are of it if it says so; `None`: it passes through.
    fn key(&self, context: &mut Context) -> Result<Option<(Key, Option<usize>)>, Fault> {
        let announced = |context: &Context| {
            let sequence = text(context.properties.get(&self.correlation.sequence)?);
            sequence.split_once('/').map_or(Some(1), |(_, count)| count.trim().parse().ok())
        };
        if let Some(expression) = &self.correlate_on {
            return match expression.value(context)? {
                Some(Value::Boolean(false)) => Ok(None),
                None => Err(nothing(expression)),
                Some(value) if matches!(&value, Value::String(text) if text.is_empty()) => {
                    Err(nothing(expression))
                }
                Some(_) => {
                    let correlation = expression.source().into();
                    Ok(Some((Key { mediator: self.number.0, split: None, correlation }, announced(context))))
                }
            };
        }
        let Some(id) = context.properties.get(&self.correlation.id).map(text) else {
            return Ok(None);
        };
        let key =
            Key { mediator: self.number.0, split: context.split(&self.correlation.id), correlation: id };
        Ok(Some((key, announced(context))))
    }

    /// The merged message goes on in the place of the one that completes it.
    fn complete(&self, parts: Option<(Box<Context>, Rest)>, context: &mut Context) -> Result<Flow, Fault> {
        match parts {
            None => self.merge(context, Vec::new())?,
            Some((mut merged, Rest { others, answered, held })) => {
                let result = self.merge(&mut merged, others);
                drop(held);
                context.continue_as(merged);
                result.inspect_err(|_| lost(context, &answered))?;
            }
        }
        self.then(context)
    }

    /// Says that the parts of a split are not all here, although nothing gives them a time.
    fn warn_of_missing(&self, first: &Context, came: usize, expected: Option<usize>) {
        if let (None, Some(expected)) = (self.timeout, expected.filter(|expected| came < *expected)) {
            tracing::warn!(
                message_id = %first.message_id(),
                place = first.place(),
                "`aggregate` goes on with {came} of {expected} parts: the flows of the others ended without reaching it"
            );
        }
    }

    /// Completes the aggregate with what has arrived: its time is over, or nothing more can come.
    async fn with_what_came(self: Arc<Self>, mut merged: Box<Context>, rest: Rest) {
        let Rest { others, answered, held } = rest;
        if merged.exchange().is_none() {
            merged.leaves_its_client();
        }
        let more = others.len().saturating_mul(PART);
        let core = Arc::clone(&self);
        let work = move |merged: &mut Context| {
            let result = core.merge(merged, others);
            drop(held);
            result.and_then(|()| core.then(merged))
        };
        let result = flow::compute::once_on(&mut merged, more, work).await;
        if result.is_err() {
            lost(&merged, &answered);
        }
        flow::resume(merged, result).await;
    }

    fn then(&self, context: &mut Context) -> Result<Flow, Fault> {
        match &self.then {
            Then::Inline(list) => Ok(Flow::Enter(*list)),
            Then::Named(sequence) => Ok(Flow::Enter(sequence.resolve(context)?)),
            Then::Nothing => Ok(Flow::Stop),
        }
    }
}

/// Bytes that a part counts for, of which it is not known how large it is.
const PART: usize = 512;

/// So many bytes take about a millisecond to put together.
const MUCH: usize = 256 << 10;

/// Whether putting an aggregate together is too much for a worker.
fn is_much(waits: Waits) -> bool {
    waits.bytes.saturating_add(waits.parts.saturating_mul(PART)) >= MUCH
}

/// Names the messages whose clients have their answers, and that are lost with an aggregate.
#[cold]
fn lost(merged: &Context, answered: &[String]) {
    let (first, place) = (merged.message_id(), merged.place());
    for id in answered {
        tracing::error!(
            message_id = id,
            place,
            "the aggregate failed that this message was a part of, with {first}"
        );
    }
}

/// A value as a string; one that is a string is shared.
fn text(value: &Value) -> Arc<str> {
    match value {
        Value::String(text) => Arc::clone(text),
        other => other.to_string().into(),
    }
}

/// A count that is neither a number nor an expression counts as none.
fn check_count(element: &Element, name: &str, compiler: &mut Compiler<'_>) {
    if let Some(attribute) = element.attribute(name)
        && !attribute.value.trim_start().starts_with(['{', '$'])
        && attribute.value.trim().parse::<i64>().is_err()
    {
        let message = format!("`{name}` of `messageCount` is not a number: each part of a split faults here");
        compiler.warning("bad-value", message, attribute.value_span, "expected a whole number");
    }
}

#[cfg(test)]
mod tests;
