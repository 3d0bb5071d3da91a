//! The seam for the deterministic simulation (`tests/simulation`): connections that are no sockets, and a network that is
//! no network. Only compiled with the feature `simulation`, which no build of the binary has.
//!
//! Everything above the byte stream is the real transport: parser, relay, pools, deadlines. With a paused clock of the
//! runtime and one thread, a run depends on nothing but its seed.

use std::cell::RefCell;
use std::future::Future;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::connection::{Conn, Incoming, lock};
use crate::server::Open;
use crate::{ConnectionInfo, Handler, Server};

/// One end of a simulated connection. Both halves of the transport share it; dropping the last reference closes it as the
/// kernel closes a socket (a reset where bytes are unread).
pub trait Wire: Send + Sync {
    /// Receives; 0 is the end.
    fn poll_read(&self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>>;
    /// Whether a read would not wait, to be woken when it would not.
    fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<()>;
    /// Whether a read would not wait.
    fn may_read(&self) -> bool;
    /// Sends; the number of bytes taken.
    fn poll_write(&self, cx: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>>;
    /// Sends no more: FIN.
    fn shutdown(&self);
    /// Makes the close that follows a reset.
    fn reset_on_close(&self);
}

/// Future of a connection.
pub type Connecting = Pin<Box<dyn Future<Output = io::Result<Arc<dyn Wire>>> + Send>>;

/// Who connects clients to backends.
pub trait Network {
    /// Connects to an address.
    fn connect(&self, address: SocketAddr) -> Connecting;
}

thread_local! {
    static NETWORK: RefCell<Option<Arc<dyn Network>>> = const { RefCell::new(None) };
}

/// Puts a network in force for all clients of this thread; `None`: the real one.
pub fn install(network: Option<Arc<dyn Network>>) {
    NETWORK.set(network);
}

/// Whether this thread is in a simulated world.
pub fn is_installed() -> bool {
    NETWORK.with_borrow(Option::is_some)
}

/// Does as a task what a thread does elsewhere.
pub fn spawn(work: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(work);
}

/// The connection that the network in force makes, if there is one.
pub(crate) fn connect(address: SocketAddr) -> Option<Connecting> {
    NETWORK.with_borrow(|network| network.as_ref().map(|network| network.connect(address)))
}

pub(crate) struct ReadHalf(pub(crate) Arc<dyn Wire>);

/// Dropping it sends FIN, as the half of a socket does.
pub(crate) struct WriteHalf(Option<Arc<dyn Wire>>, Arc<dyn Wire>);

impl WriteHalf {
    pub(crate) fn wire(&self) -> &dyn Wire {
        &*self.1
    }

    /// Ends without FIN.
    pub(crate) fn forget(mut self) {
        self.0 = None;
    }
}

impl Drop for WriteHalf {
    fn drop(&mut self) {
        if let Some(wire) = &self.0 {
            wire.shutdown();
        }
    }
}

pub(crate) fn split(wire: Arc<dyn Wire>) -> (crate::io::ReadHalf, crate::io::WriteHalf) {
    let write = WriteHalf(Some(wire.clone()), wire.clone());
    (crate::io::ReadHalf::Simulated(ReadHalf(wire)), crate::io::WriteHalf::Simulated(write))
}

/// Serves a connection of a client on a server that was made by [`Server::simulated`], until it ends.
pub fn accept<H: Handler>(
    server: &Server,
    wire: Arc<dyn Wire>,
    peer: SocketAddr,
    handler: Arc<H>,
) -> impl Future<Output = ()> + Send + 'static {
    let listening = server.simulated_listening();
    let open = Open::new(&listening);
    let info = ConnectionInfo { id: open.id(), peer, local: server.local_addr(), worker: 0, tls: None };
    async move {
        let (read, write) = split(wire);
        let conn = Conn::new(write, None);
        lock(listening.open()).insert(open.id(), conn.clone());
        let limits = lock(&listening.limits).clone();
        let incoming = Incoming::new(read, conn.clone(), limits.io_buffer_size, limits.half_close);
        if let Some(next) = crate::serve::serve(&listening, &limits, incoming, &info, &*handler).await {
            crate::server::go_on(open, conn, next, limits, info, handler);
        }
    }
}
