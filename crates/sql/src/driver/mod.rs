//! One connection to a database of any kind.

mod bounded;
mod mssql;
mod mysql;
mod nested;
mod numeric;
mod postgres;
mod sqlite;
mod turns;

use crate::error::{Error, Reason};
use crate::parameter::Parameter;
use crate::source::Source;
use crate::statement::Statement;
use crate::time_slice::TimeSlice;
use crate::url::Dialect;
use crate::value::{Columns, Row, Value};
use files::places::on_thread_surely;
use sqlx::Column;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The outcome of a statement beside its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The number of rows that it changed (or found, where it only reads).
    pub affected: u64,
    /// The key that the database generated for the last inserted row, where its protocol reports it.
    pub generated: Option<i64>,
}

/// Receives the rows of a result one by one. A closure is a receiver that always has room.
pub trait Sink: Send {
    /// Receives a row; `false`: no more are wanted.
    ///
    /// # Errors
    /// An error in the row; no more are wanted.
    fn row(&mut self, row: Row) -> Result<bool, Error>;

    /// Whether there is room for a row. Until then the database waits, and the deadline of the statement stands still.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let _ = cx;
        Poll::Ready(())
    }
}

impl<F: FnMut(Row) -> Result<bool, Error> + Send> Sink for F {
    fn row(&mut self, row: Row) -> Result<bool, Error> {
        self(row)
    }
}

pub(crate) type Rows<'a> = &'a mut dyn Sink;

/// A row of this many bytes is converted on another thread: that would block the worker for a millisecond.
const LARGE: usize = 1 << 20;

/// Passes on the rows of a result. Unwanted rows are received all the same, so that the connection can be used again.
struct Handing<'a> {
    rows: Rows<'a>,
    /// The columns of the connection's last statement: mostly the next one is the same.
    last: &'a mut Arc<Columns>,
    /// The columns of this statement, from its first row on.
    columns: Option<Arc<Columns>>,
    /// Most bytes of a value.
    longest: usize,
    wanted: bool,
    problem: Option<Error>,
    /// Of unwanted rows; whoever receives rows has one of its own.
    slice: TimeSlice,
}

impl<'a> Handing<'a> {
    fn new(rows: Rows<'a>, last: &'a mut Arc<Columns>, longest: usize) -> Handing<'a> {
        Handing {
            rows,
            last,
            columns: None,
            longest,
            wanted: true,
            problem: None,
            slice: TimeSlice::default(),
        }
    }

    /// `length`: length of a value in bytes.
    async fn row<R: sqlx::Row + Send>(
        &mut self,
        row: R,
        length: fn(&R, usize) -> usize,
        values: impl FnOnce(&R) -> Result<Vec<Value>, Error> + Send + 'static,
    ) {
        let names = row.columns().iter().map(|column| column.name());
        let Some(columns) = self.columns(row.len(), names) else { return self.unwanted().await };
        let mut size = 0;
        let mut too_long = None;
        for at in 0..row.len() {
            let length = length(&row, at);
            size += length;
            if length > self.longest {
                let column = row.columns().get(at).map_or("", |column| column.name());
                too_long = too_long.or_else(|| Some(is_too_long(column, length, self.longest)));
            }
        }
        let values = match too_long {
            Some(error) => Err(error),
            None if size < LARGE => values(&row),
            None => {
                let read = on_thread_surely(move || values(&row)).await;
                read.unwrap_or_else(|why| Err(Error::new(Reason::Interrupted, why.to_string())))
            }
        };
        self.hand(columns, values).await;
    }

    /// The columns of a row; `None`: the row is not wanted.
    fn columns<'n>(
        &mut self,
        count: usize,
        names: impl Iterator<Item = &'n str> + Clone,
    ) -> Option<Arc<Columns>> {
        if !self.wanted {
            return None;
        }
        let columns = self.columns.get_or_insert_with(|| {
            let is_same = count == self.last.0.len()
                && names.clone().zip(&self.last.0).all(|(name, last)| name == last);
            if !is_same {
                *self.last = Arc::new(Columns(names.map(str::to_owned).collect()));
            }
            Arc::clone(self.last)
        });
        Some(Arc::clone(columns))
    }

    /// Passes over an unwanted row. There may be millions, and a driver reads on as long as the socket has something, whatever the budget of the task is:
    /// without it neither other tasks of the worker nor the deadline of the statement would have their turn.
    async fn unwanted(&mut self) {
        self.slice.pass().await;
    }

    /// Passes a row to the receiver when that has room.
    async fn hand(&mut self, columns: Arc<Columns>, values: Result<Vec<Value>, Error>) {
        poll_fn(|cx| self.rows.poll_room(cx)).await;
        let read = values.and_then(|values| self.rows.row(Row { columns, values }));
        self.wanted = read.unwrap_or_else(|error| {
            self.problem = Some(error);
            false
        });
    }

    /// Ignores the rows of further results.
    fn result_ends(&mut self) {
        self.wanted &= self.columns.is_none();
    }

    fn end(self, outcome: Outcome) -> Result<Outcome, Error> {
        self.problem.map_or(Ok(outcome), Err)
    }
}

/// The error for a value that is larger than `sql.value` allows.
fn is_too_long(column: &str, length: usize, longest: usize) -> Error {
    let message = format!("column {column} has a value of {length} bytes, and sql.value allows {longest}");
    Error::new(Reason::Value, message)
}

/// An open connection. Dropping it closes it.
pub(crate) enum Connection {
    Postgres(Box<postgres::Session>),
    MySql(Box<mysql::Session>),
    Sqlite(sqlite::Session),
    SqlServer(Box<mssql::Session>),
}

impl Connection {
    /// Opens a connection and sets it up: time zone, isolation, `initSQL`.
    pub async fn open(source: &Source) -> Result<Connection, Error> {
        // Drivers look up names on a thread of the runtime, which panics where the system has none.
        guarded(Connection::set_up(source), Reason::Unavailable).await
    }

    async fn set_up(source: &Source) -> Result<Connection, Error> {
        let mut connection = match source.target.dialect {
            Dialect::Postgres => Connection::Postgres(Box::new(postgres::Session::open(source).await?)),
            Dialect::MySql => Connection::MySql(Box::new(mysql::Session::open(source).await?)),
            Dialect::Sqlite => Connection::Sqlite(sqlite::Session::open(source).await?),
            Dialect::SqlServer => Connection::SqlServer(Box::new(mssql::Session::open(source).await?)),
        };
        // SQLite has run it already.
        if let Some(init) = source.options.init.as_ref().filter(|_| source.target.dialect != Dialect::Sqlite)
        {
            connection.execute(init).await.map_err(|error| of_init(source, error))?;
        }
        Ok(connection)
    }

    /// Runs a prepared statement, which the connection caches.
    pub async fn run(
        &mut self,
        statement: &Statement,
        parameters: &[Parameter],
        rows: Rows<'_>,
    ) -> Result<Outcome, Error> {
        let driver = async {
            match self {
                // Each is as large as it has to be: a future is copied where it begins.
                Connection::Postgres(session) => Box::pin(session.run(statement, parameters, rows)).await,
                Connection::MySql(session) => Box::pin(session.run(statement, parameters, rows)).await,
                Connection::Sqlite(session) => Box::pin(session.run(statement, parameters, rows)).await,
                Connection::SqlServer(session) => Box::pin(session.run(statement, parameters, rows)).await,
            }
        };
        guarded(driver, Reason::Interrupted).await
    }

    /// Runs statements of the configuration or of this crate, without parameters and rows.
    pub async fn execute(&mut self, text: &str) -> Result<(), Error> {
        let driver = async {
            match self {
                Connection::Postgres(session) => Box::pin(session.execute(text)).await,
                Connection::MySql(session) => Box::pin(session.execute(text)).await,
                Connection::Sqlite(session) => Box::pin(session.execute(text)).await,
                Connection::SqlServer(session) => Box::pin(session.execute(text)).await,
            }
        };
        guarded(driver, Reason::Interrupted).await
    }

    /// Cancels the running statement and rolls back, without waiting. For a connection that must not be closed.
    pub fn abandon(&self) {
        if let Connection::Sqlite(session) = self {
            session.abandon();
        }
    }

    /// The number by which another connection can end this one's statement, where the server does not do that itself when this one is closed.
    pub fn number(&self) -> Option<u64> {
        match self {
            Connection::MySql(session) => session.number,
            _ => None,
        }
    }

    /// Whether it leads to the database of its name: a file may have been replaced.
    pub fn is_current(&self) -> bool {
        match self {
            Connection::Sqlite(session) => session.has_its_file(),
            _ => true,
        }
    }

    /// Whether the connection works.
    pub async fn ping(&mut self) -> Result<(), Error> {
        let driver = async {
            match self {
                Connection::Postgres(session) => Box::pin(session.ping()).await,
                Connection::MySql(session) => Box::pin(session.ping()).await,
                Connection::Sqlite(_) => Ok(()),
                Connection::SqlServer(session) => Box::pin(session.ping()).await,
            }
        };
        guarded(driver, Reason::Interrupted).await
    }
}

/// Polls a driver to its end. Drivers panic where a server breaks its protocol (a message that is shorter than it says, a row with fewer values than columns): that is
/// an error of this connection, which is closed for it, not the end of the flow or of a response that is being sent.
async fn guarded<T>(driver: impl Future<Output = Result<T, Error>>, reason: Reason) -> Result<T, Error> {
    let mut driver = pin!(driver);
    poll_fn(|cx| {
        catch_unwind(AssertUnwindSafe(|| driver.as_mut().poll(cx))).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<&str>().copied();
            let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            let text = text.unwrap_or("it does not say why");
            Poll::Ready(Err(Error::new(reason, format!("the driver panicked: {text}"))))
        })
    })
    .await
}

/// The system's trust anchors, for servers whose certificates are checked without a given file.
const SYSTEM_ROOTS: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// The bundle of the system, if it has one.
fn system_roots<'a>() -> Option<&'a str> {
    SYSTEM_ROOTS.into_iter().find(|path| std::path::Path::new(path).is_file())
}

/// The error for a failed connection attempt.
fn unavailable(error: sqlx::Error) -> Error {
    let broken = match &error {
        sqlx::Error::Io(error) => Some(format!("no connection can be made: {}", of_io(error))),
        _ => None,
    };
    let error = failed(error);
    Error { reason: crate::error::Reason::Unavailable, message: broken.unwrap_or(error.message), ..error }
}

/// The error for an `initSQL` that fails.
fn of_init(source: &Source, error: Error) -> Error {
    Error { message: format!("initSQL for {}: {}", source.target, error.message), ..error }
}

/// The error for an I/O error.
fn of_io(error: &std::io::Error) -> String {
    match error.kind() {
        // The message of TLS contains the URL of a page.
        std::io::ErrorKind::UnexpectedEof => "the server closed it".to_owned(),
        _ => error.to_string(),
    }
}

/// The error for an error of the library, without the texts that it adds.
fn failed(error: sqlx::Error) -> Error {
    use crate::error::Reason;
    use sqlx::Error as Sqlx;
    match error {
        Sqlx::Database(database) => {
            let number =
                database.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>().map(|d| d.number().into());
            Error {
                state: database.code().map(|code| code.into_owned()),
                number,
                // Of MySQL: a record that was changed meanwhile, too many locks, deadlocks.
                ends_transaction: matches!(number, Some(1020 | 1206 | 1213 | 1614)),
                ..Error::new(Reason::Refused, database.message())
            }
        }
        Sqlx::Io(error) => {
            Error::new(Reason::Interrupted, format!("the connection broke: {}", of_io(&error)))
        }
        Sqlx::Tls(error) => Error::new(Reason::Unavailable, format!("TLS with the database failed: {error}")),
        Sqlx::Encode(error) => Error::new(Reason::Value, error.to_string()),
        // The library knows no kinds of types that came after it, such as multiranges.
        Sqlx::ColumnDecode { index, source } if index == "\"typtype\"" || index == "typtype" => {
            let message = format!("a column has a type that is not known here; cast it to text ({source})");
            Error::new(Reason::Interrupted, message)
        }
        Sqlx::Configuration(error) => Error::new(Reason::Unavailable, error.to_string()),
        other => Error::new(Reason::Interrupted, other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::time::{Duration, Instant};

    /// Who wants the first row of millions leaves the worker to others now and then.
    #[test]
    fn others_run_while_unwanted_rows_are_received() {
        let turns = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&turns);
        let other = async move {
            loop {
                counted.fetch_add(1, Relaxed);
                tokio::task::yield_now().await;
            }
        };
        let received = async {
            let mut last_columns = Arc::default();
            let mut first = |_: Row| Ok(false);
            let mut handing = Handing::new(&mut first, &mut last_columns, 1);
            let columns = handing.columns(1, ["a"].into_iter()).unwrap();
            handing.hand(columns, Ok(vec![Value::Null])).await;
            // Rows since the other task ran, and the most of these.
            let (mut alone, mut longest, mut last) = (0, 0, 0);
            for _ in 0..70 {
                assert!(handing.columns(1, ["a"].into_iter()).is_none());
                handing.unwanted().await;
                let now = turns.load(Relaxed);
                alone = if now == last { alone + 1 } else { 1 };
                (last, longest) = (now, longest.max(alone));
                let began = Instant::now();
                while began.elapsed() < Duration::from_micros(200) {}
            }
            longest
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let longest = runtime.block_on(async {
            let other = tokio::spawn(other);
            let longest = received.await;
            other.abort();
            longest
        });
        // A slice is a millisecond: five such rows, and one more where it ends in the middle of one.
        assert!(longest <= 6, "{longest} rows in a row");
    }
}
