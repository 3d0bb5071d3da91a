//! What the settings demand of bodies before a flow works with them: that they are not too large, and that they are what they say.

use crate::engine::compute;
use crate::runtime::context::Context;
use crate::runtime::fault::Fault;
use message::{Kind, Payload, PayloadError, PayloadLimits};

/// Makes sure that the body of a message is not larger than the settings allow, before anything of it is passed on
/// (`message.size.validation.enabled`). One whose length is not declared is received for that.
///
/// # Errors
/// It is larger, or does not arrive.
pub(crate) async fn fits(context: &mut Context) -> Result<(), Fault> {
    let most = context.services.settings.screening.largest;
    let too_large = || {
        let message =
            format!("the body is larger than the {most} bytes of `valid.max.message.size.in.bytes`");
        Fault::from(PayloadError::TooLarge { message })
    };
    match context.payload.stream().map(|stream| stream.exact_len()) {
        Some(Some(length)) => return if length > most { Err(too_large()) } else { Ok(()) },
        Some(None) => {}
        None => return if context.payload.extent() as u64 > most { Err(too_large()) } else { Ok(()) },
    }
    let held = usize::try_from(most).unwrap_or(usize::MAX);
    let limits = PayloadLimits { held, spill: None, ..context.services.limits.clone() };
    match context.payload.buffer(&limits).await {
        Err(PayloadError::TooLarge { .. }) => Err(too_large()),
        Err(error) => Err(error.into()),
        Ok(()) => Ok(()),
    }
}

/// Reads the body of a message to its end, if it is of a type that the settings want to be read
/// (`force.xml.message.validation`, `force.json.message.validation`). For the flow it stays unread.
///
/// # Errors
/// It is not what its type says, or does not arrive.
pub(crate) async fn is_well_formed(context: &mut Context) -> Result<(), Fault> {
    let screening = context.services.settings.screening;
    let wanted = match context.payload.reading().kind {
        Kind::Xml | Kind::Soap11 | Kind::Soap12 => screening.xml,
        Kind::Json => screening.json,
        _ => false,
    };
    if !wanted || context.payload.is_empty() {
        return Ok(());
    }
    context.receive_body().await?;
    if context.payload.is_empty() {
        return Ok(());
    }
    compute::by_size(context, 0, |context| Ok(read(context.payload.copy(), context)?)).await
}

fn read(mut copy: Payload, context: &Context) -> Result<(), PayloadError> {
    match copy.is_json() {
        true => copy.json().map(drop),
        false => copy.envelope(&context.services.limits).map(drop),
    }
}
