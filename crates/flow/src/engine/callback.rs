//! Answers that come on a connection of their own: `<enableAddressing separateListener="true"/>`.
//!
//! Such a request names an address of this server as its `ReplyTo`. The backend takes it with 202 and sends the answer to
//! that address later, as a request of its own that says by `RelatesTo` which message it answers. The flow waits for it
//! as for any answer, and as long.

use crate::engine::addressing;
use crate::runtime::context::Context;
use crate::runtime::fault::Fault;
use crate::runtime::identifier::unique;
use crate::runtime::services::Services;
use crate::state::lock;
use bytes::Bytes;
use message::Headers;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::oneshot;

/// The part of the path behind `/services/`; a secret of this process follows, so that only a backend that was asked can answer.
pub(crate) const PATH: &str = "busbar-callback/";

/// The messages that wait for such answers.
#[derive(Default)]
pub(crate) struct Callbacks {
    secret: OnceLock<String>,
    waiting: Mutex<HashMap<String, oneshot::Sender<Received>>>,
}

/// What came.
pub(crate) struct Received {
    pub headers: Headers,
    pub body: Bytes,
}

/// A message that waits for its answer; dropped, it no longer does.
pub(crate) struct Waiting {
    callbacks: Arc<Callbacks>,
    id: String,
    receiver: oneshot::Receiver<Received>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        lock(&self.callbacks.waiting).remove(&self.id);
    }
}

impl Waiting {
    /// The answer; `None`: it did not come in time.
    pub async fn answer(mut self, time: Duration) -> Option<Received> {
        tokio::time::timeout(time, &mut self.receiver).await.ok()?.ok()
    }
}

impl Callbacks {
    /// Those of the process.
    pub(crate) fn of(services: &Services) -> Arc<Callbacks> {
        services.kept.get()
    }

    /// Gives the response to the message of this id; `false`: no message waits for it.
    pub(crate) fn answer(&self, id: &str, response: Received) -> bool {
        lock(&self.waiting).remove(id).is_some_and(|sender| sender.send(response).is_ok())
    }

    fn secret(&self) -> &str {
        self.secret.get_or_init(|| {
            let mut bytes = [0_u8; 16];
            // Without it the address can be guessed; RelatesTo has to fit all the same.
            let _ = aws_lc_rs::rand::fill(&mut bytes);
            crate::text::hex(&bytes)
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
    Ok(format!("{base}/services/{PATH}{}", Callbacks::of(services).secret()))
}

/// Expects the answer to a message that is about to be sent.
///
/// # Errors
/// Another message waits for a response to this `MessageID`.
pub(crate) fn expect(context: &Context) -> Result<Waiting, Fault> {
    let preserved_id = context.addressing.message_id.clone().filter(|_| addressing::preserved(context));
    let id = preserved_id.unwrap_or_else(|| unique(context.number));
    let (sender, receiver) = oneshot::channel();
    let callbacks = Callbacks::of(&context.services);
    match lock(&callbacks.waiting).entry(id.clone()) {
        Entry::Occupied(_) => {
            return Err(Fault::new(format!("another message waits for the answer to the MessageID {id}")));
        }
        Entry::Vacant(place) => place.insert(sender),
    };
    Ok(Waiting { callbacks, id, receiver })
}
