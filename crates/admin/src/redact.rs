//! Keeps secrets that configurations write into addresses out of answers.

use std::borrow::Cow;

/// Names of query parameters whose values are not shown, in lower case, as parts of the name.
const SECRET: [&str; 8] = ["password", "passwd", "pwd", "secret", "token", "apikey", "api_key", "credential"];

/// `text` with the credentials of URLs (`//user:password@`) and the values of secret query parameters as `***`.
pub(crate) fn redact(text: &str) -> Cow<'_, str> {
    if !text.contains(['@', '=']) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        rest = after;
        let end = rest.find(['/', '?', '#', ' ', '"', '\'', '`', '<', '>']).unwrap_or(rest.len());
        if let Some(credentials) = rest[..end].rfind('@') {
            out.push_str("***");
            rest = &rest[credentials..];
        }
    }
    out.push_str(rest);
    Cow::Owned(parameters(&out))
}

fn parameters(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('=') {
        let name = &rest[..at];
        let name = &name[name.rfind(['?', '&', ';', ' ']).map_or(0, |start| start + 1)..];
        let secret = {
            let name = name.to_ascii_lowercase();
            SECRET.iter().any(|part| name.contains(part))
        };
        out.push_str(&rest[..=at]);
        rest = &rest[at + 1..];
        if secret {
            out.push_str("***");
            rest = &rest[rest.find(['&', ';', ' ', '"', '\'', '`', '<', '>']).unwrap_or(rest.len())..];
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        for (text, expected) in [
            ("http://host:9000/a?b=c", "http://host:9000/a?b=c"),
            ("StockEndpoint", "StockEndpoint"),
            ("address http://joe:s3cret@host/a", "address http://***@host/a"),
            ("http://joe:p@ss@host", "http://***@host"),
            ("http://host/a@b", "http://host/a@b"),
            (
                "jms:/Q?java.naming.security.credentials=x&transport.jms.Password=y&a=b",
                "jms:/Q?java.naming.security.credentials=***&transport.jms.Password=***&a=b",
            ),
            ("`https://u@h/?api_key=k` is no address", "`https://***@h/?api_key=***` is no address"),
        ] {
            assert_eq!(redact(text), expected, "{text}");
        }
    }
}
