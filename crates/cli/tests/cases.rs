//! The black-box cases: the project's own in `tests/cases` and, where they are, the outside ones in `$BUSBAR_SUITES/cases`.
//!
//! * `BUSBAR_LEDGER=write` writes `tests/ledger/cases.txt` anew.
//! * `BUSBAR_CASES=filter/,cache/no-store` runs only cases whose id contains one of these, and leaves the ledger alone.
//! * `BUSBAR_CASE_JOBS=4` runs so many at a time.
//! * `BUSBAR_CASE_REPORT=FILE` writes a JSON object for each case to FILE.
//! * `BUSBAR_CASE_COMMAND='start.sh {config} {port} {dir}'` tests another engine.

use std::path::Path;
use tests::bus::Program;
use tests::ledger::Ledger;
use tests::suite::{Suite, run, say};

#[test]
fn cases() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let env = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
    let program = match env("BUSBAR_CASE_COMMAND") {
        Some(command) => Program::Shell(command),
        None => Program::Busbar(env!("CARGO_BIN_EXE_busbar").into()),
    };
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let jobs = env("BUSBAR_CASE_JOBS").and_then(|n| n.parse().ok()).unwrap_or(cores.clamp(2, 4));
    let only: Vec<String> =
        env("BUSBAR_CASES").map(|list| list.split(',').map(str::to_owned).collect()).unwrap_or_default();

    let mut suites = vec![Suite { name: "own", folder: root.join("tests/cases") }];
    let outside = env("BUSBAR_SUITES").map_or(root.join("../shared"), Into::into).join("cases");
    if outside.is_dir() {
        suites.push(Suite { name: "outside", folder: outside });
    } else {
        say(&format!("skipped: the outside cases, there is no {} (BUSBAR_SUITES)", outside.display()));
        assert!(env("CI").is_none_or(|v| v != "true"), "the outside cases are needed with CI=true");
    }
    let names: Vec<&str> = suites.iter().map(|s| s.name).collect();

    let file = root.join("tests/ledger/cases.txt");
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let ledger = Ledger::parse(&text).expect("tests/ledger/cases.txt is a ledger");
    let report = run(&suites, &program, jobs, &only, &ledger).expect("the cases can be read");

    let everything = only.is_empty() && matches!(program, Program::Busbar(_));
    let expected = if everything { ledger.of(&names) } else { Ledger::default() };
    say(&report.failures(&expected));
    say(&report.summary());
    if let Some(file) = env("BUSBAR_CASE_REPORT") {
        std::fs::write(file, report.json_lines()).expect("the report can be written");
    }
    let now = report.ledger();
    if !everything {
        assert!(now.failing.is_empty(), "{} cases failed", now.failing.len());
    } else if env("BUSBAR_LEDGER").as_deref() == Some("write") {
        std::fs::write(&file, now.merge(&ledger).write()).expect("the ledger can be written");
        say(&format!("written: {}", file.display()));
    } else {
        let changes = now.changes(&expected);
        assert!(
            changes.is_empty(),
            "the outcome differs from tests/ledger/cases.txt:\n{}",
            changes.join("\n")
        );
    }
}
