//! Built-ins of numbers, dates and XML nodes.

use super::BuiltInCall;
use crate::dates::{self, Accuracy, Iso};
use crate::number::{Number, Rounding};
use crate::run::{Res, Run};
use crate::value::{DateKind, Text, Value};
use std::cmp::Ordering;
use std::rc::Rc;
use xml::{Document, NodeId, NodeKind};

impl<'m> BuiltInCall<'m> {
    pub(super) fn number(&self, run: &mut Run<'m>, value: Value<'m>) -> Res<Option<Value<'m>>> {
        let number = match (&value, self.name) {
            (Value::Number(number), _) => *number,
            (Value::Date(at, _), "long") => return Ok(Some(Value::Number(Number::int(*at)))),
            (other, _) => return self.expected("a number", other),
        };
        Ok(Some(Value::Number(match self.name {
            "abs" if number.compare(Number::int(0)) == Some(Ordering::Less) => number.negate(),
            "ceiling" => number.rounded(0, Rounding::Ceiling),
            "floor" => number.rounded(0, Rounding::Floor),
            "round" => number.rounded(0, Rounding::HalfTowardsPlus),
            // Numbers of a message are doubles in Java, whose conversion stops at the bounds.
            "int" => Number::int(number.to_i64().clamp(i64::from(i32::MIN), i64::from(i32::MAX))),
            "long" => Number::int(number.to_i64()),
            "short" => Number::int(i64::from(number.to_i64() as i16)),
            "byte" => Number::int(i64::from(number.to_i64() as i8)),
            "lower_abc" | "upper_abc" => {
                let n = number.to_i64();
                if n < 1 || !number.is_whole() {
                    return self.error("letters count whole numbers from 1");
                }
                let letters = letters(n.unsigned_abs(), if self.name == "lower_abc" { b'a' } else { b'A' });
                return self.made(run, letters);
            }
            "number_to_date" | "number_to_datetime" | "number_to_time" => {
                let kind = match self.name {
                    "number_to_date" => DateKind::Date,
                    "number_to_time" => DateKind::Time,
                    _ => DateKind::DateTime,
                };
                return Ok(Some(Value::Date(number.to_i64(), kind)));
            }
            _ => number,
        })))
    }

    pub(super) fn date(&self, run: &mut Run<'m>, value: Value<'m>) -> Res<Option<Value<'m>>> {
        let kind = match self.name {
            "date" => DateKind::Date,
            "time" => DateKind::Time,
            _ => DateKind::DateTime,
        };
        if let Value::Date(at, _) = value {
            return Ok(Some(Value::Date(at, kind)));
        }
        let text = run.text_of(&value, self.base)?;
        let given = match self.arguments.first() {
            Some(argument) => Some(run.text(argument)?),
            None => None,
        };
        let format = given.as_deref().or(run.date_format(kind));
        match dates::parse(&text, kind, format, run.zone()) {
            Ok(at) => Ok(Some(Value::Date(at, kind))),
            Err(why) => self.error(why),
        }
    }

    /// `?iso("zone")`, `?iso_utc`, `?iso_local` and their variants: `iso_utc_ms_nz`.
    pub(super) fn iso(&self, run: &mut Run<'m>, value: &Value<'m>) -> Res<Option<Value<'m>>> {
        let Value::Date(at, kind) = value else { return self.expected("a date", value) };
        let options = self.name.strip_prefix("iso").unwrap_or("");
        let (utc, local) = (options.strip_prefix("_utc"), options.strip_prefix("_local"));
        let zone = match (utc, local) {
            (None, None) => self.text_argument(run, 0)?.to_string(),
            _ => run.zone().to_owned(),
        };
        let iso = Iso { accuracy: Accuracy::Seconds, offset: None, utc: utc.is_some() };
        let options = utc.or(local).unwrap_or(options);
        let form = options.split('_').filter(|option| !option.is_empty()).try_fold(iso, Iso::with);
        match form.map(|form| form.write(*at, *kind, &zone)) {
            Some(Ok(text)) => self.made(run, text),
            Some(Err(why)) => self.error(why),
            None => self.error("there is no such form of ISO 8601"),
        }
    }

    pub(super) fn node(&self, run: &mut Run<'m>, value: Value<'m>) -> Res<Option<Value<'m>>> {
        let Value::Nodes(document, nodes) = &value else { return self.expected("an XML node", &value) };
        let [node] = **nodes else { return self.expected("one XML node", &value) };
        let one = |node: NodeId| Value::Nodes(document, Rc::new([node]));
        let text = |text: &'m str| Ok(Some(Value::Text(Text::Lent(text))));
        let kind = document.kind(node);
        match self.name {
            "children" => {
                let children: Rc<[NodeId]> = document.children(node).collect();
                run.make_items(children.len(), self.place)?;
                Ok(Some(Value::Nodes(document, children)))
            }
            "parent" => Ok(document.parent(node).map(one)),
            "root" => Ok(Some(one(Document::ROOT))),
            "ancestors" => {
                let above = std::iter::successors(document.parent(node), |node| document.parent(*node));
                Ok(Some(Value::Nodes(document, above.collect())))
            }
            "next_sibling" => Ok(document.next_sibling(node).map(one)),
            "previous_sibling" => Ok(document.prev_sibling(node).map(one)),
            "node_namespace" => text(document.namespace(node)),
            "node_name" => text(match kind {
                NodeKind::Element | NodeKind::Attribute | NodeKind::ProcessingInstruction => {
                    document.local(node)
                }
                NodeKind::Text => "@text",
                NodeKind::Comment => "@comment",
                NodeKind::Document => "@document",
            }),
            _ => text(match kind {
                NodeKind::Element => "element",
                NodeKind::Attribute => "attribute",
                NodeKind::Text => "text",
                NodeKind::Comment => "comment",
                NodeKind::ProcessingInstruction => "pi",
                NodeKind::Document => "document",
            }),
        }
    }
}

/// Columns of a spreadsheet: a, b, … z, aa, ….
fn letters(mut n: u64, first: u8) -> String {
    let mut out = Vec::new();
    while n > 0 {
        n -= 1;
        out.push(first + (n % 26) as u8);
        n /= 26;
    }
    out.iter().rev().map(|b| char::from(*b)).collect()
}
