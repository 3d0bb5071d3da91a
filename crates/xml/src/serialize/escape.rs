//! Escaping: unchanged runs are copied whole.

use super::encode::Repertoire;
use crate::scan::{text_escape, value_end};

/// How tab, line feed and carriage return are written where they cannot stand for themselves.
pub(crate) type Blanks = [&'static [u8]; 3];

const DECIMAL: Blanks = [b"&#9;", b"&#10;", b"&#13;"];
/// As canonical XML has them.
pub(crate) const HEXADECIMAL: Blanks = [b"&#x9;", b"&#xA;", b"&#xD;"];

/// Appends text; `<`, `>`, `&` and carriage returns as references.
#[inline]
pub fn push_text(out: &mut Vec<u8>, text: &str) {
    push_text_with(out, text, &DECIMAL);
}

/// Appends an attribute value for double quotes.
#[inline]
pub fn push_attribute(out: &mut Vec<u8>, value: &str) {
    push_attribute_with(out, value, &DECIMAL);
}

#[inline]
pub(crate) fn push_text_with(out: &mut Vec<u8>, text: &str, blanks: &Blanks) {
    let bytes = text.as_bytes();
    let mut p = 0;
    loop {
        let e = text_escape(bytes, p);
        out.extend_from_slice(&bytes[p..e]);
        let Some(&b) = bytes.get(e) else { return };
        out.extend_from_slice(match b {
            b'<' => b"&lt;",
            b'>' => b"&gt;",
            b'&' => b"&amp;",
            _ => blanks[2],
        });
        p = e + 1;
    }
}

#[inline]
pub(crate) fn push_attribute_with(out: &mut Vec<u8>, value: &str, blanks: &Blanks) {
    let bytes = value.as_bytes();
    let mut p = 0;
    loop {
        let e = value_end(bytes, p, b'"');
        out.extend_from_slice(&bytes[p..e]);
        let Some(&b) = bytes.get(e) else { return };
        match b {
            b'<' => out.extend_from_slice(b"&lt;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            b'\t' => out.extend_from_slice(blanks[0]),
            b'\n' => out.extend_from_slice(blanks[1]),
            b'\r' => out.extend_from_slice(blanks[2]),
            other => out.push(other),
        }
        p = e + 1;
    }
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
        ] {
            let (mut t, mut v) = (Vec::new(), Vec::new());
            push_text(&mut t, text);
            push_attribute(&mut v, text);
            assert_eq!((t.as_slice(), v.as_slice()), (as_text.as_bytes(), as_value.as_bytes()));
        }
    }
}
