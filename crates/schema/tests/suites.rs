//! The suites of XML Schema, JSON Schema and JSON, against the committed list of cases we do not pass
//! (`suites.ledger`, a line `id: reason` each). A case that fails and is not listed fails the test, and so does a listed one that passes.

use busbar_schema::{Draft, Files, JsonSchema, Resolver, Source, Violation, XmlSchema};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn suite(name: &str) -> Option<(PathBuf, Vec<Value>)> {
    let root = std::env::var_os("BUSBAR_SUITES").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let folder = root.join("conformance").join(name);
    let Ok(text) = std::fs::read_to_string(folder.join("manifest.jsonl")) else {
        assert!(std::env::var("CI").is_err(), "the suites are missing; set BUSBAR_SUITES");
        println!("skipped: no conformance suite at {}", folder.display());
        return None;
    };
    Some((folder, text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()))
}

/// Runs all cases of a suite; `judge` tells what is wrong with one.
fn run(suite_name: &str, judge: impl Fn(&Path, &Value) -> Result<(), String>) {
    let Some((folder, cases)) = suite(suite_name) else { return };
    let prefix = format!("{suite_name}/");
    let ledger: BTreeSet<&str> = include_str!("suites.ledger")
        .lines()
        .filter(|line| line.starts_with(&prefix))
        .map(|line| line.split(": ").next().unwrap_or(line))
        .collect();
    let mut passed = 0;
    let mut groups: BTreeMap<&str, usize> = BTreeMap::new();
    let mut problems = Vec::new();
    for case in &cases {
        let id = case["id"].as_str().unwrap_or("");
        match (judge(&folder, case), ledger.contains(id)) {
            (Ok(()), false) => passed += 1,
            (Err(_), true) => {}
            (Ok(()), true) => problems.push(format!("{id}: passes, take it off the ledger")),
            (Err(why), false) => {
                *groups.entry(case["group"].as_str().unwrap_or("")).or_default() += 1;
                problems.push(format!("{id}: {why}"));
            }
        }
    }
    println!("{suite_name}: {passed} of {} cases", cases.len());
    for (group, count) in groups {
        println!("  {group}: {count} fail");
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn read(path: &Path) -> Source {
    Source { name: path.display().to_string(), bytes: std::fs::read(path).expect("a file of the suite") }
}

fn strings(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn show(violations: &[Violation]) -> String {
    violations.first().map_or("none".to_owned(), ToString::to_string)
}

#[test]
fn xml_schema() {
    run("xsd", |folder, case| {
        let sources = strings(&case["files"]["schema"]).map(|file| read(&folder.join(file))).collect();
        let expected = case["schema_valid"].as_bool().unwrap_or(true);
        let schema = match (XmlSchema::load(sources, &Files), expected) {
            (Ok(schema), true) => schema,
            (Err(_), false) => return Ok(()),
            (Ok(_), false) => return Err("the schema is accepted".to_owned()),
            (Err(why), true) => return Err(format!("the schema is refused: {}", show(&why))),
        };
        for instance in case["instances"].as_array().into_iter().flatten() {
            let (file, valid) = (instance["file"].as_str().unwrap_or(""), instance["valid"].as_bool());
            let options = xml::ParseOptions { dtd: xml::Dtd::Internal, ..xml::ParseOptions::trusted() };
            let violations = match xml::Document::parse(read(&folder.join(file)).bytes, &options) {
                Ok(document) => match document.document_element() {
                    Some(root) => schema.validate(&document, root).iter().map(ToString::to_string).collect(),
                    None => vec!["no document element".to_owned()],
                },
                Err(error) => vec![error.to_string()],
            };
            if Some(violations.is_empty()) != valid {
                return Err(format!("{file}: {}", violations.first().map_or("accepted", |v| v)));
            }
        }
        Ok(())
    });
}

#[test]
fn json_schema() {
    run("jsonschema", |_, case| {
        let draft = match case["draft"].as_str() {
            Some("draft4") => Draft::Draft4,
            Some("draft6") => Draft::Draft6,
            _ => Draft::Draft7,
        };
        let source = Source { name: "the case".into(), bytes: case["schema"].to_string().into_bytes() };
        let schema = JsonSchema::load(source, draft, &NoFiles)
            .map_err(|why| format!("the schema is refused: {}", show(&why)))?;
        for test in case["tests"].as_array().into_iter().flatten() {
            let violations = schema.validate(&test["data"]);
            if Some(violations.is_empty()) != test["valid"].as_bool()
                || violations.is_empty() != schema.is_valid(&test["data"])
            {
                return Err(format!("{}: {}", test["name"], show(&violations)));
            }
        }
        Ok(())
    });
}

struct NoFiles;

impl Resolver for NoFiles {
    fn resolve(&self, location: &str, _: &str) -> Result<Source, String> {
        Err(format!("`{location}` is not in the case"))
    }
}

/// What `busbar jsonpath '$'` reads: RFC 8259 says which texts.
#[test]
fn json() {
    run("json", |folder, case| {
        let file = case["files"]["input"].as_str().unwrap_or("");
        let parsed: Result<Value, _> = serde_json::from_slice(&read(&folder.join(file)).bytes);
        match (case["compare"].as_str(), parsed) {
            (Some("accept"), Ok(value)) if case.get("expected").is_none_or(|e| same(e, &value)) => Ok(()),
            (Some("accept"), Ok(value)) => Err(format!("found {value}")),
            (Some("accept"), Err(why)) => Err(why.to_string()),
            (Some("must-fail"), Ok(_)) => Err("accepted".to_owned()),
            _ => Ok(()),
        }
    });
}

/// Equal, numbers by their value.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|b| same(v, b)))
        }
        _ => a == b,
    }
}
