//! `call-without-timeout`: a `call` that waits for the global timeout.

use crate::Rule;
use crate::look::{Finding, Look};
use crate::references::literal_key;
use config::{Element, Endpoint, EndpointKind};
use diagnostics::Severity;

pub const RULE: Rule = Rule {
    id: "call-without-timeout",
    severity: Severity::Note,
    summary: "A `call` goes to an endpoint that sets no timeout of its own.",
    reason: "`call` holds the message, and its client, until the answer comes. If the endpoint has no `timeout`, that may take as long as the global timeout
(`synapse.global_timeout_interval`, 120 s by default), longer than most clients wait.

Give the endpoint a `timeout` with the time that a client waits, and the `responseAction` `fault`.",
    example: r#"<sequence name="Ask">
  <call>
    <endpoint>
      <http method="get" uri-template="http://localhost:9000/stock"/>
    </endpoint>
  </call>
  <respond/>
</sequence>"#,
    mended: r#"<sequence name="Ask">
  <call>
    <endpoint>
      <http method="get" uri-template="http://localhost:9000/stock">
        <timeout>
          <duration>10000</duration>
          <responseAction>fault</responseAction>
        </timeout>
      </http>
    </endpoint>
  </call>
  <respond/>
</sequence>"#,
    check,
};

fn check(look: &mut Look<'_>) {
    let mut reported = Vec::new();
    for step in look.steps() {
        let Some(written) = step.child("endpoint").filter(|_| step.is("call")) else { continue };
        let waits = match literal_key(written, "key") {
            Some(name) => {
                let endpoint = look.configuration.endpoints.get(name);
                endpoint
                    .is_some_and(|endpoint| waits(&endpoint.kind))
                    .then(|| endpoint.map(|e| e.element.clone()))
            }
            None if written.attribute("key").is_some() => None,
            None => parsed(written).filter(|endpoint| waits(&endpoint.kind)).map(|_| None),
        };
        let Some(named) = waits else { continue };
        // An endpoint that many calls name is reported once.
        let place = named.as_ref().map_or(written.start_tag(), Element::start_tag);
        if reported.contains(&place) {
            continue;
        }
        reported.push(place);
        let seconds = look.settings.global_timeout.as_secs();
        let label = format!("it waits for up to {seconds} s: the endpoint has no `timeout`");
        let message = "this `call` sets no time to wait";
        look.report(match named {
            Some(endpoint) => {
                Finding::new(message, written.start_tag(), label).and(endpoint.start_tag(), "the endpoint")
            }
            None => Finding::new(message, written.start_tag(), label),
        });
    }
}

fn parsed(element: &Element) -> Option<Endpoint> {
    Endpoint::parse(element, &mut diagnostics::Diagnostics::new())
}

/// Whether it has a fixed address and no timeout.
fn waits(kind: &EndpointKind) -> bool {
    match kind {
        EndpointKind::Address(endpoint) => {
            endpoint.definition.timeout.is_none()
                && !endpoint.uri.starts_with("local:")
                && !endpoint.uri.starts_with('$')
        }
        EndpointKind::Http(endpoint) => endpoint.definition.timeout.is_none(),
        EndpointKind::Wsdl(endpoint) => endpoint.definition.timeout.is_none(),
        _ => false,
    }
}
