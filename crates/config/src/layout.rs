//! Which files make up the configuration at a path.

use crate::configuration::ArtifactKind;
use diagnostics::Diagnostic;
use std::path::{Path, PathBuf};

/// The files of a configuration, in the order in which they are loaded.
#[derive(Default, Debug)]
pub(crate) struct Layout {
    /// What paths in the configuration are relative to.
    pub root: PathBuf,
    /// The registry, where none is configured.
    pub registry: PathBuf,
    /// `file.properties`, where it may be.
    pub properties: Vec<PathBuf>,
    /// Files, with the kind that their place implies.
    pub files: Vec<(PathBuf, Option<ArtifactKind>)>,
}

/// Looks at `path`: a file, a configuration directory, or a WSO2 home.
pub(crate) fn find(path: &Path, problems: &mut Vec<Diagnostic>) -> Layout {
    if !path.exists() {
        problems.push(Diagnostic::error("no-configuration", format!("`{}` does not exist", path.display())));
        return Layout::default();
    }
    if path.is_file() {
        let root = path.parent().unwrap_or(Path::new("")).to_owned();
        let mut layout = Layout::at(root);
        if is_archive(path) {
            problems.push(archive(path));
        } else {
            layout.files.push((path.to_owned(), None));
        }
        return layout;
    }
    let in_home = path.join("repository/deployment/server/synapse-configs/default");
    if in_home.is_dir() {
        let mut layout = directory(&in_home, problems);
        layout.root = path.to_owned();
        layout.registry = path.join("registry");
        layout.properties.insert(0, path.join("conf/file.properties"));
        problems.extend(archives(&path.join("repository/deployment/server/carbonapps")));
        return layout;
    }
    problems.extend(archives(path));
    let layout = directory(path, problems);
    if layout.files.is_empty() && problems.is_empty() {
        let directories: Vec<&str> =
            ArtifactKind::all().map(ArtifactKind::directory).filter(|name| !name.is_empty()).collect();
        problems.push(
            Diagnostic::error("no-configuration", format!("`{}` is not a configuration", path.display()))
                .help(format!("expected synapse.xml or one of the directories {}", directories.join(", "))),
        );
    }
    layout
}

impl Layout {
    fn at(root: PathBuf) -> Layout {
        Layout {
            registry: root.join("registry"),
            properties: vec![root.join("file.properties"), root.join("conf/file.properties")],
            root,
            files: Vec::new(),
        }
    }
}

/// A configuration directory: three files and a sub-directory for every kind.
fn directory(root: &Path, problems: &mut Vec<Diagnostic>) -> Layout {
    let mut layout = Layout::at(root.to_owned());
    for (name, kind) in [
        ("synapse.xml", ArtifactKind::Definitions),
        ("registry.xml", ArtifactKind::Registry),
        ("task-manager.xml", ArtifactKind::TaskManager),
    ] {
        let path = root.join(name);
        if path.is_file() {
            layout.files.push((path, Some(kind)));
        }
    }
    for kind in ArtifactKind::all().filter(|kind| !kind.directory().is_empty()) {
        let directory = root.join(kind.directory());
        if directory.is_dir() {
            match files(&directory, "xml") {
                Ok(files) => layout.files.extend(files.into_iter().map(|path| (path, Some(kind)))),
                Err(error) => problems.push(Diagnostic::error(
                    "unreadable-source",
                    format!("`{}` cannot be read: {error}", directory.display()),
                )),
            }
        }
    }
    layout
}

/// The files with an extension directly in a directory, by name.
fn files(directory: &Path, extension: &str) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        // What cannot even be looked at (a link to nowhere) is reported when it is read.
        let is_file = path.metadata().map_or(true, |found| found.is_file());
        if is_file && path.extension().is_some_and(|e| e == extension) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn archives(directory: &Path) -> Vec<Diagnostic> {
    files(directory, "car").unwrap_or_default().iter().map(|path| archive(path)).collect()
}

fn is_archive(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "car")
}

fn archive(path: &Path) -> Diagnostic {
    Diagnostic::error("archive-unsupported", format!("`{}`: archives are not supported yet", path.display()))
        .help("unpack it into a configuration directory (api/, sequences/, proxy-services/, …) and name that")
}
