//! Java properties files: `name=value` lines.

use std::collections::HashMap;

/// The properties of a text: `name=value`, `name: value` or `name value`; `#` and `!` begin comments, a backslash at the
/// end of a line goes on with the next one and elsewhere takes what follows as it is (`\n`, `\t` and `\uXXXX` as in Java).
/// If a name stands twice, the last value counts.
pub fn properties(text: &str) -> HashMap<String, String> {
    let mut properties = HashMap::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let mut line = line.trim_start().to_owned();
        if line.starts_with(['#', '!']) {
            continue;
        }
        while continues(&line) {
            line.pop();
            line.push_str(lines.next().unwrap_or("").trim_start());
        }
        let (name, value) = split(&line);
        let name = unescaped(name);
        if !name.is_empty() {
            properties.insert(name, unescaped(value.trim_end()));
        }
    }
    properties
}

/// The text of properties, sorted by their names.
pub(crate) fn written(properties: &HashMap<String, String>) -> String {
    let mut names: Vec<&String> = properties.keys().collect();
    names.sort();
    names.iter().map(|name| format!("{}={}\n", escaped(name), escaped(&properties[*name]))).collect()
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{C}' => out.push_str("\\f"),
            '\\' | '=' | ':' | '#' | '!' | ' ' => out.extend(['\\', letter]),
            _ => out.push(letter),
        }
    }
    out
}

/// Whether a line ends in a backslash that no other backslash escapes.
fn continues(line: &str) -> bool {
    line.bytes().rev().take_while(|&byte| byte == b'\\').count() % 2 == 1
}

/// Name and value: at the first `=` or `:`, or white space, that is not escaped.
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = line.find(|c: char| {
        let ends = !escaped && (matches!(c, '=' | ':') || c.is_whitespace());
        escaped = c == '\\' && !escaped;
        ends
    });
    let (name, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = rest.trim_start();
    (name, rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start())
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(letter) = rest.chars().next() else { break };
        rest = &rest[letter.len_utf8()..];
        match letter {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'f' => out.push('\u{C}'),
            'u' => {
                let digits = rest.get(..4).and_then(|digits| u32::from_str_radix(digits, 16).ok());
                out.push(digits.and_then(char::from_u32).unwrap_or('\u{FFFD}'));
                rest = rest.get(4..).unwrap_or("");
            }
            other => out.push(other),
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_names_and_values() {
        for (text, name, value) in [
            ("a=b", "a", Some("b")),
            ("  a = b c  ", "a", Some("b c")),
            ("a:b=c", "a", Some("b=c")),
            ("a b", "a", Some("b")),
            ("a", "a", Some("")),
            ("# a=b\n! a=c", "a", None),
            ("a=1\na=2", "a", Some("2")),
            (r"a\=b\ c=d", "a=b c", Some("d")),
            ("a=b\\\n   c", "a", Some("bc")),
            ("a=b\\\\\nc=d", "a", Some("b\\")),
            ("a=\\", "a", Some("")),
            (r"a=C:\\x\ty\u00e9", "a", Some("C:\\x\tyé")),
            (r"a=\uZZ", "a", Some("\u{FFFD}")),
            ("=x", "", None),
            ("", "a", None),
        ] {
            assert_eq!(properties(text).get(name).map(String::as_str), value, "{text}");
        }
    }
}
