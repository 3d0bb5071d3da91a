//! The description of a result in JSON: `{"rows": {"row": [{"id": "$id(type:integer)", "@orders": "$id->customer"}]}}` stands for elements.

use config::{DataCall, DataField, DataOutput, DataResult, DataValue, Key};
use diagnostics::Span;
use serde_json::{Map, Value};
use std::iter::Peekable;
use std::str::Chars;

/// The result with the elements that the JSON describes.
///
/// # Errors
/// The error in the description.
pub(crate) fn read(result: &DataResult, json: &Key) -> Result<DataResult, String> {
    let whole: Value = match serde_json::from_str(&json.value) {
        Ok(whole) => whole,
        Err(error) => Lenient::read(&json.value).ok_or_else(|| format!("it is not JSON: {error}"))?,
    };
    let Value::Object(whole) = whole else { return Err("it is not an object".to_owned()) };
    let (Some((element, inside)), 1) = (whole.iter().next(), whole.len()) else {
        return Err(format!("it has {} members: the one that is around all rows is expected", whole.len()));
    };
    let Value::Object(inside) = inside else { return Err(format!("`{element}` is not an object")) };
    let rows = match (inside.iter().next(), inside.len()) {
        (Some((name, Value::Array(rows))), 1) => Some((name, rows)),
        _ => None,
    };
    let (row, inside) = match rows {
        None => (String::new(), inside),
        Some((name, rows)) => match rows.as_slice() {
            [Value::Object(row)] => (name.clone(), row),
            _ => return Err(format!("`{name}` has {} entries: one object, a row, is expected", rows.len())),
        },
    };
    Ok(DataResult { element: element.clone(), row, children: members(inside, json.span)?, ..result.clone() })
}

fn members(object: &Map<String, Value>, span: Span) -> Result<Vec<DataOutput>, String> {
    let mut all = Vec::new();
    for (name, value) in object {
        let key = |value: &str| Key { value: value.to_owned(), span };
        all.push(match (name.strip_prefix('@'), value) {
            (Some(query), value) => {
                let text = value.as_str().unwrap_or_default();
                let mut parameters = Vec::new();
                for parameter in text.split(',').filter(|p| !p.trim().is_empty()) {
                    let wrong = || format!("`{parameter}` of `{name}` is not like `$column->parameter`");
                    let (from, to) = parameter.split_once("->").ok_or_else(wrong)?;
                    let from = from.trim().strip_prefix('$').ok_or_else(wrong)?;
                    parameters.push((key(to.trim()), DataValue::Column(from.trim().to_owned())));
                }
                DataOutput::Call(DataCall { query: key(query), parameters, roles: Vec::new(), span })
            }
            (None, Value::Object(inside)) => DataOutput::Group {
                name: name.clone(),
                namespace: None,
                roles: Vec::new(),
                children: members(inside, span)?,
            },
            (None, Value::Array(_)) => return Err(format!("`{name}` is an array: rows have none")),
            (None, value) => {
                let text = value.as_str().unwrap_or_default().trim();
                let wrong = || format!("`{name}` is not like `$column` or `$column(type:integer)`");
                let text = text.strip_prefix('$').ok_or_else(wrong)?;
                let (column, options) = match text.split_once('(') {
                    None => (text, ""),
                    Some((column, rest)) => (column, rest.rsplit_once(')').ok_or_else(wrong)?.0),
                };
                let (mut xsd_type, mut roles, mut optional) = ("string", Vec::new(), false);
                for option in options.split(';').filter(|option| !option.trim().is_empty()) {
                    match option.split_once(':').map(|(name, value)| (name.trim(), value.trim())) {
                        Some(("type", type_name)) => xsd_type = type_name,
                        Some(("requiredRoles", role_names)) => {
                            roles = role_names.split(',').map(|role| role.trim().to_owned()).collect();
                        }
                        Some(("optional", value)) => optional = value.eq_ignore_ascii_case("true"),
                        _ => {
                            return Err(format!(
                                "`{option}` of `{name}` is none of `type:…`, `optional:…` and `requiredRoles:…`"
                            ));
                        }
                    }
                }
                DataOutput::Field(DataField {
                    name: key(name),
                    is_attribute: false,
                    value: DataValue::Column(column.trim().to_owned()),
                    xsd_type: xsd_type.to_owned(),
                    optional,
                    export: None,
                    namespace: None,
                    roles,
                    span,
                })
            }
        });
    }
    Ok(all)
}

/// JSON in the dialect of `org.json`, which reads these descriptions in WSO2: texts may stand without quotes or in single ones, and a comma
/// may stand before a closing bracket. (Messages are read in another dialect, see `message::lenient`: there a word has no
/// blanks, numbers are numbers, and nothing between two commas is null.)
struct Lenient<'a> {
    text: Peekable<Chars<'a>>,
    depth: usize,
}

impl Lenient<'_> {
    /// Deepest nesting of a description.
    const DEPTH: usize = 64;

    fn read(text: &str) -> Option<Value> {
        let mut lenient = Lenient { text: text.chars().peekable(), depth: 0 };
        let value = lenient.value()?;
        lenient.space();
        lenient.text.peek().is_none().then_some(value)
    }

    fn space(&mut self) {
        while self.text.next_if(|&c| c <= ' ').is_some() {}
    }

    fn value(&mut self) -> Option<Value> {
        self.space();
        self.depth += 1;
        let first = *self.text.peek()?;
        let value = match first {
            _ if self.depth > Self::DEPTH => return None,
            quote @ ('"' | '\'') => Value::String(self.quoted(quote)?),
            '{' => Value::Object(self.object()?),
            '[' => Value::Array(self.array()?),
            _ => Value::String(self.word()?),
        };
        self.depth -= 1;
        Some(value)
    }

    fn quoted(&mut self, quote: char) -> Option<String> {
        self.text.next();
        let mut out = String::new();
        loop {
            match self.text.next()? {
                c if c == quote => return Some(out),
                '\n' | '\r' => return None,
                '\\' => out.push(match self.text.next()? {
                    'b' => '\u{8}',
                    'f' => '\u{C}',
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    'u' => {
                        let digits: String = self.text.by_ref().take(4).collect();
                        char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?
                    }
                    c @ ('"' | '\'' | '\\' | '/') => c,
                    _ => return None,
                }),
                c => out.push(c),
            }
        }
    }

    fn word(&mut self) -> Option<String> {
        let mut out = String::new();
        while let Some(c) = self.text.next_if(|&c| c >= ' ' && !",:]}/\\\"[{;=#".contains(c)) {
            out.push(c);
        }
        Some(out.trim().to_owned()).filter(|out| !out.is_empty())
    }

    /// The separator between two parts; `Some(false)`: the end.
    fn next(&mut self, end: char) -> Option<bool> {
        self.space();
        match self.text.next()? {
            ',' | ';' => {
                self.space();
                Some(self.text.next_if_eq(&end).is_none())
            }
            c => (c == end).then_some(false),
        }
    }

    fn object(&mut self) -> Option<Map<String, Value>> {
        self.text.next();
        let mut all = Map::new();
        self.space();
        if self.text.next_if_eq(&'}').is_some() {
            return Some(all);
        }
        loop {
            let Value::String(key) = self.value()? else { return None };
            self.space();
            match self.text.next()? {
                ':' => {}
                '=' => _ = self.text.next_if_eq(&'>'),
                _ => return None,
            }
            all.insert(key, self.value()?);
            if !self.next('}')? {
                return Some(all);
            }
        }
    }

    fn array(&mut self) -> Option<Vec<Value>> {
        self.text.next();
        let mut all = Vec::new();
        self.space();
        if self.text.next_if_eq(&']').is_some() {
            return Some(all);
        }
        loop {
            all.push(self.value()?);
            if !self.next(']')? {
                return Some(all);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn descriptions_are_read_as_their_library_does() {
        for (text, wanted) in [
            ("{\"a\":{\"b\":$c,\r\"@q\":$d->e,\r}}", json!({"a": {"b": "$c", "@q": "$d->e"}})),
            (
                "{'a': {b: [ {c = $d; e => \"$f(type:integer)\",},] } }",
                json!({"a": {"b": [{"c": "$d", "e": "$f(type:integer)"}]}}),
            ),
            ("{\"a\\u0041\\n\": {}}", json!({"aA\n": {}})),
        ] {
            assert_eq!(Lenient::read(text), Some(wanted), "{text}");
        }
        let deep = "[".repeat(100_000);
        for text in
            ["", "{", "{a}", "{a:}", "{a:b", "{a:\"b}", "{a:b}c", "[a b\nc", "{a:\\}", "{\"\\u12", &deep]
        {
            assert_eq!(Lenient::read(text), None, "{text}");
        }
    }
}
