//! Synapse configuration XML as a typed model, every node with its span.
//!
//! [`load`] reads a file, a configuration directory or a WSO2 home into a [`Configuration`]. Each error
//! is a diagnostic with the place; a faulty artifact is left out and listed, the others stay.
//!
//! Sequence bodies stay lists of [`Element`], expressions stay strings with their place and namespaces: the
//! crates that run them compile them. [`read`] has what they need to report problems the same way.

#![forbid(unsafe_code)]

mod artifacts;
mod configuration;
mod deployment;
mod element;
pub mod endpoint;
mod fetch;
mod inject;
pub mod language;
mod layout;
mod libraries;
mod load;
mod mixture;
mod mounts;
mod parameter;
mod parse;
mod past;
mod properties;
pub mod read;
mod references;
mod resources;
mod value;

pub use artifacts::{
    Api, ApiVersion, DATA_SERVICE_NAMESPACE, DataCall, DataConfig, DataDirection, DataField, DataFormat,
    DataOperation, DataOutput, DataParameter, DataQuery, DataResult, DataService, DataSource, DataTrigger,
    DataValidator, DataValue, EndpointTemplate, Entry, EventSource, Handler, Import, InboundEndpoint,
    LocalEntry, Mapping, MessageProcessor, MessageStore, Method, Policy, PolicyDirection, PriorityExecutor,
    ProcessorKind, Proxy, PublishWsdl, Queue, Registry, RegistryLayout, Resource, Scheme, Sequence,
    SequenceRef, SequenceTemplate, StoreKind, Subscription, Target, TargetEndpoint, Task, TaskManager,
    TaskProperty, Template, TemplateParameter, Transports, Trigger, WsdlSource,
};
pub use configuration::{
    ArtifactKind, BrokenLibrary, BrokenOperation, Configuration, Content, DeployedArchive, FaultyArtifact,
    Flawed, Library, LibraryOperation, Named, Running,
};
pub use deployment::deployment_tables;
pub use element::{Attribute, Child, Element, Instruction, Name, SYNAPSE, Scope, Text, XML_NAMESPACE};
pub use endpoint::{Endpoint, EndpointKind};
pub use fetch::{Fetch, FetchFunction, ResourceCache};
pub use inject::{Injector, is_unresolved};
pub use layout::read as read_file;
pub use load::{LoadOptions, Loaded, decode, is_ours, load, load_text};
pub use mixture::{Changes, LastGood, Written};
pub use mounts::path as registry_path;
pub use parameter::{Parameter, ParameterValue};
pub use parse::parse;
pub use past::{ArtifactText, PastConfiguration};
pub use properties::properties;
pub use resources::{RegistryLimits, ResourceContent};
pub use value::{Expression, Key, Spanned, Value};
