//! Atomic values and their types (XDM 1.0 section 2.6; XML Schema part 2).

pub mod calendar;
mod cast;
mod decimal;
mod types;

pub use calendar::{Duration, DurationKind, Moment, MomentKind};
pub use cast::{CastError, parse_double};
pub use decimal::Decimal;
pub use types::{AtomicType, Kind};

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

/// An atomic value; cheap to copy. Types derived from these are checked where values become theirs, and not remembered.
#[derive(Debug, Clone, PartialEq)]
pub enum Atomic {
    /// `xs:untypedAtomic`: what a node without a schema holds.
    Untyped(Arc<str>),
    /// `xs:string`.
    String(Arc<str>),
    /// `xs:anyURI`.
    Uri(Arc<str>),
    /// `xs:boolean`.
    Boolean(bool),
    /// `xs:integer`, of 64 bits.
    Integer(i64),
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
            Atomic::Integer(_) => Kind::Integer,
            Atomic::Decimal(_) => Kind::Decimal,
            Atomic::Float(_) => Kind::Float,
            Atomic::Double(_) => Kind::Double,
            Atomic::Moment(m) => Kind::Moment(m.kind),
            Atomic::Duration(d) => Kind::Duration(d.kind),
            Atomic::Name(_) => Kind::Name,
            Atomic::Hex(_) => Kind::Hex,
            Atomic::Base64(_) => Kind::Base64,
        }
    }

    /// Whether it is of a numeric type.
    pub fn is_numeric(&self) -> bool {
        matches!(self, Atomic::Integer(_) | Atomic::Decimal(_) | Atomic::Float(_) | Atomic::Double(_))
    }

    /// The text of a string, a URI or an untyped value.
    pub fn as_text(&self) -> Option<&Arc<str>> {
        match self {
            Atomic::Untyped(s) | Atomic::String(s) | Atomic::Uri(s) => Some(s),
            _ => None,
        }
    }

    /// The value as `xs:string` (F&O section 17.1.2).
    pub fn to_text(&self) -> Cow<'_, str> {
        match self {
            Atomic::Untyped(s) | Atomic::String(s) | Atomic::Uri(s) => Cow::Borrowed(s),
            Atomic::Boolean(b) => Cow::Borrowed(if *b { "true" } else { "false" }),
            Atomic::Integer(n) => Cow::Owned(n.to_string()),
            Atomic::Decimal(d) => Cow::Owned(d.to_string()),
            Atomic::Float(n) => cast::float_text(*n),
            Atomic::Double(n) => cast::double_text(*n),
            Atomic::Moment(m) => Cow::Owned(m.to_text()),
            Atomic::Duration(d) => Cow::Owned(d.to_text()),
            Atomic::Name(name) if name.prefix.is_empty() => Cow::Borrowed(&name.local),
            Atomic::Name(name) => Cow::Owned(format!("{}:{}", name.prefix, name.local)),
            Atomic::Hex(bytes) => Cow::Owned(cast::hex_text(bytes)),
            Atomic::Base64(bytes) => Cow::Owned(cast::base64_text(bytes)),
        }
    }

    /// Whether two values are equal (`eq`); values of types that cannot be compared are not, nor is NaN.
    pub fn equals(&self, other: &Atomic) -> bool {
        crate::sequence::operators::equal(self, other)
    }

    /// The order of two values; `None`: their types have none in common, or one is NaN.
    pub fn order(&self, other: &Atomic) -> Option<std::cmp::Ordering> {
        crate::sequence::operators::order(self, other)
    }

    /// The value as a double, as `number()` does: NaN where it is none.
    pub fn to_double(&self) -> f64 {
        match self {
            Atomic::Untyped(s) | Atomic::String(s) => parse_double(s).unwrap_or(f64::NAN),
            Atomic::Boolean(b) => f64::from(u8::from(*b)),
            Atomic::Integer(n) => *n as f64,
            Atomic::Decimal(d) => d.to_double(),
            Atomic::Float(n) => f64::from(*n),
            Atomic::Double(n) => *n,
            _ => f64::NAN,
        }
    }

    /// The effective boolean value; `None`: values of its type have none.
    pub fn to_boolean(&self) -> Option<bool> {
        Some(match self {
            Atomic::Untyped(s) | Atomic::String(s) | Atomic::Uri(s) => !s.is_empty(),
            Atomic::Boolean(b) => *b,
            Atomic::Integer(n) => *n != 0,
            Atomic::Decimal(d) => !d.is_zero(),
            Atomic::Float(n) => *n != 0.0 && !n.is_nan(),
            Atomic::Double(n) => *n != 0.0 && !n.is_nan(),
            _ => return None,
        })
    }
}
