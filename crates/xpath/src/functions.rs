//! The string functions of the core library, and those that look at a node (XPath 1.0, sections 4.1 to 4.3).

use crate::eval::namespace_at;
use crate::number::round;
use crate::plan::Core;
use crate::value::Node;
use std::borrow::Cow;
use std::cell::RefCell;
use xml::{Document, NodeKind};

/// `local-name()`, `namespace-uri()` and `name()` of a node.
pub(crate) fn node_name(core: Core, doc: &Document, n: Node) -> Cow<'_, str> {
    if n.is_namespace() {
        return match core {
            Core::NamespaceUri => Cow::Borrowed(""),
            _ => Cow::Borrowed(namespace_at(doc, n).map_or("", |(prefix, _)| prefix)),
        };
    }
    match doc.kind(n.id) {
        NodeKind::Element | NodeKind::Attribute => match core {
            Core::LocalName => Cow::Borrowed(doc.local(n.id)),
            Core::NamespaceUri => Cow::Borrowed(doc.namespace(n.id)),
            _ => doc.qname(n.id),
        },
        NodeKind::ProcessingInstruction if core != Core::NamespaceUri => Cow::Borrowed(doc.local(n.id)),
        _ => Cow::Borrowed(""),
    }
}

/// `lang()`: the nearest `xml:lang` is `wanted` or a sublanguage of it, without regard to case.
pub(crate) fn lang(doc: &Document, n: Node, wanted: &str) -> bool {
    let mut at = Some(n.id);
    while let Some(id) = at {
        if let Some(lang) = doc.attribute(id, xml::XML_NS, "lang") {
            let (lang, wanted) = (lang.as_bytes(), wanted.as_bytes());
            return lang.len() >= wanted.len()
                && lang[..wanted.len()].eq_ignore_ascii_case(wanted)
                && matches!(lang.get(wanted.len()), None | Some(b'-'));
        }
        at = doc.parent(id);
    }
    false
}

/// `contains()`.
pub(crate) fn contains(s: &str, part: &str) -> bool {
    s.contains(part)
}

/// `string-length()`: in characters.
pub(crate) fn length(s: &str) -> usize {
    if s.is_ascii() { s.len() } else { s.chars().count() }
}

/// A piece of a text that may be borrowed: no copy where it is.
fn slice(s: Cow<'_, str>, range: std::ops::Range<usize>) -> Cow<'_, str> {
    match s {
        Cow::Borrowed(s) => Cow::Borrowed(&s[range]),
        Cow::Owned(mut s) => {
            s.truncate(range.end);
            s.drain(..range.start);
            Cow::Owned(s)
        }
    }
}

/// The position of a part. A single byte is searched directly: preparation for longer ones costs more than that.
#[inline]
fn find(s: &str, part: &str) -> Option<usize> {
    match part.as_bytes() {
        [byte] => s.find(char::from(*byte)),
        _ => s.find(part),
    }
}

/// `substring-before()`.
pub(crate) fn substring_before<'a>(s: Cow<'a, str>, part: &str) -> Cow<'a, str> {
    let end = find(&s, part).unwrap_or(0);
    slice(s, 0..end)
}

/// `substring-after()`.
pub(crate) fn substring_after<'a>(s: Cow<'a, str>, part: &str) -> Cow<'a, str> {
    let start = find(&s, part).map_or(s.len(), |i| i + part.len());
    let end = s.len();
    slice(s, start..end)
}

/// `substring()`: the characters at positions p with `round(from) <= p < round(from) + round(len)`.
pub fn substring(s: Cow<'_, str>, from: f64, len: Option<f64>) -> Cow<'_, str> {
    let first = round(from);
    let behind = len.map_or(f64::INFINITY, |len| first + round(len));
    // NaN in either bound lets no position pass.
    if first.is_nan() || behind.is_nan() || behind <= 1.0 || behind <= first {
        return Cow::Borrowed("");
    }
    let skip = if first <= 1.0 { 0 } else { (first - 1.0).min(s.len() as f64) as usize };
    let end = (behind - 1.0).min(s.len() as f64) as usize;
    // In the ASCII prefix, characters are bytes.
    let counted = if len.is_some() { end } else { skip };
    let (start, end) = if s.as_bytes()[..counted].is_ascii() {
        (skip, end)
    } else {
        let mut boundaries = s.char_indices().map(|(i, _)| i).chain([s.len()]);
        let start = boundaries.nth(skip).unwrap_or(s.len());
        let end = if end > skip { boundaries.nth(end - skip - 1).unwrap_or(s.len()) } else { start };
        (start, end)
    };
    if start >= end { Cow::Borrowed("") } else { slice(s, start..end) }
}

fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\n' | b'\r')
}

/// `normalize-space()`.
pub fn normalize_space(s: Cow<'_, str>) -> Cow<'_, str> {
    let bytes = s.as_bytes();
    let start = bytes.iter().position(|b| !is_space(*b)).unwrap_or(bytes.len());
    let end = bytes.iter().rposition(|b| !is_space(*b)).map_or(start, |i| i + 1);
    let inner = &bytes[start..end];
    // Whether it has only single spaces within.
    let mut behind_blank = false;
    let clean = inner.iter().all(|byte| {
        let blank = is_space(*byte);
        let fine = !blank || *byte == b' ' && !behind_blank;
        behind_blank = blank;
        fine
    });
    if clean {
        return slice(s, start..end);
    }
    let mut out = String::with_capacity(end - start);
    for word in s[start..end].split([' ', '\t', '\n', '\r']).filter(|w| !w.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    Cow::Owned(out)
}

/// The effect of `translate()` on each ASCII character.
struct Table {
    from: Box<str>,
    to: Box<str>,
    /// The replacement of each; [`REMOVE`]: none.
    bytes: [u8; 128],
    removes: bool,
}

const REMOVE: u8 = 0xFF;

/// Most tables in the cache of a thread, and the longest arguments: most calls of `translate()` have the same two texts.
const TABLES: usize = 4;
const LONGEST: usize = 256;

thread_local! {
    static KEPT: RefCell<Vec<Table>> = const { RefCell::new(Vec::new()) };
}

impl Table {
    fn new(from: &str, to: &str) -> Table {
        let (mut bytes, mut is_mapped) = ([0; 128], [false; 128]);
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = at as u8;
        }
        for (at, byte) in from.bytes().enumerate() {
            let index = usize::from(byte & 0x7F);
            if !is_mapped[index] {
                is_mapped[index] = true;
                bytes[index] = to.as_bytes().get(at).copied().unwrap_or(REMOVE);
            }
        }
        Table { from: from.into(), to: to.into(), bytes, removes: bytes.contains(&REMOVE) }
    }

    /// Calls `f` with the table of two texts of ASCII characters.
    fn with<R>(from: &str, to: &str, f: impl FnOnce(&Table) -> R) -> R {
        if from.len().max(to.len()) > LONGEST {
            return f(&Table::new(from, to));
        }
        KEPT.with_borrow_mut(|kept| {
            let position = kept.iter().position(|table| *table.from == *from && *table.to == *to);
            let at = position.unwrap_or_else(|| {
                if kept.len() >= TABLES {
                    kept.remove(0);
                }
                kept.push(Table::new(from, to));
                kept.len() - 1
            });
            f(&kept[at])
        })
    }

    fn apply<'a>(&self, s: Cow<'a, str>) -> Cow<'a, str> {
        let stays = |byte: u8| byte >= 128 || self.bytes[usize::from(byte & 0x7F)] == byte;
        if s.bytes().all(stays) {
            return s;
        }
        let mut mapped = String::with_capacity(s.len());
        if self.removes || !s.is_ascii() {
            mapped.extend(s.chars().filter_map(|c| match self.bytes.get(c as usize) {
                None => Some(c),
                Some(&REMOVE) => None,
                Some(&byte) => Some(char::from(byte)),
            }));
            return Cow::Owned(mapped);
        }
        // Byte for byte.
        let mut block = [0u8; 64];
        for piece in s.as_bytes().chunks(block.len()) {
            for (to, from) in block.iter_mut().zip(piece) {
                *to = self.bytes[usize::from(*from & 0x7F)];
            }
            // (All texts are ASCII.)
            mapped.push_str(std::str::from_utf8(&block[..piece.len()]).unwrap_or_default());
        }
        Cow::Owned(mapped)
    }
}

/// `translate()`: the first occurrence of a character in `from` counts; without a partner in `to` it is removed.
pub(crate) fn translate<'a>(s: Cow<'a, str>, from: &str, to: &str) -> Cow<'a, str> {
    if from.is_ascii() && to.is_ascii() {
        return Table::with(from, to, |table| table.apply(s));
    }
    let to: Vec<char> = to.chars().collect();
    let mut map = std::collections::HashMap::new();
    for (i, c) in from.chars().enumerate() {
        map.entry(c).or_insert_with(|| to.get(i).copied());
    }
    Cow::Owned(s.chars().filter_map(|c| map.get(&c).copied().unwrap_or(Some(c))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn substrings() {
        let inf = f64::INFINITY;
        #[rustfmt::skip]
        let cases = [
            ("12345", 2.0, Some(3.0), "234"), ("12345", 2.0, None, "2345"), ("12345", 1.5, Some(2.6), "234"),
            ("12345", 0.0, Some(3.0), "12"), ("12345", f64::NAN, Some(3.0), ""), ("12345", 1.0, Some(f64::NAN), ""),
            ("12345", -42.0, Some(inf), "12345"), ("12345", -inf, Some(inf), ""), ("12345", -inf, None, "12345"),
            ("äöü", 2.0, Some(1.0), "ö"), ("äöü", 2.0, None, "öü"), ("äöü", 0.0, Some(2.0), "ä"), ("äöü", 4.0, None, ""),
            ("", 1.0, None, ""), ("12345", 6.0, None, ""), ("12345", 5.0, Some(10.0), "5"), ("ab", 1.0, Some(0.0), ""),
            ("äöü", inf, None, ""), ("äöü", 3.0, Some(inf), "ü"), ("𝄞a", 2.0, Some(1.0), "a"),
        ];
        for (s, from, len, expected) in cases {
            assert_eq!(substring(s.into(), from, len), expected, "{s} {from} {len:?}");
            assert_eq!(substring(s.to_string().into(), from, len), expected, "{s} {from} {len:?}");
        }
        assert_eq!(substring_before("1999/04".into(), "/"), "1999");
        assert_eq!(substring_before("x".into(), "y"), "");
        assert_eq!(substring_after("1999/04".into(), "/"), "04");
        assert_eq!(substring_after("x".into(), "y"), "");
        assert_eq!(substring_after("x".into(), ""), "x");
    }

    #[test]
    fn spaces_and_translations() {
        for (s, expected) in [
            ("", ""),
            ("  ", ""),
            (" a  b\n", "a b"),
            ("a b", "a b"),
            ("a\tb", "a b"),
            ("\u{a0}a", "\u{a0}a"),
            (" a", "a"),
        ] {
            assert_eq!(normalize_space(s.into()), expected);
        }
        #[rustfmt::skip]
        let cases = [
            ("bar", "abc", "ABC", "BAr"), ("--aaa--", "abc-", "ABC", "AAA"), ("aa", "aa", "bc", "bb"), ("x", "", "y", "x"),
            ("äb", "ä", "a", "ab"), ("ab", "a", "ä", "äb"), ("äb", "b", "", "ä"),
            ("äbc", "bc", "cb", "äcb"), ("abc", "xyz", "", "abc"), ("a\u{7f}", "\u{7f}", "b", "ab"),
        ];
        for (s, from, to, expected) in cases {
            assert_eq!(translate(s.into(), from, to), expected);
        }
    }
}
