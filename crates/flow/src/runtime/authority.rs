//! Authentication of requests to backends: OAuth of endpoints, NTLM.

use crate::runtime::fault::Fault;
use crate::runtime::services::Services;
use message::{Headers, Payload, PayloadLimits, Reading};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use transport::Body;

/// Makes the `Authorization` of a request.
pub trait Authority: Send + Sync + fmt::Debug {
    /// That of the first one; `None`: it goes as it is.
    fn begin<'a>(&'a self, services: &'a Services) -> Authorization<'a>;

    /// That of the next one, after an answer with 401 and these headers; `None`: the answer stands. `round` counts
    /// the refusals from 0.
    fn again<'a>(&'a self, refused: &'a Headers, round: u8, services: &'a Services) -> Authorization<'a>;

    /// Whether it is the connection that is authorised: all requests go over one, which no other message uses.
    fn one_connection(&self) -> bool {
        false
    }
}

/// The value of the header.
pub type Authorization<'a> = Pin<Box<dyn Future<Output = Result<Option<String>, Fault>> + Send + 'a>>;

/// Left with a message ([`Context::attach`](super::context::Context::attach)) for the blocking calls that follow.
#[derive(Debug)]
pub struct Credentials(pub Box<dyn Authority>);

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
