//! Message processors.

use super::Compiler;
use crate::runtime::processor::{Forwarding, Kind, Pace, Processor, RECIPIENTS, Sampling};
use crate::runtime::reference::SequenceRef;
use crate::state::identity::Identity;
use config::{ArtifactKind, Key, MessageProcessor, ProcessorKind};
use std::hash::{Hash, Hasher};
use std::time::Duration;

/// Shortest pause between two looks into a store.
const SHORTEST: Duration = Duration::from_millis(1);

/// Compiles a processor; `None` after a recorded error.
pub(super) fn compile(own: &MessageProcessor, compiler: &mut Compiler<'_>) -> Option<Processor> {
    let name = own.name.value.clone();
    let store = compiler.configuration.message_stores.get(&own.message_store.value);
    let unusable = match store.map(|store| store.kind) {
        Some(config::StoreKind::Memory) => None,
        Some(_) => Some("the store is left out"),
        None => Some("there is no such message store"),
    };
    if let Some(why) = unusable {
        let store = &own.message_store;
        let message = format!("the message processor `{name}` takes no messages from `{}`", store.value);
        compiler.error("unknown-store", message, store.span, why);
        return None;
    }
    let kind = match own.kind {
        ProcessorKind::Forwarding => Kind::Forwarding(Box::new(forwarding(own, compiler)?)),
        ProcessorKind::Sampling => Kind::Sampling(sampling(own, compiler)?),
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
    let pace = pace(own, compiler)?;
    let states = &compiler.services.states;
    let store = Identity::of(ArtifactKind::MessageStore, &own.message_store.value);
    Some(Processor {
        store: compiler.services.stores.memory(&own.message_store.value),
        claim: states.get(&store),
        activation: states.get(compiler.artifact_identity()),
        written: (own.parameter("is.active").is_none_or(is_true), definition(own)),
        span: own.span,
        name,
        pace,
        kind,
    })
}

/// `cronExpression`, else `interval`.
fn pace(own: &MessageProcessor, compiler: &mut Compiler<'_>) -> Option<Pace> {
    let written = own.parameters.iter().rev().find(|parameter| parameter.name == "cronExpression");
    let expression = written.and_then(|parameter| match &parameter.value {
        config::ParameterValue::Text(key) => Some(key).filter(|key| !key.is_empty()),
        _ => None,
    });
    let Some(expression) = expression else {
        return Some(Pace::Interval(milliseconds(own, "interval", 1000, compiler)?.max(SHORTEST)));
    };
    let between = milliseconds(own, "throttle.interval", -1, compiler)?;
    let (cron, zone) = super::tasks::cron(expression, None, compiler)?;
    Some(Pace::Cron { cron, zone, between })
}

/// `true` in any case; all else is false, as in WSO2.
fn is_true(text: &str) -> bool {
    text.trim().eq_ignore_ascii_case("true")
}

/// A number for what a processor is told to do.
fn definition(own: &MessageProcessor) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    own.class.value.hash(&mut hasher);
    own.message_store.value.hash(&mut hasher);
    own.target_endpoint.as_ref().map(|key| &key.value).hash(&mut hasher);
    for parameter in &own.parameters {
        (&parameter.name, parameter.value.text()).hash(&mut hasher);
    }
    hasher.finish()
}

/// A parameter that is a time.
fn milliseconds(
    own: &MessageProcessor,
    name: &str,
    default: i64,
    compiler: &mut Compiler<'_>,
) -> Option<Duration> {
    Some(Duration::from_millis(u64::try_from(number(own, name, default, compiler)?).unwrap_or(0)))
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
fn sequence(own: &MessageProcessor, name: &str, compiler: &mut Compiler<'_>) -> Option<SequenceRef> {
    let key = own.parameter(name)?;
    Some(compiler.sequence_key(&Key { value: key.trim().to_owned(), span: own.span }))
}

fn forwarding(own: &MessageProcessor, compiler: &mut Compiler<'_>) -> Option<Forwarding> {
    let named =
        own.parameter("target.endpoint").map(|key| Key { value: key.trim().to_owned(), span: own.span });
    let key = own.target_endpoint.clone().or(named);
    if let Some(key) = &key
        && let Some(target) = compiler.configuration.endpoints.get(&key.value)
        && matches!(target.kind, config::EndpointKind::RecipientList(_))
    {
        compiler.error("bad-value", RECIPIENTS, own.span, "expected an endpoint that gives one answer");
        return None;
    }
    let endpoint = key.map(|key| compiler.endpoint_key(&key));
    // Both spellings are in use; WSO2 reads the first ones only.
    let either = |first: &'static str, second: &'static str| {
        if own.parameter(first).is_some() { first } else { second }
    };
    let attempts = number(own, either("max.delivery.attempts", "max.deliver.attempts"), 4, compiler)?;
    let drop = own.parameter(either("max.delivery.drop", "max.deliver.drop"));
    let failed = match own.parameter("message.processor.failMessagesStore").map(str::trim) {
        None => None,
        Some(name)
            if compiler
                .configuration
                .message_stores
                .get(name)
                .is_some_and(|store| store.kind == config::StoreKind::Memory) =>
        {
            Some(compiler.services.stores.memory(name))
        }
        Some(name) => {
            let message = format!("the failMessagesStore `{name}` cannot be used");
            compiler.error("unknown-store", message, own.span, "no in-memory message store");
            return None;
        }
    };
    let accepted = own.parameter("non.retry.status.codes").unwrap_or_default();
    Some(Forwarding {
        endpoint,
        retry: milliseconds(own, "client.retry.interval", 1000, compiler)?,
        attempts: u32::try_from(attempts).ok().filter(|&most| most > 0),
        drop: drop.is_some_and(|own| own.trim() == "Enabled"),
        failed,
        reply: sequence(own, "message.processor.reply.sequence", compiler),
        fault: sequence(own, "message.processor.fault.sequence", compiler),
        deactivate: sequence(own, "message.processor.deactivate.sequence", compiler),
        accepted: accepted.split(',').filter_map(|own| own.trim().parse().ok()).collect(),
    })
}

fn sampling(own: &MessageProcessor, compiler: &mut Compiler<'_>) -> Option<Sampling> {
    Some(Sampling { sequence: sequence(own, "sequence", compiler)?, concurrency: concurrency(own, compiler) })
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
