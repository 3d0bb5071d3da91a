//! `format-number()` (XSLT 1.0 section 12.3): numbers written by a JDK 1.1 `DecimalFormat` pattern whose
//! special characters are chosen by an `xsl:decimal-format`.

/// The characters of one `xsl:decimal-format`.
#[derive(Clone, Debug, PartialEq)]
pub struct DecimalFormat {
    /// Written between integer and fraction part, and special in the pattern.
    pub decimal_separator: char,
    /// Written between groups of digits, and special in the pattern.
    pub grouping_separator: char,
    /// Written for infinity.
    pub infinity: String,
    /// Written before negative numbers.
    pub minus_sign: char,
    /// Written for NaN.
    pub nan: String,
    /// Special in the pattern: shows the number multiplied by 100.
    pub percent: char,
    /// Special in the pattern: shows the number multiplied by 1000.
    pub per_mille: char,
    /// The digit zero; the other nine follow it in Unicode.
    pub zero_digit: char,
    /// Special in the pattern: an optional digit.
    pub digit: char,
    /// Special in the pattern: between the pattern of positive and of negative numbers.
    pub pattern_separator: char,
    /// Special in the picture and written before the exponent (XPath 3.1).
    pub exponent_separator: char,
}

impl Default for DecimalFormat {
    fn default() -> Self {
        DecimalFormat {
            decimal_separator: '.',
            grouping_separator: ',',
            infinity: "Infinity".into(),
            minus_sign: '-',
            nan: "NaN".into(),
            percent: '%',
            per_mille: '\u{2030}',
            zero_digit: '0',
            digit: '#',
            pattern_separator: ';',
            exponent_separator: 'e',
        }
    }
}

/// One half of a pattern.
#[derive(Default, Debug)]
struct SubPattern {
    prefix: String,
    suffix: String,
    multiplier: u32,
    /// 0 = no grouping.
    group: usize,
    min_integer: usize,
    min_fraction: usize,
    max_fraction: usize,
}

impl DecimalFormat {
    /// Formats `number` by `pattern`. Errors: the pattern is invalid.
    pub fn format(&self, number: f64, pattern: &str) -> Result<String, String> {
        let mut rest = pattern.chars().collect::<Vec<_>>();
        let negative_part = self.split(&mut rest);
        let positive = self.sub_pattern(&rest, pattern)?;
        if number.is_nan() {
            return Ok(self.nan.clone());
        }
        let is_negative = number.is_sign_negative();
        let (mut prefix, mut suffix) = (positive.prefix.clone(), positive.suffix.clone());
        if is_negative {
            match &negative_part {
                Some(part) => {
                    let negative = self.sub_pattern(part, pattern)?;
                    // Only its prefix and suffix count; a copy of the positive ones would hide the sign.
                    if negative.prefix == positive.prefix && negative.suffix == positive.suffix {
                        prefix.insert(0, self.minus_sign);
                    } else {
                        (prefix, suffix) = (negative.prefix, negative.suffix);
                    }
                }
                None => prefix.insert(0, self.minus_sign),
            }
        }
        let mut out = prefix;
        if number.is_infinite() {
            out.push_str(&self.infinity);
        } else {
            self.digits(number.abs(), &positive, &mut out);
        }
        out.push_str(&suffix);
        Ok(out)
    }

    /// Whether a character of a pattern begins or ends quoted text, as in the JDK: an apostrophe that the format does not use otherwise
    /// (as the grouping separator of Swiss amounts, `1'000`).
    fn is_quote(&self, c: char) -> bool {
        c == '\''
            && ![
                self.decimal_separator,
                self.grouping_separator,
                self.percent,
                self.per_mille,
                self.zero_digit,
                self.digit,
                self.pattern_separator,
            ]
            .contains(&c)
    }

    /// Cuts off the part after the pattern separator.
    fn split(&self, pattern: &mut Vec<char>) -> Option<Vec<char>> {
        let mut quoted = false;
        for at in 0..pattern.len() {
            if self.is_quote(pattern[at]) {
                quoted = !quoted;
            } else if pattern[at] == self.pattern_separator && !quoted {
                let negative = pattern.split_off(at + 1);
                pattern.pop();
                return Some(negative);
            }
        }
        None
    }

    fn sub_pattern(&self, pattern: &[char], whole: &str) -> Result<SubPattern, String> {
        let mut sub = SubPattern { multiplier: 1, ..SubPattern::default() };
        // 0 = prefix, 1 = number, 2 = suffix
        let mut phase = 0;
        let mut quoted = false;
        let (mut optional_integer, mut zeros_integer, mut optional_fraction, mut zeros_fraction) =
            (0, 0, 0, 0);
        let mut group: Option<usize> = None;
        let mut point = false;
        let mut at = 0;
        while at < pattern.len() {
            let c = pattern[at];
            if self.is_quote(c) {
                if phase == 1 {
                    phase = 2;
                }
                if pattern.get(at + 1) == Some(&'\'') {
                    if phase == 0 { &mut sub.prefix } else { &mut sub.suffix }.push('\'');
                    at += 2;
                } else {
                    quoted = !quoted;
                    at += 1;
                }
                continue;
            }
            let numeric = !quoted
                && (c == self.digit
                    || c == self.zero_digit
                    || c == self.decimal_separator
                    || c == self.grouping_separator);
            match phase {
                0 if numeric => {
                    phase = 1;
                    continue;
                }
                1 if !numeric => {
                    phase = 2;
                    continue;
                }
                2 if numeric => {
                    return Err(format!(
                        "format-number(): \"{c}\" is out of place in the pattern \"{whole}\""
                    ));
                }
                1 => {
                    if c == self.zero_digit {
                        if point {
                            if optional_fraction > 0 {
                                return Err(format!(
                                    "format-number(): a required digit follows an optional one in the fraction of the pattern \"{whole}\""
                                ));
                            }
                            zeros_fraction += 1;
                        } else {
                            zeros_integer += 1;
                        }
                        group = group.map(|n| if point { n } else { n + 1 });
                    } else if c == self.digit {
                        if point {
                            optional_fraction += 1;
                        } else if zeros_integer > 0 {
                            return Err(format!(
                                "format-number(): an optional digit follows a required one in the pattern \"{whole}\""
                            ));
                        } else {
                            optional_integer += 1;
                        }
                        group = group.map(|n| if point { n } else { n + 1 });
                    } else if c == self.grouping_separator {
                        // Tested before the decimal separator, in case both are the same character.
                        if !point {
                            group = Some(0);
                        }
                    } else {
                        if point {
                            return Err(format!(
                                "format-number(): two decimal separators in the pattern \"{whole}\""
                            ));
                        }
                        point = true;
                    }
                }
                _ => {
                    if !quoted && (c == self.percent || c == self.per_mille) {
                        sub.multiplier = if c == self.percent { 100 } else { 1000 };
                    }
                    if phase == 0 { &mut sub.prefix } else { &mut sub.suffix }.push(c);
                }
            }
            at += 1;
        }
        sub.group = group.unwrap_or(0);
        sub.min_integer = zeros_integer;
        sub.min_fraction = zeros_fraction;
        sub.max_fraction = zeros_fraction + optional_fraction;
        if point && zeros_integer + zeros_fraction == 0 {
            // "#.#" shows a leading zero, ".#" at least one fraction digit, as in the JDK.
            if optional_integer > 0 {
                sub.min_integer = 1;
            } else if optional_fraction > 0 {
                sub.min_fraction = 1;
            }
        }
        Ok(sub)
    }

    /// The digits of a non-negative finite number, rounded half to even on its shortest decimal form.
    fn digits(&self, number: f64, sub: &SubPattern, out: &mut String) {
        let (mut digits, mut point) = shortest_decimal(number);
        point += match sub.multiplier {
            100 => 2,
            1000 => 3,
            _ => 0,
        };
        round_half_even(&mut digits, &mut point, sub.max_fraction);
        let digit =
            |at: i64| -> u8 { if at < 0 { 0 } else { digits.get(at as usize).copied().unwrap_or(0) } };
        let zero = self.zero_digit as u32;
        let push = |out: &mut String, d: u8| out.push(char::from_u32(zero + u32::from(d)).unwrap_or('?'));
        let significant = if digits.is_empty() { 0 } else { point.max(0) as usize };
        let mut integer = significant.max(sub.min_integer);
        let last_fraction = (digits.len() as i64 - point).max(0) as usize;
        let fraction = last_fraction.clamp(sub.min_fraction, sub.max_fraction.max(sub.min_fraction));
        if integer == 0 && fraction == 0 {
            integer = 1;
        }
        for left in (0..integer).rev() {
            push(out, digit(point - 1 - left as i64));
            if sub.group > 0 && left > 0 && left % sub.group == 0 {
                out.push(self.grouping_separator);
            }
        }
        if fraction > 0 {
            out.push(self.decimal_separator);
        }
        for at in 0..fraction as i64 {
            push(out, digit(point + at));
        }
    }
}

/// Digits (without leading or trailing zeros) and the place of the decimal point relative to them.
pub(super) fn shortest_decimal(number: f64) -> (Vec<u8>, i64) {
    if number == 0.0 {
        return (Vec::new(), 0);
    }
    let text = format!("{number:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mut digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).map(|b| b - b'0').collect();
    while digits.last() == Some(&0) {
        digits.pop();
    }
    (digits, exponent.parse::<i64>().unwrap_or(0) + 1)
}

pub(super) fn round_half_even(digits: &mut Vec<u8>, point: &mut i64, max_fraction: usize) {
    let keep = *point + max_fraction as i64;
    if keep >= digits.len() as i64 {
        return;
    }
    if keep < 0 {
        digits.clear();
        *point = 0;
        return;
    }
    let keep = keep as usize;
    let exact_half = digits[keep] == 5 && digits.len() == keep + 1;
    let up = if exact_half { keep > 0 && digits[keep - 1] % 2 == 1 } else { digits[keep] >= 5 };
    digits.truncate(keep);
    if up {
        let mut at = keep;
        loop {
            if at == 0 {
                digits.insert(0, 1);
                *point += 1;
                break;
            }
            at -= 1;
            if digits[at] == 9 {
                digits[at] = 0;
            } else {
                digits[at] += 1;
                break;
            }
        }
    }
    while digits.last() == Some(&0) {
        digits.pop();
    }
    if digits.is_empty() {
        *point = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let format = DecimalFormat::default();
        for (number, pattern, expected) in [
            (1234.5, "#,##0.00", "1,234.50"),
            (0.5, "#.##", "0.5"),
            (0.5, ".00", ".50"),
            (-3.0, "0", "-3"),
            (-3.0, "0;(0)", "(3)"),
            (0.256, "0%", "26%"),
            (0.2564, "0.0\u{2030}", "256.4\u{2030}"),
            (2.5, "0", "2"),
            (3.5, "0", "4"),
            (9.995, "0.0", "10.0"),
            (f64::NAN, "0", "NaN"),
            (f64::INFINITY, "0", "Infinity"),
            (f64::NEG_INFINITY, "0", "-Infinity"),
            (0.0, "#", "0"),
            (12.0, "'#'0", "#12"),
            (1e6, "#,###", "1,000,000"),
            (5.0, "000.0#", "005.0"),
            (1234567.0, "#,##,##0", "1,234,567"),
        ] {
            assert_eq!(format.format(number, pattern).as_deref(), Ok(expected), "{number} {pattern}");
        }
        assert!(format.format(1.0, "0.0.0").is_err());
        assert!(format.format(1.0, "0#").is_err());
    }

    #[test]
    fn own_characters() {
        let german =
            DecimalFormat { decimal_separator: ',', grouping_separator: '.', ..DecimalFormat::default() };
        assert_eq!(german.format(1234567.891, "#.##0,00").as_deref(), Ok("1.234.567,89"));
        let swiss = DecimalFormat { grouping_separator: '\'', ..DecimalFormat::default() };
        assert_eq!(swiss.format(1234567.891, "#'##0.00").as_deref(), Ok("1'234'567.89"));
    }
}
