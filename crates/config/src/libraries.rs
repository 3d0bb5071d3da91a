//! Libraries in a reload: each comes into force as a whole, and keeps its last good version while its archive is faulty.
//!
//! An archive that cannot be read does not tell which library it has, and one with a faulty operation lacks what served. So the last
//! good version stays in both cases, found by the path of the archive, else by the name of the library. What was faulty in it already
//! does not block the new version.

use crate::configuration::{
    ArtifactKind, BrokenLibrary, BrokenOperation, Configuration, FaultyArtifact, Library, LibraryOperation,
};
use crate::mixture::{Changes, LastGood};
use diagnostics::{SourceMap, Span};
use std::collections::HashMap;

impl Configuration {
    /// Keeps the last good version of libraries whose archives cannot be read, or have operations that cannot be executed any more. Returns
    /// the reason for each.
    pub fn hold_libraries(&mut self, last: &LastGood) -> Vec<FaultyArtifact> {
        let mut held = Vec::new();
        for old in &last.configuration.libraries {
            let new = self.libraries.iter().position(|l| l.name == old.name);
            let broken = self.broken_libraries.iter().find(|library| library.path == old.path);
            let why = match (broken, new) {
                (Some(BrokenLibrary { place, why, .. }), _) => Some((*place, why.clone())),
                (None, Some(new)) => self.libraries[new].worse_than(old, last),
                (None, None) => None,
            };
            let Some((place, why)) = why else { continue };
            held.push(self.hold(new, old, place, &why));
        }
        held
    }

    /// Keeps the last good version of libraries with an operation that does not compile any more (`failed`). Returns the reason for each.
    pub fn hold_faulty_operations(
        &mut self,
        failed: &[FaultyArtifact],
        sources: &SourceMap,
        last: &LastGood,
    ) -> Vec<FaultyArtifact> {
        let mut held = Vec::new();
        for faulty in failed.iter().filter(|f| f.kind == ArtifactKind::Template) {
            let Some(name) =
                faulty.name.as_deref().filter(|name| self.sequence_templates.get(name).is_none())
            else {
                continue;
            };
            let found = self.libraries.iter().enumerate();
            let mut found = found.filter_map(|(at, l)| Some((at, l.operation(name)?)));
            let Some((at, operation)) = found.next() else { continue };
            let (library, text) = (&self.libraries[at], sources.text(operation.template.span));
            let mut libraries = last.configuration.libraries.iter();
            let Some(old) = libraries.find(|l| l.name == library.name) else { continue };
            // The text is the same, so the reason is outside of the library.
            let served = old.operation(name).is_some_and(|running| {
                last.serves(running) && last.sources.text(running.template.span) != text
            });
            if served && old.place != library.place {
                held.push(self.hold(Some(at), old, faulty.span, &faulty.message));
            }
        }
        held
    }

    /// Replaces the library at `new` by its last good version.
    fn hold(&mut self, new: Option<usize>, old: &Library, place: Span, why: &str) -> FaultyArtifact {
        match new {
            Some(at) => self.libraries[at] = old.clone(),
            None => self.libraries.push(old.clone()),
        }
        let faulty = FaultyArtifact::new(ArtifactKind::Library, Some(old.name.clone()), place, why);
        FaultyArtifact { held: true, ..faulty }
    }
}

impl Library {
    /// The operation of a name, or the one whose template has it.
    fn operation(&self, name: &str) -> Option<&LibraryOperation> {
        let is_named = |operation: &&LibraryOperation| {
            operation.name == name || self.is_synapse && operation.template.name.value == name
        };
        self.operations.iter().find(is_named)
    }

    /// Which operation served in the version before and cannot be executed in this one, and why.
    fn worse_than(&self, old: &Library, last: &LastGood) -> Option<(Span, String)> {
        old.operations.iter().filter(|operation| last.serves(operation)).find_map(|operation| {
            match self.operations.iter().find(|new| new.name == operation.name) {
                Some(new) => {
                    let class = new.class.as_ref()?;
                    let why = format!("the template of `{}` runs the Java class `{class}`", operation.name);
                    Some((new.template.span, why))
                }
                None => {
                    let may_be = |broken: &&BrokenOperation| {
                        broken.name.as_ref().is_none_or(|name| *name == operation.name)
                    };
                    let broken = self.broken.iter().find(may_be)?;
                    Some((broken.place, format!("`{}` cannot be read: {}", operation.name, broken.why)))
                }
            }
        })
    }

    /// The texts of its operations, by name.
    fn texts<'a>(&'a self, sources: &'a SourceMap) -> HashMap<&'a str, &'a str> {
        let operations = self.operations.iter();
        operations.map(|operation| (operation.name.as_str(), sources.text(operation.template.span))).collect()
    }
}

impl LastGood {
    /// Whether an operation served messages.
    fn serves(&self, operation: &LibraryOperation) -> bool {
        let left_out = &self.left_out_operations;
        operation.class.is_none()
            && !left_out.contains(&operation.name)
            && !left_out.contains(&operation.template.name.value)
    }

    /// Adds the differences between the libraries of `new` and these.
    pub(crate) fn changes_of_libraries(&self, new: &LastGood, changes: &mut Changes) {
        let named = |good: &LastGood, name: &str| {
            good.configuration.libraries.iter().find(|l| l.name == name).cloned()
        };
        for library in &new.configuration.libraries {
            let key = (ArtifactKind::Library, library.name.clone());
            match named(self, &library.name) {
                None => changes.added.push(key),
                Some(old) if old.texts(&self.sources) != library.texts(&new.sources) => {
                    changes.changed.push(key)
                }
                Some(_) => {}
            }
        }
        let gone = self.configuration.libraries.iter().filter(|l| named(new, &l.name).is_none());
        changes.removed.extend(gone.map(|l| (ArtifactKind::Library, l.name.clone())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{LoadOptions, Loaded, load};
    use std::path::PathBuf;

    /// Names of operations, with their steps.
    type Operations<'a> = &'a [(&'a str, &'a str)];

    /// A directory with unpacked libraries: directory, name and operations. An operation with an empty text is listed and has no file.
    fn directory(test: &str, libraries: &[(&str, &str, Operations<'_>)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("busbar-libraries-{}-{test}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        let write = |path: String, text: String| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("below the root")).expect("a directory");
            std::fs::write(path, text).expect("a file");
        };
        write(
            "sequences/s.xml".to_owned(),
            "<sequence xmlns='http://ws.apache.org/ns/synapse' name='s'/>".to_owned(),
        );
        for (place, name, operations) in libraries {
            let place = format!("synapse-libs/{place}");
            let root = format!(
                "<connector><component name='{name}' package='p'><dependency component='ops'/></component></connector>"
            );
            write(format!("{place}/connector.xml"), if name.is_empty() { "<".to_owned() } else { root });
            let listed: String = operations
                .iter()
                .map(|(name, _)| format!("<component name='{name}'><file>{name}.xml</file></component>"))
                .collect();
            let part = format!("<component name='ops'><subComponents>{listed}</subComponents></component>");
            write(format!("{place}/ops/component.xml"), part);
            for (name, steps) in operations.iter().filter(|(_, steps)| !steps.is_empty()) {
                let template = format!(
                    "<template xmlns='http://ws.apache.org/ns/synapse' name='{name}'><sequence>{steps}</sequence></template>"
                );
                write(format!("{place}/ops/{name}.xml"), template);
            }
        }
        root
    }

    fn loaded(test: &str, libraries: &[(&str, &str, Operations<'_>)], last: Option<&LastGood>) -> Loaded {
        let sources = last.map(|last| last.sources().clone()).unwrap_or_default();
        let running = last.map(LastGood::running).unwrap_or_default();
        let root = directory(test, libraries);
        let loaded = load(&root, &LoadOptions { sources, running, ..LoadOptions::default() });
        std::fs::remove_dir_all(&root).expect("it was there");
        loaded
    }

    /// The state after a reload: each operation with its text, what is held and why, and the counts.
    fn reload(
        test: &str,
        libraries: &[(&str, &str, Operations<'_>)],
        last: &LastGood,
    ) -> (LastGood, String, String) {
        let mut loaded = loaded(test, libraries, Some(last));
        let held = loaded.configuration.hold_libraries(last);
        let reports: Vec<String> = held
            .iter()
            .map(|faulty| {
                let file = faulty.span.place(&loaded.sources);
                let name = faulty.name.as_deref().unwrap_or_default();
                format!(
                    "{name} {} {}",
                    file.split("synapse-libs/").last().unwrap_or_default(),
                    faulty.message
                )
            })
            .collect();
        let good = LastGood::new(loaded.configuration, loaded.sources, &[]);
        let counts = last.changes(&good).to_string();
        (good, reports.join("; "), counts)
    }

    fn operations(good: &LastGood) -> String {
        let all = good.configuration.libraries.iter().flat_map(|library| &library.operations);
        let text = |operation: &LibraryOperation| {
            good.sources.text(operation.template.sequence.element.span()).len()
        };
        let all: Vec<String> =
            all.map(|operation| format!("{}:{}", operation.name, text(operation))).collect();
        all.join(" ")
    }

    #[test]
    fn a_library_stays_while_its_archive_is_worse() {
        let good: Operations<'_> = &[("a", "<drop/>"), ("b", "<drop/>")];
        let first = loaded("stays", &[("lib-1", "lib", good)], None);
        let first = LastGood::new(first.configuration, first.sources, &[]);
        let as_it_was = operations(&first);
        assert_eq!(as_it_was.split(' ').count(), 2);
        for (test, place, name, inside, why) in [
            ("root", "lib-1", "", good, "lib lib-1:1:1 connector.xml: "),
            (
                "gone",
                "lib-1",
                "lib",
                &[("a", ""), ("b", "<drop/>")][..],
                "lib lib-1/ops/a.xml:1:1 `lib.a` cannot be read: it is not in the archive",
            ),
            (
                "class",
                "lib-1",
                "lib",
                &[("a", "<class name='x.Y'/>"), ("b", "<log/>")],
                "lib lib-1/ops/a.xml:1:1 the template of `lib.a` runs the Java class `x.Y`",
            ),
            ("broken", "lib-2", "lib", &[("a", "<drop>"), ("b", "<log/>")], "lib lib-2/ops/a.xml:1:"),
        ] {
            let (next, held, counts) = reload("stays", &[(place, name, inside)], &first);
            assert!(held.starts_with(why) && held.matches(';').count() == 0, "{test}: {held}");
            assert_eq!(
                (operations(&next), counts.as_str()),
                (as_it_was.clone(), "0 changed, 0 new, 0 removed"),
                "{test}"
            );
            // The same in the next reload, until it is mended.
            let (again, held, _) = reload("stays", &[(place, name, inside)], &next);
            assert!(held.starts_with(why) && operations(&again) == as_it_was, "{test}: {held}");
            let mended: Operations<'_> = &[("a", "<log/>"), ("b", "<drop/>")];
            let (_, held, counts) = reload("stays", &[(place, "lib", mended)], &again);
            assert_eq!((held.as_str(), counts.as_str()), ("", "1 changed, 0 new, 0 removed"), "{test}");
        }
        // An operation that is removed, or new and faulty, does not block the new version; nor does one that was faulty before.
        for (test, inside, wanted) in [
            ("less", &[("b", "<drop/>")][..], "1 changed, 0 new, 0 removed"),
            ("more", &[("a", "<drop/>"), ("b", "<drop/>"), ("c", "")], "0 changed, 0 new, 0 removed"),
        ] {
            let (_, held, counts) = reload("stays", &[("lib-1", "lib", inside)], &first);
            assert_eq!((held.as_str(), counts.as_str()), ("", wanted), "{test}");
        }
        let left_out =
            [FaultyArtifact::new(ArtifactKind::Template, Some("lib.a".to_owned()), Span::BUILT_IN, "")];
        let before = LastGood::new(first.configuration.clone(), first.sources.clone(), &left_out);
        let (_, held, counts) = reload("stays", &[("lib-1", "lib", &[("a", ""), ("b", "<log/>")])], &before);
        assert_eq!((held.as_str(), counts.as_str()), ("", "1 changed, 0 new, 0 removed"));
        // Removed and new operations come into force.
        let (_, held, counts) = reload("stays", &[("other", "other", &[("b", "<drop/>")])], &first);
        assert_eq!((held.as_str(), counts.as_str()), ("", "0 changed, 1 new, 1 removed"));
    }

    #[test]
    fn an_operation_that_does_not_compile_any_more_holds_its_library() {
        let first = loaded("compiled", &[("lib", "lib", &[("a", "<drop/>"), ("b", "<drop/>")])], None);
        let first = LastGood::new(first.configuration, first.sources, &[]);
        for (name, inside, is_held) in [
            ("lib.a", &[("a", "<property/>"), ("b", "<log/>")][..], true),
            // The text is the same, so the reason is outside; and what never served cannot be held.
            ("lib.b", &[("a", "<property/>"), ("b", "<drop/>")], false),
            ("lib.c", &[("a", "<drop/>"), ("c", "<property/>")], false),
        ] {
            let loaded = loaded("compiled", &[("lib", "lib", inside)], Some(&first));
            let mut configuration = loaded.configuration;
            let failed =
                [FaultyArtifact::new(ArtifactKind::Template, Some(name.to_owned()), Span::BUILT_IN, "bad")];
            let held = configuration.hold_faulty_operations(&failed, &loaded.sources, &first);
            assert_eq!(!held.is_empty(), is_held, "{name}");
            let is_old = configuration.libraries[0].place == first.configuration.libraries[0].place;
            assert_eq!(is_old, is_held, "{name}");
            // References in a circle end.
            assert!(
                !is_held || configuration.hold_faulty_operations(&failed, &loaded.sources, &first).is_empty()
            );
        }
    }

    #[test]
    fn of_two_with_one_name_one_counts_as_a_whole() {
        let (a, b): (Operations<'_>, Operations<'_>) =
            (&[("op", "<drop/>")], &[("op", "<log/>"), ("only", "<drop/>")]);
        let first = loaded("twice", &[("a-1", "dup", a), ("b-2", "dup", b), ("c-3", "dup", a)], None);
        let libraries = &first.configuration.libraries;
        assert_eq!(libraries.len(), 1);
        assert!(libraries[0].path.ends_with("a-1"));
        // A library with the same content is not reported.
        let beside: Vec<String> =
            libraries[0].beside.iter().map(|place| place.place(&first.sources)).collect();
        assert!(beside.len() == 1 && beside[0].contains("b-2"), "{beside:?}");
        // The one in force stays, wherever the other one is.
        let last = loaded("twice", &[("b-2", "dup", b)], None);
        let last = LastGood::new(last.configuration, last.sources, &[]);
        let (next, held, counts) = reload("twice", &[("a-1", "dup", a), ("b-2", "dup", b)], &last);
        assert_eq!((operations(&next), held.as_str()), (operations(&last), ""));
        assert_eq!(counts, "0 changed, 0 new, 0 removed");
    }
}
