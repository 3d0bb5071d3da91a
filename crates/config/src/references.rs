//! References between artifacts: a key that nothing defines is a warning, because keys are resolved when a
//! message needs them and the registry may have them by then.

use crate::artifacts::{SequenceRef, TargetEndpoint};
use crate::configuration::Configuration;
use crate::endpoint::{Endpoint, EndpointKind};
use crate::value::Key;
use diagnostics::{Diagnostic, Diagnostics};

/// Reports the references of proxies, APIs, endpoints, processors and inbound endpoints that lead nowhere.
pub(crate) fn check(configuration: &Configuration, diagnostics: &mut Diagnostics) {
    let mut check = Check { configuration, diagnostics };
    for proxy in configuration.proxies.iter() {
        let target = &proxy.target;
        check.sequences(&target.in_sequence, &target.out_sequence, &target.fault_sequence);
        match &target.endpoint {
            Some(TargetEndpoint::Named(key)) => check.endpoint_key(key),
            Some(TargetEndpoint::Inline(endpoint)) => check.endpoint(endpoint),
            None => {}
        }
    }
    for resource in configuration.apis.iter().flat_map(|api| &api.resources) {
        check.sequences(&resource.in_sequence, &resource.out_sequence, &resource.fault_sequence);
    }
    for sequence in configuration.sequences.iter() {
        sequence.on_error.iter().for_each(|key| check.handler(key));
    }
    for endpoint in configuration.endpoints.iter() {
        check.endpoint(endpoint);
    }
    for processor in configuration.message_processors.iter() {
        check.store(&processor.message_store);
        processor.target_endpoint.iter().for_each(|key| check.endpoint_key(key));
    }
    for inbound in configuration.inbound_endpoints.iter() {
        inbound.sequence.iter().for_each(|key| check.sequence(key));
        inbound.on_error.iter().for_each(|key| check.handler(key));
    }
}

struct Check<'a> {
    configuration: &'a Configuration,
    diagnostics: &'a mut Diagnostics,
}

impl Check<'_> {
    fn sequences(
        &mut self,
        into: &Option<SequenceRef>,
        back: &Option<SequenceRef>,
        fault: &Option<SequenceRef>,
    ) {
        for (reference, handles) in [(into, false), (back, false), (fault, true)] {
            match reference {
                Some(SequenceRef::Named(key)) if handles => self.handler(key),
                Some(SequenceRef::Named(key)) => self.sequence(key),
                Some(SequenceRef::Inline(sequence)) => {
                    sequence.on_error.iter().for_each(|key| self.handler(key));
                    sequence.key.iter().for_each(|key| self.sequence(key));
                }
                None => {}
            }
        }
    }

    /// A sequence that messages run through.
    fn sequence(&mut self, key: &Key) {
        self.sequence_or(key, "messages that come here fault");
    }

    /// A sequence that handles errors.
    fn handler(&mut self, key: &Key) {
        self.sequence_or(key, "errors go to the next handler outside");
    }

    fn sequence_or(&mut self, key: &Key, consequence: &str) {
        if !self.is_defined(key) {
            self.report("sequence", key, consequence, self.configuration.sequences.names());
        }
    }

    fn endpoint_key(&mut self, key: &Key) {
        if !self.is_defined(key) {
            self.report(
                "endpoint",
                key,
                "messages that come here fault",
                self.configuration.endpoints.names(),
            );
        }
    }

    fn endpoint(&mut self, endpoint: &Endpoint) {
        endpoint.on_error.iter().for_each(|key| self.handler(key));
        match &endpoint.kind {
            EndpointKind::Reference(key) => self.endpoint_key(key),
            EndpointKind::Template(instance) if !self.is_defined(&instance.template) => {
                self.report(
                    "endpoint template",
                    &instance.template,
                    "the endpoint is left out",
                    self.configuration.endpoint_templates.names(),
                );
            }
            _ => {}
        }
        endpoint.children().iter().for_each(|child| self.endpoint(child));
    }

    fn store(&mut self, key: &Key) {
        if self.configuration.message_stores.get(key).is_none() {
            self.report(
                "message store",
                key,
                "no message is taken",
                self.configuration.message_stores.names(),
            );
        }
    }

    fn is_defined(&self, key: &Key) -> bool {
        // An expression is looked up when it has a value; a marked parameter when it is replaced.
        key.starts_with(['{', '$']) || self.configuration.has_key(key) || self.is_in_registry(key)
    }

    /// A registry on another server is checked when it is read.
    fn is_in_registry(&self, key: &Key) -> bool {
        self.configuration.registry.url.is_some() || self.configuration.registry.has(key)
    }

    fn report<'a>(&mut self, kind: &str, key: &Key, consequence: &str, names: impl Iterator<Item = &'a str>) {
        self.diagnostics.push(
            Diagnostic::warning("unknown-reference", format!("there is no {kind} `{key}`"))
                .at(key.span, format!("neither in the configuration nor in the registry: {consequence}"))
                .did_you_mean(key, names),
        );
    }
}
