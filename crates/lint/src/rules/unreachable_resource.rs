//! `unreachable-resource`: a resource of an API after one that takes all its requests.

use crate::Rule;
use crate::look::{Finding, Look};
use config::{Key, Mapping, Resource};
use diagnostics::Severity;

pub const RULE: Rule = Rule {
    id: "unreachable-resource",
    severity: Severity::Warning,
    summary: "A resource of an API comes after one whose URI template matches all of its paths.",
    reason: "URI templates are tried in the order in which they are written, and the first one that matches is taken, even if a later one is more specific. Put `/orders/latest` before
`/orders/{id}`.

Only templates without query and operators are compared, and only resources that differ at most in their methods.",
    example: r#"<api name="Orders" context="/orders">
  <resource methods="GET" uri-template="/{id}">
    <inSequence>
      <respond/>
    </inSequence>
  </resource>
  <resource methods="GET" uri-template="/latest">
    <inSequence>
      <respond/>
    </inSequence>
  </resource>
</api>"#,
    mended: r#"<api name="Orders" context="/orders">
  <resource methods="GET" uri-template="/latest">
    <inSequence>
      <respond/>
    </inSequence>
  </resource>
  <resource methods="GET" uri-template="/{id}">
    <inSequence>
      <respond/>
    </inSequence>
  </resource>
</api>"#,
    check,
};

fn check(look: &mut Look<'_>) {
    for api in look.configuration.apis.iter() {
        for (at, resource) in api.resources.iter().enumerate() {
            let Some((template, segments)) = plain(resource) else { continue };
            let before = api.resources[..at].iter().find_map(|first| {
                let (key, key_segments) = plain(first)?;
                (takes(first, resource) && fits(&key_segments, &segments)).then_some(key)
            });
            if let Some(first) = before {
                let message = format!("no request comes to the resource `{}`", template.value);
                look.report(
                    Finding::new(message, template.span, "never reached")
                        .and(first.span, "this one is written before it and takes all its paths")
                        .help("put the more specific template first"),
                );
            }
        }
    }
}

/// Whether, apart from its path, `first` takes every request of `second`.
fn takes(first: &Resource, second: &Resource) -> bool {
    let methods = first.methods.is_empty()
        || (!second.methods.is_empty() && second.methods.iter().all(|method| first.methods.contains(method)));
    let unconditional =
        first.protocol.is_none() && first.content_type.is_none() && first.user_agent.is_none();
    methods && unconditional && first.binds_to.is_empty()
}

/// A segment of a template.
#[derive(PartialEq)]
enum Segment<'a> {
    Literal(&'a str),
    Variable,
}

/// The segments of a template of literals and whole variables.
fn plain(resource: &Resource) -> Option<(&Key, Vec<Segment<'_>>)> {
    let Mapping::UriTemplate(key) = &resource.mapping else { return None };
    let template = key.value.trim();
    if template.contains(['?', '*', '#']) {
        return None;
    }
    let segments: Option<Vec<_>> = template.trim_matches('/').split('/').map(segment).collect();
    segments.map(|segments| (key, segments))
}

fn segment(text: &str) -> Option<Segment<'_>> {
    if !text.contains(['{', '}']) {
        // Characters that a variable matches: letters and digits, no reserved characters.
        let is_plain =
            !text.is_empty() && text.bytes().all(|c| c.is_ascii_alphanumeric() || b"-._~".contains(&c));
        return is_plain.then_some(Segment::Literal(text));
    }
    let name = text.strip_prefix('{')?.strip_suffix('}')?;
    let is_name = !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || b"-._".contains(&c));
    is_name.then_some(Segment::Variable)
}

/// Whether all paths of `second` are paths of `first`.
fn fits(first: &[Segment<'_>], second: &[Segment<'_>]) -> bool {
    first.len() == second.len()
        && first.iter().zip(second).all(|(segment, other)| *segment == Segment::Variable || segment == other)
}
