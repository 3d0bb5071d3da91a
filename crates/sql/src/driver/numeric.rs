//! NUMERIC of PostgreSQL: groups of four digits.

const NEGATIVE: u16 = 0x4000;
const POSITIVE_INFINITY: u16 = 0xD000;
const NEGATIVE_INFINITY: u16 = 0xF000;
const NOT_A_NUMBER: u16 = 0xC000;

/// The text of a number.
pub(super) fn read(bytes: &[u8]) -> Option<String> {
    let word = |at: usize| Some(u16::from_be_bytes(bytes.get(2 * at..2 * at + 2)?.try_into().ok()?));
    let (groups, weight, sign, scale) = (word(0)?, word(1)? as i16, word(2)?, word(3)?);
    match sign {
        NOT_A_NUMBER => return Some("NaN".to_owned()),
        POSITIVE_INFINITY => return Some("Infinity".to_owned()),
        NEGATIVE_INFINITY => return Some("-Infinity".to_owned()),
        _ => {}
    }
    let group = |power: i32| -> Option<u16> {
        // The first group stands for 10000 to the power of `weight`.
        match usize::try_from(i32::from(weight) - power) {
            Ok(at) if at < usize::from(groups) => word(4 + at),
            _ => Some(0),
        }
    };
    let four = |group: u16| [1000, 100, 10, 1].map(|place| char::from(b'0' + (group / place % 10) as u8));
    let mut out = String::with_capacity(4 * usize::from(groups) + usize::from(scale) + 8);
    if sign == NEGATIVE {
        out.push('-');
    }
    let whole = out.len();
    for power in (0..=i32::from(weight).max(0)).rev() {
        let digits = four(group(power)?);
        let zeros = match out.len() == whole {
            true => digits.iter().take_while(|&&digit| digit == '0').count(),
            false => 0,
        };
        out.extend(&digits[zeros..]);
    }
    if out.len() == whole {
        out.push('0');
    }
    if scale > 0 {
        out.push('.');
        let end = out.len() + usize::from(scale);
        let mut power = -1;
        while out.len() < end {
            out.extend(four(group(power)?));
            power -= 1;
        }
        out.truncate(end);
    }
    Some(out)
}

/// The bytes of a plain number: digits, a sign, a point. At most some thousand digits.
pub(super) fn write(text: &str, out: &mut Vec<u8>) {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (NEGATIVE, digits),
        None => (0, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let scale = fraction.len() as u16;
    // Whole groups on both sides of the point.
    let pad = (4 - whole.len() % 4) % 4;
    let all = format!("{}{whole}{fraction}{}", "0".repeat(pad), "0".repeat((4 - fraction.len() % 4) % 4));
    let mut groups: Vec<u16> = all
        .as_bytes()
        .chunks(4)
        .map(|four| four.iter().fold(0, |n, &digit| n * 10 + u16::from(digit - b'0')))
        .collect();
    let mut weight = ((pad + whole.len()) / 4) as i16 - 1;
    while groups.last() == Some(&0) {
        groups.pop();
    }
    let zeros = groups.iter().take_while(|&&group| group == 0).count();
    groups.drain(..zeros);
    weight -= zeros as i16;
    if groups.is_empty() {
        weight = 0;
    }
    for word in [groups.len() as u16, weight as u16, if groups.is_empty() { 0 } else { sign }, scale] {
        out.extend(word.to_be_bytes());
    }
    for group in groups {
        out.extend(group.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_as_they_went() {
        for text in [
            "0",
            "1",
            "-1",
            "10000",
            "9999",
            "12345678.90",
            "0.0001",
            "0.00001",
            "-0.5",
            "100000000",
            "1.10",
            "123456789012345678901234567890.123456789",
            "0.00",
            "10000.00010",
        ] {
            let mut bytes = Vec::new();
            write(text, &mut bytes);
            assert_eq!(read(&bytes).as_deref(), Some(text));
        }
        // 12.5 in the format of the server.
        assert_eq!(read(&[0, 2, 0, 0, 0, 0, 0, 1, 0, 12, 0x13, 0x88]).as_deref(), Some("12.5"));
        assert_eq!(read(&[0, 0, 0, 0, 0xC0, 0, 0, 0]).as_deref(), Some("NaN"));
        assert_eq!(read(&[0, 2, 0]), None);
    }
}
