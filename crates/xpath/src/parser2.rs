//! The grammar of XPath 2.0 (appendix A.1) beyond that of 1.0. The comparison, range and type operators have a precedence
//! between `and` and the arithmetic ones; a step of a path may be any primary expression.

use crate::ast::{BinaryOp, Expr, ExprKind, ItemType, NodeTest, Operator, QName, SequenceType, Start};
use crate::atomic::{Atomic, Decimal};
use crate::error::{Span, XPathError};
use crate::lexer::{TokenKind, tokens};
use crate::options::Version;
use crate::parser::{MAX_DEPTH, Parsed, Parser, is_node_type, syntax, too_deep};

/// Whether `name(` begins a kind test (or `item()` and `empty-sequence()`) rather than a function call.
pub(crate) fn is_kind_test(name: &str) -> bool {
    is_node_type(name)
        || matches!(
            name,
            "element"
                | "attribute"
                | "document-node"
                | "namespace-node"
                | "schema-element"
                | "schema-attribute"
                | "item"
                | "empty-sequence"
        )
}

/// Parses a sequence type (the `as` attribute of XSLT 2.0).
pub fn parse_sequence_type(src: &str) -> Result<SequenceType, XPathError> {
    let tokens = tokens(src, Version::V31).map_err(syntax)?;
    let mut p = Parser { tokens, at: 0, depth: 0, version: Version::V31, typed_test: false };
    let found = p.sequence_type().map_err(syntax)?;
    match p.peek().kind {
        TokenKind::End => Ok(found),
        _ => Err(syntax(p.unexpected("the end of the sequence type"))),
    }
}

impl Parser<'_> {
    /// `Expr`: `a, b, …`.
    pub fn sequence(&mut self) -> Parsed<Expr> {
        let first = self.expr()?;
        self.chain(first, |k| k == TokenKind::Punct(","), Parser::expr, ExprKind::Sequence)
    }

    /// `ExprSingle`.
    pub fn single(&mut self) -> Parsed<Expr> {
        if let TokenKind::Name(word) = self.peek().kind {
            match (word, self.peek_after(1)) {
                ("for" | "some" | "every", TokenKind::Punct("$")) => return self.bindings(word),
                ("let", TokenKind::Punct("$")) if self.version == Version::V31 => return self.bindings(word),
                ("if", TokenKind::Punct("(")) => return self.condition(),
                _ => {}
            }
        }
        self.or()
    }

    pub fn word(&mut self, word: &str) -> Parsed<()> {
        if self.peek().kind == TokenKind::Name(word) {
            self.next();
            return Ok(());
        }
        Err(self.unexpected(&format!("`{word}`")))
    }

    fn bindings(&mut self, word: &str) -> Parsed<Expr> {
        let start = self.next().span;
        let mut bindings = Vec::new();
        loop {
            self.expect("$")?;
            let name = self.qname("a variable name")?;
            if word == "let" {
                self.expect(":=")?;
            } else {
                self.word("in")?;
            }
            let input = self.expr()?;
            bindings.push((name, input));
            if !self.eat(",") {
                break;
            }
        }
        self.word(if matches!(word, "for" | "let") { "return" } else { "satisfies" })?;
        let body = self.expr()?;
        let below =
            bindings.iter().map(|(_, e)| e.depth).max().unwrap_or(0).max(body.depth) + bindings.len() as u32;
        let span = start.to(body.span);
        let body = Box::new(body);
        let kind = match word {
            "for" => ExprKind::For(bindings, body),
            "let" => ExprKind::Let(bindings, body),
            word => ExprKind::Quantified(word == "every", bindings, body),
        };
        self.node(kind, span, below)
    }

    fn condition(&mut self) -> Parsed<Expr> {
        let start = self.next().span;
        self.expect("(")?;
        let test = self.whole()?;
        self.expect(")")?;
        self.word("then")?;
        let yes = self.expr()?;
        self.word("else")?;
        let no = self.expr()?;
        let (span, below) = (start.to(no.span), test.depth.max(yes.depth).max(no.depth));
        self.node(ExprKind::If(Box::new([test, yes, no])), span, below)
    }

    /// A comparison: they do not chain.
    pub fn comparison(&mut self) -> Parsed<Expr> {
        let left = self.concatenation()?;
        let (general, value, node) = match self.peek().kind {
            TokenKind::Punct("=") => (Some(BinaryOp::Equal), None, None),
            TokenKind::Punct("!=") => (Some(BinaryOp::NotEqual), None, None),
            TokenKind::Punct("<") => (Some(BinaryOp::Less), None, None),
            TokenKind::Punct("<=") => (Some(BinaryOp::LessOrEqual), None, None),
            TokenKind::Punct(">") => (Some(BinaryOp::Greater), None, None),
            TokenKind::Punct(">=") => (Some(BinaryOp::GreaterOrEqual), None, None),
            TokenKind::Name("eq") => (None, Some(BinaryOp::Equal), None),
            TokenKind::Name("ne") => (None, Some(BinaryOp::NotEqual), None),
            TokenKind::Name("lt") => (None, Some(BinaryOp::Less), None),
            TokenKind::Name("le") => (None, Some(BinaryOp::LessOrEqual), None),
            TokenKind::Name("gt") => (None, Some(BinaryOp::Greater), None),
            TokenKind::Name("ge") => (None, Some(BinaryOp::GreaterOrEqual), None),
            TokenKind::Name("is") => (None, None, Some(Operator::Is)),
            TokenKind::Punct("<<") => (None, None, Some(Operator::Before)),
            TokenKind::Punct(">>") => (None, None, Some(Operator::After)),
            _ => return Ok(left),
        };
        self.next();
        let right = self.concatenation()?;
        self.both(left, right, |a, b| match (general, value, node) {
            (Some(op), ..) => ExprKind::Binary(op, a, b),
            (_, Some(op), _) => ExprKind::ValueComparison(op, a, b),
            (_, _, Some(op)) => ExprKind::Operation(op, a, b),
            _ => ExprKind::Sequence(vec![*a, *b]),
        })
    }

    pub fn both(
        &self,
        left: Expr,
        right: Expr,
        make: impl FnOnce(Box<Expr>, Box<Expr>) -> ExprKind,
    ) -> Parsed<Expr> {
        let (span, below) = (left.span.to(right.span), left.depth.max(right.depth));
        self.node(make(Box::new(left), Box::new(right)), span, below)
    }

    /// `a || b || …` (XPath 3.0): the function `concat()`.
    // Most expressions have none of these three, so they use no stack on the way down.
    #[inline(always)]
    fn concatenation(&mut self) -> Parsed<Expr> {
        let first = self.range()?;
        if self.is("||") { self.concatenated(first) } else { Ok(first) }
    }

    #[inline(never)]
    fn concatenated(&mut self, first: Expr) -> Parsed<Expr> {
        self.chain(
            first,
            |k| k == TokenKind::Punct("||"),
            Parser::range,
            |items| ExprKind::Call(QName { prefix: String::new(), local: "concat".to_owned() }, items),
        )
    }

    /// `a ! b` (XPath 3.0).
    #[inline(always)]
    fn simple_map(&mut self) -> Parsed<Expr> {
        let first = self.path2()?;
        if self.is("!") { self.mapped(first) } else { Ok(first) }
    }

    #[inline(never)]
    fn mapped(&mut self, mut left: Expr) -> Parsed<Expr> {
        while self.version == Version::V31 && self.eat("!") {
            let right = self.path2()?;
            left = self.both(left, right, ExprKind::SimpleMap)?;
        }
        Ok(left)
    }

    /// `a => f(b)` (XPath 3.1): `f(a, b)`.
    #[inline(always)]
    fn arrow(&mut self) -> Parsed<Expr> {
        let first = self.signed()?;
        if self.is("=>") { self.arrows(first) } else { Ok(first) }
    }

    #[inline(never)]
    fn arrows(&mut self, mut left: Expr) -> Parsed<Expr> {
        while self.version == Version::V31 && self.eat("=>") {
            let start = self.peek().span;
            if self.is("$") || self.is("(") {
                left = self.arrow_to_value(left)?;
                continue;
            }
            let name = self.qname("the name of a function")?;
            let call = self.call(name, start)?;
            let ExprKind::Call(name, mut args) = call.kind else {
                return Err(self.unexpected("a function call"));
            };
            let (span, below) = (left.span.to(call.span), left.depth.max(call.depth));
            args.insert(0, left);
            left = self.node(ExprKind::Call(name, args), span, below)?;
        }
        Ok(left)
    }

    fn range(&mut self) -> Parsed<Expr> {
        let left = self.additive()?;
        if self.peek().kind != TokenKind::Name("to") {
            return Ok(left);
        }
        self.next();
        let right = self.additive()?;
        self.both(left, right, |a, b| ExprKind::Operation(Operator::Range, a, b))
    }

    fn additive(&mut self) -> Parsed<Expr> {
        let mut left = self.multiplicative()?;
        loop {
            let op = match self.peek().kind {
                TokenKind::Punct("+") => BinaryOp::Add,
                TokenKind::Punct("-") => BinaryOp::Subtract,
                _ => return Ok(left),
            };
            self.next();
            let right = self.multiplicative()?;
            left = self.both(left, right, |a, b| ExprKind::Binary(op, a, b))?;
        }
    }

    fn multiplicative(&mut self) -> Parsed<Expr> {
        let mut left = self.union2()?;
        loop {
            let op = match self.peek().kind {
                TokenKind::Punct("*") => Some(BinaryOp::Multiply),
                TokenKind::Name("div") => Some(BinaryOp::Divide),
                TokenKind::Name("mod") => Some(BinaryOp::Modulo),
                TokenKind::Name("idiv") => None,
                _ => return Ok(left),
            };
            self.next();
            let right = self.union2()?;
            left = self.both(left, right, |a, b| match op {
                Some(op) => ExprKind::Binary(op, a, b),
                None => ExprKind::Operation(Operator::IntegerDivide, a, b),
            })?;
        }
    }

    fn union2(&mut self) -> Parsed<Expr> {
        let first = self.intersection()?;
        let op = |k: TokenKind<'_>| matches!(k, TokenKind::Punct("|") | TokenKind::Name("union"));
        self.chain(first, op, Parser::intersection, ExprKind::Union)
    }

    fn intersection(&mut self) -> Parsed<Expr> {
        let mut left = self.instance_of()?;
        loop {
            let op = match self.peek().kind {
                TokenKind::Name("intersect") => Operator::Intersect,
                TokenKind::Name("except") => Operator::Except,
                _ => return Ok(left),
            };
            self.next();
            let right = self.instance_of()?;
            left = self.both(left, right, |a, b| ExprKind::Operation(op, a, b))?;
        }
    }

    fn two_words(&mut self, first: &str, second: &str) -> bool {
        let found =
            self.peek().kind == TokenKind::Name(first) && self.peek_after(1) == TokenKind::Name(second);
        if found {
            self.next();
            self.next();
        }
        found
    }

    fn instance_of(&mut self) -> Parsed<Expr> {
        let e = self.treat()?;
        if !self.two_words("instance", "of") {
            return Ok(e);
        }
        let ty = self.sequence_type()?;
        let (span, below) = (e.span.to(ty.span), e.depth);
        self.node(ExprKind::InstanceOf(Box::new(e), ty), span, below)
    }

    fn treat(&mut self) -> Parsed<Expr> {
        let e = self.castable()?;
        if !self.two_words("treat", "as") {
            return Ok(e);
        }
        let ty = self.sequence_type()?;
        let (span, below) = (e.span.to(ty.span), e.depth);
        self.node(ExprKind::Treat(Box::new(e), ty), span, below)
    }

    fn castable(&mut self) -> Parsed<Expr> {
        let e = self.cast()?;
        if !self.two_words("castable", "as") {
            return Ok(e);
        }
        let name = self.qname("the name of an atomic type")?;
        let optional = self.eat("?");
        let (span, below) = (e.span.to(self.last_span()), e.depth);
        self.node(ExprKind::Castable(Box::new(e), name, optional), span, below)
    }

    fn cast(&mut self) -> Parsed<Expr> {
        let e = self.arrow()?;
        if !self.two_words("cast", "as") {
            return Ok(e);
        }
        let name = self.qname("the name of an atomic type")?;
        let optional = self.eat("?");
        let (span, below) = (e.span.to(self.last_span()), e.depth);
        self.node(ExprKind::Cast(Box::new(e), name, optional), span, below)
    }

    fn signed(&mut self) -> Parsed<Expr> {
        let start = self.peek().span;
        let mut minus = 0usize;
        let mut signs = false;
        loop {
            if self.eat("-") {
                minus += 1;
            } else if !self.eat("+") {
                break;
            }
            signs = true;
        }
        let e = self.simple_map()?;
        if !signs {
            return Ok(e);
        }
        let (span, below) = (start.to(e.span), e.depth);
        let e = Box::new(e);
        self.node(if minus % 2 == 1 { ExprKind::Negate(e) } else { ExprKind::Plus(e) }, span, below)
    }

    fn starts_general_step(&self) -> bool {
        self.starts_step() || self.starts_filter()
    }

    /// `PathExpr`.
    fn path2(&mut self) -> Parsed<Expr> {
        let start = self.peek().span;
        let mut steps = Vec::new();
        // The expression to the left of the axis steps in `steps`.
        let mut from = Start::Context;
        let mut below = 0;
        if self.is("/") || self.is("//") {
            from = Start::Root;
            let lone = self.is("/");
            self.separator(&mut steps);
            if lone && !self.starts_general_step() {
                return self.path_node(Start::Root, steps, start, 0);
            }
        }
        let mut first = true;
        loop {
            let begins = first && matches!(from, Start::Context);
            first = false;
            if self.starts_filter() || (self.is(".") && begins && self.dot_by_itself()) {
                let primary = self.filter2()?;
                if begins {
                    below = primary.depth;
                    if !self.is("/") && !self.is("//") {
                        return Ok(primary);
                    }
                    from = Start::Expr(Box::new(primary));
                } else {
                    // The path so far, then the step for each of its nodes.
                    let left = if steps.is_empty() {
                        match from {
                            Start::Expr(e) => *e,
                            from => self.path_node(from, Vec::new(), start, below)?,
                        }
                    } else {
                        self.path_node(from, std::mem::take(&mut steps), start, below)?
                    };
                    let slash = self.both(left, primary, ExprKind::Slash)?;
                    if !self.is("/") && !self.is("//") {
                        return Ok(slash);
                    }
                    below = slash.depth;
                    from = Start::Expr(Box::new(slash));
                }
            } else {
                let mut step = self.step()?;
                if self.is("[") {
                    // `.[p]` and `..[p]`.
                    step.predicates = self.predicates()?;
                    step.span = step.span.to(self.last_span());
                }
                steps.push(step);
                if steps.len() as u32 > MAX_DEPTH {
                    return Err(too_deep(self.peek().span));
                }
                if !self.is("/") && !self.is("//") {
                    return self.path_node(from, steps, start, below);
                }
            }
            self.separator(&mut steps);
        }
    }

    /// `.` without a path after it: the context item of any kind.
    fn dot_by_itself(&self) -> bool {
        !matches!(self.peek_after(1), TokenKind::Punct("/" | "//"))
    }

    fn filter2(&mut self) -> Parsed<Expr> {
        if !self.is(".") {
            return self.filter();
        }
        let span = self.next().span;
        let item = self.node(ExprKind::ContextItem, span, 0)?;
        if self.version == Version::V31 {
            return self.postfix(item);
        }
        if !self.is("[") {
            return Ok(item);
        }
        let predicates = self.predicates()?;
        let below = predicates.iter().map(|p| p.depth).max().unwrap_or(0);
        let span = span.to(self.last_span());
        self.node(ExprKind::Filter(Box::new(item), predicates), span, below)
    }

    /// A number: without point an integer, without exponent a decimal.
    pub fn numeral(&self, text: &str, span: Span) -> Parsed<Expr> {
        let kind = if text.contains(['e', 'E']) {
            ExprKind::Number(text.parse().unwrap_or(f64::NAN))
        } else if text.contains('.') {
            match Decimal::parse(text) {
                Some(decimal) => ExprKind::Decimal(decimal),
                None => return Err(too_many_digits(span)),
            }
        } else {
            match text.parse() {
                Ok(integer) => ExprKind::Integer(integer),
                Err(_) => match crate::atomic::large::parse(text) {
                    Some(Atomic::Large(n)) => ExprKind::Large(n),
                    _ => return Err(too_many_digits(span)),
                },
            }
        };
        self.node(kind, span, 0)
    }

    pub fn qname(&mut self, expected: &str) -> Parsed<QName> {
        let name = match self.peek().kind {
            TokenKind::Name(n) => QName { prefix: String::new(), local: n.to_string() },
            TokenKind::Prefixed(p, n) => QName::written(p, n),
            _ => return Err(self.unexpected(expected)),
        };
        self.next();
        Ok(name)
    }

    /// `SequenceType`.
    pub fn sequence_type(&mut self) -> Parsed<SequenceType> {
        let start = self.peek().span;
        let item = match (self.peek().kind, self.peek_after(1)) {
            (TokenKind::Name(word @ ("item" | "empty-sequence")), TokenKind::Punct("(")) => {
                self.next();
                self.next();
                self.expect(")")?;
                if word == "item" { ItemType::Item } else { ItemType::Nothing }
            }
            (TokenKind::Name(word), TokenKind::Punct("(")) if is_kind_test(word) => {
                ItemType::Node(self.node_test()?)
            }
            (TokenKind::Name("function" | "map" | "array"), TokenKind::Punct("(")) => self.function_type()?,
            (TokenKind::Punct("("), _) => self.parenthesized_type()?,
            _ => ItemType::Atomic(self.qname("a sequence type")?),
        };
        let (mut optional, mut many) = (item == ItemType::Nothing, false);
        if !optional {
            if self.eat("?") {
                optional = true;
            } else if self.eat("*") {
                (optional, many) = (true, true);
            } else if self.eat("+") {
                many = true;
            }
        }
        Ok(SequenceType { item, optional, many, span: start.to(self.last_span()) })
    }

    /// `element(…)`, `attribute(…)`, `document-node(…)`.
    pub fn kind_test(&mut self) -> Parsed<NodeTest> {
        let t = self.next();
        let TokenKind::Name(word) = t.kind else { return Err(self.unexpected("a kind test")) };
        self.expect("(")?;
        let test = match word {
            "element" | "attribute" => {
                let name = self.tested_name(word == "element")?;
                if word == "element" { NodeTest::Element(name) } else { NodeTest::Attribute(name) }
            }
            "document-node" => match self.peek().kind {
                TokenKind::Name("element") => NodeTest::Document(Some(Box::new(self.kind_test()?))),
                _ => NodeTest::Document(None),
            },
            "namespace-node" => NodeTest::NamespaceNode,
            "item" | "empty-sequence" => {
                return Err(XPathError::new(format!("`{word}()` is not a node test"), t.span));
            }
            _ => {
                let message = format!("`{word}()` needs a schema: there is none");
                return Err(XPathError::new(message, t.span).with_code("XPST0008"));
            }
        };
        self.expect(")")?;
        Ok(test)
    }

    /// The name in a kind test, and its type: without a schema elements are untyped, attributes have untyped values.
    fn tested_name(&mut self, element: bool) -> Parsed<Option<QName>> {
        if self.is(")") {
            return Ok(None);
        }
        let mut name = if self.eat("*") { None } else { Some(self.qname("a name or `*`")?) };
        if self.eat(",") {
            let span = self.peek().span;
            let ty = self.qname("the name of a type")?;
            self.eat("?");
            self.typed_test = true;
            let has = match ty.local.as_str() {
                "anyType" => true,
                "untyped" => element,
                "anySimpleType" | "anyAtomicType" | "untypedAtomic" => !element,
                "NMTOKENS" | "IDREFS" | "ENTITIES" => false,
                built_in if crate::atomic::AtomicType::find(built_in).is_some() => false,
                _ => {
                    let message = format!("there is no type {ty}: there is no schema");
                    return Err(XPathError::new(message, span).with_code("XPST0008"));
                }
            };
            if !has {
                name = Some(QName::of_nothing());
            }
        }
        Ok(name)
    }
}

fn too_many_digits(span: Span) -> XPathError {
    XPathError::new("the number has too many digits", span).with_code("FOAR0002")
}

#[cfg(test)]
mod tests {
    use crate::options::Version;
    use crate::parser::parse;

    #[test]
    fn accepts_and_rejects() {
        for good in [
            "()",
            "(1, 2, 3)",
            "1 to 5",
            "for $x in a, $y in b return $x + $y",
            "some $x in (1, 2) satisfies $x = 2",
            "if (a) then b else c",
            "if",
            "for/some/every",
            "a/string()",
            "a/(b | c)/d",
            "a/(b, c)[1]//d",
            "/(a | b)",
            "//(a | b)",
            ".[. = 1]",
            "..[x]",
            "./a",
            "a/.",
            "(1, 2)[. = 1]",
            "$x/f:g(.)/h",
            "*:a",
            "element(a)/attribute(b)",
            "child::element(a, xs:untyped)",
            "child::element(a, xs:integer)",
            "99999999999999999999",
            "self::document-node(element(a))",
            "a is b",
            "a << b",
            "1 idiv 2",
            "a intersect b except c union d",
            "x instance of xs:integer+",
            "x treat as node()*",
            "'1' castable as xs:date?",
            "'1' cast as xs:date",
            "- - 1 + + 2",
            "-a/b",
            "a or b and c eq d",
            "(: note :) 1 (: more :)",
            "\"a\"\"b\"",
            "1e3",
            "f(1, (2, 3))",
            "a[1, 2]",
        ] {
            parse(good, Version::V2).unwrap_or_else(|e| panic!("{good}: {e}"));
        }
        for bad in [
            "",
            "(",
            "1,",
            "a eq b eq c",
            "a = b = c",
            "1 to 2 to 3",
            "for $x in a",
            "some $x satisfies 1",
            "if (a) then b",
            "1 instance of",
            "x cast as xs:integer*",
            "a/1b",
            "f(1,)",
            "$",
            "a//",
            "schema-element(a)",
            "a[]",
        ] {
            assert!(parse(bad, Version::V2).is_err(), "{bad}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        for bad in [
            "(".repeat(30_000),
            "for $x in ".repeat(5_000),
            "if (".repeat(10_000),
            "a/(".repeat(10_000),
            "-(".repeat(10_000),
            "1 idiv ".repeat(5_000) + "1",
            format!("for $x in 1{} return 1", ", $x in 1".repeat(5_000)),
        ] {
            assert!(parse(&bad, Version::V2).is_err());
        }
        assert!(parse(&format!("({}1)", "1,".repeat(10_000)), Version::V2).is_ok());
    }
}
