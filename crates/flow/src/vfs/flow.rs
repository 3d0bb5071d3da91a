//! The flow of a file.

use super::Work;
use super::taking::{At, Content};
use crate::engine::file::{Arrived, Failed, Writing, write};
use crate::engine::{Ending, begin_request, drive, raise};
use crate::http::respond::response;
use crate::runtime::context::{Context, Origin, Owner};
use crate::runtime::exchange::Awaited;
use crate::runtime::fault::Fault;
use crate::runtime::panics::caught;
use crate::runtime::progress::Waits;
use crate::runtime::receipt::Receipt;
use crate::runtime::request::{Client, Inbound};
use crate::runtime::scope::{Admitted, Begun, Outcome};
use crate::runtime::source::{Reply, Source};
use crate::runtime::stage::{self, Way};
use ::files::address::of_path;
use ::files::stream::FileBody;
use bytes::Bytes;
use config::ArtifactKind;
use message::{Body, Headers, Kind, Method, Payload, Reading, SoapVersion};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;

/// Runs it, and waits for all that it begins. Why the file is not confirmed, if it is not, and the id of the message.
pub(super) async fn run(
    work: &Work,
    at: &At,
    content: (Content, bool),
    admitted: Admitted,
) -> (Option<(String, Outcome)>, String) {
    let (mut context, begins) = context(work, at, content);
    let message_id = context.message_id();
    let begun = Begun::with(admitted, &mut context);
    let receipt = Arc::new(Receipt::default());
    context.attach(Arc::clone(&receipt));
    let ran = caught(pin!(flow(context, begins, work, &receipt))).await;
    let outcome = begun.outcome().await;
    let refusal = match ran {
        Ok(Ok(())) => receipt.refusal(outcome).map(str::to_owned),
        Ok(Err(why)) => Some(why),
        Err(why) => {
            let place = work.plan.place(work.source.span);
            crate::runtime::report::panicked(
                &message_id,
                &work.source.label(),
                &place,
                "the flow of a file",
                &why,
            );
            Some("the flow panicked".to_owned())
        }
    };
    (refusal.map(|why| (why, outcome)), message_id)
}

/// The message, and why its flow cannot begin.
fn context(work: &Work, at: &At, (content, soap): (Content, bool)) -> (Box<Context>, Result<(), Fault>) {
    let source = &work.source;
    let name = at.path.file_name().unwrap_or_default().to_string_lossy();
    let headers = headers(source, at, &name);
    let (owner, through, target) = match source.kind {
        ArtifactKind::Proxy => {
            let index = work.plan.proxies.iter().position(|proxy| proxy.name == source.name);
            (index.map(Owner::Proxy), None, format!("/services/{}", source.name))
        }
        _ => {
            let index = work.plan.inbound_endpoints.iter().position(|endpoint| endpoint.name == source.name);
            (index.map(Owner::Inbound), index, "/".to_owned())
        }
    };
    let client = match Reading::arrived(&headers, true).kind {
        Kind::Soap11 if soap => Client::Soap(SoapVersion::V11),
        Kind::Soap12 => Client::Soap(SoapVersion::V12),
        _ => Client::Rest,
    };
    let mut inbound = Inbound::of_nobody(Method::Post, target, client, &headers);
    inbound.through = through;
    let body = match content {
        Content::Read(bytes) => Body::Bytes(Bytes::from(bytes)),
        Content::Open(file) => Body::Stream(Box::new(FileBody::new(file, at.version.length))),
    };
    let payload = Payload::arrived(body, &headers, client == Client::Rest);
    let (plan, services) = (Arc::clone(&work.plan), Arc::clone(&work.services));
    let mut context = Box::new(Context::new(plan, services, Arc::new(inbound), headers, payload));
    // Nobody waits for an answer.
    context.progress.client = Waits::Nobody;
    context.attach(Arc::new(Origin(format!("file {}", at.path.display()))));
    context.attach(Arc::new(Arrived { name: clean(&name) }));
    let begins = match owner {
        Some(owner) => {
            context.owner = owner;
            begin(&mut context, owner)
        }
        None => Err(Fault::new(format!("there is no {}", source.label()))),
    };
    (context, begins)
}

fn begin(context: &mut Context, owner: Owner) -> Result<(), Fault> {
    let plan = Arc::clone(&context.plan);
    let list = match owner {
        Owner::Proxy(index) => plan.proxies[index].enter(context),
        Owner::Inbound(index) => {
            let sequence = plan.inbound_endpoints[index].sequence.as_ref();
            sequence.map(|list| list.resolve(context)).transpose()
        }
        Owner::Main | Owner::Resource(..) => Ok(None),
    };
    begin_request(context, list.as_ref().ok().copied().flatten());
    list.map(|_| ())
}

/// What the transport says of a file.
fn headers(source: &Source, at: &At, name: &str) -> Headers {
    let mut headers = Headers::new();
    let guessed = || match Path::new(name)
        .extension()
        .and_then(|extension| extension.to_str())
        .map(str::to_ascii_lowercase)
        .as_deref()
    {
        Some("xml") => "text/xml",
        Some("json") => "application/json",
        Some("txt" | "csv") => "text/plain",
        _ => "application/octet-stream",
    };
    headers.set("Content-Type", source.content_type.as_deref().unwrap_or_else(guessed));
    headers.set("FILE_PATH", clean(&at.path.to_string_lossy()));
    headers.set("FILE_NAME", clean(name));
    headers.set("FILE_URI", of_path(&at.path));
    headers.set("FILE_LENGTH", at.version.length.to_string());
    headers.set("LAST_MODIFIED", (at.version.modified / 1_000_000).to_string());
    headers
}

/// A name as it can stand in a header.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect()
}

/// Why nothing is confirmed, beside what the receipt says.
async fn flow(
    mut context: Box<Context>,
    begins: Result<(), Fault>,
    work: &Work,
    receipt: &Receipt,
) -> Result<(), String> {
    let mut fault = begins.err();
    if fault.is_none() && !context.passes(Way::In) {
        let plan = Arc::clone(&context.plan);
        fault = stage::comes_in(plan.stages(context.owner), &mut context).await.err();
    }
    if fault.is_none() && work.source.build {
        fault = built(&mut context).await.err();
    }
    let ending = match fault.and_then(|fault| raise(&mut context, fault)) {
        Some(ending) => ending,
        None => drive(&mut context, None).await,
    };
    if context.progress.observed {
        crate::observe::left(&context);
    }
    receipt.note(&context);
    let answer = match ending {
        Ending::Respond => {
            context.keep_first_answer();
            Some(context)
        }
        Ending::Nothing | Ending::Detach(_) => match context.awaited.take() {
            None => None,
            Some(Awaited { answer, voice }) => {
                context.exchange = None;
                drop(voice);
                answer.await.ok()
            }
        },
    };
    match (&work.source.reply, answer) {
        (Some(reply), Some(answer)) => replied(reply, answer).await,
        (None, Some(answer)) => {
            tracing::debug!(message_id = %answer.message_id(), "nobody waits for the answer (transport.vfs.ReplyFileURI)");
            Ok(())
        }
        (_, None) => Ok(()),
    }
}

/// Reads the body before the flow begins.
async fn built(context: &mut Context) -> Result<(), Fault> {
    context.receive_body().await?;
    if context.payload.json()?.is_none() {
        context.envelope()?;
    }
    Ok(())
}

/// Writes the answer.
async fn replied(reply: &Reply, mut answer: Box<Context>) -> Result<(), String> {
    let failed = |why: String| format!("its answer could not be written: {why}");
    let mut response = response(&mut answer).await.map_err(|fault| failed(fault.to_string()))?;
    let Some(writing) = Writing::parse(&reply.address, &mut Vec::new()) else { return Ok(()) };
    let body = std::mem::take(&mut response.body);
    let written = write(&answer, writing, reply.name.clone(), &response.head.headers, body).await;
    written.map_err(|why| match why {
        Failed::Body(error) => failed(error.to_string()),
        Failed::File(error, _) => failed(error.to_string()),
    })
}
