//! Parameters of statements, by the types of JDBC.

use crate::value::local;
use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, Time};
use jiff::fmt::temporal::Pieces;
use std::str::FromStr;

/// A type of JDBC, as configurations name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `CHAR`, `VARCHAR`, `LONGVARCHAR`, and all types that are sent as texts.
    Text,
    /// `NUMERIC`, `DECIMAL`.
    Decimal,
    /// `BIT`, `BOOLEAN`.
    Boolean,
    /// `TINYINT`.
    TinyInt,
    /// `SMALLINT`.
    SmallInt,
    /// `INTEGER`.
    Integer,
    /// `BIGINT`.
    BigInt,
    /// `REAL`.
    Real,
    /// `FLOAT` and `DOUBLE`, which JDBC does not distinguish.
    Double,
    /// `DATE`.
    Date,
    /// `TIME`.
    Time,
    /// `TIMESTAMP`.
    Timestamp,
    /// `BINARY`, `VARBINARY`, `BLOB`: base64.
    Bytes,
}

impl Kind {
    /// The names that `dblookup` and `dbreport` accept.
    pub const NAMES: [&'static str; 16] = [
        "CHAR",
        "VARCHAR",
        "LONGVARCHAR",
        "NUMERIC",
        "DECIMAL",
        "BIT",
        "TINYINT",
        "SMALLINT",
        "INTEGER",
        "BIGINT",
        "REAL",
        "FLOAT",
        "DOUBLE",
        "DATE",
        "TIME",
        "TIMESTAMP",
    ];

    /// The type of a name of [`Kind::NAMES`], or of a further one of data services.
    pub fn named(name: &str) -> Option<Kind> {
        Some(match name.trim().to_ascii_uppercase().as_str() {
            "CHAR" | "VARCHAR" | "LONGVARCHAR" | "STRING" | "NVARCHAR" | "NCHAR" | "TEXT" | "CLOB"
            | "NCLOB" | "ANYURI" | "UUID" | "INETADDRESS" | "SQLXML" => Kind::Text,
            "NUMERIC" | "DECIMAL" | "MONEY" | "SMALLMONEY" | "VARINT" => Kind::Decimal,
            "BIT" | "BOOLEAN" => Kind::Boolean,
            "TINYINT" => Kind::TinyInt,
            "SMALLINT" => Kind::SmallInt,
            "INTEGER" => Kind::Integer,
            "BIGINT" => Kind::BigInt,
            "REAL" => Kind::Real,
            "FLOAT" | "DOUBLE" => Kind::Double,
            "DATE" => Kind::Date,
            "TIME" => Kind::Time,
            "TIMESTAMP" => Kind::Timestamp,
            "BINARY" | "VARBINARY" | "BLOB" | "LONGVARBINARY" => Kind::Bytes,
            _ => return None,
        })
    }

    /// A parameter of this type; an absent or empty text is NULL.
    ///
    /// # Errors
    /// The text is not a value of the type. The error does not repeat it: it may be a secret.
    pub fn parse(self, text: Option<&str>) -> Result<Parameter, String> {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(Parameter::Null(self)) };
        if self == Kind::Text {
            return Ok(Parameter::Text(text.to_owned()));
        }
        self.parse_trimmed(text.trim())
            .ok_or_else(|| format!("it is not a value of the type {}", self.name()))
    }

    fn parse_trimmed(self, text: &str) -> Option<Parameter> {
        fn number<T: FromStr>(text: &str) -> Option<T> {
            text.parse().ok()
        }
        Some(match self {
            Kind::Text => Parameter::Text(text.to_owned()),
            Kind::Decimal => Parameter::Decimal(plain(text)?),
            // As `Boolean.parseBoolean`, and 0 and 1 for BIT.
            Kind::Boolean => Parameter::Boolean(text.eq_ignore_ascii_case("true") || text == "1"),
            Kind::TinyInt => Parameter::SmallInt(number::<i8>(text)?.into()),
            Kind::SmallInt => Parameter::SmallInt(number(text)?),
            Kind::Integer => Parameter::Integer(number(text)?),
            Kind::BigInt => Parameter::BigInt(number(text)?),
            Kind::Real => Parameter::Real(number(text)?),
            Kind::Double => Parameter::Double(number(text)?),
            Kind::Date => Parameter::Date(date(text)?),
            Kind::Time => Parameter::Time(time(text)?),
            Kind::Timestamp => Parameter::Timestamp(timestamp(text)?),
            Kind::Bytes => Parameter::Bytes(base64(text)?),
        })
    }

    /// The name of the type for messages.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Text => "VARCHAR",
            Kind::Decimal => "DECIMAL",
            Kind::Boolean => "BIT",
            Kind::TinyInt => "TINYINT",
            Kind::SmallInt => "SMALLINT",
            Kind::Integer => "INTEGER",
            Kind::BigInt => "BIGINT",
            Kind::Real => "REAL",
            Kind::Double => "DOUBLE",
            Kind::Date => "DATE",
            Kind::Time => "TIME",
            Kind::Timestamp => "TIMESTAMP",
            Kind::Bytes => "VARBINARY",
        }
    }
}

/// A parameter with its value.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameter {
    /// NULL of a type.
    Null(Kind),
    /// A text.
    Text(String),
    /// A decimal number, plain: digits, a sign, a point.
    Decimal(String),
    /// A boolean.
    Boolean(bool),
    /// 16 bits (and a TINYINT).
    SmallInt(i16),
    /// 32 bits.
    Integer(i32),
    /// 64 bits.
    BigInt(i64),
    /// A float of 32 bits.
    Real(f32),
    /// A float of 64 bits.
    Double(f64),
    /// A date.
    Date(Date),
    /// A time of the day.
    Time(Time),
    /// A date and a time.
    Timestamp(DateTime),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Parameter {
    /// Its type.
    pub fn kind(&self) -> Kind {
        match self {
            Parameter::Null(kind) => *kind,
            Parameter::Text(_) => Kind::Text,
            Parameter::Decimal(_) => Kind::Decimal,
            Parameter::Boolean(_) => Kind::Boolean,
            Parameter::SmallInt(_) => Kind::SmallInt,
            Parameter::Integer(_) => Kind::Integer,
            Parameter::BigInt(_) => Kind::BigInt,
            Parameter::Real(_) => Kind::Real,
            Parameter::Double(_) => Kind::Double,
            Parameter::Date(_) => Kind::Date,
            Parameter::Time(_) => Kind::Time,
            Parameter::Timestamp(_) => Kind::Timestamp,
            Parameter::Bytes(_) => Kind::Bytes,
        }
    }
}

/// A decimal number without exponent and leading zeros, as `BigDecimal` reads it; at most 1,000 digits.
fn plain(text: &str) -> Option<String> {
    const MOST: i64 = 1000;
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (sign, digits) = match mantissa.as_bytes().first()? {
        b'-' => ("-", &mantissa[1..]),
        b'+' => ("", &mantissa[1..]),
        _ => ("", mantissa),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let all = format!("{whole}{fraction}");
    // The position of the point among all digits.
    let point = i64::try_from(whole.len()).ok()?.checked_add(exponent)?;
    let length = i64::try_from(all.len()).ok()?;
    if length > MOST || !(-MOST..=MOST).contains(&point) {
        return None;
    }
    let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
    let (whole, fraction) = match usize::try_from(point) {
        Ok(point) if point < all.len() => (all[..point].to_owned(), all[point..].to_owned()),
        Ok(_) => (format!("{all}{}", zeros(point - length)), String::new()),
        Err(_) => (String::new(), format!("{}{all}", zeros(-point))),
    };
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let point = if fraction.is_empty() { "" } else { "." };
    Some(format!("{sign}{whole}{point}{fraction}"))
}

/// `2026-11-23`, also with a time after it, as XML Schema and forms write it.
fn date(text: &str) -> Option<Date> {
    let day = text.get(..10)?;
    match &text[10..] {
        "" | "Z" => day.parse().ok(),
        rest if rest.starts_with(['T', ' ', '+', '-']) => day.parse().ok(),
        _ => None,
    }
}

/// `10:15:30`, with a fraction.
fn time(text: &str) -> Option<Time> {
    let text = text.trim_end_matches('Z');
    text.parse().ok()
}

/// `2026-11-23 10:15:30.5` of JDBC, `2026-11-23T10:15:30.5+01:00` of XML Schema (in the time zone of this machine).
fn timestamp(text: &str) -> Option<DateTime> {
    if text.len() == 10 {
        return Some(date(text)?.to_datetime(Time::midnight()));
    }
    let has_offset = text.ends_with('Z') || text.get(19..).is_some_and(|rest| rest.contains(['+', '-']));
    if has_offset {
        let pieces = Pieces::parse(text).ok()?;
        let west = -pieces.to_numeric_offset()?.seconds();
        let there = pieces.date().to_datetime(pieces.time()?);
        return local(there.checked_add(SignedDuration::from_secs(west.into())).ok()?);
    }
    text.replacen(' ', "T", 1).parse().ok()
}

/// Base64 with or without padding and line breaks, as data services send bytes.
fn base64(text: &str) -> Option<Vec<u8>> {
    use base64::Engine;
    use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    let dense: String = text.split_ascii_whitespace().collect();
    LENIENT.decode(dense).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_parameters_by_type() {
        let parse = |name: &str, text: &str| Kind::named(name).unwrap().parse(Some(text));
        for (name, text, wanted) in [
            ("VARCHAR", " a'; drop table t; -- ", Parameter::Text(" a'; drop table t; -- ".into())),
            ("char", "", Parameter::Null(Kind::Text)),
            ("NUMERIC", "-012.50", Parameter::Decimal("-12.50".into())),
            ("DECIMAL", "1.5E3", Parameter::Decimal("1500".into())),
            ("DECIMAL", "15e-3", Parameter::Decimal("0.015".into())),
            ("DECIMAL", ".5", Parameter::Decimal("0.5".into())),
            ("BIT", "TRUE", Parameter::Boolean(true)),
            ("BIT", "no", Parameter::Boolean(false)),
            ("TINYINT", "-128", Parameter::SmallInt(-128)),
            ("SMALLINT", "32767", Parameter::SmallInt(32767)),
            ("INTEGER", " 7 ", Parameter::Integer(7)),
            ("BIGINT", "9223372036854775807", Parameter::BigInt(i64::MAX)),
            ("REAL", "1.5", Parameter::Real(1.5)),
            ("FLOAT", "1e300", Parameter::Double(1e300)),
            ("DATE", "2026-11-23", Parameter::Date(Date::constant(2026, 11, 23))),
            ("DATE", "2026-11-23T10:00:00", Parameter::Date(Date::constant(2026, 11, 23))),
            ("TIME", "10:15:30", Parameter::Time(Time::constant(10, 15, 30, 0))),
            (
                "TIMESTAMP",
                "2026-11-23 10:15:30.25",
                Parameter::Timestamp(DateTime::constant(2026, 11, 23, 10, 15, 30, 250_000_000)),
            ),
            ("BLOB", "AAEC", Parameter::Bytes(vec![0, 1, 2])),
        ] {
            assert_eq!(parse(name, text), Ok(wanted), "{name} {text}");
        }
        // The last day that there is, with the zone that many write it with.
        let last = parse("TIMESTAMP", "9999-12-31T09:00:00Z").unwrap();
        assert!(matches!(last, Parameter::Timestamp(at) if at.year() == 9999), "{last:?}");
        for (name, text) in [
            ("TINYINT", "128"),
            ("INTEGER", "7 or 1=1"),
            ("INTEGER", "2147483648"),
            ("DECIMAL", "1e99999999"),
            ("DECIMAL", "NaN"),
            ("DECIMAL", "-"),
            ("DATE", "23.11.2026"),
            ("DATE", "2026-02-30"),
            ("TIME", "25:00:00"),
            ("TIMESTAMP", "soon"),
            ("BLOB", "*"),
        ] {
            assert!(parse(name, text).is_err(), "{name} {text}");
        }
        assert!(Kind::NAMES.iter().all(|name| Kind::named(name).is_some()));
        assert_eq!(Kind::named("INT"), None);
    }
}
