//! Projects as tools make them, and directories that people fill: examines every file below a path and decides what
//! it is.
//!
//! A *configuration root* is a directory with one sub-directory for each kind of artifact (`synapse-config`,
//! `wso2mi/artifacts`, or any directory that has such sub-directories). Beside roots, a project has resources of the registry, archives and
//! settings. Artifacts that lie elsewhere count where there is nothing else.

use super::archive::{self, Reader};
use super::descriptor::{self, Described};
use super::files::{Entry, Walk, beginning, in_words, read};
use super::library::{self, BrokenFiles};
use super::not_read::{NotRead, Reason, by_name};
use super::{ArtifactFile, Layout};
use crate::configuration::ArtifactKind;
use crate::element::{SYNAPSE, SYNAPSE_2_0};
use crate::mounts::Mount;
use crate::parse::doctype;
use diagnostics::{Diagnostic, SourceMap, Span};
use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};
use xml::{Event, Limits, Tokenizer};

/// Names that people give to directories of artifacts, beside those of [`ArtifactKind::directory`].
const OTHER_NAMES: [(&str, ArtifactKind); 28] = [
    ("apis", ArtifactKind::Api),
    ("rest-apis", ArtifactKind::Api),
    ("proxy-service", ArtifactKind::Proxy),
    ("proxyservices", ArtifactKind::Proxy),
    ("proxies", ArtifactKind::Proxy),
    ("proxy", ArtifactKind::Proxy),
    ("sequence", ArtifactKind::Sequence),
    ("endpoint", ArtifactKind::Endpoint),
    ("template", ArtifactKind::Template),
    ("local-entry", ArtifactKind::LocalEntry),
    ("localentries", ArtifactKind::LocalEntry),
    ("local_entries", ArtifactKind::LocalEntry),
    ("task", ArtifactKind::Task),
    ("message-store", ArtifactKind::MessageStore),
    ("messagestores", ArtifactKind::MessageStore),
    ("message-processor", ArtifactKind::MessageProcessor),
    ("messageprocessors", ArtifactKind::MessageProcessor),
    ("inbound-endpoint", ArtifactKind::InboundEndpoint),
    ("inboundendpoints", ArtifactKind::InboundEndpoint),
    ("inbounds", ArtifactKind::InboundEndpoint),
    ("event-source", ArtifactKind::EventSource),
    ("events", ArtifactKind::EventSource),
    ("priority-executor", ArtifactKind::PriorityExecutor),
    ("executors", ArtifactKind::PriorityExecutor),
    ("datasource", ArtifactKind::DataSource),
    ("datasources", ArtifactKind::DataSource),
    ("dataservice", ArtifactKind::DataService),
    ("dataservices", ArtifactKind::DataService),
];

/// Names of directories that hold artifacts and nothing else.
const TELLING: [&str; 6] = [
    "proxy-services",
    "local-entries",
    "message-stores",
    "message-processors",
    "inbound-endpoints",
    "sequences",
];

/// Files and directories that only a project or a module of one has.
const MODULE: [&str; 5] = ["pom.xml", "src", "build.gradle", "package.json", "Chart.yaml"];

/// How many bytes of a file are read to find its root element.
const START: u64 = 64 << 10;

/// Property files of a server that are settings.
const SETTINGS: [&str; 5] = [
    "synapse.properties",
    "passthru-http.properties",
    "nhttp.properties",
    "file.properties",
    "deployment.toml",
];

/// Finds the files below a path.
pub(super) struct Project<'a> {
    pub layout: Layout,
    pub sources: &'a mut SourceMap,
    pub problems: &'a mut Vec<Diagnostic>,
    pub not_read: NotRead,
    walk: Walk,
    /// XML files with an artifact, outside of configuration roots.
    loose: Vec<PathBuf>,
    /// Files and directories that are in use.
    claimed: HashSet<PathBuf>,
    /// The artifacts that descriptors list, with the place.
    listed: Vec<(PathBuf, ArtifactKind, Span)>,
    /// Only files that a server reads: one level, `.xml`.
    as_a_server: bool,
}

impl<'a> Project<'a> {
    pub fn new(layout: Layout, sources: &'a mut SourceMap, problems: &'a mut Vec<Diagnostic>) -> Project<'a> {
        Project {
            layout,
            sources,
            problems,
            not_read: NotRead::default(),
            walk: Walk::default(),
            loose: Vec::new(),
            claimed: HashSet::new(),
            listed: Vec::new(),
            as_a_server: false,
        }
    }

    /// Any directory.
    pub fn directory(&mut self, path: &Path) {
        let registry = path.join("registry");
        // A module of a project that is named so lies beside the others, with a descriptor of its resources.
        if !root_element(&registry.join("artifact.xml")).is_some_and(|root| root.is_descriptor()) {
            self.claimed.insert(registry);
        }
        let kinds = ArtifactKind::all().filter(|kind| !kind.directory().is_empty());
        let is_root = path.join("synapse.xml").is_file()
            || kinds.into_iter().any(|kind| {
                let inside = path.join(kind.directory());
                inside.is_dir() && (TELLING.contains(&kind.directory()) || self.holds(&inside, kind))
            });
        if is_root {
            self.root(path)
        } else {
            self.open(path)
        }
        self.finish();
    }

    /// The home of a WSO2 server.
    pub fn home(&mut self, path: &Path) {
        self.as_a_server = true;
        for name in ["conf", "repository/conf"] {
            self.settings(&path.join(name));
        }
        self.server(&path.join("repository/deployment/server"));
        for entry in self.list(&path.join("repository")) {
            match &*entry.name {
                "deployment" | "conf" | "resources" => {}
                "tenants" => self.tree(&entry, Reason::Tenant),
                _ => self.tree(&entry, Reason::ServerPart),
            }
        }
        for entry in self.list(path) {
            match &*entry.name {
                "conf" | "repository" | "registry" | "busbar.toml" => {}
                ".env" => self.layout.environment.push(entry.path),
                _ => self.tree(&entry, Reason::ServerPart),
            }
        }
        self.finish();
    }

    /// The home of Apache Synapse.
    pub fn synapse_home(&mut self, path: &Path) {
        self.as_a_server = true;
        let conf = path.join("repository/conf");
        self.settings(&conf);
        let (directory, file) = (conf.join("synapse-config"), conf.join("synapse.xml"));
        if directory.is_dir() {
            self.root(&directory);
        } else if file.is_file() {
            self.add(file, Some(ArtifactKind::Definitions));
        }
        for entry in self.list(path) {
            // Configurations of Synapse name files relative to its home that lie below `repository`.
            if !matches!(&*entry.name, "repository" | "registry" | "busbar.toml") {
                self.tree(&entry, Reason::ServerPart);
            }
        }
        self.finish();
    }

    /// `repository/deployment/server`.
    fn server(&mut self, path: &Path) {
        for entry in self.list(path) {
            match &*entry.name {
                "synapse-configs" => {
                    for file in self.list(&entry.path) {
                        match &*file.name {
                            "default" if file.is_directory => self.root(&file.path),
                            _ => self.tree(&file, Reason::Tenant),
                        }
                    }
                }
                "carbonapps" => {
                    for file in self.list(&entry.path) {
                        match &*file.extension() {
                            "car" => self.layout.archives.push(file.path),
                            _ => self.not_read.add(by_name(&file.name, &file.extension()), file.path),
                        }
                    }
                }
                "dataservices" if entry.is_directory => {
                    self.artifacts(&entry.path, ArtifactKind::DataService)
                }
                "synapse-libs" => self.libraries(&entry),
                "class-mediators" | "extensions" | "lib" => self.tree(&entry, Reason::Java),
                "axis2services" | "axis2modules" | "webapps" | "jaxwebapps" | "jaggeryapps"
                | "carbonlibs" => {
                    self.tree(&entry, Reason::WebApplication);
                }
                "axis2" | "axis2.xml" => self.tree(&entry, Reason::Transports),
                _ => self.tree(&entry, Reason::OtherServer),
            }
        }
    }

    /// The settings of a server.
    fn settings(&mut self, path: &Path) {
        if !path.is_dir() {
            return;
        }
        for entry in self.list(path) {
            match &*entry.name {
                "synapse-config" | "synapse.xml" => {}
                "datasources" if entry.is_directory => self.artifacts(&entry.path, ArtifactKind::DataSource),
                name if !entry.is_directory && SETTINGS.contains(&name) => {
                    self.layout.settings.push(entry.path)
                }
                "axis2" | "axis2.xml" => self.tree(&entry, Reason::Transports),
                _ => self.tree(&entry, Reason::OtherServer),
            }
        }
    }

    /// What tools write for the service catalogue. Definitions of APIs lie there, too, and are read with them.
    fn metadata(&mut self, path: &Path) {
        for entry in self.list(path) {
            match by_name(&entry.name, &entry.extension()) {
                Reason::ApiDefinition => {}
                _ => self.tree(&entry, Reason::ServiceMetadata),
            }
        }
    }

    /// A configuration root.
    fn root(&mut self, path: &Path) {
        let entries = self.list(path);
        let is_project = self.is_project(path, &entries);
        self.descriptor_in(path, &entries);
        for entry in entries {
            if self.claimed.contains(&entry.path) {
                continue;
            }
            let kind = kind_of(&entry.name);
            match (&*entry.name, kind) {
                ("synapse.xml", _) if !entry.is_directory => {
                    self.add(entry.path, Some(ArtifactKind::Definitions))
                }
                ("registry.xml", _) if !entry.is_directory => {
                    self.add(entry.path, Some(ArtifactKind::Registry))
                }
                (".env", _) if is_project && !entry.is_directory => {
                    self.layout.environment.push(entry.path);
                }
                ("task-manager.xml", _) if !entry.is_directory => {
                    self.add(entry.path, Some(ArtifactKind::TaskManager));
                }
                // A link to a volume that is not mounted.
                (_, Some(_)) if entry.path.metadata().is_err() => {
                    let why = entry.path.metadata().err().map_or_else(String::new, |error| in_words(&error));
                    self.unreadable("unreadable-directory", &entry.path, &why);
                }
                (_, Some((kind, true))) if entry.is_directory && (self.as_a_server || is_telling(&entry)) => {
                    self.artifacts(&entry.path, kind)
                }
                (_, Some((kind, _))) if entry.is_directory && !self.as_a_server => {
                    self.perhaps_artifacts(&entry.path, kind);
                }
                // Where Integration Studio keeps the groups of endpoints inside of artifacts while they are edited.
                ("complex-endpoints", None) if entry.is_directory => self.tree(&entry, Reason::Tooling),
                _ if self.as_a_server => self.tree(&entry, Reason::Elsewhere),
                _ => self.open_entry(path, entry),
            }
        }
    }

    /// The directory of a kind.
    fn artifacts(&mut self, path: &Path, kind: ArtifactKind) {
        for entry in self.list(path) {
            let extension = kind.extension();
            let is_xml = entry.extension() == extension;
            if self.claimed.contains(&entry.path) {
            } else if entry.name.starts_with('.') {
                // Files of editors and of version control, and those that macOS puts beside each file (`._A.xml`).
                self.tree(&entry, Reason::Tooling);
            } else if entry.is_directory && !self.as_a_server {
                self.walk_deeper(|walker| walker.artifacts(&entry.path, kind));
            } else if entry.is_directory {
                self.tree(&entry, Reason::Elsewhere);
            } else if is_xml && (!self.as_a_server || entry.name.ends_with(extension)) {
                if entry.name == "artifact.xml"
                    && root_element(&entry.path).is_some_and(|root| root.is_descriptor())
                {
                    self.descriptor(path, &entry.path);
                } else if entry.name == "pom.xml"
                    && root_element(&entry.path).is_some_and(|root| &*root.local == "project")
                {
                    // A module of a build lies beside its artifacts.
                    self.not_read.add(Reason::Tooling, entry.path);
                } else {
                    self.add(entry.path, Some(kind));
                }
            } else if is_xml {
                self.not_read.add(Reason::Capitals, entry.path);
            } else if entry.extension() == "xml"
                && root_element(&entry.path).is_some_and(|root| root.is_data_service())
            {
                self.not_read.add(Reason::DataService, entry.path);
            } else {
                self.not_read.add(by_name(&entry.name, &entry.extension()), entry.path);
            }
        }
    }

    /// A directory of unknown content.
    fn open(&mut self, path: &Path) {
        let entries = self.list(path);
        let is_project = self.is_project(path, &entries);
        if is_archive(&entries) {
            self.layout.archives.push(path.to_owned());
            return;
        }
        // The sources of a connector: its templates are operations of a library.
        let is_connector = |e: &Entry| e.name == "connector.xml" && !e.is_directory;
        if let Some(file) = entries.iter().find(|e| is_connector(e))
            && root_element(&file.path).is_some_and(|root| root.local == "connector")
        {
            return self.layout.library_paths.push(path.to_owned());
        }
        if entries.iter().any(|e| e.name == "synapse.xml" || is_telling(e)) {
            return self.root(path);
        }
        self.descriptor_in(path, &entries);
        for entry in entries {
            match &*entry.name {
                ".env" if is_project && !entry.is_directory => self.layout.environment.push(entry.path),
                _ => self.open_entry(path, entry),
            }
        }
    }

    /// Whether a directory is that of a project, or of a module of one.
    fn is_project(&self, path: &Path, entries: &[Entry]) -> bool {
        path == self.layout.root || entries.iter().any(|e| MODULE.contains(&&*e.name))
    }

    /// One entry of a directory that is not a root, or of a root that has it beside its artifacts.
    fn open_entry(&mut self, parent: &Path, entry: Entry) {
        if self.claimed.contains(&entry.path) {
            return;
        }
        if entry.is_directory {
            self.open_directory(parent, &entry);
        } else {
            self.open_file(entry);
        }
    }

    fn open_directory(&mut self, parent: &Path, entry: &Entry) {
        let path = &entry.path;
        let below = |name: &str| parent.file_name().is_some_and(|parent_name| parent_name == name);
        match &*entry.name {
            name if name.starts_with('.') => self.tree(entry, Reason::Tooling),
            "target" | "node_modules" | "build" => self.tree(entry, Reason::BuildOutput),
            "carbonapps" if below("tmp") => self.tree(entry, Reason::Unpacked),
            "test" | "tests" if below("src") => self.tree(entry, Reason::UnitTest),
            "java" if below("main") => self.tree(entry, Reason::Java),
            "synapse-config" => self.walk_deeper(|walker| walker.root(path)),
            "default" if below("synapse-configs") => self.walk_deeper(|walker| walker.root(path)),
            "artifacts" if below("wso2mi") => self.walk_deeper(|walker| walker.root(path)),
            "resources" if below("wso2mi") => self.resources(path),
            "connectors" | "synapse-libs" => self.libraries(entry),
            "class-mediators" => self.tree(entry, Reason::Java),
            "metadata" if below("resources") => self.metadata(path),
            "registry" | "_system" if is_registry(path) => self.registry(path),
            name => match kind_of(name) {
                Some((kind, _)) => self.walk_deeper(|walker| walker.perhaps_artifacts(path, kind)),
                None => self.walk_deeper(|walker| walker.open(path)),
            },
        }
    }

    /// A directory with the name of a kind, where directories of any purpose may lie: what it holds decides.
    fn perhaps_artifacts(&mut self, path: &Path, kind: ArtifactKind) {
        if self.holds(path, kind) { self.artifacts(path, kind) } else { self.open(path) }
    }

    /// Whether a directory holds artifacts of a kind, or could: it is not a module of a project, and has no other XML.
    fn holds(&mut self, path: &Path, kind: ArtifactKind) -> bool {
        let entries = self.list(path);
        if entries.iter().any(|entry| MODULE.contains(&&*entry.name)) {
            return false;
        }
        let files = entries.iter().filter(|entry| entry.extension() == kind.extension());
        let mut files = files.filter(|entry| !entry.is_directory).peekable();
        let has_files = files.peek().is_some();
        if files.any(|entry| is_of_kind(&entry.path, kind)) {
            return true;
        }
        let directories = entries.iter().filter(|entry| entry.is_directory && !entry.name.starts_with('.'));
        let mut directories = directories.peekable();
        let has_directories = directories.peek().is_some();
        self.walk.enter();
        let holds = directories.any(|entry| self.holds(&entry.path, kind));
        self.walk.leave();
        holds || !(has_files || has_directories)
    }

    fn open_file(&mut self, entry: Entry) {
        let extension = entry.extension();
        match (&*entry.name, &*extension) {
            ("busbar.toml", _) => {}
            (name, _) if name.starts_with('.') => self.not_read.add(Reason::Tooling, entry.path),
            (name, _) if SETTINGS.contains(&name) => self.layout.settings.push(entry.path),
            (_, "car") => self.layout.archives.push(entry.path),
            (_, "dbs") => self.add(entry.path, Some(ArtifactKind::DataService)),
            (_, "zip") if entry.name.contains("connector") => self.layout.library_paths.push(entry.path),
            (_, "xml") => self.xml(&entry.name, entry.path),
            (name, extension) => self.not_read.add(by_name(name, extension), entry.path),
        }
    }

    /// An XML file outside of the directories of a kind.
    fn xml(&mut self, name: &str, path: PathBuf) {
        let by_name = match by_name(name, "") {
            Reason::Unknown => Reason::NoArtifact,
            reason => reason,
        };
        let Some(root) = root_element(&path) else { return self.not_read.add(by_name, path) };
        match &*root.local {
            "project" | "assembly" => self.not_read.add(Reason::Tooling, path),
            "unit-test" | "mock-service" => self.not_read.add(Reason::UnitTest, path),
            _ if root.kind().is_some() => self.loose.push(path),
            _ if root.is_data_service() => self.not_read.add(Reason::DataService, path),
            _ => self.not_read.add(by_name, path),
        }
    }

    /// `src/main/wso2mi/resources`: everything is in the registry, below `resources:` or in `registry/{gov,conf}`.
    fn resources(&mut self, path: &Path) {
        let entries = self.list(path);
        self.descriptor_in(path, &entries);
        for entry in entries {
            match &*entry.name {
                _ if self.claimed.contains(&entry.path) => {}
                "artifact.xml" => {}
                "registry" if entry.is_directory => self.registry(&entry.path),
                "connectors" => self.libraries(&entry),
                "metadata" if entry.is_directory => self.metadata(&entry.path),
                "conf" if entry.is_directory => {
                    for file in self.list(&entry.path) {
                        match &*file.name {
                            "config.properties" => self.layout.configs.push(file.path),
                            name => self.not_read.add(by_name(name, &file.extension()), file.path),
                        }
                    }
                }
                name if name.starts_with('.') => self.tree(&entry, Reason::Tooling),
                name => {
                    let key = format!("resources:{name}");
                    self.mount(&entry.path, &key, entry.is_directory);
                }
            }
        }
    }

    /// A directory with `gov`, `conf`, … in it.
    fn registry(&mut self, path: &Path) {
        let entries = self.list(path);
        self.descriptor_in(path, &entries);
        for entry in entries {
            let key = match &*entry.name {
                "gov" | "governance" => "gov:",
                "conf" | "config" => "conf:",
                "local" => "local:",
                "artifact.xml" => continue,
                name => {
                    self.not_read.add(by_name(name, &entry.extension()), entry.path);
                    continue;
                }
            };
            self.mount(&entry.path, key, true);
        }
    }

    /// Mounts a file, or all files of a directory, in the registry.
    fn mount(&mut self, path: &Path, key: &str, is_directory: bool) {
        if !is_directory {
            let replaced = self.layout.mounts.add(key, Mount::File(path.to_owned()));
            if let Some(Mount::File(first)) =
                replaced.filter(|mount| !matches!(mount, Mount::File(first) if first == path))
            {
                let message = format!("two files of the project are the resource `{key}`");
                let file = self.sources.add(path.display().to_string(), "");
                self.problems.push(
                    Diagnostic::warning("duplicate-key", message)
                        .at(Span::new(file, 0, 0), "this one counts")
                        .help(format!("the other one is `{}`", first.display())),
                );
            }
            return;
        }
        for entry in self.list(path) {
            if entry.name == ".meta" || entry.name == ".metadata" {
                continue;
            }
            let key = match key {
                "gov:" | "conf:" | "local:" => format!("{key}{}", entry.name),
                _ => format!("{}/{}", key.trim_end_matches('/'), entry.name),
            };
            self.walk_deeper(|walker| walker.mount(&entry.path, &key, entry.is_directory));
        }
    }

    /// Reads the descriptor of a module before the rest of the directory: the files that it names are in use.
    fn descriptor_in(&mut self, directory: &Path, entries: &[Entry]) {
        for entry in entries.iter().filter(|e| e.name == "artifact.xml" && !e.is_directory) {
            self.descriptor(directory, &entry.path);
        }
    }

    fn descriptor(&mut self, directory: &Path, path: &Path) {
        self.claimed.insert(path.to_owned());
        let shown = path.display().to_string();
        let text = match read(path).and_then(crate::load::decode) {
            Ok(text) => text,
            Err(why) => return self.unreadable("unreadable-source", path, &why),
        };
        let file = self.sources.add(shown, text.as_str());
        let root = match crate::parse::parse(file, &text) {
            Ok(root) => root,
            Err(mut error) => {
                // The artifacts are found without the descriptor.
                error.severity = diagnostics::Severity::Warning;
                return self.problems.push(error);
            }
        };
        for artifact in descriptor::artifacts(&root) {
            self.described(directory, &artifact);
        }
    }

    fn described(&mut self, directory: &Path, artifact: &Described) {
        if let (Some(kind), Some(file)) = (archive::kind_of(&artifact.kind), &artifact.file) {
            if is_below(file) {
                self.listed.push((directory.join(file), kind, artifact.span));
            } else {
                let message = format!("`{file}` leads out of the directory of its descriptor");
                let found = Diagnostic::warning("missing-file", message).at(artifact.span, "it is not read");
                self.problems.push(found);
            }
        }
        if artifact.kind == "synapse/lib"
            && let Some(file) = &artifact.file
            && inside(directory, file).is_none()
        {
            let message = format!("the library `{file}` is not there");
            let label = "put the archive beside this descriptor, or take this entry away";
            self.problems.push(Diagnostic::warning("missing-file", message).at(artifact.span, label));
        }
        for resource in &artifact.resources {
            let places = resource.places();
            let Some(path) = places.iter().find_map(|place| inside(directory, place)) else {
                // What the build makes of the TypeScript of a data mapping, the mediator makes itself.
                let source = |place: &String| {
                    let made = [".dmc", "_inputSchema.json", "_outputSchema.json"];
                    let stem = made.into_iter().find_map(|end| place.strip_suffix(end))?;
                    inside(directory, &format!("{stem}.ts"))
                };
                if places.iter().find_map(source).is_some() {
                    continue;
                }
                let message = format!("the resource `{}` is not there", resource.source);
                let places: Vec<String> = places.iter().map(|place| format!("`{place}`")).collect();
                let label = match &places[..] {
                    [_] => "put it beside this descriptor, or take this entry away".to_owned(),
                    _ => format!("looked for at {}, relative to this descriptor", places.join(", ")),
                };
                self.problems.push(Diagnostic::warning("missing-file", message).at(resource.span, label));
                continue;
            };
            self.claimed.insert(path.clone());
            if resource.is_collection {
                self.mount(&path, &resource.path, true);
                self.layout.mounts.add_properties(&resource.path, true, &resource.properties);
            } else {
                for key in resource.keys() {
                    self.mount(&path, &key, false);
                    self.layout.mounts.add_properties(&key, false, &resource.properties);
                }
            }
        }
    }

    /// A file of a configuration root.
    fn add(&mut self, path: PathBuf, kind: Option<ArtifactKind>) {
        self.layout.files.push(ArtifactFile { path, kind });
    }

    /// A directory of libraries, or an unpacked library.
    fn libraries(&mut self, entry: &Entry) {
        if !entry.is_directory || self.claimed.contains(&entry.path) {
            return self.tree(entry, Reason::Connector);
        }
        if let Some(library) = library::library_in(&entry.path) {
            return self.layout.library_paths.push(library);
        }
        for component in self.list(&entry.path) {
            let library = match component.is_directory {
                true => library::library_in(&component.path),
                false => (component.extension() == "zip").then(|| component.path.clone()),
            };
            match library {
                Some(library) => self.layout.library_paths.push(library),
                None => self.tree(&component, Reason::Connector),
            }
        }
    }

    /// A file or directory that is not read; a directory without files is not reported.
    fn tree(&mut self, entry: &Entry, reason: Reason) {
        fn has_files(path: &Path, depth: usize) -> bool {
            let Ok(entries) = std::fs::read_dir(path) else { return true };
            entries.flatten().any(|entry| {
                match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    true => depth == 0 || has_files(&entry.path(), depth - 1),
                    // The file that keeps an empty directory in a repository.
                    false => entry.file_name() != ".gitkeep",
                }
            })
        }
        if !self.claimed.contains(&entry.path) && (!entry.is_directory || has_files(&entry.path, 8)) {
            self.not_read.add(reason, &entry.path);
        }
    }

    fn list(&mut self, path: &Path) -> Vec<Entry> {
        match self.walk.list(path) {
            Ok(entries) => entries,
            Err(why) => {
                self.unreadable("unreadable-directory", path, &why);
                Vec::new()
            }
        }
    }

    fn walk_deeper(&mut self, visit: impl FnOnce(&mut Self)) {
        self.walk.enter();
        visit(self);
        self.walk.leave();
    }

    fn unreadable(&mut self, rule: &'static str, path: &Path, why: &str) {
        let file = self.sources.add(path.display().to_string(), "");
        let message = format!("`{}` cannot be read: {why}", path.display());
        self.problems.push(Diagnostic::error(rule, message).at(Span::new(file, 0, 0), ""));
    }

    /// Adds what descriptors list beside roots, adds loose artifacts where there is nothing else, and sorts.
    fn finish(&mut self) {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let listed = std::mem::take(&mut self.listed);
        let files = self.layout.files.iter().filter(|_| !listed.is_empty());
        let mut read: HashSet<PathBuf> = files.map(|file| real(&file.path)).collect();
        for (path, kind, span) in listed {
            let same = real(&path);
            if read.contains(&same) {
                continue;
            }
            match path.metadata() {
                Ok(found) if found.is_file() => {
                    self.loose.retain(|p| real(p) != same);
                    read.insert(same);
                    self.add(path, Some(kind));
                }
                other => {
                    let why = other.err().map_or("it is not a file".to_owned(), |error| in_words(&error));
                    let message = format!("`{}` cannot be read: {why}", path.display());
                    self.problems.push(Diagnostic::warning("missing-file", message).at(span, "named here"));
                    self.layout.missing.push(ArtifactFile { path, kind: Some(kind) });
                }
            }
        }
        let loose = std::mem::take(&mut self.loose);
        if self.layout.files.is_empty() && self.layout.archives.is_empty() {
            loose.into_iter().for_each(|path| self.add(path, None));
        } else {
            for path in loose {
                let directory = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
                let reason = match directory.and_then(kind_of) {
                    Some(_) => Reason::OtherKind,
                    None => Reason::Elsewhere,
                };
                self.not_read.add(reason, path);
            }
        }
        let mut seen = HashSet::new();
        self.layout.settings.retain(|path| seen.insert(path.clone()));
        self.layout.archives.sort();
        self.layout.files.sort_by_key(|file| (file.kind.is_none(), file.kind));
        self.layout.not_read = std::mem::take(&mut self.not_read);
    }

    /// Reads the archives.
    pub fn read_archives(&mut self) {
        for path in std::mem::take(&mut self.layout.library_paths) {
            match library::read(&path) {
                Ok(library) => self.layout.libraries.push(library),
                Err(unread) => {
                    let shown = path.display().to_string();
                    self.layout.broken_libraries.push(BrokenFiles { shown, archive: None, unread });
                }
            }
        }
        for path in std::mem::take(&mut self.layout.archives) {
            let mut reader = Reader {
                sources: self.sources,
                problems: self.problems,
                not_read: &mut self.layout.not_read,
            };
            match reader.archive(&path) {
                Ok(mut archive) => {
                    self.layout.libraries.append(&mut archive.libraries);
                    self.layout.broken_libraries.append(&mut archive.broken_libraries);
                    self.layout.cars.push(archive);
                }
                Err(error) => self.layout.refused.push((path.display().to_string(), error)),
            }
        }
    }
}

/// The kind of a directory's artifacts, and whether servers read a directory of this name.
fn kind_of(name: &str) -> Option<(ArtifactKind, bool)> {
    if let Some(kind) =
        ArtifactKind::all().find(|kind| !kind.directory().is_empty() && kind.directory() == name)
    {
        return Some((kind, true));
    }
    let lower = name.to_ascii_lowercase();
    let canonical =
        ArtifactKind::all().find(|kind| !kind.directory().is_empty() && kind.directory() == lower);
    canonical
        .or_else(|| OTHER_NAMES.iter().find(|(other, _)| *other == lower).map(|(_, kind)| *kind))
        .map(|kind| (kind, false))
}

/// Whether a sub-directory proves that its parent is a configuration root.
fn is_telling(entry: &Entry) -> bool {
    entry.is_directory && TELLING.contains(&&*entry.name)
}

fn is_archive(entries: &[Entry]) -> bool {
    entries.iter().any(|entry| {
        matches!(&*entry.name, "artifacts.xml" | "metadata.xml")
            && !entry.is_directory
            && read(&entry.path)
                .is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains("carbon/application"))
    })
}

fn is_registry(path: &Path) -> bool {
    ["gov", "governance", "conf", "config", "local"].iter().any(|name| path.join(name).is_dir())
}

/// An existing path below a directory.
fn inside(directory: &Path, relative: &str) -> Option<PathBuf> {
    Some(directory.join(relative)).filter(|path| is_below(relative) && path.exists())
}

/// Whether a path leads to something below the directory that it is relative to.
fn is_below(relative: &str) -> bool {
    let mut parts = Path::new(relative).components();
    parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// The root element of an XML file, as far as its start tag tells.
struct Root {
    local: String,
    is_synapse: bool,
    has_namespace: bool,
    is_named: bool,
}

impl Root {
    /// The artifact that the file holds.
    fn kind(&self) -> Option<ArtifactKind> {
        // They have no Synapse namespace, and a child element names them.
        if matches!(&*self.local, "datasource" | "datasources-configuration") && !self.has_namespace {
            return Some(ArtifactKind::DataSource);
        }
        // Many other documents have such a root: the extension of a data service decides.
        if &*self.local == "data" {
            return None;
        }
        let is_ours = self.is_synapse || (!self.has_namespace && self.is_named);
        ArtifactKind::of_element(&self.local).filter(|_| is_ours)
    }

    fn is_data_service(&self) -> bool {
        &*self.local == "data" && self.is_named
    }

    fn is_descriptor(&self) -> bool {
        matches!(&*self.local, "artifact" | "artifacts")
    }
}

/// Looks at the first start tag only: the file may be large, and is read again if it counts.
fn root_element(path: &Path) -> Option<Root> {
    let bytes = beginning(path, START)?;
    first_tag(&bytes).or_else(|| first_tag(&without_doctype(&bytes)?))
}

/// The bytes without the document type declaration, which the tokenizer refuses.
fn without_doctype(bytes: &[u8]) -> Option<Vec<u8>> {
    let declared = doctype(bytes)?;
    Some([&bytes[..declared.start], &bytes[declared.end..]].concat())
}

fn first_tag(bytes: &[u8]) -> Option<Root> {
    let mut tokenizer = Tokenizer::new(Limits::trusted());
    tokenizer.feed(bytes);
    if (bytes.len() as u64) < START {
        tokenizer.finish();
    }
    while let Some(event) = tokenizer.next().ok()? {
        let Event::StartElement { name, attributes, .. } = event else { continue };
        let is_named = attributes
            .into_iter()
            .any(|attribute| matches!(attribute.name.local(), "name" | "key" | "provider"));
        return Some(Root {
            local: name.local().to_owned(),
            is_synapse: [SYNAPSE, SYNAPSE_2_0].contains(&name.namespace()),
            has_namespace: !name.namespace().is_empty(),
            is_named,
        });
    }
    None
}

/// Whether a file holds an artifact of a kind. One whose first tag is broken does if it begins like one.
fn is_of_kind(path: &Path, kind: ArtifactKind) -> bool {
    if kind == ArtifactKind::DataService {
        return true;
    }
    match root_element(path) {
        Some(root) => root.kind() == Some(kind),
        None => beginning(path, START).is_some_and(|bytes| {
            String::from_utf8_lossy(&bytes).trim_start().starts_with(&format!("<{}", kind.element()))
        }),
    }
}
