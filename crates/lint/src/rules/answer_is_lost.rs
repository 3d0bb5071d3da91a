//! `answer-is-lost`: an out sequence that does not send the answer on.

use crate::Rule;
use crate::look::{Finding, Flow, Look, Phase};
use crate::references::literal_key;
use crate::ways::{INTENTIONS, Walk, Ways, calls, prepares};
use config::Element;
use diagnostics::Severity;
use std::collections::HashSet;

pub const RULE: Rule = Rule {
    id: "answer-is-lost",
    severity: Severity::Warning,
    summary: "A flow ends without sending the answer of an endpoint to the client.",
    reason: "A proxy service or resource without an out sequence passes the answers of its endpoint to the client. An out sequence has to do that itself: if it ends
without `send` or `respond`, the client gets 202 and an empty body instead of the answer.

End the out sequence with `send` (which sends to the client there) or `respond`, or remove it.

An in sequence that changes the answer of a `call` (with a payload, a header, a transformation), and then ends, loses it in the same way. One that only logs the answer may
be intended: see [empty-answer](empty-answer.md).",
    example: r#"<proxy name="Orders">
  <target>
    <endpoint>
      <address uri="http://localhost:9000/orders"/>
    </endpoint>
    <outSequence>
      <log level="full"/>
    </outSequence>
  </target>
</proxy>"#,
    mended: r#"<proxy name="Orders">
  <target>
    <endpoint>
      <address uri="http://localhost:9000/orders"/>
    </endpoint>
    <outSequence>
      <log level="full"/>
      <send/>
    </outSequence>
  </target>
</proxy>"#,
    check,
};

fn check(look: &mut Look<'_>) {
    let flows = look.flows();
    for flow in flows.iter().filter(|flow| flow.phase == Phase::In && flow.key.is_none() && !flow.endpoint) {
        check_call(look, flow);
    }
    for flow in flows.iter() {
        if flow.phase != Phase::Out {
            continue;
        }
        let mut walk = Walk::new(look);
        if walk.list(flow.list, Ways::BEGIN) != Ways::BEGIN || !walk.incomplete.is_empty() {
            continue;
        }
        // Responses come to the out sequence if the message is sent with `send`, or to the endpoint of the proxy service.
        let request = flows.iter().find(|f| f.phase == Phase::In && f.artifact == flow.artifact);
        let sent = flow.endpoint || request.is_some_and(|request| sends(look, request.list));
        let one_way = request.is_some_and(|request| is_one_way(look, request.list));
        if !sent || one_way {
            continue;
        }
        let message = format!("the answers to the {} `{}` are lost", flow.owner.kind, flow.owner.name);
        let label = "this sequence does not send them to the client";
        let finding = match flow.key {
            Some(key) => Finding::new(message, key.span, label).and(flow.list.start_tag(), "this one"),
            None => Finding::new(message, flow.list.start_tag(), label),
        };
        look.report(finding.help("end it with `<send/>`, or leave the out sequence out"));
    }
}

/// An in sequence that changes the response of a `call`, and ends.
fn check_call<'a>(look: &mut Look<'a>, flow: &Flow<'a>) {
    let steps = look.language.steps(flow.list);
    let Some(call) = steps.iter().rposition(|step| calls(step)) else { return };
    let behind = &steps[call + 1..];
    let keeps_answer = |step: &&Element| {
        prepares(step) || matches!(step.local(), "log" | "property" | "propertyGroup" | "variable")
    };
    let is_get = steps[call].local() == "http.get";
    // `http.get` is called for its response.
    let prepared = behind.iter().find(|step| prepares(step)).or(is_get.then_some(&steps[call]));
    // A flow that sets the client's response, or keeps the response of the call, means it.
    if !behind.iter().all(keeps_answer)
        || steps[call].child("target").is_some()
        || is_one_way(look, flow.list)
        || steps.iter().any(|step| step.attr("name").is_some_and(|name| INTENTIONS.contains(&name.trim())))
    {
        return;
    }
    let Some(prepared) = prepared else { return };
    let message = format!("the answers to the {} `{}` are lost", flow.owner.kind, flow.owner.name);
    look.report(
        Finding::new(message, prepared.start_tag(), "prepared, and then nobody gets it: the client gets 202")
            .and(steps[call].start_tag(), "the answer comes from here")
            .help("end the sequence with `<respond/>`"),
    );
}

/// Whether a list, or a sequence that it runs, has a `send` without a receiving sequence.
fn sends<'a>(look: &Look<'a>, list: &'a Element) -> bool {
    let (mut names, mut waiting) = (HashSet::new(), vec![list]);
    while let Some(list) = waiting.pop() {
        for step in look.steps_in(list) {
            match step.local() {
                "send" if step.attribute("receive").is_none() => return true,
                "sequence" => {
                    if let Some(name) = literal_key(step, "key")
                        && let Some(named) = look.sequence(name)
                        && names.insert(name)
                    {
                        waiting.push(&named.element);
                    }
                }
                _ => {}
            }
        }
    }
    false
}

/// Whether the flow tells the client or the backend that there is no response.
pub(super) fn is_one_way<'a>(look: &Look<'a>, list: &'a Element) -> bool {
    let names = ["OUT_ONLY", "FORCE_SC_ACCEPTED", "RESPONSE", "ClientApiNonBlocking"];
    let is_set = |step: &Element| step.attr("name").is_some_and(|name| names.contains(&name.trim()));
    look.steps_in(list).into_iter().any(|step| is_set(step) || step.elements().any(is_set))
}
