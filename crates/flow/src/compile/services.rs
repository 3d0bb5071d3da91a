//! Proxy services and APIs.

use super::definition::SecuredService;
use super::{Compiler, handlers, vfs, wsdl};
use crate::engine::addressing;
use crate::resource::{
    ApiRule, PathRule, Protocol, ResourceRule, ResourceTemplate, UrlMapping, UserAgent, VersionStrategy,
    normalize_context,
};
use crate::runtime::artifacts::{Api, Proxy, Resource, allowed_methods};
use crate::runtime::stage::{Stage, Stages};
use config::Mapping;
use diagnostics::Span;
use std::sync::Arc;

/// The parameter of a secured service with the only roles whose users are let in.
const ALLOW_ROLES: &str = "allowRoles";

/// The parameter of a service with the roles whose users are let in.
pub(super) fn allowed_roles(parameters: &[config::Parameter]) -> Option<&config::Parameter> {
    parameters.iter().rfind(|parameter| parameter.name == ALLOW_ROLES)
}

/// The stages of every service.
pub(super) fn of_services() -> Stages {
    vec![Arc::new(addressing::OfService)]
}

/// The stages of a service that WS-Security needs (`enableSec`). Where they cannot be had, the recorded error leaves the service out: it
/// must not be open to all.
pub(super) fn security_of(
    service: &SecuredService<'_>,
    is_secured: bool,
    compiler: &mut Compiler<'_>,
) -> Stages {
    match compiler.registry.validation {
        Some(securing) if is_secured => {
            return (securing.service)(service, compiler).unwrap_or_default();
        }
        None if is_secured => {
            let message =
                format!("WS-Security of the {} `{}` is not executable yet", service.kind, service.name);
            let label = "left out: without `enableSec` it would be open to everybody";
            compiler.error("unsupported-security", message, service.name.span, label);
        }
        _ => {
            if let Some(policy) = service.policies.first() {
                let message = "`policy` has no effect without `enableSec`";
                compiler.warning("ineffective-policy", message, policy.span, "nothing is engaged by it");
            }
            if let Some(roles) = service.roles {
                let message = format!("`{ALLOW_ROLES}` has no effect without `enableSec`");
                let label = "nobody is asked who they are: expected `enableSec` and a policy for users";
                compiler.warning("ineffective-policy", message, roles.span, label);
            }
        }
    }
    Stages::new()
}

/// Compiles a proxy service.
pub(super) fn compile_proxy(proxy: &config::Proxy, compiler: &mut Compiler<'_>) -> Proxy {
    let name = proxy.name.value.clone();
    let target = &proxy.target;
    let endpoint = target.endpoint.as_ref().and_then(|endpoint| match endpoint {
        config::TargetEndpoint::Named(key) => Some(compiler.endpoint_key(key)),
        config::TargetEndpoint::Inline(endpoint) => compiler.endpoint_of(endpoint),
    });
    let mut list = |reference: &Option<config::SequenceRef>, what: &str| {
        reference.as_ref().map(|reference| compiler.sequence_of(reference, &format!("proxy {name} {what}")))
    };
    let in_sequence = list(&target.in_sequence, "in sequence");
    let out_sequence = list(&target.out_sequence, "out sequence").and_then(|reference| reference.known());
    let fault_sequence =
        list(&target.fault_sequence, "fault sequence").and_then(|reference| reference.known());
    let is_true = |key: &str| {
        let mut named = proxy.parameters.iter().filter(|parameter| parameter.name == key);
        named.any(|parameter| {
            parameter.value.text().is_some_and(|text| text.trim().eq_ignore_ascii_case("true"))
        })
    };
    let wsdl = wsdl::compile(proxy, compiler);
    let texts = proxy
        .parameters
        .iter()
        .filter_map(|parameter| Some((parameter.name.as_str(), parameter.value.text()?)));
    let properties = match is_true("SET_JMS_SVC_PARAMS_AS_MSG_CTX") {
        true => texts.map(|(name, text)| (Arc::from(name), message::Value::from(text))).collect(),
        false => Vec::new(),
    };
    let service = SecuredService {
        kind: "proxy service",
        name: &proxy.name,
        policies: &proxy.policies,
        roles: allowed_roles(&proxy.parameters),
    };
    let mut stages = security_of(&service, proxy.enable_sec, compiler);
    // The first stage from the wire is that of security: the others read only messages that it has let in.
    stages.extend(of_services());
    Proxy {
        http: proxy.transports.contains("http"),
        https: proxy.transports.contains("https"),
        source: vfs::of_proxy(proxy, compiler).map(Arc::new),
        activation: compiler.services.states.get(compiler.artifact_identity()),
        start_on_load: proxy.start_on_load && !wsdl.inactive,
        properties,
        guard: handlers::of_service(&proxy.parameters, "the proxy service", proxy.name.span, compiler),
        stages,
        endpoint,
        in_sequence,
        out_sequence,
        fault_sequence,
        wsdl,
        inbound_only: is_true("inbound.only"),
        hidden: is_true("hiddenService"),
        span: proxy.span,
        trace: proxy.trace,
        counters: compiler.services.metrics.counters("proxy", &name),
        name,
    }
}

/// Compiles an API.
pub(super) fn compile_api(api: &config::Api, compiler: &mut Compiler<'_>) -> Api {
    let (version, version_strategy) = match &api.version {
        config::ApiVersion::Default => (String::new(), ""),
        config::ApiVersion::Context(version) => (version.clone(), "context"),
        config::ApiVersion::Url(version) => (version.clone(), "url"),
    };
    let mut resources = Vec::new();
    let mut rules = Vec::new();
    for resource in &api.resources {
        let label = match &resource.mapping {
            config::Mapping::Default => "default".to_owned(),
            config::Mapping::UriTemplate(key) | config::Mapping::UrlMapping(key) => key.value.clone(),
        };
        let mut list = |reference: &Option<config::SequenceRef>, what: &str| {
            reference
                .as_ref()
                .map(|r| compiler.sequence_of(r, &format!("api {} {label} {what}", api.name.value)))
        };
        let in_sequence = list(&resource.in_sequence, "in sequence");
        let out_sequence =
            list(&resource.out_sequence, "out sequence").and_then(|reference| reference.known());
        let fault_sequence =
            list(&resource.fault_sequence, "fault sequence").and_then(|reference| reference.known());
        let methods: Vec<_> = resource.methods.iter().map(|method| method.as_str()).collect();
        let allow = allowed_methods(&methods);
        let methods = methods.join(" ");
        resources.push(Resource { label, methods, allow, in_sequence, out_sequence, fault_sequence });
        match resource_rule(resource) {
            Ok(rule) => rules.push(rule),
            Err((message, span)) => compiler.error("bad-template", message, span, "in this resource"),
        }
    }
    let definition = api.publish_swagger.as_ref().and_then(|key| {
        let found = compiler.entry(&key.value).map(|entry| entry.bytes);
        if found.is_none() && !compiler.is_not_fetched(&key.value) {
            let message = format!("there is no definition `{key}`");
            let instead = match api.packed_definition {
                Some(_) => "the one in its archive or project is used instead",
                None => "one is made of the resources instead",
            };
            compiler.warning("unknown-entry", message, key.span, instead);
        }
        found
    });
    let definition = definition.or_else(|| api.packed_definition.clone()).map(as_json);
    let mut stages = of_services();
    stages.extend(validation(api, definition.as_deref(), compiler));
    Api {
        handlers: handlers::compile(api, &resources, compiler),
        definition,
        context: api.context.clone(),
        version,
        version_strategy,
        activation: compiler.services.states.get(compiler.artifact_identity()),
        stages,
        resources,
        rules,
        rule: api_rule(api),
        span: api.span,
        trace: api.trace,
        binds_to: api.binds_to.clone(),
        counters: compiler.services.metrics.counters("api", &api.name.value),
        name: api.name.value.clone(),
    }
}

/// A definition that is written in YAML, as JSON; what is neither stays as it is.
fn as_json(definition: Arc<[u8]>) -> Arc<[u8]> {
    if matches!(definition.trim_ascii_start().first(), Some(b'{' | b'[' | b'<') | None) {
        return definition;
    }
    let read = message::yaml::parse(&String::from_utf8_lossy(&definition));
    match read {
        Ok(value @ serde_json::Value::Object(_)) => value.to_string().into_bytes().into(),
        _ => definition,
    }
}

/// What checks the messages of an API by its definition, where it asks for that.
fn validation(
    api: &config::Api,
    definition: Option<&[u8]>,
    compiler: &mut Compiler<'_>,
) -> Option<Arc<dyn Stage>> {
    let validation = compiler.registry.validation.filter(|_| api.validate_schema)?;
    let Some(definition) = definition else {
        if api.publish_swagger.as_ref().is_none_or(|key| !compiler.is_not_fetched(&key.value)) {
            compiler.warning(
                "no-definition",
                "validateSchema has no definition to check messages by",
                api.name.span,
                "messages are not checked; name the definition with publishSwagger",
            );
        }
        return None;
    };
    (validation.definition)(api, definition, compiler)
}

/// The rule of an API.
pub(super) fn api_rule(api: &config::Api) -> ApiRule {
    let (strategy, version) = match &api.version {
        config::ApiVersion::Default => (VersionStrategy::Default, ""),
        config::ApiVersion::Context(version) => (VersionStrategy::Context, version.as_str()),
        config::ApiVersion::Url(version) => (VersionStrategy::Url, version.as_str()),
    };
    let protocol = |scheme: &config::Scheme| match scheme {
        config::Scheme::Http => Protocol::Http,
        config::Scheme::Https => Protocol::Https,
    };
    ApiRule {
        context: normalize_context(&api.context, version, strategy),
        version: version.to_owned(),
        strategy,
        hostname: api.hostname.clone(),
        port: api.port,
        transport: match api.transports.as_slice() {
            [only] => Some(protocol(only)),
            _ => None,
        },
    }
}

/// The rule of a resource; the error is a message and its place.
fn resource_rule(resource: &config::Resource) -> Result<ResourceRule, (String, Span)> {
    let path = match &resource.mapping {
        Mapping::Default => PathRule::Default,
        Mapping::UriTemplate(key) => {
            // A request for `/context?a=b` asks for `/?a=b` of the API, and templates are written for either form.
            let inserted = usize::from(key.value.starts_with('?'));
            let template = match inserted {
                0 => ResourceTemplate::compile(&key.value),
                _ => ResourceTemplate::compile(&format!("/{}", key.value)),
            };
            PathRule::Template(template.map_err(|error| {
                let start = error.span.start.saturating_sub(inserted);
                (error.message, key.span.part(start, error.span.len().max(1)))
            })?)
        }
        Mapping::UrlMapping(key) => PathRule::Mapping(
            UrlMapping::compile(&key.value)
                .map_err(|error| (error.message, key.span.part(error.span.start, error.span.len().max(1))))?,
        ),
    };
    let user_agent = match &resource.user_agent {
        None => None,
        Some(key) => Some(UserAgent::compile(&key.value).map_err(|error| (error.message, key.span))?),
    };
    Ok(ResourceRule {
        methods: resource.methods.iter().map(|method| method.as_str().to_owned()).collect(),
        path,
        content_type: resource.content_type.as_ref().map(|key| key.value.clone()),
        user_agent,
        binds_to: resource.binds_to.clone(),
        protocol: resource.protocol.map(|scheme| match scheme {
            config::Scheme::Http => Protocol::Http,
            config::Scheme::Https => Protocol::Https,
        }),
    })
}
