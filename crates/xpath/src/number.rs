//! Numbers exactly as XPath 1.0 writes, reads and rounds them (sections 4.2 and 4.4).

use crate::ast::BinaryOp;
use std::borrow::Cow;
use std::cmp::Ordering;

/// `number(string)`: optional minus and decimal digits within white space; anything else is NaN.
pub fn parse(s: &str) -> f64 {
    // Most numbers in messages are small integers.
    if (1..=15).contains(&s.len()) {
        let mut n = 0u64;
        if s.bytes().all(|byte| {
            let digit = byte.wrapping_sub(b'0');
            n = n.wrapping_mul(10).wrapping_add(u64::from(digit));
            digit < 10
        }) {
            return n as f64;
        }
    }
    let t = s.trim_matches(|c| matches!(c, ' ' | '\t' | '\r' | '\n'));
    let digits = t.strip_prefix('-').unwrap_or(t).as_bytes();
    if (1..=15).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit) {
        let n = digits.iter().fold(0u64, |n, d| n * 10 + u64::from(d - b'0')) as f64;
        return if digits.len() == t.len() { n } else { -n };
    }
    // Those with a point and few digits: exact, because both parts and the power of ten are.
    if let Some(n) = short_decimal(digits) {
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

/// The powers of ten that a double holds exactly.
pub(crate) const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// Digits and a point, with at most 15 digits in all. The quotient of two integers that a double holds exactly is the nearest
/// double to the decimal number.
fn short_decimal(bytes: &[u8]) -> Option<f64> {
    if !(2..=16).contains(&bytes.len()) {
        return None;
    }
    let (mut n, mut behind, mut point) = (0u64, 0, false);
    for byte in bytes {
        match byte {
            b'0'..=b'9' => {
                n = n * 10 + u64::from(byte - b'0');
                behind += u32::from(point);
            }
            b'.' if !point => point = true,
            _ => return None,
        }
    }
    (point && bytes.len() > 1).then(|| n as f64 / POWERS[behind as usize])
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
        return integer(n as i64);
    }
    Cow::Owned(n.to_string())
}

/// Whether values of this order compare so.
pub fn holds(op: BinaryOp, order: Ordering) -> bool {
    match op {
        BinaryOp::Equal => order == Ordering::Equal,
        BinaryOp::NotEqual => order != Ordering::Equal,
        BinaryOp::Less => order == Ordering::Less,
        BinaryOp::LessOrEqual => order != Ordering::Greater,
        BinaryOp::Greater => order == Ordering::Greater,
        _ => order != Ordering::Less,
    }
}

/// The digits of an integer.
pub fn integer(n: i64) -> Cow<'static, str> {
    const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
    if let Some(digit) = usize::try_from(n).ok().and_then(|n| DIGITS.get(n)) {
        return Cow::Borrowed(digit);
    }
    let (mut digits, mut at, mut rest) = ([0u8; 20], 20, n.unsigned_abs());
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let mut text = String::with_capacity(21 - at);
    if n < 0 {
        text.push('-');
    }
    text.extend(digits[at..].iter().map(|digit| char::from(*digit)));
    Cow::Owned(text)
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

/// `+`, `-`, `*`, `div` or `mod` of two numbers (section 3.5).
#[inline]
pub fn arithmetic(op: BinaryOp, a: f64, b: f64) -> f64 {
    match op {
        BinaryOp::Add => a + b,
        BinaryOp::Subtract => a - b,
        BinaryOp::Multiply => a * b,
        BinaryOp::Divide => a / b,
        _ => modulo(a, b),
    }
}

/// `mod`: the remainder, with the sign of the dividend. The general way goes bit by bit, so small whole numbers are divided as integers.
#[inline]
pub(crate) fn modulo(a: f64, b: f64) -> f64 {
    let (dividend, divisor) = (a as i32, b as i32);
    // (What is no such number is another one than its integer. Of a negative dividend even 0 is negative.)
    if dividend > 0 && divisor != 0 && f64::from(dividend) == a && f64::from(divisor) == b {
        return f64::from(dividend % divisor);
    }
    a % b
}

/// One of the six comparisons of two numbers (section 3.4).
#[inline]
pub fn relation(op: BinaryOp, a: f64, b: f64) -> bool {
    match op {
        BinaryOp::Equal => a == b,
        BinaryOp::NotEqual => a != b,
        BinaryOp::Less => a < b,
        BinaryOp::LessOrEqual => a <= b,
        BinaryOp::Greater => a > b,
        _ => a >= b,
    }
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
    fn remainders() {
        let numbers = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            2.5,
            7.0,
            -7.0,
            2147483647.0,
            2147483648.0,
            -2147483648.0,
            1e300,
            f64::INFINITY,
            f64::NAN,
        ];
        for a in numbers {
            for b in numbers {
                let (found, expected) = (arithmetic(BinaryOp::Modulo, a, b), a % b);
                assert!(
                    found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan(),
                    "{a} mod {b}: {found}"
                );
            }
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
