//! Converts texts of XML and forms to the types of a schema: numbers, booleans, lists of one, attributes.
//!
//! A text that cannot be converted stays one, and then violates the schema.

use super::convert;
use serde_json::{Map, Value};

/// Deepest nesting that is converted; below, values stay as they are.
const DEPTH: usize = 64;

/// An object of members; repeated ones become lists.
pub(super) fn object<'a>(members: impl Iterator<Item = (&'a str, Value)>) -> Value {
    let mut object = Map::new();
    for (name, value) in members {
        match object.get_mut(name) {
            Some(Value::Array(all)) => all.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
            None => _ = object.insert(name.to_owned(), value),
        }
    }
    object.into()
}

/// Converts a value; `whole`: the schema with all that it refers to.
pub(super) fn fitted(value: &Value, whole: &Value) -> Value {
    Fit { whole }.fit(value, whole, DEPTH)
}

struct Fit<'a> {
    whole: &'a Value,
}

impl<'a> Fit<'a> {
    fn fit(&self, value: &Value, schema: &'a Value, depth: usize) -> Value {
        if depth == 0 {
            return value.clone();
        }
        let mut value = value.clone();
        let pointer = schema.get("$ref").and_then(Value::as_str).and_then(convert::pointer);
        if let Some(next) = pointer.and_then(|pointer| self.whole.pointer(&pointer)) {
            value = self.fit(&value, next, depth - 1);
        }
        for schema in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            value = self.fit(&value, schema, depth - 1);
        }
        for alternatives in ["anyOf", "oneOf"] {
            let all = schema.get(alternatives).and_then(Value::as_array).into_iter().flatten();
            let kinds: Vec<&Value> = all.collect();
            // With a string among the alternatives it is ambiguous which one is meant.
            if !kinds.iter().any(|s| self.is(s, "string")) {
                kinds.iter().for_each(|s| value = self.fit(&value, s, depth - 1));
            }
        }
        // Beside attributes the text of an element is a member.
        if let Value::Object(members) = &mut value
            && ["string", "integer", "number", "boolean"].iter().any(|kind| self.is(schema, kind))
            && members.keys().all(|name| name == "$" || name.starts_with('@'))
        {
            value = members.shift_remove("$").unwrap_or_else(|| "".into());
        }
        if self.is(schema, "string") {
            return match value {
                Value::Number(number) => number.to_string().into(),
                Value::Bool(truth) => truth.to_string().into(),
                Value::Null if !self.is(schema, "null") => "".into(),
                other => other,
            };
        }
        if self.is(schema, "array") {
            return self.array(value, schema, depth);
        }
        match value {
            Value::Object(members) => self.members(members, schema, depth),
            Value::Null if self.is(schema, "object") && !self.is(schema, "null") => Value::Object(Map::new()),
            Value::String(text) => {
                let is_empty = text.trim().is_empty();
                match serde_json::from_str::<Value>(text.trim()) {
                    Ok(number @ Value::Number(_))
                        if self.is(schema, "integer") || self.is(schema, "number") =>
                    {
                        number
                    }
                    Ok(truth @ Value::Bool(_)) if self.is(schema, "boolean") => truth,
                    _ if is_empty && self.is(schema, "object") => Value::Object(Map::new()),
                    _ => text.into(),
                }
            }
            other => other,
        }
    }

    /// Whether a schema names this type.
    fn is(&self, schema: &Value, kind: &str) -> bool {
        match schema.get("type") {
            Some(Value::String(name)) => name == kind,
            Some(Value::Array(all)) => all.iter().any(|name| name == kind),
            _ => kind == "object" && schema.get("properties").is_some(),
        }
    }

    fn array(&self, value: Value, schema: &'a Value, depth: usize) -> Value {
        let items = schema.get("items");
        let xml = |schema: &Value, key: &str| schema.get("xml").and_then(|xml| xml.get(key)).cloned();
        let is_wrapped = xml(schema, "wrapped").is_some_and(|flag| flag == true);
        // `<items><item/><item/></items>`: the content of the single member.
        let value = match value {
            Value::Object(members) if is_wrapped && members.len() == 1 => {
                members.into_iter().next().map_or(Value::Null, |(_, inside)| inside)
            }
            other => other,
        };
        let all = match value {
            Value::Array(all) => all,
            Value::Null => Vec::new(),
            Value::String(text) if text.is_empty() && is_wrapped => Vec::new(),
            value => vec![value],
        };
        let item =
            |item: &Value| items.map_or_else(|| item.clone(), |items| self.fit(item, items, depth - 1));
        all.iter().map(item).collect()
    }

    fn members(&self, mut members: Map<String, Value>, schema: &'a Value, depth: usize) -> Value {
        for (name, shape) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let pointer = shape.get("$ref").and_then(Value::as_str).and_then(convert::pointer);
            let resolved = pointer.and_then(|pointer| self.whole.pointer(&pointer)).unwrap_or(shape);
            let xml_object = [shape, resolved].into_iter().find_map(|s| s.get("xml"));
            let written = xml_object.and_then(|xml| xml.get("name")).and_then(Value::as_str).unwrap_or(name);
            let is_attribute =
                xml_object.and_then(|xml| xml.get("attribute")).is_some_and(|flag| flag == true);
            let written = if is_attribute { format!("@{written}") } else { written.to_owned() };
            let place = members.get(&written).map(|_| written.as_str()).unwrap_or(name).to_owned();
            if let Some(value) = members.get(&place) {
                let value = self.fit(value, shape, depth - 1);
                if place != *name {
                    members.shift_remove(&place);
                }
                members.insert(name.clone(), value);
            }
        }
        // Text beside attributes, and namespace declarations, are not in the schema.
        members.retain(|name, _| !name.starts_with("@xmlns"));
        members.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_become_what_the_schema_says() {
        let schema = json!({
            "allOf": [{ "$ref": "#/defs/Order" }],
            "defs": { "Order": { "type": "object", "properties": {
                "id": { "type": "integer", "xml": { "attribute": true } },
                "zip": { "type": "string" },
                "paid": { "type": "boolean" },
                "lines": { "type": "array", "xml": { "wrapped": true }, "items": { "type": "number" } },
                "tags": { "type": "array", "items": { "type": "string" }, "xml": { "name": "tag" } },
                "next": { "$ref": "#/defs/Order" }
            } } }
        });
        for (value, expected) in [
            (
                json!({ "@id": "7", "zip": 123, "paid": "true" }),
                json!({ "zip": "123", "paid": true, "id": 7 }),
            ),
            (json!({ "lines": { "line": ["1", 2.5] } }), json!({ "lines": [1, 2.5] })),
            (json!({ "lines": { "line": "1" } }), json!({ "lines": [1] })),
            (json!({ "lines": null, "tag": "a" }), json!({ "lines": [], "tags": ["a"] })),
            (json!({ "paid": "maybe", "id": "x" }), json!({ "paid": "maybe", "id": "x" })),
            (json!({ "next": { "next": { "@id": "1" } } }), json!({ "next": { "next": { "id": 1 } } })),
            (json!({ "zip": { "@charset": "UTF-8", "$": 1 } }), json!({ "zip": "1" })),
            (json!(null), json!({})),
        ] {
            assert_eq!(fitted(&value, &schema), expected, "{value}");
        }
        // A recursive schema ends.
        let round = json!({ "allOf": [{ "$ref": "#/allOf/0" }] });
        assert_eq!(fitted(&json!("x"), &round), json!("x"));
    }
}
