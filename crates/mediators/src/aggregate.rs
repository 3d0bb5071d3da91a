//! `aggregate`: collects the parts of a split message (or messages that an expression relates) and goes on with one
//! message made of them.

use crate::support::{check_enough, enough};
use crate::target::{Correlation, ID};
use config::Element;
use flow::aggregation::{Added, Arriving, Extracted, Key, Rest, Waits};
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Expression, Family, Fault, Flow, Inside,
    KeyValue, ListId, Mediator, Moves, Need, Page, SequenceRef, Values,
};
use message::{Assembly, Envelope, Kind, Piece, Shell, Value, XmlValue};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use xml::{NodeId, NodeKind};

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
            match attribute.value.trim().parse::<u64>() {
                Ok(seconds) => timeout = Some(Duration::from_secs(seconds)).filter(|limit| !limit.is_zero()),
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
                meter::not_inline()?;
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
                place = first.plan().place(first.location()),
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

    /// What is taken of a part that is not the first.
    ///
    /// # Errors
    /// The run has to end; what is wrong with the part is a fault of the aggregate.
    fn taken(&self, part: &mut Context) -> Result<Extracted, Fault> {
        let taken = match &self.expression {
            Some(expression) if expression.is_json() => expression
                .json_values(part)
                .and_then(|values| values.ok_or_else(|| nothing(expression)))
                .map(Extracted::Json),
            _ => self.pieces(part).map(Extracted::Pieces),
        };
        Ok(meter::finished(taken)?.unwrap_or_else(|fault| Extracted::Failed(Box::new(fault))))
    }

    /// The elements (and texts) of a part that are aggregated, where they are.
    fn pieces(&self, part: &mut Context) -> Result<Vec<Piece>, Fault> {
        let nodes = self.selected(part)?;
        let envelope = part.shared_envelope()?;
        if nodes.iter().any(|&node| node == envelope.root || node == envelope.body) {
            return Err(of_the_envelope());
        }
        // The whole of what a split made this part of is where it was: the tree that was built to look at it can go.
        if let [node] = nodes[..]
            && envelope.payload() == Some(node)
            && part.payload.is_assembled()
        {
            let limits = part.services().limits.clone();
            return Ok(part.payload.first_piece(&limits)?.into_iter().collect());
        }
        Ok(nodes.into_iter().map(|node| (Arc::clone(&envelope), node)).collect())
    }

    /// Adds the others to the first message, in the order in which they arrived.
    fn merge(&self, first: &mut Context, others: Vec<Extracted>) -> Result<(), Fault> {
        match &self.expression {
            Some(expression) if expression.is_json() => self.merge_json(expression, first, others),
            _ => self.merge_xml(first, others),
        }
    }

    fn merge_json(
        &self,
        expression: &Expression,
        first: &mut Context,
        others: Vec<Extracted>,
    ) -> Result<(), Fault> {
        let mut values = Vec::with_capacity(others.len() + 1);
        values.push(expression.json_values(first)?.ok_or_else(|| nothing(expression))?);
        for other in others {
            match other {
                Extracted::Json(value) => values.push(value),
                Extracted::Failed(fault) => return Err(*fault),
                Extracted::Pieces(_) => return Err(nothing(expression)),
            }
        }
        let mut merged = if self.child { one_object(values)? } else { serde_json::Value::Array(values) };
        if let Some(name) = &self.enclosing {
            let (element, root) = enclosing(name, first)?;
            let name = element.document.local(root).to_owned();
            merged = serde_json::Value::Object([(name, merged)].into_iter().collect());
        }
        first.payload.set_json_value(merged);
        Ok(())
    }

    fn merge_xml(&self, first: &mut Context, others: Vec<Extracted>) -> Result<(), Fault> {
        let nodes = self.selected(first)?;
        let enclosing = self.enclosing.as_ref().map(|name| enclosing(name, first)).transpose()?;
        if let Some(merged) = self.assembled(first, &nodes, &enclosing, &others)? {
            first.payload.set_assembly(merged);
            return Ok(());
        }
        self.merge_trees(first, nodes, enclosing, &others)
    }

    fn merge_trees(
        &self,
        first: &mut Context,
        nodes: Vec<NodeId>,
        enclosing: Option<(Arc<XmlValue>, NodeId)>,
        others: &[Extracted],
    ) -> Result<(), Fault> {
        failure(others)?;
        let envelope = first.envelope_mut()?;
        let body = envelope.body;
        // What was selected further down moves up, and what held it goes.
        let mut holders = Vec::new();
        for node in nodes {
            if node == envelope.root || node == body || Some(node) == envelope.header {
                return Err(of_the_envelope());
            }
            if envelope.document.parent(node) == Some(body) {
                continue;
            }
            let mut top = node;
            while let Some(parent) = envelope.document.parent(top).filter(|&parent| parent != body) {
                top = parent;
            }
            if envelope.document.parent(top) == Some(body) && !holders.contains(&top) {
                holders.push(top);
            }
            envelope.document.append(body, node);
        }
        for holder in holders {
            envelope.document.detach(holder);
        }
        for (piece_envelope, node) in pieces_of(others) {
            envelope.document.copy_from(body, &piece_envelope.document, *node);
        }
        if let Some((element, root)) = enclosing {
            let children: Vec<NodeId> = envelope.document.children(body).collect();
            let around = envelope.document.copy_from(body, &element.document, root);
            for child in children {
                envelope.document.append(around, child);
            }
        }
        Ok(())
    }

    /// The same in pieces, which most aggregates are until they are sent; `None`: the tree of the first message has to be
    /// changed.
    fn assembled(
        &self,
        first: &mut Context,
        nodes: &[NodeId],
        enclosing: &Option<(Arc<XmlValue>, NodeId)>,
        others: &[Extracted],
    ) -> Result<Option<Assembly>, Fault> {
        if matches!(first.payload.reading().kind, Kind::Related | Kind::FormData) {
            return Ok(None);
        }
        let envelope = first.shared_envelope()?;
        let Some(kept) = body_of(&envelope, nodes) else { return Ok(None) };
        let mut pieces: Vec<Piece> = Vec::with_capacity(kept.len() + others.len());
        pieces.extend(kept.into_iter().map(|node| (Arc::clone(&envelope), node)));
        failure(others)?;
        pieces.extend(pieces_of(others).cloned());
        let mut shell = envelope.emptied();
        let place = match enclosing {
            Some((element, root)) => shell.document.copy_from(shell.body, &element.document, *root),
            None => shell.body,
        };
        Ok(Some(Assembly::new(Arc::new(Shell::within(shell, place)), pieces)))
    }

    /// The elements (and texts) of a message that are aggregated.
    fn selected(&self, context: &mut Context) -> Result<Vec<NodeId>, Fault> {
        let missing = || Fault::new("Could not find matching elements to aggregate.");
        let Some(expression) = &self.expression else {
            return Ok(vec![context.shared_envelope()?.payload().ok_or_else(missing)?]);
        };
        if expression.need().is_whole() {
            context.shared_envelope()?;
        }
        let nodes = expression.nodes(context)?;
        let document = &context.envelope()?.document;
        let kinds = [NodeKind::Element, NodeKind::Text];
        let nodes: Vec<_> = nodes.into_iter().filter(|&node| kinds.contains(&document.kind(node))).collect();
        if nodes.is_empty() { Err(missing()) } else { Ok(nodes) }
    }
}

/// Bytes that a part counts for, of which it is not known how large it is.
const PART: usize = 512;

/// Whether putting an aggregate together is too much for a worker.
fn is_much(waits: Waits) -> bool {
    waits.bytes.saturating_add(waits.parts.saturating_mul(PART)) >= 32 << 10
}

/// Names the messages whose clients have their answers, and that are lost with an aggregate.
#[cold]
fn lost(merged: &Context, answered: &[String]) {
    let (first, place) = (merged.message_id(), merged.plan().place(merged.location()));
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

/// What is in the body of the first message once the nodes that were selected are there and what held them is gone.
/// `None`: nodes are in each other or beside the body, or are the envelope's own.
fn body_of(envelope: &Envelope, nodes: &[NodeId]) -> Option<Vec<NodeId>> {
    let document = &envelope.document;
    if !document.is_ordered() || !nodes.is_sorted() {
        return None;
    }
    let (mut moved, mut holders) = (Vec::new(), Vec::new());
    for &node in nodes {
        let mut top = node;
        loop {
            let parent = document.parent(top)?;
            if parent == envelope.body {
                break;
            }
            if nodes.binary_search(&parent).is_ok() {
                return None;
            }
            top = parent;
        }
        if top != node {
            moved.push(node);
            if holders.last() != Some(&top) {
                holders.push(top);
            }
        }
    }
    let stays = |child: &NodeId| holders.binary_search(child).is_err();
    let mut kept: Vec<NodeId> = document.children(envelope.body).filter(stays).collect();
    kept.append(&mut moved);
    Some(kept)
}

fn of_the_envelope() -> Fault {
    Fault::new("parts of the SOAP envelope itself cannot be aggregated")
}

fn nothing(expression: &Expression) -> Fault {
    Fault::new(format!("Error evaluating expression: {}", expression.source())).because("it selects nothing")
}

/// The element that a property holds.
fn enclosing(name: &str, context: &Context) -> Result<(Arc<XmlValue>, NodeId), Fault> {
    let missing =
        || Fault::new(format!("the enclosingElementProperty {name} of aggregate holds no XML element"));
    let Some(Value::Xml(element)) = context.properties.get(name) else { return Err(missing()) };
    let root =
        element.nodes.first().copied().filter(|&node| element.document.kind(node) == NodeKind::Element);
    Ok((Arc::clone(element), root.ok_or_else(missing)?))
}

/// Objects merged into one; the values of a key that several have become an array.
fn one_object(values: Vec<serde_json::Value>) -> Result<serde_json::Value, Fault> {
    use serde_json::Value as Json;
    let mut merged = serde_json::Map::new();
    for value in values {
        let Json::Object(members) = value else {
            return Err(Fault::new("aggregateElementType=\"child\" merges JSON objects; a part is none"));
        };
        for (name, value) in members {
            match merged.get_mut(&name) {
                None => {
                    merged.insert(name, value);
                }
                Some(Json::Array(existing)) => match value {
                    Json::Array(more) => existing.extend(more),
                    value => existing.push(value),
                },
                Some(existing) => {
                    let first = existing.take();
                    let mut list = vec![first];
                    match value {
                        Json::Array(more) => list.extend(more),
                        one => list.push(one),
                    }
                    *existing = Json::Array(list);
                }
            }
        }
    }
    Ok(Json::Object(merged))
}

/// The fault of the first part that nothing could be taken of.
fn failure(parts: &[Extracted]) -> Result<(), Fault> {
    let failed =
        parts.iter().find_map(|part| if let Extracted::Failed(fault) = part { Some(fault) } else { None });
    failed.map_or(Ok(()), |fault| Err((**fault).clone()))
}

fn pieces_of(parts: &[Extracted]) -> impl Iterator<Item = &Piece> {
    parts.iter().flat_map(|part| match part {
        Extracted::Pieces(pieces) => pieces.as_slice(),
        Extracted::Json(_) | Extracted::Failed(_) => &[],
    })
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
mod tests {
    use super::*;
    use flow::testing;

    const XML: &[(&str, &str)] = &[("Content-Type", "application/xml")];
    const JSON: &[(&str, &str)] = &[("Content-Type", "application/json")];

    fn ask(text: &str, headers: &[(&str, &str)], body: &str) -> testing::Response {
        let tested = testing::main(&crate::registry(testing::endpoints), text);
        assert!(tested.found.is_empty(), "{:?}", tested.found);
        tested.ask("POST", "/", headers, body)
    }

    fn split(aggregate: &str) -> String {
        format!(
            "<iterate expression='//i' sequential='true'><target><sequence>{aggregate}</sequence></target></iterate>"
        )
    }

    #[test]
    fn enough_parts_complete_it() {
        let count = "<payloadFactory media-type='text'><format>$1</format><args>\
            <arg expression='count($body/*)'/></args></payloadFactory><respond/>";
        for (condition, body, answer) in [
            ("", "<a><i/><i/><i/></a>", "3"),
            (
                "<completeCondition><messageCount min='-1' max='-1'/></completeCondition>",
                "<a><i/><i/></a>",
                "2",
            ),
            (
                "<completeCondition><messageCount min='2' max='-1'/></completeCondition>",
                "<a><i/><i/><i/></a>",
                "2",
            ),
            ("<completeCondition><messageCount max='1'/></completeCondition>", "<a><i/><i/><i/></a>", "1"),
            (
                "<completeCondition timeout='1'><messageCount min='9' max='9'/></completeCondition>",
                "<a><i/></a>",
                "1",
            ),
        ] {
            let text = split(&format!(
                "<aggregate>{condition}<onComplete expression='//i'>{count}</onComplete></aggregate>"
            ));
            assert_eq!(ask(&text, XML, body).body, answer, "{condition}");
        }
    }

    #[test]
    fn a_minimum_above_the_maximum_is_told() {
        for (counts, says) in [
            ("min='5' max='2'", true),
            ("min='2' max='2'", false),
            ("min='5' max='-1'", false),
            ("min='5' max='{1}'", false),
        ] {
            let text = split(&format!(
                "<aggregate><completeCondition><messageCount {counts}/></completeCondition><onComplete expression='//i'><respond/></onComplete></aggregate>"
            ));
            let tested = testing::main(&crate::registry(testing::endpoints), &text);
            assert_eq!(tested.reports("`min` is more than `max`"), says, "{counts}: {:?}", tested.found);
        }
    }

    #[test]
    fn an_aggregate_without_id_collects_the_copies_of_any_split() {
        let text = "<iterate id='x' expression='//i' sequential='true'><target><sequence><aggregate><completeCondition>\
            <messageCount min='2'/></completeCondition><onComplete expression='//i'><payloadFactory media-type='text'><format>$1</format><args>\
            <arg expression='count($body/*)'/></args></payloadFactory><respond/></onComplete></aggregate></sequence></target></iterate>";
        assert_eq!(ask(text, XML, "<a><i/><i/></a>").body, "2");
    }

    #[test]
    fn a_timer_completes_what_stays_incomplete_and_a_client_never_waits_for_nothing() {
        // One of two parts is dropped.
        let text = |condition: &str| {
            format!(
                "<iterate expression='//i'><target><sequence><filter xpath=\"//i='no'\"><then><drop/></then>\
            <else><aggregate>{condition}<onComplete expression='//i'><respond/></onComplete></aggregate></else></filter>\
            </sequence></target></iterate>"
            )
        };
        let body = "<a><i>yes</i><i>no</i></a>";
        for (condition, says) in [("<completeCondition timeout='1'/>", false), ("", true)] {
            let (lines, answer) =
                testing::logged("busbar_mediators::aggregate", || ask(&text(condition), XML, body));
            assert_eq!(answer.body, "<i>yes</i>");
            let told = lines.iter().any(|line| line.contains("goes on with 1 of 2 parts"));
            assert_eq!(told, says, "{condition}: {lines:?}");
        }
    }

    /// Without the part that failed, the others would pass for all: only who sets a time expects that.
    #[test]
    fn an_aggregate_that_lacks_a_failed_part_is_no_success() {
        let count = "<payloadFactory media-type='text'><format>$1</format><args><arg expression='count($body/*)'/></args></payloadFactory><respond/>";
        let text = |how: &str, fails: &str, condition: &str, beside: &str| {
            format!(
                "<iterate expression='//i' {how}><target><sequence><filter xpath=\"//i='no'\"><then>{fails}</then><else>\
                 <aggregate>{condition}<onComplete expression='//i'>{count}</onComplete></aggregate></else></filter></sequence></target></iterate>\
                 <!--top-->{beside}<sequence name='inner' onError='quiet'><sequence key='none'/></sequence><sequence name='quiet'><log/></sequence>"
            )
        };
        let said = "<sequence name='fault'><payloadFactory media-type='text'><format>$1: $2</format><args><arg expression='$ctx:ERROR_CODE'/>\
            <arg expression='$ctx:ERROR_MESSAGE'/></args></payloadFactory><respond/></sequence>";
        let quiet = "<sequence name='fault'><log/></sequence>";
        let (fails, handled) = ("<sequence key='none'/>", "<sequence key='inner'/>");
        let lacks = "0: The aggregate cannot be completed: 2 parts have arrived, and another one has failed";
        let registry = crate::registry(testing::endpoints);
        for how in ["sequential='true'", ""] {
            for (fails, condition, beside, status, says) in [
                (fails, "", "", 500, "could not be processed"),
                (fails, "", quiet, 500, "could not be processed"),
                (handled, "", "", 500, "could not be processed"),
                (handled, "", said, 200, lacks),
                (handled, "<completeCondition><messageCount min='3'/></completeCondition>", said, 200, lacks),
                // As configured: with those that have come in time, or with enough.
                (handled, "<completeCondition timeout='1'/>", said, 200, "2"),
                (handled, "<completeCondition><messageCount min='2'/></completeCondition>", said, 200, "2"),
                // Nothing failed.
                ("<drop/>", "", said, 200, "2"),
            ] {
                let tested = testing::main(&registry, &text(how, fails, condition, beside));
                let response = tested.ask("POST", "/", XML, "<a><i>1</i><i>no</i><i>2</i></a>");
                assert!(
                    response.status == status && response.body.contains(says),
                    "{how} {fails} {condition} {beside}: {response:?}"
                );
            }
        }
    }

    /// A branch that fails beside the parts is none of them.
    #[test]
    fn what_fails_beside_a_split_is_not_missing_in_its_aggregate() {
        let text = "<clone id='beside' continueParent='true'><target><sequence><sequence key='none'/></sequence></target></clone>\
             <iterate id='x' expression='//i'><target><sequence><filter xpath=\"//i='no'\"><then><drop/></then><else><aggregate id='x'><onComplete expression='//i'>\
             <respond/></onComplete></aggregate></else></filter></sequence></target></iterate>";
        let tested = testing::main(&crate::registry(testing::endpoints), text);
        let response = tested.ask("POST", "/", XML, "<a><i>1</i><i>no</i></a>");
        assert_eq!((response.status, response.body.as_str()), (200, "<i>1</i>"));
    }

    /// A part that fails inside of an inner split is missing in the outer one too. One that is dropped there is not: the outer aggregate waits
    /// for what the inner one comes to without it.
    #[test]
    fn what_happens_in_an_inner_split_reaches_the_outer_aggregate() {
        let inner = |fails: &str| {
            format!(
                "<iterate id='out' expression='//o'><target><sequence><iterate id='in' expression='//i'><target><sequence>\
                 <filter xpath=\"//i='no'\"><then>{fails}</then></filter><aggregate id='in'><onComplete expression='//i'>\
                 <payloadFactory><format><o xmlns=''>$1</o></format><args><arg expression='count($body/*)'/></args></payloadFactory>\
                 <aggregate id='out'><onComplete expression='//o'><payloadFactory media-type='text'><format>all $1</format><args>\
                 <arg expression='sum(//o)'/></args></payloadFactory><respond/></onComplete></aggregate></onComplete></aggregate>\
                 </sequence></target></iterate></sequence></target></iterate>"
            )
        };
        let body = "<a><o><i>1</i><i>2</i></o><o><i>3</i><i>no</i></o></a>";
        for (fails, status, says) in [
            ("<log/>", 200, "all 4"),
            ("<drop/>", 200, "all 3"),
            ("<sequence key='none'/>", 500, "could not be processed"),
        ] {
            let tested = testing::main(&crate::registry(testing::endpoints), &inner(fails));
            let response = tested.ask("POST", "/", XML, body);
            assert!(response.status == status && response.body.contains(says), "{fails}: {response:?}");
        }
    }

    /// The part that splits into itself without an end is given up, and its message with it: a timer does not answer with the others.
    #[test]
    fn no_timer_completes_what_is_given_up() {
        let text = "<iterate expression='//i'><target><sequence><filter xpath=\"//i='no'\"><then><sequence key='deeper'/></then><else>\
             <aggregate><completeCondition timeout='1'/><onComplete expression='//i'><respond/></onComplete></aggregate></else></filter></sequence></target></iterate>\
             <!--top--><sequence name='deeper'><clone><target sequence='deeper'/></clone></sequence>";
        let tested = testing::main(&crate::registry(testing::endpoints), text);
        let response = tested.ask("POST", "/", XML, "<a><i>1</i><i>no</i></a>");
        assert_eq!(response.status, 500, "{response:?}");
    }

    /// The first part has come before a reload that moves all lists; it goes on in the configuration of the one that completes it.
    #[test]
    fn an_open_aggregate_goes_on_behind_a_reload() {
        let registry = crate::registry(testing::endpoints);
        let aggregate = |made: &str| {
            format!(
                "<aggregate><correlateOn expression='true()'/><completeCondition><messageCount min='2' max='2'/></completeCondition>\
                 <onComplete expression='//i'><property name='made' value='{made}'/><header name='X-Made' expression='$ctx:made' scope='transport'/>\
                 <header name='X-Parts' expression='count($body/*)' scope='transport'/><respond/></onComplete></aggregate>"
            )
        };
        let tested = testing::main(&registry, &aggregate("before"));
        assert_eq!(tested.ask("POST", "/", XML, "<i>1</i>").status, 202);
        let many = "<filter xpath='true()'><then><log/></then><else><drop/></else></filter>".repeat(5);
        let main = format!("{many}<filter xpath='true()'><then>{}</then></filter>", aggregate("behind"));
        let others: String = (0..5).map(|n| format!("<sequence name='a{n}'>{many}</sequence>")).collect();
        let text = format!(
            "<definitions xmlns='{}'>{others}<sequence name='main'>{main}</sequence></definitions>",
            config::SYNAPSE
        );
        tested.reload(&registry, &text);
        let response = tested.ask("POST", "/", XML, "<i>2</i>");
        let header = |name| response.headers.get(name);
        assert_eq!(
            (response.status, header("X-Made"), header("X-Parts")),
            (200, Some("behind"), Some("2")),
            "{response:?}"
        );
    }

    /// The id of a message is the client's to choose: another client, or the same one again, may send it too.
    #[test]
    fn messages_with_the_same_id_do_not_meet() {
        const SOAP: &[(&str, &str)] = &[("Content-Type", "text/xml"), ("SOAPAction", "urn:a")];
        let body = |value: &str| {
            format!(
                "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/' xmlns:w='http://www.w3.org/2005/08/addressing'>\
                 <s:Header><w:MessageID>urn:same</w:MessageID></s:Header><s:Body><a><i>{value}1</i><i>{value}2</i></a></s:Body></s:Envelope>"
            )
        };
        let aggregate = "<aggregate><onComplete expression='$body/*'><respond/></onComplete></aggregate>";
        let tested = testing::main(&crate::registry(testing::endpoints), &split(aggregate));
        for value in ["alice", "bob", "alice"] {
            let response = tested.ask("POST", "/", SOAP, &body(value));
            assert_eq!(response.status, 200, "{value}: {response:?}");
            let parts = [1, 2].map(|n| response.body.contains(&format!(">{value}{n}</i>")));
            assert_eq!(parts, [true; 2], "{response:?}");
        }
    }

    /// A sequence with a split and its aggregate may run more than once for one message.
    #[test]
    fn each_run_of_a_split_has_its_aggregate() {
        let once = "<iterate expression='//i' sequential='true' continueParent='true'><target><sequence>\
             <aggregate><onComplete expression='//i'><log level='custom'><property name='parts' expression='count($body/*)'/></log>\
             </onComplete></aggregate></sequence></target></iterate>";
        let flow = testing::main(&crate::registry(testing::endpoints), &format!("{once}{once}<respond/>"));
        let template = format!(
            "<definitions xmlns='{}'><sequence name='twice'>{once}</sequence>\
             <sequence name='main'><sequence key='twice'/><sequence key='twice'/><respond/></sequence></definitions>",
            config::SYNAPSE
        );
        let named = testing::configuration(&crate::registry(testing::endpoints), &template);
        for tested in [flow, named] {
            let (lines, _) =
                testing::logged("busbar::log", || tested.ask("POST", "/", XML, "<a><i>1</i><i>2</i></a>"));
            let completed = lines.iter().filter(|line| line.contains("parts = 2")).count();
            assert_eq!(completed, 2, "{lines:?}");
        }
    }

    /// Two aggregates of one artifact that change places in a reload: each goes on with its parts.
    #[test]
    fn a_reload_tells_aggregates_by_what_they_collect() {
        let registry = crate::registry(testing::endpoints);
        let aggregate = |id: &str, path: &str| {
            format!(
                "<filter source='$axis2:REST_URL_POSTFIX' regex='{path}'><then><aggregate id='{id}'><correlateOn expression='true()'/>\
                 <completeCondition><messageCount min='2' max='2'/></completeCondition><onComplete expression='//i'>\
                 <header name='X-By' value='{id}' scope='transport'/><header name='X-Parts' expression='count($body/*)' scope='transport'/><respond/>\
                 </onComplete></aggregate></then></filter>"
            )
        };
        let (orders, claims) = (aggregate("orders", "/orders"), aggregate("claims", "/claims"));
        let tested = testing::main(&registry, &format!("{orders}{claims}"));
        assert_eq!(tested.ask("POST", "/orders", XML, "<i>1</i>").status, 202);
        let text = format!(
            "<definitions xmlns='{}'><sequence name='main'>{claims}{orders}</sequence></definitions>",
            config::SYNAPSE
        );
        tested.reload(&registry, &text);
        assert_eq!(tested.ask("POST", "/claims", XML, "<i>1</i>").status, 202);
        let response = tested.ask("POST", "/orders", XML, "<i>2</i>");
        let header = |name| response.headers.get(name);
        assert_eq!(
            (response.status, header("X-By"), header("X-Parts")),
            (200, Some("orders"), Some("2")),
            "{response:?}"
        );
    }

    /// A message that has nothing to collect is its own client's fault, and costs those of others nothing.
    #[test]
    fn a_bad_message_does_not_spoil_the_parts_of_others() {
        let text = "<aggregate><correlateOn expression='true()'/><completeCondition><messageCount min='2' max='2'/></completeCondition>\
             <onComplete expression='//i'><header name='X-Parts' expression='count($body/*)' scope='transport'/><respond/></onComplete></aggregate>";
        let tested = testing::main(&crate::registry(testing::endpoints), text);
        assert_eq!(tested.ask("POST", "/", XML, "<bad/>").status, 500, "as the first one");
        assert_eq!(tested.ask("POST", "/", XML, "<i>1</i>").status, 202);
        assert_eq!(tested.ask("POST", "/", XML, "<bad/>").status, 500, "as the second one");
        let response = tested.ask("POST", "/", XML, "<i>2</i>");
        assert_eq!((response.status, response.headers.get("X-Parts")), (200, Some("2")), "{response:?}");
    }

    /// Putting a large aggregate together is not done on a worker, whether its last part, its timer or nothing else completes it.
    #[test]
    fn large_aggregates_are_put_together_elsewhere() {
        let items: String = (0..2_000).map(|n| format!("<i>{n}</i>")).collect();
        let condition = |text: &str| {
            format!(
                "<aggregate><completeCondition timeout='1'>{text}</completeCondition><onComplete expression='//i'><respond/></onComplete></aggregate>"
            )
        };
        for (aggregate, parts) in
            [(condition(""), 2_000), (condition("<messageCount min='5000' max='5000'/>"), 2_000)]
        {
            let tested = testing::main(&crate::registry(testing::endpoints), &split(&aggregate));
            let response = tested.ask("POST", "/", XML, &format!("<a>{items}</a>"));
            assert_eq!(response.status, 200, "{parts}: {response:?}");
            let ran = flow::compute::Compute::of(&tested.bus.services()).figures().runs;
            assert!(ran > 0, "{aggregate}");
        }
    }

    /// A part that waits is not in a step any more.
    #[test]
    fn a_trace_is_not_in_an_aggregate_for_ever() {
        let text = split("<aggregate><onComplete expression='//i'><respond/></onComplete></aggregate>");
        let tested = testing::main(&crate::registry(testing::endpoints), &text);
        tested.bus.services().observers.trace("main", true);
        assert_eq!(tested.ask("POST", "/", XML, "<a><i>1</i><i>2</i><i>3</i></a>").status, 200);
        let trace = flow::observe::Recordings::of(&tested.bus.services()).all()[0].json();
        assert_eq!(trace["running"], serde_json::json!([]), "{trace}");
        let ends = |event: &&serde_json::Value| event["step"] == "aggregate";
        assert_eq!(trace["events"].as_array().map(|all| all.iter().filter(ends).count()), Some(3), "{trace}");
    }

    #[test]
    fn the_original_may_be_a_part_too() {
        // It goes on behind the split and comes to the same aggregate: first, last, or alone.
        let count = "<payloadFactory media-type='text'><format>$1</format><args>\
            <arg expression='count($body/*)'/></args></payloadFactory><respond/>";
        let aggregate = |condition: &str| {
            format!(
                "<sequence name='meet'><aggregate><completeCondition>{condition}</completeCondition>\
                 <onComplete expression='$body/*'>{count}</onComplete></aggregate></sequence>"
            )
        };
        let correlate = "<property name='aggregateCorelation' expression=\"get-property('MessageID')\"/>";
        let drops = "<target><sequence><filter xpath=\"//i = 'no'\"><then><drop/></then><else><sequence key='meet'/></else></filter></sequence></target>";
        for (split, count, body, answer) in [
            ("sequential='true'", 2, "<a><i/><i>no</i></a>", "2"),
            ("", 2, "<a><i/><i>no</i></a>", "2"),
            // One of three is missing, and nobody is left who could bring it: they are all.
            ("sequential='true'", 3, "<a><i/><i>no</i><i>no</i></a>", "2"),
            ("", 3, "<a><i/><i>no</i><i>no</i></a>", "2"),
        ] {
            let text = format!(
                "{correlate}<property name='messageSequence' value='0/{count}'/>\
                 <iterate expression='//i' continueParent='true' {split}>{drops}</iterate>\
                 <sequence key='meet'/><!--top-->{}",
                aggregate("")
            );
            assert_eq!(ask(&text, XML, body).body, answer, "{split} {body}");
        }
        // The original waits alone and a timer answers.
        let text = format!(
            "<iterate expression='//i' continueParent='true'><target><sequence><drop/></sequence></target></iterate>{correlate}\
             <property name='messageSequence' value='0/3'/><aggregate><completeCondition timeout='1'/>\
             <onComplete expression='$body/*'>{count}</onComplete></aggregate>"
        );
        assert_eq!(ask(&text, XML, "<a><i/></a>").body, "1");
    }

    #[test]
    fn parts_are_moved_into_one_body() {
        let text = |complete: &str| {
            format!(
                "<iterate expression='//i' sequential='true'><target><sequence>\
            <payloadFactory><format><w xmlns=''><k>$1</k><q/></w></format><args><arg expression='//i'/></args></payloadFactory>\
            <aggregate><onComplete {complete}>\
            <payloadFactory><format><r xmlns=''>$1</r></format><args><arg expression='$body/*'/></args></payloadFactory><respond/></onComplete></aggregate>\
            </sequence></target></iterate>"
            )
        };
        let body = "<a><i>1</i><i>2</i></a>";
        for (complete, answer) in [
            ("expression='//k'", "<r><k>1</k><k>2</k></r>"),
            ("", "<r><w><k>1</k><q/></w><w><k>2</k><q/></w></r>"),
        ] {
            let made = ask(&text(complete), XML, body).body;
            assert_eq!(testing::without_envelope(&made), answer, "{complete}");
        }
    }

    /// Putting pieces together comes to the same as changing the tree of the first part.
    #[test]
    fn pieces_are_what_the_trees_would_be() {
        const SOAP: &[(&str, &str)] = &[("Content-Type", "text/xml"), ("SOAPAction", "x")];
        let registry = crate::registry(testing::endpoints);
        let tested = testing::main(&registry, "");
        let envelope = |inside: &str| {
            format!(
                "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/' xmlns:e='urn:e'><s:Header><h><i>h</i></h></s:Header>\
                 <s:Body id='b'>{inside}</s:Body></s:Envelope>"
            )
        };
        let bodies = [
            "<i>1</i>",
            "\n <i a=\"'\">1</i>\n <!--c--><k><i>2</i>t<i xmlns='urn:d'><j/></i></k> <l><m><i>3</i></m><i/></l>text",
            "<k xmlns='urn:d'><i xmlns=''><![CDATA[<]]></i><e:i e:a='&amp;'/></k>",
            "<i><i>inner</i></i>",
            "<k/>",
            "",
        ];
        let around = message::XmlValue::copy_of(
            &xml::Document::parse_str("<all xmlns='urn:all'><first/></all>", &Default::default()).unwrap(),
            &[NodeId::from_index(1).unwrap()],
        );
        let expressions = [
            "//i",
            "//*[local-name()='i']",
            "$body/*",
            "//i/text()",
            "//*[local-name()='Body']",
            "//i[1]|//j",
            "//h",
        ];
        let settings = flow::Settings::default();
        let scope = config::Scope::default();
        let canonical = |text| xml::c14n::of_text(text, xml::c14n::Algorithm::Exclusive).expect("it is XML");
        for (first, second) in
            bodies.iter().flat_map(|first| bodies.iter().map(move |second| (first, second)))
        {
            for expression in expressions.into_iter().map(Some).chain([None]) {
                for enclosing in [None, Some("around")] {
                    let core = Core {
                        number: Arc::new(Number(1)),
                        correlation: Correlation { sequence: "s".into(), id: "i".into() },
                        correlate_on: None,
                        min: None,
                        max: None,
                        timeout: None,
                        expression: expression.map(|text| {
                            Expression::compile(text, &scope, diagnostics::Span::BUILT_IN, &settings)
                                .expect("it compiles")
                        }),
                        enclosing: enclosing.map(Arc::from),
                        child: false,
                        then: Then::Nothing,
                    };
                    let merged = |trees: bool, format: message::Format| {
                        let [mut one, mut other] =
                            [first, second].map(|body| tested.context(SOAP, &envelope(body)));
                        one.properties.set("around", Value::Xml(Arc::new(around.clone())));
                        let others = vec![core.taken(&mut other).expect("nothing stops it")];
                        let result = match trees {
                            false => core.merge(&mut one, others),
                            true => core.selected(&mut one).and_then(|nodes| {
                                let around = core
                                    .enclosing
                                    .as_ref()
                                    .map(|name| super::enclosing(name, &one))
                                    .transpose()?;
                                core.merge_trees(&mut one, nodes, around, &others)
                            }),
                        };
                        let limits = message::PayloadLimits::default();
                        result
                            .map_err(|fault| fault.to_string())
                            .map(|()| one.payload.write(format, &limits).unwrap())
                    };
                    for format in [message::Format::Soap(message::SoapVersion::V11), message::Format::Xml] {
                        let case = format!("{first} and {second} by {expression:?} in {enclosing:?}");
                        match (merged(false, format), merged(true, format)) {
                            (Ok(pieces), Ok(trees)) if trees.is_empty() => {
                                assert_eq!(pieces, trees, "{case}")
                            }
                            (Ok(pieces), Ok(trees)) => {
                                assert_eq!(canonical(pieces), canonical(trees), "{case}")
                            }
                            (pieces, trees) => assert_eq!(pieces, trees, "{case}"),
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn json_is_listed_or_merged() {
        for (complete, answer) in [
            ("expression='json-eval($)'", r#"[{"a":1},{"a":2}]"#),
            ("expression='json-eval($.a)' aggregateElementType='root'", "[1,2]"),
            ("expression='json-eval($)' aggregateElementType='child'", r#"{"a":[1,2]}"#),
        ] {
            let text = format!(
                "<iterate id='x' expression='json-eval($)' sequential='true'><target><sequence><aggregate id='x'>\
                <onComplete {complete}><respond/></onComplete></aggregate></sequence></target></iterate>"
            );
            assert_eq!(ask(&text, JSON, r#"[{"a":1},{"a":2}]"#).body, answer, "{complete}");
        }
    }

    #[test]
    fn messages_that_belong_to_nothing_pass_and_those_that_do_not_fit_fault() {
        let text = "<aggregate><onComplete><drop/></onComplete></aggregate><respond/>";
        assert_eq!(ask(text, XML, "<a/>").body, "<a/>");
        let text = "<aggregate><correlateOn expression='//b = 1'/><completeCondition><messageCount min='1' max='1'/></completeCondition>\
            <onComplete expression='//b'><respond/></onComplete></aggregate><respond/>";
        assert_eq!(ask(text, XML, "<a><b>1</b></a>").body, "<b>1</b>");
        assert_eq!(ask(text, XML, "<a><b>2</b></a>").body, "<a><b>2</b></a>");
        for (complete, says) in [
            ("expression='//nope'", "Could not find matching elements"),
            ("expression='/*'", "cannot be aggregated"),
            ("expression='json-eval($.nope)'", "selects nothing"),
            ("expression='//i' enclosingElementProperty='none'", "holds no XML element"),
            ("expression='//i' sequence='{$ctx:none}'", "cannot be found"),
        ] {
            let text = split(&format!("<aggregate><onComplete {complete}><drop/></onComplete></aggregate>"))
                + "<!--top--><sequence name='fault'><payloadFactory media-type='text'><format>$1: $2 / $3</format><args>\
                   <arg expression=\"get-property('ERROR_CODE')\"/><arg expression=\"get-property('ERROR_MESSAGE')\"/>\
                   <arg expression=\"get-property('ERROR_DETAIL')\"/></args>\
                   </payloadFactory><respond/></sequence>";
            let response = ask(&text, XML, "<a><i/></a>");
            assert!(
                response.body.contains(says) && response.body.starts_with("0: "),
                "{complete}: {response:?}"
            );
        }
    }

    #[test]
    fn mistakes_are_found_when_the_configuration_loads() {
        for (text, says) in [
            ("<aggregate><correlateOn/><onComplete><drop/></onComplete></aggregate>", "needs an expression"),
            (
                "<aggregate><completeCondition timeout='x'/><onComplete><drop/></onComplete></aggregate>",
                "not a number of seconds",
            ),
            ("<aggregate/>", "nothing uses the result"),
            (
                "<aggregate><onComplete expresion='//a'><drop/></onComplete></aggregate>",
                "no attribute `expresion`",
            ),
        ] {
            let tested = testing::main(&crate::registry(testing::endpoints), text);
            assert!(tested.reports(says), "{text}: {:?}", tested.found);
        }
    }

    #[test]
    fn objects_merge_and_conflicts_become_arrays() {
        let parse = |text: &str| serde_json::from_str(text).unwrap();
        for (parts, merged) in [
            (vec![r#"{"a":1}"#, r#"{"b":2}"#], r#"{"a":1,"b":2}"#),
            (vec![r#"{"a":1}"#, r#"{"a":2}"#, r#"{"a":3}"#], r#"{"a":[1,2,3]}"#),
            (vec![r#"{"a":[1]}"#, r#"{"a":2}"#], r#"{"a":[1,2]}"#),
            (vec![r#"{"a":1}"#, r#"{"a":[2]}"#], r#"{"a":[1,2]}"#),
            (vec!["{}"], "{}"),
        ] {
            let value = one_object(parts.iter().map(|part| parse(part)).collect()).unwrap();
            assert_eq!(value.to_string(), merged, "{parts:?}");
        }
        assert!(one_object(vec![parse("[1]")]).is_err());
    }
}
