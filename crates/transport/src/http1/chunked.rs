//! The chunked transfer coding (RFC 9112, 7.1), decoded in place.
//!
//! Chunk extensions are ignored. Trailer fields are checked and dropped: nothing in the flow could read them,
//! and merging them into the head would be wrong (RFC 9110, 6.5.1).

use crate::buffer::Buffer;

/// Longest line that announces a chunk, extensions included.
const LONGEST_LINE: usize = 1024;
/// Most bytes of trailer fields.
const LONGEST_TRAILER: usize = 16 * 1024;

/// Where in the coding the next wire byte is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Chunks {
    /// At the line with the size.
    Size,
    /// So many bytes before the end of a chunk.
    Data(u64),
    /// At the line end behind a chunk.
    DataEnd,
    /// In the trailer section, so many bytes of which were read.
    Trailer(usize),
    /// Behind the message.
    Done,
}

/// Decodes as far as the wire bytes in `buffer` go.
pub(crate) fn decode(state: &mut Chunks, buffer: &mut Buffer) -> Result<(), &'static str> {
    loop {
        let wire = buffer.wire();
        match *state {
            Chunks::Size => {
                let Some(end) = line(wire, LONGEST_LINE, "chunk size line too long")? else { return Ok(()) };
                let size = size(&wire[..end])?;
                buffer.skip(end + 2);
                *state = if size == 0 { Chunks::Trailer(0) } else { Chunks::Data(size) };
            }
            Chunks::Data(left) => {
                let n = usize::try_from(left).unwrap_or(usize::MAX).min(wire.len());
                if n == 0 {
                    return Ok(());
                }
                buffer.decode(n);
                *state = if left == n as u64 { Chunks::DataEnd } else { Chunks::Data(left - n as u64) };
            }
            Chunks::DataEnd => match wire {
                [b'\r', b'\n', ..] => {
                    buffer.skip(2);
                    *state = Chunks::Size;
                }
                [] | [b'\r'] => return Ok(()),
                _ => return Err("chunk data not ended by CR LF"),
            },
            Chunks::Trailer(read) => {
                let left = LONGEST_TRAILER - read;
                let Some(end) = line(wire, left, "trailer section too large")? else { return Ok(()) };
                if end > 0 {
                    field(&wire[..end])?;
                }
                buffer.skip(end + 2);
                *state = if end == 0 {
                    Chunks::Done
                } else {
                    Chunks::Trailer((read + end + 2).min(LONGEST_TRAILER))
                };
            }
            Chunks::Done => return Ok(()),
        }
    }
}

/// Length of the first line without its CR LF.
fn line(wire: &[u8], longest: usize, too_long: &'static str) -> Result<Option<usize>, &'static str> {
    match memchr::memchr2(b'\n', b'\r', &wire[..wire.len().min(longest + 2)]) {
        None if wire.len() > longest => Err(too_long),
        None => Ok(None),
        // As if it had come in pieces.
        Some(at) if at > longest => Err(too_long),
        Some(at) if wire[at] == b'\n' => Err("bare line feed in the chunked coding"),
        Some(at) => match wire.get(at + 1) {
            None => Ok(None),
            Some(b'\n') => Ok(Some(at)),
            Some(_) => Err("bare carriage return in the chunked coding"),
        },
    }
}

fn size(line: &[u8]) -> Result<u64, &'static str> {
    let digits = line.iter().position(|b| !b.is_ascii_hexdigit()).unwrap_or(line.len());
    // Fifteen digits are more than any length, and cannot overflow.
    if digits == 0 || digits > 15 {
        return Err("invalid chunk size");
    }
    match &line[digits..] {
        [] => {}
        [b';', extension @ ..] if extension.iter().all(|b| *b == b'\t' || (*b >= 0x20 && *b != 0x7F)) => {}
        _ => return Err("invalid chunk size"),
    }
    Ok(line[..digits].iter().fold(0, |n, d| n * 16 + u64::from((*d as char).to_digit(16).unwrap_or(0))))
}

fn field(line: &[u8]) -> Result<(), &'static str> {
    let colon = line.iter().position(|b| !message::is_token_byte(*b));
    let valid = colon.is_some_and(|at| {
        at > 0 && line[at] == b':' && line[at..].iter().all(|b| *b == b'\t' || (*b >= 0x20 && *b != 0x7F))
    });
    if valid { Ok(()) } else { Err("invalid trailer field") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes with the wire cut into pieces of `piece` bytes; what came out, and whether it was complete.
    fn run(wire: &[u8], piece: usize, consume: bool) -> Result<(Vec<u8>, bool), &'static str> {
        let (mut buffer, mut state, mut out) = (Buffer::default(), Chunks::Size, Vec::new());
        for part in wire.chunks(piece) {
            let mut part = part;
            while !part.is_empty() {
                let room = buffer.room(512, false, 0);
                let n = room.len().min(part.len());
                room[..n].copy_from_slice(&part[..n]);
                buffer.received(n);
                part = &part[n..];
                decode(&mut state, &mut buffer)?;
                if consume {
                    out.extend_from_slice(buffer.entity());
                    buffer.consume(usize::MAX / 2);
                }
            }
        }
        out.extend_from_slice(buffer.entity());
        Ok((out, state == Chunks::Done))
    }

    type Case = (&'static str, Result<(&'static str, bool), ()>);

    #[test]
    fn coding_table() {
        let cases: &[Case] = &[
            ("0\r\n\r\n", Ok(("", true))),
            ("5\r\nhello\r\n0\r\n\r\n", Ok(("hello", true))),
            ("5\r\nhello\r\n6;a=\"b\"\r\n world\r\n0\r\n\r\nNEXT", Ok(("hello world", true))),
            ("000A\r\n0123456789\r\n00\r\nX-T: 1\r\nY:\r\n\r\n", Ok(("0123456789", true))),
            ("5\r\nhel", Ok(("hel", false))),
            ("5\r\nhello\r\n0\r\n", Ok(("hello", false))),
            ("\r\n", Err(())),
            ("g\r\n", Err(())),
            ("-1\r\n", Err(())),
            ("+1\r\n", Err(())),
            ("0x1\r\n", Err(())),
            (" 5\r\nhello\r\n", Err(())),
            ("5 \r\nhello\r\n", Err(())),
            ("5\nhello\r\n", Err(())),
            ("5\r\nhello!\r\n", Err(())),
            ("5\r\nhello\n0\r\n\r\n", Err(())),
            ("5;\x01\r\nhello\r\n", Err(())),
            ("5;a\rb\r\nhello\r\n", Err(())),
            ("ffffffffffffffff\r\n", Err(())),
            ("0\r\nbad trailer\r\n\r\n", Err(())),
            ("0\r\n folded: x\r\n\r\n", Err(())),
            ("0\r\nX: 1\n\r\n", Err(())),
        ];
        for (wire, expected) in cases {
            for piece in [1, 2, 3, 7, 1000] {
                for consume in [true, false] {
                    let got = run(wire.as_bytes(), piece, consume).map_err(|_| ());
                    let expected = expected.map(|(b, done)| (b.as_bytes().to_vec(), done));
                    assert_eq!(got, expected, "{wire:?} in pieces of {piece}");
                }
            }
        }
        // A line has one length that is too much, in whatever pieces it comes.
        for (more, fits) in [(0, true), (1, false), (2, false)] {
            let line = format!("5;{}\r\nhello\r\n0\r\n\r\n", "x".repeat(LONGEST_LINE - 2 + more));
            let fields = format!("0\r\nX:{}\r\n\r\n", "y".repeat(LONGEST_TRAILER - 2 + more));
            for wire in [line, fields] {
                for piece in [1, 2, 511, 100_000] {
                    assert_eq!(
                        run(wire.as_bytes(), piece, true).is_ok(),
                        fits,
                        "{more} in pieces of {piece}"
                    );
                }
            }
        }
        let long = format!("5;{}", "x".repeat(2000));
        assert!(run(long.as_bytes(), 1, true).is_err());
        let trailer = format!("0\r\n{}", "X-Trailer: 0123456789\r\n".repeat(2000));
        assert!(run(trailer.as_bytes(), 100, true).is_err());
    }
}
