//! `condition-never-holds`: an XPath that selects or matches nothing, whatever the message is.

use crate::Rule;
use crate::look::{Finding, Look};
use crate::xpaths;
use config::{Attribute, Element};
use diagnostics::{Edit, Severity};
use flow::Pattern;
use xpath::ast::{Axis, BinaryOp, Expr, ExprKind, NodeTest, QName, Start, Step};

pub const RULE: Rule = Rule {
    id: "condition-never-holds",
    severity: Severity::Warning,
    summary: "An expression can select or match nothing, whatever message comes.",
    reason: "Reported are

* `/order/id`: the root of a message is always the SOAP envelope, even for plain XML and JSON. `//order/id` or `$body/order/id` select inside of it;
* `get-property('paid') = true`: in XPath, `true` and `false` are names of elements. Compare with `'true'` for a property, or write `true()` for a Boolean;
* `local-name() = 'ns:order'`: the local name has no prefix;
* a `source` that is true or false with a `regex` that matches neither `true` nor `false`, and one that is a text (`'a'`) with a `regex` that does not match it;
* the method of a request compared with `get`, or matched with it: methods are in capitals;
* `X = 'a' and X = 'b'`, where X has one value;
* `1 = 2`: two values that are written down and differ;
* `@id/name`, `text()/name`: attributes and texts have no children;
* `//id | $trp:X-Id`: `|` joins nodes, and a header or a query parameter is a text. The step faults, here as in Synapse.",
    example: r#"<sequence name="Route">
  <filter xpath="get-property('paid') = true">
    <then>
      <respond/>
    </then>
    <else>
      <drop/>
    </else>
  </filter>
</sequence>"#,
    mended: r#"<sequence name="Route">
  <filter xpath="get-property('paid') = 'true'">
    <then>
      <respond/>
    </then>
    <else>
      <drop/>
    </else>
  </filter>
</sequence>"#,
    check,
};

/// A finding in an expression: message, place in the source, and remedy.
struct Never {
    message: String,
    at: xpath::Span,
    label: &'static str,
    help: &'static str,
    /// The replacement of the text at `at`.
    instead: Option<String>,
}

fn check(look: &mut Look<'_>) {
    let mut found = Vec::new();
    for step in look.steps() {
        for xpath in xpaths::of(&look.language, step) {
            let attribute = xpath.attribute;
            if let Some(finding) = unmatched(step, attribute, &xpath.expression) {
                found.push(finding);
            }
            let mut all = Vec::new();
            xpaths::walk(&xpath.expression, &mut |expression| inspect(expression, &mut all));
            found.extend(all.into_iter().map(|never| {
                let place = xpath.place(never.at);
                let finding = Finding::new(never.message, place, never.label).help(never.help);
                // An attribute that contains quotes of one kind is in quotes of the other kind.
                let quote = match (attribute.value.contains('\''), attribute.value.contains('"')) {
                    (true, false) => '\'',
                    (false, true) => '"',
                    _ => return finding,
                };
                match never.instead {
                    Some(text) if place != attribute.value_span => {
                        let quoted = format!("{quote}{text}{quote}");
                        finding.fix(format!("write {quoted}"), Edit { span: place, was: text, text: quoted })
                    }
                    _ => finding,
                }
            }));
        }
    }
    found.into_iter().for_each(|finding| look.report(finding));
}

fn inspect(expression: &Expr, found: &mut Vec<Never>) {
    match &expression.kind {
        ExprKind::Path(start, steps) => {
            if matches!(start, Start::Root) {
                found.extend(steps.first().and_then(root));
            }
            found.extend(steps.windows(2).find_map(|two| childless(&two[0], &two[1])));
        }
        ExprKind::Binary(operator, left, right) => found.extend(compared(*operator, left, right)),
        ExprKind::And(all) => found.extend(contradiction(all)),
        ExprKind::Union(all) => found.extend(all.iter().find_map(joined)),
        _ => {}
    }
}

/// A member of a union that is a text whatever comes: a header, a parameter of the query.
fn joined(member: &Expr) -> Option<Never> {
    match &member.kind {
        ExprKind::Variable(name) if matches!(name.prefix.as_str(), "trp" | "url") => Some(Never {
            message: format!("`|` joins nodes, and `${name}` is a text: each message faults here"),
            at: member.span,
            label: "this is no node",
            help: "write a `filter` for the one that is not empty, or `concat(…, …)`",
            instead: None,
        }),
        _ => None,
    }
}

/// A path from the root: `/order`.
fn root(first: &Step) -> Option<Never> {
    match &first.test {
        NodeTest::Name(name) if first.axis == Axis::Child && name.local != "Envelope" => Some(Never {
            message: format!("`/{name}` selects nothing: the root of a message is the SOAP envelope"),
            at: first.span,
            label: "no root has this name",
            help: "write `//` in front of it, or `$body/`",
            instead: None,
        }),
        _ => None,
    }
}

/// A step to the children of what has none: `@id/name`.
fn childless(parent: &Step, child: &Step) -> Option<Never> {
    let (kind, why) = match (parent.axis, &parent.test) {
        (Axis::Attribute, _) => ("an attribute", "attributes have no children"),
        (_, NodeTest::Text) => ("a text", "texts have no children"),
        _ => return None,
    };
    // `//` is a step of its own, which has what is before it too, but no name.
    let named = matches!(child.test, NodeTest::Name(_) | NodeTest::AnyName | NodeTest::Text);
    (child.axis == Axis::Child && named).then(|| Never {
        message: format!("the path goes on behind {kind} and selects nothing"),
        at: child.span,
        label: why,
        help: "end the path before it",
        instead: None,
    })
}

/// Two values that are written down, compared: `1 = 2`.
fn constant(operator: BinaryOp, left: &Expr, right: &Expr) -> Option<Never> {
    let holds = match (&left.kind, &right.kind) {
        (ExprKind::Number(left), ExprKind::Number(right)) => match operator {
            BinaryOp::Equal => left == right,
            BinaryOp::NotEqual => left != right,
            BinaryOp::Less => left < right,
            BinaryOp::LessOrEqual => left <= right,
            BinaryOp::Greater => left > right,
            BinaryOp::GreaterOrEqual => left >= right,
            _ => return None,
        },
        (ExprKind::Literal(left), ExprKind::Literal(right)) => match operator {
            BinaryOp::Equal => left == right,
            BinaryOp::NotEqual => left != right,
            _ => return None,
        },
        _ => return None,
    };
    (!holds).then(|| Never {
        message: "two values that are written down are compared: this never holds".to_owned(),
        at: left.span,
        label: "this is the same for every message",
        help: "compare with something of the message; false() says that it is meant",
        instead: None,
    })
}

fn compared(operator: BinaryOp, left: &Expr, right: &Expr) -> Option<Never> {
    if let Some(never) = constant(operator, left, right) {
        return Some(never);
    }
    if !matches!(operator, BinaryOp::Equal | BinaryOp::NotEqual) {
        return None;
    }
    for (side, other) in [(left, right), (right, left)] {
        if let Some(name) = bare_name(side)
            && matches!(name.local.as_str(), "true" | "false")
            && name.prefix.is_empty()
        {
            return Some(Never {
                message: format!("`{name}` is the name of an element here: the comparison never holds"),
                at: side.span,
                label: "no message has such an element",
                help: "compare with a text in quotes, or write `true()` or `false()`",
                // A property is compared as a string.
                instead: is_single(other).then(|| name.local.clone()),
            });
        }
        if let ExprKind::Literal(text) = &side.kind
            && is_method(other)
            && !METHODS.contains(&text.as_str())
            && METHODS.contains(&text.to_ascii_uppercase().as_str())
            && operator == BinaryOp::Equal
        {
            return Some(Never {
                message: format!("no method is `{text}`"),
                at: side.span,
                label: "methods are written in capitals",
                help: "write it in capitals",
                instead: None,
            });
        }
        if let ExprKind::Literal(text) = &side.kind
            && is_call(other, "local-name")
            && text.contains(':')
            && operator == BinaryOp::Equal
        {
            return Some(Never {
                message: format!("no local name is `{text}`"),
                at: side.span,
                label: "a local name has no prefix",
                help: "compare with what stands behind the colon",
                instead: None,
            });
        }
    }
    None
}

/// `X = 'a' and X = 'b'`.
fn contradiction(all: &[Expr]) -> Option<Never> {
    let equals = |condition: &Expr| match &condition.kind {
        ExprKind::Binary(BinaryOp::Equal, left, right) => match (&left.kind, &right.kind) {
            (ExprKind::Literal(text), _) if is_single(right) => Some((right.kind.clone(), text.clone())),
            (_, ExprKind::Literal(text)) if is_single(left) => Some((left.kind.clone(), text.clone())),
            _ => None,
        },
        _ => None,
    };
    let tests: Vec<_> = all.iter().map(|e| (e, equals(e))).collect();
    for (at, (second, test)) in tests.iter().enumerate() {
        let Some((value, text)) = test else { continue };
        let mut clash = tests[..at].iter().filter_map(|(_, first)| first.as_ref());
        if clash.any(|(operand, other)| same(operand, value) && other != text) {
            return Some(Never {
                message: "one value is compared with two texts: this never holds".to_owned(),
                at: second.span,
                label: "and another text before",
                help: "write `or` between them",
                instead: None,
            });
        }
    }
    None
}

/// Whether two expressions are the same, apart from their places.
fn same(first_kind: &ExprKind, second_kind: &ExprKind) -> bool {
    match (first_kind, second_kind) {
        (ExprKind::Variable(x), ExprKind::Variable(y)) => x == y,
        (ExprKind::Call(name, first), ExprKind::Call(other_name, second)) => {
            name == other_name
                && first.len() == second.len()
                && first.iter().zip(second).all(|pair| match (&pair.0.kind, &pair.1.kind) {
                    (ExprKind::Literal(x), ExprKind::Literal(y)) => x == y,
                    _ => false,
                })
        }
        _ => false,
    }
}

/// Whether it has a single value: a property, or a variable for one.
fn is_single(expression: &Expr) -> bool {
    match &expression.kind {
        ExprKind::Variable(name) => {
            matches!(name.prefix.as_str(), "ctx" | "axis2" | "trp" | "operation" | "url")
        }
        ExprKind::Call(name, _) => matches!(name.local.as_str(), "get-property" | "local-name" | "name"),
        _ => false,
    }
}

fn is_call(expression: &Expr, name: &str) -> bool {
    matches!(&expression.kind, ExprKind::Call(function, _) if function.local == name)
}

/// The name, if an expression is a bare name.
fn bare_name(expression: &Expr) -> Option<&QName> {
    match &expression.kind {
        ExprKind::Path(Start::Context, steps) => match &steps[..] {
            [Step { axis: Axis::Child, test: NodeTest::Name(name), predicates, .. }]
                if predicates.is_empty() =>
            {
                Some(name)
            }
            _ => None,
        },
        _ => None,
    }
}

/// The HTTP methods.
const METHODS: &[&str] = &["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"];

/// Whether it is the HTTP method of the request.
fn is_method(expression: &Expr) -> bool {
    match &expression.kind {
        ExprKind::Variable(name) => {
            matches!((&*name.prefix, &*name.local), ("axis2", "HTTP_METHOD") | ("ctx", "REST_METHOD"))
        }
        _ => match xpaths::property_of(expression) {
            Some([(scope, _), (name, _)]) => scope == "axis2" && name == "HTTP_METHOD",
            None => false,
        },
    }
}

/// A `source` that gives a boolean, a method or a fixed text, with a pattern that matches no such value.
fn unmatched(step: &Element, attribute: &Attribute, expression: &Expr) -> Option<Finding> {
    let (is_truth, is_method) = (is_truth(expression), is_method(expression));
    let fixed = match &expression.kind {
        ExprKind::Literal(text) => Some(text.as_str()),
        _ => None,
    };
    if &*attribute.name.local != "source" || !(is_truth || is_method || fixed.is_some()) {
        return None;
    }
    let patterns: Vec<&Attribute> = match step.local() {
        "filter" => step.attribute("regex").into_iter().collect(),
        "switch" => step.children_named("case").filter_map(|case| case.attribute("regex")).collect(),
        _ => Vec::new(),
    };
    let fits = |pattern: &Attribute, texts: &[&str]| {
        let compiled = Pattern::compile(&pattern.value).ok();
        compiled.is_none_or(|pattern| texts.iter().any(|text| pattern.matches(text) != Ok(false)))
    };
    if is_method {
        let small: Vec<String> = METHODS.iter().map(|method| method.to_ascii_lowercase()).collect();
        let small: Vec<&str> = small.iter().map(String::as_str).collect();
        let never = patterns.into_iter().find(|pattern| !fits(pattern, METHODS) && fits(pattern, &small))?;
        let label = "methods are written in capitals";
        let finding = Finding::new(format!("`{}` never matches", never.value), never.value_span, label);
        let capitals = never.value.to_ascii_uppercase();
        let plain = never.value.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'|');
        return Some(match plain {
            true => {
                let edit =
                    Edit { span: never.value_span, was: never.value.to_string(), text: capitals.clone() };
                finding.fix(format!("write {capitals}"), edit)
            }
            false => finding,
        });
    }
    if let Some(text) = fixed {
        let never = patterns.into_iter().find(|pattern| !fits(pattern, &[text]))?;
        let message = format!("`{}` never matches", never.value);
        return Some(
            Finding::new(message, never.value_span, format!("does not fit `{text}`"))
                .and(attribute.value_span, "this is the same text for every message"),
        );
    }
    let never = patterns.into_iter().find(|pattern| !fits(pattern, &["true", "false"]))?;
    Some(
        Finding::new(
            format!("`{}` never matches", never.value),
            never.value_span,
            "fits neither `true` nor `false`",
        )
        .and(attribute.value_span, "this is `true` or `false`"),
    )
}

fn is_truth(expression: &Expr) -> bool {
    match &expression.kind {
        ExprKind::Or(_) | ExprKind::And(_) => true,
        ExprKind::Binary(operator, ..) => matches!(
            operator,
            BinaryOp::Equal
                | BinaryOp::NotEqual
                | BinaryOp::Less
                | BinaryOp::LessOrEqual
                | BinaryOp::Greater
                | BinaryOp::GreaterOrEqual
        ),
        ExprKind::Call(name, _) => {
            name.prefix.is_empty()
                && matches!(
                    name.local.as_str(),
                    "not" | "boolean" | "true" | "false" | "contains" | "starts-with"
                )
        }
        _ => false,
    }
}
