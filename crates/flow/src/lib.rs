//! Compiles the model into an immutable plan and runs it.
//!
//! A request comes to the [`Bus`], which finds who serves it ([`dispatch`]), makes a [`Context`] and lets the engine
//! take it step by step through its lists of mediators. Endpoints and mediators themselves live in rooms to the
//! right; this one knows their interfaces ([`Mediator`], [`endpoint::Endpoint`]).

pub mod access;
pub mod activation;
mod addressing;
pub mod aggregation;
pub mod authority;
mod callback;
mod compile;
pub mod compute;
pub mod context;
pub mod correlation;
pub mod cors;
mod direct;
pub mod dispatch;
pub mod endpoint;
mod engine;
pub mod exchange;
pub mod expression;
pub mod fault;
mod handlers;
pub mod identity;
pub mod java;
pub mod kept;
pub mod library;
pub mod local;
pub mod mediator;
pub mod metrics;
pub mod observe;
mod openapi;
mod page;
mod panics;
pub mod plan;
pub mod processor;
mod report;
pub mod resource;
mod respond;
mod routing;
pub mod scope;
pub mod services;
mod stored;
pub mod streaming;
pub mod synapse;
#[doc(hidden)]
pub mod testing;
pub mod vault;
mod writing;
mod wsdl;

pub use crate::expression::{Expression, KeyValue, Wanted};
pub use access::{Access, AccessLog};
pub use compile::{Compiler, SequenceRef, compile, truth};
pub use context::{Client, Context, Contexts, Inbound};
pub use dispatch::Bus;
pub use engine::{Branched, Mark, resume, run_branch, run_list};
pub use fault::{Code, Fault};
pub use identity::{Identity, States};
pub use kept::Answer;
pub use mediator::{
    Attribute, Branch, BranchTarget, Children, Compiled, Definition, Entry, Flow, ListId, Mediator, Moves,
    Need, Parameter, Parts, Registry, Split, Step, Values, Waiting,
};
pub use message::regex::{Pattern, Search};
pub use page::{Family, Inside, Page};
pub use panics::install as install_panic_hook;
pub use plan::Plan;
pub use scope::{Child, Children as Copies, Outcome, Scope};
pub use services::{Services, Settings, lock};
pub use synapse::Text;
