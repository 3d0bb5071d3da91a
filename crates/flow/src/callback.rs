//! Answers that come on a connection of their own: `<enableAddressing separateListener="true"/>`.
//!
//! Such a request names an address of this server as its `ReplyTo`. The backend takes it with 202 and sends the answer to
//! that address later, as a request of its own that says by `RelatesTo` which message it answers. The flow waits for it
//! as for any answer, and as long.

use crate::addressing;
use crate::context::{Client, Context, Inbound, unique};
use crate::fault::Fault;
use crate::lock;
use crate::plan::Plan;
use crate::respond::{refused, text};
use crate::services::Services;
use bytes::Bytes;
use message::{Body, Headers, Kind, Payload, Reading, SoapVersion};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::oneshot;
use transport::Response;

/// The part of the path behind `/services/`; a secret of this process follows, so that nobody answers unasked.
const PATH: &str = "busbar-callback/";

/// Headers of the request that an answer comes as, which say nothing of the answer.
const OF_REQUESTS: &[&str] = &[
    "Host",
    "User-Agent",
    "Accept",
    "Accept-Encoding",
    "Connection",
    "Expect",
    "SOAPAction",
    "Authorization",
    "Transfer-Encoding",
    "Content-Length",
];

/// The messages that wait for such answers.
#[derive(Default)]
pub(crate) struct Callbacks {
    secret: OnceLock<String>,
    waiting: Mutex<HashMap<String, oneshot::Sender<Answer>>>,
}

/// What came.
pub(crate) struct Answer {
    pub headers: Headers,
    pub body: Bytes,
}

/// A message that waits for its answer; dropped, it no longer does.
pub(crate) struct Waiting {
    services: Arc<Services>,
    id: String,
    receiver: oneshot::Receiver<Answer>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        lock(&self.services.callbacks.waiting).remove(&self.id);
    }
}

impl Waiting {
    /// The answer; `None`: it did not come in time.
    pub async fn answer(mut self, time: Duration) -> Option<Answer> {
        tokio::time::timeout(time, &mut self.receiver).await.ok()?.ok()
    }
}

impl Callbacks {
    fn secret(&self) -> &str {
        self.secret.get_or_init(|| {
            let mut bytes = [0_u8; 16];
            // Without it the address can be guessed; RelatesTo has to fit all the same.
            let _ = aws_lc_rs::rand::fill(&mut bytes);
            crate::library::hex(&bytes)
        })
    }

    /// Whether a path behind `/services/` is the address of answers.
    pub fn is_address(&self, rest: &str) -> bool {
        let path = rest.split('?').next().unwrap_or_default();
        path.strip_prefix(PATH).is_some_and(|secret| secret == self.secret())
    }
}

/// The address where answers are expected.
///
/// # Errors
/// The message came over no connection, and no setting says how this server is reached.
pub(crate) fn address(context: &Context) -> Result<String, Fault> {
    let services = &context.services;
    let base = services.settings.callback_address.trim_end_matches('/');
    let inbound = &context.inbound;
    let base = match base.is_empty() {
        false => base.to_owned(),
        true if inbound.local.port() == 0 => {
            return Err(Fault::new(
                "`separateListener` needs the setting `http.callback_address`: this message came over no connection",
            ));
        }
        true => format!("{}://{}", inbound.scheme(), inbound.local),
    };
    Ok(format!("{base}/services/{PATH}{}", services.callbacks.secret()))
}

/// Expects the answer to a message that is about to be sent.
///
/// # Errors
/// Somebody waits for an answer to this `MessageID` already.
pub(crate) fn expect(context: &Context) -> Result<Waiting, Fault> {
    let own = context.addressing.message_id.clone().filter(|_| addressing::preserved(context));
    let id = own.unwrap_or_else(|| unique(context.number));
    let (sender, receiver) = oneshot::channel();
    match lock(&context.services.callbacks.waiting).entry(id.clone()) {
        Entry::Occupied(_) => {
            return Err(Fault::new(format!("another message waits for the answer to the MessageID {id}")));
        }
        Entry::Vacant(place) => place.insert(sender),
    };
    Ok(Waiting { services: Arc::clone(&context.services), id, receiver })
}

/// What a request to the address is said to be: SOAP, and in logs without the secret.
pub(crate) fn inbound(mut inbound: Inbound) -> Inbound {
    let version = match Reading::of(inbound.content_type.as_deref(), None, false).kind {
        Kind::Soap12 => SoapVersion::V12,
        _ => SoapVersion::V11,
    };
    inbound.client = Client::Soap(version);
    if let Some(at) = inbound.target.find(PATH) {
        inbound.target.truncate(at + PATH.len());
    }
    inbound
}

/// Takes an answer that came to the address: 202 where somebody waits for it.
pub(crate) async fn take(
    plan: Arc<Plan>,
    services: Arc<Services>,
    inbound: Arc<Inbound>,
    headers: Headers,
    body: Body,
) -> Response {
    let payload = Payload::arrived(body, &headers, false);
    let mut context = Context::new(plan, services, inbound, headers, payload);
    if let Err(fault) = context.receive_body().await {
        return text(fault.status, format!("{}\n", fault.message));
    }
    let body = context.payload.bytes().cloned().unwrap_or_default();
    if let Err(fault) = addressing::read(&mut context).await {
        return refused(&context.inbound, &fault.message);
    }
    let related = context.addressing.relates_to.take();
    let sender = related.as_ref().and_then(|id| lock(&context.services.callbacks.waiting).remove(id));
    let mut headers = std::mem::take(&mut context.headers);
    for name in OF_REQUESTS {
        headers.remove(name);
    }
    match sender.map(|sender| sender.send(Answer { headers, body })) {
        Some(Ok(())) => Response::empty(202),
        _ => {
            let id = related.unwrap_or_default();
            tracing::warn!(relates_to = id, "an answer came that nobody waits for");
            refused(&context.inbound, &format!("Nobody waits for an answer to {id}"))
        }
    }
}
