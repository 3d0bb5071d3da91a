//! Access tokens for mail servers (RFC 6749), and how they are sent there (SASL XOAUTH2).
//!
//! A token is fetched on first use, and cached until it expires. Tokens belong to an account: connections
//! with the same account share one, and it survives reloads. One message fetches it; the others that need it wait for the outcome.

use super::{CONFIGURATION, CONNECTIVITY, CREDENTIALS, Failure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use flow::authority::received;
use flow::{Services, lock};
use message::{Headers, Method, Version, form};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use transport::{Body, Framing, OutRequest, SendOptions, Target};

/// The lifetime of a token without `expires_in`.
const UNTIL_TOLD: Duration = Duration::from_secs(3600);
/// A token is not used in the last tenth of its life, or the last of these seconds if that is less.
const SKEW: Duration = Duration::from_secs(60);
/// Timeout of the token server.
const PATIENCE: Duration = Duration::from_secs(30);
/// Largest response of the token server, in bytes.
const ANSWER: usize = 1 << 20;
/// Most tokens in the cache.
const MOST: usize = 1000;

/// The account that a token belongs to.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Account {
    pub url: String,
    pub client: String,
    pub secret: String,
    /// `None`: the client has no user (`client_credentials`).
    pub refresh: Option<String>,
    pub scope: Option<String>,
}

/// The tokens of the process.
#[derive(Default)]
pub(super) struct Tokens(Mutex<HashMap<Account, Arc<tokio::sync::Mutex<State>>>>);

#[derive(Default)]
struct State {
    token: Option<Token>,
    /// The refresh token that replaces the one of the connection.
    refresh: Option<String>,
    /// The outcome of the last attempt, and when it ended.
    failed: Option<(Instant, Failure)>,
}

struct Token {
    value: String,
    until: Instant,
}

impl Tokens {
    /// The token of an account, other than the refused one. Also: whether it came from the cache.
    pub(super) async fn token(
        &self,
        account: &Account,
        refused: Option<&str>,
        services: &Services,
    ) -> Result<(String, bool), Failure> {
        let began = Instant::now();
        let state = {
            let mut all = lock(&self.0);
            if all.len() >= MOST {
                all.retain(|_, state| Arc::strong_count(state) > 1);
            }
            Arc::clone(all.entry(account.clone()).or_default())
        };
        // Fetching takes no longer than that.
        let waiting = tokio::time::timeout(PATIENCE * 2, state.lock()).await;
        let mut state = waiting.map_err(|_| failed(account, CONNECTIVITY, "no token in time"))?;
        if let Some(token) = &state.token
            && token.until > Instant::now()
            && Some(&*token.value) != refused
        {
            return Ok((token.value.clone(), true));
        }
        // Those who waited get the same outcome.
        if let Some((at, failure)) = &state.failed
            && *at > began
        {
            return Err(failure.clone());
        }
        let refresh = state.refresh.clone().or_else(|| account.refresh.clone());
        match fetch(account, refresh.as_deref(), services).await {
            Ok((token, refresh)) => {
                let value = token.value.clone();
                state.refresh = refresh.or(state.refresh.take());
                (state.token, state.failed) = (Some(token), None);
                Ok((value, false))
            }
            Err(failure) => {
                *state = State { failed: Some((Instant::now(), failure.clone())), ..State::default() };
                Err(failure)
            }
        }
    }
}

/// The SASL XOAUTH2 response, in base64.
pub(super) fn shown(user: &str, token: &str) -> String {
    STANDARD.encode(format!("user={user}\x01auth=Bearer {token}\x01\x01"))
}

fn failed(account: &Account, reason: super::Reason, why: impl std::fmt::Display) -> Failure {
    let server = account.url.split('?').next().unwrap_or_default();
    Failure::new(reason, format!("no access token from {}: {why}", diagnostics::without_credentials(server)))
}

async fn fetch(
    account: &Account,
    refresh: Option<&str>,
    services: &Services,
) -> Result<(Token, Option<String>), Failure> {
    let unreachable = |why: String| failed(account, CONNECTIVITY, why);
    let refused = |why: String| failed(account, CREDENTIALS, why);
    let (target, path) = target(&account.url, services).map_err(|why| failed(account, CONFIGURATION, why))?;
    let mut fields = vec![("client_id", account.client.as_str()), ("client_secret", &account.secret)];
    match refresh {
        Some(refresh) => fields.extend([("grant_type", "refresh_token"), ("refresh_token", refresh)]),
        None => fields.push(("grant_type", "client_credentials")),
    }
    fields.extend(account.scope.as_deref().map(|scope| ("scope", scope)));
    let mut text = String::new();
    for (name, value) in fields {
        text.push_str(if text.is_empty() { "" } else { "&" });
        text.push_str(name);
        text.push('=');
        form::encode(value, &mut text);
    }
    let mut headers = Headers::new();
    headers.set("Content-Type", "application/x-www-form-urlencoded");
    headers.set("Accept", "application/json");
    let options = SendOptions {
        silence: None,
        connect: services.settings.connect_timeout,
        response: PATIENCE,
        idle: PATIENCE,
        keep_alive: true,
        version: Version::Http11,
        framing: Framing::Auto,
        upgrade: false,
        extra_connection: false,
    };
    let mut body = Body::Bytes(Bytes::from(text));
    let request =
        OutRequest { method: &Method::Post, target: &path, headers: &headers, host: None, body: &mut body };
    let began = Instant::now();
    let answered = async {
        let sent = services.client.send(&target, request, &options).await;
        let response = sent.map_err(|why| unreachable(why.to_string()))?;
        let text = received(response.body, ANSWER).await.map_err(|fault| unreachable(fault.message))?;
        Ok::<_, Failure>((response.head.status, text))
    };
    let answered = tokio::time::timeout(PATIENCE, answered).await;
    let (status, text) = answered.unwrap_or_else(|_| Err(unreachable("no answer in time".to_owned())))?;
    match status {
        200..300 => {}
        400..500 => return Err(refused(format!("it answered with {status}"))),
        _ => return Err(unreachable(format!("it answered with {status}"))),
    }
    let response: serde_json::Value =
        serde_json::from_str(&text).map_err(|_| refused("its answer is not JSON".to_owned()))?;
    let text = |name: &str| response.get(name).and_then(serde_json::Value::as_str);
    let value = text("access_token").unwrap_or_default();
    if value.is_empty() || value.bytes().any(|byte| !byte.is_ascii_graphic()) {
        return Err(refused("its answer has no access_token".to_owned()));
    }
    // Seconds; some servers send a text.
    let seconds = response.get("expires_in").and_then(|value| match value {
        serde_json::Value::String(text) => text.trim().parse().ok(),
        other => other.as_u64(),
    });
    let good = seconds.map_or(UNTIL_TOLD, |seconds: u64| {
        let life = Duration::from_secs(seconds.min(365 * 86_400));
        life - (life / 10).min(SKEW)
    });
    // A server may replace the refresh token, and the one before is no longer valid then (RFC 6749, 6).
    let next = text("refresh_token").filter(|token| !token.is_empty() && refresh.is_some());
    Ok((Token { value: value.to_owned(), until: began + good }, next.map(str::to_owned)))
}

/// The authority and path of a URL.
pub(super) fn target(url: &str, services: &Services) -> Result<(Target, String), String> {
    let wrong = || "`tokenUrl` is not an http or https address".to_owned();
    if url.bytes().any(|byte| !byte.is_ascii_graphic()) {
        return Err(wrong());
    }
    let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let path = path.split('#').next().unwrap_or_default();
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let default = if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_| wrong())?),
        _ => (authority, default),
    };
    let of_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    if host.is_empty() || !host.bytes().all(of_name) {
        return Err(wrong());
    }
    let target = match scheme.to_ascii_lowercase().as_str() {
        "http" => Target::http(host, port),
        "https" => {
            let profile = services.tls.find(host, port).cloned();
            Target::https(host, port, profile.ok_or("there are no trusted authorities for TLS")?)
        }
        _ => return Err(wrong()),
    };
    Ok((services.routes.reach(target), path))
}
