//! How many violations of a JSON Schema the engine may find in a value. It decides whether a value is valid in time that grows with the value,
//! and in little memory. But it collects all violations before the first is listed, each of some hundred bytes; and of `anyOf` and `oneOf` it
//! collects those of each alternative. Where several of these lead to the same schema again, each level of a value doubles them.

use serde_json::{Map, Value};
use std::collections::HashMap;

/// Most violations that are collected.
const MOST: u64 = 100_000;

/// The documents of a schema.
#[derive(Debug)]
pub(super) struct Listing {
    root: Value,
    others: HashMap<String, Value>,
    /// There are alternatives in it.
    pub(super) has_alternatives: bool,
}

impl Listing {
    pub(super) fn of(root: &Value, others: &HashMap<String, Value>) -> Listing {
        let has_alternatives = others.values().chain([root]).any(has_alternatives);
        Listing { root: root.clone(), others: others.clone(), has_alternatives }
    }

    /// Whether the violations of a value can be listed.
    pub(super) fn can_list(&self, value: &Value) -> bool {
        let mut count = Count { listing: self, known: HashMap::new() };
        count.most(&self.root, &self.root, value) <= MOST
    }

    /// What a reference leads to, with its document. One that is not a path in a known document is taken for the whole schema.
    fn target<'a>(&'a self, document: &'a Value, reference: &str) -> (&'a Value, &'a Value) {
        let (name, path) = reference.split_once('#').unwrap_or((reference, ""));
        let document = if name.is_empty() { Some(document) } else { self.others.get(name) };
        let found = document.and_then(|document| Some((document, document.pointer(path)?)));
        found.unwrap_or((&self.root, &self.root))
    }
}

fn has_alternatives(schema: &Value) -> bool {
    let mut pending = vec![schema];
    while let Some(value) = pending.pop() {
        match value {
            Value::Array(items) => pending.extend(items),
            Value::Object(members) if members.contains_key("anyOf") || members.contains_key("oneOf") => {
                return true;
            }
            Value::Object(members) => pending.extend(members.values()),
            _ => {}
        }
    }
    false
}

fn reference(schema: &Map<String, Value>) -> Option<&str> {
    ["$ref", "$dynamicRef", "$recursiveRef"].iter().find_map(|name| schema.get(*name)?.as_str())
}

/// Violations of the keywords of one schema: one of each, and one of each name that is required.
fn own(schema: &Map<String, Value>) -> u64 {
    let required = schema.get("required").and_then(Value::as_array).map_or(0, Vec::len);
    (schema.len() + required).max(1) as u64
}

/// Keywords with schemas of which each is for the same part.
const IN_PLACE: [&str; 3] = ["allOf", "anyOf", "oneOf"];

struct Count<'a> {
    listing: &'a Listing,
    /// By the addresses of a schema and of a part of the value.
    known: HashMap<(usize, usize), u64>,
}

impl<'a> Count<'a> {
    /// Most violations where this schema is applied to this part.
    fn most(&mut self, document: &'a Value, schema: &'a Value, part: &Value) -> u64 {
        let Value::Object(schema) = schema else { return 1 };
        if self.known.len() as u64 > MOST {
            return u64::MAX;
        }
        let pair = (std::ptr::from_ref(schema).addr(), std::ptr::from_ref(part).addr());
        let is_leaf = !(part.is_object() || part.is_array());
        if is_leaf
            && reference(schema).is_none()
            && !schema.keys().any(|name| IN_PLACE.contains(&name.as_str()))
        {
            return own(schema);
        }
        if let Some(most) = self.known.get(&pair) {
            return *most;
        }
        // Where it comes back to itself, the engine stops.
        self.known.insert(pair, 0);
        let mut most = own(schema);
        let mut add = |count: &mut Self, document: &'a Value, schema: &'a Value, part: &Value| {
            most = most.saturating_add(count.most(document, schema, part));
        };
        if let Some(reference) = reference(schema) {
            let (document, target) = self.listing.target(document, reference);
            add(self, document, target, part);
        }
        for name in IN_PLACE {
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
                    let first =
                        ["prefixItems", "items"].into_iter().find_map(|name| schema.get(name)?.get(at));
                    let rest = ["items", "additionalItems", "unevaluatedItems"].into_iter();
                    let rest = rest.filter_map(|name| schema.get(name)).filter(|_| first.is_none());
                    first.into_iter().chain(rest).for_each(|schema| add(self, document, schema, item));
                }
            }
            _ => {}
        }
        self.known.insert(pair, most);
        most
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
            assert!(only.message.contains("too much to list"), "{schema}: {}", only.message);
        }
    }

    /// Of many violations, the first is said: all of them would take a thousand times the memory of the message.
    #[test]
    fn large_values_have_their_first_violation() {
        let tree = r##"{"$defs":{"n":{"type":"object","required":["id"],"properties":{"n":{"type":"array","items":{"$ref":"#/$defs/n"}}}}},"$ref":"#/$defs/n"}"##;
        let value = format!(r#"{{"id":1,"n":[{}{{}}]}}"#, r#"{"id":2,"n":[{"id":3}]},"#.repeat(50_000));
        let found = violations(tree, &value);
        let [only] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((only.rule, only.place.as_str()), ("required", "/n/50000"));
        let objects = format!("[{}{{}}]", "{},".repeat(200_000));
        let found = violations(r#"{"items":{"required":["a","b","c"]}}"#, &objects);
        let [only] = found.as_slice() else { panic!("{} violations", found.len()) };
        assert_eq!((only.rule, only.place.as_str()), ("required", "/0"));
        let numbers = format!("[{}1]", "1,".repeat(2_000));
        assert_eq!(violations(r#"{"items":{"type":"string"}}"#, &numbers).len(), 1000);
        let deep = format!("{}{{}}{}", r#"{"id":1,"n":["#.repeat(60), "]}".repeat(60));
        assert_eq!(violations(tree, &deep)[0].rule, "required");
    }
}
