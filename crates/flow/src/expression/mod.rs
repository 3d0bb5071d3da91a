//! Expressions of the configuration: XPath over the envelope, `json-eval(…)` over JSON, and `${…}` over all of it.
//!
//! Compiled when the configuration loads; evaluated against a [`Context`]. Expressions that do not touch the body
//! never read it, streamable ones read as little of it as decides them.

mod direct;
pub mod java;
mod json_eval;
mod key_value;
pub mod library;
pub mod streaming;
pub mod synapse;
mod values;

pub use self::key_value::KeyValue;
pub(crate) use self::values::{first, on_payload, to_message_value};

use crate::expression::direct::Direct;
use crate::expression::json_eval::{JsonSource, JsonTemplate, json};
use crate::expression::library::{Declared, Library, OfMessages, SynapseHost};
use crate::expression::synapse::{MessageHost, XPaths, prepare};
use crate::runtime::context::Context;
use crate::runtime::fault::Fault;
use crate::runtime::mediator::Need;
use crate::runtime::reference::Computed;
use crate::runtime::services::Settings;
use ::expression::Reads;
use config::Scope;
use diagnostics::Span;
use message::envelope::synapse_string;
use message::jsonpath::JsonPath;
use message::{Value, XmlValue};
use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use xpath::{CompileOptions, StreamAs, StreamContext, Version};

/// A compiled expression with the place it is written at.
pub struct Expression {
    source: Arc<str>,
    span: Span,
    kind: Kind,
    need: Need,
}

enum Kind {
    XPath(Box<XPath>),
    Json(JsonSource, JsonTemplate),
    Synapse(Box<::expression::Expression>),
    /// It cannot be evaluated.
    Broken(Broken),
}

/// What an expression does that WSO2 accepts and that cannot be evaluated.
struct Broken {
    why: String,
    outcome: Outcome,
}

/// What becomes of an expression that cannot be compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// WSO2 refuses it as well.
    Refused,
    /// It selects nothing, with a line in the log for each message.
    Nothing,
    /// It is a fault for each message that evaluates it.
    Fault,
}

struct XPath {
    expression: xpath::Expression,
    /// It is no more than a property.
    direct: Option<Direct>,
    /// Ends in `node()`: a single result is serialised (WSO2).
    node_test: bool,
    reads_body: bool,
    /// It gives a number, which is to be written as Java does.
    java: bool,
    /// It is XPath 2.0: evaluated on a document of its own, the first child of the body, and gives texts.
    is_xpath2: bool,
    /// Those of its place, where it may make expressions itself.
    namespaces: Option<Scope>,
}

impl XPath {
    fn of(expression: xpath::Expression, is_xpath2: bool, scope: &Scope, settings: &Settings) -> XPath {
        XPath {
            java: settings.java_numbers && expression.returns() == xpath::Type::Number,
            node_test: expression.source().trim_end().ends_with("node()"),
            reads_body: expression.needs().document,
            is_xpath2,
            direct: if is_xpath2 { None } else { Direct::of(expression.source()) },
            namespaces: expression.source().contains("evaluate").then(|| scope.clone()),
            expression,
        }
    }
}

/// The XML of a property, and nodes of it.
pub type HeldNodes = (Arc<XmlValue>, Vec<xml::NodeId>);

/// What is asked of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Its truth.
    Boolean,
    /// Its string, as Synapse makes it: of a node-set only the tree can tell.
    Text,
}

/// Why an expression cannot be compiled.
#[derive(Debug)]
pub struct ExpressionError {
    /// What is wrong.
    pub message: String,
    /// Where in the expression, in bytes.
    pub offset: std::ops::Range<usize>,
    /// What WSO2 does with it.
    pub outcome: Outcome,
    /// It is an XPath 2.0, and would run as one with [`xpath_failover`](Settings::xpath_failover).
    pub is_xpath2: bool,
}

impl Computed for Expression {
    fn source(&self) -> &str {
        &self.source
    }

    fn need(&self) -> Need {
        self.need
    }

    fn reason(&self) -> String {
        Expression::reason(self)
    }

    fn string(&self, context: &mut Context) -> Result<Option<String>, Fault> {
        Expression::string(self, context)
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Expression({})", self.source)
    }
}

impl Expression {
    /// Compiles an expression with the namespaces of the element it stands on. With
    /// [`xpath_failover`](Settings::xpath_failover), what is not an XPath 1.0 may be XPath 2.0.
    ///
    /// # Errors
    /// It does not parse, or uses what does not exist.
    pub fn compile(
        source: &str,
        scope: &Scope,
        span: Span,
        settings: &Settings,
    ) -> Result<Expression, ExpressionError> {
        let trimmed = source.trim();
        let start = source.len() - source.trim_start().len();
        if trimmed.starts_with("json-eval(") && !trimmed.ends_with(')') {
            let offset = start..start + "json-eval(".len();
            let message = "`json-eval(` is not closed".to_owned();
            return Err(ExpressionError { message, offset, outcome: Outcome::Refused, is_xpath2: false });
        }
        let (kind, need) =
            if let Some(path) = trimmed.strip_prefix("json-eval(").and_then(|rest| rest.strip_suffix(')')) {
                let (json_source, template) =
                    json(path.trim(), scope, span, start + "json-eval(".len(), settings)?;
                (Kind::Json(json_source, template), Need::Whole)
            } else if let Some(inner) = trimmed.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
                let xpaths: Arc<dyn ::expression::XPathCompiler> =
                    Arc::new(XPaths { namespaces: scope.clone(), failover: settings.xpath_failover });
                let compiled = ::expression::Expression::compile(inner, &xpaths).map_err(|error| {
                    let offset = error.span.start + start + 2..error.span.end + start + 2;
                    let outcome = match error.found {
                        ::expression::Found::Loading => Outcome::Refused,
                        ::expression::Found::Evaluating => Outcome::Nothing,
                        ::expression::Found::Faulting => Outcome::Fault,
                    };
                    ExpressionError { message: error.message, offset, outcome, is_xpath2: false }
                })?;
                let need = crate::expression::synapse::need(compiled.reads());
                (Kind::Synapse(Box::new(compiled)), need)
            } else if trimmed.starts_with("${") {
                let message = "the `${` is not closed".to_owned();
                let offset = start..start + 2;
                return Err(ExpressionError { message, offset, outcome: Outcome::Refused, is_xpath2: false });
            } else {
                let options = CompileOptions {
                    namespaces: &Declared(scope),
                    library: &Library,
                    ..CompileOptions::default()
                };
                let xpath = match xpath::Expression::compile(trimmed, &options) {
                    Ok(expression) => XPath::of(expression, false, scope, settings),
                    Err(error) => {
                        let as_xpath2 = || {
                            let options = CompileOptions { version: Version::V2, ..options };
                            xpath::Expression::compile(trimmed, &options).ok()
                        };
                        match as_xpath2() {
                            Some(expression) if settings.xpath_failover => {
                                XPath::of(expression, true, scope, settings)
                            }
                            xpath2 => {
                                let offset = error.span.start + start..error.span.end + start;
                                let outcome = match error.syntax {
                                    true => Outcome::Refused,
                                    false if error.message.contains("is not declared") => Outcome::Nothing,
                                    false => Outcome::Fault,
                                };
                                let message = error.message.clone();
                                return Err(ExpressionError {
                                    message,
                                    offset,
                                    outcome,
                                    is_xpath2: xpath2.is_some(),
                                });
                            }
                        }
                    }
                };
                let need = if xpath.reads_body { Need::Whole } else { Need::Headers };
                (Kind::XPath(Box::new(xpath)), need)
            };
        Ok(Expression { source: Arc::from(trimmed), span, kind, need })
    }

    /// Compiles an XPath 1.0 that a message brings, which sees the message only.
    ///
    /// # Errors
    /// It does not parse, or uses what does not exist or is not for messages: the reason.
    pub fn of_message(source: &str, scope: &Scope, settings: &Settings) -> Result<Expression, String> {
        let source = source.trim();
        let options = CompileOptions {
            namespaces: &Declared(scope),
            library: &OfMessages,
            ..CompileOptions::default()
        };
        let expression = xpath::Expression::compile(source, &options).map_err(|error| error.message)?;
        let xpath = XPath::of(expression, false, scope, settings);
        let need = if xpath.reads_body { Need::Whole } else { Need::Headers };
        Ok(Expression {
            source: Arc::from(source),
            span: Span::BUILT_IN,
            kind: Kind::XPath(Box::new(xpath)),
            need,
        })
    }

    /// An expression that cannot be evaluated, with the reason and what that means for a message.
    pub(crate) fn broken(source: &str, span: Span, why: String, outcome: Outcome) -> Expression {
        let kind = Kind::Broken(Broken { why, outcome });
        Expression { source: Arc::from(source.trim()), span, kind, need: Need::Headers }
    }

    /// The expression that a template parameter waits with.
    ///
    /// # Errors
    /// It is none, which nothing that is compiled makes.
    pub(crate) fn of_deferred(deferred: &dyn Computed) -> Result<&Expression, String> {
        let any: &dyn Any = deferred;
        any.downcast_ref().ok_or_else(|| format!("`{}` is not an expression", deferred.source()))
    }

    /// The expression as written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Where it is written.
    pub fn span(&self) -> Span {
        self.span
    }

    /// What of the message it reads when evaluated on the tree.
    pub fn need(&self) -> Need {
        self.need
    }

    /// What of the message it reads when a step that can wait asks for `wanted` (see [`crate::expression::streaming`]).
    pub fn early_need(&self, wanted: Wanted) -> Need {
        if self.stream_plan(wanted).is_some() { Need::Prefix } else { self.need }
    }

    /// Whether it selects JSON: `json-eval(…)`, and a `${…}` that is the payload or a path into it.
    pub fn is_json(&self) -> bool {
        match &self.kind {
            Kind::Json(..) => true,
            Kind::Synapse(synapse) => synapse.is_payload() || synapse.payload_path().is_some(),
            Kind::XPath(_) | Kind::Broken(_) => false,
        }
    }

    /// Whether it is an XPath that gives a number.
    pub fn gives_number(&self) -> bool {
        match &self.kind {
            Kind::XPath(xpath) => xpath.expression.returns() == xpath::Type::Number,
            _ => false,
        }
    }

    /// Whether it is `${…}`.
    pub fn is_synapse(&self) -> bool {
        matches!(self.kind, Kind::Synapse(_))
    }

    /// The Synapse expression, if it is one.
    pub(crate) fn synapse(&self) -> Option<&::expression::Expression> {
        match &self.kind {
            Kind::Synapse(synapse) => Some(synapse),
            _ => None,
        }
    }

    /// What is suspicious about it: message, advice, and where in the source.
    pub(crate) fn warnings(&self) -> &[::expression::Warning] {
        self.synapse().map_or(&[], ::expression::Expression::warnings)
    }

    /// What is suspicious about the JSONPath of a `json-eval`.
    pub(crate) fn json_remarks(&self) -> (&str, &[message::jsonpath::JsonPathError]) {
        match &self.kind {
            Kind::Json(_, JsonTemplate::Static(path)) => (path.source(), path.remarks()),
            _ => ("", &[]),
        }
    }

    /// The XPath on the message, if it is one.
    pub fn xpath(&self) -> Option<&xpath::Expression> {
        match &self.kind {
            Kind::XPath(xpath) if !xpath.is_xpath2 => Some(&xpath.expression),
            _ => None,
        }
    }

    /// Why the expression needs more than a prefix of the body, in words.
    pub fn reason(&self) -> String {
        match &self.kind {
            Kind::Json(JsonSource::Payload, _) => format!("`{}` reads the JSON payload", self.source),
            Kind::Json(..) => format!("`{}` reads a property", self.source),
            Kind::Synapse(synapse) if synapse.reads() >= Reads::Json => {
                format!("`{}` reads the payload", self.source)
            }
            Kind::Synapse(_) => format!("`{}` does not touch the body", self.source),
            Kind::XPath(xpath) if !xpath.reads_body => format!("`{}` does not touch the body", self.source),
            Kind::XPath(_) => format!("`{}` reads the body", self.source),
            Kind::Broken(broken) => format!("`{}` cannot be evaluated: {}", self.source, broken.why),
        }
    }

    /// As [`Expression::reason`] for a step that can wait.
    pub fn early_reason(&self, wanted: Wanted) -> String {
        let Kind::XPath(xpath) = &self.kind else { return self.reason() };
        if !xpath.reads_body || xpath.is_xpath2 {
            return self.reason();
        }
        match xpath.expression.streaming_as(stream_as(wanted), StreamContext::Envelope) {
            Ok(_) => format!("`{}` is decided while the body arrives", self.source),
            Err(why) => format!("`{}` needs the tree: {}", self.source, why.reason),
        }
    }

    /// What a broken expression gives: nothing, after saying so, or a fault.
    fn nothing(&self, context: &Context, broken: &Broken) -> Result<(), Fault> {
        let why = &broken.why;
        if broken.outcome == Outcome::Fault {
            return Err(self.fault(why));
        }
        let place = context.plan().place(self.span);
        tracing::warn!(message_id = %context.message_id(), place, "`{}` selects nothing: {why}", self.source);
        Ok(())
    }

    fn fault(&self, why: impl fmt::Display) -> Fault {
        Fault::new(format!("Evaluation of the expression {} resulted in an error: {why}", self.source))
            .at(self.span)
    }

    /// The string that Synapse's mediators take; `None` where WSO2 has null (an absent property).
    ///
    /// # Errors
    /// The payload cannot be read or the evaluation fails.
    pub fn string(&self, context: &mut Context) -> Result<Option<String>, Fault> {
        if let Kind::Synapse(synapse) = &self.kind {
            // The text of an object or array is the payload as it came; that of one string is what stands in its quotes.
            if synapse.is_payload()
                && context.payload.is_json()
                && let Some(bytes) = context.payload.bytes()
                && matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'['))
            {
                return Ok(Some(String::from_utf8_lossy(bytes).into_owned()));
            }
            let text = self.evaluate(synapse, context, |value| value.into_text().into_owned())?;
            return Ok(Some(text.unwrap_or_default()));
        }
        Ok(self.value(context)?.map(|value| match &value {
            // Of several elements Apache Synapse takes the texts directly in them, WSO2 the elements.
            Value::Xml(xml) if xml.nodes.len() > 1 && context.services.settings.synapse_dialect => {
                xml.nodes.iter().map(|&node| synapse_string(&xml.document, node, true)).collect()
            }
            value => value.to_string(),
        }))
    }

    /// What `then` makes of the string of [`Expression::string`]. A text that lies in the message is lent, not copied.
    ///
    /// # Errors
    /// As [`Expression::string`].
    pub fn with_string<T>(
        &self,
        context: &mut Context,
        then: impl FnOnce(Option<&str>) -> T,
    ) -> Result<T, Fault> {
        if let Kind::XPath(xpath) = &self.kind
            && let Some(text) = xpath.direct.as_ref().and_then(|direct| direct.text(context))
        {
            return Ok(then(Some(text)));
        }
        Ok(then(self.string(context)?.as_deref()))
    }

    /// The truth of a condition: XPath `boolean()`; `json-eval` and `${…}` only if the text is `true`.
    ///
    /// # Errors
    /// As [`Expression::string`].
    pub fn boolean(&self, context: &mut Context) -> Result<bool, Fault> {
        match &self.kind {
            Kind::Json(..) | Kind::Synapse(_) => {
                let text = self.string(context)?.unwrap_or_default();
                Ok(text.trim().eq_ignore_ascii_case("true"))
            }
            Kind::Broken(broken) => self.nothing(context, broken).map(|()| false),
            Kind::XPath(xpath) => {
                if let Some(truth) = xpath.direct.as_ref().and_then(|direct| direct.boolean(context)) {
                    return Ok(truth);
                }
                self.on_tree(xpath, context, |expression, cx| expression.evaluate_boolean(cx))
            }
        }
    }

    /// The value, XML nodes copied out of the message; `None` where WSO2 has null.
    ///
    /// # Errors
    /// As [`Expression::string`].
    pub fn value(&self, context: &mut Context) -> Result<Option<Value>, Fault> {
        match &self.kind {
            Kind::Json(..) => {
                let Some(found) = self.json_found(context)? else { return Ok(Some(Value::from(""))) };
                Ok(Some(found))
            }
            Kind::Synapse(synapse) => {
                let value = self.evaluate(synapse, context, |value| value.into_message())?;
                Ok(Some(value.unwrap_or(Value::from(""))))
            }
            Kind::Broken(broken) => {
                self.nothing(context, broken)?;
                Ok(Some(Value::from("")))
            }
            Kind::XPath(xpath) => {
                if let Some(value) = xpath.direct.as_ref().and_then(|direct| direct.value(context)) {
                    return Ok(value);
                }
                let java = context.services.settings.java_numbers;
                self.on_tree(xpath, context, |expression, cx| {
                    let value = expression.evaluate(cx)?;
                    Ok(match value {
                        value if xpath.is_xpath2 => Some(first(value, cx)?),
                        xpath::Value::Number(number) if java => {
                            Some(Value::from(message::value::java_number_text(number)))
                        }
                        value => to_message_value(value, cx, xpath.node_test),
                    })
                })
            }
        }
    }

    /// As [`Expression::value`], but `None` also where a `${…}` or `json-eval` finds nothing.
    ///
    /// # Errors
    /// As [`Expression::string`].
    pub fn found(&self, context: &mut Context) -> Result<Option<Value>, Fault> {
        match &self.kind {
            Kind::Synapse(synapse) => self.evaluate(synapse, context, |value| value.into_message()),
            Kind::Json(..) => self.json_found(context),
            _ => self.value(context),
        }
    }

    /// Whether it is a path into JSON, so that text which it gives was text in JSON.
    pub fn leads_into_json(&self) -> bool {
        match &self.kind {
            Kind::Json(..) => true,
            Kind::Synapse(synapse) => synapse.leads_into_json(),
            _ => false,
        }
    }

    /// The nodes that an XPath selects in the message; empty if the result is no node-set of the message.
    ///
    /// # Errors
    /// As [`Expression::string`].
    pub fn nodes(&self, context: &mut Context) -> Result<Vec<xml::NodeId>, Fault> {
        match &self.kind {
            Kind::Json(..) => Err(self.fault("json-eval selects no XML nodes")),
            Kind::Synapse(_) => Err(self.fault("`${…}` selects no nodes that could be changed or split")),
            Kind::Broken(broken) => {
                self.nothing(context, broken)?;
                Ok(Vec::new())
            }
            Kind::XPath(xpath) if xpath.is_xpath2 => {
                Err(self.fault("it is XPath 2.0, which gives texts here, no nodes of the message"))
            }
            Kind::XPath(xpath) => self.on_tree(xpath, context, |expression, cx| {
                Ok(match expression.evaluate(cx)? {
                    xpath::Value::NodeSet(nodes) => nodes
                        .iter()
                        .filter(|node| node.doc == xpath::DocId::default() && !node.is_namespace())
                        .map(|node| node.id)
                        .collect(),
                    _ => Vec::new(),
                })
            }),
        }
    }

    /// The property whose value the XPath starts with: its scope, its name, and whether `get-property` reads it.
    pub fn property(&self) -> Option<(library::Scope, &str, bool)> {
        direct::holder(self.xpath()?.source())
    }

    /// The first node that an XPath which starts with a property selects in the XML of that property; `None`: it selects none.
    ///
    /// # Errors
    /// As [`Expression::string`].
    pub fn node_of_property(
        &self,
        context: &mut Context,
    ) -> Result<Option<(Arc<XmlValue>, xml::NodeId)>, Fault> {
        let found = self.nodes_of_property(context)?;
        Ok(found.and_then(|(held, nodes)| Some((held, *nodes.first()?))))
    }

    /// The nodes that an XPath which starts with a property selects in the XML of that property; `None`: it selects none there.
    ///
    /// # Errors
    /// As [`Expression::string`].
    pub fn nodes_of_property(&self, context: &mut Context) -> Result<Option<HeldNodes>, Fault> {
        let (Kind::XPath(xpath), Some((scope, name, _))) = (&self.kind, self.property()) else {
            return Ok(None);
        };
        let Some(Value::Xml(held)) = scope.get(context, name) else { return Ok(None) };
        let nodes = self.on_tree(xpath, context, |expression, cx| {
            Ok(match expression.evaluate(cx)? {
                xpath::Value::NodeSet(nodes) => nodes.iter().filter(|node| !node.is_namespace()).collect(),
                _ => Vec::new(),
            })
        })?;
        let Some(first) = nodes.first() else { return Ok(None) };
        let host = SynapseHost::new(context);
        let is_of_property = host.xml_of(first.doc).is_some_and(|document| Arc::ptr_eq(document, &held));
        let of_one = nodes.iter().filter(|node| node.doc == first.doc).map(|node| node.id).collect();
        Ok(is_of_property.then_some((held, of_one)))
    }

    /// The JSONPath, if the expression is a `json-eval` over the payload without placeholders, or such a `${…}`.
    pub fn json_path(&self) -> Option<&JsonPath> {
        match &self.kind {
            Kind::Json(JsonSource::Payload, JsonTemplate::Static(path)) => Some(path),
            Kind::Synapse(synapse) => synapse.payload_path(),
            _ => None,
        }
    }

    /// Decides a boolean or string while the body arrives: `None` if that is not possible (the expression does not
    /// stream, or the body is here already) and the tree has to answer.
    pub(crate) fn stream_plan(&self, wanted: Wanted) -> Option<&xpath::StreamPlan> {
        match &self.kind {
            Kind::XPath(xpath) if xpath.reads_body && !xpath.is_xpath2 && !xpath.java => {
                xpath.expression.streaming_as(stream_as(wanted), StreamContext::Envelope).ok()
            }
            _ => None,
        }
    }

    /// The value of a `${…}`, as `then` wants it; `None`, after a line in the log, where it fails. That the run was stopped is no
    /// failure of the expression, and neither is what it made of that a value.
    fn evaluate<T>(
        &self,
        synapse: &::expression::Expression,
        context: &mut Context,
        then: impl FnOnce(::expression::Value<'_>) -> T,
    ) -> Result<Option<T>, Fault> {
        prepare(synapse.reads(), context).map_err(|fault| fault.at(self.span))?;
        let depth = Cell::new(0);
        let host = MessageHost::new(context, &depth);
        match meter::finished(synapse.evaluate(&host)).map_err(|stop| self.fault(stop))? {
            Ok(value) => Ok(Some(then(value))),
            Err(why) => {
                if let Some(why) = host.no_secret() {
                    return Err(self.fault(why));
                }
                let place = context.plan().place(self.span);
                tracing::warn!(message_id = %context.message_id(), place, "`{}` gives nothing: {why}", self.source);
                Ok(None)
            }
        }
    }

    fn on_tree<T>(
        &self,
        xpath: &XPath,
        context: &mut Context,
        evaluate: impl FnOnce(&xpath::Expression, &xpath::Context<'_>) -> Result<T, xpath::XPathError>,
    ) -> Result<T, Fault> {
        if xpath.reads_body {
            let limits = context.services.limits.clone();
            context.payload.envelope(&limits).map_err(|error| Fault::from(error).at(self.span))?;
        } else if context.has_deferred_reader() {
            // Whether the parameter reads the body is not known before it runs: a broken body is the fault of the step that reads it.
            let limits = context.services.limits.clone();
            let _ = context.payload.envelope(&limits);
        }
        if xpath.is_xpath2 {
            let host = SynapseHost::beside(context).with_namespaces(xpath.namespaces.as_ref());
            let expression = &xpath.expression;
            return self.finished(on_payload(expression, context, host, |cx| evaluate(expression, cx)));
        }
        let host = SynapseHost::new(context).with_namespaces(xpath.namespaces.as_ref());
        let result = match host.envelope() {
            // Also for an expression that does not read it: a template parameter may bring nodes of it.
            Some(envelope) => {
                let node = xpath::Node::new(envelope.root);
                evaluate(&xpath.expression, &xpath::Context::at(&envelope.document, node).with_host(&host))
            }
            _ => evaluate(&xpath.expression, &xpath::Context::without_document(&host)),
        };
        self.finished(result)
    }

    /// The result of an XPath, unless something in it was broken off and taken for nothing.
    fn finished<T>(&self, result: Result<T, xpath::XPathError>) -> Result<T, Fault> {
        let value = result.map_err(|error| self.fault(error.message))?;
        meter::finished(value).map_err(|stop| self.fault(stop))
    }
}

fn stream_as(wanted: Wanted) -> StreamAs {
    match wanted {
        Wanted::Boolean => StreamAs::Boolean,
        Wanted::Text => StreamAs::Text,
    }
}
