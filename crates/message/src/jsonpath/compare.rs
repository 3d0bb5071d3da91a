//! Comparison of values, and regular expressions.

use super::ast::Operator;
use super::{Dialect, number};
use crate::regex;
use meter::Stop;
use serde_json::Value;
use std::cmp::Ordering;

/// A compiled regular expression: one of Java, or an I-Regexp (RFC 9485).
#[derive(Clone, Debug)]
pub(super) enum Pattern {
    Java(Box<regex::Pattern>),
    IRegexp(Box<meter::regex::Regex>),
}

impl Pattern {
    /// A pattern between slashes with Java's flags (`i m s x`; `d u U` change nothing here). The whole text has
    /// to match.
    pub fn java(source: &str, flags: &str) -> Result<Pattern, String> {
        regex::Pattern::with_flags(source, flags).map(|pattern| Pattern::Java(Box::new(pattern)))
    }

    /// An I-Regexp (RFC 9485); `whole`: the whole text has to match.
    pub fn iregexp(source: &str, whole: bool) -> Result<Pattern, String> {
        // The dot excludes both line ends there.
        let mut translated = String::with_capacity(source.len() + 16);
        let mut chars = source.chars();
        let mut in_class = false;
        while let Some(c) = chars.next() {
            match c {
                '\\' => {
                    translated.push(c);
                    translated.extend(chars.next());
                }
                '[' => {
                    // No nested classes in I-Regexp: a bracket within a class is itself.
                    translated.push_str(if in_class { r"\[" } else { "[" });
                    in_class = true;
                }
                ']' => {
                    in_class = false;
                    translated.push(c);
                }
                '.' if !in_class => translated.push_str(r"[^\n\r]"),
                c => translated.push(c),
            }
        }
        let translated = if whole { format!(r"\A(?:{translated})\z") } else { translated };
        regex::build(&translated).map(|pattern| Pattern::IRegexp(Box::new(pattern)))
    }

    /// Whether `text` matches; a pattern that goes back too often does not.
    ///
    /// # Errors
    /// The run has to end before this is decided.
    pub fn is_match(&self, text: &str) -> Result<bool, Stop> {
        match self {
            Pattern::Java(pattern) => pattern.matches(text),
            Pattern::IRegexp(pattern) => regex::decided(pattern.is_match(text)),
        }
    }
}

/// Deep equality; numbers by value (`1` is `1.0`), members in any order.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            number::compare(a.as_str(), b.as_str()) == Some(Ordering::Equal)
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| equal(a, b)))
        }
        _ => a == b,
    }
}

/// Equality as Jayway has it: also between a number and a string that reads the same.
fn loosely_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::String(b)) => {
            number::compare(a.as_str(), b.trim()) == Some(Ordering::Equal)
        }
        (Value::String(a), Value::Number(b)) => a == b.as_str(),
        _ => equal(a, b),
    }
}

fn order(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => number::compare(a.as_str(), b.as_str()),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

/// `left operator right`; `None` is RFC 9535's Nothing and Jayway's undefined.
pub(super) fn holds(
    dialect: Dialect,
    left: Option<&Value>,
    operator: Operator,
    right: Option<&Value>,
) -> bool {
    let equals = || match (left, right) {
        (Some(a), Some(b)) if dialect == Dialect::Jayway => loosely_equal(a, b),
        (Some(a), Some(b)) => equal(a, b),
        (None, None) => dialect == Dialect::Rfc9535,
        _ => false,
    };
    let ordered = || order(left?, right?);
    let contains = |list: &[Value], item: &Value| list.iter().any(|other| loosely_equal(item, other));
    match operator {
        Operator::Equal => equals(),
        Operator::NotEqual => !equals(),
        Operator::Less => ordered() == Some(Ordering::Less),
        Operator::Greater => ordered() == Some(Ordering::Greater),
        Operator::LessOrEqual if dialect == Dialect::Rfc9535 => ordered() == Some(Ordering::Less) || equals(),
        Operator::GreaterOrEqual if dialect == Dialect::Rfc9535 => {
            ordered() == Some(Ordering::Greater) || equals()
        }
        Operator::LessOrEqual => ordered().is_some_and(Ordering::is_le),
        Operator::GreaterOrEqual => ordered().is_some_and(Ordering::is_ge),
        Operator::Identical => left.zip(right).is_some_and(|(a, b)| equal(a, b)),
        Operator::NotIdentical => !left.zip(right).is_some_and(|(a, b)| equal(a, b)),
        Operator::In => match (left, right) {
            (Some(item), Some(Value::Array(list))) => contains(list, item),
            _ => false,
        },
        Operator::NotIn => match (left, right) {
            (Some(item), Some(Value::Array(list))) => !contains(list, item),
            _ => true,
        },
        Operator::SubsetOf | Operator::AnyOf | Operator::NoneOf | Operator::All => {
            let (Some(Value::Array(left)), Some(Value::Array(right))) = (left, right) else { return false };
            match operator {
                Operator::SubsetOf => left.iter().all(|item| contains(right, item)),
                Operator::AnyOf => left.iter().any(|item| contains(right, item)),
                Operator::NoneOf => !left.iter().any(|item| contains(right, item)),
                _ => right.iter().all(|item| contains(left, item)),
            }
        }
        Operator::Contains => match (left, right) {
            (Some(Value::String(text)), Some(Value::String(part))) => text.contains(part.as_str()),
            (Some(Value::Array(list)), Some(item)) => contains(list, item),
            _ => false,
        },
        Operator::Size => {
            let len = left.and_then(length);
            len.is_some() && len == right.and_then(Value::as_u64)
        }
        Operator::Empty => {
            let empty = left.and_then(length).map(|len| len == 0);
            empty.is_some() && empty == right.and_then(Value::as_bool)
        }
        // Needs a pattern: the evaluation does it.
        Operator::Matches => false,
    }
}

/// Members, elements or characters.
pub(super) fn length(value: &Value) -> Option<u64> {
    Some(match value {
        Value::String(text) => text.chars().count() as u64,
        Value::Array(elements) => elements.len() as u64,
        Value::Object(members) => members.len() as u64,
        _ => return None,
    })
}
