//! How far a message got: what the engine remembers of it between its steps, and what decides what the client gets when a
//! flow ends without an answer.

use super::mediator::ListId;

/// See the module. A copy of a message has its own.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// Whether endpoints were asked.
    pub asked: Delivery,
    /// What the endpoint of the last request takes.
    pub takes: Takes,
    /// What runs now goes on behind the answer of an endpoint, to a `send` or to a `call` that is not blocking.
    pub resumed: bool,
    /// The flow of the response runs: after `loopback`, or behind the answer to a `send`.
    pub answering: bool,
    /// How often a `call` that is not blocking was answered; it wraps around.
    pub calls: u16,
    /// `onError` of the endpoint that the message could not be sent to, ahead of the fault handlers.
    pub on_endpoint_error: Option<ListId>,
    /// The last fault.
    pub failure: Option<Failure>,
    /// The message, or a copy of it.
    pub part: Part,
    /// Whether a client waits for the flow.
    pub client: Waits,
    /// Where the flow stands.
    pub run: Run,
    /// What the message has used of what one message may.
    pub spent: Spent,
    /// The payload is a fault in POX form.
    pub pox_fault: bool,
    /// The message is observed ([`crate::observe`]).
    pub observed: bool,
    /// It was written to a file: nothing answers.
    pub written: bool,
    /// Work for it was too much for a worker: what it holds takes long to let go of.
    pub heavy: bool,
}

/// Whether a message was sent to an endpoint, and answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// No endpoint knows of it.
    #[default]
    Nobody,
    /// It was sent, or that was tried.
    InVain,
    /// It was not sent: an answer that was kept stands in.
    Recalled,
    /// It was sent and answered.
    Answered,
}

impl Delivery {
    /// It is sent to an endpoint.
    pub fn send(&mut self) {
        *self = match self {
            Delivery::Nobody | Delivery::InVain => Delivery::InVain,
            Delivery::Recalled | Delivery::Answered => Delivery::Answered,
        };
    }

    /// It becomes an answer.
    pub fn answer(&mut self) {
        *self = match self {
            Delivery::Nobody | Delivery::Recalled => Delivery::Recalled,
            Delivery::InVain | Delivery::Answered => Delivery::Answered,
        };
    }

    /// It was sent, or that was tried.
    pub fn was_sent(self) -> bool {
        matches!(self, Delivery::InVain | Delivery::Answered)
    }

    /// It is, or was, an answer.
    pub fn is_answered(self) -> bool {
        matches!(self, Delivery::Recalled | Delivery::Answered)
    }
}

/// What an endpoint takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Takes {
    /// The message as it is.
    #[default]
    AsIs,
    /// It without its envelope (`pox`, `get`, `rest`).
    Pox,
    /// A SOAP envelope.
    Soap,
}

/// A fault that was raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The status that it suggests.
    pub status: u16,
    /// A sequence of the configuration deals with it (not the built-in one).
    pub handled: bool,
    /// Seconds until the endpoint may be asked again; 0: that is not known.
    pub ready_in: u16,
}

impl Failure {
    /// One that nothing of the configuration deals with.
    pub fn unhandled(status: u16) -> Failure {
        Failure { status, handled: false, ready_in: 0 }
    }
}

/// A message, or a copy that a split made of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Part {
    /// The message.
    #[default]
    Whole,
    /// A copy.
    Branch {
        /// A `call` of it was answered.
        called: bool,
    },
}

impl Part {
    /// A copy that has been nowhere.
    pub const BRANCH: Part = Part::Branch { called: false };

    pub fn is_branch(self) -> bool {
        self != Part::Whole
    }

    /// A `call` was answered.
    pub fn call(&mut self) {
        if let Part::Branch { called } = self {
            *called = true;
        }
    }
}

/// Whether a client waits for what a flow comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Waits {
    /// It does.
    #[default]
    Client,
    /// It has its answer, or there is none: the flow goes on without it.
    Nobody,
}

/// Where a flow stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Run {
    /// There are steps ahead, or it ended before them.
    #[default]
    Begun,
    /// It ran to the end of its lists.
    Complete,
}

/// What a message has used of the limits that keep one message from running for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    /// Steps that it took while it had no branches; those of all its branches count in its scope.
    pub steps: u32,
    /// How many faults were raised.
    pub faults: u16,
    /// How many splits it is inside of.
    pub splits: u8,
    /// How often `send` sent it.
    pub sends: u16,
    /// How many services called each other through `local:` until this one.
    pub local: u8,
    /// How many mediators that run lists themselves (`foreach`) it is inside of.
    pub nested: u8,
    /// Work since others on its worker had their turn, in units of a step.
    pub turn: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_asked() {
        let stages = [Delivery::Nobody, Delivery::InVain, Delivery::Recalled, Delivery::Answered];
        for before in stages {
            let (mut sent, mut answered) = (before, before);
            sent.send();
            answered.answer();
            // Each says one thing more and takes nothing back.
            assert!(sent.was_sent() && sent.is_answered() == before.is_answered(), "{before:?}");
            assert!(answered.is_answered() && answered.was_sent() == before.was_sent(), "{before:?}");
        }
    }

    #[test]
    fn only_a_copy_is_called() {
        let (mut whole, mut branch) = (Part::Whole, Part::BRANCH);
        whole.call();
        branch.call();
        assert_eq!((whole, branch), (Part::Whole, Part::Branch { called: true }));
        assert!(branch.is_branch() && !whole.is_branch());
    }

    /// It is copied with each branch and moved with each message.
    #[test]
    fn it_is_small() {
        assert!(size_of::<Progress>() <= 40, "{}", size_of::<Progress>());
    }
}
