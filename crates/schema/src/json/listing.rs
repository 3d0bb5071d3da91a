//! How much the engine has to do to list violations. It decides whether a value is valid in time that grows with the value; but for the list it
//! looks into each alternative of `anyOf` and `oneOf`, and where several of them lead to the same schema again, each level of a value
//! doubles the work and the memory: thirty levels would end the process.

use serde_json::Value;
use std::collections::HashMap;

/// Whatever the value is, so many schemas may be applied to its parts.
const FREE: u64 = 10_000;
/// Beyond that, so often may a schema be applied to the same part.
const AGAIN: u64 = 8;
/// Most pairs of a schema and a part that are looked at.
const MOST: usize = 1 << 20;

/// The documents of a schema that refers to others or to itself; without references nothing grows.
#[derive(Debug)]
pub(super) struct References {
    root: Value,
    others: HashMap<String, Value>,
}

impl References {
    /// `None`: the schema has no references.
    pub(super) fn of(root: &Value, others: &HashMap<String, Value>) -> Option<References> {
        let mut pending = vec![root];
        while let Some(value) = pending.pop() {
            match value {
                Value::Array(items) => pending.extend(items),
                Value::Object(members) if reference(value).is_none() => pending.extend(members.values()),
                Value::Object(_) => return Some(References { root: root.clone(), others: others.clone() }),
                _ => {}
            }
        }
        None
    }

    /// Whether the violations of a value can be listed.
    pub(super) fn can_list(&self, value: &Value) -> bool {
        let mut count = Count { references: self, known: HashMap::new() };
        let times = count.times(&self.root, &self.root, value);
        let pairs = count.known.len();
        pairs < MOST && times <= FREE.saturating_add(AGAIN.saturating_mul(pairs as u64))
    }

    /// What a reference leads to, with its document. One that is not a path in a known document is taken for the whole schema.
    fn target<'a>(&'a self, document: &'a Value, reference: &str) -> (&'a Value, &'a Value) {
        let (name, path) = reference.split_once('#').unwrap_or((reference, ""));
        let document = if name.is_empty() { Some(document) } else { self.others.get(name) };
        let found = document.and_then(|document| Some((document, document.pointer(path)?)));
        found.unwrap_or((&self.root, &self.root))
    }
}

fn reference(schema: &Value) -> Option<&str> {
    ["$ref", "$dynamicRef", "$recursiveRef"].iter().find_map(|name| schema.get(name)?.as_str())
}

struct Count<'a> {
    references: &'a References,
    /// By the addresses of a schema and of a part of the value.
    known: HashMap<(usize, usize), u64>,
}

impl<'a> Count<'a> {
    /// How often schemas are applied where this one is applied to this part.
    fn times(&mut self, document: &'a Value, schema: &'a Value, part: &Value) -> u64 {
        if !schema.is_object() || !(part.is_object() || part.is_array()) {
            return 1;
        }
        let pair = (std::ptr::from_ref(schema).addr(), std::ptr::from_ref(part).addr());
        if let Some(times) = self.known.get(&pair) {
            return *times;
        }
        if self.known.len() >= MOST {
            return 1;
        }
        // Where it comes back to itself, the engine stops.
        self.known.insert(pair, 0);
        let mut times = 1_u64;
        let mut add = |count: &mut Self, document: &'a Value, schema: &'a Value, part: &Value| {
            times = times.saturating_add(count.times(document, schema, part));
        };
        if let Some(reference) = reference(schema) {
            let (document, target) = self.references.target(document, reference);
            add(self, document, target, part);
        }
        for name in ["allOf", "anyOf", "oneOf"] {
            for same in schema.get(name).and_then(Value::as_array).into_iter().flatten() {
                add(self, document, same, part);
            }
        }
        for name in ["then", "else"] {
            schema.get(name).into_iter().for_each(|same| add(self, document, same, part));
        }
        for name in ["dependentSchemas", "dependencies"] {
            let members = schema.get(name).and_then(Value::as_object);
            members.into_iter().flatten().for_each(|(_, same)| add(self, document, same, part));
        }
        match part {
            Value::Object(members) => {
                let named = schema.get("properties").and_then(Value::as_object);
                let patterns = schema.get("patternProperties").and_then(Value::as_object);
                for (name, member) in members {
                    let own = named.and_then(|named| named.get(name));
                    own.into_iter().for_each(|schema| add(self, document, schema, member));
                    let matching = patterns.into_iter().flatten();
                    matching.for_each(|(_, schema)| add(self, document, schema, member));
                    for name in ["additionalProperties", "unevaluatedProperties"] {
                        let rest = schema.get(name).filter(|_| own.is_none());
                        rest.into_iter().for_each(|schema| add(self, document, schema, member));
                    }
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    let first = ["prefixItems", "items"].iter().find_map(|name| schema.get(name)?.get(at));
                    let rest = ["items", "additionalItems", "unevaluatedItems"].iter();
                    let rest = rest.filter_map(|name| schema.get(name)).filter(|_| first.is_none());
                    first.into_iter().chain(rest).for_each(|schema| add(self, document, schema, item));
                }
            }
            _ => {}
        }
        self.known.insert(pair, times);
        times
    }
}

#[cfg(test)]
mod tests {
    use crate::{Draft, JsonSchema, Nothing, Source, Violation};
    use serde_json::Value;

    fn violations(schema: &str, value: &str) -> Vec<Violation> {
        let source = Source { name: "s".into(), bytes: schema.as_bytes().to_vec() };
        let schema = JsonSchema::load(source, Draft::Draft202012, &Nothing).unwrap();
        let value: Value = serde_json::from_str(value).unwrap();
        let violations = schema.validate(&value);
        assert_eq!(schema.is_valid(&value), violations.is_empty());
        violations
    }

    fn nested(depth: usize) -> String {
        format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth))
    }

    /// Each level of the message was looked at twice as often as the one around it.
    #[test]
    fn alternatives_that_lead_to_the_same_are_not_listed_for_ever() {
        for schema in [
            r##"{"anyOf":[{"properties":{"a":{"$ref":"#"}},"required":["x"]},{"properties":{"a":{"$ref":"#"}},"required":["y"]}]}"##,
            r##"{"oneOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}"##,
            r##"{"$defs":{"n":{"anyOf":[{"$ref":"#/$defs/x"},{"$ref":"#/$defs/y"}]},"x":{"additionalProperties":{"$ref":"#/$defs/n"},"required":["x"]},"y":{"patternProperties":{"a":{"$ref":"#/$defs/n"}},"required":["y"]}},"$ref":"#/$defs/n"}"##,
        ] {
            let few = violations(schema, &nested(5));
            assert!(few.iter().all(|violation| !violation.rule.is_empty()), "{few:?}");
            let many = violations(schema, &nested(100));
            let [only] = many.as_slice() else { panic!("{many:?}") };
            assert!(only.message.contains("too many to list what is wrong"), "{schema}: {}", only.message);
        }
    }

    #[test]
    fn large_values_are_listed() {
        let tree = r##"{"$defs":{"n":{"type":"object","required":["id"],"properties":{"n":{"type":"array","items":{"$ref":"#/$defs/n"}}}}},"$ref":"#/$defs/n"}"##;
        let value = format!(r#"{{"id":1,"n":[{}{{}}]}}"#, r#"{"id":2,"n":[{"id":3}]},"#.repeat(50_000));
        let found = violations(tree, &value);
        let [only] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((only.rule, only.place.as_str()), ("required", "/n/50000"));
        let deep = format!("{}{{}}{}", r#"{"id":1,"n":["#.repeat(60), "]}".repeat(60));
        assert_eq!(violations(tree, &deep)[0].rule, "required");
    }
}
