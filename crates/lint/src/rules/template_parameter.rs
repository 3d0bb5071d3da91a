//! `template-parameter`: unknown or missing parameters of a template.

use crate::Rule;
use crate::look::{Finding, Look, Phase};
use crate::references::literal_key;
use crate::xpaths::{self, property_of};
use config::{Attribute, Element};
use diagnostics::{Severity, Span, did_you_mean};
use std::collections::HashSet;
use xpath::ast::{Expr, ExprKind};

pub const RULE: Rule = Rule {
    id: "template-parameter",
    severity: Severity::Warning,
    summary: "A parameter of a template is not declared, not given, or read where no template runs.",
    reason: "Reported are

* a `with-param` whose name the template does not declare: it is not passed;
* a `parameter` of an `endpoint` whose name the endpoint template does not declare: it is not passed;
* a parameter within a longer value of an endpoint template, as in `http://$host/orders`: only a whole value is replaced, so `$host` stays in the address;
* a `call-template` without a parameter that the template declares as mandatory: the call fails;
* `$func:x`, `get-property('func', 'x')` and `${params.functionParams.x}` in a template that does not declare `x`: always empty;
* the same in a flow that is no template: `${…}` is empty, and steps with the other forms fail. A named sequence is reported only if no template calls it.",
    example: r#"<template name="Greet">
  <parameter name="who" isMandatory="true"/>
  <parameter name="how"/>
  <sequence>
    <log>
      <property name="greeting" expression="concat($func:hwo, $func:who)"/>
    </log>
  </sequence>
</template>
<template name="Backend">
  <parameter name="host"/>
  <endpoint name="$name">
    <address uri="http://$host/orders"/>
  </endpoint>
</template>
<endpoint name="Orders" template="Backend">
  <parameter name="hots" value="localhost"/>
</endpoint>
<sequence name="Welcome">
  <call-template target="Greet">
    <with-param name="woh" value="you"/>
  </call-template>
  <property name="greeted" expression="$func:who"/>
  <respond/>
</sequence>"#,
    mended: r#"<template name="Greet">
  <parameter name="who" isMandatory="true"/>
  <parameter name="how"/>
  <sequence>
    <log>
      <property name="greeting" expression="concat($func:how, $func:who)"/>
    </log>
  </sequence>
</template>
<template name="Backend">
  <parameter name="address"/>
  <endpoint name="$name">
    <address uri="$address"/>
  </endpoint>
</template>
<endpoint name="Orders" template="Backend">
  <parameter name="address" value="http://localhost/orders"/>
</endpoint>
<sequence name="Welcome">
  <call-template target="Greet">
    <with-param name="who" value="you"/>
  </call-template>
  <property name="greeted" value="you"/>
  <respond/>
</sequence>"#,
    check,
};

fn check(look: &mut Look<'_>) {
    let mut found = Vec::new();
    for step in look.steps().into_iter().filter(|step| step.is("call-template")) {
        check_call(look, step, &mut found);
    }
    for endpoint in look.configuration.endpoints.iter() {
        instance(look, &endpoint.element, &mut found);
    }
    for step in look.steps() {
        step.children_named("endpoint").for_each(|endpoint| instance(look, endpoint, &mut found));
    }
    for template in look.configuration.endpoint_templates.iter() {
        let names: Vec<&str> = template.parameters.iter().map(|p| &**p.name).chain(["name", "uri"]).collect();
        parts(&template.body, &names, &mut found, 0);
    }
    let led_to = led_to(look);
    for flow in look.flows().into_iter().filter(|flow| flow.key.is_none()) {
        let template = (flow.owner.kind == "template")
            .then(|| look.configuration.sequence_templates.get(flow.owner.name))
            .flatten();
        let nowhere = match flow.phase {
            Phase::In | Phase::Out => true,
            // The fault may come from a template.
            Phase::Fault => false,
            Phase::Named if flow.owner.kind == "sequence" => {
                led_to.as_ref().is_some_and(|names| !names.contains(flow.owner.name))
            }
            Phase::Named => false,
        };
        if template.is_none() && !nowhere {
            continue;
        }
        for step in look.steps_in(flow.list) {
            let mut read = Vec::new();
            for xpath in xpaths::of(&look.language, step) {
                xpaths::walk(&xpath.expression, &mut |expression| {
                    if let Some((name, at)) = parameter(expression) {
                        read.push((name.to_owned(), xpath.place(at), true));
                    }
                });
            }
            for (_, attribute) in look.language.expressions(step) {
                read.extend(named(attribute).into_iter().map(|(name, place)| (name, place, false)));
            }
            for (name, place, fails) in read {
                let Some(template) = template else {
                    let message = format!("there is no template here whose parameter `{name}` could be read");
                    let label = if fails { "what evaluates it fails" } else { "always empty" };
                    found.push(Finding::new(message, place, label));
                    continue;
                };
                if template.parameters.iter().any(|declared| *declared.name == *name) {
                    continue;
                }
                let message = format!("the template `{}` has no parameter `{name}`", flow.owner.name);
                let names = template.parameters.iter().map(|declared| &**declared.name);
                let help = did_you_mean(&name, names);
                found.push(
                    Finding::new(message, place, "always empty")
                        .help(help.unwrap_or_else(|| format!("declare it: `<parameter name=\"{name}\"/>`"))),
                );
            }
        }
    }
    found.into_iter().for_each(|finding| look.report(finding));
}

/// A call of a template: parameters that are passed, and missing ones.
fn check_call(look: &Look<'_>, step: &Element, found: &mut Vec<Finding>) {
    let Some(name) = literal_key(step, "target") else { return };
    let Some(template) = look.configuration.sequence_templates.get(name) else { return };
    let passed: Vec<_> =
        step.children_named("with-param").filter_map(|child| child.attribute("name")).collect();
    for passed_parameter in &passed {
        if template.parameters.iter().any(|declared| *declared.name == *passed_parameter.value) {
            continue;
        }
        let message = format!("the template `{name}` has no parameter `{}`", passed_parameter.value);
        let finding = Finding::new(message, passed_parameter.value_span, "it is not passed")
            .and(template.name.span, "this one");
        let names = template.parameters.iter().map(|declared| &**declared.name);
        found.push(match did_you_mean(&passed_parameter.value, names) {
            Some(help) => finding.help(help),
            None => finding,
        });
    }
    for declared in template.parameters.iter().filter(|declared| declared.mandatory) {
        let defaults = look.settings.synapse_dialect && declared.default.is_some();
        if !defaults && passed.iter().all(|p| *p.value != **declared.name) {
            let message = format!("the parameter `{}` of the template `{name}` is missing", *declared.name);
            found.push(
                Finding::new(message, step.start_tag(), "the call fails")
                    .and(declared.name.span, "mandatory"),
            );
        }
    }
}

/// An endpoint that is an instance of a template: parameters that are passed. `name` and `uri` always exist.
fn instance(look: &Look<'_>, endpoint: &Element, found: &mut Vec<Finding>) {
    let Some(name) = literal_key(endpoint, "template") else { return };
    let Some(template) = look.configuration.endpoint_templates.get(name) else { return };
    let declared: Vec<&str> = template.parameters.iter().map(|p| &**p.name).chain(["name", "uri"]).collect();
    for passed in endpoint.children_named("parameter").filter_map(|child| child.attribute("name")) {
        if declared.contains(&&*passed.value) {
            continue;
        }
        let message = format!("the template `{name}` has no parameter `{}`", passed.value);
        let finding =
            Finding::new(message, passed.value_span, "it is not passed").and(template.name.span, "this one");
        found.push(match did_you_mean(&passed.value, declared.iter().copied()) {
            Some(help) => finding.help(help),
            None => finding,
        });
    }
}

/// Elements nested deeper than this are not checked.
const DEEPEST: usize = 100;

/// Marks of parameters that are a part of a value in an endpoint template: only a whole value is replaced.
fn parts(element: &Element, names: &[&str], found: &mut Vec<Finding>, depth: usize) {
    if depth >= DEEPEST {
        return;
    }
    let part = |value: &str| {
        names.iter().copied().find(|name| {
            let ends =
                |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-'));
            let is_part = |rest: &str| rest.strip_prefix(*name).is_some_and(ends);
            value.trim().strip_prefix('$') != Some(*name) && value.split('$').skip(1).any(is_part)
        })
    };
    for attribute in element.attributes() {
        if let Some(name) = part(&attribute.value) {
            let message = format!("`${name}` stays as it is: a parameter stands for a whole value");
            let help = format!("pass the whole value: `{}=\"${name}\"`", attribute.name.local);
            found.push(Finding::new(message, attribute.value_span, "not replaced").help(help));
        }
    }
    element.elements().for_each(|child| parts(child, names, found, depth + 1));
}

/// The name of a parameter that an expression reads.
fn parameter(expression: &Expr) -> Option<(&str, xpath::Span)> {
    match &expression.kind {
        ExprKind::Variable(name) if name.prefix == "func" => Some((&name.local, expression.span)),
        _ => match property_of(expression) {
            Some([("func", _), (name, at)]) => Some((name, at)),
            _ => None,
        },
    }
}

/// The parameters that a `${…}` names, with their places.
fn named(attribute: &Attribute) -> Vec<(String, Span)> {
    const MARK: &str = "params.functionParams.";
    let (value, span) = (&*attribute.value, attribute.value_span);
    if !value.contains("${") {
        return Vec::new();
    }
    let exact = value.len() == (span.end - span.start) as usize;
    let names = value.match_indices(MARK).map(|(at, _)| {
        let start = at + MARK.len();
        let rest = &value[start..];
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        (rest[..end].to_owned(), if exact { span.part(start, end) } else { span })
    });
    names.filter(|(name, _)| !name.is_empty()).collect()
}

/// The sequences that a template calls; `None`: an expression gives one.
fn led_to(look: &Look<'_>) -> Option<HashSet<String>> {
    let mut names = HashSet::new();
    let mut waiting: Vec<&Element> =
        look.configuration.sequence_templates.iter().map(|template| &template.sequence.element).collect();
    while let Some(list) = waiting.pop() {
        for step in look.steps_in(list) {
            let inside = step.elements().chain(step.elements().flat_map(Element::elements));
            for element in std::iter::once(step).chain(inside) {
                for key in ["key", "sequence", "onError", "onComplete", "onReject", "onAccept", "target"] {
                    let Some(attribute) = element.attribute(key) else { continue };
                    let Some(name) = literal_key(element, key) else {
                        if matches!(key, "key" | "sequence") && attribute.value.contains(['{', '$']) {
                            return None;
                        }
                        continue;
                    };
                    if let Some(sequence) = look.sequence(name)
                        && names.insert(name.to_owned())
                    {
                        waiting.push(&sequence.element);
                    }
                }
            }
        }
    }
    Some(names)
}
