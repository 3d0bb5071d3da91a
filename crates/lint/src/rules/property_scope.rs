//! `property-scope`: a property of the engine in a scope where it has no effect.

use crate::Rule;
use crate::look::{Finding, Look};
use config::Element;
use diagnostics::{Edit, Severity};
use std::collections::HashSet;

pub const RULE: Rule = Rule {
    id: "property-scope",
    severity: Severity::Warning,
    summary: "A property that controls the engine is set in a scope in which the engine does not read it.",
    reason: "Properties such as `HTTP_SC` and `FORCE_SC_ACCEPTED` have an effect in the scope `axis2` only. Without `scope`, a property has the default scope, and only expressions read it.

Names that an expression of the configuration mentions are not reported, and `messageType` and `ContentType` only with a media type as the value.",
    example: r#"<sequence name="Refuse">
  <property name="HTTP_SC" value="403"/>
  <respond/>
</sequence>"#,
    mended: r#"<sequence name="Refuse">
  <property name="HTTP_SC" value="403" scope="axis2"/>
  <respond/>
</sequence>"#,
    check,
};

/// Names with a meaning in the scope `axis2`, and none in the scope `default`.
const AXIS2: &[&str] = &[
    "HTTP_SC",
    "FORCE_SC_ACCEPTED",
    "NO_ENTITY_BODY",
    "DISABLE_CHUNKING",
    "FORCE_HTTP_1.0",
    "FORCE_HTTP_CONTENT_LENGTH",
    "COPY_CONTENT_LENGTH_FROM_INCOMING",
    "FORCE_POST_PUT_NOBODY",
    "REST_URL_POSTFIX",
    "POST_TO_URI",
    "FULL_URI",
    "CHARACTER_SET_ENCODING",
    "NON_ERROR_HTTP_STATUS_CODES",
    "ERROR_HTTP_STATUS_CODES",
    "messageType",
    "ContentType",
];

/// Whether a property is meant for the engine. `messageType` may be a name of the author's, unless its value is a media type.
fn is_of_engine(property: &Element, name: &str) -> bool {
    let is_media_type = || property.attr("value").is_some_and(|value| value.contains('/'));
    AXIS2.contains(&name) && (!matches!(name, "messageType" | "ContentType") || is_media_type())
}

fn check(look: &mut Look<'_>) {
    let steps = look.steps();
    // A property that a step reads is the author's own.
    let mut read: HashSet<&str> = HashSet::new();
    for step in &steps {
        for (_, attribute) in look.language.expressions(step) {
            read.extend(AXIS2.iter().filter(|name| attribute.value.contains(**name)));
        }
        let text = step.text();
        read.extend(AXIS2.iter().filter(|name| text.contains(**name)));
    }
    for step in steps.into_iter().filter(|step| step.is("property")) {
        let Some(name) = step.attribute("name").filter(|name| is_of_engine(step, name.value.trim())) else {
            continue;
        };
        let is_set = step.attr("action").is_none_or(|action| action.trim() == "set");
        let scope = step.attr("scope").map_or("default", str::trim);
        if !is_set || !matches!(scope, "default" | "synapse") || read.contains(name.value.trim()) {
            continue;
        }
        let message = format!("`{}` has no effect without scope=\"axis2\"", name.value.trim());
        let finding =
            Finding::new(message, name.value_span, "set as a property of the message, which nobody reads");
        look.report(match step.attribute("scope") {
            Some(scope) => {
                let edit =
                    Edit { span: scope.value_span, was: scope.value.to_string(), text: "axis2".to_owned() };
                finding.fix("write scope=\"axis2\"", edit)
            }
            None => {
                let text = "scope=\"axis2\" name".to_owned();
                finding
                    .fix("add scope=\"axis2\"", Edit { span: name.name_span, was: "name".to_owned(), text })
            }
        });
    }
}
