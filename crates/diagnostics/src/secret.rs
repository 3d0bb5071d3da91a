//! Credentials in URLs and values of passwords, which no diagnostic and no log line shows.

use crate::nearest::differ_by_one;
use std::borrow::Cow;

/// The text with the user information of every URL in it (`http://user:password@host`) and the values of secrets in its query
/// (`?access_token=…`) replaced by as many `*` as they have bytes, so that offsets stay what they are.
pub fn without_credentials(text: &str) -> Cow<'_, str> {
    match without_users(text) {
        Cow::Borrowed(text) => without_query(text),
        Cow::Owned(text) => Cow::Owned(without_query(&text).into_owned()),
    }
}

/// The text with stars for the values of `?name=value&name=value` whose names are those of secrets.
fn without_query(text: &str) -> Cow<'_, str> {
    let mut shown = String::new();
    let mut copied = 0;
    for (at, _) in text.match_indices(['?', '&']) {
        // A question mark in a value that is masked already.
        if at < copied {
            continue;
        }
        let pair = &text[at + 1..];
        let ends = |c: char| c.is_whitespace() || c.is_control() || "&#\"'`<>\\".contains(c);
        let pair = &pair[..pair.find(ends).unwrap_or(pair.len())];
        let Some((name, value)) = pair.split_once('=') else { continue };
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.;".contains(c));
        // As XML has it, `&amp;name=value`.
        let bare = name.strip_prefix("amp;").unwrap_or(name);
        // A computed value is not a secret.
        if is_name && is_secret(bare) && !value.is_empty() && !value.starts_with(['{', '$']) {
            let start = at + 1 + name.len() + 1;
            shown.push_str(&text[copied..start]);
            shown.extend(std::iter::repeat_n('*', value.len()));
            copied = start + value.len();
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    shown.push_str(&text[copied..]);
    Cow::Owned(shown)
}

fn without_users(text: &str) -> Cow<'_, str> {
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
            shown.extend(std::iter::repeat_n('*', authority[..end].len()));
            copied = start + end;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    shown.push_str(&text[copied..]);
    Cow::Owned(shown)
}

/// Parts of names of secrets.
const PARTS: [&str; 12] = [
    "passw",
    "passphrase",
    "secret",
    "apikey",
    "credential",
    "privatekey",
    "accesskey",
    "accountkey",
    "authkey",
    "functionskey",
    "subscriptionkey",
    "sharedaccess",
];

/// Whether this is the name of a secret: a password, a client's key, a token. What a secret is called in a vault, its alias, is none.
pub fn is_secret(name: &str) -> bool {
    let name: String = name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    if name.ends_with("alias") {
        return false;
    }
    PARTS.iter().any(|part| name.contains(part))
        // Somebody who has misspelt the name is shown the line with the value.
        || differ_by_one(&name, "password")
        // The signature in an address that lets in whoever has it.
        || name == "sig"
        || name.ends_with("cookie")
        || name.ends_with("token")
        || name.ends_with("pwd")
        || name.ends_with("pass")
        || name.ends_with("authorization")
}

/// The prefixes of a text that may contain `<`.
const CDATA: &str = "<![CDATA[";

/// XML, or a text of settings, in which the values of secrets are replaced by `*`: the text of elements and the values of attributes
/// with such a name, and of properties and parameters with such a name. Byte offsets do not change.
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    let mut hidden: Vec<(usize, usize)> = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find('<').map(|at| at + from) {
        let end = start + tag_length(&text[start..]);
        from = end;
        let tag = &text[start..end];
        if !tag[1..].starts_with(|c: char| c.is_alphabetic() || c == '_') {
            continue;
        }
        let attributes = attributes(tag);
        let named =
            attributes.iter().any(|(name, value)| *name == "name" && is_secret(&tag[value.0..value.1]));
        for (name, value) in &attributes {
            // An expression is shown unless it begins with a literal: `'Basic …'`.
            let is_text = || tag[value.0..value.1].trim_start().starts_with(['\'', '"', '&']);
            if is_secret(name) || named && (*name == "value" || *name == "expression" && is_text()) {
                hidden.push((start + value.0, start + value.1));
            }
        }
        let element =
            tag[1..].split(|c: char| c.is_whitespace() || c == '/' || c == '>').next().unwrap_or_default();
        let local = element.rsplit(':').next().unwrap_or_default();
        if (is_secret(local) || named) && !tag.ends_with("/>") {
            let inside = &text[end..];
            let start = if inside.starts_with(CDATA) { CDATA.len() } else { 0 };
            let close = inside[start..].find(if start > 0 { "]]>" } else { "<" }).map(|at| at + start);
            hidden.push((end + start, end + close.unwrap_or(inside.len())));
            from = end + start;
        }
    }
    if !text.contains('<') {
        settings(text, &mut hidden);
    }
    if hidden.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut copied = 0;
    for (start, end) in hidden {
        if start < copied {
            continue;
        }
        shown.push_str(&text[copied..start]);
        for c in text[start..end].chars() {
            match c.is_whitespace() {
                true => shown.push(c),
                // One for each byte.
                false => shown.extend(std::iter::repeat_n('*', c.len_utf8())),
            }
        }
        copied = end;
    }
    shown.push_str(&text[copied..]);
    Cow::Owned(shown)
}

/// The length of the tag at the start of a text. `>` may stand in a value; where a quote is not closed, the next `<` ends it.
fn tag_length(text: &str) -> usize {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match (quote, byte) {
            (Some(open), byte) if open == byte => quote = None,
            (_, b'<') => return at,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'>') => return at + 1,
            (None, _) => {}
        }
    }
    text.len()
}

/// The attributes of a start tag: name, and range of the value.
fn attributes(tag: &str) -> Vec<(&str, (usize, usize))> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(equals) = tag[from..].find('=').map(|at| at + from) {
        let name = tag[..equals].trim_end();
        let name =
            name.rsplit(|c: char| c.is_whitespace() || c == '"' || c == '\'').next().unwrap_or_default();
        let behind = &tag[equals + 1..];
        let open = equals + 1 + (behind.len() - behind.trim_start().len());
        let Some(quote) = tag[open..].chars().next().filter(|c| matches!(c, '"' | '\'')) else {
            from = equals + 1;
            continue;
        };
        let close = tag[open + 1..].find(quote).map_or(tag.len(), |at| at + open + 1);
        found.push((name, (open + 1, close)));
        from = (close + 1).min(tag.len());
    }
    found
}

/// `name = value`, one per line.
fn settings(text: &str, hidden: &mut Vec<(usize, usize)>) {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if let Some((name, value)) = line.split_once('=')
            && is_secret(name)
        {
            hidden.push((start + line.len() - value.len(), start + line.len()));
        }
        start += line.len();
    }
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
            ("`amqp://é:a@b@h` and jdbc:x://u@h", "`amqp://******@h` and jdbc:x://*@h"),
            ("http://@h", "http://@h"),
            ("x://y://u@h", "x://y://*@h"),
            ("://", "://"),
            (
                "ht//h/a?x=1&access_token=a%20b&amp;apiKey=c d",
                "ht//h/a?x=1&access_token=*****&amp;apiKey=* d",
            ),
            ("/a?sv=1&amp;sig=ab&b=c ?sig=a&signal=b", "/a?sv=1&amp;sig=**&b=c ?sig=*&signal=b"),
            ("?token={x}&password=&a[token]=1 ?é=1", "?token={x}&password=&a[token]=1 ?é=1"),
            ("?secret=a?token=b&pwd=c ?pass=??pass==", "?secret=*********&pwd=* ?pass=********"),
            ("http://u@h?pwd=é&b=c", "http://*@h?pwd=**&b=c"),
        ] {
            assert_eq!(without_credentials(text), shown);
        }
    }

    #[test]
    fn values_of_secrets_are_hidden_and_nothing_else() {
        for (text, shown) in [
            ("<a>b</a>", "<a>b</a>"),
            (
                "<username>u</username><password> s3é\n</password>",
                "<username>u</username><password> ****\n</password>",
            ),
            ("<x:clientSecret>a</x:clientSecret>", "<x:clientSecret>*</x:clientSecret>"),
            (
                "<property name='db.Password' scope=\"x\" value='a b'/>",
                "<property name='db.Password' scope=\"x\" value='* *'/>",
            ),
            ("<property name='pasword'>abc</property>", "<property name='pasword'>***</property>"),
            ("<a passowrd='b' passive='c' keyword='d'/>", "<a passowrd='*' passive='c' keyword='d'/>"),
            ("<parameter name=\"api-key\">abc</parameter>", "<parameter name=\"api-key\">***</parameter>"),
            (
                "<header name='Authorization' value='Basic x'/>",
                "<header name='Authorization' value='***** *'/>",
            ),
            ("<header name='db.pass' expression=\"'ab'\"/>", "<header name='db.pass' expression=\"****\"/>"),
            (
                "<header name='Ocp-Apim-Subscription-Key' value='a'/><header name='Cookie' value='b'/>",
                "<header name='Ocp-Apim-Subscription-Key' value='*'/><header name='Cookie' value='*'/>",
            ),
            (
                "<header name='Authorization' expression='$ctx:a'/>",
                "<header name='Authorization' expression='$ctx:a'/>",
            ),
            ("<user password = \"a>b\" id='7'/>", "<user password = \"***\" id='7'/>"),
            ("<user password=\"a b><x/>", "<user password=\"* **<x/>"),
            ("<tokenUrl>http://x/</tokenUrl>", "<tokenUrl>http://x/</tokenUrl>"),
            (
                "<property name='url' svns:secretAlias='db.url'/>",
                "<property name='url' svns:secretAlias='db.url'/>",
            ),
            ("<refreshToken>abc", "<refreshToken>***"),
            ("<!-- <password>a</password> -->", "<!-- <password>*</password> -->"),
            ("keystore.password = \"abc\"\nname = 'x'\n", "keystore.password = *****\nname = 'x'\n"),
            ("<password><![CDATA[a<b>]]></password>", "<password><![CDATA[****]]></password>"),
            ("<password><![CDATA[a<b", "<password><![CDATA[***"),
            ("<", "<"),
            ("<password", "<password"),
        ] {
            let hidden = without_secrets(text);
            assert_eq!(hidden, shown);
            assert_eq!(hidden.len(), text.len());
        }
    }
}
