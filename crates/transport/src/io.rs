//! The two halves of a connection, plain or TLS.
//!
//! Plain ones are read and written by system calls of their own: those of the C library can be cancelled, which costs each
//! two locked operations in a process of several threads.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use message::Pass;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio_rustls::TlsStream;

#[cfg(feature = "simulation")]
use crate::simulation;
use crate::splice::Pipe;
use crate::timer::Timer;

/// The receiving half. It travels with the body of a message.
pub(crate) enum ReadHalf {
    Plain(OwnedReadHalf),
    Tls(Box<TlsReadHalf>),
    #[cfg(feature = "simulation")]
    Simulated(simulation::ReadHalf),
}

/// The receiving half of a TLS connection, and the socket below.
pub(crate) struct TlsReadHalf {
    stream: tokio::io::ReadHalf<TlsStream<TcpStream>>,
    socket: RawFd,
}

impl TlsReadHalf {
    fn socket(&self) -> BorrowedFd<'_> {
        // SAFETY: the stream that owns the descriptor lives as long as its half, which is borrowed here.
        #[allow(unsafe_code)]
        unsafe {
            BorrowedFd::borrow_raw(self.socket)
        }
    }
}

/// The sending half.
pub(crate) enum WriteHalf {
    Plain(OwnedWriteHalf),
    Tls(Box<tokio::io::WriteHalf<TlsStream<TcpStream>>>),
    #[cfg(feature = "simulation")]
    Simulated(simulation::WriteHalf),
    /// After [`Writer::reset`].
    Gone,
}

pub(crate) fn split_plain(stream: TcpStream) -> (ReadHalf, WriteHalf) {
    let (read, write) = stream.into_split();
    (ReadHalf::Plain(read), WriteHalf::Plain(write))
}

pub(crate) fn split_tls(stream: TlsStream<TcpStream>) -> (ReadHalf, WriteHalf) {
    let socket = stream.get_ref().0.as_raw_fd();
    let (read, write) = tokio::io::split(stream);
    (ReadHalf::Tls(Box::new(TlsReadHalf { stream: read, socket })), WriteHalf::Tls(Box::new(write)))
}

impl ReadHalf {
    /// Whether a read may have something, as far as the kernel has reported it. Costs no system call and wakes nobody
    /// later; TLS always says yes.
    pub(crate) fn may_read(&self) -> bool {
        match self {
            ReadHalf::Plain(half) => half.as_ref().try_io(Interest::READABLE, || Ok(())).is_ok(),
            ReadHalf::Tls(_) => true,
            #[cfg(feature = "simulation")]
            ReadHalf::Simulated(half) => half.0.may_read(),
        }
    }

    pub(crate) fn is_tls(&self) -> bool {
        matches!(self, ReadHalf::Tls(_))
    }

    /// As [`may_read`](ReadHalf::may_read), to be woken when it does.
    pub(crate) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            ReadHalf::Plain(half) => half.as_ref().poll_read_ready(cx),
            ReadHalf::Tls(_) => Poll::Ready(Ok(())),
            #[cfg(feature = "simulation")]
            ReadHalf::Simulated(half) => half.0.poll_ready(cx).map(Ok),
        }
    }

    /// Receives; 0 is the end.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            ReadHalf::Plain(half) => loop {
                match read_plain(half.as_ref(), into) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        ready!(half.as_ref().poll_read_ready(cx))?;
                    }
                    done => return Poll::Ready(done),
                }
            },
            ReadHalf::Tls(half) => {
                let mut into = ReadBuf::new(into);
                ready!(Pin::new(&mut half.stream).poll_read(cx, &mut into))?;
                Poll::Ready(Ok(into.filled().len()))
            }
            #[cfg(feature = "simulation")]
            ReadHalf::Simulated(half) => half.0.poll_read(cx, into),
        }
    }

    /// Gives what the kernel has, at most so many bytes, to `pass`. 0: it has to be read.
    pub(crate) fn poll_pass(
        &mut self,
        cx: &mut Context<'_>,
        most: u64,
        pass: &mut Pass<'_>,
    ) -> Poll<io::Result<usize>> {
        let ReadHalf::Plain(half) = self else { return Poll::Ready(Ok(0)) };
        let stream = half.as_ref();
        loop {
            match stream.try_io(Interest::READABLE, || pass(stream.as_fd(), most)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(stream.poll_read_ready(cx))?;
                }
                done => return Poll::Ready(done),
            }
        }
    }

    /// Whether the kernel has nothing for the reader: no bytes, no end, no error. Costs a system call, which readiness as
    /// it was last reported does not replace: an end that came with the last bytes, or just now, is not in it.
    pub(crate) fn is_silent(&self) -> bool {
        match self {
            ReadHalf::Plain(half) => is_silent(half.as_ref()),
            ReadHalf::Tls(half) => is_silent(half.socket()),
            #[cfg(feature = "simulation")]
            ReadHalf::Simulated(half) => !half.0.may_read(),
        }
    }

    /// Whether the peer has acknowledged everything that was written; no, where the kernel does not say.
    pub(crate) fn has_arrived(&self) -> bool {
        match self {
            ReadHalf::Plain(half) => unsent(half.as_ref()) == Some(0),
            ReadHalf::Tls(half) => unsent(half.socket()) == Some(0),
            #[cfg(feature = "simulation")]
            ReadHalf::Simulated(_) => true,
        }
    }
}

/// The sending half with what it still owes to the peer before anything else.
pub(crate) struct Writer {
    half: WriteHalf,
    interim: &'static [u8],
    timer: Timer,
}

impl Writer {
    pub(crate) fn new(half: WriteHalf) -> Writer {
        Writer { half, interim: &[], timer: Timer::default() }
    }

    /// The sending half, of which nothing is left here.
    pub(crate) fn take(&mut self) -> Writer {
        std::mem::replace(self, Writer::new(WriteHalf::Gone))
    }

    /// Sends `bytes` ahead of the next write.
    pub(crate) fn interim(&mut self, cx: &mut Context<'_>, bytes: &'static [u8]) {
        self.interim = bytes;
        // An error shows at the next write or read.
        let _ = self.poll_interim(cx);
        let _ = self.poll_flush_half(cx);
    }

    /// Sends from `parts`; the number of bytes taken. An error of kind TimedOut after `wait` without progress.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
        wait: Duration,
    ) -> Poll<io::Result<usize>> {
        let mut polled = self.poll_interim(cx);
        if let Poll::Ready(Ok(_)) = polled {
            polled = match (&mut self.half, parts) {
                (WriteHalf::Plain(half), parts) => write_plain(half, cx, parts),
                (WriteHalf::Tls(half), [one]) => Pin::new(half.as_mut()).poll_write(cx, one),
                (WriteHalf::Tls(half), _) => Pin::new(half.as_mut()).poll_write_vectored(cx, parts),
                #[cfg(feature = "simulation")]
                (WriteHalf::Simulated(half), parts) => half.wire().poll_write(cx, parts),
                (WriteHalf::Gone, _) => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
            };
        }
        self.timed(cx, polled, wait)
    }

    /// Whether [`poll_pass`](Writer::poll_pass) can send.
    pub(crate) fn passes(&self) -> bool {
        matches!(self.half, WriteHalf::Plain(_))
    }

    /// As [`poll_write`](Writer::poll_write), from a pipe.
    pub(crate) fn poll_pass(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
        wait: Duration,
    ) -> Poll<io::Result<usize>> {
        let mut polled = self.poll_interim(cx);
        if let Poll::Ready(Ok(_)) = polled {
            polled = match &self.half {
                WriteHalf::Plain(half) => pass_plain(half.as_ref(), cx, pipe),
                _ => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
            };
        }
        self.timed(cx, polled, wait)
    }

    /// A write that took nothing, or takes nothing for too long, is an error.
    #[inline]
    fn timed(
        &mut self,
        cx: &mut Context<'_>,
        polled: Poll<io::Result<usize>>,
        wait: Duration,
    ) -> Poll<io::Result<usize>> {
        match polled {
            Poll::Ready(Ok(0)) => Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            ready @ Poll::Ready(_) => {
                self.timer.clear();
                ready
            }
            Poll::Pending if self.timer.poll_expired(wait, cx) => {
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    /// Waits until everything written is with the kernel. Only TLS holds anything back.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>, wait: Duration) -> Poll<io::Result<()>> {
        match self.poll_flush_half(cx) {
            Poll::Pending if self.timer.poll_expired(wait, cx) => {
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
            Poll::Pending => Poll::Pending,
            ready => {
                self.timer.clear();
                ready
            }
        }
    }

    /// Closes the sending side: FIN, for TLS behind a close_notify.
    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.half {
            WriteHalf::Plain(half) => Pin::new(half).poll_shutdown(cx),
            WriteHalf::Tls(half) => Pin::new(half.as_mut()).poll_shutdown(cx),
            #[cfg(feature = "simulation")]
            WriteHalf::Simulated(half) => {
                half.wire().shutdown();
                Poll::Ready(Ok(()))
            }
            WriteHalf::Gone => Poll::Ready(Ok(())),
        }
    }

    /// Sends no more, and makes the close that follows one that the peer cannot take for the end of a message: a reset
    /// without the FIN that tokio sends when the half is dropped, or TLS that ends without its close_notify.
    pub(crate) fn reset(&mut self) {
        match std::mem::replace(&mut self.half, WriteHalf::Gone) {
            WriteHalf::Plain(half) => {
                // If it fails the peer sees an ordinary close in the middle of a message.
                let _ = SockRef::from(half.as_ref()).set_linger(Some(Duration::ZERO));
                half.forget();
            }
            #[cfg(feature = "simulation")]
            WriteHalf::Simulated(half) => {
                half.wire().reset_on_close();
                half.forget();
            }
            WriteHalf::Tls(_) | WriteHalf::Gone => {}
        }
    }

    fn poll_interim(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        while !self.interim.is_empty() {
            let n = ready!(match &mut self.half {
                WriteHalf::Plain(half) => Pin::new(half).poll_write(cx, self.interim),
                WriteHalf::Tls(half) => Pin::new(half.as_mut()).poll_write(cx, self.interim),
                #[cfg(feature = "simulation")]
                WriteHalf::Simulated(half) => half.wire().poll_write(cx, &[IoSlice::new(self.interim)]),
                WriteHalf::Gone => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
            })?;
            self.interim = &self.interim[n..];
        }
        Poll::Ready(Ok(1))
    }

    #[inline]
    fn poll_flush_half(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.half {
            WriteHalf::Plain(_) | WriteHalf::Gone => Poll::Ready(Ok(())),
            #[cfg(feature = "simulation")]
            WriteHalf::Simulated(_) => Poll::Ready(Ok(())),
            WriteHalf::Tls(half) => Pin::new(half.as_mut()).poll_flush(cx),
        }
    }
}

fn is_silent(socket: impl AsFd) -> bool {
    let peeked = recv(socket, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    matches!(peeked, Err(rustix::io::Errno::AGAIN))
}

/// Bytes written that the peer has not acknowledged.
fn unsent(socket: impl AsFd) -> Option<i32> {
    /// Also called SIOCOUTQ, tcp(7).
    const QUEUED: rustix::ioctl::Opcode = libc::TIOCOUTQ as rustix::ioctl::Opcode;
    // SAFETY: this request reads nothing and writes one int.
    #[allow(unsafe_code)]
    unsafe { rustix::ioctl::ioctl(socket, rustix::ioctl::Getter::<QUEUED, i32>::new()) }.ok()
}

/// Reads at once what the socket has; an error of kind WouldBlock if that is nothing.
///
/// A read that does not fill `into` has drained the socket. tokio is told so (that it would block now), and the next poll
/// waits for the kernel instead of asking it once more. Its own `poll_read` does the same in three times the instructions.
fn read_plain(stream: &TcpStream, into: &mut [u8]) -> io::Result<usize> {
    let mut got = None;
    let read = stream.try_io(Interest::READABLE, || {
        let (n, _) = recv(stream, &mut *into, RecvFlags::empty())?;
        got = Some(n);
        if n > 0 && n < into.len() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(n) }
    });
    match got {
        Some(n) => Ok(n),
        None => read,
    }
}

/// Sends what is in a pipe.
fn pass_plain(stream: &TcpStream, cx: &mut Context<'_>, pipe: &mut Pipe) -> Poll<io::Result<usize>> {
    loop {
        match stream.try_io(Interest::WRITABLE, || pipe.drain(stream.as_fd())) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready!(stream.poll_write_ready(cx))?,
            done => return Poll::Ready(done),
        }
    }
}

/// Writes at once where the socket takes it, which it nearly always does, and else waits for it.
fn write_plain(
    half: &mut OwnedWriteHalf,
    cx: &mut Context<'_>,
    parts: &[IoSlice<'_>],
) -> Poll<io::Result<usize>> {
    let now = match parts {
        [one] => {
            half.as_ref().try_io(Interest::WRITABLE, || Ok(send(half.as_ref(), one, SendFlags::NOSIGNAL)?))
        }
        _ => half.as_ref().try_write_vectored(parts),
    };
    match now {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
        done => return Poll::Ready(done),
    }
    match parts {
        [one] => Pin::new(half).poll_write(cx, one),
        _ => Pin::new(half).poll_write_vectored(cx, parts),
    }
}
