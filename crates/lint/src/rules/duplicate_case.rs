//! `duplicate-case`: two cases of a `switch` with the same pattern.

use crate::Rule;
use crate::look::{Finding, Look};
use diagnostics::Severity;

pub const RULE: Rule = Rule {
    id: "duplicate-case",
    severity: Severity::Warning,
    summary: "Two cases of a `switch` have the same pattern: the second one never runs.",
    reason: "Only the first `case` whose pattern matches runs.",
    example: r#"<sequence name="Route">
  <switch source="//symbol">
    <case regex="IBM">
      <sequence key="Fast"/>
    </case>
    <case regex="IBM">
      <sequence key="Slow"/>
    </case>
  </switch>
</sequence>
<sequence name="Fast"><respond/></sequence>
<sequence name="Slow"><respond/></sequence>"#,
    mended: r#"<sequence name="Route">
  <switch source="//symbol">
    <case regex="IBM">
      <sequence key="Fast"/>
    </case>
    <case regex="MSFT">
      <sequence key="Slow"/>
    </case>
  </switch>
</sequence>
<sequence name="Fast"><respond/></sequence>
<sequence name="Slow"><respond/></sequence>"#,
    check,
};

fn check(look: &mut Look<'_>) {
    for step in look.steps() {
        if !step.is("switch") {
            continue;
        }
        let cases: Vec<_> = step.children_named("case").filter_map(|case| case.attribute("regex")).collect();
        for (at, case) in cases.iter().enumerate() {
            if let Some(first) = cases[..at].iter().find(|first| first.value == case.value) {
                let message = format!("there are two cases `{}`", case.value);
                look.report(
                    Finding::new(message, case.value_span, "this one never runs")
                        .and(first.value_span, "this one does"),
                );
            }
        }
    }
}
