//! The clock as expressions see it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since the epoch.
pub fn milliseconds() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()
}

/// Now, in UTC, by a pattern of Java's SimpleDateFormat.
pub fn format_now(pattern: &str) -> String {
    format(milliseconds() as i64, pattern)
}

const MONTHS: [&str; 12] = [
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
const DAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];

/// A time (milliseconds since the epoch, UTC) by a pattern of letters; quoted text stands for itself.
pub fn format(milliseconds: i64, pattern: &str) -> String {
    let days = milliseconds.div_euclid(86_400_000);
    let of_day = milliseconds.rem_euclid(86_400_000);
    let (year, month, day) = civil(days);
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, fraction) = (of_day / 1000 % 60, of_day % 1000);
    let mut out = String::new();
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == '\'' {
            let mut any = false;
            for quoted in letters.by_ref() {
                if quoted == '\'' {
                    break;
                }
                any = true;
                out.push(quoted);
            }
            if !any {
                out.push('\'');
            }
            continue;
        }
        let mut width = 1;
        while letter.is_ascii_alphabetic() && letters.peek() == Some(&letter) {
            letters.next();
            width += 1;
        }
        let name = |name: &str| if width > 3 { name.to_owned() } else { name[..3].to_owned() };
        let number = |value: i64| format!("{value:0width$}");
        out.push_str(&match letter {
            'y' | 'u' if width == 2 => format!("{:02}", year.rem_euclid(100)),
            'y' | 'u' => number(year),
            'M' | 'L' if width > 2 => name(MONTHS[(month - 1) as usize]),
            'M' | 'L' => number(month),
            'd' => number(day),
            'H' => number(hour),
            'k' => number(if hour == 0 { 24 } else { hour }),
            'K' => number(hour % 12),
            'h' => number(if hour % 12 == 0 { 12 } else { hour % 12 }),
            'm' => number(minute),
            's' => number(second),
            'S' => number(fraction),
            'a' => if hour < 12 { "AM" } else { "PM" }.to_owned(),
            'E' => name(DAYS[days.rem_euclid(7) as usize]),
            'D' => number(days - from_civil(year, 1, 1) + 1),
            'z' => "UTC".to_owned(),
            'Z' => "+0000".to_owned(),
            'X' => "Z".to_owned(),
            'G' => "AD".to_owned(),
            other => other.to_string(),
        });
    }
    out
}

/// Days since the epoch to year, month, day (proleptic Gregorian).
pub fn civil(days: i64) -> (i64, i64, i64) {
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

/// The inverse of [`civil`].
fn from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_follow_the_pattern() {
        let time = 1_709_210_096_789; // 2024-02-29T12:34:56.789Z, a Thursday
        for (pattern, text) in [
            ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2024-02-29T12:34:56.789Z"),
            ("EEE MMM dd yy h:m a", "Thu Feb 29 24 12:34 PM"),
            ("EEEE, d MMMM D", "Thursday, 29 February 60"),
            ("''yyyy", "'2024"),
        ] {
            assert_eq!(format(time, pattern), text, "{pattern}");
        }
        for days in [-800_000, -1, 0, 59, 60, 365, 19_782, 800_000] {
            let (year, month, day) = civil(days);
            assert_eq!(from_civil(year, month, day), days);
        }
    }
}
