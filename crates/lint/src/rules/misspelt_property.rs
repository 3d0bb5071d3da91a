//! `misspelt-property`: a property is set whose name is nearly one that controls the engine.

use crate::Rule;
use crate::look::{Finding, Look};
use crate::rules::misspelt_name::is_slip;
use config::Element;
use diagnostics::{Edit, Severity, respelt};

pub const RULE: Rule = Rule {
    id: "misspelt-property",
    severity: Severity::Warning,
    summary: "A property is set that nothing reads, and one of nearly the same name controls the engine.",
    reason: "A property with another name than [those that control the engine](../properties.md) is one of the author's own, so a slip in the name keeps it from having an
effect, without an error.

Reported is a name with one difference (a letter too many, missing, wrong or swapped, another case, `_` or none) to one of those that have an effect in its scope, if the name occurs nowhere else in the
configuration. The scopes are `axis2`, and for the few properties that are read there, `default`.",
    example: r#"<sequence name="Refuse">
  <property name="HTTP_SCC" value="403" scope="axis2"/>
  <property name="messageTpye" value="application/json" scope="axis2"/>
  <respond/>
</sequence>"#,
    mended: r#"<sequence name="Refuse">
  <property name="HTTP_SC" value="403" scope="axis2"/>
  <property name="messageType" value="application/json" scope="axis2"/>
  <respond/>
</sequence>"#,
    check,
};

/// Elements nested deeper than this are not searched.
const DEEPEST: usize = 200;

/// Names with an effect in the scope `axis2` when a flow sets or removes them.
const AXIS2: &[&str] = &[
    "CHARACTER_SET_ENCODING",
    "COPY_CONTENT_LENGTH_FROM_INCOMING",
    "ContentType",
    "DISABLE_CHUNKING",
    "ERROR_HTTP_STATUS_CODES",
    "EXCESS_TRANSPORT_HEADERS",
    "FAULTS_AS_HTTP_200",
    "FORCE_CONNECTION_CLOSE",
    "FORCE_HTTP_1.0",
    "FORCE_HTTP_CONTENT_LENGTH",
    "FORCE_POST_PUT_NOBODY",
    "FORCE_SC_ACCEPTED",
    "FULL_URI",
    "HTTP_ETAG",
    "HTTP_METHOD",
    "HTTP_SC",
    "HTTP_SC_DESC",
    "HTTP_SOCKET_TIMEOUT",
    "NON_ERROR_HTTP_STATUS_CODES",
    "NO_ENTITY_BODY",
    "NO_KEEPALIVE",
    "POST_TO_URI",
    "PRESERVE_SPACES",
    "REQUEST_HOST_HEADER",
    "REST_URL_POSTFIX",
    "SC_ACCEPTED",
    "SEND_TIMEOUT",
    "TRANSPORT_HEADERS",
    "WRITE_XML_DECLARATION",
    "enableMTOM",
    "enableSwA",
    "messageType",
    "setCharacterEncoding",
];

/// Names with an effect in the scope `default` that nobody gives to a property of his own by chance.
const DEFAULT: &[&str] = &[
    "BLOCKING_SENDER_PRESERVE_REQ_HEADERS",
    "FORCE_ERROR_ON_SOAP_FAULT",
    "OUT_ONLY",
    "PRESERVE_WS_ADDRESSING",
    "QUOTE_STRING_IN_PAYLOAD_FACTORY_JSON",
    "STOP_TARGET_EXECUTION_ON_FAILURE",
];

/// What WSO2 knows, and what is one letter from a name above.
const OTHERS: &[&str] = &["contentType", "IGNORE_SC_ACCEPTED"];

fn check(look: &mut Look<'_>) {
    let flows: Vec<_> = look.flows().into_iter().filter(|flow| flow.key.is_none()).collect();
    let steps = look.steps();
    let set: Vec<&Element> = steps
        .iter()
        .flat_map(|step| match step.local() {
            "property" => vec![*step],
            "propertyGroup" => step.children_named("property").collect(),
            _ => Vec::new(),
        })
        .collect();
    let mut found = Vec::new();
    for property in &set {
        let Some(attribute) = property.attribute("name") else { continue };
        let name = attribute.value.trim();
        let Some(meant) = meant(name, property.attr("scope").map_or("default", str::trim)) else { continue };
        // A property that something reads is the author's own.
        if flows.iter().any(|flow| reads(flow.list, name, 0)) {
            continue;
        }
        let message = format!("`{name}` has no effect: no property of the engine has this name");
        let finding = Finding::new(message, attribute.value_span, "nobody reads it");
        found.push(match respelt(name, [meant]) {
            Some(_) => {
                let edit = Edit {
                    span: attribute.value_span,
                    was: attribute.value.to_string(),
                    text: meant.to_owned(),
                };
                finding.fix(format!("write `{meant}`"), edit)
            }
            None => finding.help(format!("did you mean `{meant}`?")),
        });
    }
    found.into_iter().for_each(|finding| look.report(finding));
}

/// The name with an effect that was meant; `None`: it has one, or it is another name.
fn meant(name: &str, scope: &str) -> Option<&'static str> {
    let candidates = match scope {
        "axis2" => AXIS2,
        "default" | "synapse" => DEFAULT,
        _ => return None,
    };
    if [AXIS2, DEFAULT, OTHERS].iter().any(|names| names.contains(&name)) {
        return None;
    }
    let slip = || candidates.iter().copied().find(|meant| is_slip(name, meant));
    respelt(name, candidates.iter().copied()).or_else(slip)
}

/// Whether something in an element names it, other than to set it.
fn reads(element: &Element, name: &str, depth: usize) -> bool {
    let sets = |attribute: &config::Attribute| element.is("property") && &*attribute.name.local == "name";
    element.attributes().iter().any(|attribute| !sets(attribute) && attribute.value.contains(name))
        || element.text().contains(name)
        || (depth < DEEPEST && element.elements().any(|child| reads(child, name, depth + 1)))
}
