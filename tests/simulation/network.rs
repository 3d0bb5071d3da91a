//! The simulated network: connections that deliver bytes late and in pieces, close as sockets close, and can be reset.

use crate::random::Random;
use std::collections::{HashMap, VecDeque};
use std::io::{self, IoSlice, Read};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};
use transport::simulation::{Connecting, Network, Wire};

/// Most bytes on their way in one direction: beyond, the sender waits.
const WINDOW: usize = 32 * 1024;

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends of connections that are open.
#[derive(Default)]
pub struct Open(AtomicI64);

impl Open {
    pub fn count(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What happens to a direction when something arrives.
type Delivery = Box<dyn FnOnce(&mut Direction) + Send>;

/// One direction of a connection.
#[derive(Default)]
struct Direction {
    ready: VecDeque<u8>,
    /// Sent and not yet delivered.
    flying: usize,
    /// The sender sends no more; delivered behind everything else.
    fin: bool,
    fin_delivered: bool,
    /// When the last piece arrives: nothing overtakes it.
    last: Option<Instant>,
    /// What is on its way, in order. Timers have the resolution of a millisecond, and those of one may fire in any order.
    deliveries: VecDeque<Delivery>,
    reset: bool,
    /// The receiver has closed: what is sent from now on is answered with a reset.
    closed: bool,
    readers: Vec<Waker>,
    writers: Vec<Waker>,
}

impl Direction {
    fn wake(&mut self) {
        self.readers.drain(..).chain(self.writers.drain(..)).for_each(Waker::wake);
    }

    fn may_read(&self) -> bool {
        !self.ready.is_empty() || self.fin_delivered || self.reset
    }
}

struct Pair {
    directions: [Mutex<Direction>; 2],
    random: Mutex<Random>,
    latency: (u64, u64),
    open: Arc<Open>,
}

/// One end.
pub struct End {
    pair: Arc<Pair>,
    /// The direction this end sends in.
    side: usize,
    linger_zero: AtomicBool,
}

/// A connection: two ends. A piece takes between `latency.0` and `latency.1` microseconds.
pub fn connection(random: Random, latency: (u64, u64), open: &Arc<Open>) -> (Arc<End>, Arc<End>) {
    open.0.fetch_add(2, Ordering::Relaxed);
    let pair = Arc::new(Pair {
        directions: [Mutex::default(), Mutex::default()],
        random: Mutex::new(random),
        latency,
        open: Arc::clone(open),
    });
    let end = |side| Arc::new(End { pair: Arc::clone(&pair), side, linger_zero: AtomicBool::new(false) });
    (end(0), end(1))
}

impl Pair {
    /// Sends on: `work` is done on the direction when the piece has arrived.
    fn deliver(self: &Arc<Pair>, side: usize, work: impl FnOnce(&mut Direction) + Send + 'static) {
        let delay = {
            let mut random = lock(&self.random);
            Duration::from_micros(random.between(self.latency.0, self.latency.1))
        };
        let at = {
            let mut direction = lock(&self.directions[side]);
            let at = (Instant::now() + delay).max(direction.last.unwrap_or_else(Instant::now));
            direction.last = Some(at);
            direction.deliveries.push_back(Box::new(work));
            at
        };
        let pair = Arc::clone(self);
        tokio::spawn(async move {
            sleep_until(at).await;
            let mut direction = lock(&pair.directions[side]);
            if let Some(next) = direction.deliveries.pop_front() {
                next(&mut direction);
            }
            direction.wake();
        });
    }
}

impl End {
    fn sent(&self) -> MutexGuard<'_, Direction> {
        lock(&self.pair.directions[self.side])
    }

    fn received(&self) -> MutexGuard<'_, Direction> {
        lock(&self.pair.directions[1 - self.side])
    }

    /// Ends the connection with a reset: what the peer has not read is lost.
    pub fn reset(&self) {
        self.linger_zero.store(true, Ordering::Relaxed);
        send_reset(&self.pair, self.side);
    }
}

/// Resets the connection: at once for the end that sends in direction `side`, on arrival for the other.
fn send_reset(pair: &Arc<Pair>, side: usize) {
    let mut direction = lock(&pair.directions[1 - side]);
    direction.reset = true;
    direction.wake();
    drop(direction);
    let back = Arc::clone(pair);
    pair.deliver(side, move |direction| {
        direction.ready.clear();
        direction.reset = true;
        // The peer can send no more either; its writers find out.
        tokio::spawn(async move {
            let mut other = lock(&back.directions[1 - side]);
            other.reset = true;
            other.wake();
        });
    });
}

impl Wire for End {
    fn poll_read(&self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut direction = self.received();
        if direction.reset {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if direction.ready.is_empty() {
            if direction.fin_delivered || into.is_empty() {
                return Poll::Ready(Ok(0));
            }
            direction.readers.push(cx.waker().clone());
            return Poll::Pending;
        }
        let count = direction.ready.read(into)?;
        direction.writers.drain(..).for_each(Waker::wake);
        Poll::Ready(Ok(count))
    }

    fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut direction = self.received();
        if direction.may_read() {
            return Poll::Ready(());
        }
        direction.readers.push(cx.waker().clone());
        Poll::Pending
    }

    fn may_read(&self) -> bool {
        self.received().may_read()
    }

    fn poll_write(&self, cx: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if self.received().reset {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let piece = {
            let mut direction = self.sent();
            if direction.reset || direction.fin {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
            if direction.closed {
                drop(direction);
                // The kernel takes the bytes; the reset comes a moment later, and what was not read by then is lost.
                send_reset(&self.pair, 1 - self.side);
                return Poll::Ready(Ok(parts.iter().map(|part| part.len()).sum()));
            }
            let used = direction.ready.len() + direction.flying;
            let room = WINDOW.saturating_sub(used);
            if room == 0 {
                direction.writers.push(cx.waker().clone());
                return Poll::Pending;
            }
            let mut random = lock(&self.pair.random);
            // Now and then the kernel takes only a part.
            let room = if random.one_in(4) { random.between(1, room as u64) as usize } else { room };
            let mut piece = Vec::new();
            for part in parts {
                piece.extend_from_slice(&part[..part.len().min(room - piece.len())]);
            }
            direction.flying += piece.len();
            piece
        };
        let count = piece.len();
        // A write may arrive in two pieces.
        let cut = {
            let mut random = lock(&self.pair.random);
            if count > 1 && random.one_in(3) { random.between(1, count as u64 - 1) as usize } else { count }
        };
        let mut first = piece;
        let second = first.split_off(cut);
        for piece in [first, second] {
            if piece.is_empty() {
                continue;
            }
            let pair = Arc::clone(&self.pair);
            let side = self.side;
            self.pair.deliver(side, move |direction| {
                direction.flying -= piece.len();
                if direction.closed {
                    // Nobody can read it any more.
                    tokio::spawn(async move { send_reset(&pair, 1 - side) });
                } else if !direction.reset {
                    direction.ready.extend(&piece);
                }
            });
        }
        Poll::Ready(Ok(count))
    }

    fn shutdown(&self) {
        let mut direction = self.sent();
        if std::mem::replace(&mut direction.fin, true) || direction.reset {
            return;
        }
        drop(direction);
        self.pair.deliver(self.side, |direction| direction.fin_delivered = true);
    }

    fn reset_on_close(&self) {
        self.linger_zero.store(true, Ordering::Relaxed);
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.pair.open.0.fetch_sub(1, Ordering::Relaxed);
        // Outside of a runtime the world has ended.
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let unread = {
            let direction = self.received();
            !direction.ready.is_empty() && !direction.reset
        };
        if unread || self.linger_zero.load(Ordering::Relaxed) {
            send_reset(&self.pair, self.side);
        } else {
            Wire::shutdown(self);
            let mut received = self.received();
            received.closed = true;
            received.wake();
        }
    }
}

/// What a backend's address does with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepts {
    Yes,
    /// Nobody listens.
    Refuses,
    /// Connecting never ends.
    Silent,
}

struct Listener {
    accepts: Accepts,
    to: mpsc::UnboundedSender<Arc<End>>,
}

/// Addresses and who listens there.
pub struct Simulated {
    listeners: Mutex<HashMap<SocketAddr, Listener>>,
    random: Mutex<Random>,
    pub open: Arc<Open>,
}

impl Simulated {
    pub fn new(random: Random) -> Arc<Simulated> {
        Arc::new(Simulated { listeners: Mutex::default(), random: Mutex::new(random), open: Arc::default() })
    }

    /// Listens; accepted connections come out of the receiver.
    pub fn listen(&self, address: SocketAddr) -> mpsc::UnboundedReceiver<Arc<End>> {
        let (to, accepted) = mpsc::unbounded_channel();
        lock(&self.listeners).insert(address, Listener { accepts: Accepts::Yes, to });
        accepted
    }

    pub fn set(&self, address: SocketAddr, accepts: Accepts) {
        if let Some(listener) = lock(&self.listeners).get_mut(&address) {
            listener.accepts = accepts;
        }
    }
}

/// What clients connect backends through.
pub struct Connector(pub Arc<Simulated>);

impl Network for Connector {
    fn connect(&self, address: SocketAddr) -> Connecting {
        let network = Arc::clone(&self.0);
        Box::pin(async move {
            let mut random = lock(&network.random).split();
            sleep(Duration::from_micros(random.between(20, 2_000))).await;
            let found = lock(&network.listeners).get(&address).map(|one| (one.accepts, one.to.clone()));
            let to = match found {
                Some((Accepts::Yes, to)) => to,
                Some((Accepts::Silent, _)) => std::future::pending().await,
                Some((Accepts::Refuses, _)) | None => return Err(io::ErrorKind::ConnectionRefused.into()),
            };
            let latency = (random.between(5, 50), random.between(50, 3_000));
            let (near, far) = connection(random, latency, &network.open);
            let _ = to.send(far);
            Ok(near as Arc<dyn Wire>)
        })
    }
}
