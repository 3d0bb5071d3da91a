//! The functions that need nothing but their arguments.

mod convert;
mod encode;
mod math;
mod text;
mod time;

use crate::evaluate::{Failure, failure};
use crate::number::Number;
use crate::value::Value;
use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;

/// The arguments, none of them null.
pub(crate) type Arguments<'s, 'v> = &'s mut Vec<Value<'v>>;
pub(crate) type Result<'v> = std::result::Result<Value<'v>, Failure>;

/// A function.
pub(crate) struct Function {
    pub name: &'static str,
    pub arity: RangeInclusive<usize>,
    pub run: for<'v> fn(Arguments<'_, 'v>) -> Result<'v>,
}

impl fmt::Debug for Function {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name)
    }
}

const TABLES: &[&[Function]] =
    &[text::FUNCTIONS, math::FUNCTIONS, convert::FUNCTIONS, encode::FUNCTIONS, time::FUNCTIONS];
/// Those that look at more than their arguments.
const OTHERS: &[&str] = &["exists", "xpath", "registry", "wso2-vault"];

/// The function of a name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    TABLES.iter().flat_map(|table| table.iter()).find(|function| function.name == name)
}

/// The names of all functions.
pub fn names() -> impl Iterator<Item = &'static str> {
    let plain = TABLES.iter().flat_map(|table| table.iter().map(|function| function.name));
    plain.chain(OTHERS.iter().copied())
}

/// The argument at a place as text.
fn text<'s>(arguments: &'s [Value<'_>], at: usize) -> std::result::Result<Cow<'s, str>, Failure> {
    match arguments.get(at) {
        None => failure("an argument is missing"),
        Some(value) => {
            value.as_text().ok_or_else(|| Failure(format!("a text is wanted, not {}", value.kind())))
        }
    }
}

/// The argument at a place as a number.
fn number(arguments: &[Value<'_>], at: usize) -> std::result::Result<Number, Failure> {
    match arguments.get(at) {
        Some(Value::Number(number)) => Ok(*number),
        Some(other) => failure(format!("a number is wanted, not {}", other.kind())),
        None => failure("an argument is missing"),
    }
}

/// The argument at a place as a whole number that is not negative.
fn index(arguments: &[Value<'_>], at: usize) -> std::result::Result<usize, Failure> {
    let whole = number(arguments, at)?.as_i64().and_then(|index| usize::try_from(index).ok());
    whole.ok_or_else(|| Failure("a whole number of 0 or more is wanted".to_owned()))
}
