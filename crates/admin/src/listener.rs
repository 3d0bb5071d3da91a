//! The socket of the admin address: a few connections at a time, and none for ever.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

/// Open connections; further ones wait in the backlog.
const CONNECTIONS: usize = 64;
/// Longest time in which a connection neither receives nor sends a byte.
const IDLE: Duration = Duration::from_secs(75);

/// See the module.
pub(crate) struct Limited {
    listener: TcpListener,
    free: Arc<Semaphore>,
}

impl Limited {
    pub(crate) fn new(listener: TcpListener) -> Limited {
        Limited { listener, free: Arc::new(Semaphore::new(CONNECTIONS)) }
    }
}

impl axum::serve::Listener for Limited {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let permit = Arc::clone(&self.free).acquire_owned().await.ok();
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    let idle = Box::pin(tokio::time::sleep(IDLE));
                    return (Connection { stream, idle, _permit: permit }, peer);
                }
                // Out of file descriptors, or a connection that was gone already.
                Err(error) => {
                    tracing::debug!(%error, "the admin address cannot accept");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection with a deadline that every byte moves on.
pub(crate) struct Connection {
    stream: TcpStream,
    idle: Pin<Box<Sleep>>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Connection {
    /// Passes on what came of an attempt, unless nothing did for too long.
    fn watch<T>(&mut self, attempt: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if attempt.is_ready() {
            self.idle.as_mut().reset(Instant::now() + IDLE);
            return attempt;
        }
        match self.idle.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let attempt = Pin::new(&mut self.stream).poll_read(cx, buffer);
        self.watch(attempt, cx)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let attempt = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch(attempt, cx)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
