//! Message processors: take messages out of a store, one after the other, each with a task of its own.
//!
//! A plan has its own processors. When another plan comes into force they end between two messages, and then those
//! of the new one begin: no message is in two hands.

mod forwarding;
mod sampling;

use crate::compile::Compiler;
use crate::context::Context;
use crate::dispatch::Bus;
use crate::engine::{Branched, run_branch};
use crate::mediator::ListId;
use crate::panics::caught;
use crate::plan::Plan;
use crate::scope::{Begun, Outcome};
use crate::services::Services;
use config::{Key, MessageProcessor, ProcessorKind};
use diagnostics::Span;
use forwarding::Forwarding;
use sampling::Sampling;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use stores::{Message, Store};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// Shortest pause between two looks into a store.
const SHORTEST: Duration = Duration::from_millis(1);

/// A message processor of the plan.
pub struct Processor {
    /// Its name.
    pub name: String,
    /// Where it is written.
    pub span: Span,
    store: Arc<dyn Store>,
    interval: Duration,
    active: AtomicBool,
    kind: Kind,
}

enum Kind {
    Forwarding(Box<Forwarding>),
    Sampling(Sampling),
}

/// What a processor works with while it runs.
struct Work {
    processor: Arc<Processor>,
    plan: Arc<Plan>,
    services: Arc<Services>,
    stop: watch::Receiver<bool>,
    /// Held by each flow that runs.
    busy: mpsc::Sender<()>,
}

/// Compiles a processor; `None` after a recorded error.
pub(crate) fn compile(own: &MessageProcessor, compiler: &mut Compiler<'_>) -> Option<Processor> {
    let name = own.name.value.clone();
    let memory = compiler.configuration.message_stores.get(&own.message_store.value);
    if memory.is_none_or(|store| store.kind != config::StoreKind::Memory) {
        let message = format!("the store `{}` of the processor cannot be used", own.message_store.value);
        compiler.error("unknown-store", message, own.message_store.span, "no in-memory message store");
        return None;
    }
    if own.parameter("cronExpression").is_some() {
        let message = format!("the processor `{name}` has a cronExpression, which is not executable yet");
        compiler.error("unsupported-artifact", message, own.span, "expected the parameter `interval`");
        return None;
    }
    let kind = match own.kind {
        ProcessorKind::Forwarding => Kind::Forwarding(Box::new(Forwarding::compile(own, compiler)?)),
        ProcessorKind::Sampling => Kind::Sampling(Sampling::compile(own, compiler)?),
        ProcessorKind::Failover | ProcessorKind::Custom => {
            let message = format!("the message processor `{name}` is not executable yet");
            compiler.error(
                "unsupported-artifact",
                message,
                own.class.span,
                "expected a forwarding or sampling processor",
            );
            return None;
        }
    };
    let interval = milliseconds(own, "interval", 1000, compiler)?;
    Some(Processor {
        store: compiler.services.stores.memory(&own.message_store.value),
        active: AtomicBool::new(own.parameter("is.active").is_none_or(is_true)),
        span: own.span,
        name,
        interval: interval.max(SHORTEST),
        kind,
    })
}

/// `true` in any case; all else is false, as in WSO2.
fn is_true(text: &str) -> bool {
    text.trim().eq_ignore_ascii_case("true")
}

/// A parameter that is a time.
fn milliseconds(
    own: &MessageProcessor,
    name: &str,
    default: u64,
    compiler: &mut Compiler<'_>,
) -> Option<Duration> {
    Some(Duration::from_millis(u64::try_from(number(own, name, default as i64, compiler)?).unwrap_or(0)))
}

/// A parameter that is a whole number.
fn number(own: &MessageProcessor, name: &str, default: i64, compiler: &mut Compiler<'_>) -> Option<i64> {
    let Some(text) = own.parameter(name) else { return Some(default) };
    match text.trim().parse() {
        Ok(number) => Some(number),
        Err(_) => {
            let message = format!("the parameter `{name}` cannot be `{text}`");
            compiler.error("bad-value", message, own.span, "expected a whole number");
            None
        }
    }
}

/// A parameter that names a sequence.
fn sequence(own: &MessageProcessor, name: &str, compiler: &mut Compiler<'_>) -> Option<crate::SequenceRef> {
    let key = own.parameter(name)?;
    Some(compiler.sequence_key(&Key { value: key.trim().to_owned(), span: own.span }))
}

/// Runs the processors of the plan in force, and those of each one that comes after it, until `over`. It ends when what
/// they have begun has ended too.
pub async fn run(bus: Arc<Bus>, over: impl Future<Output = ()>) {
    let mut over = std::pin::pin!(over);
    let (busy, mut idle) = mpsc::channel(1);
    loop {
        let changed = bus.changed();
        let plan = bus.plan();
        let (stop, stopped) = watch::channel(false);
        let mut running = JoinSet::new();
        for processor in &plan.processors {
            let work = Work {
                processor: Arc::clone(processor),
                plan: Arc::clone(&plan),
                services: Arc::clone(bus.services()),
                stop: stopped.clone(),
                busy: busy.clone(),
            };
            running.spawn(work.run());
        }
        drop(plan);
        let ends = tokio::select! {
            () = &mut over => true,
            () = changed => false,
        };
        // Nobody may be listening any more.
        let _ = stop.send(true);
        while running.join_next().await.is_some() {}
        if ends {
            break;
        }
    }
    drop(busy);
    // Nothing is ever sent: this is the end of the last one that could.
    let _ = idle.recv().await;
}

impl Work {
    async fn run(self) {
        while self.processor.active.load(Ordering::Relaxed) {
            let next = async {
                match &self.processor.kind {
                    Kind::Forwarding(forwarding) => forwarding.next(&self).await,
                    Kind::Sampling(sampling) => sampling.next(&self).await,
                }
            };
            if let Err(why) = caught(pin!(next)).await {
                let name = &self.processor.name;
                crate::report::panicked("", name, &self.place(), "the message processor", &why);
            }
            if self.pause(self.processor.interval).await {
                return;
            }
        }
    }

    /// Waits; `true`: the processor is to stop.
    async fn pause(&self, time: Duration) -> bool {
        let mut stop = self.stop.clone();
        tokio::time::timeout(time, stop.wait_for(|stop| *stop)).await.is_ok()
    }

    /// The message that has waited longest.
    async fn peek(&self) -> Option<Arc<Message>> {
        match self.processor.store.peek().await {
            Ok(message) => message,
            Err(error) => {
                tracing::error!(processor = self.processor.name, place = self.place(), "{error}");
                None
            }
        }
    }

    async fn ack(&self, message: &Message) {
        if let Err(error) = self.processor.store.ack(&message.id).await {
            tracing::error!(processor = self.processor.name, place = self.place(), "{error}");
        }
    }

    fn place(&self) -> String {
        self.plan.place(self.processor.span)
    }

    /// The message as a flow works on it.
    fn context(&self, message: &Message) -> Box<Context> {
        let mut context = Context::of_stored(Arc::clone(&self.plan), Arc::clone(&self.services), message);
        context.handlers.push(self.plan.fault);
        context.properties.set("message.processor.name", message::Value::from(self.processor.name.as_str()));
        context
    }

    /// Runs a sequence on a message, and waits for all that it begins (branches, one-way calls); `true`: nothing of it failed.
    async fn through(&self, mut context: Box<Context>, list: ListId) -> bool {
        let begun = Begun::new(&mut context);
        let failed = matches!(run_branch(context, list).await, Branched::Failed(_));
        begun.outcome().await == Outcome::Completed && !failed
    }

    /// Takes the processor out of service until the configuration is loaded anew.
    fn deactivate(&self, why: &str) {
        tracing::error!(
            processor = self.processor.name,
            place = self.place(),
            "the message processor is deactivated: {why}"
        );
        self.processor.active.store(false, Ordering::Relaxed);
    }
}
