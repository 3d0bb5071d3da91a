//! The plan of a configuration: its artifacts, one kind after the other.

use super::{Compiler, data, events, executors, handlers, inbound, processors, services, stores, tasks};
use crate::resource::{ApiOrder, ApiRule};
use crate::runtime::artifacts::{Api, Proxy};
use crate::runtime::context::Context;
use crate::runtime::endpoint::{Endpoint, InlineEndpoint};
use crate::runtime::fault::Fault;
use crate::runtime::inbound::InboundEndpoint;
use crate::runtime::mediator::{Flow, ListId, Mediator, Need};
use crate::runtime::plan::{Entry, LeftOut, List, NameHasher, Plan, Planned, Template, TemplateParameter};
use crate::state::identity::Identity;
use config::{ArtifactKind, Element, FaultyArtifact, Key};
use diagnostics::{Diagnostic, FileId, SourceMap, Span};
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The `main` sequence of a configuration without one, as Micro Integrator ships it: a request that no service takes gets a response.
const DEFAULT_MAIN: &str = r#"<sequence xmlns="http://ws.apache.org/ns/synapse" name="main"><log level="custom"><property name="MESSAGE" expression="fn:concat('main sequence executed for call to non-existent = ', fn:substring-before(fn:concat(get-property('To'), '?'), '?'))"/></log><property name="NO_ENTITY_BODY" scope="axis2" type="BOOLEAN" value="true"/><property name="HTTP_SC" scope="axis2" value="404"/><respond/></sequence>"#;
/// Its `fault` sequence.
const DEFAULT_FAULT: &str = r#"<sequence xmlns="http://ws.apache.org/ns/synapse" name="fault"><log level="custom"><property name="MESSAGE" value="Executing default &quot;fault&quot; sequence"/><property name="ERROR_CODE" expression="get-property('ERROR_CODE')"/><property name="ERROR_MESSAGE" expression="get-property('ERROR_MESSAGE')"/></log><drop/></sequence>"#;

static GENERATION: AtomicU64 = AtomicU64::new(1);

/// A named sequence that has its number and is not compiled yet.
struct Body {
    name: String,
    element: Element,
    on_error: Option<Key>,
    span: Span,
}

/// The one step of a sequence that is left out.
struct Faulty(String);

impl Mediator for Faulty {
    fn need(&self) -> Need {
        Need::Nothing
    }

    fn mediate(&self, _: &mut Context) -> Result<Flow, Fault> {
        Err(Fault::new(self.0.as_str()))
    }
}

impl Compiler<'_> {
    pub(super) fn plan(mut self, sources: SourceMap) -> Plan {
        let configuration = self.configuration;
        let is_here = |entry: &&config::LocalEntry| !matches!(entry.value, config::Entry::NotFetched);
        for entry in configuration.local_entries.iter().filter(is_here) {
            let made = match &entry.value {
                config::Entry::Text(text) => Entry::of_text(text),
                _ => Entry::of(entry.bytes().into()),
            };
            self.entries.insert(entry.key.value.clone(), made);
        }
        for store in configuration.message_stores.iter() {
            let made = self.artifact(ArtifactKind::MessageStore, &store.name.value, store.span, |compiler| {
                stores::compile(store, compiler)
            });
            self.stores.extend(made.map(|made| (store.name.value.clone(), made)));
        }
        // Every named sequence has its number before any of them is compiled: they refer to each other.
        let bodies = self.number_sequences();
        self.compile_endpoints();
        self.compile_sequences(bodies);
        let templates = self.compile_templates();
        let mut proxies: Vec<Proxy> = Vec::new();
        let server = self.services.settings.server_name.clone().unwrap_or_else(machine);
        for proxy in configuration.proxies.iter() {
            if self.is_elsewhere("proxy service", &proxy.name, &proxy.pinned_servers, &server) {
                continue;
            }
            proxies.extend(self.artifact(ArtifactKind::Proxy, &proxy.name.value, proxy.span, |compiler| {
                Some(services::compile_proxy(proxy, compiler))
            }));
        }
        let mut event_sources = HashMap::new();
        for event_source in configuration.event_sources.iter() {
            let kind = ArtifactKind::EventSource;
            let made = self.artifact(kind, &event_source.name.value, event_source.span, |compiler| {
                events::compile(event_source, compiler)
            });
            if let Some((source, service)) = made {
                event_sources.insert(event_source.name.value.clone(), source);
                proxies.push(service);
            }
        }
        let mut data_services = HashMap::new();
        for data_service in configuration.data_services.iter() {
            let kind = ArtifactKind::DataService;
            let made = self.artifact(kind, &data_service.name.value, data_service.span, |compiler| {
                data::compile(data_service, compiler)
            });
            if let Some((service, proxy)) = made {
                data_services.insert(data_service.name.value.clone(), service);
                proxies.push(proxy);
            }
        }
        let mut apis: Vec<Api> = Vec::new();
        for api in configuration.apis.iter() {
            apis.extend(self.artifact(ArtifactKind::Api, &api.registered_name(), api.span, |compiler| {
                Some(services::compile_api(api, compiler))
            }));
        }
        let mut processors = Vec::new();
        for processor in configuration.message_processors.iter() {
            let kind = ArtifactKind::MessageProcessor;
            let made = self.artifact(kind, &processor.name.value, processor.span, |compiler| {
                processors::compile(processor, compiler)
            });
            processors.extend(made.map(Arc::new));
        }
        let mut tasks = Vec::new();
        for task in configuration.tasks.iter() {
            if self.is_elsewhere("task", &task.name, &task.pinned_servers, &server) {
                continue;
            }
            let kind = ArtifactKind::Task;
            let made =
                self.artifact(kind, &task.name.value, task.span, |compiler| tasks::compile(task, compiler));
            tasks.extend(made.map(Arc::new));
        }
        let mut executors = HashMap::new();
        for executor in configuration.priority_executors.iter() {
            let kind = ArtifactKind::PriorityExecutor;
            let made = self.artifact(kind, &executor.name.value, executor.span, |compiler| {
                executors::compile(executor, compiler)
            });
            executors.extend(made.map(|made| (made.name.clone(), Arc::new(made))));
        }
        let mut inbound_endpoints: Vec<Arc<InboundEndpoint>> = Vec::new();
        for endpoint in configuration.inbound_endpoints.iter() {
            let taken: Vec<_> = inbound_endpoints
                .iter()
                .filter_map(|earlier| Some((earlier.port?, earlier.name.clone())))
                .collect();
            let kind = ArtifactKind::InboundEndpoint;
            let made = self.artifact(kind, &endpoint.name.value, endpoint.span, |compiler| {
                inbound::compile(endpoint, &taken, compiler)
            });
            inbound_endpoints.extend(made.map(Arc::new));
        }
        self.report_endpoints();
        let main = self.sequences.get("main").copied();
        let main = main.unwrap_or_else(|| self.default_sequence("main"));
        let fault_sequence = self.sequences.get("fault").copied();
        let fault = fault_sequence.unwrap_or_else(|| self.default_sequence("fault"));
        let fault_is_built_in = fault_sequence.is_none()
            || configuration.sequences.get("fault").is_none_or(|sequence| sequence.built_in);
        let implicit = self.implicit_endpoint();
        let empty = || List {
            label: "left out".to_owned(),
            steps: Vec::new(),
            on_error: None,
            trace: false,
            span: Span::BUILT_IN,
        };
        let proxy_names = proxies.iter().enumerate().map(|(index, proxy)| (proxy.name.clone(), index));
        let mut proxy_names: HashMap<_, _, _> = proxy_names.collect();
        let mut api_rules: Vec<_> = apis.iter().map(|api| api.rule.clone()).collect();
        self.diagnostics.extend(std::mem::take(&mut self.aside));
        let left_out = self.left_out(main, &mut proxy_names, &apis, &mut api_rules);
        let traces = proxies.iter().any(|proxy| proxy.trace) || apis.iter().any(|api| api.trace);
        // Endpoints inside artifacts that are left out are of no use.
        let is_left_out = |endpoint: &InlineEndpoint| {
            let mut faulty = self
                .faulty
                .iter()
                .filter(|artifact| !artifact.held && artifact.kind == endpoint.artifact.kind);
            faulty.any(|artifact| artifact.name.as_deref() == Some(&*endpoint.artifact.artifact))
        };
        let inline =
            std::mem::take(&mut self.inline).into_iter().filter(|endpoint| !is_left_out(endpoint)).collect();
        Plan {
            traces,
            pre_mediate: self.sequences.get("pre-mediate").copied(),
            stores: self.stores,
            passing_on: self.lists.iter().map(|_| OnceLock::new()).collect(),
            lists: self.lists.into_iter().map(|list| list.unwrap_or_else(empty)).collect(),
            sequences: self.sequences,
            templates,
            endpoints: self.endpoints,
            inline,
            implicit,
            entry_documents: self.entries.values().filter_map(Entry::xml).cloned().collect(),
            entries: self.entries,
            processors,
            tasks,
            executors,
            event_sources,
            data_services,
            inbound_endpoints,
            longest_proxy_name: proxy_names.keys().map(String::len).max().unwrap_or(0),
            proxy_names,
            proxies,
            api_order: ApiOrder::new(&api_rules),
            api_rules,
            apis,
            left_out,
            stages: services::of_services(),
            main,
            fault,
            fault_is_built_in,
            registry: configuration.registry.limited(self.services.settings.registry),
            resources: Default::default(),
            injector: configuration.injector.clone(),
            vault: self.vault,
            sources: Arc::new(sources),
            generation: GENERATION.fetch_add(1, Ordering::Relaxed),
            faulty: self.faulty,
            written: configuration.written(),
        }
    }

    /// Whether an artifact is pinned to other servers than this one.
    fn is_elsewhere(&mut self, what: &str, name: &Key, servers: &[String], this_server: &String) -> bool {
        // An unresolved name is set on the machine that runs it, and may be the name of this server.
        let is_resolved = !servers.iter().any(|name| config::is_unresolved(name));
        let elsewhere = !servers.is_empty() && is_resolved && !servers.contains(this_server);
        if elsewhere {
            let message = format!("the {what} `{name}` is not for this server");
            let label = format!("it is pinned to others than `{this_server}` (setting server_name)");
            self.warning("pinned", message, name.span, label);
        }
        elsewhere
    }

    /// Compiles an artifact; one with an error is left out.
    pub(super) fn artifact<T>(
        &mut self,
        kind: ArtifactKind,
        name: &str,
        span: Span,
        compile: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        let mark = self.diagnostics.len();
        let made = self.inside(Identity::of(kind, name), compile);
        if made.is_some() && !self.diagnostics.has_errors_since(mark) {
            return made;
        }
        let error = self.diagnostics.first_error_since(mark);
        let message =
            error.map_or_else(|| "it could not be compiled".to_owned(), |error| error.message.clone());
        let span = error.and_then(Diagnostic::span).unwrap_or(span);
        self.faulty.push(FaultyArtifact::new(kind, Some(name.to_owned()), span, message));
        None
    }

    /// Gives the sequences their numbers: those of the configuration, and those that are local entries.
    fn number_sequences(&mut self) -> Vec<Body> {
        let mut bodies = Vec::new();
        for sequence in self.configuration.sequences.iter() {
            let Some(name) = sequence.name.as_ref().map(|name| name.value.clone()) else { continue };
            let id = self.reserve();
            self.sequences.insert(name.clone(), id);
            let element = if sequence.built_in { built_in(&name) } else { Some(sequence.element.clone()) };
            let (on_error, span) = (sequence.on_error.clone(), sequence.span);
            bodies.extend(element.map(|element| Body { name, element, on_error, span }));
        }
        for entry in self.configuration.local_entries.iter() {
            if let Some(element) = entry.element(FileId::BUILT_IN)
                && element.is("sequence")
                && !self.sequences.contains_key(&entry.key.value)
            {
                let (name, id) = (entry.key.value.clone(), self.reserve());
                self.sequences.insert(name.clone(), id);
                bodies.push(Body { name, element, on_error: None, span: entry.span });
            }
        }
        bodies
    }

    fn compile_sequences(&mut self, bodies: Vec<Body>) {
        for Body { name, element, on_error, span } in bodies {
            let id = self.sequences[&name];
            let on_error = on_error.or_else(|| element.attribute("onError").map(Key::of));
            // A sequence that is defined by an entry.
            let element = match element.attribute("key").map(Key::of) {
                Some(key) if element.elements().next().is_none() => {
                    self.entry_element(&key).unwrap_or(element)
                }
                _ => element,
            };
            let made = self.artifact(ArtifactKind::Sequence, &name, span, |compiler| {
                compiler.fill(id, format!("sequence {name}"), &element, on_error.as_ref());
                Some(())
            });
            if made.is_none() {
                self.sequences.remove(&name);
                self.leave_out(id, &name, span);
            }
        }
    }

    /// Puts a step that faults into a faulty sequence: artifacts that name it may be compiled already.
    pub(super) fn leave_out(&mut self, id: ListId, name: &str, span: Span) {
        let kind = if self.operations.get(name) == Some(&id) { "operation" } else { "sequence" };
        let fault = format!("the {kind} {name} is left out as faulty");
        let step = Planned::new(Box::new(Faulty(fault)), "sequence", span);
        let label = format!("{kind} {name} (left out)");
        self.lists[id.0 as usize] =
            Some(List { label, steps: vec![step], on_error: None, trace: false, span });
    }

    /// The steps of an operation of a library, compiled once per plan. A faulty one faults where it is used.
    pub fn operation(&mut self, operation: &config::LibraryOperation) -> ListId {
        let (name, template) = (&operation.name, &operation.template);
        if let Some(list) = self.operations.get(name) {
            return *list;
        }
        let list = self.reserve();
        self.operations.insert(name.clone(), list);
        let on_error = template.on_error.as_ref().or(template.sequence.on_error.as_ref());
        // Its findings do not belong to the artifact that names it first.
        let outer = std::mem::take(self.diagnostics);
        let made = self.artifact(ArtifactKind::Template, name, template.span, |compiler| {
            compiler.fill(list, format!("operation {name}"), &template.sequence.element, on_error);
            Some(())
        });
        let found = std::mem::replace(self.diagnostics, outer);
        self.aside.extend(found);
        if made.is_none() {
            self.leave_out(list, name, template.span);
        }
        list
    }

    fn compile_templates(&mut self) -> HashMap<String, Arc<Template>> {
        let mut templates = HashMap::new();
        let configuration = self.configuration;
        let libraries = configuration.library_templates().filter(|template| template.class.is_none());
        let libraries = libraries.map(|template| &*template.template);
        for template in configuration.sequence_templates.iter().chain(libraries) {
            let name = template.name.value.clone();
            let list = self.reserve();
            let on_error = template.on_error.as_ref().or(template.sequence.on_error.as_ref());
            let made = self.artifact(ArtifactKind::Template, &name, template.span, |compiler| {
                compiler.fill(list, format!("template {name}"), &template.sequence.element, on_error);
                Some(())
            });
            if made.is_none() {
                continue;
            }
            let parameter = |parameter: &config::TemplateParameter| TemplateParameter {
                name: Arc::from(parameter.name.value.as_str()),
                mandatory: parameter.mandatory,
                default: parameter.default.as_deref().map(Arc::from),
            };
            let parameters = template.parameters.iter().map(parameter).collect();
            templates.insert(name.clone(), Arc::new(Template { name, list, parameters }));
        }
        templates
    }

    /// Those of the faulty artifacts that requests may be for. They take their names and contexts among the others, with
    /// numbers behind them.
    fn left_out(
        &self,
        main: ListId,
        proxies: &mut HashMap<String, usize, BuildHasherDefault<NameHasher>>,
        compiled: &[Api],
        apis: &mut Vec<ApiRule>,
    ) -> LeftOut {
        let mut left_out = LeftOut::default();
        let (proxy_count, faulty) = (proxies.len(), self.faulty.iter().enumerate());
        for (at, faulty) in faulty.filter(|(_, faulty)| !faulty.held) {
            match (faulty.kind, &faulty.name) {
                (ArtifactKind::Proxy | ArtifactKind::DataService, Some(name))
                    if !proxies.contains_key(name) =>
                {
                    proxies.insert(name.clone(), proxy_count + left_out.proxies.len());
                    left_out.proxies.push(at);
                }
                (ArtifactKind::Api, name) => {
                    let defined = name.as_ref().and_then(|name| self.configuration.apis.get(name));
                    // What is wrong may stand elsewhere, in a template or an entry. One of the same name that serves is another one.
                    let is_it = |api: &&config::Api| {
                        api.span.contains(faulty.span)
                            || !compiled.iter().any(|served| Some(&served.name) == name.as_ref())
                    };
                    let defined = defined.filter(is_it);
                    let of_context = || faulty.context.as_deref().map(ApiRule::of_context);
                    if let Some(rule) = defined.map(services::api_rule).or_else(of_context) {
                        apis.push(rule);
                        left_out.apis.push((at, defined.map(handlers::cors_of).unwrap_or_default()));
                    }
                }
                (ArtifactKind::Sequence, Some(name)) if name == "main" => {
                    let is_built_in =
                        self.lists[main.0 as usize].as_ref().is_some_and(|list| list.is_built_in());
                    left_out.main = is_built_in.then_some(at);
                }
                _ => {}
            }
        }
        left_out
    }

    /// `<endpoint><default/></endpoint>`: what `send` without an endpoint uses.
    fn implicit_endpoint(&mut self) -> Arc<dyn Endpoint> {
        let text = r#"<endpoint xmlns="http://ws.apache.org/ns/synapse"><default/></endpoint>"#;
        config::parse(FileId::BUILT_IN, text)
            .ok()
            .and_then(|element| config::Endpoint::parse(&element, self.diagnostics))
            .and_then(|endpoint| {
                (self.registry.endpoints)(&config::Endpoint { implicit: true, ..endpoint }, self)
            })
            .unwrap_or_else(|| unreachable!("the built-in default endpoint compiles"))
    }

    fn default_sequence(&mut self, name: &str) -> ListId {
        let id = self.reserve();
        if let Some(element) = built_in(name) {
            self.fill(id, format!("sequence {name} (built in)"), &element, None);
        }
        id
    }
}

/// The name of this machine; `localhost` where nothing says it.
fn machine() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    if name.trim().is_empty() { "localhost".to_owned() } else { name.trim().to_owned() }
}

fn built_in(name: &str) -> Option<Element> {
    let text = if name == "fault" { DEFAULT_FAULT } else { DEFAULT_MAIN };
    config::parse(FileId::BUILT_IN, text).ok()
}
