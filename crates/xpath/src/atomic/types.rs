//! The atomic types: the primitive and the derived ones.

use super::{Atomic, DurationKind, MomentKind};

/// The types of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Kind {
    /// `xs:anyAtomicType`: no value is of this type itself.
    Any,
    Untyped,
    String,
    Uri,
    Boolean,
    Integer,
    Decimal,
    Float,
    Double,
    Moment(MomentKind),
    Duration(DurationKind),
    Name,
    Hex,
    Base64,
    /// The three types that are not atomic.
    Map,
    Array,
    Function,
}

/// The constraint of a derived type.
#[derive(Debug, Clone, Copy)]
pub(super) enum Facet {
    None,
    /// The union of the numeric types (`xs:numeric`, F&O 3.1 section 1.6.3).
    Numeric,
    /// Bounds of an integer type.
    Range(i128, i128),
    /// White space `replace`: tabs and line ends become spaces.
    Replace,
    /// White space `collapse`, and a test of the text.
    Collapse(fn(&str) -> bool),
    /// A moment with a time zone (`xs:dateTimeStamp`, XML Schema 1.1 part 2 section 3.4.28).
    Zoned,
}

/// A named atomic type of XML Schema.
#[derive(Debug, Clone, Copy)]
pub struct AtomicType {
    /// The name in the namespace of XML Schema.
    pub name: &'static str,
    /// The primitive type of its values.
    pub kind: Kind,
    pub(super) facet: Facet,
}

impl PartialEq for AtomicType {
    fn eq(&self, other: &AtomicType) -> bool {
        self.name == other.name
    }
}

const I64_MIN: i128 = i64::MIN as i128;
const I64_MAX: i128 = i64::MAX as i128;

const fn plain(name: &'static str, kind: Kind) -> AtomicType {
    AtomicType { name, kind, facet: Facet::None }
}

const fn range(name: &'static str, least: i128, most: i128) -> AtomicType {
    AtomicType { name, kind: Kind::Integer, facet: Facet::Range(least, most) }
}

const fn text(name: &'static str, passes: fn(&str) -> bool) -> AtomicType {
    AtomicType { name, kind: Kind::String, facet: Facet::Collapse(passes) }
}

static TYPES: [AtomicType; 47] = [
    plain("anyAtomicType", Kind::Any),
    plain("untypedAtomic", Kind::Untyped),
    plain("string", Kind::String),
    plain("anyURI", Kind::Uri),
    plain("boolean", Kind::Boolean),
    plain("integer", Kind::Integer),
    plain("decimal", Kind::Decimal),
    plain("float", Kind::Float),
    plain("double", Kind::Double),
    plain("dateTime", Kind::Moment(MomentKind::DateTime)),
    plain("date", Kind::Moment(MomentKind::Date)),
    plain("time", Kind::Moment(MomentKind::Time)),
    plain("gYear", Kind::Moment(MomentKind::GYear)),
    plain("gYearMonth", Kind::Moment(MomentKind::GYearMonth)),
    plain("gMonth", Kind::Moment(MomentKind::GMonth)),
    plain("gMonthDay", Kind::Moment(MomentKind::GMonthDay)),
    plain("gDay", Kind::Moment(MomentKind::GDay)),
    plain("duration", Kind::Duration(DurationKind::Duration)),
    plain("yearMonthDuration", Kind::Duration(DurationKind::YearMonth)),
    plain("dayTimeDuration", Kind::Duration(DurationKind::DayTime)),
    plain("QName", Kind::Name),
    plain("hexBinary", Kind::Hex),
    plain("base64Binary", Kind::Base64),
    range("nonPositiveInteger", i128::MIN, 0),
    range("negativeInteger", i128::MIN, -1),
    range("long", I64_MIN, I64_MAX),
    range("int", i32::MIN as i128, i32::MAX as i128),
    range("short", i16::MIN as i128, i16::MAX as i128),
    range("byte", i8::MIN as i128, i8::MAX as i128),
    range("nonNegativeInteger", 0, i128::MAX),
    range("unsignedLong", 0, u64::MAX as i128),
    range("unsignedInt", 0, u32::MAX as i128),
    range("unsignedShort", 0, u16::MAX as i128),
    range("unsignedByte", 0, u8::MAX as i128),
    range("positiveInteger", 1, i128::MAX),
    AtomicType { name: "normalizedString", kind: Kind::String, facet: Facet::Replace },
    text("token", |_| true),
    text("language", is_language),
    text("NMTOKEN", |s| !s.is_empty() && s.chars().all(|c| xml::is_name_char(c) || c == ':')),
    text("Name", |s| {
        s.split(':').all(|part| part.is_empty() || xml::is_name_char(part.chars().next().unwrap_or(' ')))
            && is_name(s)
    }),
    text("NCName", xml::is_ncname),
    text("ID", xml::is_ncname),
    text("IDREF", xml::is_ncname),
    text("ENTITY", xml::is_ncname),
    plain("NOTATION", Kind::Name),
    AtomicType { name: "dateTimeStamp", kind: Kind::Moment(MomentKind::DateTime), facet: Facet::Zoned },
    // What is not a number is cast to the first member of the union.
    AtomicType { name: "numeric", kind: Kind::Double, facet: Facet::Numeric },
];

fn is_name(s: &str) -> bool {
    !s.is_empty()
        && !s.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.')
        && s.chars().all(|c| xml::is_name_char(c) || c == ':')
}

fn is_language(s: &str) -> bool {
    s.split('-').enumerate().all(|(at, part)| {
        (1..=8).contains(&part.len())
            && part.bytes().all(|b| b.is_ascii_alphabetic() || (at > 0 && b.is_ascii_digit()))
    })
}

impl AtomicType {
    /// The type of the members of a list type of XML Schema: `xs:NMTOKENS`, `xs:IDREFS`, `xs:ENTITIES`.
    pub fn of_list(name: &str) -> Option<&'static AtomicType> {
        AtomicType::find(match name {
            "NMTOKENS" => "NMTOKEN",
            "IDREFS" => "IDREF",
            "ENTITIES" => "ENTITY",
            _ => return None,
        })
    }

    /// The type of that local name in the namespace of XML Schema.
    pub fn find(name: &str) -> Option<&'static AtomicType> {
        TYPES.iter().find(|t| t.name == name)
    }

    /// Its place in the table of all types.
    pub(crate) fn index(&self) -> usize {
        TYPES.iter().position(|ty| ty == self).unwrap_or(TYPES.len())
    }

    /// The type of values of a kind.
    pub fn of(kind: Kind) -> &'static AtomicType {
        TYPES.iter().find(|t| t.kind == kind && t.is_plain()).unwrap_or(&TYPES[0])
    }

    /// Whether it has no constraint.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.facet, Facet::None)
    }

    /// Whether it is derived from the other type or the same.
    pub fn is_within(&self, other: &AtomicType) -> bool {
        if self.name == other.name || other.kind == Kind::Any {
            return true;
        }
        let bases = |name: &'static str| match name {
            "double" | "float" | "decimal" => "numeric",
            "integer" => "decimal",
            "nonPositiveInteger" | "long" | "nonNegativeInteger" => "integer",
            "negativeInteger" => "nonPositiveInteger",
            "int" => "long",
            "short" => "int",
            "byte" => "short",
            "unsignedLong" | "positiveInteger" => "nonNegativeInteger",
            "unsignedInt" => "unsignedLong",
            "unsignedShort" => "unsignedInt",
            "unsignedByte" => "unsignedShort",
            "yearMonthDuration" | "dayTimeDuration" => "duration",
            "normalizedString" => "string",
            "token" => "normalizedString",
            "language" | "NMTOKEN" | "Name" => "token",
            "NCName" => "Name",
            "ID" | "IDREF" | "ENTITY" => "NCName",
            "dateTimeStamp" => "dateTime",
            _ => "",
        };
        let mut name = bases(self.name);
        while !name.is_empty() {
            if name == other.name {
                return true;
            }
            name = bases(name);
        }
        false
    }

    /// The names of all types.
    pub fn names() -> impl Iterator<Item = &'static str> {
        TYPES.iter().map(|t| t.name)
    }

    /// Whether a value has this type. A value has a derived type if it satisfies its constraints.
    pub fn matches(&self, value: &Atomic) -> bool {
        if matches!(self.facet, Facet::Numeric) {
            return value.is_numeric();
        }
        let kind = value.kind();
        let of_kind = match self.kind {
            Kind::Any => !value.is_function(),
            Kind::Decimal => matches!(kind, Kind::Decimal | Kind::Integer),
            Kind::Duration(DurationKind::Duration) => matches!(kind, Kind::Duration(_)),
            primitive => primitive == kind,
        };
        of_kind
            && match (self.facet, value) {
                (Facet::None, _) => true,
                (Facet::Range(least, most), Atomic::Integer(n)) => (least..=most).contains(&i128::from(*n)),
                (Facet::Range(least, most), Atomic::Large(n)) => match i128::try_from(&**n) {
                    Ok(n) => (least..=most).contains(&n),
                    // For types without a bound on that side.
                    Err(_) if n.sign() == num_bigint::Sign::Minus => least == i128::MIN,
                    Err(_) => most == i128::MAX,
                },
                (Facet::Zoned, Atomic::Moment(moment)) => moment.zone.is_some(),
                (Facet::Replace, Atomic::String(s)) => !s.contains(['\t', '\n', '\r']),
                (Facet::Collapse(passes), Atomic::String(s)) => *super::cast::collapse(s) == **s && passes(s),
                _ => false,
            }
    }
}
