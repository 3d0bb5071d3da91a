//! A connection as the library expects it: reads and writes of the same halves that HTTP/1.1 uses. Received frames are
//! counted: those that carry nothing must not outweigh those that do.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::lock;
use crate::io::{ReadHalf, Writer};

/// Bytes of frames that carry nothing which a peer may send before it has sent or taken anything.
const ALLOWANCE: u64 = 256 * 1024;
/// So many times what a peer has sent and taken may frames that carry nothing be.
const OVERHEAD: u64 = 8;

/// What went over a connection.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    /// Bytes of frames that carry neither a head nor a body.
    control: AtomicU64,
    /// Bytes of heads and bodies, in both directions.
    payload: AtomicU64,
    received: AtomicU64,
    flooded: AtomicBool,
}

impl Traffic {
    /// So many bytes of a body have left.
    pub(super) fn sent(&self, n: usize) {
        self.payload.fetch_add(n as u64, Relaxed);
    }

    /// Changes whenever something is received.
    pub(super) fn received(&self) -> u64 {
        self.received.load(Relaxed)
    }

    /// The peer sends frames that carry nothing, and too many of them. Nothing more is read from it.
    pub(super) fn is_flooded(&self) -> bool {
        self.flooded.load(Relaxed)
    }

    fn count(&self, control: u64, payload: u64) {
        let payload = self.payload.fetch_add(payload, Relaxed) + payload;
        let control = self.control.fetch_add(control, Relaxed) + control;
        if control > ALLOWANCE.saturating_add(OVERHEAD.saturating_mul(payload)) {
            self.flooded.store(true, Relaxed);
        }
    }
}

/// Where in the sequence of frames the received bytes are.
struct Frames {
    header: [u8; 9],
    have: usize,
    /// Bytes to the next frame header.
    left: usize,
    carries: bool,
}

impl Frames {
    /// Counts bytes: those of frames without, and with a head or a body.
    fn scan(&mut self, mut bytes: &[u8]) -> (u64, u64) {
        const DATA: u8 = 0;
        const HEADERS: u8 = 1;
        let (mut control, mut payload) = (0, 0);
        while !bytes.is_empty() {
            if self.left > 0 {
                let n = self.left.min(bytes.len());
                *(if self.carries { &mut payload } else { &mut control }) += n as u64;
                self.left -= n;
                bytes = &bytes[n..];
                continue;
            }
            let n = (self.header.len() - self.have).min(bytes.len());
            self.header[self.have..self.have + n].copy_from_slice(&bytes[..n]);
            self.have += n;
            bytes = &bytes[n..];
            if self.have == self.header.len() {
                let [a, b, c, kind, ..] = self.header;
                self.left = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
                self.carries = matches!(kind, DATA | HEADERS);
                self.have = 0;
                control += self.header.len() as u64;
            }
        }
        (control, payload)
    }
}

/// The receiving half, for use after the library has dropped the connection.
pub(crate) type Rest = Arc<Mutex<Option<ReadHalf>>>;

/// See the module.
pub(crate) struct Duplex {
    read: Option<ReadHalf>,
    writer: Writer,
    /// Bytes that were read before the protocol was detected.
    before: Bytes,
    frames: Frames,
    traffic: Arc<Traffic>,
    /// Longest time in which the peer takes nothing.
    wait: Duration,
    rest: Rest,
}

impl Duplex {
    /// `preface`: the peer sends one.
    pub(crate) fn new(
        read: ReadHalf,
        writer: Writer,
        before: Bytes,
        preface: bool,
        wait: Duration,
    ) -> Duplex {
        let left = if preface { super::PREFACE.len() } else { 0 };
        let frames = Frames { header: [0; 9], have: 0, left, carries: true };
        let (traffic, rest) = (Arc::default(), Arc::default());
        Duplex { read: Some(read), writer, before, frames, traffic, wait, rest }
    }

    pub(super) fn traffic(&self) -> Arc<Traffic> {
        self.traffic.clone()
    }

    /// Where the receiving half is left when this is dropped.
    pub(super) fn rest(&self) -> Rest {
        self.rest.clone()
    }

    fn received(&mut self, bytes: &[u8]) {
        self.traffic.received.fetch_add(1, Relaxed);
        let (control, payload) = self.frames.scan(bytes);
        self.traffic.count(control, payload);
    }
}

impl Drop for Duplex {
    fn drop(&mut self) {
        *lock(&self.rest) = self.read.take();
    }
}

impl AsyncRead for Duplex {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.traffic.is_flooded() {
            // The driver of the connection reports the flood and ends it.
            return Poll::Pending;
        }
        let from = into.filled().len();
        if this.before.is_empty() {
            let Some(read) = &mut this.read else { return Poll::Ready(Ok(())) };
            let n = ready!(read.poll_read(cx, into.initialize_unfilled()))?;
            into.advance(n);
        } else {
            let n = this.before.len().min(into.remaining());
            into.put_slice(&this.before[..n]);
            this.before.advance(n);
        }
        this.received(&into.filled()[from..]);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Duplex {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.writer.poll_write(cx, &[IoSlice::new(bytes)], this.wait)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.writer.poll_write(cx, parts, this.wait)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.writer.poll_flush(cx, this.wait)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().writer.poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_told_apart_however_they_are_cut() {
        let mut wire = super::super::PREFACE.to_vec();
        let frame = |length: u8, kind: u8| {
            let mut frame = vec![0, 0, length, kind, 0, 0, 0, 0, 1];
            frame.extend(std::iter::repeat_n(7, usize::from(length)));
            frame
        };
        for (length, kind) in [(0, 4), (20, 1), (8, 6), (0, 0), (100, 0)] {
            wire.extend(frame(length, kind));
        }
        for step in 1..wire.len() {
            let mut frames =
                Frames { header: [0; 9], have: 0, left: super::super::PREFACE.len(), carries: true };
            let mut sum = (0, 0);
            for piece in wire.chunks(step) {
                let (control, payload) = frames.scan(piece);
                sum = (sum.0 + control, sum.1 + payload);
            }
            assert_eq!(sum, (5 * 9 + 8, 24 + 120), "{step}");
        }
    }

    #[test]
    fn what_carries_nothing_has_an_allowance() {
        let traffic = Traffic::default();
        traffic.count(ALLOWANCE, 0);
        assert!(!traffic.is_flooded());
        traffic.sent(10);
        traffic.count(OVERHEAD * 10, 0);
        assert!(!traffic.is_flooded());
        traffic.count(1, 0);
        assert!(traffic.is_flooded());
    }
}
