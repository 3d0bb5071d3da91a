//! The plan: a configuration compiled, validated and immutable. A reload builds a new one beside it.

use crate::runtime::artifacts::{Api, Cors, Handler, Proxy};
use crate::runtime::context::Owner;
use crate::runtime::data::DataService;
use crate::runtime::endpoint::{Endpoint, InlineEndpoint};
use crate::runtime::events::EventSource;
use crate::runtime::executor::Executor;
use crate::runtime::inbound::InboundEndpoint;
use crate::runtime::load::Load;
use crate::runtime::mediator::{ListId, Mediator, Need};
use crate::runtime::observers::ALL;
use crate::runtime::processor::Processor;
use crate::runtime::source::Source;
use crate::runtime::stage::Stages;
use crate::runtime::task::Task;
use diagnostics::{FileId, SourceMap, Span};
use message::{Value, XmlValue};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, OnceLock};

/// See the module.
pub struct Plan {
    pub(crate) lists: Vec<List>,
    /// See [`Plan::passes_on`]; worked out for those that are handlers, when the first message comes by.
    pub(crate) passing_on: Box<[OnceLock<bool>]>,
    pub(crate) sequences: HashMap<String, ListId>,
    pub(crate) templates: HashMap<String, Arc<Template>>,
    pub(crate) endpoints: HashMap<String, Arc<dyn Endpoint>>,
    /// Those that no key leads to.
    pub(crate) inline: Vec<InlineEndpoint>,
    /// Sends to the message's `To`.
    pub(crate) implicit: Arc<dyn Endpoint>,
    pub(crate) entries: HashMap<String, Entry>,
    /// The XML of local entries, so that expressions can number their documents.
    pub(crate) entry_documents: Vec<Arc<XmlValue>>,
    pub(crate) stores: HashMap<String, Arc<dyn stores::Store>>,
    pub(crate) processors: Vec<Arc<Processor>>,
    pub(crate) inbound_endpoints: Vec<Arc<InboundEndpoint>>,
    pub(crate) tasks: Vec<Arc<Task>>,
    pub(crate) executors: HashMap<String, Arc<Executor>>,
    /// Each is a service too, among the proxies.
    pub(crate) event_sources: HashMap<String, Arc<dyn EventSource>>,
    pub(crate) data_services: HashMap<String, Arc<dyn DataService>>,
    pub(crate) proxies: Vec<Proxy>,
    /// To the number of a proxy; those that are left out are counted behind the others.
    pub(crate) proxy_names: HashMap<String, usize, BuildHasherDefault<NameHasher>>,
    /// The length of the longest of these names.
    pub(crate) longest_proxy_name: usize,
    pub(crate) apis: Vec<Api>,
    /// The rules of `apis`, in the same order, and those of the APIs that are left out.
    pub(crate) api_rules: Vec<crate::resource::ApiRule>,
    pub(crate) left_out: LeftOut,
    pub(crate) api_order: crate::resource::ApiOrder,
    pub(crate) main: ListId,
    /// Those of flows that belong to no proxy service and no API.
    pub(crate) stages: Stages,
    pub(crate) fault: ListId,
    /// The configuration has no `fault` sequence of its own.
    pub(crate) fault_is_built_in: bool,
    pub(crate) pre_mediate: Option<ListId>,
    pub(crate) registry: config::Registry,
    /// Resources of the registry that were read, parsed.
    pub(crate) resources: Mutex<HashMap<String, Entry>>,
    /// Values from outside: `file.properties`, the environment.
    pub(crate) injector: config::Injector,
    pub(crate) vault: crate::vault::Vault,
    /// Some proxy service or API has `trace="enable"`.
    pub(crate) traces: bool,
    /// The source texts, for places in log lines.
    pub sources: Arc<SourceMap>,
    /// Numbers the plans of a process, from 1.
    pub generation: u64,
    /// Artifacts that cannot be used as they are written: the last good version is in force, or they are left out.
    pub faulty: Vec<config::FaultyArtifact>,
    /// What the configuration has, in the order of its kinds; those that are faulty too.
    pub written: Vec<config::Written>,
}

/// The faulty artifacts that requests may be for, by their number in [`Plan::faulty`].
#[derive(Default)]
pub(crate) struct LeftOut {
    pub proxies: Vec<usize>,
    /// With what says who may read their answers.
    pub apis: Vec<(usize, Vec<Arc<Cors>>)>,
    /// The main sequence, where the configuration has one.
    pub main: Option<usize>,
}

/// A quick hash (FNV-1a) for names of the configuration that are looked up per message: clients cannot add one,
/// so none has to be kept from colliding.
pub(crate) struct NameHasher(u64);

impl Default for NameHasher {
    fn default() -> NameHasher {
        NameHasher(0xCBF2_9CE4_8422_2325)
    }
}

impl Hasher for NameHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }
}

/// A list of mediators.
pub struct List {
    /// For people: `sequence main`, `proxy Stock in sequence`, `then of filter`.
    pub label: String,
    /// The steps.
    pub steps: Vec<Planned>,
    /// The handler that is in force while the list runs.
    pub on_error: Option<ListId>,
    /// `trace="enable"`: a message that enters it is traced from there.
    pub trace: bool,
    /// Where it is written.
    pub span: Span,
}

impl List {
    /// Busbar supplies it itself.
    pub fn is_built_in(&self) -> bool {
        self.span.file == FileId::BUILT_IN
    }
}

/// A mediator with its place.
pub struct Planned {
    /// [`Mediator::goes_on_alone`].
    pub alone: bool,
    /// The mediator.
    pub mediator: Box<dyn Mediator>,
    /// What it reads.
    pub need: Need,
    /// Its element name.
    pub name: &'static str,
    /// Where it is written.
    pub span: Span,
    /// Where it runs.
    pub(crate) load: Load,
}

impl Planned {
    /// A compiled mediator, by its element name and place.
    pub(crate) fn new(mediator: Box<dyn Mediator>, name: &'static str, span: Span) -> Planned {
        let (alone, load) = (mediator.goes_on_alone(), Load::of(mediator.as_ref()));
        Planned { alone, need: mediator.need(), load, mediator, name, span }
    }
}

/// A sequence template.
pub struct Template {
    /// Its name.
    pub name: String,
    /// The body.
    pub list: ListId,
    /// Its parameters.
    pub parameters: Vec<TemplateParameter>,
}

/// A parameter of a template.
pub struct TemplateParameter {
    /// Its name.
    pub name: Arc<str>,
    /// `isMandatory`.
    pub mandatory: bool,
    /// `defaultValue`.
    pub default: Option<Arc<str>>,
}

/// A local entry as flows see it.
#[derive(Clone)]
pub struct Entry {
    /// The bytes.
    pub bytes: Arc<[u8]>,
    /// As a property value.
    pub value: Value,
}

impl Entry {
    /// An entry of bytes: XML if it parses, else text.
    pub fn of(bytes: Arc<[u8]>) -> Entry {
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        let value = match xml::Document::parse(bytes.to_vec(), &xml::ParseOptions::configuration()) {
            Ok(document) if text.starts_with('<') => match document.document_element() {
                Some(root) => {
                    Value::Xml(Arc::new(XmlValue { nodes: vec![root], document: Arc::new(document) }))
                }
                None => Value::from(text),
            },
            _ => Value::from(text),
        };
        Entry { bytes, value }
    }

    /// Its XML.
    pub(crate) fn xml(&self) -> Option<&Arc<XmlValue>> {
        match &self.value {
            Value::Xml(xml) => Some(xml),
            _ => None,
        }
    }

    /// An entry that was written as text: it stays one, whatever it looks like.
    pub(crate) fn of_text(text: &str) -> Entry {
        Entry { bytes: text.as_bytes().into(), value: Value::from(text) }
    }
}

/// Most resources of the registry that are kept parsed.
const MAX_RESOURCES: usize = 1_000;

impl Plan {
    /// The names by which services can be observed: proxy services and APIs.
    pub fn services(&self) -> Vec<String> {
        let proxies = self.proxies.iter().map(|proxy| proxy.name.clone());
        proxies.chain(self.apis.iter().map(|api| api.qualified_name().into_owned())).collect()
    }

    /// Whether there is a proxy service or an API of this name, for an API with its version or without; `main` and [`ALL`] are always there.
    pub fn has_service(&self, name: &str) -> bool {
        let is_deployed = || {
            self.proxies.iter().any(|proxy| proxy.name == name)
                || self.apis.iter().any(|api| api.name == name || api.qualified_name() == name)
        };
        name == "main" || name == ALL || is_deployed()
    }

    /// The steps of all lists.
    pub fn steps(&self) -> impl Iterator<Item = &Planned> {
        self.lists.iter().flat_map(|list| &list.steps)
    }

    /// A list by number.
    pub fn list(&self, id: ListId) -> &List {
        &self.lists[id.0 as usize]
    }

    /// Whether a message that comes into a list goes on from there ([`Mediator::passes_on`]).
    pub fn passes_on(&self, id: ListId) -> bool {
        let Some(known) = self.passing_on.get(id.0 as usize) else { return false };
        *known.get_or_init(|| self.finds_passing_on(id, &mut HashSet::new(), false))
    }

    /// `is_read`: steps ahead of the list have read the message, and what they took of it may go on with another one.
    fn finds_passing_on(&self, id: ListId, seen: &mut HashSet<(ListId, bool)>, mut is_read: bool) -> bool {
        if !seen.insert((id, is_read)) {
            return false;
        }
        for step in &self.list(id).steps {
            if step.mediator.passes_on() {
                return true;
            }
            // Behind it, the message is another one.
            if step.need == Need::Replaces && !is_read {
                return false;
            }
            is_read |= matches!(step.need, Need::Prefix | Need::Whole);
            let template = step.mediator.template().and_then(|name| self.templates.get(name));
            let inside = step.mediator.lists().into_iter().map(|(_, list)| list);
            let mut inside = inside.chain(template.map(|template| template.list));
            if inside.any(|list| self.finds_passing_on(list, seen, is_read)) {
                return true;
            }
        }
        false
    }

    /// A named sequence.
    pub fn sequence(&self, name: &str) -> Option<ListId> {
        self.sequences.get(name).copied()
    }

    /// A sequence template.
    pub fn template(&self, name: &str) -> Option<Arc<Template>> {
        self.templates.get(name).cloned()
    }

    /// All sequence templates, by name.
    pub fn templates(&self) -> impl Iterator<Item = (&str, &Arc<Template>)> {
        self.templates.iter().map(|(name, template)| (name.as_str(), template))
    }

    /// A named endpoint.
    pub fn endpoint(&self, name: &str) -> Option<Arc<dyn Endpoint>> {
        self.endpoints.get(name).cloned()
    }

    /// The message processors.
    pub fn processors(&self) -> &[Arc<Processor>] {
        &self.processors
    }

    /// The inbound endpoints.
    pub fn inbound_endpoints(&self) -> &[Arc<InboundEndpoint>] {
        &self.inbound_endpoints
    }

    /// Leaves out an inbound endpoint that cannot listen, before the plan comes into force.
    pub fn leave_out_inbound(&mut self, port: u16, why: &str) {
        let Some(at) = self.inbound_endpoints.iter().position(|endpoint| endpoint.port == Some(port)) else {
            return;
        };
        let endpoint = self.inbound_endpoints.remove(at);
        self.faulty.push(faulty_inbound(&endpoint, why));
    }

    /// Records that the inbound endpoint of a port goes on with what it had before, and why.
    pub fn hold_inbound(&mut self, port: u16, why: &str) {
        let Some(endpoint) = self.inbound_endpoints.iter().find(|endpoint| endpoint.port == Some(port))
        else {
            return;
        };
        let held = config::FaultyArtifact { held: true, ..faulty_inbound(endpoint, why) };
        self.faulty.push(held);
    }

    /// Where files come from: of proxy services, and of inbound endpoints.
    pub fn sources(&self) -> impl Iterator<Item = &Arc<Source>> {
        let proxies = self.proxies.iter().filter_map(|artifact| artifact.source.as_ref());
        proxies.chain(self.inbound_endpoints.iter().filter_map(|artifact| artifact.source.as_ref()))
    }

    /// The tasks.
    pub fn tasks(&self) -> &[Arc<Task>] {
        &self.tasks
    }

    /// A priority executor.
    pub fn executor(&self, name: &str) -> Option<&Arc<Executor>> {
        self.executors.get(name)
    }

    /// The priority executors, by name.
    pub fn executors(&self) -> Vec<&Arc<Executor>> {
        let mut executors: Vec<_> = self.executors.values().collect();
        executors.sort_by(|one, other| one.name.cmp(&other.name));
        executors
    }

    /// A data service by its name.
    pub fn data_service(&self, name: &str) -> Option<&Arc<dyn DataService>> {
        self.data_services.get(name)
    }

    /// An event source.
    pub fn event_source(&self, name: &str) -> Option<&Arc<dyn EventSource>> {
        self.event_sources.get(name)
    }

    /// The event sources, by name.
    pub fn event_sources(&self) -> Vec<&Arc<dyn EventSource>> {
        let mut sources: Vec<_> = self.event_sources.values().collect();
        sources.sort_by(|one, other| one.name().cmp(other.name()));
        sources
    }

    /// It comes into force: its definitions say which services, APIs, processors, tasks and inbound endpoints run, where no administrator has decided otherwise.
    pub(crate) fn begins(&self) {
        for proxy in &self.proxies {
            proxy.activation.defined(proxy.start_on_load, 0);
        }
        self.apis.iter().for_each(|api| api.activation.defined(true, 0));
        for processor in &self.processors {
            let (on, definition) = processor.written;
            processor.activation.defined(on, definition);
        }
        self.tasks.iter().for_each(|task| task.begins());
        self.executors.values().for_each(|executor| executor.begins());
        for endpoint in &self.inbound_endpoints {
            let (on, definition) = endpoint.written;
            endpoint.activation.defined(on, definition);
        }
    }

    /// A message store.
    pub fn store(&self, name: &str) -> Option<Arc<dyn stores::Store>> {
        self.stores.get(name).cloned()
    }

    /// All named endpoints, by name.
    pub fn endpoints(&self) -> impl Iterator<Item = (&str, &Arc<dyn Endpoint>)> {
        self.endpoints.iter().map(|(name, endpoint)| (name.as_str(), endpoint))
    }

    /// Endpoints that are written where they are used.
    pub fn inline_endpoints(&self) -> &[InlineEndpoint] {
        &self.inline
    }

    /// The proxy services.
    pub fn proxies(&self) -> &[Proxy] {
        &self.proxies
    }

    /// The APIs.
    pub fn apis(&self) -> &[Api] {
        &self.apis
    }

    /// Named sequences, by name.
    pub fn sequences(&self) -> impl Iterator<Item = (&str, ListId)> {
        self.sequences.iter().map(|(name, &list)| (name.as_str(), list))
    }

    /// The main sequence.
    pub fn main(&self) -> ListId {
        self.main
    }

    /// The XML of the local entries that are XML.
    pub fn entry_documents(&self) -> &[Arc<XmlValue>] {
        &self.entry_documents
    }

    /// A local entry as a property value.
    pub fn entry_value(&self, key: &str) -> Option<Value> {
        self.entries.get(key).map(|entry| entry.value.clone())
    }

    /// The bytes behind a key: a local entry, else a registry resource.
    pub fn entry(&self, key: &str) -> Option<Entry> {
        let key = key.trim();
        match self.entries.get(key) {
            Some(entry) => Some(entry.clone()),
            None => self.resource(key),
        }
    }

    /// A registry resource; `None` where it cannot be read, which is logged.
    fn resource(&self, key: &str) -> Option<Entry> {
        let bytes = self.resource_bytes(key)?;
        let mut parsed = self.resources.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(cached) = parsed.get(key).filter(|cached| Arc::ptr_eq(&cached.bytes, &bytes)) {
            return Some(cached.clone());
        }
        if parsed.len() >= MAX_RESOURCES {
            parsed.clear();
        }
        let entry = Entry::of(bytes);
        parsed.insert(key.to_owned(), entry.clone());
        Some(entry)
    }

    fn resource_bytes(&self, key: &str) -> Option<Arc<[u8]>> {
        match self.registry.read(key) {
            Ok(found) => {
                let found = found?;
                if let Some(why) = found.stale {
                    tracing::warn!(
                        "the registry resource `{key}` cannot be read any more, it is used as it was: {why}"
                    );
                }
                Some(found.bytes)
            }
            Err(why) => {
                tracing::warn!("the registry resource `{key}` cannot be read: {why}");
                None
            }
        }
    }

    /// Writes a registry resource; of `KEY@NAME` the property of that name.
    ///
    /// # Errors
    /// Why it cannot be written.
    pub fn write_registry(&self, key: &str, text: &str) -> std::io::Result<()> {
        match key.split_once('@') {
            Some((key, name)) => self.registry.write_property(key, name, text),
            None => self.registry.write(key, text),
        }
    }

    /// A registry resource as text, whose lines end with `\n` and whose last line with nothing, as in WSO2; of `KEY@NAME` the
    /// property of that name.
    pub fn registry_text(&self, key: &str) -> Option<String> {
        if let Some((key, name)) = key.split_once('@') {
            return self.registry_property(key, name);
        }
        let bytes = self.resource_bytes(key)?;
        let text = String::from_utf8_lossy(&bytes);
        let is_plain = !text.ends_with('\n') && !text.contains('\r');
        if is_plain || !self.registry.is_text(key) {
            return Some(text.into_owned());
        }
        let mut text = text.replace("\r\n", "\n").replace('\r', "\n");
        if text.ends_with('\n') {
            text.pop();
        }
        Some(text)
    }

    /// A property of a registry resource or collection.
    pub fn registry_property(&self, key: &str, name: &str) -> Option<String> {
        self.registry.property(key, name)
    }

    /// Values from outside the configuration.
    pub fn injector(&self) -> &config::Injector {
        &self.injector
    }

    /// Secrets.
    pub fn vault(&self) -> &crate::vault::Vault {
        &self.vault
    }

    /// `file:line:column` of a place.
    pub fn place(&self, span: Span) -> String {
        span.place(&self.sources)
    }

    /// How many artifacts serve; what Busbar supplies itself does not count.
    pub fn artifacts(&self) -> usize {
        self.proxies.len()
            + self.apis.len()
            + self.sequences.values().filter(|list| !self.list(**list).is_built_in()).count()
            + self.templates.len()
            + self.endpoints.len()
            + self.entries.len()
            + self.stores.len()
            + self.processors.len()
            + self.tasks.len()
            + self.inbound_endpoints.len()
            + self.executors.len()
    }

    /// What the handlers of an API say of other origins, by its number among those that serve and those that are left out; the last counts.
    pub(crate) fn cors_of(&self, api: usize) -> impl Iterator<Item = &Arc<Cors>> {
        let serves = self.apis.get(api).into_iter().flat_map(|api| &api.handlers);
        let of_serving = serves.filter_map(|handler| match handler {
            Handler::Cors(cors) => Some(cors),
            _ => None,
        });
        let left_out = api.checked_sub(self.apis.len()).and_then(|at| self.left_out.apis.get(at));
        of_serving.chain(left_out.into_iter().flat_map(|(_, cors)| cors))
    }

    pub(crate) fn owner_name(&self, owner: Owner) -> &str {
        match owner {
            Owner::Main => "main",
            Owner::Proxy(index) => &self.proxies[index].name,
            Owner::Resource(api, _) => &self.apis[api].name,
            Owner::Inbound(index) => &self.inbound_endpoints[index].name,
        }
    }
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Plan(generation {}, {} artifacts)", self.generation, self.artifacts())
    }
}

fn faulty_inbound(endpoint: &InboundEndpoint, why: &str) -> config::FaultyArtifact {
    let (kind, name) = (config::ArtifactKind::InboundEndpoint, Some(endpoint.name.clone()));
    config::FaultyArtifact::new(kind, name, endpoint.span, why.to_owned())
}
