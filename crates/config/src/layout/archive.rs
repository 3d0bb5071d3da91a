//! Archives of artifacts (`.car`), zipped or unpacked.
//!
//! An archive is deployed as a whole or not at all: an error in its descriptors leaves it out.

use super::descriptor::{self, Described};
use super::files::Archived;
use super::library::{self, BrokenFiles, LibraryFiles};
use super::not_read::{NotRead, Reason, by_name};
use crate::configuration::ArtifactKind;
use crate::mounts::{Mount, Mounts};
use diagnostics::{Diagnostic, Severity, SourceMap, Span};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The roles of an ESB server; artifacts for other servers are left out of an archive.
const ROLES: [&str; 3] = ["EnterpriseIntegrator", "EnterpriseServiceBus", "DataServicesServer"];

/// The types of artifacts with their kinds, in the order in which they are deployed.
const TYPES: [(&str, ArtifactKind); 18] = [
    ("datasource/datasource", ArtifactKind::DataSource),
    ("service/dataservice", ArtifactKind::DataService),
    ("synapse/local-entry", ArtifactKind::LocalEntry),
    ("synapse/endpoint", ArtifactKind::Endpoint),
    ("synapse/sequence", ArtifactKind::Sequence),
    ("synapse/message-store", ArtifactKind::MessageStore),
    ("synapse/template", ArtifactKind::Template),
    ("synapse/sequenceTemplate", ArtifactKind::Template),
    ("synapse/endpointTemplate", ArtifactKind::Template),
    ("synapse/proxy-service", ArtifactKind::Proxy),
    ("synapse/task", ArtifactKind::Task),
    ("synapse/event-source", ArtifactKind::EventSource),
    ("synapse/priority-executor", ArtifactKind::PriorityExecutor),
    ("synapse/message-processors", ArtifactKind::MessageProcessor),
    ("synapse/message-processor", ArtifactKind::MessageProcessor),
    ("synapse/message-stores", ArtifactKind::MessageStore),
    ("synapse/api", ArtifactKind::Api),
    ("synapse/inbound-endpoint", ArtifactKind::InboundEndpoint),
];

/// Other types of artifacts that are read.
const OTHER_TYPES: [&str; 2] = ["registry/resource", "config/property"];

/// The content of an archive.
pub(crate) struct Archive {
    /// The path of the archive for messages.
    pub shown: String,
    /// `name_version`.
    pub id: String,
    /// Its artifacts, in the order in which they are deployed.
    pub members: Vec<Member>,
    /// Its libraries of operations.
    pub libraries: Vec<LibraryFiles>,
    /// Those that cannot be read.
    pub broken_libraries: Vec<BrokenFiles>,
    /// Its resources of the registry.
    pub mounts: Mounts,
    /// The names of values from outside that it needs (`config.properties`).
    pub configs: Vec<String>,
    /// The names of its files that are read or reported.
    settled: HashSet<String>,
}

/// An artifact of an archive.
pub(crate) struct Member {
    /// The path for messages.
    pub shown: String,
    pub kind: ArtifactKind,
    pub bytes: Vec<u8>,
    /// Of an API: the definition that is packed beside it.
    pub definition: Option<Arc<[u8]>>,
}

/// The kind of an artifact of this type.
pub(super) fn kind_of(type_name: &str) -> Option<ArtifactKind> {
    TYPES.iter().find(|(name, _)| *name == type_name).map(|(_, kind)| *kind)
}

/// Why an artifact of this type is not read.
pub(super) fn reason_of(type_name: &str) -> Reason {
    match type_name {
        "synapse/lib" => Reason::Connector,
        "synapse/metadata" => Reason::ServiceMetadata,
        lib if lib.starts_with("lib/") => Reason::Java,
        lib if lib.starts_with("service/") || lib.starts_with("web") || lib.starts_with("axis2") => {
            Reason::WebApplication
        }
        _ => Reason::Unknown,
    }
}

/// Reads descriptors and artifacts.
pub(super) struct Reader<'a> {
    pub sources: &'a mut SourceMap,
    pub problems: &'a mut Vec<Diagnostic>,
    pub not_read: &'a mut NotRead,
}

impl Reader<'_> {
    /// The archive at `path`.
    ///
    /// # Errors
    /// The first error: the archive is left out.
    pub fn archive(&mut self, path: &Path) -> Result<Archive, Diagnostic> {
        let before = self.problems.len();
        let archive = self.whole(path);
        archive.filter(|_| self.error_since(before).is_none()).ok_or_else(|| {
            let other = || Diagnostic::error("broken-archive", "it cannot be read");
            self.error_since(before).cloned().unwrap_or_else(other)
        })
    }

    fn error_since(&self, mark: usize) -> Option<&Diagnostic> {
        self.problems.iter().skip(mark).find(|problem| problem.severity == Severity::Error)
    }

    /// The archive at `path`, as far as it can be read up to the first error.
    fn whole(&mut self, path: &Path) -> Option<Archive> {
        let shown = path.display().to_string();
        let archived = if path.is_dir() { Archived::directory(path) } else { Archived::zip(path) };
        let archived = match archived {
            Ok(archived) => archived,
            Err(why) => return self.refuse(&shown, &why, "no artifact of it is loaded"),
        };
        let before = self.problems.len();
        let listed = ["metadata.xml", "artifacts.xml"].into_iter().filter(|name| archived.has(name));
        let described = listed
            .map(|name| self.descriptor(&archived, &shown, name))
            .find_map(|found| found.ok()?.into_iter().find(|artifact| artifact.kind == "carbon/application"));
        let Some(application) = described else {
            let why = "neither metadata.xml nor artifacts.xml in it describes an application (`<artifact type=\"carbon/application\">`)";
            let deeper = archived.names().into_iter().find_map(|name| {
                let (folder, file) = name.rsplit_once('/')?;
                matches!(file, "metadata.xml" | "artifacts.xml").then(|| format!("{folder}/"))
            });
            let label = match deeper {
                Some(folder) => {
                    format!("`{folder}` in it has such a file: put what is in that folder into the archive")
                }
                None => "it is not an archive of artifacts".to_owned(),
            };
            return self.refuse(&shown, why, &label);
        };
        // One of the two files is enough.
        self.problems.iter_mut().skip(before).for_each(|problem| problem.severity = Severity::Warning);
        let mut archive = Archive {
            id: format!("{}_{}", application.name, application.version),
            shown,
            members: Vec::new(),
            libraries: Vec::new(),
            broken_libraries: Vec::new(),
            mounts: Mounts::default(),
            configs: Vec::new(),
            settled: ["metadata.xml", "artifacts.xml"].map(str::to_owned).into(),
        };
        let before = self.problems.len();
        let artifacts = self.resolve(&archived, &mut archive, &application)?;
        let is_definition =
            |artifact: &Described| artifact.kind == "synapse/metadata" && artifact.name.ends_with("_swagger");
        let (definitions, artifacts): (Vec<_>, Vec<_>) =
            artifacts.into_iter().partition(|(_, artifact)| is_definition(artifact));
        for (directory, described) in &artifacts {
            archive.settled.insert(format!("{directory}artifact.xml"));
            let packed = definitions
                .iter()
                .find(|(_, artifact)| artifact.name.strip_suffix("_swagger") == Some(&described.name))
                .filter(|_| described.kind == "synapse/api");
            self.add(&archived, &mut archive, directory, described);
            if let (Some((place, artifact)), Some(member)) = (packed, archive.members.last_mut()) {
                member.definition = artifact.file.as_ref().and_then(|file| {
                    let bytes = archived.read(&format!("{place}{file}")).ok()?;
                    archive.settled.extend([format!("{place}artifact.xml"), format!("{place}{file}")]);
                    Some(bytes.into())
                });
            }
            // Files inside an archive count towards its limits.
            if self.error_since(before).is_some() {
                return None;
            }
        }
        self.left_over(&archived, &archive);
        Some(archive)
    }

    /// Reports the files of an archive that are not read: files in directories in which no file is in use.
    fn left_over(&mut self, archived: &Archived, archive: &Archive) {
        let names = archived.names();
        let left = names.iter().filter(|name| !archive.settled.contains(**name) && !is_metadata(name));
        let mut places: Vec<(&str, Reason)> = Vec::new();
        for name in left {
            // Metadata have a directory for each artifact.
            let depth = if name.starts_with("metadata/") { 2 } else { 1 };
            let directory = name.match_indices('/').nth(depth - 1).map(|(at, _)| &name[..=at]);
            let in_use = |path: &str| archive.settled.iter().any(|settled| settled.starts_with(path));
            let place = directory.filter(|d| !in_use(d)).unwrap_or(name);
            let file = name.rsplit('/').next().unwrap_or(name);
            let reason = match place {
                path if path.starts_with("metadata/") && path.contains("_swagger") => Reason::ApiDefinition,
                path if path.starts_with("metadata/") => Reason::ServiceMetadata,
                path if path.starts_with("META-INF/") || path.starts_with("__MACOSX/") => Reason::Tooling,
                path if path == *name => match by_name(file, "") {
                    Reason::Unknown => Reason::Unlisted,
                    reason => reason,
                },
                _ => Reason::Unlisted,
            };
            if places.last() != Some(&(place, reason)) {
                places.push((place, reason));
            }
        }
        for (place, reason) in places {
            self.not_read.add(reason, PathBuf::from(archived.shown(&archive.shown, place)));
        }
    }

    /// The artifacts that a descriptor lists.
    fn descriptor(&mut self, archived: &Archived, shown: &str, name: &str) -> Result<Vec<Described>, ()> {
        let shown = archived.shown(shown, name);
        let text = archived.read(name).and_then(crate::load::decode);
        match text {
            Ok(text) => self.parse(&shown, text),
            Err(why) => {
                self.refuse::<()>(&shown, &why, "the archive cannot be read without it");
                Err(())
            }
        }
    }

    fn parse(&mut self, shown: &str, text: String) -> Result<Vec<Described>, ()> {
        let file = self.sources.add(shown, text.as_str());
        crate::parse::parse(file, &text)
            .map(|root| descriptor::artifacts(&root))
            .map_err(|error| self.problems.push(error))
    }

    /// What the application depends on, with the directory of each, in the order of deployment; `None` with findings when
    /// one of them is missing.
    fn resolve(
        &mut self,
        archived: &Archived,
        archive: &mut Archive,
        application: &Described,
    ) -> Option<Vec<(String, Described)>> {
        let shown = archive.shown.clone();
        let shown = shown.as_str();
        let mut described: HashMap<(String, String), (String, Described)> = HashMap::new();
        let descriptors: Vec<String> = archived
            .names()
            .into_iter()
            .filter(|name| name.ends_with("/artifact.xml") && name.matches('/').count() <= 2)
            .map(str::to_owned)
            .collect();
        for name in descriptors {
            let directory = name.strip_suffix("artifact.xml").unwrap_or_default().to_owned();
            for artifact in self.descriptor(archived, shown, &name).ok()? {
                described
                    .insert((artifact.name.clone(), artifact.version.clone()), (directory.clone(), artifact));
            }
        }
        let mut resolved = Vec::new();
        let mut is_complete = true;
        let mut listed = HashSet::new();
        for dependency in &application.dependencies {
            if !listed.insert((&dependency.name, &dependency.version)) {
                let message = format!("the dependency `{}` is listed twice", dependency.name);
                self.problems.push(
                    Diagnostic::warning("duplicate-key", message).at(dependency.span, "it is read once"),
                );
                continue;
            }
            if let Some(role) = dependency.role.as_deref().filter(|role| !ROLES.contains(role)) {
                let message = format!("`{}` is for a server with the role `{role}`", dependency.name);
                self.problems.push(
                    Diagnostic::warning("other-role", message)
                        .at(dependency.span, "it is left out, as in WSO2")
                        .did_you_mean(role, ROLES),
                );
                if let Some((directory, _)) =
                    described.remove(&(dependency.name.clone(), dependency.version.clone()))
                {
                    let names = archived.names().into_iter().filter(|name| name.starts_with(&directory));
                    archive.settled.extend(names.map(str::to_owned));
                }
                continue;
            }
            match described.remove(&(dependency.name.clone(), dependency.version.clone())) {
                Some(found) => resolved.push(found),
                None if dependency.included => {
                    is_complete = false;
                    let other = described.keys().find(|(name, _)| *name == dependency.name);
                    let artifact = format!("{} {}", dependency.name, dependency.version);
                    let mut error = Diagnostic::error(
                        "missing-dependency",
                        format!("the archive has no artifact `{}`", artifact.trim()),
                    )
                    .at(dependency.span, "the whole archive is left out, as in WSO2");
                    if let Some((name, version)) = other {
                        error = error.help(format!("there is `{name}` of version {version}"));
                    }
                    self.problems.push(error);
                }
                None => {}
            }
        }
        if resolved.is_empty() && is_complete {
            let message = format!("`{shown}` has nothing for this server");
            self.problems.push(
                Diagnostic::warning("empty-archive", message).at(application.span, "no dependency applies"),
            );
        }
        let order = |artifact: &Described| {
            TYPES.iter().position(|(name, _)| *name == artifact.kind).unwrap_or(TYPES.len())
        };
        resolved.sort_by_key(|(_, artifact)| order(artifact));
        is_complete.then_some(resolved)
    }

    /// Adds one artifact to an archive.
    fn add(&mut self, archived: &Archived, archive: &mut Archive, directory: &str, artifact: &Described) {
        let Some(file) = &artifact.file else {
            let message = format!("the artifact `{}` names no file", artifact.name);
            self.problems
                .push(Diagnostic::error("broken-archive", message).at(artifact.span, "`<file>` is missing"));
            return;
        };
        let name = format!("{directory}{file}");
        let shown = archived.shown(&archive.shown, &name);
        let kind = kind_of(&artifact.kind);
        archive.settled.insert(name.clone());
        let read = match &*artifact.kind {
            _ if kind.is_some() => archived.read(&name),
            "registry/resource" | "config/property" => archived.read(&name),
            "synapse/lib" => {
                let read = archived.read(&name).and_then(Archived::within).map_err(library::Unread::from);
                let container = Some(archive.shown.clone());
                match read.and_then(|nested| library::read_from(&nested, &shown)) {
                    Ok(library) => archive.libraries.push(LibraryFiles { archive: container, ..library }),
                    Err(unread) => {
                        archive.broken_libraries.push(BrokenFiles { shown, archive: container, unread })
                    }
                }
                return;
            }
            other => {
                return match reason_of(other) {
                    Reason::Unknown => self.unknown_type(artifact, &name),
                    reason => self.not_read.add(reason, shown),
                };
            }
        };
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(why) => {
                let message =
                    format!("the file `{file}` of the artifact `{}` cannot be read: {why}", artifact.name);
                self.problems
                    .push(Diagnostic::error("broken-archive", message).at(artifact.span, "named here"));
                return;
            }
        };
        match kind {
            Some(kind) => archive.members.push(Member { shown, kind, bytes, definition: None }),
            None if artifact.kind == "config/property" => {
                let names = crate::properties(&String::from_utf8_lossy(&bytes)).into_keys();
                archive.configs.extend(names);
            }
            None => self.resources(archived, archive, directory, &shown, bytes),
        }
    }

    /// Reports an artifact of an unknown type.
    fn unknown_type(&mut self, artifact: &Described, file: &str) {
        let message =
            format!("the artifact `{}` is not read: no type is named `{}`", artifact.name, artifact.kind);
        self.problems.push(
            Diagnostic::warning("not-read", message)
                .at(artifact.span, format!("`{file}` is left out"))
                .did_you_mean(&artifact.kind, TYPES.map(|(name, _)| name).into_iter().chain(OTHER_TYPES)),
        );
    }

    /// What a `registry-info.xml` lists.
    fn resources(
        &mut self,
        archived: &Archived,
        archive: &mut Archive,
        directory: &str,
        shown: &str,
        bytes: Vec<u8>,
    ) {
        let text = match crate::load::decode(bytes) {
            Ok(text) => text,
            Err(why) => {
                return self.refuse::<()>(shown, &why, "it lists resources of the registry").unwrap_or(());
            }
        };
        let file = self.sources.add(shown, text.as_str());
        let root = match crate::parse::parse(file, &text) {
            Ok(root) => root,
            Err(error) => return self.problems.push(error),
        };
        for resource in descriptor::resources(&root) {
            let found = if resource.is_collection {
                self.collection(archived, archive, directory, &resource)
            } else {
                self.item(archived, archive, directory, &resource)
            };
            if let Err(why) = found {
                let message = format!("the resource `{}` cannot be read: {why}", resource.source);
                self.problems
                    .push(Diagnostic::error("broken-archive", message).at(resource.span, "named here"));
                return;
            }
        }
    }

    fn item(
        &mut self,
        archived: &Archived,
        archive: &mut Archive,
        directory: &str,
        resource: &descriptor::Resource,
    ) -> Result<(), String> {
        let name = format!("{directory}resources/{}", resource.source);
        let mount = mount(archived, &name)?;
        archive.settled.insert(name);
        for key in resource.keys() {
            archive.mounts.add(&key, mount.clone());
            archive.mounts.add_properties(&key, false, &resource.properties);
        }
        Ok(())
    }

    fn collection(
        &mut self,
        archived: &Archived,
        archive: &mut Archive,
        directory: &str,
        resource: &descriptor::Resource,
    ) -> Result<(), String> {
        let prefix = format!("{directory}resources/{}/", resource.source);
        for name in archived.names().into_iter().filter(|name| name.starts_with(&prefix)) {
            let inside = &name[prefix.len()..];
            if !is_metadata(inside) {
                let key = format!("{}/{inside}", resource.path.trim_end_matches('/'));
                archive.mounts.add(&key, mount(archived, name)?);
                archive.settled.insert(name.to_owned());
            }
        }
        archive.mounts.add_properties(&resource.path, true, &resource.properties);
        Ok(())
    }

    fn refuse<T>(&mut self, shown: &str, why: &str, label: &str) -> Option<T> {
        let file = self.sources.add(shown, "");
        let message = format!("`{shown}` is not loaded: {why}");
        self.problems.push(Diagnostic::error("broken-archive", message).at(Span::new(file, 0, 0), label));
        None
    }
}

/// Whether a file is tooling metadata and not a resource: `.meta/~x.xml`, `.metadata/x.meta`.
pub(super) fn is_metadata(inside: &str) -> bool {
    inside.split('/').any(|part| part == ".meta" || part == ".metadata")
}

fn mount(archived: &Archived, name: &str) -> Result<Mount, String> {
    match archived.path(name) {
        Some(path) => Ok(Mount::File(path)),
        None => Ok(Mount::Bytes(Arc::from(archived.read(name)?))),
    }
}
