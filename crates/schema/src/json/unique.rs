//! `uniqueItems` in time that grows with the size of the array. The engine compares items by hashes that many different items share, such as
//! `[]`, `[[]]`, `[[],[]]` or numbers beyond a double, and compares all of those with one another.

use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError};
use serde_json::{Map, Number, Value};
use std::collections::HashSet;
use std::fmt::Write;

/// The name of the keyword.
pub(super) const NAME: &str = "uniqueItems";

type Checked<'a> = Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>>;

/// The keyword of a schema.
pub(super) fn keyword<'a>(_: &'a Map<String, Value>, wanted: &'a Value, _: Location) -> Checked<'a> {
    Ok(Box::new(UniqueItems(wanted == &Value::Bool(true))))
}

/// Whether the items have to be different.
struct UniqueItems(bool);

impl<'i> Keyword<'i> for UniqueItems {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        match self.is_valid(instance) {
            true => Ok(()),
            false => Err(ValidationError::custom(format!("{instance} has non-unique elements"))),
        }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        let Some(items) = instance.as_array().filter(|items| self.0 && items.len() > 1) else { return true };
        let mut seen = HashSet::with_capacity(items.len());
        items.iter().all(|item| {
            let mut text = String::new();
            write(item, &mut text);
            seen.insert(text)
        })
    }
}

/// Writes a value so that those which JSON Schema calls equal (1 and 1.0, members in any order) have the same text, and no others.
fn write(value: &Value, out: &mut String) {
    match value {
        Value::Number(number) => write_number(number, out),
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| *name);
            out.push('{');
            for (name, member) in sorted {
                _ = write!(out, "{name:?}:");
                write(member, out);
                out.push(',');
            }
            out.push('}');
        }
        Value::String(text) => _ = write!(out, "{text:?}"),
        Value::Null | Value::Bool(_) => _ = write!(out, "{value}"),
    }
}

fn write_number(number: &Number, out: &mut String) {
    let whole = number.as_u64().map(i128::from).or_else(|| number.as_i64().map(i128::from));
    let double = number.as_f64();
    // Every whole number within these bounds is one of i128.
    let whole = whole.or_else(|| double.filter(|x| x.fract() == 0.0 && x.abs() < 1e38).map(|x| x as i128));
    _ = match (whole, double) {
        (Some(whole), _) => write!(out, "{whole}"),
        (None, Some(double)) => write!(out, "{double:e}"),
        // Beyond a double.
        (None, None) => write!(out, "{number}"),
    };
}

#[cfg(test)]
mod tests {
    use crate::{Draft, JsonSchema, Nothing, Source};
    use serde_json::Value;

    fn is_unique(items: &str) -> bool {
        let source = Source { name: "s".into(), bytes: br#"{"uniqueItems": true}"#.to_vec() };
        let schema = JsonSchema::load(source, Draft::Draft7, &Nothing).unwrap();
        let value: Value = serde_json::from_str(items).unwrap();
        let violations = schema.validate(&value);
        assert_eq!(schema.is_valid(&value), violations.is_empty(), "{items}");
        assert!(violations.iter().all(|violation| violation.rule == "uniqueItems"), "{violations:?}");
        violations.is_empty()
    }

    #[test]
    fn items_are_equal_as_json_schema_has_it() {
        for (items, wanted) in [
            ("[]", true),
            ("[1]", true),
            ("[1, 1]", false),
            ("[1, 1.0]", false),
            ("[1, 1e0]", false),
            ("[0, -0.0]", false),
            ("[0.1, 1e-1]", false),
            ("[18446744073709551615, 18446744073709551614]", true),
            ("[18446744073709551616, 18446744073709551616.0]", false),
            ("[1e400, 1e400]", false),
            ("[1e400, 1e401]", true),
            ("[1, \"1\", true, null, [], {}, [1], \"\"]", true),
            ("[{\"a\": 1, \"b\": 2}, {\"b\": 2.0, \"a\": 1}]", false),
            ("[{\"a\": 1}, {\"a\": 2}]", true),
            ("[[1, 2], [2, 1]]", true),
            ("[[1, [2]], [1, [2]]]", false),
            ("[[\"a\", \"b\"], [\"a,b\"], [\"a\\\",\\\"b\"]]", true),
            ("[[[]], [[], []], [[[]]], []]", true),
        ] {
            assert_eq!(is_unique(items), wanted, "{items}");
        }
    }

    /// Different items of which the hashes of the engine were the same: each was compared with each, for minutes.
    #[test]
    fn items_that_look_alike_cost_no_more() {
        // Each number as brackets: `[]` is 0, `[[]]` is 1.
        let brackets = |number: u32| -> String {
            let bits = (0..18).map(|bit| if number >> bit & 1 == 1 { "[[]]," } else { "[]," });
            format!("[{}[]]", bits.collect::<String>())
        };
        let nested: Vec<String> = (0..50_000).map(brackets).collect();
        assert!(is_unique(&format!("[{}]", nested.join(","))));
        let numbers: Vec<String> = (0..50_000).map(|number| format!("1e{}", 1_000 + number)).collect();
        assert!(is_unique(&format!("[{}]", numbers.join(","))));
    }
}
