//! The XPath 1.0 conformance suite (outside the project, see `BUSBAR_SUITES`) against the committed ledger.

#![allow(clippy::unwrap_used)]

mod events;

use busbar_xpath::{CompileOptions, Context, Expression, Node, StreamAs, StreamContext, Value, node_path};
use serde_json::Value as Json;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Number passed, and the failing ids with their reason.
const LEDGER: &str = include_str!("suite.ledger");

fn suite() -> Option<PathBuf> {
    let root = std::env::var_os("BUSBAR_SUITES")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let dir = root.join("conformance/xpath10");
    if dir.join("manifest.jsonl").is_file() {
        return Some(dir);
    }
    println!("skipped: no suite at {}", dir.display());
    assert!(std::env::var("CI").as_deref() != Ok("true"), "the suite must be there in CI");
    None
}

struct Case {
    id: String,
    json: Json,
}

impl Case {
    fn text(&self, key: &str) -> &str {
        self.json[key].as_str().unwrap_or("")
    }

    fn options_of(&self) -> BTreeMap<String, String> {
        let map = self.json["namespaces"].as_object();
        map.into_iter().flatten().map(|(k, v)| (k.clone(), v.as_str().unwrap_or("").to_string())).collect()
    }
}

fn cases(dir: &Path) -> Vec<Case> {
    let manifest = std::fs::read_to_string(dir.join("manifest.jsonl")).unwrap();
    let parsed = manifest.lines().map(|l| serde_json::from_str::<Json>(l).unwrap());
    parsed.map(|json| Case { id: json["id"].as_str().unwrap().to_string(), json }).collect()
}

#[derive(Default)]
struct Documents(HashMap<String, Arc<xml::Document>>);

impl Documents {
    fn get(&mut self, dir: &Path, name: &str) -> Result<Arc<xml::Document>, String> {
        if let Some(doc) = self.0.get(name) {
            return Ok(doc.clone());
        }
        let path = dir.join(name);
        let doc = if name.is_empty() {
            xml::Document::new()
        } else {
            let bytes = std::fs::read(&path).unwrap();
            let options = xml::ParseOptions {
                dtd: xml::Dtd::External(Arc::new(xml::FileResolver::default())),
                base_uri: Some(path.to_string_lossy().into_owned()),
                ..xml::ParseOptions::trusted()
            };
            xml::Document::parse(bytes, &options).map_err(|e| format!("{}: {e}", path.display()))?
        };
        let doc = Arc::new(doc);
        self.0.insert(name.to_string(), doc.clone());
        Ok(doc)
    }
}

fn number(json: &Json) -> f64 {
    match json {
        Json::String(s) if s == "NaN" => f64::NAN,
        Json::String(s) if s == "Infinity" => f64::INFINITY,
        Json::String(s) if s == "-Infinity" => f64::NEG_INFINITY,
        other => other.as_f64().unwrap(),
    }
}

fn close(a: f64, b: f64) -> bool {
    a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-14 * a.abs().max(b.abs())
}

/// The context node of a case.
fn context_node(case: &Case, doc: &xml::Document, options: &CompileOptions<'_>) -> Node {
    let path = case.text("context");
    let found = Expression::compile(path, options).unwrap().evaluate_first(&Context::root(doc)).unwrap();
    found.unwrap_or_else(|| panic!("{}: no context node", case.id))
}

fn run(case: &Case, doc: &xml::Document) -> Result<(), String> {
    let namespaces = case.options_of();
    let options = CompileOptions { namespaces: &namespaces, ..CompileOptions::default() };
    let compare = case.text("compare");
    let compiled = match Expression::compile(case.text("expr"), &options) {
        Ok(e) => e,
        Err(_) if compare == "must-fail" => return Ok(()),
        Err(e) => return Err(format!("does not compile: {e}")),
    };
    let cx = Context::at(doc, context_node(case, doc, &options));
    let value = match compiled.evaluate(&cx) {
        Ok(v) => v,
        Err(_) if compare == "must-fail" => return Ok(()),
        Err(e) => return Err(e.to_string()),
    };
    if compare == "must-fail" {
        return Err(format!("no error but {value:?}"));
    }
    let expected = &case.json["expected"];
    let right = match (&value, compare) {
        (Value::Boolean(b), "boolean") => Some(*b) == expected.as_bool(),
        (Value::Number(n), "number") => close(*n, number(expected)),
        (Value::String(s), "string") => Some(&**s) == expected.as_str(),
        (Value::NodeSet(set), "node-set") => {
            let mut got: Vec<String> = set.iter().map(|n| node_path(doc, n)).collect();
            let mut wanted: Vec<String> =
                expected.as_array().unwrap().iter().map(|p| p.as_str().unwrap().to_string()).collect();
            got.sort();
            wanted.sort();
            if got != wanted {
                return Err(format!("nodes {got:?}, expected {wanted:?}"));
            }
            true
        }
        _ => false,
    };
    if !right {
        return Err(format!("{value:?}, expected {compare} {expected}"));
    }
    // The typed ways agree with the general one.
    let string = compiled.evaluate_string(&cx).map_err(|e| e.to_string())?;
    if string != value.to_string_in(&cx).unwrap() {
        return Err(format!("evaluate_string gives {string:?}"));
    }
    if let Some(s) = case.json["expected_string"].as_str()
        && string != s
    {
        return Err(format!("string() gives {string:?}, expected {s:?}"));
    }
    let n = compiled.evaluate_number(&cx).map_err(|e| e.to_string())?;
    if !close(n, value.to_number_in(&cx).unwrap()) {
        return Err(format!("evaluate_number gives {n}"));
    }
    if compiled.evaluate_boolean(&cx).map_err(|e| e.to_string())? != value.to_boolean() {
        return Err("evaluate_boolean differs".into());
    }
    streams(&compiled, doc)
}

/// Where the expression can stream, streaming gives what the tree gives.
fn streams(compiled: &Expression, doc: &xml::Document) -> Result<(), String> {
    for context in [StreamContext::Document, StreamContext::RootElement] {
        let node = match context {
            StreamContext::Document => xml::Document::ROOT,
            StreamContext::RootElement | StreamContext::Envelope => {
                doc.document_element().unwrap_or(xml::Document::ROOT)
            }
        };
        let cx = Context::at(doc, Node::new(node));
        for wanted in [StreamAs::Value, StreamAs::Boolean, StreamAs::String] {
            let Ok(plan) = compiled.streaming_as(wanted, context) else { continue };
            let tree = match wanted {
                StreamAs::Value => compiled.evaluate(&cx).unwrap(),
                StreamAs::Boolean => Value::Boolean(compiled.evaluate_boolean(&cx).unwrap()),
                StreamAs::String | StreamAs::Text => Value::string(compiled.evaluate_string(&cx).unwrap()),
            };
            // As events, and as bytes: whole and in pieces (byte by byte, where that does not take ages).
            let single = if doc.node_count() < 60 { 1 } else { 61 };
            for piece in [None, Some(usize::MAX), Some(single)] {
                let mut run = plan.start(&()).map_err(|e| e.to_string())?;
                match piece {
                    None => drop(events::feed(doc, 3, &mut run)),
                    Some(_) if doc.document_element().is_none() => continue,
                    Some(piece) => events::read(doc, piece, &mut run),
                }
                let streamed = run.finish().map_err(|e| e.to_string())?;
                if !same(&streamed, &tree) {
                    return Err(format!(
                        "streaming {wanted:?} gives {streamed:?}, tree {tree:?} ({piece:?})"
                    ));
                }
            }
            STREAMED.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Evaluations that were compared with the stream: the comparison must not fade away unseen.
static STREAMED: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.is_nan() && b.is_nan(),
        _ => a == b,
    }
}

#[test]
fn conformance() {
    let Some(dir) = suite() else { return };
    let mut documents = Documents::default();
    let mut passed = 0;
    let mut failed = BTreeMap::new();
    for case in cases(&dir) {
        let doc = documents.get(&dir, case.json["files"]["input"].as_str().unwrap_or(""));
        match doc.and_then(|doc| run(&case, &doc)) {
            Ok(()) => passed += 1,
            Err(reason) => {
                failed.insert(case.id.clone(), format!("{}  {reason}", case.text("expr")));
            }
        }
    }
    check_ledger(passed, &failed);
    let streamed = STREAMED.load(std::sync::atomic::Ordering::Relaxed);
    println!("streaming compared with the tree {streamed} times");
    assert!(streamed > 2000, "only {streamed} evaluations stream");
}

/// The ledger: a line `passed N`, then one line `id: reason` per failing case; `#` begins a comment.
fn check_ledger(passed: usize, failed: &BTreeMap<String, String>) {
    let mut wanted = 0;
    let mut recorded = BTreeMap::new();
    for line in LEDGER.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        match line.strip_prefix("passed ") {
            Some(n) => wanted = n.trim().parse().unwrap(),
            None => {
                let (id, reason) = line.split_once(": ").expect("id: reason");
                recorded.insert(id.to_string(), reason);
            }
        }
    }
    for (id, reason) in failed.iter().filter(|(id, _)| !recorded.contains_key(*id)) {
        println!("new failure: {id}: {reason}");
    }
    for id in recorded.keys().filter(|id| !failed.contains_key(*id)) {
        println!("passes now: {id}");
    }
    assert!(
        failed.keys().eq(recorded.keys()) && passed == wanted,
        "passed {passed}, ledger {wanted}: see above"
    );
}
