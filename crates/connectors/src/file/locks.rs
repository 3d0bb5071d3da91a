//! Locks of operations: what `enableLock` takes.
//!
//! `Local` locks hold among the operations of this process. `Cluster` locks are files beside the locked one (`NAME.lock`), which
//! other processes see; one of another program that is older than [`STALE`] counts as abandoned and is replaced.

use super::{Failure, Files};
use files::claim::{Claim, Locking, Release, claim};
use std::path::Path;
use std::time::Duration;

/// The age at which a lock file counts as abandoned.
const STALE: Duration = Duration::from_secs(30);

/// Where a connection keeps its locks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    Local,
    Cluster,
}

/// Locks a file, if the operation has `enableLock`.
pub(super) fn lock(path: &Path, files: &Files) -> Result<Option<Claim>, Failure> {
    if !files.lock {
        return Ok(None);
    }
    let beside = files.connection.locks == Scheme::Cluster;
    let release = Some(Release { after: STALE, own_machine: false });
    Ok(Some(claim(path, Locking { beside, release })?))
}
