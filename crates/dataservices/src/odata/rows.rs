//! Rows as OData JSON.

use super::failed;
use super::filter::standard;
use super::model::{Column, Edm};
use crate::fault::Trouble;
use crate::output::Pipe;
use crate::value;
use serde_json::Value as Json;
use sql::{Error, Kind, Parameter, Reason, Row, Sink, Value};
use std::sync::Arc;
use std::task::{Context, Poll};

/// Writes a JSON string.
pub(super) fn string(text: &str, out: &mut String) {
    out.push('"');
    message::json::escape(text, out);
    out.push('"');
}

/// A value of a column.
pub(super) fn write(value: &Value, edm: Edm, out: &mut String) {
    match (value, edm) {
        (Value::Null, _) => out.push_str("null"),
        (Value::Integer(value), Edm::Boolean) => out.push_str(if *value == 0 { "false" } else { "true" }),
        (Value::Boolean(_) | Value::Integer(_) | Value::Unsigned(_), _) => out.push_str(&value.to_string()),
        (Value::Real(_) | Value::Double(_) | Value::Decimal(_), _) => {
            let text = value.to_string();
            match serde_json::from_str::<serde_json::Number>(&text) {
                Ok(_) => out.push_str(&text),
                Err(_) => string(&text.replace("Infinity", "INF"), out),
            }
        }
        (Value::Bytes(_), _) => string(&value.to_string().replace('+', "-").replace('/', "_"), out),
        // A date of OData has no zone.
        (Value::Date(text) | Value::Time(text) | Value::Text(text), _) => string(text, out),
        (Value::Timestamp(_), _) => string(&value::text(value).unwrap_or_default(), out),
    }
}

/// A value as a text, without the quotes of JSON.
pub(super) fn plain(value: &Value, edm: Edm) -> Option<String> {
    let mut out = String::new();
    write(value, edm, &mut out);
    match serde_json::from_str(&out) {
        Ok(Json::Null) => None,
        Ok(Json::String(text)) => Some(text),
        _ => Some(out),
    }
}

/// The members of a row, without the braces.
pub(super) fn members(row: &Row, columns: &[Column], out: &mut String) {
    for (at, (value, column)) in row.values.iter().zip(columns).enumerate() {
        if at > 0 {
            out.push(',');
        }
        string(&column.name, out);
        out.push(':');
        write(value, column.edm, out);
    }
}

/// The ETag of a row: it changes when a value changes. `columns` are all of the table.
pub(super) fn etag(row: &Row, columns: &[Column]) -> String {
    use std::hash::Hasher;
    let mut text = String::new();
    members(row, columns, &mut text);
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(text.as_bytes());
    format!("W/\"{:016x}\"", hasher.finish())
}

/// Whether an ETag is among those of `If-Match` or `If-None-Match`.
pub(super) fn is_among(etag: &str, list: &str) -> bool {
    let opaque = |text: &str| text.trim().trim_start_matches("W/").to_owned();
    list.trim() == "*" || list.split(',').any(|e| opaque(e) == opaque(etag))
}

/// The parameter for a value that was read, for a column of the same database.
pub(super) fn parameter_of(value: &Value, column: &Column) -> Result<Parameter, Trouble> {
    let text = match value {
        // In a text column an empty text is no NULL.
        Value::Text(text) if column.kind == Kind::Text => return Ok(Parameter::Text(text.clone())),
        Value::Integer(number) if column.kind == Kind::Boolean => {
            return Ok(Parameter::Boolean(*number != 0));
        }
        value => value.clone().text(),
    };
    let wrong = |why| failed(500, format!("the foreign key to `{}`: {why}", column.name));
    column.kind.parse(text.as_deref()).map_err(wrong)
}

/// The parameter for a member of a request.
///
/// # Errors
/// It is not a value of the column's type.
pub(super) fn parameter(given: &Json, column: &Column) -> Result<Parameter, String> {
    let wrong = || format!("`{}` is not of the type {}", column.name, column.kind.name());
    let is_number = matches!(
        column.kind,
        Kind::TinyInt
            | Kind::SmallInt
            | Kind::Integer
            | Kind::BigInt
            | Kind::Decimal
            | Kind::Real
            | Kind::Double
    );
    match given {
        Json::Null if !column.nullable && !column.key => Err(format!("`{}` cannot be null", column.name)),
        Json::Null => Ok(Parameter::Null(column.kind)),
        Json::Bool(value) if column.kind == Kind::Boolean => Ok(Parameter::Boolean(*value)),
        Json::Number(number) if is_number => {
            column.kind.parse(Some(&number.to_string())).map_err(|_| wrong())
        }
        Json::String(text) if column.kind == Kind::Text => Ok(Parameter::Text(text.clone())),
        Json::String(text) if column.kind == Kind::Bytes => {
            Kind::Bytes.parse(Some(&standard(text))).map_err(|_| wrong())
        }
        // Numbers that JSON numbers are too small for.
        Json::String(text) if !text.trim().is_empty() && column.kind != Kind::Boolean => {
            column.kind.parse(Some(text)).map_err(|_| wrong())
        }
        _ => Err(wrong()),
    }
}

/// Writes the rows of a collection into a pipe as they arrive.
pub(super) struct Out {
    pub text: String,
    pub pipe: Arc<Pipe>,
    pub columns: Vec<Column>,
    pub count: u64,
    /// Rows have all columns, and so they have ETags.
    pub is_whole: bool,
    /// Most rows, if the client prefers pages; and whether there is another one.
    pub page: Option<u64>,
    pub has_more: bool,
    /// Most bytes of a response that is complete before it is sent; `None`: the writer waits instead.
    pub most: Option<usize>,
}

impl Sink for &mut Out {
    fn row(&mut self, row: Row) -> Result<bool, Error> {
        if self.page.is_some_and(|size| self.count >= size) {
            self.has_more = true;
            return Ok(false);
        }
        self.text.push_str(if self.count == 0 { "{" } else { ",{" });
        if self.is_whole {
            self.text.push_str("\"@odata.etag\":");
            string(&etag(&row, &self.columns), &mut self.text);
            self.text.push(',');
        }
        members(&row, &self.columns, &mut self.text);
        self.text.push('}');
        self.count += 1;
        let held = self.pipe.put(&mut self.text);
        match self.most {
            Some(most) if held > most => {
                Err(Error::new(Reason::Value, format!("the answer is larger than {most} bytes")))
            }
            _ => Ok(true),
        }
    }

    fn poll_room(&mut self, _: &mut Context<'_>) -> Poll<()> {
        if self.most.is_none() && self.pipe.is_full() { Poll::Pending } else { Poll::Ready(()) }
    }
}
