//! Regular expressions that count.
//!
//! The engine cannot be broken off within a match; what it has is a bound on backtracking. So there are two engines of each
//! pattern: one with a small bound, which is all that a run on a worker gets, and one with the large bound, made when it is
//! first needed.

use crate::{Stop, check, is_inline, not_inline, spend};
use fancy_regex::{Captures, CompileError, Error, Expr, RegexBuilder, RegexInput, RuntimeError};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How often a match may go back: about a millisecond.
const FEW: usize = 20_000;

/// The same where it disturbs nobody.
const MANY: usize = 1_000_000;

/// The longest text that is searched on a worker, in bytes.
const SHORT: usize = 16 << 10;

/// The longest time in which a worker looks for all matches: each of them may go back often.
const SHORT_TIME: Duration = Duration::from_millis(2);

/// Matches between two looks at the clock.
const STRIDE: usize = 16;

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
    /// It is not a regular expression, or has [syntax of the engine](foreign_syntax).
    pub fn new(pattern: &str) -> Result<Regex, Box<Error>> {
        if let Some(what) = foreign_syntax(pattern) {
            let why = CompileError::FeatureNotYetSupported(what.to_owned());
            return Err(Box::new(Error::CompileError(Box::new(why))));
        }
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
        search(self.many()?).map_err(|error| Failure::Engine(Box::new(error)))
    }

    /// Finds all matches of a text, from left to right, and hands each to `each` until that says no. Each is counted by its
    /// distance from the one before, so a deadline and a cancellation hold between them.
    ///
    /// # Errors
    /// It takes too long, or `each` fails.
    pub fn for_each<'t, E: From<Failure>>(
        &self,
        text: &'t str,
        mut each: impl FnMut(Captures<'t, str>) -> Result<bool, E>,
    ) -> Result<(), E> {
        let stopped = |stop: Stop| E::from(Failure::Stopped(stop));
        if text.len() > SHORT {
            not_inline().map_err(stopped)?;
        }
        let (began, inline, mut exact) = (Instant::now(), is_inline(), false);
        let mut captures = self.0.few.captures_iter(text);
        // Where the search has come to.
        let (mut done, mut again) = (0, None);
        for count in 1.. {
            let found = match captures.next() {
                Some(Err(Error::RuntimeError(RuntimeError::BacktrackLimitExceeded))) if !exact => {
                    exact = true;
                    // Nothing is found there once more.
                    again = (count > 1).then_some(done);
                    captures = self.many()?.captures_iter_input(RegexInput::new(text).from_pos(done));
                    continue;
                }
                Some(Err(error)) => return Err(Failure::Engine(Box::new(error)).into()),
                Some(Ok(captures)) => Some(captures),
                None => None,
            };
            let range = found.as_ref().and_then(|captures| captures.get(0)).map(|whole| whole.range());
            if let Some(range) = &range
                && again.take() == Some(range.end)
            {
                continue;
            }
            let end = range.map_or(text.len(), |range| range.end);
            spend(1 + (end.saturating_sub(done) as u64 >> 5)).map_err(stopped)?;
            done = end;
            if count % STRIDE == 0 {
                match inline {
                    true if began.elapsed() > SHORT_TIME => not_inline().map_err(stopped)?,
                    true => {}
                    false => check().map_err(stopped)?,
                }
            }
            let Some(captures) = found else { break };
            if !each(captures)? {
                break;
            }
        }
        Ok(())
    }

    /// The engine with the large bound, for a run that disturbs nobody and has used up the small one.
    fn many(&self) -> Result<&fancy_regex::Regex, Failure> {
        not_inline()?;
        spend(FEW as u64)?;
        match self.0.many.get() {
            Some(many) => Ok(many),
            None => {
                let made = RegexBuilder::new(self.0.few.as_str()).backtrack_limit(MANY).build();
                let made = made.map_err(|error| Failure::Engine(Box::new(error)))?;
                Ok(self.0.many.get_or_init(|| made))
            }
        }
    }
}

/// What a pattern has of the engine's syntax that none of the languages here has (Java, XPath, ECMAScript), if anything:
/// subroutines, conditions, absent operators, verbs, `\K`. It is refused there, too, and the engine does not bear all of it:
/// for `\g` with twenty digits it allocates that much memory, which ends the process; a condition on a group that is not
/// there is a panic in the first search. What is no regular expression has nothing.
pub fn foreign_syntax(pattern: &str) -> Option<&'static str> {
    const SIGNS: [&str; 5] = ["(?", "(*", "\\g", "\\k", "\\K"];
    // Each begins with one of these; other patterns are not parsed twice.
    if !SIGNS.iter().any(|sign| pattern.contains(sign)) {
        return None;
    }
    let tree = Expr::parse_tree(pattern).ok()?;
    let mut pending = vec![&tree.expr];
    while let Some(expression) = pending.pop() {
        match expression {
            Expr::SubroutineCall(_) => return Some("a call of a group as a subroutine"),
            Expr::DefineGroup { .. } | Expr::Conditional { .. } | Expr::BackrefExistsCondition { .. } => {
                return Some("a condition");
            }
            Expr::BackrefWithRelativeRecursionLevel { .. } => return Some("a level of recursion"),
            Expr::BacktrackingControlVerb(_) => return Some("a verb of backtracking"),
            Expr::Absent(_) => return Some("an absent operator"),
            Expr::KeepOut => return Some("\\K"),
            _ => pending.extend(expression.children_iter()),
        }
    }
    None
}

impl fmt::Debug for Regex {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Regex({})", self.0.few.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cancel, Used, inline, within};

    /// The first three ended the process when they were compiled, the condition when a text was searched.
    #[test]
    fn syntax_of_the_engine_alone_is_refused() {
        let many = "6".repeat(17);
        for pattern in [
            format!(r"a\g2{many}"),
            format!(r"a\g<2{many}>"),
            format!("(?2{many})"),
            format!("(a)(?({many})b|c)"),
            format!(r"(a)\g<-{many}>"),
            format!(r"(a)\{many}"),
            format!(r"(a)\k<{many}>"),
            r"(a)\g1".into(),
            r"(?<n>a)\g<n>".into(),
            "(?R)?a".into(),
            "(?<n>a)(?&n)".into(),
            "(?P<n>a)(?P>n)".into(),
            "(?(DEFINE)(?<n>a))a".into(),
            "(?<n>a)(?(<n>)b)".into(),
            "(?(?=a)a|b)".into(),
            "(?~ab)".into(),
            "a(*FAIL)".into(),
            r"a\Kb".into(),
        ] {
            assert!(Regex::new(&pattern).is_err(), "{pattern}");
        }
        for pattern in
            [r"\\g26666666", "(?i)a", r"(?:a)\\K", r"(?<n>a)\k<n>", r"(a)\1", "(?>a|b)(?=c)(?<!d)", "[(?(1)]"]
        {
            assert!(Regex::new(pattern).is_ok(), "{pattern}");
        }
    }

    /// The same matches as the engine's own iteration finds.
    #[test]
    fn all_matches_are_found_one_after_the_other() {
        for pattern in
            ["a", "a*", "", "b|", r"\b", "(?=a)", "(a)(b)?", r"(\w)\1", "$", "é?", r"\Ga", "(?<=a)b*"]
        {
            let regex = Regex::new(pattern).unwrap();
            for text in ["", "a", "aabb", "baab", "éaéé", "ab ab\nab", "aaa b"] {
                let expected: Vec<_> = regex
                    .engine()
                    .captures_iter(text)
                    .map(|captures| captures.unwrap().get(0).unwrap().range())
                    .collect();
                let mut found = Vec::new();
                let result: Result<(), Failure> = regex.for_each(text, |captures| {
                    found.push(captures.get(0).unwrap().range());
                    Ok(true)
                });
                assert!(result.is_ok());
                assert_eq!(found, expected, "{pattern} in {text:?}");
            }
        }
        let mut count = 0;
        let first: Result<(), Failure> = Regex::new("a").unwrap().for_each("aaa", |_| {
            count += 1;
            Ok(false)
        });
        assert!(first.is_ok() && count == 1);
    }

    #[test]
    fn a_deadline_and_a_cancellation_hold_between_matches() {
        let regex = Regex::new("a").unwrap();
        let text = "ab".repeat(5_000_000);
        let search = |cancel: Option<&Cancel>, time: Duration| {
            let mut count = 0_usize;
            let (result, used) = within(time, cancel, || {
                regex.for_each(&text, |_| {
                    count += 1;
                    if let (1000, Some(cancel)) = (count, cancel) {
                        cancel.cancel();
                    }
                    Ok::<bool, Failure>(true)
                })
            });
            assert!(matches!(result, Err(Failure::Stopped(_))), "{result:?}");
            (used.stopped, count)
        };
        let cancel = Cancel::default();
        let (stopped, count) = search(Some(&cancel), Duration::from_secs(1000));
        assert!(stopped == Some(Stop::Cancelled) && count < 1100, "{count}");
        let (stopped, count) = search(None, Duration::from_millis(5));
        assert!(matches!(stopped, Some(Stop::Late(_))) && count < 5_000_000, "{count}");
        // On a worker it is counted, too.
        let short = "ab".repeat(8000);
        let (result, used) = inline(1000, || regex.for_each(&short, |_| Ok::<bool, Failure>(true)));
        assert!(result.is_err() && used.stopped == Some(Stop::Long));
    }

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
