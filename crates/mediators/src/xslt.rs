//! `xslt`: replaces the payload, or the element that an expression selects, by what a stylesheet makes of it.
//!
//! The usual message, whose body no step has read yet, goes straight from its bytes through the stylesheet to the
//! bytes of the next one: no tree of an envelope is built around either, and what stands around the payload of a SOAP
//! message stays as it came. If it is large plain XML and the stylesheet looks only downwards, the result leaves while
//! the message arrives.

pub(crate) mod of_results;

use crate::resources::RESOURCE;
use crate::stylesheet::{EVALUATE, PROCESSOR, Style, failed, not_xml};
use config::Element;
use flow::{
    Attribute, Children, Compiled, Compiler, Context, Definition, Expression, Family, Fault, Flow, Inside,
    Mediator, Moves, Need, Page, Step, Values,
};
use message::media::Kind;
use message::{Body, Envelope, Opened, Reading, Value, XmlValue};
use std::sync::Arc;
use xml::{Document, NodeId, NodeKind, ParseOptions};
use xslt::{OutputMethod, Stylesheet};

/// `<xslt key [source] [target] [useCache]><property/>*<feature/>*<attribute/>*<resource/>*</xslt>`
pub const DEFINITION: Definition = Definition {
    name: "xslt",
    summary: "Transforms the payload with an XSLT stylesheet.",
    attributes: &[
        Attribute {
            name: "key",
            required: true,
            values: Values::Key,
            default: "",
            meaning: "the entry or registry resource that is the stylesheet, or an expression in braces",
        },
        Attribute {
            name: "source",
            required: false,
            values: Values::Expression,
            default: "the first element of the body",
            meaning: "the element that is transformed",
        },
        Attribute {
            name: "target",
            required: false,
            values: Values::Text,
            default: "",
            meaning: "the property that gets the result; the message stays as it is",
        },
        Attribute {
            name: "useCache",
            required: false,
            values: Values::Text,
            default: "true",
            meaning: "not needed here: a stylesheet is compiled again when its text changes",
        },
    ],
    children: Children::Elements(&["property", "feature", "attribute", "resource"]),
    page: PAGE,
    compile,
};

const PAGE: Page = Page {
    family: Family::Transformation,
    semantics: "The stylesheet gets the first element of the body, or the first that `source` selects, as a document of its own. The element that
it makes replaces that element; everything around it stays. If `source` selects the body or header of the SOAP envelope, its contents are replaced with the children of the
resulting element; if it selects the envelope, the result must be an envelope. With `output method=\"text\"` the
result is the element `text` of the namespace `http://ws.apache.org/commons/ns/payload`, and so with `adaptive`. With `method=\"json\"` (3.0) the message becomes
the JSON that the stylesheet makes, whatever `source` is, and its content type `application/json`. With `target` the result becomes a property instead
(as text if the property `transform.xslt.result.disableBuild` is true; a JSON result as JSON), and the message stays.

Otherwise the content type stays too: JSON is transformed in its XML form, whose element is `jsonObject`, and is written as JSON again. An
empty body is passed on, with a warning in the log.

Each `property` is a parameter of the stylesheet, always a text. An expression that gives nothing leaves the default of the stylesheet. Include, import
and `document()` find a `resource` by its location, or an entry or registry resource by its key, and nothing else. `xsl:message` goes to the log; with
`terminate=\"yes\"` the transformation fails. Stylesheets are compiled when the configuration loads; those of a key that an expression gives
when they are first used, and again when their entry has changed. They run as the version that they name, 1.0, 2.0 or 3.0. A call of a Java class
is a warning when the configuration loads, and fails when it runs; in version 2.0 or later such a stylesheet cannot be compiled.

Plain XML of more than 256 KB that no step has read is transformed while it arrives if there is neither `source` nor `target`, no
parameter looks at the body, and the stylesheet writes XML in UTF-8 and looks only downwards ([which ones](../tools.md#xslt)). As with
[fastXSLT](fastXSLT.md), a failure before the first bytes of the result runs the fault sequence, without the body, and a later failure breaks the
connection that the result goes to.",
    inside: &[
        Inside::new(
            "property*",
            "a parameter of the stylesheet",
            &[
                Attribute::required("name", Values::Text, "its name"),
                Attribute::optional("value", Values::Text, "its value; wins over `expression`"),
                Attribute::optional("expression", Values::Expression, "what gives the value"),
            ],
        ),
        Inside::new(
            "feature*",
            "for transformers in Java: of no effect here",
            &[
                Attribute::required("name", Values::Text, "its URI"),
                Attribute::required("value", Values::Text, "true or false"),
            ],
        ),
        Inside::new(
            "attribute*",
            "for transformers in Java: of no effect here, but for two",
            &[
                Attribute::required(
                    "name",
                    Values::Text,
                    "`http://busbar.dev/xslt/processor`: the version of XSLT as which the stylesheet runs, `1.0` regardless of its own, `2.0` as the least; \
                     `http://busbar.dev/xslt/evaluate`: whether `xsl:evaluate` may run (XSLT 3.0), by default not",
                ),
                Attribute::required("value", Values::Text, "1.0 or 2.0; true or false"),
            ],
        ),
        RESOURCE,
    ],
    needs: &[
        (
            Need::Prefix,
            "where plain XML may be transformed while it arrives; what is small or no plain XML is received first",
        ),
        (Need::Whole, "all others"),
    ],
    refused: &[
        ("<xslt/>", "`xslt` needs the attribute `key`"),
        ("<xslt key=\"none\"/>", "there is no stylesheet `none`"),
        ("<xslt key=\"none\" source=\"//a[\"/>", "not a valid expression"),
        ("<xslt key=\"none\"><property name=\"p\"/></xslt>", "a parameter needs a value"),
        ("<xslt key=\"none\"><resource location=\"a\"/></xslt>", "`resource` needs `location` and `key`"),
        (
            "<xslt key=\"none\"><feature name=\"urn:f\" value=\"true\"/></xslt>",
            "`feature` of a Java transformer has no meaning here",
        ),
        (
            "<xslt key=\"none\"><attribute name=\"http://busbar.dev/xslt/processor\" value=\"3.0\"/></xslt>",
            "`3.0` is not a version of XSLT",
        ),
        (
            "<xslt key=\"none\"><attribute name=\"http://busbar.dev/xslt/evaluate\" value=\"yes\"/></xslt>",
            "`yes` is neither true nor false",
        ),
    ],
    faults: &[
        (
            "0",
            "\"Unable to perform XSLT transformation using : KEY\": the stylesheet fails or there is none, or its result has no element; \
             ERROR_DETAIL says what. Also: `source` selects no element",
        ),
        (
            "601000",
            "the body is not what its content type or Content-Encoding says, or larger than a flow may hold",
        ),
    ],
};

struct Xslt {
    style: Style,
    source: Option<Expression>,
    target: Option<Arc<str>>,
    parameters: Vec<(String, ParameterValue)>,
    /// Plain XML may be transformed while it arrives.
    streams: bool,
}

/// The value of a stylesheet parameter.
enum ParameterValue {
    Literal(String),
    Expression(Expression),
}

/// Features and attributes of WSO2's own; how it builds sources and results is nothing a result shows.
const OWN: &str = "http://ws.apache.org/ns/synapse/transform/";

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let mut parameters = Vec::new();
    for property in element.children_named("property") {
        let Some(name) = property.attr("name") else {
            compiler.error("missing-attribute", "a parameter needs a `name`", property.start_tag(), "name");
            return None;
        };
        let given = match property.attr("value") {
            Some(value) => ParameterValue::Literal(value.to_owned()),
            None => ParameterValue::Expression(match compiler.expression(property, "expression") {
                Some(expression) => expression,
                None => {
                    let place = property.start_tag();
                    compiler.error(
                        "missing-attribute",
                        "a parameter needs a value",
                        place,
                        "value or expression",
                    );
                    return None;
                }
            }),
        };
        parameters.push((name.to_owned(), given));
    }
    for setting in element.children_named("feature").chain(element.children_named("attribute")) {
        if !setting
            .attr("name")
            .is_some_and(|name| name.starts_with(OWN) || name == PROCESSOR || name == EVALUATE)
        {
            let message = format!("`{}` of a Java transformer has no meaning here", setting.local());
            compiler.warning("no-effect", message, setting.start_tag(), "this is ignored");
        }
    }
    let source = match element.attribute("source") {
        Some(_) => Some(compiler.expression(element, "source")?),
        None => None,
    };
    let style = Style::compile(element, compiler)?;
    let target = element.attr("target").map(Arc::from);
    let unread = |(_, given): &(String, ParameterValue)| match given {
        ParameterValue::Literal(_) => true,
        ParameterValue::Expression(expression) => expression.need() < Need::Prefix,
    };
    let streams = source.is_none()
        && target.is_none()
        && style.streaming().is_some_and(direct)
        && parameters.iter().all(unread);
    Some(Box::new(Xslt { style, source, target, parameters, streams }))
}

impl Mediator for Xslt {
    fn need(&self) -> Need {
        if self.streams { Need::Prefix } else { Need::Whole }
    }

    fn reason(&self) -> String {
        match self.streams {
            true => {
                "transforms the payload: plain XML of more than 256 KB while it arrives, else received first"
                    .into()
            }
            false => "transforms the payload".into(),
        }
    }

    fn moves(&self) -> Moves {
        Moves::Large
    }

    fn run<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        if !self.streams || !context.payload.is_unread() {
            return Step::Done(self.mediate(context));
        }
        Step::Wait(Box::pin(async move {
            if is_plain(context.payload.reading()) {
                let parameters = self.parameters(context)?;
                let parameters =
                    parameters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
                if let Some(result) = self.style.transformed(context, parameters, true, |fault| fault).await?
                {
                    context.payload.put_back(Body::Stream(Box::new(result)));
                    return Ok(Flow::Next);
                }
            }
            context.receive_body().await?;
            Ok(Flow::Mediate)
        }))
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let (key, sheet) = self.style.find(context)?;
        let parameters = self.parameters(context)?;
        let run = Run { style: &self.style, key: &key, sheet: &sheet, parameters: &parameters };
        let is_json = sheet.output().method == Some(OutputMethod::Json);
        if self.source.is_none() && self.target.is_none() {
            if let Some(bytes) = context.payload.plain_xml() {
                let bytes = bytes.clone();
                if is_json {
                    let input = parsed(&sheet, bytes, context)?;
                    let json = run.text(&input, true, context)?;
                    return set_json(&key, &json, context).map(|()| Flow::Next);
                }
                return run.plain(bytes, context).map(|()| Flow::Next);
            }
            if direct(&sheet)
                && let Some(opened) = context.payload.opened(&context.services().limits)
                && run.inside(&opened, context)?
            {
                return Ok(Flow::Next);
            }
        }
        let node = match &self.source {
            None => context.envelope()?.payload(),
            Some(source) => {
                let node = source.nodes(context)?.first().copied();
                let document = &context.envelope()?.document;
                let node =
                    node.filter(|&node| document.kind(node) == NodeKind::Element).ok_or_else(|| {
                        Fault::new(format!("the source {} of xslt selects no element", source.source()))
                    })?;
                Some(node)
            }
        };
        let Some(node) = node else {
            tracing::warn!(message_id = %context.message_id(), place = context.place(), "xslt: the body is empty, there is nothing to transform");
            return Ok(Flow::Next);
        };
        let input = alone(node, context);
        if is_json {
            let json = run.text(&input, false, context)?;
            match &self.target {
                Some(target) => {
                    let value = serde_json::from_str(&json).map_err(|why| not_json(&key, why))?;
                    context.properties.set(Arc::clone(target), Value::Json(Arc::new(value)));
                }
                None => set_json(&key, &json, context)?,
            }
            return Ok(Flow::Next);
        }
        let result = run.tree(&input, false, context)?;
        match &self.target {
            Some(target) => {
                let root = result.document_element().ok_or_else(|| failed(&key, "the result is empty"))?;
                let text =
                    context.properties.get("transform.xslt.result.disableBuild").is_some_and(Value::is_true);
                let value = match text {
                    true => Value::from(xml::to_string(&result, root)),
                    false => Value::Xml(Arc::new(XmlValue { document: Arc::new(result), nodes: vec![root] })),
                };
                context.properties.set(Arc::clone(target), value);
            }
            None => place(&key, node, result, context)?,
        }
        Ok(Flow::Next)
    }
}

impl Xslt {
    /// The parameters of the stylesheet for this message.
    fn parameters(&self, context: &mut Context) -> Result<Vec<(&str, xpath::Value)>, Fault> {
        let mut parameters = Vec::with_capacity(self.parameters.len());
        for (name, given) in &self.parameters {
            let value = match given {
                ParameterValue::Literal(text) => xpath::Value::from(text.as_str()),
                ParameterValue::Expression(expression) => match expression.string(context)? {
                    Some(text) => xpath::Value::from(text),
                    // null: the default of the stylesheet holds.
                    None => continue,
                },
            };
            parameters.push((name.as_str(), value));
        }
        Ok(parameters)
    }
}

/// Whether a body is a plain XML document, without an envelope.
fn is_plain(reading: Reading) -> bool {
    reading.kind == Kind::Xml || reading.kind == Kind::Soap11 && reading.rest
}

/// One transformation.
struct Run<'a> {
    style: &'a Style,
    key: &'a str,
    sheet: &'a Stylesheet,
    parameters: &'a [(&'a str, xpath::Value)],
}

impl Run<'_> {
    /// A plain XML document from bytes to bytes, as the new payload.
    fn plain(&self, bytes: bytes::Bytes, context: &mut Context) -> Result<(), Fault> {
        let input = parsed(self.sheet, bytes, context)?;
        let result = if direct(self.sheet) {
            let mut out = Vec::new();
            self.bytes(&input, &mut out, context)?;
            if is_one_element(&out) {
                context.payload.set_made(out, Reading { charset: None, kind: Kind::Xml, ..Reading::XML });
                return Ok(());
            }
            self.read(&out, context)?
        } else {
            self.tree(&input, true, context)?
        };
        let envelope = Envelope::empty(message::SoapVersion::V11);
        set_payload(self.key, envelope, result, context)
    }

    /// The payload of a SOAP message from bytes to bytes, in place. `false`: this one takes a tree.
    fn inside(&self, opened: &Opened, context: &mut Context) -> Result<bool, Fault> {
        // What is wrong with it shows, with its place in the message, when that is read as a whole.
        let Ok(input) = parsed(self.sheet, opened.payload(), context) else { return Ok(false) };
        if input.children(Document::ROOT).nth(1).is_some() {
            return Ok(false);
        }
        let (before, behind) = (opened.before(), opened.behind());
        let mut out = Vec::with_capacity(before.len() + input.source().len() + behind.len() + 256);
        out.extend_from_slice(before);
        self.bytes(&input, &mut out, context)?;
        let result = &out[before.len()..];
        if !is_one_element(result) {
            let result = self.read(result, context)?;
            if let Some(node) = context.envelope()?.payload() {
                place(self.key, node, result, context)?;
            }
            return Ok(true);
        }
        let declaration = result.len() - without_declaration(result).len();
        out.drain(before.len()..before.len() + declaration);
        out.extend_from_slice(behind);
        let reading = context.payload.reading();
        context.payload.set_made(out, reading);
        Ok(true)
    }

    /// The result as XML, behind what is in `out` already.
    fn bytes(&self, input: &Document, out: &mut Vec<u8>, context: &Context) -> Result<(), Fault> {
        self.style.run(self.key, context, true, |options| {
            let options = xslt::RunOptions { as_xml: true, ..*options };
            self.sheet.transform_to(input, Document::ROOT, self.parameters, &options, out)
        })
    }

    /// What [`Run::bytes`] wrote, as a tree of its first element; further elements and text are left out.
    fn read(&self, written: &[u8], context: &Context) -> Result<Document, Fault> {
        let text = [b"<result>", without_declaration(written), b"</result>"].concat();
        let limits = context.services().limits.xml.clone();
        let whole = Document::parse(text, &ParseOptions { limits, ..ParseOptions::default() })
            .map_err(|why| failed(self.key, format!("the result is not well-formed: {why}")))?;
        let around = whole.document_element().unwrap_or(Document::ROOT);
        let first = whole.children(around).find(|&node| whole.kind(node) == NodeKind::Element);
        let mut result = Document::new();
        if let Some(first) = first {
            result.copy_from(Document::ROOT, &whole, first);
        }
        Ok(result)
    }

    fn tree(&self, input: &Document, stripped: bool, context: &Context) -> Result<Document, Fault> {
        let written = match self.sheet.output().method {
            Some(OutputMethod::Text) => {
                self.document(input, stripped, context)?.string_value(Document::ROOT).into_owned()
            }
            Some(OutputMethod::Adaptive) => self.text(input, stripped, context)?,
            _ => return self.document(input, stripped, context),
        };
        let mut text = Document::new();
        let root = text.append_element(Document::ROOT, "", message::envelope::PAYLOAD, "text");
        text.append_text(root, &written);
        Ok(text)
    }

    fn document(&self, input: &Document, stripped: bool, context: &Context) -> Result<Document, Fault> {
        let transform = |options: &xslt::RunOptions<'_>| {
            self.sheet.transform(input, Document::ROOT, self.parameters, options)
        };
        Ok(self.style.run(self.key, context, stripped, transform)?.document)
    }

    /// The result of a method that writes no tree, decoded.
    fn text(&self, input: &Document, stripped: bool, context: &Context) -> Result<String, Fault> {
        self.style.text(self.key, self.sheet, input, self.parameters, stripped, context)
    }
}

/// An element of the envelope as a document of its own, which it is for the stylesheet.
fn alone(node: NodeId, context: &Context) -> Document {
    let mut input = Document::new();
    if let Some(envelope) = context.payload.built_envelope() {
        input.copy_from(Document::ROOT, &envelope.document, node);
    }
    input
}

/// Makes JSON that a stylesheet has written the message.
pub(crate) fn set_json(key: &str, text: &str, context: &mut Context) -> Result<(), Fault> {
    context.payload.set_json(text).map_err(|why| not_json(key, why))?;
    context.set_axis2("messageType", Value::from("application/json"));
    Ok(())
}

/// The result is nested too deep, or character maps have spoilt it.
fn not_json(key: &str, why: impl std::fmt::Display) -> Fault {
    failed(key, format!("the result is not JSON: {why}"))
}

/// Parses a body as the stylesheet wants it.
pub(crate) fn parsed(sheet: &Stylesheet, bytes: bytes::Bytes, context: &Context) -> Result<Document, Fault> {
    let options = ParseOptions {
        limits: context.services().limits.xml.clone(),
        charset: context.payload.reading().charset.map(|charset| charset.name().to_owned()),
        strip_space: sheet.strip_space(),
        ..ParseOptions::default()
    };
    Document::parse(bytes, &options).map_err(not_xml)
}

/// Whether the serialised result can be the payload as it is.
fn direct(sheet: &Stylesheet) -> bool {
    let output = sheet.output();
    matches!(output.method, None | Some(OutputMethod::Xml))
        && output.encoding.as_ref().is_none_or(|name| name.eq_ignore_ascii_case("UTF-8"))
        && output.doctype_system.is_none()
}

/// What is behind the declaration of XML and white space.
fn without_declaration(out: &[u8]) -> &[u8] {
    let rest = out.trim_ascii_start();
    match rest.strip_prefix(b"<?xml ").and_then(|rest| Some((rest, memchr::memmem::find(rest, b"?>")?))) {
        Some((rest, end)) => rest[end + 2..].trim_ascii_start(),
        None => rest,
    }
}

/// Whether serialised output is, by its beginning and end, one element that is neither an envelope nor a fault.
/// `false` only costs time: the result is then read again.
fn is_one_element(out: &[u8]) -> bool {
    let rest = without_declaration(out).trim_ascii_end();
    let Some(name) = rest.strip_prefix(b"<") else { return false };
    let end = name.iter().position(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'/' | b'>'));
    let name = &name[..end.unwrap_or(0)];
    let local = name.rsplit(|&byte| byte == b':').next().unwrap_or_default();
    if name.is_empty()
        || name.starts_with(b"!")
        || name.starts_with(b"?")
        || matches!(local, b"Envelope" | b"Fault")
    {
        return false;
    }
    match rest
        .strip_suffix(b">")
        .and_then(|rest| rest.strip_suffix(name))
        .and_then(|rest| rest.strip_suffix(b"</"))
    {
        // An element of the same name that ends before may be a sibling.
        Some(inner) => {
            let end = [b"</", name, b">"].concat();
            memchr::memmem::find(inner, &end).is_none()
        }
        None => rest.ends_with(b"/>") && memchr::memchr(b'<', &rest[1..]).is_none(),
    }
}

/// Makes the result the payload in `envelope`, or the whole envelope if it is one.
fn set_payload(
    key: &str,
    mut envelope: Envelope,
    result: Document,
    context: &mut Context,
) -> Result<(), Fault> {
    let root = result.document_element().ok_or_else(|| failed(key, "the result has no element"))?;
    if message::SoapVersion::of_envelope(&result, root).is_some() {
        envelope = Envelope::of_document(result).map_err(|why| failed(key, why))?;
    } else {
        envelope.document.copy_from(envelope.body, &result, root);
    }
    context.payload.set_envelope(envelope);
    Ok(())
}

/// Puts the result where `node` was.
pub(crate) fn place(key: &str, node: NodeId, result: Document, context: &mut Context) -> Result<(), Fault> {
    let root = result.document_element().ok_or_else(|| failed(key, "the result has no element"))?;
    let envelope = context.envelope_mut()?;
    if node == envelope.root {
        let whole = Envelope::of_document(result).map_err(|why| failed(key, why))?;
        context.payload.set_envelope(whole);
        return Ok(());
    }
    if node == envelope.body || Some(node) == envelope.header {
        envelope.document.remove_children(node);
        for child in result.children(root) {
            envelope.document.copy_from(node, &result, child);
        }
        return Ok(());
    }
    let parent = envelope.document.parent(node).unwrap_or(envelope.body);
    let copy = envelope.document.copy_from(parent, &result, root);
    envelope.document.replace(node, copy);
    Ok(())
}

#[cfg(test)]
mod tests;
