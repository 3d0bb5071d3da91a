//! Configurations of earlier generations, which can be inspected and restored.
//!
//! A model takes some twenty times the memory of its text. So artifacts with mediators and endpoints are kept as texts only, which
//! generations share, and are parsed again on request.

use crate::configuration::{ArtifactKind, Configuration, Named};
use crate::load::once_more;
use crate::mixture::{LastGood, Written};
use diagnostics::{FileId, SourceMap, Span};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// See the module.
#[derive(Clone, Debug)]
pub struct PastConfiguration {
    /// The configuration without the artifacts that are parsed again.
    rest: LastGood,
    written: Vec<Written>,
    /// API definitions that are packed in archives, by API name.
    packed: HashMap<String, Arc<[u8]>>,
}

/// The text of an artifact or a document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArtifactText<'a> {
    /// The kind; a document has that of the registry.
    pub kind: ArtifactKind,
    /// The name or key.
    pub name: String,
    /// The place; empty for a document.
    pub place: String,
    /// The text as written; bytes that are not UTF-8 are replaced.
    pub text: Cow<'a, str>,
}

impl PastConfiguration {
    /// Keeps a configuration; texts that it shares with `before` are not copied.
    pub fn of(good: &LastGood, before: Option<&PastConfiguration>) -> PastConfiguration {
        let complete = &good.configuration;
        let configuration = Configuration {
            root: complete.root.clone(),
            proxies: Named::default(),
            apis: Named::default(),
            sequences: Named::default(),
            endpoints: Named::default(),
            sequence_templates: Named::default(),
            endpoint_templates: Named::default(),
            data_sources: complete.data_sources.clone(),
            data_services: complete.data_services.clone(),
            local_entries: complete.local_entries.clone(),
            tasks: complete.tasks.clone(),
            message_stores: complete.message_stores.clone(),
            message_processors: complete.message_processors.clone(),
            inbound_endpoints: complete.inbound_endpoints.clone(),
            priority_executors: complete.priority_executors.clone(),
            event_sources: complete.event_sources.clone(),
            imports: complete.imports.clone(),
            libraries: complete.libraries.clone(),
            broken_libraries: complete.broken_libraries.clone(),
            registry: complete.registry.clone(),
            task_manager: complete.task_manager.clone(),
            fetch: complete.fetch.clone(),
            injector: complete.injector.clone(),
            archives: complete.archives.clone(),
            settings: complete.settings.clone(),
            mounts: complete.mounts.clone(),
        };
        let (mut sources, mut documents) = (good.sources.clone(), good.documents.clone());
        if let Some(before) = before {
            sources.share(&before.rest.sources);
            for (key, document) in &mut documents {
                let same = before.rest.documents.get(key).filter(|before| *before == document);
                same.into_iter().for_each(|before| *document = Arc::clone(before));
            }
        }
        let packed = complete.apis.names().zip(complete.apis.iter());
        let packed = packed.filter_map(|(name, api)| Some((name.to_owned(), api.packed_definition.clone()?)));
        let packed = packed.collect();
        PastConfiguration {
            rest: LastGood {
                configuration,
                sources,
                documents,
                stands_for: Default::default(),
                left_out_operations: good.left_out_operations.clone(),
            },
            written: complete.written(),
            packed,
        }
    }

    /// The configuration as it was; `None`: its texts give another one now, for example because an injected value has changed.
    pub fn whole(&self) -> Option<LastGood> {
        let mut whole = self.rest.clone();
        let mut read: HashMap<FileId, Configuration> = HashMap::new();
        let wanted: HashSet<Span> = self.written.iter().map(|w| w.span).collect();
        for Written { kind, name, span } in &self.written {
            if *span == Span::BUILT_IN {
                continue;
            }
            let again = |file| once_more(file, &wanted, &whole.sources, &self.rest.configuration);
            let from = read.entry(span.file).or_insert_with(|| again(span.file));
            macro_rules! take {
                ($($field:ident)*) => {{
                    $(if let Some(found) = from.$field.get(name).filter(|found| found.span == *span) {
                        whole.configuration.$field.insert(name.clone(), found.clone());
                        continue;
                    })*
                }};
            }
            match kind {
                ArtifactKind::Proxy => take!(proxies),
                ArtifactKind::Api => take!(apis),
                ArtifactKind::Sequence => take!(sequences),
                ArtifactKind::Endpoint => take!(endpoints),
                ArtifactKind::Template => take!(sequence_templates endpoint_templates),
                // It was kept.
                _ => continue,
            }
            return None;
        }
        let apis = self.packed.iter();
        for (name, definition) in apis {
            let mut all = whole.configuration.apis.iter_mut();
            let api = all.find(|api| api.registered_name() == *name);
            api.into_iter().for_each(|api| api.packed_definition = Some(Arc::clone(definition)));
        }
        whole.configuration.finish();
        Some(whole)
    }

    /// The texts of all artifacts and of the registry's documents that were read, with the places of those that have one.
    pub fn texts(&self) -> Vec<ArtifactText<'_>> {
        let LastGood { sources, documents, .. } = &self.rest;
        let written = self.written.iter().filter(|w| w.span != Span::BUILT_IN);
        let artifacts = written.map(|artifact| ArtifactText {
            kind: artifact.kind,
            name: artifact.name.clone(),
            place: artifact.span.place(sources),
            text: Cow::Borrowed(sources.text(artifact.span)),
        });
        let documents = documents.iter().map(|(key, bytes)| ArtifactText {
            kind: ArtifactKind::Registry,
            name: key.clone(),
            place: String::new(),
            text: String::from_utf8_lossy(bytes),
        });
        let libraries = self.rest.configuration.libraries.iter().flat_map(|library| &library.operations);
        let operations = libraries.map(|operation| ArtifactText {
            kind: ArtifactKind::Library,
            name: operation.name.clone(),
            place: operation.template.span.place(sources),
            text: Cow::Borrowed(sources.text(operation.template.span)),
        });
        artifacts.chain(operations).chain(documents).collect()
    }

    /// The source texts.
    pub fn sources(&self) -> &SourceMap {
        &self.rest.sources
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{LoadOptions, load_text};
    use std::fmt::Debug;

    #[test]
    fn what_is_read_once_more_is_what_it_was() {
        let text = "<definitions xmlns='http://ws.apache.org/ns/synapse' xmlns:o='urn:o'>
            <sequence name='main'><filter xpath='//o:a'><drop/></filter></sequence>
            <proxy name='P' transports='http'><target inSequence='s' endpoint='E'/><parameter name='a'>b</parameter></proxy>
            <sequence name='s' onError='fault'><log level='full'><property name='k' value='v'/></log></sequence>
            <sequence name='s'><drop/></sequence>
            <endpoint name='E'><loadbalance><endpoint name='M'><http uri-template='http://h/{uri.var.x}'/></endpoint></loadbalance></endpoint>
            <template name='T'><parameter name='p'/><sequence><respond/></sequence></template>
            <template name='U'><axis2ns1:parameter xmlns:axis2ns1='http://ws.apache.org/ns/synapse' name='uri'/>
              <endpoint name='$name'><address uri='$uri'/></endpoint></template>
            <api name='R' context='/r' version='1' version-type='url'><resource uri-template='/{id}' methods='GET'><inSequence><respond/></inSequence></resource></api>
            <api name='R' context='/r'><resource><inSequence><respond/></inSequence></resource></api>
            <localEntry key='k'><x xmlns=''/></localEntry><messageStore name='st'/>
          </definitions>";
        let loaded = load_text("c.xml", text, std::path::Path::new("."), &LoadOptions::default());
        let good = LastGood::new(loaded.configuration, loaded.sources, &[]);
        let kept = PastConfiguration::of(&good, None);
        let whole = kept.whole().expect("it can be read");
        fn same<T: Debug>(first: &Named<T>, second: &Named<T>) {
            let all =
                |named: &Named<T>| format!("{:#?}", named.names().zip(named.iter()).collect::<Vec<_>>());
            assert_eq!(all(first), all(second));
        }
        let (first, second) = (&good.configuration, &whole.configuration);
        same(&first.proxies, &second.proxies);
        same(&first.sequence_templates, &second.sequence_templates);
        same(&first.endpoint_templates, &second.endpoint_templates);
        same(&first.apis, &second.apis);
        same(&first.endpoints, &second.endpoints);
        assert_eq!((first.apis.len(), first.endpoints.len(), first.proxies.len()), (2, 1, 1));
        // Built-in sequences come last.
        let read = |configuration: &Configuration| {
            let all = configuration
                .sequences
                .names()
                .zip(configuration.sequences.iter())
                .filter(|(_, sequence)| !sequence.built_in);
            format!("{:#?}", all.collect::<Vec<_>>())
        };
        assert_eq!(read(first), read(second));
        assert!(second.sequences.get("fault").is_some_and(|sequence| sequence.built_in));
        assert_eq!(first.written().len(), second.written().len());
        // Texts that do not change are shared.
        let next = load_text("c.xml", text, std::path::Path::new("."), &LoadOptions::default());
        let next = PastConfiguration::of(&LastGood::new(next.configuration, next.sources, &[]), Some(&kept));
        let text =
            |kept: &PastConfiguration| kept.sources().iter().next().map(|(_, file)| Arc::clone(file.text()));
        assert!(Arc::ptr_eq(&text(&kept).expect("a text"), &text(&next).expect("a text")));
    }
}
