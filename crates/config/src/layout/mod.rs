//! Which files make up the configuration at a path: a file, an archive, a project, a directory of artifacts, or the home of a
//! server.

mod archive;
mod descriptor;
mod files;
mod library;
mod not_read;
mod project;

pub(crate) use archive::Archive;
pub(crate) use files::in_words;
pub use files::read;
pub(crate) use library::{BrokenFile, BrokenFiles, LibraryFiles, Unread};
pub(crate) use not_read::{NotRead, Reason};

use crate::configuration::ArtifactKind;
use crate::mounts::Mounts;
use diagnostics::{Diagnostic, SourceMap};
use project::Project;
use std::path::{Path, PathBuf};

/// The files of a configuration.
#[derive(Default)]
pub(crate) struct Layout {
    /// What paths in the configuration are relative to.
    pub root: PathBuf,
    /// The directory of the registry, where none is configured.
    pub registry: PathBuf,
    /// Files, in the order in which they are loaded.
    pub files: Vec<ArtifactFile>,
    /// Files that a descriptor names and that do not exist.
    pub missing: Vec<ArtifactFile>,
    /// Archives that were found.
    archives: Vec<PathBuf>,
    /// Archives as they were read.
    pub cars: Vec<Archive>,
    /// Archives that cannot be read: the path of each for messages, and the first error.
    pub refused: Vec<(String, Diagnostic)>,
    /// Libraries that were found.
    library_paths: Vec<PathBuf>,
    /// Libraries as they were read.
    pub libraries: Vec<LibraryFiles>,
    /// Files among the libraries that are none, or cannot be read.
    pub broken_libraries: Vec<BrokenFiles>,
    /// Resources of the registry that lie in the project.
    pub mounts: Mounts,
    /// Settings of a WSO2 server: `deployment.toml` and property files.
    pub settings: Vec<PathBuf>,
    /// `.env` files.
    pub environment: Vec<PathBuf>,
    /// `config.properties` of projects: the names of values that come from outside.
    pub configs: Vec<PathBuf>,
    /// The files that are not read.
    pub not_read: NotRead,
}

/// A file with artifacts.
#[derive(Debug)]
pub(crate) struct ArtifactFile {
    pub path: PathBuf,
    /// The kind that its place implies.
    pub kind: Option<ArtifactKind>,
}

/// Finds the files at `path`. Never fails: errors are in `problems`.
pub(crate) fn find(path: &Path, sources: &mut SourceMap, problems: &mut Vec<Diagnostic>) -> Layout {
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(error) => {
            let why = match error.kind() {
                std::io::ErrorKind::NotFound => "does not exist".to_owned(),
                _ => format!("cannot be read: {}", in_words(&error)),
            };
            problems.push(Diagnostic::error("no-configuration", format!("`{}` {why}", path.display())));
            return Layout::default();
        }
    };
    if !metadata.is_dir() {
        let mut layout = Layout::at(path.parent().unwrap_or(Path::new("")).to_owned());
        if path.extension().is_some_and(|extension| {
            extension.eq_ignore_ascii_case("car") || extension.eq_ignore_ascii_case("zip")
        }) {
            layout.archives.push(path.to_owned());
            let mut project = Project::new(layout, sources, problems);
            project.read_archives();
            return project.layout;
        }
        layout.files.push(ArtifactFile { path: path.to_owned(), kind: None });
        return layout;
    }
    let mut project = Project::new(Layout::at(path.to_owned()), sources, problems);
    if path.join("repository/deployment/server").is_dir() {
        project.home(path);
    } else if path.join("repository/conf/synapse-config").is_dir()
        || path.join("repository/conf/synapse.xml").is_file()
    {
        project.synapse_home(path);
    } else {
        project.directory(path);
    }
    project.read_archives();
    let layout = project.layout;
    let is_empty = layout.files.is_empty()
        && layout.cars.is_empty()
        && layout.refused.is_empty()
        && layout.libraries.is_empty()
        && layout.mounts.len() == 0;
    if is_empty && problems.is_empty() {
        let directories: Vec<&str> =
            ArtifactKind::all().map(ArtifactKind::directory).filter(|name| !name.is_empty()).collect();
        problems.push(
            Diagnostic::error("no-configuration", format!("`{}` is not a configuration", path.display())).help(format!(
                "expected artifacts, archives (.car), a project, the home of a server, synapse.xml or one of the directories {}",
                directories.join(", ")
            )),
        );
    }
    layout
}

impl Layout {
    fn at(root: PathBuf) -> Layout {
        let properties = [root.join("file.properties"), root.join("conf/file.properties")];
        let settings = properties.into_iter().filter(|path| path.is_file()).collect();
        Layout { registry: root.join("registry"), settings, root, ..Layout::default() }
    }

    /// `file.properties`, in the order of precedence.
    pub fn properties(&self) -> impl Iterator<Item = &PathBuf> {
        self.settings.iter().filter(|path| path.file_name().is_some_and(|name| name == "file.properties"))
    }
}
