//! Decimal numbers of any length, kept as digits.

use std::cmp::Ordering;

/// A decimal number: no leading zeros before and no trailing zeros behind the point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decimal {
    negative: bool,
    whole: Box<str>,
    fraction: Box<str>,
}

impl Decimal {
    /// Parses `[+-]?(\d+(\.\d*)?|\.\d+)`.
    pub fn parse(text: &str) -> Option<Decimal> {
        let (negative, digits) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if whole.len() + fraction.len() == 0
            || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit())
        {
            return None;
        }
        let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
        let negative = negative && !(whole.is_empty() && fraction.is_empty());
        Some(Decimal { negative, whole: whole.into(), fraction: fraction.into() })
    }

    /// The number of significant digits (facet totalDigits).
    pub fn total_digits(&self) -> u64 {
        (self.whole.len() + self.fraction.len()).max(1) as u64
    }

    /// The number of digits behind the point (facet fractionDigits).
    pub fn fraction_digits(&self) -> u64 {
        self.fraction.len() as u64
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        let size = |a: &Decimal, b: &Decimal| {
            let (a_whole, b_whole) = (&a.whole, &b.whole);
            a_whole
                .len()
                .cmp(&b_whole.len())
                .then_with(|| a_whole.cmp(b_whole))
                .then_with(|| a.fraction.cmp(&b.fraction))
        };
        match (self.negative, other.negative) {
            (false, false) => size(self, other),
            (true, true) => size(other, self),
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_digits() {
        let d = |text| Decimal::parse(text).expect("a decimal");
        for (a, b, order) in [
            ("0", "-0.0", Ordering::Equal),
            ("1.50", "01.5", Ordering::Equal),
            ("9", "10", Ordering::Less),
            ("-9", "-10", Ordering::Greater),
            ("0.05", "0.5", Ordering::Less),
            ("123456789012345678901234567890.1", "123456789012345678901234567890.2", Ordering::Less),
        ] {
            assert_eq!(d(a).cmp(&d(b)), order, "{a} {b}");
        }
        assert_eq!((d("00120.50").total_digits(), d("00120.50").fraction_digits()), (4, 1));
        for bad in ["", "+", ".", "1e3", "1,0", "--1"] {
            assert_eq!(Decimal::parse(bad), None, "{bad}");
        }
    }
}
