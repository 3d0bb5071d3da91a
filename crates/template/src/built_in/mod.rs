//! The built-ins: what stands behind `?`.

mod sequences;
mod texts;
mod values;

pub(crate) use texts::{html, xml};

use crate::ast::{Error, Expr, Place};
use crate::run::{Res, Run, missing, number_format, shown};
use crate::value::{DateKind, Text, Value};
use std::borrow::Cow;

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
    "iso_h",
    "iso_h_nz",
    "iso_local",
    "iso_local_h",
    "iso_local_h_nz",
    "iso_local_m",
    "iso_local_m_nz",
    "iso_local_ms",
    "iso_local_ms_nz",
    "iso_local_nz",
    "iso_m",
    "iso_m_nz",
    "iso_ms",
    "iso_ms_nz",
    "iso_nz",
    "iso_utc",
    "iso_utc_fz",
    "iso_utc_h",
    "iso_utc_h_nz",
    "iso_utc_m",
    "iso_utc_m_nz",
    "iso_utc_ms",
    "iso_utc_ms_nz",
    "iso_utc_nz",
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
    "truncate_c",
    "truncate_w",
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
    let given = BuiltInCall { base, name, arguments, place };
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
        // An element has content, even where it is empty.
        Value::Nodes(_, nodes) => !nodes.is_empty(),
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
struct BuiltInCall<'m> {
    base: &'m Expr,
    name: &'static str,
    arguments: &'m [Expr],
    place: Place,
}

impl<'m> BuiltInCall<'m> {
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
        Ok(Some(Value::list(items)))
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
            name if name == "iso" || name.starts_with("iso_") => self.iso(run, &value),
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
                    Some(Some(format)) => number.formatted(&format, run.symbols()),
                    Some(None) => number.for_people(run.symbols()),
                    None => return self.error(format!("`{}` is not a format of numbers", &*format)),
                }
            }
            (Value::Date(at, kind), count) => {
                let format = if count > 0 { Some(self.text_argument(run, 0)?) } else { None };
                run.date_text(*at, *kind, format.as_deref(), self.place)?
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
}

fn is(name: &str, value: &Value<'_>) -> bool {
    let single = matches!(value, Value::Nodes(_, nodes) if nodes.len() == 1);
    match name {
        "is_string" => matches!(value, Value::Text(_) | Value::Empty) || single,
        "is_number" => matches!(value, Value::Number(_)),
        "is_boolean" => matches!(value, Value::Boolean(_)),
        "is_date" | "is_date_like" => matches!(value, Value::Date(..)),
        "is_date_only" => matches!(value, Value::Date(_, DateKind::Date)),
        "is_time" => matches!(value, Value::Date(_, DateKind::Time)),
        "is_datetime" => matches!(value, Value::Date(_, DateKind::DateTime)),
        "is_sequence" | "is_indexable" | "is_collection" | "is_collection_ex" | "is_enumerable" => {
            value.is_sequence()
        }
        "is_hash" | "is_hash_ex" => value.is_hash(),
        "is_node" => single,
        "is_macro" | "is_directive" | "is_transform" => {
            matches!(value, Value::Macro(definition) if !definition.function)
        }
        "is_method" => matches!(value, Value::Macro(definition) if definition.function),
        "is_markup_output" => matches!(value, Value::Markup(_)),
        "is_nan" => matches!(value, Value::Number(number) if number.to_f64().is_nan()),
        "is_infinite" => matches!(value, Value::Number(number) if number.to_f64().is_infinite()),
        _ => false,
    }
}
