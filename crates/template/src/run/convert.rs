//! What operators and output make of values: sums, comparisons, texts, and the settings that they follow.

use super::{MAX_RANGE, Res, Run, shown};
use crate::ast::{Arithmetic, Compare, Error, Expr, Place};
use crate::dates;
use crate::number::{Format, Number, Symbols};
use crate::value::{DateKind, Hash, Text, Value, text_of_nodes};
use std::cmp::Ordering;
use std::rc::Rc;

impl<'m> Run<'m> {
    pub(super) fn arithmetic(
        &mut self,
        op: Arithmetic,
        left: Value<'m>,
        right: Value<'m>,
        from: (&'m Expr, &'m Expr),
        place: Place,
    ) -> Res<Value<'m>> {
        if let (Value::Number(a), Value::Number(b)) = (&left, &right) {
            let result = match op {
                Arithmetic::Add => Some(a.add(*b)),
                Arithmetic::Subtract => Some(a.subtract(*b)),
                Arithmetic::Multiply => Some(a.multiply(*b)),
                Arithmetic::Divide => a.divide(*b),
                Arithmetic::Modulo => a.modulo(*b),
            };
            return result.map(Value::Number).ok_or_else(|| Error::new("a division by zero", place));
        }
        if op != Arithmetic::Add {
            let (value, expr) =
                if matches!(left, Value::Number(_)) { (&right, from.1) } else { (&left, from.0) };
            return Err(Error::new(
                format!("Expected a number, but `{}` is {}", shown(expr), value.what()),
                expr.place,
            ));
        }
        let scalar = |value: &Value<'m>| {
            !matches!(
                value,
                Value::List(_) | Value::Range(_) | Value::Json(_) | Value::Hash(_) | Value::Model(_)
            )
        };
        if !scalar(&left) && !scalar(&right) {
            if left.is_sequence() && right.is_sequence() {
                let mut items = self.list_of(&left, place)?;
                items.extend(self.list_of(&right, place)?);
                self.make_items(items.len(), place)?;
                return Ok(Value::list(items));
            }
            if let (Some(first), Some(second)) = (left.keys(), right.keys()) {
                self.make_items((first.len() + second.len()) * 2, place)?;
                let mut hash = Hash::default();
                for (keys, of) in [(first, &left), (second, &right)] {
                    for key in keys {
                        if let Value::Text(name) = key
                            && let Some(value) = of.member(&name)
                        {
                            hash.set(name, value);
                        }
                    }
                }
                return Ok(Value::Hash(Rc::new(hash)));
            }
        }
        let a = self.text_of(&left, from.0)?;
        let b = self.text_of(&right, from.1)?;
        self.make(a.len() + b.len(), place)?;
        let mut sum = String::with_capacity(a.len() + b.len());
        sum.push_str(&a);
        sum.push_str(&b);
        Ok(match (&left, &right) {
            (Value::Markup(_), _) | (_, Value::Markup(_)) => Value::Markup(Text::Made(sum.into())),
            _ => Value::made(sum),
        })
    }

    /// The items of a sequence.
    pub fn list_of(&mut self, value: &Value<'m>, place: Place) -> Res<Vec<Value<'m>>> {
        let length = match (value, value.length()) {
            (_, None) => return Err(Error::new("a range without an end cannot be put together", place)),
            (Value::Range(_), Some(length)) if length > MAX_RANGE => {
                return Err(Error::new(format!("a range of {length} items is too long"), place));
            }
            (_, Some(length)) => length,
        };
        self.make_items(length, place)?;
        Ok((0..length).filter_map(|at| value.item(at)).collect())
    }

    /// Whether two values are equal; `None`: they cannot be compared.
    pub fn equal(&self, a: &Value<'m>, b: &Value<'m>) -> Option<bool> {
        self.compare(Compare::Equal, a, b).ok()
    }

    pub(super) fn compare(&self, op: Compare, a: &Value<'m>, b: &Value<'m>) -> Result<bool, String> {
        let order = self.order(a, b, matches!(op, Compare::Equal | Compare::NotEqual))?;
        Ok(match (op, order) {
            (Compare::NotEqual, None) => true,
            (_, None) => false,
            (Compare::Equal, Some(order)) => order == Ordering::Equal,
            (Compare::NotEqual, Some(order)) => order != Ordering::Equal,
            (Compare::Less, Some(order)) => order == Ordering::Less,
            (Compare::LessOrEqual, Some(order)) => order != Ordering::Greater,
            (Compare::Greater, Some(order)) => order == Ordering::Greater,
            (Compare::GreaterOrEqual, Some(order)) => order != Ordering::Less,
        })
    }

    pub(super) fn order(
        &self,
        a: &Value<'m>,
        b: &Value<'m>,
        equality: bool,
    ) -> Result<Option<Ordering>, String> {
        let text = |value: &Value<'m>| -> Option<Result<Text<'m>, String>> {
            match value {
                Value::Text(text) | Value::Markup(text) => Some(Ok(text.clone())),
                Value::Empty => Some(Ok(Text::Lent(""))),
                Value::Nodes(document, nodes) => Some(text_of_nodes(document, nodes).map(Text::from)),
                _ => None,
            }
        };
        match (a, b) {
            (Value::Number(a), Value::Number(b)) => return Ok(a.compare(*b)),
            (Value::Date(a, _), Value::Date(b, _)) => return Ok(Some(a.cmp(b))),
            (Value::Boolean(a), Value::Boolean(b)) if equality => return Ok(Some(a.cmp(b))),
            _ => {}
        }
        if let (true, Some(a), Some(b)) = (equality, text(a), text(b)) {
            let (a, b) = (a?, b?);
            meter::spend(a.len() as u64 >> 6).map_err(|stop| stop.to_string())?;
            return Ok(Some((*a).cmp(&*b)));
        }
        Err(format!("{} and {} cannot be compared here", a.what(), b.what()))
    }

    pub fn truth(&mut self, expr: &'m Expr) -> Res<bool> {
        match self.value(expr)? {
            Value::Boolean(is) => Ok(is),
            other => Err(Error::new(
                format!("Expected a boolean, but `{}` is {}", shown(expr), other.what()),
                expr.place,
            )),
        }
    }

    pub fn number(&mut self, expr: &'m Expr) -> Res<Number> {
        match self.value(expr)? {
            Value::Number(number) => Ok(number),
            other => Err(Error::new(
                format!("Expected a number, but `{}` is {}", shown(expr), other.what()),
                expr.place,
            )),
        }
    }

    pub fn text(&mut self, expr: &'m Expr) -> Res<Text<'m>> {
        let value = self.value(expr)?;
        self.text_of(&value, expr)
    }

    /// A value as it is written.
    pub fn text_of(&self, value: &Value<'m>, expr: &Expr) -> Res<Text<'m>> {
        let made = |text: String| Text::Made(text.into());
        Ok(match value {
            Value::Text(text) | Value::Markup(text) => text.clone(),
            Value::Empty => Text::Lent(""),
            Value::Number(number) => made(self.number_text(*number)),
            Value::Boolean(is) if let Some((yes, no)) = &self.boolean_format => {
                made(if *is { yes } else { no }.clone())
            }
            Value::Boolean(_) => {
                return Err(Error::new(
                    format!(
                        "`{}` is a boolean, which has no text of its own: write it with ?c or ?string",
                        shown(expr)
                    ),
                    expr.place,
                ));
            }
            Value::Date(at, kind) => made(self.date_text(*at, *kind, None, expr.place)?),
            Value::Nodes(document, nodes) => text_of_nodes(document, nodes)
                .map_err(|why| Error::new(format!("`{}`: {why}", shown(expr)), expr.place))?
                .into(),
            other => {
                return Err(Error::new(
                    format!(
                        "Expected a string or what can be written as one, but `{}` is {}",
                        shown(expr),
                        other.what()
                    ),
                    expr.place,
                ));
            }
        })
    }

    pub fn number_text(&self, number: Number) -> String {
        match &self.number_format {
            Some(format) => number.formatted(format, self.symbols()),
            None => number.for_people(self.symbols()),
        }
    }

    /// The symbols in numbers of the setting `locale`.
    pub fn symbols(&self) -> Symbols {
        self.locale.as_deref().map_or(Symbols::ENGLISH, Symbols::of)
    }

    pub fn boolean_text(&self, is: bool) -> String {
        match &self.boolean_format {
            Some((yes, no)) => if is { yes } else { no }.clone(),
            None => is.to_string(),
        }
    }

    /// A date by a format, or by that of the settings.
    pub fn date_text(&self, at: i64, kind: DateKind, format: Option<&str>, place: Place) -> Res<String> {
        let format = format.or(self.date_format(kind)).unwrap_or("");
        let written = dates::write(at, kind, format, self.zone());
        written.map_err(|why| Error::new(format!("the date cannot be written by `{format}`: {why}"), place))
    }

    /// The setting `date_format`, `time_format` or `datetime_format`.
    pub fn date_format(&self, kind: DateKind) -> Option<&str> {
        let at = match kind {
            DateKind::Date => 0,
            DateKind::Time => 1,
            DateKind::DateTime => 2,
        };
        self.date_formats[at].as_deref()
    }

    /// The setting `time_zone`; empty: that of the machine.
    pub fn zone(&self) -> &str {
        self.zone.as_deref().unwrap_or("")
    }

    pub(super) fn setting(&mut self, name: &str, value: &'m Expr) -> Res<()> {
        let given = self.value(value)?;
        let text = match &given {
            Value::Boolean(is) => is.to_string(),
            given => self.text_of(given, value)?.to_string(),
        };
        let wrong = |what: &str| Err(Error::new(format!("`{text}` is not a {what}"), value.place));
        match name {
            "number_format" => match number_format(&text) {
                Some(format) => self.number_format = format,
                None => return wrong("format of numbers"),
            },
            "boolean_format" => match text.split_once(',') {
                Some((yes, no)) => self.boolean_format = Some((yes.to_owned(), no.to_owned())),
                None if text == "c" => self.boolean_format = Some(("true".into(), "false".into())),
                None => return wrong("pair of words for true and false"),
            },
            "date_format" => self.date_formats[0] = Some(text),
            "time_format" => self.date_formats[1] = Some(text),
            "datetime_format" => self.date_formats[2] = Some(text),
            "locale" => self.locale = Some(text),
            "time_zone" => self.zone = Some(text),
            "sql_date_and_time_time_zone"
            | "url_escaping_charset"
            | "output_encoding"
            | "classic_compatible" => {}
            _ => return Err(Error::new(format!("there is no setting `{name}`"), value.place)),
        }
        Ok(())
    }
}

/// A format of numbers by its name or pattern; inside `None`: the default one.
pub(crate) fn number_format(text: &str) -> Option<Option<Format>> {
    let plain = |most| Format { whole: 1, most, ..Format::default() };
    Some(match text {
        "number" => None,
        "computer" | "c" => Some(plain(16)),
        "percent" => {
            Some(Format { whole: 1, group: Some(3), shift: 2, suffix: "%".into(), ..Format::default() })
        }
        "currency" => Some(Format {
            whole: 1,
            least: 2,
            most: 2,
            group: Some(3),
            prefix: "$".into(),
            ..Format::default()
        }),
        pattern => Some(Format::parse(pattern)?),
    })
}
