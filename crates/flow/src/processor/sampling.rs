//! The sampling processor: runs a sequence with some messages at each interval.

use super::{Work, sequence};
use crate::compile::{Compiler, SequenceRef};
use crate::engine::{drive_to_end, push_fault_handlers};
use crate::mediator::Flow;
use crate::scope::Begun;
use config::MessageProcessor;

pub(super) struct Sampling {
    sequence: SequenceRef,
    /// How many messages at once; with none, as in WSO2, all stay in the store.
    concurrency: u64,
}

impl Sampling {
    pub(super) fn compile(own: &MessageProcessor, compiler: &mut Compiler<'_>) -> Option<Sampling> {
        Some(Sampling {
            sequence: sequence(own, "sequence", compiler)?,
            concurrency: concurrency(own, compiler),
        })
    }

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

/// The parameter `concurrency`; what is no number is 1, as in WSO2.
fn concurrency(own: &MessageProcessor, compiler: &mut Compiler<'_>) -> u64 {
    let Some(text) = own.parameter("concurrency").map(str::trim) else { return 1 };
    let (count, label) = match text.parse::<i64>() {
        Ok(count) if count > 0 => return count.unsigned_abs(),
        Ok(_) => (0, "no message is ever taken"),
        Err(_) => (1, "expected a whole number; counts as 1"),
    };
    let message = format!("the parameter `concurrency` should not be `{text}`");
    compiler.warning("bad-value", message, own.span, label);
    count
}
