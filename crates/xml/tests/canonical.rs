//! The outside suite `conformance/c14n`: canonical forms, byte for byte, against the committed ledger.

mod ledger;

use busbar_xml::c14n::{Algorithm, NodeSet, Options, canonicalize, canonicalize_set};
use busbar_xml::{Document, Dtd, FileResolver, ParseOptions};
use std::collections::HashMap;
use std::sync::Arc;
use xpath::{CompileOptions, Context, Expression, Value};

#[test]
fn canonical_forms() {
    let Some(suite) = ledger::suite("c14n") else { return };
    let mut ledger = ledger::Ledger::open("c14n.txt");
    for case in suite.cases() {
        let outcome = run(&suite, &case);
        ledger.note(case["id"].as_str().unwrap_or_default(), outcome);
    }
    ledger.close();
}

fn run(suite: &ledger::Suite, case: &serde_json::Value) -> Result<(), String> {
    let file = case["files"]["input"].as_str().unwrap_or_default();
    let parse = ParseOptions {
        dtd: Dtd::External(Arc::new(FileResolver::default())),
        base_uri: Some(suite.path(file).to_string_lossy().into_owned()),
        ..ParseOptions::default()
    };
    let doc = Document::parse(suite.read(file), &parse).map_err(|e| e.to_string())?;
    let strings = |v: &serde_json::Value| -> Vec<String> {
        v.as_array().into_iter().flatten().filter_map(|s| s.as_str().map(str::to_owned)).collect()
    };
    let options = Options {
        algorithm: match case["algorithm"].as_str() {
            Some("c14n-1.1") => Algorithm::Inclusive11,
            Some("exc-c14n-1.0") => Algorithm::Exclusive,
            _ => Algorithm::Inclusive10,
        },
        comments: case["with_comments"] == true,
        inclusive_prefixes: strings(&case["inclusive_namespaces"]),
    };
    let mut out = Vec::new();
    match case["xpath"].as_str() {
        None => canonicalize(&doc, Document::ROOT, &options, &mut out),
        Some(path) => canonicalize_set(&doc, &select(&doc, path, &case["namespaces"])?, &options, &mut out),
    }
    let expected = suite.read(case["expected"].as_str().unwrap_or_default());
    if out == expected {
        return Ok(());
    }
    if std::env::var_os("BUSBAR_SHOW").is_some() {
        println!(
            "== {}\n{}\n-- expected\n{}",
            case["id"],
            String::from_utf8_lossy(&out),
            String::from_utf8_lossy(&expected)
        );
    }
    Err("another canonical form".to_owned())
}

fn select(doc: &Document, path: &str, namespaces: &serde_json::Value) -> Result<NodeSet, String> {
    let namespaces: HashMap<String, String> = namespaces
        .as_object()
        .into_iter()
        .flatten()
        .map(|(p, u)| (p.clone(), u.as_str().unwrap_or_default().to_owned()))
        .collect();
    let options = CompileOptions { namespaces: &namespaces, ..CompileOptions::default() };
    let expression = Expression::compile(path, &options).map_err(|e| e.message)?;
    let mut set = NodeSet::default();
    match expression.evaluate(&Context::root(doc)).map_err(|e| e.message)? {
        Value::NodeSet(nodes) => {
            for n in nodes.iter() {
                match n.namespace {
                    0 => set.add(n.id),
                    1 => set.add_namespace(n.id, "xml"),
                    i => {
                        let scope = doc.in_scope_namespaces(n.id);
                        let (prefix, _) = scope.get(i as usize - 2).copied().unwrap_or_default();
                        set.add_namespace(n.id, prefix);
                    }
                }
            }
            Ok(set)
        }
        _ => Err("not a node-set".to_owned()),
    }
}
