//! The failover processor: moves the messages of a store to another one, as soon as that takes them.

use super::{Pause, Tries, Work};
use crate::runtime::processor::Failover;
use message::Value;

impl Failover {
    /// Makes one attempt with the next message.
    pub(super) async fn next(&self, work: &Work, tries: &mut Tries) -> Pause {
        let message = match work.peek().await {
            Ok(message) => message,
            Err(pause) => return pause,
        };
        let Err(why) = work.moved(&message, &*self.target).await else { return Pause::Next };
        let attempts = work.attempt_failed(&message, tries, &why);
        let told = || {
            let mut context = work.context(&message);
            context.properties.set("ERROR_MESSAGE", Value::from(why.as_str()));
            context
        };
        work.told(told(), self.fault.as_ref()).await;
        if self.attempts.is_none_or(|most| attempts < most) {
            return Pause::Retry;
        }
        *tries = Tries::default();
        if self.drop {
            work.drop_last(&message).await;
        } else {
            work.deactivate("a message could not be moved; it stays in the store");
            work.told(told(), self.deactivate.as_ref()).await;
        }
        Pause::Next
    }
}
