//! Regular expressions of Java's dialect: those of mediators, `json-eval`, `${…}` and settings.
//!
//! Rewritten ([`translate`]) for the engine that runs them here. Those of XPath and of XML Schema are other languages, with
//! homes of their own.

mod plain;

use self::plain::Plain;
use meter::Stop;
use meter::regex::{Failure, Regex};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A compiled regular expression that has to match a whole value.
#[derive(Clone)]
pub struct Pattern {
    source: Arc<str>,
    whole: Regex,
    /// Answers for the engine whether a value matches.
    plain: Option<Arc<Plain>>,
}

impl fmt::Debug for Pattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Pattern({})", self.source)
    }
}

impl Pattern {
    /// Compiles a pattern of Java's dialect.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn compile(source: &str) -> Result<Pattern, String> {
        Pattern::with_flags(source, "")
    }

    /// As [`Pattern::compile`], with flags of Java (`i m s x U`; `d u` change nothing here).
    ///
    /// # Errors
    /// As [`Pattern::compile`], or a flag that Java does not have.
    pub fn with_flags(source: &str, flags: &str) -> Result<Pattern, String> {
        let mut inline = String::new();
        for flag in flags.chars() {
            match flag {
                'i' | 'm' | 's' | 'x' if !inline.contains(flag) => inline.push(flag),
                'i' | 'm' | 's' | 'x' | 'd' | 'u' | 'U' => {}
                other => return Err(format!("unknown flag {other} of a regular expression")),
            }
        }
        // The line end lets a comment of the flag x end before the bracket.
        let end = if inline.contains('x') { "\n" } else { "" };
        let source_here = rewritten(source, flags.contains('U'));
        let whole = build(&format!(r"\A(?:(?{inline}:{source_here}{end}))\z"))?;
        let plain = if inline.is_empty() { Plain::of(&source_here).map(Arc::new) } else { None };
        Ok(Pattern { source: source.into(), whole, plain })
    }

    /// The pattern as written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// How many groups it has.
    pub fn groups(&self) -> usize {
        self.whole.engine().captures_len().saturating_sub(1)
    }

    /// Whether the whole value matches; a match that goes back too often counts as none.
    ///
    /// # Errors
    /// The run has to end before this is decided.
    pub fn matches(&self, value: &str) -> Result<bool, Stop> {
        match &self.plain {
            Some(plain) => meter::spend_bytes(value.len()).map(|()| plain.is(value)),
            None => decided(self.whole.is_match(value)),
        }
    }

    /// The text of a group of a whole match: empty if the value does not match or the pattern has no such group, `None` if the group
    /// took no part in the match.
    ///
    /// # Errors
    /// As [`Pattern::matches`].
    pub fn group<'v>(&self, value: &'v str, group: usize) -> Result<Option<&'v str>, Stop> {
        let captures = decided(self.whole.captures(value))?;
        Ok(match captures {
            Some(captures) if group < captures.len() => captures.get(group).map(|matched| matched.as_str()),
            _ => Some(""),
        })
    }
}

/// A regular expression of Java's dialect that looks for its match anywhere in a value.
#[derive(Clone)]
pub struct Search(Regex);

impl Search {
    /// Compiles a pattern of Java's dialect.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn compile(source: &str) -> Result<Search, String> {
        build(&translate(source)).map(Search)
    }

    /// Whether it matches somewhere; a search that goes back too often finds nothing.
    ///
    /// # Errors
    /// The run has to end before this is decided.
    pub fn is_match(&self, value: &str) -> Result<bool, Stop> {
        decided(self.0.is_match(value))
    }

    /// The matches, from left to right.
    ///
    /// # Errors
    /// The search takes too long.
    pub fn matches(&self, value: &str) -> Result<Vec<Range<usize>>, String> {
        let mut matches = Vec::new();
        let found: Result<(), Failure> = self.0.for_each(value, |captures| {
            matches.extend(captures.get(0).map(|whole| whole.range()));
            Ok(true)
        });
        found.map_err(|why| why.to_string())?;
        Ok(matches)
    }

    /// The matches with their groups, from left to right; the first group is the match itself, `None` one that took no part in it.
    ///
    /// # Errors
    /// The search takes too long.
    pub fn captures(&self, value: &str) -> Result<Vec<Vec<Option<Range<usize>>>>, String> {
        let mut matches = Vec::new();
        let found: Result<(), Failure> = self.0.for_each(value, |captures| {
            matches.push((0..captures.len()).map(|group| Some(captures.get(group)?.range())).collect());
            Ok(true)
        });
        found.map_err(|why| why.to_string())?;
        Ok(matches)
    }

    /// The names of the groups, by their numbers.
    pub fn names(&self) -> impl Iterator<Item = Option<&str>> {
        self.0.engine().capture_names()
    }

    /// Replaces each match, as Java's `replaceAll` does: `$1` and `${name}` stand for groups, a backslash takes the
    /// next character as it is.
    ///
    /// # Errors
    /// The replacement names a group that the pattern does not have, or the search takes too long.
    pub fn replace_all(&self, value: &str, replacement: &str) -> Result<String, String> {
        self.replace(value, replacement, true)
    }

    /// Replaces the first match, as [`Search::replace_all`] does all.
    ///
    /// # Errors
    /// As [`Search::replace_all`].
    pub fn replace_first(&self, value: &str, replacement: &str) -> Result<String, String> {
        self.replace(value, replacement, false)
    }

    fn replace(&self, value: &str, replacement: &str, all: bool) -> Result<String, String> {
        /// Why nothing was replaced.
        struct Wrong(String);
        impl From<Failure> for Wrong {
            fn from(why: Failure) -> Wrong {
                Wrong(why.to_string())
            }
        }
        let mut out = String::with_capacity(value.len());
        let mut end = 0;
        let replaced: Result<(), Wrong> = self.0.for_each(value, |captures| {
            let Some(whole) = captures.get(0) else { return Ok(true) };
            out.push_str(&value[end..whole.start()]);
            let before = out.len();
            self.expand(replacement, &captures, &mut out).map_err(Wrong)?;
            end = whole.end();
            meter::spend_bytes(out.len() - before).map_err(Failure::from)?;
            Ok(all)
        });
        replaced.map_err(|Wrong(why)| why)?;
        out.push_str(&value[end..]);
        Ok(out)
    }

    fn expand(
        &self,
        replacement: &str,
        captures: &fancy_regex::Captures<'_, str>,
        out: &mut String,
    ) -> Result<(), String> {
        let mut rest = replacement;
        while let Some(at) = rest.find(['$', '\\']) {
            out.push_str(&rest[..at]);
            let special = rest.as_bytes()[at];
            rest = &rest[at + 1..];
            if special == b'\\' {
                let next = rest.chars().next().ok_or("the replacement ends in a backslash")?;
                out.push(next);
                rest = &rest[next.len_utf8()..];
                continue;
            }
            let found = if let Some(inner) = rest.strip_prefix('{') {
                let (name, behind) = inner.split_once('}').ok_or("a `${` in the replacement has no `}`")?;
                rest = behind;
                let is_group = self.0.engine().capture_names().flatten().any(|group| group == name);
                if !is_group {
                    return Err(format!("the pattern has no group named `{name}`"));
                }
                captures.name(name)
            } else {
                let groups = self.0.engine().captures_len();
                let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                // As many digits as still name a group.
                let number = |length: usize| rest[..length].parse::<usize>().ok().filter(|&n| n < groups);
                let length = (1..=digits).rev().find(|&length| number(length).is_some());
                let Some(length) = length else {
                    return Err(format!("the pattern has no group `${}`", &rest[..digits.min(1)]));
                };
                let group = number(length).and_then(|number| captures.get(number));
                rest = &rest[length..];
                group
            };
            out.push_str(found.map_or("", |group| group.as_str()));
            // One match may make as much as all of them.
            meter::string_of(out.len())?;
        }
        out.push_str(rest);
        meter::string_of(out.len())
    }
}

impl fmt::Debug for Search {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Search({})", self.0.engine().as_str())
    }
}

/// What an engine that gives up counts as nothing; that the run was stopped is no answer.
pub(crate) fn decided<T: Default>(result: Result<T, Failure>) -> Result<T, Stop> {
    match result {
        Ok(found) => Ok(found),
        Err(Failure::Stopped(stop)) => Err(stop),
        Err(Failure::Engine(_)) => Ok(T::default()),
    }
}

/// Compiles a translated pattern, with a bound on backtracking.
pub(crate) fn build(pattern: &str) -> Result<Regex, String> {
    Regex::new(pattern).map_err(|error| without_position(&error.to_string()))
}

/// What an engine says of a pattern, without where: it counts what the pattern was rewritten to.
fn without_position(why: &str) -> String {
    let why = why.rsplit_once("error: ").map_or(why, |(_, why)| why);
    let why = match why.strip_prefix("Parsing error at position ").and_then(|rest| rest.split_once(": ")) {
        Some((_, why)) => why,
        None => why,
    };
    why.trim().replace('\n', " ")
}

/// Rewrites what Java writes differently or means otherwise: `\w`, `\d` and `\s`, which are of ASCII, `\Q…\E`, `\h`, `\R`, `\Z`,
/// `\uXXXX`, `\p{javaLowerCase}`, `\p{Alpha}` ….
pub fn translate(java: &str) -> String {
    rewritten(java, false)
}

/// `unicode`: the flag `U`, by which `\w`, `\d` and `\s` are of Unicode.
fn rewritten(java: &str, unicode: bool) -> String {
    let mut out = String::with_capacity(java.len());
    let mut rest = java;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(letter) = rest.chars().next() else {
            out.push('\\');
            break;
        };
        let tail = &rest[letter.len_utf8()..];
        match letter {
            'Q' => {
                let end = tail.find("\\E").unwrap_or(tail.len());
                out.push_str(&fancy_regex::escape(&tail[..end]));
                rest = tail.get(end + 2..).unwrap_or("");
                continue;
            }
            'w' if !unicode => out.push_str("[a-zA-Z0-9_]"),
            'W' if !unicode => out.push_str("[^a-zA-Z0-9_]"),
            'd' if !unicode => out.push_str("[0-9]"),
            'D' if !unicode => out.push_str("[^0-9]"),
            's' if !unicode => out.push_str(r"[\x20\t\n\x0B\x0C\r]"),
            'S' if !unicode => out.push_str(r"[^\x20\t\n\x0B\x0C\r]"),
            'h' => out.push_str(r"[ \t\u{A0}\u{1680}\u{180e}\u{2000}-\u{200a}\u{202f}\u{205f}\u{3000}]"),
            'R' => out.push_str(r"(?:\r\n|[\n\x0B\x0C\r\u{85}\u{2028}\u{2029}])"),
            'Z' => out.push_str(r"(?=\n?\z)"),
            'v' => out.push_str(r"[\n\x0B\x0C\r\u{85}\u{2028}\u{2029}]"),
            // Octal: one to three digits, up to \0377.
            '0' if tail.starts_with(|c: char| matches!(c, '0'..='7')) => {
                let most = if tail.starts_with(|c: char| c <= '3') { 3 } else { 2 };
                let digits = tail.bytes().take(most).take_while(|b| matches!(b, b'0'..=b'7')).count();
                let code = u32::from_str_radix(&tail[..digits], 8).unwrap_or(0);
                out.push_str(&format!("\\x{{{code:x}}}"));
                rest = &tail[digits..];
                continue;
            }
            'u' if tail.len() >= 4
                && tail.is_char_boundary(4)
                && tail[..4].bytes().all(|b| b.is_ascii_hexdigit()) =>
            {
                out.push_str(&format!("\\u{{{}}}", &tail[..4]));
                rest = &tail[4..];
                continue;
            }
            // One without an end is left to the engine, which says what is wrong with it.
            'p' | 'P' if tail.starts_with('{') && tail.contains('}') => {
                let end = tail.find('}').unwrap_or(1);
                let name = match &tail[1..end] {
                    "javaLowerCase" | "Lower" => "Ll",
                    "javaUpperCase" | "Upper" => "Lu",
                    "javaWhitespace" | "Space" => "White_Space",
                    "Alpha" | "IsAlphabetic" => "Alphabetic",
                    "Digit" | "IsDigit" => "Nd",
                    "Punct" | "IsPunctuation" => "P",
                    other => other.strip_prefix("Is").unwrap_or(other),
                };
                if name == "Alnum" {
                    out.push_str(if letter == 'p' { "[A-Za-z0-9]" } else { "[^A-Za-z0-9]" });
                } else {
                    out.push_str(&format!("\\{letter}{{{name}}}"));
                }
                rest = tail.get(end + 1..).unwrap_or("");
                continue;
            }
            other => {
                out.push('\\');
                out.push(other);
            }
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_nothing_of_what_was_rewritten() {
        for (pattern, why) in [
            ("[a-z", "Invalid character class"),
            ("(ab", "Opening parenthesis without closing parenthesis"),
            ("*a", "Target of repeat operator is invalid"),
        ] {
            let told = Pattern::compile(pattern).map(|_| ()).unwrap_err();
            assert_eq!(told, why, "{pattern}");
            assert_eq!(Search::compile(pattern).map(|_| ()).unwrap_err(), why, "{pattern}");
        }
    }

    /// What replacements make is bounded, over all matches and within one.
    #[test]
    fn replacements_do_not_fill_the_memory() {
        let large = "a".repeat(300_000);
        let replacement = "$1".repeat(1000);
        for pattern in ["(a{1000})", "(a+)"] {
            let why = Search::compile(pattern).unwrap().replace_all(&large, &replacement).unwrap_err();
            assert!(why.contains("bytes would be made"), "{pattern}: {why}");
        }
    }

    #[test]
    fn the_whole_value_has_to_match() {
        for (pattern, value, matches) in [
            ("A|B", "A", true),
            ("A|B", "AB", false),
            ("a.*", "abc", true),
            ("a.*", "ab\nc", false),
            ("(?i)ibm", "IBM", true),
            ("", "", true),
            (r"\Qa.b\E\d", "a.b1", true),
            (r"\Qa.b\E\d", "axb1", false),
            (r"(\w+)-\1", "x-x", true),
            (r"[a-z&&[^x]]+", "abc", true),
            (r"\w\W\d\D\s\S", "a.1é\tx", true),
            (r"\w", "é", false),
            (r"\d", "٣", false),
            (r"\s", "\u{A0}", false),
            (r"[\w.-]+@[^\s\d]+", "a.b-c@é", true),
            (r"[^\w]+", "é!", true),
            (r"(?x) \s [\s] ", " \t", true),
            (r"\p{Upper}\p{Alpha}*\u0041", "IbmA", true),
            (r"http://localhost:9000.*", "http://localhost:9000/x", true),
            ("a|ab", "ab", true),
            ("", "x", false),
        ] {
            let found = Pattern::compile(pattern).unwrap().matches(value);
            assert_eq!(found, Ok(matches), "{pattern} on {value}");
        }
        assert!(Pattern::compile("(").is_err());
        for (pattern, flags, value, matches) in [
            ("IBM", "i", "ibm", true),
            ("a.b", "", "a\nb", false),
            ("a.b", "su", "a\nb", true),
            ("a b # c", "x", "ab", true),
            ("^b$", "m", "b", true),
            (r"\w\s", "U", "é\u{A0}", true),
        ] {
            let found = Pattern::with_flags(pattern, flags).unwrap().matches(value);
            assert_eq!(found, Ok(matches), "{pattern}");
        }
        assert!(Pattern::with_flags("a", "q").is_err());
        let goes_back = Pattern::compile(r"(a+)+\1$").unwrap();
        assert_eq!(goes_back.matches(&"a".repeat(60).replace("aaaaa", "aaaab")), Ok(false));
    }

    #[test]
    fn a_search_that_is_stopped_has_not_failed_to_match() {
        let long = "a".repeat(20_000);
        let (pattern, search) = (Pattern::compile("(a*)").unwrap(), Search::compile("a").unwrap());
        let (found, _) = meter::inline(1, || {
            (
                pattern.matches(&long).is_err(),
                pattern.group(&long, 1).is_err(),
                search.is_match(&long).is_err(),
            )
        });
        assert_eq!(found, (true, true, true));
        assert_eq!(pattern.group(&long, 1), Ok(Some(&*long)));
    }

    #[test]
    fn a_class_without_an_end_is_an_error() {
        for pattern in [r"\p{", r"\P{é", r"a\p{L", r"\p", r"\"] {
            assert!(Pattern::compile(pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn groups_are_those_of_the_whole_match() {
        let pattern = Pattern::compile(r"(\d{4})-.*").unwrap();
        assert_eq!(pattern.group("2024-01-02", 1), Ok(Some("2024")));
        assert_eq!(pattern.group("2024-01-02", 0), Ok(Some("2024-01-02")));
        assert_eq!(pattern.group("x", 1), Ok(Some("")));
        assert_eq!(pattern.group("2024-01-02", 2), Ok(Some("")));
        assert_eq!(Pattern::compile("(a)?b").unwrap().group("b", 1), Ok(None));
    }

    #[test]
    fn matches_anywhere_are_replaced() {
        for (pattern, value, replacement, out) in [
            ("a", "banana", "o", Ok("bonono")),
            ("/([a-z]+)/([0-9]+)", "/x/1/y/2", "/$2/$1", Ok("/1/x/2/y")),
            ("(?<k>b)", "abc", "<${k}>", Ok("a<b>c")),
            ("(b)", "abc", "$12", Ok("ab2c")),
            ("b", "abc", "\\$1\\\\", Ok("a$1\\c")),
            ("x*", "ab", "-", Ok("-a-b-")),
            ("(x)|b", "b", "[$1]", Ok("[]")),
            ("b", "abc", "$1", Err("no group `$1`")),
            ("b", "abc", "$", Err("no group")),
            ("b", "abc", "${k}", Err("no group named `k`")),
            ("b", "abc", "${k", Err("has no `}`")),
            ("b", "abc", "\\", Err("ends in a backslash")),
            ("x", "abc", "$9", Ok("abc")),
            // As in Java, an empty match can stand right behind another one.
            ("a*", "abac", "x", Ok("xxbxxcx")),
            (".*", "abc", "x", Ok("xx")),
            (r"\v", "a\u{2028}b\nc", "-", Ok("a-b-c")),
            (r"\041\07", "!\u{7}", "-", Ok("-")),
        ] {
            let made = Search::compile(pattern).unwrap().replace_all(value, replacement);
            match out {
                Ok(text) => assert_eq!(made.as_deref(), Ok(text), "{pattern}"),
                Err(why) => assert!(made.as_ref().is_err_and(|message| message.contains(why)), "{made:?}"),
            }
        }
        assert!(Search::compile("(").is_err());
        let first = Search::compile("([a-z])1").unwrap().replace_first("a1b1", "$1-");
        assert_eq!(first.as_deref(), Ok("a-b1"));
    }

    #[test]
    fn what_java_writes_differently_is_rewritten() {
        for (java, wanted) in [
            (r"\Qa.b\Ec", r"a\.bc"),
            (r"\u0041", r"\u{0041}"),
            (r"\p{Upper}", r"\p{Lu}"),
            (r"\d\.", r"[0-9]\."),
            ("\\", "\\"),
        ] {
            assert_eq!(translate(java), wanted);
        }
    }
}
