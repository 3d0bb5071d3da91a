//! Locks on files: what `enableLock` takes, and what operations that add to a file take among themselves.
//!
//! `Local` locks hold among the operations of this process. `Cluster` locks are files beside the locked one (`NAME.lock`), which
//! other processes see; one that is older than [`STALE`] was left behind and is taken.

use super::{Failure, Files, Reason};
use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, LazyLock, Mutex, PoisonError};
use std::time::Duration;

/// After this time a lock file was left behind.
const STALE: Duration = Duration::from_secs(30);

/// Where the locks of a connection are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    Local,
    Cluster,
}

/// Paths that are locked in this process: by `enableLock`, and by operations that add to them.
#[derive(Default)]
struct Table {
    locked: Mutex<HashSet<PathBuf>>,
    adding: Mutex<HashSet<PathBuf>>,
    added: Condvar,
}

static TABLE: LazyLock<Table> = LazyLock::new(Table::default);

/// A lock, until it is dropped.
pub(super) struct Lock {
    path: PathBuf,
    file: Option<PathBuf>,
}

/// Locks a file, where the operation asks for that.
pub(super) fn lock(path: &Path, files: &Files) -> Result<Option<Lock>, Failure> {
    if !files.lock {
        return Ok(None);
    }
    let taken =
        || Failure::new(Reason::Locking, format!("{} is locked by another operation", path.display()));
    {
        let mut locked = TABLE.locked.lock().unwrap_or_else(PoisonError::into_inner);
        if !locked.insert(path.to_owned()) {
            return Err(taken());
        }
    }
    let mut lock = Lock { path: path.to_owned(), file: None };
    if files.connection.locks == Scheme::Cluster {
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let beside = PathBuf::from(name);
        if is_stale(&beside) {
            let _ = fs::remove_file(&beside);
        }
        match OpenOptions::new().write(true).create_new(true).open(&beside) {
            Ok(_) => lock.file = Some(beside),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(taken()),
            Err(error) => {
                return Err(Failure::new(Reason::Locking, format!("{}: {error}", beside.display())));
            }
        }
    }
    Ok(Some(lock))
}

fn is_stale(path: &Path) -> bool {
    let age = fs::metadata(path).and_then(|own| own.modified()).map(|made| made.elapsed());
    age.is_ok_and(|age| age.is_ok_and(|age| age > STALE))
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            let _ = fs::remove_file(file);
        }
        TABLE.locked.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.path);
    }
}

/// The turn of an operation that adds to a file, until it is dropped.
pub(super) struct Turn(PathBuf);

/// Waits for the turn: of two operations that add to a file, one comes after the other.
pub(super) fn turn(path: &Path, files: &Files) -> Result<Turn, Failure> {
    // A file may have several names.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut adding = TABLE.adding.lock().unwrap_or_else(PoisonError::into_inner);
    while adding.contains(path) {
        files.go_on()?;
        let waited = TABLE.added.wait_timeout(adding, Duration::from_millis(200));
        adding = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    adding.insert(path.to_owned());
    Ok(Turn(path.to_owned()))
}

impl Drop for Turn {
    fn drop(&mut self) {
        TABLE.adding.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
        TABLE.added.notify_all();
    }
}
