//! Event sources: each is a service with one step, which the registry makes.

use super::Compiler;
use crate::runtime::artifacts::Proxy;
use crate::runtime::events::EventSource;
use crate::runtime::plan::{List, Planned};
use crate::runtime::reference::SequenceRef;
use crate::wsdl::Wsdl;
use std::sync::Arc;

/// Compiles an event source and its service; `None` after a recorded error.
pub(super) fn compile(
    description: &config::EventSource,
    compiler: &mut Compiler<'_>,
) -> Option<(Arc<dyn EventSource>, Proxy)> {
    let name = description.name.value.clone();
    let Some(factory) = compiler.registry.events else {
        let message = format!("the event source `{name}` is not executable here");
        compiler.error("unsupported-artifact", message, description.span, "left out");
        return None;
    };
    if compiler.configuration.proxies.get(&name).is_some() {
        let message = format!("`{name}` is the name of a proxy service");
        let label = "an event source is a service too: one of the two needs another name";
        compiler.error("duplicate-key", message, description.name.span, label);
        return None;
    }
    let source = factory(description, compiler)?;
    let id = compiler.reserve();
    let steps = vec![Planned::new(Arc::clone(&source).service(), "eventSource", description.span)];
    let label = format!("event source {name}");
    compiler.lists[id.0 as usize] =
        Some(List { label, steps, on_error: None, trace: false, span: description.span });
    let proxy = Proxy {
        http: true,
        https: true,
        activation: compiler.services.states.get(compiler.artifact_identity()),
        start_on_load: true,
        properties: Vec::new(),
        // It reads WS-Addressing headers itself, and writes its own.
        guard: None,
        stages: Vec::new(),
        endpoint: None,
        in_sequence: Some(SequenceRef::Known(id)),
        out_sequence: None,
        fault_sequence: None,
        wsdl: Wsdl::default(),
        inbound_only: false,
        source: None,
        hidden: false,
        span: description.span,
        trace: false,
        counters: compiler.services.metrics.counters("eventSource", &name),
        name,
    };
    Some((source, proxy))
}
