//! What the fuzz targets reach of the inside (feature `fuzzing`): the parsers of heads and of the chunked coding.

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
