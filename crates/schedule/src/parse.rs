//! From the text of a cron expression to its fields.
//!
//! What Quartz takes is taken. Beyond it, terms that it knows alone (`L`, `15W`, `MON#1`) may stand in lists.

use crate::cron::{Cron, FIRST_YEAR, LAST_YEAR};
use crate::days::{Days, OfMonth, OfWeek, bit};
use diagnostics::did_you_mean;
use std::fmt;
use std::ops::Range;

/// What is wrong with an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronError {
    /// In one sentence, with the field.
    pub message: String,
    /// Where, in bytes of the text.
    pub range: Range<usize>,
    /// What would be right.
    pub help: Option<String>,
}

impl fmt::Display for CronError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(out, " ({help})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for CronError {}

/// What a field may hold.
struct Field {
    name: &'static str,
    low: u32,
    high: u32,
    /// Names of its values, from `low` on.
    names: &'static [&'static str],
}

const SECONDS: Field = Field { name: "seconds", low: 0, high: 59, names: &[] };
const MINUTES: Field = Field { name: "minutes", low: 0, high: 59, names: &[] };
const HOURS: Field = Field { name: "hours", low: 0, high: 23, names: &[] };
const DAY_OF_MONTH: Field = Field { name: "day of month", low: 1, high: 31, names: &[] };
const MONTH: Field = Field {
    name: "month",
    low: 1,
    high: 12,
    names: &[
        "JANUARY",
        "FEBRUARY",
        "MARCH",
        "APRIL",
        "MAY",
        "JUNE",
        "JULY",
        "AUGUST",
        "SEPTEMBER",
        "OCTOBER",
        "NOVEMBER",
        "DECEMBER",
    ],
};
const DAY_OF_WEEK: Field = Field {
    name: "day of week",
    low: 1,
    high: 7,
    names: &["SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY"],
};
const YEAR: Field = Field { name: "year", low: FIRST_YEAR as u32, high: LAST_YEAR as u32, names: &[] };

/// A part of the expression with its place.
#[derive(Clone, Copy)]
struct Part<'a> {
    text: &'a str,
    start: usize,
}

impl<'a> Part<'a> {
    fn split(self, separator: char) -> impl Iterator<Item = Part<'a>> {
        let start = self.text.as_ptr().addr();
        self.text
            .split(separator)
            .map(move |text| Part { text, start: self.start + text.as_ptr().addr() - start })
    }

    fn split_once(self, separator: char) -> Option<(Part<'a>, Part<'a>)> {
        let (before, behind) = self.text.split_once(separator)?;
        let behind_start = self.start + before.len() + separator.len_utf8();
        Some((Part { text: before, ..self }, Part { text: behind, start: behind_start }))
    }

    /// Without its last character, if it is that one.
    fn without_last(self, last: char) -> Option<Part<'a>> {
        let text = self.text.strip_suffix([last, last.to_ascii_lowercase()])?;
        Some(Part { text, ..self })
    }

    fn is(self, word: &str) -> bool {
        self.text.eq_ignore_ascii_case(word)
    }

    fn error(self, message: impl Into<String>, help: impl Into<Option<String>>) -> CronError {
        let range = self.start..self.start + self.text.len();
        CronError { message: message.into(), range, help: help.into() }
    }
}

impl Cron {
    /// Reads an expression.
    ///
    /// # Errors
    /// Which field is wrong, and where in the text.
    pub fn parse(text: &str) -> Result<Cron, CronError> {
        parse(text)
    }
}

fn parse(text: &str) -> Result<Cron, CronError> {
    let start = text.as_ptr().addr();
    let parts: Vec<Part<'_>> =
        text.split_whitespace().map(|text| Part { text, start: text.as_ptr().addr() - start }).collect();
    let whole = Part { text, start: 0 };
    let (fields, year) = match parts.as_slice() {
        [fields @ .., year] if fields.len() == 6 => (fields, Some(*year)),
        fields if fields.len() == 6 => (fields, None),
        fields => return Err(wrong_count(whole, fields)),
    };
    let &[seconds, minutes, hours, day_of_month, month, day_of_week] = fields else {
        return Err(wrong_count(whole, fields));
    };
    Ok(Cron {
        seconds: SECONDS.bits(seconds)?,
        minutes: MINUTES.bits(minutes)?,
        hours: HOURS.bits(hours)?,
        months: MONTH.bits(month)?,
        days: days(day_of_month, day_of_week)?,
        years: match year {
            Some(year) if year.text != "*" => years(year)?,
            _ => Vec::new(),
        },
        text: text.split_whitespace().collect::<Vec<_>>().join(" "),
    })
}

fn wrong_count(whole: Part<'_>, fields: &[Part<'_>]) -> CronError {
    let help = match fields {
        // As crontab has it.
        [minutes, hours, day_of_month, month, day_of_week] => {
            let (day, week) = match (day_of_month.text, day_of_week.text) {
                (day, "*") => (day, "?"),
                ("*", week) => ("?", week),
                (day, week) => (day, week),
            };
            format!("the seconds come first: `0 {} {} {day} {} {week}`", minutes.text, hours.text, month.text)
        }
        _ => "seconds, minutes, hours, day of month, month, day of week, and if wanted the year".to_owned(),
    };
    let count = fields.len();
    whole.error(format!("a cron expression has six or seven fields, and this has {count}"), help)
}

fn days(of_month: Part<'_>, of_week: Part<'_>) -> Result<Days, CronError> {
    match (of_month.text, of_week.text) {
        ("?", "?") => Err(of_week.error(
            "day of month and day of week cannot both be `?`",
            "one of them says the days: `*` for every day".to_owned(),
        )),
        ("?", _) => of_week.split(',').map(day_of_week).collect::<Result<_, _>>().map(Days::OfWeek),
        (_, "?") => of_month.split(',').map(day_of_month).collect::<Result<_, _>>().map(Days::OfMonth),
        (_, week) => {
            let spare = if week == "*" { of_week } else { of_month };
            let name = if week == "*" { "day of week" } else { "day of month" };
            Err(spare.error(
                "day of month and day of week cannot both be given",
                format!("one of them has to be `?`, here the {name}"),
            ))
        }
    }
}

fn day_of_month(term: Part<'_>) -> Result<OfMonth, CronError> {
    if term.is("L") {
        return Ok(OfMonth::Last { before: 0, weekday: false });
    }
    if term.is("LW") {
        return Ok(OfMonth::Last { before: 0, weekday: true });
    }
    let weekday = term.without_last('W');
    let day = weekday.unwrap_or(term);
    if let Some((last, before)) = day.split_once('-')
        && last.is("L")
    {
        let before = number(before, "day of month", 0, 30)?;
        return Ok(OfMonth::Last { before, weekday: weekday.is_some() });
    }
    match weekday {
        Some(day) => Ok(OfMonth::Nearest(DAY_OF_MONTH.value(day)?)),
        None => DAY_OF_MONTH.term(term).map(OfMonth::Set),
    }
}

fn day_of_week(term: Part<'_>) -> Result<OfWeek, CronError> {
    // Alone, it is the last day of the week.
    if term.is("L") {
        return Ok(OfWeek::Set(bit(7)));
    }
    if let Some((day, nth)) = term.split_once('#') {
        return Ok(OfWeek::Nth(DAY_OF_WEEK.value(day)?, number(nth, "day of week", 1, 5)?));
    }
    match term.without_last('L') {
        Some(day) => Ok(OfWeek::Last(DAY_OF_WEEK.value(day)?)),
        None => DAY_OF_WEEK.term(term).map(OfWeek::Set),
    }
}

fn years(field: Part<'_>) -> Result<Vec<i16>, CronError> {
    let mut years = Vec::new();
    for term in field.split(',') {
        let (from, to, step) = YEAR.range(term)?;
        if from > to {
            return Err(term.error("the years go backwards", None));
        }
        years.extend((from..=to).step_by(step as usize).filter_map(|year| i16::try_from(year).ok()));
    }
    years.sort_unstable();
    years.dedup();
    Ok(years)
}

impl Field {
    /// The values of a list.
    fn bits(&self, list: Part<'_>) -> Result<u64, CronError> {
        list.split(',').try_fold(0, |bits, term| Ok(bits | self.term(term)?))
    }

    /// The values of one term.
    fn term(&self, term: Part<'_>) -> Result<u64, CronError> {
        let (from, to, step) = self.range(term)?;
        let span = self.high - self.low + 1;
        // A range that goes backwards goes round: 22-2.
        let length = if from <= to { to - from } else { to + span - from };
        let values = (0..=length).step_by(step as usize);
        Ok(values.fold(0, |bits, at| bits | bit(self.low + (from - self.low + at) % span)))
    }

    /// First and last value and the step of a term.
    fn range(&self, term: Part<'_>) -> Result<(u32, u32, u32), CronError> {
        let (values, step) = match term.split_once('/') {
            None => (term, None),
            Some((values, step)) => {
                let most = self.longest_step();
                (values, Some(number(step, self.name, 1, most).map_err(|why| self.of_step(step, why))?))
            }
        };
        let (from, to) = match values.text {
            "*" => (self.low, self.high),
            "" if step.is_some() => (self.low, self.high),
            _ => match values.split_once('-') {
                Some((from, to)) => (self.value(from)?, self.value(to)?),
                None => {
                    let from = self.value(values)?;
                    (from, if step.is_some() { self.high } else { from })
                }
            },
        };
        Ok((from, to, step.unwrap_or(1)))
    }

    /// The longest step: of what counts from 0 to the last value, of days and months their number, as in Quartz.
    fn longest_step(&self) -> u32 {
        if self.low == 1 { self.high } else { (self.high - self.low).max(1) }
    }

    fn of_step(&self, step: Part<'_>, why: CronError) -> CronError {
        let most = self.longest_step();
        let help = format!("a step of {} is from 1 to {most}", self.name);
        CronError { help: Some(help), ..step.error(why.message, None) }
    }

    /// One value, by number or by name.
    fn value(&self, value: Part<'_>) -> Result<u32, CronError> {
        if value.text.len() >= 3 && value.text.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            let upper = value.text.to_ascii_uppercase();
            if let Some(at) = self.names.iter().position(|name| name.starts_with(&upper)) {
                return Ok(self.low + at as u32);
            }
        }
        if value.text == "?" {
            let message = format!("`?` cannot stand in the {}", self.name);
            let help = match self.name {
                "day of month" | "day of week" => "it stands alone in its field",
                _ => "only in day of month or day of week; `*` is every value",
            };
            return Err(value.error(message, help.to_owned()));
        }
        let written = !self.names.is_empty() && !value.text.starts_with(|c: char| c.is_ascii_digit());
        if !written {
            return number(value, self.name, self.low, self.high).map_err(|error| match self.name {
                "day of week" => CronError { help: Some("1 is Sunday, 7 is Saturday".to_owned()), ..error },
                _ => error,
            });
        }
        let short = || self.names.iter().map(|name| &name[..3]);
        let upper = value.text.to_ascii_uppercase();
        let first = upper.get(..3).unwrap_or(&upper);
        // Several may be as near; whoever misspelt one began it well.
        let alike = short().filter(|name| first.starts_with(&name[..1]));
        let help = did_you_mean(first, alike).or_else(|| did_you_mean(first, short())).unwrap_or_else(|| {
            format!("{} to {}, or {}", self.low, self.high, short().collect::<Vec<_>>().join(" "))
        });
        Err(value.error(format!("there is no {} `{}`", self.name, value.text), help))
    }
}

fn number(value: Part<'_>, field: &str, low: u32, high: u32) -> Result<u32, CronError> {
    let expected = || format!("expected {low} to {high}");
    if value.text.is_empty() {
        return Err(value.error(format!("a value is missing in the {field}"), expected()));
    }
    let digits = value.text.bytes().all(|byte| byte.is_ascii_digit());
    match value.text.parse() {
        Ok(number) if digits && (low..=high).contains(&number) => Ok(number),
        _ => Err(value.error(format!("the {field} cannot be `{}`", value.text), expected())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_error_says_which_field_where_and_what_would_be_right() {
        for (text, place, message, help) in [
            ("", "", "a cron expression has six or seven fields, and this has 0", "seconds, minutes"),
            ("*/5 * * * *", "*/5 * * * *", "and this has 5", "`0 */5 * * * ?`"),
            ("0 8 * * 1", "0 8 * * 1", "and this has 5", "`0 0 8 ? * 1`"),
            ("0 0 0 1 1 ? 2030 x", "0 0 0 1 1 ? 2030 x", "and this has 8", "if wanted the year"),
            ("60 0 0 * * ?", "60", "the seconds cannot be `60`", "expected 0 to 59"),
            ("0 -1 0 * * ?", "", "a value is missing in the minutes", "expected 0 to 59"),
            ("0 0 24 * * ?", "24", "the hours cannot be `24`", "expected 0 to 23"),
            ("0 0 0 0 * ?", "0", "the day of month cannot be `0`", "expected 1 to 31"),
            ("0 0 0 32 * ?", "32", "the day of month cannot be `32`", "expected 1 to 31"),
            ("0 0 0 1 13 ?", "13", "the month cannot be `13`", "expected 1 to 12"),
            ("0 0 0 1 JAM ?", "JAM", "there is no month `JAM`", "JAN"),
            ("0 0 0 ? * MUN", "MUN", "there is no day of week `MUN`", "MON"),
            ("0 0 0 ? * xyzzy", "xyzzy", "there is no day of week `xyzzy`", "1 to 7, or SUN MON"),
            ("0 0 0 ? * 0", "0", "the day of week cannot be `0`", "1 is Sunday"),
            ("0 0 0 ? * MON#6", "6", "the day of week cannot be `6`", "expected 1 to 5"),
            ("0 0 0 ? * 8L", "8", "the day of week cannot be `8`", "1 is Sunday"),
            ("0 0 0 ? * ?", "?", "day of month and day of week cannot both be `?`", "`*` for every day"),
            ("0 0 0 * * *", "*", "day of month and day of week cannot both be given", "the day of week"),
            ("0 0 0 * * MON", "*", "day of month and day of week cannot both be given", "the day of month"),
            ("? 0 0 * * ?", "?", "`?` cannot stand in the seconds", "only in day of month"),
            ("0 0 0 ?,3 * ?", "?", "`?` cannot stand in the day of month", "it stands alone"),
            ("0 0/60 0 * * ?", "60", "the minutes cannot be `60`", "a step of minutes is from 1 to 59"),
            (
                "0 0 0 1/32 * ?",
                "32",
                "the day of month cannot be `32`",
                "a step of day of month is from 1 to 31",
            ),
            ("0 0 0 1 1/13 ?", "13", "the month cannot be `13`", "a step of month is from 1 to 12"),
            ("0 0 0 ? * 1/8", "8", "the day of week cannot be `8`", "a step of day of week is from 1 to 7"),
            ("0 0 0/24 * * ?", "24", "the hours cannot be `24`", "a step of hours is from 1 to 23"),
            ("0 */0 0 * * ?", "0", "the minutes cannot be `0`", "a step of minutes is from 1 to 59"),
            ("0 0/ 0 * * ?", "", "a value is missing in the minutes", "a step of minutes"),
            ("0 5, 0 * * ?", "", "a value is missing in the minutes", "expected 0 to 59"),
            ("0 0 0 L-31 * ?", "31", "the day of month cannot be `31`", "expected 0 to 30"),
            ("0 0 0 40W * ?", "40", "the day of month cannot be `40`", "expected 1 to 31"),
            ("0 0 0 1 1 ? 1969", "1969", "the year cannot be `1969`", "expected 1970 to 2199"),
            ("0 0 0 1 1 ? 2030-2020", "2030-2020", "the years go backwards", ""),
            (
                "0 0 99999999999999999999 * * ?",
                "99999999999999999999",
                "the hours cannot be",
                "expected 0 to 23",
            ),
            ("0 0 +5 * * ?", "+5", "the hours cannot be `+5`", "expected 0 to 23"),
            ("0 0 ü * * ?", "ü", "the hours cannot be `ü`", "expected 0 to 23"),
        ] {
            let error = parse(text).expect_err(text);
            assert_eq!(&text[error.range.clone()], place, "{text}: {error:?}");
            assert!(error.message.contains(message), "{text}: {error:?}");
            assert!(error.help.as_deref().unwrap_or_default().contains(help), "{text}: {error:?}");
        }
    }

    #[test]
    fn what_means_the_same_is_the_same() {
        for (one, other) in [
            ("0 0 0 ? * MON-FRI", "0 0 0 ? * 2-6"),
            ("0 0 0 1 jan,Feb,DECEMBER ?", "0 0 0 1 1,2,12 ?"),
            ("*/15 0-59 0/1 * * ?", "0,15,30,45 * * * * ? *"),
            ("/15 * * 1-31 1/1 ?", "0/15 * * * * ?"),
            ("  0\t0 12  * * ? ", "0 0 12 * * ?"),
        ] {
            let (one, other) = (parse(one).expect(one), parse(other).expect(other));
            let fields =
                |cron: &Cron| (cron.seconds, cron.minutes, cron.hours, cron.months, cron.years.clone());
            assert_eq!(fields(&one), fields(&other), "{one} {other}");
            for month in 1..=12 {
                assert_eq!(one.days.of_month(2026, month), other.days.of_month(2026, month), "{one} {other}");
            }
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_much(text in "[-0-9*/?,#LWA-Zü ]{0,40}") {
            if let Err(error) = parse(&text) {
                prop_assert!(text.get(error.range.clone()).is_some(), "{:?}", error);
            }
        }
    }
}
