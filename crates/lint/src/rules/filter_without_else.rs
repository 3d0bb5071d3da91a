//! `filter-without-else`: messages without a branch are lost.

use crate::Rule;
use crate::look::{Finding, Look, Phase};
use crate::ways::{Walk, Ways};
use diagnostics::Severity;

pub const RULE: Rule = Rule {
    id: "filter-without-else",
    severity: Severity::Warning,
    summary: "A flow loses messages for which a `filter` without `else`, or a `switch` without `default`, has no branch.",
    reason: "If the condition does not hold, or no `case` matches, the message goes on after the `filter` or `switch`. If the flow ends there,
the client gets 202 and an empty body, and the message is lost, while other messages are sent or answered.

Add the missing branch: an `else` or `default` that answers (`respond` with a status of its own), or `drop` if the loss is intended.",
    example: r#"<api name="Orders" context="/orders">
  <resource methods="POST">
    <inSequence>
      <filter xpath="//order/total > 0">
        <then>
          <send>
            <endpoint>
              <address uri="http://localhost:9000/orders"/>
            </endpoint>
          </send>
        </then>
      </filter>
    </inSequence>
  </resource>
</api>"#,
    mended: r#"<api name="Orders" context="/orders">
  <resource methods="POST">
    <inSequence>
      <filter xpath="//order/total > 0">
        <then>
          <send>
            <endpoint>
              <address uri="http://localhost:9000/orders"/>
            </endpoint>
          </send>
        </then>
        <else>
          <property name="HTTP_SC" value="422" scope="axis2"/>
          <respond/>
        </else>
      </filter>
    </inSequence>
  </resource>
</api>"#,
    check,
};

fn check(look: &mut Look<'_>) {
    let mut reported = Vec::new();
    let mut found = Vec::new();
    for flow in look.flows() {
        if flow.phase != Phase::In || flow.endpoint {
            continue;
        }
        let mut walk = Walk::new(look);
        let lost = walk.list(flow.list, Ways::BEGIN).untouched;
        let mut complete = Walk::new(look);
        complete.branches_complete = true;
        if !lost || complete.list(flow.list, Ways::BEGIN).untouched {
            continue;
        }
        for step in walk.incomplete {
            if reported.contains(&step.start_tag()) {
                continue;
            }
            reported.push(step.start_tag());
            let (name, branch, messages) = match step.local() {
                "switch" => ("switch", "default", "that no `case` is for"),
                _ => ("filter", "else", "for which the condition does not hold"),
            };
            let message = format!("messages {messages} are lost");
            let label = format!(
                "this `{name}` has no `{branch}`, and nothing behind it sends or answers the message"
            );
            found.push(Finding::new(message, step.start_tag(), label).help(format!(
                "the client gets 202 with an empty body: answer in `{branch}`, or `drop` where this is meant"
            )));
        }
    }
    found.into_iter().for_each(|finding| look.report(finding));
}
