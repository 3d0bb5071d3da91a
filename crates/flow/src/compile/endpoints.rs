//! Named endpoints, each compiled when a key first leads to it: in which order and where they are defined never matters.

use super::Compiler;
use crate::runtime::endpoint::{Endpoint, InlineEndpoint};
use crate::runtime::reference::EndpointRef;
use crate::state::identity::Identity;
use config::{ArtifactKind, Element, FaultyArtifact, Key};
use diagnostics::{Diagnostic, Diagnostics, FileId, Severity};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Most keys that lead from one endpoint to the next.
const DEEPEST: usize = 100;

/// How far the named endpoints are.
#[derive(Default)]
pub(super) struct Named {
    /// Those that were found, and compiled or not.
    pub(super) tried: HashSet<String>,
    /// Those that are being compiled, each for the one before it.
    unfinished: Vec<String>,
    /// The circles that endpoints are part of, by name.
    circles: HashMap<String, String>,
    /// What was found wrong with those that were compiled for another one: it does not make that one faulty.
    found: Diagnostics,
    /// The templates that are being filled in, from the outermost inwards.
    templates: Vec<String>,
}

impl Compiler<'_> {
    /// Compiles the endpoints of the configuration, and those that are local entries.
    pub(super) fn compile_endpoints(&mut self) {
        let configuration = self.configuration;
        for endpoint in configuration.endpoints.iter() {
            if let Some(name) = &endpoint.name {
                self.named_endpoint(name);
            }
        }
        for entry in configuration.local_entries.iter() {
            if entry.element(FileId::BUILT_IN).is_some_and(|element| element.is("endpoint")) {
                self.named_endpoint(&entry.key);
            }
        }
    }

    /// What was found wrong with endpoints that were compiled while another artifact was.
    pub(super) fn report_endpoints(&mut self) {
        self.diagnostics.extend(std::mem::take(&mut self.named.found));
    }

    /// The endpoint of a name: one of the configuration, else a local entry, else a resource of the registry. `None`:
    /// there is none, or it is faulty (recorded).
    pub(super) fn named_endpoint(&mut self, key: &Key) -> Option<Arc<dyn Endpoint>> {
        let name = key.value.as_str();
        if let Some(endpoint) = self.endpoints.get(name) {
            return Some(Arc::clone(endpoint));
        }
        if self.named.unfinished.iter().any(|unfinished| unfinished == name) {
            self.circle(key);
            return None;
        }
        if self.named.tried.contains(name) {
            self.report_circle(key);
            return None;
        }
        if self.named.unfinished.len() >= DEEPEST {
            let message = format!("more than {DEEPEST} keys lead from one endpoint to the next");
            self.error("circular-endpoint", message, key.span, "here");
            return None;
        }
        let outer = std::mem::take(self.diagnostics);
        let made = self.find_and_compile(key);
        let found = std::mem::replace(self.diagnostics, outer);
        match self.named.unfinished.is_empty() && self.inside.artifact.artifact.is_empty() {
            true => self.diagnostics.extend(found),
            false => self.named.found.extend(found),
        }
        if made.is_none() {
            self.report_circle(key);
        }
        made
    }

    /// The endpoint that a local entry stands for without being one: the connection of a connector. It is compiled once for a plan, under
    /// the name of the entry, and its state belongs to the entry.
    pub fn endpoint_of_entry(&mut self, key: &Key, endpoint: &Element) -> Arc<EndpointRef> {
        let name = key.value.as_str();
        if let Some(endpoint) = self.endpoints.get(name) {
            return Arc::new(EndpointRef::Known(Arc::clone(endpoint)));
        }
        let missing = || Arc::new(EndpointRef::Missing(Arc::from(name)));
        if !self.named.tried.insert(name.to_owned()) {
            return missing();
        }
        let place = self.configuration.local_entries.get(name).map_or(key.span, |entry| entry.span);
        let outer = std::mem::take(self.diagnostics);
        let made = config::Endpoint::parse_with(endpoint, &self.configuration.injector, self.diagnostics)
            .and_then(|endpoint| {
                self.artifact(ArtifactKind::LocalEntry, name, place, |compiler| {
                    (compiler.registry.endpoints)(&endpoint, compiler)
                })
            });
        let findings = std::mem::replace(self.diagnostics, outer);
        // The endpoint was never written: what is wrong with it is wrong with the entry.
        for finding in findings.iter() {
            let message = format!("the connection `{name}`: {}", finding.message);
            let label = finding.labels.first().map(|(_, text)| text.clone()).unwrap_or_default();
            let finding = match finding.severity {
                Severity::Error => Diagnostic::error(finding.rule, message),
                _ => Diagnostic::warning(finding.rule, message),
            };
            self.named.found.push(finding.at(place, label));
        }
        let Some(made) = made else { return missing() };
        self.endpoints.insert(name.to_owned(), Arc::clone(&made));
        let artifact = Identity::of(ArtifactKind::LocalEntry, name);
        self.inline.push(InlineEndpoint { artifact, span: place, endpoint: Arc::clone(&made) });
        Arc::new(EndpointRef::Known(made))
    }

    fn find_and_compile(&mut self, key: &Key) -> Option<Arc<dyn Endpoint>> {
        let name = key.value.as_str();
        let configuration = self.configuration;
        let parsed;
        let endpoint = match configuration.endpoints.get(name) {
            Some(endpoint) => endpoint,
            None => {
                let element = self.entry_element(key).filter(|element| element.is("endpoint"))?;
                self.named.tried.insert(name.to_owned());
                match config::Endpoint::parse_with(&element, &configuration.injector, self.diagnostics) {
                    Some(endpoint) => parsed = endpoint,
                    None => {
                        let error = self.diagnostics.first_error_since(0);
                        let message = error.map(|error| error.message.clone()).unwrap_or_default();
                        let (kind, name) = (ArtifactKind::Endpoint, Some(name.to_owned()));
                        self.faulty.push(FaultyArtifact::new(kind, name, key.span, message));
                        return None;
                    }
                }
                &parsed
            }
        };
        self.named.tried.insert(name.to_owned());
        self.named.unfinished.push(name.to_owned());
        let made = self.artifact(ArtifactKind::Endpoint, name, endpoint.span, |compiler| {
            (compiler.registry.endpoints)(endpoint, compiler)
        });
        self.named.unfinished.pop();
        if let Some(made) = &made {
            self.endpoints.insert(name.to_owned(), Arc::clone(made));
        }
        made
    }

    /// Compiles what an instance of an endpoint template stands for. A template that stands for itself, through others too, is an error.
    pub fn of_template<T>(
        &mut self,
        template: &Key,
        compile: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        let unfinished = &self.named.templates;
        if let Some(first) = unfinished.iter().position(|name| *name == template.value) {
            let way = unfinished[first..].iter().chain([&template.value]).cloned().collect::<Vec<_>>();
            let message =
                format!("the endpoint template `{}` refers to itself: {}", template.value, way.join(" -> "));
            let error = Diagnostic::error("circular-endpoint", message);
            self.diagnostics.push(error.at(template.span, "leads round in a circle"));
            return None;
        }
        if unfinished.len() >= DEEPEST {
            let message = format!("more than {DEEPEST} endpoint templates stand for one another");
            self.error("circular-endpoint", message, template.span, "here");
            return None;
        }
        self.named.templates.push(template.value.clone());
        let mark = self.diagnostics.len();
        let made = compile(self);
        self.named.templates.pop();
        // What is found in a template may be the fault of what it is filled in with.
        if self.named.templates.is_empty() {
            self.diagnostics.also_at_since(mark, template.span, "the instance");
        }
        made
    }

    /// A key leads back to an endpoint that is being compiled.
    fn circle(&mut self, key: &Key) {
        let unfinished = &self.named.unfinished;
        let first = unfinished.iter().position(|name| *name == key.value).unwrap_or_default();
        let members = unfinished[first..].to_vec();
        let way = members.iter().chain([&key.value]).cloned().collect::<Vec<_>>().join(" -> ");
        for member in members {
            self.named.circles.insert(member, way.clone());
        }
        self.report_circle(key);
    }

    /// Says that a key is part of the circle that the endpoint which is being compiled is part of too.
    fn report_circle(&mut self, key: &Key) {
        let of = |name: &String| self.named.circles.get(name);
        let way = self.named.unfinished.last().and_then(of);
        if let Some(way) = way.filter(|way| of(&key.value) == Some(*way)) {
            let message = format!("the endpoint `{}` refers to itself: {way}", key.value);
            self.diagnostics.push(
                Diagnostic::error("circular-endpoint", message).at(key.span, "leads round in a circle"),
            );
        }
    }
}
