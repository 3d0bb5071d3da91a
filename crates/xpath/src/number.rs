//! Numbers exactly as XPath 1.0 writes, reads and rounds them (sections 4.2 and 4.4).

use std::borrow::Cow;

/// `number(string)`: optional minus and decimal digits within white space; anything else is NaN.
pub fn parse(s: &str) -> f64 {
    let t = s.trim_matches(|c| matches!(c, ' ' | '\t' | '\r' | '\n'));
    let digits = t.strip_prefix('-').unwrap_or(t).as_bytes();
    // Small integers are the rule in messages.
    if (1..=15).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit) {
        let n = digits.iter().fold(0u64, |n, d| n * 10 + u64::from(d - b'0')) as f64;
        return if digits.len() == t.len() { n } else { -n };
    }
    let mut point = false;
    let mut any = false;
    for b in digits {
        match b {
            b'0'..=b'9' => any = true,
            b'.' if !point => point = true,
            _ => return f64::NAN,
        }
    }
    if any { t.parse().unwrap_or(f64::NAN) } else { f64::NAN }
}

/// `string(number)`: never an exponent, no digits beyond what identifies the double.
pub fn format(n: f64) -> Cow<'static, str> {
    if n.is_nan() {
        return Cow::Borrowed("NaN");
    }
    if n.is_infinite() {
        return Cow::Borrowed(if n > 0.0 { "Infinity" } else { "-Infinity" });
    }
    if n == 0.0 {
        return Cow::Borrowed("0");
    }
    if n.fract() == 0.0 && n.abs() < 1e15 {
        let small = n as i64;
        const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
        return match DIGITS.get(usize::try_from(small).unwrap_or(usize::MAX)) {
            Some(d) => Cow::Borrowed(d),
            None => Cow::Owned(small.to_string()),
        };
    }
    Cow::Owned(n.to_string())
}

/// `round()`: the nearest integer, halves towards positive infinity, the sign of zero kept.
pub fn round(n: f64) -> f64 {
    if !n.is_finite() || n.fract() == 0.0 {
        return n;
    }
    let floor = n.floor();
    let r = if n - floor >= 0.5 { floor + 1.0 } else { floor };
    if r == 0.0 && n < 0.0 { -0.0 } else { r }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes() {
        for (n, s) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (1e21, "1000000000000000000000"),
            (1e-7, "0.0000001"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
            (0.1 + 0.2, "0.30000000000000004"),
            (123456.0, "123456"),
            (-12.0, "-12"),
            (1e15, "1000000000000000"),
        ] {
            assert_eq!(format(n), s);
        }
    }

    #[test]
    fn reads() {
        for (s, n) in [
            ("1", 1.0),
            (" -1.5\n", -1.5),
            (".5", 0.5),
            ("5.", 5.0),
            ("-0", -0.0),
            ("0012", 12.0),
            ("12345678901234567890", 12345678901234567890.0),
        ] {
            assert_eq!(parse(s), n, "{s}");
        }
        assert!(parse("-0").is_sign_negative());
        for s in ["", "-", ".", "+1", "1e3", "1 2", "--1", "Infinity", "NaN", "0x1", "1..2", "\u{a0}1", "- 1"]
        {
            assert!(parse(s).is_nan(), "{s}");
        }
    }

    #[test]
    fn rounds() {
        for (n, r) in [
            (0.5, 1.0),
            (-0.5, -0.0),
            (1.5, 2.0),
            (-1.5, -1.0),
            (2.4, 2.0),
            (-2.6, -3.0),
            (-0.2, -0.0),
            (0.49999999999999994, 0.0),
            (4503599627370497.0, 4503599627370497.0),
        ] {
            assert_eq!(round(n).to_bits(), f64::to_bits(r), "{n}");
        }
    }
}
