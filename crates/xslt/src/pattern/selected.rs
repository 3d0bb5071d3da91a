//! Patterns of XSLT 3.0 other than paths of children and attributes: predicate patterns (`.[p]`), variables, `doc()`, other axes, `except`
//! and `intersect`, parentheses. A node matches such a pattern if the pattern, as an expression, selects it from the node or from
//! an ancestor of it (section 5.5.3).

use super::{Alternative, Anchor, PatternContext, Predicate, Test, is_positional};
use crate::expr::Expr;
use xpath::ast::{self, Axis, ExprKind, NodeTest, Operator, Start};

/// A pattern as expressions.
#[derive(Debug)]
pub(crate) enum Selected {
    /// It selects the same from every node of a document.
    Once(Expr),
    /// It is evaluated at the node to be matched and at each ancestor.
    Each(Expr),
    /// What the first selects and the second selects too (`true`) or does not select.
    Both(Box<Selected>, Box<Selected>, bool),
}

impl Selected {
    /// Whether all expressions are of a kind.
    pub fn all(&self, is: &dyn Fn(&Expr) -> bool) -> bool {
        match self {
            Selected::Once(expr) | Selected::Each(expr) => is(expr),
            Selected::Both(a, b, _) => a.all(is) && b.all(is),
        }
    }
}

/// The alternatives of a pattern.
pub(super) fn alternatives(
    source: &str,
    tree: &ast::Expr,
    cx: &mut PatternContext<'_>,
    found: &mut Vec<Alternative>,
) -> Result<(), String> {
    if let ExprKind::Union(list) = &tree.kind {
        if list.iter().any(|part| item_predicates(source, part).is_some()) {
            let whole = &source[tree.span.range()];
            return Err(format!("XTSE0340: \".\" is a pattern by itself, not with others: \"{whole}\""));
        }
        return list.iter().try_for_each(|part| alternatives(source, part, cx, found));
    }
    if let Some(predicates) = item_predicates(source, tree) {
        let predicates: Result<Vec<_>, String> = predicates
            .iter()
            .map(|p| {
                Ok(Predicate { expr: compile(source, p, cx)?, positional: is_positional(p), place: None })
            })
            .collect();
        found.push(Alternative { steps: Box::default(), anchor: Anchor::Item(predicates?.into()) });
        return Ok(());
    }
    match Alternative::compile(source, tree, cx) {
        Ok(alternative) => found.push(alternative),
        Err(_) if is_pattern(tree) => {
            let priority = priority(tree, cx);
            let selected = Box::new(selected(source, tree, cx)?);
            found.push(Alternative { steps: Box::default(), anchor: Anchor::Selected(selected, priority) });
        }
        Err(message) => return Err(message),
    }
    Ok(())
}

/// The predicates of `.[p]…`.
fn item_predicates<'t>(source: &str, tree: &'t ast::Expr) -> Option<&'t [ast::Expr]> {
    match &tree.kind {
        ExprKind::ContextItem => Some(&[]),
        ExprKind::Filter(item, predicates) if item.kind == ExprKind::ContextItem => Some(predicates),
        ExprKind::Path(Start::Context, steps) => match steps.as_slice() {
            [step]
                if step.axis == Axis::SelfAxis
                    && step.test == NodeTest::Node
                    && source.get(step.span.range()).is_some_and(|text| text.starts_with('.')) =>
            {
                Some(&step.predicates)
            }
            _ => None,
        },
        _ => None,
    }
}

fn compile(source: &str, tree: &ast::Expr, cx: &mut PatternContext<'_>) -> Result<Expr, String> {
    let version = cx.dialect.version();
    Expr::compile_tree(source, tree.clone(), version, cx.scope, cx.library, cx.pool, cx.base, cx.dialect)
        .map_err(|error| crate::expr::explain(source, &error))
}

fn selected(source: &str, tree: &ast::Expr, cx: &mut PatternContext<'_>) -> Result<Selected, String> {
    if is_absolute(tree) {
        return Ok(Selected::Once(compile(source, tree, cx)?));
    }
    if let ExprKind::Operation(operator @ (Operator::Intersect | Operator::Except), a, b) = &tree.kind {
        let both = *operator == Operator::Intersect;
        // A part that does not depend on the context is evaluated once.
        if is_absolute(b) || both && is_absolute(a) {
            let (a, b) = (selected(source, a, cx)?, selected(source, b, cx)?);
            return Ok(Selected::Both(a.into(), b.into(), both));
        }
    }
    Ok(Selected::Each(compile(source, tree, cx)?))
}

/// Whether a parse tree is a pattern of 3.0.
fn is_pattern(tree: &ast::Expr) -> bool {
    let downwards = |axis: Axis| {
        matches!(
            axis,
            Axis::Child
                | Axis::Attribute
                | Axis::SelfAxis
                | Axis::Descendant
                | Axis::DescendantOrSelf
                | Axis::Namespace
        )
    };
    match &tree.kind {
        ExprKind::Variable(_) => true,
        ExprKind::Union(list) => list.iter().all(is_pattern),
        ExprKind::Operation(Operator::Intersect | Operator::Except, a, b) | ExprKind::Slash(a, b) => {
            is_pattern(a) && is_pattern(b)
        }
        ExprKind::Filter(a, _) => is_pattern(a),
        ExprKind::Path(start, steps) => {
            (match start {
                Start::Root | Start::Context => true,
                Start::Expr(start) => is_pattern(start),
            }) && steps.iter().all(|step| downwards(step.axis))
        }
        ExprKind::Call(name, arguments) => {
            let is_function_of_patterns =
                matches!(name.local.as_str(), "doc" | "id" | "element-with-id" | "key" | "root");
            is_function_of_patterns
                && arguments.iter().all(|argument| {
                    matches!(
                        argument.kind,
                        ExprKind::Literal(_)
                            | ExprKind::Integer(_)
                            | ExprKind::Decimal(_)
                            | ExprKind::Number(_)
                            | ExprKind::Variable(_)
                    )
                })
        }
        _ => false,
    }
}

/// Whether a pattern selects the same from all nodes of a document.
fn is_absolute(tree: &ast::Expr) -> bool {
    match &tree.kind {
        ExprKind::Variable(_) | ExprKind::Call(..) => true,
        ExprKind::Union(list) => list.iter().all(is_absolute),
        ExprKind::Operation(_, a, b) => is_absolute(a) && is_absolute(b),
        ExprKind::Slash(a, _) | ExprKind::Filter(a, _) => is_absolute(a),
        ExprKind::Path(Start::Root, _) => true,
        ExprKind::Path(Start::Expr(start), _) => is_absolute(start),
        _ => false,
    }
}

/// The default priority (section 6.5).
fn priority(tree: &ast::Expr, cx: &mut PatternContext<'_>) -> f64 {
    match &tree.kind {
        ExprKind::Operation(_, a, _) => priority(a, cx),
        ExprKind::Path(Start::Context, steps) => match steps.as_slice() {
            [step] if step.predicates.is_empty() && step.typed => match &step.test {
                NodeTest::Element(Some(_)) | NodeTest::Attribute(Some(_)) => 0.25,
                _ => 0.0,
            },
            [step] if step.predicates.is_empty() => {
                match Test::compile(&step.test, step.axis == Axis::Attribute, cx) {
                    Ok(Test::Name(_) | Test::Pi(Some(_))) => 0.0,
                    Ok(Test::Namespace(_) | Test::Local(_)) => -0.25,
                    _ => -0.5,
                }
            }
            _ => 0.5,
        },
        _ => 0.5,
    }
}

/// `document-node(element(a))`.
pub(super) fn of_document(
    source: &str,
    tree: &ast::Expr,
    cx: &mut PatternContext<'_>,
) -> Result<Alternative, String> {
    let mut step_expr = tree.clone();
    let mut named = false;
    if let ExprKind::Path(_, steps) = &mut step_expr.kind {
        for step in steps {
            step.axis = Axis::SelfAxis;
            named |= matches!(&step.test, NodeTest::Document(Some(inner)) if matches!(**inner, NodeTest::Element(Some(_))));
        }
    }
    let priority = if named { 0.0 } else { -0.5 };
    let selected = Selected::Once(compile(source, &step_expr, cx)?);
    Ok(Alternative { steps: Box::default(), anchor: Anchor::Selected(Box::new(selected), priority) })
}
