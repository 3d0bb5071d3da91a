//! The log of a run, and the panics of its thread.

use crate::network::lock;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, Once};

thread_local! {
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

#[derive(Clone, Default)]
pub struct Log {
    lines: Arc<Mutex<Vec<String>>>,
}

impl Log {
    pub fn lines(&self) -> Vec<String> {
        lock(&self.lines).clone()
    }

    /// Whether a line of the log tells what became of the message of that id: by the id itself in a fault sequence's line, or
    /// by the message id that the bus gave it.
    pub fn names(&self, id: &str) -> bool {
        let lines = lock(&self.lines);
        let mut given: HashMap<String, ()> = HashMap::new();
        for line in lines.iter() {
            let is_taken = line.contains("taken") && has_word(line, id);
            if let (true, Some(message)) = (is_taken, message_id(line)) {
                given.insert(message.to_owned(), ());
            }
        }
        lines.iter().any(|line| {
            !line.contains("taken")
                && (line.starts_with("WARN") || line.starts_with("ERROR"))
                && (has_word(line, id) || message_id(line).is_some_and(|message| given.contains_key(message)))
        })
    }

    /// Whether a message that waited in a store is named as given up at the end.
    pub fn gives_up(&self, id: &str) -> bool {
        let lines = lock(&self.lines);
        let taken = lines.iter().filter(|line| line.contains("taken") && has_word(line, id));
        let given: Vec<&str> = taken.filter_map(|line| message_id(line)).collect();
        let mut given_up = lines.iter().filter(|line| line.contains("given up"));
        given_up.any(|line| message_id(line).is_some_and(|message| given.contains(&message)))
    }

    /// Panics that the simulation did not make itself.
    pub fn panics(&self) -> Vec<String> {
        let mut all = PANICS.with_borrow_mut(std::mem::take);
        all.retain(|panic| !panic.contains(crate::panics::EXPECTED));
        all
    }
}

/// Takes down panics of simulated worlds instead of printing them.
pub fn record_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if tokio::runtime::Handle::try_current().is_ok() {
                PANICS.with_borrow_mut(|panics| panics.push(panic.to_string()));
            } else {
                before(panic);
            }
        }));
    });
}

fn has_word(line: &str, id: &str) -> bool {
    line.match_indices(id).any(|(at, _)| {
        let behind = line[at + id.len()..].chars().next();
        behind.is_none_or(|c| !c.is_ascii_digit() && c != '.')
    })
}

/// What a line says of the message it is about: as a field, or in the text of the flow's `log`.
fn message_id(line: &str) -> Option<&str> {
    let begin = line.find("urn:uuid:")?;
    line[begin..].split([' ', ',']).next()
}

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::INFO
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Fields(String);
        impl tracing::field::Visit for Fields {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                let text = format!("{value:?}");
                let _ = write!(self.0, " {}={}", field.name(), text.trim_matches('"'));
            }
        }
        let mut fields = Fields(event.metadata().level().to_string());
        event.record(&mut fields);
        lock(&self.lines).push(fields.0);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}
