//! Dates, times and durations (F&O section 10), the current time (section 16).

use super::{Call, Entry, Looks, Outcome, optional, row};
use crate::atomic::{Atomic, Decimal, Duration, DurationKind, Kind, Moment, MomentKind};
use crate::sequence::operators::{IMPLICIT_ZONE, seconds};
use crate::value::{Type, Value};

const DATE_TIME: Kind = Kind::Moment(MomentKind::DateTime);
const DATE: Kind = Kind::Moment(MomentKind::Date);
const TIME: Kind = Kind::Moment(MomentKind::Time);
const MINUTE: i128 = 60_000_000_000;

#[rustfmt::skip]
pub(super) const TABLE: &[Entry] = &[
    row("current-dateTime", 0, 0, Type::Any, Looks::Nowhere, |c| Ok(Value::Atomic(Atomic::moment(c.now())))),
    row("current-date", 0, 0, Type::Any, Looks::Nowhere, |c| Ok(optional(c.now().cast(MomentKind::Date).map(Atomic::moment)))),
    row("current-time", 0, 0, Type::Any, Looks::Nowhere, |c| Ok(optional(c.now().cast(MomentKind::Time).map(Atomic::moment)))),
    row("implicit-timezone", 0, 0, Type::Any, Looks::Nowhere, |_| Ok(zone(IMPLICIT_ZONE))),
    row("dateTime", 2, 2, Type::Any, Looks::Nowhere, date_time),
    row("year-from-dateTime", 1, 1, Type::Any, Looks::Nowhere, |c| part(c, DATE_TIME, |m| i64::from(m.year))),
    row("month-from-dateTime", 1, 1, Type::Any, Looks::Nowhere, |c| part(c, DATE_TIME, |m| i64::from(m.month))),
    row("day-from-dateTime", 1, 1, Type::Any, Looks::Nowhere, |c| part(c, DATE_TIME, |m| i64::from(m.day))),
    row("hours-from-dateTime", 1, 1, Type::Any, Looks::Nowhere, |c| part(c, DATE_TIME, |m| i64::from(m.hour))),
    row("minutes-from-dateTime", 1, 1, Type::Any, Looks::Nowhere, |c| part(c, DATE_TIME, |m| i64::from(m.minute))),
    row("seconds-from-dateTime", 1, 1, Type::Any, Looks::Nowhere, |c| second(c, DATE_TIME)),
    row("timezone-from-dateTime", 1, 1, Type::Any, Looks::Nowhere, |c| timezone(c, DATE_TIME)),
    row("year-from-date", 1, 1, Type::Any, Looks::Nowhere, |c| part(c, DATE, |m| i64::from(m.year))),
    row("month-from-date", 1, 1, Type::Any, Looks::Nowhere, |c| part(c, DATE, |m| i64::from(m.month))),
    row("day-from-date", 1, 1, Type::Any, Looks::Nowhere, |c| part(c, DATE, |m| i64::from(m.day))),
    row("timezone-from-date", 1, 1, Type::Any, Looks::Nowhere, |c| timezone(c, DATE)),
    row("hours-from-time", 1, 1, Type::Any, Looks::Nowhere, |c| part(c, TIME, |m| i64::from(m.hour))),
    row("minutes-from-time", 1, 1, Type::Any, Looks::Nowhere, |c| part(c, TIME, |m| i64::from(m.minute))),
    row("seconds-from-time", 1, 1, Type::Any, Looks::Nowhere, |c| second(c, TIME)),
    row("timezone-from-time", 1, 1, Type::Any, Looks::Nowhere, |c| timezone(c, TIME)),
    row("adjust-dateTime-to-timezone", 1, 2, Type::Any, Looks::Nowhere, |c| adjust(c, DATE_TIME)),
    row("adjust-date-to-timezone", 1, 2, Type::Any, Looks::Nowhere, |c| adjust(c, DATE)),
    row("adjust-time-to-timezone", 1, 2, Type::Any, Looks::Nowhere, |c| adjust(c, TIME)),
    row("years-from-duration", 1, 1, Type::Any, Looks::Nowhere, |c| length(c, |d| d.months / 12)),
    row("months-from-duration", 1, 1, Type::Any, Looks::Nowhere, |c| length(c, |d| d.months % 12)),
    row("days-from-duration", 1, 1, Type::Any, Looks::Nowhere, |c| length(c, |d| (d.nanos / (1440 * MINUTE)) as i64)),
    row("hours-from-duration", 1, 1, Type::Any, Looks::Nowhere, |c| length(c, |d| (d.nanos / (60 * MINUTE) % 24) as i64)),
    row("minutes-from-duration", 1, 1, Type::Any, Looks::Nowhere, |c| length(c, |d| (d.nanos / MINUTE % 60) as i64)),
    row("seconds-from-duration", 1, 1, Type::Any, Looks::Nowhere, |c| {
        Ok(optional(duration(c, 0)?.map(|d| Atomic::decimal(seconds(d.nanos % MINUTE)))))
    }),
];

fn moment(c: &Call<'_, '_>, at: usize, kind: Kind) -> Result<Option<Moment>, crate::eval::Fault> {
    match c.of_kind(at, kind)? {
        Some(Atomic::Moment(m)) => Ok(Some(*m)),
        _ => Ok(None),
    }
}

fn duration(c: &Call<'_, '_>, at: usize) -> Result<Option<Duration>, crate::eval::Fault> {
    match c.of_kind(at, Kind::Duration(DurationKind::Duration))? {
        Some(Atomic::Duration(d)) => Ok(Some(*d)),
        _ => Ok(None),
    }
}

fn part(c: &Call<'_, '_>, kind: Kind, f: fn(&Moment) -> i64) -> Outcome {
    Ok(moment(c, 0, kind)?.map_or(Value::Empty, |m| Value::from(f(&m))))
}

fn second(c: &Call<'_, '_>, kind: Kind) -> Outcome {
    let value = |m: Moment| Decimal::new(i128::from(m.second) * 1_000_000_000 + i128::from(m.nanos), 9);
    Ok(optional(moment(c, 0, kind)?.map(|m| Atomic::decimal(value(m)))))
}

fn zone(minutes: i16) -> Value {
    Value::Atomic(Atomic::duration(Duration::day_time(i128::from(minutes) * MINUTE)))
}

fn timezone(c: &Call<'_, '_>, kind: Kind) -> Outcome {
    Ok(moment(c, 0, kind)?.and_then(|m| m.zone).map_or(Value::Empty, zone))
}

fn length(c: &Call<'_, '_>, f: fn(&Duration) -> i64) -> Outcome {
    Ok(duration(c, 0)?.map_or(Value::Empty, |d| Value::from(f(&d))))
}

fn date_time(c: &Call<'_, '_>) -> Outcome {
    let (Some(date), Some(time)) = (moment(c, 0, DATE)?, moment(c, 1, TIME)?) else {
        return Ok(Value::Empty);
    };
    if date.zone.is_some() && time.zone.is_some() && date.zone != time.zone {
        return Err(c.fail("FORG0008", "dateTime(): the date and the time have different timezones"));
    }
    Ok(Value::Atomic(Atomic::moment(Moment {
        kind: MomentKind::DateTime,
        hour: time.hour,
        minute: time.minute,
        second: time.second,
        nanos: time.nanos,
        zone: date.zone.or(time.zone),
        ..date
    })))
}

fn adjust(c: &Call<'_, '_>, kind: Kind) -> Outcome {
    let Some(m) = moment(c, 0, kind)? else { return Ok(Value::Empty) };
    let zone = if c.args.len() < 2 {
        Some(IMPLICIT_ZONE)
    } else {
        match c.of_kind(1, Kind::Duration(DurationKind::DayTime))? {
            Some(Atomic::Duration(d)) => {
                if d.nanos % MINUTE != 0 || d.nanos.abs() > 840 * MINUTE {
                    return Err(c.fail("FODT0003", format!("{} is not a timezone", d.to_text())));
                }
                Some((d.nanos / MINUTE) as i16)
            }
            _ => None,
        }
    };
    let adjusted = m.adjusted(zone).ok_or_else(|| c.fail("FODT0001", "the date is too far away"))?;
    Ok(Value::Atomic(Atomic::moment(adjusted)))
}
