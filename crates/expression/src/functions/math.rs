//! Numbers.

use super::{Arguments, Function, Result, index, number};
use crate::evaluate::failure;
use crate::number::Number;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function { name: "abs", arity: 1..=1, run: abs },
    Function { name: "ceil", arity: 1..=1, run: |a| whole(number(a, 0)?, f64::ceil) },
    Function { name: "floor", arity: 1..=1, run: |a| whole(number(a, 0)?, f64::floor) },
    Function { name: "round", arity: 1..=2, run: round },
    Function { name: "sqrt", arity: 1..=1, run: |a| binary(number(a, 0)?.as_f64().sqrt()) },
    Function { name: "pow", arity: 2..=2, run: pow },
    Function { name: "log", arity: 1..=2, run: log },
];

fn binary<'v>(value: f64) -> Result<'v> {
    // JSON has no such numbers.
    if value.is_finite() {
        Ok(Value::Number(Number::of(value)))
    } else {
        failure("the result is not a number")
    }
}

fn abs<'v>(arguments: Arguments<'_, 'v>) -> Result<'v> {
    let value = number(arguments, 0)?;
    let negative = value.as_f64() < 0.0;
    Ok(Value::Number(if negative { Number::Integer(0).subtract(value) } else { value }))
}

fn whole<'v>(value: Number, to: fn(f64) -> f64) -> Result<'v> {
    match value.normal() {
        Number::Integer(whole) => Ok(Value::Number(Number::Integer(whole))),
        other => binary(to(other.as_f64())),
    }
}

/// Without digits a half goes up, towards the positive; with digits away from zero.
fn round<'v>(arguments: Arguments<'_, 'v>) -> Result<'v> {
    let value = number(arguments, 0)?;
    if arguments.len() == 1 {
        return whole(value, |value| (value + 0.5).floor());
    }
    let digits = index(arguments, 1)?;
    if !(1..=100).contains(&digits) {
        return failure("1 to 100 digits can be kept");
    }
    match value.rounded(digits as u32) {
        Some(rounded) => Ok(Value::Number(rounded)),
        None => failure("this is not a number"),
    }
}

fn pow<'v>(arguments: Arguments<'_, 'v>) -> Result<'v> {
    let (base, exponent) = (number(arguments, 0)?, number(arguments, 1)?);
    if let (Number::Integer(base), Some(exponent)) = (base, exponent.as_i64())
        && let Ok(exponent) = u32::try_from(exponent)
        && let Some(exact) = base.checked_pow(exponent)
    {
        return Ok(Value::Number(Number::Integer(exact)));
    }
    binary(base.as_f64().powf(exponent.as_f64()))
}

fn log<'v>(arguments: Arguments<'_, 'v>) -> Result<'v> {
    let value = number(arguments, 0)?.as_f64();
    if arguments.len() == 1 {
        return binary(value.log10());
    }
    let base = number(arguments, 1)?.as_f64();
    binary(if base == 2.0 { value.log2() } else { value.ln() / base.ln() })
}
