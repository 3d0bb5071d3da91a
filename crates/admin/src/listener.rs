//! The socket of the admin address: a few connections at a time, one request each, and each with a deadline.
//!
//! A connection that has not sent its request yet keeps its place only as long as no other wants it: where all are taken, the oldest of them
//! makes room. So clients that send half a request, or many of them, keep nobody out.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, Sleep};

/// Open connections; where all of them are being answered, further ones wait in the backlog.
const CONNECTIONS: usize = 64;
/// Longest time from a connection's beginning until its request is there whole.
pub(crate) const REQUEST: Duration = Duration::from_secs(10);
/// Longest time in which a connection that is answered neither receives nor sends a byte.
const IDLE: Duration = Duration::from_secs(75);

/// See the module.
pub(crate) struct Limited {
    listener: TcpListener,
    places: Arc<Places>,
}

impl Limited {
    pub(crate) fn new(listener: TcpListener) -> Limited {
        Limited { listener, places: Arc::default() }
    }
}

/// The connections that are open, in the order in which they came.
#[derive(Default)]
struct Places {
    taken: Mutex<VecDeque<Taken>>,
    /// One of them has ended.
    left: Notify,
}

struct Taken {
    place: Place,
    /// Tells the connection to make room.
    leave: oneshot::Sender<()>,
}

/// The place of one connection, in its own hands and in those of its request.
#[derive(Clone, Default)]
pub(crate) struct Place {
    /// The request is there.
    asked: Arc<AtomicBool>,
}

impl Place {
    /// Its request is there: it keeps its place until it is answered.
    pub(crate) fn asks(&self) {
        self.asked.store(true, Relaxed);
    }
}

impl Places {
    fn taken(&self) -> MutexGuard<'_, VecDeque<Taken>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for one more connection, and what tells it to make room.
    async fn take(&self) -> (Place, oneshot::Receiver<()>) {
        loop {
            if let Some(place) = self.try_take() {
                return place;
            }
            self.left.notified().await;
        }
    }

    fn try_take(&self) -> Option<(Place, oneshot::Receiver<()>)> {
        let mut taken = self.taken();
        if taken.len() >= CONNECTIONS {
            let at = taken.iter().position(|connection| !connection.place.asked.load(Relaxed))?;
            // It may just have ended by itself.
            let _ = taken.remove(at).map(|connection| connection.leave.send(()));
        }
        let (leave, told) = oneshot::channel();
        let place = Place::default();
        taken.push_back(Taken { place: place.clone(), leave });
        Some((place, told))
    }

    fn leave(&self, place: &Place) {
        self.taken().retain(|connection| !Arc::ptr_eq(&connection.place.asked, &place.asked));
        self.left.notify_one();
    }
}

impl axum::serve::Listener for Limited {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    let (place, told) = self.places.take().await;
                    let until = Box::pin(tokio::time::sleep(REQUEST));
                    let places = Arc::clone(&self.places);
                    let stands = Stands::Begun;
                    return (Connection { stream, until, told, place, places, stands }, peer);
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

impl axum::extract::connect_info::Connected<axum::serve::IncomingStream<'_, Limited>> for Place {
    fn connect_info(stream: axum::serve::IncomingStream<'_, Limited>) -> Place {
        stream.io().place.clone()
    }
}

/// A connection with a deadline: for its request, which no byte moves on, and then for each byte.
pub(crate) struct Connection {
    stream: TcpStream,
    until: Pin<Box<Sleep>>,
    /// It is to make room.
    told: oneshot::Receiver<()>,
    place: Place,
    places: Arc<Places>,
    stands: Stands,
}

/// How far a connection is.
#[derive(PartialEq, Eq)]
enum Stands {
    /// Its request has to come.
    Begun,
    /// It is answered.
    Asked,
    /// It is to end.
    Over,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.places.leave(&self.place);
    }
}

impl Connection {
    /// Passes on what came of an attempt, unless nothing did for too long, or somebody else needs the place.
    fn watch<T>(&mut self, attempt: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if self.stands == Stands::Begun && self.place.asked.load(Relaxed) {
            self.stands = Stands::Asked;
            self.until.as_mut().reset(Instant::now() + IDLE);
        }
        let over = match self.stands {
            Stands::Begun => {
                Pin::new(&mut self.told).poll(cx).is_ready() || self.until.as_mut().poll(cx).is_ready()
            }
            Stands::Asked if attempt.is_ready() => {
                self.until.as_mut().reset(Instant::now() + IDLE);
                false
            }
            Stands::Asked => self.until.as_mut().poll(cx).is_ready(),
            Stands::Over => true,
        };
        if over {
            self.stands = Stands::Over;
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        attempt
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
