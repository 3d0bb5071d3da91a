//! The order of strings for `xsl:sort data-type="text"` (XSLT 1.0 section 10): letters by their base letter first, then by accent,
//! then by case, so that `a B c` and `e é f` come out as a reader expects. No locale tables: the one order is
//! that of the root collation for Latin text, code points elsewhere.

use smallvec::SmallVec;
use std::cmp::Ordering;

/// Strings to be sorted. While all are ASCII they are compared directly; else each gets a [`CollationKey`].
#[derive(Debug)]
pub struct Texts {
    all: String,
    /// The end of each.
    ends: SmallVec<[usize; 16]>,
    upper_first: bool,
    /// The beginnings, if all are ASCII ([`beginning`]): mostly they decide.
    beginnings: SmallVec<[u64; 16]>,
    keys: Vec<CollationKey>,
}

impl Texts {
    /// No strings; `upper_first` as in [`CollationKey::new`].
    pub fn new(count: usize, upper_first: bool) -> Texts {
        // The capacity that suffices for most.
        let all = String::with_capacity(count.saturating_mul(8).min(1 << 16));
        Texts {
            all,
            ends: SmallVec::with_capacity(count),
            upper_first,
            beginnings: SmallVec::new(),
            keys: Vec::new(),
        }
    }

    /// Adds a string.
    pub fn push(&mut self, text: &str) {
        self.all.push_str(text);
        self.ends.push(self.all.len());
    }

    fn text(&self, at: usize) -> &str {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.all[start..self.ends[at]]
    }

    /// To be called between adding and comparing.
    pub fn prepare(&mut self) {
        if self.all.is_ascii() {
            self.beginnings = (0..self.ends.len()).map(|at| beginning(self.bytes(at))).collect();
        } else {
            self.keys =
                (0..self.ends.len()).map(|at| CollationKey::new(self.text(at), self.upper_first)).collect();
        }
    }

    /// Compares two by their numbers.
    #[inline]
    pub fn compare(&self, a: usize, b: usize) -> Ordering {
        match (self.beginnings.get(a), self.beginnings.get(b)) {
            (Some(first), Some(second)) if first != second => first.cmp(second),
            _ => self.compare_whole(a, b),
        }
    }

    fn compare_whole(&self, a: usize, b: usize) -> Ordering {
        if let (Some(a), Some(b)) = (self.keys.get(a), self.keys.get(b)) {
            return a.cmp(b);
        }
        compare_ascii(self.bytes(a), self.bytes(b), self.upper_first)
    }

    #[inline]
    fn bytes(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.all.as_bytes()[start..self.ends[at]]
    }
}

/// The first characters of an ASCII string by their order, as a number; nothing comes before any character.
#[inline]
fn beginning(text: &[u8]) -> u64 {
    let mut number = 0;
    let mut place = u64::BITS;
    for byte in text.iter().take(8) {
        place -= 8;
        number |= u64::from(RANKS[usize::from(byte & 0x7F)]) << place;
    }
    number
}

/// The order of the ASCII characters by [`ASCII`] from 1 on; those with the same weight have the same number.
static RANKS: [u8; 128] = {
    let mut table = [0; 128];
    let mut at = 0;
    while at < 128 {
        let (mut other, mut smaller) = (0, 1);
        while other < 128 {
            if ASCII[other] < ASCII[at] {
                smaller += 1;
            }
            other += 1;
        }
        table[at] = smaller;
        at += 1;
    }
    table
};

/// The order of the [`CollationKey`]s of two ASCII strings.
fn compare_ascii(a: &[u8], b: &[u8], upper_first: bool) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    let rank = |byte: u8| ASCII[usize::from(byte & 0x7F)];
    for (a, b) in a.iter().zip(b) {
        if a != b && rank(*a) != rank(*b) {
            return rank(*a).cmp(&rank(*b));
        }
    }
    let upper = |byte: &u8| byte.is_ascii_uppercase() != upper_first;
    a.len().cmp(&b.len()).then_with(|| a.iter().map(upper).cmp(b.iter().map(upper)))
}

/// The [`weight`]s of the ASCII characters as bytes: those of one class by code point, letters without case.
static ASCII: [u16; 128] = {
    let mut table = [0; 128];
    let mut at = 0;
    while at < 128 {
        let byte = (at as u8).to_ascii_lowercase();
        let class = match byte {
            b'\t'..=b'\r' | b' ' => 0,
            b'0'..=b'9' => 2,
            b'a'..=b'z' => 3,
            _ => 1,
        };
        table[at] = class << 8 | byte as u16;
        at += 1;
    }
    table
};

/// A string prepared for comparing.
#[derive(Debug, Clone)]
pub struct CollationKey {
    primary: Vec<u32>,
    accents: Vec<u8>,
    /// 0 lower, 1 upper per character.
    case: Vec<u8>,
}

impl CollationKey {
    /// Prepares `text`. `upper_first`: of two strings that differ in case only the one with upper case comes first.
    pub fn new(text: &str, upper_first: bool) -> CollationKey {
        let mut key =
            CollationKey { primary: Vec::with_capacity(text.len()), accents: Vec::new(), case: Vec::new() };
        for c in text.chars() {
            let (base, accent) = base_letter(c);
            let folded = if base.is_ascii() {
                base.to_ascii_lowercase()
            } else {
                base.to_lowercase().next().unwrap_or(base)
            };
            key.primary.push(weight(folded));
            key.accents.push(accent);
            let upper = c.is_uppercase();
            key.case.push(u8::from(upper != upper_first));
        }
        key
    }
}

impl PartialEq for CollationKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for CollationKey {}
impl PartialOrd for CollationKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for CollationKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.primary
            .cmp(&other.primary)
            .then_with(|| self.accents.cmp(&other.accents))
            .then_with(|| self.case.cmp(&other.case))
    }
}

/// White space, then punctuation and symbols, then digits, then letters.
fn weight(c: char) -> u32 {
    let class = if c.is_whitespace() {
        0
    } else if c.is_ascii_digit() {
        2
    } else if c.is_alphabetic() {
        3
    } else if c.is_numeric() {
        2
    } else {
        1
    };
    (class << 24) | c as u32
}

/// Base letter and a number for the accent of the Latin letters (0 = none).
fn base_letter(c: char) -> (char, u8) {
    if c.is_ascii() {
        return (c, 0);
    }
    // Runs of Latin-1 and Latin Extended-A as base letters; the position in the run identifies the accent.
    const LATIN1: &str = "AAAAAAACEEEEIIIIDNOOOOO\u{d7}OUUUUYTsaaaaaaaceeeeiiiidnooooo\u{f7}ouuuuyty";
    const EXTENDED: &str = "AaAaAaCcCcCcCcDdDdEeEeEeEeEeGgGgGgGgHhHhIiIiIiIiIiIiJjKkkLlLlLlLlLlNnNnNnnNnOoOoOoOoRrRrRrSsSsSsSsTtTtTtUuUuUuUuUuUuWwYyYZzZzZzs";
    let code = c as u32;
    let base = match code {
        0xc0..=0xff => LATIN1.chars().nth((code - 0xc0) as usize),
        0x100..=0x17f => EXTENDED.chars().nth((code - 0x100) as usize),
        _ => None,
    };
    match base {
        Some(base) if base != c => {
            let lower = c.to_lowercase().next().unwrap_or(c) as u32;
            (base, (lower & 0x7f) as u8 | 0x80)
        }
        _ => (c, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order() {
        let sorted = [
            "",
            " ",
            ".01",
            "002",
            "2",
            "a",
            "A",
            "ab",
            "é",
            "ea",
            "f",
            "URI",
            "use",
            "XSLT",
            "XSLT-defined",
        ];
        for pair in sorted.windows(2) {
            assert!(CollationKey::new(pair[0], false) < CollationKey::new(pair[1], false), "{pair:?}");
        }
        // The fast path for ASCII gives the same order.
        for a in sorted.into_iter().chain([
            "use",
            "USE",
            "Use",
            "a-b",
            "a b",
            "\u{1f}",
            "[x",
            "x[",
            "XSLT-defineD",
            "xslt-definee",
            "xslt-def",
            "xslt-define",
        ]) {
            for b in sorted {
                if a.is_ascii() && b.is_ascii() {
                    for upper_first in [false, true] {
                        let keys = CollationKey::new(a, upper_first).cmp(&CollationKey::new(b, upper_first));
                        assert_eq!(
                            compare_ascii(a.as_bytes(), b.as_bytes(), upper_first),
                            keys,
                            "{a:?} {b:?}"
                        );
                        let mut texts = Texts::new(2, upper_first);
                        texts.push(a);
                        texts.push(b);
                        texts.prepare();
                        assert_eq!(texts.compare(0, 1), keys, "{a:?} {b:?}");
                    }
                }
            }
        }
        assert!(CollationKey::new("preFIX", true) < CollationKey::new("prefix", true));
        assert!(CollationKey::new("prefix", false) < CollationKey::new("preFIX", false));
    }
}
