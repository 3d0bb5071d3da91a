//! Message stores: those in memory are made here, others by the registry.

use super::Compiler;
use config::{MessageStore, StoreKind};
use std::sync::Arc;
use stores::Store;

/// Compiles a message store; `None` after a recorded error.
pub(super) fn compile(store: &MessageStore, compiler: &mut Compiler<'_>) -> Option<Arc<dyn Store>> {
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
    compiler.error("unsupported-artifact", message, span, "left out; without `class` it is in memory");
    None
}
