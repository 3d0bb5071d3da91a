//! Numbers: whole, decimal, and binary where neither will do.
//!
//! Decimals are exact (`0.1 + 0.2` is `0.3`). Whole numbers that grow too large become decimals, decimals that grow too
//! large become binary. What is computed is written without a needless fraction; what is only passed on keeps its own.

use std::cmp::Ordering;
use std::fmt;

/// Significant digits of a division that does not end.
const DIGITS: u32 = 16;
/// Most digits after the point.
const MAX_SCALE: u32 = 30;

/// A number.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// A whole number.
    Integer(i64),
    /// `mantissa · 10^-scale`.
    Decimal(i128, u32),
    /// What has no decimal of a sensible length; may be infinite, or not a number.
    Double(f64),
}

use Number::{Decimal, Double, Integer};

impl Number {
    /// Reads digits with an optional sign, fraction and exponent.
    pub fn parse(text: &str) -> Option<Number> {
        if let Ok(whole) = text.parse::<i64>() {
            return (!text.starts_with('+')).then_some(Integer(whole));
        }
        let (mantissa, exponent) = match text.find(['e', 'E']) {
            Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
            None => (text, 0),
        };
        let digits = mantissa.strip_prefix('-').unwrap_or(mantissa);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) {
            return None;
        }
        if mantissa.contains('.') && fraction.is_empty() {
            return None;
        }
        let negative = digits.len() < mantissa.len();
        let scale = fraction.len() as i64 - i64::from(exponent);
        if digits.len() <= 36 && (-36..=i64::from(MAX_SCALE)).contains(&scale) {
            let value = format!("{whole}{fraction}").parse::<i128>().ok();
            let value = value.and_then(|value| {
                if scale < 0 { value.checked_mul(10i128.checked_pow(-scale as u32)?) } else { Some(value) }
            });
            if let Some(value) = value {
                return Some(Decimal(if negative { -value } else { value }, scale.max(0) as u32));
            }
        }
        text.parse().ok().map(Double)
    }

    /// A binary number, as a whole one where it is whole.
    pub fn of(value: f64) -> Number {
        if value.fract() == 0.0 && value.abs() < 9.0e15 { Integer(value as i64) } else { Double(value) }
    }

    /// As a binary number.
    pub fn as_f64(self) -> f64 {
        match self {
            Integer(value) => value as f64,
            // Through the text: dividing would round twice.
            Decimal(..) => self.to_string().parse().unwrap_or(f64::NAN),
            Double(value) => value,
        }
    }

    /// As a whole number, if it is one.
    pub fn as_i64(self) -> Option<i64> {
        match self.normal() {
            Integer(value) => Some(value),
            _ => None,
        }
    }

    /// The parts of a decimal; `None` for what is only binary.
    fn parts(self) -> Option<(i128, u32)> {
        match self {
            Integer(value) => Some((value.into(), 0)),
            Decimal(mantissa, scale) => Some((mantissa, scale)),
            Double(value) if value.is_finite() => match Number::parse(&format!("{value}"))? {
                Double(_) => None,
                other => other.parts(),
            },
            Double(_) => None,
        }
    }

    /// Without zeros at the end, and whole where that is possible.
    pub fn normal(self) -> Number {
        match self {
            Integer(_) => self,
            Decimal(mut mantissa, mut scale) => {
                while scale > 0 && mantissa % 10 == 0 {
                    mantissa /= 10;
                    scale -= 1;
                }
                match i64::try_from(mantissa) {
                    Ok(whole) if scale == 0 => Integer(whole),
                    _ => Decimal(mantissa, scale),
                }
            }
            Double(value) => Number::of(value),
        }
    }

    fn aligned(self, other: Number) -> Option<(i128, i128, u32)> {
        let ((a, a_scale), (b, b_scale)) = (self.parts()?, other.parts()?);
        let scale = a_scale.max(b_scale);
        let a = a.checked_mul(10i128.checked_pow(scale - a_scale)?)?;
        let b = b.checked_mul(10i128.checked_pow(scale - b_scale)?)?;
        Some((a, b, scale))
    }

    fn sum(
        self,
        other: Number,
        whole: fn(i128, i128) -> Option<i128>,
        binary: fn(f64, f64) -> f64,
    ) -> Number {
        let exact = self.aligned(other).and_then(|(a, b, scale)| Some(Decimal(whole(a, b)?, scale).normal()));
        exact.unwrap_or_else(|| Double(binary(self.as_f64(), other.as_f64())))
    }

    /// `self + other`.
    pub fn plus(self, other: Number) -> Number {
        self.sum(other, i128::checked_add, |a, b| a + b)
    }

    /// `self - other`.
    pub fn subtract(self, other: Number) -> Number {
        self.sum(other, i128::checked_sub, |a, b| a - b)
    }

    /// `self * other`.
    pub fn multiply(self, other: Number) -> Number {
        let exact = || {
            let ((a, a_scale), (b, b_scale)) = (self.parts()?, other.parts()?);
            let product = Decimal(a.checked_mul(b)?, a_scale + b_scale).normal();
            Some(match product {
                Decimal(_, scale) if scale > MAX_SCALE => Double(self.as_f64() * other.as_f64()),
                product => product,
            })
        };
        exact().unwrap_or_else(|| Double(self.as_f64() * other.as_f64()))
    }

    /// `self / other`: exact where that ends, else to 16 significant digits; `None` by zero.
    pub fn divide(self, other: Number) -> Option<Number> {
        if other.is_zero() {
            return None;
        }
        if let (Integer(a), Integer(b)) = (self, other) {
            return Some(match a.checked_rem(b) {
                Some(0) => Integer(a / b),
                _ => Number::of(a as f64 / b as f64),
            });
        }
        let exact = || {
            let (a, b, _) = self.aligned(other)?;
            let (mut quotient, mut rest) = (a / b, a % b);
            let mut scale = 0;
            let digits = |value: i128| value.unsigned_abs().checked_ilog10().map_or(0, |log| log + 1);
            while rest != 0 && scale < MAX_SCALE && digits(quotient) < DIGITS {
                rest = rest.checked_mul(10)?;
                quotient = quotient.checked_mul(10)?.checked_add(rest / b)?;
                rest %= b;
                scale += 1;
            }
            if rest.checked_mul(2)?.unsigned_abs() >= b.unsigned_abs() {
                quotient += if (a < 0) == (b < 0) { 1 } else { -1 };
            }
            Some(Decimal(quotient, scale).normal())
        };
        Some(exact().unwrap_or_else(|| Double(self.as_f64() / other.as_f64())))
    }

    /// `self % other`, with the sign of `self`; `None` by zero.
    pub fn remainder(self, other: Number) -> Option<Number> {
        if other.is_zero() {
            return None;
        }
        Some(self.sum(other, i128::checked_rem, |a, b| a % b))
    }

    fn is_zero(self) -> bool {
        match self {
            Integer(value) => value == 0,
            Decimal(mantissa, _) => mantissa == 0,
            Double(value) => value == 0.0,
        }
    }

    /// To so many digits after the point; halves away from zero. `None` where it is not finite.
    pub fn rounded(self, digits: u32) -> Option<Number> {
        let Some((mantissa, scale)) = self.parts() else {
            return self.as_f64().is_finite().then_some(self);
        };
        if scale <= digits {
            return Some(Decimal(mantissa, scale).normal());
        }
        let unit = 10i128.checked_pow(scale - digits)?;
        let (whole, rest) = (mantissa / unit, mantissa % unit);
        let up = i128::from(rest.abs() * 2 >= unit) * mantissa.signum();
        Some(Decimal(whole + up, digits).normal())
    }

    /// The order of two numbers; none if one of them is not a number.
    pub fn order(self, other: Number) -> Option<Ordering> {
        match self.aligned(other) {
            Some((a, b, _)) => Some(a.cmp(&b)),
            None => self.as_f64().partial_cmp(&other.as_f64()),
        }
    }

    /// As JSON; what JSON has no number for is null.
    pub fn to_json(self) -> serde_json::Value {
        match self {
            Integer(value) => value.into(),
            Decimal(..) => serde_json::from_str(&self.to_string()).unwrap_or(serde_json::Value::Null),
            Double(value) => serde_json::Number::from_f64(value).map_or(serde_json::Value::Null, Into::into),
        }
    }
}

/// Plain notation; a decimal keeps one digit of the fraction it was written with.
impl fmt::Display for Number {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Integer(value) => write!(out, "{value}"),
            Decimal(mantissa, 0) => write!(out, "{mantissa}"),
            Decimal(mantissa, scale) => {
                let sign = if mantissa < 0 { "-" } else { "" };
                let digits = format!("{:0width$}", mantissa.unsigned_abs(), width = scale as usize + 1);
                let (whole, fraction) = digits.split_at(digits.len() - scale as usize);
                let fraction = fraction.trim_end_matches('0');
                write!(out, "{sign}{whole}.{}", if fraction.is_empty() { "0" } else { fraction })
            }
            Double(value) => out.write_str(&message::value::number_text(value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        Number::parse(text).unwrap()
    }

    #[test]
    fn arithmetic_is_exact_where_it_can_be() {
        for (a, op, b, wanted) in [
            ("1", '+', "2", "3"),
            ("0.1", '+', "0.2", "0.3"),
            ("8.89", '+', "0.12", "9.01"),
            ("1.5", '+', "1.5", "3"),
            ("2147483647", '+', "1", "2147483648"),
            ("9223372036854775807", '+', "1", "9223372036854775808"),
            ("5", '-', "7.5", "-2.5"),
            ("2.5", '*', "2", "5"),
            ("5", '*', "-2", "-10"),
            ("8", '/', "2", "4"),
            ("7", '/', "2", "3.5"),
            ("7", '/', "3", "2.3333333333333335"),
            ("5.5", '/', "2", "2.75"),
            ("10.00", '/', "8", "1.25"),
            ("0.3", '/', "0.1", "3"),
            ("1.0", '/', "3", "0.3333333333333333"),
            ("-1.0", '/', "6", "-0.1666666666666667"),
            ("10", '%', "3", "1"),
            ("-10", '%', "3", "-1"),
            ("5.5", '%', "2", "1.5"),
            ("1e300", '*', "1e300", "Infinity"),
            ("99999999999999999999999999999999999999", '*', "10", "1000000000000000000000000000000000000000"),
        ] {
            let (a, b) = (number(a), number(b));
            let result = match op {
                '+' => a.plus(b),
                '-' => a.subtract(b),
                '*' => a.multiply(b),
                '/' => a.divide(b).unwrap(),
                _ => a.remainder(b).unwrap(),
            };
            assert_eq!(result.to_string(), wanted, "{a} {op} {b}");
        }
        assert!(
            number("1").divide(number("0")).is_none() && number("1.5").remainder(number("0.0")).is_none()
        );
        assert!(number("-9223372036854775808").divide(number("-1")).is_some());
    }

    #[test]
    fn texts_are_read_and_written() {
        for (text, wanted) in [
            ("007", "7"),
            ("-0", "0"),
            ("1.50", "1.5"),
            ("3.0", "3.0"),
            ("1e3", "1000"),
            ("1E-2", "0.01"),
            ("-12.25", "-12.25"),
            ("99999999999999999999", "99999999999999999999"),
        ] {
            assert_eq!(number(text).to_string(), wanted, "{text}");
        }
        for text in ["", "-", ".5", "5.", "1e", "0x1", "+1", "1 ", "NaN", "--1", "1.2.3"] {
            assert!(Number::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn rounding_takes_halves_away_from_zero() {
        for (text, digits, wanted) in [
            ("0.115", 2, "0.12"),
            ("0.111", 4, "0.111"),
            ("2.345", 2, "2.35"),
            ("-2.5", 0, "-3"),
            ("5", 2, "5"),
            ("9.99", 1, "10"),
        ] {
            assert_eq!(number(text).rounded(digits).unwrap().to_string(), wanted, "{text}");
        }
        assert!(Double(f64::NAN).rounded(1).is_none());
        assert_eq!(number("1").order(number("1.0")), Some(Ordering::Equal));
        assert_eq!(number("5000000000").order(number("3.5")), Some(Ordering::Greater));
    }
}
