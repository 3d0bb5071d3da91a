//! `<messageStore>`: where messages wait.

use super::Reading;
use crate::element::Element;
use crate::parameter::{self, Parameter};
use crate::read::{self, Shape};
use crate::value::Key;
use diagnostics::Span;

/// A message store.
#[derive(Clone, Debug)]
pub struct MessageStore {
    /// Its name.
    pub name: Key,
    /// The Java class as written.
    pub class: Option<Key>,
    /// The kind of the class.
    pub kind: StoreKind,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// The documentation.
    pub description: Option<String>,
    /// The whole element.
    pub span: Span,
}

/// The kinds of message stores.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum StoreKind {
    /// In memory (also without a class).
    Memory,
    /// A JMS destination.
    Jms,
    /// A RabbitMQ queue.
    RabbitMq,
    /// A table.
    Jdbc,
    /// A table, read in the order of an id.
    Resequencer,
    /// The user's class.
    Custom,
}

pub(crate) const SHAPE: Shape = Shape {
    attributes: &["name", "class", "sequence", "description"],
    elements: &["description", "parameter"],
};

impl MessageStore {
    /// The classes that the bus has a store for, by the names that WSO2 writes.
    pub const CLASSES: [&str; 2] = [
        "org.apache.synapse.message.store.impl.memory.InMemoryStore",
        "org.apache.synapse.message.store.impl.jdbc.JDBCMessageStore",
    ];

    /// The text of a parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        parameter::text_of(&self.parameters, name)
    }

    pub(crate) fn parse(element: &Element, reading: &mut Reading<'_>) -> Option<MessageStore> {
        SHAPE.check(element, reading.diagnostics);
        let name = read::required(element, "name", reading.diagnostics);
        let class = read::optional(element, "class");
        let kind = match class.as_ref().and_then(|class| class.rsplit('.').next()) {
            None | Some("InMemoryStore" | "InMemoryMessageStore") => StoreKind::Memory,
            Some("JmsStore" | "JMSMessageStore") => StoreKind::Jms,
            Some("RabbitMQStore" | "RabbitMQMessageStore") => StoreKind::RabbitMq,
            Some("JDBCMessageStore") => StoreKind::Jdbc,
            Some("ResequenceMessageStore") => StoreKind::Resequencer,
            Some(_) => StoreKind::Custom,
        };
        Some(MessageStore {
            class,
            kind,
            parameters: Parameter::children(element, reading.injector, reading.diagnostics),
            description: super::description(element),
            span: element.span(),
            name: name?,
        })
    }
}
