//! The built-ins: what stands behind `?`.

use crate::ast::{Error, Expr, Place};
use crate::number::{Number, Rounding};
use crate::run::{Res, Run, missing, number_format, shown};
use crate::value::{DateKind, Text, Value};
use expression::{DatePattern, Moment};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::rc::Rc;
use xml::{Document, NodeId, NodeKind};

/// What a template must not do here: parse templates and expressions out of messages, make objects.
pub(crate) const REFUSED: &[&str] = &["eval", "eval_json", "interpret", "new", "api"];

/// All others.
pub(crate) const NAMES: &[&str] = &[
    "abs",
    "ancestors",
    "boolean",
    "byte",
    "c",
    "cap_first",
    "capitalize",
    "ceiling",
    "children",
    "chop_linebreak",
    "chunk",
    "contains",
    "counter",
    "cn",
    "date",
    "datetime",
    "default",
    "double",
    "drop_while",
    "ends_with",
    "ensure_ends_with",
    "ensure_starts_with",
    "esc",
    "exists",
    "filter",
    "first",
    "float",
    "floor",
    "groups",
    "has_api",
    "has_content",
    "has_next",
    "html",
    "if_exists",
    "index",
    "index_of",
    "int",
    "is_boolean",
    "is_collection",
    "is_collection_ex",
    "is_date",
    "is_date_like",
    "is_date_only",
    "is_datetime",
    "is_directive",
    "is_enumerable",
    "is_even_item",
    "is_first",
    "is_hash",
    "is_hash_ex",
    "is_indexable",
    "is_infinite",
    "is_last",
    "is_macro",
    "is_markup_output",
    "is_method",
    "is_nan",
    "is_node",
    "is_number",
    "is_odd_item",
    "is_sequence",
    "is_string",
    "is_time",
    "is_transform",
    "is_unknown_date_like",
    "iso",
    "iso_local",
    "iso_utc",
    "item_cycle",
    "item_parity",
    "item_parity_cap",
    "j_string",
    "join",
    "js_string",
    "json_string",
    "keep_after",
    "keep_after_last",
    "keep_before",
    "keep_before_last",
    "keys",
    "last",
    "last_index_of",
    "left_pad",
    "length",
    "long",
    "lower_abc",
    "lower_case",
    "map",
    "markup_string",
    "matches",
    "max",
    "min",
    "namespace",
    "next_sibling",
    "no_esc",
    "node_name",
    "node_namespace",
    "node_type",
    "number",
    "number_to_date",
    "number_to_datetime",
    "number_to_time",
    "parent",
    "previous_sibling",
    "remove_beginning",
    "remove_ending",
    "replace",
    "reverse",
    "right_pad",
    "root",
    "round",
    "rtf",
    "seq_contains",
    "seq_index_of",
    "seq_last_index_of",
    "sequence",
    "short",
    "size",
    "sort",
    "sort_by",
    "split",
    "starts_with",
    "string",
    "substring",
    "switch",
    "take_while",
    "then",
    "time",
    "trim",
    "truncate",
    "uncap_first",
    "upper_abc",
    "upper_case",
    "url",
    "url_path",
    "values",
    "with_args",
    "word_list",
    "xhtml",
    "xml",
];

/// The longest text that `?left_pad` and `?right_pad` make, in characters.
const MAX_PADDED: usize = 1_000_000;

/// A name in the words of FreeMarker's documentation: `upperCase` is `upper_case`.
pub(crate) fn snake(name: &str) -> Cow<'_, str> {
    if !name.bytes().any(|b| b.is_ascii_uppercase()) {
        return Cow::Borrowed(name);
    }
    let mut out = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
            out.push(c.to_ascii_lowercase());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// The value of a built-in; `None`: it is missing.
pub(crate) fn call<'m>(
    run: &mut Run<'m>,
    base: &'m Expr,
    name: &'static str,
    arguments: &'m [Expr],
    place: Place,
) -> Res<Option<Value<'m>>> {
    // Some take what may be missing, or the variable itself.
    match name {
        "exists" => return Ok(Some(Value::Boolean(run.optional(base)?.is_some()))),
        "if_exists" => return Ok(Some(run.optional(base)?.unwrap_or(Value::Empty))),
        "has_content" => {
            let value = run.optional(base)?;
            return Ok(Some(Value::Boolean(value.is_some_and(|value| has_content(&value)))));
        }
        "default" => {
            if let Some(value) = run.optional(base)? {
                return Ok(Some(value));
            }
            for default in arguments {
                if let Some(value) = run.optional(default)? {
                    return Ok(Some(value));
                }
            }
            return Err(missing(&shown(base), place));
        }
        "index" | "counter" | "has_next" | "is_first" | "is_last" | "item_parity" | "item_parity_cap"
        | "is_even_item" | "is_odd_item" | "item_cycle" => {
            return of_turn(run, base, name, arguments, place).map(Some);
        }
        "then" => {
            let [yes, no] = arguments else { return wrong_count(name, "two", place) };
            let chosen = if run.truth(base)? { yes } else { no };
            return run.eval(chosen);
        }
        _ => {}
    }
    let value = run.value(base)?;
    let given = Given { base, name, arguments, place };
    run.spend(1, place)?;
    given.call(run, value)
}

fn wrong_count<T>(name: &str, wanted: &str, place: Place) -> Res<T> {
    Err(Error::new(format!("`?{name}` takes {wanted} arguments"), place))
}

fn has_content(value: &Value<'_>) -> bool {
    match value {
        Value::Text(text) | Value::Markup(text) => !text.is_empty(),
        Value::Empty => false,
        Value::Nodes(document, nodes) => match &**nodes {
            [node] => document.kind(*node) != NodeKind::Element || document.first_child(*node).is_some(),
            nodes => !nodes.is_empty(),
        },
        value if value.is_sequence() => value.length() != Some(0),
        value => value.keys().is_none_or(|keys| !keys.is_empty()),
    }
}

fn of_turn<'m>(
    run: &mut Run<'m>,
    base: &'m Expr,
    name: &str,
    arguments: &'m [Expr],
    place: Place,
) -> Res<Value<'m>> {
    let (at, last) = run.turn(base)?;
    let text = |text: &'static str| Value::Text(Text::Lent(text));
    Ok(match name {
        "index" => Value::int(at),
        "counter" => Value::int(at + 1),
        "has_next" => Value::Boolean(!last),
        "is_first" => Value::Boolean(at == 0),
        "is_last" => Value::Boolean(last),
        "is_even_item" => Value::Boolean(at % 2 == 1),
        "is_odd_item" => Value::Boolean(at % 2 == 0),
        "item_parity" => text(if at % 2 == 0 { "odd" } else { "even" }),
        "item_parity_cap" => text(if at % 2 == 0 { "Odd" } else { "Even" }),
        _ => {
            if arguments.is_empty() {
                return wrong_count(name, "some", place);
            }
            run.value(&arguments[at % arguments.len()])?
        }
    })
}

/// A built-in with its place.
struct Given<'m> {
    base: &'m Expr,
    name: &'static str,
    arguments: &'m [Expr],
    place: Place,
}

impl<'m> Given<'m> {
    fn error<T>(&self, why: impl std::fmt::Display) -> Res<T> {
        Err(Error::new(format!("`{}?{}`: {why}", shown(self.base), self.name), self.place))
    }

    fn expected<T>(&self, wanted: &str, value: &Value<'m>) -> Res<T> {
        Err(Error::new(
            format!("Expected {wanted}, but `{}` is {}", shown(self.base), value.what()),
            self.base.place,
        ))
    }

    fn argument(&self, at: usize) -> Res<&'m Expr> {
        match self.arguments.get(at) {
            Some(argument) => Ok(argument),
            None => wrong_count(self.name, "more", self.place),
        }
    }

    fn text_argument(&self, run: &mut Run<'m>, at: usize) -> Res<Text<'m>> {
        let argument = self.argument(at)?;
        run.text(argument)
    }

    fn number_argument(&self, run: &mut Run<'m>, at: usize) -> Res<i64> {
        let argument = self.argument(at)?;
        Ok(run.number(argument)?.to_i64())
    }

    fn made(&self, run: &mut Run<'m>, text: String) -> Res<Option<Value<'m>>> {
        run.make(text.len(), self.place)?;
        Ok(Some(Value::made(text)))
    }

    fn list(&self, run: &mut Run<'m>, items: Vec<Value<'m>>) -> Res<Option<Value<'m>>> {
        run.make_items(items.len(), self.place)?;
        Ok(Some(Value::List(Rc::new(items))))
    }

    fn call(&self, run: &mut Run<'m>, value: Value<'m>) -> Res<Option<Value<'m>>> {
        match self.name {
            name if name.starts_with("is_") => Ok(Some(Value::Boolean(is(name, &value)))),
            "has_api" => Ok(Some(Value::Boolean(false))),
            "c" | "cn" => self.computer(run, value),
            "string" => self.string(run, value),
            "switch" => self.switch(run, value),
            "size" | "first" | "last" | "join" | "reverse" | "sort" | "sort_by" | "seq_contains"
            | "seq_index_of" | "seq_last_index_of" | "chunk" | "min" | "max" | "map" | "filter"
            | "take_while" | "drop_while" | "sequence" => self.sequence(run, value),
            "keys" | "values" => self.hash(run, value),
            "abs" | "ceiling" | "floor" | "round" | "int" | "long" | "short" | "byte" | "double"
            | "float" | "lower_abc" | "upper_abc" | "number_to_date" | "number_to_datetime"
            | "number_to_time" => self.number(run, value),
            "children" | "parent" | "root" | "ancestors" | "node_name" | "node_namespace" | "node_type"
            | "next_sibling" | "previous_sibling" => self.node(run, value),
            "date" | "time" | "datetime" => self.date(run, value),
            "iso" | "iso_utc" | "iso_local" => match &value {
                Value::Date(moment, _, kind) => {
                    let text = run.date_text(moment, *kind, Some("iso"), self.place)?;
                    self.made(run, text)
                }
                other => self.expected("a date", other),
            },
            "markup_string" => match value {
                Value::Markup(text) => Ok(Some(Value::Text(text))),
                other => self.expected("a markup output", &other),
            },
            "no_esc" => {
                let text = run.text_of(&value, self.base)?;
                Ok(Some(Value::Markup(text)))
            }
            "esc" => {
                let text = run.text_of(&value, self.base)?;
                let escaped = xml(&text).into_owned();
                run.make(escaped.len(), self.place)?;
                Ok(Some(Value::Markup(Text::Made(escaped.into()))))
            }
            "namespace" | "with_args" | "groups" => self.error("this is not executable here"),
            _ => {
                let text = run.text_of(&value, self.base)?;
                run.spend(1 + (text.len() >> 5), self.place)?;
                self.text(run, text)
            }
        }
    }

    fn computer(&self, run: &mut Run<'m>, value: Value<'m>) -> Res<Option<Value<'m>>> {
        match value {
            Value::Number(number) => self.made(run, number.computer()),
            Value::Boolean(is) => Ok(Some(Value::Text(Text::Lent(if is { "true" } else { "false" })))),
            other => self.expected("a number or a boolean", &other),
        }
    }

    fn string(&self, run: &mut Run<'m>, value: Value<'m>) -> Res<Option<Value<'m>>> {
        let text = match (&value, self.arguments.len()) {
            (Value::Boolean(is), 2) => {
                let chosen = &self.arguments[usize::from(!is)];
                return Ok(Some(Value::Text(run.text(chosen)?)));
            }
            (Value::Boolean(is), 0) => run.boolean_text(*is),
            (Value::Number(number), 0) => run.number_text(*number),
            (Value::Number(number), 1) => {
                let format = self.text_argument(run, 0)?;
                match number_format(&format) {
                    Some(Some(format)) => number.formatted(&format),
                    Some(None) => number.for_people(),
                    None => return self.error(format!("`{}` is no format of numbers", &*format)),
                }
            }
            (Value::Date(moment, _, kind), count) => {
                let format = if count > 0 { Some(self.text_argument(run, 0)?) } else { None };
                run.date_text(moment, *kind, format.as_deref(), self.place)?
            }
            (_, 0) => return Ok(Some(Value::Text(run.text_of(&value, self.base)?))),
            _ => return self.error("these arguments do not fit"),
        };
        self.made(run, text)
    }

    fn switch(&self, run: &mut Run<'m>, value: Value<'m>) -> Res<Option<Value<'m>>> {
        let mut rest = self.arguments;
        while let [case, result, more @ ..] = rest {
            let case = run.value(case)?;
            if run.equal(&value, &case).unwrap_or(false) {
                return run.eval(result);
            }
            rest = more;
        }
        match rest {
            [default] => run.eval(default),
            _ => self.error("no case fits, and there is no default"),
        }
    }

    // Sequences and hashes.

    fn sequence(&self, run: &mut Run<'m>, value: Value<'m>) -> Res<Option<Value<'m>>> {
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
            "first" => Ok(value.item(0)),
            "last" => match value.length() {
                Some(length) => Ok(length.checked_sub(1).and_then(|at| value.item(at))),
                None => self.error("a range without an end has no last item"),
            },
            "take_while" | "filter" | "drop_while" => {
                let with = self.argument(0)?;
                let (mut kept, mut at, mut dropping) = (Vec::new(), 0, true);
                self.bounded(&value)?;
                while let Some(item) = value.item(at) {
                    at += 1;
                    let Value::Boolean(holds) = run.apply(with, std::slice::from_ref(&item))? else {
                        return self.error("what is asked of each item gives no boolean");
                    };
                    run.make_items(1, self.place)?;
                    match self.name {
                        "take_while" if !holds => break,
                        "drop_while" => {
                            dropping &= holds;
                            if !dropping {
                                kept.push(item);
                            }
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
    fn bounded(&self, value: &Value<'m>) -> Res<()> {
        match (value, value.length()) {
            (_, None) => self.error("a range without an end cannot be put together"),
            (Value::Range(_), Some(length)) if length > crate::run::MAX_RANGE => {
                self.error(format!("a range of {length} items is too long"))
            }
            _ => Ok(()),
        }
    }

    fn items(&self, run: &mut Run<'m>, mut items: Vec<Value<'m>>) -> Res<Option<Value<'m>>> {
        match self.name {
            "sequence" => self.list(run, items),
            "reverse" => {
                items.reverse();
                self.list(run, items)
            }
            "join" => {
                let separator = self.text_argument(run, 0)?;
                let mut out = String::new();
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
                run.spend(items.len(), self.place)?;
                let equal = |item: &Value<'m>| run.equal(item, &wanted).unwrap_or(false);
                Ok(Some(match self.name {
                    "seq_contains" => Value::Boolean(items.iter().any(equal)),
                    "seq_index_of" => {
                        let found = items.iter().position(equal);
                        Value::Number(Number::int(found.map_or(-1, |at| at as i64)))
                    }
                    _ => {
                        let found = items.iter().rposition(equal);
                        Value::Number(Number::int(found.map_or(-1, |at| at as i64)))
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
                    chunks.push(Value::List(Rc::new(chunk)));
                }
                run.make_items(items.len(), self.place)?;
                self.list(run, chunks)
            }
            "min" | "max" => {
                let mut best: Option<Number> = None;
                for item in &items {
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
    fn sorted(&self, run: &mut Run<'m>, items: Vec<Value<'m>>) -> Res<Option<Value<'m>>> {
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
                    Value::Nodes(document, nodes) => match crate::nodes::member(document, nodes, name, &[]) {
                        Ok(Some(value)) => value,
                        _ => return self.error(format!("an item has no `{name}`")),
                    },
                    other => match other.member(name) {
                        Some(value) => value,
                        None => return self.error(format!("an item has no `{name}`")),
                    },
                };
            }
            let key = match &key {
                Value::Number(number) => SortKey::Number(*number),
                Value::Boolean(is) => SortKey::Number(Number::int(i64::from(*is))),
                Value::Date(_, Some(at), _) => SortKey::Number(Number::int(*at)),
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

    fn hash(&self, run: &mut Run<'m>, value: Value<'m>) -> Res<Option<Value<'m>>> {
        let Some(keys) = value.keys() else { return self.expected("a hash", &value) };
        if self.name == "keys" {
            return self.list(run, keys);
        }
        let mut values = Vec::with_capacity(keys.len());
        for key in keys {
            if let Value::Text(name) = key {
                values.extend(value.member(&name));
            }
        }
        self.list(run, values)
    }

    // Numbers and dates.

    fn number(&self, run: &mut Run<'m>, value: Value<'m>) -> Res<Option<Value<'m>>> {
        let number = match (&value, self.name) {
            (Value::Number(number), _) => *number,
            (Value::Date(_, Some(at), _), "long") => return Ok(Some(Value::Number(Number::int(*at)))),
            (other, _) => return self.expected("a number", other),
        };
        Ok(Some(Value::Number(match self.name {
            "abs" if number.compare(Number::int(0)) == Some(Ordering::Less) => number.negate(),
            "ceiling" => number.rounded(0, Rounding::Ceiling),
            "floor" => number.rounded(0, Rounding::Floor),
            "round" => number.rounded(0, Rounding::HalfTowardsPlus),
            "int" => Number::int(i64::from(number.to_i64() as i32)),
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
                let at = number.to_i64();
                return match Moment::of(at) {
                    Ok(moment) => Ok(Some(Value::Date(Rc::new(moment), Some(at), kind))),
                    Err(why) => self.error(why),
                };
            }
            _ => number,
        })))
    }

    fn date(&self, run: &mut Run<'m>, value: Value<'m>) -> Res<Option<Value<'m>>> {
        let kind = match self.name {
            "date" => DateKind::Date,
            "time" => DateKind::Time,
            _ => DateKind::DateTime,
        };
        if let Value::Date(moment, at, _) = value {
            return Ok(Some(Value::Date(moment, at, kind)));
        }
        let text = run.text_of(&value, self.base)?;
        let given = match self.arguments.first() {
            Some(argument) => Some(run.text(argument)?),
            None => None,
        };
        let patterns: &[&str] = match (given.as_deref(), kind) {
            (Some("iso" | "xs") | None, DateKind::Date) => &["yyyy-MM-dd"],
            (Some("iso" | "xs") | None, DateKind::Time) => &["HH:mm:ss[.SSS][XXX]", "HH:mm"],
            (Some("iso" | "xs") | None, DateKind::DateTime) => {
                &["yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "yyyy-MM-dd HH:mm:ss", "yyyy-MM-dd'T'HH:mm"]
            }
            (Some(pattern), _) => &[pattern],
        };
        for pattern in patterns {
            let parsed = DatePattern::compile(pattern).and_then(|pattern| pattern.parse(&text));
            if let Ok(moment) = parsed {
                return Ok(Some(Value::Date(Rc::new(moment), None, kind)));
            }
        }
        self.error(format!("`{}` does not follow `{}`", &*text, patterns[0]))
    }

    // Nodes.

    fn node(&self, run: &mut Run<'m>, value: Value<'m>) -> Res<Option<Value<'m>>> {
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

    // Texts.

    fn text(&self, run: &mut Run<'m>, text: Text<'m>) -> Res<Option<Value<'m>>> {
        let s: &str = &text;
        let boolean = |is: bool| Ok(Some(Value::Boolean(is)));
        let index = |found: Option<usize>| {
            let at = found.map_or(-1, |at| s[..at].chars().count() as i64);
            Ok(Some(Value::Number(Number::int(at))))
        };
        let made = match self.name {
            "length" => return Ok(Some(Value::int(s.chars().count()))),
            "number" => {
                return match Number::parse(s) {
                    Some(number) => Ok(Some(Value::Number(number))),
                    None => self.error(format!("`{}` is no number, or one that is too large", short(s))),
                };
            }
            "boolean" => match s {
                "true" => return boolean(true),
                "false" => return boolean(false),
                _ => return self.error(format!("`{}` is neither true nor false", short(s))),
            },
            "contains" => return boolean(s.contains(&*self.text_argument(run, 0)?)),
            "starts_with" => return boolean(s.starts_with(&*self.text_argument(run, 0)?)),
            "ends_with" => return boolean(s.ends_with(&*self.text_argument(run, 0)?)),
            "index_of" => {
                let wanted = self.text_argument(run, 0)?;
                let from = match self.arguments.len() {
                    2.. => usize::try_from(self.number_argument(run, 1)?).unwrap_or(0),
                    _ => 0,
                };
                let from = s.char_indices().nth(from).map_or(s.len(), |(at, _)| at);
                return index(s[from..].find(&*wanted).map(|at| from + at));
            }
            "last_index_of" => {
                let wanted = self.text_argument(run, 0)?;
                return index(s.rfind(&*wanted));
            }
            "upper_case" => s.to_uppercase(),
            "lower_case" => s.to_lowercase(),
            "trim" => return Ok(Some(Value::made(s.trim_matches(|c| c <= ' ')))),
            "cap_first" | "uncap_first" => {
                let start = s.len() - s.trim_start().len();
                let mut rest = s[start..].chars();
                let first: String = match (rest.next(), self.name) {
                    (Some(c), "cap_first") => c.to_uppercase().collect(),
                    (Some(c), _) => c.to_lowercase().collect(),
                    (None, _) => String::new(),
                };
                format!("{}{first}{}", &s[..start], rest.as_str())
            }
            "capitalize" => {
                let mut out = String::with_capacity(s.len());
                let mut inside = false;
                for c in s.chars() {
                    match (c.is_whitespace(), inside) {
                        (false, false) => out.extend(c.to_uppercase()),
                        (false, true) => out.extend(c.to_lowercase()),
                        (true, _) => out.push(c),
                    }
                    inside = !c.is_whitespace();
                }
                out
            }
            "chop_linebreak" => {
                let cut = s.strip_suffix("\r\n").or_else(|| s.strip_suffix(['\n', '\r'])).unwrap_or(s);
                cut.to_owned()
            }
            "left_pad" | "right_pad" => return self.padded(run, s),
            "substring" => {
                let length = s.chars().count() as i64;
                let from = self.number_argument(run, 0)?;
                let to = if self.arguments.len() > 1 { self.number_argument(run, 1)? } else { length };
                if from < 0 || to < from || to > length {
                    return self
                        .error(format!("there is no part from {from} to {to} of {length} characters"));
                }
                s.chars().skip(from as usize).take((to - from) as usize).collect()
            }
            "truncate" => {
                let most = usize::try_from(self.number_argument(run, 0)?).unwrap_or(0);
                if s.chars().count() <= most {
                    return Ok(Some(Value::Text(text)));
                }
                let kept: String = s.chars().take(most.saturating_sub(5)).collect();
                let at_word = kept.trim_end().rfind(' ').filter(|at| *at > kept.len() / 2);
                format!("{} [...]", kept[..at_word.unwrap_or(kept.len())].trim_end())
            }
            "ensure_starts_with" | "ensure_ends_with" => {
                let part = self.text_argument(run, 0)?;
                match self.name {
                    "ensure_starts_with" if !s.starts_with(&*part) => format!("{}{s}", &*part),
                    "ensure_ends_with" if !s.ends_with(&*part) => format!("{s}{}", &*part),
                    _ => return Ok(Some(Value::Text(text))),
                }
            }
            "remove_beginning" => {
                let part = self.text_argument(run, 0)?;
                s.strip_prefix(&*part).unwrap_or(s).to_owned()
            }
            "remove_ending" => {
                let part = self.text_argument(run, 0)?;
                s.strip_suffix(&*part).unwrap_or(s).to_owned()
            }
            "keep_after" | "keep_after_last" | "keep_before" | "keep_before_last" => {
                let part = self.text_argument(run, 0)?;
                let last = self.name.ends_with("last");
                let found = if last { s.rfind(&*part) } else { s.find(&*part) };
                match (found, self.name.starts_with("keep_after")) {
                    (Some(at), true) => s[at + part.len()..].to_owned(),
                    (Some(at), false) => s[..at].to_owned(),
                    (None, true) => String::new(),
                    (None, false) => s.to_owned(),
                }
            }
            "word_list" => {
                let words: Vec<Value<'m>> = s.split_whitespace().map(Value::made).collect();
                run.make(s.len(), self.place)?;
                return self.list(run, words);
            }
            "split" => return self.split(run, s),
            "replace" => return self.replaced(run, s),
            "matches" => {
                let pattern = self.text_argument(run, 0)?;
                let flags = if self.arguments.len() > 1 { Some(self.text_argument(run, 1)?) } else { None };
                let regex = regex(&format!("\\A(?:{})\\z", &*pattern), flags.as_deref().unwrap_or(""));
                let regex = regex.or_else(|why| self.error(why))?;
                let matches = regex.run(s, |engine| engine.is_match(s));
                return boolean(matches.or_else(|why| self.stopped(why))?);
            }
            "xml" => xml(s).into_owned(),
            "html" | "xhtml" => html(s).into_owned(),
            "rtf" => s.replace('\\', "\\\\").replace('{', "\\{").replace('}', "\\}"),
            "json_string" | "js_string" | "j_string" => escaped(s, self.name),
            "url" => encoded(s, ""),
            "url_path" => encoded(s, "/"),
            _ => return self.error("this is not executable here"),
        };
        self.made(run, made)
    }

    fn stopped<T>(&self, why: meter::regex::Failure) -> Res<T> {
        match why {
            meter::regex::Failure::Stopped(stop) => Err(Error::fatal(stop.to_string(), self.place)),
            why => self.error(why),
        }
    }

    fn padded(&self, run: &mut Run<'m>, s: &str) -> Res<Option<Value<'m>>> {
        let wanted = usize::try_from(self.number_argument(run, 0)?).unwrap_or(0);
        if wanted > MAX_PADDED {
            return self.error(format!("a string is padded to {MAX_PADDED} characters at most"));
        }
        let with = if self.arguments.len() > 1 { self.text_argument(run, 1)? } else { Text::Lent(" ") };
        if with.is_empty() {
            return self.error("nothing to pad with");
        }
        let length = s.chars().count();
        let missing = wanted.saturating_sub(length);
        run.make(missing.saturating_mul(with.len().min(4)), self.place)?;
        let padding: String = match self.name {
            "left_pad" => with.chars().cycle().take(missing).collect(),
            // On the right the pattern goes on as if it had begun at the start.
            _ => with.chars().cycle().skip(length % with.chars().count()).take(missing).collect(),
        };
        self.made(run, if self.name == "left_pad" { padding + s } else { format!("{s}{padding}") })
    }

    fn flags(&self, run: &mut Run<'m>, at: usize) -> Res<Text<'m>> {
        if self.arguments.len() > at { self.text_argument(run, at) } else { Ok(Text::Lent("")) }
    }

    fn split(&self, run: &mut Run<'m>, s: &str) -> Res<Option<Value<'m>>> {
        let by = self.text_argument(run, 0)?;
        let flags = self.flags(run, 1)?;
        let mut parts: Vec<&str> = Vec::new();
        if flags.contains('r') || flags.contains('i') {
            let pattern =
                if flags.contains('r') { by.to_string() } else { fancy_regex::escape(&by).into_owned() };
            let regex = regex(&pattern, &flags).or_else(|why| self.error(why))?;
            let found: Vec<(usize, usize)> = regex
                .run(s, |engine| {
                    engine.find_iter(s).map(|own| own.map(|own| (own.start(), own.end()))).collect()
                })
                .or_else(|why| self.stopped(why))?;
            let mut done = 0;
            for (start, end) in found.into_iter().filter(|(start, end)| end > start) {
                parts.push(&s[done..start]);
                done = end;
            }
            parts.push(&s[done..]);
        } else if by.is_empty() {
            return self.error("a string is not split by nothing");
        } else {
            parts = s.split(&*by).collect();
        }
        run.make(s.len(), self.place)?;
        let parts = parts.into_iter().map(Value::made).collect();
        self.list(run, parts)
    }

    fn replaced(&self, run: &mut Run<'m>, s: &str) -> Res<Option<Value<'m>>> {
        let by = self.text_argument(run, 0)?;
        let with = self.text_argument(run, 1)?;
        let flags = self.flags(run, 2)?;
        if !flags.contains('r') && !flags.contains('i') {
            let count = if by.is_empty() { s.len() + 1 } else { s.len() / by.len() };
            // What may come out at most, looked at before it is made.
            let most = s.len().saturating_add(count.saturating_mul(with.len()));
            if most > 1 << 20 {
                let found = s.matches(&*by).count();
                run.make(s.len().saturating_add(found.saturating_mul(with.len())), self.place)?;
            }
            let replaced =
                if flags.contains('f') { s.replacen(&*by, &with, 1) } else { s.replace(&*by, &with) };
            return self.made(run, replaced);
        }
        let pattern =
            if flags.contains('r') { by.to_string() } else { fancy_regex::escape(&by).into_owned() };
        let regex = regex(&pattern, &flags).or_else(|why| self.error(why))?;
        let all: Vec<fancy_regex::Captures<'_, str>> = regex
            .run(s, |engine| {
                engine.captures_iter(s).take(if flags.contains('f') { 1 } else { usize::MAX }).collect()
            })
            .or_else(|why| self.stopped(why))?;
        let mut out = String::new();
        let mut done = 0;
        for captures in all {
            let Some(whole) = captures.get(0) else { continue };
            out.push_str(&s[done..whole.start()]);
            if flags.contains('r') {
                expand(&with, &captures, &mut out)
            } else {
                out.push_str(&with)
            }
            done = whole.end();
            if out.len() > 1 << 20 {
                run.make(out.len() >> 4, self.place)?;
            }
        }
        out.push_str(&s[done..]);
        self.made(run, out)
    }
}

enum SortKey<'m> {
    Number(Number),
    Text(String, Text<'m>),
}

impl SortKey<'_> {
    fn is_number(&self) -> bool {
        matches!(self, SortKey::Number(_))
    }

    /// A total order: what has none among numbers comes first.
    fn cmp(&self, other: &SortKey<'_>) -> Ordering {
        match (self, other) {
            (SortKey::Number(a), SortKey::Number(b)) => match a.compare(*b) {
                Some(order) => order,
                None => a.to_f64().total_cmp(&b.to_f64()),
            },
            (SortKey::Text(a, x), SortKey::Text(b, y)) => a.cmp(b).then_with(|| (**x).cmp(&**y)),
            (a, b) => a.is_number().cmp(&b.is_number()),
        }
    }
}

fn is(name: &str, value: &Value<'_>) -> bool {
    let single = matches!(value, Value::Nodes(_, nodes) if nodes.len() == 1);
    match name {
        "is_string" => matches!(value, Value::Text(_) | Value::Empty) || single,
        "is_number" => matches!(value, Value::Number(_)),
        "is_boolean" => matches!(value, Value::Boolean(_)),
        "is_date" | "is_date_like" => matches!(value, Value::Date(..)),
        "is_date_only" => matches!(value, Value::Date(_, _, DateKind::Date)),
        "is_time" => matches!(value, Value::Date(_, _, DateKind::Time)),
        "is_datetime" => matches!(value, Value::Date(_, _, DateKind::DateTime)),
        "is_sequence" | "is_indexable" | "is_collection" | "is_collection_ex" | "is_enumerable" => {
            value.is_sequence()
        }
        "is_hash" | "is_hash_ex" => value.is_hash(),
        "is_node" => single,
        "is_macro" | "is_directive" | "is_transform" => matches!(value, Value::Macro(own) if !own.function),
        "is_method" => matches!(value, Value::Macro(own) if own.function),
        "is_markup_output" => matches!(value, Value::Markup(_)),
        "is_nan" => matches!(value, Value::Number(number) if number.to_f64().is_nan()),
        "is_infinite" => matches!(value, Value::Number(number) if number.to_f64().is_infinite()),
        _ => false,
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
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

/// A regular expression of Java's dialect as far as it is that of the engine, with FreeMarker's flags.
fn regex(pattern: &str, flags: &str) -> Result<meter::regex::Regex, String> {
    let inline: String = flags
        .chars()
        .filter_map(|flag| match flag {
            'i' => Some('i'),
            'm' => Some('m'),
            's' => Some('s'),
            'c' => Some('x'),
            _ => None,
        })
        .collect();
    let pattern = if inline.is_empty() { pattern.to_owned() } else { format!("(?{inline}){pattern}") };
    meter::regex::Regex::new(&pattern).map_err(|why| why.to_string().replace('\n', " "))
}

/// `$1` and `\$` in a replacement.
fn expand(with: &str, captures: &fancy_regex::Captures<'_, str>, out: &mut String) {
    let mut chars = with.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next()),
            '$' => match chars.peek().and_then(|c| c.to_digit(10)) {
                Some(group) => {
                    chars.next();
                    out.push_str(captures.get(group as usize).map_or("", |own| own.as_str()));
                }
                None => out.push('$'),
            },
            c => out.push(c),
        }
    }
}

/// `?xml`.
pub(crate) fn xml(text: &str) -> Cow<'_, str> {
    replaced(text, |c| match c {
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '&' => Some("&amp;"),
        '"' => Some("&quot;"),
        '\'' => Some("&apos;"),
        _ => None,
    })
}

/// `?html`.
pub(crate) fn html(text: &str) -> Cow<'_, str> {
    replaced(text, |c| match c {
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '&' => Some("&amp;"),
        '"' => Some("&quot;"),
        '\'' => Some("&#39;"),
        _ => None,
    })
}

fn replaced(text: &str, with: impl Fn(char) -> Option<&'static str>) -> Cow<'_, str> {
    if !text.chars().any(|c| with(c).is_some()) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match with(c) {
            Some(entity) => out.push_str(entity),
            None => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// `?json_string`, `?js_string` and `?j_string`.
fn escaped(text: &str, name: &str) -> String {
    let (json, java) = (name == "json_string", name == "j_string");
    let mut out = String::with_capacity(text.len() + 8);
    let mut before = '\0';
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{c}' => out.push_str("\\f"),
            '\u{8}' => out.push_str("\\b"),
            '\'' if !json && !java => out.push_str("\\'"),
            '/' if before == '<' && !java => out.push_str("\\/"),
            '>' if matches!(before, ']' | '-') && !java => {
                out.push_str(if json { "\\u003E" } else { "\\>" });
            }
            '!' | '?' if before == '<' && !java => {
                out.pop();
                out.push_str("\\u003C");
                out.push(c);
            }
            c if (c as u32) < 0x20
                || (!java && matches!(c, '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}')) =>
            {
                out.push_str(&format!("\\u{:04X}", c as u32));
            }
            c => out.push(c),
        }
        before = c;
    }
    out
}

/// `?url`: UTF-8, in hexadecimal.
fn encoded(text: &str, kept: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for b in text.bytes() {
        let plain = b.is_ascii_alphanumeric() || b"_-.!~*'()".contains(&b) || kept.as_bytes().contains(&b);
        if plain { out.push(char::from(b)) } else { out.push_str(&format!("%{b:02X}")) }
    }
    out
}
