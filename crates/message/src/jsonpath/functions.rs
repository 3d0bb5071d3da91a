//! The functions at the end of a Jayway path.

use super::Failure;
use super::ast::Function;
use super::compare;
use serde_json::{Number, Value};

/// Applies `function` to one value, or to the list of all matches (`gathered`).
pub(super) fn call(
    function: Function,
    subject: &Value,
    args: &[Value],
    gathered: bool,
) -> Result<Value, Failure> {
    let not_found = |what: &str| Err(Failure::NotFound(what.to_owned()));
    match function {
        Function::Length => {
            // length($.a) counts what its argument selects; of a list of matches it counts what they hold.
            let len = match (args.first(), subject) {
                (Some(arg), _) => compare::length(arg),
                (None, Value::Array(matches)) if gathered => {
                    let contained = matches.iter().filter(|v| v.is_array() || v.is_object());
                    let inside: u64 = contained.clone().filter_map(compare::length).sum();
                    Some(if contained.count() == 0 { matches.len() as u64 } else { inside })
                }
                (None, subject) => compare::length(subject),
            };
            match len {
                Some(len) => Ok(Value::from(len)),
                None => not_found("length() of a value that has none"),
            }
        }
        Function::Keys => match subject {
            Value::Object(members) => Ok(members.keys().map(|name| Value::from(name.as_str())).collect()),
            _ => not_found("keys() of something that is not an object"),
        },
        Function::First | Function::Last | Function::Index => {
            let Value::Array(list) = subject else {
                return not_found("first(), last() or index() of something that is not an array");
            };
            let index = match function {
                Function::First => 0,
                Function::Last => -1,
                _ => args.first().and_then(Value::as_i64).unwrap_or(0),
            };
            match super::ast::position(index, list.len()).and_then(|index| list.get(index)) {
                Some(value) => Ok(value.clone()),
                None => not_found("first(), last() or index() of an array that is too short"),
            }
        }
        Function::Concat => {
            let mut out = String::new();
            if let Value::Array(list) = subject {
                list.iter().filter(|v| v.is_string()).for_each(|v| push_text(&mut out, v));
            }
            args.iter().for_each(|v| push_text(&mut out, v));
            Ok(Value::String(out))
        }
        Function::Unknown => not_found("there is no such function"),
        Function::Append => match subject {
            Value::Array(list) => Ok(list.iter().chain(args).cloned().collect()),
            _ => not_found("append() to something that is not an array"),
        },
        Function::Min | Function::Max | Function::Avg | Function::Sum | Function::Stddev => {
            let mut numbers = Vec::new();
            collect_numbers(subject, gathered, &mut numbers);
            args.iter().for_each(|arg| collect_numbers(arg, false, &mut numbers));
            match aggregate(function, &numbers) {
                Some(number) => Ok(Value::Number(number)),
                None => not_found("an aggregate of no numbers"),
            }
        }
    }
}

fn push_text(out: &mut String, value: &Value) {
    match value {
        Value::Array(list) => list.iter().for_each(|v| out.push_str(&super::text_of(v))),
        Value::Null => {}
        other => out.push_str(&super::text_of(other)),
    }
}

/// The numbers of an array, and of arrays in it where it is the list of matches. A number that is not an array
/// counts only as an argument.
fn collect_numbers(value: &Value, gathered: bool, out: &mut Vec<f64>) {
    let mut push = |value: &Value| out.extend(value.as_f64().filter(|n| n.is_finite()));
    match value {
        Value::Array(list) => {
            for item in list {
                match item {
                    Value::Array(inner) if gathered => inner.iter().for_each(&mut push),
                    item => push(item),
                }
            }
        }
        value => push(value),
    }
}

fn aggregate(function: Function, numbers: &[f64]) -> Option<Number> {
    if numbers.is_empty() {
        return None;
    }
    let count = numbers.len() as f64;
    let sum: f64 = numbers.iter().sum();
    Number::from_f64(match function {
        Function::Min => numbers.iter().copied().fold(f64::INFINITY, f64::min),
        Function::Max => numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        Function::Sum => sum,
        Function::Avg => sum / count,
        // Of the whole population, as Jayway computes it.
        _ => {
            let mean = sum / count;
            (numbers.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / count).sqrt()
        }
    })
}
