//! Tokens to syntax tree (XPath 1.0, sections 2 and 3), by recursive descent with bounded depth. What XPath 2.0 has
//! beyond that is in [`crate::parser2`].

use crate::ast::{Axis, BinaryOp, Expr, ExprKind, NodeTest, QName, Start, Step};
use crate::error::{Span, XPathError};
use crate::lexer::{Token, TokenKind, tokens};
use crate::options::Version;

/// Longest expression source in bytes.
pub const MAX_SOURCE: usize = 1 << 16;
/// Deepest nesting of an expression; operands of a chain (`1 + 1 + …`) and steps of a path count too.
pub const MAX_DEPTH: u32 = 256;
/// Deepest nesting of parentheses, predicates, arguments and the like in XPath 2.0 and later: each takes up to 14 KB of a stack that may have
/// 2 MB.
const MAX_NESTING: u32 = 128;

/// Parses an expression.
pub fn parse(src: &str, version: Version) -> Result<Expr, XPathError> {
    if src.len() > MAX_SOURCE {
        return Err(XPathError::new(format!("the expression is longer than {MAX_SOURCE} bytes"), 0..0));
    }
    let parsed = tokens(src, version).and_then(|tokens| {
        let mut p = Parser { tokens, at: 0, depth: 0, version, typed_test: false };
        let expr = p.whole()?;
        match p.peek().kind {
            TokenKind::End => Ok(expr),
            _ => Err(p.unexpected("an operator or the end of the expression")),
        }
    });
    // XPath 1.0 has no error codes.
    parsed.map_err(|e| if version.is_version2() { syntax(e) } else { XPathError { syntax: true, ..e } })
}

/// Every error of the parser is a syntax error.
pub(crate) fn syntax(error: XPathError) -> XPathError {
    let error = XPathError { syntax: true, ..error };
    if error.code.is_empty() { error.with_code("XPST0003") } else { error }
}

pub(crate) struct Parser<'s> {
    pub tokens: Vec<Token<'s>>,
    pub at: usize,
    pub depth: u32,
    pub version: Version,
    /// The last kind test named a type.
    pub typed_test: bool,
}

pub(crate) type Parsed<T> = Result<T, XPathError>;

impl<'s> Parser<'s> {
    pub fn peek(&self) -> Token<'s> {
        self.tokens[self.at]
    }

    pub fn peek_after(&self, n: usize) -> TokenKind<'s> {
        self.tokens.get(self.at + n).map_or(TokenKind::End, |t| t.kind)
    }

    pub fn next(&mut self) -> Token<'s> {
        let t = self.tokens[self.at];
        // `End` is never passed.
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        t
    }

    pub fn is(&self, p: &str) -> bool {
        matches!(self.peek().kind, TokenKind::Punct(q) if q == p)
    }

    pub fn eat(&mut self, p: &str) -> bool {
        let found = self.is(p);
        if found {
            self.next();
        }
        found
    }

    pub fn expect(&mut self, p: &str) -> Parsed<Span> {
        if self.is(p) { Ok(self.next().span) } else { Err(self.unexpected(&format!("`{p}`"))) }
    }

    /// The span of the last token.
    pub fn last_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    pub fn unexpected(&self, wanted: &str) -> XPathError {
        let t = self.peek();
        let found = match t.kind {
            TokenKind::End => return XPathError::new(format!("expected {wanted}, found the end"), t.span),
            TokenKind::Number(n) => format!("the number {n}"),
            TokenKind::Numeral(n) => format!("the number {n}"),
            TokenKind::Literal(_) | TokenKind::Doubled(..) => "a string literal".to_string(),
            TokenKind::StarPrefixed(n) => format!("`*:{n}`"),
            TokenKind::Name(n) => format!("`{n}`"),
            TokenKind::Prefixed(p, n) => format!("`{p}:{n}`"),
            TokenKind::PrefixedStar(p) => format!("`{p}:*`"),
            TokenKind::Punct(p) => format!("`{p}`"),
        };
        let version2 = match t.kind {
            TokenKind::Name(n) => matches!(
                n,
                "eq" | "ne"
                    | "lt"
                    | "le"
                    | "gt"
                    | "ge"
                    | "is"
                    | "to"
                    | "idiv"
                    | "intersect"
                    | "except"
                    | "union"
                    | "instance"
                    | "treat"
                    | "castable"
                    | "cast"
                    | "then"
                    | "else"
                    | "in"
                    | "return"
                    | "satisfies"
            ),
            TokenKind::Punct(p) => {
                matches!(p, "<<" | ">>" | ",")
                    || p == "$"
                        && self.at > 0
                        && matches!(self.tokens[self.at - 1].kind, TokenKind::Name("for" | "some" | "every"))
                    || p == ")"
                        && self.at > 0
                        && matches!(self.tokens[self.at - 1].kind, TokenKind::Punct("("))
            }
            _ => false,
        };
        let hint = match (version2, self.version) {
            (true, Version::V1) => " (XPath 2.0 syntax, but the expression is XPath 1.0)",
            _ => "",
        };
        XPathError::new(format!("expected {wanted}, found {found}{hint}"), t.span)
    }

    pub fn node(&self, kind: ExprKind, span: Span, below: u32) -> Parsed<Expr> {
        let depth = below + 1;
        if depth > MAX_DEPTH {
            return Err(too_deep(span));
        }
        Ok(Expr { kind, span, depth })
    }

    /// The whole source, or the content of parentheses or brackets.
    pub fn whole(&mut self) -> Parsed<Expr> {
        match self.version {
            Version::V1 => self.expr(),
            _ => self.sequence(),
        }
    }

    /// `Expr` (of XPath 2.0: `ExprSingle`), with the recursion counted.
    pub fn expr(&mut self) -> Parsed<Expr> {
        self.depth += 1;
        let most = if self.version.is_version2() { MAX_NESTING } else { MAX_DEPTH };
        if self.depth > most {
            return Err(too_deep(self.peek().span));
        }
        let e = match self.version {
            Version::V1 => self.or(),
            _ => self.single(),
        };
        self.depth -= 1;
        e
    }

    pub fn or(&mut self) -> Parsed<Expr> {
        let first = self.and()?;
        self.chain(first, |k| k == TokenKind::Name("or"), Parser::and, ExprKind::Or)
    }

    fn and(&mut self) -> Parsed<Expr> {
        let operand = match self.version {
            Version::V1 => |p: &mut Self| p.binary(0),
            _ => Parser::comparison,
        };
        let first = operand(self)?;
        self.chain(first, |k| k == TokenKind::Name("and"), operand, ExprKind::And)
    }

    /// `first op item op item …` as one flat node.
    pub fn chain(
        &mut self,
        first: Expr,
        op: fn(TokenKind<'_>) -> bool,
        item: fn(&mut Self) -> Parsed<Expr>,
        make: fn(Vec<Expr>) -> ExprKind,
    ) -> Parsed<Expr> {
        if !op(self.peek().kind) {
            return Ok(first);
        }
        let mut items = vec![first];
        while op(self.peek().kind) {
            self.next();
            items.push(item(self)?);
        }
        let span = items[0].span.to(items[items.len() - 1].span);
        let below = items.iter().map(|e| e.depth).max().unwrap_or(0);
        self.node(make(items), span, below)
    }

    /// Equality, relational, additive and multiplicative operators, all left-associative.
    fn binary(&mut self, min: u8) -> Parsed<Expr> {
        let mut left = self.unary()?;
        while let Some((op, level)) = self.binary_op() {
            if level < min {
                break;
            }
            self.next();
            let right = self.binary(level + 1)?;
            let span = left.span.to(right.span);
            let below = left.depth.max(right.depth);
            left = self.node(ExprKind::Binary(op, Box::new(left), Box::new(right)), span, below)?;
        }
        Ok(left)
    }

    fn binary_op(&self) -> Option<(BinaryOp, u8)> {
        Some(match self.peek().kind {
            TokenKind::Punct("=") => (BinaryOp::Equal, 0),
            TokenKind::Punct("!=") => (BinaryOp::NotEqual, 0),
            TokenKind::Punct("<") => (BinaryOp::Less, 1),
            TokenKind::Punct("<=") => (BinaryOp::LessOrEqual, 1),
            TokenKind::Punct(">") => (BinaryOp::Greater, 1),
            TokenKind::Punct(">=") => (BinaryOp::GreaterOrEqual, 1),
            TokenKind::Punct("+") => (BinaryOp::Add, 2),
            TokenKind::Punct("-") => (BinaryOp::Subtract, 2),
            TokenKind::Punct("*") => (BinaryOp::Multiply, 3),
            TokenKind::Name("div") => (BinaryOp::Divide, 3),
            TokenKind::Name("mod") => (BinaryOp::Modulo, 3),
            _ => return None,
        })
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let start = self.peek().span;
        let mut minus = 0usize;
        while self.eat("-") {
            minus += 1;
        }
        let mut e = self.union()?;
        // An even number of signs still converts to a number.
        let signs = match minus {
            0 => 0,
            n if n % 2 == 1 => 1,
            _ => 2,
        };
        for _ in 0..signs {
            let (span, below) = (start.to(e.span), e.depth);
            e = self.node(ExprKind::Negate(Box::new(e)), span, below)?;
        }
        Ok(e)
    }

    fn union(&mut self) -> Parsed<Expr> {
        let first = self.path()?;
        self.chain(first, |k| k == TokenKind::Punct("|"), Parser::path, ExprKind::Union)
    }

    /// `PathExpr`: a location path, or a filter expression that a path may follow.
    fn path(&mut self) -> Parsed<Expr> {
        let start = self.peek().span;
        if self.starts_filter() {
            let primary = self.filter()?;
            if !self.is("/") && !self.is("//") {
                return Ok(primary);
            }
            let below = primary.depth;
            let mut steps = Vec::new();
            self.separator(&mut steps);
            self.steps(&mut steps)?;
            return self.path_node(Start::Expr(Box::new(primary)), steps, start, below);
        }
        let mut steps = Vec::new();
        let from = if self.is("/") {
            self.next();
            if !self.starts_step() {
                return self.path_node(Start::Root, steps, start, 0);
            }
            Start::Root
        } else if self.is("//") {
            self.separator(&mut steps);
            Start::Root
        } else {
            Start::Context
        };
        self.steps(&mut steps)?;
        self.path_node(from, steps, start, 0)
    }

    pub fn path_node(&self, from: Start, steps: Vec<Step>, start: Span, below: u32) -> Parsed<Expr> {
        let mut deepest = below + steps.len() as u32;
        for (i, step) in steps.iter().enumerate() {
            for p in &step.predicates {
                deepest = deepest.max(i as u32 + 1 + p.depth);
            }
        }
        self.node(ExprKind::Path(from, steps), start.to(self.last_span()), deepest)
    }

    /// Takes `/` or `//`; the latter adds its step.
    pub fn separator(&mut self, steps: &mut Vec<Step>) {
        let t = self.next();
        if t.kind == TokenKind::Punct("//") {
            steps.push(Step {
                axis: Axis::DescendantOrSelf,
                test: NodeTest::Node,
                predicates: Vec::new(),
                typed: false,
                span: t.span,
            });
        }
    }

    fn steps(&mut self, steps: &mut Vec<Step>) -> Parsed<()> {
        loop {
            let step = self.step()?;
            steps.push(step);
            if steps.len() as u32 > MAX_DEPTH {
                return Err(too_deep(self.peek().span));
            }
            if !self.is("/") && !self.is("//") {
                return Ok(());
            }
            self.separator(steps);
        }
    }

    pub fn starts_step(&self) -> bool {
        matches!(
            self.peek().kind,
            TokenKind::Name(_)
                | TokenKind::Prefixed(..)
                | TokenKind::PrefixedStar(_)
                | TokenKind::StarPrefixed(_)
                | TokenKind::Punct("*" | "@" | "." | "..")
        )
    }

    /// Whether a primary expression comes next: anything but the start of a location path.
    pub fn starts_filter(&self) -> bool {
        match self.peek().kind {
            TokenKind::Number(_)
            | TokenKind::Numeral(_)
            | TokenKind::Literal(_)
            | TokenKind::Doubled(..)
            | TokenKind::Punct("(" | "$") => true,
            TokenKind::Punct("[" | "?") => self.version == Version::V31,
            TokenKind::Name(_) | TokenKind::Prefixed(..) if self.is_function_reference() => true,
            TokenKind::Name("map" | "array") if self.is_constructor() => true,
            TokenKind::Name(n) => {
                self.peek_after(1) == TokenKind::Punct("(")
                    && !is_node_type(n)
                    && !(self.version.is_version2() && crate::parser2::is_kind_test(n))
            }
            TokenKind::Prefixed(..) => self.peek_after(1) == TokenKind::Punct("("),
            _ => false,
        }
    }

    pub fn filter(&mut self) -> Parsed<Expr> {
        let primary = self.primary()?;
        if self.version == Version::V31 {
            return self.postfix(primary);
        }
        if !self.is("[") {
            return Ok(primary);
        }
        let predicates = self.predicates()?;
        let below = predicates.iter().map(|p| p.depth).max().unwrap_or(0).max(primary.depth);
        let span = primary.span.to(self.last_span());
        self.node(ExprKind::Filter(Box::new(primary), predicates), span, below)
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let t = self.next();
        match t.kind {
            TokenKind::Number(n) => self.node(ExprKind::Number(n), t.span, 0),
            TokenKind::Literal(s) => self.node(ExprKind::Literal(s.to_string()), t.span, 0),
            TokenKind::Doubled(s, quote) => {
                let text = s.replace(&format!("{quote}{quote}"), &quote.to_string());
                self.node(ExprKind::Literal(text), t.span, 0)
            }
            TokenKind::Numeral(n) => self.numeral(n, t.span),
            TokenKind::Punct("$") => {
                let name = match self.peek().kind {
                    TokenKind::Name(n) => QName { prefix: String::new(), local: n.to_string() },
                    TokenKind::Prefixed(p, n) => QName::written(p, n),
                    _ => return Err(self.unexpected("a variable name")),
                };
                let end = self.next().span;
                self.node(ExprKind::Variable(name), t.span.to(end), 0)
            }
            TokenKind::Punct("(") => {
                if self.is(")") {
                    if self.version == Version::V1 {
                        return Err(self.unexpected("an expression"));
                    }
                    self.next();
                    return self.node(ExprKind::Sequence(Vec::new()), t.span.to(self.last_span()), 0);
                }
                let inner = self.whole()?;
                self.expect(")")?;
                let span = t.span.to(self.last_span());
                // Parentheses are significant for what follows: `(a/b)[1]` is not `a/b[1]`; the span includes them.
                Ok(Expr { span, ..inner })
            }
            TokenKind::Punct("[") if self.version == Version::V31 => self.square_array(t.span),
            TokenKind::Punct("?") if self.version == Version::V31 => {
                let item = self.node(ExprKind::ContextItem, t.span, 0)?;
                self.lookup(item)
            }
            TokenKind::Name("function") if self.version == Version::V31 && self.is("(") => {
                self.inline(t.span)
            }
            TokenKind::Name(n @ ("map" | "array")) if self.version == Version::V31 && self.is("{") => {
                self.constructor(n, t.span)
            }
            TokenKind::Name(_) | TokenKind::Prefixed(..) if self.version == Version::V31 && self.is("#") => {
                self.function_reference(t)
            }
            TokenKind::Name(n) => self.call(QName { prefix: String::new(), local: n.to_string() }, t.span),
            TokenKind::Prefixed(p, n) => self.call(QName::written(p, n), t.span),
            _ => {
                self.at -= 1;
                Err(self.unexpected("an expression"))
            }
        }
    }

    pub fn call(&mut self, name: QName, start: Span) -> Parsed<Expr> {
        let args = self.arguments()?;
        let below = args.iter().map(|a| a.depth).max().unwrap_or(0);
        self.node(ExprKind::Call(name, args), start.to(self.last_span()), below)
    }

    pub fn step(&mut self) -> Parsed<Step> {
        let start = self.peek().span;
        if let TokenKind::Punct(dot @ ("." | "..")) = self.peek().kind {
            self.next();
            let axis = if dot == "." { Axis::SelfAxis } else { Axis::Parent };
            // The grammar allows no predicates here; a stray `[` is reported by the caller.
            return Ok(Step {
                axis,
                test: NodeTest::Node,
                predicates: Vec::new(),
                typed: false,
                span: start,
            });
        }
        let axis = if self.eat("@") {
            Axis::Attribute
        } else if let (TokenKind::Name(n), TokenKind::Punct("::")) = (self.peek().kind, self.peek_after(1)) {
            let Some(axis) = Axis::from_name(n) else {
                return Err(XPathError::new(format!("`{n}` is not an axis"), start));
            };
            self.next();
            self.next();
            axis
        } else if self.version.is_version2()
            && matches!(self.peek().kind, TokenKind::Name("attribute" | "schema-attribute"))
            && self.peek_after(1) == TokenKind::Punct("(")
        {
            Axis::Attribute
        } else if self.version == Version::V31
            && self.peek().kind == TokenKind::Name("namespace-node")
            && self.peek_after(1) == TokenKind::Punct("(")
        {
            // (XPath 3.1 section 3.3.5.)
            Axis::Namespace
        } else {
            Axis::Child
        };
        self.typed_test = false;
        let test = self.node_test()?;
        let typed = self.typed_test;
        let predicates = self.predicates()?;
        Ok(Step { axis, test, predicates, typed, span: start.to(self.last_span()) })
    }

    pub fn predicates(&mut self) -> Parsed<Vec<Expr>> {
        let mut out = Vec::new();
        while self.eat("[") {
            out.push(self.whole()?);
            self.expect("]")?;
        }
        Ok(out)
    }

    pub fn node_test(&mut self) -> Parsed<NodeTest> {
        let test = match self.peek().kind {
            TokenKind::Punct("*") => NodeTest::AnyName,
            TokenKind::PrefixedStar(p) => NodeTest::AnyLocal(QName::written(p, "").prefix),
            TokenKind::StarPrefixed(n) => NodeTest::AnyNamespace(n.to_string()),
            TokenKind::Prefixed(p, n) => NodeTest::Name(QName::written(p, n)),
            TokenKind::Name(n) if self.peek_after(1) == TokenKind::Punct("(") && is_node_type(n) => {
                self.next();
                self.next();
                let test = match n {
                    "node" => NodeTest::Node,
                    "text" => NodeTest::Text,
                    "comment" => NodeTest::Comment,
                    _ => {
                        let target = match self.peek().kind {
                            TokenKind::Literal(s) => Some(s.to_string()),
                            TokenKind::Name(s) if self.version.is_version2() => Some(s.to_string()),
                            _ => None,
                        };
                        if target.is_some() {
                            self.next();
                        }
                        NodeTest::ProcessingInstruction(target)
                    }
                };
                self.expect(")")?;
                return Ok(test);
            }
            TokenKind::Name(n)
                if self.version.is_version2()
                    && self.peek_after(1) == TokenKind::Punct("(")
                    && crate::parser2::is_kind_test(n) =>
            {
                return self.kind_test();
            }
            TokenKind::Name(n) if self.peek_after(1) == TokenKind::Punct("(") => {
                return Err(XPathError::new(
                    format!("the function call `{n}(` cannot be a step of a path"),
                    self.peek().span,
                ));
            }
            TokenKind::Name(n) => NodeTest::Name(QName { prefix: String::new(), local: n.to_string() }),
            _ => return Err(self.unexpected("an expression")),
        };
        self.next();
        Ok(test)
    }
}

pub(crate) fn is_node_type(name: &str) -> bool {
    matches!(name, "comment" | "text" | "processing-instruction" | "node")
}

pub(crate) fn too_deep(span: Span) -> XPathError {
    XPathError::new(format!("the expression is nested deeper than {MAX_DEPTH}"), span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_and_rejects() {
        for good in [
            "/",
            "//a",
            "a//b/@c",
            "a[1][last()]",
            "-1",
            "--a",
            "a|b|c",
            "(a)[1]/b",
            "id('x')/y",
            "$p:v[2]//z",
            "* * *",
            "div div div",
            "and and and",
            "mod mod mod",
            "child::*/self::x",
            "processing-instruction('x')",
            "text()",
            "@*",
            "p:*",
            "/ = 1",
            "(/) * 5",
            ". = ..",
            "a - b",
            "a-b",
            "or or or",
            "p:f(1)",
        ] {
            parse(good, Version::V1).unwrap_or_else(|e| panic!("{good}: {e}"));
        }
        for bad in [
            "",
            "/*/",
            "//",
            "a b",
            "1 2",
            "a[",
            "a]",
            "()",
            "(1,2)",
            "self::-name",
            "::a",
            "parent::",
            "text(*)",
            "comment(1)",
            "foo- foo",
            "10idiv 3",
            ". 5",
            "1 == 1",
            "1 =< 1",
            "a eq b",
            "a/f()",
            "$",
            "x::y",
            ".[1]",
            "for $x in a return b",
            "/ * 5",
            "a,b",
            "@@a",
            "a/",
            "+1",
        ] {
            assert!(parse(bad, Version::V1).is_err(), "{bad}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        for bad in [
            "(".repeat(100_000),
            "(".repeat(20_000) + "1",
            "-".repeat(60_000),
            "1+".repeat(20_000) + "1",
            "a/".repeat(20_000) + "a",
            "a[".repeat(20_000),
            "f(".repeat(20_000),
        ] {
            assert!(parse(&bad, Version::V1).is_err());
        }
        assert!(parse(&("-".repeat(60_000) + "1"), Version::V1).is_ok());
        assert!(parse(&("a or ".repeat(10_000) + "b"), Version::V1).is_ok());
    }

    #[test]
    fn names_version2_syntax() {
        let e = parse("1 eq 2", Version::V1).unwrap_err();
        assert!(e.message.contains("XPath 2.0"), "{e}");
        assert_eq!((e.span, &*e.code), (2..4, ""));
        assert_eq!(parse("1 eq", Version::V2).unwrap_err().code, "XPST0003");
    }
}
