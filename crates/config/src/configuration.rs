//! The whole configuration: every artifact by kind and name.

use crate::artifacts::{
    Api, EndpointTemplate, EventSource, Import, InboundEndpoint, LocalEntry, MessageProcessor, MessageStore,
    PriorityExecutor, Proxy, Registry, Sequence, SequenceTemplate, Task, TaskManager,
};
use crate::endpoint::Endpoint;
use crate::inject::Injector;
use diagnostics::Span;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// A configuration, immutable once loaded.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// The directory that paths in the configuration are relative to.
    pub root: PathBuf,
    /// The proxy services.
    pub proxies: Named<Proxy>,
    /// The APIs, by registered name (`name:v1.0.0` when versioned).
    pub apis: Named<Api>,
    /// The sequences, always with `main` and `fault`.
    pub sequences: Named<Sequence>,
    /// The endpoints.
    pub endpoints: Named<Endpoint>,
    /// The sequence templates.
    pub sequence_templates: Named<SequenceTemplate>,
    /// The endpoint templates.
    pub endpoint_templates: Named<EndpointTemplate>,
    /// The local entries.
    pub local_entries: Named<LocalEntry>,
    /// The tasks.
    pub tasks: Named<Task>,
    /// The message stores.
    pub message_stores: Named<MessageStore>,
    /// The message processors.
    pub message_processors: Named<MessageProcessor>,
    /// The inbound endpoints.
    pub inbound_endpoints: Named<InboundEndpoint>,
    /// The priority executors.
    pub priority_executors: Named<PriorityExecutor>,
    /// The event sources.
    pub event_sources: Named<EventSource>,
    /// The libraries, by `{package}name`.
    pub imports: Named<Import>,
    /// The registry; where none is configured, `registry/` beside the configuration.
    pub registry: Registry,
    /// The task manager, if one is configured.
    pub task_manager: Option<TaskManager>,
    /// Reads resources at URLs; `None`: they are not read.
    pub fetch: Option<crate::load::Fetch>,
    /// Values from outside, for endpoints written inside mediators.
    pub injector: Injector,
}

impl Configuration {
    pub(crate) fn new(root: PathBuf, registry: PathBuf, injector: Injector) -> Configuration {
        Configuration {
            root,
            proxies: Named::default(),
            apis: Named::default(),
            sequences: Named::default(),
            endpoints: Named::default(),
            sequence_templates: Named::default(),
            endpoint_templates: Named::default(),
            local_entries: Named::default(),
            tasks: Named::default(),
            message_stores: Named::default(),
            message_processors: Named::default(),
            inbound_endpoints: Named::default(),
            priority_executors: Named::default(),
            event_sources: Named::default(),
            imports: Named::default(),
            registry: Registry::beside(registry),
            task_manager: None,
            fetch: None,
            injector,
        }
    }

    /// How many artifacts there are, without what is built in.
    pub fn artifacts(&self) -> usize {
        self.proxies.len()
            + self.apis.len()
            + self.sequences.iter().filter(|sequence| !sequence.built_in).count()
            + self.endpoints.len()
            + self.sequence_templates.len()
            + self.endpoint_templates.len()
            + self.local_entries.len()
            + self.tasks.len()
            + self.message_stores.len()
            + self.message_processors.len()
            + self.inbound_endpoints.len()
            + self.priority_executors.len()
            + self.event_sources.len()
            + self.imports.len()
    }

    /// The content of a key that names a document (stylesheet, schema, script, …): the local entry, else the
    /// registry resource. `None` when there is neither.
    ///
    /// # Errors
    /// A registry resource that is there but cannot be read.
    pub fn content(&self, key: &str) -> io::Result<Option<Content>> {
        if let Some(entry) = self.local_entries.get(key) {
            return Ok(Some(Content { bytes: entry.bytes().into(), origin: entry.origin.clone() }));
        }
        let found = self.registry.read(key)?;
        Ok(found.map(|found| Content { bytes: found.bytes, origin: self.registry.path(key) }))
    }

    /// Whether a key of the shared key space is defined here (not: in the registry).
    pub fn has_key(&self, key: &str) -> bool {
        self.sequences.get(key).is_some()
            || self.endpoints.get(key).is_some()
            || self.local_entries.get(key).is_some()
            || self.sequence_templates.get(key).is_some()
            || self.endpoint_templates.get(key).is_some()
    }
}

/// The content of a local entry or registry resource.
#[derive(Clone, Debug)]
pub struct Content {
    /// The bytes as they are; XML written in place stands alone, with the namespaces in scope declared.
    pub bytes: Arc<[u8]>,
    /// The file it came from: what references in it are relative to.
    pub origin: Option<PathBuf>,
}

/// Artifacts of one kind by name, in the order in which they were loaded.
#[derive(Clone, Debug)]
pub struct Named<T> {
    items: Vec<(String, T)>,
    index: HashMap<String, usize>,
}

impl<T> Default for Named<T> {
    fn default() -> Named<T> {
        Named { items: Vec::new(), index: HashMap::new() }
    }
}

impl<T> Named<T> {
    /// The artifact of a name.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.index.get(name).map(|index| &self.items[*index].1)
    }

    /// The artifacts, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.items.iter().map(|(_, item)| item)
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.items.iter().map(|(name, _)| name.as_str())
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Adds an artifact under a name that is not in use.
    pub(crate) fn insert(&mut self, name: String, item: T) {
        self.index.insert(name.clone(), self.items.len());
        self.items.push((name, item));
    }
}

/// The kinds of artifacts.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub enum ArtifactKind {
    Definitions,
    Registry,
    TaskManager,
    Import,
    LocalEntry,
    Endpoint,
    Sequence,
    Template,
    Proxy,
    Task,
    EventSource,
    PriorityExecutor,
    MessageStore,
    MessageProcessor,
    Api,
    InboundEndpoint,
}

impl ArtifactKind {
    /// Element, sub-directory (none for single files) and what people call it, in the order in which a
    /// directory is loaded.
    const TABLE: [(ArtifactKind, &'static str, &'static str, &'static str); 16] = [
        (ArtifactKind::Definitions, "definitions", "", "configuration"),
        (ArtifactKind::Registry, "registry", "", "registry"),
        (ArtifactKind::TaskManager, "taskManager", "", "task manager"),
        (ArtifactKind::Import, "import", "imports", "import"),
        (ArtifactKind::LocalEntry, "localEntry", "local-entries", "local entry"),
        (ArtifactKind::Endpoint, "endpoint", "endpoints", "endpoint"),
        (ArtifactKind::Sequence, "sequence", "sequences", "sequence"),
        (ArtifactKind::Template, "template", "templates", "template"),
        (ArtifactKind::Proxy, "proxy", "proxy-services", "proxy service"),
        (ArtifactKind::Task, "task", "tasks", "task"),
        (ArtifactKind::EventSource, "eventSource", "event-sources", "event source"),
        (ArtifactKind::PriorityExecutor, "priority-executor", "priority-executors", "priority executor"),
        (ArtifactKind::MessageStore, "messageStore", "message-stores", "message store"),
        (ArtifactKind::MessageProcessor, "messageProcessor", "message-processors", "message processor"),
        (ArtifactKind::Api, "api", "api", "API"),
        (ArtifactKind::InboundEndpoint, "inboundEndpoint", "inbound-endpoints", "inbound endpoint"),
    ];

    /// The kind of an element name.
    pub fn of_element(local: &str) -> Option<ArtifactKind> {
        // The spelling of older samples.
        let local = if local == "priorityExecutor" { "priority-executor" } else { local };
        ArtifactKind::TABLE.iter().find(|row| row.1 == local).map(|row| row.0)
    }

    /// The element.
    pub fn element(self) -> &'static str {
        ArtifactKind::TABLE[self as usize].1
    }

    /// The sub-directory of a configuration directory; empty when it has none.
    pub fn directory(self) -> &'static str {
        ArtifactKind::TABLE[self as usize].2
    }

    /// Every kind, in the order in which a directory is loaded.
    pub fn all() -> impl Iterator<Item = ArtifactKind> {
        ArtifactKind::TABLE.iter().map(|row| row.0)
    }

    /// Whether its names are in the one key space that sequences, endpoints, entries and templates share.
    pub fn shares_keys(self) -> bool {
        matches!(
            self,
            ArtifactKind::LocalEntry
                | ArtifactKind::Endpoint
                | ArtifactKind::Sequence
                | ArtifactKind::Template
        )
    }
}

impl fmt::Display for ArtifactKind {
    /// What people call it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ArtifactKind::TABLE[*self as usize].3)
    }
}

/// An artifact that was left out.
#[derive(Clone, Debug)]
pub struct FaultyArtifact {
    /// Its kind.
    pub kind: ArtifactKind,
    /// Its name, as far as it has one.
    pub name: Option<String>,
    /// Where it is.
    pub span: Span,
    /// Why: the message of its first error.
    pub message: String,
}
