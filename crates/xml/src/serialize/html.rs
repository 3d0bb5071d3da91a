//! What is special about HTML 4 (XSLT 1.0, 16.2) and XHTML (XSLT 2.0 and XQuery 1.0 Serialization, 6).

use unicode_normalization::UnicodeNormalization;

/// The namespace of XHTML.
pub(crate) const XHTML: &str = "http://www.w3.org/1999/xhtml";

/// What HTML says of an element.
#[derive(Copy, Clone, Default, PartialEq)]
pub(crate) struct Traits {
    /// It has neither content nor end tag.
    pub void: bool,
    /// Its text is not escaped.
    pub raw: bool,
    /// Added white space around and in it would show.
    pub inline: bool,
    /// White space is kept in it.
    pub keeps_space: bool,
}

/// The traits of the elements that have any, by name.
static TRAITS: [(&str, Traits); 55] = {
    const NONE: Traits = Traits { void: false, raw: false, inline: false, keeps_space: false };
    const VOID: Traits = Traits { void: true, ..NONE };
    const INLINE: Traits = Traits { inline: true, ..NONE };
    const BOTH: Traits = Traits { void: true, ..INLINE };
    const RAW: Traits = Traits { raw: true, keeps_space: true, ..NONE };
    [
        ("a", INLINE),
        ("abbr", INLINE),
        ("acronym", INLINE),
        ("applet", INLINE),
        ("area", VOID),
        ("b", INLINE),
        ("base", VOID),
        ("basefont", BOTH),
        ("bdo", INLINE),
        ("big", INLINE),
        ("br", BOTH),
        ("button", INLINE),
        ("cite", INLINE),
        ("code", INLINE),
        ("col", VOID),
        ("del", INLINE),
        ("dfn", INLINE),
        ("em", INLINE),
        ("embed", BOTH),
        ("font", INLINE),
        ("frame", VOID),
        ("hr", VOID),
        ("i", INLINE),
        ("iframe", INLINE),
        ("img", BOTH),
        ("input", BOTH),
        ("ins", INLINE),
        ("isindex", VOID),
        ("kbd", INLINE),
        ("label", INLINE),
        ("link", VOID),
        ("map", INLINE),
        ("meta", VOID),
        ("object", INLINE),
        ("param", VOID),
        ("pre", Traits { keeps_space: true, ..NONE }),
        ("q", INLINE),
        ("s", INLINE),
        ("samp", INLINE),
        ("script", RAW),
        ("select", INLINE),
        ("small", INLINE),
        ("source", VOID),
        ("span", INLINE),
        ("strike", INLINE),
        ("strong", INLINE),
        ("style", RAW),
        ("sub", INLINE),
        ("sup", INLINE),
        ("textarea", Traits { keeps_space: true, ..INLINE }),
        ("track", VOID),
        ("tt", INLINE),
        ("u", INLINE),
        ("var", INLINE),
        ("wbr", VOID),
    ]
};

/// What HTML says of the element with this name, in whatever case.
pub(crate) fn traits(name: &str) -> Traits {
    find(&TRAITS, name)
}

/// Attributes that stand without value when their value is their name.
pub(crate) fn is_boolean(attribute: &str) -> bool {
    one_of(
        attribute,
        &[
            "checked", "compact", "declare", "defer", "disabled", "ismap", "multiple", "nohref", "noresize",
            "noshade", "nowrap", "readonly", "selected",
        ],
    )
}

/// Attributes whose value is a URI: characters beyond ASCII are escaped in it.
pub(crate) fn is_uri(attribute: &str) -> bool {
    one_of(
        attribute,
        &[
            "action",
            "archive",
            "background",
            "cite",
            "classid",
            "codebase",
            "data",
            "href",
            "longdesc",
            "profile",
            "src",
            "usemap",
        ],
    )
}

fn one_of(name: &str, names: &[&str]) -> bool {
    let Some(first) = name.bytes().next().map(|byte| byte.to_ascii_lowercase()) else { return false };
    names.iter().any(|n| n.as_bytes()[0] == first && n.eq_ignore_ascii_case(name))
}

/// The longest name in the table.
const LONGEST: usize = 8;

fn find(table: &[(&str, Traits)], name: &str) -> Traits {
    let mut lower = [0; LONGEST];
    let Some(lower) = lower.get_mut(..name.len()) else { return Traits::default() };
    lower.copy_from_slice(name.as_bytes());
    lower.make_ascii_lowercase();
    let found = table.binary_search_by(|(known, _)| known.as_bytes().cmp(lower));
    found.map_or(Traits::default(), |at| table[at].1)
}

/// Appends text, with the no-break space as `&nbsp;`.
pub(crate) fn push_text(out: &mut Vec<u8>, text: &str) {
    let mut rest = text;
    while let Some(at) = memchr::memchr(0xC2, rest.as_bytes()).and_then(|_| rest.find('\u{A0}')) {
        push_escaped(out, &rest[..at]);
        out.extend_from_slice(b"&nbsp;");
        rest = &rest[at + 2..];
    }
    push_escaped(out, rest);
}

fn push_escaped(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let mut from = 0;
    for at in memchr::memchr3_iter(b'<', b'>', b'&', bytes) {
        out.extend_from_slice(&bytes[from..at]);
        out.extend_from_slice(match bytes[at] {
            b'<' => b"&lt;".as_slice(),
            b'>' => b"&gt;",
            _ => b"&amp;",
        });
        from = at + 1;
    }
    out.extend_from_slice(&bytes[from..]);
}

/// Appends an attribute value: `<` and `&{` stay.
pub(crate) fn push_value(out: &mut Vec<u8>, value: &str) {
    let bytes = value.as_bytes();
    for (i, &b) in bytes.iter().enumerate() {
        match b {
            b'"' => out.extend_from_slice(b"&quot;"),
            b'&' if bytes.get(i + 1) != Some(&b'{') => out.extend_from_slice(b"&amp;"),
            0xC2 if bytes.get(i + 1) == Some(&0xA0) => out.extend_from_slice(b"&nbsp;"),
            0xA0 if i > 0 && bytes[i - 1] == 0xC2 => {}
            _ => out.push(b),
        }
    }
}

/// A URI with what is not ASCII, and spaces' kin, escaped (HTML 4.0, B.2.1), composed characters as one.
pub(crate) fn escape_uri(value: &str) -> String {
    let mut out = String::with_capacity(value.len() + 16);
    for c in value.nfc() {
        if c.is_ascii() && !c.is_ascii_control() {
            out.push(c);
        } else {
            let mut buffer = [0; 4];
            for b in c.encode_utf8(&mut buffer).bytes() {
                out.push_str(&format!("%{b:02X}"));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert!(TRAITS.is_sorted_by_key(|(name, _)| *name));
        assert!(TRAITS.iter().all(|(name, _)| name.len() <= LONGEST));
        assert!(
            traits("BR").void && traits("br").inline && traits("Script").raw && traits("pre").keeps_space
        );
        assert!(traits("p") == Traits::default() && traits("blockquote") == Traits::default());
        assert!(traits("") == Traits::default());
    }
}
