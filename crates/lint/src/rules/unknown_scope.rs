//! `unknown-scope`: an XPath that reads a property of an unknown scope.

use crate::Rule;
use crate::look::{Finding, Look};
use crate::xpaths::{self, property_of};
use config::Element;
use diagnostics::{Edit, Severity, did_you_mean, nearest, respelt};
use flow::library::Scope;
use xpath::ast::ExprKind;

pub const RULE: Rule = Rule {
    id: "unknown-scope",
    severity: Severity::Warning,
    summary: "An expression reads a property of a scope that does not exist.",
    reason: "`get-property('transprt', 'Host')` is empty for every message, and `$tpr:Host` makes the step that evaluates it fail.

The scopes of `get-property` are `default`, `synapse`, `axis2`, `axis2-client`, `transport`, `operation`, `registry`, `system`, `trace`, `analytics`, `func`, `env` and `file`;
the prefixes of variables are `ctx`, `axis2`, `trp`, `operation`, `var`, `func`, `url` and `sys`. A prefix that is also the name of a property, which may hold a map, is not reported.",
    example: r#"<sequence name="Route">
  <property name="host" expression="get-property('Transport', 'Host')"/>
  <property name="kind" expression="$tpr:X-Kind"/>
  <respond/>
</sequence>"#,
    mended: r#"<sequence name="Route">
  <property name="host" expression="get-property('transport', 'Host')"/>
  <property name="kind" expression="$trp:X-Kind"/>
  <respond/>
</sequence>"#,
    check,
};

/// The prefixes of variables.
const PREFIXES: &[&str] = &["ctx", "axis2", "trp", "operation", "var", "func", "url", "sys"];

fn check(look: &mut Look<'_>) {
    let steps = look.steps();
    // Code that is not here may set a property that holds a map.
    let opaque = !look.configuration.imports.is_empty()
        || steps.iter().any(|step| {
            matches!(step.local(), "class" | "pojoCommand" | "spring" | "bean" | "script")
                || step.local().contains('.')
        });
    let mut found = Vec::new();
    for step in &steps {
        for xpath in xpaths::of(&look.language, step) {
            xpaths::walk(&xpath.expression, &mut |expression| {
                if let ExprKind::Variable(name) = &expression.kind
                    && is_unknown(&name.prefix, &steps)
                {
                    let meant = nearest(&name.prefix, PREFIXES.iter().copied());
                    if meant.is_none() && opaque {
                        return;
                    }
                    let place = xpath.place(expression.span);
                    let message = format!("there is no scope `{}`", name.prefix);
                    let help = match meant {
                        Some(meant) => format!("did you mean `${meant}:{}`?", name.local),
                        None => format!("`$ctx:{}` is the property `{}`", name.local, name.local),
                    };
                    found.push(Finding::new(message, place, "what evaluates it fails").help(help));
                }
                if let Some([(scope, at), _]) = property_of(expression)
                    // `SYSTEM_DATE` with a pattern.
                    && !matches!(scope, "SYSTEM_DATE" | "SYSTEM_TIME")
                    && Scope::of(scope).is_none()
                {
                    let place = xpath.place(at);
                    let mut finding =
                        Finding::new(format!("there is no scope `{scope}`"), place, "always empty");
                    let inner = place.part(1, scope.len());
                    match respelt(scope, scopes()) {
                        // Between the quotes, where nothing is written as a reference.
                        Some(meant) if (place.end - place.start) as usize == scope.len() + 2 => {
                            let edit = Edit { span: inner, was: scope.to_owned(), text: meant.to_owned() };
                            finding = finding.fix(format!("write '{meant}'"), edit);
                        }
                        _ => {
                            if let Some(help) = did_you_mean(scope, scopes()) {
                                finding = finding.help(help);
                            }
                        }
                    }
                    found.push(finding);
                }
            });
        }
    }
    found.into_iter().for_each(|finding| look.report(finding));
}

fn scopes() -> impl Iterator<Item = &'static str> {
    Scope::NAMED.iter().map(|(name, _)| *name)
}

/// Whether no scope, and no property that may hold a map, has the name of a prefix.
fn is_unknown(prefix: &str, steps: &[&Element]) -> bool {
    if prefix.is_empty() || PREFIXES.contains(&prefix) {
        return false;
    }
    // `$P:k` is an entry of the map in the property P.
    let named = |element: &Element| element.attr("name").is_some_and(|name| name.trim() == prefix);
    let quoted = [format!("'{prefix}'"), format!("\"{prefix}\"")];
    let holds = |step: &Element| {
        named(step) || step.elements().any(named) || quoted.iter().any(|quoted| step.text().contains(quoted))
    };
    !steps.iter().any(|step| holds(step))
}
