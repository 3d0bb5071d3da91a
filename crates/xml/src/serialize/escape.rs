//! Escaping: unchanged runs are copied whole.

use std::borrow::Cow;

use super::encode::Repertoire;
use crate::chars::is_char;
use crate::scan::{CONTROL_STARTS, first_bad, text_escape, value_escape};

/// How tab, line feed and carriage return are escaped.
pub(crate) type Blanks = [&'static [u8]; 3];

const DECIMAL: Blanks = [b"&#9;", b"&#10;", b"&#13;"];
/// As in canonical XML.
pub(crate) const HEXADECIMAL: Blanks = [b"&#x9;", b"&#xA;", b"&#xD;"];

/// Appends text; `<`, `>`, `&` and carriage returns as references, characters that XML does not allow as U+FFFD.
#[inline]
pub fn push_text(out: &mut Vec<u8>, text: &str) {
    push_text_with::<false>(out, text, &DECIMAL);
}

/// As [`push_text`], by the rules of XSLT 2.0: control characters, NEL and U+2028, which would not survive as they are, as
/// references (XSLT and XQuery Serialization 3.1, section 5).
#[inline]
pub fn push_text_controlled(out: &mut Vec<u8>, text: &str) {
    push_text_with::<true>(out, text, &DECIMAL);
}

/// Appends an attribute value for double quotes; characters that XML does not allow as U+FFFD.
#[inline]
pub fn push_attribute(out: &mut Vec<u8>, value: &str) {
    push_attribute_with::<false>(out, value, &DECIMAL);
}

/// As [`push_attribute`], by the rules of XSLT 2.0 (see [`push_text_controlled`]).
#[inline]
pub fn push_attribute_controlled(out: &mut Vec<u8>, value: &str) {
    push_attribute_with::<true>(out, value, &DECIMAL);
}

#[inline]
pub(crate) fn push_text_with<const CONTROLS: bool>(out: &mut Vec<u8>, text: &str, blanks: &Blanks) {
    let bytes = text.as_bytes();
    let mut p = 0;
    loop {
        let e = text_escape::<CONTROLS>(bytes, p);
        out.extend_from_slice(&bytes[p..e]);
        let Some(&b) = bytes.get(e) else { return };
        p = e + 1;
        let piece: &[u8] = match b {
            b'<' => b"&lt;",
            b'>' => b"&gt;",
            b'&' => b"&amp;",
            b'\r' => blanks[2],
            b'\t' | b'\n' => &bytes[e..p],
            _ if CONTROLS && CONTROL_STARTS.contains(&b) => controlled(out, &text[e..], &mut p),
            _ => allowed(bytes, e, &mut p),
        };
        out.extend_from_slice(piece);
    }
}

#[inline]
pub(crate) fn push_attribute_with<const CONTROLS: bool>(out: &mut Vec<u8>, value: &str, blanks: &Blanks) {
    let bytes = value.as_bytes();
    let mut p = 0;
    loop {
        let e = value_escape::<CONTROLS>(bytes, p);
        out.extend_from_slice(&bytes[p..e]);
        let Some(&b) = bytes.get(e) else { return };
        p = e + 1;
        let piece: &[u8] = match b {
            b'<' => b"&lt;",
            b'&' => b"&amp;",
            b'"' => b"&quot;",
            b'\t' => blanks[0],
            b'\n' => blanks[1],
            b'\r' => blanks[2],
            _ if CONTROLS && CONTROL_STARTS.contains(&b) => controlled(out, &value[e..], &mut p),
            _ => allowed(bytes, e, &mut p),
        };
        out.extend_from_slice(piece);
    }
}

/// The character at `from` in a form that XML allows, with its end in `to`: U+FFFD for one that is not allowed, not even as a reference.
/// It is a control character, or begins with the byte EF. (A tree may have such characters: from forms, headers, JSON.)
#[cold]
fn allowed<'a>(bytes: &'a [u8], from: usize, to: &mut usize) -> &'a [u8] {
    if bytes[from] == 0xEF {
        *to = from + 3;
        if !matches!(bytes[from + 1..], [0xBF, 0xBE | 0xBF, ..]) {
            return &bytes[from..*to];
        }
    }
    REPLACEMENT
}

/// The first character of `text`, whose second byte is at `to`, which becomes its end: as it is, unless a reference to it was written.
fn controlled<'a>(out: &mut Vec<u8>, text: &'a str, to: &mut usize) -> &'a [u8] {
    let Some(c) = text.chars().next() else { return b"" };
    *to += c.len_utf8() - 1;
    if is_control(c) || c == '\u{2028}' {
        push_reference(out, c);
        return b"";
    }
    &text.as_bytes()[..c.len_utf8()]
}

const REPLACEMENT: &[u8] = "\u{FFFD}".as_bytes();

/// `text` with U+FFFD for the characters that XML does not allow.
pub(crate) fn sound(text: &str) -> Cow<'_, str> {
    if first_bad(text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if is_char(c) { c } else { char::REPLACEMENT_CHARACTER }).collect())
}

/// Appends a character reference.
pub(crate) fn push_reference(out: &mut Vec<u8>, c: char) {
    out.extend_from_slice(format!("&#{};", u32::from(c)).as_bytes());
}

/// Calls `push` for runs of characters `repertoire` has, and appends references for the others.
pub(crate) fn each_run(
    out: &mut Vec<u8>,
    text: &str,
    repertoire: &mut Repertoire,
    push: impl Fn(&mut Vec<u8>, &str),
) {
    if repertoire.is_all() || text.is_ascii() {
        return push(out, text);
    }
    let mut run = 0;
    for (i, c) in text.char_indices().filter(|(_, c)| !c.is_ascii()) {
        if !repertoire.has(c) {
            push(out, &text[run..i]);
            push_reference(out, c);
            run = i + c.len_utf8();
        }
    }
    push(out, &text[run..]);
}

/// Characters that XML has and HTML 4 does not.
pub(crate) fn is_control(c: char) -> bool {
    matches!(c, '\u{7F}'..='\u{9F}')
}

/// Whether there are characters that do not survive as they are, by the rules of XSLT 2.0: control characters, NEL and U+2028 (XSLT and
/// XQuery Serialization 3.1, section 5). Those before the space are escaped anyway.
#[inline]
pub(crate) fn has_controls(text: &str) -> bool {
    let [first, second, third] = CONTROL_STARTS;
    let bytes = text.as_bytes();
    memchr::memchr3_iter(first, second, third, bytes).any(|at| match bytes[at] {
        0x7F => true,
        0xC2 => bytes.get(at + 1).is_some_and(|b| (0x80..=0x9F).contains(b)),
        _ => bytes[at..].starts_with("\u{2028}".as_bytes()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes() {
        for (text, as_text, as_value) in [
            ("", "", ""),
            ("plain text, quite long", "plain text, quite long", "plain text, quite long"),
            ("a<b>&\"c\r\n\t", "a&lt;b&gt;&amp;\"c&#13;\n\t", "a&lt;b>&amp;&quot;c&#13;&#10;&#9;"),
            ("\u{E9}\u{1F600}", "\u{E9}\u{1F600}", "\u{E9}\u{1F600}"),
            ("a\0b\u{1F}", "a\u{FFFD}b\u{FFFD}", "a\u{FFFD}b\u{FFFD}"),
            (
                "\u{FFFD}\u{FFFE}\u{FFFF}\u{FF0C}",
                "\u{FFFD}\u{FFFD}\u{FFFD}\u{FF0C}",
                "\u{FFFD}\u{FFFD}\u{FFFD}\u{FF0C}",
            ),
        ] {
            let (mut t, mut v) = (Vec::new(), Vec::new());
            push_text(&mut t, text);
            push_attribute(&mut v, text);
            assert_eq!((t.as_slice(), v.as_slice()), (as_text.as_bytes(), as_value.as_bytes()));
        }
    }

    /// At every place of a block, and behind it.
    #[test]
    fn every_character_at_every_place() {
        let blanks = ["&#9;", "&#10;", "&#13;"];
        for c in (0..0x100)
            .chain(0x2020..0x2030)
            .chain(0xFEFE..0xFF02)
            .chain(0xFFF8..0x10002)
            .filter_map(char::from_u32)
        {
            for before in [0, 1, 7, 8, 13, 15, 16, 17, 30] {
                for behind in [0, 1, 2, 9, 17] {
                    let (a, z) = ("a".repeat(before), "z".repeat(behind));
                    let text = format!("{a}{c}{z}");
                    let (mut t, mut v) = (Vec::new(), Vec::new());
                    push_text(&mut t, &text);
                    push_attribute(&mut v, &text);
                    let plain = c.to_string();
                    let (in_text, in_value) = match c {
                        '<' => ("&lt;", "&lt;"),
                        '>' => ("&gt;", ">"),
                        '&' => ("&amp;", "&amp;"),
                        '"' => ("\"", "&quot;"),
                        '\t' => ("\t", blanks[0]),
                        '\n' => ("\n", blanks[1]),
                        '\r' => (blanks[2], blanks[2]),
                        c if !is_char(c) => ("\u{FFFD}", "\u{FFFD}"),
                        _ => (&*plain, &*plain),
                    };
                    assert_eq!(String::from_utf8(t).unwrap(), format!("{a}{in_text}{z}"), "{c:?}");
                    assert_eq!(String::from_utf8(v).unwrap(), format!("{a}{in_value}{z}"), "{c:?}");
                    let (mut t, mut v) = (Vec::new(), Vec::new());
                    push_text_controlled(&mut t, &text);
                    push_attribute_controlled(&mut v, &text);
                    let reference = format!("&#{};", u32::from(c));
                    let is_referred = has_controls(&plain);
                    assert_eq!(is_referred, is_control(c) || c == '\u{2028}', "{c:?}");
                    let in_text = if is_referred { &*reference } else { in_text };
                    let in_value = if is_referred { &*reference } else { in_value };
                    assert_eq!(String::from_utf8(t).unwrap(), format!("{a}{in_text}{z}"), "{c:?}");
                    assert_eq!(String::from_utf8(v).unwrap(), format!("{a}{in_value}{z}"), "{c:?}");
                }
            }
        }
    }
}
