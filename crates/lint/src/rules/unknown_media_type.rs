//! `unknown-media-type`: a misspelt media type, so that the message is written in another format.

use crate::Rule;
use crate::look::{Finding, Look};
use config::{Attribute, Element};
use diagnostics::{Edit, Severity, nearest};

pub const RULE: Rule = Rule {
    id: "unknown-media-type",
    severity: Severity::Warning,
    summary: "A media type is misspelt: the payload is made or written as XML instead.",
    reason: "A `payloadFactory` makes JSON if its `media-type` contains `json`, text if it contains `text`, and XML otherwise, whatever is in its `format`. A message with an unknown `messageType`
is written as XML, with that type as its label.

Types that are only unusual are not reported, because they may be intended.",
    example: r#"<sequence name="Answer">
  <payloadFactory media-type="jason">
    <format>{"done": true}</format>
    <args/>
  </payloadFactory>
  <property name="messageType" value="application/jsn" scope="axis2"/>
  <respond/>
</sequence>"#,
    mended: r#"<sequence name="Answer">
  <payloadFactory media-type="json">
    <format>{"done": true}</format>
    <args/>
  </payloadFactory>
  <property name="messageType" value="application/json" scope="axis2"/>
  <respond/>
</sequence>"#,
    check,
};

/// The registered types before the slash.
const TYPES: &[&str] =
    &["application", "text", "multipart", "image", "audio", "video", "font", "message", "model"];

/// The most common subtypes.
const SUBTYPES: &[&str] = &[
    "json",
    "xml",
    "soap+xml",
    "plain",
    "csv",
    "html",
    "javascript",
    "x-www-form-urlencoded",
    "form-data",
    "related",
    "mixed",
    "octet-stream",
    "binary",
    "pdf",
    "zip",
];

/// The words that `media-type` of a `payloadFactory` may contain.
const MADE: &[&str] = &["xml", "json", "text"];

fn check(look: &mut Look<'_>) {
    let mut found = Vec::new();
    for step in look.steps() {
        if step.is("payloadFactory") {
            found.extend(step.attribute("media-type").and_then(of_payload_factory));
        }
        let beside = step.elements().filter(|_| step.is("propertyGroup"));
        for property in std::iter::once(step).chain(beside).filter(|e| e.is("property")) {
            found.extend(of_property(property));
        }
    }
    found.into_iter().for_each(|finding| look.report(finding));
}

/// Checks the `media-type` of a `payloadFactory`.
fn of_payload_factory(attribute: &Attribute) -> Option<Finding> {
    let value = attribute.value.trim();
    if value.is_empty() || value.contains(['$', '{']) || MADE.iter().any(|word| value.contains(word)) {
        return None;
    }
    let message = format!("`payloadFactory` makes nothing of the type `{value}`");
    let finding = Finding::new(message, attribute.value_span, "taken as `xml`");
    let lower = value.to_ascii_lowercase();
    Some(match MADE.iter().find(|word| lower.contains(*word)) {
        Some(word) => finding.fix(
            format!("write `{word}`"),
            Edit { span: attribute.value_span, was: attribute.value.to_string(), text: (*word).to_owned() },
        ),
        None => finding.help(match nearest(value, MADE.iter().copied()) {
            Some(word) => format!("did you mean `{word}`?"),
            None => "expected `xml`, `json` or `text`".to_owned(),
        }),
    })
}

/// Checks a property `messageType` or `ContentType`.
fn of_property(property: &Element) -> Option<Finding> {
    let name = property.attr("name").map(str::trim)?;
    let attribute = property.attribute("value")?;
    if !matches!(name, "messageType" | "ContentType")
        || property.attr("scope").is_none_or(|scope| scope.trim() != "axis2")
    {
        return None;
    }
    let value = attribute.value.split(';').next().unwrap_or_default().trim();
    if value.is_empty() || value.contains(['$', '{']) {
        return None;
    }
    let label = match name {
        "messageType" => "no type that messages are written in",
        _ => "no registered type",
    };
    let finding = Finding::new(format!("`{value}` is not a media type"), attribute.value_span, label);
    let lower = value.to_ascii_lowercase();
    let Some((kind, subtype)) = lower.split_once('/') else {
        let meant =
            nearest(&lower, MADE.iter().copied()).or(MADE.iter().copied().find(|word| lower == *word))?;
        let whole = if meant == "text" { "text/plain".to_owned() } else { format!("application/{meant}") };
        return Some(finding.help(format!("did you mean `{whole}`?")));
    };
    let meant = (corrected(kind, TYPES)?, corrected(subtype, SUBTYPES)?);
    (meant != (kind, subtype)).then(|| finding.help(format!("did you mean `{}/{}`?", meant.0, meant.1)))
}

/// The intended word: itself if it is one of `words`, or the one that is one slip away.
fn corrected<'w>(word: &str, words: &[&'w str]) -> Option<&'w str> {
    if let Some(exact) = words.iter().copied().find(|w| *w == word) {
        return Some(exact);
    }
    nearest(word, words.iter().copied()).filter(|near| near.len().abs_diff(word.len()) <= 1)
}
