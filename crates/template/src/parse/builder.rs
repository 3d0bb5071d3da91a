//! The tree that the tags of a template make.

use super::{Placed, Tag, Token};
use crate::ast::{Body, Error, Escape, Expr, ExprKind, List, Macro, Node, Place, Scope};
use crate::expression::{MAX_NESTING, Parsed};
use std::collections::HashMap;
use std::sync::Arc;

pub(super) struct Builder<I: Iterator<Item = Placed>> {
    pub(super) tokens: std::iter::Peekable<I>,
    pub(super) macros: HashMap<Arc<str>, Arc<Macro>>,
    /// Open `<#escape>`s.
    pub(super) escapes: Vec<(Arc<str>, Arc<Expr>)>,
    /// The tags around, for those that stand only in some.
    pub(super) inside: Vec<&'static str>,
    pub(super) end: Place,
    pub(super) depth: usize,
}

impl<I: Iterator<Item = Placed>> Builder<I> {
    /// Nodes up to a tag that ends them, which is left for the caller. `ends`: names of closing tags, and of tags that
    /// stand between.
    pub(super) fn body(&mut self, ends: &[&str]) -> Parsed<Body> {
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
        self.tokens.peek().map_or(self.end, |next| next.place)
    }

    /// An interpolation within `<#escape>`s: the innermost is applied first.
    fn escaped(&self, mut expr: Expr) -> Expr {
        for (name, escape) in self.escapes.iter().rev() {
            let place = expr.place;
            expr =
                Expr { kind: ExprKind::Escaped(Arc::clone(name), Arc::clone(escape), Box::new(expr)), place };
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
        let inside = |builder: &Self, names: &[&str], what: &str| match builder
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
                let mut branches = vec![(test, self.within("if", |builder| builder.body(&ends))?)];
                let mut otherwise = Body::new();
                loop {
                    match self.tokens.peek().map(|next| &next.token) {
                        Some(Token::Open(Tag::ElseIf(_))) => {
                            if let Some(Placed { token: Token::Open(Tag::ElseIf(test)), .. }) =
                                self.tokens.next()
                            {
                                branches.push((test, self.within("if", |builder| builder.body(&ends))?));
                            }
                        }
                        Some(Token::Open(Tag::Else)) => {
                            self.tokens.next();
                            otherwise = self.within("if", |builder| builder.body(&["if"]))?;
                        }
                        _ => break,
                    }
                }
                self.close(&["if"], place)?;
                body.push(Node::If(branches, otherwise));
            }
            Tag::List(source, names) => {
                let ends = ["else", "list", "foreach"];
                let inner = self.within("list", |builder| builder.body(&ends))?;
                let mut otherwise = Body::new();
                if matches!(self.tokens.peek().map(|next| &next.token), Some(Token::Open(Tag::Else))) {
                    self.tokens.next();
                    otherwise = self.within("else", |builder| builder.body(&["list", "foreach"]))?;
                }
                self.close(&["list", "foreach"], place)?;
                body.push(Node::List(Box::new(List { source, names, body: inner, otherwise })));
            }
            Tag::Items(names) => {
                inside(self, &["list"], "items")?;
                let inner = self.within("items", |builder| builder.body(&["items"]))?;
                self.close(&["items"], place)?;
                body.push(Node::Items(names, inner, place));
            }
            Tag::Sep => {
                inside(self, &["list", "items"], "sep")?;
                let inner = self.within("sep", |builder| builder.body(&["sep"]))?;
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
            Tag::Assign(scope, assignments) => {
                if scope == Scope::Local {
                    inside(self, &["macro", "function"], "local")?;
                }
                body.push(Node::Assign(scope, assignments));
            }
            Tag::Capture(scope, name) => {
                let which = match scope {
                    Scope::Namespace => "assign",
                    Scope::Local => "local",
                    Scope::Global => "global",
                };
                let inner = self.within("capture", |builder| builder.body(&[which]))?;
                self.close(&[which], place)?;
                body.push(Node::Capture(scope, name, inner));
            }
            Tag::Macro { name, parameters, rest, function } => {
                if self.inside.iter().any(|around| matches!(*around, "macro" | "function")) {
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
                    call.body = Some(self.within("call", |builder| builder.body(&[""]))?);
                    self.close(&[""], place).map_err(|_| Error::new("this call is not closed", place))?;
                }
                body.push(Node::Call(call));
            }
            Tag::Switch(value) => {
                let mut cases: Vec<(Option<Vec<Expr>>, Body)> = Vec::new();
                let ends = ["case", "default", "switch"];
                // What stands before the first case is not written.
                self.within("switch", |builder| builder.body(&ends))?;
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
                    cases.push((values, self.within("switch", |builder| builder.body(&ends))?));
                }
                self.close(&["switch"], place)?;
                body.push(Node::Switch(value, cases));
            }
            Tag::Attempt => {
                let inner = self.within("attempt", |builder| builder.body(&["recover", "attempt"]))?;
                let recover = match self.tokens.next() {
                    Some(Placed { token: Token::Open(Tag::Recover), .. }) => {
                        self.within("recover", |builder| builder.body(&["attempt", "recover"]))?
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
                let inner = self.within("escape", |builder| builder.body(&["escape"]))?;
                self.escapes.pop();
                self.close(&["escape"], place)?;
                body.extend(inner);
            }
            Tag::NoEscape => {
                // The innermost `<#escape>` does not count inside.
                let last = self.escapes.pop();
                let inner = self.within("noescape", |builder| builder.body(&["noescape", "no_escape"]))?;
                self.escapes.extend(last);
                self.close(&["noescape", "no_escape"], place)?;
                body.extend(inner);
            }
            Tag::Escaping(escape) => {
                let inner =
                    self.within("outputformat", |builder| builder.body(&["outputformat", "output_format"]))?;
                self.close(&["outputformat", "output_format"], place)?;
                body.push(Node::Escaping(Some(escape), inner));
            }
            Tag::AutoEscape(on) => {
                let names: &[&str] =
                    if on { &["autoesc", "auto_esc"] } else { &["noautoesc", "no_auto_esc"] };
                let inner = self.within("autoesc", |builder| builder.body(names))?;
                self.close(names, place)?;
                let escape = if on { None } else { Some(Escape::None) };
                body.push(Node::Escaping(escape, inner));
            }
            Tag::Compress => {
                let inner = self.within("compress", |builder| builder.body(&["compress"]))?;
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
