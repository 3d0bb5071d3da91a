//! Priority executors.

use super::Compiler;
use crate::runtime::executor::{Executor, Shape};
use std::cmp::Reverse;

/// The one algorithm of Synapse for the next queue.
const ROUNDS: &str = "PRRNextQueueAlgorithm";

/// Compiles an executor; `None` after a recorded error.
pub(super) fn compile(executor: &config::PriorityExecutor, compiler: &mut Compiler<'_>) -> Option<Executor> {
    if executor.max < executor.core || executor.max == 0 {
        let message = format!(
            "the executor `{}` has threads max=\"{}\" core=\"{}\"",
            executor.name, executor.max, executor.core
        );
        let label = "expected a `max` of at least 1 and at least `core` (defaults: 100 and 20)";
        compiler.error("bad-value", message, executor.span, label);
    }
    if let Some(class) = &executor.next_queue
        && class.rsplit('.').next() != Some(ROUNDS)
    {
        let message = format!("the class `{class}` does not choose the next queue");
        let label =
            "classes of Java are not executable here: queues have turns in rounds, as many as their priority";
        compiler.warning("not-needed", message, class.span, label);
    }
    // No queue is without bound: more than this cannot be on their way.
    let most = compiler.services.settings.flows;
    let mut queues: Vec<_> = executor
        .queues
        .iter()
        .map(|queue| (queue.priority, queue.size.filter(|_| executor.fixed).unwrap_or(most)))
        .collect();
    queues.sort_by_key(|(priority, _)| Reverse(*priority));
    let services = compiler.services;
    let name = executor.name.value.clone();
    Some(Executor {
        span: executor.span,
        shape: Shape { queues, core: executor.core as usize, max: executor.max as usize },
        pool: services.states.get(compiler.artifact_identity()),
        counters: services.metrics.counters("executor", &name),
        name,
    })
}
