//! `xs:integer`s beyond 64 bits: check digits by `mod 97` of account numbers, products, factorials.

use super::{Atomic, Decimal};
use num_bigint::{BigInt, Sign};
use std::sync::Arc;

/// Most bits of an integer: some 2,400 digits, so that an operation is cheap.
const MAX_BITS: u64 = 8192;
/// Most digits of a literal or text.
const MAX_DIGITS: usize = 2400;

/// The value of an integer; `None`: it has too many digits.
pub(crate) fn integer(n: BigInt) -> Option<Atomic> {
    match i64::try_from(&n) {
        Ok(n) => Some(Atomic::Integer(n)),
        Err(_) if n.bits() <= MAX_BITS => Some(Atomic::Large(Arc::new(n))),
        Err(_) => None,
    }
}

/// The integer of a text with sign and digits. `None`: it is not one, or too large.
pub(crate) fn parse(text: &str) -> Option<Atomic> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || digits.len() > MAX_DIGITS || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    integer(text.strip_prefix('+').unwrap_or(text).parse().ok()?)
}

/// A double without its fraction; `None`: it is not finite.
pub(crate) fn of_double(n: f64) -> Option<Atomic> {
    if !n.is_finite() {
        return None;
    }
    if n.abs() < 9.2e18 {
        return Some(Atomic::Integer(n as i64));
    }
    parse(&format!("{:.0}", n.trunc()))
}

/// The integer of a value.
pub(crate) fn whole(atom: &Atomic) -> Option<BigInt> {
    match atom {
        Atomic::Integer(n) => Some(BigInt::from(*n)),
        Atomic::Large(n) => Some((**n).clone()),
        _ => None,
    }
}

/// An operation on two integers of which at least one does not fit into 64 bits.
pub(crate) fn wholes(a: &Atomic, b: &Atomic) -> Option<(BigInt, BigInt)> {
    if !matches!((a, b), (Atomic::Large(_), _) | (_, Atomic::Large(_))) {
        return None;
    }
    whole(a).zip(whole(b))
}

/// A product; `None`: it has too many digits.
pub(crate) fn product(a: &BigInt, b: &BigInt) -> Option<Atomic> {
    if a.bits() + b.bits() > MAX_BITS + 1 {
        return None;
    }
    integer(a * b)
}

/// The quotient of two integers, the second of which is not zero, with as many decimal places as a decimal holds, up to 18.
/// `None`: it has too many digits.
pub(crate) fn quotient(a: &BigInt, b: &BigInt) -> Option<Decimal> {
    (0..=18).rev().find_map(|scale| {
        let coefficient = i128::try_from(a * BigInt::from(10).pow(scale) / b).ok()?;
        Some(Decimal::new(coefficient, scale))
    })
}

/// Rounded to tens, hundreds, …: `places` zeros at the end; halves to even, or towards positive infinity.
pub(crate) fn rounded(n: &BigInt, places: u32, half_even: bool) -> BigInt {
    if u64::from(places) > MAX_BITS {
        return BigInt::ZERO;
    }
    let unit = BigInt::from(10).pow(places);
    let (mut quotient, mut rest) = (n / &unit, n % &unit);
    if rest.sign() == Sign::Minus {
        quotient -= 1;
        rest += &unit;
    }
    let up = match (&rest * 2u8).cmp(&unit) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Greater => true,
        std::cmp::Ordering::Equal => !half_even || quotient.bit(0),
    };
    if up {
        quotient += 1;
    }
    quotient * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_rounds() {
        let shown = |atom: Option<Atomic>| atom.map_or("none".into(), |atom| atom.to_text().into_owned());
        assert!(matches!(parse("9223372036854775807"), Some(Atomic::Integer(i64::MAX))));
        assert_eq!(shown(parse("+9223372036854775808")), "9223372036854775808");
        assert_eq!(shown(parse("-123456789012345678901234567890")), "-123456789012345678901234567890");
        assert_eq!(shown(parse(&"9".repeat(MAX_DIGITS + 1))), "none");
        assert_eq!(shown(parse("1.5")), "none");
        assert_eq!(shown(of_double(-1e20)), "-100000000000000000000");
        let n = |text: &str| text.parse::<BigInt>().unwrap();
        let tens = |power: usize| n(&format!("1{}", "0".repeat(power)));
        for (a, b, expected) in
            [(45, 40, "100000"), (45, 46, "0.1"), (45, 5, "none"), (45, 8, &tens(37).to_string())]
        {
            let shown = quotient(&tens(a), &tens(b)).map_or("none".into(), |d| d.to_string());
            assert_eq!(shown, expected, "{a} {b}");
        }
        for (from, places, up, even) in [
            ("123456789012345678905", 1, "123456789012345678910", "123456789012345678900"),
            ("-123456789012345678905", 1, "-123456789012345678900", "-123456789012345678900"),
            ("123456789012345678949", 2, "123456789012345678900", "123456789012345678900"),
            ("123456789012345678915", 1, "123456789012345678920", "123456789012345678920"),
        ] {
            assert_eq!(rounded(&n(from), places, false), n(up), "{from}");
            assert_eq!(rounded(&n(from), places, true), n(even), "{from}");
        }
    }
}
