//! Receiving a body: into memory, and where it is too large for that into a file.

use super::{Payload, PayloadError, PayloadLimits, Raw};
use crate::memory::{self, Held};
use crate::spill::Spill;
use std::sync::Arc;

impl Payload {
    /// Receives the whole body.
    ///
    /// # Errors
    /// The body is larger than `limits.held`, a file for it cannot be written, or the peer does not deliver it.
    pub async fn buffer(&mut self, limits: &PayloadLimits) -> Result<(), PayloadError> {
        let Raw::Stream(stream) = &mut self.raw else { return Ok(()) };
        let mut held = Held::default();
        loop {
            if stream.buffered().len() > limits.held
                || stream.exact_len().is_some_and(|len| len > limits.held as u64)
            {
                if let Some(spill) = &limits.spill {
                    return self.spill(spill).await;
                }
                let message = format!("the body is larger than the {} bytes a flow may hold", limits.held);
                return Err(PayloadError::TooLarge { message });
            }
            held.try_grow(stream.storage())?;
            if stream.is_complete() {
                break;
            }
            match std::future::poll_fn(|cx| stream.poll_more(cx)).await {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => return Err(PayloadError::Receiving(error)),
            }
        }
        held.try_grow(stream.storage())?;
        let bytes = memory::counted(stream.take(), held);
        let raw = if bytes.is_empty() { Raw::Empty } else { Raw::Bytes(bytes) };
        if let Raw::Stream(stream) = std::mem::replace(&mut self.raw, raw) {
            stream.recycle();
        }
        Ok(())
    }

    /// Receives the whole body into a file.
    async fn spill(&mut self, spill: &Arc<Spill>) -> Result<(), PayloadError> {
        let Raw::Stream(stream) = &mut self.raw else { return Ok(()) };
        if let Some(length) = stream.exact_len().filter(|&length| length > spill.most) {
            let message =
                format!("the body of {length} bytes is larger than the {} that may go to a file", spill.most);
            return Err(PayloadError::TooLarge { message });
        }
        let mut spilled = spill.begin().map_err(|why| PayloadError::from(spill.unusable(&why)))?;
        let result = loop {
            let arrived = stream.buffered();
            if let Err(why) = spilled.push(arrived) {
                break Err(why.into());
            }
            let count = arrived.len();
            stream.consume(count);
            if stream.is_complete() {
                break Ok(());
            }
            match std::future::poll_fn(|cx| stream.poll_more(cx)).await {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(PayloadError::Receiving(error)),
            }
        };
        // The rest of a body must not be taken for the whole.
        let raw = if result.is_ok() { Raw::Spilled(Arc::new(spilled)) } else { Raw::Consumed };
        if let Raw::Stream(stream) = std::mem::replace(&mut self.raw, raw) {
            stream.recycle();
        }
        result
    }
}
