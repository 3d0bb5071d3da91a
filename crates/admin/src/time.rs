//! Points in time as log lines have them, in UTC.

use std::cell::RefCell;
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A time by its fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Utc {
    year: i64,
    month: i64,
    day: i64,
    hour: u64,
    minute: u64,
    second: u64,
    milli: u64,
}

impl Utc {
    pub(crate) fn of(time: SystemTime) -> Utc {
        let millis = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
        let (year, month, day) = civil((millis / 86_400_000) as i64);
        let seconds = millis / 1000;
        Utc {
            year,
            month,
            day,
            hour: seconds / 3600 % 24,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            milli: millis % 1000,
        }
    }

    /// `2026-11-22T01:02:03.456Z` (RFC 3339).
    pub(crate) fn rfc3339(self, out: &mut impl fmt::Write) -> fmt::Result {
        let Utc { year, month, day, hour, minute, second, milli } = self;
        write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }

    /// `[22/Nov/2026:01:02:03 +0000]` (Common Log Format).
    pub(crate) fn common(self, out: &mut impl fmt::Write) -> fmt::Result {
        let Utc { year, month, day, hour, minute, second, .. } = self;
        let month = MONTHS[(month as usize).saturating_sub(1) % 12];
        write!(out, "[{day:02}/{month}/{year:04}:{hour:02}:{minute:02}:{second:02} +0000]")
    }
}

/// Appends what [`Utc::rfc3339`] writes; all lines of a second share the work on what is the same in them.
pub(crate) fn stamp(time: SystemTime, out: &mut String) {
    thread_local! {
        /// A second since 1970, and how it is written, up to the point.
        static LAST: RefCell<(u64, String)> = const { RefCell::new((u64::MAX, String::new())) };
    }
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    LAST.with_borrow_mut(|(second, text)| {
        if *second != since.as_secs() {
            text.clear();
            let _ = Utc::of(time).rfc3339(text); // a String takes everything
            text.truncate(text.len() - "000Z".len());
            *second = since.as_secs();
        }
        out.push_str(text);
    });
    let millis = since.subsec_millis();
    for digit in [millis / 100, millis / 10 % 10, millis % 10] {
        out.push(char::from(b'0' + digit as u8));
    }
    out.push('Z');
}

/// Days since the epoch to year, month, day (proleptic Gregorian).
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_are_written_in_utc() {
        for (millis, rfc3339, common) in [
            (0, "1970-01-01T00:00:00.000Z", "[01/Jan/1970:00:00:00 +0000]"),
            (1_709_210_096_789, "2024-02-29T12:34:56.789Z", "[29/Feb/2024:12:34:56 +0000]"),
            (1_795_309_323_456, "2026-11-22T01:02:03.456Z", "[22/Nov/2026:01:02:03 +0000]"),
        ] {
            let utc = Utc::of(UNIX_EPOCH + Duration::from_millis(millis));
            let (mut a, mut b) = (String::new(), String::new());
            utc.rfc3339(&mut a).expect("a String takes everything");
            utc.common(&mut b).expect("a String takes everything");
            assert_eq!((a.as_str(), b.as_str()), (rfc3339, common));
            a.clear();
            stamp(UNIX_EPOCH + Duration::from_millis(millis), &mut a);
            assert_eq!(a, rfc3339);
        }
    }
}
