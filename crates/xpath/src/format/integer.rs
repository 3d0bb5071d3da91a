//! `format-integer()` (F&O 3.1 section 4.6).

use super::numbering::{NumberFormat, Numeral, format_list, is_exact, is_first};

/// Formats an integer (as text) by a picture. Errors: the error in the picture (FODF1310).
pub fn format(number: &str, picture: &str) -> Result<String, String> {
    let (primary, modifier) = picture.rsplit_once(';').unwrap_or((picture, ""));
    if primary.is_empty() {
        return Err("the picture of an integer is empty".into());
    }
    let ordinal =
        modifier_of(modifier).ok_or_else(|| format!("\";{modifier}\" is not a modifier of a picture"))?;
    let digits = number.trim_start_matches('-');
    // Beyond 64 bits there are digits only.
    let value = digits.parse::<u64>().ok();
    let by_digits = |picture: &Digits| {
        let mut text = picture.write(digits);
        if ordinal {
            text.push_str(suffix(digits));
        }
        text
    };
    let text = match (digits_picture(primary)?, value) {
        (Some(picture), _) => by_digits(&picture),
        (None, Some(value)) if matches!(primary, "w" | "W" | "Ww") => {
            let mut text = String::new();
            super::numbering::words(value, primary, ordinal, &mut text);
            text
        }
        (None, Some(value)) if is_exact(value) && is_sequence(primary, value) => {
            let how = NumberFormat { format: primary, version2: true, ordinal, grouping: None };
            format_list(&[Numeral::from(value as f64)], &how)
        }
        // An unknown format.
        _ => by_digits(&Digits { zero: '0', least: 1, total: 1, separators: Vec::new(), regular: None }),
    };
    Ok(if number.starts_with('-') { format!("-{text}") } else { text })
}

/// Whether a format is the first item of a sequence that can write this value (0: only a few of them).
fn is_sequence(format: &str, value: u64) -> bool {
    let mut chars = format.chars();
    match (chars.next(), chars.next()) {
        (Some(first), None) => is_first(first) && (value > 0 || !first.is_alphabetic()),
        _ => false,
    }
}

/// Whether it demands ordinals; `None`: it is not a modifier.
fn modifier_of(modifier: &str) -> Option<bool> {
    let mut rest = modifier;
    let mut ordinal = false;
    if let Some(after) = rest.strip_prefix(['c', 'o']) {
        ordinal = rest.starts_with('o');
        rest = after;
        if rest.starts_with('(') {
            let end = rest.find(')')?;
            rest = &rest[end + 1..];
        }
    }
    let rest = rest.strip_prefix(['a', 't']).unwrap_or(rest);
    rest.is_empty().then_some(ordinal)
}

pub(super) fn suffix(digits: &str) -> &'static str {
    let last = |count: usize| digits.get(digits.len().saturating_sub(count)..).unwrap_or(digits);
    match (last(1), last(2)) {
        (_, "11" | "12" | "13") => "th",
        ("1", _) => "st",
        ("2", _) => "nd",
        ("3", _) => "rd",
        _ => "th",
    }
}

/// A digit picture: the least number of digits, and separators.
pub(super) struct Digits {
    pub(super) zero: char,
    pub(super) least: usize,
    /// Digits that are required or not.
    pub(super) total: usize,
    /// Separators by the number of digits to their right, from the right.
    pub(super) separators: Vec<(usize, char)>,
    /// They repeat with that period.
    regular: Option<(usize, char)>,
}

/// The zero of the digit family of a character.
pub(super) fn zero_of(c: char) -> Option<char> {
    if c.is_ascii_digit() {
        return Some('0');
    }
    if !c.is_numeric() {
        return None;
    }
    super::numbering::ZEROS.iter().copied().find(|zero| {
        let offset = u32::from(c).wrapping_sub(u32::from(*zero));
        offset < 10
    })
}

/// `None`: it contains no digits.
pub(super) fn digits_picture(picture: &str) -> Result<Option<Digits>, String> {
    let Some(zero) = picture.chars().find_map(zero_of) else {
        return Ok(None);
    };
    let wrong = |why: &str| Err(format!("the picture \"{picture}\": {why}"));
    let mut least = 0;
    let mut separators: Vec<(usize, char)> = Vec::new();
    let mut right = 0;
    let mut last_separator = true;
    let mut optional = false;
    for c in picture.chars().rev() {
        if c == '#' {
            optional = true;
            right += 1;
            last_separator = false;
        } else if let Some(digit_zero) = zero_of(c) {
            if digit_zero != zero {
                return wrong("digits of two families");
            }
            if optional {
                return wrong("an optional digit stands behind a required one");
            }
            least += 1;
            right += 1;
            last_separator = false;
        } else if c.is_alphanumeric() {
            return wrong("letters between digits");
        } else {
            if last_separator {
                return wrong("a separator at the end or beside another");
            }
            separators.push((right, c));
            last_separator = true;
        }
    }
    if last_separator {
        return wrong("a separator at the beginning");
    }
    let regular = match separators.as_slice() {
        [] => None,
        [(size, sign), ..] => {
            let even =
                separators.iter().enumerate().all(|(at, (place, c))| *place == size * (at + 1) && c == sign);
            // No separator is missing to the left.
            let whole = right <= size * (separators.len() + 1);
            (even && whole).then_some((*size, *sign))
        }
    };
    Ok(Some(Digits { zero, least, total: right, separators, regular }))
}

impl Digits {
    /// A digit of the family.
    pub(super) fn digit(&self, ascii: u8) -> char {
        char::from_u32(u32::from(self.zero) + u32::from(ascii.wrapping_sub(b'0'))).unwrap_or('?')
    }

    pub(super) fn write(&self, digits: &str) -> String {
        let digits = format!("{digits:0>width$}", width = self.least.clamp(1, 1000));
        let mut out = Vec::new();
        for (at, digit) in digits.bytes().rev().enumerate() {
            let sign = match self.regular {
                Some((size, sign)) => (at > 0 && at % size == 0).then_some(sign),
                None => {
                    self.separators.iter().find(|(place, _)| *place == at && at > 0).map(|(_, sign)| *sign)
                }
            };
            out.extend(sign);
            out.push(self.digit(digit));
        }
        out.iter().rev().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats() {
        for (number, picture, expected) in [
            (123_i64, "0000", "0123"),
            (123, "w", "one hundred and twenty three"),
            (21, "1;o", "21st"),
            (14, "Ww;o(-e)", "Fourteenth"),
            (7, "a", "g"),
            (57, "I", "LVII"),
            (1234, "#;##0;", "1;234"),
            (1_234_567, "#,##0", "1,234,567"),
            (1_234_567, "0 000,000", "1 234,567"),
            (-5, "001", "-005"),
            (0, "1", "0"),
            (12, "\u{661}", "\u{661}\u{662}"),
            (i64::MAX, "#,##0", "9,223,372,036,854,775,807"),
        ] {
            assert_eq!(format(&number.to_string(), picture).as_deref(), Ok(expected), "{picture}");
        }
        for (number, picture, expected) in [
            ("123456789012345678901", "1;o", "123456789012345678901st"),
            ("-123456789012345678912", "#,##0;o", "-123,456,789,012,345,678,912th"),
            ("123456789012345678901", "w", "123456789012345678901"),
            ("5", "ア", "オ"),
            ("100000000000000000", "ア", "イタトオメロノワヲカリ"),
            ("9223372036854775807", "a", "9223372036854775807"),
            ("-9223372036854775808", "A", "-9223372036854775808"),
            ("9223372036854775807", "ア;o", "9223372036854775807th"),
            ("0", "①", "⓪"),
            ("0", "ア", "0"),
            ("0", "#;o", "0th"),
            ("21", "①", "㉑"),
        ] {
            assert_eq!(format(number, picture).as_deref(), Ok(expected), "{number} {picture}");
        }
        for picture in ["", "0#", ",123", "1,", "1,,0", "1;x", "1;o("] {
            assert!(format("5", picture).is_err(), "{picture}");
        }
    }
}
