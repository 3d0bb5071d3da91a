//! What a template is made of.

use crate::number::Number;

use std::sync::Arc;

/// A place in a template, counted from 1; 0: unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The character in it.
    pub column: u32,
}

/// What is wrong with a template, or with filling it in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// One sentence.
    pub message: String,
    /// Where.
    pub place: Place,
    /// Something that the template reads is not there: what `!` and `??` ask for.
    pub(crate) missing: bool,
    /// A limit was hit, or `<#stop>`: `<#attempt>` does not go on behind it.
    pub(crate) fatal: bool,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>, place: Place) -> Error {
        Error { message: message.into(), place, missing: false, fatal: false }
    }

    pub(crate) fn fatal(message: impl Into<String>, place: Place) -> Error {
        Error { fatal: true, ..Error::new(message, place) }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// An expression with its place.
#[derive(Debug)]
pub(crate) struct Expr {
    pub kind: ExprKind,
    pub place: Place,
}

#[derive(Debug)]
pub(crate) enum ExprKind {
    Text(Arc<str>),
    /// A string with `${…}` in it.
    Parts(Vec<Piece>),
    Number(Number),
    Boolean(bool),
    List(Vec<Expr>),
    Hash(Vec<(Expr, Expr)>),
    Variable(Arc<str>),
    /// `.now` and the like.
    Special(Special),
    /// `a.b`; the name may also be `*`, `**` or begin with `@`.
    Dot(Box<Expr>, Arc<str>),
    /// `a[b]`.
    Index(Box<Expr>, Box<Expr>),
    /// `a(b, c)`: a function of the template.
    Call(Box<Expr>, Vec<Expr>),
    /// `a?b` and `a?b(c)`.
    BuiltIn(Box<Expr>, BuiltIn, Vec<Expr>),
    /// `x -> e`, as the argument of a built-in.
    Lambda(Vec<Arc<str>>, Box<Expr>),
    /// `a!` and `a!b`.
    Default(Box<Expr>, Option<Box<Expr>>),
    /// `a??`.
    Exists(Box<Expr>),
    /// An interpolation within `<#escape x as e>`: `e`, in which `x` stands for it.
    Escaped(Arc<str>, Arc<Expr>, Box<Expr>),
    /// `(a)`: inside of it everything may be missing for `!` and `??`.
    Paren(Box<Expr>),
    Not(Box<Expr>),
    Negate(Box<Expr>),
    Plus(Box<Expr>),
    Arithmetic(Arithmetic, Box<Expr>, Box<Expr>),
    Compare(Compare, Box<Expr>, Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Range(Box<Expr>, RangeEnd, Option<Box<Expr>>),
}

/// A built-in, by its number in [`crate::built_in::NAMES`].
pub(crate) type BuiltIn = &'static str;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    Now,
    /// `.data_model`, `.vars`, `.globals`, `.main`, `.locals`, `.namespace`.
    Variables,
    /// The message of the error that `<#recover>` goes on behind.
    Error,
    Locale,
    Lang,
    Version,
    TemplateName,
    OutputFormat,
    AutoEscape,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RangeEnd {
    /// `a..b`, and `a..` without an end.
    Inclusive,
    /// `a..<b`.
    Exclusive,
    /// `a..*n`.
    Length,
}

/// A part of a string literal.
#[derive(Debug)]
pub(crate) enum Piece {
    Text(Arc<str>),
    Expr(Expr),
}

pub(crate) type Body = Vec<Node>;

/// A part of a template.
#[derive(Debug)]
pub(crate) enum Node {
    Text(Arc<str>),
    /// `${e}`.
    Output(Expr),
    /// `#{e; m0M2}`: least and most digits of the fraction.
    Number(Expr, Option<(u32, u32)>),
    If(Vec<(Expr, Body)>, Body),
    List(Box<List>),
    /// `<#items as x>` inside of a list without a loop variable.
    Items(Vec<Arc<str>>, Body, Place),
    Sep(Body),
    Break,
    Continue,
    Assign(Scope, Vec<(Target, Expr)>),
    /// `<#assign x>…</#assign>`.
    Capture(Scope, Arc<str>, Body),
    Nested(Vec<Expr>, Place),
    Return(Option<Expr>),
    Call(Box<MacroCall>),
    Switch(Expr, Vec<(Option<Vec<Expr>>, Body)>),
    Attempt(Body, Body),
    Setting(Arc<str>, Expr),
    Stop(Option<Expr>, Place),
    /// `<#outputformat>`, `<#autoesc>`: how what is written inside is escaped; `None`: as around it.
    Escaping(Option<Escape>, Body),
    Compress(Body),
}

/// How `${…}` is escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escape {
    None,
    Xml,
    Html,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Namespace,
    Local,
    Global,
}

/// The left side of an assignment.
#[derive(Debug)]
pub(crate) struct Target {
    pub name: Arc<str>,
    /// `+=` and the like.
    pub with: Option<Arithmetic>,
    pub place: Place,
}

#[derive(Debug)]
pub(crate) struct List {
    pub source: Expr,
    /// None: `<#items>` names them. Two: of a hash.
    pub names: Vec<Arc<str>>,
    pub body: Body,
    pub otherwise: Body,
}

/// A macro or function.
#[derive(Debug)]
pub(crate) struct Macro {
    pub name: Arc<str>,
    pub parameters: Vec<(Arc<str>, Option<Expr>)>,
    /// `rest...`.
    pub rest: Option<Arc<str>>,
    pub body: Body,
    pub function: bool,
}

#[derive(Debug)]
pub(crate) struct MacroCall {
    pub target: Expr,
    pub named: Vec<(Arc<str>, Expr)>,
    pub positional: Vec<Expr>,
    /// `; x, y`.
    pub loop_variables: Vec<Arc<str>>,
    pub body: Option<Body>,
    pub place: Place,
}
