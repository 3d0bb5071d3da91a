//! Built-ins of sequences and hashes.

use super::BuiltInCall;
use crate::number::Number;
use crate::run::{MAX_RANGE, Res, Run};
use crate::value::{Text, Value};
use std::cmp::Ordering;

impl<'m> BuiltInCall<'m> {
    pub(super) fn sequence(&self, run: &mut Run<'m>, value: Value<'m>) -> Res<Option<Value<'m>>> {
        if self.name == "size" && !value.is_sequence() {
            return match value.keys() {
                Some(keys) => Ok(Some(Value::int(keys.len()))),
                None => self.expected("a sequence or a hash", &value),
            };
        }
        if !value.is_sequence() {
            return self.expected("a sequence", &value);
        }
        match self.name {
            "size" => match value.length() {
                Some(length) => Ok(Some(Value::int(length))),
                None => self.error("a range without an end has no size"),
            },
            "first" => Ok(value.item(0).and_then(Value::present)),
            "last" => match value.length() {
                Some(length) => Ok(length.checked_sub(1).and_then(|at| value.item(at)?.present())),
                None => self.error("a range without an end has no last item"),
            },
            "take_while" | "filter" | "drop_while" => {
                let with = self.argument(0)?;
                let (mut kept, mut at, mut dropping) = (Vec::new(), 0, true);
                self.bounded(&value)?;
                while let Some(item) = value.item(at) {
                    at += 1;
                    if self.name == "drop_while" && !dropping {
                        run.make_items(1, self.place)?;
                        kept.push(item);
                        continue;
                    }
                    let Value::Boolean(holds) = run.apply(with, std::slice::from_ref(&item))? else {
                        return self.error("what is asked of each item gives no boolean");
                    };
                    run.make_items(1, self.place)?;
                    match self.name {
                        "take_while" if !holds => break,
                        "drop_while" if holds => {}
                        "drop_while" => {
                            dropping = false;
                            kept.push(item);
                        }
                        _ if holds => kept.push(item),
                        _ => {}
                    }
                }
                self.list(run, kept)
            }
            "map" => {
                let with = self.argument(0)?;
                self.bounded(&value)?;
                let (mut made, mut at) = (Vec::new(), 0);
                while let Some(item) = value.item(at) {
                    at += 1;
                    run.make_items(1, self.place)?;
                    made.push(run.apply(with, std::slice::from_ref(&item))?);
                }
                self.list(run, made)
            }
            _ => {
                let items = run.list_of(&value, self.place)?;
                self.items(run, items)
            }
        }
    }

    /// Refuses ranges that are too long to be put together.
    pub(super) fn bounded(&self, value: &Value<'m>) -> Res<()> {
        match (value, value.length()) {
            (_, None) => self.error("a range without an end cannot be put together"),
            (Value::Range(_), Some(length)) if length > MAX_RANGE => {
                self.error(format!("a range of {length} items is too long"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn items(&self, run: &mut Run<'m>, mut items: Vec<Value<'m>>) -> Res<Option<Value<'m>>> {
        match self.name {
            "sequence" => self.list(run, items),
            "reverse" => {
                items.reverse();
                self.list(run, items)
            }
            "join" => {
                let separator = self.text_argument(run, 0)?;
                let mut out = String::new();
                items.retain(|item| !matches!(item, Value::Null));
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push_str(&separator);
                    }
                    out.push_str(&run.text_of(item, self.base)?);
                    if out.len() > 1 << 16 && at % 1024 == 0 {
                        run.make(out.len() - (out.len() >> 1), self.place)?;
                    }
                }
                if items.is_empty() && self.arguments.len() > 1 {
                    out.push_str(&self.text_argument(run, 1)?);
                } else if self.arguments.len() > 2 {
                    out.push_str(&self.text_argument(run, 2)?);
                }
                self.made(run, out)
            }
            "seq_contains" | "seq_index_of" | "seq_last_index_of" => {
                let argument = self.argument(0)?;
                let wanted = run.value(argument)?;
                let start = if self.arguments.len() > 1 { Some(self.number_argument(run, 1)?) } else { None };
                run.spend(items.len(), self.place)?;
                let equal = |item: &Value<'m>| run.equal(item, &wanted).unwrap_or(false);
                let index =
                    |found: Option<usize>| Value::Number(Number::int(found.map_or(-1, |at| at as i64)));
                Ok(Some(match self.name {
                    "seq_contains" => Value::Boolean(items.iter().any(equal)),
                    "seq_index_of" => {
                        let start = usize::try_from(start.unwrap_or(0)).unwrap_or(0).min(items.len());
                        index(items[start..].iter().position(equal).map(|at| start + at))
                    }
                    // Backwards from there.
                    _ => {
                        let end = start.map_or(items.len(), |start| {
                            usize::try_from(start.saturating_add(1)).unwrap_or(0)
                        });
                        index(items[..end.min(items.len())].iter().rposition(equal))
                    }
                }))
            }
            "chunk" => {
                let size = usize::try_from(self.number_argument(run, 0)?).unwrap_or(0);
                if size == 0 {
                    return self.error("a chunk has at least one item");
                }
                let fill = match self.arguments.get(1) {
                    Some(fill) => Some(run.value(fill)?),
                    None => None,
                };
                let mut chunks = Vec::new();
                for chunk in items.chunks(size) {
                    let mut chunk = chunk.to_vec();
                    if let Some(fill) = &fill {
                        run.make_items(size, self.place)?;
                        chunk.resize(size, fill.clone());
                    }
                    chunks.push(Value::list(chunk));
                }
                run.make_items(items.len(), self.place)?;
                self.list(run, chunks)
            }
            "min" | "max" => {
                let mut best: Option<Number> = None;
                for item in items.iter().filter(|item| !matches!(item, Value::Null)) {
                    let Value::Number(number) = item else { return self.expected("numbers", item) };
                    let wanted = if self.name == "min" { Ordering::Less } else { Ordering::Greater };
                    if best.is_none_or(|best| number.compare(best) == Some(wanted)) {
                        best = Some(*number);
                    }
                }
                Ok(best.map(Value::Number))
            }
            _ => self.sorted(run, items),
        }
    }

    /// `?sort` and `?sort_by`: by numbers, or by texts without regard to case first.
    pub(super) fn sorted(&self, run: &mut Run<'m>, items: Vec<Value<'m>>) -> Res<Option<Value<'m>>> {
        let mut path: Vec<String> = Vec::new();
        if self.name == "sort_by" {
            let argument = self.argument(0)?;
            let by = run.value(argument)?;
            match &by {
                by if by.is_sequence() && !matches!(by, Value::Nodes(..)) => {
                    for name in run.list_of(by, self.place)? {
                        path.push(run.text_of(&name, argument)?.to_string());
                    }
                }
                by => path.push(run.text_of(by, argument)?.to_string()),
            }
        }
        run.make_items(items.len() * 2, self.place)?;
        let mut keyed = Vec::with_capacity(items.len());
        for item in items {
            let mut key = item.clone();
            for name in &path {
                key = match &key {
                    Value::Nodes(document, nodes) => {
                        match crate::nodes::member(run, document, nodes, name, &[], self.place)? {
                            Some(value) => value,
                            None => return self.error(format!("an item has no `{name}`")),
                        }
                    }
                    other => match other.member(name) {
                        Some(value) => value,
                        None => return self.error(format!("an item has no `{name}`")),
                    },
                };
            }
            let key = match &key {
                Value::Number(number) => SortKey::of_number(*number),
                Value::Boolean(is) => SortKey::of_number(Number::int(i64::from(*is))),
                Value::Date(at, _) => SortKey::of_number(Number::int(*at)),
                other => {
                    let text = run.text_of(other, self.base)?;
                    run.make(text.len(), self.place)?;
                    SortKey::Text(text.to_lowercase(), text)
                }
            };
            keyed.push((key, item));
        }
        if keyed.windows(2).any(|pair| pair[0].0.is_number() != pair[1].0.is_number()) {
            return self.error("numbers and texts have no order among each other");
        }
        run.spend(keyed.len() * 2, self.place)?;
        keyed.sort_by(|(a, _), (b, _)| a.cmp(b));
        let sorted = keyed.into_iter().map(|(_, item)| item).collect();
        self.list(run, sorted)
    }

    pub(super) fn hash(&self, run: &mut Run<'m>, value: Value<'m>) -> Res<Option<Value<'m>>> {
        let Some(keys) = value.keys() else { return self.expected("a hash", &value) };
        if self.name == "keys" {
            return self.list(run, keys);
        }
        let mut values = Vec::with_capacity(keys.len());
        for key in keys {
            if let Value::Text(name) = key {
                values.push(value.member(&name).unwrap_or(Value::Null));
            }
        }
        self.list(run, values)
    }
}

/// What an item is sorted by. Its order is total, whatever a message brings: the library's sort may panic on another one.
enum SortKey<'m> {
    Number(Number, f64),
    /// In lower case, and as it is.
    Text(String, Text<'m>),
}

impl SortKey<'_> {
    fn is_number(&self) -> bool {
        matches!(self, SortKey::Number(..))
    }

    fn of_number(number: Number) -> SortKey<'static> {
        SortKey::Number(number, number.to_f64())
    }

    fn cmp(&self, other: &SortKey<'_>) -> Ordering {
        match (self, other) {
            // Rounding keeps the order of decimals; those that round to the same double are compared exactly.
            (SortKey::Number(a, x), SortKey::Number(b, y)) => {
                x.total_cmp(y).then_with(|| match (a.is_decimal(), b.is_decimal()) {
                    (true, true) => a.compare(*b).unwrap_or(Ordering::Equal),
                    (a, b) => b.cmp(&a),
                })
            }
            (SortKey::Text(a, x), SortKey::Text(b, y)) => a.cmp(b).then_with(|| (**x).cmp(&**y)),
            (a, b) => a.is_number().cmp(&b.is_number()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_numbers_is_total() {
        let texts = [
            "NaN",
            "INF",
            "-INF",
            "0",
            "-0.0",
            "1",
            "0.1",
            "0.10",
            "1e-30",
            "-1e-30",
            "1e20",
            "1e300",
            "-1e300",
            "123456789012345678901234567890",
            "123456789012345678901234567891",
            "123456789012345678901234567890.5000000000000000000000001",
            "0.1000000000000000000001",
            "9007199254740993",
            "9007199254740992",
            "9007199254740992.5",
            "9007199254740993e0",
        ];
        let keys: Vec<SortKey<'_>> =
            texts.iter().map(|text| SortKey::of_number(Number::parse(text).expect(text))).collect();
        for (a, x) in keys.iter().zip(texts) {
            for (b, y) in keys.iter().zip(texts) {
                assert_eq!(a.cmp(b), b.cmp(a).reverse(), "{x} {y}");
                for (c, z) in keys.iter().zip(texts) {
                    if a.cmp(b) != Ordering::Greater && b.cmp(c) != Ordering::Greater {
                        assert_ne!(a.cmp(c), Ordering::Greater, "{x} {y} {z}");
                    }
                }
            }
        }
        let of = |text: &str| SortKey::of_number(Number::parse(text).expect(text));
        assert_eq!(of("9007199254740993").cmp(&of("9007199254740992.5")), Ordering::Greater);
        assert_eq!(of("0.1").cmp(&of("0.10")), Ordering::Equal);
        assert_eq!(of("-1e-30").cmp(&of("0")), Ordering::Less);
    }
}
