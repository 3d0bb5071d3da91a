//! `unreachable-step`: a step after one that ends the flow.

use crate::Rule;
use crate::look::{Finding, Look};
use crate::ways::{Walk, Ways};
use config::Element;
use diagnostics::Severity;

pub const RULE: Rule = Rule {
    id: "unreachable-step",
    severity: Severity::Warning,
    summary: "A step comes after one that ends the flow, and never runs.",
    reason: "`respond`, `drop`, `loopback`, `throwError` and `send` end their flow; so does a `filter` or `switch` if all its branches end the flow, and a
sequence or template that ends in this way. Later steps in the same list never run. Behind `iterate` and `clone` copies go on only where a `call` of theirs was answered,
and the message itself only with `continueParent=\"true\"`.

Move the steps before the one that ends the flow, or remove them. Steps for the answer of a backend belong into the out sequence, or use `call` instead of
`send`. (With `dialect = \"synapse\"` the flow goes on after `send`.)

`drop` at the end changes nothing and is not reported, and neither is `respond` after a step that answers itself. `respond` behind `send` is: it does not
answer with what the backend says.",
    example: r#"<template name="Refuse">
  <sequence>
    <property name="HTTP_SC" value="403" scope="axis2"/>
    <respond/>
  </sequence>
</template>
<sequence name="Guard">
  <call-template target="Refuse"/>
  <log level="full"/>
</sequence>
<proxy name="Orders">
  <target>
    <inSequence>
      <respond/>
      <log level="full"/>
    </inSequence>
  </target>
</proxy>"#,
    mended: r#"<template name="Refuse">
  <sequence>
    <property name="HTTP_SC" value="403" scope="axis2"/>
    <respond/>
  </sequence>
</template>
<sequence name="Guard">
  <log level="full"/>
  <call-template target="Refuse"/>
</sequence>
<proxy name="Orders">
  <target>
    <inSequence>
      <log level="full"/>
      <respond/>
    </inSequence>
  </target>
</proxy>"#,
    check,
};

fn check(look: &mut Look<'_>) {
    let mut found = Vec::new();
    let mut walk = Walk::new(look);
    for list in look.lists() {
        let steps = look.language.steps(list);
        let ends = steps.iter().position(|step| !walk.step(step, Ways::ANY).any());
        if let Some(at) = ends
            && let (Some(end), Some(dead)) = (steps.get(at), steps.get(at + 1))
            && !is_harmless(end, &steps[at + 1..])
        {
            let message = format!("`{}` never runs", dead.local());
            let finding = Finding::new(message, dead.start_tag(), "no message gets here")
                .and(end.start_tag(), "the flow ends here");
            found.push(match end.is("send") && dead.is("respond") {
                true => finding.help(
                    "the answer of the backend goes through the out sequence, or to the client; remove `respond`, or write `call` for `send`",
                ),
                false if end.is("iterate") || end.is("clone") => finding.help(
                    "copies go on here only where a `call` of theirs was answered; put the step into the targets, or set continueParent=\"true\" for the message itself",
                ),
                false => finding,
            });
        }
    }
    found.into_iter().for_each(|finding| look.report(finding));
}

/// Whether the flow would go the same way if the steps after its end ran.
fn is_harmless(end: &Element, dead: &[&Element]) -> bool {
    let answers = !["drop", "throwError", "send"].iter().any(|name| end.is(name));
    dead.iter().all(|step| step.is("drop") || (step.is("respond") && answers))
}
