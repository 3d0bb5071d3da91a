//! Numbers: decimals as Java's BigDecimal has them, as far as 38 digits go, and doubles beyond.

use std::cmp::Ordering;

/// A number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    /// `mantissa / 10^scale`.
    Decimal(i128, u32),
    Double(f64),
}

/// Most digits behind the point of a product or quotient, as in FreeMarker's engine of BigDecimals.
const SCALE: u32 = 12;

/// Most digits behind the point at all.
const MAX_SCALE: u32 = 30;

/// Largest exponent of a number that is written with one.
const MAX_EXPONENT: u32 = 400;

fn power(n: u32) -> Option<i128> {
    10i128.checked_pow(n)
}

impl Number {
    pub fn int(n: i64) -> Number {
        Number::Decimal(i128::from(n), 0)
    }

    /// A number as Java writes it; `None`: it is none, or too large to be worked with.
    pub fn parse(text: &str) -> Option<Number> {
        let text = text.trim();
        match text {
            "INF" | "Infinity" => return Some(Number::Double(f64::INFINITY)),
            "-INF" | "-Infinity" => return Some(Number::Double(f64::NEG_INFINITY)),
            "NaN" => return Some(Number::Double(f64::NAN)),
            _ => {}
        }
        let (number, exponent) = match text.find(['e', 'E']) {
            Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
            None => (text, 0),
        };
        if exponent.unsigned_abs() > MAX_EXPONENT || text.len() > 400 {
            return None;
        }
        let digits = number.strip_prefix(['-', '+']).unwrap_or(number);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() && fraction.is_empty() || !all_digits(whole) || !all_digits(fraction) {
            return None;
        }
        let scale = fraction.len() as i32 - exponent;
        let joined = format!("{whole}{fraction}");
        let exact = joined.parse::<i128>().ok().and_then(|mantissa| {
            let mantissa = if number.starts_with('-') { -mantissa } else { mantissa };
            match scale {
                ..0 => Some(Number::Decimal(mantissa.checked_mul(power(scale.unsigned_abs())?)?, 0)),
                _ if scale as u32 <= MAX_SCALE => Some(Number::Decimal(mantissa, scale as u32)),
                _ => None,
            }
        });
        exact.or_else(|| text.trim_start_matches('+').parse().ok().map(Number::Double))
    }

    pub fn to_f64(self) -> f64 {
        match self {
            // Through text, since a division of the mantissa rounds twice.
            Number::Decimal(m, 0) => m as f64,
            Number::Decimal(..) => self.plain().parse().unwrap_or(f64::NAN),
            Number::Double(n) => n,
        }
    }

    /// Cut off to a whole number, as far as there is one of 64 bits.
    pub fn to_i64(self) -> i64 {
        match self {
            Number::Decimal(m, scale) => {
                let whole = power(scale).map_or(0, |p| m / p);
                i64::try_from(whole).unwrap_or(if whole < 0 { i64::MIN } else { i64::MAX })
            }
            Number::Double(n) => n as i64,
        }
    }

    pub fn is_whole(self) -> bool {
        match self {
            Number::Decimal(m, scale) => power(scale).is_some_and(|p| m % p == 0),
            Number::Double(n) => n.fract() == 0.0,
        }
    }

    /// Both with the same scale.
    fn aligned(a: Number, b: Number) -> Option<(i128, i128, u32)> {
        let (Number::Decimal(a, s), Number::Decimal(b, t)) = (a, b) else { return None };
        let scale = s.max(t);
        Some((a.checked_mul(power(scale - s)?)?, b.checked_mul(power(scale - t)?)?, scale))
    }

    pub fn add(self, other: Number) -> Number {
        let exact = Number::aligned(self, other).and_then(|(a, b, scale)| Some((a.checked_add(b)?, scale)));
        match exact {
            Some((sum, scale)) => Number::Decimal(sum, scale),
            None => Number::Double(self.to_f64() + other.to_f64()),
        }
    }

    pub fn subtract(self, other: Number) -> Number {
        self.add(other.negate())
    }

    pub fn negate(self) -> Number {
        match self {
            Number::Decimal(m, scale) => match m.checked_neg() {
                Some(m) => Number::Decimal(m, scale),
                None => Number::Double(-self.to_f64()),
            },
            Number::Double(n) => Number::Double(-n),
        }
    }

    pub fn multiply(self, other: Number) -> Number {
        if let (Number::Decimal(a, s), Number::Decimal(b, t)) = (self, other)
            && let Some(product) = a.checked_mul(b)
        {
            let product = Number::Decimal(product, s + t);
            return if s + t > SCALE { product.rounded(SCALE, Rounding::HalfUp) } else { product };
        }
        Number::Double(self.to_f64() * other.to_f64())
    }

    /// `None`: by zero.
    pub fn divide(self, other: Number) -> Option<Number> {
        if let (Number::Decimal(a, s), Number::Decimal(b, t)) = (self, other) {
            if b == 0 {
                return None;
            }
            let scale = s.max(t).max(SCALE);
            // One digit more, to round by.
            let numerator = power(scale + 1 + t - s.min(scale + 1 + t)).and_then(|p| a.checked_mul(p));
            if let Some(numerator) = numerator {
                let quotient = Number::Decimal(numerator / b, scale + 1);
                return Some(quotient.rounded(scale, Rounding::HalfUp).stripped());
            }
        }
        Some(Number::Double(self.to_f64() / other.to_f64()))
    }

    /// Of whole numbers, as Java's `%` on longs. `None`: by zero.
    pub fn modulo(self, other: Number) -> Option<Number> {
        self.to_i64().checked_rem(other.to_i64()).map(Number::int)
    }

    pub fn is_decimal(self) -> bool {
        matches!(self, Number::Decimal(..))
    }

    /// Exact among decimals; `None`: one of them is not a number.
    pub fn compare(self, other: Number) -> Option<Ordering> {
        let (Number::Decimal(a, s), Number::Decimal(b, t)) = (self, other) else {
            return self.to_f64().partial_cmp(&other.to_f64());
        };
        // The whole part, and the fraction, which fits with the same scale as it is less than one.
        let (Some(p), Some(q)) = (power(s), power(t)) else {
            return self.to_f64().partial_cmp(&other.to_f64());
        };
        let fractions = || {
            let (a, b) = (a.rem_euclid(p), b.rem_euclid(q));
            let scale = s.max(t);
            let aligned = |n: i128, scale_of_n: u32| n * power(scale - scale_of_n).unwrap_or(1);
            aligned(a, s).cmp(&aligned(b, t))
        };
        Some(a.div_euclid(p).cmp(&b.div_euclid(q)).then_with(fractions))
    }

    /// Without zeros at the end of the fraction.
    fn stripped(self) -> Number {
        let Number::Decimal(mut m, mut scale) = self else { return self };
        while scale > 0 && m % 10 == 0 {
            m /= 10;
            scale -= 1;
        }
        Number::Decimal(m, scale)
    }

    /// Rounded to so many digits behind the point.
    pub fn rounded(self, digits: u32, rounding: Rounding) -> Number {
        match self {
            Number::Decimal(m, scale) if scale > digits => {
                let Some(unit) = power(scale - digits) else { return Number::Decimal(0, digits) };
                let (whole, rest) = (m / unit, m % unit);
                let twice = rest.unsigned_abs().saturating_mul(2).cmp(&unit.unsigned_abs());
                let up = match rounding {
                    Rounding::HalfUp => twice != Ordering::Less,
                    Rounding::HalfEven => {
                        twice == Ordering::Greater || twice == Ordering::Equal && whole % 2 != 0
                    }
                    Rounding::Floor => rest < 0,
                    Rounding::Ceiling => rest > 0,
                    Rounding::HalfTowardsPlus => {
                        twice == Ordering::Greater || twice == Ordering::Equal && rest > 0
                    }
                };
                let away = if m < 0 { -1 } else { 1 };
                Number::Decimal(if up { whole + away } else { whole }, digits)
            }
            Number::Decimal(..) => self,
            Number::Double(n) if n.is_finite() && n.abs() < 1e20 => {
                // Its shortest text is what Java has too.
                match Number::parse(&n.to_string()) {
                    Some(exact @ Number::Decimal(..)) => exact.rounded(digits, rounding),
                    _ => self,
                }
            }
            Number::Double(_) => self,
        }
    }

    /// Without groups, all digits.
    fn plain(self) -> String {
        match self {
            Number::Decimal(m, 0) => m.to_string(),
            Number::Decimal(m, scale) => {
                let digits = format!("{:0>width$}", m.unsigned_abs(), width = scale as usize + 1);
                let (whole, fraction) = digits.split_at(digits.len() - scale as usize);
                format!("{}{whole}.{fraction}", if m < 0 { "-" } else { "" })
            }
            Number::Double(n) => n.to_string(),
        }
    }

    /// For computers (`?c`): at most 16 digits behind the point.
    pub fn computer(self) -> String {
        match self {
            Number::Double(n) if n.is_nan() => "NaN".into(),
            Number::Double(n) if n.is_infinite() => if n > 0.0 { "INF" } else { "-INF" }.into(),
            _ => zero_is_plain(self.rounded(16, Rounding::HalfEven).stripped().plain()),
        }
    }

    /// For people: groups of three digits, at most three behind the point.
    pub fn for_people(self, symbols: Symbols) -> String {
        let format = Format { least: 0, most: 3, whole: 1, group: Some(3), ..Format::default() };
        self.formatted(&format, symbols)
    }

    /// By a pattern of Java's `DecimalFormat`.
    pub fn formatted(self, format: &Format, symbols: Symbols) -> String {
        let value = match self {
            Number::Double(n) if n.is_nan() => return "\u{fffd}".into(),
            Number::Double(n) if n.is_infinite() => {
                let sign = if n < 0.0 { "-" } else { "" };
                return format!("{sign}{}\u{221e}{}", format.prefix, format.suffix);
            }
            value => value.multiply(Number::Decimal(power(format.shift).unwrap_or(1), 0)),
        };
        let text = value.rounded(format.most, Rounding::HalfEven).plain();
        let (sign, text) = match text.strip_prefix('-') {
            Some(rest) => ("-", rest),
            None => ("", text.as_str()),
        };
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let whole = whole.trim_start_matches('0');
        let whole = format!("{whole:0>width$}", width = format.whole as usize);
        let mut fraction = fraction.trim_end_matches('0').to_owned();
        while fraction.len() < format.least as usize {
            fraction.push('0');
        }
        let mut out = String::new();
        let zero = !whole.bytes().chain(fraction.bytes()).any(|b| b != b'0');
        out.push_str(if zero { "" } else { sign });
        out.push_str(&format.prefix);
        for (at, digit) in whole.chars().enumerate() {
            let left = whole.len() - at;
            if at > 0 && format.group.is_some_and(|size| left.is_multiple_of(size as usize)) {
                out.push(symbols.group);
            }
            out.push(digit);
        }
        if whole.is_empty() && fraction.is_empty() {
            out.push('0');
        }
        if !fraction.is_empty() {
            out.push(symbols.point);
            out.push_str(&fraction);
        }
        out.push_str(&format.suffix);
        out
    }
}

fn zero_is_plain(text: String) -> String {
    if text == "-0" { "0".into() } else { text }
}

/// What a language puts between groups of digits and before the fraction (Unicode CLDR, as Java has it since 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Symbols {
    group: char,
    point: char,
}

impl Symbols {
    pub const ENGLISH: Symbols = Symbols { group: ',', point: '.' };

    /// Those of a locale such as `de_DE`; of one that is not named here, those of English.
    pub fn of(locale: &str) -> Symbols {
        let (language, country) = locale.split_once(['_', '-']).unwrap_or((locale, ""));
        let country = country.split(['_', '-']).next().unwrap_or("");
        let (group, point) = match (language, country) {
            ("de" | "it" | "en", "CH") => ('\u{2019}', '.'),
            ("fr", "CH") => ('\u{202f}', ','),
            ("de", "AT") => ('\u{a0}', ','),
            ("es", "MX" | "US" | "PE" | "GT" | "PR") => (',', '.'),
            ("pt", "PT") => ('\u{a0}', ','),
            (
                "de" | "es" | "it" | "nl" | "pt" | "id" | "in" | "tr" | "da" | "el" | "hr" | "sl" | "ro"
                | "sr" | "ca" | "is" | "vi",
                _,
            ) => ('.', ','),
            ("fr", _) => ('\u{202f}', ','),
            (
                "ru" | "uk" | "cs" | "sk" | "pl" | "bg" | "fi" | "sv" | "nb" | "no" | "hu" | "et" | "lv"
                | "lt" | "be" | "hy" | "ka",
                _,
            ) => ('\u{a0}', ','),
            _ => (',', '.'),
        };
        Symbols { group, point }
    }
}

/// How a number is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    HalfUp,
    HalfEven,
    Floor,
    Ceiling,
    /// `?round`.
    HalfTowardsPlus,
}

/// A pattern of Java's `DecimalFormat`, as far as templates use it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Format {
    pub prefix: String,
    pub suffix: String,
    /// Least digits of the whole part, least and most of the fraction.
    pub whole: u32,
    pub least: u32,
    pub most: u32,
    pub group: Option<u32>,
    /// Powers of ten that the number is multiplied by: 2 for per cent.
    pub shift: u32,
}

impl Format {
    /// Reads a pattern; `None`: it is none, or uses what is not known here.
    pub fn parse(pattern: &str) -> Option<Format> {
        if pattern.len() > 100 {
            return None;
        }
        // What is behind the semicolon is for negative numbers.
        let mut format = Format::default();
        let (mut quoted, mut fraction, mut seen, mut since_comma) = (false, false, false, None::<u32>);
        for c in pattern.chars() {
            match c {
                '\'' => {
                    quoted = !quoted;
                    continue;
                }
                ';' if !quoted => break,
                '0' | '#' | ',' | '.' if !quoted && format.suffix.is_empty() => {
                    seen = true;
                    match (c, fraction) {
                        ('.', false) => fraction = true,
                        ('0', true) if format.least == format.most => {
                            (format.least, format.most) = (format.least + 1, format.most + 1);
                        }
                        ('#', true) => format.most += 1,
                        ('0', false) => format.whole += 1,
                        ('#', false) if format.whole == 0 => {}
                        (',', false) => since_comma = Some(0),
                        _ => return None,
                    }
                    if let (Some(n), '0' | '#', false) = (&mut since_comma, c, fraction) {
                        *n += 1;
                    }
                }
                'E' if !quoted && seen => return None,
                _ => {
                    match c {
                        '%' if !quoted => format.shift = 2,
                        '\u{2030}' if !quoted => format.shift = 3,
                        _ => {}
                    }
                    if seen { format.suffix.push(c) } else { format.prefix.push(c) }
                }
            }
        }
        format.group = since_comma.filter(|&n| n > 0);
        seen.then_some(format)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n(text: &str) -> Number {
        Number::parse(text).unwrap()
    }

    #[test]
    fn arithmetic_is_decimal() {
        for (found, expected) in [
            (n("0.1").add(n("0.2")), "0.3"),
            (n("1").subtract(n("1.10")), "-0.1"),
            (n("1.5").multiply(n("-2")), "-3"),
            (n("10").divide(n("3")).unwrap(), "3.333333333333"),
            (n("2").divide(n("3")).unwrap(), "0.666666666667"),
            (n("1e3"), "1000"),
            (n("1.25e-2"), "0.0125"),
            (n("7").modulo(n("4")).unwrap(), "3"),
            (n("99999999999999999999").multiply(n("10")), "999999999999999999990"),
            (n("1.5").rounded(0, Rounding::HalfTowardsPlus), "2"),
            (n("-1.5").rounded(0, Rounding::HalfTowardsPlus), "-1"),
            (n("-1.2").rounded(0, Rounding::Floor), "-2"),
            (n("-1.8").rounded(0, Rounding::Ceiling), "-1"),
        ] {
            assert_eq!(found.computer(), expected);
        }
        assert!(n("1").divide(n("0")).is_none() && n("1").modulo(n("0")).is_none());
        assert!(n("1e300").multiply(n("1e300")).to_f64().is_infinite());
        assert_eq!(n("1.10").compare(n("1.1")), Some(Ordering::Equal));
        for bad in ["", "x", "1e20000000", "1.2.3", "--1", "0x1", ".", "1e"] {
            assert!(Number::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn numbers_are_written_as_java_does() {
        for (number, expected) in [
            ("1234567.25", "1,234,567.25"),
            ("0.0005", "0"),
            ("0.0015", "0.002"),
            ("-1000", "-1,000"),
            ("0", "0"),
        ] {
            assert_eq!(n(number).for_people(Symbols::ENGLISH), expected);
        }
        for (pattern, number, expected) in [
            ("0.00", "3", "3.00"),
            ("0.##", "3.14159", "3.14"),
            ("0.##", "3", "3"),
            ("#,##0.00", "1234567.891", "1,234,567.89"),
            ("000", "7", "007"),
            ("#", "12.6", "13"),
            ("#.##", "0.5", ".5"),
            ("0%", "0.256", "26%"),
            ("'#'0", "5", "#5"),
            ("EUR 0.0", "-2.25", "-EUR 2.2"),
        ] {
            assert_eq!(
                n(number).formatted(&Format::parse(pattern).unwrap(), Symbols::ENGLISH),
                expected,
                "{pattern}"
            );
        }
        for bad in ["", "abc", "0.0.0", "0E0"] {
            assert_eq!(Format::parse(bad), None, "{bad}");
        }
    }
}
