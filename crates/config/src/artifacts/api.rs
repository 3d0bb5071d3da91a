//! `<api>`: resources under a context.

use super::{Reading, SequenceRef};
use crate::configuration::FaultyArtifact;
use crate::element::Element;
use crate::read::{self, Shape};
use crate::value::Key;
use diagnostics::{Diagnostic, Diagnostics, Span};
use std::sync::Arc;

/// A REST API.
#[derive(Clone, Debug)]
pub struct Api {
    /// Its name as written; see [`registered_name`](Self::registered_name).
    pub name: Key,
    /// The context in effect: `{version}` replaced, no slash at the end, empty for `/`.
    pub context: String,
    /// The context as written.
    pub written_context: Key,
    /// Only for this host (of the `Host` header, exact).
    pub hostname: Option<String>,
    /// Only for this port (of the `Host` header).
    pub port: Option<u16>,
    /// Only for these transports; empty: both.
    pub transports: Vec<Scheme>,
    /// The version, and where it is in the path.
    pub version: ApiVersion,
    /// `version-param`, kept as it is.
    pub version_param: Option<String>,
    /// The registry resource with the OpenAPI document.
    pub publish_swagger: Option<Key>,
    /// The OpenAPI document that is packed with it in its archive.
    pub packed_definition: Option<Arc<[u8]>>,
    /// Check messages against the OpenAPI document.
    pub validate_schema: bool,
    /// Listeners that serve the API: `default` and names of inbound endpoints. Empty: `default`.
    pub binds_to: Vec<String>,
    /// Collect statistics.
    pub statistics: bool,
    /// Trace messages.
    pub trace: bool,
    /// The documentation.
    pub description: Option<String>,
    /// The resources, in order; at least one.
    pub resources: Vec<Resource>,
    /// Handlers of the user.
    pub handlers: Vec<Handler>,
    /// The whole element.
    pub span: Span,
}

/// How an API is versioned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ApiVersion {
    /// Not versioned.
    Default,
    /// The context has the version in it.
    Context(String),
    /// The version is the path segment behind the context.
    Url(String),
}

/// `http` or `https`.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Scheme {
    Http,
    Https,
}

impl Scheme {
    /// `http` or `https`.
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }
}

/// A resource of an [`Api`].
#[derive(Clone, Debug)]
pub struct Resource {
    /// The methods that it answers; empty: all.
    pub methods: Vec<Method>,
    /// The paths that it answers.
    pub mapping: Mapping,
    /// Only for this transport.
    pub protocol: Option<Scheme>,
    /// For requests.
    pub in_sequence: Option<SequenceRef>,
    /// For responses; `None`: sent back as they are.
    pub out_sequence: Option<SequenceRef>,
    /// For errors; `None`: the global `fault` sequence.
    pub fault_sequence: Option<SequenceRef>,
    /// Only for requests of this content type.
    pub content_type: Option<Key>,
    /// Only for clients whose `User-Agent` matches this regular expression.
    pub user_agent: Option<Key>,
    /// Listeners that serve the resource; empty: those of the API.
    pub binds_to: Vec<String>,
    /// The documentation.
    pub description: Option<String>,
    /// The whole element.
    pub span: Span,
}

/// The methods of resources.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Method {
    Get,
    Post,
    Put,
    Delete,
    Options,
    Head,
    Patch,
}

impl Method {
    /// The method as it comes over the wire.
    pub fn as_str(self) -> &'static str {
        METHODS.iter().find(|(_, method)| *method == self).map_or("GET", |(name, _)| name)
    }
}

const METHODS: [(&str, Method); 7] = [
    ("GET", Method::Get),
    ("POST", Method::Post),
    ("PUT", Method::Put),
    ("DELETE", Method::Delete),
    ("OPTIONS", Method::Options),
    ("HEAD", Method::Head),
    ("PATCH", Method::Patch),
];

/// The paths of a resource.
#[derive(Clone, Debug)]
pub enum Mapping {
    /// Every path that no other resource takes.
    Default,
    /// A URI template.
    UriTemplate(Key),
    /// An exact path, a prefix (`/a/*`) or an extension (`*.jsp`).
    UrlMapping(Key),
}

/// A handler of an [`Api`].
#[derive(Clone, Debug)]
pub struct Handler {
    /// The Java class.
    pub class: Key,
    /// Its properties.
    pub properties: Vec<(String, String)>,
}

pub(crate) const SHAPE: Shape = Shape {
    attributes: &[
        "name",
        "context",
        "hostname",
        "port",
        "transports",
        "transport",
        "version",
        "version-type",
        "version-param",
        "publishSwagger",
        "validateSchema",
        "binds-to",
        "statistics",
        "trace",
        "description",
    ],
    elements: &["resource", "handlers", "description"],
};

impl Api {
    pub(crate) fn parse(element: &Element, reading: &mut Reading<'_>) -> Option<Api> {
        let diagnostics = &mut *reading.diagnostics;
        SHAPE.check(element, diagnostics);
        let name = read::required(element, "name", diagnostics);
        let written_context = read::required(element, "context", diagnostics);
        let version = version(element, diagnostics);
        if let Some(context) = &written_context {
            check_version(element, context, &version, diagnostics);
        }
        if let Some(context) = written_context.as_ref().filter(|context| !context.starts_with('/')) {
            diagnostics.push(
                read::bad_value("context", context, context.span, "a path that starts with `/`")
                    .help(format!("did you mean `/{context}`?")),
            );
        }
        let port = read::optional(element, "port")
            .and_then(|key| read::number(&key, "port", "a port from 0 to 65535", diagnostics))
            .filter(|port| *port != 0);
        let binds_to = read::optional(element, "binds-to").map_or_else(Vec::new, |key| read::names(&key));
        let resources: Vec<Resource> = element
            .children_named("resource")
            .map(|child| Resource::parse(child, &binds_to, diagnostics))
            .collect();
        check_resources(element, &resources, diagnostics);
        let context = written_context.as_deref().map(String::as_str).map(|written| match &version {
            ApiVersion::Context(version) => written.replace("{version}", version),
            _ => written.to_owned(),
        });
        Some(Api {
            context: context?.trim_end_matches('/').to_owned(),
            hostname: hostname(element, diagnostics),
            port,
            transports: transports(element, diagnostics),
            version,
            version_param: read::optional_text(element, "version-param"),
            publish_swagger: read::optional(element, "publishSwagger"),
            packed_definition: None,
            validate_schema: read::boolean(element, "validateSchema", false, diagnostics),
            binds_to,
            statistics: read::enabled(element, "statistics", diagnostics),
            trace: read::enabled(element, "trace", diagnostics),
            description: super::description(element),
            resources,
            handlers: handlers(element, diagnostics),
            span: element.span(),
            name: name?,
            written_context: written_context?,
        })
    }

    /// The name under which it is registered: `name:v1.0.0` when versioned.
    pub fn registered_name(&self) -> String {
        registered_name(&self.name, &self.version)
    }

    /// What can be read of an API that is faulty as a whole: its name and where requests for it go.
    pub(crate) fn faulty(element: &Element, faulty: FaultyArtifact) -> FaultyArtifact {
        // Errors in these are reported where the API is read.
        let version = version(element, &mut Diagnostics::new());
        let context = element.attr("context").map(|context| {
            let context = context.trim().trim_end_matches('/');
            match &version {
                ApiVersion::Default => context.to_owned(),
                ApiVersion::Context(version) => context.replace("{version}", version),
                ApiVersion::Url(version) => format!("{context}/{version}"),
            }
        });
        let name = faulty.name.as_deref().map(|name| registered_name(name, &version));
        FaultyArtifact { name, context, ..faulty }
    }

    /// The version, empty when not versioned.
    pub fn version_text(&self) -> &str {
        match &self.version {
            ApiVersion::Default => "",
            ApiVersion::Context(version) | ApiVersion::Url(version) => version,
        }
    }
}

fn registered_name(name: &str, version: &ApiVersion) -> String {
    match version {
        ApiVersion::Default => name.to_owned(),
        ApiVersion::Context(version) | ApiVersion::Url(version) => format!("{name}:v{version}"),
    }
}

fn version(element: &Element, diagnostics: &mut Diagnostics) -> ApiVersion {
    let version = read::optional(element, "version");
    type Make = fn(String) -> ApiVersion;
    let kinds: [(&str, Make); 2] = [("context", ApiVersion::Context), ("url", ApiVersion::Url)];
    let written_type = read::optional(element, "version-type");
    let kind = read::choice(element, "version-type", &kinds, diagnostics);
    match (version, kind) {
        (Some(version), Some(kind)) => kind(version.value),
        (Some(version), None) => {
            if written_type.is_none() {
                diagnostics.push(
                    Diagnostic::error("missing-attribute", "`version` needs `version-type`")
                        .at(version.span, "where is the version in the path?")
                        .help("version-type=\"context\" or version-type=\"url\""),
                );
            }
            ApiVersion::Default
        }
        (None, _) => ApiVersion::Default,
    }
}

/// Warns where the version and the context do not fit together: requests would have to say what nobody sends.
fn check_version(element: &Element, context: &Key, version: &ApiVersion, diagnostics: &mut Diagnostics) {
    const RULE: &str = "bad-value";
    const PLACE: &str = "{version}";
    let has_place = context.contains(PLACE);
    match version {
        ApiVersion::Url(version) if has_place => {
            let message = format!("requests of the API would begin with `{context}/{version}`");
            diagnostics.push(
                Diagnostic::warning(RULE, message)
                    .at(context.span, "`{version}` is filled in for version-type=\"context\" only")
                    .help("write version-type=\"context\", or leave `{version}` out of the context"),
            );
        }
        ApiVersion::Url(version)
            if context.trim_end_matches('/').rsplit('/').next() == Some(version.as_str()) =>
        {
            let message = format!("the version is in the path twice: `{context}/{version}`");
            diagnostics.push(
                Diagnostic::warning(RULE, message)
                    .at(context.span, "version-type=\"url\" puts the version behind the context")
                    .help("write version-type=\"context\", or leave the version out of the context"),
            );
        }
        ApiVersion::Default if read::optional(element, "version").is_none() => {
            if let Some(kind) = read::optional(element, "version-type") {
                let message = "`version-type` has no effect without `version`";
                let label = if has_place {
                    "so `{version}` in the context is not filled in"
                } else {
                    "the API has no version in its path"
                };
                diagnostics.push(Diagnostic::warning(RULE, message).at(kind.span, label));
            } else if has_place {
                diagnostics.push(
                    Diagnostic::warning(RULE, "`{version}` in the context is not filled in")
                        .at(context.span, "`version` and version-type=\"context\" are missing"),
                );
            }
        }
        _ => {}
    }
}

/// The host that requests must name, without a port.
fn hostname(element: &Element, diagnostics: &mut Diagnostics) -> Option<String> {
    let key = read::optional(element, "hostname")?;
    let port =
        key.rsplit_once(':').is_some_and(|(host, port)| !host.contains(':') && port.parse::<u16>().is_ok());
    if port || key.contains('/') {
        diagnostics.push(
            Diagnostic::warning("bad-value", format!("no request is for the host `{key}`"))
                .at(key.span, "expected the name of a host alone")
                .help("the port goes into the attribute `port`"),
        );
    }
    Some(key.value)
}

fn transports(element: &Element, diagnostics: &mut Diagnostics) -> Vec<Scheme> {
    let key = read::optional(element, "transports").or_else(|| read::optional(element, "transport"));
    let Some(key) = key else { return Vec::new() };
    let mut schemes = Vec::new();
    for name in read::names(&key) {
        match name.as_str() {
            "http" => schemes.push(Scheme::Http),
            "https" => schemes.push(Scheme::Https),
            _ => diagnostics.push(
                read::bad_value("transport of an API", &name, key.span, "http or https")
                    .did_you_mean(&name, ["http", "https"]),
            ),
        }
    }
    schemes
}

pub(crate) const HANDLERS: Shape = Shape { attributes: &[], elements: &["handler"] };

pub(crate) const HANDLER: Shape = Shape { attributes: &["class"], elements: &["property"] };

fn handlers(element: &Element, diagnostics: &mut Diagnostics) -> Vec<Handler> {
    let Some(list) = element.child("handlers") else { return Vec::new() };
    HANDLERS.check(list, diagnostics);
    let mut handlers = Vec::new();
    for child in list.children_named("handler") {
        HANDLER.check(child, diagnostics);
        let Some(class) = read::required(child, "class", diagnostics) else { continue };
        let properties = child
            .children_named("property")
            .filter_map(|property| {
                let value = property.attr("value").map(str::to_owned);
                let xml = || property.elements().next().map(Element::to_xml);
                Some((property.attr("name")?.to_owned(), value.or_else(xml)?))
            })
            .collect();
        handlers.push(Handler { class, properties });
    }
    handlers
}

/// At least one; one default; no two for the same mapping and method.
fn check_resources(element: &Element, resources: &[Resource], diagnostics: &mut Diagnostics) {
    if resources.is_empty() {
        diagnostics.push(
            Diagnostic::error("missing-element", "the API has no resource")
                .at(element.start_tag(), "expected at least one `resource` inside"),
        );
    }
    for (index, resource) in resources.iter().enumerate() {
        let clash = resources[..index].iter().find(|earlier| resource.clashes(earlier));
        if let Some(earlier) = clash {
            let message = match resource.mapping.written() {
                None => "the API has two default resources".to_owned(),
                Some(path) => format!("two resources have `{path}` and a method in common"),
            };
            let start = |resource: &Resource| Span { end: resource.span.start + 9, ..resource.span };
            diagnostics.push(
                Diagnostic::error("duplicate-resource", message)
                    .at(start(resource), "again here")
                    .at(start(earlier), "first here"),
            );
        }
    }
}

impl Mapping {
    /// The template or mapping as written; `None` for the default resource.
    pub fn written(&self) -> Option<&Key> {
        match self {
            Mapping::Default => None,
            Mapping::UriTemplate(key) | Mapping::UrlMapping(key) => Some(key),
        }
    }
}

pub(crate) const RESOURCE: Shape = Shape {
    attributes: &[
        "methods",
        "uri-template",
        "url-mapping",
        "protocol",
        "inSequence",
        "outSequence",
        "faultSequence",
        "content-type",
        "user-agent",
        "binds-to",
        "description",
    ],
    elements: &["inSequence", "outSequence", "faultSequence", "description"],
};

impl Resource {
    fn parse(element: &Element, api_binds_to: &[String], diagnostics: &mut Diagnostics) -> Resource {
        RESOURCE.check(element, diagnostics);
        let template = read::optional(element, "uri-template");
        let mapping = read::optional(element, "url-mapping");
        if let (Some(template), Some(mapping)) = (&template, &mapping) {
            diagnostics.push(
                Diagnostic::warning("conflict", "`uri-template` is ignored")
                    .at(template.span, "never used")
                    .at(mapping.span, "`url-mapping` wins"),
            );
        }
        if let Some(template) = template.as_ref().filter(|_| mapping.is_none()) {
            check_template(template, diagnostics);
        }
        let binds_to = read::optional(element, "binds-to");
        let bound = binds_to.as_ref().map_or_else(Vec::new, |key| read::names(key));
        for (key, name) in binds_to.iter().flat_map(|key| bound.iter().map(move |name| (key, name))) {
            let allowed =
                if api_binds_to.is_empty() { name == "default" } else { api_binds_to.contains(name) };
            if !allowed {
                diagnostics.push(
                    Diagnostic::error("bad-value", format!("the API is not bound to `{name}`"))
                        .at(key.span, "expected a part of the API's `binds-to`"),
                );
            }
        }
        Resource {
            methods: methods(element, diagnostics),
            mapping: match (mapping, template) {
                (Some(mapping), _) => Mapping::UrlMapping(mapping),
                (None, Some(template)) => Mapping::UriTemplate(template),
                (None, None) => Mapping::Default,
            },
            protocol: read::choice(
                element,
                "protocol",
                &[("http", Scheme::Http), ("https", Scheme::Https)],
                diagnostics,
            ),
            in_sequence: SequenceRef::parse(element, "inSequence", diagnostics),
            out_sequence: SequenceRef::parse(element, "outSequence", diagnostics),
            fault_sequence: SequenceRef::parse(element, "faultSequence", diagnostics),
            content_type: read::optional(element, "content-type"),
            user_agent: read::optional(element, "user-agent"),
            binds_to: bound,
            description: super::description(element),
            span: element.span(),
        }
    }

    /// Whether the resource answers a method.
    pub fn allows(&self, method: Method) -> bool {
        self.methods.is_empty() || self.methods.contains(&method)
    }

    fn clashes(&self, other: &Resource) -> bool {
        let same = match (&self.mapping, &other.mapping) {
            (Mapping::Default, Mapping::Default) => return true,
            (Mapping::UriTemplate(a), Mapping::UriTemplate(b)) => a.value == b.value,
            (Mapping::UrlMapping(a), Mapping::UrlMapping(b)) => a.value == b.value,
            _ => false,
        };
        same && METHODS.iter().any(|(_, method)| self.allows(*method) && other.allows(*method))
    }
}

/// Split on single spaces; every token must be a method in upper case.
fn methods(element: &Element, diagnostics: &mut Diagnostics) -> Vec<Method> {
    let Some(attribute) = element.attribute("methods").filter(|a| !a.value.trim().is_empty()) else {
        return Vec::new();
    };
    let mut methods = Vec::new();
    let mut at = 0;
    for token in attribute.value.split(' ') {
        let span = attribute.value_span.part(at, token.len().max(1));
        at += token.len() + 1;
        match METHODS.iter().find(|(name, _)| *name == token) {
            Some((_, method)) => methods.push(*method),
            None if token.is_empty() => diagnostics.push(
                Diagnostic::error("bad-value", "methods must be separated by a single space")
                    .at(span, "an empty name"),
            ),
            None => {
                let names = METHODS.map(|(name, _)| name);
                let found = read::bad_value("method", token, span, format!("one of: {}", names.join(" ")));
                let upper = token.to_uppercase().replace(',', " ");
                diagnostics.push(match upper != token {
                    true => found.help(format!("did you mean `{upper}`?")),
                    false => found.did_you_mean(token, names),
                });
            }
        }
    }
    methods
}

/// Warns of names that have other characters than letters, digits, `.`, `-` and `_`: what is meant as an operator behind a name, as in
/// `{path+}`, is a part of it. So is `uri.var.`, which the properties begin with.
fn check_variables(template: &Key, start: usize, inner: &str, diagnostics: &mut Diagnostics) {
    let usual = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    let list = inner.strip_prefix(['+', '#', '.', '/']).unwrap_or(inner);
    let mut at = start + (inner.len() - list.len());
    for variable in list.split(',') {
        let name = variable.split_once(':').map_or(variable, |(name, _)| name);
        let doubled = name.strip_prefix("uri.var.");
        if doubled.is_some() || !name.chars().all(usual) {
            let mut warning =
                Diagnostic::warning("bad-value", format!("`{name}` is an unusual name for a variable"))
                    .at(template.span.part(at, name.len()), format!("the property is `uri.var.{name}`"));
            if let Some(plain) = doubled {
                warning = warning.help(format!("did you mean `{plain}`, whose property is `{name}`?"));
            } else if let Some(plain) = name.strip_suffix(['+', '*']).filter(|plain| plain.chars().all(usual))
            {
                warning =
                    warning.help(format!("it takes one segment; the rest of the path is `{{+{plain}}}`"));
            }
            diagnostics.push(warning);
        }
        at += variable.len() + 1;
    }
}

/// Braces must match, the operators for query strings do not exist here, and paths begin with `/`.
fn check_template(template: &Key, diagnostics: &mut Diagnostics) {
    // Expressions that may take a `/`, and `*`, match the beginning of a path.
    const BEGINNINGS: [&str; 7] = ["/", "?", "*", "{+", "{/", "{#", "{."];
    if !template.is_empty() && !BEGINNINGS.iter().any(|beginning| template.starts_with(beginning)) {
        diagnostics.push(
            Diagnostic::warning("unmatched-template", "no request reaches this resource")
                .at(template.span, "a path begins with `/`")
                .help(format!("did you mean `/{template}`?")),
        );
    }
    let bad = |at: usize, len: usize, message: &str| {
        Diagnostic::error("bad-uri-template", format!("`{template}` is not a valid URI template"))
            .at(template.span.part(at, len), message)
    };
    if let Some(start) = template.strip_suffix("**") {
        diagnostics.push(
            Diagnostic::warning("unmatched-template", "hardly any request reaches this resource")
                .at(template.span.part(start.len(), 2), "only the last `*` stands for the rest of the path")
                .help(format!("did you mean `{start}*`?")),
        );
    }
    let mut open = None;
    for (at, c) in template.char_indices() {
        match c {
            '{' if open.is_some() => return diagnostics.push(bad(at, 1, "`{` inside an expression")),
            '{' => open = Some(at),
            '}' => match open.take() {
                None => return diagnostics.push(bad(at, 1, "`}` without `{`")),
                Some(start) => {
                    let inner = &template[start + 1..at];
                    let operator = inner.chars().next();
                    if inner.is_empty() {
                        return diagnostics.push(bad(start, 2, "an expression needs a name"));
                    }
                    if matches!(operator, Some(';' | '?' | '&')) {
                        return diagnostics.push(
                            bad(start, at + 1 - start, "this operator is not available in resources")
                                .help("write the query as text: /search?name={n}"),
                        );
                    }
                    check_variables(template, start + 1, inner, diagnostics);
                }
            },
            _ => {}
        }
    }
    if let Some(at) = open {
        diagnostics.push(bad(at, 1, "`{` without `}`"));
    }
}
