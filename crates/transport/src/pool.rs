//! Idle connections, per worker and target.
//!
//! A worker (any thread) has its own shard, so that a connection is used by the event loop that made it. Another thread
//! takes the lock of a shard only to close idle connections and to count. A sweep once a second closes what is too old or was
//! closed by the backend. How many connections
//! a target has in all workers together is bounded ([`places`](crate::places)).

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::clock;
use crate::connection::{Incoming, lock};
use crate::descriptors::Descriptor;
use crate::http2::session::Sessions;
use crate::places::{Place, Places};
use crate::resolve::Resolver;
use crate::rounds;
use crate::stats::ClientCounters;
use crate::timer::after;
use crate::{ClientLimits, ClientStats, Target};

/// The pools of one client.
pub(crate) struct Pools {
    id: u64,
    pub(crate) limits: ClientLimits,
    pub(crate) places: Places,
    pub(crate) resolver: Arc<Resolver>,
    shards: Mutex<Vec<Arc<Shard>>>,
}

/// The pools of one client on one thread.
pub(crate) struct Shard {
    /// See [`this_thread`].
    thread: u64,
    limits: ClientLimits,
    idle: Mutex<HashMap<Target, Vec<Idle>, BuildHasherDefault<Hashed>>>,
    /// Requests of this thread that wait for a connection.
    waiting: Mutex<HashMap<Target, VecDeque<Handover>, BuildHasherDefault<Hashed>>>,
    /// Connections that speak HTTP/2.
    pub(crate) sessions: Sessions,
    /// A [`sweep`] runs.
    swept: AtomicBool,
    pub(crate) counters: ClientCounters,
}

type Handover = oneshot::Sender<Box<Incoming>>;

struct Idle {
    incoming: Box<Incoming>,
    since: Instant,
    /// In which it came home ([`rounds`]).
    round: u64,
}

thread_local! {
    static MINE: RefCell<Vec<(u64, Arc<Shard>)>> = const { RefCell::new(Vec::new()) };
}

/// A number of this thread; asking for its ThreadId costs two atomic operations.
fn this_thread() -> u64 {
    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(0) };
    }
    static LAST: AtomicU64 = AtomicU64::new(0);
    let new = || LAST.fetch_add(1, Relaxed) + 1;
    NUMBER
        .try_with(|number| {
            if number.get() == 0 {
                number.set(new());
            }
            number.get()
        })
        .unwrap_or_else(|_| new())
}

impl Pools {
    pub(crate) fn new(limits: ClientLimits) -> Arc<Pools> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let places = Places::new(limits.connections, limits.waiting);
        let resolver = Resolver::new(limits.names, limits.unknown_names);
        let id = NEXT.fetch_add(1, Relaxed);
        Arc::new(Pools { id, limits, places, resolver, shards: Mutex::default() })
    }

    /// Does something with the shard of this thread, without taking a share in it.
    pub(crate) fn with_shard<T>(&self, work: impl FnOnce(&Shard) -> T) -> T {
        let mut work = Some(work);
        let done = MINE.try_with(|mine| {
            let mine = mine.borrow();
            let (_, shard) = mine.iter().find(|(id, _)| *id == self.id)?;
            work.take().map(|work| work(shard))
        });
        match (done, work) {
            (Ok(Some(done)), _) => done,
            (_, Some(work)) => work(&self.shard()),
            (_, None) => unreachable!("work is only taken to be done"),
        }
    }

    /// The shard of this thread.
    pub(crate) fn shard(&self) -> Arc<Shard> {
        let mine = MINE.try_with(|mine| {
            mine.borrow().iter().find(|(id, _)| *id == self.id).map(|(_, shard)| shard.clone())
        });
        if let Ok(Some(shard)) = mine {
            return shard;
        }
        let shard = Arc::new(Shard {
            thread: this_thread(),
            limits: self.limits.clone(),
            idle: Mutex::default(),
            waiting: Mutex::default(),
            sessions: Sessions::default(),
            swept: AtomicBool::new(false),
            counters: ClientCounters::default(),
        });
        lock(&self.shards).push(shard.clone());
        let _ = MINE.try_with(|mine| {
            let mut mine = mine.borrow_mut();
            mine.retain(|(_, shard)| Arc::strong_count(shard) > 1); // those of clients that are gone
            mine.push((self.id, shard.clone()));
        });
        shard
    }

    pub(crate) fn stats(&self) -> ClientStats {
        let mut sum = ClientStats::default();
        for shard in lock(&self.shards).iter() {
            // Counted when somebody asks, since every message would change it twice.
            let idle: usize = lock(&shard.idle).values().map(Vec::len).sum();
            let idle = idle + shard.sessions.idle();
            shard.counters.idle.set(idle as u64);
            shard.counters.add_to(&mut sum);
        }
        // A shard counts all open connections as active.
        sum.active = sum.active.saturating_sub(sum.idle);
        sum
    }

    /// Closes one idle connection to the target, on whatever worker, so that its place is free.
    pub(crate) fn close_one(&self, target: &Target) {
        for shard in lock(&self.shards).iter() {
            let idle = lock(&shard.idle).get_mut(target).and_then(Vec::pop);
            if idle.is_some() {
                return;
            }
        }
    }

    pub(crate) fn clear(&self) {
        for shard in lock(&self.shards).iter() {
            shard.evict(|_, _| false);
            shard.sessions.evict(Duration::ZERO);
        }
    }
}

impl Drop for Pools {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Shard {
    /// The connection used last among those that are fit, and of which that is known without asking the kernel where there are such.
    pub(crate) fn take(&self, target: &Target, cx: &mut Context<'_>) -> Option<Box<Incoming>> {
        let round = rounds::current();
        let mut pools = lock(&self.idle);
        let pool = pools.get_mut(target)?;
        // They came home in order, and mostly none of them in this round.
        let mut reported = match pool.last() {
            Some(last) if last.round < round => pool.len(),
            _ => pool.partition_point(|idle| idle.round < round),
        };
        while let Some(last) = pool.len().checked_sub(1) {
            let is_reported = reported > 0;
            let at = if is_reported { reported - 1 } else { last };
            reported = reported.saturating_sub(1);
            let mut incoming = pool.remove(at).incoming;
            if !incoming.is_stale(cx, is_reported) {
                self.counters.reused.bump();
                return Some(incoming);
            }
        }
        None
    }

    fn put(self: &Arc<Shard>, target: &Target, incoming: Box<Incoming>, since: Instant) {
        let idle = Idle { incoming, since, round: rounds::current() };
        let mut pools = lock(&self.idle);
        let pool = match pools.get_mut(target) {
            Some(pool) => pool,
            None => pools.entry(target.clone()).or_default(),
        };
        if pool.len() < self.limits.idle_connections {
            pool.push(idle);
        }
        drop(pools);
        self.ensure_sweeper();
    }

    /// Queues up for a connection to the target that this thread is done with.
    pub(crate) fn expect(self: &Arc<Shard>, target: &Target) -> oneshot::Receiver<Box<Incoming>> {
        let (handover, connection) = oneshot::channel();
        lock(&self.waiting).entry(target.clone()).or_default().push_back(handover);
        self.ensure_sweeper();
        connection
    }

    /// Forgets those who wait no more, and the targets that nobody waits for.
    fn forget_those_gone(&self) {
        lock(&self.waiting).retain(|_, queue| {
            queue.retain(|handover| !handover.is_closed());
            !queue.is_empty()
        });
    }

    /// Gives the connection that became idle last to who waits longest on this thread. If nobody does it is closed, and
    /// its place is free.
    fn hand_over(&self, target: &Target) {
        let idle = lock(&self.idle).get_mut(target).and_then(Vec::pop);
        let Some(Idle { mut incoming, .. }) = idle else { return };
        loop {
            let next = lock(&self.waiting).get_mut(target).and_then(VecDeque::pop_front);
            let Some(handover) = next else { break };
            match handover.send(incoming) {
                Ok(()) => return,
                Err(back) => incoming = back,
            }
        }
    }

    fn evict(&self, mut keep: impl FnMut(&mut Idle, &mut Context<'_>) -> bool) {
        let mut cx = Context::from_waker(Waker::noop());
        let mut evicted = Vec::new();
        let mut pools = lock(&self.idle);
        pools.retain(|_, pool| {
            evicted.extend(pool.extract_if(.., |idle| !keep(idle, &mut cx)));
            !pool.is_empty()
        });
        // Closed outside the lock.
        drop(pools);
    }

    /// Starts the sweep on the runtime of this thread, again if that runtime was replaced.
    pub(crate) fn ensure_sweeper(self: &Arc<Shard>) {
        if self.swept.load(Relaxed) {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            self.swept.store(true, Relaxed);
            runtime.spawn(sweep(Sweeping(Arc::downgrade(self))));
        }
    }
}

/// Says that the sweep has ended, also when its runtime ends.
struct Sweeping(Weak<Shard>);

impl Drop for Sweeping {
    fn drop(&mut self) {
        if let Some(shard) = self.0.upgrade() {
            shard.swept.store(false, Relaxed);
        }
    }
}

async fn sweep(sweeping: Sweeping) {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let Some(shard) = sweeping.0.upgrade() else { return };
        let now = Instant::now();
        let longest = shard.limits.idle;
        shard
            .evict(|idle, cx| now.duration_since(idle.since) < longest && !idle.incoming.is_stale(cx, false));
        shard.sessions.evict(longest);
        shard.forget_those_gone();
        if lock(&shard.idle).is_empty() && shard.sessions.is_empty() && Arc::strong_count(&shard) <= 2 {
            return; // only the thread and this task know the shard: its client is gone
        }
    }
}

/// What a connection to a backend knows of its pool.
pub(crate) struct ClientSide {
    shard: Arc<Shard>,
    target: Target,
    /// When it is too old to be kept.
    expires: Instant,
    place: Place,
    _descriptor: Descriptor,
}

impl ClientSide {
    pub(crate) fn new(shard: Arc<Shard>, target: Target, place: Place, descriptor: Descriptor) -> ClientSide {
        shard.counters.created.add(1);
        shard.counters.active.add(1);
        let expires = after(clock::now(), shard.limits.lifetime);
        ClientSide { shard, target, expires, place, _descriptor: descriptor }
    }

    /// The target of the connection.
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// A message is done with; the connection is kept if it is fit for another one.
    pub(crate) fn come_home(&self, mut incoming: Box<Incoming>) {
        if incoming.upload.is_some() && incoming.is_done() {
            return finish_upload(incoming);
        }
        let now = clock::now();
        let fit = incoming.reusable
            && self.place.may_be_kept()
            && incoming.upload.is_none()
            && incoming.is_done()
            && !incoming.has_more()
            && now < self.expires
            && this_thread() == self.shard.thread;
        if fit {
            incoming.next_message();
            incoming.reusable = false;
            self.shard.put(&self.target, incoming, now);
            // Asked when it can be found: who begins to wait now finds it, who did before is seen here.
            if self.place.is_wanted() {
                self.shard.hand_over(&self.target);
            }
        }
    }
}

impl Drop for ClientSide {
    fn drop(&mut self) {
        self.shard.counters.active.sub(1);
    }
}

/// The response was complete before the request: the backend, which has accepted it, gets the rest all the same. Whose
/// body it is waits for that, or hears of the failure when it reads on.
fn finish_upload(mut incoming: Box<Incoming>) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    runtime.spawn(async move {
        if poll_fn(|cx| incoming.poll_upload(cx)).await.is_ok() {
            drop(incoming.into_body());
        }
    });
}

/// A target carries its own hash.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*b);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
