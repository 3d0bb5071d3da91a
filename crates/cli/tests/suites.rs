//! The outside suites of XSLT 2.0 and 3.0 and of XPath 2.0 to 3.1, run through `busbar xslt` and `busbar xpath` by the suites' own
//! tools (`BUSBAR_SUITES`), against the committed ledgers. The tools need Python with lxml and elementpath.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

fn suites() -> Option<PathBuf> {
    let root = std::env::var_os("BUSBAR_SUITES")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let tools = root.join("conformance/tools");
    let is_ci = std::env::var("CI").as_deref() == Ok("true");
    if !tools.join("verify_xslt20.py").is_file() {
        assert!(!is_ci, "the suites must be run in CI; there are none at {}", tools.display());
        println!("skipped: no suites at {}", tools.display());
        return None;
    }
    let python = Command::new("python3").args(["-c", "import lxml, elementpath"]).output();
    if !python.is_ok_and(|output| output.status.success()) {
        let needed = is_ci && std::env::var_os("BUSBAR_SERVICES_ABSENT").is_none();
        assert!(!needed, "no Python with lxml and elementpath: tests/services/install");
        println!("skipped: no Python with lxml and elementpath (tests/services/install)");
        return None;
    }
    Some(tools)
}

/// How reasons begin of cases that a processor of this version without schemas need not pass.
const BEYOND: [&str; 2] = ["schema awareness: ", "version 3.0: "];

/// Runs a suite. A ledger has how many cases passed, by version of the language, the same of those that a processor of that version without
/// schemas has to pass, and each case that does not, with its reason.
fn check(tool: &str, ledger: &str) {
    let Some(tools) = suites() else { return };
    let results = std::env::temp_dir().join(format!("busbar-{ledger}-{}.jsonl", std::process::id()));
    let run = Command::new("python3")
        .arg(tools.join(tool))
        .args(["--bin", env!("CARGO_BIN_EXE_busbar"), "--jobs", "2", "--timeout", "300", "--json"])
        .arg(&results)
        .output()
        .unwrap();
    let text = std::fs::read_to_string(&results)
        .unwrap_or_else(|e| panic!("{tool}: {e}: {}", String::from_utf8_lossy(&run.stderr)));
    let _ = std::fs::remove_file(&results);
    let mut passed: BTreeMap<String, usize> = BTreeMap::new();
    let mut total: BTreeMap<String, usize> = BTreeMap::new();
    let mut failed: BTreeMap<String, String> = BTreeMap::new();
    let mut specs: BTreeMap<String, String> = BTreeMap::new();
    for line in text.lines() {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        let why = case["why"].as_str().unwrap();
        assert!(!why.starts_with("CRASH") && why != "timeout", "{}: {why}", case["id"]);
        let spec = case["spec"].as_str().unwrap().to_owned();
        *total.entry(spec.clone()).or_default() += 1;
        if case["verdict"] == "pass" {
            *passed.entry(spec).or_default() += 1;
        } else {
            specs.insert(case["id"].as_str().unwrap().to_owned(), spec);
            failed.insert(case["id"].as_str().unwrap().to_owned(), why.to_owned());
        }
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ledger").join(ledger);
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    let reasons: BTreeMap<&str, &str> = committed.lines().filter_map(|line| line.split_once('\t')).collect();
    let is_beyond =
        |id: &str| reasons.get(id).is_some_and(|reason| BEYOND.iter().any(|begin| reason.starts_with(begin)));
    let counted = |without: bool| -> String {
        let of = |(spec, count): (&String, &usize)| {
            let beyond = failed.keys().filter(|id| without && is_beyond(id) && specs[*id] == *spec).count();
            format!("{spec}: {count} of {}", total[spec] - beyond)
        };
        passed.iter().map(of).collect::<Vec<_>>().join(", ")
    };
    let head = format!("passed {}\nwithout schema awareness {}", counted(false), counted(true));
    println!("{ledger}: {head}");
    if std::env::var("BUSBAR_LEDGER").as_deref() == Ok("write") {
        let lines = failed.iter().map(|(id, why)| {
            let why = why.split('\n').next().unwrap_or_default();
            format!("{id}\t{}\n", reasons.get(id.as_str()).copied().unwrap_or(why))
        });
        let text = format!("{head}\n{}", lines.collect::<String>());
        return std::fs::write(&file, text).unwrap();
    }
    let new: Vec<String> = failed
        .iter()
        .filter(|(id, _)| !reasons.contains_key(id.as_str()))
        .map(|(id, why)| format!("{id}: {why}"))
        .collect();
    let gone: Vec<&&str> = reasons.keys().filter(|id| !failed.contains_key(**id)).collect();
    assert!(new.is_empty() && gone.is_empty(), "fail now: {new:#?}\npass now: {gone:#?}");
    assert_eq!(committed.lines().take(2).collect::<Vec<_>>().join("\n"), head);
}

#[test]
fn xslt() {
    check("verify_xslt20.py", "xslt20.txt");
}

#[test]
fn xpath() {
    check("verify_xpath20.py", "xpath20.txt");
}
