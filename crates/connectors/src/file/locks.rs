//! Locks of operations: what `enableLock` takes.
//!
//! `Local` locks hold among the operations of this process. `Cluster` locks are files beside the locked one (`NAME.lock`), which
//! other processes see; one of another program that is older than [`STALE`] was left behind and is taken.

use super::{Failure, Files};
use files::claim::{Claim, Locking, Release, claim};
use std::path::Path;
use std::time::Duration;

/// After this time a lock file was left behind.
const STALE: Duration = Duration::from_secs(30);

/// Where the locks of a connection are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    Local,
    Cluster,
}

/// Locks a file, where the operation asks for that.
pub(super) fn lock(path: &Path, files: &Files) -> Result<Option<Claim>, Failure> {
    if !files.lock {
        return Ok(None);
    }
    let beside = files.connection.locks == Scheme::Cluster;
    let release = Some(Release { after: STALE, own_machine: false });
    Ok(Some(claim(path, Locking { beside, release })?))
}
