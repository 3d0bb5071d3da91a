//! What all endpoints that send to one address have in common.

use crate::health::{self, Checks};
use crate::oauth::OAuth;
use crate::state::{Policy, State};
use crate::{name_of, securing};
use config::endpoint::{
    AddressingVersion as ConfigAddressing, Authentication, Definition, Delay, EndpointProperty, Format,
    Optimize, PropertyScope, PropertyValue, Retry, TimeoutAction as ConfigTimeout,
};
use diagnostics::Span;
use flow::addressing::OfEndpoint;
use flow::endpoint::{
    AddressingVersion, Attempts, Choice, Endpoint, EndpointFormat, Leaf, Outgoing, Standing, Step,
    TimeoutAction,
};
use flow::fault::code;
use flow::health::{Change, Check, Health};
use flow::metrics::Counters;
use flow::stage::{Stage, Stages};
use flow::url::{Url, UrlError, parse_url};
use flow::{Code, Compiler, Context, Expression, Fault, Identity, KeyValue, ListId, Need, Services};
use message::{Method, Packing, SoapVersion, Value, XmlValue};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use transport::Target;

/// Where a kind of leaf sends a message.
pub trait Address: Send + Sync {
    /// Connection, path and method for this message.
    ///
    /// # Errors
    /// There is no usable address.
    fn resolve(&self, context: &mut Context) -> Result<Resolved, Fault>;

    /// The address as the configuration has it, for people.
    fn written(&self) -> String;

    /// The connection, where it is the same for all messages.
    fn fixed(&self) -> Option<&Target> {
        None
    }

    /// Whether it is made of the body.
    fn reads_body(&self) -> bool {
        false
    }

    /// The code of the fault while the endpoint lets nothing through.
    fn not_ready(&self) -> i32 {
        code::ENDPOINT_NOT_READY
    }
}

/// An address for one message.
pub struct Resolved {
    /// The connection.
    pub target: Target,
    /// Path and query.
    pub path: String,
    /// The method, where the endpoint has one.
    pub method: Option<Method>,
}

/// An endpoint that sends to one address.
pub struct LeafEndpoint {
    name: String,
    /// It has no name in the configuration: `name` describes it, and clients must not see that.
    anonymous: bool,
    identity: Arc<Identity>,
    address: Box<dyn Address>,
    format: EndpointFormat,
    charset: Option<Arc<str>>,
    timeout: Option<Timeout>,
    on_timeout: TimeoutAction,
    stages: Stages,
    addressing: Option<AddressingVersion>,
    separate_listener: bool,
    packing: Option<Packing>,
    properties: Vec<Property>,
    authorization: Authorization,
    on_error: Option<ListId>,
    retry: Retry,
    state: State,
    counters: Arc<Counters>,
}

/// How the endpoint authenticates.
enum Authorization {
    None,
    /// User and password.
    Basic(Box<(KeyValue, KeyValue)>),
    /// The name of a header, and the key in it.
    ApiKey(Arc<str>, KeyValue),
    OAuth(Box<OAuth>),
}

enum Timeout {
    Fixed(Duration),
    Dynamic(Expression),
}

struct Property {
    name: Arc<str>,
    scope: PropertyScope,
    value: PropertySource,
}

enum PropertySource {
    Literal(Value),
    Expression(Expression),
}

/// The endpoint of one leaf.
struct Single(Arc<LeafEndpoint>);

/// The code of an anonymous endpoint in messages, as the engines say it.
const ANONYMOUS: &str = "AnonymousEndpoint";

/// An endpoint with nothing but an address, made while messages run; its counters are those of what it was made for.
pub fn plain(
    name: String,
    address: Box<dyn Address>,
    identity: Identity,
    counters: Arc<Counters>,
    services: &Services,
) -> Arc<dyn Endpoint> {
    let state = State::of(&identity, &address.written(), Policy::default(), &services.states);
    Arc::new(Single(Arc::new(LeafEndpoint {
        name,
        anonymous: true,
        identity: Arc::new(identity),
        address,
        format: EndpointFormat::AsIs,
        charset: None,
        timeout: None,
        on_timeout: TimeoutAction::None,
        stages: Stages::new(),
        addressing: None,
        separate_listener: false,
        packing: None,
        properties: Vec::new(),
        authorization: Authorization::None,
        on_error: None,
        retry: Retry::default(),
        state,
        counters,
    })))
}

/// Compiles the common part around an address.
pub fn compile(
    endpoint: &config::Endpoint,
    definition: &Definition,
    address: Box<dyn Address>,
    description: &str,
    authentication: Option<&Authentication>,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<dyn Endpoint>> {
    let mut stages = securing(definition, endpoint, compiler);
    stages.extend(definition.addressing.iter().map(|_| -> Arc<dyn Stage> { Arc::new(OfEndpoint) }));
    let name = name_of(endpoint, description);
    let identity = compiler.identity(endpoint.name.as_ref().map_or(description, |name| &name.value));
    let (timeout, on_timeout) = match &definition.timeout {
        None => (None, TimeoutAction::None),
        Some(timeout) => {
            let duration = match &timeout.duration {
                None => None,
                Some(Delay::Fixed(duration)) => Some(Timeout::Fixed(*duration)),
                Some(Delay::Expression(expression)) => Some(Timeout::Dynamic(compiler.expression_text(
                    &expression.source,
                    expression.span,
                    &expression.scope,
                )?)),
            };
            let action = match timeout.action {
                ConfigTimeout::Never => TimeoutAction::None,
                ConfigTimeout::Discard => TimeoutAction::Discard,
                ConfigTimeout::Fault => TimeoutAction::Fault,
            };
            (duration, action)
        }
    };
    let mut properties = Vec::new();
    for property in endpoint.properties.iter().filter(|property| !health::is_check(property)) {
        properties.push(compile_property(property, compiler)?);
    }
    let authorization = match authentication {
        None => Authorization::None,
        Some(Authentication::Basic { username, password }) => {
            let credentials = (key_value(username, compiler)?, key_value(password, compiler)?);
            Authorization::Basic(Box::new(credentials))
        }
        Some(Authentication::ApiKey { name, value }) => {
            if name.is_empty() || !name.bytes().all(message::is_token_byte) {
                let label = "a header cannot have such a name";
                compiler.error(
                    "bad-value",
                    format!("`{}` is not a name of a header", name.value),
                    name.span,
                    label,
                );
                return None;
            }
            Authorization::ApiKey(Arc::from(name.value.as_str()), key_value(value, compiler)?)
        }
        Some(Authentication::OAuth(oauth)) => {
            Authorization::OAuth(Box::new(OAuth::compile(oauth, &identity, compiler)?))
        }
    };
    let checks = Checks::of(endpoint, address.fixed(), compiler).ok()?;
    let (written, states) = (address.written(), &compiler.services.states);
    let policy = Policy::of(definition, &compiler.services.settings.suspension);
    let state = State::of(&identity, &written, policy, states);
    let state = state.with_checks(checks, &identity, &written, states);
    let leaf = LeafEndpoint {
        anonymous: endpoint.name.is_none(),
        identity: Arc::new(identity),
        address,
        format: match definition.format {
            None => EndpointFormat::AsIs,
            Some(Format::Soap11) => EndpointFormat::Soap(SoapVersion::V11),
            Some(Format::Soap12) => EndpointFormat::Soap(SoapVersion::V12),
            Some(Format::Pox) => EndpointFormat::Pox,
            Some(Format::Get) => EndpointFormat::Get,
            Some(Format::Rest) => EndpointFormat::Rest,
        },
        charset: definition.encoding.as_deref().map(Arc::from),
        timeout,
        on_timeout,
        stages,
        addressing: definition.addressing.as_ref().map(|addressing| match addressing.version {
            Some(ConfigAddressing::Submission) => AddressingVersion::Submission,
            Some(ConfigAddressing::Final) => AddressingVersion::Final,
            None => AddressingVersion::Received,
        }),
        separate_listener: definition
            .addressing
            .as_ref()
            .is_some_and(|addressing| addressing.separate_listener),
        packing: definition.optimize.map(|optimize| match optimize {
            Optimize::Mtom => Packing::Mtom,
            Optimize::Swa => Packing::Swa,
        }),
        properties,
        authorization,
        on_error: endpoint.on_error.as_ref().and_then(|key| compiler.handler(key)),
        retry: definition.retry.clone(),
        state,
        counters: compiler.services.metrics.counters("endpoint", &name),
        name,
    };
    Some(Arc::new(Single(Arc::new(leaf))))
}

/// A literal, or what an expression gives for each message.
pub(crate) fn key_value(value: &config::Value, compiler: &mut Compiler<'_>) -> Option<KeyValue> {
    Some(match value {
        config::Value::Literal(key) | config::Value::Deferred(key) => {
            KeyValue::Literal(Arc::from(key.value.as_str()))
        }
        config::Value::Expression(expression) => KeyValue::Dynamic(compiler.expression_text(
            &expression.source,
            expression.span,
            &expression.scope,
        )?),
    })
}

fn compile_property(property: &EndpointProperty, compiler: &mut Compiler<'_>) -> Option<Property> {
    let value = match &property.value {
        PropertyValue::Literal(key) => PropertySource::Literal(Value::from(key.value.as_str())),
        PropertyValue::Expression(expression) => PropertySource::Expression(compiler.expression_text(
            &expression.source,
            expression.span,
            &expression.scope,
        )?),
        PropertyValue::Xml(element) => {
            let text = element.to_xml_in_scope();
            match xml::Document::parse(text.into_bytes(), &xml::ParseOptions::trusted()) {
                Ok(document) => {
                    let nodes = document.document_element().into_iter().collect();
                    PropertySource::Literal(Value::Xml(Arc::new(XmlValue {
                        document: Arc::new(document),
                        nodes,
                    })))
                }
                Err(error) => {
                    compiler.error("bad-value", error.to_string(), property.span, "in this property");
                    return None;
                }
            }
        }
    };
    Some(Property { name: Arc::from(property.name.value.as_str()), scope: property.scope, value })
}

impl Endpoint for Single {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn choose(&self, _context: &mut Context, attempts: &Attempts, step: &mut Step) -> Result<Choice, Fault> {
        if let Some(fault) = attempts.last()
            && (step.asked || attempts.went_to(&self.0.identity))
        {
            return Err(fault.clone());
        }
        step.asked = true;
        if !self.0.state.is_ready_now() {
            return Err(not_ready(&self.0));
        }
        let leaf: Arc<dyn Leaf> = Arc::<LeafEndpoint>::clone(&self.0);
        Ok(Choice::Leaf(leaf))
    }

    fn is_ready(&self) -> bool {
        self.0.state.is_ready_now()
    }

    fn lets_retry(&self, fault: &Fault) -> bool {
        lets_retry(&self.0.retry, fault)
    }

    fn on_error(&self) -> Option<ListId> {
        self.0.on_error
    }

    fn leaves(&self) -> Vec<Arc<dyn Leaf>> {
        let leaf: Arc<dyn Leaf> = Arc::<LeafEndpoint>::clone(&self.0);
        vec![leaf]
    }
}

fn not_ready(leaf: &LeafEndpoint) -> Fault {
    let state = leaf.state.name().to_uppercase();
    let name = if leaf.anonymous { ANONYMOUS } else { &leaf.name };
    let message = format!("Currently , Address endpoint : [ Name : {name} ] [ State : {state} ]");
    Fault::with_code(leaf.address.not_ready(), message).ready_in(leaf.state.ready_in())
}

/// Whether `retryConfig` lets a group try another endpoint after a fault.
pub fn lets_retry(retry: &Retry, fault: &Fault) -> bool {
    let Code::Number(number) = fault.code else { return false };
    let number = i64::from(number);
    !retry.disabled_error_codes.contains(&number)
        && (retry.enabled_error_codes.is_empty() || retry.enabled_error_codes.contains(&number))
}

impl LeafEndpoint {
    fn set_properties(&self, context: &mut Context) -> Result<(), Fault> {
        for property in &self.properties {
            let value = match &property.value {
                PropertySource::Literal(value) => Some(value.clone()),
                PropertySource::Expression(expression) => expression.value(context)?,
            };
            let Some(value) = value else { continue };
            match property.scope {
                PropertyScope::Default => context.properties.set(Arc::clone(&property.name), value),
                PropertyScope::Transport => context.set_header(&property.name, &value.to_string()),
                PropertyScope::Axis2 => context.set_axis2(Arc::clone(&property.name), value),
                PropertyScope::Axis2Client => context.client.set(Arc::clone(&property.name), value),
            }
        }
        Ok(())
    }

    fn authorize(&self, context: &mut Context) -> Result<(), Fault> {
        use base64::Engine;
        let credentials = match &self.authorization {
            Authorization::Basic(credentials) => credentials,
            Authorization::ApiKey(name, value) => {
                let key = value.resolve(context)?.unwrap_or_default();
                context.set_header(name, &key);
                return Ok(());
            }
            Authorization::None | Authorization::OAuth(_) => return Ok(()),
        };
        let (user, password) = &**credentials;
        let user = user.resolve(context)?.unwrap_or_default();
        let password = password.resolve(context)?.unwrap_or_default();
        let token = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
        context.headers.set("Authorization", format!("Basic {token}"));
        Ok(())
    }
}

impl Leaf for LeafEndpoint {
    fn name(&self) -> &str {
        &self.name
    }

    fn address(&self) -> String {
        self.address.written()
    }

    fn format(&self) -> EndpointFormat {
        self.format
    }

    fn is_ready(&self) -> bool {
        self.state.is_ready_now()
    }

    fn ready_in(&self) -> Option<Duration> {
        self.state.ready_in()
    }

    fn state(&self) -> &'static str {
        self.state.name()
    }

    fn identity(&self) -> &Arc<Identity> {
        &self.identity
    }

    fn episode(&self) -> u64 {
        self.state.episode()
    }

    fn succeeded(&self) {
        self.state.succeeded();
    }

    fn failed(&self, code: i32, why: &dyn fmt::Display, episode: u64) {
        self.state.failed(code, why, episode, transport::clock::now());
    }

    fn standing(&self) -> Standing {
        self.state.standing()
    }

    fn check(&self) -> Option<&Check> {
        self.state.checks().map(|checks| &checks.check)
    }

    fn setbacks(&self) -> u64 {
        self.state.setbacks()
    }

    fn checked(&self, outcome: Result<(), String>, setbacks: u64) -> Option<Change> {
        self.state.checked(outcome, setbacks)
    }

    fn health(&self) -> Option<Health> {
        self.state.health()
    }

    fn joins_group(&self) {
        self.state.joins_group();
    }

    fn suspend(&self) {
        self.state.suspend(transport::clock::now());
    }

    fn reads_body(&self) -> bool {
        let needs = |expression: &Expression| expression.need() >= Need::Prefix;
        self.format == EndpointFormat::Get
            || self.address.reads_body()
            || matches!(&self.timeout, Some(Timeout::Dynamic(expression)) if needs(expression))
            || self.properties.iter().any(|property| match &property.value {
                PropertySource::Expression(expression) => needs(expression),
                PropertySource::Literal(_) => false,
            })
            || match &self.authorization {
                Authorization::None => false,
                Authorization::Basic(credentials) => {
                    credentials.0.need().max(credentials.1.need()) >= Need::Prefix
                }
                Authorization::ApiKey(_, value) => value.need() >= Need::Prefix,
                Authorization::OAuth(oauth) => oauth.need() >= Need::Prefix,
            }
    }

    fn switch(&self, on: bool) {
        self.state.switch(on);
    }

    fn outgoing(&self, context: &mut Context) -> Result<Outgoing, Fault> {
        self.set_properties(context)?;
        let timeout = match &self.timeout {
            None => None,
            Some(Timeout::Fixed(duration)) => Some(*duration),
            Some(Timeout::Dynamic(expression)) => {
                let longest = context.services().settings.global_timeout;
                let wanted = expression.string(context)?.and_then(|text| text.trim().parse::<u64>().ok());
                wanted.map(|milliseconds| Duration::from_millis(milliseconds).min(longest))
            }
        };
        // Without a response action WSO2's `duration` has no effect.
        let timeout = if self.on_timeout == TimeoutAction::None { None } else { timeout };
        let resolved = self.address.resolve(context)?;
        self.authorize(context)?;
        let authority = match &self.authorization {
            Authorization::OAuth(oauth) => Some(oauth.authority(context)?),
            _ => None,
        };
        let mut path = resolved.path;
        if self.format == EndpointFormat::Get {
            path = with_payload_as_query(path, context)?;
        }
        let mocks = context.services().mocks.get();
        let target = mocks.and_then(|mocks| mocks.target(&self.name, &path)).unwrap_or(resolved.target);
        if flow::file::is_target(&target) {
            // It has no host.
        } else if context.axis2_is_true("POST_TO_URI") || context.axis2_is_true("FULL_URI") {
            path = format!("{target}{path}");
        }
        Ok(Outgoing {
            // What is written is the body, whatever the client's method was.
            method: match flow::file::is_target(&target) {
                true => Some(Method::Post),
                false => resolved.method,
            },
            target,
            request_target: path,
            format: self.format,
            charset: self.charset.clone(),
            timeout,
            on_timeout: self.on_timeout,
            addressing: self.addressing,
            separate_listener: self.separate_listener,
            packing: self.packing,
            authority,
        })
    }

    fn stages(&self) -> &[Arc<dyn Stage>] {
        &self.stages
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn on_error(&self) -> Option<ListId> {
        self.on_error
    }
}

/// `format="get"`: the local name of the payload is appended to the path, its children to the query.
fn with_payload_as_query(path: String, context: &mut Context) -> Result<String, Fault> {
    if context.payload.is_empty() {
        return Ok(path);
    }
    let envelope = context.envelope()?;
    let Some(payload) = envelope.payload() else { return Ok(path) };
    let query = message::form::from_xml(&envelope.document, payload);
    let (base, query_of_path) = path.split_once('?').unwrap_or((&path, ""));
    let mut out = format!("{}/{}", base.trim_end_matches('/'), envelope.document.local(payload));
    let query =
        [query_of_path, &query].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("&");
    if !query.is_empty() {
        out.push('?');
        out.push_str(&query);
    }
    Ok(out)
}

/// The connection and the path of a URL that was computed.
///
/// # Errors
/// It is not an http or https URL, or messages may not be sent there.
pub fn parse(url: &str, context: &Context) -> Result<(Target, String), Fault> {
    let routes = &context.services().routes;
    let permitted = match parse_url(url) {
        Ok(parsed) if !flow::file::is_address(url) && flow::local::path(url).is_none() => {
            routes.permits(&parsed.scheme, &parsed.host, parsed.port)
        }
        _ => routes.permits_text(url),
    };
    if !permitted {
        // The address may come from a client that probes the network.
        let url = diagnostics::without_credentials(url);
        let message = format!("`{url}` was computed, and is none of http.dynamic_addresses");
        return Err(Fault::with_code(code::GENERAL, message));
    }
    reach(url, context)
}

/// As [`parse`], for a URL whose server the configuration says.
///
/// # Errors
/// It is not an http or https URL.
pub fn reach(url: &str, context: &Context) -> Result<(Target, String), Fault> {
    if let Some(path) = flow::local::path(url) {
        return Ok((flow::local::target(), path));
    }
    if flow::file::is_address(url) {
        return Ok((flow::file::target(), url.trim().to_owned()));
    }
    match parse_url(url) {
        Ok(parsed) => Ok((target_of(&parsed, context.services())?, parsed.path_and_query)),
        Err(error) => Err(no_address(url, &error)),
    }
}

/// As [`parse`], for an address that the configuration says. Where nothing can be sent to it, loading warns, and
/// messages fault: other branches of the flow may be in use.
pub fn fixed(url: &str, span: Span, compiler: &mut Compiler<'_>) -> Result<(Target, String), Fault> {
    if let Some(path) = flow::local::path(url) {
        compiler.check_service(&path, span);
        return Ok((flow::local::target(), path));
    }
    if flow::file::is_address(url) {
        let mut remarks = Vec::new();
        let usable = flow::file::Writing::parse(url, &mut remarks).is_some();
        flow::report_file_address(url, &remarks, span, compiler);
        return match usable {
            true => Ok((flow::file::target(), url.trim().to_owned())),
            false => {
                Err(Fault::with_code(code::NO_TRANSPORT, format!("`{url}` is not an address of a file")))
            }
        };
    }
    if let Some((transport, instead)) = flow::other_transport(url) {
        let message = match transport {
            "local" => format!("`{url}` does not name a proxy service of this server"),
            _ => format!("there is no transport `{transport}` here"),
        };
        compiler.warning("unsupported-transport", message.as_str(), span, instead);
        return Err(Fault::with_code(code::NO_TRANSPORT, message));
    }
    let parsed = parse_url(url).map_err(|error| {
        let place = span.part(error.span.start, error.span.len());
        let message = format!("`{}` is not an address", diagnostics::without_credentials(url));
        if !config::is_unresolved(url) {
            compiler.warning("bad-address", message, place, error.message);
        }
        no_address(url, &error)
    })?;
    let target = target_of(&parsed, compiler.services).inspect_err(|fault| {
        compiler.warning("unsupported-transport", &*fault.message, span, "expected http or https");
    })?;
    Ok((target, parsed.path_and_query))
}

/// The connection of a fixed address; `None`: nothing can be sent there, or it is no connection.
pub fn connection(address: &Result<(Target, String), Fault>) -> Option<&Target> {
    let (target, _) = address.as_ref().ok()?;
    (!flow::file::is_target(target) && !flow::local::is_target(target)).then_some(target)
}

fn no_address(url: &str, error: &UrlError) -> Fault {
    let http = ["http:", "https:"].iter().any(|scheme| url.starts_with(scheme));
    let code = if http { code::GENERAL } else { code::NO_TRANSPORT };
    let url = diagnostics::without_credentials(url);
    Fault::with_code(code, format!("`{url}` is not an address that can be sent to: {error}"))
}

/// The connection of a parsed URL.
///
/// # Errors
/// The scheme is neither http nor https, or there is no TLS profile.
/// A WebSocket is opened by a request of HTTP.
pub fn target_of(url: &Url, services: &Services) -> Result<Target, Fault> {
    let target = match url.scheme.as_str() {
        "http" | "ws" => Ok(Target::http(&url.host, url.port)),
        "https" | "wss" => match services.tls.find(&url.host, url.port) {
            Some(profile) => Ok(Target::https(&url.host, url.port, profile.clone())),
            None => Err(Fault::new(format!("there is no TLS profile for {}", url.authority()))),
        },
        other => {
            Err(Fault::with_code(code::NO_TRANSPORT, format!("the transport `{other}` cannot be sent to")))
        }
    };
    target.map(|target| services.routes.reach(target))
}

/// The rest of the client's URL, where it is appended: REST clients, and not for SOAP formats.
pub fn postfix(context: &Context, target: Option<&Target>, format: Option<Format>) -> Option<String> {
    if target.is_some_and(flow::file::is_target) {
        return None;
    }
    let soap = matches!(format, Some(Format::Soap11 | Format::Soap12));
    if soap || (!context.is_rest() && format != Some(Format::Rest)) {
        return None;
    }
    context.axis2("REST_URL_POSTFIX").map(|value| value.to_string()).filter(|postfix| !postfix.is_empty())
}
