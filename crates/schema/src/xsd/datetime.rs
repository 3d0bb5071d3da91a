//! Points in time and durations of XML Schema (Part 2, 3.2.6 to 3.2.14), and their partial order.

use std::cmp::Ordering;

/// Which of the fields of a date and time a type has.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `2001-10-26T21:32:52`
    DateTime,
    /// `21:32:52`
    Time,
    /// `2001-10-26`
    Date,
    /// `2001-10`
    YearMonth,
    /// `2001`
    Year,
    /// `--10-26`
    MonthDay,
    /// `---26`
    Day,
    /// `--10`
    Month,
}

/// A point in time, possibly a recurring one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Seconds since the year 0, as if the time zone were UTC.
    seconds: i128,
    /// Digits of the fraction of a second, without trailing zeros.
    fraction: Box<str>,
    /// Minutes east of UTC.
    zone: Option<i32>,
}

/// A duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    months: i128,
    seconds: i128,
    fraction: Box<str>,
    negative: bool,
}

/// Reads one field after the other.
struct Fields<'a> {
    rest: &'a str,
}

impl<'a> Fields<'a> {
    fn eat(&mut self, expected: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(expected)?;
        Some(())
    }

    fn digits(&mut self) -> &'a str {
        let end = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        digits
    }

    /// Exactly two digits, between `low` and `high`.
    fn two(&mut self, low: i64, high: i64) -> Option<i64> {
        let digits = self.rest.get(..2).filter(|d| d.bytes().all(|b| b.is_ascii_digit()))?;
        self.rest = &self.rest[2..];
        digits.parse().ok().filter(|n| (low..=high).contains(n))
    }

    fn year(&mut self) -> Option<i64> {
        let negative = self.eat("-").is_some();
        let digits = self.digits();
        if digits.len() < 4 || (digits.len() > 4 && digits.starts_with('0')) || digits.len() > 15 {
            return None;
        }
        let year: i64 = digits.parse().ok().filter(|&y| y != 0)?;
        // There is no year 0: -1 is the year before 1.
        Some(if negative { 1 - year } else { year })
    }

    /// Hours, minutes, seconds as (seconds, fraction).
    fn time(&mut self) -> Option<(i128, &'a str)> {
        let hour = self.two(0, 24)?;
        self.eat(":")?;
        let minute = self.two(0, 59)?;
        self.eat(":")?;
        let second = self.two(0, 59)?;
        let mut fraction = "";
        if self.eat(".").is_some() {
            fraction = self.digits();
            if fraction.is_empty() {
                return None;
            }
            fraction = fraction.trim_end_matches('0');
        }
        if hour == 24 && (minute, second, fraction) != (0, 0, "") {
            return None;
        }
        Some((i128::from(hour * 3600 + minute * 60 + second), fraction))
    }

    fn zone(&mut self) -> Option<Option<i32>> {
        if self.rest.is_empty() {
            return Some(None);
        }
        if self.eat("Z").is_some() {
            return Some(Some(0));
        }
        let sign = if self.eat("+").is_some() {
            1
        } else {
            self.eat("-")?;
            -1
        };
        let hours = self.two(0, 14)?;
        self.eat(":")?;
        let minutes = self.two(0, 59)?;
        (hours < 14 || minutes == 0).then_some(Some(sign * (hours * 60 + minutes) as i32))
    }
}

fn is_leap(year: i64) -> bool {
    year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

fn month_length(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days from 0000-03-01 to the date.
fn days(year: i64, month: i64, day: i64) -> i128 {
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let year = i128::from(year);
    year * 365 + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + i128::from((153 * month + 2) / 5 + day - 1)
}

impl Moment {
    /// Parses a value of the shape.
    pub fn parse(text: &str, shape: Shape) -> Option<Moment> {
        let mut fields = Fields { rest: text };
        // A leap year, so that --02-29 is a day of it.
        let (mut year, mut month, mut day) = (1972, 1, 1);
        let (mut seconds, mut fraction) = (0, "");
        if matches!(shape, Shape::DateTime | Shape::Date | Shape::YearMonth | Shape::Year) {
            year = fields.year()?;
        }
        match shape {
            Shape::DateTime | Shape::Date | Shape::YearMonth => fields.eat("-")?,
            Shape::MonthDay | Shape::Month => fields.eat("--")?,
            Shape::Day => fields.eat("---")?,
            Shape::Time | Shape::Year => {}
        }
        if matches!(shape, Shape::DateTime | Shape::Date | Shape::YearMonth | Shape::MonthDay | Shape::Month)
        {
            month = fields.two(1, 12)?;
        }
        if matches!(shape, Shape::DateTime | Shape::Date | Shape::MonthDay) {
            fields.eat("-")?;
        }
        if shape == Shape::Month {
            // The first edition wrote --MM--; both are in use.
            let _ = fields.eat("--");
        }
        if matches!(shape, Shape::DateTime | Shape::Date | Shape::MonthDay | Shape::Day) {
            day = fields.two(1, month_length(year, month))?;
        }
        if shape == Shape::DateTime {
            fields.eat("T")?;
        }
        if matches!(shape, Shape::DateTime | Shape::Time) {
            (seconds, fraction) = fields.time()?;
            if shape == Shape::Time {
                seconds %= 86_400;
            }
        }
        let zone = fields.zone()?;
        if !fields.rest.is_empty() {
            return None;
        }
        Some(Moment { seconds: days(year, month, day) * 86_400 + seconds, fraction: fraction.into(), zone })
    }

    /// The order on the time line; `None` where it depends on the time zone that one of them does not have.
    pub fn compare(&self, other: &Moment) -> Option<Ordering> {
        const FOURTEEN_HOURS: i128 = 14 * 3600;
        let ((_, a, fraction), (_, b, other_fraction)) = (self.instant(), other.instant());
        let (a, b) = ((a, fraction), (b, other_fraction));
        if self.zone.is_some() == other.zone.is_some() {
            return Some(a.cmp(&b));
        }
        // The one without a zone may be up to 14 hours earlier or later.
        let early = (b.0 - FOURTEEN_HOURS, b.1);
        let late = (b.0 + FOURTEEN_HOURS, b.1);
        if a < early {
            Some(Ordering::Less)
        } else if a > late {
            Some(Ordering::Greater)
        } else {
            None
        }
    }

    /// A key that equal moments share: whether there is a zone, seconds, and digits of the fraction of a second.
    pub fn instant(&self) -> (bool, i128, &str) {
        (self.zone.is_some(), self.seconds - i128::from(self.zone.unwrap_or(0)) * 60, &self.fraction)
    }
}

impl Span {
    /// Parses `-?PnYnMnDTnHnMnS`.
    pub fn parse(text: &str) -> Option<Span> {
        let mut fields = Fields { rest: text };
        let negative = fields.eat("-").is_some();
        fields.eat("P")?;
        let (mut months, mut seconds, mut fraction) = (0_i128, 0_i128, "");
        let mut some = false;
        let mut in_time = false;
        let mut order = "YMD";
        while !fields.rest.is_empty() {
            if !in_time && fields.eat("T").is_some() {
                in_time = true;
                order = "HMS";
                some = false;
                continue;
            }
            let digits = fields.digits();
            // `PT.5S`: the grammar of XML Schema 1.1 and the engines have it.
            let bare = in_time && digits.is_empty() && fields.rest.starts_with('.');
            if (digits.is_empty() && !bare) || digits.len() > 18 {
                return None;
            }
            let number: i128 = if bare { 0 } else { digits.parse().ok()? };
            let mut has_fraction = false;
            if in_time && fields.eat(".").is_some() {
                has_fraction = true;
                fraction = fields.digits();
                if fraction.is_empty() {
                    return None;
                }
                fraction = fraction.trim_end_matches('0');
            }
            let unit = fields.rest.chars().next()?;
            let place = order.find(unit)?;
            order = &order[place + 1..];
            fields.rest = &fields.rest[1..];
            if has_fraction && unit != 'S' {
                return None;
            }
            some = true;
            match (in_time, unit) {
                (false, 'Y') => months += number * 12,
                (false, 'M') => months += number,
                (false, _) => seconds += number * 86_400,
                (true, 'H') => seconds += number * 3600,
                (true, 'M') => seconds += number * 60,
                (true, _) => seconds += number,
            }
        }
        // At least one field, and at least one behind a T.
        if !some {
            return None;
        }
        let negative = negative && (months, seconds, fraction) != (0, 0, "");
        Some(Span { months, seconds, fraction: fraction.into(), negative })
    }

    /// The order; `None` where it depends on the lengths of months.
    pub fn compare(&self, other: &Span) -> Option<Ordering> {
        if self == other {
            return Some(Ordering::Equal);
        }
        let mut found = None;
        for (year, month) in [(1696, 9), (1697, 2), (1903, 3), (1903, 7)] {
            let order = self.from(year, month).partial_cmp(&other.from(year, month))?;
            if found.is_some_and(|f| f != order) {
                return None;
            }
            found = Some(order);
        }
        found
    }

    /// A key that equal durations share.
    pub fn end(&self) -> (i128, i128) {
        self.from(1696, 9)
    }

    /// The end of the duration that starts on the first of that month: seconds, and billionths of a second.
    fn from(&self, year: i64, month: i64) -> (i128, i128) {
        let sign = if self.negative { -1 } else { 1 };
        let months = i128::from(month - 1) + sign * self.months;
        let year = i128::from(year) + months.div_euclid(12);
        // 18 digits of years stay far inside an i64.
        let year = year.clamp(i128::from(i64::MIN / 1000), i128::from(i64::MAX / 1000)) as i64;
        let day = days(year, months.rem_euclid(12) as i64 + 1, 1);
        let mut nanos = 0_i128;
        for digit in self.fraction.bytes().chain(std::iter::repeat(b'0')).take(18) {
            nanos = nanos * 10 + i128::from(digit - b'0');
        }
        let (mut seconds, mut nanos) = (day * 86_400 + sign * self.seconds, sign * nanos);
        if nanos < 0 {
            seconds -= 1;
            nanos += 1_000_000_000_000_000_000;
        }
        (seconds, nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        use Shape::*;
        for (shape, good, bad) in [
            (
                DateTime,
                vec!["2001-10-26T21:32:52", "2001-10-26T24:00:00Z", "-0044-03-15T00:00:00.5-05:00"],
                vec![
                    "2001-10-26",
                    "2001-10-26T24:00:01",
                    "2001-02-29T00:00:00",
                    "0000-01-01T00:00:00",
                    "+2001-10-26T21:32:52",
                    "2001-10-26T21:32:52+14:01",
                    "01-10-26T21:32:52",
                    "2001-10-26T21:32",
                    "2001-10-26T21:32:52.",
                ],
            ),
            (
                Time,
                vec!["21:32:52", "24:00:00", "21:32:52+02:00"],
                vec!["21:32", "25:25:10", "-10:00:00", "1:20:10"],
            ),
            (
                Date,
                vec!["2000-02-29", "12000-01-01Z"],
                vec!["2001-02-29", "1900-02-29", "02001-01-01", "2001-13-01"],
            ),
            (MonthDay, vec!["--02-29", "--12-31Z"], vec!["--02-30", "-01-01", "--1-1"]),
            (Day, vec!["---31", "---01+10:00"], vec!["---32", "--30", "---1"]),
            (Month, vec!["--05", "--05--", "--11Z"], vec!["-05", "--13", "--1"]),
            (Year, vec!["2001", "-2001", "20011"], vec!["01", "0000", "2001-12"]),
            (YearMonth, vec!["2001-10"], vec!["2001", "2001-13"]),
        ] {
            good.iter().for_each(|text| assert!(Moment::parse(text, shape).is_some(), "{text}"));
            bad.iter().for_each(|text| assert!(Moment::parse(text, shape).is_none(), "{text}"));
        }
        let at = |text| Moment::parse(text, DateTime).expect("a date and time");
        for (a, b, order) in [
            ("2000-01-15T00:00:00", "2000-02-15T00:00:00", Some(Ordering::Less)),
            ("2000-01-15T12:00:00", "2000-01-16T12:00:00Z", Some(Ordering::Less)),
            ("2000-01-01T12:00:00", "1999-12-31T23:00:00Z", None),
            ("2000-01-16T12:00:00", "2000-01-16T12:00:00Z", None),
            ("2000-01-16T12:00:00+01:00", "2000-01-16T11:00:00Z", Some(Ordering::Equal)),
            ("1999-12-31T24:00:00", "2000-01-01T00:00:00", Some(Ordering::Equal)),
        ] {
            assert_eq!(at(a).compare(&at(b)), order, "{a} {b}");
        }
    }

    #[test]
    fn spans() {
        let span = |text| Span::parse(text).unwrap_or_else(|| panic!("{text}"));
        for bad in [
            "P", "PT", "P1", "1Y", "P1YT", "P1S", "P-1Y", "P1D1M", "P1.5D", "PT1.S", "PT.S", "PT.5M", "P.5D",
            "+P1Y", "P1Y ",
        ] {
            assert!(Span::parse(bad).is_none(), "{bad}");
        }
        for (a, b, order) in [
            ("P1Y", "P12M", Some(Ordering::Equal)),
            ("P1M", "P30D", None),
            ("P1M", "P27D", Some(Ordering::Greater)),
            ("-P1D", "P0Y", Some(Ordering::Less)),
            ("PT0.5S", "PT0.25S", Some(Ordering::Greater)),
            ("PT.5S", "PT0.50S", Some(Ordering::Equal)),
            ("-PT0.5S", "-PT0.25S", Some(Ordering::Less)),
            ("P5M", "P153D", None),
        ] {
            assert_eq!(span(a).compare(&span(b)), order, "{a} {b}");
        }
    }
}
