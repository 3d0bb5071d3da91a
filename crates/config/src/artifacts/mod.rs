//! One module per kind of artifact: its struct, its shape, its rules.

pub(crate) mod api;
mod data_service;
pub(crate) mod data_shape;
pub(crate) mod data_source;
pub(crate) mod event_source;
pub(crate) mod executor;
pub(crate) mod inbound;
pub(crate) mod local_entry;
pub(crate) mod message_processor;
pub(crate) mod message_store;
pub(crate) mod proxy;
pub(crate) mod registry;
pub(crate) mod sequence;
pub(crate) mod task;
pub(crate) mod template;

pub use api::{Api, ApiVersion, Handler, Mapping, Method, Resource, Scheme};
pub use data_service::{
    DATA_SERVICE_NAMESPACE, DataCall, DataConfig, DataDirection, DataField, DataFormat, DataOperation,
    DataOutput, DataParameter, DataQuery, DataResult, DataService, DataTrigger, DataValidator, DataValue,
};
pub use data_source::DataSource;
pub use event_source::{EventSource, Subscription};
pub use executor::{PriorityExecutor, Queue};
pub use inbound::InboundEndpoint;
pub use local_entry::{Entry, LocalEntry};
pub use message_processor::{MessageProcessor, ProcessorKind};
pub use message_store::{MessageStore, StoreKind};
pub use proxy::{
    Policy, PolicyDirection, Proxy, PublishWsdl, Target, TargetEndpoint, Transports, WsdlSource,
};
pub use registry::{Import, Registry, RegistryLayout, TaskManager};
pub use sequence::{Sequence, SequenceRef};
pub use task::{Task, TaskProperty, Trigger};
pub use template::{EndpointTemplate, SequenceTemplate, Template, TemplateParameter};

use crate::element::Element;
use crate::inject::Injector;
use diagnostics::Diagnostics;
use std::path::Path;

/// What the readers of artifacts share.
pub(crate) struct Reading<'a> {
    pub diagnostics: &'a mut Diagnostics,
    pub injector: &'a Injector,
    /// The root of the configuration.
    pub root: &'a Path,
    /// How resources are read over the network, if they may be.
    pub fetch: Option<&'a crate::fetch::Fetch>,
}

/// The documentation of an artifact: `<description>` or the attribute.
fn description(element: &Element) -> Option<String> {
    crate::read::child_text(element, "description")
        .map(|key| key.value)
        .or_else(|| crate::read::optional_text(element, "description"))
}
