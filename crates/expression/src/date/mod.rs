//! Dates and times by patterns of letters, as `java.time` and `SimpleDateFormat` have them.

mod simple;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};
use simple::Simple;
use xpath::atomic::calendar::{MONTHS, WEEKDAYS};

/// Longest pattern, in bytes; a run of one letter is at most [`MAX_WIDTH`] long.
const MAX_PATTERN: usize = 1024;
const MAX_WIDTH: usize = 19;
/// The letters of `java.time` and of `SimpleDateFormat`.
const JAVA_TIME: &str = "GyuYwMLdDQqEecaHkKhmsSnAzVOXxZ";
const SIMPLE: &str = "GyYMLwWDdFEuaHkKhmsSzZX";
/// Letters of `SimpleDateFormat` that mean something else in `java.time`, by a letter that neither has.
const MILLISECOND: char = 'i';
const WEEKDAY: char = 'j';

/// A point in time, or the part of one that is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moment {
    date: Option<Date>,
    time: Option<Time>,
    offset: Option<Offset>,
    zone: Option<String>,
}

impl Moment {
    /// Milliseconds since 1970, in the time zone of the machine.
    ///
    /// # Errors
    /// The year has more than four digits.
    pub fn of(milliseconds: i64) -> Result<Moment, String> {
        Moment::of_in(milliseconds, TimeZone::system())
    }

    /// Milliseconds since 1970, in UTC.
    ///
    /// # Errors
    /// As [`Moment::of`].
    pub fn of_utc(milliseconds: i64) -> Result<Moment, String> {
        Moment::of_in(milliseconds, TimeZone::UTC)
    }

    /// Milliseconds since 1970 in a time zone by its name; empty: that of the machine. An unknown one is UTC, as in
    /// Java.
    ///
    /// # Errors
    /// As [`Moment::of`].
    pub fn of_named(milliseconds: i64, zone: &str) -> Result<Moment, String> {
        Moment::of_in(milliseconds, zone_named(zone))
    }

    /// Milliseconds since 1970. What is not known of it is the beginning: of 1970, of the day; in the time zone of this
    /// name where it has none of its own.
    ///
    /// # Errors
    /// There is no such time.
    pub fn milliseconds(&self, zone: &str) -> Result<i64, String> {
        let date = self.date.unwrap_or(Date::constant(1970, 1, 1));
        let fixed_zone = self.offset.map(TimeZone::fixed);
        let time = date.to_datetime(self.time.unwrap_or(Time::midnight()));
        let zoned = time.to_zoned(fixed_zone.unwrap_or_else(|| zone_named(zone)));
        Ok(zoned.map_err(|_| "there is no such time".to_owned())?.timestamp().as_millisecond())
    }

    fn of_in(milliseconds: i64, zone: TimeZone) -> Result<Moment, String> {
        let stamp =
            Timestamp::from_millisecond(milliseconds).map_err(|_| "this time is too far away".to_owned())?;
        let zoned = Zoned::new(stamp, zone);
        Ok(Moment {
            date: Some(zoned.date()),
            time: Some(zoned.time()),
            offset: Some(zoned.offset()),
            zone: Some(zoned.strftime("%Z").to_string()),
        })
    }
}

/// The name of a time zone, that of the process for an empty one; `None`: there is none of this name.
pub fn zone_name(name: &str) -> Option<String> {
    match name.trim() {
        "" => Some(TimeZone::system().iana_name().unwrap_or("UTC").to_owned()),
        name if name == "UTC" || name == "GMT" || TimeZone::get(name).is_ok() => Some(name.to_owned()),
        _ => None,
    }
}

/// A time zone by its name, or by its offset: `GMT+5`, `GMT-05:30`.
fn zone_named(name: &str) -> TimeZone {
    let name = name.trim();
    if name.is_empty() {
        return TimeZone::system();
    }
    let offset = ["GMT", "UTC"].iter().find_map(|prefix| name.strip_prefix(prefix)).and_then(|rest| {
        let (sign, rest) = match rest.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, rest.strip_prefix('+')?),
        };
        let (hours, minutes) = rest.split_once(':').unwrap_or((rest, "0"));
        let seconds = hours.parse::<i32>().ok()? * 3600 + minutes.parse::<i32>().ok()? * 60;
        Offset::from_seconds(sign * seconds).ok()
    });
    match offset {
        Some(offset) => TimeZone::fixed(offset),
        None => TimeZone::get(name).unwrap_or(TimeZone::UTC),
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    /// A letter and how often it stands there.
    Field(char, usize),
    Text(String),
    /// `[` and `]`.
    Open,
    Close,
}

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct DatePattern {
    parts: Vec<Part>,
    /// It is one of `SimpleDateFormat`.
    simple: bool,
}

impl DatePattern {
    /// Compiles a pattern of `java.time`.
    ///
    /// # Errors
    /// It has a letter without a meaning, a quote that does not close, or brackets that do not match.
    pub fn compile(pattern: &str) -> Result<DatePattern, String> {
        DatePattern::of(pattern, JAVA_TIME)
    }

    /// Compiles a pattern of `SimpleDateFormat`: brackets are text, `S` are milliseconds, `u` is the day of the week.
    ///
    /// # Errors
    /// As [`DatePattern::compile`].
    pub fn simple(pattern: &str) -> Result<DatePattern, String> {
        let mut date_pattern = DatePattern { simple: true, ..DatePattern::of(pattern, SIMPLE)? };
        for part in &mut date_pattern.parts {
            match part {
                Part::Open => *part = Part::Text("[".to_owned()),
                Part::Close => *part = Part::Text("]".to_owned()),
                Part::Field(letter @ 'S', _) => *letter = MILLISECOND,
                Part::Field(letter @ 'u', _) => *letter = WEEKDAY,
                Part::Field('Z', width) => *width = 1,
                Part::Field('G', width) => *width = 1,
                Part::Field('E' | 'M' | 'L', width) => *width = (*width).min(4),
                _ => {}
            }
        }
        Ok(date_pattern)
    }

    fn of(pattern: &str, meanings: &str) -> Result<DatePattern, String> {
        if pattern.len() > MAX_PATTERN {
            return Err(format!("the pattern is longer than {MAX_PATTERN} bytes"));
        }
        let mut parts = Vec::new();
        let mut letters = pattern.chars().peekable();
        let mut depth = 0usize;
        let text = |parts: &mut Vec<Part>, c: char| match parts.last_mut() {
            Some(Part::Text(text)) => text.push(c),
            _ => parts.push(Part::Text(c.to_string())),
        };
        while let Some(letter) = letters.next() {
            match letter {
                '\'' if letters.peek() == Some(&'\'') => {
                    letters.next();
                    text(&mut parts, '\'');
                }
                '\'' => loop {
                    match letters.next() {
                        Some('\'') if letters.peek() == Some(&'\'') => {
                            letters.next();
                            text(&mut parts, '\'');
                        }
                        Some('\'') => break,
                        Some(c) => text(&mut parts, c),
                        None => return Err(format!("a quote in the pattern {pattern} does not close")),
                    }
                },
                '[' => {
                    depth += 1;
                    parts.push(Part::Open);
                }
                ']' if meanings == SIMPLE => parts.push(Part::Close),
                ']' => {
                    depth = depth
                        .checked_sub(1)
                        .ok_or_else(|| format!("the brackets of the pattern {pattern} do not match"))?;
                    parts.push(Part::Close);
                }
                letter if letter.is_ascii_alphabetic() => {
                    let mut width = 1;
                    while letters.next_if_eq(&letter).is_some() {
                        width += 1;
                    }
                    if !meanings.contains(letter) || width > MAX_WIDTH {
                        let run = letter.to_string().repeat(width.min(MAX_WIDTH));
                        return Err(format!("{run} means nothing in the pattern {pattern}"));
                    }
                    parts.push(Part::Field(letter, width));
                }
                other => text(&mut parts, other),
            }
        }
        if depth > 0 && meanings != SIMPLE {
            return Err(format!("the brackets of the pattern {pattern} do not match"));
        }
        Ok(DatePattern { parts, simple: false })
    }

    /// A time by the pattern; English names.
    ///
    /// # Errors
    /// The pattern asks for what is not known: an hour of a date, say.
    pub fn format(&self, moment: &Moment) -> Result<String, String> {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Field(letter, width) => match field(*letter, *width, moment) {
                    Some(text) => out.push_str(&text),
                    None => return Err(format!("{letter} is not known of this time")),
                },
                Part::Open | Part::Close => {}
            }
        }
        Ok(out)
    }

    /// Reads a text. A pattern of `SimpleDateFormat` reads its beginning, leniently as Java does: numbers of any length, names in
    /// short or in full, and parts beyond their range, which count on (the 32nd of January is the first of February).
    ///
    /// # Errors
    /// It does not follow the pattern, or is no date.
    pub fn parse(&self, text: &str) -> Result<Moment, String> {
        if self.simple {
            let moment = Simple::read(&self.parts, text).and_then(Simple::moment);
            return moment.ok_or_else(|| format!("{text} does not follow the pattern"));
        }
        let mut fields = Fields::default();
        let rest = fields.read(&self.parts, text).filter(|rest| rest.is_empty());
        rest.and_then(|_| fields.moment()).ok_or_else(|| format!("{text} does not follow the pattern"))
    }
}

fn field(letter: char, width: usize, moment: &Moment) -> Option<String> {
    let name = |name: &str| match width {
        1..=3 => name[..3].to_owned(),
        5 => name[..1].to_owned(),
        _ => name.to_owned(),
    };
    let number = |value: i64| Some(format!("{value:0width$}"));
    match letter {
        'G' | 'y' | 'u' | 'Y' | 'w' | 'W' | 'F' | 'M' | 'L' | 'd' | 'D' | 'Q' | 'q' | 'E' | 'e' | 'c'
        | WEEKDAY => {
            let date = moment.date?;
            let month = i64::from(date.month());
            match letter {
                'G' => Some(if width == 4 { "Anno Domini" } else { "AD" }.to_owned()),
                'y' | 'u' if width == 2 => Some(format!("{:02}", date.year().rem_euclid(100))),
                'y' | 'u' => number(date.year().into()),
                'Y' if width == 2 => Some(format!("{:02}", week_of_year(date).0.rem_euclid(100))),
                'Y' => number(week_of_year(date).0),
                'w' => number(week_of_year(date).1),
                'W' => number((i64::from(date.day()) - 1 + from_sunday(date.first_of_month())) / 7 + 1),
                'F' => number((i64::from(date.day()) - 1) / 7 + 1),
                WEEKDAY => number(date.weekday().to_monday_one_offset().into()),
                'M' | 'L' if width > 2 => Some(name(MONTHS[month as usize - 1])),
                'M' | 'L' => number(month),
                'd' => number(date.day().into()),
                'D' => number(date.day_of_year().into()),
                'Q' | 'q' => number((month - 1) / 3 + 1),
                'e' | 'c' if width < 3 => number(date.weekday().to_sunday_one_offset().into()),
                _ => Some(name(WEEKDAYS[date.weekday().to_monday_zero_offset() as usize])),
            }
        }
        'a' | 'H' | 'k' | 'K' | 'h' | 'm' | 's' | 'S' | 'n' | 'A' | MILLISECOND => {
            let time = moment.time?;
            let hour = i64::from(time.hour());
            match letter {
                'a' => Some(if hour < 12 { "AM" } else { "PM" }.to_owned()),
                'H' => number(hour),
                'k' => number(if hour == 0 { 24 } else { hour }),
                'K' => number(hour % 12),
                'h' => number(if hour % 12 == 0 { 12 } else { hour % 12 }),
                'm' => number(time.minute().into()),
                's' => number(time.second().into()),
                'S' => {
                    let digits = format!("{:09}", time.subsec_nanosecond());
                    Some(digits.chars().chain(std::iter::repeat('0')).take(width).collect())
                }
                'n' => number(time.subsec_nanosecond().into()),
                MILLISECOND => number(time.millisecond().into()),
                _ => number(
                    ((hour * 60 + i64::from(time.minute())) * 60 + i64::from(time.second())) * 1000
                        + i64::from(time.subsec_nanosecond()) / 1_000_000,
                ),
            }
        }
        'z' | 'V' => moment.zone.clone().or_else(|| Some(offset(moment.offset?, 3, true))),
        'O' => Some(match offset(moment.offset?, 3, false) {
            plain if plain == "+00:00" => "GMT".to_owned(),
            other => format!("GMT{other}"),
        }),
        'X' => Some(offset(moment.offset?, width, true)),
        'x' => Some(offset(moment.offset?, width, false)),
        'Z' => Some(match width {
            1..=3 => offset(moment.offset?, 2, false),
            4 => format!("GMT{}", offset(moment.offset?, 3, false)),
            _ => offset(moment.offset?, 3, true),
        }),
        _ => None,
    }
}

/// Days since the Sunday before.
fn from_sunday(date: Date) -> i64 {
    date.weekday().to_sunday_zero_offset().into()
}

/// Year and week, as they are counted in America: a week begins on Sunday, the first is the one with January 1st.
fn week_of_year(date: Date) -> (i64, i64) {
    let year = i64::from(date.year());
    let days_left = i64::from(date.days_in_year()) - i64::from(date.day_of_year());
    if days_left < 6 - from_sunday(date) {
        return (year + 1, 1);
    }
    (year, (i64::from(date.day_of_year()) - 1 + from_sunday(date.first_of_year())) / 7 + 1)
}

/// `+02`, `+0200` or `+02:00`; `zulu`: `Z` for none.
fn offset(offset: Offset, width: usize, zulu: bool) -> String {
    let seconds = offset.seconds();
    if seconds == 0 && zulu {
        return "Z".to_owned();
    }
    let (sign, minutes) = (if seconds < 0 { '-' } else { '+' }, seconds.abs() / 60);
    let (hours, minutes) = (minutes / 60, minutes % 60);
    match width {
        1 if minutes == 0 => format!("{sign}{hours:02}"),
        1 | 2 | 4 => format!("{sign}{hours:02}{minutes:02}"),
        _ => format!("{sign}{hours:02}:{minutes:02}"),
    }
}

/// What has been read of a text.
#[derive(Clone, Default)]
struct Fields {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    hour: Option<i64>,
    hour_of_half: Option<i64>,
    afternoon: Option<bool>,
    minute: Option<i64>,
    second: Option<i64>,
    nanosecond: Option<i64>,
    offset: Option<Offset>,
    zone: Option<String>,
}

impl Fields {
    /// Reads the parts; what is left of the text.
    fn read<'t>(&mut self, parts: &[Part], mut text: &'t str) -> Option<&'t str> {
        let mut at = 0;
        while let Some(part) = parts.get(at) {
            match part {
                Part::Text(literal) => text = text.strip_prefix(literal.as_str())?,
                Part::Field(letter, width) => {
                    // A number directly before another one has exactly its width.
                    let adjacent = matches!(parts.get(at + 1), Some(Part::Field(next, _)) if "yuMdDHkKhmsSnA".contains(*next));
                    text = self.field(*letter, *width, adjacent, text)?;
                }
                Part::Open => {
                    let end = closing(parts, at)?;
                    let before = self.clone();
                    match self.read(&parts[at + 1..end], text) {
                        Some(rest) => text = rest,
                        None => *self = before,
                    }
                    at = end;
                }
                Part::Close => return None,
            }
            at += 1;
        }
        Some(text)
    }

    fn field<'t>(&mut self, letter: char, width: usize, adjacent: bool, text: &'t str) -> Option<&'t str> {
        let named = |names: &'static [&'static str]| {
            names.iter().enumerate().find_map(|(number, name)| {
                let wanted = if width == 3 { &name[..3] } else { name };
                Some((number as i64, text.strip_prefix(wanted)?))
            })
        };
        match letter {
            'M' | 'L' if width > 2 => {
                let (number, rest) = named(&MONTHS)?;
                self.month = Some(number + 1);
                return Some(rest);
            }
            'E' => return Some(named(&WEEKDAYS)?.1),
            'G' => return text.strip_prefix("AD"),
            'a' => {
                let half = text.get(..2)?;
                self.afternoon = Some(match half.to_ascii_uppercase().as_str() {
                    "AM" => false,
                    "PM" => true,
                    _ => return None,
                });
                return text.get(2..);
            }
            'X' | 'x' | 'Z' | 'O' => {
                let text = if letter == 'O' || (letter == 'Z' && width == 4) {
                    text.strip_prefix("GMT")?
                } else {
                    text
                };
                let (offset, rest) = read_offset(text)?;
                self.offset = Some(offset);
                return Some(rest);
            }
            'z' | 'V' => {
                let (name, rest) = read_zone_name(text)?;
                if matches!(name, "Z" | "UTC" | "GMT") {
                    self.offset = Some(Offset::UTC);
                }
                self.zone = Some(name.to_owned());
                return Some(rest);
            }
            _ => {}
        }
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let fixed = adjacent || width > 1 || letter == 'S';
        let taken = match letter {
            // More digits than four only with a sign.
            'y' | 'u' if width != 2 && !adjacent => digits.min(4.max(width)),
            _ if fixed => width,
            _ => digits.min(MAX_WIDTH),
        };
        if taken == 0 || digits < taken || (digits < width && letter != 'y' && letter != 'u') {
            return None;
        }
        if matches!(letter, 'y' | 'u') && taken < width {
            return None;
        }
        let value: i64 = text.get(..taken)?.parse().ok()?;
        match letter {
            'y' | 'u' => self.year = Some(if width == 2 { 2000 + value } else { value }),
            'M' | 'L' => self.month = Some(value),
            'd' => self.day = Some(value),
            'D' => self.day_of_year = Some(value),
            'H' => self.hour = Some(value),
            'k' => self.hour = Some(value % 24),
            'K' => self.hour_of_half = Some(value),
            'h' => self.hour_of_half = Some(value % 12),
            'm' => self.minute = Some(value),
            's' => self.second = Some(value),
            'S' => {
                self.nanosecond =
                    Some(value.checked_mul(10i64.checked_pow(9u32.checked_sub(width as u32)?)?)?)
            }
            'n' => self.nanosecond = Some(value),
            _ => return None,
        }
        text.get(taken..)
    }

    fn moment(self) -> Option<Moment> {
        let small = |value: i64| i8::try_from(value).ok();
        let date = match (self.year, self.month, self.day, self.day_of_year) {
            (Some(year), Some(month), Some(day), _) => {
                let (year, month) = (i16::try_from(year).ok()?, small(month)?);
                let first = Date::new(year, month, 1).ok()?;
                if !(1..=31).contains(&day) {
                    return None;
                }
                // The last day stands for those that the month does not have.
                Some(Date::new(year, month, small(day)?.min(first.days_in_month())).ok()?)
            }
            (Some(year), None, None, Some(day)) => {
                let first = Date::new(i16::try_from(year).ok()?, 1, 1).ok()?;
                Some(first.with().day_of_year(i16::try_from(day).ok()?).build().ok()?)
            }
            _ => None,
        };
        let hour = match (self.hour, self.hour_of_half, self.afternoon) {
            (Some(hour), ..) => Some(hour),
            (None, Some(hour), Some(afternoon)) => Some(hour + if afternoon { 12 } else { 0 }),
            _ => None,
        };
        let time = match hour {
            Some(hour) => {
                let part = |value: Option<i64>| small(value.unwrap_or(0));
                let nanosecond = i32::try_from(self.nanosecond.unwrap_or(0)).ok()?;
                Some(Time::new(small(hour)?, part(self.minute)?, part(self.second)?, nanosecond).ok()?)
            }
            None => None,
        };
        (date.is_some() || time.is_some()).then_some(Moment {
            date,
            time,
            offset: self.offset,
            zone: self.zone,
        })
    }
}

/// The bracket that closes the one at `open`.
fn closing(parts: &[Part], open: usize) -> Option<usize> {
    let mut depth = 0;
    parts.iter().enumerate().skip(open).find_map(|(at, part)| {
        match part {
            Part::Open => depth += 1,
            Part::Close => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

/// The name of a time zone at the beginning of a text, and the rest.
fn read_zone_name(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_alphabetic() && !"/_".contains(c)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

fn read_offset(text: &str) -> Option<(Offset, &str)> {
    if let Some(rest) = text.strip_prefix(['Z', 'z']) {
        return Some((Offset::UTC, rest));
    }
    let sign = match text.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    let two =
        |text: &str| text.get(..2).filter(|d| d.bytes().all(|b| b.is_ascii_digit()))?.parse::<i32>().ok();
    let rest = text.get(1..)?;
    let hours = two(rest)?;
    let rest = rest.get(2..)?;
    let after_colon = rest.strip_prefix(':').unwrap_or(rest);
    let (minutes, rest) = match two(after_colon) {
        Some(minutes) => (minutes, after_colon.get(2..)?),
        None => (0, rest),
    };
    Some((Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok()?, rest))
}

impl From<DateTime> for Moment {
    fn from(time: DateTime) -> Moment {
        Moment { date: Some(time.date()), time: Some(time.time()), ..Moment::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(text: &str, from: &str, to: &str) -> Result<String, String> {
        DatePattern::compile(to)?.format(&DatePattern::compile(from)?.parse(text)?)
    }

    #[test]
    fn texts_are_read_by_one_pattern_and_written_by_another() {
        for (text, from, to, wanted) in [
            ("29/09/1988", "dd/MM/yyyy", "yyyy-MM-dd", Some("1988-09-29")),
            ("29-09-1988", "dd-MM-yyyy", "yyyy MMM dd", Some("1988 Sep 29")),
            ("11-22-33", "HH-mm-ss", "HH mm ss", Some("11 22 33")),
            ("50-22-33", "HH-mm-ss", "HH mm ss", None),
            (
                "2024-01-31T10:20:30",
                "yyyy-MM-dd'T'HH:mm:ss",
                "EEE, d MMM yyyy h:mm a",
                Some("Wed, 31 Jan 2024 10:20 AM"),
            ),
            ("2024-01-31", "yyyy-MM-dd", "EEEE D Q", Some("Wednesday 31 1")),
            ("2024-01-31", "yyyy-MM-dd", "HH", None),
            ("20240131102030", "yyyyMMddHHmmss", "dd.MM.yy HH:mm", Some("31.01.24 10:20")),
            ("2024-02-31", "yyyy-MM-dd", "yyyy-MM-dd", Some("2024-02-29")),
            ("2024-02-32", "yyyy-MM-dd", "yyyy-MM-dd", None),
            ("2024-13-01", "yyyy-MM-dd", "yyyy-MM-dd", None),
            ("31 January 2024", "d MMMM yyyy", "yyyy/M/d", Some("2024/1/31")),
            ("2024-01-31T10:20:30+02:00", "yyyy-MM-dd'T'HH:mm:ssXXX", "HH:mm xx", Some("10:20 +0200")),
            ("3:05 PM", "h:mm a", "HH:mm", Some("15:05")),
            ("12:05 AM", "hh:mm a", "HH:mm", Some("00:05")),
            ("1.5", "s.S", "s", None),
            ("10:00:01.250", "HH:mm:ss.SSS", "SS n", Some("25 250000000")),
            ("2024-01-31", "yyyy-MM-dd['T'HH:mm]", "dd", Some("31")),
            ("2024-01-31 x", "yyyy-MM-dd", "dd", None),
            ("", "yyyy", "yyyy", None),
            ("x", "b", "yyyy", None),
            ("2024", "'yyyy", "yyyy", None),
        ] {
            assert_eq!(again(text, from, to).ok().as_deref(), wanted, "{text} {from} {to}");
        }
    }

    #[test]
    fn milliseconds_are_written() {
        for (pattern, wanted) in [
            ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2024-02-29T12:34:56.789Z"),
            ("''yy o''clock".replace(" o''clock", "' o''clock'").as_str(), "'24 o'clock"),
            ("h a k K z Z X x O", "12 PM 12 0 UTC +0000 Z +00 GMT"),
        ] {
            let moment = Moment::of_utc(1_709_210_096_789).unwrap();
            assert_eq!(DatePattern::compile(pattern).unwrap().format(&moment).unwrap(), wanted, "{pattern}");
        }
        for (pattern, wanted) in [
            ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", Some("2024-02-29T12:34:56.789Z")),
            ("EEE MMM dd yy h:m a", Some("Thu Feb 29 24 12:34 PM")),
            ("EEEEE, d MMMMM D", Some("Thursday, 29 February 60")),
            ("''yyyy [z] ZZZZ GGGG", Some("'2024 [UTC] +0000 AD")),
            ("u w W F Y S SSSS", Some("4 9 5 5 2024 789 0789")),
            ("]YY ww[", Some("]24 09[")),
            ("M/d/yy, h:mm a", Some("2/29/24, 12:34 PM")),
            ("Q", None),
            ("x", None),
            ("n", None),
            ("'", None),
            ("", Some("")),
        ] {
            let moment = Moment::of_utc(1_709_210_096_789).unwrap();
            let written = DatePattern::simple(pattern).and_then(|date_pattern| date_pattern.format(&moment));
            assert_eq!(written.ok().as_deref(), wanted, "{pattern}");
        }
        for (day, wanted) in [("2026-11-22", "2026 48"), ("2024-12-29", "2025 1"), ("2024-12-28", "2024 52")]
        {
            assert_eq!(again(day, "yyyy-MM-dd", "Y w").as_deref(), Ok(wanted), "{day}");
        }
        assert!(Moment::of_utc(i64::MAX).is_err());
        assert!(DatePattern::compile(&"y".repeat(2000)).is_err() && DatePattern::compile("[yy").is_err());
    }
}
