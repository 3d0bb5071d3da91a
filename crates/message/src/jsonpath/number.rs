//! Numbers as they are written: comparison without loss, and plain decimal notation.

use std::borrow::Cow;
use std::cmp::Ordering;

/// Exponents up to this are written out as digits.
const MAX_EXPANDED: i64 = 400;

/// Compares two JSON numbers: integers up to 128 bits exactly, everything else as doubles.
pub(super) fn compare(a: &str, b: &str) -> Option<Ordering> {
    if let (Ok(a), Ok(b)) = (a.parse::<i128>(), b.parse::<i128>()) {
        return Some(a.cmp(&b));
    }
    a.parse::<f64>().ok()?.partial_cmp(&b.parse::<f64>().ok()?)
}

/// A JSON number without exponent and without trailing zeros of a fraction (one digit stays); an integer is
/// left as it is written. Very large exponents are left alone.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(['.', 'e', 'E']) {
        return Cow::Borrowed(text);
    }
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let Ok(exponent) = exponent.parse::<i64>() else { return Cow::Borrowed(text) };
    if exponent.abs() > MAX_EXPANDED {
        return Cow::Borrowed(text);
    }
    let had_fraction = mantissa.contains('.');
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = String::with_capacity(whole.len() + fraction.len() + MAX_EXPANDED as usize);
    digits.push_str(whole);
    digits.push_str(fraction);
    // Where the point stands in `digits`.
    let mut point = whole.len() as i64 + exponent;
    while point <= 0 {
        digits.insert(0, '0');
        point += 1;
    }
    while (digits.len() as i64) < point {
        digits.push('0');
    }
    let (whole, fraction) = digits.split_at(point as usize);
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let fraction = fraction.trim_end_matches('0');
    Cow::Owned(match (fraction, had_fraction) {
        ("", false) => format!("{sign}{whole}"),
        ("", true) => format!("{sign}{whole}.0"),
        (fraction, _) => format!("{sign}{whole}.{fraction}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_notation() {
        for (text, expected) in [
            ("1", "1"),
            ("-0", "-0"),
            ("1.50", "1.5"),
            ("1.0", "1.0"),
            ("-2.00", "-2.0"),
            ("1e3", "1000"),
            ("1E-2", "0.01"),
            ("1.25e1", "12.5"),
            ("12345678.9", "12345678.9"),
            ("1e400", &format!("1{}", "0".repeat(400))),
            ("1e401", "1e401"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
            ("0.12345678901234567890123", "0.12345678901234567890123"),
            ("1e99999999999999999999", "1e99999999999999999999"),
        ] {
            assert_eq!(plain(text), expected, "{text}");
        }
    }

    #[test]
    fn comparison() {
        use Ordering::{Equal, Greater, Less};
        for (a, b, expected) in [
            ("1", "1.0", Equal),
            ("110", "1.1e2", Equal),
            ("-0", "0", Equal),
            ("9007199254740993", "9007199254740992", Greater),
            ("0.1", "0.2", Less),
        ] {
            assert_eq!(compare(a, b), Some(expected), "{a} {b}");
        }
    }
}
