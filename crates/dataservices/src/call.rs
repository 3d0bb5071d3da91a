//! `dataServiceCall`: calls a data service of the same configuration, without HTTP.

use crate::output::Form;
use crate::plan::Service;
use crate::request::{self, Ask, add};
use crate::service::whole;
use crate::value::Givens;
use config::Element;
use diagnostics::Diagnostic;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Expression, Family, Fault, Flow, Inside,
    KeyValue, Mediator, Moves, Need, Page, Step, Values,
};
use message::{Envelope, SoapVersion, Value, XmlValue};
use std::sync::Arc;

/// `<dataServiceCall serviceName="…"><source/><operations/><target/></dataServiceCall>`
pub(crate) const DEFINITION: Definition = Definition {
    name: "dataServiceCall",
    summary: "Asks a data service of the same configuration.",
    attributes: &[Attribute::required("serviceName", Values::Text, "the data service")],
    children: Children::Elements(&["source", "operations", "target"]),
    page: PAGE,
    compile,
};

const SOURCES: &[&str] = &["body", "inline"];
const KINDS: &[&str] = &["single", "batch", "request-box"];
const TARGETS: &[&str] = &["body", "property"];

const PAGE: Page = Page {
    family: Family::Extension,
    semantics: "The [data service](../data-services.md) runs the request without HTTP: no listener, no access log, the same statements, checks and faults.
With the source `body`, the body of the message is the request, as a client would send it; with `inline`, the `operations` are. Several operations (`batch`,
`request-box`) are committed as a whole or not at all.

The answer replaces the body, in the form that the message has (JSON stays JSON), or becomes a property of default scope, which is XML. An operation
without an answer leaves the body empty (`application/xml`), and a property as it was. Where the data service would answer with a `DataServiceFault`, the flow faults, with the text of that in ERROR_DETAIL.

The step waits without holding a worker.",
    inside: &[
        Inside::new(
            "source",
            "where the request is; default: the body",
            &[Attribute::optional("type", Values::OneOf(SOURCES), "the body, or `operations`").or("body")],
        ),
        Inside::new(
            "operations",
            "the request",
            &[Attribute::required("type", Values::OneOf(KINDS), "one operation, one many times, or several")],
        ),
        Inside::new(
            "operations/operation+",
            "an operation",
            &[Attribute::required("name", Values::Text, "its name")],
        ),
        Inside::new(
            "operations/operation/param*",
            "a parameter",
            &[
                Attribute::required("name", Values::Text, "its name"),
                Attribute::optional("value", Values::Text, "a text"),
                Attribute::optional("expression", Values::Expression, "or an expression"),
                Attribute::optional("evaluator", Values::OneOf(&["xml", "json"]), "what the expression is of"),
            ],
        ),
        Inside::new(
            "target",
            "where the answer goes; default: the body",
            &[
                Attribute::optional("type", Values::OneOf(TARGETS), "the body, or a property").or("body"),
                Attribute::optional("name", Values::Key, "the property"),
            ],
        ),
    ],
    needs: &[
        (Need::Whole, "the body is the request, or is replaced"),
    ],
    refused: &[
        ("<dataServiceCall serviceName=\"none\"/>", "there is no data service `none`"),
        ("<dataServiceCall/>", "`dataServiceCall` needs the attribute `serviceName`"),
    ],
    faults: &[
        ("0", "there is no such data service or operation, a parameter is wrong, or the database fails"),
        ("601000", "the body cannot be read"),
    ],
};

struct DataServiceCall {
    service: String,
    /// `None`: the body.
    operations: Option<(RequestForm, Vec<Operation>)>,
    /// `None`: the body.
    property: Option<KeyValue>,
}

#[derive(Clone, Copy, PartialEq)]
enum RequestForm {
    Single,
    Batch,
    Box,
}

struct Operation {
    name: String,
    parameters: Vec<(String, Parameter)>,
}

enum Parameter {
    Text(String),
    Expression(Expression),
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let attribute = element.attribute("serviceName")?;
    let name = attribute.value.trim();
    let services = &compiler.configuration.data_services;
    if services.get(name).is_none() {
        let names: Vec<_> = services.names().map(str::to_owned).collect();
        compiler.diagnostics.push(
            Diagnostic::warning("unknown-data-service", format!("there is no data service `{name}`"))
                .at(attribute.value_span, "messages that come here fault")
                .did_you_mean(name, names.iter().map(String::as_str)),
        );
    }
    let word = |name: &str, default: &str| {
        let value = element.child(name).and_then(|child| child.attr("type")).map(str::trim);
        value.unwrap_or(default).to_ascii_lowercase()
    };
    let is_inline = word("source", "body") == "inline";
    let mut operations = None;
    if is_inline {
        let Some(list) = element.child("operations") else {
            let message = "`dataServiceCall` with the source `inline` needs `operations`";
            compiler.error(
                "missing-element",
                message.to_owned(),
                element.start_tag(),
                "there would be no request",
            );
            return None;
        };
        let kind = match &*word("operations", "single") {
            "batch" => RequestForm::Batch,
            "request-box" => RequestForm::Box,
            _ => RequestForm::Single,
        };
        let mut all = Vec::new();
        collect(list, name, &mut all, compiler)?;
        let is_one = kind != RequestForm::Single || all.len() == 1;
        if all.is_empty() || !is_one {
            let message = format!("`operations` has {} operations", all.len());
            compiler.error(
                "bad-value",
                message,
                list.start_tag(),
                "`single` is one, `batch` and `request-box` at least one",
            );
            return None;
        }
        operations = Some((kind, all));
    } else if let Some(list) = element.child("operations") {
        let message = "`operations` has no effect: the source is the body".to_owned();
        compiler.error("bad-value", message, list.start_tag(), "set <source type=\"inline\"/>");
        return None;
    }
    let mut property = None;
    if word("target", "body") == "property" {
        let target = element.child("target")?;
        property = Some(compiler.key_value(target, "name").or_else(|| {
            let message = "`target` needs the `name` of a property".to_owned();
            compiler.error("missing-attribute", message, target.start_tag(), "`type` is `property`");
            None
        })?);
    }
    Some(Box::new(DataServiceCall { service: name.to_owned(), operations, property }))
}

fn collect(
    list: &Element,
    service: &str,
    all: &mut Vec<Operation>,
    compiler: &mut Compiler<'_>,
) -> Option<()> {
    for child in list.elements() {
        // A request box may have nested lists.
        if child.is("operations") {
            collect(child, service, all, compiler)?;
            continue;
        }
        let name = child.attr("name").unwrap_or_default().trim().to_owned();
        // An unknown service is reported already.
        if let Some(data_service) = compiler.configuration.data_services.get(service) {
            let names = data_service.operations.iter().flat_map(|operation| match &operation.method {
                None => vec![operation.name.value.trim().to_owned()],
                Some(method) => crate::compile::request_names(method, &operation.name),
            });
            let names: Vec<String> = names.collect();
            if !child.is("operation") || !names.contains(&name) {
                let found = Diagnostic::warning(
                    "unknown-query",
                    format!("the data service `{service}` has no operation `{name}`"),
                )
                .at(child.start_tag(), "messages that come here fault")
                .did_you_mean(&name, names.iter().map(String::as_str));
                compiler.diagnostics.push(found);
            }
        }
        let mut parameters = Vec::new();
        for parameter in child.children_named("param") {
            let value = match (parameter.attribute("expression"), parameter.attr("value")) {
                (Some(_), _) => Parameter::Expression(compiler.expression(parameter, "expression")?),
                (None, Some(text)) => Parameter::Text(text.to_owned()),
                (None, None) => Parameter::Text(String::new()),
            };
            parameters.push((parameter.attr("name").unwrap_or_default().trim().to_owned(), value));
        }
        all.push(Operation { name, parameters });
    }
    Some(())
}

impl DataServiceCall {
    /// The request of a message.
    fn ask(&self, service: &Service, context: &mut Context) -> Result<Ask, Fault> {
        let failed = |trouble: crate::fault::Trouble| {
            Fault::new(format!("the data service {}: {}", service.name, trouble.message))
        };
        let Some((kind, operations)) = &self.operations else {
            if context.payload.is_json() {
                let json = context.payload.json()?;
                let none = || Fault::new("the body has no request of a data service");
                let ask = request::of_json(service, None, false, json.ok_or_else(none)?).map_err(failed)?;
                return ask.ok_or_else(none);
            }
            let envelope = context.envelope()?;
            let root =
                envelope.payload().ok_or_else(|| Fault::new("the body has no request of a data service"))?;
            return request::of_element(service, None, false, &envelope.document, root).map_err(failed);
        };
        let mut all = Vec::new();
        for operation in operations {
            let mut givens = Givens::new();
            for (name, value) in &operation.parameters {
                let text = match value {
                    Parameter::Text(text) => Some(text.clone()),
                    Parameter::Expression(expression) => expression.string(context)?,
                };
                add(&mut givens, name, text);
            }
            let at = service.operation(&operation.name);
            all.push((
                at.ok_or_else(|| Fault::new(format!("there is no operation {}", operation.name)))?,
                givens,
            ));
        }
        Ok(match (kind, all.first().map(|(at, _)| *at)) {
            (RequestForm::Batch, Some(at)) if all.iter().all(|(number, _)| *number == at) => {
                Ask::Batch(at, all.into_iter().map(|(_, givens)| givens).collect())
            }
            (RequestForm::Single, Some(_)) if all.len() == 1 => {
                let (at, givens) = all.swap_remove(0);
                Ask::One(at, givens)
            }
            _ => Ask::Box(all.into_iter().map(|(at, givens)| Ask::One(at, givens)).collect()),
        })
    }
}

/// Makes the body an empty envelope, in the version of SOAP that the message has.
fn empty(context: &mut Context) {
    let version = match context.payload.is_json() {
        true => SoapVersion::V11,
        false => context.envelope().map_or(SoapVersion::V11, |envelope| envelope.version),
    };
    context.payload.set_envelope(Envelope::empty(version));
    context.set_axis2("messageType", Value::from("application/xml"));
    context.set_axis2("ContentType", Value::from("application/xml"));
}

impl Mediator for DataServiceCall {
    fn passes_on(&self) -> bool {
        true
    }

    fn need(&self) -> Need {
        Need::Whole
    }

    fn reason(&self) -> String {
        "the body is the request, or is replaced".to_owned()
    }

    fn moves(&self) -> Moves {
        Moves::Never
    }

    fn run<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        Step::Wait(Box::pin(async move {
            let gone = || Fault::new(format!("the data service {} is left out", self.service));
            let service = context.plan().data_service(&self.service).cloned().ok_or_else(gone)?;
            let service: Arc<Service> = service.into_any().downcast().map_err(|_| gone())?;
            let ask = self.ask(&service, context)?;
            let json = self.property.is_none() && context.payload.is_json() && !ask.is_rdf(&service);
            let form = if json { Form::Json } else { Form::Xml };
            let (body, events) = whole(&service, ask, form, context).await?.map_err(|trouble| {
                let message = format!("the data service {} fails: {}", service.name, trouble.message);
                let detail = trouble.text(&service);
                Fault { status: trouble.status.max(500), ..Fault::new(message).because(detail) }
            })?;
            let next = events.map_or(Flow::Next, Flow::Split);
            let Some(bytes) = body else {
                if self.property.is_none() {
                    empty(context);
                }
                return Ok(next);
            };
            let text = || String::from_utf8_lossy(&bytes).into_owned();
            match &self.property {
                Some(name) => {
                    if let Some(name) = name.resolve(context)? {
                        let size = bytes.len();
                        let set = move |context: &mut Context| {
                            let document = xml::Document::parse(bytes, &xml::ParseOptions::default())
                                .map_err(|error| Fault::new(format!("the answer is not XML: {error}")))?;
                            let nodes = document.document_element().into_iter().collect();
                            let value = XmlValue { document: Arc::new(document), nodes };
                            context.properties.set(name, Value::Xml(Arc::new(value)));
                            Ok(())
                        };
                        flow::compute::by_size(context, size, set).await?;
                    }
                }
                None if json => context.payload.set_json(&text())?,
                None => {
                    let version = context.envelope().map_or(SoapVersion::V11, |envelope| envelope.version);
                    let size = bytes.len();
                    let wrap = move |context: &mut Context| {
                        let options = xml::ParseOptions::default();
                        let envelope = Envelope::wrap(bytes.into(), version, &options);
                        let envelope = envelope
                            .map_err(|error| Fault::new(format!("the answer is not XML: {error}")))?;
                        context.payload.set_envelope(envelope);
                        Ok(())
                    };
                    flow::compute::by_size(context, size, wrap).await?;
                }
            }
            Ok(next)
        }))
    }
}
