//! The tags, texts and interpolations of a template, one after the other.

use super::{MAX_TOKENS, Placed, Tag, Token};
use crate::ast::{Arithmetic, Error, Escape, Expr, ExprKind, MacroCall, Place, Scope, Target};
use crate::expression::{Cursor, Parsed, is_name, is_name_start};
use std::sync::Arc;

pub(super) struct Lexer<'t> {
    pub(super) cursor: Cursor<'t>,
    pub(super) tokens: Vec<Placed>,
    pub(super) prefixes: Vec<(String, String)>,
    pub(super) strip: bool,
    pub(super) escape: Escape,
}

impl Lexer<'_> {
    pub(super) fn run(&mut self) -> Parsed<()> {
        loop {
            let rest = self.cursor.rest();
            let mut from = 0;
            let next = loop {
                let Some(at) = rest[from..].find(['<', '$', '#']).map(|at| from + at) else {
                    break rest.len();
                };
                let here = &rest[at..];
                let begins =
                    |mark: &str| here.strip_prefix(mark).is_some_and(|rest| rest.starts_with(is_name_start));
                if here.starts_with("${")
                    || here.starts_with("#{")
                    || here.starts_with("<#--")
                    || here.starts_with("</@")
                    || begins("<#")
                    || begins("</#")
                    || begins("<@")
                    || here.starts_with("<@.")
                {
                    break at;
                }
                from = at + 1;
            };
            if next > 0 {
                let text = rest[..next].to_owned();
                self.push(Token::Text(text), next)?;
            }
            let rest = self.cursor.rest();
            if rest.is_empty() {
                return Ok(());
            }
            self.token(rest)?;
        }
    }

    /// Adds a token that is so many bytes long.
    fn push(&mut self, token: Token, length: usize) -> Parsed<()> {
        let place = self.cursor.place();
        self.cursor.at += length;
        self.push_from(token, place)
    }

    /// Adds a token that has been read.
    fn push_from(&mut self, token: Token, place: Place) -> Parsed<()> {
        if self.tokens.len() >= MAX_TOKENS {
            return Err(Error::new(format!("the template has more than {MAX_TOKENS} tags"), place));
        }
        // Of what ends with a line break, the end is on the line before.
        let read = &self.cursor.text[..self.cursor.at];
        let last = read.char_indices().next_back().map_or(0, |(at, _)| at);
        let end = self.cursor.place_of(last).line;
        self.tokens.push(Placed { token, place, end });
        // Places are counted from what was read last.
        self.advance();
        Ok(())
    }

    /// Forgets what was read, so that places are not counted from the beginning each time.
    fn advance(&mut self) {
        let start = self.cursor.place();
        let rest = self.cursor.rest();
        self.cursor = Cursor::new(rest, start);
    }

    fn token(&mut self, rest: &str) -> Parsed<()> {
        let place = self.cursor.place();
        let error = |message: String| Err(Error::new(message, place));
        if rest.starts_with("${") || rest.starts_with("#{") {
            let number = rest.starts_with('#');
            self.cursor.at += 2;
            let inside = Error::new("`${` has no `}`", place);
            let expr = self.cursor.expression()?;
            let format = match number && self.cursor.take(";") {
                true => Some(digits(&mut self.cursor)?),
                false => None,
            };
            if !self.cursor.take("}") {
                self.cursor.skip();
                return match self.cursor.rest().is_empty() {
                    true => Err(inside),
                    false => self.cursor.expect("}"),
                };
            }
            let token = if number { Token::Number(expr, format) } else { Token::Output(expr) };
            return self.push_from(token, place);
        }
        if let Some(comment) = rest.strip_prefix("<#--") {
            let Some(end) = comment.find("-->") else { return error("this comment has no end".into()) };
            return self.push(Token::Nothing, end + 7);
        }
        if let Some(name) = rest.strip_prefix("</@") {
            let Some(end) = name.find('>') else { return error("this tag has no end".into()) };
            return self.push(Token::Close(String::new()), end + 4);
        }
        if let Some(name) = rest.strip_prefix("</#") {
            let Some(end) = name.find('>') else { return error("this tag has no end".into()) };
            let name = crate::built_in::snake(name[..end].trim()).into_owned();
            return self.push(Token::Close(name), end + 4);
        }
        if rest.starts_with("<@") {
            self.cursor.at += 2;
            let (call, empty) = self.call(place)?;
            return self.push_from(Token::Open(Tag::Call(Box::new(call), empty)), place);
        }
        let name = &rest[2..];
        let name = &name[..name.find(|c: char| !is_name(c)).unwrap_or(name.len())];
        self.cursor.at += 2 + name.len();
        self.directive(&crate::built_in::snake(name), name, place)
    }

    fn directive(&mut self, name: &str, written: &str, place: Place) -> Parsed<()> {
        let cursor = &mut self.cursor;
        let tag = match name {
            "if" => Tag::If(cursor.expression()?),
            "elseif" => Tag::ElseIf(cursor.expression()?),
            "else" => Tag::Else,
            "list" => {
                let source = cursor.expression()?;
                let mut names = Vec::new();
                if cursor.take_word("as") {
                    names.push(cursor.name()?);
                    if cursor.take(",") {
                        names.push(cursor.name()?);
                    }
                }
                Tag::List(source, names)
            }
            "foreach" | "for_each" => {
                let name = cursor.name()?;
                if !cursor.take_word("in") {
                    return cursor.error("expected `in`");
                }
                Tag::List(cursor.expression()?, vec![name])
            }
            "items" => {
                if !cursor.take_word("as") {
                    return cursor.error("expected `as`");
                }
                let mut names = vec![cursor.name()?];
                if cursor.take(",") {
                    names.push(cursor.name()?);
                }
                Tag::Items(names)
            }
            "sep" => Tag::Sep,
            "break" => Tag::Break,
            "continue" => Tag::Continue,
            "assign" | "local" | "global" => {
                let scope = match name {
                    "assign" => Scope::Namespace,
                    "local" => Scope::Local,
                    _ => Scope::Global,
                };
                self.assignment(scope)?
            }
            "macro" | "function" => self.macro_head(name == "function")?,
            "nested" => {
                let mut arguments = Vec::new();
                while !at_end(cursor) {
                    arguments.push(cursor.expression()?);
                    cursor.take(",");
                }
                Tag::Nested(arguments)
            }
            "return" => Tag::Return(if at_end(cursor) { None } else { Some(cursor.expression()?) }),
            "switch" => Tag::Switch(cursor.expression()?),
            "case" => {
                let mut values = vec![cursor.expression()?];
                while cursor.take(",") {
                    values.push(cursor.expression()?);
                }
                Tag::Case(values)
            }
            "default" => Tag::Default,
            "attempt" => Tag::Attempt,
            "recover" => Tag::Recover,
            "setting" => {
                let name = cursor.name()?;
                cursor.expect("=")?;
                Tag::Setting(crate::built_in::snake(&name).as_ref().into(), cursor.expression()?)
            }
            "stop" => Tag::Stop(if at_end(cursor) { None } else { Some(cursor.expression()?) }),
            "escape" => {
                let name = cursor.name()?;
                if !cursor.take_word("as") {
                    return cursor.error("expected `as`");
                }
                Tag::Escape(name, cursor.expression()?)
            }
            "noescape" | "no_escape" => Tag::NoEscape,
            "outputformat" | "output_format" => {
                let format = cursor.expression()?;
                let ExprKind::Text(format) = &format.kind else {
                    return Err(Error::new("the name of an output format is a string", format.place));
                };
                Tag::Escaping(escape_of(format).ok_or_else(|| unknown_format(format, place))?)
            }
            "autoesc" | "auto_esc" => Tag::AutoEscape(true),
            "noautoesc" | "no_auto_esc" => Tag::AutoEscape(false),
            "compress" => Tag::Compress,
            "flush" => Tag::Flush,
            "t" | "lt" | "rt" | "nt" => {
                let which = ["t", "lt", "rt", "nt"].into_iter().find(|mark| *mark == name).unwrap_or("t");
                self.end_of_tag()?;
                return self.push_from(Token::Trim(which), place);
            }
            "ftl" => return self.header(place),
            "comment" | "noparse" | "no_parse" => {
                self.end_of_tag()?;
                let end = format!("</#{written}>");
                let rest = self.cursor.rest();
                let Some(at) = rest.find(&end) else {
                    return Err(Error::new(format!("`<#{written}>` is not closed"), place));
                };
                let token = match name {
                    "comment" => Token::Nothing,
                    _ => Token::Text(rest[..at].to_owned()),
                };
                self.cursor.at += at + end.len();
                return self.push_from(token, place);
            }
            "include" | "import" => {
                return Err(Error::new(
                    format!("`<#{written}>` is not executable here: a template stands alone"),
                    place,
                ));
            }
            "visit" | "recurse" | "fallback" => {
                return Err(Error::new(
                    format!("`<#{written}>` is not executable here: use `<#list>`"),
                    place,
                ));
            }
            _ => return Err(Error::new(format!("there is no directive `<#{written}>`"), place)),
        };
        let empty = self.end_of_tag()?;
        let closes = empty && matches!(tag, Tag::Macro { .. } | Tag::Capture(..));
        self.push_from(Token::Open(tag), place)?;
        if closes {
            return Err(Error::new(format!("`<#{written}>` needs a content"), place));
        }
        Ok(())
    }

    /// `>` or `/>`; whether it is the latter.
    fn end_of_tag(&mut self) -> Parsed<bool> {
        if self.cursor.take("/>") {
            return Ok(true);
        }
        self.cursor.expect(">").map(|()| false)
    }

    fn assignment(&mut self, scope: Scope) -> Parsed<Tag> {
        let cursor = &mut self.cursor;
        let mut assignments = Vec::new();
        loop {
            cursor.skip();
            let place = cursor.place();
            let quoted = cursor.rest().starts_with(['"', '\'']);
            let name: Arc<str> = match quoted {
                true => match cursor.expression()?.kind {
                    ExprKind::Text(name) => name,
                    _ => return Err(Error::new("the name of a variable is a name", place)),
                },
                false => cursor.name()?,
            };
            if cursor.take_word("in") {
                return Err(Error::new("there are no namespaces here: a template stands alone", place));
            }
            if assignments.is_empty() && at_end(cursor) {
                return Ok(Tag::Capture(scope, name));
            }
            let one = || Expr { kind: ExprKind::Number(crate::number::Number::int(1)), place };
            let with = |arithmetic| Target { name: Arc::clone(&name), with: arithmetic, place };
            assignments.push(if cursor.take("++") {
                (with(Some(Arithmetic::Add)), one())
            } else if cursor.take("--") {
                (with(Some(Arithmetic::Subtract)), one())
            } else {
                let arithmetic = [
                    ("+=", Arithmetic::Add),
                    ("-=", Arithmetic::Subtract),
                    ("*=", Arithmetic::Multiply),
                    ("/=", Arithmetic::Divide),
                    ("%=", Arithmetic::Modulo),
                ]
                .into_iter()
                .find(|(mark, _)| cursor.take(mark));
                if arithmetic.is_none() {
                    cursor.expect("=")?;
                }
                (with(arithmetic.map(|(_, operator)| operator)), cursor.expression()?)
            });
            cursor.take(",");
            if at_end(cursor) {
                return Ok(Tag::Assign(scope, assignments));
            }
        }
    }

    fn macro_head(&mut self, function: bool) -> Parsed<Tag> {
        let cursor = &mut self.cursor;
        cursor.skip();
        let name = match cursor.rest().starts_with(['"', '\'']) {
            true => match cursor.expression()?.kind {
                ExprKind::Text(name) => name,
                _ => return cursor.error("the name of a macro is a name"),
            },
            false => cursor.name()?,
        };
        let bracket = cursor.take("(");
        let (mut parameters, mut rest) = (Vec::new(), None);
        while !(at_end(cursor) || bracket && cursor.take(")")) {
            let parameter = cursor.name()?;
            if cursor.take("...") {
                rest = Some(parameter);
            } else {
                let default = if cursor.take("=") { Some(cursor.expression()?) } else { None };
                parameters.push((parameter, default));
            }
            cursor.take(",");
        }
        Ok(Tag::Macro { name, parameters, rest, function })
    }

    fn call(&mut self, place: Place) -> Parsed<(MacroCall, bool)> {
        let cursor = &mut self.cursor;
        // A name, perhaps with points in it.
        cursor.skip();
        let start = cursor.place();
        let mut target = Expr { kind: ExprKind::Variable(cursor.name()?), place: start };
        while cursor.rest().starts_with('.') {
            cursor.at += 1;
            target = Expr { kind: ExprKind::Dot(Box::new(target), cursor.name()?), place: start };
        }
        let mut call = MacroCall {
            target,
            named: Vec::new(),
            positional: Vec::new(),
            loop_variables: Vec::new(),
            body: None,
            place,
        };
        while !at_end(cursor) {
            if cursor.take(";") {
                while !at_end(cursor) {
                    call.loop_variables.push(cursor.name()?);
                    cursor.take(",");
                }
                break;
            }
            let at = cursor.at;
            if cursor.rest().starts_with(is_name_start)
                && let Ok(name) = cursor.name()
                && cursor.take("=")
                && !cursor.rest().starts_with('=')
            {
                call.named.push((name, cursor.expression()?));
            } else {
                cursor.at = at;
                call.positional.push(cursor.expression()?);
            }
            cursor.take(",");
        }
        if !call.named.is_empty() && !call.positional.is_empty() {
            return Err(Error::new("arguments are either all named or none", place));
        }
        let empty = self.end_of_tag()?;
        Ok((call, empty))
    }

    /// `<#ftl …>`.
    fn header(&mut self, place: Place) -> Parsed<()> {
        let first = self.tokens.iter().all(|token| match &token.token {
            Token::Text(text) => text.trim().is_empty(),
            _ => false,
        });
        if !first {
            return Err(Error::new("`<#ftl>` stands at the beginning of a template", place));
        }
        self.tokens.clear();
        while !at_end(&mut self.cursor) {
            let name = self.cursor.name()?;
            self.cursor.expect("=")?;
            let value = self.cursor.expression()?;
            match (&*crate::built_in::snake(&name), value.kind) {
                ("ns_prefixes", ExprKind::Hash(members)) => {
                    for (prefix, uri) in members {
                        let (ExprKind::Text(prefix), ExprKind::Text(uri)) = (prefix.kind, uri.kind) else {
                            return Err(Error::new("prefixes and namespaces are strings", value.place));
                        };
                        self.prefixes.push((prefix.to_string(), uri.to_string()));
                    }
                }
                ("strip_whitespace", ExprKind::Boolean(strip)) => self.strip = strip,
                ("output_format", ExprKind::Text(format)) => {
                    self.escape = escape_of(&format).ok_or_else(|| unknown_format(&format, value.place))?;
                }
                ("auto_esc", ExprKind::Boolean(false)) => self.escape = Escape::None,
                ("auto_esc" | "strip_text" | "encoding" | "strict_syntax" | "attributes", _) => {}
                (other, _) => {
                    return Err(Error::new(
                        format!("`<#ftl>` has no parameter `{other}` of this type"),
                        place,
                    ));
                }
            }
        }
        self.end_of_tag()?;
        self.push_from(Token::Nothing, place)
    }
}

fn escape_of(format: &str) -> Option<Escape> {
    match format {
        "XML" | "XHTML" => Some(Escape::Xml),
        "HTML" => Some(Escape::Html),
        "JSON" | "JavaScript" | "plainText" | "undefined" | "CSS" | "RTF" => Some(Escape::None),
        _ => None,
    }
}

fn unknown_format(format: &str, place: Place) -> Error {
    Error::new(format!("there is no output format `{format}`"), place)
}

/// `m2M4` behind `#{…;`.
fn digits(cursor: &mut Cursor<'_>) -> Parsed<(u32, u32)> {
    let format = cursor.name()?;
    let number = |mark: char| -> Option<Option<u32>> {
        let Some(at) = format.find(mark) else { return Some(None) };
        let digits: String = format[at + 1..].chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok().filter(|&n| n <= 50).map(Some)
    };
    match (number('m'), number('M')) {
        (Some(least), Some(most)) if least.is_some() || most.is_some() => {
            let least = least.unwrap_or(0);
            Ok((least, most.unwrap_or(least).max(least)))
        }
        _ => cursor.error(format!("`{format}` is not a format of a number: expected m2, M2 or m1M2")),
    }
}

fn at_end(cursor: &mut Cursor<'_>) -> bool {
    cursor.skip();
    let rest = cursor.rest();
    rest.is_empty() || rest.starts_with('>') || rest.starts_with("/>")
}
