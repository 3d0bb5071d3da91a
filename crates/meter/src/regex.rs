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

/// The same for a pattern that goes back: it may read the text from each place, and only going back is counted.
const SHORT_BACK: usize = 1 << 10;

/// The longest pattern, in bytes. The engine takes some hundred times as much memory while it compiles one.
const LONGEST: usize = 128 << 10;

/// The largest [weight](Size::weight) of a pattern: some ten megabytes.
const HEAVIEST: u64 = 200_000;

/// The largest weight of a pattern that a worker compiles for a message: some milliseconds.
const LIGHT: u64 = 4_000;

/// The most memory of one automaton, in bytes. A pattern that goes back has several.
const AUTOMATON: usize = 10 << 20;

/// The most instructions of a pattern that goes back.
const INSTRUCTIONS: usize = 100_000;

/// The most [idle](Size::idle) steps of a pattern.
const IDLEST: u64 = 100_000;

/// With so many idle steps, the bounds on going back are as above. With more they are smaller.
const IDLE: u64 = 100;

/// The longest time in which a worker looks for all matches: each of them may go back often.
const SHORT_TIME: Duration = Duration::from_millis(2);

/// At most so many places of a text are searched with the large bound.
const LONG_PLACES: usize = 16;

/// Matches between two looks at the clock.
const STRIDE: usize = 16;

/// A compiled regular expression; copies share it.
#[derive(Clone)]
pub struct Regex(Arc<Engines>);

struct Engines {
    few: fancy_regex::Regex,
    many: OnceLock<fancy_regex::Regex>,
    size: Size,
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
    /// Compiles a pattern. A run that has units only leaves a heavy one to a run that has time, and is told by an error here.
    ///
    /// # Errors
    /// It is not a regular expression, or is [refused](refusal).
    pub fn new(pattern: &str) -> Result<Regex, Box<Error>> {
        let refused =
            |why: String| Box::new(Error::CompileError(Box::new(CompileError::FeatureNotYetSupported(why))));
        let size = examined(pattern).map_err(|why| refused(why.to_owned()))?;
        if size.weight > LIGHT {
            not_inline().map_err(|stop| refused(stop.to_string()))?;
        }
        let few = engine(pattern, size.bound(FEW)).map_err(Box::new)?;
        Ok(Regex(Arc::new(Engines { few, many: OnceLock::new(), size })))
    }

    /// Whether the pattern takes little memory (some hundred kilobytes at most): others are not worth being kept.
    pub fn is_light(&self) -> bool {
        self.0.size.weight <= LIGHT
    }

    /// Whether a text is searched place by place, so that a deadline and a cancellation hold between them.
    fn steps(&self, text: &str) -> bool {
        self.0.size.hard && !self.0.size.continues && text.len() > SHORT_BACK
    }

    /// Leaves a text that is too long for a worker to a run that has time.
    fn fits(&self, text: &str) -> Result<(), Stop> {
        match text.len() > if self.0.size.hard { SHORT_BACK } else { SHORT } {
            true => not_inline(),
            false => Ok(()),
        }
    }

    /// The engine, for what does not search.
    pub fn engine(&self) -> &fancy_regex::Regex {
        &self.0.few
    }

    /// Whether there is a match in a text.
    ///
    /// # Errors
    /// It takes too long.
    pub fn is_match(&self, text: &str) -> Result<bool, Failure> {
        let found = self.first(text, 0, |engine, input| {
            engine.is_match_input(input).map(|is_match| is_match.then_some(()))
        });
        Ok(found?.is_some())
    }

    /// The first match in a text.
    ///
    /// # Errors
    /// It takes too long.
    pub fn captures<'t>(&self, text: &'t str) -> Result<Option<Captures<'t, str>>, Failure> {
        self.first(text, 0, |engine, input| engine.captures_input(input))
    }

    /// Searches a text from a position on: `search` is called with an engine, and anew with another one where that gives up.
    fn first<'r, 't, T>(
        &'r self,
        text: &'t str,
        from: usize,
        search: impl Fn(&'r fancy_regex::Regex, RegexInput<'t, str>) -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Failure> {
        self.fits(text)?;
        spend(1 + ((text.len() - from) as u64 >> 5))?;
        let failed = |error: Error| Failure::Engine(Box::new(error));
        let (steps, far) = (self.steps(text), self.0.size.far);
        let input = || RegexInput::new(text).from_pos(from);
        if !(steps && far) {
            match search(&self.0.few, input()) {
                Err(error) if gives_up(&error) => {}
                result => return result.map_err(failed),
            }
        }
        if !steps {
            return search(self.many()?, input()).map_err(failed);
        }
        not_inline()?;
        let mut long = 0;
        let rest = text[from..].char_indices().map(|(at, _)| from + at).chain([text.len()]);
        for (count, at) in rest.enumerate() {
            if count % STRIDE == 0 || far {
                check()?;
            }
            let here = || RegexInput::new(text).from_pos(at).anchored(true);
            let mut found = search(&self.0.few, here());
            if found.as_ref().is_err_and(gives_up) && long < LONG_PLACES && !(far && text.len() > SHORT) {
                long += 1;
                found = search(self.many()?, here());
            }
            if let Some(found) = found.map_err(failed)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Finds all matches of a text, from left to right, and hands each to `each` until that says no. An empty match can stand
    /// right behind another one, as in Java and in XPath 3.1. Each is counted by its distance from the one before, so a deadline and a cancellation hold between them.
    ///
    /// # Errors
    /// It takes too long, or `each` fails.
    pub fn for_each<'t, E: From<Failure>>(
        &self,
        text: &'t str,
        mut each: impl FnMut(Captures<'t, str>) -> Result<bool, E>,
    ) -> Result<(), E> {
        let stopped = |stop: Stop| E::from(Failure::Stopped(stop));
        self.fits(text).map_err(stopped)?;
        let (began, inline, mut exact) = (Instant::now(), is_inline(), false);
        let steps = self.steps(text);
        // Where the search goes on, and where it has come to.
        let (mut next, mut done) = (0, 0);
        for count in 1.. {
            if next > text.len() {
                break;
            }
            let found = if steps {
                self.first(text, next, |engine, input| engine.captures_input(input))?
            } else {
                let engine = if exact { self.many()? } else { &self.0.few };
                match engine.captures_input(RegexInput::new(text).from_pos(next)) {
                    Err(error) if !exact && gives_up(&error) => {
                        exact = true;
                        continue;
                    }
                    Err(error) => return Err(Failure::Engine(Box::new(error)).into()),
                    Ok(found) => found,
                }
            };
            let range = found.as_ref().and_then(|captures| captures.get(0)).map(|whole| whole.range());
            if let Some(range) = &range {
                // Behind an empty match the search goes on with the next character.
                let step = text[range.end..].chars().next().map_or(1, char::len_utf8);
                next = if range.is_empty() { range.end + step } else { range.end };
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
                let made = engine(self.0.few.as_str(), self.0.size.bound(MANY));
                let made = made.map_err(|error| Failure::Engine(Box::new(error)))?;
                Ok(self.0.many.get_or_init(|| made))
            }
        }
    }
}

fn engine(pattern: &str, backtracks: usize) -> Result<fancy_regex::Regex, Error> {
    RegexBuilder::new(pattern)
        .backtrack_limit(backtracks)
        .delegate_size_limit(AUTOMATON)
        .max_prog_size(INSTRUCTIONS)
        .build()
}

/// Whether an engine has gone back as often as it may.
fn gives_up(error: &Error) -> bool {
    matches!(error, Error::RuntimeError(RuntimeError::BacktrackLimitExceeded))
}

/// Why a pattern is refused, if it is: for others that have it compiled. What is no regular expression is not refused here.
///
/// The engine has syntax that none of the languages here has (Java, XPath, ECMAScript): subroutines, conditions, absent operators, verbs,
/// `\K`. It does not bear all of it: for `\g` with twenty digits it allocates that much memory, which ends the process; a condition on a
/// group that is not there is a panic in the first search. And it has a bound on the memory of one automaton, but none on their
/// number, none on those of a look behind, and none on repetitions of what matches nothing: `()\1{4000000000}` would never end, because
/// only going back is counted.
pub fn refusal(pattern: &str) -> Option<&'static str> {
    examined(pattern).err()
}

/// The size of a pattern, or why it is refused. What the parser refuses has none: the engine says what is wrong with it.
fn examined(pattern: &str) -> Result<Size, &'static str> {
    if pattern.len() > LONGEST {
        return Err("it is longer than 128 KiB");
    }
    let Ok(tree) = Expr::parse_tree(pattern) else { return Ok(Size::default()) };
    match Size::of(&tree.expr) {
        Size { weight, .. } if weight > HEAVIEST => {
            Err("it has more repetitions and classes than fit in memory")
        }
        Size { idle, .. } if idle > IDLEST => Err("it has too many repetitions of what may match nothing"),
        size => foreign(&tree.expr).map_or(Ok(size), Err),
    }
}

/// What an expression has of the engine's syntax that no language here has.
fn foreign(expression: &Expr) -> Option<&'static str> {
    let mut pending = vec![expression];
    while let Some(expression) = pending.pop() {
        match expression {
            Expr::SubroutineCall(_) => {
                return Some(
                    "it has a call of a group as a subroutine, as neither Java nor XPath nor ECMAScript has",
                );
            }
            Expr::DefineGroup { .. } | Expr::Conditional { .. } | Expr::BackrefExistsCondition { .. } => {
                return Some("it has a condition, as neither Java nor XPath nor ECMAScript has");
            }
            Expr::BackrefWithRelativeRecursionLevel { .. } => {
                return Some("it has a level of recursion, as neither Java nor XPath nor ECMAScript has");
            }
            Expr::BacktrackingControlVerb(_) => {
                return Some("it has a verb of backtracking, as neither Java nor XPath nor ECMAScript has");
            }
            Expr::Absent(_) => {
                return Some("it has an absent operator, as neither Java nor XPath nor ECMAScript has");
            }
            Expr::KeepOut => return Some("it has \\K, as neither Java nor XPath nor ECMAScript has"),
            _ => pending.extend(expression.children_iter()),
        }
    }
    None
}

/// What the engine makes of a pattern, before it does.
#[derive(Clone, Copy, Default)]
struct Size {
    /// About as many hundred bytes.
    weight: u64,
    /// The most steps that it takes without reading on in the text.
    idle: u64,
    /// It may match nothing.
    empty: bool,
    /// It needs going back: repetitions are loops then, otherwise copies.
    hard: bool,
    /// It reads on without an end, and may do so each time that it goes back: in what is repeated, looked for or never given back.
    far: bool,
    /// It reads on without an end.
    endless: bool,
    /// It goes on where the match before ended.
    continues: bool,
}

impl Size {
    /// Depth is bounded by the parser.
    fn of(expression: &Expr) -> Size {
        let leaf = |weight: usize| Size { weight: weight as u64, idle: 1, ..Size::default() };
        match expression {
            Expr::Literal { val, casei } => leaf(val.len() * if *casei { 4 } else { 1 }),
            Expr::LiteralBytes { bytes } => leaf(bytes.len()),
            Expr::Any { .. } => leaf(16),
            // Of Unicode: hundreds of ranges.
            Expr::Delegate { inner, .. } => {
                let escapes = inner.split('\\').skip(1);
                let large = escapes.filter(|rest| rest.starts_with(['w', 'W', 'd', 'D', 's', 'S', 'p', 'P']));
                leaf(16 + inner.len() + 300 * large.count())
            }
            Expr::GeneralNewline { .. } => Size { hard: true, ..leaf(4) },
            Expr::Empty | Expr::Assertion(_) => Size { empty: true, ..leaf(1) },
            Expr::Repeat { child, lo, hi, .. } => {
                let child = Size::of(child);
                let times = if *hi == usize::MAX { (*lo).max(1) } else { *hi } as u64;
                Size {
                    weight: if child.hard {
                        child.weight + 1
                    } else {
                        child.weight.saturating_mul(times.max(1))
                    },
                    idle: if child.empty { child.idle.saturating_mul(times.max(1)) } else { child.idle },
                    empty: child.empty || *lo == 0,
                    far: child.far || child.endless && child.hard,
                    endless: child.endless || *hi == usize::MAX,
                    ..child
                }
            }
            Expr::Alt(_) | Expr::Concat(_) | Expr::Group(_) => {
                let all = matches!(expression, Expr::Concat(_));
                let first = Size { weight: 1, idle: 1, empty: all, ..Size::default() };
                expression.children_iter().map(Size::of).fold(first, |sum, child| Size {
                    empty: if all { sum.empty && child.empty } else { sum.empty || child.empty },
                    ..sum.with(child)
                })
            }
            // A reference, a look around, an atomic group, the end of the match before.
            other => {
                let continues = matches!(other, Expr::ContinueFromPreviousMatchEnd);
                let first =
                    Size { weight: 1, idle: 1, empty: true, hard: true, continues, ..Size::default() };
                let all = other.children_iter().map(Size::of).fold(first, Size::with);
                Size { far: all.far || all.endless, endless: false, ..all }
            }
        }
    }

    /// That of an expression with one more part; whether it may match nothing does not change.
    fn with(self, part: Size) -> Size {
        Size {
            weight: self.weight.saturating_add(part.weight),
            idle: self.idle.saturating_add(part.idle),
            empty: self.empty,
            hard: self.hard || part.hard,
            far: self.far || part.far,
            endless: self.endless || part.endless,
            continues: self.continues || part.continues,
        }
    }

    /// A bound on going back, for a pattern that does so much between two of them.
    fn bound(&self, backtracks: usize) -> usize {
        (backtracks as u64 * IDLE / self.idle.max(IDLE)).max(1) as usize
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

    /// The first ended the process when they were compiled, those without an end when a text was searched, the others took
    /// gigabytes.
    #[test]
    fn what_takes_memory_or_time_out_of_proportion_is_refused() {
        let automata = |one: &str| (0..1000).map(|n| format!(r"(?:\1|b*{one}x{n})")).collect::<String>();
        for pattern in [
            r"(a)(?<=\1{1,100000000})b".into(),
            "(?<=(a){1,100000000})b".into(),
            "(?<!a{0,1000000})b".into(),
            r"()\1{4000000000}b".into(),
            r"(|a)\1{4000000000,}b".into(),
            r"(?:()\1{10000}){10000}b".into(),
            "(?:(?>a*)){4000000000}b".into(),
            r"(a)(?:(?>b*)\1{0}){4000000000}c".into(),
            format!("(a){}", automata(r"\w{40}")),
            r"(?:\w{1000}){1000}".into(),
            r"(?:(?:a{1000}){1000}){1000}".into(),
            "a".repeat(1_000_000),
        ] {
            let short: String = pattern.chars().take(40).collect();
            assert!(Regex::new(&pattern).is_err(), "{short}");
        }
        for pattern in [
            r"\w{1,100}".into(),
            r"(\w+)(?:,\1){0,100000}".into(),
            r"(?<=a{1,1000})b".into(),
            r"(?<=\d{1,20})(x)".into(),
            r"^(?=.*\d)(?=.*[a-z])(?=.*[A-Z]).{8,64}$".into(),
            format!("(a){}", automata("")),
            format!("(?:{})", (0..10_000).map(|n| format!("x{n}|")).collect::<String>()),
        ] {
            let short: String = pattern.chars().take(40).collect();
            assert!(Regex::new(&pattern).is_ok(), "{short}");
        }
        // What is heavy is no work for a worker.
        let heavy = || Regex::new(r"\w{60}").map(|regex| regex.is_light());
        assert!(matches!(inline(1_000_000, heavy), (Err(_), Used { stopped: Some(Stop::Long), .. })));
        assert!(matches!(heavy(), Ok(false)));
        // Steps between two goings back make these fewer.
        let idle = Regex::new(r"()\1{50000}b").unwrap();
        let text = "a".repeat(1000);
        assert!(matches!(idle.is_match(&text), Ok(false) | Err(Failure::Engine(_))));
    }

    /// The matches that a search from the end of each finds, one character on behind an empty one.
    #[test]
    fn all_matches_are_found_one_after_the_other() {
        for pattern in
            ["a", "a*", "", "b|", r"\b", "(?=a)", "(a)(b)?", r"(\w)\1", "$", "é?", r"\Ga", "(?<=a)b*"]
        {
            let regex = Regex::new(pattern).unwrap();
            for text in ["", "a", "aabb", "baab", "éaéé", "ab ab\nab", "aaa b"] {
                let mut expected = Vec::new();
                let mut next = 0;
                while next <= text.len()
                    && let Some(captures) =
                        regex.engine().captures_input(RegexInput::new(text).from_pos(next)).unwrap()
                {
                    let range = captures.get(0).unwrap().range();
                    let step = text[range.end..].chars().next().map_or(1, char::len_utf8);
                    next = range.end + if range.is_empty() { step } else { 0 };
                    expected.push(range);
                }
                let mut found = Vec::new();
                let result: Result<(), Failure> = regex.for_each(text, |captures| {
                    found.push(captures.get(0).unwrap().range());
                    Ok(true)
                });
                assert!(result.is_ok());
                assert_eq!(found, expected, "{pattern} in {text:?}");
            }
        }
        // As in Java, an empty match can stand right behind another one.
        let mut found = Vec::new();
        let result: Result<(), Failure> = Regex::new("a*").unwrap().for_each("aab", |captures| {
            found.push(captures.get(0).unwrap().range());
            Ok(true)
        });
        assert!(result.is_ok());
        assert_eq!(found, [0..2, 2..2, 3..3]);
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
            let (result, used) = inline(1_000_000, || regex.is_match(&bad));
            let gives_up = matches!(result, Err(Failure::Stopped(Stop::Long))) && used.stopped.is_some();
            gives_up.then_some(regex)
        });
        let regex = found.expect("one of them goes back often");
        let search = || regex.is_match(&bad);
        let (result, used) = within(Duration::from_secs(60), None, search);
        assert!(matches!(result, Ok(false) | Err(Failure::Engine(_))) && used.stopped.is_none());
        // Short and long texts, which are shorter for a pattern that goes back.
        let possessive = Regex::new("a++b").unwrap();
        let text = "a".repeat(SHORT_BACK + 1);
        assert!(inline(1_000_000, || possessive.is_match(&text)).0.is_err());
        assert!(possessive.is_match(&text).is_ok());
        let plain = Regex::new("b$").unwrap();
        let (result, used) = inline(1000, || plain.is_match(&bad));
        assert!(matches!((result, used), (Ok(true), Used { units: 2, stopped: None })));
        let long = "a".repeat(SHORT + 1);
        assert!(inline(1_000_000, || plain.is_match(&long)).0.is_err());
        assert!(plain.is_match(&long).is_ok());
    }
}
