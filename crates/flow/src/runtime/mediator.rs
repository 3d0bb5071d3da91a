//! What a mediator is: what it needs of the message, and what it tells the engine.

use crate::runtime::context::Context;
use crate::runtime::endpoint::Destination;
use crate::runtime::executor::{Executor, Ticket};
use crate::runtime::fault::Fault;
use crate::runtime::reference::{Computed, EndpointRef};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// How much of the message a step reads. Ordered from cheap to dear; a flow costs what its dearest step costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Nothing of the message.
    Nothing,
    /// Properties and transport headers.
    Headers,
    /// The beginning of the body, as far as an expression needs it to decide.
    Prefix,
    /// The whole body.
    Whole,
    /// The body is replaced; what was there is received and not read.
    Replaces,
}

impl Need {
    /// Whether the engine has to receive the whole body before the step runs.
    pub fn is_whole(self) -> bool {
        matches!(self, Need::Whole | Need::Replaces)
    }
}

/// A list of steps of the plan, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListId(pub(crate) u32);

/// What a mediator asks the engine to do next.
#[derive(Debug)]
pub enum Flow {
    /// Go on with the next mediator.
    Next,
    /// What the mediator waited for is there: run its [`Mediator::mediate`] now, which may compute for long.
    Mediate,
    /// End here without an answer (`drop`): all enclosing lists end too.
    Stop,
    /// Run a list, then go on after this mediator.
    Enter(ListId),
    /// Run a list with an entry of its own: an `onError` handler, a template frame.
    EnterWith(ListId, Entry),
    /// Hand the message to an endpoint; its answer goes to the receiving sequence or the out sequence.
    Send(Destination),
    /// Hand the message to an endpoint and go on here with its answer.
    Call(Destination),
    /// Answer the client with the message.
    Respond,
    /// Make the request the response and run the out sequence on it.
    Loopback,
    /// Run copies of the message, and this message only if `continue_parent`.
    Split(Split),
    /// Run a list on a copy of the message when its turn in a priority executor has come, and go on behind the mediator now.
    Enqueue(Enqueued),
    /// Give the client its 202, then run the step again without it (the engine's own: see [`Mediator::goes_on_alone`]).
    Detach,
}

/// A copy of a message that waits for its turn.
#[derive(Debug)]
pub struct Enqueued {
    /// What runs on it.
    pub list: ListId,
    /// The copy, made by [`Context::branch`].
    pub copy: Box<Context>,
    /// Its place in the queue.
    pub ticket: Ticket,
    /// What ran through the executor is counted here.
    pub executor: Arc<Executor>,
}

/// How a list is entered.
#[derive(Debug, Default)]
pub struct Entry {
    /// A fault handler for as long as the list runs.
    pub on_error: Option<ListId>,
    /// Template parameters (`$func:`), popped when the list ends.
    pub parameters: Option<Parameters>,
    /// What ends the list early (`drop`) ends it alone: the flow goes on behind the mediator.
    pub absorbs: bool,
}

/// The parameters of one template call.
pub type Parameters = Vec<(Arc<str>, Parameter)>;

/// One template parameter.
#[derive(Clone, Debug)]
pub enum Parameter {
    /// Evaluated by the caller.
    Value(message::Value),
    /// `{{…}}`: evaluated each time the template reads it.
    Deferred(Arc<dyn Computed>),
}

/// Copies of a message (`clone`, `iterate`, recipient lists).
pub struct Split {
    /// Each with the way it goes. They are made when their turn comes, so that memory depends on how many run at a time.
    pub parts: Parts,
    /// How many there are.
    pub count: usize,
    /// Whether the original goes on after the mediator.
    pub continue_parent: bool,
    /// One after the other instead of all at once.
    pub sequential: bool,
    /// One after the other: those behind one that failed do not run (`STOP_TARGET_EXECUTION_ON_FAILURE`).
    pub stops: bool,
    /// Nothing waits for the copies, and none of them can answer the client.
    pub aside: bool,
}

/// See [`Split::parts`].
pub type Parts = Box<dyn Iterator<Item = Branch> + Send>;

impl Split {
    /// Copies that run at the same time, and this message behind the mediator if `continue_parent`.
    pub fn at_once<I>(parts: I, continue_parent: bool) -> Split
    where
        I: ExactSizeIterator<Item = Branch> + Send + 'static,
    {
        Split {
            count: parts.len(),
            parts: Box::new(parts),
            continue_parent,
            sequential: false,
            stops: false,
            aside: false,
        }
    }
}

impl std::fmt::Debug for Split {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Split({} parts)", self.count)
    }
}

/// One copy of a message.
pub struct Branch {
    /// The copy, made by [`Context::branch`].
    pub context: Box<Context>,
    /// Where it goes.
    pub target: BranchTarget,
}

/// Where a branch goes.
#[derive(Debug)]
pub enum BranchTarget {
    /// Through a list.
    List(ListId),
    /// To an endpoint; the answer goes to the out sequence.
    Endpoint(Destination),
    /// To an endpoint; it goes on behind the step with the answer.
    Call(Destination),
    /// Nowhere.
    Nothing,
    /// It could not be sent on its way: its fault handlers run.
    Failed(Box<Fault>),
}

/// The future of a mediator that waits.
pub type Waiting<'a> = Pin<Box<dyn Future<Output = Result<Flow, Fault>> + Send + 'a>>;

/// What running a mediator gives: most are done at once, some wait.
pub enum Step<'a> {
    /// Done.
    Done(Result<Flow, Fault>),
    /// Waits for something other than an endpoint.
    Wait(Waiting<'a>),
}

/// A compiled mediator: immutable, shared by all messages.
///
/// Implement [`Mediator::mediate`]; a mediator that has to wait for something itself implements
/// [`Mediator::run`] instead. Steps that say [`Need::Whole`] find the body received; reading it (parsing) happens
/// when they ask the context for the view they want.
pub trait Mediator: Send + Sync {
    /// What of the message [`Mediator::mediate`] reads itself (not what the lists inside it read).
    fn need(&self) -> Need;

    /// Why, in words, for `busbar explain`: the expression or the option that decides.
    fn reason(&self) -> String {
        String::new()
    }

    /// The lists inside, with a label each (`then`, `case a|b`, …), for `busbar explain` and pictures.
    fn lists(&self) -> Vec<(String, ListId)> {
        Vec::new()
    }

    /// The endpoints it hands messages to, for `busbar explain` and pictures; none: where the message says.
    fn endpoints(&self) -> Vec<Arc<EndpointRef>> {
        Vec::new()
    }

    /// Whether the message, or what is read of it, goes on from here: to an endpoint, into a store, a file or a database, or where only a message
    /// can say. One that is sent in vain is held for a fault handler with such a step.
    fn passes_on(&self) -> bool {
        !self.endpoints().is_empty()
    }

    /// The sequence template that it runs, by name.
    fn template(&self) -> Option<&str> {
        None
    }

    /// Whether other threads of WSO2 go on behind it, so that with `FORCE_SC_ACCEPTED` the client has its 202 when it
    /// begins. Steps that answer with [`Flow::Send`], [`Flow::Call`] or [`Flow::Split`] need not say so.
    fn goes_on_alone(&self) -> bool {
        false
    }

    /// Does the work.
    ///
    /// # Errors
    /// Whatever goes wrong becomes a fault; the engine adds the place of the mediator.
    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let _ = context;
        Err(Fault::new("this mediator implements run()"))
    }

    /// Where the work may run.
    fn moves(&self) -> Moves {
        if self.need().is_whole() { Moves::Large } else { Moves::Long }
    }

    /// Does the work, waiting where it must.
    fn run<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        Step::Done(self.mediate(context))
    }
}

/// Where a step may run: on the worker of its message, or on a compute thread (`flow::engine::compute`).
///
/// All but [`Moves::Never`] say that [`Mediator::mediate`] alone does the work. [`Moves::Long`] and [`Moves::Large`] also say
/// that it can be broken off and begun anew: it changes nothing of the message, and nothing else, before it has worked out
/// all that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    /// On the worker, whatever it takes.
    Never,
    /// On the worker; on a compute thread once it has turned out to be long.
    Long,
    /// As [`Moves::Long`], and on a compute thread at once where the message is large. The default for steps that read the
    /// whole body.
    Large,
    /// On a compute thread.
    Always,
}
