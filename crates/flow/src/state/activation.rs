//! Whether an artifact runs: as its definition says, until an administrator decides otherwise.

use crate::state::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// The activation of a proxy service, an API, a message processor, a task or an inbound endpoint. It belongs to the identity of the
/// artifact, so what was decided stays decided when the configuration is loaded again.
#[derive(Debug, Default)]
pub struct Activation {
    on: AtomicBool,
    state: Mutex<Decisions>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Decisions {
    /// What the definition in force says.
    written: Option<Written>,
    /// An administrator has started or stopped it since.
    decided: bool,
    /// What was decided in a process before this one.
    before: Option<Decision>,
}

/// What a definition says of whether its artifact runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// It runs.
    pub on: bool,
    /// A number for this definition; the same one in each process.
    pub definition: u64,
}

/// A decision: the artifact was started or stopped by an administrator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// It was started.
    pub on: bool,
    /// What its definition said then: another one decides anew.
    pub written: Written,
}

impl Activation {
    /// Whether it runs.
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// An administrator starts or stops it.
    pub fn decide(&self, on: bool) {
        lock(&self.state).decided = true;
        self.switch(on);
    }

    /// The decision of an administrator, where the definition in force is still the one that it was made for; before there is a definition, the decision in a process before.
    pub fn decision(&self) -> Option<Decision> {
        let state = lock(&self.state);
        match state.written {
            Some(written) if state.decided => Some(Decision { on: self.is_on(), written }),
            Some(_) => None,
            None => state.before,
        }
    }

    /// What was decided in a process before this one, for when its definition comes into force first.
    pub fn restore(&self, decision: Decision) {
        lock(&self.state).before = Some(decision);
    }

    /// Whether no definition of it was in force yet.
    pub fn waits(&self) -> bool {
        lock(&self.state).written.is_none()
    }

    /// It starts or stops by itself.
    pub(crate) fn switch(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
        self.changed.notify_waiters();
    }

    /// A definition comes into force. One that is another than before decides anew.
    pub(crate) fn defined(&self, on: bool, definition: u64) {
        let written = Written { on, definition };
        let mut state = lock(&self.state);
        if state.written.replace(written) == Some(written) {
            return;
        }
        let before = state.before.take().filter(|before| before.written == written);
        state.decided = before.is_some();
        drop(state);
        self.switch(before.map_or(on, |before| before.on));
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
                activation.decide(on);
            }
            assert_eq!(activation.is_on(), wanted, "{definition:?} {switched:?}");
        }
    }

    #[test]
    fn a_decision_outlives_the_process_but_not_the_definition() {
        let decided = Decision { on: false, written: Written { on: true, definition: 1 } };
        for (definition, wanted) in [((true, 1), false), ((true, 2), true), ((false, 1), false)] {
            let activation = Activation::default();
            activation.restore(decided);
            activation.defined(definition.0, definition.1);
            assert_eq!(activation.is_on(), wanted, "{definition:?}");
            assert_eq!(activation.decision(), Some(decided).filter(|_| definition == (true, 1)));
            // The definition after that decides anew, and so does the one of before when it is back.
            activation.defined(true, 3);
            activation.defined(true, 1);
            assert_eq!((activation.is_on(), activation.decision()), (true, None));
        }
        // A processor that gives up has decided nothing.
        let activation = Activation::default();
        activation.defined(true, 1);
        activation.switch(false);
        assert_eq!(activation.decision(), None);
        activation.decide(false);
        assert_eq!(activation.decision(), Some(decided));
    }
}
