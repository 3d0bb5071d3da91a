//! Regular expressions as Synapse uses them: Java's dialect, matching the whole value.

use std::fmt;

pub use message::regex::translate;

/// How many steps a backtracking match may take before it counts as failed.
const BACKTRACK_LIMIT: usize = 1_000_000;

/// A compiled regular expression.
pub struct Pattern {
    source: String,
    whole: fancy_regex::Regex,
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
        let whole = build(&format!("^(?:{})\\z", translate(source)))?;
        Ok(Pattern { source: source.to_owned(), whole })
    }

    /// The pattern as written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether the whole value matches; a match that takes too long counts as none.
    pub fn matches(&self, value: &str) -> bool {
        self.whole.is_match(value).unwrap_or(false)
    }

    /// The text of a group of a whole match; `None` if the value does not match or has no such group.
    pub fn group<'v>(&self, value: &'v str, group: usize) -> Option<&'v str> {
        let captures = self.whole.captures(value).ok().flatten()?;
        captures.get(group).map(|matched| matched.as_str())
    }
}

fn build(pattern: &str) -> Result<fancy_regex::Regex, String> {
    fancy_regex::RegexBuilder::new(pattern)
        .backtrack_limit(BACKTRACK_LIMIT)
        .build()
        .map_err(|error| error.to_string().replace('\n', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            (r"\p{Upper}\p{Alpha}*\u0041", "IbmA", true),
            (r"http://localhost:9000.*", "http://localhost:9000/x", true),
        ] {
            assert_eq!(Pattern::compile(pattern).unwrap().matches(value), matches, "{pattern} on {value}");
        }
        assert!(Pattern::compile("(").is_err());
        assert!(!Pattern::compile(r"(a+)+\1$").unwrap().matches(&"a".repeat(60).replace("aaaaa", "aaaab")));
    }

    #[test]
    fn groups_are_those_of_the_whole_match() {
        let pattern = Pattern::compile(r"(\d{4})-.*").unwrap();
        assert_eq!(pattern.group("2024-01-02", 1), Some("2024"));
        assert_eq!(pattern.group("2024-01-02", 0), Some("2024-01-02"));
        assert_eq!(pattern.group("x", 1), None);
    }
}
