//! The entity body of a message: none, bytes at hand, or a stream still on its way.

use std::any::Any;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};

/// An entity body still on its way from a peer, after transfer decoding.
///
/// It works like a buffered reader, so that relaying copies nothing and peeking is just not consuming:
/// look at [`buffered`](BodyStream::buffered), [`consume`](BodyStream::consume) what is done with, ask for
/// [more](BodyStream::poll_more). Dropping it before it is complete abandons the rest.
pub trait BodyStream: Send + Sync {
    /// Decoded entity bytes received and not yet consumed.
    fn buffered(&self) -> &[u8];

    /// Receives more bytes behind those in [`buffered`](BodyStream::buffered); `Ok(true)` when it grew,
    /// `Ok(false)` when the entity is complete. What was not consumed stays, so the caller bounds memory.
    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, BodyError>>;

    /// Gives up the first `n` bytes of [`buffered`](BodyStream::buffered); at most all of them.
    fn consume(&mut self, n: usize);

    /// Bytes of memory that [`take`](BodyStream::take) would take along.
    fn storage(&self) -> usize {
        self.buffered().len()
    }

    /// Takes all of [`buffered`](BodyStream::buffered), together with its storage where that is worth it.
    fn take(&mut self) -> Vec<u8> {
        let bytes = self.buffered().to_vec();
        self.consume(bytes.len());
        bytes
    }

    /// Gives `pass` bytes that were not received yet, so that they do not come through the process: how many it took. 0: this stream has none to
    /// give in this way, and they are to be had by [`poll_more`](BodyStream::poll_more). Only while nothing is
    /// [`buffered`](BodyStream::buffered).
    fn poll_pass(&mut self, _cx: &mut Context<'_>, _pass: &mut Pass<'_>) -> Poll<Result<usize, BodyError>> {
        Poll::Ready(Ok(0))
    }

    /// Whether nothing will follow behind [`buffered`](BodyStream::buffered).
    fn is_complete(&self) -> bool;

    /// Length of the whole entity, if it was declared.
    fn exact_len(&self) -> Option<u64>;

    /// To be called while the consumer cannot take more yet: lets the stream go on with work that it depends
    /// on (a request body still being sent while its response is relayed) and notice that its peer is gone.
    fn drive(&mut self, _cx: &mut Context<'_>) {}

    /// To be called while nobody takes the body yet: as [`drive`](BodyStream::drive), and it may receive a little of the body to
    /// notice that its peer is gone.
    fn watch(&mut self, cx: &mut Context<'_>) {
        self.drive(cx);
    }

    /// For those who know the concrete type.
    fn into_any(self: Box<Self>) -> Box<dyn Any + Send>;

    /// Like dropping, but lets the stream keep its storage for the next message.
    fn recycle(self: Box<Self>) {}
}

/// Takes what a socket has received, at most so many bytes, and returns how many it took. An error of kind WouldBlock: the socket has nothing.
pub type Pass<'a> = dyn FnMut(BorrowedFd<'_>, u64) -> io::Result<usize> + 'a;

/// Why a body did not arrive whole.
#[derive(Clone, Debug)]
pub enum BodyError {
    /// The peer closed the connection in the middle.
    Truncated,
    /// Nothing arrived for as long as the settings allow.
    Timeout,
    /// The transfer coding is broken.
    Malformed(&'static str),
    /// Larger than the limit of the caller that collects it, in bytes.
    TooLarge(u64),
    /// The connection failed.
    Io(Arc<io::Error>),
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BodyError::Truncated => {
                f.write_str("the peer closed the connection before the body was complete")
            }
            BodyError::Timeout => f.write_str("timed out waiting for more of the body"),
            BodyError::Malformed(what) => write!(f, "malformed body: {what}"),
            BodyError::TooLarge(limit) => write!(f, "the body is larger than the limit of {limit} bytes"),
            BodyError::Io(e) => write!(f, "receiving the body: {e}"),
        }
    }
}

impl std::error::Error for BodyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BodyError::Io(e) => Some(e.as_ref()),
            _ => None,
        }
    }
}

impl From<io::Error> for BodyError {
    fn from(e: io::Error) -> BodyError {
        match e.kind() {
            io::ErrorKind::TimedOut => BodyError::Timeout,
            io::ErrorKind::UnexpectedEof => BodyError::Truncated,
            _ => BodyError::Io(Arc::new(e)),
        }
    }
}

/// The entity body of a message.
#[derive(Default)]
pub enum Body {
    /// No entity at all.
    #[default]
    Empty,
    /// An entity at hand.
    Bytes(Bytes),
    /// An entity still on its way.
    Stream(Box<dyn BodyStream>),
}

impl Body {
    /// Whether there is no entity. An entity of no bytes is an entity.
    pub fn is_empty(&self) -> bool {
        matches!(self, Body::Empty)
    }

    /// Bytes at hand and not yet consumed.
    pub fn buffered(&self) -> &[u8] {
        match self {
            Body::Empty => &[],
            Body::Bytes(bytes) => bytes,
            Body::Stream(stream) => stream.buffered(),
        }
    }

    /// See [`BodyStream::poll_more`].
    pub fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, BodyError>> {
        match self {
            Body::Empty | Body::Bytes(_) => Poll::Ready(Ok(false)),
            Body::Stream(stream) => stream.poll_more(cx),
        }
    }

    /// See [`BodyStream::poll_pass`].
    pub fn poll_pass(&mut self, cx: &mut Context<'_>, pass: &mut Pass<'_>) -> Poll<Result<usize, BodyError>> {
        match self {
            Body::Empty | Body::Bytes(_) => Poll::Ready(Ok(0)),
            Body::Stream(stream) => stream.poll_pass(cx, pass),
        }
    }

    /// See [`BodyStream::consume`].
    pub fn consume(&mut self, n: usize) {
        match self {
            Body::Empty => debug_assert_eq!(n, 0),
            Body::Bytes(bytes) => bytes.advance(n),
            Body::Stream(stream) => stream.consume(n),
        }
    }

    /// Whether nothing will follow behind [`buffered`](Body::buffered).
    pub fn is_complete(&self) -> bool {
        match self {
            Body::Empty | Body::Bytes(_) => true,
            Body::Stream(stream) => stream.is_complete(),
        }
    }

    /// Length of the whole entity where known; of [`Body::Bytes`] what is left of it.
    pub fn exact_len(&self) -> Option<u64> {
        match self {
            Body::Empty => Some(0),
            Body::Bytes(bytes) => Some(bytes.len() as u64),
            Body::Stream(stream) => stream.exact_len(),
        }
    }

    /// See [`BodyStream::drive`].
    pub fn drive(&mut self, cx: &mut Context<'_>) {
        if let Body::Stream(stream) = self {
            stream.drive(cx);
        }
    }

    /// See [`BodyStream::watch`].
    pub fn watch(&mut self, cx: &mut Context<'_>) {
        if let Body::Stream(stream) = self {
            stream.watch(cx);
        }
    }

    /// Drops the body, keeping its storage for the next message of its connection.
    pub fn recycle(self) {
        if let Body::Stream(stream) = self {
            stream.recycle();
        }
    }

    /// Receives more; see [`BodyStream::poll_more`].
    pub async fn more(&mut self) -> Result<bool, BodyError> {
        poll_fn(|cx| self.poll_more(cx)).await
    }

    /// Receives the rest of the entity and returns it whole. More than `limit` bytes: [`BodyError::TooLarge`].
    pub async fn collect(mut self, limit: u64) -> Result<Bytes, BodyError> {
        loop {
            let over = self.buffered().len() as u64 > limit || self.exact_len().is_some_and(|n| n > limit);
            if over {
                return Err(BodyError::TooLarge(limit));
            }
            if !self.more().await? {
                break;
            }
        }
        if let Body::Bytes(bytes) = self {
            return Ok(bytes);
        }
        let bytes = match &mut self {
            Body::Stream(stream) => Bytes::from(stream.take()),
            _ => Bytes::new(),
        };
        self.recycle();
        Ok(bytes)
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Body::Empty => f.write_str("Empty"),
            Body::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Body::Stream(stream) => write!(f, "Stream({:?} bytes)", stream.exact_len()),
        }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Body {
        Body::Bytes(bytes)
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Body {
        Body::Bytes(bytes.into())
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Body {
        Body::Bytes(Bytes::from_static(text.as_bytes()))
    }
}
