//! Compiles the model into an immutable plan and runs it.
//!
//! A request comes to the [`Bus`], which finds who serves it ([`http::dispatch`]), makes a [`Context`] and lets the engine
//! take it step by step through its lists of mediators. Endpoints and mediators themselves live in rooms to the
//! right; this one knows their interfaces ([`Mediator`], [`endpoint::Endpoint`]).
//!
//! The modules are layers, and imports go one way: `ARCHITECTURE.md` lists them, and a test holds them to it.

mod compile;
mod engine;
mod expression;
pub mod health;
mod http;
pub mod observe;
pub mod processor;
pub mod resource;
mod runtime;
mod state;
pub mod task;
#[doc(hidden)]
pub mod testing;
mod text;
pub mod unit;
pub mod vault;
pub mod vfs;
mod writing;
mod wsdl;

// What other crates see. Inside of this one each thing is imported from where it is.
pub use ::files::places::{NotDone, on_thread};
pub use compile::definition::{
    Attribute, Children, Compiled, DataServices, Definition, EndpointFactory, EventSources, MessageStores,
    OPERATION, Registry, SecuredService, Validation, Values,
};
pub use compile::page::{Family, Inside, Page};
pub use compile::report_file_address;
pub use compile::{COMMON_ATTRIBUTES, Compiler, NumberForm, Unsupported, compile, other_transport, truth};
pub use engine::compute::{is_large, work_out, work_out_beside};
pub use engine::{Branched, Mark, addressing, compute, file, local, resume, run_branch, run_list};
pub use expression::synapse::Text;
pub use expression::{Expression, KeyValue, Wanted, java, library, streaming, synapse};
pub use http::access::{self, Access, AccessLog};
pub use http::dispatch::Bus;
pub use http::inbound;
pub use http::openapi::Form as DefinitionForm;
pub use http::respond::answer_status;
pub use message::regex::{Pattern, Search};
pub use runtime::context::{Context, Contexts};
pub use runtime::fault::{Code, Fault, no_thread};
pub use runtime::mediator::{
    Branch, BranchTarget, Entry, Flow, ListId, Mediator, Moves, Need, Parameter, Parts, Split, Step, Waiting,
};
pub use runtime::panics::install as install_panic_hook;
pub use runtime::plan::Plan;
pub use runtime::priority::Priorities;
pub use runtime::reference::SequenceRef;
pub use runtime::request::{Client, Inbound};
pub use runtime::scope::{Child, Children as Copies, Outcome, Scope};
pub use runtime::services::{Cap, Listening, PortOffset, Screening, Services, Settings, Suspension};
pub use runtime::{
    aggregation, artifacts, authority, context, correlation, data, endpoint, events, executor, fault, guard,
    mediator, observers, plan, reference, roles, scope, services, stage,
};
pub use state::identity::{Identity, States};
pub use state::{SharedState, activation, lock, metrics};
pub use text::{header_text, url};
pub use writing::kept::KeptResponse;
