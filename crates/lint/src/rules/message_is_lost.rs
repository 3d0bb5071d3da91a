//! `message-is-lost`: a flow that responds with 202 and does nothing with the message.

use crate::Rule;
use crate::look::{Finding, Look, Phase};
use crate::ways::{Walk, Ways, prepares};
use diagnostics::Severity;

pub const RULE: Rule = Rule {
    id: "message-is-lost",
    severity: Severity::Warning,
    summary: "A flow ends without sending, storing or answering the message: the client gets 202, and the message is gone.",
    reason: "If an in sequence ends and the proxy service has no `endpoint`, the client gets 202 and an empty body. If no step
has sent, stored or used the message, it is lost in silence. Reported are flows that prepare the message (with a header, a payload, a transformation) and then end in this way; flows that only log: see [empty-answer](empty-answer.md).

End the flow with `send`, `respond`, or `call` and `respond`. If the loss is intended, end it with `drop`; if the client shall get only a
status, with the property `HTTP_SC` and `respond`.",
    example: r#"<proxy name="Orders">
  <target>
    <inSequence>
      <header name="Action" value="urn:order"/>
    </inSequence>
  </target>
</proxy>"#,
    mended: r#"<proxy name="Orders">
  <target>
    <inSequence>
      <header name="Action" value="urn:order"/>
      <send>
        <endpoint>
          <address uri="http://localhost:9000/orders"/>
        </endpoint>
      </send>
    </inSequence>
  </target>
</proxy>"#,
    check,
};

fn check(look: &mut Look<'_>) {
    for flow in look.flows() {
        if flow.phase != Phase::In || flow.endpoint {
            continue;
        }
        let mut walk = Walk::new(look);
        if walk.list(flow.list, Ways::BEGIN) != Ways::BEGIN || !walk.incomplete.is_empty() {
            continue;
        }
        // A flow that prepares a message means to send it. A flow that only logs may be complete.
        let Some(prepared) = walk.passed.iter().find(|step| prepares(step)) else {
            continue;
        };
        let prepared = prepared.start_tag();
        let message = format!("the messages of the {} `{}` are lost", flow.owner.kind, flow.owner.name);
        let label = "nothing in it sends, stores or answers the message: the client gets 202";
        let finding = match flow.key {
            Some(key) => Finding::new(message, key.span, label).and(flow.list.start_tag(), "this sequence"),
            None => Finding::new(message, flow.list.start_tag(), label),
        };
        let finding = finding.and(prepared, "here it is prepared for something");
        look.report(finding.help("end it with `send` or `respond`; `drop` says that this is meant"));
    }
}
