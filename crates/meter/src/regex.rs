//! Regular expressions that count.
//!
//! The engine cannot be broken off within a match; what it has is a bound on backtracking. So there are two engines of each
//! pattern: one with a small bound, which is all that a run on a worker gets, and one with the large bound, made when it is
//! first needed.

use crate::{Stop, not_inline, spend};
use fancy_regex::{Error, RegexBuilder, RuntimeError};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// How often a match may go back: about a millisecond.
const FEW: usize = 20_000;

/// The same where it disturbs nobody.
const MANY: usize = 1_000_000;

/// The longest text that is searched on a worker, in bytes.
const SHORT: usize = 16 << 10;

/// A compiled regular expression; copies share it.
#[derive(Clone)]
pub struct Regex(Arc<Engines>);

struct Engines {
    few: fancy_regex::Regex,
    many: OnceLock<fancy_regex::Regex>,
}

/// Why a search has no result.
#[derive(Debug)]
pub enum Failure {
    /// The run has to end.
    Stopped(Stop),
    /// The match goes back too often, or is impossible to decide.
    Engine(Box<Error>),
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Stopped(stop) => stop.fmt(out),
            Failure::Engine(error) => error.fmt(out),
        }
    }
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Failure {
        Failure::Stopped(stop)
    }
}

impl Regex {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// It is none.
    pub fn new(pattern: &str) -> Result<Regex, Box<Error>> {
        let few = RegexBuilder::new(pattern).backtrack_limit(FEW).build().map_err(Box::new)?;
        Ok(Regex(Arc::new(Engines { few, many: OnceLock::new() })))
    }

    /// The engine, for what does not search.
    pub fn engine(&self) -> &fancy_regex::Regex {
        &self.0.few
    }

    /// Searches a text: `search` is called with an engine, and anew with another one where that gives up.
    ///
    /// # Errors
    /// It takes too long.
    pub fn run<'r, T>(
        &'r self,
        text: &str,
        search: impl Fn(&'r fancy_regex::Regex) -> Result<T, Error>,
    ) -> Result<T, Failure> {
        if text.len() > SHORT {
            not_inline()?;
        }
        spend(1 + (text.len() as u64 >> 5))?;
        match search(&self.0.few) {
            Err(Error::RuntimeError(RuntimeError::BacktrackLimitExceeded)) => {}
            result => return result.map_err(|error| Failure::Engine(Box::new(error))),
        }
        not_inline()?;
        let many = match self.0.many.get() {
            Some(many) => many,
            None => {
                let made = RegexBuilder::new(self.0.few.as_str()).backtrack_limit(MANY).build();
                let made = made.map_err(|error| Failure::Engine(Box::new(error)))?;
                self.0.many.get_or_init(|| made)
            }
        };
        spend(FEW as u64)?;
        search(many).map_err(|error| Failure::Engine(Box::new(error)))
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Regex({})", self.0.few.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Used, inline, within};
    use std::time::Duration;

    #[test]
    fn what_goes_back_often_is_no_work_for_a_worker() {
        // Which of them the engine sees through at once depends on the features that the workspace gives it.
        let patterns = [r"(a+)+\1$", r"^(a+)+\1c", r"^(?:(a|aa)+)+(?!a)\1c", r"^((a+)+)(?=b)\2(a+)+c"];
        let bad = format!("{}b", "a".repeat(60));
        let found = patterns.into_iter().find_map(|pattern| {
            let regex = Regex::new(pattern).unwrap();
            let (result, used) = inline(1_000_000, || regex.run(&bad, |engine| engine.is_match(&bad)));
            let gives_up = matches!(result, Err(Failure::Stopped(Stop::Long))) && used.stopped.is_some();
            gives_up.then_some(regex)
        });
        let regex = found.expect("one of them goes back often");
        let search = || regex.run(&bad, |engine| engine.is_match(&bad));
        let (result, used) = within(Duration::from_secs(60), None, search);
        assert!(matches!(result, Ok(false) | Err(Failure::Engine(_))) && used.stopped.is_none());
        // Short and long texts.
        let plain = Regex::new("b$").unwrap();
        let (result, used) = inline(1000, || plain.run(&bad, |engine| engine.is_match(&bad)));
        assert!(matches!((result, used), (Ok(true), Used { units: 2, stopped: None })));
        let long = "a".repeat(SHORT + 1);
        assert!(inline(1_000_000, || plain.run(&long, |engine| engine.is_match(&long))).0.is_err());
        assert!(plain.run(&long, |engine| engine.is_match(&long)).is_ok());
    }
}
