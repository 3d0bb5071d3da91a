//! The resource side of REST APIs: which API takes a request, which of its resources, and what the path says.
//!
//! Everything here is a pure function of data: [`choose_api`] orders the APIs whose context and version fit,
//! [`choose`] picks a resource by its filters and its mapping, [`ResourceTemplate`] matches a path and yields
//! the variables. The grammar of templates is the engine's own, not RFC 6570 (that one is for endpoints).

mod api;

pub use api::{ApiCandidate, ApiFacts, ApiOrder, ApiRule, VersionStrategy, choose_api, normalize_context};

use message::regex::Pattern;
use percent_encoding::percent_decode_str;
use std::fmt;
use std::ops::Range;

/// Longest accepted template, in bytes.
pub const MAX_TEMPLATE_LENGTH: usize = 16 * 1024;

/// The methods a resource may list, in the order in which `Allow` names them.
pub const METHODS: [&str; 7] = ["GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH"];

/// A template or mapping that cannot be compiled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResourceError {
    /// What is wrong, without a final stop.
    pub message: String,
    /// Where in the text, in bytes.
    pub span: Range<usize>,
}

impl fmt::Display for ResourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ResourceError {}

/// The value of a template variable is not percent-encoded well: the client's fault, 400.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MalformedEncoding {
    /// The variable.
    pub variable: String,
    /// What it was given, as received.
    pub value: String,
}

impl fmt::Display for MalformedEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the path variable {} has a malformed percent-encoding: {}", self.variable, self.value)
    }
}

impl std::error::Error for MalformedEncoding {}

/// Names and decoded values of the variables of a template, in the order of the template.
pub type Variables = Vec<(String, String)>;

// ---------------------------------------------------------------------------------------------------------
// Templates

/// A compiled `uri-template` of a resource.
#[derive(Clone, Debug)]
pub struct ResourceTemplate {
    source: String,
    nodes: Vec<Node>,
    /// A literal has a `?`: the query is matched too.
    has_query: bool,
}

#[derive(Clone, Debug)]
enum Node {
    Literal {
        text: String,
        /// It ends with `*`: whatever is left matches.
        open: bool,
    },
    Expression {
        operator: Operator,
        names: Vec<Name>,
    },
}

#[derive(Clone, Debug)]
struct Name {
    name: String,
    /// `:n`: the value has exactly n characters.
    length: Option<usize>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Operator {
    Simple,
    Reserved,
    Fragment,
    Label,
    Segment,
}

impl ResourceTemplate {
    /// Compiles a template. A trailing `/` does not count.
    pub fn compile(text: &str) -> Result<ResourceTemplate, ResourceError> {
        let error = |message: &str, span: Range<usize>| ResourceError { message: message.to_owned(), span };
        if text.len() > MAX_TEMPLATE_LENGTH {
            return Err(error("the template is too long", 0..text.len()));
        }
        let body = text.strip_suffix('/').unwrap_or(text);
        let mut nodes = Vec::new();
        let mut rest = body;
        while !rest.is_empty() {
            let at = body.len() - rest.len();
            if let Some(after) = rest.strip_prefix('{') {
                let Some(end) = after.find('}') else { return Err(error("the { is not closed", at..at + 1)) };
                let (inner, next) = after.split_at(end);
                nodes.push(expression(inner).map_err(|message| error(message, at..at + end + 2))?);
                rest = next.strip_prefix('}').unwrap_or(next);
            } else {
                let (literal, next) = rest.split_at(rest.find('{').unwrap_or(rest.len()));
                if let Some(brace) = literal.find('}') {
                    return Err(error("a } without {", at + brace..at + brace + 1));
                }
                let open = next.is_empty() && literal.ends_with('*');
                let literal = if open { literal.strip_suffix('*').unwrap_or(literal) } else { literal };
                nodes.push(Node::Literal { text: literal.to_owned(), open });
                rest = next;
            }
        }
        let has_query =
            nodes.iter().any(|node| matches!(node, Node::Literal { text, .. } if text.contains('?')));
        Ok(ResourceTemplate { source: text.to_owned(), nodes, has_query })
    }

    /// As it is written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The names of the variables, in the order of the template.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().flat_map(|node| {
            match node {
                Node::Literal { .. } => [].iter(),
                Node::Expression { names, .. } => names.iter(),
            }
            .map(|name| name.name.as_str())
        })
    }

    /// Matches the path below the API's context, as received and with its query. `None`: no match.
    pub fn matches(&self, sub_path_with_query: &str) -> Result<Option<Variables>, MalformedEncoding> {
        let mut raw: Vec<(&Name, &str)> = Vec::new();
        let Some(rest) = self.walk(sub_path_with_query, &mut raw) else { return Ok(None) };
        // What may be left: a slash the template does not have, and a query it does not mention.
        let rest = if rest.starts_with('/') && !self.has_query { rest.get(1..).unwrap_or("") } else { rest };
        if !(rest.is_empty() || (rest.starts_with('?') && !self.has_query)) {
            return Ok(None);
        }
        let mut variables: Variables = Vec::with_capacity(raw.len());
        for (name, text) in raw {
            let Some(value) = decode(text) else {
                return Err(MalformedEncoding { variable: name.name.clone(), value: text.to_owned() });
            };
            if name.length.is_some_and(|length| value.chars().count() != length) {
                return Ok(None);
            }
            match variables.iter().find(|(variable, _)| *variable == name.name) {
                Some((_, earlier)) if *earlier != value => return Ok(None),
                Some(_) => {}
                None => variables.push((name.name.clone(), value)),
            }
        }
        Ok(Some(variables))
    }

    /// What is left of `input` behind the last node; nothing where a node does not match.
    fn walk<'n, 'i>(&'n self, input: &'i str, raw: &mut Vec<(&'n Name, &'i str)>) -> Option<&'i str> {
        let mut rest = input;
        let mut in_query = false;
        for (i, node) in self.nodes.iter().enumerate() {
            match node {
                Node::Literal { text, open } => {
                    let after_expression = i > 0;
                    in_query |= text.contains('?');
                    match rest.strip_prefix(text.as_str()) {
                        Some(_) if *open => return Some(""),
                        Some(next) => rest = next,
                        // A `*` or `/*` behind an expression may match nothing at all.
                        None if *open
                            && after_expression
                            && text == "/"
                            && (rest.is_empty() || rest.starts_with('?')) =>
                        {
                            return Some("");
                        }
                        None => return None,
                    }
                }
                Node::Expression { operator, names } => {
                    let stop = match self.nodes.get(i + 1) {
                        Some(Node::Literal { text, .. }) => text.bytes().next(),
                        _ => None,
                    };
                    rest = take(*operator, names, stop, in_query, rest, raw)?;
                }
            }
        }
        Some(rest)
    }
}

fn expression(inner: &str) -> Result<Node, &'static str> {
    let (operator, list) = match inner.bytes().next() {
        Some(b'+') => (Operator::Reserved, inner.get(1..)),
        Some(b'#') => (Operator::Fragment, inner.get(1..)),
        Some(b'.') => (Operator::Label, inner.get(1..)),
        Some(b'/') => (Operator::Segment, inner.get(1..)),
        Some(b';' | b'?' | b'&') => {
            return Err("a template of a resource has no operators ; ? and &: write the query out");
        }
        _ => (Operator::Simple, Some(inner)),
    };
    let names = list.unwrap_or("").split(',').map(|text| {
        let (name, length) = match text.split_once(':') {
            Some((name, digits)) => (
                name,
                Some(digits.parse::<usize>().map_err(|_| "behind the : stands a number of characters")?),
            ),
            None => (text, None),
        };
        // Whatever else it has is part of the name, as in `{path+}`; the configuration warns of that.
        if name.is_empty() || name.contains('{') {
            return Err("an expression needs the names of its variables");
        }
        Ok(Name { name: name.to_owned(), length })
    });
    Ok(Node::Expression { operator, names: names.collect::<Result<_, _>>()? })
}

/// Takes what an expression matches off the beginning of `input`; `stop` begins the next literal.
fn take<'n, 'i>(
    operator: Operator,
    names: &'n [Name],
    stop: Option<u8>,
    in_query: bool,
    input: &'i str,
    raw: &mut Vec<(&'n Name, &'i str)>,
) -> Option<&'i str> {
    let (input, separator) = match operator {
        Operator::Simple | Operator::Reserved => (input, ','),
        Operator::Fragment => (input.strip_prefix('#')?, ','),
        Operator::Label => (input.strip_prefix('.')?, '.'),
        Operator::Segment => (input.strip_prefix('/')?, '/'),
    };
    let end = input
        .bytes()
        .position(|b| {
            Some(b) == stop
                || match operator {
                    Operator::Reserved | Operator::Fragment => false,
                    // The separator of a list does not end it.
                    _ if names.len() > 1 && b == separator as u8 => false,
                    Operator::Label => is_reserved(b) || (names.len() == 1 && b == b'.'),
                    _ => is_reserved(b),
                }
        })
        .unwrap_or(input.len());
    let (text, rest) = input.split_at_checked(end)?;
    // An empty segment is no value; an empty parameter of the query is.
    if text.is_empty() && !in_query {
        return None;
    }
    match names {
        [name] => raw.push((name, text)),
        names => {
            let mut values = text.splitn(names.len(), separator);
            raw.extend(names.iter().map(|name| (name, values.next().unwrap_or(""))));
        }
    }
    Some(rest)
}

/// Whether a byte is reserved in URIs (RFC 3986, section 2.2).
pub fn is_reserved(b: u8) -> bool {
    matches!(
        b,
        b':' | b'/'
            | b'?'
            | b'#'
            | b'['
            | b']'
            | b'@'
            | b'!'
            | b'$'
            | b'&'
            | b'\''
            | b'('
            | b')'
            | b'*'
            | b'+'
            | b','
            | b';'
            | b'='
    )
}

/// Percent-decoding as UTF-8, what is none as U+FFFD; a plus is a plus. `None` where it is malformed.
fn decode(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut percents = bytes.iter().enumerate().filter(|(_, b)| **b == b'%');
    let well_formed = percents.all(|(at, _)| {
        bytes.get(at + 1).is_some_and(u8::is_ascii_hexdigit)
            && bytes.get(at + 2).is_some_and(u8::is_ascii_hexdigit)
    });
    if !well_formed {
        return None;
    }
    Some(percent_decode_str(text).decode_utf8_lossy().into_owned())
}

// ---------------------------------------------------------------------------------------------------------
// Mappings

/// A compiled `url-mapping` of a resource.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UrlMapping {
    /// `/a/b`: this path, a trailing `/` does not count.
    Exact(String),
    /// `/a/*`: this path and everything below it (held without the `/*`).
    Prefix(String),
    /// `*.jsp`: every path with this ending (held with the dot).
    Extension(String),
}

impl UrlMapping {
    /// Compiles a mapping.
    pub fn compile(text: &str) -> Result<UrlMapping, ResourceError> {
        let error = |message: &str| ResourceError { message: message.to_owned(), span: 0..text.len() };
        if let Some(extension) = text.strip_prefix('*') {
            return match extension {
                extension if extension.starts_with('.') => Ok(UrlMapping::Extension(extension.to_owned())),
                _ => Err(error("behind the * of a mapping stands an ending such as .jsp")),
            };
        }
        if !text.starts_with('/') {
            return Err(error("a mapping begins with / or *."));
        }
        Ok(match text.strip_suffix("/*") {
            Some(prefix) => UrlMapping::Prefix(prefix.to_owned()),
            None => UrlMapping::Exact(text.trim_end_matches('/').to_owned()),
        })
    }

    /// How well the path (without query) matches: exact before prefix, longer before shorter prefixes, then
    /// endings. `None`: not at all.
    fn rank(&self, path: &str) -> Option<(u8, usize)> {
        let path = path.trim_end_matches('/');
        match self {
            UrlMapping::Exact(exact) => (path == exact).then_some((2, 0)),
            UrlMapping::Prefix(prefix) => {
                let below = path.strip_prefix(prefix.as_str())?;
                (below.is_empty() || below.starts_with('/')).then_some((1, prefix.len()))
            }
            UrlMapping::Extension(extension) => path.ends_with(extension.as_str()).then_some((0, 0)),
        }
    }

    /// Whether the path below the context (with or without query) is mapped.
    pub fn matches(&self, sub_path_with_query: &str) -> bool {
        self.rank(without_query(sub_path_with_query)).is_some()
    }
}

fn without_query(path: &str) -> &str {
    path.split('?').next().unwrap_or("")
}

// ---------------------------------------------------------------------------------------------------------
// Choosing the resource

/// Which paths a resource serves.
#[derive(Clone, Debug)]
pub enum PathRule {
    /// `uri-template`
    Template(ResourceTemplate),
    /// `url-mapping`
    Mapping(UrlMapping),
    /// Neither: whatever no other resource takes.
    Default,
}

/// The transport a resource or an API is limited to.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// Without TLS.
    Http,
    /// With TLS.
    Https,
}

impl Protocol {
    fn allows(self, secure: bool) -> bool {
        (self == Protocol::Https) == secure
    }
}

/// The `user-agent` expression of a resource: the whole header has to match.
#[derive(Clone, Debug)]
pub struct UserAgent(Pattern);

impl UserAgent {
    /// Compiles the expression.
    pub fn compile(expression: &str) -> Result<UserAgent, ResourceError> {
        let pattern = Pattern::compile(expression);
        pattern.map(UserAgent).map_err(|message| ResourceError { message, span: 0..expression.len() })
    }

    fn matches(&self, header: Option<&str>) -> bool {
        header.is_some_and(|header| self.0.matches(header) == Ok(true))
    }
}

/// What is known of a resource when a request is to be given to one.
#[derive(Clone, Debug)]
pub struct ResourceRule {
    /// Its methods in upper case; empty: every method.
    pub methods: Vec<String>,
    /// Its paths.
    pub path: PathRule,
    /// Its `content-type`.
    pub content_type: Option<String>,
    /// Its `user-agent`.
    pub user_agent: Option<UserAgent>,
    /// Its `protocol`.
    pub protocol: Option<Protocol>,
    /// Its `binds-to`; empty: the listeners of its API.
    pub binds_to: Vec<String>,
}

/// What of a request decides about the resource.
#[derive(Copy, Clone, Debug)]
pub struct RequestFacts<'a> {
    /// In upper case.
    pub method: &'a str,
    /// Behind the context (and the version), as received and with the query; begins with `/`.
    pub sub_path: &'a str,
    /// The header Content-Type.
    pub content_type: Option<&'a str>,
    /// Whether there is an entity body of at least one byte, or one of unknown length.
    pub has_body: bool,
    /// The header User-Agent.
    pub user_agent: Option<&'a str>,
    /// Whether it came over TLS.
    pub secure: bool,
    /// The name of the listener: `default`, or an inbound endpoint.
    pub listener: &'a str,
    /// Whether it goes no further (`Max-Forwards: 0`): OPTIONS is answered here, whatever the resource lists.
    pub is_last: bool,
}

/// What becomes of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Choice {
    /// This resource mediates it.
    Resource {
        /// Its position among the resources of the API.
        index: usize,
        /// The variables of its template.
        variables: Variables,
    },
    /// An OPTIONS request that goes no further, or to a resource that does not list OPTIONS: answered with 200 and this `Allow`.
    Options {
        /// The resource's position among the resources of the API.
        index: usize,
        /// Its methods; of one without a list GET, POST, PUT and DELETE.
        allow: Vec<String>,
    },
    /// 404
    NotFound,
    /// 405
    MethodNotAllowed {
        /// The methods of all resources with that path, each once.
        allow: Vec<String>,
    },
    /// 400: the path and the method fit, another filter does not, or the path is not encoded well.
    BadRequest,
}

impl ResourceRule {
    fn lists(&self, method: &str) -> bool {
        self.methods.iter().any(|listed| listed == method)
    }

    fn allows_method(&self, method: &str) -> bool {
        method == "OPTIONS" || self.methods.is_empty() || self.lists(method)
    }

    fn accepts(&self, request: &RequestFacts<'_>) -> bool {
        self.allows_method(request.method)
            && self.is_at(request.listener)
            && self.protocol.is_none_or(|protocol| protocol.allows(request.secure))
            && self.content_type.as_deref().is_none_or(|wanted| {
                !request.has_body || request.content_type.is_some_and(|given| is_content_type(wanted, given))
            })
            && self.user_agent.as_ref().is_none_or(|expression| expression.matches(request.user_agent))
    }

    /// Whether it is for this path, whatever its filters say.
    fn serves(&self, sub_path: &str) -> bool {
        match &self.path {
            PathRule::Template(template) => !matches!(template.matches(sub_path), Ok(None)),
            PathRule::Mapping(mapping) => mapping.matches(sub_path),
            PathRule::Default => true,
        }
    }

    /// The methods that it says it takes; without a list these four, as in WSO2.
    fn announced(&self) -> impl Iterator<Item = &str> {
        let all: &[&str] = if self.methods.is_empty() { &["GET", "POST", "PUT", "DELETE"] } else { &[] };
        self.methods.iter().map(String::as_str).chain(all.iter().copied())
    }

    fn is_at(&self, listener: &str) -> bool {
        self.binds_to.is_empty() || self.binds_to.iter().any(|name| name == listener)
    }

    fn is_for_options_only(&self) -> bool {
        matches!(self.methods.as_slice(), [only] if only == "OPTIONS")
    }
}

/// Whether a header has the wanted media type and every parameter the wanted one names.
fn is_content_type(wanted: &str, given: &str) -> bool {
    let mut wanted = wanted.split(';').map(str::trim);
    let mut given = given.split(';').map(str::trim);
    let media_types = (wanted.next().unwrap_or(""), given.next().unwrap_or(""));
    media_types.0.eq_ignore_ascii_case(media_types.1)
        && wanted
            .filter(|p| !p.is_empty())
            .all(|wanted| given.clone().any(|given| is_parameter(wanted, given)))
}

/// Names of parameters in any case, values with or without quotes; those of a charset in any case.
fn is_parameter(wanted: &str, given: &str) -> bool {
    let (Some((name, wanted)), Some((other, given))) = (wanted.split_once('='), given.split_once('=')) else {
        return wanted == given;
    };
    let (name, other) = (name.trim(), other.trim());
    let (wanted, given) = (wanted.trim().trim_matches('"'), given.trim().trim_matches('"'));
    name.eq_ignore_ascii_case(other)
        && (wanted == given || (name.eq_ignore_ascii_case("charset") && wanted.eq_ignore_ascii_case(given)))
}

/// Chooses the resource for a request: among those whose filters accept it, resources for OPTIONS alone first,
/// by url-mapping (exact, longest prefix, ending), then the first uri-template that matches, in the order of
/// definition, then the default resource. Where there is none, the resources whose path would match say why.
pub fn choose(resources: &[ResourceRule], request: &RequestFacts<'_>) -> Choice {
    match dispatch(resources, request.sub_path, |resource| resource.accepts(request)) {
        Err(MalformedEncoding { .. }) => Choice::BadRequest,
        Ok(Some((index, variables))) => match resources.get(index) {
            Some(resource)
                if request.method == "OPTIONS" && (request.is_last || !resource.lists("OPTIONS")) =>
            {
                Choice::Options { index, allow: allowed(resource, resources, request) }
            }
            _ => Choice::Resource { index, variables },
        },
        Ok(None) => refuse(resources, request),
    }
}

/// The methods of the resource that was chosen, and those that others take at the same path: a browser asks once for all of them.
fn allowed(chosen: &ResourceRule, resources: &[ResourceRule], request: &RequestFacts<'_>) -> Vec<String> {
    let here = resources.iter().filter(|resource| {
        resource.is_at(request.listener)
            && resource.protocol.is_none_or(|protocol| protocol.allows(request.secure))
            && resource.serves(request.sub_path)
    });
    let mut allow: Vec<String> = Vec::new();
    for method in std::iter::once(chosen).chain(here).flat_map(ResourceRule::announced) {
        if !allow.iter().any(|listed| listed == method) {
            allow.push(method.to_owned());
        }
    }
    allow
}

/// Why no resource took the request.
fn refuse(resources: &[ResourceRule], request: &RequestFacts<'_>) -> Choice {
    let here = resources.iter().filter(|resource| resource.is_at(request.listener));
    let there: Vec<&ResourceRule> = here.filter(|resource| resource.serves(request.sub_path)).collect();
    if there.is_empty() {
        return Choice::NotFound;
    }
    if there.iter().any(|resource| resource.allows_method(request.method)) {
        return Choice::BadRequest;
    }
    let listed = |method: &&str| there.iter().any(|resource| resource.lists(method));
    Choice::MethodNotAllowed { allow: METHODS.iter().copied().filter(listed).map(str::to_owned).collect() }
}

fn dispatch(
    resources: &[ResourceRule],
    sub_path: &str,
    accepts: impl Fn(&ResourceRule) -> bool,
) -> Result<Option<(usize, Variables)>, MalformedEncoding> {
    // Two rounds instead of a sorted list: nothing is allocated for a request.
    let ordered = || {
        [true, false].into_iter().flat_map(|first| {
            resources.iter().enumerate().filter(move |(_, resource)| resource.is_for_options_only() == first)
        })
    };
    let path = without_query(sub_path);
    let mut best: Option<((u8, usize), usize)> = None;
    for (index, resource) in ordered() {
        if let PathRule::Mapping(mapping) = &resource.path
            && let Some(rank) = mapping.rank(path)
            && best.is_none_or(|(so_far, _)| rank > so_far)
            && accepts(resource)
        {
            best = Some((rank, index));
        }
    }
    if let Some((_, index)) = best {
        return Ok(Some((index, Variables::new())));
    }
    for (index, resource) in ordered() {
        if let PathRule::Template(template) = &resource.path
            && accepts(resource)
            && let Some(variables) = template.matches(sub_path)?
        {
            return Ok(Some((index, variables)));
        }
    }
    let default = ordered().find(|(_, r)| matches!(r.path, PathRule::Default) && accepts(r));
    Ok(default.map(|(index, _)| (index, Variables::new())))
}

#[cfg(test)]
mod tests;
