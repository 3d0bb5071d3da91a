//! `foreach` with a `collection`: a copy of the message for each item, all at once or one after the other; what
//! they bring replaces the collection, or goes into a variable.

use crate::branches::{Branches, Brought};
use crate::target::is_true;
use config::Element;
use flow::{
    Branched, Child, Compiled, Compiler, Context, Expression, Fault, Flow, ListId, Mediator, Moves, Need,
    Step,
};
use message::jsonpath::{Dialect, JsonPath};
use message::{Assembly, Envelope, Shell, Value, XmlValue};
use std::ops::ControlFlow;
use std::sync::Arc;
use xml::{Document, NodeId, NodeKind};

/// To copy more items than that is too much for a worker.
const MANY: usize = 2048;

/// The mediator; a compute thread that selects the items keeps its core.
struct Each(Arc<Foreach>);

struct Foreach {
    collection: Collection,
    body: ListId,
    parallel: bool,
    /// The flow goes on at once, and nothing waits for the items.
    leave: bool,
    counter: Option<Arc<str>>,
    result: Output,
    source: String,
}

/// Where the items are.
enum Collection {
    Payload(JsonPath),
    Variable(Arc<str>, JsonPath),
    /// Nodes of the payload.
    Nodes(Expression),
    NodesOf(Arc<str>, Expression),
    /// Something that gives items, and that cannot be written back.
    Value(Expression),
}

enum Output {
    /// In place of the collection.
    Original,
    Json(Arc<str>),
    /// The variable, and the name of the element around the items.
    Xml(Arc<str>, String),
}

/// The items, and what they were taken from.
enum Items {
    Json(Vec<serde_json::Value>),
    Xml(Arc<Document>, Vec<NodeId>),
    /// Of the payload: written as they came if no step looks at them.
    Pieces(Arc<Envelope>, Vec<NodeId>),
}

/// Compiles `<foreach collection="…">`.
pub(super) fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let collection = collection_of(element, compiler)?;
    let not = |name: &str| element.attr(name).is_some_and(|value| value.trim().eq_ignore_ascii_case("false"));
    let parallel = !not("parallel-execution");
    let place = element.start_tag();
    let Some(inside) = element.child("sequence") else {
        compiler.error(
            "missing-element",
            "`foreach` needs a `sequence` inside",
            place,
            "what is done with each item",
        );
        return None;
    };
    let counter = element.attribute("counter-variable");
    if let Some(counter) = counter.filter(|_| parallel) {
        let expected = "parallel-execution=\"false\" gives the items an order";
        compiler.error(
            "bad-value",
            "a `counter-variable` counts only one item after the other",
            counter.name_span,
            expected,
        );
        return None;
    }
    let leave = is_true(element, "continue-without-aggregation");
    let result = match leave || !not("update-original") {
        true => {
            warn_of_results(element, leave, compiler);
            Output::Original
        }
        false => result_of(element, compiler)?,
    };
    if let (Collection::Value(_), Output::Original, false) = (&collection, &result, leave) {
        let expected = "update-original=\"false\" puts the results into a variable";
        compiler.error("bad-value", "nothing can be put back into this collection", place, expected);
        return None;
    }
    Some(Box::new(Each(Arc::new(Foreach {
        collection,
        body: compiler.list(inside, "sequence of foreach"),
        parallel,
        leave,
        counter: counter.map(|name| Arc::from(name.value.trim())),
        result,
        source: element.attr("collection").unwrap_or_default().to_owned(),
    }))))
}

/// Where the results replace the items, or nothing is done with them, what says how to collect them has no effect.
fn warn_of_results(element: &Element, leave: bool, compiler: &mut Compiler<'_>) {
    let needed = match leave {
        true => "with continue-without-aggregation=\"true\" nothing is collected",
        false => "update-original=\"false\" collects the results",
    };
    for name in ["target-variable", "result-content-type", "result-enclosing-element"] {
        if let Some(attribute) = element.attribute(name) {
            let message = format!("the `{name}` of this `foreach` has no effect");
            compiler.warning("no-effect", message, attribute.name_span, needed);
        }
    }
}

fn result_of(element: &Element, compiler: &mut Compiler<'_>) -> Option<Output> {
    let place = element.start_tag();
    let kind = element.attr("result-content-type").map(|word| word.trim().to_ascii_uppercase());
    let Some(name) = element.attr("target-variable").map(str::trim).filter(|name| !name.is_empty()) else {
        let message = "`foreach` with update-original=\"false\" needs a `target-variable`";
        compiler.error("missing-attribute", message, place, "where the results go");
        return None;
    };
    match (kind.as_deref(), element.attr("result-enclosing-element").map(str::trim)) {
        (Some("JSON"), _) => Some(Output::Json(Arc::from(name))),
        (Some("XML"), Some(around)) if xml::is_ncname(around) => {
            Some(Output::Xml(Arc::from(name), around.to_owned()))
        }
        (Some("XML"), _) => {
            let message = "`foreach` with an XML result needs a `result-enclosing-element`";
            compiler.error("missing-attribute", message, place, "the name of the element around the results");
            None
        }
        _ => {
            match element.attribute("result-content-type") {
                Some(attribute) => compiler.none_of(attribute, "a type of result", &["JSON", "XML"]),
                None => {
                    let message = "`foreach` with update-original=\"false\" needs a `result-content-type`";
                    compiler.error("missing-attribute", message, place, "expected JSON or XML");
                }
            }
            None
        }
    }
}

/// Where the items are, by how the collection is written: what is written back has to be found again.
fn collection_of(element: &Element, compiler: &mut Compiler<'_>) -> Option<Collection> {
    let attribute = element.attribute("collection")?;
    let text = attribute.value.trim();
    let inner = text.strip_prefix("${").and_then(|inner_text| inner_text.strip_suffix('}')).map(str::trim);
    let Some(inner) = inner else {
        let expression = compiler.expression(element, "collection")?;
        return Some(match expression.json_path().filter(|path| path.is_definite()).cloned() {
            Some(path) => Collection::Payload(path),
            None if expression.xpath().is_some() => Collection::Nodes(expression),
            None => Collection::Value(expression),
        });
    };
    // What is after `payload` or the variable, as a path that begins with `$`.
    let path = |rest: &str| {
        let starts = rest.is_empty() || rest.starts_with(['.', '[']);
        let text = starts.then(|| format!("${rest}"))?;
        let is_definite = JsonPath::compile(&text, Dialect::Jayway).is_ok_and(|path| path.is_definite());
        is_definite.then_some((text, attribute.value.rfind(rest).unwrap_or(0).saturating_sub(1)))
    };
    let payload = inner.strip_prefix("payload").or_else(|| inner.strip_prefix('$'));
    if let Some((text, start)) = payload.and_then(path) {
        return compiler.json_path(&text, start, attribute.value_span).map(Collection::Payload);
    }
    if let Some((name, (text, start))) = variable(inner).and_then(|(name, rest)| Some((name, path(rest)?))) {
        let path = compiler.json_path(&text, start, attribute.value_span)?;
        return Some(Collection::Variable(Arc::from(name), path));
    }
    if let Some((xpath, name)) = xpath(inner) {
        let expression = compiler.expression_text(xpath, attribute.value_span, element.scope())?;
        return Some(match name {
            None => Collection::Nodes(expression),
            Some(name) => Collection::NodesOf(Arc::from(name), expression),
        });
    }
    compiler.expression(element, "collection").map(Collection::Value)
}

/// The name in `vars.NAME…` or `vars["NAME"]…`, and what follows it.
fn variable(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("vars").or_else(|| text.strip_prefix("variables"))?;
    if let Some(rest) = rest.strip_prefix('.') {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        return Some(rest.split_at(end)).filter(|(name, _)| !name.is_empty());
    }
    let rest = rest.strip_prefix('[')?;
    let (name, rest) = quoted(rest)?;
    Some((name, rest.strip_prefix(']')?))
}

/// The arguments of `xpath('…')` or `xpath('…', 'variable')`.
fn xpath(text: &str) -> Option<(&str, Option<&str>)> {
    let (first, rest) = quoted(text.strip_prefix("xpath(")?)?;
    if rest == ")" {
        return Some((first, None));
    }
    let (name, rest) = quoted(rest.strip_prefix(',')?)?;
    (rest == ")").then_some((first, Some(name)))
}

/// A text in quotes, and what follows it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let (inside, rest) = text[1..].split_once(quote)?;
    Some((inside, rest.trim()))
}

impl Mediator for Each {
    fn moves(&self) -> Moves {
        Moves::Never
    }

    fn need(&self) -> Need {
        Need::Whole
    }

    fn reason(&self) -> String {
        format!("`{}` gives the items", self.0.source)
    }

    fn lists(&self) -> Vec<(String, ListId)> {
        vec![("sequence".to_owned(), self.0.body)]
    }

    fn goes_on_alone(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        Step::Wait(Box::pin(self.0.each(context)))
    }
}

impl Foreach {
    async fn each(self: &Arc<Foreach>, context: &mut Context) -> Result<Flow, Fault> {
        let foreach = Arc::clone(self);
        let items = flow::work_out(context, move |context| foreach.items(context)).await?;
        let count = match &items {
            Items::Json(items) => items.len(),
            Items::Xml(_, items) | Items::Pieces(_, items) => items.len(),
        };
        if count == 0 {
            return Ok(Flow::Next);
        }
        let mut template = context.branch_without_payload();
        if self.leave {
            template.leaves_its_splits();
        }
        let copies =
            Copies { template, items, next: 0, counter: self.counter.clone(), list: self.body, shell: None };
        let mut branches = Branches::new(copies, self.parallel);
        if self.leave {
            let child = context.silent_child("foreach whose items nobody waits for");
            child.spawn(async move {
                loop {
                    match branches.next().await {
                        Ok(None) => break,
                        Ok(Some((_, Branched::Failed(item)))) => _ = item.flow_ended(),
                        // One that panicked says so in the log, and the others go on.
                        Ok(Some(_)) | Err(_) => {}
                    }
                }
            });
            return Ok(Flow::Next);
        }
        let gathered = self.gather(&mut branches, count, context).await;
        // Where one ends the flow, what the others bring is not needed: they end by themselves.
        branches.leave();
        match gathered? {
            ControlFlow::Continue(made) => {
                let (core, more) = (Arc::clone(self), made.len() * super::ITEM);
                let finish = move |context: &mut Context| {
                    core.finish(made.into_iter().flatten().collect(), context)?;
                    Ok(Flow::Next)
                };
                flow::compute::by_size(context, more, finish).await
            }
            ControlFlow::Break(flow) => Ok(flow),
        }
    }

    /// Waits for what the items become; one that fails or answers ends the flow.
    async fn gather(
        self: &Arc<Foreach>,
        branches: &mut Branches<Copies>,
        count: usize,
        context: &mut Context,
    ) -> Result<ControlFlow<Flow, Vec<Option<Brought>>>, Fault> {
        let mut made: Vec<Option<Brought>> = std::iter::repeat_with(|| None).take(count).collect();
        while let Some((index, ended)) = branches.next().await? {
            match ended {
                Branched::Whole(mut item) => {
                    item.receive_body().await?;
                    let core = Arc::clone(self);
                    made[index] = flow::compute::by_size(&mut item, 0, move |item| core.made(item)).await?;
                }
                Branched::Nothing => {}
                Branched::Failed(item) => {
                    context.fail_as(&item);
                    return Ok(ControlFlow::Break(Flow::Stop));
                }
                Branched::Answer(item) => {
                    context.answer_with(item);
                    return Ok(ControlFlow::Break(Flow::Respond));
                }
            }
        }
        Ok(ControlFlow::Continue(made))
    }

    fn items(&self, context: &mut Context) -> Result<Items, Fault> {
        let wrong = || {
            let source = self.source.strip_prefix("${").and_then(|inner| inner.strip_suffix('}'));
            let source = source.unwrap_or(&self.source);
            Fault::new(format!("Expression {source} did not resolve to a valid array"))
        };
        let limits = context.services().limits.clone();
        let array = |root: &serde_json::Value, path: &JsonPath| {
            let selection = path.select(root);
            let found = selection.nodes.into_iter().next();
            if let Some(serde_json::Value::Array(items)) = found.as_deref()
                && items.len() > MANY
            {
                meter::not_inline()?;
            }
            match found.map(std::borrow::Cow::into_owned) {
                Some(serde_json::Value::Array(items)) => Ok(Items::Json(items)),
                _ => Err(meter::finished(wrong())?),
            }
        };
        match &self.collection {
            Collection::Payload(path) => {
                if context.payload.is_empty() {
                    return Err(wrong());
                }
                array(&context.payload.as_json(&limits)?, path)
            }
            Collection::Variable(name, path) => match context.variables.get(name) {
                Some(Value::Json(root)) => array(root, path),
                Some(Value::Xml(nodes)) if path.is_root() => Ok(Items::Xml(
                    Arc::clone(&nodes.document),
                    elements(&nodes.document, nodes.nodes.clone()),
                )),
                Some(other) => {
                    let text = other.to_string();
                    if text.len() > MANY * super::ITEM {
                        meter::not_inline()?;
                    }
                    let root: serde_json::Value = serde_json::from_str(&text).map_err(|_| wrong())?;
                    array(&root, path)
                }
                None => Err(wrong()),
            },
            Collection::Nodes(expression) => {
                let envelope = context.shared_envelope()?;
                let nodes = elements(&envelope.document, expression.nodes(context)?);
                Ok(Items::Pieces(envelope, nodes))
            }
            Collection::NodesOf(name, expression) => match context.variables.get(name) {
                Some(Value::Xml(tree)) => {
                    let nodes = select(expression, &tree.document)?;
                    Ok(Items::Xml(Arc::clone(&tree.document), nodes))
                }
                _ => Err(wrong()),
            },
            Collection::Value(expression) => {
                if expression.is_json() {
                    return match expression.json_values(context)? {
                        Some(serde_json::Value::Array(items)) => Ok(Items::Json(items)),
                        _ => Err(wrong()),
                    };
                }
                match expression.value(context)? {
                    Some(Value::Json(json)) => match &*json {
                        serde_json::Value::Array(items) => Ok(Items::Json(items.clone())),
                        _ => Err(wrong()),
                    },
                    Some(Value::Xml(nodes)) => Ok(Items::Xml(
                        Arc::clone(&nodes.document),
                        elements(&nodes.document, nodes.nodes.clone()),
                    )),
                    _ => Err(wrong()),
                }
            }
        }
    }

    /// What an item became; an empty payload is nothing.
    fn made(&self, item: &mut Context) -> Result<Option<Brought>, Fault> {
        let json = match (&self.result, &self.collection) {
            (Output::Json(_), _) => true,
            (Output::Xml(..), _) => false,
            (Output::Original, Collection::Payload(_) | Collection::Value(_)) => true,
            (Output::Original, Collection::Nodes(_) | Collection::NodesOf(..)) => false,
            (Output::Original, Collection::Variable(name, _)) => {
                !matches!(item.variables.get(name), Some(Value::Xml(_)))
            }
        };
        if item.payload.is_empty() {
            return Ok(None);
        }
        if json {
            let limits = item.services().limits.clone();
            return Ok(Some(Brought::Json(item.payload.as_json(&limits)?)));
        }
        let limits = item.services().limits.clone();
        let made = item.payload.first_piece(&limits)?;
        Ok(made.map(|(envelope, element)| Brought::Pieces(envelope, vec![element])))
    }

    /// Puts what the items became where it belongs.
    fn finish(&self, made: Vec<Brought>, context: &mut Context) -> Result<(), Fault> {
        match (&self.result, &self.collection) {
            (Output::Json(name), _) => {
                context.variables.set(Arc::clone(name), Value::Json(Arc::new(Brought::array(made))));
            }
            (Output::Xml(name, around), _) => {
                let whole = Brought::element(around, &made);
                context.variables.set(Arc::clone(name), Value::Xml(Arc::new(whole)));
            }
            (Output::Original, Collection::Payload(path)) => {
                let limits = context.services().limits.clone();
                let root = context.payload.as_json(&limits)?;
                context.payload.set_json_value(with(root, path, Brought::array(made))?);
            }
            (Output::Original, Collection::Variable(name, path)) => {
                let changed = match context.variables.get(name) {
                    Some(Value::Xml(tree)) => Value::Xml(Arc::new(replaced(tree, &tree.nodes, &made))),
                    Some(Value::Json(root)) => {
                        Value::Json(Arc::new(with((**root).clone(), path, Brought::array(made))?))
                    }
                    Some(other) => {
                        let root = serde_json::from_str(&other.to_string()).unwrap_or_default();
                        Value::Json(Arc::new(with(root, path, Brought::array(made))?))
                    }
                    None => return Ok(()),
                };
                context.variables.set(Arc::clone(name), changed);
            }
            (Output::Original, Collection::Nodes(expression)) => {
                let nodes = expression.nodes(context)?;
                let envelope = context.envelope_mut()?;
                let nodes = elements(&envelope.document, nodes);
                let parent = nodes.first().and_then(|&first| envelope.document.parent(first));
                let Some(parent) = parent.filter(|&node| envelope.document.kind(node) == NodeKind::Element)
                else {
                    return Err(Fault::new("foreach cannot run on the SOAP envelope itself"));
                };
                for &node in &nodes {
                    envelope.document.detach(node);
                }
                Brought::append(&made, &mut envelope.document, parent);
            }
            (Output::Original, Collection::NodesOf(name, expression)) => {
                if let Some(Value::Xml(tree)) = context.variables.get(name) {
                    let nodes = select(expression, &tree.document)?;
                    let changed = replaced(tree, &nodes, &made);
                    context.variables.set(Arc::clone(name), Value::Xml(Arc::new(changed)));
                }
            }
            (Output::Original, Collection::Value(_)) => {}
        }
        Ok(())
    }
}

/// The copies for the items, made one by one.
struct Copies {
    template: Box<Context>,
    items: Items,
    next: usize,
    counter: Option<Arc<str>>,
    list: ListId,
    /// What is around each piece.
    shell: Option<Arc<Shell>>,
}

/// An envelope of the version of a message.
fn empty(copy: &Context) -> Envelope {
    Envelope::empty(match copy.payload.reading().kind {
        message::Kind::Soap12 => message::SoapVersion::V12,
        _ => message::SoapVersion::V11,
    })
}

impl Iterator for Copies {
    type Item = (Box<Context>, ListId, Child);

    fn next(&mut self) -> Option<(Box<Context>, ListId, Child)> {
        let index = self.next;
        self.next += 1;
        let mut copy = match &mut self.items {
            Items::Json(items) => {
                let item = items.get_mut(index)?.take();
                let mut copy = self.template.branch_without_payload();
                copy.payload.set_json_value(item);
                copy
            }
            Items::Xml(document, items) => {
                let &node = items.get(index)?;
                let mut copy = self.template.branch_without_payload();
                let mut envelope = empty(&copy);
                envelope.document.copy_from(envelope.body, document, node);
                copy.payload.set_envelope(envelope);
                copy
            }
            Items::Pieces(envelope, items) => {
                let &node = items.get(index)?;
                let mut copy = self.template.branch_without_payload();
                let shell = self.shell.get_or_insert_with(|| Arc::new(Shell::new(empty(&copy))));
                let item = Assembly::new(Arc::clone(shell), [(Arc::clone(envelope), node)]);
                copy.payload.set_assembly(item);
                copy
            }
        };
        if let Some(counter) = &self.counter {
            copy.variables.set(Arc::clone(counter), Value::Integer(index as i64));
        }
        Some((copy, self.list, self.template.silent_child("an item of foreach")))
    }
}

fn elements(document: &Document, nodes: Vec<NodeId>) -> Vec<NodeId> {
    nodes.into_iter().filter(|&node| document.kind(node) == NodeKind::Element).collect()
}

/// The elements that an XPath selects in the tree of a variable.
fn select(expression: &Expression, document: &Document) -> Result<Vec<NodeId>, Fault> {
    let Some(xpath) = expression.xpath() else { return Ok(Vec::new()) };
    let found = xpath.evaluate(&xpath::Context::at(document, xpath::Node::new(Document::ROOT)));
    let found = found.map_err(|error| {
        Fault::new(format!(
            "Evaluation of the expression {} resulted in an error: {}",
            expression.source(),
            error.message
        ))
    })?;
    Ok(match found {
        xpath::Value::NodeSet(nodes) => {
            let nodes = nodes.iter().filter(|node| !node.is_namespace()).map(|node| node.id).collect();
            elements(document, nodes)
        }
        _ => Vec::new(),
    })
}

fn with(
    mut root: serde_json::Value,
    path: &JsonPath,
    items: serde_json::Value,
) -> Result<serde_json::Value, Fault> {
    if path.is_root() {
        return Ok(items);
    }
    path.set(&mut root, &items)?;
    Ok(root)
}

/// A tree with some of its elements replaced: the new ones come last where the first of the old ones was.
fn replaced(tree: &XmlValue, old: &[NodeId], made: &[Brought]) -> XmlValue {
    let mut document = (*tree.document).clone();
    let parent = old.first().and_then(|&first| document.parent(first)).unwrap_or(Document::ROOT);
    for &node in old {
        document.detach(node);
    }
    let added = Brought::append(made, &mut document, parent);
    let mut nodes: Vec<_> = tree.nodes.iter().copied().filter(|node| !old.contains(node)).collect();
    if parent == Document::ROOT {
        nodes.extend(added);
    }
    XmlValue { document: Arc::new(document), nodes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::testing::{self, Ended};

    const XML: (&str, &str) = ("Content-Type", "application/xml");
    const JSON: (&str, &str) = ("Content-Type", "application/json");

    /// Runs `foreach` with the attributes and mediators.
    fn run(attributes: &str, inside: &str, header: (&str, &str), body: &str) -> Ended {
        let text = format!(
            "<variable name='v' type='JSON' value='{{\"l\":[1,2]}}'/><variable name='x' type='XML' value='&lt;r>&lt;i>1&lt;/i>&lt;k/>&lt;i>2&lt;/i>&lt;/r>'/>\
             <foreach {attributes}><sequence>{inside}</sequence></foreach><property name='after' value='1'/>"
        );
        let tested = testing::main(&crate::registry(testing::endpoints), &text);
        assert!(tested.found.is_empty(), "{attributes}: {:?}", tested.found);
        tested.run(&[header], body)
    }

    const OBJECT: &str = "<payloadFactory media-type='json'><format>{\"v\":$1}</format><args><arg evaluator='json' expression='$'/></args></payloadFactory>";
    const ELEMENT: &str = "<payloadFactory><format><o xmlns=''>$1</o></format><args><arg expression='string($body/*)'/></args></payloadFactory>";

    #[test]
    fn what_the_items_become_replaces_the_collection() {
        for parallel in ["true", "false"] {
            for (collection, inside, header, body, made) in [
                ("${payload}", OBJECT, JSON, "[1,2]", r#"[{"v":1},{"v":2}]"#),
                (
                    "${$.a.b}",
                    OBJECT,
                    JSON,
                    r#"{"a":{"b":[1,2],"c":3}}"#,
                    r#"{"a":{"b":[{"v":1},{"v":2}],"c":3}}"#,
                ),
                (
                    "${payload.a[0]['b c']}",
                    OBJECT,
                    JSON,
                    r#"{"a":[{"b c":[1]}]}"#,
                    r#"{"a":[{"b c":[{"v":1}]}]}"#,
                ),
                ("json-eval($.a)", OBJECT, JSON, r#"{"a":[7]}"#, r#"{"a":[{"v":7}]}"#),
                ("${payload.a}", OBJECT, JSON, r#"{"a":[]}"#, r#"{"a":[]}"#),
                // What ends early brings nothing.
                (
                    "${payload}",
                    "<filter xpath='//jsonValue = 2'><then><drop/></then></filter>",
                    JSON,
                    "[1,2,3]",
                    "[1,3]",
                ),
                // As in WSO2 the new items come last.
                (
                    "${xpath('//i')}",
                    ELEMENT,
                    XML,
                    "<a><x/><i>1</i><y/><i>2</i></a>",
                    "<a><x/><y/><o>1</o><o>2</o></a>",
                ),
                ("//i[. > 1]", ELEMENT, XML, "<a><i>1</i><i>2</i></a>", "<a><i>1</i><o>2</o></a>"),
                ("//none", ELEMENT, XML, "<a/>", "<a/>"),
            ] {
                let mut end = run(
                    &format!("collection=\"{collection}\" parallel-execution='{parallel}'"),
                    inside,
                    header,
                    body,
                );
                assert_eq!(end.outcome().as_deref(), Ok(made), "{collection}");
                assert_eq!(end.property("after").as_deref(), Some("1"));
            }
        }
    }

    #[test]
    fn variables_hold_collections_and_results() {
        let json = "update-original='false' result-content-type='JSON' target-variable='out'";
        let xml = "update-original='false' result-content-type='XML' target-variable='out' result-enclosing-element='all'";
        for (attributes, inside, name, made) in [
            ("collection='${vars.v.l}'".to_owned(), OBJECT, "v", r#"{"l":[{"v":1},{"v":2}]}"#),
            ("collection='${vars[\"v\"].l}'".to_owned(), OBJECT, "v", r#"{"l":[{"v":1},{"v":2}]}"#),
            ("collection=\"${xpath('//i', 'x')}\"".to_owned(), ELEMENT, "x", "<r><k/><o>1</o><o>2</o></r>"),
            ("collection=\"${xpath('/r/i','x')}\"".to_owned(), ELEMENT, "x", "<r><k/><o>1</o><o>2</o></r>"),
            ("collection='${vars.x}'".to_owned(), ELEMENT, "x", "<o>12</o>"),
            (format!("collection='${{vars.v.l}}' {json}"), OBJECT, "out", r#"[{"v":1},{"v":2}]"#),
            (format!("collection='${{vars.v.l}}' {json}"), ELEMENT, "out", r#"[{"o":1},{"o":2}]"#),
            (format!("collection='${{vars.v.l}}' {xml}"), ELEMENT, "out", "<all><o>1</o><o>2</o></all>"),
            (
                format!("collection=\"${{xpath('//i','x')}}\" {xml}"),
                "<property name='n' value='1'/>",
                "out",
                "<all><i>1</i><i>2</i></all>",
            ),
            (
                format!("collection='json-eval($.l[*])' {json}"),
                "<property name='n' value='1'/>",
                "out",
                "[7,8]",
            ),
        ] {
            let mut end = run(&attributes, inside, JSON, r#"{"l":[7,8]}"#);
            assert_eq!(end.fault(), None, "{attributes}");
            let value = match end.context.variables.get(name) {
                Some(Value::Xml(tree)) => tree.to_xml(),
                other => other.map(ToString::to_string).unwrap_or_default(),
            };
            assert_eq!(testing::without_envelope(&value), made, "{attributes}");
            assert_eq!(end.payload(), r#"{"l":[7,8]}"#, "{attributes}");
            assert_eq!(end.property("n"), None);
        }
    }

    #[test]
    fn items_are_counted_and_may_be_nested() {
        let inside = "<payloadFactory media-type='json'><format>$1</format><args><arg expression='$var:n'/></args></payloadFactory>";
        let mut end = run(
            "collection='${payload}' parallel-execution='false' counter-variable='n'",
            inside,
            JSON,
            "[5,5,5]",
        );
        assert_eq!((end.payload().as_str(), end.context.variables.get("n").is_none()), ("[0,1,2]", true));
        let inside = format!("<foreach collection='${{payload.i}}'><sequence>{OBJECT}</sequence></foreach>");
        let mut end = run("collection='${payload}'", &inside, JSON, r#"[{"i":[1]},{"i":[2,3]}]"#);
        assert_eq!(end.payload(), r#"[{"i":[{"v":1}]},{"i":[{"v":2},{"v":3}]}]"#);
        let text = "<sequence key='again'/><!--top--><sequence name='again'><foreach collection='${payload}'><sequence>\
            <payloadFactory media-type='json'><format>[1]</format></payloadFactory><sequence key='again'/></sequence></foreach></sequence>";
        let end = testing::main(&crate::registry(testing::endpoints), text).run(&[JSON], "[1]");
        assert_eq!(end.how, "nothing");
    }

    #[test]
    fn many_items_run_at_once_and_keep_their_order() {
        let url = testing::backend("");
        let inside = format!("<call><endpoint><address uri='{url}/x'/></endpoint></call>");
        let body = format!("[{}]", (0..150).map(|n| n.to_string()).collect::<Vec<_>>().join(","));
        let mut end = run("collection='${payload}'", &inside, JSON, &body);
        assert_eq!(end.payload(), body);
        let mut end =
            run("collection='${payload}' continue-without-aggregation='true'", &inside, JSON, "[1]");
        assert_eq!((end.payload().as_str(), end.property("after").as_deref()), ("[1]", Some("1")));
    }

    #[test]
    fn an_item_that_fails_ends_the_flow_and_one_that_answers_is_the_answer() {
        let ask = |inside: &str, beside: &str| {
            let text = format!(
                "<foreach collection='${{payload}}'><sequence>{inside}</sequence></foreach><respond/><!--top-->{beside}"
            );
            let tested = testing::main(&crate::registry(testing::endpoints), &text);
            tested.ask("POST", "/", &[JSON], "[1,2]")
        };
        let fails = "<sequence key='{$ctx:none}'/>";
        let fault = "<sequence name='fault'><payloadFactory media-type='json'><format>{\"fault\":$1}</format><args><arg evaluator='json' expression='$'/></args></payloadFactory><respond/></sequence>";
        // The fault sequence sees the item.
        let response = ask(fails, fault);
        assert!(matches!(response.body.as_str(), r#"{"fault":1}"# | r#"{"fault":2}"#), "{response:?}");
        let response = ask(fails, "<sequence name='fault'><drop/></sequence>");
        assert_eq!((response.status, response.body.as_str()), (202, ""));
        assert_eq!(ask(fails, "").status, 500);
        // Also where it fails in a part that it was split into.
        let split = format!("<clone><target><sequence>{fails}</sequence></target></clone>");
        assert_eq!(ask(&split, "").status, 500);
        let response =
            ask("<payloadFactory media-type='json'><format>\"me\"</format></payloadFactory><respond/>", "");
        assert_eq!((response.status, response.body.as_str()), (200, "\"me\""));
    }

    #[test]
    fn what_is_no_collection_is_a_fault() {
        for (collection, header, body) in [
            ("${payload.a}", JSON, r#"{"a":1}"#),
            ("${payload.a}", JSON, "{}"),
            ("${payload}", JSON, ""),
            ("${vars.none}", JSON, "{}"),
            ("${vars.v}", JSON, "{}"),
            ("${xpath('//i','v')}", JSON, "{}"),
        ] {
            let fault = run(&format!("collection=\"{collection}\""), "<drop/>", header, body).fault();
            assert!(
                fault.as_ref().is_some_and(|message| message.contains("did not resolve to a valid array")),
                "{collection}: {fault:?}"
            );
        }
        for (collection, body, says) in
            [("${payload.a}", "{\"a\":", "not JSON"), ("/*", "<a/>", "envelope itself")]
        {
            let header = if body.starts_with('{') { JSON } else { XML };
            let fault =
                run(&format!("collection='{collection}'"), "<property name='n' value='1'/>", header, body)
                    .fault();
            assert!(fault.as_ref().is_some_and(|message| message.contains(says)), "{fault:?}");
        }
    }

    #[test]
    fn mistakes_are_found_when_the_configuration_loads() {
        for (attributes, inside, says) in [
            ("collection='${payload}'", "", "needs a `sequence` inside"),
            ("collection='${payload}' counter-variable='n'", "<sequence/>", "only one item after the other"),
            ("collection='${payload}' update-original='false'", "<sequence/>", "needs a `target-variable`"),
            (
                "collection='${payload}' update-original='false' target-variable='t'",
                "<sequence/>",
                "needs a `result-content-type`",
            ),
            (
                "collection='${payload}' update-original='false' target-variable='t' result-content-type='XML'",
                "<sequence/>",
                "needs a `result-enclosing-element`",
            ),
            ("collection='json-eval($.a[*])'", "<sequence/>", "nothing can be put back"),
            ("collection='//['", "<sequence/>", "not a valid expression"),
        ] {
            let text = format!("<foreach {attributes}>{inside}</foreach>");
            let tested = testing::main(&crate::registry(testing::endpoints), &text);
            assert!(tested.reports(says), "{text}: {:?}", tested.found);
        }
    }
}
