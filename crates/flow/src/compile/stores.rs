//! Message stores: those in memory are made here, others by the registry.

use super::{Compiler, number};
use config::{MessageStore, StoreKind};
use diagnostics::Diagnostic;
use std::sync::Arc;
use stores::Store;

/// Compiles a message store; `None` after a recorded error.
pub(super) fn compile(store: &MessageStore, compiler: &mut Compiler<'_>) -> Option<Arc<dyn Store>> {
    check_failover(store, compiler);
    let name = &store.name.value;
    let place = match (store.kind, compiler.registry.stores) {
        (StoreKind::Memory, _) => return Some(compiler.services.stores.memory(name)),
        (StoreKind::Jdbc, Some(factory)) => return factory(store, compiler),
        (StoreKind::Jdbc, None) => "in a database",
        (StoreKind::Jms, _) => "in a JMS broker",
        (StoreKind::RabbitMq, _) => "in a RabbitMQ broker",
        (StoreKind::Resequencer, _) => "in a database, in the order of a number in them",
        (StoreKind::Custom, _) => "with a Java class",
    };
    let message = format!("the message store `{name}` is not executable yet: it keeps messages {place}");
    let span = store.class.as_ref().map_or(store.span, |class| class.span);
    let mut found = Diagnostic::error("unsupported-artifact", message)
        .at(span, "left out; without `class` it is in memory");
    if let (StoreKind::Custom, Some(class)) = (store.kind, &store.class) {
        found = found.did_you_mean(class, MessageStore::CLASSES);
    }
    compiler.diagnostics.push(found);
    None
}

const GUARANTEED: &str = "store.producer.guaranteed.delivery.enable";
const FAILOVER: &str = "store.failover.message.store.name";

/// Warns where no other store takes what this one cannot, although its parameters seem to say so.
fn check_failover(store: &MessageStore, compiler: &mut Compiler<'_>) {
    let written = |name: &str| store.parameters.iter().rev().find(|parameter| parameter.name == name);
    let text = |name: &str| {
        let parameter = written(name)?;
        Some((parameter.value.text().unwrap_or_default().trim(), parameter.span))
    };
    let other = text(FAILOVER).filter(|(other, _)| !other.is_empty());
    match (text(GUARANTEED), other) {
        (Some((on, span)), _) if number::truth(on).is_err() => {
            let message = format!("the parameter `{GUARANTEED}` should not be `{on}`");
            compiler.warning("bad-value", message, span, "expected true or false; this counts as false");
        }
        (Some((on, span)), None) if on.eq_ignore_ascii_case("true") => {
            let message =
                format!("the message store `{}` has no store for what it cannot take", store.name.value);
            compiler.warning("missing-parameter", message, span, format!("this needs `{FAILOVER}`"));
        }
        (Some((on, _)), Some((other, span))) if on.eq_ignore_ascii_case("true") => {
            let is_there = compiler.configuration.message_stores.get(other).is_some();
            if !is_there || other == store.name.value {
                let message =
                    format!("`{other}` cannot take what the message store `{}` cannot", store.name.value);
                let label = if is_there { "it is that store" } else { "there is no such message store" };
                compiler.warning("unknown-store", message, span, label);
            }
        }
        (None, Some((_, span))) => {
            let message = format!("the parameter `{FAILOVER}` has no effect");
            compiler.warning(
                "missing-parameter",
                message,
                span,
                format!("this needs `{GUARANTEED}` with `true`"),
            );
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::testing;

    #[test]
    fn a_store_for_what_another_one_cannot_take_is_checked() {
        const ON: &str = "store.producer.guaranteed.delivery.enable=true";
        for (parameters, says) in [
            (&[] as &[&str], ""),
            (&[ON, "store.failover.message.store.name=t"], ""),
            (&["store.producer.guaranteed.delivery.enable=False", "store.failover.message.store.name=x"], ""),
            (
                &[ON, "store.failover.message.store.name=x"],
                "unknown-store: `x` cannot take what the message store `s` cannot",
            ),
            (&[ON, "store.failover.message.store.name=s"], "unknown-store: `s` cannot take"),
            (&[ON], "missing-parameter: the message store `s` has no store"),
            (
                &[ON, "store.failover.message.store.name= "],
                "missing-parameter: the message store `s` has no store",
            ),
            (
                &["store.failover.message.store.name=t"],
                "missing-parameter: the parameter `store.failover.message.store.name` has no effect",
            ),
            (
                &["store.producer.guaranteed.delivery.enable=1"],
                "bad-value: the parameter `store.producer.guaranteed.delivery.enable` should not be `1`",
            ),
        ] {
            let parameters: String = parameters
                .iter()
                .filter_map(|given| given.split_once('='))
                .map(|(name, value)| format!("<parameter name='{name}'>{value}</parameter>"))
                .collect();
            // The other one is defined later.
            let stores =
                format!("<messageStore name='s'>{parameters}</messageStore><messageStore name='t'/>");
            let tested = testing::main(&testing::registry(Vec::new()), &format!("<drop/><!--top-->{stores}"));
            match says {
                "" => assert!(!tested.reports("store"), "{parameters}: {:?}", tested.found),
                says => assert!(tested.reports(says), "{parameters}: {:?}", tested.found),
            }
            assert!(tested.bus.plan().store("s").is_some(), "{parameters}");
        }
    }
}
