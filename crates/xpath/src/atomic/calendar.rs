//! Dates, times and durations (XML Schema 1.0 part 2, sections 3.2.6 to 3.2.14; F&O section 10).

use std::cmp::Ordering;
use std::fmt::Write as _;

/// The English names.
pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The English names, from Monday, the first day of the week in ISO 8601.
pub const WEEKDAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

const NANOS: i128 = 1_000_000_000;
const DAY: i128 = 86_400 * NANOS;

/// The type of a [`Moment`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum MomentKind {
    DateTime,
    Date,
    Time,
    GYear,
    GYearMonth,
    GMonth,
    GMonthDay,
    GDay,
}

/// A date, a time, both, or a part of a date. Parts that its type does not have are those of 1972-01-01T00:00:00.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Moment {
    /// Its type.
    pub kind: MomentKind,
    /// The astronomical year, as in XML Schema 1.1: 1 before the common era is 0, and years before it are negative.
    pub year: i32,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
    /// Nanoseconds within the second.
    pub nanos: u32,
    /// Minutes east of UTC; `None`: without a timezone.
    pub zone: Option<i16>,
}

/// The type of a [`Duration`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum DurationKind {
    Duration,
    YearMonth,
    DayTime,
}

/// A duration: months and nanoseconds, of the same sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Duration {
    /// Its type.
    pub kind: DurationKind,
    /// Years and months.
    pub months: i64,
    /// Days, hours, minutes and seconds.
    pub nanos: i128,
}

/// Reads digits and separators of a lexical form.
struct Scan<'t>(&'t str);

impl<'t> Scan<'t> {
    fn take(&mut self, c: char) -> Option<()> {
        self.0 = self.0.strip_prefix(c)?;
        Some(())
    }

    /// Between `least` and `most` digits.
    fn digits(&mut self, least: usize, most: usize) -> Option<&'t str> {
        let len = self.0.bytes().take_while(u8::is_ascii_digit).count();
        if len < least || len > most {
            return None;
        }
        let (digits, rest) = self.0.split_at(len);
        self.0 = rest;
        Some(digits)
    }

    fn two(&mut self) -> Option<u8> {
        self.digits(2, 2)?.parse().ok()
    }

    fn year(&mut self) -> Option<i32> {
        let negative = self.take('-').is_some();
        let digits = self.digits(4, 9)?;
        if digits.len() > 4 && digits.starts_with('0') {
            return None;
        }
        let year: i32 = digits.parse().ok()?;
        Some(if negative { -year } else { year })
    }

    /// `.` and digits, as nanoseconds; digits beyond the ninth are dropped.
    fn fraction(&mut self) -> Option<u32> {
        if self.take('.').is_none() {
            return Some(0);
        }
        let digits = self.digits(1, usize::MAX)?;
        let padded = format!("{:0<9}", &digits[..digits.len().min(9)]);
        padded.parse().ok()
    }

    fn zone(&mut self) -> Option<Option<i16>> {
        if self.0.is_empty() {
            return Some(None);
        }
        if self.take('Z').is_some() {
            return Some(Some(0));
        }
        let negative = if self.take('-').is_some() {
            true
        } else {
            self.take('+')?;
            false
        };
        let hours = self.two()?;
        self.take(':')?;
        let minutes = self.two()?;
        if minutes > 59 || hours > 14 || (hours == 14 && minutes > 0) {
            return None;
        }
        let zone = i16::from(hours) * 60 + i16::from(minutes);
        Some(Some(if negative { -zone } else { zone }))
    }
}

impl Moment {
    /// The value of an absent part.
    const BASE: Moment = Moment {
        kind: MomentKind::DateTime,
        year: 1972,
        month: 1,
        day: 1,
        hour: 0,
        minute: 0,
        second: 0,
        nanos: 0,
        zone: None,
    };

    /// From the lexical form; `None`: it is not one of that type.
    pub fn parse(kind: MomentKind, text: &str) -> Option<Moment> {
        use MomentKind as K;
        let mut s = Scan(text);
        let mut m = Moment { kind, ..Moment::BASE };
        let mut next_day = false;
        match kind {
            K::DateTime | K::Date | K::GYear | K::GYearMonth => {
                m.year = s.year()?;
                if kind != K::GYear {
                    s.take('-')?;
                    m.month = s.two()?;
                }
                if matches!(kind, K::DateTime | K::Date) {
                    s.take('-')?;
                    m.day = s.two()?;
                }
                if kind == K::DateTime {
                    s.take('T')?;
                    next_day = m.clock(&mut s)?;
                }
            }
            K::Time => {
                m.clock(&mut s)?;
            }
            K::GMonth | K::GMonthDay => {
                s.take('-')?;
                s.take('-')?;
                m.month = s.two()?;
                if kind == K::GMonthDay {
                    s.take('-')?;
                    m.day = s.two()?;
                }
            }
            K::GDay => {
                s.take('-')?;
                s.take('-')?;
                s.take('-')?;
                m.day = s.two()?;
            }
        }
        m.zone = s.zone()?;
        let fits = s.0.is_empty()
            && (1..=12).contains(&m.month)
            && m.day >= 1
            && m.day <= if kind == K::GDay { 31 } else { days_in_month(m.year.into(), m.month) };
        if !fits {
            return None;
        }
        if next_day {
            m = Moment { zone: None, ..m }.plus_nanos(DAY)?.with_zone(m.zone);
        }
        Some(m)
    }

    /// `hh:mm:ss`, and whether it is 24:00:00.
    fn clock(&mut self, s: &mut Scan<'_>) -> Option<bool> {
        self.hour = s.two()?;
        s.take(':')?;
        self.minute = s.two()?;
        s.take(':')?;
        self.second = s.two()?;
        self.nanos = s.fraction()?;
        if self.hour == 24 && self.minute == 0 && self.second == 0 && self.nanos == 0 {
            self.hour = 0;
            return Some(true);
        }
        (self.hour < 24 && self.minute < 60 && self.second < 60).then_some(false)
    }

    /// The moment `seconds` and `nanos` after the start of 1970, in UTC.
    pub fn from_unix(seconds: i64, nanos: u32) -> Moment {
        let at = i128::from(seconds) * NANOS + i128::from(nanos);
        Moment { zone: Some(0), ..Moment::BASE }.at_nanos(at).unwrap_or(Moment::BASE)
    }

    /// The same with another timezone written, the parts as they are.
    pub fn with_zone(self, zone: Option<i16>) -> Moment {
        Moment { zone, ..self }
    }

    /// Nanoseconds since the start of 1970 by the parts, without the timezone.
    fn local_nanos(self) -> i128 {
        let days = days_from_civil(self.year.into(), self.month, self.day);
        let clock = i128::from(self.hour) * 3600 + i128::from(self.minute) * 60 + i128::from(self.second);
        i128::from(days) * DAY + clock * NANOS + i128::from(self.nanos)
    }

    /// The same in UTC; without a timezone it is taken to be in `implicit`.
    pub fn utc_nanos(self, implicit: i16) -> i128 {
        self.local_nanos() - i128::from(self.zone.unwrap_or(implicit)) * 60 * NANOS
    }

    /// The parts of a number of nanoseconds since 1970, with the same type and timezone. `None`: the year does not fit.
    fn at_nanos(self, at: i128) -> Option<Moment> {
        let (days, clock) = (at.div_euclid(DAY), at.rem_euclid(DAY));
        let (year, month, day) = civil_from_days(i64::try_from(days).ok()?);
        let seconds = clock / NANOS;
        Some(Moment {
            year: i32::try_from(year).ok().filter(|y| y.abs() < 1_000_000_000)?,
            month,
            day,
            hour: (seconds / 3600) as u8,
            minute: (seconds / 60 % 60) as u8,
            second: (seconds % 60) as u8,
            nanos: (clock % NANOS) as u32,
            ..self
        })
    }

    /// Adds a duration in nanoseconds; a time stays within its day, a date drops the part of a day.
    pub fn plus_nanos(self, nanos: i128) -> Option<Moment> {
        let moved = self.at_nanos(self.local_nanos().checked_add(nanos)?)?;
        Some(match self.kind {
            MomentKind::Time => Moment { year: 1972, month: 1, day: 1, ..moved },
            MomentKind::Date => Moment { hour: 0, minute: 0, second: 0, nanos: 0, ..moved },
            _ => moved,
        })
    }

    /// Adds months; a day that the month does not have becomes its last one.
    pub fn plus_months(self, months: i64) -> Option<Moment> {
        let total = i64::from(self.year)
            .checked_mul(12)?
            .checked_add(i64::from(self.month) - 1)?
            .checked_add(months)?;
        let (year, month) = (total.div_euclid(12), (total.rem_euclid(12) + 1) as u8);
        let year = i32::try_from(year).ok()?;
        if year.abs() >= 1_000_000_000 {
            return None;
        }
        Some(Moment { year, month, day: self.day.min(days_in_month(year.into(), month)), ..self })
    }

    /// The same moment in another timezone (F&O section 10.7); `None` removes the timezone.
    pub fn adjusted(self, zone: Option<i16>) -> Option<Moment> {
        match (self.zone, zone) {
            (Some(from), Some(to)) => {
                let shift = i128::from(to - from) * 60 * NANOS;
                let moved = match self.kind {
                    // A date is adjusted by its midnight.
                    MomentKind::Date => {
                        let at = Moment { kind: MomentKind::DateTime, ..self }.plus_nanos(shift)?;
                        Moment { kind: MomentKind::Date, hour: 0, minute: 0, second: 0, nanos: 0, ..at }
                    }
                    _ => self.plus_nanos(shift)?,
                };
                Some(moved.with_zone(zone))
            }
            _ => Some(self.with_zone(zone)),
        }
    }

    /// The order of two moments of the same type.
    pub fn compare(self, other: Moment, implicit: i16) -> Ordering {
        self.utc_nanos(implicit).cmp(&other.utc_nanos(implicit))
    }

    /// A cast to another type (F&O section 17.1.5).
    pub fn cast(self, kind: MomentKind) -> Option<Moment> {
        use MomentKind as K;
        let base = Moment { kind, zone: self.zone, ..Moment::BASE };
        Some(match (self.kind, kind) {
            (a, b) if a == b => self,
            (K::DateTime, K::Time) => Moment {
                hour: self.hour,
                minute: self.minute,
                second: self.second,
                nanos: self.nanos,
                ..base
            },
            (K::DateTime | K::Date, K::DateTime) | (K::DateTime, K::Date) => {
                Moment { year: self.year, month: self.month, day: self.day, ..base }
            }
            (K::DateTime | K::Date, K::GYear) => Moment { year: self.year, ..base },
            (K::DateTime | K::Date, K::GYearMonth) => Moment { year: self.year, month: self.month, ..base },
            (K::DateTime | K::Date, K::GMonth) => Moment { month: self.month, ..base },
            (K::DateTime | K::Date, K::GMonthDay) => Moment { month: self.month, day: self.day, ..base },
            (K::DateTime | K::Date, K::GDay) => Moment { day: self.day, ..base },
            _ => return None,
        })
    }

    /// 1 = Monday to 7 = Sunday.
    pub fn weekday(self) -> u8 {
        let days = days_from_civil(i64::from(self.year), self.month, self.day);
        ((days + 3).rem_euclid(7) + 1) as u8
    }

    /// The day of the year, from 1.
    pub fn day_of_year(self) -> u16 {
        let start = days_from_civil(i64::from(self.year), 1, 1);
        (days_from_civil(i64::from(self.year), self.month, self.day) - start + 1) as u16
    }

    /// The lexical form.
    pub fn to_text(self) -> String {
        use MomentKind as K;
        let mut out = String::new();
        let year = |out: &mut String| {
            if self.year < 0 {
                out.push('-');
            }
            let _ = write!(out, "{:04}", self.year.unsigned_abs());
        };
        let _ = match self.kind {
            K::DateTime => {
                year(&mut out);
                write!(out, "-{:02}-{:02}T", self.month, self.day)
            }
            K::Date => {
                year(&mut out);
                write!(out, "-{:02}-{:02}", self.month, self.day)
            }
            K::Time => Ok(()),
            K::GYear => {
                year(&mut out);
                Ok(())
            }
            K::GYearMonth => {
                year(&mut out);
                write!(out, "-{:02}", self.month)
            }
            K::GMonth => write!(out, "--{:02}", self.month),
            K::GMonthDay => write!(out, "--{:02}-{:02}", self.month, self.day),
            K::GDay => write!(out, "---{:02}", self.day),
        };
        if matches!(self.kind, K::DateTime | K::Time) {
            let _ = write!(out, "{:02}:{:02}:{:02}", self.hour, self.minute, self.second);
            push_fraction(self.nanos, &mut out);
        }
        push_zone(self.zone, &mut out);
        out
    }
}

/// `.5`, without trailing zeros; nothing for 0.
fn push_fraction(nanos: u32, out: &mut String) {
    if nanos > 0 {
        let digits = format!("{nanos:09}");
        out.push('.');
        out.push_str(digits.trim_end_matches('0'));
    }
}

fn push_zone(zone: Option<i16>, out: &mut String) {
    let _ = match zone {
        None => Ok(()),
        Some(0) => out.write_char('Z'),
        Some(z) => {
            let sign = if z < 0 { '-' } else { '+' };
            write!(out, "{sign}{:02}:{:02}", z.unsigned_abs() / 60, z.unsigned_abs() % 60)
        }
    };
}

impl Duration {
    /// A duration of days, hours, minutes and seconds.
    pub fn day_time(nanos: i128) -> Duration {
        Duration { kind: DurationKind::DayTime, months: 0, nanos }
    }

    /// A duration of years and months.
    pub fn year_month(months: i64) -> Duration {
        Duration { kind: DurationKind::YearMonth, months, nanos: 0 }
    }

    /// From the lexical form; `None`: it is not one of that type, or too long.
    pub fn parse(kind: DurationKind, text: &str) -> Option<Duration> {
        let mut s = Scan(text);
        let negative = s.take('-').is_some();
        s.take('P')?;
        let (mut months, mut nanos) = (0i64, 0i128);
        let mut units = "YMD".to_owned();
        let mut any = false;
        let mut time = false;
        while !s.0.is_empty() {
            if s.take('T').is_some() {
                if time || s.0.is_empty() {
                    return None;
                }
                time = true;
                units = "HMS".to_owned();
                continue;
            }
            let number: i64 = s.digits(1, 18)?.parse().ok()?;
            let fraction = if s.0.starts_with('.') { Some(s.fraction()?) } else { None };
            let unit = s.0.chars().next()?;
            s.take(unit)?;
            let at = units.find(unit)?;
            units = units[at + 1..].to_owned();
            any = true;
            if fraction.is_some() && unit != 'S' {
                return None;
            }
            match (time, unit) {
                (false, 'Y') => months = months.checked_add(number.checked_mul(12)?)?,
                (false, 'M') => months = months.checked_add(number)?,
                (false, _) => nanos += i128::from(number) * DAY,
                (true, 'H') => nanos += i128::from(number) * 3600 * NANOS,
                (true, 'M') => nanos += i128::from(number) * 60 * NANOS,
                (true, _) => nanos += i128::from(number) * NANOS + i128::from(fraction.unwrap_or(0)),
            }
        }
        let upper = text.trim_start_matches('-');
        let fits = match kind {
            DurationKind::Duration => true,
            DurationKind::YearMonth => !upper.contains(['D', 'T']),
            DurationKind::DayTime => {
                !upper.contains('Y') && !upper.split('T').next().is_some_and(|date| date.contains('M'))
            }
        };
        if !any || !fits {
            return None;
        }
        Some(if negative {
            Duration { kind, months: -months, nanos: -nanos }
        } else {
            Duration { kind, months, nanos }
        })
    }

    /// A cast to another type.
    pub fn cast(self, kind: DurationKind) -> Duration {
        match kind {
            DurationKind::Duration => Duration { kind, ..self },
            DurationKind::YearMonth => Duration { kind, nanos: 0, ..self },
            DurationKind::DayTime => Duration { kind, months: 0, ..self },
        }
    }

    /// The canonical lexical form.
    pub fn to_text(self) -> String {
        let mut out = String::new();
        if self.months < 0 || self.nanos < 0 {
            out.push('-');
        }
        out.push('P');
        let (months, nanos) = (self.months.unsigned_abs(), self.nanos.unsigned_abs());
        let unit = |out: &mut String, n: u128, unit: char| {
            if n > 0 {
                let _ = write!(out, "{n}{unit}");
            }
        };
        unit(&mut out, u128::from(months / 12), 'Y');
        unit(&mut out, u128::from(months % 12), 'M');
        unit(&mut out, nanos / DAY as u128, 'D');
        let clock = nanos % DAY as u128;
        if clock > 0 {
            out.push('T');
            let (seconds, fraction) = (clock / NANOS as u128, (clock % NANOS as u128) as u32);
            unit(&mut out, seconds / 3600, 'H');
            unit(&mut out, seconds / 60 % 60, 'M');
            if seconds % 60 > 0 || fraction > 0 {
                let _ = write!(out, "{}", seconds % 60);
                push_fraction(fraction, &mut out);
                out.push('S');
            }
        }
        if self.months == 0 && self.nanos == 0 {
            out.push_str(if self.kind == DurationKind::YearMonth { "0M" } else { "T0S" });
        }
        out
    }
}

/// Whether an astronomical year has a 29th of February.
pub fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// The number of days of a month of an astronomical year.
pub fn days_in_month(year: i64, month: u8) -> u8 {
    match month {
        2 => 28 + u8::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 of a date of the proleptic Gregorian calendar, by its astronomical year.
pub fn days_from_civil(year: i64, month: u8, day: u8) -> i64 {
    // In years that begin in March the leap day is the last.
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let month = (i64::from(month) + 9) % 12;
    let of_year = (153 * month + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The inverse of [`days_from_civil`].
pub fn civil_from_days(days: i64) -> (i64, u8, u8) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = (of_year - (153 * month + 2) / 5 + 1) as u8;
    let month = (if month < 10 { month + 3 } else { month - 9 }) as u8;
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use MomentKind as K;

    #[test]
    fn reads_and_writes_moments() {
        for (kind, text, shown) in [
            (K::DateTime, "2002-10-10T12:00:00-05:00", "2002-10-10T12:00:00-05:00"),
            (K::DateTime, "1999-12-31T24:00:00", "2000-01-01T00:00:00"),
            (K::DateTime, "2000-01-01T00:00:00.120Z", "2000-01-01T00:00:00.12Z"),
            (K::DateTime, "2000-01-01T00:00:00+00:00", "2000-01-01T00:00:00Z"),
            (K::DateTime, "-0044-03-15T00:00:00", "-0044-03-15T00:00:00"),
            (K::Date, "2004-02-29", "2004-02-29"),
            (K::Date, "0000-02-29", "0000-02-29"),
            (K::Date, "-0000-01-30", "0000-01-30"),
            (K::Date, "-0400-02-29", "-0400-02-29"),
            (K::Date, "12004-02-29+14:00", "12004-02-29+14:00"),
            (K::Time, "24:00:00", "00:00:00"),
            (K::Time, "13:20:10.5Z", "13:20:10.5Z"),
            (K::GYear, "2004", "2004"),
            (K::GYearMonth, "2004-02", "2004-02"),
            (K::GMonth, "--02", "--02"),
            (K::GMonthDay, "--02-29", "--02-29"),
            (K::GDay, "---31", "---31"),
        ] {
            assert_eq!(Moment::parse(kind, text).map(Moment::to_text).as_deref(), Some(shown), "{text}");
        }
        for (kind, text) in [
            (K::Date, "2003-02-29"),
            (K::Date, "-0001-02-29"),
            (K::Date, "2003-13-01"),
            (K::Date, "03-02-01"),
            (K::Date, "02003-02-01"),
            (K::DateTime, "2003-02-01"),
            (K::DateTime, "2003-02-01T25:00:00"),
            (K::DateTime, "2003-02-01T24:00:01"),
            (K::Time, "10:00"),
            (K::Time, "10:00:00+15:00"),
            (K::GMonthDay, "--02-30"),
        ] {
            assert!(Moment::parse(kind, text).is_none(), "{text}");
        }
    }

    #[test]
    fn moves_moments() {
        let date = |t| Moment::parse(K::Date, t).unwrap_or_else(|| panic!("{t}"));
        assert_eq!(date("2001-01-31").plus_months(1).map(Moment::to_text).as_deref(), Some("2001-02-28"));
        assert_eq!(date("0000-12-01").plus_months(1).map(Moment::to_text).as_deref(), Some("0001-01-01"));
        assert_eq!(
            date("2000-02-28").plus_nanos(2 * DAY).map(Moment::to_text).as_deref(),
            Some("2000-03-01")
        );
        assert_eq!(
            date("2002-03-07-07:00").adjusted(Some(-600)).map(Moment::to_text).as_deref(),
            Some("2002-03-06-10:00")
        );
        assert_eq!((date("2006-09-08").weekday(), date("2004-12-31").day_of_year()), (5, 366));
        for days in [-1_000_000i64, -719_468, -1, 0, 1, 11_016, 1_000_000] {
            let (y, m, d) = civil_from_days(days);
            assert_eq!(days_from_civil(y, m, d), days);
        }
    }

    #[test]
    fn reads_and_writes_durations() {
        use DurationKind as D;
        for (kind, text, shown) in [
            (D::Duration, "P1Y2M3DT10H30M1.5S", "P1Y2M3DT10H30M1.5S"),
            (D::DayTime, "P0DT36H", "P1DT12H"),
            (D::DayTime, "-PT90S", "-PT1M30S"),
            (D::DayTime, "PT0S", "PT0S"),
            (D::YearMonth, "P20M", "P1Y8M"),
            (D::YearMonth, "-P0Y", "P0M"),
        ] {
            assert_eq!(Duration::parse(kind, text).map(Duration::to_text).as_deref(), Some(shown), "{text}");
        }
        for (kind, text) in [
            (D::Duration, "P"),
            (D::Duration, "P1Y2MT"),
            (D::Duration, "1Y"),
            (D::Duration, "P1M1Y"),
            (D::Duration, "P1.5D"),
            (D::YearMonth, "P1D"),
            (D::DayTime, "P1M"),
        ] {
            assert!(Duration::parse(kind, text).is_none(), "{text}");
        }
    }
}
