//! The sampling processor: runs a sequence with some messages at each interval.

use super::Work;
use crate::engine::{drive_to_end, push_fault_handlers};
use crate::runtime::mediator::Flow;
use crate::runtime::processor::Sampling;
use crate::runtime::scope::Begun;

impl Sampling {
    /// Hands the next messages to the sequence. They leave the store before it runs.
    pub(super) async fn next(&self, work: &Work) {
        for _ in 0..self.concurrency {
            let Some(message) = work.peek().await else { return };
            work.ack(&message).await;
            let mut context = work.context(&message);
            context.handlers.clear();
            push_fault_handlers(&mut context);
            match self.sequence.resolve(&mut context) {
                Ok(list) => {
                    let (begun, busy) = (Begun::new(&mut context), work.busy.clone());
                    begun.spawn(async move {
                        drive_to_end(context, Some(Flow::Enter(list))).await;
                        drop(busy);
                    });
                }
                Err(fault) => return work.deactivate(&fault.to_string()),
            }
        }
    }
}
