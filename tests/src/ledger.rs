//! The committed outcome: how many cases pass and which do not, each with its reason. A change either way without the ledger
//! is a failure, so that nothing gets lost and nothing is gained unseen.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What the ledger says, or what a run came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    /// By suite: how many pass.
    pub passed: BTreeMap<String, usize>,
    /// `suite case` to the reason why it fails.
    pub failing: BTreeMap<String, String>,
}

const HEAD: &str = "\
# The outcome of the cases, see tests/src/ledger.rs. After a change that is meant:
#   BUSBAR_LEDGER=write cargo test -p busbar --test cases
# and give each new failing case its reason. `passed SUITE NUMBER`; `fails SUITE CASE: reason`.
";

impl Ledger {
    /// Reads the text of a ledger; a line that makes no sense is an error.
    pub fn parse(text: &str) -> Result<Ledger, String> {
        let mut ledger = Ledger::default();
        for (n, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = || format!("line {}: {line:?}", n + 1);
            if let Some(rest) = line.strip_prefix("passed ") {
                let (suite, number) = rest.split_once(' ').ok_or_else(wrong)?;
                ledger.passed.insert(suite.to_owned(), number.parse().map_err(|_| wrong())?);
            } else if let Some(rest) = line.strip_prefix("fails ") {
                let (case, reason) = rest.split_once(": ").ok_or_else(wrong)?;
                ledger.failing.insert(case.to_owned(), reason.to_owned());
            } else {
                return Err(wrong());
            }
        }
        Ok(ledger)
    }

    /// The text of this ledger.
    pub fn write(&self) -> String {
        let mut out = HEAD.to_owned();
        for (suite, number) in &self.passed {
            let _ = writeln!(out, "passed {suite} {number}");
        }
        for (case, reason) in &self.failing {
            let _ = writeln!(out, "fails {case}: {reason}");
        }
        out
    }

    /// Only what is about these suites.
    pub fn of(&self, suites: &[&str]) -> Ledger {
        let in_suite = |case: &str| suites.contains(&case.split(' ').next().unwrap_or(""));
        Ledger {
            passed: self.passed.clone().into_iter().filter(|(s, _)| in_suite(s)).collect(),
            failing: self.failing.clone().into_iter().filter(|(c, _)| in_suite(c)).collect(),
        }
    }

    /// This outcome with the reasons that `old` has, and what `old` says about other suites.
    pub fn merge(&self, old: &Ledger) -> Ledger {
        let mut new = self.clone();
        for (case, reason) in &mut new.failing {
            if let Some(kept) = old.failing.get(case) {
                reason.clone_from(kept);
            }
        }
        for (suite, number) in &old.passed {
            if !self.passed.contains_key(suite) {
                new.passed.insert(suite.clone(), *number);
                new.failing.extend(old.of(&[suite]).failing);
            }
        }
        new
    }

    /// How this outcome differs from the ledger, a line each.
    pub fn changes(&self, ledger: &Ledger) -> Vec<String> {
        let mut out = Vec::new();
        for (case, why) in &self.failing {
            if !ledger.failing.contains_key(case) {
                out.push(format!("{case} fails and is not in the ledger: {why}"));
            }
        }
        for (case, reason) in &ledger.failing {
            if !self.failing.contains_key(case) {
                out.push(format!("{case} passes or is gone, the ledger says it fails: {reason}"));
            }
        }
        for (suite, number) in &self.passed {
            let expected = ledger.passed.get(suite).copied().unwrap_or(0);
            // More is no loss: a case was added. What passes now and failed before is among the above.
            if expected > *number {
                out.push(format!("{suite}: {number} pass, the ledger says {expected}"));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_either_way_are_seen() {
        let ledger = Ledger::parse(
            "# x\npassed own 2\npassed outside 5\nfails own a/b: later\nfails outside c/d: never\n",
        )
        .unwrap();
        assert_eq!(Ledger::parse(&ledger.write()).unwrap(), ledger);
        let before = ledger.of(&["own"]);
        assert_eq!(before.changes(&before), Vec::<String>::new());
        let mut now = before.clone();
        now.failing.insert("own x/y".into(), "new".into());
        now.failing.remove("own a/b");
        now.passed.insert("own".into(), 3);
        assert_eq!(now.changes(&before).len(), 2);
        now.passed.insert("own".into(), 1);
        let changes = now.changes(&before);
        assert_eq!(changes.len(), 3, "{changes:?}");
        let merged = now.merge(&ledger);
        assert_eq!(merged.failing.keys().collect::<Vec<_>>(), ["outside c/d", "own x/y"]);
        assert_eq!(merged.passed["outside"], 5);
        now.failing.insert("own a/b".into(), "other words".into());
        assert_eq!(now.merge(&ledger).failing["own a/b"], "later");
        for wrong in ["passes own 1", "passed own", "fails own a/b"] {
            assert!(Ledger::parse(wrong).is_err(), "{wrong}");
        }
    }
}
