//! What is special about HTML 4 (XSLT 1.0, 16.2) and XHTML (XSLT 2.0 and XQuery 1.0 Serialization, 6).

use unicode_normalization::UnicodeNormalization;

/// The namespace of XHTML.
pub(crate) const XHTML: &str = "http://www.w3.org/1999/xhtml";

/// Elements without content and end tag.
pub(crate) fn is_void(name: &str) -> bool {
    one_of(
        name,
        &[
            "area", "base", "basefont", "br", "col", "embed", "frame", "hr", "img", "input", "isindex",
            "link", "meta", "param", "source", "track", "wbr",
        ],
    )
}

/// Elements whose text is not escaped.
pub(crate) fn is_raw(name: &str) -> bool {
    one_of(name, &["script", "style"])
}

/// Elements around and in which added white space would show.
pub(crate) fn is_inline(name: &str) -> bool {
    one_of(
        name,
        &[
            "a", "abbr", "acronym", "applet", "b", "basefont", "bdo", "big", "br", "button", "cite", "code",
            "del", "dfn", "em", "embed", "font", "i", "iframe", "img", "input", "ins", "kbd", "label", "map",
            "object", "q", "s", "samp", "select", "small", "span", "strike", "strong", "sub", "sup",
            "textarea", "tt", "u", "var",
        ],
    )
}

/// Elements in which white space is kept.
pub(crate) fn keeps_space(name: &str) -> bool {
    one_of(name, &["pre", "script", "style", "textarea"])
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

/// Appends text, with the no-break space as `&nbsp;`.
pub(crate) fn push_text(out: &mut Vec<u8>, text: &str) {
    let mut parts = text.split('\u{A0}');
    if let Some(first) = parts.next() {
        push_escaped(out, first);
    }
    for part in parts {
        out.extend_from_slice(b"&nbsp;");
        push_escaped(out, part);
    }
}

fn push_escaped(out: &mut Vec<u8>, text: &str) {
    for part in text.split_inclusive(['<', '>', '&']) {
        let (run, last) = match part.as_bytes().last() {
            Some(b'<') => (&part[..part.len() - 1], "&lt;"),
            Some(b'>') => (&part[..part.len() - 1], "&gt;"),
            Some(b'&') => (&part[..part.len() - 1], "&amp;"),
            _ => (part, ""),
        };
        out.extend_from_slice(run.as_bytes());
        out.extend_from_slice(last.as_bytes());
    }
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
