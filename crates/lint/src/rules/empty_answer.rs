//! `empty-answer`: a flow that has no effect that anybody sees, or loses the answer of its last call: the client gets 202.

use super::answer_is_lost::is_one_way;
use crate::Rule;
use crate::look::{Finding, Flow, Look, Phase};
use crate::references::literal_key;
use crate::ways::{INTENTIONS, calls, is_neutral, prepares};
use config::{Element, Transports};
use diagnostics::Severity;
use std::collections::HashSet;

pub const RULE: Rule = Rule {
    id: "empty-answer",
    severity: Severity::Note,
    summary: "A flow ends without an answer: the client gets 202 and an empty body.",
    reason: "If an in sequence ends and nothing has answered, the client gets 202 and an empty body. Reported are flows

* in which no step sends, stores, answers or drops the message: they only log it and set properties, in branches and parts too;
* which end behind a `call` with nothing but `log` and properties: the client does not get the answer of the backend.

Either may be meant, so this is a note. `respond` at the end answers the client; the property `FORCE_SC_ACCEPTED` (scope `axis2`), `OUT_ONLY` or `HTTP_SC`, or `drop`, says that no answer is meant.
A flow that changes the message and then loses it is reported by [message-is-lost](message-is-lost.md) and [answer-is-lost](answer-is-lost.md).",
    example: r#"<api name="Orders" context="/orders">
  <resource methods="POST">
    <inSequence>
      <call>
        <endpoint>
          <address uri="http://localhost:9000/orders">
            <timeout>
              <duration>30000</duration>
              <responseAction>fault</responseAction>
            </timeout>
          </address>
        </endpoint>
      </call>
      <log level="full"/>
    </inSequence>
  </resource>
</api>"#,
    mended: r#"<api name="Orders" context="/orders">
  <resource methods="POST">
    <inSequence>
      <call>
        <endpoint>
          <address uri="http://localhost:9000/orders">
            <timeout>
              <duration>30000</duration>
              <responseAction>fault</responseAction>
            </timeout>
          </address>
        </endpoint>
      </call>
      <log level="full"/>
      <respond/>
    </inSequence>
  </resource>
</api>"#,
    check,
};

/// Sequences and parts inside of each other; deeper flows are not checked.
const DEEPEST: usize = 40;

fn check(look: &mut Look<'_>) {
    for flow in look.flows() {
        if flow.phase != Phase::In || flow.endpoint || !has_client(look, &flow) {
            continue;
        }
        let mut seen = Seen::default();
        let is_quiet = quiet(look, flow.list, &mut seen, 0) && seen.steps > 0 && !seen.prepares;
        let lost = lost_call(look, &flow);
        if !is_quiet && lost.is_none() {
            continue;
        }
        let message =
            format!("the client of the {} `{}` gets 202 and an empty body", flow.owner.kind, flow.owner.name);
        let label = match lost {
            Some(_) => "nothing in it answers the client",
            None => "nothing in it sends, stores or answers the message",
        };
        let mut finding = match flow.key {
            Some(key) => Finding::new(message, key.span, label).and(flow.list.start_tag(), "this sequence"),
            None => Finding::new(message, flow.list.start_tag(), label),
        };
        if let Some(call) = lost {
            finding = finding.and(call.start_tag(), "what this brings is lost");
        }
        look.report(finding.help("end it with `<respond/>`; `FORCE_SC_ACCEPTED` says that 202 is meant"));
    }
}

/// Whether there may be a client: files that a proxy service takes have none.
fn has_client(look: &Look<'_>, flow: &Flow<'_>) -> bool {
    if flow.owner.kind != "proxy service" {
        return true;
    }
    look.configuration.proxies.get(flow.owner.name).is_none_or(|proxy| match &proxy.transports {
        Transports::All => true,
        Transports::Named(names) => names.iter().any(|name| matches!(&**name, "http" | "https")),
    })
}

#[derive(Default)]
struct Seen<'a> {
    steps: usize,
    prepares: bool,
    sequences: HashSet<&'a str>,
}

/// Whether no step of a list has an effect that anybody sees.
fn quiet<'a>(look: &Look<'a>, list: &'a Element, seen: &mut Seen<'a>, depth: usize) -> bool {
    depth < DEEPEST && look.language.steps(list).into_iter().all(|step| quiet_step(look, step, seen, depth))
}

fn quiet_step<'a>(look: &Look<'a>, step: &'a Element, seen: &mut Seen<'a>, depth: usize) -> bool {
    seen.steps += 1;
    seen.prepares |= prepares(step);
    let mut inner = || look.language.lists(step).into_iter().all(|list| quiet(look, list, seen, depth + 1));
    match step.local() {
        "property" => quiet_property(step),
        "propertyGroup" => step.children_named("property").all(quiet_property),
        "filter" | "switch" => {
            let sequences = step.elements().filter(|branch| branch.attribute("sequence").is_some());
            inner() && sequences.count() == 0
        }
        "iterate" | "clone" => {
            let outside = |target: &Element| {
                target.child("sequence").is_none()
                    || target.attribute("to").is_some()
                    || target.child("endpoint").is_some()
            };
            step.child("target").is_some() && !step.children_named("target").any(outside) && inner()
        }
        "foreach" => step.attribute("sequence").is_none() && inner(),
        "sequence" => {
            let named =
                literal_key(step, "key").and_then(|name| look.sequence(name).map(|found| (name, found)));
            match named {
                Some((name, found)) => {
                    !seen.sequences.insert(name) || quiet(look, &found.element, seen, depth + 1)
                }
                None => false,
            }
        }
        name => is_neutral(name),
    }
}

/// Whether a property says nothing about the answer, and is kept nowhere but with the message.
fn quiet_property(property: &Element) -> bool {
    let intended = property.attr("name").is_some_and(|name| INTENTIONS.contains(&name.trim()));
    let kept = property.attr("scope").is_some_and(|scope| matches!(scope.trim(), "registry" | "system"));
    !intended && !kept
}

/// The last call of a flow, if its answer is not changed and goes nowhere.
fn lost_call<'a>(look: &Look<'a>, flow: &Flow<'a>) -> Option<&'a Element> {
    let steps = look.language.steps(flow.list);
    let at = steps.iter().rposition(|step| calls(step))?;
    let call = steps[at];
    let silent = |step: &&Element| match step.local() {
        "log" | "variable" => true,
        "property" => quiet_property(step),
        "propertyGroup" => step.children_named("property").all(quiet_property),
        _ => false,
    };
    let intended = |step: &Element| step.attr("name").is_some_and(|name| INTENTIONS.contains(&name.trim()));
    let means_it =
        look.steps_in(flow.list).into_iter().any(|step| intended(step) || step.elements().any(intended));
    let is_lost = steps[at + 1..].iter().all(silent)
        && call.is("call")
        && call.child("target").is_none()
        && !means_it
        && !is_one_way(look, flow.list);
    is_lost.then_some(call)
}
