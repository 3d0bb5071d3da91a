//! JSON Schema, drafts 4, 6, 7, 2019-09 and 2020-12, by the `jsonschema` crate; formats are asserted, nothing is
//! fetched from a network.

mod listing;
mod unique;

use crate::{Resolver, Source, Violation};
use jsonschema::{PatternOptions, Validator};
use listing::Listing;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// The drafts of JSON Schema.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Draft {
    /// Draft 4, which WSO2 validates with.
    Draft4,
    /// Draft 6.
    Draft6,
    /// Draft 7.
    Draft7,
    /// Draft 2019-09.
    Draft201909,
    /// Draft 2020-12.
    Draft202012,
}

impl Draft {
    fn engine(self) -> jsonschema::Draft {
        match self {
            Draft::Draft4 => jsonschema::Draft::Draft4,
            Draft::Draft6 => jsonschema::Draft::Draft6,
            Draft::Draft7 => jsonschema::Draft::Draft7,
            Draft::Draft201909 => jsonschema::Draft::Draft201909,
            Draft::Draft202012 => jsonschema::Draft::Draft202012,
        }
    }
}

/// Most violations that are reported of one document.
const MAX_VIOLATIONS: usize = 1000;
/// Most other documents that a schema may refer to.
const MAX_DOCUMENTS: usize = 1000;
/// Deepest nesting of a document that is validated; deeper ones are refused (a recursive schema recurses with them).
const MAX_DEPTH: usize = 512;
/// Most backtracking steps of a pattern with look-around.
const BACKTRACK_LIMIT: usize = 100_000;
/// Most memory of a compiled pattern.
const PATTERN_SIZE: usize = 16 << 20;

/// A JSON Schema, ready to validate.
#[derive(Debug)]
pub struct JsonSchema {
    validator: Validator,
    listing: Listing,
}

impl JsonSchema {
    /// Loads a schema. `draft` is that of a schema without `$schema`.
    ///
    /// Errors: the faults of the schema.
    pub fn load(source: Source, draft: Draft, resolver: &dyn Resolver) -> Result<JsonSchema, Vec<Violation>> {
        let schema: Value = serde_json::from_slice(&source.bytes).map_err(|error| {
            problems(&source.name, String::new(), error.line(), error.column(), message_of(&error))
        })?;
        JsonSchema::compile(&schema, &source.name, draft, resolver)
    }

    /// As [`load`](Self::load), of a parsed schema that refers to no other document.
    ///
    /// # Errors
    /// The faults of the schema.
    pub(crate) fn of_value(schema: &Value, name: &str, draft: Draft) -> Result<JsonSchema, Vec<Violation>> {
        JsonSchema::compile(schema, name, draft, &crate::Nothing)
    }

    fn compile(
        schema: &Value,
        name: &str,
        draft: Draft,
        resolver: &dyn Resolver,
    ) -> Result<JsonSchema, Vec<Violation>> {
        let problem = |place: String, message: String| problems(name, place, 0, 0, message);
        let named = schema.get("$schema").and_then(Value::as_str);
        let draft = match named.map(|uri| uri.trim_end_matches('#')) {
            Some("http://json-schema.org/draft-04/schema") => Draft::Draft4,
            Some("http://json-schema.org/draft-06/schema") => Draft::Draft6,
            Some("http://json-schema.org/draft-07/schema") => Draft::Draft7,
            Some("https://json-schema.org/draft/2019-09/schema") => Draft::Draft201909,
            Some("https://json-schema.org/draft/2020-12/schema") => Draft::Draft202012,
            _ => draft,
        };
        if circles(schema) {
            let message = "the schema refers to itself at the same place, which would never end";
            return Err(problem(String::new(), message.to_owned()));
        }
        if let Some((pattern, why)) = refused_pattern(schema) {
            let pattern: String = pattern.chars().take(80).collect();
            let message = format!("the pattern \"{pattern}\" is refused: {why}");
            return Err(problem(String::new(), message));
        }
        let others = Others::of(schema, name, resolver);
        let listing = Listing::of(schema, &others.by_uri);
        let validator = jsonschema::options()
            .with_draft(draft.engine())
            .should_validate_formats(true)
            .should_ignore_unknown_formats(true)
            .with_keyword(unique::NAME, unique::keyword)
            .with_pattern_options(
                PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_LIMIT).size_limit(PATTERN_SIZE),
            )
            .with_retriever(others)
            .build(schema)
            .map_err(|error| problem(error.instance_path().to_string(), error.to_string()))?;
        Ok(JsonSchema { validator, listing })
    }

    /// The violations of a value, the first 1,000. Where there may be very many, the first one, or one for all.
    pub fn validate(&self, value: &Value) -> Vec<Violation> {
        let violation = |place: String, rule: &'static str, message: String| Violation {
            document: None,
            place,
            line: 0,
            column: 0,
            rule,
            message,
        };
        if depth_above(value, MAX_DEPTH) {
            return vec![violation(String::new(), "", format!("the document nests deeper than {MAX_DEPTH}"))];
        }
        let listed = |error: jsonschema::ValidationError<'_>| {
            let message = shorten(error.to_string());
            violation(error.instance_path().to_string(), keyword(error.kind().keyword()), message)
        };
        if self.listing.can_list(value) {
            return self.validator.iter_errors(value).take(MAX_VIOLATIONS).map(listed).collect();
        }
        if !self.listing.has_alternatives {
            return self.validator.validate(value).err().map(listed).into_iter().collect();
        }
        let why = "the document is not valid, and there is too much to list what is wrong";
        match self.is_valid(value) {
            true => Vec::new(),
            false => vec![violation(String::new(), "", why.to_owned())],
        }
    }

    /// Whether the value is valid; cheaper than listing the violations.
    pub fn is_valid(&self, value: &Value) -> bool {
        !depth_above(value, MAX_DEPTH) && self.validator.is_valid(value)
    }
}

/// The first fault of a schema.
fn problems(name: &str, place: String, line: usize, column: usize, message: String) -> Vec<Violation> {
    let document = Some(Arc::from(name));
    vec![Violation { document, place, line: line as u32, column: column as u32, rule: "", message }]
}

/// The keyword as a constant.
fn keyword(name: &str) -> &'static str {
    const KEYWORDS: &[&str] = &[
        "additionalItems",
        "additionalProperties",
        "anyOf",
        "const",
        "contains",
        "contentEncoding",
        "contentMediaType",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "false",
        "format",
        "if",
        "items",
        "maxContains",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minContains",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "not",
        "oneOf",
        "pattern",
        "patternProperties",
        "prefixItems",
        "propertyNames",
        "required",
        "type",
        "unevaluatedItems",
        "unevaluatedProperties",
        "uniqueItems",
        "$ref",
    ];
    KEYWORDS.iter().find(|k| **k == name).copied().unwrap_or("")
}

/// A message that fits in a log line: the engine quotes whole values.
fn shorten(message: String) -> String {
    const LONGEST: usize = 500;
    match message.char_indices().nth(LONGEST) {
        Some((end, _)) => {
            let tail: String =
                message.chars().rev().take(LONGEST / 2).collect::<Vec<_>>().into_iter().rev().collect();
            let head = message[..end].chars().take(LONGEST / 2).collect::<String>();
            format!("{head} … {tail}")
        }
        None => message,
    }
}

fn message_of(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

fn depth_above(value: &Value, most: usize) -> bool {
    let mut level: Vec<&Value> = vec![value];
    for _ in 0..=most {
        let next: Vec<&Value> = level
            .into_iter()
            .flat_map(|v| match v {
                Value::Array(items) => items.iter().filter(|i| i.is_array() || i.is_object()).collect(),
                Value::Object(members) => {
                    members.values().filter(|i| i.is_array() || i.is_object()).collect::<Vec<_>>()
                }
                _ => Vec::new(),
            })
            .collect();
        if next.is_empty() {
            return false;
        }
        level = next;
    }
    true
}

/// Keywords whose schemas apply to the same value.
const IN_PLACE: &[&str] = &["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
/// Longest chain of such schemas.
const MAX_IN_PLACE: usize = 256;

/// A pattern of a schema (or of a value that looks like one) that the engine must not see, and why.
fn refused_pattern(root: &Value) -> Option<(&str, &'static str)> {
    let refused = |pattern| Some((pattern, meter::regex::refusal(pattern)?));
    let mut pending = vec![root];
    while let Some(value) = pending.pop() {
        match value {
            Value::Array(items) => pending.extend(items),
            Value::Object(members) => {
                let pattern = members.get("pattern").and_then(Value::as_str);
                let names = members.get("patternProperties").and_then(Value::as_object);
                let names = names.into_iter().flat_map(|names| names.keys().map(String::as_str));
                if let Some(found) = pattern.into_iter().chain(names).find_map(refused) {
                    return Some(found);
                }
                pending.extend(members.values());
            }
            _ => {}
        }
    }
    None
}

/// Whether a `$ref` of the document leads back to itself without descending into the value: the engine would follow
/// it for ever.
fn circles(root: &Value) -> bool {
    let mut done = std::collections::HashSet::new();
    let mut pending = vec![root];
    while let Some(value) = pending.pop() {
        match value {
            Value::Array(items) => pending.extend(items),
            Value::Object(members) => {
                if members.contains_key("$ref") && comes_back(value, root, &mut Vec::new(), &mut done) {
                    return true;
                }
                pending.extend(members.values());
            }
            _ => {}
        }
    }
    false
}

fn comes_back(
    schema: &Value,
    root: &Value,
    open: &mut Vec<usize>,
    done: &mut std::collections::HashSet<usize>,
) -> bool {
    let id = std::ptr::from_ref(schema).addr();
    if done.contains(&id) {
        return false;
    }
    if open.contains(&id) || open.len() >= MAX_IN_PLACE {
        return true;
    }
    open.push(id);
    let reference = schema.get("$ref").and_then(Value::as_str).and_then(|pointer| pointer.strip_prefix('#'));
    let target = reference.and_then(|pointer| root.pointer(pointer));
    let inside = IN_PLACE.iter().filter_map(|name| schema.get(*name)).flat_map(|keyword| match keyword {
        Value::Array(all) => all.iter().collect::<Vec<_>>(),
        subschema => vec![subschema],
    });
    let back = target.into_iter().chain(inside).any(|next| comes_back(next, root, open, done));
    open.pop();
    done.insert(id);
    back
}

/// The documents that a schema refers to, loaded before it is compiled.
struct Others {
    by_uri: HashMap<String, Value>,
    missing: HashMap<String, String>,
}

impl Others {
    fn of(schema: &Value, name: &str, resolver: &dyn Resolver) -> Others {
        let mut others = Others { by_uri: HashMap::new(), missing: HashMap::new() };
        let mut pending = references(schema).into_iter().map(|r| (r, name.to_owned())).collect::<Vec<_>>();
        while let Some((reference, base)) = pending.pop() {
            let is_loaded = others.by_uri.contains_key(&reference) || others.missing.contains_key(&reference);
            if is_loaded || others.by_uri.len() >= MAX_DOCUMENTS {
                continue;
            }
            let found = resolver.resolve(&reference, &base).and_then(|source| {
                let value: Value =
                    serde_json::from_slice(&source.bytes).map_err(|error| error.to_string())?;
                Ok((source.name, value))
            });
            match found {
                Ok((name, value)) => {
                    pending.extend(references(&value).into_iter().map(|r| (r, name.clone())));
                    others.by_uri.insert(reference, value);
                }
                Err(why) => {
                    others.missing.insert(reference, why);
                }
            }
        }
        others
    }
}

impl jsonschema::Retrieve for Others {
    fn retrieve(
        &self,
        uri: &jsonschema::Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        let uri = uri.as_str();
        // As written, or as the last part of the reference resolved against the base of the schema.
        let is = |key: &String| {
            uri == key
                || uri.strip_suffix(key.trim_start_matches("./")).is_some_and(|rest| rest.ends_with('/'))
        };
        let mut keys: Vec<&String> = self.by_uri.keys().filter(|k| is(k)).collect();
        keys.sort_by_key(|k| std::cmp::Reverse(k.len()));
        match keys.first().and_then(|k| self.by_uri.get(*k)) {
            Some(value) => Ok(value.clone()),
            None => {
                let why =
                    self.missing.iter().find(|(key, _)| is(key)).map_or("it is nowhere", |(_, why)| why);
                Err(why.to_owned().into())
            }
        }
    }
}

/// The targets of `$ref`s to other documents, without fragments.
fn references(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![schema];
    while let Some(value) = pending.pop() {
        match value {
            Value::Array(items) => pending.extend(items),
            Value::Object(members) => {
                for (name, member) in members {
                    match member {
                        Value::String(text)
                            if matches!(name.as_str(), "$ref" | "$dynamicRef" | "$recursiveRef") =>
                        {
                            let document = text.split('#').next().unwrap_or_default();
                            if !document.is_empty() && !document.contains("json-schema.org/") {
                                found.push(document.to_owned());
                            }
                        }
                        member => pending.push(member),
                    }
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The engine would end the process.
    #[test]
    fn patterns_that_the_engine_does_not_bear_are_refused() {
        let many = "6".repeat(17);
        for schema in [
            format!(r#"{{"pattern":"a\\g2{many}"}}"#),
            format!(r#"{{"properties":{{"a":{{"pattern":"(?2{many})"}}}}}}"#),
            format!(r#"{{"patternProperties":{{"a\\g<2{many}>":{{}}}}}}"#),
            r#"{"pattern":"(a)(?<=\\1{1,100000000})b"}"#.into(),
            r#"{"pattern":"()\\1{4000000000}b"}"#.into(),
        ] {
            let schema = serde_json::from_str(&schema).unwrap();
            assert!(JsonSchema::of_value(&schema, "test", Draft::Draft7).is_err(), "{schema}");
        }
    }

    #[test]
    fn what_refers_to_itself_in_place_is_refused() {
        for (schema, circles) in [
            (r##"{"$ref":"#"}"##, true),
            (r##"{"definitions":{"a":{"$ref":"#/definitions/b"},"b":{"$ref":"#/definitions/a"}}}"##, true),
            (r##"{"allOf":[{"$ref":"#"}]}"##, true),
            (r##"{"not":{"anyOf":[{"type":"null"},{"$ref":"#/not"}]}}"##, true),
            (r##"{"properties":{"a":{"$ref":"#"}},"items":{"$ref":"#"}}"##, false),
            (
                r##"{"definitions":{"a":{"type":"null"}},"allOf":[{"$ref":"#/definitions/a"},{"$ref":"#/definitions/a"}]}"##,
                false,
            ),
            (r##"{"properties":{"$ref":{"type":"string"}}}"##, false),
            (r##"{"$ref":"#/nowhere"}"##, false),
        ] {
            let value: Value = serde_json::from_str(schema).expect("it is JSON");
            assert_eq!(super::circles(&value), circles, "{schema}");
        }
        let source = Source { name: "s".to_owned(), bytes: br##"{"$ref":"#"}"##.to_vec() };
        let wrong = JsonSchema::load(source, Draft::Draft7, &crate::Nothing).expect_err("it would never end");
        assert!(wrong[0].to_string().contains("refers to itself"), "{wrong:?}");
    }
}
