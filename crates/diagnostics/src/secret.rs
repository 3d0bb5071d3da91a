//! Credentials in URLs, which no diagnostic and no log line shows.

use std::borrow::Cow;

/// The text with the user information of every URL in it (`http://user:password@host`) replaced by as many `*`, so that
/// columns stay where they are.
pub fn without_credentials(text: &str) -> Cow<'_, str> {
    let mut shown = String::new();
    let mut copied = 0;
    for (at, mark) in text.match_indices("://") {
        let start = at + mark.len();
        let ends = |c: char| c.is_whitespace() || c.is_control() || "/?#\"'`<>\\".contains(c);
        let authority = &text[start..];
        let authority = &authority[..authority.find(ends).unwrap_or(authority.len())];
        if let Some(end) = authority.rfind('@')
            && start >= copied
        {
            shown.push_str(&text[copied..start]);
            shown.extend(std::iter::repeat_n('*', authority[..end].chars().count()));
            copied = start + end;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    shown.push_str(&text[copied..]);
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_information_is_hidden_and_nothing_else() {
        for (text, shown) in [
            ("", ""),
            ("a@b http://host/a@b?c://d", "a@b http://host/a@b?c://d"),
            ("http://u:p@h/", "http://***@h/"),
            ("<address uri=\"https://u:p%40@h:1\"/>", "<address uri=\"https://******@h:1\"/>"),
            ("`amqp://é:a@b@h` and jdbc:x://u@h", "`amqp://*****@h` and jdbc:x://*@h"),
            ("http://@h", "http://@h"),
            ("x://y://u@h", "x://y://*@h"),
            ("://", "://"),
        ] {
            assert_eq!(without_credentials(text), shown);
        }
    }
}
