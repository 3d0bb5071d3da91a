//! Values of results, in the text forms of Java's drivers.

use base64::Engine;
use jiff::civil::DateTime;
use jiff::{SignedDuration, tz::TimeZone};
use std::fmt;
use std::sync::Arc;

/// A value of a column. Types with a text form in JDBC (dates, decimals) are kept in that form.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// A boolean.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A whole number beyond 63 bits (`BIGINT UNSIGNED`).
    Unsigned(u64),
    /// A float of 32 bits.
    Real(f32),
    /// A float of 64 bits.
    Double(f64),
    /// A decimal number, as the database writes it.
    Decimal(String),
    /// A text.
    Text(String),
    /// `2026-11-23`.
    Date(String),
    /// `10:15:30`.
    Time(String),
    /// `2026-11-23 10:15:30.0`.
    Timestamp(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Value {
    /// Whether it is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The approximate memory in bytes.
    pub fn size(&self) -> usize {
        match self {
            Value::Text(text)
            | Value::Decimal(text)
            | Value::Date(text)
            | Value::Time(text)
            | Value::Timestamp(text) => text.len() + 24,
            Value::Bytes(bytes) => bytes.len() + 24,
            _ => 24,
        }
    }

    /// As `getObject().toString()`; bytes as base64. `None`: NULL.
    pub fn text(self) -> Option<String> {
        match self {
            Value::Null => None,
            Value::Text(text)
            | Value::Decimal(text)
            | Value::Date(text)
            | Value::Time(text)
            | Value::Timestamp(text) => Some(text),
            other => Some(other.to_string()),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => Ok(()),
            Value::Boolean(value) => value.fmt(out),
            Value::Integer(value) => value.fmt(out),
            Value::Unsigned(value) => value.fmt(out),
            // The shortest digits that identify this 32-bit float.
            Value::Real(value) => {
                let shortest: f64 = value.to_string().parse().unwrap_or(f64::from(*value));
                out.write_str(&message::value::java_number_text(shortest))
            }
            Value::Double(value) => out.write_str(&message::value::java_number_text(*value)),
            Value::Decimal(text)
            | Value::Text(text)
            | Value::Date(text)
            | Value::Time(text)
            | Value::Timestamp(text) => out.write_str(text),
            Value::Bytes(bytes) => out.write_str(&base64::engine::general_purpose::STANDARD.encode(bytes)),
        }
    }
}

/// `2026-11-23 10:15:30.0`, as `Timestamp.toString` writes it, with a fraction of at least one digit.
pub(crate) fn timestamp_text(date_time: DateTime) -> String {
    let (date, time) = (date_time.date(), date_time.time());
    let mut out = format!("{date} {:02}:{:02}:{:02}", time.hour(), time.minute(), time.second());
    let fraction = format!("{:09}", time.subsec_nanosecond());
    let fraction = fraction.trim_end_matches('0');
    out.push('.');
    out += if fraction.is_empty() { "0" } else { fraction };
    out
}

/// The time of this machine's zone at a time of UTC; `None`: that is in no year from 1 to 9999.
///
/// The last day of the year 9999, which stands for "for ever" in many tables, is no instant of the library in every zone: it has the offset of the days before it.
pub(crate) fn local(utc: DateTime) -> Option<DateTime> {
    let zone = TimeZone::system();
    if let Ok(at) = utc.to_zoned(TimeZone::UTC) {
        return Some(at.with_time_zone(zone).datetime());
    }
    let before = utc.checked_sub(SignedDuration::from_hours(72)).ok()?.to_zoned(TimeZone::UTC).ok()?;
    let offset = zone.to_offset(before.timestamp());
    utc.checked_add(SignedDuration::from_secs(offset.seconds().into())).ok()
}

/// The names of the columns of a result.
#[derive(Debug, Default)]
pub struct Columns(pub(crate) Vec<String>);

impl Columns {
    /// Columns with these names.
    pub fn new(names: Vec<String>) -> Columns {
        Columns(names)
    }

    /// The names (labels), in order.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// The index of a column by its label, in any case, as in JDBC; the first one counts.
    pub fn named(&self, name: &str) -> Option<usize> {
        let exact = self.0.iter().position(|n| n == name);
        exact.or_else(|| self.0.iter().position(|n| n.eq_ignore_ascii_case(name)))
    }
}

/// A row.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its columns.
    pub columns: Arc<Columns>,
    /// One for each column.
    pub values: Vec<Value>,
}

impl Row {
    /// The approximate memory of its values in bytes.
    pub fn size(&self) -> usize {
        self.values.iter().map(Value::size).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::DateTime;

    #[test]
    fn values_are_written_as_java_does() {
        for (value, text) in [
            (Value::Boolean(true), "true"),
            (Value::Real(0.1), "0.1"),
            (Value::Double(3.0), "3.0"),
            (Value::Double(1e10), "1.0E10"),
            (Value::Unsigned(u64::MAX), "18446744073709551615"),
            (Value::Decimal("12.50".into()), "12.50"),
            (Value::Bytes(b"any carnal pleas".to_vec()), "YW55IGNhcm5hbCBwbGVhcw=="),
        ] {
            assert_eq!(value.text().as_deref(), Some(text));
        }
        assert_eq!(Value::Null.text(), None);
        let at = |nanos| timestamp_text(DateTime::constant(2026, 11, 23, 1, 2, 3, nanos));
        assert_eq!(at(0), "2026-11-23 01:02:03.0");
        assert_eq!(at(120_000_000), "2026-11-23 01:02:03.12");
    }

    #[test]
    fn columns_have_no_case() {
        let columns = Columns(vec!["ID".into(), "id".into(), "Name".into()]);
        assert_eq!(
            (columns.named("id"), columns.named("NAME"), columns.named("x")),
            (Some(1), Some(2), None)
        );
    }
}
