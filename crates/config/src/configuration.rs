//! The whole configuration: every artifact by kind and name.

use crate::artifacts::{
    Api, DataService, DataSource, EndpointTemplate, Entry, EventSource, Import, InboundEndpoint, LocalEntry,
    MessageProcessor, MessageStore, PriorityExecutor, Proxy, Registry, Sequence, SequenceTemplate, Task,
    TaskManager,
};
use crate::endpoint::Endpoint;
use crate::inject::Injector;
use crate::mounts::Mounts;
use diagnostics::{Diagnostic, Diagnostics, FileId, SourceMap, Span};
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
    /// The data sources.
    pub data_sources: Named<DataSource>,
    /// The data services.
    pub data_services: Named<DataService>,
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
    /// Libraries whose archives are there.
    pub libraries: Vec<Library>,
    /// Libraries that cannot be read.
    pub broken_libraries: Vec<BrokenLibrary>,
    /// The registry; where none is configured, `registry/` beside the configuration.
    pub registry: Registry,
    /// The task manager, if one is configured.
    pub task_manager: Option<TaskManager>,
    /// Reads resources at URLs; `None`: they are not read.
    pub fetch: Option<crate::fetch::Fetch>,
    /// Values from outside, for endpoints written inside mediators.
    pub injector: Injector,
    /// The archives whose artifacts are here, in the order in which they were loaded.
    pub archives: Vec<DeployedArchive>,
    /// Settings of a WSO2 server that lie in it: `deployment.toml` and property files.
    pub settings: Vec<PathBuf>,
    /// Resources of the registry that lie in projects.
    pub(crate) mounts: Mounts,
}

/// A library of operations: the archive of a connector whose operations are templates.
#[derive(Clone, Debug)]
pub struct Library {
    /// The file or directory.
    pub path: String,
    /// The name that its operations begin with.
    pub name: String,
    /// Its package.
    pub package: String,
    /// It has the format of Apache Synapse: `call-template` finds its templates too.
    pub is_synapse: bool,
    /// Its operations.
    pub operations: Vec<LibraryOperation>,
    /// The parts that cannot be read.
    pub broken: Vec<BrokenOperation>,
    /// The archive of artifacts that it came with.
    pub archive: Option<String>,
    /// The file or directory.
    pub place: Span,
    /// Other libraries of this name that differ and are left out.
    pub beside: Vec<Span>,
}

/// A library that cannot be read.
#[derive(Clone, Debug)]
pub struct BrokenLibrary {
    /// The file or directory.
    pub path: String,
    /// The place of the file or directory.
    pub place: Span,
    /// Why.
    pub why: String,
    /// The archive of artifacts that it came with.
    pub archive: Option<String>,
}

/// A part of a library that cannot be read.
#[derive(Clone, Debug)]
pub struct BrokenOperation {
    /// `library.operation`; `None`: the operations cannot be determined.
    pub name: Option<String>,
    /// The file.
    pub place: Span,
    /// Why.
    pub why: String,
}

/// An operation of a library.
#[derive(Clone, Debug)]
pub struct LibraryOperation {
    /// `library.operation`.
    pub name: String,
    /// Its template. In a library of Apache Synapse the name is `package.operation`, by which `call-template` finds it.
    pub template: std::sync::Arc<crate::SequenceTemplate>,
    /// The Java class that its template runs.
    pub class: Option<String>,
}

/// An archive whose artifacts are loaded. It is in use as a whole or not at all.
#[derive(Clone, Debug)]
pub struct DeployedArchive {
    /// `name_version`.
    pub id: String,
    /// The file or directory.
    pub path: String,
    /// The files of its artifacts.
    pub files: Vec<FileId>,
    pub(crate) mounts: Mounts,
    /// Built-in sequences that its sequences replaced.
    pub(crate) replaced: Vec<Sequence>,
}

/// Where the artifacts in force are written.
#[derive(Clone, Debug, Default)]
pub struct Running {
    artifacts: HashMap<(Option<ArtifactKind>, String), String>,
    /// Archives by their ids.
    archives: HashMap<String, String>,
    /// Libraries by their names.
    libraries: HashMap<String, String>,
}

impl Running {
    /// An artifact that is in force, and the path of its file.
    pub(crate) fn add(&mut self, kind: ArtifactKind, name: &str, path: &str) {
        self.artifacts.insert((space_of(kind), name.to_owned()), path.to_owned());
    }

    /// An archive that is in force.
    pub(crate) fn add_archive(&mut self, archive: &DeployedArchive) {
        self.archives.insert(archive.id.clone(), archive.path.clone());
    }

    /// Whether the archive of this id in force is that of this file.
    pub(crate) fn is_archive(&self, id: &str, path: &str) -> bool {
        self.archives.get(id).is_some_and(|p| p == path)
    }

    /// A library that is in force.
    pub(crate) fn add_library(&mut self, library: &Library) {
        self.libraries.insert(library.name.clone(), library.path.clone());
    }

    /// Whether the library of this name in force is that of this file or directory.
    pub(crate) fn is_library(&self, name: &str, path: &str) -> bool {
        self.libraries.get(name).is_some_and(|p| p == path)
    }

    /// Whether a library of this file or directory is in force.
    pub(crate) fn has_library(&self, path: &str) -> bool {
        self.libraries.values().any(|p| p == path)
    }

    /// Whether an artifact of this file is in force that `new` has from nowhere.
    pub(crate) fn has_lost(&self, path: &str, new: &Configuration) -> bool {
        let here = self.artifacts.iter().filter(|(_, file)| *file == path);
        let is_there = |space: Option<ArtifactKind>, name: &str| {
            ArtifactKind::all().any(|kind| space_of(kind) == space && new.span(kind, name).is_some())
        };
        here.into_iter().any(|((space, name), _)| !is_there(*space, name))
    }

    /// Whether the artifact of this name in force is that of this file.
    pub(crate) fn is(&self, kind: ArtifactKind, name: &str, path: &str) -> bool {
        self.artifacts.get(&(space_of(kind), name.to_owned())).is_some_and(|p| p == path)
    }
}

/// What names are unique among: the artifacts of a kind, or all kinds that share their keys.
pub(crate) fn space_of(kind: ArtifactKind) -> Option<ArtifactKind> {
    (!kind.shares_keys()).then_some(kind)
}

impl Configuration {
    /// The libraries in use: those without an `import` that is disabled.
    pub fn libraries_in_use(&self) -> impl Iterator<Item = &Library> {
        self.libraries.iter().filter(|library| {
            let mut imports = self.imports.iter();
            !imports.any(|import| {
                !import.enabled && *import.name == library.name && *import.package == library.package
            })
        })
    }

    /// The templates of libraries that `call-template` finds: those whose names no other template has.
    pub fn library_templates(&self) -> impl Iterator<Item = &LibraryOperation> {
        let operations = self
            .libraries_in_use()
            .filter(|library| library.is_synapse)
            .flat_map(|library| library.operations.iter());
        operations.filter(|operation| self.sequence_templates.get(&operation.template.name.value).is_none())
    }

    pub(crate) fn new(root: PathBuf, registry: PathBuf, injector: Injector) -> Configuration {
        Configuration {
            root,
            proxies: Named::default(),
            apis: Named::default(),
            sequences: Named::default(),
            endpoints: Named::default(),
            sequence_templates: Named::default(),
            endpoint_templates: Named::default(),
            data_sources: Named::default(),
            data_services: Named::default(),
            local_entries: Named::default(),
            tasks: Named::default(),
            message_stores: Named::default(),
            message_processors: Named::default(),
            inbound_endpoints: Named::default(),
            priority_executors: Named::default(),
            event_sources: Named::default(),
            imports: Named::default(),
            libraries: Vec::new(),
            broken_libraries: Vec::new(),
            registry: Registry::beside(registry),
            task_manager: None,
            fetch: None,
            injector,
            archives: Vec::new(),
            settings: Vec::new(),
            mounts: Mounts::default(),
        }
    }

    /// Takes an archive out again, by its place in [`Configuration::archives`], with all that it brought along. Returns its
    /// artifacts, the archive itself first, and reports that it is refused. `why`: the message of the error.
    pub fn leave_out(
        &mut self,
        archive: usize,
        why: &str,
        sources: &mut SourceMap,
        found: &mut Diagnostics,
    ) -> Vec<FaultyArtifact> {
        let left_out = self.without(archive, why, sources, found);
        self.finish();
        left_out
    }

    pub(crate) fn without(
        &mut self,
        archive: usize,
        why: &str,
        sources: &mut SourceMap,
        found: &mut Diagnostics,
    ) -> Vec<FaultyArtifact> {
        let archive = self.archives.remove(archive);
        self.without_libraries(&archive.path);
        let place = Span::new(sources.add(archive.path.as_str(), ""), 0, 0);
        let mut left_out = vec![FaultyArtifact::archive(&archive.path, place, why)];
        macro_rules! take {
            ($($field:ident $kind:ident),*) => {$(
                for (name, item) in self.$field.take(|item| archive.files.contains(&item.span.file)) {
                    let message = format!("its archive `{}` is refused as a whole", archive.path);
                    let faulty = FaultyArtifact::new(ArtifactKind::$kind, Some(name), item.span, message);
                    left_out.push(FaultyArtifact { archive: Some(archive.path.clone()), ..faulty });
                }
            )*};
        }
        take!(
            proxies Proxy, apis Api, sequences Sequence, endpoints Endpoint, sequence_templates Template,
            endpoint_templates Template, data_sources DataSource, local_entries LocalEntry, tasks Task, message_stores MessageStore,
            message_processors MessageProcessor, inbound_endpoints InboundEndpoint, priority_executors PriorityExecutor,
            event_sources EventSource, data_services DataService, imports Import
        );
        for sequence in archive.replaced {
            let name = sequence.name.as_ref().map(ToString::to_string).unwrap_or_default();
            self.sequences.replace(&name, sequence);
        }
        let artifacts = match archive.files.len() {
            1 => "1 artifact".to_owned(),
            count => format!("{count} artifacts"),
        };
        let message = format!("the archive `{}` is refused as a whole: {artifacts}", archive.path);
        found.push(
            Diagnostic::error("faulty-archive", message)
                .at(place, "one of its artifacts is faulty, and WSO2 takes all or nothing"),
        );
        left_out
    }

    /// Takes the libraries out that came with an archive of artifacts.
    pub(crate) fn without_libraries(&mut self, archive: &str) {
        self.libraries.retain(|library| library.archive.as_deref() != Some(archive));
        self.broken_libraries.retain(|library| library.archive.as_deref() != Some(archive));
    }

    /// Adds the built-in sequences and completes the registry.
    pub(crate) fn finish(&mut self) {
        for name in ["main", "fault"] {
            if self.sequences.get(name).is_none() {
                self.sequences.insert(name.to_owned(), Sequence::built_in(name));
            }
        }
        let mut mounts = self.mounts.clone();
        self.archives.iter().for_each(|archive| mounts.extend(&archive.mounts));
        self.registry = self.registry.with(mounts);
    }

    /// The number of artifacts, without built-in ones.
    pub fn artifacts(&self) -> usize {
        self.proxies.len()
            + self.apis.len()
            + self.sequences.iter().filter(|sequence| !sequence.built_in).count()
            + self.endpoints.len()
            + self.sequence_templates.len()
            + self.endpoint_templates.len()
            + self.data_sources.len()
            + self.data_services.len()
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
            let is_here = !matches!(entry.value, Entry::NotFetched);
            return Ok(is_here.then(|| Content { bytes: entry.bytes().into(), origin: entry.origin.clone() }));
        }
        let found = self.registry.read(key)?;
        Ok(found.map(|found| Content { bytes: found.bytes, origin: self.registry.path(key) }))
    }

    /// The key of a local entry or resource that is nearest to one that there is not.
    pub fn near_key(&self, key: &str) -> Option<String> {
        let keys = self.local_entries.names().chain(self.registry.keys().iter().map(String::as_str));
        diagnostics::nearest(key, keys).map(str::to_owned)
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

    /// The artifacts, in order, to change them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.items.iter_mut().map(|(_, item)| item)
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

    /// Removes an artifact.
    pub(crate) fn remove(&mut self, name: &str) -> Option<T> {
        let at = self.index.remove(name)?;
        self.index.values_mut().filter(|index| **index > at).for_each(|index| *index -= 1);
        Some(self.items.remove(at).1)
    }

    /// Removes the artifacts that `wanted` accepts.
    pub(crate) fn take(&mut self, wanted: impl Fn(&T) -> bool) -> Vec<(String, T)> {
        let (taken, kept) = std::mem::take(&mut self.items).into_iter().partition(|(_, item)| wanted(item));
        self.items = kept;
        self.index = self.items.iter().enumerate().map(|(at, (name, _))| (name.clone(), at)).collect();
        taken
    }

    /// Adds an artifact under a name that is not in use.
    pub(crate) fn insert(&mut self, name: String, item: T) {
        self.index.insert(name.clone(), self.items.len());
        self.items.push((name, item));
    }

    /// Adds an artifact, in the place of the one that has its name.
    pub(crate) fn replace(&mut self, name: &str, item: T) {
        match self.index.get(name) {
            Some(&index) => self.items[index].1 = item,
            None => self.insert(name.to_owned(), item),
        }
    }

    /// Removes the artifacts that `wanted` does not accept.
    pub(crate) fn retain(&mut self, wanted: impl Fn(&str) -> bool) {
        self.items.retain(|(name, _)| wanted(name));
        self.index = self.items.iter().enumerate().map(|(at, (name, _))| (name.clone(), at)).collect();
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
    DataSource,
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
    DataService,
    /// A file with artifacts that are in use together, or not at all. No element is one.
    Archive,
    /// A library of operations. No element is one.
    Library,
}

impl ArtifactKind {
    /// Element, sub-directory (none for single files) and what people call it, in the order in which a
    /// directory is loaded.
    const TABLE: [(ArtifactKind, &'static str, &'static str, &'static str); 20] = [
        (ArtifactKind::Definitions, "definitions", "", "configuration"),
        (ArtifactKind::Registry, "registry", "", "registry"),
        (ArtifactKind::TaskManager, "taskManager", "", "task manager"),
        (ArtifactKind::Import, "import", "imports", "import"),
        (ArtifactKind::DataSource, "datasource", "data-sources", "data source"),
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
        (ArtifactKind::DataService, "data", "data-services", "data service"),
        (ArtifactKind::Archive, "archive", "", "archive"),
        (ArtifactKind::Library, "library", "", "library"),
    ];

    /// The kind of an element name.
    pub fn of_element(local: &str) -> Option<ArtifactKind> {
        // The spelling of older samples.
        let local = if local == "priorityExecutor" { "priority-executor" } else { local };
        ArtifactKind::all().find(|kind| kind.element() == local)
    }

    /// The element.
    pub fn element(self) -> &'static str {
        ArtifactKind::TABLE[self as usize].1
    }

    /// The attribute that names an artifact; in others the attribute `key` does.
    pub fn name_attribute(self) -> &'static str {
        if self == ArtifactKind::LocalEntry { "key" } else { "name" }
    }

    /// The sub-directory of a configuration directory; empty when it has none.
    pub fn directory(self) -> &'static str {
        ArtifactKind::TABLE[self as usize].2
    }

    /// The extension of its files.
    pub fn extension(self) -> &'static str {
        if self == ArtifactKind::DataService { "dbs" } else { "xml" }
    }

    /// Every kind that an element can be, in the order in which a directory is loaded.
    pub fn all() -> impl Iterator<Item = ArtifactKind> {
        let is_element = |kind: &ArtifactKind| !matches!(kind, ArtifactKind::Archive | ArtifactKind::Library);
        ArtifactKind::TABLE.iter().map(|row| row.0).filter(is_element)
    }

    /// Whether it contains mediators or endpoints, which every engine looks up by namespace and name.
    pub(crate) fn is_mediation(self) -> bool {
        matches!(
            self,
            ArtifactKind::Definitions
                | ArtifactKind::Endpoint
                | ArtifactKind::Sequence
                | ArtifactKind::Template
                | ArtifactKind::Proxy
                | ArtifactKind::Api
        )
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
    /// The word for messages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ArtifactKind::TABLE[*self as usize].3)
    }
}

/// An artifact that cannot be used as it is written.
#[derive(Clone, Debug)]
pub struct FaultyArtifact {
    /// Its kind.
    pub kind: ArtifactKind,
    /// The name that it is registered under, if it has one.
    pub name: Option<String>,
    /// Where it is.
    pub span: Span,
    /// Why: the message of its first error.
    pub message: String,
    /// The prefix of the requests for an API, if it can be read.
    pub context: Option<String>,
    /// Nothing in its file can be read: all artifacts of the file are faulty.
    pub whole_file: bool,
    /// The version before stays in force after a reload. Otherwise the artifact is left out.
    pub held: bool,
    /// The path of the archive that it is refused with; also of an archive itself.
    pub archive: Option<String>,
}

/// Artifacts that are left out because of an error outside of their flows (an attribute of the proxy service, a method of the
/// API). Their flows are checked and never run.
#[derive(Clone, Default, Debug)]
pub struct Flawed {
    /// Proxy services.
    pub proxies: Vec<(String, Proxy)>,
    /// APIs, by registered name.
    pub apis: Vec<(String, Api)>,
    /// Sequences.
    pub sequences: Vec<(String, Sequence)>,
    /// Sequence templates.
    pub sequence_templates: Vec<(String, SequenceTemplate)>,
}

impl Flawed {
    /// Where they are.
    pub fn spans(&self) -> Vec<Span> {
        let proxies = self.proxies.iter().map(|(_, proxy)| proxy.span);
        let apis = self.apis.iter().map(|(_, api)| api.span);
        let sequences = self.sequences.iter().map(|(_, sequence)| sequence.span);
        let templates = self.sequence_templates.iter().map(|(_, template)| template.span);
        proxies.chain(apis).chain(sequences).chain(templates).collect()
    }
}

impl Configuration {
    /// This configuration with the artifacts that were left out of it, where their names are free. It is checked and never
    /// run.
    #[must_use]
    pub fn with_flawed(&self, flawed: &Flawed) -> Configuration {
        fn add<T: Clone>(all: &mut Named<T>, more: &[(String, T)]) {
            for (name, artifact) in more {
                if all.get(name).is_none() {
                    all.insert(name.clone(), artifact.clone());
                }
            }
        }
        let mut whole = self.clone();
        // Built-in `main` and `fault` replace faulty ones.
        for (name, _) in &flawed.sequences {
            if whole.sequences.get(name).is_some_and(|sequence| sequence.built_in) {
                whole.sequences.remove(name);
            }
        }
        add(&mut whole.proxies, &flawed.proxies);
        add(&mut whole.apis, &flawed.apis);
        add(&mut whole.sequences, &flawed.sequences);
        add(&mut whole.sequence_templates, &flawed.sequence_templates);
        whole
    }
}

impl FaultyArtifact {
    /// An artifact that is left out. The log and the admin address show the message: credentials of URLs in it are hidden.
    pub fn new(kind: ArtifactKind, name: Option<String>, span: Span, message: impl Into<String>) -> Self {
        let message = diagnostics::without_credentials(&message.into()).into_owned();
        FaultyArtifact {
            kind,
            name,
            span,
            message,
            context: None,
            whole_file: false,
            held: false,
            archive: None,
        }
    }

    /// An archive that is refused.
    pub(crate) fn archive(path: &str, span: Span, message: impl Into<String>) -> Self {
        let faulty = FaultyArtifact::new(ArtifactKind::Archive, Some(path.to_owned()), span, message);
        FaultyArtifact { archive: Some(path.to_owned()), ..faulty }
    }
}
