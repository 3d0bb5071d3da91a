//! Values: of columns as WSO2 writes them, and of parameters with their checks.

use jiff::civil::{Date, DateTime, Time};
use jiff::{SignedDuration, tz::TimeZone};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

/// A parameter of a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RequestValue {
    /// `None`: NULL.
    One(Option<String>),
    /// It occurred more than once.
    Many(Vec<Option<String>>),
}

/// Parameters by their names in lower case.
pub(crate) type Givens = HashMap<String, RequestValue>;

/// The time zone of this machine, which JDBC uses for dates.
fn zone() -> &'static TimeZone {
    static ZONE: OnceLock<TimeZone> = OnceLock::new();
    ZONE.get_or_init(TimeZone::system)
}

/// A value of a column as a data service writes it: dates and times in XML Schema form with the zone of this machine, bytes as base64. `None`: NULL.
pub(crate) fn text(value: &sql::Value) -> Option<Cow<'_, str>> {
    use sql::Value as SqlValue;
    Some(match value {
        SqlValue::Null => return None,
        SqlValue::Text(text) | SqlValue::Decimal(text) => Cow::Borrowed(text),
        SqlValue::Date(text) => Cow::Owned(date(text).unwrap_or_else(|| text.clone())),
        SqlValue::Time(text) => Cow::Owned(time(text).unwrap_or_else(|| text.clone())),
        SqlValue::Timestamp(text) => Cow::Owned(timestamp(text).unwrap_or_else(|| text.clone())),
        // Without the machinery of formats: the most frequent values.
        SqlValue::Integer(number) => Cow::Owned(number.to_string()),
        other => Cow::Owned(other.to_string()),
    })
}

fn offset(at: DateTime) -> Option<String> {
    let instant = |at| zone().to_ambiguous_zoned(at).compatible().ok();
    // The last day of the year 9999 is no instant of the library: it has the offset of those before it.
    let zoned = instant(at).or_else(|| instant(at.checked_sub(SignedDuration::from_hours(72)).ok()?));
    let seconds = zoned?.offset().seconds();
    let (sign, minutes) = (if seconds < 0 { '-' } else { '+' }, seconds.unsigned_abs() / 60);
    Some(format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60))
}

/// `2026-11-23+01:00`.
fn date(text: &str) -> Option<String> {
    let day: Date = text.parse().ok()?;
    Some(format!("{day}{}", offset(day.to_datetime(Time::midnight()))?))
}

/// `10:15:30.000Z`: the time of 1 January 1970 in UTC, as in Axis2.
fn time(text: &str) -> Option<String> {
    let time: Time = text.parse().ok()?;
    let at = Date::constant(1970, 1, 1).to_datetime(time);
    let utc = zone().to_ambiguous_zoned(at).compatible().ok()?.with_time_zone(TimeZone::UTC).time();
    Some(format!("{:02}:{:02}:{:02}.{:03}Z", utc.hour(), utc.minute(), utc.second(), utc.millisecond()))
}

/// `2026-11-23T10:15:30.000+01:00`.
fn timestamp(text: &str) -> Option<String> {
    let at: DateTime = text.replacen(' ', "T", 1).parse().ok()?;
    let (day, time) = (at.date(), at.time());
    Some(format!(
        "{day}T{:02}:{:02}:{:02}.{:03}{}",
        time.hour(),
        time.minute(),
        time.second(),
        time.millisecond(),
        offset(at)?
    ))
}

/// Why a database cannot store one of the values.
pub(crate) fn unstorable(parameters: &[sql::Parameter], dialect: sql::Dialect) -> Option<&'static str> {
    let has_nul = |one: &sql::Parameter| matches!(one, sql::Parameter::Text(text) if text.contains('\0'));
    (dialect == sql::Dialect::Postgres && parameters.iter().any(has_nul))
        .then_some("a text has a NUL character, which PostgreSQL does not store")
}

/// A check of a value.
#[derive(Debug)]
pub(crate) enum Check {
    Length(Option<i64>, Option<i64>),
    Long(Option<i64>, Option<i64>),
    Double(Option<f64>, Option<f64>),
    Pattern(Box<flow::Pattern>, String),
}

impl Check {
    /// Why the value is refused.
    pub fn refuses(&self, value: &str) -> Option<String> {
        fn outside<T: PartialOrd + Copy>(value: T, least: Option<T>, most: Option<T>) -> bool {
            least.is_some_and(|least| value < least) || most.is_some_and(|most| value > most)
        }
        fn bounds<T: std::fmt::Display>(least: &Option<T>, most: &Option<T>) -> String {
            let text = |bound: &Option<T>, none: &str| bound.as_ref().map_or(none.to_owned(), T::to_string);
            format!("{} - {}", text(least, "MIN"), text(most, "MAX"))
        }
        match self {
            Check::Length(least, most) => {
                let length = i64::try_from(value.chars().count()).unwrap_or(i64::MAX);
                outside(length, *least, *most).then(|| {
                    format!("The value length is not in the expected range: {}", bounds(least, most))
                })
            }
            Check::Long(least, most) => match value.trim().parse::<i64>() {
                Err(_) => Some("The value is not a number".to_owned()),
                Ok(number) => outside(number, *least, *most)
                    .then(|| format!("The value is not in the expected range: {}", bounds(least, most))),
            },
            Check::Double(least, most) => match value.trim().parse::<f64>() {
                Err(_) => Some("The value is not a number".to_owned()),
                Ok(number) => (number.is_nan() || outside(number, *least, *most))
                    .then(|| format!("The value is not in the expected range: {}", bounds(least, most))),
            },
            Check::Pattern(pattern, source) => {
                (!is_match(pattern, value)).then(|| format!("The value does not match the pattern: {source}"))
            }
        }
    }
}

fn is_match(pattern: &flow::Pattern, value: &str) -> bool {
    pattern.matches(value).unwrap_or(false)
}

/// Whether a text may be inserted into a statement (`QUERY_STRING`): names of columns and tables, numbers, texts without quotes in them and
/// sort directions, separated by commas. Other texts could change what a statement does.
pub(crate) fn is_harmless(text: &str) -> bool {
    text.len() <= 4096 && text.split(',').all(|item| is_item(item.trim()))
}

fn is_item(item: &str) -> bool {
    if let Some(inside) = item.strip_prefix('\'') {
        let inside = inside.strip_suffix('\'');
        return inside.is_some_and(|s| !s.contains(['\'', '\\', '\0']) && !s.contains("--"));
    }
    let mut words = item.split_ascii_whitespace();
    let Some(first) = words.next() else { return false };
    let is_number = first.parse::<f64>().is_ok_and(f64::is_finite);
    let is_name = first.split('.').all(|part| {
        let mut letters = part.chars();
        letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && letters.all(|c| c.is_ascii_alphanumeric() || c == '_')
    });
    let rest: Vec<String> = words.map(str::to_ascii_lowercase).collect();
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let is_order = matches!(
        rest.as_slice(),
        [] | ["asc" | "desc"] | ["nulls", "first" | "last"] | ["asc" | "desc", "nulls", "first" | "last"]
    );
    (is_number && rest.is_empty()) || (first == "*" && rest.is_empty()) || (is_name && is_order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_times_have_the_zone_of_the_machine() {
        let text = |value| text(&value).map(Cow::into_owned);
        let day = text(sql::Value::Date("2026-11-23".into())).unwrap();
        assert!(day.starts_with("2026-11-23") && day.len() == 16, "{day}");
        let at = text(sql::Value::Timestamp("2026-11-23 10:15:30.5".into())).unwrap();
        assert!(at.starts_with("2026-11-23T10:15:30.500") && at.len() == 29, "{at}");
        // The last day, which stands for "for ever", is written as the others are.
        let day = text(sql::Value::Date("9999-12-31".into())).unwrap();
        assert!(day.starts_with("9999-12-31") && day.len() == 16, "{day}");
        let at = text(sql::Value::Timestamp("9999-12-31 23:59:59.999".into())).unwrap();
        assert!(at.starts_with("9999-12-31T23:59:59.999") && at.len() == 29, "{at}");
        let time = text(sql::Value::Time("10:15:30".into())).unwrap();
        assert!(time.ends_with(":30.000Z"), "{time}");
        assert_eq!(text(sql::Value::Time("-26:03:04".into())).as_deref(), Some("-26:03:04"));
        assert_eq!(text(sql::Value::Double(3.0)).as_deref(), Some("3.0"));
        assert_eq!(text(sql::Value::Null), None);
    }

    #[test]
    fn what_stands_in_a_statement_is_names_numbers_and_texts() {
        for harmless in ["name", "a.b, c DESC", "1, 2.5, -3", "'x', 'y z'", "*", "a asc nulls last"] {
            assert!(is_harmless(harmless), "{harmless}");
        }
        for harmful in [
            "",
            "a;",
            "a--",
            "1 or 1=1",
            "a/**/b",
            "'a'' or '1",
            "(select 1)",
            "a union select b",
            "a, ",
            "'a\\', b'",
            "sleep(1)",
            "a b",
            "1 asc",
            "\"a\"",
            "a=1",
        ] {
            assert!(!is_harmless(harmful), "{harmful}");
        }
    }

    #[test]
    fn bounds_are_checked() {
        let length = Check::Length(Some(2), Some(3));
        assert!(
            length.refuses("é").is_some()
                && length.refuses("éa").is_none()
                && length.refuses("abcd").is_some()
        );
        let long = Check::Long(Some(1), None);
        assert!(long.refuses("0").is_some() && long.refuses("x").is_some() && long.refuses("1").is_none());
        let double = Check::Double(None, Some(1.5));
        assert!(
            double.refuses("1.6").is_some()
                && double.refuses("NaN").is_some()
                && double.refuses("1").is_none()
        );
    }
}
