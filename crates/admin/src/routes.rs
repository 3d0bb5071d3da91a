//! The routes of the admin address.

use crate::artifacts::NotSwitched;
use crate::listener::Place;
use crate::{AdminState, Credentials, Deployment, Phase, artifacts, aside, exposition, metrics};
use axum::Router;
use axum::body::to_bytes;
use axum::extract::{ConnectInfo, Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use message::redact;
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::sync::Mutex;

pub(crate) struct Shared {
    pub(crate) admin: AdminState,
    local: SocketAddr,
    /// One reload at a time.
    reloading: Arc<Mutex<()>>,
}

pub(crate) type Context = State<Arc<Shared>>;

/// All routes.
pub(crate) fn router(admin: AdminState, local: SocketAddr) -> Router {
    let shared = Arc::new(Shared { admin, local, reloading: Arc::default() });
    Router::new()
        .route("/", get(index))
        .route("/healthz", get(async || text(StatusCode::OK, "ok\n")))
        .route("/readyz", get(readyz))
        .route("/metrics", get(scrape))
        .route("/artifacts", get(all_artifacts))
        .route("/artifacts/{kind}", get(artifacts_of_kind))
        .route("/artifacts/{kind}/{*name}", get(one_artifact).post(switch))
        .route("/loggers", get(loggers))
        .route("/loggers/{category}", get(one_logger).put(set_logger).delete(reset_logger))
        .merge(crate::generations::routes())
        .merge(crate::watching::routes())
        .route("/reload", post(reload))
        .fallback(async |uri: Uri| {
            error(
                StatusCode::NOT_FOUND,
                &format!("there is nothing at {}; / lists what there is", uri.path()),
            )
        })
        .method_not_allowed_fallback(async |method: Method, uri: Uri| {
            error(StatusCode::METHOD_NOT_ALLOWED, &format!("{} does not take {method}", uri.path()))
        })
        .layer(from_fn_with_state(Arc::clone(&shared), guard))
        .layer(from_fn(alone))
        .with_state(shared)
}

/// Most bytes of the body of a request.
const LARGEST: usize = 64 << 10;

/// Receives a request whole, as the only one of its connection, and lets no error leave that is not JSON: what the HTTP library
/// refuses by itself it refuses as text.
async fn alone(ConnectInfo(place): ConnectInfo<Place>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let mut response = match to_bytes(body, LARGEST).await {
        Ok(body) => {
            place.asks();
            next.run(Request::from_parts(parts, body.into())).await
        }
        Err(_) => {
            let why = format!("the body has more than {LARGEST} bytes, or has not arrived");
            error(StatusCode::PAYLOAD_TOO_LARGE, &why)
        }
    };
    let json = HeaderValue::from_static("application/json");
    if response.status().is_client_error() && response.headers().get(header::CONTENT_TYPE) != Some(&json) {
        let (mut head, body) = response.into_parts();
        let why = to_bytes(body, LARGEST).await.unwrap_or_default();
        let why = match String::from_utf8_lossy(&why).trim() {
            "" => head.status.canonical_reason().unwrap_or("the request is refused").to_owned(),
            why => why.to_owned(),
        };
        let (_, body) = error(head.status, &why).into_parts();
        head.headers.remove(header::CONTENT_LENGTH);
        head.headers.insert(header::CONTENT_TYPE, json);
        response = Response::from_parts(head, body);
    }
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Keeps web pages out: a browser on the same machine reaches the loopback address, too.
///
/// A page of another site may send a POST (its `Origin` shows that), and with a name that it lets point to 127.0.0.1
/// it may read answers (the `Host` shows that).
async fn guard(State(shared): Context, request: Request, next: Next) -> Response {
    if let Some(why) = refusal(shared.local, request.method(), request.headers()) {
        return error(StatusCode::FORBIDDEN, why);
    }
    let user = match user(&shared.admin.credentials, shared.local, request.uri().path(), request.headers()) {
        Ok(user) => user.map(str::to_owned),
        Err(why) => {
            tracing::warn!(path = request.uri().path(), "the admin address let nobody in: {why}");
            let mut response = error(StatusCode::UNAUTHORIZED, why);
            let challenge = HeaderValue::from_static("Bearer realm=\"busbar admin\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
            return response;
        }
    };
    // Who changed something can be found out later.
    let change = user
        .filter(|_| request.method() != Method::GET && request.method() != Method::HEAD)
        .map(|user| (user, request.method().clone(), request.uri().path().to_owned()));
    let mut response = next.run(request).await;
    if let Some((user, method, path)) = change {
        let status = response.status().as_u16();
        tracing::info!(target: "busbar::settings", user, status, "the admin address was asked for {method} {path}");
    }
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Paths that say nothing but whether the bus is alive and ready.
const PROBES: [&str; 2] = ["/healthz", "/readyz"];

/// Whose token a request has; `None`: it needs none. An error says why it may not go on.
fn user<'c>(
    credentials: &'c Credentials,
    local: SocketAddr,
    path: &str,
    headers: &HeaderMap,
) -> Result<Option<&'c str>, &'static str> {
    if PROBES.contains(&path) || credentials.open.iter().any(|open| open == path) {
        return Ok(None);
    }
    let Some(tokens) = &credentials.tokens else {
        return match local.ip().is_loopback() {
            true => Ok(None),
            false => Err("other machines reach this address, and admin.tokens is not set"),
        };
    };
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err("a token of admin.tokens is needed");
    };
    let found = value.to_str().ok().and_then(token).and_then(|token| tokens.find(&token));
    found.map(Some).ok_or("the token is none of admin.tokens")
}

/// The token of an `Authorization`: that of `Bearer`, or the password of `Basic`.
fn token(value: &str) -> Option<String> {
    let (scheme, rest) = value.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.trim().to_owned());
    }
    let both = scheme.eq_ignore_ascii_case("basic").then(|| STANDARD.decode(rest.trim()).ok()).flatten()?;
    String::from_utf8(both).ok()?.split_once(':').map(|(_, password)| password.to_owned())
}

fn refusal(local: SocketAddr, method: &Method, headers: &HeaderMap) -> Option<&'static str> {
    // Of two, something before this may have looked at the other one.
    if [header::HOST, header::ORIGIN].iter().any(|name| headers.get_all(name).iter().nth(1).is_some()) {
        return Some("the request has several headers Host or Origin");
    }
    let field = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    if local.ip().is_loopback() && field(header::HOST).is_some_and(|host| !is_this_machine(host)) {
        return Some("this address answers to localhost and IP addresses only");
    }
    let is_this_site =
        |origin: &str| origin.strip_prefix("http://").is_some_and(|host| Some(host) == field(header::HOST));
    if method != Method::GET && field(header::ORIGIN).is_some_and(|origin| !is_this_site(origin)) {
        return Some("web pages of other sites cannot do this");
    }
    None
}

/// `localhost` or an IP address, with or without a port.
fn is_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
}

async fn index() -> Response {
    let paths = [
        "/healthz",
        "/readyz",
        "/metrics",
        "/artifacts",
        "/artifacts/{kind}",
        "/artifacts/{kind}/{name}",
        "/generations",
        "/generations/{number}",
        "/generations/{number}/diff",
        "/generations/{from}/diff/{to}",
        "/loggers",
        "/loggers/{category}",
        "/trace",
        "/traces",
        "/traces/{number}",
        "/traces/{number}.txt",
        "/wire",
        "/profile",
    ];
    let changed = ["/loggers/{category}", "/trace/{service}", "/wire/{name}", "/profile/{service}"];
    answer(
        StatusCode::OK,
        &json!({
            "server": "busbar", "version": env!("CARGO_PKG_VERSION"),
            "GET": paths, "PUT": changed, "DELETE": changed,
            "POST": [
                "/reload",
                "/generations/{number}/rollback",
                "/artifacts/{kind}/{name}/{start|stop|activate|deactivate|suspend|resume|trigger}",
            ],
        }),
    )
}

async fn readyz(State(shared): Context) -> Response {
    match shared.admin.readiness.phase() {
        Phase::Serving => text(StatusCode::OK, "ready\n"),
        Phase::Starting => {
            text(StatusCode::SERVICE_UNAVAILABLE, "not ready: the listeners do not accept yet\n")
        }
        Phase::Draining => {
            text(StatusCode::SERVICE_UNAVAILABLE, "not ready: draining, no new connections are accepted\n")
        }
    }
}

async fn scrape(State(shared): Context) -> Response {
    ([(header::CONTENT_TYPE, exposition::CONTENT_TYPE)], metrics::render(&shared.admin)).into_response()
}

async fn all_artifacts(State(shared): Context) -> Response {
    answer(StatusCode::OK, &artifacts::all(&shared.admin.bus))
}

async fn artifacts_of_kind(State(shared): Context, Path(kind): Path<String>) -> Response {
    match artifacts::of_kind(&shared.admin.bus, &kind) {
        Some(found) => answer(StatusCode::OK, &found),
        None => error(StatusCode::NOT_FOUND, &format!("there is no kind of artifact called `{kind}`")),
    }
}

async fn one_artifact(State(shared): Context, Path((kind, name)): Path<(String, String)>) -> Response {
    match artifacts::one(&shared.admin.bus, &kind, &name) {
        Some(found) => answer(StatusCode::OK, &found),
        None => error(StatusCode::NOT_FOUND, &format!("there is no {kind} `{name}`")),
    }
}

/// The levels of the log.
fn levels(shared: &Shared) -> Option<&crate::Loggers> {
    shared.admin.log.as_ref().map(crate::logging::Handle::loggers)
}

fn no_levels() -> Response {
    error(StatusCode::NOT_IMPLEMENTED, "this process has no log of its own")
}

fn shown(logger: &crate::Logger) -> Value {
    json!({
        "category": logger.category, "level": logger.level, "own": logger.own, "meaning": logger.meaning,
    })
}

async fn loggers(State(shared): Context) -> Response {
    let Some(loggers) = levels(&shared) else { return no_levels() };
    let (root, categories) = loggers.all();
    let loggers_shown: Vec<Value> = categories.iter().map(shown).collect();
    answer(StatusCode::OK, &json!({ "root": root, "loggers": loggers_shown }))
}

async fn one_logger(State(shared): Context, Path(category): Path<String>) -> Response {
    levels(&shared).map_or_else(no_levels, |loggers| logger(loggers, &category))
}

fn logger(loggers: &crate::Loggers, category: &str) -> Response {
    let (root, categories) = loggers.all();
    match categories.iter().find(|logger| logger.category == category) {
        Some(found) => answer(StatusCode::OK, &shown(found)),
        None if category == "root" => {
            answer(StatusCode::OK, &json!({ "category": "root", "level": root, "own": true }))
        }
        None => error(StatusCode::NOT_FOUND, &format!("there is no category `{category}`")),
    }
}

async fn set_logger(State(shared): Context, Path(category): Path<String>, body: String) -> Response {
    // `debug`, or as the answer has it.
    let level = match serde_json::from_str::<Value>(&body) {
        Ok(Value::String(level)) => level,
        Ok(Value::Object(object)) => match object.get("level") {
            Some(Value::String(level)) => level.clone(),
            _ => return error(StatusCode::BAD_REQUEST, "the object has no `level`"),
        },
        _ => body.trim().to_owned(),
    };
    change_logger(&shared, &category, Some(&level))
}

async fn reset_logger(State(shared): Context, Path(category): Path<String>) -> Response {
    change_logger(&shared, &category, None)
}

fn change_logger(shared: &Shared, category: &str, level: Option<&str>) -> Response {
    let Some(loggers) = levels(shared) else { return no_levels() };
    match loggers.set(category, level) {
        Ok(()) => {
            tracing::info!(target: "busbar::settings", category, level = level.unwrap_or("that of its parent"), "a log level was changed");
            logger(loggers, category)
        }
        Err(why) if why.starts_with("there is no category") => error(StatusCode::NOT_FOUND, &why),
        Err(why) => error(StatusCode::BAD_REQUEST, &why),
    }
}

/// `POST /artifacts/{kind}/{name}/{action}`.
async fn switch(State(shared): Context, Path((kind, path)): Path<(String, String)>) -> Response {
    let Some((name, action)) = path.rsplit_once('/') else {
        return error(StatusCode::NOT_FOUND, "expected /artifacts/{kind}/{name}/{action}");
    };
    let mut state = match artifacts::switch(&shared.admin.bus, &kind, name, action) {
        Ok(state) => state,
        Err(NotSwitched::Unknown(why)) => return error(StatusCode::NOT_FOUND, &why),
        Err(NotSwitched::Busy(why)) => return error(StatusCode::CONFLICT, &why),
    };
    tracing::info!(target: "busbar::settings", "{action}: {kind} `{name}`");
    let decides = !(action == "trigger" || action == "suspend" && state["kind"] == "endpoint");
    if decides && shared.admin.deployment.is_some() {
        let keeping = Arc::clone(&shared);
        let kept = aside("keep", move || match &keeping.admin.deployment {
            Some(deployment) => deployment.keep(),
            None => Ok(false),
        });
        let kept = match kept {
            Ok(kept) => kept.await.unwrap_or_else(|_| Err("that failed; the log has the reason".to_owned())),
            Err(why) => Err(format!("no thread can be started: {why}")),
        };
        state["survives_restart"] = (*kept.as_ref().unwrap_or(&false)).into();
        if let Err(why) = kept {
            tracing::error!(target: "busbar::settings", "{action}: {kind} `{name}` is not kept over a restart: {why}");
            state["not_kept"] = why.into();
        }
    }
    answer(StatusCode::OK, &state)
}

async fn reload(State(shared): Context) -> Response {
    let changed = change(&shared, |deployment| {
        let done = deployment.reload();
        match &done {
            Ok(message) => tracing::info!(target: "busbar::reload", "{message}"),
            Err(why) => tracing::error!(target: "busbar::reload", "{why}"),
        }
        done
    });
    let changed = changed.await;
    let generation = shared.admin.bus.plan().generation;
    match changed {
        Ok(Ok(message)) => answer(StatusCode::OK, &json!({ "message": message, "generation": generation })),
        Ok(Err(why)) => answer(
            StatusCode::INTERNAL_SERVER_ERROR,
            &json!({ "error": redact::addresses(&why), "generation": generation }),
        ),
        Err(response) => response,
    }
}

/// Does something with the configuration as a whole, one thing at a time; an answer where that cannot be.
pub(crate) async fn change<T: Send + 'static>(
    shared: &Arc<Shared>,
    action: impl FnOnce(&dyn Deployment) -> T + Send + 'static,
) -> Result<T, Response> {
    if shared.admin.deployment.is_none() {
        return Err(error(StatusCode::NOT_IMPLEMENTED, "this bus cannot be reloaded"));
    }
    let Ok(alone) = Arc::clone(&shared.reloading).try_lock_owned() else {
        return Err(error(StatusCode::CONFLICT, "a reload is in progress"));
    };
    // It goes on when the client does not wait: it ends one way or the other.
    let shared = Arc::clone(shared);
    let done = aside("reload", move || {
        let done = shared.admin.deployment.as_deref().map(action);
        drop(alone);
        done
    });
    let done = done
        .map_err(|why| error(StatusCode::SERVICE_UNAVAILABLE, &format!("no thread can be started: {why}")))?;
    match done.await {
        Ok(Some(done)) => Ok(done),
        _ => Err(error(StatusCode::INTERNAL_SERVER_ERROR, "that failed; the log has the reason")),
    }
}

fn text(status: StatusCode, text: &'static str) -> Response {
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}

pub(crate) fn error(status: StatusCode, message: &str) -> Response {
    answer(status, &json!({ "error": message }))
}

pub(crate) fn answer(status: StatusCode, value: &Value) -> Response {
    let mut text = format!("{value:#}");
    text.push('\n');
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn web_pages_are_kept_out() {
        let local: SocketAddr = ([127, 0, 0, 1], 9164).into();
        let public: SocketAddr = ([0, 0, 0, 0], 9164).into();
        for (address, method, host, origin, allowed) in [
            (local, Method::GET, "localhost:9164", None, true),
            (local, Method::GET, "127.0.0.1", None, true),
            (local, Method::GET, "[::1]:9164", None, true),
            (local, Method::GET, "evil.example:9164", None, false),
            (public, Method::GET, "bus.internal:9164", None, true),
            (local, Method::POST, "localhost:9164", None, true),
            (local, Method::POST, "localhost:9164", Some("http://localhost:9164"), true),
            (local, Method::POST, "localhost:9164", Some("http://evil.example"), false),
            (local, Method::POST, "localhost:9164", Some("null"), false),
            (public, Method::POST, "bus.internal:9164", Some("https://evil.example"), false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static(host));
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
            }
            assert_eq!(refusal(address, &method, &headers).is_none(), allowed, "{method} {host} {origin:?}");
        }
        for (name, values) in [
            (header::HOST, ["localhost", "evil.example"]),
            (header::ORIGIN, ["http://localhost", "http://evil.example"]),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static("localhost"));
            headers.remove(&name);
            for value in values {
                headers.append(&name, HeaderValue::from_static(value));
            }
            assert!(refusal(local, &Method::POST, &headers).is_some(), "{headers:?}");
        }
    }
}
