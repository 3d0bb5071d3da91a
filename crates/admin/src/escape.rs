//! Text from outside in log lines: one event stays one line, and no character steers a terminal.

/// Appends `text` with everything but printable ASCII as `\xhh`, and quotes and backslashes escaped: what Apache's
/// access log does.
pub(crate) fn ascii(text: &str, out: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b' '..=b'~' => out.push(byte as char),
            _ => {
                const DIGITS: &[u8; 16] = b"0123456789abcdef";
                out.push_str("\\x");
                out.push(DIGITS[usize::from(byte >> 4)] as char);
                out.push(DIGITS[usize::from(byte & 15)] as char);
            }
        }
    }
}

/// Appends `text` with control and direction-changing characters escaped; all other characters stay.
pub(crate) fn controls(text: &str, out: &mut String) {
    // Most lines have nothing else, which is seen 32 bytes at a time.
    fn printable(chunk: &[u8]) -> bool {
        chunk.iter().fold(true, |is_plain, &byte| is_plain & matches!(byte, b' '..=b'~'))
    }
    let (blocks, tail) = text.as_bytes().as_chunks::<32>();
    let plain = 32 * blocks.iter().take_while(|block| printable(&block[..])).count();
    if plain == 32 * blocks.len() && printable(tail) {
        out.push_str(text);
        return;
    }
    let (plain, rest) = text.split_at(plain);
    out.push_str(plain);
    for letter in rest.chars() {
        match letter {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if is_control(letter) => out.extend(letter.escape_unicode()),
            _ => out.push(letter),
        }
    }
}

/// Appends a field value: as it is where nobody can misread that, else in quotes.
pub(crate) fn value(text: &str, out: &mut String) {
    let plain = |letter: char| !letter.is_whitespace() && !is_control(letter) && letter != '"';
    // Most values are of these, which is seen without decoding.
    let simple =
        text.bytes().fold(true, |is_plain, byte| is_plain & (byte > b' ' && byte < 0x7f && byte != b'"'));
    if !text.is_empty() && (simple || text.chars().all(plain)) {
        out.push_str(text);
        return;
    }
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.find(['"', '\\']) {
        controls(&rest[..at], out);
        out.push('\\');
        out.push_str(&rest[at..at + 1]);
        rest = &rest[at + 1..];
    }
    controls(rest, out);
    out.push('"');
}

fn is_control(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_breaks_a_line() {
        type Way = fn(&str, &mut String);
        let cases: [(Way, &str, &str); 10] = [
            (ascii, "plain text", "plain text"),
            (ascii, "a\"b\\c\r\n\t", r#"a\"b\\c\r\n\t"#),
            (ascii, "\x1b[2Jé\x7f\0", r"\x1b[2J\xc3\xa9\x7f\x00"),
            (controls, "two\nlines \u{1b}[0m é", r"two\nlines \u{1b}[0m é"),
            (controls, "\u{202e}gpj.exe", r"\u{202e}gpj.exe"),
            (value, "a.xml:12:7", "a.xml:12:7"),
            (value, r"C:\esb", r"C:\esb"),
            (value, "", r#""""#),
            (value, r#"he said "no" \ yes"#, r#""he said \"no\" \\ yes""#),
            (value, "a\u{85}b", r#""a\u{85}b""#),
        ];
        for (way, text, expected) in cases {
            let mut out = String::new();
            way(text, &mut out);
            assert_eq!(out, expected, "{text:?}");
        }
    }
}
