//! `<registry>`, `<taskManager>` and `<import>`: where resources come from, what runs tasks, which libraries
//! are in use.

use super::Reading;
use super::local_entry::file_path;
use crate::element::Element;
use crate::mounts::{self, Mount, Mounts};
use crate::parameter::{self, Parameter};
use crate::read::{self, Shape};
use crate::resources::{RegistryLimits, ResourceContent, Resources};
use crate::value::Key;
use diagnostics::{Diagnostic, Severity, Span};
use std::collections::HashMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How many files of a registry are looked at for a name that is nearly that of one.
const MOST_KEYS: usize = 2000;

/// The registry: files below one directory, or resources on another server.
#[derive(Clone)]
pub struct Registry {
    /// The provider's Java class as written; `None`: the configuration has no `<registry>`.
    pub provider: Option<Key>,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// The directory; `None` when the registry is on another server.
    pub root: Option<PathBuf>,
    /// The URL that keys are appended to, when the registry is on another server.
    pub url: Option<String>,
    /// Reads resources at the URL; `None`: they are not read.
    kept: Option<Arc<dyn crate::fetch::ResourceCache>>,
    /// Reads wait for other servers: true while the configuration loads, false for messages.
    waits: bool,
    /// How keys become paths.
    pub layout: RegistryLayout,
    /// How long a resource is used without looking again; `None`: for ever.
    pub cachable: Option<Duration>,
    limits: RegistryLimits,
    /// The whole element.
    pub span: Span,
    resources: Arc<Resources>,
    /// Resources of projects and archives: they take precedence over the files.
    mounts: Arc<Mounts>,
    /// Documents that a reload found faulty, by key. While the content is the faulty one, the last good one is served.
    held: HashMap<String, Held>,
    /// See [`Registry::keys`].
    keys: OnceLock<Vec<String>>,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = (&self.provider, &self.parameters, &self.root, &self.url, &self.layout, &self.cachable);
        write!(f, "Registry{place:?}")
    }
}

#[derive(Clone, Debug)]
struct Held {
    faulty: Arc<[u8]>,
    good: Arc<[u8]>,
}

/// How the keys of a [`Registry`] become paths below its root.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum RegistryLayout {
    /// The key is the path (Synapse's URL registry).
    Plain,
    /// `conf:` is `config/`, `gov:` and no prefix are `governance/`, `local:` is `local/` (WSO2).
    Prefixed,
}

pub(crate) const SHAPE: Shape =
    Shape { attributes: &["provider", "description"], elements: &["parameter", "description"] };

impl Registry {
    /// The registry of a configuration without `<registry>`: WSO2's layout in `root`.
    pub(crate) fn beside(root: PathBuf) -> Registry {
        Registry {
            provider: None,
            parameters: Vec::new(),
            root: Some(root),
            url: None,
            kept: None,
            waits: true,
            layout: RegistryLayout::Prefixed,
            cachable: Some(Duration::ZERO),
            limits: RegistryLimits::default(),
            span: Span::BUILT_IN,
            resources: Arc::default(),
            mounts: Arc::default(),
            held: HashMap::new(),
            keys: OnceLock::new(),
        }
    }

    pub(crate) fn parse(
        element: &Element,
        default_root: &Path,
        reading: &mut Reading<'_>,
    ) -> Option<Registry> {
        SHAPE.check(element, reading.diagnostics);
        let provider = read::required(element, "provider", reading.diagnostics)?;
        let parameters = Parameter::children(element, reading.injector, reading.diagnostics);
        let layout = match provider.rsplit('.').next() {
            Some("SimpleURLRegistry") => RegistryLayout::Plain,
            _ => RegistryLayout::Prefixed,
        };
        let default = match layout {
            RegistryLayout::Plain => Duration::from_millis(1500),
            RegistryLayout::Prefixed => Duration::ZERO,
        };
        let written = ["root", "RegRoot", "localRegistry"]
            .iter()
            .find_map(|name| parameters.iter().find(|p| p.name == *name))
            .filter(|p| p.value.text().is_some_and(|text| !text.is_empty()));
        let mut url = None;
        let root = match written {
            None if layout == RegistryLayout::Plain => {
                reading.diagnostics.push(
                    Diagnostic::error("missing-parameter", "the registry needs the parameter `root`")
                        .at(element.start_tag(), "`root` is missing"),
                );
                return None;
            }
            None => Some(default_root.to_owned()),
            Some(parameter) => {
                let written = parameter.value.text().unwrap_or_default().trim();
                let root = file_path(written, reading.root);
                if written.starts_with("http:") || written.starts_with("https:") {
                    url = Some(format!("{}/", written.trim_end_matches('/')));
                    if reading.fetch.is_none() {
                        reading.diagnostics.push(
                            Diagnostic::warning(
                                "not-fetched",
                                "the registry is read when the bus runs, and not now",
                            )
                            .at(parameter.span, "what its keys name is not known here"),
                        );
                    }
                } else if root.is_none() {
                    reading.diagnostics.push(
                        Diagnostic::warning("remote-source", "a registry cannot be read with this scheme")
                            .at(parameter.span, "every key of this registry will be unknown")
                            .help("only http:, https:, file: URLs and paths: copy the resources into a directory and name it: file:registry/"),
                    );
                } else if let Some(directory) = root.as_ref().filter(|root| !root.is_dir()) {
                    let message = format!("there is no directory `{}`", directory.display());
                    reading.diagnostics.push(
                        Diagnostic::new("missing-file", Severity::Note, message)
                            .at(parameter.span, "the registry: until it is there, its keys are unknown"),
                    );
                }
                root
            }
        };
        let cachable = match parameters.iter().find(|p| p.name == "cachableDuration") {
            Some(Parameter { value: parameter::ParameterValue::Text(key), .. }) => {
                let number = read::number::<i64>(
                    key,
                    "cachableDuration",
                    "a number of milliseconds",
                    reading.diagnostics,
                );
                number.map_or(Some(default), |ms| u64::try_from(ms).ok().map(Duration::from_millis))
            }
            _ => Some(default),
        };
        Some(Registry {
            provider: Some(provider),
            parameters,
            root,
            url,
            kept: None,
            waits: true,
            layout,
            cachable,
            limits: RegistryLimits::default(),
            span: element.span(),
            resources: Arc::default(),
            mounts: Arc::default(),
            held: HashMap::new(),
            keys: OnceLock::new(),
        })
    }

    /// This registry with limits on what flows write. Messages do not wait for other servers.
    pub fn limited(&self, limits: RegistryLimits) -> Registry {
        Registry { limits, waits: false, ..self.clone() }
    }

    /// Sets how resources on another server are read.
    pub(crate) fn fetch_with(&mut self, kept: Option<Arc<dyn crate::fetch::ResourceCache>>) {
        self.kept = kept;
    }

    /// Whether a key cannot be looked up because the registry is on another server and nothing is fetched.
    pub fn is_not_fetched(&self, key: &str) -> bool {
        self.url.is_some() && self.kept.is_none() && self.mounted(key).is_none()
    }

    /// The content of a key on another server.
    fn fetched(&self, url: &str, key: &str) -> io::Result<Option<ResourceContent>> {
        let Some(kept) = &self.kept else { return Ok(None) };
        let path = match self.layout {
            RegistryLayout::Plain => key.to_owned(),
            RegistryLayout::Prefixed => mounts::path(key),
        };
        let Some(path) = url_path(&path) else { return Ok(None) };
        let bytes =
            kept.read(&format!("{url}{path}"), self.cachable, self.waits).map_err(io::Error::other)?;
        if let (Some(bytes), true) = (&bytes, self.waits) {
            self.resources.note(key, bytes);
        }
        Ok(bytes.map(|bytes| ResourceContent { bytes, stale: None }))
    }

    /// This registry with resources that take precedence over its files.
    pub(crate) fn with(&self, mounts: Mounts) -> Registry {
        Registry { mounts: Arc::new(mounts), keys: OnceLock::new(), ..self.clone() }
    }

    /// This registry after a reload: what flows wrote into `before` takes precedence over resources of projects and archives.
    pub(crate) fn after(&self, before: &Registry) -> Registry {
        if self.root != before.root || self.url.is_some() {
            return self.clone();
        }
        Registry { resources: Arc::new(Resources::after(&before.resources)), ..self.clone() }
    }

    /// The directory, unless the registry is on another server.
    pub fn directory(&self) -> Option<&Path> {
        if self.url.is_some() { None } else { self.root.as_deref() }
    }

    /// Whether a flow wrote this file.
    pub fn is_written(&self, path: &Path) -> bool {
        let relative = self.root.as_deref().and_then(|root| path.strip_prefix(root).ok());
        relative.and_then(Path::to_str).is_some_and(|relative| self.resources.is_written(relative))
    }

    /// Serves `document` for a key, whatever its file has now, unless a flow wrote it.
    pub(crate) fn put_back(&mut self, key: &str, document: &Arc<[u8]>) {
        if !self.was_written(key) {
            self.hold(key, document);
        }
    }

    fn was_written(&self, key: &str) -> bool {
        self.resources.is_written(&mounts::path(key)) || self.resources.is_written(key)
    }

    /// The resource of a project or an archive, unless a flow wrote another one.
    fn mounted(&self, key: &str) -> Option<&Mount> {
        self.mounts.get(key).filter(|_| !self.resources.is_written(&mounts::path(key)))
    }

    /// Whether the registry has this resource or collection.
    pub fn has(&self, key: &str) -> bool {
        let is_fetched = || self.url.is_some() && self.read(key).is_ok_and(|found| found.is_some());
        self.mounted(key).is_some() || self.path(key).is_some() || is_fetched()
    }

    /// The keys of resources, for suggestions: those of archives and projects, and of at most [`MOST_KEYS`] files of the directory, as they were when they
    /// were asked for first.
    pub fn keys(&self) -> &[String] {
        self.keys.get_or_init(|| self.list_keys())
    }

    fn list_keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.mounts.paths().map(mounts::key).collect();
        let mut open: Vec<PathBuf> = self.directory().map(Path::to_owned).into_iter().collect();
        let (root, mut left) = (open.first().cloned().unwrap_or_default(), MOST_KEYS);
        while let Some(directory) = open.pop() {
            for entry in std::fs::read_dir(directory).into_iter().flatten().flatten().take(left) {
                left -= 1;
                let path = entry.path();
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    open.push(path);
                    continue;
                }
                let Some(relative) = path.strip_prefix(&root).ok().and_then(Path::to_str) else { continue };
                keys.push(match self.layout {
                    RegistryLayout::Prefixed => mounts::key(relative),
                    RegistryLayout::Plain => relative.to_owned(),
                });
            }
        }
        keys.retain(|key| !key.contains("/.meta") && !key.ends_with(".properties"));
        keys.sort_unstable();
        keys
    }

    /// The file of a key; `None` when there is none, it is in an archive, or it would be outside of the root.
    pub fn path(&self, key: &str) -> Option<PathBuf> {
        match self.mounted(key) {
            Some(Mount::File(path)) => Some(path.clone()),
            Some(Mount::Bytes(_)) => None,
            None => self.find(key).ok().flatten(),
        }
    }

    /// The file of a key below the root; an error when the file system cannot tell.
    fn find(&self, key: &str) -> io::Result<Option<PathBuf>> {
        let Some(root) = &self.root else { return Ok(None) };
        let candidates = match self.layout {
            RegistryLayout::Prefixed => [mounts::path(key), key.to_owned()],
            RegistryLayout::Plain => [key.to_owned(), mounts::path(key)],
        };
        for relative in &candidates {
            if let Some(path) = below(root, relative)? {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// A property of a resource (`NAME.properties` beside it) or of a collection (`NAME.collections.properties`).
    pub fn property(&self, key: &str, name: &str) -> Option<String> {
        let text = ["properties", "collections.properties"].iter().find_map(|ending| {
            self.read(&format!("{}.{ending}", key.trim_end_matches('/'))).ok().flatten()
        })?;
        crate::properties(&String::from_utf8_lossy(&text.bytes)).remove(name)
    }

    /// Whether a resource is text: `.metadata/NAME.meta` beside it names no media type, or `text/plain`.
    pub fn is_text(&self, key: &str) -> bool {
        let (directory, name) = key.rfind(['/', ':']).map_or(("", key), |at| key.split_at(at + 1));
        let Some(found) = self.read(&format!("{directory}.metadata/{name}.meta")).ok().flatten() else {
            return true;
        };
        let media_type = crate::properties(&String::from_utf8_lossy(&found.bytes)).remove("mediaType");
        media_type.is_none_or(|media_type| matches!(media_type.trim(), "" | "text/plain"))
    }

    /// The content of a resource; `None` when there is none (or a directory). As long as the file is the same one, so are
    /// the bytes.
    ///
    /// # Errors
    /// The file is there, cannot be read, and was not read before.
    pub fn read(&self, key: &str) -> io::Result<Option<ResourceContent>> {
        let found = match self.mounted(key) {
            Some(Mount::Bytes(bytes)) => Ok(Some(ResourceContent { bytes: Arc::clone(bytes), stale: None })),
            Some(Mount::File(path)) => self.resources.read(key, self.cachable, || Ok(Some(path.clone()))),
            None => match &self.url {
                Some(url) => self.fetched(url, key),
                None => self.resources.read(key, self.cachable, || self.find(key)),
            },
        }?;
        let held = |found: &ResourceContent| {
            let held = self.held.get(key)?;
            (Arc::ptr_eq(&held.faulty, &found.bytes) || held.faulty == found.bytes)
                .then(|| Arc::clone(&held.good))
        };
        Ok(found.map(|found| match held(&found) {
            Some(bytes) => ResourceContent { bytes, ..found },
            None => found,
        }))
    }

    /// Serves `good` for a key as long as its content is the present one; `false` where it is `good`, or a document is held already.
    pub(crate) fn hold(&mut self, key: &str, good: &Arc<[u8]>) -> bool {
        let Some(found) = self.read(key).ok().flatten() else {
            // A resource on another server may come back at any time; one that a flow wrote was removed by a flow.
            let can_mount = self.url.is_none() && self.mounted(key).is_none() && !self.was_written(key);
            if can_mount {
                self.mount(key, good);
            }
            return can_mount;
        };
        if found.bytes == *good || self.held.contains_key(key) {
            return false;
        }
        self.held.insert(key.to_owned(), Held { faulty: found.bytes, good: Arc::clone(good) });
        true
    }

    /// Serves a document whose file is gone.
    fn mount(&mut self, key: &str, document: &Arc<[u8]>) {
        let mut mounts = Mounts::clone(&self.mounts);
        mounts.add(key, Mount::Bytes(Arc::clone(document)));
        self.mounts = Arc::new(mounts);
    }

    /// The documents that were read so far, those of archives excluded, by key.
    pub(crate) fn documents(&self) -> HashMap<String, Arc<[u8]>> {
        let mut documents = self.resources.read_so_far();
        documents.extend(self.held.iter().map(|(key, held)| (key.clone(), Arc::clone(&held.good))));
        documents
    }

    /// The document of a key that is in an archive.
    pub(crate) fn packaged(&self, key: &str) -> Option<&Arc<[u8]>> {
        match self.mounted(key) {
            Some(Mount::Bytes(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// Writes a resource, new or not.
    ///
    /// # Errors
    /// The key leads out of the registry or to a collection, the limits do not allow it, or the file cannot be
    /// written.
    pub fn write(&self, key: &str, content: &str) -> io::Result<()> {
        self.resources.write(self.own_root()?, &self.relative(key), content.as_bytes(), &self.limits)
    }

    /// Sets a property of a resource or collection.
    ///
    /// # Errors
    /// As of [`Registry::write`].
    pub fn write_property(&self, key: &str, name: &str, value: &str) -> io::Result<()> {
        let key = key.trim_end_matches('/');
        let is_collection = self.path(key).is_some_and(|path| path.is_dir())
            || self.mounts.get(&format!("{key}.collections.properties")).is_some();
        let ending = if is_collection { ".collections.properties" } else { ".properties" };
        let relative = format!("{}{ending}", self.relative(key));
        // The properties of a resource of a project or an archive are kept beside it.
        let packaged = || match self.mounted(&format!("{key}{ending}")) {
            Some(Mount::Bytes(bytes)) => Ok(Some(Arc::clone(bytes))),
            Some(Mount::File(path)) => std::fs::read(path).map(|bytes| Some(bytes.into())),
            None => Ok(None),
        };
        let property = (name, value);
        self.resources.write_property(self.own_root()?, &relative, property, packaged, &self.limits)
    }

    fn own_root(&self) -> io::Result<&Path> {
        self.root.as_deref().ok_or_else(|| io::Error::other("the registry is on the network"))
    }

    /// Where a key is written: where it is found, else where a new resource belongs.
    fn relative(&self, key: &str) -> String {
        let found = |relative: &str| {
            self.root.as_deref().is_some_and(|root| below(root, relative).is_ok_and(|path| path.is_some()))
        };
        match self.layout {
            RegistryLayout::Prefixed if found(&mounts::path(key)) || !found(key) => mounts::path(key),
            _ => key.to_owned(),
        }
    }
}

/// The path of a key below the URL of a registry, encoded; `None` where it would lead out of it.
fn url_path(key: &str) -> Option<String> {
    let (path, query) = match key.trim_start_matches('/').split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (key.trim_start_matches('/'), None),
    };
    if path.is_empty() || path.split('/').any(|part| matches!(part, "." | "..")) {
        return None;
    }
    let mut out = String::with_capacity(key.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => out.push(byte as char),
            b'-' | b'.' | b'_' | b'~' | b'/' | b':' | b'@' | b'+' | b',' | b'=' | b'!' | b'$' => {
                out.push(byte as char)
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    // A query is kept as written, if a URL can have it.
    match query {
        Some(query) if query.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') => {
            Some(format!("{out}?{query}"))
        }
        Some(_) => None,
        None => Some(out),
    }
}

/// An existing path below `root`, also after links are followed.
fn below(root: &Path, relative: &str) -> io::Result<Option<PathBuf>> {
    let relative = Path::new(relative.trim_start_matches('/'));
    if relative.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Ok(None);
    }
    let real = |path: &Path| match path.canonicalize() {
        Ok(real) => Ok(Some(real)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        // The key is not a valid path.
        Err(error)
            if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidFilename) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    };
    let Some(real_root) = real(root)? else { return Ok(None) };
    let path = root.join(relative);
    Ok(real(&path)?.filter(|real| real.starts_with(&real_root)).map(|_| path))
}

/// `<taskManager>`: read and not used, since the bus has one of its own.
#[derive(Clone, Debug)]
pub struct TaskManager {
    /// The provider's Java class.
    pub provider: Key,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// The whole element.
    pub span: Span,
}

pub(crate) const TASK_MANAGER: Shape =
    Shape { attributes: &["provider", "description"], elements: &["parameter", "description"] };

impl TaskManager {
    pub(crate) fn parse(element: &Element, reading: &mut Reading<'_>) -> Option<TaskManager> {
        TASK_MANAGER.check(element, reading.diagnostics);
        let parameters = Parameter::children(element, reading.injector, reading.diagnostics);
        let provider = read::required(element, "provider", reading.diagnostics)?;
        Some(TaskManager { provider, parameters, span: element.span() })
    }
}

/// `<import>`: a library in use.
#[derive(Clone, Debug)]
pub struct Import {
    /// The library.
    pub name: Key,
    /// Its package.
    pub package: Key,
    /// Whether its operations can be used: `status="enabled"`, or no status, as Apache Synapse has it.
    pub enabled: bool,
    /// The whole element.
    pub span: Span,
}

pub(crate) const IMPORT: Shape = Shape { attributes: &["name", "package", "status"], elements: &[] };

impl Import {
    pub(crate) fn parse(element: &Element, reading: &mut Reading<'_>) -> Option<Import> {
        IMPORT.check(element, reading.diagnostics);
        let name = read::required(element, "name", reading.diagnostics);
        let package = read::required(element, "package", reading.diagnostics);
        let enabled = element.attr("status").is_none_or(|status| status == "enabled");
        if let Some(status) = read::optional(element, "status")
            && !["enabled", "disabled"].contains(&status.as_str())
        {
            reading.diagnostics.push(
                Diagnostic::warning("bad-value", format!("`{status}` counts as disabled for `status`"))
                    .at(status.span, "expected enabled or disabled")
                    .did_you_mean(&status, ["enabled", "disabled"]),
            );
        }
        Some(Import { name: name?, package: package?, enabled, span: element.span() })
    }
}
