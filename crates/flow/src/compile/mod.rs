//! Compiles a configuration into a [`Plan`].
//!
//! Every mediator, expression and key is checked here; an artifact with an error is left out and recorded, the
//! others serve.

mod artifacts;
mod data;
pub mod definition;
mod endpoints;
mod events;
mod executors;
mod expressions;
mod handlers;
mod inbound;
mod inside;
mod lists;
mod mediator;
mod number;
pub mod page;
mod processors;
mod scheme;
mod services;
mod stores;
mod tasks;
mod unsupported;
mod values;
mod vfs;
mod wsdl;

pub use self::expressions::NumberForm;
pub use self::mediator::COMMON_ATTRIBUTES;
pub use self::scheme::other_transport;
pub use self::unsupported::Unsupported;
pub use self::vfs::report as report_file_address;

use self::definition::Registry;
use crate::runtime::endpoint::{Endpoint, InlineEndpoint};
use crate::runtime::mediator::ListId;
use crate::runtime::plan::{Entry, List, Plan};
use crate::runtime::reference::EndpointRef;
use crate::runtime::services::Services;
use crate::state::identity::Identity;
use crate::vault::Vault;
use ::stores::Store;
use config::{ArtifactKind, Attribute, Configuration, Element, FaultyArtifact, Key, Parameter};
use diagnostics::{Diagnostic, Diagnostics, Severity, SourceMap, Span};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What mediators and endpoints are compiled with.
pub struct Compiler<'a> {
    /// The configuration.
    pub configuration: &'a Configuration,
    /// The findings so far.
    pub diagnostics: &'a mut Diagnostics,
    /// Findings about artifacts other than the one that is compiled.
    aside: Diagnostics,
    /// What the process shares.
    pub services: &'a Services,
    registry: &'a Registry,
    lists: Vec<Option<List>>,
    sequences: HashMap<String, ListId>,
    /// The operations of libraries that are used.
    operations: HashMap<String, ListId>,
    endpoints: HashMap<String, Arc<dyn Endpoint>>,
    named: endpoints::Named,
    inline: Vec<InlineEndpoint>,
    /// The message stores that are there.
    stores: HashMap<String, Arc<dyn Store>>,
    entries: HashMap<String, Entry>,
    vault: Vault,
    inside: Inside,
    parts: Parts,
    /// The artifacts that are left out.
    faulty: Vec<FaultyArtifact>,
}

/// The artifact that is compiled, for the identities of its parts.
struct Inside {
    artifact: Identity,
    /// How many parts of each name there are so far.
    parts: HashMap<String, u32>,
}

impl Inside {
    fn of(artifact: Identity) -> Inside {
        Inside { artifact, parts: HashMap::new() }
    }
}

/// The parts of the mediator that is compiled, as its page lists them.
#[derive(Default)]
struct Parts {
    of: Option<Span>,
    inside: &'static [page::Inside],
}

static UNIQUE: AtomicU64 = AtomicU64::new(1);

/// Compiles `configuration`. Errors are added to `diagnostics`; what could be compiled is in the plan.
pub fn compile(
    configuration: &Configuration,
    sources: SourceMap,
    faulty: Vec<FaultyArtifact>,
    registry: &Registry,
    services: &Services,
    diagnostics: &mut Diagnostics,
) -> Plan {
    let compiler = Compiler {
        configuration,
        diagnostics,
        aside: Diagnostics::new(),
        services,
        registry,
        lists: Vec::new(),
        sequences: HashMap::new(),
        operations: HashMap::new(),
        endpoints: HashMap::new(),
        named: endpoints::Named::default(),
        inline: Vec::new(),
        stores: HashMap::new(),
        entries: HashMap::new(),
        vault: Vault::new(
            services.settings.vault_directory.clone(),
            services.settings.docker_secrets.clone(),
            services.settings.vault_key.clone(),
            &configuration.root,
        )
        .with_sealed(services.settings.vault_sealed.clone())
        .with_remote(services.settings.vault_remote.clone(), &services.kept),
        inside: Inside::of(Identity::of(ArtifactKind::Definitions, "")),
        parts: Parts::default(),
        faulty,
    };
    compiler.plan(sources)
}

impl Compiler<'_> {
    /// Compiles parts of an artifact.
    fn inside<T>(&mut self, artifact: Identity, compile: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.inside, Inside::of(artifact));
        let made = compile(self);
        self.inside = outer;
        made
    }

    /// The identity of the artifact that is compiled.
    pub fn artifact_identity(&self) -> &Identity {
        &self.inside.artifact
    }

    /// The identity of a part of the artifact that is compiled, by its name or description; of several with the same one
    /// their order tells them apart.
    pub fn identity(&mut self, part: &str) -> Identity {
        let count = self.inside.parts.entry(part.to_owned()).or_default();
        *count += 1;
        match *count {
            1 => self.inside.artifact.part(part),
            n => self.inside.artifact.part(&format!("{part}#{n}")),
        }
    }

    /// A number for what has to be told apart in the whole process.
    pub fn unique(&self) -> u64 {
        UNIQUE.fetch_add(1, Ordering::Relaxed)
    }

    /// Records an error at a place.
    pub fn error(
        &mut self,
        rule: &'static str,
        message: impl Into<String>,
        span: Span,
        label: impl Into<String>,
    ) {
        self.diagnostics.push(Diagnostic::error(rule, message).at(span, label));
    }

    /// Records a warning at a place.
    pub fn warning(
        &mut self,
        rule: &'static str,
        message: impl Into<String>,
        span: Span,
        label: impl Into<String>,
    ) {
        self.diagnostics.push(Diagnostic::warning(rule, message).at(span, label));
    }

    /// Records that the value of an attribute is none of the words that it may have; `what` it should be: `an action`.
    pub fn none_of(&mut self, attribute: &Attribute, what: &str, words: &[&str]) {
        let value = attribute.value.trim();
        let found = Diagnostic::error("bad-value", format!("`{value}` is not {what}"))
            .at(attribute.value_span, format!("expected {}", values::quoted(words)))
            .did_you_mean(value, words.iter().copied());
        self.diagnostics.push(found);
    }

    /// Records what is to be said of the name of a parameter of `owner`: one of `not_needed` has no effect, for the reason beside it; one that is
    /// in neither list does not exist.
    pub fn check_parameter(
        &mut self,
        owner: &str,
        parameter: &Parameter,
        names: &[&'static str],
        not_needed: &[(&str, &str)],
    ) {
        let name = parameter.name.as_str();
        if let Some((_, why)) = not_needed.iter().find(|(entry, _)| *entry == name) {
            let note = Diagnostic::new(
                "not-needed",
                Severity::Note,
                format!("the parameter `{name}` has no effect"),
            );
            self.diagnostics.push(note.at(parameter.span, format!("not needed here, because {why}")));
        } else if !names.contains(&name) {
            let message = format!("{owner} has no parameter `{name}`");
            let warning =
                Diagnostic::warning("unknown-parameter", message).at(parameter.span, "this has no effect");
            self.diagnostics.push(warning.did_you_mean(name, names.iter().copied()));
        }
    }

    fn entry_element(&mut self, key: &Key) -> Option<Element> {
        if let Some(entry) = self.configuration.local_entries.get(&key.value)
            && let Some(element) = entry.element(key.span.file)
        {
            return Some(element);
        }
        let bytes = self.configuration.registry.read(&key.value).ok().flatten()?.bytes;
        config::parse(key.span.file, &String::from_utf8_lossy(&bytes)).ok()
    }

    /// The endpoint that an `<endpoint>` element is or names; `None` after a recorded error.
    pub fn endpoint(&mut self, element: &Element) -> Option<Arc<EndpointRef>> {
        let endpoint = config::Endpoint::parse_with(element, &self.configuration.injector, self.diagnostics)?;
        self.endpoint_of(&endpoint)
    }

    /// The endpoint of its configuration.
    pub fn endpoint_of(&mut self, endpoint: &config::Endpoint) -> Option<Arc<EndpointRef>> {
        Some(Arc::new(match &endpoint.kind {
            config::EndpointKind::Reference(key) => {
                match config::Value::parse(&key.value, key.span, endpoint.element.scope()) {
                    config::Value::Expression(expression) => EndpointRef::Dynamic(Box::new(
                        self.expression_text(&expression.source, expression.span, &expression.scope)?,
                    )),
                    _ => return Some(self.endpoint_key(key)),
                }
            }
            config::EndpointKind::Resolving(expression) => EndpointRef::Dynamic(Box::new(
                self.expression_text(&expression.source, expression.span, &expression.scope)?,
            )),
            _ => {
                let made = (self.registry.endpoints)(endpoint, self)?;
                let (artifact, span) = (self.inside.artifact.clone(), endpoint.span);
                self.inline.push(InlineEndpoint { artifact, span, endpoint: Arc::clone(&made) });
                EndpointRef::Known(made)
            }
        }))
    }

    /// The endpoint of a key.
    pub fn endpoint_key(&mut self, key: &Key) -> Arc<EndpointRef> {
        let key = &trimmed(key);
        if let Some(endpoint) = self.named_endpoint(key) {
            return Arc::new(EndpointRef::Known(endpoint));
        }
        // One that is there and faulty, or leads round in a circle, is reported as such.
        if !self.named.tried.contains(&key.value) && !self.is_not_fetched(&key.value) {
            let names =
                self.configuration.endpoints.iter().filter_map(|e| Some(e.name.as_ref()?.value.as_str()));
            self.diagnostics.push(
                Diagnostic::warning("unknown-endpoint", format!("there is no endpoint `{}`", key.value))
                    .at(key.span, "messages that come here fault with 305100")
                    .did_you_mean(&key.value, names),
            );
        }
        Arc::new(EndpointRef::Missing(Arc::from(key.value.as_str())))
    }

    /// Warns of the path of a `local:` address (`/services/NAME…`) that no service of this bus has.
    pub fn check_service(&mut self, path: &str, span: Span) {
        let path = path.split('?').next().unwrap_or(path);
        let Some(written) = path.strip_prefix("/services/") else { return };
        let configuration = self.configuration;
        let services: Vec<&str> =
            configuration.proxies.names().chain(configuration.data_services.names()).collect();
        // A name may have slashes, and a port or a path behind it. One that is left out is reported as such.
        let is_of = |name: &str| {
            written.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '.']))
        };
        let left_out = self.faulty.iter().any(|artifact| artifact.name.as_deref().is_some_and(is_of));
        if left_out || config::is_unresolved(written) || services.iter().copied().any(is_of) {
            return;
        }
        let name = written.split('/').next().unwrap_or(written);
        self.diagnostics.push(
            Diagnostic::warning("unknown-reference", format!("there is no proxy service `{name}`"))
                .at(span, "messages that come here fault with 101503")
                .did_you_mean(name, services),
        );
    }

    /// What there is to compile with.
    pub fn registry(&self) -> &Registry {
        self.registry
    }

    /// The bytes behind a key, if it is known when the configuration loads.
    pub fn entry(&self, key: &str) -> Option<Entry> {
        let key = key.trim();
        match self.entries.get(key) {
            Some(entry) => Some(entry.clone()),
            None => self.configuration.registry.read(key).ok().flatten().map(|found| Entry::of(found.bytes)),
        }
    }

    /// Whether a key is that of an entry on another server, which is not fetched when a configuration is only looked at.
    pub fn is_not_fetched(&self, key: &str) -> bool {
        let entry = self.configuration.local_entries.get(key.trim());
        entry.map_or_else(
            || self.configuration.registry.is_not_fetched(key.trim()),
            |entry| matches!(entry.value, config::Entry::NotFetched),
        )
    }

    /// The file that a local entry was loaded from, if it was.
    pub fn entry_origin(&self, key: &str) -> Option<std::path::PathBuf> {
        self.configuration.local_entries.get(key).and_then(|entry| entry.origin.clone())
    }
}

/// A key without the white space around it, which no name has.
fn trimmed(key: &Key) -> Key {
    Key { value: key.value.trim().to_owned(), span: key.span }
}

/// A truth as the engines read it: `true` in any case; anything else is false.
pub fn truth(element: &Element, attribute: &str, default: bool) -> bool {
    element.attr(attribute).map_or(default, |value| value.trim().eq_ignore_ascii_case("true"))
}
