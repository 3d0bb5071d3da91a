//! Regular expressions of Java's dialect, for the engine that runs them here.

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
    fn what_java_writes_differently_is_rewritten() {
        for (java, wanted) in [
            (r"\Qa.b\Ec", r"a\.bc"),
            (r"\u0041", r"\u{0041}"),
            (r"\p{Upper}", r"\p{Lu}"),
            (r"\d\.", r"\d\."),
            ("\\", "\\"),
        ] {
            assert_eq!(translate(java), wanted);
        }
    }
}
