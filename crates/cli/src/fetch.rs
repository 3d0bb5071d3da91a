//! Asks other servers for what a configuration has there: local entries, WSDLs, resources of a registry.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flow::services::TlsProfiles;
use flow::url::parse_url;
use message::{Body, Headers, Method, Payload, PayloadLimits, Reading};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use transport::{Client, ClientLimits, OutRequest, SendOptions, Target};

/// Longest wait for all resources together (`synapse.connection.read_timeout` is 100 s; a start should not wait that long).
pub const DEADLINE: Duration = Duration::from_secs(20);
/// Largest resource.
const LARGEST: usize = 16 << 20;

/// Asks servers, all within one deadline that begins with the first question.
pub fn within(
    longest: Duration,
    tls: &Arc<TlsProfiles>,
) -> impl Fn(&str, &Validators) -> Result<Fetched, String> + Send + Sync + use<> {
    let (tls, silent) = (Arc::clone(tls), Mutex::new(HashSet::new()));
    let until = OnceLock::new();
    move |url: &str, validators: &Validators| {
        let server = parse_url(&without_user(url).0).map_err(|error| error.to_string())?.authority();
        if flow::lock(&silent).contains(&server) {
            return Err(format!("{server} has not answered before"));
        }
        let until: Instant = *until.get_or_init(|| Instant::now() + longest);
        let (url, tls, validators) = (url.to_owned(), Arc::clone(&tls), validators.clone());
        // A thread of its own: the caller may be inside of a runtime, which must not be blocked on.
        let thread = std::thread::Builder::new().name("fetch".to_owned()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| error.to_string())?;
            runtime.block_on(async {
                match tokio::time::timeout_at(until.into(), get(&url, &validators, &tls)).await {
                    Ok(result) => result.map(Some),
                    Err(_) => Ok(None),
                }
            })
        });
        let thread = thread.map_err(|error| format!("no thread can be started: {error}"))?;
        let fetched = thread.join().unwrap_or_else(|_| Err("the request could not be made".to_owned()))?;
        fetched.ok_or_else(|| {
            flow::lock(&silent).insert(server);
            format!("no answer within {} s, which all that is fetched has together", longest.as_secs_f64())
        })
    }
}

/// What tells whether a resource is the one that was read before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validators {
    /// Its `ETag`.
    pub tag: Option<String>,
    /// Its `Last-Modified`.
    pub modified: Option<String>,
}

/// What a server answers.
#[derive(Debug)]
pub enum Fetched {
    /// The resource. `fresh`: for how long the server says that it stays as it is.
    Content { bytes: Vec<u8>, validators: Validators, fresh: Option<Duration> },
    /// It is the one that was read before.
    Unchanged { fresh: Option<Duration> },
    /// There is none: 404 or 410.
    Gone(u16),
}

/// A URL without `user:password@`, and the user information.
fn without_user(url: &str) -> (String, Option<&str>) {
    let Some((scheme, rest)) = url.split_once("://") else { return (url.to_owned(), None) };
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    match authority.rsplit_once('@') {
        Some((user, host)) => (format!("{scheme}://{host}{tail}"), Some(user)),
        None => (url.to_owned(), None),
    }
}

async fn get(url: &str, validators: &Validators, tls: &TlsProfiles) -> Result<Fetched, String> {
    let (url, user) = without_user(url);
    let url = parse_url(&url).map_err(|error| error.to_string())?;
    let target = match url.scheme.as_str() {
        "http" => Target::http(&url.host, url.port),
        "https" => {
            let profile = tls.find(&url.host, url.port);
            let profile =
                profile.ok_or_else(|| format!("there is no TLS profile for {}", url.authority()))?;
            Target::https(&url.host, url.port, profile.clone())
        }
        other => return Err(format!("`{other}` URLs are not fetched; save the resource as a file")),
    };
    let client = Client::new(ClientLimits::default());
    let mut headers = Headers::new();
    let user = user.map(|user| format!("Basic {}", STANDARD.encode(decoded(user))));
    for (name, value) in [
        ("Authorization", &user),
        ("If-None-Match", &validators.tag),
        ("If-Modified-Since", &validators.modified),
    ] {
        if let Some(value) = value {
            headers.set(name, value.as_str());
        }
    }
    let (method, mut body) = (Method::Get, Body::Empty);
    let request = OutRequest {
        method: &method,
        target: &url.path_and_query,
        headers: &headers,
        host: None,
        body: &mut body,
    };
    let options = SendOptions { keep_alive: false, ..SendOptions::default() };
    let response = client.send(&target, request, &options).await.map_err(|error| error.to_string())?;
    let head = &response.head;
    let value = |name: &str| head.headers.get(name).map(|value| value.to_owned());
    let fresh = fresh(value("Cache-Control").as_deref());
    match head.status {
        200 => {}
        304 => return Ok(Fetched::Unchanged { fresh }),
        404 | 410 => return Ok(Fetched::Gone(head.status)),
        other => return Err(format!("the answer was {other}")),
    }
    let validators = Validators { tag: value("ETag"), modified: value("Last-Modified") };
    let mut payload = Payload::received(response.body, Reading::XML);
    let limits = PayloadLimits { held: LARGEST, ..PayloadLimits::default() };
    payload.buffer(&limits).await.map_err(|error| error.to_string())?;
    let bytes = payload.bytes().map(|bytes| bytes.to_vec()).unwrap_or_default();
    Ok(Fetched::Content { bytes, validators, fresh })
}

/// `max-age` of `Cache-Control`, if it is positive.
fn fresh(control: Option<&str>) -> Option<Duration> {
    let parts = control?.split(',').map(str::trim);
    let mut ages = parts.filter_map(|part| part.strip_prefix("max-age="));
    ages.find_map(|age| age.trim_matches('"').parse().ok()).filter(|age| *age > 0).map(Duration::from_secs)
}

/// The user information of a URL, percent-decoded.
fn decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let hex = |at: usize| bytes.get(at).and_then(|byte| (*byte as char).to_digit(16));
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        match (bytes[at], hex(at + 1), hex(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
                at += 3;
            }
            (byte, ..) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}
