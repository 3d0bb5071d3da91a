//! `scatter-gather`: copies of the message through a sequence each; what they bring becomes one message.

use crate::branches::{Branches, Brought};
use crate::support::{check_enough, enough};
use crate::xml_value;
use config::Element;
use flow::{
    Attribute, Branched, Child, Children, Compiled, Compiler, Context, Definition, Expression, Family, Fault,
    Flow, Inside, KeyValue, ListId, Mediator, Moves, Need, Page, Step, Values,
};
use message::{Assembly, Envelope, Shell, SoapVersion, Value, XmlValue};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use xml::{NodeId, NodeKind};

/// `<scatter-gather target="body|variable" result-content-type="JSON|XML"><aggregation …/><sequence/>+</scatter-gather>`
pub const DEFINITION: Definition = Definition {
    name: "scatter-gather",
    summary: "Runs sequences on copies of the message and collects what they make of it.",
    attributes: &[
        Attribute::optional(
            "parallel-execution",
            Values::Boolean,
            "all sequences at once, not one after the other",
        )
        .or("true"),
        Attribute::required("target", Values::Text, "`body` or `variable`: where the result goes"),
        Attribute::optional("target-variable", Values::Text, "the variable, with target=\"variable\""),
        Attribute::required("result-content-type", Values::Text, "JSON (an array) or XML (elements in one)"),
        Attribute::optional(
            "result-enclosing-element",
            Values::Text,
            "the name of the element around XML results",
        ),
    ],
    children: Children::Elements(&["aggregation", "sequence"]),
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Splitting,
    semantics: "Each sequence runs on a copy of the message, all at once, or with `parallel-execution=\"false\"` one after the other. When a sequence has ended, the
`expression` selects its result from its message, if the `condition` holds or there is none. The results are in the order in which the
sequences ended. With JSON they become an array, with XML elements in `result-enclosing-element`; a text is parsed as XML then.

Collecting ends when all sequences have ended, when there are `min-messages` or `max-messages` results, or when the `timeout` is over. With `target=\"body\"` the
result becomes the body, with its content type, and everything else of the message is that of the copy that was collected last. With `variable` the message stays
as it was. Otherwise properties and variables that a sequence sets are lost with its copy. Then the flow goes on.

A sequence that ends early (`drop`) or fails has no result; if it fails, its fault sequence runs on the copy. A sequence that answers the client
(`respond`, also in its fault sequence) ends the flow. If a sequence has failed, there are fewer results than `min-messages` and `max-messages` ask for, and there is
no `timeout` or no result, the flow ends; if only handlers inside of the sequences (`onError`) handled the failure, the flow faults. If no sequence has a result and none has failed,
the result is empty.",
    inside: &[
        Inside::new(
            "aggregation",
            "what is collected, and how long",
            &[
                Attribute::required("expression", Values::Expression, "what is taken of each sequence's message"),
                Attribute::optional("condition", Values::Expression, "only what it holds for is collected"),
                Attribute::optional("timeout", Values::Integer, "milliseconds; absent or 0: no limit of its own"),
                Attribute::optional("min-messages", Values::Key, "this many results are enough"),
                Attribute::optional("max-messages", Values::Key, "this many results are enough"),
            ],
        ),
        Inside::new("sequence+", "what a copy runs through", &[]).with("mediator*"),
    ],
    needs: &[(Need::Whole, "always: the message is copied")],
    refused: &[
        (
            "<scatter-gather target=\"body\" result-content-type=\"JSON\"><sequence/></scatter-gather>",
            "`scatter-gather` needs an `aggregation` with an `expression`",
        ),
        (
            "<scatter-gather target=\"body\" result-content-type=\"JSON\"><aggregation expression=\"${payload}\"/></scatter-gather>",
            "`scatter-gather` needs a `sequence`",
        ),
        (
            "<scatter-gather target=\"body\" result-content-type=\"XML\"><aggregation expression=\"//a\"/><sequence/></scatter-gather>",
            "`scatter-gather` needs a `result-enclosing-element`",
        ),
        (
            "<scatter-gather target=\"variable\" result-content-type=\"JSON\"><aggregation expression=\"${payload}\"/><sequence/></scatter-gather>",
            "`scatter-gather` needs a `target-variable`",
        ),
        (
            "<scatter-gather target=\"body\" result-content-type=\"JSON\"><aggregation expression=\"${payload}\" timeout=\"5s\"/><sequence/></scatter-gather>",
            "`5s` is not a number of milliseconds",
        ),
    ],
    faults: &[
        (
            "0",
            "the `expression` selects nothing, or something that cannot be collected, a number of messages is not a number, or nothing was \
             collected before the timeout (status 504)",
        ),
        (
            "601000",
            "`expression` or `condition` reads a body that is not what its content type says, or larger than a flow may hold",
        ),
    ],
};

/// Attributes of `aggregation`.
const AGGREGATION: &[&str] = &["expression", "condition", "timeout", "min-messages", "max-messages"];

/// The mediator; a compute thread that takes something of a copy keeps its core.
struct ScatterGather(Arc<Core>);

struct Core {
    branches: Vec<ListId>,
    parallel: bool,
    aggregation: Aggregation,
    /// `None`: the body.
    variable: Option<Arc<str>>,
    /// The element around XML results; `None`: JSON.
    around: Option<String>,
}

struct Aggregation {
    /// What is taken of each.
    expression: Expression,
    /// Only those that it holds for are collected.
    condition: Option<Expression>,
    timeout: Option<Duration>,
    /// So many are enough.
    min: Option<KeyValue>,
    max: Option<KeyValue>,
}

/// What the copies brought.
#[derive(Default)]
struct Gathered {
    parts: Vec<Brought>,
    /// About how many bytes they take.
    bytes: usize,
    /// The copy that the last one is of.
    last: Option<Box<Context>>,
    /// One that failed.
    failed: Option<Box<Context>>,
    /// One that answers the client.
    answer: Option<Box<Context>>,
    /// The timeout came first.
    late: bool,
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let place = element.start_tag();
    let needs = |message: &str, expected: &str, compiler: &mut Compiler<'_>| -> Compiled {
        compiler.error("missing-attribute", message, place, expected);
        None
    };
    // Both are there: an element without is refused.
    let (target, result) = (element.attribute("target")?, element.attribute("result-content-type")?);
    let word = |attribute: &config::Attribute| attribute.value.trim().to_ascii_lowercase();
    let variable = match word(target).as_str() {
        "body" => None,
        "variable" => match element.attr("target-variable").map(str::trim).filter(|name| !name.is_empty()) {
            Some(name) => Some(Arc::from(name)),
            None => return needs("`scatter-gather` needs a `target-variable`", "its name", compiler),
        },
        _ => {
            compiler.none_of(target, "a place for results", &["body", "variable"]);
            return None;
        }
    };
    let around = match word(result).as_str() {
        "json" => None,
        "xml" => match element.attr("result-enclosing-element").map(str::trim) {
            Some(name) if xml::is_ncname(name) => Some(name.to_owned()),
            _ => {
                return needs(
                    "`scatter-gather` needs a `result-enclosing-element`",
                    "the name of the element around the results",
                    compiler,
                );
            }
        },
        _ => {
            compiler.none_of(result, "a type of result", &["JSON", "XML"]);
            return None;
        }
    };
    let Some(aggregation) =
        element.child("aggregation").filter(|child| child.attribute("expression").is_some())
    else {
        return needs(
            "`scatter-gather` needs an `aggregation` with an `expression`",
            "what is taken of each sequence",
            compiler,
        );
    };
    let aggregation = Aggregation::compile(aggregation, compiler)?;
    let sequences = element.children_named("sequence").enumerate();
    let branches: Vec<_> = sequences
        .map(|(index, inside)| compiler.list(inside, format!("sequence {} of scatter-gather", index + 1)))
        .collect();
    if branches.is_empty() {
        compiler.error(
            "missing-element",
            "`scatter-gather` needs a `sequence`",
            place,
            "what the copies run through",
        );
        return None;
    }
    let parallel = element.attribute("parallel-execution").is_none_or(|attribute| word(attribute) != "false");
    Some(Box::new(ScatterGather(Arc::new(Core { branches, parallel, aggregation, variable, around }))))
}

impl Aggregation {
    fn compile(aggregation: &Element, compiler: &mut Compiler<'_>) -> Option<Aggregation> {
        for attribute in aggregation.attributes() {
            if !AGGREGATION.contains(&&*attribute.name.local) {
                let message = format!("`aggregation` has no attribute `{}`", attribute.name.local);
                compiler.warning("unknown-attribute", message, attribute.name_span, "this has no effect");
            }
        }
        let timeout = match aggregation.attribute("timeout") {
            None => None,
            // As with the counts, -1 says that there is none.
            Some(attribute) => match attribute.value.trim().parse::<i64>() {
                Ok(milliseconds) => u64::try_from(milliseconds)
                    .ok()
                    .filter(|&milliseconds| milliseconds > 0)
                    .map(Duration::from_millis),
                Err(_) => {
                    let message = format!("`{}` is not a number of milliseconds", attribute.value);
                    compiler.error("bad-value", message, attribute.value_span, "expected whole milliseconds");
                    return None;
                }
            },
        };
        let expression = compiler.expression(aggregation, "expression")?;
        let condition = match aggregation.attribute("condition") {
            Some(_) => Some(compiler.expression(aggregation, "condition")?),
            None => None,
        };
        let (min, max) = (
            compiler.key_value(aggregation, "min-messages"),
            compiler.key_value(aggregation, "max-messages"),
        );
        for count in [&min, &max].into_iter().flatten().filter_map(KeyValue::literal) {
            if count.trim().parse::<i64>().is_err() {
                let message = format!("`{count}` is not a number of messages");
                compiler.error("bad-value", message, aggregation.start_tag(), "expected a number");
                return None;
            }
        }
        check_enough(aggregation, ["min-messages", "max-messages"], compiler);
        Some(Aggregation { expression, condition, timeout, min, max })
    }
}

impl Mediator for ScatterGather {
    fn moves(&self) -> Moves {
        Moves::Never
    }

    fn need(&self) -> Need {
        Need::Whole
    }

    fn reason(&self) -> String {
        "copies the message".to_owned()
    }

    fn lists(&self) -> Vec<(String, ListId)> {
        self.0
            .branches
            .iter()
            .enumerate()
            .map(|(index, &list)| (format!("sequence {}", index + 1), list))
            .collect()
    }

    fn goes_on_alone(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        Step::Wait(Box::pin(self.0.gather(context)))
    }
}

impl Core {
    async fn gather(self: &Arc<Core>, context: &mut Context) -> Result<Flow, Fault> {
        let core = Arc::clone(self);
        let limits = move |context: &mut Context| {
            enough([&core.aggregation.min, &core.aggregation.max], "collect", context)
        };
        let enough = flow::work_out(context, limits).await?.unwrap_or(usize::MAX);
        let mut original = context.branch();
        let lists = self.branches.iter();
        let copies = lists.map(|&list| {
            let child = original.silent_child("a sequence of scatter-gather");
            (original.branch(), list, child)
        });
        let mut branches = Branches::new(copies, self.parallel);
        let gathered = self.collect(&mut branches, enough).await;
        // Those that are late end by themselves, also where one could not be collected; what they bring is dropped.
        branches.leave();
        let Gathered { parts, bytes, last, failed, answer, late } = gathered?;
        if let Some(copy) = answer {
            context.answer_with(copy);
            return Ok(Flow::Respond);
        }
        // Only who sets a time expects that results may be missing.
        if let Some(copy) = failed
            && (parts.is_empty() || parts.len() < enough && self.aggregation.timeout.is_none())
        {
            context.fail_as(&copy);
            // What handled the faults of the sequences inside of them knows nothing of this flow, which cannot go on.
            if !copy.ran_handlers_of(context) {
                let why = copy.properties.get("ERROR_MESSAGE").map(ToString::to_string);
                let which = if parts.is_empty() { "every" } else { "a" };
                let fault = Fault::new(format!("{which} sequence of scatter-gather has failed"));
                return Err(fault.because(why.unwrap_or_default()));
            }
            return Ok(Flow::Stop);
        }
        if parts.is_empty()
            && let Some(limit) = self.aggregation.timeout.filter(|_| late)
        {
            let message = format!("no sequence of scatter-gather has ended within {} ms", limit.as_millis());
            return Err(Fault { status: 504, ..Fault::new(message) });
        }
        let core = Arc::clone(self);
        let finish = move |context: &mut Context| {
            core.finish(parts, last, context);
            Ok(Flow::Next)
        };
        flow::compute::by_size(context, bytes, finish).await
    }

    /// Waits until there are `enough` results, all copies have ended, one of them has answered, or it is late.
    async fn collect<I>(
        self: &Arc<Core>,
        branches: &mut Branches<I>,
        enough: usize,
    ) -> Result<Gathered, Fault>
    where
        I: Iterator<Item = (Box<Context>, ListId, Child)>,
    {
        let deadline = self.aggregation.timeout.map(|limit| Instant::now() + limit);
        let mut gathered = Gathered::default();
        while gathered.parts.len() < enough {
            let next = match deadline {
                None => branches.next().await?,
                Some(deadline) => match tokio::time::timeout_at(deadline, branches.next()).await {
                    Ok(next) => next?,
                    Err(_) => {
                        gathered.late = true;
                        None
                    }
                },
            };
            match next {
                None => break,
                Some((_, Branched::Whole(mut copy))) => {
                    copy.receive_body().await?;
                    let core = Arc::clone(self);
                    gathered.bytes += copy.payload.extent();
                    if let Some(part) = flow::work_out(&mut copy, move |copy| core.part(copy)).await? {
                        gathered.parts.push(part);
                        gathered.last = Some(copy);
                    }
                }
                Some((_, Branched::Nothing)) => {}
                Some((_, Branched::Failed(copy))) => gathered.failed = Some(copy),
                Some((_, Branched::Answer(copy))) => {
                    gathered.answer = Some(copy);
                    break;
                }
            }
        }
        Ok(gathered)
    }

    /// What a copy brings; `None`: the condition leaves it out.
    fn part(&self, copy: &mut Context) -> Result<Option<Brought>, Fault> {
        if let Some(condition) = &self.aggregation.condition
            && !condition.boolean(copy)?
        {
            return Ok(None);
        }
        let source = self.aggregation.expression.source();
        let nothing =
            || Fault::new(format!("Error evaluating expression: {source}")).because("it selects nothing");
        if self.around.is_none() {
            let value = match self.aggregation.expression.is_json() {
                true => self.aggregation.expression.json_values(copy)?,
                false => self.aggregation.expression.value(copy)?.map(json),
            };
            // As everywhere, a `${…}` that fails is an empty text.
            let value = value.or_else(|| source.starts_with("${").then(|| "".into()));
            return Ok(Some(Brought::Json(value.ok_or_else(nothing)?)));
        }
        let element = |value: &serde_json::Value| {
            let mut envelope = Envelope::empty(SoapVersion::V11);
            let root = message::json::to_xml(value, &mut envelope.document, envelope.body);
            Some(Brought::Xml(XmlValue::copy_of(&envelope.document, &[root])))
        };
        if self.aggregation.expression.is_json() {
            return Ok(element(&self.aggregation.expression.json_values(copy)?.ok_or_else(nothing)?));
        }
        if self.aggregation.expression.xpath().is_some() {
            if self.aggregation.expression.need().is_whole() {
                copy.shared_envelope()?;
            }
            let nodes = self.aggregation.expression.nodes(copy)?;
            let envelope = copy.shared_envelope()?;
            let document = &envelope.document;
            let nodes: Vec<NodeId> =
                nodes.into_iter().filter(|&node| document.kind(node) == NodeKind::Element).collect();
            if !nodes.is_empty() && self.variable.is_none() && is_like_ours(&envelope) {
                return Ok(Some(Brought::Pieces(envelope, nodes)));
            }
            if !nodes.is_empty() {
                return Ok(Some(Brought::Xml(XmlValue::copy_of(document, &nodes))));
            }
        }
        match self.aggregation.expression.value(copy)?.ok_or_else(nothing)? {
            Value::Xml(nodes) => Ok(Some(Brought::Xml((*nodes).clone()))),
            Value::Json(value) => Ok(element(&value)),
            text => match xml_value::parse(&text.to_string()) {
                Ok(Value::Xml(nodes)) => Ok(Some(Brought::Xml((*nodes).clone()))),
                Ok(_) => Err(nothing()),
                Err(why) => {
                    Err(Fault::new(format!("what {source} gives cannot be collected as XML")).because(why))
                }
            },
        }
    }

    /// Makes one message of the parts, in the order in which they came.
    fn finish(&self, parts: Vec<Brought>, last: Option<Box<Context>>, context: &mut Context) {
        if let (Some(around), None, Some(pieces)) = (&self.around, &self.variable, Brought::pieces(&parts))
            && !pieces.is_empty()
        {
            if let Some(last) = last {
                context.continue_as(last);
            }
            context.remove_axis2("NO_ENTITY_BODY");
            let mut shell = Envelope::empty(SoapVersion::V11);
            let place = shell.document.append_element(shell.body, "", "", around);
            context.payload.set_assembly(Assembly::new(Arc::new(Shell::within(shell, place)), pieces));
            context.set_axis2("messageType", Value::from("application/xml"));
            return;
        }
        let result = match &self.around {
            None => Value::Json(Arc::new(Brought::array(parts))),
            Some(around) => Value::Xml(Arc::new(Brought::element(around, &parts))),
        };
        if let Some(name) = &self.variable {
            context.variables.set(Arc::clone(name), result);
            return;
        }
        if let Some(last) = last {
            context.continue_as(last);
        }
        context.remove_axis2("NO_ENTITY_BODY");
        match result {
            Value::Json(value) => {
                context.payload.set_json_value((*value).clone());
                context.set_axis2("messageType", Value::from("application/json"));
            }
            Value::Xml(xml) => {
                let mut envelope = Envelope::empty(SoapVersion::V11);
                for &node in &xml.nodes {
                    envelope.document.copy_from(envelope.body, &xml.document, node);
                }
                context.payload.set_envelope(envelope);
                context.set_axis2("messageType", Value::from("application/xml"));
            }
            _ => {}
        }
    }
}

/// Whether what is taken out of an envelope needs no namespace of it that the envelopes made here do not have.
fn is_like_ours(envelope: &Envelope) -> bool {
    envelope.version == SoapVersion::V11 && envelope.document.prefix(envelope.root) == "soapenv"
}

/// A value as JSON: what is JSON stays so, XML gets its JSON form.
fn json(value: Value) -> serde_json::Value {
    match value {
        Value::Json(json) => (*json).clone(),
        Value::Integer(number) => number.into(),
        Value::Double(number) | Value::JavaDouble(number) => number.into(),
        Value::Boolean(truth) => truth.into(),
        Value::String(text) => (*text).into(),
        Value::Xml(xml) => match xml.nodes.first() {
            Some(&node) if xml.nodes.len() == 1 && xml.document.kind(node) == NodeKind::Element => {
                let text = message::json::from_xml(&xml.document, node);
                serde_json::from_str(&text).unwrap_or_else(|_| text.into())
            }
            _ => xml.string_value().into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::testing::{self, Tested};
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    const JSON: (&str, &str) = ("Content-Type", "application/json");

    fn compiled(attributes: &str, inside: &str) -> Tested {
        let text = format!(
            "<scatter-gather {attributes}>{inside}</scatter-gather><property name='after' value='1'/><respond/>"
        );
        let tested = testing::main(&crate::registry(testing::endpoints), &text);
        assert!(tested.found.is_empty(), "{attributes} {inside}: {:?}", tested.found);
        tested
    }

    /// A sequence that makes JSON.
    fn makes(json: &str) -> String {
        format!(
            "<sequence><payloadFactory media-type='json'><format>{json}</format></payloadFactory></sequence>"
        )
    }

    const BODY: &str = "target='body' result-content-type='JSON'";
    const SEQUENCES: &str = "parallel-execution='false' target='Body' result-content-type='json'";

    #[test]
    fn what_the_sequences_bring_becomes_one_message() {
        let pet = |name: &str| makes(&format!("{{\"pet\":\"{name}\"}}"));
        let both = format!("{}{}", pet("a"), pet("b"));
        let element =
            "<sequence><payloadFactory><format><r xmlns=''><q>1</q></r></format></payloadFactory></sequence>";
        let xml = "target='body' result-content-type='XML' result-enclosing-element='all' parallel-execution='false'";
        for (attributes, aggregation, sequences, made) in [
            (SEQUENCES, "expression='json-eval($.pet)'", both.clone(), r#"["a","b"]"#),
            (SEQUENCES, "expression='json-eval($)'", both.clone(), r#"[{"pet":"a"},{"pet":"b"}]"#),
            (SEQUENCES, "expression='string(//pet)'", both.clone(), r#"["a","b"]"#),
            (SEQUENCES, "expression='json-eval($.pet)' condition=\"//pet = 'b'\"", both.clone(), r#"["b"]"#),
            (SEQUENCES, "expression='json-eval($.pet)' condition='false()'", both.clone(), "[]"),
            (SEQUENCES, "expression='json-eval($.pet)' min-messages='1'", both.clone(), r#"["a"]"#),
            (
                SEQUENCES,
                "expression='json-eval($.pet)' max-messages='{json-eval($.n)}' min-messages='-1'",
                both.clone(),
                r#"["a"]"#,
            ),
            (
                SEQUENCES,
                "expression='json-eval($.pet)'",
                format!("{}<sequence><drop/></sequence>", pet("a")),
                r#"["a"]"#,
            ),
            (BODY, "expression='json-eval($.pet)'", pet("a"), r#"["a"]"#),
            (xml, "expression='$body/*'", element.repeat(2), "<all><r><q>1</q></r><r><q>1</q></r></all>"),
            // An element stays one, also if it holds nothing but text.
            (xml, "expression='//q'", element.to_owned(), "<all><q>1</q></all>"),
            (
                xml,
                "expression='json-eval($.pet)'",
                makes(r#"{"pet":{"k":1}}"#),
                "<all><jsonObject><k>1</k></jsonObject></all>",
            ),
            (xml, "expression=\"string('&lt;a/>')\"", element.to_owned(), "<all><a/></all>"),
        ] {
            let tested = compiled(attributes, &format!("<aggregation {aggregation}/>{sequences}"));
            let response = tested.ask("POST", "/", &[JSON], r#"{"n":1}"#);
            assert_eq!(testing::without_envelope(&response.body), made, "{aggregation} {sequences}");
            let kind = if made.starts_with('<') { "application/xml" } else { "application/json" };
            assert!(
                response.headers.get("Content-Type").is_some_and(|value| value.starts_with(kind)),
                "{response:?}"
            );
        }
    }

    #[test]
    fn a_variable_takes_the_result_and_the_message_stays() {
        let sequence = "<sequence><property name='p' value='1'/><payloadFactory media-type='json'><format>{\"k\":2}</format></payloadFactory></sequence>";
        for (attributes, made) in [
            ("target='variable' target-variable='o' result-content-type='JSON'", r#"[{"k":2}]"#),
            (
                "target='variable' target-variable='o' result-content-type='XML' result-enclosing-element='all'",
                "<all><jsonObject><k>2</k></jsonObject></all>",
            ),
        ] {
            let mut end =
                compiled(attributes, &format!("<aggregation expression='json-eval($)'/>{sequence}"))
                    .run(&[JSON], "{}");
            let value = match end.context.variables.get("o") {
                Some(Value::Xml(tree)) => tree.to_xml(),
                other => other.map(ToString::to_string).unwrap_or_default(),
            };
            assert_eq!(testing::without_envelope(&value), made);
            assert_eq!(
                (end.payload().as_str(), end.property("p"), end.property("after").as_deref()),
                ("{}", None, Some("1"))
            );
        }
    }

    #[test]
    fn nobody_waits_for_the_slow_and_the_failing() {
        let fails = "<sequence><sequence key='{$ctx:none}'/></sequence>";
        let aggregation = "<aggregation expression='json-eval($.a)'/>";
        // Without the one that fails the others would pass for all, unless a time or a number says how many are enough.
        let both = format!("{aggregation}{}{fails}", makes("{\"a\":1}"));
        let response = compiled(BODY, &both).ask("POST", "/", &[JSON], "{}");
        assert_eq!(response.status, 500, "{response:?}");
        for condition in ["timeout='60000'", "min-messages='1'", "max-messages='1'"] {
            let both = both.replace("<aggregation", &format!("<aggregation {condition}"));
            assert_eq!(compiled(BODY, &both).ask("POST", "/", &[JSON], "{}").body, "[1]", "{condition}");
        }
        // A sequence that splits its copy fails with a part of it.
        let split = "<sequence><clone><target><sequence><sequence key='{$ctx:none}'/></sequence></target></clone></sequence>";
        let inside = format!("{aggregation}{}{split}", makes("{\"a\":1}"));
        assert_eq!(compiled(BODY, &inside).ask("POST", "/", &[JSON], "{}").status, 500);
        // Its fault sequence runs, and may answer.
        let response =
            compiled(BODY, &format!("{aggregation}{fails}{fails}")).ask("POST", "/", &[JSON], "{}");
        assert_eq!(response.status, 500);
        let text = format!(
            "<scatter-gather {BODY}>{both}</scatter-gather><respond/><!--top--><sequence name='fault'>\
             <payloadFactory media-type='json'><format>\"fault\"</format></payloadFactory><respond/></sequence>"
        );
        let response =
            testing::main(&crate::registry(testing::endpoints), &text).ask("POST", "/", &[JSON], "{}");
        assert_eq!(response.body, "\"fault\"");
        // What a handler inside of the sequence has dealt with is a fault of the flow, which cannot go on.
        let handled = "<sequence><sequence key='inner'/></sequence>";
        let text = format!(
            "<scatter-gather {BODY}>{aggregation}{handled}</scatter-gather><respond/><!--top-->\
             <sequence name='inner' onError='quiet'><sequence key='none'/></sequence><sequence name='quiet'><log/></sequence>\
             <sequence name='fault'><payloadFactory media-type='json'><format>\"$1\"</format><args>\
             <arg expression='$ctx:ERROR_MESSAGE'/></args></payloadFactory><respond/></sequence>"
        );
        let response =
            testing::main(&crate::registry(testing::endpoints), &text).ask("POST", "/", &[JSON], "{}");
        assert_eq!(response.body, "\"every sequence of scatter-gather has failed\"");
        // A backend that never answers.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback can be bound");
        let address = listener.local_addr().expect("it is bound");
        let slow = format!(
            "<sequence><call><endpoint><address uri='http://{address}/'/></endpoint></call></sequence>"
        );
        for (condition, made) in
            [("timeout='50'", "[1]"), ("timeout='-1' min-messages='1'", "[1]"), ("max-messages='1'", "[1]")]
        {
            let inside =
                format!("<aggregation expression='json-eval($.a)' {condition}/>{slow}{}", makes("{\"a\":1}"));
            assert_eq!(compiled(BODY, &inside).ask("POST", "/", &[JSON], "{}").body, made, "{condition}");
        }
        let response = compiled(
            BODY,
            &format!("<aggregation expression='json-eval($)' timeout='50'/>{slow}"),
        )
        .ask("POST", "/", &[JSON], "{}");
        assert_eq!(response.status, 504, "{response:?}");
    }

    /// A backend that answers after so many milliseconds, and counts what it was asked.
    fn slow(milliseconds: u64) -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback can be bound");
        let address = listener.local_addr().expect("it is bound");
        let count = Arc::<AtomicUsize>::default();
        let counts = Arc::clone(&count);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let counts = Arc::clone(&counts);
                std::thread::spawn(move || {
                    let _ = stream.read(&mut [0; 4096]);
                    counts.fetch_add(1, Relaxed);
                    std::thread::sleep(Duration::from_millis(milliseconds));
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
                });
            }
        });
        let call = format!("<call><endpoint><address uri='http://{address}/'/></endpoint></call>");
        (call, count)
    }

    #[test]
    fn copies_that_nobody_waits_for_any_more_end_by_themselves() {
        for (attributes, condition, first) in [
            // The first one brings nothing, which is a fault.
            (BODY, "", format!("{}<sequence/>", makes("{}"))),
            (SEQUENCES, "timeout='50'", String::new()),
            (BODY, "timeout='50'", String::new()),
        ] {
            let ((slowly, _), (behind, requests), (waits, _)) = (slow(150), slow(0), slow(600));
            let text = format!(
                "<scatter-gather {attributes}><aggregation expression='json-eval($.none)' {condition}/>{first}\
                 <sequence>{slowly}{behind}</sequence></scatter-gather><!--top--><sequence name='fault'>{waits}<respond/></sequence>"
            );
            let tested = testing::main(&crate::registry(testing::endpoints), &text);
            assert_eq!(tested.ask("POST", "/", &[JSON], "{}").status, 200);
            assert_eq!(requests.load(Relaxed), 1, "{attributes} {condition}");
        }
    }

    #[test]
    fn an_expression_that_fails_brings_an_empty_text() {
        let inside = format!("<aggregation expression='${{payload.none}}'/>{}", makes("{}"));
        assert_eq!(compiled(BODY, &inside).ask("POST", "/", &[JSON], "{}").body, r#"[""]"#);
    }

    #[test]
    fn what_cannot_be_collected_is_a_fault() {
        let xml = "target='body' result-content-type='XML' result-enclosing-element='all'";
        for (attributes, aggregation, says) in [
            (BODY, "expression='json-eval($.none)'", "Error evaluating expression"),
            (
                BODY,
                "expression='json-eval($)' min-messages='{json-eval($.none)}'",
                "not a number of messages",
            ),
            (xml, "expression=\"string('a')\"", "cannot be collected as XML"),
        ] {
            let end = compiled(attributes, &format!("<aggregation {aggregation}/>{}", makes("{}")))
                .run(&[JSON], "{}");
            assert!(
                end.fault().is_some_and(|fault| fault.contains(says)),
                "{aggregation}: {:?}",
                end.fault()
            );
        }
    }

    #[test]
    fn mistakes_are_found_when_the_configuration_loads() {
        let one = "<aggregation expression='json-eval($)'/><sequence/>";
        for (attributes, inside, says) in [
            ("target='body'", one, "needs the attribute `result-content-type`"),
            ("target='head' result-content-type='JSON'", one, "`head` is not a place for results"),
            ("target='variable' result-content-type='JSON'", one, "needs a `target-variable`"),
            ("target='body' result-content-type='CSV'", one, "`CSV` is not a type of result"),
            ("target='body' result-content-type='XML'", one, "needs a `result-enclosing-element`"),
            (
                "target='body' result-content-type='XML' result-enclosing-element='a b'",
                one,
                "needs a `result-enclosing-element`",
            ),
            (BODY, "<sequence/>", "needs an `aggregation`"),
            (BODY, "<aggregation expression='json-eval($)'/>", "needs a `sequence`"),
            (
                BODY,
                "<aggregation expression='json-eval($)' timeout='1s'/><sequence/>",
                "not a number of milliseconds",
            ),
            (
                BODY,
                "<aggregation expression='json-eval($)' min-messages='x'/><sequence/>",
                "not a number of messages",
            ),
            (
                BODY,
                "<aggregation expression='json-eval($)' min-messages='3' max-messages='2'/><sequence/>",
                "`min-messages` is more than `max-messages`",
            ),
            (BODY, "<aggregation expression='json-eval($)' min='1'/><sequence/>", "no attribute `min`"),
        ] {
            let text = format!("<scatter-gather {attributes}>{inside}</scatter-gather>");
            let tested = testing::main(&crate::registry(testing::endpoints), &text);
            assert!(tested.reports(says), "{text}: {:?}", tested.found);
        }
    }
}
