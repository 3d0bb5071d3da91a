//! The grammar of RFC 9535, with its rules of well-typedness (2.4.3).

use super::JsonPathError;
use super::ast::{Expr, Operand, Operator, Query, Segment, Selector};
use super::compare::Pattern;
use super::literal::{Cursor, Parsed};
use serde_json::Value;
use std::ops::Range;

/// Integers are limited to what a double holds exactly (2.1).
const MAX_INTEGER: i64 = (1 << 53) - 1;

pub(super) fn parse(text: &str) -> Parsed<Query> {
    let mut c = Cursor::new(text);
    c.expect("$")?;
    let segments = segments(&mut c)?;
    if !c.at_end() {
        return c.error(format!("expected . or [{}", c.found()));
    }
    Ok(Query::new(true, segments))
}

fn segments(c: &mut Cursor<'_>) -> Parsed<Vec<Segment>> {
    let mut out = Vec::new();
    loop {
        let before = c.at;
        c.skip_blanks();
        if c.take("..") {
            out.push(Segment::Descendant(match c.peek() {
                b'[' => bracketed(c)?,
                _ => vec![shorthand(c)?],
            }));
        } else if c.take(".") {
            out.push(Segment::Child(vec![shorthand(c)?]));
        } else if c.peek() == b'[' {
            out.push(Segment::Child(bracketed(c)?));
        } else {
            // Blanks are part of a path only before a segment.
            c.at = before;
            return Ok(out);
        }
    }
}

/// `*` or a name without quotes.
fn shorthand(c: &mut Cursor<'_>) -> Parsed<Selector> {
    if c.take("*") {
        return Ok(Selector::Wildcard);
    }
    let first = c.peek();
    let name = c.take_while(|b| b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80);
    if name.is_empty() || first.is_ascii_digit() {
        return c.error(format!("expected a name{}", c.found()));
    }
    Ok(Selector::Name(name.to_owned()))
}

fn bracketed(c: &mut Cursor<'_>) -> Parsed<Vec<Selector>> {
    c.expect("[")?;
    let mut selectors = Vec::new();
    loop {
        c.skip_blanks();
        selectors.push(selector(c)?);
        c.skip_blanks();
        if c.take("]") {
            return Ok(selectors);
        }
        if !c.take(",") {
            return c.error(format!("expected , or ]{}", c.found()));
        }
    }
}

fn selector(c: &mut Cursor<'_>) -> Parsed<Selector> {
    match c.peek() {
        b'\'' | b'"' => Ok(Selector::Name(c.string(true)?)),
        b'*' => {
            c.at += 1;
            Ok(Selector::Wildcard)
        }
        b'?' => {
            c.at += 1;
            c.skip_blanks();
            Ok(Selector::Filter(c.nested(or)?))
        }
        b':' | b'-' | b'0'..=b'9' => {
            let start = if c.peek() == b':' { None } else { Some(integer(c)?) };
            let before = c.at;
            c.skip_blanks();
            if !c.take(":") {
                c.at = before;
                return match start {
                    Some(index) => Ok(Selector::Index(index)),
                    None => c.error("expected an index"),
                };
            }
            let mut bound = || -> Parsed<Option<i64>> {
                c.skip_blanks();
                if matches!(c.peek(), b'-' | b'0'..=b'9') { integer(c).map(Some) } else { Ok(None) }
            };
            let end = bound()?;
            c.skip_blanks();
            let step = if c.take(":") {
                c.skip_blanks();
                if matches!(c.peek(), b'-' | b'0'..=b'9') { integer(c)? } else { 1 }
            } else {
                1
            };
            Ok(Selector::Slice { start, end, step })
        }
        _ => c.error(format!("expected a name in quotes, an index, a slice, * or ?{}", c.found())),
    }
}

fn integer(c: &mut Cursor<'_>) -> Parsed<i64> {
    let start = c.at;
    c.take("-");
    let digits = c.take_while(|b| b.is_ascii_digit());
    let text = c.text.get(start..c.at).unwrap_or("");
    let written_well = !digits.is_empty() && (digits == "0" || !digits.starts_with('0')) && text != "-0";
    match text.parse::<i64>() {
        Ok(number) if written_well && number.abs() <= MAX_INTEGER => Ok(number),
        _ if written_well => c.error_from(start, "the integer is out of range"),
        _ => c.error_from(start, "not an integer"),
    }
}

fn or(c: &mut Cursor<'_>) -> Parsed<Expr> {
    let mut terms = vec![and(c)?];
    loop {
        let before = c.at;
        c.skip_blanks();
        if !c.take("||") {
            c.at = before;
            return Ok(if terms.len() == 1 { terms.swap_remove(0) } else { Expr::Or(terms) });
        }
        c.skip_blanks();
        terms.push(and(c)?);
    }
}

fn and(c: &mut Cursor<'_>) -> Parsed<Expr> {
    let mut terms = vec![basic(c)?];
    loop {
        let before = c.at;
        c.skip_blanks();
        if !c.take("&&") {
            c.at = before;
            return Ok(if terms.len() == 1 { terms.swap_remove(0) } else { Expr::And(terms) });
        }
        c.skip_blanks();
        terms.push(basic(c)?);
    }
}

fn basic(c: &mut Cursor<'_>) -> Parsed<Expr> {
    if c.take("!") {
        c.skip_blanks();
        let negated = if c.peek() == b'(' { parenthesised(c)? } else { test(c)? };
        return Ok(Expr::Not(Box::new(negated)));
    }
    if c.peek() == b'(' { parenthesised(c) } else { comparison_or_test(c) }
}

fn parenthesised(c: &mut Cursor<'_>) -> Parsed<Expr> {
    c.expect("(")?;
    c.skip_blanks();
    let inner = c.nested(or)?;
    c.skip_blanks();
    c.expect(")")?;
    Ok(inner)
}

/// What a term of a condition can turn out to be.
enum Term {
    Literal(Value),
    Query(Query),
    /// A function with a value.
    Value(Operand),
    /// A function that is true or false.
    Logical(Expr),
}

fn test(c: &mut Cursor<'_>) -> Parsed<Expr> {
    let start = c.at;
    match term(c)? {
        Term::Query(query) => Ok(Expr::Exists(query)),
        Term::Logical(expr) => Ok(expr),
        _ => c.error_from(start, "a value must be compared with something"),
    }
}

fn comparison_or_test(c: &mut Cursor<'_>) -> Parsed<Expr> {
    let start = c.at;
    let left = term(c)?;
    let end = c.at;
    c.skip_blanks();
    let operators = [
        ("==", Operator::Equal),
        ("!=", Operator::NotEqual),
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ];
    let Some((_, operator)) = operators.into_iter().find(|(token, _)| c.take(token)) else {
        c.at = end;
        return match left {
            Term::Query(query) => Ok(Expr::Exists(query)),
            Term::Logical(expr) => Ok(expr),
            _ => c.error_from(start, "a value must be compared with something"),
        };
    };
    let left = comparable(start..end, left)?;
    c.skip_blanks();
    let start = c.at;
    let right = term(c)?;
    let right = comparable(start..c.at, right)?;
    Ok(Expr::Compare(left, operator, right))
}

fn comparable(span: Range<usize>, term: Term) -> Parsed<Operand> {
    match term {
        Term::Literal(value) => Ok(Operand::Literal(value)),
        Term::Query(query) if query.singular => Ok(Operand::Query(query)),
        Term::Query(_) => Err(JsonPathError {
            message: "a path that can select more than one value cannot be compared".to_owned(),
            span,
        }),
        Term::Value(operand) => Ok(operand),
        Term::Logical(_) => Err(JsonPathError {
            message: "the function is true or false and cannot be compared".to_owned(),
            span,
        }),
    }
}

fn term(c: &mut Cursor<'_>) -> Parsed<Term> {
    match c.peek() {
        b'\'' | b'"' => Ok(Term::Literal(Value::String(c.string(true)?))),
        b'-' | b'0'..=b'9' => Ok(Term::Literal(c.number()?)),
        b'$' | b'@' => {
            let absolute = c.peek() == b'$';
            c.at += 1;
            let segments = c.nested(segments)?;
            Ok(Term::Query(Query::new(absolute, segments)))
        }
        b'a'..=b'z' => match c.keyword() {
            Some(value) => Ok(Term::Literal(value)),
            None => c.nested(function),
        },
        _ => c.error(format!("expected a path, a value or a function{}", c.found())),
    }
}

fn function(c: &mut Cursor<'_>) -> Parsed<Term> {
    let start = c.at;
    let name = c.take_while(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    let count = match name {
        "length" | "count" | "value" => 1,
        "match" | "search" => 2,
        _ => return c.error_from(start, format!("there is no function {name}")),
    };
    c.expect("(")?;
    let mut args = Vec::new();
    c.list(")", |c| {
        let start = c.at;
        let arg = term(c)?;
        args.push((start..c.at, arg));
        Ok(())
    })?;
    if args.len() != count {
        return c.error_from(start, format!("{name}() takes {count}, not {} arguments", args.len()));
    }
    let mut args = args.into_iter();
    let mut next = || args.next().unwrap_or((start..start, Term::Literal(Value::Null)));
    let (span, first) = next();
    if matches!(name, "count" | "value") {
        let Term::Query(query) = first else {
            return Err(JsonPathError { message: format!("{name}() takes a path"), span });
        };
        return Ok(Term::Value(if name == "count" {
            Operand::Count(query)
        } else {
            Operand::ValueOf(query)
        }));
    }
    let text = comparable(span, first)?;
    if name == "length" {
        return Ok(Term::Value(Operand::Length(Box::new(text))));
    }
    let whole = name == "match";
    let (span, second) = next();
    let pattern = match comparable(span, second)? {
        // One that is no pattern matches nothing (2.4.6), so it stays a literal.
        Operand::Literal(Value::String(source)) => match Pattern::iregexp(&source, whole) {
            Ok(pattern) => Operand::Pattern(pattern),
            Err(_) => Operand::Literal(Value::Null),
        },
        other => other,
    };
    Ok(Term::Logical(Expr::Matches { text, pattern, whole }))
}
