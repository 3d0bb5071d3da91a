//! A stream that ends where a server sends more than fits into what is expected of it.
//!
//! The library of SQL Server collects a value to its end before it can be looked at. An honest server cuts values (`SET TEXTSIZE`); one that
//! sends a value without an end would fill the memory of the process until the deadline.

use futures_util::{AsyncRead, AsyncWrite};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};

/// How many bytes a server may still send, shared by a stream and whoever reads from it.
#[derive(Clone, Debug)]
pub(super) struct Allowance(Arc<AtomicUsize>);

impl Allowance {
    pub fn new(bytes: usize) -> Allowance {
        Allowance(Arc::new(AtomicUsize::new(bytes)))
    }

    /// Allows so many bytes from now on.
    pub fn renew(&self, bytes: usize) {
        self.0.store(bytes, Relaxed);
    }
}

/// A stream within an allowance.
#[derive(Debug)]
pub(super) struct Bounded<S> {
    pub stream: S,
    pub allowance: Allowance,
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let left = self.allowance.0.load(Relaxed);
        if left == 0 {
            return Poll::Ready(Err(io::Error::other(
                "the server sends more for one row than sql.value allows",
            )));
        }
        let count = std::task::ready!(Pin::new(&mut self.stream).poll_read(cx, into))?;
        self.allowance.0.store(left.saturating_sub(count), Relaxed);
        Poll::Ready(Ok(count))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_close(cx)
    }
}
