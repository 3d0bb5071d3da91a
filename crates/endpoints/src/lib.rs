//! One file per kind of endpoint, and their state machine.
//!
//! Every endpoint that sends to one address is a [`leaf::LeafEndpoint`] with an [`leaf::Address`] of its kind; groups
//! choose among other endpoints. [`endpoint`] makes any of them from its configuration.

mod address;
mod cell;
mod default;
mod failover;
mod group;
mod health;
mod http;
mod leaf;
mod load_balance;
mod member;
mod oauth;
mod recipient_list;
mod reference;
mod session;
mod state;
#[cfg(test)]
mod tests;
mod unsupported;
pub mod uri_template;
mod wsdl;

/// What `cell` shares between workers; `tests/models` has that of loom in its place.
mod sync {
    pub use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    pub use std::sync::{Mutex, MutexGuard};
}

use config::{EndpointKind, endpoint::Definition};
use flow::Compiler;
use flow::endpoint::Endpoint;
use flow::stage::Stages;
use std::sync::Arc;

/// Makes an endpoint of its configuration; `None` after an error that was recorded.
pub fn endpoint(endpoint: &config::Endpoint, compiler: &mut Compiler<'_>) -> Option<Arc<dyn Endpoint>> {
    health::report_misplaced(endpoint, compiler);
    match &endpoint.kind {
        EndpointKind::Address(kind) => address::compile(endpoint, kind, compiler),
        EndpointKind::Http(kind) => http::compile(endpoint, kind, compiler),
        EndpointKind::Default(definition) => default::compile(endpoint, definition, compiler),
        EndpointKind::Failover(group) => failover::compile(endpoint, group, compiler),
        EndpointKind::LoadBalance(group) => load_balance::compile(endpoint, group, compiler),
        EndpointKind::RecipientList(group) => recipient_list::compile(endpoint, group, compiler),
        EndpointKind::Reference(_) | EndpointKind::Resolving(_) => reference::compile(endpoint, compiler),
        EndpointKind::Template(instance) => {
            let Some(template) = compiler.configuration.endpoint_templates.get(&instance.template.value)
            else {
                let names: Vec<_> =
                    compiler.configuration.endpoint_templates.iter().map(|t| t.name.value.clone()).collect();
                compiler.diagnostics.push(
                    diagnostics::Diagnostic::error(
                        "unknown-template",
                        format!("there is no endpoint template `{}`", instance.template.value),
                    )
                    .at(instance.template.span, "named here")
                    .did_you_mean(&instance.template.value, names.iter().map(String::as_str)),
                );
                return None;
            };
            let name = endpoint.name.as_ref().map_or("", |name| name.value.as_str());
            let uri = instance.uri.as_ref().map(|uri| uri.value.as_str());
            let injector = &compiler.configuration.injector;
            compiler.of_template(&instance.template, |compiler| {
                let made =
                    template.instantiate(name, uri, &instance.parameters, injector, compiler.diagnostics)?;
                self::endpoint(&made, compiler)
            })
        }
        EndpointKind::Wsdl(kind) => wsdl::compile(endpoint, kind, compiler),
        EndpointKind::DynamicLoadBalance(_) => of_a_cluster(endpoint, "dynamicLoadbalance", compiler),
        EndpointKind::ServiceDynamicLoadBalance(_) => {
            of_a_cluster(endpoint, "serviceDynamicLoadbalance", compiler)
        }
        EndpointKind::Class { .. } => {
            let why = "`class` endpoints are not executable here".to_owned();
            unsupported::compile(endpoint, why, "Java classes cannot run here", compiler)
        }
    }
}

/// Endpoints whose members a cluster of WSO2 servers knows.
fn of_a_cluster(
    endpoint: &config::Endpoint,
    kind: &str,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<dyn Endpoint>> {
    let why = format!("`{kind}` endpoints are not executable here");
    unsupported::compile(endpoint, why, "list the members in a loadbalance endpoint", compiler)
}

/// The name of an endpoint, or a description of an anonymous one.
fn name_of(endpoint: &config::Endpoint, description: &str) -> String {
    match &endpoint.name {
        Some(name) => name.value.clone(),
        None => format!("anonymous {description}"),
    }
}

/// The stages of WS-Security of a definition; none where it asks for none.
fn securing(definition: &Definition, endpoint: &config::Endpoint, compiler: &mut Compiler<'_>) -> Stages {
    let Some(security) = &definition.security else { return Stages::new() };
    match compiler.registry().validation {
        Some(securing) => (securing.endpoint)(security, endpoint.span, compiler).unwrap_or_default(),
        None => {
            let message = "WS-Security of endpoints (`enableSec`) is not executable here";
            compiler.error("unsupported-security", message, endpoint.span, "messages would go out unsecured");
            Stages::new()
        }
    }
}
