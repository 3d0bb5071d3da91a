//! The values of expressions.

use super::{MAX_RANGE, Res, Run};
use crate::ast::{Error, Escape, Expr, ExprKind, Piece, Place, RangeEnd, Special};
use crate::value::{DateKind, Hash, Range, Text, Value};
use crate::{built_in, nodes};
use std::rc::Rc;

impl<'m> Run<'m> {
    /// The value of an expression, which must be there.
    pub fn value(&mut self, expr: &'m Expr) -> Res<Value<'m>> {
        match self.eval(expr)? {
            Some(value) => Ok(value),
            None => Err(missing(&shown(expr), expr.place)),
        }
    }

    /// The value of an expression; `None`: it is missing.
    pub fn eval(&mut self, expr: &'m Expr) -> Res<Option<Value<'m>>> {
        match &expr.kind {
            ExprKind::Text(text) => return Ok(Some(Value::Text(Text::Lent(text)))),
            ExprKind::Number(number) => return Ok(Some(Value::Number(*number))),
            ExprKind::Variable(name) => {
                self.spend(1, expr.place)?;
                return self.lookup(name);
            }
            _ => {}
        }
        self.deeper(expr.place, |run| run.eval_deeper(expr))
    }

    pub(super) fn eval_deeper(&mut self, expr: &'m Expr) -> Res<Option<Value<'m>>> {
        let place = expr.place;
        Ok(Some(match &expr.kind {
            ExprKind::Text(_) | ExprKind::Number(_) | ExprKind::Variable(_) => return self.eval(expr),
            ExprKind::Boolean(is) => Value::Boolean(*is),
            ExprKind::Parts(pieces) => {
                let mut out = String::new();
                for piece in pieces {
                    match piece {
                        Piece::Text(text) => out.push_str(text),
                        Piece::Expr(expr) => out.push_str(&self.text(expr)?),
                    }
                    if out.len() > self.limit {
                        return Err(self.too_large(place));
                    }
                }
                self.make(out.len(), place)?;
                Value::made(out)
            }
            ExprKind::List(items) => {
                self.make_items(items.len(), place)?;
                let mut list = Vec::with_capacity(items.len());
                for item in items {
                    list.push(self.value(item)?);
                }
                Value::list(list)
            }
            ExprKind::Hash(members) => {
                self.make_items(members.len() * 2, place)?;
                let mut hash = Hash::default();
                for (key, value) in members {
                    let key = self.text(key)?;
                    let value = self.value(value)?;
                    hash.set(key, value);
                }
                Value::Hash(Rc::new(hash))
            }
            ExprKind::Special(special) => return self.special(*special),
            ExprKind::Dot(base, name) => {
                let value = self.value(base)?;
                return self.member(&value, base, name);
            }
            ExprKind::Index(base, index) => {
                let value = self.value(base)?;
                let key = self.value(index)?;
                return self.index(value, key, base, index);
            }
            ExprKind::Call(target, arguments) => return self.function(target, arguments, place),
            ExprKind::BuiltIn(base, name, arguments) => {
                return built_in::call(self, base, name, arguments, place);
            }
            ExprKind::Lambda(..) => {
                return Err(Error::new("`->` stands only in the arguments of built-ins like `?map`", place));
            }
            ExprKind::Default(base, default) => {
                let value = self.optional(base)?;
                return match (value, default) {
                    (Some(value), _) => Ok(Some(value)),
                    (None, Some(default)) => self.eval(default),
                    (None, None) => Ok(Some(Value::Empty)),
                };
            }
            ExprKind::Exists(base) => Value::Boolean(self.optional(base)?.is_some()),
            ExprKind::Paren(inner) => return self.eval(inner),
            ExprKind::Escaped(name, escape, inner) => {
                self.escaped.push((name, inner));
                let value = self.eval(escape)?;
                self.escaped.pop();
                return Ok(value);
            }
            ExprKind::Not(inner) => Value::Boolean(!self.truth(inner)?),
            ExprKind::Negate(inner) => Value::Number(self.number(inner)?.negate()),
            ExprKind::Plus(inner) => Value::Number(self.number(inner)?),
            ExprKind::Arithmetic(op, a, b) => {
                let left = self.value(a)?;
                let right = self.value(b)?;
                self.arithmetic(*op, left, right, (a, b), place)?
            }
            ExprKind::Compare(op, a, b) => {
                let left = self.value(a)?;
                let right = self.value(b)?;
                Value::Boolean(self.compare(*op, &left, &right).map_err(|why| Error::new(why, place))?)
            }
            ExprKind::And(a, b) => Value::Boolean(self.truth(a)? && self.truth(b)?),
            ExprKind::Or(a, b) => Value::Boolean(self.truth(a)? || self.truth(b)?),
            ExprKind::Range(from, end, to) => {
                let from = self.number(from)?.to_i64();
                let to = match to {
                    Some(to) => Some(self.number(to)?.to_i64()),
                    None => None,
                };
                Value::Range(range(from, *end, to))
            }
        }))
    }

    /// For `!` and `??`: what is missing in the last step is no error, in brackets what is missing anywhere.
    pub fn optional(&mut self, expr: &'m Expr) -> Res<Option<Value<'m>>> {
        let mark = self.mark();
        match (self.eval(expr), &expr.kind) {
            (Err(error), ExprKind::Paren(_)) if error.missing => {
                self.restore(mark);
                Ok(None)
            }
            (value, _) => value,
        }
    }

    pub(super) fn special(&mut self, special: Special) -> Res<Option<Value<'m>>> {
        Ok(Some(match special {
            Special::Now => {
                let now = *self.now.get_or_insert_with(|| {
                    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                    since.map_or(0, |since| since.as_millis() as i64)
                });
                Value::Date(now, DateKind::DateTime)
            }
            Special::Variables => {
                let mut hash = Hash::default();
                let model = self.model;
                for (name, model) in model {
                    if let Some(value) = Value::of_model(model) {
                        hash.set(Text::Lent(name), value);
                    }
                }
                for (name, value) in self.globals.iter().chain(&self.variables) {
                    hash.set(Text::Made(Rc::from(&**name)), value.clone());
                }
                Value::Hash(Rc::new(hash))
            }
            Special::Error => match self.recovered.last() {
                Some(message) => Value::made(message.as_str()),
                None => return Ok(None),
            },
            Special::Locale => Value::made(self.locale.as_deref().unwrap_or("en_US")),
            Special::Lang => Value::Text(Text::Lent("en")),
            Special::Version => Value::Text(Text::Lent("2.3.30")),
            Special::TemplateName => Value::Text(Text::Lent("template")),
            Special::OutputFormat => Value::Text(Text::Lent(match self.escape {
                Escape::None => "undefined",
                Escape::Xml => "XML",
                Escape::Html => "HTML",
            })),
            Special::AutoEscape => Value::Boolean(self.escape != Escape::None),
        }))
    }

    pub(super) fn member(&mut self, value: &Value<'m>, base: &'m Expr, name: &str) -> Res<Option<Value<'m>>> {
        match value {
            Value::Nodes(document, nodes) => {
                let prefixes = &self.template.prefixes;
                nodes::member(self, document, nodes, name, prefixes, base.place)
            }
            value if value.is_hash() => Ok(value.member(name)),
            other => Err(Error::new(
                format!("Expected a hash, but `{}` is {}", shown(base), other.what()),
                base.place,
            )),
        }
    }

    pub(super) fn index(
        &mut self,
        value: Value<'m>,
        key: Value<'m>,
        base: &'m Expr,
        index: &'m Expr,
    ) -> Res<Option<Value<'m>>> {
        match key {
            Value::Number(number) => {
                let at = number.to_i64();
                if value.is_sequence() {
                    return Ok(usize::try_from(at).ok().and_then(|at| value.item(at)?.present()));
                }
                let text = self.text_of(&value, base)?;
                self.spend(text.len() >> 5, index.place)?;
                let letter = usize::try_from(at).ok().and_then(|at| text.chars().nth(at));
                match letter {
                    Some(letter) => Ok(Some(Value::made(letter.to_string()))),
                    None => Err(Error::new(format!("the string has no character {at}"), index.place)),
                }
            }
            Value::Range(range) => self.slice(value, range, base, index.place).map(Some),
            Value::Text(name) => self.member(&value, base, &name),
            Value::Nodes(..) => {
                let name = self.text_of(&key, index)?;
                self.member(&value, base, &name)
            }
            other => Err(Error::new(
                format!("Expected a number, a string or a range between brackets, found {}", other.what()),
                index.place,
            )),
        }
    }

    pub(super) fn slice(
        &mut self,
        value: Value<'m>,
        range: Range,
        base: &'m Expr,
        place: Place,
    ) -> Res<Value<'m>> {
        let sequence = value.is_sequence();
        let text = if sequence { None } else { Some(self.text_of(&value, base)?) };
        let length = match &text {
            Some(text) => {
                self.spend(text.len() >> 5, place)?;
                text.chars().count()
            }
            None => value.length().unwrap_or(usize::MAX),
        };
        let out_of = || Error::new(format!("the range lies outside of what has a length of {length}"), place);
        if range.length == Some(0) {
            return Ok(if sequence { Value::list(Vec::new()) } else { Value::Text(Text::Lent("")) });
        }
        let from = usize::try_from(range.from).map_err(|_| out_of())?;
        let open = range.length.is_none();
        if from > length || from == length && !(open || range.lenient) {
            return Err(out_of());
        }
        let left = if range.step > 0 { length - from } else { from + 1 };
        let count = match range.length {
            Some(count) if count > left && range.lenient => left,
            Some(count) if count > left => return Err(out_of()),
            Some(count) => count,
            None => left,
        };
        if let Some(text) = text {
            if range.step < 0 && count > 1 {
                return Err(Error::new("a slice of a string goes forward", place));
            }
            let cut: String = text.chars().skip(from).take(count).collect();
            self.make(cut.len(), place)?;
            return Ok(Value::made(cut));
        }
        if count > MAX_RANGE && value.length().is_none() {
            return Err(Error::new(format!("a range of {count} items is too long"), place));
        }
        self.make_items(count, place)?;
        let at = |n: usize| if range.step > 0 { from + n } else { from - n };
        Ok(Value::list((0..count).filter_map(|n| value.item(at(n))).collect()))
    }
}

fn range(from: i64, end: RangeEnd, to: Option<i64>) -> Range {
    let Some(to) = to else { return Range { from, step: 1, length: None, lenient: false } };
    let (step, count) = match end {
        RangeEnd::Inclusive => (if to >= from { 1 } else { -1 }, from.abs_diff(to).saturating_add(1)),
        RangeEnd::Exclusive => (if to >= from { 1 } else { -1 }, from.abs_diff(to)),
        RangeEnd::Length => (if to >= 0 { 1 } else { -1 }, to.unsigned_abs()),
    };
    let length = usize::try_from(count).unwrap_or(usize::MAX);
    Range { from, step, length: Some(length), lenient: end == RangeEnd::Length }
}

pub(crate) fn missing(what: &str, place: Place) -> Error {
    let message = format!("`{what}` is null or missing; give it a default with `!` or ask with `??`");
    Error { missing: true, ..Error::new(message, place) }
}

/// An expression for a message.
pub(crate) fn shown(expr: &Expr) -> String {
    match &expr.kind {
        ExprKind::Variable(name) => name.to_string(),
        ExprKind::Dot(base, name) => format!("{}.{name}", shown(base)),
        ExprKind::Index(base, index) => match &index.kind {
            ExprKind::Text(key) => format!("{}[\"{key}\"]", shown(base)),
            ExprKind::Number(at) => format!("{}[{}]", shown(base), at.computer()),
            _ => format!("{}[…]", shown(base)),
        },
        ExprKind::BuiltIn(base, name, _) => format!("{}?{name}", shown(base)),
        ExprKind::Call(base, _) => format!("{}(…)", shown(base)),
        ExprKind::Paren(inner) => format!("({})", shown(inner)),
        ExprKind::Text(text) => format!("\"{text}\""),
        ExprKind::Number(number) => number.computer(),
        _ => "…".to_owned(),
    }
}
