//! Parsing: the tags of a template, the white space around them, and the tree that they make.

use crate::ast::{
    Arithmetic, Body, Error, Escape, Expr, Kind, List, Macro, MacroCall, Node, Place, Scope, Target,
};
use crate::expression::{Cursor, MAX_NESTING, Parsed, is_name, is_name_start};
use std::collections::HashMap;

use std::sync::Arc;

/// Most tags and interpolations of a template.
const MAX_TOKENS: usize = 50_000;

/// A parsed template.
#[derive(Debug)]
pub(crate) struct Parsing {
    pub body: Body,
    pub macros: HashMap<Arc<str>, Arc<Macro>>,
    /// `<#ftl ns_prefixes={…}>`: prefix and namespace.
    pub prefixes: Vec<(String, String)>,
    pub escape: Escape,
}

/// A tag, text or interpolation, one after the other.
enum Token {
    Text(String),
    Output(Expr),
    Number(Expr, Option<(u32, u32)>),
    Open(Tag),
    /// `</#name>`, or `</@name>` with an empty name.
    Close(String),
    /// What leaves nothing: a comment.
    Nothing,
    /// `<#t>`, `<#lt>`, `<#rt>`, `<#nt>`.
    Trim(&'static str),
}

enum Tag {
    If(Expr),
    ElseIf(Expr),
    Else,
    List(Expr, Vec<Arc<str>>),
    Items(Vec<Arc<str>>),
    Sep,
    Break,
    Continue,
    Assign(Scope, Vec<(Target, Expr)>),
    Capture(Scope, Arc<str>),
    Macro {
        name: Arc<str>,
        parameters: Vec<(Arc<str>, Option<Expr>)>,
        rest: Option<Arc<str>>,
        function: bool,
    },
    Nested(Vec<Expr>),
    Return(Option<Expr>),
    Call(Box<MacroCall>, bool),
    Switch(Expr),
    Case(Vec<Expr>),
    Default,
    Attempt,
    Recover,
    Setting(Arc<str>, Expr),
    Stop(Option<Expr>),
    Escape(Arc<str>, Expr),
    NoEscape,
    Escaping(Escape),
    AutoEscape(bool),
    Compress,
    Flush,
}

struct Placed {
    token: Token,
    place: Place,
    /// The line that it ends on.
    end: u32,
}

/// Parses a template.
pub(crate) fn parse(text: &str) -> Parsed<Parsing> {
    let mut lexer = Lexer {
        cursor: Cursor::new(text, Place { line: 1, column: 1 }),
        tokens: Vec::new(),
        prefixes: Vec::new(),
        strip: true,
        escape: Escape::None,
    };
    lexer.run()?;
    let Lexer { mut tokens, prefixes, strip, escape, cursor } = lexer;
    if strip {
        strip_white_space(&mut tokens);
    }
    trim(&mut tokens);
    let end = cursor.place();
    let mut builder = Builder {
        tokens: tokens.into_iter().peekable(),
        macros: HashMap::new(),
        escapes: Vec::new(),
        inside: Vec::new(),
        end,
        depth: 0,
    };
    let body = builder.body(&[])?;
    if let Some(left) = builder.tokens.next() {
        return Err(Error::new("this tag closes nothing", left.place));
    }
    Ok(Parsing { body, macros: builder.macros, prefixes, escape })
}

struct Lexer<'t> {
    cursor: Cursor<'t>,
    tokens: Vec<Placed>,
    prefixes: Vec<(String, String)>,
    strip: bool,
    escape: Escape,
}

impl Lexer<'_> {
    fn run(&mut self) -> Parsed<()> {
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
                let Kind::Text(format) = &format.kind else {
                    return Err(Error::new("the name of an output format is a string", format.place));
                };
                Tag::Escaping(escape_of(format).ok_or_else(|| unknown_format(format, place))?)
            }
            "autoesc" | "auto_esc" => Tag::AutoEscape(true),
            "noautoesc" | "no_auto_esc" => Tag::AutoEscape(false),
            "compress" => Tag::Compress,
            "flush" => Tag::Flush,
            "t" | "lt" | "rt" | "nt" => {
                let which = ["t", "lt", "rt", "nt"].into_iter().find(|own| *own == name).unwrap_or("t");
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
                let text = rest[..at].to_owned();
                self.push_from(Token::Nothing, place)?;
                let token = if name == "comment" { Token::Nothing } else { Token::Text(text) };
                self.push(token, at)?;
                return self.push(Token::Nothing, end.len());
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
        let mut all = Vec::new();
        loop {
            cursor.skip();
            let place = cursor.place();
            let quoted = cursor.rest().starts_with(['"', '\'']);
            let name: Arc<str> = match quoted {
                true => match cursor.expression()?.kind {
                    Kind::Text(name) => name,
                    _ => return Err(Error::new("the name of a variable is a name", place)),
                },
                false => cursor.name()?,
            };
            if cursor.take_word("in") {
                return Err(Error::new("there are no namespaces here: a template stands alone", place));
            }
            if all.is_empty() && at_end(cursor) {
                return Ok(Tag::Capture(scope, name));
            }
            let one = || Expr { kind: Kind::Number(crate::number::Number::int(1)), place };
            let with = |arithmetic| Target { name: Arc::clone(&name), with: arithmetic, place };
            all.push(if cursor.take("++") {
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
                (with(arithmetic.map(|(_, own)| own)), cursor.expression()?)
            });
            cursor.take(",");
            if at_end(cursor) {
                return Ok(Tag::Assign(scope, all));
            }
        }
    }

    fn macro_head(&mut self, function: bool) -> Parsed<Tag> {
        let cursor = &mut self.cursor;
        cursor.skip();
        let name = match cursor.rest().starts_with(['"', '\'']) {
            true => match cursor.expression()?.kind {
                Kind::Text(name) => name,
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
        let mut target = Expr { kind: Kind::Variable(cursor.name()?), place: start };
        while cursor.rest().starts_with('.') {
            cursor.at += 1;
            target = Expr { kind: Kind::Dot(Box::new(target), cursor.name()?), place: start };
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
        let first = self.tokens.iter().all(|own| match &own.token {
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
                ("ns_prefixes", Kind::Hash(members)) => {
                    for (prefix, uri) in members {
                        let (Kind::Text(prefix), Kind::Text(uri)) = (prefix.kind, uri.kind) else {
                            return Err(Error::new("prefixes and namespaces are strings", value.place));
                        };
                        self.prefixes.push((prefix.to_string(), uri.to_string()));
                    }
                }
                ("strip_whitespace", Kind::Boolean(strip)) => self.strip = strip,
                ("output_format", Kind::Text(format)) => {
                    self.escape = escape_of(&format).ok_or_else(|| unknown_format(&format, value.place))?;
                }
                ("auto_esc", Kind::Boolean(false)) => self.escape = Escape::None,
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
        _ => cursor.error(format!("`{format}` is no format of a number: expected m2, M2 or m1M2")),
    }
}

fn at_end(cursor: &mut Cursor<'_>) -> bool {
    cursor.skip();
    let rest = cursor.rest();
    rest.is_empty() || rest.starts_with('>') || rest.starts_with("/>")
}

/// Takes the white space and the line break of lines that consist of tags.
fn strip_white_space(tokens: &mut [Placed]) {
    /// Whether a token leaves the line to tags, seen from a tag on the left (`true`) or right of it.
    fn is_blank(text: &str, from_left: bool) -> bool {
        let part = if from_left { text.split('\n').next() } else { text.rsplit('\n').next() };
        part.unwrap_or("").trim().is_empty()
    }
    let leaves = |own: &Placed, from_left: bool| match &own.token {
        Token::Text(text) => is_blank(text, from_left),
        Token::Output(_) | Token::Number(..) => false,
        // These keep what they stand in.
        Token::Trim("nt") => false,
        _ => true,
    };
    let is_tag = |own: &Placed| !matches!(own.token, Token::Text(_) | Token::Output(_) | Token::Number(..));
    // For each text: how much of its beginning and of its end goes.
    let mut cuts = Vec::new();
    for at in 0..tokens.len() {
        let Token::Text(text) = &tokens[at].token else { continue };
        let first_line = text.find('\n').map(|newline| newline + 1);
        let last_line = text.rfind('\n').map_or(0, |newline| newline + 1);
        let mut front = 0;
        let line = tokens[at].place.line;
        if let Some(end) = first_line
            && text[..end].trim().is_empty()
        {
            // Back along the line: tags only, and at least one.
            let mut tag = false;
            let mut all = true;
            for before in tokens[..at].iter().rev() {
                if before.end != line {
                    break;
                }
                all &= leaves(before, false);
                tag |= is_tag(before);
                let breaks = matches!(&before.token, Token::Text(text) if text.contains('\n'));
                if !all || breaks || before.place.line != line {
                    break;
                }
            }
            if tag && all {
                front = end;
            }
        }
        let mut back = 0;
        let starts_line = text.contains('\n') || tokens[at].place.column == 1;
        if starts_line && !text[last_line..].is_empty() && text[last_line..].trim().is_empty() {
            let line = line + text.matches('\n').count() as u32;
            let mut tag = false;
            let mut all = true;
            for behind in &tokens[at + 1..] {
                if behind.place.line != line {
                    break;
                }
                all &= leaves(behind, true);
                tag |= is_tag(behind);
                let breaks = matches!(&behind.token, Token::Text(text) if text.contains('\n'));
                if !all || breaks || behind.end != line {
                    break;
                }
            }
            if tag && all {
                back = text.len() - last_line;
            }
        }
        if front + back > 0 {
            cuts.push((at, front, back));
        }
    }
    for (at, front, back) in cuts {
        if let Token::Text(text) = &mut tokens[at].token {
            let end = (text.len() - back).max(front);
            *text = text[front..end].to_owned();
        }
    }
}

/// Carries `<#t>`, `<#lt>` and `<#rt>` out: the white space at the beginning and end of their line goes.
fn trim(tokens: &mut [Placed]) {
    let marks: Vec<(usize, &'static str)> = tokens
        .iter()
        .enumerate()
        .filter_map(|(at, own)| match own.token {
            Token::Trim(which) => Some((at, which)),
            _ => None,
        })
        .collect();
    for (mark, which) in marks {
        let line = tokens[mark].place.line;
        if matches!(which, "t" | "lt") {
            // The first text of the line.
            for at in (0..mark).rev() {
                let (start, end) = (tokens[at].place.line, tokens[at].end);
                if let Token::Text(text) = &mut tokens[at].token {
                    let from = text.rfind('\n').map_or(0, |newline| newline + 1);
                    let begins = from > 0 || at == 0 || start < line;
                    if begins {
                        let kept = text[from..].trim_start().to_owned();
                        text.truncate(from);
                        text.push_str(&kept);
                        break;
                    }
                }
                if start < line && end < line {
                    break;
                }
            }
        }
        if matches!(which, "t" | "rt") {
            for own in &mut tokens[mark + 1..] {
                if own.place.line != line {
                    break;
                }
                if let Token::Text(text) = &mut own.token
                    && let Some(newline) = text.find('\n')
                {
                    let kept = text[..newline].trim_end().to_owned();
                    *text = kept + &text[newline + 1..];
                    break;
                }
            }
        }
    }
}

struct Builder<I: Iterator<Item = Placed>> {
    tokens: std::iter::Peekable<I>,
    macros: HashMap<Arc<str>, Arc<Macro>>,
    /// Open `<#escape>`s.
    escapes: Vec<(Arc<str>, Arc<Expr>)>,
    /// The tags around, for those that stand only in some.
    inside: Vec<&'static str>,
    end: Place,
    depth: usize,
}

impl<I: Iterator<Item = Placed>> Builder<I> {
    /// Nodes up to a tag that ends them, which is left for the caller. `ends`: names of closing tags, and of tags that
    /// stand between.
    fn body(&mut self, ends: &[&str]) -> Parsed<Body> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return Err(Error::new(format!("tags nest deeper than {MAX_NESTING}"), self.place()));
        }
        let mut body = Body::new();
        while let Some(next) = self.tokens.peek() {
            let name = match &next.token {
                Token::Close(name) => Some(name.as_str()),
                Token::Open(Tag::ElseIf(_)) => Some("elseif"),
                Token::Open(Tag::Else) => Some("else"),
                Token::Open(Tag::Case(_)) => Some("case"),
                Token::Open(Tag::Default) => Some("default"),
                Token::Open(Tag::Recover) => Some("recover"),
                _ => None,
            };
            if let Some(name) = name {
                if ends.contains(&name) || name == "sep" && self.inside.last() == Some(&"sep") {
                    break;
                }
                // The end of what is around ends `<#sep>` as well; other ends have no beginning.
                if self.inside.last() == Some(&"sep") && matches!(name, "list" | "items" | "foreach" | "else")
                {
                    break;
                }
                let shown = match &next.token {
                    Token::Close(name) if name.is_empty() => "</@…>".to_owned(),
                    Token::Close(name) => format!("</#{name}>"),
                    _ => format!("<#{name}>"),
                };
                return Err(Error::new(format!("`{shown}` has no beginning"), next.place));
            }
            let Some(Placed { token, place, .. }) = self.tokens.next() else { break };
            match token {
                Token::Text(text) if text.is_empty() => {}
                Token::Text(text) => body.push(Node::Text(text.into())),
                Token::Output(expr) => body.push(Node::Output(self.escaped(expr))),
                Token::Number(expr, format) => body.push(Node::Number(expr, format)),
                Token::Open(tag) => self.tag(tag, place, &mut body)?,
                Token::Close(_) | Token::Nothing | Token::Trim(_) => {}
            }
        }
        self.depth -= 1;
        Ok(body)
    }

    fn place(&mut self) -> Place {
        self.tokens.peek().map_or(self.end, |own| own.place)
    }

    /// An interpolation within `<#escape>`s: the innermost is applied first.
    fn escaped(&self, mut expr: Expr) -> Expr {
        for (name, escape) in self.escapes.iter().rev() {
            let place = expr.place;
            expr = Expr { kind: Kind::Escaped(Arc::clone(name), Arc::clone(escape), Box::new(expr)), place };
        }
        expr
    }

    /// Takes the closing tag.
    fn close(&mut self, names: &[&str], opened: Place) -> Parsed<()> {
        match self.tokens.next() {
            Some(Placed { token: Token::Close(name), .. }) if names.contains(&name.as_str()) => Ok(()),
            Some(other) => Err(Error::new(format!("expected `</#{}>`", names[0]), other.place)),
            None => Err(Error::new(format!("`<#{}>` is not closed", names[0]), opened)),
        }
    }

    fn within<T>(&mut self, name: &'static str, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.inside.push(name);
        let parsed = parse(self)?;
        self.inside.pop();
        Ok(parsed)
    }

    fn tag(&mut self, tag: Tag, place: Place, body: &mut Body) -> Parsed<()> {
        let inside = |own: &Self, names: &[&str], what: &str| match own
            .inside
            .iter()
            .any(|name| names.contains(name))
        {
            true => Ok(()),
            false => Err(Error::new(format!("`<#{what}>` stands outside of {}", names.join(", ")), place)),
        };
        match tag {
            Tag::If(test) => {
                let ends = ["elseif", "else", "if"];
                let mut branches = vec![(test, self.within("if", |own| own.body(&ends))?)];
                let mut otherwise = Body::new();
                loop {
                    match self.tokens.peek().map(|next| &next.token) {
                        Some(Token::Open(Tag::ElseIf(_))) => {
                            if let Some(Placed { token: Token::Open(Tag::ElseIf(test)), .. }) =
                                self.tokens.next()
                            {
                                branches.push((test, self.within("if", |own| own.body(&ends))?));
                            }
                        }
                        Some(Token::Open(Tag::Else)) => {
                            self.tokens.next();
                            otherwise = self.within("if", |own| own.body(&["if"]))?;
                        }
                        _ => break,
                    }
                }
                self.close(&["if"], place)?;
                body.push(Node::If(branches, otherwise));
            }
            Tag::List(source, names) => {
                let ends = ["else", "list", "foreach"];
                let inner = self.within("list", |own| own.body(&ends))?;
                let mut otherwise = Body::new();
                if matches!(self.tokens.peek().map(|next| &next.token), Some(Token::Open(Tag::Else))) {
                    self.tokens.next();
                    otherwise = self.within("else", |own| own.body(&["list", "foreach"]))?;
                }
                self.close(&["list", "foreach"], place)?;
                body.push(Node::List(Box::new(List { source, names, body: inner, otherwise })));
            }
            Tag::Items(names) => {
                inside(self, &["list"], "items")?;
                let inner = self.within("items", |own| own.body(&["items"]))?;
                self.close(&["items"], place)?;
                body.push(Node::Items(names, inner, place));
            }
            Tag::Sep => {
                inside(self, &["list", "items"], "sep")?;
                let inner = self.within("sep", |own| own.body(&["sep"]))?;
                if matches!(self.tokens.peek().map(|next| &next.token), Some(Token::Close(name)) if name == "sep")
                {
                    self.tokens.next();
                }
                body.push(Node::Sep(inner));
            }
            Tag::Break => {
                inside(self, &["list", "items", "switch"], "break")?;
                body.push(Node::Break);
            }
            Tag::Continue => {
                inside(self, &["list", "items"], "continue")?;
                body.push(Node::Continue);
            }
            Tag::Assign(scope, all) => {
                if scope == Scope::Local {
                    inside(self, &["macro", "function"], "local")?;
                }
                body.push(Node::Assign(scope, all));
            }
            Tag::Capture(scope, name) => {
                let which = match scope {
                    Scope::Namespace => "assign",
                    Scope::Local => "local",
                    Scope::Global => "global",
                };
                let inner = self.within("capture", |own| own.body(&[which]))?;
                self.close(&[which], place)?;
                body.push(Node::Capture(scope, name, inner));
            }
            Tag::Macro { name, parameters, rest, function } => {
                if self.inside.iter().any(|own| matches!(*own, "macro" | "function")) {
                    return Err(Error::new("macros and functions cannot be defined in each other", place));
                }
                let which = if function { "function" } else { "macro" };
                let outer = std::mem::replace(&mut self.inside, vec![which]);
                let inner = self.body(&[which])?;
                self.inside = outer;
                self.close(&[which], place)?;
                // It is there from the start of the template; where it stands, nothing is written.
                let made = Macro { name: Arc::clone(&name), parameters, rest, body: inner, function };
                self.macros.insert(name, Arc::new(made));
            }
            Tag::Nested(arguments) => {
                inside(self, &["macro"], "nested")?;
                body.push(Node::Nested(arguments, place));
            }
            Tag::Return(value) => {
                inside(self, &["macro", "function"], "return")?;
                if value.is_none() != self.inside.contains(&"macro") {
                    let message = "a function returns a value, a macro none";
                    return Err(Error::new(message, place));
                }
                body.push(Node::Return(value));
            }
            Tag::Call(mut call, empty) => {
                if !empty {
                    call.body = Some(self.within("call", |own| own.body(&[""]))?);
                    self.close(&[""], place).map_err(|_| Error::new("this call is not closed", place))?;
                }
                body.push(Node::Call(call));
            }
            Tag::Switch(value) => {
                let mut cases: Vec<(Option<Vec<Expr>>, Body)> = Vec::new();
                let ends = ["case", "default", "switch"];
                // What stands before the first case is not written.
                self.within("switch", |own| own.body(&ends))?;
                while let Some(Token::Open(Tag::Case(_) | Tag::Default)) =
                    self.tokens.peek().map(|next| &next.token)
                {
                    let values = match self.tokens.next() {
                        Some(Placed { token: Token::Open(Tag::Case(values)), .. }) => Some(values),
                        _ => None,
                    };
                    if values.is_none() && cases.iter().any(|(values, _)| values.is_none()) {
                        return Err(Error::new("a switch has one default", self.place()));
                    }
                    cases.push((values, self.within("switch", |own| own.body(&ends))?));
                }
                self.close(&["switch"], place)?;
                body.push(Node::Switch(value, cases));
            }
            Tag::Attempt => {
                let inner = self.within("attempt", |own| own.body(&["recover", "attempt"]))?;
                let recover = match self.tokens.next() {
                    Some(Placed { token: Token::Open(Tag::Recover), .. }) => {
                        self.within("recover", |own| own.body(&["attempt", "recover"]))?
                    }
                    _ => return Err(Error::new("`<#attempt>` needs a `<#recover>`", place)),
                };
                self.close(&["attempt", "recover"], place)?;
                body.push(Node::Attempt(inner, recover));
            }
            Tag::Setting(name, value) => body.push(Node::Setting(name, value)),
            Tag::Stop(why) => body.push(Node::Stop(why, place)),
            Tag::Escape(name, expr) => {
                self.escapes.push((name, Arc::new(expr)));
                let inner = self.within("escape", |own| own.body(&["escape"]))?;
                self.escapes.pop();
                self.close(&["escape"], place)?;
                body.extend(inner);
            }
            Tag::NoEscape => {
                // The innermost `<#escape>` does not count inside.
                let last = self.escapes.pop();
                let inner = self.within("noescape", |own| own.body(&["noescape", "no_escape"]))?;
                self.escapes.extend(last);
                self.close(&["noescape", "no_escape"], place)?;
                body.extend(inner);
            }
            Tag::Escaping(escape) => {
                let inner =
                    self.within("outputformat", |own| own.body(&["outputformat", "output_format"]))?;
                self.close(&["outputformat", "output_format"], place)?;
                body.push(Node::Escaping(Some(escape), inner));
            }
            Tag::AutoEscape(on) => {
                let names: &[&str] =
                    if on { &["autoesc", "auto_esc"] } else { &["noautoesc", "no_auto_esc"] };
                let inner = self.within("autoesc", |own| own.body(names))?;
                self.close(names, place)?;
                let escape = if on { None } else { Some(Escape::None) };
                body.push(Node::Escaping(escape, inner));
            }
            Tag::Compress => {
                let inner = self.within("compress", |own| own.body(&["compress"]))?;
                self.close(&["compress"], place)?;
                body.push(Node::Compress(inner));
            }
            Tag::Flush => {}
            Tag::ElseIf(_) | Tag::Else | Tag::Case(_) | Tag::Default | Tag::Recover => {
                return Err(Error::new("this tag has no beginning", place));
            }
        }
        Ok(())
    }
}
