//! `http.get`, `http.post` and the others: a request to the service of a connection.
//!
//! A connection is an http endpoint: it has the endpoint's timeouts, states, authentication and pooled connections, and counts among the endpoints of
//! the admin address. An operation prepares the message and hands it to that endpoint as `call` does.

use crate::connection::{self, Connections, Current, Description};
use crate::operation::operation;
use crate::parameter::{Form, Parameter, Parameters};
use crate::response::{OVERWRITE, Place, VARIABLE};
use config::{Element, SYNAPSE};
use diagnostics::FileId;
use flow::endpoint::{CallTarget, Destination, Saved};
use flow::reference::EndpointRef;
use flow::{Compiled, Compiler, Context, Definition, Fault, Flow, Mediator, Need};
use message::{Envelope, Reading, Value};
use std::sync::Arc;

/// The operations.
pub(crate) const OPERATIONS: &[&Definition] =
    &[&INIT, &GET, &POST, &PUT, &PATCH, &DELETE, &HEAD, &OPTIONS_METHOD];

const INIT: Definition =
    operation("http.init", "Describes the connection of the steps behind it.", FIELDS, init);
const GET: Definition = operation("http.get", "Asks with GET.", BODYLESS, compile);
const HEAD: Definition = operation("http.head", "Asks with HEAD.", BODYLESS, compile);
const OPTIONS_METHOD: Definition = operation("http.options", "Asks with OPTIONS.", BODYLESS, compile);
const POST: Definition = operation("http.post", "Sends with POST.", WITH_BODY, compile);
const PUT: Definition = operation("http.put", "Sends with PUT.", WITH_BODY, compile);
const PATCH: Definition = operation("http.patch", "Sends with PATCH.", WITH_BODY, compile);
const DELETE: Definition = operation("http.delete", "Sends with DELETE.", WITH_BODY, compile);

/// The fields of a connection.
const FIELDS: &[&str] = &[
    "name",
    "connectionType",
    "baseUrl",
    "authType",
    "oauthAuthorizationMode",
    "oauthGrantType",
    "username",
    "password",
    "clientId",
    "clientSecret",
    "tokenUrl",
    "refreshToken",
    "additionalProperties",
    "basicCredentialsUsername",
    "basicCredentialsPassword",
    "oauthClientId",
    "oauthClientSecret",
    "oauthTokenUrl",
    "oauthRefreshToken",
    "oauthAdditionalProperties",
    "timeoutDuration",
    "timeoutAction",
    "retryErrorCodes",
    "retryCount",
    "retryDelay",
    "suspendErrorCodes",
    "suspendInitialDuration",
    "suspendProgressionFactor",
    "suspendMaximumDuration",
    "trustStoreCertificatePath",
    "certificateConfigurable",
    "certificateType",
    "connectionName",
];

/// Other names of fields, from the connector's documentation.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("username", "basicCredentialsUsername"),
    ("password", "basicCredentialsPassword"),
    ("clientId", "oauthClientId"),
    ("clientSecret", "oauthClientSecret"),
    ("tokenUrl", "oauthTokenUrl"),
    ("refreshToken", "oauthRefreshToken"),
    ("additionalProperties", "oauthAdditionalProperties"),
];

/// The name of a field in a description.
fn name_in<'n>(element: &Element, field: &'n str) -> &'n str {
    let other = OTHER_NAMES.iter().find(|(name, other)| *name == field && element.child(other).is_some());
    match other {
        Some((_, other)) if element.child(field).is_none() => other,
        _ => field,
    }
}

macro_rules! parameters {
    ($($more:literal),*) => {
        &[
            "relativePath", "headers", $($more,)* "postToUri", "forceScAccepted", "disableChunking", "noEntityBody", "forceHttp10", "httpSc",
            "nonErrorHttpStatusCodes", "httpScDesc", "faultsAsHttp200", "noKeepAlive", "restUrlPostfix", "requestHostHeader",
            "forcePostPutNobody", "forceHttpContentLength", "copyContentLengthFromIncoming", VARIABLE, OVERWRITE,
        ]
    };
}
const BODYLESS: &[&str] = parameters!();
const WITH_BODY: &[&str] =
    parameters!("requestBodyType", "requestBodyJson", "requestBodyXml", "requestBodyText");

/// The parameters that set properties of axis2 scope, with these properties.
const TRANSPORT: &[(&str, &str)] = &[
    ("postToUri", "POST_TO_URI"),
    ("forceScAccepted", "FORCE_SC_ACCEPTED"),
    ("disableChunking", "DISABLE_CHUNKING"),
    ("noEntityBody", "NO_ENTITY_BODY"),
    ("forceHttp10", "FORCE_HTTP_1.0"),
    ("httpSc", "HTTP_SC"),
    ("nonErrorHttpStatusCodes", "non.error.http.status.codes"),
    ("httpScDesc", "HTTP_SC_DESC"),
    ("faultsAsHttp200", "FAULTS_AS_HTTP_200"),
    ("noKeepAlive", "NO_KEEPALIVE"),
    ("requestHostHeader", "REQUEST_HOST_HEADER"),
    ("forcePostPutNobody", "FORCE_POST_PUT_NOBODY"),
    ("forceHttpContentLength", "FORCE_HTTP_CONTENT_LENGTH"),
    ("copyContentLengthFromIncoming", "COPY_CONTENT_LENGTH_FROM_INCOMING"),
];

/// Those of them that are boolean.
const TRUTHS: &[&str] = &[
    "postToUri",
    "forceScAccepted",
    "disableChunking",
    "noEntityBody",
    "forceHttp10",
    "faultsAsHttp200",
    "noKeepAlive",
    "forcePostPutNobody",
    "forceHttpContentLength",
    "copyContentLengthFromIncoming",
];

/// Sets the URL of one request for the connection's endpoint: properties of axis2-client scope, which end with the request.
const BASE: &str = "uri.var.connection.base";
const PATH: &str = "uri.var.connection.path";

struct Connection {
    endpoint: Arc<EndpointRef>,
    base: Option<Parameter>,
}

struct Request {
    method: String,
    connections: Connections<Connection>,
    parameters: Parameters,
    /// The message is restored after the request.
    keeps_message: bool,
}

/// `http.init` in a sequence.
struct Init(Option<Arc<Connection>>);

impl Mediator for Init {
    fn need(&self) -> Need {
        Need::Nothing
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let Some(connection) = &self.0 else {
            return Err(Fault::new("the connection of http.init is faulty"));
        };
        context.attach(Arc::new(Current(Arc::clone(connection))));
        Ok(Flow::Next)
    }
}

fn init(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let name = connection::field(element, "name", compiler).unwrap_or_else(|| {
        let identity = compiler.identity("http.init");
        format!("{} in {}", identity.part, identity.artifact)
    });
    let key = config::Key { value: name, span: element.start_tag() };
    let connection = make(&Description { key, element, is_step: true }, compiler);
    Some(Box::new(Init(connection.map(Arc::new))))
}

fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Compiled {
    let form = |name: &str| match name {
        "relativePath" | "requestBodyXml" | "requestBodyText" => Form::Template,
        "requestBodyJson" | "headers" => Form::Json,
        _ => Form::Plain,
    };
    let connections = Connections::compile(element, "http", compiler, make)?;
    let parameters = Parameters::compile(element, form, compiler)?;
    let literal = |name: &str| match parameters.get(name) {
        Some(Parameter::Literal(text)) => Some(text.trim().to_owned()),
        _ => None,
    };
    check_headers(literal("headers"), literal("requestBodyType"), element, compiler);
    check_body(&parameters, element, compiler);
    parameters.check_truths(TRUTHS, element, compiler);
    parameters.check_numbers(&["httpSc"], element, compiler);
    let overwrites = literal(OVERWRITE).is_some_and(|text| text.eq_ignore_ascii_case("true"));
    let keeps_message = parameters.get(VARIABLE).is_some() && !overwrites;
    let method = element.local().trim_start_matches("http.").to_ascii_uppercase();
    Some(Box::new(Request { method, connections, parameters, keeps_message }))
}

/// Reports bodies that cannot be sent.
fn check_body(parameters: &Parameters, element: &Element, compiler: &mut Compiler<'_>) {
    parameters.check_word("requestBodyType", &["JSON", "XML", "TEXT"], element, compiler);
    if parameters.is_literally("requestBodyType", "JSON") {
        parameters.check("requestBodyJson", element, compiler, |text| {
            let parsed = serde_json::from_str::<&serde_json::value::RawValue>(text);
            parsed.map(|_| ()).map_err(|why| format!("it is not JSON: {why}"))
        });
    }
    if parameters.is_literally("requestBodyType", "XML") {
        parameters.check("requestBodyXml", element, compiler, |text| {
            crate::result::first_envelope(text).map(|_| ()).map_err(|why| format!("it is not XML: {why}"))
        });
    }
}

/// Reports headers that are not a list of pairs, and a content type that the type of the body takes the place of.
fn check_headers(
    text: Option<String>,
    body_type: Option<String>,
    element: &Element,
    compiler: &mut Compiler<'_>,
) {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return };
    let place = crate::parameter::place_of(element, "headers");
    match read_pairs(&text) {
        Ok((pairs, None)) => {
            let sent = match body_type.as_deref() {
                Some("JSON") => JSON_TYPE,
                Some("XML") => XML_TYPE,
                Some("TEXT") => TEXT_TYPE,
                _ => return,
            };
            let given = pairs.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
            let media_type =
                |value: &str| value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            if given.is_none_or(|(_, value)| value.contains("${") || media_type(value) == sent) {
                return;
            }
            let message = format!("the header `Content-Type` has no effect: the body is sent as {sent}");
            let label = match sent {
                XML_TYPE => "`messageType` of scope axis2 decides, if it is text/xml or application/soap+xml",
                _ => "`requestBodyType` decides",
            };
            compiler.warning("no-effect", message, place, label);
        }
        Ok((_, Some(other))) => {
            let message = format!("`{other}` in `headers` is not a header: it is left out");
            compiler.warning(
                "bad-value",
                message,
                place,
                "a header is a list of its own: [[\"name\", \"value\"]]",
            );
        }
        Err(why) => compiler.warning("bad-value", "`headers` is not a list of headers", place, why),
    }
}

/// The endpoint of a connection; `None` after a recorded error.
fn make(description: &Description<'_>, compiler: &mut Compiler<'_>) -> Option<Connection> {
    let element = description.element;
    let base = connection::dynamic_field(element, "baseUrl", compiler);
    connection::report_unknown(description, FIELDS, compiler);
    if element.child("baseUrl").is_none_or(|url| url.text().trim().is_empty()) {
        let message = format!("the connection `{}` has no `baseUrl`", description.key.value);
        compiler.warning("bad-value", message, element.start_tag(), "messages that come to it fault");
    }
    if let Some(Parameter::Literal(text)) = &base
        && !text.contains(['{', '$'])
        && !text.trim_start().to_ascii_lowercase().starts_with("http")
    {
        let message =
            format!("the `baseUrl` of `{}` does not begin with http:// or https://", description.key.value);
        let place = element.child("baseUrl").map_or_else(|| element.start_tag(), Element::text_span);
        compiler.warning("bad-value", message, place, "messages that come to it fault");
    }
    let text = endpoint_of(description, fixed_base(&base, description, compiler), compiler)?;
    let parsed = match config::parse(FileId::BUILT_IN, &text) {
        Ok(parsed) => parsed,
        Err(why) => {
            let message = format!("the connection `{}` cannot be read", description.key.value);
            compiler.error("bad-value", message, description.key.span, why.message);
            return None;
        }
    };
    let endpoint = compiler.endpoint_of_entry(&description.key, &parsed);
    Some(Connection { endpoint, base })
}

/// The base URL in the endpoint: that of a local entry which is not an expression. Steps may describe connections of one name
/// with different ones.
fn fixed_base<'b>(
    base: &'b Option<Parameter>,
    description: &Description<'_>,
    compiler: &Compiler<'_>,
) -> Option<&'b str> {
    let Some(Parameter::Literal(base)) = base else { return None };
    let is_entry = compiler.configuration.local_entries.get(&description.key.value).is_some();
    (is_entry && !base.contains(['{', '$'])).then(|| base.trim())
}

/// The XML of the endpoint of a connection; `None` after a recorded error.
fn endpoint_of(
    description: &Description<'_>,
    base: Option<&str>,
    compiler: &mut Compiler<'_>,
) -> Option<String> {
    let element = description.element;
    let mut text = format!(r#"<endpoint xmlns="{SYNAPSE}" name="{}">"#, escaped(&description.key.value));
    let base = base.map_or_else(|| format!("{{{BASE}}}"), escaped);
    text.push_str(&format!(r#"<http uri-template="{base}{{+{PATH}}}">"#));
    let mut group = |name: &str, fields: &[(&str, &str)], text: &mut String| {
        let mut inside = String::new();
        for (field, target) in fields {
            if let Some(value) = connection::field(element, field, compiler) {
                // Without an action the endpoint's default counts.
                if *field == "timeoutAction" && value.eq_ignore_ascii_case("never") {
                    continue;
                }
                let value = if *field == "timeoutAction" { value.to_ascii_lowercase() } else { value };
                inside.push_str(&format!("<{target}>{}</{target}>", escaped(&value)));
            }
        }
        if !inside.is_empty() {
            text.push_str(&format!("<{name}>{inside}</{name}>"));
        }
        !inside.is_empty()
    };
    group("timeout", &[("timeoutDuration", "duration"), ("timeoutAction", "responseAction")], &mut text);
    let suspend = [
        ("suspendErrorCodes", "errorCodes"),
        ("suspendInitialDuration", "initialDuration"),
        ("suspendProgressionFactor", "progressionFactor"),
        ("suspendMaximumDuration", "maximumDuration"),
    ];
    group("suspendOnFailure", &suspend, &mut text);
    let mark = [
        ("retryErrorCodes", "errorCodes"),
        ("retryCount", "retriesBeforeSuspension"),
        ("retryDelay", "retryDelay"),
    ];
    group("markForSuspension", &mark, &mut text);
    text.push_str(&authentication(element, compiler)?);
    text.push_str("</http></endpoint>");
    Some(text)
}

/// The credentials of a connection; `None` after a recorded error. A misspelt word is an error: without credentials the
/// client's `Authorization` would be sent.
fn authentication(element: &Element, compiler: &mut Compiler<'_>) -> Option<String> {
    let kind = connection::word(element, "authType", &["None", "Basic Auth", "OAuth"], compiler).ok()?;
    let grants = &["Authorization Code", "Client Credentials", "Password"];
    let grant = connection::word(element, "oauthGrantType", grants, compiler).ok()?;
    let mut fields = |fields: &[(&str, &str)]| -> String {
        let mut inside = String::new();
        for (field, target) in fields {
            if let Some(value) = connection::field(element, name_in(element, field), compiler) {
                inside.push_str(&format!("<{target}>{}</{target}>", escaped(&value)));
            }
        }
        inside
    };
    let inside = match kind {
        Some("Basic Auth") => format!(
            "<basicAuth>{}</basicAuth>",
            fields(&[("username", "username"), ("password", "password")])
        ),
        Some("OAuth") => {
            let common = [
                ("clientId", "clientId"),
                ("clientSecret", "clientSecret"),
                ("tokenUrl", "tokenUrl"),
                ("oauthAuthorizationMode", "authMode"),
            ];
            let (grant, more): (_, &[(&str, &str)]) = match grant {
                Some("Client Credentials") => ("clientCredentials", &[]),
                Some("Password") => {
                    ("passwordCredentials", &[("username", "username"), ("password", "password")])
                }
                _ => ("authorizationCode", &[("refreshToken", "refreshToken")]),
            };
            let inside = format!("{}{}", fields(more), fields(&common));
            let inside = format!("{inside}{}", request_parameters(element, compiler));
            format!("<oauth><{grant}>{inside}</{grant}></oauth>")
        }
        _ => return Some(String::new()),
    };
    Some(format!("<authentication>{inside}</authentication>"))
}

/// `additionalProperties`: a JSON list of names and values for the token request.
fn request_parameters(element: &Element, compiler: &mut Compiler<'_>) -> String {
    let name = name_in(element, "additionalProperties");
    let text = element.child(name).map(Element::text).unwrap_or_default();
    let pairs = match read_pairs(text.trim()) {
        Ok((pairs, None)) => pairs,
        found => {
            let why = found.err().unwrap_or_else(|| "expected pairs: [[\"name\", \"value\"]]".to_owned());
            let place = element.child(name).map_or_else(|| element.start_tag(), Element::text_span);
            compiler.warning("bad-value", format!("`{name}` is not a list of names and values"), place, why);
            return String::new();
        }
    };
    let parameters: String = pairs
        .iter()
        .map(|(name, value)| format!(r#"<parameter name="{}">{}</parameter>"#, escaped(name), escaped(value)))
        .collect();
    match parameters.is_empty() {
        true => String::new(),
        false => format!("<requestParameters>{parameters}</requestParameters>"),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

/// The names and values in `[["name", "value"], {"name": "value"}]`.
pub(crate) fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let (pairs, other) = read_pairs(text)?;
    match other {
        None => Ok(pairs),
        Some(_) => Err("expected pairs: [[\"name\", \"value\"]]".to_owned()),
    }
}

/// Names and values, and the first item that is not a pair.
type Pairs = (Vec<(String, String)>, Option<String>);

/// As [`pairs`], without the items that are not pairs, and the first of these.
fn read_pairs(text: &str) -> Result<Pairs, String> {
    if text.is_empty() {
        return Ok((Vec::new(), None));
    }
    // As WSO2 reads it: a list may end with a comma.
    let list: serde_json::Value = serde_json::from_str(text)
        .or_else(|why| serde_json::from_str(&without_last_commas(text)).map_err(|_| why))
        .map_err(|why| format!("it is not JSON: {why}"))?;
    let text_of = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => text.trim().to_owned(),
        other => other.to_string(),
    };
    let (mut pairs, mut other) = (Vec::new(), None);
    let serde_json::Value::Array(items) = list else {
        return Err("expected a list: [[\"name\", \"value\"]]".to_owned());
    };
    for item in &items {
        match item {
            serde_json::Value::Array(pair) if pair.len() == 2 => {
                pairs.push((text_of(&pair[0]), text_of(&pair[1])))
            }
            serde_json::Value::Object(members) => {
                pairs.extend(members.iter().map(|(name, value)| (name.trim().to_owned(), text_of(value))));
            }
            _ => {
                other.get_or_insert_with(|| item.to_string());
            }
        }
    }
    pairs.retain(|(name, _)| !name.is_empty());
    Ok((pairs, other))
}

/// A JSON text without trailing commas.
fn without_last_commas(text: &str) -> String {
    let (mut out, mut quoted, mut escaped) = (String::with_capacity(text.len()), false, false);
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ']' | '}' if !quoted => {
                let kept = out.trim_end();
                let kept = kept.strip_suffix(',').unwrap_or(kept).len();
                out.truncate(kept);
            }
            _ => {}
        }
        out.push(c);
    }
    out
}

/// The path that is appended to a base URL, with one slash between them.
fn behind(base: &str, path: &str) -> String {
    let (base, path) = (base.trim(), path.trim());
    match (base.ends_with('/'), path.strip_prefix('/')) {
        _ if path.starts_with('?') => path.to_owned(),
        (true, Some(rest)) => rest.to_owned(),
        (false, None) if !path.is_empty() => format!("/{path}"),
        _ => path.to_owned(),
    }
}

/// The media types that `requestBodyType` stands for.
const JSON_TYPE: &str = "application/json";
const XML_TYPE: &str = "application/xml";
const TEXT_TYPE: &str = "text/plain";

/// The body of a request that has one.
enum Body {
    Json(String),
    Xml(Box<Envelope>),
    Text(String),
}

impl Request {
    /// The body that the parameters give; `None`: that of the message.
    fn body(&self, context: &mut Context) -> Result<Option<Body>, Fault> {
        let Some(kind) = self.parameters.text("requestBodyType", context)? else { return Ok(None) };
        let mut text = String::new();
        for name in ["requestBodyJson", "requestBodyXml", "requestBodyText"] {
            let Some(parameter) = self.parameters.get(name) else { continue };
            let given = match name {
                "requestBodyJson" => parameter.json_text(context)?,
                "requestBodyXml" => parameter.xml_text(context)?,
                _ => parameter.value(context)?.map(|value| value.to_string()),
            };
            if let Some(given) = given.filter(|t| !t.is_empty()) {
                text = given;
                break;
            }
        }
        let wrong = |why: String| {
            Fault::new(format!("the body of {} is not {kind}", self.parameters.operation())).because(why)
        };
        Ok(Some(match kind.to_ascii_uppercase().as_str() {
            // An empty one is what the editor writes for a request without a body.
            "JSON" if text.trim().is_empty() => Body::Json(String::new()),
            "JSON" => {
                serde_json::from_str::<&serde_json::value::RawValue>(&text)
                    .map_err(|why| wrong(why.to_string()))?;
                Body::Json(text)
            }
            "XML" => Body::Xml(Box::new(crate::result::first_envelope(&text).map_err(wrong)?)),
            "TEXT" => Body::Text(text),
            _ => {
                let message = format!("the requestBodyType of {} is {kind}", self.parameters.operation());
                return Err(Fault::new(message).because("expected JSON, XML or TEXT"));
            }
        }))
    }
}

fn set_body(body: Body, context: &mut Context) -> Result<(), Fault> {
    let wanted = match body {
        Body::Json(text) => {
            context.payload.set_json(&text)?;
            JSON_TYPE
        }
        Body::Text(text) => {
            let reading = Reading::of(Some(TEXT_TYPE), None, context.is_rest());
            context.payload.set_bytes(text, reading);
            TEXT_TYPE
        }
        Body::Xml(envelope) => {
            context.payload.set_envelope(*envelope);
            let message_type = context.axis2("messageType").map(|v| v.to_string()).unwrap_or_default();
            if matches!(message_type.as_str(), "application/xml" | "text/xml" | "application/soap+xml") {
                return Ok(());
            }
            XML_TYPE
        }
    };
    context.set_axis2("messageType", Value::from(wanted));
    Ok(())
}

impl Mediator for Request {
    fn need(&self) -> Need {
        let need = if self.keeps_message { Need::Whole } else { Need::Headers };
        need.max(self.parameters.need()).max(self.connections.need())
    }

    fn reason(&self) -> String {
        match (self.keeps_message, self.parameters.need()) {
            (true, _) => "keeps the body for after the request".to_owned(),
            (false, need) if need > Need::Headers => self.parameters.reason(),
            _ => "relays the body as it is".to_owned(),
        }
    }

    fn passes_on(&self) -> bool {
        true
    }

    fn endpoints(&self) -> Vec<Arc<EndpointRef>> {
        self.connections.literal().map(|connection| Arc::clone(&connection.endpoint)).into_iter().collect()
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        // Everything is evaluated first, so that the step can run again.
        let connection = self.connections.find(context)?;
        let base = connection.base.as_ref().map(|base| base.value(context)).transpose()?.flatten();
        let base = base.map(|base| base.to_string()).unwrap_or_default();
        if base.trim().is_empty() {
            // Otherwise the path, which may come from a message, could change the host.
            let message = format!("the connection of {} has no baseUrl", self.parameters.operation());
            return Err(Fault::new(message));
        }
        let path = behind(&base, &self.parameters.text("relativePath", context)?.unwrap_or_default());
        let place = Place::of(&self.parameters, context)?;
        let headers = match self.parameters.get("headers") {
            Some(headers) => headers.json_text(context)?.unwrap_or_default(),
            None => String::new(),
        };
        // As in WSO2, items that are not pairs are left out.
        let (headers, _) = read_pairs(headers.trim()).map_err(|why| {
            Fault::new(format!("the headers of {} are not a list of headers", self.parameters.operation()))
                .because(why)
        })?;
        let body = self.body(context)?;
        let mut transport = Vec::new();
        for (parameter, property) in TRANSPORT {
            if let Some(value) = self.parameters.text(parameter, context)? {
                transport.push((*property, value));
            }
        }
        let target = match place {
            Place::Body => None,
            Place::Variable(name) => Some(CallTarget::Variable(name)),
            Place::BodyAndVariable(name) => Some(CallTarget::BodyAndVariable(name)),
        };
        let saved = target.map(|target| {
            let keeps = matches!(target, CallTarget::Variable(_));
            Box::new(Saved {
                payload: if keeps { context.payload.copy() } else { context.payload.emptied() },
                headers: context.headers.clone(),
                request_headers: context.request_headers,
                target,
            })
        });
        for (name, _) in &headers {
            if !name.bytes().all(message::is_token_byte) {
                return Err(Fault::new(format!("`{name}` is not a header name")));
            }
        }
        for (name, value) in headers {
            context.set_header(&name, value.replace(['\0', '\n', '\r'], " ").trim());
        }
        for (property, value) in transport {
            let value = match property {
                "NO_ENTITY_BODY" | "FORCE_POST_PUT_NOBODY" => {
                    Value::Boolean(value.eq_ignore_ascii_case("true"))
                }
                _ => Value::from(value),
            };
            context.set_axis2(property, value);
        }
        if let Some(body) = body {
            set_body(body, context)?;
            context.set_axis2("NO_ENTITY_BODY", Value::Boolean(false));
        }
        context.set_axis2("HTTP_METHOD", Value::from(self.method.as_str()));
        context.remove_axis2("REST_URL_POSTFIX");
        context.client.set(BASE, Value::from(base.trim()));
        context.client.set(PATH, Value::from(path));
        let reference = Some(Arc::clone(&connection.endpoint));
        Ok(Flow::Call(Destination { reference, saved, ..Destination::implicit() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_slash_between_a_base_and_a_path() {
        for (base, path, wanted) in [
            ("http://h", "/a", "http://h/a"),
            ("http://h/", "/a", "http://h/a"),
            ("http://h/", "a", "http://h/a"),
            ("http://h", "a?b=/", "http://h/a?b=/"),
            ("http://h/b", "?q", "http://h/b?q"),
            ("http://h/b", "", "http://h/b"),
        ] {
            assert_eq!(format!("{base}{}", behind(base, path)), wanted, "{base} {path}");
        }
    }

    #[test]
    fn what_is_no_header_is_left_out() {
        for (text, wanted, other) in [
            (r#"[["a","b"],]"#, 1, None),
            (r#"[["a","b",],]"#, 1, None),
            (r#"["a","b"]"#, 0, Some(r#""a""#)),
            (r#"[["a","b"],["c"],1]"#, 1, Some(r#"["c"]"#)),
        ] {
            let (pairs, found) = read_pairs(text).unwrap();
            assert_eq!((pairs.len(), found.as_deref()), (wanted, other), "{text}");
        }
    }

    #[test]
    fn headers_are_lists_of_pairs() {
        let found = pairs(r#"[["a"," 1 "],{"b":2},["","x"]]"#);
        assert_eq!(found, Ok(vec![("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())]));
        for text in ["{}", "[[1]]", "[1]", "x"] {
            assert!(pairs(text).is_err(), "{text}");
        }
    }
}
