//! Small functions on text that several layers use.

pub mod url;

use std::sync::Arc;

/// A header value as text: UTF-8, else each byte a character (ISO-8859-1, RFC 9110 §5.5).
pub fn header_text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|&byte| byte as char).collect(),
    }
}

/// The last text of its kind (a host, a media type), which hardly differs from message to message: those that do not differ share it.
#[derive(Default)]
pub(crate) struct Recent(Option<Arc<str>>);

impl Recent {
    /// Nothing yet.
    pub(crate) const NONE: Recent = Recent(None);

    /// The bytes as a text; `None`: they are not UTF-8.
    pub(crate) fn text(&mut self, bytes: &[u8]) -> Option<Arc<str>> {
        /// What is longer is not kept, since each thread keeps one.
        const LONGEST: usize = 256;
        if let Some(last) = self.0.as_ref().filter(|last| last.as_bytes() == bytes) {
            return Some(Arc::clone(last));
        }
        let text = Arc::from(std::str::from_utf8(bytes).ok()?);
        if bytes.len() <= LONGEST {
            self.0 = Some(Arc::clone(&text));
        }
        Some(text)
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
    use super::{Recent, header_text};
    use std::sync::Arc;

    #[test]
    fn the_same_text_is_shared() {
        let mut recent = Recent::NONE;
        let long = "x".repeat(300);
        let mut text = |bytes: &[u8]| recent.text(bytes);
        let (first, again) = (text(b"text/xml"), text(b"text/xml"));
        assert!(first.as_ref().zip(again.as_ref()).is_some_and(|(one, two)| Arc::ptr_eq(one, two)));
        assert_eq!(text(b"\xff"), None);
        assert_eq!(text(b"").as_deref(), Some(""));
        assert_eq!(text(long.as_bytes()).as_deref(), Some(long.as_str()));
        assert_eq!(text(b"text/plain").as_deref(), Some("text/plain"));
    }

    #[test]
    fn header_bytes_that_are_not_utf8_are_latin_1() {
        assert_eq!(header_text(b"caf\xe9"), "café");
        assert_eq!(header_text("é".as_bytes()), "é");
    }
}
