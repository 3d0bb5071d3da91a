//! Which artifact a name belongs to: copies of a file, two of one name, what is in force already.

use super::Loader;
use crate::artifacts::Api;
use crate::configuration::{ArtifactKind, FaultyArtifact, space_of};
use crate::element::Element;
use diagnostics::{Diagnostic, FileId, Span};

impl Loader {
    /// Whether the artifact is in order and its name not in use; takes the name.
    pub(super) fn free(&mut self, kind: ArtifactKind, name: &str, element: &Element, mark: usize) -> bool {
        if self.diagnostics.has_errors_since(mark) {
            return false;
        }
        let attribute = element.attribute(kind.name_attribute());
        let span = attribute.map_or(element.start_tag(), |attribute| attribute.value_span);
        let space = space_of(kind);
        if kind == ArtifactKind::Sequence && matches!(name, "main" | "fault") {
            self.make_way(name);
        }
        if let Some((first_kind, first)) = self.defined.get(&(space, name.to_owned())).copied() {
            if first_kind == kind && self.is_copy(kind, name, span, first) {
                return false;
            }
            let message = match name {
                "" => format!("there are two elements `{}`", kind.element()),
                name if first_kind == kind => format!("two of the kind {kind} are named `{name}`"),
                name => format!("the key `{name}` is in use"),
            };
            let mut error = Diagnostic::error("duplicate-key", message);
            if first_kind != kind {
                error = error.help("sequences, endpoints, local entries and templates share their keys");
            }
            if !self.makes_way(kind, name, span.file, (first_kind, name, first.file)) {
                let error = error.at(span, "this one is left out");
                self.diagnostics.push(error.at(first, format!("{first_kind} defined first here")));
                return false;
            }
            let error = error.at(first, "this one is left out");
            self.evict((first_kind, name, first), error.at(span, format!("this {kind} is in force")));
        }
        self.defined.insert((space, name.to_owned()), (kind, span));
        true
    }

    /// Whether an artifact is in a file that is a copy of another one, as where a repository holds a project twice, or what a build made beside
    /// its sources: that is reported, and the first one stays.
    fn is_copy(&mut self, kind: ArtifactKind, name: &str, copy: Span, first: Span) -> bool {
        // An archive is deployed as a whole: what it brings twice, or what is there already, is refused with it.
        if self.in_archive || copy.file == first.file {
            return false;
        }
        let lines = |span: Span| {
            let text = self.sources.get(span.file)?.text();
            Some(text.trim().lines().map(str::trim_end))
        };
        let same = lines(copy).zip(lines(first)).is_some_and(|(copy, first)| copy.eq(first));
        if same {
            let message = format!("the {kind} `{name}` is in two files with the same content");
            let found = Diagnostic::warning("duplicate-key", message).at(copy, "this copy is left out");
            self.diagnostics.push(found.at(first, "this one is in force"));
        }
        same
    }

    /// Whether the artifact that was read first is replaced by the one that is read now, since only one of them can be in force: the one in
    /// force stays. Archives are left out as a whole or not at all, so their artifacts are never replaced.
    fn makes_way(
        &self,
        kind: ArtifactKind,
        name: &str,
        file: FileId,
        (first_kind, first, first_file): (ArtifactKind, &str, FileId),
    ) -> bool {
        let runs = |kind, name: &str, file| {
            self.sources.get(file).is_some_and(|source| self.running.is(kind, name, source.path()))
        };
        let in_archive =
            self.configuration.archives.iter().any(|archive| archive.files.contains(&first_file));
        !in_archive && runs(kind, name, file) && !runs(first_kind, first, first_file)
    }

    /// Leaves out what was read before, and says why.
    fn evict(&mut self, (kind, name, span): (ArtifactKind, &str, Span), error: Diagnostic) {
        self.configuration.remove(kind, name);
        self.defined.remove(&(space_of(kind), name.to_owned()));
        self.faulty.push(FaultyArtifact::new(kind, Some(name.to_owned()), span, error.message.as_str()));
        // The artifact that is read now is in order.
        self.found_before.push(error);
    }

    /// Replaces the server's built-in sequence by that of an archive.
    fn make_way(&mut self, name: &str) {
        let key = (None, name.to_owned());
        let of_an_archive =
            |file| self.configuration.archives.iter().any(|archive| archive.files.contains(&file));
        if self.in_archive
            && let Some((ArtifactKind::Sequence, span)) = self.defined.get(&key)
            && !of_an_archive(span.file)
            && let Some(sequence) = self.configuration.sequences.remove(name)
        {
            self.configuration
                .archives
                .last_mut()
                .into_iter()
                .for_each(|s| s.replaced.push(sequence.clone()));
            self.defined.remove(&key);
        }
    }

    /// Two APIs may not have context and version in common.
    pub(super) fn context_is_free(&mut self, api: &Api) -> bool {
        let same = |other: &&Api| other.context == api.context && other.version_text() == api.version_text();
        let Some(first) = self.configuration.apis.iter().find(same) else { return true };
        let (name, first_name) = (api.registered_name(), first.registered_name());
        let (span, first_span) = (api.written_context.span, first.written_context.span);
        if self.is_copy(ArtifactKind::Api, &name, span, first_span) {
            return false;
        }
        let message = match api.version_text() {
            "" => format!("two APIs have the context `{}`", api.written_context),
            version => {
                format!("two APIs have the context `{}` and the version `{version}`", api.written_context)
            }
        };
        let error = Diagnostic::error("duplicate-context", message);
        let first = (ArtifactKind::Api, first_name.as_str(), first_span.file);
        if self.makes_way(ArtifactKind::Api, &name, span.file, first) {
            let error = error.at(first_span, "this API is left out");
            let error = error.at(span, format!("`{}`, which is in force, is here", api.name));
            self.evict((ArtifactKind::Api, &first_name, first_span), error);
            return true;
        }
        let error = error.at(span, "this API is left out");
        self.diagnostics.push(error.at(first_span, format!("`{first_name}` is here")));
        false
    }
}
