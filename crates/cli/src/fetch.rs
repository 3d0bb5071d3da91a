//! Reads local entries and WSDLs whose address is an http or https URL, once, while the configuration loads.

use config::Fetch;
use endpoints::uri_template::parse_url;
use flow::services::TlsProfiles;
use message::{Body, Headers, Method, Payload, PayloadLimits, Reading};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use transport::{Client, ClientLimits, OutRequest, SendOptions, Target};

/// Longest wait for all resources together (`synapse.connection.read_timeout` is 100 s; a start should not wait that long).
const DEADLINE: Duration = Duration::from_secs(20);
/// Largest resource.
const LARGEST: usize = 16 << 20;

/// What [`config::LoadOptions`] fetches with, for one load; https servers are verified as those that endpoints send to. All resources
/// of a load have one deadline, which begins with the first of them; a server that did not answer in time is not asked again.
pub fn fetch(tls: &Arc<TlsProfiles>) -> Fetch {
    fetch_within(DEADLINE, tls)
}

fn fetch_within(longest: Duration, tls: &Arc<TlsProfiles>) -> Fetch {
    let (tls, silent) = (Arc::clone(tls), Mutex::new(HashSet::new()));
    let until = OnceLock::new();
    Fetch(Arc::new(move |url: &str| {
        let server = parse_url(url).map_err(|error| error.to_string())?.authority();
        if flow::lock(&silent).contains(&server) {
            return Err(format!("{server} has not answered before"));
        }
        let until: Instant = *until.get_or_init(|| Instant::now() + longest);
        let (url, tls) = (url.to_owned(), Arc::clone(&tls));
        // A thread of its own: the caller may be inside of a runtime, which must not be blocked on.
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| error.to_string())?;
            runtime.block_on(async {
                match tokio::time::timeout_at(until.into(), get(&url, &tls)).await {
                    Ok(result) => result.map(Some),
                    Err(_) => Ok(None),
                }
            })
        });
        let fetched = thread.join().unwrap_or_else(|_| Err("the request could not be made".to_owned()))?;
        fetched.ok_or_else(|| {
            flow::lock(&silent).insert(server);
            format!("no answer within {} s, which all that is fetched has together", longest.as_secs_f64())
        })
    }))
}

async fn get(url: &str, tls: &TlsProfiles) -> Result<Vec<u8>, String> {
    let url = parse_url(url).map_err(|error| error.to_string())?;
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
    let (method, headers) = (Method::Get, Headers::new());
    let mut body = Body::Empty;
    let request = OutRequest {
        method: &method,
        target: &url.path_and_query,
        headers: &headers,
        host: None,
        body: &mut body,
    };
    let options = SendOptions { keep_alive: false, ..SendOptions::default() };
    let response = client.send(&target, request, &options).await.map_err(|error| error.to_string())?;
    if response.head.status != 200 {
        return Err(format!("the answer was {}", response.head.status));
    }
    let mut payload = Payload::received(response.body, Reading::XML);
    let limits = PayloadLimits { held: LARGEST, ..PayloadLimits::default() };
    payload.buffer(&limits).await.map_err(|error| error.to_string())?;
    Ok(payload.bytes().map(|bytes| bytes.to_vec()).unwrap_or_default())
}
