//! The grammar.
//!
//! ```text
//! expression := comparison | comparison '?' expression ':' expression
//! comparison := logic (('>'|'<'|'>='|'<='|'=='|'!=') logic)*           from left to right
//! logic      := arithmetic (('and'|'&&'|'or'|'||') logic)?             from right to left, equal precedence
//! arithmetic := term (('+'|'-') term)*
//! term       := factor (('*'|'/'|'%') factor)*
//! factor     := literal | function | access | '(' expression ')'
//! ```
//!
//! `and` and `or` bind tighter than comparisons: that is the language, and worth a warning where it shows.

use crate::ast::{Access, Arithmetic, Call, Comparison, Expr, Logic, Path, Root, XPathText};
use crate::evaluate::Scope;
use crate::lexer::{Lexer, Token};
use crate::number::Number;
use crate::{Configured, Error, Found, MAX_DEPTH, MAX_LENGTH, Reads, Warning, XPathCompiler, functions};
use diagnostics::did_you_mean;
use message::jsonpath::JsonPath;
use std::ops::Range;
use std::sync::Arc;

/// What parsing gives.
pub(crate) struct Parsed {
    pub root: Expr,
    pub reads: Reads,
    pub warnings: Vec<Warning>,
    pub configured: Vec<Configured>,
}

type Result<T> = std::result::Result<T, Error>;

const ROOTS: &[&str] = &["payload", "vars", "headers", "params", "props", "properties", "configs"];
/// What may stand at the end of a path.
const PATH_FUNCTIONS: &[&str] = &[
    "length", "size", "min", "max", "avg", "sum", "stddev", "keys", "first", "last", "index", "concat",
    "append",
];
/// Operators of filters that are words.
const FILTER_WORDS: &[&str] =
    &["in", "nin", "subsetof", "anyof", "noneof", "size", "empty", "contains", "all"];

/// The same error, of a text that is an expression all the same: it is found when it is evaluated.
fn evaluating<T>(result: Result<T>) -> Result<T> {
    result.map_err(|error| Error { found: Found::Evaluating, ..error })
}

/// Reads an expression.
pub(crate) fn parse(text: &str, xpaths: &Arc<dyn XPathCompiler>) -> Result<Parsed> {
    if text.len() > MAX_LENGTH {
        let message = format!("the expression is longer than {MAX_LENGTH} bytes");
        return Err(Error::new(message, 0..text.len()));
    }
    let mut lexer = Lexer::new(text);
    let (token, start) = lexer.next()?;
    let mut parser = Parser {
        lexer,
        token,
        start,
        end: 0,
        depth: 0,
        reads: Reads::Nothing,
        warnings: Vec::new(),
        configured: Vec::new(),
        xpaths,
    };
    if parser.token == Token::End {
        return Err(Error::new("the expression is empty", 0..text.len()));
    }
    let root = parser.expression()?;
    if parser.token != Token::End {
        return parser.unexpected("an operator or the end");
    }
    Ok(Parsed { root, reads: parser.reads, warnings: parser.warnings, configured: parser.configured })
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token<'a>,
    /// Where `token` begins.
    start: usize,
    /// Where the token before it ends.
    end: usize,
    depth: usize,
    reads: Reads,
    warnings: Vec<Warning>,
    configured: Vec<Configured>,
    xpaths: &'a Arc<dyn XPathCompiler>,
}

impl<'a> Parser<'a> {
    fn advance(&mut self) -> Result<Token<'a>> {
        self.end = self.lexer.at;
        let (token, start) = self.lexer.next()?;
        self.start = start;
        Ok(std::mem::replace(&mut self.token, token))
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(&self.token, Token::Symbol(actual) if *actual == symbol)
    }

    fn take(&mut self, symbol: &str) -> Result<bool> {
        let found = self.is(symbol);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, symbol: &str) -> Result<()> {
        if self.take(symbol)? { Ok(()) } else { self.unexpected(&format!("`{symbol}`")) }
    }

    fn error<T>(&self, message: impl Into<String>, span: Range<usize>) -> Result<T> {
        Err(Error::new(message, span))
    }

    fn unexpected<T>(&self, expected: &str) -> Result<T> {
        let found = match &self.token {
            Token::End => "the end".to_owned(),
            _ => format!("`{}`", self.lexer.text.get(self.start..self.lexer.at).unwrap_or("")),
        };
        self.error(format!("expected {expected}, found {found}"), self.start..self.lexer.at.max(self.start))
    }

    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            let message = format!("the expression is nested deeper than {MAX_DEPTH} levels");
            return self.error(message, self.start..self.lexer.at);
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn reads(&mut self, what: Reads) {
        self.reads = self.reads.max(what);
    }

    fn expression(&mut self) -> Result<Expr> {
        self.nested(|parser| {
            let condition = parser.comparison()?;
            if !parser.take("?")? {
                return Ok(condition);
            }
            let then = parser.expression()?;
            parser.expect(":")?;
            let other = parser.expression()?;
            Ok(Expr::Conditional(Box::new([condition, then, other])))
        })
    }

    fn comparison(&mut self) -> Result<Expr> {
        let begin = self.start;
        let (first, mut trap) = self.logic()?;
        let mut rest = Vec::new();
        loop {
            let operator = match &self.token {
                Token::Symbol("==") => Comparison::Equal,
                Token::Symbol("!=") => Comparison::NotEqual,
                Token::Symbol("<") => Comparison::Less,
                Token::Symbol("<=") => Comparison::LessOrEqual,
                Token::Symbol(">") => Comparison::Greater,
                Token::Symbol(">=") => Comparison::GreaterOrEqual,
                Token::Symbol("===" | "!==" | "=~") => {
                    return self.unexpected("`==`, `!=`, `<`, `<=`, `>` or `>=`");
                }
                _ => break,
            };
            self.advance()?;
            let (operand, bare) = self.logic()?;
            trap |= bare;
            rest.push((operator, operand));
        }
        if rest.is_empty() {
            return Ok(first);
        }
        if trap {
            self.warnings.push(Warning {
                message: "`and` and `or` bind tighter than comparisons".to_owned(),
                advice: "write each comparison in parentheses: `(a == 1) and (b == 2)`".to_owned(),
                span: begin..self.end,
            });
        }
        Ok(Expr::Comparison(Box::new(first), rest))
    }

    /// And whether it has an `and` or an `or`.
    fn logic(&mut self) -> Result<(Expr, bool)> {
        let first = self.arithmetic()?;
        let (mut operands, mut operators) = (vec![first], Vec::new());
        loop {
            let operator = match &self.token {
                Token::Symbol("&&") | Token::Name("and") => Logic::And,
                Token::Symbol("||") | Token::Name("or") => Logic::Or,
                _ => break,
            };
            self.advance()?;
            operators.push(operator);
            operands.push(self.arithmetic()?);
        }
        match (operators.is_empty(), operands.pop()) {
            (true, Some(only)) => Ok((only, false)),
            (_, last) => {
                operands.extend(last);
                Ok((Expr::Logic(operands, operators), true))
            }
        }
    }

    fn arithmetic(&mut self) -> Result<Expr> {
        self.chain(
            |symbol| match symbol {
                "+" => Some(Arithmetic::Add),
                "-" => Some(Arithmetic::Subtract),
                _ => None,
            },
            Self::term,
        )
    }

    fn term(&mut self) -> Result<Expr> {
        self.chain(
            |symbol| match symbol {
                "*" => Some(Arithmetic::Multiply),
                "/" => Some(Arithmetic::Divide),
                "%" => Some(Arithmetic::Remainder),
                _ => None,
            },
            Self::factor,
        )
    }

    fn chain(
        &mut self,
        operator: fn(&str) -> Option<Arithmetic>,
        operand: fn(&mut Self) -> Result<Expr>,
    ) -> Result<Expr> {
        let first = operand(self)?;
        let mut rest = Vec::new();
        while let Token::Symbol(symbol) = self.token
            && let Some(operator) = operator(symbol)
        {
            self.advance()?;
            rest.push((operator, operand(self)?));
        }
        Ok(if rest.is_empty() { first } else { Expr::Arithmetic(Box::new(first), rest) })
    }

    fn factor(&mut self) -> Result<Expr> {
        let start = self.start;
        match self.token.clone() {
            Token::Number(digits) => {
                self.advance()?;
                self.number(digits, start)
            }
            Token::Text(text) => {
                self.advance()?;
                Ok(Expr::Text(text.into()))
            }
            // A sign belongs to the number that follows without a blank.
            Token::Symbol("-") => {
                self.advance()?;
                match self.token {
                    Token::Number(digits) if self.start == start + 1 => {
                        self.advance()?;
                        self.number(&format!("-{digits}"), start)
                    }
                    _ => self.error("only a number can have a sign: write `0 - x`", start..self.lexer.at),
                }
            }
            Token::Symbol("(") => {
                self.advance()?;
                let inner = self.expression()?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Symbol("[") => {
                self.advance()?;
                let items = self.list("]")?;
                self.steps(Root::Value(Expr::Array(items)))
            }
            Token::Symbol("$") => {
                self.advance()?;
                self.reads(Reads::Json);
                self.steps(Root::Payload)
            }
            Token::Symbol("!") => self.error("`!` stands only in filters: write `not(…)`", start..start + 1),
            Token::Name(name) => {
                self.advance()?;
                if self.is("(") { self.function(name, start) } else { self.name(name, start) }
            }
            _ => self.unexpected("a value"),
        }
    }

    fn number(&self, digits: &str, start: usize) -> Result<Expr> {
        match Number::parse(digits) {
            Some(number) => Ok(Expr::Number(number)),
            None => self.error("this is not a number", start..self.end),
        }
    }

    /// What comes before `end`, separated by commas; takes `end`.
    fn list(&mut self, end: &str) -> Result<Vec<Expr>> {
        let mut items = Vec::new();
        if self.take(end)? {
            return Ok(items);
        }
        loop {
            items.push(self.expression()?);
            if self.take(end)? {
                return Ok(items);
            }
            if !self.take(",")? {
                return self.unexpected(&format!("`,` or `{end}`"));
            }
        }
    }

    /// A word, or a root with its steps; its name is taken.
    fn name(&mut self, name: &str, start: usize) -> Result<Expr> {
        match name {
            "true" => Ok(Expr::Boolean(true)),
            "false" => Ok(Expr::Boolean(false)),
            "null" => Ok(Expr::Null),
            "payload" => {
                self.reads(Reads::Json);
                self.steps(Root::Payload)
            }
            "vars" => {
                self.reads(Reads::Headers);
                let key = self.key("a variable")?;
                self.steps(Root::Variable(key.into()))
            }
            "headers" => self.scoped(Scope::Header, "a header", ""),
            "configs" => {
                self.reads(Reads::Headers);
                let name = self.key("a configurable value")?;
                self.configured.push(Configured { name: name.clone(), span: start..self.end });
                self.steps(Root::Scope(Scope::Configuration, name.into()))
            }
            "params" => {
                let kinds = ["queryParams", "pathParams", "functionParams"];
                match self.kind(&kinds)? {
                    "queryParams" => self.scoped(Scope::Default, "a query parameter", "query.param."),
                    "pathParams" => self.scoped(Scope::Default, "a path parameter", "uri.var."),
                    _ => self.scoped(Scope::Parameter, "a parameter of the template", ""),
                }
            }
            "props" | "properties" => match self.kind(&["synapse", "axis2"])? {
                "synapse" => self.scoped(Scope::Default, "a property", ""),
                _ => self.scoped(Scope::Axis2, "a property", ""),
            },
            other => {
                let advice = match did_you_mean(other, ROOTS.iter().copied()) {
                    Some(advice) => advice,
                    None if functions::names().any(|name| name == other) => {
                        format!("it is a function: `{other}(…)`")
                    }
                    None => format!("expected a function, a value or one of {}", ROOTS.join(", ")),
                };
                self.error(format!("there is no `{other}`: {advice}"), start..self.end)
            }
        }
    }

    /// `.kind` after a root.
    fn kind(&mut self, kinds: &[&'static str]) -> Result<&'static str> {
        let start = self.start;
        let kind = self.key(&kinds.join(", "))?;
        match kinds.iter().find(|known_kind| **known_kind == kind) {
            Some(kind) => Ok(kind),
            None => {
                let advice = match kind.as_str() {
                    // So WSO2's documentation writes it.
                    "uriParams" if kinds.contains(&"pathParams") => Some("write `pathParams`".to_owned()),
                    _ => did_you_mean(&kind, kinds.iter().copied()),
                };
                let advice = advice.unwrap_or_else(|| format!("expected {}", kinds.join(", ")));
                self.error(format!("there is no `{kind}` here: {advice}"), start..self.end)
            }
        }
    }

    /// `.name` or `["name"]`.
    fn key(&mut self, what: &str) -> Result<String> {
        let bracket = self.is("[") || (self.is(".") && self.lexer.clone().next()?.0 == Token::Symbol("["));
        if bracket {
            self.take(".")?;
            self.advance()?;
            let Token::Text(name) = self.token.clone() else {
                return self.unexpected(&format!("the name of {what} in quotes"));
            };
            self.advance()?;
            self.expect("]")?;
            return Ok(name);
        }
        if !self.take(".")? {
            return self.unexpected(&format!("`.` and the name of {what}"));
        }
        let Token::Name(name) = self.token else {
            return self.unexpected(&format!("the name of {what}"));
        };
        self.advance()?;
        Ok(name.to_owned())
    }

    fn scoped(&mut self, scope: Scope, what: &str, prefix: &str) -> Result<Expr> {
        self.reads(Reads::Headers);
        let key = self.key(what)?;
        let root = Root::Scope(scope, format!("{prefix}{key}").into());
        // A text that is JSON can be looked into, though WSO2 refuses that for most roots.
        self.steps(root)
    }

    fn function(&mut self, name: &str, start: usize) -> Result<Expr> {
        let arguments_at = self.start;
        self.advance()?;
        let mut arguments = self.nested(|parser| parser.list(")"))?;
        let span = start..self.end;
        let count = arguments.len();
        let arity = |wanted: std::ops::RangeInclusive<usize>| {
            if wanted.contains(&count) {
                return Ok(());
            }
            let wanted = match (*wanted.start(), *wanted.end()) {
                (1, 1) => "1 argument".to_owned(),
                (low, high) if low == high => format!("{low} arguments"),
                (low, high) => format!("{low} to {high} arguments"),
            };
            evaluating(Err(Error::new(format!("`{name}` takes {wanted}, not {count}"), span.clone())))
        };
        let call = match name {
            "exists" => {
                arity(1..=1)?;
                Call::Exists(arguments.remove(0))
            }
            "xpath" => {
                arity(1..=2)?;
                let of = (count == 2).then(|| arguments.remove(1));
                Call::XPath(self.xpath(arguments.remove(0), of.is_some(), arguments_at)?, of)
            }
            "registry" => {
                arity(1..=2)?;
                self.reads(Reads::Headers);
                let mut property = (count == 2).then(|| arguments.remove(1));
                if property.is_none()
                    && self.is(".")
                    && self.lexer.clone().next()?.0 == Token::Name("property")
                {
                    self.advance()?;
                    self.advance()?;
                    self.expect("(")?;
                    property = Some(self.expression()?);
                    self.expect(")")?;
                }
                Call::Registry(arguments.remove(0), property)
            }
            "wso2-vault" => {
                arity(1..=3)?;
                self.reads(Reads::Headers);
                Call::Secret(arguments)
            }
            "hashicorp-vault" => {
                arity(2..=3)?;
                self.reads(Reads::Headers);
                Call::RemoteSecret(arguments)
            }
            _ => match functions::find(name) {
                Some(function) => {
                    arity(function.arity.clone())?;
                    Call::Plain(function, arguments)
                }
                None => {
                    let advice = did_you_mean(name, functions::names());
                    let advice =
                        advice.unwrap_or_else(|| "see docs/expressions.md for those there are".to_owned());
                    let span = start..start + name.len();
                    return evaluating(self.error(format!("there is no function `{name}`: {advice}"), span));
                }
            },
        };
        self.steps(Root::Value(Expr::Call(Box::new(call))))
    }

    fn xpath(&mut self, text: Expr, of_variable: bool, at: usize) -> Result<XPathText> {
        let reads = |reads_document: bool| match reads_document && !of_variable {
            true => Reads::Xml,
            false => Reads::Headers,
        };
        match text {
            Expr::Text(source) => match self.xpaths.compile(&source) {
                Ok(expression) => {
                    self.reads(reads(expression.needs().document));
                    Ok(XPathText::Known(Box::new(expression)))
                }
                Err(why) => evaluating(self.error(format!("in the XPath: {why}"), at..self.end)),
            },
            computed => {
                self.reads(reads(true));
                Ok(XPathText::Computed(computed, Arc::clone(self.xpaths)))
            }
        }
    }

    /// The steps after a root.
    fn steps(&mut self, root: Root) -> Result<Expr> {
        let start = self.start;
        let mut path = Steps::default();
        self.path(&mut path)?;
        if path.text.is_empty() {
            return Ok(match root {
                Root::Value(value) => value,
                root => Expr::Access(Box::new(Access { root, path: None })),
            });
        }
        let text = format!("${}", path.text);
        match JsonPath::compile_open(&text) {
            Ok(steps) => {
                let path = Some(Path { steps, parameters: path.parameters });
                Ok(Expr::Access(Box::new(Access { root, path })))
            }
            Err(why) => {
                let message = format!("this path is not possible: {}", why.message);
                Err(Error { found: Found::Faulting, ..Error::new(message, start..self.end) })
            }
        }
    }

    /// Reads steps into a JSONPath in which names are quoted.
    fn path(&mut self, out: &mut Steps) -> Result<()> {
        loop {
            if self.is("[") {
                self.bracket(out)?;
            } else if self.take("..")? {
                if self.is("[") {
                    out.text.push_str("..");
                    self.bracket(out)?;
                } else {
                    self.step(out, "..")?;
                }
            } else if self.take(".")? {
                if !self.is("[") {
                    self.step(out, ".")?;
                }
            } else {
                return Ok(());
            }
        }
    }

    /// What follows one or two dots.
    fn step(&mut self, out: &mut Steps, dots: &str) -> Result<()> {
        if self.take("*")? {
            out.text.push_str(dots);
            out.text.push('*');
            return Ok(());
        }
        let Token::Name(name) = self.token else { return self.unexpected("a name, `*` or `[`") };
        let start = self.start;
        self.advance()?;
        if !self.is("(") {
            if dots == ".." {
                out.text.push_str("..");
            }
            out.name(&[name]);
            return Ok(());
        }
        if !PATH_FUNCTIONS.contains(&name) {
            let advice = did_you_mean(name, PATH_FUNCTIONS.iter().copied());
            let advice = advice.unwrap_or_else(|| format!("expected {}", PATH_FUNCTIONS.join(", ")));
            return self.error(format!("a path cannot end with `{name}()`: {advice}"), start..self.end);
        }
        self.advance()?;
        let arguments = self.nested(|parser| parser.list(")"))?;
        let mut texts = Vec::new();
        for argument in &arguments {
            match constant(argument) {
                Some(json) => texts.push(json.to_string()),
                None => return self.error("here only fixed values can stand", start..self.end),
            }
        }
        out.text.push_str(&format!("{dots}{name}({})", texts.join(",")));
        Ok(())
    }

    fn bracket(&mut self, out: &mut Steps) -> Result<()> {
        let mut inside = self.lexer.clone();
        self.selectors(out).map_err(|error| match is_closed(&mut inside) {
            true if error.found == Found::Loading => Error { found: Found::Faulting, ..error },
            _ => error,
        })
    }

    /// What stands in a bracket.
    fn selectors(&mut self, out: &mut Steps) -> Result<()> {
        self.nested(|parser| {
            parser.advance()?;
            if parser.is("*") {
                parser.advance()?;
                out.text.push_str("[*]");
                return parser.expect("]");
            }
            if parser.take("?")? {
                parser.expect("(")?;
                out.text.push_str("[?(");
                parser.filter(out)?;
                parser.expect(")")?;
                out.text.push_str(")]");
                return parser.expect("]");
            }
            if parser.is(":") {
                return parser.slice(None, out);
            }
            if parser.is("(") && parser.lexer.clone().next()?.0 == Token::Symbol("@") {
                let message =
                    "there are no scripts such as `(@.length-1)`: write `[-1]` for the last element";
                return parser.error(message, parser.start..parser.lexer.at);
            }
            let first = parser.arithmetic()?;
            if parser.is(":") {
                return parser.slice(Some(first), out);
            }
            let mut items = vec![first];
            while parser.take(",")? {
                items.push(parser.arithmetic()?);
            }
            let names: Vec<&str> = items
                .iter()
                .filter_map(|item| match item {
                    Expr::Text(name) => Some(&**name),
                    _ => None,
                })
                .collect();
            if names.len() == items.len() {
                out.name(&names);
            } else {
                out.text.push('[');
                for (at, item) in items.into_iter().enumerate() {
                    if at > 0 {
                        out.text.push(',');
                    }
                    out.index(item);
                }
                out.text.push(']');
            }
            parser.expect("]")
        })
    }

    /// From its first colon on.
    fn slice(&mut self, first: Option<Expr>, out: &mut Steps) -> Result<()> {
        let start = self.start;
        self.advance()?;
        let last = if self.is("]") || self.is(":") { None } else { Some(self.arithmetic()?) };
        if self.take(":")? && !self.is("]") {
            // A step, which this kind of JSONPath reads and does not look at.
            self.arithmetic()?;
        }
        if first.is_none() && last.is_none() {
            return self.error("a slice needs a bound: `[1:]`, `[:2]`", start..self.end);
        }
        out.text.push('[');
        if let Some(first) = first {
            out.index(first);
        }
        out.text.push(':');
        if let Some(last) = last {
            out.index(last);
        }
        out.text.push(']');
        self.expect("]")
    }

    /// A condition on the elements of an array.
    fn filter(&mut self, out: &mut Steps) -> Result<()> {
        loop {
            self.filter_operand(out)?;
            let operator = match &self.token {
                Token::Symbol("&&") | Token::Name("and") => " && ",
                Token::Symbol("||") | Token::Name("or") => " || ",
                _ => return Ok(()),
            };
            self.advance()?;
            out.text.push_str(operator);
        }
    }

    fn filter_operand(&mut self, out: &mut Steps) -> Result<()> {
        if self.take("!")? {
            out.text.push('!');
            return self.nested(|parser| parser.filter_operand(out));
        }
        if self.is("(") {
            // A group, unless it is the beginning of a computed operand.
            let (lexer, token, start, end) = (self.lexer.clone(), self.token.clone(), self.start, self.end);
            let (length, parameters) = (out.text.len(), out.parameters.len());
            self.advance()?;
            out.text.push('(');
            let group = self.nested(|parser| parser.filter(out)).and_then(|()| self.expect(")"));
            let operator_follows = matches!(
                self.token,
                Token::Symbol(
                    "+" | "-" | "*" | "/" | "%" | "==" | "!=" | "<" | "<=" | ">" | ">=" | "===" | "!=="
                )
            );
            if group.is_ok() && !operator_follows {
                out.text.push(')');
                return Ok(());
            }
            (self.lexer, self.token, self.start, self.end) = (lexer, token, start, end);
            out.text.truncate(length);
            out.parameters.truncate(parameters);
        }
        let computed = self.operand(out)?;
        let operator = match &self.token {
            Token::Symbol(symbol @ ("==" | "!=" | "<" | "<=" | ">" | ">=" | "=~" | "===" | "!==")) => *symbol,
            Token::Name(word) if FILTER_WORDS.contains(word) => *word,
            _ => {
                if computed {
                    out.text.push_str(" == true");
                }
                return Ok(());
            }
        };
        self.advance_operator(operator, out)?;
        Ok(())
    }

    fn advance_operator(&mut self, operator: &str, out: &mut Steps) -> Result<()> {
        out.text.push_str(&format!(" {operator} "));
        if operator == "=~" {
            // The token after it is read as the beginning of a regular expression.
            self.advance()?;
            if self.is("/") {
                let regex = self.lexer.regex(self.start)?;
                out.text.push_str(regex);
                self.advance()?;
                return Ok(());
            }
            return self.unexpected("a regular expression between slashes");
        }
        self.advance()?;
        self.operand(out)?;
        Ok(())
    }

    /// A side of a comparison in a filter; whether it is computed beforehand.
    fn operand(&mut self, out: &mut Steps) -> Result<bool> {
        if self.take("@")? {
            out.text.push('@');
            self.path(out)?;
            return Ok(false);
        }
        let value = self.arithmetic()?;
        match constant(&value) {
            Some(json) => out.text.push_str(&json.to_string()),
            None => out.parameter(value),
        }
        Ok(true)
    }
}

/// Whether a bracket that has been opened is closed: what stands in it is left to the JSONPath library, which reads it when
/// the expression is evaluated.
fn is_closed(rest: &mut Lexer<'_>) -> bool {
    let mut depth = 1_usize;
    while depth > 0 {
        match rest.next() {
            Ok((Token::Symbol("["), _)) => depth += 1,
            Ok((Token::Symbol("]"), _)) => depth -= 1,
            Ok((Token::End, _)) | Err(_) => return false,
            Ok(_) => {}
        }
    }
    true
}

/// A JSONPath as it is read.
#[derive(Default)]
struct Steps {
    text: String,
    parameters: Vec<Expr>,
}

impl Steps {
    fn name(&mut self, names: &[&str]) {
        for (at, name) in names.iter().enumerate() {
            self.text.push_str(if at == 0 { "['" } else { "','" });
            for c in name.chars() {
                if matches!(c, '\'' | '\\') {
                    self.text.push('\\');
                }
                self.text.push(c);
            }
        }
        self.text.push_str("']");
    }

    fn index(&mut self, item: Expr) {
        match item {
            Expr::Number(Number::Integer(index)) if i32::try_from(index).is_ok() => {
                self.text.push_str(&index.to_string());
            }
            computed => self.parameter(computed),
        }
    }

    fn parameter(&mut self, value: Expr) {
        self.text.push_str(&format!("{{{}}}", self.parameters.len()));
        self.parameters.push(value);
    }
}

/// A literal as JSON.
fn constant(expr: &Expr) -> Option<serde_json::Value> {
    Some(match expr {
        Expr::Null => serde_json::Value::Null,
        Expr::Boolean(truth) => (*truth).into(),
        Expr::Number(number) => number.to_json(),
        Expr::Text(text) => text.to_string().into(),
        Expr::Array(items) => items.iter().map(constant).collect::<Option<Vec<_>>>()?.into(),
        _ => return None,
    })
}
