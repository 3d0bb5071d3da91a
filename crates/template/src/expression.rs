//! Parsing: expressions, character by character.

use crate::ast::{Arithmetic, Compare, Error, Expr, ExprKind, Piece, Place, RangeEnd, Special};
use crate::built_in;
use crate::number::Number;
use std::sync::Arc;

/// Deepest nesting of expressions in each other.
pub(crate) const MAX_NESTING: usize = 100;

/// An escaped brace, which begins no interpolation; a character that no template has.
const BRACE: char = '\u{e000}';

/// The text of a template, and how far it has been read.
pub(crate) struct Cursor<'t> {
    pub text: &'t str,
    pub at: usize,
    /// Where the text begins.
    pub start: Place,
    /// Within brackets `>` is an operator; elsewhere it ends the tag.
    brackets: usize,
    depth: usize,
}

pub(crate) type Parsed<T> = Result<T, Error>;

impl<'t> Cursor<'t> {
    pub fn new(text: &'t str, start: Place) -> Cursor<'t> {
        Cursor { text, at: 0, start, brackets: 0, depth: 0 }
    }

    pub fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub fn place(&self) -> Place {
        self.place_of(self.at)
    }

    pub fn place_of(&self, at: usize) -> Place {
        let before = &self.text[..at];
        match before.rfind('\n') {
            None => {
                Place { line: self.start.line, column: self.start.column + before.chars().count() as u32 }
            }
            Some(newline) => Place {
                line: self.start.line + before.bytes().filter(|&b| b == b'\n').count() as u32,
                column: before[newline + 1..].chars().count() as u32 + 1,
            },
        }
    }

    pub fn error<T>(&self, message: impl Into<String>) -> Parsed<T> {
        Err(Error::new(message, self.place()))
    }

    /// What stands here, for a message.
    fn found(&self) -> String {
        match self.rest().chars().next() {
            None => "the end of the template".into(),
            Some(c) if is_name_start(c) => format!("`{}`", self.peek_name()),
            Some(c) => format!("`{c}`"),
        }
    }

    /// Skips white space and comments.
    pub fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start().len();
            self.at += blank;
            let rest = self.rest();
            if (rest.starts_with("<#--") || rest.starts_with("[#--"))
                && let Some(end) = rest.find("-->").or_else(|| rest.find("--]"))
            {
                self.at += end + 3;
                continue;
            }
            if blank == 0 {
                return;
            }
        }
    }

    /// Takes a mark, behind white space.
    pub fn take(&mut self, mark: &str) -> bool {
        self.skip();
        let is = self.rest().starts_with(mark);
        if is {
            self.at += mark.len();
        }
        is
    }

    pub fn expect(&mut self, mark: &str) -> Parsed<()> {
        if self.take(mark) {
            return Ok(());
        }
        let found = self.found();
        self.error(format!("expected `{mark}`, found {found}"))
    }

    fn peek_name(&self) -> &'t str {
        let rest = self.rest();
        let mut chars = rest.char_indices();
        match chars.next() {
            Some((_, c)) if is_name_start(c) => {}
            _ => return "",
        }
        let end = chars.find(|(_, c)| !is_name(*c)).map_or(rest.len(), |(at, _)| at);
        &rest[..end]
    }

    /// Takes a word.
    pub fn take_word(&mut self, word: &str) -> bool {
        self.skip();
        let is = self.peek_name() == word;
        if is {
            self.at += word.len();
        }
        is
    }

    /// A name, with `\-`, `\.` and `\:` in it for characters that are otherwise operators.
    pub fn name(&mut self) -> Parsed<Arc<str>> {
        self.skip();
        let mut out = String::new();
        loop {
            let name = self.rest();
            let end = name
                .char_indices()
                .find(|&(at, c)| !(is_name(c) && (at > 0 || !out.is_empty() || is_name_start(c))))
                .map_or(name.len(), |(at, _)| at);
            out.push_str(&name[..end]);
            self.at += end;
            let mut next = self.rest().chars();
            match (next.next(), next.next()) {
                (Some('\\'), Some(c @ ('-' | '.' | ':' | '#'))) => {
                    out.push(c);
                    self.at += 2;
                }
                _ => break,
            }
        }
        if out.is_empty() {
            let found = self.found();
            return self.error(format!("expected a name, found {found}"));
        }
        Ok(out.into())
    }

    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return self.error(format!("expressions nest deeper than {MAX_NESTING}"));
        }
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn bracketed<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.brackets += 1;
        let parsed = parse(self);
        self.brackets -= 1;
        parsed
    }

    /// An expression.
    pub fn expression(&mut self) -> Parsed<Expr> {
        self.nested(Self::or)
    }

    fn or(&mut self) -> Parsed<Expr> {
        let mut left = self.and()?;
        while self.take("||") {
            let place = left.place;
            let right = self.and()?;
            left = Expr { kind: ExprKind::Or(Box::new(left), Box::new(right)), place };
        }
        Ok(left)
    }

    fn and(&mut self) -> Parsed<Expr> {
        let mut left = self.equality()?;
        while self.take("&&") || self.take("&amp;&amp;") || self.take("\\and") {
            let place = left.place;
            let right = self.equality()?;
            left = Expr { kind: ExprKind::And(Box::new(left), Box::new(right)), place };
        }
        Ok(left)
    }

    fn equality(&mut self) -> Parsed<Expr> {
        let left = self.relation()?;
        let op = if self.take("!=") {
            Compare::NotEqual
        } else if self.take("==") || self.take("=") {
            Compare::Equal
        } else {
            return Ok(left);
        };
        let right = self.relation()?;
        Ok(Expr { place: left.place, kind: ExprKind::Compare(op, Box::new(left), Box::new(right)) })
    }

    fn relation(&mut self) -> Parsed<Expr> {
        let left = self.range()?;
        let op = if self.brackets > 0 && self.take(">=") || self.take_word("gte") || self.take("&gt;=") {
            Compare::GreaterOrEqual
        } else if self.take("<=") || self.take_word("lte") || self.take("&lt;=") {
            Compare::LessOrEqual
        } else if self.brackets > 0 && self.take(">") || self.take_word("gt") || self.take("&gt;") {
            Compare::Greater
        } else if self.is_less() || self.take_word("lt") || self.take("&lt;") {
            Compare::Less
        } else {
            return Ok(left);
        };
        let right = self.range()?;
        Ok(Expr { place: left.place, kind: ExprKind::Compare(op, Box::new(left), Box::new(right)) })
    }

    fn is_less(&mut self) -> bool {
        self.skip();
        let rest = self.rest();
        let is = rest.starts_with('<') && !["<#", "</", "<@"].iter().any(|tag| rest.starts_with(tag));
        if is {
            self.at += 1;
        }
        is
    }

    fn range(&mut self) -> Parsed<Expr> {
        let left = self.sum()?;
        let (end, open) = if self.take("..*") {
            (RangeEnd::Length, false)
        } else if self.take("..<") || self.take("..!") {
            (RangeEnd::Exclusive, false)
        } else if self.take("..") {
            self.skip();
            (RangeEnd::Inclusive, !self.begins_expression())
        } else {
            return Ok(left);
        };
        let right = if open { None } else { Some(Box::new(self.sum()?)) };
        Ok(Expr { place: left.place, kind: ExprKind::Range(Box::new(left), end, right) })
    }

    fn sum(&mut self) -> Parsed<Expr> {
        let mut left = self.product()?;
        loop {
            self.skip();
            let rest = self.rest();
            let op = match rest.bytes().next() {
                Some(b'+') if !rest.starts_with("++") && !rest.starts_with("+=") => Arithmetic::Add,
                Some(b'-')
                    if !rest.starts_with("--") && !rest.starts_with("-=") && !rest.starts_with("->") =>
                {
                    Arithmetic::Subtract
                }
                _ => return Ok(left),
            };
            self.at += 1;
            let right = self.product()?;
            left =
                Expr { place: left.place, kind: ExprKind::Arithmetic(op, Box::new(left), Box::new(right)) };
        }
    }

    fn product(&mut self) -> Parsed<Expr> {
        let mut left = self.unary()?;
        loop {
            self.skip();
            let rest = self.rest();
            let op = match rest.bytes().next() {
                Some(b'*') if !rest.starts_with("*=") => Arithmetic::Multiply,
                Some(b'/') if !rest.starts_with("/>") && !rest.starts_with("/=") => Arithmetic::Divide,
                Some(b'%') if !rest.starts_with("%=") => Arithmetic::Modulo,
                _ => return Ok(left),
            };
            self.at += 1;
            let right = self.unary()?;
            left =
                Expr { place: left.place, kind: ExprKind::Arithmetic(op, Box::new(left), Box::new(right)) };
        }
    }

    fn unary(&mut self) -> Parsed<Expr> {
        self.skip();
        let place = self.place();
        let kind: fn(Box<Expr>) -> ExprKind = match self.rest().bytes().next() {
            Some(b'!') => ExprKind::Not,
            Some(b'-') => ExprKind::Negate,
            Some(b'+') => ExprKind::Plus,
            _ => return self.postfix(),
        };
        self.at += 1;
        let operand = self.nested(Self::unary)?;
        Ok(Expr { kind: kind(Box::new(operand)), place })
    }

    fn postfix(&mut self) -> Parsed<Expr> {
        let mut base = self.primary()?;
        let mut links = 0;
        loop {
            // What stands behind each other is evaluated inside of each other.
            links += 1;
            if links > MAX_NESTING {
                return self.error(format!("expressions nest deeper than {MAX_NESTING}"));
            }
            self.skip();
            let rest = self.rest();
            let place = base.place;
            let kind = if rest.starts_with("..") {
                return Ok(base);
            } else if rest.starts_with('.') {
                self.at += 1;
                self.skip();
                let name = self.member()?;
                match base.kind {
                    ExprKind::BuiltIn(of, by, args) if args.is_empty() && takes_format(by) => {
                        let format = Expr { kind: ExprKind::Text(name), place: self.place() };
                        ExprKind::BuiltIn(of, by, vec![format])
                    }
                    kind => ExprKind::Dot(Box::new(Expr { kind, place }), name),
                }
            } else if rest.starts_with('[') {
                self.at += 1;
                let index = self.bracketed(Self::expression)?;
                self.expect("]")?;
                match base.kind {
                    ExprKind::BuiltIn(of, by, args) if args.is_empty() && takes_format(by) => {
                        ExprKind::BuiltIn(of, by, vec![index])
                    }
                    kind => ExprKind::Index(Box::new(Expr { kind, place }), Box::new(index)),
                }
            } else if rest.starts_with('(') {
                self.at += 1;
                let arguments = self.arguments(")")?;
                ExprKind::Call(Box::new(base), arguments)
            } else if rest.starts_with("??") {
                self.at += 2;
                ExprKind::Exists(Box::new(base))
            } else if rest.starts_with('?') {
                self.at += 1;
                self.built_in(base)?
            } else if rest.starts_with('!') && !rest.starts_with("!=") {
                self.at += 1;
                let default = if self.begins_expression() && !self.begins_assignment() {
                    Some(Box::new(self.nested(Self::or)?))
                } else {
                    None
                };
                ExprKind::Default(Box::new(base), default)
            } else {
                return Ok(base);
            };
            base = Expr { kind, place };
        }
    }

    /// What may stand behind a point.
    fn member(&mut self) -> Parsed<Arc<str>> {
        let rest = self.rest();
        for star in ["**", "*"] {
            if rest.starts_with(star) {
                self.at += star.len();
                return Ok(star.into());
            }
        }
        let ats = rest.len() - rest.trim_start_matches('@').len();
        if ats > 2 {
            return self.error("a name begins with `@` or `@@`");
        }
        self.at += ats;
        if ats > 0 && self.rest().starts_with('*') {
            self.at += 1;
            return Ok("@@".into());
        }
        if ats == 2 && self.peek_name().is_empty() {
            return Ok("@@".into());
        }
        let name = self.name()?;
        Ok(format!("{}{name}", "@@".get(..ats).unwrap_or("")).into())
    }

    fn built_in(&mut self, base: Expr) -> Parsed<ExprKind> {
        self.skip();
        let at = self.at;
        let written = self.name()?;
        let name = built_in::snake(&written);
        let error = |message: String| Err(Error::new(message, self.place_of(at)));
        if built_in::REFUSED.contains(&&*name) {
            return error(format!(
                "`?{written}` is not executable here: a template is no place for code of a message"
            ));
        }
        let Some(built_in_name) = built_in::NAMES.iter().copied().find(|candidate| *candidate == &*name)
        else {
            return error(format!("there is no built-in `?{written}`"));
        };
        self.skip();
        let arguments = match self.rest().starts_with('(') {
            true => {
                self.at += 1;
                self.arguments(")")?
            }
            false => Vec::new(),
        };
        Ok(ExprKind::BuiltIn(Box::new(base), built_in_name, arguments))
    }

    /// Arguments up to a bracket.
    fn arguments(&mut self, end: &str) -> Parsed<Vec<Expr>> {
        self.bracketed(|cursor| {
            let mut arguments = Vec::new();
            if cursor.take(end) {
                return Ok(arguments);
            }
            loop {
                arguments.push(match cursor.lambda()? {
                    Some(lambda) => lambda,
                    None => cursor.expression()?,
                });
                // The comma may be left out.
                cursor.take(",");
                if cursor.take(end) {
                    return Ok(arguments);
                }
                if !cursor.begins_expression() {
                    cursor.expect(end)?;
                }
            }
        })
    }

    /// `x -> e` or `(x, y) -> e`.
    fn lambda(&mut self) -> Parsed<Option<Expr>> {
        self.skip();
        let (at, place) = (self.at, self.place());
        let mut names = Vec::new();
        let bracket = self.take("(");
        while !self.peek_name().is_empty() {
            names.push(self.name()?);
            if !bracket || !self.take(",") {
                break;
            }
            self.skip();
        }
        if (bracket && !self.take(")")) || !self.take("->") {
            self.at = at;
            return Ok(None);
        }
        let body = self.expression()?;
        Ok(Some(Expr { kind: ExprKind::Lambda(names, Box::new(body)), place }))
    }

    /// Whether an operand follows.
    fn begins_expression(&mut self) -> bool {
        self.skip();
        let rest = self.rest();
        match rest.chars().next() {
            Some('"' | '\'' | '(' | '[' | '{' | '!' | '-' | '+' | '\\') => {
                !rest.starts_with("!=") && !rest.starts_with("->")
            }
            Some('.') => rest[1..].starts_with(is_name_start),
            Some(c) if is_name_start(c) => {
                !matches!(self.peek_name(), "as" | "in" | "using" | "gt" | "gte" | "lt" | "lte")
            }
            Some(c) => c.is_ascii_digit(),
            None => false,
        }
    }

    /// `name =`, which belongs to the tag around.
    fn begins_assignment(&mut self) -> bool {
        let at = self.at;
        let is = !self.peek_name().is_empty()
            && self.name().is_ok()
            && self.take("=")
            && !self.rest().starts_with('=');
        self.at = at;
        is
    }

    fn primary(&mut self) -> Parsed<Expr> {
        self.skip();
        let place = self.place();
        let rest = self.rest();
        let kind = match rest.chars().next() {
            Some('"' | '\'') => self.string(false)?,
            Some('r') if rest[1..].starts_with(['"', '\'']) => {
                self.at += 1;
                self.string(true)?
            }
            Some(c) if c.is_ascii_digit() => {
                let mut end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                let fraction = &rest[end..];
                if fraction.starts_with('.') && fraction[1..].starts_with(|c: char| c.is_ascii_digit()) {
                    end +=
                        1 + fraction[1..].find(|c: char| !c.is_ascii_digit()).unwrap_or(fraction.len() - 1);
                }
                match Number::parse(&rest[..end]) {
                    Some(number) => {
                        self.at += end;
                        ExprKind::Number(number)
                    }
                    None => return self.error("this number is too large"),
                }
            }
            Some('(') => {
                self.at += 1;
                let inner = self.bracketed(Self::expression)?;
                self.expect(")")?;
                ExprKind::Paren(Box::new(inner))
            }
            Some('[') => {
                self.at += 1;
                ExprKind::List(self.arguments("]")?)
            }
            Some('{') => {
                self.at += 1;
                self.hash()?
            }
            Some('.') => {
                self.at += 1;
                self.special()?
            }
            Some(c) if is_name_start(c) || c == '\\' => {
                let name = self.name()?;
                match &*name {
                    "true" => ExprKind::Boolean(true),
                    "false" => ExprKind::Boolean(false),
                    "gt" | "gte" | "lt" | "lte" | "as" | "in" | "using" => {
                        return Err(Error::new(format!("expected an expression, found `{name}`"), place));
                    }
                    _ => ExprKind::Variable(name),
                }
            }
            _ => {
                let found = self.found();
                return self.error(format!("expected an expression, found {found}"));
            }
        };
        Ok(Expr { kind, place })
    }

    fn hash(&mut self) -> Parsed<ExprKind> {
        self.bracketed(|cursor| {
            let mut members = Vec::new();
            while !cursor.take("}") {
                let key = cursor.expression()?;
                if !cursor.take(":") {
                    cursor.expect(",")?;
                }
                members.push((key, cursor.expression()?));
                if !cursor.take(",") {
                    cursor.expect("}")?;
                    break;
                }
            }
            Ok(ExprKind::Hash(members))
        })
    }

    fn special(&mut self) -> Parsed<ExprKind> {
        let at = self.at;
        let name = self.name()?;
        Ok(ExprKind::Special(match &*built_in::snake(&name) {
            "now" => Special::Now,
            "data_model" | "vars" | "globals" | "main" | "locals" | "namespace" => Special::Variables,
            "error" => Special::Error,
            "locale" => Special::Locale,
            "lang" => Special::Lang,
            "version" => Special::Version,
            "template_name" | "main_template_name" | "current_template_name" => Special::TemplateName,
            "output_format" => Special::OutputFormat,
            "auto_esc" => Special::AutoEscape,
            _ => {
                return Err(Error::new(format!("there is no special variable `.{name}`"), self.place_of(at)));
            }
        }))
    }

    /// A string literal.
    fn string(&mut self, raw: bool) -> Parsed<ExprKind> {
        let place = self.place();
        let quote = if self.rest().starts_with('"') { '"' } else { '\'' };
        let mut chars = self.rest().char_indices().skip(1);
        let mut out = String::new();
        let mut end = None;
        while let Some((at, c)) = chars.next() {
            if c == quote {
                end = Some(at + 1);
                break;
            }
            if c != '\\' || raw {
                out.push(c);
                continue;
            }
            let Some((_, escaped)) = chars.next() else { break };
            out.push(match escaped {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'f' => '\u{c}',
                'b' => '\u{8}',
                'g' => '>',
                'l' => '<',
                'a' => '&',
                '{' => BRACE,
                '"' | '\'' | '\\' | '=' => escaped,
                'x' => {
                    let digits: String =
                        chars.clone().map(|(_, c)| c).take(4).take_while(char::is_ascii_hexdigit).collect();
                    if !digits.is_empty() {
                        chars.nth(digits.len() - 1);
                    }
                    let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                    match code {
                        Some(code) => code,
                        None => return self.error("`\\x` needs the hexadecimal number of a character"),
                    }
                }
                _ => return self.error(format!("there is no escape `\\{escaped}` in a string")),
            });
        }
        let Some(end) = end else { return self.error("this string has no end") };
        self.at += end;
        if raw {
            return Ok(ExprKind::Text(out.into()));
        }
        let mut pieces = Vec::new();
        let mut rest = out.as_str();
        while let Some(at) = rest.find("${") {
            if at > 0 {
                pieces.push(Piece::Text(rest[..at].replace(BRACE, "{").into()));
            }
            let mut inner = Cursor { depth: self.depth, ..Cursor::new(&rest[at + 2..], place) };
            let expr = inner.expression();
            let expr = expr.and_then(|expr| inner.expect("}").map(|()| expr));
            pieces.push(Piece::Expr(expr.map_err(|error| Error { place, ..error })?));
            rest = &rest[at + 2 + inner.at..];
        }
        if pieces.is_empty() {
            return Ok(ExprKind::Text(rest.replace(BRACE, "{").into()));
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.replace(BRACE, "{").into()));
        }
        Ok(ExprKind::Parts(pieces))
    }
}

pub(crate) fn is_name_start(c: char) -> bool {
    c.is_alphabetic() || c == '_' || c == '$'
}

pub(crate) fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// Whether `.name` and `[…]` behind a built-in are its format.
fn takes_format(built_in: &str) -> bool {
    matches!(built_in, "string" | "date" | "time" | "datetime")
}
