//! Services in the place of backends, on ports of their own.

use super::compare::is_same;
use super::read::{Mock, MockResource};
use flow::services::Mocks;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use transport::{Body, ConnectionInfo, Handler, Request, Response, Server, ServerLimits, Target, Workers};

/// Mock services that listen.
pub struct Listening {
    targets: HashMap<String, (Target, Vec<String>)>,
    _servers: Vec<Server>,
}

impl Mocks for Listening {
    fn target(&self, endpoint: &str, path: &str) -> Option<Target> {
        let (target, paths) = self.targets.get(endpoint)?;
        paths.iter().any(|resource| is_path(resource, path)).then(|| target.clone())
    }
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

struct Service(Mock);

impl Handler for Service {
    async fn handle(&self, request: Request, _: &ConnectionInfo) -> Response {
        let head = request.head;
        let Ok(body) = request.body.collect(u64::MAX).await else { return Response::new(400, Body::Empty) };
        let body = String::from_utf8_lossy(&body).into_owned();
        let takes = |resource: &&MockResource| {
            is_path(&resource.path, &head.target)
                && resource.method.eq_ignore_ascii_case(head.method.as_str())
                && resource.payload.as_ref().is_none_or(|payload| is_same(&body, payload))
                && resource.headers.iter().all(|(name, value)| head.headers.get(name) == Some(value.as_str()))
        };
        let Some(resource) = self.0.resources.iter().find(takes) else {
            let why = format!("no resource of the mock service `{}` is like this request", self.0.endpoint);
            return Response::new(404, Body::Bytes(why.into())).with("Content-Type", "text/plain");
        };
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
