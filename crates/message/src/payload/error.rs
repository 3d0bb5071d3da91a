//! Why a payload cannot be read or written.

use crate::body::BodyError;
use crate::memory::Shortage;
use crate::spill::Unspilled;
use std::fmt;

/// Why a payload cannot be read or written.
#[derive(Clone, Debug)]
pub enum PayloadError {
    /// The bytes are not what their type says; `ERROR_CODE` 601000 where WSO2 gives it.
    Malformed {
        /// What is wrong, with its position in the payload.
        message: String,
    },
    /// A limit of [`PayloadLimits`] is exceeded: 413 to the client.
    TooLarge {
        /// Which limit, and its value.
        message: String,
    },
    /// Messages of this process hold as much together as they may: 503 to the client.
    Shortage(Shortage),
    /// A body that is too large for memory cannot go to a file now, for a reason that is not its sender's: 503 to the client.
    NoRoom {
        /// Why, and which directory.
        message: String,
    },
    /// The peer did not deliver the body.
    Receiving(BodyError),
    /// The charset of the message lacks a character that has no other form.
    Unwritable {
        /// Which, and what to do.
        message: String,
    },
    /// The payload is gone: it was streamed to an endpoint and nothing kept it.
    Consumed,
}

impl fmt::Display for PayloadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PayloadError::Malformed { message }
            | PayloadError::TooLarge { message }
            | PayloadError::NoRoom { message }
            | PayloadError::Unwritable { message } => out.write_str(message),
            PayloadError::Shortage(why) => why.fmt(out),
            PayloadError::Receiving(error) => write!(out, "the body did not arrive: {error}"),
            PayloadError::Consumed => {
                out.write_str("the body was streamed to an endpoint before and is gone")
            }
        }
    }
}

impl std::error::Error for PayloadError {}

impl From<Shortage> for PayloadError {
    fn from(why: Shortage) -> PayloadError {
        PayloadError::Shortage(why)
    }
}

pub(super) fn malformed(message: impl Into<String>) -> PayloadError {
    PayloadError::Malformed { message: message.into() }
}

impl From<Unspilled> for PayloadError {
    fn from(why: Unspilled) -> PayloadError {
        match why {
            Unspilled::TooLarge(message) => PayloadError::TooLarge { message },
            Unspilled::NoRoom(message) => PayloadError::NoRoom { message },
        }
    }
}
