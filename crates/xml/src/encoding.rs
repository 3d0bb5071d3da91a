//! From bytes in any encoding to UTF-8 (XML 1.0, 4.3.3 and appendix F).

use crate::error::{ErrorKind, Position, XmlError};
use bytes::Bytes;
use encoding_rs::{DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// Text in UTF-8, without byte order mark, and its original encoding.
#[derive(Clone, Debug)]
pub struct Decoded {
    /// The text. UTF-8 input is *not* checked here: the parser does that.
    pub text: Bytes,
    /// The name of the encoding the bytes were in.
    pub encoding: &'static str,
}

/// How to read bytes.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Charset {
    Utf8,
    Ascii,
    Latin1,
    Other(&'static Encoding),
}

impl Charset {
    pub(crate) fn for_label(label: &str) -> Option<Charset> {
        let label = label.trim();
        // The web reads these three as windows-1252; XML uses the named encodings.
        let is = |names: &[&str]| names.iter().any(|n| label.eq_ignore_ascii_case(n));
        if is(&["us-ascii", "ascii", "ansi_x3.4-1968", "iso646-us"]) {
            return Some(Charset::Ascii);
        }
        if is(&["iso-8859-1", "iso8859-1", "iso_8859-1", "latin1", "l1"]) {
            return Some(Charset::Latin1);
        }
        if is(&["utf-16", "iso-10646-ucs-2", "ucs-2", "utf16"]) {
            return Some(Charset::Other(UTF_16BE));
        }
        if is(&["utf8", "utf-8"]) {
            return Some(Charset::Utf8);
        }
        let e = Encoding::for_label_no_replacement(label.as_bytes())?;
        Some(if e == UTF_8 { Charset::Utf8 } else { Charset::Other(e) })
    }

    fn is_utf16(self) -> bool {
        matches!(self, Charset::Other(e) if e == UTF_16BE || e == UTF_16LE)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Charset::Utf8 => "UTF-8",
            Charset::Ascii => "US-ASCII",
            Charset::Latin1 => "ISO-8859-1",
            Charset::Other(e) => e.name(),
        }
    }
}

/// Text in UTF-8 from `bytes`: a byte order mark decides, then `hint` (the charset the transport names), then the
/// encoding declaration, then UTF-8.
///
/// # Errors
/// Unknown encodings, bytes that are not text in the encoding, a declaration that contradicts the bytes.
pub fn decode(bytes: impl Into<Bytes>, hint: Option<&str>) -> Result<Decoded, XmlError> {
    let bytes = bytes.into();
    let (charset, skip) = detect(&bytes, hint)?;
    let text = match charset {
        Charset::Utf8 => bytes.slice(skip..),
        _ => {
            let mut decoder = Decoder::new(charset);
            let mut out = String::with_capacity(bytes.len() - skip);
            decoder
                .decode(&bytes[skip..], true, &mut out)
                .map_err(|at| error(format!("the bytes are not {}", charset.name()), at + skip))?;
            Bytes::from(out)
        }
    };
    Ok(Decoded { text, encoding: charset.name() })
}

fn error(message: String, offset: usize) -> XmlError {
    XmlError { kind: ErrorKind::Encoding, message, position: Position { line: 1, column: 1, offset } }
}

/// The encoding of bytes that start like `bytes`, and the length of the byte order mark.
pub(crate) fn detect(bytes: &[u8], hint: Option<&str>) -> Result<(Charset, usize), XmlError> {
    let unknown = |label: &str| error(format!("the encoding `{label}` is not known"), 0);
    // The fast path: most documents start with `<` and have no declaration.
    if bytes.first() == Some(&b'<') && bytes.get(1).is_some_and(|&b| b != b'?' && b != 0) && hint.is_none() {
        return Ok((Charset::Utf8, 0));
    }
    let marked = match bytes {
        [0xEF, 0xBB, 0xBF, ..] => Some((Charset::Utf8, 3)),
        [0xFF, 0xFE, 0, 0, ..] | [0, 0, 0xFE, 0xFF, ..] | [0, 0, 0, b'<', ..] | [b'<', 0, 0, 0, ..] => {
            return Err(unknown("UTF-32"));
        }
        [0xFE, 0xFF, ..] => Some((Charset::Other(UTF_16BE), 2)),
        [0xFF, 0xFE, ..] => Some((Charset::Other(UTF_16LE), 2)),
        [0x4C, 0x6F, 0xA7, 0x94, ..] => return Err(unknown("EBCDIC")),
        _ => None,
    };
    let wide = match bytes {
        [0, b'<', 0, _, ..] => Some(Charset::Other(UTF_16BE)),
        [b'<', 0, _, 0, ..] => Some(Charset::Other(UTF_16LE)),
        _ => None,
    };
    let declared = declared(bytes);
    if let Some((charset, skip)) = marked {
        // The declaration of a document with a byte order mark must agree with it.
        let named = match charset {
            Charset::Utf8 => self::declared(&bytes[skip..]),
            Charset::Other(e) => wide_declaration(&bytes[skip..], e),
            _ => None,
        };
        if let Some(label) = named {
            let named = Charset::for_label(&label).ok_or_else(|| unknown(&label))?;
            let same = named == charset || (named.is_utf16() && charset.is_utf16());
            if !same && hint.is_none() {
                return Err(error(
                    format!("the document declares `{label}`, its byte order mark says {}", charset.name()),
                    0,
                ));
            }
        }
        return Ok((charset, skip));
    }
    if let Some(label) = hint {
        let charset = Charset::for_label(label).ok_or_else(|| unknown(label))?;
        if charset.is_utf16() {
            return Ok((wide.unwrap_or(charset), 0));
        }
        return Ok((charset, 0));
    }
    if let Some(charset) = wide {
        if let Charset::Other(e) = charset
            && let Some(label) = wide_declaration(bytes, e)
        {
            let named = Charset::for_label(&label).ok_or_else(|| unknown(&label))?;
            if !named.is_utf16() {
                return Err(error(
                    format!("the document declares `{label}`, its bytes are {}", charset.name()),
                    0,
                ));
            }
        }
        return Ok((charset, 0));
    }
    let Some(label) = declared else { return Ok((Charset::Utf8, 0)) };
    let charset = Charset::for_label(&label).ok_or_else(|| unknown(&label))?;
    if charset.is_utf16() {
        return Err(error(format!("the document declares `{label}`, its bytes are not"), 0));
    }
    Ok((charset, 0))
}

/// The label in the encoding declaration of text that agrees with ASCII.
fn declared(bytes: &[u8]) -> Option<String> {
    // (`<?xml-stylesheet` begins a processing instruction.)
    if !bytes.strip_prefix(b"<?xml")?.first().is_some_and(|&byte| crate::is_space(byte)) {
        return None;
    }
    let head = &bytes[..bytes.len().min(1024)];
    let head = &head[..memchr::memmem::find(head, b"?>")?];
    let at = memchr::memmem::find(head, b"encoding")? + 8;
    let rest = head[at..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (&quote, rest) = rest.split_first()?;
    let len = rest.iter().position(|&b| b == quote)?;
    String::from_utf8(rest[..len].to_vec()).ok()
}

fn wide_declaration(bytes: &[u8], encoding: &'static Encoding) -> Option<String> {
    let head = &bytes[..bytes.len().min(2048) & !1];
    let (text, _) = encoding.decode_without_bom_handling(head);
    declared(text.as_bytes())
}

/// Whether `bytes`, the start of a document, suffice for [`detect`].
pub(crate) fn can_detect(bytes: &[u8]) -> bool {
    match bytes {
        [] | [_] | [_, _] | [_, _, _] => false,
        _ if bytes.starts_with(b"<?xml") || b"<?xml".starts_with(bytes) => {
            bytes.len() >= 1024 || memchr::memmem::find(bytes, b"?>").is_some()
        }
        [b'<', 0, ..] | [0, b'<', ..] | [0xFE, 0xFF, ..] | [0xFF, 0xFE, ..] => {
            bytes.len() >= 2048
                || memchr::memmem::find(bytes, b"?\0>").is_some()
                || (bytes.len() > 8 && !wide_xml(bytes))
        }
        [0xEF, 0xBB, 0xBF, rest @ ..] => {
            let decl = rest.starts_with(b"<?xml") || b"<?xml".starts_with(rest);
            !decl || rest.len() >= 1024 || memchr::memmem::find(rest, b"?>").is_some()
        }
        _ => true,
    }
}

fn wide_xml(bytes: &[u8]) -> bool {
    memchr::memmem::find(&bytes[..bytes.len().min(8)], b"<\0?").is_some()
}

/// Turns bytes that come in pieces into text.
pub(crate) enum Decoder {
    Ascii,
    Latin1,
    Other(Box<encoding_rs::Decoder>),
}

impl Decoder {
    pub fn new(charset: Charset) -> Decoder {
        match charset {
            Charset::Ascii => Decoder::Ascii,
            Charset::Latin1 => Decoder::Latin1,
            Charset::Utf8 => Decoder::Other(Box::new(UTF_8.new_decoder_without_bom_handling())),
            Charset::Other(e) => Decoder::Other(Box::new(e.new_decoder_without_bom_handling())),
        }
    }

    /// Appends the text of `bytes`; an error is the offset in `bytes` of an invalid sequence.
    pub fn decode(&mut self, bytes: &[u8], last: bool, out: &mut String) -> Result<(), usize> {
        match self {
            Decoder::Ascii => {
                if let Some(i) = bytes.iter().position(|&b| b >= 0x80) {
                    return Err(i);
                }
                out.push_str(crate::lex::text(bytes));
                Ok(())
            }
            Decoder::Latin1 => {
                out.push_str(&encoding_rs::mem::decode_latin1(bytes));
                Ok(())
            }
            Decoder::Other(decoder) => {
                let mut done = 0;
                loop {
                    let room = decoder.max_utf8_buffer_length_without_replacement(bytes.len() - done);
                    out.reserve(room.unwrap_or(4096).max(64));
                    let (result, read) =
                        decoder.decode_to_string_without_replacement(&bytes[done..], out, last);
                    done += read;
                    match result {
                        DecoderResult::InputEmpty => return Ok(()),
                        DecoderResult::OutputFull => {}
                        DecoderResult::Malformed(_, _) => return Err(done.saturating_sub(1)),
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str, big: bool, mark: bool) -> Vec<u8> {
        let mark = if mark { "\u{FEFF}" } else { "" };
        let units = mark.encode_utf16().chain(text.encode_utf16());
        units.flat_map(|u| if big { u.to_be_bytes() } else { u.to_le_bytes() }).collect()
    }

    #[test]
    fn encodings() {
        let decl = |e: &str, rest: &[u8]| {
            [format!("<?xml version='1.0' encoding='{e}'?>").as_bytes(), rest].concat()
        };
        for (bytes, hint, want) in [
            (b"<a>\xC3\xA9</a>".to_vec(), None, Some("<a>\u{E9}</a>")),
            (b"\xEF\xBB\xBF<a/>".to_vec(), None, Some("<a/>")),
            // A second byte order mark is a character.
            (b"\xEF\xBB\xBF\xEF\xBB\xBF<a/>".to_vec(), None, Some("\u{FEFF}<a/>")),
            (utf16("\u{FEFF}<a/>", true, true), None, Some("\u{FEFF}<a/>")),
            (decl("ISO-8859-1", b"<a>\xE9\x80</a>"), None, Some("<a>\u{E9}\u{80}</a>")),
            (decl("windows-1252", b"<a>\x80</a>"), None, Some("<a>\u{20AC}</a>")),
            (decl("us-ascii", b"<a>\xE9</a>"), None, None),
            (decl("nonsense", b"<a/>"), None, None),
            (decl("utf-16", b"<a/>"), None, None),
            (decl("nonsense", b"<a/>"), Some("utf-8"), Some("<a/>")),
            (decl("shift_jis", b"<a>\x82\xA0</a>"), None, Some("<a>\u{3042}</a>")),
            (decl("shift_jis", b"<a>\x82</a>"), None, None),
            (utf16("<a>\u{E9}</a>", true, true), None, Some("<a>\u{E9}</a>")),
            (utf16("<a>\u{E9}</a>", false, true), None, Some("<a>\u{E9}</a>")),
            (utf16("<a>\u{E9}</a>", false, false), None, Some("<a>\u{E9}</a>")),
            (utf16("<a/>", true, false), Some("utf-16"), Some("<a/>")),
            (utf16("<?xml version='1.0' encoding='utf-8'?><a/>", true, true), None, None),
            (b"\0\0\0<".to_vec(), None, None),
            ("<?xml-stylesheet encoding='ISO-8859-1'?><a>\u{E9}</a>".into(), None, Some("<a>\u{E9}</a>")),
        ] {
            let got = decode(bytes.clone(), hint).ok().map(|d| String::from_utf8(d.text.to_vec()).unwrap());
            match want {
                None => assert_eq!(got, None, "{bytes:?}"),
                Some(want) => assert!(got.is_some_and(|g| g.ends_with(want)), "{bytes:?}"),
            }
        }
    }
}
