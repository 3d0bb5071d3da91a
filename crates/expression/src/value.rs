//! Values of expressions.

use crate::number::Number;
use message::{Value as Own, XmlValue};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::sync::Arc;

/// What an expression gives: borrowed from the message where it can be.
#[derive(Clone, Debug)]
pub enum Value<'v> {
    /// An explicit null.
    Null,
    /// A Boolean.
    Boolean(bool),
    /// A number.
    Number(Number),
    /// A text.
    Text(Cow<'v, str>),
    /// An array or an object.
    Json(Cow<'v, Json>),
    /// XML nodes.
    Xml(Arc<XmlValue>),
}

/// A property or variable of type DOUBLE or FLOAT, which keeps its `.0` where it is only passed on.
fn of_java(number: f64) -> Number {
    Number::parse(&message::value::java_number_text(number)).unwrap_or_else(|| Number::of(number))
}

impl<'v> Value<'v> {
    /// A JSON value.
    pub fn of_json(json: Cow<'v, Json>) -> Value<'v> {
        match json {
            Cow::Borrowed(Json::String(text)) => Value::Text(Cow::Borrowed(text)),
            Cow::Owned(Json::String(text)) => Value::Text(Cow::Owned(text)),
            json => match &*json {
                Json::Null => Value::Null,
                Json::Bool(truth) => Value::Boolean(*truth),
                Json::Number(number) => {
                    Value::Number(Number::parse(number.as_str()).unwrap_or(Number::Double(f64::NAN)))
                }
                _ => Value::Json(json),
            },
        }
    }

    /// The value of a property or a variable.
    pub fn of(value: &'v Own) -> Value<'v> {
        match value {
            Own::String(text) => Value::Text(Cow::Borrowed(text)),
            Own::Integer(number) => Value::Number(Number::Integer(*number)),
            Own::Double(number) => Value::Number(Number::of(*number)),
            Own::JavaDouble(number) => Value::Number(of_java(*number)),
            Own::Boolean(truth) => Value::Boolean(*truth),
            Own::Xml(xml) => Value::Xml(Arc::clone(xml)),
            Own::Json(json) => Value::of_json(Cow::Borrowed(json)),
        }
    }

    /// As [`Value::of`], of a value that is given away.
    pub fn of_owned(value: Own) -> Value<'v> {
        match value {
            Own::String(text) => Value::Text(Cow::Owned(text.as_ref().to_owned())),
            Own::Json(json) => Value::of_json(Cow::Owned(Arc::unwrap_or_clone(json))),
            Own::Integer(number) => Value::Number(Number::Integer(number)),
            Own::Double(number) => Value::Number(Number::of(number)),
            Own::JavaDouble(number) => Value::Number(of_java(number)),
            Own::Boolean(truth) => Value::Boolean(truth),
            Own::Xml(xml) => Value::Xml(xml),
        }
    }

    /// Independent of the message.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Null => Value::Null,
            Value::Boolean(truth) => Value::Boolean(truth),
            Value::Number(number) => Value::Number(number),
            Value::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Value::Json(json) => Value::Json(Cow::Owned(json.into_owned())),
            Value::Xml(xml) => Value::Xml(xml),
        }
    }

    /// The value of a property or a variable that holds it.
    pub fn into_message(self) -> Own {
        match self {
            Value::Null => Own::Json(Arc::new(Json::Null)),
            Value::Boolean(truth) => Own::Boolean(truth),
            Value::Number(Number::Integer(number)) => Own::Integer(number),
            Value::Number(number) => match number.to_json() {
                // Sixteen digits are as exact as a binary number is; more would be lost.
                Json::Number(json) if json.as_str().len() > 17 => Own::Json(Arc::new(Json::Number(json))),
                _ => Own::Double(number.as_f64()),
            },
            Value::Text(text) => Own::String(Arc::from(text)),
            Value::Json(json) => Own::Json(Arc::new(json.into_owned())),
            Value::Xml(xml) => Own::Xml(xml),
        }
    }

    /// As JSON; XML as its text.
    pub fn into_json(self) -> Json {
        match self {
            Value::Null => Json::Null,
            Value::Boolean(truth) => Json::Bool(truth),
            Value::Number(number) => number.to_json(),
            Value::Text(text) => Json::String(text.into_owned()),
            Value::Json(json) => json.into_owned(),
            Value::Xml(_) => Json::String(self.into_text().into_owned()),
        }
    }

    /// As text: null is nothing, arrays and objects are JSON, an element is its own text or else XML.
    pub fn into_text(self) -> Cow<'v, str> {
        match self {
            Value::Null => Cow::Borrowed(""),
            Value::Text(text) => text,
            Value::Boolean(truth) => Cow::Borrowed(if truth { "true" } else { "false" }),
            Value::Number(number) => Cow::Owned(number.to_string()),
            Value::Json(json) => Cow::Owned(json.to_string()),
            Value::Xml(xml) => Cow::Owned(Own::Xml(xml).to_string()),
        }
    }

    /// The text of a value that counts as one: XML too.
    pub(crate) fn as_text(&self) -> Option<Cow<'_, str>> {
        match self {
            Value::Text(text) => Some(Cow::Borrowed(text)),
            Value::Xml(xml) => Some(Cow::Owned(Own::Xml(Arc::clone(xml)).to_string())),
            _ => None,
        }
    }

    /// What it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Boolean(_) => "a Boolean",
            Value::Number(_) => "a number",
            Value::Text(_) => "a text",
            Value::Json(json) if json.is_array() => "an array",
            Value::Json(_) => "an object",
            Value::Xml(_) => "XML",
        }
    }
}
