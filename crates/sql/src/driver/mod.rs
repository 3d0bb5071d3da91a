//! One connection to one database, whichever it is.

mod mysql;
mod numeric;
mod postgres;
mod sqlite;

use crate::error::Error;
use crate::parameter::Parameter;
use crate::source::Source;
use crate::statement::Statement;
use crate::url::Dialect;
use crate::value::Row;

/// What a statement did beside its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// How many rows it changed (or found, where it only reads).
    pub affected: u64,
    /// The key that the database made for the last row that was added, where it says so by itself.
    pub generated: Option<i64>,
}

/// Takes the rows of a result one by one; `false`: no more are wanted.
pub(crate) type Rows<'a> = &'a mut (dyn FnMut(Row) -> Result<bool, Error> + Send);

/// An open connection. Dropping it closes it.
pub(crate) enum Connection {
    Postgres(Box<postgres::Session>),
    MySql(Box<mysql::Session>),
    Sqlite(sqlite::Session),
}

impl Connection {
    /// Opens one and makes it ready: time zone, isolation, `initSQL`.
    pub async fn open(source: &Source) -> Result<Connection, Error> {
        let mut connection = match source.target.dialect {
            Dialect::Postgres => Connection::Postgres(Box::new(postgres::Session::open(source).await?)),
            Dialect::MySql => Connection::MySql(Box::new(mysql::Session::open(source).await?)),
            Dialect::Sqlite => Connection::Sqlite(sqlite::Session::open(source).await?),
        };
        if let Some(init) = &source.options.init {
            connection.execute(init).await?;
        }
        Ok(connection)
    }

    /// Runs a prepared statement, which the connection keeps.
    pub async fn run(
        &mut self,
        statement: &Statement,
        parameters: &[Parameter],
        rows: Rows<'_>,
    ) -> Result<Outcome, Error> {
        match self {
            Connection::Postgres(session) => session.run(statement, parameters, rows).await,
            Connection::MySql(session) => session.run(statement, parameters, rows).await,
            Connection::Sqlite(session) => session.run(statement, parameters, rows).await,
        }
    }

    /// Runs statements of the configuration or of this crate that have no parameters and give no rows.
    pub async fn execute(&mut self, text: &str) -> Result<(), Error> {
        match self {
            Connection::Postgres(session) => session.execute(text).await,
            Connection::MySql(session) => session.execute(text).await,
            Connection::Sqlite(session) => session.execute(text).await,
        }
    }

    /// Ends what runs and takes back what was begun, without waiting for it. For a connection that must not be closed.
    pub fn abandon(&self) {
        if let Connection::Sqlite(session) = self {
            session.abandon();
        }
    }

    /// Whether it still works.
    pub async fn ping(&mut self) -> Result<(), Error> {
        match self {
            Connection::Postgres(session) => session.ping().await,
            Connection::MySql(session) => session.ping().await,
            Connection::Sqlite(_) => Ok(()),
        }
    }
}

/// The authorities that this system trusts, for servers whose certificates are checked and that no file is named for.
const SYSTEM_ROOTS: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// The bundle of the system, where there is one.
fn system_roots() -> Option<&'static str> {
    SYSTEM_ROOTS.into_iter().find(|path| std::path::Path::new(path).is_file())
}

/// What fails while a connection is made.
fn unavailable(error: sqlx::Error) -> Error {
    let broken = match &error {
        sqlx::Error::Io(error) => Some(format!("no connection can be made: {error}")),
        _ => None,
    };
    let error = failed(error);
    Error { reason: crate::error::Reason::Unavailable, message: broken.unwrap_or(error.message), ..error }
}

/// What the libraries report, without the texts that they put around it.
fn failed(error: sqlx::Error) -> Error {
    use crate::error::Reason;
    use sqlx::Error as Sqlx;
    match error {
        Sqlx::Database(own) => {
            let number =
                own.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>().map(|own| own.number().into());
            Error {
                state: own.code().map(|code| code.into_owned()),
                number,
                ..Error::new(Reason::Refused, own.message())
            }
        }
        Sqlx::Io(error) => Error::new(Reason::Interrupted, format!("the connection broke: {error}")),
        Sqlx::Tls(error) => Error::new(Reason::Unavailable, format!("TLS with the database failed: {error}")),
        Sqlx::Encode(error) => Error::new(Reason::Value, error.to_string()),
        Sqlx::Configuration(error) => Error::new(Reason::Unavailable, error.to_string()),
        other => Error::new(Reason::Interrupted, other.to_string()),
    }
}
