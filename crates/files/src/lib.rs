//! Files and directories of this machine, for those who must not wait for a disk.
//!
//! What waits for a disk runs on threads for that, of which there are so many ([`places`]). A file that is made gets its name when it is
//! whole ([`partial`]). Who works on a file has a claim on it, which other operations of this process respect, and a lock file beside
//! it where other programs are to respect it too ([`claim`]). Nothing here knows of messages but [`stream`], which is a body.

pub mod address;
pub mod claim;
pub mod directory;
pub mod partial;
pub mod path;
pub mod places;
pub mod stream;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why something cannot be done with a file.
#[derive(Clone, Debug)]
pub enum Error {
    /// What the system said of a path.
    Io(PathBuf, Arc<io::Error>),
    /// A pipe, a device or a link where a file is expected.
    NoFile(PathBuf),
    /// A directory where a file is expected.
    Directory(PathBuf),
    /// There is one of this name already.
    Exists(PathBuf),
    /// Another operation works on it.
    Locked(PathBuf),
    /// The file of its lock cannot be made.
    Lock(PathBuf, Arc<io::Error>),
    /// It became another one meanwhile.
    Changed(PathBuf),
    /// The operation was cancelled.
    Abandoned,
}

impl Error {
    /// What the system said of a path.
    pub fn io(path: &Path, error: io::Error) -> Error {
        Error::Io(path.to_owned(), Arc::new(error))
    }

    /// What the system said, if it said something.
    pub fn kind(&self) -> Option<io::ErrorKind> {
        match self {
            Error::Io(_, error) | Error::Lock(_, error) => Some(error.kind()),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io(path, error) | Error::Lock(path, error) => write!(out, "{}: {error}", path.display()),
            Error::NoFile(path) => write!(out, "{} is not a file", path.display()),
            Error::Directory(path) => write!(out, "{} is a directory", path.display()),
            Error::Exists(path) => write!(out, "{} exists already", path.display()),
            Error::Locked(path) => write!(out, "{} is locked by another operation", path.display()),
            Error::Changed(path) => write!(out, "{} was changed meanwhile", path.display()),
            Error::Abandoned => out.write_str("nobody waits for the operation any more"),
        }
    }
}

impl std::error::Error for Error {}
