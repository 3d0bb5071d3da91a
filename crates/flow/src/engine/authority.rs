//! Sends requests to backends that require authentication.

use crate::runtime::authority::{Authority, Credentials, received};
use crate::runtime::context::Context;
use crate::runtime::fault::Fault;
use crate::runtime::services::Services;
use message::{Headers, Method};
use std::sync::Arc;
use transport::{Body, Client, ClientLimits, OutRequest, Response, SendError, SendOptions, Target};

/// Most responses with 401 after which a request is sent again.
const ROUNDS: u8 = 3;

/// Most bytes of a refusal that are read so that its connection can be used again.
const REFUSAL: usize = 1 << 20;

/// A request that may have to be sent more than once.
pub(crate) struct Authorized<'a> {
    pub authority: &'a dyn Authority,
    pub services: &'a Services,
    pub target: &'a Target,
    pub method: &'a Method,
    /// Path and query.
    pub path: &'a str,
    /// Instead of the target's own name.
    pub host: Option<&'a str>,
    pub body: &'a mut Body,
    pub options: &'a SendOptions,
}

impl Authorized<'_> {
    /// Sends it with the credentials of the authority. `headers` are those of the request.
    pub(crate) async fn send(self, headers: &mut Headers) -> Result<Result<Response, SendError>, Fault> {
        let Authorized { authority, services, target, method, path, host, body, options } = self;
        let dedicated;
        let client = match authority.one_connection() {
            true => {
                dedicated = Client::new(ClientLimits::default());
                &dedicated
            }
            false => &services.client,
        };
        if let Some(value) = authority.begin(services).await? {
            headers.set("Authorization", value);
        }
        let mut round = 0;
        loop {
            let kept = copy(body);
            let request = OutRequest { method, target: path, headers, host, body: &mut *body };
            let response = match client.send(target, request, options).await {
                Ok(response) if response.head.status == 401 && round < ROUNDS => response,
                other => return Ok(other),
            };
            let Some(kept) = kept else { return Ok(Ok(response)) };
            let Some(value) = authority.again(&response.head.headers, round, services).await? else {
                return Ok(Ok(response));
            };
            // Read to its end, so that the connection can be used again; if that fails, it will not be.
            let _ = received(response.body, REFUSAL).await;
            headers.set("Authorization", value);
            *body = kept;
            round += 1;
        }
    }
}

/// A body that is at hand; `None`: it can be sent only once.
fn copy(body: &Body) -> Option<Body> {
    match body {
        Body::Empty => Some(Body::Empty),
        Body::Bytes(bytes) => Some(Body::Bytes(bytes.clone())),
        Body::Stream(_) => None,
    }
}

/// The authority that authenticates this message: that of the endpoint; for blocking calls else the one that a mediator left.
pub(crate) enum Asks {
    Endpoint(Arc<dyn Authority>),
    Message(Arc<Credentials>),
}

impl Asks {
    pub(crate) fn of(
        endpoint: Option<&Arc<dyn Authority>>,
        blocking: bool,
        context: &Context,
    ) -> Option<Asks> {
        match endpoint {
            Some(authority) => Some(Asks::Endpoint(Arc::clone(authority))),
            None if blocking => context.attached::<Credentials>().map(Asks::Message),
            None => None,
        }
    }

    pub(crate) fn authority(&self) -> &dyn Authority {
        match self {
            Asks::Endpoint(authority) => &**authority,
            Asks::Message(credentials) => &*credentials.0,
        }
    }
}
