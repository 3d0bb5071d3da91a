//! Content codings: bodies that are compressed.

use crate::memory::{Held, Shortage};
use crate::payload::PayloadError;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use std::io::{Read, Write};

/// Base64 as Java reads it: padded or not, and whatever the last bits are.
pub const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A content coding (`Content-Encoding`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// None.
    Identity,
    /// `gzip` or `x-gzip`.
    Gzip,
    /// `deflate`: zlib, or the bare deflate stream that some peers send under this name.
    Deflate,
    /// `br`.
    Brotli,
    /// One that is not understood: the bytes can be relayed but not read.
    Unknown,
}

impl Coding {
    /// The coding that a header value names.
    pub fn of(value: Option<&str>) -> Coding {
        let Some(name) = value else { return Coding::Identity };
        let name = name.trim();
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if name.is_empty() || is("identity") {
            Coding::Identity
        } else if is("gzip") || is("x-gzip") {
            Coding::Gzip
        } else if is("deflate") {
            Coding::Deflate
        } else if is("br") {
            Coding::Brotli
        } else {
            Coding::Unknown
        }
    }

    /// The bytes that were coded, at most `limit` of them: what a few bytes can grow to has no other bound.
    ///
    /// # Errors
    /// The bytes are not in this coding, or are more than `limit` without it.
    pub fn decode(self, bytes: &Bytes, limit: usize) -> Result<Bytes, PayloadError> {
        let most = (limit as u64).saturating_add(1);
        let read = match self {
            Coding::Identity => return Ok(bytes.clone()),
            Coding::Gzip => unpack(flate2::read::MultiGzDecoder::new(&bytes[..]).take(most)),
            Coding::Deflate if is_zlib(bytes) => {
                unpack(flate2::read::ZlibDecoder::new(&bytes[..]).take(most))
            }
            Coding::Deflate => unpack(flate2::read::DeflateDecoder::new(&bytes[..]).take(most)),
            Coding::Brotli if has_large_window(bytes) => {
                let message = "the body is not what its Content-Encoding says: its window is too large";
                return Err(PayloadError::Malformed { message: message.to_owned() });
            }
            Coding::Brotli => unpack(brotli::Decompressor::new(&bytes[..], 4096).take(most)),
            Coding::Unknown => {
                let message = "the body has a Content-Encoding that cannot be read here";
                return Err(PayloadError::Malformed { message: message.to_owned() });
            }
        };
        let out = read.map_err(|error| PayloadError::Malformed {
            message: format!("the body is not what its Content-Encoding says: {error}"),
        })??;
        if out.bytes.len() > limit {
            let message = format!("the decompressed body is larger than the {limit} bytes a flow may hold");
            return Err(PayloadError::TooLarge { message });
        }
        Ok(Bytes::from_owner(out))
    }

    /// The bytes in this coding; as they are where it is none that can be written.
    pub fn encode(self, bytes: &[u8]) -> Vec<u8> {
        // Levels for messages that somebody waits for. Writing to a Vec cannot fail.
        let level = flate2::Compression::fast();
        match self {
            Coding::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                let _ = encoder.write_all(bytes);
                encoder.finish().unwrap_or_default()
            }
            Coding::Deflate => {
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
                let _ = encoder.write_all(bytes);
                encoder.finish().unwrap_or_default()
            }
            Coding::Brotli => {
                let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 4, 20);
                let _ = encoder.write_all(bytes);
                encoder.into_inner()
            }
            Coding::Identity | Coding::Unknown => bytes.to_vec(),
        }
    }

    /// Whether bytes can be written in it.
    pub fn can_write(self) -> bool {
        matches!(self, Coding::Gzip | Coding::Deflate | Coding::Brotli)
    }
}

/// Whether the two bytes of a zlib head (RFC 1950) are there.
fn is_zlib(bytes: &[u8]) -> bool {
    matches!(bytes, [method, flags, ..]
        if method & 0x0f == 8 && (u16::from(*method) << 8 | u16::from(*flags)).is_multiple_of(31))
}

/// Whether a Brotli stream begins with the bits that RFC 7932, 9.1, reserves, and that the decoder takes for a window of up to 1 GiB, which it
/// allocates at once: where an address space or a machine has no room for that, the process would end.
fn has_large_window(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|first| first & 0x7f == 0x11)
}

/// Bytes that were unpacked, which count as held.
struct Unpacked {
    bytes: Vec<u8>,
    held: Held,
}

impl AsRef<[u8]> for Unpacked {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Unpacks as long as messages may hold more.
fn unpack(mut from: impl Read) -> std::io::Result<Result<Unpacked, Shortage>> {
    const AT_ONCE: u64 = 256 << 10;
    let mut out = Unpacked { bytes: Vec::new(), held: Held::NONE };
    while from.by_ref().take(AT_ONCE).read_to_end(&mut out.bytes)? > 0 {
        if let Err(why) = out.held.try_grow(out.bytes.capacity()) {
            return Ok(Err(why));
        }
    }
    Ok(Ok(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unpacked_counts_as_held() {
        let text = "x".repeat(1 << 20);
        let small = Coding::Gzip.encode(text.as_bytes());
        let out = unpack(flate2::read::MultiGzDecoder::new(&small[..])).unwrap().unwrap();
        assert!(out.bytes == text.as_bytes() && out.held.bytes() >= text.len(), "{:?}", out.held);
    }

    #[test]
    fn codings_are_named_by_their_header() {
        for (value, coding) in [
            (None, Coding::Identity),
            (Some(" "), Coding::Identity),
            (Some("identity"), Coding::Identity),
            (Some(" GZIP "), Coding::Gzip),
            (Some("x-gzip"), Coding::Gzip),
            (Some("deflate"), Coding::Deflate),
            (Some("br"), Coding::Brotli),
            (Some("gzip, br"), Coding::Unknown),
            (Some("zstd"), Coding::Unknown),
        ] {
            assert_eq!(Coding::of(value), coding, "{value:?}");
        }
    }

    #[test]
    fn what_is_written_can_be_read_and_bombs_are_refused() {
        let text = Bytes::from(vec![b'a'; 1 << 20]);
        for coding in [Coding::Gzip, Coding::Deflate, Coding::Brotli] {
            let small = Bytes::from(coding.encode(&text));
            assert!(small.len() < 20_000, "{coding:?}: {}", small.len());
            assert_eq!(coding.decode(&small, text.len()).unwrap(), text, "{coding:?}");
            let bomb = coding.decode(&small, text.len() - 1);
            assert!(matches!(bomb, Err(PayloadError::TooLarge { .. })), "{coding:?}");
            let cut = coding.decode(&small.slice(..small.len() - 9), text.len());
            assert!(matches!(cut, Err(PayloadError::Malformed { .. })), "{coding:?}");
            assert!(coding.decode(&Bytes::from_static(b"\x01\x02plain"), 10).is_err(), "{coding:?}");
        }
        assert!(Coding::Unknown.decode(&text, 10).is_err());
    }

    #[test]
    fn a_brotli_window_is_no_larger_than_the_coding_has_it() {
        // Windows of 30 and 24 bits as the larger form has them, and of 24 bits; then two pieces that are not compressed, and the end.
        let rest = b"<a>1\x18\x00\x08</a>\x03";
        let stream = |head: &[u8]| Bytes::from([head, rest].concat());
        for head in [&b"\x11\x1e\x06\x00\x02"[..], b"\x11\x18\x06\x00\x02"] {
            let refused = Coding::Brotli.decode(&stream(head), 100);
            assert!(matches!(refused, Err(PayloadError::Malformed { .. })), "{head:?}: {refused:?}");
        }
        assert_eq!(&Coding::Brotli.decode(&stream(b"\x8f\x01\x80"), 100).unwrap()[..], b"<a>1</a>");
    }

    #[test]
    fn a_bare_deflate_stream_is_read_under_the_same_name() {
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(b"<a/>").unwrap();
        let bytes = Bytes::from(encoder.finish().unwrap());
        assert_eq!(&Coding::Deflate.decode(&bytes, 10).unwrap()[..], b"<a/>");
    }
}
