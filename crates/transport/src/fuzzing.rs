//! What the fuzz targets reach of the inside (feature `fuzzing`): the parsers of heads and of the chunked coding.

use crate::buffer::Buffer;
use crate::http1::chunked::{self, Chunks};
use crate::http1::parse::{self, HeadLimits};

const LIMITS: HeadLimits = HeadLimits { size: 8 << 10, fields: 64, target: 4 << 10 };

/// Reads a request head: `None` where it is not complete; else its size and what was understood, or the refusal.
pub fn request(wire: &[u8]) -> Option<Result<(usize, String), String>> {
    match parse::request(wire, LIMITS) {
        Ok(None) => None,
        Ok(Some((size, head, facts))) => Some(Ok((size, format!("{head:?} {facts:?}")))),
        Err(refusal) => Some(Err(format!("{refusal:?}"))),
    }
}

/// The same for a response head.
pub fn response(wire: &[u8]) -> Option<Result<(usize, String), String>> {
    match parse::response(wire, LIMITS, false) {
        Ok(None) => None,
        Ok(Some((size, head, facts))) => Some(Ok((size, format!("{head:?} {facts:?}")))),
        Err(why) => Some(Err(why.to_owned())),
    }
}

/// Decodes the chunked coding of a body that arrives in pieces of so many bytes: what it was, how many bytes are left behind it, and whether
/// it has ended; or why it is refused.
pub fn chunks(wire: &[u8], piece: usize) -> Result<(Vec<u8>, usize, bool), &'static str> {
    let (mut buffer, mut state, mut out) = (Buffer::default(), Chunks::Size, Vec::new());
    for mut part in wire.chunks(piece.max(1)) {
        while !part.is_empty() {
            let room = buffer.room(512, false, 0);
            let length = room.len().min(part.len());
            room[..length].copy_from_slice(&part[..length]);
            buffer.received(length);
            part = &part[length..];
            chunked::decode(&mut state, &mut buffer)?;
            out.extend_from_slice(buffer.entity());
            buffer.consume(usize::MAX / 2);
        }
    }
    Ok((out, buffer.wire().len(), state == Chunks::Done))
}
