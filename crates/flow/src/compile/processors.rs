//! Message processors.

use super::Compiler;
use super::number::{self, COUNT, MILLISECONDS, Unit};
use crate::runtime::processor::{
    Failover, Forwarding, Pace, Processor, ProcessorWork, RECIPIENTS, Sampling, StoreConnection,
};
use crate::runtime::reference::SequenceRef;
use crate::state::identity::Identity;
use config::{ArtifactKind, Key, MessageProcessor, ProcessorKind};
use diagnostics::{Diagnostic, Span};
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;
use stores::Store;

/// Shortest pause between two looks into a store.
const SHORTEST: Duration = Duration::from_millis(1);

/// Parameters that have a meaning.
const PARAMETERS: &[&str] = &[
    "interval",
    "cronExpression",
    "throttle.interval",
    "client.retry.interval",
    "max.delivery.attempts",
    "max.deliver.attempts",
    "max.delivery.drop",
    "max.deliver.drop",
    "message.processor.reply.sequence",
    "message.processor.fault.sequence",
    "message.processor.deactivate.sequence",
    "message.processor.failMessagesStore",
    "non.retry.status.codes",
    "is.active",
    "target.endpoint",
    "concurrency",
    "sequence",
    "message.target.store.name",
    "max.store.connection.attempts",
    "store.connection.retry.interval",
    "pinnedServers",
];

/// Parameters that WSO2 needs, and their reasons.
const NOT_NEEDED: &[(&str, &str)] = &[
    ("throttle", "`interval` is the time between two messages, however short it is"),
    ("member.count", "one after the other keeps the order of the messages"),
    ("axis2.repo", CLIENT),
    ("axis2.config", CLIENT),
    ("quartz.conf", "there is no Quartz"),
];
const CLIENT: &str = "messages are sent as all others are";

/// Compiles a processor; `None` after a recorded error.
pub(super) fn compile(processor: &MessageProcessor, compiler: &mut Compiler<'_>) -> Option<Processor> {
    let name = processor.name.value.clone();
    let key = &processor.message_store.value;
    let Some(store) = compiler.stores.get(key).cloned() else {
        let why = match compiler.configuration.message_stores.get(key) {
            Some(_) => "the store is left out",
            None => "there is no such message store",
        };
        let store = &processor.message_store;
        let message = format!("the message processor `{name}` takes no messages from `{}`", store.value);
        compiler.error("unknown-store", message, store.span, why);
        return None;
    };
    if processor.kind != ProcessorKind::Custom {
        check_names(processor, compiler);
    }
    let kind = match processor.kind {
        ProcessorKind::Forwarding => {
            forwarding(processor, compiler).map(Box::new).map(ProcessorWork::Forwarding)
        }
        ProcessorKind::Sampling => sampling(processor, compiler).map(ProcessorWork::Sampling),
        ProcessorKind::Failover => failover(processor, compiler).map(ProcessorWork::Failover),
        ProcessorKind::Custom => {
            let message =
                format!("the message processor `{name}` is not executable here: it is a class of Java");
            let found = Diagnostic::error("unsupported-artifact", message)
                .at(processor.class.span, "expected a forwarding, sampling or failover processor")
                .did_you_mean(&processor.class, MessageProcessor::CLASSES);
            compiler.diagnostics.push(found);
            return None;
        }
    };
    let active = is_active(processor, compiler);
    // All that is wrong is said at once.
    let (pace, kind) = (pace(processor, compiler)?, kind?);
    let connection = connection(processor, compiler)?;
    let states = &compiler.services.states;
    let messages = match store.place() {
        Some(place) => Identity::of(ArtifactKind::MessageStore, "").part(&place),
        None => Identity::of(ArtifactKind::MessageStore, &processor.message_store.value),
    };
    Some(Processor {
        store,
        connection,
        claim: states.get(&messages),
        activation: states.get(compiler.artifact_identity()),
        written: (active, definition(processor)),
        span: processor.span,
        name,
        pace,
        kind,
    })
}

/// `cronExpression`, else `interval`.
fn pace(processor: &MessageProcessor, compiler: &mut Compiler<'_>) -> Option<Pace> {
    let written = processor.parameters.iter().rev().find(|parameter| parameter.name == "cronExpression");
    let expression = written.and_then(|parameter| match &parameter.value {
        config::ParameterValue::Text(key) => Some(key).filter(|key| !key.is_empty()),
        _ => None,
    });
    let Some(expression) = expression else {
        if text(processor, "throttle.interval").is_some_and(|written| written != "-1") {
            compiler.warning(
                "ignored-parameter",
                "the parameter `throttle.interval` has no effect",
                place(processor, "throttle.interval"),
                "it is for `cronExpression`: without that, `interval` is the time between two messages",
            );
        }
        return Some(Pace::Interval(milliseconds(processor, "interval", 1000, compiler)?.max(SHORTEST)));
    };
    // -1 is what WSO2 has for none.
    let between = match processor.parameter("throttle.interval").map(str::trim) {
        Some("-1") => Duration::ZERO,
        _ => milliseconds(processor, "throttle.interval", 0, compiler)?,
    };
    let (cron, zone) = super::tasks::cron(expression, None, compiler)?;
    Some(Pace::Cron { cron, zone, between })
}

/// `is.active`: `true` in any case; all else is false, as in WSO2.
fn is_active(processor: &MessageProcessor, compiler: &mut Compiler<'_>) -> bool {
    let Some(text) = processor.parameter("is.active") else { return true };
    number::truth(text).unwrap_or_else(|near| {
        doubtful(
            processor,
            "is.active",
            "counts as false; expected true or false",
            near.map(|near| near.to_string()),
            compiler,
        );
        false
    })
}

/// The text of a parameter; blank counts as absent.
fn text<'a>(processor: &'a MessageProcessor, name: &str) -> Option<&'a str> {
    processor.parameter(name).map(str::trim).filter(|text| !text.is_empty())
}

/// Where a parameter is written, else the processor.
fn place(processor: &MessageProcessor, name: &str) -> Span {
    let written = processor.parameters.iter().rev().find(|parameter| parameter.name == name);
    written.map_or(processor.span, |parameter| match &parameter.value {
        config::ParameterValue::Text(key) => key.span,
        _ => parameter.span,
    })
}

/// Records that the value of a parameter is wrong.
fn wrong(
    processor: &MessageProcessor,
    name: &str,
    expected: &str,
    near: Option<String>,
    compiler: &mut Compiler<'_>,
) {
    let text = text(processor, name).unwrap_or_default();
    let error = Diagnostic::error("bad-value", format!("the parameter `{name}` cannot be `{text}`"));
    let mut error = error.at(place(processor, name), format!("expected {expected}"));
    error.help.extend(near.map(|near| format!("did you mean `{near}`?")));
    compiler.diagnostics.push(error);
}

/// Records that the value of a parameter counts as another one.
fn doubtful(
    processor: &MessageProcessor,
    name: &str,
    label: &str,
    near: Option<String>,
    compiler: &mut Compiler<'_>,
) {
    let text = text(processor, name).unwrap_or_default();
    let warning = Diagnostic::warning("bad-value", format!("the parameter `{name}` should not be `{text}`"));
    let mut warning = warning.at(place(processor, name), label.to_owned());
    warning.help.extend(near.map(|near| format!("did you mean `{near}`?")));
    compiler.diagnostics.push(warning);
}

fn check_names(processor: &MessageProcessor, compiler: &mut Compiler<'_>) {
    let mut seen = HashSet::new();
    for parameter in &processor.parameters {
        let name = parameter.name.as_str();
        if !seen.insert(name) {
            let message = format!("the parameter `{name}` is there twice");
            compiler.warning("duplicate-parameter", message, parameter.span, "this one counts");
        }
        compiler.check_parameter("a message processor", parameter, PARAMETERS, NOT_NEEDED);
    }
}

/// A hash of what a processor is configured to do.
fn definition(processor: &MessageProcessor) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    processor.class.value.hash(&mut hasher);
    processor.message_store.value.hash(&mut hasher);
    processor.target_endpoint.as_ref().map(|key| &key.value).hash(&mut hasher);
    for parameter in &processor.parameters {
        (&parameter.name, parameter.value.text()).hash(&mut hasher);
    }
    hasher.finish()
}

/// A parameter that is a time. `None` after a recorded error.
fn milliseconds(
    processor: &MessageProcessor,
    name: &str,
    default: u64,
    compiler: &mut Compiler<'_>,
) -> Option<Duration> {
    Some(Duration::from_millis(number(processor, name, default, MILLISECONDS, compiler)?))
}

/// A parameter that is a whole number. `None` after a recorded error.
fn number(
    processor: &MessageProcessor,
    name: &str,
    default: u64,
    unit: Unit,
    compiler: &mut Compiler<'_>,
) -> Option<u64> {
    let Some(text) = text(processor, name) else { return Some(default) };
    match unit.parse(text) {
        Ok(number) => Some(number),
        Err(near) => {
            wrong(processor, name, &unit.expected(), near.map(|near| near.to_string()), compiler);
            None
        }
    }
}

/// A parameter that names a sequence.
fn sequence(processor: &MessageProcessor, name: &str, compiler: &mut Compiler<'_>) -> Option<SequenceRef> {
    let key = processor.parameter(name)?;
    Some(compiler.sequence_key(&Key { value: key.trim().to_owned(), span: place(processor, name) }))
}

fn forwarding(processor: &MessageProcessor, compiler: &mut Compiler<'_>) -> Option<Forwarding> {
    let named = processor
        .parameter("target.endpoint")
        .map(|key| Key { value: key.trim().to_owned(), span: processor.span });
    let key = processor.target_endpoint.clone().or(named);
    if let Some(key) = &key
        && let Some(target) = compiler.configuration.endpoints.get(&key.value)
        && matches!(target.kind, config::EndpointKind::RecipientList(_))
    {
        compiler.error("bad-value", RECIPIENTS, processor.span, "expected an endpoint that gives one answer");
        return None;
    }
    let endpoint = key.map(|key| compiler.endpoint_key(&key));
    let attempts = attempts(processor, 4, compiler);
    let retry = milliseconds(processor, "client.retry.interval", 1000, compiler);
    let drop = drops(processor, compiler);
    let failed = match processor.parameter("message.processor.failMessagesStore") {
        None => Some(None),
        Some(_) => other_store(processor, "message.processor.failMessagesStore", compiler).map(Some),
    };
    let codes = text(processor, "non.retry.status.codes").unwrap_or_default();
    let codes = codes.split(',').map(str::trim).filter(|code| !code.is_empty());
    let status = |code: &str| code.parse::<u16>().ok().filter(|code| (100..1000).contains(code));
    let accepted: Option<Vec<u16>> = codes.map(status).collect();
    if accepted.is_none() {
        let expected = "status codes, with commas between them: 400, 404";
        wrong(processor, "non.retry.status.codes", expected, None, compiler);
    }
    Some(Forwarding {
        endpoint,
        drop,
        reply: sequence(processor, "message.processor.reply.sequence", compiler),
        fault: sequence(processor, "message.processor.fault.sequence", compiler),
        deactivate: sequence(processor, "message.processor.deactivate.sequence", compiler),
        retry: retry?,
        attempts: attempts?,
        failed: failed?,
        accepted: accepted?,
    })
}

fn failover(processor: &MessageProcessor, compiler: &mut Compiler<'_>) -> Option<Failover> {
    let name = "message.target.store.name";
    if text(processor, name) == Some(processor.message_store.value.as_str()) {
        let message = format!(
            "the message processor `{}` moves messages to the store that it takes them from",
            processor.name.value
        );
        compiler.error("bad-value", message, place(processor, name), "expected another message store");
        return None;
    }
    let target = other_store(processor, name, compiler);
    let retry = milliseconds(processor, "client.retry.interval", 1000, compiler);
    Some(Failover {
        attempts: attempts(processor, 0, compiler)?,
        target: target?,
        retry: retry?,
        drop: drops(processor, compiler),
        fault: sequence(processor, "message.processor.fault.sequence", compiler),
        deactivate: sequence(processor, "message.processor.deactivate.sequence", compiler),
    })
}

/// What a processor does while its store cannot be used. `None` after a recorded error.
fn connection(processor: &MessageProcessor, compiler: &mut Compiler<'_>) -> Option<StoreConnection> {
    let retry = milliseconds(processor, "store.connection.retry.interval", 1000, compiler)?.max(SHORTEST);
    Some(StoreConnection { retry, attempts: most(processor, "max.store.connection.attempts", 0, compiler)? })
}

/// The one of two spellings that is used; WSO2 reads the first one only.
fn either(processor: &MessageProcessor, first: &'static str, second: &'static str) -> &'static str {
    if processor.parameter(first).is_some() { first } else { second }
}

/// The most attempts to deliver a message; `Some(None)`: without end. `None` after a recorded error.
fn attempts(processor: &MessageProcessor, default: u64, compiler: &mut Compiler<'_>) -> Option<Option<u32>> {
    most(processor, either(processor, "max.delivery.attempts", "max.deliver.attempts"), default, compiler)
}

/// A parameter that is a number of attempts; `Some(None)`: without end. `None` after a recorded error.
fn most(
    processor: &MessageProcessor,
    name: &'static str,
    default: u64,
    compiler: &mut Compiler<'_>,
) -> Option<Option<u32>> {
    // Less than none is without end, as in WSO2.
    let most = match processor.parameter(name).and_then(|text| text.trim().parse::<i64>().ok()) {
        Some(below) if below < 0 => 0,
        _ => number(processor, name, default, COUNT, compiler)?,
    };
    Some(u32::try_from(most).ok().filter(|&most| most > 0))
}

/// Whether a message is dropped after its last attempt.
fn drops(processor: &MessageProcessor, compiler: &mut Compiler<'_>) -> bool {
    let name = either(processor, "max.delivery.drop", "max.deliver.drop");
    text(processor, name).is_some_and(|word| match word {
        "Enabled" => true,
        "Disabled" => false,
        word => {
            let truth = number::truth(word).or_else(|near| near.ok_or(()));
            let near = truth.map(|truth| if truth { "Enabled" } else { "Disabled" }).ok();
            let near = near.or_else(|| diagnostics::nearest(word, ["Enabled", "Disabled"]));
            let label = "counts as Disabled, as in WSO2; expected Enabled or Disabled";
            doubtful(processor, name, label, near.map(str::to_owned), compiler);
            false
        }
    })
}

/// The store that a parameter names. `None` after a recorded error.
fn other_store(
    processor: &MessageProcessor,
    parameter: &'static str,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<dyn Store>> {
    let name = processor.parameter(parameter).unwrap_or_default().trim();
    if let Some(store) = compiler.stores.get(name) {
        return Some(Arc::clone(store));
    }
    let word = parameter.rsplit("processor.").next().unwrap_or(parameter);
    let message = format!("the {word} `{name}` cannot be used");
    compiler.error("unknown-store", message, place(processor, parameter), "no message store that is there");
    None
}

fn sampling(processor: &MessageProcessor, compiler: &mut Compiler<'_>) -> Option<Sampling> {
    Some(Sampling {
        sequence: sequence(processor, "sequence", compiler)?,
        concurrency: concurrency(processor, compiler),
    })
}

/// The parameter `concurrency`; what is not a number is 1, as in WSO2.
fn concurrency(processor: &MessageProcessor, compiler: &mut Compiler<'_>) -> u64 {
    let Some(text) = text(processor, "concurrency") else { return 1 };
    let (count, label) = match text.parse::<i64>() {
        Ok(count) if count > 0 => return count.unsigned_abs(),
        Ok(_) => (0, "no message is ever taken"),
        Err(_) => (1, "counts as 1; expected a whole number"),
    };
    let near = COUNT.at_least_one().parse(text).err().flatten().map(|near| near.to_string());
    doubtful(processor, "concurrency", label, near, compiler);
    count
}

#[cfg(test)]
mod tests {
    use crate::testing::{self, Tested};

    fn tested(kind: &str, parameters: &str) -> Tested {
        let registry = testing::registry(Vec::new());
        let given = parameters.split(';').filter(|pair| !pair.is_empty());
        let parameters: String = given
            .map(|pair| pair.split_once('=').unwrap())
            .map(|(name, value)| format!("<parameter name='{name}'>{value}</parameter>"))
            .collect();
        let synapse = config::SYNAPSE;
        let text = format!(
            "<definitions xmlns='{synapse}'><messageStore name='M'/><messageStore name='N'/><sequence name='S'/><sequence name='main'/><sequence name='fault'/>\
             <endpoint name='E'><address uri='http://127.0.0.1:1/'/></endpoint>\
             <messageProcessor name='P' class='org.apache.synapse.message.processor.impl.{kind}' messageStore='M' {}>{parameters}\
             </messageProcessor></definitions>",
            if kind.starts_with("forwarder") { "targetEndpoint='E'" } else { "" }
        );
        testing::configuration(&registry, &text)
    }

    const FORWARDING: &str = "forwarder.ScheduledMessageForwardingProcessor";
    const SAMPLING: &str = "sampler.SamplingProcessor";
    const FAILOVER: &str = "failover.FailoverScheduledMessageForwardingProcessor";

    #[test]
    fn good_parameters() {
        for (kind, parameters) in [
            (FORWARDING, ""),
            (
                FORWARDING,
                "interval=1;client.retry.interval=0;max.delivery.attempts=-1;max.delivery.drop=Enabled",
            ),
            (FORWARDING, "cronExpression=0 0 6 * * ?;throttle.interval=-1;is.active=FALSE"),
            (FORWARDING, "interval=5;throttle.interval=-1"),
            (SAMPLING, "sequence=S;max.store.connection.attempts=5;store.connection.retry.interval=5"),
            (FORWARDING, "cronExpression=0 0 6 * * ?;throttle.interval=50;non.retry.status.codes=400, 404,"),
            (FAILOVER, "message.target.store.name=N"),
            (
                FAILOVER,
                "message.target.store.name=N;interval=10;client.retry.interval=5;max.delivery.attempts=2;max.delivery.drop=Enabled;message.processor.deactivate.sequence=S",
            ),
            (FORWARDING, "interval=;cronExpression=;max.delivery.attempts=;is.active=true"),
            (
                FORWARDING,
                "message.processor.reply.sequence=S;message.processor.fault.sequence=S;message.processor.deactivate.sequence=S;message.processor.failMessagesStore=M",
            ),
            (FORWARDING, "target.endpoint=E;pinnedServers=a"),
            (SAMPLING, "sequence=S;concurrency=2;interval=0"),
        ] {
            let tested = tested(kind, parameters);
            assert!(tested.found.is_empty(), "{parameters}: {:?}", tested.found);
            assert_eq!(tested.bus.plan().processors().len(), 1, "{parameters}");
        }
    }

    #[test]
    fn a_pause_between_messages_without_times_says_that_it_has_no_effect() {
        for parameters in ["interval=5;throttle.interval=50", "throttle.interval=x;cronExpression="] {
            let tested = tested(FORWARDING, parameters);
            let says = "ignored-parameter: the parameter `throttle.interval` has no effect";
            assert!(tested.reports(says), "{parameters}: {:?}", tested.found);
            assert_eq!(tested.bus.plan().processors().len(), 1, "{parameters}");
        }
    }

    #[test]
    fn all_that_is_wrong_is_said_at_once() {
        let tested = tested(
            FORWARDING,
            "max.delivery.attempts=often;interval=soon;client.retry.interval=later;non.retry.status.codes=4x4",
        );
        for (name, value) in [
            ("max.delivery.attempts", "often"),
            ("interval", "soon"),
            ("client.retry.interval", "later"),
            ("non.retry.status.codes", "4x4"),
        ] {
            let says = format!("bad-value: the parameter `{name}` cannot be `{value}`");
            assert!(tested.reports(&says), "{name}: {:?}", tested.found);
        }
    }

    #[test]
    fn what_loading_says() {
        let error =
            |name: &str, value: &str| format!("bad-value: the parameter `{name}` cannot be `{value}`");
        let times = ["interval", "client.retry.interval", "throttle.interval"];
        for name in times {
            for value in ["-5", "x", "1.5", "1s", "9223372036854775807", "18446744073709551616"] {
                let cron = if name == "throttle.interval" { ";cronExpression=0 0 6 * * ?" } else { "" };
                let tested = tested(FORWARDING, &format!("{name}={value}{cron}"));
                assert!(tested.reports(&error(name, value)), "{name}={value}: {:?}", tested.found);
                assert!(
                    tested
                        .reasons
                        .iter()
                        .any(|reason| reason == "expected whole milliseconds, 0 to 315360000000")
                );
                assert_eq!(tested.bus.plan().processors().len(), 0, "{name}={value}");
            }
        }
        for (kind, parameters, says, label, count) in [
            (
                FORWARDING,
                "max.delivery.attempts=often",
                &*error("max.delivery.attempts", "often"),
                "a whole number",
                0,
            ),
            (
                FORWARDING,
                "max.deliver.attempts=5000000000",
                &error("max.deliver.attempts", "5000000000"),
                "0 to 4294967295",
                0,
            ),
            (
                FORWARDING,
                "max.delivery.drop=enabled",
                "bad-value: the parameter `max.delivery.drop` should not be `enabled`",
                "counts as Disabled",
                1,
            ),
            (
                FORWARDING,
                "max.delivery.drop=true",
                "bad-value: the parameter `max.delivery.drop` should not be `true`",
                "counts as Disabled",
                1,
            ),
            (
                FORWARDING,
                "is.active=yes",
                "bad-value: the parameter `is.active` should not be `yes`",
                "counts as false",
                1,
            ),
            (
                FORWARDING,
                "non.retry.status.codes=404;non.retry.status.codes=4xx",
                "duplicate-parameter",
                "this one counts",
                0,
            ),
            (
                FORWARDING,
                "non.retry.status.codes=404 500",
                &error("non.retry.status.codes", "404 500"),
                "commas between them",
                0,
            ),
            (
                FORWARDING,
                "non.retry.status.codes=99999",
                &error("non.retry.status.codes", "99999"),
                "commas between them",
                0,
            ),
            (FORWARDING, "cronExpression=0 0 25 * * ?", "bad-cron: ", "", 0),
            (FORWARDING, "cronExpression=0 0 0 1 1 ? 1999", "never-due: ", "it never runs", 1),
            (
                FORWARDING,
                "message.processor.failMessagesStore=X",
                "unknown-store: the failMessagesStore `X` cannot be used",
                "no message store that is there",
                0,
            ),
            (
                FORWARDING,
                "intervall=5",
                "unknown-parameter: a message processor has no parameter `intervall`",
                "no effect",
                1,
            ),
            (
                FORWARDING,
                "Interval=5",
                "unknown-parameter: a message processor has no parameter `Interval`",
                "no effect",
                1,
            ),
            (
                FORWARDING,
                "member.count=5",
                "not-needed: the parameter `member.count` has no effect",
                "order",
                1,
            ),
            (FORWARDING, "throttle=true", "not-needed: ", "however short", 1),
            (
                FORWARDING,
                "store.connection.retry.interval=soon",
                &error("store.connection.retry.interval", "soon"),
                "expected",
                0,
            ),
            (FORWARDING, "axis2.repo=x;axis2.config=y", "not-needed: ", "as all others", 1),
            (FORWARDING, "quartz.conf=x", "not-needed: ", "Quartz", 1),
            (
                SAMPLING,
                "sequence=S;concurrency=0",
                "bad-value: the parameter `concurrency` should not be `0`",
                "no message is ever taken",
                1,
            ),
            (
                SAMPLING,
                "sequence=S;concurrency=-1",
                "bad-value: the parameter `concurrency` should not be `-1`",
                "no message is ever taken",
                1,
            ),
            (
                SAMPLING,
                "sequence=S;concurrency=many",
                "bad-value: the parameter `concurrency` should not be `many`",
                "counts as 1",
                1,
            ),
            (
                FAILOVER,
                "interval=1000",
                "missing-parameter: the processor needs the parameter `message.target.store.name`",
                "is missing",
                0,
            ),
            (
                FAILOVER,
                "message.target.store.name=X",
                "unknown-store: the message.target.store.name `X` cannot be used",
                "no message store that is there",
                0,
            ),
            (
                FAILOVER,
                "message.target.store.name=M",
                "bad-value: the message processor `P` moves messages to the store that it takes them from",
                "another",
                0,
            ),
            (
                SAMPLING,
                "concurrency=1",
                "missing-parameter: the processor needs the parameter `sequence`",
                "is missing",
                0,
            ),
        ] {
            let tested = tested(kind, parameters);
            assert!(tested.reports(says), "{parameters}: {:?}", tested.found);
            assert!(
                tested.reasons.iter().any(|reason| reason.contains(label)),
                "{parameters}: {:?}",
                tested.reasons
            );
            assert_eq!(tested.bus.plan().processors().len(), count, "{parameters}: {:?}", tested.found);
        }
    }
}
