//! Errors of databases, with the codes that the databases give.

use std::fmt;

/// The reason of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There is no connection: the server is down or refuses, or all connections are in use for too long.
    Unavailable,
    /// The connection broke or the deadline passed during a statement: it may have been executed.
    Interrupted,
    /// The database refused the statement.
    Refused,
    /// A parameter or column has a wrong value: nothing was executed, or the result cannot be read.
    Value,
}

/// See the module. Its text contains no password and no parameter.
#[derive(Clone, Debug)]
pub struct Error {
    /// Its reason.
    pub reason: Reason,
    /// The message.
    pub message: String,
    /// SQLSTATE, five characters, where there is one.
    pub state: Option<String>,
    /// The number that the database gives the error (`getErrorCode`).
    pub number: Option<i64>,
    /// The database has taken the whole transaction back, not only the statement. What follows would be committed by itself.
    pub ends_transaction: bool,
}

impl Error {
    /// An error without a code of a database.
    pub fn new(reason: Reason, message: impl Into<String>) -> Error {
        Error { reason, message: message.into(), state: None, number: None, ends_transaction: false }
    }

    /// Message and codes in one line.
    pub fn detail(&self) -> String {
        let mut out = String::new();
        if let Some(state) = &self.state {
            out += &format!("SQLSTATE {state}, ");
        }
        if let Some(number) = self.number {
            out += &format!("error {number}, ");
        }
        out + &self.message
    }

    /// Whether the server has no more connections: `53300` of PostgreSQL, too many connections (of a user) of MySQL and of SQL Server.
    pub(crate) fn is_full(&self) -> bool {
        self.state.as_deref() == Some("53300") || matches!(self.number, Some(1040 | 1203 | 1226 | 17809))
    }

    /// Whether the server only reads, as the one that was the first one before a failover: `25006` of PostgreSQL, `--read-only` of MySQL, a database of
    /// SQL Server.
    pub(crate) fn is_read_only(&self) -> bool {
        self.state.as_deref() == Some("25006") || matches!(self.number, Some(1290 | 1836 | 3906))
    }

    /// Whether the connection is broken.
    pub(crate) fn breaks(&self) -> bool {
        match self.reason {
            Reason::Unavailable | Reason::Interrupted => true,
            Reason::Value => false,
            // The server closes the session: class 08, of PostgreSQL 57P0x and those of transactions that were idle or took too long.
            Reason::Refused => {
                self.state.as_deref().is_some_and(|state| {
                    state.starts_with("08") || state.starts_with("57P0") || matches!(state, "25P03" | "25P04")
                })
                    || matches!(self.number, Some(1053 | 1927 | 2006 | 2013 | 4031))
                    // The file of SQLite was replaced.
                    || (self.state.is_none() && self.number == Some(1032))
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
