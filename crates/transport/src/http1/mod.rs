//! HTTP/1.1 on the wire (RFC 9112): heads in, heads out, chunks.

pub(crate) mod chunked;
mod lanes;
pub(crate) mod parse;
pub(crate) mod write;

/// How the body of a received message ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Length {
    /// There is none.
    None,
    /// After so many bytes.
    Exact(u64),
    /// With the last chunk.
    Chunked,
    /// With the connection.
    UntilClose,
}
