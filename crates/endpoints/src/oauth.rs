//! `<authentication><oauth>` of http endpoints: an access token, fetched when it is first needed, kept for as long as
//! the server says, and fetched anew once when the backend answers with 401.
//!
//! One message fetches a token; the others that need the same one wait for what comes of it, each no longer than a fetch
//! may take. Tokens belong to the endpoint's identity and survive reloads.

use crate::leaf;
use base64::Engine;
use bytes::Bytes;
use config::endpoint::{AuthMode, OAuth as Configured, OAuthGrant};
use config::{Element, Key};
use flow::authority::{Authority, Authorization, received};
use flow::fault::code;
use flow::{Compiler, Context, Fault, Identity, KeyValue, Need, Services, lock};
use message::{Headers, Method, Version};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use transport::{Body, Framing, OutRequest, Proxy, SendOptions, Target};

/// How long a token is kept whose server does not say.
const UNTIL_TOLD: Duration = Duration::from_secs(3600);

/// Most tokens of one endpoint: credentials may be expressions.
const MOST: usize = 1000;

/// Largest answer with a token.
const ANSWER: usize = 1 << 20;

/// A token is not used in the last part of its life, so that it is still good when it arrives: a tenth, and no more than
/// this.
const SKEW: Duration = Duration::from_secs(60);

/// Longest wait for the server of tokens, unless the endpoint says how long.
const PATIENCE: Duration = Duration::from_secs(30);

/// What messages are told that get no token.
const NO_TOKEN: &str = "Could not get an access token for the OAuth endpoint";

/// What a token is asked for with, as the configuration has it.
pub(crate) struct OAuth {
    url: KeyValue,
    /// The fields of the request, names encoded.
    fields: Vec<(String, KeyValue)>,
    /// Id and secret of the client.
    client: Option<(KeyValue, KeyValue)>,
    /// Where these go.
    mode: Mode,
    headers: Vec<(String, KeyValue)>,
    connect: Option<Duration>,
    response: Duration,
    /// The way to the server of tokens, where the endpoint has one of its own.
    proxy: Option<Proxy>,
    tokens: Arc<Tokens>,
}

/// What a grant may hold.
const KNOWN: [&str; 15] = [
    "clientId",
    "clientSecret",
    "tokenUrl",
    "refreshToken",
    "username",
    "password",
    "requestParameters",
    "customHeaders",
    "authMode",
    "connectionTimeout",
    "connectionRequestTimeout",
    "socketTimeout",
    "proxyConfigs",
    "useGlobalConnectionTimeoutConfigs",
    "useGlobalProxyConfigs",
];

/// Where the credentials of the client go.
enum Mode {
    /// Into the `Authorization` header.
    Header,
    /// Into the form.
    Payload,
    /// Where an expression says: `payload`, else the header.
    Dynamic(KeyValue),
}

/// The tokens of one endpoint, by the request that they were asked for with.
#[derive(Default)]
struct Tokens(Mutex<HashMap<String, TokenState>>);

enum TokenState {
    Token(Token),
    /// A message is fetching it; what comes of it, which is nothing if that message goes away.
    Coming(watch::Receiver<Option<Result<String, Fault>>>),
}

#[derive(Clone)]
struct Token {
    value: String,
    until: Instant,
}

/// Fetches a token for all who wait for it. Where it is dropped before, the next one fetches.
struct Fetching<'a> {
    tokens: &'a Tokens,
    key: &'a str,
    outcome: watch::Sender<Option<Result<String, Fault>>>,
}

impl Fetching<'_> {
    fn ends(self, fetched: Result<Token, Fault>) -> Result<String, Fault> {
        let outcome = fetched.as_ref().map(|token| token.value.clone()).map_err(Fault::clone);
        if let Ok(token) = fetched {
            let mut tokens = lock(&self.tokens.0);
            if tokens.len() >= MOST {
                let now = transport::clock::now();
                tokens.retain(|_, kept| !matches!(kept, TokenState::Token(token) if token.until <= now));
            }
            if tokens.len() >= MOST {
                tokens.retain(|_, kept| matches!(kept, TokenState::Coming(_)));
            }
            tokens.insert(self.key.to_owned(), TokenState::Token(token));
        }
        self.outcome.send_replace(Some(outcome.clone()));
        outcome
    }
}

impl Drop for Fetching<'_> {
    fn drop(&mut self) {
        let mut tokens = lock(&self.tokens.0);
        if let Some(TokenState::Coming(outcome)) = tokens.get(self.key)
            && outcome.same_channel(&self.outcome.subscribe())
        {
            tokens.remove(self.key);
        }
    }
}

/// The request for a token, for one message.
struct TokenRequest {
    target: Target,
    path: String,
    headers: Headers,
    body: String,
    connect: Option<Duration>,
    response: Duration,
    tokens: Arc<Tokens>,
    /// The token that this message was sent with.
    used: Mutex<Option<String>>,
}

impl OAuth {
    /// Reads the configuration; `None` after a recorded error.
    pub(crate) fn compile(
        oauth: &Configured,
        identity: &Identity,
        compiler: &mut Compiler<'_>,
    ) -> Option<OAuth> {
        let literal = |text: &str| KeyValue::Literal(Arc::from(text));
        let mut value = |written: &config::Value| leaf::key_value(written, compiler);
        let mut fields = Vec::new();
        match &oauth.grant {
            OAuthGrant::AuthorizationCode { refresh_token } => {
                fields.push(("grant_type", literal("refresh_token")));
                fields.push(("refresh_token", value(refresh_token)?));
            }
            OAuthGrant::ClientCredentials => fields.push(("grant_type", literal("client_credentials"))),
            OAuthGrant::Password { username, password } => {
                fields.push(("grant_type", literal("password")));
                fields.push(("username", value(username)?));
                fields.push(("password", value(password)?));
            }
        }
        let client = match (&oauth.client_id, &oauth.client_secret) {
            (Some(id), Some(secret)) => Some((value(id)?, value(secret)?)),
            _ => None,
        };
        let mode = match &oauth.auth_mode {
            AuthMode::Header => Mode::Header,
            AuthMode::Payload => Mode::Payload,
            AuthMode::Dynamic(expression) => Mode::Dynamic(value(expression)?),
        };
        let mut fields: Vec<(String, KeyValue)> =
            fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        for (name, written) in &oauth.request_parameters {
            let mut encoded = String::new();
            message::form::encode(name, &mut encoded);
            fields.push((encoded, value(written)?));
        }
        let mut headers = Vec::new();
        for (name, written) in &oauth.custom_headers {
            headers.push((name.clone(), value(written)?));
        }
        let url = value(&oauth.token_url)?;
        // Beside what the model has: times in milliseconds, and a proxy.
        let grants: Vec<_> = oauth.element.elements().collect();
        let time = |name: &str| -> Option<Duration> {
            let text =
                grants.iter().find_map(|grant| grant.child(name)).or(oauth.element.child(name))?.text();
            text.trim().parse::<u64>().ok().filter(|&time| time > 0).map(Duration::from_millis)
        };
        let (connect, response) = (time("connectionTimeout"), time("socketTimeout").unwrap_or(PATIENCE));
        for unknown in grants.iter().flat_map(|grant| grant.elements()) {
            if !KNOWN.contains(&unknown.local()) {
                let message = format!("`{}` has no effect in `oauth`", unknown.local());
                compiler.warning("ignored-element", message, unknown.start_tag(), "ignored");
            }
        }
        let proxy = match grants.iter().find_map(|grant| grant.child("proxyConfigs")) {
            Some(element) => Some(proxy(element, compiler)?),
            None => None,
        };
        if let Some(url) = url.literal()
            && !config::is_unresolved(url)
            && let Err(error) = flow::url::parse_url(url)
        {
            let message = format!("`{}` is not an address", diagnostics::without_credentials(url));
            compiler.error("bad-address", message, oauth.element.start_tag(), error.to_string());
            return None;
        }
        let tokens = compiler.services.states.get(identity);
        Some(OAuth { url, fields, client, mode, headers, connect, response, proxy, tokens })
    }

    /// What of a message the credentials read.
    pub(crate) fn need(&self) -> Need {
        let pairs = self.fields.iter().chain(&self.headers).map(|(_, value)| value);
        let client = self.client.iter().flat_map(|(id, secret)| [id, secret]);
        let mode = match &self.mode {
            Mode::Dynamic(expression) => Some(expression),
            Mode::Header | Mode::Payload => None,
        };
        let values = pairs.chain(client).chain([&self.url]).chain(mode);
        values.map(KeyValue::need).max().unwrap_or(Need::Nothing)
    }

    /// The authority that authenticates a message.
    pub(crate) fn authority(&self, context: &mut Context) -> Result<Arc<dyn Authority>, Fault> {
        let mut body = String::new();
        let mut field = |name: &str, value: &KeyValue, context: &mut Context| -> Result<(), Fault> {
            if !body.is_empty() {
                body.push('&');
            }
            body.push_str(name);
            body.push('=');
            message::form::encode(&value.resolve(context)?.unwrap_or_default(), &mut body);
            Ok(())
        };
        for (name, value) in &self.fields {
            field(name, value, context)?;
        }
        let in_form = match &self.mode {
            Mode::Header => false,
            Mode::Payload => true,
            Mode::Dynamic(expression) => {
                expression.resolve(context)?.is_some_and(|mode| mode.trim().eq_ignore_ascii_case("payload"))
            }
        };
        let client = self.client.as_ref();
        if let Some((id, secret)) = client.filter(|_| in_form) {
            field("client_id", id, context)?;
            field("client_secret", secret, context)?;
        }
        let mut headers = Headers::new();
        headers.set("Content-Type", "application/x-www-form-urlencoded");
        headers.set("Accept", "application/json");
        for (name, value) in &self.headers {
            headers.set(name, value.resolve(context)?.unwrap_or_default().as_bytes());
        }
        if let Some((id, secret)) = client.filter(|_| !in_form) {
            let (id, secret) =
                (id.resolve(context)?.unwrap_or_default(), secret.resolve(context)?.unwrap_or_default());
            let both = base64::engine::general_purpose::STANDARD.encode(format!("{id}:{secret}"));
            headers.set("Authorization", format!("Basic {both}"));
        }
        let url = self.url.resolve(context)?.unwrap_or_default();
        let (target, path) = leaf::parse(&url, context).map_err(|fault| no_token_from(&url, &fault))?;
        let target = self.proxy.as_ref().map_or_else(|| target.clone(), |proxy| target.through(proxy));
        let (connect, response, tokens) = (self.connect, self.response, Arc::clone(&self.tokens));
        let used = Mutex::default();
        Ok(Arc::new(TokenRequest { target, path, headers, body, connect, response, tokens, used }))
    }
}

/// The fault of a message whose server of tokens has no address.
fn no_token_from(url: &str, fault: &Fault) -> Fault {
    let why = match config::is_unresolved(url) {
        true => format!("`tokenUrl` is {url}, which has no value here"),
        false => format!("`tokenUrl`: {}", fault.message),
    };
    Fault { status: 502, detail: why, ..Fault::with_code(code::ENDPOINT_AUTHENTICATION, NO_TOKEN) }
}

/// `<proxyConfigs>`; `None` after a recorded error.
fn proxy(element: &Element, compiler: &mut Compiler<'_>) -> Option<Proxy> {
    let mut value = |name: &str| -> Option<Option<String>> {
        let Some(child) = element.child(name) else { return Some(None) };
        let text = child.text();
        let key = Key { value: text.trim().to_owned(), span: child.start_tag() };
        compiler.outside(&key).map(|text| Some(text).filter(|text| !text.is_empty()))
    };
    let (host, port, protocol) = (value("proxyHost")?, value("proxyPort")?, value("proxyProtocol")?);
    let (user, password) = (value("proxyUsername")?, value("proxyPassword")?);
    if protocol.is_some_and(|name| name.eq_ignore_ascii_case("https")) {
        let message = "proxies are asked in HTTP without TLS";
        compiler.error("unsupported-element", message, element.start_tag(), "expected the protocol http");
        return None;
    }
    let port = port.and_then(|port| port.parse::<u16>().ok()).filter(|&port| port > 0);
    let (Some(host), Some(port)) = (host, port) else {
        let label = "expected `proxyHost`, and `proxyPort` from 1 to 65535";
        compiler.error("missing-element", "the address of the proxy is missing", element.start_tag(), label);
        return None;
    };
    let authorization = user.map(|user| {
        let both = format!("{user}:{}", password.unwrap_or_default());
        format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(both))
    });
    Some(Proxy::new(&host, port, authorization))
}

impl Authority for TokenRequest {
    fn begin<'a>(&'a self, services: &'a Services) -> Authorization<'a> {
        Box::pin(self.token(services))
    }

    fn again<'a>(&'a self, _: &'a Headers, round: u8, services: &'a Services) -> Authorization<'a> {
        // Where a fresh token is refused too, the next one would be.
        if round > 0 { Box::pin(async { Ok(None) }) } else { Box::pin(self.token(services)) }
    }
}

impl TokenRequest {
    /// The `Authorization` with a token: the one that is kept, unless this message was refused with it.
    async fn token(&self, services: &Services) -> Result<Option<String>, Fault> {
        let key = self.key();
        let refused = lock(&self.used).take();
        // A message waits for another message's fetch no longer than for one of its own.
        let longest = self.connect.unwrap_or(services.settings.connect_timeout) + self.response;
        let deadline = tokio::time::Instant::now() + longest;
        let value = loop {
            let mut coming = match self.kept(&key, refused.as_deref()) {
                Ok(value) => break value,
                Err(Turn::Fetch(fetching)) => break fetching.ends(self.fetch(services).await)?,
                Err(Turn::Wait(coming)) => coming,
            };
            let outcome = tokio::time::timeout_at(deadline, coming.wait_for(Option::is_some)).await;
            match outcome {
                Ok(Ok(outcome)) => match &*outcome {
                    Some(Ok(value)) => break value.clone(),
                    Some(Err(fault)) => return Err(fault.clone()),
                    None => {}
                },
                // The one who fetched went away.
                Ok(Err(_)) => {}
                Err(_) => return Err(self.failed("no token in time".to_owned())),
            }
        };
        let authorization = format!("Bearer {value}");
        *lock(&self.used) = Some(value);
        Ok(Some(authorization))
    }

    /// The token that is kept, or what to do without one.
    fn kept<'a>(&'a self, key: &'a str, refused: Option<&str>) -> Result<String, Turn<'a>> {
        let mut all = lock(&self.tokens.0);
        match all.get(key) {
            Some(TokenState::Token(token))
                if token.until > transport::clock::now() && Some(&*token.value) != refused =>
            {
                return Ok(token.value.clone());
            }
            Some(TokenState::Coming(coming)) => return Err(Turn::Wait(coming.clone())),
            _ => {}
        }
        let (outcome, coming) = watch::channel(None);
        all.insert(key.to_owned(), TokenState::Coming(coming));
        Err(Turn::Fetch(Fetching { tokens: &self.tokens, key, outcome }))
    }

    /// What tells this request from others of the endpoint.
    fn key(&self) -> String {
        let client = self.headers.get("Authorization").unwrap_or_default();
        format!("{}{} {client} {}", self.target, self.path, self.body)
    }

    fn failed(&self, why: String) -> Fault {
        let server = format!("{}{}", self.target, self.path.split('?').next().unwrap_or_default());
        Fault {
            status: 502,
            detail: format!("{server}: {why}"),
            peer: Some(self.target.to_string()),
            ..Fault::with_code(code::ENDPOINT_AUTHENTICATION, NO_TOKEN)
        }
    }

    async fn fetch(&self, services: &Services) -> Result<Token, Fault> {
        let failed = |why: String| self.failed(why);
        let options = SendOptions {
            silence: None,
            connect: self.connect.unwrap_or(services.settings.connect_timeout),
            response: self.response,
            idle: self.response,
            keep_alive: true,
            version: Version::Http11,
            framing: Framing::Auto,
            upgrade: false,
            extra_connection: false,
        };
        let mut body = Body::Bytes(Bytes::from(self.body.clone()));
        let request = OutRequest {
            method: &Method::Post,
            target: &self.path,
            headers: &self.headers,
            host: None,
            body: &mut body,
        };
        let began = transport::clock::now();
        let sent = services.client.send(&self.target, request, &options).await;
        let response = sent.map_err(|error| failed(error.to_string()))?;
        let status = response.head.status;
        let text = tokio::time::timeout(self.response, received(response.body, ANSWER)).await;
        let text = match text {
            Ok(text) => text.map_err(|fault| failed(fault.message))?,
            Err(_) => return Err(failed("its answer did not arrive".to_owned())),
        };
        if !(200..300).contains(&status) {
            return Err(failed(format!("it answered with {status}")));
        }
        let json: serde_json::Value =
            serde_json::from_str(&text).map_err(|_| failed("its answer is not JSON".to_owned()))?;
        let Some(value) = json.get("access_token").and_then(serde_json::Value::as_str) else {
            return Err(failed("its answer has no access_token".to_owned()));
        };
        if value.is_empty() || value.bytes().any(|byte| byte.is_ascii_control() || byte == b' ') {
            return Err(failed("its access_token is not a token".to_owned()));
        }
        // Seconds, in some servers' answers as a text.
        let seconds = json.get("expires_in").and_then(|value| match value {
            serde_json::Value::String(text) => text.trim().parse().ok(),
            other => other.as_u64(),
        });
        let good = seconds.map_or(UNTIL_TOLD, |seconds: u64| {
            let life = Duration::from_secs(seconds.min(365 * 86_400));
            life - (life / 10).min(SKEW)
        });
        Ok(Token { value: value.to_owned(), until: began + good })
    }
}

/// What a message without a token does.
enum Turn<'a> {
    Fetch(Fetching<'a>),
    Wait(watch::Receiver<Option<Result<String, Fault>>>),
}

impl std::fmt::Debug for TokenRequest {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "OAuth({})", self.target)
    }
}
