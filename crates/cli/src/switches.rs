//! Who was started and stopped by hand, kept over a restart: a small file, which is written anew as a whole with each decision.
//!
//! What a definition says is not in it, nor what stops by itself. A decision counts for as long as the definition says what it said then; one
//! about an artifact that is not there waits until it is.

use config::ArtifactKind;
use flow::activation::{Activation, Decision, Written};
use flow::{Identity, Plan, States, lock};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The name of the file in the directory that the service manager gives.
const NAME: &str = "busbar-state.json";

/// The form of the file.
const VERSION: u32 = 1;

/// See the module.
pub struct Switches {
    /// As the system names it; `None`: nothing is kept.
    file: Option<PathBuf>,
    decided: Mutex<Decided>,
}

/// The decisions, whether the artifact is there now or not.
#[derive(Default)]
struct Decided {
    /// Held, so that an artifact that is removed and comes back has its state again.
    artifacts: Vec<(Identity, Arc<Activation>)>,
    /// Addresses of named endpoints that are off.
    endpoints: Vec<Identity>,
}

#[derive(Default, Serialize, Deserialize)]
struct SavedState {
    version: u32,
    artifacts: Vec<Artifact>,
    /// The endpoints that are off.
    endpoints: Vec<Endpoint>,
}

/// A proxy service, an API, a task, a message processor, an inbound endpoint.
#[derive(Serialize, Deserialize)]
struct Artifact {
    kind: String,
    name: String,
    on: bool,
    /// What its definition said, and its number.
    written: bool,
    definition: u64,
}

/// An address of a named endpoint.
#[derive(Serialize, Deserialize)]
struct Endpoint {
    name: String,
    part: String,
}

impl Switches {
    /// Reads the file that the settings name, else that of the service manager, for artifacts that find their state in `states`. What cannot
    /// be read is logged, and is ignored.
    pub fn read(file: Option<&Path>, states: &States) -> Switches {
        let given = || {
            let directories = std::env::var_os("STATE_DIRECTORY")?;
            // There may be several.
            std::env::split_paths(&directories)
                .find(|directory| !directory.as_os_str().is_empty())
                .map(|directory| directory.join(NAME))
        };
        let file = file.map(Path::to_path_buf).or_else(given).filter(|file| !file.as_os_str().is_empty());
        let file = file.map(|file| resolved(&file));
        let kept = file.as_deref().map_or_else(|| Ok(SavedState::default()), read);
        let kept = kept.unwrap_or_else(|why| {
            tracing::error!(target: "busbar::start", "who was started and stopped before is not known: {why}");
            SavedState::default()
        });
        let mut decided = Decided::default();
        for artifact in kept.artifacts {
            let Some(kind) = ArtifactKind::of_element(&artifact.kind) else { continue };
            let identity = Identity::of(kind, &artifact.name);
            let activation: Arc<Activation> = states.get(&identity);
            let written = Written { on: artifact.written, definition: artifact.definition };
            activation.restore(Decision { on: artifact.on, written });
            decided.artifacts.push((identity, activation));
        }
        let part = |endpoint: Endpoint| {
            let artifact = Identity::of(ArtifactKind::Endpoint, &endpoint.name);
            if endpoint.part.is_empty() { artifact } else { artifact.part(&endpoint.part) }
        };
        decided.endpoints = kept.endpoints.into_iter().map(part).collect();
        Switches { file, decided: Mutex::new(decided) }
    }

    /// Before a plan comes into force: endpoints of it that were off are off again.
    pub fn restore(&self, plan: &Plan) {
        let decided = lock(&self.decided);
        if decided.endpoints.is_empty() {
            return;
        }
        for leaf in plan.endpoints().flat_map(|(_, endpoint)| endpoint.leaves()) {
            if decided.endpoints.contains(leaf.identity()) {
                leaf.switch(false);
            }
        }
    }

    /// Holds what was decided about the artifacts of the plan in force, and writes it down; `false` where nothing is kept.
    ///
    /// # Errors
    /// The file cannot be written: it stays as it was.
    pub fn keep(&self, plan: &Plan) -> Result<bool, String> {
        // Who decides meanwhile writes after this, and has both decisions.
        let mut decided = lock(&self.decided);
        for (kind, name, activation) in activations(plan) {
            let identity = Identity::of(kind, &name);
            decided.artifacts.retain(|(decided_identity, _)| *decided_identity != identity);
            if activation.decision().is_some() {
                decided.artifacts.push((identity, Arc::clone(activation)));
            }
        }
        for leaf in plan.endpoints().flat_map(|(_, endpoint)| endpoint.leaves()) {
            let identity = leaf.identity();
            // Groups may share members.
            decided.endpoints.retain(|endpoint| endpoint != &**identity);
            if identity.kind == ArtifactKind::Endpoint && leaf.state() == "off" {
                decided.endpoints.push(Identity::clone(identity));
            }
        }
        let Some(file) = &self.file else { return Ok(false) };
        let artifact = |(identity, activation): &(Identity, Arc<Activation>)| {
            let Decision { on, written } = activation.decision()?;
            let (kind, name) = (identity.kind.element().to_owned(), identity.artifact.to_string());
            Some(Artifact { kind, name, on, written: written.on, definition: written.definition })
        };
        let endpoint = |identity: &Identity| Endpoint {
            name: identity.artifact.to_string(),
            part: identity.part.to_string(),
        };
        let kept = SavedState {
            version: VERSION,
            artifacts: decided.artifacts.iter().filter_map(artifact).collect(),
            endpoints: decided.endpoints.iter().map(endpoint).collect(),
        };
        check(file)?;
        write(file, &kept).map_err(|error| format!("`{}` cannot be written: {error}", file.display()))?;
        Ok(true)
    }

    /// Whether a path is that of the file, however it is written.
    pub fn is_kept_in(&self, path: &Path) -> bool {
        self.file.as_ref().is_some_and(|file| file.file_name() == path.file_name() && *file == resolved(path))
    }
}

/// All that can be started and stopped, by the names that the artifacts are listed by.
fn activations(plan: &Plan) -> impl Iterator<Item = (ArtifactKind, Cow<'_, str>, &Arc<Activation>)> {
    use ArtifactKind::{Api, DataService, EventSource, InboundEndpoint, MessageProcessor, Proxy, Task};
    let proxies = plan.proxies().iter().map(|proxy| {
        // The services of event sources are among them.
        let kind = if plan.event_source(&proxy.name).is_some() {
            EventSource
        } else if plan.data_service(&proxy.name).is_some() {
            DataService
        } else {
            Proxy
        };
        (kind, Cow::from(&proxy.name), &proxy.activation)
    });
    let apis = plan.apis().iter().map(|api| (Api, api.qualified_name(), &api.activation));
    let tasks = plan.tasks().iter().map(|task| (Task, Cow::from(&task.name), &task.activation));
    let processors = plan
        .processors()
        .iter()
        .map(|processor| (MessageProcessor, Cow::from(&processor.name), &processor.activation));
    let inbound = plan
        .inbound_endpoints()
        .iter()
        .map(|endpoint| (InboundEndpoint, Cow::from(&endpoint.name), &endpoint.activation));
    proxies.chain(apis).chain(tasks).chain(processors).chain(inbound)
}

/// The path without links and relative steps, as far as it is there.
fn resolved(path: &Path) -> PathBuf {
    followed(path, 40)
}

/// As [`resolved`], through so many links at most.
fn followed(path: &Path, depth: u8) -> PathBuf {
    let directory = || {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some(parent.canonicalize().ok()?.join(path.file_name()?))
    };
    // The target of a link may not be there yet: it is the file, not the link.
    let link = path.read_link().ok().filter(|_| path.canonicalize().is_err() && depth > 0);
    if let Some(target) = link {
        let parent = path.parent().unwrap_or(Path::new(""));
        return followed(&parent.join(target), depth - 1);
    }
    path.canonicalize().ok().or_else(directory).unwrap_or_else(|| path.to_path_buf())
}

/// The file is replaced as a whole, so a device or a pipe must not stand there.
fn check(file: &Path) -> Result<(), String> {
    match file.metadata() {
        Ok(found) if !found.is_file() => Err(format!("`{}` is not a regular file", file.display())),
        _ => Ok(()),
    }
}

fn read(file: &Path) -> Result<SavedState, String> {
    check(file)?;
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(SavedState::default()),
        Err(error) => return Err(format!("`{}` cannot be read: {error}", file.display())),
    };
    let kept: SavedState =
        serde_json::from_str(&text).map_err(|error| format!("`{}`: {error}", file.display()))?;
    match kept.version {
        VERSION => Ok(kept),
        other => Err(format!("`{}` has the version {other}; expected {VERSION}", file.display())),
    }
}

/// In one step: a process that ends in the middle leaves the file as it was.
fn write(file: &Path, kept: &SavedState) -> std::io::Result<()> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let beside = file.with_file_name(format!(".{name}.new"));
    let written = (|| {
        let mut out = std::fs::File::create(&beside)?;
        serde_json::to_writer_pretty(&mut out, kept)?;
        out.write_all(b"\n")?;
        out.sync_all()?;
        std::fs::rename(&beside, file)
    })();
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written?;
    // The name of the file is in its directory. Where that cannot be synchronised, the system does it before long.
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let _ = std::fs::File::open(directory).and_then(|directory| directory.sync_all());
    Ok(())
}
