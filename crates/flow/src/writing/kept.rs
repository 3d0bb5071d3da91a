//! Answers that are kept: written to bytes once, so that they can be given again and again.

use crate::runtime::context::Context;
use crate::runtime::fault::Fault;
use crate::runtime::progress::Takes;
use crate::writing::{coded, current_form, explicit_form, write};
use bytes::Bytes;
use message::memory::{self, Held};
use message::{Body, Format, Headers, Payload, PayloadError};
use std::borrow::Cow;

/// Headers of an answer that are about one client or one connection.
const NOT_KEPT: &[&str] =
    &["Set-Cookie", "Set-Cookie2", "Connection", "Keep-Alive", "Transfer-Encoding", "Content-Length"];

/// An answer, as it can be given again.
#[derive(Debug)]
pub struct KeptResponse {
    /// The status.
    pub status: u16,
    /// The headers; those for one client (`Set-Cookie`) or one connection are left out.
    pub headers: Headers,
    /// The body, byte by byte.
    pub body: Bytes,
    reason: Option<Cow<'static, str>>,
    /// Counts a body that was written here as held; one that arrived counts itself.
    _held: Held,
    /// It is read as plain XML, not as SOAP.
    rest: bool,
    /// What the endpoint takes that gave it.
    takes: Takes,
}

impl KeptResponse {
    /// Keeps the message as the answer that it is. The body must have been received.
    ///
    /// # Errors
    /// The payload was changed and cannot be written in its form.
    pub fn of(context: &mut Context) -> Result<KeptResponse, Fault> {
        let status = context.axis2("HTTP_SC").and_then(|status| u16::try_from(status.as_integer()?).ok());
        let (body, rest) = context.freeze()?;
        let arrived = context.payload.bytes().is_some_and(|bytes| bytes.as_ptr() == body.as_ptr());
        let held = if arrived { Held::NONE } else { memory::hold(body.len()) };
        let mut headers = context.headers.clone();
        for name in NOT_KEPT {
            headers.remove(name);
        }
        let reason = context.reason.clone();
        let takes = context.progress.takes;
        Ok(KeptResponse { status: status.unwrap_or(200), headers, body, reason, _held: held, rest, takes })
    }

    /// How many bytes it holds.
    pub fn size(&self) -> usize {
        let fields = self.headers.iter().map(|(name, value)| name.len() + value.len());
        self.body.len() + fields.sum::<usize>()
    }

    /// Makes the message this answer.
    pub fn give(&self, context: &mut Context) {
        context.keeps_correlation();
        context.headers = self.headers.clone();
        context.payload = Payload::arrived(Body::Bytes(self.body.clone()), &self.headers, self.rest);
        context.become_answer(self.status, self.reason.clone());
        context.response = true;
        context.addressing.to = None;
        context.progress.takes = self.takes;
    }
}

impl Context {
    /// The payload as bytes, in the form that its type asks for, and whether `text/xml` is plain XML; Content-Type
    /// follows. The body must have been received.
    ///
    /// # Errors
    /// The payload cannot be written in that form.
    pub fn freeze(&mut self) -> Result<(Bytes, bool), Fault> {
        if self.payload.is_consumed() {
            // Nothing empty is kept in its place.
            return Err(PayloadError::Consumed.into());
        }
        let form = explicit_form(self);
        if form.is_none() && !self.payload.is_changed() {
            let bytes = self.payload.whole()?;
            let bytes = if self.payload.is_uncoded() { coded(self, bytes) } else { bytes };
            return Ok((bytes, self.payload.reading().rest));
        }
        let (format, content_type) = form.unwrap_or_else(|| current_form(self));
        let bytes = write(self, format, content_type.as_deref(), None, None)?;
        Ok((bytes, !matches!(format, Format::Soap(_))))
    }
}
