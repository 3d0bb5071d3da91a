//! Dates: points in time of which the date, the time or both are meant. They are read and written in the time zone of the
//! template's setting `time_zone`, by patterns of `SimpleDateFormat`, the four styles of Java, and ISO 8601.

use crate::value::DateKind;
use expression::{DatePattern, Moment};

/// The pattern of one of Java's styles, in English. `style`: `short`, `medium`, `long` or `full`; of a date and a time also two of
/// them (`short_medium`).
fn of_style(style: &str, kind: DateKind) -> Option<String> {
    let date = |style: &str| {
        Some(match style {
            "short" => "M/d/yy",
            "medium" => "MMM d, yyyy",
            "long" => "MMMM d, yyyy",
            "full" => "EEEE, MMMM d, yyyy",
            _ => return None,
        })
    };
    let time = |style: &str| {
        Some(match style {
            "short" => "h:mm a",
            "medium" => "h:mm:ss a",
            "long" | "full" => "h:mm:ss a z",
            _ => return None,
        })
    };
    Some(match kind {
        DateKind::Date => date(style)?.to_owned(),
        DateKind::Time => time(style)?.to_owned(),
        DateKind::DateTime => {
            let (of_date, of_time) = style.split_once('_').unwrap_or((style, style));
            format!("{} {}", date(of_date)?, time(of_time)?)
        }
    })
}

/// How much of a time ISO 8601 writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accuracy {
    Hours,
    Minutes,
    Seconds,
    /// Also milliseconds, where there are some.
    Milliseconds,
}

/// The form of ISO 8601.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Iso {
    pub accuracy: Accuracy,
    /// Whether times have their offset; `None`: not in dates without a time.
    pub offset: Option<bool>,
    pub utc: bool,
}

impl Iso {
    /// Reads a format `iso` or `xs` with its options, as in `iso_m_nz` and `xs ms u`; `None`: it is another one.
    fn of(format: &str) -> Option<Iso> {
        let mut words = format.split(['_', ' ']).filter(|word| !word.is_empty());
        let offset = match words.next()? {
            "iso" => None,
            "xs" => Some(true),
            _ => return None,
        };
        let iso = Iso { accuracy: Accuracy::Milliseconds, offset, utc: false };
        words.try_fold(iso, Iso::with)
    }

    /// With an option: `ms s m h` for the accuracy, `nz fz` for the offset, `u` for UTC.
    pub fn with(self, option: &str) -> Option<Iso> {
        Some(match option {
            "ms" => Iso { accuracy: Accuracy::Milliseconds, ..self },
            "s" => Iso { accuracy: Accuracy::Seconds, ..self },
            "m" => Iso { accuracy: Accuracy::Minutes, ..self },
            "h" => Iso { accuracy: Accuracy::Hours, ..self },
            "nz" => Iso { offset: Some(false), ..self },
            "fz" => Iso { offset: Some(true), ..self },
            "u" => Iso { utc: true, ..self },
            _ => return None,
        })
    }

    /// Milliseconds since 1970 in this form.
    ///
    /// # Errors
    /// The year has more than four digits.
    pub fn write(self, at: i64, kind: DateKind, zone: &str) -> Result<String, String> {
        let moment = if self.utc { Moment::of_utc(at)? } else { Moment::of_named(at, zone)? };
        let mut pattern = match kind {
            DateKind::Date => "yyyy-MM-dd",
            DateKind::Time => "",
            DateKind::DateTime => "yyyy-MM-dd'T'",
        }
        .to_owned();
        if kind != DateKind::Date {
            pattern.push_str(match self.accuracy {
                Accuracy::Hours => "HH",
                Accuracy::Minutes => "HH:mm",
                Accuracy::Seconds | Accuracy::Milliseconds => "HH:mm:ss",
            });
            let fraction = at.rem_euclid(1000);
            if self.accuracy == Accuracy::Milliseconds && fraction != 0 {
                pattern.push_str(format!(".{fraction:03}").trim_end_matches('0'));
            }
        }
        if self.offset.unwrap_or(kind != DateKind::Date) {
            pattern.push_str("XXX");
        }
        DatePattern::simple(&pattern)?.format(&moment)
    }
}

/// Milliseconds since 1970 by a format: a pattern, a style, or ISO 8601.
///
/// # Errors
/// It is no format, or the year has more than four digits.
pub(crate) fn write(at: i64, kind: DateKind, format: &str, zone: &str) -> Result<String, String> {
    let format = if format.is_empty() { "medium" } else { format };
    if let Some(iso) = Iso::of(format) {
        return iso.write(at, kind, zone);
    }
    let pattern = of_style(format, kind);
    DatePattern::simple(pattern.as_deref().unwrap_or(format))?.format(&Moment::of_named(at, zone)?)
}

/// Reads milliseconds since 1970. Without a format, dates of ISO 8601 and those of the style `medium` are read.
///
/// # Errors
/// The text does not follow the format.
pub(crate) fn parse(text: &str, kind: DateKind, format: Option<&str>, zone: &str) -> Result<i64, String> {
    let iso: &[&str] = match kind {
        DateKind::Date => &["yyyy-MM-dd", "yyyy-MM-ddXXX", "yyyyMMdd"],
        DateKind::Time => &["HH:mm:ss[.SSS][XXX]", "HH:mm"],
        DateKind::DateTime => {
            &["yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "yyyy-MM-dd HH:mm:ss", "yyyy-MM-dd'T'HH:mm"]
        }
    };
    let format = format.filter(|format| !format.is_empty());
    if format.is_none_or(|format| Iso::of(format).is_some()) {
        for pattern in iso {
            if let Ok(moment) = DatePattern::compile(pattern).and_then(|pattern| pattern.parse(text)) {
                return moment.milliseconds(zone);
            }
        }
        if let Some(format) = format {
            return Err(format!("`{text}` does not follow `{format}`"));
        }
    }
    let style = of_style(format.unwrap_or("medium"), kind);
    let pattern = style.as_deref().or(format).unwrap_or("");
    match DatePattern::simple(pattern).and_then(|pattern| pattern.parse(text)) {
        Ok(moment) => moment.milliseconds(zone),
        Err(_) if format.is_none() => Err(format!("`{text}` does not follow `{}`", iso[0])),
        Err(_) => Err(format!("`{text}` does not follow `{pattern}`")),
    }
}
