//! What can be compiled: the definition of each mediator, and who makes endpoints.

use super::Compiler;
use super::page::Page;
use crate::runtime::data::DataService;
use crate::runtime::endpoint::Endpoint;
use crate::runtime::events::EventSource;
use crate::runtime::mediator::Mediator;
use crate::runtime::stage::{Stage, Stages};
use config::Element;
use diagnostics::Span;
use std::sync::Arc;
use stores::Store;

/// What compiling a mediator gives; `None` after an error, which the compiler has recorded.
pub type Compiled = Option<Box<dyn Mediator>>;

/// The definition of a mediator: from it come parser, lint, reference page and completion.
#[derive(Debug)]
pub struct Definition {
    /// The element name.
    pub name: &'static str,
    /// One sentence: what it does.
    pub summary: &'static str,
    /// The attributes besides the common ones (`description`, `trace`, `statistics`, `traceFilter`).
    pub attributes: &'static [Attribute],
    /// What may stand inside.
    pub children: Children,
    /// What its reference page says beyond that.
    pub page: Page,
    /// Makes the mediator.
    pub compile: fn(&Element, &mut Compiler<'_>) -> Compiled,
}

/// One attribute of a mediator.
#[derive(Debug)]
pub struct Attribute {
    /// Its name.
    pub name: &'static str,
    /// Whether it must be there.
    pub required: bool,
    /// The values it may have.
    pub values: Values,
    /// The default, as written; empty: none.
    pub default: &'static str,
    /// One sentence: what it means.
    pub meaning: &'static str,
}

impl Attribute {
    /// An attribute that may be left out.
    pub const fn optional(name: &'static str, values: Values, meaning: &'static str) -> Attribute {
        Attribute { name, required: false, values, default: "", meaning }
    }

    /// An attribute that must be there.
    pub const fn required(name: &'static str, values: Values, meaning: &'static str) -> Attribute {
        Attribute { name, required: true, values, default: "", meaning }
    }

    /// With a default, as written.
    pub const fn or(self, default: &'static str) -> Attribute {
        Attribute { default, ..self }
    }
}

/// The values an attribute may have.
#[derive(Debug, Clone, Copy)]
pub enum Values {
    /// Any text.
    Text,
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Integer,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// One of these words; with any other the step is a fault, and loading warns: the mediator compiles it to one.
    Action(&'static [&'static str]),
    /// One of these words; any other counts as the first one, with a warning.
    Word(&'static [&'static str]),
    /// An XPath, `json-eval(…)` or `${…}`.
    Expression,
    /// A key, or an expression in braces that gives one.
    Key,
    /// A regular expression of Java's dialect.
    Regex,
}

/// What may stand inside a mediator's element.
#[derive(Debug, Clone, Copy)]
pub enum Children {
    /// Nothing.
    None,
    /// Mediators.
    Mediators,
    /// These elements; `"*"` stands for any element (inline XML), `"#mediators"` for mediators beside the named ones, `"text()"`
    /// for text.
    Elements(&'static [&'static str]),
}

/// Makes an endpoint of its configuration; `None` after an error that was recorded.
pub type EndpointFactory = fn(&config::Endpoint, &mut Compiler<'_>) -> Option<Arc<dyn Endpoint>>;

/// Makes an event source; `None` after a recorded error.
pub type EventSources = fn(&config::EventSource, &mut Compiler<'_>) -> Option<Arc<dyn EventSource>>;

/// Makes a message store that is not in memory; `None` after a recorded error.
pub type MessageStores = fn(&config::MessageStore, &mut Compiler<'_>) -> Option<Arc<dyn Store>>;

/// Makes a data service; `None` after a recorded error.
pub type DataServices = fn(&config::DataService, &mut Compiler<'_>) -> Option<Arc<dyn DataService>>;

/// Makes the stage of an API with `validateSchema` that checks its messages by its definition; `None`: they are not checked, which it
/// has reported.
pub type DefinitionCheck = fn(&config::Api, &[u8], &mut Compiler<'_>) -> Option<Arc<dyn Stage>>;

/// Makes the stages that other crates implement. `None` after a recorded error: an artifact must not run without a stage that
/// its configuration asks for.
#[derive(Clone, Copy)]
pub struct Validation {
    /// Of an API with `validateSchema`.
    pub definition: DefinitionCheck,
    /// Of a service with `enableSec`.
    pub service: fn(&SecuredService<'_>, &mut Compiler<'_>) -> Option<Stages>,
    /// Of an endpoint with `enableSec`.
    pub endpoint: fn(&config::endpoint::Security, Span, &mut Compiler<'_>) -> Option<Stages>,
}

/// A service with `enableSec`.
#[derive(Clone, Copy)]
pub struct SecuredService<'a> {
    /// What it is (`proxy service`), as messages call it.
    pub kind: &'static str,
    /// Its name.
    pub name: &'a config::Key,
    /// Its policies.
    pub policies: &'a [config::Policy],
    /// Its parameter `allowRoles`: the only roles whose users are let in.
    pub roles: Option<&'a config::Parameter>,
}

/// All mediators that can be compiled, and the names of those that exist in the language but not here yet.
pub struct Registry {
    /// The definitions.
    pub definitions: Vec<&'static Definition>,
    /// Known element names that cannot be executed, with what to do about it.
    pub unsupported: Vec<(&'static str, &'static str)>,
    /// Makes endpoints from configuration; given by the endpoints room.
    pub endpoints: EndpointFactory,
    /// Checks messages of APIs, and secures those of services and endpoints; `None`: nobody here can, and what asks for security is left
    /// out.
    pub validation: Option<Validation>,
    /// Makes event sources; `None`: there are none in this build.
    pub events: Option<EventSources>,
    /// Makes message stores that are not in memory; `None`: there are none in this build.
    pub stores: Option<MessageStores>,
    /// Makes data services; `None`: there are none in this build.
    pub data: Option<DataServices>,
}

/// The name of the definition that operations of libraries (`library.operation`) have which have none of their own.
pub const OPERATION: &str = "library.operation";

impl Registry {
    /// The definition of an element name.
    pub fn definition(&self, name: &str) -> Option<&'static Definition> {
        let of = |name: &str| self.definitions.iter().copied().find(|definition| definition.name == name);
        of(name).or_else(|| name.contains('.').then(|| of(OPERATION)).flatten())
    }
}
