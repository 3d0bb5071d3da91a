//! `format-integer()` (F&O 3.1 section 4.6).

use super::numbering::{NumberFormat, format_list};

/// Formats an integer by a picture. Errors: the error in the picture (FODF1310).
pub fn format(number: i64, picture: &str) -> Result<String, String> {
    let (primary, modifier) = picture.rsplit_once(';').unwrap_or((picture, ""));
    if primary.is_empty() {
        return Err("the picture of an integer is empty".into());
    }
    let ordinal =
        modifier_of(modifier).ok_or_else(|| format!("\";{modifier}\" is not a modifier of a picture"))?;
    let value = number.unsigned_abs();
    let text = match digits_picture(primary)? {
        Some(picture) => {
            let mut text = picture.write(value);
            if ordinal {
                text.push_str(suffix(value));
            }
            text
        }
        None if matches!(primary, "w" | "W" | "Ww") => {
            let mut text = String::new();
            super::numbering::words(value, primary, ordinal, &mut text);
            text
        }
        None => {
            let how = NumberFormat { format: primary, version2: true, ordinal, grouping: None };
            let single = primary.chars().count() == 1;
            // An unknown format: as digits.
            let is_alphabetic = single && primary.chars().all(char::is_alphabetic) && value > 0;
            let format = if is_alphabetic { primary } else { "1" };
            format_list(&[value as f64], &NumberFormat { format, ..how })
        }
    };
    Ok(if number < 0 { format!("-{text}") } else { text })
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

fn suffix(n: u64) -> &'static str {
    match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
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

    pub(super) fn write(&self, value: u64) -> String {
        let digits = format!("{value:0width$}", width = self.least.clamp(1, 1000));
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
            (123, "0000", "0123"),
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
            assert_eq!(format(number, picture).as_deref(), Ok(expected), "{picture}");
        }
        for picture in ["", "0#", ",123", "1,", "1,,0", "1;x", "1;o("] {
            assert!(format(5, picture).is_err(), "{picture}");
        }
    }
}
