//! Values of the primitive types (Part 2, 3.2): lexical form, equality, order.

use super::datetime::{Moment, Shape, Span};
use super::decimal::Decimal;
use base64::Engine;
use std::cmp::Ordering;
use std::collections::HashMap;

/// The primitive types.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names of XML Schema
pub enum Primitive {
    /// anySimpleType: any text.
    Any,
    String,
    Boolean,
    Decimal,
    Float,
    Double,
    Duration,
    DateTime,
    Time,
    Date,
    GYearMonth,
    GYear,
    GMonthDay,
    GDay,
    GMonth,
    HexBinary,
    Base64Binary,
    AnyUri,
    QName,
    Notation,
}

/// A value.
#[derive(Clone, Debug)]
pub enum Value {
    /// A string.
    Text(Box<str>),
    /// A URI: never equal to a string.
    Uri(Box<str>),
    /// A boolean.
    Boolean(bool),
    /// A decimal number.
    Decimal(Decimal),
    /// A float.
    Float(f32),
    /// A double.
    Double(f64),
    /// A duration.
    Duration(Span),
    /// A point in time, by its type.
    Moment(Primitive, Moment),
    /// Bytes, by their type.
    Binary(Primitive, Box<[u8]>),
    /// A qualified name: namespace and local name.
    QName(Primitive, Box<str>, Box<str>),
    /// The items of a list.
    List(Vec<Value>),
}

impl Value {
    /// The order of two values of one type; `None`: they are not comparable.
    pub fn compare(&self, other: &Value) -> Option<Ordering> {
        match (self, other) {
            (Value::Decimal(a), Value::Decimal(b)) => Some(a.cmp(b)),
            // NaN is equal to itself and not comparable to other values.
            (Value::Float(a), Value::Float(b)) if a.is_nan() && b.is_nan() => Some(Ordering::Equal),
            (Value::Double(a), Value::Double(b)) if a.is_nan() && b.is_nan() => Some(Ordering::Equal),
            (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
            (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
            (Value::Duration(a), Value::Duration(b)) => a.compare(b),
            (Value::Moment(p, a), Value::Moment(q, b)) if p == q => a.compare(b),
            _ => (self == other).then_some(Ordering::Equal),
        }
    }

    /// The length that length, minLength and maxLength count; `None` where they do not apply.
    pub fn length(&self) -> Option<u64> {
        match self {
            Value::Text(text) | Value::Uri(text) => Some(text.chars().count() as u64),
            Value::Binary(_, bytes) => Some(bytes.len() as u64),
            Value::List(items) => Some(items.len() as u64),
            _ => None,
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Text(a), Value::Text(b)) | (Value::Uri(a), Value::Uri(b)) => a == b,
            (Value::Boolean(a), Value::Boolean(b)) => a == b,
            (Value::Binary(p, a), Value::Binary(q, b)) => p == q && a == b,
            (Value::QName(p, a, b), Value::QName(q, c, d)) => p == q && a == c && b == d,
            (Value::List(a), Value::List(b)) => a == b,
            (Value::Decimal(a), Value::Decimal(b)) => a == b,
            (
                Value::Float(_) | Value::Double(_) | Value::Duration(_) | Value::Moment(..),
                Value::Float(_) | Value::Double(_) | Value::Duration(_) | Value::Moment(..),
            ) => self.compare(other) == Some(Ordering::Equal),
            _ => false,
        }
    }
}

/// The hash key of some values. Equal ones have the same one, however numbers and times are written.
pub fn hash<'v>(values: impl IntoIterator<Item = &'v Value>) -> String {
    let one = |value: &Value| match value {
        Value::Text(text) | Value::Uri(text) => text.to_string(),
        Value::Decimal(d) => format!("{d:?}"),
        // The two zeros are equal.
        Value::Float(number) => format!("{:?}", number + 0.0),
        Value::Double(number) => format!("{:?}", number + 0.0),
        Value::Duration(span) => format!("{:?}", span.end()),
        Value::Moment(_, moment) => format!("{:?}", moment.instant()),
        Value::QName(_, ns, local) => format!("{ns} {local}"),
        Value::Boolean(b) => b.to_string(),
        Value::Binary(_, bytes) => format!("{bytes:?}"),
        Value::List(items) => hash(items.iter()),
    };
    values.into_iter().map(one).collect::<Vec<_>>().join("\u{1}")
}

/// The values of an enumeration.
#[derive(Debug)]
pub struct Enumeration {
    values: Vec<Value>,
    /// The places of values by hash key, where there are many.
    index: Option<HashMap<String, Vec<usize>>>,
}

impl Enumeration {
    /// Fewer are compared one by one.
    const MANY: usize = 16;

    /// An enumeration of these values.
    pub fn new(values: Vec<Value>) -> Enumeration {
        let index = (values.len() >= Self::MANY).then(|| {
            let mut index: HashMap<String, Vec<usize>> = HashMap::new();
            for (at, value) in values.iter().enumerate() {
                index.entry(hash(std::slice::from_ref(value))).or_default().push(at);
            }
            index
        });
        Enumeration { values, index }
    }

    /// Whether the value is one of them.
    pub fn contains(&self, value: &Value) -> bool {
        match &self.index {
            None => self.values.contains(value),
            Some(index) => {
                let places = index.get(&hash(std::slice::from_ref(value)));
                places.is_some_and(|places| places.iter().any(|at| self.values[*at] == *value))
            }
        }
    }
}

/// Finds the namespace of a prefix (`""`: the default namespace, `Some("")` where there is none).
pub type Prefixes<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The value of a text with normalized white space; `None` where it has none.
pub fn parse(text: &str, primitive: Primitive, prefixes: Prefixes<'_>) -> Option<Value> {
    let moment = |shape| Moment::parse(text, shape).map(|m| Value::Moment(primitive, m));
    match primitive {
        Primitive::Any | Primitive::String => Some(Value::Text(text.into())),
        Primitive::Boolean => match text {
            "true" | "1" => Some(Value::Boolean(true)),
            "false" | "0" => Some(Value::Boolean(false)),
            _ => None,
        },
        Primitive::Decimal => Decimal::parse(text).map(Value::Decimal),
        Primitive::Float => float(text).map(|n| Value::Float(n as f32)).map(|v| match v {
            // Parsing an f64 first could round a float twice.
            Value::Float(f) if f.is_finite() => Value::Float(text.parse().unwrap_or(f)),
            v => v,
        }),
        Primitive::Double => float(text).map(Value::Double),
        Primitive::Duration => Span::parse(text).map(Value::Duration),
        Primitive::DateTime => moment(Shape::DateTime),
        Primitive::Time => moment(Shape::Time),
        Primitive::Date => moment(Shape::Date),
        Primitive::GYearMonth => moment(Shape::YearMonth),
        Primitive::GYear => moment(Shape::Year),
        Primitive::GMonthDay => moment(Shape::MonthDay),
        Primitive::GDay => moment(Shape::Day),
        Primitive::GMonth => moment(Shape::Month),
        Primitive::HexBinary => {
            let digit = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
            let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
            let bytes: Option<Box<[u8]>> =
                pairs.iter().map(|p| Some(digit(p[0])? << 4 | digit(p[1])?)).collect();
            bytes.map(|b| Value::Binary(primitive, b))
        }
        Primitive::Base64Binary => {
            let compact: Vec<u8> = text.bytes().filter(|b| *b != b' ').collect();
            let bytes = base64::engine::general_purpose::STANDARD.decode(compact).ok()?;
            Some(Value::Binary(primitive, bytes.into()))
        }
        Primitive::AnyUri => is_uri(text).then(|| Value::Uri(text.into())),
        Primitive::QName | Primitive::Notation => {
            let (prefix, local) = text.split_once(':').unwrap_or(("", text));
            if !xml::is_ncname(local) || (text.contains(':') && !xml::is_ncname(prefix)) {
                return None;
            }
            let namespace = prefixes(prefix).or_else(|| prefix.is_empty().then(String::new))?;
            Some(Value::QName(primitive, namespace.into(), local.into()))
        }
    }
}

fn float(text: &str) -> Option<f64> {
    match text {
        "INF" => Some(f64::INFINITY),
        "-INF" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        _ => {
            let is_number = text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
            is_number.then(|| text.parse().ok()).flatten()
        }
    }
}

/// Whether a text can be escaped into a URI reference (RFC 2396, and IPv6 addresses in brackets): nearly every one.
fn is_uri(text: &str) -> bool {
    let bytes = text.as_bytes();
    let hex = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_hexdigit);
    if (0..bytes.len()).any(|i| bytes[i] == b'%' && !(hex(i + 1) && hex(i + 2)))
        || text.matches('#').count() > 1
    {
        return false;
    }
    // A colon before the first slash, question mark or hash ends a scheme.
    match text.find([':', '/', '?', '#']) {
        Some(colon) if bytes[colon] == b':' => {
            let scheme = &bytes[..colon];
            let is_scheme = scheme.first().is_some_and(u8::is_ascii_alphabetic)
                && scheme.iter().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b));
            is_scheme && colon + 1 < bytes.len() && bytes[colon + 1] != b'#'
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lexical_forms() {
        use Primitive::*;
        for (primitive, good, bad) in [
            (Boolean, vec!["true", "0"], vec!["TRUE", "", "yes"]),
            (
                Float,
                vec!["1", "-1.5E10", "INF", "NaN", ".5", "1."],
                vec!["+INF", "inf", "nan", "1e", "", "0x1", "infinity"],
            ),
            (HexBinary, vec!["", "0fB7"], vec!["0", "0g"]),
            (Base64Binary, vec!["", "YQ==", "Y Q = =", "YWJj"], vec!["Y", "YR==", "YQ=", "===="]),
            (
                AnyUri,
                vec!["", "http://a/b c", "../x#y", "é", "urn:a:b", "http://[::1]/"],
                vec!["%", "a%zz", ":a", "1a:b", "a#b#c", "http:"],
            ),
            (QName, vec!["a", "p:a"], vec!["q:a", ":a", "a:", "1", "p:a:b"]),
        ] {
            let prefixes = |prefix: &str| (prefix == "p").then(|| "urn:p".to_owned());
            good.iter().for_each(|text| assert!(parse(text, primitive, &prefixes).is_some(), "{text}"));
            bad.iter().for_each(|text| assert!(parse(text, primitive, &prefixes).is_none(), "{text}"));
        }
    }
}
