//! Values in streaming: those of XPath 1.0 without nodes; a host's node-sets become their strings.

use crate::ast::BinaryOp;
use crate::context::Context;
use crate::error::XPathError;
use crate::eval::{Scalar, compare_scalars, compare_string_scalar, truth};
use crate::functions;
use crate::number;
use crate::number::arithmetic;
use crate::plan::Core;
use crate::value::Value;
use std::borrow::Cow;
use std::sync::Arc;

#[derive(Debug, Clone)]
pub(super) enum Known {
    Boolean(bool),
    Number(f64),
    String(Arc<str>),
    /// The string-values of a node-set in document order.
    Strings(Arc<[String]>),
}

impl Known {
    pub fn from_value(v: &Value, cx: &Context<'_>) -> Result<Known, XPathError> {
        Ok(match v {
            Value::Boolean(b) => Known::Boolean(*b),
            Value::Number(n) => Known::Number(*n),
            Value::String(s) => Known::String(s.clone()),
            Value::Empty => Known::Strings(Arc::new([])),
            Value::NodeSet(set) => {
                let one = |n| Value::from(n).to_string_in(cx).map(Cow::into_owned);
                Known::Strings(set.iter().map(one).collect::<Result<Arc<[String]>, _>>()?)
            }
            Value::Atomic(a) if a.is_numeric() => Known::Number(a.to_double()),
            Value::Atomic(a) => Known::String(a.to_text().into()),
            Value::Sequence(_) => {
                let one = |item| Value::from(item).to_string_in(cx).map(Cow::into_owned);
                Known::Strings(v.items().map(one).collect::<Result<Arc<[String]>, _>>()?)
            }
        })
    }

    pub fn to_value(&self) -> Value {
        match self {
            Known::Boolean(b) => Value::Boolean(*b),
            Known::Number(n) => Value::Number(*n),
            Known::String(s) => Value::String(s.clone()),
            Known::Strings(_) => Value::string(self.string()),
        }
    }

    pub fn boolean(&self) -> bool {
        match self {
            Known::Boolean(b) => *b,
            Known::Number(n) => truth(*n),
            Known::String(s) => !s.is_empty(),
            Known::Strings(s) => !s.is_empty(),
        }
    }

    pub fn number(&self) -> f64 {
        match self {
            Known::Boolean(b) => f64::from(u8::from(*b)),
            Known::Number(n) => *n,
            Known::String(s) => number::parse(s),
            Known::Strings(_) => number::parse(&self.string()),
        }
    }

    pub fn string(&self) -> Cow<'_, str> {
        match self {
            Known::Boolean(b) => crate::eval::boolean_text(*b),
            Known::Number(n) => number::format(*n),
            Known::String(s) => Cow::Borrowed(s),
            Known::Strings(s) => Cow::Borrowed(s.first().map_or("", String::as_str)),
        }
    }

    fn scalar(&self) -> Scalar<'_> {
        match self {
            Known::Boolean(b) => Scalar::Boolean(*b),
            Known::Number(n) => Scalar::Number(*n),
            _ => Scalar::String(self.string()),
        }
    }

    /// `self op other`, node-sets with their existential meaning.
    pub fn compare(&self, op: BinaryOp, other: &Known) -> bool {
        match (self, other) {
            (Known::Strings(_), Known::Boolean(_)) | (Known::Boolean(_), Known::Strings(_)) => {
                compare_scalars(op, &Scalar::Boolean(self.boolean()), &Scalar::Boolean(other.boolean()))
            }
            (Known::Strings(list), _) => list.iter().any(|s| other.compare_node(op, s)),
            (_, Known::Strings(list)) => {
                list.iter().any(|s| compare_string_scalar(op.mirrored(), s, &self.scalar()))
            }
            _ => compare_scalars(op, &self.scalar(), &other.scalar()),
        }
    }

    /// A node with string-value `s` on the left, this value (not a boolean) on the right: `s op self`.
    pub fn compare_node(&self, op: BinaryOp, s: &str) -> bool {
        match self {
            Known::Strings(list) => {
                list.iter().any(|t| compare_string_scalar(op, s, &Scalar::String(t.into())))
            }
            _ => compare_string_scalar(op, s, &self.scalar()),
        }
    }

    pub fn arithmetic(&self, op: BinaryOp, other: &Known) -> Known {
        Known::Number(arithmetic(op, self.number(), other.number()))
    }

    /// A core function of values. Functions on nodes have become leaves.
    pub fn call(core: Core, args: &[Known]) -> Known {
        let string = |i: usize| args.get(i).map_or(Cow::Borrowed(""), Known::string);
        let number_at = |i: usize| args.get(i).map_or(f64::NAN, Known::number);
        let text = |s: Cow<'_, str>| Known::String(s.into());
        match core {
            Core::True => Known::Boolean(true),
            Core::False => Known::Boolean(false),
            Core::Not => Known::Boolean(!args.first().is_some_and(Known::boolean)),
            Core::Boolean => Known::Boolean(args.first().is_some_and(Known::boolean)),
            Core::StartsWith => Known::Boolean(string(0).starts_with(&*string(1))),
            Core::Contains => Known::Boolean(functions::contains(&string(0), &string(1))),
            Core::Number => Known::Number(number_at(0)),
            Core::StringLength => Known::Number(functions::length(&string(0)) as f64),
            Core::Floor => Known::Number(number_at(0).floor()),
            Core::Ceiling => Known::Number(number_at(0).ceil()),
            Core::Round => Known::Number(number::round(number_at(0))),
            Core::Concat => Known::String(args.iter().map(Known::string).collect::<String>().into()),
            Core::SubstringBefore => text(functions::substring_before(string(0), &string(1))),
            Core::SubstringAfter => text(functions::substring_after(string(0), &string(1))),
            Core::Substring => {
                text(functions::substring(string(0), number_at(1), args.get(2).map(Known::number)))
            }
            Core::NormalizeSpace => text(functions::normalize_space(string(0))),
            Core::Translate => text(functions::translate(string(0), &string(1), &string(2))),
            // Not reached: they are leaves or constants.
            Core::Last | Core::Position | Core::Count | Core::Sum => Known::Number(f64::NAN),
            Core::Lang => Known::Boolean(false),
            Core::String | Core::Id | Core::LocalName | Core::NamespaceUri | Core::Name => text(string(0)),
        }
    }
}
