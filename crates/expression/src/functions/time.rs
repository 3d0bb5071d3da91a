//! Times.

use super::{Arguments, Function, Result, number, text};
use crate::date::{DatePattern, Moment};
use crate::evaluate::{Failure, failure};
use crate::number::Number;
use crate::value::Value;
use std::borrow::Cow;

pub(super) const FUNCTIONS: &[Function] = &[
    Function { name: "now", arity: 0..=0, run: now },
    Function { name: "formatDateTime", arity: 2..=3, run: format_date_time },
];

fn now<'v>(_: Arguments<'_, 'v>) -> Result<'v> {
    Ok(Value::Number(Number::Integer(jiff::Timestamp::now().as_millisecond())))
}

/// Of milliseconds since 1970, in the time zone of the machine; or of a text in one pattern, in another.
fn format_date_time<'v>(arguments: Arguments<'_, 'v>) -> Result<'v> {
    let pattern = |at: usize| DatePattern::compile(&text(arguments, at)?).map_err(Failure);
    let (moment, wanted) = if arguments.len() == 2 {
        let Some(milliseconds) = number(arguments, 0)?.as_i64() else {
            return failure("whole milliseconds are wanted");
        };
        (Moment::of(milliseconds).map_err(Failure)?, pattern(1)?)
    } else {
        (pattern(1)?.parse(&text(arguments, 0)?).map_err(Failure)?, pattern(2)?)
    };
    wanted.format(&moment).map(|text| Value::Text(Cow::Owned(text))).map_err(Failure)
}
