//! Quartz cron expressions: seconds, minutes, hours, day of month, month, day of week, and if wanted the year.
//!
//! An expression describes times of the calendar; a time zone makes instants of them. Where the clock of the zone is put
//! forward or back, two kinds of expressions differ. One that runs in every hour goes by the time that passes: it runs in both
//! hours that the clock shows twice, and in none that it skips. One that names hours runs once a day whatever the clock does: a
//! time that comes twice counts the first time, and one that is skipped comes by as much later as the clock was put forward.

use crate::days::{Days, bit};
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};
use std::fmt;

/// The first year that an expression can name.
pub(crate) const FIRST_YEAR: i16 = 1970;
/// The last one. Quartz ends a hundred years from now.
pub(crate) const LAST_YEAR: i16 = 2199;

/// A Quartz cron expression.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Cron {
    pub(crate) text: String,
    /// Bit n: second n.
    pub(crate) seconds: u64,
    /// Bit n: minute n.
    pub(crate) minutes: u64,
    /// Bit n: hour n.
    pub(crate) hours: u64,
    /// Bit n: month n, from 1.
    pub(crate) months: u64,
    pub(crate) days: Days,
    /// The years, ascending; empty: every one.
    pub(crate) years: Vec<i16>,
}

/// All hours.
const EVERY_HOUR: u64 = (1 << 24) - 1;

impl Cron {
    /// The first time after `after`; `None`: there is none until the end of the year 2199.
    pub fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        // Expressions know whole seconds.
        let mut from = Timestamp::from_second(after.as_second().checked_add(1)?).ok()?;
        loop {
            let period = Period::at(from, zone);
            if let Some(found) = self.next_within(from, &period) {
                return Some(found);
            }
            let end = period.end?;
            // Most periods have nothing of a rare expression: the next one that may is found by the calendar.
            let day = SignedDuration::from_hours(24);
            let far = self.next_of_calendar(period.offset.to_datetime(end).saturating_sub(day))?;
            let far = Offset::UTC.to_timestamp(far).ok()?.saturating_sub(day * 2).ok()?;
            from = end.max(far);
        }
    }

    /// The first time from `from` on within a period of one offset.
    fn next_within(&self, from: Timestamp, period: &Period) -> Option<Timestamp> {
        let mut wanted = period.offset.to_datetime(from);
        let mut postponed = None;
        if self.hours != EVERY_HOUR
            && let Some((start, before)) = period.begins
        {
            let (old, new) = (before.to_datetime(start), period.offset.to_datetime(start));
            if new < old {
                // The clock was put back: what it shows a second time was there already.
                wanted = wanted.max(old);
            } else {
                let skipped = self.next_of_calendar(before.to_datetime(from));
                postponed = skipped.filter(|&at| at < new).and_then(|at| before.to_timestamp(at).ok());
            }
        }
        let regular = self.next_of_calendar(wanted).and_then(|at| period.offset.to_timestamp(at).ok());
        let first = [regular, postponed].into_iter().flatten().min()?;
        (period.end.is_none_or(|end| first < end)).then_some(first)
    }

    /// The first time of the calendar from `from` on, whatever clocks do.
    fn next_of_calendar(&self, from: DateTime) -> Option<DateTime> {
        let first = from.date();
        let (mut year, mut month) = (first.year(), first.month());
        if year < FIRST_YEAR {
            (year, month) = (FIRST_YEAR, 1);
        }
        while year <= LAST_YEAR {
            if !self.years.is_empty() && self.years.binary_search(&year).is_err() {
                (year, month) = (year + 1, 1);
                continue;
            }
            if let Some(next) = from_bit(self.months, month.unsigned_abs().into()) {
                month = next as i8;
            } else {
                (year, month) = (year + 1, 1);
                continue;
            }
            let days = self.days.of_month(year, month);
            let is_first = (year, month) == (first.year(), first.month());
            let mut day = if is_first { first.day().unsigned_abs() } else { 1 };
            while let Some(next) = from_bit(days, day.into()) {
                let date = Date::new(year, month, next as i8).ok()?;
                let from = if date == first { from.time() } else { Time::midnight() };
                if let Some(time) = self.next_of_day(from) {
                    return Some(date.to_datetime(time));
                }
                day = next as u8 + 1;
            }
            (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
        }
        None
    }

    /// The first time of a day from `from` on.
    fn next_of_day(&self, from: Time) -> Option<Time> {
        let field = |value: i8| u32::from(value.unsigned_abs());
        let (hour, minute, second) = (field(from.hour()), field(from.minute()), field(from.second()));
        let at =
            |hour: u32, minute: u32, second: u32| Time::new(hour as i8, minute as i8, second as i8, 0).ok();
        if self.hours & bit(hour) != 0 {
            if self.minutes & bit(minute) != 0
                && let Some(second) = from_bit(self.seconds, second)
            {
                return at(hour, minute, second);
            }
            if let Some(minute) = from_bit(self.minutes, minute + 1) {
                return at(hour, minute, from_bit(self.seconds, 0)?);
            }
        }
        at(from_bit(self.hours, hour + 1)?, from_bit(self.minutes, 0)?, from_bit(self.seconds, 0)?)
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl fmt::Debug for Cron {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Cron({})", self.text)
    }
}

/// A time in which a zone has one offset.
struct Period {
    offset: Offset,
    /// When it began, and the offset before.
    begins: Option<(Timestamp, Offset)>,
    /// When the next one begins.
    end: Option<Timestamp>,
}

impl Period {
    fn at(from: Timestamp, zone: &TimeZone) -> Period {
        let offset = zone.to_offset(from);
        let instant = SignedDuration::from_nanos(1);
        let until_now = from.saturating_add(instant).unwrap_or(from);
        let begins = zone.preceding(until_now).next().and_then(|transition| {
            let start = transition.timestamp();
            Some((start, zone.to_offset(start.checked_sub(instant).ok()?)))
        });
        let end = zone.following(from).next().map(|transition| transition.timestamp());
        Period { offset, begins, end }
    }
}

/// The lowest bit from `from` on.
pub(crate) fn from_bit(bits: u64, from: u32) -> Option<u32> {
    let rest = bits & u64::MAX.checked_shl(from).unwrap_or(0);
    (rest != 0).then(|| rest.trailing_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn zone(name: &str) -> TimeZone {
        // A machine without a time zone database has the rules of this one.
        TimeZone::get(name).unwrap_or_else(|_| TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("a rule"))
    }

    /// The next times as they show on the wall, with their offsets.
    fn next(text: &str, after: &str, zone: &TimeZone, count: usize) -> Vec<String> {
        let cron = Cron::parse(text).unwrap_or_else(|why| panic!("{text}: {why:?}"));
        let mut at: Timestamp = after.parse().expect("an instant");
        let mut times = Vec::new();
        while let Some(found) = cron.next(at, zone).filter(|_| times.len() < count) {
            assert!(found > at, "{text}");
            at = found;
            let shown = found.to_zoned(zone.clone());
            times.push(shown.strftime("%F %a %T %:z").to_string());
        }
        times
    }

    fn utc(text: &str, count: usize) -> Vec<String> {
        let times = next(text, "2026-01-15T10:30:15Z", &TimeZone::UTC, count);
        times.into_iter().map(|time| time.trim_end_matches(" +00:00").to_owned()).collect()
    }

    #[test]
    fn every_form_of_every_field() {
        for (text, wanted) in [
            ("0 0 12 * * ?", &["2026-01-15 Thu 12:00:00", "2026-01-16 Fri 12:00:00"][..]),
            ("* * * * * ?", &["2026-01-15 Thu 10:30:16", "2026-01-15 Thu 10:30:17"]),
            ("0/20 * * * * ?", &["2026-01-15 Thu 10:30:20", "2026-01-15 Thu 10:30:40"]),
            ("/20 * * * * ?", &["2026-01-15 Thu 10:30:20", "2026-01-15 Thu 10:30:40"]),
            ("0 0/25 10 ? * *", &["2026-01-15 Thu 10:50:00", "2026-01-16 Fri 10:00:00"]),
            ("0 10-14/2 11 ? * *", &["2026-01-15 Thu 11:10:00", "2026-01-15 Thu 11:12:00"]),
            (
                "0 0 22-1 * * ?",
                &["2026-01-15 Thu 22:00:00", "2026-01-15 Thu 23:00:00", "2026-01-16 Fri 00:00:00"],
            ),
            (
                "5,7 0 0 1 JAN,jul ? 2027",
                &["2027-01-01 Fri 00:00:05", "2027-01-01 Fri 00:00:07", "2027-07-01 Thu 00:00:05"],
            ),
            ("0 0 0 1 NOV-FEB ?", &["2026-02-01 Sun 00:00:00", "2026-11-01 Sun 00:00:00"]),
            (
                "0 0 0 L * ?",
                &["2026-01-31 Sat 00:00:00", "2026-02-28 Sat 00:00:00", "2026-03-31 Tue 00:00:00"],
            ),
            ("0 0 0 L-3 * ?", &["2026-01-28 Wed 00:00:00", "2026-02-25 Wed 00:00:00"]),
            (
                "0 0 0 LW * ?",
                &["2026-01-30 Fri 00:00:00", "2026-02-27 Fri 00:00:00", "2026-03-31 Tue 00:00:00"],
            ),
            ("0 0 0 L-1W * ?", &["2026-01-30 Fri 00:00:00", "2026-02-27 Fri 00:00:00"]),
            // The 15th of February 2026 is a Sunday, the 1st as well: never across the end of a month.
            ("0 0 0 15W 2 ?", &["2026-02-16 Mon 00:00:00", "2027-02-15 Mon 00:00:00"]),
            ("0 0 0 1W 2,8 ?", &["2026-02-02 Mon 00:00:00", "2026-08-03 Mon 00:00:00"]),
            ("0 0 0 31W * ?", &["2026-01-30 Fri 00:00:00", "2026-03-31 Tue 00:00:00"]),
            ("0 0 0 10,L * ?", &["2026-01-31 Sat 00:00:00", "2026-02-10 Tue 00:00:00"]),
            ("0 0 0 29 2 ?", &["2028-02-29 Tue 00:00:00", "2032-02-29 Sun 00:00:00"]),
            (
                "0 0 0 28-2 * ?",
                &[
                    "2026-01-28 Wed 00:00:00",
                    "2026-01-29 Thu 00:00:00",
                    "2026-01-30 Fri 00:00:00",
                    "2026-01-31 Sat 00:00:00",
                    "2026-02-01 Sun 00:00:00",
                ],
            ),
            ("0 15 10 ? * MON-FRI", &["2026-01-16 Fri 10:15:00", "2026-01-19 Mon 10:15:00"]),
            (
                "0 15 10 ? * FRI-MON",
                &[
                    "2026-01-16 Fri 10:15:00",
                    "2026-01-17 Sat 10:15:00",
                    "2026-01-18 Sun 10:15:00",
                    "2026-01-19 Mon 10:15:00",
                    "2026-01-23 Fri 10:15:00",
                ],
            ),
            (
                "0 15 10 ? * 2/2",
                &["2026-01-16 Fri 10:15:00", "2026-01-19 Mon 10:15:00", "2026-01-21 Wed 10:15:00"],
            ),
            // A step over all there is leaves the first value.
            ("0 0 0 1/31 * ?", &["2026-02-01 Sun 00:00:00", "2026-03-01 Sun 00:00:00"]),
            ("0 0 0 1 1/12 ?", &["2027-01-01 Fri 00:00:00", "2028-01-01 Sat 00:00:00"]),
            ("0 0 0 ? * 2/7", &["2026-01-19 Mon 00:00:00", "2026-01-26 Mon 00:00:00"]),
            ("0 15 10 ? * Monday", &["2026-01-19 Mon 10:15:00", "2026-01-26 Mon 10:15:00"]),
            ("0 15 10 ? * L", &["2026-01-17 Sat 10:15:00", "2026-01-24 Sat 10:15:00"]),
            ("0 15 10 ? * 6L", &["2026-01-30 Fri 10:15:00", "2026-02-27 Fri 10:15:00"]),
            ("0 15 10 ? * friL 2027-2028", &["2027-01-29 Fri 10:15:00", "2027-02-26 Fri 10:15:00"]),
            ("0 15 10 ? * 6#3", &["2026-01-16 Fri 10:15:00", "2026-02-20 Fri 10:15:00"]),
            (
                "0 15 10 ? * MON#1,SUN#5",
                &["2026-02-02 Mon 10:15:00", "2026-03-02 Mon 10:15:00", "2026-03-29 Sun 10:15:00"],
            ),
            (
                "0 0 0 1 1 ? 2190/4",
                &["2190-01-01 Fri 00:00:00", "2194-01-01 Wed 00:00:00", "2198-01-01 Mon 00:00:00"],
            ),
            ("0 0 0 30 2 ?", &[]),
            ("0 0 0 1 1 ? 2025", &[]),
            (
                "0 0 0 ? * MON#5 2199",
                &[
                    "2199-04-29 Mon 00:00:00",
                    "2199-07-29 Mon 00:00:00",
                    "2199-09-30 Mon 00:00:00",
                    "2199-12-30 Mon 00:00:00",
                ],
            ),
        ] {
            assert_eq!(
                utc(text, wanted.len().max(2).min(if wanted.is_empty() { 2 } else { wanted.len() })),
                wanted,
                "{text}"
            );
        }
    }

    #[test]
    fn daylight_saving() {
        let berlin = zone("Europe/Berlin");
        // Forward on 29 March 2026 at 02:00, back on 25 October at 03:00.
        let (spring, autumn) = ("2026-03-28T12:00:00Z", "2026-10-24T12:00:00Z");
        for (text, after, wanted) in [
            // A time that is skipped comes an hour later, once.
            (
                "0 30 2 * * ?",
                spring,
                &["2026-03-29 Sun 03:30:00 +02:00", "2026-03-30 Mon 02:30:00 +02:00"][..],
            ),
            (
                "0 0/30 2,3 29 3 ? 2026",
                spring,
                &["2026-03-29 Sun 03:00:00 +02:00", "2026-03-29 Sun 03:30:00 +02:00"],
            ),
            ("0 59 1 29 3 ? 2026", spring, &["2026-03-29 Sun 01:59:00 +01:00"]),
            // A time that comes twice counts once.
            ("0 30 2 * * ?", autumn, &["2026-10-25 Sun 02:30:00 +02:00", "2026-10-26 Mon 02:30:00 +01:00"]),
            (
                "0 0/30 2,3 25 10 ? 2026",
                autumn,
                &[
                    "2026-10-25 Sun 02:00:00 +02:00",
                    "2026-10-25 Sun 02:30:00 +02:00",
                    "2026-10-25 Sun 03:00:00 +01:00",
                    "2026-10-25 Sun 03:30:00 +01:00",
                ],
            ),
            // Every hour is every hour.
            (
                "0 30 * 29 3 ? 2026",
                "2026-03-29T00:00:00Z",
                &[
                    "2026-03-29 Sun 01:30:00 +01:00",
                    "2026-03-29 Sun 03:30:00 +02:00",
                    "2026-03-29 Sun 04:30:00 +02:00",
                ],
            ),
            (
                "0 30 * * * ?",
                "2026-10-24T23:00:00Z",
                &[
                    "2026-10-25 Sun 01:30:00 +02:00",
                    "2026-10-25 Sun 02:30:00 +02:00",
                    "2026-10-25 Sun 02:30:00 +01:00",
                    "2026-10-25 Sun 03:30:00 +01:00",
                ],
            ),
            (
                "0 0/40 * * * ?",
                "2026-10-25T00:30:00Z",
                &[
                    "2026-10-25 Sun 02:40:00 +02:00",
                    "2026-10-25 Sun 02:00:00 +01:00",
                    "2026-10-25 Sun 02:40:00 +01:00",
                    "2026-10-25 Sun 03:00:00 +01:00",
                ],
            ),
        ] {
            assert_eq!(next(text, after, &berlin, wanted.len()), wanted, "{text}");
        }
        // Zones that put their clocks by half an hour, by a whole day, at midnight.
        for (name, text, after, wanted) in [
            (
                "Australia/Lord_Howe",
                "0 15 2 * * ?",
                "2026-10-03T00:00:00Z",
                &["2026-10-04 Sun 02:45:00 +11:00", "2026-10-05 Mon 02:15:00 +11:00"][..],
            ),
            (
                "Pacific/Apia",
                "0 0 12 30 12 ?",
                "2011-12-01T00:00:00Z",
                &["2011-12-31 Sat 12:00:00 +14:00", "2012-12-30 Sun 12:00:00 +14:00"],
            ),
            (
                "America/Asuncion",
                "0 0 0 * * ?",
                "2023-09-30T12:00:00Z",
                &["2023-10-01 Sun 01:00:00 -03:00", "2023-10-02 Mon 00:00:00 -03:00"],
            ),
            ("Asia/Kolkata", "0 0 6 ? * 2", "2026-01-01T00:00:00Z", &["2026-01-05 Mon 06:00:00 +05:30"]),
        ] {
            let Ok(zone) = TimeZone::get(name) else { continue };
            assert_eq!(next(text, after, &zone, wanted.len()), wanted, "{name} {text}");
        }
    }

    #[test]
    fn far_ends() {
        let berlin = zone("Europe/Berlin");
        for text in ["0 0 0 1 1 ?", "* * * * * ?", "0 0 0 30 2 ?", "0 0 0 1 1 ? 1970"] {
            let cron = Cron::parse(text).expect("good");
            for after in [Timestamp::MIN, Timestamp::MAX, Timestamp::UNIX_EPOCH] {
                if let Some(next) = cron.next(after, &berlin) {
                    assert!(next > after && next.as_second() < 7_260_000_000, "{text}");
                }
            }
        }
    }

    /// One field as text, and what it stands for, by another way than the parser's.
    fn field(low: u32, high: u32) -> impl Strategy<Value = (String, Vec<u32>)> {
        let term = prop_oneof![
            (low..=high).prop_map(|n| (n.to_string(), vec![n])),
            (low..=high, 1..=(high - low).max(1)).prop_map(move |(from, step)| {
                (format!("{from}/{step}"), (from..=high).step_by(step as usize).collect())
            }),
            (low..=high, low..=high).prop_map(move |(from, to)| {
                let all: Vec<u32> =
                    if from <= to { (from..=to).collect() } else { (from..=high).chain(low..=to).collect() };
                (format!("{from}-{to}"), all)
            }),
        ];
        prop_oneof![
            1 => Just(("*".to_owned(), (low..=high).collect::<Vec<u32>>())),
            4 => proptest::collection::vec(term, 1..3).prop_map(|terms| {
                let text = terms.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>().join(",");
                (text, terms.into_iter().flat_map(|(_, all)| all).collect())
            }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// The slow walk: every second is looked at, whether each field has it.
        #[test]
        fn it_finds_what_a_walk_through_the_calendar_finds(
            seconds in field(0, 59), minutes in field(0, 59), hours in field(0, 23), days in field(1, 31),
            months in field(1, 12), week in field(1, 7), by_week in any::<bool>(), from in 0_i64..4_102_444_800,
        ) {
            let (dom, dow) = if by_week { ("?", week.0.as_str()) } else { (days.0.as_str(), "?") };
            let text = format!("{} {} {} {dom} {} {dow}", seconds.0, minutes.0, hours.0, months.0);
            let cron = Cron::parse(&text).map_err(|why| TestCaseError::fail(format!("{text}: {why:?}")))?;
            let from = Timestamp::from_second(from).expect("in range");
            let walked = walk(from, |at| {
                let has = |all: &[u32], value: i8| all.contains(&u32::from(value.unsigned_abs()));
                let day = match by_week {
                    true => has(&week.1, at.weekday().to_sunday_one_offset()),
                    false => has(&days.1, at.day()),
                };
                (has(&seconds.1, at.second()), has(&minutes.1, at.minute()), has(&hours.1, at.hour()), day && has(&months.1, at.month()))
            });
            if let Some(walked) = walked {
                prop_assert_eq!(cron.next(from, &TimeZone::UTC), Some(walked), "{}", text);
            }
        }

        /// In a zone: in order, nothing twice, and what an expression with every hour finds is what passing time finds.
        #[test]
        fn in_a_zone_it_goes_forward(
            minutes in field(0, 59), hours in field(0, 23), from in 0_i64..4_102_444_800,
        ) {
            let berlin = zone("Europe/Berlin");
            let cron = Cron::parse(&format!("0 {} {} * * ?", minutes.0, hours.0)).expect("good");
            let mut at = Timestamp::from_second(from).expect("in range");
            for _ in 0..50 {
                let next = cron.next(at, &berlin).expect("every day has one");
                prop_assert!(next > at);
                prop_assert!(next.duration_since(at) <= SignedDuration::from_hours(26));
                // Whoever asks in between gets the same.
                let between = at.saturating_add(next.duration_since(at) / 2).expect("between");
                if between < next {
                    prop_assert_eq!(cron.next(between, &berlin), Some(next));
                }
                at = next;
            }
        }
    }

    /// The first second after `from` within three years of which all is so; days, hours and minutes of which it is not are passed over.
    fn walk(from: Timestamp, is: impl Fn(DateTime) -> (bool, bool, bool, bool)) -> Option<Timestamp> {
        let mut at = from.as_second() + 1;
        let end = at + 3 * 366 * 86_400;
        while at < end {
            let time = Timestamp::from_second(at).expect("in range");
            let (second, minute, hour, day) = is(Offset::UTC.to_datetime(time));
            let length = match (second, minute, hour, day) {
                (.., false) => 86_400,
                (_, _, false, _) => 3_600,
                (_, false, ..) => 60,
                (false, ..) => 1,
                _ => return Some(time),
            };
            at = (at / length + 1) * length;
        }
        None
    }
}
