//! Regular expressions as Synapse uses them: Java's dialect, matching the whole value.

use std::fmt;

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

/// Rewrites what Java writes differently: `\Q…\E`, `\h`, `\R`, `\Z`, `\uXXXX`, `\p{javaLowerCase}`, `\p{Alpha}` ….
pub fn translate(java: &str) -> String {
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
            'h' => out.push_str(r"[ \t\u{A0}\u{1680}\u{180e}\u{2000}-\u{200a}\u{202f}\u{205f}\u{3000}]"),
            'R' => out.push_str(r"(?:\r\n|[\n\x0B\x0C\r\u{85}\u{2028}\u{2029}])"),
            'Z' => out.push_str(r"(?=\n?\z)"),
            'u' if tail.len() >= 4
                && tail.is_char_boundary(4)
                && tail[..4].bytes().all(|b| b.is_ascii_hexdigit()) =>
            {
                out.push_str(&format!("\\u{{{}}}", &tail[..4]));
                rest = &tail[4..];
                continue;
            }
            'p' | 'P' if tail.starts_with('{') => {
                let end = tail.find('}').unwrap_or(tail.len() - 1);
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
