//! The words of a script: enough of JavaScript's lexical grammar to find what the engine does not know (E4X), what it
//! does not have (Java classes), and how a script ends. Whether the script is correct is the engine's to say.

use std::ops::Range;

/// The kinds of token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A name or keyword.
    Word,
    /// A number, string, template or regular expression.
    Literal,
    /// One of the marks; `..`, `::`, `...` and the assignments are one each.
    Mark,
    /// An E4X literal, `<a>…</a>`, as a whole.
    Markup,
}

/// One token.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub kind: TokenKind,
    /// Where it stands, in bytes.
    pub at: Range<usize>,
    /// A line break stands before it.
    pub after_break: bool,
}

/// Marks of more than one character that must not be taken apart. Longest first.
const MARKS: &[&str] = &[
    ">>>=", "...", "===", "!==", "**=", "<<=", ">>=", ">>>", "&&=", "||=", "??=", "..", "::", "=>", "==",
    "!=", "<=", ">=", "&&", "||", "??", "?.", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=",
    "<<", ">>", "**",
];

/// Words behind which an operand comes, so that `/` begins a regular expression and `<` an XML literal.
const BEFORE_OPERAND: &[&str] = &[
    "return",
    "typeof",
    "instanceof",
    "in",
    "of",
    "new",
    "delete",
    "void",
    "throw",
    "case",
    "do",
    "else",
    "yield",
    "await",
];

/// Deepest nesting of templates and XML literals in each other.
const MAX_NESTING: usize = 32;

/// What `<` begins where an operand is expected.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Angle {
    /// A literal of E4X.
    Markup,
    /// A type of TypeScript.
    Types,
}

/// The tokens of a script. Text that cannot be one ends them: the engine will say what is wrong.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    cut(text, Angle::Markup, false, 0)
}

/// As [`tokens`], of TypeScript.
pub(crate) fn typed_tokens(text: &str) -> Vec<Token> {
    cut(text, Angle::Types, false, 0)
}

/// For each bracket among tokens the index of the one that closes or opens it; `None`: it is no bracket, or stands alone.
pub(crate) fn brackets(text: &str, tokens: &[Token]) -> Vec<Option<usize>> {
    let mut others = vec![None; tokens.len()];
    let mut open = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match &text[token.at.clone()] {
            "(" | "[" | "{" => open.push(at),
            ")" | "]" | "}" => {
                if let Some(opening) = open.pop() {
                    (others[opening], others[at]) = (Some(at), Some(opening));
                }
            }
            _ => {}
        }
    }
    others
}

/// As [`tokens`]; `balanced`: only up to the brace that closes the first one.
fn cut(text: &str, angle: Angle, balanced: bool, nesting: usize) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let bytes = text.as_bytes();
    let (mut at, mut after_break, mut depth) = (0, false, 0usize);
    while let Some(next) = text[at..].chars().next() {
        let rest = &text[at..];
        if next.is_whitespace() || next == '\u{feff}' {
            after_break |= matches!(next, '\n' | '\r' | '\u{2028}' | '\u{2029}');
            at += next.len_utf8();
            continue;
        }
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        if rest.starts_with("/*") {
            let Some(end) = rest.find("*/") else { break };
            after_break |= rest[..end].contains('\n');
            at += end + 2;
            continue;
        }
        let operand = operand_comes(text, tokens.last());
        let (kind, length) = if is_word_start(next) {
            (TokenKind::Word, word_length(rest))
        } else if next.is_ascii_digit() || (next == '.' && bytes.get(at + 1).is_some_and(u8::is_ascii_digit))
        {
            (TokenKind::Literal, number_length(rest))
        } else if matches!(next, '"' | '\'') {
            let Some(length) = string_length(rest) else { break };
            (TokenKind::Literal, length)
        } else if next == '`' {
            let Some(length) = template_length(rest, nesting) else { break };
            (TokenKind::Literal, length)
        } else if next == '/' && operand {
            let Some(length) = regex_length(rest) else { break };
            (TokenKind::Literal, length)
        } else if next == '<' && operand && angle == Angle::Markup && begins_markup(rest) {
            let Some(length) = markup_pieces(rest, nesting).map(|(_, length)| length) else { break };
            (TokenKind::Markup, length)
        } else {
            let mark = MARKS.iter().find(|mark| rest.starts_with(**mark));
            // `a?.5:1` is a condition.
            let mark =
                mark.filter(|mark| **mark != "?." || !rest[2..].starts_with(|c: char| c.is_ascii_digit()));
            (TokenKind::Mark, mark.map_or(next.len_utf8(), |mark| mark.len()))
        };
        tokens.push(Token { kind, at: at..at + length, after_break });
        after_break = false;
        at += length;
        match (kind, next) {
            (TokenKind::Mark, '{') => depth += 1,
            (TokenKind::Mark, '}') if balanced => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    break;
                }
            }
            _ => {}
        }
    }
    tokens
}

/// Whether a word is one behind which an operand comes.
pub(crate) fn is_before_operand(word: &str) -> bool {
    BEFORE_OPERAND.contains(&word)
}

/// Whether an operand, not an operator, comes behind a token.
fn operand_comes(text: &str, last: Option<&Token>) -> bool {
    let Some(last) = last else { return true };
    let word = &text[last.at.clone()];
    match last.kind {
        TokenKind::Word => is_before_operand(word),
        TokenKind::Literal | TokenKind::Markup => false,
        // Behind `}` a statement begins more often than a division goes on.
        TokenKind::Mark => !matches!(word, ")" | "]" | "++" | "--"),
    }
}

fn is_word_start(c: char) -> bool {
    c.is_alphabetic() || matches!(c, '_' | '$' | '\\' | '#')
}

fn word_length(text: &str) -> usize {
    text.find(|c: char| !(is_word_start(c) || c.is_numeric() || matches!(c, '\u{200c}' | '\u{200d}')))
        .unwrap_or(text.len())
}

fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let hex = matches!(bytes.get(..2), Some(b"0x" | b"0X"));
    let mut length = 0;
    while let Some(&byte) = bytes.get(length) {
        let goes_on = byte.is_ascii_alphanumeric()
            || byte == b'_'
            // One dot, and not the first of two: `1..toString()` is a number with a dot and a member.
            || (byte == b'.' && !hex && !text[..length].contains('.'))
            || (matches!(byte, b'+' | b'-') && !hex && matches!(bytes[length - 1], b'e' | b'E'));
        if !goes_on {
            break;
        }
        length += 1;
    }
    length
}

fn string_length(text: &str) -> Option<usize> {
    let quote = text.as_bytes()[0];
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'\n' => return None,
            _ if byte == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// A template with what is in its `${…}`.
fn template_length(text: &str, nesting: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'`' => return Some(at + 1),
            b'$' if bytes.get(at + 1) == Some(&b'{') => at += 1 + braces_length(&text[at + 1..], nesting)?,
            _ => at += 1,
        }
    }
    None
}

fn regex_length(text: &str) -> Option<usize> {
    let (mut escaped, mut in_class) = (false, false);
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'\n' => return None,
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'[' => in_class = true,
            b']' => in_class = false,
            b'/' if !in_class => return Some(at + 1 + word_length(&text[at + 1..])),
            _ => {}
        }
    }
    None
}

fn begins_markup(text: &str) -> bool {
    let next = text[1..].chars().next();
    next.is_some_and(|c| c.is_alphabetic() || matches!(c, '_' | '{' | '>')) || text.starts_with("<!--")
}

/// The length of `{…}` with everything in it that is JavaScript, from the opening brace.
fn braces_length(text: &str, nesting: usize) -> Option<usize> {
    if nesting >= MAX_NESTING {
        return None;
    }
    let last = cut(text, Angle::Markup, true, nesting + 1).pop()?;
    (last.at.start > 0 && &text[last.at.clone()] == "}").then_some(last.at.end)
}

/// A piece of an XML literal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// As written.
    Text(Range<usize>),
    /// An expression, without its braces.
    Expression(Range<usize>),
}

/// An XML literal in pieces, and its length; `None` if it does not end.
pub(crate) fn markup_pieces(text: &str, nesting: usize) -> Option<(Vec<Piece>, usize)> {
    let bytes = text.as_bytes();
    let mut pieces = Vec::new();
    let (mut at, mut start, mut depth) = (0, 0, 0usize);
    let (mut in_tag, mut closing, mut quote) = (false, false, None);
    while at < bytes.len() {
        // Inside of a character nothing begins.
        let rest = text.get(at..).unwrap_or_default();
        if !in_tag
            && let Some((_, end)) = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")]
                .into_iter()
                .find(|(begin, _)| rest.starts_with(begin))
        {
            at += rest.find(end)? + end.len();
            if depth == 0 {
                pieces.push(Piece::Text(start..at));
                return Some((pieces, at));
            }
            continue;
        }
        match bytes[at] {
            b'{' if quote.is_none() => {
                pieces.push(Piece::Text(start..at));
                let length = braces_length(rest, nesting)?;
                pieces.push(Piece::Expression(at + 1..at + length - 1));
                at += length;
                start = at;
                continue;
            }
            b'<' if !in_tag => {
                in_tag = true;
                closing = bytes.get(at + 1) == Some(&b'/');
            }
            byte if in_tag && quote == Some(byte) => quote = None,
            byte @ (b'"' | b'\'') if in_tag && quote.is_none() => quote = Some(byte),
            b'>' if in_tag && quote.is_none() => {
                in_tag = false;
                if closing {
                    depth = depth.checked_sub(1)?;
                } else if bytes[at - 1] != b'/' {
                    depth += 1;
                }
                if depth == 0 {
                    pieces.push(Piece::Text(start..at + 1));
                    return Some((pieces, at + 1));
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        tokens(text).into_iter().map(|token| &text[token.at]).collect()
    }

    #[test]
    fn scripts_are_cut_into_words() {
        for (text, expected) in [
            ("a/b/c", vec!["a", "/", "b", "/", "c"]),
            ("a = /b\\/[/]/g", vec!["a", "=", "/b\\/[/]/g"]),
            ("return /x/", vec!["return", "/x/"]),
            ("1..x 1.5e-3 0xfe+1", vec!["1.", ".", "x", "1.5e-3", "0xfe", "+", "1"]),
            ("x..*::y", vec!["x", "..", "*", "::", "y"]),
            ("x.@id", vec!["x", ".", "@", "id"]),
            ("'a\\'b' \"c\" // d\n/* e */ `f${g({})}h`", vec!["'a\\'b'", "\"c\"", "`f${g({})}h`"]),
            ("a < b > c", vec!["a", "<", "b", ">", "c"]),
            ("f(<a b='>' c={d}>{e}<f/></a>)", vec!["f", "(", "<a b='>' c={d}>{e}<f/></a>", ")"]),
            ("x = <></>;", vec!["x", "=", "<></>", ";"]),
            ("x = <!-- < -->;", vec!["x", "=", "<!-- < -->", ";"]),
            ("a ?.5 : b?.c", vec!["a", "?", ".5", ":", "b", "?.", "c"]),
            ("'open", vec![]),
            ("x = <a>", vec!["x", "="]),
            ("größe + \u{feff}b", vec!["größe", "+", "b"]),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn anything_is_cut_without_panic_and_in_bounded_time() {
        for text in [
            "{".repeat(50_000),
            "<a>{".repeat(2_000),
            "`${".repeat(2_000),
            "<".repeat(9_000),
            "é{}`".into(),
            "`${`${".repeat(300) + &"}`}`".repeat(300),
        ] {
            tokens(&text);
        }
    }
}
