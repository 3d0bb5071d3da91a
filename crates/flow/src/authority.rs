//! Requests to backends that want to know who asks: OAuth of endpoints, NTLM.

use crate::context::Context;
use crate::fault::Fault;
use crate::services::Services;
use message::{Headers, Method, Payload, PayloadLimits, Reading};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use transport::{Body, Client, ClientLimits, OutRequest, Response, SendError, SendOptions, Target};

/// Most answers with 401 that a request is sent again after.
const ROUNDS: u8 = 3;

/// Most bytes of a refusal that are read so that its connection can be used again.
const REFUSAL: usize = 1 << 20;

/// Knows the `Authorization` of a request.
pub trait Authority: Send + Sync + fmt::Debug {
    /// That of the first one; `None`: it goes as it is.
    fn begin<'a>(&'a self, services: &'a Services) -> Authorization<'a>;

    /// That of the next one, after an answer with 401 and these headers; `None`: the answer stands. `round` counts
    /// the refusals from 0.
    fn again<'a>(&'a self, refused: &'a Headers, round: u8, services: &'a Services) -> Authorization<'a>;

    /// Whether it is the connection that is authorised: all requests go over one, which nobody else uses.
    fn one_connection(&self) -> bool {
        false
    }
}

/// The value of the header.
pub type Authorization<'a> = Pin<Box<dyn Future<Output = Result<Option<String>, Fault>> + Send + 'a>>;

/// Left with a message ([`Context::attach`]) for the blocking calls that follow.
#[derive(Debug)]
pub struct Credentials(pub Box<dyn Authority>);

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
    /// Sends it, with what the authority says. `headers` are those of the request.
    pub(crate) async fn send(self, headers: &mut Headers) -> Result<Result<Response, SendError>, Fault> {
        let Authorized { authority, services, target, method, path, host, body, options } = self;
        let own;
        let client = match authority.one_connection() {
            true => {
                own = Client::new(ClientLimits::default());
                &own
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

/// A body as text, where it is not larger than `most` bytes.
///
/// # Errors
/// It is larger, or does not arrive.
pub async fn received(body: Body, most: usize) -> Result<String, Fault> {
    let mut payload = Payload::received(body, Reading::XML);
    let limits = PayloadLimits { held: most, ..PayloadLimits::default() };
    payload.buffer(&limits).await?;
    Ok(payload.bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default())
}

/// Who asks in the name of this message: what the endpoint says, for blocking calls else what a mediator left.
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
