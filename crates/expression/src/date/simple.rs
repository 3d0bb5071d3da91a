//! Reading by patterns of `SimpleDateFormat`, leniently as Java does.

use super::{MAX_WIDTH, MILLISECOND, Moment, Part, read_offset, read_zone_name};
use jiff::Zoned;
use jiff::civil::{Date, Time};
use jiff::tz::Offset;
use xpath::atomic::calendar::{MONTHS, WEEKDAYS};

/// What a pattern of `SimpleDateFormat` reads. What it does not say is the beginning of 1970.
pub(super) struct Simple {
    year: i64,
    /// From 0.
    month: i64,
    day: i64,
    hour: i64,
    afternoon: bool,
    minute: i64,
    second: i64,
    millisecond: i64,
    offset: Option<Offset>,
    zone: Option<String>,
}

impl Simple {
    pub(super) fn read(parts: &[Part], mut text: &str) -> Option<Simple> {
        let mut simple = Simple {
            year: 1970,
            month: 0,
            day: 1,
            hour: 0,
            afternoon: false,
            minute: 0,
            second: 0,
            millisecond: 0,
            offset: None,
            zone: None,
        };
        let is_number = |part: Option<&Part>| match part {
            Some(Part::Field('M' | 'L', width)) => *width < 3,
            Some(Part::Field(letter, _)) => !"EGazZX".contains(*letter),
            _ => false,
        };
        for (at, part) in parts.iter().enumerate() {
            text = match part {
                Part::Text(literal) => text.strip_prefix(literal.as_str())?,
                // A number directly before another one has its width.
                Part::Field(letter, width) if is_number(Some(part)) => {
                    let most = if is_number(parts.get(at + 1)) { *width } else { MAX_WIDTH };
                    simple.number(*letter, *width, most, text)?
                }
                Part::Field(letter, _) => simple.named(*letter, text)?,
                Part::Open | Part::Close => return None,
            };
        }
        Some(simple)
    }

    fn number<'t>(&mut self, letter: char, width: usize, most: usize, text: &'t str) -> Option<&'t str> {
        let text = text.trim_start_matches([' ', '\t']);
        let digits = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let value: i64 = text.get(..digits)?.parse().ok()?;
        match letter {
            // Two digits are a year between 80 years ago and 20 years ahead.
            'y' if width <= 2 && digits == 2 => {
                let now = i64::from(Zoned::now().year());
                let century = now - now.rem_euclid(100);
                let year = century + value;
                self.year = if year > now + 20 {
                    year - 100
                } else if year <= now - 80 {
                    year + 100
                } else {
                    year
                };
            }
            'y' => self.year = value,
            'M' | 'L' => self.month = value - 1,
            'd' => self.day = value,
            'D' => (self.month, self.day) = (0, value),
            'H' => self.hour = value,
            'k' => self.hour = if value == 24 { 0 } else { value },
            'K' => self.hour = value,
            'h' => self.hour = if value == 12 { 0 } else { value },
            'm' => self.minute = value,
            's' => self.second = value,
            MILLISECOND => self.millisecond = value,
            // Weeks and days of the week change nothing beside a date.
            _ => {}
        }
        text.get(digits..)
    }

    fn named<'t>(&mut self, letter: char, text: &'t str) -> Option<&'t str> {
        let text = text.trim_start_matches([' ', '\t']);
        let starts = |name: &str| {
            text.get(..name.len())
                .filter(|found| found.eq_ignore_ascii_case(name))
                .map(|_| &text[name.len()..])
        };
        let of = |names: &'static [&'static str]| {
            names.iter().enumerate().find_map(|(number, name)| {
                Some((number as i64, starts(name).or_else(|| starts(&name[..3]))?))
            })
        };
        match letter {
            'M' | 'L' => {
                let (month, rest) = of(&MONTHS)?;
                self.month = month;
                Some(rest)
            }
            'E' => Some(of(&WEEKDAYS)?.1),
            'G' => starts("AD"),
            'a' => {
                self.afternoon = starts("PM").is_some();
                starts("AM").or_else(|| starts("PM"))
            }
            // `X` is of ISO 8601; the others also have names.
            _ => {
                let signed =
                    text.strip_prefix("GMT").filter(|rest| rest.starts_with(['+', '-'])).unwrap_or(text);
                if let Some((offset, rest)) = read_offset(signed) {
                    self.offset = Some(offset);
                    return Some(rest);
                }
                let (name, rest) = read_zone_name(text).filter(|_| letter != 'X')?;
                if matches!(name, "UTC" | "GMT") {
                    self.offset = Some(Offset::UTC);
                }
                self.zone = Some(name.to_owned());
                Some(rest)
            }
        }
    }

    pub(super) fn moment(self) -> Option<Moment> {
        let year = self.year.checked_add(self.month.div_euclid(12))?;
        let month = i8::try_from(self.month.rem_euclid(12) + 1).ok()?;
        let first = Date::new(i16::try_from(year).ok()?, month, 1).ok()?;
        let hours = self.hour.checked_add(if self.afternoon { 12 } else { 0 })?;
        let seconds = (self.day.checked_sub(1)?.checked_mul(86_400)?)
            .checked_add(hours.checked_mul(3600)?)?
            .checked_add(self.minute.checked_mul(60)?)?
            .checked_add(self.second)?;
        let since = jiff::SignedDuration::from_secs(seconds)
            .checked_add(jiff::SignedDuration::from_millis(self.millisecond))?;
        let time = first.to_datetime(Time::midnight()).checked_add(since).ok()?;
        Some(Moment {
            date: Some(time.date()),
            time: Some(time.time()),
            offset: self.offset,
            zone: self.zone,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::DatePattern;

    #[test]
    fn beginnings_are_read_as_java_reads_them() {
        let read = |text: &str, pattern: &str| {
            let moment = DatePattern::simple(pattern)?.parse(text)?;
            DatePattern::simple("yyyy-MM-dd HH:mm:ss.SSS")?.format(&moment)
        };
        for (text, pattern, wanted) in [
            ("2020-01-31T10:20:30Z", "yyyy-MM-dd", Ok("2020-01-31 00:00:00.000")),
            ("2020-1-5", "yyyy-MM-dd", Ok("2020-01-05 00:00:00.000")),
            ("2020-01-31T10:20:30.5Z", "yyyy-MM-dd'T'HH:mm:ss.SSS", Ok("2020-01-31 10:20:30.005")),
            ("20200131102030", "yyyyMMddHHmmss", Ok("2020-01-31 10:20:30.000")),
            ("Jan 5, 2020", "MMMM d, yyyy", Ok("2020-01-05 00:00:00.000")),
            ("january 5 2020 3:05 pm", "MMM d yyyy h:mm a", Ok("2020-01-05 15:05:00.000")),
            ("12:05 AM", "hh:mm a", Ok("1970-01-01 00:05:00.000")),
            ("2020-01-32", "yyyy-MM-dd", Ok("2020-02-01 00:00:00.000")),
            ("2020-13-01 25:61", "yyyy-MM-dd HH:mm", Ok("2021-01-02 02:01:00.000")),
            ("2020", "yyyy", Ok("2020-01-01 00:00:00.000")),
            ("Fri Jan 31 2020", "EEE MMM dd yyyy", Ok("2020-01-31 00:00:00.000")),
            ("31/01/2020", "yyyy-MM-dd", Err(())),
            ("x", "yyyy", Err(())),
            ("99999999999999999999", "yyyy", Err(())),
            ("2020-01-99999999999999999", "yyyy-MM-dd", Err(())),
        ] {
            assert_eq!(read(text, pattern).as_deref().map_err(|_| ()), wanted, "{text} by {pattern}");
        }
        let offset =
            |text: &str, pattern: &str| DatePattern::simple(pattern)?.parse(text)?.milliseconds("UTC");
        for (text, pattern) in [
            ("2020-01-31T12:00:00+02:00", "yyyy-MM-dd'T'HH:mm:ssXXX"),
            ("2020-01-31T12:00:00+0200", "yyyy-MM-dd'T'HH:mm:ssZ"),
            ("2020-01-31 12:00 GMT+02:00", "yyyy-MM-dd HH:mm z"),
            ("2020-01-31 10:00 UTC", "yyyy-MM-dd HH:mm z"),
        ] {
            assert_eq!(offset(text, pattern), Ok(1_580_464_800_000), "{text} by {pattern}");
        }
        let short = |text: &str| {
            DatePattern::simple("dd/MM/yy")?.parse(text).and_then(|m| DatePattern::simple("yyyy")?.format(&m))
        };
        assert_eq!((short("01/01/05"), short("01/01/99")), (Ok("2005".into()), Ok("1999".into())));
    }
}
