//! `<http>`: URI template, method and authentication.

use super::definition::Definition;
use crate::element::Element;
use crate::inject::Injector;
use crate::read::{self, Shape};
use crate::value::{Key, Value};
use diagnostics::{Diagnostic, Diagnostics};

/// An http endpoint.
#[derive(Clone, Debug)]
pub struct HttpEndpoint {
    /// RFC 6570 template over the properties `uri.var.*` and `query.param.*`.
    pub uri_template: Key,
    /// The method; `None` (absent or unknown): that of the incoming message.
    pub method: Option<HttpMethod>,
    /// The HTTP version asked for.
    pub version: Option<HttpVersion>,
    /// The sequence for pushed responses (HTTP/2).
    pub server_push_sequence: Option<Key>,
    /// How to authenticate.
    pub authentication: Option<Authentication>,
    /// The common part.
    pub definition: Definition,
}

/// The methods of http endpoints.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum HttpMethod {
    Get,
    Post,
    Put,
    Delete,
    Head,
    Patch,
    Options,
}

impl HttpMethod {
    /// The method as it goes over the wire.
    pub fn as_str(self) -> &'static str {
        METHODS.iter().find(|(_, method)| *method == self).map_or("GET", |(name, _)| name)
    }
}

const METHODS: [(&str, HttpMethod); 7] = [
    ("GET", HttpMethod::Get),
    ("POST", HttpMethod::Post),
    ("PUT", HttpMethod::Put),
    ("DELETE", HttpMethod::Delete),
    ("HEAD", HttpMethod::Head),
    ("PATCH", HttpMethod::Patch),
    ("OPTIONS", HttpMethod::Options),
];

/// The HTTP version of an endpoint.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum HttpVersion {
    /// HTTP/1.1
    V1_1,
    /// HTTP/2
    V2,
}

/// The authentication of an http endpoint.
#[derive(Clone, Debug)]
pub enum Authentication {
    /// User and password.
    Basic {
        /// The user.
        username: Value,
        /// The password.
        password: Value,
    },
    /// A key in a header. An extension of Busbar; in WSO2 a mediator sets such a header.
    ApiKey {
        /// The header.
        name: Key,
        /// The key.
        value: Value,
    },
    /// An access token, fetched and renewed.
    OAuth(Box<OAuth>),
}

/// `<oauth>`.
#[derive(Clone, Debug)]
pub struct OAuth {
    /// How the token is granted.
    pub grant: OAuthGrant,
    /// The client.
    pub client_id: Option<Value>,
    /// Its secret.
    pub client_secret: Option<Value>,
    /// Where tokens are fetched.
    pub token_url: Value,
    /// Further parameters of the token request.
    pub request_parameters: Vec<(String, Value)>,
    /// Further headers of the token request.
    pub custom_headers: Vec<(String, Value)>,
    /// Where the client's credentials go.
    pub auth_mode: AuthMode,
    /// All of it, for settings beyond these (connection timeouts, proxies).
    pub element: Element,
}

/// The grant of a token.
#[derive(Clone, Debug)]
pub enum OAuthGrant {
    /// By a refresh token.
    AuthorizationCode {
        /// The refresh token.
        refresh_token: Value,
    },
    /// By the client's own credentials.
    ClientCredentials,
    /// By a user's password.
    Password {
        /// The user.
        username: Value,
        /// The password.
        password: Value,
    },
}

/// Where the credentials of an OAuth client go.
#[derive(Clone, Default, Debug)]
pub enum AuthMode {
    /// In the `Authorization` header.
    #[default]
    Header,
    /// In the body.
    Payload,
    /// An expression chooses for each message: `payload`, else the header.
    Dynamic(Value),
}

pub(crate) const ATTRIBUTES: &[&str] = &["uri-template", "method", "version"];
pub(crate) const ELEMENTS: &[&str] = &["authentication", "serverPushSequence"];

impl HttpEndpoint {
    pub(super) fn parse(
        element: &Element,
        injector: &Injector,
        diagnostics: &mut Diagnostics,
    ) -> Option<HttpEndpoint> {
        let definition = Definition::parse(element, ATTRIBUTES, ELEMENTS, diagnostics);
        let method = read::optional(element, "method").and_then(|key| method(&key, diagnostics));
        let version = read::choice(
            element,
            "version",
            &[("1.1", HttpVersion::V1_1), ("2.0", HttpVersion::V2)],
            diagnostics,
        );
        let uri_template = read::required(element, "uri-template", diagnostics);
        let authentication = match element.child("authentication") {
            Some(child) => Some(authentication(child, injector, diagnostics)?),
            None => None,
        };
        if let Some(child) = element.child("serverPushSequence") {
            let message = "`serverPushSequence` has no effect: backends are told not to push";
            let found = Diagnostic::warning("unsupported-element", message);
            diagnostics.push(found.at(child.name_span(), "this sequence never runs"));
        }
        Some(HttpEndpoint {
            uri_template: injector.resolve(uri_template?, diagnostics),
            method,
            version,
            server_push_sequence: read::child_text(element, "serverPushSequence"),
            authentication,
            definition,
        })
    }
}

/// Matched in any case; an unknown one counts as absent.
fn method(key: &Key, diagnostics: &mut Diagnostics) -> Option<HttpMethod> {
    let found = METHODS.iter().find(|(name, _)| key.eq_ignore_ascii_case(name)).map(|(_, method)| *method);
    // `$name` is a parameter of an endpoint template.
    if found.is_none() && !key.starts_with('$') {
        diagnostics.push(
            Diagnostic::warning("bad-value", format!("`{key}` is not a known method; it is ignored"))
                .at(key.span, "the method of the incoming message is used")
                .did_you_mean(key, METHODS.map(|(name, _)| name)),
        );
    }
    found
}

pub(crate) const AUTHENTICATION: Shape =
    Shape { attributes: &[], elements: &["basicAuth", "apiKey", "oauth"] };

fn authentication(
    element: &Element,
    injector: &Injector,
    diagnostics: &mut Diagnostics,
) -> Option<Authentication> {
    AUTHENTICATION.check(element, diagnostics);
    if let Some(basic) = element.child("basicAuth") {
        let username = value(basic, "username", injector, diagnostics);
        let password = value(basic, "password", injector, diagnostics);
        return Some(Authentication::Basic { username: username?, password: password? });
    }
    if let Some(key) = element.child("apiKey") {
        let name = read::child_text(key, "name");
        if name.is_none() {
            diagnostics.push(missing_element(key, "name"));
        }
        let value = value(key, "value", injector, diagnostics);
        return Some(Authentication::ApiKey { name: name?, value: value? });
    }
    if let Some(oauth) = element.child("oauth") {
        return self::oauth(oauth, injector, diagnostics).map(|oauth| Authentication::OAuth(Box::new(oauth)));
    }
    diagnostics.push(missing_element(element, "basicAuth, apiKey or oauth"));
    None
}

pub(crate) const OAUTH: Shape =
    Shape { attributes: &[], elements: &["authorizationCode", "clientCredentials", "passwordCredentials"] };

fn oauth(element: &Element, injector: &Injector, diagnostics: &mut Diagnostics) -> Option<OAuth> {
    OAUTH.check(element, diagnostics);
    // As in WSO2, an unresolved value fails the token requests, not the endpoint.
    let injector = &injector.clone().check_only(true);
    let Some(grant) = element.elements().find(|child| OAUTH.elements.contains(&child.local())) else {
        diagnostics.push(missing_element(element, &OAUTH.elements.join(" or ")));
        return None;
    };
    let required_client = grant.local() != "passwordCredentials";
    let client = |name: &str, diagnostics: &mut Diagnostics| {
        if required_client || grant.child(name).is_some() {
            value(grant, name, injector, diagnostics).map(Some)
        } else {
            Some(None)
        }
    };
    let client_id = client("clientId", diagnostics);
    let client_secret = client("clientSecret", diagnostics);
    let token_url = value(grant, "tokenUrl", injector, diagnostics);
    let kind = match grant.local() {
        "authorizationCode" => value(grant, "refreshToken", injector, diagnostics)
            .map(|refresh_token| OAuthGrant::AuthorizationCode { refresh_token }),
        "clientCredentials" => Some(OAuthGrant::ClientCredentials),
        _ => {
            let username = value(grant, "username", injector, diagnostics);
            let password = value(grant, "password", injector, diagnostics);
            username.zip(password).map(|(username, password)| OAuthGrant::Password { username, password })
        }
    };
    let auth_mode = match read::child_text(grant, "authMode") {
        Some(key) if key.eq_ignore_ascii_case("payload") => AuthMode::Payload,
        Some(key) if key.starts_with('{') && key.ends_with('}') => {
            AuthMode::Dynamic(Value::parse(&key, key.span, grant.scope()))
        }
        Some(key) if !key.eq_ignore_ascii_case("header") => {
            diagnostics.push(read::bad_value("authMode", &key, key.span, "header or payload"));
            AuthMode::Header
        }
        _ => AuthMode::Header,
    };
    Some(OAuth {
        grant: kind?,
        client_id: client_id?,
        client_secret: client_secret?,
        token_url: token_url?,
        request_parameters: pairs(grant, "requestParameters", "parameter", injector, diagnostics),
        custom_headers: pairs(grant, "customHeaders", "header", injector, diagnostics),
        auth_mode,
        element: element.clone(),
    })
}

/// The text of a child element that must be there.
fn value(element: &Element, name: &str, injector: &Injector, diagnostics: &mut Diagnostics) -> Option<Value> {
    match read::child_text(element, name) {
        Some(key) => {
            let key = injector.resolve(key, diagnostics);
            Some(Value::parse(&key, key.span, element.scope()))
        }
        None => {
            diagnostics.push(missing_element(element, name));
            None
        }
    }
}

fn pairs(
    element: &Element,
    list: &str,
    item: &str,
    injector: &Injector,
    diagnostics: &mut Diagnostics,
) -> Vec<(String, Value)> {
    let mut pairs = Vec::new();
    for child in element.child(list).into_iter().flat_map(|list| list.children_named(item)) {
        let name = read::required(child, "name", diagnostics);
        let text = read::text(child).unwrap_or(Key { value: String::new(), span: child.span() });
        let text = injector.resolve(text, diagnostics);
        if let Some(name) = name {
            pairs.push((name.value, Value::parse(&text, text.span, child.scope())));
        }
    }
    pairs
}

fn missing_element(element: &Element, name: &str) -> Diagnostic {
    Diagnostic::error("missing-element", format!("`{}` needs `{name}`", element.local()))
        .at(element.start_tag(), format!("`{name}` is missing or empty"))
}
