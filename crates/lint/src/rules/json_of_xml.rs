//! `json-of-xml`: a JSONPath on a payload that an earlier step has made XML.

use crate::Rule;
use crate::look::{Finding, Look};
use config::Element;
use diagnostics::Severity;

pub const RULE: Rule = Rule {
    id: "json-of-xml",
    severity: Severity::Note,
    summary: "A JSONPath is evaluated on a payload that a step before it has made XML.",
    reason: "For the expression, the XML is converted to JSON by the [mapping](../mediation.md#json-and-xml): a list of one element is no array, texts that look like numbers are numbers, namespaces are
dropped. An expression that works with two items may fail with one.

Use an XPath for XML, or make the payload JSON.",
    example: r#"<sequence name="Ask">
  <payloadFactory media-type="xml">
    <format>
      <order xmlns="">
        <item>IBM</item>
      </order>
    </format>
    <args/>
  </payloadFactory>
  <property name="first" expression="json-eval($.order.item[0])"/>
  <respond/>
</sequence>"#,
    mended: r#"<sequence name="Ask">
  <payloadFactory media-type="xml">
    <format>
      <order xmlns="">
        <item>IBM</item>
      </order>
    </format>
    <args/>
  </payloadFactory>
  <property name="first" expression="//order/item[1]"/>
  <respond/>
</sequence>"#,
    check,
};

fn check(look: &mut Look<'_>) {
    let mut found = Vec::new();
    for list in look.lists() {
        let mut made: Option<&Element> = None;
        for step in look.language.steps(list) {
            if let Some(made) = made {
                let expressions = look.language.expressions(step);
                let json = expressions.iter().find(|(_, attribute)| reads_payload(&attribute.value));
                if let Some((_, attribute)) = json {
                    let label = "reads the payload as JSON";
                    let message = "this JSONPath reads a payload that is XML";
                    found.push(
                        Finding::new(message, attribute.value_span, label)
                            .and(made.start_tag(), "here it is made XML"),
                    );
                    break;
                }
            }
            made = match step.local() {
                "payloadFactory" if is_xml(step) => Some(step),
                // These steps do not change the payload.
                "log" | "property" | "variable" | "header" | "propertyGroup" => made,
                _ => None,
            };
            // After this step it may be JSON.
            if step.attr("name") == Some("messageType") {
                made = None;
            }
        }
    }
    found.into_iter().for_each(|finding| look.report(finding));
}

fn is_xml(step: &Element) -> bool {
    step.attr("media-type").is_none_or(|media| media.contains("xml")) && step.child("format").is_some()
}

fn reads_payload(expression: &str) -> bool {
    let expression = expression.trim();
    expression.starts_with("json-eval($.") || expression.starts_with("${payload.")
}
