//! The values that a template works with.

use crate::ast::Macro;
use crate::number::Number;
use serde_json::Value as Json;
use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use xml::{Document, NodeId, NodeKind};

/// What a template sees under a name.
#[derive(Debug)]
pub enum Model<'m> {
    /// A text.
    Text(Cow<'m, str>),
    /// JSON: hashes, sequences and scalars; null is missing.
    Json(&'m Json),
    /// A document.
    Xml(&'m Document),
    /// Texts by name; `true`: in any case.
    Texts(&'m [(String, String)], bool),
    /// Models by name.
    Models(Vec<(String, Model<'m>)>),
}

#[derive(Clone)]
pub(crate) enum Value<'m> {
    Text(Text<'m>),
    /// A text that is written as it is.
    Markup(Text<'m>),
    Number(Number),
    Boolean(bool),
    /// A point in time, in milliseconds since 1970, and what of it is meant.
    Date(i64, DateKind),
    List(Rc<Items<'m>>),
    Range(Range),
    /// An array or object.
    Json(&'m Json),
    Hash(Rc<Hash<'m>>),
    Model(&'m Model<'m>),
    /// What `x!` gives: empty as a string, a sequence and a hash.
    Empty,
    /// An item of a sequence that is null. Only there: taken out of it, it is missing ([`Value::present`]).
    Null,
    /// Nodes of one document; one is a node.
    Nodes(&'m Document, Rc<[NodeId]>),
    Macro(&'m Arc<Macro>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DateKind {
    Date,
    Time,
    DateTime,
}

#[derive(Clone)]
pub(crate) enum Text<'m> {
    Lent(&'m str),
    Made(Rc<str>),
}

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Text::Lent(text) => text,
            Text::Made(text) => text,
        }
    }
}

impl<'m> From<Cow<'m, str>> for Text<'m> {
    fn from(text: Cow<'m, str>) -> Text<'m> {
        match text {
            Cow::Borrowed(text) => Text::Lent(text),
            Cow::Owned(text) => Text::Made(text.into()),
        }
    }
}

/// The items of a sequence that a template has made.
#[derive(Default)]
pub(crate) struct Items<'m>(Vec<Value<'m>>);

impl<'m> std::ops::Deref for Items<'m> {
    type Target = [Value<'m>];

    fn deref(&self) -> &[Value<'m>] {
        &self.0
    }
}

/// A template can nest values as deep as it is long, so they are dropped one after the other and not one inside of the other.
impl Drop for Items<'_> {
    fn drop(&mut self) {
        if self.0.iter().any(Value::nests) {
            unnest(std::mem::take(&mut self.0));
        }
    }
}

impl Drop for Hash<'_> {
    fn drop(&mut self) {
        if self.members.iter().any(|(_, value)| value.nests()) {
            unnest(self.members.drain(..).map(|(_, value)| value).collect());
        }
    }
}

/// Drops values. What is inside of one that nobody else has waits for its turn.
fn unnest(mut waiting: Vec<Value<'_>>) {
    while let Some(value) = waiting.pop() {
        match value {
            Value::List(items) => {
                if let Some(mut items) = Rc::into_inner(items) {
                    waiting.append(&mut items.0);
                }
            }
            Value::Hash(hash) => {
                if let Some(mut hash) = Rc::into_inner(hash) {
                    waiting.extend(hash.members.drain(..).map(|(_, value)| value));
                }
            }
            _ => {}
        }
    }
}

impl<'m> Value<'m> {
    pub fn list(items: Vec<Value<'m>>) -> Value<'m> {
        Value::List(Rc::new(Items(items)))
    }

    fn nests(&self) -> bool {
        matches!(self, Value::List(_) | Value::Hash(_))
    }

    pub fn made(text: impl Into<Rc<str>>) -> Value<'m> {
        Value::Text(Text::Made(text.into()))
    }

    pub fn int(n: usize) -> Value<'m> {
        Value::Number(Number::int(n as i64))
    }

    /// The value of JSON; null is none.
    pub fn of_json(json: &'m Json) -> Option<Value<'m>> {
        Some(match json {
            Json::Null => return None,
            Json::Bool(is) => Value::Boolean(*is),
            Json::String(text) => Value::Text(Text::Lent(text)),
            Json::Number(number) => Value::Number(
                Number::parse(&number.to_string())
                    .unwrap_or_else(|| Number::Double(number.as_f64().unwrap_or(f64::NAN))),
            ),
            Json::Array(_) | Json::Object(_) => Value::Json(json),
        })
    }

    pub fn of_model(model: &'m Model<'m>) -> Option<Value<'m>> {
        Some(match model {
            Model::Text(text) => Value::Text(Text::Lent(text)),
            Model::Json(json) => return Value::of_json(json),
            Model::Xml(document) => Value::Nodes(document, Rc::new([Document::ROOT])),
            Model::Texts(..) | Model::Models(_) => Value::Model(model),
        })
    }

    /// What it is, for messages.
    pub fn what(&self) -> &'static str {
        match self {
            Value::Text(_) | Value::Empty => "a string",
            Value::Null => "null",
            Value::Markup(_) => "a markup output",
            Value::Number(_) => "a number",
            Value::Boolean(_) => "a boolean",
            Value::Date(_, DateKind::Date) => "a date",
            Value::Date(_, DateKind::Time) => "a time",
            Value::Date(_, DateKind::DateTime) => "a date-time",
            Value::List(_) | Value::Range(_) | Value::Json(Json::Array(_)) => "a sequence",
            Value::Json(_) | Value::Hash(_) | Value::Model(_) => "a hash",
            Value::Nodes(_, nodes) if nodes.len() == 1 => "an XML node",
            Value::Nodes(..) => "a sequence of XML nodes",
            Value::Macro(definition) if definition.function => "a function",
            Value::Macro(_) => "a macro",
        }
    }

    pub fn is_sequence(&self) -> bool {
        matches!(
            self,
            Value::List(_) | Value::Range(_) | Value::Json(Json::Array(_)) | Value::Nodes(..) | Value::Empty
        )
    }

    pub fn is_hash(&self) -> bool {
        matches!(
            self,
            Value::Json(Json::Object(_)) | Value::Hash(_) | Value::Model(_) | Value::Nodes(..) | Value::Empty
        )
    }

    /// The number of items of a sequence; `None`: it has no end. Of what is no sequence 0.
    pub fn length(&self) -> Option<usize> {
        match self {
            Value::List(items) => Some(items.len()),
            Value::Range(range) => range.length,
            Value::Json(Json::Array(items)) => Some(items.len()),
            Value::Nodes(_, nodes) => Some(nodes.len()),
            _ => Some(0),
        }
    }

    /// What an item of a sequence is outside of it; `None`: it is null.
    pub fn present(self) -> Option<Value<'m>> {
        if matches!(self, Value::Null) { None } else { Some(self) }
    }

    /// An item of a sequence.
    pub fn item(&self, at: usize) -> Option<Value<'m>> {
        match self {
            Value::List(items) => items.get(at).cloned(),
            Value::Range(range) => range.item(at),
            Value::Json(Json::Array(items)) => Some(Value::of_json(items.get(at)?).unwrap_or(Value::Null)),
            Value::Nodes(document, nodes) => Some(Value::Nodes(document, Rc::new([*nodes.get(at)?]))),
            _ => None,
        }
    }

    /// The names of a hash, in order.
    pub fn keys(&self) -> Option<Vec<Value<'m>>> {
        let text = |name: &'m str| Value::Text(Text::Lent(name));
        Some(match self {
            Value::Json(Json::Object(members)) => members.keys().map(|name| text(name)).collect(),
            Value::Hash(hash) => hash.members.iter().map(|(name, _)| Value::Text(name.clone())).collect(),
            Value::Model(Model::Texts(texts, _)) => texts.iter().map(|(name, _)| text(name)).collect(),
            Value::Model(Model::Models(models)) => models.iter().map(|(name, _)| text(name)).collect(),
            Value::Empty => Vec::new(),
            _ => return None,
        })
    }

    /// A member of a hash; XML is for [`crate::nodes`].
    pub fn member(&self, name: &str) -> Option<Value<'m>> {
        match self {
            Value::Json(Json::Object(members)) => members.get(name).and_then(Value::of_json),
            Value::Hash(hash) => hash.get(name).cloned(),
            Value::Model(Model::Texts(texts, any_case)) => texts
                .iter()
                .find(|(key, _)| if *any_case { key.eq_ignore_ascii_case(name) } else { key == name })
                .map(|(_, text)| Value::Text(Text::Lent(text))),
            Value::Model(Model::Models(models)) => {
                models.iter().find(|(key, _)| key == name).and_then(|(_, model)| Value::of_model(model))
            }
            _ => None,
        }
    }
}

/// A hash that a template has made, in order.
#[derive(Default)]
pub(crate) struct Hash<'m> {
    pub members: Vec<(Text<'m>, Value<'m>)>,
    index: HashMap<Rc<str>, usize>,
}

impl<'m> Hash<'m> {
    pub fn set(&mut self, name: Text<'m>, value: Value<'m>) {
        match self.index.get(&*name) {
            Some(&at) => self.members[at].1 = value,
            None => {
                self.index.insert(Rc::from(&*name), self.members.len());
                self.members.push((name, value));
            }
        }
    }

    pub fn get(&self, name: &str) -> Option<&Value<'m>> {
        self.index.get(name).map(|&at| &self.members[at].1)
    }
}

/// Whole numbers one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub from: i64,
    /// 1 or -1.
    pub step: i64,
    /// `None`: without an end.
    pub length: Option<usize>,
    /// Of a slice with a given end: what lies beyond the end of what is cut is left out.
    pub lenient: bool,
}

impl Range {
    fn item<'m>(&self, at: usize) -> Option<Value<'m>> {
        if self.length.is_some_and(|length| at >= length) {
            return None;
        }
        let offset = i64::try_from(at).ok()?.checked_mul(self.step)?;
        self.from.checked_add(offset).map(|n| Value::Number(Number::int(n)))
    }
}

/// The text of XML nodes; an error says why there is none.
pub(crate) fn text_of_nodes<'m>(document: &'m Document, nodes: &[NodeId]) -> Result<Cow<'m, str>, String> {
    let [node] = nodes else {
        return Err(match nodes.len() {
            0 => "no XML node matches here, so there is no text".to_owned(),
            n => format!("{n} XML nodes match here, a text needs one"),
        });
    };
    if document.kind(*node) != NodeKind::Element {
        return match document.kind(*node) {
            NodeKind::Document => Err("a document is not text".to_owned()),
            _ => Ok(Cow::Borrowed(document.text(*node))),
        };
    }
    if document.children(*node).any(|child| document.kind(child) == NodeKind::Element) {
        return Err("only XML elements without elements inside are texts".to_owned());
    }
    Ok(document.string_value(*node))
}
