//! The sampling processor: runs a sequence with some messages at each interval.

use super::{Pause, Work};
use crate::engine::{drive_to_end, push_fault_handlers};
use crate::runtime::mediator::Flow;
use crate::runtime::processor::Sampling;
use crate::runtime::scope::{Admitted, Begun};
use std::sync::Arc;

impl Sampling {
    /// Hands the next messages to the sequence. They leave the store before it runs, and stay there while there is no room for
    /// more messages, or no such sequence.
    pub(super) async fn next(&self, work: &Work) -> Pause {
        for _ in 0..self.concurrency {
            let Ok(admitted) = Admitted::new(Arc::clone(&work.services)) else { return Pause::Turn };
            let message = match work.peek().await {
                Ok(message) => message,
                Err(pause) => return pause,
            };
            let mut context = work.context(&message);
            context.handlers.clear();
            push_fault_handlers(&mut context);
            let list = match self.sequence.resolve(&mut context) {
                Ok(list) => list,
                Err(fault) => {
                    work.deactivate(&fault.to_string());
                    return Pause::Inactive;
                }
            };
            match work.take(&message).await {
                Ok(true) => {}
                Ok(false) => continue,
                Err(pause) => return pause,
            }
            let (begun, busy) = (Begun::with(admitted, &mut context), work.busy.clone());
            begun.spawn(async move {
                drive_to_end(context, Some(Flow::Enter(list))).await;
                drop(busy);
            });
        }
        Pause::Turn
    }
}
