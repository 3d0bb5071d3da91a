//! Reads local entries whose `src` is an http URL, once, while the configuration loads.

use config::Fetch;
use endpoints::uri_template::parse_url;
use message::{Body, Headers, Method, Payload, PayloadLimits, Reading};
use std::sync::Arc;
use std::time::Duration;
use transport::{Client, ClientLimits, OutRequest, SendOptions, Target};

/// Longest wait for a resource (`synapse.connection.read_timeout` is 100 s; a start should not wait that long).
const DEADLINE: Duration = Duration::from_secs(20);
/// Largest resource.
const LARGEST: usize = 16 << 20;

/// What [`config::LoadOptions`] fetches with.
pub fn fetch() -> Fetch {
    Fetch(Arc::new(|url: &str| {
        let url = url.to_owned();
        // A thread of its own: the caller may be inside of a runtime, which must not be blocked on.
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| error.to_string())?;
            runtime.block_on(async {
                match tokio::time::timeout(DEADLINE, get(&url)).await {
                    Ok(result) => result,
                    Err(_) => Err(format!("no answer within {} s", DEADLINE.as_secs())),
                }
            })
        });
        thread.join().unwrap_or_else(|_| Err("the request could not be made".to_owned()))
    }))
}

async fn get(url: &str) -> Result<Vec<u8>, String> {
    let url = parse_url(url).map_err(|error| error.to_string())?;
    if url.scheme != "http" {
        return Err(format!("`{}` URLs are not fetched; save the resource as a file", url.scheme));
    }
    let client = Client::new(ClientLimits::default());
    let target = Target::http(&url.host, url.port);
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
