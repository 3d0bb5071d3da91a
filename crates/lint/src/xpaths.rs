//! The XPaths of a step: in attributes that are expressions, and in braces where a key or text may be one.

use crate::steps::Language;
use config::{Attribute, Element};
use diagnostics::Span;
use xpath::ast::{Expr, ExprKind, Start};

/// An XPath and its place.
pub struct XPath<'e> {
    /// The attribute that holds it.
    pub attribute: &'e Attribute,
    /// Its text.
    pub expression: Expr,
    /// Its offset in the value, in bytes.
    start: usize,
}

impl XPath<'_> {
    /// The place of a part of it: exact where the value contains no references.
    pub fn place(&self, part: xpath::Span) -> Span {
        let span = self.attribute.value_span;
        match self.attribute.value.len() == (span.end - span.start) as usize {
            true => span.part(
                self.start + part.start as usize,
                (part.end.saturating_sub(part.start) as usize).max(1),
            ),
            false => span,
        }
    }
}

/// The XPaths of a step, without JSONPath, `${…}` and expressions with syntax errors: the compiler reports those.
pub fn of<'e>(language: &Language, step: &'e Element) -> Vec<XPath<'e>> {
    let mut found = Vec::new();
    for (_, attribute) in language.expressions(step) {
        found.extend(parsed(attribute, &attribute.value, 0));
    }
    for (_, attribute) in language.keys(step) {
        let blank = attribute.value.len() - attribute.value.trim_start().len();
        let mut inner = attribute.value.trim();
        let mut braces = 0;
        while let Some(inside) = inner.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'))
            && braces < 2
        {
            (inner, braces) = (inside, braces + 1);
        }
        if braces > 0 {
            found.extend(parsed(attribute, inner, blank + braces));
        }
    }
    found
}

fn parsed<'e>(attribute: &'e Attribute, text: &str, start: usize) -> Option<XPath<'e>> {
    let source = text.trim();
    if source.starts_with("json-eval(") || source.starts_with("${") || source.starts_with('{') {
        return None;
    }
    let expression = xpath::parse(source, xpath::Version::V1).ok()?;
    Some(XPath { attribute, expression, start: start + text.len() - text.trim_start().len() })
}

/// Calls `see` with an XPath 1.0 and all its subexpressions, from outside in.
pub fn walk<'x>(expression: &'x Expr, see: &mut impl FnMut(&'x Expr)) {
    see(expression);
    match &expression.kind {
        ExprKind::Path(start, steps) => {
            if let Start::Expr(inner) = start {
                walk(inner, see);
            }
            steps.iter().flat_map(|step| &step.predicates).for_each(|inner| walk(inner, see));
        }
        ExprKind::Binary(_, left, right) => {
            walk(left, see);
            walk(right, see);
        }
        ExprKind::And(all)
        | ExprKind::Or(all)
        | ExprKind::Union(all)
        | ExprKind::Call(_, all)
        | ExprKind::Sequence(all) => all.iter().for_each(|inner| walk(inner, see)),
        ExprKind::Negate(inner) => walk(inner, see),
        ExprKind::Filter(inner, predicates) => {
            walk(inner, see);
            predicates.iter().for_each(|inner| walk(inner, see));
        }
        _ => {}
    }
}

/// A literal argument of `get-property` that names a scope: scope, name and place.
pub fn property_of(expression: &Expr) -> Option<[(&str, xpath::Span); 2]> {
    let ExprKind::Call(name, arguments) = &expression.kind else { return None };
    let [first, second, ..] = &arguments[..] else { return None };
    match (&first.kind, &second.kind) {
        (ExprKind::Literal(scope), ExprKind::Literal(property)) if name.local == "get-property" => {
            Some([(scope, first.span), (property, second.span)])
        }
        _ => None,
    }
}
