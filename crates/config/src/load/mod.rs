//! Files -> [`Configuration`]. A faulty artifact is reported and left out, the others stay.

mod archives;
mod names;

use crate::artifacts::{
    Api, DataService, DataSource, EventSource, Import, InboundEndpoint, LocalEntry, MessageProcessor,
    MessageStore, PriorityExecutor, Proxy, Reading, Registry, Sequence, SequenceTemplate, Task, TaskManager,
    Template, WsdlSource,
};
use crate::configuration::{ArtifactKind, Configuration, FaultyArtifact, Flawed, Running};
use crate::element::{Element, SYNAPSE};
use crate::endpoint::Endpoint;
use crate::fetch::{Fetch, Noted};
use crate::inject::Injector;
use crate::layout::{self, Archive, Layout, NotRead};
use crate::read;
use diagnostics::{Diagnostic, Diagnostics, Edit, FileId, SourceMap, Span};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a configuration is loaded.
#[derive(Clone, Default, Debug)]
pub struct LoadOptions {
    /// Where `$SYSTEM:` and `$FILE:` values come from; `None`: the environment and `file.properties` beside the
    /// configuration.
    pub injector: Option<Injector>,
    /// Fetches local entries whose `src` is an http(s) URL, once, while loading. `None`: they are left out.
    pub fetch: Option<Fetch>,
    /// The configuration is only checked: values from outside that are missing on this machine are warnings.
    pub check_only: bool,
    /// Source texts that were read before, whose spans stay valid.
    pub sources: SourceMap,
    /// Where the artifacts in force are written: of two artifacts with one name, the one in force stays.
    pub running: Running,
}

/// A configuration with all findings.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The artifacts that can be used.
    pub configuration: Configuration,
    /// The texts that spans are in.
    pub sources: SourceMap,
    /// The findings, in the order of loading.
    pub diagnostics: Diagnostics,
    /// The artifacts that were left out.
    pub faulty: Vec<FaultyArtifact>,
    /// Those of `faulty` whose flows can be read: they are checked too.
    pub flawed: Flawed,
    /// Artifacts that are not read: why, and the path of each.
    pub not_read: Vec<(&'static str, PathBuf)>,
}

/// Loads the configuration at `path`: a file with `<definitions>` or with one artifact, a configuration directory, a
/// project, an archive, a directory of any of these, or the home of a server. Never fails: what cannot be used is in
/// `diagnostics` and `faulty`.
pub fn load(path: &Path, options: &LoadOptions) -> Loaded {
    let Some(fetch) = &options.fetch else { return load_once(path, options) };
    // Resources on other servers are read at the same time, so their addresses must be known first: the few configurations that have
    // some are read twice.
    let noted = Noted::default();
    let first = LoadOptions { fetch: Some(noted.fetch()), ..options.clone() };
    let mut loaded = load_once(path, &first);
    let mut addresses = noted.take();
    addresses.extend(loaded.configuration.proxies.iter().filter_map(remote_wsdl));
    addresses.sort();
    addresses.dedup();
    if addresses.is_empty() {
        loaded.configuration.fetch = Some(fetch.clone());
        loaded.configuration.registry.fetch_with(fetch.kept.clone());
        return loaded;
    }
    let mut loaded = load_once(path, &LoadOptions { fetch: Some(fetch.ahead(addresses)), ..options.clone() });
    loaded.configuration.registry.fetch_with(fetch.kept.clone());
    loaded
}

/// The address of the WSDL that a proxy service publishes, where that lies on another server.
fn remote_wsdl(proxy: &Proxy) -> Option<String> {
    match &proxy.publish_wsdl.as_ref()?.source {
        WsdlSource::Uri(uri) if uri.starts_with("http:") || uri.starts_with("https:") => {
            Some(uri.trim().to_owned())
        }
        _ => None,
    }
}

fn load_once(path: &Path, options: &LoadOptions) -> Loaded {
    let mut sources = options.sources.clone();
    let mut problems = Vec::new();
    let layout = layout::find(path, &mut sources, &mut problems);
    let injector = match &options.injector {
        Some(injector) => injector.clone(),
        None => from_outside(&layout, &mut sources, &mut problems),
    };
    let injector = injector.check_only(options.check_only);
    let mut loader = Loader::new(layout.root, layout.registry, injector, options);
    loader.sources = sources;
    loader.diagnostics.extend(problems);
    loader.configuration.mounts = layout.mounts;
    loader.configuration.settings = layout.settings;
    loader.not_read = layout.not_read;
    let mut libraries = layout.libraries;
    // Of two with one name the one in force stays, else the first one counts.
    libraries.sort_by_key(|library| !loader.running.is_library(&library.name, &library.shown));
    loader.libraries(libraries);
    for broken in layout.broken_libraries {
        loader.no_library(broken);
    }
    for file in &layout.files {
        loader.file(&file.path, file.kind);
    }
    for file in &layout.missing {
        loader.missing(&file.path, file.kind);
    }
    if layout.cars.is_empty() {
        loader.of_registry(&layout.files);
    }
    loader.data_sources_of_settings();
    for (path, error) in layout.refused {
        loader.refused(&path, error);
    }
    let mut archives = layout.cars;
    for at in 0..archives.len() {
        // Of two with one id the one in force stays, wherever the other one stands.
        let runs = |archive: &Archive| loader.running.is_archive(&archive.id, &archive.shown);
        let (archive, behind) = (&archives[at], archives.iter().enumerate().skip(at + 1));
        let other =
            behind.filter(|(_, other)| other.id == archive.id && runs(other)).map(|(at, _)| at).next();
        if let Some(other) = other {
            archives.swap(at, other);
        }
    }
    for archive in archives {
        loader.archive(archive);
    }
    loader.configs(&layout.configs);
    loader.finish()
}

/// The values of `file.properties` and `.env`. Where two files have the same name, the first one counts: `file.properties` beside the
/// configuration, then that of `conf`; of `.env` the outermost.
fn from_outside(layout: &Layout, sources: &mut SourceMap, problems: &mut Vec<Diagnostic>) -> Injector {
    let mut injector = Injector::new();
    let mut environment: Vec<&PathBuf> = layout.environment.iter().collect();
    environment.sort_by_key(|path| path.components().count());
    let properties = layout.properties().map(|path| (path, injector.add_file(path)));
    let mut second: Vec<(&PathBuf, Vec<String>)> = properties.collect();
    second.extend(environment.into_iter().map(|path| (path, injector.add_defaults(path))));
    for (path, names) in second.into_iter().filter(|(_, names)| !names.is_empty()) {
        let file = sources.add(path.display().to_string(), "");
        let message = format!("`{}` of `{}` has no effect", names.join("`, `"), path.display());
        let found = Diagnostic::warning("duplicate-key", message);
        problems.push(found.at(Span::new(file, 0, 0), "a file that goes before it says something else"));
    }
    injector
}

/// Loads a configuration from a text, as if it were the file `path`. Paths in it are relative to `root`.
pub fn load_text(path: &str, text: &str, root: &Path, options: &LoadOptions) -> Loaded {
    let injector = options.injector.clone().unwrap_or_default();
    let mut loader = Loader::new(root.to_owned(), root.join("registry"), injector, options);
    loader.text(path, text.to_owned(), None);
    loader.finish()
}

/// Parses the artifacts at these places of a file again.
pub(crate) fn once_more(
    file: FileId,
    wanted: &HashSet<Span>,
    sources: &SourceMap,
    configuration: &Configuration,
) -> Configuration {
    let registry = configuration.root.join("registry");
    let mut loader = Loader::new(
        configuration.root.clone(),
        registry,
        configuration.injector.clone(),
        &LoadOptions::default(),
    );
    let text = sources.get(file).map(|source| source.text().clone()).unwrap_or_default();
    if let Ok(root) = crate::parse::parse(file, &text) {
        let all = std::iter::once(&root).chain(root.elements());
        all.filter(|element| wanted.contains(&element.span())).for_each(|element| loader.artifact(element));
    }
    loader.configuration
}

struct Loader {
    configuration: Configuration,
    sources: SourceMap,
    diagnostics: Diagnostics,
    faulty: Vec<FaultyArtifact>,
    /// Where every name is defined: by kind, and by key for the kinds that share keys.
    defined: HashMap<(Option<ArtifactKind>, String), (ArtifactKind, Span)>,
    default_registry: PathBuf,
    fetch: Option<Fetch>,
    running: Running,
    flawed: Flawed,
    /// Errors of artifacts that were read before the present one.
    found_before: Vec<Diagnostic>,
    not_read: NotRead,
    /// An archive is being loaded: the last one of the configuration.
    in_archive: bool,
}

impl Loader {
    fn new(root: PathBuf, registry: PathBuf, injector: Injector, options: &LoadOptions) -> Loader {
        let mut configuration = Configuration::new(root, registry.clone(), injector);
        configuration.fetch = options.fetch.clone();
        Loader {
            configuration,
            sources: options.sources.clone(),
            diagnostics: Diagnostics::new(),
            faulty: Vec::new(),
            defined: HashMap::new(),
            default_registry: registry,
            fetch: options.fetch.clone(),
            running: options.running.clone(),
            flawed: Flawed::default(),
            found_before: Vec::new(),
            not_read: NotRead::default(),
            in_archive: false,
        }
    }

    fn file(&mut self, path: &Path, kind: Option<ArtifactKind>) {
        match layout::read(path).and_then(decode) {
            Ok(text) => {
                let file = self.text(&path.display().to_string(), text, kind);
                if let Some(definition) = definition_of(path) {
                    self.packed_definition(file, &definition);
                }
            }
            Err(message) => self.unreadable(&path.display().to_string(), kind, message),
        }
    }

    /// A configuration with a registry and nothing else is the resource `synapse.xml` of that, as in Synapse.
    fn of_registry(&mut self, files: &[layout::ArtifactFile]) {
        let registry = &self.configuration.registry;
        if registry.provider.is_none() || self.configuration.artifacts() > 0 || !self.faulty.is_empty() {
            return;
        }
        let Some(path) = registry.path("synapse.xml").filter(|path| path.is_file()) else { return };
        let is_same = |other: &Path| std::fs::canonicalize(other).ok() == std::fs::canonicalize(&path).ok();
        if !files.iter().any(|file| is_same(&file.path)) {
            self.file(&path, Some(ArtifactKind::Definitions));
        }
    }

    /// The definition that lies beside the API of a file.
    fn packed_definition(&mut self, file: FileId, definition: &Arc<[u8]>) {
        let packed = self.configuration.apis.iter_mut().find(|api| api.span.file == file);
        packed.into_iter().for_each(|api| api.packed_definition = Some(Arc::clone(definition)));
    }

    /// Reports names of values from outside that are not set.
    fn configs(&mut self, files: &[PathBuf]) {
        for path in files {
            let shown = path.display().to_string();
            match layout::read(path).and_then(decode) {
                Ok(text) => {
                    let file = self.sources.add(shown, text.as_str());
                    let mut names: Vec<String> = crate::properties(&text).into_keys().collect();
                    names.sort();
                    for name in names {
                        let at = text.find(&name).map_or(0..0, |at| at..at + name.len());
                        self.value_from_outside(Span::new(file, at.start, at.end), &name);
                    }
                }
                Err(message) => {
                    let file = self.sources.add(shown, "");
                    let message = format!("the file cannot be read: {message}");
                    self.diagnostics.push(
                        Diagnostic::warning("unreadable-source", message).at(Span::new(file, 0, 0), ""),
                    );
                }
            }
        }
    }

    /// `[[datasource]]` of the settings of a server.
    fn data_sources_of_settings(&mut self) {
        let files = self.configuration.settings.iter().filter(|path| path.ends_with("deployment.toml"));
        for path in files.cloned().collect::<Vec<_>>() {
            // Errors in it are reported with the other settings.
            let Ok(text) = layout::read(&path).and_then(decode) else { continue };
            let file = self.sources.add(path.display().to_string(), text.as_str());
            for source in DataSource::of_settings(&text, file) {
                let found = source.without_address();
                self.diagnostics.extend(found.map(|found| found.help("write url = \"jdbc:…\"")));
                self.configuration.data_sources.insert(source.name.value.clone(), source);
            }
        }
    }

    fn value_from_outside(&mut self, span: Span, name: &str) {
        let injector = &self.configuration.injector;
        if injector.environment(name).is_none() && injector.property(name).is_none() {
            let message = format!("`{name}` has no value");
            self.diagnostics.push(
                Diagnostic::warning("unresolved-value", message)
                    .at(span, "neither an environment variable nor in file.properties or .env"),
            );
        }
    }

    fn text(&mut self, path: &str, text: String, kind: Option<ArtifactKind>) -> FileId {
        let file = self.add(path, text.strip_prefix('\u{feff}').unwrap_or(&text));
        self.source(file, kind);
        file
    }

    /// A file with artifacts, which may be a member of an archive.
    fn add(&mut self, path: &str, text: &str) -> FileId {
        let file = self.sources.add(path, text);
        if self.in_archive
            && let Some(archive) = self.configuration.archives.last_mut()
        {
            archive.files.push(file);
        }
        file
    }

    fn source(&mut self, file: FileId, kind: Option<ArtifactKind>) {
        let text = self.sources.get(file).map(|source| source.text().clone()).unwrap_or_default();
        let root = match crate::parse::parse(file, &text) {
            Ok(root) => root,
            Err(error) => return self.broken_file(file, kind, error),
        };
        if root.is("definitions") && kind.is_none_or(|kind| kind == ArtifactKind::Definitions) {
            return self.definitions(&root);
        }
        if root.local() == "datasources-configuration"
            && kind.is_none_or(|kind| kind == ArtifactKind::DataSource)
        {
            let root = root.adopted();
            return root
                .children_named("datasources")
                .flat_map(|list| list.children_named("datasource"))
                .for_each(|child| self.artifact(child));
        }
        let found = ArtifactKind::of_element(root.local());
        if found.is_none() || kind.is_some_and(|kind| Some(kind) != found) {
            let expected = kind.map_or("definitions or an artifact", ArtifactKind::element);
            let error = Diagnostic::error("wrong-root", format!("`{}` is not expected here", root.name()))
                .at(root.name_span(), format!("expected `{expected}`"));
            let error = match (kind, found) {
                (Some(_), Some(other)) if !other.directory().is_empty() => {
                    error.help(format!("its directory is `{}`", other.directory()))
                }
                _ => error,
            };
            let error = match kind {
                Some(kind) => error.did_you_mean(root.local(), [kind.element()]),
                None => error.did_you_mean(root.local(), ArtifactKind::all().map(ArtifactKind::element)),
            };
            return self.broken_file(file, kind, error);
        }
        // synapse.xml takes precedence over the artifact's file.
        let settled = match kind {
            Some(ArtifactKind::Registry) => self.configuration.registry.provider.is_some(),
            Some(ArtifactKind::TaskManager) => self.configuration.task_manager.is_some(),
            _ => false,
        };
        if !settled {
            self.artifact(&root);
        }
    }

    /// A file that a descriptor names and that is not there. While a project is copied, that is so for a moment: what was in force of it stays.
    fn missing(&mut self, path: &Path, kind: Option<ArtifactKind>) {
        let path = path.display().to_string();
        if self.running.has_lost(&path, &self.configuration) {
            self.unreadable(&path, kind, "it does not exist, and a descriptor names it".to_owned());
        }
    }

    fn unreadable(&mut self, path: &str, kind: Option<ArtifactKind>, message: String) {
        let file = self.add(path, "");
        let message = format!("the file cannot be read: {message}");
        self.broken_file(file, kind, Diagnostic::error("unreadable-source", message));
    }

    /// The whole file is of no use.
    fn broken_file(&mut self, file: FileId, kind: Option<ArtifactKind>, mut error: Diagnostic) {
        let path = self.sources.get(file).map_or("", |source| source.path());
        let name = Path::new(path).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        if error.labels.is_empty() {
            error = error.at(Span::new(file, 0, 0), "");
        }
        let span = error.span().unwrap_or(Span::new(file, 0, 0));
        let kind = kind.unwrap_or(ArtifactKind::Definitions);
        let faulty = FaultyArtifact::new(kind, name, span, error.message.clone());
        self.faulty.push(FaultyArtifact { whole_file: true, ..faulty });
        self.diagnostics.push(error);
    }

    fn definitions(&mut self, root: &Element) {
        let shape = read::Shape { attributes: &["name", "description"], elements: &[] };
        shape.check_attributes(root, &mut self.diagnostics);
        read::stray_text(root, &mut self.diagnostics);
        for child in root.elements() {
            if child.is("description") {
                continue;
            }
            match ArtifactKind::of_element(child.local()).filter(|kind| *kind != ArtifactKind::Definitions) {
                Some(_) => self.artifact(child),
                None => {
                    let names: Vec<&str> = ArtifactKind::all().skip(1).map(ArtifactKind::element).collect();
                    let error = read::unknown_element(root, child, &names);
                    let name = child.attr("name").or(child.attr("key")).map(str::to_owned);
                    let (kind, span) = (ArtifactKind::Definitions, child.start_tag());
                    self.faulty.push(FaultyArtifact::new(kind, name, span, error.message.clone()));
                    self.diagnostics.push(error);
                }
            }
        }
    }

    /// Reads one artifact; its errors leave out no other one.
    fn artifact(&mut self, element: &Element) {
        let Some(kind) = ArtifactKind::of_element(element.local()) else { return };
        let mark = self.diagnostics.len();
        match element.namespace() {
            // Data sources are not Synapse elements: they have no namespace.
            "" if matches!(kind, ArtifactKind::DataSource | ArtifactKind::DataService) => {
                self.read(kind, &element.adopted(), mark)
            }
            SYNAPSE => self.read(kind, element, mark),
            namespace if kind == ArtifactKind::DataService => {
                let message = format!("`{}` is in the namespace `{namespace}`", element.name());
                let found = Diagnostic::warning("wrong-namespace", message)
                    .at(
                        element.name_span(),
                        "read as if it were in none, as the elements of data services are",
                    )
                    .help(
                        "take the declaration of the namespace away: WSO2 finds only a part of such elements",
                    );
                self.diagnostics.push(found);
                self.read(kind, &element.adopted_from(namespace), mark);
            }
            "" if !kind.is_mediation() => {
                let message = format!("`{}` is in no namespace", element.name());
                let found = Diagnostic::warning("wrong-namespace", message)
                    .at(element.name_span(), "read as if it were in that of Synapse");
                let declaration = format!("xmlns=\"{SYNAPSE}\"");
                let is_bare = element.declarations().is_empty() && element.elements().all(has_no_content);
                self.diagnostics.push(match is_bare && kind != ArtifactKind::LocalEntry {
                    true => {
                        let was = element.local().to_owned();
                        let text = format!("{was} {declaration}");
                        found.fix(
                            format!("declare {declaration}"),
                            vec![Edit { span: element.name_span(), was, text }],
                        )
                    }
                    false => found.help(format!("declare {declaration} here")),
                });
                self.read(kind, &element.adopted(), mark);
            }
            _ => self.diagnostics.push(read::wrong_namespace(element)),
        }
        if let Some(error) = self.diagnostics.first_error_since(mark) {
            let name = match kind {
                ArtifactKind::DataSource => {
                    read::child_text(&element.adopted(), "name").map(|name| name.value)
                }
                _ => element.attr(kind.name_attribute()).map(|name| name.trim().to_owned()),
            };
            let name = name.filter(|name| !name.is_empty());
            let span = error.span().unwrap_or(element.start_tag());
            let faulty = FaultyArtifact::new(kind, name, span, error.message.clone());
            self.faulty.push(match kind {
                ArtifactKind::Api => Api::faulty(element, faulty),
                _ => faulty,
            });
        }
    }

    fn read(&mut self, kind: ArtifactKind, element: &Element, mark: usize) {
        // `Reading` borrows what the readers need, `self.keep` then files the artifact.
        macro_rules! read {
            ($reader:path $(, $more:expr)?) => {{
                let mut reading = Reading {
                    diagnostics: &mut self.diagnostics,
                    injector: &self.configuration.injector,
                    root: &self.configuration.root,
                    fetch: self.fetch.as_ref(),
                };
                $reader(element, $($more,)? &mut reading)
            }};
        }
        macro_rules! keep {
            ($artifact:expr, $name:expr, $field:ident) => {
                if let Some(artifact) = $artifact {
                    let name: String = $name(&artifact);
                    if self.free(kind, &name, element, mark) {
                        self.configuration.$field.insert(name, artifact);
                    }
                }
            };
        }
        // As `keep`, of artifacts that have flows.
        macro_rules! keep_flows {
            ($artifact:expr, $name:expr, $field:ident) => {
                match $artifact {
                    Some(artifact) if self.diagnostics.has_errors_since(mark) => {
                        self.flawed.$field.push(($name(&artifact), artifact));
                    }
                    artifact => keep!(artifact, $name, $field),
                }
            };
        }
        match kind {
            ArtifactKind::Definitions | ArtifactKind::Archive | ArtifactKind::Library => {}
            ArtifactKind::Registry => {
                if let Some(registry) = read!(Registry::parse, &self.default_registry)
                    && self.free(kind, "", element, mark)
                {
                    self.configuration.registry = registry;
                }
            }
            ArtifactKind::TaskManager => {
                if let Some(manager) = read!(TaskManager::parse)
                    && self.free(kind, "", element, mark)
                {
                    self.configuration.task_manager = Some(manager);
                }
            }
            ArtifactKind::Import => {
                keep!(read!(Import::parse), |a: &Import| format!("{{{}}}{}", a.package, a.name), imports);
            }
            ArtifactKind::DataSource => {
                keep!(read!(DataSource::parse), |a: &DataSource| a.name.to_string(), data_sources);
            }
            ArtifactKind::DataService => {
                keep!(read!(DataService::parse), |a: &DataService| a.name.to_string(), data_services);
            }
            ArtifactKind::LocalEntry => {
                keep!(read!(LocalEntry::parse), |a: &LocalEntry| a.key.to_string(), local_entries);
            }
            ArtifactKind::Endpoint => {
                read::required(element, "name", &mut self.diagnostics);
                let endpoint =
                    Endpoint::parse_with(element, &self.configuration.injector, &mut self.diagnostics);
                let name = |a: &Endpoint| a.name.as_ref().map(ToString::to_string).unwrap_or_default();
                keep!(endpoint, name, endpoints);
            }
            ArtifactKind::Sequence => {
                let name = |a: &Sequence| a.name.as_ref().map(ToString::to_string).unwrap_or_default();
                keep_flows!(Sequence::parse(element, &mut self.diagnostics), name, sequences);
            }
            ArtifactKind::Template => match Template::parse(element, &mut self.diagnostics) {
                Some(Template::Sequence(template)) => {
                    keep_flows!(
                        Some(*template),
                        |a: &SequenceTemplate| a.name.to_string(),
                        sequence_templates
                    );
                }
                Some(Template::Endpoint(template)) => {
                    keep!(
                        Some(template),
                        |a: &crate::EndpointTemplate| a.name.to_string(),
                        endpoint_templates
                    );
                }
                None => {}
            },
            ArtifactKind::Proxy => keep_flows!(read!(Proxy::parse), |a: &Proxy| a.name.to_string(), proxies),
            ArtifactKind::Task => keep!(read!(Task::parse), |a: &Task| a.name.to_string(), tasks),
            ArtifactKind::EventSource => {
                keep!(read!(EventSource::parse), |a: &EventSource| a.name.to_string(), event_sources);
            }
            ArtifactKind::PriorityExecutor => {
                let name = |a: &PriorityExecutor| a.name.to_string();
                keep!(read!(PriorityExecutor::parse), name, priority_executors);
            }
            ArtifactKind::MessageStore => {
                keep!(read!(MessageStore::parse), |a: &MessageStore| a.name.to_string(), message_stores);
            }
            ArtifactKind::MessageProcessor => {
                let name = |a: &MessageProcessor| a.name.to_string();
                keep!(read!(MessageProcessor::parse), name, message_processors);
            }
            ArtifactKind::Api => {
                let api = read!(Api::parse);
                let free = api.as_ref().is_none_or(|api| self.context_is_free(api));
                keep_flows!(api.filter(|_| free), Api::registered_name, apis);
            }
            ArtifactKind::InboundEndpoint => {
                let name = |a: &InboundEndpoint| a.name.to_string();
                keep!(read!(InboundEndpoint::parse), name, inbound_endpoints);
            }
        }
    }

    fn finish(mut self) -> Loaded {
        self.configuration.finish();
        self.diagnostics.extend(std::mem::take(&mut self.found_before));
        crate::references::check(&self.configuration, &mut self.diagnostics);
        let (default, registry) = (&self.default_registry, self.configuration.registry.root.as_ref());
        if registry.is_some_and(|root| !root.starts_with(default) && !default.starts_with(root))
            && default.is_dir()
        {
            self.not_read.add(layout::Reason::Registry, &self.default_registry);
        }
        self.same_resources();
        let not_read = self.not_read_findings();
        self.diagnostics.extend(not_read);
        Loaded {
            not_read: self.not_read.artifacts().map(|(artifact, path)| (artifact, path.to_owned())).collect(),
            configuration: self.configuration,
            sources: self.sources,
            diagnostics: self.diagnostics,
            faulty: self.faulty,
            flawed: self.flawed,
        }
    }

    /// Archives that bring different resources of one path: the last one counts for all.
    fn same_resources(&mut self) {
        let archives = &self.configuration.archives;
        let mut found = Vec::new();
        for (at, archive) in archives.iter().enumerate() {
            for before in &archives[..at] {
                for path in before.mounts.replaced_by(&archive.mounts) {
                    found.push((path, archive.path.clone(), before.path.clone()));
                }
            }
        }
        for (path, this, before) in found {
            let file = self.sources.add(this.as_str(), "");
            let message = format!("two archives have the resource `{path}`, and it differs");
            self.diagnostics.push(
                Diagnostic::warning("duplicate-key", message)
                    .at(Span::new(file, 0, 0), "this one counts, for what is in the other archive too")
                    .help(format!("the other one is in `{before}`")),
            );
        }
    }

    fn not_read_findings(&mut self) -> Vec<Diagnostic> {
        let entries: Vec<PathBuf> =
            self.configuration.local_entries.iter().filter_map(|entry| entry.origin.clone()).collect();
        let texts: Vec<Arc<str>> = self.sources.iter().map(|(_, source)| Arc::clone(source.text())).collect();
        // A file is in use if the configuration names it, or if a file in use does (a schema that a schema imports). The texts
        // are searched once, for the words of all names.
        let name = |path: &'_ Path| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
        let names: Vec<String> = self.not_read.paths().filter_map(name).collect();
        let wanted: HashSet<&str> = names.iter().flat_map(|name| words(name)).collect();
        let used: HashSet<&str> =
            texts.iter().flat_map(|text| words(text)).filter(|word| wanted.contains(word)).collect();
        let is_used = |path: &Path| {
            entries.iter().any(|entry| entry.starts_with(path))
                || name(path).is_some_and(|name| words(&name).all(|word| used.contains(word)))
        };
        self.not_read.findings(&self.configuration.root, &mut self.sources, is_used)
    }
}

/// The parts of a text that can be names of files.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let within = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '-' | '_');
    text.split(move |letter| !within(letter))
        .map(|word| word.trim_matches('.'))
        .filter(|word| !word.is_empty())
}

/// Whether an error is one that WSO2 does not find when it deploys the artifact.
pub fn is_ours(rule: &str) -> bool {
    rule.starts_with("unsupported")
        || matches!(
            rule,
            "remote-source"
                | "unreadable-source"
                | "unresolved-value"
                | "unknown-entry"
                | "unknown-secret"
                | "unknown-store"
                | "bad-stylesheet"
                | "bad-schema"
                | "bad-script"
                | "bad-mapping"
                | "bad-template"
                | "bad-address"
        )
}

/// Whether nothing in an element would be in another namespace than before if a default namespace were declared outside.
fn has_no_content(element: &Element) -> bool {
    match element.local() {
        "parameter" | "property" => element.elements().next().is_none(),
        _ => element.elements().all(has_no_content),
    }
}

/// The text of a file, in the encoding that it declares.
///
/// # Errors
/// It is not in that encoding: a sentence.
pub fn decode(bytes: Vec<u8>) -> Result<String, String> {
    let decoded = xml::decode(bytes, None).map_err(|error| error.message)?;
    String::from_utf8(decoded.text.to_vec())
        .map_err(|error| format!("byte {} is not UTF-8", error.utf8_error().valid_up_to()))
}

/// The definition of an API where tools lay it, and from where they pack it into archives: of VS Code `resources/api-definitions/NAME.yaml`
/// beside `artifacts/apis/NAME.xml`, of Integration Studio `resources/metadata/NAME_swagger.yaml` beside `synapse-config/api/NAME.xml`.
fn definition_of(path: &Path) -> Option<Arc<[u8]>> {
    const PLACES: [(&str, &str, &str); 2] = [
        ("artifacts/apis", "resources/api-definitions", ""),
        ("synapse-config/api", "resources/metadata", "_swagger"),
    ];
    let folder = path.parent()?;
    let (_, definitions, ending) = PLACES.into_iter().find(|(apis, ..)| folder.ends_with(apis))?;
    let definitions = folder.parent()?.parent()?.join(definitions);
    let stem = path.file_stem()?.to_str()?;
    let read = |extension: &str| layout::read(&definitions.join(format!("{stem}{ending}.{extension}"))).ok();
    ["yaml", "yml", "json"].into_iter().find_map(read).map(Into::into)
}
