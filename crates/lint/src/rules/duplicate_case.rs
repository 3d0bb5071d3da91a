//! `duplicate-case`: two cases of a `switch` with the same pattern.

use crate::Rule;
use crate::look::{Finding, Look};
use diagnostics::Severity;

pub const RULE: Rule = Rule {
    id: "duplicate-case",
    severity: Severity::Warning,
    summary: "A case of a `switch` never runs: one before it has the same pattern, or matches everything.",
    reason: "Only the first `case` whose pattern matches runs. Behind `regex=\".*\"`, which matches every text without a line break, no other `case` is reached.",
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

/// Patterns that match every text without a line break.
const EVERYTHING: &[&str] = &[".*", "(.*)", "^.*$", ".*?"];

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
        let Some(at) = cases.iter().position(|case| EVERYTHING.contains(&&*case.value)) else { continue };
        // The same pattern again is reported above.
        let repeated = |value: &str| cases[..=at].iter().any(|first| &*first.value == value);
        let dead = cases[at + 1..].iter().find(|case| !repeated(&case.value) && !spans_lines(&case.value));
        if let Some(dead) = dead {
            look.report(
                Finding::new(
                    format!("the case `{}` never runs", dead.value),
                    dead.value_span,
                    "no text gets here",
                )
                .and(cases[at].value_span, "this matches every text")
                .help("move it before the one that matches everything"),
            );
        }
    }
}

/// Whether a pattern may match a text with a line break, which `.` does not match.
fn spans_lines(pattern: &str) -> bool {
    ["\\s", "\\S", "\\W", "\\D", "\\n", "\\r", "\\R", "\\v", "\\p", "\\P", "\\x", "\\u", "[^", "(?"]
        .iter()
        .any(|mark| pattern.contains(mark))
}
