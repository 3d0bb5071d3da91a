//! Libraries: archives, zipped or unpacked, whose operations are sequence templates.
//!
//! There are two formats. That of connectors has `connector.xml`, which names the library and its components, and `COMPONENT/component.xml`
//! with the operations of one; that of Apache Synapse has `artifacts.xml`, and `DIRECTORY/artifact.xml`, which is found by the name in it.
//! Each operation is a file beside that. An error in a file leaves out that operation.

use super::files::Archived;
use crate::element::Element;
use diagnostics::FileId;
use std::path::{Path, PathBuf};

/// Most operations of a library.
const MOST: usize = 5_000;

/// A library as it was read.
pub(crate) struct LibraryFiles {
    /// Its path for messages.
    pub shown: String,
    pub name: String,
    pub package: String,
    /// It has the format of Apache Synapse: `call-template` finds its templates too.
    pub is_synapse: bool,
    pub operations: Vec<OperationFile>,
    /// The parts that cannot be read.
    pub broken: Vec<BrokenFile>,
    /// The archive of artifacts that it came with.
    pub archive: Option<String>,
}

/// A part of a library that cannot be read.
pub(crate) struct BrokenFile {
    /// The operation, without the name of the library; `None`: the operations cannot be determined.
    pub operation: Option<String>,
    pub shown: String,
    pub why: String,
}

/// A file among the libraries that is not one, or cannot be read.
pub(crate) struct BrokenFiles {
    pub shown: String,
    /// The archive of artifacts that it came with.
    pub archive: Option<String>,
    pub unread: Unread,
}

/// Why a file is not a library.
pub(crate) enum Unread {
    /// It can be read, and is something else.
    Other,
    /// It cannot be read as a library.
    Broken(String),
}

impl From<String> for Unread {
    fn from(why: String) -> Unread {
        Unread::Broken(why)
    }
}

impl LibraryFiles {
    /// Whether the operations of another library are the same.
    pub fn is_same(&self, other: &LibraryFiles) -> bool {
        let all = |library: &LibraryFiles| {
            let operations =
                library.operations.iter().map(|operation| (operation.name.clone(), operation.bytes.clone()));
            operations.collect::<std::collections::BTreeMap<_, _>>()
        };
        self.package == other.package && self.is_synapse == other.is_synapse && all(self) == all(other)
    }
}

/// The template of an operation.
pub(crate) struct OperationFile {
    /// Without the name of the library.
    pub name: String,
    pub shown: String,
    pub bytes: Vec<u8>,
}

/// The names in a format.
struct Form {
    /// The file that describes the library.
    root: &'static str,
    /// The file that describes a part of it.
    part: &'static str,
    /// The element of the library, of a part and of an operation, and the attribute that names a part.
    element: &'static str,
    /// The element around operations.
    list: &'static str,
}

const CONNECTOR: Form =
    Form { root: "connector.xml", part: "component.xml", element: "component", list: "subComponents" };
const SYNAPSE: Form =
    Form { root: "artifacts.xml", part: "artifact.xml", element: "artifact", list: "subArtifacts" };

/// Whether a directory is an unpacked library.
pub(super) fn is_library(path: &Path) -> bool {
    [CONNECTOR, SYNAPSE].iter().any(|form| path.join(form.root).is_file())
}

/// The unpacked library that a directory is, or that it is the Maven project of.
pub(super) fn library_in(path: &Path) -> Option<PathBuf> {
    if is_library(path) {
        return Some(path.to_owned());
    }
    let resources = path.join("src/main/resources");
    (path.join("pom.xml").is_file() && resources.join(CONNECTOR.root).is_file()).then_some(resources)
}

/// Reads a library.
///
/// # Errors
/// The file is not a library, or cannot be read.
pub(super) fn read(path: &Path) -> Result<LibraryFiles, Unread> {
    let archived = if path.is_dir() { Archived::directory(path) } else { Archived::zip(path) };
    read_from(&archived?, &path.display().to_string())
}

/// Reads the library in an archive that is shown as `shown`.
///
/// # Errors
/// The archive is not a library, or cannot be read.
pub(super) fn read_from(archived: &Archived, shown: &str) -> Result<LibraryFiles, Unread> {
    let form = [CONNECTOR, SYNAPSE].into_iter().find(|form| archived.has(form.root));
    let form = form.ok_or(Unread::Other)?;
    let root = element(archived, form.root)?;
    let wrong = |fault: &str| format!("its {} {fault}", form.root);
    let definition = named(&root, form.element).next().ok_or_else(|| wrong("names no library"))?;
    let name = definition.attr("name").map(str::trim).filter(|name| !name.is_empty());
    let mut library = LibraryFiles {
        shown: shown.to_owned(),
        name: name.ok_or_else(|| wrong("has no name"))?.to_owned(),
        package: definition.attr("package").unwrap_or_default().trim().to_owned(),
        is_synapse: form.root == SYNAPSE.root,
        operations: Vec::new(),
        broken: Vec::new(),
        archive: None,
    };
    for dependency in named(definition, "dependency") {
        let Some(part) = dependency.attr(form.element).map(str::trim) else { continue };
        let (directory, read) = described(archived, part, &form);
        match read {
            Ok(described) => operations(archived, &directory, &described, &form, &mut library),
            Err(why) => {
                let file = format!("{directory}/{}", form.part);
                let shown = archived.shown(shown, &file);
                library.broken.push(BrokenFile { operation: None, shown, why });
            }
        }
    }
    Ok(library)
}

/// The description of a part, and its directory: that of its name, else the one whose description has the name.
fn described(archived: &Archived, part: &str, form: &Form) -> (String, Result<Element, String>) {
    let file = format!("{part}/{}", form.part);
    if !archived.has(&file) {
        let names = archived.names();
        let places = names.iter().filter_map(|name| name.strip_suffix(form.part)?.strip_suffix('/'));
        for directory in places.filter(|directory| !directory.contains('/')) {
            let read = element(archived, &format!("{directory}/{}", form.part));
            if let Ok(described) = read
                && described.attr("name").map(str::trim) == Some(part)
            {
                return (directory.to_owned(), Ok(described));
            }
        }
    }
    (part.to_owned(), element(archived, &file))
}

fn operations(
    archived: &Archived,
    directory: &str,
    described: &Element,
    form: &Form,
    library: &mut LibraryFiles,
) {
    let Some(list) = named(described, form.list).next() else { return };
    for component in named(list, form.element) {
        let (Some(name), Some(file)) = (component.attr("name"), named(component, "file").next()) else {
            continue;
        };
        let file = format!("{directory}/{}", file.text().trim());
        let shown = archived.shown(&library.shown, &file);
        if library.operations.len() >= MOST {
            let why = format!("the library has more than {MOST} operations");
            library.broken.push(BrokenFile { operation: None, shown, why });
            return;
        }
        let name = name.trim().to_owned();
        match archived.read(&file) {
            Ok(bytes) => library.operations.push(OperationFile { name, shown, bytes }),
            Err(why) => library.broken.push(BrokenFile { operation: Some(name), shown, why }),
        }
    }
}

/// The children of this name: descriptors have no namespace.
fn named<'e>(element: &'e Element, local: &'static str) -> impl Iterator<Item = &'e Element> {
    element.elements().filter(move |child| child.local() == local)
}

fn element(archived: &Archived, name: &str) -> Result<Element, String> {
    let text = String::from_utf8(archived.read(name)?).map_err(|_| format!("{name} is not UTF-8"))?;
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(&text);
    crate::parse::parse(FileId::BUILT_IN, text).map_err(|error| format!("{name}: {}", error.message))
}
