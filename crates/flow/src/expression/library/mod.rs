//! The variables and functions that Synapse adds to XPath, and the property scopes behind them.

mod functions;

pub(crate) use functions::hmac_bytes as hmac;

use crate::expression::Expression;
use crate::runtime::context::Context;
use crate::runtime::mediator::Parameter;
use crate::state::lock;
use crate::text::header_text;
use crate::wsdl::contract::Operation;
use ::expression::{DatePattern, Moment};
use config::Scope as Namespaces;
use message::{Envelope, Properties, SoapVersion, Value, XmlValue};
use std::cell::Cell;
use std::sync::{Arc, LazyLock, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};
use xml::Document;
use xpath::{
    CompileOptions, DocId, Function, FunctionInfo, FunctionLibrary, Host, NamespaceResolver, Node, NodeSet,
    Type, VariableInfo,
};

/// The scopes of properties, by the names that `scope="…"` and `get-property` use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// `default` or `synapse`.
    Default,
    /// `axis2`.
    Axis2,
    /// `axis2-client`.
    Axis2Client,
    /// `transport`: headers.
    Transport,
    /// `operation`.
    Operation,
    /// `registry`.
    Registry,
    /// `system`.
    System,
    /// `trace`: recorded nowhere.
    Trace,
    /// `analytics`.
    Analytics,
    /// `func`: template parameters.
    Function,
    /// `env`: environment variables.
    Environment,
    /// `file`: `conf/file.properties`.
    File,
    /// Variables; only as `$var:`.
    Variable,
}

impl Scope {
    /// The scopes that `get-property` takes, by their names.
    pub const NAMED: [(&str, Scope); 13] = [
        ("default", Scope::Default),
        ("synapse", Scope::Default),
        ("axis2", Scope::Axis2),
        ("axis2-client", Scope::Axis2Client),
        ("transport", Scope::Transport),
        ("operation", Scope::Operation),
        ("registry", Scope::Registry),
        ("system", Scope::System),
        ("trace", Scope::Trace),
        ("analytics", Scope::Analytics),
        ("func", Scope::Function),
        ("env", Scope::Environment),
        ("file", Scope::File),
    ];

    /// The scope of a name; case as Synapse has it.
    pub fn of(name: &str) -> Option<Scope> {
        Scope::NAMED.iter().find(|(spelling, _)| *spelling == name).map(|(_, scope)| *scope)
    }

    /// A property of the scope, as set: no computed names.
    pub fn get(self, context: &Context, name: &str) -> Option<Value> {
        match self {
            Scope::Default => context.properties.get(name).cloned().or_else(|| context.provenance(name)),
            Scope::Axis2 => context.axis2(name),
            Scope::Axis2Client => context.client.get(name).cloned(),
            Scope::Transport if context.said_type.is_some() && name.eq_ignore_ascii_case("Content-Type") => {
                context.said_type.as_ref()?.as_deref().map(Value::from)
            }
            Scope::Transport => match context.headers.get_bytes(name) {
                Some(value) => Some(Value::from(header_text(value))),
                None => context.correlation_header(name),
            },
            Scope::Operation => context.operation(name),
            Scope::Variable => context.variables.get(name).cloned(),
            Scope::System => system(name)
                .or_else(|| Some(Value::from(context.services.settings.system.get(name)?.as_str())))
                .or_else(|| Scope::Environment.get(context, name)),
            Scope::Environment => context.plan().injector().environment(name).map(Value::from),
            Scope::File => context.plan().injector().property(name).map(Value::from),
            Scope::Registry => context.plan().registry_text(name).map(Value::from),
            Scope::Function => match context.parameter(name).ok()?? {
                Parameter::Value(value) => Some(value.clone()),
                Parameter::Deferred(_) => None,
            },
            Scope::Analytics => context.axis2.get(&format!("ANALYTICS_METADATA.{name}")).cloned(),
            Scope::Trace => None,
        }
    }

    /// A property of the scope that lies in the message as a text. `None`: [`Scope::get`] tells whether it is there, and what it is.
    pub(crate) fn text<'c>(self, context: &'c Context, name: &str) -> Option<&'c str> {
        match self {
            Scope::Default => context.properties.get(name)?.as_str(),
            Scope::Axis2 => context.axis2.get(name)?.as_str(),
            Scope::Axis2Client => context.client.get(name)?.as_str(),
            Scope::Variable => context.variables.get(name)?.as_str(),
            Scope::Transport if context.said_type.is_none() => context.headers.get(name),
            _ => None,
        }
    }
}

/// System properties that flows have set: those of a Java process, which has its own beside the environment.
static SYSTEM: LazyLock<RwLock<Properties>> = LazyLock::new(RwLock::default);

fn system(name: &str) -> Option<Value> {
    SYSTEM.read().unwrap_or_else(std::sync::PoisonError::into_inner).get(name).cloned()
}

/// Sets a property of system scope, for all flows of the process.
pub fn set_system(name: &str, value: Value) {
    SYSTEM.write().unwrap_or_else(std::sync::PoisonError::into_inner).set(name, value);
}

/// Splits `$ctx:name…` into scope and rest.
pub(crate) fn property_prefix(path: &str) -> Option<(Scope, &str)> {
    let (prefix, rest) = path.strip_prefix('$')?.split_once(':')?;
    Some((scope_of_prefix(prefix)?, rest))
}

/// The scope of the prefix of a variable.
fn scope_of_prefix(prefix: &str) -> Option<Scope> {
    Some(match prefix {
        "ctx" => Scope::Default,
        "trp" => Scope::Transport,
        "axis2" => Scope::Axis2,
        "operation" => Scope::Operation,
        "var" => Scope::Variable,
        "func" => Scope::Function,
        _ => return None,
    })
}

/// Whether `get-property` computes what has this name, whatever is set.
pub(crate) fn is_computed(name: &str) -> bool {
    is_computed_date(name) || SPECIAL.iter().any(|(entry, _)| *entry == name)
}

fn is_computed_date(name: &str) -> bool {
    matches!(name, "SYSTEM_DATE" | "SYSTEM_TIME")
}

type Special = fn(&SynapseHost<'_>) -> String;

/// The names that mean something of their own in default scope.
const SPECIAL: &[(&str, Special)] = &[
    ("To", |host| host.context.to().unwrap_or_default()),
    ("From", |host| host.context.addressing.from.clone().unwrap_or_default()),
    ("Action", |host| {
        let action = host.context.addressing.action.clone();
        action.or_else(|| host.context.soap_action()).unwrap_or_default()
    }),
    ("WSAction", |host| host.context.addressing.action.clone().unwrap_or_default()),
    ("FaultTo", |host| host.context.addressing.fault_to.clone().unwrap_or_default()),
    ("ReplyTo", |host| host.context.addressing.reply_to.clone().unwrap_or_default()),
    ("RelatesTo", |host| match &host.context.addressing.relates_to {
        // An answer relates to the message that was sent, whether that said so or not.
        None if host.context.progress.asked.is_answered() => host.context.message_id(),
        other => other.clone().unwrap_or_default(),
    }),
    ("MessageID", |host| host.context.message_id()),
    ("FAULT", |host| {
        let fault = host.context.status.is_some_and(|status| status >= 400)
            || host.envelope().is_some_and(|envelope| envelope.fault().is_some());
        if fault { "TRUE".to_owned() } else { String::new() }
    }),
    ("MESSAGE_FORMAT", |host| host.message_format().to_owned()),
    // Services without a WSDL have the one operation that WSO2 gives them.
    ("OperationName", |host| match host.context.attached::<Operation>() {
        Some(operation) => operation.name.clone(),
        None => "mediate".to_owned(),
    }),
    ("OperationNamespace", |_| String::new()),
];

/// What XPath is told when an expression is compiled.
pub(crate) struct Library;

/// Variables without a prefix, as places in the envelope.
const PLACES: &[(&str, &str)] = &[
    ("body", "/*[local-name()='Envelope']/*[local-name()='Body'][1]"),
    ("header", "/*[local-name()='Envelope']/*[local-name()='Header'][1]"),
    ("env", "/*[local-name()='Envelope']"),
];

/// `name` and argument counts.
const FUNCTIONS: &[(&str, std::ops::RangeInclusive<usize>)] = &[
    ("get-property", 1..=4),
    ("base64Encode", 1..=2),
    ("base64Decode", 1..=2),
    ("url-encode", 1..=2),
    ("lower-case", 1..=1),
    ("upper-case", 1..=1),
    ("ends-with", 2..=2),
    ("hmac-generate", 2..=3),
    ("evaluate", 1..=1),
    ("vault-lookup", 1..=3),
    ("hashicorp:vault-lookup", 2..=3),
];

/// Why a function of WSO2 cannot be had.
fn unavailable(prefix: &str, local: &str) -> Option<String> {
    Some(
        match (prefix, local) {
            ("", "encrypt" | "decrypt") => "keystores of Java cannot be read here",
            _ => return None,
        }
        .to_owned(),
    )
}

impl FunctionLibrary for Library {
    fn function(&self, prefix: &str, uri: Option<&str>, local: &str, arity: usize) -> Function {
        // As with WSO2, a prefix that stands for no namespace says nothing.
        let plain = prefix == "fn" || uri.is_none();
        if let Some(why) = unavailable(if plain { "" } else { prefix }, local) {
            return Function::Unavailable(why);
        }
        let is_called = |name: &str| match (prefix, local) {
            ("hashicorp", "vault-lookup") => name == "hashicorp:vault-lookup",
            _ => name == local && (name != "vault-lookup" || prefix == "wso2"),
        };
        match FUNCTIONS.iter().position(|(name, _)| is_called(name)) {
            None if plain && !prefix.is_empty() => Function::Core,
            None => Function::Unknown,
            Some(slot) => {
                let arities = &FUNCTIONS[slot].1;
                if !arities.contains(&arity) {
                    return Function::WrongArity(format!(
                        "{} to {} arguments",
                        arities.start(),
                        arities.end()
                    ));
                }
                let returns = match local {
                    "get-property" | "evaluate" => Type::Any,
                    "ends-with" => Type::Boolean,
                    _ => Type::String,
                };
                // Whether an expression that is made when it runs reads the document is not known before.
                let reads_document = local == "evaluate";
                Function::Extension(FunctionInfo {
                    slot: slot as u32,
                    returns,
                    reads_document,
                    ..FunctionInfo::default()
                })
            }
        }
    }

    fn names(&self) -> Vec<&'static str> {
        FUNCTIONS.iter().map(|(name, _)| *name).collect()
    }

    fn variable(&self, prefix: &str, _uri: Option<&str>, local: &str) -> Option<VariableInfo> {
        if prefix.is_empty() {
            let (_, path) = PLACES.iter().find(|(name, _)| *name == local)?;
            return Some(VariableInfo {
                returns: Type::NodeSet,
                reads_document: true,
                same_as: Some((*path).to_owned()),
                ..VariableInfo::default()
            });
        }
        Some(VariableInfo::default())
    }
}

/// As [`Library`], for an XPath that a message brings. Its sender may know the message, and nothing else: no secrets, no properties, no entries of
/// the registry, no variables of the environment.
pub(crate) struct OfMessages;

/// The functions that read more than their arguments.
const BEYOND: [&str; 3] = ["get-property", "evaluate", "vault-lookup"];

impl FunctionLibrary for OfMessages {
    fn function(&self, prefix: &str, uri: Option<&str>, local: &str, arity: usize) -> Function {
        match Library.function(prefix, uri, local, arity) {
            Function::Extension(_) if BEYOND.contains(&local) => {
                Function::Unavailable("it reads more than the message".to_owned())
            }
            found => found,
        }
    }

    fn variable(&self, prefix: &str, uri: Option<&str>, local: &str) -> Option<VariableInfo> {
        if prefix.is_empty() { Library.variable(prefix, uri, local) } else { None }
    }
}

/// Answers XPath's questions from a message.
pub(crate) struct SynapseHost<'a> {
    context: &'a Context,
    /// Documents of XML properties that a running expression has seen; a node's [`DocId`] is its place here, from 1. Behind them are those of
    /// local entries, as the plan counts them.
    documents: Vec<Arc<XmlValue>>,
    /// The XPath is asked of another document: nodes of the message are none of its.
    beside: bool,
    /// Those of the place where the expression stands, for XPaths that are made when it runs.
    namespaces: Option<&'a Namespaces>,
    /// Expressions within expressions on their way in: deferred template parameters, `evaluate()`.
    depth: Cell<u32>,
}

/// How deep expressions may be evaluated by expressions, against endless recursion.
const MAX_DEPTH: u32 = 8;

/// The namespaces of a place in the configuration, as XPath asks for them.
pub(crate) struct Declared<'a>(pub &'a Namespaces);

impl NamespaceResolver for Declared<'_> {
    fn namespace(&self, prefix: &str) -> Option<&str> {
        self.0.lookup(prefix)
    }
}

impl<'a> SynapseHost<'a> {
    pub(crate) fn new(context: &'a Context) -> SynapseHost<'a> {
        let mut documents = Vec::new();
        let mut collect = |value: &Value| {
            if let Value::Xml(xml) = value {
                documents.push(Arc::clone(xml));
            }
        };
        for scope in [&context.properties, &context.axis2, &context.variables] {
            if !scope.is_empty() {
                scope.iter().for_each(|(_, value)| collect(value));
            }
        }
        if let Some(scope) = &context.operation {
            let scope = lock(scope);
            scope.iter().for_each(|(_, value)| collect(value));
        }
        if let Some(frame) = context.functions.last() {
            for (_, parameter) in frame.iter() {
                if let Parameter::Value(value) = parameter {
                    collect(value);
                }
            }
        }
        SynapseHost { context, documents, beside: false, namespaces: None, depth: Cell::new(0) }
    }

    /// With the namespaces of the place where the expression stands.
    pub(crate) fn with_namespaces(self, namespaces: Option<&'a Namespaces>) -> SynapseHost<'a> {
        SynapseHost { namespaces, ..self }
    }

    /// For an XPath on a document that is not the message.
    pub(crate) fn beside(context: &'a Context) -> SynapseHost<'a> {
        SynapseHost { beside: true, ..SynapseHost::new(context) }
    }

    pub(crate) fn envelope(&self) -> Option<&'a Envelope> {
        if self.beside {
            return None;
        }
        self.context.payload.built_envelope()
    }

    /// The XML of a property or local entry that the nodes of this number belong to.
    pub(crate) fn xml_of(&self, id: DocId) -> Option<&Arc<XmlValue>> {
        let place = (id.0 as usize).checked_sub(1)?;
        match place.checked_sub(self.documents.len()) {
            None => self.documents.get(place),
            Some(behind) => self.context.plan().entry_documents().get(behind),
        }
    }

    /// The number of a document, as [`SynapseHost::xml_of`] takes it.
    fn number_of(&self, xml: &Arc<XmlValue>) -> Option<DocId> {
        let is_it = |document: &Arc<XmlValue>| Arc::ptr_eq(document, xml);
        let place = self.documents.iter().position(is_it).or_else(|| {
            let behind = self.context.plan().entry_documents().iter().position(is_it)?;
            Some(self.documents.len() + behind)
        })?;
        Some(DocId(place as u32 + 1))
    }

    fn to_xpath(&self, value: Option<Value>) -> xpath::Value {
        match value {
            None => xpath::Value::Empty,
            Some(Value::String(text)) => xpath::Value::String(text),
            Some(Value::Boolean(truth)) => xpath::Value::Boolean(truth),
            Some(Value::Integer(number)) => xpath::Value::Number(number as f64),
            Some(Value::Double(number) | Value::JavaDouble(number)) => xpath::Value::Number(number),
            Some(json @ Value::Json(_)) => xpath::Value::from(json.to_string()),
            Some(Value::Xml(xml)) => match self.number_of(&xml) {
                Some(document) => {
                    let nodes: Vec<_> = xml.nodes.iter().map(|&id| Node::in_document(document, id)).collect();
                    xpath::Value::NodeSet(NodeSet::from_ordered(&nodes))
                }
                None => xpath::Value::from(Value::Xml(xml).to_string()),
            },
        }
    }

    fn parameter(&self, name: &str) -> Result<Option<xpath::Value>, String> {
        match self.context.parameter(name).map_err(|fault| fault.message)? {
            None => Ok(Some(xpath::Value::Empty)),
            Some(Parameter::Value(value)) => Ok(Some(self.to_xpath(Some(value.clone())))),
            Some(Parameter::Deferred(deferred)) => {
                let expression = Expression::of_deferred(&**deferred)?;
                let Some(xpath) = expression.xpath().filter(|_| !self.beside) else {
                    let value = crate::expression::synapse::read(expression, self.context, &self.depth)?;
                    return Ok(Some(self.to_xpath(value)));
                };
                if self.depth.get() >= MAX_DEPTH {
                    return Err(format!("the parameter {name} refers to itself"));
                }
                self.depth.set(self.depth.get() + 1);
                let result = match self.envelope() {
                    Some(envelope) => {
                        let node = Node::new(envelope.root);
                        xpath.evaluate(&xpath::Context::at(&envelope.document, node).with_host(self))
                    }
                    None => xpath.evaluate(&xpath::Context::without_document(self)),
                };
                self.depth.set(self.depth.get() - 1);
                result.map(Some).map_err(|error| error.message)
            }
        }
    }

    /// The value of an XPath that is made when it runs.
    fn evaluate(&self, source: &str, cx: &xpath::Context<'_>) -> Result<xpath::Value, String> {
        if self.depth.get() >= MAX_DEPTH {
            return Err(format!("evaluate() within evaluate() deeper than {MAX_DEPTH}"));
        }
        let none = Namespaces::new();
        let namespaces = &Declared(self.namespaces.unwrap_or(&none));
        let options = CompileOptions { namespaces, library: &Library, ..CompileOptions::default() };
        let compiled = xpath::Expression::compile(source.trim(), &options).map_err(|error| error.message)?;
        self.depth.set(self.depth.get() + 1);
        let value = compiled.evaluate(cx).map_err(|error| error.message);
        self.depth.set(self.depth.get() - 1);
        value
    }

    fn get_property(&self, args: &[xpath::Value], cx: &xpath::Context<'_>) -> Result<xpath::Value, String> {
        let texts: Vec<String> = args.iter().map(|arg| text_of(arg, cx)).collect();
        let (scope, name, format) = match texts.as_slice() {
            [name] => (Scope::Default, name, None),
            [first, second, rest @ ..] => match Scope::of(first) {
                Some(scope) => (scope, second, rest.first()),
                None if texts.len() == 2 && is_computed_date(first) => (Scope::Default, first, Some(second)),
                // An unknown scope has no properties.
                None => return Ok(xpath::Value::from("")),
            },
            [] => return Ok(xpath::Value::Empty),
        };
        match name.as_str() {
            "SYSTEM_TIME" => return Ok(xpath::Value::from(now().to_string())),
            "SYSTEM_DATE" => {
                // Java's short form.
                let pattern = format.map_or("M/d/yy, h:mm a", String::as_str);
                let now = Moment::of(now())?;
                return Ok(xpath::Value::from(DatePattern::simple(pattern)?.format(&now)?));
            }
            _ => {}
        }
        if scope == Scope::Function {
            return Ok(self.parameter(name)?.unwrap_or(xpath::Value::Empty));
        }
        if scope == Scope::Default
            && let Some((_, special)) = SPECIAL.iter().find(|(entry, _)| entry == name)
        {
            return Ok(xpath::Value::from(special(self)));
        }
        let found = scope.get(self.context, name);
        if found.is_none() {
            if scope == Scope::Default
                && let Some(entry) = self.context.plan().entry_value(name)
            {
                return Ok(self.to_xpath(Some(entry)));
            }
            if matches!(scope, Scope::Registry | Scope::System | Scope::Environment | Scope::File) {
                return Ok(xpath::Value::from(""));
            }
        }
        Ok(self.to_xpath(found))
    }

    fn message_format(&self) -> &'static str {
        use message::{Kind, Method};
        let context = self.context;
        let soap = |version| if version == SoapVersion::V11 { "soap11" } else { "soap12" };
        match context.payload.reading().kind {
            Kind::Soap11 if !context.payload.reading().rest => soap(SoapVersion::V11),
            Kind::Soap12 => soap(SoapVersion::V12),
            _ if context.inbound.method == Method::Get && context.payload.is_empty() => "get",
            _ => "pox",
        }
    }
}

/// Milliseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The string of an argument.
fn text_of(value: &xpath::Value, cx: &xpath::Context<'_>) -> String {
    value.to_string_in(cx).map(std::borrow::Cow::into_owned).unwrap_or_default()
}

impl Host for SynapseHost<'_> {
    fn variable(
        &self,
        prefix: &str,
        _uri: Option<&str>,
        local: &str,
    ) -> Result<Option<xpath::Value>, String> {
        Ok(Some(match prefix {
            "" => {
                let Some(envelope) = self.envelope() else { return Ok(Some(xpath::Value::Empty)) };
                let node = match local {
                    "body" => Some(envelope.body),
                    "header" => envelope.header,
                    "env" => Some(envelope.root),
                    _ => return Ok(None),
                };
                node.map_or(xpath::Value::Empty, |id| xpath::Value::from(Node::new(id)))
            }
            "sys" => {
                let value = Scope::System.get(self.context, local);
                self.to_xpath(Some(value.unwrap_or_else(|| Value::from(""))))
            }
            "url" => {
                let query =
                    self.context.addressing.to.as_deref().and_then(|to| to.split_once('?')).map(|(_, q)| q);
                let query = query.or(self.context.inbound.query()).unwrap_or("");
                let found = message::form::pairs(query)
                    .into_iter()
                    .find(|(name, _)| name.eq_ignore_ascii_case(local))
                    .map(|(_, value)| value);
                xpath::Value::from(found.unwrap_or_default())
            }
            _ => match scope_of_prefix(prefix) {
                Some(Scope::Function) => return self.parameter(local),
                Some(scope) => self.to_xpath(scope.get(self.context, local)),
                // `$P:k`: entry `k` of the map that the property `P` holds.
                None => match self.context.properties.get(prefix) {
                    Some(Value::Json(map)) => match map.get(local) {
                        Some(serde_json::Value::String(text)) => xpath::Value::from(text.as_str()),
                        Some(value) => xpath::Value::from(value.to_string()),
                        None => xpath::Value::Empty,
                    },
                    _ => return Ok(None),
                },
            },
        }))
    }

    fn call(
        &self,
        prefix: &str,
        _uri: Option<&str>,
        local: &str,
        args: &[xpath::Value],
        cx: &xpath::Context<'_>,
    ) -> Result<Option<xpath::Value>, String> {
        let some = |at: usize| args.get(at).map(|arg| text_of(arg, cx));
        let text = |at: usize| some(at).unwrap_or_default();
        let named = |why: String| format!("{local}: {why}");
        let string = |made: Result<String, String>| made.map(xpath::Value::from).map_err(named);
        Ok(Some(match local {
            "get-property" => self.get_property(args, cx)?,
            "base64Encode" => string(functions::base64_encode(&text(0), some(1).as_deref()))?,
            "base64Decode" => string(functions::base64_decode(&text(0), some(1).as_deref()))?,
            "url-encode" => xpath::Value::from(functions::url_encode(&text(0), some(1).as_deref())),
            "lower-case" => xpath::Value::from(text(0).to_lowercase()),
            "upper-case" => xpath::Value::from(text(0).to_uppercase()),
            "ends-with" => xpath::Value::Boolean(text(0).ends_with(&text(1))),
            "hmac-generate" => string(functions::hmac(&text(0), &text(1), some(2).as_deref()))?,
            "evaluate" => self.evaluate(&text(0), cx).map_err(named)?,
            "vault-lookup" if prefix == "hashicorp" => {
                let given: Vec<String> = (0..args.len()).filter_map(some).collect();
                let secret = self.context.plan().vault().remote(&given, false);
                string(secret.map_err(|missing| missing.why))?
            }
            "vault-lookup" => {
                let vault = self.context.plan().vault();
                let secret = vault.look_up(&text(0), some(1).as_deref(), some(2).as_deref());
                string(secret.map_err(|missing| missing.why))?
            }
            _ => return Ok(None),
        }))
    }

    fn paths_from_values(&self) -> bool {
        true
    }

    fn document(&self, id: DocId) -> Option<&Document> {
        self.xml_of(id).map(|xml| &*xml.document)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_xpath_of_a_message_sees_the_message() {
        for (source, is_good) in [
            ("//price > 1000", true),
            ("$body/* and fn:starts-with(base64Decode('YQ=='), 'a')", true),
            ("synapse:get-property('a')", false),
            ("get-property('env', 'PATH')", false),
            ("wso2:vault-lookup('a')", false),
            ("hashicorp:vault-lookup('a', 'b')", false),
            ("evaluate('1')", false),
            ("$ctx:a", false),
            ("$trp:Authorization", false),
            ("$sys:PATH", false),
            ("$a", false),
            ("${payload.x}", false),
            ("json-eval($.a)", false),
            ("1 idiv 1", false),
        ] {
            let compiled = crate::Expression::of_message(source, &config::Scope::new(), &Default::default());
            assert_eq!(compiled.is_ok(), is_good, "{source}: {:?}", compiled.err());
        }
    }

    #[test]
    fn functions_that_cannot_be_had_say_why() {
        for (prefix, local, wanted) in [("", "encrypt", "keystores"), ("", "decrypt", "keystores")] {
            match Library.function(prefix, None, local, 2) {
                Function::Unavailable(why) => assert!(why.contains(wanted), "{why}"),
                other => panic!("{local}: {other:?}"),
            }
        }
        for (prefix, local, arity, is_function) in [
            ("wso2", "vault-lookup", 1, true),
            ("wso2", "vault-lookup", 4, false),
            ("hashicorp", "vault-lookup", 2, true),
            ("hashicorp", "vault-lookup", 1, false),
            ("", "vault-lookup", 1, false),
            ("synapse", "get-property", 2, true),
            ("", "get-property", 5, false),
            ("", "nofunc", 1, false),
            ("", "evaluate", 1, true),
        ] {
            let function = Library.function(prefix, None, local, arity);
            assert_eq!(
                matches!(function, Function::Extension(_)),
                is_function,
                "{prefix}:{local}/{arity}: {function:?}"
            );
        }
    }
}
