//! SQLite: the library blocks on disks and locks, so each connection has a thread.

use super::turns::{Turn, Turns};
use super::{Outcome, Rows, of_init};
use crate::error::{Error, Reason};
use crate::parameter::Parameter;
use crate::source::Source;
use crate::statement::Statement;
use crate::value::{Columns, Row, Value, timestamp_text};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, InterruptHandle, OpenFlags};
use std::cell::Cell;
use std::future::poll_fn;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc as answers;
use tokio::sync::oneshot;

/// How long a statement waits for other writers: those of this process, and then those of others.
const PATIENCE: Duration = Duration::from_secs(20);

thread_local! {
    /// How long the connection of this thread waits for others, whether it is to write, and since when it waits.
    static PATIENT: Cell<(Duration, bool)> = const { Cell::new((PATIENCE, false)) };
    static BEGUN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Rows and bytes in a chunk that crosses from the thread, and most chunks that wait there.
const CHUNK: usize = 64;
const CHUNK_BYTES: usize = 128 << 10;
const CHUNKS: usize = 4;

/// The handle of a thread with a connection. Dropping it interrupts the running statement and ends the thread.
pub(crate) struct Session {
    jobs: mpsc::Sender<Job>,
    interrupt: Arc<InterruptHandle>,
    /// Number of jobs so far.
    count: AtomicU64,
    given_up: Arc<AtomicU64>,
    /// Its file as it was opened; `None`: it is in memory.
    file: Option<(String, Inode)>,
}

/// What tells a file from another one of its name: the numbers of its device and of its node.
type Inode = (u64, u64);

fn inode(file: &str) -> Option<Inode> {
    let metadata = std::fs::metadata(file).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// Steps of a statement between two checks whether somebody waits for it: an interrupt does not reach a statement that is about to begin.
const STEPS: i32 = 10_000;

struct Job {
    /// The number of the job; the first one is 1.
    number: u64,
    text: Arc<str>,
    parameters: Vec<Parameter>,
    /// Several statements, without parameters and results.
    is_batch: bool,
    sender: answers::Sender<Message>,
}

enum Message {
    Rows(Vec<Row>),
    Done(Outcome),
    Failed(Error),
}

impl Drop for Session {
    fn drop(&mut self) {
        self.given_up.store(u64::MAX, Relaxed);
        self.interrupt.interrupt();
    }
}

impl Session {
    pub async fn open(source: &Source) -> Result<Session, Error> {
        let source = source.clone();
        let (jobs, queue) = mpsc::channel::<Job>();
        let (opened, is_open) = oneshot::channel();
        // The last job that was given up.
        let given_up = Arc::new(AtomicU64::new(0));
        let looks = Arc::clone(&given_up);
        let run = move || {
            let opened = Arc::new(Mutex::new(Some(opened)));
            let connection = open(&source, &opened);
            let Some(opened) = lock(&opened).take() else { return };
            match connection {
                Err(error) => _ = opened.send(Err(error)),
                Ok(mut connection) => {
                    let name = source.target.database.clone();
                    let file = name.and_then(|name| inode(&name).map(|inode| (name, inode)));
                    if opened.send(Ok((Arc::new(connection.get_interrupt_handle()), file))).is_ok() {
                        let turns = source.target.database.as_deref().map(|file| Turns::of(Path::new(file)));
                        serve(&mut connection, &queue, &looks, turns.as_ref());
                    }
                }
            };
        };
        let unavailable = |message: String| Error::new(Reason::Unavailable, message);
        std::thread::Builder::new()
            .name("sqlite".to_owned())
            .spawn(run)
            .map_err(|error| unavailable(format!("no thread for a connection: {error}")))?;
        let (interrupt, file) =
            is_open.await.map_err(|_| unavailable("the thread of the connection ended".to_owned()))??;
        Ok(Session { jobs, interrupt, count: AtomicU64::new(0), given_up, file })
    }

    /// Whether its file is still the one of that name: it may have been replaced, as by a backup. SQLite would read the old one on and on.
    pub fn has_its_file(&self) -> bool {
        self.file.as_ref().is_none_or(|(name, opened)| inode(name).as_ref() == Some(opened))
    }

    pub async fn run(
        &mut self,
        statement: &Statement,
        parameters: &[Parameter],
        rows: Rows<'_>,
    ) -> Result<Outcome, Error> {
        let mut answers = self.begin(Arc::clone(statement.text()), parameters.to_vec(), false)?;
        while let Some(message) = answers.recv().await {
            match message {
                Message::Done(outcome) => return Ok(outcome),
                Message::Failed(error) => return Err(error),
                Message::Rows(chunk) => {
                    for row in chunk {
                        poll_fn(|cx| rows.poll_room(cx)).await;
                        if !rows.row(row)? {
                            // The thread notices that the receiver has gone, and ends the statement.
                            return Ok(Outcome::default());
                        }
                    }
                }
            }
        }
        Err(gone())
    }

    pub async fn execute(&mut self, text: &str) -> Result<(), Error> {
        let mut answers = self.begin(Arc::from(text), Vec::new(), true)?;
        match answers.recv().await {
            Some(Message::Failed(error)) => Err(error),
            Some(_) => Ok(()),
            None => Err(gone()),
        }
    }

    pub fn abandon(&self) {
        self.given_up.store(self.count.load(Relaxed), Relaxed);
        self.interrupt.interrupt();
        let (sender, _) = answers::channel(1);
        // Refused where no transaction is open, which has the same effect.
        _ = self.jobs.send(Job {
            number: self.number(),
            text: Arc::from("ROLLBACK"),
            parameters: Vec::new(),
            is_batch: true,
            sender,
        });
    }

    fn begin(
        &mut self,
        text: Arc<str>,
        parameters: Vec<Parameter>,
        is_batch: bool,
    ) -> Result<answers::Receiver<Message>, Error> {
        let (sender, answers) = answers::channel(CHUNKS);
        let number = self.number();
        self.jobs.send(Job { number, text, parameters, is_batch, sender }).map_err(|_| gone())?;
        Ok(answers)
    }

    fn number(&self) -> u64 {
        self.count.fetch_add(1, Relaxed) + 1
    }
}

fn gone() -> Error {
    Error::new(Reason::Interrupted, "the thread of the connection ended")
}

/// Who waits for the connection, until it is open.
type Opened = Arc<Mutex<Option<oneshot::Sender<Result<Parts, Error>>>>>;

/// What the handle of a connection needs of it.
type Parts = (Arc<InterruptHandle>, Option<(String, Inode)>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open(source: &Source, opened: &Opened) -> Result<Connection, Error> {
    let unavailable = |error| Error { reason: Reason::Unavailable, ..failed(error) };
    let connection = match &source.target.database {
        None => Connection::open_in_memory(),
        Some(file) => {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
                | OpenFlags::SQLITE_OPEN_CREATE
                | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            Connection::open_with_flags(file, flags)
        }
    };
    let mut connection = connection.map_err(|error| {
        let error = unavailable(error);
        Error { message: format!("{}: {}", source.target, error.message), ..error }
    })?;
    let patience = source.options.query_timeout.min(PATIENCE);
    // Who opens it has less time, and should learn that the file is locked.
    connection.busy_timeout(patience.min(source.options.connect_timeout / 4)).map_err(unavailable)?;
    connection.set_prepared_statement_cache_capacity(source.options.statements);
    let longest = i32::try_from(source.options.longest).unwrap_or(i32::MAX);
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, longest).map_err(unavailable)?;
    let option =
        |name: &str| source.target.option(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    // Off unless the URL turns it on, as in the JDBC driver.
    connection.pragma_update(None, "foreign_keys", option("foreign_keys")).map_err(unavailable)?;
    if let Some(mode) = source.target.option("journal_mode") {
        connection.pragma_update(None, "journal_mode", mode).map_err(unavailable)?;
    }
    if source.options.read_only {
        connection.pragma_update(None, "query_only", true).map_err(unavailable)?;
    }
    if let Some(init) = &source.options.init {
        let opened = Arc::clone(opened);
        let is_unwanted = move || lock(&opened).as_ref().is_none_or(oneshot::Sender::is_closed);
        connection.progress_handler(STEPS, Some(is_unwanted)).map_err(unavailable)?;
        connection.execute_batch(init).map_err(|error| of_init(source, unavailable(error)))?;
    }
    PATIENT.set((patience, false));
    connection.busy_handler(Some(waits)).map_err(unavailable)?;
    Ok(connection)
}

/// Waits a moment for whoever has the file locked; `false`: that took too long.
fn waits(attempt: i32) -> bool {
    let (patience, writes) = PATIENT.get();
    let now = Instant::now();
    let begun = BEGUN.get().filter(|_| attempt > 0).unwrap_or(now);
    BEGUN.set(Some(begun));
    let is_patient = now.duration_since(begun) < patience;
    if is_patient {
        std::thread::sleep(pause(attempt, writes));
    }
    is_patient
}

/// The time to the next attempt. Where another process has many that write, the file is free for some microseconds between two of them: who tries ten
/// times a second, as SQLite itself does, comes too late for many seconds. Of this process one at a time waits to write, so that may try more often.
fn pause(attempt: i32, writes: bool) -> Duration {
    let attempt = u64::try_from(attempt).unwrap_or(0);
    // Others do not keep its step.
    let apart = attempt % 3;
    Duration::from_millis(if writes { 1 + apart } else { (1 + 2 * attempt).min(25) + apart })
}

/// Runs jobs until the handle is dropped.
fn serve(
    connection: &mut Connection,
    queue: &mpsc::Receiver<Job>,
    given_up: &Arc<AtomicU64>,
    turns: Option<&Arc<Turns>>,
) {
    // The permission to write: for a statement, or for a transaction.
    let mut turn: Option<Turn> = None;
    let running = Arc::new(AtomicU64::new(0));
    let (statement_number, given_up) = (Arc::clone(&running), Arc::clone(given_up));
    if let Err(error) = connection
        .progress_handler(STEPS, Some(move || statement_number.load(Relaxed) <= given_up.load(Relaxed)))
    {
        tracing::warn!(target: "busbar::sql", "statements of SQLite run to their ends when nobody waits: {error}");
    }
    while let Ok(job) = queue.recv() {
        running.store(job.number, Relaxed);
        // Given up before it began, when there was nothing to interrupt yet.
        if !job.is_batch && job.sender.is_closed() {
            continue;
        }
        if let (Some(turns), None) = (turns, &turn)
            && writes(connection, &job)
        {
            turn = turns.take(PATIENCE, || !job.sender.is_closed());
            if turn.is_none() {
                let message = "database is locked: others of this process write for too long";
                let error = Error { number: Some(5), ..Error::new(Reason::Refused, message) };
                _ = job.sender.blocking_send(Message::Failed(error));
                continue;
            }
        }
        PATIENT.set((PATIENT.get().0, turn.is_some()));
        let was_open = !connection.is_autocommit();
        let done = if job.is_batch {
            connection.execute_batch(&job.text).map(|()| Outcome::default()).map_err(failed)
        } else {
            answer(connection, &job)
        };
        let is_over = connection.is_autocommit();
        if is_over {
            turn = None;
        }
        // A full disk, an error of it, or `RAISE(ROLLBACK, …)`.
        let done = done.map_err(|error| Error { ends_transaction: was_open && is_over, ..error });
        // The receiver may have gone.
        _ = job.sender.blocking_send(match done {
            Ok(outcome) => Message::Done(outcome),
            Err(error) => Message::Failed(error),
        });
    }
}

/// Whether a job may write. A statement that cannot be parsed fails when it runs.
fn writes(connection: &Connection, job: &Job) -> bool {
    match job.is_batch {
        // As a query that validates a connection.
        true => !job.text.trim_start().get(..6).is_some_and(|word| word.eq_ignore_ascii_case("select")),
        false => connection.prepare_cached(&job.text).is_ok_and(|statement| !statement.readonly()),
    }
}

fn answer(connection: &Connection, job: &Job) -> Result<Outcome, Error> {
    let before = connection.total_changes();
    let mut statement = connection.prepare_cached(&job.text).map_err(failed)?;
    let wanted = statement.parameter_count();
    if wanted != job.parameters.len() {
        let message =
            format!("the statement has {wanted} parameters, and {} are given", job.parameters.len());
        return Err(Error::new(Reason::Value, message));
    }
    for (at, parameter) in job.parameters.iter().enumerate() {
        statement.raw_bind_parameter(at + 1, bound(parameter)).map_err(failed)?;
    }
    if statement.column_count() == 0 {
        statement.raw_execute().map_err(failed)?;
    } else {
        let mut rows = statement.raw_query();
        let (mut chunk, mut size) = (Vec::new(), 0);
        let mut columns: Option<Arc<Columns>> = None;
        while let Some(row) = rows.next().map_err(failed)? {
            // Only after the first step, which prepares the statement again where a table has changed.
            let columns = columns.get_or_insert_with(|| {
                Arc::new(Columns(row.as_ref().column_names().map(str::to_owned).collect()))
            });
            let values = (0..columns.0.len())
                .map(|at| value(row.get_ref(at).map_err(failed)?))
                .collect::<Result<_, _>>()?;
            let row = Row { columns: Arc::clone(columns), values };
            size += row.size();
            chunk.push(row);
            if chunk.len() == CHUNK || size >= CHUNK_BYTES {
                size = 0;
                if job.sender.blocking_send(Message::Rows(std::mem::take(&mut chunk))).is_err() {
                    return Ok(Outcome::default());
                }
            }
        }
        if !chunk.is_empty() {
            _ = job.sender.blocking_send(Message::Rows(chunk));
        }
    }
    // For a statement without changed rows (DDL) SQLite reports the count of the statement before.
    let changed = connection.total_changes() != before;
    let affected = if changed { connection.changes() } else { 0 };
    Ok(Outcome { affected, generated: changed.then(|| connection.last_insert_rowid()).filter(|&id| id != 0) })
}

/// A parameter. A decimal is a number where that is exact; dates and times are the texts that SQLite's own functions read.
fn bound(parameter: &Parameter) -> rusqlite::types::Value {
    use rusqlite::types::Value::{Blob, Integer, Null, Real, Text};
    match parameter {
        Parameter::Null(_) => Null,
        Parameter::Text(text) => Text(text.clone()),
        Parameter::Decimal(text) => match (text.parse(), text.parse()) {
            (Ok(whole), _) => Integer(whole),
            (_, Ok(number)) if text.len() <= 16 => Real(number),
            _ => Text(text.clone()),
        },
        Parameter::Boolean(value) => Integer((*value).into()),
        Parameter::SmallInt(value) => Integer((*value).into()),
        Parameter::Integer(value) => Integer((*value).into()),
        Parameter::BigInt(value) => Integer(*value),
        Parameter::Real(value) => Real((*value).into()),
        Parameter::Double(value) => Real(*value),
        Parameter::Date(value) => Text(value.to_string()),
        Parameter::Time(value) => Text(value.to_string()),
        Parameter::Timestamp(value) => Text(timestamp_text(*value).trim_end_matches(".0").to_owned()),
        Parameter::Bytes(value) => Blob(value.clone()),
    }
}

fn value(raw: ValueRef<'_>) -> Result<Value, Error> {
    Ok(match raw {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Integer(value),
        ValueRef::Real(value) => Value::Double(value),
        ValueRef::Text(bytes) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
    })
}

fn failed(error: rusqlite::Error) -> Error {
    use rusqlite::Error as Sqlite;
    let code = error.sqlite_extended_error_code().map(i64::from);
    let reason = match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::OperationInterrupted) => Reason::Interrupted,
        Some(rusqlite::ErrorCode::CannotOpen | rusqlite::ErrorCode::NotADatabase) => Reason::Unavailable,
        Some(rusqlite::ErrorCode::TooBig) => Reason::Value,
        _ => Reason::Refused,
    };
    let message = match error {
        Sqlite::SqliteFailure(failure, _) if failure.code == rusqlite::ErrorCode::TooBig => {
            "a value is larger than sql.value allows".to_owned()
        }
        Sqlite::SqliteFailure(_, Some(message)) => message,
        Sqlite::SqlInputError { msg, .. } => msg,
        other => other.to_string(),
    };
    Error { number: code, ..Error::new(reason, message) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_to_write_tries_often_and_others_do_not() {
        let attempts = |writes: bool| {
            let ends = (0..).scan(Duration::ZERO, |end, attempt| {
                *end += pause(attempt, writes);
                Some(*end)
            });
            ends.take_while(|end| *end < PATIENCE).count()
        };
        assert!(attempts(true) > 9_000 && attempts(false) < 1_000, "{} {}", attempts(true), attempts(false));
    }
}
