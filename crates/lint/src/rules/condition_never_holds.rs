//! `condition-never-holds`: an XPath that can select or match nothing, whatever message comes.

use crate::Rule;
use crate::look::{Finding, Look};
use config::{Attribute, Element};
use diagnostics::{Edit, Severity, Span};
use flow::Pattern;
use xpath::ast::{Axis, BinaryOp, Expr, ExprKind, NodeTest, QName, Start, Step};

pub const RULE: Rule = Rule {
    id: "condition-never-holds",
    severity: Severity::Warning,
    summary: "An expression can select or match nothing, whatever message comes.",
    reason: "Reported are

* `/order/id`: the root of a message is always the SOAP envelope, also of plain XML and JSON. `//order/id` or `$body/order/id` select inside of it;
* `get-property('paid') = true`: `true` and `false` are names of elements here. Compare with `'true'` for a property, or write `true()` for a truth;
* `local-name() = 'ns:order'`: the local name has no prefix;
* a `source` that is true or false with a `regex` that fits neither `true` nor `false`;
* `X = 'a' and X = 'b'`, where X has one value.",
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

/// What is wrong, where in the source, and what to write.
struct Never {
    message: String,
    at: xpath::Span,
    label: &'static str,
    help: &'static str,
    /// The text that `at` should be.
    instead: Option<String>,
}

fn check(look: &mut Look<'_>) {
    let mut found = Vec::new();
    for step in look.steps() {
        for (_, attribute) in look.language.expressions(step) {
            let Some(expression) = parsed(attribute) else { continue };
            let mut all = Vec::new();
            visit(&expression, &mut all);
            if let Some(own) = unmatched(step, attribute, &expression) {
                found.push(own);
            }
            let blank = attribute.value.len() - attribute.value.trim_start().len();
            found.extend(all.into_iter().map(|own| {
                let place = place(
                    attribute,
                    blank + own.at.start as usize,
                    own.at.end.saturating_sub(own.at.start) as usize,
                );
                let finding = Finding::new(own.message, place, own.label).help(own.help);
                // An attribute with one kind of quotes in it stands in the other kind.
                let quote = match (attribute.value.contains('\''), attribute.value.contains('"')) {
                    (true, false) => '\'',
                    (false, true) => '"',
                    _ => return finding,
                };
                match own.instead {
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

/// Where a part of a value is written: exact where no references are in it.
fn place(attribute: &Attribute, start: usize, len: usize) -> Span {
    let span = attribute.value_span;
    match attribute.value.len() == (span.end - span.start) as usize {
        true => span.part(start, len.max(1)),
        false => span,
    }
}

/// The XPath of an attribute; `None` where it is none, or is reported by who compiles it.
fn parsed(attribute: &Attribute) -> Option<Expr> {
    let source = attribute.value.trim();
    if source.starts_with("json-eval(") || source.starts_with("${") || source.starts_with('{') {
        return None;
    }
    xpath::parse(source, xpath::Version::V1).ok()
}

fn visit(expression: &Expr, found: &mut Vec<Never>) {
    match &expression.kind {
        ExprKind::Path(start, steps) => {
            if let (Start::Root, Some(first)) = (start, steps.first()) {
                found.extend(root(first));
            }
            if let Start::Expr(inner) = start {
                visit(inner, found);
            }
            steps.iter().flat_map(|step| &step.predicates).for_each(|own| visit(own, found));
        }
        ExprKind::Binary(operator, left, right) => {
            found.extend(compared(*operator, left, right));
            visit(left, found);
            visit(right, found);
        }
        ExprKind::And(all) => {
            found.extend(contradiction(all));
            all.iter().for_each(|own| visit(own, found));
        }
        ExprKind::Or(all) | ExprKind::Union(all) | ExprKind::Call(_, all) | ExprKind::Sequence(all) => {
            all.iter().for_each(|own| visit(own, found));
        }
        ExprKind::Negate(inner) => visit(inner, found),
        ExprKind::Filter(inner, predicates) => {
            visit(inner, found);
            predicates.iter().for_each(|own| visit(own, found));
        }
        _ => {}
    }
}

/// `/order`.
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

fn compared(operator: BinaryOp, left: &Expr, right: &Expr) -> Option<Never> {
    if !matches!(operator, BinaryOp::Equal | BinaryOp::NotEqual) {
        return None;
    }
    for (own, other) in [(left, right), (right, left)] {
        if let Some(name) = bare_name(own)
            && matches!(name.local.as_str(), "true" | "false")
            && name.prefix.is_empty()
        {
            return Some(Never {
                message: format!("`{name}` is the name of an element here: the comparison never holds"),
                at: own.span,
                label: "no message has such an element",
                help: "compare with a text in quotes, or write `true()` or `false()`",
                // A property is compared as a text.
                instead: is_single(other).then(|| name.local.clone()),
            });
        }
        if let ExprKind::Literal(text) = &own.kind
            && is_call(other, "local-name")
            && text.contains(':')
            && operator == BinaryOp::Equal
        {
            return Some(Never {
                message: format!("no local name is `{text}`"),
                at: own.span,
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
    let equals = |own: &Expr| match &own.kind {
        ExprKind::Binary(BinaryOp::Equal, left, right) => match (&left.kind, &right.kind) {
            (ExprKind::Literal(text), _) if is_single(right) => Some((right.kind.clone(), text.clone())),
            (_, ExprKind::Literal(text)) if is_single(left) => Some((left.kind.clone(), text.clone())),
            _ => None,
        },
        _ => None,
    };
    let tests: Vec<_> = all.iter().map(|own| (own, equals(own))).collect();
    for (at, (second, test)) in tests.iter().enumerate() {
        let Some((value, text)) = test else { continue };
        let mut clash = tests[..at].iter().filter_map(|(_, first)| first.as_ref());
        if clash.any(|(own, other)| same(own, value) && other != text) {
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

/// Whether two expressions are written alike, wherever they stand.
fn same(one: &ExprKind, other: &ExprKind) -> bool {
    match (one, other) {
        (ExprKind::Variable(one), ExprKind::Variable(other)) => one == other,
        (ExprKind::Call(one, first), ExprKind::Call(other, second)) => {
            one == other
                && first.len() == second.len()
                && first.iter().zip(second).all(|pair| match (&pair.0.kind, &pair.1.kind) {
                    (ExprKind::Literal(one), ExprKind::Literal(other)) => one == other,
                    _ => false,
                })
        }
        _ => false,
    }
}

/// Whether it has one value: a property, or a variable that is one.
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
    matches!(&expression.kind, ExprKind::Call(own, _) if own.local == name)
}

/// The name, where an expression is nothing but one.
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

/// A `source` that gives a truth, and a pattern that fits none.
fn unmatched(step: &Element, attribute: &Attribute, expression: &Expr) -> Option<Finding> {
    if &*attribute.name.local != "source" || !is_truth(expression) {
        return None;
    }
    let patterns: Vec<&Attribute> = match step.local() {
        "filter" => step.attribute("regex").into_iter().collect(),
        "switch" => step.children_named("case").filter_map(|case| case.attribute("regex")).collect(),
        _ => Vec::new(),
    };
    let never = patterns.into_iter().find(|pattern| {
        let compiled = Pattern::compile(&pattern.value).ok();
        compiled.is_some_and(|own| own.matches("true") == Ok(false) && own.matches("false") == Ok(false))
    })?;
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
