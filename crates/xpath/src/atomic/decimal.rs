//! `xs:decimal`: exact, up to 38 digits (XML Schema 1.0 part 2, section 3.2.3 demands 18).

use std::cmp::Ordering;
use std::fmt;

/// A decimal number: `coefficient / 10^scale`, without trailing zeros in the fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decimal {
    coefficient: i128,
    scale: u32,
}

/// Most fraction digits of a quotient.
const DIVISION_SCALE: u32 = 18;
/// Most fraction digits.
const MAX_SCALE: u32 = 36;

impl Decimal {
    /// Zero.
    pub const ZERO: Decimal = Decimal { coefficient: 0, scale: 0 };

    /// `coefficient / 10^scale`.
    pub fn new(coefficient: i128, scale: u32) -> Decimal {
        let (mut coefficient, mut scale) = (coefficient, scale);
        while scale > 0 && coefficient % 10 == 0 {
            coefficient /= 10;
            scale -= 1;
        }
        Decimal { coefficient, scale }
    }

    /// From the lexical form: sign, digits, one point. `None`: it is not one, or has too many digits.
    pub fn parse(text: &str) -> Option<Decimal> {
        let (negative, digits) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let fraction = fraction.trim_end_matches('0');
        if digits.is_empty() || digits == "." || fraction.len() > MAX_SCALE as usize && !all_digits(fraction)
        {
            return None;
        }
        if !all_digits(whole) || !all_digits(fraction) {
            return None;
        }
        let fraction = &fraction[..fraction.len().min(MAX_SCALE as usize)];
        let mut coefficient: i128 = 0;
        for digit in whole.bytes().chain(fraction.bytes()) {
            coefficient = coefficient.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
        }
        Some(Decimal::new(if negative { -coefficient } else { coefficient }, fraction.len() as u32))
    }

    /// The decimal nearest to a double, by its shortest decimal form. `None`: it is not finite or too large.
    pub fn from_double(n: f64) -> Option<Decimal> {
        if !n.is_finite() {
            return None;
        }
        Decimal::parse(&n.to_string())
    }

    /// The nearest double.
    pub fn to_double(self) -> f64 {
        // The quotient of two integers that doubles hold exactly is the nearest double.
        if self.coefficient.unsigned_abs() < 1 << 53
            && let Some(power) = crate::number::POWERS.get(self.scale as usize)
        {
            return self.coefficient as f64 / power;
        }
        self.to_string().parse().unwrap_or(f64::NAN)
    }

    /// Rounded towards zero; `None`: it does not fit into 64 bits.
    pub fn to_integer(self) -> Option<i64> {
        i64::try_from(self.coefficient / ten(self.scale)?).ok()
    }

    /// The same without that bound.
    pub fn to_whole(self) -> Option<i128> {
        Some(self.coefficient / ten(self.scale)?)
    }

    /// Whether it has no fraction.
    pub fn is_whole(self) -> bool {
        self.scale == 0
    }

    /// Whether it is zero.
    pub fn is_zero(self) -> bool {
        self.coefficient == 0
    }

    /// Whether it is below zero.
    pub fn is_negative(self) -> bool {
        self.coefficient < 0
    }

    /// Both with the same scale.
    fn aligned(self, other: Decimal) -> Option<(i128, i128, u32)> {
        let scale = self.scale.max(other.scale);
        let a = self.coefficient.checked_mul(ten(scale - self.scale)?)?;
        let b = other.coefficient.checked_mul(ten(scale - other.scale)?)?;
        Some((a, b, scale))
    }

    /// `None`: too many digits.
    pub fn plus(self, other: Decimal) -> Option<Decimal> {
        let (a, b, scale) = self.aligned(other)?;
        Some(Decimal::new(a.checked_add(b)?, scale))
    }

    /// `None`: too many digits.
    pub fn minus(self, other: Decimal) -> Option<Decimal> {
        self.plus(other.negate())
    }

    /// The same with the other sign.
    pub fn negate(self) -> Decimal {
        Decimal { coefficient: self.coefficient.checked_neg().unwrap_or(i128::MAX), ..self }
    }

    /// Without its sign.
    pub fn abs(self) -> Decimal {
        if self.is_negative() { self.negate() } else { self }
    }

    /// `None`: too many digits.
    pub fn multiply(self, other: Decimal) -> Option<Decimal> {
        let product = self.coefficient.checked_mul(other.coefficient)?;
        let scale = self.scale + other.scale;
        if scale <= MAX_SCALE {
            return Some(Decimal::new(product, scale));
        }
        Some(Decimal::new(product / ten(scale - MAX_SCALE)?, MAX_SCALE))
    }

    /// To 18 fraction digits, half away from zero. `None`: division by zero or too many digits.
    pub fn divide(self, other: Decimal) -> Option<Decimal> {
        if other.is_zero() {
            return None;
        }
        let wanted = DIVISION_SCALE.max(self.scale);
        // coefficient/10^scale : (other/10^o) = coefficient * 10^(wanted - scale + o) / other / 10^wanted
        for scale in (0..=wanted).rev() {
            let Some(power) = (scale + other.scale).checked_sub(self.scale) else { break };
            let Some(numerator) = ten(power).and_then(|t| self.coefficient.checked_mul(t)) else { continue };
            let (quotient, rest) = (numerator / other.coefficient, numerator % other.coefficient);
            let up = rest.unsigned_abs() >= other.coefficient.unsigned_abs().div_ceil(2);
            let sign = if (numerator < 0) == (other.coefficient < 0) { 1 } else { -1 };
            return Some(Decimal::new(quotient + if up { sign } else { 0 }, scale));
        }
        Decimal::from_double(self.to_double() / other.to_double())
    }

    /// The remainder with the sign of the dividend; `None`: division by zero or too many digits.
    pub fn remainder(self, other: Decimal) -> Option<Decimal> {
        if other.is_zero() {
            return None;
        }
        let (a, b, scale) = self.aligned(other)?;
        Some(Decimal::new(a % b, scale))
    }

    /// The quotient rounded towards zero; `None`: division by zero or too large.
    pub fn whole_quotient(self, other: Decimal) -> Option<i128> {
        if other.is_zero() {
            return None;
        }
        let (a, b, _) = self.aligned(other)?;
        Some(a / b)
    }

    /// The greatest whole number not above it.
    pub fn floor(self) -> Decimal {
        let Some(power) = ten(self.scale) else { return Decimal::ZERO };
        Decimal { coefficient: self.coefficient.div_euclid(power), scale: 0 }
    }

    /// The least whole number not below it.
    pub fn ceiling(self) -> Decimal {
        self.negate().floor().negate()
    }

    /// To `digits` fraction digits (negative: zeros before the point); `half_even` or half towards positive infinity.
    pub fn round(self, digits: i64, half_even: bool) -> Decimal {
        if digits >= i64::from(self.scale) {
            return self;
        }
        let drop = i64::from(self.scale) - digits;
        let Some(unit) = u32::try_from(drop).ok().and_then(ten) else { return Decimal::ZERO };
        let (whole, rest) = (self.coefficient.div_euclid(unit), self.coefficient.rem_euclid(unit));
        let up = match (rest * 2).cmp(&unit) {
            Ordering::Less => false,
            Ordering::Greater => true,
            Ordering::Equal => !half_even || whole % 2 != 0,
        };
        let whole = whole + i128::from(up);
        match u32::try_from(digits) {
            Ok(scale) => Decimal::new(whole, scale),
            Err(_) => {
                let power = u32::try_from(-digits).ok().and_then(ten);
                Decimal::new(power.and_then(|p| whole.checked_mul(p)).unwrap_or(0), 0)
            }
        }
    }
}

impl From<i64> for Decimal {
    fn from(n: i64) -> Decimal {
        Decimal { coefficient: i128::from(n), scale: 0 }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        match self.aligned(*other) {
            Some((a, b, _)) => a.cmp(&b),
            None => self.to_double().total_cmp(&other.to_double()),
        }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.scale == 0 {
            return write!(f, "{}", self.coefficient);
        }
        let digits = self.coefficient.unsigned_abs().to_string();
        let scale = self.scale as usize;
        let padded = format!("{digits:0>width$}", width = scale + 1);
        let (whole, fraction) = padded.split_at(padded.len() - scale);
        let sign = if self.is_negative() { "-" } else { "" };
        write!(f, "{sign}{whole}.{fraction}")
    }
}

fn ten(power: u32) -> Option<i128> {
    10i128.checked_pow(power)
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn d(text: &str) -> Decimal {
        Decimal::parse(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn the_nearest_double() {
        let texts = [
            "0",
            "0.1",
            "-1.1",
            "1.19",
            "123456789.987654321",
            "9007199254740991",
            "-9007199254740.991",
            "9007199254740993",
            "0.0000000000000000000001",
            "0.9007199254740993",
            "3.141592653589793238462643383279",
        ];
        for text in texts {
            assert_eq!(d(text).to_double(), text.parse::<f64>().expect("a number"), "{text}");
        }
    }

    #[test]
    fn reads_and_writes() {
        for (text, shown) in [
            ("1", "1"),
            ("-1.50", "-1.5"),
            ("+.5", "0.5"),
            ("5.", "5"),
            ("00.100", "0.1"),
            ("-0", "0"),
            ("-0.05", "-0.05"),
        ] {
            assert_eq!(d(text).to_string(), shown, "{text}");
        }
        for text in ["", ".", "-", "1e3", "1.2.3", " 1", "INF"] {
            assert!(Decimal::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn calculates() {
        let one = |d: Option<Decimal>| d.map_or("none".into(), |d| d.to_string());
        assert_eq!(one(d("0.1").plus(d("0.2"))), "0.3");
        assert_eq!(one(d("1.5").multiply(d("-1.5"))), "-2.25");
        assert_eq!(one(d("1").divide(d("3"))), "0.333333333333333333");
        assert_eq!(one(d("2").divide(d("3"))), "0.666666666666666667");
        assert_eq!(one(d("-2").divide(d("3"))), "-0.666666666666666667");
        assert_eq!(one(d("10").divide(d("4"))), "2.5");
        assert_eq!(one(d("1").divide(d("0"))), "none");
        assert_eq!(one(d("10").remainder(d("-3"))), "1");
        assert_eq!(one(d("-10.5").remainder(d("3"))), "-1.5");
        assert_eq!(d("-7").whole_quotient(d("2")), Some(-3));
        assert!(d("1.10") == d("1.1") && d("1.09") < d("1.1"));
    }

    #[test]
    fn rounds() {
        for (n, digits, up, even) in [
            ("2.5", 0, "3", "2"),
            ("3.5", 0, "4", "4"),
            ("-2.5", 0, "-2", "-2"),
            ("3.567812", 2, "3.57", "3.57"),
            ("35612.25", -2, "35600", "35600"),
            ("0.125", 2, "0.13", "0.12"),
            ("1.15", 1, "1.2", "1.2"),
        ] {
            assert_eq!(d(n).round(digits, false).to_string(), up, "{n}");
            assert_eq!(d(n).round(digits, true).to_string(), even, "{n}");
        }
        assert_eq!(d("-1.5").floor().to_string(), "-2");
        assert_eq!(d("-1.5").ceiling().to_string(), "-1");
        assert_eq!(d("1.5").to_integer(), Some(1));
    }
}
