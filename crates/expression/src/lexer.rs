//! Tokens.

use crate::Error;

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token<'a> {
    /// A name, or a word such as `and` and `true`.
    Name(&'a str),
    /// Digits with an optional fraction, without sign.
    Number(&'a str),
    /// A quoted text, its escapes resolved.
    Text(String),
    /// Everything else.
    Symbol(&'static str),
    End,
}

/// Longest first.
const SYMBOLS: &[&str] = &[
    "===", "!==", "==", "!=", "<=", ">=", "=~", "&&", "||", "..", "<", ">", "+", "-", "*", "/", "%", "(",
    ")", "[", "]", "{", "}", ",", ".", "?", ":", "$", "@", "!",
];

/// A position in the text of an expression.
#[derive(Clone, Debug)]
pub(crate) struct Lexer<'a> {
    pub text: &'a str,
    /// Where the next token is searched.
    pub at: usize,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0 }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    /// The next token and where it begins.
    pub fn next(&mut self) -> Result<(Token<'a>, usize), Error> {
        self.at += self.rest().len() - self.rest().trim_start().len();
        let start = self.at;
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok((Token::End, start)) };
        let token = if first.is_ascii_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
            Token::Name(self.take(end.unwrap_or(rest.len())))
        } else if first.is_ascii_digit() {
            let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
            let whole = digits(rest);
            let fraction = match rest[whole..].strip_prefix('.') {
                Some(after) if digits(after) > 0 => 1 + digits(after),
                _ => 0,
            };
            Token::Number(self.take(whole + fraction))
        } else if matches!(first, '"' | '\'') {
            Token::Text(self.quoted(first)?)
        } else if let Some(symbol) = SYMBOLS.iter().copied().find(|symbol| rest.starts_with(symbol)) {
            self.take(symbol.len());
            Token::Symbol(symbol)
        } else {
            let span = start..start + first.len_utf8();
            return Err(Error::new(format!("{first:?} cannot stand here"), span));
        };
        Ok((token, start))
    }

    fn take(&mut self, length: usize) -> &'a str {
        let taken = self.rest().get(..length).unwrap_or("");
        self.at += length;
        taken
    }

    /// A quoted text. The escapes are those of JSON and the single quote; another backslash stands for itself, so that
    /// regular expressions can be written as they are.
    fn quoted(&mut self, quote: char) -> Result<String, Error> {
        let start = self.at;
        let mut out = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            if c == quote {
                self.at = start + at + 1;
                return Ok(out);
            }
            if c != '\\' {
                out.push(c);
                continue;
            }
            match chars.next() {
                Some((_, escaped @ ('"' | '\'' | '\\' | '/'))) => out.push(escaped),
                Some((_, 'n')) => out.push('\n'),
                Some((_, 't')) => out.push('\t'),
                Some((_, 'r')) => out.push('\r'),
                Some((_, other)) => {
                    out.push('\\');
                    out.push(other);
                }
                None => break,
            }
        }
        Err(Error::new(format!("the text has no closing {quote}"), start..self.text.len()))
    }

    /// A regular expression between slashes with its flags, the opening slash taken already: as written.
    pub fn regex(&mut self, open: usize) -> Result<&'a str, Error> {
        let mut chars = self.rest().char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => {
                    chars.next();
                }
                '/' => {
                    let flags = self.rest()[at + 1..].bytes().take_while(u8::is_ascii_alphabetic).count();
                    self.at += at + 1 + flags;
                    return Ok(&self.text[open..self.at]);
                }
                _ => {}
            }
        }
        Err(Error::new("the regular expression has no closing /", open..self.text.len()))
    }
}
