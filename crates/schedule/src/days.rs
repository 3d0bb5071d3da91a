//! The days of a month that an expression means.

use jiff::civil::Date;

/// The days, by one of the two fields; the other one is `?`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Days {
    OfMonth(Vec<OfMonth>),
    OfWeek(Vec<OfWeek>),
}

/// A term of the day of month.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum OfMonth {
    /// Bit n: day n, from 1.
    Set(u64),
    /// `15W`: the weekday nearest to a day, in the same month.
    Nearest(u32),
    /// `L-3`: so many days before the last one; `W`: the weekday nearest to that.
    Last { before: u32, weekday: bool },
}

/// A term of the day of week, from 1 for Sunday.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum OfWeek {
    /// Bit n: day n.
    Set(u64),
    /// `6#3`: the third one of the month.
    Nth(u32, u32),
    /// `6L`: the last one of the month.
    Last(u32),
}

impl Days {
    /// The days of one month; bit n: day n, from 1.
    pub(crate) fn of_month(&self, year: i16, month: i8) -> u64 {
        let Ok(first) = Date::new(year, month, 1) else { return 0 };
        let month = Month {
            length: first.days_in_month().unsigned_abs().into(),
            first: first.weekday().to_sunday_zero_offset().unsigned_abs().into(),
        };
        let days = match self {
            Days::OfMonth(terms) => terms.iter().fold(0, |days, term| days | month.of_month(*term)),
            Days::OfWeek(terms) => terms.iter().fold(0, |days, term| days | month.of_week(*term)),
        };
        days & (bit(month.length + 1) - 2)
    }
}

struct Month {
    length: u32,
    /// The day of week of its first day, from 0 for Sunday.
    first: u32,
}

impl Month {
    fn of_month(&self, term: OfMonth) -> u64 {
        match term {
            OfMonth::Set(days) => days,
            OfMonth::Nearest(day) if day > self.length => 0,
            OfMonth::Nearest(day) => bit(self.nearest_weekday(day)),
            OfMonth::Last { before, weekday } => match self.length.checked_sub(before) {
                Some(day) if day > 0 => bit(if weekday { self.nearest_weekday(day) } else { day }),
                _ => 0,
            },
        }
    }

    fn of_week(&self, term: OfWeek) -> u64 {
        match term {
            OfWeek::Set(week) => (1..=self.length)
                .filter(|day| week & bit(self.weekday(*day) + 1) != 0)
                .fold(0, |days, day| days | bit(day)),
            OfWeek::Nth(wanted, n) => bit(self.first_of(wanted) + 7 * (n - 1)),
            OfWeek::Last(wanted) => {
                let first = self.first_of(wanted);
                bit(first + (self.length - first) / 7 * 7)
            }
        }
    }

    /// The day of week of a day, from 0 for Sunday.
    fn weekday(&self, day: u32) -> u32 {
        (self.first + day - 1) % 7
    }

    /// The first day of the month that is this day of week, from 1 for Sunday.
    fn first_of(&self, wanted: u32) -> u32 {
        1 + (wanted + 6 - self.first) % 7
    }

    /// The Monday to Friday next to a day, without leaving the month.
    fn nearest_weekday(&self, day: u32) -> u32 {
        const SUNDAY: u32 = 0;
        const SATURDAY: u32 = 6;
        match self.weekday(day) {
            SATURDAY if day == 1 => 3,
            SATURDAY => day - 1,
            SUNDAY if day == self.length => day - 2,
            SUNDAY => day + 1,
            _ => day,
        }
    }
}

pub(crate) fn bit(n: u32) -> u64 {
    1_u64.checked_shl(n).unwrap_or(0)
}
