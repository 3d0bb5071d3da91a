//! YAML 1.2 as JSON, as far as configuration needs it: definitions of APIs.
//!
//! Scalars are read by the core schema; what has an explicit type `!!str` is a text. Names of members are texts. One document is read.

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};
use std::collections::HashMap;
use std::fmt;

/// Deepest nesting.
const DEPTH: usize = 256;
/// Most values in a document, those of aliases counted where they are used.
const VALUES: usize = 1_000_000;

/// Why a text is not YAML, or none that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// A list or a map that is not at its end.
struct Open {
    value: Value,
    /// Of a map: the name of the next value.
    name: Option<String>,
    anchor: usize,
}

#[derive(Default)]
struct Reader {
    open: Vec<Open>,
    anchors: HashMap<usize, (Value, usize)>,
    values: usize,
    whole: Option<Value>,
}

/// Reads the first document; an empty one is null.
///
/// # Errors
/// It is not YAML, nested too deeply, too large, or has names that are lists or maps.
pub fn parse(text: &str) -> Result<Value, Error> {
    let mut reader = Reader::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| Error(error.to_string()))?;
        let done = reader.event(event);
        done.map_err(|why| {
            Error(format!("{why} at line {} column {}", span.start.line(), span.start.col() + 1))
        })?;
        if reader.whole.is_some() {
            break;
        }
    }
    Ok(reader.whole.unwrap_or(Value::Null))
}

impl Reader {
    fn event(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = tag.as_ref().is_some_and(|tag| tag.suffix == "str");
                let value = match style {
                    ScalarStyle::Plain if !is_text => plain(&text),
                    _ => Value::String(text.into_owned()),
                };
                self.value(value, 1, anchor)
            }
            Event::Alias(anchor) => {
                let (value, values) =
                    self.anchors.get(&anchor).cloned().ok_or("an alias of what is not at its end")?;
                self.value(value, values, 0)
            }
            Event::SequenceStart(anchor, _) => self.begin(Value::Array(Vec::new()), anchor),
            Event::MappingStart(anchor, _) => self.begin(Value::Object(Map::new()), anchor),
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(open) = self.open.pop() else { return Err("an end without a beginning".to_owned()) };
                self.value(open.value, 1, open.anchor)
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, value: Value, anchor: usize) -> Result<(), String> {
        if self.open.len() >= DEPTH {
            return Err(format!("more than {DEPTH} values in one another"));
        }
        self.open.push(Open { value, name: None, anchor });
        Ok(())
    }

    /// Takes a value of so many values.
    fn value(&mut self, value: Value, values: usize, anchor: usize) -> Result<(), String> {
        self.values += values;
        // What has an anchor is kept once more.
        let kept = if anchor > 0 { count(&value) } else { 0 };
        self.values += kept;
        if self.values > VALUES {
            return Err(format!("more than {VALUES} values"));
        }
        if anchor > 0 {
            self.anchors.insert(anchor, (value.clone(), kept));
        }
        let Some(open) = self.open.last_mut() else {
            self.whole = Some(value);
            return Ok(());
        };
        match (&mut open.value, open.name.take()) {
            (Value::Array(items), _) => items.push(value),
            (Value::Object(members), Some(name)) if name == "<<" => merge(members, value),
            (Value::Object(members), Some(name)) => {
                if members.insert(name.clone(), value).is_some() {
                    return Err(format!("`{name}` is there twice"));
                }
            }
            _ => {
                open.name = Some(match value {
                    Value::String(name) => name,
                    Value::Array(_) | Value::Object(_) => {
                        return Err("a name that is not a scalar".to_owned());
                    }
                    other => other.to_string(),
                });
            }
        }
        Ok(())
    }
}

/// `<<: *defaults`: what is not there itself.
fn merge(members: &mut Map<String, Value>, value: Value) {
    let items = match value {
        Value::Array(items) => items,
        one => vec![one],
    };
    for value in items {
        let Value::Object(others) = value else { continue };
        for (name, value) in others {
            members.entry(name).or_insert(value);
        }
    }
}

fn count(value: &Value) -> usize {
    let mut pending = vec![value];
    let mut count = 0;
    while let Some(value) = pending.pop() {
        count += 1;
        match value {
            Value::Array(items) => pending.extend(items),
            Value::Object(members) => pending.extend(members.values()),
            _ => {}
        }
    }
    count
}

/// A plain scalar by the core schema.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let of_base = |prefix: &str, base: u32| {
        let digits = text.strip_prefix(prefix)?;
        u64::from_str_radix(digits, base).ok().map(|number| Value::Number(number.into()))
    };
    let decimal = || {
        let digits = text.strip_prefix('+').unwrap_or(text);
        let is_number = digits.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit() || c == '.');
        if !is_number
            || !digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+' | b'e' | b'E'))
        {
            return None;
        }
        // JSON has the digits as they are; what JSON does not write so (`01`, `.5`, `1.`) goes by its value.
        if let Ok(number) = serde_json::from_str::<Number>(digits) {
            return Some(Value::Number(number));
        }
        if let Ok(number) = digits.parse::<i64>() {
            return Some(Value::Number(number.into()));
        }
        digits.parse::<f64>().ok().and_then(Number::from_f64).map(Value::Number)
    };
    of_base("0x", 16).or_else(|| of_base("0o", 8)).or_else(decimal).unwrap_or_else(|| Value::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn yaml_is_read_as_json() {
        for (text, expected) in [
            ("", json!(null)),
            ("a: 1\nb: [x, 'y', \"z\\n\"]\n", json!({ "a": 1, "b": ["x", "y", "z\n"] })),
            (
                "openapi: 3.0.0\ninfo:\n  version: '1.0'\n",
                json!({ "openapi": "3.0.0", "info": { "version": "1.0" } }),
            ),
            (
                "responses:\n  200:\n    description: >\n      folded\n      text\n",
                json!({ "responses": { "200": { "description": "folded text\n" } } }),
            ),
            (
                "a: &x {b: true}\nc: *x\nd:\n  <<: *x\n  e: ~\n",
                json!({ "a": { "b": true }, "c": { "b": true }, "d": { "b": true, "e": null } }),
            ),
            (
                "- 1.50\n- -0x\n- 0x1F\n- +7\n- 012\n- 1e3\n- !!str 5\n- 2024-01-01\n- yes\n",
                serde_json::from_str(r#"[1.50,"-0x",31,7,12,1e3,"5","2024-01-01","yes"]"#).unwrap(),
            ),
            ("{\"a\": [1, {\"b\": null}]}", json!({ "a": [1, { "b": null }] })),
            ("--- # a\na: |\n  x\n   y\n...\n---\nb: 2\n", json!({ "a": "x\n y\n" })),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
        for text in ["a: [1", "a: 1\na: 2\n", "? [1]\n: 2\n", "a: *b\n", "\ta: 1\n  b: : :"] {
            assert!(parse(text).is_err(), "{text}: {:?}", parse(text));
        }
    }

    #[test]
    fn what_grows_or_nests_without_end_is_refused() {
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for n in 1..10 {
            bomb += &format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 10].join(", "));
        }
        assert!(parse(&bomb).unwrap_err().to_string().contains("more than 1000000 values"));
        assert!(parse(&"[".repeat(100_000)).is_err());
        assert!(parse(&"- ".repeat(100_000)).is_err());
    }
}
