//! The forwarding processor: sends each message to an endpoint until that succeeds.

use super::{Pause, Tries, Work};
use crate::engine::exchange::{KeptHeaders, Refusals, Sent, send};
use crate::runtime::context::Context;
use crate::runtime::endpoint::Destination;
use crate::runtime::fault::{Code, code};
use crate::runtime::mediator::ListId;
use crate::runtime::panics::caught;
use crate::runtime::processor::{Forwarding, RECIPIENTS};
use crate::runtime::reference::{EndpointRef, SequenceRef};
use message::Value;
use std::pin::pin;
use std::sync::Arc;
use stores::Message;

/// How an attempt ended.
enum Attempt {
    Delivered,
    /// With the message as the attempt left it.
    Failed(Box<Context>, String),
    /// The bus has no room for it now, which says nothing about the message or its endpoint.
    NoRoom(String),
    /// It makes no sense to go on.
    Impossible(String),
}

impl Forwarding {
    /// Makes one attempt with the next message.
    pub(super) async fn next(&self, work: &Work, tries: &mut Tries) -> Pause {
        let message = match work.peek().await {
            Ok(message) => message,
            Err(pause) => return pause,
        };
        let attempt = caught(pin!(self.attempt(&message, work))).await;
        let attempt = attempt
            .unwrap_or_else(|why| Attempt::Failed(work.context(&message), format!("it panicked: {why}")));
        let (context, why) = match attempt {
            Attempt::Delivered => {
                work.ack(&message).await;
                return Pause::Next;
            }
            Attempt::Impossible(why) => {
                work.deactivate(&why);
                return Pause::Inactive;
            }
            Attempt::NoRoom(why) => {
                work.no_room(&message, &why);
                return Pause::Retry;
            }
            Attempt::Failed(context, why) => (context, why),
        };
        let attempts = work.attempt_failed(&message, tries, &why);
        if self.attempts.is_none_or(|most| attempts < most) {
            return Pause::Retry;
        }
        self.give_up(&message, context, work).await;
        *tries = Tries::default();
        Pause::Next
    }

    async fn attempt(&self, message: &Message, work: &Work) -> Attempt {
        let mut context = work.context(message);
        let named = context.properties.get("target.endpoint").map(Value::to_string);
        let reference = match (&self.endpoint, named) {
            (Some(endpoint), _) => Arc::clone(endpoint),
            (None, Some(name)) => match work.plan.endpoint(name.trim()) {
                Some(endpoint) => Arc::new(EndpointRef::Known(endpoint)),
                None => return Attempt::Impossible(format!("there is no endpoint `{}`", name.trim())),
            },
            (None, None) => {
                return Attempt::Impossible(
                    "neither the processor nor the message names an endpoint".to_owned(),
                );
            }
        };
        if let EndpointRef::Missing(name) = &*reference {
            return Attempt::Impossible(format!("there is no endpoint `{name}`"));
        }
        let one_way = context.properties.get("OUT_ONLY").is_some_and(Value::is_true);
        // As with a blocking call: the reply sequence has the headers of the message beside the answer.
        let kept = KeptHeaders::of(&context);
        let destination = Destination { reference: Some(reference), ..Destination::implicit() };
        let sent = send(&mut context, destination).await;
        if let Ok(Sent::Split(_)) = sent {
            return Attempt::Impossible(RECIPIENTS.to_owned());
        }
        if let Err(fault) = sent {
            let why = fault.to_string();
            if fault.status == 503 {
                return Attempt::NoRoom(why);
            }
            let code = match &fault.code {
                Code::Number(code::CONNECTION_FAILED) => Value::Integer(code::BLOCKING_SENDER_FAILED.into()),
                Code::Number(number) => Value::Integer((*number).into()),
                Code::Word(word) => Value::from(word.as_str()),
            };
            note_failure(&mut context, true, code, &fault.message);
            if !one_way {
                work.told(context.branch(), self.fault.as_ref()).await;
            }
            return Attempt::Failed(context, why);
        }
        let received = context.receive_body().await;
        let status = context.status.unwrap_or_default();
        let accepted = (200..300).contains(&status) || self.accepted.contains(&status);
        // Of an answer to a one-way message the status says all: with a body that breaks off it is delivered too, and not sent again.
        if let Err(fault) = received
            && !(one_way && accepted)
        {
            return Attempt::Failed(context, fault.to_string());
        }
        if !accepted {
            let why = format!("the endpoint answered with status {status}");
            // Those that a blocking call takes for failures are failures of the sender; others are answers.
            let refused = Refusals::of(&context).contains(status);
            note_failure(&mut context, refused, Value::Integer(status.into()), &why);
            if !one_way {
                work.told(context.branch(), self.fault.as_ref()).await;
            }
            return Attempt::Failed(context, why);
        }
        if one_way {
            return Attempt::Delivered;
        }
        let Some(reply) = &self.reply else {
            let why = "an answer came, and there is no message.processor.reply.sequence (set OUT_ONLY where none is expected)";
            return Attempt::Impossible(why.to_owned());
        };
        if let Some(kept) = kept {
            kept.restore(&mut context);
        }
        let list = match reply.resolve(&mut context) {
            Ok(list) => list,
            Err(fault) => return Attempt::Impossible(fault.to_string()),
        };
        if let Some(fault) = self.fault.as_ref().and_then(|sequence| list_of(sequence, &mut context)) {
            context.handlers.clear();
            context.handlers.push(fault);
        }
        // The sequence has the answer; what is left for a failure is the message as it was.
        if work.through(context, list).await {
            Attempt::Delivered
        } else {
            Attempt::Failed(
                work.context(message),
                "the reply sequence failed, or a part of what it began".to_owned(),
            )
        }
    }

    /// The last attempt has failed.
    async fn give_up(&self, message: &Message, context: Box<Context>, work: &Work) {
        if let Some(store) = &self.failed {
            if let Err(why) = work.moved(message, &**store).await {
                work.deactivate(&why);
            }
            return;
        }
        if self.drop {
            return work.drop_last(message).await;
        }
        work.deactivate("a message could not be delivered; it stays in the store");
        work.told(context, self.deactivate.as_ref()).await;
    }
}

/// What the fault sequence and the deactivate sequence know of a failure. `by_sender`: nothing was sent, or what came back is
/// no answer for a blocking call either.
fn note_failure(context: &mut Context, by_sender: bool, code: Value, why: &str) {
    let properties = &mut context.properties;
    properties.set("blocking.sender.error", Value::from(if by_sender { "true" } else { "false" }));
    properties.set("ERROR_CODE", code);
    for name in ["ERROR_MESSAGE", "ERROR_DETAIL"] {
        if properties.get(name).is_none() {
            properties.set(name, Value::from(why));
        }
    }
}

fn list_of(sequence: &SequenceRef, context: &mut Context) -> Option<ListId> {
    sequence.resolve(context).inspect_err(|fault| tracing::error!("{fault}")).ok()
}
