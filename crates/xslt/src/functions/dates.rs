//! EXSLT dates and times: XML Schema dates, times and durations, and the functions on them. A value in none of
//! the expected forms gives NaN or the empty string, as the EXSLT pages say.

use std::time::{SystemTime, UNIX_EPOCH};
use xpath::atomic::calendar::{MONTHS, WEEKDAYS, civil_from_days, days_from_civil, days_in_month, is_leap};

/// Which fields a lexical value carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DateForm {
    DateTime,
    Date,
    YearMonth,
    Year,
    MonthDay,
    Month,
    Day,
    Time,
}

/// A parsed XML Schema date or time. Absent fields have their lowest value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Moment {
    pub kind: DateForm,
    /// No year 0: -1 is the year before 1.
    pub year: i64,
    pub month: u8,
    pub day: u8,
    pub hour: u8,
    pub minute: u8,
    pub second: f64,
    /// Minutes east of UTC.
    pub zone: Option<i32>,
}

/// Months and seconds: the two parts of a duration that cannot be converted into each other.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Duration {
    pub months: i64,
    pub seconds: f64,
}

impl DateForm {
    fn has_year(self) -> bool {
        matches!(self, DateForm::DateTime | DateForm::Date | DateForm::YearMonth | DateForm::Year)
    }
    fn has_month(self) -> bool {
        matches!(
            self,
            DateForm::DateTime | DateForm::Date | DateForm::YearMonth | DateForm::MonthDay | DateForm::Month
        )
    }
    fn has_day(self) -> bool {
        matches!(self, DateForm::DateTime | DateForm::Date | DateForm::MonthDay | DateForm::Day)
    }
    fn has_time(self) -> bool {
        matches!(self, DateForm::DateTime | DateForm::Time)
    }
}

impl Moment {
    /// The current time, in UTC.
    pub fn now() -> Moment {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()) as i64;
        let (year, month, day) = civil_from_days(seconds.div_euclid(86400));
        let rest = seconds.rem_euclid(86400);
        Moment {
            kind: DateForm::DateTime,
            year: historical(year),
            month,
            day,
            hour: (rest / 3600) as u8,
            minute: (rest / 60 % 60) as u8,
            second: (rest % 60) as f64,
            zone: Some(0),
        }
    }

    /// Reads any of the eight lexical forms.
    pub fn parse(text: &str) -> Option<Moment> {
        let text = text.trim_matches([' ', '\t', '\r', '\n']);
        let (body, zone) = split_zone(text)?;
        let mut moment =
            Moment { kind: DateForm::Time, year: 1, month: 1, day: 1, hour: 0, minute: 0, second: 0.0, zone };
        if let Some(rest) = body.strip_prefix("---") {
            moment.kind = DateForm::Day;
            moment.day = two(rest)?;
        } else if let Some(rest) = body.strip_prefix("--") {
            match rest.split_once('-') {
                Some((month, "-")) => {
                    moment.kind = DateForm::Month;
                    moment.month = two(month)?;
                }
                Some((month, day)) => {
                    moment.kind = DateForm::MonthDay;
                    moment.month = two(month)?;
                    moment.day = two(day)?;
                    moment.year = 4; // 29 February is a day of a year
                }
                None => {
                    moment.kind = DateForm::Month;
                    moment.month = two(rest)?;
                }
            }
        } else if body.len() > 2 && body.as_bytes()[2] == b':' {
            moment.time(body)?;
        } else {
            let (date, time) = match body.split_once('T') {
                Some((date, time)) => (date, Some(time)),
                None => (body, None),
            };
            moment.date(date)?;
            if let Some(time) = time {
                if moment.kind != DateForm::Date {
                    return None;
                }
                moment.time(time)?;
                moment.kind = DateForm::DateTime;
            }
        }
        moment.valid().then_some(moment)
    }

    fn date(&mut self, text: &str) -> Option<()> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let mut parts = text.split('-');
        let year = parts.next()?;
        if year.len() < 4
            || !year.bytes().all(|b| b.is_ascii_digit())
            || (year.len() > 4 && year.starts_with('0'))
        {
            return None;
        }
        let year: i64 = year.parse().ok().filter(|y| *y < 1_000_000_000)?;
        if year == 0 {
            return None;
        }
        self.year = if negative { -year } else { year };
        self.kind = DateForm::Year;
        if let Some(month) = parts.next() {
            self.month = two(month)?;
            self.kind = DateForm::YearMonth;
            if let Some(day) = parts.next() {
                self.day = two(day)?;
                self.kind = DateForm::Date;
            }
        }
        parts.next().is_none().then_some(())
    }

    fn time(&mut self, text: &str) -> Option<()> {
        let mut parts = text.split(':');
        self.hour = two(parts.next()?)?;
        self.minute = two(parts.next()?)?;
        let seconds = parts.next()?;
        let (whole, fraction) = seconds.split_once('.').map_or((seconds, None), |(w, f)| (w, Some(f)));
        two(whole)?;
        if fraction.is_some_and(|f| f.is_empty() || !f.bytes().all(|b| b.is_ascii_digit())) {
            return None;
        }
        self.second = seconds.parse().ok()?;
        parts.next().is_none().then_some(())
    }

    fn valid(&self) -> bool {
        (1..=12).contains(&self.month)
            && self.day >= 1
            && self.day <= days_in_month(astronomical(self.year), self.month)
            && self.minute < 60
            && self.second < 60.0
            && (self.hour < 24 || (self.hour == 24 && self.minute == 0 && self.second == 0.0))
    }

    /// Days since 1970-01-01.
    fn days(&self) -> i64 {
        days_from_civil(astronomical(self.year), self.month, self.day)
    }

    fn seconds_since_epoch(&self) -> f64 {
        let zone = f64::from(self.zone.unwrap_or(0)) * 60.0;
        self.days() as f64 * 86400.0
            + f64::from(self.hour) * 3600.0
            + f64::from(self.minute) * 60.0
            + self.second
            - zone
    }

    /// 0 = Monday.
    fn weekday(&self) -> i64 {
        (self.days() + 3).rem_euclid(7)
    }

    fn day_in_year(&self) -> i64 {
        self.days() - days_from_civil(astronomical(self.year), 1, 1) + 1
    }

    /// ISO 8601 week.
    fn week_in_year(&self) -> i64 {
        let thursday = self.days() - self.weekday() + 3;
        let (year, _, _) = civil_from_days(thursday);
        (thursday - days_from_civil(year, 1, 1)) / 7 + 1
    }

    fn write_zone(&self, out: &mut String) {
        match self.zone {
            None => {}
            Some(0) => out.push('Z'),
            Some(zone) => {
                let sign = if zone < 0 { '-' } else { '+' };
                out.push_str(&format!("{sign}{:02}:{:02}", zone.abs() / 60, zone.abs() % 60));
            }
        }
    }

    fn write_date(&self, out: &mut String) {
        if self.year < 0 {
            out.push('-');
        }
        out.push_str(&format!("{:04}", self.year.abs()));
        if self.kind != DateForm::Year {
            out.push_str(&format!("-{:02}", self.month));
        }
        if !matches!(self.kind, DateForm::Year | DateForm::YearMonth) {
            out.push_str(&format!("-{:02}", self.day));
        }
    }

    fn write_time(&self, out: &mut String) {
        out.push_str(&format!("{:02}:{:02}:", self.hour, self.minute));
        write_seconds(self.second, out);
    }

    /// The lexical form of its kind.
    pub fn write(&self) -> String {
        let mut out = String::new();
        match self.kind {
            DateForm::Time => self.write_time(&mut out),
            DateForm::DateTime => {
                self.write_date(&mut out);
                out.push('T');
                self.write_time(&mut out);
            }
            DateForm::MonthDay => out.push_str(&format!("--{:02}-{:02}", self.month, self.day)),
            DateForm::Month => out.push_str(&format!("--{:02}", self.month)),
            DateForm::Day => out.push_str(&format!("---{:02}", self.day)),
            _ => self.write_date(&mut out),
        }
        self.write_zone(&mut out);
        out
    }

    fn add(&self, duration: &Duration) -> Option<Moment> {
        if !self.kind.has_year() || duration.months.abs() > 12_000_000_000 || duration.seconds.abs() > 4e17 {
            return None;
        }
        let linear = astronomical(self.year) * 12 + i64::from(self.month) - 1 + duration.months;
        let year = historical(linear.div_euclid(12));
        let month = linear.rem_euclid(12) as u8 + 1;
        let day = self.day.min(days_in_month(astronomical(year), month));
        let time =
            f64::from(self.hour) * 3600.0 + f64::from(self.minute) * 60.0 + self.second + duration.seconds;
        let carry = (time / 86400.0).floor();
        let time = time - carry * 86400.0;
        let days = days_from_civil(astronomical(year), month, day) + carry as i64;
        let (year, month, day) = civil_from_days(days);
        let mut sum = Moment {
            kind: self.kind,
            year: historical(year),
            month,
            day,
            hour: (time / 3600.0) as u8,
            minute: (time % 3600.0 / 60.0) as u8,
            second: clean(time % 60.0),
            zone: self.zone,
        };
        // The result is as precise as necessary.
        sum.kind = if self.kind == DateForm::DateTime || sum.hour != 0 || sum.minute != 0 || sum.second != 0.0
        {
            DateForm::DateTime
        } else if self.kind == DateForm::Date || sum.day != 1 {
            DateForm::Date
        } else if self.kind == DateForm::YearMonth || sum.month != 1 {
            DateForm::YearMonth
        } else {
            DateForm::Year
        };
        if sum.kind == DateForm::DateTime && sum.zone.is_none() {
            sum.zone = Some(0);
        }
        Some(sum)
    }
}

impl Duration {
    /// Reads `-P1Y2M3DT4H5M6.7S`.
    pub fn parse(text: &str) -> Option<Duration> {
        let text = text.trim_matches([' ', '\t', '\r', '\n']);
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let mut rest = text.strip_prefix('P')?;
        let mut duration = Duration::default();
        let (mut in_time, mut fields, mut last) = (false, 0, 0);
        while !rest.is_empty() {
            if let Some(time) = rest.strip_prefix('T') {
                if in_time || time.is_empty() {
                    return None;
                }
                in_time = true;
                rest = time;
                continue;
            }
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
            let (number, unit) = (&rest[..end], rest.as_bytes()[end]);
            let rank = match (unit, in_time) {
                (b'Y', false) => 1,
                (b'M', false) => 2,
                (b'D', false) => 3,
                (b'H', true) => 4,
                (b'M', true) => 5,
                (b'S', true) => 6,
                _ => return None,
            };
            if rank <= last || number.is_empty() || number == "." || (number.contains('.') && rank != 6) {
                return None;
            }
            last = rank;
            fields += 1;
            let value: f64 = number.parse().ok().filter(|v: &f64| *v < 1e15)?;
            match rank {
                1 => duration.months += value as i64 * 12,
                2 => duration.months += value as i64,
                3 => duration.seconds += value * 86400.0,
                4 => duration.seconds += value * 3600.0,
                5 => duration.seconds += value * 60.0,
                _ => duration.seconds += value,
            }
            rest = &rest[end + 1..];
        }
        if negative {
            duration.months = -duration.months;
            duration.seconds = -duration.seconds;
        }
        (fields > 0).then_some(duration)
    }

    /// Its lexical form; `None` where months and seconds have different signs.
    pub fn write(&self) -> Option<String> {
        let (months, seconds) = (self.months, self.seconds);
        if (months > 0 && seconds < 0.0) || (months < 0 && seconds > 0.0) {
            return None;
        }
        let mut out = String::new();
        if months < 0 || seconds < 0.0 {
            out.push('-');
        }
        out.push('P');
        let (months, seconds) = (months.unsigned_abs(), seconds.abs());
        if months / 12 > 0 {
            out.push_str(&format!("{}Y", months / 12));
        }
        if months % 12 > 0 {
            out.push_str(&format!("{}M", months % 12));
        }
        let days = (seconds / 86400.0).floor();
        if days > 0.0 {
            out.push_str(&format!("{days}D"));
        }
        let time = clean(seconds - days * 86400.0);
        if time > 0.0 || months == 0 && days == 0.0 {
            out.push('T');
            let (hours, minutes) = ((time / 3600.0).floor(), (time % 3600.0 / 60.0).floor());
            if hours > 0.0 {
                out.push_str(&format!("{hours}H"));
            }
            if minutes > 0.0 {
                out.push_str(&format!("{minutes}M"));
            }
            let rest = clean(time % 60.0);
            if rest > 0.0 || time == 0.0 {
                out.push_str(&format!("{rest}S"));
            }
        }
        Some(out)
    }

    /// The sum of two durations.
    pub fn plus(&self, other: &Duration) -> Duration {
        Duration { months: self.months + other.months, seconds: clean(self.seconds + other.seconds) }
    }
}

/// Rounds to nanoseconds, against the noise of binary fractions.
fn clean(seconds: f64) -> f64 {
    (seconds * 1e9).round() / 1e9
}

fn write_seconds(seconds: f64, out: &mut String) {
    let text = format!("{seconds}");
    if seconds < 10.0 {
        out.push('0');
    }
    out.push_str(&text);
}

fn two(text: &str) -> Option<u8> {
    (text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

fn split_zone(text: &str) -> Option<(&str, Option<i32>)> {
    if let Some(body) = text.strip_suffix('Z') {
        return Some((body, Some(0)));
    }
    let bytes = text.as_bytes();
    if bytes.len() > 6 && bytes[bytes.len() - 3] == b':' && text.is_ascii() {
        let sign = bytes[bytes.len() - 6];
        if sign == b'+' || sign == b'-' {
            let (body, zone) = text.split_at(text.len() - 6);
            let (hours, minutes) = (i32::from(two(&zone[1..3])?), i32::from(two(&zone[4..6])?));
            if hours > 14 || minutes > 59 {
                return None;
            }
            let minutes = hours * 60 + minutes;
            return Some((body, Some(if sign == b'-' { -minutes } else { minutes })));
        }
    }
    Some((text, None))
}

/// The result of a function of the module.
#[derive(Debug, PartialEq)]
pub enum DateResult {
    Text(String),
    Number(f64),
    Boolean(bool),
}

/// The functions that take strings only. `None`: there is no such function (of that many arguments).
pub fn call(name: &str, arguments: &[String]) -> Option<DateResult> {
    use DateResult::{Boolean, Number, Text};
    let nan = Number(f64::NAN);
    let empty = || Text(String::new());
    // Most functions work on the argument or, without one, on the current time.
    let moment = match arguments {
        [] => Some(Moment::now()),
        [first, ..] => Moment::parse(first),
    };
    let numeric = |wanted: fn(DateForm) -> bool, value: &dyn Fn(&Moment) -> f64| match &moment {
        Some(m) if wanted(m.kind) => Number(value(m)),
        _ => Number(f64::NAN),
    };
    let named = |wanted: fn(DateForm) -> bool, value: &dyn Fn(&Moment) -> &'static str| match &moment {
        Some(m) if wanted(m.kind) => Text(value(m).to_owned()),
        _ => Text(String::new()),
    };
    let full: fn(DateForm) -> bool = |k| matches!(k, DateForm::DateTime | DateForm::Date);
    Some(match (name, arguments.len()) {
        ("date-time", 0) => Text(Moment::now().write()),
        ("date", 0 | 1) => match moment {
            Some(mut m) if full(m.kind) => {
                m.kind = DateForm::Date;
                Text(m.write())
            }
            _ => empty(),
        },
        ("time", 0 | 1) => match moment {
            Some(mut m) if m.kind.has_time() => {
                m.kind = DateForm::Time;
                Text(m.write())
            }
            _ => empty(),
        },
        ("year", 0 | 1) => numeric(DateForm::has_year, &|m| m.year as f64),
        ("leap-year", 0 | 1) => match &moment {
            Some(m) if m.kind.has_year() => Boolean(is_leap(astronomical(m.year))),
            _ => nan,
        },
        ("month-in-year", 0 | 1) => numeric(DateForm::has_month, &|m| f64::from(m.month)),
        ("month-name", 0 | 1) => named(DateForm::has_month, &|m| MONTHS[m.month as usize - 1]),
        ("month-abbreviation", 0 | 1) => named(DateForm::has_month, &|m| &MONTHS[m.month as usize - 1][..3]),
        ("week-in-year", 0 | 1) => numeric(full, &|m| m.week_in_year() as f64),
        ("week-in-month", 0 | 1) => numeric(full, &|m| {
            let first = Moment { day: 1, ..*m };
            ((i64::from(m.day) + first.weekday() - 1) / 7 + 1) as f64
        }),
        ("day-in-year", 0 | 1) => numeric(full, &|m| m.day_in_year() as f64),
        ("day-in-month", 0 | 1) => numeric(DateForm::has_day, &|m| f64::from(m.day)),
        ("day-of-week-in-month", 0 | 1) => numeric(full, &|m| f64::from((m.day - 1) / 7 + 1)),
        ("day-in-week", 0 | 1) => numeric(full, &|m| ((m.weekday() + 1) % 7 + 1) as f64),
        ("day-name", 0 | 1) => named(full, &|m| WEEKDAYS[m.weekday() as usize]),
        ("day-abbreviation", 0 | 1) => named(full, &|m| &WEEKDAYS[m.weekday() as usize][..3]),
        ("hour-in-day", 0 | 1) => numeric(DateForm::has_time, &|m| f64::from(m.hour)),
        ("minute-in-hour", 0 | 1) => numeric(DateForm::has_time, &|m| f64::from(m.minute)),
        ("second-in-minute", 0 | 1) => numeric(DateForm::has_time, &|m| m.second),
        ("seconds", 0 | 1) => match (arguments.first().and_then(|a| Duration::parse(a)), &moment) {
            (Some(duration), _) if duration.months == 0 => Number(duration.seconds),
            (None, Some(m)) if m.kind.has_year() => Number(m.seconds_since_epoch()),
            _ => nan,
        },
        ("duration", 0) => Text(
            Duration { months: 0, seconds: Moment::now().seconds_since_epoch() }.write().unwrap_or_default(),
        ),
        ("duration", 1) => match arguments[0].trim().parse::<f64>() {
            Ok(seconds) if seconds.is_finite() => {
                Text(Duration { months: 0, seconds }.write().unwrap_or_default())
            }
            _ => empty(),
        },
        ("add", 2) => match (moment, Duration::parse(&arguments[1])) {
            (Some(m), Some(d)) => m.add(&d).map_or_else(empty, |m| Text(m.write())),
            _ => empty(),
        },
        ("add-duration", 2) => match (Duration::parse(&arguments[0]), Duration::parse(&arguments[1])) {
            (Some(a), Some(b)) => Text(a.plus(&b).write().unwrap_or_default()),
            _ => empty(),
        },
        ("difference", 2) => match (moment, Moment::parse(&arguments[1])) {
            (Some(a), Some(b)) => difference(a, b).and_then(|d| d.write()).map_or_else(empty, Text),
            _ => empty(),
        },
        ("format-date", 2) => moment.map_or_else(empty, |m| Text(format_date(&m, &arguments[1]))),
        _ => return None,
    })
}

/// `date:sum`: of the durations in a node-set.
pub fn sum(values: impl Iterator<Item = String>) -> String {
    let mut total = Duration::default();
    let mut any = false;
    for value in values {
        let Some(duration) = Duration::parse(&value) else { return String::new() };
        total = total.plus(&duration);
        // Months and seconds of different signs have no sum.
        if total.write().is_none() {
            return String::new();
        }
        any = true;
    }
    if any { total.write().unwrap_or_default() } else { String::new() }
}

fn difference(start: Moment, end: Moment) -> Option<Duration> {
    if !start.kind.has_year() || !end.kind.has_year() {
        return None;
    }
    if matches!(start.kind, DateForm::Year | DateForm::YearMonth)
        || matches!(end.kind, DateForm::Year | DateForm::YearMonth)
    {
        // Truncated to the fields that both have.
        let months = |m: &Moment| astronomical(m.year) * 12 + i64::from(m.month) - 1;
        let difference = if start.kind == DateForm::Year || end.kind == DateForm::Year {
            (astronomical(end.year) - astronomical(start.year)) * 12
        } else {
            months(&end) - months(&start)
        };
        return Some(Duration { months: difference, seconds: 0.0 });
    }
    let cut = |m: &Moment, by: DateForm| {
        if by == DateForm::Date { m.days() as f64 * 86400.0 } else { m.seconds_since_epoch() }
    };
    let by = if start.kind == DateForm::Date || end.kind == DateForm::Date {
        DateForm::Date
    } else {
        DateForm::DateTime
    };
    Some(Duration { months: 0, seconds: clean(cut(&end, by) - cut(&start, by)) })
}

/// `date:format-date`: the letters of the JDK's `SimpleDateFormat`.
fn format_date(m: &Moment, pattern: &str) -> String {
    let mut out = String::new();
    let chars: Vec<char> = pattern.chars().collect();
    let mut at = 0;
    while at < chars.len() {
        let c = chars[at];
        if c == '\'' {
            at += 1;
            if chars.get(at) == Some(&'\'') {
                out.push('\'');
                at += 1;
                continue;
            }
            while at < chars.len() {
                if chars[at] == '\'' {
                    if chars.get(at + 1) == Some(&'\'') {
                        at += 1;
                    } else {
                        break;
                    }
                }
                out.push(chars[at]);
                at += 1;
            }
            at += 1;
            continue;
        }
        if !c.is_ascii_alphabetic() {
            out.push(c);
            at += 1;
            continue;
        }
        let width = chars[at..].iter().take_while(|x| **x == c).count();
        at += width;
        let number = |out: &mut String, value: i64| {
            if value < 0 {
                out.push('-');
            }
            out.push_str(&xpath::format::padded(value.unsigned_abs(), width));
        };
        let hour = i64::from(m.hour);
        match c {
            'G' => out.push_str(if m.year < 0 { "BC" } else { "AD" }),
            'y' if width == 2 => out.push_str(&format!("{:02}", m.year.abs() % 100)),
            'y' => number(&mut out, m.year.abs()),
            'M' if width >= 4 => out.push_str(MONTHS[m.month as usize - 1]),
            'M' if width == 3 => out.push_str(&MONTHS[m.month as usize - 1][..3]),
            'M' => number(&mut out, i64::from(m.month)),
            'd' => number(&mut out, i64::from(m.day)),
            'D' => number(&mut out, m.day_in_year()),
            'F' => number(&mut out, i64::from((m.day - 1) / 7 + 1)),
            'E' if width >= 4 => out.push_str(WEEKDAYS[m.weekday() as usize]),
            'E' => out.push_str(&WEEKDAYS[m.weekday() as usize][..3]),
            'w' => number(&mut out, m.week_in_year()),
            'W' => number(&mut out, (i64::from(m.day) + 5) / 7),
            'a' => out.push_str(if hour < 12 { "AM" } else { "PM" }),
            'H' => number(&mut out, hour),
            'k' => number(&mut out, if hour == 0 { 24 } else { hour }),
            'K' => number(&mut out, hour % 12),
            'h' => number(&mut out, if hour % 12 == 0 { 12 } else { hour % 12 }),
            'm' => number(&mut out, i64::from(m.minute)),
            's' => number(&mut out, m.second as i64),
            'S' => number(&mut out, (m.second.fract() * 1000.0).round() as i64),
            'z' | 'Z' => {
                if let Some(zone) = m.zone {
                    let sign = if zone < 0 { '-' } else { '+' };
                    let (hours, minutes) = (zone.abs() / 60, zone.abs() % 60);
                    out.push_str(&if c == 'z' {
                        format!("GMT{sign}{hours:02}:{minutes:02}")
                    } else {
                        format!("{sign}{hours:02}{minutes:02}")
                    });
                }
            }
            _ => {}
        }
    }
    out
}

/// The astronomical year: the one before 1 is 0, not -1. (In EXSLT, which is of the time of XML Schema 1.0, there is no year 0.)
fn astronomical(year: i64) -> i64 {
    if year < 0 { year + 1 } else { year }
}

/// The inverse of [`astronomical`].
fn historical(year: i64) -> i64 {
    if year <= 0 { year - 1 } else { year }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &str, arguments: &[&str]) -> String {
        let arguments: Vec<String> = arguments.iter().map(|a| (*a).to_owned()).collect();
        match call(name, &arguments) {
            Some(DateResult::Text(text)) => text,
            Some(DateResult::Number(number)) => number.to_string(),
            Some(DateResult::Boolean(value)) => value.to_string(),
            None => "none".into(),
        }
    }

    #[test]
    fn functions() {
        for (name, arguments, expected) in [
            ("year", &["2026-11-22"][..], "2026"),
            ("month-name", &["2026-11-22"], "November"),
            ("day-name", &["2026-11-22"], "Sunday"),
            ("week-in-year", &["2026-01-01"], "1"),
            ("day-in-year", &["2024-12-31"], "366"),
            ("leap-year", &["1900"], "false"),
            ("add", &["2000-01-31", "P1M"], "2000-02-29"),
            ("add", &["0001-01-01T00:00:00", "-PT1S"], "-0001-12-31T23:59:59Z"),
            ("add", &["2000-01-01", "PT86400S"], "2000-01-02"),
            ("difference", &["2000-01-01", "2000-03-01"], "P60D"),
            ("difference", &["2000-01", "2001-03"], "P1Y2M"),
            ("seconds", &["PT1H1M1.5S"], "3661.5"),
            ("seconds", &["P1M"], "NaN"),
            ("duration", &["90061"], "P1DT1H1M1S"),
            ("add-duration", &["P1Y", "P2M"], "P1Y2M"),
            ("add-duration", &["P1Y", "-P2D"], ""),
            ("format-date", &["2026-11-02T03:04:05", "yyyy/MM/dd'T'HH:mm"], "2026/11/02T03:04"),
            ("hour-in-day", &["2026-11-22"], "NaN"),
        ] {
            assert_eq!(text(name, arguments), expected, "{name} {arguments:?}");
        }
    }
}
