//! Services in the place of backends, on ports of their own.

use super::compare::is_same;
use super::read::{Mock, MockResource};
use flow::services::Mocks;
use message::redact;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use transport::{
    Body, ConnectionInfo, Handler, Request, RequestHead, Response, Server, ServerLimits, Target, Workers,
};

/// The target of what is said about requests.
const TOLD: &str = "busbar::test";

/// Mock services that listen.
pub struct Listening {
    targets: HashMap<String, (Target, Vec<String>)>,
    _servers: Vec<Server>,
}

impl Mocks for Listening {
    fn target(&self, endpoint: &str, path: &str) -> Option<Target> {
        let (target, paths) = self.targets.get(endpoint)?;
        if paths.iter().any(|resource| is_path(resource, path)) {
            return Some(target.clone());
        }
        let there = if paths.is_empty() { "no path at all".to_owned() } else { paths.join(", ") };
        let (path, there) = (redact::addresses(path), redact::addresses(&there));
        tracing::warn!(
            target: TOLD,
            "the mock service `{endpoint}` has no path {path}, so the request goes to the backend itself; it has {there}"
        );
        None
    }
}

/// Whether a header is what a resource asks for. Of a media type, parameters that are not asked for do not count.
fn is_value(name: &str, got: &str, wanted: &str) -> bool {
    let (got, wanted) = (got.trim(), wanted.trim());
    let is_type = name.eq_ignore_ascii_case("Content-Type") && !wanted.contains(';');
    let got = if is_type { got.split(';').next().unwrap_or_default().trim() } else { got };
    got.eq_ignore_ascii_case(wanted)
}

/// Whether a request goes to the path of a resource.
fn is_path(resource: &str, path: &str) -> bool {
    fn bare(path: &str) -> &str {
        path.strip_suffix('/').unwrap_or(path)
    }
    bare(resource) == bare(path)
}

impl Listening {
    /// Starts the services.
    ///
    /// # Errors
    /// There is no port.
    pub fn start(mocks: &[Mock], workers: &Workers) -> Result<Listening, String> {
        let (mut targets, mut servers) = (HashMap::new(), Vec::new());
        for mock in mocks {
            let failed =
                |why: std::io::Error| format!("the mock service `{}` cannot listen: {why}", mock.endpoint);
            let any = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
            let server = Server::bind(any, None, ServerLimits::default()).map_err(failed)?;
            server.serve(workers, Arc::new(Service(mock.clone()))).map_err(failed)?;
            let target = Target::http("127.0.0.1", server.local_addr().port());
            let paths = mock.resources.iter().map(|resource| resource.path.clone()).collect();
            targets.insert(mock.endpoint.clone(), (target, paths));
            servers.push(server);
        }
        Ok(Listening { targets, _servers: servers })
    }
}

impl MockResource {
    /// What of a request the resource does not take.
    fn refusals(&self, head: &RequestHead, body: &str) -> Vec<String> {
        let mut refusals = Vec::new();
        if !is_path(&self.path, &head.target) {
            refusals.push(format!("the path is {}", redact::addresses(&self.path)));
        }
        if !self.method.is_empty() && !self.method.eq_ignore_ascii_case(head.method.as_str()) {
            refusals.push(format!("the method is {}", self.method));
        }
        for (name, value) in &self.headers {
            let values: Vec<_> = head.headers.get_all(name).map(String::from_utf8_lossy).collect();
            if !values.iter().any(|got| is_value(name, got, value)) {
                let all = values.join(", ");
                let got = if values.is_empty() { "absent".into() } else { redact::value(name, &all) };
                refusals.push(format!("the header {name} is {}, not {got}", redact::value(name, value)));
            }
        }
        if self.payload.as_ref().is_some_and(|payload| !is_same(body, payload)) {
            refusals.push("the payload is another one".to_owned());
        }
        refusals
    }
}

struct Service(Mock);

impl Handler for Service {
    async fn handle(&self, request: Request, _: &ConnectionInfo) -> Response {
        let head = request.head;
        let Ok(body) = request.body.collect(u64::MAX).await else { return Response::new(400, Body::Empty) };
        let body = String::from_utf8_lossy(&body).into_owned();
        let resources = &self.0.resources;
        let refusals: Vec<Vec<String>> =
            resources.iter().map(|resource| resource.refusals(&head, &body)).collect();
        let Some(at) = refusals.iter().position(Vec::is_empty) else {
            let nearest = refusals.iter().min_by_key(|refusals| refusals.len());
            let nearest = nearest.map_or("it has none".to_owned(), |refusals| refusals.join("; "));
            let (name, method) = (&self.0.endpoint, head.method.as_str());
            let path = redact::addresses(&head.target);
            let why = format!(
                "no resource of the mock service `{name}` is like this request, {method} {path}; of the nearest one: {nearest}"
            );
            tracing::warn!(target: TOLD, payload = &*redact::text(&body), "{why}");
            return Response::new(404, Body::Bytes(why.into())).with("Content-Type", "text/plain");
        };
        let resource = &resources[at];
        let body = match resource.response.is_empty() {
            true => Body::Empty,
            false => Body::Bytes(resource.response.clone().into()),
        };
        let mut response = Response::new(resource.status, body);
        let has_type =
            resource.response_headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("Content-Type"));
        if !resource.response.is_empty() && !has_type {
            response = response.with("Content-Type", super::content_type(&resource.response));
        }
        for (name, value) in &resource.response_headers {
            if !name.eq_ignore_ascii_case("Content-Length") && !name.eq_ignore_ascii_case("Transfer-Encoding")
            {
                response.head.headers.set(name, value);
            }
        }
        response
    }
}
