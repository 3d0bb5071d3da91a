//! Suites from outside the project, and the committed ledgers of what passes.
//!
//! A ledger's first line is `passed N`; each other line is the id of a case that fails, a tab, and the reason.
//! `BUSBAR_LEDGER=write` writes it anew (keeping reasons).

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

pub struct Suite {
    folder: PathBuf,
}

/// The suite `conformance/NAME`; `None`, with a line saying so, where it is not there. In CI it must be.
pub fn suite(name: &str) -> Option<Suite> {
    let crate_folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let suites =
        std::env::var_os("BUSBAR_SUITES").map_or_else(|| crate_folder.join("../../../shared"), PathBuf::from);
    let folder = suites.join("conformance").join(name);
    if folder.join("manifest.jsonl").exists() {
        return Some(Suite { folder });
    }
    assert!(std::env::var_os("CI").is_none_or(|v| v != "true"), "no suite at {}", folder.display());
    println!("skipped: no suite at {}", folder.display());
    None
}

impl Suite {
    pub fn cases(&self) -> Vec<Value> {
        let manifest = String::from_utf8(self.read("manifest.jsonl")).expect("manifests are UTF-8");
        manifest.lines().map(|line| serde_json::from_str(line).expect("manifests are JSON lines")).collect()
    }

    pub fn read(&self, file: &str) -> Vec<u8> {
        std::fs::read(self.folder.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }
}

pub struct Ledger {
    path: PathBuf,
    recorded: BTreeMap<String, String>,
    known_passed: usize,
    passed: usize,
    failed: BTreeMap<String, String>,
}

impl Ledger {
    pub fn open(name: &str) -> Ledger {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/ledger").join(name);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let mut lines = text.lines();
        let known_passed = lines.next().and_then(|l| l.strip_prefix("passed ")).and_then(|n| n.parse().ok());
        let recorded =
            lines.filter_map(|l| l.split_once('\t')).map(|(id, why)| (id.to_owned(), why.to_owned()));
        Ledger {
            path,
            recorded: recorded.collect(),
            known_passed: known_passed.unwrap_or(0),
            passed: 0,
            failed: BTreeMap::new(),
        }
    }

    pub fn note(&mut self, id: &str, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.passed += 1,
            Err(why) => {
                self.failed.insert(id.to_owned(), why);
            }
        }
    }

    /// Fails when something changed either way.
    pub fn close(self) {
        if std::env::var_os("BUSBAR_LEDGER").is_some_and(|v| v == "write") {
            let mut text = format!("passed {}\n", self.passed);
            for (id, why) in &self.failed {
                let why = self.recorded.get(id).unwrap_or(why);
                text += &format!("{id}\t{}\n", why.replace('\n', " "));
            }
            std::fs::write(&self.path, text).expect("the ledger can be written");
        }
        let mut changes = Vec::new();
        for (id, why) in &self.failed {
            if !self.recorded.contains_key(id) {
                changes.push(format!("now fails: {id}: {why}"));
            }
        }
        for id in self.recorded.keys().filter(|id| !self.failed.contains_key(*id)) {
            changes.push(format!("no longer fails: {id}"));
        }
        if changes.is_empty() && self.passed != self.known_passed {
            changes.push(format!("passed {}, the ledger says {}", self.passed, self.known_passed));
        }
        assert!(
            changes.is_empty(),
            "the ledger {} is not right:\n{}",
            self.path.display(),
            changes.join("\n")
        );
    }
}
