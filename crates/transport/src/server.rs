//! Worker threads, and listeners that accept on all of them.

mod accept;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use self::accept::accept;
use crate::addresses::{Addresses, OfAddress, TooMany};
use crate::connection::{Conn, Incoming, lock};
use crate::descriptors::Descriptor;
use crate::http2::duplex::Duplex;
use crate::io::{ReadHalf, WriteHalf, split_plain, split_tls};
use crate::rounds;
use crate::serve::Next;
use crate::stats::ServerCounters;
use crate::{ConnectionInfo, Handler, ServerLimits, ServerStats, ServerTls, TlsInfo};

/// Threads, each with its own single-threaded event loop. Dropping them ends them.
pub struct Workers {
    handles: Vec<Handle>,
    threads: Vec<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Workers {
    /// Starts `count` threads (at least one).
    pub fn start(count: usize) -> io::Result<Workers> {
        let mut workers = Workers { handles: Vec::new(), threads: Vec::new() };
        for index in 0..count.max(1) {
            let runtime =
                Builder::new_current_thread().enable_all().on_thread_unpark(rounds::begin).build()?;
            workers.handles.push(runtime.handle().clone());
            let (stop, stopped) = oneshot::channel();
            let thread = thread::Builder::new().name(format!("worker-{index}")).spawn(move || {
                // Either way the thread ends.
                let _ = runtime.block_on(stopped);
                runtime.shutdown_background();
            })?;
            workers.threads.push((stop, thread));
        }
        Ok(workers)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.handles.len()
    }

    /// The runtime of each worker, to spawn tasks on.
    pub fn handles(&self) -> &[Handle] {
        &self.handles
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let (stops, threads): (Vec<_>, Vec<_>) = self.threads.drain(..).unzip();
        drop(stops);
        for thread in threads {
            // A worker that panicked has said so; joining itself would wait for ever.
            if thread.thread().id() != thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

/// A listener. It is bound when made, and accepts on every worker from [`serve`](Server::serve) on.
pub struct Server {
    local: SocketAddr,
    tls: Mutex<Option<ServerTls>>,
    limits: Mutex<Arc<ServerLimits>>,
    first: Mutex<Option<Socket>>,
    addresses: Arc<Addresses>,
    listening: Mutex<Vec<Arc<Listening>>>,
}

/// What the connections of one listener on one worker share.
pub(crate) struct Listening {
    /// For connections from now on; each keeps those that it began with.
    pub(crate) limits: Mutex<Arc<ServerLimits>>,
    pub(crate) counters: ServerCounters,
    worker: usize,
    pub(crate) local: SocketAddr,
    /// See `limits`.
    tls: Mutex<Option<ServerTls>>,
    draining: AtomicBool,
    /// Connections are accepted, those that waited when the drain began included.
    accepting: AtomicBool,
    /// When the drain ends.
    end: OnceLock<Instant>,
    /// The acceptor shall look at `draining`.
    drain: Notify,
    /// A connection ended, or the acceptor did.
    freed: Notify,
    addresses: Arc<Addresses>,
    open: Mutex<HashMap<u64, Arc<Conn>>>,
}

/// How long connections that are cut may take to end.
const CUTTING: Duration = Duration::from_millis(500);

impl Listening {
    /// Waits until no connection is open and none can come, at most until then; whether that is so.
    async fn closed(&self, end: Instant) -> bool {
        while !self.is_closed() {
            // The acceptor waits for the same sign, and only one is told: look again now and then.
            let next = end.min(Instant::now() + Duration::from_millis(50));
            let freed = tokio::time::timeout_at(next, self.freed.notified()).await;
            if freed.is_err() && Instant::now() >= end {
                return self.is_closed();
            }
        }
        true
    }

    fn is_closed(&self) -> bool {
        // In this order: what is accepted is counted before the acceptor ends.
        !self.accepting.load(Acquire) && self.counters.open.get() == 0
    }
}

impl Listening {
    #[cfg(feature = "simulation")]
    pub(crate) fn open(&self) -> &Mutex<HashMap<u64, Arc<Conn>>> {
        &self.open
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Relaxed)
    }

    /// When the drain that has begun ends.
    pub(crate) fn end_of_drain(&self) -> Instant {
        *self.end.get_or_init(Instant::now)
    }

    /// The acceptor has ended.
    pub(crate) fn accepts_no_more(&self) {
        self.accepting.store(false, Release);
        self.freed.notify_one();
    }

    pub(crate) fn limits(&self) -> Arc<ServerLimits> {
        lock(&self.limits).clone()
    }
}

/// How a drain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Connections that were cut because the deadline came.
    pub cut: u64,
}

impl Server {
    /// Binds the address (port 0 picks a free port). Connections wait in the backlog until
    /// [`serve`](Server::serve). A port that somebody listens on is an error of kind AddrInUse.
    pub fn bind(addr: SocketAddr, tls: Option<ServerTls>, limits: ServerLimits) -> io::Result<Server> {
        // Sockets with SO_REUSEPORT of the same user share a port without a word, another instance of this
        // very program for one. A socket without it finds them, if they do not look at the same moment.
        let turn = if addr.port() == 0 { None } else { Some(turn(addr.port())?) };
        if turn.is_some() {
            listen(addr, false, 1)?;
        }
        let first = listen(addr, true, limits.backlog)?;
        drop(turn);
        let local = first.local_addr()?.as_socket().ok_or(io::ErrorKind::Unsupported)?;
        Ok(Server {
            local,
            tls: Mutex::new(tls),
            limits: Mutex::new(Arc::new(limits)),
            first: Mutex::new(Some(first)),
            addresses: Arc::default(),
            listening: Mutex::default(),
        })
    }

    /// The address it is bound to.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Accepts on every worker; returns at once. To be called once.
    pub fn serve<H: Handler>(&self, workers: &Workers, handler: Arc<H>) -> io::Result<()> {
        let mut first = lock(&self.first).take();
        if first.is_none() {
            return Err(io::Error::other("the listener is already serving or drained"));
        }
        let limits = lock(&self.limits).clone();
        for (worker, runtime) in workers.handles().iter().enumerate() {
            let socket = match first.take() {
                Some(socket) => socket,
                None => listen(self.local, true, limits.backlog)?,
            };
            let listening = self.listening(worker);
            let listener = {
                let _entered = runtime.enter();
                TcpListener::from_std(socket.into())?
            };
            listening.accepting.store(true, Release);
            runtime.spawn(accept(listening, listener, handler.clone()));
        }
        Ok(())
    }

    /// Replaces certificate, key and client verification: connections that are accepted from now on use the new ones, those
    /// that are open go on as they are. Has no effect on a listener without TLS, which stays one.
    pub fn set_tls(&self, tls: ServerTls) {
        let mut current = lock(&self.tls);
        if current.is_none() {
            return;
        }
        for listening in lock(&self.listening).iter() {
            *lock(&listening.tls) = Some(tls.clone());
        }
        *current = Some(tls);
    }

    /// Replaces the limits, for connections that are accepted from now on. `backlog` stays what it was.
    pub fn set_limits(&self, limits: ServerLimits) {
        let limits = Arc::new(limits);
        let mut current = lock(&self.limits);
        for listening in lock(&self.listening).iter() {
            *lock(&listening.limits) = limits.clone();
            // The acceptor may wait for a place under the old limit.
            listening.freed.notify_one();
        }
        *current = limits;
    }

    /// Makes what the connections of a worker share.
    fn listening(&self, worker: usize) -> Arc<Listening> {
        let listening = Arc::new(Listening {
            limits: Mutex::new(lock(&self.limits).clone()),
            counters: ServerCounters::default(),
            worker,
            local: self.local,
            tls: Mutex::new(lock(&self.tls).clone()),
            draining: AtomicBool::new(false),
            accepting: AtomicBool::new(false),
            end: OnceLock::new(),
            drain: Notify::new(),
            freed: Notify::new(),
            addresses: self.addresses.clone(),
            open: Mutex::default(),
        });
        lock(&self.listening).push(listening.clone());
        listening
    }

    /// A server that binds nothing; its connections come by [`crate::simulation::accept`].
    #[cfg(feature = "simulation")]
    pub fn simulated(local: SocketAddr, limits: ServerLimits) -> Server {
        let server = Server {
            local,
            tls: Mutex::new(None),
            limits: Mutex::new(Arc::new(limits)),
            first: Mutex::default(),
            addresses: Arc::default(),
            listening: Mutex::default(),
        };
        server.listening(0);
        server
    }

    #[cfg(feature = "simulation")]
    pub(crate) fn simulated_listening(&self) -> Arc<Listening> {
        lock(&self.listening)[0].clone()
    }

    /// Accepts the connections that wait and no others, closes idle ones, lets requests in flight finish with `Connection: close`, and
    /// cuts what is still open at the deadline.
    pub async fn drain(&self, deadline: Duration) -> Drained {
        drop(lock(&self.first).take());
        let listeners = lock(&self.listening).clone();
        let end = Instant::now() + deadline;
        for listening in &listeners {
            // The first drain says when.
            let _ = listening.end.set(end);
            listening.draining.store(true, Relaxed);
            listening.drain.notify_one();
            lock(&listening.open).values().for_each(|conn| conn.wake());
        }
        let mut cut = 0;
        for listening in &listeners {
            if !listening.closed(end).await {
                let open = lock(&listening.open);
                cut += open.len() as u64;
                open.values().for_each(|conn| conn.cut());
            }
        }
        if cut > 0 {
            // Their workers end them, and record what they were.
            let end = Instant::now() + CUTTING;
            for listening in &listeners {
                listening.closed(end).await;
            }
        }
        Drained { cut }
    }

    /// Counters of all workers together.
    pub fn stats(&self) -> ServerStats {
        let mut sum = ServerStats::default();
        for listening in lock(&self.listening).iter() {
            listening.counters.add_to(&mut sum);
        }
        sum
    }
}

/// The turn to look at a port and take it: a name that one process of this network namespace can have at a time.
fn turn(port: u16) -> io::Result<UnixListener> {
    let name = UnixAddr::from_abstract_name(format!("busbar takes port {port}"))?;
    let mut tries = 0;
    loop {
        match UnixListener::bind_addr(&name) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries < 200 => tries += 1,
            turn => return turn,
        }
        std::thread::sleep(Duration::from_millis(5)); // the other needs microseconds
    }
}

fn listen(addr: SocketAddr, shared: bool, backlog: u32) -> io::Result<Socket> {
    let socket =
        Socket::new(Domain::for_address(addr), Type::STREAM.nonblocking().cloexec(), Some(Protocol::TCP))?;
    if addr.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    socket.bind(&addr.into())?;
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
    Ok(socket)
}

/// Starts the task of a connection.
pub(crate) fn start<H: Handler>(
    listening: &Arc<Listening>,
    stream: TcpStream,
    peer: SocketAddr,
    handler: Arc<H>,
) {
    let most = listening.limits().connections_per_address;
    let of_address = match most {
        0 => None,
        most => match listening.addresses.enter(peer.ip(), most) {
            Ok(place) => Some(place),
            Err(TooMany(report)) => {
                listening.counters.accepted.add(1);
                listening.counters.refused.add(1);
                if let Some(refused) = report {
                    let why = "connections are closed at once: their address has as many as it may";
                    tracing::warn!(address = %peer.ip(), most, refused, listener = %listening.local, "{why}");
                }
                return;
            }
        },
    };
    // Fails only on a socket that is already dead, which shows at once.
    let _ = stream.set_nodelay(true);
    let local = match listening.local.ip().is_unspecified() {
        true => stream.local_addr().unwrap_or(listening.local),
        false => listening.local,
    };
    let mut open = Open::new(listening);
    open._of_address = of_address;
    let mut info = ConnectionInfo { id: open.id, peer, local, worker: listening.worker, tls: None };
    tokio::spawn(async move {
        let listening = &open.listening;
        let limits = listening.limits();
        let Some((read, write, tls, http2)) = handshake(listening, &limits, stream, peer).await else {
            listening.counters.failed.add(1);
            return;
        };
        info.tls = tls;
        let conn = Conn::new(write, None);
        lock(&listening.open).insert(open.id, conn.clone());
        if http2 {
            return begin_http2(open, conn, read, Vec::new(), limits, info, handler);
        }
        let incoming = Incoming::new(read, conn.clone(), limits.io_buffer_size, limits.half_close);
        match crate::serve::serve(listening, &limits, incoming, &info, &*handler).await {
            None => {}
            Some(next) => go_on(open, conn, next, limits, info, handler),
        }
    });
}

/// Goes on in another protocol.
pub(crate) fn go_on<H: Handler>(
    open: Open,
    conn: Arc<Conn>,
    next: Next,
    limits: Arc<ServerLimits>,
    info: ConnectionInfo,
    handler: Arc<H>,
) {
    match next {
        Next::Http2(incoming) => {
            let (read, received) = incoming.into_half();
            begin_http2(open, conn, read, received, limits, info, handler);
        }
        Next::Tunnel(tunnel) => {
            tokio::spawn(crate::tunnel::run(open, *tunnel, limits, info, handler));
        }
        Next::Dialogue(opening) => {
            tokio::spawn(crate::dialogue::run(open, *opening, limits, info));
        }
    }
}

fn begin_http2<H: Handler>(
    open: Open,
    conn: Arc<Conn>,
    read: ReadHalf,
    received: Vec<u8>,
    limits: Arc<ServerLimits>,
    info: ConnectionInfo,
    handler: Arc<H>,
) {
    let writer = lock(&conn.writer).take();
    let duplex = Duplex::new(read, writer, received.into(), true, limits.write);
    tokio::spawn(crate::http2::serve::serve(open, conn, duplex, limits, info, handler));
}

/// The connection, what TLS says of it, and whether it speaks HTTP/2.
type Halves = (ReadHalf, WriteHalf, Option<Arc<TlsInfo>>, bool);

async fn handshake(
    listening: &Listening,
    limits: &ServerLimits,
    stream: TcpStream,
    peer: SocketAddr,
) -> Option<Halves> {
    let tls = lock(&listening.tls).clone();
    let Some(tls) = tls else {
        let (read, write) = split_plain(stream);
        return Some((read, write, None, false));
    };
    let acceptor = TlsAcceptor::from(tls.config.clone());
    match tokio::time::timeout(limits.handshake, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => {
            if let Err(why) = tls.check(stream.get_ref().1).await {
                tracing::debug!(%peer, "the certificate of the client is refused: {why}");
                return None;
            }
            let info = Arc::new(TlsInfo::of(stream.get_ref().1));
            let http2 = stream.get_ref().1.alpn_protocol() == Some(crate::http2::ALPN);
            let (read, write) = split_tls(stream.into());
            Some((read, write, Some(info), http2))
        }
        Ok(Err(error)) => {
            tracing::debug!(%error, %peer, "TLS handshake failed");
            None
        }
        Err(_) => {
            tracing::debug!(%peer, "TLS handshake timed out");
            None
        }
    }
}

/// Counts a connection, whatever way its task ends.
pub(crate) struct Open {
    listening: Arc<Listening>,
    id: u64,
    _descriptor: Descriptor,
    _of_address: Option<OfAddress>,
}

impl Open {
    pub(crate) fn new(listening: &Arc<Listening>) -> Open {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        listening.counters.accepted.add(1);
        listening.counters.open.add(1);
        let id = NEXT.fetch_add(1, Relaxed);
        Open { listening: listening.clone(), id, _descriptor: Descriptor::of_client(), _of_address: None }
    }

    pub(crate) fn listening(&self) -> &Arc<Listening> {
        &self.listening
    }

    /// Number of the connection.
    #[cfg(feature = "simulation")]
    pub(crate) fn id(&self) -> u64 {
        self.id
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        lock(&self.listening.open).remove(&self.id);
        self.listening.counters.open.sub(1);
        self.listening.freed.notify_one();
    }
}
