//! Types.

use super::{Arguments, Function, Result, text};
use crate::evaluate::{Failure, failure};
use crate::number::Number;
use crate::value::Value;
use serde_json::Value as Json;
use std::borrow::Cow;

pub(super) const FUNCTIONS: &[Function] = &[
    Function { name: "not", arity: 1..=1, run: not },
    Function { name: "isString", arity: 1..=1, run: |a| truth(matches!(a.first(), Some(Value::Text(_)))) },
    Function { name: "isNumber", arity: 1..=1, run: |a| truth(matches!(a.first(), Some(Value::Number(_)))) },
    Function {
        name: "isArray",
        arity: 1..=1,
        run: |a| truth(container(a).is_ok_and(|json| json.is_array())),
    },
    Function {
        name: "isObject",
        arity: 1..=1,
        run: |a| truth(container(a).is_ok_and(|json| json.is_object())),
    },
    Function { name: "string", arity: 1..=1, run: string },
    Function { name: "integer", arity: 1..=1, run: integer },
    Function { name: "float", arity: 1..=1, run: float },
    Function { name: "boolean", arity: 1..=1, run: boolean },
    Function { name: "array", arity: 1..=1, run: |a| json(a, Json::is_array, "an array") },
    Function { name: "object", arity: 1..=1, run: |a| json(a, Json::is_object, "an object") },
];

fn truth<'v>(truth: bool) -> Result<'v> {
    Ok(Value::Boolean(truth))
}

fn taken<'v>(arguments: Arguments<'_, 'v>) -> std::result::Result<Value<'v>, Failure> {
    arguments.pop().ok_or_else(|| Failure("an argument is missing".to_owned()))
}

fn not<'v>(arguments: Arguments<'_, 'v>) -> Result<'v> {
    match taken(arguments)? {
        Value::Boolean(operand) => truth(!operand),
        other => failure(format!("true or false is wanted, not {}", other.kind())),
    }
}

fn string<'v>(arguments: Arguments<'_, 'v>) -> Result<'v> {
    Ok(Value::Text(taken(arguments)?.into_text()))
}

fn integer<'v>(arguments: Arguments<'_, 'v>) -> Result<'v> {
    let found = match taken(arguments)? {
        // A number with a fraction is refused even if it is zero, as its text is.
        Value::Number(number @ Number::Integer(_)) => Some(number),
        value @ (Value::Text(_) | Value::Xml(_)) => {
            value.as_text().and_then(|text| text.trim().parse().ok()).map(Number::Integer)
        }
        _ => None,
    };
    found.map(Value::Number).ok_or_else(|| Failure("this is not a whole number".to_owned()))
}

fn float<'v>(arguments: Arguments<'_, 'v>) -> Result<'v> {
    let found = match taken(arguments)? {
        Value::Number(number) => Some(number),
        value @ (Value::Text(_) | Value::Xml(_)) => {
            value.as_text().and_then(|text| Number::parse(text.trim()))
        }
        _ => None,
    };
    found.map(Value::Number).ok_or_else(|| Failure("this is not a number".to_owned()))
}

fn boolean<'v>(arguments: Arguments<'_, 'v>) -> Result<'v> {
    match taken(arguments)? {
        Value::Boolean(operand) => truth(operand),
        other => truth(other.as_text().is_some_and(|text| text.eq_ignore_ascii_case("true"))),
    }
}

/// An array or an object, or the one that a text holds.
fn container<'s>(arguments: &'s [Value<'_>]) -> std::result::Result<Cow<'s, Json>, Failure> {
    match arguments.first() {
        Some(Value::Json(json)) => Ok(Cow::Borrowed(json)),
        Some(Value::Text(_)) => {
            let parsed = serde_json::from_str(&text(arguments, 0)?);
            parsed.map(Cow::Owned).map_err(|why| Failure(format!("this text is not JSON: {why}")))
        }
        Some(other) => failure(format!("JSON is wanted, not {}", other.kind())),
        None => failure("an argument is missing"),
    }
}

fn json<'v>(arguments: Arguments<'_, 'v>, fits: fn(&Json) -> bool, wanted: &str) -> Result<'v> {
    if let Some(Value::Json(_)) = arguments.first()
        && let Value::Json(json) = taken(arguments)?
    {
        return if fits(&json) { Ok(Value::Json(json)) } else { failure(format!("this is not {wanted}")) };
    }
    let parsed = container(arguments)?.into_owned();
    if fits(&parsed) { Ok(Value::Json(Cow::Owned(parsed))) } else { failure(format!("this is not {wanted}")) }
}
