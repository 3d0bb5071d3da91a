//! Parsing: the tags of a template, the white space around them, and the tree that they make.

mod builder;
mod lexer;
mod white_space;

use crate::ast::{Body, Error, Escape, Expr, Macro, MacroCall, Place, Scope, Target};
use crate::expression::{Cursor, Parsed};
use builder::Builder;
use lexer::Lexer;
use std::collections::HashMap;
use std::sync::Arc;
use white_space::strip_white_space;

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

impl Tag {
    /// Whether it has content, which a tag of its own closes.
    fn is_block(&self) -> bool {
        match self {
            Tag::If(_) | Tag::List(..) | Tag::Items(_) | Tag::Sep | Tag::Capture(..) | Tag::Macro { .. } => {
                true
            }
            Tag::Switch(_) | Tag::Attempt | Tag::Escape(..) | Tag::NoEscape | Tag::Compress => true,
            Tag::Escaping(_) | Tag::AutoEscape(_) => true,
            Tag::Call(_, empty) => !empty,
            _ => false,
        }
    }

    /// Whether it begins another part of the content that it stands in.
    fn is_branch(&self) -> bool {
        matches!(self, Tag::ElseIf(_) | Tag::Else | Tag::Case(_) | Tag::Default | Tag::Recover)
    }
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
    strip_white_space(&mut tokens, strip);
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
