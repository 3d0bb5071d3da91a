//! Data services: each is a service with one step, which the registry makes.

use super::Compiler;
use super::definition::SecuredService;
use super::handlers;
use super::services::{allowed_roles, security_of};
use crate::runtime::artifacts::Proxy;
use crate::runtime::data::DataService;
use crate::runtime::plan::{List, Planned};
use crate::runtime::reference::SequenceRef;
use crate::wsdl::contract::Contract;
use crate::wsdl::{self, Wsdl};
use std::sync::Arc;
use xml::Document;

/// Compiles a data service and its service; `None` after a recorded error.
pub(super) fn compile(
    description: &config::DataService,
    compiler: &mut Compiler<'_>,
) -> Option<(Arc<dyn DataService>, Proxy)> {
    let name = description.name.value.clone();
    let Some(factory) = compiler.registry.data else {
        let message = format!("the data service `{name}` is not executable here");
        compiler.error("unsupported-artifact", message, description.span, "left out");
        return None;
    };
    let configuration = compiler.configuration;
    if configuration.proxies.get(&name).is_some() || configuration.event_sources.get(&name).is_some() {
        let message = format!("`{name}` is the name of another service");
        let label = "a data service is a service too: one of the two needs another name";
        compiler.error("duplicate-key", message, description.name.span, label);
        return None;
    }
    let service = factory(description, compiler)?;
    let secured = SecuredService {
        kind: "data service",
        name: &description.name,
        policies: &description.policies,
        roles: allowed_roles(&description.parameters),
    };
    let stages = security_of(&secured, description.enable_sec, compiler);
    if let Some(config) = description.configs.iter().find(|config| config.odata && !stages.is_empty()) {
        let message = format!("`enableOData` of the data service `{name}` has no effect with `enableSec`");
        let label = "tables are not served: a client signs messages, not the paths of tables";
        compiler.warning("ignored-parameter", message, config.span, label);
    }
    let id = compiler.reserve();
    let steps = Arc::clone(&service).steps().into_iter();
    let steps = steps.map(|step| Planned::new(step, "dataService", description.span)).collect();
    let label = format!("data service {name}");
    compiler.lists[id.0 as usize] =
        Some(List { label, steps, on_error: None, trace: false, span: description.span });
    let document = Document::parse(service.wsdl().into_bytes(), &xml::ParseOptions::trusted()).ok();
    let ports = document.as_ref().map(wsdl::ports).unwrap_or_default();
    let has = |name: &str| {
        description.transports.is_empty() || description.transports.iter().any(|transport| transport == name)
    };
    let proxy = Proxy {
        http: has("http"),
        https: has("https"),
        activation: compiler.services.states.get(compiler.artifact_identity()),
        start_on_load: description.active,
        properties: Vec::new(),
        guard: handlers::of_service(
            &description.parameters,
            "the data service",
            description.name.span,
            compiler,
        ),
        stages,
        endpoint: None,
        in_sequence: Some(SequenceRef::Known(id)),
        out_sequence: None,
        fault_sequence: None,
        // What it does not have is answered by the service itself.
        wsdl: Wsdl {
            contract: document.as_ref().and_then(Contract::of),
            lax: true,
            document,
            ports,
            ..Wsdl::default()
        },
        inbound_only: false,
        source: None,
        hidden: false,
        span: description.span,
        trace: false,
        counters: compiler.services.metrics.counters("dataService", &name),
        name,
    };
    Some((service, proxy))
}
