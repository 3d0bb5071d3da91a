//! What a reload puts in force: of each artifact its new version, or the last good one where the new one is faulty.
//!
//! The model of a version is kept, not what was compiled of it. So a mixture of new and old versions is a
//! configuration like any other: it is compiled as a whole, keys lead to the artifacts in force, and the spans of an old
//! version still point into the text that it was read from.

use crate::artifacts::Api;
use crate::configuration::{ArtifactKind, Configuration, DeployedArchive, FaultyArtifact, Running};
use crate::parse::doctype;
use diagnostics::{FileId, SourceMap, Span};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Repeats a statement for each kind of artifacts that have names, with the field of the configuration.
macro_rules! kinds {
    ($each:ident) => {
        $each!(Proxy proxies);
        $each!(Api apis);
        $each!(Sequence sequences);
        $each!(Endpoint endpoints);
        $each!(Template sequence_templates);
        $each!(Template endpoint_templates);
        $each!(DataSource data_sources);
        $each!(DataService data_services);
        $each!(LocalEntry local_entries);
        $each!(Task tasks);
        $each!(MessageStore message_stores);
        $each!(MessageProcessor message_processors);
        $each!(InboundEndpoint inbound_endpoints);
        $each!(PriorityExecutor priority_executors);
        $each!(EventSource event_sources);
        $each!(Import imports);
    };
}

/// An artifact of a configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Written {
    /// Its kind.
    pub kind: ArtifactKind,
    /// The name that it is registered under.
    pub name: String,
    /// Where it is written.
    pub span: Span,
}

/// The configuration in force without the artifacts that are left out, and its source texts.
#[derive(Clone, Debug)]
pub struct LastGood {
    pub(crate) configuration: Configuration,
    pub(crate) sources: SourceMap,
    /// The documents of the registry that were read until it came into force, by key.
    pub(crate) documents: HashMap<String, Arc<[u8]>>,
    /// Artifacts in force whose last good version stands for one in another file: the path of that file.
    pub(crate) stands_for: HashMap<(ArtifactKind, String), String>,
    /// The names of faulty operations of libraries, and of their templates.
    pub(crate) left_out_operations: HashSet<String>,
}

impl LastGood {
    /// The part of a configuration that a reload can fall back on: all but `left_out`.
    pub fn new(
        mut configuration: Configuration,
        sources: SourceMap,
        left_out: &[FaultyArtifact],
    ) -> LastGood {
        let operations = left_out.iter().filter(|faulty| faulty.kind == ArtifactKind::Template);
        let left_out_operations = operations.filter_map(|faulty| faulty.name.clone()).collect();
        let named = |faulty: &FaultyArtifact| Some((faulty.kind, faulty.name.clone()?));
        let left_out: HashSet<_> = left_out.iter().filter_map(named).collect();
        macro_rules! leave_out {
            ($kind:ident $field:ident) => {
                let is_good = |name: &str| !left_out.contains(&(ArtifactKind::$kind, name.to_owned()));
                configuration.$field.retain(is_good);
            };
        }
        kinds!(leave_out);
        let documents = configuration.registry.documents();
        LastGood { configuration, sources, documents, stands_for: HashMap::new(), left_out_operations }
    }

    /// The same with these faulty artifacts: their files may become worse, and their last good versions stay in force.
    #[must_use]
    pub fn standing_for(mut self, faulty: &[FaultyArtifact], before: Option<&LastGood>) -> LastGood {
        for faulty_artifact in faulty.iter().filter(|f| f.held) {
            let Some(path) = self.sources.get(faulty_artifact.span.file).map(|file| file.path().to_owned())
            else {
                continue;
            };
            let mut stand = |key: (ArtifactKind, String)| {
                if self.configuration.span(key.0, &key.1).is_some() {
                    self.stands_for.insert(key, path.clone());
                }
            };
            match &faulty_artifact.name {
                Some(name) if !faulty_artifact.whole_file => stand((faulty_artifact.kind, name.clone())),
                _ => {
                    let stood_for = before.iter().flat_map(|before| &before.stands_for);
                    stood_for.filter(|(_, p)| **p == path).for_each(|(key, _)| stand(key.clone()));
                }
            }
        }
        self
    }

    /// The last good content of a document of the registry.
    fn document(&self, key: &str) -> Option<&Arc<[u8]>> {
        self.documents.get(key).or_else(|| self.configuration.registry.packaged(key))
    }

    /// The configuration in force, without the artifacts that are left out.
    pub fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// Where the artifacts in force are written.
    pub fn running(&self) -> Running {
        let mut running = Running::default();
        self.configuration.archives.iter().for_each(|archive| running.add_archive(archive));
        self.configuration.libraries.iter().for_each(|library| running.add_library(library));
        for artifact in self.configuration.written() {
            if let Some(file) = self.sources.get(artifact.span.file) {
                running.add(artifact.kind, &artifact.name, file.path());
            }
        }
        running
    }

    /// The source texts.
    pub fn sources(&self) -> &SourceMap {
        &self.sources
    }

    /// Whether one of its artifacts lies below a directory.
    pub fn has_below(&self, directory: &Path) -> bool {
        let files = self.configuration.files();
        let mut files = files.iter().filter_map(|file| self.sources.get(*file));
        files.any(|file| Path::new(file.path()).starts_with(directory))
    }

    /// The archive of a file.
    fn archive_of(&self, file: FileId) -> Option<&DeployedArchive> {
        self.configuration.archives.iter().find(|archive| archive.files.contains(&file))
    }

    /// The text of a faulty artifact, if it has not changed: then the error lies in something that it refers to.
    pub fn unchanged<'a>(
        &self,
        faulty: &FaultyArtifact,
        new: &Configuration,
        sources: &'a SourceMap,
    ) -> Option<&'a str> {
        let name = faulty.name.as_deref()?;
        let (text, entities) = written_with(sources, new.span(faulty.kind, name)?);
        let before = written_with(&self.sources, self.configuration.span(faulty.kind, name)?);
        ((text, entities) == before).then_some(text)
    }

    /// The differences between this configuration and `new`.
    pub fn changes(&self, new: &LastGood) -> Changes {
        let old = self.configuration.written().into_iter();
        let mut old: HashMap<_, _> = old.map(|w| ((w.kind, w.name.clone()), w)).collect();
        let mut changes = Changes::default();
        for artifact in new.configuration.written() {
            match old.remove(&(artifact.kind, artifact.name.clone())) {
                None => changes.added.push((artifact.kind, artifact.name)),
                Some(before)
                    if written_with(&self.sources, before.span)
                        != written_with(&new.sources, artifact.span) =>
                {
                    changes.changed.push((artifact.kind, artifact.name));
                }
                Some(_) => {}
            }
        }
        // Sorted by kind, not in the order of the table.
        let removed = self.configuration.written().into_iter().map(|w| (w.kind, w.name));
        changes.removed = removed.filter(|key| old.contains_key(key)).collect();
        self.changes_of_libraries(new, &mut changes);
        let differs = |(key, before): &(&String, &Arc<[u8]>)| {
            new.documents.get(*key).is_some_and(|after| after != *before)
        };
        changes.documents = self.documents.iter().filter(differs).map(|(key, _)| key.clone()).collect();
        changes.documents.sort();
        changes
    }

    /// This configuration, to come into force again after `last`: with the documents that it had, except those that flows wrote.
    pub fn again(&self, last: &LastGood) -> Configuration {
        let mut configuration = self.configuration.clone();
        configuration.follow(last);
        for (key, document) in &self.documents {
            configuration.registry.put_back(key, document);
        }
        configuration
    }

    /// The last good versions that stand for a faulty artifact.
    fn versions(&self, faulty: &FaultyArtifact, new: &Configuration, sources: &SourceMap) -> Vec<Written> {
        let path = |sources: &SourceMap, file: FileId| sources.get(file).map(|file| file.path().to_owned());
        let file = path(sources, faulty.span.file);
        let stands_for = |w: &Written| self.stands_for.get(&(w.kind, w.name.clone()));
        let gone = |version: &Written| {
            (path(&self.sources, version.span.file) == file
                || file.is_some() && stands_for(version) == file.as_ref())
                && new.span(version.kind, &version.name).is_none()
        };
        let written = self.configuration.written().into_iter();
        match &faulty.name {
            // Which of them the file still has is unknown.
            _ if faulty.whole_file => written.filter(gone).collect(),
            // An element that is not an artifact now was one.
            Some(name) if faulty.kind == ArtifactKind::Definitions => {
                written.filter(|w| w.name == *name && gone(w)).collect()
            }
            Some(name) => written.filter(|w| w.kind == faulty.kind && w.name == *name).collect(),
            None => written.filter(|w| w.kind == faulty.kind && gone(w)).collect(),
        }
    }
}

/// The differences after a reload.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Changes {
    /// Artifacts with another text.
    pub changed: Vec<(ArtifactKind, String)>,
    /// New artifacts.
    pub added: Vec<(ArtifactKind, String)>,
    /// Removed artifacts.
    pub removed: Vec<(ArtifactKind, String)>,
    /// The keys of the registry's documents that have changed, of those that both configurations have read.
    pub documents: Vec<String>,
}

impl Changes {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        *self == Changes::default()
    }
}

impl fmt::Display for Changes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Changes { changed, added, removed, .. } = self;
        write!(out, "{} changed, {} new, {} removed", changed.len(), added.len(), removed.len())
    }
}

impl Configuration {
    /// Replaces faulty artifacts by their last good versions, together with what these need and nothing defines any
    /// more. Marks the faulty ones that are replaced.
    ///
    /// `read`: the faulty artifacts could not be read; an artifact of this configuration with such a name is
    /// another one, and good. Otherwise they could not be compiled, and are in it.
    pub fn fall_back(
        &mut self,
        faulty: &mut [FaultyArtifact],
        sources: &SourceMap,
        last: &LastGood,
        read: bool,
    ) -> Vec<Written> {
        let mut held = self.fall_back_on_archives(faulty, last);
        for faulty in faulty.iter_mut().filter(|f| !f.held) {
            if faulty.kind == ArtifactKind::Registry && read {
                self.registry = last.configuration.registry.clone();
                // With the resources of the new projects and archives.
                self.finish();
                faulty.held = true;
            }
            for version in last.versions(faulty, self, sources) {
                let alone = faulty.archive.is_none() || last.archive_of(version.span.file).is_none();
                if alone && self.take(&version, last, !read) {
                    faulty.held = true;
                    // An artifact that has lost its name keeps the one it had.
                    if !faulty.whole_file {
                        faulty.name.get_or_insert_with(|| version.name.clone());
                    }
                    held.push(version);
                }
            }
        }
        let mut at = 0;
        while let Some(artifact) = held.get(at) {
            let needed = self.needed(artifact, last);
            held.extend(needed.into_iter().filter(|w| self.take(w, last, false)));
            at += 1;
        }
        held
    }

    /// Restores the last good versions of refused archives, each as one unit: its artifacts and its resources of
    /// the registry. An archive is found by its path, or, where the file was renamed, by its artifacts.
    fn fall_back_on_archives(&mut self, faulty: &mut [FaultyArtifact], last: &LastGood) -> Vec<Written> {
        let refused = |f: &&FaultyArtifact| f.kind == ArtifactKind::Archive && !f.held;
        let paths: Vec<String> = faulty.iter().filter(refused).filter_map(|f| f.archive.clone()).collect();
        let mut held = Vec::new();
        for path in paths {
            let members = || faulty.iter().filter(|f| f.archive.as_ref() == Some(&path));
            let by_path = last.configuration.archives.iter().find(|archive| archive.path == path);
            let Some(archive) = by_path.or_else(|| {
                members().find_map(|member| {
                    let span = last.configuration.span(member.kind, member.name.as_deref()?)?;
                    last.archive_of(span.file)
                })
            }) else {
                continue;
            };
            let is_faulty = members().any(|member| archive.files.contains(&member.span.file));
            let in_force = |other: &DeployedArchive| other.path == archive.path || other.id == archive.id;
            if is_faulty || self.archives.iter().any(in_force) {
                continue;
            }
            let restored = self.restore(archive, last);
            for faulty_artifact in faulty.iter_mut().filter(|f| f.archive.as_ref() == Some(&path)) {
                let stays = |written: &Written| {
                    written.kind == faulty_artifact.kind
                        && Some(&written.name) == faulty_artifact.name.as_ref()
                };
                faulty_artifact.held = faulty_artifact.kind == ArtifactKind::Archive
                    || faulty_artifact.whole_file
                    || restored.iter().any(stays);
            }
            held.extend(restored);
        }
        held
    }

    /// Restores an archive. A name that another artifact has taken since is not restored.
    fn restore(&mut self, archive: &DeployedArchive, last: &LastGood) -> Vec<Written> {
        let mut archive = archive.clone();
        archive.replaced.clear();
        let mut restored = Vec::new();
        let all = last.configuration.written().into_iter();
        for version in all.filter(|w| archive.files.contains(&w.span.file)) {
            // Its sequences replace built-in ones, as when it was loaded.
            if version.kind == ArtifactKind::Sequence
                && matches!(&*version.name, "main" | "fault")
                && let Some(sequence) = self.sequences.get(&version.name)
                && !sequence.built_in
                && !self.archives.iter().any(|other| other.files.contains(&sequence.span.file))
            {
                archive.replaced.extend(self.sequences.remove(&version.name));
            }
            if self.take(&version, last, false) {
                restored.push(version);
            }
        }
        for library in last.configuration.libraries.iter() {
            let is_of_it = library.archive.as_ref() == Some(&archive.path);
            if is_of_it && !self.libraries.iter().any(|l| l.name == library.name) {
                self.libraries.push(library.clone());
            }
        }
        let at = self.archives.iter().position(|other| other.path > archive.path);
        self.archives.insert(at.unwrap_or(self.archives.len()), archive);
        self.finish();
        restored
    }

    /// Restores the last good versions of documents (entries, resources of the registry): those that a text names, and
    /// those that these name. Returns the keys of those that differ.
    pub fn fall_back_on_documents(&mut self, text: &str, last: &LastGood) -> Vec<String> {
        let mut texts = vec![text.to_owned()];
        let mut seen = HashSet::new();
        let mut held = Vec::new();
        while let Some(text) = texts.pop() {
            let ends = |letter: char| {
                letter.is_whitespace() || matches!(letter, '"' | '\'' | '<' | '>' | '{' | '}' | ',')
            };
            for key in text.split(ends).filter(|key| !key.is_empty()) {
                if !seen.insert(key.to_owned()) {
                    continue;
                }
                let entry = last
                    .configuration
                    .local_entries
                    .get(key)
                    .filter(|_| self.local_entries.get(key).is_some());
                let (good, is_held) = match (entry, last.document(key)) {
                    (Some(entry), _) => {
                        let good: Arc<[u8]> = entry.bytes().into();
                        let differs = self.local_entries.get(key).is_some_and(|new| *new.bytes() != *good);
                        if differs {
                            self.local_entries.replace(key, entry.clone());
                        }
                        (good, differs)
                    }
                    (None, Some(document)) => (Arc::clone(document), self.registry.hold(key, document)),
                    (None, None) => continue,
                };
                if is_held {
                    held.push(key.to_owned());
                }
                texts.push(String::from_utf8_lossy(&good).into_owned());
            }
        }
        held
    }

    /// Continues after another configuration: keeps what flows wrote into its registry.
    pub fn follow(&mut self, last: &LastGood) {
        self.registry = self.registry.after(&last.configuration.registry);
    }

    /// The artifacts that a held version names, and nothing defines any more.
    fn needed(&self, held: &Written, last: &LastGood) -> Vec<Written> {
        let text = last.sources.text(held.span);
        let stands = |name: &str| {
            text.match_indices(name).any(|(at, name)| {
                // A whole value or text.
                text[..at].ends_with(['"', '\'', '>', ' ', '\n', '\t'])
                    && text[at + name.len()..].starts_with(['"', '\'', '<', ' ', '\n', '\t'])
            })
        };
        let is_named = |version: &Written| {
            let source = match version.kind {
                ArtifactKind::DataSource => last.configuration.data_sources.get(&version.name),
                _ => None,
            };
            let jndi = source.and_then(|s| s.jndi.as_deref());
            (version.kind.shares_keys() || source.is_some() || version.kind == ArtifactKind::MessageStore)
                && self.span(version.kind, &version.name).is_none()
                && (stands(&version.name) || jndi.is_some_and(stands))
        };
        last.configuration.written().into_iter().filter(is_named).collect()
    }

    /// Takes over a version; `false` where that is not possible, or it is in force already.
    fn take(&mut self, version: &Written, last: &LastGood, replaces: bool) -> bool {
        let Written { kind, name, span } = version;
        let free = match self.span(*kind, name) {
            Some(place) => (replaces && place != *span) || place.file == FileId::BUILT_IN,
            None => !(kind.shares_keys() && self.has_key(name)) && self.context_is_free(*kind, name, last),
        };
        macro_rules! take {
            ($kind:ident $field:ident) => {
                if *kind == ArtifactKind::$kind
                    && let Some(version) = last.configuration.$field.get(name)
                {
                    self.$field.replace(name, version.clone());
                }
            };
        }
        if free {
            kinds!(take);
        }
        free
    }

    /// Whether no other API has the context of an API of `last`.
    fn context_is_free(&self, kind: ArtifactKind, name: &str, last: &LastGood) -> bool {
        let Some(api) = last.configuration.apis.get(name).filter(|_| kind == ArtifactKind::Api) else {
            return true;
        };
        let at = |other: &Api| (&other.context, other.version_text()) == (&api.context, api.version_text());
        !self.apis.iter().any(at)
    }

    /// The files of its artifacts and libraries.
    pub fn files(&self) -> HashSet<FileId> {
        let libraries = self.libraries.iter().flat_map(|library| {
            let operations = library.operations.iter().map(|o| o.template.span.file);
            operations.chain(library.broken.iter().map(|b| b.place.file)).chain([library.place.file])
        });
        self.written().into_iter().map(|w| w.span.file).chain(libraries).collect()
    }

    /// All artifacts, in the order of their kinds.
    pub fn written(&self) -> Vec<Written> {
        let mut all = Vec::new();
        macro_rules! add {
            ($kind:ident $field:ident) => {
                all.extend(self.$field.names().zip(self.$field.iter()).map(|(name, artifact)| Written {
                    kind: ArtifactKind::$kind,
                    name: name.to_owned(),
                    span: artifact.span,
                }));
            };
        }
        kinds!(add);
        all
    }

    /// Removes an artifact.
    pub(crate) fn remove(&mut self, kind: ArtifactKind, name: &str) {
        macro_rules! remove {
            ($kind:ident $field:ident) => {
                if kind == ArtifactKind::$kind {
                    self.$field.remove(name);
                }
            };
        }
        kinds!(remove);
    }

    /// The place of an artifact.
    pub(crate) fn span(&self, kind: ArtifactKind, name: &str) -> Option<Span> {
        macro_rules! find {
            ($kind:ident $field:ident) => {
                if kind == ArtifactKind::$kind
                    && let Some(found) = self.$field.get(name)
                {
                    return Some(found.span);
                }
            };
        }
        kinds!(find);
        None
    }
}

/// What an artifact is written with: its text, and the entities that its file declares, which may be part of it.
fn written_with(sources: &SourceMap, span: Span) -> (&str, &str) {
    let file = sources.get(span.file).map_or("", |file| file.text());
    let declared = doctype(file.as_bytes()).and_then(|declared| file.get(declared));
    (sources.text(span), declared.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{LoadOptions, load_text};

    const NAMESPACE: &str = "http://ws.apache.org/ns/synapse";

    /// The configuration after a reload that falls back on `last`; `compiled`: names that would not compile.
    fn reload(
        artifacts: &str,
        last: Option<&LastGood>,
        compiled: &[&str],
    ) -> (LastGood, Vec<FaultyArtifact>) {
        let text = format!("<definitions xmlns='{NAMESPACE}'>{artifacts}</definitions>");
        let sources = last.map(|last| last.sources.clone()).unwrap_or_default();
        let running = last.map(LastGood::running).unwrap_or_default();
        let options = LoadOptions { sources, running, ..LoadOptions::default() };
        let loaded = load_text("c.xml", &text, std::path::Path::new("."), &options);
        let (mut configuration, mut faulty) = (loaded.configuration, loaded.faulty);
        let fails = |w: Written| compiled.contains(&w.name.as_str()).then_some(w);
        let failed = configuration.written().into_iter().filter_map(fails);
        let mut failed: Vec<_> =
            failed.map(|w| FaultyArtifact::new(w.kind, Some(w.name), w.span, "bad")).collect();
        if let Some(last) = last {
            configuration.fall_back(&mut faulty, &loaded.sources, last, true);
            configuration.fall_back(&mut failed, &loaded.sources, last, false);
        }
        failed.retain(|f| !f.held);
        let good = LastGood::new(configuration, loaded.sources, &failed);
        faulty.extend(failed);
        (good, faulty)
    }

    /// `kind name: text` of the artifacts in force, without built-in ones.
    fn in_force(good: &LastGood) -> Vec<String> {
        let written = good.configuration.written().into_iter().filter(|w| w.span != Span::BUILT_IN);
        let text = |w: &Written| good.sources.text(w.span).to_owned();
        let mut all: Vec<_> = written.map(|w| format!("{} {}", w.kind.element(), text(&w))).collect();
        all.sort();
        all
    }

    fn proxy(name: &str, text: &str) -> String {
        format!("<proxy name='{name}'><description>{text}</description><target inSequence='s'/></proxy>")
    }

    fn api(name: &str, context: &str) -> String {
        format!("<api name='{name}' context='{context}'><resource inSequence='s'/></api>")
    }

    #[test]
    fn one_that_loses_its_name_stays() {
        for nameless in [
            "<proxy name=''><target/></proxy>",
            "<proxy name=' '><target/></proxy>",
            "<proxy><target/></proxy>",
        ] {
            let (first, _) = reload(&[proxy("A", "1"), proxy("B", "1")].concat(), None, &[]);
            let (second, faulty) = reload(&[nameless, &proxy("B", "2")].concat(), Some(&first), &[]);
            let held: Vec<_> = faulty.iter().map(|f| (f.name.as_deref(), f.held)).collect();
            assert_eq!(held, [(Some("A"), true)], "{nameless}");
            let expected =
                [("A", "1"), ("B", "2")].map(|(name, text)| format!("proxy {}", proxy(name, text)));
            assert_eq!(in_force(&second), expected, "{nameless}");
        }
    }

    /// Loads the files of a directory after the ones in force.
    fn load_files(
        files: &[(&str, String)],
        last: Option<&LastGood>,
    ) -> (LastGood, Vec<FaultyArtifact>, Vec<String>) {
        let root = std::env::temp_dir().join(format!("busbar-names-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text.replacen('<', "<!-- -->\n<", 1)).unwrap();
        }
        let running = last.map(LastGood::running).unwrap_or_default();
        let sources = last.map(|last| last.sources.clone()).unwrap_or_default();
        let options = LoadOptions { sources, running, ..LoadOptions::default() };
        let loaded = crate::load::load(&root, &options);
        let _ = std::fs::remove_dir_all(&root);
        let (mut configuration, mut faulty) = (loaded.configuration, loaded.faulty);
        if let Some(last) = last {
            configuration.fall_back(&mut faulty, &loaded.sources, last, true);
        }
        let found = loaded.diagnostics.iter().map(|d| d.message.clone()).collect();
        (LastGood::new(configuration, loaded.sources, &[]), faulty, found)
    }

    #[test]
    fn of_two_with_one_name_the_one_in_force_stays() {
        let spaced = |text: String| text.replacen(" name", &format!(" xmlns='{NAMESPACE}' name"), 1);
        let (old, new) = (spaced(proxy("A", "old")), spaced(proxy("A", "new")));
        let running = [("proxy-services/b.xml", old.clone()), ("api/y.xml", spaced(api("Y", "/c")))];
        let (first, faulty, found) = load_files(&running, None);
        assert!(faulty.is_empty(), "{found:?}");
        // Files that sort before the ones in force, and after them.
        for file in ["a", "c"] {
            let more = [
                (format!("proxy-services/{file}.xml"), new.clone()),
                (format!("api/{}.xml", if file == "a" { 'x' } else { 'z' }), spaced(api("X", "/c"))),
            ];
            let files: Vec<_> = running
                .iter()
                .cloned()
                .chain(more.iter().map(|(path, text)| (path.as_str(), text.clone())))
                .collect();
            let (second, faulty, found) = load_files(&files, Some(&first));
            assert_eq!(
                in_force(&second),
                [format!("api {}", running[1].1), format!("proxy {old}")],
                "{file}"
            );
            let mut left_out: Vec<_> = faulty.iter().map(|f| (f.name.as_deref(), f.held)).collect();
            left_out.sort();
            assert_eq!(left_out, [(Some("A"), false), (Some("X"), false)], "{file}: {found:?}");
            let names = ["two of the kind proxy service are named `A`", "two APIs have the context `/c`"];
            assert!(names.iter().all(|name| found.iter().any(|f| f == name)), "{file}: {found:?}");
            // The next reload finds the same.
            let (third, ..) = load_files(&files, Some(&second));
            assert_eq!(in_force(&third), in_force(&second), "{file}");
        }
        // Without the old file the new one is in force.
        let (moved, faulty, _) = load_files(&[("proxy-services/a.xml", new.clone())], Some(&first));
        assert!(faulty.is_empty());
        assert_eq!(in_force(&moved), [format!("proxy {new}")]);
    }

    #[test]
    fn each_artifact_falls_back_on_its_own_last_version() {
        let sequence = |text: &str| format!("<sequence name='s'><log category='{text}'/></sequence>");
        let (first, _) = reload(&[proxy("A", "1"), proxy("B", "1"), sequence("1")].concat(), None, &[]);
        // A breaks while B changes; removed artifacts stay removed.
        let broken = "<proxy name='A' nonsense='1'><target/></proxy>";
        let (second, faulty) = reload(&[broken, &proxy("B", "2")].concat(), Some(&first), &[]);
        assert_eq!(
            faulty.iter().map(|f| (f.name.as_deref(), f.held)).collect::<Vec<_>>(),
            [(Some("A"), true)]
        );
        let expected = |artifacts: &[(&str, String)]| {
            let mut all: Vec<_> = artifacts.iter().map(|(kind, text)| format!("{kind} {text}")).collect();
            all.sort();
            all
        };
        // The old A names the sequence, so the sequence stays too.
        let kept = [("proxy", proxy("A", "1")), ("proxy", proxy("B", "2")), ("sequence", sequence("1"))];
        assert_eq!(in_force(&second), expected(&kept));
        // The next reload mends A and breaks B, in the compiler.
        let (third, faulty) = reload(&[proxy("A", "3"), proxy("B", "3")].concat(), Some(&second), &["B"]);
        let kept = [("proxy", proxy("A", "3")), ("proxy", proxy("B", "2")), ("sequence", sequence("1"))];
        assert_eq!(in_force(&third), expected(&kept));
        assert!(faulty.is_empty());
        assert_eq!(second.changes(&third).to_string(), "1 changed, 0 new, 0 removed");
        // Unused source texts are dropped by the caller that compiles, so they are still there.
        let (fourth, _) = reload(&proxy("B", "4"), Some(&third), &[]);
        assert_eq!(in_force(&fourth), expected(&[("proxy", proxy("B", "4"))]));
        let changes = third.changes(&fourth);
        assert_eq!(changes.changed, [(ArtifactKind::Proxy, "B".to_owned())]);
        let removed = [(ArtifactKind::Proxy, "A".to_owned()), (ArtifactKind::Sequence, "s".to_owned())];
        assert_eq!((changes.removed, changes.added.len()), (removed.to_vec(), 0));
        // There is nothing to fall back on.
        let (fifth, faulty) = reload(&[broken, &proxy("B", "5")].concat(), Some(&fourth), &["B"]);
        assert_eq!(in_force(&fifth), expected(&[("proxy", proxy("B", "4"))]));
        assert!(!faulty[0].held && faulty[0].name.as_deref() == Some("A"));
    }

    #[test]
    fn an_artifact_changes_with_the_entities_of_its_file() {
        let load = |entity: &str| {
            let text = format!(
                "<!DOCTYPE definitions [<!ENTITY e \"{entity}\">]><definitions xmlns='{NAMESPACE}'><sequence name='s'>&e;</sequence></definitions>"
            );
            let loaded = load_text("c.xml", &text, std::path::Path::new("."), &LoadOptions::default());
            LastGood::new(loaded.configuration, loaded.sources, &[])
        };
        let (first, same, other) = (load("<drop/>"), load("<drop/>"), load("<log/>"));
        assert_eq!(first.changes(&same).to_string(), "0 changed, 0 new, 0 removed");
        assert_eq!(first.changes(&other).to_string(), "1 changed, 0 new, 0 removed");
    }

    #[test]
    fn a_file_that_cannot_be_read_changes_nothing() {
        let all =
            [proxy("A", "1"), api("R", "/r"), "<sequence name='s'><drop/></sequence>".to_owned()].concat();
        let (first, _) = reload(&all, None, &[]);
        for text in ["<proxy name='A'>", "<prxy name='A'/>", "<proxy><target/></proxy>"] {
            let (next, faulty) =
                reload(&[text, &api("R", "/r"), "<sequence name='s'/>"].concat(), Some(&first), &[]);
            assert!(faulty.iter().all(|f| f.held), "{text}: {faulty:?}");
            assert!(in_force(&next).contains(&format!("proxy {}", proxy("A", "1"))), "{text}");
            assert!(in_force(&next).contains(&format!("api {}", api("R", "/r"))), "{text}");
        }
    }

    #[test]
    fn a_good_new_artifact_goes_before_an_old_one() {
        let (first, _) = reload(&[api("R", "/r"), "<sequence name='k'/>".to_owned()].concat(), None, &[]);
        // Others have taken the context and the key.
        let broken = [
            "<api name='R' context='r'/><sequence xmlns='urn:x' name='k'/>",
            "<endpoint name='k'><default/></endpoint>",
            &api("New", "/r"),
            &proxy("Twice", "1"),
            &proxy("Twice", "2"),
        ];
        let (second, faulty) = reload(&broken.concat(), Some(&first), &[]);
        assert_eq!(in_force(&second).len(), 3, "{:?}", in_force(&second));
        assert!(faulty.iter().all(|f| !f.held), "{faulty:?}");
        // Of two with one name the second one is faulty, not the first.
        let (third, faulty) =
            reload(&[proxy("Twice", "3"), proxy("Twice", "4")].concat(), Some(&second), &[]);
        assert_eq!(in_force(&third), [format!("proxy {}", proxy("Twice", "3"))]);
        assert!(!faulty[0].held);
    }

    #[test]
    fn main_falls_back_on_the_last_main() {
        let main = "<sequence name='main'><drop/></sequence>";
        let (first, _) = reload(main, None, &[]);
        let (second, faulty) = reload("<sequence xmlns='urn:x' name='main'/>", Some(&first), &[]);
        assert_eq!(in_force(&second), [format!("sequence {main}")]);
        assert!(faulty[0].held);
    }
}
