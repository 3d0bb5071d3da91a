//! `format-number()` of XPath 3.1 and XSLT 2.0 (F&O 3.1 section 4.7): by exact decimals, with grouping anywhere in the picture, and
//! exponents. The rules of XSLT 1.0 for pictures are in [`super::number`].

use super::number::{DecimalFormat, round_half_even, shortest_decimal};
use crate::atomic::Atomic;

/// One half of a picture.
#[derive(Debug, Default)]
struct Part {
    prefix: String,
    suffix: String,
    /// Decimal shift: 2 for percent, 3 for per mille.
    shift: i64,
    /// Positions of separators, counted in digits to the left of the point.
    groups: Vec<usize>,
    /// They repeat with that period.
    regular: Option<usize>,
    /// Positions of separators after the point.
    fraction_groups: Vec<usize>,
    min_integer: usize,
    /// Required digits of the integer part.
    scale: usize,
    min_fraction: usize,
    max_fraction: usize,
    /// Least digits of the exponent; 0: there is none.
    min_exponent: usize,
}

/// Formats a number by a picture; `exponents`: exponents are allowed (not in XSLT 2.0). Errors: a message (FODF1310).
pub fn format(number: &Atomic, picture: &str, by: &DecimalFormat, exponents: bool) -> Result<String, String> {
    let halves: Vec<&str> = picture.split(by.pattern_separator).collect();
    let (positive, negative) = match halves.as_slice() {
        [one] => (part(one, by, exponents)?, None),
        [one, two] => (part(one, by, exponents)?, Some(part(two, by, exponents)?)),
        _ => return Err(format!("format-number(): the picture \"{picture}\" has more than two parts")),
    };
    let double = number.to_double();
    if double.is_nan() {
        return Ok(by.nan.clone());
    }
    let is_negative = match number {
        Atomic::Double(_) | Atomic::Float(_) => double.is_sign_negative(),
        _ => double < 0.0,
    };
    let mut out = String::new();
    let chosen = match (&negative, is_negative) {
        (Some(negative), true) => negative,
        (None, true) => {
            out.push(by.minus_sign);
            &positive
        }
        _ => &positive,
    };
    out.push_str(&chosen.prefix);
    // Percent and per mille multiply by the rules of the number's type, so the product may be infinite.
    let factor = 10f64.powi(chosen.shift as i32);
    let (number, shift) = match number {
        Atomic::Double(n) => (&Atomic::Double(n * factor), 0),
        Atomic::Float(n) => (&Atomic::Float(n * factor as f32), 0),
        exact => (exact, chosen.shift),
    };
    if number.to_double().is_infinite() {
        out.push_str(&by.infinity);
    } else {
        let (digits, point) = digits_of(number);
        let point = if digits.is_empty() { point } else { point + shift };
        chosen.write(digits, point, by, &mut out);
    }
    out.push_str(&chosen.suffix);
    Ok(out)
}

/// The digits of the absolute value, and the position of the point.
fn digits_of(number: &Atomic) -> (Vec<u8>, i64) {
    let text = match number {
        Atomic::Integer(n) => n.unsigned_abs().to_string(),
        Atomic::Large(n) => n.magnitude().to_string(),
        Atomic::Decimal(d) => d.to_string(),
        Atomic::Float(n) => {
            let text = format!("{:e}", n.abs());
            let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).map(|b| b - b'0').collect();
            if *n == 0.0 {
                return (Vec::new(), 0);
            }
            return (digits, exponent.parse::<i64>().unwrap_or(0) + 1);
        }
        other => return shortest_decimal(other.to_double().abs()),
    };
    let text = text.trim_start_matches('-');
    let (integer, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut digits: Vec<u8> = integer.bytes().chain(fraction.bytes()).map(|b| b.wrapping_sub(b'0')).collect();
    let mut point = integer.len() as i64;
    let zeros = digits.iter().take_while(|d| **d == 0).count();
    digits.drain(..zeros);
    point -= zeros as i64;
    while digits.last() == Some(&0) {
        digits.pop();
    }
    if digits.is_empty() { (digits, 0) } else { (digits, point) }
}

fn part(picture: &str, by: &DecimalFormat, exponents: bool) -> Result<Part, String> {
    let wrong = |why: &str| Err(format!("format-number(): the picture \"{picture}\": {why}"));
    let chars: Vec<char> = picture.chars().collect();
    let zero = u32::from(by.zero_digit);
    let digit = |c: char| (zero..zero + 10).contains(&u32::from(c));
    let plain =
        |c: char| digit(c) || c == by.digit || c == by.decimal_separator || c == by.grouping_separator;
    // The exponent separator counts where digits stand on both sides.
    let mut exponent_at = None;
    for (at, c) in chars.iter().enumerate() {
        let between = at > 0 && at + 1 < chars.len() && plain(chars[at - 1]) && plain(chars[at + 1]);
        if exponents && *c == by.exponent_separator && between {
            if exponent_at.is_some() {
                return wrong("two exponents");
            }
            exponent_at = Some(at);
        }
    }
    let active = |at: usize| plain(chars[at]) || exponent_at == Some(at);
    let Some(first) = (0..chars.len()).find(|at| active(*at)) else {
        return wrong("there is no digit in it");
    };
    let last = (0..chars.len()).rev().find(|at| active(*at)).unwrap_or(first);
    if (first..=last).any(|at| !active(at)) {
        return wrong("other characters stand between digits");
    }
    let mut found = Part {
        prefix: chars[..first].iter().collect(),
        suffix: chars[last + 1..].iter().collect(),
        ..Part::default()
    };
    let passive = || chars[..first].iter().chain(&chars[last + 1..]);
    let (percent, per_mille) =
        (passive().filter(|c| **c == by.percent).count(), passive().filter(|c| **c == by.per_mille).count());
    if percent + per_mille > 1 {
        return wrong("two signs of percent or per mille");
    }
    found.shift = (percent * 2 + per_mille * 3) as i64;
    let (mantissa, exponent) = match exponent_at {
        Some(at) => (&chars[first..at], &chars[at + 1..=last]),
        None => (&chars[first..=last], &[][..]),
    };
    if exponent_at.is_some() {
        if percent + per_mille > 0 {
            return wrong("an exponent beside a sign of percent or per mille");
        }
        if !exponent.iter().all(|c| digit(*c)) {
            return wrong("behind the exponent there are digits only");
        }
        found.min_exponent = exponent.len();
    }
    let mut points =
        mantissa.iter().enumerate().filter(|(_, c)| **c == by.decimal_separator).map(|(at, _)| at);
    let point = points.next();
    if points.next().is_some() {
        return wrong("two decimal separators");
    }
    let (integer, fraction) = match point {
        Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
        None => (mantissa, &[][..]),
    };
    if !integer.iter().chain(fraction).any(|c| digit(*c) || *c == by.digit) {
        return wrong("there is no digit in it");
    }
    let is_group = |c: &char| *c == by.grouping_separator;
    if integer.last().is_some_and(is_group)
        || fraction.first().is_some_and(is_group)
        || mantissa.windows(2).any(|two| two.iter().all(is_group))
    {
        return wrong("a grouping separator stands where no digits follow");
    }
    // From the point to the left and to the right.
    let mut count = 0;
    let mut optional = false;
    for c in integer.iter().rev() {
        if is_group(c) {
            found.groups.push(count);
            continue;
        }
        count += 1;
        if *c == by.digit {
            optional = true;
        } else if optional {
            return wrong("a required digit stands before an optional one");
        } else {
            found.min_integer += 1;
        }
    }
    let has_optional = optional;
    let integer_digits = count;
    let (mut count, mut optional) = (0, false);
    for c in fraction {
        if is_group(c) {
            found.fraction_groups.push(count);
            continue;
        }
        count += 1;
        if *c == by.digit {
            optional = true;
        } else if optional {
            return wrong("a required digit stands behind an optional one");
        } else {
            found.min_fraction += 1;
        }
    }
    found.max_fraction = count;
    found.regular = found.groups.first().copied().filter(|size| {
        found.groups.iter().enumerate().all(|(at, place)| *place == size * (at + 1))
            && integer_digits <= size * (found.groups.len() + 1)
    });
    found.scale = found.min_integer;
    if found.min_integer == 0 && found.max_fraction == 0 {
        if found.min_exponent > 0 {
            (found.min_fraction, found.max_fraction) = (1, 1);
        } else {
            found.min_integer = 1;
        }
    }
    if found.min_exponent > 0 && found.min_integer == 0 && has_optional {
        found.min_integer = 1;
    }
    if found.min_integer == 0 && found.min_fraction == 0 {
        found.min_fraction = 1;
    }
    Ok(found)
}

impl Part {
    fn write(&self, mut digits: Vec<u8>, mut point: i64, by: &DecimalFormat, out: &mut String) {
        let mut exponent = 0;
        if self.min_exponent > 0 && !digits.is_empty() {
            exponent = point - self.scale as i64;
            point = self.scale as i64;
        }
        round_half_even(&mut digits, &mut point, self.max_fraction);
        // (Where rounding adds a digit, the exponent stays: section 4.7.5.)
        let digit = |at: i64| if at < 0 { 0 } else { digits.get(at as usize).copied().unwrap_or(0) };
        let push = |out: &mut String, d: u8| {
            out.push(char::from_u32(u32::from(by.zero_digit) + u32::from(d)).unwrap_or('?'));
        };
        let integer = (if digits.is_empty() { 0 } else { point.max(0) as usize }).max(self.min_integer);
        let last = (digits.len() as i64 - point).max(0) as usize;
        let fraction = last.clamp(self.min_fraction, self.max_fraction.max(self.min_fraction));
        for left in (0..integer).rev() {
            push(out, digit(point - 1 - left as i64));
            let grouped = match self.regular {
                Some(size) => left > 0 && left % size == 0,
                None => left > 0 && self.groups.contains(&left),
            };
            if grouped {
                out.push(by.grouping_separator);
            }
        }
        if fraction > 0 {
            out.push(by.decimal_separator);
        }
        for at in 0..fraction {
            if self.fraction_groups.contains(&at) {
                out.push(by.grouping_separator);
            }
            push(out, digit(point + at as i64));
        }
        if self.min_exponent > 0 {
            out.push(by.exponent_separator);
            if exponent < 0 {
                out.push(by.minus_sign);
            }
            for c in super::padded(exponent.unsigned_abs(), self.min_exponent).bytes() {
                push(out, c - b'0');
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atomic::Decimal;

    #[test]
    fn formats() {
        let by = DecimalFormat::default();
        let decimal = |text: &str| Atomic::decimal(Decimal::parse(text).unwrap());
        for (number, picture, expected) in [
            (decimal("12345678901234567.89"), "#,##0.00", "12,345,678,901,234,567.89"),
            (Atomic::Integer(i64::MAX), "#,##0", "9,223,372,036,854,775,807"),
            (Atomic::Integer(1_234_567), "#,##,##0", "12,34,567"),
            (Atomic::Integer(12345), "##,##,00", "1,23,45"),
            (Atomic::Double(0.14), "01%", "14%"),
            (decimal("0.145"), "0.0%", "14.5%"),
            (Atomic::Double(1e308), "0%", "Infinity%"),
            (Atomic::Integer(3), "0\u{2030}", "3000\u{2030}"),
            (Atomic::Integer(-6), "000", "-006"),
            (Atomic::Double(1234.5678), "00.000e0", "12.346e2"),
            (Atomic::Double(0.234), "0.0e0", "2.3e-1"),
            (Atomic::Double(9.995), "0.0e0", "10.0e0"),
            (Atomic::Double(999.9999), "00.00e00", "100.00e01"),
            (Atomic::Double(9.995), "#e0", "1.0e1"),
            (Atomic::Double(0.234), "#.00e0", "0.23e0"),
            (Atomic::Double(0.234), ".00e0", ".23e0"),
            (Atomic::Double(0.0), "#.#", ".0"),
            (Atomic::Double(0.5), "#.##", ".5"),
            (Atomic::Double(2.5), "0", "2"),
            (Atomic::Double(-1.5), "0;(0)", "(2)"),
            (Atomic::Double(f64::NAN), "0", "NaN"),
            (Atomic::Double(f64::NEG_INFINITY), "0", "-Infinity"),
            (Atomic::Double(1.0), "0.0,0", "1.0,0"),
        ] {
            assert_eq!(format(&number, picture, &by, true).as_deref(), Ok(expected), "{number:?} {picture}");
        }
        for picture in ["", "abc", "0.0.0", "0#", "0.#0", "0a0", "0;0;0", "0,.0", "0,,0", "%0%", "0e0e0"] {
            let found = format(&Atomic::Integer(1), picture, &by, true);
            assert!(found.is_err(), "{picture}: {found:?}");
        }
    }
}
