//! Atomic values and their types (XDM 1.0 section 2.6; XML Schema part 2).

mod alike;
pub mod calendar;
mod cast;
mod decimal;
pub(crate) mod large;
mod types;

pub use alike::{Alike, Precision};
pub use calendar::{Duration, DurationKind, Moment, MomentKind};
pub use cast::{CastError, parse_double};
pub use decimal::Decimal;
pub use types::{AtomicType, Kind};

use crate::items::{Array, FunctionItem, Map};
use std::borrow::Cow;
use std::sync::Arc;

/// A qualified name as a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NameValue {
    /// The prefix, empty if there is none.
    pub prefix: Box<str>,
    /// The namespace, empty if there is none.
    pub namespace: Box<str>,
    /// The local part.
    pub local: Box<str>,
}

/// An item that is not a node: an atomic value, a map, an array or a function; cheap to copy. Derived types are checked when
/// a value is converted to one, and not kept.
#[derive(Debug, Clone, PartialEq)]
pub enum Atomic {
    /// `xs:untypedAtomic`: the typed value of a node without a schema.
    Untyped(Arc<str>),
    /// `xs:string`.
    String(Arc<str>),
    /// `xs:anyURI`.
    Uri(Arc<str>),
    /// `xs:boolean`.
    Boolean(bool),
    /// `xs:integer`, of 64 bits.
    Integer(i64),
    /// `xs:integer` that does not fit into 64 bits.
    Large(Arc<num_bigint::BigInt>),
    /// `xs:decimal`.
    Decimal(Arc<Decimal>),
    /// `xs:float`.
    Float(f32),
    /// `xs:double`.
    Double(f64),
    /// `xs:dateTime`, `xs:date`, `xs:time` and the parts of dates.
    Moment(Arc<Moment>),
    /// `xs:duration` and the two ordered durations.
    Duration(Arc<Duration>),
    /// `xs:QName`.
    Name(Arc<NameValue>),
    /// `xs:hexBinary`.
    Hex(Arc<[u8]>),
    /// `xs:base64Binary`.
    Base64(Arc<[u8]>),
    /// A map (XPath 3.1): not an atomic value, nor are the two below.
    Map(Arc<Map>),
    /// An array (XPath 3.1).
    Array(Arc<Array>),
    /// Another function (XPath 3.0).
    Function(Arc<FunctionItem>),
}

/// See [`Atomic::bucket`].
#[derive(Debug, Clone)]
pub(crate) enum Bucket {
    /// Of strings.
    Text(Arc<str>),
    /// Of values with a number: the type, and the number.
    Number(u8, i128),
    /// Of decimals and integers that are no double.
    Exact(Decimal),
    /// Of integers that are neither.
    Integer(Arc<num_bigint::BigInt>),
    /// Of names, without the prefixes.
    Name(Arc<NameValue>),
    /// Of binary values.
    Bytes(Arc<[u8]>),
}

impl Bucket {
    pub(crate) fn of_double(number: f64) -> Bucket {
        let number = if number == 0.0 || number.is_nan() { 0.0 } else { number };
        Bucket::Number(0, i128::from(number.to_bits()))
    }
}

impl PartialEq for Bucket {
    fn eq(&self, other: &Bucket) -> bool {
        match (self, other) {
            (Bucket::Text(a), Bucket::Text(b)) => a == b,
            (Bucket::Number(a, x), Bucket::Number(b, y)) => a == b && x == y,
            (Bucket::Exact(a), Bucket::Exact(b)) => a == b,
            (Bucket::Integer(a), Bucket::Integer(b)) => a == b,
            (Bucket::Name(a), Bucket::Name(b)) => a.local == b.local && a.namespace == b.namespace,
            (Bucket::Bytes(a), Bucket::Bytes(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Bucket {}

impl std::hash::Hash for Bucket {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        match self {
            Bucket::Text(text) => text.hash(state),
            Bucket::Number(kind, number) => (kind, number).hash(state),
            Bucket::Exact(number) => number.hash(state),
            Bucket::Integer(number) => number.hash(state),
            Bucket::Name(name) => (&name.local, &name.namespace).hash(state),
            Bucket::Bytes(bytes) => bytes.hash(state),
        }
    }
}

impl Atomic {
    /// An `xs:string`.
    pub fn string(s: impl Into<Arc<str>>) -> Atomic {
        Atomic::String(s.into())
    }

    /// An `xs:decimal`.
    pub fn decimal(d: Decimal) -> Atomic {
        Atomic::Decimal(Arc::new(d))
    }

    /// A date or time.
    pub fn moment(m: Moment) -> Atomic {
        Atomic::Moment(Arc::new(m))
    }

    /// A duration.
    pub fn duration(d: Duration) -> Atomic {
        Atomic::Duration(Arc::new(d))
    }

    /// Its type.
    pub fn kind(&self) -> Kind {
        match self {
            Atomic::Untyped(_) => Kind::Untyped,
            Atomic::String(_) => Kind::String,
            Atomic::Uri(_) => Kind::Uri,
            Atomic::Boolean(_) => Kind::Boolean,
            Atomic::Integer(_) | Atomic::Large(_) => Kind::Integer,
            Atomic::Decimal(_) => Kind::Decimal,
            Atomic::Float(_) => Kind::Float,
            Atomic::Double(_) => Kind::Double,
            Atomic::Moment(m) => Kind::Moment(m.kind),
            Atomic::Duration(d) => Kind::Duration(d.kind),
            Atomic::Name(_) => Kind::Name,
            Atomic::Hex(_) => Kind::Hex,
            Atomic::Base64(_) => Kind::Base64,
            Atomic::Map(_) => Kind::Map,
            Atomic::Array(_) => Kind::Array,
            Atomic::Function(_) => Kind::Function,
        }
    }

    /// Whether it is a map, an array or another function, and so not an atomic value.
    pub fn is_function(&self) -> bool {
        matches!(self, Atomic::Map(_) | Atomic::Array(_) | Atomic::Function(_))
    }

    /// Its kind, for a message: `an xs:integer`, `a map`.
    pub fn describe(&self) -> String {
        match self {
            Atomic::Map(_) => "a map".to_owned(),
            Atomic::Array(_) => "an array".to_owned(),
            Atomic::Function(_) => "a function".to_owned(),
            other => format!("an xs:{}", AtomicType::of(other.kind()).name),
        }
    }

    /// Whether it is of a numeric type.
    pub fn is_numeric(&self) -> bool {
        matches!(
            self,
            Atomic::Integer(_) | Atomic::Large(_) | Atomic::Decimal(_) | Atomic::Float(_) | Atomic::Double(_)
        )
    }

    /// The text of a string, a URI or an untyped value.
    pub fn as_text(&self) -> Option<&Arc<str>> {
        match self {
            Atomic::Untyped(s) | Atomic::String(s) | Atomic::Uri(s) => Some(s),
            _ => None,
        }
    }

    /// The value as `xs:string` (F&O section 17.1.2); of an item without a string value the empty text.
    pub fn to_text(&self) -> Cow<'_, str> {
        match self {
            Atomic::Untyped(s) | Atomic::String(s) | Atomic::Uri(s) => Cow::Borrowed(s),
            Atomic::Boolean(b) => Cow::Borrowed(if *b { "true" } else { "false" }),
            Atomic::Integer(n) => Cow::Owned(n.to_string()),
            Atomic::Large(n) => Cow::Owned(n.to_string()),
            Atomic::Decimal(d) => Cow::Owned(d.to_string()),
            Atomic::Float(n) => cast::float_text(*n),
            Atomic::Double(n) => cast::double_text(*n),
            Atomic::Moment(m) => Cow::Owned(m.to_text()),
            Atomic::Duration(d) => Cow::Owned(d.to_text()),
            Atomic::Name(name) if name.prefix.is_empty() => Cow::Borrowed(&name.local),
            Atomic::Name(name) => Cow::Owned(format!("{}:{}", name.prefix, name.local)),
            Atomic::Hex(bytes) => Cow::Owned(cast::hex_text(bytes)),
            Atomic::Base64(bytes) => Cow::Owned(cast::base64_text(bytes)),
            Atomic::Map(_) | Atomic::Array(_) | Atomic::Function(_) => Cow::Borrowed(""),
        }
    }

    /// Whether two values are equal (`eq`); values of types that cannot be compared are not, nor is NaN.
    pub fn equals(&self, other: &Atomic) -> bool {
        crate::sequence::operators::equal(self, other)
    }

    /// The order of two values; `None`: their types are not comparable, or one is NaN.
    pub fn order(&self, other: &Atomic) -> Option<std::cmp::Ordering> {
        crate::sequence::operators::order(self, other)
    }

    /// Whether values of its type have an order (`lt`).
    pub fn is_ordered(&self) -> bool {
        self.is_ordered_with(self) || self.is_numeric()
    }

    /// Whether all values of its type and those of the other's have a common order.
    pub fn is_ordered_with(&self, other: &Atomic) -> bool {
        use crate::sequence::operators::{Compared, compare};
        matches!(compare(self, other), Some(Compared::Order(_) | Compared::Unordered))
    }

    /// The order for sorting of values that [have one](Atomic::is_ordered_with): total, as numbers are compared by their exact
    /// values, and NaN comes before all others. Values without an order are equal.
    pub fn total_order(&self, other: &Atomic) -> std::cmp::Ordering {
        crate::sequence::operators::total_order(self, other)
    }

    /// Whether two values are the same for `distinct-values()`, groups and keys: equal (`eq`), or both NaN.
    pub fn is_alike(&self, other: &Atomic) -> bool {
        let nan = |a: &Atomic| a.is_numeric() && a.to_double().is_nan();
        self.equals(other) || nan(self) && nan(other)
    }

    /// How exactly it is compared with the most exact numbers.
    pub fn precision(&self) -> Precision {
        match self {
            Atomic::Double(_) => Precision::Double,
            Atomic::Float(_) => Precision::Float,
            _ => Precision::Exact,
        }
    }

    /// A hash key that [equal values](Atomic::is_alike) share. `precision`: that of the least exact of the values, which may equal several of the
    /// more exact ones.
    pub(crate) fn bucket(&self, precision: Precision) -> Bucket {
        match self {
            Atomic::Untyped(s) | Atomic::String(s) | Atomic::Uri(s) => Bucket::Text(s.clone()),
            Atomic::Boolean(b) => Bucket::Number(1, i128::from(*b)),
            Atomic::Moment(m) => Bucket::Number(2, m.utc_nanos(crate::sequence::operators::IMPLICIT_ZONE)),
            Atomic::Duration(d) => Bucket::Number(3, d.nanos ^ (i128::from(d.months) << 64)),
            Atomic::Name(name) => Bucket::Name(name.clone()),
            Atomic::Hex(bytes) => Bucket::Bytes(bytes.clone()),
            Atomic::Base64(bytes) => Bucket::Bytes(bytes.clone()),
            number if precision == Precision::Float => {
                Bucket::of_double(f64::from(number.to_double() as f32))
            }
            number => match number.beyond_doubles().filter(|_| precision == Precision::Exact) {
                Some(exact) => exact,
                None => Bucket::of_double(number.to_double()),
            },
        }
    }

    /// The hash key of a number that is not exactly a double.
    fn beyond_doubles(&self) -> Option<Bucket> {
        match self {
            Atomic::Integer(n) if n.unsigned_abs() <= 1 << 53 => return None,
            Atomic::Integer(_) | Atomic::Large(_) | Atomic::Decimal(_) => {}
            _ => return None,
        }
        if self.total_order(&Atomic::Double(self.to_double())) == std::cmp::Ordering::Equal {
            return None;
        }
        Some(match self {
            Atomic::Integer(n) => Bucket::Exact(Decimal::from(*n)),
            Atomic::Decimal(d) => Bucket::Exact(**d),
            Atomic::Large(n) => match i128::try_from(&**n) {
                Ok(n) => Bucket::Exact(Decimal::new(n, 0)),
                Err(_) => Bucket::Integer(n.clone()),
            },
            _ => return None,
        })
    }

    /// The value as a double, as `number()` converts it: NaN where it is not a number.
    pub fn to_double(&self) -> f64 {
        match self {
            Atomic::Untyped(s) | Atomic::String(s) => parse_double(s).unwrap_or(f64::NAN),
            Atomic::Boolean(b) => f64::from(u8::from(*b)),
            Atomic::Integer(n) => *n as f64,
            Atomic::Large(n) => n.to_string().parse().unwrap_or(f64::NAN),
            Atomic::Decimal(d) => d.to_double(),
            Atomic::Float(n) => f64::from(*n),
            Atomic::Double(n) => *n,
            _ => f64::NAN,
        }
    }

    /// The effective boolean value; `None`: its type has none.
    pub fn to_boolean(&self) -> Option<bool> {
        Some(match self {
            Atomic::Untyped(s) | Atomic::String(s) | Atomic::Uri(s) => !s.is_empty(),
            Atomic::Boolean(b) => *b,
            Atomic::Integer(n) => *n != 0,
            Atomic::Large(_) => true,
            Atomic::Decimal(d) => !d.is_zero(),
            Atomic::Float(n) => *n != 0.0 && !n.is_nan(),
            Atomic::Double(n) => *n != 0.0 && !n.is_nan(),
            _ => return None,
        })
    }
}
