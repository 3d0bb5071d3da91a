//! Output encodings: which characters they have, and the bytes of text in them.

use super::WriteError;
use crate::encoding::Charset;
use encoding_rs::{EncoderResult, Encoding, UTF_16BE, UTF_16LE};

/// The characters of an output encoding.
pub(crate) enum Repertoire {
    /// A Unicode encoding: it has all characters.
    All,
    /// All characters up to this one.
    Upto(char),
    Table(Box<encoding_rs::Encoder>),
}

/// An output encoding.
#[derive(Copy, Clone)]
pub(crate) enum Output {
    Utf8,
    /// UTF-16 with a byte order mark; little endian or big.
    Utf16 {
        little: bool,
    },
    Upto(char),
    Table(&'static Encoding),
}

impl Output {
    /// The encoding with this label; UTF-8 for an unknown one.
    pub fn for_label(label: Option<&str>) -> Output {
        let Some(label) = label else { return Output::Utf8 };
        match Charset::for_label(label) {
            Some(Charset::Ascii) => Output::Upto('\u{7F}'),
            Some(Charset::Latin1) => Output::Upto('\u{FF}'),
            Some(Charset::Other(e)) if e == UTF_16LE => Output::Utf16 { little: true },
            Some(Charset::Other(e)) if e == UTF_16BE => Output::Utf16 { little: false },
            Some(Charset::Other(e)) => Output::Table(e),
            Some(Charset::Utf8) | None => Output::Utf8,
        }
    }

    pub fn repertoire(self) -> Repertoire {
        match self {
            Output::Utf8 | Output::Utf16 { .. } => Repertoire::All,
            Output::Upto(c) => Repertoire::Upto(c),
            Output::Table(e) => Repertoire::Table(Box::new(e.new_encoder())),
        }
    }

    /// Converts `out[from..]` from UTF-8 to this encoding. Errors: a character that it does not have, where none can be referred to
    /// (in text and attributes it was before); the output ends there.
    pub fn encode(self, out: &mut Vec<u8>, from: usize) -> Result<(), WriteError> {
        if matches!(self, Output::Utf8) {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&out[from..]).into_owned();
        out.truncate(from);
        match self {
            Output::Utf8 => {}
            Output::Utf16 { little } => {
                for unit in std::iter::once(0xFEFF).chain(text.encode_utf16()) {
                    out.extend_from_slice(&if little { unit.to_le_bytes() } else { unit.to_be_bytes() });
                }
            }
            Output::Upto(last) => {
                for character in text.chars() {
                    if character > last {
                        let encoding = if last == '\u{7F}' { "US-ASCII" } else { "ISO-8859-1" };
                        return Err(WriteError::Character { character, encoding });
                    }
                    out.push(u32::from(character) as u8);
                }
            }
            Output::Table(encoding) => encode_by_table(encoding, &text, out)?,
        }
        Ok(())
    }
}

fn encode_by_table(encoding: &'static Encoding, text: &str, out: &mut Vec<u8>) -> Result<(), WriteError> {
    let mut encoder = encoding.new_encoder();
    let mut rest = text;
    loop {
        out.reserve(rest.len().max(16));
        let (result, read) = encoder.encode_from_utf8_to_vec_without_replacement(rest, out, true);
        rest = &rest[read..];
        match result {
            EncoderResult::InputEmpty => return Ok(()),
            EncoderResult::OutputFull => {}
            EncoderResult::Unmappable(character) => {
                return Err(WriteError::Character { character, encoding: encoding.name() });
            }
        }
    }
}

/// Appends a text with something else for the characters that an encoding lacks.
pub(crate) fn replace_lacking(
    text: &str,
    encoding: Option<&str>,
    replace: &dyn Fn(char, &mut String),
    out: &mut String,
) {
    let mut repertoire = Output::for_label(encoding).repertoire();
    if repertoire.is_all() {
        return out.push_str(text);
    }
    for c in text.chars() {
        if c.is_ascii() || repertoire.has(c) { out.push(c) } else { replace(c, out) }
    }
}

impl Repertoire {
    #[inline]
    pub fn is_all(&self) -> bool {
        matches!(self, Repertoire::All)
    }

    pub fn has(&mut self, c: char) -> bool {
        match self {
            Repertoire::All => true,
            Repertoire::Upto(last) => c <= *last,
            Repertoire::Table(encoder) => {
                let mut bytes = [0; 16];
                let (result, _, _) = encoder.encode_from_utf8_without_replacement(
                    c.encode_utf8(&mut [0; 4]),
                    &mut bytes,
                    false,
                );
                !matches!(result, EncoderResult::Unmappable(_))
            }
        }
    }
}
