//! What goes wrong with a database, with the code that the database gave it.

use std::fmt;

/// Why a database did not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There is no connection: the server is down or refuses, or all connections are in use for too long.
    Unavailable,
    /// A connection broke, or the deadline passed, while something was asked: it may have been done.
    Interrupted,
    /// The database refused the statement.
    Refused,
    /// A parameter or a column is not what it should be; nothing was asked, or the result cannot be read.
    Value,
}

/// See the module. Its text never has a password or a parameter in it.
#[derive(Clone, Debug)]
pub struct Error {
    /// What kind of failure it is.
    pub reason: Reason,
    /// In words.
    pub message: String,
    /// SQLSTATE, five characters, where there is one.
    pub state: Option<String>,
    /// The number that the database gives the error (`getErrorCode`).
    pub number: Option<i64>,
}

impl Error {
    /// An error that has no code of a database.
    pub fn new(reason: Reason, message: impl Into<String>) -> Error {
        Error { reason, message: message.into(), state: None, number: None }
    }

    /// Codes and text in one line.
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

    /// Whether the server takes no more connections: `53300` of PostgreSQL, too many connections (of a user) of MySQL and of SQL Server.
    pub(crate) fn is_full(&self) -> bool {
        self.state.as_deref() == Some("53300") || matches!(self.number, Some(1040 | 1203 | 1226 | 17809))
    }

    /// Whether the connection that it came over is of no more use.
    pub(crate) fn breaks(&self) -> bool {
        match self.reason {
            Reason::Unavailable | Reason::Interrupted => true,
            Reason::Value => false,
            // The server says good-bye: class 08, 57P0x of PostgreSQL.
            Reason::Refused => {
                self.state
                    .as_deref()
                    .is_some_and(|state| state.starts_with("08") || state.starts_with("57P0"))
                    || matches!(self.number, Some(1053 | 1927 | 2006 | 2013 | 4031))
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
