//! `foreach`: runs a sequence on each item of the payload, in place and one after the other; the second form, with
//! a `collection`, has its own file.

mod collection;

use crate::support::{apart, are_nested};
use crate::target::is_true;
use config::Element;
use flow::library::Scope;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Expression, Family, Fault, Flow, Inside,
    ListId, Mark, Mediator, Moves, Need, Page, SequenceRef, Step, Values,
};
use message::jsonpath::JsonPath;
use message::{Assembly, Envelope, Payload, Piece, Shell, SoapVersion, Value, XmlValue};
use std::sync::Arc;
use xml::{Document, NodeId, NodeKind};

/// `<foreach expression [id] [sequence] [continueLoopOnFailure]><sequence/>?</foreach>`
pub const DEFINITION: Definition = Definition {
    name: "foreach",
    summary: "Runs a sequence on each item that the expression selects and puts what it makes back.",
    attributes: &[
        Attribute {
            name: "expression",
            required: false,
            values: Values::Expression,
            default: "",
            meaning: "the items: elements (XPath) or the elements of an array (json-eval)",
        },
        Attribute {
            name: "id",
            required: false,
            values: Values::Text,
            default: "",
            meaning: "prefix of the names of the properties, followed by an underscore",
        },
        Attribute {
            name: "sequence",
            required: false,
            values: Values::Key,
            default: "",
            meaning: "the sequence, if it is not inside",
        },
        Attribute {
            name: "continueLoopOnFailure",
            required: false,
            values: Values::Boolean,
            default: "false",
            meaning: "go on with the next item when one fails",
        },
        Attribute {
            name: "collection",
            required: false,
            values: Values::Expression,
            default: "",
            meaning: "the items of the second form, in which each item has a copy of the message",
        },
        Attribute::optional("parallel-execution", Values::Boolean, "with `collection`: all items at once")
            .or("true"),
        Attribute::optional("update-original", Values::Boolean, "with `collection`: the results replace it")
            .or("true"),
        Attribute::optional(
            "target-variable",
            Values::Text,
            "with `collection`: the variable for the results",
        ),
        Attribute::optional("result-content-type", Values::Text, "JSON or XML, with `target-variable`"),
        Attribute::optional("result-enclosing-element", Values::Text, "the element around XML results"),
        Attribute::optional("counter-variable", Values::Text, "counts from 0, one item after the other"),
        Attribute::optional(
            "continue-without-aggregation",
            Values::Boolean,
            "with `collection`: the flow does not wait for the items",
        )
        .or("false"),
    ],
    children: Children::Elements(&["sequence"]),
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Splitting,
    semantics: "There are two forms.

With `expression` the sequence runs on the message itself, once for each selected element, one after the other. During a run the body is that
item alone, without SOAP headers; properties that one run sets are visible in the next. The first element of the body after each run is put
back; all of them go to the end of the parent of the first item. Elements of a property (`$ctx:order//item`) are items too: the results are put
back into that property, and the message stays as it was. Those of a local entry are items, and the entry stays. With `json-eval` the items are those of an array; anything else is a fault.
`FOREACH_COUNTER` counts the runs from 0, and `FOREACH_ORIGINAL_MESSAGE` holds the original message; both names begin with the `id` and an underscore, if there is
an `id`. If the sequence ends early (`drop`), the remaining items do not run and are lost. `respond` ends the loop as well: the client gets
the item as it is then, and later answers of the flow are dropped. `send`, `call` and `callout` are not allowed inside. If the expression selects nothing, nothing happens.

With `collection` each item runs on a copy of the message, all at once or, with `parallel-execution=\"false\"`, one after the other; `call`
is allowed inside. Properties and variables of a run are lost after it. The bodies after the runs, in the order of the items, replace the
collection in the payload or the variable, or with `update-original=\"false\"` go into `target-variable`. An item that is dropped
has no result; one that fails ends the flow. With `continue-without-aggregation` the flow goes on at once.",
    inside: &[Inside::new("sequence?", "what is done with each item", &[]).with("mediator*")],
    needs: &[(Need::Whole, "always")],
    refused: &[
        ("<foreach><sequence/></foreach>", "`foreach` needs an `expression`"),
        ("<foreach expression=\"//a\"/>", "`foreach` needs one sequence, inside or by name"),
        ("<foreach expression=\"//a[\"><sequence/></foreach>", "not a valid expression"),
        ("<foreach expression=\"//a\"><sequence><send/></sequence></foreach>", "`send` cannot stand inside of `foreach`"),
        ("<foreach collection=\"${payload.a}\"/>", "`foreach` needs a `sequence` inside"),
        (
            "<foreach collection=\"${payload.a}\" update-original=\"false\"><sequence/></foreach>",
            "needs a `target-variable`",
        ),
        (
            "<foreach collection=\"${payload.a}\" counter-variable=\"i\"><sequence/></foreach>",
            "counts only one item after the other",
        ),
    ],
    faults: &[
        ("0", "the expression selects no array, the collection is not one, or a named sequence does not exist"),
        ("601000", "the body is not what its content type says, or larger than a flow may hold"),
        (
            "SOLD_OUT",
            "and any other code: that of an item that failed, unless `continueLoopOnFailure` is true (first form)",
        ),
    ],
};

struct Foreach {
    items: Arc<Expression>,
    body: Arc<SequenceRef>,
    lenient: bool,
    original: Arc<str>,
    counter: Arc<str>,
    /// Whether an endpoint is called inside.
    calls: bool,
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    if element.attribute("collection").is_some() {
        return collection::compile(element, compiler);
    }
    if element.attribute("expression").is_none() {
        let place = element.start_tag();
        compiler.error("missing-attribute", "`foreach` needs an `expression`", place, "the items");
        return None;
    }
    let items = compiler.expression(element, "expression")?;
    if items.is_json() && !items.json_path().is_some_and(JsonPath::is_definite) {
        let message = format!("`{}` is not a path to one array of the body", items.source());
        compiler.warning(
            "bad-expression",
            message,
            element.value_span("expression"),
            "messages that come here fault",
        );
    }
    let body = match (element.attribute("sequence"), element.child("sequence")) {
        (Some(_), None) => compiler.sequence(element, "sequence")?,
        (None, Some(inside)) => {
            let sends = |child: &&Element| matches!(child.local(), "send" | "call" | "callout");
            if let Some(sender) = inside.elements().find(sends) {
                let message = format!("`{}` cannot stand inside of `foreach`", sender.local());
                compiler.error("bad-place", message, sender.name_span(), "`iterate` sends items away");
                return None;
            }
            SequenceRef::Known(compiler.list(inside, "sequence of foreach"))
        }
        (both, _) => {
            compiler.error(
                "bad-value",
                "`foreach` needs one sequence, inside or by name",
                element.start_tag(),
                if both.is_some() { "here are both" } else { "here is none" },
            );
            return None;
        }
    };
    let name = |base: &str| match element.attr("id") {
        Some(id) => Arc::from(format!("{id}_{base}")),
        None => Arc::from(base),
    };
    Some(Box::new(Foreach {
        items: Arc::new(items),
        body: Arc::new(body),
        lenient: is_true(element, "continueLoopOnFailure"),
        original: name("FOREACH_ORIGINAL_MESSAGE"),
        counter: name("FOREACH_COUNTER"),
        calls: calls(element),
    }))
}

/// Whether an endpoint is called without blocking somewhere inside.
fn calls(element: &Element) -> bool {
    element.elements().any(|child| {
        (child.is("call") && !flow::truth(child, "blocking", false)) || child.is("send") || calls(child)
    })
}

impl Mediator for Foreach {
    fn moves(&self) -> Moves {
        Moves::Never
    }

    fn need(&self) -> Need {
        Need::Whole
    }

    fn reason(&self) -> String {
        self.items.reason()
    }

    fn lists(&self) -> Vec<(String, ListId)> {
        self.body.known().map(|list| ("sequence".to_owned(), list)).into_iter().collect()
    }

    fn goes_on_alone(&self) -> bool {
        self.calls
    }

    fn run<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        Step::Wait(Box::pin(async move {
            if self.items.is_json() {
                self.json(context).await?
            } else {
                self.xml(context).await?
            }
            Ok(Flow::Next)
        }))
    }
}

/// How the sequence of one item ended.
enum Ended {
    Well,
    /// `drop` and the like: no further items.
    Early,
    /// It failed, and the loop goes on.
    Failed,
}

impl Foreach {
    /// Runs the sequence on the item that is the payload now.
    async fn item(&self, index: usize, context: &mut Context) -> Result<Ended, Fault> {
        context.properties.set(Arc::clone(&self.counter), Value::Integer(index as i64));
        let mark = Mark::of(context);
        let list = match &*self.body {
            SequenceRef::Known(list) => Ok(*list),
            _ => {
                let body = Arc::clone(&self.body);
                flow::work_out(context, move |context| body.resolve(context)).await
            }
        };
        let result = match list {
            Ok(list) => flow::run_list(context, list).await,
            Err(fault) => Err(fault),
        };
        match result {
            Ok(true) => Ok(Ended::Well),
            Ok(false) => Ok(if self.lenient { Ended::Well } else { Ended::Early }),
            Err(fault) if self.lenient => {
                tracing::error!(message_id = %context.message_id(), place = context.place(), "foreach goes on after item {index} failed: {fault}");
                mark.restore(context);
                Ok(Ended::Failed)
            }
            Err(fault) => Err(fault),
        }
    }

    async fn xml(&self, context: &mut Context) -> Result<(), Fault> {
        let items = Arc::clone(&self.items);
        let nodes = flow::work_out(context, move |context| items.nodes(context)).await?;
        if nodes.is_empty() && self.items.property().is_some() {
            let items = Arc::clone(&self.items);
            let held = flow::work_out(context, move |context| items.nodes_of_property(context)).await?;
            if let Some((held, nodes)) = held {
                return self.of_property(held, nodes, context).await;
            }
            // Those of a local entry: it is everybody's, so the results do not change it.
            let items = Arc::clone(&self.items);
            let selected = flow::work_out(context, move |context| items.value(context)).await?;
            if let Some(Value::Xml(selected)) = selected {
                self.elsewhere(&selected.document, &elements(&selected.document, &selected.nodes), context)
                    .await?;
            }
            return Ok(());
        }
        let taken = flow::compute::by_size(context, 0, move |context| take_out(nodes, context));
        let Some(TakenItems { nodes, parent, original, rest }) = taken.await? else { return Ok(()) };
        context.properties.set(Arc::clone(&self.original), Value::Xml(Arc::clone(&original)));
        let whole = std::mem::take(&mut context.payload);
        let results = self.results(&original.document, &nodes, rest.version, &whole, context).await?;
        let more = whole.extent().max(results.len() * ITEM);
        let put_together = move |context: &mut Context| {
            context.payload = whole;
            context.payload.set_assembly(Assembly::new(Arc::new(Shell::within(rest, parent)), results));
            Ok(())
        };
        flow::compute::by_size(context, more, put_together).await
    }

    /// The first element that the body has after the run of each item.
    async fn results(
        &self,
        document: &Document,
        nodes: &[NodeId],
        version: SoapVersion,
        whole: &Payload,
        context: &mut Context,
    ) -> Result<Vec<Piece>, Fault> {
        let mut results = Vec::with_capacity(nodes.len());
        let mut count = 0;
        // Those within another one run by themselves; mostly there are none.
        let apart = are_nested(document, nodes).then(|| apart(document, version, nodes));
        let (document, nodes) = match &apart {
            Some((apart, copies)) => (&apart.document, copies.as_slice()),
            None => (document, nodes),
        };
        for (index, &node) in nodes.iter().enumerate() {
            let mut item = Envelope::empty(version);
            item.document.copy_from(item.body, document, node);
            context.payload = whole.emptied();
            context.payload.set_envelope(item);
            let ended = self.item(index, context).await?;
            count = index + 1;
            context.receive_body().await?;
            let made = |context: &mut Context| {
                let limits = context.services().limits.clone();
                Ok(context.payload.first_piece(&limits))
            };
            // An item that cannot be read is lost like one that is empty.
            match flow::compute::by_size(context, 0, made).await? {
                Ok(made) => results.extend(made),
                Err(error) if self.lenient => {
                    tracing::error!(message_id = %context.message_id(), place = context.place(), "foreach loses item {index}: {error}")
                }
                Err(error) => return Err(error.into()),
            }
            if matches!(ended, Ended::Early) {
                break;
            }
        }
        context.properties.set(Arc::clone(&self.counter), Value::Integer(count as i64));
        Ok(results)
    }

    /// Runs on elements that are not the message's, which stays as it was. Returns the results.
    async fn elsewhere(
        &self,
        document: &Document,
        nodes: &[NodeId],
        context: &mut Context,
    ) -> Result<Vec<Piece>, Fault> {
        if nodes.is_empty() {
            return Ok(Vec::new());
        }
        let original = flow::compute::by_size(context, 0, |context| {
            let envelope = context.shared_envelope()?;
            let version = envelope.version;
            let value =
                XmlValue { document: Arc::new(envelope.document.clone()), nodes: vec![envelope.root] };
            Ok((Value::Xml(Arc::new(value)), version))
        });
        let (original, version) = original.await?;
        context.properties.set(Arc::clone(&self.original), original);
        let whole = std::mem::take(&mut context.payload);
        let results = self.results(document, nodes, version, &whole, context).await?;
        context.payload = whole;
        Ok(results)
    }

    /// Runs on elements of a property: the results replace them there, and the message stays as it was.
    async fn of_property(
        &self,
        held: Arc<XmlValue>,
        nodes: Vec<NodeId>,
        context: &mut Context,
    ) -> Result<(), Fault> {
        let nodes = elements(&held.document, &nodes);
        let Some(&first) = nodes.first() else { return Ok(()) };
        let results = self.elsewhere(&held.document, &nodes, context).await?;
        let Some((scope, name, _)) = self.items.property() else { return Ok(()) };
        let name: Arc<str> = Arc::from(name);
        let put_together = move |context: &mut Context| {
            let mut document = (*held.document).clone();
            let parent = document.parent(first).filter(|&parent| document.kind(parent) == NodeKind::Element);
            nodes.iter().for_each(|&node| document.detach(node));
            let made: Vec<_> = results
                .iter()
                .map(|(envelope, node)| {
                    let parent = parent.unwrap_or(Document::ROOT);
                    XmlValue::copy_to(&mut document, parent, &envelope.document, *node)
                })
                .collect();
            let mut roots = held.nodes.clone();
            if parent.is_none() {
                roots.retain(|root| !nodes.contains(root));
                roots.extend(made);
            }
            let value = Value::Xml(Arc::new(XmlValue { document: Arc::new(document), nodes: roots }));
            match scope {
                Scope::Default | Scope::Axis2 | Scope::Operation => {
                    crate::property::set(scope, name, value, context)
                }
                Scope::Variable => {
                    context.variables.set(&*name, value);
                    Ok(())
                }
                // A parameter is not the message's to change.
                _ => Ok(()),
            }
        };
        flow::compute::by_size(context, 0, put_together).await
    }

    async fn json(&self, context: &mut Context) -> Result<(), Fault> {
        let source = self.items.source();
        let path = self.items.json_path().filter(|path| path.is_definite()).cloned();
        let path = path.ok_or_else(|| Fault::new(format!("{source} is not a path to one JSON array")))?;
        let selecting = path.clone();
        let (mut root, items, original) = flow::work_out(context, move |context| {
            let limits = context.services().limits.clone();
            let mut root = match context.payload.is_empty() {
                true => serde_json::Value::Null,
                false => context.payload.as_json(&limits)?,
            };
            let mut items = None;
            selecting.update(&mut root, |found| {
                if found.is_array() {
                    items = Some(found.take());
                }
            })?;
            let items = match items {
                Some(serde_json::Value::Array(items)) => items,
                _ => return Ok((root, None, None)),
            };
            let original = (!items.is_empty()).then(|| context.payload.as_json(&limits)).transpose()?;
            Ok((root, Some(items), original))
        })
        .await?;
        let items = items.ok_or_else(|| Fault::new(format!("{source} does not select a JSON array")))?;
        let Some(original) = original else { return Ok(()) };
        context.properties.set(Arc::clone(&self.original), Value::Json(Arc::new(original)));
        let whole = std::mem::take(&mut context.payload);
        let mut results = Vec::with_capacity(items.len());
        let mut count = 0;
        for (index, item) in items.into_iter().enumerate() {
            context.payload = whole.emptied();
            context.payload.set_json_value(item);
            let ended = self.item(index, context).await?;
            count = index + 1;
            if !matches!(ended, Ended::Failed) {
                context.receive_body().await?;
                if !context.payload.is_empty() {
                    results.push(flow::compute::by_size(context, 0, as_json).await?);
                }
            }
            if matches!(ended, Ended::Early) {
                break;
            }
        }
        context.properties.set(Arc::clone(&self.counter), Value::Integer(count as i64));
        let more = whole.extent().max(results.len() * ITEM);
        let put_together = move |context: &mut Context| {
            let results = serde_json::Value::Array(results);
            let root = if path.is_root() {
                results
            } else {
                path.set(&mut root, &results)?;
                root
            };
            context.payload = whole;
            context.payload.set_json_value(root);
            Ok(())
        };
        flow::compute::by_size(context, more, put_together).await
    }
}

fn as_json(context: &mut Context) -> Result<serde_json::Value, Fault> {
    let limits = context.services().limits.clone();
    Ok(context.payload.as_json(&limits)?)
}

/// About how many bytes an item stands for, where only their number is at hand.
const ITEM: usize = 128;

/// Those that are elements.
fn elements(document: &Document, nodes: &[NodeId]) -> Vec<NodeId> {
    nodes.iter().copied().filter(|&node| document.kind(node) == NodeKind::Element).collect()
}

/// The items of an XML message, and what is left of it.
struct TakenItems {
    nodes: Vec<NodeId>,
    /// What the items were taken out of.
    parent: NodeId,
    /// The message as it was.
    original: Arc<XmlValue>,
    rest: Envelope,
}

/// Takes the items out of an XML message; `None`: there are none.
fn take_out(nodes: Vec<NodeId>, context: &mut Context) -> Result<Option<TakenItems>, Fault> {
    let envelope = context.envelope()?;
    let document = &envelope.document;
    let nodes: Vec<_> = nodes.into_iter().filter(|&node| document.kind(node) == NodeKind::Element).collect();
    let Some(parent) = nodes.first().and_then(|&first| document.parent(first)) else { return Ok(None) };
    if document.kind(parent) != NodeKind::Element {
        return Err(Fault::new("foreach cannot run on the SOAP envelope itself"));
    }
    let original = XmlValue { document: Arc::new(document.clone()), nodes: vec![envelope.root] };
    let version = envelope.version;
    let mut rest = std::mem::replace(context.envelope_mut()?, Envelope::empty(version));
    for &node in &nodes {
        rest.document.detach(node);
    }
    Ok(Some(TakenItems { nodes, parent, original: Arc::new(original), rest }))
}

#[cfg(test)]
mod tests {
    use flow::testing;

    const XML: &[(&str, &str)] = &[("Content-Type", "application/xml")];
    const JSON: &[(&str, &str)] = &[("Content-Type", "application/json")];

    fn run(attributes: &str, inside: &str, headers: &[(&str, &str)], body: &str) -> Result<String, String> {
        let text = format!("<foreach {attributes}><sequence>{inside}</sequence></foreach>");
        let tested = testing::main(&crate::registry(testing::endpoints), &text);
        assert!(tested.found.is_empty(), "{:?}", tested.found);
        tested.run(headers, body).outcome()
    }

    #[test]
    fn what_the_sequence_makes_replaces_the_item() {
        let line = "<payloadFactory><format><l xmlns='' n='$2'>$1</l></format><args><arg expression='//i/@k'/>\
            <arg expression=\"get-property('FOREACH_COUNTER')\"/></args></payloadFactory>";
        let object = "<payloadFactory media-type='json'><format>{\"v\":$1}</format><args>\
            <arg evaluator='json' expression='$'/></args></payloadFactory>";
        let broken = "<payloadFactory media-type='json'><format>$1</format><args>\
            <arg evaluator='json' expression='$.x'/></args></payloadFactory>\
            <payloadFactory><format>$1</format><args><arg expression='//jsonValue'/></args></payloadFactory>";
        for (attributes, inside, headers, body, out) in [
            (
                "expression='//i'",
                line,
                XML,
                "<a><b/><i k='x'/><i k='y'/><c/></a>",
                "<a><b/><c/><l n=\"0\">x</l><l n=\"1\">y</l></a>",
            ),
            ("expression='//i'", line, XML, "<a/>", "<a/>"),
            ("expression='//i'", "<drop/>", XML, "<a><i k='x'/><i k='y'/></a>", "<a><i k=\"x\"/></a>"),
            (
                "expression='//i[@k]' xmlns:p='urn:p'",
                "<property name='n' expression='//i/@p:k'/>",
                XML,
                "<a xmlns:p='urn:p'><i k='x'><p:b> 1 </p:b></i><i/></a>",
                "<a xmlns:p=\"urn:p\"><i/><i xmlns:p=\"urn:p\" k=\"x\"><p:b> 1 </p:b></i></a>",
            ),
            (
                "expression='//i' continueLoopOnFailure='true'",
                "<drop/>",
                XML,
                "<a><i k='x'/><i k='y'/></a>",
                "<a><i k=\"x\"/><i k=\"y\"/></a>",
            ),
            ("expression='json-eval($)'", object, JSON, "[1,2]", r#"[{"v":1},{"v":2}]"#),
            (
                "expression='json-eval($.a.b)'",
                object,
                JSON,
                r#"{"a":{"b":[1],"c":2}}"#,
                r#"{"a":{"b":[{"v":1}],"c":2}}"#,
            ),
            ("expression='json-eval($.a)'", object, JSON, r#"{"a":[]}"#, r#"{"a":[]}"#),
            ("expression='json-eval($.a)'", "<drop/>", JSON, r#"{"a":[1,2]}"#, r#"{"a":[1]}"#),
            (
                "expression='json-eval($.a)' continueLoopOnFailure='true'",
                broken,
                JSON,
                r#"{"a":[{"x":1},{"x":2}]}"#,
                r#"{"a":[]}"#,
            ),
        ] {
            assert_eq!(run(attributes, inside, headers, body).as_deref(), Ok(out), "{attributes} {body}");
        }
    }

    #[test]
    fn what_comes_behind_sees_the_results_of_both_forms() {
        let inside = "<filter xpath='//i/@k = 1'><then><enrich><source type='inline'><new xmlns='urn:n'/></source><target type='body'/></enrich></then></filter>";
        let body = "<a xmlns:p='urn:p'><l><i k='1'/><p:x/><i k='2'><p:b/></i></l></a>";
        for attributes in ["expression='//i'", "collection='//i' parallel-execution='false'"] {
            for (behind, wanted) in [
                ("", "<a xmlns:p=\"urn:p\"><l><p:x/><new xmlns=\"urn:n\"/><i k=\"2\"><p:b/></i></l></a>"),
                (
                    "<property name='n' expression='count(//i/p:b)' xmlns:p='urn:p'/><enrich><source type='inline'><e xmlns=''/></source><target action='child' xpath='//l'/></enrich>",
                    "<a xmlns:p=\"urn:p\"><l><p:x/><new xmlns=\"urn:n\"/><i k=\"2\"><p:b/></i><e/></l></a>",
                ),
            ] {
                let text = format!("<foreach {attributes}><sequence>{inside}</sequence></foreach>{behind}");
                let tested = testing::main(&crate::registry(testing::endpoints), &text);
                let mut end = tested.run(XML, body);
                // Where a declaration stands twice does not matter.
                let made = end.outcome().map(|text| text.replace("<i xmlns:p=\"urn:p\"", "<i"));
                assert_eq!(made.as_deref(), Ok(wanted), "{attributes} {behind}");
                assert_eq!(end.property("n").is_some(), !behind.is_empty());
            }
        }
    }

    #[test]
    fn elements_of_a_property_are_items_and_stay_in_it() {
        let held = "<property name='om' type='OM'><o xmlns=''><h/><i>1</i><i>2</i><t/></o></property>";
        let inside = "<property name='seen' expression=\"concat($ctx:seen, //i, get-property('FOREACH_COUNTER'))\"/>\
            <payloadFactory><format><n xmlns=''>$1</n></format><args><arg expression='//i'/></args></payloadFactory>";
        let made = "<o><h/><t/><n>1</n><n>2</n></o>";
        let list = "<enrich><source xpath='//x'/><target type='property' property='om'/></enrich>";
        for (before, expression, inside, om) in [
            (held, "$ctx:om//i", inside, made),
            (held, "get-property('om')/i", inside, made),
            (held, "$ctx:om//i", "<drop/>", "<o><h/><t/><i>1</i></o>"),
            (held, "$ctx:om//none", inside, "<o><h/><i>1</i><i>2</i><t/></o>"),
            // The elements themselves are what the property holds.
            (list, "$ctx:om", "<property name='k' value='1'/>", "<x>a</x><x>b</x>"),
        ] {
            for (headers, body) in [(XML, "<a><x>a</x><x>b</x></a>"), (JSON, r#"{"x":["a","b"]}"#)] {
                let text = format!(
                    "{before}<foreach expression=\"{expression}\"><sequence>{inside}</sequence></foreach>"
                );
                let tested = testing::main(&crate::registry(testing::endpoints), &text);
                let mut end = tested.run(headers, body);
                assert_eq!(end.outcome().as_deref(), Ok(body), "{text}");
                assert_eq!(end.property("om").as_deref(), Some(om), "{text}");
            }
        }
    }

    /// A local entry is everybody's.
    #[test]
    fn elements_of_a_local_entry_are_items_and_it_stays() {
        let text = "<foreach expression=\"get-property('e')//i\"><sequence>\
            <property name='n' expression='concat($ctx:n, //i)'/><payloadFactory><format><x xmlns=''/></format><args/></payloadFactory></sequence></foreach>\
            <property name='after' expression=\"count(get-property('e')//i)\"/>\
            <!--top--><localEntry key='e'><o xmlns=''><i>1</i><i>2</i></o></localEntry>";
        let tested = testing::main(&crate::registry(testing::endpoints), text);
        let mut end = tested.run(XML, "<a/>");
        assert_eq!((end.property("n").as_deref(), end.property("after").as_deref()), (Some("12"), Some("2")));
        assert_eq!(end.outcome().as_deref(), Ok("<a/>"));
    }

    #[test]
    fn what_is_an_item_itself_is_not_in_another_one() {
        let body = "<t><g>1<g>2</g></g><g>3</g></t>";
        assert_eq!(
            run("expression='//g'", "<log/>", XML, body).as_deref(),
            Ok("<t><g>1</g><g>2</g><g>3</g></t>")
        );
    }

    #[test]
    fn a_path_that_is_none_to_one_array_is_said_when_the_configuration_loads() {
        for (path, said) in [
            ("$.l[*]", true),
            ("$..l", true),
            ("$ctx:p.l", true),
            ("$.l", false),
            ("$", false),
            ("$.", false),
        ] {
            let text =
                format!("<foreach expression='json-eval({path})'><sequence><log/></sequence></foreach>");
            let tested = testing::main(&crate::registry(testing::endpoints), &text);
            assert_eq!(
                tested.reports("is not a path to one array of the body"),
                said,
                "{path}: {:?}",
                tested.found
            );
            if said {
                assert!(tested.run(JSON, r#"{"l":[1]}"#).fault().is_some(), "{path}");
            }
        }
    }

    #[test]
    fn a_failing_item_ends_the_flow_and_the_fault_sequence_sees_it() {
        let bad = "<payloadFactory><format>$1</format><args><arg expression='//i'/></args></payloadFactory>";
        let fault = run("expression='//i'", bad, XML, "<a><i>1</i></a>");
        assert!(fault.as_ref().is_err_and(|fault| fault.starts_with("0: Generated content")), "{fault:?}");
        for (expression, headers, body) in [
            ("json-eval($.a)", JSON, "{}"),
            ("json-eval($.a)", JSON, r#"{"a":1}"#),
            ("json-eval($.a)", JSON, ""),
            ("json-eval($.a)", JSON, "{"),
            ("/*", XML, "<a/>"),
            ("//i", XML, "<a"),
        ] {
            let result = run(&format!("expression='{expression}'"), "<log/>", headers, body);
            assert!(result.is_err(), "{expression} {body}: {result:?}");
        }
    }

    #[test]
    fn loops_may_nest_but_not_for_ever() {
        let inner = "<foreach expression='json-eval($)'><sequence><payloadFactory media-type='json'><format>0</format>\
            </payloadFactory></sequence></foreach>";
        assert_eq!(
            run("expression='json-eval($)'", inner, JSON, "[[1,2],[3]]").as_deref(),
            Ok("[[0,0],[0]]")
        );
        let text = "<foreach expression='//a' sequence='again'/><!--top--><sequence name='again'><foreach expression='//a' sequence='again'/></sequence>";
        let tested = testing::main(&crate::registry(testing::endpoints), text);
        assert!(tested.run(XML, "<a/>").fault().is_some_and(|fault| fault.contains("nested")));
    }

    #[test]
    fn mistakes_are_found_when_the_configuration_loads() {
        for (text, says) in [
            ("<foreach expression='//a'/>", "here is none"),
            (
                "<foreach expression='//a' sequence='s'><sequence/></foreach><!--top--><sequence name='s'/>",
                "needs one sequence",
            ),
            (
                "<foreach expression='//a'><sequence><send/></sequence></foreach>",
                "`send` cannot stand inside",
            ),
            ("<foreach><sequence/></foreach>", "needs an `expression`"),
        ] {
            let tested = testing::main(&crate::registry(testing::endpoints), text);
            assert!(!tested.found.is_empty(), "{text}: {says}");
        }
    }
}
