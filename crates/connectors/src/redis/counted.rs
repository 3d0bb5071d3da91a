//! A socket that counts what a server sends, since the library reads a reply as far as it goes.

use message::memory::Held;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use transport::Socket;

/// The memory of a reply while it is read, as a multiple of its bytes.
const GROWTH: usize = 4;

/// The bytes of one reply. Copies count together.
#[derive(Clone, Default)]
pub(super) struct Count(Arc<Mutex<Counted>>);

#[derive(Default)]
struct Counted {
    most: usize,
    bytes: usize,
    held: Held,
    stopped: Option<Stopped>,
}

/// Why no more of a reply is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stopped {
    /// It has more than so many bytes.
    Large(usize),
    /// Messages hold as much memory as they may.
    Short(message::memory::Shortage),
}

impl Stopped {
    /// Why, for an error.
    pub(super) fn text(self) -> String {
        match self {
            Stopped::Large(most) => format!("it has more than a flow may hold ({most} bytes)"),
            Stopped::Short(shortage) => shortage.to_string(),
        }
    }
}

impl Count {
    /// Another reply begins, of `most` bytes.
    pub(super) fn begin(&self, most: usize) {
        *flow::lock(&self.0) = Counted { most, ..Counted::default() };
    }

    /// Why the reply was not read to its end, where that is so.
    pub(super) fn stopped(&self) -> Option<Stopped> {
        flow::lock(&self.0).stopped
    }

    fn add(&self, bytes: usize) -> io::Result<()> {
        let mut counted = flow::lock(&self.0);
        counted.bytes = counted.bytes.saturating_add(bytes);
        let (bytes, most) = (counted.bytes, counted.most);
        let stopped = match counted.held.try_grow(bytes.saturating_mul(GROWTH)) {
            _ if bytes > most => Stopped::Large(most),
            Err(shortage) => Stopped::Short(shortage),
            Ok(()) => return Ok(()),
        };
        counted.stopped = Some(stopped);
        Err(io::Error::other("the reply is not read to its end"))
    }
}

/// See the module.
pub(super) struct CountedSocket {
    pub socket: Socket,
    pub count: Count,
}

impl AsyncRead for CountedSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        std::task::ready!(Pin::new(&mut self.socket).poll_read(cx, buffer))?;
        Poll::Ready(self.count.add(buffer.filled().len() - before))
    }
}

impl AsyncWrite for CountedSocket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_bounded_and_the_next_one_begins_anew() {
        let count = Count::default();
        count.begin(100);
        assert!(count.add(60).is_ok() && count.add(40).is_ok() && count.stopped().is_none());
        assert!(count.add(1).is_err());
        assert_eq!(count.stopped(), Some(Stopped::Large(100)));
        count.begin(100);
        assert!(count.stopped().is_none() && count.add(100).is_ok());
    }
}
