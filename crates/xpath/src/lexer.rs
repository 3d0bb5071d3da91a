//! Source text to tokens (XPath 1.0, section 3.7; XPath 2.0, appendix A.2).
//!
//! Whether `*` and names such as `div` are operators is left to the parser: it knows whether an operand or an
//! operator comes next, which is the same as the specification's rule about the preceding token.

use crate::error::{Span, XPathError};
use crate::options::Version;

/// A token and its place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Token<'s> {
    pub kind: TokenKind<'s>,
    pub span: Span,
}

/// The kinds of token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum TokenKind<'s> {
    Number(f64),
    /// A number in XPath 2.0: its form determines the type.
    Numeral(&'s str),
    Literal(&'s str),
    /// A literal with doubled quotes in it (XPath 2.0).
    Doubled(&'s str, char),
    /// An NCName.
    Name(&'s str),
    /// `prefix:local`; of `Q{uri}local` (XPath 3.0) the prefix is `{uri`.
    Prefixed(&'s str, &'s str),
    /// `prefix:*`.
    PrefixedStar(&'s str),
    /// `*:local` (XPath 2.0).
    StarPrefixed(&'s str),
    Punct(&'static str),
    End,
}

const PUNCTUATION: [&str; 23] = [
    // Longest first.
    "::", "..", "//", "!=", "<=", ">=", "<<", ">>", "(", ")", "[", "]", ".", "@", ",", "/", "|", "+", "-",
    "=", "<", ">", "*",
];

/// Further operators of XPath 3.1; `!=` must not be taken for `!`.
const PUNCTUATION_31: [&str; 9] = ["||", "=>", ":=", "!=", "::", "!", "#", "{", "}"];

/// All tokens, `End` last.
pub(crate) fn tokens(src: &str, version: Version) -> Result<Vec<Token<'_>>, XPathError> {
    let version2 = version.is_version2();
    let mut out = Vec::with_capacity(src.len() / 2 + 1);
    let bytes = src.as_bytes();
    let mut at = 0;
    loop {
        loop {
            while at < bytes.len() && matches!(bytes[at], b' ' | b'\t' | b'\n' | b'\r') {
                at += 1;
            }
            if !version2 || !src[at..].starts_with("(:") {
                break;
            }
            at = comment_end(src, at)?;
        }
        let Some(&b) = bytes.get(at) else {
            out.push(Token { kind: TokenKind::End, span: Span::new(at, at) });
            return Ok(out);
        };
        let start = at;
        let kind = if b == b'"' || b == b'\'' {
            let mut doubled = false;
            loop {
                let Some(len) = src[at + 1..].find(b as char) else {
                    return Err(XPathError::new("the string literal is not closed", start..src.len()));
                };
                at += len + 1;
                if !version2 || bytes.get(at + 1) != Some(&b) {
                    break;
                }
                doubled = true;
                at += 1;
            }
            at += 1;
            let inner = &src[start + 1..at - 1];
            if doubled { TokenKind::Doubled(inner, b as char) } else { TokenKind::Literal(inner) }
        } else if b.is_ascii_digit() || (b == b'.' && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)) {
            at = digits(bytes, at);
            if bytes.get(at) == Some(&b'.') {
                at = digits(bytes, at + 1);
            }
            if version2 {
                let mut exponent = at;
                if matches!(bytes.get(at), Some(b'e' | b'E')) {
                    exponent += 1 + usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
                    let end = digits(bytes, exponent);
                    if end > exponent {
                        at = end;
                    }
                }
                if !name_at(src, at).is_empty() {
                    return Err(XPathError::new(
                        "a number and a name need a blank between them",
                        start..at + 1,
                    ));
                }
                out.push(Token { kind: TokenKind::Numeral(&src[start..at]), span: Span::new(start, at) });
                continue;
            }
            TokenKind::Number(src[start..at].parse().unwrap_or(f64::NAN))
        } else if b == b'$' {
            at += 1;
            TokenKind::Punct("$")
        } else if b == b'*'
            && version2
            && bytes.get(at + 1) == Some(&b':')
            && !name_at(src, at + 2).is_empty()
        {
            let local = name_at(src, at + 2);
            at += 2 + local.len();
            TokenKind::StarPrefixed(local)
        } else if version == Version::V31
            && let Some(p) = PUNCTUATION_31.iter().find(|p| src[at..].starts_with(**p))
        {
            at += p.len();
            TokenKind::Punct(p)
        } else if b == b':' && version == Version::V31 {
            at += 1;
            TokenKind::Punct(":")
        } else if version == Version::V31 && src[at..].starts_with("Q{") {
            let Some(len) = src[at..].find('}').filter(|len| !src[at + 2..at + len].contains('{')) else {
                return Err(XPathError::new("the `}` behind the namespace is missing", start..src.len()));
            };
            let uri = &src[at + 1..at + len];
            at += len + 1;
            if uri[1..].trim_matches([' ', '\t', '\r', '\n']) == "http://www.w3.org/2000/xmlns/" {
                let message = "names are never in the namespace of namespace declarations";
                return Err(XPathError::new(message, start..at).with_code("XQST0070"));
            }
            if bytes.get(at) == Some(&b'*') {
                at += 1;
                TokenKind::PrefixedStar(uri)
            } else {
                let local = name_at(src, at);
                if local.is_empty() {
                    return Err(XPathError::new("expected a name after the namespace", start..at));
                }
                at += local.len();
                TokenKind::Prefixed(uri, local)
            }
        } else if b == b'?' && version2 {
            at += 1;
            TokenKind::Punct("?")
        } else if let Some(p) = PUNCTUATION.iter().find(|p| src[at..].starts_with(**p)) {
            at += p.len();
            TokenKind::Punct(p)
        } else {
            let local = name_at(src, at);
            if local.is_empty() {
                let c = src[at..].chars().next().unwrap_or(' ');
                return Err(XPathError::new(format!("unexpected character {c:?}"), at..at + c.len_utf8()));
            }
            at += local.len();
            // A colon that does not start `::` connects a prefix with the token that follows immediately.
            if bytes.get(at) == Some(&b':') && bytes.get(at + 1) != Some(&b':') {
                if bytes.get(at + 1) == Some(&b'*') {
                    at += 2;
                    TokenKind::PrefixedStar(local)
                } else {
                    let second = name_at(src, at + 1);
                    if second.is_empty() && version == Version::V31 {
                        // The key of a map, or `$x:=`.
                        out.push(Token { kind: TokenKind::Name(local), span: Span::new(start, at) });
                        continue;
                    }
                    if second.is_empty() {
                        return Err(XPathError::new("expected a name after the prefix", at..at + 1));
                    }
                    at += 1 + second.len();
                    TokenKind::Prefixed(local, second)
                }
            } else {
                TokenKind::Name(local)
            }
        };
        out.push(Token { kind, span: Span::new(start, at) });
    }
}

/// The position after a comment that begins at `at`; comments nest.
fn comment_end(src: &str, start: usize) -> Result<usize, XPathError> {
    let bytes = src.as_bytes();
    let (mut at, mut open) = (start + 2, 1);
    while open > 0 {
        match (bytes.get(at), bytes.get(at + 1)) {
            (Some(b'('), Some(b':')) => {
                open += 1;
                at += 2;
            }
            (Some(b':'), Some(b')')) => {
                open -= 1;
                at += 2;
            }
            (Some(_), _) => at += 1,
            (None, _) => return Err(XPathError::new("the comment is not closed", start..src.len())),
        }
    }
    Ok(at)
}

fn digits(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    at
}

fn name_at(src: &str, at: usize) -> &str {
    let rest = &src[at..];
    let mut chars = rest.char_indices();
    match chars.next() {
        Some((_, c)) if is_name_start(c) => {
            let len = chars.find(|(_, c)| !is_name_char(*c)).map_or(rest.len(), |(i, _)| i);
            &rest[..len]
        }
        _ => "",
    }
}

/// NCNameStartChar of Namespaces in XML 1.0.
fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic()
        || c == '_'
        || matches!(c,
            '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}' | '\u{370}'..='\u{37D}'
            | '\u{37F}'..='\u{1FFF}' | '\u{200C}'..='\u{200D}' | '\u{2070}'..='\u{218F}' | '\u{2C00}'..='\u{2FEF}'
            | '\u{3001}'..='\u{D7FF}' | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}' | '\u{10000}'..='\u{EFFFF}')
}

/// NCNameChar.
fn is_name_char(c: char) -> bool {
    is_name_start(c)
        || c.is_ascii_digit()
        || matches!(c, '-' | '.' | '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits() {
        let kinds = |s| tokens(s, Version::V1).unwrap().into_iter().map(|t| t.kind).collect::<Vec<_>>();
        use TokenKind::*;
        assert_eq!(kinds("a:b/*"), [Prefixed("a", "b"), Punct("/"), Punct("*"), End]);
        assert_eq!(kinds("child::a-b"), [Name("child"), Punct("::"), Name("a-b"), End]);
        assert_eq!(kinds("1.5.5"), [Number(1.5), Number(0.5), End]);
        assert_eq!(kinds("5.div 2"), [Number(5.0), Name("div"), Number(2.0), End]);
        assert_eq!(kinds("p:* * 2"), [PrefixedStar("p"), Punct("*"), Number(2.0), End]);
        assert_eq!(kinds("..//@x"), [Punct(".."), Punct("//"), Punct("@"), Name("x"), End]);
        assert_eq!(kinds("'a\"b'"), [Literal("a\"b"), End]);
        for bad in ["'x", "a: b", "#", "{"] {
            assert!(tokens(bad, Version::V1).is_err(), "{bad}");
        }
        let kinds = |s| tokens(s, Version::V2).unwrap().into_iter().map(|t| t.kind).collect::<Vec<_>>();
        assert_eq!(kinds("(: a (: b :) c :)*:x"), [StarPrefixed("x"), End]);
        assert_eq!(kinds("'a''b' \"\""), [Doubled("a''b", '\''), Literal(""), End]);
        assert_eq!(kinds("1.5e3 .5 5."), [Numeral("1.5e3"), Numeral(".5"), Numeral("5."), End]);
        assert_eq!(kinds("* * *"), [Punct("*"), Punct("*"), Punct("*"), End]);
        for bad in ["(: x", "'it''s", "10idiv 3", "1e"] {
            assert!(tokens(bad, Version::V2).is_err(), "{bad}");
        }
    }
}
