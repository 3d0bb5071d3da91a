//! Synapse expressions, `${…}`, over a message: what the language crate asks of a host, and texts with them inside.

use crate::expression::library::{Declared, Library, Scope, SynapseHost};
use crate::expression::{Expression, first, on_payload, to_message_value};
use crate::runtime::context::Context;
use crate::runtime::fault::Fault;
use crate::runtime::mediator::{Need, Parameter};
use ::expression::{Host, Reads, Value};
use config::Scope as Namespaces;
use message::{Value as Own, XmlValue};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use xpath::{CompileOptions, Version};

pub use ::expression::{Piece, expression_length, unclosed};

/// How deep parameters of templates that are evaluated when they are read may refer to each other.
const MAX_DEFERRED: u32 = 8;

/// Compiles the XPaths in an expression, with the namespaces of the element that it stands on.
pub(crate) struct XPaths {
    pub namespaces: Namespaces,
    /// What is not an XPath 1.0 may be XPath 2.0 ([`crate::runtime::services::Settings::xpath_failover`]).
    pub failover: bool,
}

impl ::expression::XPathCompiler for XPaths {
    fn compile(&self, source: &str) -> Result<xpath::Expression, String> {
        let namespaces = &Declared(&self.namespaces);
        let options = CompileOptions { namespaces, library: &Library, ..CompileOptions::default() };
        xpath::Expression::compile(source.trim(), &options).or_else(|error| {
            let options = CompileOptions { version: Version::V2, ..options };
            let xpath2 = self.failover.then(|| xpath::Expression::compile(source.trim(), &options).ok());
            xpath2.flatten().ok_or_else(|| error.message.clone())
        })
    }
}

/// What a step has to have of the message.
pub(crate) fn need(reads: Reads) -> Need {
    match reads {
        Reads::Nothing => Need::Nothing,
        Reads::Headers => Need::Headers,
        Reads::Json | Reads::Xml => Need::Whole,
    }
}

/// Makes the views of the payload that an expression reads.
pub(crate) fn prepare(reads: Reads, context: &mut Context) -> Result<(), Fault> {
    let limits = &context.services.limits;
    let deferred = context.has_deferred_reader();
    if reads >= Reads::Json && context.payload.is_json() {
        context.payload.json()?;
    }
    if reads == Reads::Xml
        || (reads == Reads::Json && !context.payload.is_json() && !context.payload.is_empty())
    {
        context.payload.envelope(limits)?;
    }
    if deferred {
        // Whether the parameter reads the body is not known before it runs: a broken body is the fault of the step that reads it.
        let _ = context.payload.json();
        let _ = context.payload.envelope(limits);
    }
    Ok(())
}

/// A message as expressions see it. The views that they read are there already.
pub(crate) struct MessageHost<'a> {
    context: &'a Context,
    depth: &'a Cell<u32>,
    /// Why a secret that was asked for could not be had.
    no_secret: RefCell<Option<String>>,
}

impl<'a> MessageHost<'a> {
    pub fn new(context: &'a Context, depth: &'a Cell<u32>) -> MessageHost<'a> {
        MessageHost { context, depth, no_secret: RefCell::new(None) }
    }

    /// Why a secret that was asked for could not be had, if one was: the message must not go on without it.
    pub fn no_secret(&self) -> Option<String> {
        self.no_secret.take()
    }
}

impl Host for MessageHost<'_> {
    fn json(&self) -> Result<&serde_json::Value, String> {
        let payload = &self.context.payload;
        if let Some(json) = payload.built_json() {
            return Ok(json);
        }
        if payload.built_envelope().is_none_or(|envelope| envelope.payload().is_none()) {
            return Err("there is no payload".to_owned());
        }
        payload.rendered(&self.context.services.limits.json).map_err(|error| error.to_string())
    }

    fn payload(&self) -> Result<Value<'_>, String> {
        let context = self.context;
        let is_plain_xml =
            || context.headers.get("Content-Type").is_some_and(|value| value.contains("application/xml"));
        match context.payload.built_envelope() {
            Some(envelope) if context.payload.built_json().is_none() && is_plain_xml() => {
                let body = XmlValue::copy_of(&envelope.document, &[envelope.body]);
                Ok(Value::Xml(Arc::new(body)))
            }
            _ => self.json().map(|json| Value::of_json(Cow::Borrowed(json))),
        }
    }

    fn variable(&self, name: &str) -> Option<&Own> {
        self.context.variables.get(name)
    }

    fn lookup(&self, scope: ::expression::Scope, name: &str) -> Option<Own> {
        match scope {
            ::expression::Scope::Header => Scope::Transport.get(self.context, name),
            ::expression::Scope::Default => Scope::Default.get(self.context, name),
            ::expression::Scope::Axis2 => Scope::Axis2.get(self.context, name),
            ::expression::Scope::Configuration => [Scope::Environment, Scope::System, Scope::File]
                .iter()
                .find_map(|scope| scope.get(self.context, name)),
            ::expression::Scope::Parameter => match self.context.parameter(name).ok()?? {
                Parameter::Value(value) => Some(value.clone()),
                Parameter::Deferred(deferred) => {
                    read(Expression::of_deferred(&**deferred).ok()?, self.context, self.depth).ok()?
                }
            },
        }
    }

    fn registry(&self, path: &str, property: Option<&str>) -> Option<String> {
        match property {
            Some(property) => self.context.plan().registry_property(path, property),
            None => self.context.plan().registry_text(path),
        }
    }

    fn xpath(&self, xpath: &xpath::Expression, on: Option<&Arc<XmlValue>>) -> Result<Option<Own>, String> {
        match on {
            None => evaluate_xpath(xpath, self.context, xpath.source().trim_end().ends_with("node()"))
                .map_err(|error| error.message),
            Some(xml) => {
                let host = SynapseHost::beside(self.context);
                let node = xpath::Node::new(xml.nodes.first().copied().unwrap_or(xml::Document::ROOT));
                let cx = xpath::Context::at(&xml.document, node).with_host(&host);
                let value = xpath.evaluate(&cx).map_err(|error| error.message)?;
                if xpath.version() == Version::V2 {
                    return first(value, &cx).map(Some).map_err(|error| error.message);
                }
                Ok(to_message_value(value, &cx, false))
            }
        }
    }

    fn secret(&self, path: &[String]) -> Result<String, String> {
        let argument = |at: usize| path.get(at).map(String::as_str);
        let vault = self.context.plan().vault();
        let secret = vault.look_up(argument(0).unwrap_or(""), argument(1), argument(2));
        secret.map_err(|missing| {
            self.no_secret.replace(Some(missing.why.clone()));
            missing.why
        })
    }

    fn remote_secret(&self, path: &[String]) -> Result<String, String> {
        self.context.plan().vault().remote(path, false).map_err(|missing| {
            self.no_secret.replace(Some(missing.why.clone()));
            missing.why
        })
    }
}

/// The value of an XPath on a message whose views have been made.
fn evaluate_xpath(
    xpath: &xpath::Expression,
    context: &Context,
    node_test: bool,
) -> Result<Option<Own>, xpath::XPathError> {
    if xpath.version() == Version::V2 {
        return on_payload(xpath, context, SynapseHost::beside(context), |cx| first(xpath.evaluate(cx)?, cx))
            .map(Some);
    }
    let host = SynapseHost::new(context);
    match host.envelope() {
        Some(envelope) => {
            let node = xpath::Node::new(envelope.root);
            let cx = xpath::Context::at(&envelope.document, node).with_host(&host);
            Ok(to_message_value(xpath.evaluate(&cx)?, &cx, node_test))
        }
        None => {
            let cx = xpath::Context::without_document(&host);
            Ok(to_message_value(xpath.evaluate(&cx)?, &cx, node_test))
        }
    }
}

/// The value of an expression that a template parameter stands for; the message is only looked at.
pub(crate) fn read(
    deferred: &Expression,
    context: &Context,
    depth: &Cell<u32>,
) -> Result<Option<Own>, String> {
    if depth.get() >= MAX_DEFERRED {
        return Err(format!("`{}` refers to itself", deferred.source()));
    }
    depth.set(depth.get() + 1);
    let host = MessageHost::new(context, depth);
    let value = if let Some(synapse) = deferred.synapse() {
        // A failure is nothing, as it is where the expression stands itself.
        let found = synapse.evaluate(&host).map(Value::into_message);
        match host.no_secret() {
            Some(why) if found.is_err() => Err(why),
            _ => Ok(Some(found.unwrap_or_else(|_| Own::from("")))),
        }
    } else if let Some(path) = deferred.json_path() {
        let text = host.json().ok().map(|json| path.json_eval_text(json)).transpose();
        text.map(|text| Some(Own::from(text.flatten().unwrap_or_default()))).map_err(|why| why.to_string())
    } else if let Some(xpath) = deferred.xpath() {
        evaluate_xpath(xpath, context, false).map_err(|error| error.message)
    } else {
        Err(format!("`{}` cannot be evaluated as a deferred parameter", deferred.source()))
    };
    depth.set(depth.get() - 1);
    value
}

/// A text with expressions in it, cut when the configuration loads.
#[derive(Debug)]
pub struct Text(::expression::Template<Expression>);

impl Default for Text {
    fn default() -> Text {
        Text(::expression::Template { pieces: Vec::new() })
    }
}

impl Text {
    pub(crate) fn of(template: ::expression::Template<Expression>) -> Text {
        Text(template)
    }

    /// The pieces.
    pub fn pieces(&self) -> &[Piece<Expression>] {
        &self.0.pieces
    }

    /// The expressions in it.
    pub fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.0.expressions()
    }

    /// What it reads.
    pub fn need(&self) -> Need {
        self.expressions().map(Expression::need).max().unwrap_or(Need::Nothing)
    }

    /// The text for this message.
    ///
    /// # Errors
    /// The payload cannot be read.
    pub fn resolve(&self, context: &mut Context) -> Result<String, Fault> {
        let mut out = String::new();
        for piece in self.pieces() {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Expression(expression) => {
                    out.push_str(&expression.string(context)?.unwrap_or_default())
                }
            }
        }
        Ok(out)
    }
}
