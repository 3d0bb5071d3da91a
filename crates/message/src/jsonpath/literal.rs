//! The cursor over a path's text, and the literals both dialects share.

use super::{JsonPathError, MAX_NESTING};
use serde_json::{Map, Number, Value};

pub(super) type Parsed<T> = Result<T, JsonPathError>;

/// A position in the text of a path.
pub(super) struct Cursor<'a> {
    pub text: &'a str,
    pub at: usize,
    /// Whether `{n}` stands for what is given when the path is run.
    pub open: bool,
    /// What is read but hardly does what was meant.
    pub remarks: Vec<JsonPathError>,
    depth: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(text: &'a str) -> Cursor<'a> {
        Cursor { text, at: 0, open: false, remarks: Vec::new(), depth: 0 }
    }

    /// The next byte, 0 at the end (a NUL in a path is an error everywhere outside of quotes).
    pub fn peek(&self) -> u8 {
        self.peek_at(0)
    }

    pub fn peek_at(&self, offset: usize) -> u8 {
        self.text.as_bytes().get(self.at + offset).copied().unwrap_or(0)
    }

    pub fn at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    pub fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    pub fn next_char(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Takes `token` if it comes next.
    pub fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    pub fn take_while(&mut self, accept: impl Fn(u8) -> bool) -> &'a str {
        let start = self.at;
        while !self.at_end() && accept(self.peek()) {
            self.at += 1;
        }
        self.text.get(start..self.at).unwrap_or("")
    }

    pub fn skip_spaces(&mut self) {
        self.take_while(|b| b == b' ');
    }

    /// Space, tab, line feed and carriage return.
    pub fn skip_blanks(&mut self) {
        self.take_while(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r'));
    }

    pub fn error<T>(&self, message: impl Into<String>) -> Parsed<T> {
        let len = self.rest().chars().next().map_or(0, char::len_utf8);
        Err(JsonPathError { message: message.into(), span: self.at..self.at + len })
    }

    pub fn error_from<T>(&self, start: usize, message: impl Into<String>) -> Parsed<T> {
        Err(JsonPathError { message: message.into(), span: start..self.at.max(start) })
    }

    pub fn expect(&mut self, token: &str) -> Parsed<()> {
        if self.take(token) { Ok(()) } else { self.error(format!("expected {token}{}", self.found())) }
    }

    /// ", found x" for messages.
    pub fn found(&self) -> String {
        match self.rest().chars().next() {
            Some(c) => format!(", found {c:?}"),
            None => ", found the end".to_owned(),
        }
    }

    /// Runs `inner` one level deeper.
    pub fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAX_NESTING {
            return self.error(format!("the path is nested deeper than {MAX_NESTING} levels"));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// A quoted string, the cursor on its opening quote. `strict`: only the escapes of RFC 9535 and no control
    /// characters; otherwise any escaped character stands for itself.
    pub fn string(&mut self, strict: bool) -> Parsed<String> {
        let start = self.at;
        let Some(quote) = self.next_char() else { return self.error("expected a string") };
        let mut out = String::new();
        loop {
            let here = self.at;
            let Some(c) = self.next_char() else { return self.error_from(start, "the string is not closed") };
            match c {
                c if c == quote => return Ok(out),
                '\\' => self.escape(quote, strict, &mut out)?,
                c if strict && c < ' ' => {
                    return self.error_from(here, "a control character in a string must be escaped");
                }
                c => out.push(c),
            }
        }
    }

    fn escape(&mut self, quote: char, strict: bool, out: &mut String) -> Parsed<()> {
        let start = self.at - 1;
        match self.next_char() {
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some(c @ ('/' | '\\')) => out.push(c),
            Some('u') => {
                let first = self.hex4(start)?;
                let code = match first {
                    0xD800..=0xDBFF if self.take("\\u") => match self.hex4(start)? {
                        low @ 0xDC00..=0xDFFF => 0x10000 + ((first - 0xD800) << 10) + (low - 0xDC00),
                        _ => return self.error_from(start, "half of a surrogate pair"),
                    },
                    code => code,
                };
                let Some(c) = char::from_u32(code) else {
                    return self.error_from(start, "half of a surrogate pair");
                };
                out.push(c);
            }
            Some(c) if c == quote || !strict => out.push(c),
            Some(_) => return self.error_from(start, "no such escape"),
            None => return self.error_from(start, "the string is not closed"),
        }
        Ok(())
    }

    fn hex4(&mut self, start: usize) -> Parsed<u32> {
        let digits = self.text.get(self.at..self.at + 4).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let Some(code) = digits.and_then(|d| u32::from_str_radix(d, 16).ok()) else {
            return self.error_from(start, "\\u needs four hexadecimal digits");
        };
        self.at += 4;
        Ok(code)
    }

    /// A JSON number, strictly by its grammar.
    pub fn number(&mut self) -> Parsed<Value> {
        let start = self.at;
        self.take("-");
        let whole = self.take_while(|b| b.is_ascii_digit());
        let mut valid = !whole.is_empty() && (whole.len() == 1 || !whole.starts_with('0'));
        if self.take(".") {
            valid &= !self.take_while(|b| b.is_ascii_digit()).is_empty();
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.at += 1;
            if matches!(self.peek(), b'+' | b'-') {
                self.at += 1;
            }
            valid &= !self.take_while(|b| b.is_ascii_digit()).is_empty();
        }
        let text = self.text.get(start..self.at).unwrap_or("");
        match text.parse::<Number>() {
            Ok(number) if valid => Ok(Value::Number(number)),
            _ => self.error_from(start, "not a number"),
        }
    }

    /// `true`, `false` or `null`, not followed by a name character.
    pub fn keyword(&mut self) -> Option<Value> {
        let word: usize = self.rest().bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        let value = match self.rest().get(..word)? {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" => Value::Null,
            _ => return None,
        };
        self.at += word;
        Some(value)
    }

    /// A JSON value in which strings may also stand in single quotes.
    pub fn json(&mut self) -> Parsed<Value> {
        self.nested(|c| {
            c.skip_blanks();
            match c.peek() {
                b'\'' | b'"' => Ok(Value::String(c.string(false)?)),
                b'-' | b'0'..=b'9' => c.number(),
                b'[' => {
                    c.at += 1;
                    let mut elements = Vec::new();
                    c.list("]", |c| {
                        elements.push(c.json()?);
                        Ok(())
                    })?;
                    Ok(Value::Array(elements))
                }
                b'{' => {
                    c.at += 1;
                    let mut members = Map::new();
                    c.list("}", |c| {
                        if !matches!(c.peek(), b'\'' | b'"') {
                            return c.error("expected the name of a member in quotes");
                        }
                        let name = c.string(false)?;
                        c.skip_blanks();
                        c.expect(":")?;
                        members.insert(name, c.json()?);
                        Ok(())
                    })?;
                    Ok(Value::Object(members))
                }
                _ => match c.keyword() {
                    Some(value) => Ok(value),
                    None => c.error(format!("expected a JSON value{}", c.found())),
                },
            }
        })
    }

    /// Items between commas up to `end`, the cursor behind the opening bracket; none is fine.
    pub fn list(&mut self, end: &str, mut item: impl FnMut(&mut Self) -> Parsed<()>) -> Parsed<()> {
        self.skip_blanks();
        if self.take(end) {
            return Ok(());
        }
        loop {
            self.skip_blanks();
            item(self)?;
            self.skip_blanks();
            if self.take(end) {
                return Ok(());
            }
            self.expect(",")?;
        }
    }
}
