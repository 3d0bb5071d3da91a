//! JSON Schema rule by rule, for each draft that has the rule, and what is the same for all.

use busbar_schema::{Draft, Files, JsonSchema, Resolver, Source};
use serde_json::Value;

const DRAFTS: [(Draft, &str); 5] = [
    (Draft::Draft4, "http://json-schema.org/draft-04/schema#"),
    (Draft::Draft6, "http://json-schema.org/draft-06/schema#"),
    (Draft::Draft7, "http://json-schema.org/draft-07/schema#"),
    (Draft::Draft201909, "https://json-schema.org/draft/2019-09/schema"),
    (Draft::Draft202012, "https://json-schema.org/draft/2020-12/schema"),
];

/// No documents but these.
struct Beside(&'static [(&'static str, &'static str)]);

impl Resolver for Beside {
    fn resolve(&self, location: &str, _: &str) -> Result<Source, String> {
        let found = self.0.iter().find(|(name, _)| *name == location);
        let (name, text) = found.ok_or_else(|| format!("there is no {location}"))?;
        Ok(Source { name: (*name).to_owned(), bytes: text.as_bytes().to_vec() })
    }
}

fn load(
    schema: &str,
    draft: Draft,
    beside: &'static [(&'static str, &'static str)],
) -> Result<JsonSchema, String> {
    let source = Source { name: "schema.json".to_owned(), bytes: schema.as_bytes().to_vec() };
    JsonSchema::load(source, draft, &Beside(beside))
        .map_err(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

/// `place rule` of each violation, with commas between; empty for a valid value.
fn violations(schema: &JsonSchema, value: &str) -> String {
    let value: Value = serde_json::from_str(value).expect("the table has JSON");
    let found = schema.validate(&value);
    assert_eq!(found.is_empty(), schema.is_valid(&value), "{value}");
    let mut found: Vec<String> =
        found.iter().map(|violation| format!("{} {}", violation.place, violation.rule)).collect();
    found.sort();
    found.join(", ")
}

/// A rule: the first and the last draft that has it (0 to 4), the schema, values with their violations.
type Row = (usize, usize, &'static str, &'static [(&'static str, &'static str)]);

fn check(rows: &[Row]) {
    let mut wrong = Vec::new();
    for (first, last, schema, values) in rows {
        for (draft, uri) in &DRAFTS[*first..=*last] {
            // By the argument, and by `$schema`, whatever the argument is.
            let named = match schema.strip_prefix('{') {
                Some(rest) if rest.trim() != "}" => format!(r#"{{"$schema": "{uri}", {rest}"#),
                Some(_) => format!(r#"{{"$schema": "{uri}"}}"#),
                None => (*schema).to_owned(),
            };
            let other = if *draft == Draft::Draft4 { Draft::Draft202012 } else { Draft::Draft4 };
            let mut ways = vec![((*schema).to_owned(), *draft)];
            if schema.starts_with('{') {
                ways.push((named, other));
            }
            for (text, draft) in ways {
                match load(&text, draft, &[]) {
                    Err(why) => wrong.push(format!("{text} ({draft:?}): {why}")),
                    Ok(compiled) => wrong.extend(values.iter().filter_map(|(value, wanted)| {
                        let found = violations(&compiled, value);
                        (found != *wanted)
                            .then(|| format!("{text} ({draft:?}): {value}: `{found}`, not `{wanted}`"))
                    })),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn any_value() {
    check(&[
        (0, 4, "{}", &[("1", ""), ("null", ""), ("{}", "")]),
        (1, 4, "true", &[("1", ""), ("[]", "")]),
        (1, 4, "false", &[("1", " ")]),
        (0, 4, r#"{"type": "null"}"#, &[("null", ""), ("0", " type"), ("\"\"", " type")]),
        (0, 4, r#"{"type": "boolean"}"#, &[("true", ""), ("0", " type"), ("\"true\"", " type")]),
        (0, 4, r#"{"type": "integer"}"#, &[("1", ""), ("-3", ""), ("1.5", " type"), ("\"1\"", " type")]),
        (1, 4, r#"{"type": "integer"}"#, &[("1.0", ""), ("1e2", "")]),
        (
            0,
            4,
            r#"{"type": "number"}"#,
            &[("1", ""), ("1.5", ""), ("123456789012345678901234567890", ""), ("\"1\"", " type")],
        ),
        (0, 4, r#"{"type": "string"}"#, &[("\"\"", ""), ("1", " type")]),
        (0, 4, r#"{"type": "array"}"#, &[("[]", ""), ("{}", " type")]),
        (0, 4, r#"{"type": "object"}"#, &[("{}", ""), ("[]", " type")]),
        (0, 4, r#"{"type": ["string", "null"]}"#, &[("null", ""), ("\"a\"", ""), ("1", " type")]),
        (
            0,
            4,
            r#"{"enum": [1, "a", {"b": [null]}]}"#,
            &[
                ("1", ""),
                ("\"a\"", ""),
                (r#"{"b": [null]}"#, ""),
                ("\"1\"", " enum"),
                (r#"{"b": []}"#, " enum"),
            ],
        ),
        (0, 4, r#"{"enum": [1]}"#, &[("1.0", ""), ("true", " enum")]),
        (1, 4, r#"{"const": {"a": 1}}"#, &[(r#"{"a": 1}"#, ""), (r#"{"a": 2}"#, " const")]),
        (0, 0, r#"{"const": 1}"#, &[("2", "")]),
    ]);
}

#[test]
fn numbers() {
    check(&[
        (0, 4, r#"{"multipleOf": 3}"#, &[("9", ""), ("0", ""), ("10", " multipleOf"), ("\"10\"", "")]),
        (0, 4, r#"{"multipleOf": 0.01}"#, &[("4.35", ""), ("0.075", " multipleOf")]),
        (0, 4, r#"{"maximum": 3}"#, &[("3", ""), ("2.9", ""), ("3.1", " maximum"), ("\"x\"", "")]),
        (0, 4, r#"{"minimum": -2}"#, &[("-2", ""), ("-2.1", " minimum")]),
        (0, 0, r#"{"maximum": 3, "exclusiveMaximum": true}"#, &[("2.9", ""), ("3", " exclusiveMaximum")]),
        (0, 0, r#"{"minimum": 3, "exclusiveMinimum": true}"#, &[("3.1", ""), ("3", " exclusiveMinimum")]),
        (1, 4, r#"{"exclusiveMaximum": 3}"#, &[("2.9", ""), ("3", " exclusiveMaximum")]),
        (1, 4, r#"{"exclusiveMinimum": 3}"#, &[("3.1", ""), ("3", " exclusiveMinimum")]),
    ]);
}

#[test]
fn texts() {
    check(&[
        // In characters, not in bytes or units of UTF-16.
        (
            0,
            4,
            r#"{"minLength": 2}"#,
            &[("\"ab\"", ""), ("\"😀\"", " minLength"), ("\"\"", " minLength"), ("1", "")],
        ),
        (0, 4, r#"{"maxLength": 2}"#, &[("\"ab\"", ""), ("\"😀😀\"", ""), ("\"abc\"", " maxLength")]),
        // Found anywhere.
        (0, 4, r#"{"pattern": "a+b"}"#, &[("\"xaaby\"", ""), ("\"ba\"", " pattern"), ("1", "")]),
        (0, 4, r#"{"pattern": "^\\d{2}$"}"#, &[("\"12\"", ""), ("\"123\"", " pattern")]),
        (0, 4, r#"{"pattern": "^(?!x)"}"#, &[("\"a\"", ""), ("\"xa\"", " pattern")]),
    ]);
}

#[test]
fn formats_are_asserted() {
    check(&[
        (
            0,
            4,
            r#"{"format": "date-time"}"#,
            &[
                ("\"2024-02-29T12:00:00Z\"", ""),
                ("\"2023-02-29T12:00:00Z\"", " format"),
                ("\"2024-02-29\"", " format"),
                ("1", ""),
            ],
        ),
        (0, 4, r#"{"format": "email"}"#, &[("\"a@b.example\"", ""), ("\"a\"", " format")]),
        (
            0,
            4,
            r#"{"format": "ipv4"}"#,
            &[("\"127.0.0.1\"", ""), ("\"256.0.0.1\"", " format"), ("\"1.2.3\"", " format")],
        ),
        (0, 4, r#"{"format": "ipv6"}"#, &[("\"::1\"", ""), ("\"1::2::3\"", " format")]),
        (0, 4, r#"{"format": "hostname"}"#, &[("\"www.example.com\"", ""), ("\"-bad-\"", " format")]),
        (
            0,
            4,
            r#"{"format": "uri"}"#,
            &[("\"http://a/b?c#d\"", ""), ("\"/relative\"", " format"), ("\"http://a b\"", " format")],
        ),
        (1, 4, r#"{"format": "uri-reference"}"#, &[("\"/relative\"", ""), ("\"\\\\\\\\x\"", " format")]),
        (1, 4, r#"{"format": "json-pointer"}"#, &[("\"/a/b\"", ""), ("\"a\"", " format")]),
        (2, 4, r#"{"format": "date"}"#, &[("\"2024-02-29\"", ""), ("\"2024-13-01\"", " format")]),
        (2, 4, r#"{"format": "time"}"#, &[("\"12:00:00Z\"", ""), ("\"25:00:00Z\"", " format")]),
        (2, 4, r#"{"format": "regex"}"#, &[("\"a+\"", ""), ("\"(\"", " format")]),
        (
            3,
            4,
            r#"{"format": "uuid"}"#,
            &[("\"2eb8aa08-aa98-11ea-b4aa-73b441d16380\"", ""), ("\"2eb8aa08\"", " format")],
        ),
        (3, 4, r#"{"format": "duration"}"#, &[("\"P3Y6M4DT12H30M5S\"", ""), ("\"3 days\"", " format")]),
        // One that nobody knows says nothing.
        (0, 4, r#"{"format": "no-such-format"}"#, &[("\"x\"", "")]),
    ]);
}

#[test]
fn arrays() {
    check(&[
        (
            0,
            4,
            r#"{"items": {"type": "integer"}}"#,
            &[("[1, 2]", ""), ("[]", ""), ("[1, \"a\", null]", "/1 type, /2 type"), ("{}", "")],
        ),
        (
            0,
            3,
            r#"{"items": [{"type": "integer"}, {"type": "string"}]}"#,
            &[("[1, \"a\", null]", ""), ("[1]", ""), ("[\"a\", 1]", "/0 type, /1 type")],
        ),
        (
            0,
            3,
            r#"{"items": [{}], "additionalItems": false}"#,
            &[("[1]", ""), ("[1, 2]", " additionalItems")],
        ),
        (
            0,
            3,
            r#"{"items": [{}], "additionalItems": {"type": "string"}}"#,
            &[("[1, \"a\"]", ""), ("[1, 2]", "/1 type")],
        ),
        (
            4,
            4,
            r#"{"prefixItems": [{"type": "integer"}], "items": {"type": "string"}}"#,
            &[("[1, \"a\"]", ""), ("[1, 2]", "/1 type"), ("[\"a\"]", "/0 type")],
        ),
        (4, 4, r#"{"prefixItems": [{}], "items": false}"#, &[("[1]", "")]),
        (
            0,
            4,
            r#"{"minItems": 1, "maxItems": 2}"#,
            &[("[1]", ""), ("[]", " minItems"), ("[1, 2, 3]", " maxItems"), ("\"abc\"", "")],
        ),
        (
            0,
            4,
            r#"{"uniqueItems": true}"#,
            &[
                ("[1, 2, \"1\"]", ""),
                ("[1, 2, 1]", " uniqueItems"),
                (r#"[{"a": 1, "b": 2}, {"b": 2, "a": 1}]"#, " uniqueItems"),
                ("[1, true]", ""),
            ],
        ),
        (0, 4, r#"{"uniqueItems": false}"#, &[("[1, 1]", "")]),
        (
            1,
            4,
            r#"{"contains": {"type": "string"}}"#,
            &[("[1, \"a\"]", ""), ("[1]", " contains"), ("[]", " contains"), ("{}", "")],
        ),
        (3, 4, r#"{"contains": {"type": "string"}, "minContains": 2}"#, &[("[\"a\", 1, \"b\"]", "")]),
        (3, 4, r#"{"contains": {"type": "string"}, "minContains": 0}"#, &[("[1]", ""), ("[]", "")]),
        (1, 2, r#"{"contains": {"type": "string"}, "maxContains": 1}"#, &[("[\"a\", \"b\"]", "")]),
        (
            3,
            3,
            r#"{"items": [{}], "unevaluatedItems": false}"#,
            &[("[1]", ""), ("[1, 2]", " unevaluatedItems")],
        ),
        (
            4,
            4,
            r#"{"prefixItems": [{}], "unevaluatedItems": false}"#,
            &[("[1]", ""), ("[1, 2]", " unevaluatedItems")],
        ),
        (
            4,
            4,
            r#"{"contains": {"type": "string"}, "unevaluatedItems": false}"#,
            &[("[\"a\"]", ""), ("[\"a\", 1]", " unevaluatedItems")],
        ),
    ]);
    for (draft, schema, value) in [
        (Draft::Draft201909, r#"{"contains": {"type": "string"}, "minContains": 2}"#, r#"["a"]"#),
        (Draft::Draft202012, r#"{"contains": {"type": "string"}, "minContains": 2}"#, r#"["a"]"#),
        (Draft::Draft201909, r#"{"contains": {"type": "string"}, "maxContains": 1}"#, r#"["a", "b"]"#),
        (Draft::Draft202012, r#"{"contains": {"type": "string"}, "maxContains": 1}"#, r#"["a", "b"]"#),
        (Draft::Draft202012, r#"{"prefixItems": [{}], "items": false}"#, "[1, 2]"),
    ] {
        let compiled = load(schema, draft, &[]).expect("a schema");
        assert_ne!(violations(&compiled, value), "", "{schema} {value}");
    }
}

#[test]
fn objects() {
    check(&[
        (
            0,
            4,
            r#"{"properties": {"a": {"type": "integer"}, "b/c": {"type": "string"}}}"#,
            &[(r#"{"a": 1}"#, ""), (r#"{"a": "x", "b/c": 1, "d": 1}"#, "/a type, /b~1c type"), ("[]", "")],
        ),
        (
            0,
            4,
            r#"{"required": ["a", "b"]}"#,
            &[
                (r#"{"a": null, "b": 1}"#, ""),
                (r#"{"a": 1}"#, " required"),
                ("{}", " required,  required"),
                ("1", ""),
            ],
        ),
        (
            0,
            4,
            r#"{"properties": {"a": {}}, "additionalProperties": false}"#,
            &[(r#"{"a": 1}"#, ""), (r#"{"a": 1, "b": 2, "c": 3}"#, " additionalProperties")],
        ),
        (
            0,
            4,
            r#"{"additionalProperties": {"type": "string"}}"#,
            &[(r#"{"a": "x"}"#, ""), (r#"{"a": 1}"#, "/a type")],
        ),
        (
            0,
            4,
            r#"{"patternProperties": {"^n_": {"type": "number"}}, "additionalProperties": false}"#,
            &[
                (r#"{"n_a": 1}"#, ""),
                (r#"{"n_a": "x"}"#, "/n_a type"),
                (r#"{"m": 1}"#, " additionalProperties"),
            ],
        ),
        (
            0,
            4,
            r#"{"minProperties": 1, "maxProperties": 2}"#,
            &[
                (r#"{"a": 1}"#, ""),
                ("{}", " minProperties"),
                (r#"{"a": 1, "b": 2, "c": 3}"#, " maxProperties"),
            ],
        ),
        (
            1,
            4,
            r#"{"propertyNames": {"maxLength": 2}}"#,
            &[(r#"{"ab": 1}"#, ""), (r#"{"abc": 1}"#, " propertyNames")],
        ),
        (
            0,
            2,
            r#"{"dependencies": {"a": ["b"]}}"#,
            &[(r#"{"a": 1, "b": 2}"#, ""), ("{}", ""), (r#"{"a": 1}"#, " required")],
        ),
        (
            0,
            2,
            r#"{"dependencies": {"a": {"minProperties": 2}}}"#,
            &[(r#"{"a": 1, "b": 2}"#, ""), (r#"{"a": 1}"#, " minProperties")],
        ),
        (
            3,
            4,
            r#"{"dependentRequired": {"a": ["b"]}}"#,
            &[(r#"{"a": 1, "b": 2}"#, ""), (r#"{"a": 1}"#, " required")],
        ),
        (
            3,
            4,
            r#"{"dependentSchemas": {"a": {"minProperties": 2}}}"#,
            &[(r#"{"a": 1, "b": 2}"#, ""), (r#"{"a": 1}"#, " minProperties")],
        ),
        (
            3,
            4,
            r#"{"properties": {"a": {}}, "unevaluatedProperties": false}"#,
            &[(r#"{"a": 1}"#, ""), (r#"{"b": 1}"#, " unevaluatedProperties")],
        ),
        (
            3,
            4,
            r#"{"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": false}"#,
            &[(r#"{"a": 1}"#, ""), (r#"{"a": 1, "b": 1}"#, " unevaluatedProperties")],
        ),
        (0, 2, r#"{"unevaluatedProperties": false}"#, &[(r#"{"a": 1}"#, "")]),
    ]);
}

#[test]
fn schemas_together() {
    check(&[
        (
            0,
            4,
            r#"{"allOf": [{"minimum": 1}, {"maximum": 3}]}"#,
            &[("2", ""), ("0", " minimum"), ("4", " maximum")],
        ),
        (
            0,
            4,
            r#"{"anyOf": [{"type": "integer"}, {"minimum": 2}]}"#,
            &[("1", ""), ("2.5", ""), ("1.5", " anyOf")],
        ),
        (
            0,
            4,
            r#"{"oneOf": [{"type": "integer"}, {"minimum": 2}]}"#,
            &[("1", ""), ("2.5", ""), ("3", " oneOf"), ("1.5", " oneOf")],
        ),
        (0, 4, r#"{"not": {"type": "integer"}}"#, &[("\"a\"", ""), ("1", " not")]),
        (
            2,
            4,
            r#"{"if": {"minimum": 10}, "then": {"multipleOf": 10}, "else": {"maximum": 5}}"#,
            &[("20", ""), ("3", ""), ("11", " multipleOf"), ("7", " maximum")],
        ),
        (0, 1, r#"{"if": {"minimum": 10}, "then": {"multipleOf": 10}}"#, &[("11", "")]),
        (
            0,
            4,
            r##"{"definitions": {"n": {"type": "integer"}}, "properties": {"a": {"$ref": "#/definitions/n"}}}"##,
            &[(r#"{"a": 1}"#, ""), (r#"{"a": "x"}"#, "/a type")],
        ),
        (
            3,
            4,
            r##"{"$defs": {"n": {"$anchor": "num", "type": "integer"}}, "properties": {"a": {"$ref": "#num"}}}"##,
            &[(r#"{"a": 1}"#, ""), (r#"{"a": "x"}"#, "/a type")],
        ),
        // What stands beside `$ref` counts since 2019-09.
        (
            0,
            2,
            r##"{"definitions": {"n": {}}, "properties": {"a": {"$ref": "#/definitions/n", "maximum": 1}}}"##,
            &[(r#"{"a": 2}"#, "")],
        ),
        (
            3,
            4,
            r##"{"definitions": {"n": {}}, "properties": {"a": {"$ref": "#/definitions/n", "maximum": 1}}}"##,
            &[(r#"{"a": 2}"#, "/a maximum")],
        ),
        (
            0,
            4,
            r##"{"properties": {"next": {"$ref": "#"}, "v": {"type": "integer"}}}"##,
            &[
                (r#"{"next": {"next": {"v": 1}}}"#, ""),
                (r#"{"next": {"next": {"v": "x"}}}"#, "/next/next/v type"),
            ],
        ),
        (
            3,
            3,
            r##"{"$recursiveAnchor": true, "properties": {"next": {"$recursiveRef": "#"}, "v": {"type": "integer"}}}"##,
            &[(r#"{"next": {"v": "x"}}"#, "/next/v type")],
        ),
        (
            4,
            4,
            r##"{"$dynamicAnchor": "node", "properties": {"next": {"$dynamicRef": "#node"}, "v": {"type": "integer"}}}"##,
            &[(r#"{"next": {"v": "x"}}"#, "/next/v type")],
        ),
        (0, 4, r#"{"description": "x", "x-own": [1]}"#, &[("1", "")]),
    ]);
}

#[test]
fn schemas_of_several_documents() {
    const BESIDE: &[(&str, &str)] = &[
        ("part.json", r##"{"definitions": {"n": {"type": "integer"}}, "minimum": 2}"##),
        ("broken.json", "{"),
    ];
    for (draft, _) in DRAFTS {
        let compiled = load(r#"{"properties": {"a": {"$ref": "part.json#/definitions/n"}}}"#, draft, BESIDE);
        let compiled = compiled.expect("a schema");
        assert_eq!(violations(&compiled, r#"{"a": "x"}"#), "/a type", "{draft:?}");
        for missing in ["none.json", "broken.json", "part.json#/definitions/none"] {
            let schema = format!(r#"{{"properties": {{"a": {{"$ref": "{missing}"}}}}}}"#);
            assert!(load(&schema, draft, BESIDE).is_err(), "{missing} {draft:?}");
        }
    }
}

#[test]
fn wrong_schemas() {
    for schema in [
        "{",
        "",
        "1",
        "[]",
        r#"{"type": "text"}"#,
        r#"{"type": 1}"#,
        r#"{"minimum": "1"}"#,
        r#"{"required": "a"}"#,
        r#"{"pattern": "("}"#,
        r#"{"properties": []}"#,
        r#"{"minLength": -1}"#,
        r#"{"multipleOf": 0}"#,
        r#"{"enum": 1}"#,
        r##"{"$ref": "#/none"}"##,
        r#"{"allOf": []}"#,
        r#"{"items": 1}"#,
    ] {
        for (draft, _) in DRAFTS {
            assert!(load(schema, draft, &[]).is_err(), "{schema} {draft:?}");
        }
    }
    let place =
        load(r#"{"properties": {"a": {"type": "text"}}}"#, Draft::Draft7, &[]).err().unwrap_or_default();
    assert!(place.starts_with("schema.json:") && place.contains("/properties/a/type"), "{place}");
    assert!(load("{\n \"a\" 1}", Draft::Draft7, &[]).is_err_and(|why| why.contains("2:")));
    // Nothing is fetched.
    let source = Source { name: "s".to_owned(), bytes: br#"{"$ref": "http://127.0.0.1:1/s.json"}"#.to_vec() };
    assert!(JsonSchema::load(source, Draft::Draft7, &Files).is_err());
}

#[test]
fn hostile_documents_end() {
    let schema =
        load(r##"{"items": {"$ref": "#"}, "type": "array"}"##, Draft::Draft202012, &[]).expect("a schema");
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(violations(&schema, &deep(100)), "");
    let mut value = Value::Array(Vec::new());
    for _ in 0..600 {
        value = Value::Array(vec![value]);
    }
    assert!(!schema.is_valid(&value) && schema.validate(&value)[0].message.contains("deeper than"));
    let many = Value::Array(vec![Value::from(1); 5000]);
    assert_eq!(schema.validate(&many).len(), 1000);
    let long = Value::Array(vec![Value::from("x".repeat(10_000))]);
    assert!(schema.validate(&long)[0].message.chars().count() < 600);
    // Backtracking without end counts as no match.
    let schema = load(r#"{"pattern": "^(a+)+\\1$"}"#, Draft::Draft7, &[]).expect("a schema");
    let _ = schema.is_valid(&Value::from("a".repeat(40) + "b"));
}
