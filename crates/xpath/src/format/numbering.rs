//! The number to string conversion of `xsl:number` (XSLT 1.0 section 7.7.1).

use crate::atomic::Atomic;

/// The format of a list of numbers in `xsl:number`.
#[derive(Clone, Debug, Default)]
pub struct NumberFormat<'a> {
    /// The format string; "1" where the stylesheet gives none.
    pub format: &'a str,
    /// Separator and size of digit groups; both are needed.
    pub grouping: Option<(&'a str, usize)>,
    /// By the rules of XSLT 2.0: zero is allowed, and there are words.
    pub version2: bool,
    /// Ordinal numbers: first, second, …
    pub ordinal: bool,
}

/// A number to be written.
#[derive(Clone, Debug)]
pub struct Numeral {
    /// Its value.
    pub number: f64,
    /// The digits of a positive integer that a double may not hold.
    digits: Option<String>,
}

impl From<f64> for Numeral {
    fn from(number: f64) -> Numeral {
        Numeral { number, digits: None }
    }
}

impl From<&Atomic> for Numeral {
    fn from(atom: &Atomic) -> Numeral {
        let number = atom.to_double();
        let is_large = match atom {
            Atomic::Integer(n) => u64::try_from(*n).is_ok_and(|n| !is_exact(n)),
            Atomic::Large(_) => number > 0.0,
            _ => false,
        };
        Numeral { number, digits: is_large.then(|| atom.to_text().into_owned()) }
    }
}

/// Whether a double holds an integer, and the alphabets count so far.
pub(super) fn is_exact(n: u64) -> bool {
    n < 1_000_000_000_000_000_000 && (n as f64) as u64 == n
}

/// Writes `numbers` by a format string such as `1.a.i`.
pub fn format_list(numbers: &[Numeral], how: &NumberFormat<'_>) -> String {
    let mut pieces = Pieces::split(how.format);
    if pieces.tokens.is_empty() {
        pieces.tokens.push("1");
    }
    let mut out = String::from(pieces.prefix);
    for (at, number) in numbers.iter().enumerate() {
        if at > 0 {
            // The separator before the token used; tokens run out: the last separator again.
            let separator = if pieces.separators.is_empty() {
                "."
            } else {
                pieces.separators[(at - 1).min(pieces.separators.len() - 1)]
            };
            out.push_str(separator);
        }
        let token = pieces.tokens[at.min(pieces.tokens.len() - 1)];
        match &number.digits {
            Some(digits) => format_large(digits, token, how, &mut out),
            None => format_one(number.number, token, how, &mut out),
        }
    }
    out.push_str(pieces.suffix);
    out
}

struct Pieces<'a> {
    prefix: &'a str,
    suffix: &'a str,
    tokens: Vec<&'a str>,
    /// `separators[i]` stands between token i and i + 1.
    separators: Vec<&'a str>,
}

impl<'a> Pieces<'a> {
    fn split(format: &'a str) -> Pieces<'a> {
        let mut pieces = Pieces { prefix: "", suffix: "", tokens: Vec::new(), separators: Vec::new() };
        let mut rest = format;
        let mut pending = "";
        while !rest.is_empty() {
            let is_token = rest.chars().next().is_some_and(char::is_alphanumeric);
            let end = rest.find(|c: char| c.is_alphanumeric() != is_token).unwrap_or(rest.len());
            let (piece, tail) = rest.split_at(end);
            rest = tail;
            if is_token {
                if pieces.tokens.is_empty() {
                    pieces.prefix = pending;
                } else {
                    pieces.separators.push(pending);
                }
                pieces.tokens.push(piece);
                pending = "";
            } else {
                pending = piece;
            }
        }
        if pieces.tokens.is_empty() {
            // Only punctuation: it surrounds a decimal number.
            pieces.prefix = pending;
        }
        pieces.suffix = pending;
        pieces
    }
}

/// Digits are written whatever the format is: no alphabet counts so far.
fn format_large(digits: &str, token: &str, how: &NumberFormat<'_>, out: &mut String) {
    let zero = digit_zero(token);
    let width = if zero.is_some() { token.chars().count() } else { 1 };
    grouped(&format!("{digits:0>width$}", width = width.min(1000)), zero.unwrap_or('0'), how.grouping, out);
    if how.ordinal {
        out.push_str(super::integer::suffix(digits));
    }
}

fn format_one(number: f64, token: &str, how: &NumberFormat<'_>, out: &mut String) {
    let rounded = (number + 0.5).floor();
    if how.version2 && rounded == 0.0 && digit_zero(token).is_some() {
        decimal(0, token.chars().count(), digit_zero(token).unwrap_or('0'), how.grouping, out);
        out.push_str(if how.ordinal { "th" } else { "" });
        return;
    }
    if how.version2 && rounded == 0.0 && matches!(token, "w" | "W" | "Ww") {
        return words(0, token, how.ordinal, out);
    }
    if rounded == 0.0
        && let Some(zero) = token.chars().next().and_then(|first| enclosed(0, first))
    {
        return out.push(zero);
    }
    if !rounded.is_finite() || rounded < 0.5 {
        // Outside of the specification: written as a decimal number.
        out.push_str(&number_text(if rounded.is_finite() { rounded } else { number }));
        return;
    }
    if rounded >= 1e18 {
        out.push_str(&number_text(rounded));
        return;
    }
    let value = rounded as u64;
    let mut chars = token.chars();
    let (first, single) = match (chars.next(), chars.next()) {
        (Some(c), None) => (c, true),
        (Some(c), Some(_)) => (c, false),
        _ => ('1', true),
    };
    if how.version2 && matches!(token, "w" | "W" | "Ww") {
        return words(value, token, how.ordinal, out);
    }
    match first {
        'i' if single => roman(value, false, out),
        'I' if single => roman(value, true, out),
        _ if digit_zero(token).is_some() => {
            decimal(value, token.chars().count(), digit_zero(token).unwrap_or('0'), how.grouping, out);
            if how.ordinal {
                out.push_str(match (value % 10, value % 100) {
                    (_, 11..=13) => "th",
                    (1, _) => "st",
                    (2, _) => "nd",
                    (3, _) => "rd",
                    _ => "th",
                });
            }
        }
        c if single && let Some(letters) = Letters::from(c) => alphabetic(value, &letters, out),
        c if single && let Some(sign) = enclosed(value, c) => out.push(sign),
        _ => decimal(value, 1, '0', how.grouping, out),
    }
}

fn number_text(number: f64) -> String {
    if number.is_nan() {
        "NaN".into()
    } else if number.is_infinite() {
        if number > 0.0 { "Infinity".into() } else { "-Infinity".into() }
    } else if number == 0.0 {
        "0".into()
    } else {
        format!("{number}")
    }
}

/// The zero of the digit family when the token is zeros followed by a one (`1`, `01`, `٠١`).
fn digit_zero(token: &str) -> Option<char> {
    let last = token.chars().last()?;
    let zero = char::from_u32((last as u32).checked_sub(1)?)?;
    let is_zero = ZEROS.contains(&zero);
    (is_zero && token.chars().rev().skip(1).all(|c| c == zero)).then_some(zero)
}

/// The zeros of the families of decimal digits.
pub(super) const ZEROS: [char; 62] = [
    '0',
    '\u{660}',
    '\u{6f0}',
    '\u{7c0}',
    '\u{966}',
    '\u{9e6}',
    '\u{a66}',
    '\u{ae6}',
    '\u{b66}',
    '\u{be6}',
    '\u{c66}',
    '\u{ce6}',
    '\u{d66}',
    '\u{e50}',
    '\u{ed0}',
    '\u{f20}',
    '\u{1040}',
    '\u{17e0}',
    '\u{1810}',
    '\u{1946}',
    '\u{19d0}',
    '\u{ff10}',
    '\u{de6}',
    '\u{1090}',
    '\u{1a80}',
    '\u{1a90}',
    '\u{1b50}',
    '\u{1bb0}',
    '\u{1c40}',
    '\u{1c50}',
    '\u{a620}',
    '\u{a8d0}',
    '\u{a900}',
    '\u{a9d0}',
    '\u{a9f0}',
    '\u{aa50}',
    '\u{abf0}',
    '\u{104a0}',
    '\u{10d30}',
    '\u{11066}',
    '\u{110f0}',
    '\u{11136}',
    '\u{111d0}',
    '\u{112f0}',
    '\u{11450}',
    '\u{114d0}',
    '\u{11650}',
    '\u{116c0}',
    '\u{11730}',
    '\u{118e0}',
    '\u{11950}',
    '\u{11c50}',
    '\u{11d50}',
    '\u{11da0}',
    '\u{16a60}',
    '\u{16b50}',
    '\u{1d7ce}',
    '\u{1e140}',
    '\u{1e2f0}',
    '\u{1e950}',
    '\u{1fbf0}',
    '\u{16ac0}',
];

fn decimal(value: u64, width: usize, zero: char, grouping: Option<(&str, usize)>, out: &mut String) {
    grouped(&super::padded(value, width), zero, grouping, out);
}

/// Writes ASCII digits in a family of digits and in groups.
fn grouped(digits: &str, zero: char, grouping: Option<(&str, usize)>, out: &mut String) {
    for (at, digit) in digits.bytes().enumerate() {
        let left = digits.len() - at;
        if let Some((separator, size)) = grouping
            && size > 0
            && at > 0
            && left.is_multiple_of(size)
        {
            out.push_str(separator);
        }
        out.push(char::from_u32(zero as u32 + u32::from(digit - b'0')).unwrap_or('0'));
    }
}

/// An alphabet that can count.
enum Letters {
    /// So many from this one on.
    Run(char, u64),
    /// From this alpha on, without the place between rho and sigma: the final sigma, or nothing.
    Greek(char),
    Listed(&'static str),
}

const HIRAGANA: &str =
    "あいうえおかきくけこさしすせそたちつてとなにぬねのはひふへほまみむめもやゆよらりるれろわをん";
const KATAKANA: &str =
    "アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワヲン";
/// In the order of the poem Iroha.
const HIRAGANA_IROHA: &str =
    "いろはにほへとちりぬるをわかよたれそつねならむうゐのおくやまけふこえてあさきゆめみしゑひもせす";
const KATAKANA_IROHA: &str =
    "イロハニホヘトチリヌルヲワカヨタレソツネナラムウヰノオクヤマケフコエテアサキユメミシヱヒモセス";

impl Letters {
    /// The alphabet that begins with a letter.
    fn from(first: char) -> Option<Letters> {
        Some(match first {
            'a' | 'A' => Letters::Run(first, 26),
            '\u{3b1}' | '\u{391}' => Letters::Greek(first),
            '\u{430}' | '\u{410}' => Letters::Run(first, 32),
            '\u{5d0}' => Letters::Run(first, 27),
            '\u{e01}' => Letters::Run(first, 46),
            'あ' => Letters::Listed(HIRAGANA),
            'ア' => Letters::Listed(KATAKANA),
            'い' => Letters::Listed(HIRAGANA_IROHA),
            'イ' => Letters::Listed(KATAKANA_IROHA),
            _ => return None,
        })
    }

    fn count(&self) -> u64 {
        match self {
            Letters::Run(_, count) => *count,
            Letters::Greek(_) => 24,
            Letters::Listed(letters) => letters.chars().count() as u64,
        }
    }

    /// Letter `offset`, from 0.
    fn letter(&self, offset: u64) -> char {
        let from = |first: char, offset: u64| char::from_u32(first as u32 + offset as u32);
        let letter = match self {
            Letters::Run(first, _) => from(*first, offset),
            Letters::Greek(alpha) => from(*alpha, offset + u64::from(offset >= 17)),
            Letters::Listed(letters) => letters.chars().nth(offset as usize),
        };
        letter.unwrap_or('?')
    }
}

/// Bijective numeration: a…z, aa…az, …
fn alphabetic(mut value: u64, letters: &Letters, out: &mut String) {
    let count = letters.count();
    let mut reversed = Vec::new();
    while value > 0 {
        value -= 1;
        reversed.push(letters.letter(value % count));
        value /= count;
    }
    out.extend(reversed.iter().rev());
}

/// A number in a circle, in parentheses or with a point as one character: `one` is that of 1. `None`: there is none.
fn enclosed(value: u64, one: char) -> Option<char> {
    let value = u32::try_from(value).ok()?;
    let code = match (one, value) {
        ('①', 0) => 0x24EA,
        ('①', 1..=20) => 0x2460 + value - 1,
        ('①', 21..=35) => 0x3251 + value - 21,
        ('①', 36..=50) => 0x32B1 + value - 36,
        ('⑴', 1..=20) => 0x2474 + value - 1,
        ('⒈', 0) => 0x1F100,
        ('⒈', 1..=20) => 0x2488 + value - 1,
        ('❶', 0) => 0x24FF,
        ('❶', 1..=10) => 0x2776 + value - 1,
        ('❶', 11..=20) => 0x24EB + value - 11,
        _ => return None,
    };
    char::from_u32(code)
}

/// Whether a character is the first of a sequence that can count, other than digits.
pub(super) fn is_first(c: char) -> bool {
    matches!(c, 'i' | 'I') || enclosed(1, c) == Some(c) || Letters::from(c).is_some()
}

fn roman(value: u64, upper: bool, out: &mut String) {
    if value > 4999 {
        decimal(value, 1, '0', None, out);
        return;
    }
    const STEPS: [(u64, &str, &str); 13] = [
        (1000, "m", "M"),
        (900, "cm", "CM"),
        (500, "d", "D"),
        (400, "cd", "CD"),
        (100, "c", "C"),
        (90, "xc", "XC"),
        (50, "l", "L"),
        (40, "xl", "XL"),
        (10, "x", "X"),
        (9, "ix", "IX"),
        (5, "v", "V"),
        (4, "iv", "IV"),
        (1, "i", "I"),
    ];
    let mut value = value;
    for (amount, small, capital) in STEPS {
        while value >= amount {
            out.push_str(if upper { capital } else { small });
            value -= amount;
        }
    }
}

/// The numbers below twenty in words.
pub(crate) const SMALL: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
/// The tens, by their digit; the first two have no word.
pub(crate) const TENS: [&str; 10] =
    ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];

/// The last word of an ordinal number, for that of the cardinal.
pub(crate) fn ordinal_word(word: &str) -> String {
    match word {
        "one" => "first".to_owned(),
        "two" => "second".to_owned(),
        "three" => "third".to_owned(),
        "five" => "fifth".to_owned(),
        "eight" => "eighth".to_owned(),
        "nine" => "ninth".to_owned(),
        "twelve" => "twelfth".to_owned(),
        word => match word.strip_suffix('y') {
            Some(stem) => format!("{stem}ieth"),
            None => format!("{word}th"),
        },
    }
}

/// A number in English words; `token`: gives the case.
pub(crate) fn words(value: u64, token: &str, ordinal: bool, out: &mut String) {
    const LARGE: [(u64, &str); 6] = [
        (1_000_000_000_000_000, "quadrillion"),
        (1_000_000_000_000, "trillion"),
        (1_000_000_000, "billion"),
        (1_000_000, "million"),
        (1_000, "thousand"),
        (100, "hundred"),
    ];
    fn cardinal(mut value: u64, list: &mut Vec<&'static str>) {
        let mut larger = false;
        for (size, name) in LARGE {
            if value >= size {
                cardinal(value / size, list);
                list.push(name);
                value %= size;
                larger = true;
            }
        }
        if value == 0 && larger {
            return;
        }
        if larger && value < 100 {
            list.push("and");
        }
        if value >= 20 {
            list.push(TENS[(value / 10) as usize]);
            if value.is_multiple_of(10) {
                return;
            }
            value %= 10;
        }
        list.push(SMALL[value as usize]);
    }
    let mut list = Vec::new();
    cardinal(value, &mut list);
    let count = list.len();
    for (at, word) in list.iter().enumerate() {
        let last = ordinal && at + 1 == count;
        // The tens of an ordinal number and its last word are one word: twenty-first.
        let joined = last && at > 0 && TENS[2..].contains(&list[at - 1]);
        out.push_str(match (at, joined) {
            (0, _) => "",
            (_, true) => "-",
            (_, false) => " ",
        });
        let word = if last { ordinal_word(word) } else { (*word).to_owned() };
        match token {
            "W" => out.push_str(&word.to_uppercase()),
            "Ww" if word != "and" => {
                let mut chars = word.chars();
                out.extend(chars.next().map(|c| c.to_ascii_uppercase()));
                out.push_str(chars.as_str());
            }
            _ => out.push_str(&word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats() {
        for (numbers, format, expected) in [
            (&[1.0, 2.0, 3.0][..], "1.a.i", "1.b.iii"),
            (&[1.0, 2.0, 3.0], "1", "1.2.3"),
            (&[1.0, 2.0, 3.0], "(A)", "(A.B.C)"),
            (&[7.0], "001", "007"),
            (&[27.0], "a", "aa"),
            (&[702.0], "A", "ZZ"),
            (&[1994.0], "I", "MCMXCIV"),
            (&[3.0, 4.0], "1-1: ", "3-4: "),
            (&[1.0, 2.0, 3.0], "1.1/1", "1.2/3"),
            (&[5.0], "", "5"),
            (&[12.0], "\u{661}", "\u{661}\u{662}"),
            (&[0.0], "1", "0"),
            (&[1.0, 2.0, 46.0, 47.0], "ア-ア", "ア-イ-ン-アア"),
            (&[1e17], "あ", "いたとおめろのわをかり"),
            (&[2.0, 48.0], "イ い", "ロ いい"),
            (&[17.0, 18.0, 25.0], "α.α", "ρ.σ.αα"),
            (&[0.0, 1.0, 20.0, 35.0, 50.0, 51.0], "①,①", "⓪,①,⑳,㉟,㊿,51"),
            (&[20.0, 21.0], "(⑴ ⑴)", "(⒇ 21)"),
        ] {
            let how = NumberFormat { format, ..NumberFormat::default() };
            let numbers: Vec<Numeral> = numbers.iter().map(|number| Numeral::from(*number)).collect();
            assert_eq!(format_list(&numbers, &how), expected, "{numbers:?} {format}");
        }
        let how = NumberFormat { grouping: Some((",", 3)), format: "1", ..NumberFormat::default() };
        assert_eq!(format_list(&[1234567.0.into()], &how), "1,234,567");
        // Integers beyond the digits of a double.
        let large = |text: &str| vec![Numeral::from(&crate::atomic::large::parse(text).unwrap())];
        for (number, format, expected) in [
            ("9223372036854775807", "1", "9,223,372,036,854,775,807"),
            ("12345678901234567891", "a", "12,345,678,901,234,567,891"),
            ("9007199254740993", "00000000000000000001", "00,009,007,199,254,740,993"),
        ] {
            assert_eq!(format_list(&large(number), &NumberFormat { format, ..how.clone() }), expected);
        }
    }
}
