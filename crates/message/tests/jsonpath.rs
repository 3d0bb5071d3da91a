//! The compliance suite of RFC 9535 in both dialects, against the committed list of cases we do not pass
//! (`jsonpath.ledger`, a line `dialect id` each). A case that fails and is not listed fails the test, and so
//! does a listed one that passes.

use busbar_message::jsonpath::{Dialect, Failure, JsonPath};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;

fn suite() -> Option<Vec<Value>> {
    let root = std::env::var_os("BUSBAR_SUITES").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let Ok(text) = std::fs::read_to_string(root.join("conformance/jsonpath/manifest.jsonl")) else {
        assert!(std::env::var("CI").is_err(), "the suites are missing; set BUSBAR_SUITES");
        println!("skipped: no conformance suite at {}", root.display());
        return None;
    };
    Some(text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect())
}

fn text<'v>(case: &'v Value, key: &str) -> &'v str {
    case.get(key).and_then(Value::as_str).unwrap_or("")
}

/// Whether `found` is what the case expects, or one of what it allows.
fn is_expected(case: &Value, key: &str, found: &Value) -> bool {
    match (case.get(key), case.get(format!("{key}_any_of"))) {
        (Some(expected), _) => expected == found,
        (_, Some(Value::Array(any))) => any.contains(found),
        (_, _) => true,
    }
}

fn standard(case: &Value) -> Result<(), String> {
    let compiled = JsonPath::compile(text(case, "selector"), Dialect::Rfc9535);
    if text(case, "compare") == "must-fail" {
        return if compiled.is_err() { Ok(()) } else { Err("compiled".to_owned()) };
    }
    let compiled = compiled.map_err(|error| error.to_string())?;
    let document = &case["document"];
    let found: Value = compiled.select(document).nodes.into_iter().map(|v| v.into_owned()).collect();
    if !is_expected(case, "expected", &found) {
        return Err(format!("found {found}"));
    }
    let paths: Value =
        compiled.pointers(document).unwrap_or_default().iter().map(|p| Value::from(p.to_string())).collect();
    if !is_expected(case, "expected_paths", &paths) {
        return Err(format!("places {paths}"));
    }
    Ok(())
}

fn jayway(case: &Value) -> Result<(), String> {
    let compiled = JsonPath::compile(text(case, "selector"), Dialect::Jayway);
    let says = &case["jayway"];
    let (outcome, kind) = (text(says, "outcome"), text(says, "kind"));
    let compiled = match (compiled, kind) {
        (Err(_), "invalid-path") => return Ok(()),
        (Ok(_), "invalid-path") => return Err("compiled".to_owned()),
        // Jayway fails there while it runs; before it runs is as well.
        (Err(_), _) if outcome == "same" && text(case, "compare") == "must-fail" => return Ok(()),
        (Err(error), _) => return Err(error.to_string()),
        (Ok(compiled), _) => compiled,
    };
    let null = Value::Null;
    let selection = compiled.select(case.get("document").unwrap_or(&null));
    let not_found = matches!(selection.failure, Some(Failure::NotFound(_)));
    let found: Vec<Value> = selection.nodes.iter().map(|v| v.clone().into_owned()).collect();
    let fits = match outcome {
        "error" => not_found,
        "same" if text(case, "compare") == "must-fail" => not_found || found.is_empty(),
        "same" => is_expected(case, "expected", &Value::Array(found.clone())),
        _ if selection.is_definite() => found.first() == says.get("value"),
        _ => Some(&Value::Array(found.clone())) == says.get("value"),
    };
    if fits { Ok(()) } else { Err(format!("found {}", Value::Array(found))) }
}

#[test]
fn compliance() {
    let Some(cases) = suite() else { return };
    let ledger: BTreeSet<&str> = include_str!("jsonpath.ledger")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    let mut problems = Vec::new();
    for (dialect, judge) in [
        ("rfc9535", standard as fn(&Value) -> Result<(), String>),
        ("jayway", jayway as fn(&Value) -> Result<(), String>),
    ] {
        let mut passed = 0;
        for case in &cases {
            let line = format!("{dialect} {}", text(case, "id"));
            match (judge(case), ledger.contains(line.as_str())) {
                (Ok(()), false) => passed += 1,
                (Err(_), true) => {}
                (Ok(()), true) => problems.push(format!("{line}: passes, take it off the ledger")),
                (Err(why), false) => problems.push(format!("{line}: {} {why}", text(case, "selector"))),
            }
        }
        println!("{dialect}: {passed} of {} cases", cases.len());
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
