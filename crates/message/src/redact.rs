//! Keeps secrets out of what people are shown of messages: logs, traces, dumps.
//!
//! A name decides: that of a header, a property, an element, an attribute, a member of an object, a parameter. What it holds is
//! shown as `***`. Text is looked at as text, so that half a document is redacted as well as a whole one.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};
use zeroize::Zeroizing;

/// Parts of names whose values are not shown, in lower case and without `-` and `_`.
const SECRET: [&str; 18] = [
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "apikey",
    "authorization",
    "credential",
    "cookie",
    "privatekey",
    "accesskey",
    "accountkey",
    "authkey",
    "functionskey",
    "subscriptionkey",
    "sharedaccess",
    "sessionid",
];

/// The signature in an address that lets in whoever has it (shared access signatures of Azure).
const SIGNATURE: &str = "sig";

/// What stands in the place of a secret.
pub const HIDDEN: &str = "***";

/// Whether what is called so is not shown.
pub fn is_secret(name: &str) -> bool {
    let is_sign = |byte: &u8| matches!(byte, b'-' | b'_');
    let begins_with = |name: &[u8], part: &str| {
        let mut letters = name.iter().filter(|byte| !is_sign(byte)).map(u8::to_ascii_lowercase);
        part.bytes().all(|letter| letters.next() == Some(letter))
    };
    let name = name.as_bytes();
    name.eq_ignore_ascii_case(SIGNATURE.as_bytes())
        || (0..name.len())
            .filter(|&at| !is_sign(&name[at]))
            .any(|at| SECRET.iter().any(|part| begins_with(&name[at..], part)))
}

/// Secrets that were looked up, wherever they are put then.
static KNOWN: RwLock<Vec<(u64, Zeroizing<String>)>> = RwLock::new(Vec::new());
static ANY: AtomicBool = AtomicBool::new(false);
/// Most secrets that are kept, and the shortest: a shorter one would be a part of other words.
const MOST: usize = 1000;
const SHORTEST: usize = 6;

/// Hides a secret wherever it is shown from now on, whatever the name of the value that holds it. Short secrets are not hidden; of too many the oldest is forgotten.
pub fn remember(secret: &str) {
    if secret.len() < SHORTEST {
        return;
    }
    let mut secrets = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    if secrets.iter().any(|(_, kept)| kept.as_str() == secret) {
        return;
    }
    let next = secrets.iter().map(|(number, _)| number + 1).max().unwrap_or(0);
    if secrets.len() >= MOST {
        let oldest = secrets.iter().map(|(number, _)| *number).min().unwrap_or(0);
        secrets.retain(|(number, _)| *number != oldest);
    }
    secrets.push((next, Zeroizing::new(secret.to_owned())));
    // A secret that is within another one would leave the rest of it.
    secrets.sort_by_key(|(_, secret)| std::cmp::Reverse(secret.len()));
    ANY.store(true, Ordering::Release);
}

/// A text without the secrets that were looked up.
pub fn known(text: &str) -> Cow<'_, str> {
    if !ANY.load(Ordering::Acquire) {
        return Cow::Borrowed(text);
    }
    let secrets = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    let mut out = Cow::Borrowed(text);
    for (_, secret) in secrets.iter() {
        if memchr::memmem::find(out.as_bytes(), secret.as_bytes()).is_some() {
            out = Cow::Owned(out.replace(secret.as_str(), HIDDEN));
        }
    }
    out
}

/// The value of a header or property as it may be shown.
pub fn value<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    if is_secret(name) { Cow::Borrowed(HIDDEN) } else { text(value) }
}

/// A text of any form with the values of secret names hidden: `<password>…</password>`, `password="…"`, `"password": "…"`,
/// `password=…`, and the credentials of URLs.
pub fn text(text: &str) -> Cow<'_, str> {
    match known(text) {
        Cow::Borrowed(text) => hide(text, secret_after),
        Cow::Owned(text) => Cow::Owned(hide(&text, secret_after).into_owned()),
    }
}

/// A sentence or a name with addresses in it: credentials of URLs and the values of secret query parameters are hidden. What else the
/// sentence says of a password stays.
pub fn addresses(text: &str) -> Cow<'_, str> {
    hide(text, parameter_after)
}

/// `text` without what `secret` finds behind secret names, and without the credentials of URLs.
fn hide(text: &str, secret: fn(&str, usize, usize) -> Option<(usize, usize)>) -> Cow<'_, str> {
    let mut out = String::new();
    // So much of the text is in `out`.
    let mut copied = 0;
    let mut at = 0;
    // Where the name before has ended, and where the run of names and colons has begun that it is in.
    let (mut before, mut run) = (0, 0);
    while let Some((start, end)) = next_name(text, at) {
        at = end;
        let name = &text[start..end];
        let between = text[before..start].trim_end_matches(is_part_of_name);
        if !between.is_empty() {
            run = before + between.len();
        }
        before = end;
        let hidden = if is_secret(name) { secret(text, run, end) } else { credentials(text, end) };
        if let Some((from, to)) = hidden
            && from < to
        {
            out.push_str(&text[copied..from]);
            out.push_str(HIDDEN);
            (copied, at) = (to, to);
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// The next word that may be a name, behind `from`.
fn next_name(text: &str, from: usize) -> Option<(usize, usize)> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let bytes = text.as_bytes();
    let start = from + bytes.get(from..)?.iter().position(is_name)?;
    let end =
        bytes[start..].iter().position(|byte| !is_name(byte)).map_or(bytes.len(), |length| start + length);
    Some((start, end))
}

/// Whether it may stand in the name of an element, prefix and all.
fn is_part_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || "_-.:".contains(letter)
}

/// Where the value of the name is that ends at `end`, in a run of names and colons that begins at `start`.
fn secret_after(text: &str, start: usize, end: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let rest = |at: usize| text.get(at..).unwrap_or_default();
    let behind = |at: usize, stops: &[char]| at + rest(at).find(stops).unwrap_or(rest(at).len());
    let before = &text[..start];
    if before.ends_with('<') {
        // An element: all up to the next end tag.
        let open = behind(end, &['>', '<']);
        if bytes.get(open) != Some(&b'>') || bytes[open - 1] == b'/' {
            return None;
        }
        let content = open + 1;
        return Some((content, content + rest(content).find("</").unwrap_or(rest(content).len())));
    }
    if before.ends_with("</") {
        return None;
    }
    let quoted = bytes.get(end).is_some_and(|byte| matches!(byte, b'"' | b'\''));
    let sign = end + usize::from(quoted);
    let sign = sign + (rest(sign).len() - rest(sign).trim_start().len());
    if !matches!(bytes.get(sign), Some(b'=' | b':')) {
        return None;
    }
    let value = sign + 1;
    let value = value + (rest(value).len() - rest(value).trim_start_matches([' ', '\t']).len());
    match bytes.get(value)? {
        quote @ (b'"' | b'\'') => Some((value + 1, closing(bytes, value + 1, *quote))),
        // A header goes to the end of its line, and has words.
        _ if !quoted && bytes[sign] == b':' => Some((value, behind(value, &['\r', '\n']))),
        // More of the same document: what is inside has names of its own.
        b'{' | b'[' | b'<' => None,
        _ => Some((value, value + plain(rest(value)))),
    }
}

/// Where the value of the query parameter is whose name is at `_start..end`.
fn parameter_after(text: &str, _start: usize, end: usize) -> Option<(usize, usize)> {
    let value = text.get(end..)?.strip_prefix('=')?;
    Some((end + 1, end + 1 + plain(value)))
}

/// The length of a value without quotes.
fn plain(value: &str) -> usize {
    let stops = ['&', ';', ',', '}', ']', ' ', '\t', '\r', '\n', '"', '\'', '`', '<', '>'];
    value.find(stops).unwrap_or(value.len())
}

/// Where a quoted text ends.
fn closing(bytes: &[u8], from: usize, quote: u8) -> usize {
    let mut at = from;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            _ if byte == quote => return at,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// `user:password` of a URL whose scheme ends at `end`.
fn credentials(text: &str, end: usize) -> Option<(usize, usize)> {
    let from = end + 3;
    let rest = text.get(end..)?.strip_prefix("://")?;
    let authority =
        rest.find(['/', '?', '#', ' ', '"', '\'', '`', '<', '>', '\n']).map_or(rest, |to| &rest[..to]);
    authority.rfind('@').map(|at| (from, from + at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_looked_up_is_not_shown_whatever_it_is_called() {
        remember("planted-in-redact");
        remember("planted-in-redact-and-more");
        remember("short");
        for (text, shown) in [
            ("a planted-in-redact b", "a *** b"),
            ("planted-in-redact-and-more", "***"),
            ("planted-in-redac", "planted-in-redac"),
            ("short", "short"),
        ] {
            assert_eq!((known(text).as_ref(), super::text(text).as_ref()), (shown, shown));
        }
        assert_eq!(value("db", "planted-in-redact"), "***");
    }

    #[test]
    fn secrets_are_hidden_in_every_form() {
        for (plain, expected) in [
            ("<a><b>c</b></a>", "<a><b>c</b></a>"),
            (
                "<u:password Type=\"x\">s3</u:password><a>1</a>",
                "<u:password Type=\"x\">***</u:password><a>1</a>",
            ),
            ("<Password><![CDATA[a<b]]></Password>", "<Password>***</Password>"),
            ("<password/><a>1</a>", "<password/><a>1</a>"),
            ("<password>half", "<password>***"),
            ("<user pwd='a b' n=\"1\"/>", "<user pwd='***' n=\"1\"/>"),
            (r#"{"user":"joe","Pass_Word" : "a\"b","n":1}"#, r#"{"user":"joe","Pass_Word" : "***","n":1}"#),
            (
                r#"{"token":17,"accessToken":"x","secret":{"a":1}}"#,
                r#"{"token":***,"accessToken":"***","secret":{"a":1}}"#,
            ),
            (r#"{"password":"half"#, r#"{"password":"***"#),
            ("user=joe&password=s3&x=1", "user=joe&password=***&x=1"),
            ("Authorization: Basic abc==\r\nHost: h", "Authorization: ***\r\nHost: h"),
            ("http://joe:s3@host/a?api_key=k&b=c", "http://***@host/a?api_key=***&b=c"),
            ("the password is short", "the password is short"),
            ("password=", "password="),
            ("https://h/a?sv=1&sig=aB%2B&b=c", "https://h/a?sv=1&sig=***&b=c"),
            ("Ocp-Apim-Subscription-Key: k\r\nSignal: s", "Ocp-Apim-Subscription-Key: ***\r\nSignal: s"),
            ("", ""),
            ("é<password>é</password>é", "é<password>***</password>é"),
        ] {
            assert_eq!(text(plain), expected, "{plain}");
        }
        assert_eq!(value("X-Api-Key", "k"), HIDDEN);
        assert_eq!(value("Set-Cookie", "a=b"), HIDDEN);
        assert_eq!(value("To", "http://a:b@c/"), "http://***@c/");
    }

    /// Looking at a text takes no longer than it is long.
    #[test]
    fn long_runs_of_names_are_looked_through_once() {
        for piece in ["tokené", "<token ", "token:é", "-_", "a:", "p-"] {
            let long = piece.repeat(200_000);
            assert!(matches!(text(&long), Cow::Borrowed(_) | Cow::Owned(_)), "{piece}");
        }
        assert_eq!(text("<a:b-c.token>x</a:b-c.token>"), "<a:b-c.token>***</a:b-c.token>");
        assert_eq!(
            text("<éa:token>x</éa:token> <token <b>x</b>"),
            "<éa:token>***</éa:token> <token <b>x</b>"
        );
    }

    #[test]
    fn secrets_of_addresses_are_hidden_and_sentences_stay() {
        for (plain, expected) in [
            ("StockEndpoint", "StockEndpoint"),
            ("token: expected a text", "token: expected a text"),
            ("http://host:9000/a?b=c", "http://host:9000/a?b=c"),
            ("address http://joe:s3cret@host/a", "address http://***@host/a"),
            ("http://joe:p@ss@host", "http://***@host"),
            ("http://host/a@b", "http://host/a@b"),
            (
                "jms:/Q?java.naming.security.credentials=x&transport.jms.Password=y&a=b",
                "jms:/Q?java.naming.security.credentials=***&transport.jms.Password=***&a=b",
            ),
            ("`https://u@h/?api_key=k` is not an address", "`https://***@h/?api_key=***` is not an address"),
        ] {
            assert_eq!(addresses(plain), expected, "{plain}");
        }
    }

    #[test]
    fn no_text_breaks_it() {
        let pieces = ["<", "password", ">", "\"", "'", ":", "=", "\\", "é", "</", " ", "://", "@", "\n"];
        // Every text of four pieces, with hidden ones and half ones.
        for number in 0..pieces.len().pow(4) {
            let mut made = String::new();
            let mut rest = number;
            for _ in 0..4 {
                made.push_str(pieces[rest % pieces.len()]);
                rest /= pieces.len();
            }
            let _ = (text(&made), addresses(&made));
        }
    }
}
