//! Many cases: found, run a few at a time, summed up.

use crate::bus::Program;
use crate::case::{Case, Outcome};
use crate::ledger::Ledger;
use crate::{Failure, short};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A folder of cases under a name.
pub struct Suite {
    /// The name in the ledger.
    pub name: &'static str,
    /// Searched for `case.json`.
    pub folder: PathBuf,
}

/// One case of a suite and how it went.
pub struct Ran {
    suite: &'static str,
    id: String,
    outcome: Outcome,
}

/// Everything that ran.
pub struct Report {
    ran: Vec<Ran>,
}

/// Writes a line to the terminal even where the test harness captures output.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Runs the cases of the suites whose id contains one of `only` (none: all), `jobs` at a time, with progress. A case that
/// fails and is not listed in `ledger` runs once more alone: on a busy machine a wait may have been too short. If it passes
/// then, that is said.
pub fn run(
    suites: &[Suite],
    program: &Program,
    jobs: usize,
    only: &[String],
    ledger: &Ledger,
) -> Result<Report, Failure> {
    let mut cases = Vec::new();
    for suite in suites {
        for folder in find(&suite.folder) {
            let case = Case::read(&folder)?;
            if only.is_empty() || only.iter().any(|o| case.spec.id.contains(o.as_str())) {
                cases.push((suite.name, case));
            }
        }
    }
    let total = cases.len();
    say(&format!("cases: {total} to run, {jobs} at a time"));
    let queue = Mutex::new(cases.iter());
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some((suite, case)) = next else { break };
                    let outcome = case.run(program);
                    let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                    done.push(Ran { suite, id: case.spec.id.clone(), outcome });
                    let n = done.len();
                    if n % 50 == 0 && n < total {
                        let failed = done.iter().filter(|r: &&Ran| r.outcome.failure.is_some()).count();
                        say(&format!("cases: {n} of {total}, {failed} failed"));
                    }
                }
            });
        }
    });
    let mut ran = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    for r in &mut ran {
        if r.outcome.failure.is_none() || ledger.failing.contains_key(&r.key()) {
            continue;
        }
        if let Some((_, case)) = cases.iter().find(|(s, c)| *s == r.suite && c.spec.id == r.id) {
            let again = case.run(program);
            if again.failure.is_none() {
                say(&format!("unsteady: {} failed once: {}", r.key(), r.line()));
            }
            r.outcome = again;
        }
    }
    ran.sort_by_key(Ran::key);
    Ok(Report { ran })
}

impl Ran {
    /// As in the ledger.
    fn key(&self) -> String {
        format!("{} {}", self.suite, self.id)
    }

    /// The reason in one line: what the bus itself said about the configuration, or else the failure.
    fn line(&self) -> String {
        let reported = self.outcome.log.lines().find(|l| l.starts_with("error["));
        let text = reported.or(self.outcome.failure.as_ref().map(|f| f.0.as_str())).unwrap_or("");
        short(&text.split_whitespace().collect::<Vec<_>>().join(" "), 200).to_owned()
    }
}

impl Report {
    /// The outcome as a ledger; the reasons are the failures.
    pub fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::default();
        for r in &self.ran {
            *ledger.passed.entry(r.suite.to_owned()).or_default() += usize::from(r.outcome.failure.is_none());
            if r.outcome.failure.is_some() {
                ledger.failing.insert(r.key(), r.line());
            }
        }
        ledger
    }

    /// The failures in full with the end of what the bus wrote, without those that `ledger` lists.
    pub fn failures(&self, ledger: &Ledger) -> String {
        let mut out = String::new();
        for r in &self.ran {
            if let Some(failure) =
                r.outcome.failure.as_ref().filter(|_| !ledger.failing.contains_key(&r.key()))
            {
                let _ =
                    writeln!(out, "\nFAIL {} ({:.1} s)\n{failure}", r.key(), r.outcome.elapsed.as_secs_f32());
                for line in r.outcome.log.lines().rev().take(12).collect::<Vec<_>>().iter().rev() {
                    let _ = writeln!(out, "  | {line}");
                }
            }
        }
        out
    }

    /// A JSON object for each case, a line each: `case`, `seconds`, `failure` (null: passed), `log`.
    pub fn json_lines(&self) -> String {
        let mut out = String::new();
        for r in &self.ran {
            let line = serde_json::json!({
                "case": r.key(),
                "seconds": r.outcome.elapsed.as_secs_f32(),
                "failure": r.outcome.failure.as_ref().map(|f| f.0.as_str()),
                "log": r.outcome.log,
            });
            let _ = writeln!(out, "{line}");
        }
        out
    }

    /// A line for each group and one for all.
    pub fn summary(&self) -> String {
        let mut groups: BTreeMap<String, [usize; 2]> = BTreeMap::new();
        for r in &self.ran {
            let group = format!("{} {}", r.suite, r.id.split('/').next().unwrap_or(""));
            let counts = groups.entry(group).or_default();
            counts[usize::from(r.outcome.failure.is_some())] += 1;
        }
        let mut out = String::new();
        let mut all = [0, 0];
        for (group, [passed, failed]) in groups {
            let _ = writeln!(out, "{group:<32} {passed:>3} / {:>3}", passed + failed);
            all = [all[0] + passed, all[1] + failed];
        }
        let _ = write!(out, "cases: {} passed, {} failed", all[0], all[1]);
        out
    }
}

/// The folders with a `case.json` below a folder, sorted.
fn find(folder: &Path) -> Vec<PathBuf> {
    if folder.join("case.json").is_file() {
        return vec![folder.to_owned()];
    }
    let mut inside: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.is_dir())
        .collect();
    inside.sort();
    inside.iter().flat_map(|p| find(p)).collect()
}
