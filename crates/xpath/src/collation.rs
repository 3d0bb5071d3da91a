//! Collations (F&O section 7.3.1): the comparison of strings.

use crate::atomic::Atomic;
use std::borrow::Cow;
use std::ops::Range;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// The collation by code points: the default.
pub(crate) const CODEPOINT: &str = "http://www.w3.org/2005/xpath-functions/collation/codepoint";
const ASCII: &str = "http://www.w3.org/2005/xpath-functions/collation/html-ascii-case-insensitive";
const UCA: &str = "http://www.w3.org/2013/collation/UCA";

/// A collation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Collation {
    /// By code points.
    #[default]
    Codepoint,
    /// By code points, where the letters A to Z equal a to z.
    AsciiCaseInsensitive,
    /// For people: by letters, then accents, then case.
    Words(Words),
}

/// The parameters of the Unicode collation algorithm that are supported: the order of the root collation for Latin text, of
/// code points for other letters, whatever `lang` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words {
    /// 1: letters only; 2: accents too; 3: case too; 5: code points too.
    strength: u8,
    /// Of two strings that differ in case only the one with upper case comes first.
    upper_first: bool,
    /// Case counts also if accents do not.
    case_level: bool,
    /// Punctuation and spaces do not count.
    blanked: bool,
    /// Adjacent digits are a number.
    numeric: bool,
}

/// The letters and marks of a text. Letters that the root collation has as other letters with an accent are those: `æ` comes behind `ae`.
fn letters(text: &str) -> impl Iterator<Item = char> {
    // A mark between the letters that a ligature stands for, and the stroke of a letter.
    const JOINED: char = '\u{34F}';
    const STROKE: char = '\u{338}';
    text.nfd().flat_map(|c| {
        let (first, mark, second) = match c {
            'æ' => ('a', JOINED, Some('e')),
            'Æ' => ('A', JOINED, Some('E')),
            'œ' => ('o', JOINED, Some('e')),
            'Œ' => ('O', JOINED, Some('E')),
            'ß' => ('s', JOINED, Some('s')),
            'ẞ' => ('S', JOINED, Some('S')),
            'ø' => ('o', STROKE, None),
            'Ø' => ('O', STROKE, None),
            'đ' => ('d', STROKE, None),
            'Đ' => ('D', STROKE, None),
            'ł' => ('l', STROKE, None),
            'Ł' => ('L', STROKE, None),
            c => return [Some(c), None, None].into_iter().flatten(),
        };
        [Some(first), Some(mark), second].into_iter().flatten()
    })
}

impl Words {
    fn parse(query: &str) -> Result<Words, String> {
        let mut words =
            Words { strength: 3, upper_first: false, case_level: false, blanked: false, numeric: false };
        for part in query.split([';', '&']).filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            match (name, value) {
                ("fallback", "no") => {
                    return Err(format!(
                        "the collation \"{UCA}?{query}\" is not there exactly, and fallback=no forbids another"
                    ));
                }
                ("strength", "primary" | "1") => words.strength = 1,
                ("strength", "secondary" | "2") => words.strength = 2,
                ("strength", "tertiary" | "3") => words.strength = 3,
                ("strength", "quaternary" | "4") => words.strength = 4,
                ("strength", "identical" | "5") => words.strength = 5,
                ("caseFirst", "upper") => words.upper_first = true,
                ("caseLevel", "yes") => words.case_level = true,
                ("alternate", "blanked" | "shifted") => words.blanked = true,
                ("numeric", "yes") => words.numeric = true,
                _ => {}
            }
        }
        Ok(words)
    }

    fn counts(&self, c: char) -> bool {
        !self.blanked || c.is_alphanumeric()
    }

    /// Spaces, punctuation, digits, letters.
    fn class(c: char) -> char {
        match c {
            c if c.is_whitespace() => '\u{1}',
            c if c.is_numeric() => '\u{3}',
            c if c.is_alphabetic() => '\u{4}',
            _ => '\u{2}',
        }
    }

    fn push_case(self, c: char, out: &mut String) {
        out.push(if c.is_uppercase() != self.upper_first { '\u{2}' } else { '\u{1}' });
    }

    fn key(self, text: &str) -> String {
        let (mut out, mut accents, mut case) =
            (String::with_capacity(2 * text.len()), String::new(), String::new());
        let mut number = String::new();
        let end_number = |number: &mut String, out: &mut String| {
            if !number.is_empty() {
                // The longer number is greater.
                out.push('\u{3}');
                out.push(char::from_u32(0x100 + number.len().min(0xD000) as u32).unwrap_or('\u{100}'));
                out.push_str(number);
                number.clear();
            }
        };
        for c in letters(text) {
            if is_combining_mark(c) {
                accents.push(c);
                continue;
            }
            if !self.counts(c) {
                continue;
            }
            if self.numeric && c.is_ascii_digit() {
                if number == "0" {
                    number.clear();
                }
                number.push(c);
            } else {
                end_number(&mut number, &mut out);
                out.push(Words::class(c));
                out.extend(c.to_lowercase());
            }
            accents.push('\u{1}');
            self.push_case(c, &mut case);
        }
        end_number(&mut number, &mut out);
        if self.strength >= 2 {
            out.push('\u{0}');
            out.push_str(&accents);
        }
        if self.strength >= 3 || self.case_level {
            out.push('\u{0}');
            out.push_str(&case);
        }
        if self.strength >= 5 {
            out.push('\u{0}');
            out.push_str(text);
        }
        out
    }

    /// The letters with their accents, between marks, and the end of each: in the key and in the text.
    fn units(self, text: &str) -> (String, Vec<(usize, Range<usize>)>) {
        let mut out = String::new();
        let mut places: Vec<(usize, Range<usize>)> = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            let mut end = rest.len();
            for (offset, c) in rest.char_indices().skip(1) {
                if !is_combining_mark(c) {
                    end = offset;
                    break;
                }
            }
            let unit = &rest[..end];
            let begin = out.len();
            let mut counts = false;
            for c in letters(unit) {
                match is_combining_mark(c) {
                    true if self.strength >= 2 => out.push(c),
                    true => {}
                    false if self.counts(c) => {
                        // The second letter of a ligature is one of its own.
                        if counts {
                            out.push('\u{10FFFF}');
                            places.push((out.len(), at..at + end));
                        }
                        counts = true;
                        out.push('\u{10FFFE}');
                        out.extend(c.to_lowercase());
                        if self.strength >= 3 || self.case_level {
                            self.push_case(c, &mut out);
                        }
                    }
                    false => {}
                }
            }
            if counts {
                out.push('\u{10FFFF}');
                places.push((out.len(), at..at + end));
            } else {
                out.truncate(begin);
            }
            at += end;
        }
        (out, places)
    }

    fn find_in(self, text: &str, sought: &str) -> Option<Range<usize>> {
        let (all, places) = self.units(text);
        let (wanted, _) = self.units(sought);
        if wanted.is_empty() {
            return Some(0..0);
        }
        let found = all.find(&wanted)?;
        let first = places.partition_point(|(end, _)| *end <= found);
        let last = places.partition_point(|(end, _)| *end < found + wanted.len());
        Some(places.get(first)?.1.start..places.get(last)?.1.end)
    }
}

impl Collation {
    /// The collation with this URI. Errors: a message with the supported ones.
    pub fn find(uri: &str) -> Result<Collation, String> {
        match uri {
            CODEPOINT => Ok(Collation::Codepoint),
            ASCII => Ok(Collation::AsciiCaseInsensitive),
            UCA => Words::parse("").map(Collation::Words),
            _ => match uri.strip_prefix(UCA).and_then(|rest| rest.strip_prefix('?')) {
                Some(query) => Words::parse(query).map(Collation::Words),
                None => Err(format!("there is no collation \"{uri}\": only {CODEPOINT}, {ASCII} and {UCA}")),
            },
        }
    }

    /// A key of `text`: equal strings have equal keys, and the code point order of keys is the order of the collation.
    pub fn key(self, text: &str) -> Cow<'_, str> {
        match self {
            Collation::AsciiCaseInsensitive if text.bytes().any(|b| b.is_ascii_uppercase()) => {
                Cow::Owned(text.to_ascii_lowercase())
            }
            Collation::Words(words) => Cow::Owned(words.key(text)),
            _ => Cow::Borrowed(text),
        }
    }

    /// The first part of `text` that equals `sought`.
    pub(crate) fn find_in(self, text: &str, sought: &str) -> Option<Range<usize>> {
        match self {
            Collation::Words(words) => words.find_in(text, sought),
            _ => {
                let found = self.key(text).find(&*self.key(sought))?;
                Some(found..found + sought.len())
            }
        }
    }

    /// Whether `text` begins, or ends, with `sought`.
    pub(crate) fn begins(self, text: &str, sought: &str) -> bool {
        match self {
            Collation::Words(words) => words.units(text).0.starts_with(&words.units(sought).0),
            _ => self.key(text).starts_with(&*self.key(sought)),
        }
    }

    /// See [`Collation::begins`].
    pub(crate) fn ends(self, text: &str, sought: &str) -> bool {
        match self {
            Collation::Words(words) => words.units(text).0.ends_with(&words.units(sought).0),
            _ => self.key(text).ends_with(&*self.key(sought)),
        }
    }

    /// The same for values that are strings; others are as they are.
    pub fn atom(self, atom: &Atomic) -> Cow<'_, Atomic> {
        match atom {
            Atomic::String(text) | Atomic::Untyped(text) | Atomic::Uri(text) => match self.key(text) {
                Cow::Borrowed(_) => Cow::Borrowed(atom),
                Cow::Owned(key) => Cow::Owned(Atomic::String(key.into())),
            },
            _ => Cow::Borrowed(atom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        let of = |query: &str| Collation::find(&format!("{UCA}?{query}")).unwrap();
        let primary = of("lang=en;strength=primary");
        assert_eq!(primary.key("Database"), primary.key("dâtabase"));
        let secondary = of("strength=secondary");
        assert_eq!(secondary.key("Database"), secondary.key("database"));
        assert_ne!(secondary.key("database"), secondary.key("dâtabase"));
        let all = of("lang=de");
        let mut list = vec!["Zebra", "äpfel", "Apfel", "apfel", "2", "_", "zebra"];
        list.sort_by(|a, b| all.key(a).cmp(&all.key(b)));
        assert_eq!(list, ["_", "2", "apfel", "Apfel", "äpfel", "zebra", "Zebra"]);
        let mut list = vec![
            "æ", "ae", "af", "ad", "Æ", "az", "b", "ß", "ss", "st", "œ", "oe", "of", "ø", "p", "łas", "lat",
        ];
        list.sort_by(|a, b| all.key(a).cmp(&all.key(b)));
        assert_eq!(
            list,
            ["ad", "ae", "æ", "Æ", "af", "az", "b", "łas", "lat", "ø", "oe", "œ", "of", "p", "ss", "ß", "st"]
        );
        assert_eq!(primary.key("Straße"), primary.key("STRASSE"));
        assert_eq!(primary.find_in("die Straße hier", "strasse"), Some(4..11));
        assert_eq!(
            of("caseFirst=upper").key("A").cmp(&of("caseFirst=upper").key("a")),
            std::cmp::Ordering::Less
        );
        let numeric = of("numeric=yes");
        assert!(numeric.key("a9") < numeric.key("a10"));
        assert_eq!(primary.find_in("ein DÂTAbase hier", "database"), Some(4..13));
        assert_eq!(of("strength=3").find_in("database", "BASE"), None);
        assert_eq!(of("alternate=blanked").find_in("---", "-"), Some(0..0));
        assert!(primary.begins("Éa", "e") && primary.ends("aÉ", "e") && !secondary.ends("aÉ", "e"));
        assert!(Collation::find(&format!("{UCA}?fallback=no;lang=se")).is_err());
    }
}
