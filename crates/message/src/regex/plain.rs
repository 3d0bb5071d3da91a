//! Patterns that are no more than texts, as most patterns of flows are: `IBM`, `gold|silver`, `.*community.*`. A value is
//! compared with them, without an engine. The answers are those of the engine.

use fancy_regex::Expr;
use memchr::memmem::Finder;
use std::slice;

/// With more alternatives an engine is faster.
const MOST: usize = 16;

/// Texts of which one has to be the whole value.
pub(super) struct Plain(Box<[Text]>);

struct Text {
    text: Finder<'static>,
    /// The pattern has `.*` before it.
    before: bool,
    /// The pattern has `.*` behind it.
    behind: bool,
}

impl Plain {
    /// Reads a pattern of the engine; `None`: it is more than texts.
    pub(super) fn of(pattern: &str) -> Option<Plain> {
        let tree = Expr::parse_tree(pattern).ok()?;
        let mut expression = &tree.expr;
        while let Expr::Group(inside) = expression {
            expression = inside;
        }
        let alternatives = match expression {
            Expr::Alt(alternatives) => alternatives.as_slice(),
            one => slice::from_ref(one),
        };
        if alternatives.len() > MOST {
            return None;
        }
        alternatives.iter().map(Text::of).collect::<Option<_>>().map(Plain)
    }

    /// Whether the whole value matches.
    pub(super) fn is(&self, value: &str) -> bool {
        self.0.iter().any(|text| text.is(value.as_bytes()))
    }
}

impl Text {
    fn of(expression: &Expr) -> Option<Text> {
        let mut parts = match expression {
            Expr::Concat(parts) => parts.as_slice(),
            Expr::Empty => &[],
            one => slice::from_ref(one),
        };
        let mut before = false;
        if let [first, rest @ ..] = parts
            && is_line_of_any(first)
        {
            (before, parts) = (true, rest);
        }
        let mut behind = false;
        if let [rest @ .., last] = parts
            && is_line_of_any(last)
        {
            (behind, parts) = (true, rest);
        }
        let mut text = String::new();
        for part in parts {
            match part {
                Expr::Literal { val, casei: false } => text.push_str(val),
                _ => return None,
            }
        }
        // Where it stands among several lines would have to be found out.
        let is_among_lines = before && behind && text.contains('\n');
        let text = Finder::new(text.as_bytes()).into_owned();
        (!is_among_lines).then_some(Text { text, before, behind })
    }

    fn is(&self, value: &[u8]) -> bool {
        let text = self.text.needle();
        match (self.before, self.behind) {
            (false, false) => value == text,
            (true, false) => value.strip_suffix(text).is_some_and(is_one_line),
            (false, true) => value.strip_prefix(text).is_some_and(is_one_line),
            (true, true) => is_one_line(value) && self.text.find(value).is_some(),
        }
    }
}

/// Whether an expression is `.*`, which goes up to the end of its line.
fn is_line_of_any(expression: &Expr) -> bool {
    let Expr::Repeat { child, lo: 0, hi: usize::MAX, .. } = expression else { return false };
    matches!(**child, Expr::Any { newline: false, crlf: false })
}

fn is_one_line(text: &[u8]) -> bool {
    memchr::memchr(b'\n', text).is_none()
}

#[cfg(test)]
mod tests {
    use crate::regex::Pattern;

    /// With and without the comparison the answers are the same.
    #[test]
    fn answers_are_those_of_the_engine() {
        let many = (0..17).map(|number| number.to_string()).collect::<Vec<_>>().join("|");
        for (pattern, is_plain) in [
            ("", true),
            ("IBM", true),
            ("é", true),
            (r"community#1\.0##", true),
            (r"\Qa.b\E", true),
            ("gold|silver", true),
            ("(gold|silver)", true),
            ("(?:gold|)", true),
            (".*", true),
            (".*?", true),
            (".*community.*", true),
            (".*community", true),
            ("community.*", true),
            ("a.*|.*b", true),
            ("a\nb", true),
            ("a\n.*", true),
            (".*a\nb.*", false),
            (".+", false),
            ("(?i)ibm", false),
            ("(?s).*", false),
            ("(?s)a.*", false),
            ("a.b", false),
            ("a*", false),
            ("^a$", false),
            (r"\d", false),
            ("(a)b", false),
            ("a.*b", false),
            (&many, false),
        ] {
            let compared = Pattern::compile(pattern).unwrap();
            assert_eq!(compared.plain.is_some(), is_plain, "{pattern}");
            let searched = Pattern { plain: None, ..compared.clone() };
            for value in [
                "",
                "IBM",
                "ibm",
                "é",
                "è",
                "éé",
                "community#1.0##",
                "community#1x0##",
                "a.b",
                "axb",
                "gold",
                "golden",
                "silver",
                "a community of many",
                "community",
                "commune\ncommunity",
                "community\n",
                "\ncommunity",
                "a\nb",
                "a\n",
                "a\nbc",
                "xa\nb",
                "\n",
                "\r\n",
                "a",
                "b",
                "ab",
                "16",
                "17",
            ] {
                assert_eq!(compared.matches(value), searched.matches(value), "{pattern} on {value:?}");
            }
        }
    }

    #[test]
    fn a_flag_may_mean_more_than_texts() {
        assert!(Pattern::with_flags("ibm", "i").unwrap().plain.is_none());
        assert!(Pattern::with_flags("ibm", "").unwrap().plain.is_some());
    }

    /// A run that has to end is told so here too.
    #[test]
    fn comparing_counts() {
        let (pattern, long) = (Pattern::compile(".*a.*").unwrap(), "b".repeat(1 << 20));
        let (result, _) = meter::inline(1, || pattern.matches(&long));
        assert!(result.is_err());
        assert_eq!(pattern.matches(&long), Ok(false));
    }
}
