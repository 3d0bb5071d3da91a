//! What comes packed: archives, which are deployed as a whole or not at all, and libraries.

use super::{Loader, decode, is_ours};
use crate::artifacts::Template;
use crate::configuration::{
    ArtifactKind, BrokenLibrary, BrokenOperation, DeployedArchive, FaultyArtifact, Library, LibraryOperation,
};
use crate::element::Element;
use crate::layout::{self, Archive, BrokenFile, BrokenFiles, LibraryFiles, Unread};
use diagnostics::{Diagnostic, Diagnostics, FileId, Severity, Span};
use std::sync::Arc;

impl Loader {
    /// Adds all artifacts of an archive, or none if one of them has an error that WSO2 finds too.
    pub(super) fn archive(&mut self, archive: Archive) {
        let same = self.configuration.archives.iter().find(|other| other.id == archive.id);
        if let Some(first) = same {
            let message = format!("there are two archives `{}`", archive.id);
            let help = format!("`{}` was loaded first", first.path);
            let file = self.sources.add(archive.shown.as_str(), "");
            let error =
                Diagnostic::error("duplicate-key", message).at(Span::new(file, 0, 0), "this one is left out");
            self.diagnostics.push(error.clone().help(help));
            self.configuration.without_libraries(&archive.shown);
            return self.refused(&archive.shown, error);
        }
        let names: Vec<(FileId, String)> = archive
            .configs
            .iter()
            .map(|name| (self.sources.add(archive.shown.as_str(), ""), name.clone()))
            .collect();
        for (file, name) in names {
            self.value_from_outside(Span::new(file, 0, 0), &name);
        }
        let (mark, faulty) = (self.diagnostics.len(), self.faulty.len());
        let (path, at) = (archive.shown, self.configuration.archives.len());
        let (files, replaced) = (Vec::new(), Vec::new());
        let loaded =
            DeployedArchive { id: archive.id, path: path.clone(), files, mounts: archive.mounts, replaced };
        self.configuration.archives.push(loaded);
        self.in_archive = true;
        for member in archive.members {
            match decode(member.bytes) {
                Ok(text) => {
                    let file = self.text(&member.shown, text, Some(member.kind));
                    if let Some(definition) = member.definition {
                        self.packed_definition(file, &definition);
                    }
                }
                Err(message) => self.unreadable(&member.shown, Some(member.kind), message),
            }
        }
        self.in_archive = false;
        let mut errors = self.diagnostics.iter().skip(mark);
        let error = errors.find(|d| d.severity == Severity::Error && !is_ours(d.rule)).cloned();
        if let Some(error) = error {
            self.faulty.iter_mut().skip(faulty).for_each(|artifact| artifact.archive = Some(path.clone()));
            let loaded = &self.configuration.archives[at];
            let (files, replaced) = (loaded.files.clone(), loaded.replaced.clone());
            self.defined.retain(|_, (_, span)| !files.contains(&span.file));
            for sequence in replaced {
                let name = sequence.name.as_ref().map(ToString::to_string).unwrap_or_default();
                self.defined.insert((None, name), (ArtifactKind::Sequence, sequence.span));
            }
            let (sources, found) = (&mut self.sources, &mut self.diagnostics);
            let left_out = self.configuration.without(at, &error.message, sources, found);
            self.faulty.extend(left_out);
        }
    }

    /// Adds libraries. Of several with one name one counts.
    pub(super) fn libraries(&mut self, libraries: Vec<LibraryFiles>) {
        let mut others = Vec::new();
        for (at, library) in libraries.iter().enumerate() {
            let first = libraries[..at].iter().find(|first| first.name == library.name);
            let differs = first.is_some_and(|first| !first.is_same(library));
            others.push((first.is_some(), differs.then(|| library.shown.clone())));
        }
        for (files, (is_second, differs)) in libraries.into_iter().zip(others) {
            if !is_second {
                self.library(files);
            } else if let Some(shown) = differs {
                let place = self.whole(&shown);
                let mut all = self.configuration.libraries.iter_mut();
                all.find(|library| library.name == files.name)
                    .into_iter()
                    .for_each(|library| library.beside.push(place));
            }
        }
    }

    /// Reports a library that cannot be read, or a file among libraries that is none.
    pub(super) fn no_library(&mut self, files: BrokenFiles) {
        let BrokenFiles { shown: path, archive, unread } = files;
        let why = match unread {
            Unread::Broken(why) => why,
            Unread::Other if self.running.has_library(&path) => {
                "it has no connector.xml and no artifacts.xml".to_owned()
            }
            Unread::Other => return self.not_read.add(layout::Reason::Connector, path),
        };
        let place = self.broken_library(&path, "a library cannot be read", why.clone());
        self.configuration.broken_libraries.push(BrokenLibrary { path, place, why, archive });
    }

    /// Adds the operations of a library. Errors in it are warnings: artifacts that use it report them.
    fn library(&mut self, mut files: LibraryFiles) {
        const PART: &str = "a part of a library cannot be read";
        let place = self.whole(&files.shown);
        let full = |operation: &str| format!("{}.{operation}", files.name);
        let mut broken = Vec::new();
        for BrokenFile { operation, shown, why } in std::mem::take(&mut files.broken) {
            let place = self.broken_library(&shown, PART, why.clone());
            broken.push(BrokenOperation { name: operation.as_deref().map(full), place, why });
        }
        let mut operations = Vec::with_capacity(files.operations.len());
        for operation in std::mem::take(&mut files.operations) {
            let text = match decode(operation.bytes) {
                Ok(text) => text,
                Err(why) => {
                    let place = self.broken_library(&operation.shown, PART, why.clone());
                    broken.push(BrokenOperation { name: Some(full(&operation.name)), place, why });
                    continue;
                }
            };
            let file = self.sources.add(operation.shown.as_str(), text.as_str());
            let root = match crate::parse::parse(file, &text) {
                Ok(root) => root,
                Err(error) => {
                    let (rule, severity) = ("broken-library", Severity::Warning);
                    let place = error.span().unwrap_or(Span::new(file, 0, 0));
                    let why = error.message.clone();
                    broken.push(BrokenOperation { name: Some(full(&operation.name)), place, why });
                    self.diagnostics.push(Diagnostic { rule, severity, ..error });
                    continue;
                }
            };
            // Findings about the style of third-party templates are dropped.
            let mut found = Diagnostics::default();
            match Template::parse(&root, &mut found) {
                Some(Template::Sequence(mut template)) => {
                    if files.is_synapse {
                        template.name.value = format!("{}.{}", files.package, operation.name);
                    }
                    operations.push(LibraryOperation {
                        name: full(&operation.name),
                        class: class_of(&template.sequence.element),
                        template: Arc::new(*template),
                    });
                }
                _ => {
                    let why = "it is not a sequence template".to_owned();
                    let place = self.broken_library(&operation.shown, PART, why.clone());
                    broken.push(BrokenOperation { name: Some(full(&operation.name)), place, why });
                }
            }
        }
        let LibraryFiles { shown: path, name, package, is_synapse, archive, .. } = files;
        let beside = Vec::new();
        let library = Library { path, name, package, is_synapse, operations, broken, archive, place, beside };
        self.configuration.libraries.push(library);
    }

    fn broken_library(&mut self, path: &str, message: &str, why: String) -> Span {
        let place = self.whole(path);
        self.diagnostics.push(Diagnostic::warning("broken-library", message).at(place, why));
        place
    }

    /// The place of a file as a whole.
    fn whole(&mut self, path: &str) -> Span {
        Span::new(self.sources.add(path, ""), 0, 0)
    }

    /// An archive that is left out as a whole.
    pub(super) fn refused(&mut self, path: &str, error: Diagnostic) {
        let file = self.sources.add(path, "");
        self.faulty.push(FaultyArtifact::archive(path, Span::new(file, 0, 0), error.message));
    }
}

/// The Java class that a step runs. Data of a step is not searched.
fn class_of(element: &Element) -> Option<String> {
    const DATA: &[&str] = &["format", "inline", "source", "target", "args", "schema", "parameter"];
    element.elements().find_map(|child| match child.local() {
        "class" => child.attr("name").map(str::to_owned),
        local if DATA.contains(&local) && child.elements().all(|e| !e.is("sequence")) => None,
        _ => class_of(child),
    })
}
