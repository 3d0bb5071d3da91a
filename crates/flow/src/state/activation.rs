//! Whether an artifact runs: as its definition says, until somebody decides otherwise.

use crate::state::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// The activation of a proxy service or a message processor. It belongs to the identity of the artifact, so what was
/// decided stays decided when the configuration is loaded again.
#[derive(Debug, Default)]
pub struct Activation {
    on: AtomicBool,
    /// What the definition in force says, and a number for this definition.
    written: Mutex<Option<(bool, u64)>>,
    changed: Notify,
}

impl Activation {
    /// Whether it runs.
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Starts or stops it.
    pub fn switch(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
        self.changed.notify_waiters();
    }

    /// A definition comes into force. One that is another than before decides anew.
    pub(crate) fn defined(&self, on: bool, definition: u64) {
        let before = lock(&self.written).replace((on, definition));
        if before != Some((on, definition)) {
            self.switch(on);
        }
    }

    /// Resolves when it is switched after this call.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_stands_until_the_definition_changes() {
        let activation = Activation::default();
        for (definition, switched, wanted) in [
            (Some((true, 1)), None, true),
            (None, Some(false), false),
            (Some((true, 1)), None, false),
            (Some((true, 2)), None, true),
            (Some((false, 2)), None, false),
            (None, Some(true), true),
            (Some((false, 2)), None, true),
        ] {
            if let Some((on, definition)) = definition {
                activation.defined(on, definition);
            }
            if let Some(on) = switched {
                activation.switch(on);
            }
            assert_eq!(activation.is_on(), wanted, "{definition:?} {switched:?}");
        }
    }
}
