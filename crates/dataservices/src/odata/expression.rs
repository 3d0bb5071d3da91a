//! Expressions of OData as a syntax tree.

use super::model::Table;

/// Most levels of an expression, and most parts of one.
const DEEP: usize = 50;
const PARTS: usize = 500;

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Word(String),
    /// Digits and the characters that belong to them: a number, a date, a time.
    Plain(String),
    Text(String),
    Open,
    Close,
    Comma,
    Equals,
}

pub(super) fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let (mut found, mut rest) = (Vec::new(), text);
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else { return Ok(found) };
        if found.len() >= 4 * PARTS {
            return Err("it is too long".to_owned());
        }
        let length;
        match first {
            '(' | ')' | ',' | '=' => {
                length = 1;
                found.push(match first {
                    '(' => Token::Open,
                    ')' => Token::Close,
                    ',' => Token::Comma,
                    _ => Token::Equals,
                });
            }
            '\'' => {
                let (mut value, mut at) = (String::new(), 1);
                loop {
                    let end = rest[at..].find('\'').ok_or("a text has no end")?;
                    value.push_str(&rest[at..at + end]);
                    at += end + 1;
                    // A doubled quote is a quote.
                    if !rest[at..].starts_with('\'') {
                        break;
                    }
                    value.push('\'');
                    at += 1;
                }
                length = at;
                found.push(Token::Text(value));
            }
            _ if is_guid(rest) => {
                length = 36;
                found.push(Token::Plain(rest[..36].to_owned()));
            }
            '-' if !rest[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                length = 1;
                found.push(Token::Plain("-".to_owned()));
            }
            _ if first.is_ascii_digit() || first == '-' => {
                let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '-' | '+');
                length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                found.push(Token::Plain(rest[..length].to_owned()));
            }
            _ if first.is_ascii_alphabetic() || first == '_' => {
                length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
                found.push(Token::Word(rest[..length].to_owned()));
            }
            other => return Err(format!("`{other}` cannot stand there")),
        }
        rest = &rest[length..];
    }
}

pub(super) fn is_guid(text: &str) -> bool {
    text.get(..36).is_some_and(|prefix| {
        prefix.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
    }) && !text[36..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
}

/// An expression.
#[derive(Debug)]
pub(super) enum Node {
    Column(usize),
    Null,
    Truth(bool),
    Plain(String),
    Text(String),
    Not(Box<Node>),
    Minus(Box<Node>),
    Binary(&'static str, Box<Node>, Box<Node>),
    Call(&'static str, Vec<Node>),
    In(Box<Node>, Vec<Node>),
}

/// Functions: name, least and most arguments.
const FUNCTIONS: [(&str, usize, usize); 20] = [
    ("contains", 2, 2),
    ("startswith", 2, 2),
    ("endswith", 2, 2),
    ("tolower", 1, 1),
    ("toupper", 1, 1),
    ("trim", 1, 1),
    ("concat", 2, 2),
    ("substring", 2, 3),
    ("length", 1, 1),
    ("indexof", 2, 2),
    ("year", 1, 1),
    ("month", 1, 1),
    ("day", 1, 1),
    ("hour", 1, 1),
    ("minute", 1, 1),
    ("second", 1, 1),
    ("round", 1, 1),
    ("floor", 1, 1),
    ("ceiling", 1, 1),
    ("date", 1, 1),
];

/// Reads an expression over the columns of a table.
pub(super) struct Parser<'a> {
    table: &'a Table,
    tokens: std::vec::IntoIter<Token>,
    next: Option<Token>,
    level: usize,
    parts: usize,
}

impl<'a> Parser<'a> {
    pub fn new(table: &'a Table, text: &str) -> Result<Parser<'a>, String> {
        let mut tokens = tokens(text)?.into_iter();
        let next = tokens.next();
        Ok(Parser { table, tokens, next, level: 0, parts: 0 })
    }

    /// Takes the next token.
    pub fn take(&mut self) -> Option<Token> {
        std::mem::replace(&mut self.next, self.tokens.next())
    }

    /// The one of `words` that comes next.
    pub fn is_word(&self, words: &[&'static str]) -> Option<&'static str> {
        match &self.next {
            Some(Token::Word(word)) => words.iter().find(|w| *w == word).copied(),
            _ => None,
        }
    }

    fn expect(&mut self, token: &Token, sign: &str) -> Result<(), String> {
        if self.next.as_ref() == Some(token) {
            self.take();
            return Ok(());
        }
        Err(format!("`{sign}` is missing"))
    }

    /// An expression, by precedence climbing.
    pub fn node(&mut self) -> Result<Node, String> {
        self.level(0)
    }

    /// From the operator with the lowest precedence to the one with the highest.
    fn level(&mut self, at: usize) -> Result<Node, String> {
        const LEVELS: [&[&str]; 6] = [
            &["or"],
            &["and"],
            &["eq", "ne"],
            &["gt", "ge", "lt", "le", "in"],
            &["add", "sub"],
            &["mul", "div", "mod"],
        ];
        let Some(words) = LEVELS.get(at) else { return self.unary() };
        let mut left = self.level(at + 1)?;
        while let Some(word) = self.is_word(words) {
            self.take();
            self.count()?;
            if word == "in" {
                self.expect(&Token::Open, "(")?;
                let list = self.list()?;
                left = Node::In(Box::new(left), list);
                continue;
            }
            let right = self.level(at + 1)?;
            left = Node::Binary(word, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn count(&mut self) -> Result<(), String> {
        self.parts += 1;
        if self.parts > PARTS { Err(format!("it has more than {PARTS} parts")) } else { Ok(()) }
    }

    fn unary(&mut self) -> Result<Node, String> {
        self.level += 1;
        if self.level > DEEP {
            return Err(format!("it is more than {DEEP} levels deep"));
        }
        let node = self.primary();
        self.level -= 1;
        node
    }

    /// Up to the closing parenthesis.
    fn list(&mut self) -> Result<Vec<Node>, String> {
        let mut all = Vec::new();
        if self.next == Some(Token::Close) {
            self.take();
            return Ok(all);
        }
        loop {
            all.push(self.level(0)?);
            match self.take() {
                Some(Token::Comma) => self.count()?,
                Some(Token::Close) => return Ok(all),
                _ => return Err("`)` is missing".to_owned()),
            }
        }
    }

    fn primary(&mut self) -> Result<Node, String> {
        self.count()?;
        match self.take() {
            Some(Token::Open) => {
                let inside = self.level(0)?;
                self.expect(&Token::Close, ")")?;
                Ok(inside)
            }
            Some(Token::Text(text)) => Ok(Node::Text(text)),
            Some(Token::Plain(text)) if text == "-" => Ok(Node::Minus(Box::new(self.unary()?))),
            Some(Token::Plain(text)) => Ok(Node::Plain(text)),
            Some(Token::Word(word)) if self.next == Some(Token::Open) && word != "not" => {
                self.take();
                let Some(&(name, least, most)) = FUNCTIONS.iter().find(|(name, ..)| *name == word) else {
                    return Err(format!("there is no function `{word}` here"));
                };
                let arguments = self.list()?;
                if !(least..=most).contains(&arguments.len()) {
                    return Err(format!("`{name}` has {} arguments", arguments.len()));
                }
                Ok(Node::Call(name, arguments))
            }
            Some(Token::Word(word)) => Ok(match word.as_str() {
                "not" => Node::Not(Box::new(self.unary()?)),
                "null" => Node::Null,
                "true" => Node::Truth(true),
                "false" => Node::Truth(false),
                name => Node::Column(
                    self.table
                        .column(name)
                        .ok_or_else(|| format!("`{}` has no property `{name}`", self.table.name))?,
                ),
            }),
            _ => Err("it ends too early, or an operator stands where a value should".to_owned()),
        }
    }
}
