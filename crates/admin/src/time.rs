//! Points in time as log lines have them, in UTC.

use jiff::civil::DateTime;
use jiff::{Timestamp, tz::Offset};
use std::cell::RefCell;
use std::fmt::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

fn utc(time: SystemTime) -> DateTime {
    Offset::UTC.to_datetime(Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH))
}

/// `[22/Nov/2026:01:02:03 +0000]` (Common Log Format).
pub(crate) fn common(time: SystemTime, out: &mut impl Write) -> fmt::Result {
    write!(out, "{}", utc(time).strftime("[%d/%b/%Y:%H:%M:%S +0000]"))
}

/// Appends `2026-11-22T01:02:03.456Z` (RFC 3339); all lines of a second share the work on what is the same in them.
pub(crate) fn rfc3339(time: SystemTime, out: &mut String) {
    thread_local! {
        /// A second since 1970, and how it is written, up to the point.
        static LAST: RefCell<(u64, String)> = const { RefCell::new((u64::MAX, String::new())) };
    }
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    LAST.with_borrow_mut(|(second, text)| {
        if *second != since.as_secs() {
            text.clear();
            let _ = write!(text, "{:.0}.", utc(time)); // a String takes everything
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
            let time = UNIX_EPOCH + Duration::from_millis(millis);
            let (mut one, mut other) = (String::new(), String::new());
            super::rfc3339(time, &mut one);
            super::common(time, &mut other).expect("a String takes everything");
            assert_eq!((one.as_str(), other.as_str()), (rfc3339, common));
        }
    }
}
