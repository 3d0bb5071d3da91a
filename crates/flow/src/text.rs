//! Small functions on text that several layers use.

/// A header value as text: UTF-8, else each byte a character (ISO-8859-1, RFC 9110 §5.5).
pub fn header_text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|&byte| byte as char).collect(),
    }
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A literal in quotes and what follows.
pub(crate) fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    text[1..].split_once(quote)
}

#[cfg(test)]
mod tests {
    use super::header_text;

    #[test]
    fn header_bytes_that_are_not_utf8_are_latin_1() {
        assert_eq!(header_text(b"caf\xe9"), "café");
        assert_eq!(header_text("é".as_bytes()), "é");
    }
}
