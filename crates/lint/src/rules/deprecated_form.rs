//! `deprecated-form`: language that has a newer form.

use crate::Rule;
use crate::look::{Finding, Look};
use diagnostics::Severity;

pub const RULE: Rule = Rule {
    id: "deprecated-form",
    severity: Severity::Note,
    summary: "A mediator has an old form, for which there is a newer one.",
    reason: "It still runs in Busbar. Micro Integrator has no editor or documentation for it any more, so new configurations should use its replacement.",
    example: r#"<sequence name="Ask">
  <callout serviceURL="http://localhost:9000/stock">
    <source type="envelope"/>
    <target key="answer"/>
  </callout>
  <respond/>
</sequence>"#,
    mended: r#"<sequence name="Ask">
  <call blocking="true">
    <target type="property">answer</target>
    <endpoint>
      <address uri="http://localhost:9000/stock">
        <timeout>
          <duration>10000</duration>
          <responseAction>fault</responseAction>
        </timeout>
      </address>
    </endpoint>
  </call>
  <respond/>
</sequence>"#,
    check,
};

/// Old mediators, and their successors.
const FORMS: &[(&str, &str)] = &[
    ("callout", "`call` with blocking=\"true\""),
    ("conditionalRouter", "`filter` or `switch`"),
    ("router", "`filter` or `switch`"),
    ("in", "an in sequence of a proxy service or API"),
    ("out", "an out sequence of a proxy service or API"),
    ("bam", "`publishEvent`, or `log`"),
    ("event", "a message store, or `clone`"),
    ("enqueue", "`sequence`: priorities have no effect here"),
];

fn check(look: &mut Look<'_>) {
    for step in look.steps() {
        let Some((name, instead)) = FORMS.iter().find(|(name, _)| step.is(name)) else { continue };
        // Artifacts in the Apache dialect have no other form.
        if look.settings.synapse_dialect
            && matches!(*name, "in" | "out" | "conditionalRouter" | "event" | "enqueue")
        {
            continue;
        }
        let message = format!("`{name}` is an old form");
        look.report(Finding::new(message, step.name_span(), format!("newer: {instead}")));
    }
}
