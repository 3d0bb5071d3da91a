//! `circular-sequence`: sequences that run each other in a circle.

use crate::Rule;
use crate::look::{Finding, Look};
use crate::references::literal_key;
use config::Element;
use diagnostics::{Severity, Span};

pub const RULE: Rule = Rule {
    id: "circular-sequence",
    severity: Severity::Warning,
    summary: "Sequences or templates run each other in a circle that no condition breaks.",
    reason: "A message in such a circle runs through it until it has nested 512 sequences, and then faults.

Only steps that every message reaches count: a sequence that calls itself inside of a `filter` may end.",
    example: r#"<sequence name="First">
  <sequence key="Second"/>
</sequence>
<sequence name="Second">
  <sequence key="First"/>
</sequence>"#,
    mended: r#"<sequence name="First">
  <sequence key="Second"/>
</sequence>
<sequence name="Second">
  <respond/>
</sequence>"#,
    check,
};

/// Most sequences that are followed.
const LONGEST: usize = 100;

fn check(look: &mut Look<'_>) {
    let mut found = Vec::new();
    let mut closed: Vec<String> = Vec::new();
    let sequences = look.configuration.sequences.names().map(|name| ("sequence", name));
    let templates = look.configuration.sequence_templates.names().map(|name| ("template", name));
    for (kind, name) in sequences.chain(templates) {
        let mut way: Vec<(String, Span)> = Vec::new();
        let mut at = Some((kind, name.to_owned()));
        while let Some((kind, name)) = at.take() {
            let id = format!("{kind} {name}");
            if closed.contains(&id) || way.len() > LONGEST {
                break;
            }
            if let Some(first) = way.iter().position(|(step_id, _)| *step_id == id) {
                let members: Vec<&str> = way[first..]
                    .iter()
                    .map(|(step_id, _)| step_id.split_once(' ').map_or("", |(_, name)| name))
                    .collect();
                let circle = [&members[..], &[name.as_str()]].concat().join(" -> ");
                if let Some((_, span)) = way.last() {
                    found.push(
                        Finding::new(format!("a circle without an end: {circle}"), *span, "leads back")
                            .help("each message that comes here faults when it has nested 512 sequences"),
                    );
                }
                closed.extend(way[first..].iter().map(|(step_id, _)| step_id.clone()));
                break;
            }
            let list = match kind {
                "sequence" => look.sequence(&name).map(|s| &s.element),
                _ => look.configuration.sequence_templates.get(&name).map(|t| &t.sequence.element),
            };
            if let Some((kind, next, span)) = list.and_then(|list| next(look, list)) {
                way.push((id, span));
                at = Some((kind, next));
            }
        }
    }
    found.into_iter().for_each(|finding| look.report(finding));
}

/// The first sequence or template that every message in a list reaches.
fn next<'a>(look: &Look<'a>, list: &'a Element) -> Option<(&'static str, String, Span)> {
    for step in look.language.steps(list) {
        match step.local() {
            "sequence" => {
                let key = literal_key(step, "key")?;
                return Some(("sequence", key.to_owned(), step.value_span("key")));
            }
            "call-template" => {
                let key = literal_key(step, "target")?;
                return Some(("template", key.to_owned(), step.value_span("target")));
            }
            "log" | "property" | "propertyGroup" | "variable" | "header" | "payloadFactory" | "enrich" => {}
            _ => return None,
        }
    }
    None
}
