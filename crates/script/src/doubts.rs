//! What a script says that its author hardly meant: it runs, and does nothing or something else.

use crate::tokens::{Token, TokenKind, tokens};

/// One such place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Doubt {
    /// Where it stands in the text, in bytes.
    pub at: usize,
    pub message: String,
    pub help: &'static str,
}

/// Methods of texts that JavaScript has too: their first argument is a regular expression in Java, and a text here.
const METHODS: &[&str] = &["split", "replace", "replaceAll"];

/// Names whose objects have Java's methods of texts.
const JAVA_TEXTS: &[&str] = &["lang", "StringBuilder", "StringBuffer", "StringUtils"];

/// Looks through a script. `inline`: it runs as a whole, and nobody calls its functions.
pub(crate) fn doubts(text: &str, inline: bool) -> Vec<Doubt> {
    let tokens = tokens(text);
    let word = |at: usize| tokens.get(at).map_or("", |token| &text[token.at.clone()]);
    let is_word = |token: &Token| token.kind == TokenKind::Word;
    let mut found = Vec::new();
    let is_java = tokens.iter().enumerate().any(|(at, token)| match token.kind {
        TokenKind::Word => JAVA_TEXTS.contains(&word(at)),
        TokenKind::Literal => word(at).contains("java.lang.String"),
        _ => false,
    });
    for (at, token) in tokens.iter().enumerate() {
        if inline && word(at) == "function" && word(at + 2) == "(" && word(at + 3) == "mc" {
            let name = word(at + 1);
            let uses = tokens.iter().filter(|token| is_word(token) && &text[token.at.clone()] == name);
            if uses.count() == 1 {
                found.push(Doubt {
                    at: token.at.start,
                    message: format!("nothing calls the function `{name}`"),
                    help: "an inline script runs from its first line to its last: call the function at its end",
                });
            }
        }
        let is_call = at > 0 && word(at - 1) == "." && word(at + 1) == "(";
        if is_call && !is_java && METHODS.contains(&word(at)) && is_pattern(word(at + 2)) {
            let (method, argument) = (word(at), word(at + 2));
            found.push(Doubt {
                at: tokens[at + 2].at.start,
                message: format!(
                    "`{method}({argument})` looks for a backslash: in JavaScript this is a text, and no regular expression"
                ),
                help: "write it between slashes (`/\\./g`), or as the plain text",
            });
        }
    }
    found
}

/// Whether a literal is a text with an escape of regular expressions: `"\\."`.
fn is_pattern(literal: &str) -> bool {
    let inner = literal.strip_prefix(['"', '\'']).unwrap_or("");
    let escaped = inner.split("\\\\").skip(1);
    escaped.filter_map(|behind| behind.chars().next()).any(|next| ".|dDsSwWbB()[]{}*+?^$".contains(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_nobody_calls_and_patterns_that_are_texts_are_found() {
        for (text, inline, expected) in [
            (
                "var B = 1;\nfunction mediate(mc) { mc.setProperty('a', 1); }",
                true,
                vec!["nothing calls the function `mediate`"],
            ),
            ("function mediate(mc) {}", false, vec![]),
            ("function mediate(mc) {} mediate(mc);", true, vec![]),
            ("function twice(x) { return 2 * x; } var f = {function: 1};", true, vec![]),
            (r#"a.split("\\.").length"#, true, vec![r#"`split("\\.")` looks for a backslash"#]),
            (r"b.replaceAll('\\s+', '')", false, vec![r"`replaceAll('\\s+')` looks"]),
            (
                r#"a.split("."); a.split(/\./); a.replace("\\", "/"); a.indexOf("\\."); split("\\.")"#,
                true,
                vec![],
            ),
            (r#"new java.lang.String(a).split("\\.")"#, true, vec![]),
            ("function", true, vec![]),
            ("a.split(", true, vec![]),
        ] {
            let found = doubts(text, inline);
            assert_eq!(found.len(), expected.len(), "{text}: {found:?}");
            for (doubt, part) in found.iter().zip(expected) {
                assert!(doubt.message.starts_with(part), "{text}: {doubt:?}");
            }
        }
    }
}
