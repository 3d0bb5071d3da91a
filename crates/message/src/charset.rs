//! Charsets of bodies: which encoding a label names, and text in it.

use encoding_rs::{Decoder, EncoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use std::io::{self, BufRead, Read};

/// The encoding that a `charset` parameter names, for reading. UTF-16 without a byte order mark is big endian, as its
/// definition (and Java) has it.
pub fn for_reading(label: &str) -> Option<&'static Encoding> {
    Charset::for_label(label).map(Charset::reads)
}

/// An encoding to write in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// Big endian, with a byte order mark.
    Utf16,
    /// US-ASCII or ISO-8859-1: the characters up to this one.
    Upto(char),
    /// Any other.
    Table(&'static Encoding),
}

/// What becomes of a character that an encoding does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmappable {
    /// A character reference: XML.
    Reference,
    /// `\uXXXX`: JSON.
    Escape,
    /// `?`.
    Question,
}

impl Charset {
    /// UTF-8.
    pub const UTF8: Charset = Charset::Table(UTF_8);

    /// The encoding with this label, if it is known.
    pub fn for_label(label: &str) -> Option<Charset> {
        // Nearly all of them.
        if label.eq_ignore_ascii_case("utf-8") {
            return Some(Charset::UTF8);
        }
        let label = label.trim().trim_matches(['"', '\'']);
        let is = |names: &[&str]| names.iter().any(|name| label.eq_ignore_ascii_case(name));
        // The web reads the first two as windows-1252 and the third as little endian; headers mean what they say.
        if is(&["us-ascii", "ascii", "iso646-us"]) {
            Some(Charset::Upto('\u{7F}'))
        } else if is(&["iso-8859-1", "iso8859-1", "iso_8859-1", "latin1", "l1"]) {
            Some(Charset::Upto('\u{FF}'))
        } else if is(&["utf-16", "utf16"]) {
            Some(Charset::Utf16)
        } else {
            Encoding::for_label_no_replacement(label.as_bytes()).map(Charset::Table)
        }
    }

    fn reads(self) -> &'static Encoding {
        match self {
            Charset::Utf16 => UTF_16BE,
            Charset::Upto(_) => WINDOWS_1252, // reads all that ASCII and Latin-1 have
            Charset::Table(encoding) => encoding,
        }
    }

    /// Whether text in UTF-8 is already in this encoding.
    pub fn is_utf8(self) -> bool {
        self == Charset::UTF8
    }

    /// The name of an encoding that does not have all characters, as [`xml::WriteOptions`] knows it.
    pub fn partial_name(self) -> Option<&'static str> {
        match self {
            Charset::Upto('\u{7F}') => Some("US-ASCII"),
            Charset::Upto(_) => Some("ISO-8859-1"),
            Charset::Table(encoding) if ![UTF_8, UTF_16BE, UTF_16LE].contains(&encoding) => {
                Some(encoding.name())
            }
            Charset::Utf16 | Charset::Table(_) => None,
        }
    }

    /// The first character of a text that this encoding does not have.
    pub fn first_unmappable(self, text: &str) -> Option<char> {
        match self {
            Charset::Upto(last) => text.chars().find(|character| *character > last),
            Charset::Table(encoding) if self.partial_name().is_some() => {
                if text.is_ascii() {
                    return None;
                }
                let mut encoder = encoding.new_encoder();
                let (mut buffer, mut rest) = ([0; 1024], text);
                loop {
                    let (result, read, _) =
                        encoder.encode_from_utf8_without_replacement(rest, &mut buffer, true);
                    rest = &rest[read..];
                    match result {
                        EncoderResult::InputEmpty => return None,
                        EncoderResult::OutputFull => {}
                        EncoderResult::Unmappable(character) => return Some(character),
                    }
                }
            }
            Charset::Utf16 | Charset::Table(_) => None,
        }
    }

    /// Text in this encoding.
    pub fn encode(self, text: &str, unmappable: Unmappable) -> Vec<u8> {
        match self {
            Charset::Table(encoding) if encoding == UTF_8 => text.as_bytes().to_vec(),
            Charset::Utf16 => utf16(std::iter::once(0xFEFF).chain(text.encode_utf16()), u16::to_be_bytes),
            Charset::Table(encoding) if encoding == UTF_16BE => utf16(text.encode_utf16(), u16::to_be_bytes),
            Charset::Table(encoding) if encoding == UTF_16LE => utf16(text.encode_utf16(), u16::to_le_bytes),
            Charset::Upto(last) => {
                let mut out = Vec::with_capacity(text.len());
                for character in text.chars() {
                    if character <= last {
                        out.push(u32::from(character) as u8);
                    } else {
                        replace(character, unmappable, &mut out);
                    }
                }
                out
            }
            Charset::Table(encoding) => table(encoding, text, unmappable),
        }
    }
}

/// Text of any charset, read as UTF-8 piece by piece. A byte order mark decides before the charset does, and is left out. What is not in the
/// charset becomes U+FFFD.
pub struct Decoding<R> {
    from: R,
    decoder: Decoder,
    /// Text that is not taken yet: the first `at` bytes are.
    text: String,
    at: usize,
    is_over: bool,
    has_replaced: bool,
}

impl<R: BufRead> Decoding<R> {
    /// Reads what `from` has in this charset.
    pub fn new(from: R, charset: Charset) -> Decoding<R> {
        Decoding {
            from,
            decoder: charset.reads().new_decoder(),
            text: String::with_capacity(1 << 13),
            at: 0,
            is_over: false,
            has_replaced: false,
        }
    }

    /// Whether something so far was not in the charset.
    pub fn has_replaced(&self) -> bool {
        self.has_replaced
    }
}

impl<R: BufRead> Read for Decoding<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.text.len() && !self.is_over {
            self.text.clear();
            self.at = 0;
            let bytes = self.from.fill_buf()?;
            self.is_over = bytes.is_empty();
            let (_, read, has_replaced) = self.decoder.decode_to_string(bytes, &mut self.text, self.is_over);
            self.from.consume(read);
            self.has_replaced |= has_replaced;
        }
        let mut rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let count = rest.read(into)?;
        self.at += count;
        Ok(count)
    }
}

fn utf16(units: impl Iterator<Item = u16>, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    units.flat_map(bytes).collect()
}

fn table(encoding: &'static Encoding, text: &str, unmappable: Unmappable) -> Vec<u8> {
    let mut encoder = encoding.new_encoder();
    let mut out = Vec::with_capacity(text.len() + 16);
    let mut rest = text;
    loop {
        out.reserve(rest.len().max(16));
        let (result, read) = encoder.encode_from_utf8_to_vec_without_replacement(rest, &mut out, true);
        rest = &rest[read..];
        match result {
            EncoderResult::InputEmpty => return out,
            EncoderResult::OutputFull => {}
            EncoderResult::Unmappable(character) => replace(character, unmappable, &mut out),
        }
    }
}

/// What stands for a character is ASCII, which all of these encodings have.
fn replace(character: char, unmappable: Unmappable, out: &mut Vec<u8>) {
    match unmappable {
        Unmappable::Reference => out.extend_from_slice(format!("&#{};", u32::from(character)).as_bytes()),
        Unmappable::Escape => {
            for unit in character.encode_utf16(&mut [0; 2]) {
                out.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
            }
        }
        Unmappable::Question => out.push(b'?'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_mean_what_headers_mean() {
        for (label, reads) in [
            ("UTF-8", Some("UTF-8")),
            ("iso-8859-1", Some("windows-1252")),
            ("\"UTF-16\"", Some("UTF-16BE")),
            ("utf-16le", Some("UTF-16LE")),
            ("shift_jis", Some("Shift_JIS")),
            ("nonsense", None),
            ("", None),
        ] {
            assert_eq!(for_reading(label).map(Encoding::name), reads, "{label}");
        }
    }

    #[test]
    fn text_is_read_in_any_charset_in_pieces_of_any_size() {
        let read = |bytes: &[u8], label: &str, size: usize| {
            let from = io::BufReader::with_capacity(size, bytes);
            let mut decoding = Decoding::new(from, Charset::for_label(label).unwrap());
            let mut text = String::new();
            decoding.read_to_string(&mut text).unwrap();
            (text, decoding.has_replaced())
        };
        let text = "aé€😀".repeat(3000);
        for label in ["utf-8", "utf-16", "utf-16le", "gb18030"] {
            let bytes = Charset::for_label(label).unwrap().encode(&text, Unmappable::Question);
            for size in [1, 2, 3, 8192] {
                assert_eq!(read(&bytes, label, size), (text.clone(), false), "{label} {size}");
            }
        }
        for (bytes, label, wanted, replaced) in [
            (&b"a\xe9\x80"[..], "iso-8859-1", "aé€", false),
            (b"\xef\xbb\xbfa", "windows-1252", "a", false),
            (b"\xff\xfea\0", "utf-8", "a", false),
            (b"\xfe\xff\0a", "utf-8", "a", false),
            (b"a\xe9b", "utf-8", "a\u{FFFD}b", true),
            (b"a\xc3", "utf-8", "a\u{FFFD}", true),
            (b"", "utf-16", "", false),
        ] {
            assert_eq!(read(bytes, label, 1), (wanted.to_owned(), replaced), "{label} {bytes:?}");
        }
    }

    #[test]
    fn text_is_written_in_any_charset_and_nothing_is_lost() {
        let write = |label: &str, how| Charset::for_label(label).unwrap().encode("aé€😀", how);
        assert_eq!(write("utf-8", Unmappable::Question), "aé€😀".as_bytes());
        assert_eq!(write("iso-8859-1", Unmappable::Reference), b"a\xe9&#8364;&#128512;");
        assert_eq!(write("us-ascii", Unmappable::Escape), b"a\\u00e9\\u20ac\\ud83d\\ude00");
        assert_eq!(write("windows-1252", Unmappable::Question), b"a\xe9\x80?");
        assert_eq!(&write("utf-16", Unmappable::Question)[..6], b"\xfe\xff\0a\0\xe9");
        assert_eq!(&write("utf-16le", Unmappable::Question)[..4], b"a\0\xe9\0");
        for (label, lacks) in [
            ("utf-8", None),
            ("utf-16", None),
            ("utf-16le", None),
            ("us-ascii", Some('é')),
            ("iso-8859-1", Some('€')),
            ("windows-1252", Some('😀')),
            ("gb18030", None),
        ] {
            let charset = Charset::for_label(label).unwrap();
            assert_eq!(charset.first_unmappable("aé€😀"), lacks, "{label}");
            assert_eq!(charset.first_unmappable("plain"), None, "{label}");
            let long = "é".repeat(5000) + "€😀";
            assert_eq!(charset.first_unmappable(&long), lacks, "{label}");
        }
        let long = "é".repeat(100_000);
        let out = Charset::for_label("iso-8859-2").unwrap().encode(&long, Unmappable::Question);
        assert_eq!(out.len(), 100_000);
    }
}
