//! Texts. Positions count as in Java: in units of UTF-16.

use super::{Arguments, Function, Result, index, text};
use crate::evaluate::{Failure, failure};
use crate::number::Number;
use crate::value::Value;
use message::regex::Search;
use serde_json::Value as Json;
use std::borrow::Cow;

pub(super) const FUNCTIONS: &[Function] = &[
    Function { name: "length", arity: 1..=1, run: length },
    Function { name: "toUpper", arity: 1..=1, run: |a| owned(plain(a)?.to_uppercase()) },
    Function { name: "toLower", arity: 1..=1, run: |a| owned(plain(a)?.to_lowercase()) },
    Function {
        name: "trim",
        arity: 1..=1,
        run: |a| owned(text(a, 0)?.trim_matches(|c| c <= ' ').to_owned()),
    },
    Function { name: "subString", arity: 2..=3, run: sub_string },
    Function { name: "startsWith", arity: 2..=2, run: |a| truth(text(a, 0)?.starts_with(&*text(a, 1)?)) },
    Function { name: "endsWith", arity: 2..=2, run: |a| truth(text(a, 0)?.ends_with(&*text(a, 1)?)) },
    Function { name: "contains", arity: 2..=2, run: |a| truth(text(a, 0)?.contains(&*text(a, 1)?)) },
    Function {
        name: "replace",
        arity: 3..=3,
        run: |a| owned(text(a, 0)?.replace(&*text(a, 1)?, &text(a, 2)?)),
    },
    Function { name: "split", arity: 2..=2, run: split },
    Function { name: "indexOf", arity: 2..=3, run: index_of },
    Function { name: "charAt", arity: 2..=2, run: char_at },
];

fn owned<'v>(text: String) -> Result<'v> {
    Ok(Value::Text(Cow::Owned(text)))
}

/// The argument as text; numbers and truths of the message have one.
fn plain<'s>(arguments: &'s [Value<'_>]) -> std::result::Result<Cow<'s, str>, Failure> {
    match arguments.first() {
        Some(Value::Number(number)) => Ok(number.to_string().into()),
        Some(Value::Boolean(truth)) => Ok(truth.to_string().into()),
        _ => text(arguments, 0),
    }
}

fn truth<'v>(truth: bool) -> Result<'v> {
    Ok(Value::Boolean(truth))
}

fn whole<'v>(number: usize) -> Result<'v> {
    Ok(Value::Number(Number::Integer(i64::try_from(number).unwrap_or(i64::MAX))))
}

fn length<'v>(arguments: Arguments<'_, 'v>) -> Result<'v> {
    if let Some(Value::Json(json)) = arguments.first() {
        return match json.as_array() {
            Some(items) => whole(items.len()),
            None => failure("a text or an array is wanted, not an object"),
        };
    }
    whole(units(&text(arguments, 0)?))
}

/// The length of a text in UTF-16.
fn units(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.encode_utf16().count() }
}

/// The byte at a position in UTF-16; within a pair, the character after it.
fn byte_at(text: &str, position: usize) -> Option<usize> {
    if text.is_ascii() {
        return (position <= text.len()).then_some(position);
    }
    let mut passed = 0;
    for (at, c) in text.char_indices() {
        if passed >= position {
            return Some(at);
        }
        passed += c.len_utf16();
    }
    (passed >= position).then_some(text.len())
}

fn sub_string<'v>(arguments: Arguments<'_, 'v>) -> Result<'v> {
    let whole_text = text(arguments, 0)?;
    let from = byte_at(&whole_text, index(arguments, 1)?);
    let to =
        if arguments.len() > 2 { byte_at(&whole_text, index(arguments, 2)?) } else { Some(whole_text.len()) };
    match from.zip(to).and_then(|(from, to)| whole_text.get(from..to)) {
        Some(part) => owned(part.to_owned()),
        None => failure("there is no such part"),
    }
}

fn index_of<'v>(arguments: Arguments<'_, 'v>) -> Result<'v> {
    let (whole_text, wanted) = (text(arguments, 0)?, text(arguments, 1)?);
    let from = if arguments.len() > 2 { index(arguments, 2)? } else { 0 };
    let found =
        byte_at(&whole_text, from).and_then(|from| Some(from + whole_text.get(from..)?.find(&*wanted)?));
    match found {
        Some(at) => whole(units(&whole_text[..at])),
        None => Ok(Value::Number(Number::Integer(-1))),
    }
}

fn char_at<'v>(arguments: Arguments<'_, 'v>) -> Result<'v> {
    let whole_text = text(arguments, 0)?;
    let at = byte_at(&whole_text, index(arguments, 1)?);
    match at.and_then(|at| whole_text.get(at..)?.chars().next()) {
        Some(c) => owned(c.to_string()),
        None => failure("the text is shorter"),
    }
}

/// As Java does it: no empty parts at the end, and none before a match of nothing at the beginning.
fn split<'v>(arguments: Arguments<'_, 'v>) -> Result<'v> {
    let (whole_text, pattern) = (text(arguments, 0)?, text(arguments, 1)?);
    let plain = !pattern.is_empty() && !pattern.contains(|c| "\\[](){}.*+?^$|#&-~".contains(c));
    let mut parts: Vec<&str> = Vec::new();
    if plain {
        parts.extend(whole_text.split(&*pattern));
    } else {
        let search = Search::compile(&pattern)
            .map_err(|why| Failure(format!("{pattern} is not a regular expression: {why}")))?;
        let found = search.matches(&whole_text);
        let mut done = 0;
        for found in found.map_err(|_| Failure(format!("{pattern} takes too long on this text")))? {
            if found.end == 0 || (found.is_empty() && found.start >= whole_text.len()) {
                continue;
            }
            parts.push(&whole_text[done..found.start]);
            done = found.end;
        }
        parts.push(&whole_text[done..]);
    }
    if parts.len() > 1 {
        while parts.last().is_some_and(|part| part.is_empty()) {
            parts.pop();
        }
    }
    Ok(Value::Json(Cow::Owned(Json::Array(parts.into_iter().map(Json::from).collect()))))
}
