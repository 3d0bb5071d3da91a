//! Authenticates and authorizes a client before a flow begins: by the profile that guards an API or a proxy service.
//!
//! What has to be asked for at other servers is kept: the keys of tokens until they are to be asked for again, what a server said of a
//! token for as long as the profile says. It is asked for by one request at a time, each within a deadline, and survives a reload.

use super::inquiries::{AT_ONCE, Inquiries};
use crate::engine::compute;
use crate::runtime::authority::received;
use crate::runtime::context::Context;
use crate::runtime::fault::Fault;
use crate::runtime::guard::{Directory, Guard, Introspection, KeySource, Profile, Remote, Tokens};
use crate::runtime::roles;
use crate::runtime::services::Services;
use crate::state::lock;
use authentication::certificate::Identity;
use authentication::seen::Seen;
use authentication::token::{self, Keys, Problem};
use authentication::{Caller, introspection, sha256};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use message::{Headers, Method, PayloadLimits, Value, Version};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use transport::{Body, Framing, OutRequest, Response, SendOptions};

/// Longest wait for a server of keys, or for a server that introspects a token.
const PATIENCE: Duration = Duration::from_secs(5);
/// Keys are asked for again after so long at the earliest, whatever tokens come.
const RETRY: Duration = Duration::from_secs(10);
/// Keys are used for so long if their server does not answer any more.
const STALE: Duration = Duration::from_secs(24 * 3600);
/// Largest answer of such a server.
const ANSWER: usize = 1 << 20;
/// Most tokens of which it is kept what a server said.
const MOST: usize = 10_000;

/// Most webhooks that are remembered. Where more come within their time, they are refused: one that is forgotten could be sent again.
const MOST_WEBHOOKS: usize = 1 << 20;

/// What servers have answered, and the webhooks that came, for all plans.
#[derive(Default)]
struct CachedVerdicts {
    keys: Mutex<HashMap<String, Arc<Fetched>>>,
    tokens: Mutex<HashMap<[u8; 32], (Caller, Instant)>>,
    /// Users of directories, by all that they were asked.
    users: Mutex<HashMap<[u8; 32], (Caller, Instant)>>,
    /// What is being asked at servers of tokens and at directories.
    inquiries: Inquiries<Result<Caller, Refused>>,
    /// Webhooks that were accepted and are good for once.
    webhooks: Mutex<Seen>,
}

/// The keys of one server.
#[derive(Default)]
struct Fetched {
    cached: Mutex<CachedKeys>,
    /// Held by the request that asks the server.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Clone, Default)]
struct CachedKeys {
    keys: Option<(Arc<Keys>, Instant)>,
    tried: Option<Instant>,
}

/// The callers that guards have let in. Kept with the message.
#[derive(Default)]
struct LetIn(Vec<(Arc<Guard>, Arc<Caller>)>);

/// Why a client is refused.
#[derive(Clone)]
pub(super) enum Refused {
    /// There are no credentials.
    Missing,
    /// They are not good.
    Invalid(String),
    /// They lack a scope.
    Scope(String),
    /// Whether they are good cannot be found out now.
    Unavailable(String),
    /// The body did not arrive.
    Body(u16, String),
}

/// The caller that a guard has let in, if it has checked this message.
pub(crate) fn let_in(guard: &Arc<Guard>, context: &Context) -> Option<Arc<Caller>> {
    let let_in = context.attached::<LetIn>()?;
    let_in.0.iter().find(|(by, _)| Arc::ptr_eq(by, guard)).map(|(_, caller)| Arc::clone(caller))
}

/// Checks a message by a guard; the response for one that goes no further.
pub(crate) async fn check(guard: &Arc<Guard>, context: &mut Context) -> Option<Response> {
    let profile = &guard.profile;
    match caller(profile, context).await {
        Ok(caller) => {
            note(profile, &caller, context);
            let mut let_in = context.detach::<LetIn>().map(|earlier| earlier.0.clone()).unwrap_or_default();
            let_in.push((Arc::clone(guard), Arc::new(caller)));
            context.attach(Arc::new(LetIn(let_in)));
            None
        }
        Err(why) => Some(refuse(guard, &why, context)),
    }
}

/// Whether a caller who was let in may do this; the response if not. `resource`: of an API.
pub(crate) fn allows(
    guard: &Guard,
    caller: &Caller,
    resource: Option<usize>,
    context: &Context,
) -> Option<Response> {
    let of_resource = resource.and_then(|number| guard.of_resources.get(number)).map(Vec::as_slice);
    let lacks = caller.lacks(&guard.scopes).or_else(|| caller.lacks(of_resource.unwrap_or_default()));
    let lacks = lacks?;
    Some(refuse(guard, &Refused::Scope(lacks.to_owned()), context))
}

/// What the flow may know of the caller.
fn note(profile: &Profile, caller: &Caller, context: &mut Context) {
    for (name, value) in [
        ("ACCESS_PROFILE", profile.name.as_str()),
        ("ACCESS_WAY", caller.way),
        ("ACCESS_SUBJECT", &caller.subject),
        ("ACCESS_CLIENT", &caller.client),
        ("ACCESS_ISSUER", &caller.issuer),
        ("ACCESS_SCOPES", &caller.scopes.join(" ")),
    ] {
        context.properties.set(name, Value::from(value));
    }
    if let Some(claims) = &caller.claims {
        context.properties.set("ACCESS_CLAIMS", Value::Json(Arc::clone(claims)));
    }
    if !profile.forward {
        let bearer = profile.tokens.is_some() || profile.introspection.is_some();
        if bearer || profile.users || profile.directory.is_some() {
            context.headers.remove("Authorization");
        }
        if let Some((header, _)) = &profile.keys {
            context.headers.remove(header);
        }
    }
}

fn refuse(guard: &Guard, why: &Refused, context: &Context) -> Response {
    let profile = &guard.profile;
    let (status, error, reason) = match why {
        Refused::Missing => (401, "", "it has no credentials"),
        Refused::Invalid(why) if guard.forbids => (403, "", why.as_str()),
        Refused::Invalid(why) => (401, "invalid_token", why.as_str()),
        Refused::Scope(scope) => (403, "insufficient_scope", scope.as_str()),
        Refused::Unavailable(why) => (503, "temporarily_unavailable", why.as_str()),
        Refused::Body(status, why) => (*status, "invalid_request", why.as_str()),
    };
    tracing::warn!(
        message_id = %context.message_id(),
        profile = %profile.name,
        peer = %context.inbound.peer,
        status,
        "not let in: {reason}"
    );
    let error_of = |code: &str| if code.is_empty() { String::new() } else { format!(", error=\"{code}\"") };
    let mut response = match error {
        "" => Response::empty(status),
        code => Response::new(status, Body::Bytes(Bytes::from(format!("{{\"error\":\"{code}\"}}\n"))))
            .with("Content-Type", "application/json"),
    };
    response.head.headers.set("Cache-Control", "no-store");
    if status == 503 {
        response.head.headers.set("Retry-After", "10");
    }
    if status == 401 || matches!(why, Refused::Scope(_)) {
        let realm = &profile.name;
        if profile.tokens.is_some() || profile.introspection.is_some() {
            let scope = if let Refused::Scope(scopes) = why {
                format!(", scope=\"{scopes}\"")
            } else {
                String::new()
            };
            let challenge = format!("Bearer realm=\"{realm}\"{}{scope}", error_of(error));
            response.head.headers.append("WWW-Authenticate", challenge);
        }
        if profile.users || profile.directory.is_some() {
            response
                .head
                .headers
                .append("WWW-Authenticate", format!("Basic realm=\"{realm}\", charset=\"UTF-8\""));
        }
    }
    response
}

/// The verdict of one way to authenticate: `None`, the request has no credentials for it.
type Verdict = Option<Result<Caller, Refused>>;

async fn caller(profile: &Arc<Profile>, context: &mut Context) -> Result<Caller, Refused> {
    let mut verdicts: Vec<Verdict> = Vec::new();
    if profile.tokens.is_some() || profile.introspection.is_some() {
        verdicts.push(bearer(profile, context).await);
    }
    if profile.users || profile.directory.is_some() {
        verdicts.push(basic(profile, context).await);
    }
    if let Some((header, keys)) = &profile.keys {
        let shown = single(&context.headers, header);
        verdicts.push(shown.transpose().map(|shown| {
            let key = shown?;
            let name =
                keys.find(&key).ok_or_else(|| Refused::Invalid("its API key is none of those".into()))?;
            Ok(Caller {
                way: "api-key",
                subject: name.to_owned(),
                client: name.to_owned(),
                ..Caller::default()
            })
        }));
    }
    if !profile.certificates.is_empty() {
        verdicts.push(certificate(profile, context));
    }
    if let Some(scheme) = &profile.signature {
        verdicts.push(match context.headers.contains(&scheme.header) {
            false => None,
            true => Some(signature(profile, context).await),
        });
    }
    if profile.every && verdicts.iter().any(Option::is_none) {
        return Err(Refused::Missing);
    }
    let mut first = None;
    for verdict in verdicts.into_iter().flatten() {
        // Wrong credentials are refused, whatever other credentials the request has.
        let caller = verdict?;
        first = first.or(Some(caller));
    }
    first.ok_or(Refused::Missing)
}

/// The one value of a header. A request with two is refused: different readers would see different ones.
pub(super) fn single(headers: &Headers, name: &str) -> Result<Option<String>, Refused> {
    let mut lines = headers.get_all(name);
    let Some(first) = lines.next() else { return Ok(None) };
    if lines.next().is_some() {
        return Err(Refused::Invalid(format!("it has several headers {name}")));
    }
    match std::str::from_utf8(first) {
        Ok(text) => Ok(Some(text.trim_matches([' ', '\t']).to_owned())),
        Err(_) => Err(Refused::Invalid(format!("its header {name} is not text"))),
    }
}

/// The credentials of an `Authorization` header of this scheme.
fn authorization(headers: &Headers, wanted: &str) -> Result<Option<String>, Refused> {
    let Some(value) = single(headers, "Authorization")? else { return Ok(None) };
    let (scheme, rest) = value.split_once(' ').unwrap_or((&value, ""));
    Ok(scheme.eq_ignore_ascii_case(wanted).then(|| rest.trim().to_owned()))
}

async fn basic(profile: &Profile, context: &Context) -> Verdict {
    let shown = match authorization(&context.headers, "Basic").transpose()? {
        Ok(shown) => shown,
        Err(refused) => return Some(Err(refused)),
    };
    let text = STANDARD.decode(shown).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let (name, password) = text.as_deref().and_then(|text| text.split_once(':')).unwrap_or_default();
    if profile.users && super::handlers::is_user(context, name, password) {
        let scopes = roles::of_user(name, &context.services.settings);
        return Some(Ok(Caller { way: "basic", subject: name.to_owned(), scopes, ..Caller::default() }));
    }
    let wrong = || Err(Refused::Invalid("its user or password is wrong".to_owned()));
    let is_ours = profile.users && context.services.settings.users.contains_key(name);
    match &profile.directory {
        // A name in the settings is not looked up in the directory.
        Some(directory) if !is_ours => Some(listed(directory, name, password, &context.services).await),
        _ => Some(wrong()),
    }
}

/// A user of a directory.
async fn listed(
    directory: &Directory,
    name: &str,
    password: &str,
    services: &Services,
) -> Result<Caller, Refused> {
    let mut question = Vec::new();
    let about = format!("{directory} {:?} {:?} {:?}", directory.name, directory.search, directory.groups);
    for part in [about.as_str(), name, password] {
        question.extend_from_slice(&sha256(part.as_bytes()));
    }
    let question = sha256(&question);
    let answers = services.kept.get::<CachedVerdicts>();
    let now = transport::clock::now();
    if let Some((caller, until)) = lock(&answers.users).get(&question)
        && now < *until
    {
        return Ok(caller.clone());
    }
    let ask = async {
        let groups = super::ldap::groups(directory, name, password, services).await;
        let groups = groups.map_err(|refused| match refused {
            super::ldap::Refused::Wrong => Refused::Invalid("its user or password is wrong".to_owned()),
            super::ldap::Refused::Unavailable(why) => Refused::Unavailable(why),
        })?;
        let scopes = groups.iter().map(|group| roles::written(group).into_owned()).collect();
        let caller = Caller { way: "ldap", subject: name.to_owned(), scopes, ..Caller::default() };
        keep(&mut lock(&answers.users), question, &caller, now, now + directory.cache);
        Ok(caller)
    };
    let server = directory.to_string();
    let verdict = answers.inquiries.ask(&server, question, PATIENCE, ask).await;
    verdict.unwrap_or_else(|| Err(crowded(&server)))
}

/// The turn of a request to ask a server did not come.
fn crowded(server: &str) -> Refused {
    Refused::Unavailable(format!("{server} cannot be asked: it has not answered {AT_ONCE} others in time"))
}

/// Keeps what a server said until a time, where there is room.
fn keep(
    kept: &mut HashMap<[u8; 32], (Caller, Instant)>,
    question: [u8; 32],
    caller: &Caller,
    now: Instant,
    until: Instant,
) {
    if kept.len() >= MOST {
        kept.retain(|_, (_, until)| now < *until);
    }
    if kept.len() >= MOST {
        kept.clear();
    }
    kept.insert(question, (caller.clone(), until));
}

/// The certificate that the client showed and that TLS has verified.
fn shown(context: &Context) -> Option<Vec<u8>> {
    let tls = context.inbound.tls.as_ref()?;
    tls.client_certificates.first().map(|certificate| certificate.to_vec())
}

fn certificate(profile: &Profile, context: &Context) -> Verdict {
    let identity = Identity::read(&shown(context)?)?;
    // A client shows its certificate to any server: one that no entry accepts counts as absent.
    profile.certificates.iter().any(|accepted| accepted.fits(&identity)).then(|| {
        Ok(Caller {
            way: "certificate",
            subject: identity.subject,
            issuer: identity.issuer,
            ..Caller::default()
        })
    })
}

async fn signature(profile: &Arc<Profile>, context: &mut Context) -> Result<Caller, Refused> {
    // Whole and in memory: of a body in a file nothing could be checked.
    let limits = PayloadLimits { spill: None, ..context.services.limits.clone() };
    if let Err(error) = context.payload.buffer(&limits).await {
        let fault = Fault::from(error);
        let status = if (400..500).contains(&fault.status) { fault.status } else { 400 };
        return Err(Refused::Body(status, fault.message));
    }
    let profile = Arc::clone(profile);
    let checked = compute::by_size(context, 0, move |context| Ok(is_signed(&profile, context))).await;
    checked.map_err(|fault| Refused::Body(fault.status, fault.message))??;
    Ok(Caller { way: "signature", ..Caller::default() })
}

/// Checks the signature of a message whose body is here.
fn is_signed(profile: &Profile, context: &Context) -> Result<(), Refused> {
    let Some(scheme) = &profile.signature else { return Err(Refused::Missing) };
    let names = [Some(&scheme.header), scheme.timestamp_header.as_ref(), scheme.id_header.as_ref()];
    for name in names.into_iter().flatten() {
        single(&context.headers, name)?;
    }
    if context.payload.is_changed() {
        return Err(Refused::Invalid("its body is not there as it came".to_owned()));
    }
    let body = context.payload.whole().map_err(|error| Refused::Body(413, error.to_string()))?;
    let now = seconds(&context.services);
    let header = |name: &str| context.headers.get(name);
    if let Some(mark) = scheme.verify(&header, &body, now).map_err(Refused::Invalid)? {
        // By profile: a sender may sign the same message for several.
        let digest = sha256(&[profile.name.as_bytes(), b"\0", &mark.digest].concat());
        let answers = context.services.kept.get::<CachedVerdicts>();
        let mut webhooks = lock(&answers.webhooks);
        webhooks.forget(i64::try_from(now).unwrap_or(i64::MAX));
        if webhooks.contains(&digest) {
            return Err(Refused::Invalid("it was here before".to_owned()));
        }
        if webhooks.count() >= MOST_WEBHOOKS {
            return Err(Refused::Unavailable("there are too many webhooks to remember".to_owned()));
        }
        webhooks.add(digest, i64::try_from(mark.until).unwrap_or(i64::MAX));
    }
    Ok(())
}

/// Seconds since 1970.
fn seconds(services: &Services) -> u64 {
    u64::try_from(services.clock.now().wall.as_second()).unwrap_or(0)
}

async fn bearer(profile: &Profile, context: &Context) -> Verdict {
    let token = match authorization(&context.headers, "Bearer").transpose()? {
        Ok(token) => token,
        Err(refused) => return Some(Err(refused)),
    };
    if token.is_empty() || token.len() > token::LONGEST {
        return Some(Err(Refused::Invalid("its token is empty or too long".to_owned())));
    }
    let services = &context.services;
    let certificate = shown(context);
    Some(match (&profile.tokens, &profile.introspection) {
        (Some(tokens), introspection) if introspection.is_none() || token::is_token(&token) => {
            signed(tokens, &token, certificate.as_deref(), services).await
        }
        (_, Some(introspection)) => {
            introspected(introspection, &token, certificate.as_deref(), services).await
        }
        _ => Err(Refused::Missing),
    })
}

async fn signed(
    tokens: &Tokens,
    token: &str,
    certificate: Option<&[u8]>,
    services: &Services,
) -> Result<Caller, Refused> {
    let verify = |keys: &Keys| {
        token::verify(token, keys, &tokens.algorithms, &tokens.rules, seconds(services), certificate)
    };
    let refused = |problem: Problem| match problem {
        Problem::UnknownKey(why) | Problem::Invalid(why) => Refused::Invalid(format!("its token: {why}")),
    };
    let server = match &tokens.keys {
        KeySource::Here(keys) => return verify(keys).map_err(refused),
        KeySource::Server(server) => server,
    };
    let (keys, fetched) = keys(server, tokens.refresh, None, services).await?;
    match verify(&keys) {
        Ok(caller) => Ok(caller),
        // The issuer may have a new key since the keys were fetched.
        Err(Problem::UnknownKey(why)) => {
            let (fresh, then) = match keys_since(server, tokens.refresh, fetched, services).await {
                Ok(fresh) => fresh,
                Err(_) => return Err(refused(Problem::UnknownKey(why))),
            };
            if then == fetched {
                return Err(refused(Problem::UnknownKey(why)));
            }
            verify(&fresh).map_err(refused)
        }
        Err(problem) => Err(refused(problem)),
    }
}

async fn keys_since(
    server: &Remote,
    refresh: Duration,
    since: Instant,
    services: &Services,
) -> Result<(Arc<Keys>, Instant), Refused> {
    keys(server, refresh, Some(since), services).await
}

/// The keys of a server, and when they were fetched. `since`: those of then are too old.
async fn keys(
    server: &Remote,
    refresh: Duration,
    since: Option<Instant>,
    services: &Services,
) -> Result<(Arc<Keys>, Instant), Refused> {
    let name = server.to_string();
    let answers = services.kept.get::<CachedVerdicts>();
    let entry = Arc::clone(lock(&answers.keys).entry(name.clone()).or_default());
    let now = transport::clock::now();
    let good = |cached: &CachedKeys| {
        let (keys, fetched) = cached.keys.clone()?;
        let is_fresh = now.saturating_duration_since(fetched) < refresh;
        (is_fresh && since.is_none_or(|since| fetched > since)).then_some((keys, fetched))
    };
    let cached = lock(&entry.cached).clone();
    if let Some(found) = good(&cached) {
        return Ok(found);
    }
    let old = cached.keys.clone().filter(|(_, fetched)| now.saturating_duration_since(*fetched) < STALE);
    let _turn = match (&old, since) {
        // The old keys are used while one request fetches new ones.
        (Some(old), None) => match entry.turn.try_lock() {
            Ok(turn) => turn,
            Err(_) => return Ok(old.clone()),
        },
        _ => match tokio::time::timeout(PATIENCE, entry.turn.lock()).await {
            Ok(turn) => turn,
            Err(_) => return Err(Refused::Unavailable(format!("the keys of {name} did not come in time"))),
        },
    };
    let cached = lock(&entry.cached).clone();
    if let Some(found) = good(&cached) {
        return Ok(found);
    }
    let again = cached.tried.is_some_and(|tried| now.saturating_duration_since(tried) < RETRY);
    let failed = |why: String| match &old {
        Some(old) => Ok(old.clone()),
        None => Err(Refused::Unavailable(why)),
    };
    if again {
        return failed(format!("the keys of {name} were not available a moment ago"));
    }
    if since.is_some() {
        // Tokens with unknown keys must not decide how often the server is asked.
        lock(&entry.cached).tried = Some(now);
    }
    let mut headers = Headers::new();
    headers.set("Accept", "application/json");
    let response = fetch(server, &Method::Get, &headers, String::new(), services).await;
    let read = response.and_then(|text| Keys::read(text.as_bytes()));
    match read {
        Ok(keys) => {
            let found = (Arc::new(keys), now);
            lock(&entry.cached).keys = Some(found.clone());
            match found.0.is_empty() {
                true => {
                    tracing::warn!(server = %name, "there are no keys of tokens (any more): no token is accepted")
                }
                false => tracing::debug!(server = %name, "keys of tokens: {:?}", found.0),
            }
            Ok(found)
        }
        Err(why) => {
            lock(&entry.cached).tried = Some(now);
            tracing::warn!(server = %name, "the keys of tokens are not available: {why}");
            failed(format!("the keys of {name} are not available: {why}"))
        }
    }
}

async fn introspected(
    introspection: &Introspection,
    token: &str,
    certificate: Option<&[u8]>,
    services: &Services,
) -> Result<Caller, Refused> {
    // The answer of the server depends on the token and on the certificate that the token may be bound to, not on the request.
    let mut question = introspection.server.to_string().into_bytes();
    for part in [introspection.authorization.as_deref().unwrap_or_default().as_bytes(), token.as_bytes()] {
        question.push(0);
        question.extend_from_slice(&sha256(part));
    }
    question.extend(certificate.map(sha256).unwrap_or_default());
    question.extend(sha256(format!("{:?}", introspection.rules).as_bytes()));
    let question = sha256(&question);
    let answers = services.kept.get::<CachedVerdicts>();
    let now = transport::clock::now();
    if let Some((caller, until)) = lock(&answers.tokens).get(&question)
        && now < *until
    {
        return Ok(caller.clone());
    }
    let mut headers = Headers::new();
    headers.set("Content-Type", "application/x-www-form-urlencoded");
    headers.set("Accept", "application/json");
    if let Some(authorization) = &introspection.authorization {
        headers.set("Authorization", authorization);
    }
    let mut body = "token=".to_owned();
    message::form::encode(token, &mut body);
    body.push_str("&token_type_hint=access_token");
    let server = introspection.server.to_string();
    let ask = async {
        let unavailable = |why: String| Refused::Unavailable(format!("{server} cannot be asked: {why}"));
        let response = fetch(&introspection.server, &Method::Post, &headers, body, services)
            .await
            .map_err(unavailable)?;
        let wall = seconds(services);
        let good = introspection::read(response.as_bytes(), &introspection.rules, wall, certificate)
            .map_err(|(why, of_server)| match of_server {
                true => unavailable(why),
                false => Refused::Invalid(format!("its token: {why}")),
            })?;
        let longest = good.ends.map_or(introspection.cache, |ends| {
            introspection.cache.min(Duration::from_secs(ends.saturating_sub(wall)))
        });
        keep(&mut lock(&answers.tokens), question, &good.caller, now, now + longest);
        Ok(good.caller)
    };
    let verdict = answers.inquiries.ask(&server, question, PATIENCE, ask).await;
    verdict.unwrap_or_else(|| Err(crowded(&server)))
}

/// Asks a server, within [`PATIENCE`].
async fn fetch(
    server: &Remote,
    method: &Method,
    headers: &Headers,
    body: String,
    services: &Services,
) -> Result<String, String> {
    let target = server.target(services)?;
    let options = SendOptions {
        silence: None,
        connect: services.settings.connect_timeout.min(PATIENCE),
        response: PATIENCE,
        idle: PATIENCE,
        keep_alive: true,
        version: Version::Http11,
        framing: Framing::Auto,
        upgrade: false,
        extra_connection: false,
    };
    let mut body = if body.is_empty() { Body::Empty } else { Body::Bytes(Bytes::from(body)) };
    let request = OutRequest { method, target: &server.path, headers, host: None, body: &mut body };
    let sent = tokio::time::timeout(PATIENCE, async {
        let response = services.client.send(&target, request, &options).await;
        let response = response.map_err(|error| error.to_string())?;
        let status = response.head.status;
        let text = received(response.body, ANSWER).await.map_err(|fault| fault.message)?;
        if status != 200 {
            return Err(format!("it answered with {status}"));
        }
        Ok(text)
    });
    sent.await.unwrap_or_else(|_| Err("it did not answer in time".to_owned()))
}
