//! `expression-as-text`: an expression is written where a text is read.

use crate::Rule;
use crate::look::{Finding, Look};
use config::{Attribute, Element};
use diagnostics::{Edit, Severity, Span};

pub const RULE: Rule = Rule {
    id: "expression-as-text",
    severity: Severity::Warning,
    summary: "A value looks like an expression, and is used as the text that it is.",
    reason: "The value of `value=\"$ctx:id\"` is the text `$ctx:id`, not the property `id`. Reported are attributes `value`, and parameters of connectors, \
that are as a whole `$ctx:…`, `$axis2:…`, `$trp:…`, `$url:…`, `$func:…`, `get-property(…)` or `json-eval(…)`; and these variables anywhere in a list of `headers` \
of a connector (`[[\"Authorization\", \"Bearer $ctx:token\"]]`), where only `${…}` is evaluated.

So are `${payload.id}` and its like in `property`, `variable` and `header`.

An attribute `expression` is evaluated. So is what stands in braces in a `with-param` or in a parameter of a connector: `{$ctx:id}`.",
    example: r#"<sequence name="Ask">
  <property name="id" value="$url:id"/>
  <call-template target="Log">
    <with-param name="what" value="get-property('id')"/>
  </call-template>
  <respond/>
</sequence>
<template name="Log">
  <parameter name="what"/>
  <sequence>
    <log>
      <property name="what" expression="$func:what"/>
    </log>
  </sequence>
</template>"#,
    mended: r#"<sequence name="Ask">
  <property name="id" expression="$url:id"/>
  <call-template target="Log">
    <with-param name="what" value="{get-property('id')}"/>
  </call-template>
  <respond/>
</sequence>
<template name="Log">
  <parameter name="what"/>
  <sequence>
    <log>
      <property name="what" expression="$func:what"/>
    </log>
  </sequence>
</template>"#,
    check,
};

/// Deeper children of a step are those of other steps, or content.
const DEEPEST: usize = 2;

fn check(look: &mut Look<'_>) {
    let mut found = Vec::new();
    for step in look.steps() {
        match step.name().local.contains('.') {
            true => found.extend(step.elements().filter_map(parameter)),
            false => values(step, DEEPEST, &mut found),
        }
    }
    found.into_iter().for_each(|finding| look.report(finding));
}

/// The attributes `value` of a step and of what configures it.
fn values(element: &Element, depth: usize, found: &mut Vec<Finding>) {
    found.extend(element.attribute("value").and_then(|value| attribute(element, value)));
    if depth > 0 {
        for child in element.elements().filter(|child| is_setting(child)) {
            values(child, depth - 1, found);
        }
    }
}

/// Whether a child of a step is one of its settings; other children may be steps, or the content of a payload.
fn is_setting(child: &Element) -> bool {
    ["property", "with-param", "arg", "args", "header", "parameter"].iter().any(|name| child.is(name))
}

fn attribute(element: &Element, value: &Attribute) -> Option<Finding> {
    let text = value.value.trim();
    // `with-param` evaluates `${…}`; what other elements do with it is not known here.
    let is_text = ["property", "variable", "header"].iter().any(|name| element.is(name));
    let is_expression = is_expression(text) || is_text && is_synapse_expression(text);
    if !is_expression || element.attribute("expression").is_some() {
        return None;
    }
    let finding = finding(text, value.value_span);
    Some(match element.is("with-param") {
        true => {
            let text = format!("{{{text}}}");
            let edit = Edit { span: value.value_span, was: value.value.to_string(), text };
            finding.fix("write it in braces", edit)
        }
        false => {
            let edit = Edit { span: value.name_span, was: "value".to_owned(), text: "expression".to_owned() };
            finding.fix("write it as `expression`", edit)
        }
    })
}

fn parameter(child: &Element) -> Option<Finding> {
    let text = child.text();
    let text = text.trim();
    if child.is("headers") && text.starts_with('[') {
        let variable = variable_in(text)?;
        let finding = finding(&variable, child.start_tag());
        return Some(match variable.strip_prefix("$ctx:") {
            Some(name) => finding.help(format!("write `${{properties.synapse.{name}}}`")),
            None => finding.help("only `${…}` is evaluated in it"),
        });
    }
    is_expression(text)
        .then(|| finding(text, child.start_tag()).help(format!("in braces it is evaluated: `{{{text}}}`")))
}

fn finding(text: &str, span: Span) -> Finding {
    Finding::new(format!("`{text}` is a text here, and not evaluated"), span, "used as it is written")
}

/// The first `$ctx:name` or the like of a text, outside of `${…}`.
fn variable_in(text: &str) -> Option<String> {
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        rest = &rest[at..];
        if rest.starts_with("${") {
            rest = rest.split_once('}')?.1;
            continue;
        }
        let end = rest[1..].find(|c: char| !of_name(c) && c != ':').map_or(rest.len(), |end| end + 1);
        let variable = rest[..end].trim_end_matches([':', '.']);
        if is_expression(variable) {
            return Some(variable.to_owned());
        }
        rest = &rest[1..];
    }
    None
}

fn of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Whether a text is one `${…}` of the language of expressions.
fn is_synapse_expression(text: &str) -> bool {
    let inside = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    let roots = ["payload", "vars", "headers", "properties", "props", "params", "attributes"];
    inside.is_some_and(|inside| {
        let name = inside.trim().split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        !inside.contains("${") && roots.contains(&name)
    })
}

/// Whether a text is, as a whole, what nobody writes as a text.
fn is_expression(text: &str) -> bool {
    if let Some((prefix, name)) = text.strip_prefix('$').and_then(|rest| rest.split_once(':')) {
        return ["ctx", "axis2", "trp", "url", "func"].contains(&prefix)
            && !name.is_empty()
            && name.chars().all(of_name);
    }
    let call = ["get-property(", "json-eval("].iter().any(|call| text.starts_with(call));
    call && text.ends_with(')')
}
