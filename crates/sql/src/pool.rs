//! Pools of connections: limits, deadlines, validation, and statistics.

use crate::driver::{Connection, Outcome, Sink};
use crate::error::{Error, Reason};
use crate::parameter::Parameter;
use crate::source::{Options, Source};
use crate::statement::Statement;
use crate::time_slice::TimeSlice;
use crate::url::{Dialect, Target};
use crate::value::Row;
use files::places::begin;
use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::thread::ThreadId;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The pools of the process, by their settings: the same settings give the same pool, also after a reload. A pool that nobody
/// holds any more is dropped, with its connections.
#[derive(Default)]
pub struct Pools(Mutex<HashMap<Key, Weak<Pool>>>);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    Settings(Box<Source>),
    /// The in-memory databases of the process, by name: a name means one database.
    Memory(Target),
}

impl Pools {
    /// The pool of a data source. `name` is its label in metrics; the first one counts.
    pub fn get(&self, name: &str, source: Source) -> Arc<Pool> {
        let mut pools = lock(&self.0);
        pools.retain(|_, pool| pool.strong_count() > 0);
        let key = if source.target.is_in_memory() {
            Key::Memory(source.target.clone())
        } else {
            Key::Settings(Box::new(source.clone()))
        };
        if let Some(pool) = pools.get(&key).and_then(Weak::upgrade) {
            return pool;
        }
        let pool = Arc::new(Pool::new(name, source));
        pools.insert(key, Arc::downgrade(&pool));
        pool
    }

    /// All pools in use, by their names.
    pub fn all(&self) -> Vec<Arc<Pool>> {
        let mut all: Vec<Arc<Pool>> = lock(&self.0).values().filter_map(Weak::upgrade).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }
}

/// The connections to one database.
pub struct Pool {
    name: String,
    source: Source,
    places: Arc<Semaphore>,
    idle: Mutex<Vec<Idle>>,
    counts: Counts,
    health: Mutex<Health>,
    /// Counts broken connections: older connections are validated before they are used again.
    doubts: AtomicU64,
    validation_is_refused: AtomicBool,
    /// A connection was returned or closed.
    returned: Notify,
    /// The server allows no more connections than there are, until then as far as is known.
    full: Mutex<Option<Instant>>,
    /// The server's numbers of connections that were closed while a statement ran on them, until that is ended.
    ending: Mutex<Vec<u64>>,
}

struct Idle {
    connection: Connection,
    made: Instant,
    since: Instant,
    /// The value of [`Pool::doubts`] when the connection was last known to work.
    sure: u64,
    /// The thread of its event loop, from which it is cheapest to use.
    home: ThreadId,
}

#[derive(Default)]
struct Counts {
    in_use: AtomicUsize,
    waiting: AtomicUsize,
    leases: AtomicU64,
    waited: AtomicU64,
    waited_micros: AtomicU64,
    opened: AtomicU64,
    closed: AtomicU64,
    failed: AtomicU64,
    statements: AtomicU64,
    errors: AtomicU64,
}

#[derive(Default)]
struct Health {
    state: State,
    last_error: String,
}

/// The last known state of a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// It was not used yet.
    #[default]
    Unused,
    /// The last connection worked.
    Up,
    /// The last attempt to connect failed.
    Down,
}

impl State {
    /// As a word.
    pub fn word(self) -> &'static str {
        match self {
            State::Unused => "unused",
            State::Up => "up",
            State::Down => "down",
        }
    }
}

/// The statistics of a pool.
#[derive(Clone, Debug)]
pub struct Status {
    /// The state of the database.
    pub state: State,
    /// The last error; empty when it is up.
    pub last_error: String,
    /// Most connections.
    pub most: usize,
    /// Connections in use.
    pub in_use: usize,
    /// Idle connections.
    pub idle: usize,
    /// Messages that wait for a connection.
    pub waiting: usize,
    /// How often a connection was lent.
    pub leases: u64,
    /// How often somebody waited for one, and how long in all.
    pub waits: (u64, Duration),
    /// Connections that were opened, closed, and failed to open.
    pub opened: (u64, u64, u64),
    /// Statements that were run, and that failed.
    pub statements: (u64, u64),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    fn new(name: &str, source: Source) -> Pool {
        // Each connection to memory would have a database for itself.
        let most = if source.target.is_in_memory() { 1 } else { source.options.most.max(1) };
        Pool {
            name: name.to_owned(),
            places: Arc::new(Semaphore::new(most)),
            idle: Mutex::default(),
            counts: Counts::default(),
            health: Mutex::default(),
            doubts: AtomicU64::new(0),
            validation_is_refused: AtomicBool::new(false),
            returned: Notify::new(),
            full: Mutex::default(),
            ending: Mutex::default(),
            source,
        }
    }

    /// The label in metrics.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The target of its URL.
    pub fn target(&self) -> &Target {
        &self.source.target
    }

    /// The dialect of its database.
    pub fn dialect(&self) -> Dialect {
        self.source.target.dialect
    }

    /// Most bytes of one value that can be read.
    pub fn largest_value(&self) -> usize {
        self.source.options.longest
    }

    /// Whether statements are committed when they have run.
    pub fn autocommit(&self) -> bool {
        self.source.options.autocommit
    }

    /// The time limit of a statement: that of the data source, or its own if that is shorter.
    fn longest(&self, of_statement: Option<Duration>) -> Duration {
        let longest = self.source.options.query_timeout.min(Options::LONGEST);
        of_statement.map_or(longest, |time| time.min(longest))
    }

    fn most(&self) -> usize {
        if self.source.target.is_in_memory() { 1 } else { self.source.options.most.max(1) }
    }

    /// The present statistics.
    pub fn status(&self) -> Status {
        let counts = &self.counts;
        let health = lock(&self.health);
        Status {
            state: health.state,
            last_error: health.last_error.clone(),
            most: self.most(),
            in_use: counts.in_use.load(Relaxed),
            idle: lock(&self.idle).len(),
            waiting: counts.waiting.load(Relaxed),
            leases: counts.leases.load(Relaxed),
            waits: (counts.waited.load(Relaxed), Duration::from_micros(counts.waited_micros.load(Relaxed))),
            opened: (counts.opened.load(Relaxed), counts.closed.load(Relaxed), counts.failed.load(Relaxed)),
            statements: (counts.statements.load(Relaxed), counts.errors.load(Relaxed)),
        }
    }

    /// Lends a connection: an idle or a new one.
    ///
    /// # Errors
    /// All are in use for longer than the longest wait, or the database cannot be reached.
    pub async fn get(self: &Arc<Pool>) -> Result<Lease, Error> {
        let place = self.place().await?;
        let mut lease = Lease {
            pool: Arc::clone(self),
            connection: None,
            made: Instant::now(),
            in_transaction: false,
            has_failed: false,
            taken_back: None,
            is_busy: false,
            is_retired: false,
            _place: place,
        };
        self.counts.in_use.fetch_add(1, Relaxed);
        self.counts.leases.fetch_add(1, Relaxed);
        let end = Instant::now() + self.source.options.wait.min(Options::LONGEST);
        loop {
            let begun = Instant::now();
            // One time for all idle connections: to wait for each of them that does not answer would take too long.
            let until = begun + self.validation_time();
            while let Some(idle) = self.take() {
                let doubted = idle.sure != self.doubts.load(Relaxed);
                let validation = self.source.options.validation;
                let is_due = doubted || validation.is_some_and(|after| idle.since.elapsed() >= after);
                // There is no other connection to a database in memory.
                let ask = is_due && !self.source.target.is_in_memory();
                lease.made = idle.made;
                let is_current = idle.connection.is_current();
                lease.connection = Some(idle.connection);
                let works = match ask {
                    _ if !is_current => Works::No,
                    true => lease.works(until).await,
                    false => Works::Yes,
                };
                if works == Works::Yes {
                    return Ok(lease);
                }
                lease.close();
                if works == Works::Late {
                    self.close_idle();
                    break;
                }
            }
            let returned = self.returned.notified();
            if let Some(until) = self.full_until(begun, end) {
                // Whether one was returned or not, it is looked for again.
                let _ = tokio::time::timeout_at(until.into(), returned).await;
                continue;
            }
            // What the validation took is part of the time for a connection.
            let left = self.source.options.connect_timeout.saturating_sub(begun.elapsed());
            let error = match self.open(left).await {
                Ok(connection) => {
                    *lock(&self.full) = None;
                    lease.made = Instant::now();
                    lease.connection = Some(connection);
                    return Ok(lease);
                }
                Err(error) => error,
            };
            // The server allows fewer connections than this pool: wait for one of the present ones.
            if error.is_full() {
                let now = Instant::now();
                *lock(&self.full) = Some(now + FULL);
                if self.full_until(now, end).is_some() {
                    continue;
                }
            }
            let mut health = lock(&self.health);
            if health.state != State::Down {
                tracing::warn!(target: "busbar::sql", "data source {}: {}", self.name, error.detail());
            }
            *health = Health { state: State::Down, last_error: error.detail() };
            return Err(error);
        }
    }

    /// Until when to wait for a connection that is returned, at most to `end`, since the server allows no other one. `None`: one may be opened.
    fn full_until(&self, now: Instant, end: Instant) -> Option<Instant> {
        let mut full = lock(&self.full);
        let until = (*full)?;
        if now >= end || self.counts.in_use.load(Relaxed) <= 1 {
            return None;
        }
        if now >= until {
            // The one who asks for it tries, for all.
            *full = Some(now + FULL);
            return None;
        }
        Some(until.min(end))
    }

    /// How long idle connections have to show that they work: a part of the time for a connection, so that a new one can be made.
    fn validation_time(&self) -> Duration {
        (self.source.options.connect_timeout / 2).min(Duration::from_secs(5))
    }

    /// Says once that the database refuses the query: each connection is closed then where the next request would use it.
    fn warn_of_validation(&self, error: &Error) {
        if !self.validation_is_refused.swap(true, Relaxed) {
            tracing::warn!(target: "busbar::sql", "data source {}: validationQuery: {}", self.name, error.detail());
        }
    }

    /// Closes the idle connections.
    fn close_idle(&self) {
        let idle = std::mem::take(&mut *lock(&self.idle));
        self.counts.closed.fetch_add(idle.len() as u64, Relaxed);
    }

    /// Opens a connection, within the timeout.
    async fn open(&self, timeout: Duration) -> Result<Connection, Error> {
        let late = || {
            let message = format!(
                "there is no connection to {} within {} s",
                self.source.target,
                timeout.as_secs_f32()
            );
            Error::new(Reason::Unavailable, message)
        };
        match within(timeout, Box::pin(Connection::open(&self.source)), late).await {
            Ok(connection) => {
                self.counts.opened.fetch_add(1, Relaxed);
                let mut health = lock(&self.health);
                if health.state == State::Down {
                    tracing::info!(target: "busbar::sql", "data source {}: {} answers again", self.name, self.source.target);
                }
                *health = Health { state: State::Up, last_error: String::new() };
                Ok(connection)
            }
            Err(error) => {
                self.counts.failed.fetch_add(1, Relaxed);
                Err(Error { reason: Reason::Unavailable, ..error })
            }
        }
    }

    /// Waits for a permit.
    async fn place(&self) -> Result<OwnedSemaphorePermit, Error> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Ok(place);
        }
        struct Waits<'a>(&'a Counts, Instant);
        impl Drop for Waits<'_> {
            fn drop(&mut self) {
                self.0.waiting.fetch_sub(1, Relaxed);
                self.0.waited.fetch_add(1, Relaxed);
                self.0.waited_micros.fetch_add(self.1.elapsed().as_micros() as u64, Relaxed);
            }
        }
        self.counts.waiting.fetch_add(1, Relaxed);
        let _waits = Waits(&self.counts, Instant::now());
        let wait = self.source.options.wait;
        let busy = || {
            let message = format!(
                "all {} connections to {} are in use, and none came free within {} s",
                self.most(),
                self.source.target,
                wait.as_secs_f32()
            );
            Error::new(Reason::Unavailable, message)
        };
        match tokio::time::timeout(wait, Arc::clone(&self.places).acquire_owned()).await {
            Ok(Ok(place)) => Ok(place),
            _ => Err(busy()),
        }
    }

    /// An idle connection: the one that was used last, preferably of this thread.
    fn take(&self) -> Option<Idle> {
        let thread = std::thread::current().id();
        let mut idle = lock(&self.idle);
        let at = idle.iter().rposition(|idle| idle.home == thread).or_else(|| idle.len().checked_sub(1))?;
        Some(idle.remove(at))
    }

    /// Takes a connection back.
    fn give_back(&self, connection: Connection, made: Instant) {
        let now = Instant::now();
        let options = &self.source.options;
        let in_memory = self.source.target.is_in_memory();
        let is_old = options.age.is_some_and(|age| now.duration_since(made) >= age);
        let mut old = Vec::new();
        let mut idle = lock(&self.idle);
        if !in_memory {
            // Each use of the pool closes connections that were idle for too long.
            let kept = idle.partition_point(|idle| now.duration_since(idle.since) >= options.idle_time);
            old.extend(idle.drain(..kept));
        }
        let is_full = idle.len() >= options.most_idle.min(self.most());
        if in_memory || !(is_old || is_full) {
            let sure = self.doubts.load(Relaxed);
            idle.push(Idle { connection, made, since: now, sure, home: std::thread::current().id() });
        } else {
            self.counts.closed.fetch_add(1, Relaxed);
        }
        drop(idle);
        self.counts.closed.fetch_add(old.len() as u64, Relaxed);
        drop(old);
        self.returned.notify_one();
    }
}

impl Pool {
    /// Closes a connection in an unknown state. A database in memory would be lost with it: there the running statement is cancelled,
    /// and the transaction rolled back. `is_busy`: a statement was running.
    fn give_up(self: &Arc<Pool>, connection: Connection, made: Instant, is_busy: bool) {
        if self.source.target.is_in_memory() {
            connection.abandon();
            self.give_back(connection, made);
        } else {
            self.counts.closed.fetch_add(1, Relaxed);
            let number = connection.number().filter(|_| is_busy);
            drop(connection);
            self.returned.notify_one();
            if let Some(number) = number {
                self.end(number);
            }
        }
    }

    /// Ends the statement of a connection that was closed, over another connection: MySQL would run it to its end, and each message that is given up would
    /// leave one behind, beyond the limit of this pool.
    fn end(self: &Arc<Pool>, number: u64) {
        let Ok(runtime) = Handle::try_current() else { return };
        let mut ending = lock(&self.ending);
        if ending.len() < MOST_ENDING {
            ending.push(number);
        }
        // The others are ended by whoever ends the first one.
        if ending.len() == 1 {
            let pool = Arc::clone(self);
            drop(ending);
            if begin(move || runtime.block_on(pool.end_all())).is_err() {
                lock(&self.ending).clear();
                tracing::debug!(target: "busbar::sql", "data source {}: statements that were given up may run on: the system gives the process no more threads", self.name);
            }
        }
    }

    async fn end_all(&self) {
        let timeout = self.source.options.connect_timeout.min(Duration::from_secs(5));
        let mut helper = within(timeout, Connection::open(&self.source), || late(self, timeout)).await;
        loop {
            let number = lock(&self.ending).first().copied();
            let ended = match (&mut helper, number) {
                (Ok(helper), Some(number)) => {
                    let kill = format!("KILL {number}");
                    within(timeout, helper.execute(&kill), || late(self, timeout)).await
                }
                (Err(error), _) => Err(error.clone()),
                (_, None) => return,
            };
            if let Err(error) = ended {
                // Mostly the connection is gone by itself.
                tracing::debug!(target: "busbar::sql", "data source {}: a statement that was given up may run on: {}", self.name, error.detail());
            }
            let mut ending = lock(&self.ending);
            match helper {
                Ok(_) => _ = ending.remove(0),
                Err(_) => ending.clear(),
            }
            if ending.is_empty() {
                return;
            }
        }
    }
}

/// How long a pool asks for no other connection where the server allows no more.
const FULL: Duration = Duration::from_millis(500);

/// So old is a connection at least that is closed because its server only reads.
const RETIRED: Duration = Duration::from_secs(1);

/// Most statements that wait to be ended.
const MOST_ENDING: usize = 1000;

/// A lent connection. Dropping it returns it; during a statement or a transaction it is closed.
pub struct Lease {
    pool: Arc<Pool>,
    connection: Option<Connection>,
    made: Instant,
    in_transaction: bool,
    /// A statement of the transaction has failed.
    has_failed: bool,
    /// Why the database took the transaction back by itself. Without that the statements that follow would be committed one by one.
    taken_back: Option<String>,
    /// A statement is running.
    is_busy: bool,
    /// Nobody is to get the connection after this one.
    is_retired: bool,
    _place: OwnedSemaphorePermit,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.pool.counts.in_use.fetch_sub(1, Relaxed);
        match self.connection.take() {
            Some(connection) if !self.is_busy && !self.in_transaction && !self.is_retired => {
                self.pool.give_back(connection, self.made)
            }
            Some(connection) => self.pool.give_up(connection, self.made, self.is_busy),
            None => {}
        }
    }
}

impl Lease {
    /// Its pool.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Whether a transaction is open.
    pub fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    /// Runs a statement within the deadline; `rows` receives its rows and says whether it wants more. Waiting for its room does not count.
    ///
    /// # Errors
    /// The database refuses it, the deadline passes or the connection breaks, or `rows` fails.
    pub async fn run(
        &mut self,
        statement: &Statement,
        parameters: &[Parameter],
        rows: impl Sink,
    ) -> Result<Outcome, Error> {
        if statement.parameters() != parameters.len() {
            let (has, given) = (statement.parameters(), parameters.len());
            return Err(Error::new(
                Reason::Value,
                format!("the statement has {has} parameters, and {given} are given"),
            ));
        }
        self.check_taken_back()?;
        self.pool.counts.statements.fetch_add(1, Relaxed);
        let pool = Arc::clone(&self.pool);
        let connection = self.connection.as_mut().ok_or_else(closed)?;
        self.is_busy = true;
        let ran = {
            let waits = Waits::default();
            let mut rows = Timed { sink: rows, waits: &waits, slice: TimeSlice::default() };
            let mut run = pin!(connection.run(statement, parameters, &mut rows));
            let begun = Instant::now();
            // A deadline that the clock can represent: a setting may be any number.
            let longest = pool.longest(statement.longest());
            loop {
                let until = begun + longest + waits.so_far();
                match tokio::time::timeout_at(until.into(), run.as_mut()).await {
                    Ok(ran) => break ran,
                    // The receiver of the rows is slow, not the database.
                    Err(_) if begun + longest + waits.so_far() > Instant::now() => {}
                    Err(_) => break Err(late(&pool, longest)),
                }
            }
        };
        self.settle(ran)
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// As [`Lease::run`].
    pub async fn begin(&mut self) -> Result<(), Error> {
        let begin = match self.pool.dialect() {
            // A writing transaction declares that at its beginning: two that both read first would block each other.
            Dialect::Sqlite => "BEGIN IMMEDIATE",
            Dialect::MySql => "START TRANSACTION",
            Dialect::Postgres => "BEGIN",
            Dialect::SqlServer => "BEGIN TRANSACTION",
        };
        self.execute(begin).await?;
        (self.in_transaction, self.has_failed) = (true, false);
        Ok(())
    }

    fn check_taken_back(&self) -> Result<(), Error> {
        match &self.taken_back {
            Some(why) => {
                Err(Error::new(Reason::Refused, format!("the database took the transaction back: {why}")))
            }
            None => Ok(()),
        }
    }

    /// Commits the transaction.
    ///
    /// # Errors
    /// As [`Lease::run`]. The transaction is over: where it was interrupted, it may be committed or not, as the error says.
    pub async fn commit(&mut self) -> Result<(), Error> {
        if let Err(error) = self.check_taken_back() {
            self.roll_back().await?;
            return Err(error);
        }
        // PostgreSQL answers the commit of a transaction in which a statement has failed by taking it back, which it calls no error. A statement shows whether it would: there
        // may have been a savepoint.
        if self.has_failed
            && self.pool.dialect() == Dialect::Postgres
            && let Err(error) = self.execute("SELECT 1").await
        {
            if self.in_transaction {
                self.roll_back().await?;
            }
            return Err(error);
        }
        let done = self.execute("COMMIT").await.map_err(|error| match error.reason {
            Reason::Interrupted => Error {
                message: format!("{}: the transaction may be committed or not", error.message),
                ..error
            },
            _ => error,
        });
        // A connection whose transaction did not end is closed.
        self.in_transaction = done.is_err();
        done
    }

    /// Rolls the transaction back.
    ///
    /// # Errors
    /// As [`Lease::run`]. The connection is closed then, which rolls back too.
    pub async fn roll_back(&mut self) -> Result<(), Error> {
        if self.taken_back.take().is_some() {
            self.in_transaction = false;
            return Ok(());
        }
        let done = self.execute("ROLLBACK").await;
        self.in_transaction = done.is_err();
        done
    }

    async fn execute(&mut self, text: &str) -> Result<(), Error> {
        let pool = Arc::clone(&self.pool);
        let connection = self.connection.as_mut().ok_or_else(closed)?;
        self.is_busy = true;
        let longest = pool.longest(None);
        let ran = within(longest, connection.execute(text), || late(&pool, longest)).await;
        self.settle(ran)
    }

    /// Updates the connection's state by the outcome of a statement.
    fn settle<T>(&mut self, ran: Result<T, Error>) -> Result<T, Error> {
        match &ran {
            Ok(_) => self.is_busy = false,
            Err(error) => {
                self.pool.counts.errors.fetch_add(1, Relaxed);
                if error.breaks() {
                    self.pool.doubts.fetch_add(1, Relaxed);
                    self.close();
                } else {
                    self.is_busy = false;
                    self.has_failed = self.in_transaction;
                    // Its name may lead to another server meanwhile. One that is as new as that would be opened again for each statement.
                    self.is_retired |= error.is_read_only()
                        && !self.pool.source.options.read_only
                        && self.made.elapsed() >= RETIRED;
                    if self.in_transaction && error.ends_transaction {
                        self.taken_back = Some(error.detail());
                    }
                }
            }
        }
        ran
    }

    /// Whether an idle connection works.
    async fn works(&mut self, until: Instant) -> Works {
        let options = &self.pool.source.options;
        let Some(connection) = self.connection.as_mut() else { return Works::No };
        self.is_busy = true;
        let asked = match &options.validation_query {
            Some(query) => tokio::time::timeout_at(until.into(), connection.execute(query)).await,
            None => tokio::time::timeout_at(until.into(), connection.ping()).await,
        };
        self.is_busy = asked.is_err();
        match asked {
            Ok(Ok(())) => Works::Yes,
            Ok(Err(error)) => {
                if options.validation_query.is_some() && !error.breaks() {
                    self.pool.warn_of_validation(&error);
                }
                Works::No
            }
            Err(_) => Works::Late,
        }
    }

    /// Closes the connection.
    fn close(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.give_up(connection, self.made, self.is_busy);
        }
        self.in_transaction = false;
        self.taken_back = None;
        self.is_busy = false;
    }
}

/// What an idle connection says when it is asked whether it works.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Works {
    Yes,
    No,
    /// Nothing, for too long.
    Late,
}

/// How long the receiver of rows had no room.
#[derive(Default)]
struct Waits {
    /// Microseconds of finished waits.
    over: AtomicU64,
    /// The beginning of the present wait.
    since: Mutex<Option<Instant>>,
}

impl Waits {
    fn so_far(&self) -> Duration {
        let now = lock(&self.since).map_or(Duration::ZERO, |since| since.elapsed());
        Duration::from_micros(self.over.load(Relaxed)) + now
    }
}

/// A receiver of rows that measures how long it had no room, and lets other tasks of the worker run.
struct Timed<'a, S> {
    sink: S,
    waits: &'a Waits,
    slice: TimeSlice,
}

impl<S: Sink> Sink for Timed<'_, S> {
    fn row(&mut self, row: Row) -> Result<bool, Error> {
        self.sink.row(row)
    }

    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let room = self.sink.poll_room(cx);
        let mut since = lock(&self.waits.since);
        match (room, *since) {
            (Poll::Pending, None) => *since = Some(Instant::now()),
            (Poll::Ready(()), Some(began)) => {
                *since = None;
                self.waits.over.fetch_add(began.elapsed().as_micros() as u64, Relaxed);
            }
            _ => {}
        }
        drop(since);
        if room.is_ready() { self.slice.poll(cx) } else { room }
    }
}

fn closed() -> Error {
    Error::new(Reason::Interrupted, "the connection broke before")
}

fn late(pool: &Pool, longest: Duration) -> Error {
    let seconds = longest.as_secs_f32();
    Error::new(Reason::Interrupted, format!("{} did not answer within {seconds} s", pool.source.target))
}

async fn within<T>(
    time: Duration,
    work: impl Future<Output = Result<T, Error>>,
    late: impl FnOnce() -> Error,
) -> Result<T, Error> {
    match tokio::time::timeout(time, work).await {
        Ok(done) => done,
        Err(_) => Err(late()),
    }
}
