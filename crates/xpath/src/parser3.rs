//! The grammars of XPath 3.0 and 3.1 beyond that of 2.0: functions as values, maps, arrays, lookups.

use crate::ast::{Expr, ExprKind, ItemType, QName, SequenceType};
use crate::error::{Span, XPathError};
use crate::lexer::{Token, TokenKind};
use crate::options::Version;
use crate::parser::{MAX_DEPTH, Parsed, Parser, too_deep};

/// Deepest nesting of types in one another.
const MAX_TYPES: u32 = 32;

/// Names that a function reference cannot have.
fn is_reserved(name: &str) -> bool {
    crate::parser2::is_kind_test(name)
        || matches!(name, "function" | "if" | "map" | "array" | "switch" | "typeswitch" | "namespace-node")
}

impl<'s> Parser<'s> {
    /// Whether `name#` comes next.
    pub fn is_function_reference(&self) -> bool {
        self.version == Version::V31 && self.peek_after(1) == TokenKind::Punct("#")
    }

    /// Whether `map {` or `array {` comes next.
    pub fn is_constructor(&self) -> bool {
        self.version == Version::V31 && self.peek_after(1) == TokenKind::Punct("{")
    }

    /// An argument, possibly `?`.
    pub fn argument(&mut self) -> Parsed<Expr> {
        if self.version == Version::V31
            && self.is("?")
            && matches!(self.peek_after(1), TokenKind::Punct("," | ")"))
        {
            let span = self.next().span;
            return self.node(ExprKind::Placeholder, span, 0);
        }
        self.expr()
    }

    pub fn arguments(&mut self) -> Parsed<Vec<Expr>> {
        self.expect("(")?;
        let mut args = Vec::new();
        if !self.is(")") {
            args.push(self.argument()?);
            while self.eat(",") {
                args.push(self.argument()?);
            }
        }
        self.expect(")")?;
        Ok(args)
    }

    /// The postfix operators after a primary expression.
    pub fn postfix(&mut self, mut e: Expr) -> Parsed<Expr> {
        loop {
            if self.is("[") {
                let predicates = self.predicates()?;
                let below = predicates.iter().map(|p| p.depth).max().unwrap_or(0).max(e.depth);
                let span = e.span.to(self.last_span());
                e = self.node(ExprKind::Filter(Box::new(e), predicates), span, below)?;
            } else if self.is("(") {
                let args = self.arguments()?;
                e = self.applied(e, args)?;
            } else if self.eat("?") {
                e = self.lookup(e)?;
            } else {
                return Ok(e);
            }
        }
    }

    fn applied(&mut self, e: Expr, args: Vec<Expr>) -> Parsed<Expr> {
        let below = args.iter().map(|a| a.depth).max().unwrap_or(0).max(e.depth);
        let span = e.span.to(self.last_span());
        self.node(ExprKind::Apply(Box::new(e), args), span, below)
    }

    /// The key after a `?`.
    pub fn lookup(&mut self, e: Expr) -> Parsed<Expr> {
        let t = self.peek();
        let key = match t.kind {
            TokenKind::Punct("*") => {
                self.next();
                None
            }
            TokenKind::Name(name) => {
                self.next();
                Some(self.node(ExprKind::Literal(name.to_owned()), t.span, 0)?)
            }
            // A key is a name without a prefix, what follows is the colon of a map constructor: `map { $m?a:b }`. (The token of the
            // question mark is used up.)
            TokenKind::Prefixed(name, value) if !name.starts_with('{') && self.at > 0 => {
                self.tokens[self.at].kind = TokenKind::Name(value);
                self.at -= 1;
                self.tokens[self.at].kind = TokenKind::Punct(":");
                Some(self.node(ExprKind::Literal(name.to_owned()), t.span, 0)?)
            }
            TokenKind::Numeral(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
                self.next();
                Some(self.numeral(digits, t.span)?)
            }
            TokenKind::Punct("(") => {
                self.next();
                if self.eat(")") {
                    Some(self.node(ExprKind::Sequence(Vec::new()), t.span, 0)?)
                } else {
                    let key = self.whole()?;
                    self.expect(")")?;
                    Some(key)
                }
            }
            _ => {
                return Err(self.unexpected("a key: a name, an integer, `*` or an expression in parentheses"));
            }
        };
        let below = e.depth.max(key.as_ref().map_or(0, |k| k.depth));
        let span = e.span.to(self.last_span());
        self.node(ExprKind::Lookup(Box::new(e), key.map(Box::new)), span, below)
    }

    /// `[a, b]` after its bracket.
    pub fn square_array(&mut self, start: Span) -> Parsed<Expr> {
        let mut members = Vec::new();
        if !self.is("]") {
            members.push(self.expr()?);
            while self.eat(",") {
                members.push(self.expr()?);
            }
        }
        self.expect("]")?;
        let below = members.iter().map(|a| a.depth).max().unwrap_or(0);
        self.node(ExprKind::Array(members), start.to(self.last_span()), below)
    }

    /// `map { … }` or `array { … }` after the word.
    pub fn constructor(&mut self, word: &str, start: Span) -> Parsed<Expr> {
        self.expect("{")?;
        if word == "array" {
            let inner = match self.is("}") {
                true => self.node(ExprKind::Sequence(Vec::new()), start, 0)?,
                false => self.whole()?,
            };
            self.expect("}")?;
            let below = inner.depth;
            return self.node(ExprKind::CurlyArray(Box::new(inner)), start.to(self.last_span()), below);
        }
        let mut pairs = Vec::new();
        let mut below = 0;
        if !self.is("}") {
            loop {
                let key = self.expr()?;
                self.expect(":")?;
                let value = self.expr()?;
                below = below.max(key.depth).max(value.depth);
                pairs.push((key, value));
                if !self.eat(",") {
                    break;
                }
            }
        }
        self.expect("}")?;
        self.node(ExprKind::Map(pairs), start.to(self.last_span()), below)
    }

    /// `function($a as t, …) as t { body }` after the word.
    pub fn inline(&mut self, start: Span) -> Parsed<Expr> {
        self.expect("(")?;
        let mut params: Vec<(QName, Option<SequenceType>)> = Vec::new();
        if !self.is(")") {
            loop {
                self.expect("$")?;
                let span = self.peek().span;
                let name = self.qname("a variable name")?;
                if params.iter().any(|(other_name, _)| *other_name == name) {
                    let message = format!("the function has two parameters `${name}`");
                    return Err(XPathError::new(message, span).with_code("XQST0039"));
                }
                let ty = if self.peek().kind == TokenKind::Name("as") {
                    self.next();
                    Some(self.sequence_type()?)
                } else {
                    None
                };
                params.push((name, ty));
                if !self.eat(",") {
                    break;
                }
            }
        }
        self.expect(")")?;
        let result = if self.peek().kind == TokenKind::Name("as") {
            self.next();
            Some(self.sequence_type()?)
        } else {
            None
        };
        self.expect("{")?;
        let body = match self.is("}") {
            true => self.node(ExprKind::Sequence(Vec::new()), start, 0)?,
            false => self.whole()?,
        };
        self.expect("}")?;
        let below = body.depth;
        let span = start.to(self.last_span());
        self.node(ExprKind::Inline(params, result, Box::new(body)), span, below)
    }

    /// `name#arity` after the name.
    pub fn function_reference(&mut self, name: Token<'s>) -> Parsed<Expr> {
        let qname = match name.kind {
            TokenKind::Name(n) if is_reserved(n) => {
                return Err(XPathError::new(format!("`{n}` is not a name of a function"), name.span));
            }
            TokenKind::Name(n) => QName { prefix: String::new(), local: n.to_owned() },
            TokenKind::Prefixed(p, n) => QName::written(p, n),
            _ => return Err(self.unexpected("the name of a function")),
        };
        self.expect("#")?;
        let arity = match self.peek().kind {
            TokenKind::Numeral(digits) => digits.parse::<usize>().ok().filter(|n| *n <= 1 << 12),
            _ => None,
        };
        let Some(arity) = arity else { return Err(self.unexpected("a number of arguments")) };
        self.next();
        self.node(ExprKind::NamedFunction(qname, arity), name.span.to(self.last_span()), 0)
    }

    /// `left => $f(args)` or `left => (f)(args)` after the arrow.
    pub fn arrow_to_value(&mut self, left: Expr) -> Parsed<Expr> {
        let start = self.next();
        let function = if start.kind == TokenKind::Punct("$") {
            let name = self.qname("a variable name")?;
            self.node(ExprKind::Variable(name), start.span.to(self.last_span()), 0)?
        } else {
            let inner = self.whole()?;
            self.expect(")")?;
            inner
        };
        let mut args = self.arguments()?;
        args.insert(0, left);
        self.applied(function, args)
    }

    /// `function(…)`, `map(…)` or `array(…)` as a type.
    pub fn function_type(&mut self) -> Parsed<ItemType> {
        let word = self.next();
        self.deeper(word.span)?;
        self.expect("(")?;
        if self.eat("*") {
            self.expect(")")?;
            self.depth -= 1;
            return Ok(match word.kind {
                TokenKind::Name("map") => ItemType::Map(None),
                TokenKind::Name("array") => ItemType::Array(None),
                _ => ItemType::Function(None),
            });
        }
        let found = match word.kind {
            TokenKind::Name("map") => {
                let span = self.peek().span;
                let key = self.sequence_type()?;
                if !matches!(key.item, ItemType::Atomic(_)) || key.optional || key.many {
                    return Err(XPathError::new("the keys of a map are of one atomic type", span));
                }
                self.expect(",")?;
                let value = self.sequence_type()?;
                self.expect(")")?;
                ItemType::Map(Some(Box::new((key, value))))
            }
            TokenKind::Name("array") => {
                let member = self.sequence_type()?;
                self.expect(")")?;
                ItemType::Array(Some(Box::new(member)))
            }
            _ => {
                let mut params = Vec::new();
                if !self.is(")") {
                    params.push(self.sequence_type()?);
                    while self.eat(",") {
                        params.push(self.sequence_type()?);
                    }
                }
                self.expect(")")?;
                self.word("as")?;
                ItemType::Function(Some((params, Box::new(self.sequence_type()?))))
            }
        };
        self.depth -= 1;
        Ok(found)
    }

    /// `(t)`.
    pub fn parenthesized_type(&mut self) -> Parsed<ItemType> {
        let span = self.expect("(")?;
        self.deeper(span)?;
        let inner = self.sequence_type()?;
        self.expect(")")?;
        self.depth -= 1;
        if inner.optional || inner.many {
            return Err(XPathError::new("in parentheses stands the type of one item", inner.span));
        }
        Ok(inner.item)
    }

    fn deeper(&mut self, span: Span) -> Parsed<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH.min(MAX_TYPES * 4) { Err(too_deep(span)) } else { Ok(()) }
    }
}
