//! A schema of a definition as a JSON Schema: keywords of OpenAPI 3.0 and Swagger 2 become those of
//! JSON Schema, and the components that it refers to are included.

use super::path::decode;
use serde_json::{Map, Value, json};

/// The versions of definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Swagger2,
    OpenApi30,
    /// Its schemas are JSON Schema 2020-12.
    OpenApi31,
}

impl Dialect {
    /// The dialect of a definition.
    pub(super) fn of(root: &Value) -> Option<Dialect> {
        let version = |key: &str| root.get(key).and_then(Value::as_str);
        match (version("openapi"), version("swagger")) {
            (Some(number), _) if number.starts_with("3.0") => Some(Dialect::OpenApi30),
            (Some(number), _) if number.starts_with("3.") => Some(Dialect::OpenApi31),
            (None, Some(number)) if number.starts_with('2') => Some(Dialect::Swagger2),
            _ => None,
        }
    }
}

/// The direction of a schema's body: requests need not have `readOnly` properties, responses need not have `writeOnly` ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Request,
    Response,
}

impl Direction {
    fn absent(self) -> &'static str {
        match self {
            Direction::Request => "readOnly",
            Direction::Response => "writeOnly",
        }
    }
}

/// Keywords of schemas with a schema, a list of them, or schemas by name inside.
const SCHEMAS: &[&str] = &[
    "items",
    "additionalItems",
    "additionalProperties",
    "not",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "if",
    "then",
    "else",
    "allOf",
    "anyOf",
    "oneOf",
    "prefixItems",
];
const BY_NAME: &[&str] = &["properties", "patternProperties", "definitions", "$defs", "dependentSchemas"];

/// The schema with everything of the definition that it refers to, at the same places.
pub(super) fn standing_alone(root: &Value, schema: &Value, dialect: Dialect, direction: Direction) -> Value {
    let mut schema = schema.clone();
    convert(&mut schema, dialect, direction);
    let mut pending = references(&schema);
    let mut whole = json!({ "allOf": [schema] });
    let mut taken: Vec<String> = Vec::new();
    while let Some(pointer) = pending.pop() {
        if taken.contains(&pointer) {
            continue;
        }
        if let Some(found) = root.pointer(&pointer) {
            let mut found = found.clone();
            convert(&mut found, dialect, direction);
            pending.extend(references(&found));
            put(&mut whole, &pointer, found);
        }
        taken.push(pointer);
    }
    whole
}

/// The JSON pointer of a reference within the document.
pub(super) fn pointer(reference: &str) -> Option<String> {
    reference.strip_prefix('#').map(decode)
}

fn references(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        match value {
            Value::Array(items) => pending.extend(items),
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str).and_then(pointer));
                pending.extend(members.values());
            }
            _ => {}
        }
    }
    found
}

/// Sets the value at a pointer, and creates the objects on the way.
fn put(whole: &mut Value, pointer: &str, value: Value) {
    let mut place = whole;
    for name in pointer.split('/').skip(1) {
        let name = name.replace("~1", "/").replace("~0", "~");
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[name];
    }
    // The root of the document is not a schema.
    if !pointer.is_empty() {
        *place = value;
    }
}

/// Converts a schema to JSON Schema.
fn convert(schema: &mut Value, dialect: Dialect, direction: Direction) {
    let Some(members) = schema.as_object_mut() else { return };
    without_absent(members, direction);
    if dialect == Dialect::Swagger2 {
        // A parameter in the place of its schema: `required` is a boolean there.
        members.retain(|name, value| name != "required" || value.is_array());
    }
    for keyword in SCHEMAS {
        match members.get_mut(*keyword) {
            Some(Value::Array(all)) => all.iter_mut().for_each(|item| convert(item, dialect, direction)),
            Some(item) => convert(item, dialect, direction),
            None => {}
        }
    }
    for keyword in BY_NAME {
        if let Some(Value::Object(all)) = members.get_mut(*keyword) {
            all.values_mut().for_each(|member| convert(member, dialect, direction));
        }
    }
    let nullable =
        ["nullable", "x-nullable"].iter().any(|key| members.get(*key).is_some_and(|flag| flag == true));
    if dialect != Dialect::OpenApi31 && nullable {
        *schema = json!({ "anyOf": [{ "type": "null" }, schema.take()] });
    }
}

/// Removes the absent properties of this direction from `required`.
fn without_absent(members: &mut Map<String, Value>, direction: Direction) {
    let absent: Vec<String> = match members.get("properties") {
        Some(Value::Object(properties)) => {
            let is_absent =
                |property: &Value| property.get(direction.absent()).is_some_and(|flag| flag == true);
            properties
                .iter()
                .filter(|(_, property)| is_absent(property))
                .map(|(name, _)| name.clone())
                .collect()
        }
        _ => return,
    };
    if let Some(Value::Array(required)) = members.get_mut("required") {
        required.retain(|name| name.as_str().is_none_or(|name| !absent.iter().any(|n| n == name)));
        // Draft 4 does not allow an empty list.
        if required.is_empty() {
            members.remove("required");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_schema_leads_to_comes_along() {
        let root = json!({
            "components": { "schemas": {
                "A": { "properties": { "b": { "$ref": "#/components/schemas/B~1C" } } },
                "B/C": { "type": "string", "nullable": true },
                "D": {}
            } }
        });
        let schema = json!({ "$ref": "#/components/schemas/A" });
        assert_eq!(
            standing_alone(&root, &schema, Dialect::OpenApi30, Direction::Request),
            json!({
                "allOf": [{ "$ref": "#/components/schemas/A" }],
                "components": { "schemas": {
                    "A": { "properties": { "b": { "$ref": "#/components/schemas/B~1C" } } },
                    "B/C": { "anyOf": [{ "type": "null" }, { "type": "string", "nullable": true }] }
                } }
            })
        );
    }

    #[test]
    fn properties_may_have_the_names_of_keywords() {
        let schema = json!({ "properties": {
            "nullable": { "type": "boolean" }, "required": { "type": "string" }, "default": { "nullable": true }
        } });
        let mut converted = schema.clone();
        convert(&mut converted, Dialect::OpenApi30, Direction::Request);
        assert_eq!(converted["properties"]["nullable"], schema["properties"]["nullable"]);
        assert_eq!(converted["properties"]["default"]["anyOf"][0]["type"], "null");
    }
}
