//! `iterate`: one copy of the message for each item that an expression selects.

use crate::support::{apart, are_nested};
use crate::target::{
    CONTINUE_PARENT, Correlation, ID, SEQUENTIAL, TARGET, TARGET_ENDPOINT, TARGET_SEQUENCE, Target, is_true,
    parts,
};
use config::Element;
use flow::reference::EndpointRef;
use flow::{
    Attribute, Branch, BranchTarget, Children, Compiled, Compiler, Context, Definition, Expression, Family,
    Fault, Flow, Inside, ListId, Mediator, Need, Page, Split, Values,
};
use message::jsonpath::JsonPath;
use message::{Assembly, Envelope, Shell, SoapVersion, Value};
use std::sync::Arc;
use xml::{Document, NodeId, NodeKind};
use xpath::ast::{Axis, ExprKind};

/// `<iterate [id] expression [attachPath] [preservePayload] [continueParent] [sequential]><target/></iterate>`
pub const DEFINITION: Definition = Definition {
    name: "iterate",
    summary: "Sends a copy of the message through the target for each item that the expression selects.",
    attributes: &[
        ID,
        Attribute {
            name: "expression",
            required: true,
            values: Values::Expression,
            default: "",
            meaning: "the items: nodes (XPath) or the elements of an array (json-eval)",
        },
        Attribute {
            name: "attachPath",
            required: false,
            values: Values::Expression,
            default: "",
            meaning: "where the item goes in the copy of the whole payload",
        },
        Attribute {
            name: "preservePayload",
            required: false,
            values: Values::Boolean,
            default: "false",
            meaning: "the copies keep the whole payload, with their one item in it",
        },
        CONTINUE_PARENT,
        SEQUENTIAL,
    ],
    children: Children::Elements(&["target"]),
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Splitting,
    semantics: "`expression` selects items: elements or texts with an XPath (also elements of a property or local entry), the elements of one array with `json-eval`. Each item goes through the target in a copy of the message,
which has its own message id and copies of the properties and variables. All copies run at the same time, up to 100, or with `sequential=\"true\"` one after the
other. The message itself ends here, unless `continueParent` is true: then it goes on, unchanged. An `aggregate` with the same `id`
collects the copies; the property `messageSequence` (with an id: `messageSequence.ID`) of a copy has its number and the number of copies, as in `0/3`.

The payload of a copy is its item alone; the SOAP header stays. With `preservePayload=\"true\"` the copy keeps the whole payload: all items are
removed, and the item of the copy is added at the end of the first element that `attachPath` selects; in JSON it replaces the value at `attachPath`.
`attachPath` must have the language of `expression`; without it the item is added to the envelope, or becomes the JSON payload.

Where one selected element is within another one, it is not in the copy of that one. An XPath that selects nothing, or no nodes, makes no copies; that is no error, and the client gets 202 if nothing else answers.
A `json-eval` that selects nothing or no array is an error. The target runs the first of these that it has: the sequence inside, the
sequence that it names, the endpoint inside, the endpoint that it names. If a copy fails, the fault sequence runs for that copy; the others go on.",
    inside: &[TARGET_ONCE, TARGET_SEQUENCE, TARGET_ENDPOINT],
    needs: &[(Need::Whole, "always")],
    refused: &[
        ("<iterate expression=\"//a\"/>", "`iterate` needs a `target`"),
        ("<iterate><target/></iterate>", "`iterate` needs the attribute `expression`"),
        ("<iterate expression=\"//a[\"><target/></iterate>", "not a valid expression"),
        ("<iterate expression=\"//a\" attachPath=\"//b\"><target/></iterate>", "`attachPath` without `preservePayload=\"true\"`"),
        (
            "<iterate expression=\"//a\" preservePayload=\"true\" attachPath=\"json-eval($.b)\"><target/></iterate>",
            "`expression` and `attachPath` are of different kinds",
        ),
    ],
    faults: &[
        (
            "0",
            "a `json-eval` selects no array, `attachPath` selects nothing, or the target names a sequence that does not exist",
        ),
        ("601000", "the body is not what its content type says, or larger than a flow may hold"),
    ],
};

/// There is one.
const TARGET_ONCE: Inside = Inside { path: "target", ..TARGET };

/// The mediator; the parts that have not had their turn keep its core.
struct Iterate(Arc<Core>);

struct Core {
    items: Expression,
    /// With `preservePayload`: where the item goes. `None` inside: the envelope, or the root of the JSON.
    preserve: Option<Option<Expression>>,
    continue_parent: bool,
    sequential: bool,
    correlation: Correlation,
    target: Target,
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let items = compiler.expression(element, "expression")?;
    if !items.is_json()
        && let Some(attribute) = element.attribute("expression")
        && let Ok(expression) = xpath::parse(attribute.value.trim(), xpath::Version::V1)
        && selects_no_parts(&expression.kind)
    {
        let message = format!("`{}` selects nothing that a message can be made of", attribute.value.trim());
        compiler.warning("no-effect", message, attribute.value_span, "expected elements or texts");
    }
    let preserves = is_true(element, "preservePayload");
    let attach = match element.attribute("attachPath") {
        Some(attribute) if !preserves => {
            compiler.error(
                "bad-value",
                "`attachPath` without `preservePayload=\"true\"`",
                attribute.name_span,
                "there is no payload to attach the item to",
            );
            return None;
        }
        Some(attribute) => {
            let attach = compiler.expression(element, "attachPath")?;
            if attach.is_json() != items.is_json() {
                compiler.error(
                    "bad-value",
                    "`expression` and `attachPath` are of different kinds",
                    attribute.value_span,
                    "both have to be XPath, or both json-eval",
                );
                return None;
            }
            Some(attach)
        }
        None => None,
    };
    let Some(target) = element.child("target") else {
        let place = element.start_tag();
        compiler.error("missing-element", "`iterate` needs a `target`", place, "where the copies go");
        return None;
    };
    let compiled = Target::compile(target, "target of iterate".into(), compiler)?;
    compiled.warn_if_empty(target, compiler);
    let target = compiled;
    Some(Box::new(Iterate(Arc::new(Core {
        items,
        preserve: preserves.then_some(attach),
        continue_parent: is_true(element, "continueParent"),
        sequential: is_true(element, "sequential"),
        correlation: Correlation::of(element),
        target,
    }))))
}

/// Whether an XPath gives attributes, numbers, truth values or a text, whatever the message is.
fn selects_no_parts(expression: &ExprKind) -> bool {
    match expression {
        ExprKind::Path(_, steps) => {
            steps.last().is_some_and(|step| matches!(step.axis, Axis::Attribute | Axis::Namespace))
        }
        ExprKind::Union(all) => all.iter().all(|one| selects_no_parts(&one.kind)),
        ExprKind::Call(name, _) => {
            name.prefix.is_empty()
                && matches!(&*name.local, "string" | "concat" | "count" | "normalize-space")
        }
        ExprKind::Number(_)
        | ExprKind::Literal(_)
        | ExprKind::Binary(..)
        | ExprKind::And(_)
        | ExprKind::Or(_)
        | ExprKind::Negate(_) => true,
        _ => false,
    }
}

impl Mediator for Iterate {
    fn need(&self) -> Need {
        Need::Whole
    }

    fn reason(&self) -> String {
        self.0.items.reason()
    }

    fn passes_on(&self) -> bool {
        self.0.target.passes_on()
    }

    fn lists(&self) -> Vec<(String, ListId)> {
        self.0.target.list().map(|list| ("target".to_owned(), list)).into_iter().collect()
    }

    fn endpoints(&self) -> Vec<Arc<EndpointRef>> {
        self.0.target.endpoint().into_iter().collect()
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let core = &self.0;
        let items = if core.items.is_json() { core.json(context)? } else { core.xml(context)? };
        let count = items.len();
        if count == 0 {
            return Ok(if core.continue_parent { Flow::Next } else { Flow::Stop });
        }
        core.correlation.begin(context);
        let parts = parts(Copies {
            core: Arc::clone(core),
            id: Value::from(context.message_id()),
            original: context.branch_without_payload(),
            items,
            count,
            next: 0,
        })
        .map_err(|(fault, _)| *fault)?;
        let (continue_parent, sequential) = (core.continue_parent, core.sequential);
        Ok(Flow::Split(Split { parts, count, continue_parent, sequential, stops: false, aside: false }))
    }
}

/// Elements, and the envelope that they are in.
type Selected = (Arc<Envelope>, Vec<NodeId>);

/// What the copies are made of.
enum Items {
    /// Elements and texts of the message: each goes into the shell.
    Xml { envelope: Arc<Envelope>, nodes: std::vec::IntoIter<NodeId>, shell: Arc<Shell> },
    /// The elements of an array.
    Json { items: std::vec::IntoIter<serde_json::Value>, rest: Option<(serde_json::Value, JsonPath)> },
}

impl Items {
    fn len(&self) -> usize {
        match self {
            Items::Xml { nodes, .. } => nodes.len(),
            Items::Json { items, .. } => items.len(),
        }
    }
}

impl Core {
    /// The selected elements and texts: each comes into an envelope with the headers, or into what is left of the payload.
    /// Nothing is copied before a step reads it.
    fn xml(&self, context: &mut Context) -> Result<Items, Fault> {
        if self.items.need().is_whole() {
            context.shared_envelope()?;
        }
        let nodes = self.items.nodes(context)?;
        let beside = if nodes.is_empty() { self.beside(context)? } else { None };
        if beside.is_none() && (nodes.is_empty() || context.payload.built_envelope().is_none()) {
            return Ok(Items::Json { items: Vec::new().into_iter(), rest: None });
        }
        let envelope = context.shared_envelope()?;
        let items =
            |node: &NodeId| matches!(envelope.document.kind(*node), NodeKind::Element | NodeKind::Text);
        let nodes: Vec<_> = nodes.into_iter().filter(items).collect();
        let shell = match &self.preserve {
            None => Shell::new(crate::support::envelope_with_headers(&envelope)),
            Some(attach) => {
                let mut probe = context.branch_without_payload();
                probe.payload.set_envelope(without(&envelope, &nodes)?);
                let place = match attach {
                    Some(attach) => attach.nodes(&mut probe)?.first().copied(),
                    None => probe.payload.built_envelope().map(|rest| rest.root),
                };
                let rest = probe.envelope()?.clone();
                let Some(place) = place.filter(|&place| rest.document.kind(place) == NodeKind::Element)
                else {
                    let path = attach.as_ref().map_or(".", Expression::source);
                    return Err(Fault::new(format!("the attachPath {path} selects no element")));
                };
                Shell::within(rest, place)
            }
        };
        let (envelope, nodes) = match beside {
            Some(beside) => beside,
            None if are_nested(&envelope.document, &nodes) => {
                let (apart, copies) = apart(&envelope.document, envelope.version, &nodes);
                (Arc::new(apart), copies)
            }
            None => (envelope, nodes),
        };
        Ok(Items::Xml { envelope, nodes: nodes.into_iter(), shell: Arc::new(shell) })
    }

    /// The elements that the expression selects in a property or local entry, in an envelope of their own.
    fn beside(&self, context: &mut Context) -> Result<Option<Selected>, Fault> {
        if self.items.property().is_none() {
            return Ok(None);
        }
        let Some(Value::Xml(selected)) = self.items.value(context)? else { return Ok(None) };
        let mut envelope = Envelope::empty(SoapVersion::V11);
        let elements =
            selected.nodes.iter().filter(|&&node| selected.document.kind(node) == NodeKind::Element);
        let nodes: Vec<_> = elements
            .map(|&node| envelope.document.copy_from(envelope.body, &selected.document, node))
            .collect();
        Ok((!nodes.is_empty()).then(|| (Arc::new(envelope), nodes)))
    }

    /// The elements of the selected array, and what each replaces in the payload.
    fn json(&self, context: &mut Context) -> Result<Items, Fault> {
        let source = self.items.source();
        let items = match self.items.json_values(context)? {
            Some(serde_json::Value::Array(items)) => items.into_iter(),
            Some(_) => return Err(Fault::new(format!("{source} does not select a JSON array"))),
            None => return Err(Fault::new(format!("{source} selects nothing"))),
        };
        let Some(attach) = &self.preserve else { return Ok(Items::Json { items, rest: None }) };
        let fixed = |expression: &Expression| {
            expression.json_path().cloned().ok_or_else(|| {
                Fault::new(format!(
                    "{} cannot be attached to: it is not a plain JSONPath",
                    expression.source()
                ))
            })
        };
        let path = fixed(&self.items)?;
        let attach = attach.as_ref().map(fixed).transpose()?.filter(|path| !path.is_root());
        let limits = context.services().limits.clone();
        let mut rest = context.payload.as_json(&limits)?;
        path.update(&mut rest, |array| *array = serde_json::Value::Array(Vec::new()))?;
        Ok(Items::Json { items, rest: attach.map(|path| (rest, path)) })
    }
}

/// The copies, made one by one.
struct Copies {
    core: Arc<Core>,
    /// The message id of the message.
    id: Value,
    original: Box<Context>,
    items: Items,
    count: usize,
    next: usize,
}

impl Iterator for Copies {
    type Item = Branch;

    fn next(&mut self) -> Option<Branch> {
        let mut failed = None;
        let mut copy;
        match &mut self.items {
            Items::Xml { envelope, nodes, shell } => {
                let item = (Arc::clone(envelope), nodes.next()?);
                copy = self.original.branch_without_payload();
                copy.payload.set_assembly(Assembly::new(Arc::clone(shell), [item]));
            }
            Items::Json { items, rest } => {
                let mut item = items.next()?;
                if let Some((rest, path)) = rest {
                    let mut whole = rest.clone();
                    failed = match path.set(&mut whole, &item) {
                        Ok(0) => {
                            Some(Fault::new(format!("the attachPath {} selects nothing", path.source())))
                        }
                        set => set.err().map(Fault::from),
                    };
                    item = whole;
                }
                copy = self.original.branch_without_payload();
                copy.payload.set_json_value(item);
            }
        }
        self.core.correlation.mark(&mut copy, &self.id, self.next, self.count);
        self.next += 1;
        Some(match failed {
            Some(fault) => Branch { context: copy, target: BranchTarget::Failed(Box::new(fault)) },
            None => self.core.target.branch(copy),
        })
    }
}

/// A copy of the envelope without the given nodes, and without room for them.
fn without(envelope: &Envelope, nodes: &[xml::NodeId]) -> Result<Envelope, Fault> {
    let mut cut = envelope.document.clone();
    for &node in nodes {
        cut.detach(node);
    }
    let mut rest = Document::new();
    rest.copy_from(Document::ROOT, &cut, envelope.root);
    Envelope::of_document(rest).map_err(Fault::new)
}

#[cfg(test)]
mod tests {
    use flow::testing;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    const SOAP: &[(&str, &str)] = &[("Content-Type", "text/xml"), ("SOAPAction", "x")];
    const XML: &[(&str, &str)] = &[("Content-Type", "application/xml")];
    const JSON: &[(&str, &str)] = &[("Content-Type", "application/json")];

    /// What the client gets for `iterate` with these attributes, `first` in the target before the aggregate.
    fn split(attributes: &str, expression: &str, headers: &[(&str, &str)], body: &str) -> String {
        let text = format!(
            "<iterate {attributes}><target><sequence><aggregate><onComplete expression=\"{expression}\"><respond/>\
             </onComplete></aggregate></sequence></target></iterate>"
        );
        let tested = testing::main(&crate::registry(testing::endpoints), &text);
        assert!(tested.found.is_empty(), "{:?}", tested.found);
        tested.ask("POST", "/", headers, body).body
    }

    #[test]
    fn what_selects_no_parts_is_named() {
        for (expression, is_named) in [
            ("//i/@k", true),
            ("//i/@k | //j/@*", true),
            ("count(//i)", true),
            ("//i = 5", true),
            ("//i | //j/@k", false),
            ("//i[@k]", false),
            ("//i/text()", false),
            ("get-property('p')", false),
            ("$ctx:p", false),
        ] {
            let text = format!(
                "<iterate expression=\"{expression}\"><target><sequence><call><endpoint key='e'/></call></sequence></target></iterate>"
            );
            let tested = testing::main(&crate::registry(testing::endpoints), &text);
            let named = tested
                .found
                .iter()
                .any(|found| format!("{found:?}").contains("that a message can be made of"));
            assert_eq!(named, is_named, "{expression}: {:?}", tested.found);
        }
    }

    #[test]
    fn items_can_be_of_a_property_or_a_local_entry() {
        let made = "<property name='om' type='OM'><o xmlns=''><i>1</i><i>2</i></o></property>";
        for (before, expression) in
            [(made, "$ctx:om//i"), (made, "get-property('om')/i"), ("", "get-property('entry')//i")]
        {
            let text = format!(
                "{before}<iterate expression=\"{expression}\" sequential='true'><target><sequence><aggregate>\
                 <onComplete expression='//i'><respond/></onComplete></aggregate></sequence></target></iterate>\
                 <!--top--><localEntry key='entry'><o xmlns=''><i>1</i><i>2</i></o></localEntry>"
            );
            let tested = testing::main(&crate::registry(testing::endpoints), &text);
            assert!(tested.found.is_empty(), "{:?}", tested.found);
            let soap = "http://schemas.xmlsoap.org/soap/envelope/";
            let message =
                format!("<s:Envelope xmlns:s='{soap}'><s:Body><m><i>3</i></m></s:Body></s:Envelope>");
            let answer = tested.ask("POST", "/", SOAP, &message).body;
            assert!(answer.contains("<i>1</i><i>2</i>") && !answer.contains('3'), "{expression}: {answer}");
            // A message that is no XML has them too.
            assert_eq!(tested.ask("POST", "/", JSON, "{\"a\": 3}").body, "{\"i\":1}", "{expression}");
        }
    }

    #[test]
    fn each_item_goes_alone_or_with_the_rest_of_the_payload() {
        let order = "<o><h/><i>1</i><i>2</i></o>";
        for (attributes, taken, answer) in [
            ("expression='//i' sequential='true'", "/*/*[2]/*", "<i>1</i>"),
            (
                "expression='//i' preservePayload='true' attachPath='//h' sequential='true'",
                "//o",
                "<o><h><i>1</i></h></o>",
            ),
            ("expression='//i/text()' sequential='true'", "//o|$body/text()", "12"),
        ] {
            let body = split(
                attributes,
                taken,
                SOAP,
                &format!(
                    "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Header><t/></s:Header>\
                 <s:Body>{order}</s:Body></s:Envelope>"
                ),
            );
            let plain = body.replace(" xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"", "");
            assert!(plain.contains(answer) && plain.contains("<t"), "{attributes}: {body}");
        }
        assert!(split("expression='//i' sequential='true'", "//i", XML, order).starts_with("<i>1</i>"));
    }

    /// In both engines all items are taken out of the message before the first one is sent.
    #[test]
    fn what_is_an_item_itself_is_not_in_another_one() {
        let tree = "<t xmlns:p='urn:p'><g k='p:a'>1<g><v/><g>3</g></g>2</g><g>4</g></t>";
        let answer = split("expression='//g' sequential='true'", "//g", XML, tree);
        // The client gets the first of them.
        assert_eq!(answer.replace(" xmlns:p=\"urn:p\"", ""), "<g k=\"p:a\">12</g>");
        let rest = split(
            "expression='//g' preservePayload='true' attachPath='//t' sequential='true'",
            "//t",
            SOAP,
            &format!(
                "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Body>{tree}</s:Body></s:Envelope>"
            ),
        );
        let soap = "http://schemas.xmlsoap.org/soap/envelope/";
        let declared = format!(" xmlns:s=\"{soap}\" xmlns:soapenv=\"{soap}\"");
        for item in ["<g k=\"p:a\">12</g></t>", "<g><v/></g></t>", "<g>3</g></t>", "<g>4</g></t>"] {
            let plain = rest.replace(" xmlns:p=\"urn:p\"", "").replace(&declared, "");
            assert_eq!(plain.matches(item).count(), 1, "{item}: {rest}");
        }
    }

    #[test]
    fn elements_of_a_json_array_are_items() {
        for (attributes, body, answer) in [
            ("expression='json-eval($.a)'", r#"{"a":[{"x":1},2,"z"]}"#, r#"[{"x":1},2,"z"]"#),
            ("expression='json-eval($.a[*].x)'", r#"{"a":[{"x":1},{"x":2}]}"#, "[1,2]"),
            (
                "expression='json-eval($.a)' preservePayload='true' attachPath='json-eval($.b)'",
                r#"{"a":[1,2],"b":0}"#,
                r#"[{"a":[],"b":1},{"a":[],"b":2}]"#,
            ),
            ("expression='json-eval($.a)' preservePayload='true'", r#"{"a":[1,2]}"#, "[1,2]"),
        ] {
            let attributes = format!("{attributes} sequential='true'");
            assert_eq!(split(&attributes, "json-eval($)", JSON, body), answer, "{attributes}");
        }
    }

    /// A backend that answers with an `i`, and how many requests it had at the same time.
    fn counting() -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/", listener.local_addr().unwrap());
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let result = Arc::clone(&most);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (now, most) = (Arc::clone(&now), Arc::clone(&most));
                std::thread::spawn(move || {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    let (mut received, mut chunk) = (Vec::new(), [0; 4096]);
                    while !received.windows(2).any(|end| end == b"</") {
                        match stream.read(&mut chunk) {
                            Ok(count @ 1..) => received.extend_from_slice(&chunk[..count]),
                            _ => break,
                        }
                    }
                    std::thread::sleep(Duration::from_millis(5));
                    now.fetch_sub(1, Ordering::SeqCst);
                    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nConnection: close";
                    let _ = write!(stream, "{head}\r\nContent-Length: 4\r\n\r\n<i/>");
                });
            }
        });
        (address, result)
    }

    #[test]
    fn many_items_do_not_take_a_connection_each_at_once() {
        let (address, most) = counting();
        let text = format!(
            "<iterate expression='//i'><target><sequence><call><endpoint><address uri='{address}'/></endpoint></call>\
             <aggregate><onComplete expression='//i'><property name='messageType' value='text/xml' scope='axis2'/><respond/></onComplete></aggregate></sequence></target></iterate>"
        );
        let tested = testing::main(&crate::registry(testing::endpoints), &text);
        let soap = "http://schemas.xmlsoap.org/soap/envelope/";
        let items = "<i/>".repeat(250);
        let message = format!("<s:Envelope xmlns:s='{soap}'><s:Body><o>{items}</o></s:Body></s:Envelope>");
        let response = tested.ask("POST", "/", SOAP, &message);
        assert_eq!(response.body.matches("<i").count(), 250, "{}", response.body);
        let most = most.load(Ordering::SeqCst);
        assert!(most <= 100, "{most} at once");
    }

    #[test]
    fn what_cannot_be_split_faults_or_passes() {
        let fault = |attributes: &str, headers, body| {
            let text =
                format!("<iterate {attributes}><target><sequence><drop/></sequence></target></iterate>");
            let tested = testing::main(&crate::registry(testing::endpoints), &text);
            tested.run(headers, body).fault()
        };
        for (attributes, headers, body, says) in [
            ("expression='json-eval($.a)'", JSON, r#"{"a":1}"#, Some("does not select a JSON array")),
            ("expression='json-eval($.b)'", JSON, r#"{"a":1}"#, Some("selects nothing")),
            ("expression='json-eval($.b)'", JSON, "", Some("selects nothing")),
            ("expression='json-eval($.b)'", JSON, "{\"a\"", Some("not JSON")),
            ("expression='//i'", XML, "<a", Some("not well-formed")),
            ("expression='//i'", XML, "", None),
            ("expression='//@i'", XML, "<a i='1'/>", None),
            ("expression='string(//i)'", XML, "<i>1</i>", None),
            (
                "expression='//i' preservePayload='true' attachPath='//x'",
                XML,
                "<i/>",
                Some("selects no element"),
            ),
            (
                "expression='json-eval($.a)' preservePayload='true' attachPath='json-eval($.b)'",
                JSON,
                r#"{"a":[1]}"#,
                Some("selects nothing"),
            ),
        ] {
            let fault = fault(attributes, headers, body);
            match says {
                Some(says) => assert!(
                    fault.as_ref().is_some_and(|fault| fault.contains(says)),
                    "{attributes}: {fault:?}"
                ),
                None => assert_eq!(fault, None, "{attributes}"),
            }
        }
    }

    #[test]
    fn nothing_selected_still_goes_on_where_the_parent_does() {
        for (attributes, how) in [("continueParent='true'", "respond"), ("", "nothing")] {
            let text = format!(
                "<iterate expression='//i' {attributes}><target sequence='s'/></iterate><respond/>\
                <!--top--><sequence name='s'/>"
            );
            let tested = testing::main(&crate::registry(testing::endpoints), &text);
            assert_eq!(tested.run(XML, "<a/>").how, how);
        }
    }

    #[test]
    fn mistakes_are_found_when_the_configuration_loads() {
        for (text, says) in [
            ("<iterate expression='//i'/>", "needs a `target`"),
            ("<iterate expression='//i' attachPath='.'><target/></iterate>", "without `preservePayload"),
            (
                "<iterate expression='//i' preservePayload='true' attachPath='json-eval($)'><target/></iterate>",
                "different kinds",
            ),
            ("<iterate><target/></iterate>", "needs the attribute `expression`"),
        ] {
            let tested = testing::main(&crate::registry(testing::endpoints), text);
            assert!(tested.reports(says), "{text}: {:?}", tested.found);
        }
    }
}
