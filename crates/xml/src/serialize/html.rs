//! The special rules of HTML 4 (XSLT 1.0, 16.2) and XHTML (XSLT 2.0 and XQuery 1.0 Serialization, 6).

use crate::scan::{text_escape, value_escape};
use unicode_normalization::UnicodeNormalization;

/// The namespace of XHTML.
pub(crate) const XHTML: &str = "http://www.w3.org/1999/xhtml";

/// The traits of an HTML element.
#[derive(Copy, Clone, Default, PartialEq)]
pub(crate) struct Traits {
    /// It is void: no content and no end tag.
    pub void: bool,
    /// Its text is not escaped.
    pub raw: bool,
    /// It is inline: added white space around and in it would show.
    pub inline: bool,
    /// White space is kept in it.
    pub keeps_space: bool,
}

/// The traits of the elements that have any, by name.
const TRAITS: [(&str, Traits); 72] = {
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
        ("audio", INLINE),
        ("b", INLINE),
        ("base", VOID),
        ("basefont", BOTH),
        ("bdi", INLINE),
        ("bdo", INLINE),
        ("big", INLINE),
        ("br", BOTH),
        ("button", INLINE),
        ("canvas", INLINE),
        ("cite", INLINE),
        ("code", INLINE),
        ("col", VOID),
        ("data", INLINE),
        ("datalist", INLINE),
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
        ("keygen", INLINE),
        ("label", INLINE),
        ("link", VOID),
        ("map", INLINE),
        ("mark", INLINE),
        ("math", INLINE),
        ("meta", VOID),
        ("meter", INLINE),
        ("noscript", INLINE),
        ("object", INLINE),
        ("output", INLINE),
        ("param", VOID),
        ("pre", Traits { keeps_space: true, ..NONE }),
        ("progress", INLINE),
        ("q", INLINE),
        ("ruby", INLINE),
        ("s", INLINE),
        ("samp", INLINE),
        ("script", Traits { inline: true, ..RAW }),
        ("select", INLINE),
        ("small", INLINE),
        ("source", VOID),
        ("span", INLINE),
        ("strike", INLINE),
        ("strong", INLINE),
        ("style", RAW),
        ("sub", INLINE),
        ("sup", INLINE),
        ("svg", INLINE),
        ("template", INLINE),
        ("textarea", Traits { keeps_space: true, ..INLINE }),
        ("time", INLINE),
        ("track", VOID),
        ("tt", INLINE),
        ("u", INLINE),
        ("var", INLINE),
        ("video", INLINE),
        ("wbr", BOTH),
    ]
};

/// The traits of the element with this name, in any case.
pub(crate) fn traits(name: &str) -> Traits {
    if name.len() > LONGEST {
        return Traits::default();
    }
    PACKED.binary_search(&packed(name.as_bytes())).map_or(Traits::default(), |at| TRAITS[at].1)
}

/// Whether an attribute of an element is boolean, and stands without a value.
pub(crate) fn is_boolean(element: &str, attribute: &str) -> bool {
    one_of(
        attribute,
        &[
            "checked", "compact", "declare", "defer", "disabled", "hidden", "ismap", "multiple", "nohref",
            "noresize", "noshade", "nowrap", "readonly", "selected",
        ],
    ) || is_of(
        element,
        attribute,
        &[
            ("async", &["script"]),
            ("autofocus", &["button", "input", "keygen", "select", "textarea"]),
            ("autoplay", &["audio", "video"]),
            ("controls", &["audio", "video"]),
            ("default", &["track"]),
            ("formnovalidate", &["button", "input"]),
            ("loop", &["audio", "video"]),
            ("muted", &["audio", "video"]),
            ("novalidate", &["form"]),
            ("open", &["details", "dialog"]),
            ("required", &["input", "select", "textarea"]),
            ("reversed", &["ol"]),
            ("scoped", &["style"]),
            ("seamless", &["iframe"]),
        ],
    )
}

/// Whether the value of an attribute of an element is a URI: characters beyond ASCII are escaped in it (XSLT and XQuery Serialization
/// 3.1, appendix B).
pub(crate) fn is_uri(element: &str, attribute: &str) -> bool {
    is_of(
        element,
        attribute,
        &[
            ("action", &["form"]),
            ("archive", &["object"]),
            ("background", &["body"]),
            ("cite", &["blockquote", "del", "ins", "q"]),
            ("classid", &["object"]),
            ("codebase", &["applet", "object"]),
            ("data", &["object"]),
            ("datasrc", &["button", "div", "input", "object", "select", "span", "table", "textarea"]),
            ("for", &["script"]),
            ("formaction", &["button", "input"]),
            ("href", &["a", "area", "base", "link"]),
            ("icon", &["command"]),
            ("longdesc", &["frame", "iframe", "img"]),
            ("manifest", &["html"]),
            ("name", &["a"]),
            ("poster", &["video"]),
            ("profile", &["head"]),
            (
                "src",
                &["audio", "embed", "frame", "iframe", "img", "input", "script", "source", "track", "video"],
            ),
            ("usemap", &["img", "input", "object"]),
        ],
    )
}

/// Whether one of the rows is of that attribute, and names that element.
fn is_of(element: &str, attribute: &str, rows: &[(&str, &[&str])]) -> bool {
    rows.iter().any(|(name, elements)| name.eq_ignore_ascii_case(attribute) && one_of(element, elements))
}

fn one_of(name: &str, names: &[&str]) -> bool {
    let Some(first) = name.bytes().next().map(|byte| byte.to_ascii_lowercase()) else { return false };
    names.iter().any(|n| n.as_bytes()[0] == first && n.eq_ignore_ascii_case(name))
}

/// The longest name in the table.
const LONGEST: usize = 8;

/// A name of up to eight bytes as a number, in lower case; numbers are ordered as the names are.
const fn packed(name: &[u8]) -> u64 {
    if name.is_empty() {
        return 0;
    }
    let (mut number, mut at) = (0, 0);
    while at < name.len() {
        number = number << 8 | name[at].to_ascii_lowercase() as u64;
        at += 1;
    }
    number << (8 * (LONGEST - name.len()))
}

/// The names of [`TRAITS`].
static PACKED: [u64; TRAITS.len()] = {
    let mut packed_names = [0; TRAITS.len()];
    let mut at = 0;
    while at < TRAITS.len() {
        packed_names[at] = packed(TRAITS[at].0.as_bytes());
        at += 1;
    }
    packed_names
};

/// Appends text, with the no-break space as `&nbsp;`.
pub(crate) fn push_text(out: &mut Vec<u8>, text: &str) {
    push(out, text, text_escape::<false>, |byte, _| match byte {
        b'<' => Some(b"&lt;"),
        b'>' => Some(b"&gt;"),
        b'&' => Some(b"&amp;"),
        // A parser would read it as a line feed.
        b'\r' => Some(b"&#13;"),
        _ => None,
    });
}

/// Appends an attribute value: `<` and `&{` stay.
pub(crate) fn push_value(out: &mut Vec<u8>, value: &str) {
    push(out, value, value_escape::<false>, |byte, next| match byte {
        b'"' => Some(b"&quot;"),
        b'&' if next != Some(&b'{') => Some(b"&amp;"),
        b'\r' => Some(b"&#13;"),
        _ => None,
    });
}

/// Appends runs of bytes unchanged, and a replacement for each byte that `find` stops at: `None` for the byte itself.
#[inline(always)]
fn push(
    out: &mut Vec<u8>,
    text: &str,
    find: impl Fn(&[u8], usize) -> usize,
    escape: impl Fn(u8, Option<&u8>) -> Option<&'static [u8]>,
) {
    let bytes = text.as_bytes();
    let mut from = 0;
    loop {
        let to = find(bytes, from);
        let run = &bytes[from..to];
        if run.is_ascii() {
            out.extend_from_slice(run)
        } else {
            push_run(out, run)
        }
        let Some(byte) = bytes.get(to) else { return };
        from = to + 1;
        out.extend_from_slice(escape(*byte, bytes.get(from)).unwrap_or(&bytes[to..from]));
    }
}

/// Bytes of characters that need no escaping, no-break spaces apart.
#[cold]
fn push_run(out: &mut Vec<u8>, mut run: &[u8]) {
    // (In UTF-8 the byte C2 only begins characters.)
    while let Some(at) = memchr::memchr(0xC2, run) {
        let is_it = run.get(at + 1) == Some(&0xA0);
        out.extend_from_slice(&run[..at]);
        out.extend_from_slice(if is_it { b"&nbsp;" } else { &run[at..run.len().min(at + 2)] });
        run = run.get(at + 2..).unwrap_or_default();
    }
    out.extend_from_slice(run);
}

/// A URI with spaces and characters beyond ASCII escaped (HTML 4.0, B.2.1), after normalization to NFC.
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
        assert!(PACKED.is_sorted());
        for (name, expected) in TRAITS {
            assert!(traits(name) == expected && traits(&name.to_ascii_uppercase()) == expected, "{name}");
            assert!(traits(&format!("{name}x")) == Traits::default(), "{name}");
        }
    }

    #[test]
    fn attributes() {
        for (element, attribute, boolean, uri) in [
            ("INPUT", "Checked", true, false),
            ("video", "autoplay", true, false),
            ("p", "autoplay", false, false),
            ("details", "open", true, false),
            ("a", "name", false, true),
            ("input", "name", false, false),
            ("option", "data", false, false),
            ("Object", "DATA", false, true),
            ("video", "poster", false, true),
            ("li", "src", false, false),
            ("", "", false, false),
        ] {
            let found = (is_boolean(element, attribute), is_uri(element, attribute));
            assert_eq!(found, (boolean, uri), "{element} {attribute}");
        }
    }

    #[test]
    fn escapes() {
        for (text, as_text, as_value) in [
            ("", "", ""),
            ("a<b>&\"c\r\n\t\u{1}", "a&lt;b&gt;&amp;\"c&#13;\n\t\u{1}", "a<b>&amp;&quot;c&#13;\n\t\u{1}"),
            ("&{x}&", "&amp;{x}&amp;", "&{x}&amp;"),
            ("\u{A0}a\u{A9}\u{A0}", "&nbsp;a\u{A9}&nbsp;", "&nbsp;a\u{A9}&nbsp;"),
            (
                "\u{FEFF}\u{FFFE}\u{C2A0}x, quite long text \u{A0}",
                "\u{FEFF}\u{FFFE}\u{C2A0}x, quite long text &nbsp;",
                "\u{FEFF}\u{FFFE}\u{C2A0}x, quite long text &nbsp;",
            ),
        ] {
            let (mut t, mut v) = (Vec::new(), Vec::new());
            push_text(&mut t, text);
            push_value(&mut v, text);
            assert_eq!(
                (String::from_utf8(t).unwrap(), String::from_utf8(v).unwrap()),
                (as_text.to_owned(), as_value.to_owned())
            );
        }
    }
}
